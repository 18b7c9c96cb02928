//! Disks that are full, read-only or gone: a write is refused with its reason and changes nothing, all else goes on, and when
//! the disk is back so are the writes.
//!
//! The file system is a small one of our own, in a mount namespace that ends with this process.

use std::{
    fs::{self, OpenOptions},
    io::{ErrorKind, Write},
    os::unix::process::CommandExt,
    path::Path,
    process::{Command, Stdio},
    time::Duration,
};

use parity::{
    Error, Result,
    frame::Frame,
    script::build::{get, put, set},
};

use crate::{
    Context,
    bystanders::{Bystanders, P99_MAX},
    peer::{Peer, field, lines},
    report::Record,
    say,
    scenario::Scenario,
    server::{Home, Server},
    usage::Usage,
};

/// Set for the process that runs in a mount namespace of its own.
const INSIDE: &str = "TORTURE_MOUNT_NAMESPACE";

/// A setting that 318 changes at once.
const SETTING: &str = "serverChannelMaxIdleTimeSeconds";

/// Clients beside it.
const CLIENTS: usize = 2;

/// Refused writes leave nothing behind; the bystanders' first answers make the process grow.
const GROWTH_MAX_KIB: u64 = 4096;

/// Starts this program again in a mount namespace, if the scenarios need one and the system lets us have one.
pub(crate) fn enter_mount_namespace(scenarios: &[Scenario]) {
    let needed = scenarios.iter().any(|scenario| scenario.name == "disk");
    if !needed || std::env::var_os(INSIDE).is_some() {
        return;
    }
    let Ok(program) = std::env::current_exe() else {
        return;
    };
    for arguments in [&["--mount"][..], &["--user", "--map-root-user", "--mount"]] {
        let mut probe = Command::new("unshare");
        probe.args(arguments).arg("true").stderr(Stdio::null());
        if !probe.status().is_ok_and(|status| status.success()) {
            continue;
        }
        let mut command = Command::new("unshare");
        command.args(arguments).arg(&program);
        let error = command
            .args(std::env::args_os().skip(1))
            .env(INSIDE, "1")
            .exec();
        say(&format!("cannot start again: {error}"));
    }
}

/// Refuses so many writes in each of three ways.
pub(super) fn run(context: &Context, record: &mut Record) -> Result<()> {
    if std::env::var_os(INSIDE).is_none() {
        record.skip("no mount namespace is permitted here (unshare --mount)".to_owned());
        return Ok(());
    }
    let home = Home::new(&context.binary, &[])?;
    let conf = fs::read(home.conf_file())?;
    mount(&["-t", "tmpfs", "-o", "size=128k", "tmpfs"], home.state())?;
    fs::write(home.conf_file(), conf)?;
    let server = home.start()?;
    let mut bench = Bench::new(&server, context.size.count)?;
    let others = Bystanders::start(server.address(), CLIENTS)?;
    // The first refusal loads what later ones use again.
    bench.must_write()?;
    let before = server.usage()?;

    fill(home.state())?;
    bench.must_refuse("full", "No space left", record)?;
    fs::remove_file(home.state().join("filler"))?;
    bench.must_write()?;

    mount(&["-o", "remount,ro"], home.state())?;
    bench.must_refuse("read-only", "Read-only file system", record)?;
    mount(&["-o", "remount,rw"], home.state())?;
    bench.must_write()?;

    vanish(&home, &mut bench, record)?;
    others.stop("meanwhile", P99_MAX, record)?;
    // The bystanders' connections go as their sockets do.
    let fds = before.fds - u64::try_from(CLIENTS).expect("a small number") - 1;
    let (_, after) = Usage::settled(server.pid(), fds, Duration::from_secs(5))?;
    record.flat("", Usage { fds, ..before }, after, GROWTH_MAX_KIB);
    restart_on_a_full_disk(&home, server, &bench, record)
}

/// The folder is replaced by a file, as a failed mount would leave it: nothing can be made below it.
fn vanish(home: &Home, bench: &mut Bench, record: &mut Record) -> Result<()> {
    // Bound elsewhere, the file system outlives its own mount point.
    let kept = home.beside("kept");
    fs::create_dir(&kept)?;
    let state = home.state().display().to_string();
    mount(&["--bind", &state], &kept)?;
    tool("umount", &["--lazy", &state])?;
    fs::remove_file(home.conf_file())?;
    fs::remove_dir(home.state())?;
    fs::write(home.state(), b"")?;
    bench.must_refuse("vanished", "Not a directory", record)?;
    fs::remove_file(home.state())?;
    fs::create_dir(home.state())?;
    mount(&["--bind", &kept.display().to_string()], home.state())?;
    bench.must_write()
}

/// A server that is killed and started on a full disk serves what was acknowledged.
fn restart_on_a_full_disk(
    home: &Home,
    server: Server,
    bench: &Bench,
    record: &mut Record,
) -> Result<()> {
    fill(home.state())?;
    let acknowledged = bench.acknowledged;
    server.kill()?;
    let server = home.start()?;
    let mut again = Bench::new(&server, 1)?;
    again.acknowledged = acknowledged;
    again.must_show("after a restart on a full disk", record)?;
    again.must_refuse("full at start", "No space left", record)?;
    let log = server.log()?;
    record.expect(log.contains("is not writable"), || {
        "the start on a full disk is not warned of".to_owned()
    });
    fs::remove_file(home.state().join("filler"))?;
    again.must_write()?;
    server.terminate()
}

/// The one who writes.
#[derive(Debug)]
struct Bench {
    peer: Peer,
    acknowledged: u64,
    refusals: u64,
}

impl Bench {
    fn new(server: &Server, refusals: u64) -> Result<Bench> {
        Ok(Bench {
            peer: Peer::open(server.address())?,
            acknowledged: 0,
            refusals,
        })
    }

    fn writes(number: u64) -> [Frame; 2] {
        let value = format!("{number}:{}", "x".repeat(500));
        [
            put("n", "k", &value),
            // From 100 up, so that nobody is idle long enough to be closed.
            set(SETTING, &(number + 100).to_string()),
        ]
    }

    /// Both kinds of write succeed.
    fn must_write(&mut self) -> Result<()> {
        let number = self.acknowledged + 1;
        for frame in Bench::writes(number) {
            self.peer.must(&frame)?;
        }
        self.acknowledged = number;
        Ok(())
    }

    /// Both kinds of write are refused with this reason, and what was written before is still shown.
    fn must_refuse(&mut self, what: &str, reason: &str, record: &mut Record) -> Result<()> {
        let mut refused = 0_u64;
        for number in 0..self.refusals {
            for frame in Bench::writes(1_000_000 + number) {
                let reply = self.peer.ask(&frame)?;
                let remark = reply.remark.unwrap_or_default();
                refused += u64::from(reply.code == 1);
                record.expect(reply.code == 1 && remark.contains(reason), || {
                    format!("{what}: a write is answered with {} {remark:?}", reply.code)
                });
            }
        }
        record.figure(&format!("{what}: refused writes"), refused);
        self.must_show(what, record)
    }

    fn must_show(&mut self, what: &str, record: &mut Record) -> Result<()> {
        let number = self.acknowledged;
        let reply = self.peer.ask(&get("n", "k"))?;
        let value = field(&reply, "value").unwrap_or_default();
        record.expect(value.starts_with(&format!("{number}:")), || {
            format!("{what}: {number} was acknowledged and {value:.20} is there")
        });
        let lines = lines(&self.peer.must(&Frame::request(319))?);
        let shown = lines.get(SETTING).cloned().unwrap_or_default();
        record.expect(shown == (number + 100).to_string(), || {
            format!("{what}: {SETTING} is {shown}, not {}", number + 100)
        });
        Ok(())
    }
}

fn fill(folder: &Path) -> Result<()> {
    let mut file = OpenOptions::new()
        .create(true)
        .append(true)
        .open(folder.join("filler"))?;
    loop {
        match file.write_all(&[0; 512]) {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::StorageFull => return Ok(()),
            Err(error) => return Err(error.into()),
        }
    }
}

fn mount(arguments: &[&str], folder: &Path) -> Result<()> {
    let folder = folder.display().to_string();
    tool("mount", &[arguments, &[&folder]].concat())
}

fn tool(name: &str, arguments: &[&str]) -> Result<()> {
    let output = Command::new(name).args(arguments).output()?;
    if output.status.success() {
        return Ok(());
    }
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    Err(Error::new(format!("{name} {arguments:?}: {text}")))
}
