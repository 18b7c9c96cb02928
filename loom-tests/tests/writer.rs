//! The writer's real turn over the real registry, beside workers whose turns are real too.

use loom_tests::{
    join, model_bounded, receive_one,
    rig::{Answer, Rig, SUCCESS, put_kv, register, route},
    spawn,
};
use waypost::{sync::mailbox, worker::message::Order};

/// L9. The second worker learns of the registration from the first alone.
#[test]
fn an_acknowledged_registration_is_visible_to_its_worker_and_to_whom_that_one_tells() {
    model_bounded(3, || {
        let rig = Rig::<2>::new();
        let [mut first, mut second] = rig.workers;
        let (news, mut news_inbox) = mailbox(1, second.waker.clone());

        let writer = spawn(move || rig.writer.run());
        let second = spawn(move || {
            let client = second.connect();
            receive_one(&mut news_inbox, second.parker());
            let code = second.call(&client, &route(1, "broker"));
            assert_eq!(code, SUCCESS, "told and not visible");
        });
        let first = spawn(move || {
            let broker = first.connect();
            assert_eq!(first.call(&broker, &register(1, "broker")), SUCCESS);
            let code = first.call(&broker, &route(2, "broker"));
            assert_eq!(code, SUCCESS, "acknowledged and not visible");
            news.send(()).expect("there is room");
        });

        join(first);
        join(second);
        rig.stop.stop();
        join(writer);
    });
}

/// L9. In one batch or in two.
#[test]
fn two_workers_each_see_what_they_are_acknowledged() {
    model_bounded(2, || {
        let rig = Rig::<2>::new();

        let writer = spawn(move || rig.writer.run());
        let mut names = ["one", "other"].into_iter();
        let workers = rig.workers.map(|mut worker| {
            let name = names.next().expect("there are as many");
            spawn(move || {
                let broker = worker.connect();
                assert_eq!(worker.call(&broker, &register(1, name)), SUCCESS);
                let code = worker.call(&broker, &route(2, name));
                assert_eq!(code, SUCCESS, "acknowledged and not visible");
            })
        });

        for worker in workers {
            join(worker);
        }
        rig.stop.stop();
        join(writer);
    });
}

/// L9 at shutdown: the writer ends when its last command is answered, whoever that waits for.
#[test]
fn at_shutdown_the_writer_answers_what_waits_for_a_file() {
    model_bounded(3, || {
        let rig = Rig::<1>::new();
        let [mut worker] = rig.workers;
        let operator = worker.connect();

        let writer = spawn(move || rig.writer.run());
        let persister = spawn(move || rig.persister.perform_one());
        worker.ask(&operator, &put_kv(1));
        rig.stop.stop();

        join(writer);
        join(persister);
        worker.look();
        let answer = Answer {
            opaque: 1,
            code: SUCCESS,
        };
        assert_eq!(operator.answers(), [answer]);
        let stored = worker.snapshots.load().kv().get("namespace", "key");
        assert_eq!(stored.map(AsRef::as_ref), Some("value"));
    });
}

/// L6. The worker is told to stop while its peers ask; the writer ends behind it, as in the server. What was executed is answered,
/// and what was not is not.
#[test]
fn at_shutdown_each_request_is_answered_or_not_executed() {
    model_bounded(3, || {
        let rig = Rig::<1>::new();
        let [mut worker] = rig.workers;
        let orders = worker.orders.clone();
        let mut snapshots = rig.snapshots.subscribe();

        let writer = spawn(move || rig.writer.run());
        let worker = spawn(move || {
            let brokers = ["one", "other"].map(|name| {
                let broker = worker.connect();
                worker.ask(&broker, &register(1, name));
                (name, broker)
            });
            worker.run();
            brokers
        });
        orders.send(Order::Stop).expect("there is room");
        let brokers = join(worker);
        rig.stop.stop();
        join(writer);

        for (name, broker) in brokers {
            let executed = snapshots.load().route(name).is_some();
            assert_eq!(broker.answers().len(), usize::from(executed), "{name}");
        }
    });
}

/// L10. Whoever counts reads one snapshot, so the counts of a report belong together.
#[test]
fn the_counts_of_a_report_are_of_one_moment() {
    model_bounded(3, || {
        let rig = Rig::<1>::new();
        let [mut worker] = rig.workers;
        let mut snapshots = rig.snapshots.subscribe();

        let writer = spawn(move || rig.writer.run());
        let reporter = spawn(move || {
            let mut latest = (0, 0);
            for _ in 0..2 {
                let snapshot = snapshots.load();
                let (topics, groups, live) = snapshot.counts();
                assert_eq!((topics, live), (2 * groups, groups), "half a registration");
                let report = (snapshot.version(), groups);
                assert!(report >= latest, "back from {latest:?} to {report:?}");
                latest = report;
            }
        });
        let broker = worker.connect();
        worker.ask(&broker, &register(1, "one"));
        worker.ask(&broker, &register(2, "other"));

        join(reporter);
        rig.stop.stop();
        join(writer);
        assert_eq!(worker.snapshots.load().counts(), (4, 2, 2));
    });
}
