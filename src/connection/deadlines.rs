//! One deadline a slot, kept lazily: the usual case, a connection whose deadline moves away with each byte, costs nothing.
//!
//! A slot has at most one entry that counts. It is looked at when it falls due; if the deadline has moved meanwhile the caller
//! arms it again. An entry outlives the slot's tenant, so connections that come and go leave nothing behind.

use std::{cmp::Reverse, collections::BinaryHeap};

use crate::time::Timestamp;

/// Deadlines by slot.
#[derive(Debug, Default)]
pub struct Deadlines {
    heap: BinaryHeap<Reverse<(Timestamp, u32)>>,
    /// When the entry of a slot that counts falls due.
    armed: Vec<Option<Timestamp>>,
}

impl Deadlines {
    /// Makes sure that `slot` is looked at no later than `deadline`.
    pub fn arm(&mut self, slot: u32, deadline: Timestamp) {
        let index = slot as usize;
        if index >= self.armed.len() {
            self.armed.resize(index + 1, None);
        }
        if self.armed[index].is_none_or(|due| due > deadline) {
            self.armed[index] = Some(deadline);
            self.heap.push(Reverse((deadline, slot)));
        }
    }

    /// When to call [`Self::pop_due`] next.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Timestamp> {
        self.heap.peek().map(|Reverse((deadline, _))| *deadline)
    }

    /// The next slot to look at. Its deadline may have moved: the caller decides, and arms it again if it lives on.
    pub fn pop_due(&mut self, now: Timestamp) -> Option<u32> {
        while self.poll_timeout()? <= now {
            let Reverse((deadline, slot)) = self.heap.pop()?;
            let armed = &mut self.armed[slot as usize];
            if *armed == Some(deadline) {
                *armed = None;
                return Some(slot);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    #[test]
    fn a_slot_is_due_at_its_deadline_and_not_before() {
        let mut deadlines = Deadlines::default();
        deadlines.arm(3, at(100));
        assert_eq!(deadlines.poll_timeout(), Some(at(100)));
        assert_eq!(deadlines.pop_due(at(99)), None);
        assert_eq!(deadlines.pop_due(at(100)), Some(3));
        assert_eq!(deadlines.pop_due(at(1000)), None);
        assert_eq!(deadlines.poll_timeout(), None);
    }

    #[test]
    fn arming_later_costs_no_entry_and_arming_earlier_wins() {
        let mut deadlines = Deadlines::default();
        deadlines.arm(0, at(100));
        for later in 101..1000 {
            deadlines.arm(0, at(later));
        }
        assert_eq!(deadlines.heap.len(), 1);
        deadlines.arm(0, at(50));
        assert_eq!(deadlines.pop_due(at(50)), Some(0));
        assert_eq!(
            deadlines.pop_due(at(5000)),
            None,
            "the entry at 100 does not count"
        );
    }

    #[test]
    fn slots_fall_due_in_order_of_time() {
        let mut deadlines = Deadlines::default();
        for (slot, due) in [(0, 30), (1, 10), (2, 20)] {
            deadlines.arm(slot, at(due));
        }
        let order: Vec<u32> = std::iter::from_fn(|| deadlines.pop_due(at(60))).collect();
        assert_eq!(order, [1, 2, 0]);
    }

    #[test]
    fn a_million_tenants_of_one_slot_leave_one_entry() {
        let mut deadlines = Deadlines::default();
        for tenant in 0..1_000_000 {
            deadlines.arm(0, at(tenant + 120_000));
        }
        assert_eq!(deadlines.heap.len(), 1);
    }
}
