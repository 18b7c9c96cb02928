//! Inputs of many megabytes that punish a decoder which looks at a byte more than a few times. Each of these takes well under a
//! second when the work is linear and hours when it is quadratic. Unoptimized builds get shorter ones.

use std::hint::black_box;

use super::with_json_header;
use crate::{
    limits::{FILTER_SERVERS_MAX, MAPPINGS_MAX, QUEUE_DATAS_MAX, TOPICS_OF_REGISTRATION_MAX},
    protocol::{
        body::BodyError,
        header::DecodeError,
        json::{JsonError, Reader},
        kv_file::{KvFile, decode_kv_file},
        register_body::{decode_queue_datas, decode_register_body},
    },
};

const LEN: usize = if cfg!(debug_assertions) {
    2_000_000
} else {
    10_000_000
};

/// The text as often as fits into `LEN` bytes.
fn filled_with(text: &str) -> String {
    text.repeat(LEN / text.len())
}

#[test]
fn unknown_members_are_skipped_in_linear_time() {
    for member in [
        "\"unknown\":\"value\",",
        "'x':[1,{},[]],",
        "k:1,",
        ",",
        " ",
        "/**/",
        "//\n",
        "\"\\u0061\":null,",
    ] {
        with_json_header(
            format!("{{{}\"code\":105}}", filled_with(member)),
            |command| {
                assert_eq!(command.map(|command| command.code), Ok(105), "{member}");
            },
        );
    }
}

#[test]
fn escapes_are_read_in_linear_time() {
    for escape in [
        "\\n",
        "\\u0041",
        "\\x41",
        "\\uD800",
        "\\uD83D\\uDE00",
        "\\\\",
    ] {
        let text = filled_with(escape);
        let count = LEN / escape.len();
        with_json_header(
            format!("{{\"extFields\":{{\"k\":\"{text}\"}}}}"),
            |command| {
                let command = command.expect("legal");
                let characters = command.ext.get("k").map(|value| value.chars().count());
                assert_eq!(characters, Some(count), "{escape}");
            },
        );
        with_json_header(format!("{{\"remark\":\"{text}\"}}"), |command| {
            assert!(command.is_ok());
        });
    }
}

#[test]
fn long_words_and_numbers_are_read_in_linear_time() {
    for text in [
        "1", "n", "null", "+", "1e", "9.", "\u{4e2d}", "\"", "/", "/*", "{", "[", "[{", "\\",
    ] {
        let text = filled_with(text);
        for header in [
            format!("{{\"x\":{text}}}"),
            format!("{{\"code\":{text}}}"),
            format!("{{{text}:1}}"),
            format!("{{\"extFields\":{{\"k\":{text}}}}}"),
            text,
        ] {
            // Whether it passes is told elsewhere; here it has to come to an end.
            with_json_header(header, |command| black_box(command.is_ok()));
        }
    }
}

#[test]
fn deep_nesting_is_refused_long_before_its_end() {
    for text in ["[", "{\"a\":", "[{\"a\":"] {
        let text = filled_with(text);
        let mut reader = Reader::from_text(&text);
        assert!(matches!(
            reader.skip_value(),
            Err(JsonError::TooDeep { .. })
        ));
        assert!(reader.offset() < 10_000);
    }
}

#[test]
fn far_too_many_ext_fields_are_refused_without_storing_them() {
    with_json_header(
        format!("{{\"extFields\":{{{}}}}}", filled_with("\"k\":\"v\",")),
        |command| {
            assert!(matches!(command, Err(DecodeError::TooManyExtFields { .. })));
        },
    );
}

#[test]
fn very_many_repetitions_count_once() {
    let table = filled_with("\"t\":{\"topicName\":\"t\"},");
    let mappings = "\"t\":{},".repeat(MAPPINGS_MAX);
    let body = format!(
        "{{\"topicConfigSerializeWrapper\":{{\"topicConfigTable\":{{{table}}},\"topicQueueMappingInfoMap\":{{{mappings}}}}}}}"
    );
    let body = decode_register_body(body.as_bytes(), false, 479)
        .expect("legal")
        .expect("a body");
    assert_eq!((body.topics.len(), body.mappings.len()), (1, 1));

    let file = format!(
        "{{\"configTable\":{{\"ns\":{{{}}}}}}}",
        filled_with("\"k\":\"v\",")
    );
    match decode_kv_file(file.as_bytes()) {
        Ok(KvFile::Table(table)) => assert_eq!(table["ns"].len(), 1),
        other => panic!("{other:?}"),
    }
}

#[test]
fn more_topics_than_the_writer_takes_in_one_step_are_refused_however_they_are_written() {
    let error = BodyError::TooMany {
        item: "topics",
        max: TOPICS_OF_REGISTRATION_MAX,
    };
    let table = |entry: &str, count: usize| {
        let table = entry.repeat(count);
        format!("{{\"topicConfigSerializeWrapper\":{{\"topicConfigTable\":{{{table}}}}}}}")
    };
    for entry in ["\"\":{\"topicName\":\"\"},", "'t':{'topicName':'t'},"] {
        let read = |count| decode_register_body(table(entry, count).as_bytes(), false, 479);
        assert!(read(TOPICS_OF_REGISTRATION_MAX).is_ok(), "{entry}");
        assert_eq!(read(TOPICS_OF_REGISTRATION_MAX + 1), Err(error));
    }
}

#[test]
fn short_items_that_are_large_in_memory_are_counted() {
    for (body, item, max) in [
        (
            format!("{{\"filterServerList\":[{}]}}", filled_with("1,")),
            "filter servers",
            FILTER_SERVERS_MAX,
        ),
        (
            format!(
                "{{\"topicConfigSerializeWrapper\":{{\"topicQueueMappingInfoMap\":{{{}}}}}}}",
                filled_with("1:{},")
            ),
            "mappings",
            MAPPINGS_MAX,
        ),
    ] {
        assert_eq!(
            decode_register_body(body.as_bytes(), false, 479),
            Err(BodyError::TooMany { item, max })
        );
    }
    let body = format!("{{\"queueDatas\":[{}]}}", filled_with("{},"));
    let error = BodyError::TooMany {
        item: "queue datas",
        max: QUEUE_DATAS_MAX,
    };
    assert_eq!(decode_queue_datas(body.as_bytes()), Err(error));
}
