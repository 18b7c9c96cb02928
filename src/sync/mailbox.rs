//! A bounded queue from many threads to one, with a wake-up that is paid once however many send.
//!
//! # The argument
//!
//! Parties: senders S, each pushing values and then calling `wake`; one receiver R, which waits for its waker and then drains.
//! Between them the queue, and `woken`: "a wake is on its way to R, or R is awake and has yet to look".
//!
//! ```text
//!   S: push(value)                      R: (woken, or for any other reason awake)
//!      if !woken.swap(true, Release)       woken.swap(false, Acquire)
//!          waker.wake()                    pop until empty
//! ```
//!
//! Promise: **no value whose push succeeded and whose sender has called `wake` stays in the queue while R waits for its waker.**
//!
//! Both sides read-modify-write the same flag, so for a value's `wake` and the clearing that opens a drain one comes first:
//!
//! 1. *The sender's swap comes first.* The clearing reads the flag from it, or from a later sender's swap (a chain of
//!    read-modify-writes hands the first one's Release on), and acquires. So the push happens before the pops, and a pop finds the
//!    value: a pop says "empty" only about pushes it is not ordered after.
//! 2. *The clearing comes first.* The swap finds what the clearing left, `false`, and S calls the waker, or it finds `true` from
//!    another sender S' whose swap lies between the two. Then S' has called, or is about to call, the waker, and the wake ends a
//!    wait *after* this drain began. The clearing of that next drain comes after the sender's swap: case 1.
//!
//! A plain store in place of the clearing reads nothing, so it acquires nothing, and case 1 breaks: the flag is cleared, the value
//! is not seen, S goes away believing that R knows. No test on x86 shows it; loom does.
//!
//! *A drain that stops at its bound* leaves values whose wakes the clearing has consumed. It therefore does what a sender does:
//! sets the flag and wakes its own thread. It looks at the queue first, to spare itself a wake for nothing; that look is a pop
//! that takes nothing, and cases 1 and 2 hold for it word by word.
//!
//! *A push into a full queue* hands the value back and changes nothing. Every value that fills the queue has a sender that wakes,
//! or is about to, so R will make room.
//!
//! *A sender that pushes and does not wake* strands its values until somebody wakes. The two are separate calls so that a thread
//! can push many values in a turn and wake once at its end.

use std::{fmt, sync::Arc};

use crossbeam::utils::CachePadded;

use super::{
    primitive::{ArrayQueue, AtomicBool, Ordering},
    wake::Wake,
};

struct Shared<T, W> {
    queue: ArrayQueue<T>,
    /// A wake is on its way to the receiver, or the receiver is awake and has yet to look. On a line of its own: senders write it
    /// with every wake, and the waker beside it is read only.
    woken: CachePadded<AtomicBool>,
    waker: W,
}

/// The sending half, for any number of threads.
pub struct Sender<T, W> {
    shared: Arc<Shared<T, W>>,
}

/// The receiving half, for the thread that the waker wakes.
pub struct Receiver<T, W> {
    shared: Arc<Shared<T, W>>,
}

/// The mailbox was full; here is the value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Full<T>(pub T);

/// What a drain did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Drained {
    /// How many values it handed over.
    pub count: usize,
    /// It stopped at its bound with values left, and has woken its own thread for them.
    pub more: bool,
}

/// Makes a mailbox of `capacity` values, at least 1, whose receiver waits for `waker`.
///
/// # Panics
///
/// If `capacity` is 0.
#[must_use]
pub fn mailbox<T, W: Wake>(capacity: usize, waker: W) -> (Sender<T, W>, Receiver<T, W>) {
    let shared = Arc::new(Shared {
        queue: ArrayQueue::new(capacity),
        woken: CachePadded::new(AtomicBool::new(false)),
        waker,
    });
    let sender = Sender {
        shared: Arc::clone(&shared),
    };
    (sender, Receiver { shared })
}

impl<T, W: Wake> Shared<T, W> {
    /// Wakes the receiver, unless somebody has since its last drain began.
    fn wake(&self) {
        // Release: pairs with the Acquire of the clearing in `drain`. Without it a drain can consume this wake and miss the value.
        // Scenario: mailbox, mutant `wake-without-release`.
        // Relaxed as to reading: a `true` found here is somebody else's promise to wake, and nothing of theirs is looked at.
        if !self.woken.swap(true, Ordering::Release) {
            self.waker.wake();
        }
    }
}

impl<T, W: Wake> Sender<T, W> {
    /// Puts `value` into the mailbox without waking the receiver; a [`Self::wake`] must follow.
    ///
    /// # Errors
    ///
    /// [`Full`] with the value.
    pub fn push(&self, value: T) -> Result<(), Full<T>> {
        self.shared.queue.push(value).map_err(Full)
    }

    /// Wakes the receiver for what has been pushed, unless a wake since its last drain began covers it.
    pub fn wake(&self) {
        self.shared.wake();
    }

    /// Pushes and wakes.
    ///
    /// # Errors
    ///
    /// [`Full`] with the value.
    pub fn send(&self, value: T) -> Result<(), Full<T>> {
        self.push(value)?;
        self.wake();
        Ok(())
    }
}

impl<T, W: Wake> Receiver<T, W> {
    /// Hands at most `max` values, at least 1, to `f`, in the order in which each sender pushed them.
    ///
    /// If it stops at `max` with values left it wakes its own thread, so the caller may wait at once in any case.
    ///
    /// # Panics
    ///
    /// If `max` is 0: such a drain would wake itself for ever.
    pub fn drain(&mut self, max: usize, mut f: impl FnMut(T)) -> Drained {
        assert!(max > 0, "a drain takes at least one value");
        // Acquire: pairs with the Release of the swap in `Shared::wake`. Without it the wake is consumed and the value it was for
        // not seen. Scenario: mailbox, mutant `clearing-without-acquire`.
        // A swap, not a store, since a store reads nothing and so acquires nothing: mutant `clearing-by-a-store`.
        // Before the pops, not after, or the wake for a value that comes in between is consumed unseen: mutant
        // `clearing-after-the-pops`.
        self.shared.woken.swap(false, Ordering::Acquire);
        let mut count = 0;
        while count < max {
            let Some(value) = self.shared.queue.pop() else {
                return Drained { count, more: false };
            };
            count += 1;
            f(value);
        }
        let more = !self.shared.queue.is_empty();
        if more {
            // The wakes for what is left have been consumed above. Scenario: mailbox, mutant `no-self-wake-at-the-bound`.
            self.shared.wake();
        }
        Drained { count, more }
    }
}

// Derived, it would ask for `W: Clone`.
impl<T, W> Clone for Sender<T, W> {
    fn clone(&self) -> Self {
        Self {
            shared: Arc::clone(&self.shared),
        }
    }
}

impl<T, W> fmt::Debug for Sender<T, W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sender").finish_non_exhaustive()
    }
}

impl<T, W> fmt::Debug for Receiver<T, W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Receiver").finish_non_exhaustive()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::{cell::Cell, rc::Rc};

    use super::*;

    /// Counts its wakes.
    #[derive(Clone, Default)]
    struct Bell(Rc<Cell<usize>>);

    impl Wake for Bell {
        fn wake(&self) {
            self.0.set(self.0.get() + 1);
        }
    }

    fn drain_all(receiver: &mut Receiver<u32, Bell>) -> Vec<u32> {
        let mut values = Vec::new();
        let drained = receiver.drain(usize::MAX, |value| values.push(value));
        assert_eq!(drained.count, values.len());
        assert!(!drained.more);
        values
    }

    #[test]
    fn values_come_out_in_the_order_in_which_they_went_in() {
        let (sender, mut receiver) = mailbox(4, Bell::default());

        for value in [1, 2, 3] {
            sender.send(value).unwrap();
        }

        assert_eq!(drain_all(&mut receiver), [1, 2, 3]);
        assert_eq!(drain_all(&mut receiver), Vec::<u32>::new());
    }

    #[test]
    fn a_full_mailbox_hands_the_value_back_and_takes_more_after_a_drain() {
        let (sender, mut receiver) = mailbox(1, Bell::default());
        sender.send(1).unwrap();

        assert_eq!(sender.send(2), Err(Full(2)));

        assert_eq!(drain_all(&mut receiver), [1]);
        sender.send(3).unwrap();
        assert_eq!(drain_all(&mut receiver), [3]);
    }

    #[test]
    fn a_burst_from_several_senders_wakes_once_a_drain() {
        let bell = Bell::default();
        let (sender, mut receiver) = mailbox(8, bell.clone());
        let other = sender.clone();

        sender.send(1).unwrap();
        other.send(2).unwrap();
        sender.send(3).unwrap();
        assert_eq!(bell.0.get(), 1);

        drain_all(&mut receiver);
        other.send(4).unwrap();
        assert_eq!(bell.0.get(), 2);
    }

    #[test]
    fn a_push_alone_wakes_nobody() {
        let bell = Bell::default();
        let (sender, _receiver) = mailbox(2, bell.clone());

        sender.push(1).unwrap();
        sender.push(2).unwrap();
        assert_eq!(bell.0.get(), 0);

        sender.wake();
        assert_eq!(bell.0.get(), 1);
    }

    #[test]
    fn a_refused_value_wakes_nobody() {
        let bell = Bell::default();
        let (sender, _receiver) = mailbox(1, bell.clone());
        sender.push(1).unwrap();

        assert_eq!(sender.send(2), Err(Full(2)));

        assert_eq!(bell.0.get(), 0);
    }

    #[test]
    fn a_drain_that_stops_at_its_bound_wakes_itself() {
        let bell = Bell::default();
        let (sender, mut receiver) = mailbox(4, bell.clone());
        for value in [1, 2, 3] {
            sender.send(value).unwrap();
        }

        let drained = receiver.drain(2, |_| {});

        assert_eq!(
            drained,
            Drained {
                count: 2,
                more: true
            }
        );
        assert_eq!(bell.0.get(), 2);
        assert_eq!(drain_all(&mut receiver), [3]);
    }

    #[test]
    fn a_drain_that_stops_at_its_bound_with_nothing_left_wakes_nobody() {
        let bell = Bell::default();
        let (sender, mut receiver) = mailbox(4, bell.clone());
        sender.send(1).unwrap();

        let drained = receiver.drain(1, |_| {});

        assert_eq!(
            drained,
            Drained {
                count: 1,
                more: false
            }
        );
        assert_eq!(bell.0.get(), 1);
    }

    #[test]
    fn what_a_drain_sends_to_its_own_mailbox_is_drained_or_wakes() {
        let bell = Bell::default();
        let (sender, mut receiver) = mailbox(4, bell.clone());
        sender.send(1).unwrap();

        let drained = receiver.drain(1, |value| sender.send(value + 1).unwrap());

        assert!(drained.more);
        assert_eq!(bell.0.get(), 2, "the sender's wake covers the drain's");
        assert_eq!(drain_all(&mut receiver), [2]);
    }
}
