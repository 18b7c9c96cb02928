//! The rules of spec 1.3.

use super::frame_of;
use crate::{
    limits::EXT_FIELDS_MAX,
    protocol::{
        command::{RemotingCommand, SerializeType},
        header::DecodeError,
        header_rocketmq::RocketMqError,
    },
};

/// A header as its parts, so that each length can be a lie.
struct Header {
    fixed: [u8; 13],
    remark_len: i32,
    remark: Vec<u8>,
    ext_len: i32,
    ext: Vec<u8>,
}

impl Default for Header {
    fn default() -> Self {
        Self {
            fixed: *b"\x00\x69\x00\x01\xdf\x00\x00\x00\x07\x00\x00\x00\x02",
            remark_len: 0,
            remark: vec![],
            ext_len: 0,
            ext: vec![],
        }
    }
}

impl Header {
    fn with_remark(remark: &[u8]) -> Self {
        Self {
            remark_len: i32::try_from(remark.len()).expect("fits"),
            remark: remark.to_vec(),
            ..Self::default()
        }
    }

    fn with_ext(ext: Vec<u8>) -> Self {
        Self {
            ext_len: i32::try_from(ext.len()).expect("fits"),
            ext,
            ..Self::default()
        }
    }

    fn bytes(&self) -> Vec<u8> {
        let mut bytes = self.fixed.to_vec();
        bytes.extend_from_slice(&self.remark_len.to_be_bytes());
        bytes.extend_from_slice(&self.remark);
        bytes.extend_from_slice(&self.ext_len.to_be_bytes());
        bytes.extend_from_slice(&self.ext);
        bytes
    }

    fn check<T>(&self, check: impl FnOnce(Result<RemotingCommand<'_>, DecodeError>) -> T) -> T {
        check(RemotingCommand::decode(&frame_of(
            1,
            &self.bytes(),
            b"body",
        )))
    }

    fn is_refused(&self) -> bool {
        self.check(|command| command.is_err())
    }
}

fn entry(key_len: i16, key: &[u8], value_len: i32, value: &[u8]) -> Vec<u8> {
    let mut entry = key_len.to_be_bytes().to_vec();
    entry.extend_from_slice(key);
    entry.extend_from_slice(&value_len.to_be_bytes());
    entry.extend_from_slice(value);
    entry
}

#[test]
fn the_smallest_header_has_21_bytes() {
    let header = Header::default();
    assert_eq!(header.bytes().len(), 21);
    header.check(|command| {
        let command = command.expect("legal");
        assert_eq!(
            (command.code, command.version, command.opaque, command.flag),
            (105, 479, 7, 2)
        );
        assert_eq!(
            (command.body, command.serialize_type),
            (&b"body"[..], SerializeType::RocketMq)
        );
        assert!(command.ext.is_empty());
    });
    for len in 0..21 {
        assert!(
            RemotingCommand::decode(&frame_of(1, &header.bytes()[..len], b"body of any length"))
                .is_err()
        );
    }
}

#[test]
fn numbers_are_signed() {
    let header = Header {
        fixed: *b"\xff\xff\xff\xff\xfe\xff\xff\xff\xfb\x80\x00\x00\x00",
        ..Header::default()
    };
    header.check(|command| {
        let command = command.expect("any language passes");
        assert_eq!(
            (command.code, command.version, command.opaque, command.flag),
            (-1, -2, -5, i32::MIN)
        );
    });
}

#[test]
fn empty_keys_are_ignored_and_empty_values_are_null() {
    let mut ext = entry(1, b"k", 1, b"v");
    ext.extend(entry(0, b"", 5, b"value"));
    ext.extend(entry(5, b"topic", 0, b""));
    ext.extend(entry(1, b"r", 1, b"1"));
    ext.extend(entry(1, b"r", 1, b"2"));
    ext.extend(entry(1, b"n", 1, b"1"));
    ext.extend(entry(1, b"n", 0, b""));
    Header::with_ext(ext).check(|command| {
        let ext = command.expect("legal").ext;
        assert_eq!(ext.get("k"), Some("v"));
        assert_eq!(ext.get(""), None);
        assert_eq!(ext.get("topic"), None);
        assert_eq!(ext.get("r"), Some("2"), "the last counts");
        assert_eq!(ext.get("n"), None, "a null counts too");
    });
}

#[test]
fn invalid_utf8_becomes_replacement_characters() {
    let ext = entry(2, b"k\xff", 3, b"a\xffb");
    Header::with_ext(ext).check(|command| {
        assert_eq!(
            command.expect("legal").ext.get("k\u{fffd}"),
            Some("a\u{fffd}b")
        );
    });
    assert!(!Header::with_remark(b"\xff\xfe").is_refused());
}

#[test]
fn a_negative_ext_map_length_counts_as_no_map() {
    for ext_len in [-1, i32::MIN] {
        let header = Header {
            ext_len,
            ..Header::with_ext(entry(1, b"k", 1, b"v"))
        };
        header.check(|command| {
            let command = command.expect("legal");
            assert!(command.ext.is_empty());
            assert_eq!(
                command.body, b"body",
                "the body starts behind the header all the same (Q41)"
            );
        });
    }
}

#[test]
fn lengths_that_lie_are_refused() {
    for remark_len in [-1, i32::MIN, 5, 25, i32::MAX] {
        let header = Header {
            remark_len,
            ..Header::with_remark(b"hell")
        };
        assert!(header.is_refused(), "{remark_len}");
    }
    for ext_len in [9, 100, i32::MAX] {
        let header = Header {
            ext_len,
            ..Header::with_ext(entry(1, b"k", 1, b"v"))
        };
        assert!(header.is_refused(), "{ext_len}");
    }
    for (key_len, value_len) in [
        (-1, 1),
        (i16::MIN, 1),
        (2, 1),
        (i16::MAX, 1),
        (1, -1),
        (1, i32::MIN),
        (1, 2),
        (1, i32::MAX),
    ] {
        let header = Header::with_ext(entry(key_len, b"k", value_len, b"v"));
        assert!(header.is_refused(), "{key_len} {value_len}");
    }
}

#[test]
fn entries_that_are_cut_are_refused() {
    let whole = entry(1, b"k", 1, b"v");
    for len in 1..whole.len() {
        let mut ext = whole.clone();
        ext.extend_from_slice(&whole[..len]);
        assert!(Header::with_ext(ext).is_refused(), "{len}");
    }
}

#[test]
fn long_keys_and_values_pass() {
    let (key, value) = (vec![b'k'; 32_767], vec![b'v'; 100_000]);
    Header::with_ext(entry(i16::MAX, &key, 100_000, &value)).check(|command| {
        let ext = command.expect("legal").ext;
        assert_eq!(ext.get(&"k".repeat(32_767)).map(str::len), Some(100_000));
    });
}

#[test]
fn a_header_has_no_more_ext_fields_than_the_limit() {
    let ext = |count: usize| entry(1, b"k", 1, b"v").repeat(count);
    assert!(!Header::with_ext(ext(EXT_FIELDS_MAX)).is_refused());
    Header::with_ext(ext(EXT_FIELDS_MAX + 1)).check(|command| {
        assert_eq!(
            command,
            Err(DecodeError::TooManyExtFields {
                max: EXT_FIELDS_MAX
            })
        );
    });
}

#[test]
fn errors_carry_their_numbers() {
    Header {
        remark_len: -3,
        ..Header::default()
    }
    .check(|command| {
        let error = RocketMqError::NegativeLength {
            field: "remark",
            len: -3,
        };
        assert_eq!(command, Err(DecodeError::RocketMq(error)));
        assert_eq!(
            error.to_string(),
            "remark has length -3, 0 or more is allowed"
        );
    });
}
