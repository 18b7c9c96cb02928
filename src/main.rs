//! `mqnamesrv`: parse, load, start, wait.

#![expect(
    clippy::print_stderr,
    reason = "the one place where errors are printed"
)]

use std::{
    env,
    io::{self, Write},
    path::Path,
    process::ExitCode,
};

use waypost::{
    cli::{self, Invocation, Options},
    config::{Config, Environment},
    logging::{self, LogOptions},
    protocol::kv_file::{self, KvFile},
    registry::KvTable,
    server::{
        Server, config_file, descriptors,
        kv_store::{self, LoadError, Loaded},
        signal::{Ended, StopSignals},
    },
};

/// The command line cannot be followed.
const USAGE_ERROR: u8 = 1;
/// The server cannot start: the status with which the original's launcher ends.
const START_FAILURE: u8 = 255;
/// A second signal cut the shutdown short.
const KILLED: u8 = 130;

fn main() -> ExitCode {
    let invocation = match cli::parse(env::args_os().skip(1)) {
        Ok(invocation) => invocation,
        Err(error) => {
            eprintln!("{error}");
            eprint!("{}", cli::usage());
            return ExitCode::from(USAGE_ERROR);
        }
    };
    if let Invocation::Serve(options) | Invocation::PrintConfig(options) = &invocation {
        for argument in &options.ignored {
            eprintln!("argument without an option, ignored: {argument}");
        }
    }
    let done = match invocation {
        Invocation::Help => print(cli::usage()),
        Invocation::PrintConfig(options) => {
            configure(&options).and_then(|config| print(&config.print_items()))
        }
        Invocation::Serve(options) => serve(&options),
    };
    done.unwrap_or_else(|failure| {
        eprintln!("{failure}");
        ExitCode::from(START_FAILURE)
    })
}

/// Anything that keeps the server from starting; its text tells the operator what and where.
type Failure = Box<dyn std::error::Error>;

fn serve(options: &Options) -> Result<ExitCode, Failure> {
    let config = configure(options)?;
    config.validate()?;
    let log = logging::start(LogOptions::new(&config, variable("WAYPOST_LOG").as_deref()));
    match descriptors::raise_limit() {
        Ok(limit) => {
            let limit = limit.map_or_else(|| "unlimited".to_owned(), |limit| limit.to_string());
            tracing::info!("file descriptors: {limit}");
        }
        Err(error) => tracing::warn!("the limit of file descriptors stays as it is: {error}"),
    }
    // Until here a signal ends the process, which has nothing to lose yet; from here on it stops the server in order, even before it
    // has fully started.
    let kv = load_kv(config.kv_config_path())?;
    let signals = StopSignals::catch()?;
    let server = Server::start(config, kv)?;
    let address = server.local_addr();
    print(&format!(
        "The Name Server boot success. serializeType=JSON, address {address}\n"
    ))?;
    let mut report_status = server.status_reporter();
    let report = || {
        report_status();
        log.report_dropped();
    };
    let ended = signals.run_until_stopped(report, move || server.shutdown())?;
    log.report_dropped();
    Ok(match ended {
        Ended::Orderly => ExitCode::SUCCESS,
        Ended::Hastily => ExitCode::from(KILLED),
    })
}

/// Defaults, environment and file; says what is wrong with the file, line by line.
fn configure(options: &Options) -> Result<Config, Failure> {
    // Without `HOME`, as a service manager may start it, the home directory is that of the user database.
    let home = variable("HOME").or_else(|| env::home_dir()?.into_os_string().into_string().ok());
    let mut config = Config::defaults(&Environment {
        user_home: home,
        rocketmq_home: variable("ROCKETMQ_HOME"),
    });
    if let Some(path) = &options.config_file {
        let found = config_file::read(Path::new(path))
            .map_err(|error| format!("cannot read {path} (-c): {error}"))?;
        if let Some(problem) = found.problem {
            eprintln!("{problem}");
        }
        for finding in config.load_file(path, &found.bytes) {
            eprintln!("{path}: {finding}");
        }
        print(&format!("load config properties file OK, {path}\n"))?;
    }
    Ok(config)
}

/// Loads the KV file and says where state lives, and whether it can be kept.
fn load_kv(path: &str) -> Result<KvTable, LoadError> {
    let decode = |bytes: &[u8]| {
        kv_file::decode_kv_file(bytes).map(|file| match file {
            KvFile::Empty => KvTable::default(),
            KvFile::Table(table) => KvTable::from_plain(table),
        })
    };
    let Loaded { table, problems } = kv_store::load(Path::new(path), decode)?;
    for problem in problems {
        tracing::error!("{problem}");
    }
    match kv_store::check_writable(Path::new(path)) {
        Ok(()) => {
            tracing::info!("KV configuration is kept in {path} (kvConfigPath), which is writable")
        }
        Err(error) => tracing::warn!(
            "KV configuration is kept in {path} (kvConfigPath), which is not writable, so changes will be refused: {error}"
        ),
    }
    Ok(table)
}

/// Standard output may be a pipe that nobody reads any more, which is no reason to stop serving.
fn print(text: &str) -> Result<ExitCode, Failure> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())
        .and_then(|()| out.flush())
        .or_else(ignore_broken_pipe)
        .map_err(|error| format!("cannot write to standard output: {error}"))?;
    Ok(ExitCode::SUCCESS)
}

fn ignore_broken_pipe(error: io::Error) -> io::Result<()> {
    if error.kind() == io::ErrorKind::BrokenPipe {
        Ok(())
    } else {
        Err(error)
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the environment is read here and nowhere else"
)]
fn variable(name: &str) -> Option<String> {
    env::var(name).ok()
}
