//! Models of the three lock-free structures that loom cannot see into, for `cfg(loom)` only.
//!
//! # Why they exist
//!
//! Loom knows the orderings of its own types. Of `ArcSwap`, `ArrayQueue` and `OnceLock` it would see none, so a model that used
//! them as they are would check nothing, or report races that are not there. Everything above these leaves is the same source in
//! both builds.
//!
//! # What makes a stand-in honest
//!
//! **It may be weaker than the original, never stronger.** What holds over a weaker structure holds over the real one; a stronger
//! one hides bugs. Therefore *values* sit behind `std` mutexes, which loom does not see and which give no edge in the model, and
//! *edges* come from loom atomics only, no stronger than the original's. A `loom::sync::Mutex` would be the tempting shortcut: it
//! puts all accesses into one order, and with it a mailbox whose receiver clears its flag with a relaxed store passes.
//!
//! No loom operation runs while such a mutex is held: loom may switch threads there, and the next one would wait for ever.
//!
//! # `ArrayQueue`
//!
//! The original is Vyukov's queue: a tail claimed by compare-exchange, and in each slot a stamp that says whether it is free or
//! filled, stored with Release after the value was moved and loaded with Acquire before it is. The stand-in has the same tail and
//! stamps, and differs where the original spins:
//!
//! | situation | original | stand-in | so it is |
//! |---|---|---|---|
//! | pop meets a slot that is claimed and not yet filled | spins until it is | "empty" | weaker: misses a value |
//! | pop meets a stamp that is out of date | compares with the tail after a SeqCst fence | "empty" | weaker: misses a value |
//! | push meets a slot whose pop it cannot see | compares with the head after a SeqCst fence, spins if that has moved | "full" | weaker: refuses a value |
//! | tail | SeqCst compare-exchange, loom's AcqRel | AcqRel | the same |
//!
//! Left out is the original's first load of the tail: the position to try comes from outside the model. A load that reads an old tail
//! leads to a failed exchange or a stamp that does not match, and another attempt; there is nothing else it can lead to.
//!
//! It serves one receiver, as the mailbox does: the head is its own.
//!
//! # `VersionedCell` and `Cache`
//!
//! The original is a pointer swapped with SeqCst; a cache compares it relaxed with the one it holds and only if they differ fetches,
//! by a load that is at least Acquire. The stand-in numbers the versions: the number is the pointer, stored with Release, compared
//! relaxed, loaded with Acquire.
//!
//! A fetch may read an old number. The original then either has the old version, its reference counted before the swap that
//! replaced it returns, or finds that the pointer has moved and takes the newer one. In the stand-in old versions are weak
//! references: as long as the publisher has not freed the version it can still be had, and else the fetch takes the newest. That
//! includes every outcome of the original.
//!
//! # `OnceLock`
//!
//! Set with Release, read with Acquire; an Acquire that does not read the Release says "not set". As the original.

use std::{
    collections::VecDeque,
    fmt,
    sync::{Arc, Mutex, MutexGuard, OnceLock as StdOnceLock, PoisonError, Weak},
};

use loom::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// A value where loom does not look.
#[derive(Debug)]
struct Unseen<T>(Mutex<T>);

impl<T> Unseen<T> {
    fn new(value: T) -> Self {
        Self(Mutex::new(value))
    }

    /// No loom operation may run while the guard lives.
    fn lock(&self) -> MutexGuard<'_, T> {
        // A scenario that fails has panicked; what it reports is that, not the poison.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Stands for `crossbeam::queue::ArrayQueue`, with one receiver.
pub(super) struct ArrayQueue<T> {
    /// The next position to fill. Positions count up without end; the slot of one is its remainder by the capacity.
    tail: AtomicUsize,
    /// The tail as of the last claim, for the first attempt of a push.
    tail_hint: Unseen<usize>,
    /// The next position to take.
    head: Unseen<usize>,
    slots: Vec<Slot<T>>,
}

struct Slot<T> {
    /// `free_at(position)` or `filled_at(position)`.
    stamp: AtomicUsize,
    value: Unseen<Option<T>>,
}

/// The stamp of a slot that awaits the value of `position`.
const fn free_at(position: usize) -> usize {
    2 * position
}

/// The stamp of a slot that holds the value of `position`.
const fn filled_at(position: usize) -> usize {
    2 * position + 1
}

impl<T> ArrayQueue<T> {
    pub(super) fn new(capacity: usize) -> Self {
        assert!(capacity > 0, "capacity must be non-zero");
        let slot = |position| Slot {
            stamp: AtomicUsize::new(free_at(position)),
            value: Unseen::new(None),
        };
        Self {
            tail: AtomicUsize::new(0),
            tail_hint: Unseen::new(0),
            head: Unseen::new(0),
            slots: (0..capacity).map(slot).collect(),
        }
    }

    pub(super) fn push(&self, value: T) -> Result<(), T> {
        let mut position = *self.tail_hint.lock();
        loop {
            let slot = &self.slots[position % self.slots.len()];
            // Acquire, as in the original: pairs with the Release in `pop`, so that a slot is refilled after it was emptied.
            let stamp = slot.stamp.load(Ordering::Acquire);
            if stamp < free_at(position) {
                return Err(value);
            }
            // AcqRel, as the original's SeqCst counts in loom.
            let claimed = self.tail.compare_exchange(
                position,
                position + 1,
                Ordering::AcqRel,
                Ordering::Relaxed,
            );
            match claimed {
                Ok(_) => {
                    *self.tail_hint.lock() = position + 1;
                    *slot.value.lock() = Some(value);
                    // Release, as in the original: pairs with the Acquire in `pop`.
                    slot.stamp.store(filled_at(position), Ordering::Release);
                    return Ok(());
                }
                Err(tail) => position = tail,
            }
        }
    }

    pub(super) fn pop(&self) -> Option<T> {
        let position = *self.head.lock();
        let slot = &self.slots[position % self.slots.len()];
        // Acquire, as in the original: pairs with the Release in `push`.
        if slot.stamp.load(Ordering::Acquire) != filled_at(position) {
            return None;
        }
        let value = slot.value.lock().take();
        *self.head.lock() = position + 1;
        // Release, as in the original: pairs with the Acquire in `push`.
        slot.stamp
            .store(free_at(position + self.slots.len()), Ordering::Release);
        Some(value.expect("a slot stamped as filled has a value"))
    }

    pub(super) fn is_empty(&self) -> bool {
        let position = *self.head.lock();
        let slot = &self.slots[position % self.slots.len()];
        // Relaxed, weaker than the original's two SeqCst loads.
        slot.stamp.load(Ordering::Relaxed) != filled_at(position)
    }
}

/// Stands for `Arc<arc_swap::ArcSwap<T>>`.
pub(super) struct VersionedCell<T>(Arc<Versions<T>>);

struct Versions<T> {
    /// The number of the current version.
    current: AtomicUsize,
    values: Unseen<Values<T>>,
}

struct Values<T> {
    newest: Arc<T>,
    /// All others, by number.
    replaced: VecDeque<Weak<T>>,
}

/// A cell that holds `initial`.
pub(super) fn versioned_cell<T>(initial: Arc<T>) -> VersionedCell<T> {
    VersionedCell(Arc::new(Versions {
        current: AtomicUsize::new(0),
        values: Unseen::new(Values {
            newest: initial,
            replaced: VecDeque::new(),
        }),
    }))
}

impl<T> VersionedCell<T> {
    /// Makes `next` the current version and returns the one it replaces. For one thread at a time.
    pub(super) fn swap(&self, next: Arc<T>) -> Arc<T> {
        let number = self.0.values.lock().replaced.len() + 1;
        // Release, weaker than the original's SeqCst: pairs with the Acquire in `fetch`. No loom operation follows until the values
        // are exchanged too, so the two are one step of the model.
        self.0.current.store(number, Ordering::Release);
        let mut values = self.0.values.lock();
        let replaced = std::mem::replace(&mut values.newest, next);
        values.replaced.push_back(Arc::downgrade(&replaced));
        replaced
    }

    /// A current version and its number.
    fn fetch(&self) -> (usize, Arc<T>) {
        // Acquire, as the weakest of the original's: pairs with the Release in `swap`.
        let number = self.0.current.load(Ordering::Acquire);
        if let Some(version) = self.0.values.lock().version(number) {
            return (number, version);
        }
        // It has been replaced and freed, as the original would have found by its second look. The newest always exists.
        let number = self.0.current.fetch_add(0, Ordering::Acquire);
        let version = self.0.values.lock().version(number);
        (number, version.expect("the newest version is held"))
    }
}

impl<T> Values<T> {
    fn version(&self, number: usize) -> Option<Arc<T>> {
        self.replaced.get(number).map_or_else(
            || Some(Arc::clone(&self.newest)),
            |replaced| replaced.upgrade(),
        )
    }
}

impl<T> Clone for VersionedCell<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

/// Stands for `arc_swap::Cache`.
pub(super) struct Cache<T> {
    cell: VersionedCell<T>,
    number: usize,
    version: Arc<T>,
}

impl<T> Cache<T> {
    pub(super) fn new(cell: VersionedCell<T>) -> Self {
        let (number, version) = cell.fetch();
        Self {
            cell,
            number,
            version,
        }
    }

    pub(super) fn load(&mut self) -> &Arc<T> {
        // Relaxed, as in the original: it only asks whether there is something to fetch.
        if self.cell.0.current.load(Ordering::Relaxed) != self.number {
            (self.number, self.version) = self.cell.fetch();
        }
        &self.version
    }
}

/// Stands for `std::sync::OnceLock`, set by one thread.
pub(super) struct OnceLock<T> {
    is_set: AtomicBool,
    value: StdOnceLock<T>,
}

impl<T> OnceLock<T> {
    pub(super) fn new() -> Self {
        Self {
            is_set: AtomicBool::new(false),
            value: StdOnceLock::new(),
        }
    }

    pub(super) fn set(&self, value: T) -> Result<(), T> {
        self.value.set(value)?;
        // Release, as in the original: pairs with the Acquire in `get`.
        self.is_set.store(true, Ordering::Release);
        Ok(())
    }

    pub(super) fn get(&self) -> Option<&T> {
        // Acquire, as in the original: pairs with the Release in `set`.
        if self.is_set.load(Ordering::Acquire) {
            self.value.get()
        } else {
            None
        }
    }
}

impl<T> fmt::Debug for OnceLock<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OnceLock").finish_non_exhaustive()
    }
}
