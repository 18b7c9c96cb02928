//! The one error type: a sentence, for people.

use std::{fmt, io};

/// Why a run could not be finished.
#[derive(Debug)]
pub struct Error(String);

/// Shorthand.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// An error that says this.
    #[must_use]
    pub fn new(text: String) -> Error {
        Error(text)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl std::error::Error for Error {}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Error {
        Error(error.to_string())
    }
}

impl From<serde_json::Error> for Error {
    fn from(error: serde_json::Error) -> Error {
        Error(error.to_string())
    }
}
