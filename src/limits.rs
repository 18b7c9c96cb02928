//! Every capacity and bound, with the relations between them asserted at compile time.

/// Largest incoming frame in bytes, its 4 length bytes included (spec 1.1). `com.rocketmq.remoting.frameMaxLength`.
pub const FRAME_LEN_MAX: usize = 16 * 1024 * 1024;

/// Largest text a compressed register body may inflate to (spec Q34): a bomb costs this much and no more.
pub const INFLATED_LEN_MAX: usize = 4 * FRAME_LEN_MAX;

/// How deep JSON may nest before it is refused: a parser recurses no further (spec 1.2 asks for "hundreds").
pub const JSON_DEPTH_MAX: usize = 512;

/// Ext fields of one header. Brokers send about twelve; each costs 48 bytes while its frame is looked at, however short it is.
pub const EXT_FIELDS_MAX: usize = 4096;

/// Commands that one worker may have out at the writer. Its reply mailbox holds that many, so a reply is never refused.
pub const IN_FLIGHT_MAX: usize = 1024;

/// Commands one connection may have out before it is read no further.
pub const IN_FLIGHT_PER_CONNECTION_MAX: usize = 64;

const _: () = assert!(IN_FLIGHT_PER_CONNECTION_MAX <= IN_FLIGHT_MAX);
const _: () = assert!(INFLATED_LEN_MAX >= FRAME_LEN_MAX);

/// Connections that one broker may live by: the one that registered it and the latest that heartbeat for it.
pub const CONNECTIONS_PER_BROKER_MAX: usize = 8;

/// Brokers that a connection remembers to have bound itself to; beyond it a heartbeat binds again, which changes nothing.
pub const KNOWN_BROKERS_MAX: usize = 64;

/// Topics of one registration that are logged one by one.
pub const TOPIC_LOG_LINES_MAX: usize = 16;

/// KV changes that may wait for a write that is out; beyond it the answer is `SYSTEM_BUSY`.
pub const KV_WAITING_MAX: usize = 4096;

/// Bytes of names and values in those changes.
pub const KV_WAITING_LEN_MAX: usize = 2 * FRAME_LEN_MAX;

/// Bytes of the KV table. The whole of it is written with each change.
pub const KV_TABLE_LEN_MAX: usize = 2 * FRAME_LEN_MAX;

/// Configuration updates that may wait for a write that is out; beyond it the answer is `SYSTEM_BUSY`.
pub const CONFIG_WAITING_MAX: usize = 64;

const _: () = assert!(KV_WAITING_LEN_MAX >= FRAME_LEN_MAX);
