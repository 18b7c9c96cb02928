//! Everything the registry asks its caller to do.

use std::{borrow::Cow, sync::Arc};

use bytes::Bytes;

use super::{
    KvTable,
    command::{PersistTicket, ReplyTo},
};
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
    /// Replace a file by this content, durably, then report with [`Command::Persisted`](super::Command::Persisted). At most one job a file is out.
    Persist(PersistTicket, FileContent),
}

/// What a file is to hold.
#[derive(Debug, Clone, PartialEq)]
pub enum FileContent {
    /// This text.
    Text(String),
    /// This table. Who writes the file encodes it, for it may be long and the writer has others to serve.
    Kv(KvTable),
}

impl FileContent {
    /// The bytes of the file.
    #[must_use]
    pub fn to_bytes(&self) -> Cow<'_, [u8]> {
        match self {
            Self::Text(text) => text.as_bytes().into(),
            Self::Kv(table) => table.to_file().into(),
        }
    }
}
