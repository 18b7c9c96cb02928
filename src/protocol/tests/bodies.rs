//! Bodies of `QUERY_DATA_VERSION` (spec 2.6) and `REGISTER_TOPIC_IN_NAMESRV` (spec 2.13).

use crate::protocol::{
    body::{DataVersion, QueueSettings},
    register_body::decode_queue_datas,
};

#[test]
fn a_data_version_is_read_in_every_spelling() {
    for (text, state_version, timestamp, counter) in [
        (
            r#"{"counter":3,"stateVersion":2,"timestamp":1700000000000}"#,
            2,
            1_700_000_000_000,
            3,
        ),
        // 4.9.x has no stateVersion.
        (
            r#"{"counter":3,"timestamp":1700000000000}"#,
            0,
            1_700_000_000_000,
            3,
        ),
        (
            r#"{"counter":"3","stateVersion":null,"timestamp":"1700000000000"}"#,
            0,
            1_700_000_000_000,
            3,
        ),
        (
            r#"{"counter":3.9,"stateVersion":-1.5,"timestamp":1.7e12,"x":{}}"#,
            -1,
            1_700_000_000_000,
            3,
        ),
        (r#"{"timestamp":null}"#, 0, 0, 0),
        (
            r#"{"timestamp":9223372036854775807,"counter":-9223372036854775808}"#,
            0,
            i64::MAX,
            i64::MIN,
        ),
    ] {
        let expected = DataVersion {
            state_version,
            timestamp,
            counter,
        };
        assert_eq!(
            DataVersion::decode(text.as_bytes()),
            Ok(Some(expected)),
            "{text}"
        );
    }
}

#[test]
fn a_body_without_a_version_is_nothing_to_compare_with() {
    for text in ["", " ", "null", "{}", r#"{"counter":1}"#, r#"{"x":1}"#] {
        assert_eq!(DataVersion::decode(text.as_bytes()), Ok(None), "{text}");
    }
    for text in ["x", "{", "{}{}", "nullx"] {
        assert!(DataVersion::decode(text.as_bytes()).is_err(), "{text}");
    }
    for text in ["[]", "1", r#"{"counter":"x"}"#, r#"{"counter":{}}"#] {
        assert_eq!(DataVersion::decode(text.as_bytes()), Ok(None), "{text}");
    }
}

#[test]
fn queue_datas_of_one_topic_are_read() {
    let body = br#"{"brokerDatas":[],"filterServerTable":{},"queueDatas":[{"brokerName":"broker-a","perm":6,"readQueueNums":4,"topicSysFlag":1,"writeQueueNums":5},null,{"brokerName":"b","perm":null},{}]}"#;
    let settings = |read_queue_nums, write_queue_nums, perm, topic_sys_flag| QueueSettings {
        read_queue_nums,
        write_queue_nums,
        perm,
        topic_sys_flag,
    };
    assert_eq!(
        decode_queue_datas(body),
        Ok(vec![
            ("broker-a".to_owned(), settings(4, 5, 6, 1)),
            ("b".to_owned(), settings(0, 0, 0, 0)),
            (String::new(), settings(0, 0, 0, 0)),
        ])
    );
    for text in [
        "",
        " ",
        "null",
        "{}",
        r#"{"queueDatas":null}"#,
        r#"{"queueDatas":[]}"#,
    ] {
        assert_eq!(decode_queue_datas(text.as_bytes()), Ok(vec![]), "{text}");
    }
    for text in [
        "x",
        "[]",
        "{",
        r#"{"queueDatas":{}}"#,
        r#"{"queueDatas":[1]}"#,
        r#"{"queueDatas":[{"perm":"x"}]}"#,
        r#"{"queueDatas":[{}"#,
    ] {
        assert!(decode_queue_datas(text.as_bytes()).is_err(), "{text}");
    }
}
