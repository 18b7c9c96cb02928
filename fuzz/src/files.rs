//! Texts that are read from files or sent to become one.

use waypost::{
    config::{
        Config, Environment,
        properties::{self, Entry},
    },
    limits::{
        CONFIG_KEY_LEN_MAX, CONFIG_KEYS_REMEMBERED_MAX, CONFIG_REMARK_LEN_MAX, CONFIG_VALUE_LEN_MAX,
    },
    protocol::kv_file::{KvFile, decode_kv_file},
    registry::KvTable,
};

const PATH: &str = "/home/rocketmq/namesrv.properties";

/// More keys than the table has.
const KEYS_MAX: usize = 200;

/// The longest remark of an answer to code 318: with its ellipsis, or that of a refusal.
const REMARK_LEN_MAX: usize = CONFIG_REMARK_LEN_MAX + 8;

/// A KV file: what was read is written and read again, and a second reader reads the same.
pub(crate) fn kv_file(data: &[u8]) {
    let Ok(KvFile::Table(table)) = decode_kv_file(data) else {
        return;
    };
    let stored = KvTable::from_plain(table.clone());
    let written = stored.to_file();
    assert_eq!(stored.file_len(), written.len());
    assert_eq!(decode_kv_file(&written), Ok(KvFile::Table(table.clone())));
    let json: serde_json::Value = serde_json::from_slice(&written).expect("the file is JSON");
    let expected = serde_json::json!({ "configTable": table });
    assert_eq!(json, expected);
    for (namespace, entries) in &table {
        for (key, value) in entries {
            assert_eq!(
                stored.get(namespace, key).map(|text| &**text),
                Some(&**value)
            );
        }
    }
}

/// A properties text, as a `-c` file and as the body of code 318.
pub(crate) fn config_text(data: &[u8]) {
    properties_are_read_back(data);
    let defaults = Config::defaults(&Environment {
        user_home: Some("/home/rocketmq".into()),
        rocketmq_home: None,
    });
    let mut from_file = defaults.clone();
    for finding in from_file.load_file(PATH, data) {
        assert!(!finding.message.contains(char::is_control), "{finding:?}");
    }
    is_written_as_it_is(&from_file);
    // A request meets a configuration that a server has started with.
    for config in [defaults, from_file] {
        if config.validate().is_ok() {
            is_updated_safely(&config, data);
        }
    }
}

fn properties_are_read_back(data: &[u8]) {
    let (text, _) = properties::decode(data);
    let entries: Vec<Entry> = properties::parse(&text).filter_map(Result::ok).collect();
    let mut written = String::new();
    for entry in &entries {
        properties::write(&mut written, &entry.key, &entry.value);
    }
    assert!(written.is_ascii());
    let pairs = |entry: Entry| (entry.key, entry.value);
    let read: Vec<_> = properties::parse(&written)
        .map(|entry| pairs(entry.expect("what is written can be read")))
        .collect();
    assert_eq!(read, entries.into_iter().map(pairs).collect::<Vec<_>>());
}

/// The file of a configuration reads back as that configuration, and what it shows is bounded.
fn is_written_as_it_is(config: &Config) {
    let mut read = Config::defaults(&Environment::default());
    read.load_file(config.config_store_path(), config.to_file_text().as_bytes());
    assert_eq!(read.to_file_text(), config.to_file_text());
    assert_eq!(read.to_wire_text(), config.to_wire_text());
    assert_eq!(read.live(), config.live());
    let line_len_max = CONFIG_KEY_LEN_MAX + CONFIG_VALUE_LEN_MAX + 2;
    assert!(config.to_wire_text().len() <= (KEYS_MAX + CONFIG_KEYS_REMEMBERED_MAX) * line_len_max);
}

/// No request changes a path or makes a configuration that the next start refuses.
fn is_updated_safely(config: &Config, body: &[u8]) {
    match config.update(body) {
        Err(refusal) => assert!(refusal.remark().len() <= REMARK_LEN_MAX),
        Ok(update) => {
            let updated = update.config;
            assert_eq!(update.changed, updated != *config);
            assert_eq!(updated.validate(), Ok(()));
            assert_eq!(updated.config_store_path(), config.config_store_path());
            assert_eq!(updated.kv_config_path(), config.kv_config_path());
            assert_eq!(updated.log_output(), config.log_output());
            assert_eq!(updated.frame_max_length(), config.frame_max_length());
            assert_eq!(updated.worker_threads(), config.worker_threads());
            let remark = update.remark.unwrap_or_default();
            assert!(remark.len() <= REMARK_LEN_MAX);
            assert!(!remark.contains(char::is_control), "{remark:?}");
            is_written_as_it_is(&updated);
        }
    }
}
