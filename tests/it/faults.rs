//! Faults that users report of name servers, one test a fault and named for it: what must happen instead. Each is a sample of
//! a kind; the rules themselves are in `rules.rs`.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
    sync::mpsc,
    thread,
    time::Duration,
};

use allocation_counter::AllocationInfo;
use serde_json::{Value, json};
use waypost::{
    config::{Config, Environment},
    limits,
    protocol::code::RequestCode,
    registry::Command,
};

use crate::{
    bounds::log_lines,
    client::{registration, request},
    server::Running,
    world::{Ask, World, ask, conn, heartbeat, quoted, reg, register_body, route, topics, unreg},
};

const SECOND: Duration = Duration::from_secs(1);

fn addrs(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs
        .iter()
        .map(|(id, addr)| ((*id).into(), (*addr).into()))
        .collect()
}

fn many(count: usize) -> Vec<(String, i32, i32)> {
    (1..=count)
        .map(|number| (format!("T{number}"), 6, 4))
        .collect()
}

#[test]
fn a1_a_partial_message_never_masks_the_full_one() {
    for first in [1, 2] {
        let mut world = World::new();
        let partial = world.send(1, &reg("c", "b", 0, "x:1", &many(first), (0, 9, 5)));
        assert_eq!(
            partial.code,
            i64::from(first == 1),
            "a single topic is refused, as the original does"
        );
        if first == 1 {
            assert_eq!(partial.remark.as_deref(), Some("register broker failed"));
            assert_eq!(world.route("T1"), None);
        }
        assert_eq!(
            world.code(&reg("c", "b", 0, "x:1", &many(100), (0, 9, 5))),
            0
        );
        for (topic, ..) in many(100) {
            assert!(
                world.route(&topic).is_some(),
                "{topic} after a first message of {first}"
            );
        }
    }
}

#[test]
fn a2_a_refused_or_malformed_registration_leaves_nothing_behind() {
    let mut world = World::new();
    let empty = world.cluster();
    let full = reg("c", "b", 0, "x:1", &many(2), (0, 9, 5));
    let odd = [
        reg("c", "b", 0, "x:1", &many(1), (0, 9, 5)),
        full.clone().ext("bodyCrc32", 12345),
        full.clone().body("{"),
        full.clone().body("null"),
        full.clone().ext("compressed", "true"),
        full.clone().version(-1),
        full.clone().ext("brokerId", "one"),
        full.clone().without("brokerId"),
        full.clone().without("brokerName"),
        full.clone().without("brokerAddr"),
        full.clone().without("clusterName"),
        full.clone().ext("brokerAddr", "a:1,b:2"),
    ];
    for (number, odd) in odd.iter().enumerate() {
        assert_eq!(world.code(odd), 1, "message {number}");
        assert_eq!(world.cluster(), empty, "message {number}");
        assert_eq!(world.members("c", "b"), json!({}), "message {number}");
        assert_eq!(world.publications, 0, "message {number}");
    }
    for body in [
        r#"{"topicConfigSerializeWrapper":{"topicConfigTable":null,"dataVersion":null}}"#,
        r#"{"topicConfigSerializeWrapper":null}"#,
        r#"{"topicConfigSerializeWrapper":{"dataVersion":{"counter":null}}}"#,
    ] {
        assert_eq!(world.code(&full.clone().body(body)), 0, "{body}");
    }
    assert_eq!(world.code(&full), 0);
    assert_eq!(world.addrs("T2")["b"], addrs(&[("0", "x:1")]));
}

#[test]
fn a3_a_broker_of_a_single_topic_is_refused_until_it_has_more_or_is_known() {
    let one = |id, addr, version| {
        reg("c", "b", id, addr, &topics(&["ONLY"]), (0, 1, version))
            .ext("enableActingMaster", "false")
    };
    let mut world = World::new();
    for _ in 0..3 {
        let refused = world.send(1, &one(0, "x:1", 1));
        assert_eq!(
            (refused.code, refused.remark.as_deref()),
            (1, Some("register broker failed"))
        );
        assert_eq!(world.snapshot.counts(), (0, 0, 0));
    }
    for first in [&[][..], &["ONLY", "TBW102"]] {
        let mut world = World::new();
        assert_eq!(
            world.code(&reg("c", "b", 0, "x:1", &topics(first), (0, 1, 1))),
            0
        );
        assert_eq!(world.code(&one(0, "x:1", 2)), 0, "an increment");
        assert_eq!(world.addrs("ONLY")["b"], addrs(&[("0", "x:1")]));
        assert_eq!(world.code(&one(1, "y:1", 1)), 1, "a new member");
        assert_eq!(world.members("c", "b"), json!({"0": "x:1"}));
    }
}

#[test]
fn a4_a_topic_the_broker_no_longer_lists_goes_when_asked_to() {
    let mut kept = World::new();
    let mut pruned = World::with("deleteTopicWithBrokerRegistration=true");
    for world in [&mut kept, &mut pruned] {
        world.send(
            1,
            &reg("c", "a", 0, "x:1", &topics(&["A", "B", "ONLY"]), (0, 1, 1)),
        );
        world.send(2, &reg("c", "b", 0, "y:1", &topics(&["A", "B"]), (0, 1, 1)));
        world.send(1, &reg("c", "a", 0, "x:1", &topics(&["A", "C"]), (0, 1, 2)));
    }
    assert_eq!(kept.addrs("B").len(), 2);
    assert_eq!(pruned.addrs("B").into_keys().collect::<Vec<_>>(), ["b"]);
    assert_eq!(pruned.addrs("A").len(), 2);
    assert_eq!(pruned.route("ONLY"), None);
    assert!(kept.route("ONLY").is_some());
}

#[test]
fn a6_a_later_slice_under_the_same_version_counts() {
    let mut world = World::new();
    world.send(
        1,
        &reg(
            "c",
            "b",
            0,
            "x:1",
            &[("A".into(), 6, 4), ("B".into(), 6, 4)],
            (0, 1, 5),
        ),
    );
    world.send(
        1,
        &reg("c", "b", 0, "x:1", &[("B".into(), 6, 8)], (0, 1, 5)),
    );
    assert_eq!(
        world.route("B").expect("a route")["queueDatas"][0]["readQueueNums"],
        8
    );
    assert_eq!(
        world.route("A").expect("a route")["queueDatas"][0]["readQueueNums"],
        4
    );
}

#[test]
fn a7_what_a_broker_had_before_a_silent_restart_goes_when_asked_to() {
    let before = reg(
        "c",
        "b",
        0,
        "x:1",
        &topics(&["TBW102", "A", "B"]),
        (0, 1, 1),
    );
    for (setting, kept) in [
        ("", true),
        ("deleteTopicWithBrokerRegistration=true", false),
    ] {
        for version in [1, 2] {
            let mut world = World::with(setting);
            world.send(1, &before);
            world.send(
                2,
                &reg("c", "b", 0, "x:1", &topics(&["A", "B"]), (0, 1, version)),
            );
            world.close(1);
            assert_eq!(
                world.route("TBW102").is_some(),
                kept,
                "{setting}, version {version}"
            );
            assert!(world.route("A").is_some());
        }
    }
    // A restart that is seen leaves nothing, whatever the setting.
    let ends: [fn(&mut World); 2] = [|world| world.close(1), |world| world.pass(SECOND * 126)];
    for end in ends {
        let mut world = World::new();
        world.send(1, &before);
        end(&mut world);
        world.send(2, &reg("c", "b", 0, "x:1", &topics(&["A", "B"]), (0, 1, 2)));
        assert_eq!(world.route("TBW102"), None);
    }
}

#[test]
fn a8_a_renamed_broker_is_listed_once() {
    let mut world = World::new();
    world.send(
        1,
        &reg("c", "a", 1, "x:1", &many(2), (0, 1, 1)).ext("enableActingMaster", "false"),
    );
    world.send(
        1,
        &reg("c", "a2", 1, "x:1", &many(2), (0, 1, 1)).ext("enableActingMaster", "false"),
    );
    assert_eq!(world.addrs("T1").into_keys().collect::<Vec<_>>(), ["a2"]);
    assert_eq!(world.cluster()["clusterAddrTable"], json!({"c": ["a2"]}));
}

#[test]
fn a9_one_name_in_two_clusters_follows_the_last_writer_and_survives_the_other_ones_departure() {
    let mut world = World::new();
    let first = reg("c1", "b", 0, "x:1", &many(2), (0, 1, 1));
    world.send(1, &first);
    world.send(2, &reg("c2", "b", 0, "y:1", &many(2), (0, 1, 1)));
    assert_eq!(world.addrs("T1")["b"], addrs(&[("0", "y:1")]));
    assert_eq!(world.cluster()["clusterAddrTable"], json!({"c2": ["b"]}));
    world.send(1, &first);
    assert_eq!(world.code(&unreg("c2", "b", 0, "y:1")), 0);
    world.close(2);
    assert_eq!(world.addrs("T1")["b"], addrs(&[("0", "x:1")]));
    assert_eq!(world.cluster()["clusterAddrTable"], json!({"c1": ["b"]}));
}

#[test]
fn a9_one_name_in_two_clusters_is_warned_of_with_a_count_twice_a_minute() {
    let mut world = World::new();
    world.send(1, &reg("c1", "b", 0, "x:1", &many(2), (0, 1, 1)));
    let other = reg("c2", "b", 0, "y:1", &many(2), (0, 1, 1));
    let mut warnings = |after: Duration, times: usize| {
        world.now = world.now.after(after);
        let lines = log_lines(|| {
            for _ in 0..times {
                // The one that comes last holds the name, until the first comes again.
                assert_eq!(world.send(2, &other).code, 0);
                assert_eq!(
                    world.code(&reg("c1", "b", 0, "x:1", &many(2), (0, 1, 1))),
                    0
                );
            }
        });
        let is_warning = |line: &String| line.contains("broker name b is used in cluster");
        let warnings: Vec<String> = lines.into_iter().filter(is_warning).collect();
        warnings
    };

    let first = warnings(Duration::ZERO, 10);
    assert_eq!(first.len(), 1, "{first:?}");
    assert!(first[0].contains("WARN") && first[0].contains("(1 times so far)"));
    let soon = warnings(Duration::from_millis(29_999), 1);
    assert_eq!(soon, Vec::<String>::new());
    let later = warnings(Duration::from_millis(1), 1);
    assert_eq!(later.len(), 1, "{later:?}");
    assert!(later[0].contains("(23 times so far)"), "{later:?}");
}

#[test]
fn a9_the_second_cluster_is_refused_if_so_configured() {
    let mut world = World::with("waypost.brokerNameConflict=reject");
    world.send(1, &reg("c1", "b", 0, "x:1", &many(2), (0, 1, 1)));
    let refused = world.send(2, &reg("c2", "b", 0, "y:1", &many(2), (0, 1, 1)));
    assert_eq!(refused.code, 1);
    assert!(
        refused
            .remark
            .expect("a remark")
            .contains("in use in cluster c1")
    );
    assert_eq!(world.addrs("T1")["b"], addrs(&[("0", "x:1")]));
    world.close(1);
    assert_eq!(
        world.code(&reg("c2", "b", 0, "y:1", &many(2), (0, 1, 1))),
        0
    );
}

#[test]
fn a10_a_late_unregistration_of_the_old_master_leaves_the_new_one() {
    let mut world = World::new();
    world.send(1, &reg("c", "b", 0, "x:1", &many(2), (0, 1, 1)));
    world.send(2, &reg("c", "b", 1, "y:1", &many(2), (0, 1, 1)));
    world.send(2, &reg("c", "b", 0, "y:1", &many(2), (0, 1, 2)));
    assert_eq!(world.code(&unreg("c", "b", 0, "x:1")), 0);
    assert_eq!(world.addrs("T1")["b"], addrs(&[("0", "y:1")]));
}

#[test]
fn a11_an_acknowledged_registration_is_not_undone_by_the_end_of_its_predecessor() {
    let broker = |version| {
        reg("c", "b", 0, "x:1", &many(2), (0, 1, version)).ext("heartbeatTimeoutMillis", 1000)
    };
    for order in [[0, 1], [1, 0]] {
        let mut world = World::new();
        world.send(1, &broker(1));
        world.pass(SECOND * 4);
        let register = world.process(2, &broker(1)).expect("a command");
        let close = Command::ConnectionClosed(conn(1));
        let mut events = vec![register, close];
        if order[0] == 1 {
            events.swap(0, 1);
        }
        world.apply(events);
        assert_eq!(world.take_reply(2).expect("an answer").code, 0);
        // The scan after the one that would have expired the silent predecessor.
        world.pass(SECOND);
        assert!(world.route("T1").is_some(), "order {order:?}");
    }
}

#[test]
fn a12_each_unregistration_of_a_burst_stands_alone() {
    let mut world = World::new();
    world.send(1, &reg("c", "a", 0, "x:1", &many(2), (0, 1, 1)));
    let queue =
        r#"{"queueDatas":[{"brokerName":"a","perm":6,"readQueueNums":4,"writeQueueNums":4}]}"#;
    assert_eq!(world.code(&ask(217).ext("topic", "T").body(queue)), 0);
    assert!(world.route("T").is_some());
    let burst = [
        unreg("c", "none", 0, "n:1"),
        unreg("c", "a", 0, "x:1"),
        unreg("c", "none", 0, "n:2"),
    ];
    let commands: Vec<_> = burst
        .iter()
        .map(|ask| world.process(3, ask).expect("a command"))
        .collect();
    world.apply(commands);
    for _ in 0..3 {
        assert_eq!(world.take_reply(3).expect("an answer").code, 0);
    }
    assert_eq!(world.route("T"), None);
    assert_eq!(
        world.cluster(),
        json!({"brokerAddrTable": {}, "clusterAddrTable": {}})
    );
    assert_eq!(world.snapshot.counts(), (0, 0, 0));
}

#[test]
fn a14_the_larger_state_version_holds_the_master() {
    let mut world = World::new();
    let master = |addr, state| reg("c", "b", 0, addr, &many(2), (state, 1, 1));
    world.send(1, &master("x:1", 5));
    let ignored = world.send(2, &master("y:1", 4));
    assert_eq!((ignored.code, ignored.ext.len()), (0, 0));
    assert_eq!(world.addrs("T1")["b"], addrs(&[("0", "x:1")]));
    let asked = world.send(
        2,
        &ask(322)
            .ext("clusterName", "c")
            .ext("brokerAddr", "y:1")
            .body("{}"),
    );
    assert_eq!(
        (asked.ext["changed"].as_str(), asked.body.as_str()),
        ("true", ""),
        "y is not live"
    );
    world.send(2, &master("y:1", 6));
    assert_eq!(world.addrs("T1")["b"], addrs(&[("0", "y:1")]));
    world.send(3, &master("z:1", 6));
    assert_eq!(
        world.addrs("T1")["b"],
        addrs(&[("0", "z:1")]),
        "equal versions: the last writer"
    );
}

#[test]
fn a16_a_reused_address_belongs_to_its_last_registrant_alone() {
    let mut world = World::new();
    world.send(
        1,
        &reg("c", "a", 0, "x:1", &topics(&["A", "A2"]), (0, 1, 1)),
    );
    world.send(
        2,
        &reg("c", "b", 0, "x:1", &topics(&["B", "B2"]), (0, 1, 1)),
    );
    assert_eq!(world.route("A"), None);
    assert_eq!(world.addrs("B")["b"], addrs(&[("0", "x:1")]));
    world.close(2);
    assert_eq!(world.route("B"), None);
    world.close(1);
    assert_eq!(world.snapshot.counts(), (0, 0, 0));
}

#[test]
fn a17_a_broker_lives_as_long_as_a_connection_that_speaks_for_it() {
    let query = ask(322)
        .ext("clusterName", "c")
        .ext("brokerName", "b")
        .ext("brokerAddr", "x:1")
        .body("{}");
    for beat in [heartbeat("c", "b", "x:1"), query] {
        let mut world = World::new();
        world.send(1, &reg("c", "b", 0, "x:1", &many(2), (0, 1, 1)));
        world.send_oneway(2, &beat);
        world.send(3, &beat);
        world.close(3);
        world.close(1);
        assert!(world.route("T1").is_some(), "connection 2 speaks for it");
        world.close(2);
        assert_eq!(world.route("T1"), None, "and now none does");
    }
}

/// Cluster info names the same brokers in both its tables, each with an address.
fn assert_consistent(cluster_info: &Value) {
    let table = |name: &str| cluster_info[name].as_object().expect("a table").clone();
    let mut listed: Vec<String> = table("clusterAddrTable")
        .values()
        .flat_map(|names| names.as_array().expect("a list"))
        .map(|name| name.as_str().expect("a name").into())
        .collect();
    listed.sort();
    let brokers = table("brokerAddrTable");
    assert_eq!(listed, brokers.keys().cloned().collect::<Vec<_>>());
    for (name, broker) in brokers {
        assert_eq!(broker["brokerName"], *name);
        assert!(
            !broker["brokerAddrs"].as_object().expect("a map").is_empty(),
            "{name}"
        );
    }
}

#[test]
fn a18_cluster_info_is_of_one_moment_while_brokers_come_and_go() {
    // A long one is written by another thread than a short one.
    for standing in [0, 600] {
        let server = Running::start("");
        let mut crowd = server.connect();
        for number in 0..standing {
            let name = format!("standing-{number:03}");
            let registered = crowd.ask(&registration(1, &name, &format!("{name}:1"), &["T", "U"]));
            assert_eq!(registered.code, 0);
        }
        thread::scope(|scope| {
            let writers: Vec<_> = (0..4)
                .map(|writer| {
                    let (stop, stopped) = mpsc::channel::<()>();
                    let mut broker = server.connect();
                    scope.spawn(move || {
                        let (name, addr) = (format!("b{writer}"), format!("{writer}:1"));
                        let leave = [
                            ("clusterName", "c"),
                            ("brokerName", &*name),
                            ("brokerAddr", &*addr),
                            ("brokerId", "0"),
                        ];
                        while stopped.try_recv() == Err(mpsc::TryRecvError::Empty) {
                            let registered =
                                broker.ask(&registration(1, &name, &addr, &["T", "U"]));
                            assert_eq!(registered.code, 0);
                            assert_eq!(broker.ask(&request(104, 2, &leave, b"")).code, 0);
                        }
                    });
                    stop
                })
                .collect();
            let mut reader = server.connect();
            let mut seen = BTreeSet::new();
            let mut asked = 0;
            while asked < 30 || seen.len() < 3 {
                let reply = reader.ask(&request(106, 3, &[], b""));
                assert_eq!(reply.code, 0);
                let body = String::from_utf8(reply.body).expect("a text");
                assert_consistent(&quoted(&body));
                seen.insert(body);
                asked += 1;
                assert!(asked < 100_000, "nothing changes");
            }
            drop(writers);
        });
    }
}

#[test]
fn a20_the_cluster_is_named_everywhere() {
    let mut world = World::new();
    world.send(1, &reg("c", "b", 0, "x:1", &many(2), (0, 1, 1)));
    assert_eq!(
        world.route("T1").expect("a route")["brokerDatas"][0]["cluster"],
        "c"
    );
    assert_eq!(world.cluster()["brokerAddrTable"]["b"]["cluster"], "c");
}

const MAPPING: &str = r#"{"filterServerList":[],"topicConfigSerializeWrapper":{"dataVersion":{"counter":1,"stateVersion":0,"timestamp":1},"topicConfigTable":{"T":{"topicName":"T","perm":6,"readQueueNums":4,"writeQueueNums":4},"U":{"topicName":"U"}},"topicQueueMappingInfoMap":{"T":{"bname":"a","currIdMap":{0:0,1:1},"dirty":false,"epoch":1,"scope":"__global__","topic":"T","totalQueues":4}}}}"#;

#[test]
fn a22_a_static_topic_mapping_goes_with_its_broker() {
    let mut world = World::new();
    world.send(1, &reg("c", "a", 0, "x:1", &[], (0, 1, 1)).body(MAPPING));
    let shown = world.route("T").expect("a route")["topicQueueMappingByBroker"].clone();
    assert_eq!(shown["a"]["currIdMap"], json!({"0": 0, "1": 1}));
    world.send(2, &reg("c", "b", 0, "y:1", &topics(&["T", "U"]), (0, 1, 1)));
    world.send(1, &unreg("c", "a", 0, "x:1"));
    assert_eq!(
        world
            .route("T")
            .expect("a route")
            .get("topicQueueMappingByBroker"),
        None
    );
    // A mapping without a broker name is shown under the broker that sent it.
    let nameless = MAPPING.replace(r#""bname":"a","#, "");
    world.send(1, &reg("c", "a", 0, "x:1", &[], (0, 1, 1)).body(nameless));
    assert!(world.route("T").expect("a route")["topicQueueMappingByBroker"]["a"].is_object());
}

#[test]
fn a22_a_mapping_that_changes_hands_goes_with_its_last_owner() {
    let mapping_only = MAPPING.replace(
        r#""T":{"topicName":"T","perm":6,"readQueueNums":4,"writeQueueNums":4},"#,
        r#""V":{"topicName":"V"},"#,
    );
    for leaves_first in [1, 2] {
        let mut world = World::new();
        world.send(
            1,
            &reg("c", "a", 0, "x:1", &[], (0, 1, 1)).body(mapping_only.clone()),
        );
        world.send(
            2,
            &reg("c", "b", 0, "y:1", &[], (0, 1, 1)).body(mapping_only.clone()),
        );
        world.close(leaves_first);
        world.send(4, &reg("c", "d", 0, "z:1", &topics(&["T", "W"]), (0, 1, 1)));
        let shown = world.route("T").expect("a route");
        assert_eq!(
            shown.get("topicQueueMappingByBroker").is_some(),
            leaves_first == 1
        );
        world.close(3 - leaves_first);
        let shown = world.route("T").expect("a route");
        assert_eq!(shown.get("topicQueueMappingByBroker"), None);
        world.close(4);
        assert_eq!(world.snapshot.counts(), (0, 0, 0));
    }
}

#[test]
fn a24_each_server_answers_its_own_view() {
    let (mut one, mut other) = (World::new(), World::new());
    one.send(1, &reg("c", "b", 0, "x:1", &many(2), (0, 1, 1)));
    assert!(one.route("T1").is_some());
    assert_eq!(other.route("T1"), None);
}

#[test]
fn b1_a_dledger_candidate_takes_nobodys_write_permission_and_never_leads() {
    for acting in [None, Some("false"), Some("true")] {
        let mut world = World::with("supportActingMaster=true\nnotifyMinBrokerIdChanged=true");
        let with = |ask: Ask| match acting {
            Some(acting) => ask.ext("enableActingMaster", acting),
            None => ask,
        };
        world.send(
            1,
            &with(reg("c", "b", 0, "x:1", &topics(&["A", "B"]), (0, 1, 1))),
        );
        world.send(
            2,
            &with(reg("c", "b", -1, "y:1", &topics(&["A", "B"]), (0, 1, 1))),
        );
        assert_eq!(world.perms("A")["b"], 6, "{acting:?}");
        assert_eq!(
            world.addrs("A")["b"],
            addrs(&[("0", "x:1"), ("-1", "y:1")]),
            "{acting:?}"
        );
        assert_eq!(
            world.notices.len(),
            0,
            "a candidate lowers no minimum, {acting:?}"
        );
        world.send(1, &unreg("c", "b", 0, "x:1"));
        assert_eq!(world.addrs("A")["b"], addrs(&[("-1", "y:1")]), "{acting:?}");
    }
}

#[test]
fn b2_a_candidate_that_starts_as_master_of_an_older_term_displaces_nobody() {
    let mut world = World::with("supportActingMaster=true\nnotifyMinBrokerIdChanged=true");
    let member = |id, addr, state| {
        reg("c", "b", id, addr, &topics(&["A", "B"]), (state, 1, 1))
            .ext("enableActingMaster", "true")
    };
    world.send(1, &member(0, "x:1", 7));
    world.send(2, &member(1, "y:1", 7));
    world.close(2);
    let published = |world: &mut World| {
        let shown = (world.route("A"), world.cluster(), world.members("c", "b"));
        (shown, world.notices.len())
    };
    let before = published(&mut world);
    for connection in 3..6 {
        assert_eq!(world.send(connection, &member(0, "y:1", 0)).code, 0);
        assert_eq!(published(&mut world), before);
        world.close(connection);
        assert_eq!(published(&mut world), before);
    }
    // Its role once it knows it.
    world.send(6, &member(1, "y:1", 7));
    assert_eq!(world.addrs("A")["b"], addrs(&[("0", "x:1"), ("1", "y:1")]));
    assert_eq!(world.perms("A")["b"], 6);
}

#[test]
fn b3_a_slave_of_a_5x_broker_alone_keeps_its_topics_routed() {
    let mut world = World::new();
    let slave = reg("c", "b", 1, "y:1", &topics(&["A", "B"]), (0, 1, 1));
    world.send(1, &slave);
    assert_eq!(
        world.route("A"),
        None,
        "an old broker's slave contributes no topics"
    );
    world.send(1, &slave.ext("enableActingMaster", "false"));
    assert_eq!(world.addrs("A")["b"], addrs(&[("1", "y:1")]));
    assert_eq!(world.perms("A")["b"], 6);
}

fn acting_group(world: &mut World) {
    let both = topics(&["A", "rmq_sys_SYNC_BROKER_MEMBER_b"]);
    world.send(
        1,
        &reg("c", "b", 0, "x:1", &both, (0, 1, 1)).ext("enableActingMaster", "true"),
    );
    world.send(
        2,
        &reg("c", "b", 1, "y:1", &both, (0, 1, 1)).ext("enableActingMaster", "true"),
    );
    world.send(
        3,
        &reg("c", "b", 2, "z:1", &both, (0, 1, 1)).ext("enableActingMaster", "true"),
    );
}

#[test]
fn b4_the_first_slave_is_shown_as_master_only_where_it_may_act() {
    let mut world = World::with("supportActingMaster=true");
    acting_group(&mut world);
    assert_eq!(
        world.addrs("A")["b"],
        addrs(&[("0", "x:1"), ("1", "y:1"), ("2", "z:1")])
    );
    world.close(1);
    assert_eq!(world.addrs("A")["b"], addrs(&[("0", "y:1"), ("2", "z:1")]));
    assert_eq!(world.perms("A")["b"], 4);
    let raw = addrs(&[("1", "y:1"), ("2", "z:1")]);
    assert_eq!(world.addrs("rmq_sys_SYNC_BROKER_MEMBER_b")["b"], raw);
    assert_eq!(world.members("c", "b"), json!({"1": "y:1", "2": "z:1"}));
    let mut off = World::new();
    acting_group(&mut off);
    off.close(1);
    assert_eq!(off.addrs("A")["b"], raw);
}

#[test]
fn b6_the_write_permission_returns_with_the_master() {
    let mut world = World::with("supportActingMaster=true");
    acting_group(&mut world);
    world.send(1, &unreg("c", "b", 0, "x:1"));
    assert_eq!(world.perms("A")["b"], 4);
    world.send(
        1,
        &reg("c", "b", 0, "x:1", &topics(&["A", "B"]), (0, 1, 1)).ext("enableActingMaster", "true"),
    );
    assert_eq!(world.perms("A")["b"], 6);
}

#[test]
fn b6_a_new_role_brings_all_topics_anew_under_the_same_version() {
    let acting = |id: i64, addr: &str| {
        reg("c", "b", id, addr, &topics(&["A", "B"]), (0, 1, 1)).ext("enableActingMaster", "true")
    };
    // A slave that is promoted.
    let mut world = World::with("supportActingMaster=true");
    world.send(1, &acting(0, "x:1"));
    world.send(2, &acting(1, "y:1"));
    world.close(1);
    assert_eq!(world.perms("A")["b"], 4);
    world.send(2, &acting(0, "y:1"));
    assert_eq!(world.perms("A")["b"], 6);
    // A master that is demoted and alone.
    world.send(2, &acting(1, "y:1"));
    assert_eq!(world.perms("A")["b"], 4);
    assert_eq!(world.addrs("A")["b"], addrs(&[("0", "y:1")]));
    // Two that contend for the id; the one that stays registers again.
    let mut world = World::with("supportActingMaster=true");
    world.send(1, &acting(0, "x:1"));
    world.send(2, &acting(0, "y:1"));
    world.send(3, &acting(1, "z:1"));
    world.close(2);
    assert_eq!(world.perms("A")["b"], 4);
    world.send(1, &acting(0, "x:1"));
    assert_eq!(world.perms("A")["b"], 6);
}

#[test]
fn b7_notices_go_to_the_right_members_and_only_when_switched_on() {
    let mut off = World::new();
    acting_group(&mut off);
    off.close(1);
    assert_eq!(off.notices.len(), 0);

    let mut world = World::with("notifyMinBrokerIdChanged=true");
    acting_group(&mut world);
    assert_eq!(world.notices.len(), 0, "nobody lowered the minimum");
    world.close(1);
    let (to, frame) = world.notices.pop().expect("a notice");
    assert_eq!(
        to.iter().map(|addr| &**addr).collect::<Vec<_>>(),
        ["y:1", "z:1"]
    );
    let text = String::from_utf8_lossy(&frame[8..]).into_owned();
    assert!(text.starts_with(r#"{"code":905,"extFields":{"offlineBrokerAddr":"x:1","minBrokerAddr":"y:1","minBrokerId":"1"},"flag":2,"#), "{text}");
    world.send(
        1,
        &reg("c", "b", 0, "x:1", &topics(&["A", "B"]), (0, 1, 1)).ext("enableActingMaster", "true"),
    );
    let (to, frame) = world.notices.pop().expect("a notice");
    assert_eq!(
        to.iter().map(|addr| &**addr).collect::<Vec<_>>(),
        ["y:1", "z:1"]
    );
    let text = String::from_utf8_lossy(&frame[8..]).into_owned();
    assert!(
        text.contains(
            r#""extFields":{"haBrokerAddr":"x:1-ha","minBrokerAddr":"x:1","minBrokerId":"0"}"#
        ),
        "{text}"
    );
}

#[test]
fn b8_a_broker_that_falls_silent_leaves_after_its_timeout_and_one_look_more_at_most() {
    let broker = |name: &str, addr| reg("c", name, 0, addr, &many(2), (0, 1, 1));
    for timeout in [120, 10] {
        for between_two_looks in [0, 1, 1_700, 4_999] {
            let mut world = World::new();
            world.send(
                1,
                &broker("a", "x:1").ext("heartbeatTimeoutMillis", 3_600_000),
            );
            world.pass(Duration::from_millis(between_two_looks));
            let silent = broker("b", "y:1");
            world.send(
                2,
                &match timeout {
                    120 => silent,
                    _ => silent.ext("heartbeatTimeoutMillis", timeout * 1_000),
                },
            );
            world.pass(SECOND * timeout);
            assert_eq!(
                world.addrs("T1").len(),
                2,
                "{timeout} s, {between_two_looks} ms"
            );
            world.pass(SECOND * 5 + Duration::from_millis(1));
            assert_eq!(world.addrs("T1").into_keys().collect::<Vec<_>>(), ["a"]);
            assert_eq!(
                world.closed,
                [conn(2)],
                "what still waits in its socket is not heard"
            );
        }
    }
}

#[test]
fn b9_all_brokers_of_a_closed_connection_leave_at_once() {
    let mut world = World::new();
    for (name, addr) in [("a", "x:1"), ("b", "y:1"), ("d", "z:1")] {
        world.send(1, &reg("c", name, 0, addr, &many(2), (0, 1, 1)));
    }
    assert_eq!(world.addrs("T1").len(), 3);
    world.close(1);
    assert_eq!(world.route("T1"), None);
    assert_eq!(world.snapshot.counts(), (0, 0, 0));
}

#[test]
fn b11_a_slave_stays_readable_when_its_master_leaves() {
    let mut world = World::new();
    world.send(1, &reg("c", "b", 0, "x:1", &many(2), (0, 1, 1)));
    world.send(2, &reg("c", "b", 1, "y:1", &many(2), (0, 1, 1)));
    world.send(1, &unreg("c", "b", 0, "x:1"));
    assert_eq!(world.addrs("T1")["b"], addrs(&[("1", "y:1")]));
    assert_eq!(world.perms("T1")["b"] & 4, 4);
}

#[test]
fn b12_a_dead_master_is_in_no_answer_any_more() {
    const MASTER: &str = "10.0.0.1:10911";
    let member = |id, addr, acting: &str| {
        reg(
            "c",
            "b",
            id,
            addr,
            &topics(&["A", "rmq_sys_SYNC_BROKER_MEMBER_b"]),
            (0, 1, 1),
        )
        .ext("enableActingMaster", acting)
        .ext("__ZONE_NAME", "z")
        .ext(
            "heartbeatTimeoutMillis",
            if id == 0 { 1_000 } else { 60_000 },
        )
    };
    let ends: [fn(&mut World); 3] = [
        |world| world.close(1),
        |world| assert_eq!(world.send(1, &unreg("c", "b", 0, MASTER)).code, 0),
        |world| world.pass(SECOND * 7),
    ];
    for (acting, end) in ["false", "true"]
        .into_iter()
        .flat_map(|acting| ends.map(|end| (acting, end)))
    {
        let mut world = World::with("supportActingMaster=true");
        world.send(1, &member(0, MASTER, acting));
        world.send(2, &member(1, "10.0.0.2:10911", acting));
        let answers = [
            route("A"),
            route("A").version(317),
            route("A")
                .ext("__ZONE_MODE", "true")
                .ext("__ZONE_NAME", "z"),
            route("rmq_sys_SYNC_BROKER_MEMBER_b"),
            ask(106),
            ask(304),
            ask(901).ext("clusterName", "c").ext("brokerName", "b"),
            // What the slave is told about whom to copy from.
            member(1, "10.0.0.2:10911", acting),
        ];
        let shows = |world: &mut World, ask| {
            let reply = world.send(2, ask);
            assert_eq!(reply.code, 0, "{ask:?}");
            reply.header.contains(MASTER) || reply.body.contains(MASTER)
        };
        for ask in &answers {
            assert!(shows(&mut world, ask), "{ask:?}");
        }
        end(&mut world);
        for ask in &answers {
            assert!(!shows(&mut world, ask), "{ask:?}");
        }
    }
}

/// What applying and publishing a registration allocates. The message has been read before.
fn applied(world: &mut World, ask: &Ask) -> AllocationInfo {
    let command = world.process(1, ask).expect("a command");
    allocation_counter::measure(|| {
        world.apply_one(command);
        drop(world.end_batch());
    })
}

#[test]
fn c2_a_full_table_with_one_new_topic_costs_the_writer_no_more_than_a_short_one() {
    let costs = [100, 4_000].map(|count| {
        let mut world = World::new();
        world.send(1, &reg("c", "b", 0, "x:1", &many(count), (0, 1, 1)));
        let mut table = many(count);
        table.push(("%RETRY%group".into(), 6, 1));
        let cost = applied(&mut world, &reg("c", "b", 0, "x:1", &table, (0, 2, 2)));
        assert!(world.route("%RETRY%group").is_some());
        (cost.count_total, cost.bytes_total)
    });
    assert!(costs[0].0 > 0);
    assert!(costs[1].0 <= costs[0].0 + 8, "{costs:?}");
    assert!(costs[1].1 <= costs[0].1 * 2, "{costs:?}");
}

#[test]
fn c3_a_table_in_which_nothing_changed_costs_the_writer_the_same_whatever_its_length() {
    let costs = [2, 4_000].map(|count| {
        let mut world = World::new();
        let broker = reg("c", "b", 0, "x:1", &many(count), (0, 1, 1));
        world.send(1, &broker);
        let published = world.publications;
        let cost = applied(&mut world, &broker);
        assert_eq!(world.publications, published);
        (cost.count_total, cost.bytes_total)
    });
    assert_eq!(costs[0], costs[1]);
}

#[test]
fn c4_queries_are_answered_while_everybody_reconnects_and_nobody_vanishes_meanwhile() {
    let broker = |number: u32| {
        let (name, addr) = (format!("b{number}"), format!("x:{number}"));
        reg("c", &name, 0, &addr, &many(2), (0, 1, 1))
    };
    let mut world = World::new();
    for number in 0..200 {
        world.send(number, &broker(number));
    }
    let published = world.publications;
    // All that is at the writer, and has not been looked at.
    let waiting: Vec<Command> = (0..200)
        .flat_map(|number| {
            world.forget(conn(number));
            let register = world.process(1_000 + number, &broker(number));
            [
                Command::ConnectionClosed(conn(number)),
                register.expect("a command"),
            ]
        })
        .collect();
    for ask in [route("T1"), ask(106), ask(206), ask(319), ask(901)] {
        assert_eq!(world.process(900, &ask), None, "{ask:?} waits for nobody");
        assert_eq!(world.take_reply(900).expect("an answer").code, 0);
    }
    assert_eq!(world.publications, published);
    world.apply(waiting);
    assert_eq!(
        world.publications,
        published + 1,
        "no reader sees anyone gone"
    );
    assert_eq!(world.addrs("T1").len(), 200);
}

/// How a route may be asked for.
fn views(topic: &str) -> Vec<Ask> {
    let zone = |name| {
        route(topic)
            .ext("__ZONE_MODE", "true")
            .ext("__ZONE_NAME", name)
    };
    vec![
        route(topic),
        route(topic).version(317),
        route(topic)
            .version(317)
            .ext("acceptStandardJsonOnly", "true"),
        zone("z1"),
        zone("z2").version(317),
    ]
}

#[test]
fn c5_a_route_asked_for_often_is_right_in_every_view_after_every_change() {
    let broker = |name: &str, id: i64, addr: &str, zone: &str| {
        reg("c", name, id, addr, &topics(&["A", "B"]), (0, 1, 1))
            .ext("enableActingMaster", "true")
            .ext("__ZONE_NAME", zone)
    };
    let update = |text: &str| ask(318).body(text);
    let order = |value: &str| {
        ask(100)
            .ext("namespace", "ORDER_TOPIC_CONFIG")
            .ext("key", "A")
            .ext("value", value)
    };
    let of_b = |code| ask(code).ext("brokerName", "b");
    let with_filter = register_body(&topics(&["A", "B"]), (0, 1, 1))
        .replace(r#""filterServerList":[]"#, r#""filterServerList":["f:1"]"#);
    let changes = [
        vec![broker("b", 0, "x:1", "z1")],
        vec![broker("b", 1, "y:1", "z1")],
        vec![broker("d", 0, "z:1", "z2")],
        vec![of_b(205)],
        vec![of_b(327)],
        vec![order("b:4"), update("orderMessageEnable=true")],
        vec![order("b:4;d:4")],
        vec![update("orderMessageEnable=false")],
        vec![unreg("c", "b", 0, "x:1")],
        vec![update("supportActingMaster=true")],
        vec![broker("b", 0, "x:1", "z1")],
        vec![broker("d", 0, "z:1", "z1")],
        vec![broker("d", 0, "z:1", "z1").body(with_filter)],
        vec![broker("d", 0, "z:1", "z1").body(MAPPING.replace("\"T\"", "\"A\""))],
        vec![ask(216).ext("topic", "A")],
        vec![unreg("c", "d", 0, "z:1")],
    ];
    let mut world = World::new();
    let all_views = [views("A"), views("B")].concat();
    let ask_all = |world: &mut World| -> Vec<_> {
        let mut answer = |view| {
            let reply = world.send(9, view);
            (reply.code, reply.body)
        };
        all_views.iter().map(&mut answer).collect()
    };
    let mut before = ask_all(&mut world);
    for change in changes {
        for ask in &change {
            assert_eq!(world.send(1, ask).code, 0, "{ask:?}");
        }
        let at_hand = ask_all(&mut world);
        world.forget_routes();
        assert_eq!(at_hand, ask_all(&mut world), "{change:?}");
        assert_ne!(at_hand, before, "{change:?} can be seen");
        for _ in 0..2 {
            assert_eq!(at_hand, ask_all(&mut world), "{change:?}");
        }
        before = at_hand;
    }
}

#[test]
fn c7_one_of_very_many_brokers_of_a_topic_changes_at_a_cost_in_proportion() {
    let costs = [100, 400].map(|count| {
        let mut world = World::new();
        for number in 0..count {
            let (name, addr) = (format!("b{number}"), format!("x:{number}"));
            world.send(
                number,
                &reg("c", &name, 0, &addr, &topics(&["T", "U"]), (0, 1, 1)),
            );
        }
        let wipe = applied(&mut world, &ask(205).ext("brokerName", "b7"));
        assert_eq!(
            world.perms("T").values().filter(|perm| **perm == 4).count(),
            1
        );
        let leave = applied(&mut world, &unreg("c", "b7", 0, "x:7"));
        assert_eq!(world.snapshot.counts().2, world.addrs("T").len());
        assert!(!world.addrs("T").contains_key("b7"));
        [wipe.bytes_total, leave.bytes_total]
    });
    for (few, many) in costs[0].into_iter().zip(costs[1]) {
        assert!(few > 0 && many <= few * 5, "{costs:?}");
    }
}

#[test]
fn c8_the_kernel_sizes_the_buffers_of_sockets_unless_told_otherwise() {
    let with = |lines: &str| {
        let mut config = Config::defaults(&Environment {
            user_home: None,
            rocketmq_home: None,
        });
        assert_eq!(config.load_file("test.properties", lines.as_bytes()), []);
        (
            config.server_socket_snd_buf_size(),
            config.server_socket_rcv_buf_size(),
        )
    };
    assert_eq!(with(""), (None, None));
    assert_eq!(
        with("serverSocketSndBufSize=65536\nserverSocketRcvBufSize=0"),
        (Some(65536), None)
    );
}

/// From connection 1, and nothing is written until it is let go.
fn put_that_waits_for_the_disk(world: &mut World) {
    world.hold_persists = true;
    let put = ask(100)
        .ext("namespace", "n")
        .ext("key", "k")
        .ext("value", "v");
    let command = world.process(1, &put).expect("a command");
    world.apply([command]);
}

#[test]
fn c15_a_registration_waits_for_no_disk() {
    let mut world = World::new();
    put_that_waits_for_the_disk(&mut world);
    assert_eq!((world.persists.len(), world.take_reply(1)), (1, None));
    assert_eq!(
        world
            .send(2, &reg("c", "b", 0, "x:1", &many(2), (0, 1, 1)))
            .code,
        0
    );
    assert!(world.route("T1").is_some());
}

#[test]
fn c16_a_topic_costs_hundreds_of_bytes_and_each_of_its_brokers_a_few_more() {
    let costs = [1, 8, 32].map(|brokers: u32| {
        let mut world = World::new();
        let held = allocation_counter::measure(|| {
            for number in 0..brokers {
                let (name, addr) = (format!("b{number}"), format!("x:{number}"));
                world.send(number, &reg("c", &name, 0, &addr, &many(2_000), (0, 1, 1)));
            }
        });
        held.bytes_current / 2_000
    });
    assert!(costs[0] > 0 && costs[0] < 800, "{costs:?}");
    assert!(costs[2] - costs[0] < 31 * 32, "{costs:?}");
}

#[test]
fn c17_unchanged_registrations_and_heartbeats_publish_nothing() {
    let mut world = World::new();
    let broker = reg("c", "b", 0, "x:1", &many(50), (0, 1, 1));
    world.send(1, &broker);
    let published = world.publications;
    for _ in 0..3 {
        world.pass(SECOND);
        world.send(1, &broker);
        world.send(1, &heartbeat("c", "b", "x:1"));
    }
    assert_eq!(world.publications, published);
    let crc = |sum: u32| {
        reg("c", "b", 0, "x:1", &many(50), (0, 1, 2))
            .body("hello")
            .ext("bodyCrc32", sum)
    };
    let mismatch = world.send(1, &crc(1));
    assert_eq!(
        (mismatch.code, mismatch.remark.as_deref()),
        (1, Some("crc32 not match"))
    );
}

#[test]
fn d3_a_server_that_is_leaving_tells_nobody_that_a_topic_does_not_exist() {
    const MEMBERS: &str = "rmq_sys_SYNC_BROKER_MEMBER_b";
    let mut world = World::with("supportActingMaster=true");
    acting_group(&mut world);
    let asks = [
        route("A"),
        route(MEMBERS),
        ask(901).ext("clusterName", "c").ext("brokerName", "b"),
    ];
    let old = |ask: &Ask| ask.clone().version(475);
    let before = asks.each_ref().map(|ask| world.send(9, &old(ask)).body);
    world.go_away = true;
    world.apply([Command::Drain]);
    let ends: [fn(&mut World); 3] = [
        |world| world.close(1),
        |world| world.close(2),
        |world| world.pass(SECOND * 300),
    ];
    for end in ends {
        end(&mut world);
        for (ask, before) in asks.iter().zip(&before) {
            assert_eq!(world.send(9, &old(ask)).body, *before, "{ask:?}");
        }
        assert_eq!(world.send(9, &route("none").version(475)).code, 1);
        assert_eq!(world.send(9, &route("none").version(476)).code, 1500);
    }
    // Those that take their leave in so many words do leave.
    for (id, addr) in [(0, "x:1"), (1, "y:1"), (2, "z:1")] {
        world.send(4, &unreg("c", "b", id, addr).version(317));
    }
    for topic in ["A", MEMBERS] {
        assert_eq!(world.send(9, &route(topic).version(317)).code, 1);
    }
}

#[test]
fn d4_routes_wait_for_brokers_only_as_long_as_they_are_told_to() {
    let mut world = World::with("needWaitForService=true\nwaitSecondsForService=45");
    assert_eq!(world.code(&reg("c", "b", 0, "x:1", &many(2), (0, 1, 1))), 0);
    world.pass(Duration::from_millis(44_999));
    let early = world.send(1, &route("T1"));
    assert_eq!(
        (early.code, early.remark.as_deref()),
        (1, Some("name server not ready"))
    );
    world.pass(Duration::from_millis(1));
    for _ in 0..3 {
        assert_eq!(world.send(1, &route("T1")).code, 0);
        assert_eq!(world.send(1, &route("none")).code, 17);
    }
}

#[test]
fn e1_a_wiped_permission_lasts_until_the_version_changes() {
    let mut world = World::new();
    world.send(1, &reg("c", "b", 0, "x:1", &topics(&["A", "B"]), (0, 1, 1)));
    assert_eq!(
        world.send(9, &ask(205).ext("brokerName", "b")).ext["wipeTopicCount"],
        "2"
    );
    assert_eq!(world.perms("A")["b"], 4);
    world.send(1, &reg("c", "b", 0, "x:1", &topics(&["A", "B"]), (0, 1, 1)));
    assert_eq!(world.perms("A")["b"], 4);
    let more_queues = [("A".to_string(), 6, 8), ("B".to_string(), 6, 4)];
    world.send(1, &reg("c", "b", 0, "x:1", &more_queues, (0, 1, 1)));
    assert_eq!(
        world.perms("A")["b"],
        4,
        "other queues under the same version"
    );
    world.send(1, &reg("c", "b", 0, "x:1", &topics(&["A", "B"]), (0, 1, 2)));
    assert_eq!(world.perms("A")["b"], 6);
    world.send(9, &ask(205).ext("brokerName", "b"));
    assert_eq!(
        world.send(9, &ask(327).ext("brokerName", "b")).ext["addTopicCount"],
        "2"
    );
    assert_eq!(world.perms("A")["b"], 6);
    assert_eq!(
        world.send(9, &ask(205).ext("brokerName", "none")).ext["wipeTopicCount"],
        "0"
    );
    assert_eq!(world.send(9, &ask(327)).ext["addTopicCount"], "0");
}

#[test]
fn e2_a_restored_permission_is_that_of_the_original_whatever_was_declared() {
    let mut world = World::new();
    let table = [("TBW102", 7), ("R", 4), ("A", 6)].map(|(name, perm)| (name.to_string(), perm, 4));
    world.send(1, &reg("c", "b", 0, "x:1", &table, (0, 1, 1)));
    let perms = |world: &mut World| ["TBW102", "R", "A"].map(|topic| world.perms(topic)["b"]);
    assert_eq!(perms(&mut world), [7, 4, 6]);
    world.send(9, &ask(205).ext("brokerName", "b"));
    assert_eq!(perms(&mut world), [5, 4, 4]);
    world.send(9, &ask(327).ext("brokerName", "b"));
    assert_eq!(perms(&mut world), [6, 6, 6]);
}

#[test]
fn e12_expensive_lists_can_be_switched_off() {
    let mut world = World::with("enableAllTopicList=false\nenableTopicList=false");
    for code in [206, 224, 311, 312, 313] {
        let reply = world.send(1, &ask(code).ext("cluster", "c"));
        assert_eq!(
            (reply.code, reply.remark.as_deref(), reply.body.as_str()),
            (1, Some("disable"), ""),
            "{code}"
        );
    }
    assert_eq!(world.code(&ask(304)), 0);
}

#[test]
fn f1_no_path_is_ever_changed_from_the_network() {
    let mut world = World::new();
    world.hold_persists = true;
    let before = world.send(1, &ask(319)).body;
    let odd = [
        "configStorePath=/tmp/p",
        "kvConfigPath=/tmp/p",
        "rocketmqHome=/tmp",
        "configBlackList=",
        "  kvConfigPath = /x",
        "kvConfigPath:/x",
        "kvConfigPath /x",
        "kvConfigPath",
        "\\u006bvConfigPath=/x",
        "kvConfig\\\nPath=/x",
        "orderMessageEnable=true\nkvConfigPath=/x",
        "kvConfigPath=/x\nkvConfigPath=/y",
        "k\\vConfigPath=/x",
    ];
    for body in odd {
        let reply = world.send(1, &ask(318).body(body));
        assert_eq!(
            (reply.code, reply.remark.as_deref()),
            (16, Some("Can not update config in black list.")),
            "{body}"
        );
    }
    for body in [
        "productEnvName=a\\nkvConfigPath=/x",
        "productEnvName=a\\u0000",
        "productEnvName=a\\rb",
        "orderMessageEnable=true\nproductEnvName=\\u001b",
    ] {
        assert_eq!(world.send(1, &ask(318).body(body)).code, 1, "{body}");
    }
    assert_eq!(world.persists.len(), 0, "no file is touched");
    assert_eq!(world.send(1, &ask(319)).body, before);
}

#[test]
fn f2_what_only_a_broker_or_a_controller_serves_does_nothing() {
    let mut world = World::new();
    world.hold_persists = true;
    let before = world.send(1, &ask(319)).body;
    for code in (-1..2_000).filter(|code| RequestCode::from_i32(*code).is_none()) {
        let request = ask(code)
            .ext("topic", "T")
            .body("rocketmqHome=/tmp;touch /tmp/p\nfilterServerNums=1\nkvConfigPath=/x");
        assert_eq!(world.send(1, &request).code, 3, "{code}");
    }
    assert_eq!((world.persists.len(), world.publications), (0, 0));
    assert_eq!(world.send(1, &ask(319)).body, before);
}

#[test]
fn f3_no_update_keeps_routes_back_for_ever_and_updates_can_be_switched_off() {
    let broker =
        reg("c", "b", 0, "x:1", &many(2), (0, 1, 1)).ext("heartbeatTimeoutMillis", 86_400_000);
    let mut world = World::new();
    world.send(1, &broker);
    let mut update = |body: &str| {
        let reply = world.send(9, &ask(318).body(body));
        (reply.code, reply.remark.unwrap_or_default())
    };
    for odd in [
        "waitSecondsForService=2147483647",
        "waitSecondsForService=3601",
        "scanNotActiveBrokerInterval=2147483647",
        "scanNotActiveBrokerInterval=0",
        "listenPort=80",
        "bindAddress=10.9.9.9",
        "clusterTest=true",
        "enableControllerInNamesrv=true",
    ] {
        let (code, remark) = update(odd);
        assert!(
            code == 0 && remark.starts_with("ignored: "),
            "{odd}: {code} {remark}"
        );
    }
    assert_eq!(
        update("needWaitForService=true\nwaitSecondsForService=3600").0,
        0
    );
    assert_eq!(world.send(9, &route("T1")).code, 1);
    world.pass(SECOND * 3_600);
    assert_eq!(world.send(9, &route("T1")).code, 0);

    let mut closed = World::with("waypost.configUpdateEnable=false");
    closed.hold_persists = true;
    for body in [
        "orderMessageEnable=true",
        "waypost.configUpdateEnable=true",
        "unknown=1",
    ] {
        assert_eq!(closed.send(9, &ask(318).body(body)).code, 16, "{body}");
    }
    assert_eq!(closed.persists.len(), 0);
}

#[test]
fn f7_a_compressed_registration_that_lies_is_refused_at_a_bounded_cost() {
    let lying_len = |len: i32| {
        [
            &layout(1, &[])[..],
            &len.to_be_bytes(),
            b"T9 1 1 6 SINGLE_TAG",
        ]
        .concat()
    };
    let whole = [
        layout(1, &[b"T9 8 8 6 SINGLE_TAG"]),
        item(b"[]"),
        vec![0; 4],
    ]
    .concat();
    let whole = deflate(&whole);
    let hostile = [
        (
            "inflates too far",
            deflate(&vec![b' '; limits::INFLATED_LEN_MAX + 1]),
        ),
        (
            "very many topics",
            deflate(&layout(i32::MAX, &[b"T9 1 1 6 SINGLE_TAG"])),
        ),
        ("a huge length", deflate(&lying_len(i32::MAX))),
        ("a negative length", deflate(&lying_len(-1))),
        ("a stream cut short", whole[..whole.len() / 2].to_vec()),
        ("no stream", b"junk, junk, junk".to_vec()),
    ];
    let broker = |addr: &str| reg("c", "b", 0, addr, &[], (0, 9, 9)).ext("compressed", "true");
    let mut world = World::new();
    world.send(1, &reg("c", "b", 0, "x:1", &many(2), (0, 1, 1)));
    let (published, cluster) = (world.publications, world.cluster());
    for (what, body) in hostile {
        let broker = broker("y:1").body(body);
        let mut code = 0;
        let cost = allocation_counter::measure(|| code = world.send(2, &broker).code);
        assert_eq!(code, 1, "{what}");
        assert!(
            cost.bytes_max < 2 * limits::INFLATED_LEN_MAX as u64,
            "{what}: {cost:?}"
        );
    }
    assert_eq!(
        (world.publications, world.cluster()),
        (published, cluster),
        "the tables are untouched"
    );
    assert_eq!(world.code(&broker("x:1").body(whole)), 0);
    assert!(world.route("T9").is_some());
}

#[test]
fn f8_notices_go_to_members_of_the_group_alone() {
    let mut world = World::with("notifyMinBrokerIdChanged=true");
    let member = |name: &str, id, addr| {
        reg("c", name, id, addr, &many(2), (0, 1, 1)).ext("enableActingMaster", "true")
    };
    for (connection, name, id, addr) in [
        (1, "b", 0, "x:1"),
        (2, "b", 1, "y:1"),
        (3, "b", 2, "z:1"),
        (4, "b", 3, "left:1"),
        (5, "b", 4, "closed:1"),
        (6, "b", 5, "moved:1"),
        (7, "d", 0, "other:1"),
    ] {
        world.send(connection, &member(name, id, addr));
    }
    world.send(4, &unreg("c", "b", 3, "left:1"));
    world.close(5);
    world.send(6, &member("e", 0, "moved:1"));
    world.notices.clear();
    world.close(1);
    let (to, _) = world.notices.pop().expect("a notice");
    assert_eq!(
        to.iter().map(|addr| &**addr).collect::<Vec<_>>(),
        ["y:1", "z:1"]
    );
    assert_eq!(world.notices.len(), 0);
}

#[test]
fn g6_a_restarted_server_asks_brokers_to_register_again() {
    let mut world = World::new();
    let query = ask(322)
        .ext("clusterName", "c")
        .ext("brokerName", "b")
        .ext("brokerAddr", "x:1")
        .ext("brokerId", 0);
    for body in [
        "",
        "null",
        "{}",
        r#"{"counter":1,"stateVersion":0,"timestamp":1}"#,
    ] {
        let reply = world.send(1, &query.clone().body(body));
        assert_eq!(
            (
                reply.code,
                reply.ext["changed"].as_str(),
                reply.body.as_str()
            ),
            (0, "true", ""),
            "{body}"
        );
    }
}

#[test]
fn h1_the_dialect_of_a_route_follows_the_asker() {
    let mut world = World::new();
    world.send(1, &reg("c/é", "b", 0, "x:1", &many(2), (0, 1, 1)));
    world.send(2, &reg("c/é", "b", 1, "y:1", &many(2), (0, 1, 1)));
    let route = route("T1");
    let plain = r#"{"brokerDatas":[{"brokerAddrs":{0:"x:1",1:"y:1"},"brokerName":"b","cluster":"c/é","enableActingMaster":false}],"filterServerTable":{},"queueDatas":[{"brokerName":"b","perm":6,"readQueueNums":4,"topicSysFlag":0,"writeQueueNums":4}]}"#;
    let strict = plain
        .replace("{0:", "{\"0\":")
        .replace(",1:", ",\"1\":")
        .replace("c/é", "c\\/\\u00E9");
    for version in [-1, 0, 317, 399, 400] {
        assert_eq!(
            world.send(9, &route.clone().version(version)).body,
            plain,
            "{version}"
        );
        assert_eq!(
            world
                .send(
                    9,
                    &route
                        .clone()
                        .version(version)
                        .ext("acceptStandardJsonOnly", "TRUE")
                )
                .body,
            strict
        );
        assert_eq!(
            world
                .send(
                    9,
                    &route
                        .clone()
                        .version(version)
                        .ext("acceptStandardJsonOnly", "yes")
                )
                .body,
            plain
        );
    }
    for version in [401, 413, 479, 513, 10_000] {
        assert_eq!(
            world.send(9, &route.clone().version(version)).body,
            strict,
            "{version}"
        );
    }
}

#[test]
fn h2_cluster_info_is_plain_for_everybody() {
    let mut world = World::new();
    world.send(1, &reg("c", "b", 0, "x:1", &many(2), (0, 1, 1)));
    for version in [0, 399, 479] {
        let body = world
            .send(
                9,
                &ask(106)
                    .version(version)
                    .ext("acceptStandardJsonOnly", "true"),
            )
            .body;
        assert_eq!(
            body,
            r#"{"brokerAddrTable":{"b":{"brokerAddrs":{0:"x:1"},"brokerName":"b","cluster":"c","enableActingMaster":false}},"clusterAddrTable":{"c":["b"]}}"#
        );
        let body = world
            .send(
                9,
                &ask(901)
                    .version(version)
                    .ext("clusterName", "q")
                    .ext("brokerName", "b"),
            )
            .body;
        assert_eq!(
            body,
            r#"{"brokerMemberGroup":{"brokerAddrs":{0:"x:1"},"brokerName":"b","cluster":"q"}}"#
        );
    }
}

#[test]
fn h3_a_body_can_be_cut_at_its_commas_and_colons() {
    let mut world = World::new();
    let broker = |id, addr: &str| reg("c", "b", id, addr, &many(2), (0, 1, 1));
    for odd in [
        "x,y:1",
        "x\":1",
        "x :1",
        "x:1\t",
        "x:1\n",
        "x\u{0}:1",
        "x\u{3000}:1",
        "",
    ] {
        assert_eq!(world.send(1, &broker(0, odd)).code, 1, "{odd:?}");
    }
    let members = ask(901).ext("clusterName", "c").ext("brokerName", "b");
    assert!(world.send(9, &members).body.contains(r#""brokerAddrs":{}"#));
    world.send(1, &broker(0, "x:1"));
    world.send(2, &broker(1, "y:1"));
    for ask in [
        route("T1"),
        route("T1").version(317),
        ask(106),
        members,
        ask(206),
        ask(304),
    ] {
        let body = world.send(9, &ask).body;
        assert!(
            !body.is_empty() && !body.contains(char::is_whitespace),
            "{body}"
        );
    }
}

#[test]
fn h4_the_system_flag_of_a_topic_has_its_new_name() {
    let mut world = World::new();
    world.send(1, &reg("c", "b", 0, "x:1", &many(2), (0, 1, 1)));
    let table = |flag: &str| {
        format!(
            r#"{{"queueDatas":[{{"brokerName":"b","perm":6,"readQueueNums":4,"writeQueueNums":4,"{flag}":3}}]}}"#
        )
    };
    for (flag, read) in [("topicSysFlag", 3), ("topicSynFlag", 0)] {
        assert_eq!(
            world.code(&ask(217).ext("topic", flag).body(table(flag))),
            0
        );
        for version in [317, 479] {
            let body = world.send(9, &route(flag).version(version)).body;
            assert!(
                body.contains(&format!(r#""topicSysFlag":{read},"#)),
                "{body}"
            );
            assert!(!body.contains("topicSynFlag"), "{body}");
        }
    }
}

/// A length word and the bytes behind it.
fn item(bytes: &[u8]) -> Vec<u8> {
    let len = u32::try_from(bytes.len()).expect("short");
    [&len.to_be_bytes(), bytes].concat()
}

/// The contents of a compressed registration up to its topics, of which it says that there are `count`.
fn layout(count: i32, topics: &[&[u8]]) -> Vec<u8> {
    let version = item(br#"{"counter":3,"timestamp":17}"#);
    let mut layout = [&version[..], &count.to_be_bytes()].concat();
    layout.extend(topics.iter().flat_map(|topic| item(topic)));
    layout
}

fn deflate(layout: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::best());
    std::io::Write::write_all(&mut encoder, layout).expect("memory");
    encoder.finish().expect("memory")
}

#[test]
fn h5_a_compressed_registration_is_read_by_the_senders_version() {
    let mut text = layout(2, &[b"T1 8 8 6 SINGLE_TAG", b"T2 8 8 6 SINGLE_TAG"]);
    text.extend(item(b"[]"));
    let broker = reg("c", "b", 0, "x:1", &[], (0, 0, 0)).ext("compressed", "true");
    let old = deflate(&text);
    text.extend_from_slice(&0_u32.to_be_bytes());
    let new = deflate(&text);
    for (body, version, code) in [
        (&old, 407, 0),
        (&old, 413, 1),
        (&new, 413, 0),
        (&new, 479, 0),
        (&new, 407, 0),
    ] {
        let mut world = World::new();
        assert_eq!(
            world.code(&broker.clone().body(body.clone()).version(version)),
            code,
            "{version}"
        );
        assert_eq!(world.route("T2").is_some(), code == 0);
    }
    // A 5.x broker labels its compressed body as uncompressed.
    let mut world = World::new();
    assert_eq!(world.code(&broker.without("compressed").body(new)), 0);
    assert!(world.route("T2").is_some());
}

#[test]
fn h6_a_data_version_query_always_says_whether_something_changed() {
    let mut world = World::new();
    world.send(1, &reg("c", "b", 0, "x:1", &many(2), (0, 7, 3)));
    let query = ask(322)
        .ext("clusterName", "c")
        .ext("brokerName", "b")
        .ext("brokerAddr", "x:1")
        .ext("brokerId", 0);
    let stored = r#"{"counter":3,"stateVersion":0,"timestamp":7}"#;
    for (body, changed) in [
        (stored, "false"),
        (r#"{"counter":4,"timestamp":7}"#, "true"),
        ("", "true"),
        ("null", "true"),
        ("{}", "true"),
    ] {
        let reply = world.send(1, &query.clone().body(body));
        assert_eq!(
            (
                reply.code,
                reply.ext["changed"].as_str(),
                reply.body.as_str()
            ),
            (0, changed, stored),
            "{body}"
        );
    }
    assert_eq!(world.code(&query.without("brokerAddr")), 1);
}

#[test]
fn h10_members_are_the_same_in_both_answers_that_tell_them() {
    const TOPIC: &str = "rmq_sys_SYNC_BROKER_MEMBER_b";
    let changes: [fn(&mut World); 6] = [
        |world| world.close(2),
        |world| assert_eq!(world.send(9, &ask(205).ext("brokerName", "b")).code, 0),
        |world| world.close(1),
        |world| {
            assert_eq!(
                world
                    .send(9, &ask(318).body("supportActingMaster=true"))
                    .code,
                0
            )
        },
        |world| {
            let candidate = reg("c", "b", -1, "w:1", &topics(&["A", TOPIC]), (0, 1, 1));
            assert_eq!(
                world
                    .send(4, &candidate.ext("enableActingMaster", "true"))
                    .code,
                0
            );
        },
        |world| world.close(3),
    ];
    let mut world = World::new();
    acting_group(&mut world);
    let mut before = Value::Null;
    for (number, change) in changes.into_iter().enumerate() {
        let members = world.members("c", "b");
        assert_eq!(
            json!(world.addrs(TOPIC)["b"]),
            members,
            "before change {number}"
        );
        assert!(members != before || [2, 4].contains(&number));
        before = members;
        change(&mut world);
    }
    assert_eq!(world.members("c", "b"), json!({"-1": "w:1"}));
    assert_eq!(world.addrs(TOPIC)["b"], addrs(&[("-1", "w:1")]));
}

#[test]
fn h11_one_way_requests_take_effect_and_are_not_answered() {
    let mut world = World::new();
    world.send_oneway(1, &reg("c", "b", 0, "x:1", &many(2), (0, 1, 1)));
    assert!(world.route("T1").is_some());
    for code in [105, 106, 206, 319, 1, 47, 905] {
        world.send_oneway(1, &ask(code));
    }
    world.send_oneway(1, &reg("c", "b", 0, "x:1", &many(1), (0, 1, 1)).body("{"));
    world.send_oneway(1, &unreg("c", "b", 0, "x:1"));
    assert_eq!(world.route("T1"), None);
}

/// A question about the route of `T1` by somebody in a zone.
fn zone(mode: &str, name: &str) -> Ask {
    route("T1")
        .ext("__ZONE_MODE", mode)
        .ext("__ZONE_NAME", name)
}

/// The brokers that a route names.
fn seen(world: &mut World, ask: &Ask) -> Vec<String> {
    let route = world.send(9, ask).json();
    let of = |list: &str| -> Vec<String> {
        let list = route[list].as_array().expect("a list");
        list.iter()
            .map(|data| data["brokerName"].as_str().expect("a name").into())
            .collect()
    };
    assert_eq!(of("brokerDatas"), of("queueDatas"));
    of("brokerDatas")
}

#[test]
fn h13_a_zone_sees_its_brokers_and_masterless_groups() {
    let mut world = World::new();
    let table = many(2);
    world.send(
        1,
        &reg("c", "b1", 0, "x:1", &table, (0, 1, 1)).ext("__ZONE_NAME", "z1"),
    );
    world.send(
        2,
        &reg("c", "b2", 0, "y:1", &table, (0, 1, 1)).ext("__ZONE_NAME", "z2"),
    );
    world.send(
        3,
        &reg("c", "b3", 1, "z:1", &table, (0, 1, 1)).ext("enableActingMaster", "false"),
    );
    assert_eq!(seen(&mut world, &zone("true", "Z1")), ["b1", "b3"]);
    assert_eq!(seen(&mut world, &zone("TRUE", "none")), ["b3"]);
    for unfiltered in [
        zone("true", " "),
        zone("false", "z1"),
        zone("", "z1"),
        route("T1"),
    ] {
        assert_eq!(seen(&mut world, &unfiltered), ["b1", "b2", "b3"]);
    }
}

#[test]
fn h13_a_group_whose_slave_acts_as_master_is_not_masterless() {
    for (acts, elsewhere) in [("true", vec![]), ("false", vec!["b"])] {
        let mut world = World::with("supportActingMaster=true");
        let slave = reg("c", "b", 1, "x:1", &many(2), (0, 1, 1))
            .ext("enableActingMaster", acts)
            .ext("__ZONE_NAME", "z1");
        world.send(1, &slave);
        assert_eq!(seen(&mut world, &zone("true", "z1")), ["b"]);
        assert_eq!(seen(&mut world, &zone("true", "z2")), elsewhere);
    }
}

#[test]
fn h19_every_client_reads_the_same_route() {
    let mut world = World::new();
    for (id, addr) in [(0, "x:1"), (1, "y:1"), (12, "z:1"), (-1, "w:1")] {
        let broker = reg("c/é\u{2028}<", "b\"<", id, addr, &many(2), (0, 1, 1));
        assert_eq!(world.send(1, &broker).code, 0);
    }
    for ask in [route("T1"), ask(106), ask(901).ext("brokerName", "b\"<")] {
        let mut forms = BTreeSet::new();
        let mut contents = Vec::new();
        for version in [0, 317, 401, 413, 477, 513] {
            for standard in ["false", "true"] {
                let ask = ask
                    .clone()
                    .version(version)
                    .ext("acceptStandardJsonOnly", standard);
                let body = world.send(9, &ask).body;
                contents.push(quoted(&body));
                forms.insert(body);
            }
        }
        assert!(
            contents.iter().all(|content| *content == contents[0]),
            "{forms:?}"
        );
        assert!(
            contents[0].to_string().contains("\"12\":\"z:1\""),
            "{forms:?}"
        );
    }
}

#[test]
fn i3_what_cannot_be_written_is_refused_and_never_seen() {
    let mut world = World::new();
    put_that_waits_for_the_disk(&mut world);
    assert_eq!(
        world.take_reply(1),
        None,
        "not acknowledged before it is on disk"
    );
    let get = ask(101).ext("namespace", "n").ext("key", "k");
    assert_eq!(world.send(2, &get).code, 22, "nor visible");
    let (ticket, _) = world.persists.pop().expect("a write");
    world.apply([Command::Persisted(
        ticket,
        Err("No space left on device".into()),
    )]);
    let refused = world.take_reply(1).expect("an answer");
    assert_eq!(refused.code, 1);
    assert!(
        refused
            .remark
            .expect("a remark")
            .contains("No space left on device")
    );
    assert_eq!(world.send(2, &get).code, 22);
    let update = world
        .process(1, &ask(318).body("orderMessageEnable=true"))
        .expect("a command");
    world.apply([update]);
    let (ticket, _) = world.persists.pop().expect("a write");
    world.apply([Command::Persisted(ticket, Err("read-only".into()))]);
    assert_eq!(world.take_reply(1).expect("an answer").code, 1);
    assert!(!world.snapshot.settings().order_message_enable);
}

#[test]
fn the_plain_form_is_what_the_helpers_of_these_tests_take_it_for() {
    assert_eq!(
        quoted(r#"{0:"a:1,2:b",-1:"x"}"#),
        json!({"0": "a:1,2:b", "-1": "x"})
    );
    assert!(register_body(&many(1), (0, 1, 1)).contains("\"T1\""));
}

#[test]
fn a_pause_of_the_whole_process_expires_nobody_who_was_only_not_heard() {
    let mut world = World::new();
    for (connection, name) in [(1, "a"), (2, "b")] {
        let addr = format!("10.0.0.{connection}:1");
        let registration = reg("c", name, 0, &addr, &topics(&[name, "other"]), (0, 1, 1));
        assert_eq!(world.send(connection, &registration).code, 0);
    }
    world.freeze(SECOND * 600);
    assert!(world.route("a").is_some());
    // Only one of them has something to say that came during the pause.
    assert_eq!(world.send(1, &heartbeat("c", "a", "10.0.0.1:1")).code, 0);
    world.pass(SECOND * 5);
    assert!(world.route("a").is_some());
    assert!(world.route("b").is_none());
    assert_eq!(world.closed, [conn(2)]);
}

#[test]
fn pauses_put_a_scan_off_a_few_times_and_not_for_ever() {
    let mut world = World::new();
    let registration = reg(
        "c",
        "a",
        0,
        "10.0.0.1:1",
        &topics(&["a", "other"]),
        (0, 1, 1),
    );
    assert_eq!(world.send(1, &registration).code, 0);
    for _ in 0..5 {
        world.freeze(SECOND * 600);
        assert!(world.route("a").is_some());
    }
    world.freeze(SECOND * 600);
    assert!(world.route("a").is_none());
}

#[test]
fn h15_odd_texts_are_read_back_by_a_strict_parser() {
    let odd = [
        "say \"hi\"",
        "back\\slash",
        "tab\tend",
        "line\u{2028}end",
        "\u{1}",
        "\u{7f}",
        "😀",
        "</a>",
    ];
    let odd = BTreeSet::from(odd);
    let mut world = World::new();
    for (number, name) in odd.iter().enumerate() {
        let addr = format!("10.0.0.{number}:1");
        let broker = reg("c", name, 0, &addr, &topics(&["T", name]), (0, 1, 1));
        assert_eq!(world.code(&broker), 0, "{name}");
    }
    let addrs = world.addrs("T");
    let brokers: BTreeSet<&str> = addrs.keys().map(String::as_str).collect();
    assert_eq!(brokers, odd);
    let list = world.send(900, &ask(206)).json();
    let listed = list["topicList"].as_array().expect("a list").iter();
    let mut listed: BTreeSet<&str> = listed.filter_map(Value::as_str).collect();
    listed.remove("T");
    assert_eq!(listed, odd);
}

/// Whether a file has a test that begins so.
fn has_test(path: &Path, beginning: &str) -> bool {
    let text = fs::read_to_string(path).unwrap_or_default();
    text.contains(&format!("#[test]\nfn {beginning}"))
        || text.contains(&format!("#[test]\n    fn {beginning}"))
}

#[test]
fn every_test_that_the_table_of_faults_names_is_there() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let table = fs::read_to_string(root.join("docs/faults.md")).expect("a file of this repository");
    let named = table
        .split('`')
        .skip(1)
        .step_by(2)
        .filter(|name| name.contains("::"));
    let mut count = 0;
    for name in named {
        let parts: Vec<&str> = name.split("::").collect();
        let (modules, beginning) = match parts.split_last() {
            Some((last, modules)) if last.ends_with('…') => (modules, last.trim_end_matches('…')),
            _ => (&*parts, ""),
        };
        let path = |folder: &str| {
            modules
                .iter()
                .fold(root.join(folder), |path, part| path.join(part))
        };
        let unit = path("src");
        let mut files = vec![
            path("tests/it").with_extension("rs"),
            unit.with_extension("rs"),
            unit.join("mod.rs"),
        ];
        if modules.ends_with(&["tests"]) {
            // Inside the file of what they test.
            files.extend(unit.parent().map(|tested| tested.with_extension("rs")));
        }
        let whole = beginning.is_empty() && unit.is_dir();
        assert!(
            whole || files.iter().any(|file| has_test(file, beginning)),
            "{name}"
        );
        count += 1;
    }
    assert!(count > 80, "{count}");
}

#[test]
fn every_fault_of_the_table_has_a_test_of_its_name() {
    // Its test is that of another fault, and stands in the table.
    const ELSEWHERE: [&str; 1] = ["E9"];
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let text = fs::read_to_string(root.join("docs/faults.md")).expect("a file of this repository");
    let table = text.split("\n## ").next().expect("split yields a part");
    let rows = table.lines().filter(|line| line.starts_with("| "));
    let rows = rows.map(|row| row.split('|').nth(1).map_or("", str::trim));
    let ids: Vec<&str> = rows.filter(|id| *id != "fault").collect();
    assert!(ids.len() > 70, "{ids:?}");
    for id in ids {
        let test = format!("::{}_", id.to_lowercase());
        assert_eq!(table.contains(&test), !ELSEWHERE.contains(&id), "{id}");
    }
}
