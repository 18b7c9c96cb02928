//! The generator against its own null server: set-up, both loops, a mass disconnect, the count of what came back.

use std::{
    ffi::OsString,
    io::{Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    process::{self, Child},
    sync::mpsc::{Sender, TryRecvError, channel},
    thread,
    time::{Duration, Instant},
};

use loadgen::{
    null::NullServer,
    options::{self, Command, Mode, Options},
    outage::RETURN,
    progress::Progress,
    record::{Fault, Summary},
    run::{self, Phase},
};

#[test]
fn both_loops_are_answered_in_full() {
    let phases = run_faultless(
        "--topics 200 --topics-per-broker 50 --register-rate 50 --register-kind compressed --rate 2000",
    );
    let modes: Vec<Mode> = phases.iter().map(|phase| phase.mode).collect();
    assert_eq!(modes, [Mode::Closed, Mode::Open]);

    let (closed, open) = (&phases[0].recorders[0], &phases[1].recorders[0]);
    assert!(closed.replies > 100, "{}", closed.replies);
    assert_eq!(closed.bytes_received, closed.replies * 1_024);
    assert!(closed.lateness.is_empty());
    // Every request that fell due in the measured time has been sent and recorded, however slow the machine.
    assert_eq!(open.latency.len(), 400);
    assert_eq!(open.lateness.len(), 400);
    let latency = Summary::of(&open.latency).expect("it has values");
    let lateness = Summary::of(&open.lateness).expect("it has values");
    assert!(latency.max >= lateness.max);

    let names: Vec<&str> = phases[1].recorders.iter().map(|r| r.name).collect();
    assert_eq!(names, ["route", "register", "heartbeat"]);
    assert_eq!(phases[1].recorders[1].latency.len(), 10);
}

#[test]
fn brokers_that_leave_come_back() {
    let phases = run_faultless(
        "--workload heartbeat --topics 100 --topics-per-broker 20 --mode closed --disconnect-brokers 5 --threads 2",
    );
    let recorders = &phases[0].recorders;
    let returned = recorders.iter().find(|recorder| recorder.name == RETURN);
    let returned = returned.expect("brokers came back");
    assert_eq!(returned.latency.len(), 5);
    // All were due at once and came back one after the other: what the later ones waited for the earlier is in their latency.
    assert_eq!(returned.lateness.len(), 5);
    let latency = Summary::of(&returned.latency).expect("it has values");
    let lateness = Summary::of(&returned.lateness).expect("it has values");
    assert!(
        latency.max >= lateness.max,
        "{} {}",
        latency.max,
        lateness.max
    );
}

#[test]
fn replies_that_wait_for_more_than_there_are_leave_all_the_same() {
    // Of 16 connections one is left over, or all are.
    for write_together in [3, 1_000] {
        let line = "--workload route-hot --topics 10 --rate 2000";
        let phases = run_faultless_against(&Server::start(write_together), line);
        assert!(phases[0].recorders[0].replies > 100);
        assert_eq!(phases[1].recorders[0].latency.len(), 400);
    }
}

#[test]
fn long_replies_come_in_turns_beside_short_ones() {
    let mut server =
        NullServer::bind(([127, 0, 0, 1], 0).into(), 1_024, 1).expect("a port is free");
    let lens = [3_000_000, 500_000];
    let long = server.listen_for_long(lens.to_vec());
    let (short, long) = (server.local_address(), long.expect("a port is free"));
    let (ended, end) = channel::<()>();
    let serving = thread::spawn(move || {
        while end.try_recv() == Err(TryRecvError::Empty) {
            let served = server.run(Instant::now() + Duration::from_millis(10));
            served.expect("the null server has a poll");
        }
    });
    let request = [0, 0, 0, 1, b' '];
    let mut lists = TcpStream::connect(long).expect("it listens");
    let mut queries = TcpStream::connect(short).expect("it listens");
    for stream in [&lists, &queries] {
        stream
            .set_read_timeout(Some(Duration::from_secs(30)))
            .expect("a timeout");
    }
    lists.write_all(&request.repeat(4)).expect("it reads");
    // Nobody takes the long ones yet.
    queries.write_all(&request).expect("it reads");
    assert_eq!(frame_of(&mut queries).len(), 1_020);
    for len in [lens, lens].concat() {
        let reply = frame_of(&mut lists);
        assert_eq!(reply.len(), len - 4);
        assert!(reply.ends_with(b"  "), "the next one begins behind it");
    }
    drop(ended);
    serving.join().expect("it ends");
}

/// The next frame, without its length.
fn frame_of(stream: &mut TcpStream) -> Vec<u8> {
    let mut prefix = [0; 4];
    stream.read_exact(&mut prefix).expect("a frame");
    let mut frame = vec![0; u32::from_be_bytes(prefix) as usize];
    stream.read_exact(&mut frame).expect("all of it");
    frame
}

#[test]
fn hundreds_of_connections_are_served() {
    let phases =
        run_faultless("--workload connections --connections 300 --topics 10 --mode closed");
    assert!(phases[0].recorders[0].replies >= 300);
}

#[test]
fn a_server_that_dies_is_a_fault_and_no_light_load() {
    let server = Server::start(1);
    let options = options(
        &server,
        "--workload route-hot --topics 10 --mode open --rate 2000 --duration 0.8 --heartbeat-rate 0",
    );
    let mut server = Some(server);
    let phases = run::run(&options, &mut |progress| {
        if let Progress::Phase { requests: 1.., .. } = progress {
            server = None;
        }
    });
    let phases = phases.expect("the server took the registrations");
    let faults = &phases[0].faults;
    let count = |wanted| faults.iter().find(|(fault, _)| *fault == wanted);
    assert!(count(Fault::Closed).is_some(), "{faults:?}");
    let (_, never_sent) = count(Fault::NeverSent).expect("requests fell due after its end");

    // Nothing is missing among the slow, and it would have waited until the end of the measured time: of requests that are due
    // every 0.5 ms the first of so many was due so long before it.
    let route = &phases[0].recorders[0];
    assert_eq!(route.latency.len(), 1_600);
    let latency = Summary::of(&route.latency).expect("it has values");
    let waited = 500.0 * never_sent as f64;
    assert!(latency.max >= 0.999 * waited, "{latency:?} {never_sent}");
}

#[test]
fn a_stall_shows_in_the_latencies_and_not_in_the_lateness() {
    // A machine that stops the generator itself for long shows nothing: then it is measured again.
    let shown = (0..3).any(|_| {
        let (latency, lateness) = stalled_for(Duration::from_millis(300));
        // Of 2000 requests 300 were due in the stall, of which the 20 that waited longest waited 280 ms and more.
        latency.p99 > 240_000.0 && latency.max > 298_000.0 && lateness.max < 150_000.0
    });
    assert!(shown, "latency of no run showed the stall alone");
}

/// Latency and lateness of an open loop whose server does nothing for so long, once.
fn stalled_for(stall: Duration) -> (Summary, Summary) {
    let server = Server::start(1);
    // With one out on each connection most of what is due in the stall is held back by the generator.
    let line = "--workload route-hot --topics 10 --mode open --rate 1000 --depth 1 --duration 2";
    let mut is_stalled = false;
    let phases = run::run(&options(&server, line), &mut |progress| {
        if progress.requests() > 0 && !is_stalled {
            is_stalled = true;
            server.stall(stall);
        }
    });
    let phases = phases.expect("the null server answers");
    assert!(phases[0].faults.is_empty(), "{:?}", phases[0].faults);
    let route = &phases[0].recorders[0];
    // All that was due was sent, and counts once.
    assert_eq!(route.latency.len(), 2_000);
    assert_eq!(route.lateness.len(), 2_000);
    let of = |histogram| Summary::of(histogram).expect("it has values");
    (of(&route.latency), of(&route.lateness))
}

#[test]
fn a_server_process_that_ends_is_a_fault_and_leaves_the_report() {
    let server = Server::start(1);
    let mut process = Process::start();
    let pid = process.0.id();
    let line = format!("--topics 10 --mode closed --server-pid {pid}");
    let phases = run::run(&options(&server, &line), &mut |_| ()).expect("the process is there");
    assert!(phases[0].server.is_some());
    assert!(phases[0].faults.is_empty(), "{:?}", phases[0].faults);

    // It ends in a run; that nobody has waited for it makes no difference.
    let phases = run::run(&options(&server, &line), &mut |progress| {
        if let Progress::SetUp { .. } = progress {
            process.0.kill().expect("it is our process");
        }
    });
    let phases = phases.expect("the null server answers");
    assert!(phases[0].server.is_none());
    let faults: Vec<Fault> = phases[0].faults.iter().map(|(fault, _)| fault).collect();
    assert_eq!(faults, [Fault::ServerEnded]);
    assert!(phases[0].recorders[0].replies > 0);

    process.0.wait().expect("it is our process");
    let refused = run::run(&options(&server, &line), &mut |_| ());
    let text = refused.expect_err("the process has ended").to_string();
    assert_eq!(text, format!("--server-pid {pid}: no such process"));
}

#[test]
fn where_no_server_listens_this_is_said() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let address = listener.local_addr().expect("it listens");
    drop(listener);
    let options = options_at(address, "--topics 10");
    let refused = run::run(&options, &mut |_| ()).expect_err("no server listens");
    let expected = format!(
        "no server listens at {address}; does one run there? --target names another address"
    );
    assert_eq!(refused.to_string(), expected);
}

/// A process that does nothing, and ends when this is dropped.
struct Process(Child);

impl Process {
    fn start() -> Self {
        let child = process::Command::new("sleep").arg("3600").spawn();
        Self(child.expect("there is a sleep"))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended before.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A null server on a port of its own, which ends when this is dropped.
struct Server {
    address: SocketAddr,
    stalls: Sender<Duration>,
}

impl Server {
    fn start(write_together: usize) -> Self {
        let server = NullServer::bind(([127, 0, 0, 1], 0).into(), 1_024, write_together);
        let mut server = server.expect("a port is free");
        let address = server.local_address();
        let (stalls, next_stall) = channel();
        thread::spawn(move || {
            loop {
                match next_stall.try_recv() {
                    Ok(stall) => thread::sleep(stall),
                    Err(TryRecvError::Disconnected) => return,
                    Err(TryRecvError::Empty) => {}
                }
                let served = server.run(Instant::now() + Duration::from_millis(10));
                served.expect("the null server has a poll");
            }
        });
        Self { address, stalls }
    }

    /// Makes it do nothing for so long.
    fn stall(&self, stall: Duration) {
        self.stalls.send(stall).expect("it runs");
    }
}

fn options(server: &Server, line: &str) -> Options {
    options_at(server.address, line)
}

fn options_at(target: SocketAddr, line: &str) -> Options {
    let line = format!("--target {target} --warm-up 0.05 --duration 0.2 {line}");
    match options::parse(line.split_whitespace().map(OsString::from)) {
        Ok(Command::Run(options)) => *options,
        other => unreachable!("{other:?}"),
    }
}

fn run_faultless(line: &str) -> Vec<Phase> {
    run_faultless_against(&Server::start(1), line)
}

fn run_faultless_against(server: &Server, line: &str) -> Vec<Phase> {
    let phases = run::run(&options(server, line), &mut |_| ()).expect("the null server answers");
    for phase in &phases {
        assert!(phase.faults.is_empty(), "{:?}", phase.faults);
    }
    phases
}
