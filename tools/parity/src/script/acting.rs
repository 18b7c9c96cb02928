//! Acting masters and the notification (905) that the least broker id has changed.
//!
//! The brokers' addresses are listeners of the test, so that it hears what the server sends to them.

use super::Theme;
use super::build::{Broker, broker, clusters, members, route, set, topics};

const SYNC: &str = "rmq_sys_SYNC_BROKER_MEMBER_am-a";

fn body(counter: u32) -> String {
    topics(counter, &["Am1", "Am2"])
        .add(SYNC, 1, 1, 1, 0)
        .body()
}

fn look(theme: &mut Theme, id: &str) {
    theme.on("client").ask(&format!("{id}-route"), route("Am1"));
    theme.ask(&format!("{id}-route-plain"), route("Am1").version(399));
    theme.ask(&format!("{id}-sync-route"), route(SYNC));
    theme.ask(&format!("{id}-members"), members("am", "am-a"));
    theme.ask(&format!("{id}-clusters"), clusters());
}

fn heard_by_all(theme: &mut Theme, id: &str, listeners: &[&str]) {
    for listener in listeners {
        theme.heard(&format!("{id}-heard-by-{listener}"), listener);
    }
}

pub(super) fn theme() -> Theme {
    let mut theme = Theme::new("acting");
    for name in ["m", "s", "t"] {
        theme.listen(name);
    }
    let member = |name: &str, id: i64| broker("am", "am-a", id, &format!("@{name}@"));
    let (master, slave, third) = (member("m", 0), member("s", 1), member("t", 2));
    theme
        .on("s")
        .ask("slave-alone", slave.register_acting().body(body(1)));
    look(&mut theme, "slave-alone");
    theme
        .on("m")
        .ask("master-joins", master.register_acting().body(body(1)));
    heard_by_all(&mut theme, "master-joins", &["s"]);
    look(&mut theme, "master-joins");
    theme
        .on("t")
        .ask("third-joins", third.register_acting().body(body(1)));
    theme
        .on("s")
        .ask("slave-again", slave.register_acting().body(body(1)));
    theme.on("m").ask("master-leaves", master.unregister());
    theme.settle();
    heard_by_all(&mut theme, "master-leaves", &["s", "t"]);
    look(&mut theme, "master-leaves");
    theme
        .on("m")
        .ask("master-returns", master.register_acting().body(body(1)));
    heard_by_all(&mut theme, "master-returns", &["s", "t"]);
    look(&mut theme, "master-returns");
    theme.close("m");
    theme.settle();
    heard_by_all(&mut theme, "master-closes", &["s", "t"]);
    look(&mut theme, "master-closes");
    theme.on("t").ask("greatest-leaves", third.unregister());
    theme.settle();
    theme.unheard("greatest-leaves-not-heard", "s");
    theme.on("m").ask(
        "master-comes-without-acting",
        master.register().body(body(2)),
    );
    heard_by_all(&mut theme, "without-acting", &["s"]);
    theme.ask("master-goes-without-acting", master.unregister());
    theme.settle();
    theme.unheard("without-acting-not-heard", "s");
    look(&mut theme, "without-acting");
    switches(&mut theme, &master, &slave);
    theme
}

fn switches(theme: &mut Theme, master: &Broker, slave: &Broker) {
    theme
        .on("s")
        .ask("slave-acts-again", slave.register_acting().body(body(3)));
    look(theme, "slave-acts-again");
    theme
        .on("client")
        .ask("acting-off", set("supportActingMaster", "false"));
    look(theme, "acting-off");
    theme
        .on("client")
        .ask("acting-on", set("supportActingMaster", "true"));
    theme.ask("notify-off", set("notifyMinBrokerIdChanged", "false"));
    theme.on("m").ask(
        "master-joins-unnoticed",
        master.register_acting().body(body(3)),
    );
    theme.ask("master-leaves-unnoticed", master.unregister());
    theme.settle();
    theme.unheard("unnoticed", "s");
    theme
        .on("client")
        .ask("notify-on", set("notifyMinBrokerIdChanged", "true"));
}

/// Groups whose slaves do not act.
pub(super) fn others() -> Theme {
    let mut theme = Theme::new("no-acting");
    let table = topics(1, &["Na1", "Na2"]).body();
    theme.on("a").ask(
        "slave-5.x",
        broker("na", "na-a", 1, "10.15.0.1:1")
            .register()
            .body(table.as_str()),
    );
    theme.ask("slave-5.x-routed", route("Na1"));
    theme.on("b").ask(
        "slave-4.9",
        broker("na", "na-b", 1, "10.15.0.2:1")
            .register_old()
            .body(topics(1, &["Na3", "Na4"]).body())
            .version(399),
    );
    theme.ask("slave-4.9-routed", route("Na3"));
    theme.ask("slave-4.9-members", members("na", "na-b"));
    theme.on("c").ask(
        "acting-5-of-5-and-7",
        broker("na", "na-c", 5, "10.15.0.3:1")
            .register_acting()
            .body(topics(1, &["Na5", "Na6"]).body()),
    );
    theme.on("d").ask(
        "acting-7-of-5-and-7",
        broker("na", "na-c", 7, "10.15.0.4:1")
            .register_acting()
            .body(topics(1, &["Na5", "Na7"]).body()),
    );
    theme.ask("least-acts", route("Na5"));
    theme.ask("greater-brings-no-topics", route("Na7"));
    theme.on("d").ask(
        "least-changes",
        broker("na", "na-c", 3, "10.15.0.4:1")
            .register_acting()
            .body(topics(2, &["Na5", "Na7"]).body()),
    );
    theme.ask("new-least-acts", route("Na5"));
    theme.ask("new-least-brings-topics", route("Na7"));
    theme.on("e").ask(
        "negative-id",
        broker("na", "na-d", -1, "10.15.0.5:1")
            .register_acting()
            .body(topics(1, &["Na8", "Na9"]).body()),
    );
    theme.ask("negative-id-routed", route("Na8"));
    theme.ask("negative-id-routed-plain", route("Na8").version(399));
    theme
}
