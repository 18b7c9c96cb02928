use super::*;

#[test]
fn a_file_sets_keys_and_becomes_the_file_that_is_written() {
    let (config, findings) = loaded(
        "listenPort=19876\r\norderMessageEnable : TRUE\r\nkvConfigPath = /data/kv.json \r\n",
    );
    assert_eq!(findings, Vec::<String>::new());
    assert_eq!(config.listen_port(), 19876);
    assert!(config.live().order_message_enable);
    assert_eq!(config.kv_config_path(), "/data/kv.json");
    assert_eq!(config.config_store_path(), "/etc/ns.properties");
}

#[test]
fn e3_a_typing_mistake_is_reported_with_its_line_and_what_was_meant() {
    for (line, suggestion) in [
        ("listenport=1", "; did you mean listenPort?"),
        ("listenProt=1", "; did you mean listenPort?"),
        ("listen-port=1", "; did you mean listenPort?"),
        ("kvConfigpath=x", "; did you mean kvConfigPath?"),
        (
            "oderMessageEnable=true",
            "; did you mean orderMessageEnable?",
        ),
        (
            "waitSecondForService=3",
            "; did you mean waitSecondsForService?",
        ),
        ("brokerClusterName=c", ""),
    ] {
        let key = line.split('=').next().expect("a key");
        let (config, findings) = loaded(&format!("# comment\n\n{line}\n"));
        assert_eq!(
            findings,
            [format!(
                "line 3: unknown key {key} has no effect{suggestion}"
            )]
        );
        assert!(
            has_line(&config.to_wire_text(), line),
            "remembered, as in Java"
        );
    }
}

#[test]
fn a_bad_value_is_reported_and_the_default_stays() {
    for (line, message) in [
        (
            "listenPort=9877 ",
            "listenPort=\"9877 \" has blanks after the number, which make it none; listenPort stays 9876",
        ),
        (
            "listenPort=",
            "listenPort=\"\" is not a whole number from 0 to 65535; listenPort stays 9876",
        ),
        (
            "listenPort",
            "listenPort=\"\" is not a whole number from 0 to 65535; listenPort stays 9876",
        ),
        (
            "listenPort=0x10",
            "listenPort=0x10 is not a whole number from 0 to 65535; listenPort stays 9876",
        ),
        (
            "listenPort=99999999999",
            "listenPort=99999999999 is not a whole number from 0 to 65535; listenPort stays 9876",
        ),
        (
            "productEnvName=a\\nb",
            "productEnvName=\"a\\nb\" contains a control character; productEnvName stays center",
        ),
        (
            "waypost.logLevel=loud",
            "waypost.logLevel=loud is not one of off, error, warn, info, debug, trace; waypost.logLevel stays info",
        ),
    ] {
        let (config, findings) = loaded(line);
        assert_eq!(findings, [format!("line 1: {message}")]);
        assert_eq!(restarted(&config), loaded("").0);
    }
}

#[test]
fn a_boolean_that_is_neither_is_false_and_reported() {
    let (config, findings) = loaded("enableTopicList=yes\nenableAllTopicList=true \n");
    assert_eq!(
        findings,
        [
            "line 1: enableTopicList=yes is neither true nor false; read as false, as in Java",
            "line 2: enableAllTopicList=\"true \" is neither true nor false (blanks at the end count); read as false, as in Java",
        ]
    );
    assert!(!config.live().enable_topic_list && !config.live().enable_all_topic_list);
}

#[test]
fn of_two_lines_the_last_counts_even_if_its_value_is_bad() {
    let (config, findings) = loaded("listenPort=1\nlistenPort=2\n");
    assert_eq!(
        findings,
        ["line 2: listenPort was set in line 1 already; this line counts"]
    );
    assert_eq!(config.listen_port(), 2);
    assert_eq!(loaded("listenPort=1\nlistenPort=x\n").0.listen_port(), 9876);
}

#[test]
fn oddly_encoded_files_are_read_and_reported() {
    let load = |bytes: &[u8]| {
        let mut config = defaults();
        let findings = config.load_file("f", bytes);
        (
            config.listen_port(),
            findings.iter().map(Finding::to_string).collect::<Vec<_>>(),
        )
    };
    let marked = "line 1: the file begins with a byte order mark, which was skipped".to_owned();
    assert_eq!(load(b"\xEF\xBB\xBFlistenPort=1"), (1, vec![marked]));
    let latin = "line 2: not UTF-8 from here, so the file was read as ISO-8859-1".to_owned();
    assert_eq!(load(b"listenPort=1\n# \xE4\n"), (1, vec![latin]));
    let wide: Vec<u8> = "\u{FEFF}listenPort=1"
        .encode_utf16()
        .flat_map(u16::to_le_bytes)
        .collect();
    assert_eq!(
        load(&wide),
        (
            1,
            vec![
                "the file is UTF-16; it was read, but Java would not: save it as UTF-8".to_owned()
            ]
        )
    );
}

#[test]
fn lines_that_cannot_be_used_are_reported_and_hide_no_other() {
    let (config, findings) = loaded("a=\\u12\n=x\nb=\\u0000\n\\u0000=c\nlistenPort=1\n");
    assert_eq!(
        findings,
        [
            "line 1: \\u needs four hexadecimal digits; the line is ignored",
            "line 2: no key before the separator; the line is ignored",
            "line 3: unknown key b has no effect",
            "line 3: b: its value has a control character and is not remembered",
            "line 4: unknown key \"\\0\" is too long or has a control character; ignored",
        ]
    );
    assert_eq!(config.listen_port(), 1);
}

#[test]
fn a_file_that_the_server_has_written_itself_is_nothing_to_complain_of() {
    let written = loaded("").0.update(b"orderMessageEnable=true").unwrap();
    let (_, findings) = loaded(&written.config.to_file_text());
    assert_eq!(findings, [""; 0]);
}

#[test]
fn keys_without_meaning_are_accepted_with_what_replaces_them() {
    let (config, findings) = loaded(
        "clientWorkerThreads=9\nserverWorkerThreads=12\nrocketmq.serialize.type=ROCKETMQ\ntls.server.mode=enforcing\n\
         tls.server.keyPassword=geheim\ncontrollerDLegerPeers=n0-a:1\nwaypost.nonsense=1\n",
    );
    assert_eq!(
        findings,
        [
            "line 1: clientWorkerThreads has no meaning here: a setting of the Java client",
            "line 2: serverWorkerThreads has no meaning here: one kind of worker thread serves every request: `waypost.workerThreads`",
            "line 3: rocketmq.serialize.type has no meaning here: an answer is encoded as its request was; environment \
             `ROCKETMQ_SERIALIZE_TYPE` likewise",
            "line 4: tls.server.mode: TLS is not supported yet, so this has no effect: connections are plain text",
            "line 5: tls.server.keyPassword: TLS is not supported yet, so this has no effect: connections are plain text",
            "line 6: controllerDLegerPeers: this server has no controller, so this has no effect",
            "line 7: waypost.nonsense: no such key; see docs/configuration.md",
        ]
    );
    let wire = config.to_wire_text();
    assert!(
        has_line(&wire, "clientWorkerThreads=9") && has_line(&wire, "tls.server.mode=enforcing")
    );
    assert!(!wire.contains("geheim") && !config.print_items().contains("geheim"));
    assert!(!wire.contains("connectTimeoutMillis"));
    assert_eq!(restarted(&config), config);
}

#[test]
fn f11_whatever_is_called_like_a_secret_is_kept_and_shown_to_nobody() {
    for name in [
        "tls.server.keyPassword",
        "db.passwd",
        "keyPassphrase",
        "aclSecretKey",
        "accessKey",
        "acl.access-key",
        "ACCESS_KEY_ID",
        "sign.privateKey",
        "api_key",
        "authToken",
        "my.Credentials",
    ] {
        let (config, _) = loaded(&format!("{name}=geheim\n"));
        assert!(!config.to_wire_text().contains("geheim"), "{name}");
        assert!(has_line(&config.print_items(), &format!("{name}=******")));
        assert!(config.to_file_text().contains("geheim"), "{name}");
        let update = config.update(format!("{name}=bekannt").as_bytes());
        assert!(!update.expect("ignored").changed, "{name}");
    }
    assert!(KEYS.iter().all(|key| !is_secret(key.name)));
}

#[test]
fn the_frame_limit_is_a_key_of_the_file() {
    let (config, findings) = loaded("com.rocketmq.remoting.frameMaxLength=33554432");
    assert_eq!(findings, Vec::<String>::new());
    assert_eq!(config.frame_max_length(), 33_554_432);
    assert!(has_line(
        &config.to_wire_text(),
        "com.rocketmq.remoting.frameMaxLength=33554432"
    ));
    assert!(!defaults().to_wire_text().contains("frameMaxLength"));
}

#[test]
fn what_cannot_be_started_with_is_refused_with_key_value_and_alternative() {
    for (line, message) in [
        (
            "clusterTest=true",
            "clusterTest=true is refused: not supported by this server; remove it: ",
        ),
        (
            "enableControllerInNamesrv=true",
            "enableControllerInNamesrv=true is refused: not supported by this server; remove it and run",
        ),
        (
            "listenPort=65536",
            "listenPort=65536 is refused: allowed is 0 to 65535",
        ),
        (
            "listenPort=-1",
            "listenPort=-1 is refused: allowed is 0 to 65535",
        ),
        (
            "serverSocketBacklog=-1",
            "serverSocketBacklog=-1 is refused: allowed is 0 to 2147483647",
        ),
        (
            "serverSocketSndBufSize=-1",
            "serverSocketSndBufSize=-1 is refused: allowed is 0 to 2147483647",
        ),
        (
            "defaultThreadPoolNums=0",
            "defaultThreadPoolNums=0 is refused: allowed is 1 to 2147483647",
        ),
        (
            "scanNotActiveBrokerInterval=0",
            "scanNotActiveBrokerInterval=0 is refused: allowed is 1 to 3600000",
        ),
        (
            "kvConfigPath=",
            "kvConfigPath= is refused: allowed is the path of a file",
        ),
        (
            "bindAddress=",
            "bindAddress= is refused: allowed is a host name or",
        ),
    ] {
        let mut config = defaults();
        let findings = config.load_file("f", line.as_bytes());
        assert_eq!(findings.len(), 1);
        assert_eq!(
            (findings[0].line, findings[0].severity),
            (1, Severity::Error)
        );
        let error = config.validate().expect_err(line).to_string();
        assert!(error.starts_with(message), "{error}");
        assert_eq!(findings[0].message, error);
    }
    let (config, _) = loaded("clusterTest=true\nlistenPort=70000");
    assert_eq!(
        config.validate().expect_err("two problems").problems.len(),
        2
    );
}

#[test]
fn water_marks_count_in_pairs_and_in_order() {
    let (config, _) = loaded("writeBufferHighWaterMark=10");
    assert_eq!(
        (config.validate(), config.write_buffer_high_water_mark()),
        (Ok(()), None)
    );
    let (config, _) = loaded("writeBufferHighWaterMark=10\nwriteBufferLowWaterMark=5");
    assert_eq!(
        config
            .write_buffer_high_water_mark()
            .zip(config.write_buffer_low_water_mark()),
        Some((10, 5))
    );
    let (config, _) = loaded("writeBufferHighWaterMark=10\nwriteBufferLowWaterMark=11");
    assert!(
        config
            .validate()
            .expect_err("low above high")
            .to_string()
            .starts_with("writeBufferLowWaterMark=11 is refused")
    );

    let update = update::updated(
        "writeBufferHighWaterMark=10\nwriteBufferLowWaterMark=11\norderMessageEnable=true",
    );
    assert!(update.config.live().order_message_enable);
    assert!(has_line(
        &update.config.to_wire_text(),
        "writeBufferHighWaterMark=0"
    ));
    assert_eq!(update.config.validate(), Ok(()));
}

#[test]
fn a_bind_address_is_a_host_name_or_an_address() {
    let accepts = |text: &str| {
        loaded(&format!("bindAddress={}", text.replace(':', "\\:")))
            .0
            .validate()
            .is_ok()
    };
    for text in [
        "0.0.0.0",
        "::",
        "[::1]",
        "::1",
        "fe80::1%eth0",
        "localhost",
        "ns-1.example.com",
        "ns_1",
        "a.b.",
    ] {
        assert!(accepts(text), "{text}");
    }
    for text in [
        "0.0.0.256",
        "10.0.0",
        "1",
        "a b",
        "host:9876",
        "0.0.0.0:9876",
        "[::1",
        "a..b",
        "-a",
        "/tmp/s",
        "ä",
        "::1%",
        ".",
    ] {
        assert!(!accepts(text), "{text}");
    }
    assert_eq!(loaded("bindAddress=[::1]").0.bind_address(), "::1");
}

#[test]
fn an_idle_time_of_zero_means_never() {
    assert_eq!(
        loaded("serverChannelMaxIdleTimeSeconds=0")
            .0
            .live()
            .channel_max_idle,
        NEVER
    );
}

#[test]
fn the_port_that_was_found_is_shown_if_any_was_asked_for() {
    let (mut config, _) = loaded("listenPort=0");
    config.record_bound_port(40000);
    assert!(has_line(&config.to_wire_text(), "listenPort=40000"));
    assert!(has_line(&config.to_file_text(), "listenPort=0"));
    let changed = config.update(b"listenPort=20000").unwrap().config;
    assert!(has_line(&changed.to_wire_text(), "listenPort=20000"));
    assert!(has_line(&changed.to_file_text(), "listenPort=20000"));
    let mut config = defaults();
    config.record_bound_port(40000);
    assert_eq!(config.listen_port(), 9876);
}
