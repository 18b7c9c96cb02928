//! Faults on a living name server.
//!
//! Each scenario starts the release build as a process of its own, does it harm from outside, and says what it found: figures, a
//! verdict, and the faults. The report goes to stdout, all else to stderr.

mod bound;
mod bystanders;
mod options;
mod peer;
mod report;
mod scenario;
mod server;
mod usage;

use std::{
    env, fs,
    path::PathBuf,
    process::ExitCode,
    thread,
    time::{Duration, Instant},
};

use parity::{Error, Result};
use serde_json::json;

use crate::{
    options::{HELP, Options, Scale},
    report::Record,
    scenario::Size,
};

/// What every scenario is given.
#[derive(Debug)]
struct Context {
    /// The program under test.
    binary: PathBuf,
    /// How much to do.
    size: Size,
    /// Of everything that is random.
    seed: u64,
}

fn main() -> ExitCode {
    let done = options::parse(env::args_os().skip(1)).and_then(|options| match options {
        Some(options) => execute(&options),
        None => {
            print(HELP);
            Ok(ExitCode::SUCCESS)
        }
    });
    done.unwrap_or_else(|error| {
        say(&error.to_string());
        ExitCode::from(2)
    })
}

fn execute(options: &Options) -> Result<ExitCode> {
    scenario::disk::enter_mount_namespace(&options.scenarios);
    if !options.server.is_file() {
        let server = options.server.display();
        return Err(Error::new(format!(
            "{server} is not there; cargo build --release, or --server PATH"
        )));
    }
    server::raise_own_limit();
    let mut records = Vec::new();
    let mut broken = false;
    for scenario in &options.scenarios {
        let size = match options.scale {
            Scale::Quick => scenario.quick,
            Scale::Full => scenario.full,
        };
        let context = Context {
            binary: options.server.clone(),
            size: Size {
                count: options.count.unwrap_or(size.count),
                seconds: options.seconds.unwrap_or(size.seconds),
            },
            seed: options.seed,
        };
        say(&format!("{} ...", scenario.name));
        let mut record = Record::new(scenario.name);
        let started = Instant::now();
        if let Err(error) = (scenario.run)(&context, &mut record) {
            broken = true;
            record.fault(format!("not run to its end: {error}"));
        }
        record.ended(started.elapsed());
        print(&record.text());
        records.push(record);
    }
    if let Some(path) = &options.json {
        let scenarios: Vec<_> = records.iter().map(Record::json).collect();
        let (machine, kernel) = loadgen::process::machine();
        let report = json!({"machine": machine, "kernel": kernel, "seed": options.seed, "scenarios": scenarios});
        fs::write(path, format!("{report:#}\n"))?;
    }
    Ok(if broken {
        ExitCode::from(2)
    } else if records.iter().all(Record::is_faultless) {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(1)
    })
}

/// Does nothing for so long.
fn pause(length: Duration) {
    thread::sleep(length);
}

#[expect(clippy::print_stdout, reason = "the report")]
fn print(text: &str) {
    print!("{text}");
}

#[expect(clippy::print_stderr, reason = "progress, and what went wrong")]
fn say(text: &str) {
    eprintln!("torture: {text}");
}
