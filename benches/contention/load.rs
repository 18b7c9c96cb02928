//! Readers that look routes up without pause, beside a writer with a pace: one cell of the comparison.

#![expect(
    clippy::disallowed_methods,
    reason = "latencies are differences of readings of the clock"
)]

use std::{
    fmt,
    sync::Barrier,
    thread,
    time::{Duration, Instant},
};

use hdrhistogram::Histogram;
use loadgen::population::Population;
use waypost::{registry::command::RegisterBroker, sync::Flag, time::Timestamp};

use crate::{
    designs::{Design, Kind, LiveKey, Reader},
    filled::{self, change},
};

/// Longer than any bench runs, in ns.
const LATENCY_MAX: u64 = 100_000_000_000;

/// What the writer does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Write {
    /// 904
    Heartbeat,
    /// 103 with all topics of a broker, as they are: what brokers send every 30 s.
    Unchanged,
    /// The same with a topic that has other numbers of queues, under a new version.
    Changed,
}

/// How often.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pace {
    PerSecond(u32),
    FlatOut,
}

/// One cell for all designs and sizes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cell {
    pub(crate) readers: usize,
    /// `None`: nobody writes.
    pub(crate) load: Option<(Write, Pace)>,
}

impl fmt::Display for Write {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Heartbeat => "heartbeats",
            Self::Unchanged => "unchanged registrations",
            Self::Changed => "changed registrations",
        })
    }
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { readers, load } = self;
        let plural = if *readers == 1 { "" } else { "s" };
        write!(f, "{readers} reader{plural}, ")?;
        match load {
            None => f.write_str("nobody writes"),
            Some((write, Pace::PerSecond(pace))) => write!(f, "{pace} {write} a second"),
            Some((write, Pace::FlatOut)) => write!(f, "{write} flat out"),
        }
    }
}

/// What a cell comes to. Latencies are in ns.
#[derive(Debug)]
pub(crate) struct Figures {
    pub(crate) look_ups: Histogram<u64>,
    pub(crate) look_ups_per_second: f64,
    pub(crate) writes: Histogram<u64>,
    pub(crate) writes_per_second: f64,
}

/// A design with a population in it.
pub(crate) struct Subject {
    design: Box<dyn Design>,
    topics: Vec<String>,
    /// The last registration of each broker.
    registrations: Vec<RegisterBroker>,
    brokers: Vec<LiveKey>,
    /// Counts what the writer has done: which broker is next, and the moment.
    turn: usize,
}

impl Subject {
    pub(crate) fn new(kind: Kind, population: Population) -> Self {
        let registrations: Vec<_> = (0..population.brokers())
            .map(|broker| filled::registration(broker, population.topics_of(broker)))
            .collect();
        let mut design = (kind.empty)();
        for registration in &registrations {
            design.register(Box::new(registration.clone()), Timestamp::from_millis(0));
        }
        Self {
            design,
            topics: (0..population.topics).map(filled::topic_name).collect(),
            brokers: registrations.iter().map(LiveKey::of).collect(),
            registrations,
            turn: 0,
        }
    }

    pub(crate) fn topics(&self) -> &[String] {
        &self.topics
    }

    pub(crate) fn reader(&self) -> Box<dyn Reader> {
        self.design.reader()
    }

    /// Does the next write; says how long the design took. What a worker of the server does, to read the registration, is not
    /// counted.
    pub(crate) fn write(&mut self, write: Write) -> Duration {
        self.turn += 1;
        let broker = self.turn % self.brokers.len();
        let now = Timestamp::from_millis(self.turn as u64);
        if write == Write::Heartbeat {
            let started = Instant::now();
            self.design.heartbeat(&self.brokers[broker], now);
            return started.elapsed();
        }
        let registration = &mut self.registrations[broker];
        if write == Write::Changed {
            let topic = self.turn % registration.body.topics.len();
            change(registration, topic..topic + 1);
        }
        let registration = Box::new(registration.clone());
        let started = Instant::now();
        self.design.register(registration, now);
        started.elapsed()
    }

    /// Runs a cell for about `duration`.
    pub(crate) fn run(&mut self, cell: Cell, duration: Duration) -> Figures {
        let readers: Vec<_> = (0..cell.readers).map(|_| self.reader()).collect();
        // The names lie with the readers, so that the writer may have the rest.
        let topics = std::mem::take(&mut self.topics);
        let start = Barrier::new(cell.readers + 2);
        let stop = Flag::new();
        let mut figures = Figures::new();
        let this = &mut *self;
        thread::scope(|scope| {
            let (topics, start, stop) = (topics.as_slice(), &start, &stop);
            let readers: Vec<_> = (0..)
                .zip(readers)
                .map(|(seed, reader)| scope.spawn(move || read(reader, topics, seed, start, stop)))
                .collect();
            let writer = scope.spawn(move || {
                start.wait();
                cell.load
                    .map(|(write, pace)| this.write_until(write, pace, stop))
            });
            start.wait();
            wait_until(Instant::now() + duration, stop);
            stop.raise();
            writer.thread().unpark();
            for reader in readers {
                let (latencies, per_second) = reader.join().expect("readers do not panic");
                figures.look_ups += &latencies;
                figures.look_ups_per_second += per_second;
            }
            if let Some((latencies, per_second)) = writer.join().expect("the writer does not panic")
            {
                figures.writes = latencies;
                figures.writes_per_second = per_second;
            }
        });
        self.topics = topics;
        figures
    }

    /// Writes at a pace. A writer that is late makes up for it, as brokers do not wait for each other.
    fn write_until(&mut self, write: Write, pace: Pace, stop: &Flag) -> (Histogram<u64>, f64) {
        let mut latencies = histogram();
        let started = Instant::now();
        let mut due = started;
        // At least once, however short the cell and however late this thread.
        loop {
            record(&mut latencies, self.write(write));
            if let Pace::PerSecond(pace) = pace {
                due += Duration::from_secs(1) / pace;
                wait_until(due, stop);
            }
            if stop.is_raised() {
                break;
            }
        }
        let per_second = latencies.len() as f64 / started.elapsed().as_secs_f64();
        (latencies, per_second)
    }
}

impl Figures {
    fn new() -> Self {
        Self {
            look_ups: histogram(),
            look_ups_per_second: 0.0,
            writes: histogram(),
            writes_per_second: 0.0,
        }
    }
}

/// Looks topics up in no order, without pause.
fn read(
    mut reader: Box<dyn Reader>,
    topics: &[String],
    seed: u64,
    start: &Barrier,
    stop: &Flag,
) -> (Histogram<u64>, f64) {
    let mut latencies = histogram();
    let mut out = Vec::with_capacity(4096);
    let mut choice = Choice(seed);
    start.wait();
    let started = Instant::now();
    loop {
        let topic = &topics[choice.next(topics.len())];
        out.clear();
        let before = Instant::now();
        let found = reader.look_up(topic, &mut out);
        record(&mut latencies, before.elapsed());
        assert!(found, "no topic is ever taken away");
        if stop.is_raised() {
            break;
        }
    }
    let per_second = latencies.len() as f64 / started.elapsed().as_secs_f64();
    (latencies, per_second)
}

/// Numbers in no order: the upper half of a linear congruence.
pub(crate) struct Choice(pub(crate) u64);

impl Choice {
    /// The next number below `bound`.
    pub(crate) fn next(&mut self, bound: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let upper = usize::try_from(self.0 >> 32).expect("32 bits");
        upper % bound
    }
}

fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, LATENCY_MAX, 3).expect("the bounds are legal")
}

fn record(latencies: &mut Histogram<u64>, latency: Duration) {
    let nanos = u64::try_from(latency.as_nanos()).unwrap_or(u64::MAX);
    latencies.saturating_record(nanos);
}

/// Waits for a moment, or for the end.
fn wait_until(moment: Instant, stop: &Flag) {
    loop {
        let left = moment.saturating_duration_since(Instant::now());
        if left.is_zero() || stop.is_raised() {
            return;
        }
        thread::park_timeout(left);
    }
}
