//! The command line: run, null, help. The table or JSON goes to stdout, all else to stderr.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "this is what the user sees"
)]

use std::{
    env,
    io::{IsTerminal, stderr},
    path::PathBuf,
    process::ExitCode,
    time::{Duration, Instant},
};

use loadgen::{
    descriptors,
    error::{Error, Result},
    null::NullServer,
    options::{self, Command, HELP, NullOptions, Options},
    output::{Output, Signal},
    process,
    progress::Progress,
    report::Report,
    run,
};

const PROGRESS_INTERVAL: Duration = Duration::from_millis(500);

fn main() -> ExitCode {
    match execute() {
        Ok(code) => code,
        Err(error) => {
            eprintln!("loadgen: {error}");
            ExitCode::from(2)
        }
    }
}

fn execute() -> Result<ExitCode> {
    match options::parse(env::args_os().skip(1))? {
        Command::Help => {
            print!("{HELP}");
            Ok(ExitCode::SUCCESS)
        }
        Command::Null(options) => serve_null(options),
        Command::Run(options) => load(&options),
    }
}

fn serve_null(options: NullOptions) -> Result<ExitCode> {
    descriptors::raise_limit()?;
    let mut server = NullServer::bind(options.listen, options.reply_bytes, options.write_together)?;
    if !options.long_reply_bytes.is_empty() {
        let lens = options.long_reply_bytes;
        let address = server.listen_for_long(lens.clone())?;
        println!("long replies at {address}, of {lens:?} bytes in turns");
    }
    println!(
        "null server at {}, replies of {} bytes",
        server.local_address(),
        options.reply_bytes
    );
    let served = server.run(Instant::now() + options.duration);
    served.map_err(Error::while_doing("serve"))?;
    Ok(ExitCode::SUCCESS)
}

fn load(options: &Options) -> Result<ExitCode> {
    descriptors::check(options, descriptors::raise_limit()?)?;
    let create = |path: &Option<PathBuf>| path.as_deref().map(Output::create).transpose();
    let histogram_file = create(&options.histogram_file)?;
    let plot = create(&options.plot)?;
    let ready_file = options.ready_file.as_deref().map(Signal::prepare);
    let ready_file = ready_file.transpose()?;
    let mut display = Display::new();
    let mut announced = Ok(());
    let phases = run::run(options, &mut |progress| {
        if let (true, Some(ready_file)) = (is_ready(progress), &ready_file) {
            announced = ready_file.give();
        }
        display.show(progress);
    })?;
    display.clear();
    announced?;
    let (machine, kernel) = process::machine();
    let report = Report {
        options,
        command_line: command_line(),
        machine,
        kernel,
        phases: &phases,
    };
    match options.report {
        options::Report::Text => print!("{}", report.text()),
        options::Report::Json => println!("{:#}", report.json()),
    }
    if let Some(file) = histogram_file {
        file.write(&report.distribution())?;
    }
    if let Some(file) = plot {
        file.write(&report.plot())?;
    }
    Ok(if report.is_faultless() {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(1)
    })
}

/// Whether the last broker has registered just now.
fn is_ready(progress: Progress) -> bool {
    match progress {
        Progress::SetUp { done, brokers } => done == brokers,
        Progress::Phase { .. } => false,
    }
}

/// Without the program's folder, which says nothing about the run.
fn command_line() -> String {
    let arguments = env::args().skip(1);
    let words: Vec<String> = ["loadgen".to_owned()]
        .into_iter()
        .chain(arguments)
        .collect();
    words.join(" ")
}

/// A line that is written over and over, if somebody watches.
struct Display {
    is_terminal: bool,
    shown: Option<(Instant, u64)>,
}

impl Display {
    fn new() -> Self {
        Self {
            is_terminal: stderr().is_terminal(),
            shown: None,
        }
    }

    fn show(&mut self, progress: Progress) {
        let now = Instant::now();
        let (before, requests_before) = self.shown.unwrap_or((now, 0));
        let passed = now - before;
        if !self.is_terminal || (self.shown.is_some() && passed < PROGRESS_INTERVAL) {
            return;
        }
        self.shown = Some((now, progress.requests()));
        // Each phase counts from 0 again.
        let more = progress.requests().saturating_sub(requests_before) as f64;
        let rate = more / passed.max(PROGRESS_INTERVAL).as_secs_f64();
        eprint!("\r\x1b[K{}", progress.line(rate));
    }

    fn clear(&self) {
        if self.is_terminal {
            eprint!("\r\x1b[K");
        }
    }
}
