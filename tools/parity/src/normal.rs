//! The normaliser: what of an answer is arbitrary, and what is put in its place.
//!
//! | arbitrary | becomes |
//! |---|---|
//! | opaque | `<echoed>`, or `<other>` when it is not the request's |
//! | version of the server | `<own>` |
//! | text of a Java exception in a remark | `<some text>` |
//! | addresses of the test's listeners | `@name@` |
//! | order of sets and of unsorted maps | sorted by text, or by number |
//! | a timestamp of today | `<now>` |
//! | which broker's address 304 gives | `<any>` |
//! | paths and the own port in the 319 text | `<path>`, `<port>` |
//!
//! Everything else is kept byte for byte.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::frame::{Codec, hex};
use crate::json_text::{self, Tree, plain};
use crate::observed::{Answer, SOME_TEXT};
use crate::reply::Reply;

/// Objects that are hash tables in Java: their members come in any order, unless the encoding is the sorted one.
const MAPS: [&str; 7] = [
    "brokerAddrTable",
    "brokerAddrs",
    "clusterAddrTable",
    "currIdMap",
    "filterServerTable",
    "table",
    "topicQueueMappingByBroker",
];

/// Arrays that are sets, or were filled from one.
const SETS: [&str; 3] = ["brokerDatas", "queueDatas", "topicList"];

/// Properties of the 319 text that are paths.
const PATHS: [&str; 3] = ["configStorePath", "kvConfigPath", "rocketmqHome"];

/// What the normaliser must know of the run.
#[derive(Clone, Debug, Default)]
pub struct Names {
    /// Address of each of the test's listeners, by name.
    pub listeners: BTreeMap<String, String>,
    /// Port of the server.
    pub port: u16,
}

impl Names {
    /// Puts real addresses in the place of `@name@`.
    #[must_use]
    pub fn resolve(&self, text: &str) -> String {
        self.listeners
            .iter()
            .fold(text.to_owned(), |text, (name, address)| {
                text.replace(&format!("@{name}@"), address)
            })
    }

    fn hide(&self, text: &str) -> String {
        self.listeners
            .iter()
            .fold(text.to_owned(), |text, (name, address)| {
                text.replace(address, &format!("@{name}@"))
            })
    }
}

/// The normalised form of a frame from the server; `opaque` is what the request had, if any.
#[must_use]
pub fn normalise(reply: &Reply, opaque: Option<i32>, names: &Names) -> Answer {
    let remark = reply
        .remark
        .as_deref()
        .map(|remark| names.hide(remark_without_exception(reply.code, remark)));
    let hide_all = |ext: &BTreeMap<String, String>| {
        ext.iter()
            .map(|(key, value)| (key.clone(), names.hide(value)))
            .collect()
    };
    let answer = Answer {
        codec: reply.codec,
        code: reply.code,
        flag: reply.flag,
        remark,
        ext: reply.ext.as_ref().map(hide_all),
        header: None,
        body: (!reply.body.is_empty()).then(|| body_text(&reply.body, names)),
    };
    let header = (reply.codec == Codec::Json).then(|| header_text(reply, opaque, names));
    Answer {
        header: header.filter(|header| *header != answer.canonical_header()),
        ..answer
    }
}

/// A SYSTEM_ERROR whose remark begins with a Java class name is an exception's text.
fn remark_without_exception(code: i32, remark: &str) -> &str {
    let class = remark.split([':', ',', ' ']).next().unwrap_or_default();
    let is_exception =
        class.contains('.') && (class.ends_with("Exception") || class.ends_with("Error"));
    if code == 1 && is_exception {
        SOME_TEXT
    } else {
        remark
    }
}

fn header_text(reply: &Reply, opaque: Option<i32>, names: &Names) -> String {
    let Ok(text) = std::str::from_utf8(&reply.header) else {
        return hex(&reply.header);
    };
    let Some(mut tree) = json_text::parse(text) else {
        return names.hide(text);
    };
    let echoed = if opaque == Some(reply.opaque) {
        "<echoed>"
    } else {
        "<other>"
    };
    for (key, mark) in [("opaque", echoed), ("version", "<own>")] {
        if let Some(value) = tree.member_mut(key) {
            *value = Tree::Scalar(mark.to_owned());
        }
    }
    if let Some(value) = tree.member_mut("remark")
        && reply
            .remark
            .as_deref()
            .is_some_and(|remark| remark_without_exception(reply.code, remark) == SOME_TEXT)
    {
        *value = Tree::Scalar(format!("\"{SOME_TEXT}\""));
    }
    if let Some(Tree::Object(members)) = tree.member_mut("extFields") {
        members.sort();
    }
    names.hide(&tree.write())
}

/// The normalised text of a body.
#[must_use]
pub fn body_text(body: &[u8], names: &Names) -> String {
    let Ok(text) = std::str::from_utf8(body) else {
        return format!("hex {}", hex(body));
    };
    let text = names.hide(text);
    match json_text::parse(&text) {
        Some(mut tree @ (Tree::Object(_) | Tree::Array(_))) => {
            let sorted_maps = has_quoted_number_keys(&tree);
            put_in_order("", &mut tree, sorted_maps);
            hide_any_address(&mut tree);
            tree.write()
        }
        _ if text.contains("listenPort=") => properties_without_places(&text, names.port),
        _ => text,
    }
}

/// The strict encoding quotes integer keys and sorts its maps; then their order is part of the answer.
fn has_quoted_number_keys(tree: &Tree) -> bool {
    match tree {
        Tree::Scalar(_) => false,
        Tree::Array(items) => items.iter().any(has_quoted_number_keys),
        Tree::Object(members) => members.iter().any(|(key, value)| {
            let holds_numbers = ["brokerAddrs", "currIdMap"].contains(&plain(key));
            let quoted = matches!(value, Tree::Object(members) if members.iter().any(|(key, _)| key.starts_with('"')));
            (holds_numbers && quoted) || has_quoted_number_keys(value)
        }),
    }
}

fn put_in_order(name: &str, tree: &mut Tree, sorted_maps: bool) {
    match tree {
        Tree::Scalar(text) if name == "timestamp" && is_today(text) => "<now>".clone_into(text),
        Tree::Scalar(_) => {}
        Tree::Array(items) => {
            items
                .iter_mut()
                .for_each(|item| put_in_order("", item, sorted_maps));
            if SETS.contains(&name) {
                items.sort_by_key(Tree::write);
            }
        }
        Tree::Object(members) => {
            for (key, value) in members.iter_mut() {
                let inner = if name == "clusterAddrTable" {
                    "topicList"
                } else {
                    plain(key)
                };
                put_in_order(inner, value, sorted_maps);
            }
            if MAPS.contains(&name) && !sorted_maps {
                members.sort_by_key(|(key, _)| (plain(key).parse::<i64>().ok(), key.clone()));
            }
        }
    }
}

/// The system topic list (304) names one broker's address, which may be any broker's if there are several.
fn hide_any_address(tree: &mut Tree) {
    let Some(Tree::Array(topics)) = tree.member_mut("topicList") else {
        return;
    };
    // One cluster and one broker make two names.
    if topics.len() > 2
        && let Some(address) = tree.member_mut("brokerAddr")
    {
        *address = Tree::Scalar("\"<any>\"".to_owned());
    }
}

fn is_today(number: &str) -> bool {
    let day = Duration::from_secs(24 * 3600);
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    number
        .parse()
        .is_ok_and(|millis| now.abs_diff(Duration::from_millis(millis)) < day)
}

fn properties_without_places(text: &str, port: u16) -> String {
    let lines = text.split('\n').map(|line| {
        let key = line.split('=').next().unwrap_or_default();
        if PATHS.contains(&key) {
            format!("{key}=<path>")
        } else if line == format!("listenPort={port}") {
            "listenPort=<port>".to_owned()
        } else {
            line.to_owned()
        }
    });
    lines.collect::<Vec<_>>().join("\n")
}
