//! Which threads wait for which.

/// How nice the threads are that nobody's query waits for (`tools/compare`, cases 4 to 6).
const YIELDING_NICE: i32 = 10;

/// Lets this thread yield its processor to the workers: readers wait for them, and for nobody else. It still has a tenth of a
/// processor that is never idle. Threads that it starts inherit this, which is how threads of libraries get it.
pub fn yield_to_workers() {
    let this_thread = rustix::thread::gettid();
    if let Err(error) = rustix::process::setpriority_process(Some(this_thread), YIELDING_NICE) {
        tracing::debug!("this thread keeps its priority: {error}");
    }
}
