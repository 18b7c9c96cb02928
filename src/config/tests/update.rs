use super::*;
use crate::limits::{CONFIG_UPDATE_LEN_MAX, CONFIG_VALUE_LEN_MAX, SCAN_INTERVAL_MIN};

pub(super) fn updated(body: &str) -> ConfigUpdate {
    defaults().update(body.as_bytes()).expect(body)
}

fn refused(body: &str) -> (i32, String) {
    let refusal = defaults().update(body.as_bytes()).expect_err(body);
    (refusal.code(), refusal.remark())
}

#[test]
fn an_update_of_live_keys_takes_effect_without_a_remark() {
    let update = updated(
        "orderMessageEnable=TRUE\nenableTopicList=whatever\nserverChannelMaxIdleTimeSeconds=+15\n",
    );
    assert!(update.config.live().order_message_enable && !update.config.live().enable_topic_list);
    assert_eq!(
        update.config.live().channel_max_idle,
        Duration::from_secs(15)
    );
    assert_eq!((update.changed, update.remark), (true, None));
}

#[test]
fn an_update_without_keys_or_with_the_same_values_changes_nothing() {
    for body in [
        "",
        "# kvConfigPath=/x\n",
        "listenPort=9876\nbindAddress=0.0.0.0",
    ] {
        let update = updated(body);
        assert_eq!(
            (update.config, update.changed, update.remark),
            (defaults(), false, None),
            "{body}"
        );
    }
}

#[test]
fn the_remark_tells_what_became_of_each_key() {
    let update = updated(
        "foo=1\nscanNotActiveBrokerInterval=abc\ndefaultThreadPoolNums=4\nlistenPort=19876\nwaitSecondsForService=2 \n\
         notifyMinBrokerIdChanged=true\nwaypost.logLevel=debug\nclientWorkerThreads=1\n",
    );
    let remark = "applied: notifyMinBrokerIdChanged; needs restart: listenPort; has no meaning here: defaultThreadPoolNums; \
        ignored: clientWorkerThreads (can only be set in the file), foo (unknown key), \
        scanNotActiveBrokerInterval (abc is not a whole number from 1 to 3600000), \
        waitSecondsForService (\"2 \" has blanks after the number, which make it none), \
        waypost.logLevel (can only be set in the file)";
    assert_eq!(update.remark.as_deref(), Some(remark));
    assert!(update.config.live().notify_min_broker_id_changed);
    assert!(has_line(
        &update.config.to_wire_text(),
        "defaultThreadPoolNums=4"
    ));
    assert!(!update.config.to_wire_text().contains("foo"));
}

#[test]
fn path_keys_are_refused_in_every_spelling_and_take_the_whole_request_with_them() {
    let spellings = |key: &str| {
        let (first, rest) = key.split_at(1);
        let unicode = format!("\\u{:04x}{rest}", u32::from(first.as_bytes()[0]));
        let case = key.to_ascii_uppercase();
        [
            format!("{key}=/tmp/p"),
            format!("  {key} : /tmp/p"),
            format!("{key} /tmp/p"),
            key.to_owned(),
            format!("{unicode}=/tmp/p"),
            format!("{first}\\\n   {rest}=/tmp/p"),
            format!("\\{key}=/tmp/p"),
            format!("{case}=/tmp/p"),
            format!("{key}\\ =/tmp/p"),
            format!("\u{FEFF}{key}=/tmp/p"),
            format!("{key}\\t=/tmp/p"),
            format!("{key}=/tmp/p\n{key}=/tmp/q"),
        ]
    };
    for spelling in PATH_KEYS.iter().flat_map(|key| spellings(key)) {
        for body in [
            spelling.clone(),
            format!("orderMessageEnable=true\n{spelling}"),
            format!("{spelling}\nfoo=\\n"),
        ] {
            // A backslash before the first letter of rocketmqHome is a carriage return: another key, refused as such.
            let wanted = if spelling.starts_with("\\rocketmq") {
                1
            } else {
                16
            };
            assert_eq!(refused(&body).0, wanted, "{body:?}");
        }
    }
    assert_eq!(
        refused("kvConfigPath=/x"),
        (16, "Can not update config in black list.".to_owned())
    );
}

#[test]
fn a_configured_black_list_adds_keys_and_takes_none_away() {
    let (config, _) = loaded("configBlackList=listenPort; bindAddress;;");
    for body in [
        "listenPort=1",
        "bindAddress=::",
        "kvConfigPath=x",
        "configBlackList=",
    ] {
        assert_eq!(config.update(body.as_bytes()).expect_err(body).code(), 16);
    }
    assert!(config.update(b"orderMessageEnable=true\n=x").is_ok());
}

#[test]
fn control_characters_are_refused_wherever_they_are() {
    for body in [
        "productEnvName=a\\nkvConfigPath=/x",
        "foo=\\u0000",
        "fo\\to=1",
        "productEnvName=a\t",
        "a=\\u0085",
        "a=\u{7F}",
    ] {
        let (code, remark) = refused(&format!("orderMessageEnable=true\n{body}"));
        assert_eq!(code, 1, "{body:?}");
        assert!(
            remark.starts_with("control character in ") && !remark.contains(char::is_control),
            "{remark}"
        );
    }
}

#[test]
fn what_is_no_properties_text_or_too_long_is_refused() {
    assert_eq!(
        refused("a=\\u12"),
        (1, "string2Properties error".to_owned())
    );
    assert_eq!(
        refused(&format!(
            "productEnvName={}",
            "x".repeat(CONFIG_VALUE_LEN_MAX + 1)
        ))
        .0,
        1
    );
    assert_eq!(refused(&"#".repeat(CONFIG_UPDATE_LEN_MAX + 1)).0, 1);
    assert!(
        updated(&format!(
            "productEnvName={}",
            "x".repeat(CONFIG_VALUE_LEN_MAX)
        ))
        .changed
    );
}

#[test]
fn an_update_stores_nothing_that_the_next_start_would_refuse() {
    for body in [
        "listenPort=70000",
        "listenPort=0",
        "listenPort=80",
        "listenPort=-1",
        "bindAddress=300.0.0.1",
        "bindAddress=192.0.2.1",
        "bindAddress=a b",
        "bindAddress=",
        "clusterTest=true",
        "enableControllerInNamesrv=true",
        "serverSocketSndBufSize=-1",
        "defaultThreadPoolQueueCapacity=0",
        "unRegisterBrokerQueueCapacity=0",
        "scanNotActiveBrokerInterval=0",
        "waitSecondsForService=2147483647",
    ] {
        let update = updated(body);
        assert!(!update.changed, "{body}");
        assert!(
            update.remark.expect(body).starts_with("ignored: "),
            "{body}"
        );
    }
    assert!(updated("bindAddress=127.0.0.1\nlistenPort=19876").changed);
}

#[test]
fn a_scan_interval_below_the_bound_is_stored_as_sent_and_has_the_effect_of_the_bound() {
    let update = updated("scanNotActiveBrokerInterval=1");
    assert_eq!(update.remark, None);
    assert!(has_line(
        &update.config.to_wire_text(),
        "scanNotActiveBrokerInterval=1"
    ));
    assert_eq!(update.config.live().scan_interval, SCAN_INTERVAL_MIN);
    let bound = format!("; below {0} means {0};", SCAN_INTERVAL_MIN.as_millis());
    let key = Key::named("scanNotActiveBrokerInterval").expect("a key");
    assert!(key.meaning.contains(&bound), "{}", key.meaning);
}

#[test]
fn a_remembered_key_that_may_name_a_file_or_a_secret_is_not_changed() {
    for key in [
        "myPassword",
        "myFile.path",
        "logDir",
        "accessKey",
        "my.home",
    ] {
        let (config, _) = loaded(&format!("{key}=a"));
        let update = config.update(format!("{key}=b").as_bytes()).unwrap();
        assert!(!update.changed, "{key}");
        assert!(update.remark.unwrap().contains(key));
    }
}

#[test]
fn a_remembered_key_may_be_changed_unless_it_belongs_to_a_known_family() {
    let (config, _) = loaded("foo=1\ntls.server.keyPath=/k\n");
    let update = config
        .update("foo=2\ntls.server.keyPath=/x\nbar=3".as_bytes())
        .expect("accepted");
    let wire = update.config.to_wire_text();
    assert!(
        has_line(&wire, "foo=2")
            && has_line(&wire, "tls.server.keyPath=/k")
            && !wire.contains("bar")
    );
    let remark =
        "has no meaning here: foo; ignored: bar (unknown key), tls.server.keyPath (unknown key)";
    assert_eq!(update.remark.as_deref(), Some(remark));
}

#[test]
fn updates_can_be_switched_off_by_the_file_and_not_switched_on_again() {
    let (config, _) = loaded("waypost.configUpdateEnable=false");
    for body in ["orderMessageEnable=true", "waypost.configUpdateEnable=true"] {
        assert_eq!(
            config.update(body.as_bytes()),
            Err(UpdateRefusal::SwitchedOff)
        );
    }
    assert_eq!(UpdateRefusal::SwitchedOff.code(), 16);
}

#[test]
fn values_that_need_escapes_survive_the_file_and_are_plain_on_the_wire() {
    let update = updated("productEnvName=C\\:\\\\r\\u00e9 \\ud83d\\ude00=#!");
    assert!(has_line(
        &update.config.to_wire_text(),
        "productEnvName=C:\\ré 😀=#!"
    ));
    assert!(update.config.to_file_text().is_ascii());
    assert_eq!(restarted(&update.config), update.config);
    assert_eq!(
        restarted(&updated("productEnvName=ä").config),
        updated("productEnvName=\\u00e4").config
    );
}
