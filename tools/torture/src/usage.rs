//! What a process holds: descriptors, threads, memory.

use std::{
    fs,
    time::{Duration, Instant},
};

use parity::{Error, Result};

use crate::{bound::Bound, pause};

/// A sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Usage {
    /// Open file descriptors.
    pub(crate) fds: u64,
    /// Threads.
    pub(crate) threads: u64,
    /// Resident memory.
    pub(crate) rss_kib: u64,
}

impl Usage {
    /// Of this process, now.
    ///
    /// # Errors
    /// There is no such process.
    pub(crate) fn of(pid: u32) -> Result<Usage> {
        let rss_kib = loadgen::process::resident_kib(pid);
        Ok(Usage {
            fds: entries(pid, "fd")?,
            threads: entries(pid, "task")?,
            rss_kib: rss_kib.map_err(|error| Error::new(error.to_string()))?,
        })
    }

    /// Waits until the process has no more than `fds` descriptors open; says how long that took, and the last sample.
    ///
    /// # Errors
    /// There is no such process.
    pub(crate) fn settled(pid: u32, fds: u64, bound: Duration) -> Result<(Duration, Usage)> {
        let started = Instant::now();
        let mut bound = Bound::new(started, bound);
        loop {
            let usage = Usage::of(pid)?;
            let waited = started.elapsed();
            if usage.fds <= fds || bound.is_over() {
                return Ok((waited, usage));
            }
            pause(Duration::from_millis(2));
        }
    }
}

fn entries(pid: u32, folder: &str) -> Result<u64> {
    let count = fs::read_dir(format!("/proc/{pid}/{folder}"))?.count();
    Ok(u64::try_from(count).expect("a count of files fits"))
}
