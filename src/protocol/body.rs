//! Bodies as values: what a broker sends of itself and its topics (spec 2.2, 2.3).

use std::{borrow::Cow, collections::BTreeMap, fmt};

use super::{
    fastjson::{
        Dialect, ObjectWriter, write_i64, write_int_key, write_string_list, write_string_map,
    },
    json::{JsonError, Reader},
};

/// The version of a broker's topic table (spec 2.2). Equal when all three numbers are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub struct DataVersion {
    /// Master epoch or Raft term; 0 outside the controller and DLedger modes.
    pub state_version: i64,
    /// Milliseconds of the broker's wall clock.
    pub timestamp: i64,
    /// Counts the changes.
    pub counter: i64,
}

/// What a name server keeps of a `TopicConfig` (spec 2.2). Any number is stored unchecked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct QueueSettings {
    /// `readQueueNums`, 16 when absent.
    pub read_queue_nums: i32,
    /// `writeQueueNums`, 16 when absent.
    pub write_queue_nums: i32,
    /// Permission bits, 6 when absent.
    pub perm: i32,
    /// `topicSysFlag`, 0 when absent.
    pub topic_sys_flag: i32,
}

impl Default for QueueSettings {
    fn default() -> Self {
        Self {
            read_queue_nums: 16,
            write_queue_nums: 16,
            perm: 6,
            topic_sys_flag: 0,
        }
    }
}

/// One entry of a broker's topic table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopicConfig {
    /// The topic; the map key it was sent under does not count (spec 2.2).
    pub name: super::name::TopicName,
    /// Its queues and permission.
    pub settings: QueueSettings,
}

/// One static topic's mapping at one broker (spec 2.2).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopicQueueMappingInfo {
    /// The topic under which it was sent: the map key, or the text itself in the compressed form.
    pub topic_key: String,
    /// `bname`
    pub broker_name: Option<String>,
    /// `currIdMap`
    pub current_id_map: Option<BTreeMap<i32, i32>>,
    /// `dirty`
    pub dirty: bool,
    /// `epoch`
    pub epoch: i64,
    /// `scope`
    pub scope: Option<String>,
    /// `topic`
    pub topic: Option<String>,
    /// `totalQueues`
    pub total_queues: i32,
}

impl Default for TopicQueueMappingInfo {
    /// What members are when they are absent; an explicit null is another thing.
    fn default() -> Self {
        Self {
            topic_key: String::new(),
            broker_name: None,
            current_id_map: Some(BTreeMap::new()),
            dirty: false,
            epoch: 0,
            scope: Some("__global__".into()),
            topic: None,
            total_queues: 0,
        }
    }
}

/// `RegisterBrokerBody`: everything a registration carries beside its header.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RegisterBrokerBody {
    /// Version of the topic table; all zero when the broker sent none.
    pub data_version: DataVersion,
    /// The topic table in the order sent; of a repeated topic the last entry counts and is the only one here.
    pub topics: Vec<TopicConfig>,
    /// `filterServerList`; `None` leaves what is stored alone, an empty one removes it (spec 3.3 step 12).
    pub filter_servers: Option<Vec<String>>,
    /// Static-topic mappings.
    pub mappings: Vec<TopicQueueMappingInfo>,
}

/// Why a body is refused. The request is answered with `SYSTEM_ERROR`, the connection stays (spec 1.9).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BodyError {
    /// It is not the JSON that is due.
    Json(JsonError),
    /// A JSON member that must be there is not.
    Missing {
        /// Its name.
        member: &'static str,
    },
    /// It is no zlib stream, or a damaged one.
    Inflate {
        /// Bytes that could be inflated.
        inflated: usize,
    },
    /// It holds more items of one kind than any peer sends.
    TooMany {
        /// What they are.
        item: &'static str,
        /// How many there may be.
        max: usize,
    },
    /// It inflates to too much.
    InflatedTooLarge {
        /// How many bytes it may inflate to.
        max: usize,
    },
    /// The compressed layout ends inside an item.
    Truncated {
        /// What is cut.
        item: &'static str,
        /// Bytes that it needs.
        needed: usize,
        /// Bytes that are there.
        left: usize,
    },
    /// An item of the compressed layout with a length below 0.
    NegativeLength {
        /// What it is the length of.
        item: &'static str,
        /// The length as sent.
        len: i32,
    },
    /// A line of the compressed topic table with too few parts.
    TopicParts {
        /// How many it has.
        found: usize,
        /// The least it may have.
        min: usize,
    },
    /// A part of such a line that is not what it must be.
    TopicPart {
        /// Its Java name.
        part: &'static str,
        /// Which topic of the table it belongs to, counted from 0.
        topic_index: usize,
    },
}

impl From<JsonError> for BodyError {
    fn from(error: JsonError) -> Self {
        Self::Json(error)
    }
}

impl fmt::Display for BodyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Json(error) => error.fmt(f),
            Self::Missing { member } => write!(f, "no {member} in the json object"),
            Self::Inflate { inflated } => {
                write!(f, "no valid zlib stream behind {inflated} inflated bytes")
            }
            Self::TooMany { item, max } => write!(f, "more than {max} {item}"),
            Self::InflatedTooLarge { max } => {
                write!(f, "body inflates to more than the {max} bytes allowed")
            }
            Self::Truncated { item, needed, left } => {
                write!(f, "{item} needs {needed} bytes, {left} are left")
            }
            Self::NegativeLength { item, len } => {
                write!(f, "{item} has length {len}, 0 or more is allowed")
            }
            Self::TopicParts { found, min } => {
                write!(f, "topic line of {found} parts, at least {min} are needed")
            }
            Self::TopicPart { part, topic_index } => {
                write!(f, "bad {part} in line {topic_index} of the topic table")
            }
        }
    }
}

impl std::error::Error for BodyError {}

impl DataVersion {
    /// Reads the body of a `QUERY_DATA_VERSION` (spec 2.6). `None`: there is nothing to compare with, so it counts as changed: no
    /// bytes, `null`, no `timestamp`, for which Java takes the current time, or JSON of any other shape: an error would keep a
    /// broker from ever registering (fault H6).
    ///
    /// # Errors
    /// When the body is not JSON.
    pub fn decode(body: &[u8]) -> Result<Option<Self>, BodyError> {
        let mut reader = Reader::new(body)?;
        if reader.is_at_end()? {
            return Ok(None);
        }
        let version = Self::read(&mut reader).and_then(|version| {
            reader.end()?;
            Ok(version)
        });
        match version {
            Ok(version) => Ok(version
                .filter(|read| read.has_timestamp)
                .map(|read| read.version)),
            Err(_) => {
                let mut reader = Reader::new(body)?;
                reader.skip_value()?;
                reader.end()?;
                Ok(None)
            }
        }
    }

    /// Reads a version where one or `null` is due. Members that are missing or null are 0 (spec 2.2).
    pub(super) fn read(reader: &mut Reader<'_>) -> Result<Option<ReadVersion>, BodyError> {
        if !reader.begin_object_or_null()? {
            return Ok(None);
        }
        let mut read = ReadVersion::default();
        while let Some(key) = reader.next_key()? {
            match key.as_ref() {
                "counter" => read.version.counter = reader.int64_or_null()?.unwrap_or(0),
                "stateVersion" => read.version.state_version = reader.int64_or_null()?.unwrap_or(0),
                "timestamp" => {
                    read.version.timestamp = reader.int64_or_null()?.unwrap_or(0);
                    read.has_timestamp = true;
                }
                _ => reader.skip_value()?,
            }
        }
        Ok(Some(read))
    }

    /// Appends it as JSON.
    pub fn write(&self, out: &mut Vec<u8>) {
        let mut object = ObjectWriter::begin(out, Dialect::Plain);
        object.number("counter", self.counter);
        object.number("stateVersion", self.state_version);
        object.number("timestamp", self.timestamp);
        object.end();
    }
}

/// A version, and whether it says when it was made.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ReadVersion {
    pub(super) version: DataVersion,
    has_timestamp: bool,
}

impl TopicQueueMappingInfo {
    /// Reads one where it or `null` is due; `topic_key` is left empty.
    pub(super) fn read(reader: &mut Reader<'_>) -> Result<Option<Self>, BodyError> {
        if !reader.begin_object_or_null()? {
            return Ok(None);
        }
        let mut info = Self::default();
        while let Some(key) = reader.next_key()? {
            match key.as_ref() {
                "bname" => info.broker_name = reader.text_or_null()?.map(Cow::into_owned),
                "currIdMap" => info.current_id_map = read_current_id_map(reader)?,
                "dirty" => info.dirty = reader.bool_or_null()?.unwrap_or(false),
                "epoch" => info.epoch = reader.int64_or_null()?.unwrap_or(0),
                "scope" => info.scope = reader.text_or_null()?.map(Cow::into_owned),
                "topic" => info.topic = reader.text_or_null()?.map(Cow::into_owned),
                "totalQueues" => info.total_queues = reader.int32_or_null()?.unwrap_or(0),
                _ => reader.skip_value()?,
            }
        }
        Ok(Some(info))
    }

    /// Appends it as JSON (spec 2.2): members in alphabetical order, null ones left out.
    pub fn write(&self, out: &mut Vec<u8>, dialect: Dialect) {
        let mut object = ObjectWriter::begin(out, dialect);
        object.optional_string("bname", self.broker_name.as_deref());
        if let Some(ids) = &self.current_id_map {
            write_current_id_map(object.member("currIdMap"), ids, dialect);
        }
        object.bool("dirty", self.dirty);
        object.number("epoch", self.epoch);
        object.optional_string("scope", self.scope.as_deref());
        object.optional_string("topic", self.topic.as_deref());
        object.number("totalQueues", i64::from(self.total_queues));
        object.end();
    }
}

/// Reads a map of integers, its keys quoted or not (spec 2.1, Q2). Entries with a null value are left out.
fn read_current_id_map(reader: &mut Reader<'_>) -> Result<Option<BTreeMap<i32, i32>>, BodyError> {
    if !reader.begin_object_or_null()? {
        return Ok(None);
    }
    let mut ids = BTreeMap::new();
    while let Some(id) = reader.next_int32_key()? {
        match reader.int32_or_null()? {
            Some(queue) => ids.insert(id, queue),
            None => ids.remove(&id),
        };
    }
    Ok(Some(ids))
}

fn write_current_id_map(out: &mut Vec<u8>, ids: &BTreeMap<i32, i32>, dialect: Dialect) {
    out.push(b'{');
    for (index, (id, queue)) in ids.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        write_int_key(out, i64::from(*id), dialect);
        out.push(b':');
        write_i64(out, i64::from(*queue), dialect);
    }
    out.push(b'}');
}

/// Appends the body of a topic list (spec 2.11).
pub fn topic_list_body<'a>(
    out: &mut Vec<u8>,
    topics: impl IntoIterator<Item = &'a str>,
    broker_addr: Option<&str>,
) {
    let mut object = ObjectWriter::begin(out, Dialect::Plain);
    object.optional_string("brokerAddr", broker_addr);
    write_string_list(object.member("topicList"), topics, Dialect::Plain);
    object.end();
}

/// The body of a KV table without entries.
pub const EMPTY_KV_TABLE: &[u8] = br#"{"table":{}}"#;

/// Appends the body of a KV table (spec 2.14).
pub fn kv_table_body<'a>(out: &mut Vec<u8>, entries: impl IntoIterator<Item = (&'a str, &'a str)>) {
    let mut object = ObjectWriter::begin(out, Dialect::Plain);
    write_string_map(object.member("table"), entries, Dialect::Plain);
    object.end();
}
