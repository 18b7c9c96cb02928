//! UNREGISTER_BROKER (104).

use super::Theme;
use super::build::{Broker, broker, clusters, data_version, members, route, topics};
use crate::frame::Frame;

pub(super) fn theme() -> Theme {
    let mut theme = Theme::new("unregister");
    whole(&mut theme);
    wrong_fields(&mut theme);
    missing_fields(&mut theme);
    groups(&mut theme);
    theme
}

/// Registers a broker named after the step over a connection named alike, with topics `<name>-T` and `<name>-U`.
fn join(theme: &mut Theme, name: &str, number: u32) -> Broker {
    let broker = broker("unr", name, 0, &format!("10.7.0.{number}:1"));
    let table = topics(1, &[&format!("{name}-T"), &format!("{name}-U")]);
    theme.on(name).ask(
        &format!("{name}-joins"),
        broker.register().body(table.body()),
    );
    broker
}

fn whole(theme: &mut Theme) {
    let first = join(theme, "right", 1);
    theme.ask("right-104", first.unregister());
    theme.settle();
    theme.ask("right-is-gone", route("right-T"));
    theme.ask("right-is-no-member", members("unr", "right"));
    theme.ask("right-is-not-live", first.query_version(&data_version(1)));
    theme.ask("right-cluster-is-gone", clusters());
    theme.ask("right-again", first.unregister());
    theme.ask(
        "right-returns",
        first
            .register()
            .body(topics(1, &["right-T", "right-U"]).body()),
    );
    theme.ask("right-is-back", route("right-T"));
    theme.quiet("right-oneway", first.unregister().oneway());
    theme.settle();
    theme.ask("right-oneway-is-gone", route("right-T"));
    let binary = join(theme, "binary", 2);
    theme.ask("binary-104", binary.unregister().binary());
    theme.settle();
    theme.ask("binary-is-gone", route("binary-T"));
    theme.ask(
        "unknown",
        broker("nowhere", "nobody", 7, "1.2.3.4:5").unregister(),
    );
    for version in [0, 399, 10_000, -1] {
        theme.ask(
            &format!("unknown-version-{version}"),
            broker("nowhere", "nobody", 7, "1.2.3.4:5")
                .unregister()
                .version(version),
        );
    }
}

fn wrong_fields(theme: &mut Theme) {
    let wrong_id = join(theme, "wrong-id", 3);
    theme.ask("wrong-id-104", wrong_id.as_id(5).unregister());
    theme.settle();
    theme.ask("wrong-id-is", route("wrong-id-T"));
    let wrong_address = join(theme, "wrong-address", 4);
    theme.ask(
        "wrong-address-104",
        wrong_address.unregister().with("brokerAddr", "9.9.9.9:9"),
    );
    theme.settle();
    theme.ask("wrong-address-is", route("wrong-address-T"));
    let wrong_name = join(theme, "wrong-name", 5);
    theme.ask(
        "wrong-name-104",
        wrong_name.unregister().with("brokerName", "somebody"),
    );
    theme.settle();
    theme.ask("wrong-name-is", route("wrong-name-T"));
    theme.ask(
        "wrong-name-is-live",
        wrong_name.query_version(&data_version(1)),
    );
    let unchecked = join(theme, "text-id", 6);
    theme.ask(
        "text-id-104",
        unchecked.unregister().with("brokerId", "abc"),
    );
    theme.settle();
    theme.ask("text-id-is", route("text-id-T"));
}

fn missing_fields(theme: &mut Theme) {
    let broker = join(theme, "partial", 7);
    theme.ask("no-ext", Frame::request(104));
    theme.ask("empty-ext", Frame::request(104).empty_ext());
    theme.settle();
    for field in ["brokerName", "brokerAddr", "clusterName", "brokerId"] {
        theme.ask(&format!("no-{field}"), broker.unregister().without(field));
        theme.settle();
        theme.ask(&format!("no-{field}-is"), route("partial-T"));
    }
    theme.ask("empty-name", broker.unregister().with("brokerName", ""));
    theme.ask(
        "body-ignored",
        super::build::broker("nowhere", "nobody", 7, "1.2.3.4:5")
            .unregister()
            .body("odd"),
    );
}

fn groups(theme: &mut Theme) {
    let master = join(theme, "group", 8);
    let slave = broker("unr", "group", 1, "10.7.0.9:1");
    theme.on("group-slave").ask(
        "group-slave-joins",
        slave
            .register()
            .body(topics(1, &["group-T", "group-U"]).body()),
    );
    theme.ask("group-master-104", master.unregister());
    theme.settle();
    theme.ask("group-slave-stays", route("group-T"));
    theme.ask("group-members", members("unr", "group"));
    theme.ask("group-slave-104", slave.unregister());
    theme.settle();
    theme.ask("group-is-gone", route("group-T"));
    theme.ask("group-no-members", members("unr", "group"));
}
