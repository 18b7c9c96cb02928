//! Why a JSON text is refused.

use std::fmt;

/// Where a JSON text stops making sense, and what would have made sense there. It never quotes more than one byte of the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JsonError {
    /// The text is no UTF-8 from `offset` on.
    NotUtf8 {
        /// Bytes before the bad one.
        offset: usize,
    },
    /// Something else was due.
    Unexpected {
        /// Bytes before it.
        offset: usize,
        /// The byte there; `None` at the end of the text.
        found: Option<u8>,
        /// What was due.
        expected: &'static str,
    },
    /// A value or name that is no number, or one that its field cannot hold.
    OutOfRange {
        /// Bytes before it.
        offset: usize,
        /// What the field holds.
        expected: &'static str,
    },
    /// Objects and lists lie too deep in each other.
    TooDeep {
        /// Bytes before the one too many.
        offset: usize,
        /// How deep they may lie.
        max: usize,
    },
}

impl fmt::Display for JsonError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::NotUtf8 { offset } => {
                write!(f, "invalid utf-8 at byte {offset} of the json text")
            }
            Self::Unexpected {
                offset,
                found: Some(found),
                expected,
            } => write!(
                f,
                "expected {expected} at byte {offset} of the json text, found '{}'",
                found.escape_ascii()
            ),
            Self::Unexpected {
                offset,
                found: None,
                expected,
            } => write!(
                f,
                "expected {expected} at byte {offset} of the json text, found its end"
            ),
            Self::OutOfRange { offset, expected } => {
                write!(
                    f,
                    "what stands at byte {offset} of the json text is not {expected}"
                )
            }
            Self::TooDeep { offset, max } => {
                write!(f, "json nests deeper than {max} at byte {offset}")
            }
        }
    }
}

impl std::error::Error for JsonError {}
