//! Frames and headers.

use std::borrow::Cow;

use waypost::protocol::{
    code::ResponseCode,
    command::{RemotingCommand, ReplyHead, Response, SerializeType},
    encode,
    frame::{self, FrameError, Split},
    header_scan::HeaderModel,
};

use waypost::limits::{EXT_FIELDS_MAX, FRAME_LEN_MAX};

/// Names of ext fields that this server reads: a decoded header is compared and written back by them.
const FIELDS: [&str; 12] = [
    "topic",
    "brokerName",
    "brokerAddr",
    "clusterName",
    "haServerAddr",
    "brokerId",
    "bodyCrc32",
    "compressed",
    "namespace",
    "key",
    "value",
    "__ZONE_NAME",
];

/// A stream's front: what is refused is refused from the first bytes that tell, a frame is cut where it says, and what is
/// decoded can be answered.
pub(crate) fn frame(data: &[u8]) {
    let whole = frame::split(data, FRAME_LEN_MAX);
    if let Ok(Split::Frame { frame, consumed }) = whole {
        assert_eq!(frame.len() + 4, consumed);
        assert!(consumed <= FRAME_LEN_MAX && consumed <= data.len());
        assert_eq!(frame::split(&data[..consumed], FRAME_LEN_MAX), whole);
        assert_eq!(
            frame::split(&data[..consumed - 1], FRAME_LEN_MAX),
            Ok(Split::NeedMore)
        );
        let too_large = FrameError::TooLarge {
            len: consumed,
            max: consumed - 1,
        };
        assert_eq!(frame::split(data, consumed - 1), Err(too_large));
        if let Ok(command) = RemotingCommand::decode(frame) {
            assert!(command.body.len() <= frame.len());
            written_and_read_back(&command);
        }
    }
    // No later byte makes legal what the first eight have made illegal, nor the other way round.
    for len in 0..data.len().min(8) {
        match frame::split(&data[..len], FRAME_LEN_MAX) {
            Err(error) => assert_eq!(whole, Err(error)),
            Ok(split) => assert!(split == Split::NeedMore || Ok(split) == whole),
        }
    }
}

/// A JSON header by the lenient reader, which a blank in front makes sure of.
pub(crate) fn header_json(data: &[u8]) {
    let bytes = frame_of(0, &[b" ", data].concat());
    if let Ok(command) = RemotingCommand::decode(&bytes) {
        assert_eq!(command.serialize_type, SerializeType::Json);
        assert!(command.body.is_empty());
        written_and_read_back(&command);
    }
}

/// A ROCKETMQ header.
pub(crate) fn header_rocketmq(data: &[u8]) {
    let bytes = frame_of(1, data);
    if let Ok(command) = RemotingCommand::decode(&bytes) {
        assert_eq!(command.serialize_type, SerializeType::RocketMq);
        assert!(i16::try_from(command.code).is_ok());
        written_and_read_back(&command);
    }
}

/// The one-pass reader of usual headers and the lenient one say the same of each of several headers, of which the one-pass reader
/// reads each by the one before it. A blank in front is nothing to the lenient one, and sends the header to it.
pub(crate) fn header_scan(data: &[u8]) {
    // Two NULs, so that a header may have one.
    let text = data.chunk_by(|one, other| (*one, *other) != (0, 0));
    let usual: Vec<_> = text
        .map(|header| header.strip_prefix(&[0]).unwrap_or(header))
        .filter(|header| header.first() == Some(&b'{'))
        .map(|header| (frame_of(0, header), frame_of(0, &[b" ", header].concat())))
        .collect();
    let mut model = HeaderModel::default();
    for (usual, lenient) in &usual {
        let mut read = RemotingCommand::default();
        let usual = read.read(usual, &mut model).map(|()| read);
        match (usual, RemotingCommand::decode(lenient)) {
            (Ok(usual), Ok(mut lenient)) => {
                lenient.frame = usual.frame;
                assert_eq!(usual, lenient);
            }
            // What either refuses is refused by the lenient one, where it stands one byte further.
            (Err(_), Err(_)) => {}
            (usual, lenient) => panic!("{usual:?} and {lenient:?}"),
        }
    }
}

/// A frame without its length word.
fn frame_of(serialize_type: u8, header: &[u8]) -> Vec<u8> {
    let mut frame = u32::try_from(header.len())
        .expect("an input of the fuzzer is short")
        .to_be_bytes()
        .to_vec();
    frame[0] = serialize_type;
    frame.extend_from_slice(header);
    frame
}

/// Writes what was read, as a request and as an answer in both codecs, and reads that.
fn written_and_read_back(command: &RemotingCommand<'_>) {
    assert!(command.ext.len() <= EXT_FIELDS_MAX);
    let fields: Vec<(&'static str, &str)> = FIELDS
        .into_iter()
        .filter_map(|name| Some((name, command.ext.get(name)?)))
        .collect();
    let request = encode::oneway_request(command.code, command.opaque, &fields);
    let read = decode_whole(&request);
    assert_eq!((read.code, read.opaque), (command.code, command.opaque));
    assert!(read.is_oneway() && !read.is_response());
    assert_fields(&read, &fields);

    let remark = String::from_utf8_lossy(command.body).into_owned();
    let mut response = Response::error(ResponseCode::SystemError, remark)
        .with_empty_ext()
        .with_body(command.body.to_vec());
    for (name, value) in &fields {
        response = response.with_ext(name, (*value).to_owned());
    }
    for serialize_type in [SerializeType::Json, SerializeType::RocketMq] {
        let head = ReplyHead {
            opaque: command.opaque,
            serialize_type,
        };
        let mut answer = Vec::new();
        encode::write_response(&mut answer, head, &response);
        let read = decode_whole(&answer);
        assert_eq!(read.reply_head(), head);
        assert!(read.is_response() && !read.is_oneway());
        assert_eq!((read.code, read.body), (1, command.body));
        assert_fields(&read, &fields);
    }
}

fn decode_whole(bytes: &[u8]) -> RemotingCommand<'_> {
    let Ok(Split::Frame { frame, consumed }) = frame::split(bytes, usize::MAX) else {
        panic!("what is written is a frame");
    };
    assert_eq!(consumed, bytes.len());
    RemotingCommand::decode(frame).expect("what is written can be read")
}

fn assert_fields(read: &RemotingCommand<'_>, fields: &[(&str, &str)]) {
    assert_eq!(read.ext.len(), fields.len());
    for (name, value) in fields {
        // In the ROCKETMQ form an empty text and null are the same.
        let read = read.ext.get(name).map(Cow::Borrowed).unwrap_or_default();
        assert_eq!(read, *value, "{name}");
    }
}
