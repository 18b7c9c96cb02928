//! What can go wrong before a figure is there: one text that says what was found and what was allowed.

use std::{fmt, io};

/// Why a run could not start or finish. Wrong replies are not errors but [`crate::record::Faults`].
#[derive(Debug)]
pub struct Error(String);

/// The result of everything here that can fail.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// An error with this text: lower case, no full stop.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// A function that says what was being done when the system refused.
    pub fn while_doing(what: impl fmt::Display) -> impl FnOnce(io::Error) -> Self {
        move |error| Self(format!("{what}: {error}"))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl std::error::Error for Error {}
