//! Every setting: read from a `-c` file, shown by 319 and `-p`, changed by 318, written back.
//!
//! Pure: bytes in, values and text out. What it promises:
//!
//! - No request can change a path, the black list or a key that is not Java's (spec 5.4).
//! - A request is applied as a whole to a copy, or refused as a whole.
//! - [`Config::to_file_text`] read by [`Config::load_file`] is the same configuration again, whatever the values are.
//! - A value that [`Config::validate`] refuses never comes from a request.
//!
//! `docs/configuration.md` describes all keys; its tables are made from the same rows as the code.

use std::{
    collections::{BTreeMap, BTreeSet},
    error::Error,
    fmt,
};

mod file;
mod key;
pub mod properties;
mod settings;
mod update;
mod value;

#[cfg(test)]
mod document;
#[cfg(test)]
mod tests;

use self::{
    file::fold,
    key::{FAMILIES, KEYS, Key, KeyId, Standard},
    value::{Value, java_trim},
};
pub use self::{
    file::{Finding, Severity},
    settings::{LiveSettings, NEVER},
    update::{ConfigUpdate, UpdateRefusal},
};

/// What the process's environment contributes to the defaults.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Environment {
    /// The user's home directory; the current directory stands in for it.
    pub user_home: Option<String>,
    /// `ROCKETMQ_HOME`, which need not be set.
    pub rocketmq_home: Option<String>,
}

/// Every setting of a server.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// One for each row of [`KEYS`], of the row's kind.
    values: Vec<Value>,
    /// The keys that 319 shows only because the file sets them.
    shown: BTreeSet<KeyId>,
    /// Keys of the file that nothing here knows: 319 shows them, as in Java.
    remembered: BTreeMap<String, String>,
    /// The port that was found, if any was asked for.
    bound_port: Option<u16>,
}

/// A value that the server does not start with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The key.
    pub key: &'static str,
    /// Its value.
    pub value: String,
    /// What it may be, or what to do instead.
    pub allowed: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}={} is refused: {}",
            self.key,
            self.value.escape_debug(),
            self.allowed
        )
    }
}

/// Everything that keeps a configuration from being started with; at least one problem.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigError {
    /// In the order of the table of keys.
    pub problems: Vec<Problem>,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (count, problem) in self.problems.iter().enumerate() {
            let separator = if count == 0 { "" } else { "; " };
            write!(f, "{separator}{problem}")?;
        }
        Ok(())
    }
}

impl Error for ConfigError {}

impl Config {
    /// The configuration of a server that is given no file.
    #[must_use]
    pub fn defaults(environment: &Environment) -> Self {
        let standard = |key: &Key| match key.standard {
            Standard::Is(text) => {
                Value::read(key.kind, text).expect("the table's default is a value of its key")
            }
            Standard::InUserHome(file) => {
                let home = environment
                    .user_home
                    .as_deref()
                    .filter(|home| !home.is_empty())
                    .unwrap_or(".");
                let separator = std::path::MAIN_SEPARATOR;
                let home = home.strip_suffix(separator).unwrap_or(home);
                // Trimmed because it would be when read back from a file.
                Value::Text(
                    java_trim(&format!("{home}{separator}namesrv{separator}{file}")).to_owned(),
                )
            }
            Standard::RocketmqHome => match &environment.rocketmq_home {
                Some(home) => Value::Text(java_trim(home).to_owned()),
                None => Value::Unset,
            },
            Standard::Unset => Value::Unset,
        };
        Self {
            values: KEYS.iter().map(standard).collect(),
            shown: BTreeSet::new(),
            remembered: BTreeMap::new(),
            bound_port: None,
        }
    }

    /// Applies the bytes of a `-c` file and makes `path` the file that updates are written to.
    ///
    /// Never fails as a whole: a line that cannot be used leaves its key as it was, and is reported with its number.
    pub fn load_file(&mut self, path: &str, bytes: &[u8]) -> Vec<Finding> {
        file::load(self, path, bytes)
    }

    /// Checks that a server can start with this.
    ///
    /// # Errors
    ///
    /// Names every value that it cannot start with, and what to do instead.
    pub fn validate(&self) -> Result<(), ConfigError> {
        let of_keys = KEYS
            .iter()
            .filter_map(|key| self.value(key.id).check(key).err());
        let problems: Vec<_> = of_keys.chain(self.water_mark_problem()).collect();
        if problems.is_empty() {
            Ok(())
        } else {
            Err(ConfigError { problems })
        }
    }

    /// Answers code 318: the configuration after `body`, a properties text, was applied to this one.
    ///
    /// # Errors
    ///
    /// The request is refused as a whole, and nothing of it may be applied.
    pub fn update(&self, body: &[u8]) -> Result<ConfigUpdate, UpdateRefusal> {
        update::update(self, body)
    }

    /// The body of code 319: sorted `key=value` lines without escapes (`Configuration#getAllConfigsFormatString`).
    #[must_use]
    pub fn to_wire_text(&self) -> String {
        let mut text = String::with_capacity(2048);
        let mut visible = self.visible();
        if let Some(port) = self.bound_port.filter(|_| self.listen_port() == 0) {
            visible.insert(KEYS[KeyId::ListenPort as usize].name, port.to_string());
        }
        for (name, value) in visible.into_iter().filter(|(name, _)| !is_secret(name)) {
            for part in [name, "=", &value, "\n"] {
                text.push_str(part);
            }
        }
        text
    }

    /// What is written to [`Self::config_store_path`]: the same lines as a file that reads back as this configuration.
    #[must_use]
    pub fn to_file_text(&self) -> String {
        let mut text = FILE_HEADER.to_owned();
        for (name, value) in self.visible() {
            properties::write(&mut text, name, &value);
        }
        text
    }

    /// What `-p` prints: every key in the order of the table as `name=value`, then the remembered ones.
    #[must_use]
    pub fn print_items(&self) -> String {
        let known = KEYS
            .iter()
            .zip(&self.values)
            .map(|(key, value)| (key.name, value.to_string()));
        let remembered = self.remembered.iter().map(|(name, value)| {
            let value = if is_secret(name) { "******" } else { value };
            (name.as_str(), value.to_owned())
        });
        known
            .chain(remembered)
            .map(|(name, value)| format!("{name}={value}\n"))
            .collect()
    }

    /// Records which port a server that asked for any free one was given: 319 then shows it, as in Java. The next start asks for any
    /// free one again.
    pub fn record_bound_port(&mut self, port: u16) {
        self.bound_port = Some(port);
    }
}

const FILE_HEADER: &str = "\
# Written by the name server after a change of its configuration by a request (code 318).
# Comments and order of an earlier file are lost; its text is kept beside this file as .bak.
# ASCII with escapes, as java.util.Properties reads it.
";

impl Config {
    fn value(&self, id: KeyId) -> &Value {
        &self.values[id as usize]
    }

    /// Puts `value`, which was read for `id`, in its place.
    fn replace(&mut self, id: KeyId, value: Value) {
        self.values[id as usize] = value;
    }

    fn water_mark_problem(&self) -> Option<Problem> {
        let (low, high) = self.water_marks().filter(|(low, high)| low > high)?;
        let allowed = format!("allowed is at most the value of writeBufferHighWaterMark, {high}");
        Some(Problem {
            key: "writeBufferLowWaterMark",
            value: low.to_string(),
            allowed,
        })
    }

    /// What 319 and the file contain, sorted: all keys of the original's two objects, and what the file sets besides.
    fn visible(&self) -> BTreeMap<&str, String> {
        let is_visible = |key: &Key| key.group.is_on_the_wire() || self.shown.contains(&key.id);
        let known = KEYS
            .iter()
            .zip(&self.values)
            .filter(|(key, value)| is_visible(key) && **value != Value::Unset);
        let known = known.map(|(key, value)| (key.name, value.to_string()));
        known
            .chain(
                self.remembered
                    .iter()
                    .map(|(name, value)| (name.as_str(), value.clone())),
            )
            .collect()
    }
}

/// What operators call values that are nobody's business; `docs/configuration.md` lists them.
const SECRET_WORDS: [&str; 9] = [
    "password",
    "passwd",
    "passphrase",
    "secret",
    "token",
    "credential",
    "accesskey",
    "privatekey",
    "apikey",
];

/// Whether a remembered key's value is nobody's business, so that neither 319 nor `-p` shows it: by its name, whatever case and
/// punctuation that has.
fn is_secret(name: &str) -> bool {
    let name = fold(name);
    SECRET_WORDS.iter().any(|word| name.contains(word))
}

/// Whether a remembered key may name a file or a secret: no request changes such a one.
fn is_sensitive(name: &str) -> bool {
    let folded = fold(name);
    is_secret(name)
        || ["path", "file", "dir", "home"]
            .iter()
            .any(|word| folded.contains(word))
}

/// What is known of a name that is no key but belongs to a family of them.
fn family(name: &str) -> Option<&'static str> {
    FAMILIES
        .iter()
        .find(|(prefix, _)| name.starts_with(prefix))
        .map(|&(_, remark)| remark)
}
