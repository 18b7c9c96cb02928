//! The thread that executes what workers give away.

use mio::net::TcpStream;

use super::{clock::Clock, message::PollWaker, writer::WorkerDoor};
use crate::{
    limits::HELPER_DRAIN_MAX,
    sync::{Flag, Parker, Receiver, Sender, Unparker},
    worker::{
        helper::{Helper, Job},
        message::Reply,
    },
};

/// The thread's state.
#[derive(Debug)]
pub(super) struct HelperThread {
    helper: Helper,
    replies: Vec<Sender<Reply, PollWaker>>,
    clock: Clock,
}

impl HelperThread {
    pub(super) fn new(
        helper: Helper,
        workers: &[WorkerDoor<TcpStream, PollWaker>],
        clock: Clock,
    ) -> Self {
        Self {
            helper,
            replies: workers
                .iter()
                .map(|worker| worker.replies.clone())
                .collect(),
            clock,
        }
    }

    /// Runs until `stop` is raised, which is when the workers have ended.
    pub(super) fn run(mut self, mut jobs: Receiver<Job, Unparker>, parker: &Parker, stop: &Flag) {
        loop {
            let stopping = stop.is_raised();
            let drained = jobs.drain(HELPER_DRAIN_MAX, |job| {
                // The workers have ended before: nobody waits for what comes of it.
                if !stopping {
                    self.perform(&job);
                }
            });
            if drained.count == 0 {
                if stopping {
                    return;
                }
                self.helper.rest();
                parker.park(None);
            }
        }
    }

    fn perform(&mut self, job: &Job) {
        let done = self.helper.execute(job, self.clock.now());
        let replies = &self.replies[usize::from(job.connection.worker)];
        let reply = Reply::Helped {
            connection: job.connection,
            done,
        };
        let sent = replies.send(reply);
        sent.expect("a worker has no more requests out than its mailbox has room for replies");
    }
}
