//! A worker's way to the writer and the helper: commands in the order in which they were asked for, and jobs; none lost, none
//! waited for.
//!
//! Two queues can form, and both are bounded. Work without a credit waits in `waiting`, for either, one a connection, which
//! meanwhile executes nothing. Commands that the writer's mailbox had no room for wait in `unsent`: those hold credits, or are the last
//! words of a connection that carried brokers, which must never be lost (a broker would stay routed).

use std::collections::VecDeque;

use super::helper::Job;
use crate::{
    connection::{
        Connection, Handled,
        credit::{Credits, Outstanding},
        queue::Queue,
    },
    ids::ConnectionId,
    limits::RETRY_INTERVAL,
    processor,
    registry::Command,
    sync::{Full, Sender, Unparker},
    time::Timestamp,
};

/// See the module's documentation.
#[derive(Debug)]
pub struct Outbox {
    commands: Sender<Command, Unparker>,
    jobs: Sender<Job, Unparker>,
    /// Jobs were pushed and the helper is not woken for them yet.
    jobs_pushed: bool,
    credits: Credits,
    waiting: Queue<Waiting>,
    unsent: VecDeque<Command>,
    /// Commands were pushed and the writer is not woken for them yet.
    pushed: bool,
    retry_at: Option<Timestamp>,
}

/// What a worker has others do.
#[derive(Debug)]
pub(super) enum Work {
    /// For the writer.
    Command(Command),
    /// For the helper.
    Job(Job),
}

/// Work without a credit.
#[derive(Debug)]
struct Waiting {
    work: Work,
    request_len: usize,
}

impl Outbox {
    /// An outbox with nothing out. The mailbox of the helper has room for a job for each of the `credits`, and that of the
    /// worker's replies for a reply.
    #[must_use]
    pub fn new(
        commands: Sender<Command, Unparker>,
        jobs: Sender<Job, Unparker>,
        credits: Credits,
    ) -> Self {
        Self {
            commands,
            jobs,
            jobs_pushed: false,
            credits,
            waiting: Queue::default(),
            unsent: VecDeque::new(),
            pushed: false,
            retry_at: None,
        }
    }

    /// Sends the work of a request of `request_len` bytes, as soon as there is a credit for it.
    pub(super) fn submit(
        &mut self,
        connection: ConnectionId,
        work: Work,
        request_len: usize,
        outstanding: &mut Outstanding,
    ) -> Handled {
        if self.waiting.is_empty() && self.credits.take(outstanding, request_len) {
            return self.start(work);
        }
        let waiting = Waiting { work, request_len };
        self.waiting.push_back(connection, waiting);
        Handled::Held
    }

    /// Hands over what has its credit.
    fn start(&mut self, work: Work) -> Handled {
        match work {
            Work::Command(command) => {
                self.push(command);
                Handled::Submitted
            }
            Work::Job(job) => {
                self.jobs
                    .push(job)
                    .expect("the helper's mailbox has room for a job for each credit");
                self.jobs_pushed = true;
                Handled::GivenAway
            }
        }
    }

    /// Sends what needs no credit: the end of a connection that carried brokers.
    pub(super) fn push(&mut self, command: Command) {
        if self.unsent.is_empty() {
            match self.commands.push(command) {
                Ok(()) => self.pushed = true,
                Err(Full(command)) => self.unsent.push_back(command),
            }
        } else {
            self.unsent.push_back(command);
        }
    }

    /// The credits, to return them as replies come.
    pub(super) fn credits_mut(&mut self) -> &mut Credits {
        &mut self.credits
    }

    /// The connection whose work is the next to be sent once there is a credit.
    pub(super) fn first_waiting(&self) -> Option<ConnectionId> {
        self.waiting.front().map(|(connection, _)| *connection)
    }

    /// Whether that is a command that may bind a broker to its connection.
    pub(super) fn first_waiting_marks(&self) -> bool {
        let front = self.waiting.front();
        front.is_some_and(|(_, waiting)| match &waiting.work {
            Work::Command(command) => processor::marks_connection(command),
            Work::Job(_) => false,
        })
    }

    /// Sends the work of [`Self::first_waiting`] if there is a credit for it; its connection may then go on.
    pub(super) fn send_first_waiting(&mut self, connection: &mut Connection) -> bool {
        let credited = self.waiting.front().is_some_and(|(_, front)| {
            self.credits
                .take(connection.outstanding_mut(), front.request_len)
        });
        if credited && let Some((_, Waiting { work, .. })) = self.waiting.pop_front() {
            let handled = self.start(work);
            connection.started(handled);
        }
        credited
    }

    /// A connection is gone: its waiting request is not executed, and its commands that are out keep one credit each.
    pub(super) fn abandon(&mut self, connection: ConnectionId, outstanding: Outstanding) {
        self.waiting.remove(connection);
        self.credits.abandon(outstanding);
    }

    /// Ends a turn: hands over what it can and wakes the writer and the helper, once.
    pub(super) fn flush(&mut self, now: Timestamp) {
        while let Some(command) = self.unsent.pop_front() {
            if let Err(Full(command)) = self.commands.push(command) {
                self.unsent.push_front(command);
                break;
            }
            self.pushed = true;
        }
        if std::mem::take(&mut self.pushed) {
            self.commands.wake();
        }
        if std::mem::take(&mut self.jobs_pushed) {
            self.jobs.wake();
        }
        self.retry_at = (!self.unsent.is_empty()).then(|| now.after(RETRY_INTERVAL));
    }

    /// When to [`Self::flush`] again.
    pub(super) fn poll_timeout(&self) -> Option<Timestamp> {
        self.retry_at
    }

    /// Whether nothing is out and nothing waits to go.
    pub(super) fn is_settled(&self) -> bool {
        self.credits.all_free() && self.waiting.is_empty() && self.unsent.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::{
        limits::IN_FLIGHT_MAX,
        sync::{Receiver, mailbox, parker},
    };

    const NOW: Timestamp = Timestamp::from_millis(1000);

    fn id(slot: u32) -> ConnectionId {
        ConnectionId {
            worker: 0,
            slot,
            generation: 0,
        }
    }

    fn outbox(capacity: usize) -> (Outbox, Receiver<Command, Unparker>) {
        let (_, unparker) = parker();
        let (sender, receiver) = mailbox(capacity, unparker);
        (
            Outbox::new(sender, mailbox(capacity, parker().1).0, Credits::default()),
            receiver,
        )
    }

    /// The slots of the closed connections that the writer is told of.
    fn received(receiver: &mut Receiver<Command, Unparker>) -> Vec<u32> {
        let mut slots = Vec::new();
        receiver.drain(usize::MAX, |command| {
            let Command::ConnectionClosed(id) = command else {
                panic!("{command:?}");
            };
            slots.push(id.slot);
        });
        slots
    }

    #[test]
    fn commands_that_find_the_mailbox_full_are_kept_in_order_and_tried_again() {
        let (mut outbox, mut receiver) = outbox(2);
        for slot in 0..5 {
            outbox.push(Command::ConnectionClosed(id(slot)));
        }
        outbox.flush(NOW);
        assert_eq!(outbox.poll_timeout(), Some(NOW.after(RETRY_INTERVAL)));
        assert!(!outbox.is_settled());
        assert_eq!(received(&mut receiver), [0, 1]);
        outbox.push(Command::ConnectionClosed(id(5)));
        outbox.flush(NOW);
        assert_eq!(received(&mut receiver), [2, 3]);
        outbox.flush(NOW);
        assert_eq!(received(&mut receiver), [4, 5]);
        assert_eq!(outbox.poll_timeout(), None);
        assert!(outbox.is_settled());
    }

    #[test]
    fn without_credits_commands_wait_first_come_first_served() {
        let (mut outbox, mut receiver) = outbox(2 * IN_FLIGHT_MAX);
        let mut greedy = Outstanding::default();
        for _ in 0..IN_FLIGHT_MAX {
            let handled = outbox.submit(
                id(9),
                Work::Command(Command::ConnectionClosed(id(9))),
                0,
                &mut greedy,
            );
            assert_eq!(handled, Handled::Submitted);
        }
        assert_eq!(received(&mut receiver).len(), IN_FLIGHT_MAX);
        let mut connections = [(); 3].map(|()| Connection::new(Duration::MAX, NOW));
        for (slot, connection) in (0..).zip(&mut connections) {
            let command = Command::ConnectionClosed(id(slot));
            assert_eq!(
                outbox.submit(
                    id(slot),
                    Work::Command(command),
                    0,
                    connection.outstanding_mut()
                ),
                Handled::Held
            );
        }
        assert!(!outbox.send_first_waiting(&mut connections[0]));

        // The second leaves before its turn.
        outbox.abandon(id(1), Outstanding::default());
        outbox.credits_mut().give_back(&mut greedy);
        outbox.credits_mut().give_back(&mut greedy);
        for slot in [0, 2] {
            assert_eq!(outbox.first_waiting(), Some(id(slot)));
            assert!(outbox.send_first_waiting(&mut connections[slot as usize]));
        }
        assert_eq!(outbox.first_waiting(), None);
        assert_eq!(received(&mut receiver), [0, 2]);
    }
}
