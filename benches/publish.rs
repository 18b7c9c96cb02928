//! What a publication costs: it should follow what changed and not what exists. And what a route costs to read.
//!
//! Each case is one registration, applied, published, and the version before freed, against tables of 1 000 to 1 000 000 pairs of a
//! topic and a broker that holds it. A broker holds up to 2 000 topics.
//!
//! Expected: a topic's change copies a path of its table, a broker's address the one piece that all its topics' answers share, so
//! both cost the same at every size but for cache misses; with its topics listed, each costs one look-up more for each of them.

#[expect(dead_code, reason = "here no requests are processed")]
mod filled;

use std::{hint::black_box, ops::Range, time::Duration};

use criterion::{
    BatchSize, BenchmarkGroup, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main,
    measurement::WallTime,
};
use filled::{BROKERS_PER_TOPIC, Filled, change, population, registration, topic_name};
use waypost::{
    protocol::fastjson::Dialect,
    registry::{KvTable, command::RegisterBroker, query::RouteView},
    time::Timestamp,
};

/// Pairs of a topic and a broker.
const SIZES: [usize; 4] = [1_000, 10_000, 100_000, 1_000_000];
const NOW: Timestamp = Timestamp::from_millis(1);
/// The broker that changes.
const BROKER: usize = 0;

/// One case of a group: registrations that follow each other, their making not measured.
fn case(
    group: &mut BenchmarkGroup<'_, WallTime>,
    name: &str,
    filled: &mut Filled,
    size: usize,
    registration: &mut RegisterBroker,
    mut next: impl FnMut(&mut RegisterBroker),
) {
    group.bench_function(
        BenchmarkId::new(name, format!("{size}_entries")),
        |bencher| {
            bencher.iter_batched(
                || {
                    next(registration);
                    Box::new(registration.clone())
                },
                |registration| filled.register(registration, NOW),
                BatchSize::LargeInput,
            );
        },
    );
}

/// Gives a broker its other address.
fn move_house(registration: &mut RegisterBroker) {
    const ADDRS: [&str; 2] = ["10.9.9.1:10911", "10.9.9.2:10911"];
    let other = usize::from(*registration.broker_addr == *ADDRS[0]);
    registration.broker_addr = ADDRS[other].into();
}

/// One broker registers, at each size.
fn one_broker(c: &mut Criterion) {
    let mut group = c.benchmark_group("publish");
    group
        .sample_size(20)
        .warm_up_time(Duration::from_millis(500))
        .measurement_time(Duration::from_secs(1));
    for size in SIZES {
        let mut filled = Filled::new(KvTable::default(), population(size));
        let topics = population(size).topics_of(BROKER);
        // Two, since a registration of one topic is refused to a broker that has not registered yet.
        let mut slice = registration(BROKER, 0..2);
        case(
            &mut group,
            "one_topic",
            &mut filled,
            size,
            &mut slice,
            |next| change(next, 0..1),
        );
        // Of a broker that lists nothing, so that its address alone is measured.
        let mut bare = registration(BROKER, 0..0);
        case(
            &mut group,
            "address",
            &mut filled,
            size,
            &mut bare,
            move_house,
        );
        let mut whole = registration(BROKER, topics.clone());
        for (name, next) in whole_registrations(topics) {
            case(&mut group, name, &mut filled, size, &mut whole, next);
        }
    }
    group.finish();
}

type Next = Box<dyn FnMut(&mut RegisterBroker)>;

/// What a broker may say with all its topics listed.
fn whole_registrations(topics: Range<usize>) -> [(&'static str, Next); 4] {
    let count = topics.len();
    [
        ("all_topics_unchanged", Box::new(|_| ())),
        (
            "all_topics_listed_one_changed",
            Box::new(|next| change(next, 0..1)),
        ),
        (
            "all_topics_changed",
            Box::new(move |next| change(next, 0..count)),
        ),
        (
            "all_topics_listed_address_changed",
            Box::new(|next| {
                // As at an address that is new: whatever is listed counts.
                change(next, 0..0);
                move_house(next);
            }),
        ),
    ]
}

fn route(c: &mut Criterion) {
    let mut group = c.benchmark_group("route");
    for size in [1_000, 100_000] {
        let filled = Filled::new(KvTable::default(), population(size));
        let mut snapshots = filled.subscribe();
        let snapshot = snapshots.load();
        let names: Vec<String> = (0..population(size).topics).map(topic_name).collect();
        let view = RouteView {
            dialect: Dialect::Strict,
            zone: None,
        };
        let mut out = Vec::new();
        let mut next = 0;
        group.throughput(Throughput::Elements(1)).bench_function(
            BenchmarkId::from_parameter(format!(
                "{}_topics_{BROKERS_PER_TOPIC}_brokers",
                names.len()
            )),
            |bencher| {
                bencher.iter(|| {
                    next = (next + 7_919) % names.len();
                    out.clear();
                    snapshot
                        .route(&names[next])
                        .expect("a topic just registered")
                        .write(view, &mut out);
                    black_box(&out);
                });
            },
        );
    }
    group.finish();
}

criterion_group!(benches, one_broker, route);
criterion_main!(benches);
