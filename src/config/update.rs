//! Code 318: a properties text from the network → a changed copy of the configuration, or a refusal.
//!
//! The network may set keys of the original's two objects that are no paths, and remembered ones that mean nothing. The rest
//! is refused or ignored; what is stored, the next start accepts.

use std::{collections::BTreeMap, error::Error, fmt, net::Ipv4Addr};

use super::{
    Config, family,
    file::{fold, shown},
    is_sensitive,
    key::{KEYS, Key, KeyId, Reach},
    properties::{self, Malformed},
    value::Value,
};
use crate::limits::{CONFIG_REMARK_LEN_MAX, CONFIG_UPDATE_LEN_MAX, CONFIG_VALUE_LEN_MAX};

/// The outcome of a request that is not refused: it is answered with code 0.
#[derive(Debug, Clone, PartialEq)]
pub struct ConfigUpdate {
    /// The configuration from this moment.
    pub config: Config,
    /// Whether it differs, so that it must be written.
    pub changed: bool,
    /// Which keys were applied, need a restart, mean nothing or were ignored; `None` if all were simply applied.
    pub remark: Option<String>,
}

/// Why a request is refused as a whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UpdateRefusal {
    /// The body is no properties text.
    NotProperties,
    /// A key that requests may not change.
    BlackListed {
        /// The key as sent.
        key: String,
    },
    /// A key or its value holds a control character, which could plant a line somewhere (spec Q44).
    ControlCharacter {
        /// The key as sent.
        key: String,
    },
    /// The body is too long.
    TooLarge {
        /// Bytes sent.
        len: usize,
    },
    /// A value is too long.
    ValueTooLarge {
        /// The key as sent.
        key: String,
        /// Bytes sent.
        len: usize,
    },
    /// `waypost.configUpdateEnable` is false.
    SwitchedOff,
}

impl UpdateRefusal {
    /// The answer's code: 1 `SYSTEM_ERROR` or 16 `NO_PERMISSION`.
    #[must_use]
    pub fn code(&self) -> i32 {
        match self {
            Self::BlackListed { .. } | Self::SwitchedOff => 16,
            Self::NotProperties
            | Self::ControlCharacter { .. }
            | Self::TooLarge { .. }
            | Self::ValueTooLarge { .. } => 1,
        }
    }

    /// The answer's remark.
    #[must_use]
    pub fn remark(&self) -> String {
        match self {
            Self::NotProperties => "string2Properties error".to_owned(),
            Self::BlackListed { .. } => "Can not update config in black list.".to_owned(),
            Self::ControlCharacter { key } => format!(
                "control character in {} or its value, nothing was applied",
                shown(key)
            ),
            Self::TooLarge { len } => format!(
                "{len} bytes of configuration, allowed are {CONFIG_UPDATE_LEN_MAX}, nothing was applied"
            ),
            Self::ValueTooLarge { key, len } => {
                format!(
                    "value of {} has {len} bytes, allowed are {CONFIG_VALUE_LEN_MAX}, nothing was applied",
                    shown(key)
                )
            }
            Self::SwitchedOff => {
                "Can not update config: waypost.configUpdateEnable is false.".to_owned()
            }
        }
    }
}

impl fmt::Display for UpdateRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.remark())?;
        if let Self::BlackListed { key } = self {
            write!(f, " key {}", shown(key))
        } else {
            Ok(())
        }
    }
}

impl Error for UpdateRefusal {}

/// What became of one key of a request.
enum Outcome {
    Applied,
    NeedsRestart,
    NoMeaning,
    Ignored(String),
}

/// Applies `body` to a copy of `config`. See [`Config::update`].
pub(super) fn update(config: &Config, body: &[u8]) -> Result<ConfigUpdate, UpdateRefusal> {
    if body.len() > CONFIG_UPDATE_LEN_MAX {
        return Err(UpdateRefusal::TooLarge { len: body.len() });
    }
    let text = String::from_utf8_lossy(body);
    let entries: Result<Vec<_>, Malformed> = properties::parse(&text).collect();
    let entries = entries.map_err(|_| UpdateRefusal::NotProperties)?;
    // The last of several equal keys counts, but each is checked.
    if let Some(entry) = entries
        .iter()
        .find(|entry| is_black_listed(config, &entry.key))
    {
        return Err(UpdateRefusal::BlackListed {
            key: entry.key.clone(),
        });
    }
    for entry in &entries {
        check_entry(&entry.key, &entry.value)?;
    }
    if !entries.is_empty() && !config.boolean(KeyId::ConfigUpdateEnable) {
        return Err(UpdateRefusal::SwitchedOff);
    }
    let requested: BTreeMap<_, _> = entries
        .into_iter()
        .map(|entry| (entry.key, entry.value))
        .collect();
    let mut updated = config.clone();
    let mut outcomes = BTreeMap::new();
    for (name, value) in &requested {
        outcomes.insert(name.as_str(), apply(config, &mut updated, name, value));
    }
    if let Some(problem) = updated.water_mark_problem() {
        for id in [
            KeyId::WriteBufferLowWaterMark,
            KeyId::WriteBufferHighWaterMark,
        ] {
            updated.replace(id, config.value(id).clone());
            outcomes
                .entry(KEYS[id as usize].name)
                .and_modify(|outcome| *outcome = Outcome::Ignored(problem.to_string()));
        }
    }
    let changed = updated != *config;
    Ok(ConfigUpdate {
        config: updated,
        changed,
        remark: remark(&outcomes),
    })
}

/// Refuses what could plant a line in the file, or grow it without end.
fn check_entry(name: &str, value: &str) -> Result<(), UpdateRefusal> {
    if name.contains(char::is_control) || value.contains(char::is_control) {
        return Err(UpdateRefusal::ControlCharacter {
            key: name.to_owned(),
        });
    }
    if value.len() > CONFIG_VALUE_LEN_MAX {
        return Err(UpdateRefusal::ValueTooLarge {
            key: name.to_owned(),
            len: value.len(),
        });
    }
    Ok(())
}

/// Java compares exactly. Case and punctuation are ignored here as well: no honest request spells a listed key differently.
fn is_black_listed(config: &Config, name: &str) -> bool {
    let blocked = KEYS
        .iter()
        .filter(|key| key.reach == Reach::Blocked && key.group.is_on_the_wire())
        .map(|key| key.name);
    let configured = config
        .text(KeyId::ConfigBlackList)
        .split(';')
        .map(str::trim);
    let folded = fold(name);
    let is_listed = |listed: &str| {
        !listed.is_empty() && (listed == name || (!folded.is_empty() && fold(listed) == folded))
    };
    blocked.chain(configured).any(is_listed)
}

fn apply(config: &Config, updated: &mut Config, name: &str, text: &str) -> Outcome {
    let ignored = |why: &str| Outcome::Ignored(why.to_owned());
    let Some(key) = Key::named(name) else {
        // Java lets a request change whatever the file happens to contain; that is harmless only if nothing reads it.
        return match updated.remembered.get_mut(name) {
            Some(value) if family(name).is_none() && !is_sensitive(name) => {
                text.clone_into(value);
                Outcome::NoMeaning
            }
            _ => ignored("unknown key"),
        };
    };
    if !key.group.is_on_the_wire() {
        return ignored("can only be set in the file");
    }
    let value = match Value::read(key.kind, text) {
        Ok(value) => value,
        Err(bad) => return Outcome::Ignored(format!("{} {bad}", shown(text))),
    };
    if value == *config.value(key.id) {
        return Outcome::Applied;
    }
    if let Err(problem) = value.check(key) {
        return Outcome::Ignored(problem.to_string());
    }
    if !is_safe_to_start_with(key.id, &value) {
        return ignored("the next start might fail with it, so it can only be set in the file");
    }
    updated.replace(key.id, value);
    match key.reach {
        Reach::Live => Outcome::Applied,
        Reach::Restart => Outcome::NeedsRestart,
        Reach::NoMeaning(_) => Outcome::NoMeaning,
        // Blocked keys are black-listed, so none arrives here.
        Reach::Blocked => ignored("black-listed"),
    }
}

/// Whether a start with `value` succeeds on any machine. For these two keys that takes more than a well-formed value.
fn is_safe_to_start_with(id: KeyId, value: &Value) -> bool {
    match value {
        // Ports below belong to the superuser on most systems; 0 would make the server hard to find.
        Value::Number(port) if id == KeyId::ListenPort => *port >= 1024,
        // Any other address may belong to another machine, now or at the next start.
        Value::Text(address) if id == KeyId::BindAddress => address
            .parse()
            .is_ok_and(|address: Ipv4Addr| address.is_unspecified() || address.is_loopback()),
        Value::Unset | Value::Boolean(_) | Value::Number(_) | Value::Text(_) => true,
    }
}

fn remark(outcomes: &BTreeMap<&str, Outcome>) -> Option<String> {
    if outcomes
        .values()
        .all(|outcome| matches!(outcome, Outcome::Applied))
    {
        return None;
    }
    let mut groups: [(&str, Vec<String>); 4] =
        ["applied", "needs restart", "has no meaning here", "ignored"]
            .map(|title| (title, Vec::new()));
    for (name, outcome) in outcomes {
        let name = shown(name);
        let (group, text) = match outcome {
            Outcome::Applied => (0, name),
            Outcome::NeedsRestart => (1, name),
            Outcome::NoMeaning => (2, name),
            Outcome::Ignored(why) => (3, format!("{name} ({why})")),
        };
        groups[group].1.push(text);
    }
    let groups = groups.iter().filter(|(_, keys)| !keys.is_empty());
    let mut text = groups
        .map(|(title, keys)| format!("{title}: {}", keys.join(", ")))
        .collect::<Vec<_>>()
        .join("; ");
    if text.len() > CONFIG_REMARK_LEN_MAX {
        text.truncate(text.floor_char_boundary(CONFIG_REMARK_LEN_MAX));
        text.push('…');
    }
    Some(text)
}
