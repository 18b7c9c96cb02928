//! A `TopicConfig` as brokers write it, read in one pass: registrations are little else, and reading their entries as leniently as
//! [`super::read_settings`] does is most of their cost.

use std::borrow::Cow;

use super::NamedSettings;
use crate::protocol::{body::QueueSettings, scan::Scan};

/// Reads an entry of the usual form at the start of `text`, and says how long it is.
pub(super) fn scan(text: &str) -> Option<(NamedSettings<'_>, usize)> {
    let mut scan = Scan::new(text);
    let mut read = NamedSettings {
        name: None,
        settings: QueueSettings::default(),
    };
    scan.expect(b'{')?;
    loop {
        member(&mut scan, &mut read)?;
        if !scan.goes_on()? {
            return Some((read, scan.len()));
        }
    }
}

/// Reads one member. One comparison each: a letter of its name decides which it can be.
fn member<'a>(scan: &mut Scan<'a>, read: &mut NamedSettings<'a>) -> Option<()> {
    let settings = &mut read.settings;
    match (scan.bytes().get(1)?, scan.bytes().get(6)?) {
        (b'p', _) => {
            scan.literal(b"\"perm\":")?;
            settings.perm = scan.number()?;
        }
        (b'r', _) => {
            scan.literal(b"\"readQueueNums\":")?;
            settings.read_queue_nums = scan.number()?;
        }
        (b'w', _) => {
            scan.literal(b"\"writeQueueNums\":")?;
            settings.write_queue_nums = scan.number()?;
        }
        (b't', b'N') => {
            scan.literal(b"\"topicName\":")?;
            read.name = Some(Cow::Borrowed(scan.string()?));
        }
        (b't', b'S') => {
            scan.literal(b"\"topicSysFlag\":")?;
            settings.topic_sys_flag = scan.number()?;
        }
        (b't', b'F') => {
            scan.literal(b"\"topicFilterType\":")?;
            scan.string()?;
        }
        (b'o', _) => {
            scan.literal(b"\"order\":")?;
            scan.literal(b"false").or_else(|| scan.literal(b"true"))?;
        }
        (b'a', _) => scan.literal(b"\"attributes\":{}")?,
        _ => return None,
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::protocol::{json::Reader, register_body::read_settings};

    const USUAL: &str = r#"{"attributes":{},"order":false,"perm":6,"readQueueNums":8,"topicFilterType":"SINGLE_TAG","topicName":"TopicTest","topicSysFlag":0,"writeQueueNums":16}"#;

    fn read(text: &str) -> Option<(NamedSettings<'_>, usize)> {
        let mut reader = Reader::from_text(text);
        let read = read_settings(&mut reader, "topicName", QueueSettings::default());
        Some((read.ok()??, reader.offset()))
    }

    #[test]
    fn the_entries_of_known_brokers_are_read() {
        let old = r#"{"order":true,"perm":2,"readQueueNums":1,"topicFilterType":"SINGLE_TAG","topicName":"t","topicSysFlag":3,"writeQueueNums":1}"#;
        for text in [USUAL, old] {
            assert_eq!(scan(text), read(text));
            assert!(scan(text).is_some());
        }
    }

    proptest! {
        #[test]
        fn where_it_speaks_it_says_what_the_lenient_reader_says(
            edits in prop::collection::vec((any::<prop::sample::Index>(), prop_oneof!["[0-9\"{},:a-z\\\\ -]", "[\u{0}-\u{20}é]"], 0..3_u8), 0..5),
        ) {
            let mut text: Vec<char> = USUAL.chars().collect();
            for (place, replacement, kind) in edits {
                let at = place.index(text.len());
                match kind {
                    0 => text[at] = replacement.chars().next().unwrap_or('x'),
                    1 => drop(text.remove(at)),
                    _ => text.insert(at, replacement.chars().next().unwrap_or('x')),
                }
            }
            let text: String = text.into_iter().collect();
            if let Some(scanned) = scan(&text) {
                prop_assert_eq!(Some(scanned), read(&text), "{}", text);
            }
        }
    }
}
