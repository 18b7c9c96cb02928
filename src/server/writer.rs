//! The writer's turn: take commands, apply them, publish, and only then tell of it.
//!
//! The one thread that holds a [`Registry`]. It waits for nobody: what another thread has no room for is kept and tried again,
//! or counted and dropped where that does no harm.

use super::{
    clock::Clock,
    message::{Notice, PersistJob},
    stats::TurnStats,
};
use crate::{
    connection::queue::Queue,
    limits::{RETRY_INTERVAL, WRITER_DRAIN_MAX},
    registry::{Command, Effect, Registry, RouteSnapshot},
    sync::{Flag, Parker, Publisher, Receiver, Sender, Unparker, Wake},
    time::Timestamp,
    worker::{
        Next,
        log_limit::LogLimit,
        message::{Order, Reply},
    },
};

/// The writer's view of one worker.
#[derive(Debug)]
pub struct WorkerDoor<S, W> {
    /// Has room for every command that the worker may have out.
    pub replies: Sender<Reply, W>,
    /// May be full: what does not fit is kept.
    pub orders: Sender<Order<S>, W>,
}

/// What the writer does not do itself.
#[derive(Debug)]
pub struct Errands<W> {
    /// To the notifier.
    pub notices: Sender<Notice, W>,
    /// To the persister.
    pub persist_jobs: Sender<PersistJob, Unparker>,
}

/// What a turn had, and what comes after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Turned {
    /// How many commands were applied.
    pub commands: usize,
    /// What to do now.
    pub next: Next,
}

/// The owner of the registry. It touches none of its workers' sockets, whatever they are.
#[derive(Debug)]
pub struct Writer<S, W> {
    registry: Registry,
    publisher: Publisher<RouteSnapshot>,
    workers: Vec<WorkerDoor<S, W>>,
    errands: Errands<W>,
    /// Workers to wake at the end of the turn, by index.
    replied: Vec<bool>,
    /// Closes that their worker had no room for, by worker.
    closes: Vec<Queue<()>>,
    /// Files that the persister has yet to report on.
    persists_out: usize,
    notice_log: LogLimit,
    stats: TurnStats,
}

impl<S, W: Wake> Writer<S, W> {
    /// A writer that has published what `registry` holds at first.
    #[must_use]
    pub fn new(
        registry: Registry,
        publisher: Publisher<RouteSnapshot>,
        workers: Vec<WorkerDoor<S, W>>,
        errands: Errands<W>,
        now: Timestamp,
    ) -> Self {
        Self {
            registry,
            publisher,
            replied: vec![false; workers.len()],
            closes: workers.iter().map(|_| Queue::default()).collect(),
            workers,
            errands,
            persists_out: 0,
            notice_log: LogLimit::default(),
            stats: TurnStats::new(now),
        }
    }

    /// Runs until `stop` is raised and everything sent before that is done, files included.
    pub(super) fn run(
        mut self,
        mut commands: Receiver<Command, Unparker>,
        parker: &Parker,
        clock: Clock,
        stop: &Flag,
    ) {
        loop {
            let now = clock.now();
            let (turned, took) = clock.time(|| self.turn(&mut commands, stop, now));
            if turned.commands > 0 {
                self.stats.turned(turned.commands, took);
            }
            if let Some(line) = self.stats.poll_report(now) {
                tracing::info!("{line}");
            }
            match turned.next {
                Next::Turn => {}
                Next::Wait(deadline) => parker.park(clock.until(deadline)),
                Next::End => return,
            }
        }
    }

    /// One batch of commands, with all that comes of it.
    pub fn turn(
        &mut self,
        commands: &mut Receiver<Command, Unparker>,
        stop: &Flag,
        now: Timestamp,
    ) -> Turned {
        // Before the drain: what was sent before the flag was raised is then seen by it. Scenario: writer, mutant
        // `stop-read-after-the-drain`.
        let stopping = stop.is_raised();
        let count = self.apply(commands, now);
        self.publish(now);
        self.send_closes();
        for (worker, replied) in self.workers.iter().zip(&mut self.replied) {
            if std::mem::take(replied) {
                worker.replies.wake();
            }
        }
        Turned {
            commands: count,
            next: self.next(count, stopping, now),
        }
    }

    /// Applies what has been sent, and what the time has brought; says how many commands there were.
    fn apply(&mut self, commands: &mut Receiver<Command, Unparker>, now: Timestamp) -> usize {
        let Self {
            registry,
            persists_out,
            ..
        } = self;
        let drained = commands.drain(WRITER_DRAIN_MAX, |command| {
            if matches!(command, Command::Persisted(..)) {
                *persists_out -= 1;
            }
            registry.apply(command, now);
        });
        if registry
            .poll_timeout()
            .is_some_and(|deadline| deadline <= now)
        {
            registry.handle_timeout(now);
        }
        drained.count
    }

    /// What follows a turn of `count` commands.
    fn next(&mut self, count: usize, stopping: bool, now: Timestamp) -> Next {
        if count > 0 {
            return Next::Turn;
        }
        if stopping && self.persists_out == 0 {
            return Next::End;
        }
        self.publisher.reclaim();
        Next::Wait(self.poll_timeout(now))
    }

    /// Publishes, and then does what the registry asks for.
    fn publish(&mut self, now: Timestamp) {
        let Self {
            registry,
            publisher,
            workers,
            errands,
            replied,
            closes,
            persists_out,
            notice_log,
            stats,
        } = self;
        let store = |snapshot| {
            stats.published();
            publisher.publish(snapshot);
        };
        for effect in registry.publish().store(store) {
            match effect {
                Effect::Reply(to, answer) => {
                    let worker = usize::from(to.connection.worker);
                    workers[worker].replies.push(Reply::Executed { to, answer }).expect(
                        "a worker has no more commands out than its mailbox has room for replies",
                    );
                    replied[worker] = true;
                }
                Effect::Close(connection) => {
                    let closes = &mut closes[usize::from(connection.worker)];
                    // It waits already if its broker was back for a while.
                    if !closes.contains(connection) {
                        closes.push_back(connection, ());
                    }
                }
                Effect::Notify { to, frame } => {
                    let sent = errands.notices.send(Notice { to, frame });
                    if sent.is_err() && notice_log.admit(now).is_some() {
                        tracing::warn!(
                            "notices of a changed minimum broker id dropped: brokers do not take them in time"
                        );
                    }
                }
                Effect::Persist(ticket, content) => {
                    errands
                        .persist_jobs
                        .send(PersistJob { ticket, content })
                        .expect("at most one job a file is out");
                    *persists_out += 1;
                }
            }
        }
    }

    /// Hands closes to their workers; those that do not fit wait, unless a broker registers over the connection meanwhile: an
    /// acknowledged registration must not be undone by what came before it (fault A11).
    fn send_closes(&mut self) {
        for (closes, worker) in self.closes.iter_mut().zip(&self.workers) {
            while let Some(&(connection, ())) = closes.front() {
                let is_to_close = !self.registry.carries_brokers(connection);
                if is_to_close && worker.orders.send(Order::Close(connection)).is_err() {
                    break;
                }
                closes.pop_front();
            }
        }
    }

    fn has_closes(&self) -> bool {
        self.closes.iter().any(|closes| !closes.is_empty())
    }

    fn poll_timeout(&self, now: Timestamp) -> Option<Timestamp> {
        let retry_at = self.has_closes().then(|| now.after(RETRY_INTERVAL));
        [self.registry.poll_timeout(), retry_at]
            .into_iter()
            .flatten()
            .min()
    }
}
