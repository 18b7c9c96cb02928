//! How much a worker may have out at the writer, by count and by size.
//!
//! A worker's reply mailbox has room for [`IN_FLIGHT_MAX`] replies, and every command out costs at least one credit of as
//! many, so the writer can never find that mailbox full. A large request costs more than one, which bounds the memory that
//! queued registrations hold.

use crate::limits::{IN_FLIGHT_BYTES_PER_CREDIT, IN_FLIGHT_MAX};

/// The credits of one worker.
#[derive(Debug)]
pub struct Credits {
    free: usize,
    all: usize,
}

/// What one connection has out.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Outstanding {
    /// Commands whose reply has not come.
    commands: u32,
    /// Credits that they hold, at least one each.
    credits: u32,
}

impl Outstanding {
    /// How many commands are out.
    #[must_use]
    pub fn commands(&self) -> usize {
        self.commands as usize
    }
}

/// As many as a worker of the server has.
impl Default for Credits {
    fn default() -> Self {
        Self::new(IN_FLIGHT_MAX)
    }
}

impl Credits {
    /// So many, at most [`IN_FLIGHT_MAX`], of which none is taken.
    ///
    /// # Panics
    ///
    /// When there are more.
    #[must_use]
    pub fn new(count: usize) -> Self {
        assert!(count <= IN_FLIGHT_MAX, "a reply is taken for each");
        Self {
            free: count,
            all: count,
        }
    }

    /// Takes the credits for a request of `request_len` bytes; says whether there were enough.
    pub fn take(&mut self, outstanding: &mut Outstanding, request_len: usize) -> bool {
        let cost = (1 + request_len / IN_FLIGHT_BYTES_PER_CREDIT).min(self.all);
        if self.free < cost {
            return false;
        }
        self.free -= cost;
        outstanding.commands += 1;
        outstanding.credits += u32::try_from(cost).expect("a cost is at most IN_FLIGHT_MAX");
        true
    }

    /// One command of a connection was replied to.
    ///
    /// Replies do not say how large their requests were: each returns one credit, and the last one what is left.
    pub fn give_back(&mut self, outstanding: &mut Outstanding) {
        outstanding.commands = outstanding
            .commands
            .checked_sub(1)
            .expect("a reply belongs to a command that is out");
        let returned = if outstanding.commands == 0 {
            outstanding.credits
        } else {
            1
        };
        outstanding.credits -= returned;
        self.free += returned as usize;
    }

    /// The connection is gone. Its commands keep a credit each until [`Self::give_back_late`].
    pub fn abandon(&mut self, outstanding: Outstanding) {
        self.free += (outstanding.credits - outstanding.commands) as usize;
    }

    /// A reply came for a connection that is gone.
    pub fn give_back_late(&mut self) {
        self.free += 1;
        assert!(self.free <= self.all, "more replies than commands");
    }

    /// Whether nothing is out.
    #[must_use]
    pub fn all_free(&self) -> bool {
        self.free == self.all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_requests_cost_one_credit_each() {
        let mut credits = Credits::default();
        let mut outstanding = Outstanding::default();
        for _ in 0..IN_FLIGHT_MAX {
            assert!(credits.take(&mut outstanding, 500));
        }
        assert!(!credits.take(&mut outstanding, 500));
        credits.give_back(&mut outstanding);
        assert!(credits.take(&mut outstanding, 500));
    }

    #[test]
    fn large_requests_cost_by_size_and_return_all_with_the_last_reply() {
        let mut credits = Credits::default();
        let mut outstanding = Outstanding::default();
        assert!(credits.take(&mut outstanding, 16 * 1024 * 1024));
        assert!(credits.take(&mut outstanding, 10));
        assert_eq!(credits.free, IN_FLIGHT_MAX - 258);
        credits.give_back(&mut outstanding);
        assert_eq!(credits.free, IN_FLIGHT_MAX - 257);
        credits.give_back(&mut outstanding);
        assert!(credits.all_free());
        assert_eq!(outstanding, Outstanding::default());
    }

    #[test]
    fn a_request_larger_than_all_credits_still_passes_alone() {
        let mut credits = Credits::default();
        let mut outstanding = Outstanding::default();
        assert!(credits.take(&mut outstanding, usize::MAX / 2));
        credits.give_back(&mut outstanding);
        assert!(credits.all_free());
    }

    #[test]
    fn an_abandoned_connection_returns_its_credits_as_its_replies_come() {
        let mut credits = Credits::default();
        let mut outstanding = Outstanding::default();
        assert!(credits.take(&mut outstanding, 1024 * 1024));
        assert!(credits.take(&mut outstanding, 0));
        credits.abandon(outstanding);
        assert_eq!(credits.free, IN_FLIGHT_MAX - 2);
        credits.give_back_late();
        credits.give_back_late();
        assert!(credits.all_free());
    }
}
