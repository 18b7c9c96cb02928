//! The JSON header as every known client writes it, read in one pass without looking back.
//!
//! Route queries are what a name server is asked most, and reading their headers as leniently as [`super::header_json`] does is
//! a quarter of the work of answering one. This reads only the usual form: compact, the usual members, numbers of up to nine
//! digits, texts without escapes or control characters. Of anything else it says nothing and the lenient reader has its turn,
//! so it never has to be complete; a property test holds that the two agree wherever this one speaks.

use std::borrow::Cow;

use super::{
    command::{ExtFields, RemotingCommand},
    words,
};

/// More than brokers send; a header with more takes the other way, which bounds them.
const EXT_FIELDS_MAX: usize = 32;

/// Reads a header into a `command` that is still all zero and empty; false, and it is so again, if the header is not of the
/// usual form.
pub(super) fn scan<'a>(header: &'a [u8], command: &mut RemotingCommand<'a>) -> bool {
    let Ok(text) = std::str::from_utf8(header) else {
        return false;
    };
    let mut scan = Scan { text, at: 0 };
    // Filled in place: the ext fields lie in the command itself, some 600 bytes that need not be moved.
    let done = scan.object(command).is_some() && scan.is_at_end();
    if !done {
        (command.code, command.version) = (0, 0);
        (command.opaque, command.flag) = (0, 0);
        command.ext.clear();
    }
    done
}

struct Scan<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Scan<'a> {
    fn object(&mut self, read: &mut RemotingCommand<'a>) -> Option<()> {
        let mut has_ext = false;
        self.expect(b'{')?;
        loop {
            // One comparison a member: the letter behind the quote decides which name it can be.
            match self.bytes().get(1)? {
                b'c' => {
                    self.literal(b"\"code\":")?;
                    read.code = self.number()?;
                }
                b'v' => {
                    self.literal(b"\"version\":")?;
                    read.version = self.number()?;
                }
                b'o' => {
                    self.literal(b"\"opaque\":")?;
                    read.opaque = self.number()?;
                }
                b'f' => {
                    self.literal(b"\"flag\":")?;
                    read.flag = self.number()?;
                }
                b'l' => {
                    self.literal(b"\"language\":")?;
                    self.string()?;
                }
                b'r' => {
                    self.literal(b"\"remark\":")?;
                    self.string()?;
                }
                b's' => {
                    self.literal(b"\"serializeTypeCurrentRPC\":")?;
                    self.string()?;
                }
                // Of a repeated map the last counts as a whole; nobody repeats it.
                b'e' if !has_ext => {
                    self.literal(b"\"extFields\":")?;
                    has_ext = true;
                    self.ext_fields(&mut read.ext)?;
                }
                _ => return None,
            }
            if !self.goes_on()? {
                return Some(());
            }
        }
    }

    fn ext_fields(&mut self, ext: &mut ExtFields<'a>) -> Option<()> {
        self.expect(b'{')?;
        if self.bytes().first() == Some(&b'}') {
            self.at += 1;
            return Some(());
        }
        for _ in 0..EXT_FIELDS_MAX {
            let name = self.string()?;
            self.expect(b':')?;
            let value = self.string()?;
            ext.push(Cow::Borrowed(name), Cow::Borrowed(value));
            if !self.goes_on()? {
                return Some(());
            }
        }
        None
    }

    /// What is still to be read.
    fn bytes(&self) -> &'a [u8] {
        &self.text.as_bytes()[self.at..]
    }

    fn expect(&mut self, byte: u8) -> Option<()> {
        (*self.bytes().first()? == byte).then(|| self.at += 1)
    }

    /// Of constant length, so that comparing is a few machine words.
    fn literal<const LEN: usize>(&mut self, literal: &[u8; LEN]) -> Option<()> {
        (self.bytes().first_chunk::<LEN>()? == literal).then(|| self.at += LEN)
    }

    /// Whether another member follows; the comma or the bracket is read.
    fn goes_on(&mut self) -> Option<bool> {
        let byte = *self.bytes().first()?;
        self.at += 1;
        match byte {
            b',' => Some(true),
            b'}' => Some(false),
            _ => None,
        }
    }

    #[inline]
    fn string(&mut self) -> Option<&'a str> {
        self.expect(b'"')?;
        let len = plain_len(self.bytes());
        let string = self.text.get(self.at..self.at + len)?;
        self.at += len;
        self.expect(b'"')?;
        Some(string)
    }

    /// A decimal number that cannot leave 32 bits, as Java writes it: no blanks, no plus, no leading zero.
    #[inline]
    fn number(&mut self) -> Option<i32> {
        let negative = *self.bytes().first()? == b'-';
        self.at += usize::from(negative);
        let digits = self.bytes();
        let (mut value, mut len) = (0_i32, 0);
        while let Some(digit) = digits.get(len).filter(|byte| byte.is_ascii_digit()) {
            if len == 9 {
                return None;
            }
            value = value * 10 + i32::from(digit - b'0');
            len += 1;
        }
        if len == 0 || (digits[0] == b'0' && (len > 1 || negative)) {
            return None;
        }
        self.at += len;
        Some(if negative { -value } else { value })
    }

    /// The C++ client ends its header with a line feed.
    fn is_at_end(&self) -> bool {
        matches!(self.bytes(), [] | [b'\n'])
    }
}

/// How many bytes come before the first quote, backslash or control character; eight at a time, since the texts of a header
/// are most of it.
#[inline]
fn plain_len(bytes: &[u8]) -> usize {
    let (whole, rest) = bytes.as_chunks::<8>();
    for (index, word) in whole.iter().enumerate() {
        let word = u64::from_le_bytes(*word);
        let found = words::zero_bytes(word ^ words::all(b'"'))
            | words::zero_bytes(word ^ words::all(b'\\'))
            | words::bytes_below(word, b' ');
        if found != 0 {
            return index * 8 + words::first(found);
        }
    }
    let ends = |byte: &u8| matches!(byte, b'"' | b'\\' | 0..=0x1F);
    let tail = rest.iter().position(ends).unwrap_or(rest.len());
    bytes.len() - rest.len() + tail
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::protocol::header_json;

    const USUAL: &str = r#"{"code":105,"extFields":{"topic":"TopicTest","e":""},"flag":0,"language":"JAVA","opaque":7,"remark":"","serializeTypeCurrentRPC":"JSON","version":479}"#;

    #[test]
    fn the_headers_of_known_clients_are_read() {
        let go = r#"{"code":105,"language":"GO","version":317,"opaque":1,"flag":0,"remark":"","extFields":{"topic":"t"}}"#;
        let cpp = "{\"code\":105,\"extFields\":{\"AccessKey\":\"\",\"topic\":\"t\"},\"flag\":0,\"language\":\"CPP\",\"opaque\":1,\"version\":333}\n";
        for header in [USUAL, go, cpp, r#"{"code":-1}"#, r#"{"extFields":{}}"#] {
            assert!(
                scan(header.as_bytes(), &mut RemotingCommand::default()),
                "{header}"
            );
        }
        let mut read = RemotingCommand::default();
        assert!(scan(USUAL.as_bytes(), &mut read));
        assert_eq!((read.code, read.opaque, read.version), (105, 7, 479));
        assert_eq!(read.ext.get("topic"), Some("TopicTest"));
    }

    #[test]
    fn what_is_unusual_is_left_to_the_other_reader_and_leaves_no_trace() {
        for header in [
            r#"{"code":105,"opaque":1,"extFields":{"topic":"t","n":1}}"#,
            r#"{"code":105,"opaque":2147483647}"#,
            r#"{"code":0105}"#,
            r#"{"code":-0}"#,
            r#"{"code":1,"x":1}"#,
            r#"{"code":1,"extFields":{"a":"b"},"extFields":{}}"#,
            r#"{"code":1,"extFields":{"a":"\u0041"}}"#,
            r#"{"code":1 }"#,
            r#"{"code":1}}"#,
            r#"{"code":1"#,
            "{\"code\":1,\"remark\":\"\u{1}\"}",
            "{}",
            "",
        ] {
            let mut read = RemotingCommand::default();
            assert!(!scan(header.as_bytes(), &mut read), "{header}");
            assert_eq!(read, RemotingCommand::default(), "{header}");
        }
    }

    proptest! {
        #[test]
        fn a_text_ends_at_its_first_special_byte(bytes in prop::collection::vec(prop_oneof![any::<u8>(), Just(b'"'), Just(b'\\'), Just(0x1f), Just(b' '), Just(0x80)], 0..40)) {
            let special = |byte: &u8| *byte < b' ' || *byte == b'"' || *byte == b'\\';
            prop_assert_eq!(plain_len(&bytes), bytes.iter().position(special).unwrap_or(bytes.len()));
        }

        #[test]
        fn where_it_speaks_it_says_what_the_lenient_reader_says(
            edits in prop::collection::vec((any::<prop::sample::Index>(), prop_oneof!["[0-9\"{},:a-z\\\\ -]", "[\u{0}-\u{20}é]"], 0..3_u8), 0..5),
        ) {
            let mut header: Vec<char> = USUAL.chars().collect();
            for (place, text, kind) in edits {
                let at = place.index(header.len());
                match kind {
                    0 => header[at] = text.chars().next().unwrap_or('x'),
                    1 => drop(header.remove(at)),
                    _ => header.insert(at, text.chars().next().unwrap_or('x')),
                }
            }
            let header: String = header.into_iter().collect();
            let (mut scanned, mut read) = (RemotingCommand::default(), RemotingCommand::default());
            if scan(header.as_bytes(), &mut scanned) {
                let decoded = header_json::decode(header.as_bytes(), &mut read);
                prop_assert_eq!(decoded, Ok(()), "{}", header);
                prop_assert_eq!(scanned, read, "{}", header);
            } else {
                prop_assert_eq!(scanned, RemotingCommand::default());
            }
        }
    }
}
