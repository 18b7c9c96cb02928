//! A flag that is raised once, by any thread, and never lowered: "stop", "go away", "no more of this".
//!
//! # The argument
//!
//! Parties: whoever raises, whoever looks. Raising is a Release store, looking an Acquire load, so a thread that sees the flag
//! raised also sees everything that the raising thread did before, and everything that one had learned. That is what a stopping
//! thread needs: "nobody will send to you any more, and then I raised this" must mean that one last drain finds all there is.
//! A thread that does *not* see it raised has learned nothing; it will be woken and look again.
//!
//! **The flag is read before the drain, not after.** Read afterwards, a value can arrive and the flag rise in between, and the
//! thread ends with a value unread. Scenario: handover, mutant `stop-read-after-the-drain`.

use std::sync::Arc;

use super::primitive::{AtomicBool, Ordering};

/// A one-way flag. Clones are the same flag.
#[derive(Debug, Clone)]
pub struct Flag {
    raised: Arc<AtomicBool>,
}

impl Flag {
    /// A flag that is down.
    #[must_use]
    #[expect(
        clippy::new_without_default,
        reason = "a flag is shared; one that appears by default would be a different one"
    )]
    pub fn new() -> Self {
        Self {
            raised: Arc::new(AtomicBool::new(false)),
        }
    }

    /// Raises it, for good. It wakes nobody: whoever must notice is woken by the caller afterwards.
    pub fn raise(&self) {
        // Release: pairs with the Acquire in `is_raised`. Without it the last drain can miss what was sent before. Scenario:
        // handover, mutant `flag-raised-without-release`.
        self.raised.store(true, Ordering::Release);
    }

    /// Whether it has been raised. If so, everything before that is visible.
    #[must_use]
    pub fn is_raised(&self) -> bool {
        // Acquire: pairs with the Release in `raise`. Without it the last drain can miss what was sent before. Scenario: handover,
        // mutant `flag-read-without-acquire`.
        self.raised.load(Ordering::Acquire)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn clones_are_the_same_flag() {
        let flag = Flag::new();
        let other = flag.clone();
        assert!(!other.is_raised());

        flag.raise();

        assert!(other.is_raised());
    }
}
