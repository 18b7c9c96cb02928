//! A peer: what it has sent, what it waits for, and whether the server may close its connection.

use std::{collections::VecDeque, time::Duration};

use waypost::{
    limits::{ADMISSION_STALL_TIMEOUT, LARGE_FRAME_LEN, LINGER_TIMEOUT},
    time::Timestamp,
};

use super::{machine::Verdict, office::Office, stored::Ticket};
use crate::{
    corpus::properties::rig::{Far, Socket, line},
    world::read_reply,
};

/// How a peer behaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Conduct {
    Lawful,
    /// It sends no more than what is in its pipe.
    Finishes,
    /// Its last byte and its FIN have arrived.
    Finished(Timestamp),
    /// It has sent what nobody understands.
    Unlawful,
    /// Its connection is broken.
    Broken,
}

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct Peer {
    pub(super) line: Far,
    /// Sent, not arrived.
    pipe: Vec<u8>,
    /// Bytes of each frame that has not arrived as a whole.
    frames: VecDeque<usize>,
    /// How many bytes of the first of them have arrived, and when the first of those did.
    arrived: usize,
    began_at: Timestamp,
    /// It had stalled in a large frame at the moment of the poll whose turn is to come, and went on behind it.
    went_on_late: bool,
    /// Read and not understood yet.
    inbox: Vec<u8>,
    /// Requests in the order in which they were sent.
    tickets: Vec<Ticket>,
    /// The same without the one-way ones, as long as they are not answered.
    awaits: VecDeque<Ticket>,
    conduct: Conduct,
    /// When bytes moved last.
    active_at: Timestamp,
}

impl Peer {
    pub(super) fn new(room: usize, now: Timestamp) -> (Self, Socket) {
        let (line, socket) = line(room);
        let peer = Self {
            line,
            pipe: Vec::new(),
            frames: VecDeque::new(),
            arrived: 0,
            began_at: now,
            went_on_late: false,
            inbox: Vec::new(),
            tickets: Vec::new(),
            awaits: VecDeque::new(),
            conduct: Conduct::Lawful,
            active_at: now,
        };
        (peer, socket)
    }

    /// Whether it still sends requests.
    pub(super) fn is_lawful(&self) -> bool {
        self.conduct == Conduct::Lawful
    }

    pub(super) fn send(&mut self, ticket: Ticket, frame: &[u8], oneway: bool) {
        self.pipe.extend(frame);
        self.frames.push_back(frame.len());
        self.tickets.push(ticket);
        if !oneway {
            self.awaits.push_back(ticket);
        }
    }

    /// A frame that is too short to be one.
    pub(super) fn send_rubbish(&mut self) {
        self.pipe.extend([0, 0, 0, 1, 0]);
        self.conduct = Conduct::Unlawful;
    }

    pub(super) fn finish(&mut self, now: Timestamp) {
        if self.is_lawful() {
            self.conduct = Conduct::Finishes;
            self.deliver(0, now);
        }
    }

    pub(super) fn shatter(&mut self) {
        self.conduct = Conduct::Broken;
        self.line.shatter();
    }

    /// So many bytes arrive, and the FIN with the last.
    pub(super) fn deliver(&mut self, bytes: usize, now: Timestamp) {
        let bytes = bytes.min(self.pipe.len());
        if bytes > 0 {
            self.line.deliver(&self.pipe[..bytes]);
            self.pipe.drain(..bytes);
            if self.arrived == 0 {
                self.began_at = now;
            }
            self.arrived += bytes;
            while let Some(whole) = self.frames.pop_front_if(|len| *len <= self.arrived) {
                self.arrived -= whole;
                self.began_at = now;
            }
        }
        if self.conduct == Conduct::Finishes && self.pipe.is_empty() {
            self.conduct = Conduct::Finished(now);
            self.line.finish();
        }
    }

    /// All bytes arrive at `now`, behind a poll at `asked_at` that does not tell of them.
    pub(super) fn deliver_behind(&mut self, asked_at: Timestamp, now: Timestamp) {
        self.went_on_late = self.has_stalled(asked_at);
        self.deliver(usize::MAX, now);
    }

    /// The turn behind that poll is over.
    pub(super) fn forgive(&mut self) {
        self.went_on_late = false;
    }

    fn has_stalled(&self, asked_at: Timestamp) -> bool {
        self.is_in_a_large_frame() && self.began_at.after(ADMISSION_STALL_TIMEOUT) <= asked_at
    }

    /// The peer looks at what it has got: answers in the order of its requests, each what the model says.
    pub(super) fn look(&mut self, office: &mut Office) -> Verdict {
        if self.line.has_moved() {
            self.active_at = office.world.now;
        }
        let sent = self.line.take_sent();
        if self.conduct == Conduct::Broken {
            return Ok(());
        }
        self.inbox.extend(sent);
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

    /// Whether the server had a reason to close the connection in a turn whose poll began at `asked_at`, besides an order and
    /// its stop.
    pub(super) fn is_to_be_closed(
        &self,
        office: &Office,
        asked_at: Timestamp,
        idle: Duration,
        others_send: bool,
    ) -> bool {
        let is_over = self.active_at.after(idle) <= asked_at;
        let has_stalled = others_send && (self.went_on_late || self.has_stalled(asked_at));
        match self.conduct {
            Conduct::Broken | Conduct::Unlawful => true,
            Conduct::Lawful | Conduct::Finishes => is_over || has_stalled,
            Conduct::Finished(at) => {
                is_over
                    || has_stalled
                    || at.after(LINGER_TIMEOUT) <= asked_at
                    || self.is_served(office)
            }
        }
    }

    /// Whether the server keeps a connection that it had to close.
    pub(super) fn outlives(&self, now: Timestamp, idle: Duration) -> bool {
        let is_known = self.line.id().is_some();
        is_known && (!self.is_open() || self.active_at.after(idle) <= now)
    }

    fn is_open(&self) -> bool {
        matches!(self.conduct, Conduct::Lawful | Conduct::Finishes)
    }

    /// Whether every request is executed and answered.
    fn is_served(&self, office: &Office) -> bool {
        let is_executed = |ticket: &Ticket| office.sent[*ticket].executed;
        self.awaits.is_empty() && self.tickets.iter().all(is_executed)
    }

    /// Whether the server has to wait for the end of a frame that needs admission.
    fn is_in_a_large_frame(&self) -> bool {
        let len = self.frames.front().copied().unwrap_or_default();
        self.arrived > 0 && len > LARGE_FRAME_LEN
    }

    /// Whether it has sent what the server may not have admitted yet, or not wholly.
    pub(super) fn may_wait_for_admission(&self) -> bool {
        self.is_in_a_large_frame() || !self.line.is_read()
    }

    /// The first request that is answered and not read.
    pub(super) fn unread(&self, office: &Office) -> Option<Ticket> {
        let is_answered = |ticket: &&Ticket| office.answers.contains_key(*ticket);
        self.awaits.iter().find(is_answered).copied()
    }

    /// Whether nothing is on its way in either direction.
    pub(super) fn is_idle(&self, office: &Office) -> bool {
        self.is_open() && self.pipe.is_empty() && self.line.is_read() && self.is_served(office)
    }
}
