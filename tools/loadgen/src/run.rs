//! A run: set-up, then the phases one after the other, each with its threads.

use std::{
    sync::mpsc::{Receiver, RecvTimeoutError, sync_channel},
    thread,
    time::{Duration, Instant},
};

use crate::{
    connection::Connection,
    error::{Error, Result},
    moments::{Moments, Waiting},
    options::{Mode, Options, Workload},
    outage::{Outage, Plan},
    process::{Cpu, ProcessUse, Processors, Stolen},
    progress::Progress,
    record::{Fault, Faults, Recorder},
    schedule::Schedule,
    setup::{Connections, connect},
    source::{RegisterSource, RouteSource, Source},
    stream::{Open, Pace, Stream},
    worker::{Outcome, Worker},
};

/// Between the start of the threads and the first request: threads that start late would begin with lateness.
const HEAD_START: Duration = Duration::from_millis(50);

/// How long replies are waited for after the last request.
const DRAIN_TIME: Duration = Duration::from_secs(2);

/// What the server used in the measured time.
#[derive(Clone, Copy, Debug)]
pub struct ServerUse {
    /// CPU time.
    pub cpu: Cpu,
    /// Resident memory at the end.
    pub resident_kib: u64,
}

/// What a phase measured.
#[derive(Debug)]
pub struct Phase {
    /// How requests were timed.
    pub mode: Mode,
    /// The measured time.
    pub duration: Duration,
    /// The measured load first, then what ran beside it.
    pub recorders: Vec<Recorder>,
    /// Wrong replies of all.
    pub faults: Faults,
    /// CPU time of the measured load's threads.
    pub cpu: Cpu,
    /// The greatest share of time that a thread of the measured load was not waiting.
    pub busy: f64,
    /// The server's, if its process is known and has not ended.
    pub server: Option<ServerUse>,
    /// What a hypervisor took of all processors meanwhile, if the system tells.
    pub stolen: Option<Stolen>,
}

/// Runs everything; `progress` is called a few times a second.
///
/// # Errors
/// When the server cannot be reached, its process is not there, it does not take the registrations, or the system refuses something.
pub fn run(options: &Options, progress: &mut dyn FnMut(Progress)) -> Result<Vec<Phase>> {
    if let Some(pid) = options.server_pid
        && ProcessUse::of(pid).is_none()
    {
        return Err(Error::new(format!("--server-pid {pid}: no such process")));
    }
    let brokers = options.population.brokers();
    let mut connections = connect(options, &mut |done| {
        progress(Progress::SetUp { done, brokers });
    })?;
    let modes = options.modes.iter();
    modes
        .map(|mode| phase(options, *mode, &mut connections, progress))
        .collect()
}

fn phase(
    options: &Options,
    mode: Mode,
    connections: &mut Connections,
    progress: &mut dyn FnMut(Progress),
) -> Result<Phase> {
    let depth = match mode {
        Mode::Closed => options.depth,
        Mode::Open => options.open_depth,
    };
    let Connections { brokers, clients } = connections;
    for connection in brokers.iter_mut().chain(clients.iter_mut()) {
        connection.depth = depth;
    }
    let moments = moments(options);
    let outage = outage(options, &moments);
    let (measured, aside) = if options.workload.is_brokers() {
        (brokers, None)
    } else {
        (clients, Some(brokers))
    };
    let (sender, receiver) = sync_channel(64);
    thread::scope(|scope| {
        let part_len = measured.len().div_ceil(options.threads);
        let parts: Vec<&mut [Connection]> = measured.chunks_mut(part_len).collect();
        let part_count = parts.len();
        let mut threads = Vec::new();
        for (index, part) in parts.into_iter().enumerate() {
            let pace = pace(options, mode, &moments, (index, part_count), part.len());
            let stream = measured_stream(options, index, pace);
            let outage = part_of(outage.filter(|_| options.workload.is_brokers()), part);
            let sender = Some(sender.clone());
            let worker = Worker::new(part, vec![stream], moments, Waiting::Exact, outage, sender)?;
            threads.push(spawn(scope, format!("load-{index}"), worker)?);
        }
        let mut aside_thread = None;
        if let Some(brokers) = aside {
            let streams = streams_aside(options, &moments, brokers.len());
            if !streams.is_empty() || outage.is_some() {
                let waiting = Waiting::Thrifty;
                let outage = part_of(outage, brokers);
                let worker = Worker::new(brokers, streams, moments, waiting, outage, None)?;
                aside_thread = Some(spawn(scope, "aside".to_owned(), worker)?);
            }
        }
        drop(sender);
        let (server, stolen) = watch(options, mode, &moments, &receiver, progress);
        let outcomes = threads.into_iter().map(join).collect::<Result<Vec<_>>>()?;
        let aside = aside_thread.map(join).transpose()?;
        let mut phase = gather(mode, options.duration, outcomes, aside);
        if options.server_pid.is_some() && server.is_none() {
            phase.faults.add(Fault::ServerEnded);
        }
        Ok(Phase {
            server,
            stolen,
            ..phase
        })
    })
}

fn moments(options: &Options) -> Moments {
    let nanoseconds = |duration: Duration| {
        u64::try_from(duration.as_nanos()).expect("the options bound durations")
    };
    let start = nanoseconds(HEAD_START);
    let warm_end = start + nanoseconds(options.warm_up);
    let end = warm_end + nanoseconds(options.duration);
    Moments {
        epoch: Instant::now(),
        start,
        warm_end,
        end,
        drain_end: end + nanoseconds(DRAIN_TIME),
    }
}

fn outage(options: &Options, moments: &Moments) -> Option<Plan> {
    let measured = moments.end - moments.warm_end;
    (options.disconnect_brokers > 0).then_some(Plan {
        brokers: options.disconnect_brokers,
        leave_at: moments.warm_end + measured / 2,
        return_at: moments.warm_end + measured / 4 * 3,
        target: options.target,
        population: options.population,
        codec: options.codec,
    })
}

/// What is planned for the brokers of these connections.
fn part_of(plan: Option<Plan>, connections: &[Connection]) -> Option<Outage> {
    let first = connections.first()?.broker.as_ref()?.index;
    Outage::of_thread(plan?, first, connections.len())
}

fn pace(
    options: &Options,
    mode: Mode,
    moments: &Moments,
    (thread, threads): (usize, usize),
    connections: usize,
) -> Pace {
    match mode {
        Mode::Closed => Pace::Closed,
        Mode::Open => {
            let schedule = Schedule::share(moments.start, options.rate, thread, threads);
            Pace::Open(Open::new(schedule, connections))
        }
    }
}

fn measured_stream(options: &Options, thread: usize, pace: Pace) -> Stream {
    let (name, source) = match options.workload {
        Workload::RegisterStorm => ("register", register_source(options)),
        Workload::Heartbeat => ("heartbeat", Source::Heartbeat),
        Workload::RouteHot | Workload::RouteCold | Workload::Mixed | Workload::Connections => {
            let source = RouteSource::new(
                options.codec,
                options.version,
                &options.population,
                options.hot_topics,
                options.hot_percent,
                options.seed.wrapping_add(thread as u64),
            );
            ("route", Source::Route(source))
        }
    };
    Stream { name, source, pace }
}

/// What runs beside the measured load, at its rates whatever the mode.
fn streams_aside(options: &Options, moments: &Moments, connections: usize) -> Vec<Stream> {
    let open = |rate| Pace::Open(Open::new(Schedule::new(moments.start, rate), connections));
    let mut streams = Vec::new();
    if options.register_rate > 0.0 {
        streams.push(Stream {
            name: "register",
            source: register_source(options),
            pace: open(options.register_rate),
        });
    }
    if options.heartbeat_rate > 0.0 {
        streams.push(Stream {
            name: "heartbeat",
            source: Source::Heartbeat,
            pace: open(options.heartbeat_rate),
        });
    }
    streams
}

fn register_source(options: &Options) -> Source {
    Source::Register(RegisterSource {
        kind: options.register_kind,
        topics: options.register_topics,
        population: options.population,
        codec: options.codec,
    })
}

type Thread<'scope> = thread::ScopedJoinHandle<'scope, Result<Outcome>>;

fn spawn<'scope>(
    scope: &'scope thread::Scope<'scope, '_>,
    name: String,
    worker: Worker<'scope>,
) -> Result<Thread<'scope>> {
    let started = thread::Builder::new()
        .name(name)
        .spawn_scoped(scope, move || worker.run());
    started.map_err(Error::while_doing("start a thread"))
}

fn join(thread: Thread<'_>) -> Result<Outcome> {
    thread.join().expect("a worker does not panic")
}

/// Follows the phase until its threads are done, and looks at server and machine when the measured time begins and ends.
fn watch(
    options: &Options,
    mode: Mode,
    moments: &Moments,
    receiver: &Receiver<u64>,
    progress: &mut dyn FnMut(Progress),
) -> (Option<ServerUse>, Option<Stolen>) {
    let sample = || {
        let server = options.server_pid.and_then(ProcessUse::of);
        (server, Processors::now())
    };
    let mut before = None;
    let mut after = None;
    let mut requests = 0;
    loop {
        let now = moments.now();
        if now >= moments.warm_end && before.is_none() {
            before = Some(sample());
        }
        if now >= moments.end && after.is_none() {
            after = Some(sample());
        }
        let next = [moments.warm_end, moments.end, u64::MAX];
        let next = next.into_iter().find(|at| *at > now).unwrap_or(u64::MAX);
        let wait = Duration::from_nanos(next - now).min(Duration::from_millis(250));
        match receiver.recv_timeout(wait) {
            Ok(more) => requests += more,
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
        progress(Progress::Phase {
            mode,
            elapsed: Duration::from_nanos(now),
            warm_up: Duration::from_nanos(moments.warm_end),
            total: Duration::from_nanos(moments.end),
            requests,
        });
    }
    // The threads may be done in the moment in which the measured time ends.
    let after = after.unwrap_or_else(sample);
    let before = before.unwrap_or(after);
    let stolen = after.1.zip(before.1);
    let stolen = stolen.map(|(after, before)| after.stolen_since(before));
    let server = after.0.zip(before.0);
    let server = server.map(|(after, before)| ServerUse {
        cpu: after.cpu.since(before.cpu),
        resident_kib: after.resident_kib,
    });
    (server, stolen)
}

/// One phase of what its threads measured.
fn gather(mode: Mode, duration: Duration, outcomes: Vec<Outcome>, aside: Option<Outcome>) -> Phase {
    let mut phase = Phase {
        mode,
        duration,
        recorders: Vec::new(),
        faults: Faults::default(),
        cpu: Cpu::default(),
        busy: 0.0,
        server: None,
        stolen: None,
    };
    for outcome in outcomes {
        phase.cpu = phase.cpu.plus(outcome.cpu);
        phase.busy = phase.busy.max(outcome.busy);
        phase.faults.merge(&outcome.faults);
        if phase.recorders.is_empty() {
            phase.recorders = outcome.recorders;
        } else {
            let pairs = phase.recorders.iter_mut().zip(&outcome.recorders);
            pairs.for_each(|(all, part)| all.merge(part));
        }
    }
    if let Some(outcome) = aside {
        phase.faults.merge(&outcome.faults);
        phase.recorders.extend(outcome.recorders);
    }
    let has = |count: fn(&Recorder) -> u64| phase.recorders.iter().any(|r| count(r) > 0);
    if has(|recorder| recorder.echoed) && has(|recorder| recorder.unechoed) {
        phase.faults.add(Fault::OpaqueAtTimes);
    }
    phase
}
