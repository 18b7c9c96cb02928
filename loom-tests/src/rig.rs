//! The server's own worker and writer, wired as `server::start` wires them, on sockets that hold what they are given.
//!
//! A scenario is the network, the peers and the clock: no time passes, so no deadline ends a wait, and a wake that is lost is a
//! deadlock. The poll is a [`Parker`], as the writer's is.

use std::{
    io::{self, ErrorKind, Read, Write},
    sync::{Arc, Mutex, MutexGuard},
};

use waypost::{
    config::{Config, Environment},
    connection::{StreamLimits, credit::Credits},
    limits::{FRAME_LEN_MAX, HELPED_BODY_LEN, UNFINISHED_LEN_MAX},
    protocol::{code::ResponseCode, command::RemotingCommand},
    registry::{Command, KvTable, Registry, RouteSnapshot},
    server::{
        message::PersistJob,
        writer::{Errands, WorkerDoor, Writer},
    },
    sync::{
        Flag, Parker, Receiver, Sender, Source, Subscriber, Unparker, Wake, mailbox, parker,
        publication,
    },
    time::Timestamp,
    worker::{
        self, Edge, Event, Inlets, Next, Polled, Readiness,
        helper::{Helper, Job},
        message::{Order, Reply},
        outbox::Outbox,
    },
};

use crate::receive_one;

/// The moment of every turn, unless a scenario says otherwise.
pub const NOW: Timestamp = Timestamp::from_millis(1000);

/// `SUCCESS` as it comes over the wire.
pub const SUCCESS: i32 = ResponseCode::Success as i32;

/// `TOPIC_NOT_EXIST` likewise.
pub const TOPIC_NOT_EXIST: i32 = ResponseCode::TopicNotExist as i32;

/// Commands that one worker may have out, and the room of its reply mailbox. Each further one is a state more.
pub const OUT_MAX: usize = 2;

/// What the network holds of one connection.
#[derive(Debug, Default)]
struct Wire {
    slot: u32,
    arrived: Vec<u8>,
    /// The peer has sent a FIN.
    is_finished: bool,
    /// The peer has sent a RST.
    is_broken: bool,
    written: Vec<u8>,
    is_closed: bool,
}

/// The peer's end of a connection.
///
/// The lock is never held across anything that loom sees.
#[derive(Debug, Clone)]
pub struct Line(Arc<Mutex<Wire>>);

/// The worker's end of a connection.
#[derive(Debug)]
pub struct Socket(Line);

/// An answer as its peer gets it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Answer {
    /// The number of its request.
    pub opaque: i32,
    /// A response code.
    pub code: i32,
}

impl Line {
    fn wire(&self) -> MutexGuard<'_, Wire> {
        self.0.lock().expect("nothing fails while it is held")
    }

    /// Where the worker keeps the connection.
    #[must_use]
    pub fn slot(&self) -> u32 {
        self.wire().slot
    }

    /// Whether the worker has closed its end.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.wire().is_closed
    }

    /// What the peer has been answered so far.
    #[must_use]
    pub fn answers(&self) -> Vec<Answer> {
        let wire = self.wire();
        let (mut bytes, mut answers) = (wire.written.as_slice(), Vec::new());
        while let Some(length) = bytes.first_chunk() {
            let end = 4 + usize::try_from(u32::from_be_bytes(*length)).expect("it is short");
            let answer = RemotingCommand::decode(&bytes[4..end]).expect("we wrote it");
            answers.push(Answer {
                opaque: answer.opaque,
                code: answer.code,
            });
            bytes = &bytes[end..];
        }
        answers
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        self.0.wire().is_closed = true;
    }
}

impl Read for Socket {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut wire = self.0.wire();
        let arrived = std::mem::take(&mut wire.arrived);
        if arrived.is_empty() {
            return match (wire.is_broken, wire.is_finished) {
                (true, _) => Err(ErrorKind::ConnectionReset.into()),
                (false, true) => Ok(0),
                (false, false) => Err(ErrorKind::WouldBlock.into()),
            };
        }
        buffer[..arrived.len()].copy_from_slice(&arrived);
        Ok(arrived.len())
    }
}

impl Write for Socket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.wire().written.extend(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The sockets of a worker.
#[derive(Debug)]
pub struct Sockets;

impl Edge for Sockets {
    type Socket = Socket;

    fn register(&mut self, socket: &mut Socket, slot: u32) -> io::Result<()> {
        socket.0.wire().slot = slot;
        Ok(())
    }

    fn shut(_socket: &mut Socket) -> io::Result<()> {
        Ok(())
    }
}

/// The writer and what it is wired to, with the ends that belong to other threads.
#[derive(Debug)]
pub struct Rig<const WORKERS: usize> {
    /// Of the writer's thread.
    pub writer: WriterThread,
    /// Each of a thread of its own.
    pub workers: [WorkerThread; WORKERS],
    /// Of the helper's thread. It serves the first worker.
    pub helper: HelperThread,
    /// Of the persister's thread.
    pub persister: Persister,
    /// Ends the writer.
    pub stop: Stop,
    /// What is published.
    pub snapshots: Source<RouteSnapshot>,
}

/// What the writer's thread owns.
#[derive(Debug)]
pub struct WriterThread {
    writer: Writer<Socket, Unparker>,
    commands: Receiver<Command, Unparker>,
    parker: Parker,
    stop: Flag,
}

/// What the helper's thread owns.
#[derive(Debug)]
pub struct HelperThread {
    helper: Helper,
    jobs: Receiver<Job, Unparker>,
    replies: Sender<Reply, Unparker>,
    parker: Parker,
}

/// What the persister's thread owns.
#[derive(Debug)]
pub struct Persister {
    jobs: Receiver<PersistJob, Unparker>,
    reports: Sender<Command, Unparker>,
    parker: Parker,
}

/// Ends the writer.
#[derive(Debug)]
pub struct Stop {
    flag: Flag,
    waker: Unparker,
}

/// What a worker's thread owns, and what wakes it.
#[derive(Debug)]
pub struct WorkerThread {
    worker: Option<worker::Worker<Sockets>>,
    inlets: Inlets<Socket, Unparker>,
    parker: Parker,
    /// What it did last.
    next: Next,
    /// Of whoever gives it connections, or ends it.
    pub orders: Sender<Order<Socket>, Unparker>,
    /// Wakes it.
    pub waker: Unparker,
    /// What it sees.
    pub snapshots: Subscriber<RouteSnapshot>,
}

impl<const WORKERS: usize> Default for Rig<WORKERS> {
    fn default() -> Self {
        Self::new()
    }
}

impl<const WORKERS: usize> Rig<WORKERS> {
    /// Laid as `server::start` lays it. The mailboxes have room for what a scenario sends.
    ///
    /// # Panics
    ///
    /// If there are more workers than an index counts.
    #[must_use]
    pub fn new() -> Self {
        let config = Config::defaults(&Environment {
            user_home: None,
            rocketmq_home: None,
        });
        let registry = Registry::new(config, KvTable::default(), 7, NOW);
        let (publisher, snapshots) = publication(registry.initial_snapshot());
        let (writer_parker, writer_waker) = parker();
        let (commands, command_inbox) = mailbox(8, writer_waker.clone());
        let (persister_parker, persister_waker) = parker();
        let (persist_jobs, jobs) = mailbox(1, persister_waker.clone());
        let (notices, _notice_inbox) = mailbox(1, persister_waker);
        let (helper_parker, helper_waker) = parker();
        let (job_door, helped_jobs) = mailbox(OUT_MAX, helper_waker);
        let mut doors: Vec<WorkerDoor<Socket, Unparker>> = Vec::new();
        let workers = std::array::from_fn(|index| {
            let outbox = Outbox::new(commands.clone(), job_door.clone(), Credits::new(OUT_MAX));
            let (worker, door) = worker_thread(index, outbox, &snapshots);
            doors.push(door);
            worker
        });
        let helper = HelperThread {
            helper: Helper::new(snapshots.subscribe()),
            jobs: helped_jobs,
            replies: doors.first().expect("there is a worker").replies.clone(),
            parker: helper_parker,
        };
        let stop = Flag::new();
        let errands = Errands {
            notices,
            persist_jobs,
        };
        Self {
            writer: WriterThread {
                writer: Writer::new(registry, publisher, doors, errands, NOW),
                commands: command_inbox,
                parker: writer_parker,
                stop: stop.clone(),
            },
            workers,
            helper,
            persister: Persister {
                jobs,
                reports: commands,
                parker: persister_parker,
            },
            stop: Stop {
                flag: stop,
                waker: writer_waker,
            },
            snapshots,
        }
    }
}

fn worker_thread(
    index: usize,
    outbox: Outbox,
    snapshots: &Source<RouteSnapshot>,
) -> (WorkerThread, WorkerDoor<Socket, Unparker>) {
    let (parker, waker) = parker();
    let (replies, reply_inlet) = mailbox::<Reply, _>(OUT_MAX, waker.clone());
    // A sender that does not see what was taken out finds less room than there is.
    let (orders, order_inlet) = mailbox(8, waker.clone());
    let limits = StreamLimits {
        frame_len_max: FRAME_LEN_MAX,
        high_water: 1024,
        low_water: 512,
    };
    let worker = worker::Worker::new(
        u16::try_from(index).expect("workers are few"),
        Sockets,
        snapshots.subscribe(),
        outbox,
        limits,
        UNFINISHED_LEN_MAX,
    );
    let thread = WorkerThread {
        worker: Some(worker),
        inlets: Inlets {
            orders: order_inlet,
            replies: reply_inlet,
        },
        parker,
        next: Next::Wait(None),
        orders: orders.clone(),
        waker,
        snapshots: snapshots.subscribe(),
    };
    (thread, WorkerDoor { replies, orders })
}

impl WriterThread {
    /// `Writer::run` without its clock.
    pub fn run(mut self) {
        loop {
            match self.turn(NOW) {
                Next::Turn => {}
                Next::Wait(_) => self.parker.park(None),
                Next::End => return,
            }
        }
    }

    /// One turn.
    pub fn turn(&mut self, now: Timestamp) -> Next {
        self.writer.turn(&mut self.commands, &self.stop, now).next
    }
}

impl Stop {
    /// As the server does when its workers have ended.
    pub fn stop(self) {
        self.flag.raise();
        self.waker.wake();
    }
}

impl HelperThread {
    /// Executes one job.
    ///
    /// # Panics
    ///
    /// If the worker's mailbox is full, which has room for all that it has out.
    pub fn perform_one(mut self) {
        let job = receive_one(&mut self.jobs, &self.parker);
        let done = self.helper.execute(&job, NOW);
        let connection = job.connection;
        let reply = Reply::Helped { connection, done };
        self.replies
            .send(reply)
            .expect("a credit is room for a reply");
    }
}

impl Persister {
    /// Performs one job.
    ///
    /// # Panics
    ///
    /// If the writer's mailbox is full.
    pub fn perform_one(mut self) {
        let job = receive_one(&mut self.jobs, &self.parker);
        self.reports
            .send(Command::Persisted(job.ticket, Ok(())))
            .expect("there is room");
    }
}

impl WorkerThread {
    /// Turns until there is nothing more to do than to wait.
    fn turn(&mut self, event: Event) {
        let mut events = vec![event];
        while let Some(worker) = &mut self.worker {
            self.next = worker.turn(
                &mut self.inlets,
                Polled {
                    asked_at: NOW,
                    now: NOW,
                    events: std::mem::take(&mut events),
                },
            );
            match self.next {
                Next::Turn => {}
                Next::Wait(_) => return,
                Next::End => self
                    .worker
                    .take()
                    .into_iter()
                    .for_each(worker::Worker::close_all),
            }
        }
    }

    /// What it waits with.
    #[must_use]
    pub fn parker(&self) -> &Parker {
        &self.parker
    }

    /// Looks into the mailboxes.
    pub fn look(&mut self) {
        self.turn(Event::Mail);
    }

    /// Waits to be woken and looks into the mailboxes, until `is_done`.
    pub fn run_until(&mut self, mut is_done: impl FnMut(&worker::Worker<Sockets>) -> bool) {
        while let Some(worker) = &self.worker
            && !is_done(worker)
        {
            self.parker.park(None);
            self.look();
        }
    }

    /// Until nothing is out.
    pub fn settle(&mut self) {
        self.run_until(worker::Worker::is_settled);
    }

    /// Until it is told to stop, and has.
    pub fn run(mut self) {
        self.run_until(|_| false);
    }

    /// Gives it a new connection.
    ///
    /// # Panics
    ///
    /// If there is no room for the order.
    pub fn connect(&mut self) -> Line {
        let line = Line(Arc::default());
        let order = Order::Serve(Socket(line.clone()), ([127, 0, 0, 1], 1).into());
        self.orders.send(order).expect("there is room");
        self.look();
        line
    }

    /// A request arrives.
    pub fn ask(&mut self, line: &Line, request: &[u8]) {
        line.wire().arrived.extend(request);
        let readable = Readiness {
            readable: true,
            ..Readiness::default()
        };
        self.turn(Event::Socket(line.slot(), readable));
    }

    /// A request arrives, and is answered with this code.
    pub fn call(&mut self, line: &Line, request: &[u8]) -> i32 {
        let answered = line.answers().len();
        self.ask(line, request);
        self.run_until(|_| line.answers().len() > answered);
        line.answers()[answered].code
    }

    /// A request and behind it a FIN arrive.
    pub fn ask_at_last(&mut self, line: &Line, request: &[u8]) {
        let mut wire = line.wire();
        wire.arrived.extend(request);
        wire.is_finished = true;
        let slot = wire.slot;
        drop(wire);
        let ended = Readiness {
            readable: true,
            read_closed: true,
            ..Readiness::default()
        };
        self.turn(Event::Socket(slot, ended));
    }

    /// A RST arrives.
    pub fn shatter(&mut self, line: &Line) {
        line.wire().is_broken = true;
        let broken = Readiness {
            readable: true,
            read_closed: true,
            writable: true,
            write_closed: true,
            error: true,
        };
        self.turn(Event::Socket(line.slot(), broken));
    }
}

/// A frame with a JSON header.
fn frame(code: i32, opaque: i32, fields: &str, body: &str) -> Vec<u8> {
    let header = format!(
        r#"{{"code":{code},"flag":0,"language":"JAVA","opaque":{opaque},"version":479,"extFields":{{{fields}}}}}"#
    );
    let header_len = u32::try_from(header.len()).expect("it is short");
    let body_len = u32::try_from(body.len()).expect("it is short");
    let lengths = [4 + header_len + body_len, header_len].map(u32::to_be_bytes);
    [lengths.as_flattened(), header.as_bytes(), body.as_bytes()].concat()
}

/// Registers (103) a broker that is called like the first of its two topics: with one alone it would be taken for a change of that
/// one.
#[must_use]
pub fn register(opaque: i32, broker: &str) -> Vec<u8> {
    register_padded(opaque, broker, 0)
}

/// The same, so large that the helper reads it.
#[must_use]
pub fn register_at_length(opaque: i32, broker: &str) -> Vec<u8> {
    register_padded(opaque, broker, HELPED_BODY_LEN)
}

fn register_padded(opaque: i32, broker: &str, blanks: usize) -> Vec<u8> {
    let fields = format!(
        r#""brokerName":"{broker}","brokerAddr":"{broker}:1","clusterName":"cluster","haServerAddr":"","brokerId":"0","#
    ) + r#""compressed":"false","bodyCrc32":"0""#;
    let retry = format!("{broker}-retry");
    let topic = |name: &str| format!(r#""{name}":{{"topicName":"{name}"}}"#);
    let body = format!(
        r#"{{"topicConfigSerializeWrapper":{{"topicConfigTable":{{{},{}}}}},"filterServerList":[]}}{:blanks$}"#,
        topic(broker),
        topic(&retry),
        ""
    );
    frame(103, opaque, &fields, &body)
}

/// Asks who holds a topic (105).
#[must_use]
pub fn route(opaque: i32, topic: &str) -> Vec<u8> {
    frame(105, opaque, &format!(r#""topic":"{topic}""#), "")
}

/// Stores a value (100).
#[must_use]
pub fn put_kv(opaque: i32) -> Vec<u8> {
    let fields = r#""namespace":"namespace","key":"key","value":"value""#;
    frame(100, opaque, fields, "")
}
