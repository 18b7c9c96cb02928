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
    theme.on("a").ask("first", deleter("dl-1", "dl-a", 1));
    theme.on("b").ask("second", deleter("dl-2", "dl-b", 2));
    let within = |topic: &str, cluster: &str| delete_topic(topic).ext("clusterName", cluster);
    for (id, topic, frame) in [
        ("without-cluster", "Del1", delete_topic("Del1")),
        ("empty-cluster", "Del2", within("Del2", "")),
        ("blank-cluster", "Del3", within("Del3", " ")),
        ("unknown-cluster", "Del3", within("Del3", "nowhere")),
        ("first-cluster", "Del3", within("Del3", "dl-1")),
        ("second-cluster", "Del3", within("Del3", "dl-2")),
        ("binary", "Del4", within("Del4", "dl-2").binary()),
    ] {
        theme.ask(id, frame);
        theme.ask(&format!("{id}-routed"), route(topic));
    }
    for (id, frame) in [
        ("unknown-topic", delete_topic("none-such")),
        ("unknown-topic-in-cluster", within("none-such", "dl-1")),
        ("no-topic", Frame::request(216).empty_ext()),
        (
            "no-topic-in-cluster",
            Frame::request(216).ext("clusterName", "dl-1"),
        ),
        ("empty-topic", delete_topic("")),
        ("no-ext", Frame::request(216)),
        ("version-0", delete_topic("none-such").version(0)),
        ("version-negative", delete_topic("none-such").version(-1)),
    ] {
        theme.ask(id, frame);
    }
    theme
        .on("a")
        .ask("master-brings-it-back", deleter("dl-1", "dl-a", 1));
    theme.ask("it-is-back", route("Del1"));
    theme.quiet("oneway", delete_topic("Del1").oneway());
    theme.ask("oneway-gone", route("Del1"));
    by_registration(&mut theme);
    theme
}

fn deleter(cluster: &str, name: &str, number: u32) -> Frame {
    let table = topics(1, &["Del1", "Del2", "Del3", "Del4"]);
    let broker = broker(cluster, name, 0, &format!("10.10.0.{number}:1"));
    broker.register().body(table.body())
}

/// With the setting on, a registration deletes what it does not list.
fn by_registration(theme: &mut Theme) {
    let smaller = topics(2, &["Del5", "Del4"]).body();
    let setting = |value: &str| set("deleteTopicWithBrokerRegistration", value);
    theme
        .on("b")
        .ask("second-again", deleter("dl-2", "dl-b", 2));
    theme
        .on("a")
        .ask("registration-deletes-on", setting("true"));
    theme.ask("smaller-table", deleter("dl-1", "dl-a", 1).body(smaller));
    theme.ask("unlisted-deleted", route("Del2"));
    theme.ask("listed-kept", route("Del4"));
    theme.ask("registration-deletes-off", setting("false"));
}

/// 217.
pub(super) fn registration() -> Theme {
    let mut theme = Theme::new("topic");
    for (number, name) in ["tp-a", "tp-b"].into_iter().enumerate() {
        let broker = broker("tp", name, 0, &format!("10.11.0.{number}:1"));
        let table = topics(1, &["TpOld", "TpOther"]);
        theme
            .on(name)
            .ask(name, broker.register().body(table.body()));
    }
    let with_ids = "{\"brokerDatas\":[{\"brokerAddrs\":{0:\"x:1\"},\"brokerName\":\"tp-a\"}],\"queueDatas\":[]}";
    let on = |names: &[&str]| {
        let queues: Vec<String> = names.iter().map(|name| queue(name, 6)).collect();
        body(&queues.join(","))
    };
    for (id, body) in [
        ("new", on(&["tp-a"])),
        ("new-on-two", on(&["tp-a", "tp-b"])),
        ("new-on-unknown", on(&["tp-x"])),
        ("new-unknown-first", on(&["tp-x", "tp-a"])),
        ("new-unknown-second", on(&["tp-a", "tp-x"])),
        ("no-queues", body("")),
        ("no-numbers", body("{\"brokerName\":\"tp-a\"}")),
        ("no-broker-name", body("{\"perm\":6}")),
        ("null-queue", body("null")),
        ("null-queues", "{\"queueDatas\":null}".to_owned()),
        ("queues-missing", "{}".to_owned()),
        ("null-body", "null".to_owned()),
        ("text-body", "hello".to_owned()),
        ("list-body", "[]".to_owned()),
        ("cut-body", on(&["tp-a"])[..40].to_owned()),
        ("empty-body", String::new()),
        ("odd-numbers", body(&queue("tp-a", -5))),
        (
            "unquoted-ids",
            with_ids.replace("[]", &format!("[{}]", queue("tp-a", 6))),
        ),
    ] {
        let topic = format!("Tp-{id}");
        theme.ask(id, register_topic(&topic, body));
        theme.ask(&format!("{id}-routed"), route(&topic));
    }
    existing(&mut theme);
    topic_arguments(&mut theme);
    theme
}

/// A queue of the broker.
fn queue(name: &str, perm: i32) -> String {
    format!(
        "{{\"brokerName\":\"{name}\",\"perm\":{perm},\"readQueueNums\":3,\"topicSysFlag\":1,\"writeQueueNums\":2}}"
    )
}

/// A route of the queues, as a broker sends it.
fn body(queues: &str) -> String {
    format!("{{\"brokerDatas\":[],\"filterServerTable\":{{}},\"queueDatas\":[{queues}]}}")
}

fn register_topic(topic: &str, body: String) -> Frame {
    Frame::request(217).ext("topic", topic).body(body)
}

fn existing(theme: &mut Theme) {
    theme.ask("existing", register_topic("TpOld", body(&queue("tp-a", 4))));
    theme.ask("existing-routed", route("TpOld"));
    let second_unknown = format!("{},{}", queue("tp-b", 4), queue("tp-x", 6));
    theme.ask(
        "existing-unknown-second",
        register_topic("TpOld", body(&second_unknown)),
    );
    theme.ask("existing-unknown-second-routed", route("TpOld"));
}

fn topic_arguments(theme: &mut Theme) {
    let good = body(&queue("tp-a", 6));
    let on = |topic: &str| register_topic(topic, good.clone());
    theme.ask("no-topic", on("").no_ext().empty_ext());
    theme.ask("no-ext", on("").no_ext());
    theme.ask("empty-topic", on(""));
    theme.ask("empty-topic-routed", route(""));
    theme.ask("binary", on("Tp-binary").binary());
    theme.ask("binary-routed", route("Tp-binary"));
    theme.ask("version-0", on("Tp-0").version(0));
    theme.ask("version-negative", on("Tp-0").version(-1));
    theme.quiet("oneway", on("Tp-oneway").oneway());
    theme.ask("oneway-routed", route("Tp-oneway"));
}
