//! The moments of a phase, and how a thread waits for them.

use std::time::{Duration, Instant};

/// The moments of a phase, in ns since `epoch`.
#[derive(Clone, Copy, Debug)]
pub struct Moments {
    /// What all moments count from.
    pub epoch: Instant,
    /// The first request.
    pub start: u64,
    /// From here on it is measured.
    pub warm_end: u64,
    /// The last request.
    pub end: u64,
    /// Until here replies are waited for.
    pub drain_end: u64,
}

impl Moments {
    /// The moment it is.
    pub fn now(&self) -> u64 {
        u64::try_from(self.epoch.elapsed().as_nanos()).expect("runs are bounded")
    }

    /// Whether a moment lies in the measured time.
    pub fn is_measured(&self, now: u64) -> bool {
        (self.warm_end..self.end).contains(&now)
    }

    /// Until when a request has waited that is given up now: to the end of the measured time at least, since no answer can come before.
    pub fn waited_until(&self, now: u64) -> u64 {
        now.max(self.end)
    }

    /// How much of a span lies in the measured time.
    pub fn measured(&self, from: u64, to: u64) -> u64 {
        to.min(self.end).saturating_sub(from.max(self.warm_end))
    }
}

/// How a thread waits for the next due time. The poll's resolution is a millisecond.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waiting {
    /// Polls without a pause in the last millisecond: exact, and takes a processor.
    Exact,
    /// May wake up to a millisecond late: for the load beside the one that is measured.
    Thrifty,
}

impl Waiting {
    /// How long the poll may wait when the next due time is so far away.
    pub fn pause(self, nanoseconds: u64) -> Duration {
        match self {
            Self::Exact => Duration::from_millis(nanoseconds / 1_000_000),
            Self::Thrifty => Duration::from_millis(nanoseconds.div_ceil(1_000_000)),
        }
    }
}

/// Where in its phase a thread is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Before the first request.
    Early,
    /// Before it is measured.
    WarmUp,
    /// While it is measured.
    Measured,
    /// After the last request.
    Draining,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_part_of_a_span_in_the_measured_time_counts() {
        let moments = Moments {
            epoch: Instant::now(),
            start: 10,
            warm_end: 100,
            end: 200,
            drain_end: 300,
        };
        let spans = [(50, 90), (50, 110), (120, 130), (190, 250), (210, 220)];
        let parts = spans.map(|(from, to)| moments.measured(from, to));
        assert_eq!(parts, [0, 10, 10, 10, 0]);
        let counted = [99, 100, 199, 200].map(|now| moments.is_measured(now));
        assert_eq!(counted, [false, true, true, false]);
        assert_eq!([150, 250].map(|now| moments.waited_until(now)), [200, 250]);
    }

    #[test]
    fn exact_waiting_ends_before_the_due_time_and_thrifty_waiting_after_it() {
        let pauses = |nanoseconds| {
            let millis = |waiting: Waiting| waiting.pause(nanoseconds).as_millis();
            (millis(Waiting::Exact), millis(Waiting::Thrifty))
        };
        assert_eq!(pauses(2_500_000), (2, 3));
        assert_eq!(pauses(999_999), (0, 1));
    }
}
