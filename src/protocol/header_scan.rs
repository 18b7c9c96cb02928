//! The JSON header as every known client writes it, read in one pass without looking back.
//!
//! Route queries are what a name server is asked most, and reading their headers as leniently as `header_json` does is
//! a quarter of the work of answering one. This reads only the usual form: compact, the usual members, numbers of up to nine
//! digits, texts without escapes or control characters. Of anything else it says nothing and the lenient reader has its turn,
//! so it never has to be complete; a property test holds that the two agree wherever this one speaks.
//!
//! The headers that a peer sends one behind the other differ in a value or two, so each is read by one before it: see
//! [`HeaderModel`].

use std::{borrow::Cow, ops::Range};

use smallvec::SmallVec;

use super::{
    command::{ExtFields, RemotingCommand},
    scan::{Alike, Scan},
};

/// More than brokers send; a header with more takes the other way, which bounds them.
const EXT_FIELDS_MAX: usize = 32;

/// A header of the usual form that was read in full and where its values lie, to read those that follow by. One that is not like
/// it takes its place.
///
/// Between the values both must be the same byte for byte, which costs a fraction of understanding them (`cargo bench --bench
/// codec`, `header`).
#[derive(Debug, Default)]
pub struct HeaderModel<'a> {
    header: &'a [u8],
    code: i32,
    version: i32,
    flag: i32,
    /// In their order.
    values: Values<'a>,
}

/// As many as brokers send, in place; at most [`EXT_FIELDS_MAX`] and the opaque.
type Values<'a> = SmallVec<[Value<'a>; 13]>;

/// A value of a [`HeaderModel`] that may be another in the next header.
#[derive(Debug)]
struct Value<'a> {
    /// Without quotes.
    place: Range<usize>,
    kind: Kind<'a>,
}

#[derive(Debug)]
enum Kind<'a> {
    Opaque(i32),
    /// An ext field of this name and value.
    Ext(&'a str, &'a str),
}

/// Reads a header into a `command` that is still all zero and empty; false, and it is so again, if the header is not of the
/// usual form. Unless it was read by the `model`, it then is the model.
pub(super) fn scan<'a>(
    header: &'a [u8],
    command: &mut RemotingCommand<'a>,
    model: &mut HeaderModel<'a>,
) -> bool {
    if model.read(header, command).is_some() {
        return true;
    }
    command.reset_header();
    let Ok(text) = std::str::from_utf8(header) else {
        return false;
    };
    model.values.clear();
    model.header = header;
    let mut scan = Scan::new(header);
    // Filled in place: the ext fields lie in the command itself, some 600 bytes that need not be moved.
    let done = object(&mut scan, text, command, &mut model.values).is_some() && scan.is_at_end();
    if done {
        (model.code, model.version) = (command.code, command.version);
        model.flag = command.flag;
    } else {
        *model = HeaderModel::default();
        command.reset_header();
    }
    done
}

impl<'a> HeaderModel<'a> {
    /// Reads a header that differs in nothing but values. `None` of any other; the command is then of no meaning.
    fn read(&self, header: &'a [u8], command: &mut RemotingCommand<'a>) -> Option<()> {
        if self.header.is_empty() {
            return None;
        }
        (command.code, command.version) = (self.code, self.version);
        command.flag = self.flag;
        let mut alike = Alike::new(self.header, header);
        for Value { place, kind } in &self.values {
            match *kind {
                Kind::Opaque(opaque) => {
                    command.opaque = alike.value(place, opaque, Scan::number)?;
                }
                Kind::Ext(name, value) => {
                    let value =
                        alike.value(place, value, |scan| str::from_utf8(scan.plain()).ok())?;
                    (command.ext).push(Cow::Borrowed(name), Cow::Borrowed(value));
                }
            }
        }
        (alike.end()? == header.len()).then_some(())
    }
}

/// Reads the bytes of `text` by `scan`.
fn object<'a>(
    scan: &mut Scan<'a>,
    text: &'a str,
    read: &mut RemotingCommand<'a>,
    values: &mut Values<'a>,
) -> Option<()> {
    let (mut has_ext, mut has_opaque) = (false, false);
    scan.expect(b'{')?;
    loop {
        // One comparison a member: the letter behind the quote decides which name it can be.
        match scan.bytes().get(1)? {
            b'c' => {
                scan.literal(b"\"code\":")?;
                read.code = scan.number()?;
            }
            b'v' => {
                scan.literal(b"\"version\":")?;
                read.version = scan.number()?;
            }
            // Once, so that a header has a bounded number of values.
            b'o' if !has_opaque => {
                has_opaque = true;
                scan.literal(b"\"opaque\":")?;
                let start = scan.len();
                read.opaque = scan.number()?;
                let place = start..scan.len();
                values.push(Value {
                    place,
                    kind: Kind::Opaque(read.opaque),
                });
            }
            b'f' => {
                scan.literal(b"\"flag\":")?;
                read.flag = scan.number()?;
            }
            b'l' => {
                scan.literal(b"\"language\":")?;
                scan.string()?;
            }
            b'r' => {
                scan.literal(b"\"remark\":")?;
                scan.string()?;
            }
            b's' => {
                scan.literal(b"\"serializeTypeCurrentRPC\":")?;
                scan.string()?;
            }
            // Of a repeated map the last counts as a whole; nobody repeats it.
            b'e' if !has_ext => {
                scan.literal(b"\"extFields\":")?;
                has_ext = true;
                ext_fields(scan, text, &mut read.ext, values)?;
            }
            _ => return None,
        }
        if !scan.goes_on()? {
            return Some(());
        }
    }
}

fn ext_fields<'a>(
    scan: &mut Scan<'a>,
    text: &'a str,
    ext: &mut ExtFields<'a>,
    values: &mut Values<'a>,
) -> Option<()> {
    scan.expect(b'{')?;
    if scan.bytes().first() == Some(&b'}') {
        scan.skip(1);
        return Some(());
    }
    for _ in 0..EXT_FIELDS_MAX {
        scan.expect(b'"')?;
        let name = scan.plain_of(text)?;
        scan.literal(b"\":\"")?;
        let start = scan.len();
        let value = scan.plain_of(text)?;
        values.push(Value {
            place: start..scan.len(),
            kind: Kind::Ext(name, value),
        });
        scan.expect(b'"')?;
        ext.push(Cow::Borrowed(name), Cow::Borrowed(value));
        if !scan.goes_on()? {
            return Some(());
        }
    }
    None
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
                scan(
                    header.as_bytes(),
                    &mut RemotingCommand::default(),
                    &mut HeaderModel::default()
                ),
                "{header}"
            );
        }
        let mut read = RemotingCommand::default();
        assert!(scan(
            USUAL.as_bytes(),
            &mut read,
            &mut HeaderModel::default()
        ));
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
            r#"{"code":1,"opaque":1,"opaque":2}"#,
            r#"{"code":1,"extFields":{"a":"\u0041"}}"#,
            r#"{"code":1 }"#,
            r#"{"code":1}}"#,
            r#"{"code":1"#,
            "{\"code\":1,\"remark\":\"\u{1}\"}",
            "{}",
            "",
        ] {
            let mut read = RemotingCommand::default();
            assert!(
                !scan(header.as_bytes(), &mut read, &mut HeaderModel::default()),
                "{header}"
            );
            assert_eq!(read, RemotingCommand::default(), "{header}");
        }
    }

    /// Headers that differ little, as a peer sends them one behind the other, and as one might who wants to be misread.
    fn edited() -> impl Strategy<Value = String> {
        let edit = (
            any::<prop::sample::Index>(),
            prop_oneof!["[0-9\"{},:a-z\\\\ -]", "[\u{0}-\u{20}é]"],
            0..3_u8,
        );
        prop::collection::vec(edit, 0..5).prop_map(|edits| {
            let mut header: Vec<char> = USUAL.chars().collect();
            for (place, text, kind) in edits {
                let at = place.index(header.len());
                let letter = text.chars().next().unwrap_or('x');
                match kind {
                    0 => header[at] = letter,
                    1 => drop(header.remove(at)),
                    _ => header.insert(at, letter),
                }
            }
            header.into_iter().collect()
        })
    }

    /// Texts of usual headers with other values than [`USUAL`]'s.
    fn usual() -> impl Strategy<Value = String> {
        ("[a-z%é]{0,20}", "[a-z]{0,2}", 0..1_000_000_000, any::<bool>()).prop_map(
            |(topic, e, opaque, opaque_again)| {
                let again = if opaque_again { ",\"opaque\":8" } else { "" };
                format!(r#"{{"code":105,"extFields":{{"topic":"{topic}","e":"{e}"}},"flag":0,"opaque":{opaque}{again},"version":479}}"#)
            },
        )
    }

    proptest! {
        #[test]
        fn where_it_speaks_it_says_what_the_lenient_reader_says(headers in prop::collection::vec(prop_oneof![edited(), usual()], 1..8)) {
            let mut model = HeaderModel::default();
            for header in &headers {
                let (mut scanned, mut read) = (RemotingCommand::default(), RemotingCommand::default());
                if scan(header.as_bytes(), &mut scanned, &mut model) {
                    let decoded = header_json::decode(header.as_bytes(), &mut read);
                    prop_assert_eq!(decoded, Ok(()), "{}", header);
                    prop_assert_eq!(scanned, read, "{}", header);
                } else {
                    prop_assert_eq!(scanned, RemotingCommand::default());
                }
            }
        }

        #[test]
        fn a_header_is_read_by_the_one_before_it_when_only_values_differ(topics in prop::collection::vec("[a-z]{0,20}", 2..4)) {
            let header = |topic: &str, opaque: usize| USUAL.replace("TopicTest", topic).replace(":7", &format!(":{opaque}"));
            let headers: Vec<_> = topics.iter().enumerate().map(|(opaque, topic)| header(topic, opaque)).collect();
            let others = [USUAL.replace("JAVA", "JAVB"), USUAL.replace('1', ""), USUAL.replace("479", "479 ")];
            let mut model = HeaderModel::default();
            prop_assert!(scan(headers[0].as_bytes(), &mut RemotingCommand::default(), &mut model));
            for (header, topic) in headers.iter().zip(&topics) {
                let mut read = RemotingCommand::default();
                prop_assert!(model.read(header.as_bytes(), &mut read).is_some(), "{}", header);
                prop_assert_eq!(read.ext.get("topic"), Some(topic.as_str()));
            }
            for other in &others {
                let read = model.read(other.as_bytes(), &mut RemotingCommand::default());
                prop_assert!(read.is_none(), "{}", other);
            }
        }
    }
}
