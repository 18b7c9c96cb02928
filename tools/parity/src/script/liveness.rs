//! What keeps a broker, and what takes it away: connections, heartbeats, timeouts.

use std::time::Duration;

use super::build::{
    Broker, broker, data_version, id_of, members, route, set, state_version, topics,
};
use super::{Theme, Wanted};
use crate::frame::Frame;

/// Timeout of the brokers that are to expire, and for how long the others are kept alive beyond it.
const TIMEOUT_MILLIS: &str = "2500";
const KEPT_FOR: Duration = Duration::from_millis(4000);

/// Registers a broker named `name` over the given connection, with topics `<name>-T` and `<name>-U`.
fn join(theme: &mut Theme, name: &str, connection: &str, number: u32) -> Broker {
    let broker = broker("lv", name, 0, &format!("10.12.0.{number}:1"));
    theme
        .on(connection)
        .ask(&format!("{name}-joins"), register(&broker, name));
    broker
}

fn register(broker: &Broker, name: &str) -> Frame {
    broker
        .register()
        .body(topics(1, &[&format!("{name}-T"), &format!("{name}-U")]).body())
}

fn routed(theme: &mut Theme, id: &str, name: &str) {
    theme.on("client").ask(id, route(&format!("{name}-T")));
}

/// Connections that close.
pub(super) fn connections() -> Theme {
    let mut theme = Theme::new("close");
    ways_to_close(&mut theme);
    second_connection(&mut theme);
    shared_connection(&mut theme);
    theme
}

fn ways_to_close(theme: &mut Theme) {
    let fin = join(theme, "fin", "fin", 1);
    theme.close("fin");
    theme.settle();
    routed(theme, "fin-is-gone", "fin");
    theme.ask("fin-has-no-members", members("lv", "fin"));
    theme.ask("fin-is-not-live", fin.query_version(&data_version(1)));
    join(theme, "rst", "rst", 2);
    theme.reset("rst");
    theme.settle();
    routed(theme, "rst-is-gone", "rst");
    join(theme, "half", "half", 3);
    theme.half_close("half");
    theme.on("half").await_close("half-closed-back");
    theme.settle();
    routed(theme, "half-is-gone", "half");
    join(theme, "rubbish", "rubbish", 4);
    theme.ask(
        "rubbish-closes",
        Frame::with_header_text("no header at all"),
    );
    theme.settle();
    routed(theme, "rubbish-is-gone", "rubbish");
    let acting = broker("lv", "group", 1, "10.12.1.2:1");
    join(theme, "group", "group", 5);
    theme
        .on("group-slave")
        .ask("group-slave-joins", register(&acting, "group"));
    theme.close("group");
    theme.settle();
    routed(theme, "group-slave-stays", "group");
}

fn second_connection(theme: &mut Theme) {
    let twice = join(theme, "twice", "first", 11);
    theme
        .on("second")
        .ask("twice-registers-again", register(&twice, "twice"));
    theme.close("first");
    theme.settle();
    routed(theme, "first-closed-stays", "twice");
    theme.close("second");
    theme.settle();
    routed(theme, "second-closed-is-gone", "twice");
    let beating = join(theme, "beating", "registered", 12);
    theme
        .on("beats")
        .ask("heartbeat-elsewhere", beating.heartbeat());
    theme.ask("query-elsewhere", beating.query_version(&data_version(1)));
    theme.close("beats");
    theme.settle();
    routed(theme, "heartbeat-connection-closed-stays", "beating");
    theme
        .on("beats")
        .ask("heartbeat-elsewhere-again", beating.heartbeat());
    theme.close("registered");
    theme.settle();
    routed(theme, "registering-connection-closed", "beating");
}

fn shared_connection(theme: &mut Theme) {
    for number in 1..=3 {
        join(theme, &format!("shared-{number}"), "shared", 20 + number);
    }
    theme.close("shared");
    theme.settle();
    for number in 1..=3 {
        routed(
            theme,
            &format!("shared-{number}-after-close"),
            &format!("shared-{number}"),
        );
    }
    let slave = broker("lv", "pair", 1, "10.12.1.9:1");
    join(theme, "pair", "pair", 30);
    theme
        .on("pair")
        .ask("pair-slave-joins", register(&slave, "pair"));
    theme.close("pair");
    theme.settle();
    routed(theme, "pair-after-close", "pair");
    theme.ask("pair-members-after-close", members("lv", "pair"));
}

/// Timeouts and what refreshes them.
pub(super) fn timeouts() -> Theme {
    let mut theme = Theme::new("timeout");
    let brokers = expiring(&mut theme);
    refreshed(&mut theme, &brokers);
    odd_timeouts(&mut theme);
    theme
}

const KINDS: [&str; 9] = [
    "none",
    "register",
    "beat",
    "beat-oneway",
    "beat-other-cluster",
    "beat-other-address",
    "query",
    "query-changed",
    "query-other-cluster",
];

/// Brokers with a short timeout, one for each way to refresh it or not.
fn expiring(theme: &mut Theme) -> Vec<Broker> {
    let mut brokers = Vec::new();
    for (number, kind) in KINDS.into_iter().enumerate() {
        let broker = broker("tm", kind, 0, &format!("10.13.0.{number}:1"));
        theme.on(kind).ask(
            &format!("{kind}-joins"),
            register(&broker, kind).with("heartbeatTimeoutMillis", TIMEOUT_MILLIS),
        );
        brokers.push(broker);
    }
    brokers
}

fn refreshed(theme: &mut Theme, brokers: &[Broker]) {
    let frames = vec![
        register(&brokers[1], "register").with("heartbeatTimeoutMillis", TIMEOUT_MILLIS),
        brokers[2].heartbeat(),
        brokers[3].heartbeat().oneway(),
        brokers[4].heartbeat().with("clusterName", "tm-other"),
        brokers[5].heartbeat().with("brokerAddr", "10.13.9.9:1"),
        brokers[6].query_version(&data_version(1)),
        brokers[7].query_version(&data_version(2)),
        brokers[8]
            .query_version(&data_version(1))
            .with("clusterName", "tm-other"),
    ];
    theme.on("beats").repeat("refreshing", KEPT_FOR, frames);
    for kind in KINDS {
        routed(theme, &format!("{kind}-then"), kind);
    }
    theme.on("none").await_close("connection-of-the-expired");
}

fn odd_timeouts(theme: &mut Theme) {
    for (number, value) in ["0", "-1", "abc", "9223372036854775807", ""]
        .into_iter()
        .enumerate()
    {
        let name = format!("odd-{}", id_of(value));
        let broker = broker("tm", &name, 0, &format!("10.13.1.{number}:1"));
        theme.on(&name).ask(
            &format!("{name}-joins"),
            register(&broker, &name).with("heartbeatTimeoutMillis", value),
        );
    }
    // A broker that expires at the next scan shows that the others had their scan too.
    let shown = broker("tm", "shown", 0, "10.13.2.1:1");
    theme.on("shown").ask(
        "shown-joins",
        register(&shown, "shown").with("heartbeatTimeoutMillis", "1"),
    );
    theme
        .on("client")
        .until("shown-expires", Wanted::Code(17), route("shown-T"));
    for value in ["0", "-1", "abc", "9223372036854775807", ""] {
        routed(
            theme,
            &format!("odd-{}-then", id_of(value)),
            &format!("odd-{}", id_of(value)),
        );
    }
}

/// The answers of 322 and 904.
pub(super) fn answers() -> Theme {
    let mut theme = Theme::new("beat");
    let broker = broker("bt", "bt-a", 0, "10.14.0.1:1");
    theme.on("m").ask(
        "master",
        broker.register().body(topics(1, &["Bt1", "Bt2"]).body()),
    );
    let query = |body: &str| broker.query_version(body);
    for (id, body) in [
        ("equal", data_version(1)),
        ("other-counter", data_version(2)),
        ("other-state", state_version(1, 1)),
        (
            "other-timestamp",
            "{\"counter\":1,\"stateVersion\":0,\"timestamp\":1}".to_owned(),
        ),
        (
            "as-text",
            "{\"counter\":\"1\",\"stateVersion\":\"0\",\"timestamp\":\"1700000000000\"}".to_owned(),
        ),
        (
            "decimal",
            "{\"counter\":1.9,\"stateVersion\":0,\"timestamp\":1700000000000}".to_owned(),
        ),
        (
            "of-4.9",
            "{\"counter\":1,\"timestamp\":1700000000000}".to_owned(),
        ),
        (
            "null-state",
            "{\"counter\":1,\"stateVersion\":null,\"timestamp\":1700000000000}".to_owned(),
        ),
        ("no-body", String::new()),
        ("empty-object", "{}".to_owned()),
        ("null", "null".to_owned()),
        ("list", "[]".to_owned()),
        ("text", "hello".to_owned()),
        ("cut", "{\"counter\":1".to_owned()),
    ] {
        theme.ask(&format!("query-{id}"), query(&body));
    }
    let equal = data_version(1);
    for version in [0, 36, 399, 10_000, -1] {
        theme.ask(
            &format!("query-version-{version}"),
            query(&equal).version(version),
        );
    }
    theme.ask("query-binary", query(&equal).binary());
    theme.ask("query-binary-changed", query(&data_version(2)).binary());
    theme.quiet("query-oneway", query(&equal).oneway());
    query_fields(&mut theme, &broker);
    beats(&mut theme, &broker);
    theme
}

fn query_fields(theme: &mut Theme, broker: &Broker) {
    let equal = data_version(1);
    let query = || broker.query_version(&equal);
    for field in ["brokerName", "brokerAddr", "clusterName", "brokerId"] {
        theme.ask(&format!("query-no-{field}"), query().without(field));
        theme.ask(&format!("query-other-{field}"), query().with(field, "7"));
        theme.ask(&format!("query-empty-{field}"), query().with(field, ""));
    }
    theme.ask("query-no-ext", query().no_ext());
    theme.ask("query-empty-ext", query().no_ext().empty_ext());
}

fn beats(theme: &mut Theme, broker: &Broker) {
    theme.ask("beat", broker.heartbeat());
    theme.ask("beat-binary", broker.heartbeat().binary());
    theme.quiet("beat-oneway", broker.heartbeat().oneway());
    theme.ask(
        "beat-with-controller-fields",
        broker
            .heartbeat()
            .ext("brokerId", "0")
            .ext("epoch", "1")
            .ext("maxOffset", "5")
            .ext("confirmOffset", "5")
            .ext("heartbeatTimeoutMills", "9")
            .ext("electionPriority", "1"),
    );
    theme.ask(
        "beat-odd-fields",
        broker.heartbeat().ext("brokerId", "x").ext("epoch", "y"),
    );
    for field in ["brokerName", "brokerAddr", "clusterName"] {
        theme.ask(
            &format!("beat-no-{field}"),
            broker.heartbeat().without(field),
        );
        theme.ask(
            &format!("beat-other-{field}"),
            broker.heartbeat().with(field, "other"),
        );
        theme.ask(
            &format!("beat-empty-{field}"),
            broker.heartbeat().with(field, ""),
        );
    }
    theme.ask("beat-no-ext", Frame::request(904));
    theme.ask("beat-empty-ext", Frame::request(904).empty_ext());
    theme.ask("beat-body-ignored", broker.heartbeat().body("odd"));
    for version in [0, 399, 10_000, -1] {
        theme.ask(
            &format!("beat-version-{version}"),
            broker.heartbeat().version(version),
        );
    }
}

/// Connections that say nothing. The last theme of its section: it changes how long connections may be idle.
pub(super) fn idle() -> Theme {
    let mut theme = Theme::new("idle");
    theme
        .on("before")
        .ask("set", set("serverChannelMaxIdleTimeSeconds", "1"));
    theme.on("fresh").await_close("silent-connection");
    join(&mut theme, "idler", "idler", 40);
    theme.on("idler").await_close("broker-connection");
    theme.settle();
    routed(&mut theme, "broker-is-gone", "idler");
    theme.on("before").ask(
        "older-connection-still-serves",
        set("serverChannelMaxIdleTimeSeconds", "120"),
    );
    theme
}
