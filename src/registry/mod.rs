//! The routing state machine: commands in, snapshots and effects out. One owner; `now` is an argument.
//!
//! The registry edits a working snapshot whose tables share structure with every published one, so there is one
//! representation of a route and publishing it is a handful of reference counts. What only the owner needs (which topics a
//! broker has, which connections a broker lives by) lies beside it.
//!
//! Rules kept here, against the faults of the original:
//! * a registration applies whole or not at all;
//! * an address has one live owner: registering it under another name takes it from the first;
//! * commands are applied in the order they came, and what ends a broker names the life it ends (its connections, its
//!   generation, its timestamp at that moment), so an acknowledged registration is never undone by an older event.

mod breather;
pub mod command;
mod config_update;
mod declared;
mod departure;
pub mod effect;
mod entry;
mod group;
mod intern;
mod kv_config;
mod kv_table;
mod liveness;
mod notify;
pub mod query;
mod register;
mod snapshot;
mod table;
mod topic;

use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
    vec::Drain,
};

pub use breather::Breather;
pub use command::Command;
use command::ReplyTo;
pub use effect::{Effect, FileContent};
pub(crate) use kv_table::KvNamespace;
pub use kv_table::KvTable;
pub use snapshot::RouteSnapshot;

use crate::{config::Config, ids::ConnectionId, protocol::command::Response, time::Timestamp};

/// The routing state. See the module's documentation.
#[derive(Debug)]
pub struct Registry {
    /// The next snapshot to publish.
    working: RouteSnapshot,
    /// Whether `working` differs from the last published one in anything a reader can see.
    changed: bool,
    effects: Vec<Effect>,
    groups: group::GroupStates,
    topic_ids: topic::TopicIds,
    slot_lists: intern::SlotLists,
    steps: topic::Steps,
    /// Room for what a registration declares, used again for the next.
    marks: declared::Marks,
    /// Which connections each live address lives by: the one that registered it and those that heartbeat for it.
    bound: HashMap<Arc<str>, liveness::Bound>,
    /// The same from the other end.
    connections: HashMap<ConnectionId, BTreeSet<Arc<str>>>,
    last_generation: u64,
    next_scan_at: Option<Timestamp>,
    /// How often the scan to come has been put off.
    scan_put_off: u32,
    notices: notify::Notices,
    kv: kv_config::KvWriter,
    config: config_update::ConfigWriter,
    name_conflicts: register::NameConflicts,
    /// The server says goodbye: nobody is expired or missed any more, so that routes stay as they are.
    draining: bool,
    breather: Box<dyn Breather>,
}

impl Registry {
    /// A registry with no brokers. `hash_seed` should be random: peers choose the names that are hashed.
    #[must_use]
    pub fn new(config: Config, kv: KvTable, hash_seed: u64, now: Timestamp) -> Self {
        let working = RouteSnapshot {
            version: 0,
            started_at: now,
            hasher: snapshot::NameHasher::new(hash_seed),
            topics: table::Table::default(),
            brokers: snapshot::BrokerList::default(),
            broker_names: table::Table::default(),
            live: table::Table::default(),
            kv,
            settings: config.live(),
            config: Arc::new(config),
        };
        Self {
            working,
            changed: false,
            effects: Vec::new(),
            groups: group::GroupStates::default(),
            topic_ids: topic::TopicIds::default(),
            slot_lists: intern::SlotLists::default(),
            steps: topic::Steps::default(),
            marks: declared::Marks::default(),
            bound: HashMap::new(),
            connections: HashMap::new(),
            last_generation: 0,
            next_scan_at: None,
            scan_put_off: 0,
            notices: notify::Notices::default(),
            kv: kv_config::KvWriter::default(),
            config: config_update::ConfigWriter::default(),
            name_conflicts: register::NameConflicts::default(),
            draining: false,
            breather: Box::new(()),
        }
    }

    /// Has it interrupted in long work. Without this nothing does.
    pub fn breathe_with(&mut self, breather: impl Breather + 'static) {
        self.breather = Box::new(breather);
    }

    /// The state before any command: what readers see until the first publication.
    #[must_use]
    pub fn initial_snapshot(&self) -> Arc<RouteSnapshot> {
        Arc::new(self.working.clone())
    }

    /// Applies one command. What comes of it is handed out by [`Registry::publish`].
    pub fn apply(&mut self, command: Command, now: Timestamp) {
        match command {
            Command::Register(to, broker) => self.register(to, *broker, now),
            Command::Unregister(to, identity) => self.unregister(to, &identity),
            Command::BindHeartbeat(to, binding) => self.bind_heartbeat(to, &binding),
            Command::ConnectionClosed(connection) => self.connection_closed(connection),
            Command::WipeWritePerm(to, broker_name) => self.wipe_write_perm(to, &broker_name),
            Command::AddWritePerm(to, broker_name) => self.add_write_perm(to, &broker_name),
            Command::DeleteTopic(to, topic, cluster) => {
                self.delete_topic(to, &topic, cluster.as_deref())
            }
            Command::RegisterTopic(to, topic, queues) => self.register_topic(to, &topic, &queues),
            Command::PutKv(to, namespace, key, value) => self.put_kv(to, namespace, key, value),
            Command::DeleteKv(to, namespace, key) => self.delete_kv(to, namespace, key),
            Command::UpdateConfig(to, body) => self.update_config(to, body),
            Command::Persisted(ticket, result) => self.persisted(ticket, result, now),
            Command::Drain => self.draining = true,
        }
    }

    /// Ends a batch: starts the file writes it asks for and hands out what came of it.
    pub fn publish(&mut self) -> Published<'_> {
        self.breather.finished();
        self.start_kv_persist();
        self.start_config_persist();
        let snapshot = self.changed.then(|| {
            self.steps.clear();
            self.working.version += 1;
            self.changed = false;
            Arc::new(self.working.clone())
        });
        Published {
            snapshot,
            effects: &mut self.effects,
        }
    }

    fn reply(&mut self, to: ReplyTo, response: Response) {
        self.effects
            .push(Effect::Reply(to, (!to.oneway).then_some(response)));
    }
}

/// A finished batch. The only way to its effects, replies among them, is through [`Published::store`], so no reply can leave
/// before the snapshot it speaks of is current.
#[must_use = "the effects of the batch, its replies among them, are inside"]
#[derive(Debug)]
pub struct Published<'a> {
    snapshot: Option<Arc<RouteSnapshot>>,
    effects: &'a mut Vec<Effect>,
}

impl<'a> Published<'a> {
    /// Makes the snapshot current with `store` (not called if no reader could see a difference), then hands out the effects.
    pub fn store(self, store: impl FnOnce(Arc<RouteSnapshot>)) -> Drain<'a, Effect> {
        if let Some(snapshot) = self.snapshot {
            store(snapshot);
        }
        self.effects.drain(..)
    }
}
