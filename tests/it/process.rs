//! The binary itself: its lines, its exit codes, its signals and its files.

use std::{
    fs,
    io::{BufRead, BufReader, Read},
    net::{SocketAddr, TcpListener},
    path::{Path, PathBuf},
    process::{Child, ChildStdout, Command, Output, Stdio},
};

use tempfile::TempDir;

use super::client::{Client, get_kv, put_kv, route};

const BINARY: &str = env!("CARGO_BIN_EXE_mqnamesrv");

/// A folder with a configuration, and the server started from it, if it is.
struct Home {
    folder: TempDir,
}

/// A running process.
struct Process {
    child: Child,
    stdout: BufReader<ChildStdout>,
    address: SocketAddr,
    /// The lines before the one that says where it listens.
    lines: Vec<String>,
}

impl Home {
    fn new() -> Self {
        Self::with("")
    }

    fn with(lines: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = format!(
            "listenPort=0\nbindAddress=127.0.0.1\nkvConfigPath={}\n{lines}",
            folder.path().join("kv.json").display()
        );
        fs::write(folder.path().join("namesrv.properties"), file).unwrap();
        Self { folder }
    }

    fn kv_file(&self) -> PathBuf {
        self.folder.path().join("kv.json")
    }

    fn config_file(&self) -> PathBuf {
        self.folder.path().join("namesrv.properties")
    }

    fn command(&self) -> Command {
        let mut command = Command::new(BINARY);
        self.equip(&mut command);
        command.arg("-c").arg(self.config_file());
        command
    }

    fn equip(&self, command: &mut Command) {
        command
            .env("HOME", self.folder.path())
            .env_remove("WAYPOST_LOG")
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
    }

    fn start(&self) -> Process {
        Process::of(self.command())
    }

    /// Starts it in a shell that does something first.
    fn start_after(&self, preparation: &str) -> Process {
        Process::of(self.command_after(preparation, ""))
    }

    fn command_after(&self, preparation: &str, redirection: &str) -> Command {
        let mut command = Command::new("sh");
        self.equip(&mut command);
        let file = self.config_file();
        command.arg("-c").arg(format!(
            "{preparation}; exec {BINARY} -c {} {redirection}",
            file.display()
        ));
        command
    }

    /// Runs it to its end.
    fn run(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(BINARY);
        self.equip(&mut command);
        command.args(arguments).output().unwrap()
    }
}

impl Process {
    fn of(mut command: Command) -> Self {
        let mut child = command.spawn().unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut lines = Vec::new();
        let address = loop {
            let mut line = String::new();
            if stdout.read_line(&mut line).unwrap() == 0 {
                let mut errors = String::new();
                child
                    .stderr
                    .take()
                    .unwrap()
                    .read_to_string(&mut errors)
                    .unwrap();
                panic!("it has not started: {lines:?} {errors}");
            }
            let boot = "The Name Server boot success. serializeType=JSON, address ";
            if let Some(address) = line.trim_end().strip_prefix(boot) {
                break address.parse().unwrap();
            }
            lines.push(line);
        };
        Self {
            child,
            stdout,
            address,
            lines,
        }
    }

    fn connect(&self) -> Client {
        Client::connect(self.address)
    }

    fn signal(&self, name: &str) {
        let status = Command::new("kill")
            .arg(name)
            .arg(self.child.id().to_string())
            .status()
            .unwrap();
        assert!(status.success());
    }

    /// Waits for its end: its exit code and what it wrote after its start.
    fn wait(mut self) -> (Option<i32>, String) {
        let mut rest = String::new();
        self.stdout.read_to_string(&mut rest).unwrap();
        let status = self.child.wait().unwrap();
        (status.code(), rest)
    }

    fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

/// A failed test must not leave a server behind.
impl Drop for Process {
    fn drop(&mut self) {
        if self.child.kill().is_ok() {
            self.child.wait().unwrap();
        }
    }
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

#[test]
fn i4_it_says_what_it_loads_where_state_lives_and_where_it_listens() {
    let home = Home::new();
    let process = home.start();
    let all = process.lines.concat();
    let loaded = format!(
        "load config properties file OK, {}",
        home.config_file().display()
    );
    assert!(
        process.lines.iter().any(|line| line.trim_end() == loaded),
        "{all}"
    );
    process.signal("-TERM");
    let (code, rest) = process.wait();
    assert_eq!(code, Some(0));
    let all = all + &rest;
    assert!(
        all.contains(&home.kv_file().display().to_string()) && all.contains("is writable"),
        "{all}"
    );
}

#[test]
fn a_signal_ends_it_in_order() {
    for signal in ["-TERM", "-INT", "-HUP"] {
        let process = Home::new().start();
        let mut client = process.connect();
        assert_eq!(client.ask(&route(1, "none")).code, 17);
        process.signal(signal);
        assert_eq!(client.next(), None);
        let (code, rest) = process.wait();
        assert_eq!(code, Some(0), "{rest}");
        assert!(
            rest.contains("shutdown hook was invoked, 1 times."),
            "{rest}"
        );
        assert!(
            rest.contains("shutdown hook done, consuming time total(ms): "),
            "{rest}"
        );
    }
}

#[test]
fn a_signal_that_was_to_be_ignored_is_and_one_for_the_state_is_answered_with_a_line() {
    let process = Home::new().start_after("trap '' INT HUP");
    for signal in ["-INT", "-HUP", "-QUIT", "-QUIT"] {
        process.signal(signal);
    }
    let mut client = process.connect();
    assert_eq!(client.ask(&route(1, "none")).code, 17);
    process.signal("-TERM");
    let (code, rest) = process.wait();
    assert_eq!(code, Some(0), "{rest}");
    let state = rest.matches("0 topics, 0 broker groups, 0 live brokers");
    // Two signals of a kind that come at once are one.
    assert!((1..=2).contains(&state.count()), "{rest}");
}

#[test]
fn it_takes_all_the_descriptors_that_it_may_have() {
    let process = Home::new().start_after("ulimit -S -n 40; ulimit -H -n 400");
    let crowd: Vec<Client> = (0..200)
        .map(|_| {
            let mut client = process.connect();
            assert_eq!(client.ask(&route(1, "none")).code, 17);
            client
        })
        .collect();
    assert_eq!(crowd.len(), 200);
}

#[test]
fn a_home_that_is_not_set_is_the_user_databases() {
    let mut command = Command::new(BINARY);
    command.env_remove("HOME").arg("-p");
    let items = command.output().unwrap();
    let items = text(&items.stdout);
    let path = items
        .lines()
        .find_map(|line| line.strip_prefix("kvConfigPath="));
    assert!(Path::new(path.unwrap()).is_absolute(), "{items}");
}

#[test]
fn that_nothing_can_be_written_to_standard_output_is_said() {
    let full = Home::new().command_after(":", ">/dev/full").output();
    let full = full.unwrap();
    assert_eq!(full.status.code(), Some(255));
    let errors = text(&full.stderr);
    assert!(
        errors.contains("cannot write to standard output: "),
        "{errors}"
    );
}

#[test]
fn a_second_signal_ends_it_at_once() {
    let process =
        Home::with("enableShutdownGracefully=true\nshutdownWaitTimeSeconds=600\n").start();
    process.signal("-TERM");
    // The first has been taken when clients are told to go away.
    let mut client = process.connect();
    while client.ask(&route(1, "none")).code != 1500 {}
    process.signal("-TERM");
    let (code, rest) = process.wait();
    assert_eq!(code, Some(130));
    assert!(!rest.contains("shutdown hook done"), "{rest}");
}

#[test]
fn a_taken_port_is_named_and_ends_the_start_with_255() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let home = Home::with(&format!("listenPort={}\n", address.port()));
    let output = home.command().output().unwrap();
    assert_eq!(output.status.code(), Some(255));
    let errors = text(&output.stderr);
    assert!(
        errors.contains(&format!("Failed to bind to {address}: ")),
        "{errors}"
    );
    assert!(!text(&output.stdout).contains("boot success"));
}

#[test]
fn e3_a_mistyped_key_is_reported_with_its_line() {
    let home = Home::with("enableTopicLst=false\n");
    let mut process = home.start();
    let mut stderr = process.child.stderr.take().unwrap();
    process.kill();
    let mut errors = String::new();
    stderr.read_to_string(&mut errors).unwrap();
    assert!(
        errors.contains("line 4") && errors.contains("enableTopicLst"),
        "{errors}"
    );
}

#[test]
fn what_cannot_be_started_ends_with_255_and_what_cannot_be_understood_with_1() {
    let home = Home::new();
    let missing = home.run(&["-c", "/nowhere/namesrv.properties"]);
    assert_eq!(missing.status.code(), Some(255));
    assert!(text(&missing.stderr).contains("/nowhere/namesrv.properties"));

    let bad = Home::with("listenPort=70000\n").command().output().unwrap();
    assert_eq!(bad.status.code(), Some(255));
    assert!(
        text(&bad.stderr).contains("listenPort"),
        "{}",
        text(&bad.stderr)
    );

    let unknown = home.run(&["--frobnicate"]);
    assert_eq!(unknown.status.code(), Some(1));
    assert!(text(&unknown.stderr).contains("usage: mqnamesrv"));

    let help = home.run(&["-h"]);
    assert_eq!(help.status.code(), Some(0));
    assert!(text(&help.stdout).contains("usage: mqnamesrv"));

    let items = home.run(&["-p"]);
    assert_eq!(items.status.code(), Some(0));
    assert!(text(&items.stdout).contains("listenPort=9876"));
}

#[test]
fn a_kv_folder_that_cannot_be_read_ends_the_start() {
    let home = Home::new();
    fs::create_dir(home.kv_file()).unwrap();
    let output = home.command().output().unwrap();
    assert_eq!(output.status.code(), Some(255));
    let errors = text(&output.stderr);
    assert!(
        errors.contains("kvConfigPath") && errors.contains("kv.json"),
        "{errors}"
    );
}

#[test]
fn i1_a_damaged_kv_file_is_replaced_by_its_backup_and_kept() {
    let home = Home::new();
    let process = home.start();
    let mut client = process.connect();
    assert_eq!(client.ask(&put_kv(1, "k", "one")).code, 0);
    assert_eq!(client.ask(&put_kv(2, "k", "two")).code, 0);
    process.kill();
    fs::write(home.kv_file(), b"{\"configTable\":{\"n\"").unwrap();

    let process = home.start();
    assert_eq!(
        process.connect().ask(&get_kv(1, "k")).header["extFields"]["value"],
        "one"
    );
    process.signal("-TERM");
    let lines = process.lines.concat() + &process.wait().1;
    assert!(
        lines.contains("ERROR") && lines.contains("is damaged"),
        "{lines}"
    );
    assert!(Path::new(&format!("{}.damaged-1", home.kv_file().display())).exists());
}

#[test]
fn i1_an_acknowledged_kv_value_survives_being_killed_at_any_moment() {
    let home = Home::new();
    let mut acknowledged = 0;
    for round in 0..50 {
        let process = home.start();
        let mut client = process.connect();
        if acknowledged > 0 {
            let found = client.ask(&get_kv(0, "k"));
            let value: i64 = found.header["extFields"]["value"]
                .as_str()
                .unwrap()
                .parse()
                .unwrap();
            assert!(
                value >= acknowledged,
                "{value} after {acknowledged} was acknowledged"
            );
        }
        let first = acknowledged + 1;
        let puts: Vec<u8> = (first..first + 60)
            .flat_map(|value| put_kv(value, "k", &value.to_string()))
            .collect();
        client.send(&puts);
        // A different moment each time, in the middle of the writing.
        for value in first..first + round % 25 + 1 {
            let answer = client.receive();
            assert_eq!((answer.code, answer.opaque), (0, value));
            acknowledged = value;
        }
        process.kill();
    }
}

#[test]
fn out_of_file_descriptors_it_serves_on_says_so_once_and_recovers() {
    let home = Home::new();
    let process = home.start_after("ulimit -n 40");
    let mut first = process.connect();
    assert_eq!(first.ask(&route(1, "none")).code, 17);

    let crowd: Vec<Client> = (0..100).map(|_| process.connect()).collect();
    for _ in 0..100 {
        assert_eq!(first.ask(&route(1, "none")).code, 17);
    }
    drop(crowd);
    assert_eq!(process.connect().ask(&route(1, "none")).code, 17);
    process.signal("-TERM");
    let (code, lines) = process.wait();
    assert_eq!(code, Some(0));
    assert_eq!(
        lines.matches("cannot accept connections").count(),
        1,
        "{lines}"
    );
}

#[test]
fn d11_connections_that_come_and_go_leave_no_descriptor_and_no_line() {
    let process = Home::new().start();
    let mut client = process.connect();
    let open = || {
        fs::read_dir(format!("/proc/{}/fd", process.child.id()))
            .unwrap()
            .count()
    };
    assert_eq!(client.ask(&route(1, "none")).code, 17);
    let before = open();
    for _ in 0..2000 {
        drop(process.connect());
    }
    // Each is noticed within a few turns of its worker.
    let mut asked = 0;
    while open() > before {
        assert_eq!(client.ask(&route(1, "none")).code, 17);
        asked += 1;
        assert!(asked < 100_000, "{} descriptors, {before} before", open());
    }
    process.signal("-TERM");
    let (_, lines) = process.wait();
    assert!(!lines.contains("connection"), "{lines}");
}
