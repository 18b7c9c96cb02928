//! Frames themselves: lengths, types, pieces, flags, and what is no frame at all.

use super::build::{get, route};
use super::{RAW_OPAQUE, Theme};
use crate::frame::{Frame, frame_bytes};

/// A request that is answered with code 22 whatever has been registered.
fn plain() -> Frame {
    get("none", "none")
}

fn plain_bytes() -> Vec<u8> {
    plain().encode(RAW_OPAQUE)
}

/// A length word and what follows it.
fn with_length(total: i32, rest: &[u8]) -> Vec<u8> {
    [&total.to_be_bytes(), rest].concat()
}

/// The frame with its header-length word replaced.
fn with_header_word(word: u32) -> Vec<u8> {
    let mut bytes = plain_bytes();
    bytes[4..8].copy_from_slice(&word.to_be_bytes());
    bytes
}

pub(super) fn theme() -> Theme {
    let mut theme = Theme::new("framing");
    pieces(&mut theme);
    lengths(&mut theme);
    header_words(&mut theme);
    other_protocols(&mut theme);
    flags(&mut theme);
    proxy(&mut theme);
    theme
}

fn pieces(theme: &mut Theme) {
    let bytes = plain_bytes();
    theme.raw("one-piece", bytes.clone());
    theme.chunks(
        "byte-by-byte",
        bytes.iter().map(|byte| vec![*byte]).collect(),
    );
    for at in [1, 4, 5, 8, 12, 100] {
        let (front, back) = bytes.split_at(at);
        theme.chunks(
            &format!("split-at-{at}"),
            vec![front.to_vec(), back.to_vec()],
        );
    }
    let binary = plain().binary().encode(RAW_OPAQUE);
    theme.chunks(
        "binary-byte-by-byte",
        binary.iter().map(|byte| vec![*byte]).collect(),
    );
    theme.pipeline(
        "five-pipelined",
        (1..=5)
            .map(|number| get("none", &format!("k{number}")))
            .collect(),
    );
    theme.pipeline(
        "pipelined-mixed-codecs",
        vec![
            plain(),
            plain().binary(),
            route("none-such"),
            route("none-such").binary(),
        ],
    );
    theme.pipeline(
        "pipelined-with-oneway",
        vec![
            plain().opaque(31),
            plain().oneway().opaque(32),
            plain().opaque(33),
        ],
    );
    theme.pipeline(
        "pipelined-with-response",
        vec![
            plain().opaque(34),
            plain().flag(1).opaque(35),
            plain().opaque(36),
        ],
    );
    theme.fate("good-then-zeros", [bytes.clone(), vec![0; 16]].concat());
    theme.fate(
        "good-then-text",
        [bytes.clone(), b"GET / HTTP/1.1\r\n\r\n".to_vec()].concat(),
    );
    theme.unfinished("cut-in-length", bytes[..3].to_vec());
    theme.unfinished("cut-after-length", bytes[..4].to_vec());
    theme.unfinished("cut-in-header", bytes[..40].to_vec());
    theme.unfinished("cut-before-last-byte", bytes[..bytes.len() - 1].to_vec());
    theme.unfinished("nothing-sent", Vec::new());
}

fn lengths(theme: &mut Theme) {
    for (name, total) in [
        ("zero", 0),
        ("one", 1),
        ("three", 3),
        ("minus-one", -1),
        ("least", i32::MIN),
        ("greatest", i32::MAX),
    ] {
        theme.raw(&format!("length-{name}"), with_length(total, &[0; 16]));
    }
    theme.raw("length-four-no-header", with_length(4, &[0; 4]));
    theme.raw("length-four-binary", with_length(4, &[1, 0, 0, 0]));
    theme.unfinished(
        "length-at-limit",
        with_length(16_777_212, &plain_bytes()[4..]),
    );
    theme.raw(
        "length-above-limit",
        with_length(16_777_213, &plain_bytes()[4..]),
    );
    theme.raw("length-17-mib", with_length(17 << 20, &[0; 12]));
    theme.raw(
        "length-above-limit-alone",
        [16_777_213_i32.to_be_bytes(), [0; 4], [0; 4]].concat(),
    );
}

fn header_words(theme: &mut Theme) {
    let length = u32::try_from(plain_bytes().len() - 8).expect("small");
    theme.raw("header-longer-than-frame", with_header_word(length + 1));
    theme.raw("header-of-16-mib", with_header_word(0x00FF_FFFF));
    theme.raw("header-one-too-short", with_header_word(length - 1));
    theme.raw("header-length-zero", with_header_word(0));
    for kind in [2, 3, 127, 128, 255] {
        theme.raw(
            &format!("type-{kind}"),
            with_header_word((kind << 24) | length),
        );
    }
    theme.raw(
        "json-under-binary-type",
        with_header_word((1 << 24) | length),
    );
    let binary = plain().binary().encode(RAW_OPAQUE);
    theme.raw("binary-under-json-type", frame_bytes(0, &binary[8..], b""));
    theme.ask("body-ignored", plain().body("some body nobody asked for"));
    theme.ask("body-of-1-mib", plain().body(vec![0x5A; 1 << 20]));
    theme.ask("binary-body-ignored", plain().binary().body("some body"));
}

fn other_protocols(theme: &mut Theme) {
    theme.raw("http-get", "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
    theme.raw("http-post", "POST /x HTTP/1.1\r\nContent-Length: 0\r\n\r\n");
    theme.raw("ssh", "SSH-2.0-OpenSSH_9.2p1\r\n");
    theme.raw("redis", "*1\r\n$4\r\nPING\r\n");
    theme.raw("zeros", vec![0; 64]);
    theme.raw("ones", vec![0xFF; 64]);
    theme.raw("text-line", "hello name server\n");
    theme.raw("tls-alert", [0x15, 3, 3, 0, 2, 2, 40, 0, 0, 0, 0, 0]);
    theme.raw(
        "tls-broken-hello",
        [0x16, 3, 1, 0, 5, 0xFF, 0, 0, 1, 0, 0, 0, 0, 0, 0],
    );
    theme.raw("tls-client-hello", client_hello());
}

/// A TLS 1.2 ClientHello with widely known suites and no extensions but the needed ones.
fn client_hello() -> Vec<u8> {
    let suites = [
        0xC0, 0x2F, 0xC0, 0x30, 0xC0, 0x2B, 0xC0, 0x2C, 0x00, 0x9C, 0x00, 0x9D,
    ];
    let groups = [0x00, 0x0A, 0, 8, 0, 6, 0x00, 0x1D, 0x00, 0x17, 0x00, 0x18];
    let points = [0x00, 0x0B, 0, 2, 1, 0];
    let signatures = [0x00, 0x0D, 0, 14, 0, 12, 4, 1, 5, 1, 6, 1, 4, 3, 8, 4, 8, 5];
    let extensions = [&groups[..], &points[..], &signatures[..]].concat();
    let mut hello = vec![3, 3];
    hello.extend([7; 32]);
    hello.push(0);
    hello.extend([0, 12]);
    hello.extend(suites);
    hello.extend([1, 0]);
    hello.extend(
        u16::try_from(extensions.len())
            .expect("small")
            .to_be_bytes(),
    );
    hello.extend(extensions);
    let length = u16::try_from(hello.len()).expect("small");
    let mut bytes = vec![0x16, 3, 1];
    bytes.extend((length + 4).to_be_bytes());
    bytes.extend([1, 0]);
    bytes.extend(length.to_be_bytes());
    bytes.extend(hello);
    bytes
}

fn flags(theme: &mut Theme) {
    theme.on("flags");
    theme.quiet("oneway", plain().oneway());
    theme.quiet("oneway-unknown-code", Frame::request(9999).oneway());
    theme.quiet("oneway-failing", Frame::request(904).empty_ext().oneway());
    theme.quiet("oneway-binary", plain().binary().oneway());
    theme.quiet("response", plain().flag(1));
    theme.quiet("response-oneway", plain().flag(3));
    theme.quiet("response-unknown-code", Frame::request(4711).flag(1));
    theme.quiet("flag-minus-one", plain().flag(-1));
    theme.ask("flag-4", plain().flag(4));
    theme.ask("flag-other-bits", plain().flag(0x7FFF_FFFC));
    theme.ask("opaque-greatest", plain().opaque(i32::MAX));
    theme.ask("opaque-least", plain().opaque(i32::MIN));
    theme.ask("opaque-minus-five", plain().opaque(-5));
    theme.ask("opaque-zero", plain().opaque(0));
    theme.ask("opaque-twice", plain().opaque(-5));
    theme.ask("opaque-binary-greatest", plain().binary().opaque(i32::MAX));
    theme.ask("opaque-binary-minus-five", plain().binary().opaque(-5));
    for version in [
        0,
        36,
        37,
        317,
        399,
        401,
        413,
        479,
        612,
        613,
        10_000,
        i32::MAX,
        -1,
        i32::MIN,
    ] {
        theme.ask(&format!("version-{version}"), plain().version(version));
    }
    for version in [0, 36, 37, 317, 399, 401, 413, 479, 10_000, -1] {
        theme.ask(
            &format!("binary-version-{version}"),
            plain().binary().version(version),
        );
    }
    theme.on("a");
}

fn proxy(theme: &mut Theme) {
    let bytes = plain_bytes();
    let after = |prefix: &[u8]| [prefix, &bytes[..]].concat();
    theme.raw(
        "proxy-v1-tcp4",
        after(b"PROXY TCP4 10.1.2.3 10.0.0.1 40000 9876\r\n"),
    );
    theme.raw(
        "proxy-v1-tcp6",
        after(b"PROXY TCP6 2001:db8::1 2001:db8::2 40000 9876\r\n"),
    );
    theme.raw("proxy-v1-unknown", after(b"PROXY UNKNOWN\r\n"));
    theme.raw(
        "proxy-v1-lower-case",
        after(b"proxy TCP4 10.1.2.3 10.0.0.1 40000 9876\r\n"),
    );
    theme.raw(
        "proxy-v1-bad-port",
        after(b"PROXY TCP4 10.1.2.3 10.0.0.1 70000 9876\r\n"),
    );
    theme.raw(
        "proxy-v1-twice",
        [
            &b"PROXY TCP4 10.1.2.3 10.0.0.1 40000 9876\r\n"[..],
            &after(b"PROXY TCP4 10.1.2.3 10.0.0.1 40000 9876\r\n"),
        ]
        .concat(),
    );
    theme.unfinished("proxy-v1-alone", "PROXY");
    theme.unfinished("proxy-v1-unfinished", "PROXY TCP4 10.1.2.3 10.0");
    let signature = b"\r\n\r\n\0\r\nQUIT\n";
    let tcp4 = [
        0x21, 0x11, 0, 12, 10, 1, 2, 3, 10, 0, 0, 1, 0x9C, 0x40, 0x26, 0x94,
    ];
    theme.raw("proxy-v2-tcp4", after(&[&signature[..], &tcp4].concat()));
    theme.raw(
        "proxy-v2-local",
        after(&[&signature[..], &[0x20, 0, 0, 0]].concat()),
    );
    theme.raw(
        "proxy-v2-bad-version",
        after(&[&signature[..], &[0x31, 0x11, 0, 0]].concat()),
    );
    theme.unfinished("proxy-v2-unfinished", [&signature[..], &tcp4[..6]].concat());
    let hello = client_hello();
    let line = b"PROXY TCP4 10.1.2.3 10.0.0.1 40000 9876\r\n";
    theme.raw("proxy-v1-tls", [&line[..], &hello].concat());
    theme.raw("proxy-v2-tls", [&signature[..], &tcp4[..], &hello].concat());
    theme.unfinished("ten-byte-frame", frame_bytes(0, b"{}", b""));
    theme.raw("twelve-byte-frame", frame_bytes(0, b"{}  ", b""));
}
