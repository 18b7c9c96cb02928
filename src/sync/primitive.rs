//! The switch between the real machine and the model: everything in `sync` takes its atomics, its parking and its two
//! lock-free leaves from here, so that one source is both what runs and what loom explores.
//!
//! The switch is plain `cfg(loom)`. `cfg(test)` would not do: it is not set for a dependency, so the scenarios, which are a
//! package of their own, would silently check nothing.

#[cfg(not(loom))]
mod real {
    pub(in crate::sync) use std::{
        sync::{
            OnceLock,
            atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering},
        },
        thread::{Thread, ThreadId, current, park, park_timeout},
    };

    pub(in crate::sync) use crossbeam::queue::ArrayQueue;

    /// The versioned cell, shared by the publisher and everybody who reads it.
    pub(in crate::sync) type VersionedCell<T> = std::sync::Arc<arc_swap::ArcSwap<T>>;

    /// One reader's memory of the version it saw last.
    pub(in crate::sync) type CachedVersion<T> =
        arc_swap::Cache<VersionedCell<T>, std::sync::Arc<T>>;

    /// A cell that holds `initial`.
    pub(in crate::sync) fn versioned_cell<T>(initial: std::sync::Arc<T>) -> VersionedCell<T> {
        std::sync::Arc::new(arc_swap::ArcSwap::new(initial))
    }
}

#[cfg(loom)]
mod model {
    use std::time::Duration;

    pub(in crate::sync) use loom::{
        sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering},
        thread::{Thread, ThreadId, current, park},
    };

    pub(in crate::sync) use crate::sync::standin::{
        ArrayQueue, Cache as CachedVersion, OnceLock, VersionedCell, versioned_cell,
    };

    /// Loom has no clock, and a timeout may pass at any moment: here it passes at once. The moments explored are those at which a
    /// thread runs again. It does not yield, since loom would then run all others first and leave those moments out; a scenario
    /// that loops on timeouts yields by itself, or loom explores it for ever.
    pub(in crate::sync) fn park_timeout(_timeout: Duration) {}
}

#[cfg(loom)]
pub(super) use model::*;
#[cfg(not(loom))]
pub(super) use real::*;
