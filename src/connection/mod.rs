//! One peer's byte streams without the socket: bytes in, requests out; answers in, bytes out.
//!
//! Requests of one connection are executed in order (spec Q36). A command, which the writer executes, may follow another that
//! is still out. Anything that is answered from the snapshot waits until every command of its connection is answered: a
//! registration and a query sent in one go see each other, in that order. So does anything behind a change that has to be
//! written to disk. Answers leave in the order of their requests. What waits is kept here, unread, so that a peer
//! that does not wait is slowed down by its own socket and by nothing else.
//!
//! The rules of a worker that need no socket either are here too: [`admission`] of large frames, [`credit`] towards the
//! writer, [`deadlines`].

pub mod admission;
mod ahead;
pub mod credit;
pub mod deadlines;
pub mod handshake;
pub mod input;
pub mod output;
pub mod queue;
mod violation;

#[cfg(test)]
mod tests;

use std::time::Duration;

use bytes::Bytes;

use self::{
    ahead::{Ahead, Then},
    credit::{Credits, Outstanding},
    handshake::Opening,
    input::Input,
    output::Output,
};
use crate::{
    limits::{
        IN_FLIGHT_PER_CONNECTION_MAX, LARGE_FRAME_LEN, LENT_INPUT_LEN_MAX, LINGER_TIMEOUT,
        OUTPUT_BATCH_LEN,
    },
    protocol::{
        code::RequestCode,
        command::{RemotingCommand, ReplyHead, Response},
        encode,
    },
    time::Timestamp,
};

pub use violation::Violation;

/// The bounds that all connections of a worker share.
#[derive(Debug, Clone, Copy)]
pub struct StreamLimits {
    /// Largest incoming frame (spec 1.1).
    pub frame_len_max: usize,
    /// A connection with more unsent bytes is not read (spec 1.10).
    pub high_water: usize,
    /// It is read again once it has no more than this.
    pub low_water: usize,
}

/// What became of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Handled {
    /// It is answered, or wants no answer.
    Done,
    /// Its command is out at the writer.
    Submitted,
    /// It is out at the helper, and nothing behind it is executed until it comes back.
    GivenAway,
    /// Its command waits for a credit, and the connection with it until [`Connection::started`].
    Held,
}

/// What requests are given to.
pub trait Handler {
    /// These requests are the next to be handled, unless they have to wait: a chance to look for what they ask for together.
    fn look_ahead(&mut self, requests: &[RemotingCommand<'_>]) {
        _ = requests;
    }

    /// The request that is handled next is all of `bytes`, and may be kept by sharing them.
    fn share(&mut self, bytes: &Bytes) {
        _ = bytes;
    }

    /// Handles a request; an answer that is ready is appended to `out`. `place` is the request's place among those of the last
    /// [`Self::look_ahead`], or 0 if it came alone.
    fn handle(
        &mut self,
        place: usize,
        request: &RemotingCommand<'_>,
        out: &mut Vec<u8>,
        outstanding: &mut Outstanding,
    ) -> Handled;
}

impl<F> Handler for F
where
    F: FnMut(&RemotingCommand<'_>, &mut Vec<u8>, &mut Outstanding) -> Handled,
{
    fn handle(
        &mut self,
        _place: usize,
        request: &RemotingCommand<'_>,
        out: &mut Vec<u8>,
        outstanding: &mut Outstanding,
    ) -> Handled {
        self(request, out, outstanding)
    }
}

/// A closure as a [`Handler`] that takes each request by itself.
pub fn each<F>(handle: F) -> F
where
    F: FnMut(&RemotingCommand<'_>, &mut Vec<u8>, &mut Outstanding) -> Handled,
{
    handle
}

/// Why a connection executes nothing at the moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// Every complete request is executed: the peer's turn.
    Peer,
    /// The next request is a command that waits for room among those that are out, or for a credit.
    Room,
    /// The next request waits until no command is out.
    Commands,
    /// Answers have to be written first.
    Output,
}

/// A peer's byte streams.
#[derive(Debug)]
pub struct Connection {
    input: Input,
    output: Output,
    outstanding: Outstanding,
    stop: Stop,
    opened: bool,
    held: bool,
    /// The last request that was executed is out at the helper.
    given_away: bool,
    /// A command is out that takes effect later than it is applied (its file has to be written): nothing may overtake it.
    barrier: bool,
    /// The answer to a request that needed no writer after all, while commands before it are out.
    deferred: Vec<u8>,
    /// Above the high-water mark, and not yet below the low one.
    clogged: bool,
    /// When what is owed to a peer that sends no more is given up.
    lingers_until: Option<Timestamp>,
    active_at: Timestamp,
    idle_timeout: Duration,
}

impl Connection {
    /// A connection on which nothing has happened yet.
    #[must_use]
    pub fn new(idle_timeout: Duration, now: Timestamp) -> Self {
        Self {
            input: Input::default(),
            output: Output::default(),
            outstanding: Outstanding::default(),
            stop: Stop::Peer,
            opened: false,
            held: false,
            given_away: false,
            barrier: false,
            deferred: Vec::new(),
            clogged: false,
            lingers_until: None,
            active_at: now,
            idle_timeout,
        }
    }

    /// Whether to read the socket.
    #[must_use]
    pub fn wants_input(&self) -> bool {
        self.stop == Stop::Peer && self.lingers_until.is_none()
    }

    /// Whether [`Self::resume`] may get further.
    #[must_use]
    pub fn can_resume(&self) -> bool {
        match self.stop {
            Stop::Peer => false,
            Stop::Room => self.may_submit(),
            Stop::Commands => !self.held && self.outstanding.commands() == 0,
            Stop::Output => !self.clogged,
        }
    }

    /// Copies a small piece of a frame to the front of `buffer`, so that the rest can be read behind it; says how much. A
    /// large piece stays where it is.
    pub fn lend_input(&self, buffer: &mut [u8]) -> usize {
        let kept = self.input.as_slice();
        if kept.len() > LENT_INPUT_LEN_MAX {
            return 0;
        }
        buffer[..kept.len()].copy_from_slice(kept);
        kept.len()
    }

    /// Executes what is complete. `bytes` start with the `lent` bytes of [`Self::lend_input`].
    ///
    /// # Errors
    ///
    /// When the peer does not speak the protocol: close the connection without an answer (spec 1.9).
    pub fn handle_input(
        &mut self,
        bytes: &[u8],
        lent: usize,
        limits: &StreamLimits,
        now: Timestamp,
        out: &mut Vec<u8>,
        handler: impl Handler,
    ) -> Result<(), Violation> {
        self.active_at = now;
        if lent < self.input.len() {
            let frame_len = self.unfinished_frame_len().unwrap_or(0);
            self.input.extend(bytes, frame_len);
            return self.resume(limits, out, handler);
        }
        let executed = self.execute(bytes, limits, out, handler)?;
        if executed == bytes.len() {
            self.input = Input::default();
        } else if executed == 0 {
            self.input.extend(&bytes[lent..], bytes.len());
        } else {
            self.input.replace(&bytes[executed..]);
        }
        Ok(())
    }

    /// Executes what was kept and can go on.
    ///
    /// # Errors
    ///
    /// As for [`Self::handle_input`].
    pub fn resume(
        &mut self,
        limits: &StreamLimits,
        out: &mut Vec<u8>,
        mut handler: impl Handler,
    ) -> Result<(), Violation> {
        let is_one_large_frame = self.input.len() > LARGE_FRAME_LEN
            && self.unfinished_frame_len() == Some(self.input.len())
            && self.input.is_nothing_else();
        let mut input = std::mem::take(&mut self.input);
        if is_one_large_frame {
            let frame = Bytes::from(input);
            handler.share(&frame);
            let executed = self.execute(&frame, limits, out, handler)?;
            if executed < frame.len() {
                self.input = Input::from(frame);
            }
            return Ok(());
        }
        let executed = self.execute(input.as_slice(), limits, out, handler)?;
        input.consume(executed);
        self.input = input;
        Ok(())
    }

    /// Executes the complete requests at the start of `bytes` until one has to wait; says how many bytes they took.
    fn execute(
        &mut self,
        bytes: &[u8],
        limits: &StreamLimits,
        out: &mut Vec<u8>,
        mut handler: impl Handler,
    ) -> Result<usize, Violation> {
        if !self.open(bytes)? {
            return Ok(0);
        }
        let room = match self.output.len() {
            0 => OUTPUT_BATCH_LEN,
            unsent => limits.high_water.saturating_sub(unsent),
        };
        let mut executed = 0;
        let mut ahead = Ahead::new();
        self.stop = 'stop: loop {
            if self.clogged || out.len() > room {
                break Stop::Output;
            }
            ahead.read(&bytes[executed..], limits.frame_len_max);
            if ahead.requests().len() > 1 {
                handler.look_ahead(ahead.requests());
            }
            for (place, (request, len)) in ahead.requests().iter().zip(ahead.lens()).enumerate() {
                if out.len() > room {
                    break 'stop Stop::Output;
                }
                // The server waits for no response: it asks its peers one-way only (spec 1.4).
                if !request.is_response() {
                    if let Some(stop) = self.must_wait(request) {
                        break 'stop stop;
                    }
                    self.execute_one(place, request, out, &mut handler);
                }
                executed += len;
            }
            match ahead.then {
                Then::Unread => {}
                Then::Unfinished => break Stop::Peer,
                Then::Violation(violation) => return Err(violation),
            }
        };
        Ok(executed)
    }

    fn execute_one(
        &mut self,
        place: usize,
        request: &RemotingCommand<'_>,
        out: &mut Vec<u8>,
        handler: &mut impl Handler,
    ) {
        let (before, answers_len) = (self.outstanding.commands(), out.len());
        let handled = handler.handle(place, request, out, &mut self.outstanding);
        self.started(handled);
        self.barrier |= match handled {
            Handled::Done => false,
            Handled::Submitted => is_written_to_disk(request.code),
            // What waits for a credit may be given away once it has one.
            Handled::GivenAway | Handled::Held => true,
        };
        if handled == Handled::Done && before > 0 {
            self.deferred.extend(out.drain(answers_len..));
        }
    }

    /// Decides what the peer speaks; false while it has sent too little to tell.
    fn open(&mut self, bytes: &[u8]) -> Result<bool, Violation> {
        if !self.opened {
            match handshake::detect(bytes) {
                Opening::Undecided => {}
                Opening::Frames => self.opened = true,
                Opening::Tls => return Err(Violation::TlsNotSupported),
                Opening::Proxy => return Err(Violation::ProxyNotSupported),
            }
        }
        Ok(self.opened)
    }

    /// Why a request cannot be executed yet. A command may follow others that are out; anything else, and anything behind an
    /// answer that waits or a command that takes effect later, waits for all of them.
    fn must_wait(&self, request: &RemotingCommand<'_>) -> Option<Stop> {
        // Mostly so, and then what the request is does not matter.
        if self.outstanding.commands() == 0 && !self.held {
            return None;
        }
        if is_command(request.code) && !self.barrier && self.deferred.is_empty() {
            (!self.may_submit()).then_some(Stop::Room)
        } else {
            Some(Stop::Commands)
        }
    }

    fn may_submit(&self) -> bool {
        !self.held && self.outstanding.commands() < IN_FLIGHT_PER_CONNECTION_MAX
    }

    /// What became of the work of the request that is executed, or of what waited for a credit or for the helper. Its credit is in
    /// [`Self::outstanding_mut`].
    pub fn started(&mut self, handled: Handled) {
        self.held = handled == Handled::Held;
        self.given_away = handled == Handled::GivenAway;
    }

    /// What is out at the writer, to take and give back credits.
    pub fn outstanding_mut(&mut self) -> &mut Outstanding {
        &mut self.outstanding
    }

    /// A command is done: counts it, and keeps its answer to be written.
    pub fn handle_reply(&mut self, credits: &mut Credits, answer: Option<(ReplyHead, &Response)>) {
        credits.give_back(&mut self.outstanding);
        if let Some((head, response)) = answer {
            self.output
                .append(|bytes| encode::write_response(bytes, head, response));
        }
        if self.outstanding.commands() == 0 {
            self.barrier = self.held && self.barrier;
            self.output.extend(&std::mem::take(&mut self.deferred));
        }
    }

    /// A request that was given away is answered with these pieces.
    pub fn handle_answer(
        &mut self,
        credits: &mut Credits,
        answer: impl IntoIterator<Item = Bytes>,
    ) {
        for piece in answer {
            if self.outstanding.commands() > 1 {
                self.deferred.extend_from_slice(&piece);
            } else {
                self.output.share(piece);
            }
        }
        self.given_away = false;
        self.handle_reply(credits, None);
    }

    /// A request that was given away came back as a command, which the caller submits, and then says what became of it.
    pub fn take_back(&mut self, credits: &mut Credits) {
        credits.give_back(&mut self.outstanding);
    }

    /// Bytes to write before any others.
    #[must_use]
    pub fn output(&self) -> &Output {
        &self.output
    }

    /// The first `count` bytes of [`Self::output`] are written.
    pub fn written(&mut self, count: usize, now: Timestamp) {
        if count > 0 {
            self.active_at = now;
        }
        self.output.written(count);
    }

    /// Keeps answers that follow those of [`Self::output`].
    pub fn keep_output(&mut self, unsent: &[u8]) {
        self.output.extend(unsent);
    }

    /// Fresh answers were offered to the socket while [`Self::output`] was empty: it took `count` bytes and left `unsent`.
    pub fn answered(&mut self, count: usize, unsent: &[u8], now: Timestamp) {
        if count > 0 {
            self.active_at = now;
        }
        self.output.extend(unsent);
    }

    /// Applies the water marks; to be called when a write is done.
    pub fn apply_water_marks(&mut self, limits: &StreamLimits) {
        let unsent = self.output.len();
        self.clogged = if self.clogged {
            unsent > limits.low_water
        } else {
            unsent >= limits.high_water.max(1)
        };
    }

    /// The length announced for a frame that has only partly arrived, if it is large enough to need [`admission`].
    #[must_use]
    pub fn large_unfinished_frame_len(&self) -> Option<usize> {
        self.unfinished_frame_len()
            .filter(|len| self.opened && *len > LARGE_FRAME_LEN)
    }

    fn unfinished_frame_len(&self) -> Option<usize> {
        let length = self.input.as_slice().first_chunk::<4>()?;
        usize::try_from(u32::from_be_bytes(*length))
            .ok()
            .map(|len| len.saturating_add(4))
    }

    /// How many bytes are kept unexecuted.
    #[must_use]
    pub fn input_len(&self) -> usize {
        self.input.len()
    }

    /// Whether the next request waits for commands, that is for this server and not for the peer.
    #[must_use]
    pub fn waits_for_commands(&self) -> bool {
        matches!(self.stop, Stop::Room | Stop::Commands)
    }

    /// The peer sends no more. What it has sent is still executed and answered, for a while.
    pub fn handle_end(&mut self, now: Timestamp) {
        self.lingers_until.get_or_insert(now.after(LINGER_TIMEOUT));
    }

    /// Whether the peer sends no more and every complete request of its is executed.
    #[must_use]
    pub fn has_executed_all(&self) -> bool {
        self.lingers_until.is_some() && self.stop == Stop::Peer && !self.held && !self.given_away
    }

    /// Whether the peer sends no more.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.lingers_until.is_some()
    }

    /// Whether nothing is owed to the peer.
    #[must_use]
    pub fn owes_nothing(&self) -> bool {
        self.outstanding.commands() == 0 && !self.held && self.output.is_empty()
    }

    /// When to close the connection, if nothing else happens on it.
    #[must_use]
    pub fn poll_timeout(&self) -> Timestamp {
        let idle_at = self.active_at.after(self.idle_timeout);
        self.lingers_until
            .map_or(idle_at, |until| until.min(idle_at))
    }
}

/// Whether a command is done only when a file is written, long after it has been applied.
fn is_written_to_disk(code: i32) -> bool {
    const FILES: [RequestCode; 3] = [
        RequestCode::PutKvConfig,
        RequestCode::DeleteKvConfig,
        RequestCode::UpdateNamesrvConfig,
    ];
    RequestCode::from_i32(code).is_some_and(|code| FILES.contains(&code))
}

/// Whether the writer executes this request; any other is answered from the snapshot.
fn is_command(code: i32) -> bool {
    match RequestCode::from_i32(code) {
        Some(
            RequestCode::PutKvConfig
            | RequestCode::DeleteKvConfig
            | RequestCode::RegisterBroker
            | RequestCode::UnregisterBroker
            | RequestCode::WipeWritePermOfBroker
            | RequestCode::AddWritePermOfBroker
            | RequestCode::DeleteTopicInNamesrv
            | RequestCode::RegisterTopicInNamesrv
            | RequestCode::UpdateNamesrvConfig,
        ) => true,
        Some(
            RequestCode::GetKvConfig
            | RequestCode::GetRouteInfoByTopic
            | RequestCode::GetBrokerClusterInfo
            | RequestCode::GetAllTopicListFromNameServer
            | RequestCode::GetKvListByNamespace
            | RequestCode::GetTopicsByCluster
            | RequestCode::GetSystemTopicListFromNs
            | RequestCode::GetUnitTopicList
            | RequestCode::GetHasUnitSubTopicList
            | RequestCode::GetHasUnitSubUnunitTopicList
            | RequestCode::GetNamesrvConfig
            | RequestCode::QueryDataVersion
            | RequestCode::GetBrokerMemberGroup
            | RequestCode::BrokerHeartbeat,
        )
        | None => false,
    }
}
