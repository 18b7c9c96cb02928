//! `REGISTER_BROKER` (spec 3.3): checked whole before anything is touched, then applied whole.

use std::{sync::Arc, time::Duration};

use smallvec::SmallVec;

use super::{
    Registry,
    command::{RegisterBroker, ReplyTo},
    entry::{
        BrokerIndex, BrokerLive, MASTER_ID, Mapping, PERM_WRITE, QueueShape, TopicEntry, rank,
    },
    topic::{Queues, SetQueues, queues_of},
};
use crate::{
    ids::ConnectionId,
    limits::{self, LOOK_AHEAD_MAX},
    protocol::{
        body::{QueueSettings, RegisterBrokerBody, TopicConfig},
        code::ResponseCode,
        command::Response,
        name::TopicName,
    },
    sync::stamp::Stamp,
    time::Timestamp,
};

/// How long a broker may be silent if it does not say (spec 2.3).
const HEARTBEAT_TIMEOUT_DEFAULT: Duration = Duration::from_secs(120);

/// How often the use of one broker name in two clusters is complained about (fault A9).
const NAME_CONFLICT_WARNING_INTERVAL: Duration = Duration::from_secs(30);

/// Counts broker names that are used in two clusters, and warns of them now and then.
#[derive(Debug, Default)]
pub(super) struct NameConflicts {
    count: u64,
    warned_at: Option<Timestamp>,
}

/// Whether a registration may be applied.
enum Admission {
    Accepted,
    /// A live broker with a higher state version holds the id: answered as if accepted, and ignored (spec 3.3 step 6, Q20).
    Outranked,
    Refused(Response),
}

/// What a registration is to the topics of its group.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    Master,
    /// The first slave of a group without master, from a broker that knows acting masters (spec 3.3 step 9).
    PrimeSlave,
    Other,
}

impl Registry {
    pub(super) fn register(&mut self, to: ReplyTo, broker: RegisterBroker, now: Timestamp) {
        let response = match self.admit(&broker, now) {
            Admission::Refused(response) => response,
            Admission::Outranked => {
                tracing::warn!(
                    "Registering Broker conflicts with the existed one, just ignore.: Cluster:{}, BrokerName:{}, BrokerId:{}, BrokerAddr:{}",
                    broker.cluster_name,
                    broker.broker_name,
                    broker.broker_id,
                    broker.broker_addr
                );
                self.depart(&broker.broker_addr);
                self.registered_response()
            }
            Admission::Accepted => self.accept(&broker, to.connection, now),
        };
        self.reply(to, response);
    }

    fn admit(&mut self, broker: &RegisterBroker, now: Timestamp) -> Admission {
        if let Some(full) = self.full(broker) {
            return Admission::Refused(full);
        }
        let Some(group) = self.working.broker(&broker.broker_name) else {
            return if is_single_topic(broker) {
                Admission::Refused(refused())
            } else {
                Admission::Accepted
            };
        };
        let holder = group.addrs.get(&broker.broker_id);
        let outranked = holder
            .filter(|addr| **addr != broker.broker_addr)
            .is_some_and(|addr| {
                let live = self.working.live_broker(&broker.cluster_name, addr);
                live.is_some_and(|live| {
                    live.data_version.state_version > broker.body.data_version.state_version
                })
            });
        if outranked {
            return Admission::Outranked;
        }
        if holder.is_none() && is_single_topic(broker) {
            return Admission::Refused(refused());
        }
        if *group.cluster != *broker.cluster_name {
            let held_by = Arc::clone(&group.cluster);
            self.note_name_conflict(broker, &held_by, now);
            if self.working.settings.reject_broker_name_conflict {
                return Admission::Refused(name_in_use(broker, &held_by));
            }
        }
        Admission::Accepted
    }

    /// The answer to a registration for which there is no room.
    fn full(&self, broker: &RegisterBroker) -> Option<Response> {
        let group = self.working.broker(&broker.broker_name);
        let is_crowded = group.is_some_and(|group| {
            group.addrs.len() >= limits::GROUP_MEMBERS_MAX
                && !group.addrs.contains_key(&broker.broker_id)
        });
        let what = if group.is_none() && self.working.broker_names.len() >= limits::GROUPS_MAX {
            format!("{} broker groups", limits::GROUPS_MAX)
        } else if is_crowded {
            format!(
                "{} members of {}",
                limits::GROUP_MEMBERS_MAX,
                broker.broker_name
            )
        } else if self.working.live.len() >= limits::LIVE_BROKERS_MAX
            && self.working.live_at(&broker.broker_addr).is_none()
        {
            format!("{} live addresses of brokers", limits::LIVE_BROKERS_MAX)
        } else if self.new_topics_exceed(&broker.body) {
            format!("{} topics", limits::TOPICS_MAX)
        } else {
            return None;
        };
        let remark = format!("this name server holds no more than {what}");
        Some(Response::error(ResponseCode::SystemError, remark).with_empty_ext())
    }

    /// Whether there is no room for the topics that are not known yet. Known ones always have theirs: a broker must be able to
    /// register again.
    fn new_topics_exceed(&self, body: &RegisterBrokerBody) -> bool {
        let room = limits::TOPICS_MAX.saturating_sub(self.working.topics.len());
        if body.topics.len() + body.mappings.len() <= room {
            return false;
        }
        let topics = body.topics.iter().map(|topic| topic.name.as_bytes());
        let mapped = body
            .mappings
            .iter()
            .map(|mapping| mapping.topic_key.as_bytes());
        let unknown = topics
            .chain(mapped)
            .filter(|name| self.working.topic(name).is_none());
        unknown.count() > room
    }

    fn note_name_conflict(&mut self, broker: &RegisterBroker, held_by: &str, now: Timestamp) {
        self.name_conflicts.count += 1;
        let due = self
            .name_conflicts
            .warned_at
            .is_none_or(|at| now.since(at) >= NAME_CONFLICT_WARNING_INTERVAL);
        if due {
            self.name_conflicts.warned_at = Some(now);
            tracing::warn!(
                "broker name {} is used in cluster {} and in cluster {} ({} times so far): give each broker group a name of its own",
                broker.broker_name,
                held_by,
                broker.cluster_name,
                self.name_conflicts.count
            );
        }
    }

    fn accept(
        &mut self,
        broker: &RegisterBroker,
        connection: ConnectionId,
        now: Timestamp,
    ) -> Response {
        self.leave_other_group(broker);
        let index = self.group_or_new(&broker.broker_name, &broker.cluster_name);
        let before = self.group(index);
        let first_before = before.first().map(|(id, _)| id);
        // The original asks whether there was no address under this id (after the same address under another id is gone): a
        // member that is new in its role has all its topics applied, so the write permission returns with a master (fault B6).
        let is_new = !before.addrs.contains_key(&broker.broker_id);
        self.edit_group(index, |group| {
            group.cluster = Arc::clone(&broker.cluster_name);
            group.zone_name = broker.zone_name.clone();
            group.enable_acting_master = broker.enable_acting_master.unwrap_or(false);
            group
                .addrs
                .retain(|id, addr| *id == broker.broker_id || *addr != broker.broker_addr);
            group
                .addrs
                .insert(broker.broker_id, Arc::clone(&broker.broker_addr));
            match &broker.body.filter_servers {
                Some(servers) if servers.is_empty() => {
                    _ = group.filter_servers.remove(&broker.broker_addr)
                }
                Some(servers) => {
                    _ = group
                        .filter_servers
                        .insert(Arc::clone(&broker.broker_addr), servers.clone().into())
                }
                None => {}
            }
            group
                .filter_servers
                .retain(|addr, _| group.addrs.values().any(|member| member == addr));
        });
        self.apply_topics(index, broker, is_new);
        self.refresh_live(broker, connection, now);
        let response = self.registered_response();
        let response = self.with_master(response, index, broker);
        if first_before.is_some_and(|first| rank(broker.broker_id) < rank(first)) {
            self.notify_min_broker_id_lowered(index, broker.ha_server_addr.as_deref());
        }
        response
    }

    /// One address has one owner: whoever registers it takes it from the group that had it (faults A8, A16).
    fn leave_other_group(&mut self, broker: &RegisterBroker) {
        let owner = self
            .working
            .live_at(&broker.broker_addr)
            .map(|live| Arc::clone(&live.broker_name));
        if let Some(owner) = owner.filter(|owner| *owner != broker.broker_name) {
            tracing::warn!(
                "broker address {} moves from {owner} to {}",
                broker.broker_addr,
                broker.broker_name
            );
            self.depart(&broker.broker_addr);
        }
    }

    fn role(&self, index: BrokerIndex, broker: &RegisterBroker) -> Role {
        let first = self.group(index).first().map(|(id, _)| id);
        if broker.broker_id == MASTER_ID {
            Role::Master
        } else if broker.enable_acting_master.is_some() && first == Some(broker.broker_id) {
            Role::PrimeSlave
        } else {
            Role::Other
        }
    }

    fn apply_topics(&mut self, index: BrokerIndex, broker: &RegisterBroker, is_new: bool) {
        let role = self.role(index, broker);
        if role == Role::Other {
            return;
        }
        let known = self
            .working
            .live_broker(&broker.cluster_name, &broker.broker_addr);
        let all = is_new || known.is_none_or(|live| live.data_version != broker.body.data_version);
        if self.working.settings.delete_topic_with_broker_registration
            && broker.body.mappings.is_empty()
        {
            self.prune_topics(index, &broker.body.topics);
        }
        let wiped = role == Role::PrimeSlave && self.group(index).enable_acting_master;
        self.store_topics(index, broker, Declaring { all, wiped });
        let owner_name = Arc::clone(&self.group(index).name);
        for info in &broker.body.mappings {
            let mapping = Mapping::new(index, &owner_name, info);
            self.set_mapping(&TopicName::from(info.topic_key.as_str()), mapping);
        }
    }

    /// Stores the declared topics that differ from what is there.
    fn store_topics(&mut self, index: BrokerIndex, broker: &RegisterBroker, how: Declaring) {
        let topics = &broker.body.topics;
        let mut marks = std::mem::take(&mut self.marks);
        marks.fill(&self.working.hasher, topics);
        let known = &self.groups.get_mut(index).declared;
        let unknown = known.unknown(how.wiped, &marks);
        let mut log = TopicLog::default();
        // In handfuls, whose topics are looked up together, so that their cache misses overlap.
        for places in unknown.chunks(LOOK_AHEAD_MAX) {
            self.breather.breathe();
            for (place, queues, is_as_declared) in self.compared(index, topics, places, how) {
                let name = &topics[place].name;
                if let Some(queues) = queues {
                    let done = self.set_queues(name, index, queues);
                    log.note(&broker.broker_name, name, done);
                }
                if !is_as_declared {
                    marks.drop_at(place);
                }
            }
        }
        log.finish(&broker.broker_name);
        let declared = &mut self.groups.get_mut(index).declared;
        declared.remember(how.wiped, &marks);
        self.marks = marks.kept();
    }

    /// Of each of these topics what to store, if it differs from what is there, and whether that is then as it is declared.
    fn compared(
        &self,
        index: BrokerIndex,
        topics: &[TopicConfig],
        places: &[usize],
        how: Declaring,
    ) -> SmallVec<[(usize, Option<Queues>, bool); LOOK_AHEAD_MAX]> {
        let key = |place: &usize| {
            let name = topics[*place].name.as_bytes();
            (self.working.hasher.hash(name), name)
        };
        let keys: SmallVec<[_; LOOK_AHEAD_MAX]> = places.iter().map(key).collect();
        let stored = self.working.topics.get_each::<LOOK_AHEAD_MAX>(&keys);
        let compare = |(place, stored): (&usize, Option<&TopicEntry>)| {
            let stored = stored.and_then(|stored| queues_of(stored, index));
            let as_declared = how.queues(&topics[*place]);
            let queues = queues_to_store(stored.map(Arc::as_ref), as_declared, how.all);
            let perm =
                queues.map_or_else(|| stored.map(|stored| stored.perm), |new| Some(new.perm));
            (*place, queues, perm == Some(as_declared.perm))
        };
        places.iter().zip(stored).map(compare).collect()
    }

    /// `deleteTopicWithBrokerRegistration`: what the broker no longer lists it no longer has (fault A4).
    fn prune_topics(&mut self, index: BrokerIndex, listed: &[TopicConfig]) {
        let mut listed: Vec<&TopicName> = listed.iter().map(|topic| &topic.name).collect();
        listed.sort_unstable();
        for name in self.topics_of(index) {
            if listed.binary_search(&&name).is_err() {
                self.drop_brokers_from_topic(&name, &[index]);
            }
        }
    }

    fn refresh_live(&mut self, broker: &RegisterBroker, connection: ConnectionId, now: Timestamp) {
        let heartbeat_timeout = match broker.heartbeat_timeout_millis.map(u64::try_from) {
            Some(Ok(millis)) if millis > 0 => Duration::from_millis(millis),
            _ => HEARTBEAT_TIMEOUT_DEFAULT,
        };
        let known = self.working.live_at(&broker.broker_addr).cloned();
        let rebound = self.bind_registration(&broker.broker_addr, connection);
        let generation = match &known {
            Some(live) if !rebound => live.generation,
            _ => self.next_generation(),
        };
        let last_heartbeat = match &known {
            Some(live) => Arc::clone(&live.last_heartbeat),
            None => Arc::new(Stamp::new(now)),
        };
        last_heartbeat.refresh(now);
        let mut data_version_json = Vec::new();
        broker.body.data_version.write(&mut data_version_json);
        let live = BrokerLive {
            addr: Arc::clone(&broker.broker_addr),
            cluster: Arc::clone(&broker.cluster_name),
            broker_name: Arc::clone(&broker.broker_name),
            generation,
            data_version: broker.body.data_version,
            data_version_json: data_version_json.into_boxed_slice(),
            ha_server_addr: broker.ha_server_addr.clone(),
            heartbeat_timeout,
            last_heartbeat,
        };
        if known.is_none() {
            tracing::info!(
                "new broker registered, BrokerIdentityInfo [clusterName={}, brokerAddr={}] HAService: {}",
                live.cluster,
                live.addr,
                live.ha_server_addr.as_deref().unwrap_or("null")
            );
        }
        if known.is_none_or(|known| !known.is_alike(&live)) {
            self.working.live.insert(
                self.working.hasher.hash(live.addr.as_bytes()),
                Arc::new(live),
            );
            self.changed = true;
        }
        self.schedule_scan(now);
    }

    /// A slave learns its master, if that is live under the same cluster (spec Q40).
    fn with_master(
        &self,
        response: Response,
        index: BrokerIndex,
        broker: &RegisterBroker,
    ) -> Response {
        if broker.broker_id == MASTER_ID {
            return response;
        }
        let master = self.group(index).addrs.get(&MASTER_ID);
        let Some(live) =
            master.and_then(|addr| self.working.live_broker(&broker.cluster_name, addr))
        else {
            return response;
        };
        let response = match &live.ha_server_addr {
            Some(ha_server_addr) => response.with_ext("haServerAddr", ha_server_addr.to_string()),
            None => response,
        };
        response.with_ext("masterAddr", live.addr.to_string())
    }

    fn registered_response(&mut self) -> Response {
        let is_wanted = self.working.settings.return_order_topic_config_to_broker;
        let order_topics = is_wanted.then(|| self.order_topics()).flatten();
        Response::success()
            .with_empty_ext()
            .with_body(order_topics.unwrap_or_default())
    }
}

/// How a registration's topics are to be taken.
#[derive(Debug, Clone, Copy)]
struct Declaring {
    /// All count: the version is a new one.
    all: bool,
    /// They are shown without the permission to write.
    wiped: bool,
}

impl Declaring {
    /// What a topic is to be, if nobody else has a say in it.
    fn queues(self, topic: &TopicConfig) -> Queues {
        let declared = topic.settings;
        let perm = if self.wiped {
            declared.perm & !PERM_WRITE
        } else {
            declared.perm
        };
        Queues { declared, perm }
    }
}

/// What to store of a declared topic; `None`: leave what is there.
///
/// Under an unchanged version only what the broker itself declares differently is taken over (spec Q19): a permission
/// that an operator wiped stays wiped until the version changes, yet a later slice of a split registration counts.
fn queues_to_store(stored: Option<&QueueShape>, as_declared: Queues, all: bool) -> Option<Queues> {
    let Some(stored) = stored else {
        return Some(as_declared);
    };
    let declared = as_declared.declared;
    let perm = if all || stored.perm == stored.declared.perm {
        as_declared.perm
    } else if stored.perm == stored.declared.perm & !PERM_WRITE {
        declared.perm & !PERM_WRITE
    } else {
        stored.perm
    };
    let same = stored.declared == declared && (!all || stored.perm == perm);
    (!same).then_some(Queues { declared, perm })
}

/// A first message with one topic is taken for an increment that overtook the full registration: if it were stored, its
/// version would hide the full one (spec 3.3 step 7, Q23, fault A1).
fn is_single_topic(broker: &RegisterBroker) -> bool {
    broker.body.topics.len() == 1
}

fn refused() -> Response {
    Response::error(ResponseCode::SystemError, "register broker failed").with_empty_ext()
}

fn name_in_use(broker: &RegisterBroker, held_by: &str) -> Response {
    let remark = format!(
        "broker name {} is in use in cluster {held_by}; give this group another name (waypost.brokerNameConflict=reject)",
        broker.broker_name
    );
    Response::error(ResponseCode::SystemError, remark).with_empty_ext()
}

impl BrokerLive {
    /// Whether a reader could tell the two apart.
    fn is_alike(&self, other: &Self) -> bool {
        self.cluster == other.cluster
            && self.broker_name == other.broker_name
            && self.generation == other.generation
            && self.data_version == other.data_version
            && self.ha_server_addr == other.ha_server_addr
            && self.heartbeat_timeout == other.heartbeat_timeout
    }
}

/// The log lines of one registration: the first few topics one by one, as the original writes them all, then a sum.
#[derive(Default)]
struct TopicLog {
    added: usize,
    changed: usize,
}

impl TopicLog {
    fn note(&mut self, broker_name: &str, topic: &TopicName, done: SetQueues) {
        let written = self.added + self.changed < limits::TOPIC_LOG_LINES_MAX;
        match done {
            SetQueues::Same => {}
            SetQueues::Added(to) => {
                self.added += 1;
                if written {
                    tracing::info!("new topic registered, {topic} {}", Shown(broker_name, &to));
                }
            }
            SetQueues::Changed(from, to) => {
                self.changed += 1;
                if written {
                    tracing::info!(
                        "topic changed, {topic} OLD: {} NEW: {}",
                        Shown(broker_name, &from),
                        Shown(broker_name, &to)
                    );
                }
            }
        }
    }

    fn finish(self, broker_name: &str) {
        if self.added + self.changed > limits::TOPIC_LOG_LINES_MAX {
            tracing::info!(
                "{broker_name}: {} new topics registered, {} topics changed",
                self.added,
                self.changed
            );
        }
    }
}

/// `QueueData` as the original logs it.
struct Shown<'a>(&'a str, &'a QueueShape);

impl std::fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self(broker_name, QueueShape { declared, perm, .. }) = self;
        let QueueSettings {
            read_queue_nums,
            write_queue_nums,
            topic_sys_flag,
            ..
        } = declared;
        write!(
            f,
            "QueueData [brokerName={broker_name}, readQueueNums={read_queue_nums}, writeQueueNums={write_queue_nums}, perm={perm}, topicSysFlag={topic_sys_flag}]"
        )
    }
}
