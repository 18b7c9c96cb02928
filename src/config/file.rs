//! A `-c` file → settings and findings.

use std::{collections::BTreeMap, fmt};

use super::{
    Config, family,
    key::{Group, KEYS, Key, KeyId, Kind, Reach},
    properties::{self, Encoding, Malformed},
    value::{BadValue, Value, java_trim, plain},
};
use crate::limits::{CONFIG_KEY_LEN_MAX, CONFIG_KEYS_REMEMBERED_MAX};

/// How much a finding matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The line is understood, but does not do what it does in Java.
    Note,
    /// The line, or part of it, is not used as written.
    Warning,
    /// The server will not start with this line.
    Error,
}

/// Something an operator should know about a line of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// Counted from 1; 0 = the whole file.
    pub line: usize,
    /// How much it matters.
    pub severity: Severity,
    /// What it is; one line, whatever the file contains.
    pub message: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => f.write_str(&self.message),
            line => write!(f, "line {line}: {}", self.message),
        }
    }
}

/// Applies `bytes` to `config`. See [`Config::load_file`].
pub(super) fn load(config: &mut Config, path: &str, bytes: &[u8]) -> Vec<Finding> {
    let mut load = Load {
        config,
        path,
        findings: Vec::new(),
    };
    let (text, encoding) = properties::decode(bytes);
    load.report_encoding(bytes, encoding);
    // The last of several lines counts, even if its value is bad, so they are collected before any is applied.
    let mut entries = BTreeMap::<String, (usize, String)>::new();
    for entry in properties::parse(&text) {
        match entry {
            Ok(entry) => {
                let line = entry.line;
                if let Some((first, _)) = entries.insert(entry.key.clone(), (line, entry.value)) {
                    load.warn(
                        line,
                        format!(
                            "{} was set in line {first} already; this line counts",
                            shown(&entry.key)
                        ),
                    );
                }
            }
            Err(Malformed { line }) => load.warn(
                line,
                "\\u needs four hexadecimal digits; the line is ignored".to_owned(),
            ),
        }
    }
    for (key, (line, value)) in entries {
        match Key::named(&key) {
            Some(key) => load.known(line, key, &value),
            None => load.unknown(line, key, value),
        }
    }
    load.config
        .replace(KeyId::ConfigStorePath, Value::Text(path.to_owned()));
    load.findings.sort_by_key(|finding| finding.line);
    load.findings
}

struct Load<'c> {
    config: &'c mut Config,
    path: &'c str,
    findings: Vec<Finding>,
}

impl Load<'_> {
    fn find(&mut self, line: usize, severity: Severity, message: String) {
        self.findings.push(Finding {
            line,
            severity,
            message,
        });
    }

    fn warn(&mut self, line: usize, message: String) {
        self.find(line, Severity::Warning, message);
    }

    fn report_encoding(&mut self, bytes: &[u8], encoding: Encoding) {
        match encoding {
            Encoding::Utf8 => {}
            Encoding::Utf8WithMark => {
                self.find(
                    1,
                    Severity::Note,
                    "the file begins with a byte order mark, which was skipped".to_owned(),
                );
            }
            Encoding::Utf16 => self.warn(
                0,
                "the file is UTF-16; it was read, but Java would not: save it as UTF-8".to_owned(),
            ),
            Encoding::Latin1 => {
                let valid =
                    std::str::from_utf8(bytes).map_or_else(|error| error.valid_up_to(), str::len);
                let line = 1 + bytes[..valid].iter().filter(|&&byte| byte == b'\n').count();
                self.warn(
                    line,
                    "not UTF-8 from here, so the file was read as ISO-8859-1".to_owned(),
                );
            }
        }
    }

    fn known(&mut self, line: usize, key: &Key, text: &str) {
        let name = key.name;
        if key.id == KeyId::ConfigStorePath {
            if java_trim(text) != java_trim(self.path) {
                self.warn(
                    line,
                    format!("{name} is ignored: updates are written to the file given by -c"),
                );
            }
            return;
        }
        let value = match Value::read(key.kind, text) {
            Ok(value) => value,
            Err(bad) => {
                let kept = self.config.value(key.id).to_string();
                return self.warn(
                    line,
                    format!(
                        "{name}={} {bad}; {name} stays {}",
                        shown(text),
                        shown(&kept)
                    ),
                );
            }
        };
        let is_boolean = matches!(key.kind, Kind::Boolean | Kind::Off(_));
        if is_boolean && !text.eq_ignore_ascii_case("true") && !text.eq_ignore_ascii_case("false") {
            let blanks = if java_trim(text).len() == text.len() {
                ""
            } else {
                " (blanks at the end count)"
            };
            self.warn(
                line,
                format!(
                    "{name}={} is neither true nor false{blanks}; read as false, as in Java",
                    shown(text)
                ),
            );
        }
        match value.check(key) {
            Err(problem) => self.find(line, Severity::Error, problem.to_string()),
            Ok(()) if key.is_standard(&value) => {} // a rewritten file holds every key
            Ok(()) => self.report_reach(line, key),
        }
        self.config.replace(key.id, value);
        if !key.group.is_on_the_wire() {
            self.config.shown.insert(key.id);
        }
    }

    fn report_reach(&mut self, line: usize, key: &Key) {
        if let Reach::NoMeaning(instead) = key.reach {
            self.find(
                line,
                Severity::Note,
                format!("{} has no meaning here: {instead}", key.name),
            );
        }
    }

    fn unknown(&mut self, line: usize, name: String, value: String) {
        if name.is_empty() {
            return self.warn(
                line,
                "no key before the separator; the line is ignored".to_owned(),
            );
        }
        if name.len() > CONFIG_KEY_LEN_MAX || name.contains(char::is_control) {
            return self.warn(
                line,
                format!(
                    "unknown key {} is too long or has a control character; ignored",
                    shown(&name)
                ),
            );
        }
        if let Some(remark) = family(&name) {
            self.warn(line, format!("{}: {remark}", shown(&name)));
        } else {
            let suggestion = similar(&name)
                .map(|key| format!("; did you mean {key}?"))
                .unwrap_or_default();
            self.warn(
                line,
                format!("unknown key {} has no effect{suggestion}", shown(&name)),
            );
        }
        match plain(&value) {
            Err(BadValue::TooLong) => self.warn(
                line,
                format!("{}: its value is too long to be remembered", shown(&name)),
            ),
            Err(_) => self.warn(
                line,
                format!(
                    "{}: its value has a control character and is not remembered",
                    shown(&name)
                ),
            ),
            Ok(_) if self.config.remembered.len() >= CONFIG_KEYS_REMEMBERED_MAX => {
                self.warn(
                    line,
                    format!(
                        "{}: too many unknown keys, it is not remembered",
                        shown(&name)
                    ),
                );
            }
            Ok(_) => {
                self.config.remembered.insert(name, value);
            }
        }
    }
}

/// A text of the file as it can stand in a message: escaped, quoted if that makes it clearer, and not endless.
pub(super) fn shown(text: &str) -> String {
    const SHOWN_MAX: usize = 64;
    let mut start: String = text
        .chars()
        .take(SHOWN_MAX)
        .flat_map(char::escape_debug)
        .collect();
    if text.chars().nth(SHOWN_MAX).is_some() {
        start.push('…');
    }
    if text.is_empty() || text.contains(' ') || text.len() != start.len() {
        format!("\"{start}\"")
    } else {
        start
    }
}

/// The key that `name` was probably meant to be.
fn similar(name: &str) -> Option<&'static str> {
    /// No key is longer, and the distance takes time in the product of both lengths.
    const NAME_LEN_MAX: usize = 64;
    if name.chars().count() > NAME_LEN_MAX {
        return None;
    }
    let folded = fold(name);
    let allowed = (folded.chars().count() / 4).clamp(1, 3);
    let distances = KEYS
        .iter()
        .filter(|key| key.group != Group::System)
        .map(|key| (distance(&folded, &fold(key.name)), key.name));
    distances
        .filter(|&(distance, _)| distance <= allowed)
        .min()
        .map(|(_, name)| name)
}

/// A name without what is often written differently: case and punctuation.
pub(super) fn fold(name: &str) -> String {
    name.chars()
        .filter(|character| character.is_alphanumeric())
        .flat_map(char::to_lowercase)
        .collect()
}

/// How many characters must be inserted, deleted, replaced or swapped with their neighbour to turn `a` into `b`.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<_>, Vec<_>) = (a.chars().collect(), b.chars().collect());
    let mut before_last = vec![0; b.len() + 1];
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 0..a.len() {
        let mut row = vec![i + 1];
        for j in 0..b.len() {
            let mut cost = (last[j] + usize::from(a[i] != b[j]))
                .min(row[j] + 1)
                .min(last[j + 1] + 1);
            if i > 0 && j > 0 && a[i] == b[j - 1] && a[i - 1] == b[j] {
                cost = cost.min(before_last[j - 1] + 1);
            }
            row.push(cost);
        }
        before_last = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}
