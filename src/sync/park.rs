//! Sleep of a thread that waits for other threads only, until it is woken or its deadline comes.
//!
//! [`parker`] makes both halves before the thread exists: the [`Unparker`] can be handed out first, then the [`Parker`] moves
//! into its thread. `std::thread::park` alone cannot do that, since a handle to unpark needs the thread to be running.
//!
//! # The argument
//!
//! Parties: one parker, any number of unparkers. Between them `state`, one of
//!
//! ```text
//!   EMPTY ──park──▶ PARKED        the parker is in `thread::park`, or about to be, or on its way out of it
//!     ▲ └──wake──▶ NOTIFIED ◀──wake── PARKED (and this wake unparks the thread)
//!     └─── the end of every park ───┘
//! ```
//!
//! and `thread`, the handle, set once by the first park before `state` can become `PARKED`.
//!
//! Every change of `state` is a read-modify-write, so for a wake W and a park P exactly one order exists:
//!
//! 1. *W's swap precedes P's exchange.* The exchange fails on `NOTIFIED`, P does not sleep, and its closing swap reads W's value
//!    or a later wake's: what W's thread wrote before is visible. Had a plain store taken the place of the exchange, W's token
//!    would be overwritten and P sleep on; had a plain store taken the place of the closing swap, a wake that landed between the
//!    two would be erased unread, and its writes not seen.
//! 2. *W's swap falls between P's exchange and P's closing swap.* W reads `PARKED`, hence sees the handle, and unparks. std's
//!    own token makes that safe wherever between the two P's thread is.
//! 3. *W's swap follows P's closing swap.* W belongs to the next park: case 1 or 2 of that one.
//!
//! In case 2 P may have left already, by deadline or spuriously, before W's `unpark` arrives. Then std's token stays behind and
//! ends the next `thread::park` at once: a spurious return, which the contract allows, and one only.
//!
//! So no wake is lost, and a thread that is awake costs its wakers one swap and no system call.

use std::{cell::OnceCell, fmt, sync::Arc, time::Duration};

use super::{
    primitive::{AtomicU8, OnceLock, Ordering, Thread, ThreadId, current, park, park_timeout},
    wake::Wake,
};

/// Awake, and nobody has called.
const EMPTY: u8 = 0;
/// Asleep or about to be: whoever calls must unpark.
const PARKED: u8 = 1;
/// Somebody has called since the last park ended.
const NOTIFIED: u8 = 2;

#[derive(Debug)]
struct Shared {
    state: AtomicU8,
    /// The thread to unpark.
    thread: OnceLock<Thread>,
}

/// The sleeping half. It belongs to the thread that parks first.
pub struct Parker {
    shared: Arc<Shared>,
    /// The thread that `shared.thread` holds. Being a `OnceCell` it also keeps a parker from being shared.
    owner: OnceCell<ThreadId>,
}

/// The waking half, for any number of threads.
#[derive(Clone)]
pub struct Unparker {
    shared: Arc<Shared>,
}

/// Makes a parker and its unparker; neither needs the other's thread to be there yet.
#[must_use]
pub fn parker() -> (Parker, Unparker) {
    let shared = Arc::new(Shared {
        state: AtomicU8::new(EMPTY),
        thread: OnceLock::new(),
    });
    let unparker = Unparker {
        shared: Arc::clone(&shared),
    };
    (
        Parker {
            shared,
            owner: OnceCell::new(),
        },
        unparker,
    )
}

impl Parker {
    /// Sleeps until a wake or, if there is one, until `timeout` has passed; not at all if a wake has come since the last park.
    ///
    /// It may also return for no reason, as every such call may: the caller looks again at what it waits for. What a thread wrote
    /// before a wake is visible after the park that took that wake.
    ///
    /// # Panics
    ///
    /// If another thread has parked here before: wakes go to that one.
    pub fn park(&self, timeout: Option<Duration>) {
        self.bind();
        // Release: pairs with the Acquire half of the swap in `wake`. Without it a waker can read PARKED and not the handle that
        // `bind` has set, and has nobody to unpark. Scenario: park, mutant `park-announced-without-release`.
        // Relaxed on failure: the closing swap reads the token and does the acquiring.
        // An exchange, not a store, since a store would overwrite NOTIFIED: case 1 above, mutant `park-overwrites-the-token`.
        let announced =
            self.shared
                .state
                .compare_exchange(EMPTY, PARKED, Ordering::Release, Ordering::Relaxed);
        if announced.is_ok() {
            match timeout {
                Some(timeout) => park_timeout(timeout),
                None => park(),
            }
        }
        // Acquire: pairs with the Release half of the swap in `wake`. Without it the caller can miss what it was woken for and
        // sleep again. Scenario: park, mutant `token-taken-without-acquire`.
        // A swap, not a store, since a store reads nothing and would erase a second wake's token unread: case 1 above, mutant
        // `token-erased-by-a-store`.
        self.shared.state.swap(EMPTY, Ordering::Acquire);
    }

    /// Makes the calling thread the one that wakes go to.
    fn bind(&self) {
        let here = current();
        let id = here.id();
        let owner = self.owner.get_or_init(|| {
            self.shared
                .thread
                .set(here)
                .expect("a parker sets its handle once");
            id
        });
        assert!(*owner == id, "a parker parks on one thread only");
    }
}

impl Wake for Unparker {
    fn wake(&self) {
        // Release: pairs with the Acquire of the swap that closes `park`. Without it the woken thread may not see what it is woken
        // for. Scenario: park, mutant `wake-without-release`.
        // Acquire: pairs with the Release of the exchange in `park`. Without it PARKED can be seen and the handle not. Scenario:
        // park, mutant `wake-without-acquire`.
        if self.shared.state.swap(NOTIFIED, Ordering::AcqRel) == PARKED {
            self.shared
                .thread
                .get()
                .expect("the handle is set before the state says PARKED")
                .unpark();
        }
    }
}

impl fmt::Debug for Parker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Parker")
            .field("owner", &self.owner.get())
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Unparker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Unparker").finish_non_exhaustive()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::{sync::mpsc, thread};

    use super::*;

    #[test]
    fn a_wake_that_comes_first_is_kept() {
        let (parker, unparker) = parker();

        unparker.wake();

        parker.park(None);
    }

    #[test]
    fn wakes_before_a_park_merge_into_one_token() {
        let (parker, unparker) = parker();

        unparker.wake();
        unparker.wake();

        parker.park(None);
        assert_eq!(parker.shared.state.load(Ordering::Relaxed), EMPTY);
    }

    #[test]
    fn a_park_with_a_timeout_ends_without_a_wake() {
        let (parker, _unparker) = parker();

        parker.park(Some(Duration::from_millis(1)));

        assert_eq!(parker.shared.state.load(Ordering::Relaxed), EMPTY);
    }

    #[test]
    fn the_unparker_works_before_the_thread_that_parks_is_there() {
        let (parker, unparker) = parker();
        let (ended, has_ended) = mpsc::channel();
        unparker.wake();

        let sleeper = thread::Builder::new()
            .spawn(move || {
                parker.park(None);
                ended.send(()).expect("the test waits");
                loop {
                    parker.park(None);
                    ended.send(()).expect("the test waits");
                }
            })
            .unwrap();

        has_ended.recv().expect("the kept wake ends the first park");
        unparker.wake();
        has_ended.recv().expect("a wake ends the second park");
        drop(has_ended);
        unparker.wake();
        assert!(sleeper.join().is_err(), "it ends by its failing send");
    }

    #[test]
    fn a_parker_refuses_a_second_thread() {
        let (parker, unparker) = parker();
        unparker.wake();
        parker.park(None);
        unparker.wake();

        let second = thread::Builder::new()
            .spawn(move || parker.park(None))
            .unwrap();

        assert!(second.join().is_err());
    }
}
