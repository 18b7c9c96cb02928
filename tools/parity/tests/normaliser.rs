//! What the normaliser changes, and what it must not.

use std::collections::BTreeMap;

use parity::frame::Codec;
use parity::json_text;
use parity::normal::{Names, body_text, normalise};
use parity::observed::SOME_TEXT;
use parity::reply::Reply;

fn reply(code: i32, remark: Option<&str>, header: &str) -> Reply {
    Reply {
        codec: Codec::Json,
        code,
        language: "JAVA".to_owned(),
        version: 479,
        opaque: 7,
        flag: 1,
        remark: remark.map(str::to_owned),
        ext: None,
        header: header.as_bytes().to_vec(),
        body: Vec::new(),
    }
}

fn body(text: &str) -> String {
    body_text(
        text.as_bytes(),
        &Names {
            port: 9876,
            ..Names::default()
        },
    )
}

#[test]
fn sets_and_hash_tables_are_put_in_order() {
    assert_eq!(
        body(r#"{"topicList":["b","a"]}"#),
        r#"{"topicList":["a","b"]}"#
    );
    assert_eq!(
        body(
            r#"{"brokerAddrTable":{"b":{"brokerAddrs":{10:"x",2:"y",-1:"z"}},"a":{}},"clusterAddrTable":{"c":["n","m",null]}}"#
        ),
        r#"{"brokerAddrTable":{"a":{},"b":{"brokerAddrs":{-1:"z",2:"y",10:"x"}}},"clusterAddrTable":{"c":["m","n",null]}}"#
    );
    assert_eq!(
        body(r#"{"table":{"b":"1","a":"2"}}"#),
        r#"{"table":{"a":"2","b":"1"}}"#
    );
}

#[test]
fn the_order_of_a_sorted_encoding_is_kept() {
    let wrong = r#"{"brokerDatas":[{"brokerAddrs":{"10":"x","2":"y"}}]}"#;
    assert_eq!(body(wrong), wrong);
}

#[test]
fn the_order_of_bean_members_and_lists_is_kept() {
    let text = r#"{"z":1,"a":{"c":[3,1,2],"b":null}}"#;
    assert_eq!(body(text), text);
}

#[test]
fn escapes_numbers_and_quotes_are_kept_as_written() {
    let text =
        r#"{"a":"\u4E2D\/\"中","b":1.50,"currIdMap":{0:0},"epoch":"9007199254740993",null:1}"#;
    assert_eq!(body(text), text);
}

#[test]
fn blanks_between_tokens_are_kept() {
    let text = "{\"topicList\": [\"b\",\"a\"]}";
    assert_eq!(body(text), text);
    assert!(json_text::parse(text).is_none());
}

#[test]
fn bytes_that_are_no_text_become_hexadecimal() {
    assert_eq!(body_text(&[0xFF, 0x00], &Names::default()), "hex ff00");
}

#[test]
fn paths_and_the_own_port_are_hidden_in_the_configuration() {
    let text = "a=1\nkvConfigPath=/x/y\nlistenPort=9876\nlistenPort=1\nrocketmqHome=/z\n";
    assert_eq!(
        body(text),
        "a=1\nkvConfigPath=<path>\nlistenPort=<port>\nlistenPort=1\nrocketmqHome=<path>\n"
    );
}

#[test]
fn a_timestamp_of_today_is_hidden_and_another_is_not() {
    let now = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .expect("after 1970")
        .as_millis();
    assert_eq!(
        body(&format!("{{\"counter\":1,\"timestamp\":{now}}}")),
        r#"{"counter":1,"timestamp":<now>}"#
    );
    let old = r#"{"counter":1,"timestamp":1700000000000}"#;
    assert_eq!(body(old), old);
}

#[test]
fn addresses_of_listeners_are_hidden() {
    let listeners = BTreeMap::from([("m".to_owned(), "127.0.0.1:4000".to_owned())]);
    let names = Names { listeners, port: 1 };
    assert_eq!(names.resolve("@m@"), "127.0.0.1:4000");
    assert_eq!(
        body_text(br#"{"0":"127.0.0.1:4000"}"#, &names),
        r#"{"0":"@m@"}"#
    );
}

#[test]
fn a_usual_header_needs_no_text() {
    let header = r#"{"code":0,"flag":1,"language":"JAVA","opaque":7,"serializeTypeCurrentRPC":"JSON","version":479}"#;
    assert_eq!(
        normalise(&reply(0, None, header), Some(7), &Names::default()).header,
        None
    );
}

#[test]
fn an_unusual_header_is_kept_as_text() {
    let null = r#"{"code":0,"extFields":null,"flag":1,"language":"JAVA","opaque":7,"serializeTypeCurrentRPC":"JSON","version":479}"#;
    let answer = normalise(&reply(0, None, null), Some(7), &Names::default());
    let kept = r#"{"code":0,"extFields":null,"flag":1,"language":"JAVA","opaque":<echoed>,"serializeTypeCurrentRPC":"JSON","version":<own>}"#;
    assert_eq!(answer.header.as_deref(), Some(kept));
}

#[test]
fn another_opaque_shows_in_the_header() {
    let header = r#"{"code":0,"flag":1,"language":"JAVA","opaque":7,"serializeTypeCurrentRPC":"JSON","version":479}"#;
    let answer = normalise(&reply(0, None, header), Some(8), &Names::default());
    assert!(
        answer
            .header
            .is_some_and(|header| header.contains("\"opaque\":<other>"))
    );
}

#[test]
fn only_an_exception_s_text_is_hidden() {
    let remark =
        |code, text| normalise(&reply(code, Some(text), "{}"), Some(7), &Names::default()).remark;
    assert_eq!(
        remark(1, "java.lang.NullPointerException, x.y(Z.java:1)").as_deref(),
        Some(SOME_TEXT)
    );
    assert_eq!(
        remark(1, "crc32 not match").as_deref(),
        Some("crc32 not match")
    );
    assert_eq!(
        remark(17, "java.lang.NullPointerException").as_deref(),
        Some("java.lang.NullPointerException")
    );
}
