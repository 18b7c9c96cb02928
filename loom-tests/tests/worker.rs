//! A worker's real turn, with its connections and credits, beside the writer's.

use loom_tests::{
    join, model, model_bounded,
    rig::{
        Answer, NOW, OUT_MAX, Rig, SUCCESS, TOPIC_NOT_EXIST, register, register_at_length, route,
    },
    spawn,
};
use waypost::{limits::SCAN_PUT_OFF, time::Timestamp};

/// By now a broker that was heard of at [`NOW`] has fallen silent; a scan that comes so late is put off.
const LATER: Timestamp = Timestamp::from_millis(1_000_000);

/// L8. The reply comes before the connection closes, before the slot is used again, or after.
#[test]
fn a_reply_to_a_closed_connection_does_not_reach_the_slots_next_tenant() {
    model_bounded(3, || {
        let rig = Rig::<1>::new();
        let [mut worker] = rig.workers;

        let writer = spawn(move || rig.writer.run());
        let worker = spawn(move || {
            let first = worker.connect();
            worker.ask(&first, &register(1, "first"));
            worker.shatter(&first);
            let second = worker.connect();
            assert_eq!(second.slot(), first.slot(), "the slot is used again");
            worker.ask(&second, &register(2, "second"));
            worker.settle();
            let answer = Answer {
                opaque: 2,
                code: SUCCESS,
            };
            assert_eq!(second.answers(), [answer]);
            assert_eq!(worker.call(&second, &route(3, "second")), SUCCESS);
            let code = worker.call(&second, &route(4, "first"));
            assert_eq!(code, TOPIC_NOT_EXIST, "it left with its connection");
        });

        join(worker);
        rig.stop.stop();
        join(writer);
    });
}

/// L8 for what the writer orders by itself: the broker of a connection falls silent while that closes.
#[test]
fn an_order_to_close_a_connection_does_not_reach_the_slots_next_tenant() {
    model(|| {
        let mut rig = Rig::<1>::new();
        let [mut worker] = rig.workers;
        let first = worker.connect();
        worker.ask(&first, &register(1, "broker"));
        rig.writer.turn(NOW);
        rig.writer.turn(LATER);

        let writer = spawn(move || rig.writer.turn(LATER.after(SCAN_PUT_OFF)));
        worker.shatter(&first);
        let second = worker.connect();
        assert_eq!(second.slot(), first.slot(), "the slot is used again");
        join(writer);
        worker.look();

        assert!(!second.is_closed());
    });
}

/// L7 with the real credits. A connection that closes with a command out keeps its credit until the reply comes.
#[test]
fn with_the_credits_of_closed_connections_kept_a_reply_is_never_refused() {
    model_bounded(2, || {
        let rig = Rig::<1>::new();
        let [mut worker] = rig.workers;

        let writer = spawn(move || rig.writer.run());
        let worker = spawn(move || {
            for opaque in (0..).take(OUT_MAX + 1) {
                let broker = worker.connect();
                worker.ask(&broker, &register(opaque, "broker"));
                worker.shatter(&broker);
            }
            worker.settle();
        });

        join(worker);
        rig.stop.stop();
        join(writer);
    });
}

/// A broker registers again just when it is found silent. Either it stays, or its registration is not acknowledged: an order to
/// close a connection that was given before a reply over it is seen no later than the reply (fault A11).
#[test]
fn a_reply_behind_an_order_to_close_its_connection_is_not_written() {
    model_bounded(4, || {
        let mut rig = Rig::<1>::new();
        let [mut worker] = rig.workers;
        let broker = worker.connect();
        worker.ask(&broker, &register(1, "broker"));
        rig.writer.turn(NOW);
        rig.writer.turn(LATER);
        worker.look();
        assert_eq!(broker.answers().len(), 1);

        let writer = spawn(move || {
            rig.writer.turn(LATER.after(SCAN_PUT_OFF));
            rig.writer.turn(LATER.after(SCAN_PUT_OFF));
        });
        worker.ask(&broker, &register(2, "broker"));
        worker.look();
        join(writer);
        worker.look();

        let is_acknowledged = broker.answers().len() == 2;
        assert!(
            !(is_acknowledged && broker.is_closed()),
            "acknowledged, and closed for a silence before"
        );
    });
}

/// The helper reads the last registration of a broker that is gone: the writer is told of the end behind it, so that the broker leaves
/// for good.
#[test]
fn the_end_of_a_connection_is_told_behind_the_registration_that_the_helper_reads() {
    model_bounded(2, || {
        let rig = Rig::<1>::new();
        let [mut worker] = rig.workers;

        let writer = spawn(move || rig.writer.run());
        let helper = spawn(move || rig.helper.perform_one());
        let worker = spawn(move || {
            let broker = worker.connect();
            // From here on the connection is one that carries a broker.
            assert_eq!(worker.call(&broker, &register(1, "broker")), SUCCESS);
            worker.ask_at_last(&broker, &register_at_length(2, "broker"));
            worker.settle();
            assert_eq!(broker.answers().len(), 2);
        });

        join(worker);
        join(helper);
        rig.stop.stop();
        join(writer);
        let (topics, groups, live) = rig.snapshots.subscribe().load().counts();
        assert_eq!(
            (topics, groups, live),
            (0, 0, 0),
            "it stays though it is gone"
        );
    });
}
