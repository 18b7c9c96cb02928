//! What each request comes to in the model, at the moment at which the server executes it.

use std::collections::BTreeMap;

use waypost::{
    ids::ConnectionId,
    protocol::command::RemotingCommand,
    registry::{
        Command,
        command::{PersistFile, ReplyTo},
    },
    worker::helper::Job,
};

use super::{
    answer::Answer,
    machine::Verdict,
    model::{Binding, Model},
    request::{Fault, Registration, Request},
    stored::{KvChange, Ticket},
};
use crate::{
    corpus::properties::rig::{Executed, Far},
    world::World,
};

/// From this version on a server that says goodbye answers nothing else (spec 1.8).
const GO_AWAY_ABOVE: i32 = 475;

/// A request that was sent.
#[derive(Debug)]
pub(super) struct Sent {
    pub(super) request: Request,
    pub(super) oneway: bool,
    /// What it was sent over.
    pub(super) line: Far,
    /// The worker or the helper has executed it.
    pub(super) executed: bool,
}

/// Who executes a request and under which circumstances.
#[derive(Debug, Clone, Copy)]
struct Circumstances {
    from: ConnectionId,
    version: i32,
    goes_away: bool,
}

/// What a command on its way to the writer is to the model.
#[derive(Debug, Clone)]
enum Meaning {
    Request(ConnectionId, Ticket),
    Binding(ConnectionId, Ticket),
    Closed(ConnectionId),
    Written(PersistFile, bool),
    Drain,
}

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct Office {
    pub(super) world: World,
    pub(super) model: Model,
    pub(super) sent: Vec<Sent>,
    /// What requests that are done must be answered with, until their peers have read it.
    pub(super) answers: BTreeMap<Ticket, Answer>,
    /// Bindings that were asked for and the writer has not made.
    bindings: BTreeMap<Ticket, Binding>,
}

impl Office {
    pub(super) fn new(world: World, model: Model) -> Self {
        Self {
            world,
            model,
            sent: Vec::new(),
            answers: BTreeMap::new(),
            bindings: BTreeMap::new(),
        }
    }

    fn now(&self) -> u64 {
        self.world.now.as_millis()
    }

    /// The worker has executed a request itself.
    pub(super) fn executed(&mut self, executed: &Executed) -> Verdict {
        let circumstances = Circumstances {
            from: executed.connection,
            version: executed.version,
            goes_away: self.model.says_goodbye,
        };
        self.execute(ticket(executed.opaque), circumstances)
    }

    /// The helper has executed a request.
    pub(super) fn helped(&mut self, job: &Job) -> Verdict {
        let request = RemotingCommand::decode(&job.frame).expect("a frame of ours");
        let circumstances = Circumstances {
            from: job.connection,
            version: request.version,
            goes_away: job.go_away,
        };
        self.execute(ticket(request.opaque), circumstances)
    }

    fn execute(&mut self, ticket: Ticket, circumstances: Circumstances) -> Verdict {
        let Sent {
            request,
            line,
            executed,
            ..
        } = &mut self.sent[ticket];
        if line.id() != Some(circumstances.from) {
            return Err(format!(
                "{request:?} of {:?} is executed for {:?}",
                line.id(),
                circumstances.from
            ));
        }
        if std::mem::replace(executed, true) {
            return Err(format!("{request:?} is executed twice"));
        }
        let (answer, binding) = self.answer_of_worker(ticket, circumstances);
        if let Some(answer) = answer {
            self.expect(ticket, answer);
        }
        if let Some(binding) = binding {
            self.bindings.insert(ticket, binding);
        }
        Ok(())
    }

    fn expect(&mut self, ticket: Ticket, answer: Answer) {
        if !self.sent[ticket].oneway {
            self.answers.insert(ticket, answer);
        }
    }

    /// What is answered from a snapshot; `None`: the writer answers.
    fn answer_of_worker(
        &mut self,
        ticket: Ticket,
        Circumstances {
            from,
            version,
            goes_away,
        }: Circumstances,
    ) -> (Option<Answer>, Option<Binding>) {
        if goes_away && version > GO_AWAY_ABOVE {
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

    /// The writer executes a command. Says whose end it tells of, if it does.
    pub(super) fn apply(&mut self, command: Command) -> Verdict<Option<ConnectionId>> {
        let meaning = meaning(&command);
        self.world.apply_one(command);
        let now = self.now();
        match meaning {
            Meaning::Request(from, ticket) => {
                if self.answers.contains_key(&ticket) || !self.sent[ticket].executed {
                    let request = &self.sent[ticket].request;
                    return Err(format!("{request:?} is nothing for the writer"));
                }
                if let Some(answer) = self.answer_of_writer(from, ticket) {
                    self.expect(ticket, answer);
                }
            }
            Meaning::Binding(from, ticket) => {
                let Some(binding) = self.bindings.remove(&ticket) else {
                    let request = &self.sent[ticket].request;
                    return Err(format!("{request:?} binds a connection again"));
                };
                self.model.bind(binding, from);
            }
            Meaning::Closed(connection) => {
                self.model.closed(connection);
                return Ok(Some(connection));
            }
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
        Ok(None)
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

    /// When nothing is under way, no binding is left but those that their connections have taken along.
    pub(super) fn look_at_bindings(&mut self) -> Verdict {
        let sent = &self.sent;
        self.bindings
            .retain(|ticket, _| !sent[*ticket].line.is_closed());
        match self.bindings.first_key_value() {
            None => Ok(()),
            Some((ticket, binding)) => {
                let request = &self.sent[*ticket].request;
                Err(format!("{request:?} has not made {binding:?}"))
            }
        }
    }
}

fn ticket(opaque: i32) -> Ticket {
    usize::try_from(opaque).expect("tickets are counted from 0")
}

fn meaning(command: &Command) -> Meaning {
    let request = |to: &ReplyTo| Meaning::Request(to.connection, ticket(to.head.opaque));
    match command {
        Command::Register(to, _)
        | Command::Unregister(to, _)
        | Command::WipeWritePerm(to, _)
        | Command::AddWritePerm(to, _)
        | Command::DeleteTopic(to, ..)
        | Command::RegisterTopic(to, ..)
        | Command::PutKv(to, ..)
        | Command::DeleteKv(to, ..)
        | Command::UpdateConfig(to, _) => request(to),
        Command::BindHeartbeat(to, _) => Meaning::Binding(to.connection, ticket(to.head.opaque)),
        Command::ConnectionClosed(connection) => Meaning::Closed(*connection),
        Command::Persisted(ticket, result) => Meaning::Written(ticket.file, result.is_ok()),
        Command::Drain => Meaning::Drain,
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
