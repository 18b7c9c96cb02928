use super::*;
use crate::{
    options::{self, Command},
    record::{Fault, Faults},
    run::ServerUse,
};
use std::{ffi::OsString, time::Duration};

fn options() -> Options {
    let line = ["--duration", "2", "--rate", "1000"].map(OsString::from);
    match options::parse(line).unwrap() {
        Command::Run(options) => *options,
        other @ (Command::Null(_) | Command::Help) => panic!("{other:?}"),
    }
}

fn phase(mode: Mode) -> Phase {
    let mut recorder = Recorder::new("route");
    for value in 1..=2_000 {
        recorder.record_latency(value * 1_000, 1);
        if mode == Mode::Open {
            recorder.record_lateness(500);
        }
    }
    recorder.replies = 2_000;
    recorder.echoed = 2_000;
    recorder.bytes_received = 2_000_000;
    let cpu = Cpu {
        user: 2_000_000,
        system: 4_000_000,
    };
    Phase {
        mode,
        duration: Duration::from_secs(2),
        recorders: vec![recorder],
        faults: Faults::default(),
        cpu,
        busy: 0.5,
        server: Some(ServerUse {
            cpu,
            resident_kib: 5_000,
        }),
        stolen: Some(Stolen {
            ticks: 5,
            share: 0.0125,
        }),
    }
}

fn report<'a>(options: &'a Options, phases: &'a [Phase]) -> Report<'a> {
    Report {
        options,
        command_line: "loadgen --rate 1000".to_owned(),
        machine: "a machine".to_owned(),
        kernel: "a kernel".to_owned(),
        phases,
    }
}

#[test]
fn the_table_leads_with_throughput_and_tail() {
    let (options, phases) = (options(), [phase(Mode::Closed), phase(Mode::Open)]);
    let text = report(&options, &phases).text();
    for expected in [
        "throughput 1,000 requests/s, closed loop",
        "p99.9 1998.8 µs at 1,000 requests/s, open loop",
        "generator late by",
        "generator CPU 3000 ns/request (1000 in user mode), 50 % busy\n",
        "server CPU 3000 ns/request (1000 in user mode), 5000 KiB resident",
        "a hypervisor took 50 ms of all processors together, 1.25 %: latencies",
        "replies of 1000 bytes on average",
        "no faults",
    ] {
        assert!(text.contains(expected), "{expected} is not in\n{text}");
    }
}

#[test]
fn the_json_says_the_same() {
    let (options, phases) = (options(), [phase(Mode::Closed), phase(Mode::Open)]);
    let json = report(&options, &phases).json();
    let (closed, open) = (&json["phases"][0], &json["phases"][1]);
    assert_eq!(closed["requests"][0]["requestsPerSecond"], 1_000.0);
    assert_eq!(closed["requests"][0]["latenessMicroseconds"], Value::Null);
    assert_eq!(closed["requests"][0]["latencyMicroseconds"]["count"], 2_000);
    assert_eq!(open["requests"][0]["latenessMicroseconds"]["count"], 2_000);
    assert_eq!(open["server"]["residentKib"], 5_000);
    assert_eq!(open["stolenShare"], 0.0125);
    assert_eq!(open["stolenMilliseconds"], 50);
    assert_eq!(open["generator"]["cpuNanosecondsPerRequest"], 3_000.0);
}

#[test]
fn a_fault_is_shown_and_remembered() {
    let options = options();
    let mut phases = [phase(Mode::Closed)];
    assert!(report(&options, &phases).is_faultless());
    phases[0].faults.add(Fault::Code(17));
    let report = report(&options, &phases);
    assert!(!report.is_faultless());
    assert!(report.text().contains("FAULT code 17: 1"));
    assert!(report.text().contains("closed loop, WITH FAULTS"));
    assert_eq!(report.json()["phases"][0]["faults"]["code 17"], 1);
}

#[test]
fn wide_values_do_not_run_together() {
    let (options, mut phases) = (options(), [phase(Mode::Open)]);
    let recorder = &mut phases[0].recorders[0];
    *recorder = Recorder::new("route");
    recorder.record_latency(120_000_000_000, 10);
    recorder.record_lateness(120_000_000_000);
    recorder.replies = 1_000_000_000_000;
    let text = report(&options, &phases).text();
    let fields = |start| {
        let row = text
            .lines()
            .find(|line| line.trim_start().starts_with(start));
        row.unwrap().split_whitespace().count()
    };
    assert_eq!(fields("route"), 9, "{text}");
    assert_eq!(fields("generator late by"), 3 + 5, "{text}");
}

#[test]
fn a_hypervisor_is_suspected_when_ticks_and_share_are_many() {
    let options = options();
    let is_suspected = |ticks, share| {
        let mut phases = [phase(Mode::Open)];
        phases[0].stolen = Some(Stolen { ticks, share });
        let text = report(&options, &phases).text();
        text.contains("latencies of milliseconds may be its doing")
    };
    assert!(is_suspected(3, 0.0031));
    assert!(!is_suspected(2, 0.05), "one tick of a short run");
    assert!(!is_suspected(3, 0.003), "a little of a long run");
}

#[test]
fn a_server_that_never_answers_has_no_figures() {
    let options = options();
    let mut phases = [phase(Mode::Closed), phase(Mode::Open), phase(Mode::Open)];
    phases[0].recorders[0] = Recorder::new("route");
    phases[1].recorders[0] = Recorder::new("route");
    // Requests that were given up are in the histogram, and are no replies.
    phases[2].recorders[0].replies = 0;
    let text = report(&options, &phases).text();
    let headlines: Vec<&str> = text.lines().filter(|l| l.contains("no replies")).collect();
    let open = "  no replies, at 1,000 requests/s, open loop";
    assert_eq!(headlines, ["  no replies, closed loop", open, open]);
    assert!(text.contains("generator CPU 6.0 ms, 50 % busy"), "{text}");
    assert!(!text.contains("NaN"), "{text}");
}

#[test]
fn the_distribution_ends_with_all_values() {
    let (options, phases) = (options(), [phase(Mode::Open)]);
    let text = report(&options, &phases).distribution();
    let rows: Vec<&str> = text.lines().skip(2).collect();
    let last = rows.iter().rfind(|row| !row.starts_with('#')).unwrap();
    let fields: Vec<&str> = last.split_whitespace().collect();
    assert_eq!(fields[1..], ["1.000000000000", "2000"]);
}

#[test]
fn numbers_are_grouped_by_thousands() {
    assert_eq!(grouped(999.4), "999");
    assert_eq!(grouped(1_234_567.0), "1,234,567");
    assert_eq!(grouped(100_000.0), "100,000");
}
