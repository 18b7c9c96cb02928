//! The process is stopped (SIGSTOP) for longer than its brokers' timeout, and goes on.

use std::{
    collections::BTreeSet,
    time::{Duration, Instant},
};

use parity::{Result, script::build::route};
use rustix::process::Signal;

use super::beating::{BEAT, Beating, SCAN, SCAN_SETTING, SHARED, SLACK, missing};
use crate::{
    Context, pause,
    peer::Peer,
    report::Record,
    server::{Home, Server},
    usage::Usage,
};

/// `heartbeatTimeoutMillis` of the brokers here.
const TIMEOUT: Duration = Duration::from_secs(1);

/// How soon the silent are closed: sooner than the process goes on.
const IDLE: (&str, &str) = ("serverChannelMaxIdleTimeSeconds", "2");

/// Stops of the process.
const STOPS: u64 = 3;

/// What piled up while the process was stopped is read at once, by one thread and freed by others: the C library's allocator keeps it. With one
/// arena (`GLIBC_TUNABLES=glibc.malloc.arena_max=1`) 1.3 of 47 MiB stay.
const KEPT_MAX_KIB: u64 = 64 * 1024;

/// As much is kept after further stops, but for what is spread differently.
const GROWTH_MAX_KIB: u64 = 16 * 1024;

/// The process is stopped while brokers heartbeat and clients ask.
pub(super) fn run(context: &Context, record: &mut Record) -> Result<()> {
    let length = Duration::from_secs(context.size.seconds).max(TIMEOUT + SCAN);
    let home = Home::new(&context.binary, &[SCAN_SETTING, IDLE])?;
    let server = home.start()?;
    let mut brokers = Beating::open_all(&server, context.size, TIMEOUT)?;
    let count = brokers.len();
    let before = server.usage()?;
    record.figure("SIGSTOP: brokers", count);
    record.figure("SIGSTOP: their timeout (s)", TIMEOUT.as_secs());
    record.figure("SIGSTOP: stopped for (s)", length.as_secs());
    let mut first = before;
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
            brokers[one] = Beating::open(&server, u32::try_from(one).unwrap_or_default(), TIMEOUT)?;
        }
        if number == 1 {
            (_, first) = Usage::settled(server.pid(), before.fds, SLACK)?;
        }
    }
    let (_, after) = Usage::settled(server.pid(), before.fds, SLACK)?;
    record.flat("SIGSTOP 1: ", before, first, KEPT_MAX_KIB);
    let further = format!("SIGSTOP 2 to {STOPS}: ");
    record.flat(&further, first, after, GROWTH_MAX_KIB);
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
        client.send(&route(SHARED));
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
