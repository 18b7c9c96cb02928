//! The KV file (spec 4).

use std::collections::BTreeMap;

use crate::protocol::{
    body::BodyError,
    kv_file::{EMPTY_FILE, KvFile, KvTable, decode_kv_file, write_kv_file},
};

fn table(namespaces: &[(&str, &[(&str, &str)])]) -> KvTable {
    let entries = |entries: &[(&str, &str)]| -> BTreeMap<String, String> {
        entries
            .iter()
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
            .collect()
    };
    namespaces
        .iter()
        .map(|(name, pairs)| ((*name).to_owned(), entries(pairs)))
        .collect()
}

/// The file of a table.
pub(super) fn written(table: &KvTable) -> Vec<u8> {
    let mut out = Vec::new();
    let namespaces = table.iter().map(|(name, entries)| {
        let entries = entries.iter();
        let entries = entries.map(|(key, value)| (key.as_str(), value.as_str()));
        (name.as_str(), entries)
    });
    write_kv_file(&mut out, namespaces);
    out
}

#[test]
fn a_table_is_written_as_java_writes_it_and_read_back() {
    let table = table(&[
        ("ORDER_TOPIC_CONFIG", &[("TopicA", "broker-a:4")]),
        ("ns", &[]),
    ]);
    let bytes = written(&table);
    assert_eq!(
        String::from_utf8_lossy(&bytes),
        r#"{"configTable":{"ORDER_TOPIC_CONFIG":{"TopicA":"broker-a:4"},"ns":{}}}"#
    );
    assert_eq!(decode_kv_file(&bytes), Ok(KvFile::Table(table)));
    assert_eq!(written(&KvTable::new()), EMPTY_FILE);
}

#[test]
fn an_empty_file_is_not_an_empty_table() {
    for text in ["", " \n\t", "null", " null ", "\u{feff}"] {
        assert_eq!(
            decode_kv_file(text.as_bytes()),
            Ok(KvFile::Empty),
            "{text:?}"
        );
    }
    assert_eq!(
        decode_kv_file(br#"{"configTable":{}}"#),
        Ok(KvFile::Table(KvTable::new()))
    );
}

#[test]
fn files_are_read_leniently() {
    let expected = table(&[("ns", &[("a", "1"), ("b", "true"), ("c", "")])]);
    for text in [
        r#"{"x":[1],"configTable":{"ns":{"a":1,"b":true,"c":"","d":null},"gone":null}}"#,
        "{configTable:{ns:{'a':'1',b:\"true\",c:''}}}\n",
        "{ /* edited by hand */ \"configTable\" : { \"ns\" : { \"a\" : \"1\", \"b\" : \"true\", \"c\" : \"\", }, } }\n",
        r#"{"configTable":null,"configTable":{"ns":null,"ns":{"a":"0","a":"1","b":"true","c":"","d":"x","d":null}}}"#,
    ] {
        assert_eq!(
            decode_kv_file(text.as_bytes()),
            Ok(KvFile::Table(expected.clone())),
            "{text}"
        );
    }
    assert_eq!(
        decode_kv_file(b"{\"configTable\":{\"ns\":{\"a\":\"\xff\"}}}"),
        Ok(KvFile::Table(table(&[("ns", &[("a", "\u{fffd}")])])))
    );
}

#[test]
fn other_files_are_errors() {
    for text in ["{}", r#"{"configTable":null}"#, r#"{"other":{}}"#] {
        assert_eq!(
            decode_kv_file(text.as_bytes()),
            Err(BodyError::Missing {
                member: "configTable"
            }),
            "{text}"
        );
    }
    for text in [
        "[]",
        "1",
        "x",
        "{",
        r#"{"configTable":[]}"#,
        r#"{"configTable":{"ns":1}}"#,
        r#"{"configTable":{"ns":{"a":"b"}}"#,
        r#"{"configTable":{}}x"#,
    ] {
        assert!(
            matches!(decode_kv_file(text.as_bytes()), Err(BodyError::Json(_))),
            "{text}"
        );
    }
}
