//! What holds for any input.

use std::{borrow::Cow, collections::BTreeMap, fmt::Display};

use proptest::{collection::vec, prelude::*};

use super::{frame_of, hex, kv_files, register_bodies::REAL_5X};
use crate::{
    limits::FRAME_LEN_MAX,
    protocol::{
        body::{DataVersion, TopicQueueMappingInfo},
        code::ResponseCode,
        command::{RemotingCommand, ReplyHead, SerializeType},
        encode::{begin_response, oneway_request},
        fastjson::{Dialect, write_string},
        frame::{Split, split},
        json::Reader,
        kv_file::{KvFile, KvTable, decode_kv_file},
        register_body::{decode_queue_datas, decode_register_body},
    },
};

const JSON_HEADER: &str = r#"{"code":103,"extFields":{"brokerId":"0","bodyCrc32":"1","x":{"a":[1,2.5,null]}},"flag":0,"language":"JAVA","opaque":7,"remark":"\u4e2d\n","version":479}"#;

fn texts() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-zA-Z0-9_%|-]{1,20}",
        vec(any::<char>(), 1..12).prop_map(|characters| characters.into_iter().collect()),
        "[\"\\\\/'\u{0}-\u{1f}\u{7f}-\u{a0}\u{2027}-\u{202a}{}:,]{1,10}",
    ]
}

fn heads() -> impl Strategy<Value = ReplyHead> {
    (any::<i32>(), any::<bool>()).prop_map(|(opaque, is_json)| ReplyHead {
        opaque,
        serialize_type: if is_json {
            SerializeType::Json
        } else {
            SerializeType::RocketMq
        },
    })
}

fn seeds() -> Vec<Vec<u8>> {
    let mut seeds = vec![
        REAL_5X.as_bytes().to_vec(),
        JSON_HEADER.as_bytes().to_vec(),
        br#"{"brokerDatas":[],"queueDatas":[{"brokerName":"broker-a","perm":6,"readQueueNums":4}]}"#.to_vec(),
        br#"{"configTable":{"ORDER_TOPIC_CONFIG":{"TopicA":"broker-a:4"},"ns":{}}}"#.to_vec(),
        br#"{"topicConfigSerializeWrapper":{"topicQueueMappingInfoMap":{"key":{"bname":"b","currIdMap":{0:0,10:2}}}}}"#.to_vec(),
    ];
    // The compressed body of spec 10.4 and the binary header of spec 10.2.
    seeds.push(hex(
        "78da636060b0a8564ace2fcd2b492d52b232d6512a2e492c490d4b2d2acecccf53b232d0512ac9cc4d050ae616285919
         9a1b20402d03030313109b86e41764268700d5285800a19942b0a79fbb8f6b7c88a3bb42b59236507371627aaa5e4965
         41aa9295929f7f90afa38f1248b3548853b8a181115897398a2eb0d1d1b140920100261929e5",
    ));
    seeds.push(hex(
        "0069 00 01df 00000007 00000000 00000000 00000014 0005 746f706963 00000009 546f70696354657374",
    ));
    seeds
}

/// A valid input with a few bytes changed, put in or taken out.
fn mutated() -> impl Strategy<Value = Vec<u8>> {
    let edits = vec((any::<prop::sample::Index>(), any::<u8>(), 0..3u8), 0..6);
    (prop::sample::select(seeds()), edits).prop_map(|(mut bytes, edits)| {
        for (place, byte, kind) in edits {
            let at = place.index(bytes.len().max(1));
            match kind {
                0 if at < bytes.len() => bytes[at] = byte,
                1 if at < bytes.len() => drop(bytes.remove(at)),
                _ => bytes.insert(at.min(bytes.len()), byte),
            }
        }
        bytes
    })
}

/// Hands the bytes to every decoder; a panic fails the test.
fn decode_as_everything(bytes: &[u8]) {
    check_style(split(bytes, FRAME_LEN_MAX));
    check_style(RemotingCommand::decode(bytes));
    for serialize_type in [0, 1] {
        let frame = frame_of(serialize_type, bytes, b"");
        check_style(RemotingCommand::decode(&frame));
    }
    for version in [0, 399, 479] {
        for compressed in [false, true] {
            check_style(decode_register_body(bytes, compressed, version));
        }
    }
    check_style(DataVersion::decode(bytes));
    check_style(decode_queue_datas(bytes));
    check_style(decode_kv_file(bytes));
}

/// An error's text is one line of ASCII that starts in lower case and has no full stop, whatever the peer sent.
fn check_style<T, E: Display>(result: Result<T, E>) {
    if let Err(error) = result {
        let text = error.to_string();
        assert!(
            text.is_ascii() && !text.ends_with('.') && !text.contains(char::is_control),
            "{text:?}"
        );
        assert!(
            text.starts_with(|first: char| first.is_ascii_lowercase()),
            "{text:?}"
        );
    }
}

proptest! {
    // A failure prints its input; that belongs into a test of its own.
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn an_answer_is_read_back_as_it_was_written(
        head in heads(),
        remark in prop::option::of(texts()),
        ext in prop::option::of(vec((texts(), texts()), 0..15)),
        body in vec(any::<u8>(), 0..50),
    ) {
        let ext: Option<Vec<(&str, &str)>> = ext
            .as_ref()
            .map(|pairs| pairs.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect());
        let mut out = Vec::new();
        let frame = begin_response(&mut out, head, ResponseCode::TopicNotExist, remark.as_deref(), ext.as_deref());
        out.extend_from_slice(&body);
        frame.finish(&mut out);
        let Ok(Split::Frame { frame, consumed }) = split(&out, FRAME_LEN_MAX) else {
            return Err(TestCaseError::fail("no frame"));
        };
        prop_assert_eq!(consumed, out.len());
        let command = RemotingCommand::decode(frame).map_err(|error| TestCaseError::fail(error.to_string()))?;
        prop_assert_eq!((command.code, command.version, command.flag), (17, 479, 1));
        prop_assert_eq!(command.reply_head(), head);
        prop_assert_eq!(command.body, &body[..]);
        let pairs = ext.unwrap_or_default();
        prop_assert_eq!(command.ext.len(), pairs.len());
        for (name, _) in &pairs {
            let last = pairs.iter().rev().find(|(other, _)| other == name).map(|(_, value)| *value);
            prop_assert_eq!(command.ext.get(name), last);
        }
    }

    #[test]
    fn a_oneway_request_is_read_back_as_it_was_written(code: i32, opaque: i32, ext in vec((texts(), texts()), 0..5)) {
        let ext: BTreeMap<String, String> = ext.into_iter().collect();
        let pairs: Vec<(&str, &str)> = ext.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let bytes = oneway_request(code, opaque, &pairs);
        let command = RemotingCommand::decode(&bytes[4..]).map_err(|error| TestCaseError::fail(error.to_string()))?;
        prop_assert_eq!((command.code, command.opaque, command.flag), (code, opaque, 2));
        for (name, value) in pairs {
            prop_assert_eq!(command.ext.get(name), Some(value));
        }
    }

    #[test]
    fn a_text_is_read_back_by_us_and_by_another_reader(text in texts()) {
        for dialect in [Dialect::Plain, Dialect::Strict] {
            let mut out = Vec::new();
            write_string(&mut out, &text, dialect);
            let written = std::str::from_utf8(&out).map_err(|error| TestCaseError::fail(error.to_string()))?;
            prop_assert!(dialect == Dialect::Plain || written.is_ascii());
            prop_assert_eq!(serde_json::from_str::<String>(written).ok(), Some(text.clone()));
            let read = Reader::from_text(written).text_or_null();
            prop_assert_eq!(read, Ok(Some(Cow::Borrowed(text.as_str()))));
        }
    }

    #[test]
    fn what_another_reader_accepts_is_skipped_whole(json in json_values()) {
        for text in [json.to_string(), format!("{json:#}")] {
            let mut reader = Reader::from_text(&text);
            prop_assert_eq!(reader.skip_value(), Ok(()));
            prop_assert_eq!(reader.end(), Ok(()));
            let mut reader = Reader::from_text(&text);
            let Ok(Some(compact)) = reader.text_or_null() else {
                prop_assert!(json.is_null());
                continue;
            };
            if json.is_object() || json.is_array() {
                prop_assert_eq!(serde_json::from_str::<serde_json::Value>(&compact).ok(), Some(json.clone()));
            }
        }
    }

    #[test]
    fn a_data_version_and_a_mapping_are_read_back(
        numbers: (i64, i64, i64),
        names in vec(prop::option::of(texts()), 3),
        ids in prop::option::of(prop::collection::btree_map(any::<i32>(), any::<i32>(), 0..5)),
        total_queues: i32,
        dirty: bool,
    ) {
        let version = DataVersion { state_version: numbers.0, timestamp: numbers.1, counter: numbers.2 };
        let mut out = Vec::new();
        version.write(&mut out);
        prop_assert_eq!(DataVersion::decode(&out), Ok(Some(version)));

        let mapping = TopicQueueMappingInfo {
            topic_key: "key".to_owned(),
            broker_name: names[0].clone(),
            current_id_map: ids,
            dirty,
            epoch: numbers.0,
            scope: names[1].clone(),
            topic: names[2].clone(),
            total_queues,
        };
        for dialect in [Dialect::Plain, Dialect::Strict] {
            let mut body = br#"{"topicConfigSerializeWrapper":{"topicQueueMappingInfoMap":{"key":"#.to_vec();
            mapping.write(&mut body, dialect);
            body.extend_from_slice(b"}}}");
            let read = decode_register_body(&body, false, 479).map_err(|error| TestCaseError::fail(error.to_string()))?;
            // What was null is left out, and what is absent has a default.
            let absent = TopicQueueMappingInfo::default();
            let expected = TopicQueueMappingInfo {
                current_id_map: mapping.current_id_map.clone().or(absent.current_id_map),
                scope: mapping.scope.clone().or(absent.scope),
                ..mapping.clone()
            };
            prop_assert_eq!(read.map(|body| body.mappings), Some(vec![expected]));
        }
    }

    #[test]
    fn a_kv_table_is_read_back(table in prop::collection::btree_map(texts(), prop::collection::btree_map(texts(), texts(), 0..4), 0..4)) {
        let table: KvTable = table;
        prop_assert_eq!(decode_kv_file(&kv_files::written(&table)), Ok(KvFile::Table(table)));
    }

    #[test]
    fn random_bytes_are_no_reason_to_panic(bytes in vec(any::<u8>(), 0..200)) {
        decode_as_everything(&bytes);
    }

    #[test]
    fn random_json_like_texts_are_no_reason_to_panic(text in "[{}\\[\\]:,\"'a1.eEn+/*\\\\ux \u{0}中-]{0,60}") {
        decode_as_everything(text.as_bytes());
    }

    #[test]
    fn mutated_inputs_are_no_reason_to_panic(bytes in mutated()) {
        decode_as_everything(&bytes);
    }

    #[test]
    fn a_prefix_needs_more_or_fails_like_the_whole(bytes in vec(prop_oneof![Just(0u8), any::<u8>()], 0..40), limit in 4usize..64) {
        let whole = split(&bytes, limit);
        for len in 0..bytes.len() {
            let prefix = split(&bytes[..len], limit);
            prop_assert!(prefix == Ok(Split::NeedMore) || prefix == whole);
        }
    }
}

fn json_values() -> impl Strategy<Value = serde_json::Value> {
    let leaf = prop_oneof![
        Just(serde_json::Value::Null),
        any::<bool>().prop_map(serde_json::Value::from),
        any::<i64>().prop_map(serde_json::Value::from),
        any::<i32>().prop_map(|quarters| serde_json::Value::from(f64::from(quarters) / 4.0)),
        texts().prop_map(serde_json::Value::from),
    ];
    leaf.prop_recursive(4, 30, 5, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..5).prop_map(serde_json::Value::from),
            prop::collection::btree_map(texts(), inner, 0..5)
                .prop_map(serde_json::Value::from_iter),
        ]
    })
}
