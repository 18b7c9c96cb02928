//! What reading and writing one message costs: headers in both codecs, registrations, every kind of answer, texts of routes.

#[expect(dead_code, reason = "here brokers register once and stay as they are")]
mod filled;

use std::{collections::BTreeMap, fmt::Write, hint::black_box, io::Write as _, time::Duration};

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use filled::{Desk, Filled, population, registration, topic_name};
use flate2::{Compression, write::ZlibEncoder};
use loadgen::{
    frame::Codec,
    registration::{BodyForm, Extent, Registration},
};
use waypost::{
    processor::Outcome,
    protocol::{
        code::{RequestCode, ResponseCode, version},
        command::{ExtFields, RemotingCommand, ReplyHead, Response, SerializeType},
        encode::{begin_response, write_response},
        fastjson::{Dialect, write_string},
        header_scan::HeaderModel,
        register_body::decode_register_body,
    },
    registry::{Command, KvTable},
    time::Timestamp,
};

const ROUTE_QUERY: &str = r#"{"code":105,"extFields":{"topic":"TopicTest"},"flag":0,"language":"JAVA","opaque":7,"serializeTypeCurrentRPC":"JSON","version":479}"#;

const REGISTER: &str = r#"{"code":103,"extFields":{"bodyCrc32":"1321063352","brokerAddr":"10.0.0.1:10911","brokerId":"0","brokerName":"broker-a","clusterName":"DefaultCluster","compressed":"false","enableActingMaster":"false","haServerAddr":"10.0.0.1:10912","heartbeatTimeoutMillis":"120000"},"flag":0,"language":"JAVA","opaque":21,"serializeTypeCurrentRPC":"JSON","version":479}"#;

fn frame(serialize_type: u8, header: &[u8]) -> Vec<u8> {
    let len = u32::try_from(header.len()).expect("a short header");
    let mut frame = len.to_be_bytes().to_vec();
    frame[0] = serialize_type;
    frame.extend_from_slice(header);
    frame
}

/// The fields of [`REGISTER`], for the other codec.
const REGISTER_FIELDS: [(&str, &str); 9] = [
    ("bodyCrc32", "1321063352"),
    ("brokerAddr", "10.0.0.1:10911"),
    ("brokerId", "0"),
    ("brokerName", "broker-a"),
    ("clusterName", "DefaultCluster"),
    ("compressed", "false"),
    ("enableActingMaster", "false"),
    ("haServerAddr", "10.0.0.1:10912"),
    ("heartbeatTimeoutMillis", "120000"),
];

/// A request with a ROCKETMQ header (spec 10.2).
fn rocketmq_frame(code: u16, opaque: u32, fields: &[(&str, &str)]) -> Vec<u8> {
    let mut ext = Vec::new();
    for (name, value) in fields {
        let name_len = u16::try_from(name.len()).expect("a short name");
        let value_len = u32::try_from(value.len()).expect("a short value");
        ext.extend_from_slice(&name_len.to_be_bytes());
        ext.extend_from_slice(name.as_bytes());
        ext.extend_from_slice(&value_len.to_be_bytes());
        ext.extend_from_slice(value.as_bytes());
    }
    let mut header = code.to_be_bytes().to_vec();
    header.push(0);
    header.extend_from_slice(&479_u16.to_be_bytes());
    let ext_len = u32::try_from(ext.len()).expect("few fields");
    for number in [opaque, 0, 0, ext_len] {
        header.extend_from_slice(&number.to_be_bytes());
    }
    header.extend_from_slice(&ext);
    frame(1, &header)
}

fn headers(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("header");
    for (name, frame, fields) in [
        ("json_route_query", frame(0, ROUTE_QUERY.as_bytes()), 1),
        ("json_register", frame(0, REGISTER.as_bytes()), 9),
        (
            "rocketmq_route_query",
            rocketmq_frame(105, 7, &[("topic", "TopicTest")]),
            1,
        ),
        (
            "rocketmq_register",
            rocketmq_frame(103, 21, &REGISTER_FIELDS),
            9,
        ),
    ] {
        let read = || RemotingCommand::decode(black_box(&frame)).expect("legal");
        assert_eq!(read().ext.len(), fields, "{name}");
        group.bench_function(name, |bencher| bencher.iter(|| read().code));
    }
    // As they mostly arrive: behind one that is alike, of other topics and numbers.
    for (name, header, topic) in [
        ("json_route_query_behind_another", ROUTE_QUERY, "TopicTest"),
        ("json_register_behind_another", REGISTER, "broker-a"),
    ] {
        let other = |name: &str, opaque: &str| {
            let header = header.replace(topic, name).replace(":7,", opaque);
            frame(0, header.as_bytes())
        };
        let first = frame(0, header.as_bytes());
        let others = [other("Another", ":1234567,"), other("ThirdTopic", ":12,")];
        let mut model = HeaderModel::default();
        let mut command = RemotingCommand::default();
        command.read(&first, &mut model).expect("legal");
        let mut turn = others.iter().cycle();
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                let frame = black_box(turn.next().expect("there are two"));
                let mut command = RemotingCommand::default();
                command.read(frame, &mut model).expect("legal");
                command.code
            });
        });
    }
    group.finish();
}

fn responses(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("response");
    let json = ReplyHead {
        opaque: 123_456,
        serialize_type: SerializeType::Json,
    };
    let binary = ReplyHead {
        serialize_type: SerializeType::RocketMq,
        ..json
    };
    for (name, head) in [("json_head", json), ("rocketmq_head", binary)] {
        let mut out = Vec::with_capacity(4096);
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                out.clear();
                let frame =
                    begin_response(&mut out, black_box(head), ResponseCode::Success, None, None);
                frame.finish(&mut out);
                out.len()
            });
        });
    }
    let slave = Response::success()
        .with_ext("haServerAddr", "10.0.0.1:10912")
        .with_ext("masterAddr", "10.0.0.1:10911");
    let mut out = Vec::with_capacity(4096);
    group.bench_function("json_slave_registered", |bencher| {
        bencher.iter(|| {
            out.clear();
            write_response(&mut out, json, black_box(&slave));
            out.len()
        });
    });
    group.finish();
}

fn json_body(topics: usize) -> Vec<u8> {
    let mut body = r#"{"filterServerList":[],"topicConfigSerializeWrapper":{"dataVersion":{"counter":3,"stateVersion":0,"timestamp":1700000000000},"mappingDataVersion":{"counter":0,"stateVersion":0,"timestamp":1700000000001},"topicConfigTable":{"#.to_owned();
    for index in 0..topics {
        let comma = if index == 0 { "" } else { "," };
        write!(
            body,
            r#"{comma}"topic-of-a-team-{index}":{{"attributes":{{"+message.type":"NORMAL"}},"order":false,"perm":6,"readQueueNums":8,"topicFilterType":"SINGLE_TAG","topicName":"topic-of-a-team-{index}","topicSysFlag":0,"writeQueueNums":8}}"#
        )
        .expect("a String takes everything");
    }
    body.push_str(r#"},"topicQueueMappingDetailMap":{},"topicQueueMappingInfoMap":{}}}"#);
    body.into_bytes()
}

fn compressed_body(topics: usize) -> Vec<u8> {
    let mut layout = Vec::new();
    let mut item = |bytes: &[u8], prefix: &[u8]| {
        layout.extend_from_slice(prefix);
        layout.extend_from_slice(
            &u32::try_from(bytes.len())
                .expect("a short item")
                .to_be_bytes(),
        );
        layout.extend_from_slice(bytes);
    };
    item(
        br#"{"counter":3,"stateVersion":0,"timestamp":1700000000000}"#,
        b"",
    );
    for index in 0..topics {
        let line =
            format!("topic-of-a-team-{index} 8 8 6 SINGLE_TAG {{\"+message.type\":\"NORMAL\"}}");
        let count = u32::try_from(topics).expect("few topics").to_be_bytes();
        item(line.as_bytes(), if index == 0 { &count } else { b"" });
    }
    item(b"[]", b"");
    layout.extend_from_slice(&[0; 4]);
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(&layout).expect("a Vec takes everything");
    encoder.finish().expect("a Vec takes everything")
}

fn register_bodies(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("register_body");
    for topics in [100, 2_000, 20_000] {
        for (name, body, compressed) in [
            ("json", json_body(topics), false),
            ("compressed", compressed_body(topics), true),
        ] {
            if topics > 2_000 {
                group
                    .sample_size(20)
                    .measurement_time(Duration::from_secs(3));
            }
            group.throughput(Throughput::Bytes(body.len() as u64));
            group.bench_function(format!("{name}_{topics}"), |bencher| {
                // The body is dropped outside the measurement: its reader hands it on.
                bencher.iter_batched(
                    || (),
                    |()| {
                        decode_register_body(black_box(&body), compressed, version::OURS)
                            .expect("legal")
                    },
                    BatchSize::SmallInput,
                );
            });
        }
    }
    group.finish();
}

/// What a registration of 10,000 topics costs of which none changes: reading it, from the frame to the command for the writer, its
/// checksum included; the writer's turn with it, which drops it; and dropping it. `tools/compare` shows how they relate to each other, and sends
/// such frames. Each by itself: where a sum of two is compared with one of them, what the machine does meanwhile would decide.
fn unchanged_registration(criterion: &mut Criterion) {
    let topics: Vec<usize> = (0..10_000).collect();
    let mut group = criterion.benchmark_group("unchanged_registration");
    group
        .sample_size(40)
        .measurement_time(Duration::from_secs(3));
    for (name, form) in [
        ("plain", BodyForm::Json),
        ("compressed", BodyForm::Compressed),
    ] {
        let registration = Registration {
            broker: 0,
            revision: 1,
            extent: Extent::All,
            topics: &topics,
            form,
        };
        let mut frame = Vec::new();
        registration.append(Codec::Json, 7, &mut frame);
        let mut filled = Filled::empty(KvTable::default());
        let mut snapshots = filled.subscribe();
        let mut read = || {
            let request = RemotingCommand::decode(black_box(&frame[4..])).expect("legal");
            let snapshot = snapshots.load();
            let (mut desk, mut out) = (Desk::default(), Vec::new());
            let outcome = filled::process(&request, snapshot, NOW, &mut desk, &mut out);
            let Outcome::Submit(Command::Register(_, broker)) = outcome else {
                unreachable!("{outcome:?}")
            };
            broker
        };
        group.bench_function(format!("{name}_read"), |bencher| {
            bencher.iter_with_large_drop(&mut read);
        });
        group.bench_function(format!("{name}_dropped"), |bencher| {
            bencher.iter_batched(&mut read, drop, BatchSize::PerIteration);
        });
        filled.register(read(), NOW);
        group.bench_function(format!("{name}_applied"), |bencher| {
            bencher.iter_batched(
                &mut read,
                |broker| filled.register(broker, NOW),
                BatchSize::PerIteration,
            );
        });
    }
    group.finish();
}

const NOW: Timestamp = Timestamp::from_millis(1);

/// Pairs of a topic and a broker behind the answers: 25 000 topics, 52 brokers.
const ENTRIES: usize = 100_000;

/// A name for the bench, and what is asked with which fields.
type Request = (&'static str, RequestCode, Vec<(&'static str, String)>);

/// Requests that are answered from the snapshot alone, and so by the worker that reads them. The answers to commands are those of
/// [`responses`].
fn requests() -> Vec<Request> {
    let topic = |topic: &str| vec![("topic", topic.to_owned())];
    let cluster = vec![("cluster", loadgen::population::CLUSTER.to_owned())];
    let broker = registration(0, 0..0);
    let broker = vec![
        ("clusterName", broker.cluster_name.to_string()),
        ("brokerName", broker.broker_name.to_string()),
        ("brokerAddr", broker.broker_addr.to_string()),
    ];
    let kv = vec![
        ("namespace", KV_NAMESPACE.to_owned()),
        ("key", "key-0".to_owned()),
    ];
    use RequestCode as Code;
    vec![
        (
            "105_route",
            Code::GetRouteInfoByTopic,
            topic(&topic_name(7)),
        ),
        ("105_no_route", Code::GetRouteInfoByTopic, topic("nowhere")),
        ("106_cluster_info", Code::GetBrokerClusterInfo, Vec::new()),
        (
            "206_all_topics",
            Code::GetAllTopicListFromNameServer,
            Vec::new(),
        ),
        ("224_topics_of_cluster", Code::GetTopicsByCluster, cluster),
        (
            "304_system_topics",
            Code::GetSystemTopicListFromNs,
            Vec::new(),
        ),
        ("311_unit_topics", Code::GetUnitTopicList, Vec::new()),
        (
            "312_unit_sub_topics",
            Code::GetHasUnitSubTopicList,
            Vec::new(),
        ),
        (
            "313_unit_sub_only_topics",
            Code::GetHasUnitSubUnunitTopicList,
            Vec::new(),
        ),
        (DATA_VERSION_SAME.0, Code::QueryDataVersion, broker.clone()),
        (DATA_VERSION_OTHER.0, Code::QueryDataVersion, broker.clone()),
        (
            "901_member_group",
            Code::GetBrokerMemberGroup,
            broker.clone(),
        ),
        ("904_heartbeat", Code::BrokerHeartbeat, broker),
        ("101_kv", Code::GetKvConfig, kv.clone()),
        ("219_kv_list", Code::GetKvListByNamespace, kv),
        ("319_config", Code::GetNamesrvConfig, Vec::new()),
    ]
}

const KV_NAMESPACE: &str = "ORDER_TOPIC_CONFIG";

/// The bench in which a broker asks with the version it registered with, and its body.
const DATA_VERSION_SAME: (&str, &[u8]) = (
    "322_data_version",
    br#"{"counter":1,"stateVersion":0,"timestamp":0}"#,
);
/// The same with another.
const DATA_VERSION_OTHER: (&str, &[u8]) = (
    "322_data_version_changed",
    br#"{"counter":2,"stateVersion":0,"timestamp":0}"#,
);

/// A namespace of a hundred keys.
fn kv() -> KvTable {
    let entries = (0..100).map(|key| (format!("key-{key}"), "broker-a:8;broker-b:8".to_owned()));
    KvTable::from_plain(BTreeMap::from([(
        KV_NAMESPACE.to_owned(),
        entries.collect(),
    )]))
}

/// Whole answers with JSON headers, from a request that has been read to a frame that can be sent. The route is one that the worker
/// has at hand, being asked for again and again; what it costs to put together is in the bench `publish`.
fn answers(criterion: &mut Criterion) {
    let filled = Filled::new(kv(), population(ENTRIES));
    let mut snapshots = filled.subscribe();
    let snapshot = snapshots.load();
    let mut desk = Desk::default();
    let mut group = criterion.benchmark_group("answer");
    group
        .sample_size(20)
        .warm_up_time(Duration::from_millis(500))
        .measurement_time(Duration::from_secs(1));
    for (name, code, fields) in requests() {
        let mut ext = ExtFields::default();
        for (field, value) in &fields {
            ext.push((*field).into(), value.as_str().into());
        }
        let request = RemotingCommand {
            code: code as i32,
            version: version::OURS,
            opaque: 7,
            ext,
            body: [DATA_VERSION_SAME, DATA_VERSION_OTHER]
                .into_iter()
                .find_map(|(asked_in, body)| (asked_in == name).then_some(body))
                .unwrap_or_default(),
            ..RemotingCommand::default()
        };
        let mut out = Vec::new();
        let mut answer = || {
            out.clear();
            let now = Timestamp::from_millis(1);
            let outcome = filled::process(black_box(&request), snapshot, now, &mut desk, &mut out);
            (outcome, out.len())
        };
        // The first heartbeat of a connection asks for more than an answer.
        answer();
        let (outcome, len) = answer();
        assert_eq!(outcome, Outcome::Answered, "{name}");
        group.throughput(Throughput::Bytes(len as u64));
        group.bench_function(name, |bencher| bencher.iter(&mut answer));
    }
    group.finish();
}

fn texts(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("write_string");
    for (name, text) in [
        ("address", "10.0.0.1:10911"),
        ("topic", "%RETRY%consumer-group-of-a-team"),
        ("escapes", "broker-中\u{7f}<'&\"\\\t\u{1}\u{2028}😀/"),
    ] {
        for (suffix, dialect) in [("plain", Dialect::Plain), ("strict", Dialect::Strict)] {
            let mut out = Vec::with_capacity(4096);
            group.bench_function(format!("{name}_{suffix}"), |bencher| {
                bencher.iter(|| {
                    out.clear();
                    write_string(&mut out, black_box(text), dialect);
                    out.len()
                });
            });
        }
    }
    group.finish();
}

criterion_group!(
    benches,
    headers,
    responses,
    register_bodies,
    unchanged_registration,
    answers,
    texts
);
criterion_main!(benches);
