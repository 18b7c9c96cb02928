//! Registrations (spec 2.3), as brokers send them and as nobody should.

use std::{collections::BTreeMap, io::Write};

use flate2::{Compression, write::ZlibEncoder};

use crate::{
    limits::{INFLATED_LEN_MAX, TOPICS_OF_REGISTRATION_MAX},
    protocol::{
        body::{
            BodyError, DataVersion, QueueSettings, RegisterBrokerBody, TopicConfig,
            TopicQueueMappingInfo,
        },
        register_body::decode_register_body,
    },
};

/// What a 5.x broker sends.
pub(super) const REAL_5X: &str = r#"{"filterServerList":[],"topicConfigSerializeWrapper":{"dataVersion":{"counter":3,"stateVersion":0,"timestamp":1700000000000},"mappingDataVersion":{"counter":0,"stateVersion":0,"timestamp":1700000000001},"topicConfigTable":{"TopicTest":{"attributes":{"+message.type":"NORMAL"},"order":false,"perm":6,"readQueueNums":8,"topicFilterType":"SINGLE_TAG","topicName":"TopicTest","topicSysFlag":0,"writeQueueNums":8},"TBW102":{"attributes":{},"order":false,"perm":7,"readQueueNums":8,"topicFilterType":"SINGLE_TAG","topicName":"TBW102","topicSysFlag":0,"writeQueueNums":8}},"topicQueueMappingDetailMap":{},"topicQueueMappingInfoMap":{}}}"#;

fn settings(
    read_queue_nums: i32,
    write_queue_nums: i32,
    perm: i32,
    topic_sys_flag: i32,
) -> QueueSettings {
    QueueSettings {
        read_queue_nums,
        write_queue_nums,
        perm,
        topic_sys_flag,
    }
}

fn topic(name: &str, settings: QueueSettings) -> TopicConfig {
    TopicConfig {
        name: name.into(),
        settings,
    }
}

fn decode_json(text: &str) -> RegisterBrokerBody {
    match decode_register_body(text.as_bytes(), false, 479) {
        Ok(Some(body)) => body,
        other => panic!("{text}: {other:?}"),
    }
}

fn topics_of(table: &str) -> Vec<TopicConfig> {
    decode_json(&format!(
        "{{\"topicConfigSerializeWrapper\":{{\"topicConfigTable\":{table}}}}}"
    ))
    .topics
}

#[test]
fn the_body_of_a_5x_broker_is_read() {
    let expected = RegisterBrokerBody {
        data_version: DataVersion {
            state_version: 0,
            timestamp: 1_700_000_000_000,
            counter: 3,
        },
        topics: vec![
            topic("TopicTest", settings(8, 8, 6, 0)),
            topic("TBW102", settings(8, 8, 7, 0)),
        ],
        filter_servers: Some(vec![]),
        mappings: vec![],
    };
    assert_eq!(decode_json(REAL_5X), expected);
}

#[test]
fn the_body_of_a_4x_broker_is_read() {
    let body = r#"{"filterServerList":["10.0.0.1:9000",null],"topicConfigSerializeWrapper":{"dataVersion":{"counter":1,"timestamp":5},"topicConfigTable":{"T":{"order":false,"perm":4,"readQueueNums":1,"topicFilterType":"SINGLE_TAG","topicName":"T","topicSysFlag":3,"writeQueueNums":2}}}}"#;
    let expected = RegisterBrokerBody {
        data_version: DataVersion {
            state_version: 0,
            timestamp: 5,
            counter: 1,
        },
        topics: vec![topic("T", settings(1, 2, 4, 3))],
        filter_servers: Some(vec!["10.0.0.1:9000".to_owned()]),
        mappings: vec![],
    };
    assert_eq!(decode_json(body), expected);
}

#[test]
fn below_version_37_the_body_is_the_bare_wrapper() {
    let wrapper = r#"{"dataVersion":{"counter":1,"timestamp":5},"topicConfigTable":{"T":{"topicName":"T"}},"filterServerList":["x"]}"#;
    for version in [0, 36, -1] {
        let body = decode_register_body(wrapper.as_bytes(), true, version)
            .expect("JSON")
            .expect("an object");
        assert_eq!(body.topics, [topic("T", QueueSettings::default())]);
        assert_eq!(body.data_version.counter, 1);
        assert_eq!(
            body.filter_servers, None,
            "the old form leaves the filter servers alone"
        );
    }
    let body = decode_register_body(wrapper.as_bytes(), false, 37)
        .expect("JSON")
        .expect("an object");
    assert!(body.topics.is_empty());
    assert_eq!(body.filter_servers, Some(vec!["x".to_owned()]));
}

#[test]
fn no_body_is_an_empty_one_and_null_is_none() {
    for (compressed, version) in [(false, 479), (true, 479), (true, 399), (false, 0)] {
        let body = decode_register_body(b"", compressed, version)
            .expect("legal")
            .expect("an empty body");
        assert_eq!(
            (body.data_version, body.topics.len(), body.mappings.len()),
            (DataVersion::default(), 0, 0)
        );
    }
    for text in ["null", " null\n", " "] {
        for version in [0, 479] {
            assert_eq!(
                decode_register_body(text.as_bytes(), false, version),
                Ok(None),
                "{text:?}"
            );
        }
    }
}

#[test]
fn null_and_missing_members_are_empty() {
    for text in [
        "{}",
        r#"{"topicConfigSerializeWrapper":null}"#,
        r#"{"topicConfigSerializeWrapper":{}}"#,
        r#"{"topicConfigSerializeWrapper":{"dataVersion":null,"topicConfigTable":null,"topicQueueMappingInfoMap":null}}"#,
        r#"{"topicConfigSerializeWrapper":{"dataVersion":{},"topicConfigTable":{},"topicQueueMappingInfoMap":{}}}"#,
    ] {
        let body = decode_json(text);
        assert_eq!(
            body,
            RegisterBrokerBody {
                filter_servers: Some(vec![]),
                ..RegisterBrokerBody::default()
            }
        );
    }
    assert_eq!(
        decode_json(r#"{"filterServerList":null}"#).filter_servers,
        None
    );
}

#[test]
fn a_topic_goes_by_its_name_and_not_by_its_key() {
    assert_eq!(
        topics_of(r#"{"key":{"topicName":"T","readQueueNums":-1,"perm":1000}}"#),
        [topic("T", settings(-1, 16, 1000, 0))]
    );
}

#[test]
fn an_entry_without_a_name_does_not_spoil_the_rest() {
    for nameless in ["{}", "null", r#"{"topicName":null}"#, r#"{"perm":6}"#] {
        assert_eq!(
            topics_of(&format!(
                "{{\"A\":{{\"topicName\":\"A\"}},\"B\":{nameless},\"C\":{{\"topicName\":\"C\"}}}}"
            )),
            [
                topic("A", QueueSettings::default()),
                topic("C", QueueSettings::default())
            ]
        );
    }
}

#[test]
fn of_a_repeated_topic_the_last_entry_counts() {
    let table = r#"{"A":{"topicName":"A","perm":1},"B":{"topicName":"B","perm":2},"A":{"topicName":"A","perm":3},"C":{"topicName":"A","perm":4},"D":{"topicName":"D","perm":5}}"#;
    assert_eq!(
        topics_of(table),
        [
            topic("B", settings(16, 16, 2, 0)),
            topic("A", settings(16, 16, 4, 0)),
            topic("D", settings(16, 16, 5, 0))
        ]
    );
}

#[test]
fn numbers_of_a_topic_are_read_leniently() {
    assert_eq!(
        topics_of(
            r#"{A:{topicName:"A",perm:"4",readQueueNums:3.0,writeQueueNums:null,topicSysFlag:true}}"#
        ),
        [topic("A", settings(3, 16, 4, 1))]
    );
    for value in ["\"x\"", "2147483648", "{}", "[]"] {
        let body = format!(
            "{{\"topicConfigSerializeWrapper\":{{\"topicConfigTable\":{{\"A\":{{\"perm\":{value}}}}}}}}}"
        );
        assert!(
            decode_register_body(body.as_bytes(), false, 479).is_err(),
            "{value}"
        );
    }
}

#[test]
fn mappings_are_read_with_unquoted_and_quoted_keys() {
    let expected = TopicQueueMappingInfo {
        topic_key: "key".to_owned(),
        broker_name: Some("broker-a".to_owned()),
        current_id_map: Some(BTreeMap::from([(0, 0), (1, 1), (10, 2)])),
        dirty: true,
        epoch: 9_007_199_254_740_993,
        scope: Some("__global__".to_owned()),
        topic: Some("StaticT".to_owned()),
        total_queues: 4,
    };
    for ids in [
        "{0:0,1:1,10:2}",
        r#"{"0":0,"1":1,"10":2}"#,
        "{0:9,10:2,1:1,0:0,5:null}",
    ] {
        let body = decode_json(&format!(
            r#"{{"topicConfigSerializeWrapper":{{"topicQueueMappingInfoMap":{{"gone":null,"key":{{"bname":"broker-a","currIdMap":{ids},"dirty":true,"epoch":9007199254740993,"scope":"__global__","topic":"StaticT","totalQueues":4}}}}}}}}"#
        ));
        assert_eq!(body.mappings, std::slice::from_ref(&expected));
    }
    let body = decode_json(
        r#"{"topicConfigSerializeWrapper":{"topicQueueMappingInfoMap":{"key":{},"key":{"epoch":"7"}}}}"#,
    );
    assert_eq!(
        body.mappings,
        [TopicQueueMappingInfo {
            topic_key: "key".to_owned(),
            epoch: 7,
            ..TopicQueueMappingInfo::default()
        }]
    );
    assert!(decode_register_body(br#"{"topicConfigSerializeWrapper":{"topicQueueMappingInfoMap":{"k":{"currIdMap":{"x":1}}}}}"#, false, 479).is_err());
}

#[test]
fn what_is_no_json_is_an_error() {
    for text in [
        "x",
        "{",
        "[]",
        "1",
        "\"\"",
        "{}{}",
        REAL_5X.trim_end_matches('}'),
        r#"{"filterServerList":{}}"#,
    ] {
        assert!(
            decode_register_body(text.as_bytes(), false, 479).is_err(),
            "{text}"
        );
    }
}

/// One `i32` length and the bytes.
fn item(bytes: &[u8]) -> Vec<u8> {
    let mut item = count(i32::try_from(bytes.len()).expect("fits"));
    item.extend_from_slice(bytes);
    item
}

fn count(count: i32) -> Vec<u8> {
    count.to_be_bytes().to_vec()
}

/// The compressed layout up to the filter servers.
fn layout(topics: &[&str]) -> Vec<u8> {
    let mut layout = item(br#"{"counter":3,"stateVersion":0,"timestamp":1700000000000}"#);
    layout.extend(count(i32::try_from(topics.len()).expect("fits")));
    for topic in topics {
        layout.extend(item(topic.as_bytes()));
    }
    layout.extend(item(b"[\"10.0.0.1:9000\"]"));
    layout
}

fn zlib(layout: &[u8], level: u32) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::new(level));
    encoder.write_all(layout).expect("a Vec takes everything");
    encoder.finish().expect("a Vec takes everything")
}

fn decode_layout(layout: &[u8], version: i32) -> Result<Option<RegisterBrokerBody>, BodyError> {
    decode_register_body(&zlib(layout, 9), true, version)
}

#[test]
fn compressed_topic_lines_are_read_like_in_java() {
    let lines = [
        "A 1 2 4 SINGLE_TAG",
        "B +8 08 -7 MULTI_TAG {\"+message.type\":\"NORMAL\"}",
        "C 1 1 1 SINGLE_TAG not json at all",
        "A 9 9 9 SINGLE_TAG {}",
        "中 1 1 6 SINGLE_TAG {}",
    ];
    let body = decode_layout(&layout(&lines), 399)
        .expect("legal")
        .expect("a body");
    assert_eq!(
        body.topics,
        [
            topic("B", settings(8, 8, -7, 0)),
            topic("C", settings(1, 1, 1, 0)),
            topic("A", settings(9, 9, 9, 0)),
            topic("中", settings(1, 1, 6, 0)),
        ]
    );
    assert_eq!(body.filter_servers, Some(vec!["10.0.0.1:9000".to_owned()]));
    for line in [
        "",
        "A",
        "A 1 2 4",
        "A 1 2 4 ",
        "A  1 2 4 SINGLE_TAG",
        "A x 2 4 SINGLE_TAG",
        "A 1.0 2 4 SINGLE_TAG",
        "A 1 2147483648 4 SINGLE_TAG",
        "A 1 2 4 single_tag",
        "A 1 2 4 OTHER {}",
        "A 1 2 4 {}",
    ] {
        assert!(decode_layout(&layout(&[line]), 399).is_err(), "{line}");
    }
}

#[test]
fn the_mapping_section_is_read_from_5_0_0_on_and_must_then_be_there() {
    let mapping = r#"{"bname":"broker-a","currIdMap":{0:0,1:1,10:2},"dirty":false,"epoch":9007199254740993,"scope":"__global__","topic":"StaticT","totalQueues":4}"#;
    assert_eq!(mapping.len(), 141);
    let without = layout(&["A 1 2 4 SINGLE_TAG"]);
    let mut with = without.clone();
    with.extend(count(2));
    with.extend(item(mapping.as_bytes()));
    with.extend(item(b"{\"bname\":\"without a topic\"}"));
    for version in [37, 399, 412] {
        for layout in [&without, &with] {
            let body = decode_layout(layout, version)
                .expect("legal")
                .expect("a body");
            assert_eq!((body.topics.len(), body.mappings.len()), (1, 0));
        }
    }
    assert!(matches!(
        decode_layout(&without, 413),
        Err(BodyError::Truncated {
            item: "mapping count",
            needed: 4,
            left: 0
        })
    ));
    let body = decode_layout(&with, 413).expect("legal").expect("a body");
    assert_eq!(body.mappings.len(), 1);
    assert_eq!(body.mappings[0].topic_key, "StaticT");
    assert_eq!(
        body.mappings[0].current_id_map,
        Some(BTreeMap::from([(0, 0), (1, 1), (10, 2)]))
    );
}

#[test]
fn any_level_trailing_bytes_and_a_missing_checksum_pass_but_no_other_damage() {
    let layout = layout(&["A 1 2 4 SINGLE_TAG"]);
    let expected = decode_layout(&layout, 399);
    assert!(expected.is_ok());
    let mut longer = layout.clone();
    longer.extend_from_slice(b"more");
    for level in 0..=9 {
        let body = zlib(&layout, level);
        assert_eq!(decode_register_body(&body, true, 399), expected);
        let mut trailing = body.clone();
        trailing.extend_from_slice(b"trailing");
        assert_eq!(decode_register_body(&trailing, true, 399), expected);
        for cut in 1..=4 {
            assert_eq!(
                decode_register_body(&body[..body.len() - cut], true, 399),
                expected
            );
        }
        let mut wrong_checksum = body.clone();
        *wrong_checksum.last_mut().expect("not empty") ^= 1;
        assert!(matches!(
            decode_register_body(&wrong_checksum, true, 399),
            Err(BodyError::Inflate { .. })
        ));
        assert!(decode_register_body(&body[..body.len() / 2], true, 399).is_err());
        // Without its zlib header.
        assert!(decode_register_body(&body[2..], true, 399).is_err());
    }
    assert_eq!(decode_layout(&longer, 399), expected);
    assert!(decode_register_body(REAL_5X.as_bytes(), true, 479).is_err());
    assert!(decode_register_body(b"\x1f\x8b\x08\0\0\0\0\0\0\xff", true, 479).is_err());
    assert!(decode_register_body(b"\x78\xda", true, 479).is_err());
    assert!(decode_register_body(b"\x78", true, 479).is_err());
}

#[test]
fn negative_counts_are_0_and_lengths_that_lie_are_refused() {
    let version = item(b"{}");
    let build = |parts: &[&[u8]]| parts.concat();
    let empty = build(&[&version, &count(-1), &item(b"null"), &count(i32::MIN)]);
    let body = decode_layout(&empty, 479).expect("legal").expect("a body");
    assert_eq!(
        (body.topics.len(), body.mappings.len(), body.filter_servers),
        (0, 0, None)
    );
    for lie in [
        build(&[&count(-1), b"{}"]),
        build(&[&count(i32::MAX), b"{}"]),
        build(&[&version, &count(1)]),
        build(&[&version, &count(i32::MAX), &item(b"A 1 1 1 SINGLE_TAG")]),
        build(&[&version, &count(1), &count(i32::MAX), b"A 1 1 1 SINGLE_TAG"]),
        build(&[&version, &count(1), &count(-5), b"A 1 1 1 SINGLE_TAG"]),
        build(&[&version, &count(0), &count(3), b"[]"]),
        build(&[&version, &count(0), &count(-3), b"[]"]),
        build(&[&version, &count(0), &item(b"{}"), &count(0)]),
        build(&[&version, &count(0), &item(b"[]"), &count(1)]),
        build(&[
            &version,
            &count(0),
            &item(b"[]"),
            &count(i32::MAX),
            &item(b"{}"),
        ]),
        build(&[&item(b"[]"), &count(0), &item(b"[]"), &count(0)]),
        vec![],
    ] {
        assert!(decode_layout(&lie, 479).is_err(), "{lie:?}");
    }
}

#[test]
fn a_count_of_more_topics_than_the_writer_takes_in_one_step_is_refused() {
    let max = i32::try_from(TOPICS_OF_REGISTRATION_MAX).expect("fits");
    let announcing = |topics| decode_layout(&[item(b"{}"), count(topics)].concat(), 479);
    let too_many = BodyError::TooMany {
        item: "topics",
        max: TOPICS_OF_REGISTRATION_MAX,
    };
    assert_eq!(announcing(max + 1), Err(too_many));
    assert!(matches!(announcing(max), Err(BodyError::Truncated { .. })));
}

#[test]
fn a_bomb_costs_no_more_than_the_limit() {
    // F7: about 64 KiB that inflate to one byte more than may be.
    let bomb = zlib(&vec![b' '; INFLATED_LEN_MAX + 1], 9);
    assert!(bomb.len() < INFLATED_LEN_MAX / 500);
    assert_eq!(
        decode_register_body(&bomb, true, 479),
        Err(BodyError::InflatedTooLarge {
            max: INFLATED_LEN_MAX
        })
    );
    // As much as may be passes on to the layout, which has no length word there.
    let allowed = zlib(&vec![b' '; INFLATED_LEN_MAX], 1);
    assert!(matches!(
        decode_register_body(&allowed, true, 479),
        Err(BodyError::Truncated { .. })
    ));
}

#[test]
fn topics_that_are_repeated_leave_no_room_behind() {
    let entry = r#""t":{"topicName":"t","perm":6},"#;
    let body = format!(
        r#"{{"topicConfigSerializeWrapper":{{"topicConfigTable":{{{}}}}}}}"#,
        entry.repeat(10_000)
    );
    let body = decode_register_body(body.as_bytes(), false, 479)
        .expect("legal")
        .expect("not null");
    assert_eq!((body.topics.len(), body.topics.capacity()), (1, 1));
}
