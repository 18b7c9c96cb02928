//! A connection with its socket: moves bytes between the two and requests to the processor.
//!
//! The poll is edge-triggered: a socket is read until it gives less than was asked for, or until its peer's share of the turn
//! is used up; then it stays in the worker's own list. After a FIN the short read is no end: the next one tells of the FIN.

use std::{
    io::{self, ErrorKind, Read, Write},
    net::SocketAddr,
};

use super::{
    Edge, Readiness,
    helper::Job,
    outbox::{Outbox, Work},
};
use crate::{
    connection::{
        Connection, Handled, Handler, StreamLimits, Violation, admission::Admission,
        credit::Outstanding,
    },
    ids::ConnectionId,
    limits::{
        ANSWERED_PER_TURN_MAX, ANSWERS_KEPT_LEN, OUTPUT_BATCH_LEN, READ_PER_TURN_MAX,
        WRITTEN_PER_TURN_MAX,
    },
    processor::{self, Context, KnownBrokers, Outcome, RouteCache},
    protocol::command::RemotingCommand,
    registry::{Command, RouteSnapshot, query::Routes},
    sync::Subscriber,
    time::Timestamp,
};
use bytes::Bytes;

/// What a worker's connections share while one of them is served.
#[derive(Debug)]
pub(super) struct Desk<E> {
    pub(super) edge: E,
    pub(super) snapshots: Subscriber<RouteSnapshot>,
    pub(super) outbox: Outbox,
    pub(super) admission: Admission,
    pub(super) limits: StreamLimits,
    /// What was just read.
    pub(super) scratch: Box<[u8]>,
    /// Answers to one connection, not yet offered to its socket.
    pub(super) answers: Vec<u8>,
    pub(super) route_cache: RouteCache,
    pub(super) now: Timestamp,
    pub(super) go_away: bool,
}

/// How far a connection has been served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Served {
    /// It waits for an event, a reply or an admission.
    Wholly,
    /// Its share of the turn is used up.
    ForNow,
}

/// Where in the scratch a read has put what.
#[derive(Debug, Clone, Copy)]
struct Arrived {
    /// Bytes of an unfinished frame, at the front.
    lent: usize,
    /// Bytes that were read, behind them.
    count: usize,
}

/// Why a connection ends.
#[derive(Debug)]
pub(super) enum CloseReason {
    /// The peer closed it and is owed nothing.
    Ended,
    /// The socket failed.
    Failed(io::Error),
    /// The peer does not speak the protocol.
    Violation(Violation),
    /// Nothing was read or written for the configured time.
    Idle,
    /// The peer sends no more and does not take its answers.
    Lingered,
    /// It kept others from sending large frames and sent nothing, or very little.
    Stalled,
    /// The broker behind it fell silent.
    BrokerExpired,
}

impl From<io::Error> for CloseReason {
    fn from(error: io::Error) -> Self {
        Self::Failed(error)
    }
}

/// The state of a connection towards [`Admission`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LargeFrame {
    None,
    Admitted,
    Waiting,
}

/// See the module's documentation. This is what an idle connection costs.
#[derive(Debug)]
pub(super) struct Peer<S> {
    socket: S,
    address: SocketAddr,
    connection: Connection,
    known_brokers: KnownBrokers,
    carries_brokers: bool,
    /// It is in the worker's list of connections to serve.
    pub(super) queued: bool,
    readable: bool,
    /// The peer has sent a FIN; it comes after what is still to be read.
    read_closed: bool,
    writable: bool,
    /// Both directions are dead.
    hung_up: bool,
    large_frame: LargeFrame,
}

impl<S: Read + Write> Peer<S> {
    pub(super) fn new(socket: S, address: SocketAddr, connection: Connection) -> Self {
        Self {
            socket,
            address,
            connection,
            known_brokers: KnownBrokers::default(),
            carries_brokers: false,
            queued: false,
            readable: false,
            read_closed: false,
            writable: true,
            hung_up: false,
            large_frame: LargeFrame::None,
        }
    }

    /// Both directions at once and for good: edges come only when something changes, so nothing is registered twice.
    pub(super) fn register(
        &mut self,
        edge: &mut impl Edge<Socket = S>,
        slot: u32,
    ) -> io::Result<()> {
        edge.register(&mut self.socket, slot)
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(super) fn connection(&self) -> &Connection {
        &self.connection
    }

    pub(super) fn connection_mut(&mut self) -> &mut Connection {
        &mut self.connection
    }

    /// Whether the peer is known to send no more than what has arrived.
    pub(super) fn has_gone(&self) -> bool {
        self.read_closed || self.hung_up
    }

    pub(super) fn carries_brokers(&self) -> bool {
        self.carries_brokers
    }

    /// Remembers what the poll said; says whether there is anything to do about it.
    pub(super) fn note(&mut self, readiness: Readiness) -> bool {
        self.readable |= readiness.readable || readiness.read_closed;
        self.read_closed |= readiness.read_closed;
        self.writable |= readiness.writable;
        self.hung_up |= readiness.error || readiness.write_closed;
        self.readable || self.hung_up || !self.connection.output().is_empty()
    }

    /// A command that may bind a broker to this connection is on its way to the writer.
    pub(super) fn mark_broker(&mut self) {
        self.carries_brokers = true;
    }

    /// Its large frame may be read now.
    pub(super) fn admitted(&mut self) {
        self.large_frame = LargeFrame::Admitted;
    }

    /// Reads, executes and answers as much as it may in one turn.
    pub(super) fn serve(
        &mut self,
        id: ConnectionId,
        desk: &mut Desk<impl Edge>,
    ) -> Result<Served, CloseReason> {
        let mut budget = READ_PER_TURN_MAX;
        let mut answered = 0;
        if self.connection.waits_for_commands() && self.connection.can_resume() {
            self.execute(id, desk, None)?;
        } else {
            self.write(desk)?;
        }
        loop {
            while !self.connection.waits_for_commands() && self.connection.can_resume() {
                // A peer that takes its answers as fast as they come must not keep the worker to itself.
                if answered >= ANSWERED_PER_TURN_MAX {
                    return Ok(Served::ForNow);
                }
                answered += self.execute(id, desk, None)?;
            }
            let may_read = self.connection.wants_input() && self.large_frame != LargeFrame::Waiting;
            if !(self.readable && may_read) {
                break;
            }
            if budget == 0 {
                return Ok(Served::ForNow);
            }
            budget = budget.saturating_sub(self.read(id, desk)?);
        }
        self.finish(id, desk)
    }

    /// Offers the socket what it has not taken yet, and nothing else: the server is stopping.
    pub(super) fn serve_output(
        &mut self,
        desk: &mut Desk<impl Edge>,
    ) -> Result<Served, CloseReason> {
        self.write(desk)?;
        Ok(self.after_writing())
    }

    /// Looks for the end of the connection when it has done what it could.
    fn finish(
        &mut self,
        id: ConnectionId,
        desk: &mut Desk<impl Edge>,
    ) -> Result<Served, CloseReason> {
        if self.connection.has_ended() {
            self.write(desk)?;
        }
        if self.hung_up {
            return Err(CloseReason::Failed(ErrorKind::ConnectionReset.into()));
        }
        if self.connection.has_executed_all() {
            // Its brokers leave now, however long the peer takes to accept its last answers (spec 1.9).
            if std::mem::take(&mut self.carries_brokers) {
                desk.outbox.push(Command::ConnectionClosed(id));
            }
            if self.connection.owes_nothing() {
                return Err(CloseReason::Ended);
            }
        }
        Ok(self.after_writing())
    }

    /// Whether there is more to write: a long answer is written in several turns.
    fn after_writing(&self) -> Served {
        if self.writable && !self.connection.output().is_empty() {
            Served::ForNow
        } else {
            Served::Wholly
        }
    }

    /// Whether it has sent something that was not read.
    pub(super) fn is_unread(&self) -> bool {
        self.readable
    }

    /// One read. One snapshot answers all that it completes, loaded after the read: a peer that was told of a change, by
    /// whomever, and then asks, sees it.
    fn read(&mut self, id: ConnectionId, desk: &mut Desk<impl Edge>) -> Result<usize, CloseReason> {
        let lent = self.connection.lend_input(&mut desk.scratch);
        let room = &mut desk.scratch[lent..];
        let room_len = room.len();
        let count = match self.socket.read(room) {
            Ok(count) => count,
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                self.readable = false;
                return Ok(0);
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => return Ok(0),
            Err(error) => return Err(error.into()),
        };
        if count == 0 {
            self.readable = false;
            self.connection.handle_end(desk.now);
            return Ok(0);
        }
        self.readable = count == room_len || self.read_closed;
        self.execute(id, desk, Some(Arrived { lent, count }))?;
        Ok(count)
    }

    /// Executes what has arrived behind what was lent for it, or (with nothing new) what was kept. Says how many bytes of
    /// answers came of it.
    fn execute(
        &mut self,
        id: ConnectionId,
        desk: &mut Desk<impl Edge>,
        arrived: Option<Arrived>,
    ) -> Result<usize, CloseReason> {
        let clerk = Clerk {
            id,
            address: self.address,
            edge: &mut desk.edge,
            snapshot: desk.snapshots.load(),
            now: desk.now,
            go_away: desk.go_away,
            known_brokers: &mut self.known_brokers,
            route_cache: &mut desk.route_cache,
            carries_brokers: &mut self.carries_brokers,
            outbox: &mut desk.outbox,
            routes: Routes::new(),
            shared: None,
        };
        let (limits, answers) = (&desk.limits, &mut desk.answers);
        let answered_before = answers.len();
        let there = self.connection.input_len() + arrived.map_or(0, |arrived| arrived.count);
        let executed = match arrived {
            Some(Arrived { lent, count }) => {
                let input = &desk.scratch[..lent + count];
                self.connection
                    .handle_input(input, lent, limits, desk.now, answers, clerk)
            }
            None => self.connection.resume(limits, answers, clerk),
        };
        let answered = desk.answers.len() - answered_before;
        if self.connection.input_len() < there {
            // A frame that was admitted is done with. The next one has a time of its own, and takes its turn.
            self.release_admission(id, &mut desk.admission);
        }
        self.settle(id, desk, executed)?;
        Ok(answered)
    }

    /// After requests were executed: asks for admission, and writes their answers if they cannot wait for those of the other
    /// connections ([`Worker::write_answers`](super::turn::Worker)): those before a violation, those behind kept ones, and
    /// very many.
    fn settle(
        &mut self,
        id: ConnectionId,
        desk: &mut Desk<impl Edge>,
        executed: Result<(), Violation>,
    ) -> Result<(), CloseReason> {
        let at_once = executed.is_err()
            || !self.connection.output().is_empty()
            || desk.answers.len() > OUTPUT_BATCH_LEN;
        let written = if at_once { self.write(desk) } else { Ok(()) };
        executed.map_err(CloseReason::Violation)?;
        written?;
        self.ask_admission(id, desk);
        Ok(())
    }

    fn ask_admission(&mut self, id: ConnectionId, desk: &mut Desk<impl Edge>) {
        let Some(frame_len) = self.connection.large_unfinished_frame_len() else {
            self.release_admission(id, &mut desk.admission);
            return;
        };
        if self.connection.wants_input() {
            let arrived = self.connection.input_len();
            let admitted = desk.admission.ask(id, frame_len, arrived, desk.now);
            self.large_frame = if admitted {
                LargeFrame::Admitted
            } else {
                LargeFrame::Waiting
            };
        } else if self.connection.waits_for_commands() {
            desk.admission.suspend(id);
        }
    }

    pub(super) fn release_admission(&mut self, id: ConnectionId, admission: &mut Admission) {
        if self.large_frame != LargeFrame::None {
            self.large_frame = LargeFrame::None;
            admission.release(id);
        }
    }

    /// Writes what was kept, then the fresh answers, in one piece unless the socket is full.
    pub(super) fn write(&mut self, desk: &mut Desk<impl Edge>) -> Result<(), CloseReason> {
        let Desk {
            answers,
            limits,
            now,
            ..
        } = desk;
        if !self.connection.output().is_empty() {
            self.connection.keep_output(answers);
            answers.clear();
            let mut room = WRITTEN_PER_TURN_MAX;
            while self.writable && room > 0 && !self.connection.output().is_empty() {
                let next = self.connection.output().as_slice();
                let next = &next[..next.len().min(room)];
                let count = write_some(&mut self.socket, next, &mut self.writable)?;
                room -= count;
                self.connection.written(count, *now);
            }
        } else if !answers.is_empty() {
            let mut sent = 0;
            while self.writable && sent < answers.len() {
                let written = write_some(&mut self.socket, &answers[sent..], &mut self.writable);
                // A failed socket is owed nothing; the buffer is the next connection's.
                sent += written.inspect_err(|_| answers.clear())?;
            }
            self.connection.answered(sent, &answers[sent..], *now);
            answers.clear();
        }
        // One long answer would keep its room for as long as the others are short.
        answers.shrink_to(ANSWERS_KEPT_LEN);
        self.connection.apply_water_marks(limits);
        Ok(())
    }

    /// Ends the connection so that the answers just written arrive: unread requests would turn the close into a reset.
    pub(super) fn close_orderly<E: Edge<Socket = S>>(mut self, scratch: &mut [u8]) {
        let shut = E::shut(&mut self.socket);
        let drained = shut.and_then(|()| self.socket.read(scratch));
        tracing::trace!(peer = %self.address, ?drained, "closed");
    }
}

/// One write; clears `writable` when the socket is full.
fn write_some(socket: &mut impl Write, bytes: &[u8], writable: &mut bool) -> io::Result<usize> {
    match socket.write(bytes) {
        Ok(0) => Err(ErrorKind::WriteZero.into()),
        Ok(count) => Ok(count),
        Err(error) if error.kind() == ErrorKind::WouldBlock => {
            *writable = false;
            Ok(0)
        }
        Err(error) if error.kind() == ErrorKind::Interrupted => Ok(0),
        Err(error) => Err(error),
    }
}

/// Executes the requests of one connection against one snapshot.
struct Clerk<'a, E> {
    id: ConnectionId,
    address: SocketAddr,
    edge: &'a mut E,
    snapshot: &'a RouteSnapshot,
    now: Timestamp,
    go_away: bool,
    known_brokers: &'a mut KnownBrokers,
    route_cache: &'a mut RouteCache,
    carries_brokers: &'a mut bool,
    outbox: &'a mut Outbox,
    /// Found ahead, by the requests' places.
    routes: Routes<'a>,
    /// Where the requests lie, if that can be kept without a copy.
    shared: Option<Bytes>,
}

impl<E: Edge> Handler for Clerk<'_, E> {
    fn look_ahead(&mut self, requests: &[RemotingCommand<'_>]) {
        self.routes = processor::look_ahead(requests, self.snapshot);
    }

    fn share(&mut self, bytes: &Bytes) {
        self.shared = Some(bytes.clone());
    }

    fn handle(
        &mut self,
        place: usize,
        request: &RemotingCommand<'_>,
        out: &mut Vec<u8>,
        outstanding: &mut Outstanding,
    ) -> Handled {
        if processor::is_heavy(request, self.snapshot) {
            let job = Job {
                connection: self.id,
                peer: self.address,
                go_away: self.go_away,
                frame: match &self.shared {
                    Some(shared) => shared.slice_ref(request.frame),
                    None => Bytes::copy_from_slice(request.frame),
                },
            };
            let len = request.frame.len();
            return self
                .outbox
                .submit(self.id, Work::Job(job), len, outstanding);
        }
        self.edge.executes(self.id, request);
        let mut context = Context {
            snapshot: self.snapshot,
            route: self.routes.get_mut(place).and_then(Option::take),
            now: self.now,
            connection: self.id,
            peer: self.address,
            known_brokers: self.known_brokers,
            route_cache: self.route_cache,
            go_away: self.go_away,
        };
        match processor::process(request, &mut context, out) {
            Outcome::Answered | Outcome::Silent => Handled::Done,
            Outcome::Submit(command) | Outcome::AnsweredAndSubmit(command) => {
                let marks = processor::marks_connection(&command);
                let len = request.body.len() + command.held_len();
                let work = Work::Command(command);
                let handled = self.outbox.submit(self.id, work, len, outstanding);
                // One that waits for a credit may never be sent; the outbox says when it is.
                *self.carries_brokers |= marks && handled == Handled::Submitted;
                handled
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_idle_connection_costs_at_most_three_hundred_bytes() {
        let len = size_of::<Peer<mio::net::TcpStream>>();
        assert!(len <= 300, "{len}");
    }
}
