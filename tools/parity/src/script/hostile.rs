//! Registrations that spoil the original's tables: on a server of their own.

use super::Theme;
use super::build::{broker, clusters, data_version, members, route, topics};
use crate::frame::Frame;

fn look(theme: &mut Theme, id: &str) {
    theme.ask(&format!("{id}-clusters"), clusters());
    theme.ask(&format!("{id}-304"), Frame::request(304));
    theme.ask(&format!("{id}-206"), Frame::request(206));
}

/// One broker under two clusters, addresses replaced, first registrations of one topic.
pub(super) fn residue() -> Theme {
    let mut theme = Theme::new("residue");
    two_clusters(&mut theme);
    single_topic(&mut theme);
    replaced(&mut theme);
    theme
}

fn two_clusters(theme: &mut Theme) {
    let body = topics(1, &["Rs1", "Rs2"]).body();
    let first = broker("rs-1", "rs-a", 0, "10.20.0.1:1");
    let second = broker("rs-2", "rs-a", 1, "10.20.0.2:1");
    theme
        .on("first")
        .ask("first-cluster", first.register().body(body.as_str()));
    theme
        .on("second")
        .ask("second-cluster", second.register().body(body.as_str()));
    look(theme, "two-clusters");
    theme.ask("two-clusters-members", members("rs-2", "rs-a"));
    theme.ask(
        "two-clusters-224",
        Frame::request(224).ext("cluster", "rs-2"),
    );
    theme.ask("two-clusters-query", second.query_version(&data_version(1)));
    theme.close("second");
    theme.settle();
    look(theme, "second-closed");
    theme.ask("second-closed-routed", route("Rs1"));
    theme
        .on("first")
        .ask("first-cluster-again", first.register().body(body.as_str()));
    theme.close("first");
    theme.settle();
    theme.ask("both-closed-routed", route("Rs1"));
    look(theme, "both-closed");
    theme.ask("second-104", second.unregister());
    theme.settle();
    look(theme, "second-104");
}

fn single_topic(theme: &mut Theme) {
    let broker = broker("rs-3", "rs-single", 0, "10.20.1.1:1");
    theme.on("single").ask(
        "single-first",
        broker.register().body(topics(1, &["RsOne"]).body()),
    );
    look(theme, "single-first");
    theme.ask("single-first-members", members("rs-3", "rs-single"));
    theme.ask("single-first-routed", route("RsOne"));
    theme.ask(
        "single-first-is-not-live",
        broker.query_version(&data_version(1)),
    );
    theme.ask(
        "single-first-binary",
        broker
            .register()
            .body(topics(1, &["RsOne"]).body())
            .binary(),
    );
    theme.ask(
        "empty-table-first",
        broker.register().body(topics(1, &[]).body()),
    );
    theme.ask(
        "single-after-empty",
        broker.register().body(topics(2, &["RsOne"]).body()),
    );
    theme.ask("single-after-empty-routed", route("RsOne"));
    let slave = super::build::broker("rs-3", "rs-single", 1, "10.20.1.2:1");
    theme.on("single-slave").ask(
        "single-slave",
        slave.register().body(topics(2, &["RsOne"]).body()),
    );
    theme.ask(
        "single-slave-4.9",
        slave
            .register_old()
            .body(topics(2, &["RsOne"]).body())
            .version(399),
    );
    theme.ask("single-slave-members", members("rs-3", "rs-single"));
    theme.close("single");
    theme.close("single-slave");
    theme.settle();
    look(theme, "single-closed");
}

fn replaced(theme: &mut Theme) {
    let body = topics(1, &["RsR", "RsR2"]).body();
    let old = broker("rs-4", "rs-r", 0, "10.20.2.1:1");
    let new = broker("rs-4", "rs-r", 0, "10.20.2.2:1");
    theme
        .on("old")
        .ask("old-address", old.register().body(body.as_str()));
    theme
        .on("new")
        .ask("new-address", new.register().body(body.as_str()));
    theme.ask("old-is-still-live", old.query_version(&data_version(1)));
    theme.close("old");
    theme.settle();
    theme.ask("old-closed-routed", route("RsR"));
    theme.ask("old-closed-query", old.query_version(&data_version(1)));
    theme.close("new");
    theme.settle();
    theme.ask("new-closed-routed", route("RsR"));
    theme.ask("new-closed-query", new.query_version(&data_version(1)));
}

/// Registrations with names missing. The last theme of its section: its traces stay.
pub(super) fn missing_names() -> Theme {
    let mut theme = Theme::new("missing");
    let body = topics(1, &["Mis1", "Mis2"]).body();
    let good = broker("ms", "ms-a", 0, "10.21.0.1:1")
        .register()
        .body(body.as_str());
    theme.on("m").ask("good", good.clone());
    for field in ["clusterName", "brokerAddr", "brokerName"] {
        let fresh = broker(
            &format!("ms-{field}"),
            &format!("ms-{field}"),
            0,
            &format!("10.21.1.1:{field}"),
        );
        let table = topics(1, &[&format!("Mis-{field}"), "Mis2"]).body();
        let frame = fresh.register().body(table).without(field);
        theme.on(field).ask(&format!("no-{field}"), frame.clone());
        look(&mut theme, &format!("no-{field}"));
        theme.ask(
            &format!("no-{field}-routed"),
            route(&format!("Mis-{field}")),
        );
        theme.ask(&format!("no-{field}-binary"), frame.binary());
        theme.close(field);
        theme.settle();
        theme.ask(&format!("no-{field}-closed"), clusters());
        theme.ask(
            &format!("no-{field}-closed-routed"),
            route(&format!("Mis-{field}")),
        );
    }
    theme.on("m").ask("good-again", good);
    theme.ask("good-routed", route("Mis1"));
    empty_names(&mut theme);
    mapping_without_name(&mut theme);
    theme
}

fn empty_names(theme: &mut Theme) {
    for field in ["clusterName", "brokerAddr", "brokerName"] {
        let name = format!("ms-empty-{field}");
        let fresh = broker(&name, &name, 0, &format!("10.21.2.1:{field}"));
        let table = topics(1, &[&format!("Mis-empty-{field}"), "Mis2"]).body();
        theme.on(&name).ask(
            &format!("empty-{field}"),
            fresh.register().body(table).with(field, ""),
        );
        look(theme, &format!("empty-{field}"));
        theme.ask(
            &format!("empty-{field}-routed"),
            route(&format!("Mis-empty-{field}")),
        );
    }
}

fn mapping_without_name(theme: &mut Theme) {
    let mapping = "{\"currIdMap\":{0:0},\"dirty\":false,\"epoch\":1,\"scope\":\"__global__\",\"topic\":\"MisStatic\",\"totalQueues\":4}";
    let table = topics(1, &["MisStatic", "MisStatic2"]).mapping("MisStatic", mapping);
    theme.on("static").ask(
        "mapping-without-bname",
        broker("ms", "ms-static", 0, "10.21.3.1:1")
            .register()
            .body(table.body()),
    );
    theme.ask("mapping-without-bname-strict", route("MisStatic"));
    theme.ask(
        "mapping-without-bname-plain",
        route("MisStatic").version(399),
    );
}
