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

/// The setting most steps change: it has no effect while the server runs.
const SHUTDOWN: &str = "shutdownWaitTimeSeconds";
const ENVIRONMENT: &str = "productEnvName";

/// Key and value, by id: values good and bad.
const VALUES: [(&str, &str, &str); 24] = [
    ("int", SHUTDOWN, "31"),
    ("int-text", SHUTDOWN, "abc"),
    ("int-empty", SHUTDOWN, ""),
    ("int-overflow", SHUTDOWN, "99999999999"),
    ("int-decimal", SHUTDOWN, "1.0"),
    ("int-plus", SHUTDOWN, "+32"),
    ("int-negative", SHUTDOWN, "-5"),
    ("int-blank-after", SHUTDOWN, "33 "),
    ("long", "scanNotActiveBrokerInterval", "5001"),
    ("long-text", "scanNotActiveBrokerInterval", "x"),
    ("long-zero", "scanNotActiveBrokerInterval", "0"),
    ("boolean-upper-case", "orderMessageEnable", "TRUE"),
    ("boolean-text", "orderMessageEnable", "yes"),
    ("boolean-blank-after", "orderMessageEnable", "true "),
    ("string", ENVIRONMENT, "env-ä"),
    ("string-blanks", ENVIRONMENT, "  a b  "),
    ("string-empty", ENVIRONMENT, ""),
    ("string-escape", ENVIRONMENT, "\\u4e2d\\\\x"),
    ("listen-port", "listenPort", "1"),
    ("listen-port-odd", "listenPort", "-1"),
    ("bind-address", "bindAddress", "256.1.1.1"),
    ("worker-threads", "serverWorkerThreads", "-3"),
    ("extra-key", "extraKey", "changed"),
    ("unknown-key", "noSuchKey", "1"),
];

/// Forms of a properties text.
const SYNTAX: [(&str, &str); 19] = [
    ("other-case", "ShutdownWaitTimeSeconds=34"),
    ("class", "class=x"),
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
        "broken-escape-after-good",
        "shutdownWaitTimeSeconds=51\nproductEnvName=\\uzzzz",
    ),
    ("json", "{\"shutdownWaitTimeSeconds\":52}"),
    ("blank-lines", "\n \n\t\n"),
    ("nul", "shutdownWaitTimeSeconds=53\0"),
];

/// Ways to name a listed key.
const LISTED: [(&str, &str); 12] = [
    ("configBlackList", "configBlackList=/x"),
    ("configStorePath", "configStorePath=/x"),
    ("kvConfigPath", "kvConfigPath=/x"),
    ("rocketmqHome", "rocketmqHome=/x"),
    (
        "among-others",
        "shutdownWaitTimeSeconds=61\nkvConfigPath=/x\n",
    ),
    ("escaped", "kvConfigP\\u0061th=/x"),
    ("colon", "kvConfigPath:/x"),
    ("blank", "kvConfigPath /x"),
    ("leading-blanks", "   kvConfigPath=/x"),
    ("no-value", "kvConfigPath"),
    ("comment", "#kvConfigPath=/x"),
    ("other-case", "KvConfigPath=/x"),
];

/// Control characters in a value: a line break would be another line of the file.
const CONTROLS: [(&str, &str); 6] = [
    ("line-break", "productEnvName=a\\nkvConfigPath=/y"),
    ("carriage-return", "productEnvName=a\\rkvConfigPath=/y"),
    (
        "escaped-line-break",
        "productEnvName=a\\u000akvConfigPath=/y",
    ),
    ("tab", "productEnvName=a\\tb"),
    ("control", "productEnvName=a\\u0001b"),
    ("delete", "productEnvName=a\\u007fb"),
];

pub(super) fn theme() -> Theme {
    let mut theme = Theme::new("config");
    showing(&mut theme);
    theme.ask("no-body", Frame::request(318));
    theme.ask("empty-ext", Frame::request(318).empty_ext());
    theme.ask("blank-body", update(" \n"));
    theme.ask(
        "good-change",
        update("orderMessageEnable=true\nshutdownWaitTimeSeconds=29\n"),
    );
    theme.ask("after-good-change", show());
    for (id, key, value) in VALUES {
        theme.ask(id, set(key, value));
        theme.lines(&format!("{id}-shown"), show(), &[key]);
    }
    for (id, text) in SYNTAX {
        theme.ask(id, update(text));
        theme.lines(
            &format!("{id}-shown"),
            show(),
            &[SHUTDOWN, "waitSecondsForService"],
        );
    }
    senders(&mut theme);
    for (id, text) in LISTED {
        theme.ask(&format!("listed-{id}"), update(text));
    }
    theme.ask("listed-binary", set("kvConfigPath", "/x").binary());
    theme.quiet("listed-oneway", set("kvConfigPath", "/x").oneway());
    theme.lines(
        "listed-shown",
        show(),
        &["kvConfigPath", "configBlackList", SHUTDOWN],
    );
    for (id, text) in CONTROLS {
        theme.ask(&format!("{id}-before"), set(ENVIRONMENT, "center"));
        theme.ask(id, update(text));
        theme.lines(
            &format!("{id}-shown"),
            show(),
            &[ENVIRONMENT, "kvConfigPath"],
        );
    }
    theme
}

fn showing(theme: &mut Theme) {
    theme.ask("as-started", show());
    let both = [SHUTDOWN, ENVIRONMENT];
    theme.lines("show-binary", show().binary(), &both);
    for version in [0, 399, 10_000, -1] {
        theme.lines(
            &format!("show-version-{version}"),
            show().version(version),
            &both,
        );
    }
    theme.lines(
        "show-with-ext-and-body",
        show().ext("a", "b").body("c"),
        &both,
    );
    theme.quiet("show-oneway", show().oneway());
}

fn senders(theme: &mut Theme) {
    let changes = [
        ("binary", set(SHUTDOWN, "55").binary()),
        ("version-0", set(SHUTDOWN, "57").version(0)),
        ("version-negative", set(SHUTDOWN, "58").version(-1)),
        (
            "invalid-utf8",
            update("").body(b"productEnvName=a\xFFb".to_vec()),
        ),
    ];
    for (id, frame) in changes {
        theme.ask(id, frame);
        theme.lines(&format!("{id}-shown"), show(), &[SHUTDOWN, ENVIRONMENT]);
    }
    theme.quiet("oneway", set(SHUTDOWN, "56").oneway());
    theme.lines("oneway-shown", show(), &[SHUTDOWN]);
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
    theme.ask("wait-again", set("waitSecondsForService", "3600"));
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
