//! The wire format against its specification, `docs/protocol.md`.

mod bodies;
mod frames;
mod json_headers;
mod kv_files;
mod large_inputs;
mod properties;
mod register_bodies;
mod rocketmq_headers;
mod vectors;

use super::{command::RemotingCommand, header::DecodeError};

/// Bytes written as hexadecimal digits, blanks ignored.
fn hex(digits: &str) -> Vec<u8> {
    let digits: Vec<u8> = digits
        .chars()
        .filter_map(|digit| digit.to_digit(16))
        .map(|digit| u8::try_from(digit).expect("a digit is below 16"))
        .collect();
    digits
        .chunks(2)
        .map(|pair| pair[0] << 4 | pair[1])
        .collect()
}

/// A frame without its length word.
fn frame_of(serialize_type: u8, header: &[u8], body: &[u8]) -> Vec<u8> {
    let mut frame = u32::try_from(header.len())
        .expect("a short header")
        .to_be_bytes()
        .to_vec();
    frame[0] = serialize_type;
    frame.extend_from_slice(header);
    frame.extend_from_slice(body);
    frame
}

/// Decodes a JSON header and hands the command to `check`.
fn with_json_header<T>(
    header: impl AsRef<[u8]>,
    check: impl FnOnce(Result<RemotingCommand<'_>, DecodeError>) -> T,
) -> T {
    let frame = frame_of(0, header.as_ref(), b"");
    check(RemotingCommand::decode(&frame))
}
