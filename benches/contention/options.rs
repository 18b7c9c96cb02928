//! Which cells are run, and where their figures go.

use std::{ffi::OsString, path::PathBuf, time::Duration};

use lexopt::{Arg, Parser, ValueExt};

use crate::{
    designs::{KINDS, Kind},
    load::{Cell, Pace, Write},
};

pub(crate) const HELP: &str = "\
usage: cargo bench --bench contention -- load [options]

  --full            all paces of all writes, not the telling ones
  --seconds S       how long a cell takes, 0.01 to 600 (0.5)
  --entries N       pairs of a topic and a broker; may be repeated; 1000, 100000 and 1000000
  --design NAME     only this one; may be repeated
  --json FILE       writes the figures
  --plot DIR        writes a plot of look-up latencies for each cell and size, contention-*.svg; those of the documentation
                    are made with --full --seconds 0.3 --plot DIR
";

const READERS: [usize; 3] = [1, 2, 4];

#[derive(Debug)]
pub(crate) struct Options {
    pub(crate) cells: Vec<Cell>,
    pub(crate) entries: Vec<usize>,
    pub(crate) kinds: Vec<Kind>,
    pub(crate) duration: Duration,
    pub(crate) json: Option<PathBuf>,
    pub(crate) plot: Option<PathBuf>,
}

impl Options {
    /// Cells that tell the designs apart, in a few minutes.
    pub(crate) fn usual() -> Self {
        Self {
            cells: cells(&[
                None,
                Some((Write::Heartbeat, Pace::PerSecond(1_000))),
                Some((Write::Unchanged, Pace::PerSecond(100))),
                Some((Write::Changed, Pace::PerSecond(100))),
                Some((Write::Changed, Pace::FlatOut)),
            ]),
            entries: vec![1_000, 100_000, 1_000_000],
            kinds: KINDS.to_vec(),
            duration: Duration::from_millis(500),
            json: None,
            plot: None,
        }
    }

    /// Every cell once, small and short: that it works, not what it costs.
    pub(crate) fn test() -> Self {
        Self {
            cells: full(),
            entries: vec![400],
            duration: Duration::from_millis(5),
            ..Self::usual()
        }
    }

    /// Reads what comes after `load`. `None`: help is asked for.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(crate) fn parse(
        arguments: impl IntoIterator<Item = OsString>,
    ) -> Result<Option<Self>, lexopt::Error> {
        let mut options = Self::usual();
        let (mut entries, mut kinds) = (Vec::new(), Vec::new());
        let mut parser = Parser::from_args(arguments);
        while let Some(argument) = parser.next()? {
            match argument {
                Arg::Long("full") => options.cells = full(),
                Arg::Long("seconds") => {
                    let seconds: f64 = parser.value()?.parse()?;
                    if !(0.01..=600.0).contains(&seconds) {
                        return Err(format!(
                            "--seconds {seconds}; allowed are numbers from 0.01 to 600"
                        )
                        .into());
                    }
                    options.duration = Duration::from_secs_f64(seconds);
                }
                Arg::Long("entries") => {
                    let count: usize = parser.value()?.parse()?;
                    if !(400..=10_000_000).contains(&count) {
                        return Err(format!(
                            "--entries {count}; allowed are numbers from 400 to 10000000"
                        )
                        .into());
                    }
                    entries.push(count);
                }
                Arg::Long("design") => {
                    let name = parser.value()?.string()?;
                    let kind = KINDS.into_iter().find(|kind| kind.name == name);
                    kinds.push(kind.ok_or_else(|| {
                        let known = KINDS.map(|kind| kind.name).join(", ");
                        format!("--design {name}; allowed are {known}")
                    })?);
                }
                Arg::Long("json") => options.json = Some(parser.value()?.into()),
                Arg::Long("plot") => options.plot = Some(parser.value()?.into()),
                Arg::Long("bench") => {} // cargo's own
                Arg::Long("help") | Arg::Short('h') => return Ok(None),
                Arg::Short(_) | Arg::Long(_) | Arg::Value(_) => {
                    return Err(argument.unexpected());
                }
            }
        }
        if !entries.is_empty() {
            options.entries = entries;
        }
        if !kinds.is_empty() {
            options.kinds = kinds;
        }
        Ok(Some(options))
    }
}

/// Each load with each number of readers.
fn cells(loads: &[Option<(Write, Pace)>]) -> Vec<Cell> {
    let with = |load| READERS.map(|readers| Cell { readers, load });
    loads.iter().copied().flat_map(with).collect()
}

fn full() -> Vec<Cell> {
    let paces = [10, 100, 1_000].map(Pace::PerSecond);
    let mut loads = vec![None];
    for write in [Write::Heartbeat, Write::Unchanged, Write::Changed] {
        loads.extend(paces.map(|pace| Some((write, pace))));
        loads.push(Some((write, Pace::FlatOut)));
    }
    cells(&loads)
}
