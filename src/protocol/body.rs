//! Bodies as values: what a broker sends of itself and its topics (spec 2.2, 2.3).

use std::collections::BTreeMap;

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
#[derive(Debug, Clone, PartialEq, Eq, Default)]
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
