//! UPDATE_NAMESRV_CONFIG (318), GET_NAMESRV_CONFIG (319), waiting for service, and the end of a server.

use super::build::{broker, get, route, set, topics};
use super::{Theme, Wanted};
use crate::frame::Frame;

fn show() -> Frame {
    Frame::request(319)
}

fn update(text: &str) -> Frame {
    Frame::request(318).empty_ext().body(text)
}

pub(super) fn theme() -> Theme {
    let mut theme = Theme::new("config");
    theme.ask("as-started", show());
    theme.ask("show-binary", show().binary());
    for version in [0, 399, 10_000, -1] {
        theme.ask(&format!("show-version-{version}"), show().version(version));
    }
    theme.ask("show-with-ext-and-body", show().ext("a", "b").body("c"));
    theme.quiet("show-oneway", show().oneway());
    values(&mut theme);
    syntax(&mut theme);
    black_list(&mut theme);
    line_breaks(&mut theme);
    theme.ask("at-last", show());
    theme
}

fn values(theme: &mut Theme) {
    theme.ask("no-body", Frame::request(318));
    theme.ask("empty-ext", Frame::request(318).empty_ext());
    theme.ask("blank-body", update(" \n"));
    for (id, key, value) in [
        ("int", "shutdownWaitTimeSeconds", "31"),
        ("int-text", "shutdownWaitTimeSeconds", "abc"),
        ("int-empty", "shutdownWaitTimeSeconds", ""),
        ("int-overflow", "shutdownWaitTimeSeconds", "99999999999"),
        ("int-decimal", "shutdownWaitTimeSeconds", "1.0"),
        ("int-plus", "shutdownWaitTimeSeconds", "+32"),
        ("int-negative", "shutdownWaitTimeSeconds", "-5"),
        ("int-blank-after", "shutdownWaitTimeSeconds", "33 "),
        ("long", "scanNotActiveBrokerInterval", "5001"),
        ("long-text", "scanNotActiveBrokerInterval", "x"),
        ("boolean-upper-case", "orderMessageEnable", "TRUE"),
        ("boolean-text", "orderMessageEnable", "yes"),
        ("boolean-blank-after", "orderMessageEnable", "true "),
        ("string", "productEnvName", "env-ä"),
        ("string-blanks", "productEnvName", "  a b  "),
        ("string-empty", "productEnvName", ""),
        ("string-escape", "productEnvName", "\\u4e2d\\\\x"),
        ("unknown-key", "noSuchKey", "1"),
        ("other-case", "ShutdownWaitTimeSeconds", "34"),
        ("listen-port", "listenPort", "1"),
        ("listen-port-odd", "listenPort", "-1"),
        ("bind-address", "bindAddress", "256.1.1.1"),
        ("worker-threads", "serverWorkerThreads", "-3"),
        ("class", "class", "x"),
    ] {
        theme.ask(id, set(key, value));
        theme.ask(&format!("{id}-shown"), show());
    }
    theme.ask("bind-address-back", set("bindAddress", "127.0.0.1"));
    theme.ask("binary", set("shutdownWaitTimeSeconds", "35").binary());
    theme.quiet("oneway", set("shutdownWaitTimeSeconds", "36").oneway());
    theme.ask("version-0", set("shutdownWaitTimeSeconds", "37").version(0));
    theme.ask(
        "version-negative",
        set("shutdownWaitTimeSeconds", "38").version(-1),
    );
    theme.ask("then-shown", show());
}

fn syntax(theme: &mut Theme) {
    for (id, text) in [
        (
            "two-keys",
            "shutdownWaitTimeSeconds=41\nwaitSecondsForService=46\n",
        ),
        ("no-line-end", "shutdownWaitTimeSeconds=42"),
        ("colon", "shutdownWaitTimeSeconds:43"),
        ("blank", "shutdownWaitTimeSeconds 44"),
        ("blanks-around", "  shutdownWaitTimeSeconds  =  45"),
        ("comments", "# a=b\n! c=d\nshutdownWaitTimeSeconds=46\n"),
        ("continuation", "shutdownWait\\\nTimeSeconds=4\\\n  7\n"),
        (
            "carriage-returns",
            "shutdownWaitTimeSeconds=48\r\nwaitSecondsForService=47\r\n",
        ),
        (
            "twice",
            "shutdownWaitTimeSeconds=1\nshutdownWaitTimeSeconds=49\n",
        ),
        ("escaped-key", "shutdownWaitTime\\u0053econds=50"),
        ("key-alone", "shutdownWaitTimeSeconds"),
        ("empty-key", "=5"),
        ("broken-escape", "a=\\u12"),
        (
            "broken-escape-in-known-key",
            "shutdownWaitTimeSeconds=51\nproductEnvName=\\uzzzz",
        ),
        ("json", "{\"shutdownWaitTimeSeconds\":52}"),
        ("nul", "shutdownWaitTimeSeconds=53\0"),
    ] {
        theme.ask(id, update(text));
        theme.ask(&format!("{id}-shown"), show());
    }
    theme.ask(
        "invalid-utf8",
        update("").body(b"productEnvName=a\xFFb".to_vec()),
    );
    theme.ask("invalid-utf8-shown", show());
}

fn black_list(theme: &mut Theme) {
    for key in [
        "configBlackList",
        "configStorePath",
        "kvConfigPath",
        "rocketmqHome",
    ] {
        theme.ask(&format!("black-{key}"), set(key, "/x"));
    }
    for (id, text) in [
        (
            "black-among-others",
            "shutdownWaitTimeSeconds=61\nkvConfigPath=/x\n",
        ),
        ("black-escaped", "kvConfigP\\u0061th=/x"),
        ("black-colon", "kvConfigPath:/x"),
        ("black-blank", "kvConfigPath /x"),
        ("black-leading-blanks", "   kvConfigPath=/x"),
        ("black-no-value", "kvConfigPath"),
        ("black-comment", "#kvConfigPath=/x"),
        ("black-other-case", "KvConfigPath=/x"),
    ] {
        theme.ask(id, update(text));
    }
    theme.ask("black-binary", set("kvConfigPath", "/x").binary());
    theme.quiet("black-oneway", set("kvConfigPath", "/x").oneway());
    theme.ask("black-shown", show());
}

/// A line break in a value would be another line of the file.
fn line_breaks(theme: &mut Theme) {
    for (id, text) in [
        ("line-break", "productEnvName=a\\nkvConfigPath=/y"),
        ("carriage-return", "productEnvName=a\\rkvConfigPath=/y"),
        (
            "escaped-line-break",
            "productEnvName=a\\u000akvConfigPath=/y",
        ),
        ("tab", "productEnvName=a\\tb"),
        ("control", "productEnvName=a\\u0001b"),
    ] {
        theme.ask(id, update(text));
        theme.ask(&format!("{id}-shown"), show());
        theme.ask(&format!("{id}-back"), set("productEnvName", "center"));
    }
}

/// A name server that waits before it serves routes. The first theme of its section: once a route was served, it
/// does not wait any more.
pub(super) fn waiting() -> Theme {
    let mut theme = Theme::new("wait");
    theme.on("m").ask(
        "broker",
        broker("wt", "wt-a", 0, "10.17.0.1:1")
            .register()
            .body(topics(1, &["Wt1", "Wt2"]).body()),
    );
    theme.ask("refused", route("Wt1"));
    theme.ask("refused-plain", route("Wt1").version(0));
    theme.ask("refused-binary", route("Wt1").binary());
    theme.ask("refused-unknown-topic", route("none-such"));
    theme.ask("refused-no-topic", Frame::request(105));
    theme.ask("others-are-served", Frame::request(106));
    theme.ask("wait-no-longer", set("waitSecondsForService", "0"));
    theme.ask("unknown-topic-served", route("none-such"));
    theme.ask("served", route("Wt1"));
    theme.ask("wait-again", set("waitSecondsForService", "100000"));
    theme.ask("after-waiting-again", route("Wt1"));
    theme.ask("do-not-wait", set("needWaitForService", "false"));
    theme.ask("without-waiting", route("Wt1"));
    theme
}

/// The time between SIGTERM and the end, when it is to be graceful. The only theme of its section.
pub(super) fn shutdown() -> Theme {
    let mut theme = Theme::new("shutdown");
    theme.on("a").ask("before", get("none", "k"));
    theme.ask("before-old", get("none", "k").version(399));
    theme.terminate();
    theme.until("go-away", Wanted::Code(1500), get("none", "k"));
    for version in [0, 399, 441, 442, 475, 476, 479, 10_000, -1] {
        theme.ask(
            &format!("version-{version}"),
            get("none", "k").version(version),
        );
    }
    theme.ask("no-version", get("none", "k").no_version());
    theme.ask("unknown-code", Frame::request(9999));
    theme.ask("unknown-code-old", Frame::request(9999).version(399));
    theme.ask("route", route("none-such"));
    theme.ask("binary", get("none", "k").binary());
    theme.quiet("oneway", get("none", "k").oneway().version(479));
    theme.on("fresh").ask("new-connection", get("none", "k"));
    theme.on("a").await_close("closes-in-the-end");
    theme
}
