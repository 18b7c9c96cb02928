//! The binary itself: its lines, its exit codes, its signals and its files.

use std::{
    fs,
    io::{BufRead, BufReader, Read},
    net::{SocketAddr, TcpListener},
    os::unix::fs::FileTypeExt,
    path::{Path, PathBuf},
    process::{Child, ChildStdout, Command, Output, Stdio},
    thread,
};

use tempfile::TempDir;

use waypost::limits::LOG_LINES_WAITING_MAX;

use super::client::{Answer, Client, get_kv, put_kv, request, route};

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

    /// What lies in the folder, sorted.
    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.folder.path()).unwrap();
        let mut names: Vec<String> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
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
        let mut command = Command::new("env");
        self.equip(&mut command);
        let file = self.config_file();
        // Whoever runs the tests in the background has them ignore some signals, which a shell cannot undo.
        command.arg("--default-signal=HUP,INT,QUIT");
        command.arg("sh").arg("-c").arg(format!(
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
        let process = Home::new().start_after(":");
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

/// How nice a process's threads of these names are. A thread has its name only when it has begun.
fn niceness<const N: usize>(process: &Process, names: [&str; N]) -> [Option<i32>; N] {
    let mut found = [None; N];
    for task in fs::read_dir(format!("/proc/{}/task", process.child.id())).unwrap() {
        // The second field is the name, in brackets, the 19th how nice it is.
        let stat = fs::read_to_string(task.unwrap().path().join("stat")).unwrap();
        let (name, fields) = stat.rsplit_once(") ").unwrap();
        let (_, name) = name.split_once('(').unwrap();
        let place = names.iter().position(|wanted| *wanted == name);
        if let Some(place) = place {
            found[place] = fields.split(' ').nth(16).map(|nice| nice.parse().unwrap());
        }
    }
    found
}

#[test]
fn threads_that_no_query_waits_for_are_nicer_than_those_that_answer() {
    let process = Home::new().start();
    let mut client = process.connect();
    let (answering, yielding) = (["acceptor", "worker-0", "log"], ["helper", "writer"]);
    let seen = || (niceness(&process, answering), niceness(&process, yielding));
    // A thread makes itself nice when it begins, which may be later than the first answer.
    let is_right = (0..10_000).any(|_| {
        assert_eq!(client.ask(&route(1, "none")).code, 17);
        let (answering, yielding) = seen();
        answering[0].is_some_and(|nice| {
            answering == [Some(nice); 3] && yielding == [Some((nice + 10).min(19)); 2]
        })
    });
    assert!(is_right, "{:?}", seen());
}

#[test]
fn log_lines_that_nobody_takes_are_dropped_and_counted() {
    let mut process = Home::new().start();
    let mut client = process.connect();
    // Each is a line and more; nobody reads standard output meanwhile, which is a pipe of 64 KiB.
    let unknown = request(216, 1, &[("topic", "none")], b"");
    for _ in 0..LOG_LINES_WAITING_MAX / 100 + 20 {
        client.send(&unknown.repeat(100));
        (0..100).for_each(|_| _ = client.receive());
    }
    // More than the pipe holds, so that the queue has room for what is said of it.
    for _ in 0..2_000 {
        process.stdout.read_line(&mut String::new()).unwrap();
    }
    process.signal("-TERM");
    let (status, rest) = process.wait();
    assert_eq!(status, Some(0));
    let lines = rest
        .lines()
        .filter(|line| line.contains("log lines were dropped so far"));
    assert_eq!(lines.count(), 1, "{}", rest.lines().last().unwrap_or(""));
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

/// An update of the configuration (318).
fn update(opaque: i64, text: &str) -> Vec<u8> {
    request(318, opaque, &[], text.as_bytes())
}

fn remark(answer: &Answer) -> &str {
    answer.header["remark"].as_str().unwrap()
}

fn make_pipe(path: &Path) {
    let status = Command::new("mkfifo").arg(path).status().unwrap();
    assert!(status.success());
}

fn is_pipe(path: &Path) -> bool {
    fs::symlink_metadata(path).unwrap().file_type().is_fifo()
}

#[test]
fn a_kv_file_that_is_a_pipe_is_neither_read_nor_replaced() {
    let home = Home::new();
    make_pipe(&home.kv_file());

    let process = home.start();
    let mut client = process.connect();
    let refused = client.ask(&put_kv(1, "k", "v"));
    assert_eq!(refused.code, 1);
    assert!(remark(&refused).contains("it is a pipe"), "{refused:?}");
    assert_eq!(client.ask(&get_kv(2, "k")).code, 22);
    process.signal("-TERM");
    let lines = process.lines.concat() + &process.wait().1;

    let warnings = lines.lines().filter(|line| line.contains(" WARN "));
    assert_eq!(warnings.count(), 1, "{lines}");
    assert!(is_pipe(&home.kv_file()));
    assert_eq!(home.names(), ["kv.json", "namesrv.properties"]);
}

#[test]
fn a_configuration_may_come_from_a_pipe_which_is_not_replaced() {
    let home = Home::new();
    let text = fs::read(home.config_file()).unwrap();
    fs::remove_file(home.config_file()).unwrap();
    make_pipe(&home.config_file());
    let pipe = home.config_file();
    let writer = thread::Builder::new()
        .spawn(move || fs::write(pipe, text))
        .unwrap();

    let process = home.start();
    writer.join().unwrap().unwrap();
    let mut client = process.connect();
    let refused = client.ask(&update(1, "orderMessageEnable=true"));
    assert_eq!(refused.code, 1);
    assert!(remark(&refused).contains("it is a pipe"), "{refused:?}");
    assert_eq!(client.ask(&put_kv(2, "k", "v")).code, 0);
    process.signal("-TERM");
    let lines = process.lines.concat() + &process.wait().1;

    let warnings = lines.lines().filter(|line| line.contains(" WARN "));
    assert_eq!(warnings.count(), 1, "{lines}");
    assert!(is_pipe(&home.config_file()));
    assert_eq!(home.names(), ["kv.json", "namesrv.properties"]);
}

/// What makes a mount namespace here, if anything may.
fn unshare() -> Option<Command> {
    let ways: [&[&str]; 2] = [&["--mount"], &["--user", "--map-root-user", "--mount"]];
    ways.into_iter().find_map(|arguments| {
        let command = || {
            let mut command = Command::new("unshare");
            command.args(arguments);
            command
        };
        let mut probe = command();
        probe.args(["sh", "-c", "mount -t tmpfs tmpfs /mnt"]);
        let output = probe.output().ok()?;
        output.status.success().then(command)
    })
}

/// Both files are mounts of their own, as with `docker run -v file:file` or a `subPath`. They lie in `small`, which has 32 KiB and
/// ends with the process.
const MOUNT: &str = "mount -t tmpfs -o size=32k tmpfs $0/small && cp $0/kv.json $0/namesrv.properties $0/small &&
    mount --bind $0/small/kv.json $0/kv.json && mount --bind $0/small/namesrv.properties $0/namesrv.properties &&
    exec $1 -c $0/namesrv.properties";

/// A server whose files are mounts, unless no mount is permitted here.
#[expect(clippy::print_stdout, reason = "a test that is not run says why")]
fn start_mounted(home: &Home, kv: &str) -> Option<Process> {
    let Some(mut command) = unshare() else {
        println!("not run: no mount namespace is permitted here (unshare --mount)");
        return None;
    };
    fs::write(home.kv_file(), kv).unwrap();
    fs::create_dir(home.folder.path().join("small")).unwrap();
    home.equip(&mut command);
    command.args(["sh", "-c", MOUNT]);
    command.arg(home.folder.path()).arg(BINARY);
    Some(Process::of(command))
}

#[test]
fn an_empty_file_that_was_made_to_be_mounted_is_written() {
    let home = Home::new();
    let Some(process) = start_mounted(&home, "") else {
        return;
    };
    assert_eq!(process.connect().ask(&put_kv(1, "k", "v")).code, 0);
    process.signal("-TERM");
    let lines = process.lines.concat() + &process.wait().1;
    assert!(!lines.contains("cannot write"), "{lines}");
}

#[test]
fn files_that_are_mounts_of_their_own_are_written_in_place_with_a_backup() {
    let home = Home::new();
    let first = r#"{"configTable":{"n":{"first":"1"}}}"#;
    let Some(process) = start_mounted(&home, first) else {
        return;
    };
    let seen = |path: &Path| {
        let root = PathBuf::from(format!("/proc/{}/root", process.child.id()));
        fs::read_to_string(root.join(path.strip_prefix("/").unwrap())).unwrap()
    };
    let backup_of = |path: &Path| fs::read_to_string(format!("{}.bak", path.display())).unwrap();
    let original = fs::read_to_string(home.config_file()).unwrap();
    let mut client = process.connect();

    assert_eq!(client.ask(&put_kv(1, "k", "one")).code, 0);
    assert_eq!(backup_of(&home.kv_file()), first);
    let kept = seen(&home.kv_file());
    assert!(kept.contains("one"), "{kept}");
    let updated = client.ask(&update(2, "orderMessageEnable=true"));
    assert_eq!(updated.code, 0, "{updated:?}");
    assert!(seen(&home.config_file()).contains("orderMessageEnable=true"));
    assert_eq!(backup_of(&home.config_file()), original);

    // There is room for it beside the file, but not in it.
    let refused = client.ask(&put_kv(3, "k", &"x".repeat(40_000)));
    assert_eq!(refused.code, 1);
    assert_eq!(seen(&home.kv_file()), kept);
    assert_eq!(client.ask(&put_kv(4, "k", "two")).code, 0);
    assert_eq!(backup_of(&home.kv_file()), kept);
    assert!(seen(&home.kv_file()).contains("two"));
    assert_eq!(
        home.names(),
        [
            "kv.json",
            "kv.json.bak",
            "namesrv.properties",
            "namesrv.properties.bak",
            "small"
        ]
    );
    process.signal("-TERM");
    let (_, lines) = process.wait();
    let warnings = lines.matches("is a mount of its own").count();
    assert_eq!(warnings, 2, "one for each: {lines}");
}

#[test]
fn a_second_server_with_the_same_kv_file_says_so_and_both_can_write() {
    let home = Home::new();
    let one = home.start();
    let mut client = one.connect();
    assert_eq!(client.ask(&put_kv(1, "k", "one")).code, 0);

    let other = home.start();
    assert_eq!(other.connect().ask(&put_kv(1, "k", "other")).code, 0);
    assert_eq!(client.ask(&put_kv(2, "k", "again")).code, 0);
    for process in [one, other] {
        process.signal("-TERM");
        let lines = process.lines.concat() + &process.wait().1;
        let warnings = lines.matches("is also another server's").count();
        assert_eq!(warnings, 1, "{lines}");
    }
    // Nobody is there any more.
    let process = home.start();
    process.signal("-TERM");
    let lines = process.lines.concat() + &process.wait().1;
    assert!(!lines.contains("another server"), "{lines}");
}

#[test]
fn what_a_killed_server_has_left_beside_its_files_is_removed_at_the_next_start() {
    let home = Home::new();
    for path in [home.kv_file(), home.config_file()] {
        fs::write(format!("{}.1-0.tmp", path.display()), b"ha").unwrap();
    }
    let process = home.start();
    assert_eq!(process.connect().ask(&put_kv(1, "k", "v")).code, 0);
    assert_eq!(home.names(), ["kv.json", "namesrv.properties"]);
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
