//! Which threads wait for which.

use rustix::{
    process::{getpriority_process, setpriority_process},
    thread::gettid,
};

/// How much nicer than the others the threads are that nobody's query waits for (`tools/compare`, cases 4 and 5).
const YIELDING_NICE: i32 = 10;

/// Lets this thread yield its processor to the workers: readers wait for them, and for nobody else. It still has a tenth of a
/// processor that is never idle.
pub(super) fn yield_to_workers() {
    let this_thread = Some(gettid());
    // Beyond the nicest there is, the system takes the nicest.
    let nicer = getpriority_process(this_thread)
        .and_then(|nice| setpriority_process(this_thread, nice + YIELDING_NICE));
    if let Err(error) = nicer {
        tracing::debug!("this thread keeps its priority: {error}");
    }
}
