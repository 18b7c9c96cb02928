//! A whole connection: bytes → `connection` → `processor` → `registry` → bytes, as `server::peer`, `helper` and `writer` move them, without a socket, a thread or a clock.
//!
//! The same stream is sent twice: in one piece to a server that answers at once, and in pieces, to one whose writer is slow, short
//! of credits and behind a socket that takes little. A peer must not be able to tell the two apart.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use waypost::{
    config::{Config, Environment},
    connection::{
        Connection, Handled, Handler, StreamLimits, Violation,
        credit::{Credits, Outstanding},
    },
    ids::ConnectionId,
    limits::{
        FRAME_LEN_MAX, IN_FLIGHT_PER_CONNECTION_MAX, LENT_INPUT_LEN_MAX, OUTPUT_BATCH_LEN,
        READ_SCRATCH_LEN,
    },
    processor::{Context, KnownBrokers, Outcome, RouteCache, is_heavy, look_ahead, process},
    protocol::{
        command::RemotingCommand,
        frame::{self, Split},
    },
    registry::{
        Command, Effect, KvTable, Registry, RouteSnapshot, command::PersistTicket, query::Routes,
    },
    time::Timestamp,
};

const NOW: Timestamp = Timestamp::from_millis(1_000);
const ID: ConnectionId = ConnectionId {
    worker: 0,
    slot: 0,
    generation: 0,
};
/// Low enough that short streams reach them.
const LIMITS: StreamLimits = StreamLimits {
    frame_len_max: FRAME_LEN_MAX,
    high_water: 2048,
    low_water: 512,
};

/// The first four bytes say how the stream is cut, the rest is the stream.
pub(crate) fn connection(data: &[u8]) {
    let Some((seed, stream)) = data.split_first_chunk() else {
        return;
    };
    let smooth = Server::new(Weather::Smooth).run(stream);
    let rough = Server::new(Weather::Rough(u32::from_le_bytes(*seed).into())).run(stream);
    assert_eq!(smooth.violation, rough.violation);
    if smooth.violation.is_some() {
        // A violation ends the connection at once: what the writer had not answered by then is lost.
        assert_eq!(smooth.asked, rough.asked);
        let (short, long) = (&smooth.answers, &rough.answers);
        assert!(long.starts_with(short) || short.starts_with(long));
    } else {
        assert_eq!(smooth, rough);
    }
}

/// What a peer sees, and what it asked.
#[derive(Debug, PartialEq)]
struct Transcript {
    /// Opaques of the requests that want an answer, in the order in which they were executed.
    asked: Vec<i32>,
    answers: Vec<u8>,
    violation: Option<Violation>,
}

/// How a connection fares.
#[derive(Debug, Clone, Copy)]
enum Weather {
    /// Everything arrives and leaves at once.
    Smooth,
    /// By this xorshift state.
    Rough(u64),
}

impl Weather {
    /// A number from 1 to `most`, small ones and the largest being likely; `most` itself if all is smooth.
    fn amount(&mut self, most: usize) -> usize {
        let Self::Rough(state) = self else {
            return most;
        };
        // The state of a xorshift must not be 0.
        *state |= 1 << 63;
        *state ^= *state << 13;
        *state ^= *state >> 7;
        *state ^= *state << 17;
        let half = |bits| usize::try_from(bits & 0xffff_ffff).expect("32 bits");
        let (low, high) = (half(*state), half(*state >> 32));
        let reach = [1, 8, 100, 2000, usize::MAX, usize::MAX - 1][high % 6];
        if reach == usize::MAX {
            return most;
        }
        1 + low % most.min(reach)
    }
}

/// One server with one connection.
struct Server {
    weather: Weather,
    connection: Connection,
    credits: Credits,
    /// Credits that other connections have.
    others: Outstanding,
    registry: Registry,
    snapshot: Arc<RouteSnapshot>,
    known: KnownBrokers,
    route_cache: RouteCache,
    work: Work,
    at_disk: VecDeque<PersistTicket>,
    fresh_answers: Vec<u8>,
    /// The most that was kept of answers.
    output_len_max: usize,
    transcript: Transcript,
}

/// What others do for the connection's worker.
#[derive(Default)]
struct Work {
    /// Without a credit yet, and the bytes it counts for.
    held: Option<(Errand, usize)>,
    at_writer: VecDeque<Command>,
    /// Frames without their length words.
    at_helper: VecDeque<Vec<u8>>,
}

enum Errand {
    ForWriter(Command),
    ForHelper(Vec<u8>),
}

impl Work {
    /// As `server::outbox`: sends it, or keeps it until there is a credit.
    fn submit(
        &mut self,
        errand: Errand,
        len: usize,
        credits: &mut Credits,
        outstanding: &mut Outstanding,
    ) -> Handled {
        assert!(self.held.is_none(), "a held connection executes nothing");
        if credits.take(outstanding, len) {
            return self.start(errand);
        }
        self.held = Some((errand, len));
        Handled::Held
    }

    fn start(&mut self, errand: Errand) -> Handled {
        match errand {
            Errand::ForWriter(command) => {
                self.at_writer.push_back(command);
                Handled::Submitted
            }
            Errand::ForHelper(frame) => {
                self.at_helper.push_back(frame);
                Handled::GivenAway
            }
        }
    }
}

/// Executes the requests of one read against one snapshot.
struct Clerk<'a> {
    snapshot: &'a RouteSnapshot,
    known: &'a mut KnownBrokers,
    route_cache: &'a mut RouteCache,
    routes: Routes<'a>,
    work: &'a mut Work,
    credits: &'a mut Credits,
    asked: &'a mut Vec<i32>,
}

impl Clerk<'_> {
    fn process(
        &mut self,
        place: usize,
        request: &RemotingCommand<'_>,
        out: &mut Vec<u8>,
    ) -> Outcome {
        let mut context = Context {
            snapshot: self.snapshot,
            route: self.routes.get_mut(place).and_then(Option::take),
            now: NOW,
            connection: ID,
            peer: ([127, 0, 0, 1], 1).into(),
            known_brokers: self.known,
            route_cache: self.route_cache,
            go_away: false,
        };
        process(request, &mut context, out)
    }
}

impl Handler for Clerk<'_> {
    fn look_ahead(&mut self, requests: &[RemotingCommand<'_>]) {
        self.routes = look_ahead(requests, self.snapshot);
    }

    fn handle(
        &mut self,
        place: usize,
        request: &RemotingCommand<'_>,
        out: &mut Vec<u8>,
        outstanding: &mut Outstanding,
    ) -> Handled {
        if !request.is_oneway() {
            self.asked.push(request.opaque);
        }
        if is_heavy(request, self.snapshot) {
            let (job, len) = (request.frame.to_vec(), request.frame.len());
            return self
                .work
                .submit(Errand::ForHelper(job), len, self.credits, outstanding);
        }
        match self.process(place, request, out) {
            Outcome::Answered | Outcome::Silent => Handled::Done,
            Outcome::Submit(command) | Outcome::AnsweredAndSubmit(command) => {
                let len = request.body.len() + command.held_len();
                self.work
                    .submit(Errand::ForWriter(command), len, self.credits, outstanding)
            }
        }
    }
}

impl Server {
    fn new(mut weather: Weather) -> Self {
        let config = Config::defaults(&Environment::default());
        let registry = Registry::new(config, KvTable::default(), 42, NOW);
        let snapshot = registry.initial_snapshot();
        let mut credits = Credits::default();
        let mut others = Outstanding::default();
        if let Weather::Rough(_) = weather {
            let free = weather.amount(IN_FLIGHT_PER_CONNECTION_MAX);
            let all = waypost::limits::IN_FLIGHT_MAX;
            (free..all).for_each(|_| assert!(credits.take(&mut others, 0)));
        }
        Self {
            weather,
            connection: Connection::new(Duration::from_secs(120), NOW),
            credits,
            others,
            snapshot,
            registry,
            known: KnownBrokers::default(),
            route_cache: RouteCache::default(),
            work: Work::default(),
            at_disk: VecDeque::new(),
            fresh_answers: Vec::new(),
            output_len_max: 0,
            transcript: Transcript {
                asked: Vec::new(),
                answers: Vec::new(),
                violation: None,
            },
        }
    }

    fn run(mut self, mut stream: &[u8]) -> Transcript {
        let mut scratch = vec![0; READ_SCRATCH_LEN];
        if let Err(violation) = self.serve(&mut stream, &mut scratch) {
            self.write(usize::MAX);
            self.transcript.violation = Some(violation);
        } else {
            assert!(stream.is_empty() && self.connection.owes_nothing());
            assert!(self.connection.has_executed_all());
        }
        self.close();
        self.check_answers();
        self.transcript
    }

    /// Serves the stream to its end.
    fn serve(&mut self, stream: &mut &[u8], scratch: &mut [u8]) -> Result<(), Violation> {
        loop {
            let mut progress = false;
            if !stream.is_empty() && self.connection.wants_input() {
                self.read(stream, scratch)?;
                progress = true;
            } else if stream.is_empty() && !self.connection.has_ended() {
                self.connection.handle_end(NOW);
                progress = true;
            }
            progress |= self.write_some();
            progress |= self.writer_turn();
            progress |= self.helper_turn();
            progress |= self.disk_turn();
            progress |= self.send_held();
            while self.connection.can_resume() {
                self.resume()?;
                progress = true;
                self.write_some();
            }
            if self.connection.has_executed_all() && self.connection.owes_nothing() {
                return Ok(());
            }
            assert!(progress, "the connection is stuck: {:?}", self.connection);
        }
    }

    fn read(&mut self, stream: &mut &[u8], scratch: &mut [u8]) -> Result<(), Violation> {
        let lent = self.connection.lend_input(scratch);
        assert!(lent <= LENT_INPUT_LEN_MAX);
        let room = (scratch.len() - lent).min(stream.len());
        let (arrived, rest) = stream.split_at(self.weather.amount(room));
        *stream = rest;
        let end = lent + arrived.len();
        scratch[lent..end].copy_from_slice(arrived);
        self.execute(Some((&scratch[..end], lent)))
    }

    fn resume(&mut self) -> Result<(), Violation> {
        self.execute(None)
    }

    fn execute(&mut self, arrived: Option<(&[u8], usize)>) -> Result<(), Violation> {
        let clerk = Clerk {
            snapshot: &self.snapshot,
            known: &mut self.known,
            route_cache: &mut self.route_cache,
            routes: Routes::new(),
            work: &mut self.work,
            credits: &mut self.credits,
            asked: &mut self.transcript.asked,
        };
        let answers = &mut self.fresh_answers;
        match arrived {
            Some((bytes, lent)) => self
                .connection
                .handle_input(bytes, lent, &LIMITS, NOW, answers, clerk),
            None => self.connection.resume(&LIMITS, answers, clerk),
        }
    }

    /// The socket takes up to `room` bytes. Says whether it took any.
    fn write(&mut self, room: usize) -> bool {
        self.connection.keep_output(&self.fresh_answers);
        self.fresh_answers.clear();
        self.output_len_max = self.output_len_max.max(self.connection.output().len());
        let mut left = room;
        while left > 0 && !self.connection.output().is_empty() {
            let next = self.connection.output().as_slice();
            let count = next.len().min(left);
            self.transcript.answers.extend_from_slice(&next[..count]);
            self.connection.written(count, NOW);
            left -= count;
        }
        self.connection.apply_water_marks(&LIMITS);
        left < room
    }

    fn write_some(&mut self) -> bool {
        let room = self.weather.amount(usize::MAX);
        self.write(room)
    }

    /// The writer applies some of the commands that are out as one batch.
    fn writer_turn(&mut self) -> bool {
        if self.work.at_writer.is_empty() {
            return false;
        }
        let count = self.weather.amount(self.work.at_writer.len());
        for command in self.work.at_writer.drain(..count) {
            self.registry.apply(command, NOW);
        }
        self.publish();
        true
    }

    /// The disk finishes the oldest write.
    fn disk_turn(&mut self) -> bool {
        let Some(ticket) = self.at_disk.pop_front() else {
            return false;
        };
        self.registry.apply(Command::Persisted(ticket, Ok(())), NOW);
        self.publish();
        true
    }

    fn publish(&mut self) {
        let snapshot = &mut self.snapshot;
        let effects: Vec<Effect> = self
            .registry
            .publish()
            .store(|next| *snapshot = next)
            .collect();
        for effect in effects {
            match effect {
                Effect::Reply(to, response) => {
                    let answer = response.as_ref().map(|response| (to.head, response));
                    assert_eq!(to.connection, ID);
                    if self.transcript.violation.is_some() {
                        self.credits.give_back_late();
                    } else {
                        self.connection.handle_reply(&mut self.credits, answer);
                    }
                }
                Effect::Persist(ticket, _) => self.at_disk.push_back(ticket),
                Effect::Notify { .. } => {}
                Effect::Close(_) => panic!("no time passes, so no broker falls silent"),
            }
        }
    }

    /// The helper is done with the oldest frame, as in `server::helper` and `server::worker`.
    fn helper_turn(&mut self) -> bool {
        let Some(frame) = self.work.at_helper.pop_front() else {
            return false;
        };
        if self.transcript.violation.is_some() {
            self.credits.give_back_late();
            return true;
        }
        let request = RemotingCommand::decode(&frame).expect("it was decoded before");
        let mut answer = Vec::new();
        let outcome = Clerk {
            snapshot: &self.snapshot,
            known: &mut KnownBrokers::default(),
            route_cache: &mut RouteCache::default(),
            routes: Routes::new(),
            work: &mut self.work,
            credits: &mut self.credits,
            asked: &mut Vec::new(),
        }
        .process(0, &request, &mut answer);
        match outcome {
            Outcome::Answered | Outcome::Silent => self
                .connection
                .handle_answer(&mut self.credits, [answer.into()]),
            Outcome::Submit(command) | Outcome::AnsweredAndSubmit(command) => {
                self.connection.take_back(&mut self.credits);
                let len = frame.len() + command.held_len();
                let outstanding = self.connection.outstanding_mut();
                let errand = Errand::ForWriter(command);
                let handled = self
                    .work
                    .submit(errand, len, &mut self.credits, outstanding);
                self.connection.submitted_again(handled);
            }
        }
        true
    }

    /// Another connection's command is done, so there may be a credit for one that waits.
    fn send_held(&mut self) -> bool {
        let Some((errand, len)) = self.work.held.take() else {
            return false;
        };
        if self.credits.take(self.connection.outstanding_mut(), len) {
            self.connection.submitted();
            self.work.start(errand);
            return true;
        }
        self.work.held = Some((errand, len));
        if self.others.commands() > 0 {
            self.credits.give_back(&mut self.others);
            return true;
        }
        false
    }

    /// The connection goes, as in `server::worker`: its brokers leave, whatever was still on its way.
    fn close(&mut self) {
        if self.transcript.violation.is_some() {
            self.work.held = None;
            self.credits.abandon(*self.connection.outstanding_mut());
        }
        self.work.at_writer.push_back(Command::ConnectionClosed(ID));
        while self.writer_turn() || self.disk_turn() || self.helper_turn() {}
        while self.others.commands() > 0 {
            self.credits.give_back(&mut self.others);
        }
        assert!(self.credits.all_free(), "every command is replied to once");
        assert_eq!(self.snapshot.counts(), (0, 0, 0), "all brokers have left");
        assert!(!self.registry.carries_brokers(ID));
    }

    /// Every answer is a well-formed frame, and each request that wants one has one, in order. What was kept of them at a time
    /// is a batch, or what the high-water mark allows, and those that were on their way when it was reached.
    fn check_answers(&self) {
        let mut rest = self.transcript.answers.as_slice();
        let (mut answered, mut longest) = (0, 0);
        while !rest.is_empty() {
            let Ok(Split::Frame { frame, consumed }) = frame::split(rest, usize::MAX) else {
                panic!("no whole frame in {:?}", rest.escape_ascii().to_string());
            };
            rest = &rest[consumed..];
            longest = longest.max(consumed);
            let answer = RemotingCommand::decode(frame).expect("an answer can be read");
            assert!(answer.is_response() && !answer.is_oneway());
            assert_eq!(answer.version, 479);
            assert_eq!(self.transcript.asked.get(answered), Some(&answer.opaque));
            check_json_header(frame);
            answered += 1;
        }
        if self.transcript.violation.is_none() {
            assert_eq!(answered, self.transcript.asked.len());
        }
        let batch = OUTPUT_BATCH_LEN.max(LIMITS.high_water);
        let on_their_way = (IN_FLIGHT_PER_CONNECTION_MAX + 2) * longest;
        assert!(self.output_len_max <= batch + on_their_way);
    }
}

/// A JSON header is strict JSON, whatever a peer put into it.
fn check_json_header(frame: &[u8]) {
    if frame[0] != 0 {
        return;
    }
    let header_len = u32::from_be_bytes([0, frame[1], frame[2], frame[3]]);
    let header = &frame[4..][..usize::try_from(header_len).expect("24 bits")];
    let json: serde_json::Value = serde_json::from_slice(header).expect("strict JSON");
    assert_eq!(json["flag"], 1);
}
