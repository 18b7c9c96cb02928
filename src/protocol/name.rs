//! Topic names, by far the most numerous strings of a name server.

use std::fmt;

use smallvec::SmallVec;

/// A topic's name: an opaque string, validated by nobody (spec 13). Up to 40 bytes lie inline, so comparing one on the read
/// path needs no further pointer.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TopicName(SmallVec<[u8; 40]>);

impl TopicName {
    /// The name's UTF-8 bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).expect("a topic name is built from text only")
    }
}

impl From<&str> for TopicName {
    fn from(text: &str) -> Self {
        Self(SmallVec::from_slice(text.as_bytes()))
    }
}

impl fmt::Debug for TopicName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

impl fmt::Display for TopicName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
