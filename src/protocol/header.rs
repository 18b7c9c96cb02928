//! A whole frame as a [`RemotingCommand`], whichever way its header is encoded (spec 1.1).

use std::fmt;

use super::{
    command::{ExtFields, RemotingCommand, SerializeType},
    frame::{FrameError, PREFIX_LEN, read_prefix},
    header_json, header_rocketmq,
    header_rocketmq::RocketMqError,
    header_scan::{self, HeaderModel},
    json::JsonError,
};
use crate::limits::EXT_FIELDS_MAX;

/// Why a frame is no command. The connection is closed without an answer (spec 1.9).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DecodeError {
    /// Its first four bytes are wrong.
    Frame(FrameError),
    /// Its JSON header is.
    Json(JsonError),
    /// Its ROCKETMQ header is.
    RocketMq(RocketMqError),
    /// It has more ext fields than any peer sends.
    TooManyExtFields {
        /// How many it may have.
        max: usize,
    },
}

impl From<FrameError> for DecodeError {
    fn from(error: FrameError) -> Self {
        Self::Frame(error)
    }
}

impl From<JsonError> for DecodeError {
    fn from(error: JsonError) -> Self {
        Self::Json(error)
    }
}

impl From<RocketMqError> for DecodeError {
    fn from(error: RocketMqError) -> Self {
        Self::RocketMq(error)
    }
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Frame(error) => error.fmt(f),
            Self::Json(error) => write!(f, "json header: {error}"),
            Self::RocketMq(error) => write!(f, "rocketmq header: {error}"),
            Self::TooManyExtFields { max } => write!(f, "more than {max} ext fields in a header"),
        }
    }
}

impl std::error::Error for DecodeError {}

impl<'a> RemotingCommand<'a> {
    /// Reads a frame without its length word, as [`super::frame::split`] cuts it.
    ///
    /// # Errors
    /// When the header is malformed or reaches beyond the frame.
    pub fn decode(frame: &'a [u8]) -> Result<Self, DecodeError> {
        let mut command = Self::default();
        command.read(frame, &mut HeaderModel::default())?;
        Ok(command)
    }

    /// The same in place, whatever `self` was: the ext fields lie in the command itself, some 600 bytes that nobody has to move.
    /// `model` is for the frames of one peer, one behind the other: each is read by one before it.
    ///
    /// # Errors
    /// As for [`Self::decode`]; what `self` holds is then of no meaning.
    pub fn read(
        &mut self,
        frame: &'a [u8],
        model: &mut HeaderModel<'a>,
    ) -> Result<(), DecodeError> {
        let Some((prefix, rest)) = frame.split_first_chunk::<PREFIX_LEN>() else {
            return Err(DecodeError::Frame(FrameError::TooShort {
                len: i32::try_from(frame.len()).unwrap_or(i32::MAX),
                min: PREFIX_LEN,
            }));
        };
        let (serialize_type, header_len) = read_prefix(*prefix, frame.len())?;
        // The body starts where the header is said to end, not where its parsing stopped (Q41).
        let (header, body) = rest.split_at(header_len);
        self.reset_header();
        (self.serialize_type, self.body) = (serialize_type, body);
        self.frame = frame;
        match serialize_type {
            SerializeType::Json if header_scan::scan(header, self, model) => {}
            SerializeType::Json => header_json::decode(header, self)?,
            SerializeType::RocketMq => header_rocketmq::decode(header, self)?,
        }
        Ok(())
    }
}

/// Refuses one ext field more when there are as many as one header may have.
pub(super) fn check_room(ext: &ExtFields<'_>) -> Result<(), DecodeError> {
    if ext.len() < EXT_FIELDS_MAX {
        Ok(())
    } else {
        Err(DecodeError::TooManyExtFields {
            max: EXT_FIELDS_MAX,
        })
    }
}
