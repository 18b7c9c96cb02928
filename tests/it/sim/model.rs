//! The rules once more, naively: plain maps, no sharing, no batching, no index. Written from `docs/protocol.md` and
//! `docs/deviations.md`, and not from `src/registry`, which is what it is held against.

use std::collections::{BTreeMap, BTreeSet};

use waypost::ids::ConnectionId;

use super::{
    answer::Answer,
    request::{Name, Registration, StaticTopic, Topic, Version},
    settings::Settings,
    stored::{Stored, Ticket},
};

const MASTER: i64 = 0;
const WRITE: i32 = 2;
const READ_WRITE: i32 = 6;
const ORDER_TOPICS: Name = "ORDER_TOPIC_CONFIG";

/// What a heartbeat asks for when its connection is not known to carry the broker (D-16).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Binding {
    pub(super) addr: Name,
    /// The life of the address that the heartbeat was for.
    pub(super) life: u64,
}

/// A notice (905) that somebody must get: to whom, `minBrokerId`, `minBrokerAddr`, and the other fields.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Notice {
    pub(super) to: BTreeSet<String>,
    pub(super) fields: BTreeMap<String, String>,
}

/// `BrokerData` (spec 3.1).
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Group {
    pub(super) cluster: Name,
    pub(super) zone: Option<Name>,
    pub(super) acting: bool,
    pub(super) addrs: BTreeMap<i64, Name>,
    pub(super) filter_servers: BTreeMap<Name, Vec<Name>>,
}

impl Group {
    /// The member that leads; a negative id is that of a candidate and comes last (D-24).
    fn first(&self) -> Option<(i64, Name)> {
        let members = self.addrs.iter().map(|(id, addr)| (*id, *addr));
        members.min_by_key(|(id, _)| (*id < 0, *id))
    }

    fn has_master(&self) -> bool {
        self.addrs.contains_key(&MASTER)
    }

    /// The ids as a reader of a topic sees them: with an acting master the smallest slave is shown as 0 (spec 3.8 step 5).
    pub(super) fn shown(&self, acts: bool) -> BTreeMap<i64, Name> {
        let mut shown = self.addrs.clone();
        let slave = shown.keys().copied().find(|id| *id > MASTER);
        if let Some(slave) = slave.filter(|_| acts && self.acting && !self.has_master()) {
            let addr = shown.remove(&slave).expect("it was just found");
            shown.insert(MASTER, addr);
        }
        shown
    }
}

/// `QueueData`, and what the broker itself said.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Queue {
    pub(super) declared: Topic,
    pub(super) perm: i32,
}

impl Queue {
    pub(super) fn is_writable(&self) -> bool {
        self.perm & WRITE != 0
    }
}

/// `BrokerLiveInfo`.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Live {
    pub(super) cluster: Name,
    pub(super) name: Name,
    pub(super) version: Version,
    ha_addr: String,
    timeout: u64,
    last: u64,
    /// Another one whenever the connection it registered over is another.
    pub(super) life: u64,
    registering: Option<ConnectionId>,
    beating: Vec<ConnectionId>,
}

impl Live {
    pub(super) fn connections(&self) -> impl Iterator<Item = ConnectionId> + '_ {
        self.registering.iter().chain(&self.beating).copied()
    }
}

/// See the module's documentation.
#[derive(Debug, Clone)]
pub(super) struct Model {
    pub(super) groups: BTreeMap<Name, Group>,
    pub(super) topics: BTreeMap<Name, BTreeMap<Name, Queue>>,
    /// Topic → the name it is shown under → the group that registered it, and what it says.
    pub(super) mappings: BTreeMap<Name, BTreeMap<Name, (Name, StaticTopic)>>,
    pub(super) live: BTreeMap<Name, Live>,
    pub(super) stored: Stored,
    pub(super) started: u64,
    /// Nobody is missed any more.
    pub(super) draining: bool,
    /// Those who ask are sent away.
    pub(super) says_goodbye: bool,
    asked: BTreeSet<(ConnectionId, u64)>,
    last_life: u64,
    /// The latest moment at which silent brokers must be looked for.
    pub(super) scan_by: Option<u64>,
    pub(super) notices: Vec<Notice>,
    /// Several members of a group left at once, in an order that is nobody's business: so are their notices.
    pub(super) notices_are_open: bool,
}

impl Model {
    pub(super) fn new(settings: Settings, started: u64) -> Self {
        Self {
            groups: BTreeMap::new(),
            topics: BTreeMap::new(),
            mappings: BTreeMap::new(),
            live: BTreeMap::new(),
            stored: Stored::new(settings),
            started,
            draining: false,
            says_goodbye: false,
            asked: BTreeSet::new(),
            last_life: 0,
            scan_by: None,
            notices: Vec::new(),
            notices_are_open: false,
        }
    }

    /// Whether no question tells the two apart. While route queries are refused for a while, time does.
    pub(super) fn shows_the_same(&self, other: &Self) -> bool {
        let waits = self.stored.settings.is("needWaitForService");
        let stored = (&self.stored.kv, &self.stored.settings);
        !waits
            && stored == (&other.stored.kv, &other.stored.settings)
            && self.groups == other.groups
            && self.topics == other.topics
            && self.mappings == other.mappings
            && self.live.len() == other.live.len()
    }

    /// Spec 3.3, with D-04, D-05, D-07, D-11, D-14, D-15 and one owner for an address.
    pub(super) fn register(
        &mut self,
        broker: &Registration,
        over: ConnectionId,
        now: u64,
    ) -> Answer {
        let Registration {
            cluster,
            name,
            id,
            addr,
            ..
        } = *broker;
        let group = self.groups.get(name);
        let holder = group.and_then(|group| group.addrs.get(&id)).copied();
        if let Some(holder) = holder.filter(|holder| *holder != addr)
            && let Some(live) = self.live.get(holder).filter(|live| live.cluster == cluster)
            && live.version.0 > broker.version.0
        {
            self.depart(addr);
            return self.registered();
        }
        if holder.is_none() && broker.topics.len() == 1 {
            return Answer::error(1, "register broker failed");
        }
        let in_use = group.is_some_and(|group| group.cluster != cluster);
        if in_use && self.stored.settings.text("waypost.brokerNameConflict") == "reject" {
            return Answer::failure(1);
        }
        if self.live.get(addr).is_some_and(|live| live.name != name) {
            self.depart(addr);
        }
        let first_before = self.groups.get(name).and_then(Group::first);
        let is_new = holder.is_none();
        self.join(broker);
        self.take_topics(broker, is_new);
        self.keep_alive(broker, over, now);
        if first_before.is_some_and(|(first, _)| (id < 0, id) < (first < 0, first)) {
            self.notify_of_arrival(broker);
        }
        self.with_master(self.registered(), broker)
    }

    fn join(&mut self, broker: &Registration) {
        let group = self.groups.entry(broker.name).or_default();
        group.cluster = broker.cluster;
        group.zone = broker.zone;
        group.acting = broker.acting == Some(true);
        group
            .addrs
            .retain(|id, addr| *id == broker.id || *addr != broker.addr);
        group.addrs.insert(broker.id, broker.addr);
        match broker.filter_servers.as_deref() {
            None => {}
            Some([]) => _ = group.filter_servers.remove(broker.addr),
            Some(servers) => _ = group.filter_servers.insert(broker.addr, servers.to_vec()),
        }
        let members: BTreeSet<Name> = group.addrs.values().copied().collect();
        group
            .filter_servers
            .retain(|addr, _| members.contains(addr));
    }

    /// Spec 3.3 steps 9 and 10.
    fn take_topics(&mut self, broker: &Registration, is_new: bool) {
        let group = &self.groups[broker.name];
        let leads = group.first().is_some_and(|(first, _)| first == broker.id);
        let is_master = broker.id == MASTER;
        let is_prime_slave = broker.acting.is_some() && !is_master && leads;
        if !is_master && !is_prime_slave {
            return;
        }
        let known = self
            .live
            .get(broker.addr)
            .filter(|live| live.cluster == broker.cluster);
        let all = is_new || known.is_none_or(|live| live.version != broker.version);
        let wiped = if is_prime_slave && group.acting {
            WRITE
        } else {
            0
        };
        if self.stored.settings.is("deleteTopicWithBrokerRegistration")
            && broker.mappings.is_empty()
        {
            let listed: BTreeSet<Name> = broker.topics.iter().map(|topic| topic.name).collect();
            self.leave_topics(broker.name, |topic| !listed.contains(topic));
        }
        for topic in &broker.topics {
            let queues = self.topics.entry(topic.name).or_default();
            let fresh = Queue {
                declared: *topic,
                perm: topic.perm & !wiped,
            };
            let queue = match queues.get(broker.name) {
                Some(stored) if !all => as_redeclared(*stored, fresh),
                _ => fresh,
            };
            queues.insert(broker.name, queue);
        }
        for mapping in &broker.mappings {
            let shown_as = mapping.shown_as.unwrap_or(broker.name);
            let shown = StaticTopic {
                shown_as: Some(shown_as),
                ..*mapping
            };
            let of_topic = self.mappings.entry(mapping.topic).or_default();
            of_topic.insert(shown_as, (broker.name, shown));
        }
    }

    fn keep_alive(&mut self, broker: &Registration, over: ConnectionId, now: u64) {
        let timeout = broker
            .timeout_millis
            .and_then(|millis| u64::try_from(millis).ok());
        let timeout = timeout.filter(|millis| *millis > 0).unwrap_or(120_000);
        let known = self.live.get(broker.addr);
        let same = known.filter(|live| live.registering == Some(over));
        let (life, beating) = match same {
            Some(live) => (live.life, live.beating.clone()),
            None => {
                self.last_life += 1;
                (self.last_life, Vec::new())
            }
        };
        let live = Live {
            cluster: broker.cluster,
            name: broker.name,
            version: broker.version,
            ha_addr: broker.ha_addr(),
            timeout,
            last: now,
            life,
            registering: Some(over),
            beating,
        };
        self.live.insert(broker.addr, live);
        let scan_by = now + self.scan_interval();
        self.scan_by.get_or_insert(scan_by);
    }

    fn registered(&self) -> Answer {
        let answers = self.stored.settings.is("returnOrderTopicConfigToBroker");
        match self.stored.kv.get(ORDER_TOPICS).filter(|_| answers) {
            Some(table) => Answer::ok().table(table),
            None => Answer::ok(),
        }
    }

    /// A slave learns its master, if that is live under the same cluster (Q40).
    fn with_master(&self, answer: Answer, broker: &Registration) -> Answer {
        let master = self.groups[broker.name].addrs.get(&MASTER).copied();
        let Some(master) = master.filter(|_| broker.id != MASTER) else {
            return answer;
        };
        match self
            .live
            .get(master)
            .filter(|live| live.cluster == broker.cluster)
        {
            Some(live) => answer
                .ext("masterAddr", master)
                .ext("haServerAddr", &live.ha_addr),
            None => answer,
        }
    }

    /// Spec 2.4, 3.5: by address, whatever the id; only the broker that is named (D-06).
    pub(super) fn unregister(&mut self, cluster: Name, name: Name, addr: Name) -> Answer {
        if self
            .live
            .get(addr)
            .is_some_and(|live| live.cluster == cluster && live.name == name)
        {
            self.depart(addr);
        }
        Answer::ok()
    }

    /// Takes an address out of every table; with its last address goes the group, and with that its topics and mappings.
    fn depart(&mut self, addr: Name) {
        let Some(live) = self.live.remove(addr) else {
            return;
        };
        let Some(group) = self.groups.get_mut(live.name) else {
            return;
        };
        if !group.addrs.values().any(|member| *member == addr) {
            return;
        }
        let led = group.first().is_some_and(|(_, first)| first == addr);
        group.addrs.retain(|_, member| *member != addr);
        group.filter_servers.remove(addr);
        if group.addrs.is_empty() {
            self.groups.remove(live.name);
            self.leave_topics(live.name, |_| true);
            return;
        }
        let acting = group.acting;
        if acting && !group.has_master() {
            self.change_perm(live.name, |perm| perm & !WRITE);
        }
        if acting && led {
            let everyone = self.groups[live.name].addrs.values().copied().collect();
            self.notify(
                live.name,
                everyone,
                [("offlineBrokerAddr", addr.to_string())],
            );
        }
    }

    /// Takes a group out of topics, queues and mappings both.
    fn leave_topics(&mut self, name: Name, which: impl Fn(Name) -> bool) {
        for (topic, queues) in &mut self.topics {
            if which(topic) {
                queues.remove(name);
            }
        }
        self.topics.retain(|_, queues| !queues.is_empty());
        for (topic, mappings) in &mut self.mappings {
            if which(topic) {
                mappings.retain(|_, (owner, _)| *owner != name);
            }
        }
        self.mappings.retain(|_, mappings| !mappings.is_empty());
    }

    fn change_perm(&mut self, name: Name, perm: impl Fn(i32) -> i32) -> usize {
        let queues = self
            .topics
            .values_mut()
            .filter_map(|queues| queues.get_mut(name));
        queues.map(|queue| queue.perm = perm(queue.perm)).count()
    }

    /// Spec 2.10.
    pub(super) fn wipe_write_perm(&mut self, name: Name) -> Answer {
        let count = self.change_perm(name, |perm| perm & !WRITE);
        Answer::ok().ext("wipeTopicCount", &count.to_string())
    }

    /// Spec 2.10: exactly 6 (Q11).
    pub(super) fn add_write_perm(&mut self, name: Name) -> Answer {
        let count = self.change_perm(name, |_| READ_WRITE);
        Answer::ok().ext("addTopicCount", &count.to_string())
    }

    /// Spec 2.12; the mappings go along (`docs/deviations.md`).
    pub(super) fn delete_topic(&mut self, topic: Name, cluster: Option<Name>) -> Answer {
        let cluster = cluster.filter(|cluster| !cluster.is_empty());
        let members = self.groups.iter();
        let members =
            members.filter(|(_, group)| cluster.is_none_or(|cluster| group.cluster == cluster));
        let members: Vec<Name> = members.map(|(name, _)| *name).collect();
        for name in members {
            self.leave_topics(name, |other| other == topic);
        }
        Answer::ok()
    }

    /// Spec 2.13.
    pub(super) fn register_topic(&mut self, topic: Name, entries: &[(Name, i32, i32)]) -> Answer {
        let known = entries
            .iter()
            .take_while(|(name, ..)| self.groups.contains_key(name));
        let known: Vec<_> = known.collect();
        if known.len() == entries.len() || self.topics.contains_key(topic) {
            for (name, perm, queues) in known {
                let declared = Topic {
                    name: topic,
                    perm: *perm,
                    queues: *queues,
                    flag: 0,
                };
                let of_topic = self.topics.entry(topic).or_default();
                of_topic.insert(
                    name,
                    Queue {
                        declared,
                        perm: *perm,
                    },
                );
            }
        }
        Answer::ok()
    }

    /// Spec 2.5 and 2.6: what there is to tell, and whether the connection is to be bound (D-16): it asks once in a life.
    pub(super) fn heartbeat(
        &mut self,
        cluster: Name,
        addr: Name,
        over: ConnectionId,
        now: u64,
    ) -> (Option<Version>, Option<Binding>) {
        let Some(live) = self
            .live
            .get_mut(addr)
            .filter(|live| live.cluster == cluster)
        else {
            return (None, None);
        };
        live.last = live.last.max(now);
        let binding = Binding {
            addr,
            life: live.life,
        };
        let is_first = self.asked.insert((over, live.life));
        (Some(live.version), is_first.then_some(binding))
    }

    /// The latest eight connections that heartbeat count beside the registering one.
    pub(super) fn bind(&mut self, binding: Binding, over: ConnectionId) {
        let live = self.live.get_mut(binding.addr);
        let Some(live) = live.filter(|live| live.life == binding.life) else {
            return;
        };
        if live.connections().any(|other| other == over) {
            return;
        }
        if live.beating.len() == 8 {
            live.beating.remove(0);
        }
        live.beating.push(over);
    }

    /// Spec 3.6, Q7: every broker that lives by this connection alone leaves.
    pub(super) fn closed(&mut self, connection: ConnectionId) {
        let mut orphans = Vec::new();
        for (addr, live) in &mut self.live {
            let lived_by_it = live.connections().any(|other| other == connection);
            live.registering.take_if(|other| *other == connection);
            live.beating.retain(|other| *other != connection);
            if lived_by_it && live.connections().next().is_none() {
                orphans.push(*addr);
            }
        }
        if !self.draining {
            self.depart_together(&orphans);
        }
    }

    fn depart_together(&mut self, addrs: &[Name]) {
        let names: BTreeSet<Name> = addrs.iter().map(|addr| self.live[addr].name).collect();
        self.notices_are_open |= names.len() < addrs.len();
        for addr in addrs {
            self.depart(addr);
        }
    }

    /// Spec 3.4: those that are silent for longer than their timeout leave. Returns the connections to close: those of theirs
    /// that no other broker lives by.
    pub(super) fn scan(&mut self, now: u64) -> BTreeSet<ConnectionId> {
        self.scan_by = None;
        if self.draining {
            return BTreeSet::new();
        }
        let silent = |live: &Live| live.last.saturating_add(live.timeout) < now;
        let silent = self.live.iter().filter(|(_, live)| silent(live));
        let silent: Vec<Name> = silent.map(|(addr, _)| *addr).collect();
        let theirs = silent.iter().flat_map(|addr| self.live[addr].connections());
        let mut theirs: BTreeSet<ConnectionId> = theirs.collect();
        self.depart_together(&silent);
        for live in self.live.values() {
            live.connections()
                .for_each(|other| _ = theirs.remove(&other));
        }
        if !self.live.is_empty() {
            self.scan_by = Some(now + self.scan_interval());
        }
        theirs
    }

    /// The configuration file is written, or could not be. Another interval counts from now.
    pub(super) fn settings_written(&mut self, succeeded: bool, now: u64) -> (Ticket, Answer) {
        let outcome = self.stored.settings_written(succeeded);
        if succeeded && self.scan_by.is_some() {
            self.scan_by = Some(now + self.scan_interval());
        }
        outcome
    }

    fn scan_interval(&self) -> u64 {
        let interval = self.stored.settings.text("scanNotActiveBrokerInterval");
        interval.parse().expect("only numbers are stored")
    }

    /// Spec 3.7: a group of one is told itself, else everyone but the new minimum.
    fn notify_of_arrival(&mut self, broker: &Registration) {
        let members = self.groups[broker.name].addrs.values().copied();
        let mut to: BTreeSet<Name> = members.collect();
        if to.len() > 1 {
            to.remove(broker.addr);
        }
        self.notify(broker.name, to, [("haBrokerAddr", broker.ha_addr())]);
    }

    fn notify(&mut self, name: Name, to: BTreeSet<Name>, cause: [(&str, String); 1]) {
        let Some((id, addr)) = self.groups[name].first() else {
            return;
        };
        if self.stored.settings.is("notifyMinBrokerIdChanged") {
            let minimum = [
                ("minBrokerId", id.to_string()),
                ("minBrokerAddr", addr.to_string()),
            ];
            let fields = cause.into_iter().chain(minimum);
            self.notices.push(Notice {
                to: to.into_iter().map(str::to_string).collect(),
                fields: fields
                    .map(|(name, value)| (name.to_string(), value))
                    .collect(),
            });
        }
    }
}

/// Another declaration under an equal data version (D-11): it counts, but what has been done to the permission meanwhile stays
/// done. A permission as it was declared has had nothing done to it.
fn as_redeclared(stored: Queue, fresh: Queue) -> Queue {
    if stored.declared == fresh.declared {
        return stored;
    }
    let untouched = stored.declared.perm;
    let perm = match stored.perm {
        perm if perm == untouched => fresh.perm,
        perm if perm == untouched & !WRITE => fresh.perm & !WRITE,
        set_by_an_operator => set_by_an_operator,
    };
    Queue { perm, ..fresh }
}
