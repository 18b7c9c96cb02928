//! Runs sections against servers and records what they answer.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{SocketAddr, TcpListener};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use crate::connection::{Connection, Received};
use crate::error::{Error, Result};
use crate::frame::Frame;
use crate::launch::{Launcher, Pace, Server};
use crate::normal::{Names, normalise};
use crate::observed::{Observed, Record, Report, SectionRecord};
use crate::reply::Reply;
use crate::script::{Action, RAW_OPAQUE, Section, Step, Wanted, Watch, build};

/// First opaque of ordinary requests and of probes.
const FIRST_OPAQUE: i32 = 1_000;
const FIRST_PROBE: i32 = 900_000;

/// An answer later than this is none.
const ANSWER_BOUND: Duration = Duration::from_secs(8);

/// Attempts to see a decoy broker vanish, and how long each may take.
const SETTLE_ATTEMPTS: u32 = 4;
const SETTLE_BOUND: Duration = Duration::from_secs(2);

/// Runs the given sections, each against a server of its own.
///
/// # Errors
/// A server does not start, or stops accepting connections in the middle of a section.
pub fn run(sections: &[Section], launcher: &mut dyn Launcher) -> Result<Report> {
    let pace = launcher.pace();
    let server = launcher.name();
    let mut records = Vec::new();
    if pace.parallel {
        let mut servers = Vec::new();
        for section in sections {
            servers.push(launcher.launch(section.name, &section.settings)?);
        }
        records = thread::scope(|scope| {
            let pairs = sections.iter().zip(servers);
            let threads: Vec<_> = pairs
                .map(|(section, server)| scope.spawn(|| run_section(section, server, pace)))
                .collect();
            let joined = threads
                .into_iter()
                .map(|thread| thread.join().expect("a section does not panic"));
            joined.collect::<Result<Vec<_>>>()
        })?;
    } else {
        for section in sections {
            let server = launcher.launch(section.name, &section.settings)?;
            records.push(run_section(section, server, pace)?);
        }
    }
    Ok(Report {
        server,
        sections: records,
    })
}

fn run_section(section: &Section, server: Box<dyn Server>, pace: Pace) -> Result<SectionRecord> {
    let mut runner = Runner {
        address: server.address(),
        server,
        pace,
        connections: BTreeMap::new(),
        listeners: BTreeMap::new(),
        names: Names::default(),
        next_opaque: FIRST_OPAQUE,
        next_probe: FIRST_PROBE,
        decoys: 0,
    };
    let mut steps = Vec::new();
    for theme in &section.themes {
        for step in &theme.steps {
            let observed = runner
                .step(step)
                .map_err(|error| Error::new(format!("{} {}: {error}", theme.name, step.id)))?;
            if let Some(observed) = observed {
                steps.push(Record {
                    id: step.id.clone(),
                    sent: step.action.describe(),
                    observed,
                });
            }
        }
        runner.end_of_theme()?;
    }
    let settings = section
        .settings
        .iter()
        .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
    Ok(SectionRecord {
        section: section.name.to_owned(),
        settings: settings.collect(),
        steps,
    })
}

struct Runner {
    address: SocketAddr,
    server: Box<dyn Server>,
    pace: Pace,
    connections: BTreeMap<String, Connection>,
    listeners: BTreeMap<String, Receiver<Reply>>,
    names: Names,
    next_opaque: i32,
    next_probe: i32,
    decoys: u32,
}

impl Runner {
    fn step(&mut self, step: &Step) -> Result<Option<Observed>> {
        let name = step.connection.as_str();
        match &step.action {
            Action::Ask(frame) => self.ask(name, frame).map(Some),
            Action::Quiet(frame) => self.quiet(name, frame).map(Some),
            Action::Pipeline(frames) => self.pipeline(name, frames).map(Some),
            Action::Until(frame, wanted) => self.until(name, frame, wanted).map(Some),
            Action::Raw(chunks, watch) => self.raw(chunks, *watch).map(Some),
            Action::AwaitClose => self.await_close(name).map(Some),
            Action::Heard => Ok(Some(self.heard(name))),
            action => self.act(name, action).map(|()| None),
        }
    }

    /// Actions that show nothing by themselves.
    fn act(&mut self, name: &str, action: &Action) -> Result<()> {
        match action {
            Action::Close => drop(self.connections.remove(name)),
            Action::Reset => self.reset(name)?,
            Action::HalfClose => self.connection(name)?.half_close(),
            Action::Settle => self.settle()?,
            Action::Listen => self.listen(name)?,
            Action::Terminate => self.server.terminate()?,
            other => return Err(Error::new(format!("{other:?} is an observation"))),
        }
        Ok(())
    }

    fn connection(&mut self, name: &str) -> Result<&mut Connection> {
        if !self.connections.contains_key(name) {
            self.connections
                .insert(name.to_owned(), Connection::open(self.address)?);
        }
        Ok(self
            .connections
            .get_mut(name)
            .expect("inserted when absent"))
    }

    fn opaque(&mut self) -> i32 {
        self.next_opaque += 1;
        self.next_opaque
    }

    /// The bytes of a frame and the opaque in it.
    fn encoded(&mut self, frame: &Frame) -> (Vec<u8>, i32) {
        let opaque = self.opaque();
        let bytes = frame
            .resolved(|text| self.names.resolve(text))
            .encode(opaque);
        (bytes, frame.opaque.unwrap_or(opaque))
    }

    /// A request every version answers, to see whether a connection still serves.
    fn probe(&mut self) -> (Vec<u8>, i32) {
        self.next_probe += 1;
        let frame = Frame::request(101)
            .ext("namespace", "parity.probe")
            .ext("key", "none");
        (frame.encode(self.next_probe), self.next_probe)
    }

    fn ask(&mut self, name: &str, frame: &Frame) -> Result<Observed> {
        let (bytes, opaque) = self.encoded(frame);
        self.connection(name)?.send(&bytes);
        let observed = self.outcome(name, opaque, self.pace.quiet)?;
        if observed == Observed::Closed {
            self.connections.remove(name);
        }
        Ok(observed)
    }

    fn quiet(&mut self, name: &str, frame: &Frame) -> Result<Observed> {
        let (bytes, opaque) = self.encoded(frame);
        self.connection(name)?.send(&bytes);
        let observed = self.outcome(name, opaque, Duration::ZERO)?;
        if observed == Observed::Closed {
            self.connections.remove(name);
        }
        Ok(observed)
    }

    /// Waits `quiet` for an answer, then asks the connection something else to learn why there is none.
    fn outcome(&mut self, name: &str, opaque: i32, quiet: Duration) -> Result<Observed> {
        if quiet > Duration::ZERO
            && let Some(observed) = self.answer(name, opaque, None, Instant::now() + quiet)?
        {
            return Ok(observed);
        }
        let (probe, probe_opaque) = self.probe();
        self.connection(name)?.send(&probe);
        let deadline = Instant::now() + ANSWER_BOUND;
        match self.answer(name, opaque, Some(probe_opaque), deadline)? {
            None => Ok(Observed::Waiting),
            Some(Observed::Silence) => {
                let grace = Instant::now() + self.pace.grace;
                Ok(self
                    .answer(name, opaque, None, grace)?
                    .unwrap_or(Observed::Silence))
            }
            Some(observed) => Ok(observed),
        }
    }

    /// The answer to `opaque`; [`Observed::Silence`] when the probe's answer comes first, `None` at the deadline.
    fn answer(
        &mut self,
        name: &str,
        opaque: i32,
        probe: Option<i32>,
        deadline: Instant,
    ) -> Result<Option<Observed>> {
        loop {
            let received = self.connection(name)?.receive(deadline);
            match received {
                Received::Frame(reply) if Some(reply.opaque) == probe => {
                    return Ok(Some(Observed::Silence));
                }
                Received::Frame(reply)
                    if reply.opaque != opaque && self.was_asked(reply.opaque) => {}
                Received::Frame(reply) => {
                    return Ok(Some(Observed::Reply(normalise(
                        &reply,
                        Some(opaque),
                        &self.names,
                    ))));
                }
                Received::Nothing => return Ok(None),
                Received::Closed => return Ok(Some(Observed::Closed)),
                Received::Foreign(bytes) => return Ok(Some(foreign(&bytes))),
            }
        }
    }

    /// Whether an answer belongs to an earlier request, come late.
    fn was_asked(&self, opaque: i32) -> bool {
        (FIRST_OPAQUE..=self.next_opaque).contains(&opaque)
            || (FIRST_PROBE..=self.next_probe).contains(&opaque)
    }

    fn pipeline(&mut self, name: &str, frames: &[Frame]) -> Result<Observed> {
        let mut bytes = Vec::new();
        let mut opaques = Vec::new();
        for frame in frames {
            let (encoded, opaque) = self.encoded(frame);
            bytes.extend(encoded);
            opaques.push(opaque);
        }
        self.connection(name)?.send(&bytes);
        let mut answers = BTreeMap::new();
        let mut open: BTreeSet<i32> = opaques.iter().copied().collect();
        let deadline = Instant::now() + ANSWER_BOUND;
        let mut fate = Observed::Silence;
        while !open.is_empty() {
            let left = if answers.is_empty() {
                deadline
            } else {
                deadline.min(Instant::now() + self.pace.quiet * 4)
            };
            match self.connection(name)?.receive(left) {
                Received::Frame(reply) => {
                    open.remove(&reply.opaque);
                    let answer =
                        Observed::Reply(normalise(&reply, Some(reply.opaque), &self.names));
                    answers.insert(reply.opaque, answer);
                }
                Received::Nothing => break,
                Received::Closed | Received::Foreign(_) => {
                    fate = Observed::Closed;
                    self.connections.remove(name);
                    break;
                }
            }
        }
        let each = opaques
            .iter()
            .map(|opaque| answers.remove(opaque).unwrap_or(fate.clone()));
        Ok(Observed::Replies {
            each: each.collect(),
        })
    }

    fn until(&mut self, name: &str, frame: &Frame, wanted: &Wanted) -> Result<Observed> {
        let bound = Instant::now() + self.pace.poll_bound;
        loop {
            let observed = self.ask(name, frame)?;
            if is_wanted(wanted, &observed) || Instant::now() > bound {
                return Ok(observed);
            }
            thread::sleep(self.pace.poll_step);
        }
    }

    fn raw(&mut self, chunks: &[Vec<u8>], watch: Watch) -> Result<Observed> {
        const NAME: &str = "raw bytes";
        self.connections.remove(NAME);
        for (index, chunk) in chunks.iter().enumerate() {
            if index > 0 {
                thread::sleep(self.pace.chunk_pause);
            }
            self.connection(NAME)?.send(chunk);
        }
        let observed = match watch {
            Watch::Answer => self.outcome(NAME, RAW_OPAQUE, self.pace.quiet)?,
            Watch::Open => {
                let deadline = Instant::now() + self.pace.quiet;
                self.answer(NAME, RAW_OPAQUE, None, deadline)?
                    .unwrap_or(Observed::Waiting)
            }
            Watch::Fate => self.await_close(NAME)?,
        };
        self.connections.remove(NAME);
        Ok(observed)
    }

    fn await_close(&mut self, name: &str) -> Result<Observed> {
        let deadline = Instant::now() + ANSWER_BOUND;
        loop {
            match self.connection(name)?.receive(deadline) {
                Received::Frame(_) => {}
                Received::Nothing => return Ok(Observed::Waiting),
                Received::Closed => {
                    self.connections.remove(name);
                    return Ok(Observed::Closed);
                }
                Received::Foreign(bytes) => return Ok(foreign(&bytes)),
            }
        }
    }

    fn reset(&mut self, name: &str) -> Result<()> {
        let (probe, _) = self.probe();
        let connection = self.connection(name)?;
        connection.send(&probe);
        connection.await_unread(Instant::now() + ANSWER_BOUND);
        self.connections.remove(name);
        Ok(())
    }

    /// Registers a decoy broker, closes its connection and waits until its route is gone.
    ///
    /// Closes and unregistrations go through one queue in the order they were made, so that what was closed before the
    /// decoy has taken effect too. A request that spoils the batch it is worked off in may take the decoy with it:
    /// hence the attempts.
    fn settle(&mut self) -> Result<()> {
        self.decoys += 1;
        let decoy = format!("decoy-{}", self.decoys);
        for _ in 0..SETTLE_ATTEMPTS {
            self.ask(&decoy, &build::decoy(&decoy))?;
            self.connections.remove(&decoy);
            let bound = Instant::now() + SETTLE_BOUND;
            while Instant::now() < bound {
                let observed = self.ask("settle", &build::route(&decoy))?;
                if is_wanted(&Wanted::Code(17), &observed) {
                    thread::sleep(self.pace.grace);
                    return Ok(());
                }
                thread::sleep(self.pace.poll_step);
            }
        }
        Err(Error::new(
            "a closed connection's broker does not vanish".to_owned(),
        ))
    }

    fn listen(&mut self, name: &str) -> Result<()> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        self.names
            .listeners
            .insert(name.to_owned(), listener.local_addr()?.to_string());
        let (sender, receiver) = channel();
        // Both threads end with the test process at the latest; a reader ends when the server closes.
        thread::spawn(move || {
            while let Ok((stream, _)) = listener.accept() {
                let sender = sender.clone();
                thread::spawn(move || {
                    let mut connection = Connection::accepted(stream);
                    while let Received::Frame(reply) =
                        connection.receive(Instant::now() + Duration::from_secs(300))
                    {
                        if sender.send(*reply).is_err() {
                            return;
                        }
                    }
                });
            }
        });
        self.listeners.insert(name.to_owned(), receiver);
        Ok(())
    }

    fn heard(&mut self, name: &str) -> Observed {
        let Some(receiver) = self.listeners.get(name) else {
            return Observed::Closed;
        };
        match receiver.recv_timeout(self.pace.notice_bound) {
            Ok(reply) => Observed::Reply(normalise(&reply, Some(reply.opaque), &self.names)),
            Err(RecvTimeoutError::Timeout) => Observed::Waiting,
            Err(RecvTimeoutError::Disconnected) => Observed::Closed,
        }
    }

    /// Closes what the theme opened, so that the next one finds no brokers of this one.
    fn end_of_theme(&mut self) -> Result<()> {
        self.connections.clear();
        self.listeners.clear();
        if self.server.is_ending() {
            Ok(())
        } else {
            self.settle()
        }
    }
}

fn is_wanted(wanted: &Wanted, observed: &Observed) -> bool {
    let Observed::Reply(answer) = observed else {
        return false;
    };
    let body = answer.body.as_deref().unwrap_or_default();
    match wanted {
        Wanted::Code(code) => answer.code == *code,
        Wanted::BodyWith(text) => body.contains(text),
        Wanted::BodyWithout(text) => !body.contains(text),
    }
}

fn foreign(bytes: &[u8]) -> Observed {
    Observed::Foreign {
        first: crate::frame::hex(&bytes[..bytes.len().min(1)]),
    }
}
