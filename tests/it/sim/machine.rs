//! The world around the server's own worker and helper: the network, the peers, the writer, the files and the clock. It moves them
//! by one step at a time, and holds whatever comes of it against the model, which takes each request at the moment at which the
//! server does.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::Arc,
    time::Duration,
};

use bytes::Bytes;
use serde_json::{Value, json};
use waypost::{
    connection::StreamLimits,
    ids::ConnectionId,
    limits::{FRAME_LEN_MAX, LARGE_FRAME_LEN, RETRY_INTERVAL, STOP_FLUSH_TIMEOUT},
    protocol::command::RemotingCommand,
    registry::{
        Command, Effect, FileContent,
        command::{PersistFile, PersistTicket},
    },
    sync::Full,
    time::Timestamp,
    worker::{
        Event, Next,
        message::{Order, Reply},
    },
};

use super::{
    check::Checks,
    model::{Model, Notice},
    office::{Office, Sent},
    peer::Peer,
    request::Request,
    script::{Ending, Room, SLOTS, Script, Step},
    settings::Settings,
};
use crate::{
    corpus::properties::rig::{Rig, Sizes, Socket},
    world::{Header, World},
};

/// What went wrong, as a sentence.
pub(super) type Verdict<T = ()> = Result<T, String>;

/// Rounds within which everything that is under way has arrived.
const SETTLING_ROUNDS: usize = 400;
/// More than any script's commands, jobs and bytes.
const ALL: usize = 1 << 30;
/// Bytes that unfinished large frames may hold: one at a time in the lane of the usual ones.
const UNFINISHED_LEN_MAX: usize = 4 * LARGE_FRAME_LEN;
/// Commands that the writer executes while it is kept from its work.
const FEW: usize = 2;

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct Machine {
    office: Office,
    rig: Rig,
    /// Who is connected, and who has gone in a way that the server has yet to find out.
    peers: [Option<Peer>; SLOTS],
    gone: Vec<Peer>,
    /// Orders and commands that have found no room yet.
    orders: VecDeque<Order<Socket>>,
    commands: VecDeque<Command>,
    /// Orders to close that have found no room yet, and those that have.
    closes: VecDeque<ConnectionId>,
    ordered: BTreeSet<ConnectionId>,
    persists: VecDeque<PersistTicket>,
    /// Connections whose end the writer knows of.
    dead: BTreeSet<ConnectionId>,
    goodbye_is_ordered: bool,
    room: Room,
    ending: Ending,
    checks: Checks,
}

impl Machine {
    pub(super) fn new(script: &Script) -> Self {
        let lines = script.start.iter();
        let lines = lines.map(|(key, value)| format!("{key}={value}\n"));
        let world = World::with(&lines.collect::<String>());
        let settings = Settings::started_with(&script.start);
        let model = Model::new(settings, world.now.as_millis());
        let room = script.room;
        let sizes = Sizes {
            credits: room.credits,
            commands: room.commands,
            orders: room.orders,
            limits: StreamLimits {
                frame_len_max: FRAME_LEN_MAX,
                high_water: room.high_water,
                low_water: room.high_water / 2,
            },
            unfinished_len_max: UNFINISHED_LEN_MAX,
        };
        Self {
            rig: Rig::new(Arc::clone(&world.snapshot), sizes),
            office: Office::new(world, model),
            peers: Default::default(),
            gone: Vec::new(),
            orders: VecDeque::new(),
            commands: VecDeque::new(),
            closes: VecDeque::new(),
            ordered: BTreeSet::new(),
            persists: VecDeque::new(),
            dead: BTreeSet::new(),
            goodbye_is_ordered: false,
            room,
            ending: script.ending,
            checks: Checks::new(),
        }
    }

    fn now(&self) -> Timestamp {
        self.office.world.now
    }

    fn idle_timeout(&self) -> Duration {
        self.office.world.snapshot.settings().channel_max_idle
    }

    /// Does one step and looks at what came of it.
    pub(super) fn step(&mut self, step: &Step) -> Verdict {
        let now = self.now();
        match step {
            Step::Send {
                slot,
                request,
                oneway,
                header,
            } => self.send(*slot, request, *oneway, *header),
            Step::Rubbish { slot } => {
                if let Some(peer) = self.peers[*slot].as_mut().filter(|peer| peer.is_lawful()) {
                    peer.send_rubbish();
                }
            }
            Step::Deliver { slot, bytes } => {
                if let Some(peer) = &mut self.peers[*slot] {
                    peer.deliver(*bytes, now);
                }
            }
            Step::Read { slot, bytes } => {
                if let Some(peer) = &mut self.peers[*slot] {
                    peer.line.make_room(*bytes);
                }
            }
            Step::Work => self.work()?,
            Step::Stall { slot, millis } => self.stall(*slot, *millis)?,
            Step::Help { jobs } => _ = self.help(*jobs)?,
            Step::Write { commands } => _ = self.write(*commands)?,
            Step::Persist { succeeds } => self.persist(*succeeds),
            Step::Break { slot } => self.shatter(*slot),
            Step::Finish { slot } => {
                if let Some(peer) = &mut self.peers[*slot] {
                    peer.finish(now);
                }
            }
            Step::Pass { millis } => self.pass(*millis)?,
            Step::Goodbye => {
                self.commands.push_back(Command::Drain);
                self.orders.push_back(Order::GoAway);
            }
            Step::Settle => {
                self.settle()?;
                let Office { world, model, .. } = &mut self.office;
                self.checks.compare_rebuilt(world, model)?;
            }
        }
        self.hand_over();
        self.look_at_bindings()
    }

    /// A peer writes a request, unless it has said that it sends no more.
    fn send(&mut self, slot: usize, request: &Request, oneway: bool, header: Header) {
        let now = self.now();
        let peer = match &mut self.peers[slot] {
            Some(peer) => peer,
            vacant => {
                let (peer, socket) = Peer::new(self.room.socket, now);
                let address = ([127, 0, 0, 1], 1).into();
                self.orders.push_back(Order::Serve(socket, address));
                vacant.insert(peer)
            }
        };
        if !peer.is_lawful() {
            return;
        }
        let ticket = self.office.sent.len();
        let opaque = i32::try_from(ticket).expect("a script is short");
        let mut ask = request.ask().opaque(opaque).header(header);
        if oneway {
            ask = ask.oneway();
        }
        peer.send(ticket, &ask.wire(), oneway);
        self.office.sent.push(Sent {
            request: request.clone(),
            oneway,
            line: peer.line.clone(),
            executed: false,
        });
    }

    /// What has found no room is tried again, as the acceptor, the persister and a stop do.
    fn hand_over(&mut self) {
        while let Some(command) = self.commands.pop_front() {
            if let Err(Full(command)) = self.rig.command(command) {
                self.commands.push_front(command);
                break;
            }
        }
        while let Some(order) = self.orders.pop_front() {
            let says_goodbye = matches!(order, Order::GoAway);
            if let Err(Full(order)) = self.rig.order(order) {
                self.orders.push_front(order);
                break;
            }
            self.goodbye_is_ordered |= says_goodbye;
        }
    }

    /// A turn of the worker.
    fn work(&mut self) -> Verdict {
        let events = self.rig.poll();
        self.turn(self.now(), events)
    }

    fn turn(&mut self, asked_at: Timestamp, events: Vec<Event>) -> Verdict {
        if events.contains(&Event::Mail) {
            self.office.model.says_goodbye |= self.goodbye_is_ordered;
        }
        for executed in self.rig.turn(asked_at, self.now(), events) {
            self.office.executed(&executed)?;
        }
        let now = self.now();
        if asked_at == now && self.turn_due(now).is_some() && self.rig.next() != Next::Turn {
            return Err("the worker's deadline is over, and it does nothing about it".into());
        }
        self.look_at_peers(asked_at)
    }

    /// The process is stopped between a poll and the look at the clock behind it.
    fn stall(&mut self, slot: usize, millis: u64) -> Verdict {
        let asked_at = self.now();
        let events = self.rig.poll();
        let end = asked_at.after(Duration::from_millis(millis));
        while let Some(at) = self.scan_due(end) {
            self.office.world.now = self.now().max(at);
            self.write(0)?;
        }
        self.office.world.now = end;
        if let Some(peer) = &mut self.peers[slot] {
            peer.deliver_behind(asked_at, end);
        }
        self.turn(asked_at, events)?;
        if let Some(peer) = &mut self.peers[slot] {
            peer.forgive();
        }
        Ok(())
    }

    /// Reads what peers have got, and sees off those whose connection is closed.
    fn look_at_peers(&mut self, asked_at: Timestamp) -> Verdict {
        let idle = self.idle_timeout();
        let everyone = self.peers.iter().flatten().chain(&self.gone);
        let senders = everyone.filter(|peer| peer.may_wait_for_admission());
        let senders = senders.count();
        for peer in self.peers.iter_mut().flatten().chain(&mut self.gone) {
            peer.look(&mut self.office)?;
            let is_ordered = |id| self.ordered.contains(&id);
            if peer.line.is_closed()
                && !peer.line.id().is_some_and(is_ordered)
                && !peer.is_to_be_closed(&self.office, asked_at, idle, senders > 1)
            {
                return Err(format!("a lawful peer is cut off: {:?}", peer.line.id()));
            }
        }
        for slot in &mut self.peers {
            slot.take_if(|peer| peer.line.is_closed());
        }
        self.gone.retain(|peer| !peer.line.is_closed());
        Ok(())
    }

    fn help(&mut self, jobs: usize) -> Verdict<bool> {
        for done in 0..jobs {
            let Some(job) = self.rig.help(self.now()) else {
                return Ok(done > 0);
            };
            self.office.helped(&job)?;
        }
        Ok(jobs > 0)
    }

    fn shatter(&mut self, slot: usize) {
        if let Some(mut peer) = self.peers[slot].take() {
            peer.shatter();
            self.gone.push(peer);
        }
    }

    /// A writer's turn: commands, silence, publication, and only then what comes of them. Says whether there was anything.
    fn write(&mut self, commands: usize) -> Verdict<bool> {
        let mut touched = false;
        for _ in 0..commands {
            let Some(command) = self.rig.next_command() else {
                break;
            };
            touched = true;
            self.dead.extend(self.office.apply(command)?);
        }
        let world = &mut self.office.world;
        let now = world.now;
        let mut to_close = BTreeSet::new();
        if world.registry.poll_timeout().is_some_and(|at| at <= now) {
            world.registry.handle_timeout(now);
            if world.registry.poll_timeout().is_some_and(|at| at <= now) {
                return Err(
                    "the writer has looked for silent brokers, and is to look again at once".into(),
                );
            }
            to_close = self.office.model.scan(now.as_millis());
            touched = true;
        }
        let before = self.office.world.publications;
        let effects = self.office.world.end_batch();
        if self.office.world.publications > before {
            self.rig.publish(Arc::clone(&self.office.world.snapshot));
        }
        self.office.end_batch();
        self.carry_out(effects, &to_close)?;
        touched |= self.send_closes();
        if touched {
            self.look_at_the_deadline()?;
            let Office { world, model, .. } = &mut self.office;
            self.checks.compare(world, model)?;
        }
        Ok(touched)
    }

    fn carry_out(&mut self, effects: Vec<Effect>, to_close: &BTreeSet<ConnectionId>) -> Verdict {
        let mut closed = BTreeSet::new();
        let mut notices = Vec::new();
        for effect in effects {
            match effect {
                Effect::Reply(to, answer) => self.rig.reply(Reply::Executed { to, answer }),
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
    fn look_at_the_file(&self, file: PersistFile, content: &FileContent) -> Verdict {
        let table = self.office.model.stored.kv_out.as_ref();
        let wanted = table.map(|(table, _)| json!({ "configTable": table }));
        let is_kv = file == PersistFile::KvConfig;
        if is_kv && serde_json::from_slice::<Value>(&content.to_bytes()).ok() != wanted {
            return Err(format!(
                "the KV file is to hold {content:?} instead of {wanted:?}"
            ));
        }
        Ok(())
    }

    /// Orders to close for which the worker has no room wait, unless a broker has come over the connection meanwhile. Says whether
    /// any has gone.
    fn send_closes(&mut self) -> bool {
        let waiting = self.closes.len();
        for _ in 0..waiting {
            let id = self.closes.pop_front().expect("it was counted");
            if self.office.world.registry.carries_brokers(id) {
                continue;
            }
            if self.rig.order(Order::Close(id)).is_ok() {
                self.ordered.insert(id);
            } else {
                self.closes.push_back(id);
            }
        }
        self.closes.len() < waiting
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
        self.commands.push_back(Command::Persisted(ticket, result));
    }

    /// When the writer looks for silent brokers, if that is by `end`.
    fn scan_due(&self, end: Timestamp) -> Option<Timestamp> {
        let due = self.office.world.registry.poll_timeout();
        due.filter(|at| *at <= end)
    }

    /// When the worker wants its next turn, if that is by `end`.
    fn turn_due(&self, end: Timestamp) -> Option<Timestamp> {
        match self.rig.next() {
            Next::Turn => Some(self.now()),
            Next::Wait(deadline) => deadline.filter(|at| *at <= end),
            Next::End => None,
        }
    }

    /// Lets time pass, with every deadline on the way met. The writer gets little done meanwhile.
    fn pass(&mut self, millis: u64) -> Verdict {
        let end = self.now().after(Duration::from_millis(millis));
        loop {
            let (scan, turn) = (self.scan_due(end), self.turn_due(end));
            let Some(at) = scan.into_iter().chain(turn).min() else {
                break;
            };
            self.office.world.now = self.now().max(at);
            let commands = if turn == Some(at) { FEW } else { 0 };
            self.write(commands)?;
            if turn == Some(at) {
                self.work()?;
            }
        }
        self.office.world.now = end;
        Ok(())
    }

    /// Lets everything arrive that is under way. The worker gets a turn only when a poll would return.
    fn settle(&mut self) -> Verdict {
        for _ in 0..SETTLING_ROUNDS {
            let moved = self.round()?;
            if !moved && self.is_idle() && self.rig.is_settled() {
                let peers = self.peers.iter().flatten();
                peers.for_each(|peer| peer.line.set_room(self.room.socket));
                return self.look_at_the_calm();
            }
            if !moved {
                // What has found no room is tried again after a while.
                let millis = u64::try_from(RETRY_INTERVAL.as_millis()).expect("a small number");
                self.pass(millis)?;
            }
        }
        if self.is_idle() {
            return Err("credits are lost".into());
        }
        Err("requests stay without an answer".into())
    }

    /// Everybody does what there is to do, once. Says whether anybody had.
    fn round(&mut self) -> Verdict<bool> {
        let now = self.now();
        for peer in self.peers.iter_mut().flatten() {
            peer.deliver(ALL, now);
            peer.line.make_room(ALL);
        }
        self.hand_over();
        let mut moved = self.rig.is_awake(now);
        if moved {
            self.work()?;
        }
        if self.rig.next() == Next::End {
            return Ok(moved);
        }
        moved |= self.help(ALL)?;
        moved |= !self.persists.is_empty();
        while !self.persists.is_empty() {
            self.persist(true);
        }
        self.hand_over();
        Ok(moved | self.write(ALL)?)
    }

    fn is_idle(&self) -> bool {
        let nothing_waits = self.orders.is_empty() && self.commands.is_empty();
        let nobody_leaves = self.closes.is_empty() && self.gone.is_empty();
        let mut peers = self.peers.iter().flatten();
        nothing_waits && nobody_leaves && peers.all(|peer| peer.is_idle(&self.office))
    }

    /// What holds when nothing is under way.
    fn look_at_the_calm(&mut self) -> Verdict {
        let (now, idle) = (self.now(), self.idle_timeout());
        let mut peers = self.peers.iter().flatten();
        if let Some(peer) = peers.find(|peer| peer.outlives(now, idle)) {
            return Err(format!(
                "a connection outlives its time: {:?}",
                peer.line.id()
            ));
        }
        self.office.look_at_bindings()?;
        let model = &self.office.model;
        let open: BTreeSet<_> = self.open().collect();
        let lived_by = model.live.values().flat_map(|live| live.connections());
        let closed = lived_by.into_iter().find(|id| !open.contains(id));
        match closed.filter(|_| !model.draining) {
            Some(id) => Err(format!("nobody has told the writer of the end of {id:?}")),
            None => Ok(()),
        }
    }

    /// The connections of those who are connected, as far as the worker has them.
    fn open(&self) -> impl Iterator<Item = ConnectionId> {
        let peers = self.peers.iter().flatten();
        peers.filter_map(|peer| peer.line.id())
    }

    /// After the last step: all arrives, unless the server stops before it does; a rebuilt server says the same, and when everyone
    /// has left nothing is left of them.
    pub(super) fn finish(&mut self) -> Verdict {
        if self.ending == Ending::Leave {
            self.settle()?;
        }
        let Office { world, model, .. } = &mut self.office;
        self.checks.compare_lists(world, model)?;
        self.checks.compare_rebuilt(world, model)?;
        self.checks.look_at_what_is_kept(world, model)?;
        if self.ending == Ending::Stop {
            return self.stop();
        }
        self.checks.compare_versions(world, model)?;
        if model.draining {
            return Ok(()); // a server that stops misses nobody
        }
        (0..SLOTS).for_each(|slot| self.shatter(slot));
        self.settle()?;
        let Office { world, model, .. } = &self.office;
        let left = (world.snapshot.counts(), model.live.len());
        if left != ((0, 0, 0), 0) {
            return Err(format!("when everyone has left, {left:?} are left"));
        }
        self.checks.look_at_what_is_kept(world, model)
    }

    /// An orderly stop in the middle of everything: what is out is answered, nobody is waited for too long, and nobody's brokers
    /// leave.
    fn stop(&mut self) -> Verdict {
        self.commands.push_back(Command::Drain);
        self.orders.push_back(Order::Stop);
        let mut stops_by = None;
        while self.rig.next() != Next::End {
            let moved = self.round()?;
            if stops_by.is_none() && self.orders.is_empty() && !self.rig.is_awake(self.now()) {
                stops_by = Some(self.now().after(STOP_FLUSH_TIMEOUT));
            }
            if !moved && self.rig.next() != Next::End {
                self.pass(1)?;
            }
            if stops_by.is_some_and(|by| by < self.now()) {
                return Err("the stop waits for too long".into());
            }
        }
        let mut peers = self.peers.iter().flatten();
        if let Some(ticket) = peers.find_map(|peer| peer.unread(&self.office)) {
            let request = &self.office.sent[ticket].request;
            return Err(format!("{request:?} is done and not answered"));
        }
        self.write(ALL)?;
        self.rig.close_all();
        if let Some(command) = self.rig.next_command() {
            return Err(format!("the stop itself comes to {command:?}"));
        }
        let mut everyone = self.peers.iter().flatten().chain(&self.gone);
        if everyone.any(|peer| !peer.line.is_closed()) {
            return Err("the stop leaves a connection open".into());
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
        if let Some(dead) = lived_by.intersection(&self.dead).next() {
            return Err(format!(
                "a broker comes over {dead:?}, whose end the writer knows of"
            ));
        }
        for id in self.open().chain(self.dead.iter().copied()) {
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
