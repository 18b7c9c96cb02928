//! What an answer must say, and what it may say as it likes.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::request::Name;
use crate::world::{Reply, quoted};

/// An answer as the protocol wants it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Answer {
    code: i64,
    remark: Remark,
    ext: BTreeMap<String, String>,
    body: Body,
}

#[derive(Debug, Clone, PartialEq)]
enum Remark {
    Exactly(Option<String>),
    /// A sentence for people.
    Any,
}

#[derive(Debug, Clone, PartialEq)]
enum Body {
    None,
    Text(String),
    /// Standard JSON.
    Strict(Value),
    /// fastjson with bare integer keys (spec 2.1).
    Plain(Value),
    /// `topicList` in any order, and one of these as `brokerAddr`.
    Names(BTreeSet<String>, BTreeSet<String>),
}

impl Answer {
    pub(super) fn ok() -> Self {
        Self {
            code: 0,
            remark: Remark::Exactly(None),
            ext: BTreeMap::new(),
            body: Body::None,
        }
    }

    pub(super) fn error(code: i64, remark: impl Into<String>) -> Self {
        let remark = Remark::Exactly(Some(remark.into()));
        Self {
            code,
            remark,
            ..Self::ok()
        }
    }

    /// An error whose text is free.
    pub(super) fn failure(code: i64) -> Self {
        Self { code, ..Self::ok() }.any_remark()
    }

    pub(super) fn any_remark(self) -> Self {
        Self {
            remark: Remark::Any,
            ..self
        }
    }

    pub(super) fn ext(mut self, name: &str, value: &str) -> Self {
        self.ext.insert(name.into(), value.into());
        self
    }

    pub(super) fn text(self, text: String) -> Self {
        Self {
            body: Body::Text(text),
            ..self
        }
    }

    pub(super) fn strict(self, json: Value) -> Self {
        Self {
            body: Body::Strict(json),
            ..self
        }
    }

    pub(super) fn plain(self, json: Value) -> Self {
        Self {
            body: Body::Plain(json),
            ..self
        }
    }

    /// `KVTable`.
    pub(super) fn table(self, table: &BTreeMap<Name, Name>) -> Self {
        self.strict(json!({ "table": table }))
    }

    pub(super) fn names(
        self,
        names: impl IntoIterator<Item = Name>,
        addrs: BTreeSet<String>,
    ) -> Self {
        let names = names.into_iter().map(str::to_string).collect();
        Self {
            body: Body::Names(names, addrs),
            ..self
        }
    }

    /// Whether a reply says what it must.
    pub(super) fn allows(&self, reply: &Reply) -> bool {
        let same_remark = match &self.remark {
            Remark::Exactly(remark) => *remark == reply.remark,
            Remark::Any => true,
        };
        same_remark
            && (self.code, &self.ext) == (reply.code, &reply.ext)
            && self.body.allows(&reply.body)
    }
}

impl Body {
    fn allows(&self, body: &str) -> bool {
        match self {
            Self::None => body.is_empty(),
            Self::Text(text) => text == body,
            Self::Strict(json) => {
                serde_json::from_str::<Value>(body).is_ok_and(|body| body == *json)
            }
            Self::Plain(json) => !body.is_empty() && quoted(body) == *json,
            Self::Names(names, addrs) => {
                let Ok(json) = serde_json::from_str::<Value>(body) else {
                    return false;
                };
                let listed = json["topicList"].as_array().cloned().unwrap_or_default();
                let set: BTreeSet<String> = listed
                    .iter()
                    .filter_map(Value::as_str)
                    .map(str::to_string)
                    .collect();
                let addr_is_right = match json["brokerAddr"].as_str() {
                    Some(addr) => addrs.contains(addr),
                    None => addrs.is_empty(),
                };
                set.len() == listed.len() && set == *names && addr_is_right
            }
        }
    }
}
