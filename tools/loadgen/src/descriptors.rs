//! How many files this process may have open: each connection is one, and what shells allow is less than a workload may need.

use nix::sys::resource::{Resource, getrlimit, setrlimit};

use crate::{
    error::{Error, Result},
    options::Options,
};

/// Beside connections: standard streams, polls of the threads, files that are written and those of `/proc`.
const OTHERS: usize = 96;

/// Raises the soft limit to the hard one, which needs no privilege; returns how many files may be open then.
///
/// # Errors
/// When the system does not tell.
pub fn raise_limit() -> Result<u64> {
    let limits = getrlimit(Resource::RLIMIT_NOFILE).map_err(std::io::Error::from);
    let (soft, hard) = limits.map_err(Error::while_doing("limit of open files"))?;
    let raised = setrlimit(Resource::RLIMIT_NOFILE, hard, hard);
    Ok(raised.map_or(soft, |()| hard))
}

/// Says so when a run has more connections than may be open.
///
/// # Errors
/// When it has.
pub fn check(options: &Options, allowed: u64) -> Result<()> {
    let (brokers, clients) = (options.population.brokers(), options.connections);
    let needed = (brokers + clients + OTHERS) as u64;
    if needed <= allowed {
        return Ok(());
    }
    Err(Error::new(format!(
        "connections of {brokers} brokers and {clients} clients need {needed} open files; allowed are {allowed} (the hard limit, \
         ulimit -Hn): raise it, or take fewer --connections or more --topics-per-broker"
    )))
}
