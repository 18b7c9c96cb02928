//! Where one frame ends and the next begins (spec 1.1, 1.9).
//!
//! ```text
//!  0               4        5                8                   8 + headerLength
//! ┌───────────────┬────────┬────────────────┬───────────────────┬──────┐
//! │ totalLength   │ type   │ headerLength   │ header            │ body │   totalLength counts everything behind itself
//! │ i32           │ u8     │ u24            │                   │      │   type 0: JSON, 1: ROCKETMQ
//! └───────────────┴────────┴────────────────┴───────────────────┴──────┘
//! ```

use std::fmt;

use super::command::SerializeType;

/// Bytes of the length word.
const LENGTH_LEN: usize = 4;
/// Bytes of the serialize type and header length, which every frame has.
pub(super) const PREFIX_LEN: usize = 4;
/// The largest header length that 24 bits express.
pub(super) const HEADER_LEN_MAX: usize = 0xff_ffff;

/// Where the body of a whole frame with its length word begins.
#[must_use]
pub fn body_at(frame: &[u8]) -> Option<usize> {
    let prefix = frame.get(LENGTH_LEN..)?.first_chunk::<PREFIX_LEN>()?;
    let (_, header_len) = read_prefix(*prefix, frame.len() - LENGTH_LEN).ok()?;
    Some(LENGTH_LEN + PREFIX_LEN + header_len)
}

/// What the front of a byte stream holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Split<'a> {
    /// The beginning of a frame at most.
    NeedMore,
    /// A whole frame.
    Frame {
        /// What follows the length word: what [`super::command::RemotingCommand::decode`] takes.
        frame: &'a [u8],
        /// Bytes of the frame with its length word.
        consumed: usize,
    },
}

/// Why no frame can start with these bytes. The connection is closed without an answer (spec 1.9).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FrameError {
    /// A length that leaves no room for the serialize type and header length; negative ones too.
    TooShort {
        /// `totalLength` as sent.
        len: i32,
        /// The least it may be.
        min: usize,
    },
    /// A frame above the limit.
    TooLarge {
        /// Bytes of the frame, length word included.
        len: usize,
        /// How many it may have.
        max: usize,
    },
    /// A serialize type other than JSON and ROCKETMQ.
    SerializeType {
        /// The type byte.
        found: u8,
    },
    /// A header that reaches beyond its frame.
    HeaderTooLong {
        /// `headerLength` as sent.
        len: usize,
        /// Bytes of the frame that are left for it.
        max: usize,
    },
}

impl fmt::Display for FrameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::TooShort { len, min } => {
                write!(f, "frame length {len}, at least {min} is needed")
            }
            Self::TooLarge { len, max } => {
                write!(f, "frame of {len} bytes, at most {max} are allowed")
            }
            Self::SerializeType { found } => {
                write!(
                    f,
                    "serialize type {found}, 0 (json) or 1 (rocketmq) is allowed"
                )
            }
            Self::HeaderTooLong { len, max } => {
                write!(
                    f,
                    "header of {len} bytes in a frame that has room for {max}"
                )
            }
        }
    }
}

impl std::error::Error for FrameError {}

/// Finds the first frame of `input`. `frame_len_max` counts the whole frame with its length word.
///
/// A frame that can never become legal is refused as soon as the bytes that tell are there: its length with the fourth byte, its
/// serialize type and header length with the eighth.
///
/// # Errors
/// When no frame can start with these bytes.
pub fn split(input: &[u8], frame_len_max: usize) -> Result<Split<'_>, FrameError> {
    let Some((length, rest)) = input.split_first_chunk::<LENGTH_LEN>() else {
        return Ok(Split::NeedMore);
    };
    let length = i32::from_be_bytes(*length);
    let frame_len = match usize::try_from(length) {
        Ok(len) if len >= PREFIX_LEN => len,
        _ => {
            return Err(FrameError::TooShort {
                len: length,
                min: PREFIX_LEN,
            });
        }
    };
    let consumed = LENGTH_LEN + frame_len;
    if consumed > frame_len_max {
        return Err(FrameError::TooLarge {
            len: consumed,
            max: frame_len_max,
        });
    }
    let Some(prefix) = rest.first_chunk::<PREFIX_LEN>() else {
        return Ok(Split::NeedMore);
    };
    read_prefix(*prefix, frame_len)?;
    Ok(match rest.get(..frame_len) {
        Some(frame) => Split::Frame { frame, consumed },
        None => Split::NeedMore,
    })
}

/// Reads the serialize type and header length of a frame of `frame_len` bytes behind its length word.
pub(super) fn read_prefix(
    prefix: [u8; PREFIX_LEN],
    frame_len: usize,
) -> Result<(SerializeType, usize), FrameError> {
    let [type_byte, length @ ..] = prefix;
    let serialize_type = match type_byte {
        0 => SerializeType::Json,
        1 => SerializeType::RocketMq,
        found => return Err(FrameError::SerializeType { found }),
    };
    let [high, middle, low] = length.map(usize::from);
    let len = high << 16 | middle << 8 | low;
    let max = frame_len - PREFIX_LEN;
    if len > max {
        return Err(FrameError::HeaderTooLong { len, max });
    }
    Ok((serialize_type, len))
}
