//! Writes answers and one-way requests (spec 1.1, 1.2, 1.3, 2.16).
//!
//! An answer mirrors the header codec of its request (spec 1.7, Q1). Its JSON header is byte for byte the Java server's: compact,
//! members in alphabetical order, null ones left out, texts in the plain dialect.

use super::{
    code::{ResponseCode, version},
    command::{FLAG_ONEWAY, FLAG_RESPONSE, ReplyHead, Response, SerializeType},
    fastjson::{Dialect, write_string, write_string_map},
    frame::HEADER_LEN_MAX,
};

/// Length word, serialize type and header length.
const FRAME_HEAD_LEN: usize = 8;

const CODE: &[u8] = b"{\"code\":";
const EXT_FIELDS: &[u8] = b",\"extFields\":";
/// Behind `extFields`, up to the `opaque` of an answer and of a one-way request.
const RESPONSE_TO_OPAQUE: &[u8] = b",\"flag\":1,\"language\":\"JAVA\",\"opaque\":";
const ONEWAY_TO_OPAQUE: &[u8] = b",\"flag\":2,\"language\":\"JAVA\",\"opaque\":";
const _: () = assert!(FLAG_RESPONSE == 1 && FLAG_ONEWAY == 2, "spelt above");
const REMARK: &[u8] = b",\"remark\":";
const TAIL: &[u8] = b",\"serializeTypeCurrentRPC\":\"JSON\",\"version\":479}";
const _: () = assert!(version::OURS == 479, "TAIL spells the version");

/// What a successful answer without ext fields begins with, up to its `opaque`.
const PLAIN_SUCCESS: &[u8] = b"{\"code\":0,\"flag\":1,\"language\":\"JAVA\",\"opaque\":";

/// `JAVA` (spec 1.5).
const LANGUAGE: u8 = 0;

/// A frame whose header is written and whose body may be appended.
#[derive(Debug)]
#[must_use = "the length word is wrong until `finish`"]
pub struct OpenFrame {
    /// Where its length word lies.
    start: usize,
}

impl OpenFrame {
    /// Ends the frame where `out` ends: everything appended since is its body.
    pub fn finish(self, out: &mut [u8]) {
        self.finish_before(out, 0);
    }

    /// Ends a frame whose body goes on for `more` bytes behind `out`.
    pub fn finish_before(self, out: &mut [u8], more: usize) {
        let len = out.len() + more - self.start - size_of::<u32>();
        // No peer takes a frame above 16 MiB, so beyond 32 bits any refused length is as good as the true one.
        let len = i32::try_from(len).unwrap_or(i32::MAX);
        out[self.start..][..size_of::<u32>()].copy_from_slice(&len.to_be_bytes());
    }
}

/// Appends a whole answer.
pub fn write_response(out: &mut Vec<u8>, head: ReplyHead, response: &Response) {
    let ext = response
        .ext
        .as_ref()
        .map(|fields| fields.iter().map(|(name, value)| (*name, value.as_ref())));
    let frame = begin(out, head, response.code, response.remark.as_deref(), ext);
    out.extend_from_slice(&response.body);
    frame.finish(out);
}

/// Appends the header of an answer; the caller appends the body and then calls [`OpenFrame::finish`].
pub fn begin_response(
    out: &mut Vec<u8>,
    head: ReplyHead,
    code: ResponseCode,
    remark: Option<&str>,
    ext: Option<&[(&str, &str)]>,
) -> OpenFrame {
    begin(
        out,
        head,
        code,
        remark,
        ext.map(|fields| fields.iter().copied()),
    )
}

/// A one-way request with a JSON header, its ext fields in the order given.
#[must_use]
pub fn oneway_request(code: i32, opaque: i32, ext: &[(&str, &str)]) -> Vec<u8> {
    let mut out = Vec::with_capacity(256);
    let frame = open(&mut out);
    out.extend_from_slice(CODE);
    write_int(&mut out, code);
    out.extend_from_slice(EXT_FIELDS);
    write_string_map(&mut out, ext.iter().copied(), Dialect::Plain);
    write_json_tail(&mut out, ONEWAY_TO_OPAQUE, opaque, None);
    // A request of ours carries addresses and ids, far from the 16 MiB that a header length expresses.
    close_header(&mut out, &frame, SerializeType::Json);
    frame.finish(&mut out);
    out
}

fn begin<'e>(
    out: &mut Vec<u8>,
    head: ReplyHead,
    code: ResponseCode,
    remark: Option<&str>,
    ext: Option<impl Iterator<Item = (&'e str, &'e str)>>,
) -> OpenFrame {
    if code == ResponseCode::Success
        && remark.is_none()
        && ext.is_none()
        && head.serialize_type == SerializeType::Json
    {
        return begin_plain_success(out, head.opaque);
    }
    let frame = open(out);
    match head.serialize_type {
        SerializeType::Json => write_json_header(out, head.opaque, code, remark, ext),
        SerializeType::RocketMq => write_rocketmq_header(out, head.opaque, code, remark, ext),
    }
    let header_len = out.len() - frame.start - FRAME_HEAD_LEN;
    if header_len > HEADER_LEN_MAX {
        // A KV value can be that long once its characters are escaped. A cut header would desynchronize the peer.
        out.truncate(frame.start);
        let remark =
            format!("answer header of {header_len} bytes, at most {HEADER_LEN_MAX} can be sent");
        return begin_response(out, head, ResponseCode::SystemError, Some(&remark), None);
    }
    close_header(out, &frame, head.serialize_type);
    frame
}

/// The header of most answers, put together in place and appended as a whole: in five pieces, each with a look at the capacity,
/// it took a quarter more instructions (`cargo bench --bench codec`, `response/json_head`).
fn begin_plain_success(out: &mut Vec<u8>, opaque: i32) -> OpenFrame {
    const OPAQUE_AT: usize = FRAME_HEAD_LEN + PLAIN_SUCCESS.len();
    const LEN_MAX: usize = OPAQUE_AT + "-2147483648".len() + TAIL.len();
    const BEGINNING: [u8; LEN_MAX] = {
        let mut beginning = [0; LEN_MAX];
        let (_, header) = beginning.split_at_mut(FRAME_HEAD_LEN);
        header
            .split_at_mut(PLAIN_SUCCESS.len())
            .0
            .copy_from_slice(PLAIN_SUCCESS);
        beginning
    };
    let mut bytes = BEGINNING;
    let mut digits = itoa::Buffer::new();
    let digits = digits.format(opaque).as_bytes();
    let tail_at = OPAQUE_AT + digits.len();
    bytes[OPAQUE_AT..tail_at].copy_from_slice(digits);
    bytes[tail_at..][..TAIL.len()].copy_from_slice(TAIL);
    let bytes = &mut bytes[..tail_at + TAIL.len()];
    let frame = OpenFrame { start: 0 };
    close_header(bytes, &frame, SerializeType::Json);
    let start = out.len();
    out.extend_from_slice(bytes);
    OpenFrame { start }
}

fn open(out: &mut Vec<u8>) -> OpenFrame {
    let start = out.len();
    out.extend_from_slice(&[0; FRAME_HEAD_LEN]);
    OpenFrame { start }
}

/// Patches in the serialize type and header length of a header that ends where `out` ends.
fn close_header(out: &mut [u8], frame: &OpenFrame, serialize_type: SerializeType) {
    let header_len = out.len() - frame.start - FRAME_HEAD_LEN;
    let type_byte = match serialize_type {
        SerializeType::Json => 0,
        SerializeType::RocketMq => 1,
    };
    let [.., high, middle, low] = header_len.to_be_bytes();
    out[frame.start + size_of::<u32>()..][..4].copy_from_slice(&[type_byte, high, middle, low]);
}

fn write_json_header<'e>(
    out: &mut Vec<u8>,
    opaque: i32,
    code: ResponseCode,
    remark: Option<&str>,
    ext: Option<impl Iterator<Item = (&'e str, &'e str)>>,
) {
    out.extend_from_slice(CODE);
    write_int(out, code as i32);
    if let Some(ext) = ext {
        out.extend_from_slice(EXT_FIELDS);
        write_string_map(out, ext, Dialect::Plain);
    }
    write_json_tail(out, RESPONSE_TO_OPAQUE, opaque, remark);
}

/// Appends the members behind `extFields`.
fn write_json_tail(out: &mut Vec<u8>, to_opaque: &[u8], opaque: i32, remark: Option<&str>) {
    out.extend_from_slice(to_opaque);
    write_int(out, opaque);
    if let Some(remark) = remark {
        out.extend_from_slice(REMARK);
        write_string(out, remark, Dialect::Plain);
    }
    out.extend_from_slice(TAIL);
}

fn write_int(out: &mut Vec<u8>, number: i32) {
    out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

fn write_rocketmq_header<'e>(
    out: &mut Vec<u8>,
    opaque: i32,
    code: ResponseCode,
    remark: Option<&str>,
    ext: Option<impl Iterator<Item = (&'e str, &'e str)>>,
) {
    // Both are 16 bits wide on the wire; every code and version of ours fits.
    let [.., code_high, code_low] = (code as i32).to_be_bytes();
    let [.., version_high, version_low] = version::OURS.to_be_bytes();
    out.extend_from_slice(&[code_high, code_low, LANGUAGE, version_high, version_low]);
    out.extend_from_slice(&opaque.to_be_bytes());
    out.extend_from_slice(&FLAG_RESPONSE.to_be_bytes());
    write_long_bytes(out, remark.unwrap_or_default());
    let length_at = out.len();
    out.extend_from_slice(&[0; size_of::<u32>()]);
    for (name, value) in ext.into_iter().flatten() {
        // Names of ext fields are ours and short.
        let [.., high, low] = name.len().to_be_bytes();
        out.extend_from_slice(&[high, low]);
        out.extend_from_slice(name.as_bytes());
        write_long_bytes(out, value);
    }
    let ext_len = wire_len(out.len() - length_at - size_of::<u32>());
    out[length_at..][..size_of::<u32>()].copy_from_slice(&ext_len);
}

fn write_long_bytes(out: &mut Vec<u8>, text: &str) {
    out.extend_from_slice(&wire_len(text.len()));
    out.extend_from_slice(text.as_bytes());
}

/// A length inside a header. One above 32 bits never leaves: the header is then above its own limit.
fn wire_len(len: usize) -> [u8; 4] {
    u32::try_from(len).unwrap_or(u32::MAX).to_be_bytes()
}
