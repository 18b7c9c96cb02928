//! The one reader of the operating system's clock.

#![expect(
    clippy::disallowed_methods,
    reason = "this is the one reader of the clock"
)]

use std::time::{Duration, Instant};

use crate::time::Timestamp;

/// The longest single wait: the poll counts milliseconds in 31 bits and cuts the rest off. Whoever waits looks again.
const WAIT_MAX: Duration = Duration::from_hours(24);

/// The process's monotonic clock. Copies count from the same start.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    started: Instant,
}

impl Clock {
    /// A clock that starts to count.
    #[must_use]
    pub fn start() -> Self {
        Self {
            started: Instant::now(),
        }
    }

    /// The moment. Read once a turn, after its wait: every rule of the turn sees the same.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        Timestamp::from_millis(0).after(self.elapsed())
    }

    /// How long it has counted.
    #[must_use]
    pub fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    /// How long something takes.
    pub fn time<T>(&self, work: impl FnOnce() -> T) -> (T, Duration) {
        let before = self.elapsed();
        let done = work();
        (done, self.elapsed() - before)
    }

    /// How long to wait for `deadline`; without one, until something happens.
    #[must_use]
    pub fn until(&self, deadline: Option<Timestamp>) -> Option<Duration> {
        deadline.map(|deadline| deadline.since(self.now()).min(WAIT_MAX))
    }
}
