//! Snapshots the plain way: a registration that changes something clones the whole tables, changes the clone and swaps it in.

use std::sync::Arc;

use arc_swap::ArcSwap;
use waypost::{protocol::name::TopicName, registry::command::RegisterBroker, time::Timestamp};

use super::{
    Design, LiveKey, Reader,
    tables::{BrokerData, Live, Map, Tables, is_up_to_date, write_route},
};

#[derive(Clone, Default)]
struct Whole {
    tables: Tables,
    /// brokerLiveTable
    live: Map<LiveKey, Arc<Live>>,
}

impl Whole {
    /// Whether a registration would change nothing but the moment of the last heartbeat.
    fn has(&self, registration: &RegisterBroker) -> bool {
        let Self { tables, live } = self;
        let (name, body) = (&registration.broker_name, &registration.body);
        let key = LiveKey::of(registration);
        let group = tables.brokers.get(name).map(|group| &**group);
        let servers = tables
            .filter_servers
            .get(&key)
            .map_or(&[][..], |servers| servers);
        group == Some(&BrokerData::registered(group, registration))
            && body
                .filter_servers
                .as_deref()
                .is_none_or(|sent| sent == servers)
            && live
                .get(&key)
                .is_some_and(|live| live.data_version == body.data_version)
            && body.topics.iter().all(|topic| {
                let queues = tables.topics.get(&topic.name);
                queues.is_some_and(|queues| is_up_to_date(queues, name, topic.settings, false))
            })
    }
}

pub(crate) struct Cloned(Arc<ArcSwap<Whole>>);

impl Cloned {
    pub(crate) fn empty() -> Self {
        Self(Arc::default())
    }
}

impl Design for Cloned {
    fn reader(&self) -> Box<dyn Reader> {
        Box::new(SwapReader(Arc::clone(&self.0)))
    }

    fn heartbeat(&mut self, broker: &LiveKey, now: Timestamp) {
        if let Some(live) = self.0.load().live.get(broker) {
            live.last_heartbeat.refresh(now);
        }
    }

    fn register(&mut self, registration: Box<RegisterBroker>, now: Timestamp) {
        let current = self.0.load_full();
        if current.has(&registration) {
            return self.heartbeat(&LiveKey::of(&registration), now);
        }
        let mut next = Whole::clone(&current);
        // Not held on to, so that the swap frees it unless a reader has it.
        drop(current);
        let key = LiveKey::of(&registration);
        let stored = next.live.get(&key).map(|live| live.data_version);
        next.tables.register(&registration, stored);
        next.live
            .insert(key, Arc::new(Live::new(&registration, now)));
        self.0.store(Arc::new(next));
    }
}

struct SwapReader(Arc<ArcSwap<Whole>>);

impl Reader for SwapReader {
    fn look_up(&mut self, topic: &str, out: &mut Vec<u8>) -> bool {
        let whole = self.0.load();
        let tables = &whole.tables;
        let Some(queues) = tables.topics.get(&TopicName::from(topic)) else {
            return false;
        };
        let brokers = || {
            queues
                .iter()
                .filter_map(|data| tables.brokers.get(&data.broker_name))
        };
        write_route(
            out,
            queues,
            |list| brokers().for_each(|broker| list.broker(broker)),
            |object| {
                for (addr, servers) in brokers().flat_map(|broker| tables.filter_servers_of(broker))
                {
                    object.filter_servers(addr, servers);
                }
            },
        );
        true
    }
}
