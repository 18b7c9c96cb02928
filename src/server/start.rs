//! Wires the threads together. Read it beside the picture in the crate's documentation.

use std::{
    fmt,
    hash::{BuildHasher, RandomState},
    io,
    num::NonZero,
    thread::{self, JoinHandle},
};

use mio::{Poll, net::TcpStream};

use super::{
    Server, Thread, WorkerThread,
    acceptor::{self, Acceptor},
    breather::WriterBreather,
    clock::Clock,
    helper::HelperThread,
    listener,
    message::{Notice, Order, PollWaker},
    notifier::{self, Notifier},
    persister::{Paths, Persister},
    priority,
    worker::{self, Sockets},
    writer::{Errands, WorkerDoor, Writer},
};
use crate::{
    config::Config,
    connection::{StreamLimits, admission, credit::Credits},
    limits::{
        IN_FLIGHT_MAX, NOTICES_MAX, ORDERS_MAX, PERSIST_JOBS_MAX, UNSENT_HIGH_WATER,
        UNSENT_LOW_WATER,
    },
    registry::{Command, KvTable, Registry, RouteSnapshot},
    sync::{Flag, Parker, Receiver, Sender, Source, Unparker, mailbox, parker, publication},
    worker::{
        Inlets, Worker,
        helper::{Helper, Job},
        outbox::Outbox,
    },
};

/// Why a server could not start.
#[derive(Debug)]
pub enum StartError {
    /// The listener could not be opened.
    Bind {
        /// `bindAddress:listenPort`
        address: String,
        /// What the system says.
        error: io::Error,
    },
    /// The system has no thread or poll for this one.
    Resource {
        /// The thread that was to be started.
        thread: String,
        /// What the system says.
        error: io::Error,
    },
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bind { address, error } => write!(f, "Failed to bind to {address}: {error}"),
            Self::Resource { thread, error } => write!(f, "cannot start thread {thread}: {error}"),
        }
    }
}

impl std::error::Error for StartError {}

/// What every thread is wired to.
struct Wiring {
    clock: Clock,
    limits: StreamLimits,
    /// See [`admission::share`].
    unfinished_len_max: usize,
    snapshots: Source<RouteSnapshot>,
    commands: Sender<Command, Unparker>,
    jobs: Sender<Job, Unparker>,
}

/// A worker with both ends of its wires.
struct StartedWorker {
    thread: WorkerThread,
    door: WorkerDoor<TcpStream, PollWaker>,
}

/// See [`Server::start`].
pub(super) fn start(mut config: Config, kv: KvTable) -> Result<Server, StartError> {
    let address = format!("{}:{}", config.bind_address(), config.listen_port());
    let bind_error = |error| StartError::Bind {
        address: address.clone(),
        error,
    };
    let (listener, local_addr) = listener::open(&config).map_err(bind_error)?;
    config.record_bound_port(local_addr.port());

    let clock = Clock::start();
    let limits = stream_limits(&config);
    let worker_count = worker_count(&config);
    let paths = Paths {
        kv_config: config.kv_config_path().to_owned(),
        properties: config.config_store_path().to_owned(),
    };
    // Peers choose the names that are hashed; the standard library's hasher is where randomness comes from without more ado.
    let hash_seed = RandomState::new().hash_one(0);
    let mut registry = Registry::new(config, kv, hash_seed, clock.now());
    registry.breathe_with(WriterBreather::new(clock));
    let (publisher, snapshots) = publication(registry.initial_snapshot());
    let (writer_parker, writer_unparker) = parker();
    let (commands, command_receiver) = mailbox(
        worker_count * IN_FLIGHT_MAX + ORDERS_MAX,
        writer_unparker.clone(),
    );
    let (helper_parker, helper_unparker) = parker();
    let (jobs, job_receiver) = mailbox(worker_count * IN_FLIGHT_MAX, helper_unparker.clone());
    let wiring = Wiring {
        clock,
        limits,
        unfinished_len_max: admission::share(worker_count, limits.frame_len_max),
        snapshots,
        commands,
        jobs,
    };

    let (persister, persist_jobs) = start_persister(&wiring, paths)?;
    let (notifier, notices) = start_notifier(&wiring)?;
    let (workers, doors) = start_workers(&wiring, worker_count)?;
    let helper = start_helper(
        HelperThread::new(Helper::new(wiring.snapshots.subscribe()), &doors, clock),
        job_receiver,
        helper_parker,
        helper_unparker,
    )?;
    let errands = Errands {
        notices,
        persist_jobs,
    };
    let writer = start_writer(
        Writer::new(registry, publisher, doors, errands, clock.now()),
        command_receiver,
        writer_parker,
        writer_unparker,
        clock,
    )?;
    let orders = workers.iter().map(|worker| worker.orders.clone()).collect();
    let acceptor = start_acceptor(Acceptor::new(listener, orders), clock)?;
    Ok(Server {
        local_addr,
        clock,
        snapshots: wiring.snapshots,
        commands: wiring.commands,
        acceptor,
        workers,
        helper,
        writer,
        persister,
        notifier,
    })
}

fn stream_limits(config: &Config) -> StreamLimits {
    StreamLimits {
        frame_len_max: config.frame_max_length(),
        high_water: config
            .write_buffer_high_water_mark()
            .unwrap_or(UNSENT_HIGH_WATER),
        low_water: config
            .write_buffer_low_water_mark()
            .unwrap_or(UNSENT_LOW_WATER),
    }
}

/// One fewer than there are processors: the writer needs one at times, and a worker that shares its processor with it makes
/// every peer of its wait.
fn worker_count(config: &Config) -> usize {
    let spare = || {
        thread::available_parallelism()
            .map_or(1, NonZero::get)
            .saturating_sub(1)
            .max(1)
    };
    config
        .worker_threads()
        .unwrap_or_else(spare)
        .min(usize::from(u16::MAX))
}

type Doors = Vec<WorkerDoor<TcpStream, PollWaker>>;

fn start_workers(wiring: &Wiring, count: usize) -> Result<(Vec<WorkerThread>, Doors), StartError> {
    let started = (0..count).map(|index| start_worker(wiring, index));
    let started: Vec<_> = started.collect::<Result<_, _>>()?;
    Ok(started
        .into_iter()
        .map(|worker| (worker.thread, worker.door))
        .unzip())
}

fn start_worker(wiring: &Wiring, index: usize) -> Result<StartedWorker, StartError> {
    let name = format!("worker-{index}");
    let (poll, waker) = polled(&name, worker::WAKER)?;
    let registry = poll
        .registry()
        .try_clone()
        .map_err(|error| resource(&name, error))?;
    let (orders, order_receiver) = mailbox::<Order, _>(ORDERS_MAX, waker.clone());
    let (replies, reply_receiver) = mailbox(IN_FLIGHT_MAX, waker);
    let worker = Worker::new(
        u16::try_from(index).expect("workers are counted by a u16"),
        Sockets(registry),
        wiring.snapshots.subscribe(),
        Outbox::new(
            wiring.commands.clone(),
            wiring.jobs.clone(),
            Credits::default(),
        ),
        wiring.limits,
        wiring.unfinished_len_max,
    );
    let inlets = Inlets {
        orders: order_receiver,
        replies: reply_receiver,
    };
    let clock = wiring.clock;
    let handle = spawn(&name, move || worker::run(worker, poll, inlets, clock))?;
    Ok(StartedWorker {
        thread: WorkerThread {
            orders: orders.clone(),
            handle,
        },
        door: WorkerDoor { replies, orders },
    })
}

fn start_helper(
    helper: HelperThread,
    jobs: Receiver<Job, Unparker>,
    parker: Parker,
    waker: Unparker,
) -> Result<Thread<Unparker>, StartError> {
    let stop = Flag::new();
    let stopped = stop.clone();
    let handle = spawn_yielding("helper", move || helper.run(jobs, &parker, &stopped))?;
    Ok(Thread {
        stop,
        waker,
        handle,
    })
}

fn start_writer(
    writer: Writer<TcpStream, PollWaker>,
    commands: Receiver<Command, Unparker>,
    parker: Parker,
    waker: Unparker,
    clock: Clock,
) -> Result<Thread<Unparker>, StartError> {
    let stop = Flag::new();
    let stopped = stop.clone();
    let handle = spawn_yielding("writer", move || {
        writer.run(commands, &parker, clock, &stopped)
    })?;
    Ok(Thread {
        stop,
        waker,
        handle,
    })
}

fn start_persister(
    wiring: &Wiring,
    paths: Paths,
) -> Result<
    (
        Thread<Unparker>,
        Sender<super::message::PersistJob, Unparker>,
    ),
    StartError,
> {
    let (parker, waker) = parker();
    let (jobs, job_receiver) = mailbox(PERSIST_JOBS_MAX, waker.clone());
    let persister = Persister::new(paths, wiring.commands.clone());
    let stop = Flag::new();
    let stopped = stop.clone();
    let handle = spawn("persister", move || {
        persister.run(job_receiver, &parker, &stopped)
    })?;
    Ok((
        Thread {
            stop,
            waker,
            handle,
        },
        jobs,
    ))
}

fn start_notifier(
    wiring: &Wiring,
) -> Result<(Thread<PollWaker>, Sender<Notice, PollWaker>), StartError> {
    let name = "notifier";
    let (poll, waker) = polled(name, notifier::WAKER)?;
    let registry = poll
        .registry()
        .try_clone()
        .map_err(|error| resource(name, error))?;
    let (notices, notice_receiver) = mailbox(NOTICES_MAX, waker.clone());
    let stop = Flag::new();
    let stopped = stop.clone();
    let clock = wiring.clock;
    let handle = spawn(name, move || {
        Notifier::new(registry).run(poll, notice_receiver, clock, &stopped)
    })?;
    Ok((
        Thread {
            stop,
            waker,
            handle,
        },
        notices,
    ))
}

fn start_acceptor(acceptor: Acceptor, clock: Clock) -> Result<Thread<PollWaker>, StartError> {
    let name = "acceptor";
    let (poll, waker) = polled(name, acceptor::WAKER)?;
    let stop = Flag::new();
    let stopped = stop.clone();
    let handle = spawn(name, move || acceptor.run(poll, clock, &stopped))?;
    Ok(Thread {
        stop,
        waker,
        handle,
    })
}

/// A poll and what wakes the thread that waits in it.
fn polled(thread: &str, token: mio::Token) -> Result<(Poll, PollWaker), StartError> {
    let failed = |error| resource(thread, error);
    let poll = Poll::new().map_err(failed)?;
    let waker = PollWaker::new(poll.registry(), token).map_err(failed)?;
    Ok((poll, waker))
}

/// A thread that yields its processor to the workers.
fn spawn_yielding(
    name: &str,
    body: impl FnOnce() + Send + 'static,
) -> Result<JoinHandle<()>, StartError> {
    spawn(name, move || {
        priority::yield_to_workers();
        body();
    })
}

fn spawn(name: &str, body: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>, StartError> {
    thread::Builder::new()
        .name(name.to_owned())
        .spawn(body)
        .map_err(|error| resource(name, error))
}

fn resource(thread: &str, error: io::Error) -> StartError {
    StartError::Resource {
        thread: thread.to_owned(),
        error,
    }
}
