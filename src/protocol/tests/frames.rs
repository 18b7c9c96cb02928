//! Where a frame ends, and what cannot be one (spec 1.1, 1.9).

use super::{frame_of, hex};
use crate::{
    limits::FRAME_LEN_MAX,
    protocol::{
        command::RemotingCommand,
        frame::{FrameError, Split, split},
        header::DecodeError,
    },
};

#[test]
fn the_limit_counts_the_length_word() {
    // C1: 16 777 212 waits for its data, one byte more is refused without them.
    assert_eq!(split(&hex("00fffffc"), FRAME_LEN_MAX), Ok(Split::NeedMore));
    assert_eq!(
        split(&hex("00fffffd"), FRAME_LEN_MAX),
        Err(FrameError::TooLarge {
            len: FRAME_LEN_MAX + 1,
            max: FRAME_LEN_MAX
        })
    );
    assert_eq!(split(&hex("0000fffc"), 65_536), Ok(Split::NeedMore));
    assert_eq!(
        split(&hex("0000fffd"), 65_536),
        Err(FrameError::TooLarge {
            len: 65_537,
            max: 65_536
        })
    );
}

#[test]
fn impossible_lengths_are_refused_with_their_fourth_byte() {
    for length in [0, 1, 2, 3, -1, i32::MIN] {
        assert_eq!(
            split(&length.to_be_bytes(), FRAME_LEN_MAX),
            Err(FrameError::TooShort {
                len: length,
                min: 4
            })
        );
    }
    for text in [
        "GET / HTTP/1.1",
        "SSH-2.0-OpenSSH",
        "*1\r\n$4\r\nPING",
        "\x15\x03\x01\x00\x02",
        "\0\0\0\0\0",
    ] {
        assert!(
            split(&text.as_bytes()[..4], FRAME_LEN_MAX).is_err(),
            "{text:?}"
        );
    }
    for len in 0..4 {
        assert_eq!(split(&b"GET "[..len], FRAME_LEN_MAX), Ok(Split::NeedMore));
    }
}

#[test]
fn a_bad_type_or_header_length_is_refused_with_the_eighth_byte() {
    for (digits, error) in [
        ("00001000 02000000", FrameError::SerializeType { found: 2 }),
        (
            "00001000 ff000000",
            FrameError::SerializeType { found: 255 },
        ),
        (
            "00001000 00000ffd",
            FrameError::HeaderTooLong {
                len: 0xffd,
                max: 0xffc,
            },
        ),
        (
            "00000004 01000001",
            FrameError::HeaderTooLong { len: 1, max: 0 },
        ),
        (
            "00001000 00ffffff",
            FrameError::HeaderTooLong {
                len: 0xff_ffff,
                max: 0xffc,
            },
        ),
    ] {
        let bytes = hex(digits);
        assert_eq!(split(&bytes[..7], FRAME_LEN_MAX), Ok(Split::NeedMore));
        assert_eq!(split(&bytes, FRAME_LEN_MAX), Err(error));
        assert_eq!(
            RemotingCommand::decode(&frame_like(&bytes)).err(),
            Some(DecodeError::Frame(error))
        );
    }
    assert_eq!(
        split(&hex("00001000 00000ffc"), FRAME_LEN_MAX),
        Ok(Split::NeedMore)
    );
}

/// The frame that these eight bytes announce, filled with zeros.
fn frame_like(head: &[u8]) -> Vec<u8> {
    let len = u32::from_be_bytes(head[..4].try_into().expect("4 bytes"));
    let mut frame = vec![0; usize::try_from(len).expect("fits")];
    frame[..4].copy_from_slice(&head[4..8]);
    frame
}

#[test]
fn frames_follow_each_other() {
    let mut stream = Vec::new();
    for body in [&b""[..], b"one", b"twelve bytes"] {
        let frame = frame_of(0, b"{}", body);
        stream.extend_from_slice(&u32::try_from(frame.len()).expect("fits").to_be_bytes());
        stream.extend_from_slice(&frame);
    }
    let mut rest = stream.as_slice();
    let mut bodies = Vec::new();
    while let Split::Frame { frame, consumed } = split(rest, FRAME_LEN_MAX).expect("legal frames") {
        bodies.push(RemotingCommand::decode(frame).expect("a legal header").body);
        rest = &rest[consumed..];
    }
    assert_eq!(bodies, [&b""[..], b"one", b"twelve bytes"]);
    assert!(rest.is_empty());
}

#[test]
fn a_frame_without_its_four_bytes_or_without_a_header_is_refused() {
    for len in 0..4 {
        assert!(matches!(
            RemotingCommand::decode(&[0, 0, 0, 0][..len]),
            Err(DecodeError::Frame(FrameError::TooShort { min: 4, .. }))
        ));
    }
    for serialize_type in [0, 1] {
        assert!(RemotingCommand::decode(&frame_of(serialize_type, b"", b"body")).is_err());
    }
}

#[test]
fn a_header_length_that_cuts_the_json_is_refused_but_blanks_may_be_cut() {
    let header = b"{\"code\":105}  ";
    for header_len in 0..=header.len() {
        let frame = frame_of(0, &header[..header_len], &header[header_len..]);
        let command = RemotingCommand::decode(&frame);
        assert_eq!(command.is_ok(), header_len >= 12, "{header_len}");
    }
}

#[test]
fn errors_say_what_was_found_and_what_was_allowed() {
    let error = split(&hex("7fffffff"), FRAME_LEN_MAX).expect_err("above the limit");
    assert_eq!(
        error.to_string(),
        "frame of 2147483651 bytes, at most 16777216 are allowed"
    );
    let error = RemotingCommand::decode(&frame_of(0, b"{\"code\":x}", b"")).expect_err("no number");
    assert_eq!(
        error.to_string(),
        "json header: expected a value at byte 8 of the json text, found 'x'"
    );
}
