//! What look-ups of routes cost while brokers register: our design beside those one would otherwise reach for.
//!
//! * `cargo bench --bench contention`: each design alone (criterion), then the cells that tell the designs apart.
//! * `cargo bench --bench contention -- load --help`: the cells alone, all of them on request, with JSON and plots; those of the
//!   documentation are made with `load --full --seconds 0.3 --plot FOLDER`.
//! * any other arguments are criterion's.
//!
//! In a cell 1, 2 or 4 threads look up topics in no order, without pause, and one thread sends heartbeats or registrations at a pace
//! or flat out. A registration lists all topics of its broker, up to 2 000. All designs hash with the same function, share names
//! instead of copying them, and write the same bytes, which is asserted before anything is measured. Ours keeps its answers in
//! encoded pieces and the others encode at each look-up with the same JSON writer: what that is worth is the difference while nobody
//! writes. What the design is worth is what becomes of that difference when somebody does.
//!
//! # What these figures cannot show
//!
//! * **They are no server's.** No socket, no request, no batch: here each registration is a turn of its own, while the server
//!   applies up to `WRITER_DRAIN_MAX` before it publishes. What clients see is `tools/loadgen`'s business.
//! * **More threads than cores.** 4 readers and a writer on 2 cores take turns. Whoever is preempted within a look-up waits some
//!   milliseconds, whatever the design: that is the maximum, and where look-ups are slow or the writer never rests it reaches down
//!   to p99.9. A lock whose holder is preempted makes the others wait as well, which does belong to the design. Compare designs
//!   within a cell, and read cells with more threads than cores as "oversubscribed", not as "scales to 4".
//! * **Two cores are few.** Cache lines that all readers write, of locks and reference counts, cost more with each core that shares
//!   them: a lock's figures here are its best ones.
//! * **Readers are closed loops.** One that is kept waiting asks nothing meanwhile, so a stall counts once for each reader and not for
//!   every look-up that it would have struck. A percentile that looks harmless beside a large maximum may not be; look-ups a second
//!   show what was lost.
//! * **Reading the clock is within** each look-up of a cell, for all designs alike: the uncontended group is without.
//! * **Java's collector** and its object headers are not here: "RwLock" is the original's design in Rust, not the original.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a bench speaks to whoever started it"
)]

mod designs;
#[path = "../filled/mod.rs"]
#[expect(
    dead_code,
    reason = "here every design is filled the same way, from outside"
)]
mod filled;
mod load;
mod options;
mod report;

use std::{
    env,
    ffi::{OsStr, OsString},
    fs,
    process::ExitCode,
    time::Duration,
};

use criterion::{BenchmarkId, Criterion};
use designs::KINDS;
use load::{Choice, Subject, Write};
use options::{HELP, Options};
use report::Outcome;

fn main() -> ExitCode {
    let arguments: Vec<OsString> = env::args_os().skip(1).collect();
    designs::check_answers_are_alike();
    if arguments.first().is_some_and(|first| first == "load") {
        return match Options::parse(arguments.into_iter().skip(1)) {
            Ok(Some(options)) => compare(&options),
            Ok(None) => {
                print!("{HELP}");
                ExitCode::SUCCESS
            }
            Err(error) => {
                eprintln!("contention: {error}");
                ExitCode::from(2)
            }
        };
    }
    let has = |flag: &str| {
        arguments
            .iter()
            .any(|argument| argument == OsStr::new(flag))
    };
    // As criterion sees it: `cargo test` does not say `--bench`.
    let is_test = has("--test") || !has("--bench");
    alone(&mut configured(), if is_test { 400 } else { 100_000 });
    let is_plain = |argument: &OsString| argument == "--bench" || argument == "--test";
    if !arguments.iter().all(is_plain) {
        return ExitCode::SUCCESS;
    }
    if is_test {
        test()
    } else {
        compare(&Options::usual())
    }
}

fn configured() -> Criterion {
    Criterion::default()
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(1))
        .sample_size(20)
        .configure_from_args()
}

/// Each design with nobody beside it: a look-up, and a single write of each kind.
fn alone(criterion: &mut Criterion, entries: usize) {
    let mut subjects = KINDS.map(|kind| {
        let subject = Subject::new(kind, filled::population(entries));
        (kind.name, subject)
    });
    let mut group = criterion.benchmark_group("uncontended/look_up");
    for (name, subject) in &subjects {
        let mut reader = subject.reader();
        let (mut out, mut choice) = (Vec::with_capacity(4096), Choice(0));
        group.bench_function(BenchmarkId::new(*name, entries), |bencher| {
            bencher.iter(|| {
                out.clear();
                let topics = subject.topics();
                reader.look_up(&topics[choice.next(topics.len())], &mut out)
            });
        });
    }
    group.finish();
    for (write, group) in [
        (Write::Heartbeat, "uncontended/heartbeat"),
        (Write::Unchanged, "uncontended/unchanged_registration"),
        (Write::Changed, "uncontended/changed_registration"),
    ] {
        let mut group = criterion.benchmark_group(group);
        for (name, subject) in &mut subjects {
            group.bench_function(BenchmarkId::new(*name, entries), |bencher| {
                bencher.iter_custom(|count| (0..count).map(|_| subject.write(write)).sum());
            });
        }
        group.finish();
    }
}

/// Runs the cells and reports on them.
fn compare(options: &Options) -> ExitCode {
    let outcomes = run(options);
    print!("{}", report::table(&outcomes));
    let json = options.json.as_ref().map_or(Ok(()), |file| {
        fs::write(file, format!("{:#}\n", report::json(&outcomes)))
    });
    let plots = options
        .plot
        .as_ref()
        .map_or(Ok(()), |folder| report::write_plots(&outcomes, folder));
    match json.and(plots) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("contention: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: &Options) -> Vec<Outcome> {
    let mut outcomes = Vec::new();
    for &entries in &options.entries {
        for &kind in &options.kinds {
            eprintln!("{entries} entries, {}", kind.name);
            let mut subject = Subject::new(kind, filled::population(entries));
            for &cell in &options.cells {
                outcomes.push(Outcome {
                    design: kind.name,
                    entries,
                    cell,
                    figures: subject.run(cell, options.duration),
                });
            }
        }
    }
    outcomes
}

/// Runs every cell once, small, and each kind of report.
fn test() -> ExitCode {
    let outcomes = run(&Options::test());
    for outcome in &outcomes {
        let figures = &outcome.figures;
        assert!(!figures.look_ups.is_empty(), "{outcome:?}");
        let writes = outcome.cell.load.is_some();
        assert_eq!(!figures.writes.is_empty(), writes, "{outcome:?}");
    }
    assert_eq!(
        report::json(&outcomes)["cells"].as_array().map(Vec::len),
        Some(outcomes.len())
    );
    let folder = tempfile::tempdir().expect("a folder for the plots");
    report::write_plots(&outcomes, folder.path()).expect("plots can be written");
    let plots = fs::read_dir(folder.path()).expect("it was just written");
    assert_eq!(plots.count() * KINDS.len(), outcomes.len());
    println!("{} cells were run", outcomes.len());
    ExitCode::SUCCESS
}
