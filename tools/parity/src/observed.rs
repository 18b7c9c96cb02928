//! What a step shows: the form in which answers are recorded and compared.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::{Deserialize, Serialize};

use crate::frame::Codec;

/// What stands for the text of a Java exception: any text at all matches it.
pub const SOME_TEXT: &str = "<some text>";

/// One observation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "got", rename_all = "lowercase")]
pub enum Observed {
    /// One frame came back.
    Reply(Answer),
    /// Several frames were sent at once; one entry for each, in the order sent.
    Replies {
        /// The answers.
        each: Vec<Observed>,
    },
    /// No answer, and the connection serves the next request.
    Silence,
    /// No answer, and the connection is open; whether it would serve was not asked.
    Waiting,
    /// The server closed the connection.
    Closed,
    /// The server accepts no connection.
    Unreachable,
    /// Bytes that are no remoting frame came back.
    Foreign {
        /// The first byte, in hexadecimal.
        first: String,
    },
}

/// A frame from the server, normalised.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    /// Encoding of the answer's header.
    #[serde(default = "json", skip_serializing_if = "is_json")]
    pub codec: Codec,
    /// Response code.
    pub code: i32,
    /// Flag bits.
    #[serde(default = "response", skip_serializing_if = "is_response")]
    pub flag: i32,
    /// Remark.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remark: Option<String>,
    /// Extension fields.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ext: Option<BTreeMap<String, String>>,
    /// A JSON header's text, with opaque and version replaced, if it is another than [`Answer::canonical_header`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub header: Option<String>,
    /// The body's text, with what is arbitrary replaced or put in order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<String>,
}

fn json() -> Codec {
    Codec::Json
}

fn is_json(codec: &Codec) -> bool {
    *codec == Codec::Json
}

fn response() -> i32 {
    1
}

fn is_response(flag: &i32) -> bool {
    *flag == response()
}

impl Answer {
    /// The JSON header text the members stand for: keys in alphabetical order, no blanks, nothing that is null.
    #[must_use]
    pub fn canonical_header(&self) -> String {
        let quoted = |text: &str| serde_json::to_string(text).expect("a string is always JSON");
        // Writing to a String cannot fail.
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
            ",\"flag\":{},\"language\":\"JAVA\",\"opaque\":<echoed>",
            self.flag
        );
        if let Some(remark) = &self.remark {
            let _ = write!(text, ",\"remark\":{}", quoted(remark));
        }
        text.push_str(",\"serializeTypeCurrentRPC\":\"JSON\",\"version\":<own>}");
        text
    }

    /// The same answer under a binary header, which knows neither a header text nor an empty map.
    #[must_use]
    pub fn in_binary(&self) -> Answer {
        Answer {
            codec: Codec::RocketMq,
            header: None,
            ext: self.ext.clone().filter(|ext| !ext.is_empty()),
            ..self.clone()
        }
    }
}

/// One step's record in a golden file or a report.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// The step's id: `theme/step`.
    pub id: String,
    /// What was sent, in words.
    pub sent: String,
    /// What came of it.
    #[serde(flatten)]
    pub observed: Observed,
}

/// All records of one section.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SectionRecord {
    /// Name of the section.
    pub section: String,
    /// The settings its server was started with.
    pub settings: BTreeMap<String, String>,
    /// Its steps in script order.
    pub steps: Vec<Record>,
    /// What went wrong between the steps.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// What one server answered to the whole script.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// Which server answered.
    pub server: String,
    /// The sections in script order.
    pub sections: Vec<SectionRecord>,
}

impl Report {
    /// All records in script order.
    pub fn records(&self) -> impl Iterator<Item = &Record> {
        self.sections.iter().flat_map(|section| &section.steps)
    }

    /// The record of a step.
    #[must_use]
    pub fn record(&self, id: &str) -> Option<&Record> {
        self.records().find(|record| record.id == id)
    }
}

/// Whether `got` is what was `expected`; an expected [`SOME_TEXT`] remark stands for any text.
#[must_use]
pub fn agrees(expected: &Observed, got: &Observed) -> bool {
    match (expected, got) {
        (Observed::Reply(expected), Observed::Reply(got)) => answers_agree(expected, got),
        (Observed::Replies { each: expected }, Observed::Replies { each: got }) => {
            expected.len() == got.len()
                && expected
                    .iter()
                    .zip(got)
                    .all(|(expected, got)| agrees(expected, got))
        }
        _ => expected == got,
    }
}

fn answers_agree(expected: &Answer, got: &Answer) -> bool {
    let has_text = got
        .remark
        .as_deref()
        .is_some_and(|remark| !remark.is_empty());
    if expected.remark.as_deref() != Some(SOME_TEXT) || !has_text {
        return expected == got;
    }
    let masked = Answer {
        remark: Some(SOME_TEXT.to_owned()),
        header: expected.header.clone(),
        ..got.clone()
    };
    *expected == masked
}
