//! Write permission (205, 327), deleting (216) and registering (217) topics.

use super::Theme;
use super::build::{add_perm, broker, delete_topic, route, set, topics, wipe};
use crate::frame::Frame;

/// 205 and 327.
pub(super) fn permission() -> Theme {
    let mut theme = Theme::new("perm");
    let master = broker("pm", "pm-a", 0, "10.9.0.1:1");
    let table = topics(1, &["Pm6"])
        .add("Pm7", 4, 4, 7, 0)
        .add("Pm4", 4, 4, 4, 0)
        .add("Pm0", 4, 4, 0, 0)
        .add("Pm2", 4, 4, 2, 0)
        .add("Pm15", 4, 4, 15, 0);
    theme
        .on("m")
        .ask("master", master.register().body(table.body()));
    theme.on("n").ask(
        "other",
        broker("pm", "pm-b", 0, "10.9.0.2:1")
            .register()
            .body(topics(1, &["Pm6", "PmOther"]).body()),
    );
    theme.ask("wipe", wipe("pm-a"));
    for topic in ["Pm6", "Pm7", "Pm4", "Pm0", "Pm2", "Pm15"] {
        theme.ask(&format!("wiped-{topic}"), route(topic));
    }
    theme.ask("wipe-again", wipe("pm-a"));
    theme
        .on("m")
        .ask("equal-version", master.register().body(table.body()));
    theme.ask("still-wiped", route("Pm6"));
    theme.ask(
        "new-version",
        master.register().body(topics(2, &["Pm6"]).body()),
    );
    theme.ask("back", route("Pm6"));
    theme.ask("still-wiped-unlisted", route("Pm7"));
    theme.ask("add", add_perm("pm-a"));
    for topic in ["Pm6", "Pm7", "Pm4", "Pm0", "Pm15"] {
        theme.ask(&format!("added-{topic}"), route(topic));
    }
    theme.ask("wipe-binary", wipe("pm-b").binary());
    theme.ask("add-binary", add_perm("pm-b").binary());
    for (name, frame) in [("wipe", Frame::request(205)), ("add", Frame::request(327))] {
        theme.ask(
            &format!("{name}-unknown"),
            frame.clone().ext("brokerName", "nobody"),
        );
        theme.ask(
            &format!("{name}-empty"),
            frame.clone().ext("brokerName", ""),
        );
        theme.ask(&format!("{name}-no-name"), frame.clone().empty_ext());
        theme.ask(&format!("{name}-no-ext"), frame.clone());
        theme.ask(
            &format!("{name}-other-case"),
            frame.clone().ext("brokerName", "PM-A"),
        );
        theme.ask(
            &format!("{name}-version-0"),
            frame.clone().ext("brokerName", "nobody").version(0),
        );
        theme.ask(
            &format!("{name}-version-negative"),
            frame.ext("brokerName", "nobody").version(-1),
        );
    }
    theme.quiet("wipe-oneway", wipe("pm-a").oneway());
    theme.ask("wiped-oneway", route("Pm6"));
    theme
}

/// 216.
pub(super) fn deletion() -> Theme {
    let mut theme = Theme::new("delete");
    let register = |cluster: &str, name: &str, number: u32| {
        broker(cluster, name, 0, &format!("10.10.0.{number}:1"))
            .register()
            .body(topics(1, &["Del1", "Del2", "Del3", "Del4"]).body())
    };
    theme.on("a").ask("first", register("dl-1", "dl-a", 1));
    theme.on("b").ask("second", register("dl-2", "dl-b", 2));
    theme.ask("without-cluster", delete_topic("Del1"));
    theme.ask("without-cluster-gone", route("Del1"));
    theme.ask("empty-cluster", delete_topic("Del2").ext("clusterName", ""));
    theme.ask("empty-cluster-gone", route("Del2"));
    theme.ask(
        "blank-cluster",
        delete_topic("Del3").ext("clusterName", " "),
    );
    theme.ask("blank-cluster-kept", route("Del3"));
    theme.ask(
        "unknown-cluster",
        delete_topic("Del3").ext("clusterName", "nowhere"),
    );
    theme.ask("unknown-cluster-kept", route("Del3"));
    theme.ask(
        "first-cluster",
        delete_topic("Del3").ext("clusterName", "dl-1"),
    );
    theme.ask("first-cluster-reduced", route("Del3"));
    theme.ask(
        "second-cluster",
        delete_topic("Del3").ext("clusterName", "dl-2"),
    );
    theme.ask("second-cluster-gone", route("Del3"));
    theme.ask(
        "binary",
        delete_topic("Del4").ext("clusterName", "dl-2").binary(),
    );
    theme.ask("binary-reduced", route("Del4"));
    theme.ask("unknown-topic", delete_topic("none-such"));
    theme.ask(
        "unknown-topic-in-cluster",
        delete_topic("none-such").ext("clusterName", "dl-1"),
    );
    theme.ask("no-topic", Frame::request(216).empty_ext());
    theme.ask(
        "no-topic-in-cluster",
        Frame::request(216).ext("clusterName", "dl-1"),
    );
    theme.ask("empty-topic", delete_topic(""));
    theme.ask("no-ext", Frame::request(216));
    theme.ask("version-0", delete_topic("none-such").version(0));
    theme.ask("version-negative", delete_topic("none-such").version(-1));
    theme
        .on("a")
        .ask("master-brings-it-back", register("dl-1", "dl-a", 1));
    theme.ask("it-is-back", route("Del1"));
    theme.quiet("oneway", delete_topic("Del1").oneway());
    theme.ask("oneway-gone", route("Del1"));
    theme.on("a").ask(
        "registration-deletes-on",
        set("deleteTopicWithBrokerRegistration", "true"),
    );
    theme.ask(
        "smaller-table",
        broker("dl-1", "dl-a", 0, "10.10.0.1:1")
            .register()
            .body(topics(2, &["Del5", "Del4"]).body()),
    );
    theme.ask("unlisted-deleted", route("Del2"));
    theme.ask("listed-kept", route("Del4"));
    theme.ask(
        "registration-deletes-off",
        set("deleteTopicWithBrokerRegistration", "false"),
    );
    theme
}

/// 217.
pub(super) fn registration() -> Theme {
    let mut theme = Theme::new("topic");
    theme.on("a").ask(
        "first",
        broker("tp", "tp-a", 0, "10.11.0.1:1")
            .register()
            .body(topics(1, &["TpOld", "TpOther"]).body()),
    );
    theme.on("b").ask(
        "second",
        broker("tp", "tp-b", 0, "10.11.0.2:1")
            .register()
            .body(topics(1, &["TpOld", "TpOther"]).body()),
    );
    let queue = |name: &str, perm: i32| {
        format!(
            "{{\"brokerName\":\"{name}\",\"perm\":{perm},\"readQueueNums\":3,\"topicSysFlag\":1,\"writeQueueNums\":2}}"
        )
    };
    let body = |queues: &str| {
        format!("{{\"brokerDatas\":[],\"filterServerTable\":{{}},\"queueDatas\":[{queues}]}}")
    };
    let register = |topic: &str, body: String| Frame::request(217).ext("topic", topic).body(body);
    let cases = [
        ("new", body(&queue("tp-a", 6))),
        (
            "new-on-two",
            body(&format!("{},{}", queue("tp-a", 6), queue("tp-b", 4))),
        ),
        ("new-on-unknown", body(&queue("tp-x", 6))),
        (
            "new-unknown-second",
            body(&format!("{},{}", queue("tp-a", 6), queue("tp-x", 6))),
        ),
        ("no-queues", body("")),
        ("no-numbers", body("{\"brokerName\":\"tp-a\"}")),
        ("no-broker-name", body("{\"perm\":6}")),
        ("null-queue", body("null")),
        ("null-queues", "{\"queueDatas\":null}".to_owned()),
        ("queues-missing", "{}".to_owned()),
        ("null-body", "null".to_owned()),
        ("text-body", "hello".to_owned()),
        ("list-body", "[]".to_owned()),
        ("cut-body", body(&queue("tp-a", 6))[..40].to_owned()),
        ("empty-body", String::new()),
        ("odd-numbers", body(&queue("tp-a", -5))),
        (
            "unquoted-ids",
            format!(
                "{{\"brokerDatas\":[{{\"brokerAddrs\":{{0:\"x:1\"}},\"brokerName\":\"tp-a\"}}],\"queueDatas\":[{}]}}",
                queue("tp-a", 6)
            ),
        ),
    ];
    for (id, body) in cases {
        let topic = format!("Tp-{id}");
        theme.ask(id, register(&topic, body));
        theme.ask(&format!("{id}-routed"), route(&topic));
    }
    theme.ask("existing", register("TpOld", body(&queue("tp-a", 4))));
    theme.ask("existing-routed", route("TpOld"));
    theme.ask(
        "existing-unknown-second",
        register(
            "TpOld",
            body(&format!("{},{}", queue("tp-b", 4), queue("tp-x", 6))),
        ),
    );
    theme.ask("existing-unknown-second-routed", route("TpOld"));
    theme.ask(
        "no-topic",
        Frame::request(217)
            .empty_ext()
            .body(body(&queue("tp-a", 6))),
    );
    theme.ask("no-ext", Frame::request(217).body(body(&queue("tp-a", 6))));
    theme.ask("empty-topic", register("", body(&queue("tp-a", 6))));
    theme.ask("empty-topic-routed", route(""));
    theme.ask(
        "binary",
        register("Tp-binary", body(&queue("tp-a", 6))).binary(),
    );
    theme.ask("binary-routed", route("Tp-binary"));
    theme.ask(
        "version-0",
        register("Tp-0", body(&queue("tp-a", 6))).version(0),
    );
    theme.ask(
        "version-negative",
        register("Tp-0", body(&queue("tp-a", 6))).version(-1),
    );
    theme.quiet(
        "oneway",
        register("Tp-oneway", body(&queue("tp-a", 6))).oneway(),
    );
    theme.ask("oneway-routed", route("Tp-oneway"));
    theme
}
