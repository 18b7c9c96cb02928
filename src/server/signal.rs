//! SIGTERM and SIGINT → an orderly stop; a second one → no more patience.

use std::{io, thread};

use signal_hook::{
    consts::{SIGINT, SIGTERM},
    iterator::Signals,
};

/// Catches the signals that ask for a stop, from its creation on.
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
    /// Starts to catch them.
    ///
    /// # Errors
    ///
    /// When the system refuses.
    pub fn catch() -> io::Result<Self> {
        Signals::new([SIGTERM, SIGINT]).map(Self)
    }

    /// Waits for the first signal, then runs `stop`; returns when that is done, or at the second signal.
    ///
    /// # Errors
    ///
    /// When there is no thread to stop on.
    pub fn run_until_stopped(mut self, stop: impl FnOnce() + Send + 'static) -> io::Result<Ended> {
        let done = self.0.handle();
        let mut stop = Some(move || {
            stop();
            done.close();
        });
        for _ in self.0.forever() {
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
