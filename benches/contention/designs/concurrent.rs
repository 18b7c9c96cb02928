//! Each table a concurrent hash map.
//!
//! Nothing ties the tables together, nor the topics of one registration: a reader may see half of one. That is part of what these
//! designs cost, and no figure shows it.

use std::{collections::BTreeSet, hash::Hash, sync::Arc};

use dashmap::DashMap;
use foldhash::quality::RandomState;
use waypost::{
    protocol::name::TopicName, registry::command::RegisterBroker, sync::Flag, time::Timestamp,
};

use super::{
    Design, LiveKey, Reader,
    tables::{BrokerData, Live, QueueData, Queues, is_up_to_date, set_queues, write_route},
};

/// A concurrent hash map.
pub(crate) trait Map<K, V>: Default + Send + Sync {
    /// Looks at a value where it lies.
    fn with<R>(&self, key: &K, look: impl FnOnce(&V) -> R) -> Option<R>;
    fn insert(&self, key: K, value: V);
    fn remove(&self, key: &K);
}

/// What keys and values must be.
pub(crate) trait Item: Send + Sync + 'static {}
impl<T: Send + Sync + 'static> Item for T {}

/// Which concurrent hash map.
pub(crate) trait Maps: 'static {
    type Map<K: Item + Eq + Hash, V: Item>: Map<K, V> + 'static;
}

/// Locked shards.
pub(crate) struct DashMaps;

impl Maps for DashMaps {
    type Map<K: Item + Eq + Hash, V: Item> = DashMap<K, V, RandomState>;
}

impl<K: Item + Eq + Hash, V: Item> Map<K, V> for DashMap<K, V, RandomState> {
    fn with<R>(&self, key: &K, look: impl FnOnce(&V) -> R) -> Option<R> {
        self.get(key).map(|value| look(&value))
    }

    fn insert(&self, key: K, value: V) {
        self.insert(key, value);
    }

    fn remove(&self, key: &K) {
        self.remove(key);
    }
}

/// Readers take no lock.
pub(crate) struct PapayaMaps;

impl Maps for PapayaMaps {
    type Map<K: Item + Eq + Hash, V: Item> = papaya::HashMap<K, V, RandomState>;
}

impl<K: Item + Eq + Hash, V: Item> Map<K, V> for papaya::HashMap<K, V, RandomState> {
    fn with<R>(&self, key: &K, look: impl FnOnce(&V) -> R) -> Option<R> {
        self.pin().get(key).map(look)
    }

    fn insert(&self, key: K, value: V) {
        self.pin().insert(key, value);
    }

    fn remove(&self, key: &K) {
        self.pin().remove(key);
    }
}

struct Tables<M: Maps> {
    /// topicQueueTable
    topics: M::Map<TopicName, Queues>,
    /// brokerAddrTable
    brokers: M::Map<Arc<str>, BrokerData>,
    /// clusterAddrTable
    clusters: M::Map<Arc<str>, BTreeSet<Arc<str>>>,
    /// brokerLiveTable
    live: M::Map<LiveKey, Live>,
    /// filterServerTable
    filter_servers: M::Map<LiveKey, Vec<String>>,
    /// Raised with the first entry of filterServerTable: there is nothing to look up before that, and to ask a concurrent map
    /// whether it is empty costs more than a look-up.
    has_filter_servers: Flag,
}

impl<M: Maps> Tables<M> {
    /// Applies a registration. There is one writer, so what it has looked at stays as it is until it changes it; and it never
    /// changes a map from within a look at it.
    fn register(&self, registration: &RegisterBroker, now: Timestamp) {
        let (name, body) = (&registration.broker_name, &registration.body);
        self.join_cluster(&registration.cluster_name, name);
        let before = self.brokers.with(name, BrokerData::clone);
        let is_first = BrokerData::is_first(before.as_ref(), registration);
        if is_first && body.topics.len() == 1 {
            return;
        }
        let group = BrokerData::registered(before.as_ref(), registration);
        if before.as_ref() != Some(&group) {
            self.brokers.insert(Arc::clone(name), group);
        }
        let key = LiveKey::of(registration);
        let stored = self.live.with(&key, |live| live.data_version);
        let applies_all = is_first || stored != Some(body.data_version);
        for topic in &body.topics {
            let queues = self.topics.with(&topic.name, |queues| {
                let is_done = is_up_to_date(queues, name, topic.settings, applies_all);
                (!is_done).then(|| queues.clone())
            });
            if let Some(mut queues) = queues.unwrap_or_else(|| Some(Queues::new())) {
                set_queues(&mut queues, name, topic.settings);
                self.topics.insert(topic.name.clone(), queues);
            }
        }
        match body.filter_servers.as_deref() {
            Some([]) => self.filter_servers.remove(&key),
            Some(servers) => {
                self.filter_servers.insert(key.clone(), servers.to_vec());
                self.has_filter_servers.raise();
            }
            None => {}
        }
        self.live.insert(key, Live::new(registration, now));
    }

    fn join_cluster(&self, cluster: &Arc<str>, broker_name: &Arc<str>) {
        let members = self.clusters.with(cluster, |members| {
            (!members.contains(broker_name)).then(|| members.clone())
        });
        if let Some(mut members) = members.unwrap_or_else(|| Some(BTreeSet::new())) {
            members.insert(Arc::clone(broker_name));
            self.clusters.insert(Arc::clone(cluster), members);
        }
    }

    fn write_route(&self, queues: &[QueueData], out: &mut Vec<u8>) {
        let each_broker = |look: &mut dyn FnMut(&BrokerData)| {
            for data in queues {
                self.brokers.with(&data.broker_name, &mut *look);
            }
        };
        write_route(
            out,
            queues,
            |list| each_broker(&mut |broker| list.broker(broker)),
            |object| {
                if !self.has_filter_servers.is_raised() {
                    return;
                }
                each_broker(&mut |broker| {
                    for addr in broker.addrs.values() {
                        let key = LiveKey {
                            cluster: Arc::clone(&broker.cluster),
                            addr: Arc::clone(addr),
                        };
                        self.filter_servers
                            .with(&key, |servers| object.filter_servers(addr, servers));
                    }
                });
            },
        );
    }
}

pub(crate) struct Concurrent<M: Maps>(Arc<Tables<M>>);

impl<M: Maps> Concurrent<M> {
    pub(crate) fn empty() -> Self {
        Self(Arc::new(Tables {
            topics: Default::default(),
            brokers: Default::default(),
            clusters: Default::default(),
            live: Default::default(),
            filter_servers: Default::default(),
            has_filter_servers: Flag::new(),
        }))
    }
}

impl<M: Maps> Design for Concurrent<M> {
    fn reader(&self) -> Box<dyn Reader> {
        Box::new(ConcurrentReader(Arc::clone(&self.0)))
    }

    fn heartbeat(&mut self, broker: &LiveKey, now: Timestamp) {
        self.0
            .live
            .with(broker, |live| live.last_heartbeat.refresh(now));
    }

    fn register(&mut self, registration: Box<RegisterBroker>, now: Timestamp) {
        self.0.register(&registration, now);
    }
}

struct ConcurrentReader<M: Maps>(Arc<Tables<M>>);

impl<M: Maps> Reader for ConcurrentReader<M> {
    fn look_up(&mut self, topic: &str, out: &mut Vec<u8>) -> bool {
        let write = |queues: &Queues| self.0.write_route(queues, out);
        self.0.topics.with(&TopicName::from(topic), write).is_some()
    }
}
