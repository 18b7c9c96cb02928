//! Building requests, also deliberately odd ones.
//!
//! An implementation of the wire format of its own: it shares no code with the server under test, so that a
//! mistake in one does not hide the same mistake in the other. It knows nothing of sockets.

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};

/// Stands in a header text for the opaque the runner chooses.
pub const OPAQUE_MARK: &str = "@opaque@";

/// The two header encodings, by the value of the serialize-type byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Codec {
    /// Type byte 0, a JSON header.
    #[serde(rename = "JSON")]
    Json,
    /// Type byte 1, the compact binary header.
    #[serde(rename = "ROCKETMQ")]
    RocketMq,
}

impl Codec {
    /// The name used in `serializeTypeCurrentRPC`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Codec::Json => "JSON",
            Codec::RocketMq => "ROCKETMQ",
        }
    }

    fn type_byte(self) -> u8 {
        match self {
            Codec::Json => 0,
            Codec::RocketMq => 1,
        }
    }
}

/// One request to be sent; built by chaining.
#[derive(Clone, Debug)]
pub struct Frame {
    /// Which header encoding is used.
    pub codec: Codec,
    /// Request code.
    pub code: i32,
    /// Name of the sender's language.
    pub language: String,
    /// Version ordinal; `None` leaves the member out (JSON) or sends 0 (binary).
    pub version: Option<i32>,
    /// A fixed opaque, where the value matters.
    pub opaque: Option<i32>,
    /// Flag bits.
    pub flag: i32,
    /// Remark, normally none.
    pub remark: Option<String>,
    /// Extension fields; `None` leaves the map out altogether.
    pub ext: Option<Vec<(String, String)>>,
    /// Body bytes.
    pub body: Vec<u8>,
    /// Replaces the encoded header: for headers no encoder would write.
    pub header: Option<Vec<u8>>,
}

impl Frame {
    /// A request as a 5.3.3 peer sends it, with no extension fields.
    #[must_use]
    pub fn request(code: i32) -> Frame {
        Frame {
            codec: Codec::Json,
            code,
            language: "JAVA".to_owned(),
            version: Some(479),
            opaque: None,
            flag: 0,
            remark: None,
            ext: None,
            body: Vec::new(),
            header: None,
        }
    }

    /// A frame whose JSON header is the given text, with [`OPAQUE_MARK`] in the place of the opaque.
    #[must_use]
    pub fn with_header_text(text: &str) -> Frame {
        Frame::with_header_bytes(Codec::Json, text.as_bytes().to_vec())
    }

    /// A frame whose header is the given bytes under the given type byte.
    #[must_use]
    pub fn with_header_bytes(codec: Codec, header: Vec<u8>) -> Frame {
        Frame {
            codec,
            header: Some(header),
            ..Frame::request(0)
        }
    }

    /// Uses the binary header.
    #[must_use]
    pub fn binary(mut self) -> Frame {
        self.codec = Codec::RocketMq;
        self
    }

    /// Sets the sender's version ordinal.
    #[must_use]
    pub fn version(mut self, version: i32) -> Frame {
        self.version = Some(version);
        self
    }

    /// Leaves the version out.
    #[must_use]
    pub fn no_version(mut self) -> Frame {
        self.version = None;
        self
    }

    /// Sets the sender's language.
    #[must_use]
    pub fn language(mut self, language: &str) -> Frame {
        language.clone_into(&mut self.language);
        self
    }

    /// Fixes the opaque.
    #[must_use]
    pub fn opaque(mut self, opaque: i32) -> Frame {
        self.opaque = Some(opaque);
        self
    }

    /// Sets all flag bits.
    #[must_use]
    pub fn flag(mut self, flag: i32) -> Frame {
        self.flag = flag;
        self
    }

    /// Asks for no answer.
    #[must_use]
    pub fn oneway(self) -> Frame {
        self.flag(2)
    }

    /// Sets the remark.
    #[must_use]
    pub fn remark(mut self, remark: &str) -> Frame {
        self.remark = Some(remark.to_owned());
        self
    }

    /// Adds one extension field.
    #[must_use]
    pub fn ext(mut self, key: &str, value: &str) -> Frame {
        self.ext
            .get_or_insert_default()
            .push((key.to_owned(), value.to_owned()));
        self
    }

    /// Takes one extension field away (the map stays).
    #[must_use]
    pub fn without(mut self, key: &str) -> Frame {
        if let Some(ext) = &mut self.ext {
            ext.retain(|(name, _)| name != key);
        }
        self
    }

    /// Replaces the value of one extension field, or adds it.
    #[must_use]
    pub fn with(self, key: &str, value: &str) -> Frame {
        self.without(key).ext(key, value)
    }

    /// Sends the map of extension fields, empty.
    #[must_use]
    pub fn empty_ext(mut self) -> Frame {
        self.ext = Some(Vec::new());
        self
    }

    /// Leaves the map of extension fields out.
    #[must_use]
    pub fn no_ext(mut self) -> Frame {
        self.ext = None;
        self
    }

    /// Sets the body.
    #[must_use]
    pub fn body(mut self, body: impl Into<Vec<u8>>) -> Frame {
        self.body = body.into();
        self
    }

    /// The frame with `resolve` applied to its texts: placeholders of addresses known only at run time.
    #[must_use]
    pub fn resolved(&self, resolve: impl Fn(&str) -> String) -> Frame {
        let pairs = |ext: &Vec<(String, String)>| {
            ext.iter()
                .map(|(key, value)| (key.clone(), resolve(value)))
                .collect()
        };
        let body = match std::str::from_utf8(&self.body) {
            Ok(text) => resolve(text).into_bytes(),
            Err(_) => self.body.clone(),
        };
        Frame {
            ext: self.ext.as_ref().map(pairs),
            body,
            ..self.clone()
        }
    }

    /// The frame as bytes, with `opaque` unless a fixed one was given.
    #[must_use]
    pub fn encode(&self, opaque: i32) -> Vec<u8> {
        let opaque = self.opaque.unwrap_or(opaque);
        let header = match (&self.header, self.codec) {
            (Some(bytes), _) => mark_replaced(bytes, opaque),
            (None, Codec::Json) => self.json_header(opaque).into_bytes(),
            (None, Codec::RocketMq) => self.binary_header(opaque),
        };
        frame_bytes(self.codec.type_byte(), &header, &self.body)
    }

    fn json_header(&self, opaque: i32) -> String {
        let mut text = format!("{{\"code\":{}", self.code);
        if let Some(ext) = &self.ext {
            let members: Vec<String> = ext
                .iter()
                .map(|(key, value)| format!("{}:{}", quoted(key), quoted(value)))
                .collect();
            let _ = write!(text, ",\"extFields\":{{{}}}", members.join(","));
        }
        let _ = write!(
            text,
            ",\"flag\":{},\"language\":{},\"opaque\":{opaque}",
            self.flag,
            quoted(&self.language)
        );
        if let Some(remark) = &self.remark {
            let _ = write!(text, ",\"remark\":{}", quoted(remark));
        }
        text.push_str(",\"serializeTypeCurrentRPC\":\"JSON\"");
        if let Some(version) = self.version {
            let _ = write!(text, ",\"version\":{version}");
        }
        text.push('}');
        text
    }

    fn binary_header(&self, opaque: i32) -> Vec<u8> {
        let mut map = Vec::new();
        for (key, value) in self.ext.iter().flatten() {
            map.extend(binary_entry(key.as_bytes(), value.as_bytes()));
        }
        BinaryHeader {
            code: low_16_bits(self.code),
            language: language_code(&self.language),
            version: low_16_bits(self.version.unwrap_or(0)),
            opaque,
            flag: self.flag,
            remark: self.remark.clone().unwrap_or_default().into_bytes(),
            ext: map,
        }
        .encode()
    }

    /// A short text for people: what is sent, with the opaque left out.
    #[must_use]
    pub fn describe(&self) -> String {
        let mut text = match &self.header {
            Some(header) => format!("{} header {}", self.codec.name(), readable(header, 250)),
            None => self.describe_fields(),
        };
        if !self.body.is_empty() {
            let _ = write!(text, " body {}", readable(&self.body, 160));
        }
        text
    }

    fn describe_fields(&self) -> String {
        let mut text = format!("{} {}", self.code, self.codec.name());
        match self.version {
            Some(version) => write!(text, " v{version}"),
            None => write!(text, " no version"),
        }
        .expect("writing to a String succeeds");
        if self.flag != 0 {
            let _ = write!(text, " flag {}", self.flag);
        }
        if self.language != "JAVA" {
            let _ = write!(text, " language {}", self.language);
        }
        if let Some(opaque) = self.opaque {
            let _ = write!(text, " opaque {opaque}");
        }
        if let Some(remark) = &self.remark {
            let _ = write!(text, " remark {remark:?}");
        }
        match &self.ext {
            None => text.push_str(" no ext"),
            Some(ext) => {
                let members: Vec<String> = ext
                    .iter()
                    .map(|(key, value)| {
                        format!(
                            "{}={}",
                            readable(key.as_bytes(), 60),
                            readable(value.as_bytes(), 120)
                        )
                    })
                    .collect();
                let _ = write!(text, " ext {{{}}}", members.join(", "));
            }
        }
        text
    }
}

/// The binary header field by field, so that a step may send any of them wrong.
#[derive(Clone, Debug, Default)]
pub struct BinaryHeader {
    /// Request code.
    pub code: i16,
    /// Language byte.
    pub language: u8,
    /// Version ordinal.
    pub version: i16,
    /// Correlation id.
    pub opaque: i32,
    /// Flag bits.
    pub flag: i32,
    /// Remark bytes.
    pub remark: Vec<u8>,
    /// The entries of the extension map.
    pub ext: Vec<u8>,
}

impl BinaryHeader {
    /// The header with the true lengths.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        self.encode_with_lengths(length_of(&self.remark), length_of(&self.ext))
    }

    /// The header with the given remark and map lengths, true or not.
    #[must_use]
    pub fn encode_with_lengths(&self, remark_length: i32, ext_length: i32) -> Vec<u8> {
        let mut bytes = Vec::new();
        bytes.extend(self.code.to_be_bytes());
        bytes.push(self.language);
        bytes.extend(self.version.to_be_bytes());
        bytes.extend(self.opaque.to_be_bytes());
        bytes.extend(self.flag.to_be_bytes());
        bytes.extend(remark_length.to_be_bytes());
        bytes.extend(&self.remark);
        bytes.extend(ext_length.to_be_bytes());
        bytes.extend(&self.ext);
        bytes
    }
}

/// One entry of the binary extension map.
#[must_use]
pub fn binary_entry(key: &[u8], value: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    bytes.extend(low_16_bits(length_of(key)).to_be_bytes());
    bytes.extend(key);
    bytes.extend(length_of(value).to_be_bytes());
    bytes.extend(value);
    bytes
}

/// Length words, header and body put together, with true lengths.
#[must_use]
pub fn frame_bytes(type_byte: u8, header: &[u8], body: &[u8]) -> Vec<u8> {
    let total = 4 + header.len() + body.len();
    let total = u32::try_from(total).expect("script frames are smaller than 4 GiB");
    let header_word = (u32::from(type_byte) << 24)
        | (u32::try_from(header.len()).expect("below the total") & 0x00FF_FFFF);
    let mut bytes = Vec::with_capacity(header.len() + body.len() + 8);
    bytes.extend(total.to_be_bytes());
    bytes.extend(header_word.to_be_bytes());
    bytes.extend(header);
    bytes.extend(body);
    bytes
}

const LANGUAGES: [&str; 14] = [
    "JAVA", "CPP", "DOTNET", "PYTHON", "DELPHI", "ERLANG", "RUBY", "OTHER", "HTTP", "GO", "PHP",
    "OMS", "RUST", "NODE_JS",
];

fn language_code(name: &str) -> u8 {
    let index = LANGUAGES
        .iter()
        .position(|language| *language == name)
        .unwrap_or(255);
    u8::try_from(index).unwrap_or(255)
}

pub(crate) fn language_name(code: u8) -> &'static str {
    LANGUAGES
        .get(usize::from(code))
        .copied()
        .unwrap_or("unknown")
}

/// Wraps as the Java encoder's cast to `short` does.
#[expect(
    clippy::cast_possible_truncation,
    reason = "the wire carries the low 16 bits"
)]
fn low_16_bits(value: i32) -> i16 {
    value as i16
}

fn length_of(bytes: &[u8]) -> i32 {
    i32::try_from(bytes.len()).expect("script fields are smaller than 2 GiB")
}

fn quoted(text: &str) -> String {
    serde_json::to_string(text).expect("a string is always JSON")
}

fn mark_replaced(bytes: &[u8], opaque: i32) -> Vec<u8> {
    let mark = OPAQUE_MARK.as_bytes();
    match bytes.windows(mark.len()).position(|window| window == mark) {
        None => bytes.to_vec(),
        Some(start) => [
            &bytes[..start],
            opaque.to_string().as_bytes(),
            &bytes[start + mark.len()..],
        ]
        .concat(),
    }
}

/// Bytes as text for people: UTF-8 where it is, hexadecimal where it is not, cut at `limit` characters.
#[must_use]
pub fn readable(bytes: &[u8], limit: usize) -> String {
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => text
            .chars()
            .flat_map(|character| {
                if character < ' ' {
                    character.escape_default().collect()
                } else {
                    vec![character]
                }
            })
            .collect(),
        Err(_) => format!("hex {}", hex(bytes)),
    };
    let count = text.chars().count();
    if count <= limit {
        text
    } else {
        format!(
            "{}… ({} bytes)",
            text.chars().take(limit).collect::<String>(),
            bytes.len()
        )
    }
}

/// Lower-case hexadecimal.
#[must_use]
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
