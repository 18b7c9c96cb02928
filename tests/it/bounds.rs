//! Bounds of `SECURITY.md` that no rule and no fault covers: each is reached, or what it costs is counted.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    io::{self, Seek},
    iter,
    path::Path,
    sync::Arc,
    time::Duration,
};

use allocation_counter::measure;
use tracing::{
    Dispatch,
    subscriber::{self, NoSubscriber},
};
use waypost::{
    config::{Config, Environment},
    connection::{Connection, Handled, Handler, StreamLimits, credit::Outstanding, each},
    ids::ConnectionId,
    limits::{
        BEATING_CONNECTIONS_MAX, CONFIG_REMARK_LEN_MAX, CONFIG_WAITING_MAX, FRAME_LEN_MAX,
        GROUPS_MAX, KNOWN_BROKERS_MAX, KV_WAITING_LEN_MAX, KV_WAITING_MAX, LIVE_BROKERS_MAX,
        LOOK_AHEAD_MAX, TOPIC_LOG_LINES_MAX, WRITER_DRAIN_MAX,
    },
    processor::look_ahead,
    protocol::{code::ResponseCode, command::RemotingCommand},
    registry::{Command, Effect, KvTable, Registry, RouteSnapshot},
    server::{
        message::{Notice, PersistJob},
        writer::{Errands, Turned, WorkerDoor, Writer},
    },
    sync::{Flag, Receiver, Sender, Source, Unparker, mailbox, parker, publication},
    time::Timestamp,
    worker::{
        Next,
        helper::{Done, Helper, Job},
        message::{Order, Reply},
    },
};

use crate::{
    tidy,
    world::{Ask, Header, World, ask, conn, heartbeat, reg, route, topics, unreg},
};

const LIMITS: StreamLimits = StreamLimits {
    frame_len_max: FRAME_LEN_MAX,
    high_water: 64 * 1024,
    low_water: 32 * 1024,
};

#[test]
fn f6_a_length_that_is_announced_costs_nothing_before_its_bytes_are_there() {
    let len = u32::try_from(FRAME_LEN_MAX - 4).expect("a length word");
    let announced = [&len.to_be_bytes()[..], &[0; 100]].concat();
    let now = Timestamp::from_millis(0);
    let mut connection = Connection::new(Duration::from_secs(120), now);
    let kept = measure(|| {
        let mut out = Vec::new();
        let nobody = each(
            |request: &RemotingCommand<'_>, _: &mut Vec<u8>, _: &mut Outstanding| {
                panic!("no frame is complete: {request:?}")
            },
        );
        let received = connection.handle_input(&announced, 0, &LIMITS, now, &mut out, nobody);
        received.expect("nothing is wrong yet");
    });
    assert!(kept.bytes_max < 1024, "{kept:?}");
}

/// How many requests were looked up together, each time.
struct LookedUp<'a>(&'a mut Vec<usize>);

impl Handler for LookedUp<'_> {
    fn look_ahead(&mut self, requests: &[RemotingCommand<'_>]) {
        self.0.push(requests.len());
    }

    fn handle(
        &mut self,
        _: usize,
        _: &RemotingCommand<'_>,
        _: &mut Vec<u8>,
        _: &mut Outstanding,
    ) -> Handled {
        Handled::Done
    }
}

#[test]
fn of_many_route_queries_in_a_row_a_few_are_decoded_ahead() {
    let now = Timestamp::from_millis(0);
    let mut connection = Connection::new(Duration::from_secs(120), now);
    let queries = route("T").wire().repeat(3 * LOOK_AHEAD_MAX);
    let (mut counts, mut out) = (Vec::new(), Vec::new());

    let handler = LookedUp(&mut counts);
    let received = connection.handle_input(&queries, 0, &LIMITS, now, &mut out, handler);

    received.expect("they are well-formed");
    assert_eq!(counts, [LOOK_AHEAD_MAX; 3]);
}

/// A registration of `count` topics, `<prefix>0` and so on.
fn with_topics(name: &str, prefix: &str, count: usize, counter: i64) -> Ask {
    let names: Vec<String> = (0..count)
        .map(|number| format!("{prefix}{number}"))
        .collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let addr = format!("{name}:10911");
    reg("c", name, 0, &addr, &topics(&names), (0, 1, counter))
}

/// What the writer is asked for by a request.
fn command(world: &mut World, ask: &Ask) -> Command {
    let command = world.process(1, ask);
    command.expect("a request that the writer executes")
}

#[test]
fn no_more_groups_and_addresses_are_taken_than_there_may_be_and_those_there_are_register_again() {
    let mut world = World::new();
    let group = |number: usize| reg("c", &format!("b{number}"), 0, "x:1", &[], (0, 1, 1));
    let Command::Register(to, broker) = command(&mut world, &group(0)) else {
        panic!("a registration")
    };
    for number in 0..GROUPS_MAX {
        let mut broker = broker.clone();
        broker.broker_name = format!("b{number}").into();
        broker.broker_addr = format!("x:{number}").into();
        world.apply_one(Command::Register(to, broker));
    }
    world.end_batch();
    assert_eq!(world.snapshot.counts(), (0, GROUPS_MAX, GROUPS_MAX));

    let refused = world.send(900, &group(GROUPS_MAX).ext("brokerAddr", "y:1"));
    assert_eq!(refused.code, 1);
    let remark = refused.remark.expect("why");
    assert!(
        remark.contains(&format!("{GROUPS_MAX} broker groups")),
        "{remark}"
    );
    assert_eq!(world.code(&group(7).ext("brokerAddr", "x:7")), 0);
    assert_eq!(world.code(&unreg("c", "b8", 0, "x:8")), 0);
    assert_eq!(world.code(&group(GROUPS_MAX).ext("brokerAddr", "y:1")), 0);

    // The same broker at one address after the other: each stays live.
    let live = world.snapshot.counts().2;
    for number in live..LIVE_BROKERS_MAX {
        let mut broker = broker.clone();
        broker.broker_addr = format!("z:{number}").into();
        world.apply_one(Command::Register(to, broker));
    }
    world.end_batch();
    assert_eq!(world.snapshot.counts().2, LIVE_BROKERS_MAX);
    let refused = world.send(900, &group(0).ext("brokerAddr", "y:2"));
    assert_eq!(refused.code, 1);
    let remark = refused.remark.expect("why");
    assert!(
        remark.contains(&format!("{LIVE_BROKERS_MAX} live addresses")),
        "{remark}"
    );
    assert_eq!(world.code(&group(7).ext("brokerAddr", "x:7")), 0);
    assert_eq!(world.code(&unreg("c", "b9", 0, "x:9")), 0);
    assert_eq!(world.code(&group(0).ext("brokerAddr", "y:2")), 0);
}

#[test]
fn a_topics_name_of_a_megabyte_leaves_with_its_broker() {
    let mut world = World::new();
    let long = "t".repeat(1024 * 1024);
    let broker = reg("c", "b", 0, "x:1", &topics(&[&long, "u"]), (0, 1, 1));
    let kept = measure(|| {
        assert_eq!(world.send(1, &broker).code, 0);
        assert!(world.route(&long).is_some());
        world.close(1);
    });
    assert_eq!(world.snapshot.counts(), (0, 0, 0));
    assert!(kept.bytes_max > 1024 * 1024);
    assert!(kept.bytes_current < 100 * 1024, "{kept:?}");
}

#[test]
fn topics_and_groups_that_come_and_go_leave_no_more_behind_than_the_first() {
    let mut world = World::new();
    // The same names, so that they lead to the same leaves of the tables, which stay.
    let mut round = || {
        let kept = measure(|| {
            for broker in 0..10 {
                let name = format!("b{broker}");
                world.send(1, &with_topics(&name, &format!("{name}-"), 100, 1));
            }
            world.close(1);
        });
        assert_eq!(world.snapshot.counts(), (0, 0, 0));
        kept.bytes_current
    };
    let first = round();
    // Between two sweeps of what is shared, some rounds' lists are there.
    let later: i64 = (0..30).map(|_| round()).sum();
    assert!(later.abs() < first / 10, "{first} {later}");
}

/// Bytes that the writer allocates to execute a request, with a broker of `own` topics and another of `others`.
fn cost(own: usize, others: usize, request: &Ask) -> u64 {
    let mut world = World::new();
    world.send(1, &with_topics("s", "S", others, 1));
    world.send(2, &with_topics("b", "T", own, 1));
    // Something to rebuild and sweep comes at once, and not in the measurement.
    world.send(2, &with_topics("b", "T", own, 2));
    let command = command(&mut world, request);
    let cost = measure(|| {
        world.apply_one(command);
        drop(world.end_batch());
    });
    cost.bytes_total
}

#[test]
fn a_departure_and_another_permission_cost_a_step_for_each_topic_of_the_broker() {
    let requests = [
        unreg("c", "b", 0, "b:10911"),
        ask(205).ext("brokerName", "b"),
    ];
    for request in requests {
        let base = cost(1000, 1000, &request);
        let twice = cost(2000, 1000, &request);
        assert!(twice < base * 5 / 2, "{base} {twice} {request:?}");
        let beside_many = cost(1000, 8000, &request);
        assert!(beside_many < base * 2, "{base} {beside_many} {request:?}");
    }
}

#[test]
fn a_broker_more_of_a_topic_costs_a_step_for_each_that_has_it() {
    let cost = |holders: usize| {
        let mut world = World::new();
        for number in 0..holders {
            world.send(1, &with_topics(&format!("b{number}"), "T", 2, 1));
        }
        let command = command(&mut world, &with_topics("new", "T", 2, 1));
        let cost = measure(|| {
            world.apply_one(command);
            drop(world.end_batch());
        });
        cost.bytes_total
    };
    let (base, twice) = (cost(500), cost(1000));
    assert!(twice < base * 5 / 2, "{base} {twice}");
}

#[test]
fn the_marks_of_a_huge_registration_are_not_kept_and_those_of_a_usual_one_are() {
    for (count, is_kept) in [(1000, true), (40_000, false)] {
        let mut world = World::new();
        let broker = with_topics("b", "T", count, 1);
        world.send(1, &broker);
        world.send(1, &broker);
        let again = command(&mut world, &broker);
        let cost = measure(|| {
            world.apply_one(again);
            drop(world.end_batch());
        });
        let marks_len = 8 * u64::try_from(count).expect("a count");
        assert_eq!(cost.bytes_max < marks_len, is_kept, "{count}: {cost:?}");
    }
}

#[test]
fn routes_at_hand_take_no_more_than_a_megabyte_however_many_there_are() {
    // Many lists of a few brokers, and a few of which each is long.
    for (brokers, lists) in [(6, 1500), (40, 300)] {
        let mut world = World::new();
        // No two topics share a list, since each has a number of queues of its own.
        let table: Vec<_> = (0..lists)
            .map(|number| (format!("T{number}"), 6, number + 1))
            .collect();
        for number in 0..brokers {
            let (name, addr) = (format!("broker-{number}"), format!("10.0.0.{number}:10911"));
            let broker = reg("c", &name, 0, &addr, &table, (0, 1, 1));
            assert_eq!(world.send(1, &broker).code, 0);
        }
        let frames: Vec<_> = table
            .iter()
            .map(|(topic, ..)| route(topic).frame())
            .collect();
        let snapshot = world.snapshot.clone();
        world.send(1, &route("T0"));
        let mut written = 0;
        let kept = measure(|| {
            let mut out = Vec::new();
            for frame in &frames {
                let request = RemotingCommand::decode(frame).expect("well-formed");
                for _ in 0..3 {
                    out.clear();
                    let found = look_ahead(std::slice::from_ref(&request), &snapshot)[0];
                    world.execute(conn(1), &request, found, &mut out);
                }
                written += out.len();
            }
        });
        let bound = 256 * (4096 + 64);
        assert!(kept.bytes_current <= bound, "{brokers} brokers: {kept:?}");
        assert!(written > 256 * 4096, "more was asked for: {written}");
    }
}

/// A writer and all that it is wired to, of which no mailbox but those of commands and replies has room for two.
struct Office {
    writer: Writer<(), Unparker>,
    commands: Sender<Command, Unparker>,
    inbox: Receiver<Command, Unparker>,
    replies: Receiver<Reply, Unparker>,
    orders: Receiver<Order<()>, Unparker>,
    notices: Receiver<Notice, Unparker>,
    _persist_jobs: Receiver<PersistJob, Unparker>,
    _snapshots: Source<RouteSnapshot>,
}

impl Office {
    /// With this properties text, for so many commands at once.
    fn new(properties: &str, commands_max: usize, now: Timestamp) -> Self {
        let mut config = Config::defaults(&Environment::default());
        let findings = config.load_file("test.properties", properties.as_bytes());
        assert!(findings.is_empty(), "{findings:?}");
        let registry = Registry::new(config, KvTable::default(), 42, now);
        let (publisher, _snapshots) = publication(registry.initial_snapshot());
        let (_parker, waker) = parker();
        let (commands, inbox) = mailbox(commands_max, waker.clone());
        let (reply_door, replies) = mailbox(commands_max, waker.clone());
        let (order_door, orders) = mailbox(1, waker.clone());
        let (persist_jobs, _persist_jobs) = mailbox(1, waker.clone());
        let (notice_door, notices) = mailbox(1, waker);
        let doors = vec![WorkerDoor {
            replies: reply_door,
            orders: order_door,
        }];
        let errands = Errands {
            notices: notice_door,
            persist_jobs,
        };
        Self {
            writer: Writer::new(registry, publisher, doors, errands, now),
            commands,
            inbox,
            replies,
            orders,
            notices,
            _persist_jobs,
            _snapshots,
        }
    }

    fn send(&self, command: Command) {
        self.commands.send(command).expect("it has room");
    }

    fn turn(&mut self, now: Timestamp) -> Turned {
        self.writer.turn(&mut self.inbox, &Flag::new(), now)
    }

    /// How many commands are answered.
    fn answered(&mut self) -> usize {
        self.replies.drain(usize::MAX, drop).count
    }

    /// The connections that the worker is told to close.
    fn closes(&mut self) -> Vec<ConnectionId> {
        let mut closes = Vec::new();
        self.orders.drain(usize::MAX, |order| {
            let Order::Close(connection) = order else {
                panic!("{order:?}")
            };
            closes.push(connection);
        });
        closes
    }
}

#[test]
fn the_first_answers_of_a_storm_leave_before_its_last_command_is_executed() {
    let storm = WRITER_DRAIN_MAX + 10;
    let mut world = World::new();
    let one = command(&mut world, &ask(205).ext("brokerName", "b"));
    let mut office = Office::new("", storm, world.now);
    for _ in 0..storm {
        office.send(one.clone());
    }

    for count in [WRITER_DRAIN_MAX, 10] {
        let turned = office.turn(world.now);

        let next = Next::Turn;
        assert_eq!(
            turned,
            Turned {
                commands: count,
                next
            }
        );
        assert_eq!(office.answered(), count);
    }
}

#[test]
fn a_notice_that_the_notifier_has_no_room_for_is_dropped_and_nobody_waits() {
    let mut world = World::new();
    let mut office = Office::new("notifyMinBrokerIdChanged=true", 10, world.now);
    for id in [3, 2, 1, 0] {
        let addr = format!("x:{id}");
        let member = reg("c", "b", id, &addr, &topics(&["A", "B"]), (0, 1, 1));
        office.send(command(
            &mut world,
            &member.ext("enableActingMaster", "true"),
        ));
    }

    office.turn(world.now);

    assert_eq!(office.answered(), 4);
    assert_eq!(office.notices.drain(usize::MAX, drop).count, 1);
}

#[test]
fn closes_that_wait_for_a_worker_are_dropped_if_their_brokers_are_back_by_their_turn() {
    let mut world = World::new();
    let mut office = Office::new("", 10, world.now);
    let mut register = |office: &Office, number: u32| {
        let (name, addr) = (format!("b{number}"), format!("x:{number}"));
        let broker = reg("c", &name, 0, &addr, &topics(&["A", "B"]), (0, 1, 1));
        let broker = broker.ext("heartbeatTimeoutMillis", 1000);
        let command = world.process(number, &broker);
        office.send(command.expect("a command"));
    };
    let scan_interval = Duration::from_secs(5);
    let mut now = Timestamp::from_millis(1_000);
    let rounds: [&[u32]; 7] = [&[1, 2, 3], &[1, 2, 3], &[1], &[1], &[1], &[3], &[1, 2, 3]];
    for returned in rounds {
        for number in returned {
            register(&office, *number);
        }
        office.turn(now);
        office.answered();
        now = now.after(scan_interval);
        // They fall silent, and the worker takes the first of its orders at most.
        office.turn(now);
    }

    let closes: Vec<_> = iter::from_fn(|| {
        let close = office.closes().pop();
        office.turn(now);
        close
    })
    .collect();
    let (in_mailbox, waited) = closes.split_first().expect("it is told");
    assert!(waited.contains(in_mailbox), "it fell silent again");
    let waited: BTreeSet<_> = waited.iter().collect();
    assert_eq!((closes.len(), waited.len()), (1 + 3, 3));
}

/// Sends a change that is written to disk as if from one connection each, and writes nothing.
fn send_and_hold(world: &mut World, ask: &Ask) {
    world.hold_persists = true;
    let command = command(world, ask);
    world.apply([command]);
}

/// Lets all writes succeed that are out, and those that wait for them. The codes of the answers.
fn let_go(world: &mut World) -> Vec<i64> {
    world.hold_persists = false;
    for (ticket, _) in std::mem::take(&mut world.persists) {
        world.apply([Command::Persisted(ticket, Ok(()))]);
    }
    iter::from_fn(|| world.take_reply(1))
        .map(|reply| reply.code)
        .collect()
}

fn put(value: &str) -> Ask {
    ask(100)
        .ext("namespace", "n")
        .ext("key", "k")
        .ext("value", value)
}

#[test]
fn a_kv_change_more_than_may_wait_for_the_disk_is_told_that_the_system_is_busy() {
    let mut world = World::new();
    // The first is out.
    for number in 0..=KV_WAITING_MAX {
        send_and_hold(&mut world, &put(&number.to_string()));
    }
    assert_eq!(world.take_reply(1), None);

    send_and_hold(&mut world, &put("more"));

    assert_eq!(world.take_reply(1).expect("an answer").code, 2);
    assert_eq!(let_go(&mut world), [0].repeat(1 + KV_WAITING_MAX));
    assert_eq!(world.code(&put("more")), 0);
}

#[test]
fn a_byte_more_of_kv_changes_than_may_wait_for_the_disk_is_told_that_the_system_is_busy() {
    const COUNT: usize = 8;
    let key = "k".repeat(KV_WAITING_LEN_MAX / COUNT - "n".len());
    // It makes the table no longer, which has a bound of its own.
    let delete = |key: &str| {
        let ask = ask(102).ext("namespace", "n").ext("key", key);
        ask.header(Header::RocketMq)
    };
    for more in [0, 1] {
        let mut world = World::new();
        send_and_hold(&mut world, &put("out"));
        for _ in 1..COUNT {
            send_and_hold(&mut world, &delete(&key));
        }

        send_and_hold(&mut world, &delete(&format!("{key}{}", "k".repeat(more))));

        let busy = world.take_reply(1).map(|reply| reply.code);
        assert_eq!(busy, (more > 0).then_some(2));
        assert_eq!(let_go(&mut world), [0].repeat(1 + COUNT - more));
    }
}

/// A server with a KV table of two namespaces with `count` keys each.
fn with_kv_keys(count: usize) -> World {
    let keys: BTreeMap<_, _> = (0..count)
        .map(|number| (format!("k{number:05}"), "value".to_owned()))
        .collect();
    let namespaces = ["n", "ORDER_TOPIC_CONFIG"].map(|name| (name.to_owned(), keys.clone()));
    World::with_kv("", KvTable::from_plain(namespaces.into()))
}

/// Bytes that the writer allocates to execute a request, from its batch to the publication of what came of it.
fn kv_cost(world: &mut World, request: &Ask) -> u64 {
    let command = command(world, request);
    let mut persists = Vec::new();
    let cost = measure(|| {
        world.apply_one(command);
        persists = world.end_batch();
        for effect in &persists {
            if let Effect::Persist(ticket, _) = effect {
                world.apply_one(Command::Persisted(*ticket, Ok(())));
            }
        }
        persists.extend(world.end_batch());
    });
    let replies = persists.iter().filter(|effect| match effect {
        Effect::Reply(_, response) => response
            .as_ref()
            .is_some_and(|it| it.code == ResponseCode::Success),
        Effect::Close(..) | Effect::Notify { .. } | Effect::Persist(..) => false,
    });
    assert_eq!(replies.count(), 1, "{persists:?}");
    cost.bytes_total
}

#[test]
fn a_kv_change_costs_the_writer_no_more_when_the_table_is_long() {
    let key = |code, namespace, key| ask(code).ext("namespace", namespace).ext("key", key);
    let changes = [
        key(100, "n", "k00500").ext("value", "other"),
        key(100, "n", "new").ext("value", "value"),
        key(100, "n", "k00500").ext("value", "value"),
        key(100, "elsewhere", "new").ext("value", "value"),
        key(100, "ORDER_TOPIC_CONFIG", "new").ext("value", "value"),
        key(102, "n", "k00500"),
        key(102, "n", "unknown"),
    ];
    for change in changes {
        let [short, long] = [1_000, 20_000].map(|count| kv_cost(&mut with_kv_keys(count), &change));
        assert!(long < short * 3 / 2, "{short} {long} {change:?}");
    }
}

#[test]
fn the_order_topics_that_registrations_are_answered_with_are_written_once() {
    let mut world = with_kv_keys(1_000);
    let broker = with_topics("b", "T", 2, 1);
    let list = world.send(1, &ask(219).ext("namespace", "ORDER_TOPIC_CONFIG"));
    assert_eq!(world.send(1, &broker).body, list.body);
    let again = kv_cost(&mut world, &broker);
    assert!(again < 4096, "{again} for {}", list.body.len());

    let put = ask(100).ext("key", "new").ext("value", "value");
    let order = put.ext("namespace", "ORDER_TOPIC_CONFIG");
    assert_eq!(world.code(&order), 0);
    let list = world.send(1, &ask(219).ext("namespace", "ORDER_TOPIC_CONFIG"));
    assert_eq!(world.send(1, &broker).body, list.body);
}

#[test]
fn a_long_kv_list_is_written_once_as_long_as_it_is_the_same() {
    let mut world = with_kv_keys(1_000);
    let (mut publisher, snapshots) = publication(Arc::clone(&world.snapshot));
    let mut helper = Helper::new(snapshots.subscribe());
    let mut cost_of_list = |world: &World, namespace: &str| {
        let list = ask(219).ext("namespace", namespace);
        let job = Job {
            connection: conn(1),
            peer: ([127, 0, 0, 1], 1).into(),
            go_away: false,
            frame: list.frame().into(),
        };
        let mut answer = Vec::new();
        let cost = measure(|| {
            let Done::Answer(pieces) = helper.execute(&job, world.now) else {
                panic!("a list is an answer")
            };
            answer.extend(pieces);
        });
        let count = answer.concat().iter().filter(|byte| **byte == b':').count();
        (cost.bytes_total > 16 * 1024, count)
    };
    let (is_written, count) = cost_of_list(&world, "n");
    assert!(is_written);
    assert_eq!(cost_of_list(&world, "n"), (false, count));

    // A new version of the tables that leaves the list as it is, and one that does not.
    world.send(1, &with_topics("b", "T", 2, 1));
    publisher.publish(Arc::clone(&world.snapshot));
    assert_eq!(cost_of_list(&world, "n"), (false, count));
    assert_eq!(world.code(&put("value")), 0);
    publisher.publish(Arc::clone(&world.snapshot));
    assert_eq!(cost_of_list(&world, "n"), (true, count + 1));
    assert_eq!(cost_of_list(&world, "n"), (false, count + 1));

    // Another of the same length.
    assert_eq!(cost_of_list(&world, "ORDER_TOPIC_CONFIG"), (true, count));
}

#[test]
fn a_configuration_update_more_than_may_wait_for_the_disk_is_told_that_the_system_is_busy() {
    let mut world = World::new();
    let update = |number: usize| ask(318).body(format!("waitSecondsForService={number}"));
    // The first is out.
    for number in 0..=CONFIG_WAITING_MAX {
        send_and_hold(&mut world, &update(100 + number));
    }
    assert_eq!(world.take_reply(1), None);

    send_and_hold(&mut world, &update(7));

    assert_eq!(world.take_reply(1).expect("an answer").code, 2);
    assert_eq!(let_go(&mut world), [0].repeat(1 + CONFIG_WAITING_MAX));
    assert_eq!(world.code(&update(7)), 0);
}

#[test]
fn of_very_many_keys_that_are_ignored_the_answer_tells_a_few() {
    let mut world = World::new();
    let keys: String = (0..5000).map(|number| format!("key{number}=1\n")).collect();
    let reply = world.send(1, &ask(318).body(keys));
    let remark = reply.remark.expect("what was ignored");
    let cut = remark.strip_suffix('…').expect("not all is told");
    assert!((CONFIG_REMARK_LEN_MAX - 4..=CONFIG_REMARK_LEN_MAX).contains(&cut.len()));
}

#[test]
fn a_broker_lives_by_the_latest_of_the_connections_that_heartbeat_for_it() {
    let mut world = World::new();
    world.send(1, &reg("c", "b", 0, "x:1", &topics(&["A", "B"]), (0, 1, 1)));
    let count = u32::try_from(BEATING_CONNECTIONS_MAX).expect("a small number");
    let strangers = 2..=2 + count;
    for stranger in strangers.clone() {
        world.send(stranger, &heartbeat("c", "b", "x:1"));
    }
    let carrying: Vec<u32> = strangers
        .filter(|stranger| world.registry.carries_brokers(conn(*stranger)))
        .collect();
    assert_eq!(carrying, Vec::from_iter(3..=2 + count));
}

#[test]
fn addresses_that_a_broker_has_left_behind_leave_with_their_connection() {
    let mut world = World::new();
    for number in 0..1000 {
        let broker = reg(
            "c",
            "b",
            0,
            &format!("x:{number}"),
            &topics(&["A", "B"]),
            (0, 1, 1),
        );
        let for_ever = broker.ext("heartbeatTimeoutMillis", i64::MAX);
        assert_eq!(world.send(1, &for_ever).code, 0);
    }
    let shown = world.addrs("A")["b"].values().cloned().collect::<Vec<_>>();
    assert_eq!(shown, ["x:999"]);
    assert_eq!(world.snapshot.counts(), (2, 1, 1000));

    world.close(1);

    assert_eq!(world.snapshot.counts(), (0, 0, 0));
}

#[test]
fn a_connection_remembers_the_latest_of_the_brokers_that_it_is_bound_to() {
    let mut world = World::new();
    let beat = |number: usize| heartbeat("c", &format!("b{number}"), &format!("x:{number}"));
    for number in 0..=KNOWN_BROKERS_MAX {
        let (name, addr) = (format!("b{number}"), format!("x:{number}"));
        world.send(
            1,
            &reg("c", &name, 0, &addr, &topics(&["A", "B"]), (0, 1, 1)),
        );
    }
    let mut binds = |number| world.process(2, &beat(number)).is_some();
    for number in 0..=KNOWN_BROKERS_MAX {
        assert!(binds(number), "the first heartbeat for broker {number}");
    }
    assert!(!binds(KNOWN_BROKERS_MAX) && !binds(1));
    assert!(binds(0), "it is forgotten");
}

/// What is logged meanwhile by this thread: each line's message.
pub(crate) fn log_lines(log: impl FnOnce()) -> Vec<String> {
    let mut file = tempfile::tempfile().unwrap();
    let subscriber = tracing_subscriber::fmt()
        .without_time()
        .with_writer(Arc::new(file.try_clone().unwrap()))
        .finish();
    // With one alone, what other threads log first would count as wanted by nobody.
    let _second = Dispatch::new(NoSubscriber::default());
    subscriber::with_default(subscriber, log);
    file.rewind().unwrap();
    let text = io::read_to_string(file).expect("lines are UTF-8");
    text.lines().map(str::to_owned).collect()
}

#[test]
fn of_the_topics_of_a_registration_a_few_are_logged_one_by_one() {
    for (count, has_sum) in [
        (TOPIC_LOG_LINES_MAX, false),
        (TOPIC_LOG_LINES_MAX + 1, true),
    ] {
        let mut world = World::new();
        for (counter, queues, of_one) in [(1, 4, "new topic registered,"), (2, 8, "topic changed,")]
        {
            let table: Vec<_> = (0..count)
                .map(|number| (format!("T{number}"), 6, queues))
                .collect();
            let broker = reg("c", "b", 0, "x:1", &table, (0, 1, counter));
            let lines = log_lines(|| assert_eq!(world.send(1, &broker).code, 0));
            let found = |text: &str| lines.iter().filter(|line| line.contains(text)).count();
            assert_eq!(found(of_one), TOPIC_LOG_LINES_MAX, "{lines:?}");
            assert_eq!(found("new topics registered,") == 1, has_sum, "{lines:?}");
        }
    }
}

#[test]
fn queue_data_and_lists_of_brokers_that_nothing_uses_take_no_room() {
    let mut world = World::new();
    // No two have the same number of queues, so each has queue data and a list of its own.
    let mut register = |queues| {
        let table = ["A", "B"].map(|name| (name.to_owned(), 6, queues));
        let broker = reg("c", "b", 0, "x:1", &table, (0, 1, i64::from(queues)));
        assert_eq!(world.send(1, &broker).code, 0);
    };
    (1..200).for_each(&mut register);
    let kept = measure(|| (200..3200).for_each(&mut register));
    // A hundred bytes for each of them would be more.
    assert!(kept.bytes_current < 100 * 1024, "{kept:?}");
}

#[test]
fn taking_a_topic_from_its_brokers_or_giving_it_to_them_costs_a_step_for_each_of_them() {
    let cost = |brokers: usize, is_given: bool| {
        let mut world = World::new();
        let names: Vec<String> = (0..brokers).map(|number| format!("b{number}")).collect();
        for name in &names {
            world.send(1, &with_topics(name, "T", 2, 1));
        }
        let entries: Vec<String> = names
            .iter()
            .map(|name| format!(r#"{{"brokerName":"{name}"}}"#))
            .collect();
        let body = format!(r#"{{"queueDatas":[{}]}}"#, entries.join(","));
        let request = if is_given {
            ask(217).ext("topic", "new").body(body)
        } else {
            ask(216).ext("topic", "T0")
        };
        let command = command(&mut world, &request);
        let cost = measure(|| {
            world.apply_one(command);
            drop(world.end_batch());
        });
        let topic = if is_given { "new" } else { "T0" };
        assert_eq!(world.route(topic).is_some(), is_given);
        cost.bytes_total
    };
    for is_given in [true, false] {
        let (base, twice) = (cost(250, is_given), cost(500, is_given));
        assert!(twice < base * 5 / 2, "{base} {twice} {is_given}");
    }
}

/// A table's cells that are in code quotes, with the text of their row.
fn quoted_in_tables(text: &str) -> Vec<(&str, &str)> {
    let rows = text.lines().filter(|line| line.starts_with('|'));
    rows.flat_map(|row| {
        row.split('`')
            .skip(1)
            .step_by(2)
            .map(move |cell| (cell, row))
    })
    .collect()
}

#[test]
fn every_test_and_constant_that_security_md_names_exists() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let text = fs::read_to_string(folder.join("SECURITY.md")).expect("a file of this repository");
    let sources = ["src", "tests"].into_iter().flat_map(tidy::sources);
    let code: String = sources
        .map(|path| fs::read_to_string(path).expect("a source file"))
        .collect();
    let is_of = |name: &str, of: fn(char) -> bool| {
        name.contains('_') && name.chars().all(|char| char == '_' || of(char))
    };
    let quoted = quoted_in_tables(&text);
    assert!(quoted.len() > 100, "the tables are found");
    for (name, row) in quoted {
        let is_constant = is_of(name, |char| char.is_ascii_uppercase());
        let is_test = is_of(name, |char| {
            char.is_ascii_lowercase() || char.is_ascii_digit()
        }) && name.matches('_').count() > 2;
        if is_constant && name != "SYSTEM_BUSY" {
            assert!(code.contains(&format!("const {name}:")), "{name}: {row}");
        }
        if is_test {
            assert!(code.contains(&format!("fn {name}(")), "{name}: {row}");
        }
    }
}
