//! A server without sockets, threads or a clock, and the peers around it. It keeps the order of things that `src/server` keeps
//! (replies before orders before writes; publish before reply), moves them by one step at a time, and holds whatever comes of
//! it against the model, which takes each request at the moment at which the server does.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use bytes::Bytes;
use serde_json::{Value, json};
use waypost::{
    connection::StreamLimits,
    ids::ConnectionId,
    limits::FRAME_LEN_MAX,
    protocol::command::{RemotingCommand, Response},
    registry::{
        Command, Effect,
        command::{PersistFile, PersistTicket, ReplyTo},
    },
};

use super::{
    check::Checks,
    model::{Model, Notice},
    office::{Letter, Meaning, Office, Sent},
    peer::{Peer, Served},
    request::Request,
    script::{SLOTS, Script, Step},
    settings::Settings,
};
use crate::world::World;

/// What went wrong, as a sentence.
pub(super) type Verdict<T = ()> = Result<T, String>;

/// Turns within which everything that is under way has arrived.
const SETTLING_TURNS: usize = 300;
/// Room to read into; a piece of a frame of up to a quarter of it is lent.
const SCRATCH_LEN: usize = 64 * 1024;
/// More than any script's answers.
const ALL: usize = 1 << 30;

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct Machine {
    office: Office,
    peers: Peers,
    replies: VecDeque<(ReplyTo, Option<Response>)>,
    orders: VecDeque<ConnectionId>,
    closes: VecDeque<ConnectionId>,
    persists: VecDeque<PersistTicket>,
    /// Connections whose end the writer knows of.
    dead: BTreeSet<ConnectionId>,
    limits: StreamLimits,
    socket_room: usize,
    scratch: Box<[u8]>,
    checks: Checks,
}

/// Connections by slot; each tenant of a slot has a generation of its own.
#[derive(Debug, Default)]
struct Peers {
    open: [Option<Peer>; SLOTS],
    generations: [u32; SLOTS],
}

impl Peers {
    fn id(&self, slot: usize) -> ConnectionId {
        ConnectionId {
            worker: 0,
            slot: u32::try_from(slot).expect("a small number"),
            generation: self.generations[slot],
        }
    }

    fn get_mut(&mut self, id: ConnectionId) -> Option<&mut Peer> {
        let slot = slot_of(id);
        let is_tenant = self.generations[slot] == id.generation;
        self.open[slot].as_mut().filter(|_| is_tenant)
    }

    fn iter_mut(&mut self) -> impl Iterator<Item = &mut Peer> {
        self.open.iter_mut().flatten()
    }
}

fn slot_of(id: ConnectionId) -> usize {
    usize::try_from(id.slot).expect("a small number")
}

impl Machine {
    pub(super) fn new(script: &Script) -> Self {
        let lines = script.start.iter();
        let lines = lines.map(|(key, value)| format!("{key}={value}\n"));
        let world = World::with(&lines.collect::<String>());
        let settings = Settings::started_with(&script.start);
        let model = Model::new(settings, world.now.as_millis());
        Self {
            office: Office::new(world, model, script.mailbox_room),
            peers: Peers::default(),
            replies: VecDeque::new(),
            orders: VecDeque::new(),
            closes: VecDeque::new(),
            persists: VecDeque::new(),
            dead: BTreeSet::new(),
            limits: StreamLimits {
                frame_len_max: FRAME_LEN_MAX,
                high_water: script.high_water,
                low_water: script.high_water / 2,
            },
            socket_room: script.socket_room,
            scratch: vec![0; SCRATCH_LEN].into_boxed_slice(),
            checks: Checks::new(),
        }
    }

    /// Does one step and looks at what came of it.
    pub(super) fn step(&mut self, step: &Step) -> Verdict {
        match step {
            Step::Send {
                slot,
                request,
                oneway,
            } => self.send(*slot, request, *oneway),
            Step::Deliver { slot, bytes } => {
                if let Some(peer) = &mut self.peers.open[*slot] {
                    peer.deliver(*bytes);
                }
                self.serve(*slot)?;
            }
            Step::Read { slot, bytes } => {
                if let Some(peer) = &mut self.peers.open[*slot] {
                    peer.room += bytes;
                }
                self.serve(*slot)?;
            }
            Step::Work => self.work()?,
            Step::Write {
                commands,
                orders_fit,
            } => self.write(*commands, *orders_fit)?,
            Step::Persist { succeeds } => self.persist(*succeeds),
            Step::Break { slot } => self.close(*slot),
            Step::Finish { slot } => {
                if let Some(peer) = &mut self.peers.open[*slot] {
                    peer.finishes = true;
                }
            }
            Step::Hog { left } => self.office.hog(*left),
            Step::Pass { millis } => self.pass(*millis)?,
            Step::Goodbye => self.say_goodbye(),
            Step::Settle => self.settle()?,
        }
        self.look_at_bindings()
    }

    /// A peer writes a request, unless it has said that it sends no more.
    fn send(&mut self, slot: usize, request: &Request, oneway: bool) {
        let world = &self.office.world;
        let idle = world.snapshot.settings().channel_max_idle;
        let open = &mut self.peers.open[slot];
        let peer = open.get_or_insert_with(|| Peer::new(idle, world.now, self.socket_room));
        if peer.finishes {
            return;
        }
        let ticket = self.office.sent.len();
        let opaque = i32::try_from(ticket).expect("a script is short");
        let ask = request.ask().opaque(opaque);
        if oneway {
            peer.pipe.extend(ask.oneway().wire());
        } else {
            peer.pipe.extend(ask.wire());
            peer.awaits.push_back(ticket);
        }
        self.office.sent.push(Sent {
            request: request.clone(),
            oneway,
        });
    }

    /// A worker's turn: replies, then orders, then what their connections can do with them.
    fn work(&mut self) -> Verdict {
        while let Some((to, answer)) = self.replies.pop_front() {
            let credits = &mut self.office.credits;
            match self.peers.get_mut(to.connection) {
                Some(peer) => {
                    let answer = answer.filter(|_| !to.oneway);
                    let answer = answer.as_ref().map(|response| (to.head, response));
                    peer.connection.handle_reply(credits, answer);
                }
                None => credits.give_back_late(),
            }
        }
        while let Some(id) = self.orders.pop_front() {
            if self.peers.get_mut(id).is_some() {
                self.close(slot_of(id));
            }
        }
        while let Some(id) = self.office.first_waiting() {
            let peer = self.peers.get_mut(id);
            let peer = peer.expect("who closes takes its waiting command along");
            let Some(marks) = self.office.send_first_waiting(&mut peer.connection) else {
                break;
            };
            peer.carries_brokers |= marks;
        }
        for slot in 0..SLOTS {
            self.serve(slot)?;
        }
        self.office.flush();
        Ok(())
    }

    fn serve(&mut self, slot: usize) -> Verdict {
        let id = self.peers.id(slot);
        let Some(peer) = &mut self.peers.open[slot] else {
            return Ok(());
        };
        let served = peer.serve(id, &mut self.office, &self.limits, &mut self.scratch)?;
        if served == Served::Ended {
            self.close(slot);
        }
        Ok(())
    }

    fn close(&mut self, slot: usize) {
        let id = self.peers.id(slot);
        let Some(mut peer) = self.peers.open[slot].take() else {
            return;
        };
        self.peers.generations[slot] += 1;
        self.office.abandon(id, *peer.connection.outstanding_mut());
        if peer.carries_brokers {
            self.office.push_closed(id);
        }
    }

    /// A writer's turn: commands, silence, publication, and only then what comes of them.
    fn write(&mut self, commands: usize, orders_fit: bool) -> Verdict {
        let mut touched = false;
        for _ in 0..commands {
            let Some(meaning) = self.office.apply_next() else {
                break;
            };
            touched = true;
            if let Meaning::Closed(id) = meaning {
                self.dead.insert(id);
            }
        }
        let world = &mut self.office.world;
        let now = world.now;
        let mut to_close = BTreeSet::new();
        if world.registry.poll_timeout().is_some_and(|at| at <= now) {
            world.registry.handle_timeout(now);
            to_close = self.office.model.scan(now.as_millis());
            touched = true;
        }
        let effects = self.office.world.end_batch();
        self.office.end_batch();
        self.carry_out(effects, &to_close)?;
        self.send_closes(orders_fit);
        if !touched {
            return Ok(());
        }
        self.look_at_the_deadline()?;
        let Office { world, model, .. } = &mut self.office;
        self.checks.compare(world, model)
    }

    fn carry_out(&mut self, effects: Vec<Effect>, to_close: &BTreeSet<ConnectionId>) -> Verdict {
        let mut closed = BTreeSet::new();
        let mut notices = Vec::new();
        for effect in effects {
            match effect {
                Effect::Reply(to, answer) => self.replies.push_back((to, answer)),
                Effect::Close(id) => {
                    closed.insert(id);
                    self.closes.push_back(id);
                }
                Effect::Notify { to, frame } => {
                    let to = to.iter().map(|addr| addr.to_string()).collect();
                    notices.push(Notice {
                        to,
                        fields: notice_fields(&frame),
                    });
                }
                Effect::Persist(ticket, content) => {
                    self.look_at_the_file(ticket.file, &content)?;
                    self.persists.push_back(ticket);
                }
            }
        }
        if closed != *to_close || !closed.is_disjoint(&self.dead) {
            return Err(format!(
                "{closed:?} are to be closed instead of {to_close:?}"
            ));
        }
        let model = &mut self.office.model;
        let mut expected = std::mem::take(&mut model.notices);
        let are_open = std::mem::take(&mut model.notices_are_open);
        notices.sort();
        expected.sort();
        if !are_open && notices != expected {
            return Err(format!(
                "brokers are told {notices:?} instead of {expected:?}"
            ));
        }
        Ok(())
    }

    /// The KV file holds the table that becomes visible once it is written.
    fn look_at_the_file(&self, file: PersistFile, content: &Bytes) -> Verdict {
        let table = self.office.model.stored.kv_out.as_ref();
        let wanted = table.map(|(table, _)| json!({ "configTable": table }));
        let is_kv = file == PersistFile::KvConfig;
        if is_kv && serde_json::from_slice::<Value>(content).ok() != wanted {
            return Err(format!(
                "the KV file is to hold {content:?} instead of {wanted:?}"
            ));
        }
        Ok(())
    }

    /// Orders to close for which the worker has no room wait, unless a broker has come over the connection meanwhile.
    fn send_closes(&mut self, orders_fit: bool) {
        for _ in 0..self.closes.len() {
            let id = self.closes.pop_front().expect("it was counted");
            if self.office.world.registry.carries_brokers(id) {
                continue;
            }
            if orders_fit {
                self.orders.push_back(id);
            } else {
                self.closes.push_back(id);
            }
        }
    }

    fn persist(&mut self, succeeds: bool) {
        let Some(ticket) = self.persists.pop_front() else {
            return;
        };
        let result = if succeeds {
            Ok(())
        } else {
            Err("no space left".to_string())
        };
        self.office.mailbox.push_back(Letter {
            command: Command::Persisted(ticket, result),
            meaning: Meaning::Written(ticket.file, succeeds),
        });
    }

    /// Lets time pass, with every deadline on the way met.
    fn pass(&mut self, millis: u64) -> Verdict {
        let end = self
            .office
            .world
            .now
            .after(std::time::Duration::from_millis(millis));
        loop {
            let scan = self.office.world.registry.poll_timeout();
            let idle = self
                .peers
                .iter_mut()
                .map(|peer| peer.connection.poll_timeout());
            let Some(at) = idle.chain(scan).min().filter(|at| *at <= end) else {
                break;
            };
            let now = self.office.world.now.max(at);
            self.office.world.now = now;
            if scan.is_some_and(|at| at <= now) {
                self.write(0, true)?;
            }
            for slot in 0..SLOTS {
                let peer = self.peers.open[slot].as_ref();
                if peer.is_some_and(|peer| peer.connection.poll_timeout() <= now) {
                    self.close(slot);
                }
            }
        }
        self.office.world.now = end;
        Ok(())
    }

    fn say_goodbye(&mut self) {
        self.office.world.go_away = true;
        self.office.model.says_goodbye = true;
        self.office.mailbox.push_back(Letter {
            command: Command::Drain,
            meaning: Meaning::Drain,
        });
    }

    /// Lets everything arrive that is under way.
    fn settle(&mut self) -> Verdict {
        self.office.give_back_the_hogs();
        for _ in 0..SETTLING_TURNS {
            for peer in self.peers.iter_mut() {
                peer.deliver(ALL);
                peer.room = ALL;
            }
            self.work()?;
            while !self.persists.is_empty() {
                self.persist(true);
            }
            self.write(ALL, true)?;
            if self.is_idle() {
                self.peers
                    .iter_mut()
                    .for_each(|peer| peer.room = self.socket_room);
                let credits = &self.office.credits;
                return if credits.all_free() {
                    Ok(())
                } else {
                    Err("credits are lost".into())
                };
            }
        }
        Err("requests stay without an answer".into())
    }

    fn is_idle(&mut self) -> bool {
        let inner = self.replies.is_empty() && self.orders.is_empty() && self.closes.is_empty();
        let idle = inner && self.persists.is_empty() && self.office.is_idle();
        idle && self.peers.iter_mut().all(|peer| peer.is_idle())
    }

    /// After the last step: all arrives, a rebuilt server says the same, and when everyone has left nothing is left of them.
    pub(super) fn finish(&mut self) -> Verdict {
        self.settle()?;
        let Office { world, model, .. } = &mut self.office;
        self.checks.compare_lists(world, model)?;
        self.checks.compare_rebuilt(world, model)?;
        self.checks.compare_versions(world, model)?;
        if model.draining {
            return Ok(()); // a server that stops misses nobody
        }
        for slot in 0..SLOTS {
            self.close(slot);
        }
        self.settle()?;
        let registry = &self.office.world.registry;
        let left = (self.office.world.snapshot.counts(), format!("{registry:?}"));
        let nothing = |name: &str| left.1.contains(&format!(" {name}: {{}}"));
        if left.0 != (0, 0, 0)
            || !nothing("bound")
            || !nothing("connections")
            || left.1.contains("GroupState {")
        {
            return Err(format!(
                "when everyone has left, something is left: {left:?}"
            ));
        }
        Ok(())
    }

    /// While a broker is live a scan is due, no later than an interval after what began the wait.
    fn look_at_the_deadline(&self) -> Verdict {
        let Office { world, model, .. } = &self.office;
        let due = world.registry.poll_timeout().map(|at| at.as_millis());
        let is_late = match (due, model.scan_by) {
            (Some(due), Some(by)) => due > by,
            (None, Some(_)) => !model.live.is_empty() && !model.draining,
            (_, None) => false,
        };
        if is_late {
            return Err(format!(
                "the next scan is at {due:?} instead of {:?}",
                model.scan_by
            ));
        }
        Ok(())
    }

    /// A connection carries brokers if one lives by it, and so never if the writer knows of its end.
    fn look_at_bindings(&self) -> Verdict {
        let Office { world, model, .. } = &self.office;
        let lived_by = model.live.values().flat_map(|live| live.connections());
        let lived_by: BTreeSet<ConnectionId> = lived_by.collect();
        let dead = lived_by.intersection(&self.dead).next();
        assert_eq!(
            dead, None,
            "the model itself binds a broker to what is closed"
        );
        let open = (0..SLOTS).map(|slot| self.peers.id(slot));
        for id in open.chain(self.dead.iter().copied()) {
            let carries = world.registry.carries_brokers(id);
            if carries != lived_by.contains(&id) {
                return Err(format!("that {id:?} carries brokers is {carries}"));
            }
        }
        Ok(())
    }
}

/// The ext fields of a 905, which is one-way.
fn notice_fields(frame: &Bytes) -> BTreeMap<String, String> {
    let request = RemotingCommand::decode(&frame[4..]).expect("a frame of ours");
    assert!(request.code == 905 && request.is_oneway());
    let names = [
        "minBrokerId",
        "minBrokerAddr",
        "offlineBrokerAddr",
        "haBrokerAddr",
    ];
    let field = |name: &str| Some((name.to_string(), request.ext.get(name)?.to_string()));
    names.into_iter().filter_map(field).collect()
}
