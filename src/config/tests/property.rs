use proptest::{collection::vec, prelude::*};

use super::*;

/// Text that looks like a request: real keys, nearly real ones, escapes, separators and noise.
fn request() -> impl Strategy<Value = String> {
    let names: Vec<_> = KEYS.iter().map(|key| key.name.to_owned()).collect();
    let key = prop_oneof![
        4 => proptest::sample::select(names),
        1 => "[a-zA-Z.\\\\u0 ]{0,12}",
    ];
    let value = prop_oneof![
        3 => proptest::sample::select(vec!["true", "false", "0", "1", "8080", "-1", "65536", "2147483648", "127.0.0.1", "a b ", ""])
            .prop_map(str::to_owned),
        1 => "[\\\\a-z0-9 :=#!é😀]{0,12}",
        1 => "(?s).{0,8}",
    ];
    vec((key, "[ =:]{1,2}", value, "[\n\r]"), 0..5).prop_map(|lines| {
        lines
            .into_iter()
            .map(|(key, separator, value, end)| key + &separator + &value + &end)
            .collect()
    })
}

/// Whatever was answered, paths are as they were, the next start succeeds and has the same configuration.
fn assert_safe(before: &Config, body: &[u8]) {
    let Ok(update) = before.update(body) else {
        return;
    };
    for id in [
        KeyId::ConfigBlackList,
        KeyId::ConfigStorePath,
        KeyId::KvConfigPath,
        KeyId::RocketmqHome,
    ] {
        assert_eq!(update.config.value(id), before.value(id));
    }
    assert_eq!(update.changed, update.config != *before);
    assert_eq!(update.config.validate(), Ok(()));
    assert_eq!(restarted(&update.config), update.config);
    let lines = update.config.to_wire_text();
    assert_eq!(
        lines.lines().count(),
        update.config.visible().len(),
        "a line a key: {lines}"
    );
    assert!(
        update
            .remark
            .is_none_or(|remark| remark.len() < 4096 && !remark.contains(char::is_control))
    );
}

proptest! {
    #[test]
    fn no_request_moves_a_path_or_makes_a_file_that_reads_back_differently(bodies in vec(request(), 1..4)) {
        let mut config = loaded("foo=1\na.b=x").0;
        for body in bodies {
            assert_safe(&config, body.as_bytes());
            config = config.update(body.as_bytes()).map_or(config, |update| update.config);
        }
    }

    #[test]
    fn no_bytes_move_a_path(body in vec(any::<u8>(), 0..200)) {
        assert_safe(&defaults(), &body);
    }

    #[test]
    fn every_file_reads_back_as_what_it_was_read_as(text in request(), noise in vec(any::<u8>(), 0..40)) {
        let mut config = defaults();
        for finding in config.load_file("/etc/ns.properties", &[text.as_bytes(), &noise].concat()) {
            prop_assert!(!finding.to_string().contains(char::is_control), "{}", finding);
        }
        prop_assert_eq!(restarted(&config), config);
    }

    #[test]
    fn every_plain_value_of_a_remembered_key_reads_back(key in "[^\\p{Cc}]{1,8}", value in "[^\\p{Cc}]{0,16}") {
        let mut text = String::new();
        properties::write(&mut text, &key, &value);
        let config = loaded(&text).0;
        prop_assume!(Key::named(&key).is_none());
        prop_assert_eq!(config.remembered.get(&key), Some(&value));
        prop_assert_eq!(restarted(&config), config);
    }
}
