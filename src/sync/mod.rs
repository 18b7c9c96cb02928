//! Hand-over between threads: the only place for atomics, queues and shared cells.
//!
//! | primitive | promise |
//! |---|---|
//! | [`wake::Wake`] | ends another thread's wait, or its next one |
//! | [`park`] | a thread sleeps until it is woken or its deadline comes; a wake that comes first is kept |
//! | [`mod@mailbox`] | bounded, many senders to one receiver; no accepted value stays behind a receiver that sleeps; at most one wake a drain |
//! | [`snapshot`] | one publisher's versions to many readers; a reader sees whole versions, never an older one than before, and never frees one |
//! | [`stamp`] | a moment that only moves forward |
//! | [`flag`] | raised once, for good; whoever sees it raised sees what came before |
//!
//! What holds for all of them:
//!
//! * Nobody waits for anybody. A call is repeated inside only where another thread has got ahead of it, with two exceptions:
//!   [`park::Parker::park`], whose business is waiting, and one moment inside
//!   [`ArrayQueue`](crossbeam::queue::ArrayQueue). Sender and receiver each claim a slot by one write and release it by a second; a
//!   receiver that has caught up with a sender between the two, or a sender with the receiver in a queue that is full but for that
//!   slot, spins for the second write and yields.
//! * Every capacity is an argument, and a full mailbox hands the value back.
//! * They are generic over the payload and know nothing of the rest of the program but [`crate::time`].
//! * The same source runs on the machine and under loom: `primitive` switches the atomics, `standin` models the lock-free
//!   structures that loom cannot see into. The scenarios are the package `loom-tests`, run by `cargo loom`.
//!
//! Every ordering in here carries a comment: its partner, what breaks without it, and which scenario shows that.

#![expect(
    clippy::disallowed_types,
    reason = "atomics live here; std's Mutex serves the loom stand-ins alone, which are no part of the program"
)]

pub mod flag;
pub mod mailbox;
pub mod park;
mod primitive;
pub mod snapshot;
pub mod stamp;
#[cfg(loom)]
mod standin;
pub mod wake;

pub use flag::Flag;
pub use mailbox::{Drained, Full, Receiver, Sender, mailbox};
pub use park::{Parker, Unparker, parker};
pub use snapshot::{Publisher, Source, Subscriber, publication};
pub use stamp::Stamp;
pub use wake::Wake;
