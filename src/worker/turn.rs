//! The turn itself: in which order things are taken in, served and handed over.

use std::{collections::VecDeque, net::SocketAddr};

use super::{
    Edge, Event, Next, Polled,
    connections::Connections,
    helper::Done,
    log_limit::LogLimit,
    message::{Order, Reply},
    outbox::{Outbox, Work},
    peer::{CloseReason, Desk, Peer, Served},
};
use crate::{
    connection::{Connection, Handled, StreamLimits, admission::Admission, deadlines::Deadlines},
    ids::ConnectionId,
    limits::{
        ANSWERS_KEPT_LEN, ENDINGS_PER_TURN_MAX, EVENTS_MAX, IN_FLIGHT_MAX, ORDERS_MAX,
        READ_SCRATCH_LEN, RETRY_INTERVAL, STOP_FLUSH_TIMEOUT, WRITTEN_TOGETHER_LEN_MAX,
        WRITTEN_TOGETHER_MAX,
    },
    processor::{self, RouteCache},
    registry::{Command, RouteSnapshot},
    sync::{Receiver, Subscriber, Wake},
    time::Timestamp,
};

/// What reaches a worker from other threads.
#[derive(Debug)]
pub struct Inlets<S, W> {
    /// May be full: who sends keeps what does not fit.
    pub orders: Receiver<Order<S>, W>,
    /// Has room for all that the worker may have out.
    pub replies: Receiver<Reply, W>,
}

/// Answers that wait until the other connections with something to do are served too.
///
/// A peer that waits for its answer is woken by the write, which costs this thread more than the answer did; one that is served
/// together with others finds several answers when it wakes, and is not woken again for each. [`WRITTEN_TOGETHER_MAX`] says what it
/// gives.
#[derive(Debug, Default)]
struct Unwritten {
    answers: Vec<(ConnectionId, Vec<u8>)>,
    len: usize,
    /// Empty buffers.
    spare: Vec<Vec<u8>>,
}

impl Unwritten {
    fn is_full(&self) -> bool {
        self.answers.len() >= WRITTEN_TOGETHER_MAX || self.len >= WRITTEN_TOGETHER_LEN_MAX
    }

    /// Takes what a connection was answered, and leaves an empty buffer.
    fn push(&mut self, id: ConnectionId, answers: &mut Vec<u8>) {
        self.len += answers.len();
        let empty = self.spare.pop().unwrap_or_default();
        self.answers.push((id, std::mem::replace(answers, empty)));
    }

    /// Gives back an empty buffer, unless it has grown large.
    fn give_back(&mut self, mut buffer: Vec<u8>) {
        buffer.clear();
        if buffer.capacity() <= ANSWERS_KEPT_LEN {
            self.spare.push(buffer);
        }
    }
}

/// What owns connections.
#[derive(Debug)]
pub struct Worker<E: Edge> {
    connections: Connections<Peer<E::Socket>>,
    /// Connections with something to do. By identity, for a slot that is closed and taken again while it waits here would be
    /// served twice.
    ready: VecDeque<ConnectionId>,
    /// The same of connections whose peer has gone: a few a turn, since closing a socket takes longer than answering, and when
    /// thousands close at once the others should not wait for all of them.
    ending: VecDeque<ConnectionId>,
    /// Turns in a row that took as many events as a turn can take.
    full_turns: usize,
    deadlines: Deadlines,
    desk: Desk<E>,
    unwritten: Unwritten,
    peer_log: LogLimit,
    /// When a stop no longer waits for peers.
    stops_at: Option<Timestamp>,
}

impl<E: Edge> Worker<E> {
    /// A worker without connections. Its unfinished large frames may hold `unfinished_len_max` bytes, if that is a
    /// [`share`](crate::connection::admission::share).
    #[must_use]
    pub fn new(
        index: u16,
        edge: E,
        snapshots: Subscriber<RouteSnapshot>,
        outbox: Outbox,
        limits: StreamLimits,
        unfinished_len_max: usize,
    ) -> Self {
        Self {
            connections: Connections::new(index),
            ready: VecDeque::new(),
            ending: VecDeque::new(),
            full_turns: 0,
            deadlines: Deadlines::default(),
            desk: Desk {
                edge,
                snapshots,
                outbox,
                admission: Admission::new(unfinished_len_max),
                limits,
                scratch: vec![0; READ_SCRATCH_LEN].into_boxed_slice(),
                answers: Vec::new(),
                route_cache: RouteCache::default(),
                now: Timestamp::default(),
                go_away: false,
            },
            unwritten: Unwritten::default(),
            peer_log: LogLimit::default(),
            stops_at: None,
        }
    }

    /// One turn, with all that comes of it. When it returns [`Next::End`], [`Self::close_all`] is left to do.
    pub fn turn<W: Wake>(
        &mut self,
        inlets: &mut Inlets<E::Socket, W>,
        polled: Polled<impl IntoIterator<Item = Event>>,
    ) -> Next {
        self.desk.now = polled.now;
        let (mut count, mut called) = (0, false);
        for event in polled.events {
            count += 1;
            match event {
                Event::Mail => called = true,
                Event::Socket(slot, readiness) => {
                    if let Some((id, peer)) = self.connections.at_slot(slot)
                        && peer.note(readiness)
                    {
                        self.enqueue(id);
                    }
                }
            }
        }
        // After all events: an order may give a slot to a new connection, which the old one's events do not concern.
        if called {
            // Replies first: an order to close that was given before a reply is then seen in the same turn, before the reply is
            // written, so what a peer has been told is not undone by what came before (fault A11).
            inlets
                .replies
                .drain(IN_FLIGHT_MAX, |reply| self.handle_reply(reply));
            inlets
                .orders
                .drain(ORDERS_MAX, |order| self.handle_order(order));
        }
        self.serve_ready();
        // Who stops reads nothing, so it cannot judge who is silent; what it waits for has a deadline of its own.
        if self.has_heard_all(count) && self.stops_at.is_none() {
            self.handle_deadlines(polled.asked_at);
            self.close_stalled(polled.asked_at);
        }
        self.admit();
        self.desk.outbox.flush(self.desk.now);
        // A version that this thread pins while it waits could not be freed.
        self.desk.snapshots.load();
        self.next()
    }

    /// Whether every peer that has sent something was noticed. After a pause of the whole process every deadline has passed, and
    /// only what peers sent meanwhile tells who is alive. A socket is told of once in each round over all, so a worker that never
    /// has a quiet turn knows it after as many turns as a round has.
    fn has_heard_all(&mut self, events: usize) -> bool {
        if events < EVENTS_MAX {
            self.full_turns = 0;
            return true;
        }
        self.full_turns += 1;
        self.full_turns > self.connections.slot_count() / EVENTS_MAX + 1
    }

    fn next(&mut self) -> Next {
        if self.has_stopped() {
            return Next::End;
        }
        if !(self.ready.is_empty() && self.ending.is_empty()) {
            return Next::Turn;
        }
        let of_connections = if self.connections.is_empty() {
            None
        } else {
            self.deadlines.poll_timeout()
        };
        let of_silence = [of_connections, self.desk.admission.poll_timeout()];
        let deadlines = [
            self.stops_at.or(of_silence.into_iter().flatten().min()),
            self.desk.outbox.poll_timeout(),
        ];
        Next::Wait(deadlines.into_iter().flatten().min())
    }

    fn handle_order(&mut self, order: Order<E::Socket>) {
        match order {
            Order::Serve(socket, address) => self.open(socket, address),
            Order::Close(id) => self.close(id, &CloseReason::BrokerExpired),
            Order::GoAway => self.desk.go_away = true,
            Order::Stop => {
                self.stops_at = Some(self.desk.now.after(STOP_FLUSH_TIMEOUT));
            }
        }
    }

    fn open(&mut self, socket: E::Socket, address: SocketAddr) {
        let idle_timeout = self.desk.snapshots.load().settings().channel_max_idle;
        let connection = Connection::new(idle_timeout, self.desk.now);
        let deadline = connection.poll_timeout();
        let id = self
            .connections
            .insert(Peer::new(socket, address, connection));
        let (_, peer) = self
            .connections
            .at_slot(id.slot)
            .expect("it was just put there");
        if let Err(error) = peer.register(&mut self.desk.edge, id.slot) {
            self.close(id, &CloseReason::Failed(error));
            return;
        }
        self.deadlines.arm(id.slot, deadline);
    }

    fn handle_reply(&mut self, reply: Reply) {
        let id = match reply {
            Reply::Executed { to, .. } => to.connection,
            Reply::Helped { connection, .. } => connection,
        };
        let outbox = &mut self.desk.outbox;
        let Some(peer) = self.connections.get_mut(id) else {
            outbox.credits_mut().give_back_late();
            return;
        };
        let connection = peer.connection_mut();
        match reply {
            Reply::Executed { to, answer } => {
                let answer = answer.filter(|_| !to.oneway);
                let answer = answer.as_ref().map(|response| (to.head, response));
                connection.handle_reply(outbox.credits_mut(), answer);
            }
            Reply::Helped { done, .. } => match done {
                Done::Answer(answer) => connection.handle_answer(outbox.credits_mut(), answer),
                Done::Command {
                    command,
                    request_len,
                } => {
                    connection.take_back(outbox.credits_mut());
                    let marks = processor::marks_connection(&command);
                    let work = Work::Command(command);
                    let handled =
                        outbox.submit(id, work, request_len, connection.outstanding_mut());
                    connection.started(handled);
                    if marks && handled == Handled::Submitted {
                        peer.mark_broker();
                    }
                }
            },
        }
        self.enqueue(id);
    }

    /// Puts a connection into the list of those to serve, once.
    fn enqueue(&mut self, id: ConnectionId) {
        if let Some(peer) = self.connections.get_mut(id)
            && !std::mem::replace(&mut peer.queued, true)
        {
            let queue = if peer.has_gone() {
                &mut self.ending
            } else {
                &mut self.ready
            };
            queue.push_back(id);
        }
    }

    /// Serves each connection that has something to do, once, and some of those whose peer has gone.
    fn serve_ready(&mut self) {
        self.send_credited();
        for _ in 0..self.ready.len() {
            let id = self.ready.pop_front().expect("it was counted");
            self.serve(id);
        }
        self.write_answers();
        for _ in 0..self.ending.len().min(ENDINGS_PER_TURN_MAX) {
            let id = self.ending.pop_front().expect("it was counted");
            self.serve(id);
        }
        self.write_answers();
    }

    fn serve(&mut self, id: ConnectionId) {
        let Some(peer) = self.connections.get_mut(id) else {
            return;
        };
        peer.queued = false;
        let served = if self.stops_at.is_some() {
            peer.serve_output(&mut self.desk)
        } else {
            peer.serve(id, &mut self.desk)
        };
        if peer.connection().has_ended() {
            self.deadlines
                .arm(id.slot, peer.connection().poll_timeout());
        }
        match served {
            Ok(served) => {
                if served == Served::ForNow {
                    self.enqueue(id);
                }
                if !self.desk.answers.is_empty() {
                    self.unwritten.push(id, &mut self.desk.answers);
                }
            }
            Err(reason) => {
                self.desk.answers.clear();
                self.close(id, &reason);
            }
        }
        if self.unwritten.is_full() {
            self.write_answers();
        }
    }

    /// Offers the sockets the answers that waited.
    fn write_answers(&mut self) {
        let mut waiting = std::mem::take(&mut self.unwritten.answers);
        for (id, mut answers) in waiting.drain(..) {
            let Some(peer) = self.connections.get_mut(id) else {
                self.unwritten.give_back(answers);
                continue;
            };
            std::mem::swap(&mut self.desk.answers, &mut answers);
            let written = peer.write(&mut self.desk);
            std::mem::swap(&mut self.desk.answers, &mut answers);
            self.unwritten.give_back(answers);
            if let Err(reason) = written {
                self.close(id, &reason);
            }
        }
        self.unwritten.answers = waiting;
        self.unwritten.len = 0;
    }

    /// Commands that waited for a credit go out; their connections go on.
    fn send_credited(&mut self) {
        while let Some(id) = self.desk.outbox.first_waiting() {
            let peer = self
                .connections
                .get_mut(id)
                .expect("who closes takes its waiting command along");
            let carries_broker = self.desk.outbox.first_waiting_marks();
            if !self.desk.outbox.send_first_waiting(peer.connection_mut()) {
                break;
            }
            if carries_broker {
                peer.mark_broker();
            }
            self.enqueue(id);
        }
    }

    /// Closes those whose deadline had passed at `now`.
    fn handle_deadlines(&mut self, now: Timestamp) {
        while let Some(slot) = self.deadlines.pop_due(now) {
            let Some((id, peer)) = self.connections.at_slot(slot) else {
                continue;
            };
            let deadline = peer.connection().poll_timeout();
            if deadline > now {
                self.deadlines.arm(slot, deadline);
            } else if peer.queued {
                // What it has sent is still to be read.
                self.deadlines.arm(slot, now.after(RETRY_INTERVAL));
            } else if peer.connection().has_ended() {
                self.close(id, &CloseReason::Lingered);
            } else {
                self.close(id, &CloseReason::Idle);
            }
        }
    }

    /// Closes those that had kept others from sending for too long at `now`.
    fn close_stalled(&mut self, now: Timestamp) {
        for id in self.desk.admission.stalled(now) {
            let peer = self.connections.get_mut(id);
            let is_unread = peer.is_some_and(|peer| peer.is_unread());
            if !(is_unread && self.desk.admission.put_off(id, self.desk.now)) {
                self.close(id, &CloseReason::Stalled);
            }
        }
    }

    /// Lets those send for whom there is room.
    fn admit(&mut self) {
        while let Some(id) = self.desk.admission.pop_admitted(self.desk.now) {
            if let Some(peer) = self.connections.get_mut(id) {
                peer.admitted();
                self.enqueue(id);
            }
        }
    }

    fn close(&mut self, id: ConnectionId, reason: &CloseReason) {
        let Some(mut peer) = self.connections.remove(id) else {
            return;
        };
        let desk = &mut self.desk;
        peer.release_admission(id, &mut desk.admission);
        desk.outbox
            .abandon(id, *peer.connection_mut().outstanding_mut());
        // Nobody's brokers leave because this server stops (their routes would vanish for clients that still ask).
        if peer.carries_brokers() && self.stops_at.is_none() {
            desk.outbox.push(Command::ConnectionClosed(id));
        }
        self.log_close(peer.address(), reason);
        let orderly = matches!(
            reason,
            CloseReason::Idle | CloseReason::BrokerExpired | CloseReason::Violation(_)
        );
        if orderly {
            peer.close_orderly::<E>(&mut self.desk.scratch);
        }
    }

    fn log_close(&mut self, peer: SocketAddr, reason: &CloseReason) {
        match reason {
            CloseReason::Ended => tracing::debug!("connection closed by peer [{peer}]"),
            CloseReason::Failed(error) => tracing::debug!("connection failed [{peer}]: {error}"),
            CloseReason::Idle => tracing::debug!("NETTY SERVER PIPELINE: IDLE exception [{peer}]"),
            CloseReason::Lingered => {
                tracing::debug!("answers not taken after the peer's end [{peer}]")
            }
            CloseReason::BrokerExpired => {
                tracing::info!("connection of an expired broker closed [{peer}]")
            }
            CloseReason::Stalled | CloseReason::Violation(_) => self.log_offence(peer, reason),
        }
    }

    /// Logs what a peer did wrong, unless a flood of it is being logged already.
    fn log_offence(&mut self, peer: SocketAddr, reason: &CloseReason) {
        let Some(suppressed) = self.peer_log.admit(self.desk.now) else {
            return;
        };
        if suppressed > 0 {
            tracing::info!("{suppressed} lines about closed connections were suppressed");
        }
        match reason {
            // Rubbish from a port scanner is nothing to warn of; a broker that is too large is.
            CloseReason::Violation(violation) if violation.is_of_a_wanted_peer() => {
                tracing::warn!("connection closed [{peer}]: {violation}");
            }
            CloseReason::Violation(violation) => {
                tracing::info!("decode exception, connection closed [{peer}]: {violation}");
            }
            CloseReason::Stalled
            | CloseReason::Ended
            | CloseReason::Failed(_)
            | CloseReason::Idle
            | CloseReason::Lingered
            | CloseReason::BrokerExpired => tracing::warn!(
                "connection closed [{peer}]: it stopped in the middle of a large frame, or sent it too slowly, while others waited for room"
            ),
        }
    }

    /// Whether a stop has nothing more to wait for.
    fn has_stopped(&mut self) -> bool {
        let Some(stops_at) = self.stops_at else {
            return false;
        };
        if self.desk.now >= stops_at {
            return true;
        }
        self.is_settled()
            && self
                .connections
                .iter_mut()
                .all(|peer| peer.connection().output().is_empty())
    }

    /// Whether nothing is out, at the writer or the helper, and nothing waits to go there.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        self.desk.outbox.is_settled()
    }

    /// Closes every connection, for good.
    pub fn close_all(mut self) {
        while let Some(peer) = self.connections.pop() {
            peer.close_orderly::<E>(&mut self.desk.scratch);
        }
    }
}
