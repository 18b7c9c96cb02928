//! Those who have nothing to do with it: brokers that stay and clients that ask for their topics while others misbehave.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use loadgen::record::{Recorder, Summary};
use parity::{
    Error, Result,
    frame::Frame,
    script::build::{Broker, broker, route, topics},
};

use crate::{pause, peer::Peer, report::Record};

/// The topic that bystanders ask for.
pub(crate) const TOPIC: &str = "steady-topic";

/// Topics of their broker; the list of all takes about 24 KB.
const TOPICS: usize = 1000;

/// Pause of a client between an answer and its next question.
const THINKING: Duration = Duration::from_millis(1);

/// How often the broker heartbeats.
const BEAT: Duration = Duration::from_millis(500);

/// Beyond this nobody would say that others are served: a thousand times the usual.
pub(crate) const P99_MAX: Duration = Duration::from_millis(250);

/// Clients that ask all the time, and the broker that they ask for.
#[derive(Debug)]
pub(crate) struct Bystanders {
    stop: Arc<AtomicBool>,
    clients: Vec<JoinHandle<Result<Seen>>>,
    broker: JoinHandle<Result<()>>,
}

/// What they saw.
#[derive(Debug)]
struct Seen {
    recorder: Recorder,
    wrong: Vec<String>,
}

/// A registration of `own` with a table of 1000 topics, [`TOPIC`] among them.
pub(crate) fn large_registration(own: &Broker, counter: u32) -> Frame {
    let name = |number| format!("topic-of-some-length-{number:05}");
    let names: Vec<String> = (1..TOPICS).map(name).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).chain([TOPIC]).collect();
    own.register().body(topics(counter, &names).body())
}

fn steady() -> Broker {
    broker("steady", "steady", 0, "127.0.0.1:10911")
}

impl Bystanders {
    /// Registers the broker and starts so many clients.
    ///
    /// # Errors
    /// The server does not take them.
    pub(crate) fn start(address: SocketAddr, clients: usize) -> Result<Bystanders> {
        let stop = Arc::new(AtomicBool::new(false));
        let mut peer = Peer::open(address)?;
        peer.must(&large_registration(&steady(), 1))?;
        let stopped = Arc::clone(&stop);
        let broker = thread::spawn(move || {
            while !stopped.load(Ordering::Relaxed) {
                peer.must(&steady().heartbeat())?;
                pause(BEAT);
            }
            Ok(())
        });
        let client = |_| {
            let mut peer = Peer::open(address)?;
            // From here on the server has accepted it, and its descriptor counts.
            peer.must(&route(TOPIC))?;
            let stop = Arc::clone(&stop);
            Ok(thread::spawn(move || ask_on(peer, &stop)))
        };
        let clients = (0..clients).map(client).collect::<Result<_>>()?;
        Ok(Bystanders {
            stop,
            clients,
            broker,
        })
    }

    /// Ends them and adds what they saw to the report; they must not have waited longer than this (p99).
    ///
    /// # Errors
    /// One of them was not served to the end.
    pub(crate) fn stop(self, what: &str, p99_max: Duration, record: &mut Record) -> Result<()> {
        self.stop.store(true, Ordering::Relaxed);
        let mut all = Recorder::new("route");
        for client in self.clients {
            let seen = joined(client)?;
            all.merge(&seen.recorder);
            record.faults(seen.wrong);
        }
        joined(self.broker)?;
        let Some(summary) = Summary::of(&all.latency) else {
            record.fault(format!("{what}: nobody was served"));
            return Ok(());
        };
        record.figure(&format!("{what}: answers to others"), summary.count);
        let micros = |value: f64| value.round();
        record.figure(&format!("{what}: their p50 (µs)"), micros(summary.p50));
        record.figure(&format!("{what}: their p99 (µs)"), micros(summary.p99));
        record.figure(&format!("{what}: their longest (µs)"), micros(summary.max));
        let p99_max = p99_max.as_secs_f64() * 1e6;
        record.expect(summary.p99 <= p99_max, || {
            format!("{what}: others waited {} µs (p99)", summary.p99)
        });
        Ok(())
    }
}

/// The result of a thread of ours.
///
/// # Errors
/// Its own.
pub(crate) fn joined<T>(thread: JoinHandle<Result<T>>) -> Result<T> {
    thread
        .join()
        .map_err(|_| Error::new("a thread of torture itself has failed".to_owned()))?
}

fn ask_on(mut peer: Peer, stop: &AtomicBool) -> Result<Seen> {
    let mut seen = Seen {
        recorder: Recorder::new("route"),
        wrong: Vec::new(),
    };
    while !stop.load(Ordering::Relaxed) {
        let asked = Instant::now();
        let reply = peer.ask(&route(TOPIC))?;
        let took = u64::try_from(asked.elapsed().as_nanos()).unwrap_or(u64::MAX);
        seen.recorder.record_latency(took, 1);
        if reply.code != 0 || reply.body.is_empty() {
            let text = format!("a bystander's route is answered with {}", reply.code);
            seen.wrong.push(text);
        }
        pause(THINKING);
    }
    Ok(seen)
}
