//! What the threads put into each other's mailboxes, and how those that poll are woken.

use std::{net::SocketAddr, sync::Arc};

use bytes::Bytes;
use mio::net::TcpStream;

use super::helper::Done;
use crate::{
    ids::ConnectionId,
    protocol::command::Response,
    registry::command::{PersistTicket, ReplyTo},
    sync::Wake,
};

/// Wakes a thread that waits in a `mio::Poll`.
#[derive(Debug, Clone)]
pub(super) struct PollWaker(Arc<mio::Waker>);

impl PollWaker {
    pub(super) fn new(registry: &mio::Registry, token: mio::Token) -> std::io::Result<Self> {
        mio::Waker::new(registry, token).map(|waker| Self(Arc::new(waker)))
    }
}

impl Wake for PollWaker {
    fn wake(&self) {
        self.0
            .wake()
            .expect("an eventfd that is open and below its limit takes a wake");
    }
}

/// To a worker: the outcome of what it has out. Its mailbox has room for one each.
#[derive(Debug)]
pub enum Reply {
    /// The writer has executed a command.
    Executed {
        /// Whose.
        to: ReplyTo,
        /// `None`: the command only stops counting as out.
        answer: Option<Response>,
    },
    /// The helper is done with a request.
    Helped {
        /// Whose.
        connection: ConnectionId,
        /// What came of it.
        done: Done,
    },
}

/// To a worker: anything else.
#[derive(Debug)]
pub enum Order {
    /// Serve this new connection.
    Serve(TcpStream, SocketAddr),
    /// Close this one: its broker fell silent.
    Close(ConnectionId),
    /// Tell clients to go away from here on (spec 1.8).
    GoAway,
    /// Read no more, answer what is out, close everything and end.
    Stop,
}

/// To the notifier: a frame for these broker addresses.
#[derive(Debug)]
pub struct Notice {
    /// Their `host:port`.
    pub to: Vec<Arc<str>>,
    /// A whole frame.
    pub frame: Bytes,
}

/// To the persister: the next content of a file.
#[derive(Debug)]
pub struct PersistJob {
    /// Names the job in the report.
    pub ticket: PersistTicket,
    /// The whole file.
    pub content: Bytes,
}
