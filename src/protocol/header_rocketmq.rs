//! The ROCKETMQ header codec's reading half (spec 1.3). The writing half is in [`super::encode`].
//!
//! ```text
//! code i16 │ language u8 │ version i16 │ opaque i32 │ flag i32 │ remarkLen i32, remark │ extLen i32, ext
//! ext: { keyLen i16, key │ valueLen i32, value }*
//! ```

use std::fmt;

use super::{
    command::RemotingCommand,
    header::{DecodeError, check_room},
};

/// Why a ROCKETMQ header is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RocketMqError {
    /// It ends inside something.
    Truncated {
        /// What is cut.
        field: &'static str,
        /// Bytes that it needs.
        needed: usize,
        /// Bytes that are there.
        left: usize,
    },
    /// A length below 0.
    NegativeLength {
        /// What it is the length of.
        field: &'static str,
        /// The length as sent.
        len: i32,
    },
}

impl fmt::Display for RocketMqError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Truncated {
                field,
                needed,
                left,
            } => {
                write!(f, "{field} needs {needed} bytes, {left} are left")
            }
            Self::NegativeLength { field, len } => {
                write!(f, "{field} has length {len}, 0 or more is allowed")
            }
        }
    }
}

impl std::error::Error for RocketMqError {}

/// Reads a header. Bytes behind the ext map are ignored.
pub(super) fn decode<'a>(
    header: &'a [u8],
    command: &mut RemotingCommand<'a>,
) -> Result<(), DecodeError> {
    let mut input = Input(header);
    command.code = i32::from(input.int16("code")?);
    // Any language passes (spec 1.3).
    input.bytes(1, "language")?;
    command.version = i32::from(input.int16("version")?);
    command.opaque = input.int32("opaque")?;
    command.flag = input.int32("flag")?;
    let remark_len = input.int32("remark length")?;
    input.bytes(length(remark_len, "remark")?, "remark")?;
    // A negative length counts as no map (spec 1.3).
    let ext_len = usize::try_from(input.int32("ext map length")?).unwrap_or(0);
    let mut entries = Input(input.bytes(ext_len, "ext map")?);
    while !entries.0.is_empty() {
        let key_len = i32::from(entries.int16("key length")?);
        let key = entries.bytes(length(key_len, "key")?, "key")?;
        let value_len = entries.int32("value length")?;
        let value = entries.bytes(length(value_len, "value")?, "value")?;
        // Zero bytes stand for null: such a key is ignored, such a value hides an earlier one.
        if key.is_empty() {
            continue;
        }
        check_room(&command.ext)?;
        let name = String::from_utf8_lossy(key);
        if value.is_empty() {
            command.ext.push_null(name);
        } else {
            command.ext.push(name, String::from_utf8_lossy(value));
        }
    }
    Ok(())
}

fn length(len: i32, field: &'static str) -> Result<usize, RocketMqError> {
    usize::try_from(len).map_err(|_| RocketMqError::NegativeLength { field, len })
}

/// What is left to read.
struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    fn bytes(&mut self, len: usize, field: &'static str) -> Result<&'a [u8], RocketMqError> {
        let Some((bytes, rest)) = self.0.split_at_checked(len) else {
            return Err(RocketMqError::Truncated {
                field,
                needed: len,
                left: self.0.len(),
            });
        };
        self.0 = rest;
        Ok(bytes)
    }

    fn array<const N: usize>(&mut self, field: &'static str) -> Result<[u8; N], RocketMqError> {
        let bytes = self.bytes(N, field)?;
        Ok(*bytes
            .first_chunk()
            .expect("as many bytes as were asked for"))
    }

    fn int16(&mut self, field: &'static str) -> Result<i16, RocketMqError> {
        self.array(field).map(i16::from_be_bytes)
    }

    fn int32(&mut self, field: &'static str) -> Result<i32, RocketMqError> {
        self.array(field).map(i32::from_be_bytes)
    }
}
