//! REGISTER_BROKER (103): its fields, who is told of whom, and what a registration changes.
//!
//! Every broker has a connection of its own: the original forgets only one broker of a closed connection.

use super::Theme;
use super::build::{
    Broker, broker, clusters, crc, id_of, members, route, state_version, topics, wipe,
};
use crate::frame::Frame;

pub(super) fn theme() -> Theme {
    let mut theme = Theme::new("register");
    master_and_slave(&mut theme);
    checksums(&mut theme);
    versions(&mut theme);
    ids(&mut theme);
    fields(&mut theme);
    theme
}

fn named(number: u32) -> Broker {
    broker(
        "reg",
        &format!("reg-{number}"),
        0,
        &format!("10.1.0.{number}:10911"),
    )
}

fn master_and_slave(theme: &mut Theme) {
    let master = broker("reg", "reg-a", 0, "10.1.1.1:10911");
    let slave = broker("reg", "reg-a", 1, "10.1.1.2:10911");
    let body = topics(1, &["RegA", "RegB"]).body();
    theme
        .on("slave")
        .ask("slave-before-master", slave.register().body(body.as_str()));
    theme.ask("slave-alone-is-routed", route("RegA"));
    theme
        .on("master")
        .ask("master", master.register().body(body.as_str()));
    theme.ask("both-are-routed", route("RegA"));
    theme
        .on("slave")
        .ask("slave-after-master", slave.register().body(body.as_str()));
    theme.ask(
        "slave-over-binary",
        slave.register().body(body.as_str()).binary(),
    );
    theme.ask(
        "slave-of-4.9",
        slave.register_old().body(body.as_str()).version(399),
    );
    theme.ask("slave-without-body", slave.register());
    theme
        .on("master")
        .ask("master-again", master.register().body(body.as_str()));
    theme.ask(
        "master-over-binary",
        master.register().body(body.as_str()).binary(),
    );
    theme.ask("members", members("reg", "reg-a"));
    theme.on("third").quiet(
        "oneway",
        named(3)
            .register()
            .body(topics(1, &["RegOneway", "RegB"]).body())
            .oneway(),
    );
    theme.ask("oneway-is-routed", route("RegOneway"));
    theme.on("fourth").ask(
        "acting",
        named(4)
            .register_acting()
            .body(topics(1, &["RegActing", "RegB"]).body()),
    );
    theme.ask("acting-is-shown", route("RegActing"));
    theme.ask(
        "acting-off-without-field",
        named(4)
            .register_old()
            .body(topics(1, &["RegActing", "RegB"]).body()),
    );
    theme.ask("acting-is-off", route("RegActing"));
}

fn checksums(theme: &mut Theme) {
    let body = topics(1, &["RegCrc", "RegCrc2"]).body();
    let sum = crc(body.as_bytes());
    let with = |value: &str| {
        named(10)
            .register()
            .with("bodyCrc32", value)
            .body(body.as_str())
    };
    theme.on("crc").ask("crc-right", with(&sum.to_string()));
    theme.ask("crc-wrong", with(&(sum ^ 1).to_string()));
    theme.ask(
        "crc-full-32-bits",
        with(&(u64::from(sum) + (1 << 31)).to_string()),
    );
    theme.ask("crc-negative", with("-1"));
    theme.ask("crc-text", with("abc"));
    theme.ask("crc-empty", with(""));
    theme.ask("crc-above-int", with("99999999999"));
    theme.ask(
        "crc-without-body",
        named(10).register().with("bodyCrc32", "5"),
    );
    theme.ask(
        "crc-absent",
        named(10)
            .register()
            .without("bodyCrc32")
            .body(body.as_str()),
    );
    theme.ask("crc-wrong-binary", with("7").binary());
    theme.ask(
        "crc-wrong-changes-nothing",
        named(10)
            .register()
            .with("bodyCrc32", "7")
            .body(topics(2, &["RegCrcLost", "RegB"]).body()),
    );
    theme.ask("crc-lost-topic", route("RegCrcLost"));
}

fn versions(theme: &mut Theme) {
    let table = |number: i32| topics(1, &[&format!("RegV{number}"), "RegV"]);
    for version in [0, 1, 36] {
        theme.on(&format!("v{version}")).ask(
            &format!("wrapper-version-{version}"),
            named(20)
                .register_old()
                .body(table(version).wrapper())
                .version(version),
        );
        theme.ask(
            &format!("wrapper-version-{version}-routed"),
            route(&format!("RegV{version}")).version(version),
        );
    }
    theme.on("v-none").ask(
        "wrapper-no-version",
        named(21)
            .register_old()
            .body(table(1000).wrapper())
            .no_version(),
    );
    theme.ask("wrapper-no-version-routed", route("RegV1000").no_version());
    for version in [37, 317, 399, 401, 413, 479, 612, 10_000, i32::MAX] {
        theme.on("v").ask(
            &format!("version-{version}"),
            named(22)
                .register()
                .body(table(version).body())
                .version(version),
        );
        theme.ask(
            &format!("version-{version}-routed"),
            route(&format!("RegV{version}")).version(version),
        );
    }
    theme.ask(
        "full-body-version-36",
        named(22).register().body(table(2000).body()).version(36),
    );
    theme.ask("full-body-version-36-routed", route("RegV2000"));
    theme.ask(
        "wrapper-version-479",
        named(22).register().body(table(2001).wrapper()),
    );
    theme.ask("wrapper-version-479-routed", route("RegV2001"));
    for version in [-1, i32::MIN] {
        theme.ask(
            &format!("version-{version}"),
            named(22)
                .register()
                .body(table(3000).body())
                .version(version),
        );
    }
    theme.ask("negative-version-changes-nothing", route("RegV3000"));
    for version in [0, 36, 37, 479, -1] {
        theme.on(&format!("bv{version}"));
        let body = if version < 37 {
            table(4000).wrapper()
        } else {
            table(4000).body()
        };
        theme.ask(
            &format!("binary-version-{version}"),
            named(23).register().body(body).version(version).binary(),
        );
    }
}

fn ids(theme: &mut Theme) {
    let body = topics(1, &["RegId", "RegId2"]).body();
    for (index, (name, id)) in [
        ("plus", "+1"),
        ("padded", "007"),
        ("blank-before", " 1"),
        ("blank-after", "1 "),
        ("decimal", "1.0"),
        ("hex", "0x1"),
        ("empty", ""),
        ("text", "abc"),
        ("minus-one", "-1"),
        ("greatest", "9223372036854775807"),
        ("least", "-9223372036854775808"),
        ("overflow", "9223372036854775808"),
        ("arabic-digits", "\u{661}"),
    ]
    .into_iter()
    .enumerate()
    {
        let name_of_broker = format!("reg-id-{index}");
        let frame = broker("reg", &name_of_broker, 0, &format!("10.1.2.{index}:10911"))
            .register()
            .with("brokerId", id)
            .body(body.as_str());
        theme.on(&name_of_broker).ask(&format!("id-{name}"), frame);
        theme.ask(
            &format!("id-{name}-members"),
            members("reg", &name_of_broker),
        );
    }
}

fn fields(theme: &mut Theme) {
    let body = topics(1, &["RegF", "RegF2"]).body();
    let base = || named(40).register().body(body.as_str());
    theme
        .on("f")
        .ask("no-ext", Frame::request(103).body(body.as_str()));
    theme.ask(
        "empty-ext",
        Frame::request(103).empty_ext().body(body.as_str()),
    );
    theme.ask("no-ext-no-body", Frame::request(103));
    theme.ask("no-broker-id", base().without("brokerId"));
    theme.ask("no-ha-address", base().without("haServerAddr"));
    theme.ask("empty-ha-address", base().with("haServerAddr", ""));
    theme.ask("no-compressed", base().without("compressed"));
    theme.ask("compressed-text", base().with("compressed", "maybe"));
    theme.ask(
        "extra-fields",
        base()
            .ext("AccessKey", "k")
            .ext("Signature", "s")
            .ext("ns", "x")
            .ext("unknown", "y"),
    );
    for value in ["true", "TRUE", "yes", "", "1"] {
        theme.ask(
            &format!("acting-{}", id_of(value)),
            base().with("enableActingMaster", value),
        );
        theme.ask(&format!("acting-{}-shown", id_of(value)), route("RegF"));
    }
    for value in ["0", "-1", "abc", "", "9223372036854775807", "1.5"] {
        theme.on(&format!("hb{value}"));
        theme.ask(
            &format!("timeout-{}", id_of(value)),
            named(41)
                .register()
                .with("heartbeatTimeoutMillis", value)
                .body(body.as_str()),
        );
    }
}

/// What a registration changes in what was there.
pub(super) fn updates() -> Theme {
    let mut theme = Theme::new("update");
    data_versions(&mut theme);
    slices(&mut theme);
    addresses(&mut theme);
    state_versions(&mut theme);
    names(&mut theme);
    theme
}

fn data_versions(theme: &mut Theme) {
    let broker = broker("upd", "upd-a", 0, "10.2.0.1:10911");
    let register = |body: String| broker.register().body(body);
    theme
        .on("a")
        .ask("full", register(topics(1, &["Upd1", "Upd2"]).body()));
    theme.ask("single-after-full", register(topics(2, &["Upd3"]).body()));
    theme.ask("single-is-added", route("Upd3"));
    theme.ask("others-stay", route("Upd1"));
    let changed = topics(2, &[])
        .add("Upd1", 8, 8, 6, 0)
        .add("Upd4", 2, 2, 6, 0);
    theme.ask("changed-under-equal-version", register(changed.body()));
    theme.ask("change-is-ignored", route("Upd1"));
    theme.ask("addition-is-taken", route("Upd4"));
    theme.ask(
        "changed-under-new-version",
        register(topics(3, &[]).add("Upd1", 8, 7, 4, 2).body()),
    );
    theme.ask("change-is-taken", route("Upd1"));
    theme.ask("unlisted-stays", route("Upd2"));
    theme.ask(
        "odd-numbers",
        register(
            topics(4, &[])
                .add("Upd1", -1, 0, 1000, -7)
                .add("Upd2", i32::MAX, i32::MIN, 0, 3)
                .body(),
        ),
    );
    theme.ask("odd-numbers-shown", route("Upd1"));
    theme.ask("extreme-numbers-shown", route("Upd2"));
    theme.ask("no-body", broker.register());
    theme.ask("no-body-keeps-topics", route("Upd1"));
    theme.ask(
        "older-version",
        register(topics(1, &[]).add("Upd1", 5, 5, 6, 0).body()),
    );
    theme.ask("older-version-is-taken", route("Upd1"));
    theme.ask("empty-table", register(topics(9, &[]).body()));
    theme.ask("empty-table-keeps-topics", route("Upd1"));
    theme.ask(
        "version-query",
        broker.query_version(&super::build::data_version(9)),
    );
    theme.ask(
        "filter-servers",
        register(
            topics(10, &["Upd1"])
                .filter_servers("[\"10.2.0.1:9001\",\"10.2.0.1:9000\"]")
                .body(),
        ),
    );
    theme.ask("filter-servers-shown", route("Upd1"));
    theme.ask("filter-servers-shown-plain", route("Upd1").version(399));
    theme.ask(
        "filter-servers-kept-by-old-body",
        broker
            .register()
            .body(topics(10, &["Upd1"]).wrapper())
            .version(36),
    );
    theme.ask("filter-servers-kept", route("Upd1"));
    theme.ask(
        "filter-servers-emptied",
        register(topics(10, &["Upd1"]).body()),
    );
    theme.ask("filter-servers-gone", route("Upd1"));
}

/// A broker with split registration sends its table in slices, all under one data version.
fn slices(theme: &mut Theme) {
    let broker = broker("upd", "upd-slices", 0, "10.2.3.1:10911");
    let register = |counter: u32, first: &str, second: &str, queues: i32| {
        let table = topics(counter, &[])
            .add(first, queues, queues, 6, 0)
            .add(second, queues, queues, 6, 0);
        broker.register().body(table.body())
    };
    theme
        .on("slices")
        .ask("slice-1", register(1, "UpdS1", "UpdS2", 4));
    theme.ask("slice-2", register(1, "UpdS3", "UpdS4", 4));
    theme.ask("changed-slice-1", register(2, "UpdS1", "UpdS2", 8));
    theme.ask("changed-slice-2", register(2, "UpdS3", "UpdS4", 8));
    theme.ask("changed-slice-1-routed", route("UpdS1"));
    theme.ask("changed-slice-2-routed", route("UpdS3"));
    theme.ask("wipe-slices", wipe("upd-slices"));
    theme.ask("equal-slice-1", register(2, "UpdS1", "UpdS2", 8));
    theme.ask("equal-slice-1-stays-wiped", route("UpdS1"));
    theme.ask("wider-slice-1", register(2, "UpdS1", "UpdS2", 9));
    theme.ask("wider-slice-1-routed", route("UpdS1"));
}

fn addresses(theme: &mut Theme) {
    let body = topics(1, &["UpdAddr", "UpdAddr2"]).body();
    let first = broker("upd", "upd-addr", 0, "10.2.1.1:10911");
    let second = broker("upd", "upd-addr", 1, "10.2.1.2:10911");
    theme
        .on("addr1")
        .ask("master-comes", first.register().body(body.as_str()));
    theme
        .on("addr2")
        .ask("slave-comes", second.register().body(body.as_str()));
    theme.ask(
        "slave-becomes-master",
        second.as_id(0).register().body(body.as_str()),
    );
    theme.ask("old-master-is-gone", members("upd", "upd-addr"));
    theme.on("addr1").ask(
        "old-master-becomes-slave",
        first.as_id(1).register().body(body.as_str()),
    );
    theme.ask("both-are-members", members("upd", "upd-addr"));
    let third = broker("upd", "upd-addr", 1, "10.2.1.3:10911");
    theme.on("addr3").ask(
        "another-address-takes-the-id",
        third.register().body(body.as_str()),
    );
    theme.ask("the-id-is-taken", members("upd", "upd-addr"));
    theme.ask(
        "the-replaced-is-still-live",
        first.as_id(1).query_version(&super::build::data_version(1)),
    );
    theme.ask("routed-strict", route("UpdAddr"));
    theme.ask("routed-plain", route("UpdAddr").version(399));
}

fn state_versions(theme: &mut Theme) {
    let at = |state: i64| {
        topics(1, &["UpdState", "UpdState2"])
            .under(&state_version(1, state))
            .body()
    };
    let first = broker("upd", "upd-state", 0, "10.2.2.1:10911");
    let second = broker("upd", "upd-state", 0, "10.2.2.2:10911");
    theme
        .on("state1")
        .ask("epoch-5", first.register().body(at(5)));
    theme
        .on("state2")
        .ask("epoch-4-comes", second.register().body(at(4)));
    theme.ask("epoch-5-stays", members("upd", "upd-state"));
    theme.ask(
        "epoch-4-is-not-live",
        second.query_version(&state_version(1, 4)),
    );
    theme.ask("epoch-5-comes", second.register().body(at(5)));
    theme.ask("equal-epoch-replaces", members("upd", "upd-state"));
    theme
        .on("state1")
        .ask("epoch-6-comes", first.register().body(at(6)));
    theme.ask("higher-epoch-replaces", members("upd", "upd-state"));
    theme.ask("own-lower-epoch", first.register().body(at(1)));
    theme.ask(
        "own-lower-epoch-is-stored",
        first.query_version(&state_version(1, 1)),
    );
    theme.ask("epoch-over-binary", first.register().body(at(7)).binary());
}

/// Names are opaque texts; the two encodings of a route differ in them.
fn names(theme: &mut Theme) {
    let odd = broker("C/1", "broker-中\u{7f}<'&\"\\\t\u{1}\u{2028}😀", 0, "h/x:1");
    let slave = broker("C/1", "broker-中\u{7f}<'&\"\\\t\u{1}\u{2028}😀", 10, "b:中");
    let table = topics(1, &["TopicB_é中😀", "%RETRY%group", "a b|c", "x/y"]);
    theme.on("odd1").ask(
        "odd-names",
        odd.register().ext("__ZONE_NAME", "z/1").body(table.body()),
    );
    theme.on("odd2").ask(
        "odd-names-slave",
        slave
            .register()
            .ext("__ZONE_NAME", "z/1")
            .body(table.body()),
    );
    for (id, topic) in [
        ("unicode", "TopicB_é中😀"),
        ("retry", "%RETRY%group"),
        ("blank", "a b|c"),
        ("slash", "x/y"),
    ] {
        theme.ask(&format!("{id}-strict"), route(topic));
        theme.ask(&format!("{id}-plain"), route(topic).version(399));
    }
    theme.ask(
        "odd-names-members",
        members("C/1", "broker-中\u{7f}<'&\"\\\t\u{1}\u{2028}😀"),
    );
    theme.ask("odd-names-clusters", clusters());
    let long = "n".repeat(400);
    let long_broker = broker(&long, &long, 0, &format!("{long}:1"));
    theme.on("long").ask(
        "long-names",
        long_broker
            .register()
            .body(topics(1, &[&long, "UpdLong"]).body()),
    );
    theme.ask("long-names-shown", route(&long));
}
