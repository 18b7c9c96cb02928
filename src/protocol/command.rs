//! `RemotingCommand`, the one kind of message: a request as it is read, a response as it is written.

use std::borrow::Cow;

use bytes::Bytes;
use smallvec::SmallVec;

use super::code::ResponseCode;

/// How a header is encoded; the fifth byte of a frame (spec 1.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SerializeType {
    /// A JSON object (spec 1.2).
    #[default]
    Json,
    /// The compact binary form (spec 1.3).
    RocketMq,
}

/// Flag bit of a response (spec 1.4).
pub const FLAG_RESPONSE: i32 = 1;
/// Flag bit of a request that must never be answered (spec 1.4).
pub const FLAG_ONEWAY: i32 = 2;

/// A decoded frame that borrows from the bytes it was read from.
///
/// What the original reads and then never looks at (language, remark, `serializeTypeCurrentRPC`) is checked and dropped.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RemotingCommand<'a> {
    /// Request code, or result code of a response.
    pub code: i32,
    /// The sender's version ordinal (spec 1.6); 0 when it sent none.
    pub version: i32,
    /// Correlation id chosen by the requester and echoed.
    pub opaque: i32,
    /// Bit set (spec 1.4).
    pub flag: i32,
    /// The header's custom fields.
    pub ext: ExtFields<'a>,
    /// The bytes after the header; empty when there are none.
    pub body: &'a [u8],
    /// How the header was encoded: the answer mirrors it (spec 1.7, Q1).
    pub serialize_type: SerializeType,
    /// All of it, as it was decoded: for whoever has it decoded elsewhere.
    pub frame: &'a [u8],
}

impl RemotingCommand<'_> {
    /// Makes it as [`Default`] does, but for the frame that it lies in.
    pub(super) fn reset_header(&mut self) {
        (self.code, self.version) = (0, 0);
        (self.opaque, self.flag) = (0, 0);
        self.ext.clear();
    }

    /// Whether this is an answer to a request of ours.
    #[must_use]
    pub fn is_response(&self) -> bool {
        self.flag & FLAG_RESPONSE != 0
    }

    /// Whether the sender wants no answer, not even an error.
    #[must_use]
    pub fn is_oneway(&self) -> bool {
        self.flag & FLAG_ONEWAY != 0
    }

    /// What an answer to this request needs to know of it.
    #[must_use]
    pub fn reply_head(&self) -> ReplyHead {
        ReplyHead {
            opaque: self.opaque,
            serialize_type: self.serialize_type,
        }
    }
}

/// `extFields`: name and text pairs in the order sent. Absent and empty maps look alike, as they do to every handler of the
/// original.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ExtFields<'a> {
    pairs: SmallVec<[Pair<'a>; 12]>,
}

/// A name and its value. Two thirds as large as the two texts by themselves would be, because a command is moved into its place
/// among those that are decoded together (`cargo bench --bench route`).
#[derive(Debug, Clone)]
enum Pair<'a> {
    /// As they were sent.
    Borrowed(&'a str, &'a str),
    /// Not so, because of escapes for instance. A null value is kept, because it hides an earlier one of the same name.
    Other(Box<(Cow<'a, str>, Option<Cow<'a, str>>)>),
}

const _: () = assert!(size_of::<Pair<'_>>() == 2 * size_of::<&str>());

impl Pair<'_> {
    fn name(&self) -> &str {
        match self {
            Self::Borrowed(name, _) => name,
            Self::Other(other) => &other.0,
        }
    }

    fn value(&self) -> Option<&str> {
        match self {
            Self::Borrowed(_, value) => Some(value),
            Self::Other(other) => other.1.as_deref(),
        }
    }
}

/// By their texts, whether or not they were sent so.
impl PartialEq for Pair<'_> {
    fn eq(&self, other: &Self) -> bool {
        (self.name(), self.value()) == (other.name(), other.value())
    }
}

impl<'a> ExtFields<'a> {
    /// Adds a pair; a later one of the same name wins.
    #[inline]
    pub fn push(&mut self, name: Cow<'a, str>, value: Cow<'a, str>) {
        self.pairs.push(match (name, value) {
            (Cow::Borrowed(name), Cow::Borrowed(value)) => Pair::Borrowed(name, value),
            (name, value) => Pair::Other(Box::new((name, Some(value)))),
        });
    }

    /// Adds a name whose value is null: from here on it counts as missing.
    pub fn push_null(&mut self, name: Cow<'a, str>) {
        self.pairs.push(Pair::Other(Box::new((name, None))));
    }

    /// Forgets every pair.
    pub fn clear(&mut self) {
        self.pairs.clear();
    }

    /// The text of `name`, the last one sent; `None` when it is missing or null.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        self.pairs
            .iter()
            .rev()
            .find(|pair| pair.name() == name)
            .and_then(Pair::value)
    }

    /// How many pairs were sent, nulls included.
    #[must_use]
    pub fn len(&self) -> usize {
        self.pairs.len()
    }

    /// Whether none was sent.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.pairs.is_empty()
    }
}

/// What an answer repeats of its request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ReplyHead {
    /// The request's correlation id.
    pub opaque: i32,
    /// The request's header codec.
    pub serialize_type: SerializeType,
}

/// An answer as a value. Names of ext fields are ours, so they are static.
#[derive(Debug, Clone, PartialEq)]
pub struct Response {
    /// Result code.
    pub code: ResponseCode,
    /// Error text.
    pub remark: Option<Cow<'static, str>>,
    /// `None`: the header has no `extFields` member; `Some` of nothing: it has an empty one (spec 1.2).
    pub ext: Option<ResponseExt>,
    /// Bytes after the header; empty for none.
    pub body: Bytes,
}

/// Ext fields of an answer.
pub type ResponseExt = SmallVec<[(&'static str, Cow<'static, str>); 2]>;

impl Response {
    /// An answer with a code and nothing else.
    #[must_use]
    pub const fn new(code: ResponseCode) -> Self {
        Self {
            code,
            remark: None,
            ext: None,
            body: Bytes::new(),
        }
    }

    /// Code 0 and nothing else.
    #[must_use]
    pub const fn success() -> Self {
        Self::new(ResponseCode::Success)
    }

    /// An error with its text.
    #[must_use]
    pub fn error(code: ResponseCode, remark: impl Into<Cow<'static, str>>) -> Self {
        Self {
            remark: Some(remark.into()),
            ..Self::new(code)
        }
    }

    /// The same with an (at first empty) `extFields` member.
    #[must_use]
    pub fn with_empty_ext(mut self) -> Self {
        self.ext.get_or_insert_default();
        self
    }

    /// The same with one more ext field.
    #[must_use]
    pub fn with_ext(mut self, name: &'static str, value: impl Into<Cow<'static, str>>) -> Self {
        self.ext.get_or_insert_default().push((name, value.into()));
        self
    }

    /// The same with a body.
    #[must_use]
    pub fn with_body(mut self, body: impl Into<Bytes>) -> Self {
        self.body = body.into();
        self
    }
}

#[cfg(test)]
mod tests {
    use super::{Pair, RemotingCommand};

    #[test]
    fn a_registration_header_is_read_without_an_allocation() {
        let fields: Vec<String> = (0..12)
            .map(|index| format!("\"field{index}\":\"value {index}\""))
            .collect();
        let header = format!(
            "{{\"code\":103,\"extFields\":{{{}}},\"opaque\":7}}",
            fields.join(",")
        );
        let mut frame = u32::try_from(header.len())
            .expect("a short header")
            .to_be_bytes()
            .to_vec();
        frame.extend_from_slice(header.as_bytes());
        let command = RemotingCommand::decode(&frame).expect("legal");
        assert_eq!(command.ext.len(), 12);
        assert!(!command.ext.pairs.spilled());
        for pair in &command.ext.pairs {
            assert!(matches!(pair, Pair::Borrowed(..)));
        }
    }
}
