//! Values that many entries share, found again by their content.

use std::{collections::HashSet, sync::Arc};

use super::entry::{Slot, SlotList};

/// Below this many values the unused ones are not looked for.
const SWEEP_MIN: usize = 64;

/// When to look for shared values that nobody uses any more: when there are twice as many as last time, so that looking costs
/// each insertion a constant.
#[derive(Debug, Default)]
pub(super) struct SweepPace {
    after_last: usize,
}

impl SweepPace {
    pub(super) fn is_due(&self, len: usize) -> bool {
        len >= SWEEP_MIN.max(2 * self.after_last)
    }

    /// A sweep has left `len` values.
    pub(super) fn swept(&mut self, len: usize) {
        self.after_last = len;
    }
}

/// The slot lists in use: most topics of a cluster are held by the same brokers with the same numbers of queues, so they share
/// one list, and readers one encoded answer.
#[derive(Debug, Default)]
pub(super) struct SlotLists {
    lists: HashSet<SlotList>,
    pace: SweepPace,
}

impl SlotLists {
    /// The shared list of these slots.
    pub(super) fn get(&mut self, slots: &[Slot]) -> SlotList {
        if let Some(list) = self.lists.get(slots) {
            return Arc::clone(list);
        }
        if self.pace.is_due(self.lists.len()) {
            self.lists.retain(|list| Arc::strong_count(list) > 1);
            self.pace.swept(self.lists.len());
        }
        let list = SlotList::from(slots);
        self.lists.insert(Arc::clone(&list));
        list
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        protocol::body::QueueSettings,
        registry::entry::{BrokerIndex, QueueShape},
    };

    #[test]
    fn equal_lists_are_one_and_unused_ones_do_not_pile_up() {
        let queues = Arc::new(QueueShape::new("a", QueueSettings::default(), 6));
        let slot = |broker| Slot {
            broker: BrokerIndex(broker),
            queues: Arc::clone(&queues),
        };
        let mut lists = SlotLists::default();
        let kept = lists.get(&[slot(0), slot(1)]);
        for broker in 0..10_000 {
            lists.get(&[slot(broker)]);
            assert!(lists.lists.len() <= 2 * SWEEP_MIN);
        }
        assert!(Arc::ptr_eq(&kept, &lists.get(&[slot(0), slot(1)])));
        assert!(!Arc::ptr_eq(&kept, &lists.get(&[slot(1), slot(0)])));
    }
}
