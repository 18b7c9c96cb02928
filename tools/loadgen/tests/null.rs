//! The generator against its own null server: set-up, both loops, a mass disconnect, the count of what came back.

use std::{
    ffi::OsString,
    net::SocketAddr,
    thread,
    time::{Duration, Instant},
};

use loadgen::{
    null::NullServer,
    options::{self, Command, Mode, Options},
    outage::RETURN,
    record::Summary,
    run::{self, Phase},
};

/// A null server that outlives the test, on a port of its own.
fn null_server() -> SocketAddr {
    let mut server = NullServer::bind(([127, 0, 0, 1], 0).into(), 1_024).expect("a port is free");
    let address = server.local_address().expect("it listens");
    thread::spawn(move || server.run(Instant::now() + Duration::from_secs(20)));
    address
}

fn options(line: &str) -> Options {
    let line = format!(
        "--target {} --warm-up 0.05 --duration 0.2 {line}",
        null_server()
    );
    match options::parse(line.split_whitespace().map(OsString::from)) {
        Ok(Command::Run(options)) => *options,
        other => unreachable!("{other:?}"),
    }
}

fn run(line: &str) -> Vec<Phase> {
    let phases = run::run(&options(line), &mut |_| ()).expect("the null server answers");
    for phase in &phases {
        assert!(phase.faults.is_empty(), "{:?}", phase.faults);
    }
    phases
}

#[test]
fn both_loops_are_answered_in_full() {
    let small = "--topics 200 --topics-per-broker 50 --register-rate 50 --register-kind compressed --rate 2000";
    let phases = run(small);
    let modes: Vec<Mode> = phases.iter().map(|phase| phase.mode).collect();
    assert_eq!(modes, [Mode::Closed, Mode::Open]);

    let (closed, open) = (&phases[0].recorders[0], &phases[1].recorders[0]);
    assert!(closed.replies > 100, "{}", closed.replies);
    assert_eq!(closed.bytes_received, closed.replies * 1_024);
    assert!(closed.lateness.is_empty());
    // Every request that fell due in the measured time has been sent and recorded, however slow the machine.
    assert_eq!(open.latency.len(), 400);
    assert_eq!(open.lateness.len(), 400);
    let latency = Summary::of(&open.latency).unwrap();
    assert!(latency.max >= Summary::of(&open.lateness).unwrap().max);

    let names: Vec<&str> = phases[1].recorders.iter().map(|r| r.name).collect();
    assert_eq!(names, ["route", "register", "heartbeat"]);
    assert_eq!(phases[1].recorders[1].latency.len(), 10);
}

#[test]
fn brokers_that_leave_come_back() {
    let phases = run(
        "--workload heartbeat --topics 100 --topics-per-broker 20 --mode closed --disconnect-brokers 5 --threads 2",
    );
    let recorders = &phases[0].recorders;
    let returned = recorders.iter().find(|r| r.name == RETURN).unwrap();
    assert_eq!(returned.latency.len(), 5);
}

#[test]
fn hundreds_of_connections_are_served() {
    let phases = run("--workload connections --connections 300 --topics 10 --mode closed");
    assert!(phases[0].recorders[0].replies >= 300);
}
