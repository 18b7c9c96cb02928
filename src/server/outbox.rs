//! A worker's way to the writer: commands in the order in which they were asked for, none lost, none waited for.
//!
//! Two queues can form, and both are bounded. Commands without a credit wait in `waiting`, one a connection, which meanwhile
//! executes nothing. Commands that the writer's mailbox had no room for wait in `unsent`: those hold credits, or are the last
//! words of a connection that carried brokers, which must never be lost (a broker would stay routed).

use std::collections::VecDeque;

use super::connections::Connections;
use crate::{
    connection::{
        Handled,
        credit::{Credits, Outstanding},
    },
    ids::ConnectionId,
    limits::RETRY_INTERVAL,
    registry::Command,
    sync::{Full, Sender, Unparker},
    time::Timestamp,
};

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct Outbox {
    commands: Sender<Command, Unparker>,
    credits: Credits,
    waiting: VecDeque<Waiting>,
    unsent: VecDeque<Command>,
    /// Commands were pushed and the writer is not woken for them yet.
    pushed: bool,
    retry_at: Option<Timestamp>,
}

/// A command without a credit.
#[derive(Debug)]
struct Waiting {
    connection: ConnectionId,
    command: Command,
    request_len: usize,
}

impl Outbox {
    pub(super) fn new(commands: Sender<Command, Unparker>) -> Self {
        Self {
            commands,
            credits: Credits::default(),
            waiting: VecDeque::new(),
            unsent: VecDeque::new(),
            pushed: false,
            retry_at: None,
        }
    }

    /// Sends the command of a request of `request_len` bytes, as soon as there is a credit for it.
    pub(super) fn submit(
        &mut self,
        connection: ConnectionId,
        command: Command,
        request_len: usize,
        outstanding: &mut Outstanding,
    ) -> Handled {
        if self.waiting.is_empty() && self.credits.take(outstanding, request_len) {
            self.push(command);
            return Handled::Submitted;
        }
        self.waiting.push_back(Waiting {
            connection,
            command,
            request_len,
        });
        Handled::Held
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

    /// Sends the next command that waits for a credit, if there is one now; names its connection, which may go on.
    pub(super) fn pop_credited(&mut self, connections: &mut Connections) -> Option<ConnectionId> {
        let front = self.waiting.front()?;
        let connection = connections
            .get_mut(front.connection)
            .expect("a connection that closes takes its waiting command along")
            .connection_mut();
        if !self
            .credits
            .take(connection.outstanding_mut(), front.request_len)
        {
            return None;
        }
        connection.submitted();
        let Waiting {
            connection,
            command,
            ..
        } = self.waiting.pop_front()?;
        self.push(command);
        Some(connection)
    }

    /// A connection is gone: its waiting command is not executed, and its commands that are out keep one credit each.
    pub(super) fn abandon(&mut self, connection: ConnectionId, outstanding: Outstanding) {
        self.waiting
            .retain(|waiting| waiting.connection != connection);
        self.credits.abandon(outstanding);
    }

    /// Ends a turn: hands over what it can and wakes the writer, once.
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
        self.retry_at = (!self.unsent.is_empty()).then(|| now.after(RETRY_INTERVAL));
    }

    /// When to [`Self::flush`] again.
    pub(super) fn poll_timeout(&self) -> Option<Timestamp> {
        self.retry_at
    }

    /// Whether the writer owes and is owed nothing.
    pub(super) fn is_settled(&self) -> bool {
        self.credits.all_free() && self.waiting.is_empty() && self.unsent.is_empty()
    }
}
