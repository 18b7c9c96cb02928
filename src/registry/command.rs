//! Everything that may change the registry.

use std::sync::Arc;

use bytes::Bytes;

use crate::{
    ids::ConnectionId,
    protocol::{
        body::{QueueSettings, RegisterBrokerBody},
        command::ReplyHead,
        name::TopicName,
    },
};

/// Where the outcome of a command goes. Each command that carries one yields exactly one [`super::Effect::Reply`], one-way
/// requests included, so that its worker can count what is still out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReplyTo {
    /// The connection the request came over.
    pub connection: ConnectionId,
    /// What the answer repeats of the request.
    pub head: ReplyHead,
    /// Whether the sender wants an answer at all.
    pub oneway: bool,
}

/// `REGISTER_BROKER` with its body read (spec 2.3).
#[derive(Debug, Clone, PartialEq)]
pub struct RegisterBroker {
    /// `clusterName`
    pub cluster_name: Arc<str>,
    /// `brokerName`
    pub broker_name: Arc<str>,
    /// `brokerId`: 0 is the master.
    pub broker_id: i64,
    /// `brokerAddr`, an opaque string handed to clients.
    pub broker_addr: Arc<str>,
    /// `haServerAddr`, handed to slaves.
    pub ha_server_addr: Option<Arc<str>>,
    /// `__ZONE_NAME`
    pub zone_name: Option<Arc<str>>,
    /// `heartbeatTimeoutMillis`
    pub heartbeat_timeout_millis: Option<i64>,
    /// `enableActingMaster`; its absence marks an "old version" broker (spec 3.3 step 3).
    pub enable_acting_master: Option<bool>,
    /// The body.
    pub body: RegisterBrokerBody,
}

/// A change to the registry, asked for by a peer or caused by the machine.
#[derive(Debug, Clone, PartialEq)]
pub enum Command {
    /// 103
    Register(ReplyTo, Box<RegisterBroker>),
    /// 104: removes one address of one broker (spec 3.5).
    Unregister(ReplyTo, BrokerIdentity),
    /// 322 or 904 came over a connection that is not known to carry this broker (Q42): bind it. `generation` is that of the
    /// live entry the worker saw, so a heartbeat cannot bind a later broker at the same address. Never answered: the worker
    /// has answered already.
    BindHeartbeat(ReplyTo, BindHeartbeat),
    /// The connection is gone: every broker that lives by it alone leaves (spec 3.6, Q7).
    ConnectionClosed(ConnectionId),
    /// 205
    WipeWritePerm(ReplyTo, Arc<str>),
    /// 327
    AddWritePerm(ReplyTo, Arc<str>),
    /// 216, in one cluster or everywhere.
    DeleteTopic(ReplyTo, TopicName, Option<Arc<str>>),
    /// 217: queue data by broker name, in the order sent.
    RegisterTopic(ReplyTo, TopicName, Vec<(Arc<str>, QueueSettings)>),
    /// 100: namespace, key, value; a null value hides an older one (spec 2.14).
    PutKv(ReplyTo, Arc<str>, Arc<str>, Option<Arc<str>>),
    /// 102: namespace, key.
    DeleteKv(ReplyTo, Arc<str>, Arc<str>),
    /// 318: the body as sent.
    UpdateConfig(ReplyTo, Bytes),
    /// The server is about to stop and tells its clients so: from here on the silence or the disconnection of a broker is our
    /// doing, and must not take its routes from those who still ask (fault D2).
    Drain,
    /// A file has been written, or could not be.
    Persisted(PersistTicket, Result<(), String>),
}

impl Command {
    /// About how many bytes it holds while it waits for the writer, beyond its own size. What a peer sends compressed, or as
    /// many small things, is larger here than on the wire.
    #[must_use]
    pub fn held_len(&self) -> usize {
        match self {
            Self::Register(_, broker) => {
                let body = &broker.body;
                size_of_val(body.topics.as_slice()) + size_of_val(body.mappings.as_slice())
            }
            Self::RegisterTopic(_, _, queues) => size_of_val(queues.as_slice()),
            Self::PutKv(_, namespace, key, value) => {
                namespace.len() + key.len() + value.as_ref().map_or(0, |value| value.len())
            }
            Self::DeleteKv(_, namespace, key) => namespace.len() + key.len(),
            Self::DeleteTopic(_, topic, _) => topic.as_bytes().len(),
            Self::WipeWritePerm(_, name) | Self::AddWritePerm(_, name) => name.len(),
            Self::Unregister(..)
            | Self::BindHeartbeat(..)
            | Self::ConnectionClosed(_)
            | Self::UpdateConfig(..)
            | Self::Drain
            | Self::Persisted(..) => 0,
        }
    }
}

/// Which broker a request speaks of. Not its id: an address moves between ids (spec 3.5, A10).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BrokerIdentity {
    /// `clusterName`
    pub cluster_name: Arc<str>,
    /// `brokerName`
    pub broker_name: Arc<str>,
    /// `brokerAddr`
    pub broker_addr: Arc<str>,
}

/// See [`Command::BindHeartbeat`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BindHeartbeat {
    /// `brokerAddr`
    pub broker_addr: Arc<str>,
    /// Generation of the live entry that the worker saw.
    pub generation: u64,
}

/// Names one persist job: the kind and a number that rises by one with each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PersistTicket {
    /// Which file.
    pub file: PersistFile,
    /// The job's number within that file.
    pub number: u64,
}

/// The files a name server writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum PersistFile {
    /// `kvConfigPath` (spec 4).
    KvConfig,
    /// `configStorePath` (spec 5.4).
    Properties,
}
