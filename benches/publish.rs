//! What a publication costs: it should follow what changed and not what exists. And what a route costs to read.

use std::{hint::black_box, sync::Arc, time::Duration};

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use waypost::{
    config::{Config, Environment},
    ids::ConnectionId,
    protocol::{
        body::{DataVersion, QueueSettings, RegisterBrokerBody, TopicConfig},
        command::ReplyHead,
        fastjson::Dialect,
        name::TopicName,
    },
    registry::{
        Command, KvTable, Registry, RouteSnapshot,
        command::{RegisterBroker, ReplyTo},
        query::RouteView,
    },
    time::Timestamp,
};

/// Brokers that hold every topic.
const BROKERS: u32 = 8;
const NOW: Timestamp = Timestamp::from_millis(1);

fn registration(
    broker: u32,
    topics: impl Iterator<Item = u32>,
    version: i64,
    queues: i32,
) -> Command {
    let topic = |number| TopicConfig {
        name: TopicName::from(format!("topic-order-service-{number:06}").as_str()),
        settings: QueueSettings {
            read_queue_nums: queues,
            ..QueueSettings::default()
        },
    };
    let connection = ConnectionId {
        worker: 0,
        slot: broker,
        generation: 0,
    };
    let to = ReplyTo {
        connection,
        head: ReplyHead::default(),
        oneway: false,
    };
    Command::Register(
        to,
        Box::new(RegisterBroker {
            cluster_name: Arc::from("DefaultCluster"),
            broker_name: Arc::from(format!("broker-{broker:03}")),
            broker_id: 0,
            broker_addr: Arc::from(format!("10.0.0.{broker}:10911")),
            ha_server_addr: None,
            zone_name: None,
            heartbeat_timeout_millis: None,
            enable_acting_master: None,
            body: RegisterBrokerBody {
                data_version: DataVersion {
                    counter: version,
                    ..DataVersion::default()
                },
                topics: topics.map(topic).collect(),
                ..RegisterBrokerBody::default()
            },
        }),
    )
}

/// A registry in which every broker holds `topics` topics, and its snapshot.
struct Filled {
    registry: Registry,
    snapshot: Arc<RouteSnapshot>,
}

impl Filled {
    fn new(topics: u32) -> Self {
        let config = Config::defaults(&Environment {
            user_home: None,
            rocketmq_home: None,
        });
        let registry = Registry::new(config, KvTable::default(), 7, NOW);
        let snapshot = registry.initial_snapshot();
        let mut filled = Self { registry, snapshot };
        for broker in 0..BROKERS {
            filled.apply(registration(broker, 0..topics, 1, 4));
        }
        filled
    }

    fn apply(&mut self, command: Command) {
        self.registry.apply(command, NOW);
        let snapshot = &mut self.snapshot;
        drop(self.registry.publish().store(|next| *snapshot = next));
    }
}

/// One topic of one broker changes; the replaced snapshot is freed within the measurement.
fn one_topic(c: &mut Criterion) {
    let mut group = c.benchmark_group("publish/one_topic");
    for topics in [125, 1_250, 12_500] {
        let mut filled = Filled::new(topics);
        let mut version = 1;
        group.bench_function(
            BenchmarkId::from_parameter(format!("{}_entries", topics * BROKERS)),
            |bencher| {
                bencher.iter(|| {
                    version += 1;
                    let queues = if version % 2 == 0 { 8 } else { 4 };
                    filled.apply(registration(0, [7, 8].into_iter().take(2), version, queues));
                });
            },
        );
    }
    group.finish();
}

/// Every topic of one broker changes in one batch.
fn whole_broker(c: &mut Criterion) {
    let mut group = c.benchmark_group("publish/2000_topics");
    group
        .throughput(Throughput::Elements(2_000))
        .sample_size(10)
        .measurement_time(Duration::from_secs(3));
    let mut filled = Filled::new(12_500);
    let mut version = 1;
    group.bench_function("changed", |bencher| {
        bencher.iter(|| {
            version += 1;
            let queues = if version % 2 == 0 { 8 } else { 4 };
            filled.apply(registration(0, 0..2_000, version, queues));
        });
    });
    group.bench_function("unchanged", |bencher| {
        let queues = if version % 2 == 0 { 8 } else { 4 };
        bencher.iter(|| filled.apply(registration(0, 0..2_000, version, queues)));
    });
    group.finish();
}

fn route(c: &mut Criterion) {
    let mut group = c.benchmark_group("route");
    for topics in [125, 12_500] {
        let filled = Filled::new(topics);
        let names: Vec<String> = (0..topics)
            .map(|number| format!("topic-order-service-{number:06}"))
            .collect();
        let view = RouteView {
            dialect: Dialect::Strict,
            zone: None,
        };
        let mut out = Vec::new();
        let mut next = 0;
        group.bench_function(
            BenchmarkId::from_parameter(format!("{topics}_topics_{BROKERS}_brokers")),
            |bencher| {
                bencher.iter(|| {
                    next = (next + 7_919) % names.len();
                    out.clear();
                    filled
                        .snapshot
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

criterion_group!(benches, one_topic, whole_broker, route);
criterion_main!(benches);
