//! Keeps a flood of misbehaving peers from becoming a flood of log lines.

use crate::{
    limits::{PEER_LOG_INTERVAL, PEER_LOG_MAX},
    time::Timestamp,
};

/// Lets some lines through in each interval and counts the others.
#[derive(Debug, Default)]
pub(crate) struct LogLimit {
    interval_ends_at: Timestamp,
    logged: u32,
    suppressed: u64,
}

impl LogLimit {
    /// Whether a line may be logged, and if so how many were suppressed before it.
    pub(crate) fn admit(&mut self, now: Timestamp) -> Option<u64> {
        if now >= self.interval_ends_at {
            self.interval_ends_at = now.after(PEER_LOG_INTERVAL);
            self.logged = 0;
        }
        if self.logged == PEER_LOG_MAX {
            self.suppressed += 1;
            return None;
        }
        self.logged += 1;
        Some(std::mem::take(&mut self.suppressed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_is_counted_and_the_count_is_told_in_the_next_interval() {
        let mut limit = LogLimit::default();
        let start = Timestamp::from_millis(5000);
        for _ in 0..PEER_LOG_MAX {
            assert_eq!(limit.admit(start), Some(0));
        }
        for _ in 0..1000 {
            assert_eq!(limit.admit(start), None);
        }
        let later = start.after(PEER_LOG_INTERVAL);
        assert_eq!(limit.admit(later), Some(1000));
        assert_eq!(limit.admit(later), Some(0));
    }
}
