//! A `TopicConfig` as brokers write it, read in one pass: registrations are little else, and reading their entries as leniently as
//! [`super::read_settings`] does is most of their cost.

use std::ops::Range;

use smallvec::SmallVec;

use crate::protocol::{
    body::{QueueSettings, TopicConfig},
    name::TopicName,
    scan::{Alike, Scan},
};

/// What a member has at most, if it names nothing twice.
const VALUES: usize = 6;

/// After so many members in a row with the same numbers, other than the model's, the next becomes the model.
const OTHERS_MAX: usize = 3;

/// A member of a topic table, `"topic":{...}`, that was read in full, by which those that follow are read: brokers write them all
/// alike (`cargo bench --bench codec`, `register_body`). One that is not like it takes its place.
#[derive(Debug, Default)]
pub(super) struct Members<'a> {
    model: &'a str,
    read: Read<'a>,
    /// In their order, none of them twice.
    values: SmallVec<[Value; VALUES]>,
    /// Where among them the topic's name is.
    name_at: Option<usize>,
    /// The numbers of the last members, if they are not the model's, and how many had them.
    others: (QueueSettings, usize),
}

/// A value of the model that may be another in the next member.
#[derive(Debug)]
struct Value {
    /// Without quotes.
    place: Range<usize>,
    kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// What the topic is called in the table, which does not count (spec 2.2).
    Key,
    Name,
    Perm,
    ReadQueueNums,
    WriteQueueNums,
    TopicSysFlag,
}

/// What a member says.
#[derive(Debug, Clone, Copy, Default)]
struct Read<'a> {
    name: Option<&'a str>,
    settings: QueueSettings,
}

impl<'a> Read<'a> {
    /// Where a number belongs; the other kinds are none.
    fn number(&mut self, kind: Kind) -> Option<&mut i32> {
        let settings = &mut self.settings;
        match kind {
            Kind::Perm => Some(&mut settings.perm),
            Kind::ReadQueueNums => Some(&mut settings.read_queue_nums),
            Kind::WriteQueueNums => Some(&mut settings.write_queue_nums),
            Kind::TopicSysFlag => Some(&mut settings.topic_sys_flag),
            Kind::Key | Kind::Name => None,
        }
    }

    fn topic(self) -> Option<TopicConfig> {
        let name = TopicName::from(self.name?);
        let settings = self.settings;
        Some(TopicConfig { name, settings })
    }
}

impl<'a> Members<'a> {
    /// Reads a member of the usual form at the start of `text`, or behind a comma there; says how long it is. Without a topic's
    /// name it is none, and left to the other reader as well.
    pub(super) fn scan(&mut self, text: &'a str) -> Option<(TopicConfig, usize)> {
        let member = text.strip_prefix(',').unwrap_or(text);
        let comma_len = text.len() - member.len();
        let (read, len) = match self.read_by_model(member) {
            Some(read) => read,
            None => self.read_model(member)?,
        };
        Some((read.topic()?, comma_len + len))
    }

    /// Reads a member that is the model but for its values. Neighbours mostly have the same numbers, whatever the first one had.
    fn read_by_model(&mut self, text: &'a str) -> Option<(Read<'a>, usize)> {
        let (others, count) = self.others;
        if count == 0
            && let Some(read) = self.read_same(text)
        {
            return Some(read);
        }
        if count == OTHERS_MAX {
            return None;
        }
        let (read, len) = self.read_alike(text)?;
        self.others = if read.settings == self.read.settings {
            (others, 0)
        } else if read.settings == others {
            (others, count + 1)
        } else {
            (read.settings, 1)
        };
        Some((read, len))
    }

    /// Reads a member with the model's numbers: what it has between the two texts, and behind them, is compared as a whole.
    fn read_same(&self, text: &'a str) -> Option<(Read<'a>, usize)> {
        let key = &self.values.first()?.place;
        let name = &self.values[self.name_at?].place;
        let (model, mut scan) = (self.model.as_bytes(), Scan::new(text.as_bytes()));
        scan.expect(b'"')?;
        let topic = scan.plain();
        scan.same(&model[key.end..name.start])?;
        let start = scan.len();
        // The two are the same; comparing them is quicker than looking for the name's end (552 instructions a topic instead of 616).
        // Where the name is longer, something else than the quote follows.
        scan.same(topic)?;
        let name_text = text.get(start..scan.len())?;
        scan.same(&model[name.end..])?;
        let read = Read {
            name: Some(name_text),
            ..self.read
        };
        Some((read, scan.len()))
    }

    /// Reads a member that differs from the model in any of its values.
    fn read_alike(&self, text: &'a str) -> Option<(Read<'a>, usize)> {
        if self.model.is_empty() {
            return None;
        }
        let mut read = self.read;
        let mut alike = Alike::new(self.model.as_bytes(), text.as_bytes());
        let mut values = self.values.iter();
        while let Some(at) = alike.difference() {
            let Value { place, kind } = values.find(|value| at <= value.place.end)?;
            match kind {
                Kind::Key => _ = alike.read(place, |scan| Some(scan.plain()))?,
                Kind::Name => read.name = Some(alike.read(place, |scan| scan.plain_of(text))?),
                Kind::Perm | Kind::ReadQueueNums | Kind::WriteQueueNums | Kind::TopicSysFlag => {
                    *read.number(*kind)? = alike.read(place, Scan::number)?;
                }
            }
        }
        Some((read, alike.end()?))
    }

    /// Reads a member that becomes the model.
    fn read_model(&mut self, text: &'a str) -> Option<(Read<'a>, usize)> {
        self.model = "";
        self.values.clear();
        self.name_at = None;
        self.others = (QueueSettings::default(), 0);
        let (mut read, mut scan) = (Read::default(), Scan::new(text.as_bytes()));
        let key = scan.string()?;
        self.values.push(Value {
            place: 1..1 + key.len(),
            kind: Kind::Key,
        });
        scan.literal(b":{")?;
        loop {
            if let Some(value) = member(&mut scan, text, &mut read)? {
                // Of a number that is there twice the last counts, whichever of the two differs: the other reader knows.
                if self.values.iter().any(|known| known.kind == value.kind) {
                    return None;
                }
                self.values.push(value);
            }
            if !scan.goes_on()? {
                break;
            }
        }
        self.model = &text[..scan.len()];
        self.read = read;
        self.name_at = self
            .values
            .iter()
            .position(|value| value.kind == Kind::Name);
        Some((read, scan.len()))
    }
}

/// Reads one member of an entry, and says where its value lies if it counts. One comparison each: a letter of its name decides
/// which it can be.
fn member<'a>(scan: &mut Scan<'a>, text: &'a str, read: &mut Read<'a>) -> Option<Option<Value>> {
    let kind = match (scan.bytes().get(1)?, scan.bytes().get(6)?) {
        (b'p', _) => {
            scan.literal(b"\"perm\":")?;
            Kind::Perm
        }
        (b'r', _) => {
            scan.literal(b"\"readQueueNums\":")?;
            Kind::ReadQueueNums
        }
        (b'w', _) => {
            scan.literal(b"\"writeQueueNums\":")?;
            Kind::WriteQueueNums
        }
        (b't', b'S') => {
            scan.literal(b"\"topicSysFlag\":")?;
            Kind::TopicSysFlag
        }
        (b't', b'N') => {
            scan.literal(b"\"topicName\":\"")?;
            let start = scan.len();
            read.name = Some(scan.plain_of(text)?);
            let place = start..scan.len();
            scan.expect(b'"')?;
            let kind = Kind::Name;
            return Some(Some(Value { place, kind }));
        }
        (b't', b'F') => {
            scan.literal(b"\"topicFilterType\":")?;
            scan.string()?;
            return Some(None);
        }
        (b'o', _) => {
            scan.literal(b"\"order\":")?;
            scan.literal(b"false").or_else(|| scan.literal(b"true"))?;
            return Some(None);
        }
        (b'a', _) => {
            scan.literal(b"\"attributes\":")?;
            attributes(scan)?;
            return Some(None);
        }
        _ => return None,
    };
    let start = scan.len();
    *read.number(kind)? = scan.number()?;
    let place = start..scan.len();
    Some(Some(Value { place, kind }))
}

/// Steps over a map of texts.
fn attributes(scan: &mut Scan<'_>) -> Option<()> {
    scan.expect(b'{')?;
    if scan.bytes().first() == Some(&b'}') {
        scan.skip(1);
        return Some(());
    }
    loop {
        scan.string()?;
        scan.expect(b':')?;
        scan.string()?;
        if !scan.goes_on()? {
            return Some(());
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::protocol::{
        json::Reader,
        register_body::{read_settings, read_topic_table},
    };

    const USUAL: &str = r#""TopicTest":{"attributes":{},"order":false,"perm":6,"readQueueNums":8,"topicFilterType":"SINGLE_TAG","topicName":"TopicTest","topicSysFlag":0,"writeQueueNums":16}"#;
    const TYPED: &str = r#""t":{"attributes":{"+message.type":"NORMAL","a":""},"order":false,"perm":6,"readQueueNums":8,"topicFilterType":"SINGLE_TAG","topicName":"t","topicSysFlag":0,"writeQueueNums":8}"#;
    const OLD: &str = r#""t":{"order":true,"perm":2,"readQueueNums":1,"topicFilterType":"SINGLE_TAG","topicName":"t","topicSysFlag":3,"writeQueueNums":1}"#;

    /// The same by the lenient reader.
    fn read(text: &str) -> Option<(TopicConfig, usize)> {
        let mut reader = Reader::from_text(text);
        reader.next_key().ok()??;
        let read = read_settings(&mut reader, "topicName", QueueSettings::default());
        let read = read.ok()??;
        let (name, settings) = (TopicName::from(&*read.name?), read.settings);
        Some((TopicConfig { name, settings }, reader.offset()))
    }

    #[test]
    fn the_entries_of_known_brokers_are_read() {
        let second = USUAL
            .replace("TopicTest", "Another")
            .replace("\"perm\":6", "\"perm\":4");
        let behind_a_comma = format!(",{second},");
        let mut members = Members::default();
        for text in [OLD, TYPED, USUAL] {
            assert_eq!(members.scan(text), read(text));
            assert!(read(text).is_some());
        }
        assert!(members.read_by_model(&second).is_some());
        let (topic, len) = members.scan(&behind_a_comma).expect("like the one before");
        assert_eq!((topic.name.as_str(), topic.settings.perm), ("Another", 4));
        assert_eq!(len, second.len() + 1);
    }

    /// What the first one says may be what no other does: `tools/compare`, case 6, has such tables.
    #[test]
    fn what_neighbours_have_in_common_becomes_the_model_and_what_changes_all_the_time_does_not() {
        let with_perm = |perm: i32| USUAL.replace("\"perm\":6", &format!("\"perm\":{perm}"));
        let texts = [2, 4, 6].map(with_perm);
        let [first, second, third] = &texts;
        let mut members = Members::default();
        members.scan(first).expect("a member");
        for _ in 0..2 * OTHERS_MAX {
            members.scan(second).expect("a member");
            members.scan(third).expect("a member");
        }
        assert_eq!(members.read.settings.perm, 2);
        for _ in 0..OTHERS_MAX {
            members.scan(second).expect("a member");
            assert_eq!(members.read.settings.perm, 2);
        }
        members.scan(second).expect("a member");
        assert_eq!(members.read.settings.perm, 4);
        assert!(members.read_same(second).is_some());
    }

    /// Entries that differ little, as a broker writes them, and as one might who wants to be misread.
    fn edited() -> impl Strategy<Value = String> {
        let edit = (
            any::<prop::sample::Index>(),
            prop_oneof!["[0-9\"{},:a-z\\\\ -]", "[\u{0}-\u{20}é]"],
            0..3_u8,
        );
        (prop::collection::vec(edit, 0..5), any::<bool>()).prop_map(|(edits, typed)| {
            let mut text: Vec<char> = if typed { TYPED } else { USUAL }.chars().collect();
            for (place, replacement, kind) in edits {
                let at = place.index(text.len());
                let letter = replacement.chars().next().unwrap_or('x');
                match kind {
                    0 => text[at] = letter,
                    1 => drop(text.remove(at)),
                    _ => text.insert(at, letter),
                }
            }
            text.into_iter().collect()
        })
    }

    /// Usual ones with other values, of which some are those of the one before.
    fn usual() -> impl Strategy<Value = String> {
        let perm = prop_oneof![Just(6), 0..1000];
        let read = prop_oneof![Just(8), -5..1_000_000_000];
        let key = prop_oneof![Just(None), "[a-z]{0,3}".prop_map(Some)];
        ("[a-z%é]{0,20}", key, perm, read, prop::bool::weighted(0.2)).prop_map(|(topic, key, perm, read, again)| {
            let again = if again { ",\"perm\":7" } else { "" };
            let key = key.unwrap_or_else(|| topic.clone());
            format!(r#""{key}":{{"perm":{perm},"readQueueNums":{read}{again},"topicName":"{topic}"}}"#)
        })
    }

    proptest! {
        #[test]
        fn where_it_speaks_it_says_what_the_lenient_reader_says(texts in prop::collection::vec(prop_oneof![edited(), usual()], 1..8)) {
            let mut members = Members::default();
            for text in &texts {
                if let Some(scanned) = members.scan(text) {
                    prop_assert_eq!(Some(scanned), read(text), "{}", text);
                }
            }
        }

        /// Blanks before the members send them all to the lenient reader.
        #[test]
        fn a_table_is_read_as_the_lenient_reader_reads_it(
            members in prop::collection::vec((prop_oneof![4 => usual(), 2 => edited(), 1 => "\"k\":(null|\\{\\}|\\{\"perm\":1\\})"], "(,|,|,|,|,,||/\\*c\\*/,)"), 0..10),
        ) {
            let table = |blank: &str| {
                let members = members.iter().map(|(member, separator)| format!("{blank}{member}{separator}"));
                format!("{{{}}}", members.collect::<String>())
            };
            let read = |text: &str| {
                let mut reader = Reader::from_text(text);
                let topics = read_topic_table(&mut reader).ok()?;
                reader.end().ok().map(|()| topics)
            };
            prop_assert_eq!(read(&table("")), read(&table(" ")));
        }
    }
}
