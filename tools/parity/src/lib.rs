//! Parity against the original.
//!
//! One script of frames is sent to Java name servers, whose answers are kept as golden files, and to ours, whose
//! answers must be the same or be listed as deviations. See the package's README.

pub mod check;
pub mod connection;
pub mod deviations;
pub mod error;
pub mod frame;
pub mod golden;
pub mod java;
pub mod json_text;
pub mod launch;
pub mod listener;
pub mod normal;
pub mod observed;
pub mod reply;
pub mod runner;
pub mod script;

pub use check::Mismatches;
pub use error::{Error, Result};
pub use launch::{Launcher, Pace, ProcessLauncher, Server};
pub use observed::Report;

/// The release whose answers are the expectation.
pub const EXPECTED: &str = "5.3.3";

/// Runs the whole script against the servers `launcher` starts.
///
/// # Errors
/// A server does not start or stops serving.
pub fn run_sections(launcher: &mut dyn Launcher) -> Result<Report> {
    runner::run(&script::sections(), launcher)
}

/// Checks our server's report against a golden report and the deviations.
///
/// # Errors
/// The differences.
pub fn check(
    report: &Report,
    golden: &Report,
    deviations: &[deviations::Deviation],
) -> std::result::Result<(), Mismatches> {
    check::check(&script::sections(), report, golden, deviations)
}
