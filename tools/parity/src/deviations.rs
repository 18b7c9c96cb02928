//! Where our server answers differently on purpose, and what it answers then.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::{Error, Result};
use crate::frame::Codec;
use crate::observed::{Answer, Observed};

/// One intended difference.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Deviation {
    /// `D-…`, as in `docs/deviations.md`.
    pub id: String,
    /// The quirk of the original it concerns.
    pub quirk: String,
    /// Why ours is better.
    pub reason: String,
    /// A difference that follows from the request, for every step it applies to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<Rule>,
    /// Steps by id, each with the members of the golden observation that differ; `null` takes a member away, and a
    /// `got` replaces the whole.
    #[serde(default)]
    pub steps: BTreeMap<String, Value>,
}

/// A difference that needs no list of steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rule {
    /// A request with a binary header is answered with one.
    MirroredCodec,
    /// A success carries no remark.
    NoRemarkOnSuccess,
}

/// Reads the deviations that belong to this package.
///
/// # Errors
/// The file is malformed.
pub fn read() -> Result<Vec<Deviation>> {
    const TEXT: &str = include_str!("../deviations.json");
    serde_json::from_str(TEXT).map_err(|error| Error::new(format!("deviations.json: {error}")))
}

impl Rule {
    /// What the rule makes of the original's observation of a step sent with these codecs.
    #[must_use]
    pub fn apply(self, sent: &[Codec], golden: &Observed) -> Observed {
        match golden {
            Observed::Reply(answer) => {
                Observed::Reply(self.apply_to(sent.first().copied(), answer))
            }
            Observed::Replies { each } => {
                let sent = sent.iter().map(Some).chain(std::iter::repeat(None));
                let each = each.iter().zip(sent);
                Observed::Replies {
                    each: each
                        .map(|(observed, codec)| {
                            self.apply(codec.map_or(&[], std::slice::from_ref), observed)
                        })
                        .collect(),
                }
            }
            other => other.clone(),
        }
    }

    fn apply_to(self, sent: Option<Codec>, answer: &Answer) -> Answer {
        match self {
            Rule::MirroredCodec if sent == Some(Codec::RocketMq) => answer.in_binary(),
            // The header text of an answer without a remark is the usual one.
            Rule::NoRemarkOnSuccess if answer.code == 0 && answer.remark.is_some() => Answer {
                remark: None,
                header: None,
                ..answer.clone()
            },
            _ => answer.clone(),
        }
    }
}

/// The golden observation with a step's differing members put in.
///
/// # Errors
/// The result is no observation.
pub fn patched(golden: &Observed, patch: &Value) -> Result<Observed> {
    let mut value = serde_json::to_value(golden)?;
    let Value::Object(members) = patch else {
        return Err(Error::new(format!("{patch} is no object")));
    };
    let Value::Object(target) = &mut value else {
        return Err(Error::new("no object".to_owned()));
    };
    if members.contains_key("got") {
        target.clear();
    }
    // A header text of its own speaks of the original's members.
    target.remove("header");
    for (key, member) in members {
        if member.is_null() {
            target.remove(key);
        } else {
            target.insert(key.clone(), member.clone());
        }
    }
    Ok(serde_json::from_value(value)?)
}
