//! What the other designs keep: the values of the original's five route tables, how a registration changes them, and how an
//! answer is written from them (docs/protocol.md 3.1, 3.3, 3.8).
//!
//! Left out are the steps that no broker of the bench can meet: slaves, a higher state version, static topics, notices of a changed
//! minimum id.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};

use foldhash::quality::RandomState;
use waypost::{
    protocol::{
        body::{DataVersion, QueueSettings},
        fastjson::{Dialect, ObjectWriter, write_int_key, write_string, write_string_list},
        name::TopicName,
    },
    registry::command::RegisterBroker,
    sync::Stamp,
    time::Timestamp,
};

/// A map that hashes as ours does.
pub(crate) type Map<K, V> = HashMap<K, V, RandomState>;

/// Which live broker: key of brokerLiveTable and filterServerTable.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct LiveKey {
    pub(crate) cluster: Arc<str>,
    pub(crate) addr: Arc<str>,
}

impl LiveKey {
    pub(crate) fn of(registration: &RegisterBroker) -> Self {
        Self {
            cluster: Arc::clone(&registration.cluster_name),
            addr: Arc::clone(&registration.broker_addr),
        }
    }
}

/// A value of brokerLiveTable.
#[derive(Debug)]
pub(crate) struct Live {
    pub(crate) data_version: DataVersion,
    pub(crate) last_heartbeat: Stamp,
}

impl Live {
    pub(crate) fn new(registration: &RegisterBroker, now: Timestamp) -> Self {
        Self {
            data_version: registration.body.data_version,
            last_heartbeat: Stamp::new(now),
        }
    }
}

/// One broker's queues of a topic.
#[derive(Debug, Clone)]
pub(crate) struct QueueData {
    pub(crate) broker_name: Arc<str>,
    pub(crate) settings: QueueSettings,
}

impl QueueData {
    fn write(&self, out: &mut Vec<u8>) {
        let QueueSettings {
            read_queue_nums,
            write_queue_nums,
            perm,
            topic_sys_flag,
        } = self.settings;
        let mut object = ObjectWriter::begin(out, Dialect::Strict);
        object.string("brokerName", &self.broker_name);
        object.number("perm", i64::from(perm));
        object.number("readQueueNums", i64::from(read_queue_nums));
        object.number("topicSysFlag", i64::from(topic_sys_flag));
        object.number("writeQueueNums", i64::from(write_queue_nums));
        object.end();
    }
}

/// A topic's queues by broker name, ascending: a value of topicQueueTable.
pub(crate) type Queues = Vec<QueueData>;

/// Whether a registration of `settings` would change nothing. `applies_all`: it counts for topics that are there already.
pub(crate) fn is_up_to_date(
    queues: &[QueueData],
    broker_name: &str,
    settings: QueueSettings,
    applies_all: bool,
) -> bool {
    place(queues, broker_name).is_ok_and(|place| !applies_all || queues[place].settings == settings)
}

pub(crate) fn set_queues(queues: &mut Queues, broker_name: &Arc<str>, settings: QueueSettings) {
    let data = QueueData {
        broker_name: Arc::clone(broker_name),
        settings,
    };
    match place(queues, broker_name) {
        Ok(place) => queues[place] = data,
        Err(place) => queues.insert(place, data),
    }
}

fn place(queues: &[QueueData], broker_name: &str) -> Result<usize, usize> {
    queues.binary_search_by(|data| (*data.broker_name).cmp(broker_name))
}

/// The addresses under one broker name: a value of brokerAddrTable.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct BrokerData {
    pub(crate) name: Arc<str>,
    pub(crate) cluster: Arc<str>,
    pub(crate) zone_name: Option<Arc<str>>,
    pub(crate) enable_acting_master: bool,
    pub(crate) addrs: BTreeMap<i64, Arc<str>>,
}

impl BrokerData {
    /// What a registration makes of a group, or of none.
    pub(crate) fn registered(before: Option<&Self>, registration: &RegisterBroker) -> Self {
        let mut addrs = before.map_or_else(BTreeMap::new, |group| group.addrs.clone());
        addrs.retain(|id, addr| *id == registration.broker_id || *addr != registration.broker_addr);
        addrs.insert(
            registration.broker_id,
            Arc::clone(&registration.broker_addr),
        );
        Self {
            name: Arc::clone(&registration.broker_name),
            cluster: before.map_or_else(
                || Arc::clone(&registration.cluster_name),
                |group| Arc::clone(&group.cluster),
            ),
            zone_name: registration.zone_name.clone(),
            enable_acting_master: registration.enable_acting_master.unwrap_or(false),
            addrs,
        }
    }

    /// Whether a registration is the first under its id, so that all its topics count.
    pub(crate) fn is_first(before: Option<&Self>, registration: &RegisterBroker) -> bool {
        before.is_none_or(|group| !group.addrs.contains_key(&registration.broker_id))
    }

    fn write(&self, out: &mut Vec<u8>) {
        let mut object = ObjectWriter::begin(out, Dialect::Strict);
        let addrs = object.member("brokerAddrs");
        addrs.push(b'{');
        for (position, (id, addr)) in self.addrs.iter().enumerate() {
            separate(addrs, position);
            write_int_key(addrs, *id, Dialect::Strict);
            addrs.push(b':');
            write_string(addrs, addr, Dialect::Strict);
        }
        addrs.push(b'}');
        object.string("brokerName", &self.name);
        object.string("cluster", &self.cluster);
        object.bool("enableActingMaster", self.enable_acting_master);
        object.optional_string("zoneName", self.zone_name.as_deref());
        object.end();
    }
}

fn separate(out: &mut Vec<u8>, position: usize) {
    if position > 0 {
        out.push(b',');
    }
}

/// The members of a list or an object of an answer.
pub(crate) struct Members<'o> {
    out: &'o mut Vec<u8>,
    count: usize,
}

impl Members<'_> {
    pub(crate) fn broker(&mut self, broker: &BrokerData) {
        broker.write(self.next());
    }

    pub(crate) fn filter_servers(&mut self, addr: &str, servers: &[String]) {
        let out = self.next();
        write_string(out, addr, Dialect::Strict);
        out.push(b':');
        write_string_list(out, servers.iter().map(String::as_str), Dialect::Strict);
    }

    fn next(&mut self) -> &mut Vec<u8> {
        separate(self.out, self.count);
        self.count += 1;
        self.out
    }
}

/// Appends a `TopicRouteData` in strict JSON. The callers know how to reach the brokers and filter servers of their tables.
pub(crate) fn write_route(
    out: &mut Vec<u8>,
    queues: &[QueueData],
    brokers: impl FnOnce(&mut Members<'_>),
    filter_servers: impl FnOnce(&mut Members<'_>),
) {
    out.extend_from_slice(b"{\"brokerDatas\":[");
    brokers(&mut Members { out, count: 0 });
    out.extend_from_slice(b"],\"filterServerTable\":{");
    filter_servers(&mut Members { out, count: 0 });
    out.extend_from_slice(b"},\"queueDatas\":[");
    for (position, data) in queues.iter().enumerate() {
        separate(out, position);
        data.write(out);
    }
    out.extend_from_slice(b"]}");
}

/// The tables as plain maps, without brokerLiveTable. Values are shared, so that a clone is not deeper than it need be; a value
/// with a single owner is changed in place.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tables {
    /// topicQueueTable
    pub(crate) topics: Map<TopicName, Arc<Queues>>,
    /// brokerAddrTable
    pub(crate) brokers: Map<Arc<str>, Arc<BrokerData>>,
    /// clusterAddrTable
    pub(crate) clusters: Map<Arc<str>, BTreeSet<Arc<str>>>,
    /// filterServerTable
    pub(crate) filter_servers: Map<LiveKey, Arc<[String]>>,
}

impl Tables {
    /// Applies a registration. `stored`: the version under which the broker is live.
    pub(crate) fn register(&mut self, registration: &RegisterBroker, stored: Option<DataVersion>) {
        let name = &registration.broker_name;
        let cluster = Arc::clone(&registration.cluster_name);
        self.clusters
            .entry(cluster)
            .or_default()
            .insert(Arc::clone(name));
        let before = self.brokers.get(name).map(|group| &**group);
        let is_first = BrokerData::is_first(before, registration);
        if is_first && registration.body.topics.len() == 1 {
            return;
        }
        let group = BrokerData::registered(before, registration);
        self.brokers.insert(Arc::clone(name), Arc::new(group));
        let applies_all = is_first || stored != Some(registration.body.data_version);
        for topic in &registration.body.topics {
            match self.topics.get_mut(&topic.name) {
                Some(queues) if is_up_to_date(queues, name, topic.settings, applies_all) => {}
                Some(queues) => set_queues(Arc::make_mut(queues), name, topic.settings),
                None => {
                    let mut queues = Queues::new();
                    set_queues(&mut queues, name, topic.settings);
                    self.topics.insert(topic.name.clone(), Arc::new(queues));
                }
            }
        }
        match registration.body.filter_servers.as_deref() {
            Some([]) => _ = self.filter_servers.remove(&LiveKey::of(registration)),
            Some(servers) => {
                _ = self
                    .filter_servers
                    .insert(LiveKey::of(registration), Arc::from(servers));
            }
            None => {}
        }
    }

    /// Each entry of filterServerTable that concerns a broker. As in the original nothing is looked up while the table is empty.
    pub(crate) fn filter_servers_of<'t>(
        &'t self,
        broker: &'t BrokerData,
    ) -> impl Iterator<Item = (&'t Arc<str>, &'t Arc<[String]>)> {
        let addrs = (!self.filter_servers.is_empty()).then(|| broker.addrs.values());
        addrs.into_iter().flatten().filter_map(|addr| {
            let key = LiveKey {
                cluster: Arc::clone(&broker.cluster),
                addr: Arc::clone(addr),
            };
            Some((addr, self.filter_servers.get(&key)?))
        })
    }
}
