//! Compressed bodies of REGISTER_BROKER (103): by version, line by line, and broken.

use super::Theme;
use super::body_plain::{send, sender};
use super::build::{
    Topics, count, data_version, deflate, gzip, item, route, topics, zlib, zlib_at,
};
use crate::frame::Frame;

/// Versions around the one from which the mapping section is read.
const VERSIONS: [i32; 8] = [37, 317, 399, 401, 412, 413, 479, 10_000];

/// Topic lines; `NAME` stands for `T-<id>`.
const LINES: [(&str, &str); 17] = [
    ("line-five-parts", "NAME 8 7 6 SINGLE_TAG"),
    (
        "line-attributes",
        "NAME 8 8 6 SINGLE_TAG {\"+message.type\":\"NORMAL\"}",
    ),
    ("line-broken-attributes", "NAME 8 8 6 SINGLE_TAG {x"),
    ("line-seven-parts", "NAME 8 8 6 SINGLE_TAG {} more"),
    ("line-four-parts", "NAME 8 8 6"),
    ("line-name-alone", "NAME"),
    ("line-empty", ""),
    ("line-two-blanks", "NAME  8 8 6 SINGLE_TAG"),
    ("line-trailing-blank", "NAME 8 8 6 SINGLE_TAG "),
    ("line-multi-tag", "NAME 8 8 6 MULTI_TAG"),
    ("line-odd-tag", "NAME 8 8 6 ODD_TAG"),
    ("line-text-number", "NAME x 8 6 SINGLE_TAG"),
    ("line-negative-number", "NAME -8 8 6 SINGLE_TAG"),
    ("line-plus-number", "NAME +8 8 6 SINGLE_TAG"),
    ("line-number-overflow", "NAME 8 99999999999 6 SINGLE_TAG"),
    ("line-zero-queues", "NAME 0 0 0 SINGLE_TAG"),
    ("line-non-ascii", "NAME 8 8 6 SINGLE_TAG {\"é\":\"中\"}"),
];

pub(super) fn theme() -> Theme {
    let mut theme = Theme::new("compressed");
    send(&mut theme, "first", compress(&table("first").items()));
    versions(&mut theme);
    labels(&mut theme);
    sections(&mut theme);
    lines(&mut theme);
    streams(&mut theme);
    lengths(&mut theme);
    not_json(&mut theme);
    send(
        &mut theme,
        "last",
        compress(&topics(200, &["T-last", "T-second"]).items()),
    );
    theme
}

fn table(id: &str) -> Topics {
    topics(100, &[&format!("T-{id}"), "T-second"])
}

fn compress(items: &[u8]) -> Frame {
    raw(zlib(items))
}

fn raw(body: Vec<u8>) -> Frame {
    sender().register().with("compressed", "true").body(body)
}

fn versions(theme: &mut Theme) {
    for version in VERSIONS {
        let id = format!("version-{version}");
        send(theme, &id, compress(&table(&id).items()).version(version));
        let id = format!("without-mappings-version-{version}");
        send(
            theme,
            &id,
            compress(&table(&id).items_without_mappings()).version(version),
        );
    }
    send(
        theme,
        "version-36",
        compress(&table("version-36").items()).version(36),
    );
    send(
        theme,
        "negative-version",
        compress(&table("negative-version").items()).version(-1),
    );
    send(
        theme,
        "binary-header",
        compress(&table("binary-header").items()).binary(),
    );
}

/// Bodies that are not what `compressed` says.
fn labels(theme: &mut Theme) {
    let items = |id: &str| table(id).items();
    let upper = compress(&items("upper-case-true")).with("compressed", "TRUE");
    send(theme, "upper-case-true", upper);
    let mislabelled = compress(&items("mislabelled")).with("compressed", "false");
    send(theme, "mislabelled", mislabelled);
    let level = raw(zlib_at(&items("mislabelled-level-1"), 1)).without("compressed");
    send(theme, "mislabelled-level-1", level);
    let old = compress(&table("mislabelled-of-4.9").items_without_mappings());
    send(
        theme,
        "mislabelled-of-4.9",
        old.with("compressed", "false").version(399),
    );
    let json = zlib(table("mislabelled-json").body().as_bytes());
    send(theme, "mislabelled-json", sender().register().body(json));
    send(
        theme,
        "json-as-compressed",
        raw(table("json-as-compressed").body().into_bytes()),
    );
    send(
        theme,
        "no-body",
        sender().register().with("compressed", "true"),
    );
}

fn sections(theme: &mut Theme) {
    let mapping = r#"{"bname":"body-a","currIdMap":{0:0,1:1},"dirty":false,"epoch":9007199254740993,"scope":"__global__","topic":"T-mapping","totalQueues":4}"#;
    let mapped = topics(101, &["T-mapping", "T-second"]).mapping("T-mapping", mapping);
    send(theme, "mapping", compress(&mapped.items()));
    let served = topics(102, &["T-filter-servers"]).filter_servers("[\"f:1\"]");
    send(theme, "filter-servers", compress(&served.items()));
    send(
        theme,
        "filter-servers-away",
        compress(&topics(103, &["T-filter-servers-away"]).items()),
    );
    send(theme, "no-topics", compress(&topics(104, &[]).items()));
}

/// A compressed body with the given topic lines.
fn with_lines(lines: &[&str]) -> Frame {
    let lines_as_items: Vec<u8> = lines.iter().flat_map(|line| item(line)).collect();
    let version = item(&data_version(110));
    let parts = [
        &version[..],
        &count(lines.len()),
        &lines_as_items,
        &item("[]"),
        &count(0),
    ];
    compress(&parts.concat())
}

fn lines(theme: &mut Theme) {
    for (id, line) in LINES {
        let line = line.replace("NAME", &format!("T-{id}"));
        send(theme, id, with_lines(&[&line, "T-second 4 4 6 SINGLE_TAG"]));
    }
    let twice = [
        "T-line-twice 1 1 6 SINGLE_TAG",
        "T-line-twice 2 2 6 SINGLE_TAG",
    ];
    send(theme, "line-twice", with_lines(&twice));
}

fn streams(theme: &mut Theme) {
    let items = |id: &str| table(id).items();
    for level in [0, 1, 6] {
        let id = format!("level-{level}");
        send(theme, &id, raw(zlib_at(&items(&id), level)));
    }
    send(theme, "raw-deflate", raw(deflate(&items("raw-deflate"))));
    send(theme, "gzip", raw(gzip(&items("gzip"))));
    let tailed = [zlib(&items("bytes-after-stream")), b"tail".to_vec()].concat();
    send(theme, "bytes-after-stream", raw(tailed));
    let tailed = [items("bytes-after-items"), b"tail".to_vec()].concat();
    send(theme, "bytes-after-items", compress(&tailed));
    let mut cut = zlib(&items("no-checksum"));
    cut.truncate(cut.len() - 4);
    send(theme, "no-checksum", raw(cut));
    let mut wrong = zlib(&items("wrong-checksum"));
    *wrong.last_mut().expect("a stream is not empty") ^= 1;
    send(theme, "wrong-checksum", raw(wrong));
    let whole = zlib(&items("cut-stream"));
    send(theme, "cut-stream", raw(whole[..whole.len() / 2].to_vec()));
    send(theme, "stream-header-alone", raw(vec![0x78, 0xDA]));
    send(theme, "one-byte", raw(vec![0x78]));
    send(
        theme,
        "odd-bytes",
        raw((0..64).map(|number: u8| number.wrapping_mul(37)).collect()),
    );
    send(theme, "empty-stream", compress(&[]));
}

fn lengths(theme: &mut Theme) {
    let whole = table("cut-items").items();
    for length in [2, 4, 30, 60, 64, 80] {
        send(
            theme,
            &format!("cut-items-at-{length}"),
            compress(&whole[..length]),
        );
    }
    let version = item(&data_version(130));
    let (none, list) = (count(0), item("[]"));
    let lengths: [(&str, i32); 3] = [("negative", -1), ("least", i32::MIN), ("too-large", 1000)];
    for (name, length) in lengths {
        let length = length.to_be_bytes();
        let line = b"T 1 1 6 SINGLE_TAG";
        let cases: [(&str, Vec<u8>); 5] = [
            ("version-length", [&length[..], &whole[4..]].concat()),
            (
                "topic-count",
                [&version[..], &length, &list, &none].concat(),
            ),
            (
                "topic-length",
                [&version[..], &count(1), &length, line, &list, &none].concat(),
            ),
            (
                "filter-length",
                [&version[..], &none, &length, b"[]", &none].concat(),
            ),
            (
                "mapping-count",
                [&version[..], &none, &list, &length].concat(),
            ),
        ];
        for (id, items) in cases {
            theme.on("a").ask(&format!("{id}-{name}"), compress(&items));
        }
    }
    theme.ask("still-serves", route("T-first"));
}

fn not_json(theme: &mut Theme) {
    let version = item(&data_version(130));
    let (none, list) = (count(0), item("[]"));
    let cases: [(&str, Vec<u8>); 5] = [
        (
            "version-not-json",
            [&item("{x")[..], &none, &list, &none].concat(),
        ),
        (
            "version-empty",
            [&item("")[..], &none, &list, &none].concat(),
        ),
        (
            "version-null",
            [&item("null")[..], &none, &list, &none].concat(),
        ),
        (
            "filter-servers-not-json",
            [&version[..], &none, &item("[x"), &none].concat(),
        ),
        (
            "mapping-not-json",
            [&version[..], &none, &list, &count(1), &item("{x")].concat(),
        ),
    ];
    for (id, items) in cases {
        theme.on("a").ask(id, compress(&items));
    }
}
