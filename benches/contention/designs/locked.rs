//! The original's: all tables behind one read-write lock (`RouteInfoManager`, docs/protocol.md 3.1).
//!
//! As there, a look-up copies the broker groups and refers to the queue data under the read lock and encodes after it; a registration
//! holds the write lock from its first step to its last, whether it changes anything or not; a heartbeat takes no lock, since
//! brokerLiveTable is a concurrent map besides. Java's has readers that lock nothing, and so has papaya's.

#![expect(clippy::disallowed_types, reason = "the lock is what is compared with")]

use std::sync::Arc;

use foldhash::quality::RandomState;
use waypost::{protocol::name::TopicName, registry::command::RegisterBroker, time::Timestamp};

use super::{
    Design, LiveKey, Reader,
    tables::{BrokerData, Live, Queues, Tables, write_route},
};

/// A read-write lock around the tables.
pub(crate) trait Lock: Default + Send + Sync + 'static {
    fn read<R>(&self, read: impl FnOnce(&Tables) -> R) -> R;
    fn write<R>(&self, write: impl FnOnce(&mut Tables) -> R) -> R;
}

/// The standard library's.
#[derive(Default)]
pub(crate) struct StdLock(std::sync::RwLock<Tables>);

impl Lock for StdLock {
    fn read<R>(&self, read: impl FnOnce(&Tables) -> R) -> R {
        read(&self.0.read().expect("nobody panics"))
    }

    fn write<R>(&self, write: impl FnOnce(&mut Tables) -> R) -> R {
        write(&mut self.0.write().expect("nobody panics"))
    }
}

/// The one that prefers writers: no stream of readers keeps one out.
#[derive(Default)]
pub(crate) struct ParkingLotLock(parking_lot::RwLock<Tables>);

impl Lock for ParkingLotLock {
    fn read<R>(&self, read: impl FnOnce(&Tables) -> R) -> R {
        read(&self.0.read())
    }

    fn write<R>(&self, write: impl FnOnce(&mut Tables) -> R) -> R {
        write(&mut self.0.write())
    }
}

#[derive(Default)]
struct Shared<L> {
    tables: L,
    /// brokerLiveTable
    live: papaya::HashMap<LiveKey, Live, RandomState>,
}

pub(crate) struct Locked<L>(Arc<Shared<L>>);

impl<L: Lock> Locked<L> {
    pub(crate) fn empty() -> Self {
        Self(Arc::default())
    }
}

impl<L: Lock> Design for Locked<L> {
    fn reader(&self) -> Box<dyn Reader> {
        Box::new(LockedReader(Arc::clone(&self.0)))
    }

    fn heartbeat(&mut self, broker: &LiveKey, now: Timestamp) {
        if let Some(live) = self.0.live.pin().get(broker) {
            live.last_heartbeat.refresh(now);
        }
    }

    fn register(&mut self, registration: Box<RegisterBroker>, now: Timestamp) {
        let Shared { tables, live } = &*self.0;
        tables.write(|tables| {
            let live = live.pin();
            let key = LiveKey::of(&registration);
            let stored = live.get(&key).map(|live| live.data_version);
            tables.register(&registration, stored);
            live.insert(key, Live::new(&registration, now));
        });
    }
}

/// What a look-up takes out of the lock: `TopicRouteData`.
struct TopicRoute {
    queues: Arc<Queues>,
    brokers: Vec<BrokerData>,
    filter_servers: Vec<(Arc<str>, Arc<[String]>)>,
}

impl TopicRoute {
    fn pick_up(tables: &Tables, topic: &TopicName) -> Option<Self> {
        let queues = Arc::clone(tables.topics.get(topic)?);
        let brokers: Vec<BrokerData> = queues
            .iter()
            .filter_map(|data| tables.brokers.get(&data.broker_name))
            .map(|broker| BrokerData::clone(broker))
            .collect();
        let filter_servers = brokers
            .iter()
            .flat_map(|broker| tables.filter_servers_of(broker))
            .map(|(addr, servers)| (Arc::clone(addr), Arc::clone(servers)))
            .collect();
        Some(Self {
            queues,
            brokers,
            filter_servers,
        })
    }
}

struct LockedReader<L>(Arc<Shared<L>>);

impl<L: Lock> Reader for LockedReader<L> {
    fn look_up(&mut self, topic: &str, out: &mut Vec<u8>) -> bool {
        let topic = TopicName::from(topic);
        let route = self
            .0
            .tables
            .read(|tables| TopicRoute::pick_up(tables, &topic));
        let Some(route) = route else {
            return false;
        };
        write_route(
            out,
            &route.queues,
            |list| route.brokers.iter().for_each(|broker| list.broker(broker)),
            |object| {
                for (addr, servers) in &route.filter_servers {
                    object.filter_servers(addr, servers);
                }
            },
        );
        true
    }
}
