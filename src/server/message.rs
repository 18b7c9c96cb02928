//! What the threads put into each other's mailboxes, and how those that poll are woken.

use std::sync::Arc;

use bytes::Bytes;
use mio::net::TcpStream;

use crate::{
    registry::{FileContent, command::PersistTicket},
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

/// To a worker: anything but a reply.
pub type Order = crate::worker::message::Order<TcpStream>;

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
    pub content: FileContent,
}
