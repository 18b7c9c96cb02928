//! Due times of an open loop: request `k` is due at a moment that depends on nothing the server does.

/// Requests at a constant rate.
#[derive(Clone, Copy, Debug)]
pub struct Schedule {
    start: u64,
    interval: f64,
}

impl Schedule {
    /// The first request is due at `start` (ns), the others follow at `rate` a second.
    pub fn new(start: u64, rate: f64) -> Self {
        Self {
            start,
            interval: 1e9 / rate,
        }
    }

    /// The part that falls to one of `threads` threads: every `threads`-th request, `thread` requests later.
    pub fn share(start: u64, rate: f64, thread: usize, threads: usize) -> Self {
        let interval = 1e9 / rate;
        Self {
            start: start + whole(interval * thread as f64),
            interval: interval * threads as f64,
        }
    }

    /// When request `index` is due, in ns. Multiplied, not added up, so that no error accumulates.
    pub fn due(&self, index: u64) -> u64 {
        self.start + whole(self.interval * index as f64)
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "intervals are positive and runs last minutes, not centuries"
)]
fn whole(nanoseconds: f64) -> u64 {
    nanoseconds as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn due_times_do_not_drift() {
        let schedule = Schedule::new(1_000, 3.0);
        assert_eq!(schedule.due(0), 1_000);
        assert_eq!(schedule.due(1), 333_334_333);
        assert_eq!(schedule.due(3_000_000), 1_000_000_000_001_000);
    }

    #[test]
    fn the_shares_of_the_threads_are_the_whole_schedule() {
        let whole = Schedule::new(5_000, 1_000.0);
        for thread in 0..4_u64 {
            let part = Schedule::share(5_000, 1_000.0, usize::try_from(thread).unwrap(), 4);
            for k in 0..10 {
                assert_eq!(part.due(k), whole.due(4 * k + thread));
            }
        }
    }
}
