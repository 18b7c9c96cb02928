//! What a reader may ask of a [`RouteSnapshot`]: each answer is a concatenation of pieces encoded when they last changed.

use std::{
    collections::BTreeSet,
    ops::{Deref, DerefMut},
};

use super::{
    RouteSnapshot,
    entry::{BrokerEntry, Slot, TopicEntry, separate},
    kv_config::ORDER_TOPIC_CONFIG,
    snapshot::BrokerList,
};
use crate::{
    limits::LOOK_AHEAD_MAX,
    protocol::{
        body,
        fastjson::{self, Dialect},
    },
};

pub(crate) use super::entry::{BrokerLive, SlotList};

/// Topics through which brokers read the true membership of their group: never rewritten (spec 3.8 step 5).
const SYNC_BROKER_MEMBER_PREFIX: &[u8] = b"rmq_sys_SYNC_BROKER_MEMBER_";

/// `topicSysFlag` bit: unit topic (spec 2.2).
pub const FLAG_UNIT: i32 = 1;
/// `topicSysFlag` bit: topic with unit subscription (spec 2.2).
pub const FLAG_UNIT_SUB: i32 = 2;

/// How a route is to be shown.
#[derive(Debug, Clone, Copy)]
pub struct RouteView<'a> {
    /// Which JSON.
    pub dialect: Dialect,
    /// Only brokers of this zone, and groups without a master (spec 7.2).
    pub zone: Option<&'a str>,
}

/// A topic that has a route.
#[derive(Debug, Clone, Copy)]
pub struct Route<'a> {
    snapshot: &'a RouteSnapshot,
    topic: &'a TopicEntry,
}

/// What [`RouteSnapshot::routes`] found, in the order of the names.
#[derive(Debug, Default)]
pub struct Routes<'a> {
    found: [Option<Route<'a>>; LOOK_AHEAD_MAX],
    len: usize,
}

impl Routes<'_> {
    /// Of no names.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
}

impl<'a> Deref for Routes<'a> {
    type Target = [Option<Route<'a>>];

    fn deref(&self) -> &Self::Target {
        &self.found[..self.len]
    }
}

impl DerefMut for Routes<'_> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.found[..self.len]
    }
}

impl RouteSnapshot {
    /// The route of a topic; `None` is answered with `TOPIC_NOT_EXIST` (spec 2.7).
    #[must_use]
    pub fn route(&self, topic: &str) -> Option<Route<'_>> {
        self.route_of(self.topic(topic.as_bytes())?)
    }

    /// The routes of the first [`LOOK_AHEAD_MAX`] of these topics, looked up together so that their cache misses overlap. A
    /// missing name has none.
    #[must_use]
    pub fn routes<'t>(&self, topics: impl Iterator<Item = Option<&'t str>>) -> Routes<'_> {
        let mut keys = [(0, &[][..]); LOOK_AHEAD_MAX];
        let mut named = [false; LOOK_AHEAD_MAX];
        let mut routes = Routes::new();
        for ((key, named), topic) in keys.iter_mut().zip(&mut named).zip(topics) {
            let name = topic.unwrap_or_default().as_bytes();
            *key = (self.hasher.hash(name), name);
            *named = topic.is_some();
            routes.len += 1;
        }
        let found = (self.topics).get_each::<LOOK_AHEAD_MAX>(&keys[..routes.len]);
        for ((route, topic), named) in routes.found.iter_mut().zip(found).zip(named) {
            *route = topic
                .filter(|_| named)
                .and_then(|topic| self.route_of(topic));
        }
        routes
    }

    fn route_of<'s>(&'s self, topic: &'s TopicEntry) -> Option<Route<'s>> {
        (!topic.slots.is_empty()).then_some(Route {
            snapshot: self,
            topic,
        })
    }

    /// `ClusterInfo` (spec 2.8): the raw tables, always in plain JSON.
    pub fn write_cluster_info(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"{\"brokerAddrTable\":{");
        for (position, broker) in self.brokers.sorted().into_iter().enumerate() {
            separate(out, position);
            fastjson::write_string(out, &broker.name, Dialect::Plain);
            out.push(b':');
            out.extend_from_slice(broker.texts.data.get(Dialect::Plain));
        }
        out.extend_from_slice(b"},\"clusterAddrTable\":{");
        for (position, (cluster, brokers)) in self.brokers.clusters().into_iter().enumerate() {
            separate(out, position);
            fastjson::write_string(out, cluster, Dialect::Plain);
            out.extend_from_slice(b":[");
            for (position, broker) in brokers.into_iter().enumerate() {
                separate(out, position);
                fastjson::write_string(out, broker, Dialect::Plain);
            }
            out.push(b']');
        }
        out.extend_from_slice(b"}}");
    }

    /// `BrokerMemberGroup` (spec 2.9): raw ids, the names as asked for.
    pub fn write_member_group(
        &self,
        cluster: Option<&str>,
        broker_name: Option<&str>,
        out: &mut Vec<u8>,
    ) {
        out.extend_from_slice(b"{\"brokerMemberGroup\":{\"brokerAddrs\":");
        match broker_name.and_then(|name| self.broker(name)) {
            Some(group) => group.write_addrs(out, Dialect::Plain, None),
            None => out.extend_from_slice(b"{}"),
        }
        for (label, text) in [
            (&b",\"brokerName\":"[..], broker_name),
            (b",\"cluster\":", cluster),
        ] {
            if let Some(text) = text {
                out.extend_from_slice(label);
                fastjson::write_string(out, text, Dialect::Plain);
            }
        }
        out.extend_from_slice(b"}}");
    }

    /// 206: every topic with a route, in no particular order.
    pub fn write_all_topics(&self, out: &mut Vec<u8>) {
        self.write_topics(|_| true, out);
    }

    /// 224: the topics that some broker of the cluster holds.
    pub fn write_topics_of_cluster(&self, cluster: Option<&str>, out: &mut Vec<u8>) {
        let brokers = self
            .brokers
            .iter()
            .filter(|broker| Some(&*broker.cluster) == cluster);
        let members: BTreeSet<_> = brokers.map(|broker| broker.index).collect();
        self.write_topics(
            |topic| {
                topic
                    .slots
                    .iter()
                    .any(|slot| members.contains(&slot.broker))
            },
            out,
        );
    }

    /// 311, 312, 313: the topics whose first broker shows a `topicSysFlag` with these bits and without those.
    pub fn write_topics_by_flag(&self, with: i32, without: i32, out: &mut Vec<u8>) {
        let wanted = |slot: &Slot| {
            let flag = slot.queues.declared.topic_sys_flag;
            flag & with == with && flag & without == 0
        };
        self.write_topics(|topic| topic.slots.first().is_some_and(wanted), out);
    }

    fn write_topics(&self, wanted: impl Fn(&TopicEntry) -> bool, out: &mut Vec<u8>) {
        let topics = self
            .topics
            .iter()
            .filter(|topic| !topic.slots.is_empty() && wanted(topic));
        body::topic_list_body(out, topics.map(|topic| topic.name.as_str()), None);
    }

    /// 304: all cluster and broker names, and the address of a broker that knows the other system topics, a master if there
    /// is one (spec 2.11).
    pub fn write_system_topics(&self, out: &mut Vec<u8>) {
        let brokers = self.brokers.sorted();
        let clusters = self.brokers.clusters();
        let master = brokers.iter().find(|broker| broker.has_master());
        let addr = master
            .or(brokers.first())
            .and_then(|broker| broker.first())
            .map(|(_, addr)| &**addr);
        let names = clusters
            .keys()
            .copied()
            .chain(brokers.iter().map(|broker| &*broker.name));
        body::topic_list_body(out, names, addr);
    }
}

/// What the bodies of routes are made of beside their slots, at one moment: as long as it is the same, a body stays right.
#[derive(Debug)]
pub struct Basis {
    brokers: BrokerList,
    support_acting_master: bool,
}

impl Basis {
    /// The basis of a route.
    #[must_use]
    pub fn new(route: &Route<'_>) -> Self {
        Self {
            brokers: route.snapshot.brokers.clone(),
            support_acting_master: route.snapshot.settings.support_acting_master,
        }
    }

    /// Whether it is the route's.
    #[must_use]
    pub fn is_of(&self, route: &Route<'_>) -> bool {
        self.brokers.is_same(&route.snapshot.brokers)
            && self.support_acting_master == route.snapshot.settings.support_acting_master
    }
}

impl Route<'_> {
    /// The brokers and queues, if the body depends on nothing else but its [`Basis`] and the dialect.
    pub(crate) fn slots_if_all_that_counts(&self, view: RouteView<'_>) -> Option<&SlotList> {
        let plain = view.zone.is_none()
            && self.topic.mappings.is_empty()
            && !self.snapshot.settings.order_message_enable
            && !self.shows_true_members();
        plain.then_some(&self.topic.slots)
    }

    fn shows_true_members(&self) -> bool {
        let name = self.topic.name.as_bytes();
        name.starts_with(SYNC_BROKER_MEMBER_PREFIX)
    }

    /// `TopicRouteData` (spec 2.7, 3.8).
    pub fn write(&self, view: RouteView<'_>, out: &mut Vec<u8>) {
        let dialect = view.dialect;
        out.extend_from_slice(b"{\"brokerDatas\":[");
        self.write_each(view, out, |slot, broker, out| {
            out.extend_from_slice(self.broker_data(slot, broker).get(dialect))
        });
        out.extend_from_slice(b"],\"filterServerTable\":{");
        self.write_each(view, out, |_, broker, out| {
            out.extend_from_slice(broker.texts.filter_servers.get(dialect))
        });
        out.push(b'}');
        self.write_order_topic_conf(dialect, out);
        out.extend_from_slice(b",\"queueDatas\":[");
        self.write_each(view, out, |slot, _, out| {
            out.extend_from_slice(slot.queues.text.get(dialect));
        });
        out.push(b']');
        self.write_mappings(dialect, out);
        out.push(b'}');
    }

    /// Writes a comma-separated piece for each broker in view; empty pieces leave no comma.
    fn write_each(
        &self,
        view: RouteView<'_>,
        out: &mut Vec<u8>,
        piece: impl Fn(&Slot, &BrokerEntry, &mut Vec<u8>),
    ) {
        let start = out.len();
        for slot in &*self.topic.slots {
            let broker = self.snapshot.brokers.at(slot.broker);
            if view
                .zone
                .is_some_and(|zone| !self.is_in_zone(slot, broker, zone))
            {
                continue;
            }
            let before = out.len();
            if before > start {
                out.push(b',');
            }
            let empty = out.len();
            piece(slot, broker, out);
            if out.len() == empty {
                out.truncate(before);
            }
        }
    }

    /// A slave that may act as master is shown as id 0, unless the topic can still be written (spec 3.8 step 5).
    fn broker_data<'b>(&self, slot: &Slot, broker: &'b BrokerEntry) -> &'b super::entry::Dialects {
        self.acting(slot, broker).unwrap_or(&broker.texts.data)
    }

    /// The group with its acting master, if it is to be shown so.
    fn acting<'b>(
        &self,
        slot: &Slot,
        broker: &'b BrokerEntry,
    ) -> Option<&'b super::entry::Dialects> {
        let rewritten = self.snapshot.settings.support_acting_master
            && !slot.queues.is_writable()
            && !self.shows_true_members();
        broker.texts.acting.as_ref().filter(|_| rewritten)
    }

    /// Groups that are shown without a master are shown to every zone (spec 7.2).
    fn is_in_zone(&self, slot: &Slot, broker: &BrokerEntry, zone: &str) -> bool {
        // Ends at the first letter that differs, so a long name from a peer costs no more than the broker's own.
        let same = |name: &str| folded(name).eq(folded(zone));
        let has_master = broker.has_master() || self.acting(slot, broker).is_some();
        !has_master || broker.zone_name.as_deref().is_some_and(same)
    }

    fn write_order_topic_conf(&self, dialect: Dialect, out: &mut Vec<u8>) {
        if !self.snapshot.settings.order_message_enable {
            return;
        }
        if let Some(conf) = self
            .snapshot
            .kv
            .get(ORDER_TOPIC_CONFIG, self.topic.name.as_str())
        {
            out.extend_from_slice(b",\"orderTopicConf\":");
            fastjson::write_string(out, conf, dialect);
        }
    }

    fn write_mappings(&self, dialect: Dialect, out: &mut Vec<u8>) {
        if self.topic.mappings.is_empty() {
            return;
        }
        out.extend_from_slice(b",\"topicQueueMappingByBroker\":{");
        for (position, mapping) in self.topic.mappings.iter().enumerate() {
            separate(out, position);
            out.extend_from_slice(mapping.text.get(dialect));
        }
        out.push(b'}');
    }
}

/// The letters of a name without their case.
fn folded(name: &str) -> impl Iterator<Item = char> {
    name.chars().flat_map(char::to_lowercase)
}
