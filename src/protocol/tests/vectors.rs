//! The byte vectors of spec 10, and the worked examples of spec 1.2 and 2.16.

use std::collections::BTreeMap;

use super::hex;
use crate::protocol::{
    body::{
        DataVersion, EMPTY_KV_TABLE, QueueSettings, RegisterBrokerBody, TopicConfig,
        TopicQueueMappingInfo, kv_table_body, topic_list_body,
    },
    code::ResponseCode,
    command::{RemotingCommand, ReplyHead, Response, SerializeType},
    encode::{begin_response, oneway_request, write_response},
    fastjson::{Dialect, ObjectWriter, write_i64, write_int_key, write_string, write_string_list},
    frame::{Split, split},
    register_body::{crc_matches, decode_register_body},
};

const LIMIT: usize = 16 * 1024 * 1024;

const JSON_REQUEST: &str = "
    00000087 00000083
    7b 22 63 6f 64 65 22 3a 31 30 35 2c 22 65 78 74
    46 69 65 6c 64 73 22 3a 7b 22 74 6f 70 69 63 22
    3a 22 54 6f 70 69 63 54 65 73 74 22 7d 2c 22 66
    6c 61 67 22 3a 30 2c 22 6c 61 6e 67 75 61 67 65
    22 3a 22 4a 41 56 41 22 2c 22 6f 70 61 71 75 65
    22 3a 37 2c 22 73 65 72 69 61 6c 69 7a 65 54 79
    70 65 43 75 72 72 65 6e 74 52 50 43 22 3a 22 4a
    53 4f 4e 22 2c 22 76 65 72 73 69 6f 6e 22 3a 34
    37 39 7d";

const ROCKETMQ_REQUEST: &str = "
    0000002d 01000029 0069 00 01df 00000007 00000000 00000000 00000014
    0005 746f706963 00000009 546f70696354657374";

const COMPRESSED_BODY: &str = "
    78da636060b0a8564ace2fcd2b492d52b232d6512a2e492c490d4b2d2acecccf53b232d0512ac9cc4d050ae616285919
    9a1b20402d03030313109b86e41764268700d5285800a19942b0a79fbb8f6b7c88a3bb42b59236507371627aaa5e4965
    41aa9295929f7f90afa38f1248b3548853b8a181115897398a2eb0d1d1b140920100261929e5";

fn decode_whole(bytes: &[u8]) -> RemotingCommand<'_> {
    match split(bytes, LIMIT) {
        Ok(Split::Frame { frame, consumed }) => {
            assert_eq!(consumed, bytes.len());
            RemotingCommand::decode(frame).expect("a legal frame")
        }
        other => panic!("{other:?}"),
    }
}

fn response_bytes(head: ReplyHead, response: &Response) -> Vec<u8> {
    let mut out = Vec::new();
    write_response(&mut out, head, response);
    out
}

fn json_head(opaque: i32) -> ReplyHead {
    ReplyHead {
        opaque,
        serialize_type: SerializeType::Json,
    }
}

/// The header text of an encoded answer, whose two lengths are checked.
fn header_text(bytes: &[u8]) -> &str {
    let word = |at: usize| {
        usize::try_from(u32::from_be_bytes(
            bytes[at..at + 4].try_into().expect("4 bytes"),
        ))
        .expect("fits")
    };
    assert_eq!(word(0) + 4, bytes.len());
    std::str::from_utf8(&bytes[8..8 + word(4)]).expect("a JSON header is UTF-8")
}

#[test]
fn the_same_route_query_is_read_from_both_codecs() {
    for (digits, len, serialize_type) in [
        (JSON_REQUEST, 139, SerializeType::Json),
        (ROCKETMQ_REQUEST, 49, SerializeType::RocketMq),
    ] {
        let bytes = hex(digits);
        assert_eq!(bytes.len(), len);
        let command = decode_whole(&bytes);
        assert_eq!(
            (command.code, command.version, command.opaque, command.flag),
            (105, 479, 7, 0)
        );
        assert_eq!(command.ext.get("topic"), Some("TopicTest"));
        assert_eq!(command.ext.len(), 1);
        assert_eq!(command.serialize_type, serialize_type);
        assert!(command.body.is_empty());
    }
}

#[test]
fn rocketmq_answers_are_those_of_java() {
    let head = ReplyHead {
        opaque: 1,
        serialize_type: SerializeType::RocketMq,
    };
    let slave = Response::success()
        .with_ext("haServerAddr", "10.0.0.1:10912")
        .with_ext("masterAddr", "10.0.0.1:10911");
    let expected = hex("
        00000057 01000053 0000 00 01df 00000001 00000001 00000000 0000003e
        000c 686153657276657241646472 0000000e 31302e302e302e313a3130393132
        000a 6d617374657241646472 0000000e 31302e302e302e313a3130393131");
    assert_eq!(expected.len(), 91);
    assert_eq!(response_bytes(head, &slave), expected);
    let empty = hex("00000019 01000015 0000 00 01df 00000001 00000001 00000000 00000000");
    assert_eq!(response_bytes(head, &Response::success()), empty);
    assert_eq!(
        response_bytes(head, &Response::success().with_empty_ext()),
        empty
    );
}

#[test]
fn json_answers_are_those_of_java() {
    for (response, expected) in [
        (
            Response::success(),
            r#"{"code":0,"flag":1,"language":"JAVA","opaque":1,"serializeTypeCurrentRPC":"JSON","version":479}"#,
        ),
        (
            Response::success().with_empty_ext(),
            r#"{"code":0,"extFields":{},"flag":1,"language":"JAVA","opaque":1,"serializeTypeCurrentRPC":"JSON","version":479}"#,
        ),
        (
            Response::error(
                ResponseCode::QueryNotFound,
                "No config item, Namespace: ns Key: k",
            )
            .with_empty_ext(),
            r#"{"code":22,"extFields":{},"flag":1,"language":"JAVA","opaque":1,"remark":"No config item, Namespace: ns Key: k","serializeTypeCurrentRPC":"JSON","version":479}"#,
        ),
        (
            Response::success().with_ext("changed", "false"),
            r#"{"code":0,"extFields":{"changed":"false"},"flag":1,"language":"JAVA","opaque":1,"serializeTypeCurrentRPC":"JSON","version":479}"#,
        ),
        (
            Response::error(ResponseCode::TopicNotExist, "a\n\"/中\u{7f}"),
            "{\"code\":17,\"flag\":1,\"language\":\"JAVA\",\"opaque\":1,\"remark\":\"a\\n\\\"/中\\u007F\",\"serializeTypeCurrentRPC\":\"JSON\",\"version\":479}",
        ),
    ] {
        let bytes = response_bytes(json_head(1), &response);
        assert_eq!(header_text(&bytes), expected);
    }
}

#[test]
fn a_body_may_be_appended_to_an_open_frame() {
    let mut out = b"before".to_vec();
    let frame = begin_response(
        &mut out,
        json_head(-5),
        ResponseCode::Success,
        None,
        Some(&[("a", "b")]),
    );
    out.extend_from_slice(b"body");
    frame.finish(&mut out);
    let command = decode_whole(&out[6..]);
    assert_eq!(
        (command.code, command.opaque, command.flag, command.body),
        (0, -5, 1, &b"body"[..])
    );
    assert_eq!(command.ext.get("a"), Some("b"));
}

#[test]
fn an_answer_whose_header_is_too_long_becomes_an_error() {
    let long = "\u{1}".repeat(3_000_000);
    let response = Response::success()
        .with_ext("value", long)
        .with_body(&b"body"[..]);
    let bytes = response_bytes(json_head(9), &response);
    let command = decode_whole(&bytes);
    assert_eq!((command.code, command.opaque, command.flag), (1, 9, 1));
    assert!(command.ext.is_empty());
    assert!(
        header_text(&bytes).contains("answer header of 18000"),
        "{}",
        header_text(&bytes)
    );
    let binary = ReplyHead {
        opaque: 9,
        serialize_type: SerializeType::RocketMq,
    };
    let bytes = response_bytes(binary, &response);
    let command = decode_whole(&bytes);
    assert_eq!(
        command.ext.get("value").map(str::len),
        Some(3_000_000),
        "it fits when nothing is escaped"
    );
}

#[test]
fn notifications_are_those_of_java() {
    for (ext, expected) in [
        (
            [
                ("haBrokerAddr", "127.0.0.1:30001"),
                ("minBrokerAddr", "127.0.0.1:20001"),
                ("minBrokerId", "0"),
            ],
            r#"{"code":905,"extFields":{"haBrokerAddr":"127.0.0.1:30001","minBrokerAddr":"127.0.0.1:20001","minBrokerId":"0"},"flag":2,"language":"JAVA","opaque":8,"serializeTypeCurrentRPC":"JSON","version":479}"#,
        ),
        (
            [
                ("offlineBrokerAddr", "127.0.0.1:20001"),
                ("minBrokerAddr", "127.0.0.1:20002"),
                ("minBrokerId", "1"),
            ],
            r#"{"code":905,"extFields":{"offlineBrokerAddr":"127.0.0.1:20001","minBrokerAddr":"127.0.0.1:20002","minBrokerId":"1"},"flag":2,"language":"JAVA","opaque":8,"serializeTypeCurrentRPC":"JSON","version":479}"#,
        ),
    ] {
        let bytes = oneway_request(905, 8, &ext);
        assert_eq!(header_text(&bytes), expected);
        let command = decode_whole(&bytes);
        assert!(command.is_oneway() && !command.is_response());
    }
}

fn topic(name: &str, queue_nums: i32, perm: i32) -> TopicConfig {
    TopicConfig {
        name: name.into(),
        settings: QueueSettings {
            read_queue_nums: queue_nums,
            write_queue_nums: queue_nums,
            perm,
            topic_sys_flag: 0,
        },
    }
}

fn compressed_example() -> RegisterBrokerBody {
    RegisterBrokerBody {
        data_version: DataVersion {
            state_version: 0,
            timestamp: 1_700_000_000_000,
            counter: 3,
        },
        topics: vec![topic("TopicTest", 8, 6), topic("TBW102", 8, 7)],
        filter_servers: Some(vec![]),
        mappings: vec![],
    }
}

#[test]
fn the_compressed_register_body_is_read() {
    let body = hex(COMPRESSED_BODY);
    assert_eq!(body.len(), 134);
    assert_eq!(
        decode_register_body(&body, true, 479),
        Ok(Some(compressed_example()))
    );
    // Q17: some brokers say that it is not compressed.
    assert_eq!(
        decode_register_body(&body, false, 479),
        Ok(Some(compressed_example()))
    );
    // A sender below 5.0.0 has no mapping section, one in it is not looked at.
    assert_eq!(
        decode_register_body(&body, true, 399),
        Ok(Some(compressed_example()))
    );
    // Below version 37 there is no compression.
    assert!(decode_register_body(&body, true, 36).is_err());
}

fn example_mapping() -> TopicQueueMappingInfo {
    TopicQueueMappingInfo {
        topic_key: "StaticT".to_owned(),
        broker_name: Some("broker-a".to_owned()),
        current_id_map: Some(BTreeMap::from([(0, 0), (1, 1), (10, 2)])),
        dirty: false,
        epoch: 9_007_199_254_740_993,
        scope: Some("__global__".to_owned()),
        topic: Some("StaticT".to_owned()),
        total_queues: 4,
    }
}

#[test]
fn a_mapping_is_written_in_both_dialects() {
    for (dialect, expected) in [
        (
            Dialect::Plain,
            r#"{"bname":"broker-a","currIdMap":{0:0,1:1,10:2},"dirty":false,"epoch":9007199254740993,"scope":"__global__","topic":"StaticT","totalQueues":4}"#,
        ),
        (
            Dialect::Strict,
            r#"{"bname":"broker-a","currIdMap":{"0":0,"1":1,"10":2},"dirty":false,"epoch":"9007199254740993","scope":"__global__","topic":"StaticT","totalQueues":4}"#,
        ),
    ] {
        let mut out = Vec::new();
        example_mapping().write(&mut out, dialect);
        assert_eq!(String::from_utf8_lossy(&out), expected);
    }
    let mut out = Vec::new();
    let nulls = TopicQueueMappingInfo {
        current_id_map: None,
        scope: None,
        ..TopicQueueMappingInfo::default()
    };
    nulls.write(&mut out, Dialect::Strict);
    assert_eq!(out, br#"{"dirty":false,"epoch":0,"totalQueues":0}"#);
    let mut out = Vec::new();
    TopicQueueMappingInfo::default().write(&mut out, Dialect::Strict);
    assert_eq!(
        out,
        br#"{"currIdMap":{},"dirty":false,"epoch":0,"scope":"__global__","totalQueues":0}"#
    );
}

#[test]
fn texts_are_written_in_both_dialects() {
    let name = "broker-中\u{7f}<'&\"\\\t\u{1}\u{2028}😀";
    for (text, plain, strict) in [
        (
            name,
            "\"broker-中\\u007F<'&\\\"\\\\\\t\\u0001\\u2028😀\"",
            "\"broker-\\u4E2D\\u007F<'&\\\"\\\\\\t\\u0001\\u2028\\uD83D\\uDE00\"",
        ),
        ("C/1", "\"C/1\"", "\"C\\/1\""),
        ("h/x:1", "\"h/x:1\"", "\"h\\/x:1\""),
        ("b:中", "\"b:中\"", "\"b:\\u4E2D\""),
        (
            "\u{b}\u{8}\n\u{c}\r\0",
            "\"\\u000B\\b\\n\\f\\r\\u0000\"",
            "\"\\u000B\\b\\n\\f\\r\\u0000\"",
        ),
        (
            "\u{80}\u{9f}\u{a0}\u{2027}\u{2029}\u{202a}",
            "\"\\u0080\\u009F\u{a0}\u{2027}\\u2029\u{202a}\"",
            "\"\\u0080\\u009F\\u00A0\\u2027\\u2029\\u202A\"",
        ),
        ("", "\"\"", "\"\""),
    ] {
        for (dialect, expected) in [(Dialect::Plain, plain), (Dialect::Strict, strict)] {
            let mut out = Vec::new();
            write_string(&mut out, text, dialect);
            assert_eq!(String::from_utf8_lossy(&out), expected);
        }
    }
}

/// The route of spec 10.5, put together from the writer's parts; its queues are left out there.
fn write_example_route(dialect: Dialect) -> String {
    let mut out = Vec::new();
    let mut route = ObjectWriter::begin(&mut out, dialect);
    let list = route.member("brokerDatas");
    list.push(b'[');
    let mut broker = ObjectWriter::begin(list, dialect);
    let addrs = broker.member("brokerAddrs");
    addrs.push(b'{');
    for (index, (id, addr)) in [(0, "a:1"), (2, "b:中"), (10, "h/x:1")]
        .into_iter()
        .enumerate()
    {
        if index > 0 {
            addrs.push(b',');
        }
        write_int_key(addrs, id, dialect);
        addrs.push(b':');
        write_string(addrs, addr, dialect);
    }
    addrs.push(b'}');
    broker.string("brokerName", "broker-中\u{7f}<'&\"\\\t\u{1}\u{2028}😀");
    broker.string("cluster", "C/1");
    broker.bool("enableActingMaster", true);
    broker.optional_string("zoneName", Some("z1"));
    broker.end();
    list.push(b']');
    let mut filter_servers = ObjectWriter::begin(route.member("filterServerTable"), dialect);
    write_string_list(filter_servers.member("b:1"), ["x", "y"], dialect);
    filter_servers.end();
    route.optional_string("orderTopicConf", Some("broker-a:4"));
    let mut mappings = ObjectWriter::begin(route.member("topicQueueMappingByBroker"), dialect);
    example_mapping().write(mappings.member("broker-a"), dialect);
    mappings.end();
    route.end();
    String::from_utf8(out).expect("both dialects are UTF-8")
}

#[test]
fn a_route_is_written_in_both_dialects() {
    assert_eq!(
        write_example_route(Dialect::Plain),
        "{\"brokerDatas\":[{\"brokerAddrs\":{0:\"a:1\",2:\"b:中\",10:\"h/x:1\"},\"brokerName\":\"broker-中\\u007F<'&\\\"\\\\\\t\\u0001\\u2028😀\",\"cluster\":\"C/1\",\"enableActingMaster\":true,\"zoneName\":\"z1\"}],\"filterServerTable\":{\"b:1\":[\"x\",\"y\"]},\"orderTopicConf\":\"broker-a:4\",\"topicQueueMappingByBroker\":{\"broker-a\":{\"bname\":\"broker-a\",\"currIdMap\":{0:0,1:1,10:2},\"dirty\":false,\"epoch\":9007199254740993,\"scope\":\"__global__\",\"topic\":\"StaticT\",\"totalQueues\":4}}}"
    );
    let strict = write_example_route(Dialect::Strict);
    assert_eq!(
        strict,
        r#"{"brokerDatas":[{"brokerAddrs":{"0":"a:1","2":"b:\u4E2D","10":"h\/x:1"},"brokerName":"broker-\u4E2D\u007F<'&\"\\\t\u0001\u2028\uD83D\uDE00","cluster":"C\/1","enableActingMaster":true,"zoneName":"z1"}],"filterServerTable":{"b:1":["x","y"]},"orderTopicConf":"broker-a:4","topicQueueMappingByBroker":{"broker-a":{"bname":"broker-a","currIdMap":{"0":0,"1":1,"10":2},"dirty":false,"epoch":"9007199254740993","scope":"__global__","topic":"StaticT","totalQueues":4}}}"#
    );
    assert!(
        serde_json::from_str::<serde_json::Value>(&strict).is_ok(),
        "the strict dialect is JSON"
    );
}

#[test]
fn numbers_beyond_javascript_are_quoted_in_the_strict_dialect_only() {
    for (number, strict) in [
        (0, "0"),
        (-9_007_199_254_740_991, "-9007199254740991"),
        (9_007_199_254_740_991, "9007199254740991"),
        (9_007_199_254_740_992, "\"9007199254740992\""),
        (-9_007_199_254_740_992, "\"-9007199254740992\""),
        (i64::MIN, "\"-9223372036854775808\""),
    ] {
        let mut out = Vec::new();
        write_i64(&mut out, number, Dialect::Plain);
        assert_eq!(String::from_utf8_lossy(&out), number.to_string());
        out.clear();
        write_i64(&mut out, number, Dialect::Strict);
        assert_eq!(String::from_utf8_lossy(&out), strict);
    }
    let mut out = Vec::new();
    write_int_key(&mut out, -1, Dialect::Plain);
    write_int_key(&mut out, 10, Dialect::Strict);
    assert_eq!(out, b"-1\"10\"");
}

#[test]
fn small_bodies_are_those_of_java() {
    let mut out = Vec::new();
    topic_list_body(&mut out, ["TopicA", "TopicB"], None);
    topic_list_body(
        &mut out,
        ["broker-a", "DefaultCluster"],
        Some("10.0.0.1:10911"),
    );
    topic_list_body(&mut out, [], None);
    kv_table_body(&mut out, [("k", "v"), ("TopicA", "broker-a:4")]);
    let empty_at = out.len();
    kv_table_body(&mut out, []);
    assert_eq!(out[empty_at..], *EMPTY_KV_TABLE);
    DataVersion {
        state_version: 0,
        timestamp: 1_700_000_000_000,
        counter: 3,
    }
    .write(&mut out);
    assert_eq!(
        String::from_utf8_lossy(&out),
        concat!(
            r#"{"topicList":["TopicA","TopicB"]}"#,
            r#"{"brokerAddr":"10.0.0.1:10911","topicList":["broker-a","DefaultCluster"]}"#,
            r#"{"topicList":[]}"#,
            r#"{"table":{"k":"v","TopicA":"broker-a:4"}}"#,
            r#"{"table":{}}"#,
            r#"{"counter":3,"stateVersion":0,"timestamp":1700000000000}"#,
        )
    );
}

#[test]
fn checksums_are_those_of_java() {
    assert!(crc_matches(b"hello", 907_060_870));
    assert!(crc_matches(
        super::register_bodies::REAL_5X.as_bytes(),
        1_321_063_352
    ));
    assert!(crc_matches(b"", 0));
    assert!(crc_matches(b"anything", 0), "0 asks for no check");
    assert!(!crc_matches(b"hello", 907_060_871));
    assert!(!crc_matches(b"", 1));
    for negative in [-1, i32::MIN, 907_060_870 | i32::MIN] {
        assert!(!crc_matches(b"hello", negative));
    }
}
