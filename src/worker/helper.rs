//! Executes the requests that would hold a worker up: registrations of many topics, lists of all topics or brokers.
//!
//! A worker that parses a megabyte of JSON, or writes one, keeps all its other connections waiting for milliseconds. So it gives
//! such a request away as it came, and takes back what came of it: an answer, or a command that still goes through the worker's
//! own outbox, so that what it knows of the connection (that it is gone, above all) stays in order. Meanwhile the connection
//! executes nothing behind it.

use std::net::SocketAddr;

use bytes::Bytes;
use smallvec::SmallVec;

use crate::{
    ids::ConnectionId,
    processor::{self, Context, KnownBrokers, Outcome, RouteCache},
    protocol::{
        code::{RequestCode, ResponseCode},
        command::RemotingCommand,
        encode, frame,
    },
    registry::{Command, KvNamespace, RouteSnapshot},
    sync::Subscriber,
    time::Timestamp,
};

/// A request that a worker gives away. At most as many are out as the worker has credits.
#[derive(Debug)]
pub struct Job {
    /// Where it came from.
    pub connection: ConnectionId,
    /// The same for log lines.
    pub peer: SocketAddr,
    /// Whether the server was leaving when it came (spec 1.8).
    pub go_away: bool,
    /// The frame without its length word.
    pub frame: Bytes,
}

/// What came of a job.
#[derive(Debug)]
pub enum Done {
    /// It is answered with these bytes, or wants no answer.
    Answer(Answer),
    /// It is read; the writer executes it, and it counts as `request_len` bytes until then.
    Command {
        /// What it asks of the writer.
        command: Command,
        /// How much it counts as.
        request_len: usize,
    },
}

/// The pieces of an answer.
pub type Answer = SmallVec<[Bytes; 2]>;

/// What executes jobs, against the newest snapshot each.
#[derive(Debug)]
pub struct Helper {
    snapshots: Subscriber<RouteSnapshot>,
    lists: Lists,
}

/// Bodies of the lists that were asked for last, as long as nothing has changed: those who ask for them repeat themselves, and
/// the bytes are shared by all answers that are not sent yet.
#[derive(Debug, Default)]
struct Lists {
    version: u64,
    bodies: Vec<(RequestCode, Bytes)>,
    /// The KV list that was asked for last: most versions leave it as it is.
    kv: Option<(KvNamespace, Bytes)>,
}

impl Helper {
    /// A helper that has no list at hand.
    #[must_use]
    pub fn new(snapshots: Subscriber<RouteSnapshot>) -> Self {
        Self {
            snapshots,
            lists: Lists::default(),
        }
    }

    /// To be called before a wait: a version that this thread pins while it waits could not be freed.
    pub fn rest(&mut self) {
        self.snapshots.load();
    }

    /// Executes a request.
    pub fn execute(&mut self, job: &Job, now: Timestamp) -> Done {
        let request = RemotingCommand::decode(&job.frame).expect("its worker has decoded it");
        let snapshot = self.snapshots.load();
        let code = RequestCode::from_i32(request.code).filter(|_| !request.is_oneway());
        if !job.go_away
            && let Some(code) = code
            && let Some(body) = self.lists.get(code, &request, snapshot)
        {
            return Done::Answer(with_body(&request, body));
        }
        let mut out = Vec::new();
        let mut context = Context {
            snapshot,
            route: None,
            now,
            connection: job.connection,
            peer: job.peer,
            known_brokers: &mut KnownBrokers::default(),
            route_cache: &mut RouteCache::default(),
            go_away: job.go_away,
        };
        match processor::process(&request, &mut context, &mut out) {
            Outcome::Answered | Outcome::Silent => {
                let answer = Bytes::from(out);
                if let Some(code) = code {
                    self.lists.keep(code, &request, snapshot, &answer);
                }
                Done::Answer(Answer::from_iter([answer]))
            }
            Outcome::Submit(command) | Outcome::AnsweredAndSubmit(command) => Done::Command {
                request_len: job.frame.len() + command.held_len(),
                command,
            },
        }
    }
}

impl Lists {
    fn get(
        &self,
        code: RequestCode,
        request: &RemotingCommand<'_>,
        snapshot: &RouteSnapshot,
    ) -> Option<Bytes> {
        if code == RequestCode::GetKvListByNamespace {
            let wanted = processor::listed_namespace(request, snapshot)?;
            let (namespace, body) = self.kv.as_ref()?;
            return namespace.is_same(wanted).then(|| body.clone());
        }
        let known = self.bodies.iter().find(|(of, _)| *of == code);
        known
            .filter(|_| self.version == snapshot.version())
            .map(|(_, body)| body.clone())
    }

    fn keep(
        &mut self,
        code: RequestCode,
        request: &RemotingCommand<'_>,
        snapshot: &RouteSnapshot,
        answer: &Bytes,
    ) {
        let body = frame::body_at(answer).map(|start| answer.slice(start..));
        // An error has none.
        let Some(body) = body.filter(|body| !body.is_empty()) else {
            return;
        };
        if code == RequestCode::GetKvListByNamespace {
            let namespace = processor::listed_namespace(request, snapshot);
            self.kv = namespace.map(|namespace| (namespace.clone(), body));
            return;
        }
        if !processor::is_list_of_all(code) {
            return;
        }
        if self.version != snapshot.version() {
            self.bodies.clear();
            self.version = snapshot.version();
        }
        // While the server says goodbye nobody is answered from here, but some are still answered.
        let is_known = self.bodies.iter().any(|(of, _)| *of == code);
        if !is_known {
            self.bodies.push((code, body));
        }
    }
}

fn with_body(request: &RemotingCommand<'_>, body: Bytes) -> Answer {
    let mut head = Vec::new();
    encode::begin_response(
        &mut head,
        request.reply_head(),
        ResponseCode::Success,
        None,
        None,
    )
    .finish_before(&mut head, body.len());
    Answer::from_iter([Bytes::from(head), body])
}
