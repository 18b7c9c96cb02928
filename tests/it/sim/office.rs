//! What a worker and the writer do with a request, in the real server and in the model at the same moment. The worker's two
//! queues towards the writer are kept as `src/server/outbox.rs` keeps them.

use std::collections::{BTreeMap, VecDeque};

use waypost::{
    connection::{
        Connection, Handled,
        credit::{Credits, Outstanding},
    },
    ids::ConnectionId,
    processor::{self, Outcome},
    protocol::command::RemotingCommand,
    registry::{Command, command::PersistFile, query::Route},
};

use super::{
    answer::Answer,
    machine::Verdict,
    model::{Binding, Model},
    request::{Fault, Registration, Request},
    stored::{KvChange, Ticket},
};
use crate::world::World;

/// From this version on a server that says goodbye answers nothing else (spec 1.8).
const GO_AWAY_ABOVE: i32 = 475;

/// A request that was sent.
#[derive(Debug)]
pub(super) struct Sent {
    pub(super) request: Request,
    pub(super) oneway: bool,
}

/// What a command on its way to the writer is to the model.
#[derive(Debug, Clone, Copy)]
pub(super) enum Meaning {
    Request(ConnectionId, Ticket),
    Binding(ConnectionId, Option<Binding>),
    Closed(ConnectionId),
    Written(PersistFile, bool),
    Drain,
}

/// A command on its way to the writer.
#[derive(Debug)]
pub(super) struct Letter {
    pub(super) command: Command,
    pub(super) meaning: Meaning,
}

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct Office {
    pub(super) world: World,
    pub(super) model: Model,
    pub(super) sent: Vec<Sent>,
    /// What requests that are done must be answered with, until their peers have read it.
    pub(super) answers: BTreeMap<Ticket, Answer>,
    pub(super) mailbox: VecDeque<Letter>,
    pub(super) credits: Credits,
    mailbox_room: usize,
    unsent: VecDeque<Letter>,
    waiting: VecDeque<(ConnectionId, Letter, usize)>,
    hog: Outstanding,
    wrong: Option<String>,
}

impl Office {
    pub(super) fn new(world: World, model: Model, mailbox_room: usize) -> Self {
        Self {
            world,
            model,
            sent: Vec::new(),
            answers: BTreeMap::new(),
            mailbox: VecDeque::new(),
            credits: Credits::default(),
            mailbox_room,
            unsent: VecDeque::new(),
            waiting: VecDeque::new(),
            hog: Outstanding::default(),
            wrong: None,
        }
    }

    fn now(&self) -> u64 {
        self.world.now.as_millis()
    }

    /// What a request of a connection comes to on its worker.
    pub(super) fn execute(
        &mut self,
        from: ConnectionId,
        request: &RemotingCommand<'_>,
        route: Option<Route<'_>>,
        out: &mut Vec<u8>,
        outstanding: &mut Outstanding,
        carries_brokers: &mut bool,
    ) -> Handled {
        let ticket = usize::try_from(request.opaque).expect("tickets are counted from 0");
        let outcome = self.world.execute(from, request, route, out);
        let (answer, binding) = self.answer_of_worker(from, ticket, request.version);
        let oneway = self.sent[ticket].oneway;
        let as_expected = match &outcome {
            Outcome::Answered => answer.is_some() && binding.is_none() && !oneway,
            Outcome::Silent => answer.is_some() && binding.is_none() && oneway,
            Outcome::AnsweredAndSubmit(_) => answer.is_some(),
            Outcome::Submit(_) => answer.is_none(),
        };
        if !as_expected {
            let request = &self.sent[ticket].request;
            self.wrong = Some(format!(
                "{request:?} came to {outcome:?}, where {answer:?} and {binding:?} were expected"
            ));
        }
        if let Some(answer) = answer {
            self.expect(ticket, answer);
        }
        let (Outcome::Submit(command) | Outcome::AnsweredAndSubmit(command)) = outcome else {
            return Handled::Done;
        };
        let meaning = if matches!(command, Command::BindHeartbeat(..)) {
            Meaning::Binding(from, binding)
        } else {
            Meaning::Request(from, ticket)
        };
        let marks = processor::marks_connection(&command);
        let len = request.body.len() + command.held_len();
        let handled = self.submit(from, Letter { command, meaning }, len, outstanding);
        *carries_brokers |= marks && handled == Handled::Submitted;
        handled
    }

    /// What has gone wrong inside a connection's callback.
    pub(super) fn verdict(&mut self) -> Verdict {
        self.wrong.take().map_or(Ok(()), Err)
    }

    fn expect(&mut self, ticket: Ticket, answer: Answer) {
        if !self.sent[ticket].oneway {
            self.answers.insert(ticket, answer);
        }
    }

    /// What the worker answers by itself; `None`: the writer does.
    fn answer_of_worker(
        &mut self,
        from: ConnectionId,
        ticket: Ticket,
        version: i32,
    ) -> (Option<Answer>, Option<Binding>) {
        if self.model.says_goodbye && version > GO_AWAY_ABOVE {
            return (Some(Answer::error(1500, "please go away")), None);
        }
        let now = self.now();
        let Self { model, sent, .. } = self;
        match &sent[ticket].request {
            Request::Heartbeat(cluster, addr) => {
                let (_, binding) = model.heartbeat(cluster, addr, from, now);
                (Some(Answer::ok()), binding)
            }
            Request::DataVersion(cluster, addr, theirs) => {
                let (ours, binding) = model.heartbeat(cluster, addr, from, now);
                (Some(Model::version_answer(*theirs, ours)), binding)
            }
            Request::Register(broker) => (broker.refusal(), None),
            Request::UpdateConfig(lines) => (lines.is_empty().then(Answer::ok), None),
            Request::RegisterTopic(_, queues) => (queues.is_empty().then(Answer::ok), None),
            Request::Unregister(..)
            | Request::WipeWritePerm(_)
            | Request::AddWritePerm(_)
            | Request::DeleteTopic(..)
            | Request::PutKv(..)
            | Request::DeleteKv(..) => (None, None),
            question @ (Request::Route(_)
            | Request::ClusterInfo
            | Request::Members(..)
            | Request::AllTopics
            | Request::TopicsOfCluster(_)
            | Request::SystemTopics
            | Request::UnitTopics(_)
            | Request::GetKv(..)
            | Request::ListKv(_)
            | Request::GetConfig
            | Request::Unknown(_)) => (model.read(question, now), None),
        }
    }

    /// The next command in the mailbox takes effect. Says which.
    pub(super) fn apply_next(&mut self) -> Option<Meaning> {
        let Letter { command, meaning } = self.mailbox.pop_front()?;
        self.world.apply_one(command);
        let now = self.now();
        match meaning {
            Meaning::Request(from, ticket) => {
                if let Some(answer) = self.answer_of_writer(from, ticket) {
                    self.expect(ticket, answer);
                }
            }
            Meaning::Binding(from, Some(binding)) => self.model.bind(binding, from),
            Meaning::Binding(_, None) => {}
            Meaning::Closed(connection) => self.model.closed(connection),
            Meaning::Written(PersistFile::KvConfig, succeeded) => {
                for (ticket, answer) in self.model.stored.kv_written(succeeded) {
                    self.expect(ticket, answer);
                }
            }
            Meaning::Written(PersistFile::Properties, succeeded) => {
                let (ticket, answer) = self.model.settings_written(succeeded, now);
                self.expect(ticket, answer);
            }
            Meaning::Drain => self.model.draining = true,
        }
        Some(meaning)
    }

    /// `None`: the answer waits for a file.
    fn answer_of_writer(&mut self, from: ConnectionId, ticket: Ticket) -> Option<Answer> {
        let now = self.now();
        let Self { model, sent, .. } = self;
        let answer = match &sent[ticket].request {
            Request::Register(broker) => model.register(broker, from, now),
            Request::Unregister(cluster, name, _, addr) => model.unregister(cluster, name, addr),
            Request::WipeWritePerm(name) => model.wipe_write_perm(name),
            Request::AddWritePerm(name) => model.add_write_perm(name),
            Request::DeleteTopic(topic, cluster) => model.delete_topic(topic, *cluster),
            Request::RegisterTopic(topic, queues) => model.register_topic(topic, queues),
            Request::PutKv(namespace, key, value) => {
                let change = KvChange::Put(namespace, key, *value);
                model.stored.change_kv(ticket, change);
                return None;
            }
            Request::DeleteKv(namespace, key) => {
                model
                    .stored
                    .change_kv(ticket, KvChange::Delete(namespace, key));
                return None;
            }
            Request::UpdateConfig(lines) => {
                model.stored.change_settings(ticket, lines);
                return None;
            }
            request @ (Request::Heartbeat(..)
            | Request::DataVersion(..)
            | Request::Route(_)
            | Request::ClusterInfo
            | Request::Members(..)
            | Request::AllTopics
            | Request::TopicsOfCluster(_)
            | Request::SystemTopics
            | Request::UnitTopics(_)
            | Request::GetKv(..)
            | Request::ListKv(_)
            | Request::GetConfig
            | Request::Unknown(_)) => unreachable!("a worker answers {request:?}"),
        };
        Some(answer)
    }

    /// A batch is over: what needed no writing is done.
    pub(super) fn end_batch(&mut self) {
        for (ticket, answer) in self.model.stored.end_batch() {
            self.expect(ticket, answer);
        }
    }

    fn submit(
        &mut self,
        from: ConnectionId,
        letter: Letter,
        len: usize,
        outstanding: &mut Outstanding,
    ) -> Handled {
        if self.waiting.is_empty() && self.credits.take(outstanding, len) {
            self.push(letter);
            return Handled::Submitted;
        }
        self.waiting.push_back((from, letter, len));
        Handled::Held
    }

    fn push(&mut self, letter: Letter) {
        if self.unsent.is_empty() && self.mailbox.len() < self.mailbox_room {
            self.mailbox.push_back(letter);
        } else {
            self.unsent.push_back(letter);
        }
    }

    pub(super) fn first_waiting(&self) -> Option<ConnectionId> {
        self.waiting.front().map(|(from, ..)| *from)
    }

    /// Sends the command that waits first if there is a credit for it. Says whether it may bind a broker to its connection.
    pub(super) fn send_first_waiting(&mut self, connection: &mut Connection) -> Option<bool> {
        let len = self.waiting.front()?.2;
        if !self.credits.take(connection.outstanding_mut(), len) {
            return None;
        }
        let (_, letter, _) = self.waiting.pop_front()?;
        connection.submitted();
        let marks = processor::marks_connection(&letter.command);
        self.push(letter);
        Some(marks)
    }

    /// Hands over what the mailbox had no room for.
    pub(super) fn flush(&mut self) {
        while self.mailbox.len() < self.mailbox_room
            && let Some(letter) = self.unsent.pop_front()
        {
            self.mailbox.push_back(letter);
        }
    }

    /// A connection is gone.
    pub(super) fn abandon(&mut self, from: ConnectionId, outstanding: Outstanding) {
        self.waiting.retain(|(other, ..)| *other != from);
        self.credits.abandon(outstanding);
        self.world.forget(from);
    }

    /// The writer must learn that a connection with brokers is gone.
    pub(super) fn push_closed(&mut self, connection: ConnectionId) {
        self.push(Letter {
            command: Command::ConnectionClosed(connection),
            meaning: Meaning::Closed(connection),
        });
    }

    /// Lets other connections hold all credits but `left`.
    pub(super) fn hog(&mut self, left: usize) {
        while self.credits.take(&mut self.hog, 0) {}
        for _ in 0..left.min(self.hog.commands()) {
            self.credits.give_back(&mut self.hog);
        }
    }

    pub(super) fn give_back_the_hogs(&mut self) {
        while self.hog.commands() > 0 {
            self.credits.give_back(&mut self.hog);
        }
    }

    /// Whether no command is on its way.
    pub(super) fn is_idle(&self) -> bool {
        self.mailbox.is_empty() && self.unsent.is_empty() && self.waiting.is_empty()
    }
}

impl Registration {
    /// The answer if it is refused before the tables are looked at.
    fn refusal(&self) -> Option<Answer> {
        match self.fault? {
            Fault::Checksum => Some(Answer::error(1, "crc32 not match")),
            Fault::NoCluster
            | Fault::NoName
            | Fault::NoAddr
            | Fault::NoId
            | Fault::OddAddr
            | Fault::CutBody
            | Fault::NegativeVersion => Some(Answer::failure(1)),
        }
    }
}
