//! The command line: every option, its default for each workload, its bounds.

use std::{ffi::OsString, net::SocketAddr, ops::RangeInclusive, path::PathBuf, time::Duration};

use lexopt::{Arg, Parser, ValueExt};

use crate::{
    error::{Error, Result},
    frame::Codec,
    null::{LONG_REPLY_LEN_MAX, REPLY_LEN_MIN},
    population::Population,
    reply::REPLY_LEN_MAX,
    source::{HeartbeatKind, RegisterKind},
};

/// What `--help` prints.
pub const HELP: &str = include_str!("help.txt");

/// The options of a run. Without this list `--foo` would be asked for a value before it is found to be unknown.
const RUN_OPTIONS: [&str; 29] = [
    "target",
    "workload",
    "mode",
    "rate",
    "depth",
    "connections",
    "threads",
    "duration",
    "warm-up",
    "topics",
    "brokers",
    "topics-per-broker",
    "first-number",
    "hot-topics",
    "hot-percent",
    "seed",
    "register-rate",
    "register-kind",
    "register-topics",
    "heartbeat-rate",
    "heartbeat-code",
    "disconnect-brokers",
    "version-json",
    "codec",
    "report",
    "histogram-file",
    "plot",
    "ready-file",
    "server-pid",
];

/// The options of a null server.
const NULL_OPTIONS: [&str; 5] = [
    "listen",
    "reply-bytes",
    "long-reply-bytes",
    "write-together",
    "duration",
];

/// What to do.
#[derive(Debug)]
pub enum Command {
    /// Load a server.
    Run(Box<Options>),
    /// Be the null server.
    Null(NullOptions),
    /// Print [`HELP`].
    Help,
}

/// The kinds of load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Workload {
    /// Route queries for few topics.
    RouteHot,
    /// Route queries for many topics.
    RouteCold,
    /// Registrations.
    RegisterStorm,
    /// Heartbeats.
    Heartbeat,
    /// Route queries, mostly for hot topics, beside registrations.
    Mixed,
    /// Route queries over thousands of connections.
    Connections,
}

/// The two ways to time requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// A reply makes room for the next request: what is the throughput?
    Closed,
    /// Requests are due at a rate: what is the latency?
    Open,
}

/// Form of the report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Report {
    /// A table.
    Text,
    /// One JSON object.
    Json,
}

/// A run.
#[derive(Clone, Debug)]
pub struct Options {
    /// The server; a loopback address.
    pub target: SocketAddr,
    /// Kind of load.
    pub workload: Workload,
    /// Phases, in order.
    pub modes: Vec<Mode>,
    /// Requests a second in the open loop.
    pub rate: f64,
    /// Requests out per connection in the closed loop.
    pub depth: usize,
    /// The most requests out per connection in the open loop.
    pub open_depth: usize,
    /// Connections of clients.
    pub connections: usize,
    /// Threads of the measured load.
    pub threads: usize,
    /// Measured time of a phase.
    pub duration: Duration,
    /// Time before that.
    pub warm_up: Duration,
    /// Brokers and topics.
    pub population: Population,
    /// Topics that get `hot_percent` of the queries.
    pub hot_topics: usize,
    /// Share of the hot topics.
    pub hot_percent: u64,
    /// Of the choice of topics.
    pub seed: u64,
    /// Registrations a second beside the measured load.
    pub register_rate: f64,
    /// Kind of registrations.
    pub register_kind: RegisterKind,
    /// Topics of a registration.
    pub register_topics: usize,
    /// Heartbeats a second beside the measured load.
    pub heartbeat_rate: f64,
    /// Which request heartbeats are.
    pub heartbeat_kind: HeartbeatKind,
    /// Brokers that leave at half time.
    pub disconnect_brokers: usize,
    /// Version that route queries come from.
    pub version: u16,
    /// Header form of requests.
    pub codec: Codec,
    /// Form of the report.
    pub report: Report,
    /// Where the distribution goes.
    pub histogram_file: Option<PathBuf>,
    /// Where the plot goes.
    pub plot: Option<PathBuf>,
    /// A file that is made when all brokers have registered.
    pub ready_file: Option<PathBuf>,
    /// The server's process.
    pub server_pid: Option<u32>,
}

/// A null server.
#[derive(Clone, Debug)]
pub struct NullOptions {
    /// Where to listen; a loopback address.
    pub listen: SocketAddr,
    /// Length of each reply.
    pub reply_bytes: usize,
    /// Lengths of the replies at a second port, which come in turns; without any there is no such port.
    pub long_reply_bytes: Vec<usize>,
    /// Connections whose replies are written together.
    pub write_together: usize,
    /// How long to serve.
    pub duration: Duration,
}

impl Workload {
    /// Name on the command line and in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::RouteHot => "route-hot",
            Self::RouteCold => "route-cold",
            Self::RegisterStorm => "register-storm",
            Self::Heartbeat => "heartbeat",
            Self::Mixed => "mixed",
            Self::Connections => "connections",
        }
    }

    /// Whether the measured load goes over the brokers' connections.
    pub fn is_brokers(self) -> bool {
        matches!(self, Self::RegisterStorm | Self::Heartbeat)
    }
}

impl Mode {
    /// Name on the command line and in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Closed => "closed",
            Self::Open => "open",
        }
    }
}

/// Reads a command line without the program's name.
///
/// # Errors
/// What is wrong with it, for its writer.
pub fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<Command> {
    let mut parser = Parser::from_args(arguments);
    let wrong = |error: lexopt::Error| Error::new(error.to_string());
    let mut given: Vec<(String, String)> = Vec::new();
    let mut word: Option<Kind> = None;
    while let Some(argument) = parser.next().map_err(wrong)? {
        let kind = word.unwrap_or(Kind::Run);
        match argument {
            Arg::Short('h') | Arg::Long("help") => return Ok(Command::Help),
            Arg::Short(letter) => return Err(unknown(&format!("-{letter}"), kind)),
            Arg::Long(name) => {
                if !kind.options().contains(&name) {
                    return Err(unknown(&format!("--{name}"), kind));
                }
                let name = name.to_owned();
                let value = parser.value().and_then(ValueExt::string).map_err(wrong)?;
                given.push((name, value));
            }
            Arg::Value(value) if word.is_none() && given.is_empty() => {
                word = Some(Kind::named(&value.string().map_err(wrong)?)?);
            }
            Arg::Value(_) => return Err(wrong(argument.unexpected())),
        }
    }
    match word.unwrap_or(Kind::Run) {
        Kind::Run => run_options(&given).map(|options| Command::Run(Box::new(options))),
        Kind::Null => null_options(&given).map(Command::Null),
    }
}

/// What the first word asks for.
#[derive(Clone, Copy, Debug)]
enum Kind {
    Run,
    Null,
}

impl Kind {
    fn named(word: &str) -> Result<Self> {
        let mut known = [Self::Run, Self::Null].into_iter();
        let found = known.find(|kind| kind.name() == word);
        found.ok_or_else(|| Error::new(format!("unknown command {word}; there are run and null")))
    }

    fn name(self) -> &'static str {
        match self {
            Self::Run => "run",
            Self::Null => "null",
        }
    }

    fn options(self) -> &'static [&'static str] {
        match self {
            Self::Run => &RUN_OPTIONS,
            Self::Null => &NULL_OPTIONS,
        }
    }
}

fn unknown(option: &str, kind: Kind) -> Error {
    let of = kind.name();
    Error::new(format!(
        "unknown option {option} of {of}; loadgen --help lists them all"
    ))
}

fn null_options(given: &[(String, String)]) -> Result<NullOptions> {
    let mut options = NullOptions {
        listen: SocketAddr::from(([127, 0, 0, 1], 9876)),
        reply_bytes: 1_024,
        long_reply_bytes: Vec::new(),
        write_together: 1,
        duration: Duration::from_secs(3_600),
    };
    for (name, value) in given {
        match name.as_str() {
            "listen" => options.listen = loopback(name, value)?,
            "reply-bytes" => {
                options.reply_bytes = number(name, value, REPLY_LEN_MIN..=REPLY_LEN_MAX)?;
            }
            "long-reply-bytes" => {
                let lens = value.split(',');
                let lens = lens.map(|len| number(name, len, REPLY_LEN_MIN..=LONG_REPLY_LEN_MAX));
                options.long_reply_bytes = lens.collect::<Result<_>>()?;
            }
            "write-together" => options.write_together = number(name, value, 1..=1_024)?,
            "duration" => options.duration = seconds(name, value, 0.1..=86_400.0)?,
            _ => unreachable!("{name} is one of NULL_OPTIONS"),
        }
    }
    Ok(options)
}

fn run_options(given: &[(String, String)]) -> Result<Options> {
    let last = |wanted: &str| given.iter().rev().find(|(name, _)| name == wanted);
    let workload = match last("workload") {
        Some((name, value)) => workload(name, value)?,
        None => Workload::Mixed,
    };
    let mut options = defaults(workload);
    for (name, value) in given {
        set(&mut options, name, value)?;
    }
    let population = options.population;
    if last("heartbeat-rate").is_none() && !workload.is_brokers() {
        // As often as brokers do that register every 30 s: without it the server closes silent connections after two minutes.
        options.heartbeat_rate = population.brokers() as f64 / 30.0;
    }
    options.register_topics = options.register_topics.min(population.topics_per_broker);
    options.hot_topics = options.hot_topics.min(population.topics);
    check(&options, &last)?;
    Ok(options)
}

/// The workloads are nothing but these defaults.
fn defaults(workload: Workload) -> Options {
    let (topics, topics_per_broker) = match workload {
        Workload::RouteHot | Workload::Connections => (1_000, 2_000),
        Workload::RouteCold | Workload::Mixed => (100_000, 2_000),
        Workload::RegisterStorm | Workload::Heartbeat => (2_000, 20),
    };
    let (connections, depth, open_depth) = match workload {
        Workload::Connections => (4_000, 1, 16),
        Workload::RegisterStorm => (0, 1, 16),
        Workload::Heartbeat => (0, 16, 256),
        Workload::RouteHot | Workload::RouteCold | Workload::Mixed => (16, 16, 256),
    };
    let is_mixed = workload == Workload::Mixed;
    Options {
        target: SocketAddr::from(([127, 0, 0, 1], 9876)),
        workload,
        modes: vec![Mode::Closed, Mode::Open],
        rate: match workload {
            Workload::RegisterStorm => 1_000.0,
            Workload::RouteHot
            | Workload::RouteCold
            | Workload::Heartbeat
            | Workload::Mixed
            | Workload::Connections => 50_000.0,
        },
        depth,
        open_depth,
        connections,
        threads: 1,
        duration: Duration::from_secs(10),
        warm_up: Duration::from_secs(2),
        population: Population {
            topics,
            brokers_per_topic: 4,
            topics_per_broker,
            first_number: 0,
        },
        hot_topics: 1_000,
        hot_percent: if is_mixed { 90 } else { 0 },
        seed: 1,
        register_rate: if is_mixed { 100.0 } else { 0.0 },
        register_kind: RegisterKind::Changed,
        register_topics: 20,
        heartbeat_rate: 0.0,
        heartbeat_kind: HeartbeatKind::Plain,
        disconnect_brokers: 0,
        version: 479,
        codec: Codec::Json,
        report: Report::Text,
        histogram_file: None,
        plot: None,
        ready_file: None,
        server_pid: None,
    }
}

fn set(options: &mut Options, name: &str, value: &str) -> Result<()> {
    match name {
        "target" => options.target = loopback(name, value)?,
        "workload" => options.workload = workload(name, value)?,
        "mode" => {
            let both = ("both", vec![Mode::Closed, Mode::Open]);
            let one = |mode: Mode| (mode.name(), vec![mode]);
            options.modes = choice(name, value, [both, one(Mode::Closed), one(Mode::Open)])?;
        }
        "rate" => options.rate = real(name, value, 1.0..=10_000_000.0)?,
        "depth" => {
            options.depth = number(name, value, 1..=4_096)?;
            options.open_depth = options.depth;
        }
        "connections" => options.connections = number(name, value, 1..=16_384)?,
        "threads" => options.threads = number(name, value, 1..=64)?,
        "duration" => options.duration = seconds(name, value, 0.1..=3_600.0)?,
        "warm-up" => options.warm_up = seconds(name, value, 0.0..=600.0)?,
        "topics" => options.population.topics = number(name, value, 1..=1_000_000)?,
        "brokers" => options.population.brokers_per_topic = number(name, value, 1..=64)?,
        "topics-per-broker" => {
            options.population.topics_per_broker = number(name, value, 1..=10_000)?;
        }
        "first-number" => options.population.first_number = number(name, value, 0..=40_000)?,
        "hot-topics" => options.hot_topics = number(name, value, 1..=1_000_000)?,
        "hot-percent" => options.hot_percent = number(name, value, 0..=100)? as u64,
        "seed" => options.seed = number(name, value, 0..=usize::MAX)? as u64,
        "register-rate" => options.register_rate = real(name, value, 0.0..=100_000.0)?,
        "register-kind" => {
            let kinds = [
                ("changed", RegisterKind::Changed),
                ("one", RegisterKind::One),
                ("unchanged", RegisterKind::Unchanged),
                ("unchanged-compressed", RegisterKind::UnchangedCompressed),
                ("split", RegisterKind::Split),
                ("compressed", RegisterKind::Compressed),
            ];
            options.register_kind = choice(name, value, kinds)?;
        }
        "register-topics" => options.register_topics = number(name, value, 1..=10_000)?,
        "heartbeat-rate" => options.heartbeat_rate = real(name, value, 0.0..=1_000_000.0)?,
        "heartbeat-code" => {
            let kinds = [
                ("904", HeartbeatKind::Plain),
                ("322", HeartbeatKind::DataVersion),
            ];
            options.heartbeat_kind = choice(name, value, kinds)?;
        }
        "disconnect-brokers" => options.disconnect_brokers = number(name, value, 0..=16_384)?,
        "version-json" => {
            options.version = choice(name, value, [("strict", 479), ("plain", 399)])?;
        }
        "codec" => {
            let codecs = [("json", Codec::Json), ("rocketmq", Codec::RocketMq)];
            options.codec = choice(name, value, codecs)?;
        }
        "report" => {
            let forms = [("text", Report::Text), ("json", Report::Json)];
            options.report = choice(name, value, forms)?;
        }
        "histogram-file" => options.histogram_file = Some(PathBuf::from(value)),
        "plot" => options.plot = Some(PathBuf::from(value)),
        "ready-file" => options.ready_file = Some(PathBuf::from(value)),
        "server-pid" => {
            let pid = number(name, value, 1..=4_194_304)?;
            options.server_pid = Some(u32::try_from(pid).expect("process numbers have 22 bits"));
        }
        _ => unreachable!("{name} is one of RUN_OPTIONS"),
    }
    Ok(())
}

/// What is wrong with the options together.
fn check<'a>(options: &Options, last: &dyn Fn(&str) -> Option<&'a (String, String)>) -> Result<()> {
    let population = options.population;
    let brokers = population.brokers();
    if brokers > 16_384 {
        return Err(Error::new(format!(
            "{brokers} brokers; allowed are 16384: raise --topics-per-broker"
        )));
    }
    if options.workload.is_brokers() {
        for name in ["connections", "register-rate", "heartbeat-rate"] {
            if last(name).is_some() {
                let workload = options.workload.name();
                return Err(Error::new(format!(
                    "--{name} has no meaning for {workload}, whose load goes over one connection per broker"
                )));
            }
        }
    }
    if options.disconnect_brokers > population.expendable_brokers() {
        return Err(Error::new(format!(
            "--disconnect-brokers {}; without a topic losing its last broker at most {} of {brokers} can leave",
            options.disconnect_brokers,
            population.expendable_brokers()
        )));
    }
    let measured = if options.workload.is_brokers() {
        brokers
    } else {
        options.connections
    };
    if options.threads > measured {
        return Err(Error::new(format!(
            "--threads {}; there are {measured} connections",
            options.threads
        )));
    }
    Ok(())
}

fn workload(name: &str, value: &str) -> Result<Workload> {
    let all = [
        Workload::RouteHot,
        Workload::RouteCold,
        Workload::RegisterStorm,
        Workload::Heartbeat,
        Workload::Mixed,
        Workload::Connections,
    ];
    choice(name, value, all.map(|workload| (workload.name(), workload)))
}

fn choice<T, const N: usize>(name: &str, value: &str, choices: [(&str, T); N]) -> Result<T> {
    let known = choices.iter().map(|(word, _)| *word).collect::<Vec<_>>();
    let known = known.join(", ");
    choices
        .into_iter()
        .find_map(|(word, choice)| (word == value).then_some(choice))
        .ok_or_else(|| Error::new(format!("--{name} {value}; allowed are {known}")))
}

fn number(name: &str, value: &str, allowed: RangeInclusive<usize>) -> Result<usize> {
    let number = value.parse().ok().filter(|number| allowed.contains(number));
    number.ok_or_else(|| out_of_range(name, value, allowed.start(), allowed.end()))
}

fn real(name: &str, value: &str, allowed: RangeInclusive<f64>) -> Result<f64> {
    let number = value.parse().ok().filter(|number| allowed.contains(number));
    number.ok_or_else(|| out_of_range(name, value, allowed.start(), allowed.end()))
}

fn seconds(name: &str, value: &str, allowed: RangeInclusive<f64>) -> Result<Duration> {
    real(name, value, allowed).map(Duration::from_secs_f64)
}

fn out_of_range<T: std::fmt::Display>(name: &str, value: &str, least: T, most: T) -> Error {
    Error::new(format!(
        "--{name} {value}; allowed are numbers from {least} to {most}"
    ))
}

/// Only this machine may be loaded: a slip of the keyboard must not flood somebody's name server.
fn loopback(name: &str, value: &str) -> Result<SocketAddr> {
    let numeric = value.replace("localhost:", "127.0.0.1:");
    let address: Option<SocketAddr> = numeric.parse().ok();
    address
        .filter(|address| address.ip().is_loopback())
        .ok_or_else(|| {
            Error::new(format!(
                "--{name} {value}; allowed are loopback addresses with a port, such as 127.0.0.1:9876"
            ))
        })
}

#[cfg(test)]
mod tests;
