//! The writer's real turn over the real registry, and of a worker what needs no socket: the table of its connections, its credits
//! and the answers it keeps for its peers.

use std::{sync::Arc, time::Duration};

use loom_tests::{join, model, model_bounded, receive_one, spawn};
use waypost::{
    config::{Config, Environment},
    connection::{
        Connection,
        credit::{Credits, Outstanding},
    },
    ids::ConnectionId,
    limits::SCAN_PUT_OFF,
    protocol::{
        body::{QueueSettings, RegisterBrokerBody, TopicConfig},
        command::{RemotingCommand, ReplyHead},
        name::TopicName,
    },
    registry::{
        Command, KvTable, Registry, RouteSnapshot,
        command::{RegisterBroker, ReplyTo},
    },
    server::{
        message::{Order, PersistJob},
        writer::{Errands, WorkerDoor, Writer},
    },
    sync::{
        Flag, Parker, Receiver, Sender, Source, Subscriber, Unparker, Wake, mailbox, parker,
        publication,
    },
    time::Timestamp,
    worker::{Next, connections::Connections, message::Reply},
};

const NOW: Timestamp = Timestamp::from_millis(1000);
/// By now a broker that was heard of at [`NOW`] has fallen silent.
const LATER: Timestamp = Timestamp::from_millis(1_000_000);

/// Commands that one worker may have out, and the room of its reply mailbox. Each further one is a state more.
const OUT_MAX: usize = 2;

/// The writer and what it is wired to, with the ends that belong to other threads.
struct Rig<const WORKERS: usize> {
    writer: WriterThread,
    workers: [Worker; WORKERS],
    persister: Persister,
    stop: Stop,
    snapshots: Source<RouteSnapshot>,
}

/// What the writer's thread owns.
struct WriterThread {
    writer: Writer<Unparker>,
    commands: Receiver<Command, Unparker>,
    parker: Parker,
    stop: Flag,
}

/// What the persister's thread owns.
struct Persister {
    jobs: Receiver<PersistJob, Unparker>,
    reports: Sender<Command, Unparker>,
    parker: Parker,
}

/// Ends the writer.
struct Stop {
    flag: Flag,
    waker: Unparker,
}

/// What a worker's thread owns.
struct Worker {
    connections: Connections<Connection>,
    credits: Credits,
    commands: Sender<Command, Unparker>,
    replies: Receiver<Reply, Unparker>,
    orders: Receiver<Order, Unparker>,
    snapshots: Subscriber<RouteSnapshot>,
    parker: Parker,
    waker: Unparker,
}

impl<const WORKERS: usize> Rig<WORKERS> {
    /// Laid as `server::start` lays it. The mailboxes have room for what a scenario sends.
    fn new() -> Self {
        let config = Config::defaults(&Environment {
            user_home: None,
            rocketmq_home: None,
        });
        let registry = Registry::new(config, KvTable::default(), 7, NOW);
        let (publisher, snapshots) = publication(registry.initial_snapshot());
        let (writer_parker, writer_waker) = parker();
        let (commands, command_inbox) = mailbox(8, writer_waker.clone());
        let (persister_parker, persister_waker) = parker();
        let (persist_jobs, jobs) = mailbox(1, persister_waker.clone());
        let (notices, _notice_inbox) = mailbox(1, persister_waker);
        let mut doors = Vec::new();
        let workers = std::array::from_fn(|index| {
            let (parker, waker) = parker();
            let (replies, reply_inbox) = mailbox(OUT_MAX, waker.clone());
            let (orders, order_inbox) = mailbox(1, waker.clone());
            doors.push(WorkerDoor { replies, orders });
            Worker {
                connections: Connections::new(u16::try_from(index).expect("workers are few")),
                credits: Credits::new(OUT_MAX),
                commands: commands.clone(),
                replies: reply_inbox,
                orders: order_inbox,
                snapshots: snapshots.subscribe(),
                parker,
                waker,
            }
        });
        let stop = Flag::new();
        let errands = Errands {
            notices,
            persist_jobs,
        };
        Self {
            writer: WriterThread {
                writer: Writer::new(registry, publisher, doors, errands, NOW),
                commands: command_inbox,
                parker: writer_parker,
                stop: stop.clone(),
            },
            workers,
            persister: Persister {
                jobs,
                reports: commands,
                parker: persister_parker,
            },
            stop: Stop {
                flag: stop,
                waker: writer_waker,
            },
            snapshots,
        }
    }
}

impl WriterThread {
    /// `Writer::run` without its clock: no time passes, so no deadline ends a wait, and a wake that is lost is a deadlock.
    fn run(mut self) {
        loop {
            match self.turn(NOW) {
                Next::Turn => {}
                Next::Wait(_) => self.parker.park(None),
                Next::End => return,
            }
        }
    }

    fn turn(&mut self, now: Timestamp) -> Next {
        self.writer.turn(&mut self.commands, &self.stop, now).next
    }
}

impl Stop {
    fn stop(self) {
        self.flag.raise();
        self.waker.wake();
    }
}

impl Persister {
    /// Performs one job.
    fn perform_one(mut self) {
        let job = receive_one(&mut self.jobs, &self.parker);
        self.reports
            .send(Command::Persisted(job.ticket, Ok(())))
            .expect("there is room");
    }
}

impl Worker {
    fn open(&mut self) -> ConnectionId {
        self.connections
            .insert(Connection::new(Duration::from_secs(120), NOW))
    }

    /// Sends a command of a connection, unless that needs a credit and there is none.
    fn ask(
        &mut self,
        connection: ConnectionId,
        opaque: i32,
        command: impl FnOnce(ReplyTo) -> Command,
    ) -> bool {
        let peer = self
            .connections
            .get_mut(connection)
            .expect("the connection is open");
        if !self.credits.take(peer.outstanding_mut(), 0) {
            return false;
        }
        let to = ReplyTo {
            connection,
            head: ReplyHead {
                opaque,
                ..ReplyHead::default()
            },
            oneway: false,
        };
        self.commands.send(command(to)).expect("there is room");
        true
    }

    /// As the server's workers do.
    fn handle_replies(&mut self) -> usize {
        let Self {
            connections,
            credits,
            replies,
            ..
        } = self;
        let drained = replies.drain(OUT_MAX, |reply| {
            let Reply::Executed { to, answer } = reply else {
                unreachable!("there is no helper: {reply:?}");
            };
            let Some(peer) = connections.get_mut(to.connection) else {
                credits.give_back_late();
                return;
            };
            peer.handle_reply(credits, answer.as_ref().map(|response| (to.head, response)));
        });
        drained.count
    }

    /// Waits until `count` commands or more are replied to; says how many.
    fn await_replies(&mut self, count: usize) -> usize {
        let mut replied = self.handle_replies();
        while replied < count {
            self.parker.park(None);
            replied += self.handle_replies();
        }
        replied
    }

    /// As the server's workers do.
    fn close(&mut self, connection: ConnectionId) {
        let Some(mut peer) = self.connections.remove(connection) else {
            return;
        };
        self.credits.abandon(*peer.outstanding_mut());
        self.commands
            .send(Command::ConnectionClosed(connection))
            .expect("there is room");
    }

    fn handle_orders(&mut self) {
        let mut closes = Vec::new();
        self.orders.drain(1, |order| match order {
            Order::Close(connection) => closes.push(connection),
            Order::Serve(..) | Order::GoAway | Order::Stop => unreachable!("{order:?}"),
        });
        for connection in closes {
            self.close(connection);
        }
    }

    /// The opaque numbers of the answers that a connection's peer is to get.
    fn answers(&mut self, connection: ConnectionId) -> Vec<i32> {
        let peer = self
            .connections
            .get_mut(connection)
            .expect("the connection is open");
        let (mut bytes, mut opaques) = (peer.output().as_slice(), Vec::new());
        while let Some(length) = bytes.first_chunk() {
            let end = 4 + usize::try_from(u32::from_be_bytes(*length)).expect("it is short");
            let answer = RemotingCommand::decode(&bytes[4..end]).expect("we wrote it");
            opaques.push(answer.opaque);
            bytes = &bytes[end..];
        }
        opaques
    }

    fn sees(&mut self, broker: &str) -> bool {
        self.snapshots.load().route(broker).is_some()
    }
}

/// Registers a broker that is called like the first of its two topics: with one alone it would be taken for a change of that one.
fn register(to: ReplyTo, broker: &str) -> Command {
    let topic = |name: &str| TopicConfig {
        name: TopicName::from(name),
        settings: QueueSettings::default(),
    };
    Command::Register(
        to,
        Box::new(RegisterBroker {
            cluster_name: Arc::from("cluster"),
            broker_name: Arc::from(broker),
            broker_id: 0,
            broker_addr: Arc::from(broker),
            ha_server_addr: None,
            zone_name: None,
            heartbeat_timeout_millis: None,
            enable_acting_master: None,
            body: RegisterBrokerBody {
                topics: vec![topic(broker), topic(&format!("{broker}-retry"))],
                ..RegisterBrokerBody::default()
            },
        }),
    )
}

fn put_kv(to: ReplyTo) -> Command {
    let text = |text: &str| Arc::<str>::from(text);
    Command::PutKv(to, text("namespace"), text("key"), Some(text("value")))
}

/// L9. The second worker learns of the registration from the first alone.
#[test]
fn an_acknowledged_registration_is_visible_to_its_worker_and_to_whom_that_one_tells() {
    model_bounded(3, || {
        let rig = Rig::<2>::new();
        let [mut first, mut second] = rig.workers;
        let (news, mut news_inbox) = mailbox(1, second.waker.clone());

        let writer = spawn(move || rig.writer.run());
        let second = spawn(move || {
            receive_one(&mut news_inbox, &second.parker);
            assert!(second.sees("broker"), "told and not visible");
        });
        let first = spawn(move || {
            let connection = first.open();
            assert!(first.ask(connection, 1, |to| register(to, "broker")));
            first.await_replies(1);
            assert!(first.sees("broker"), "acknowledged and not visible");
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
            let broker = names.next().expect("there are as many");
            spawn(move || {
                let connection = worker.open();
                assert!(worker.ask(connection, 1, |to| register(to, broker)));
                worker.await_replies(1);
                assert!(worker.sees(broker), "acknowledged and not visible");
                assert_eq!(worker.answers(connection), [1]);
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
        let connection = worker.open();

        let writer = spawn(move || rig.writer.run());
        let persister = spawn(move || rig.persister.perform_one());
        assert!(worker.ask(connection, 1, put_kv));
        rig.stop.stop();

        join(writer);
        join(persister);
        assert_eq!(worker.handle_replies(), 1, "the command was not answered");
        let stored = worker.snapshots.load().kv().get("namespace", "key");
        assert_eq!(stored.map(AsRef::as_ref), Some("value"));
    });
}

/// L8. The reply comes before the connection closes, before the slot is used again, or after.
#[test]
fn a_reply_to_a_closed_connection_does_not_reach_the_slots_next_tenant() {
    model_bounded(3, || {
        let rig = Rig::<1>::new();
        let [mut worker] = rig.workers;

        let writer = spawn(move || rig.writer.run());
        let worker = spawn(move || {
            let first = worker.open();
            assert!(worker.ask(first, 1, |to| register(to, "first")));
            let before = worker.handle_replies();
            worker.close(first);
            let second = worker.open();
            assert_eq!(second.slot, first.slot, "the slot is used again");
            assert!(worker.ask(second, 2, |to| register(to, "second")));
            worker.await_replies(2 - before);
            assert_eq!(worker.answers(second), [2]);
            assert!(worker.sees("second"));
            assert!(!worker.sees("first"), "it left with its connection");
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
        let first = worker.open();
        assert!(worker.ask(first, 1, |to| register(to, "broker")));
        rig.writer.turn(NOW);
        worker.await_replies(1);
        // A scan that comes so late is put off; the next one comes in time.
        rig.writer.turn(LATER);

        let writer = spawn(move || rig.writer.turn(LATER.after(SCAN_PUT_OFF)));
        worker.close(first);
        let second = worker.open();
        assert_eq!(second.slot, first.slot, "the slot is used again");
        worker.handle_orders();
        join(writer);
        worker.handle_orders();

        assert!(worker.connections.get_mut(second).is_some());
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
            let mut missing = 0;
            for opaque in 0..=OUT_MAX {
                let connection = worker.open();
                let opaque = i32::try_from(opaque).expect("it is small");
                while !worker.ask(connection, opaque, |to| register(to, "broker")) {
                    missing -= worker.await_replies(1);
                }
                missing += 1;
                worker.close(connection);
            }
            worker.await_replies(missing);
            let mut all = Outstanding::default();
            for _ in 0..OUT_MAX {
                assert!(worker.credits.take(&mut all, 0), "a credit is lost");
            }
        });

        join(worker);
        rig.stop.stop();
        join(writer);
    });
}

/// L10. Whoever counts reads one snapshot, so the counts of a report belong together.
#[test]
fn the_counts_of_a_report_are_of_one_moment() {
    model_bounded(2, || {
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
        let connection = worker.open();
        for broker in ["one", "other"] {
            assert!(worker.ask(connection, 1, |to| register(to, broker)));
        }

        join(reporter);
        rig.stop.stop();
        join(writer);
        assert_eq!(worker.snapshots.load().counts(), (4, 2, 2));
    });
}
