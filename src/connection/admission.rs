//! Who may send a large frame: bounds what unfinished frames hold in memory (spec Q48).
//!
//! A frame longer than [`LARGE_FRAME_LEN`](crate::limits::LARGE_FRAME_LEN) is read to its end only after its whole length fits
//! the budget. Those it does not fit wait unread, first come first served, and the kernel slows their senders down. Nobody
//! can sit on the budget: a holder that stops sending while others wait, or that takes too long for its whole frame, is to be
//! closed. Frames of the size that brokers usually send have a lane of their own, so that a few huge ones cannot hold them up.

use std::{collections::BTreeMap, time::Duration};

use super::queue::Queue;
use crate::{
    ids::ConnectionId,
    limits::{
        ADMISSION_PROGRESS_LEN, ADMISSION_RATE_MIN, ADMISSION_STALL_TIMEOUT, UNFINISHED_LEN_MAX,
        USUAL_FRAME_LEN,
    },
    time::Timestamp,
};

/// One of so many equal parts of a budget is for frames up to [`USUAL_FRAME_LEN`].
const LANE_PARTS: usize = 4;

/// One worker's share of [`UNFINISHED_LEN_MAX`].
///
/// A connection cannot choose another worker, so no share is so small that a frame of `frame_len_max` would not find room in it
/// beside those of a usual size. The shares of so many workers that this counts add up to more, but to no more than that.
#[must_use]
pub fn share(workers: usize, frame_len_max: usize) -> usize {
    let for_a_huge_frame = frame_len_max * LANE_PARTS / (LANE_PARTS - 1);
    (UNFINISHED_LEN_MAX / workers)
        .max(for_a_huge_frame)
        .max(LANE_PARTS * USUAL_FRAME_LEN)
}

/// The large unfinished frames of one worker.
#[derive(Debug)]
pub struct Admission {
    /// For frames up to [`USUAL_FRAME_LEN`].
    usual: Lane,
    /// For the rest.
    huge: Lane,
}

impl Admission {
    /// Admits frames of `budget` bytes in all, if that is a [`share`].
    #[must_use]
    pub fn new(budget: usize) -> Self {
        let usual = budget / LANE_PARTS;
        Self {
            usual: Lane::new(usual),
            huge: Lane::new(budget - usual),
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
        let lane = if frame_len <= USUAL_FRAME_LEN {
            &mut self.usual
        } else {
            &mut self.huge
        };
        lane.ask(id, frame_len, arrived, now)
    }

    /// The holder's frame is complete but waits for this server: it cannot be blamed for a stall.
    pub fn suspend(&mut self, id: ConnectionId) {
        self.usual.suspend(id);
        self.huge.suspend(id);
    }

    /// The frame is done with, or the connection gone.
    pub fn release(&mut self, id: ConnectionId) {
        self.usual.release(id);
        self.huge.release(id);
    }

    /// A connection that waited and may be read now. To be called until `None` after a [`Self::release`].
    pub fn pop_admitted(&mut self, now: Timestamp) -> Option<ConnectionId> {
        let usual = self.usual.pop_admitted(now);
        usual.or_else(|| self.huge.pop_admitted(now))
    }

    /// When a holder may have to be closed: never, while nobody waits.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Timestamp> {
        let lanes = [&self.usual, &self.huge];
        lanes.into_iter().filter_map(Lane::poll_timeout).min()
    }

    /// The holder has sent more than was read: its answers wait for their way, for which this server may be to blame (it was stopped). So it
    /// gets its time once more, but only once, for it may also be that it does not take them. Says whether it does.
    pub fn put_off(&mut self, id: ConnectionId, now: Timestamp) -> bool {
        self.usual.put_off(id, now) || self.huge.put_off(id, now)
    }

    /// The holders to close: they stall while others wait. Each is to be [`Self::release`]d.
    #[must_use]
    pub fn stalled(&self, now: Timestamp) -> Vec<ConnectionId> {
        let mut stalled = self.usual.stalled(now);
        stalled.extend(self.huge.stalled(now));
        stalled
    }
}

/// Frames that share a budget.
#[derive(Debug)]
struct Lane {
    budget: usize,
    used: usize,
    holders: BTreeMap<ConnectionId, Holder>,
    /// With the lengths of their frames.
    waiting: Queue<usize>,
}

/// A connection that may send its frame.
#[derive(Debug)]
struct Holder {
    reserved: usize,
    /// Bytes of the frame that had arrived when it last made progress.
    progress: usize,
    /// When it has stalled; `None` while the frame is complete and waits for us.
    stalls_at: Option<Timestamp>,
    /// When the whole frame has to be there.
    ends_at: Timestamp,
    /// It has had its time once more.
    put_off: bool,
}

impl Lane {
    fn new(budget: usize) -> Self {
        Self {
            budget,
            used: 0,
            holders: BTreeMap::new(),
            waiting: Queue::default(),
        }
    }

    fn ask(&mut self, id: ConnectionId, frame_len: usize, arrived: usize, now: Timestamp) -> bool {
        if let Some(holder) = self.holders.get_mut(&id) {
            holder.advance(arrived, now);
            return true;
        }
        if self.waiting.contains(id) {
            return false;
        }
        if self.waiting.is_empty() && self.fits(frame_len) {
            self.admit(id, frame_len, arrived, now);
            return true;
        }
        self.waiting.push_back(id, frame_len);
        false
    }

    fn suspend(&mut self, id: ConnectionId) {
        if let Some(holder) = self.holders.get_mut(&id) {
            holder.stalls_at = None;
        }
    }

    fn release(&mut self, id: ConnectionId) {
        if let Some(holder) = self.holders.remove(&id) {
            self.used -= holder.reserved;
        } else {
            self.waiting.remove(id);
        }
    }

    fn pop_admitted(&mut self, now: Timestamp) -> Option<ConnectionId> {
        let &(id, frame_len) = self.waiting.front()?;
        if !self.fits(frame_len) {
            return None;
        }
        self.waiting.pop_front();
        self.admit(id, frame_len, 0, now);
        Some(id)
    }

    fn poll_timeout(&self) -> Option<Timestamp> {
        if self.waiting.is_empty() {
            return None;
        }
        self.holders
            .values()
            .filter_map(|holder| holder.stalls_at)
            .min()
    }

    fn stalled(&self, now: Timestamp) -> Vec<ConnectionId> {
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

    fn put_off(&mut self, id: ConnectionId, now: Timestamp) -> bool {
        let Some(holder) = self.holders.get_mut(&id).filter(|holder| !holder.put_off) else {
            return false;
        };
        holder.ends_at = whole_frame_by(holder.reserved, now);
        holder.stalls_at = Some(now.after(ADMISSION_STALL_TIMEOUT));
        holder.put_off = true;
        true
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
            ends_at: whole_frame_by(frame_len, now),
            put_off: false,
        };
        self.holders.insert(id, holder);
    }
}

impl Holder {
    /// Counts as progress only if enough has come: a byte a second would hold the place for months.
    fn advance(&mut self, arrived: usize, now: Timestamp) {
        if self.stalls_at.is_none() {
            self.ends_at = whole_frame_by(self.reserved, now);
        }
        if arrived >= self.progress + ADMISSION_PROGRESS_LEN || self.stalls_at.is_none() {
            self.progress = arrived;
            self.stalls_at = Some(now.after(ADMISSION_STALL_TIMEOUT).min(self.ends_at));
        }
    }
}

fn whole_frame_by(frame_len: usize, now: Timestamp) -> Timestamp {
    let seconds = u64::try_from(frame_len / ADMISSION_RATE_MIN).unwrap_or(u64::MAX);
    now.after(ADMISSION_STALL_TIMEOUT)
        .after(Duration::from_secs(seconds))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::FRAME_LEN_MAX;

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
        let mut admission = Lane::new(4 * MIB);
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
        let mut admission = Lane::new(MIB);
        assert!(admission.ask(id(0), 5 * MIB, 0, at(0)));
        assert!(!admission.ask(id(1), 5 * MIB, 0, at(0)));
        admission.release(id(0));
        assert_eq!(admission.pop_admitted(at(0)), Some(id(1)));
    }

    #[test]
    fn a_holder_without_progress_is_closed_only_while_others_wait() {
        let mut admission = Lane::new(MIB);
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
        let mut admission = Lane::new(MIB);
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
        for step in 2..16 {
            assert!(admission.ask(id(0), MIB, step * ADMISSION_PROGRESS_LEN, at(9000)));
        }
        assert_eq!(
            admission.poll_timeout(),
            Some(at(13_000)),
            "the whole frame has 13 seconds"
        );
    }

    #[test]
    fn who_was_not_read_gets_its_time_once_more_and_no_more() {
        let mut admission = Admission::new(4 * MIB);
        assert!(admission.ask(id(0), MIB, 100, at(0)));
        assert!(!admission.ask(id(1), MIB, 0, at(0)));
        assert!(admission.put_off(id(0), at(6000)));
        assert_eq!(admission.poll_timeout(), Some(at(11_000)));
        assert!(admission.stalled(at(10_999)).is_empty());
        assert_eq!(admission.stalled(at(11_000)), [id(0)]);
        assert!(!admission.put_off(id(0), at(11_000)));
        assert!(!admission.put_off(id(1), at(11_000)), "it holds nothing");
    }

    #[test]
    fn a_complete_frame_that_waits_for_the_server_does_not_stall() {
        let mut admission = Lane::new(MIB);
        assert!(admission.ask(id(0), MIB, 0, at(0)));
        assert!(!admission.ask(id(1), MIB, 0, at(0)));
        admission.suspend(id(0));
        assert_eq!(admission.poll_timeout(), None);
        assert!(admission.stalled(at(60_000)).is_empty());
    }

    #[test]
    fn a_waiting_connection_that_closes_leaves_the_queue() {
        let mut admission = Lane::new(MIB);
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

    #[test]
    fn a_steady_trickle_loses_its_place_when_its_time_for_the_whole_frame_is_up() {
        let mut admission = Lane::new(16 * MIB);
        assert!(admission.ask(id(0), 15 * MIB, 0, at(0)));
        assert!(!admission.ask(id(1), 15 * MIB, 0, at(0)));
        for step in 1..125 {
            let arrived = usize::try_from(step).unwrap() * ADMISSION_PROGRESS_LEN;
            assert!(admission.ask(id(0), 15 * MIB, arrived, at(step * 1000)));
        }
        assert!(admission.stalled(at(124_999)).is_empty());
        assert_eq!(admission.stalled(at(125_000)), [id(0)]);
    }

    #[test]
    fn brokers_that_share_a_slow_link_are_not_closed_for_each_other() {
        // Ninety of 4 MiB each at 256 KiB/s: there is room for 48.
        let mut admission = Admission::new(256 * MIB);
        let mut admitted: Vec<u32> = (0..90)
            .filter(|slot| admission.ask(id(*slot), 4 * MIB, 0, at(0)))
            .collect();
        let mut done = 0;
        for round in 0..2 {
            for second in 1..=16 {
                let now = at((16 * round + second) * 1000);
                for slot in &admitted {
                    let arrived = usize::try_from(second).unwrap() * MIB / 4;
                    assert!(admission.ask(id(*slot), 4 * MIB, arrived, now));
                }
                assert!(admission.stalled(now).is_empty(), "{round} {second}");
            }
            for slot in std::mem::take(&mut admitted) {
                admission.release(id(slot));
                done += 1;
            }
            let next = || admission.pop_admitted(at(16_000 * (round + 1)));
            admitted = std::iter::from_fn(next).map(|id| id.slot).collect();
        }
        assert_eq!(done, 90);
    }

    #[test]
    fn shares_are_never_exceeded_and_add_up_to_the_budget_while_each_holds_the_largest_frame() {
        for frame_len_max in [64 * 1024, MIB, FRAME_LEN_MAX, 256 * MIB] {
            for workers in [1, 2, 12, 13, 16, 63, 1024] {
                let share = share(workers, frame_len_max);
                let least = (frame_len_max * 4 / 3).max(4 * USUAL_FRAME_LEN);
                assert!(
                    workers * share <= UNFINISHED_LEN_MAX || share == least,
                    "{workers} workers, {frame_len_max} bytes"
                );
                for frame_len in [frame_len_max, frame_len_max.min(USUAL_FRAME_LEN), 70_000] {
                    let mut admission = Admission::new(share);
                    // From both lanes as much as there is: the largest frames first.
                    for slot in 0..300 {
                        admission.ask(id(slot), frame_len_max, 0, at(0));
                    }
                    for slot in 300..1500 {
                        admission.ask(id(slot), frame_len, 0, at(0));
                    }
                    let used = admission.usual.used + admission.huge.used;
                    assert!(
                        (frame_len_max..=share).contains(&used),
                        "{workers} workers, {frame_len_max} bytes: {used} of {share}"
                    );
                }
            }
        }
        assert!(12 * share(12, FRAME_LEN_MAX) <= UNFINISHED_LEN_MAX);
    }

    #[test]
    fn huge_frames_do_not_hold_up_those_of_a_usual_size() {
        let mut admission = Admission::new(64 * MIB);
        for huge in 0..20 {
            admission.ask(id(huge), 15 * MIB, 0, at(0));
        }
        assert!(admission.ask(id(100), MIB, 0, at(0)));
        admission.release(id(100));
        assert_eq!(admission.pop_admitted(at(0)), None);
        admission.release(id(0));
        assert_eq!(admission.pop_admitted(at(0)), Some(id(3)));
    }
}
