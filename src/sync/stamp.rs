//! A moment shared by threads that only moves forward: when a peer was last heard of.
//!
//! It sits in an entry that successive snapshots share, so a heartbeat is a look-up and a write of eight bytes, and publishes
//! nothing.
//!
//! # The argument
//!
//! Parties: any number of threads that refresh, any number that read. The eight bytes are the whole message: nobody concludes
//! from a moment that some *other* memory has been written. So no access needs an edge, and all are Relaxed. What is left to ask
//! is what one location alone guarantees, and every ordering guarantees that:
//!
//! * One thread's successive reads never go back (coherence), and `refresh` is a maximum, so neither do the values. Two workers
//!   read their clocks at different moments; the later write may carry the earlier one.
//! * A reader may be handed a value that is late by the time a store takes to travel. An expiry decided on it equals one decided
//!   a moment before the heartbeat came in, which is an order the two may have anyway.

use super::primitive::{AtomicU64, Ordering};
use crate::time::Timestamp;

/// The latest of the moments it was refreshed with.
#[derive(Debug)]
pub struct Stamp {
    millis: AtomicU64,
}

impl Stamp {
    /// A stamp that reads `moment`.
    #[must_use]
    pub fn new(moment: Timestamp) -> Self {
        Self {
            millis: AtomicU64::new(moment.as_millis()),
        }
    }

    /// Moves it to `now`, unless it is there or further already.
    pub fn refresh(&self, now: Timestamp) {
        // Relaxed: see the argument. The look first spares the cache line a write when many heartbeats share a millisecond.
        if self.millis.load(Ordering::Relaxed) < now.as_millis() {
            // Relaxed: see the argument. A maximum, not a store: another thread's later moment may have come in since the look.
            // Scenario: handover, mutant `stamp-goes-back`.
            self.millis.fetch_max(now.as_millis(), Ordering::Relaxed);
        }
    }

    /// The moment it reads.
    #[must_use]
    pub fn get(&self) -> Timestamp {
        // Relaxed: see the argument.
        Timestamp::from_millis(self.millis.load(Ordering::Relaxed))
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_reads_the_latest_moment() {
        let stamp = Stamp::new(Timestamp::from_millis(5));
        assert_eq!(stamp.get(), Timestamp::from_millis(5));

        stamp.refresh(Timestamp::from_millis(9));

        assert_eq!(stamp.get(), Timestamp::from_millis(9));
    }

    #[test]
    fn an_earlier_moment_leaves_a_stamp_alone() {
        let stamp = Stamp::new(Timestamp::from_millis(5));

        stamp.refresh(Timestamp::from_millis(4));

        assert_eq!(stamp.get(), Timestamp::from_millis(5));
    }
}
