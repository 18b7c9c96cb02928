//! Runs sections against servers and records what they answer.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::thread;
use std::time::{Duration, Instant};

use crate::connection::{Connection, Received};
use crate::error::{Error, Result};
use crate::frame::Frame;
use crate::launch::{Launcher, Pace, Server};
use crate::listener::Listener;
use crate::normal::{Names, normalise};
use crate::observed::{Answer, Observed, Record, Report, SectionRecord};
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
            joined.collect::<Vec<_>>()
        });
    } else {
        for section in sections {
            let server = launcher.launch(section.name, &section.settings)?;
            records.push(run_section(section, server, pace));
        }
    }
    Ok(Report {
        server,
        sections: records,
    })
}

fn run_section(section: &Section, server: Box<dyn Server>, pace: Pace) -> SectionRecord {
    let mut runner = Runner {
        address: server.address(),
        pace,
        connections: BTreeMap::new(),
        listeners: BTreeMap::new(),
        names: Names {
            port: server.address().port(),
            ..Names::default()
        },
        next_opaque: FIRST_OPAQUE,
        next_probe: FIRST_PROBE,
        decoys: 0,
        server,
    };
    let mut steps = Vec::new();
    let mut notes = Vec::new();
    for theme in &section.themes {
        for step in &theme.steps {
            // A refused connection is what a server that ended shows; the steps after it then say the same.
            let observed = match runner.step(step) {
                Ok(observed) => observed,
                Err(error) if step.id.is_empty() => {
                    notes.push(format!("{} before a step: {error}", theme.name));
                    None
                }
                Err(_) => Some(Observed::Unreachable),
            };
            if let Some(observed) = observed {
                steps.push(Record {
                    id: step.id.clone(),
                    sent: step.action.describe(),
                    observed,
                });
            }
        }
        if let Err(error) = runner.end_of_theme() {
            notes.push(format!("after {}: {error}", theme.name));
        }
    }
    let settings = section
        .settings
        .iter()
        .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
    SectionRecord {
        section: section.name.to_owned(),
        settings: settings.collect(),
        steps,
        notes,
    }
}

struct Runner {
    address: SocketAddr,
    server: Box<dyn Server>,
    pace: Pace,
    connections: BTreeMap<String, Connection>,
    listeners: BTreeMap<String, Listener>,
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
            Action::Lines(frame, keys) => self.lines(name, frame, keys).map(Some),
            Action::Quiet(frame) => self.quiet(name, frame).map(Some),
            Action::Pipeline(frames) => self.pipeline(name, frames).map(Some),
            Action::Until(frame, wanted) => self.until(name, frame, wanted).map(Some),
            Action::Repeat(time, frames) => self.repeat(name, *time, frames).map(Some),
            Action::Raw(chunks, watch) => self.raw(chunks, *watch).map(Some),
            Action::AwaitClose => self.await_close(name).map(Some),
            Action::Heard => Ok(Some(self.heard(name, self.pace.notice_bound))),
            Action::Unheard => Ok(Some(self.heard(name, self.pace.quiet))),
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

    fn lines(&mut self, name: &str, frame: &Frame, keys: &[&str]) -> Result<Observed> {
        Ok(match self.ask(name, frame)? {
            Observed::Reply(answer) => {
                let body = answer.body.as_deref().map(|body| only_lines(body, keys));
                Observed::Reply(Answer { body, ..answer })
            }
            other => other,
        })
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
        let mut expected = BTreeSet::new();
        for frame in frames {
            let (encoded, opaque) = self.encoded(frame);
            bytes.extend(encoded);
            opaques.push(opaque);
            if frame.flag & 3 == 0 {
                expected.insert(opaque);
            }
        }
        self.connection(name)?.send(&bytes);
        let mut answers = BTreeMap::new();
        let fate = self.collect(name, expected, &mut answers)?;
        let each = opaques
            .iter()
            .map(|opaque| answers.remove(opaque).unwrap_or(fate.clone()));
        Ok(Observed::Replies {
            each: each.collect(),
        })
    }

    /// Takes answers until all expected ones are there; what holds for the requests without one is returned.
    fn collect(
        &mut self,
        name: &str,
        mut expected: BTreeSet<i32>,
        answers: &mut BTreeMap<i32, Observed>,
    ) -> Result<Observed> {
        let bound = Instant::now() + ANSWER_BOUND;
        loop {
            let patience = match (expected.is_empty(), answers.is_empty()) {
                (true, _) => self.pace.grace,
                (false, true) => ANSWER_BOUND,
                (false, false) => self.pace.quiet * 4,
            };
            match self
                .connection(name)?
                .receive(bound.min(Instant::now() + patience))
            {
                Received::Frame(reply) => {
                    expected.remove(&reply.opaque);
                    let answer = normalise(&reply, Some(reply.opaque), &self.names);
                    answers.insert(reply.opaque, Observed::Reply(answer));
                }
                Received::Nothing => return Ok(Observed::Silence),
                Received::Closed | Received::Foreign(_) => {
                    self.connections.remove(name);
                    return Ok(Observed::Closed);
                }
            }
        }
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

    fn repeat(&mut self, name: &str, time: Duration, frames: &[Frame]) -> Result<Observed> {
        let end = Instant::now() + time;
        loop {
            let observed = self.pipeline(name, frames)?;
            if Instant::now() > end {
                return Ok(observed);
            }
            thread::sleep(self.pace.poll_step * 4);
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
        let listener = Listener::open()?;
        self.names
            .listeners
            .insert(name.to_owned(), listener.address().to_string());
        self.listeners.insert(name.to_owned(), listener);
        Ok(())
    }

    fn heard(&mut self, name: &str, bound: Duration) -> Observed {
        match self
            .listeners
            .get(name)
            .and_then(|listener| listener.next(bound))
        {
            Some(reply) => Observed::Reply(normalise(&reply, Some(reply.opaque), &self.names)),
            None => Observed::Waiting,
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

fn only_lines(text: &str, keys: &[&str]) -> String {
    let is_wanted = |line: &&str| keys.contains(&line.split('=').next().unwrap_or_default());
    text.split('\n')
        .filter(is_wanted)
        .collect::<Vec<_>>()
        .join("\n")
}

fn foreign(bytes: &[u8]) -> Observed {
    Observed::Foreign {
        first: crate::frame::hex(&bytes[..bytes.len().min(1)]),
    }
}
