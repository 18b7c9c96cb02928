//! Bounds of `SECURITY.md` that no rule and no fault covers: each is reached, or what it costs is counted.

use std::{fs, path::Path, time::Duration};

use allocation_counter::measure;
use waypost::{
    config::{Config, Environment},
    connection::{Connection, StreamLimits, credit::Outstanding, each},
    limits::{FRAME_LEN_MAX, GROUPS_MAX, WRITER_DRAIN_MAX},
    processor::look_ahead,
    protocol::command::RemotingCommand,
    registry::{Command, KvTable, Registry},
    server::writer::{Errands, Turned, WorkerDoor, Writer},
    sync::{Flag, Unparker, mailbox, parker, publication},
    time::Timestamp,
    worker::Next,
};

use crate::{
    tidy,
    world::{Ask, World, ask, conn, reg, route, topics, unreg},
};

#[test]
fn f6_a_length_that_is_announced_costs_nothing_before_its_bytes_are_there() {
    let limits = StreamLimits {
        frame_len_max: FRAME_LEN_MAX,
        high_water: 64 * 1024,
        low_water: 32 * 1024,
    };
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
        let received = connection.handle_input(&announced, 0, &limits, now, &mut out, nobody);
        received.expect("nothing is wrong yet");
    });
    assert!(kept.bytes_max < 1024, "{kept:?}");
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
fn no_more_groups_are_taken_than_there_may_be_and_those_there_are_register_again() {
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

#[test]
fn the_first_answers_of_a_storm_leave_before_its_last_command_is_executed() {
    let storm = WRITER_DRAIN_MAX + 10;
    let mut world = World::new();
    let one = command(&mut world, &ask(205).ext("brokerName", "b"));
    let registry = Registry::new(
        Config::defaults(&Environment::default()),
        KvTable::default(),
        42,
        world.now,
    );
    let (publisher, _snapshots) = publication(registry.initial_snapshot());
    let (_parker, waker) = parker();
    let (commands, mut inbox) = mailbox(storm, waker.clone());
    let (replies, mut answers) = mailbox(storm, waker.clone());
    let (orders, _orders) = mailbox(1, waker.clone());
    let (persist_jobs, _jobs) = mailbox(1, waker.clone());
    let (notices, _notices) = mailbox(1, waker);
    let doors = vec![WorkerDoor { replies, orders }];
    let errands = Errands {
        notices,
        persist_jobs,
    };
    let mut writer: Writer<(), Unparker> =
        Writer::new(registry, publisher, doors, errands, world.now);
    for _ in 0..storm {
        commands.send(one.clone()).expect("it has room");
    }

    for count in [WRITER_DRAIN_MAX, 10] {
        let turned = writer.turn(&mut inbox, &Flag::new(), world.now);

        let next = Next::Turn;
        assert_eq!(
            turned,
            Turned {
                commands: count,
                next
            }
        );
        assert_eq!(answers.drain(storm, drop).count, count);
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
