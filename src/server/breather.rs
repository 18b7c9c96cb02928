//! How the writer lets the workers run in the middle of its work.
//!
//! A nice thread is not always a polite one: Linux lets a thread that has begun go on for its whole slice, a millisecond and more, before
//! one that wakes and has the better claim takes its place. So the writer asks the system now and then who else wants to run. It goes
//! on at once if nobody does. But one that offers its place all the time gets next to nothing beside workers that never rest, so
//! it stops asking in a batch that takes too long, and has the share of a nice thread for the rest of it.

use std::time::Duration;

use super::clock::Clock;
use crate::registry::Breather;

/// So many steps lie between two looks at the clock.
const STEPS: u32 = 16;

/// How long the writer keeps the processor from a worker. Half of it was no better.
const STRETCH_MAX: Duration = Duration::from_micros(100);

/// How long a batch goes on offering. What comes last may be taken for as long as the system's slice of a nice thread makes it.
///
/// Beside 20 registrations a second that change 2,000 topics each, queries at 100,000/s, all on one processor, a registration took 12 to
/// 14 ms: with 10 ms one run in two had such a slice in its p99 (0.6 to 0.7 or 1.3 to 1.8 ms), with 20 none (0.55 to 0.73). Beside queries
/// without a pause all of it is waited for: 33 ms instead of 19.
const PATIENCE: Duration = Duration::from_millis(20);

/// The writer's breather. In the same case p99 was 1.4 to 1.7 ms without one, and registrations took 3.4 ms (`tools/compare`, case 5, would
/// notice the loss: p99 beside registrations of ours against that of the null server).
#[derive(Debug)]
pub(super) struct WriterBreather {
    clock: Clock,
    offer: fn(),
    steps: u32,
    pace: Pace,
}

impl WriterBreather {
    /// One that lets whoever else wants to run do so.
    pub(super) fn new(clock: Clock) -> Self {
        Self::offering(clock, std::thread::yield_now)
    }

    fn offering(clock: Clock, offer: fn()) -> Self {
        Self {
            clock,
            offer,
            steps: 0,
            pace: Pace::default(),
        }
    }
}

impl Breather for WriterBreather {
    fn breathe(&mut self) {
        self.steps += 1;
        if self.steps < STEPS {
            return;
        }
        self.steps = 0;
        if self.pace.is_due(self.clock.elapsed()) {
            (self.offer)();
            self.pace.goes_on(self.clock.elapsed());
        }
    }

    fn finished(&mut self) {
        self.pace = Pace::default();
    }
}

/// When a batch is interrupted. Moments are those of one clock.
#[derive(Debug, Default)]
struct Pace {
    /// When the batch was first seen, and when it last went on.
    seen: Option<(Duration, Duration)>,
}

impl Pace {
    fn is_due(&mut self, at: Duration) -> bool {
        let (began, went_on) = *self.seen.get_or_insert((at, at));
        at.saturating_sub(went_on) >= STRETCH_MAX && at.saturating_sub(began) < PATIENCE
    }

    fn goes_on(&mut self, at: Duration) {
        if let Some((_, went_on)) = &mut self.seen {
            *went_on = at;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    const START: Duration = Duration::from_hours(1);

    #[test]
    fn a_short_batch_is_not_interrupted() {
        let mut pace = Pace::default();
        assert!(!pace.is_due(START));
        assert!(!pace.is_due(START + STRETCH_MAX / 2));
    }

    #[test]
    fn a_long_one_is_after_each_stretch_however_long_the_break_was() {
        let mut pace = Pace::default();
        assert!(!pace.is_due(START));
        let first = START + STRETCH_MAX;
        assert!(pace.is_due(first));
        let back = first + Duration::from_millis(2);
        pace.goes_on(back);
        assert!(!pace.is_due(back + STRETCH_MAX / 2));
        assert!(pace.is_due(back + STRETCH_MAX));
    }

    #[test]
    fn one_that_workers_without_rest_put_off_for_too_long_is_interrupted_no_more() {
        let mut pace = Pace::default();
        assert!(!pace.is_due(START));
        assert!(pace.is_due(START + PATIENCE - Duration::from_nanos(1)));
        assert!(!pace.is_due(START + PATIENCE));
        assert!(!pace.is_due(START + 100 * PATIENCE));
    }

    #[test]
    fn work_for_longer_than_a_stretch_is_offered_and_a_batch_too_long_no_more() {
        thread_local!(static OFFERS: Cell<u32> = const { Cell::new(0) });
        let offer = || OFFERS.set(OFFERS.get() + 1);
        let clock = Clock::start();
        let mut breather = WriterBreather::offering(clock, offer);
        let mut work_for = |time| {
            let (end, before) = (clock.elapsed() + time, OFFERS.get());
            while clock.elapsed() < end {
                breather.breathe();
            }
            OFFERS.get() - before
        };
        // More than one batch's patience, so that the rest of it is behind, however the machine shares out its time.
        let offered = work_for(2 * PATIENCE);
        let stretches = PATIENCE.as_micros() / STRETCH_MAX.as_micros();
        assert!(
            u128::from(offered) <= stretches,
            "{offered} offers, a stretch apart"
        );
        assert_eq!(work_for(PATIENCE), 0, "in the same batch");
        // In one of the next, unless the machine pauses in each for as long as a batch offers.
        let mut steps = 0;
        for _ in 0..1000 {
            breather.finished();
            steps = 0;
            let before = OFFERS.get();
            let end = clock.elapsed() + PATIENCE;
            while OFFERS.get() == before && clock.elapsed() < end {
                breather.breathe();
                steps += 1;
            }
            if OFFERS.get() > before {
                break;
            }
        }
        assert!(OFFERS.get() > offered, "it offers in a new batch");
        assert!(steps > STEPS, "and waits for a stretch before");
    }

    #[test]
    fn the_next_batch_is_a_new_one() {
        let mut breather = WriterBreather::new(Clock::start());
        breather.pace.seen = Some((START, START));
        breather.finished();
        assert!(!breather.pace.is_due(START + PATIENCE));
        assert!(breather.pace.is_due(START + PATIENCE + STRETCH_MAX));
    }
}
