//! Reading what the server sends: answers, and requests of its own.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::frame::{Codec, language_name};

/// A reply longer than this is no remoting frame but some other protocol's bytes.
const LONGEST_REPLY: i64 = 256 * 1024 * 1024;

/// A frame the server sent: an answer, or a request of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// Header encoding.
    pub codec: Codec,
    /// Response (or request) code.
    pub code: i32,
    /// Language name.
    pub language: String,
    /// Version ordinal of the server.
    pub version: i32,
    /// Correlation id.
    pub opaque: i32,
    /// Flag bits.
    pub flag: i32,
    /// Remark.
    pub remark: Option<String>,
    /// Extension fields; an empty map and none at all look alike in a binary header.
    pub ext: Option<BTreeMap<String, String>>,
    /// The header as sent.
    pub header: Vec<u8>,
    /// The body as sent.
    pub body: Vec<u8>,
}

/// What the front of a byte stream holds.
#[derive(Debug, PartialEq, Eq)]
pub enum Parsed {
    /// A frame and the number of bytes it took.
    Frame(Box<Reply>, usize),
    /// The frame is not complete.
    Partial,
    /// No remoting frame.
    Foreign,
}

/// Reads one frame off the front of `bytes`.
#[must_use]
pub fn parse(bytes: &[u8]) -> Parsed {
    let Some(total) = word(bytes, 0) else {
        return Parsed::Partial;
    };
    if !(4..LONGEST_REPLY).contains(&i64::from(total)) {
        return Parsed::Foreign;
    }
    let end = 4 + usize::try_from(total).expect("checked to be positive");
    if bytes.len() < end {
        return Parsed::Partial;
    }
    match parse_complete(&bytes[4..end]) {
        Some(reply) => Parsed::Frame(Box::new(reply), end),
        None => Parsed::Foreign,
    }
}

fn parse_complete(bytes: &[u8]) -> Option<Reply> {
    let header_length = usize::try_from(word(bytes, 0)? & 0x00FF_FFFF).ok()?;
    let header = bytes.get(4..4 + header_length)?;
    let body = bytes[4 + header_length..].to_vec();
    match bytes[0] {
        0 => parse_json_header(header, body),
        1 => parse_binary_header(header, body),
        _ => None,
    }
}

fn parse_json_header(header: &[u8], body: Vec<u8>) -> Option<Reply> {
    let value: Value = serde_json::from_slice(header).ok()?;
    let int = |key: &str| {
        value
            .get(key)
            .and_then(Value::as_i64)
            .and_then(|number| i32::try_from(number).ok())
    };
    let ext = match value.get("extFields") {
        None => None,
        Some(Value::Object(members)) => Some(
            members
                .iter()
                .map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())))
                .collect::<Option<_>>()?,
        ),
        Some(_) => return None,
    };
    Some(Reply {
        codec: Codec::Json,
        code: int("code")?,
        language: value.get("language")?.as_str()?.to_owned(),
        version: int("version")?,
        opaque: int("opaque")?,
        flag: int("flag")?,
        remark: value
            .get("remark")
            .and_then(Value::as_str)
            .map(str::to_owned),
        ext,
        header: header.to_vec(),
        body,
    })
}

fn parse_binary_header(header: &[u8], body: Vec<u8>) -> Option<Reply> {
    let mut reader = Reader { bytes: header };
    let code = reader.short()?;
    let language = reader.take(1)?[0];
    let version = reader.short()?;
    let opaque = reader.int()?;
    let flag = reader.int()?;
    let remark_length = usize::try_from(reader.int()?).ok()?;
    let remark = reader.text(remark_length)?;
    let map_length = usize::try_from(reader.int()?).ok()?;
    let mut map = Reader {
        bytes: reader.take(map_length)?,
    };
    let mut ext = BTreeMap::new();
    while !map.bytes.is_empty() {
        let key_length = usize::try_from(map.short()?).ok()?;
        let key = map.text(key_length)?;
        let value_length = usize::try_from(map.int()?).ok()?;
        ext.insert(key, map.text(value_length)?);
    }
    if !reader.bytes.is_empty() {
        return None;
    }
    Some(Reply {
        codec: Codec::RocketMq,
        code: i32::from(code),
        language: language_name(language).to_owned(),
        version: i32::from(version),
        opaque,
        flag,
        remark: (!remark.is_empty()).then_some(remark),
        ext: (!ext.is_empty()).then_some(ext),
        header: header.to_vec(),
        body,
    })
}

struct Reader<'a> {
    bytes: &'a [u8],
}

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (front, rest) = self.bytes.split_at_checked(count)?;
        self.bytes = rest;
        Some(front)
    }

    fn short(&mut self) -> Option<i16> {
        Some(i16::from_be_bytes(self.take(2)?.try_into().ok()?))
    }

    fn int(&mut self) -> Option<i32> {
        Some(i32::from_be_bytes(self.take(4)?.try_into().ok()?))
    }

    fn text(&mut self, count: usize) -> Option<String> {
        String::from_utf8(self.take(count)?.to_vec()).ok()
    }
}

fn word(bytes: &[u8], offset: usize) -> Option<i32> {
    Some(i32::from_be_bytes(
        bytes.get(offset..offset + 4)?.try_into().ok()?,
    ))
}
