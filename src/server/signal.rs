//! SIGTERM, SIGINT and SIGHUP → an orderly stop; a second one → no more patience. SIGQUIT → a line about the state, as operators
//! are used to ask a Java process for its threads.

use std::{ffi::c_int, fs, io, thread};

use signal_hook::{
    consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM},
    iterator::Signals,
};

/// Catches the signals that ask for something, from its creation on.
#[derive(Debug)]
pub struct StopSignals(Signals);

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// Everything was brought to its end.
    Orderly,
    /// A second signal came before that.
    Hastily,
}

impl StopSignals {
    /// Starts to catch them. Those that the process was started to ignore stay ignored: `nohup`, and a shell that starts something in
    /// the background, rely on that.
    ///
    /// # Errors
    ///
    /// When the system refuses.
    pub fn catch() -> io::Result<Self> {
        let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
        let ignored = ignored(&status);
        let heeded = [SIGTERM, SIGINT, SIGHUP, SIGQUIT]
            .into_iter()
            .filter(|signal| ignored & mask(*signal) == 0);
        Signals::new(heeded).map(Self)
    }

    /// Waits for the first signal to stop, then runs `stop`; returns when that is done, or at the second one. Calls `report` at each
    /// SIGQUIT.
    ///
    /// # Errors
    ///
    /// When there is no thread to stop on.
    pub fn run_until_stopped(
        mut self,
        mut report: impl FnMut(),
        stop: impl FnOnce() + Send + 'static,
    ) -> io::Result<Ended> {
        let done = self.0.handle();
        let mut stop = Some(move || {
            stop();
            done.close();
        });
        for signal in self.0.forever() {
            if signal == SIGQUIT {
                report();
                continue;
            }
            let Some(stop) = stop.take() else {
                return Ok(Ended::Hastily);
            };
            thread::Builder::new()
                .name("shutdown".to_owned())
                .spawn(stop)?;
        }
        Ok(Ended::Orderly)
    }
}

/// The signals that a process ignores, from its `/proc/PID/status`; none where the system does not tell.
fn ignored(status: &str) -> u64 {
    let line = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    line.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .unwrap_or(0)
}

/// A signal's bit in such a set.
fn mask(signal: c_int) -> u64 {
    1 << (signal - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_ignored_is_read_from_the_status_of_the_process() {
        let status =
            "Name:\tmqnamesrv\nSigBlk:\t0000000000000000\nSigIgn:\t0000000000001003\nSigCgt:\t0\n";
        let set = ignored(status);
        assert_eq!(set, mask(SIGHUP) | mask(SIGINT) | mask(13));
        assert_eq!(ignored("Name:\tx\n"), 0);
    }
}
