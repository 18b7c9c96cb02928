//! The program itself: what it says and leaves behind when it cannot run, and that it takes the descriptors it may have.

use std::{
    fs,
    net::{SocketAddr, TcpListener},
    path::{Path, PathBuf},
    process::{Command, Output},
    thread,
    time::{Duration, Instant},
};

use loadgen::null::NullServer;

#[test]
fn an_output_that_cannot_be_written_is_found_before_anything_is_sent() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    listener.set_nonblocking(true).expect("it is a socket");
    let address = listener.local_addr().expect("it listens");
    for option in ["--plot", "--histogram-file", "--ready-file"] {
        let line = format!("--target {address} {option} /no-such-folder/file");
        let (code, text) = ended(shell("", &line));
        assert_eq!(code, Some(2), "{text}");
        assert!(text.starts_with("loadgen: /no-such-folder/file"), "{text}");
        assert!(listener.accept().is_err(), "{option}: it connected");
    }
}

#[test]
fn the_ready_file_is_not_there_before_the_brokers_have_registered() {
    let folder = folder("ready");
    let (ready, plot) = (folder.join("ready"), folder.join("plot.svg"));
    let files = format!("--ready-file {} --plot {}", ready.display(), plot.display());

    // No server listens: nobody must take the run for ready.
    let address = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    let address = address.expect("a port is free");
    let (code, text) = ended(shell("", &format!("--target {address} {files}")));
    assert_eq!(code, Some(2), "{text}");
    assert_eq!(names(&folder), ["plot.svg"]);

    let (code, text) = ended(shell("", &format!("{} {files}", short_run(null_server()))));
    assert_eq!(code, Some(0), "{text}");
    assert_eq!(names(&folder), ["plot.svg", "ready"]);
    let plot = fs::read_to_string(plot).expect("it is a text");
    assert!(plot.contains("</svg>"));
    fs::remove_dir_all(folder).expect("it is ours");
}

#[test]
fn a_low_soft_limit_of_open_files_is_raised() {
    let line = format!("{} --connections 100", short_run(null_server()));
    let (code, text) = ended(shell("ulimit -Sn 64;", &line));
    assert_eq!(code, Some(0), "{text}");
}

#[test]
fn a_low_hard_limit_of_open_files_is_told_with_what_is_needed() {
    let line = format!("{} --connections 100", short_run(null_server()));
    let (code, text) = ended(shell("ulimit -Sn 64; ulimit -Hn 128;", &line));
    assert_eq!(code, Some(2), "{text}");
    let expected =
        "loadgen: connections of 4 brokers and 100 clients need 200 open files; allowed are 128 ";
    assert!(text.starts_with(expected), "{text}");
}

/// A null server that ends with the test.
fn null_server() -> SocketAddr {
    let server = NullServer::bind(([127, 0, 0, 1], 0).into(), 1_024, 1);
    let mut server = server.expect("a port is free");
    let address = server.local_address();
    let deadline = Instant::now() + Duration::from_secs(3_600);
    thread::spawn(move || server.run(deadline));
    address
}

fn short_run(target: SocketAddr) -> String {
    format!("--target {target} --topics 10 --mode closed --warm-up 0 --duration 0.1")
}

/// Runs the program after these commands.
fn shell(before: &str, line: &str) -> Output {
    let program = env!("CARGO_BIN_EXE_loadgen");
    let script = format!("{before} exec {program} {line}");
    let output = Command::new("sh").args(["-c", &script]).output();
    output.expect("there is a shell")
}

/// Exit status, and what was written to stderr.
fn ended(output: Output) -> (Option<i32>, String) {
    let text = String::from_utf8(output.stderr).expect("it is a text");
    (output.status.code(), text)
}

/// A new folder of this process.
fn folder(name: &str) -> PathBuf {
    let name = format!("{name}-{}", std::process::id());
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::create_dir_all(&folder).expect("the target folder is ours");
    folder
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("it is there");
    let names = entries.map(|entry| entry.expect("it is there").file_name());
    let mut names: Vec<String> = names
        .map(|name| name.into_string().expect("it is a text"))
        .collect();
    names.sort();
    names
}
