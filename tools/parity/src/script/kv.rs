//! The KV table (100, 101, 102, 219) and the order topics in it.

use super::Theme;
use super::build::{broker, delete, get, put, route, set, topics};
use crate::frame::Frame;

fn list(namespace: &str) -> Frame {
    Frame::request(219).ext("namespace", namespace)
}

pub(super) fn theme() -> Theme {
    let mut theme = Theme::new("kv");
    entries(&mut theme);
    missing(&mut theme);
    texts(&mut theme);
    versions(&mut theme);
    theme
}

fn entries(theme: &mut Theme) {
    theme.ask("list-unknown", list("kv"));
    theme.ask("get-unknown", get("kv", "a"));
    theme.ask("delete-unknown", delete("kv", "a"));
    theme.ask("list-after-no-op", list("kv"));
    theme.ask("put", put("kv", "a", "1"));
    theme.ask("get", get("kv", "a"));
    theme.ask("list", list("kv"));
    theme.ask("put-over", put("kv", "a", "2"));
    theme.ask("get-over", get("kv", "a"));
    theme.ask("put-second", put("kv", "b", "3"));
    theme.ask("list-two", list("kv"));
    theme.ask("get-other-namespace", get("kv2", "a"));
    theme.ask("get-other-case", get("KV", "A"));
    theme.ask("delete", delete("kv", "a"));
    theme.ask("get-deleted", get("kv", "a"));
    theme.ask("delete-again", delete("kv", "a"));
    theme.ask("delete-last", delete("kv", "b"));
    theme.ask("list-emptied", list("kv"));
    theme.quiet("put-oneway", put("kv", "one", "way").oneway());
    theme.ask("get-oneway", get("kv", "one"));
}

fn missing(theme: &mut Theme) {
    for field in ["namespace", "key", "value"] {
        theme.ask(
            &format!("put-no-{field}"),
            put("kv-m", "k", "v").without(field),
        );
        theme.ask(
            &format!("put-empty-{field}"),
            put("kv-m", "k", "v").with(field, ""),
        );
    }
    theme.ask("put-no-ext", Frame::request(100));
    theme.ask("put-empty-ext", Frame::request(100).empty_ext());
    theme.ask("list-after-odd-puts", list("kv-m"));
    theme.ask("list-empty-namespace", list(""));
    theme.ask("get-empty-namespace", get("", "k"));
    theme.ask("get-empty-key", get("kv-m", ""));
    theme.ask("put-then-null", put("kv-n", "k", "v"));
    theme.ask("put-null-over", put("kv-n", "k", "v").without("value"));
    theme.ask("get-null", get("kv-n", "k"));
    theme.ask("list-null", list("kv-n"));
    for field in ["namespace", "key"] {
        theme.ask(&format!("get-no-{field}"), get("kv", "one").without(field));
        theme.ask(
            &format!("delete-no-{field}"),
            delete("kv", "one").without(field),
        );
    }
    theme.ask("get-no-ext", Frame::request(101));
    theme.ask("delete-no-ext", Frame::request(102));
    theme.ask("list-no-ext", Frame::request(219));
    theme.ask("list-empty-ext", Frame::request(219).empty_ext());
    theme.ask(
        "list-wrong-field",
        Frame::request(219).ext("Namespace", "kv"),
    );
}

fn texts(theme: &mut Theme) {
    for (id, text) in [
        ("non-ascii", "中é😀"),
        ("quotes", "a\"b\\c/d'e"),
        ("controls", "a\u{1}b\tc\nd\u{b}e\u{7f}f"),
        ("separators", "a\u{2028}b\u{85}c"),
        ("blanks", "  a  "),
        ("json", "{\"a\":[1]}"),
        ("markup", "<a&b>=#!"),
    ] {
        theme.ask(&format!("put-{id}"), put(&format!("kv-{id}"), text, text));
        theme.ask(&format!("get-{id}"), get(&format!("kv-{id}"), text));
        theme.ask(&format!("list-{id}"), list(&format!("kv-{id}")));
        theme.ask(
            &format!("get-{id}-binary"),
            get(&format!("kv-{id}"), text).binary(),
        );
    }
    let long = "v".repeat(1000);
    theme.ask("put-long", put("kv-long", "k", &long));
    theme.ask("get-long", get("kv-long", "k"));
}

fn versions(theme: &mut Theme) {
    for version in [0, 36, 399, 401, 10_000, -1] {
        theme.ask(
            &format!("put-version-{version}"),
            put("kv-v", &version.to_string(), "x").version(version),
        );
        theme.ask(
            &format!("get-version-{version}"),
            get("kv-v", &version.to_string()).version(version),
        );
        theme.ask(
            &format!("list-version-{version}"),
            list("kv-v").version(version),
        );
    }
    theme.ask("list-binary", list("kv-v").binary());
    theme.ask("list-unknown-binary", list("none-such").binary());
    theme.ask("delete-binary", delete("kv-v", "0").binary());
    theme.ask("body-ignored", put("kv-v", "0", "y").body("odd"));
}

/// Order topics: in routes and in answers to brokers.
pub(super) fn order() -> Theme {
    let mut theme = Theme::new("order");
    let master = broker("od", "od-a", 0, "10.16.0.1:1")
        .register()
        .body(topics(1, &["Od1", "Od2"]).body());
    theme.on("m").ask("before", master.clone());
    theme.ask("put", put("ORDER_TOPIC_CONFIG", "Od1", "od-a:4"));
    theme.ask("told-to-broker", master.clone());
    theme.ask("told-to-broker-binary", master.clone().binary());
    theme.ask("told-to-broker-of-4.9", master.clone().version(399));
    theme.ask("not-in-route", route("Od1"));
    theme.ask("enable", set("orderMessageEnable", "true"));
    theme.ask("in-route", route("Od1"));
    theme.ask("in-route-plain", route("Od1").version(399));
    theme.ask("other-topic", route("Od2"));
    theme.ask(
        "put-second",
        put("ORDER_TOPIC_CONFIG", "Od2", "od-a:1;od-b:2"),
    );
    theme.ask("second-in-route", route("Od2"));
    theme.ask(
        "put-unknown-topic",
        put("ORDER_TOPIC_CONFIG", "OdNone", "x:1"),
    );
    theme.ask("unknown-topic", route("OdNone"));
    theme.ask("put-empty", put("ORDER_TOPIC_CONFIG", "Od2", ""));
    theme.ask("empty-in-route", route("Od2"));
    theme.ask(
        "put-odd",
        put("ORDER_TOPIC_CONFIG", "Od2", "no colon \"/\\"),
    );
    theme.ask("odd-in-route", route("Od2"));
    theme.ask("odd-in-route-plain", route("Od2").version(317));
    theme.ask(
        "zone-keeps-it",
        route("Od1")
            .ext("__ZONE_MODE", "true")
            .ext("__ZONE_NAME", "z"),
    );
    theme.ask("all-told-to-broker", master.clone());
    theme.ask(
        "broker-is-not-told",
        set("returnOrderTopicConfigToBroker", "false"),
    );
    theme.ask("not-told", master.clone());
    theme.ask(
        "broker-is-told",
        set("returnOrderTopicConfigToBroker", "true"),
    );
    theme.ask("delete", delete("ORDER_TOPIC_CONFIG", "Od1"));
    theme.ask("deleted-from-route", route("Od1"));
    theme.ask("delete-second", delete("ORDER_TOPIC_CONFIG", "Od2"));
    theme.ask("delete-third", delete("ORDER_TOPIC_CONFIG", "OdNone"));
    theme.ask("emptied-told-to-broker", master);
    theme.ask("disable", set("orderMessageEnable", "false"));
    theme.ask("disabled", route("Od1"));
    theme
}
