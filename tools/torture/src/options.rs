//! The command line.

use std::{ffi::OsString, path::PathBuf};

use lexopt::{Arg, Parser, ValueExt};
use parity::{Error, Result};

use crate::scenario::{SCENARIOS, Scenario};

/// What `--help` prints.
pub(crate) const HELP: &str = include_str!("help.txt");

/// How much is done unless it is said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scale {
    /// Less than a minute for all scenarios.
    Quick,
    /// The figures of `docs/reliability.md`.
    Full,
}

/// A run.
#[derive(Debug)]
pub(crate) struct Options {
    /// The scenarios, in order.
    pub(crate) scenarios: Vec<Scenario>,
    /// The program under test.
    pub(crate) server: PathBuf,
    /// Defaults of count and seconds.
    pub(crate) scale: Scale,
    /// Instead of the scenario's count.
    pub(crate) count: Option<u64>,
    /// Instead of the scenario's length.
    pub(crate) seconds: Option<u64>,
    /// Of everything that is random.
    pub(crate) seed: u64,
    /// Where the report is written as JSON.
    pub(crate) json: Option<PathBuf>,
}

/// Reads the command line; `None` if it asks for help.
///
/// # Errors
/// It cannot be followed.
pub(crate) fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<Option<Options>> {
    read(&mut Parser::from_args(arguments))
        .map_err(|error| Error::new(format!("{error}; see torture --help")))
}

fn read(parser: &mut Parser) -> std::result::Result<Option<Options>, lexopt::Error> {
    let mut options = Options {
        scenarios: Vec::new(),
        server: PathBuf::from("target/release/mqnamesrv"),
        scale: Scale::Full,
        count: None,
        seconds: None,
        seed: 1,
        json: None,
    };
    while let Some(argument) = parser.next()? {
        match argument {
            Arg::Long("help") | Arg::Short('h') => return Ok(None),
            Arg::Long("quick") => options.scale = Scale::Quick,
            Arg::Long("server") => options.server = parser.value()?.into(),
            Arg::Long("count") => options.count = Some(parser.value()?.parse()?),
            Arg::Long("seconds") => options.seconds = Some(parser.value()?.parse()?),
            Arg::Long("seed") => options.seed = parser.value()?.parse()?,
            Arg::Long("json") => options.json = Some(parser.value()?.into()),
            Arg::Value(name) if name == "all" => options.scenarios.extend(SCENARIOS),
            Arg::Value(name) => {
                let known = SCENARIOS.iter().find(|scenario| name == scenario.name);
                let unknown = || format!("{name:?} is no scenario");
                options.scenarios.push(*known.ok_or_else(unknown)?);
            }
            Arg::Long(_) | Arg::Short(_) => return Err(argument.unexpected()),
        }
    }
    if options.scenarios.is_empty() {
        return Err("no scenario is named".into());
    }
    let several = options.scenarios.len() > 1;
    if several && (options.count.is_some() || options.seconds.is_some()) {
        return Err("--count and --seconds are those of one scenario".into());
    }
    Ok(Some(options))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<Option<Options>> {
        parse(line.split_whitespace().map(OsString::from))
    }

    #[test]
    fn all_means_every_scenario_in_order() {
        let options = parsed("all --quick --server s").unwrap().unwrap();
        let names: Vec<_> = options.scenarios.iter().map(|one| one.name).collect();
        assert_eq!(names.len(), SCENARIOS.len());
        assert_eq!((names[0], options.scale), ("kill", Scale::Quick));
    }

    #[test]
    fn what_cannot_be_followed_is_refused() {
        for line in [
            "",
            "nothing",
            "all --count 3",
            "kill --rounds 3",
            "kill --count x",
        ] {
            assert!(parsed(line).is_err(), "{line}");
        }
        assert!(parsed("--help").unwrap().is_none());
    }
}
