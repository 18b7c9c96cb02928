//! The scenarios.

mod beating;
mod clock;
pub(crate) mod disk;
mod fds;
mod flap;
mod flood;
mod half_open;
mod kill;
mod slow;
mod stop;
mod term;

use parity::Result;

use crate::{Context, report::Record};

/// How much a scenario does.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Size {
    /// Of whatever it counts.
    pub(crate) count: u64,
    /// Its length, if it has one.
    pub(crate) seconds: u64,
}

/// One of the ways to do harm.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scenario {
    /// On the command line.
    pub(crate) name: &'static str,
    /// With `--quick`.
    pub(crate) quick: Size,
    /// Without.
    pub(crate) full: Size,
    /// Does it. An error means that it could not be run to its end.
    pub(crate) run: fn(&Context, &mut Record) -> Result<()>,
}

const fn size(count: u64, seconds: u64) -> Size {
    Size { count, seconds }
}

/// All of them, in the order of `all`.
pub(crate) const SCENARIOS: [Scenario; 10] = [
    Scenario {
        name: "kill",
        quick: size(40, 0),
        full: size(1000, 0),
        run: kill::run,
    },
    Scenario {
        name: "disk",
        quick: size(20, 0),
        full: size(1000, 0),
        run: disk::run,
    },
    Scenario {
        name: "fds",
        quick: size(300, 0),
        full: size(4000, 0),
        run: fds::run,
    },
    Scenario {
        name: "slow",
        quick: size(200, 3),
        full: size(2000, 60),
        run: slow::run,
    },
    Scenario {
        name: "half-open",
        quick: size(50, 0),
        full: size(1000, 0),
        run: half_open::run,
    },
    Scenario {
        name: "flood",
        quick: size(50_000, 0),
        full: size(1_000_000, 0),
        run: flood::run,
    },
    Scenario {
        name: "flap",
        quick: size(12, 5),
        full: size(24, 600),
        run: flap::run,
    },
    Scenario {
        name: "clock",
        quick: size(20, 0),
        full: size(1000, 0),
        run: clock::run,
    },
    Scenario {
        name: "stop",
        quick: size(50, 3),
        full: size(1500, 15),
        run: stop::run,
    },
    Scenario {
        name: "term",
        quick: size(10, 0),
        full: size(300, 0),
        run: term::run,
    },
];
