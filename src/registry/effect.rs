//! Everything the registry asks its caller to do.

use std::sync::Arc;

use bytes::Bytes;

use super::command::{PersistTicket, ReplyTo};
use crate::{ids::ConnectionId, protocol::command::Response};

/// Something the caller must do, after the snapshot of the same batch has been published.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    /// A command is done. `None`: the request was one-way, or needs no answer; the worker only stops counting it.
    Reply(ReplyTo, Option<Response>),
    /// Close this connection: the broker behind it fell silent (spec 3.4).
    Close(ConnectionId),
    /// Send this one-way frame to each of these broker addresses, over connections of our own (spec 2.16).
    Notify {
        /// `host:port` as registered.
        to: Vec<Arc<str>>,
        /// A whole frame.
        frame: Bytes,
    },
    /// Replace a file by these bytes, durably, then report with [`Command::Persisted`](super::Command::Persisted). At most one job a file is out.
    Persist(PersistTicket, Bytes),
}
