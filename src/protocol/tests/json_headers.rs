//! Every row of the leniency table of spec 1.2.

use super::{frame_of, with_json_header};
use crate::{
    limits::{EXT_FIELDS_MAX, JSON_DEPTH_MAX},
    protocol::{command::RemotingCommand, header::DecodeError, json::JsonError},
};

/// Checks that the header is read as code 105, opaque 7, version 479, flag 2, topic "t".
fn assert_read(header: &str) {
    with_json_header(header, |command| match command {
        Ok(command) => assert_eq!(
            (
                command.code,
                command.opaque,
                command.version,
                command.flag,
                command.ext.get("topic")
            ),
            (105, 7, 479, 2, Some("t")),
            "{header}"
        ),
        Err(error) => panic!("{header}: {error}"),
    });
}

fn assert_refused(header: impl AsRef<[u8]>) {
    let header = header.as_ref();
    with_json_header(header, |command| {
        assert!(command.is_err(), "{}", String::from_utf8_lossy(header));
    });
}

#[test]
fn order_unknown_members_blanks_escapes_and_repetitions_do_not_matter() {
    for header in [
        r#"{"code":105,"extFields":{"topic":"t"},"flag":2,"language":"JAVA","opaque":7,"serializeTypeCurrentRPC":"JSON","version":479}"#,
        r#"{"version":479,"opaque":7,"flag":2,"extFields":{"topic":"t"},"code":105}"#,
        r#"{"x":{"y":[1,{"z":[]},"]"]},"code":105,"remark":{"a":1},"opaque":7,"version":479,"flag":2,"extFields":{"topic":"t"},"body":"text"}"#,
        " \t\r\n{ \"code\" : 105 , \"opaque\":\n7,\"version\" :479 ,\"flag\": 2,\"extFields\" : { \"topic\" : \"t\" } } \n",
        "{\"code\":105,\"opaque\":7,\"version\":479,\"flag\":2,\"extFields\":{\"topic\":\"t\"}}\n",
        "{\"code\":105,\"opaque\":7,\"version\":479,\"flag\":2,\"extFields\":{\"topic\":\"t\"}}\0\0",
        r#"{"\u0063ode":105,"opaqu\u0065":7,"\x76ersion":479,"flag":2,"extFields":{"t\u006Fpic":"t"}}"#,
        r#"{"code":1,"code":105,"opaque":8,"opaque":7,"version":479,"flag":2,"extFields":{"topic":"other","x":"y"},"extFields":{"topic":"u","topic":"t"}}"#,
    ] {
        assert_read(header);
    }
    let deep = format!(
        r#"{{"x":{}{},"code":105,"opaque":7,"version":479,"flag":2,"extFields":{{"topic":"t"}}}}"#,
        r#"{"a":["#.repeat(JSON_DEPTH_MAX / 2),
        "]}".repeat(JSON_DEPTH_MAX / 2)
    );
    assert_read(&deep);
}

#[test]
fn spellings_of_fastjson_are_taken() {
    for header in [
        "{'code':105,'opaque':7,'version':479,'flag':2,'extFields':{'topic':'t'}}",
        r#"{"code":105,"opaque":7,"version":479,"flag":2,"extFields":{"topic":"t",},}"#,
        "/* a */{/* b */\"code\"/**/:/* * */105,// c\n\"opaque\":7,\"version\":479,\"flag\":2,\"extFields\":{\"topic\":\"t\"}}// d",
        r#"{"code":0105,"opaque":+7,"version":479.,"flag":2L,"extFields":{"topic":"t"}}"#,
        r#"{code:105,opaque:7,version:479,flag:2,extFields:{topic:"t"}}"#,
        "\u{feff}{\"code\":105,\"opaque\":7,\"version\":479,\"flag\":2,\"extFields\":{\"topic\":\"t\"}}",
        r#"{,"code":105,,"opaque":7,"version":479,"flag":2,"extFields":{,,"topic":"t"}}"#,
        r#"{"code":105,"opaque":7,"version":479,"flag":2,"extFields":{"topic":"t","a":NaN,"b":NULL,"c":undefined}}"#,
        // Refused by one column, taken by the other.
        r#"{"code":105 "opaque":7"version":479,"flag":2,"extFields":{"topic":"t"}}"#,
        r#"{"@type":"java.lang.Class","code":105,"opaque":7,"version":479,"flag":2,"extFields":{"topic":"t"}}"#,
        r#"{"Code":1,"ext_fields":{},"code":105,"opaque":7,"version":479,"flag":2,"extFields":{"topic":"t"}}"#,
    ] {
        assert_read(header);
    }
}

#[test]
fn escapes_of_fastjson_are_taken() {
    let header = "{\"extFields\":{\"a\":\"\\'\\v\\0\\x41\\/\\\"\\\\\\b\\f\\n\\r\\t\\7\",\"b\":\"\u{1}\n\t\",\"c\":\"\\u4E2d\\uD83D\\uDE00\"}}";
    with_json_header(header, |command| {
        let ext = command.expect("every escape is known").ext;
        assert_eq!(ext.get("a"), Some("'\u{b}\0A/\"\\\u{8}\u{c}\n\r\t\u{7}"));
        assert_eq!(ext.get("b"), Some("\u{1}\n\t"));
        assert_eq!(ext.get("c"), Some("中😀"));
    });
    for escape in ["a", "8", "x4", "xg0", "u12", "u12g4", "中", ""] {
        assert_refused(format!("{{\"extFields\":{{\"a\":\"\\{escape}\"}}}}"));
        assert_refused(format!("{{\"extFields\":{{\"a\":\"\\{escape}"));
    }
}

#[test]
fn a_lone_surrogate_is_a_question_mark() {
    let header = r#"{"extFields":{"a":"x\uD800y","b":"\uDC00","c":"\uD800\uD83D\uDE00","d":"\ud800\u0041"}}"#;
    with_json_header(header, |command| {
        let ext = command.expect("lone surrogates are taken").ext;
        assert_eq!(ext.get("a"), Some("x?y"));
        assert_eq!(ext.get("b"), Some("?"));
        assert_eq!(ext.get("c"), Some("?😀"));
        assert_eq!(ext.get("d"), Some("?A"));
    });
}

#[test]
fn numbers_may_be_texts_floats_truths_or_null() {
    for (number, code) in [
        ("\"105\"", 105),
        ("'105'", 105),
        ("105.0", 105),
        ("1e2", 100),
        ("1E+2", 100),
        ("true", 1),
        ("false", 0),
        ("null", 0),
        ("-0", 0),
    ] {
        with_json_header(format!("{{\"code\":{number}}}"), |command| {
            assert_eq!(command.map(|command| command.code), Ok(code), "{number}");
        });
    }
    for number in ["2147483647", "-2147483648", "\"-5\""] {
        with_json_header(format!("{{\"opaque\":{number}}}"), |command| {
            let text = number.trim_matches('"');
            assert_eq!(
                command.map(|command| command.opaque.to_string()),
                Ok(text.to_owned())
            );
        });
    }
}

#[test]
fn other_values_are_refused_where_a_number_is_due() {
    for member in ["code", "opaque", "version", "flag"] {
        for value in [
            "\"x\"",
            "{}",
            "[]",
            "[1]",
            "--1",
            "1.2.3",
            "0x10",
            "1-1",
            "truex",
            "x",
            "",
            "9223372036854775808",
        ] {
            assert_refused(format!("{{\"{member}\":{value}}}"));
        }
    }
    for member in ["code", "opaque", "version", "flag"] {
        for value in ["2147483648", "-2147483649", "\"2147483648\"", "1e10"] {
            assert_refused(format!("{{\"{member}\":{value}}}"));
        }
    }
}

#[test]
fn ext_values_of_any_kind_become_their_text() {
    for (value, text) in [
        ("12", Some("12")),
        ("-7", Some("-7")),
        ("+12", Some("12")),
        ("012", Some("12")),
        ("12L", Some("12")),
        ("1.5", Some("1.5")),
        (
            "123456789012345678901234567890",
            Some("123456789012345678901234567890"),
        ),
        ("true", Some("true")),
        ("false", Some("false")),
        ("null", None),
        ("{\"a\":1}", Some("{\"a\":1}")),
        (
            "{ 'a' : [ 1 , \"\\u0041\" , null,true,] , b : { } }",
            Some("{\"a\":[1,\"A\",null,true],\"b\":{}}"),
        ),
        ("[]", Some("[]")),
        ("\"\"", Some("")),
    ] {
        with_json_header(
            format!("{{\"extFields\":{{\"k\":{value},\"l\":\"end\"}}}}"),
            |command| {
                let command = command.unwrap_or_else(|error| panic!("{value}: {error}"));
                assert_eq!(command.ext.get("k"), text, "{value}");
                assert_eq!(command.ext.get("l"), Some("end"), "{value}");
            },
        );
    }
    for value in [
        "x", "tru", "1x", "1.2.3", "{", "[1", "{1}", "{\"a\"}", "}", "]", ":",
    ] {
        assert_refused(format!("{{\"extFields\":{{\"k\":{value}}}}}"));
    }
}

#[test]
fn a_later_null_hides_an_earlier_value() {
    with_json_header(r#"{"extFields":{"k":"v","k":null}}"#, |command| {
        assert_eq!(command.expect("legal").ext.get("k"), None);
    });
}

#[test]
fn ext_fields_may_be_missing_null_or_empty_but_nothing_else() {
    for header in [
        r#"{"code":1}"#,
        r#"{"extFields":null}"#,
        r#"{"extFields":{}}"#,
        r#"{"remark":"","extFields":{}}"#,
    ] {
        with_json_header(header, |command| {
            assert!(command.expect("legal").ext.is_empty(), "{header}");
        });
    }
    for value in ["[]", "\"x\"", "1", "true", "\"\""] {
        assert_refused(format!("{{\"extFields\":{value}}}"));
    }
}

#[test]
fn a_header_has_no_more_ext_fields_than_the_limit() {
    let with_fields = |count| format!("{{\"extFields\":{{{}}}}}", "\"a\":\"b\",".repeat(count));
    with_json_header(with_fields(EXT_FIELDS_MAX), |command| {
        assert_eq!(command.map(|command| command.ext.len()), Ok(EXT_FIELDS_MAX));
    });
    with_json_header(with_fields(EXT_FIELDS_MAX + 1), |command| {
        assert_eq!(
            command,
            Err(DecodeError::TooManyExtFields {
                max: EXT_FIELDS_MAX
            })
        );
    });
}

#[test]
fn any_language_name_passes_and_any_number_in_range() {
    for language in ["\"JAVA\"", "\"KLINGON\"", "\"\"", "null", "0", "13", "'GO'"] {
        with_json_header(
            format!("{{\"code\":5,\"language\":{language}}}"),
            |command| {
                assert_eq!(command.map(|command| command.code), Ok(5), "{language}");
            },
        );
    }
    for language in ["14", "-1", "{}", "[]", "99999999999"] {
        assert_refused(format!("{{\"code\":5,\"language\":{language}}}"));
    }
}

#[test]
fn invalid_utf8_is_refused() {
    for bad in [&b"\xff"[..], b"\xc3", b"\xed\xa0\x80", b"\xc0\x80"] {
        let mut header = b"{\"remark\":\"".to_vec();
        header.extend_from_slice(bad);
        header.extend_from_slice(b"\"}");
        assert_refused(&header);
    }
}

#[test]
fn what_is_no_single_object_is_refused() {
    for header in [
        "{}x",
        "{}{}",
        "{} {}",
        "{}]",
        "[]",
        "[{}]",
        "null",
        "1",
        "\"{}\"",
        "true",
        "",
        " ",
        "\n\n",
        "\0",
        "{",
        "}",
        "{\"",
        "{\"a",
        "{\"a\"",
        "{\"a\":",
        "{\"a\":1",
        "{\"a\":1,",
        "{\"a\":,1}",
        "{\"a\",:1}",
        "{\"a\"}",
        "{:1}",
        "{\"a\":1]",
        "{\"a\":[1}",
        "{\"a\":[}",
        "{/*}",
        "{}/",
        "{}/*",
        "{\"a\":/}",
        "{\"a\" 1}",
        "{\"a\":\"b}",
        "{'a\":1}",
        "x{}",
        ",{}",
        "{{}}",
        "{[]}",
        "\u{feff}",
        "{#}",
        "{}\u{feff}",
    ] {
        assert_refused(header);
    }
}

#[test]
fn an_empty_object_is_code_0() {
    with_json_header("{}", |command| {
        let command = command.expect("legal");
        assert_eq!(
            (command.code, command.opaque, command.version, command.flag),
            (0, 0, 0, 0)
        );
        assert!(command.ext.is_empty());
    });
}

#[test]
fn a_body_follows_the_header_unread() {
    let frame = frame_of(0, b"{\"code\":103}", b"}{\xff");
    let command = RemotingCommand::decode(&frame).expect("legal");
    assert_eq!(command.body, b"}{\xff");
}

#[test]
fn nesting_is_refused_beyond_the_limit_wherever_it_stands() {
    for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
        for depth in [JSON_DEPTH_MAX + 1, 100_000] {
            for member in ["x", "remark", "extFields\":{\"k"] {
                let header = format!(
                    "{{\"{member}\":{}{}",
                    open.repeat(depth),
                    close.repeat(depth)
                );
                with_json_header(header, |command| {
                    assert!(matches!(
                        command,
                        Err(DecodeError::Json(JsonError::TooDeep {
                            max: JSON_DEPTH_MAX,
                            ..
                        }))
                    ));
                });
            }
        }
    }
}
