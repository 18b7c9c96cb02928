//! One scenario, two engines.
//!
//! A scenario is a function that starts threads, lets them work on `waypost::sync` and asserts what must hold whatever the
//! order. Under `cfg(loom)` (`cargo loom`) [`model`] explores every order that the stand-ins of `sync` allow; otherwise it repeats
//! the body on the real machine, over the real arc-swap and crossbeam.

#![expect(
    clippy::disallowed_types,
    reason = "scenarios look at bare memory, which is what `sync` orders"
)]

#[cfg(all(feature = "model", not(loom)))]
compile_error!(
    "a model was asked for, but `--cfg loom` did not get through: RUSTFLAGS or a [target] rustflags has replaced it"
);

pub mod rig;

use std::{sync::atomic::AtomicUsize as UnseenAtomicUsize, thread as os_thread, time::Instant};

#[cfg(loom)]
pub use loom::{sync, thread};
#[cfg(not(loom))]
pub use std::{sync, thread};

use sync::atomic::{AtomicUsize, Ordering};
use waypost::sync::{Parker, Receiver, Wake};

/// How often a scenario is repeated on the real machine. A build without optimisation is there for its checks of overflow.
#[cfg(not(loom))]
const REPETITIONS: usize = if cfg!(any(feature = "slow-machine", debug_assertions)) {
    2_000
} else {
    20_000
};

/// Runs `scenario` in every order there is, or many times.
pub fn model(scenario: impl Fn() + Send + Sync + 'static) {
    run(None, scenario);
}

/// Runs `scenario` in every order with at most `preemptions` switches away from a thread that could go on, or many times.
///
/// For a scenario too large to be explored in full. Nearly every known ordering bug needs two.
pub fn model_bounded(preemptions: usize, scenario: impl Fn() + Send + Sync + 'static) {
    run(Some(preemptions), scenario);
}

#[cfg(loom)]
fn run(preemption_bound: Option<usize>, scenario: impl Fn() + Send + Sync + 'static) {
    let executions = std::sync::Arc::new(Tally::new());
    let counted = std::sync::Arc::clone(&executions);
    let mut builder = loom::model::Builder::new();
    // Set whatever the environment says: a scenario cut short looks like one that passed.
    builder.preemption_bound = preemption_bound;
    builder.max_permutations = None;
    builder.max_duration = None;
    report(&executions, || {
        builder.check(move || {
            counted.count();
            scenario();
        });
    });
}

#[cfg(not(loom))]
fn run(_preemption_bound: Option<usize>, scenario: impl Fn() + Send + Sync + 'static) {
    let executions = Tally::new();
    report(&executions, || {
        for _ in 0..REPETITIONS {
            executions.count();
            scenario();
        }
    });
}

/// Says how much has been explored; `-- --nocapture` shows it.
#[expect(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "a test tool that tells how long it took"
)]
fn report(executions: &Tally, explore: impl FnOnce()) {
    let started = Instant::now();
    explore();
    println!(
        "{}: {} executions in {:.2?}",
        os_thread::current().name().unwrap_or("scenario"),
        executions.read(),
        started.elapsed()
    );
}

/// Starts a thread of a scenario.
#[cfg_attr(
    not(loom),
    expect(
        clippy::disallowed_methods,
        reason = "a scenario's threads end within it"
    )
)]
pub fn spawn<R: Send + 'static>(
    body: impl FnOnce() -> R + Send + 'static,
) -> thread::JoinHandle<R> {
    thread::spawn(body)
}

/// Waits for a thread of a scenario. Not for a thread that parks: loom 0.7 fails an assertion of its own when an unpark meets
/// a thread that joins.
///
/// # Panics
///
/// If the thread has panicked.
pub fn join<R>(handle: thread::JoinHandle<R>) -> R {
    handle.join().expect("a thread of the scenario has failed")
}

/// Waits for one value.
pub fn receive_one<T, W: Wake>(receiver: &mut Receiver<T, W>, parker: &Parker) -> T {
    loop {
        let mut received = None;
        receiver.drain(1, |value| received = Some(value));
        if let Some(value) = received {
            return value;
        }
        parker.park(None);
    }
}

/// A word of ordinary memory, as far as ordering goes: every access is relaxed, so what a thread reads proves that somebody else
/// has ordered it. Loom further reports a word that is read where its creation is not ordered before.
#[derive(Debug)]
pub struct Word(AtomicUsize);

impl Word {
    /// A word that holds `value`.
    #[must_use]
    pub fn new(value: usize) -> Self {
        Self(AtomicUsize::new(value))
    }

    /// Some value that memory may hold for this thread.
    pub fn get(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }

    /// Writes `value`.
    pub fn set(&self, value: usize) {
        self.0.store(value, Ordering::Relaxed);
    }
}

/// Counts where loom does not look: for what a scenario wants to know afterwards and that must order nothing.
#[derive(Debug, Default)]
pub struct Tally(UnseenAtomicUsize);

impl Tally {
    /// A count of 0.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds 1.
    pub fn count(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    /// The count.
    pub fn read(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

/// A waker for a receiver that does not wait.
#[derive(Debug, Clone, Copy)]
pub struct Nobody;

impl Wake for Nobody {
    fn wake(&self) {}
}
