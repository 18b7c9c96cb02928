//! What a reader pays to be up to date and a publisher to publish, against the two cells one would otherwise reach for.
//!
//! Expected: `Subscriber::load` is one load and a comparison while nothing is new, a tenth of `ArcSwap::load` or of a read lock that is
//! free; with a second reader the lock costs several times as much. A publication is an allocation and a swap.
//! docs/performance has the figures of a machine that is named.

#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a thread that publishes beside the reader, and the lock to compare with"
)]

use std::{
    hint::black_box,
    sync::{Arc, RwLock},
    thread,
    time::Duration,
};

use arc_swap::ArcSwap;
use criterion::{Criterion, criterion_group, criterion_main};
use waypost::sync::{Flag, publication};

/// Stands for the head of a routing table: one cache line.
type Table = [u64; 8];

/// Runs `publish` on a thread of its own, as fast as it can or at intervals, while `measure` runs on this one.
fn beside(
    interval: Option<Duration>,
    mut publish: impl FnMut() + Send + 'static,
    measure: impl FnOnce(),
) {
    let stop = Flag::new();
    let stopped = stop.clone();
    let publisher = thread::spawn(move || {
        while !stopped.is_raised() {
            publish();
            if let Some(interval) = interval {
                thread::park_timeout(interval);
            }
        }
    });
    measure();
    stop.raise();
    publisher.join().expect("the publisher ends by the flag");
}

/// Nobody publishes.
fn idle(c: &mut Criterion) {
    let mut group = c.benchmark_group("snapshot_cell/load_idle");
    let table: Arc<Table> = Arc::default();
    group.bench_function("subscriber", |b| {
        let (_publisher, source) = publication(Arc::clone(&table));
        let mut subscriber = source.subscribe();
        b.iter(|| black_box(subscriber.load())[0]);
    });
    group.bench_function("arc_swap", |b| {
        let cell = ArcSwap::new(Arc::clone(&table));
        b.iter(|| black_box(cell.load())[0]);
    });
    group.bench_function("rw_lock", |b| {
        let cell = RwLock::new(Arc::clone(&table));
        b.iter(|| black_box(cell.read().expect("nobody panics"))[0]);
    });
    group.bench_function("rw_lock_clone", |b| {
        let cell = RwLock::new(Arc::clone(&table));
        b.iter(|| Arc::clone(&cell.read().expect("nobody panics")));
    });
    group.finish();
}

/// Somebody publishes, a thousand times a second or without pause.
fn beside_a_publisher(c: &mut Criterion) {
    for (pace, interval) in [
        ("1000_a_second", Some(Duration::from_millis(1))),
        ("without_pause", None),
    ] {
        let mut group = c.benchmark_group(format!("snapshot_cell/load_beside_a_publisher/{pace}"));
        let (mut publisher, source) = publication(Arc::<Table>::default());
        let mut subscriber = source.subscribe();
        beside(
            interval,
            move || publisher.publish(Arc::default()),
            || {
                group.bench_function("subscriber", |b| {
                    b.iter(|| black_box(subscriber.load())[0]);
                });
            },
        );
        let cell = Arc::new(ArcSwap::new(Arc::<Table>::default()));
        let stored = Arc::clone(&cell);
        beside(
            interval,
            move || stored.store(Arc::default()),
            || {
                group.bench_function("arc_swap", |b| b.iter(|| black_box(cell.load())[0]));
            },
        );
        let cell = Arc::new(RwLock::new(Arc::<Table>::default()));
        let written = Arc::clone(&cell);
        beside(
            interval,
            move || *written.write().expect("nobody panics") = Arc::default(),
            || {
                group.bench_function("rw_lock", |b| {
                    b.iter(|| black_box(cell.read().expect("nobody panics"))[0]);
                });
            },
        );
        group.finish();
    }
}

/// The publisher's side, the allocation of the version and the freeing of an earlier one included.
fn publish(c: &mut Criterion) {
    let mut group = c.benchmark_group("snapshot_cell/publish");
    group.bench_function("publisher", |b| {
        let (mut publisher, _source) = publication(Arc::<Table>::default());
        b.iter(|| publisher.publish(Arc::default()));
    });
    group.bench_function("publisher_reclaiming_each_time", |b| {
        let (mut publisher, source) = publication(Arc::<Table>::default());
        let _pinned = source.subscribe();
        b.iter(|| {
            publisher.publish(Arc::default());
            publisher.reclaim();
        });
    });
    group.bench_function("arc_swap", |b| {
        let cell = ArcSwap::new(Arc::<Table>::default());
        b.iter(|| cell.store(Arc::default()));
    });
    group.bench_function("rw_lock", |b| {
        let cell = RwLock::new(Arc::<Table>::default());
        b.iter(|| *cell.write().expect("nobody panics") = Arc::default());
    });
    group.finish();
}

criterion_group!(benches, idle, beside_a_publisher, publish);
criterion_main!(benches);
