//! The JSON header as every known client writes it, read in one pass without looking back.
//!
//! Route queries are what a name server is asked most, and reading their headers as leniently as [`super::header_json`] does is
//! a quarter of the work of answering one. This reads only the usual form: compact, the usual members, numbers of up to nine
//! digits, texts without escapes or control characters. Of anything else it says nothing and the lenient reader has its turn,
//! so it never has to be complete; a property test holds that the two agree wherever this one speaks.

use std::borrow::Cow;

use super::{
    command::{ExtFields, RemotingCommand},
    scan::Scan,
};

/// More than brokers send; a header with more takes the other way, which bounds them.
const EXT_FIELDS_MAX: usize = 32;

/// Reads a header into a `command` that is still all zero and empty; false, and it is so again, if the header is not of the
/// usual form.
pub(super) fn scan<'a>(header: &'a [u8], command: &mut RemotingCommand<'a>) -> bool {
    let Ok(text) = std::str::from_utf8(header) else {
        return false;
    };
    let mut scan = Scan::new(text);
    // Filled in place: the ext fields lie in the command itself, some 600 bytes that need not be moved.
    let done = object(&mut scan, command).is_some() && scan.is_at_end();
    if !done {
        (command.code, command.version) = (0, 0);
        (command.opaque, command.flag) = (0, 0);
        command.ext.clear();
    }
    done
}

fn object<'a>(scan: &mut Scan<'a>, read: &mut RemotingCommand<'a>) -> Option<()> {
    let mut has_ext = false;
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
            b'o' => {
                scan.literal(b"\"opaque\":")?;
                read.opaque = scan.number()?;
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
                ext_fields(scan, &mut read.ext)?;
            }
            _ => return None,
        }
        if !scan.goes_on()? {
            return Some(());
        }
    }
}

fn ext_fields<'a>(scan: &mut Scan<'a>, ext: &mut ExtFields<'a>) -> Option<()> {
    scan.expect(b'{')?;
    if scan.bytes().first() == Some(&b'}') {
        scan.skip();
        return Some(());
    }
    for _ in 0..EXT_FIELDS_MAX {
        let name = scan.string()?;
        scan.expect(b':')?;
        let value = scan.string()?;
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
