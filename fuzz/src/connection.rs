//! A whole connection: bytes → worker, helper and registry → bytes, on a simulated socket, without a thread or a clock.
//!
//! The same stream is sent twice: in one piece to a server that answers at once, and in pieces, to one whose writer is slow, short
//! of credits and behind a socket that takes little. A peer must not be able to tell the two apart.

use std::{collections::VecDeque, sync::Arc};

use waypost::{
    config::{Config, Environment},
    connection::{
        StreamLimits, admission,
        handshake::{self, Opening},
    },
    ids::ConnectionId,
    limits::{FRAME_LEN_MAX, IN_FLIGHT_PER_CONNECTION_MAX, OUTPUT_BATCH_LEN},
    protocol::{
        command::RemotingCommand,
        frame::{self, Split},
    },
    registry::{Command, Effect, KvTable, Registry, RouteSnapshot, command::PersistTicket},
    time::Timestamp,
    worker::message::{Order, Reply},
};

use super::rig::{Far, Rig, Sizes, line};

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
/// More than one connection can have out.
const CREDITS: usize = 2 * IN_FLIGHT_PER_CONNECTION_MAX;

/// The first four bytes say how the stream is cut, the rest is the stream.
pub(crate) fn connection(data: &[u8]) {
    let Some((seed, stream)) = data.split_first_chunk() else {
        return;
    };
    let smooth = Server::new(Weather::Smooth).run(stream);
    let rough = Server::new(Weather::Rough(u32::from_le_bytes(*seed).into())).run(stream);
    let expected = Expected::of(stream);
    for transcript in [&smooth, &rough] {
        assert_eq!(transcript.asked, expected.asked);
        transcript.check_answers(&expected);
    }
    let (short, long) = (&smooth.answers, &rough.answers);
    if expected.is_violated {
        // A violation ends the connection at once: what the writer had not answered by then is lost.
        assert!(long.starts_with(short) || short.starts_with(long));
    } else {
        assert_eq!(short, long);
    }
}

/// What a stream asks for.
struct Expected {
    /// Opaques of the requests that want an answer, in their order.
    asked: Vec<i32>,
    /// Behind them comes something that no peer sends.
    is_violated: bool,
}

impl Expected {
    fn of(mut stream: &[u8]) -> Self {
        let mut asked = Vec::new();
        let is_violated = match handshake::detect(stream) {
            Opening::Undecided => false,
            Opening::Tls | Opening::Proxy => true,
            Opening::Frames => loop {
                let (frame, consumed) = match frame::split(stream, FRAME_LEN_MAX) {
                    Ok(Split::Frame { frame, consumed }) => (frame, consumed),
                    Ok(Split::NeedMore) => break false,
                    Err(_) => break true,
                };
                let Ok(request) = RemotingCommand::decode(frame) else {
                    break true;
                };
                if !request.is_response() && !request.is_oneway() {
                    asked.push(request.opaque);
                }
                stream = &stream[consumed..];
            },
        };
        Self { asked, is_violated }
    }
}

/// What a peer sees, and what it asked.
struct Transcript {
    /// Opaques of the requests that want an answer, in the order in which they were executed.
    asked: Vec<i32>,
    answers: Vec<u8>,
    /// After each turn: how many were asked, and how many bytes of answers were sent.
    marks: Vec<(usize, usize)>,
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
    rig: Rig,
    line: Far,
    registry: Registry,
    snapshot: Arc<RouteSnapshot>,
    at_disk: VecDeque<PersistTicket>,
    transcript: Transcript,
}

impl Server {
    fn new(mut weather: Weather) -> Self {
        let config = Config::defaults(&Environment::default());
        let registry = Registry::new(config, KvTable::default(), 42, NOW);
        let snapshot = registry.initial_snapshot();
        let credits = match weather {
            Weather::Smooth => CREDITS,
            Weather::Rough(_) => weather.amount(CREDITS),
        };
        let sizes = Sizes {
            credits,
            // The last words of the connection need no credit.
            commands: credits + 1,
            orders: 1,
            limits: LIMITS,
            unfinished_len_max: admission::share(1, FRAME_LEN_MAX),
        };
        let rig = Rig::new(Arc::clone(&snapshot), sizes);
        let (line, socket) = line(0);
        let served = rig.order(Order::Serve(socket, ([127, 0, 0, 1], 1).into()));
        served.expect("there is room for one");
        Self {
            weather,
            rig,
            line,
            registry,
            snapshot,
            at_disk: VecDeque::new(),
            transcript: Transcript {
                asked: Vec::new(),
                answers: Vec::new(),
                marks: Vec::new(),
            },
        }
    }

    /// Serves the stream to its end, and whatever is still on its way then.
    fn run(mut self, mut stream: &[u8]) -> Transcript {
        let mut has_finished = false;
        while !self.line.is_closed() {
            let mut progress = false;
            if stream.is_empty() {
                progress = !std::mem::replace(&mut has_finished, true);
                if progress {
                    self.line.finish();
                }
            } else if self.line.is_read() {
                let (arrives, rest) = stream.split_at(self.weather.amount(stream.len()));
                self.line.deliver(arrives);
                stream = rest;
                progress = true;
            }
            self.line.make_room(self.weather.amount(1 << 40));
            progress |= self.worker_turn() | self.help() | self.write() | self.store();
            assert!(progress, "the connection is stuck: {:?}", self.rig);
        }
        while self.worker_turn() | self.help() | self.write() | self.store() {}
        assert!(self.rig.is_settled(), "every command is replied to once");
        assert_eq!(self.snapshot.counts(), (0, 0, 0), "all brokers have left");
        assert!(!self.registry.carries_brokers(ID));
        self.transcript
    }

    fn worker_turn(&mut self) -> bool {
        if !self.rig.is_awake(NOW) {
            return false;
        }
        let executed = self.rig.poll_and_turn(NOW);
        let asked = executed.iter().filter(|request| !request.oneway);
        let Transcript {
            asked: all,
            answers,
            marks,
        } = &mut self.transcript;
        all.extend(asked.map(|request| request.opaque));
        answers.extend(self.line.take_sent());
        marks.push((all.len(), answers.len()));
        true
    }

    /// The helper does one job.
    fn help(&mut self) -> bool {
        let Some(job) = self.rig.help(NOW) else {
            return false;
        };
        let request = RemotingCommand::decode(&job.frame).expect("it was decoded before");
        // Nothing behind it is executed before it is back.
        if !request.is_oneway() {
            self.transcript.asked.push(request.opaque);
        }
        true
    }

    /// The writer applies some of the commands that are out as one batch.
    fn write(&mut self) -> bool {
        let mut applied = false;
        for _ in 0..self.weather.amount(CREDITS + 1) {
            let Some(command) = self.rig.next_command() else {
                break;
            };
            self.registry.apply(command, NOW);
            applied = true;
        }
        if applied {
            self.publish();
        }
        applied
    }

    /// The disk finishes the oldest write.
    fn store(&mut self) -> bool {
        let Some(ticket) = self.at_disk.pop_front() else {
            return false;
        };
        self.registry.apply(Command::Persisted(ticket, Ok(())), NOW);
        self.publish();
        true
    }

    fn publish(&mut self) {
        let Self {
            rig,
            snapshot,
            registry,
            ..
        } = self;
        let store = |next: Arc<RouteSnapshot>| {
            *snapshot = Arc::clone(&next);
            rig.publish(next);
        };
        let effects: Vec<Effect> = registry.publish().store(store).collect();
        for effect in effects {
            match effect {
                Effect::Reply(to, answer) => {
                    assert_eq!(to.connection, ID);
                    self.rig.reply(Reply::Executed { to, answer });
                }
                Effect::Persist(ticket, _) => self.at_disk.push_back(ticket),
                Effect::Notify { .. } => {}
                Effect::Close(_) => panic!("no time passes, so no broker falls silent"),
            }
        }
    }
}

impl Transcript {
    /// Every answer is a well-formed frame, and each request that wants one has one, in order. What was kept of them at a time
    /// is a batch, or what the high-water mark allows, and those that were on their way when it was reached.
    fn check_answers(&self, expected: &Expected) {
        let mut rest = self.answers.as_slice();
        let mut longest = 0;
        // Where each answer ends.
        let mut ends = vec![0];
        while !rest.is_empty() {
            let Ok(Split::Frame { frame, consumed }) = frame::split(rest, usize::MAX) else {
                assert!(expected.is_violated, "an answer is cut");
                break;
            };
            rest = &rest[consumed..];
            longest = longest.max(consumed);
            let answer = RemotingCommand::decode(frame).expect("an answer can be read");
            assert!(answer.is_response() && !answer.is_oneway());
            assert_eq!(answer.version, 479);
            assert_eq!(self.asked.get(ends.len() - 1), Some(&answer.opaque));
            check_json_header(frame);
            ends.push(self.answers.len() - rest.len());
        }
        if expected.is_violated {
            return;
        }
        assert_eq!(ends.len() - 1, self.asked.len());
        let batch = OUTPUT_BATCH_LEN.max(LIMITS.high_water);
        let on_their_way = (IN_FLIGHT_PER_CONNECTION_MAX + 2) * longest;
        for (asked, sent) in &self.marks {
            assert!(ends[*asked] <= sent + batch + on_their_way);
        }
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
