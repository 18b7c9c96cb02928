//! What the tables of a snapshot hold. Each entry carries its pieces of the answers ready encoded, so that a reader only
//! concatenates: a broker's change of address encodes one piece and not the routes of all its topics.

use std::{
    collections::BTreeMap,
    hash::{Hash, Hasher},
    sync::Arc,
    time::Duration,
};

use smallvec::SmallVec;

use super::table::Keyed;
use crate::{
    protocol::{
        body::{DataVersion, QueueSettings, TopicQueueMappingInfo},
        fastjson::{self, Dialect},
        name::TopicName,
    },
    sync::stamp::Stamp,
};

/// Broker id of a master (spec 2.3).
pub(crate) const MASTER_ID: i64 = 0;
/// Permission bit of writing (spec 2.2).
pub(crate) const PERM_WRITE: i32 = 2;
/// What 327 sets, whatever was there before (spec Q11).
pub(crate) const PERM_READ_WRITE: i32 = 6;

/// A broker's place in the snapshot's broker list. Reused once no topic refers to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct BrokerIndex(pub(crate) u32);

/// A topic's number, for the writer's index of topics by broker. Reused once the topic is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct TopicId(pub(crate) u32);

/// One text in both JSON dialects (spec 2.1); most texts are alike in both and are kept once.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Dialects {
    plain: Box<[u8]>,
    strict: Option<Box<[u8]>>,
}

impl Dialects {
    /// Encodes a text in both dialects.
    pub(crate) fn encode(write: impl Fn(&mut Vec<u8>, Dialect)) -> Self {
        let encoded = |dialect| {
            let mut out = Vec::new();
            write(&mut out, dialect);
            out.into_boxed_slice()
        };
        let (plain, strict) = (encoded(Dialect::Plain), encoded(Dialect::Strict));
        let strict = (strict != plain).then_some(strict);
        Self { plain, strict }
    }

    /// The text in one dialect.
    pub(crate) fn get(&self, dialect: Dialect) -> &[u8] {
        match dialect {
            Dialect::Plain => &self.plain,
            Dialect::Strict => self.strict.as_deref().unwrap_or(&self.plain),
        }
    }
}

/// A topic with the brokers that hold it.
#[derive(Debug, Clone)]
pub(crate) struct TopicEntry {
    pub(crate) name: TopicName,
    pub(crate) id: TopicId,
    /// By broker name, ascending.
    pub(crate) slots: SlotList,
    /// Static-topic mappings by the broker name they are shown under, ascending; usually none.
    pub(crate) mappings: Vec<Mapping>,
}

impl TopicEntry {
    /// Whether a broker has a part in the topic.
    pub(crate) fn involves(&self, broker: BrokerIndex) -> bool {
        self.slots.iter().any(|slot| slot.broker == broker)
            || self.mappings.iter().any(|mapping| mapping.owner == broker)
    }
}

/// The brokers of a topic with their queues; topics with the same share one list.
pub(crate) type SlotList = Arc<[Slot]>;

/// One broker's queues of a topic.
#[derive(Debug, Clone)]
pub(crate) struct Slot {
    pub(crate) broker: BrokerIndex,
    pub(crate) queues: Arc<QueueShape>,
}

/// Queue data is shared by its group, so the same numbers of the same broker are the same object.
impl PartialEq for Slot {
    fn eq(&self, other: &Self) -> bool {
        self.broker == other.broker && Arc::ptr_eq(&self.queues, &other.queues)
    }
}

impl Eq for Slot {}

impl Hash for Slot {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.broker.hash(state);
        Arc::as_ptr(&self.queues).hash(state);
    }
}

/// Queue data of one broker; its topics with the same numbers share it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct QueueShape {
    /// As the broker declared it.
    pub(crate) declared: QueueSettings,
    /// What readers are shown: the declared permission unless an operator or the loss of a master changed it.
    pub(crate) perm: i32,
    /// `QueueData` (spec 2.2), the broker's name in it.
    pub(crate) text: Dialects,
}

impl QueueShape {
    pub(crate) fn new(broker_name: &str, declared: QueueSettings, perm: i32) -> Self {
        let text = Dialects::encode(|out, dialect| {
            out.extend_from_slice(b"{\"brokerName\":");
            fastjson::write_string(out, broker_name, dialect);
            for (label, number) in [
                (&b",\"perm\":"[..], perm),
                (b",\"readQueueNums\":", declared.read_queue_nums),
                (b",\"topicSysFlag\":", declared.topic_sys_flag),
                (b",\"writeQueueNums\":", declared.write_queue_nums),
            ] {
                out.extend_from_slice(label);
                fastjson::write_i64(out, i64::from(number), dialect);
            }
            out.push(b'}');
        });
        Self {
            declared,
            perm,
            text,
        }
    }

    pub(crate) fn is_writable(&self) -> bool {
        self.perm & PERM_WRITE != 0
    }
}

/// A static topic's mapping at one broker (spec 2.2).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mapping {
    /// The broker that registered it: it goes when that broker goes (spec Q16).
    pub(crate) owner: BrokerIndex,
    /// The name it is shown under: `bname`, or the registering broker's if that is missing (spec Q43).
    pub(crate) broker_name: Arc<str>,
    /// `"name":{…}`
    pub(crate) text: Arc<Dialects>,
}

impl Mapping {
    pub(crate) fn new(
        owner: BrokerIndex,
        owner_name: &Arc<str>,
        info: &TopicQueueMappingInfo,
    ) -> Self {
        let named = TopicQueueMappingInfo {
            broker_name: Some(
                info.broker_name
                    .clone()
                    .unwrap_or_else(|| owner_name.to_string()),
            ),
            ..info.clone()
        };
        let broker_name: Arc<str> = named.broker_name.as_deref().unwrap_or(owner_name).into();
        let text = Dialects::encode(|out, dialect| {
            fastjson::write_string(out, &broker_name, dialect);
            out.push(b':');
            named.write(out, dialect);
        });
        Self {
            owner,
            broker_name,
            text: Arc::new(text),
        }
    }
}

/// A broker group: the addresses under one broker name, `BrokerData` of the original.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BrokerEntry {
    pub(crate) index: BrokerIndex,
    pub(crate) name: Arc<str>,
    /// The cluster of the last registration under this name (spec Q9).
    pub(crate) cluster: Arc<str>,
    pub(crate) zone_name: Option<Arc<str>>,
    pub(crate) enable_acting_master: bool,
    /// By broker id. Never empty in a published snapshot.
    pub(crate) addrs: BTreeMap<i64, Arc<str>>,
    /// Filter servers of those addresses that have any.
    pub(crate) filter_servers: BTreeMap<Arc<str>, Arc<[String]>>,
    pub(crate) texts: BrokerTexts,
}

/// The encoded pieces of a broker group.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct BrokerTexts {
    /// `BrokerData` with the ids as registered.
    pub(crate) data: Dialects,
    /// The same with the smallest id shown as 0; present while a slave may act as master (spec 3.8 step 5).
    pub(crate) acting: Option<Dialects>,
    /// Members of `filterServerTable`, comma-separated; empty when there are none.
    pub(crate) filter_servers: Dialects,
}

impl Keyed for TopicEntry {
    fn key(&self) -> &[u8] {
        self.name.as_bytes()
    }
}

impl Keyed for BrokerEntry {
    fn key(&self) -> &[u8] {
        self.name.as_bytes()
    }
}

/// Orders broker ids by how fit they are to lead: 0, then 1, 2, …, and last the negative ids of DLedger candidates, which
/// must never be taken for a minimum (fault B1).
pub(crate) fn rank(id: i64) -> (bool, i64) {
    (id < 0, id)
}

impl BrokerEntry {
    pub(crate) fn has_master(&self) -> bool {
        self.addrs.contains_key(&MASTER_ID)
    }

    /// The member that leads or would lead the group.
    pub(crate) fn first(&self) -> Option<(i64, &Arc<str>)> {
        self.addrs
            .iter()
            .map(|(id, addr)| (*id, addr))
            .min_by_key(|(id, _)| rank(*id))
    }

    /// Whether readers of a topic that cannot be written may be shown the first slave as master (spec 3.8 step 5).
    fn acting_id(&self) -> Option<i64> {
        let (id, _) = self.first()?;
        (self.enable_acting_master && id > MASTER_ID).then_some(id)
    }

    /// Encodes the pieces anew; to be called after any change of the other fields.
    pub(crate) fn encode(&mut self) {
        self.texts = BrokerTexts {
            data: Dialects::encode(|out, dialect| self.write_data(out, dialect, None)),
            acting: self
                .acting_id()
                .map(|id| Dialects::encode(|out, dialect| self.write_data(out, dialect, Some(id)))),
            filter_servers: Dialects::encode(|out, dialect| {
                self.write_filter_servers(out, dialect)
            }),
        };
    }

    fn write_data(&self, out: &mut Vec<u8>, dialect: Dialect, shown_as_master: Option<i64>) {
        out.extend_from_slice(b"{\"brokerAddrs\":");
        self.write_addrs(out, dialect, shown_as_master);
        out.extend_from_slice(b",\"brokerName\":");
        fastjson::write_string(out, &self.name, dialect);
        out.extend_from_slice(b",\"cluster\":");
        fastjson::write_string(out, &self.cluster, dialect);
        out.extend_from_slice(b",\"enableActingMaster\":");
        out.extend_from_slice(if self.enable_acting_master {
            b"true"
        } else {
            b"false"
        });
        if let Some(zone_name) = &self.zone_name {
            out.extend_from_slice(b",\"zoneName\":");
            fastjson::write_string(out, zone_name, dialect);
        }
        out.push(b'}');
    }

    /// `{0:"a",1:"b"}`: an object by broker id, in ascending order of what is shown.
    pub(crate) fn write_addrs(
        &self,
        out: &mut Vec<u8>,
        dialect: Dialect,
        shown_as_master: Option<i64>,
    ) {
        let shown = |id: i64| {
            if Some(id) == shown_as_master {
                MASTER_ID
            } else {
                id
            }
        };
        let mut members: SmallVec<[(i64, &Arc<str>); 4]> = self
            .addrs
            .iter()
            .map(|(id, addr)| (shown(*id), addr))
            .collect();
        members.sort_unstable_by_key(|(id, _)| *id);
        out.push(b'{');
        for (position, (id, addr)) in members.into_iter().enumerate() {
            separate(out, position);
            fastjson::write_int_key(out, id, dialect);
            out.push(b':');
            fastjson::write_string(out, addr, dialect);
        }
        out.push(b'}');
    }

    fn write_filter_servers(&self, out: &mut Vec<u8>, dialect: Dialect) {
        for (position, (addr, servers)) in self.filter_servers.iter().enumerate() {
            separate(out, position);
            fastjson::write_string(out, addr, dialect);
            out.extend_from_slice(b":[");
            for (position, server) in servers.iter().enumerate() {
                separate(out, position);
                fastjson::write_string(out, server, dialect);
            }
            out.push(b']');
        }
    }
}

/// The comma before every member but the first.
pub(crate) fn separate(out: &mut Vec<u8>, position: usize) {
    if position > 0 {
        out.push(b',');
    }
}

/// A live broker process: one address, `BrokerLiveInfo` of the original.
#[derive(Debug, Clone)]
pub(crate) struct BrokerLive {
    pub(crate) addr: Arc<str>,
    pub(crate) cluster: Arc<str>,
    pub(crate) broker_name: Arc<str>,
    /// Tells this life of the address from earlier and later ones; changes whenever the registering connection does.
    pub(crate) generation: u64,
    pub(crate) data_version: DataVersion,
    /// As brokers from 5.0 on write it too, so that one that asks whether it has anything new mostly asks with these bytes.
    pub(crate) data_version_json: Box<[u8]>,
    pub(crate) ha_server_addr: Option<Arc<str>>,
    /// How long the broker may be silent.
    pub(crate) heartbeat_timeout: Duration,
    /// When it was last heard of. Shared by all versions of this entry, so that a heartbeat publishes nothing.
    pub(crate) last_heartbeat: Arc<Stamp>,
}

impl Keyed for BrokerLive {
    fn key(&self) -> &[u8] {
        self.addr.as_bytes()
    }
}
