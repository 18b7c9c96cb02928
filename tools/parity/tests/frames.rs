//! The frame builder and the reply reader against known bytes.

use parity::frame::{BinaryHeader, Codec, Frame, binary_entry, hex};
use parity::reply::{Parsed, Reply, parse};
use parity::script::build::{crc, topics};

fn route() -> Frame {
    Frame::request(105).ext("topic", "TopicTest")
}

fn bytes(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
    let byte = |pair: &[u8]| {
        let pair = std::str::from_utf8(pair).expect("hexadecimal digits are ASCII");
        u8::from_str_radix(pair, 16).expect("only hexadecimal digits were kept")
    };
    digits.chunks(2).map(byte).collect()
}

fn only_reply(bytes: &[u8]) -> Reply {
    match parse(bytes) {
        Parsed::Frame(reply, length) => {
            assert_eq!(length, bytes.len());
            *reply
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_json_request_is_written_as_java_writes_it() {
    let header = "{\"code\":105,\"extFields\":{\"topic\":\"TopicTest\"},\"flag\":0,\"language\":\"JAVA\",\"opaque\":7,\
                  \"serializeTypeCurrentRPC\":\"JSON\",\"version\":479}";
    let frame = route().encode(7);
    assert_eq!(frame.len(), 139);
    assert_eq!(hex(&frame[..8]), "0000008700000083");
    assert_eq!(&frame[8..], header.as_bytes());
}

#[test]
fn a_binary_request_is_written_as_java_writes_it() {
    let expected = "0000002d 01000029 0069 00 01df 00000007 00000000 00000000 00000014 \
                    0005 746f706963 00000009 546f70696354657374";
    assert_eq!(hex(&route().binary().encode(7)), hex(&bytes(expected)));
}

#[test]
fn a_binary_response_is_read() {
    let captured = "00000057 01000053 0000 00 01df 00000001 00000001 00000000 0000003e \
                    000c 686153657276657241646472 0000000e 31302e302e302e313a3130393132 \
                    000a 6d617374657241646472 0000000e 31302e302e302e313a3130393131";
    let reply = only_reply(&bytes(captured));
    assert_eq!(
        (reply.codec, reply.code, reply.flag, reply.opaque),
        (Codec::RocketMq, 0, 1, 1)
    );
    assert_eq!(
        (reply.language.as_str(), reply.version, reply.remark),
        ("JAVA", 479, None)
    );
    let ext = reply.ext.expect("the captured frame has fields");
    assert_eq!(ext["masterAddr"], "10.0.0.1:10911");
    assert_eq!(ext["haServerAddr"], "10.0.0.1:10912");
}

#[test]
fn an_empty_binary_response_has_no_fields() {
    let reply = only_reply(&bytes(
        "00000019 01000015 0000 00 01df 00000001 00000001 00000000 00000000",
    ));
    assert_eq!(
        (reply.ext, reply.remark, reply.body),
        (None, None, Vec::new())
    );
}

#[test]
fn a_json_response_is_read() {
    let header = r#"{"code":22,"extFields":{},"flag":1,"language":"JAVA","opaque":5,"remark":"x","serializeTypeCurrentRPC":"JSON","version":479}"#;
    let reply = only_reply(&parity::frame::frame_bytes(0, header.as_bytes(), b"body"));
    assert_eq!(
        (reply.codec, reply.code, reply.opaque),
        (Codec::Json, 22, 5)
    );
    assert_eq!(reply.remark.as_deref(), Some("x"));
    assert_eq!(reply.ext.map(|ext| ext.len()), Some(0));
    assert_eq!(reply.body, b"body");
}

#[test]
fn an_unfinished_frame_is_partial_and_other_bytes_are_foreign() {
    let frame = route().encode(7);
    for length in 0..frame.len() {
        assert_eq!(parse(&frame[..length]), Parsed::Partial, "at {length}");
    }
    assert_eq!(parse(&[0x16, 3, 3, 0, 1]), Parsed::Foreign);
    assert_eq!(parse(&[0, 0, 0, 0]), Parsed::Foreign);
    assert_eq!(
        parse(&parity::frame::frame_bytes(9, b"{}", b"")),
        Parsed::Foreign
    );
}

#[test]
fn lengths_may_lie() {
    let header = BinaryHeader {
        ext: binary_entry(b"k", b"v"),
        ..BinaryHeader::default()
    };
    let lying = header.encode_with_lengths(-1, 1000);
    assert_eq!(lying.len(), header.encode().len());
    assert_eq!(hex(&lying[13..17]), "ffffffff");
    assert_eq!(hex(&lying[17..21]), "000003e8");
}

#[test]
fn the_opaque_mark_is_replaced() {
    let frame = Frame::with_header_text("{\"opaque\":@opaque@}").encode(42);
    assert_eq!(&frame[8..], b"{\"opaque\":42}");
}

#[test]
fn the_checksum_loses_its_highest_bit() {
    assert_eq!(crc(b"hello"), 907_060_870);
    assert_eq!(crc(b""), 0);
}

#[test]
fn compressed_items_end_with_the_mappings() {
    let table = topics(3, &["TopicTest"]);
    let expected = [
        &bytes("00000038")[..],
        b"{\"counter\":3,\"stateVersion\":0,\"timestamp\":1700000000000}",
        &bytes("00000001 0000001a"),
        b"TopicTest 4 4 6 SINGLE_TAG",
        &bytes("00000002"),
        b"[]",
        &bytes("00000000"),
    ]
    .concat();
    assert_eq!(hex(&table.items()), hex(&expected));
    assert_eq!(
        hex(&table.items_without_mappings()),
        hex(&expected[..expected.len() - 4])
    );
}
