//! Time that is not what it seems: the wall clock jumps, or the process is stopped for longer than its brokers' timeout.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use parity::{
    Result,
    frame::Frame,
    script::build::{Broker, broker, route, topics},
};
use rustix::process::Signal;

use crate::{
    Context,
    bystanders::{Bystanders, P99_MAX},
    pause,
    peer::Peer,
    report::Record,
    server::{Home, Server},
    usage::Usage,
};

/// Where Debian has the library that changes the wall clock of one process (package `libfaketime`).
const LIBRARIES: [&str; 2] = [
    "/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1",
    "/usr/lib/aarch64-linux-gnu/faketime/libfaketimeMT.so.1",
];

/// `heartbeatTimeoutMillis` of the brokers here.
const TIMEOUT: Duration = Duration::from_secs(1);

/// `scanNotActiveBrokerInterval`.
const SCAN: Duration = Duration::from_millis(250);

/// How often they heartbeat.
const BEAT: Duration = Duration::from_millis(200);

/// What a loaded machine may take for what takes no time.
const SLACK: Duration = Duration::from_secs(2);

/// Jumps of the wall clock: a day on, two days back, ten years on, and home.
const JUMPS: [&str; 4] = ["+86400", "-86400", "+315360000", "+0"];

/// Brokers while the wall clock jumps.
const JUMP_BROKERS: u32 = 20;

/// Stops of the process.
const STOPS: u64 = 2;

/// What piled up while the process was stopped is read at once; the allocator keeps it.
const GROWTH_MAX_KIB: u64 = 32 * 1024;

const SETTINGS: [(&str, &str); 2] = [
    ("scanNotActiveBrokerInterval", "250"),
    ("serverChannelMaxIdleTimeSeconds", "2"),
];

/// Both parts.
pub(super) fn run(context: &Context, record: &mut Record) -> Result<()> {
    match LIBRARIES.map(Path::new).iter().find(|path| path.is_file()) {
        Some(library) => jump(context, library, record)?,
        None => record.skip(format!(
            "jumps of the wall clock: none of {LIBRARIES:?} is there"
        )),
    }
    stop(context, record)
}

/// A broker that lives by its heartbeats.
#[derive(Debug)]
struct Beating {
    own: Broker,
    topic: String,
    peer: Peer,
    registers: bool,
    unanswered: u32,
}

impl Beating {
    fn open(server: &Server, number: u32) -> Result<Beating> {
        let address = format!("127.0.0.1:{}", 13_000 + number);
        let mut beating = Beating {
            own: broker("clock", &format!("clock-{number}"), 0, &address),
            topic: format!("clock-topic-{number}"),
            peer: Peer::open(server.address())?,
            registers: number % 2 == 1,
            unanswered: 0,
        };
        beating.peer.must(&beating.registration())?;
        Ok(beating)
    }

    fn registration(&self) -> Frame {
        let millis = TIMEOUT.as_millis().to_string();
        let table = topics(1, &[&self.topic, "clock-shared"]);
        let frame = self.own.register().body(table.body());
        frame.with("heartbeatTimeoutMillis", &millis)
    }

    /// Every other broker does it as 4.9 does, by registering again.
    fn beat(&mut self) {
        let frame = if self.registers {
            self.registration()
        } else {
            self.own.heartbeat()
        };
        self.peer.send(&frame);
        self.unanswered += 1;
    }

    fn take_answers(&mut self) -> Result<bool> {
        while self.unanswered > 0 {
            match self.peer.receive()? {
                Some(_) => self.unanswered -= 1,
                None => return Ok(false),
            }
        }
        Ok(true)
    }
}

/// The numbers of those that are not routed at this moment.
fn missing(client: &mut Peer, brokers: &[Beating]) -> Result<Vec<usize>> {
    for beating in brokers {
        client.send(&route(&beating.topic));
    }
    let mut missing = Vec::new();
    for number in 0..brokers.len() {
        let reply = client.receive()?;
        if reply.is_none_or(|reply| reply.code != 0) {
            missing.push(number);
        }
    }
    Ok(missing)
}

/// The wall clock of the server's process alone jumps.
fn jump(context: &Context, library: &Path, record: &mut Record) -> Result<()> {
    let mut home = Home::new(&context.binary, &SETTINGS)?;
    let clock = home.beside("clock");
    set_clock(&clock, "+0")?;
    home.variable("LD_PRELOAD", &library.display().to_string());
    home.variable("FAKETIME_TIMESTAMP_FILE", &clock.display().to_string());
    home.variable("FAKETIME_NO_CACHE", "1");
    home.variable("DONT_FAKE_MONOTONIC", "1");
    home.variable("FAKETIME_DONT_FAKE_MONOTONIC", "1");
    let server = home.start()?;
    let others = Bystanders::start(server.address(), 1)?;
    let mut client = Peer::open(server.address())?;
    let mut brokers = (0..JUMP_BROKERS)
        .map(|number| Beating::open(&server, number))
        .collect::<Result<Vec<_>>>()?;
    for offset in JUMPS {
        set_clock(&clock, offset)?;
        let jumped = Instant::now();
        // Nobody's, so that it is a line in the log and nothing else.
        client.must(&broker("clock", "nobody", 0, "127.0.0.1:1").unregister())?;
        // Longer than the timeout, so that brokers would also have to have been heard of since.
        while jumped.elapsed() < TIMEOUT + SCAN {
            for beating in &mut brokers {
                beating.beat();
                record.expect(beating.take_answers()?, || {
                    format!("wall clock {offset} s: a broker's connection was closed")
                });
            }
            let gone = missing(&mut client, &brokers)?.len();
            record.expect(gone == 0, || {
                format!("wall clock {offset} s: {gone} brokers vanished")
            });
            pause(BEAT);
        }
    }
    let silent = brokers.pop().into_iter().collect::<Vec<_>>();
    set_clock(&clock, "-86400")?;
    let fell_silent = Instant::now();
    while missing(&mut client, &silent)?.is_empty()
        && fell_silent.elapsed() < TIMEOUT + SCAN + SLACK
    {
        for beating in &mut brokers {
            beating.beat();
            beating.take_answers()?;
        }
        pause(Duration::from_millis(20));
    }
    let took = fell_silent.elapsed();
    record.millis("wall clock a day back: a silent broker went after", took);
    record.expect(
        took + BEAT >= TIMEOUT && took < TIMEOUT + SCAN + SLACK,
        || format!("a silent broker went after {took:?}"),
    );
    others.stop("wall clock", P99_MAX, record)?;
    years(&server.log()?, record);
    server.terminate()
}

fn set_clock(file: &PathBuf, offset: &str) -> Result<()> {
    // Replaced whole, since it is read at every look at the clock.
    let fresh = file.with_extension("fresh");
    fs::write(&fresh, offset)?;
    Ok(fs::rename(fresh, file)?)
}

/// Lines of the log with different years show that the process had seen the jumps.
fn years(log: &str, record: &mut Record) {
    let year = |line: &str| line.get(..4)?.parse::<u32>().ok();
    let years: BTreeSet<u32> = log.lines().filter_map(year).collect();
    let first = years.first().copied().unwrap_or_default();
    let last = years.last().copied().unwrap_or_default();
    record.figure("wall clock: years in the log", format!("{first} to {last}"));
    record.expect(last >= first + 9, || {
        "the process has not seen the wall clock jump".to_owned()
    });
}

/// The process is stopped while brokers heartbeat and clients ask.
fn stop(context: &Context, record: &mut Record) -> Result<()> {
    let length = Duration::from_secs(context.size.seconds).max(TIMEOUT + SCAN);
    let home = Home::new(&context.binary, &SETTINGS)?;
    let server = home.start()?;
    let count = u32::try_from(context.size.count)
        .unwrap_or(u32::MAX)
        .min(20_000);
    let mut brokers = (0..count)
        .map(|number| Beating::open(&server, number))
        .collect::<Result<Vec<_>>>()?;
    let before = server.usage()?;
    record.figure("SIGSTOP: brokers", count);
    record.figure("SIGSTOP: their timeout (s)", TIMEOUT.as_secs());
    record.figure("SIGSTOP: stopped for (s)", length.as_secs());
    for number in 1..=STOPS {
        let gone = one_stop(&server, &mut brokers, length, number, record)?;
        let by = |registers: bool| {
            let of_kind = gone
                .iter()
                .filter(|one| brokers[**one].registers == registers);
            of_kind.count()
        };
        let (registering, beating) = (by(true), by(false));
        record.figure(
            &format!("SIGSTOP {number}: lost, of those that heartbeat (904)"),
            beating,
        );
        record.figure(
            &format!("SIGSTOP {number}: lost, of those that register (103)"),
            registering,
        );
        record.expect(gone.is_empty(), || {
            format!(
                "{} of {count} brokers that had heartbeat in time vanished after SIGCONT",
                gone.len()
            )
        });
        for one in gone {
            brokers[one] = Beating::open(&server, u32::try_from(one).unwrap_or_default())?;
        }
    }
    let (_, after) = Usage::settled(server.pid(), before.fds, SLACK)?;
    record.flat("SIGSTOP: ", before, after, GROWTH_MAX_KIB);
    server.terminate()
}

/// Says which brokers were ever missing afterwards.
fn one_stop(
    server: &Server,
    brokers: &mut [Beating],
    length: Duration,
    number: u64,
    record: &mut Record,
) -> Result<Vec<usize>> {
    for beating in brokers.iter_mut() {
        beating.beat();
        beating.take_answers()?;
    }
    // As many clients as brokers, opened now: until the stop they must not have been silent for too long.
    let mut clients = (0..brokers.len())
        .map(|_| Peer::open(server.address()))
        .collect::<Result<Vec<_>>>()?;
    server.signal(Signal::STOP)?;
    let stopped = Instant::now();
    for client in &mut clients {
        client.send(&route("clock-shared"));
    }
    while stopped.elapsed() < length {
        brokers.iter_mut().for_each(Beating::beat);
        pause(BEAT);
    }
    brokers.iter_mut().for_each(Beating::beat);
    server.signal(Signal::CONT)?;
    // Opened now: one that says nothing during the stop is idle, and rightly closed.
    let mut client = Peer::open(server.address())?;
    let mut gone = BTreeSet::new();
    let mut closed = 0;
    let continued = Instant::now();
    let mut answered_in = Duration::ZERO;
    while continued.elapsed() < TIMEOUT / 2 {
        gone.extend(missing(&mut client, brokers)?);
        if answered_in.is_zero() {
            answered_in = continued.elapsed();
        }
        for (index, beating) in brokers.iter_mut().enumerate() {
            if !gone.contains(&index) && !beating.take_answers()? {
                closed += 1;
                gone.insert(index);
            }
            beating.beat();
        }
    }
    for beating in brokers.iter_mut() {
        beating.take_answers()?;
    }
    let mut cut = 0;
    for mut client in clients {
        cut += usize::from(client.receive()?.is_none());
    }
    record.millis(
        &format!("SIGSTOP {number}: SIGCONT to the first answers"),
        answered_in,
    );
    record.figure(
        &format!("SIGSTOP {number}: closed, of as many clients that asked"),
        cut,
    );
    record.expect(closed == 0, || {
        format!("{closed} brokers' connections were closed")
    });
    record.expect(cut == 0, || {
        format!("{cut} clients that had asked meanwhile were closed")
    });
    Ok(gone.into_iter().collect())
}
