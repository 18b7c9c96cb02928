//! What reading and writing one message costs: headers in both codecs, answers, registrations, texts of routes.

use std::{fmt::Write, hint::black_box, io::Write as _};

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use flate2::{Compression, write::ZlibEncoder};
use waypost::protocol::{
    code::{ResponseCode, version},
    command::{RemotingCommand, ReplyHead, Response, SerializeType},
    encode::{begin_response, write_response},
    fastjson::{Dialect, write_string},
    register_body::decode_register_body,
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

/// The route query with a ROCKETMQ header (spec 10.2).
fn rocketmq_route_query() -> Vec<u8> {
    let mut header = Vec::new();
    header.extend_from_slice(&105_u16.to_be_bytes());
    header.push(0);
    header.extend_from_slice(&479_u16.to_be_bytes());
    for number in [7_u32, 0, 0, 20] {
        header.extend_from_slice(&number.to_be_bytes());
    }
    header.extend_from_slice(b"\0\x05topic\0\0\0\x09TopicTest");
    frame(1, &header)
}

fn headers(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("header");
    for (name, frame) in [
        ("json_route_query", frame(0, ROUTE_QUERY.as_bytes())),
        ("json_register", frame(0, REGISTER.as_bytes())),
        ("rocketmq_route_query", rocketmq_route_query()),
    ] {
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                RemotingCommand::decode(black_box(&frame))
                    .expect("legal")
                    .code
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
    for topics in [100, 2000] {
        for (name, body, compressed) in [
            ("json", json_body(topics), false),
            ("compressed", compressed_body(topics), true),
        ] {
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

criterion_group!(benches, headers, responses, register_bodies, texts);
criterion_main!(benches);
