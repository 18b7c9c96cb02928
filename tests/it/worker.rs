//! Orders of things in a worker's turn that once went wrong, or that no script of the simulator brings about, and how much one turn
//! takes on.

use std::{iter, sync::Arc, time::Duration};

use allocation_counter::measure;
use waypost::{
    connection::{StreamLimits, admission},
    ids::ConnectionId,
    limits::{
        ADMISSION_STALL_TIMEOUT, ANSWERED_PER_TURN_MAX, ANSWERS_KEPT_LEN, ENDINGS_PER_TURN_MAX,
        EVENTS_MAX, FRAME_LEN_MAX, HELPED_BODY_LEN, HELPED_COMPRESSED_LEN, HELPED_ENTRIES,
        LARGE_FRAME_LEN, ORDERS_MAX, READ_PER_TURN_MAX, READ_SCRATCH_LEN, STOP_FLUSH_TIMEOUT,
        UNSENT_LOW_WATER, WRITTEN_PER_TURN_MAX, WRITTEN_TOGETHER_LEN_MAX, WRITTEN_TOGETHER_MAX,
    },
    registry::{Command, KvTable},
    time::Timestamp,
    worker::{Event, Next, Readiness, message::Order},
};

use crate::{
    corpus::properties::rig::{Executed, Far, Rig, Sizes, Socket, line},
    world::{Ask, World, ask, read_reply, reg, topics},
};

const NOW: Timestamp = Timestamp::from_millis(1_000);
/// What a socket takes that is never full.
const ROOM: usize = 1 << 30;

fn rig() -> Rig {
    rig_of(&World::new(), sizes())
}

/// A worker whose unfinished large frames may hold so many bytes.
fn rig_with(unfinished_len_max: usize) -> Rig {
    let sizes = Sizes {
        unfinished_len_max,
        ..sizes()
    };
    rig_of(&World::new(), sizes)
}

/// A worker that knows what this server knows.
fn rig_of(world: &World, sizes: Sizes) -> Rig {
    Rig::new(Arc::clone(&world.snapshot), sizes)
}

fn sizes() -> Sizes {
    Sizes {
        credits: 10,
        commands: 10,
        orders: 100,
        limits: StreamLimits {
            frame_len_max: FRAME_LEN_MAX,
            high_water: 64 * 1024,
            low_water: 32 * 1024,
        },
        unfinished_len_max: admission::share(1, FRAME_LEN_MAX),
    }
}

fn order(rig: &Rig, order: Order<Socket>) {
    rig.order(order).expect("there is room");
}

/// Hands a connection to the worker, which has it after its next turn.
fn connect(rig: &Rig, room: usize) -> Far {
    let (far, socket) = line(room);
    order(rig, Order::Serve(socket, ([127, 0, 0, 1], 1).into()));
    far
}

fn id(far: &Far) -> ConnectionId {
    far.id().expect("the worker has it")
}

/// A request of about `len` bytes that is answered with few.
fn request(len: usize) -> Vec<u8> {
    ask(1001).ext("padding", "-".repeat(len)).wire()
}

#[test]
fn a_slot_that_is_closed_and_taken_again_while_it_waits_is_served_once() {
    let mut rig = rig();
    let peers: Vec<Far> = (0..40).map(|_| connect(&rig, ROOM)).collect();
    rig.poll_and_turn(NOW);
    // More peers go at once than are seen off in one turn, and the last of them is closed before it is its turn.
    peers.iter().for_each(Far::shatter);
    let last = id(&peers[39]);
    order(&rig, Order::Close(last));
    let next = connect(&rig, ROOM);
    rig.poll_and_turn(NOW);
    assert_eq!(id(&next).slot, last.slot, "the slot is taken again");
    let requests = 2 * READ_PER_TURN_MAX / 10_000;
    (0..requests).for_each(|_| next.deliver(&request(10_000)));

    let executed = rig.poll_and_turn(NOW).len();

    assert!((1..=READ_PER_TURN_MAX / 10_000 + 10).contains(&executed));
    let mut all = executed;
    while rig.is_awake(NOW) {
        all += rig.poll_and_turn(NOW).len();
    }
    assert_eq!(all, requests);
}

#[test]
fn what_a_poll_tells_of_a_slots_old_tenant_is_nothing_to_the_next() {
    let mut rig = rig();
    let old = connect(&rig, ROOM);
    rig.poll_and_turn(NOW);
    old.shatter();
    order(&rig, Order::Close(id(&old)));
    let next = connect(&rig, ROOM);
    rig.poll_and_turn(NOW);
    assert_eq!(id(&next).slot, id(&old).slot, "the slot is taken again");

    next.deliver(&request(10));
    rig.poll_and_turn(NOW);

    assert!(old.is_closed() && !next.is_closed());
    assert_eq!(read_reply(&next.take_sent()).code, 3);
}

/// As many events as a turn takes, about slots that nobody has.
fn a_full_poll() -> Vec<Event> {
    let event = |slot| Event::Socket(slot, Readiness::default());
    (0..u32::try_from(EVENTS_MAX).expect("a small number"))
        .map(|number| event(1000 + number))
        .collect()
}

#[test]
fn deadlines_are_met_after_a_round_of_full_polls_and_not_before() {
    let mut rig = rig();
    let silent = connect(&rig, ROOM);
    let heard = connect(&rig, ROOM);
    rig.poll_and_turn(NOW);
    let later = NOW.after(Duration::from_secs(1000));
    heard.deliver(&request(10));

    rig.turn(later, later, a_full_poll());
    assert!(!silent.is_closed() && !heard.is_closed());
    // What was sent before the process was stopped comes with the second.
    let mut second = rig.poll();
    second.extend(a_full_poll().split_off(second.len()));
    rig.turn(later, later, second);

    assert!(silent.is_closed() && !heard.is_closed());
}

#[test]
fn who_stalls_is_judged_by_what_had_arrived_before_the_last_poll() {
    let frame = request(2 * LARGE_FRAME_LEN);
    let (begun, rest) = frame.split_at(LARGE_FRAME_LEN + 1000);
    for goes_on in [true, false] {
        // One at a time.
        let mut rig = rig_with(0);
        let (first, second) = (connect(&rig, ROOM), connect(&rig, ROOM));
        rig.poll_and_turn(NOW);
        for peer in [&first, &second] {
            peer.deliver(begun);
            rig.poll_and_turn(NOW);
        }
        let asked_at = NOW.after(Duration::from_secs(1));
        let later = NOW.after(ADMISSION_STALL_TIMEOUT);

        let events = rig.poll();
        if goes_on {
            first.deliver(rest);
        }
        rig.turn(asked_at, later, events);
        assert!(
            !first.is_closed(),
            "the process was stopped behind the poll"
        );
        rig.poll_and_turn(later);

        assert_eq!(first.is_closed(), !goes_on);
        second.deliver(rest);
        rig.poll_and_turn(later);
        assert_eq!(read_reply(&second.take_sent()).code, 3);
    }
}

#[test]
fn a_large_frame_behind_another_has_a_time_of_its_own() {
    let frame = request(2 * LARGE_FRAME_LEN);
    let (begun, rest) = frame.split_at(LARGE_FRAME_LEN + 1000);
    // One at a time.
    let mut rig = rig_with(0);
    let (first, second) = (connect(&rig, ROOM), connect(&rig, ROOM));
    rig.poll_and_turn(NOW);
    first.deliver(begun);
    rig.poll_and_turn(NOW);
    // Late, but nobody waits for its place. The next one begins in the same piece.
    let later = NOW.after(2 * ADMISSION_STALL_TIMEOUT);
    first.deliver(rest);
    first.deliver(&frame[..100]);
    rig.poll_and_turn(later);
    assert_eq!(read_reply(&first.take_sent()).code, 3);

    second.deliver(begun);
    rig.poll_and_turn(later);
    assert!(!first.is_closed(), "its frame has just begun");

    for (peer, rest) in [(&first, &frame[100..]), (&second, rest)] {
        peer.deliver(rest);
        rig.poll_and_turn(later);
        rig.poll_and_turn(later);
        assert_eq!(read_reply(&peer.take_sent()).code, 3);
    }
}

#[test]
fn answers_that_a_broken_connection_leaves_behind_reach_nobody_else() {
    let mut rig = rig();
    let (broken, next) = (connect(&rig, ROOM), connect(&rig, ROOM));
    rig.poll_and_turn(NOW);
    for (peer, opaque) in [(&broken, 1), (&next, 2)] {
        peer.deliver(&ask(1001).opaque(opaque).wire());
    }
    broken.shatter();
    next.finish();

    let executed = rig.poll_and_turn(NOW);

    let executed: Vec<i32> = executed.iter().map(|request| request.opaque).collect();
    assert_eq!(executed, [1, 2], "the broken one is served first");
    assert_eq!(read_reply(&next.take_sent()).opaque, 2);
}

#[test]
fn a_socket_that_cannot_be_watched_is_closed_and_its_slot_serves_the_next() {
    let mut rig = rig();
    rig.fail_registrations(1);
    let failed = connect(&rig, ROOM);
    let next = connect(&rig, ROOM);
    next.deliver(&request(10));

    rig.poll_and_turn(NOW);
    rig.poll_and_turn(NOW);

    assert!(failed.is_closed());
    assert_eq!(id(&next).slot, id(&failed).slot);
    assert_eq!(read_reply(&next.take_sent()).code, 3);
}

#[test]
fn a_stop_waits_for_a_peer_to_take_its_answers_and_for_so_long_only() {
    for takes in [true, false] {
        let mut rig = rig();
        let peer = connect(&rig, 1);
        peer.deliver(&request(10));
        rig.poll_and_turn(NOW);
        rig.poll_and_turn(NOW);
        order(&rig, Order::Stop);

        rig.poll_and_turn(NOW);

        let by = NOW.after(STOP_FLUSH_TIMEOUT);
        assert_eq!(rig.next(), Next::Wait(Some(by)));
        let mut moment = by;
        if takes {
            peer.make_room(ROOM);
            moment = NOW;
        }
        rig.poll_and_turn(moment);
        assert_eq!(rig.next(), Next::End, "the peer takes its answer: {takes}");
        rig.close_all();
        assert!(peer.is_closed());
    }
}

#[test]
fn a_worker_that_stops_closes_nobody_for_a_silence_that_it_does_not_hear() {
    let frame = request(2 * LARGE_FRAME_LEN);
    let begun = &frame[..LARGE_FRAME_LEN + 1000];
    // One at a time, and the first one's answer does not fit into its socket.
    let mut rig = rig_with(0);
    let (first, second) = (connect(&rig, 1), connect(&rig, ROOM));
    rig.poll_and_turn(NOW);
    first.deliver(&request(10));
    for peer in [&first, &second] {
        peer.deliver(begun);
        rig.poll_and_turn(NOW);
    }
    let stalled = NOW.after(ADMISSION_STALL_TIMEOUT);
    let before = NOW.after(ADMISSION_STALL_TIMEOUT - Duration::from_millis(1));
    order(&rig, Order::Stop);
    rig.poll_and_turn(before);

    rig.poll_and_turn(stalled);

    assert!(!first.is_closed(), "its answer is not written yet");
    first.make_room(ROOM);
    rig.poll_and_turn(stalled);
    assert_eq!(read_reply(&first.take_sent()).code, 3);
}

#[test]
fn the_writer_is_told_of_a_brokers_end_unless_the_server_stops() {
    for stops in [false, true] {
        let mut rig = rig();
        let broker = connect(&rig, ROOM);
        broker.deliver(&reg("c", "b", 0, "x:1", &topics(&["A", "B"]), (0, 1, 1)).wire());
        rig.poll_and_turn(NOW);
        rig.poll_and_turn(NOW);
        let registers = rig.next_command();
        assert!(matches!(registers, Some(Command::Register(..))));
        if stops {
            order(&rig, Order::Stop);
        }
        order(&rig, Order::Close(id(&broker)));

        rig.poll_and_turn(NOW);

        assert!(broker.is_closed());
        let told = matches!(rig.next_command(), Some(Command::ConnectionClosed(_)));
        assert_eq!(told, !stops);
    }
}

#[test]
fn the_writer_is_told_of_a_connections_end_behind_the_registration_that_the_helper_reads() {
    let mut rig = rig();
    let broker = connect(&rig, ROOM);
    let small = reg("c", "b", 0, "x:1", &topics(&["A", "B"]), (0, 1, 1));
    let names: Vec<String> = (0..1000).map(|number| format!("T{number}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let large = reg("c", "b", 0, "x:1", &topics(&names), (0, 2, 2));
    broker.deliver(&small.wire());
    broker.deliver(&large.wire());
    broker.finish();
    rig.poll_and_turn(NOW);
    rig.poll_and_turn(NOW);
    assert!(matches!(rig.next_command(), Some(Command::Register(..))));

    assert!(rig.next_command().is_none(), "it has not executed all");
    assert!(rig.help(NOW).is_some());
    rig.poll_and_turn(NOW);

    assert!(matches!(rig.next_command(), Some(Command::Register(..))));
    assert!(matches!(
        rig.next_command(),
        Some(Command::ConnectionClosed(_))
    ));
    assert!(rig.next_command().is_none());
}

/// A server with one KV entry, of a value of so many bytes.
fn with_value(len: usize) -> World {
    let mut world = World::new();
    assert_eq!(world.code(&entry(100).ext("value", "v".repeat(len))), 0);
    world
}

/// Asks for the value of [`with_value`], or for something else about its entry.
fn entry(code: i32) -> Ask {
    ask(code).ext("namespace", "n").ext("key", "k")
}

/// How long the answer to a request is.
fn answer_len(world: &World, request: &[u8]) -> usize {
    let mut rig = rig_of(world, sizes());
    let peer = connect(&rig, ROOM);
    peer.deliver(request);
    while rig.is_awake(NOW) {
        rig.poll_and_turn(NOW);
    }
    peer.take_sent().len()
}

#[test]
fn a_peer_that_takes_its_answers_at_once_gets_a_share_of_them_in_each_turn() {
    let world = with_value(20_000);
    let request = entry(101).wire();
    let answer_len = answer_len(&world, &request);
    let mut rig = rig_of(&world, sizes());
    let peer = connect(&rig, ROOM);
    rig.poll_and_turn(NOW);
    // They come with one read.
    let count = READ_SCRATCH_LEN / request.len();
    peer.deliver(&request.repeat(count));
    let mut all = 0;

    while rig.is_awake(NOW) {
        rig.poll_and_turn(NOW);
        let sent = peer.take_sent().len();
        assert!(sent < 2 * ANSWERED_PER_TURN_MAX, "{sent} bytes in a turn");
        all += sent;
    }

    assert_eq!(all, count * answer_len);
    assert!(all > 10 * ANSWERED_PER_TURN_MAX, "it takes many turns");
}

#[test]
fn a_long_answer_that_was_kept_is_written_in_as_many_turns_as_it_takes() {
    let world = with_value(1024 * 1024);
    let request = entry(101).wire();
    let answer_len = answer_len(&world, &request);
    let mut rig = rig_of(&world, sizes());
    let peer = connect(&rig, 0);
    peer.deliver(&request);
    while rig.is_awake(NOW) {
        rig.poll_and_turn(NOW);
    }
    peer.make_room(ROOM);
    let mut all = 0;

    while rig.is_awake(NOW) {
        rig.poll_and_turn(NOW);
        let sent = peer.take_sent().len();
        // What is left below the low-water mark goes along.
        let max = WRITTEN_PER_TURN_MAX + UNSENT_LOW_WATER;
        assert!(sent <= max, "{sent} bytes in a turn");
        all += sent;
    }

    assert_eq!(all, answer_len);
}

/// Bytes of answers, each of `answer_len`, that waited to be written when each of the requests was executed.
fn unwritten(executed: &[Executed], answer_len: usize) -> impl Iterator<Item = usize> {
    (0..)
        .zip(executed)
        .map(move |(before, request)| before * answer_len - request.sent)
}

#[test]
fn answers_wait_for_those_of_a_few_other_connections_and_for_few_bytes() {
    for (value_len, together) in [
        (10, WRITTEN_TOGETHER_MAX),
        // Two are more than may wait.
        (WRITTEN_TOGETHER_LEN_MAX / 2, 2),
    ] {
        let world = with_value(value_len);
        let request = entry(101).wire();
        let answer_len = answer_len(&world, &request);
        let mut rig = rig_of(&world, sizes());
        let peers: Vec<Far> = (0..20).map(|_| connect(&rig, ROOM)).collect();
        rig.poll_and_turn(NOW);
        peers.iter().for_each(|peer| peer.deliver(&request));

        let executed = rig.poll_and_turn(NOW);

        assert_eq!(executed.len(), peers.len(), "in one turn");
        let most = unwritten(&executed, answer_len).max();
        assert_eq!(most, Some((together - 1) * answer_len));
    }
}

#[test]
fn the_buffer_of_a_long_answer_is_not_kept_for_short_ones() {
    let mut rig = rig_of(&with_value(4 * ANSWERS_KEPT_LEN), sizes());
    let (long, short) = (connect(&rig, ROOM), connect(&rig, ROOM));
    let mut ask_for = |peer: &Far, request: &[u8]| {
        peer.deliver(request);
        while rig.is_awake(NOW) {
            rig.poll_and_turn(NOW);
        }
        peer.take_sent().len()
    };
    ask_for(&short, &request(10));

    let kept = measure(|| {
        assert!(ask_for(&long, &entry(101).wire()) > 4 * ANSWERS_KEPT_LEN);
    });

    let kept_max = i64::try_from(ANSWERS_KEPT_LEN + 1024).expect("a small number");
    assert!(kept.bytes_current < kept_max, "{kept:?}");
}

#[test]
fn of_many_connections_that_end_at_once_a_few_are_seen_off_in_each_turn() {
    let mut rig = rig();
    let peers: Vec<Far> = (0..2 * ENDINGS_PER_TURN_MAX + 1)
        .map(|_| connect(&rig, ROOM))
        .collect();
    rig.poll_and_turn(NOW);
    peers.iter().for_each(Far::shatter);

    let mut closed = Vec::new();
    while rig.is_awake(NOW) {
        rig.poll_and_turn(NOW);
        closed.push(peers.iter().filter(|peer| peer.is_closed()).count());
    }

    let max = ENDINGS_PER_TURN_MAX;
    assert_eq!(closed, [max, 2 * max, 2 * max + 1]);
}

#[test]
fn of_very_many_new_connections_the_last_is_taken_in_by_the_next_turn() {
    let sizes = Sizes {
        orders: ORDERS_MAX + 1,
        ..sizes()
    };
    let mut rig = rig_of(&World::new(), sizes);
    let peers: Vec<Far> = (0..=ORDERS_MAX).map(|_| connect(&rig, ROOM)).collect();
    let taken_in = || peers.iter().filter(|peer| peer.id().is_some()).count();

    rig.poll_and_turn(NOW);
    assert_eq!(taken_in(), ORDERS_MAX);
    assert!(rig.is_awake(NOW));
    rig.poll_and_turn(NOW);
    assert_eq!(taken_in(), ORDERS_MAX + 1);
}

/// Whether a worker gives a request to the helper.
fn is_helped(world: &World, request: &Ask) -> bool {
    let mut rig = rig_of(world, sizes());
    let peer = connect(&rig, ROOM);
    peer.deliver(&request.wire());
    let executed: usize =
        iter::from_fn(|| rig.is_awake(NOW).then(|| rig.poll_and_turn(NOW).len())).sum();
    let is_helped = rig.help(NOW).is_some();
    assert_eq!(executed, usize::from(!is_helped));
    is_helped
}

#[test]
fn registrations_that_are_longer_than_a_worker_reads_are_given_to_the_helper() {
    let world = World::new();
    let compressed = ask(103).ext("compressed", "true");
    for (request, len_max) in [
        (ask(103), HELPED_BODY_LEN),
        (ask(217), HELPED_BODY_LEN),
        (compressed, HELPED_COMPRESSED_LEN),
    ] {
        for (len, expected) in [(len_max, false), (len_max + 1, true)] {
            let request = request.clone().body(" ".repeat(len));
            assert_eq!(is_helped(&world, &request), expected, "{len} bytes");
        }
    }
}

#[test]
fn lists_that_are_longer_than_a_worker_writes_are_given_to_the_helper() {
    for (count, expected) in [(HELPED_ENTRIES, false), (HELPED_ENTRIES + 1, true)] {
        let names: Vec<String> = (0..count).map(|number| format!("T{number}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let mut world = World::new();
        world.send(1, &reg("c", "b", 0, "x:1", &topics(&names), (0, 1, 1)));
        for code in [106, 206, 224, 304, 311, 312, 313] {
            assert_eq!(is_helped(&world, &ask(code)), expected, "{code}: {count}");
        }
    }
    for (count, expected) in [(HELPED_ENTRIES, false), (HELPED_ENTRIES + 1, true)] {
        let keys = (0..count).map(|number| (format!("k{number}"), String::new()));
        let namespace = ("n".to_owned(), keys.collect());
        let world = World::with_kv("", KvTable::from_plain([namespace].into()));
        let list = ask(219).ext("namespace", "n");
        assert_eq!(is_helped(&world, &list), expected, "{count} keys");
    }
    let list_len = |value_len| with_value(value_len).send(1, &entry(219)).body.len();
    let value_len = HELPED_BODY_LEN - list_len(0);
    for (value_len, expected) in [(value_len, false), (value_len + 1, true)] {
        assert_eq!(is_helped(&with_value(value_len), &entry(219)), expected);
    }
}
