//! What the writer's turns cost: one water-mark line a minute, and none while nothing happens.
//!
//! A turn is what a registration waits for, so its tail is the first thing to look at when brokers complain of slow answers. What the
//! writer gave way to others meanwhile is in it.

use std::time::Duration;

use hdrhistogram::Histogram;

use crate::time::Timestamp;

/// How often a line is written at most.
const REPORT_INTERVAL: Duration = Duration::from_secs(60);
/// Longer turns are counted as this long.
const TURN_MICROS_MAX: u64 = 60_000_000;

/// The turns since the last line.
#[derive(Debug)]
pub(super) struct TurnStats {
    turn_micros: Histogram<u64>,
    commands: usize,
    publications: u64,
    reported_at: Timestamp,
}

impl TurnStats {
    pub(super) fn new(now: Timestamp) -> Self {
        Self {
            turn_micros: Histogram::new_with_max(TURN_MICROS_MAX, 2)
                .expect("two digits up to a minute are within what a histogram can hold"),
            commands: 0,
            publications: 0,
            reported_at: now,
        }
    }

    /// Notes a publication.
    pub(super) fn published(&mut self) {
        self.publications += 1;
    }

    /// Notes a turn that had commands.
    pub(super) fn turned(&mut self, commands: usize, took: Duration) {
        self.commands += commands;
        let micros = u64::try_from(took.as_micros()).unwrap_or(TURN_MICROS_MAX);
        self.turn_micros.saturating_record(micros);
    }

    /// The line, when it is time for one and there is something to tell.
    pub(super) fn poll_report(&mut self, now: Timestamp) -> Option<String> {
        if self.commands == 0 || now.since(self.reported_at) < REPORT_INTERVAL {
            return None;
        }
        let line = format!(
            "[WATERMARK] WriterCommands:{} WriterTurns:{} Publications:{} TurnMicrosP50:{} TurnMicrosP99:{} TurnMicrosMax:{}",
            self.commands,
            self.turn_micros.len(),
            self.publications,
            self.turn_micros.value_at_quantile(0.5),
            self.turn_micros.value_at_quantile(0.99),
            self.turn_micros.max(),
        );
        self.turn_micros.reset();
        self.commands = 0;
        self.publications = 0;
        self.reported_at = now;
        Some(line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_comes_once_a_minute_and_only_if_something_happened() {
        let at = Timestamp::from_millis;
        let mut stats = TurnStats::new(at(0));
        assert_eq!(stats.poll_report(at(100_000)), None);
        for micros in 1..=100 {
            stats.turned(2, Duration::from_micros(micros));
        }
        stats.published();
        assert_eq!(stats.poll_report(at(59_999)), None);
        let line = stats.poll_report(at(60_000)).expect("a line");
        assert_eq!(
            line,
            "[WATERMARK] WriterCommands:200 WriterTurns:100 Publications:1 TurnMicrosP50:50 TurnMicrosP99:99 TurnMicrosMax:100"
        );
        assert_eq!(stats.poll_report(at(200_000)), None);
        stats.turned(1, Duration::from_secs(3600));
        assert!(
            stats
                .poll_report(at(200_000))
                .is_some_and(|line| line.contains("WriterTurns:1 "))
        );
    }
}
