//! Both ends of a connection. The server's end is a [`Connection`] that is fed and emptied as `src/server/peer.rs` does it; the
//! socket between the two holds what has not arrived, and takes no more than it has room for.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use waypost::{
    connection::{Connection, Handled, Handler, StreamLimits, credit::Outstanding},
    ids::ConnectionId,
    processor::look_ahead,
    protocol::command::RemotingCommand,
    registry::{RouteSnapshot, query::Routes},
    time::Timestamp,
};

use super::{machine::Verdict, office::Office, stored::Ticket};
use crate::world::read_reply;

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct Peer {
    pub(super) connection: Connection,
    /// Sent by the peer, not arrived.
    pub(super) pipe: Vec<u8>,
    /// Arrived, not read.
    arrived: Vec<u8>,
    /// What the socket still takes.
    pub(super) room: usize,
    /// What the peer has read and not understood yet.
    inbox: Vec<u8>,
    /// Requests in the order in which they were sent, without the one-way ones.
    pub(super) awaits: VecDeque<Ticket>,
    pub(super) carries_brokers: bool,
    /// It sends no more.
    pub(super) finishes: bool,
}

/// Whether the server is done with a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Served {
    Open,
    Ended,
}

impl Peer {
    pub(super) fn new(idle: Duration, now: Timestamp, room: usize) -> Self {
        Self {
            connection: Connection::new(idle, now),
            pipe: Vec::new(),
            arrived: Vec::new(),
            room,
            inbox: Vec::new(),
            awaits: VecDeque::new(),
            carries_brokers: false,
            finishes: false,
        }
    }

    pub(super) fn deliver(&mut self, bytes: usize) {
        let bytes = bytes.min(self.pipe.len());
        self.arrived.extend(self.pipe.drain(..bytes));
    }

    /// Reads, executes and answers what it can.
    pub(super) fn serve(
        &mut self,
        id: ConnectionId,
        office: &mut Office,
        limits: &StreamLimits,
        scratch: &mut [u8],
    ) -> Verdict<Served> {
        if self.connection.waits_for_commands() && self.connection.can_resume() {
            self.execute(id, office, limits, None)?;
        } else {
            self.write(&[], office, limits)?;
        }
        loop {
            while !self.connection.waits_for_commands() && self.connection.can_resume() {
                self.execute(id, office, limits, None)?;
            }
            if !self.connection.wants_input() {
                break;
            }
            if self.arrived.is_empty() {
                if self.finishes && self.pipe.is_empty() {
                    self.connection.handle_end(office.world.now);
                }
                break;
            }
            let lent = self.connection.lend_input(scratch);
            let count = self.arrived.len().min(scratch.len() - lent);
            scratch[lent..lent + count].copy_from_slice(&self.arrived[..count]);
            self.arrived.drain(..count);
            self.execute(id, office, limits, Some((&scratch[..lent + count], lent)))?;
        }
        Ok(self.finish(id, office))
    }

    fn finish(&mut self, id: ConnectionId, office: &mut Office) -> Served {
        if !self.connection.has_executed_all() {
            return Served::Open;
        }
        if std::mem::take(&mut self.carries_brokers) {
            office.push_closed(id);
        }
        if self.connection.owes_nothing() {
            Served::Ended
        } else {
            Served::Open
        }
    }

    fn execute(
        &mut self,
        id: ConnectionId,
        office: &mut Office,
        limits: &StreamLimits,
        input: Option<(&[u8], usize)>,
    ) -> Verdict {
        let Self {
            connection,
            carries_brokers,
            ..
        } = self;
        let now = office.world.now;
        let snapshot = Arc::clone(&office.world.snapshot);
        let clerk = Clerk {
            id,
            office,
            snapshot: &snapshot,
            carries_brokers,
            routes: Routes::new(),
        };
        let mut answers = Vec::new();
        let executed = match input {
            Some((bytes, lent)) => {
                connection.handle_input(bytes, lent, limits, now, &mut answers, clerk)
            }
            None => connection.resume(limits, &mut answers, clerk),
        };
        office.verdict()?;
        executed.map_err(|violation| format!("a lawful peer is cut off: {violation}"))?;
        self.write(&answers, office, limits)
    }

    fn write(&mut self, answers: &[u8], office: &mut Office, limits: &StreamLimits) -> Verdict {
        let now = office.world.now;
        if self.connection.output().is_empty() {
            let sent = answers.len().min(self.room);
            self.inbox.extend(&answers[..sent]);
            self.room -= sent;
            if !answers.is_empty() {
                self.connection.answered(sent, &answers[sent..], now);
            }
        } else {
            self.connection.keep_output(answers);
            while self.room > 0 && !self.connection.output().is_empty() {
                let next = self.connection.output().as_slice();
                let sent = next.len().min(self.room);
                self.inbox.extend(&next[..sent]);
                self.room -= sent;
                self.connection.written(sent, now);
            }
        }
        self.connection.apply_water_marks(limits);
        self.understand(office)
    }

    /// The peer looks at what it has read: answers in the order of its requests, each what the model says.
    fn understand(&mut self, office: &mut Office) -> Verdict {
        while let Some(length) = self.inbox.first_chunk::<4>() {
            let length = usize::try_from(u32::from_be_bytes(*length)).expect("a small number");
            if self.inbox.len() < 4 + length {
                break;
            }
            let frame: Vec<u8> = self.inbox.drain(..4 + length).collect();
            let reply = read_reply(&frame);
            let Some(ticket) = self.awaits.pop_front() else {
                return Err(format!("nobody asked for {reply:?}"));
            };
            let request = &office.sent[ticket].request;
            if i64::try_from(ticket) != Ok(reply.opaque) {
                return Err(format!("{reply:?} overtakes the answer to {request:?}"));
            }
            let Some(answer) = office.answers.remove(&ticket) else {
                return Err(format!(
                    "{request:?} is answered before it is done: {reply:?}"
                ));
            };
            if !answer.allows(&reply) {
                return Err(format!(
                    "{request:?} is answered with {reply:?} instead of {answer:?}"
                ));
            }
        }
        Ok(())
    }

    /// Whether nothing is on its way in either direction.
    pub(super) fn is_idle(&self) -> bool {
        let nothing_in = self.pipe.is_empty() && self.arrived.is_empty();
        nothing_in && self.connection.output().is_empty() && self.awaits.is_empty()
    }
}

/// Takes the requests of one connection, several at a time.
struct Clerk<'a> {
    id: ConnectionId,
    office: &'a mut Office,
    snapshot: &'a RouteSnapshot,
    carries_brokers: &'a mut bool,
    /// Looked up ahead, by the requests' places.
    routes: Routes<'a>,
}

impl Handler for Clerk<'_> {
    fn look_ahead(&mut self, requests: &[RemotingCommand<'_>]) {
        self.routes = look_ahead(requests, self.snapshot);
    }

    fn handle(
        &mut self,
        place: usize,
        request: &RemotingCommand<'_>,
        out: &mut Vec<u8>,
        outstanding: &mut Outstanding,
    ) -> Handled {
        let route = self.routes.get_mut(place).and_then(Option::take);
        let carries_brokers = &mut *self.carries_brokers;
        self.office
            .execute(self.id, request, route, out, outstanding, carries_brokers)
    }
}
