//! The impure shell: sockets, files, the clock, threads and signals. Everything that is decided is decided elsewhere.
//!
//! [`Server::start`] wires the threads of the picture in [the crate's documentation](crate); [`Server::shutdown`] ends them in
//! the order in which work flows, so that nothing accepted is lost: acceptor, workers, helper, writer, persister, notifier.
//!
//! [`message`] and [`writer`], which need no thread, are public for those who run them under other schedulers than the machine's.

mod acceptor;
mod breather;
pub mod clock;
pub mod config_file;
pub mod descriptors;
mod file;
mod helper;
pub mod kv_store;
mod listener;
pub mod message;
mod notifier;
mod persister;
mod priority;
pub mod signal;
mod start;
mod stats;
mod temporary;
mod worker;
pub mod writer;

use std::{net::SocketAddr, thread::JoinHandle};

pub use start::StartError;

use self::{
    clock::Clock,
    message::{Order, PollWaker},
};
use crate::{
    config::Config,
    limits::RETRY_INTERVAL,
    registry::{Command, KvTable, RouteSnapshot},
    sync::{Flag, Full, Sender, Source, Unparker, Wake, parker},
    time::Timestamp,
};

/// A running name server.
#[derive(Debug)]
pub struct Server {
    local_addr: SocketAddr,
    clock: Clock,
    snapshots: Source<RouteSnapshot>,
    commands: Sender<Command, Unparker>,
    acceptor: Thread<PollWaker>,
    workers: Vec<WorkerThread>,
    helper: Thread<Unparker>,
    writer: Thread<Unparker>,
    persister: Thread<Unparker>,
    notifier: Thread<PollWaker>,
}

/// A thread that ends some time after its flag is raised and it is woken.
#[derive(Debug)]
struct Thread<W> {
    stop: Flag,
    waker: W,
    handle: JoinHandle<()>,
}

/// A worker ends by an order, since it has to know which connections came before.
#[derive(Debug)]
struct WorkerThread {
    orders: Sender<Order, PollWaker>,
    handle: JoinHandle<()>,
}

impl<W: Wake> Thread<W> {
    fn stop(self) {
        self.stop.raise();
        self.waker.wake();
        join(self.handle);
    }
}

impl Server {
    /// Opens the listener and starts all threads.
    ///
    /// # Errors
    ///
    /// When the address is taken or the system is out of threads or file descriptors.
    pub fn start(config: Config, kv: KvTable) -> Result<Self, StartError> {
        start::start(config, kv)
    }

    /// Where it listens.
    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        self.local_addr
    }

    /// Something that logs what the server holds, whenever it is called.
    pub fn status_reporter(&self) -> impl FnMut() + Send + use<> {
        let snapshots = self.snapshots.clone();
        move || {
            // A subscriber that lasted would pin the version that it saw.
            let (topics, groups, live) = snapshots.subscribe().load().counts();
            tracing::info!("{topics} topics, {groups} broker groups, {live} live brokers");
        }
    }

    /// Ends everything in order: says goodbye to clients if so configured (spec 1.8), accepts no more, answers what was asked,
    /// writes what has to be kept.
    pub fn shutdown(self) {
        let started_at = self.clock.now();
        tracing::info!("shutdown hook was invoked, 1 times.");
        // From here on brokers leave because of us, and nobody must be told that topics are gone (fault D2).
        insist(|command| self.commands.send(command), Command::Drain);
        let settings = *self.snapshots.subscribe().load().settings();
        if settings.enable_shutdown_gracefully {
            order_all(&self.workers, || Order::GoAway);
            self.wait_until(started_at.after(settings.shutdown_wait));
        }
        self.acceptor.stop();
        order_all(&self.workers, || Order::Stop);
        for worker in self.workers {
            join(worker.handle);
        }
        self.helper.stop();
        // From here on nobody asks the writer for anything but the persister, which reports to it.
        self.writer.stop();
        self.persister.stop();
        self.notifier.stop();
        let total = self.clock.now().since(started_at).as_millis();
        tracing::info!("shutdown hook done, consuming time total(ms): {total}");
    }

    fn wait_until(&self, end: Timestamp) {
        let (parker, _unparker) = parker();
        while self.clock.now() < end {
            parker.park(self.clock.until(Some(end)));
        }
    }
}

/// Gives every worker an order.
fn order_all(workers: &[WorkerThread], order: impl Fn() -> Order) {
    for worker in workers {
        insist(|order| worker.orders.send(order), order());
    }
}

/// Sends something that must not be lost; a full mailbox only delays it.
fn insist<T>(send: impl Fn(T) -> Result<(), Full<T>>, message: T) {
    let (parker, _unparker) = parker();
    let mut unsent = message;
    while let Err(Full(message)) = send(unsent) {
        unsent = message;
        parker.park(Some(RETRY_INTERVAL));
    }
}

fn join(handle: JoinHandle<()>) {
    handle
        .join()
        .expect("a thread of the server ends by returning");
}
