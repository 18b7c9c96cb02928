//! Who may send a large frame: bounds what unfinished frames hold in memory (spec Q48).
//!
//! A frame longer than [`LARGE_FRAME_LEN`](crate::limits::LARGE_FRAME_LEN) is read to its end only after its whole length fits
//! the budget. Those it does not fit wait unread, first come first served, and the kernel slows their senders down. Nobody
//! can sit on the budget: a holder that stops sending while others wait is to be closed.

use std::collections::{BTreeMap, VecDeque};

use crate::{
    ids::ConnectionId,
    limits::{ADMISSION_PROGRESS_LEN, ADMISSION_STALL_TIMEOUT},
    time::Timestamp,
};

/// The large unfinished frames of one worker.
#[derive(Debug)]
pub struct Admission {
    budget: usize,
    used: usize,
    holders: BTreeMap<ConnectionId, Holder>,
    waiting: VecDeque<(ConnectionId, usize)>,
}

/// A connection that may send its frame.
#[derive(Debug)]
struct Holder {
    reserved: usize,
    /// Bytes of the frame that had arrived when it last made progress.
    progress: usize,
    /// When it has stalled; `None` while the frame is complete and waits for us.
    stalls_at: Option<Timestamp>,
}

impl Admission {
    /// Admits frames of `budget` bytes in all.
    #[must_use]
    pub fn new(budget: usize) -> Self {
        Self {
            budget,
            used: 0,
            holders: BTreeMap::new(),
            waiting: VecDeque::new(),
        }
    }

    /// Asks for `frame_len` bytes, of which `arrived` are there, or tells how far the frame has come. Says whether it may be
    /// read on; if not, [`Self::pop_admitted`] will name the connection.
    pub fn ask(
        &mut self,
        id: ConnectionId,
        frame_len: usize,
        arrived: usize,
        now: Timestamp,
    ) -> bool {
        if let Some(holder) = self.holders.get_mut(&id) {
            holder.advance(arrived, now);
            return true;
        }
        if self.waiting.iter().any(|(waiting, _)| *waiting == id) {
            return false;
        }
        if self.waiting.is_empty() && self.fits(frame_len) {
            self.admit(id, frame_len, arrived, now);
            return true;
        }
        self.waiting.push_back((id, frame_len));
        false
    }

    /// The holder's frame is complete but waits for this server: it cannot be blamed for a stall.
    pub fn suspend(&mut self, id: ConnectionId) {
        if let Some(holder) = self.holders.get_mut(&id) {
            holder.stalls_at = None;
        }
    }

    /// The frame is done with, or the connection gone.
    pub fn release(&mut self, id: ConnectionId) {
        if let Some(holder) = self.holders.remove(&id) {
            self.used -= holder.reserved;
        } else {
            self.waiting.retain(|(waiting, _)| *waiting != id);
        }
    }

    /// A connection that waited and may be read now. To be called until `None` after a [`Self::release`].
    pub fn pop_admitted(&mut self, now: Timestamp) -> Option<ConnectionId> {
        let &(id, frame_len) = self.waiting.front()?;
        if !self.fits(frame_len) {
            return None;
        }
        self.waiting.pop_front();
        self.admit(id, frame_len, 0, now);
        Some(id)
    }

    /// When a holder may have to be closed: never, while nobody waits.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Timestamp> {
        if self.waiting.is_empty() {
            return None;
        }
        self.holders
            .values()
            .filter_map(|holder| holder.stalls_at)
            .min()
    }

    /// The holders to close: they stall while others wait. Each is to be [`Self::release`]d.
    #[must_use]
    pub fn stalled(&self, now: Timestamp) -> Vec<ConnectionId> {
        if self.poll_timeout().is_none_or(|stalls_at| stalls_at > now) {
            return Vec::new();
        }
        let stalled = |holder: &Holder| holder.stalls_at.is_some_and(|stalls_at| stalls_at <= now);
        self.holders
            .iter()
            .filter(|(_, holder)| stalled(holder))
            .map(|(id, _)| *id)
            .collect()
    }

    /// Whether `frame_len` more bytes fit. A lone frame always does, whatever the frame limit is set to.
    fn fits(&self, frame_len: usize) -> bool {
        self.holders.is_empty() || self.used + frame_len <= self.budget
    }

    fn admit(&mut self, id: ConnectionId, frame_len: usize, arrived: usize, now: Timestamp) {
        self.used += frame_len;
        let holder = Holder {
            reserved: frame_len,
            progress: arrived,
            stalls_at: Some(now.after(ADMISSION_STALL_TIMEOUT)),
        };
        self.holders.insert(id, holder);
    }
}

impl Holder {
    /// Counts as progress only if enough has come: a byte a second would hold the place for months.
    fn advance(&mut self, arrived: usize, now: Timestamp) {
        if arrived >= self.progress + ADMISSION_PROGRESS_LEN || self.stalls_at.is_none() {
            self.progress = arrived;
            self.stalls_at = Some(now.after(ADMISSION_STALL_TIMEOUT));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: usize = 1024 * 1024;

    fn id(slot: u32) -> ConnectionId {
        ConnectionId {
            worker: 0,
            slot,
            generation: 0,
        }
    }

    fn at(millis: u64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    #[test]
    fn frames_within_the_budget_are_admitted_and_the_next_waits_its_turn() {
        let mut admission = Admission::new(4 * MIB);
        assert!(admission.ask(id(0), 3 * MIB, 0, at(0)));
        assert!(!admission.ask(id(1), 2 * MIB, 0, at(0)));
        assert!(
            !admission.ask(id(2), MIB, 0, at(0)),
            "a small one must not overtake"
        );
        assert_eq!(admission.pop_admitted(at(1)), None);
        admission.release(id(0));
        assert_eq!(admission.pop_admitted(at(1)), Some(id(1)));
        assert_eq!(admission.pop_admitted(at(1)), Some(id(2)));
        assert_eq!(admission.pop_admitted(at(1)), None);
        assert_eq!(admission.used, 3 * MIB);
    }

    #[test]
    fn a_lone_frame_larger_than_the_budget_is_admitted() {
        let mut admission = Admission::new(MIB);
        assert!(admission.ask(id(0), 5 * MIB, 0, at(0)));
        assert!(!admission.ask(id(1), 5 * MIB, 0, at(0)));
        admission.release(id(0));
        assert_eq!(admission.pop_admitted(at(0)), Some(id(1)));
    }

    #[test]
    fn a_holder_without_progress_is_closed_only_while_others_wait() {
        let mut admission = Admission::new(MIB);
        assert!(admission.ask(id(0), MIB, 100, at(0)));
        assert_eq!(admission.poll_timeout(), None);
        assert!(admission.stalled(at(60_000)).is_empty());
        assert!(!admission.ask(id(1), MIB, 0, at(1000)));
        assert_eq!(admission.poll_timeout(), Some(at(5000)));
        assert!(admission.stalled(at(4999)).is_empty());
        assert_eq!(admission.stalled(at(5000)), [id(0)]);
    }

    #[test]
    fn a_trickle_is_no_progress_and_a_steady_stream_is() {
        let mut admission = Admission::new(MIB);
        assert!(admission.ask(id(0), MIB, 0, at(0)));
        assert!(!admission.ask(id(1), MIB, 0, at(0)));
        for second in 1..5 {
            assert!(admission.ask(
                id(0),
                MIB,
                usize::try_from(second).unwrap(),
                at(second * 1000)
            ));
        }
        assert_eq!(admission.stalled(at(5000)), [id(0)]);
        assert!(admission.ask(id(0), MIB, ADMISSION_PROGRESS_LEN, at(4999)));
        assert!(admission.stalled(at(5000)).is_empty());
        assert_eq!(admission.poll_timeout(), Some(at(9999)));
    }

    #[test]
    fn a_complete_frame_that_waits_for_the_server_does_not_stall() {
        let mut admission = Admission::new(MIB);
        assert!(admission.ask(id(0), MIB, 0, at(0)));
        assert!(!admission.ask(id(1), MIB, 0, at(0)));
        admission.suspend(id(0));
        assert_eq!(admission.poll_timeout(), None);
        assert!(admission.stalled(at(60_000)).is_empty());
    }

    #[test]
    fn a_waiting_connection_that_closes_leaves_the_queue() {
        let mut admission = Admission::new(MIB);
        assert!(admission.ask(id(0), MIB, 0, at(0)));
        assert!(!admission.ask(id(1), MIB, 0, at(0)));
        assert!(
            !admission.ask(id(1), MIB, 0, at(0)),
            "asking twice takes one place"
        );
        admission.release(id(1));
        admission.release(id(0));
        assert_eq!(admission.pop_admitted(at(0)), None);
    }
}
