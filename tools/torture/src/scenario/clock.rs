//! The wall clock of the server's process alone jumps.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use parity::{Result, script::build::broker};

use super::beating::{BEAT, Beating, SCAN, SCAN_SETTING, SLACK, missing};
use crate::{
    Context,
    bystanders::{Bystanders, P99_MAX},
    pause,
    peer::Peer,
    report::Record,
    server::Home,
    usage::Usage,
};

/// Where Debian has the library that changes the wall clock of one process (package `libfaketime`).
const LIBRARIES: [&str; 2] = [
    "/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1",
    "/usr/lib/aarch64-linux-gnu/faketime/libfaketimeMT.so.1",
];

/// `heartbeatTimeoutMillis` of the brokers here: longer than a busy machine keeps us from running.
const TIMEOUT: Duration = Duration::from_secs(3);

/// Jumps of the wall clock: a day on, two days back, ten years on, and home.
const JUMPS: [&str; 4] = ["+86400", "-86400", "+315360000", "+0"];

/// What the first connections make the allocator keep.
const GROWTH_MAX_KIB: u64 = 4 * 1024;

/// Runs it, if the library is there.
pub(super) fn run(context: &Context, record: &mut Record) -> Result<()> {
    match LIBRARIES.map(Path::new).iter().find(|path| path.is_file()) {
        Some(library) => jump(context, library, record),
        None => {
            record.skip(format!("none of {LIBRARIES:?} is there"));
            Ok(())
        }
    }
}

fn jump(context: &Context, library: &Path, record: &mut Record) -> Result<()> {
    let mut home = Home::new(&context.binary, &[SCAN_SETTING])?;
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
    let mut brokers = Beating::open_all(&server, context.size, TIMEOUT)?;
    let count = brokers.len();
    record.figure("brokers", count);
    let before = server.usage()?;
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
    let (_, after) = Usage::settled(server.pid(), before.fds, SLACK)?;
    record.flat("", before, after, GROWTH_MAX_KIB);
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
    others.stop("meanwhile", P99_MAX, record)?;
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
