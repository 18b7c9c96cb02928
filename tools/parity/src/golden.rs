//! Golden files: the recorded answers of one Java release.

use std::fs;
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::observed::Report;

/// Where the golden file of a release lies.
#[must_use]
pub fn path(release: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("golden")
        .join(format!("{release}.json"))
}

/// Reads a release's golden file.
///
/// # Errors
/// It cannot be read or understood.
pub fn read(release: &str) -> Result<Report> {
    let path = path(release);
    let text = fs::read_to_string(&path)
        .map_err(|error| Error::new(format!("{}: {error}", path.display())))?;
    Ok(serde_json::from_str(&text)?)
}

/// Writes a release's golden file.
///
/// # Errors
/// It cannot be written.
pub fn write(report: &Report) -> Result<()> {
    let path = path(&report.server);
    fs::create_dir_all(path.parent().expect("the path has a folder"))?;
    let mut text = serde_json::to_string_pretty(report)?;
    text.push('\n');
    fs::write(&path, text)?;
    Ok(())
}
