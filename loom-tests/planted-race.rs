//! A data race, to see that `loom-tests/tsan` reports one. It has no part in any build but that script's, and is the one place
//! with `unsafe`: safe code cannot race.

use std::{cell::UnsafeCell, sync::Arc, thread};

struct Shared(UnsafeCell<u64>);

// SAFETY: none; that is what is to be reported.
unsafe impl Sync for Shared {}

#[test]
fn two_threads_write_what_nothing_orders() {
    let shared = Arc::new(Shared(UnsafeCell::new(0)));
    let other = Arc::clone(&shared);
    let write = |shared: &Shared| {
        for _ in 0..1000 {
            // SAFETY: as above.
            unsafe { *shared.0.get() += 1 };
        }
    };
    let thread = thread::spawn(move || write(&other));
    write(&shared);
    thread.join().unwrap();
}
