//! GET_ROUTEINFO_BY_TOPIC (105): dialects by version, odd topics, zones, static topics.

use super::Theme;
use super::build::{Broker, broker, id_of, route, topics};
use crate::frame::Frame;

/// The versions at which something changes, and some beyond.
pub(super) const VERSIONS: [i32; 12] = [0, 36, 37, 317, 333, 399, 400, 401, 413, 479, 10_000, -1];

pub(super) fn theme() -> Theme {
    let mut theme = Theme::new("route");
    theme.on("m").ask(
        "master",
        broker("rt", "rt-a", 0, "10.4.0.1:10911")
            .register()
            .body(topics(1, &["RtA", "RtB"]).body()),
    );
    theme.on("s").ask(
        "slave",
        broker("rt", "rt-a", 2, "10.4.0.2:10911")
            .register()
            .body(topics(1, &["RtA", "RtB"]).body()),
    );
    theme.on("n").ask(
        "second-master",
        broker("rt", "rt-b", 0, "10.4.0.3:10911")
            .register_old()
            .body(topics(1, &["RtB", "RtC"]).body()),
    );
    for version in VERSIONS {
        theme.ask(&format!("version-{version}"), route("RtB").version(version));
    }
    theme.ask("no-version", route("RtB").no_version());
    for version in [0, 37, 399, 401, 479, -1] {
        theme.ask(
            &format!("binary-version-{version}"),
            route("RtB").version(version).binary(),
        );
    }
    standard_json(&mut theme);
    topics_asked(&mut theme);
    theme.pipeline(
        "pipelined",
        vec![
            route("RtA"),
            route("RtB"),
            route("none"),
            route("RtC").version(399),
        ],
    );
    theme.quiet("oneway", route("RtA").oneway());
    theme
}

fn standard_json(theme: &mut Theme) {
    for value in ["true", "TRUE", "True", "false", "yes", "1", "", " true"] {
        theme.ask(
            &format!("standard-json-{}", id_of(value)),
            route("RtA")
                .ext("acceptStandardJsonOnly", value)
                .version(317),
        );
    }
    theme.ask(
        "standard-json-false-new",
        route("RtA").ext("acceptStandardJsonOnly", "false"),
    );
    theme.ask(
        "standard-json-no-version",
        route("RtA")
            .ext("acceptStandardJsonOnly", "true")
            .no_version(),
    );
}

fn topics_asked(theme: &mut Theme) {
    theme.ask("unknown", route("none-such"));
    theme.ask("unknown-old", route("none-such").version(0));
    theme.ask("empty", route(""));
    theme.ask("blank", route(" "));
    theme.ask("other-case", route("rta"));
    theme.ask("blank-after", route("RtA "));
    theme.ask("no-topic", Frame::request(105).empty_ext());
    theme.ask("no-ext", Frame::request(105));
    theme.ask("wrong-field", Frame::request(105).ext("Topic", "RtA"));
    theme.ask("non-ascii", route("主题"));
    theme.ask("markup", route("<a href=\"x\">\\"));
    theme.ask("line-break", route("a\nb"));
    theme.ask(
        "extra-fields",
        route("RtA")
            .ext("AccessKey", "")
            .ext("Signature", "")
            .ext("OnsChannel", "")
            .ext("lo", "false")
            .ext("ns", "x")
            .ext("nsd", "y"),
    );
    theme.ask("body-ignored", route("RtA").body("{\"topic\":\"RtC\"}"));
    theme.ask(
        "from-go",
        route("RtA").language("GO").version(317).remark(""),
    );
    theme.ask(
        "from-cpp",
        route("RtA").language("CPP").version(333).remark(""),
    );
    theme.ask("default-topic", route("TBW102"));
    theme.ask(
        "sync-member-topic",
        route("rmq_sys_SYNC_BROKER_MEMBER_rt-a"),
    );
    theme.ask("long", route(&"t".repeat(500)));
}

/// The zone filter.
pub(super) fn zone() -> Theme {
    let mut theme = Theme::new("zone");
    let body = topics(1, &["Zn", "Zn2"])
        .filter_servers("[\"fs:1\"]")
        .body();
    let register = |name: &str, id: i64, address: &str, zone: Option<&str>| {
        let frame = broker("zn", name, id, address)
            .register()
            .body(body.as_str());
        zone.map_or(frame.clone(), |zone| frame.ext("__ZONE_NAME", zone))
    };
    theme
        .on("z1")
        .ask("first", register("zn-1", 0, "10.5.0.1:1", Some("az1")));
    theme
        .on("z2")
        .ask("second", register("zn-2", 0, "10.5.0.2:1", Some("az2")));
    theme
        .on("z3")
        .ask("without-zone", register("zn-3", 0, "10.5.0.3:1", None));
    theme
        .on("z4")
        .ask("slave-only", register("zn-4", 1, "10.5.0.4:1", Some("az2")));
    theme
        .on("z5")
        .ask("empty-zone", register("zn-5", 0, "10.5.0.5:1", Some("")));
    filtered(&mut theme);
    theme.close("z4");
    theme.settle();
    theme.on("z1").ask("nothing-left", zoned("az9", "true"));
    theme.ask("zone-cleared", register("zn-1", 0, "10.5.0.1:1", None));
    theme.ask("after-clearing", zoned("az1", "true"));
    theme.ask(
        "zone-changed",
        register("zn-1", 0, "10.5.0.1:1", Some("az7")),
    );
    theme.ask("after-change", zoned("az7", "true"));
    theme
}

fn zoned(zone: &str, mode: &str) -> Frame {
    route("Zn")
        .ext("__ZONE_NAME", zone)
        .ext("__ZONE_MODE", mode)
}

fn filtered(theme: &mut Theme) {
    let standard = || {
        zoned("az1", "true")
            .version(399)
            .ext("acceptStandardJsonOnly", "true")
    };
    let elsewhere = |frame: Frame| frame.ext("__ZONE_NAME", "az1").ext("__ZONE_MODE", "true");
    for (id, frame) in [
        ("unfiltered", route("Zn")),
        ("az1", zoned("az1", "true")),
        ("az1-plain", zoned("az1", "true").version(399)),
        ("az1-standard-json", standard()),
        ("az1-binary", zoned("az1", "true").binary()),
        ("other-case", zoned("AZ2", "TRUE")),
        ("not-trimmed", zoned("az1 ", "true")),
        ("mode-false", zoned("az1", "false")),
        ("mode-odd", zoned("az1", "yes")),
        ("mode-missing", route("Zn").ext("__ZONE_NAME", "az1")),
        ("name-missing", route("Zn").ext("__ZONE_MODE", "true")),
        ("name-empty", zoned("", "true")),
        ("name-blank", zoned("  ", "true")),
        ("unknown-zone", zoned("az9", "true")),
        ("unknown-topic", elsewhere(route("none-such"))),
        ("other-codes-unfiltered", elsewhere(Frame::request(206))),
    ] {
        theme.ask(id, frame);
    }
}

/// Static topics: mappings in a registration and in the route.
pub(super) fn static_topics() -> Theme {
    let mut theme = Theme::new("static");
    let master = broker("st", "st-a", 0, "10.6.0.1:1");
    let mapping = |name: &str, epoch: i64| {
        format!(
            "{{\"bname\":\"{name}\",\"currIdMap\":{{0:0,1:1,10:2}},\"dirty\":false,\"epoch\":{epoch},\"scope\":\"__global__\",\"topic\":\"StT\",\"totalQueues\":4}}"
        )
    };
    let register = |counter: u32, name: &str, epoch: i64| {
        master.register().body(
            topics(counter, &["StT", "StU"])
                .mapping("StT", &mapping(name, epoch))
                .body(),
        )
    };
    theme.on("m").ask("with-mapping", register(1, "st-a", 1));
    theme.ask("strict", route("StT"));
    theme.ask("plain", route("StT").version(399));
    theme.ask("no-mapping-for-other", route("StU"));
    theme.ask("equal-version", register(1, "st-a", 5));
    theme.ask("equal-version-ignored", route("StT"));
    theme.ask("great-epoch", register(2, "st-a", 9_007_199_254_740_993));
    theme.ask("great-epoch-strict", route("StT"));
    theme.ask("great-epoch-plain", route("StT").version(399));
    theme.ask("edge-epoch", register(3, "st-a", 9_007_199_254_740_991));
    theme.ask("edge-epoch-strict", route("StT"));
    theme.ask(
        "negative-epoch",
        register(4, "st-a", -9_007_199_254_740_992),
    );
    theme.ask("negative-epoch-strict", route("StT"));
    theme.ask("of-other-broker", register(5, "st-b", 1));
    theme.ask("of-other-broker-routed", route("StT"));
    odd_mappings(&mut theme, &master);
    let without_topic = mapping("st-a", 1);
    theme.ask(
        "mapping-without-topic",
        master.register().body(
            topics(20, &["StU"])
                .mapping("StGhost", &without_topic)
                .body(),
        ),
    );
    theme.ask("mapping-without-topic-routed", route("StGhost"));
    theme.ask("binary", route("StT").binary());
    theme.close("m");
    theme.settle();
    theme.on("m").ask("broker-left", route("StT"));
    theme.ask(
        "broker-returns-without-mapping",
        master.register().body(topics(21, &["StT", "StU"]).body()),
    );
    theme.ask("mapping-after-return", route("StT"));
    theme
}

/// Mappings no broker sends, each for a topic of its own.
fn odd_mappings(theme: &mut Theme, master: &Broker) {
    for (counter, (id, mapping)) in (6..).zip([
        (
            "text-numbers",
            r#"{"bname":"st-a","currIdMap":{"3":"4"},"totalQueues":"8"}"#,
        ),
        (
            "null-id",
            r#"{"bname":"st-a","currIdMap":{"3":null},"totalQueues":8}"#,
        ),
        (
            "negative-id",
            r#"{"bname":"st-a","currIdMap":{"-1":2},"totalQueues":8}"#,
        ),
        (
            "text-id",
            r#"{"bname":"st-a","currIdMap":{"x":2},"totalQueues":8}"#,
        ),
        ("no-ids", r#"{"bname":"st-a","totalQueues":8}"#),
        (
            "null-ids",
            r#"{"bname":"st-a","currIdMap":null,"totalQueues":8}"#,
        ),
        (
            "unknown-member",
            r#"{"bname":"st-a","currIdMap":{0:0},"odd":[1],"totalQueues":8}"#,
        ),
        ("null-mapping", "null"),
        ("list-mapping", "[]"),
    ]) {
        let topic = format!("St-{id}");
        let table = topics(counter, &[&topic, "StU"]).mapping(&topic, mapping);
        theme.ask(&format!("odd-{id}"), master.register().body(table.body()));
        theme.ask(&format!("odd-{id}-strict"), route(&topic));
        theme.ask(&format!("odd-{id}-plain"), route(&topic).version(399));
    }
}
