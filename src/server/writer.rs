//! The writer's turn: take commands, apply them, publish, and only then tell of it.
//!
//! The one thread that holds a [`Registry`]. It waits for nobody: what another thread has no room for is kept and tried again,
//! or counted and dropped where that does no harm.

use std::collections::VecDeque;

use super::{
    clock::Clock,
    log_limit::LogLimit,
    message::{Notice, Order, PersistJob, Reply},
    stats::TurnStats,
};
use crate::{
    ids::ConnectionId,
    limits::{RETRY_INTERVAL, WRITER_DRAIN_MAX},
    registry::{Command, Effect, Registry, RouteSnapshot},
    sync::{Flag, Full, Parker, Publisher, Receiver, Sender, Unparker, Wake},
    time::Timestamp,
};

/// The writer's view of one worker.
#[derive(Debug)]
pub(super) struct WorkerDoor<W> {
    pub(super) replies: Sender<Reply, W>,
    pub(super) orders: Sender<Order, W>,
}

/// What the writer does not do itself.
#[derive(Debug)]
pub(super) struct Errands<W> {
    pub(super) notices: Sender<Notice, W>,
    pub(super) persist_jobs: Sender<PersistJob, Unparker>,
}

/// The owner of the registry.
#[derive(Debug)]
pub(super) struct Writer<W> {
    registry: Registry,
    publisher: Publisher<RouteSnapshot>,
    workers: Vec<WorkerDoor<W>>,
    errands: Errands<W>,
    /// Workers to wake at the end of the turn, by index.
    replied: Vec<bool>,
    /// Closes that their worker had no room for.
    closes: VecDeque<ConnectionId>,
    /// Files that the persister has yet to report on.
    persists_out: usize,
    notice_log: LogLimit,
    stats: TurnStats,
}

impl<W: Wake> Writer<W> {
    pub(super) fn new(
        registry: Registry,
        publisher: Publisher<RouteSnapshot>,
        workers: Vec<WorkerDoor<W>>,
        errands: Errands<W>,
        now: Timestamp,
    ) -> Self {
        Self {
            registry,
            publisher,
            replied: vec![false; workers.len()],
            workers,
            errands,
            closes: VecDeque::new(),
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
            // Before the drain: what was sent before the flag was raised is then seen by it.
            let stopping = stop.is_raised();
            let now = clock.now();
            let (count, took) = clock.time(|| self.turn(&mut commands, now));
            if count > 0 {
                self.stats.turned(count, took);
            }
            if let Some(line) = self.stats.poll_report(now) {
                tracing::info!("{line}");
            }
            if stopping && count == 0 && self.persists_out == 0 {
                return;
            }
            if count == 0 {
                self.publisher.reclaim();
                parker.park(clock.until(self.poll_timeout(now)));
            }
        }
    }

    /// One batch; says how many commands it had.
    fn turn(&mut self, commands: &mut Receiver<Command, Unparker>, now: Timestamp) -> usize {
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
        self.publish(now);
        self.send_closes();
        for (worker, replied) in self.workers.iter().zip(&mut self.replied) {
            if std::mem::take(replied) {
                worker.replies.wake();
            }
        }
        drained.count
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
                Effect::Close(connection) => closes.push_back(connection),
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
        for _ in 0..self.closes.len() {
            let connection = self.closes.pop_front().expect("it was counted");
            if self.registry.carries_brokers(connection) {
                continue;
            }
            let orders = &self.workers[usize::from(connection.worker)].orders;
            if let Err(Full(_)) = orders.send(Order::Close(connection)) {
                self.closes.push_back(connection);
            }
        }
    }

    fn poll_timeout(&self, now: Timestamp) -> Option<Timestamp> {
        let retry_at = (!self.closes.is_empty()).then(|| now.after(RETRY_INTERVAL));
        [self.registry.poll_timeout(), retry_at]
            .into_iter()
            .flatten()
            .min()
    }
}
