//! Reads the file of the settings (`-c`) at start.

use std::{
    fs::File,
    io::{self, Read},
    path::Path,
};

use super::file;
use crate::limits::CONFIG_FILE_LEN_MAX;

/// What was found.
#[derive(Debug, PartialEq)]
pub struct Found {
    /// The content.
    pub bytes: Vec<u8>,
    /// What the operator must know.
    pub problem: Option<String>,
}

/// Reads `path`. It may be a pipe (`-c <(...)`), since nothing but reading is done to that.
///
/// # Errors
///
/// When it cannot be read, is longer than a configuration, as a device may be, or was cut short when it was written in place and has
/// no backup: half a configuration is none.
pub fn read(path: &Path) -> io::Result<Found> {
    let is_mended = file::check_kind(path).is_ok() && file::mend(path)?;
    let problem = is_mended.then(|| file::mended_text(path));
    let mut bytes = Vec::new();
    let len_max = u64::try_from(CONFIG_FILE_LEN_MAX).expect("a length is a u64");
    File::open(path)?
        .take(len_max + 1)
        .read_to_end(&mut bytes)?;
    if bytes.len() > CONFIG_FILE_LEN_MAX {
        return Err(io::Error::other(format!(
            "it is longer than {CONFIG_FILE_LEN_MAX} bytes"
        )));
    }
    Ok(Found { bytes, problem })
}
