//! What a worker does for route queries that arrive together, less the socket: bytes in, answers out.
//!
//! Sixteen queries a read, as a peer with many requests under way sends them, of topics in random order. With 1 000 topics all
//! that is touched stays in the caches; with 100 000 hardly anything does.
//!
//! The time is that of one read. Where clocks are noisy, instructions tell more: `perf stat -e instructions:u,cycles:u`.

#[expect(dead_code, reason = "here nothing is asked but routes")]
mod filled;

use std::{hint::black_box, time::Duration};

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use filled::{BROKERS_PER_TOPIC, Clerk, Desk, Filled, population, topic_name};
use rand_pcg::{
    Pcg64Mcg,
    rand_core::{Rng, SeedableRng},
};
use waypost::{
    connection::{Connection, StreamLimits},
    registry::{KvTable, query::Routes},
    time::Timestamp,
};

const NOW: Timestamp = Timestamp::from_millis(1);
/// Queries a read.
const DEPTH: usize = 16;
const LIMITS: StreamLimits = StreamLimits {
    frame_len_max: 16 * 1024 * 1024,
    high_water: 64 * 1024,
    low_water: 32 * 1024,
};

/// A query as the Java client writes it.
fn query(topic: usize, opaque: usize) -> Vec<u8> {
    let header = format!(
        r#"{{"code":105,"extFields":{{"topic":"{}"}},"flag":0,"language":"JAVA","opaque":{opaque},"serializeTypeCurrentRPC":"JSON","version":479}}"#,
        topic_name(topic)
    );
    let header_len = u32::try_from(header.len()).expect("a short header");
    let mut frame = (header_len + 4).to_be_bytes().to_vec();
    frame.extend_from_slice(&header_len.to_be_bytes());
    frame.extend_from_slice(header.as_bytes());
    frame
}

/// Reads of [`DEPTH`] queries each, which ask for every topic once, in random order.
fn reads(topics: usize) -> Vec<Vec<u8>> {
    let mut order: Vec<usize> = (0..topics).collect();
    let mut random = Pcg64Mcg::seed_from_u64(1);
    for last in (1..topics).rev() {
        let bound = u64::try_from(last + 1).expect("64 bits at most");
        let other = usize::try_from(random.next_u64() % bound).expect("below the number of topics");
        order.swap(last, other);
    }
    let queries = order.chunks(DEPTH).enumerate();
    queries
        .map(|(read, topics)| {
            let first = 100_000 + read * DEPTH;
            let each = topics.iter().enumerate();
            each.flat_map(|(place, topic)| query(*topic, first + place))
                .collect()
        })
        .collect()
}

fn read(c: &mut Criterion) {
    let mut group = c.benchmark_group("route_read");
    group
        .sample_size(20)
        .warm_up_time(Duration::from_millis(500))
        .measurement_time(Duration::from_secs(2))
        .throughput(Throughput::Elements(DEPTH as u64));
    for topics in [1_000, 100_000] {
        let filled = Filled::new(KvTable::default(), population(topics * BROKERS_PER_TOPIC));
        let mut snapshots = filled.subscribe();
        let snapshot = snapshots.load();
        let reads = reads(topics);
        let mut desk = Desk::default();
        let mut connection = Connection::new(Duration::from_secs(120), NOW);
        let mut turn = reads.iter().cycle();
        let (mut buffer, mut out) = (Vec::new(), Vec::new());
        let mut receive = || {
            // As the socket is read: into a buffer that stays in the caches.
            buffer.clear();
            buffer.extend_from_slice(turn.next().expect("they go round"));
            out.clear();
            let clerk = Clerk {
                snapshot,
                now: NOW,
                desk: &mut desk,
                routes: Routes::new(),
            };
            connection
                .handle_input(black_box(&buffer), 0, &LIMITS, NOW, &mut out, clerk)
                .expect("well-formed");
            out.len()
        };
        assert!(receive() > DEPTH * 100, "a route each");
        group.bench_function(BenchmarkId::from_parameter(topics), |bencher| {
            bencher.iter(&mut receive);
        });
    }
    group.finish();
}

criterion_group!(benches, read);
criterion_main!(benches);
