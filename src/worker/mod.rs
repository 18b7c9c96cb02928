//! A worker's turn: take in what a poll told and what others sent, serve, hand over. The rules of a connection are in
//! [`crate::connection`]; this moves its bytes and messages.
//!
//! It knows neither the system's sockets nor its clock: it is built upon an [`Edge`], told of readiness, and given the moment. The
//! server's threads run it (`server::worker`, `server::helper`), and so do the simulator and the fuzz target, on sockets of their
//! own: what they find is what happens.

pub mod connections;
pub mod helper;
pub(crate) mod log_limit;
pub mod message;
pub mod outbox;
mod peer;
mod turn;

use std::{
    fmt::Debug,
    io::{self, Read, Write},
};

use crate::{ids::ConnectionId, protocol::command::RemotingCommand, time::Timestamp};

pub use turn::{Inlets, Worker};

/// What a worker is built upon.
pub trait Edge: Debug {
    /// One peer's socket, which never blocks. It is closed by being dropped.
    type Socket: Read + Write + Debug;

    /// Has the worker told of this socket's readiness, under its slot, in both directions and at each edge alone.
    ///
    /// # Errors
    ///
    /// When the socket has failed already: it is closed.
    fn register(&mut self, socket: &mut Self::Socket, slot: u32) -> io::Result<()>;

    /// Tells the peer that nothing more will come.
    ///
    /// # Errors
    ///
    /// When the socket has failed.
    fn shut(socket: &mut Self::Socket) -> io::Result<()>;

    /// A request is about to be executed by this worker itself. Whoever checks it learns here against which snapshot.
    fn executes(&mut self, connection: ConnectionId, request: &RemotingCommand<'_>) {
        _ = (connection, request);
    }
}

/// What a poll says of one socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "a poll says each of them by itself"
)]
pub struct Readiness {
    /// There may be something to read.
    pub readable: bool,
    /// The peer has sent its last byte.
    pub read_closed: bool,
    /// There may be room to write.
    pub writable: bool,
    /// Nothing more can be written.
    pub write_closed: bool,
    /// The socket has failed.
    pub error: bool,
}

/// Something that a poll tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// There is something in the mailboxes.
    Mail,
    /// The socket in this slot is ready.
    Socket(u32, Readiness),
}

/// A poll and what it told.
#[derive(Debug)]
pub struct Polled<E> {
    /// The moment before it. Deadlines are judged by this one: of what had come before it the poll tells, even if the whole process
    /// is stopped between the two or right behind.
    pub asked_at: Timestamp,
    /// The moment after it: every rule of the turn sees the same.
    pub now: Timestamp,
    /// At most [`EVENTS_MAX`](crate::limits::EVENTS_MAX).
    pub events: E,
}

/// What a thread does after a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// There is more to do: another turn.
    Turn,
    /// Nothing, until it is woken or this moment comes.
    Wait(Option<Timestamp>),
    /// End: it was told to stop, and is done.
    End,
}
