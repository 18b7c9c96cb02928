//! SIGKILL during KV and configuration writes: what was acknowledged is there after the restart, and nothing is there by half.
//!
//! This is the death of the process, not of the machine: what the kernel had taken stays.

use std::{fs, thread, time::Duration};

use parity::{
    Error, Result,
    frame::Frame,
    script::build::{delete, get, put},
};
use serde_json::Value;

use crate::{
    Context, pause,
    peer::{Peer, field, lines},
    report::Record,
    server::{Home, Server},
    usage::Usage,
};

/// Writes sent at once by each of the two writers of a round.
const WRITES: u64 = 200;

/// The kill comes within this time of the first write.
const MOMENT_MAX_MICROS: u64 = 120_000;

/// Both are set to the same number by each 318, so half an update would show.
const SETTINGS: [&str; 2] = [
    "clientRequestThreadPoolQueueCapacity",
    "defaultThreadPoolQueueCapacity",
];

/// Until the last reader's connection is closed.
const SLACK: Duration = Duration::from_secs(2);

/// A new process may be so much larger than another: allocator and page cache, not what it holds.
const GROWTH_MAX_KIB: u64 = 4096;

/// What one writer may find: the state before its first write and after each.
#[derive(Debug)]
struct Written<S> {
    states: Vec<S>,
    acknowledged: usize,
}

/// The two keys as the numbers of the writes that set them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Kv {
    kept: Option<u64>,
    deleted_at_times: Option<u64>,
}

impl Kv {
    fn after(self, number: u64) -> Kv {
        match number % 7 {
            0 => Kv {
                deleted_at_times: None,
                ..self
            },
            1 => Kv {
                deleted_at_times: Some(number),
                ..self
            },
            _ => Kv {
                kept: Some(number),
                ..self
            },
        }
    }
}

/// A value that cannot lose a part unnoticed.
fn value(number: u64) -> String {
    let pad = usize::try_from(number * 37 % 3000).expect("less than 3000");
    format!("{number}:{}:{number}", "x".repeat(pad))
}

fn write_of(number: u64) -> Frame {
    match number % 7 {
        0 => delete("n", "d"),
        1 => put("n", "d", &value(number)),
        _ => put("n", "k", &value(number)),
    }
}

fn update_of(number: u64) -> Frame {
    let [one, other] = SETTINGS;
    Frame::request(318)
        .empty_ext()
        .body(format!("{one}={number}\n{other}={number}\n"))
}

/// Kills so many servers.
pub(super) fn run(context: &Context, record: &mut Record) -> Result<()> {
    let mut random = fastrand::Rng::with_seed(context.seed);
    let home = Home::new(&context.binary, &[])?;
    let mut tally = Tally::default();
    // A server that has a KV file keeps it open.
    fs::write(home.kv_file(), r#"{"configTable":{}}"#)?;
    let mut server = home.start()?;
    let before = server.usage()?;
    let mut kv = Kv::default();
    let mut settings = read_settings(&server, record)?;
    let mut next = 1;
    for _ in 0..context.size.count {
        let kv_writes = writes(next, kv, Kv::after);
        let updates = writes(next, settings, |_, number| number);
        let moment = Duration::from_micros(random.u64(0..MOMENT_MAX_MICROS));
        let (kv_written, updated) = disturb(server, next, moment, kv_writes, updates)?;
        next += WRITES;
        check_files(&home, record)?;
        server = home.start()?;
        tally.boots.push(server.booted_in());
        let found = read_kv(&server, record)?;
        kv_written.check("KV", found, record);
        kv = found;
        let found = read_settings(&server, record)?;
        updated.check("configuration", found, record);
        settings = found;
        tally.add(kv_written.acknowledged, updated.acknowledged);
    }
    record.figure("kills", context.size.count);
    tally.report(record);
    end(&home, server, before, record)
}

/// The states that these writes lead through.
fn writes<S: Copy>(first: u64, before: S, after: impl Fn(S, u64) -> S) -> Written<S> {
    let mut states = vec![before];
    for number in first..first + WRITES {
        states.push(after(states[states.len() - 1], number));
    }
    Written {
        states,
        acknowledged: 0,
    }
}

/// Sends all writes, kills the server after a while and counts what it had acknowledged.
fn disturb(
    server: Server,
    first: u64,
    moment: Duration,
    mut kv: Written<Kv>,
    mut settings: Written<u64>,
) -> Result<(Written<Kv>, Written<u64>)> {
    let mut kv_peer = Peer::open(server.address())?;
    let mut settings_peer = Peer::open(server.address())?;
    for number in first..first + WRITES {
        kv_peer.send(&write_of(number));
        settings_peer.send(&update_of(number));
    }
    let counted = thread::scope(|scope| {
        let kv = scope.spawn(move || acknowledged(&mut kv_peer));
        let settings = scope.spawn(move || acknowledged(&mut settings_peer));
        pause(moment);
        let killed = server.kill();
        let counts = [kv.join(), settings.join()];
        killed.map(|()| counts)
    })?;
    let [kv_count, settings_count] =
        counted.map(|count| count.map_err(|_| Error::new("a reader has failed".to_owned())));
    kv.acknowledged = kv_count??;
    settings.acknowledged = settings_count??;
    Ok((kv, settings))
}

/// Counts successes until the connection ends.
fn acknowledged(peer: &mut Peer) -> Result<usize> {
    let mut count = 0;
    while let Some(reply) = peer.receive()? {
        if reply.code != 0 {
            let text = format!("a write is answered with {} {:?}", reply.code, reply.remark);
            return Err(Error::new(text));
        }
        count += 1;
    }
    Ok(count)
}

impl<S: PartialEq + std::fmt::Debug> Written<S> {
    /// What is found is the state after a write that is not older than the last acknowledged one.
    fn check(&self, what: &str, found: S, record: &mut Record) {
        let newer = &self.states[self.acknowledged..];
        record.expect(newer.contains(&found), || {
            let last = &self.states[self.acknowledged];
            format!("{what}: {last:?} was acknowledged and {found:?} is there")
        });
    }
}

/// The files as the kill left them.
fn check_files(home: &Home, record: &mut Record) -> Result<()> {
    match fs::read(home.kv_file()) {
        Ok(bytes) => {
            let parsed: std::result::Result<Value, _> = serde_json::from_slice(&bytes);
            record.expect(parsed.is_ok(), || {
                format!("the KV file is no JSON: {} bytes", bytes.len())
            });
        }
        // The first kill may come before the first write.
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
        Err(error) => return Err(error.into()),
    }
    let conf = fs::read_to_string(home.conf_file())?;
    record.expect(
        conf.contains("kvConfigPath=") && conf.ends_with('\n'),
        || format!("the configuration file is cut: {} bytes", conf.len()),
    );
    Ok(())
}

fn read_kv(server: &Server, record: &mut Record) -> Result<Kv> {
    let mut peer = Peer::open(server.address())?;
    let mut number = |key: &str| -> Result<Option<u64>> {
        let reply = peer.ask(&get("n", key))?;
        let Some(text) = field(&reply, "value").filter(|_| reply.code == 0) else {
            return Ok(None);
        };
        let number = text.split(':').next().and_then(|text| text.parse().ok());
        let whole = number.is_some_and(|number| text == value(number));
        record.expect(whole, || format!("half a value: {text:?}"));
        Ok(number)
    };
    Ok(Kv {
        kept: number("k")?,
        deleted_at_times: number("d")?,
    })
}

fn read_settings(server: &Server, record: &mut Record) -> Result<u64> {
    let mut peer = Peer::open(server.address())?;
    let lines = lines(&peer.must(&Frame::request(319))?);
    let [one, other] = SETTINGS.map(|key| lines.get(key).and_then(|text| text.parse().ok()));
    // Before the first update they have their defaults, which differ.
    let untouched = (one, other) == (Some(50_000), Some(10_000));
    record.expect(one == other || untouched, || {
        format!("half an update: {one:?} and {other:?}")
    });
    one.ok_or_else(|| Error::new("319 shows no setting".to_owned()))
}

#[derive(Debug, Default)]
struct Tally {
    boots: Vec<Duration>,
    kv: usize,
    updates: usize,
    /// Kills before the last write was acknowledged.
    in_the_middle: usize,
}

impl Tally {
    fn add(&mut self, kv: usize, updates: usize) {
        self.kv += kv;
        self.updates += updates;
        let all = usize::try_from(WRITES).expect("a small number");
        self.in_the_middle += usize::from(kv < all || updates < all);
    }

    fn report(mut self, record: &mut Record) {
        record.figure("kills while writes were out", self.in_the_middle);
        record.figure("acknowledged KV writes", self.kv);
        record.figure("acknowledged configuration updates", self.updates);
        self.boots.sort();
        if let (Some(median), Some(longest)) =
            (self.boots.get(self.boots.len() / 2), self.boots.last())
        {
            record.millis("restart, median", *median);
            record.millis("restart, longest", *longest);
        }
    }
}

fn end(home: &Home, server: Server, before: Usage, record: &mut Record) -> Result<()> {
    let (_, after) = Usage::settled(server.pid(), before.fds, SLACK)?;
    record.flat("", before, after, GROWTH_MAX_KIB);
    let log = server.log()?;
    record.expect(!log.contains(" ERROR "), || {
        "an error was logged".to_owned()
    });
    server.terminate()?;
    let mut names = Vec::new();
    for entry in fs::read_dir(home.state())? {
        names.push(entry?.file_name().to_string_lossy().into_owned());
    }
    // Each of the two files, its backup, and one or two that a kill left unfinished and the next write replaces.
    record.figure("files at the end", names.len());
    record.expect(
        names.len() <= 8 && !names.iter().any(|name| name.contains("damaged")),
        || format!("left behind: {names:?}"),
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(written: &Written<Kv>, found: Kv) -> bool {
        let mut record = Record::new("kill");
        written.check("KV", found, &mut record);
        !record.is_faultless()
    }

    #[test]
    fn a_state_older_than_the_last_acknowledged_write_is_a_fault() {
        let mut written = writes(1, Kv::default(), Kv::after);
        written.acknowledged = 9;
        let state = |kept, deleted_at_times| Kv {
            kept: Some(kept),
            deleted_at_times,
        };
        assert!(faults(&written, state(6, Some(8))), "after write 8");
        assert!(!faults(&written, state(9, Some(8))), "after write 9");
        assert!(
            !faults(&written, state(13, None)),
            "after write 14, not acknowledged"
        );
        assert!(faults(&written, state(13, Some(1))), "never so");
    }
}
