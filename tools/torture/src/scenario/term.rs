//! SIGTERM under load: whoever is answered is answered right, the rest is closed; nothing acknowledged is lost.

use std::{
    thread,
    thread::JoinHandle,
    time::{Duration, Instant},
};

use parity::{
    Result,
    script::build::{Broker, broker, get, put, route, topics},
};
use rustix::process::Signal;

use crate::{
    Context,
    bystanders::joined,
    pause,
    peer::{Peer, field, routed},
    report::Record,
    server::{Home, Server},
};

/// Brokers that stay connected, each with a topic of its own.
const BROKERS: u32 = 8;

/// Clients that ask for those topics.
const CLIENTS: usize = 4;

/// Requests that a client has out.
const DEPTH: usize = 4;

/// The signal comes so long after the load has begun.
const MOMENT_MAX_MICROS: u64 = 40_000;

/// An orderly stop waits 3 s for peers that do not take their answers (`limits::STOP_FLUSH_TIMEOUT`); the rest is slack.
const STOP_MAX: Duration = Duration::from_secs(5);

/// A broker that closes its connection by itself does so within this time before or after the signal.
const CLOSE_WINDOW_MICROS: u64 = 5_000;

/// What one client saw until its connection ended.
#[derive(Debug, Default)]
struct Seen {
    answers: u64,
    unanswered: usize,
    wrong: Vec<String>,
    /// Routes of brokers that stayed connected that were answered with 17.
    vanished: u64,
    /// Routes of the broker that closed by itself that were answered with 17.
    missing: u64,
}

/// Sums over the rounds.
#[derive(Debug, Default)]
struct Tally {
    answers: u64,
    unanswered: usize,
    vanished: u64,
    missing: u64,
    rounds_missing: u64,
    writes: u64,
    stops: Vec<Duration>,
}

/// Stops so many servers.
pub(super) fn run(context: &Context, record: &mut Record) -> Result<()> {
    let mut random = fastrand::Rng::with_seed(context.seed);
    let home = Home::new(&context.binary, &[])?;
    let mut tally = Tally::default();
    for round in 0..context.size.count {
        let server = home.start()?;
        if round > 0 {
            check_kept(&server, &tally, record)?;
        }
        one_stop(server, &mut random, &mut tally, record)?;
    }
    record.figure("stops", context.size.count);
    record.figure("answers until the connections ended", tally.answers);
    record.figure("requests whose connection was closed", tally.unanswered);
    record.figure("acknowledged KV writes", tally.writes);
    record.figure("17 for a broker that stayed connected", tally.vanished);
    record.figure("17 for a broker that closed by itself", tally.missing);
    record.figure("stops with such an answer", tally.rounds_missing);
    tally.stops.sort();
    if let (Some(median), Some(longest)) =
        (tally.stops.get(tally.stops.len() / 2), tally.stops.last())
    {
        record.millis("from SIGTERM to the end, median", *median);
        record.millis("from SIGTERM to the end, longest", *longest);
    }
    Ok(())
}

fn topic_of(number: u32) -> String {
    format!("stop-topic-{number}")
}

fn broker_of(number: u32) -> Broker {
    let address = format!("127.0.0.1:{}", 12_000 + number);
    broker("stop", &format!("stop-{number}"), 0, &address)
}

/// A server under load, until it has ended.
fn one_stop(
    mut server: Server,
    random: &mut fastrand::Rng,
    tally: &mut Tally,
    record: &mut Record,
) -> Result<()> {
    let mut brokers = Vec::new();
    // One more, which will not stay.
    for number in 0..=BROKERS {
        let mut peer = Peer::open(server.address())?;
        let table = topics(1, &[&topic_of(number), "stop-shared"]);
        peer.must(&broker_of(number).register().body(table.body()))?;
        brokers.push(peer);
    }
    let quitter = brokers.pop();
    let mut clients = Vec::new();
    for _ in 0..CLIENTS {
        let peer = Peer::open(server.address())?;
        clients.push(thread::spawn(move || ask_to_the_end(peer)));
    }
    let writer = Peer::open(server.address())?;
    let first = tally.writes + 1;
    let writer = thread::spawn(move || write_to_the_end(writer, first));
    let beating: Vec<_> = brokers
        .into_iter()
        .zip(0..)
        .map(|(peer, number)| thread::spawn(move || beat_to_the_end(peer, number)))
        .collect();

    pause(Duration::from_micros(random.u64(0..MOMENT_MAX_MICROS)));
    let offset = Duration::from_micros(random.u64(0..CLOSE_WINDOW_MICROS));
    let quits_first = random.bool();
    if quits_first {
        drop(quitter);
        pause(offset);
        server.signal(Signal::TERM)?;
    } else {
        server.signal(Signal::TERM)?;
        pause(offset);
        drop(quitter);
    }
    let signalled = Instant::now();
    let end = server.wait(STOP_MAX * 4)?;
    let took = signalled.elapsed();
    record.expect(matches!(end, Some((Some(0), _))), || {
        format!("the server ended with {end:?}")
    });
    record.expect(took <= STOP_MAX, || format!("the stop took {took:?}"));
    tally.stops.push(took);
    tally.collect(clients, beating, writer, quits_first, record)
}

impl Tally {
    fn collect(
        &mut self,
        clients: Vec<JoinHandle<Result<Seen>>>,
        brokers: Vec<JoinHandle<Result<Seen>>>,
        writer: JoinHandle<Result<(u64, Seen)>>,
        quits_first: bool,
        record: &mut Record,
    ) -> Result<()> {
        let mut missing = 0;
        for thread in clients.into_iter().chain(brokers) {
            let seen = joined(thread)?;
            self.answers += seen.answers;
            self.unanswered += seen.unanswered;
            self.vanished += seen.vanished;
            missing += seen.missing;
            record.faults(seen.wrong);
        }
        let (writes, seen) = joined(writer)?;
        self.writes = writes;
        self.unanswered += seen.unanswered;
        record.faults(seen.wrong);
        // Who left before the server was told to stop has left: that is no consequence of the stop.
        if !quits_first && missing > 0 {
            self.missing += missing;
            self.rounds_missing += 1;
        }
        Ok(())
    }
}

/// Asks for every broker's topic in turn until the connection ends.
fn ask_to_the_end(mut peer: Peer) -> Result<Seen> {
    let mut seen = Seen::default();
    let mut out = std::collections::VecDeque::new();
    let mut number = 0;
    loop {
        while out.len() < DEPTH {
            peer.send(&route(&topic_of(number)));
            out.push_back(number);
            number = (number + 1) % (BROKERS + 1);
        }
        let Some(reply) = peer.receive()? else {
            seen.unanswered = out.len();
            return Ok(seen);
        };
        seen.answers += 1;
        let asked = out.pop_front().unwrap_or_default();
        let topic = topic_of(asked);
        if asked == BROKERS {
            // The one that closes by itself: there or not, never something else.
            seen.missing += u64::from(reply.code == 17);
            if !matches!(reply.code, 0 | 1 | 17) {
                seen.wrong.push(format!("{topic}: code {}", reply.code));
            }
            continue;
        }
        let right = reply.code == 0 && routed(&reply.body)?.keys().eq([&format!("stop-{asked}")]);
        if !right {
            seen.vanished += u64::from(reply.code == 17);
            let text = String::from_utf8_lossy(&reply.body).into_owned();
            seen.wrong
                .push(format!("{topic}: code {} {text:.200}", reply.code));
        }
    }
}

/// Registers and heartbeats until the connection ends.
fn beat_to_the_end(mut peer: Peer, number: u32) -> Result<Seen> {
    let mut seen = Seen::default();
    let table = topics(1, &[&topic_of(number), "stop-shared"]);
    let own = broker_of(number);
    let registration = own.register().body(table.body());
    loop {
        for frame in [own.heartbeat(), registration.clone()] {
            let Some(reply) = peer.try_ask(&frame)? else {
                seen.unanswered = 1;
                return Ok(seen);
            };
            seen.answers += 1;
            if reply.code != 0 {
                seen.wrong
                    .push(format!("a broker is answered with {}", reply.code));
            }
        }
        pause(Duration::from_millis(1));
    }
}

/// Writes KV values until the connection ends; says the last that was acknowledged.
fn write_to_the_end(mut peer: Peer, first: u64) -> Result<(u64, Seen)> {
    let mut seen = Seen::default();
    let mut last = first - 1;
    loop {
        let number = last + 1;
        let Some(reply) = peer.try_ask(&put("n", "k", &number.to_string()))? else {
            seen.unanswered = 1;
            return Ok((last, seen));
        };
        if reply.code != 0 {
            seen.wrong
                .push(format!("a KV write is answered with {}", reply.code));
        }
        last = number;
    }
}

/// The next server has the last acknowledged value, or the one after it.
fn check_kept(server: &Server, tally: &Tally, record: &mut Record) -> Result<()> {
    let reply = Peer::open(server.address())?.ask(&get("n", "k"))?;
    let value = field(&reply, "value").and_then(|text| text.parse::<u64>().ok());
    let last = tally.writes;
    let kept = match value {
        Some(value) => value == last || value == last + 1,
        None => last == 0,
    };
    record.expect(kept, || {
        format!("{last} was acknowledged and {value:?} is there")
    });
    Ok(())
}
