//! The binary header: lengths that lie, entries that do not fit, values that cannot be carried.

use super::Theme;
use super::build::{get, put, route};
use crate::frame::{BinaryHeader, Codec, Frame, binary_entry};

/// A request for a KV entry that is not there.
fn ask() -> BinaryHeader {
    BinaryHeader {
        code: 101,
        version: 479,
        opaque: 4242,
        ext: [
            binary_entry(b"namespace", b"none"),
            binary_entry(b"key", b"k"),
        ]
        .concat(),
        ..BinaryHeader::default()
    }
}

fn send(theme: &mut Theme, id: &str, header: Vec<u8>) {
    theme.ask(
        id,
        Frame {
            opaque: Some(4242),
            ..Frame::with_header_bytes(Codec::RocketMq, header)
        },
    );
}

pub(super) fn theme() -> Theme {
    let mut theme = Theme::new("header-binary");
    fields(&mut theme);
    entries(&mut theme);
    lengths(&mut theme);
    values(&mut theme);
    theme
}

fn fields(theme: &mut Theme) {
    send(theme, "plain", ask().encode());
    theme.ask("through-builder", get("none", "k").binary());
    theme.ask("remark", get("none", "k").binary().remark("hello"));
    for language in [1, 9, 12, 13, 14, 99, 255] {
        send(
            theme,
            &format!("language-{language}"),
            BinaryHeader { language, ..ask() }.encode(),
        );
    }
    for code in [0, 47, -1, i16::MAX, i16::MIN] {
        send(
            theme,
            &format!("code-{code}"),
            BinaryHeader { code, ..ask() }.encode(),
        );
    }
    theme.ask("unknown-code", Frame::request(4711).binary());
    theme.ask("no-map", get("none", "k").no_ext().binary());
    theme.ask("cluster-info", Frame::request(106).binary());
    theme.ask("route-unknown", route("none-such").binary());
    theme.ask("system-error", Frame::request(904).binary());
    theme.quiet("oneway", get("none", "k").binary().oneway());
    theme.quiet("response", get("none", "k").binary().flag(1));
}

/// Entries that are cut, or whose lengths lie, after a good one.
const BROKEN_ENTRIES: [(&str, &[u8]); 9] = [
    ("entry-cut-in-key-length", b"\0"),
    ("entry-key-length-alone", b"\0\x03"),
    ("entry-cut-in-key", b"\0\x03ke"),
    ("entry-cut-in-value-length", b"\0\x03key\0\0"),
    ("entry-cut-in-value", b"\0\x03key\0\0\0\x05x"),
    ("entry-key-length-negative", b"\xff\xffk"),
    ("entry-value-length-negative", b"\0\x03key\xff\xff\xff\xffx"),
    ("entry-value-length-huge", b"\0\x03key\x7f\xff\xff\xffx"),
    ("entry-value-longer-than-map", b"\0\x03key\0\0\x01\0x"),
];

fn entries(theme: &mut Theme) {
    let with = |id: &'static str, entries: &[(&[u8], &[u8])]| {
        let entries: Vec<Vec<u8>> = entries
            .iter()
            .map(|(key, value)| binary_entry(key, value))
            .collect();
        (
            id,
            BinaryHeader {
                ext: entries.concat(),
                ..ask()
            }
            .encode(),
        )
    };
    let (name, none, key) = (
        b"namespace",
        (&b"namespace"[..], &b"none"[..]),
        (&b"key"[..], &b"k"[..]),
    );
    let many: Vec<String> = (0..1000).map(|number| format!("f{number}")).collect();
    let many: Vec<(&[u8], &[u8])> = many
        .iter()
        .map(|name| (name.as_bytes(), &b"v"[..]))
        .chain([none, key])
        .collect();
    for (id, header) in [
        with("empty-value", &[(name, b""), key]),
        with("empty-key", &[(b"", b"x"), none, key]),
        with("empty-key-and-value", &[(b"", b""), none, key]),
        with("repeated-key", &[(name, b"first"), key, (name, b"last")]),
        with("invalid-utf8-value", &[(name, b"a\xFFb"), key]),
        with("invalid-utf8-key", &[(b"\xFF", b"x"), none, key]),
        with("non-ascii-value", &[(name, "中é😀".as_bytes()), key]),
        with("long-value", &[(name, &[b'n'; 600]), key]),
        with("long-key", &[(&[b'k'; 32_767], b"x"), none, key]),
        with("1000-entries", &many),
    ] {
        send(theme, id, header);
    }
    for (id, bytes) in BROKEN_ENTRIES {
        let ext = [&binary_entry(name, b"none"), bytes].concat();
        send(theme, id, BinaryHeader { ext, ..ask() }.encode());
    }
}

fn lengths(theme: &mut Theme) {
    let header = ask();
    let map = i32::try_from(header.ext.len()).expect("small");
    for (id, remark, ext) in [
        ("remark-length-negative", -1, map),
        ("remark-length-least", i32::MIN, map),
        ("remark-longer-than-header", 1000, map),
        ("remark-length-huge", i32::MAX, map),
        ("map-length-negative", 0, -1),
        ("map-length-least", 0, i32::MIN),
        ("map-longer-than-header", 0, 1000),
        ("map-length-huge", 0, i32::MAX),
        ("map-one-too-long", 0, map + 1),
        ("map-one-too-short", 0, map - 1),
        ("map-length-zero-with-entries", 0, 0),
    ] {
        send(theme, id, header.encode_with_lengths(remark, ext));
    }
    let bytes = header.encode();
    for length in [0, 1, 2, 10, 16, 17, 20] {
        send(
            theme,
            &format!("header-cut-at-{length}"),
            bytes[..length].to_vec(),
        );
    }
    send(
        theme,
        "header-of-21-bytes",
        BinaryHeader {
            ext: Vec::new(),
            ..ask()
        }
        .encode(),
    );
    send(
        theme,
        "header-with-tail",
        [bytes.clone(), b"tail".to_vec()].concat(),
    );
    let tailed = [
        BinaryHeader { code: 100, ..ask() }.encode(),
        b"tail".to_vec(),
    ]
    .concat();
    send(theme, "header-with-tail-and-body", tailed);
}

/// What a binary header cannot carry does not arrive.
fn values(theme: &mut Theme) {
    theme.ask("put-empty-value", put("hb", "empty", "").binary());
    theme.ask("get-empty-value", get("hb", "empty").binary());
    theme.ask("put-empty-namespace", put("", "k", "v").binary());
    theme.ask("put-empty-key", put("hb", "", "v").binary());
    theme.ask("put-value", put("hb", "k", "v=ü").binary());
    theme.ask("get-value", get("hb", "k").binary());
    theme.ask("get-value-over-json", get("hb", "k"));
    theme.ask("empty-topic", route("").binary());
    theme.ask("no-topic", Frame::request(105).empty_ext().binary());
    for version in [0, 36, 37, 317, 399, 401, 413, 479, 10_000, -1] {
        theme.ask(
            &format!("route-version-{version}"),
            route("none-such").binary().version(version),
        );
    }
}
