//! Every capacity and bound, with the relations between them asserted at compile time.

/// Largest incoming frame in bytes, its 4 length bytes included (spec 1.1). `com.rocketmq.remoting.frameMaxLength`.
pub const FRAME_LEN_MAX: usize = 16 * 1024 * 1024;

/// Largest text a compressed register body may inflate to (spec Q34): a bomb costs this much and no more.
pub const INFLATED_LEN_MAX: usize = 4 * FRAME_LEN_MAX;

/// How deep JSON may nest before it is refused: a parser recurses no further (spec 1.2 asks for "hundreds").
pub const JSON_DEPTH_MAX: usize = 512;

/// Ext fields of one header. Brokers send about twelve; each costs 48 bytes while its frame is looked at, however short it is.
pub const EXT_FIELDS_MAX: usize = 4096;

/// Filter servers of one registration: in memory a short text takes many times its bytes on the wire.
pub const FILTER_SERVERS_MAX: usize = 4096;

/// Static-topic mappings of one registration, repeated ones included, for the same reason. A real one has 100 bytes and more, so
/// a frame holds fewer.
pub const MAPPINGS_MAX: usize = 150_000;

/// `queueDatas` of one `REGISTER_TOPIC_IN_NAMESRV`: one for each broker group that has the topic.
pub const QUEUE_DATAS_MAX: usize = 65_536;

/// Commands that one worker may have out at the writer. Its reply mailbox holds that many, so a reply is never refused.
pub const IN_FLIGHT_MAX: usize = 1024;

/// Commands one connection may have out before it is read no further.
pub const IN_FLIGHT_PER_CONNECTION_MAX: usize = 64;

const _: () = assert!(IN_FLIGHT_PER_CONNECTION_MAX <= IN_FLIGHT_MAX);
const _: () = assert!(INFLATED_LEN_MAX >= FRAME_LEN_MAX);
