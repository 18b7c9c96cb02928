//! Request frames (spec 1.1 to 1.3), built once and patched in place for each request.
//!
//! The generator has to be cheaper than the server: a request is a copy of a template that stays in the cache, with eight bytes of
//! `opaque` and, for route queries, seven digits of the topic written over it.

/// How a header is encoded (spec 1.2, 1.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Codec {
    /// A JSON object.
    Json,
    /// The binary form, `ROCKETMQ`.
    RocketMq,
}

/// `BROKER_HEARTBEAT` (spec 2.5).
pub const BROKER_HEARTBEAT: u16 = 904;
/// `QUERY_DATA_VERSION` (spec 2.6).
pub const QUERY_DATA_VERSION: u16 = 322;
/// `GET_ROUTEINFO_BY_TOPIC` (spec 2.7).
pub const GET_ROUTE: u16 = 105;
/// `REGISTER_BROKER` (spec 2.3).
pub const REGISTER_BROKER: u16 = 103;

/// The opaque of window slot 0. Every opaque from here to 99,999,999 has eight digits, so it can be patched in place.
pub const OPAQUE_BASE: u32 = 16_777_216;

/// Digits of a topic's number in its name.
pub const TOPIC_DIGITS: usize = 7;

const OPAQUE_DIGITS: usize = 8;

/// The fixed part of a header.
#[derive(Clone, Copy, Debug)]
pub struct Head {
    /// How to encode it.
    pub codec: Codec,
    /// Request code.
    pub code: u16,
    /// Version ordinal of the sender (spec 1.6).
    pub version: u16,
    /// Correlation id.
    pub opaque: u32,
}

/// Appends a whole frame. `fields` are ASCII without anything JSON would escape: the generator chooses all its names.
pub fn encode(head: Head, fields: &[(&str, &str)], body: &[u8], out: &mut Vec<u8>) {
    let start = out.len();
    out.extend_from_slice(&[0; 8]);
    match head.codec {
        Codec::Json => encode_json(head, fields, out),
        Codec::RocketMq => encode_binary(head, fields, out),
    }
    let header_len = u32::try_from(out.len() - start - 8).expect("headers are short");
    out.extend_from_slice(body);
    let total_len = u32::try_from(out.len() - start - 4).expect("frames are bounded");
    let serialize_type = match head.codec {
        Codec::Json => 0,
        Codec::RocketMq => 1 << 24,
    };
    out[start..start + 4].copy_from_slice(&total_len.to_be_bytes());
    out[start + 4..start + 8].copy_from_slice(&(serialize_type | header_len).to_be_bytes());
}

fn encode_json(head: Head, fields: &[(&str, &str)], out: &mut Vec<u8>) {
    let fields: Vec<String> = fields
        .iter()
        .map(|(key, value)| format!("\"{key}\":\"{value}\""))
        .collect();
    let text = format!(
        "{{\"code\":{},\"extFields\":{{{}}},\"flag\":0,\"language\":\"JAVA\",\"opaque\":{},\
         \"serializeTypeCurrentRPC\":\"JSON\",\"version\":{}}}",
        head.code,
        fields.join(","),
        head.opaque,
        head.version
    );
    out.extend_from_slice(text.as_bytes());
}

fn encode_binary(head: Head, fields: &[(&str, &str)], out: &mut Vec<u8>) {
    out.extend_from_slice(&head.code.to_be_bytes());
    out.push(0);
    out.extend_from_slice(&head.version.to_be_bytes());
    out.extend_from_slice(&head.opaque.to_be_bytes());
    out.extend_from_slice(&[0; 8]);
    let map_len: usize = fields.iter().map(|(k, v)| 6 + k.len() + v.len()).sum();
    let map_len = u32::try_from(map_len).expect("headers are short");
    out.extend_from_slice(&map_len.to_be_bytes());
    for (key, value) in fields {
        let key_len = u16::try_from(key.len()).expect("keys are short");
        let value_len = u32::try_from(value.len()).expect("values are short");
        out.extend_from_slice(&key_len.to_be_bytes());
        out.extend_from_slice(key.as_bytes());
        out.extend_from_slice(&value_len.to_be_bytes());
        out.extend_from_slice(value.as_bytes());
    }
}

/// A frame to copy, with the places to patch.
#[derive(Debug)]
pub struct Template {
    bytes: Vec<u8>,
    codec: Codec,
    opaque_at: usize,
    topic_at: Option<usize>,
}

impl Template {
    /// A frame without a body. A field value `topic-0000000` is where [`Template::append_for_topic`] writes a topic's number.
    pub fn new(codec: Codec, code: u16, version: u16, fields: &[(&str, &str)]) -> Self {
        Self::with_body(codec, code, version, fields, &[])
    }

    /// The same with a body.
    pub fn with_body(
        codec: Codec,
        code: u16,
        version: u16,
        fields: &[(&str, &str)],
        body: &[u8],
    ) -> Self {
        let mut bytes = Vec::new();
        let opaque = OPAQUE_BASE;
        let head = Head {
            codec,
            code,
            version,
            opaque,
        };
        encode(head, fields, body, &mut bytes);
        let opaque_at = match codec {
            Codec::Json => find(&bytes, b"\"opaque\":").expect("a header has an opaque") + 9,
            Codec::RocketMq => 8 + 5,
        };
        let topic_at = find(&bytes, b"topic-0000000").map(|at| at + 6);
        Self {
            bytes,
            codec,
            opaque_at,
            topic_at,
        }
    }

    /// Length of the frame.
    pub fn frame_len(&self) -> usize {
        self.bytes.len()
    }

    /// Appends the frame with this opaque.
    pub fn append(&self, opaque: u32, out: &mut Vec<u8>) {
        self.copy(opaque, out);
    }

    /// Appends the frame with this opaque and this topic.
    ///
    /// # Panics
    /// When the template has no topic.
    pub fn append_for_topic(&self, opaque: u32, topic: u32, out: &mut Vec<u8>) {
        let frame = self.copy(opaque, out);
        let at = self.topic_at.expect("this template has a topic");
        write_digits(topic, &mut frame[at..at + TOPIC_DIGITS]);
    }

    fn copy<'a>(&self, opaque: u32, out: &'a mut Vec<u8>) -> &'a mut [u8] {
        let start = out.len();
        out.extend_from_slice(&self.bytes);
        let frame = &mut out[start..];
        match self.codec {
            Codec::Json => write_digits(
                opaque,
                &mut frame[self.opaque_at..self.opaque_at + OPAQUE_DIGITS],
            ),
            Codec::RocketMq => {
                frame[self.opaque_at..self.opaque_at + 4].copy_from_slice(&opaque.to_be_bytes());
            }
        }
        frame
    }
}

/// Where `needle` starts.
pub fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    haystack
        .windows(needle.len())
        .position(|window| window == needle)
}

/// Writes the last digits of `value`, as many as there is room for, with leading zeros.
pub fn write_digits(value: impl Into<u64>, room: &mut [u8]) {
    let mut value = value.into();
    for digit in room.iter_mut().rev() {
        *digit = b'0' + u8::try_from(value % 10).expect("a digit");
        value /= 10;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(codec: Codec) -> Head {
        Head {
            codec,
            code: GET_ROUTE,
            version: 479,
            opaque: 7,
        }
    }

    #[test]
    fn a_json_request_is_byte_for_byte_that_of_the_spec() {
        let mut frame = Vec::new();
        encode(
            head(Codec::Json),
            &[("topic", "TopicTest")],
            &[],
            &mut frame,
        );

        let mut expected = vec![0, 0, 0, 0x87, 0, 0, 0, 0x83];
        expected.extend_from_slice(
            br#"{"code":105,"extFields":{"topic":"TopicTest"},"flag":0,"language":"JAVA","opaque":7,"serializeTypeCurrentRPC":"JSON","version":479}"#,
        );
        assert_eq!(frame, expected);
        assert_eq!(frame.len(), 139);
    }

    #[test]
    fn a_binary_request_is_byte_for_byte_that_of_the_spec() {
        let mut frame = Vec::new();
        encode(
            head(Codec::RocketMq),
            &[("topic", "TopicTest")],
            &[],
            &mut frame,
        );

        let mut expected = vec![
            0, 0, 0, 0x2d, 1, 0, 0, 0x29, 0, 0x69, 0, 1, 0xdf, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0, 0,
            0, 0, 0, 0x14, 0, 5,
        ];
        expected.extend_from_slice(b"topic\0\0\0\x09TopicTest");
        assert_eq!(frame, expected);
    }

    #[test]
    fn a_patched_template_is_the_frame_encoded_afresh() {
        for codec in [Codec::Json, Codec::RocketMq] {
            let template = Template::new(codec, GET_ROUTE, 479, &[("topic", "topic-0000000")]);
            let opaque = OPAQUE_BASE + 1234;
            let mut patched = Vec::new();
            template.append_for_topic(opaque, 98_765, &mut patched);

            let mut afresh = Vec::new();
            let head = Head {
                opaque,
                ..head(codec)
            };
            encode(head, &[("topic", "topic-0098765")], &[], &mut afresh);
            assert_eq!(patched, afresh);
        }
    }
}
