//! The layout inside a compressed registration (spec 2.3):
//!
//! ```text
//! i32 length, JSON DataVersion
//! i32 count, { i32 length, "name read write perm filterType [attributes]" }*
//! i32 length, JSON list of filter servers
//! i32 count, { i32 length, JSON TopicQueueMappingInfo }*      from version 413 on
//! ```

use super::{check_room, read_filter_servers};
use crate::{
    limits::{MAPPINGS_MAX, TOPICS_OF_REGISTRATION_MAX},
    protocol::{
        body::{
            BodyError, DataVersion, QueueSettings, RegisterBrokerBody, TopicConfig,
            TopicQueueMappingInfo,
        },
        code::version,
        json::Reader,
        name::TopicName,
    },
};

/// Parts of a topic line that must be there.
const TOPIC_PARTS_MIN: usize = 5;

/// The shortest topic item: its length word and `" 0 0 0 MULTI_TAG"`.
const TOPIC_ITEM_LEN_MIN: usize = 20;

/// Reads the inflated layout into `body`. Bytes behind the last item are ignored.
pub(super) fn decode(
    layout: &[u8],
    version: i32,
    body: &mut RegisterBrokerBody,
) -> Result<(), BodyError> {
    let mut items = Items(layout);
    let mut reader = Reader::new(items.next("data version")?)?;
    body.data_version = DataVersion::read(&mut reader)?.unwrap_or_default().version;
    reader.end()?;

    let topic_count = items.count("topic count")?;
    // Room for the last of them.
    check_room(
        topic_count.saturating_sub(1),
        "topics",
        TOPICS_OF_REGISTRATION_MAX,
    )?;
    // The count is the peer's word; the room taken is for no more topics than the bytes left can hold.
    body.topics = Vec::with_capacity(topic_count.min(items.0.len() / TOPIC_ITEM_LEN_MIN));
    for topic_index in 0..topic_count {
        let line = String::from_utf8_lossy(items.next("topic")?);
        body.topics.push(topic_config(&line, topic_index)?);
    }

    let mut reader = Reader::new(items.next("filter server list")?)?;
    body.filter_servers = read_filter_servers(&mut reader)?;
    reader.end()?;

    if version < version::TOPIC_QUEUE_MAPPING {
        return Ok(());
    }
    for _ in 0..items.count("mapping count")? {
        check_room(body.mappings.len(), "mappings", MAPPINGS_MAX)?;
        let mut reader = Reader::new(items.next("mapping")?)?;
        let mapping = TopicQueueMappingInfo::read(&mut reader)?;
        reader.end()?;
        // Without a key of its own a mapping goes by its topic; without that it goes nowhere.
        if let Some(mut mapping) = mapping
            && let Some(topic) = &mapping.topic
        {
            mapping.topic_key.clone_from(topic);
            body.mappings.push(mapping);
        }
    }
    Ok(())
}

/// Reads `name read write perm filterType [attributes]` (`TopicConfig#decode`). The attributes mean nothing to a name server, and
/// the line carries neither `topicSysFlag` nor `order` (Q18).
fn topic_config(line: &str, topic_index: usize) -> Result<TopicConfig, BodyError> {
    let mut parts = line.split(' ');
    let mut part = |index| {
        parts.next().ok_or(BodyError::TopicParts {
            found: index,
            min: TOPIC_PARTS_MIN,
        })
    };
    let (name, read, write, perm, filter_type) = (part(0)?, part(1)?, part(2)?, part(3)?, part(4)?);
    let bad = |part| BodyError::TopicPart { part, topic_index };
    let settings = QueueSettings {
        read_queue_nums: read.parse().map_err(|_| bad("readQueueNums"))?,
        write_queue_nums: write.parse().map_err(|_| bad("writeQueueNums"))?,
        perm: perm.parse().map_err(|_| bad("perm"))?,
        topic_sys_flag: 0,
    };
    if !matches!(filter_type, "SINGLE_TAG" | "MULTI_TAG") {
        return Err(bad("topicFilterType"));
    }
    Ok(TopicConfig {
        name: TopicName::from(name),
        settings,
    })
}

/// What is left of the layout.
struct Items<'a>(&'a [u8]);

impl<'a> Items<'a> {
    /// Reads a length word and as many bytes.
    fn next(&mut self, item: &'static str) -> Result<&'a [u8], BodyError> {
        let len = self.int32(item)?;
        let len = usize::try_from(len).map_err(|_| BodyError::NegativeLength { item, len })?;
        self.bytes(len, item)
    }

    /// Reads a count; a negative one counts as 0 (spec 2.3).
    fn count(&mut self, item: &'static str) -> Result<usize, BodyError> {
        Ok(usize::try_from(self.int32(item)?).unwrap_or(0))
    }

    fn int32(&mut self, item: &'static str) -> Result<i32, BodyError> {
        let bytes = self.bytes(size_of::<i32>(), item)?;
        Ok(i32::from_be_bytes(
            *bytes
                .first_chunk()
                .expect("as many bytes as were asked for"),
        ))
    }

    fn bytes(&mut self, len: usize, item: &'static str) -> Result<&'a [u8], BodyError> {
        let Some((bytes, rest)) = self.0.split_at_checked(len) else {
            return Err(BodyError::Truncated {
                item,
                needed: len,
                left: self.0.len(),
            });
        };
        self.0 = rest;
        Ok(bytes)
    }
}
