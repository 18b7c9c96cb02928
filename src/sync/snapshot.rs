//! One thread's versions of a value to many readers: a reader pays one relaxed look while nothing is new, and never frees.
//!
//! # The argument
//!
//! Parties: one publisher (the type is not `Clone` and `publish` takes `&mut`), any number of subscribers, each on one thread.
//! Between them an `ArcSwap`, and in each subscriber a `Cache`, the version it saw last.
//!
//! **A reader sees whole versions.** A version is complete before `publish` is called; the cell's store is Release and the load
//! that fetches it Acquire, so its contents come with it. The look that compares pointers is Relaxed: it decides whether to fetch,
//! and what it skips is a fetch of the version the subscriber holds.
//!
//! **A reader's versions never go back.** They are reads of one location, with one writer, by one thread: coherence. The compare
//! cannot be fooled by a version at a recycled address, since the subscriber holds the version it compares with, so that address
//! is taken.
//!
//! **Told of a version, a reader sees it.** If the publisher publishes and *then* sends a message (a reply), and the reader receives
//! it and *then* loads, the store happens before the look, and a look may not read anything older: Relaxed as it is. The other way
//! round it is a race, and readers answer from before what was acknowledged. So: publish, then reply; receive, then load.
//!
//! **A reader never frees a version.** Freeing a large table takes milliseconds, which belong to the publisher. `publish` moves the
//! version it replaces to a list, and `reclaim` drops those of which the list is the last holder:
//!
//! 1. *A subscriber fetches the version before it is replaced.* Its reference is counted, by itself or, if it is in the middle of
//!    the fetch, by the swap (arc-swap settles the debts of readers under way before the swap returns). The count is above 1.
//! 2. *A subscriber fetches after.* It cannot get the old version any more.
//!
//! So once the swap has returned, the count of a retired version only falls, and whoever lets go of it on a reader's thread leaves
//! the list's reference behind. `strong_count == 1` read by the publisher, relaxed as std reads it, therefore means "mine alone" and
//! stays true; the drop that follows acquires what the readers' last uses released.
//!
//! **The list is bounded.** A version that stays in it after a `reclaim` is pinned by a subscriber, or by somebody who has cloned
//! an `Arc` out of one, and a subscriber pins exactly one. Callers `reclaim` when they have time; when [`RETIRED_MAX`] versions
//! wait, `publish` does it for them.

use std::{fmt, sync::Arc};

use super::primitive::{CachedVersion, VersionedCell, versioned_cell};

/// Retired versions at which [`Publisher::publish`] reclaims by itself: a storm that changes whole tables keeps so many of each of
/// their leaves. `docs/performance` has what more and fewer cost. Under loom two, so that a scenario gets there.
pub const RETIRED_MAX: usize = if cfg!(loom) { 2 } else { 8 };

/// The publishing half; there is one.
pub struct Publisher<T> {
    cell: VersionedCell<T>,
    /// Versions that have been replaced and may still be read.
    retired: Vec<Arc<T>>,
}

/// Where subscribers come from. Clones are the same source.
pub struct Source<T> {
    cell: VersionedCell<T>,
}

/// One reader's view: the newest version, cached.
pub struct Subscriber<T> {
    cached: CachedVersion<T>,
}

/// Makes a publication whose first version is `initial`.
#[must_use]
pub fn publication<T>(initial: Arc<T>) -> (Publisher<T>, Source<T>) {
    let cell = versioned_cell(initial);
    let publisher = Publisher {
        cell: cell.clone(),
        retired: Vec::with_capacity(RETIRED_MAX),
    };
    (publisher, Source { cell })
}

impl<T> Publisher<T> {
    /// Makes `next` the current version. Whoever is told of it after this returns, and then loads, sees it.
    ///
    /// The replaced version is kept for [`Self::reclaim`], which costs what freeing it costs and can wait until the replies are
    /// out.
    pub fn publish(&mut self, next: Arc<T>) {
        // The cell's Release pairs with the Acquire of a subscriber's fetch; both are inside arc-swap. Scenario: snapshot, mutant
        // `stored-without-release` on the stand-in, which has them in the open.
        let replaced = self.cell.swap(next);
        // Kept, not dropped, or a reader that lets go last frees it. Scenario: snapshot, mutant `replaced-version-dropped`.
        self.retired.push(replaced);
        if self.retired.len() >= RETIRED_MAX {
            self.reclaim();
        }
    }

    /// How many replaced versions wait to be freed.
    #[must_use]
    pub fn retired_count(&self) -> usize {
        self.retired.len()
    }

    /// Frees the replaced versions that no reader holds any more.
    pub fn reclaim(&mut self) {
        // At 1 the list is the only holder and stays it: see the argument. Scenario: snapshot, mutant `freed-while-read`.
        self.retired
            .retain(|version| Arc::strong_count(version) > 1);
    }
}

impl<T> Source<T> {
    /// A subscriber that holds the current version.
    #[must_use]
    pub fn subscribe(&self) -> Subscriber<T> {
        Subscriber {
            cached: CachedVersion::new(self.cell.clone()),
        }
    }
}

impl<T> Subscriber<T> {
    /// The current version. Two loads may differ, so a unit of work takes one and keeps to it.
    ///
    /// The version is held until the next load that finds another: a thread that is about to wait for long loads first, or it pins
    /// an old one meanwhile.
    pub fn load(&mut self) -> &Arc<T> {
        self.cached.load()
    }
}

// Derived, it would ask for `T: Clone`.
impl<T> Clone for Source<T> {
    fn clone(&self) -> Self {
        Self {
            cell: self.cell.clone(),
        }
    }
}

impl<T> fmt::Debug for Publisher<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Publisher")
            .field("retired_count", &self.retired.len())
            .finish_non_exhaustive()
    }
}

impl<T> fmt::Debug for Source<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Source").finish_non_exhaustive()
    }
}

impl<T> fmt::Debug for Subscriber<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subscriber").finish_non_exhaustive()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_subscriber_sees_the_version_of_its_time_and_then_each_newer_one() {
        let (mut publisher, source) = publication(Arc::new(1));
        let mut early = source.subscribe();
        assert_eq!(**early.load(), 1);

        publisher.publish(Arc::new(2));

        let mut late = source.clone().subscribe();
        assert_eq!(**early.load(), 2);
        assert_eq!(**late.load(), 2);
    }

    #[test]
    fn a_load_of_an_unchanged_version_is_the_same_allocation() {
        let (_publisher, source) = publication(Arc::new(1));
        let mut subscriber = source.subscribe();

        let first = Arc::clone(subscriber.load());

        assert!(Arc::ptr_eq(&first, subscriber.load()));
    }

    #[test]
    fn a_replaced_version_is_freed_by_reclaim_once_nobody_reads_it() {
        let (mut publisher, source) = publication(Arc::new(1));
        let mut subscriber = source.subscribe();
        let first = Arc::downgrade(subscriber.load());

        publisher.publish(Arc::new(2));
        publisher.reclaim();
        assert_eq!(publisher.retired_count(), 1, "the subscriber holds it");

        subscriber.load();
        assert!(first.upgrade().is_some(), "a reader's load frees nothing");
        publisher.reclaim();
        assert_eq!(publisher.retired_count(), 0);
        assert!(first.upgrade().is_none());
    }

    #[test]
    fn versions_nobody_reads_do_not_pile_up() {
        let (mut publisher, source) = publication(Arc::new(0));
        let _sleeper = source.subscribe();

        for version in 1..10 * RETIRED_MAX {
            publisher.publish(Arc::new(version));
            assert!(publisher.retired_count() <= RETIRED_MAX);
        }

        publisher.reclaim();
        assert_eq!(publisher.retired_count(), 1, "the sleeper pins one version");
    }
}
