//! Bodies of REGISTER_BROKER (103): plain, compressed, odd and hostile.

use super::Theme;
use super::build::{
    Broker, broker, count, data_version, deflate, gzip, item, route, topics, zlib, zlib_at,
};
use crate::frame::Frame;

pub(super) fn theme() -> Theme {
    let mut theme = Theme::new("body");
    plain(&mut theme);
    plain_members(&mut theme);
    not_json(&mut theme);
    compressed(&mut theme);
    compressed_topics(&mut theme);
    compressed_broken(&mut theme);
    theme
}

fn sender() -> Broker {
    broker("body", "body-a", 0, "10.3.0.1:10911")
}

/// Registers with a body, then asks for the route of topic `T-<id>`, which the body should have brought.
fn send(theme: &mut Theme, id: &str, frame: Frame) {
    theme.on("a").ask(id, frame);
    theme.ask(&format!("{id}-routed"), route(&format!("T-{id}")));
}

fn plain_body(theme: &mut Theme, id: &str, body: &str) {
    send(theme, id, sender().register().body(body));
}

/// A body whose topic table is the given text.
fn with_table(table: &str) -> String {
    format!(
        "{{\"filterServerList\":[],\"topicConfigSerializeWrapper\":{{\"dataVersion\":{},\"topicConfigTable\":{table}}}}}",
        data_version(1)
    )
}

/// The table's entry for `T-<id>`.
fn entry(id: &str) -> String {
    format!(
        "\"T-{id}\":{{\"perm\":6,\"readQueueNums\":4,\"topicName\":\"T-{id}\",\"writeQueueNums\":4}}"
    )
}

fn plain(theme: &mut Theme) {
    // The broker is there before odd bodies come: a first registration of one topic alone would be refused.
    theme.on("a").ask(
        "first",
        sender()
            .register()
            .body(topics(1, &["T-first", "T-second"]).body()),
    );
    theme.ask("first-routed", route("T-first"));
    let java = format!(
        "{{\"attributes\":{{\"+message.type\":\"NORMAL\"}},\"order\":false,\"perm\":6,\"readQueueNums\":8,\"topicFilterType\":\"SINGLE_TAG\",\"topicName\":\"T-{}\",\"topicSysFlag\":0,\"writeQueueNums\":8}}",
        "java"
    );
    plain_body(
        theme,
        "java",
        &with_table(&format!("{{\"T-java\":{java}}}")),
    );
    plain_body(
        theme,
        "defaults",
        &with_table("{\"T-defaults\":{\"topicName\":\"T-defaults\"}}"),
    );
    plain_body(
        theme,
        "numbers-as-text",
        &with_table(
            "{\"T-numbers-as-text\":{\"perm\":\"4\",\"readQueueNums\":\"3\",\"topicName\":\"T-numbers-as-text\",\"writeQueueNums\":\"2\"}}",
        ),
    );
    plain_body(
        theme,
        "null-numbers",
        &with_table(
            "{\"T-null-numbers\":{\"perm\":null,\"readQueueNums\":null,\"topicName\":\"T-null-numbers\",\"writeQueueNums\":null}}",
        ),
    );
    plain_body(
        theme,
        "decimal-numbers",
        &with_table(
            "{\"T-decimal-numbers\":{\"perm\":6.0,\"readQueueNums\":3.7,\"topicName\":\"T-decimal-numbers\"}}",
        ),
    );
    plain_body(
        theme,
        "name-is-not-key",
        &with_table("{\"T-key\":{\"topicName\":\"T-name-is-not-key\"}}"),
    );
    plain_body(
        theme,
        "no-name",
        &with_table(&format!("{{\"T-x\":{{\"perm\":6}},{}}}", entry("no-name"))),
    );
    plain_body(
        theme,
        "null-topic",
        &with_table(&format!("{{\"T-x\":null,{}}}", entry("null-topic"))),
    );
    plain_body(
        theme,
        "unknown-filter-type",
        &with_table(
            "{\"T-unknown-filter-type\":{\"topicFilterType\":\"ODD\",\"topicName\":\"T-unknown-filter-type\"}}",
        ),
    );
    plain_body(
        theme,
        "multi-tag",
        &with_table(
            "{\"T-multi-tag\":{\"order\":true,\"topicFilterType\":\"MULTI_TAG\",\"topicName\":\"T-multi-tag\"}}",
        ),
    );
    plain_body(theme, "unquoted-current-ids", &topics(2, &["T-unquoted-current-ids"]).mapping("BodyStatic", "{\"bname\":\"body-a\",\"currIdMap\":{0:0,1:1,10:2},\"dirty\":false,\"epoch\":1,\"scope\":\"__global__\",\"topic\":\"BodyStatic\",\"totalQueues\":4}").body());
}

fn plain_members(theme: &mut Theme) {
    let list = "\"filterServerList\":[]";
    let table = |id: &str| format!("\"topicConfigTable\":{{{}}}", entry(id));
    let wrap = |inner: &str| format!("{{{list},\"topicConfigSerializeWrapper\":{{{inner}}}}}");
    plain_body(theme, "no-data-version", &wrap(&table("no-data-version")));
    plain_body(
        theme,
        "null-data-version",
        &wrap(&format!(
            "\"dataVersion\":null,{}",
            table("null-data-version")
        )),
    );
    plain_body(
        theme,
        "data-version-of-4.9",
        &wrap(&format!(
            "\"dataVersion\":{{\"counter\":7,\"timestamp\":5}},{}",
            table("data-version-of-4.9")
        )),
    );
    plain_body(
        theme,
        "data-version-as-text",
        &wrap(&format!(
            "\"dataVersion\":{{\"counter\":\"8\",\"stateVersion\":\"0\",\"timestamp\":\"5\"}},{}",
            table("data-version-as-text")
        )),
    );
    plain_body(
        theme,
        "empty-data-version",
        &wrap(&format!(
            "\"dataVersion\":{{}},{}",
            table("empty-data-version")
        )),
    );
    plain_body(
        theme,
        "data-version-text",
        &wrap(&format!(
            "\"dataVersion\":\"x\",{}",
            table("data-version-text")
        )),
    );
    plain_body(
        theme,
        "no-table",
        &wrap(&format!("\"dataVersion\":{}", data_version(1))),
    );
    plain_body(
        theme,
        "null-table",
        &wrap(&format!(
            "\"dataVersion\":{},\"topicConfigTable\":null",
            data_version(1)
        )),
    );
    plain_body(
        theme,
        "list-table",
        &wrap(&format!(
            "\"dataVersion\":{},\"topicConfigTable\":[]",
            data_version(1)
        )),
    );
    plain_body(theme, "no-wrapper", &format!("{{{list}}}"));
    plain_body(
        theme,
        "null-wrapper",
        &format!("{{{list},\"topicConfigSerializeWrapper\":null}}"),
    );
    plain_body(
        theme,
        "no-filter-servers",
        &with_table(&format!("{{{}}}", entry("no-filter-servers"))).replace(list, "\"x\":1"),
    );
    plain_body(
        theme,
        "null-filter-servers",
        &with_table(&format!("{{{}}}", entry("null-filter-servers")))
            .replace(list, "\"filterServerList\":null"),
    );
    plain_body(
        theme,
        "null-filter-server",
        &with_table(&format!("{{{}}}", entry("null-filter-server")))
            .replace(list, "\"filterServerList\":[null,\"f:1\"]"),
    );
    plain_body(
        theme,
        "filter-servers-text",
        &with_table(&format!("{{{}}}", entry("filter-servers-text")))
            .replace(list, "\"filterServerList\":\"f:1\""),
    );
    plain_body(
        theme,
        "filter-servers-away",
        &with_table(&format!("{{{}}}", entry("filter-servers-away"))),
    );
    plain_body(
        theme,
        "unknown-members",
        &with_table(&format!("{{{}}}", entry("unknown-members"))).replacen(
            '{',
            "{\"odd\":{\"x\":[1]},",
            1,
        ),
    );
    plain_body(
        theme,
        "blanks",
        &with_table(&format!("{{ {} }}", entry("blanks").replace(':', " :\n\t"))),
    );
    plain_body(
        theme,
        "single-quotes",
        &with_table(&format!("{{{}}}", entry("single-quotes"))).replace('"', "'"),
    );
    plain_body(
        theme,
        "upper-case-keys",
        &with_table(&format!("{{{}}}", entry("upper-case-keys")))
            .replace("topicConfigTable", "TopicConfigTable"),
    );
    plain_body(
        theme,
        "at-type",
        &with_table(&format!("{{{}}}", entry("at-type"))).replacen(
            '{',
            "{\"@type\":\"java.net.Inet4Address\",\"val\":\"x\",",
            1,
        ),
    );
    plain_body(
        theme,
        "byte-order-mark",
        &format!(
            "\u{feff}{}",
            with_table(&format!("{{{}}}", entry("byte-order-mark")))
        ),
    );
    plain_body(
        theme,
        "trailing-newline",
        &format!(
            "{}\n",
            with_table(&format!("{{{}}}", entry("trailing-newline")))
        ),
    );
    plain_body(
        theme,
        "trailing-text",
        &format!(
            "{}x",
            with_table(&format!("{{{}}}", entry("trailing-text")))
        ),
    );
}

fn not_json(theme: &mut Theme) {
    plain_body(theme, "empty-object", "{}");
    plain_body(theme, "null", "null");
    plain_body(theme, "list", "[]");
    plain_body(theme, "number", "5");
    plain_body(theme, "text", "hello");
    plain_body(theme, "string", "\"hello\"");
    plain_body(theme, "cut", &topics(1, &["T-cut"]).body()[..60]);
    send(
        theme,
        "invalid-utf8",
        sender()
            .register()
            .body(vec![b'{', b'"', 0xFF, b'"', b':', b'1', b'}']),
    );
    send(theme, "zeros", sender().register().body(vec![0; 32]));
    send(
        theme,
        "null-wrapper-version-36",
        sender().register().body("null").version(36),
    );
    send(
        theme,
        "text-version-36",
        sender().register().body("hello").version(36),
    );
    let deep = format!("{}{}", "[".repeat(2000), "]".repeat(2000));
    plain_body(
        theme,
        "2000-deep",
        &with_table(&format!("{{{}}}", entry("2000-deep"))).replacen(
            '{',
            &format!("{{\"odd\":{deep},"),
            1,
        ),
    );
    let many: Vec<String> = (0..3000).map(|number| format!("many-{number}")).collect();
    let names: Vec<&str> = many
        .iter()
        .map(String::as_str)
        .chain(["T-3000-topics"])
        .collect();
    theme.on("a").ask(
        "3000-topics",
        sender()
            .register()
            .body(zlib(&topics(50, &names).items()))
            .with("compressed", "true"),
    );
    theme.ask("3000-topics-routed", route("T-3000-topics"));
}

fn compress(items: &[u8]) -> Frame {
    sender()
        .register()
        .with("compressed", "true")
        .body(zlib(items))
}

fn compressed(theme: &mut Theme) {
    let table = |id: &str| topics(100, &[&format!("T-{id}"), "T-second"]);
    send(theme, "zlib", compress(&table("zlib").items()));
    send(
        theme,
        "zlib-of-4.9",
        compress(&table("zlib-of-4.9").items_without_mappings()).version(399),
    );
    for version in [37, 317, 399, 401, 412] {
        let id = format!("zlib-without-mappings-version-{version}");
        send(
            theme,
            &id,
            compress(&table(&id).items_without_mappings()).version(version),
        );
    }
    for version in [413, 479, 10_000] {
        let id = format!("zlib-without-mappings-version-{version}");
        send(
            theme,
            &id,
            compress(&table(&id).items_without_mappings()).version(version),
        );
        let id = format!("zlib-version-{version}");
        send(theme, &id, compress(&table(&id).items()).version(version));
    }
    send(
        theme,
        "zlib-version-36",
        compress(&table("zlib-version-36").items()).version(36),
    );
    send(
        theme,
        "zlib-with-mappings-version-399",
        compress(&table("zlib-with-mappings-version-399").items()).version(399),
    );
    send(
        theme,
        "zlib-upper-case-true",
        compress(&table("zlib-upper-case-true").items()).with("compressed", "TRUE"),
    );
    for level in [0, 1, 6] {
        let id = format!("zlib-level-{level}");
        send(
            theme,
            &id,
            compress(&[]).body(zlib_at(&table(&id).items(), level)),
        );
    }
    send(
        theme,
        "zlib-binary-header",
        compress(&table("zlib-binary-header").items()).binary(),
    );
    send(
        theme,
        "zlib-mislabelled",
        compress(&table("zlib-mislabelled").items()).with("compressed", "false"),
    );
    send(
        theme,
        "zlib-of-json-mislabelled",
        sender()
            .register()
            .body(zlib(table("zlib-of-json-mislabelled").body().as_bytes())),
    );
    send(
        theme,
        "json-mislabelled",
        compress(&[]).body(table("json-mislabelled").body()),
    );
    let mapping = "{\"bname\":\"body-a\",\"currIdMap\":{0:0,1:1},\"dirty\":false,\"epoch\":9007199254740993,\"scope\":\"__global__\",\"topic\":\"T-zlib-mapping\",\"totalQueues\":4}";
    send(
        theme,
        "zlib-mapping",
        compress(
            &topics(101, &["T-zlib-mapping", "T-second"])
                .mapping("T-zlib-mapping", mapping)
                .items(),
        ),
    );
    send(
        theme,
        "zlib-filter-servers",
        compress(
            &topics(102, &["T-zlib-filter-servers"])
                .filter_servers("[\"f:1\"]")
                .items(),
        ),
    );
    send(
        theme,
        "zlib-filter-servers-away",
        compress(&topics(103, &["T-zlib-filter-servers-away"]).items()),
    );
    send(theme, "zlib-no-topics", compress(&topics(104, &[]).items()));
    send(
        theme,
        "zlib-empty-body",
        sender().register().with("compressed", "true"),
    );
}

/// A compressed body with the given topic lines.
fn with_lines(lines: &[&str]) -> Frame {
    let mut bytes = item(&data_version(110));
    bytes.extend(count(lines.len()));
    for line in lines {
        bytes.extend(item(line));
    }
    bytes.extend(item("[]"));
    bytes.extend(count(0));
    compress(&bytes)
}

fn compressed_topics(theme: &mut Theme) {
    for (id, line) in [
        ("line-five-parts", "T-line-five-parts 8 7 6 SINGLE_TAG"),
        (
            "line-attributes",
            "T-line-attributes 8 8 6 SINGLE_TAG {\"+message.type\":\"NORMAL\"}",
        ),
        (
            "line-broken-attributes",
            "T-line-broken-attributes 8 8 6 SINGLE_TAG {x",
        ),
        (
            "line-seven-parts",
            "T-line-seven-parts 8 8 6 SINGLE_TAG {} more",
        ),
        ("line-four-parts", "T-line-four-parts 8 8 6"),
        ("line-name-alone", "T-line-name-alone"),
        ("line-empty", ""),
        ("line-two-blanks", "T-line-two-blanks  8 8 6 SINGLE_TAG"),
        (
            "line-trailing-blank",
            "T-line-trailing-blank 8 8 6 SINGLE_TAG ",
        ),
        ("line-multi-tag", "T-line-multi-tag 8 8 6 MULTI_TAG"),
        ("line-odd-tag", "T-line-odd-tag 8 8 6 ODD_TAG"),
        ("line-text-number", "T-line-text-number x 8 6 SINGLE_TAG"),
        (
            "line-negative-number",
            "T-line-negative-number -8 8 6 SINGLE_TAG",
        ),
        (
            "line-number-overflow",
            "T-line-number-overflow 8 99999999999 6 SINGLE_TAG",
        ),
        (
            "line-non-ascii",
            "T-line-non-ascii 8 8 6 SINGLE_TAG {\"é\":\"中\"}",
        ),
    ] {
        send(theme, id, with_lines(&[line, "T-second 4 4 6 SINGLE_TAG"]));
    }
    send(
        theme,
        "line-twice",
        with_lines(&[
            "T-line-twice 1 1 6 SINGLE_TAG",
            "T-line-twice 2 2 6 SINGLE_TAG",
        ]),
    );
    send(
        theme,
        "line-zero-queues",
        with_lines(&[
            "T-line-zero-queues 0 0 0 SINGLE_TAG",
            "T-second 4 4 6 SINGLE_TAG",
        ]),
    );
}

fn compressed_broken(theme: &mut Theme) {
    let table = |id: &str| topics(120, &[&format!("T-{id}"), "T-second"]);
    let items = |id: &str| table(id).items();
    let raw = |bytes: Vec<u8>| compress(&[]).body(bytes);
    send(theme, "raw-deflate", raw(deflate(&items("raw-deflate"))));
    send(theme, "gzip", raw(gzip(&items("gzip"))));
    send(
        theme,
        "bytes-after-stream",
        raw([zlib(&items("bytes-after-stream")), b"tail".to_vec()].concat()),
    );
    send(
        theme,
        "bytes-after-items",
        compress(&[items("bytes-after-items"), b"tail".to_vec()].concat()),
    );
    let mut no_checksum = zlib(&items("no-checksum"));
    no_checksum.truncate(no_checksum.len() - 4);
    send(theme, "no-checksum", raw(no_checksum));
    let mut wrong = zlib(&items("wrong-checksum"));
    *wrong.last_mut().expect("not empty") ^= 1;
    send(theme, "wrong-checksum", raw(wrong));
    let whole = zlib(&items("cut-stream"));
    send(theme, "cut-stream", raw(whole[..whole.len() / 2].to_vec()));
    send(theme, "header-alone", raw(vec![0x78, 0xDA]));
    send(theme, "one-byte", raw(vec![0x78]));
    send(
        theme,
        "random-bytes",
        raw((0..64).map(|number: u8| number.wrapping_mul(37)).collect()),
    );
    send(theme, "empty-stream", compress(&[]));
    let long = items("cut-items");
    for length in [2, 4, 30, 60, 64, 80] {
        send(
            theme,
            &format!("cut-items-at-{length}"),
            compress(&long[..length]),
        );
    }
    let version = item(&data_version(130));
    let lengths: [(&str, i32); 3] = [("negative", -1), ("least", i32::MIN), ("too-large", 1000)];
    for (name, length) in lengths {
        send(
            theme,
            &format!("version-length-{name}"),
            compress(&[&length.to_be_bytes()[..], &long[4..]].concat()),
        );
        let topic_count = [&version[..], &length.to_be_bytes(), &item("[]"), &count(0)].concat();
        send(
            theme,
            &format!("topic-count-{name}"),
            compress(&topic_count),
        );
        let topic_length = [
            &version[..],
            &count(1),
            &length.to_be_bytes(),
            b"T 1 1 6 SINGLE_TAG",
            &item("[]"),
            &count(0),
        ]
        .concat();
        send(
            theme,
            &format!("topic-length-{name}"),
            compress(&topic_length),
        );
        let list_length = [
            &version[..],
            &count(0),
            &length.to_be_bytes(),
            b"[]",
            &count(0),
        ]
        .concat();
        send(
            theme,
            &format!("filter-length-{name}"),
            compress(&list_length),
        );
        let mapping_count = [&version[..], &count(0), &item("[]"), &length.to_be_bytes()].concat();
        send(
            theme,
            &format!("mapping-count-{name}"),
            compress(&mapping_count),
        );
    }
    let bad_version = [item("{x"), count(0).to_vec(), item("[]"), count(0).to_vec()].concat();
    send(theme, "version-not-json", compress(&bad_version));
    let bad_list = [
        version.clone(),
        count(0).to_vec(),
        item("[x"),
        count(0).to_vec(),
    ]
    .concat();
    send(theme, "filter-servers-not-json", compress(&bad_list));
    let bad_mapping = [
        version.clone(),
        count(0).to_vec(),
        item("[]"),
        count(1).to_vec(),
        item("{x"),
    ]
    .concat();
    send(theme, "mapping-not-json", compress(&bad_mapping));
    let empty_version = [item(""), count(0).to_vec(), item("[]"), count(0).to_vec()].concat();
    send(theme, "version-empty", compress(&empty_version));
    theme.on("a").ask(
        "still-usable",
        sender()
            .register()
            .body(topics(200, &["T-end", "T-second"]).body()),
    );
    theme.ask("still-usable-routed", route("T-end"));
}
