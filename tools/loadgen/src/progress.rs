//! How far a run is, and the line that says so.

use std::time::Duration;

use crate::options::Mode;

/// How far a run is.
#[derive(Clone, Copy, Debug)]
pub enum Progress {
    /// Brokers register.
    SetUp {
        /// So many have.
        done: usize,
        /// Of so many.
        brokers: usize,
    },
    /// A phase runs.
    Phase {
        /// Which one.
        mode: Mode,
        /// Since its start.
        elapsed: Duration,
        /// The part that is not measured, at its start.
        warm_up: Duration,
        /// All of it, warm-up included.
        total: Duration,
        /// Replies in the measured time.
        requests: u64,
    },
}

impl Progress {
    /// Replies so far in the measured time of this phase.
    pub fn requests(self) -> u64 {
        match self {
            Self::SetUp { .. } => 0,
            Self::Phase { requests, .. } => requests,
        }
    }

    /// One line, with this many requests a second where some are measured.
    pub fn line(self, rate: f64) -> String {
        match self {
            Self::SetUp { done, brokers } => format!("{done} of {brokers} brokers have registered"),
            Self::Phase {
                mode,
                elapsed,
                warm_up,
                total,
                ..
            } => {
                let doing = if elapsed < warm_up {
                    "warming up".to_owned()
                } else {
                    format!("{rate:.0} requests/s")
                };
                let (elapsed, total) = (elapsed.as_secs_f64(), total.as_secs_f64());
                let mode = mode.name();
                format!("{mode} loop, {elapsed:.0} of {total:.0} s, {doing}")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_phase_has_no_rate_while_it_warms_up() {
        let line = |elapsed| {
            let phase = Progress::Phase {
                mode: Mode::Open,
                elapsed: Duration::from_secs(elapsed),
                warm_up: Duration::from_secs(2),
                total: Duration::from_secs(12),
                requests: 7,
            };
            phase.line(50.4)
        };
        assert_eq!(line(1), "open loop, 1 of 12 s, warming up");
        assert_eq!(line(2), "open loop, 2 of 12 s, 50 requests/s");
    }
}
