//! A time limit that a pause of the whole machine does not use up.

use std::time::{Duration, Instant};

/// Two looks further apart than this have a pause between them, in which the server may not have run either.
const PAUSE_MIN: Duration = Duration::from_secs(1);

/// A limit for something that is looked at all the time.
#[derive(Debug)]
pub(crate) struct Bound {
    end: Instant,
    looked: Instant,
}

impl Bound {
    /// So long after `started`.
    pub(crate) fn new(started: Instant, length: Duration) -> Bound {
        Bound {
            end: started + length,
            looked: Instant::now(),
        }
    }

    /// Whether it is reached; the time of a pause does not count.
    pub(crate) fn is_over(&mut self) -> bool {
        let now = Instant::now();
        let since = now - self.looked;
        self.looked = now;
        if since > PAUSE_MIN {
            self.end += since;
        }
        now > self.end
    }
}
