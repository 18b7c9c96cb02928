//! Reads what a broker registers: the JSON and the compressed form of `RegisterBrokerBody` (spec 2.3), and the form in which
//! `REGISTER_TOPIC_IN_NAMESRV` sends the queues of one topic (spec 2.13).

mod compressed;
mod inflate;
mod topic_scan;

use std::{borrow::Cow, hash::BuildHasher};

use foldhash::fast::RandomState;
use topic_scan::Members;

use super::{
    body::{
        BodyError, DataVersion, QueueSettings, RegisterBrokerBody, TopicConfig,
        TopicQueueMappingInfo,
    },
    code::version,
    json::Reader,
    name::TopicName,
};
use crate::limits::{
    FILTER_SERVERS_MAX, MAPPINGS_MAX, QUEUE_DATAS_MAX, TOPICS_OF_REGISTRATION_MAX,
};

/// The checksum of a registration keeps the lower 31 bits of CRC-32 (spec 2.3).
const CRC_MASK: u32 = 0x7fff_ffff;

/// Whether a body has the checksum its header announces. 0 asks for no check; no body has checksum 0.
#[must_use]
pub fn crc_matches(body: &[u8], expected: i32) -> bool {
    expected == 0
        || u32::try_from(expected)
            .is_ok_and(|expected| crc32fast::hash(body) & CRC_MASK == expected)
}

/// Reads the body of a registration; `None` for JSON `null`, where Java fails on a null pointer.
///
/// `compressed` and `version` are those of the header. Below version 37 the body is the bare wrapper object, and never
/// compressed. A body that is labelled uncompressed but starts like a zlib stream is inflated all the same (Q17).
///
/// # Errors
/// When the body is neither form, damaged, or inflates to more than [`crate::limits::INFLATED_LEN_MAX`].
pub fn decode_register_body(
    body: &[u8],
    compressed: bool,
    version: i32,
) -> Result<Option<RegisterBrokerBody>, BodyError> {
    let has_envelope = version >= version::REGISTER_BODY;
    let mut decoded = RegisterBrokerBody::default();
    if has_envelope {
        // Java's field starts as an empty list; the old form has no such field.
        decoded.filter_servers = Some(Vec::new());
    }
    if body.is_empty() {
        return Ok(Some(decoded));
    }
    if has_envelope && is_compressed(body, compressed) {
        compressed::decode(&inflate::inflate(body)?, version, &mut decoded)?;
    } else {
        let mut reader = Reader::new(body)?;
        if reader.is_at_end()? {
            return Ok(None);
        }
        let is_object = if has_envelope {
            read_envelope(&mut reader, &mut decoded)?
        } else {
            read_wrapper(&mut reader, &mut decoded)?
        };
        reader.end()?;
        if !is_object {
            return Ok(None);
        }
    }
    decoded.topics = last_of_each(decoded.topics, |topic| topic.name.as_bytes());
    decoded.mappings = last_of_each(decoded.mappings, |mapping| mapping.topic_key.as_bytes());
    Ok(Some(decoded))
}

/// Reads a `TopicRouteData`, of which only `queueDatas` counts: broker names with their queues. Numbers that are missing are 0
/// there; an entry without a broker has an empty name, which no broker bears.
///
/// # Errors
/// When the body is not JSON.
pub fn decode_queue_datas(body: &[u8]) -> Result<Vec<(String, QueueSettings)>, BodyError> {
    let mut queues = Vec::new();
    let mut reader = Reader::new(body)?;
    if reader.is_at_end()? {
        return Ok(queues);
    }
    if reader.begin_object_or_null()? {
        while let Some(key) = reader.next_key()? {
            match key.as_ref() {
                "queueDatas" => queues = read_queue_datas(&mut reader)?,
                _ => reader.skip_value()?,
            }
        }
    }
    reader.end()?;
    Ok(queues)
}

fn read_queue_datas(reader: &mut Reader<'_>) -> Result<Vec<(String, QueueSettings)>, BodyError> {
    let mut queues = Vec::new();
    if !reader.begin_list_or_null()? {
        return Ok(queues);
    }
    while reader.next_item()? {
        check_room(queues.len(), "queue datas", QUEUE_DATAS_MAX)?;
        let absent = QueueSettings {
            read_queue_nums: 0,
            write_queue_nums: 0,
            perm: 0,
            topic_sys_flag: 0,
        };
        if let Some(queue) = read_settings(reader, "brokerName", absent)? {
            queues.push((queue.name.unwrap_or_default().into_owned(), queue.settings));
        }
    }
    Ok(queues)
}

/// Reads `RegisterBrokerBody`; false for `null`.
fn read_envelope(
    reader: &mut Reader<'_>,
    body: &mut RegisterBrokerBody,
) -> Result<bool, BodyError> {
    if !reader.begin_object_or_null()? {
        return Ok(false);
    }
    while let Some(key) = reader.next_key()? {
        match key.as_ref() {
            "filterServerList" => body.filter_servers = read_filter_servers(reader)?,
            "topicConfigSerializeWrapper" => {
                read_wrapper(reader, body)?;
            }
            _ => reader.skip_value()?,
        }
    }
    Ok(true)
}

/// Reads `TopicConfigSerializeWrapper`, repeated topics included; false for `null`.
fn read_wrapper(reader: &mut Reader<'_>, body: &mut RegisterBrokerBody) -> Result<bool, BodyError> {
    body.data_version = DataVersion::default();
    body.topics.clear();
    body.mappings.clear();
    if !reader.begin_object_or_null()? {
        return Ok(false);
    }
    while let Some(key) = reader.next_key()? {
        match key.as_ref() {
            "dataVersion" => {
                body.data_version = DataVersion::read(reader)?.unwrap_or_default().version
            }
            "topicConfigTable" => body.topics = read_topic_table(reader)?,
            "topicQueueMappingInfoMap" => body.mappings = read_mappings(reader)?,
            _ => reader.skip_value()?,
        }
    }
    Ok(true)
}

/// Reads the topic table. An entry without a `topicName` is left out: Java fails on it and loses those behind it (spec 2.2).
fn read_topic_table(reader: &mut Reader<'_>) -> Result<Vec<TopicConfig>, BodyError> {
    let mut topics = Vec::new();
    if !reader.begin_object_or_null()? {
        return Ok(topics);
    }
    let mut members = Members::default();
    loop {
        let mut lens = (0, 0);
        let scanned = reader.scanned(|text| {
            let (topic, len) = members.scan(text)?;
            lens = (len, text.len() - len);
            Some((topic, len))
        });
        if let Some(topic) = scanned {
            if topics.is_empty() {
                // The others are about as long. Room that is asked for at once is not copied as it grows.
                let (len, left) = lens;
                topics.reserve_exact((1 + left / len).min(TOPICS_OF_REGISTRATION_MAX));
            }
            check_room(topics.len(), "topics", TOPICS_OF_REGISTRATION_MAX)?;
            topics.push(topic);
            continue;
        }
        if reader.next_key()?.is_none() {
            return Ok(topics);
        }
        let entry = read_settings(reader, "topicName", QueueSettings::default())?;
        if let Some(NamedSettings {
            name: Some(name),
            settings,
        }) = entry
        {
            check_room(topics.len(), "topics", TOPICS_OF_REGISTRATION_MAX)?;
            topics.push(TopicConfig {
                name: TopicName::from(name.as_ref()),
                settings,
            });
        }
    }
}

/// What counts of a `TopicConfig` or a `QueueData`.
#[derive(Debug, PartialEq)]
struct NamedSettings<'a> {
    name: Option<Cow<'a, str>>,
    settings: QueueSettings,
}

/// Reads a `TopicConfig` or `QueueData` or `null`: the text under `name_key` and the numbers, `absent` standing in for those that
/// are missing or null.
fn read_settings<'a>(
    reader: &mut Reader<'a>,
    name_key: &str,
    absent: QueueSettings,
) -> Result<Option<NamedSettings<'a>>, BodyError> {
    if !reader.begin_object_or_null()? {
        return Ok(None);
    }
    let mut name = None;
    let mut settings = absent;
    while let Some(key) = reader.next_key()? {
        let (number, default) = match key.as_ref() {
            "readQueueNums" => (&mut settings.read_queue_nums, absent.read_queue_nums),
            "writeQueueNums" => (&mut settings.write_queue_nums, absent.write_queue_nums),
            "perm" => (&mut settings.perm, absent.perm),
            "topicSysFlag" => (&mut settings.topic_sys_flag, absent.topic_sys_flag),
            key if key == name_key => {
                name = reader.text_or_null()?;
                continue;
            }
            _ => {
                reader.skip_value()?;
                continue;
            }
        };
        *number = reader.int32_or_null()?.unwrap_or(default);
    }
    Ok(Some(NamedSettings { name, settings }))
}

fn read_mappings(reader: &mut Reader<'_>) -> Result<Vec<TopicQueueMappingInfo>, BodyError> {
    let mut mappings = Vec::new();
    if !reader.begin_object_or_null()? {
        return Ok(mappings);
    }
    while let Some(topic_key) = reader.next_key()? {
        check_room(mappings.len(), "mappings", MAPPINGS_MAX)?;
        if let Some(mut mapping) = TopicQueueMappingInfo::read(reader)? {
            mapping.topic_key = topic_key.into_owned();
            mappings.push(mapping);
        }
    }
    Ok(mappings)
}

/// Reads `filterServerList` or `null`; nulls in it are left out.
fn read_filter_servers(reader: &mut Reader<'_>) -> Result<Option<Vec<String>>, BodyError> {
    if !reader.begin_list_or_null()? {
        return Ok(None);
    }
    let mut texts = Vec::new();
    while reader.next_item()? {
        check_room(texts.len(), "filter servers", FILTER_SERVERS_MAX)?;
        texts.extend(reader.text_or_null()?.map(Cow::into_owned));
    }
    Ok(Some(texts))
}

/// Refuses one item more when there are `max`.
fn check_room(len: usize, item: &'static str, max: usize) -> Result<(), BodyError> {
    if len < max {
        Ok(())
    } else {
        Err(BodyError::TooMany { item, max })
    }
}

/// Whether reading a body will first inflate it, however it is labelled (Q17).
#[must_use]
pub fn is_compressed(body: &[u8], labelled: bool) -> bool {
    labelled || inflate::is_zlib(body)
}

/// Keeps the last item of each key, in the order in which they stand.
fn last_of_each<T>(items: Vec<T>, key: impl Fn(&T) -> &[u8]) -> Vec<T> {
    let mut seen = Seen::new(items.len());
    let mut repeated: Vec<usize> = Vec::new();
    for index in (0..items.len()).rev() {
        if !seen.insert(index, |index| key(&items[index])) {
            repeated.push(index);
        }
    }
    drop(seen);
    let mut items = items;
    if repeated.is_empty() {
        items.shrink_to_fit();
        return items;
    }
    let kept = items.into_iter().enumerate().filter(|(index, _)| {
        let is_repeated = repeated.last() == Some(index);
        if is_repeated {
            repeated.pop();
        }
        !is_repeated
    });
    let mut kept: Vec<T> = kept.map(|(_, item)| item).collect();
    // Collected in place: a peer that repeats one topic millions of times would have the room of all of them kept.
    kept.shrink_to_fit();
    kept
}

/// Places of items with different keys.
///
/// Four bytes a place: with the keys themselves in a `HashSet`, a registration of 5,000 topics, of which next to none is there twice,
/// took a fifteenth of its processor time here (a profile). `benches/codec`, `register_body`, would notice the loss.
struct Seen {
    /// One more than the place, or 0: at least every other one, so that a search ends soon.
    slots: Vec<u32>,
    /// Keys are chosen by the peer, so the hash is seeded: n keys cannot be made to collide.
    hasher: RandomState,
}

impl Seen {
    fn new(len: usize) -> Self {
        Self {
            slots: vec![0; (2 * len).next_power_of_two()],
            hasher: RandomState::default(),
        }
    }

    /// Says whether the key at this place is not there yet; then it is.
    fn insert<'a>(&mut self, index: usize, key: impl Fn(usize) -> &'a [u8]) -> bool {
        let mask = self.slots.len() - 1;
        let hash = self.hasher.hash_one(key(index)).to_le_bytes();
        let [low @ .., _, _, _, _] = hash;
        let mut at = u32::from_le_bytes(low) as usize & mask;
        loop {
            match self.slots[at].checked_sub(1) {
                None => break,
                Some(other) if key(other as usize) == key(index) => return false,
                Some(_) => at = (at + 1) & mask,
            }
        }
        self.slots[at] = u32::try_from(index + 1).expect("a frame holds no more items");
        true
    }
}
