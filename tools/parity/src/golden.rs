//! Golden files: the recorded answers of one Java release.
//!
//! The expected release's file holds every step. Another release's file holds the steps it answers differently, so
//! that it reads as a list of what changed between the two.

use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::EXPECTED;
use crate::error::{Error, Result};
use crate::observed::{Report, SectionRecord, agrees};

/// What a file says before its sections.
#[derive(Debug, Serialize, Deserialize)]
struct File {
    server: String,
    /// Checksum of the whole script's ids and requests: files of different scripts do not fit together.
    script: u32,
    sections: Vec<SectionRecord>,
}

/// Where the golden file of a release lies.
#[must_use]
pub fn path(release: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("golden")
        .join(format!("{release}.json"))
}

/// Reads a release's answers.
///
/// # Errors
/// A file cannot be read or understood, or was recorded with another script than the expected release's.
pub fn read(release: &str) -> Result<Report> {
    let base = read_file(EXPECTED)?;
    let mut report = Report {
        server: release.to_owned(),
        sections: base.sections,
    };
    if release == EXPECTED {
        return Ok(report);
    }
    let differing = read_file(release)?;
    if differing.script != base.script {
        return Err(Error::new(format!(
            "{release} was recorded with another script than {EXPECTED}: record again"
        )));
    }
    let differences = Report {
        server: differing.server,
        sections: differing.sections,
    };
    for record in report
        .sections
        .iter_mut()
        .flat_map(|section| &mut section.steps)
    {
        if let Some(other) = differences.record(&record.id) {
            *record = other.clone();
        }
    }
    Ok(report)
}

fn read_file(release: &str) -> Result<File> {
    let path = path(release);
    let text = fs::read_to_string(&path)
        .map_err(|error| Error::new(format!("{}: {error}", path.display())))?;
    Ok(serde_json::from_str(&text)?)
}

/// Writes a release's golden file.
///
/// # Errors
/// It cannot be written; the expected release's report has notes; or another one is written first.
pub fn write(report: &Report) -> Result<()> {
    let notes: Vec<&String> = report
        .sections
        .iter()
        .flat_map(|section| &section.notes)
        .collect();
    // Older releases may lose track of closed connections; the expected one must not while it is recorded.
    if report.server == EXPECTED && !notes.is_empty() {
        return Err(Error::new(format!(
            "not fit to be a golden file: {notes:?}"
        )));
    }
    let script = script_checksum(report);
    let mut sections = report.sections.clone();
    if report.server != EXPECTED {
        let base = read_file(EXPECTED)?;
        if base.script != script {
            return Err(Error::new(format!(
                "record {EXPECTED} first: its file is of another script"
            )));
        }
        let base = Report {
            server: base.server,
            sections: base.sections,
        };
        for section in &mut sections {
            section.steps.retain(|record| {
                base.record(&record.id)
                    .is_none_or(|other| !agrees(&other.observed, &record.observed))
            });
        }
    }
    let path = path(&report.server);
    fs::create_dir_all(path.parent().expect("the path has a folder"))?;
    fs::write(&path, text(&report.server, script, &sections)?)?;
    Ok(())
}

fn script_checksum(report: &Report) -> u32 {
    let mut crc = flate2::Crc::new();
    for record in report.records() {
        crc.update(record.id.as_bytes());
        crc.update(record.sent.as_bytes());
    }
    crc.sum()
}

/// One line a step: a change shows as a changed line.
fn text(server: &str, script: u32, sections: &[SectionRecord]) -> Result<String> {
    let mut parts = Vec::new();
    for section in sections {
        let steps = section
            .steps
            .iter()
            .map(serde_json::to_string)
            .collect::<serde_json::Result<Vec<_>>>()?;
        let (name, settings) = (
            serde_json::to_string(&section.section)?,
            serde_json::to_string(&section.settings)?,
        );
        let notes = match section.notes.as_slice() {
            [] => String::new(),
            notes => format!(",\"notes\":{}", serde_json::to_string(notes)?),
        };
        let steps = steps.join(",\n");
        parts.push(format!(
            "{{\"section\":{name},\"settings\":{settings},\"steps\":[\n{steps}\n]{notes}}}"
        ));
    }
    let server = serde_json::to_string(server)?;
    Ok(format!(
        "{{\"server\":{server},\"script\":{script},\"sections\":[\n{}\n]}}\n",
        parts.join(",\n")
    ))
}
