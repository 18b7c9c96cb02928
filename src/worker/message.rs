//! What is put into a worker's mailboxes.

use std::net::SocketAddr;

use super::helper::Done;
use crate::{ids::ConnectionId, protocol::command::Response, registry::command::ReplyTo};

/// The outcome of what it has out. The mailbox has room for one each.
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

/// Anything else.
#[derive(Debug)]
pub enum Order<S> {
    /// Serve this new connection.
    Serve(S, SocketAddr),
    /// Close this one: its broker fell silent.
    Close(ConnectionId),
    /// Tell clients to go away from here on (spec 1.8).
    GoAway,
    /// Read no more, answer what is out, close everything and end.
    Stop,
}
