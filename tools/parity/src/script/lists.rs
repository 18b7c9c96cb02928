//! Cluster info, member groups and topic lists: 106, 901, 206, 224, 304, 311, 312, 313.

use super::Theme;
use super::build::{broker, clusters, members, set, topics};
use super::route::VERSIONS;
use crate::frame::Frame;

const LISTS: [i32; 6] = [206, 224, 304, 311, 312, 313];

pub(super) fn theme() -> Theme {
    let mut theme = Theme::new("lists");
    empty(&mut theme);
    filled(&mut theme);
    arguments(&mut theme);
    switches(&mut theme);
    theme
}

fn empty(theme: &mut Theme) {
    theme.ask("clusters-empty", clusters());
    theme.ask("members-empty", members("ls", "ls-a"));
    for code in LISTS {
        theme.ask(
            &format!("{code}-empty"),
            Frame::request(code).ext("cluster", "ls"),
        );
    }
}

fn filled(theme: &mut Theme) {
    let first = topics(1, &["LsPlain"])
        .add("LsUnit", 4, 4, 6, 1)
        .add("LsUnitSub", 4, 4, 6, 2)
        .add("LsBoth", 4, 4, 6, 3)
        .add("TBW102", 8, 8, 7, 0);
    theme.on("m").ask(
        "master",
        broker("ls", "ls-a", 0, "10.8.0.1:1")
            .register_acting()
            .body(first.body()),
    );
    theme.ask("304-one-broker", Frame::request(304));
    theme.on("s").ask(
        "slave",
        broker("ls", "ls-a", 1, "10.8.0.2:1")
            .register_acting()
            .body(first.body()),
    );
    theme.on("n").ask(
        "other-cluster",
        broker("ls-2", "ls-b", 0, "10.8.0.3:1")
            .register_old()
            .ext("__ZONE_NAME", "az")
            .body(topics(1, &["LsPlain", "LsOther"]).body()),
    );
    for version in VERSIONS {
        theme.ask(
            &format!("clusters-version-{version}"),
            clusters().version(version),
        );
    }
    theme.ask(
        "clusters-standard-json",
        clusters().ext("acceptStandardJsonOnly", "true"),
    );
    theme.ask("clusters-binary", clusters().binary());
    theme.ask("clusters-oneway-then", clusters());
    for code in LISTS {
        theme.ask(
            &format!("{code}-filled"),
            Frame::request(code).ext("cluster", "ls"),
        );
        theme.ask(
            &format!("{code}-version-0"),
            Frame::request(code).ext("cluster", "ls").version(0),
        );
        theme.ask(
            &format!("{code}-binary"),
            Frame::request(code).ext("cluster", "ls").binary(),
        );
    }
    for version in [0, 399, 479, -1] {
        theme.ask(
            &format!("members-version-{version}"),
            members("ls", "ls-a").version(version),
        );
    }
    theme.ask("members-binary", members("ls", "ls-a").binary());
}

fn arguments(theme: &mut Theme) {
    for code in LISTS {
        theme.ask(&format!("{code}-no-ext"), Frame::request(code));
        theme.ask(
            &format!("{code}-with-body"),
            Frame::request(code).ext("cluster", "ls-2").body("{}"),
        );
    }
    theme.ask(
        "224-other-cluster",
        Frame::request(224).ext("cluster", "ls-2"),
    );
    theme.ask("224-unknown", Frame::request(224).ext("cluster", "nowhere"));
    theme.ask("224-empty-name", Frame::request(224).ext("cluster", ""));
    theme.ask("224-other-case", Frame::request(224).ext("cluster", "LS"));
    theme.ask(
        "224-wrong-field",
        Frame::request(224).ext("clusterName", "ls"),
    );
    theme.ask("members-unknown", members("ls", "nobody"));
    theme.ask("members-other-cluster", members("nowhere", "ls-a"));
    theme.ask(
        "members-no-cluster",
        Frame::request(901).ext("brokerName", "ls-a"),
    );
    theme.ask(
        "members-no-name",
        Frame::request(901).ext("clusterName", "ls"),
    );
    theme.ask("members-empty-ext", Frame::request(901).empty_ext());
    theme.ask("members-no-ext", Frame::request(901));
    theme.ask("members-empty-name", members("", ""));
}

fn switches(theme: &mut Theme) {
    theme.ask("all-topics-off", set("enableAllTopicList", "false"));
    theme.ask("206-off", Frame::request(206));
    theme.ask("206-off-binary", Frame::request(206).binary());
    theme.ask("224-still-on", Frame::request(224).ext("cluster", "ls-2"));
    theme.ask("all-topics-on", set("enableAllTopicList", "true"));
    theme.ask("206-on", Frame::request(206));
    theme.ask("topics-off", set("enableTopicList", "false"));
    for code in LISTS {
        theme.ask(
            &format!("{code}-topics-off"),
            Frame::request(code).ext("cluster", "ls-2"),
        );
    }
    theme.ask("topics-on", set("enableTopicList", "true"));
    theme.ask("224-on", Frame::request(224).ext("cluster", "ls-2"));
}
