//! Plain JSON bodies of REGISTER_BROKER (103): as brokers write them, odd, and no JSON at all.

use super::Theme;
use super::build::{Broker, broker, data_version, route, topics, zlib};
use crate::frame::Frame;

/// Topic tables; `NAME` stands for `T-<id>`, `ENTRY` for a topic of that name.
const TABLES: [(&str, &str); 18] = [
    (
        "java",
        r#"{"NAME":{"attributes":{"+message.type":"NORMAL"},"order":false,"perm":6,"readQueueNums":8,"topicFilterType":"SINGLE_TAG","topicName":"NAME","topicSysFlag":0,"writeQueueNums":8}}"#,
    ),
    ("defaults", r#"{"NAME":{"topicName":"NAME"}}"#),
    (
        "numbers-as-text",
        r#"{"NAME":{"perm":"4","readQueueNums":"3","topicName":"NAME","writeQueueNums":"2"}}"#,
    ),
    (
        "null-numbers",
        r#"{"NAME":{"perm":null,"readQueueNums":null,"topicName":"NAME","writeQueueNums":null}}"#,
    ),
    (
        "decimal-numbers",
        r#"{"NAME":{"perm":6.0,"readQueueNums":3.7,"topicName":"NAME"}}"#,
    ),
    ("name-is-not-key", r#"{"T-key":{"topicName":"NAME"}}"#),
    ("no-name", r#"{"T-x":{"perm":6},ENTRY}"#),
    ("null-topic", r#"{"T-x":null,ENTRY}"#),
    (
        "unknown-filter-type",
        r#"{"NAME":{"topicFilterType":"ODD","topicName":"NAME"}}"#,
    ),
    (
        "multi-tag",
        r#"{"NAME":{"order":true,"topicFilterType":"MULTI_TAG","topicName":"NAME"}}"#,
    ),
    ("empty-name", r#"{"":{"topicName":""},ENTRY}"#),
    ("number-name", r#"{"7":{"topicName":7},ENTRY}"#),
    (
        "text-order",
        r#"{"NAME":{"order":"yes","topicName":"NAME"}}"#,
    ),
    (
        "null-attributes",
        r#"{"NAME":{"attributes":null,"topicName":"NAME"}}"#,
    ),
    (
        "text-attributes",
        r#"{"NAME":{"attributes":"x","topicName":"NAME"}}"#,
    ),
    (
        "boolean-queues",
        r#"{"NAME":{"readQueueNums":true,"topicName":"NAME"}}"#,
    ),
    (
        "text-queues",
        r#"{"NAME":{"readQueueNums":"many","topicName":"NAME"}}"#,
    ),
    (
        "queues-above-int",
        r#"{"NAME":{"readQueueNums":4294967299,"topicName":"NAME"}}"#,
    ),
];

/// Wrappers; `TABLE` stands for a table of the topic `T-<id>`, `VERSION` for a data version.
const WRAPPERS: [(&str, &str); 10] = [
    ("no-data-version", "{TABLE}"),
    ("null-data-version", r#"{"dataVersion":null,TABLE}"#),
    (
        "data-version-of-4.9",
        r#"{"dataVersion":{"counter":7,"timestamp":5},TABLE}"#,
    ),
    (
        "data-version-as-text",
        r#"{"dataVersion":{"counter":"8","stateVersion":"0","timestamp":"5"},TABLE}"#,
    ),
    ("empty-data-version", r#"{"dataVersion":{},TABLE}"#),
    ("data-version-text", r#"{"dataVersion":"x",TABLE}"#),
    ("no-table", r#"{"dataVersion":VERSION}"#),
    (
        "null-table",
        r#"{"dataVersion":VERSION,"topicConfigTable":null}"#,
    ),
    (
        "list-table",
        r#"{"dataVersion":VERSION,"topicConfigTable":[]}"#,
    ),
    ("null-wrapper", "null"),
];

/// Whole bodies made of a good one: what is replaced by what.
const REPLACED: [(&str, &str, &str); 8] = [
    ("no-filter-servers", r#""filterServerList":[]"#, r#""x":1"#),
    (
        "null-filter-servers",
        r#""filterServerList":[]"#,
        r#""filterServerList":null"#,
    ),
    (
        "null-filter-server",
        r#""filterServerList":[]"#,
        r#""filterServerList":[null,"f:1"]"#,
    ),
    (
        "filter-servers-text",
        r#""filterServerList":[]"#,
        r#""filterServerList":"f:1""#,
    ),
    ("filter-servers-away", "nothing", ""),
    ("blanks", ":", " :\n\t"),
    ("single-quotes", "\"", "'"),
    ("upper-case-keys", "topicConfigTable", "TopicConfigTable"),
];

/// Bodies that are no register body.
const OTHERS: [(&str, &str); 8] = [
    ("no-wrapper", r#"{"filterServerList":[]}"#),
    ("empty-object", "{}"),
    ("null", "null"),
    ("list", "[]"),
    ("number", "5"),
    ("text", "hello"),
    ("string", "\"hello\""),
    (
        "cut",
        r#"{"filterServerList":[],"topicConfigSerializeWrapper":{"dataV"#,
    ),
];

pub(super) fn theme() -> Theme {
    let mut theme = Theme::new("body");
    // The broker is there before odd bodies come: a first registration of one topic alone would be refused.
    send(
        &mut theme,
        "first",
        sender()
            .register()
            .body(topics(1, &["T-first", "T-second"]).body()),
    );
    for (id, table) in TABLES {
        let table = table
            .replace("ENTRY", &entry(id))
            .replace("NAME", &format!("T-{id}"));
        plain(&mut theme, id, &with_table(&table));
    }
    for (id, wrapper) in WRAPPERS {
        let table = format!("\"topicConfigTable\":{{{}}}", entry(id));
        let wrapper = wrapper
            .replace("TABLE", &table)
            .replace("VERSION", &data_version(1));
        let body = format!("{{\"filterServerList\":[],\"topicConfigSerializeWrapper\":{wrapper}}}");
        plain(&mut theme, id, &body);
    }
    for (id, from, to) in REPLACED {
        plain(&mut theme, id, &good(id).replace(from, to));
    }
    for (id, body) in OTHERS {
        plain(&mut theme, id, body);
    }
    around(&mut theme);
    not_json(&mut theme);
    theme
}

/// The broker all bodies come from.
pub(super) fn sender() -> Broker {
    broker("body", "body-a", 0, "10.3.0.1:10911")
}

/// Registers with a body, then asks for the route of topic `T-<id>`, which the body should have brought.
pub(super) fn send(theme: &mut Theme, id: &str, frame: Frame) {
    theme.on("a").ask(id, frame);
    theme.ask(&format!("{id}-routed"), route(&format!("T-{id}")));
}

fn plain(theme: &mut Theme, id: &str, body: &str) {
    send(theme, id, sender().register().body(body));
}

/// A body whose topic table is the given text.
fn with_table(table: &str) -> String {
    let version = data_version(1);
    format!(
        "{{\"filterServerList\":[],\"topicConfigSerializeWrapper\":{{\"dataVersion\":{version},\"topicConfigTable\":{table}}}}}"
    )
}

/// The table's entry for `T-<id>`.
fn entry(id: &str) -> String {
    let name = format!("T-{id}");
    format!(
        "\"{name}\":{{\"perm\":6,\"readQueueNums\":4,\"topicName\":\"{name}\",\"writeQueueNums\":4}}"
    )
}

/// A body that brings `T-<id>`.
fn good(id: &str) -> String {
    with_table(&format!("{{{}}}", entry(id)))
}

/// Good bodies with something before, after or between.
fn around(theme: &mut Theme) {
    let begun = |id: &str, start: &str| good(id).replacen('{', start, 1);
    plain(
        theme,
        "unknown-members",
        &begun("unknown-members", r#"{"odd":{"x":[1]},"#),
    );
    let at_type = r#"{"@type":"java.net.Inet4Address","val":"x","#;
    plain(theme, "at-type", &begun("at-type", at_type));
    let deep = format!("{{\"odd\":{}{},", "[".repeat(2000), "]".repeat(2000));
    plain(theme, "2000-deep", &begun("2000-deep", &deep));
    plain(
        theme,
        "byte-order-mark",
        &format!("\u{feff}{}", good("byte-order-mark")),
    );
    plain(
        theme,
        "trailing-newline",
        &format!("{}\n", good("trailing-newline")),
    );
    plain(
        theme,
        "trailing-text",
        &format!("{}x", good("trailing-text")),
    );
    let mapping = r#"{"bname":"body-a","currIdMap":{0:0,1:1,10:2},"dirty":false,"epoch":1,"scope":"__global__","topic":"BodyStatic","totalQueues":4}"#;
    let unquoted = topics(2, &["T-unquoted-current-ids"]).mapping("BodyStatic", mapping);
    plain(theme, "unquoted-current-ids", &unquoted.body());
}

fn not_json(theme: &mut Theme) {
    let invalid = vec![b'{', b'"', 0xFF, b'"', b':', b'1', b'}'];
    send(theme, "invalid-utf8", sender().register().body(invalid));
    send(theme, "zeros", sender().register().body(vec![0; 32]));
    send(
        theme,
        "null-version-36",
        sender().register().body("null").version(36),
    );
    send(
        theme,
        "text-version-36",
        sender().register().body("hello").version(36),
    );
    let many: Vec<String> = (0..3000).map(|number| format!("many-{number}")).collect();
    let names: Vec<&str> = many
        .iter()
        .map(String::as_str)
        .chain(["T-3000-topics"])
        .collect();
    let items = zlib(&topics(50, &names).items());
    send(
        theme,
        "3000-topics",
        sender().register().body(items).with("compressed", "true"),
    );
}
