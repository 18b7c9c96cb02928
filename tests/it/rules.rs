//! The rules of each request that no reported fault covers, one behaviour a test (`docs/protocol.md`).

use std::{sync::mpsc, time::Duration};

use serde_json::json;
use waypost::{
    limits::{LOOK_AHEAD_MAX, SCAN_INTERVAL_MIN},
    processor::look_ahead,
    protocol::command::RemotingCommand,
    registry::Breather,
};

use crate::world::{Ask, World, ask, conn, heartbeat, reg, route, topics, unreg};

const ORDER: &str = "ORDER_TOPIC_CONFIG";

fn names(reply: &crate::world::Reply) -> Vec<String> {
    let mut names: Vec<String> =
        serde_json::from_value(reply.json()["topicList"].clone()).expect("a list of names");
    names.sort();
    names
}

fn put(namespace: &str, key: &str, value: &str) -> Ask {
    ask(100)
        .ext("namespace", namespace)
        .ext("key", key)
        .ext("value", value)
}

#[test]
fn h17_an_unknown_code_is_answered_with_3_and_its_number() {
    let mut world = World::new();
    for code in [
        0,
        -1,
        1,
        25,
        47,
        99,
        107,
        905,
        1001,
        40_000,
        i32::MAX,
        i32::MIN,
    ] {
        let reply = world.send(1, &ask(code));
        assert_eq!(
            (reply.code, reply.remark),
            (3, Some(format!(" request type {code} not supported")))
        );
        assert!(!reply.header.contains("extFields"));
    }
}

#[test]
fn an_unknown_topic_is_answered_with_17_and_the_originals_text() {
    let mut world = World::new();
    let text = |topic: &str| {
        format!(
            "No topic route info in name server for the topic: {topic}\nSee https://rocketmq.apache.org/docs/bestPractice/06FAQ for further details."
        )
    };
    assert_eq!(world.send(1, &route("T")).remark, Some(text("T")));
    assert_eq!(world.send(1, &ask(105)).remark, Some(text("null")));
    assert_eq!(world.send(1, &route("")).code, 17);
}

#[test]
fn a_slave_learns_its_master_while_that_is_live_under_the_same_cluster() {
    let mut world = World::new();
    let slave = reg("c", "b", 1, "y:1", &topics(&["A", "B"]), (0, 1, 1));
    assert_eq!(
        world
            .send(2, &slave)
            .header
            .matches("\"extFields\":{}")
            .count(),
        1
    );
    let master = world.send(1, &reg("c", "b", 0, "x:1", &topics(&["A", "B"]), (0, 1, 1)));
    assert!(master.ext.is_empty());
    let reply = world.send(2, &slave);
    assert!(
        reply
            .header
            .contains(r#""extFields":{"haServerAddr":"x:1-ha","masterAddr":"x:1"}"#),
        "{}",
        reply.header
    );
    world.send(1, &unreg("c", "b", 0, "x:1"));
    assert!(world.send(2, &slave).ext.is_empty());
}

#[test]
fn order_topics_go_to_brokers_and_if_asked_to_into_routes() {
    let mut world = World::new();
    let broker = reg("c", "b", 0, "x:1", &topics(&["A", "B"]), (0, 1, 1));
    assert_eq!(world.send(1, &broker).body, "");
    world.send(1, &put(ORDER, "A", "b:4"));
    assert_eq!(world.send(1, &broker).body, r#"{"table":{"A":"b:4"}}"#);
    assert_eq!(
        world.route("A").expect("a route").get("orderTopicConf"),
        None
    );
    assert_eq!(
        world.code(&ask(318).body("orderMessageEnable=true\nreturnOrderTopicConfigToBroker=false")),
        0
    );
    assert_eq!(world.send(1, &broker).body, "");
    assert_eq!(world.route("A").expect("a route")["orderTopicConf"], "b:4");
    assert_eq!(
        world.route("B").expect("a route").get("orderTopicConf"),
        None
    );
}

#[test]
fn lists_name_each_topic_once_and_only_with_a_route() {
    let mut world = World::new();
    assert_eq!(world.send(1, &ask(206)).body, r#"{"topicList":[]}"#);
    assert_eq!(world.send(1, &ask(304)).body, r#"{"topicList":[]}"#);
    world.send(
        1,
        &reg("c1", "a", 0, "x:1", &topics(&["A", "S"]), (0, 1, 1)),
    );
    world.send(
        2,
        &reg("c2", "b", 0, "y:1", &topics(&["B", "S"]), (0, 1, 1)),
    );
    assert_eq!(names(&world.send(1, &ask(206))), ["A", "B", "S"]);
    assert_eq!(
        names(&world.send(1, &ask(224).ext("cluster", "c1"))),
        ["A", "S"]
    );
    assert_eq!(
        names(&world.send(1, &ask(224).ext("cluster", "none"))),
        Vec::<String>::new()
    );
    assert_eq!(names(&world.send(1, &ask(224))), Vec::<String>::new());
    let system = world.send(1, &ask(304));
    assert_eq!(names(&system), ["a", "b", "c1", "c2"]);
    assert_eq!(system.json()["brokerAddr"], "x:1");
}

#[test]
fn unit_lists_go_by_the_bits_of_the_system_flag() {
    let mut world = World::new();
    let entry = |name: &str, flag: i32| {
        format!(r#""{name}":{{"topicName":"{name}","topicSysFlag":{flag}}}"#)
    };
    let table = [
        entry("none", 0),
        entry("unit", 1),
        entry("sub", 2),
        entry("both", 3),
    ]
    .join(",");
    let body = format!(r#"{{"topicConfigSerializeWrapper":{{"topicConfigTable":{{{table}}}}}}}"#);
    assert_eq!(
        world.code(&reg("c", "b", 0, "x:1", &[], (0, 1, 1)).body(body)),
        0
    );
    assert_eq!(names(&world.send(1, &ask(311))), ["both", "unit"]);
    assert_eq!(names(&world.send(1, &ask(312))), ["both", "sub"]);
    assert_eq!(names(&world.send(1, &ask(313))), ["sub"]);
}

#[test]
fn deleting_a_topic_works_everywhere_or_in_one_cluster_and_always_succeeds() {
    let mut world = World::new();
    world.send(
        1,
        &reg("c1", "a", 0, "x:1", &topics(&["T", "U"]), (0, 1, 1)),
    );
    world.send(
        2,
        &reg("c2", "b", 0, "y:1", &topics(&["T", "U"]), (0, 1, 1)),
    );
    for odd in [
        ask(216),
        ask(216).ext("topic", "none"),
        ask(216).ext("topic", "T").ext("clusterName", " "),
    ] {
        assert_eq!(world.code(&odd), 0);
        assert_eq!(world.addrs("T").len(), 2);
    }
    assert_eq!(
        world.code(&ask(216).ext("topic", "T").ext("clusterName", "c1")),
        0
    );
    assert_eq!(world.addrs("T").into_keys().collect::<Vec<_>>(), ["b"]);
    assert_eq!(
        world.code(&ask(216).ext("topic", "T").ext("clusterName", "")),
        0
    );
    assert_eq!(world.route("T"), None);
    world.send(
        1,
        &reg("c1", "a", 0, "x:1", &topics(&["T", "U"]), (0, 1, 1)),
    );
    assert_eq!(
        world.addrs("T").into_keys().collect::<Vec<_>>(),
        ["a"],
        "its broker brings it back at its next registration"
    );
}

#[test]
fn a_single_topic_registration_stops_at_the_first_unknown_broker() {
    let mut world = World::new();
    world.send(1, &reg("c", "a", 0, "x:1", &topics(&["T", "U"]), (0, 1, 1)));
    world.send(2, &reg("c", "b", 0, "y:1", &topics(&["V", "U"]), (0, 1, 1)));
    let queues = |names: &[&str]| {
        let data: Vec<_> = names.iter().map(|name| json!({"brokerName": name, "perm": 6, "readQueueNums": 9, "writeQueueNums": 9})).collect();
        json!({"brokerDatas": [], "filterServerTable": {}, "queueDatas": data}).to_string()
    };
    assert_eq!(
        world.code(
            &ask(217)
                .ext("topic", "NEW")
                .body(queues(&["a", "none", "b"]))
        ),
        0
    );
    assert_eq!(world.route("NEW"), None);
    assert_eq!(
        world.code(&ask(217).ext("topic", "NEW").body(queues(&["a", "b"]))),
        0
    );
    assert_eq!(world.addrs("NEW").len(), 2);
    assert_eq!(
        world.code(&ask(217).ext("topic", "T").body(queues(&["a", "none", "b"]))),
        0
    );
    let route = world.route("T").expect("a route");
    assert_eq!(route["queueDatas"].as_array().map(Vec::len), Some(1));
    assert_eq!(route["queueDatas"][0]["readQueueNums"], 9);
    let twice = r#"{"queueDatas":[{"brokerName":"a","perm":4},{"brokerName":"b"},{"brokerName":"a","perm":2}]}"#;
    assert_eq!(world.code(&ask(217).ext("topic", "T").body(twice)), 0);
    let route = world.route("T").expect("a route");
    let perms = route["queueDatas"].as_array().expect("a list").iter();
    let perms: Vec<_> = perms
        .map(|queues| (&queues["brokerName"], &queues["perm"]))
        .collect();
    assert_eq!(perms, [(&json!("a"), &json!(2)), (&json!("b"), &json!(0))]);
    for body in ["", "null", "{}"] {
        assert_eq!(
            world.code(&ask(217).ext("topic", "X").body(body)),
            0,
            "{body}"
        );
    }
    assert_eq!(world.code(&ask(217).ext("topic", "X").body("{")), 1);
}

#[test]
fn kv_entries_are_put_read_listed_and_deleted() {
    let mut world = World::new();
    let get = |namespace: &str, key: &str| ask(101).ext("namespace", namespace).ext("key", key);
    let missing = world.send(1, &get("n", "k"));
    assert_eq!(
        (missing.code, missing.remark.as_deref()),
        (22, Some("No config item, Namespace: n Key: k"))
    );
    assert!(missing.header.contains("\"extFields\":{}"));
    assert_eq!(
        world
            .send(1, &ask(219).ext("namespace", "n"))
            .remark
            .as_deref(),
        Some("No config item, Namespace: n")
    );
    assert_eq!(world.code(&put("n", "k", "v")), 0);
    assert_eq!(world.send(1, &get("n", "k")).ext["value"], "v");
    assert_eq!(world.code(&put("n", "", "")), 0);
    assert_eq!(
        world.send(1, &ask(219).ext("namespace", "n")).body,
        r#"{"table":{"":"","k":"v"}}"#
    );
    assert_eq!(
        world.code(&put("n", "k", "v").without("value")),
        0,
        "a null value hides the older one"
    );
    assert_eq!(world.code(&get("n", "k")), 22);
    for key in ["", "none"] {
        assert_eq!(
            world.code(&ask(102).ext("namespace", "n").ext("key", key)),
            0
        );
    }
    assert_eq!(
        world.send(1, &ask(219).ext("namespace", "n")).body,
        r#"{"table":{}}"#,
        "an emptied namespace stays"
    );
    for odd in [
        put("n", "k", "v").without("namespace"),
        put("n", "k", "v").without("key"),
    ] {
        let reply = world.send(1, &odd);
        assert_eq!(
            (reply.code, reply.remark.as_deref()),
            (1, Some("namespace or key is null"))
        );
    }
    assert_eq!(world.code(&ask(102)), 0);
    assert_eq!(
        world.send(1, &ask(101)).remark.as_deref(),
        Some("No config item, Namespace: null Key: null")
    );
    assert_eq!(
        world.code(&ask(102).ext("namespace", "other").ext("key", "k")),
        0
    );
    assert_eq!(
        world.code(&ask(219).ext("namespace", "other")),
        22,
        "deleting creates no namespace"
    );
}

#[test]
fn kv_changes_that_arrive_while_a_write_is_out_share_the_next_one() {
    let mut world = World::new();
    world.hold_persists = true;
    for number in 0..10 {
        let command = world
            .process(1, &put("n", &format!("k{number}"), "v"))
            .expect("a command");
        world.apply([command]);
    }
    assert_eq!(world.persists.len(), 1);
    let (ticket, file) = world.persists.pop().expect("a write");
    let file = file.to_bytes();
    assert_eq!(&file[..], br#"{"configTable":{"n":{"k0":"v"}}}"#);
    world.apply([waypost::registry::Command::Persisted(ticket, Ok(()))]);
    assert_eq!(world.take_reply(1).expect("an answer").code, 0);
    assert_eq!(world.take_reply(1), None);
    let (ticket, file) = world.persists.pop().expect("the next write");
    let file = file.to_bytes();
    assert_eq!(file.iter().filter(|byte| **byte == b'k').count(), 10);
    world.apply([waypost::registry::Command::Persisted(ticket, Ok(()))]);
    assert_eq!(std::iter::from_fn(|| world.take_reply(1)).count(), 9);
}

#[test]
fn a_broker_is_expired_at_its_own_timeout_and_its_connection_closed() {
    let mut world = World::new();
    world.send(
        1,
        &reg("c", "a", 0, "x:1", &topics(&["A", "B"]), (0, 1, 1))
            .ext("heartbeatTimeoutMillis", 3000),
    );
    world.send(2, &reg("c", "b", 0, "y:1", &topics(&["A", "B"]), (0, 1, 1)));
    for odd in ["0", "-5", "9223372036854775807", "soon"] {
        world.send(
            3,
            &reg("c", odd, 0, odd, &topics(&["A", "B"]), (0, 1, 1))
                .ext("heartbeatTimeoutMillis", odd),
        );
    }
    for _ in 0..10 {
        world.pass(Duration::from_secs(2));
        world.send_oneway(1, &heartbeat("c", "whatever", "x:1"));
        world.send_oneway(1, &heartbeat("other", "b", "y:1"));
    }
    assert_eq!(
        world.addrs("A").len(),
        6,
        "heartbeats keep a, and the others have two minutes or more"
    );
    world.pass(Duration::from_secs(10));
    assert_eq!(world.addrs("A").len(), 5);
    assert_eq!(world.closed, [conn(1)]);
    world.pass(Duration::from_secs(100));
    assert_eq!(
        world.addrs("A").into_keys().collect::<Vec<_>>(),
        ["9223372036854775807"]
    );
}

#[test]
fn a_shared_connection_outlives_one_silent_broker() {
    let mut world = World::new();
    world.send(
        1,
        &reg("c", "a", 0, "x:1", &topics(&["A", "B"]), (0, 1, 1))
            .ext("heartbeatTimeoutMillis", 1000),
    );
    world.send(1, &reg("c", "b", 0, "y:1", &topics(&["A", "B"]), (0, 1, 1)));
    world.pass(Duration::from_secs(20));
    assert_eq!(world.addrs("A").into_keys().collect::<Vec<_>>(), ["b"]);
    assert_eq!(world.closed, []);
}

#[test]
fn a_connection_that_was_replaced_ends_nothing() {
    let mut world = World::new();
    let broker = reg("c", "b", 0, "x:1", &topics(&["A", "B"]), (0, 1, 1));
    world.send(1, &broker);
    world.send(2, &broker);
    world.close(1);
    assert!(world.route("A").is_some());
    world.send(1, &heartbeat("c", "b", "x:1"));
    world.close(2);
    assert!(
        world.route("A").is_some(),
        "the first connection, reopened, speaks for the broker"
    );
    world.close(1);
    assert_eq!(world.route("A"), None);
}

#[test]
fn a_role_switch_moves_the_address_and_a_lone_switch_is_told_to_the_broker_itself() {
    let mut world = World::with("notifyMinBrokerIdChanged=true");
    let as_id = |id| {
        reg("c", "b", id, "x:1", &topics(&["A", "B"]), (0, 1, 1)).ext("enableActingMaster", "true")
    };
    world.send(1, &as_id(1));
    assert_eq!(world.perms("A")["b"], 4, "an acting slave");
    world.send(1, &as_id(0));
    assert_eq!(world.members("c", "b"), json!({"0": "x:1"}));
    let (to, _) = world.notices.pop().expect("a notice");
    assert_eq!(to.iter().map(|addr| &**addr).collect::<Vec<_>>(), ["x:1"]);
}

#[test]
fn unregistering_needs_the_right_cluster_name_and_address_but_not_the_id() {
    let mut world = World::new();
    let broker = reg("c", "b", 0, "x:1", &topics(&["A", "B"]), (0, 1, 1));
    world.send(1, &broker);
    let right = unreg("c", "b", 7, "x:1");
    let wrong = [
        unreg("other", "b", 0, "x:1"),
        unreg("c", "other", 0, "x:1"),
        unreg("c", "b", 0, "y:1"),
        right.clone().without("clusterName"),
        right.clone().without("brokerName"),
        right.clone().without("brokerAddr"),
        right.clone().without("brokerId"),
        right.clone().ext("brokerId", "x"),
    ];
    for wrong in &wrong {
        assert_eq!(world.code(wrong), 0);
        assert!(world.route("A").is_some());
    }
    assert_eq!(world.code(&right), 0);
    assert_eq!(world.route("A"), None);
}

#[test]
fn filter_servers_are_shown_with_their_address_kept_by_null_and_removed_by_an_empty_list() {
    let mut world = World::new();
    let with = |list: &str| {
        let body = format!(
            r#"{{"filterServerList":{list},"topicConfigSerializeWrapper":{{"topicConfigTable":{{"A":{{"topicName":"A"}},"B":{{"topicName":"B"}}}}}}}}"#
        );
        reg("c", "b", 0, "x:1", &[], (0, 0, 0)).body(body)
    };
    let mut shown = |list: &str| {
        world.send(1, &with(list));
        world.route("A").expect("a route")["filterServerTable"].clone()
    };
    assert_eq!(shown(r#"["f:1","f:2"]"#), json!({"x:1": ["f:1", "f:2"]}));
    assert_eq!(shown("null"), json!({"x:1": ["f:1", "f:2"]}));
    assert_eq!(shown("[]"), json!({}));
}

#[test]
fn e6_configuration_changes_are_live_at_once_and_what_is_ignored_is_named() {
    let mut world = World::new();
    assert_eq!(world.code(&ask(318)), 0);
    let reply = world.send(1, &ask(318).body("enableTopicList=false\nfoo=1\nscanNotActiveBrokerInterval=abc\ndefaultThreadPoolNums=4\n"));
    assert_eq!(reply.code, 0);
    let remark = reply.remark.expect("a remark");
    for key in [
        "enableTopicList",
        "foo",
        "scanNotActiveBrokerInterval",
        "defaultThreadPoolNums",
    ] {
        assert!(remark.contains(key), "{remark}");
    }
    assert_eq!(world.code(&ask(311)), 1);
    let text = world.send(1, &ask(319)).body;
    assert!(
        text.contains("\nenableTopicList=false\n")
            && text.contains("\nscanNotActiveBrokerInterval=5000\n")
            && !text.contains("foo"),
        "{text}"
    );
    let mut sorted: Vec<&str> = text.lines().collect();
    sorted.sort_unstable();
    assert_eq!(text.lines().collect::<Vec<_>>(), sorted);
    assert_eq!(
        world.send(1, &ask(318).body("a=\\u12")).remark.as_deref(),
        Some("string2Properties error")
    );
}

#[test]
fn publication_happens_once_a_batch_and_only_for_what_can_be_seen() {
    let mut world = World::new();
    let batch: Vec<_> = (0..50)
        .map(|number| {
            world
                .process(
                    number,
                    &reg(
                        "c",
                        &format!("b{number}"),
                        0,
                        &format!("x:{number}"),
                        &topics(&["A", "B"]),
                        (0, 1, 1),
                    ),
                )
                .expect("a command")
        })
        .collect();
    world.apply(batch);
    assert_eq!(
        (world.publications, world.snapshot.counts()),
        (1, (2, 50, 50))
    );
    world.send(1, &ask(216).ext("topic", "none"));
    world.send(1, &ask(205).ext("brokerName", "none"));
    world.send(1, &unreg("c", "none", 0, "n:1"));
    world.close(800);
    assert_eq!(world.publications, 1);
}

#[test]
fn a_name_or_address_that_would_be_repeated_without_end_is_refused() {
    let mut world = World::new();
    let long = "n".repeat(513);
    let broker = reg("c", "b", 0, "x:1", &topics(&["A", "B"]), (0, 1, 1));
    for field in [
        "clusterName",
        "brokerName",
        "brokerAddr",
        "haServerAddr",
        "__ZONE_NAME",
    ] {
        let reply = world.send(1, &broker.clone().ext(field, &long));
        assert_eq!(reply.code, 1, "{field}");
        assert!(
            reply.remark.expect("a remark").contains("512 bytes"),
            "{field}"
        );
        assert_eq!(
            world.code(&broker.clone().ext(field, &long[1..])),
            0,
            "{field}"
        );
    }
}

#[test]
fn a_group_takes_no_more_members_than_it_can_show_quickly() {
    let mut world = World::new();
    let member = |id: i64| reg("c", "b", id, &format!("x:{id}"), &[], (0, 1, 1));
    for id in 0..256 {
        assert_eq!(world.code(&member(id)), 0);
    }
    assert_eq!(world.code(&member(256)), 1);
    assert_eq!(world.code(&member(7)), 0, "a member may register again");
}

#[test]
fn d2_while_the_server_says_goodbye_nobody_leaves_the_routes() {
    let mut world = World::new();
    let broker = reg("c", "b", 0, "x:1", &topics(&["A", "B"]), (0, 1, 1));
    world.send(1, &broker.ext("heartbeatTimeoutMillis", 1000));
    world.apply([waypost::registry::Command::Drain]);
    world.close(1);
    world.pass(Duration::from_secs(60));
    assert!(world.route("A").is_some());
}

#[test]
fn another_scan_interval_counts_from_the_change() {
    let mut world = World::with("scanNotActiveBrokerInterval=3600000");
    let broker = reg("c", "b", 0, "x:1", &topics(&["A", "B"]), (0, 1, 1));
    world.send(1, &broker.ext("heartbeatTimeoutMillis", 1000));
    world.pass(Duration::from_secs(60));
    assert!(world.route("A").is_some());
    world.send(2, &ask(318).body("scanNotActiveBrokerInterval=5000"));
    world.pass(Duration::from_secs(5));
    assert_eq!(world.route("A"), None);
}

#[test]
fn changes_of_the_configuration_do_not_put_off_a_scan() {
    let mut world = World::new();
    let broker = reg("c", "b", 0, "x:1", &topics(&["A", "B"]), (0, 1, 1));
    world.send(1, &broker.ext("heartbeatTimeoutMillis", 1000));
    for change in 0..3 {
        let body = format!("productEnvName=e{change}\n");
        assert_eq!(world.code(&ask(318).body(body)), 0);
        world.pass(Duration::from_secs(2));
    }
    assert_eq!(world.route("A"), None);
}

#[test]
fn a_scan_interval_of_a_millisecond_is_shown_but_keeps_nobody_busy() {
    let mut world = World::new();
    world.send(1, &reg("c", "b", 0, "x:1", &topics(&["A", "B"]), (0, 1, 1)));
    world.send(2, &ask(318).body("scanNotActiveBrokerInterval=1"));
    let shown = world.send(2, &ask(319)).body;
    assert!(shown.contains("\nscanNotActiveBrokerInterval=1\n"));
    for _ in 0..3 {
        let next = world.registry.poll_timeout().expect("a broker is live");
        assert_eq!(next, world.now.after(SCAN_INTERVAL_MIN));
        world.pass(SCAN_INTERVAL_MIN);
    }
}

#[test]
fn a_past_heartbeat_does_not_outlive_a_registration_over_another_connection() {
    let mut world = World::new();
    let broker = reg("c", "b", 0, "x:1", &topics(&["A", "B"]), (0, 1, 1));
    world.send(1, &broker);
    world.send(2, &heartbeat("c", "b", "x:1"));
    world.send(3, &broker);
    world.close(3);
    assert_eq!(world.route("A"), None);
}

#[test]
fn a_late_heartbeat_does_not_bind_its_connection_to_the_addresss_next_life() {
    let mut world = World::new();
    let broker = reg("c", "b", 0, "x:1", &topics(&["A", "B"]), (0, 1, 1));
    world.send(1, &broker);
    let binding = world.process(2, &heartbeat("c", "b", "x:1"));
    assert!(binding.is_some(), "it is on its way to the writer");
    world.send(1, &unreg("c", "b", 0, "x:1"));
    world.send(3, &broker);
    world.apply(binding);
    world.close(3);
    assert_eq!(world.route("A"), None);
}

#[test]
fn an_outranked_registration_changes_neither_zone_nor_acting_master() {
    let mut world = World::new();
    let acting = |addr: &str, version, acting: bool, zone: &str| {
        let broker = reg("c", "b", 1, addr, &topics(&["A", "B"]), version);
        broker
            .ext("enableActingMaster", acting.to_string())
            .ext("zoneName", zone)
    };
    world.send(1, &acting("x:1", (5, 1, 1), true, "here"));
    let before = world.route("A");
    world.send(2, &acting("y:1", (4, 1, 1), false, "there"));
    assert!(before.is_some());
    assert_eq!(world.route("A"), before);
}

#[test]
fn unregistering_a_stranger_changes_no_permission() {
    let mut world = World::new();
    let broker = reg("c", "b", 1, "x:1", &topics(&["A", "B"]), (0, 1, 1));
    world.send(1, &broker.ext("enableActingMaster", "true"));
    assert_eq!(world.code(&ask(327).ext("brokerName", "b")), 0);
    let before = world.route("A").expect("a route");
    assert_eq!(before["queueDatas"][0]["perm"], 6);
    assert_eq!(world.code(&unreg("c", "b", 0, "z:9")), 0);
    assert_eq!(world.route("A"), Some(before));
}

#[test]
fn strangers_that_heartbeat_for_a_broker_do_not_push_out_its_connection() {
    let mut world = World::new();
    let broker = reg("c", "b", 0, "x:1", &topics(&["A", "B"]), (0, 1, 1));
    world.send(1, &broker);
    for stranger in 2..30 {
        world.send(stranger, &heartbeat("c", "b", "x:1"));
    }
    for stranger in 2..30 {
        world.close(stranger);
    }
    assert!(world.route("A").is_some());
    let published = world.publications;
    world.send(2, &heartbeat("c", "b", "x:1"));
    world.send(1, &broker);
    world.send(2, &heartbeat("c", "b", "x:1"));
    assert_eq!(
        world.publications, published,
        "nothing a reader can see has changed"
    );
    world.close(1);
    assert!(
        world.route("A").is_some(),
        "the last registration has not cut off connection 2"
    );
    world.close(2);
    assert_eq!(world.route("A"), None);
}

#[test]
fn memory_follows_what_is_live() {
    let mut world = World::new();
    for round in 0..3 {
        for number in 0..20_u32 {
            let names: Vec<String> = (0..30)
                .map(|topic| format!("T{round}-{number}-{topic}"))
                .collect();
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            world.send(
                number,
                &reg(
                    "c",
                    &format!("b{round}-{number}"),
                    0,
                    &format!("x:{round}-{number}"),
                    &topics(&names),
                    (0, 1, 1),
                ),
            );
        }
        assert_eq!(world.snapshot.counts(), (600, 20, 20));
        for number in 0..20 {
            world.close(number);
        }
        assert_eq!(world.snapshot.counts(), (0, 0, 0));
    }
}

#[test]
fn a_route_at_hand_follows_every_change_of_its_topic_and_its_brokers() {
    let mut world = World::new();
    let ask_often = |world: &mut World, topic: &str| {
        let bodies: Vec<_> = (0..4)
            .map(|_| world.send(9, &route(topic)).json())
            .collect();
        assert!(bodies.iter().all(|body| *body == bodies[0]));
        bodies[0].to_string()
    };
    world.send(
        1,
        &reg("c", "a", 0, "10.0.0.1:1", &topics(&["t", "u"]), (0, 1, 1)),
    );
    let first = ask_often(&mut world, "t");
    assert_eq!(
        ask_often(&mut world, "u"),
        first,
        "the same brokers and queues"
    );
    // A broker changes, not a topic.
    world.send(
        1,
        &reg("c", "a", 1, "10.0.0.9:1", &topics(&["t", "u"]), (0, 1, 1)),
    );
    let with_slave = ask_often(&mut world, "t");
    assert!(with_slave.contains("10.0.0.9:1"));
    assert_eq!(ask_often(&mut world, "u"), with_slave);
    // One topic changes, not the other.
    let table = [("t".to_string(), 6, 8), ("u".to_string(), 6, 4)];
    world.send(1, &reg("c", "a", 0, "10.0.0.1:1", &table, (0, 2, 2)));
    assert!(ask_often(&mut world, "t").contains("\"readQueueNums\":8"));
    assert_eq!(ask_often(&mut world, "u"), with_slave);
    // A second broker comes for one topic and goes.
    world.send(
        2,
        &reg("c", "b", 0, "10.0.0.2:1", &topics(&["u", "v"]), (0, 1, 1)),
    );
    assert!(ask_often(&mut world, "u").contains("10.0.0.2:1"));
    world.send(2, &unreg("c", "b", 0, "10.0.0.2:1"));
    assert_eq!(ask_often(&mut world, "u"), with_slave);
}

#[test]
fn a_heartbeat_over_a_connection_that_its_broker_lives_by_is_no_business_of_the_writer() {
    let mut world = World::new();
    for number in 0..16 {
        let (name, addr) = (format!("b{number}"), format!("x:{number}"));
        world.send(
            number,
            &reg("c", &name, 0, &addr, &topics(&["T", "U"]), (0, 1, 1)),
        );
    }
    // The first over a connection binds the broker to it.
    for is_first in [true, false, false] {
        for number in 0..16 {
            let beat = heartbeat("c", &format!("b{number}"), &format!("x:{number}"));
            let version = ask(322).ext("clusterName", "c");
            let version = version.ext("brokerName", format!("b{number}"));
            let version = version.ext("brokerAddr", format!("x:{number}"));
            let asks = [beat, version.body(r#"{"counter":1,"timestamp":1}"#)];
            let commands = asks.map(|ask| world.process(100 + number, &ask).is_some());
            assert_eq!(commands, [is_first, false], "broker {number}");
        }
    }
}

#[test]
fn namespaces_without_values_count_against_the_size_of_the_kv_table_too() {
    let mut world = World::new();
    let codes: Vec<i64> = (0..5)
        .map(|number| {
            let namespace = format!("{number}{}", "n".repeat(8 * 1024 * 1024));
            let put = ask(100).ext("namespace", namespace).ext("key", "k");
            world.send(1, &put).code
        })
        .collect();
    assert_eq!(codes, [0, 0, 0, 1, 1]);
}

#[test]
fn what_is_looked_up_ahead_is_the_route_that_was_asked_for() {
    let mut world = World::new();
    let registration = reg("c", "a", 0, "10.0.0.1:1", &topics(&["t", ""]), (0, 1, 1));
    assert_eq!(world.send(1, &registration).code, 0);
    let frames: Vec<Vec<u8>> = [
        route("t"),
        route("t").response(),
        ask(105),
        route("unknown"),
        route(""),
    ]
    .iter()
    .map(Ask::frame)
    .collect();
    let requests: Vec<_> = frames
        .iter()
        .map(|frame| RemotingCommand::decode(frame).expect("well-formed"))
        .collect();
    let found: Vec<bool> = look_ahead(&requests, world.snapshot())
        .iter()
        .map(Option::is_some)
        .collect();
    assert_eq!(found, [true, false, false, false, true]);
}

/// Counts where it could interrupt, and the batches.
#[derive(Debug)]
struct Counting(mpsc::Sender<&'static str>);

impl Breather for Counting {
    fn breathe(&mut self) {
        self.0.send("step").unwrap();
    }

    fn finished(&mut self) {
        self.0.send("batch").unwrap();
    }
}

#[test]
fn long_work_on_topics_can_be_interrupted_at_each_step() {
    let mut world = World::new();
    let (seen, counted) = mpsc::channel();
    world.registry.breathe_with(Counting(seen));
    let names: Vec<String> = (0..100).map(|number| format!("T{number}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let expect = |what: &str, world: &mut World, ask: &Ask, steps: usize| {
        assert_eq!(world.send(1, ask).code, 0);
        let seen: Vec<_> = counted.try_iter().collect();
        let interrupted = seen.iter().filter(|event| **event == "step").count();
        assert_eq!(
            (interrupted, seen.last()),
            (steps, Some(&"batch")),
            "{what}"
        );
    };
    let declared = |version| reg("c", "a", 0, "x:1", &topics(&names), (0, 1, version));
    let named = |code| ask(code).ext("brokerName", "a");
    let compared = names.len().div_ceil(LOOK_AHEAD_MAX);
    expect("new topics", &mut world, &declared(1), compared + 100);
    expect("none changed", &mut world, &declared(1), 0);
    expect("permissions", &mut world, &named(205), 100);
    expect("all stored anew", &mut world, &declared(2), compared + 100);
    expect(
        "a broker leaves",
        &mut world,
        &unreg("c", "a", 0, "x:1"),
        100,
    );
}
