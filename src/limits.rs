//! The bounds on what a peer controls and the capacities inside the server, with the relations between them asserted at compile time.
//!
//! A number that only its own code can give stays there: what a format can express (`protocol::frame`), how many places a scanner or
//! a cache in the writer has (`protocol::header_scan`, `registry::topic`), the pace of a sweep (`registry::intern`), versions that wait to
//! be freed (`sync::snapshot`, fewer under loom), how often the writer lets others through (`server::breather`), how the room for a large
//! frame grows (`connection::input`), how a worker shares out what waits (`connection::admission`), how far what a broker declares may have shifted
//! (`registry::declared`), what an operator is shown of a file (`config::file`).

use std::time::Duration;

/// Largest incoming frame in bytes, its 4 length bytes included (spec 1.1). `com.rocketmq.remoting.frameMaxLength`.
pub const FRAME_LEN_MAX: usize = 16 * 1024 * 1024;

/// Largest text a compressed register body may inflate to (spec Q34). A bomb costs this much.
pub const INFLATED_LEN_MAX: usize = 4 * FRAME_LEN_MAX;

/// How deep JSON may nest before it is refused: a parser recurses no further (spec 1.2 asks for "hundreds").
pub const JSON_DEPTH_MAX: usize = 512;

/// Ext fields of one header. Brokers send about twelve; each costs 32 bytes while its frame is looked at, however short it is,
/// and as many as 48 more if it cannot be borrowed because of an escape or is null.
pub const EXT_FIELDS_MAX: usize = 4096;

/// Filter servers of one registration: in memory a short text takes many times its bytes on the wire.
pub const FILTER_SERVERS_MAX: usize = 4096;

/// Topics of one registration, repeated ones included. Each costs 64 bytes while it is read, and a new one 2 µs of the writer's time: a
/// second for so many, for which other registrations wait. A plain frame of real ones holds a fifth. A broker that had more
/// could send them in slices (`enableSplitRegistration`).
pub const TOPICS_OF_REGISTRATION_MAX: usize = 500_000;

/// Static-topic mappings of one registration, repeated ones included, for the same reason. A real one has 100 bytes and more, so
/// a frame holds fewer.
pub const MAPPINGS_MAX: usize = 150_000;

/// `queueDatas` of one `REGISTER_TOPIC_IN_NAMESRV`: one for each broker group that has the topic.
pub const QUEUE_DATAS_MAX: usize = 65_536;

/// Commands that one worker may have out at the writer. Its reply mailbox holds that many, so a reply is never refused.
pub const IN_FLIGHT_MAX: usize = 1024;

/// A registration or the like with a body longer than this is read by the helper: about what is parsed in 30 µs.
pub const HELPED_BODY_LEN: usize = 16 * 1024;

/// The same for a compressed body, which is a tenth to a thirtieth of what there is to parse.
pub const HELPED_COMPRESSED_LEN: usize = 2 * 1024;

/// Lists of all topics or brokers with more entries than this are written by the helper: about what is written in 30 µs.
pub const HELPED_ENTRIES: usize = 500;

/// Jobs that the helper takes before it looks whether it shall stop.
pub const HELPER_DRAIN_MAX: usize = 64;

/// Bytes written to one connection before the others have their turn.
pub const WRITTEN_PER_TURN_MAX: usize = 128 * 1024;

/// A scan for silent brokers that comes later than this was hardly late because of work: the process was stopped.
pub const SCAN_LATE_MAX: Duration = Duration::from_millis(500);

/// How long the workers then get to read what brokers sent meanwhile.
pub const SCAN_PUT_OFF: Duration = Duration::from_secs(2);

/// Scans for silent brokers are no closer to each other, whatever `scanNotActiveBrokerInterval` says, which anybody may set: each
/// looks at every live broker.
pub const SCAN_INTERVAL_MIN: Duration = Duration::from_millis(100);

/// How often one scan is put off: a writer that is late because it has too much to do must not keep silent brokers for ever.
pub const SCAN_PUT_OFF_MAX: u32 = 5;

/// Marks of declared topics for which the writer keeps room from one registration to the next, of 8 bytes each.
pub const MARKS_KEPT_MAX: usize = 32 * 1024;

/// Commands one connection may have out before it is read no further.
pub const IN_FLIGHT_PER_CONNECTION_MAX: usize = 64;

const _: () = assert!(IN_FLIGHT_PER_CONNECTION_MAX <= IN_FLIGHT_MAX);
const _: () = assert!(INFLATED_LEN_MAX >= FRAME_LEN_MAX);

/// Connections that one broker may live by beside the one that registered it: the latest that heartbeat for it.
pub const BEATING_CONNECTIONS_MAX: usize = 8;

/// Bytes of a broker's, cluster's or zone's name and of an address. Each is repeated in every answer that shows the broker. Topics'
/// and filter servers' names are not bounded by it.
pub const NAME_LEN_MAX: usize = 512;

/// Members of one broker group: it is encoded anew when one changes.
pub const GROUP_MEMBERS_MAX: usize = 256;

/// Broker groups of one server: far beyond what there is.
pub const GROUPS_MAX: usize = 100_000;

/// Live addresses of brokers, those included that their group shows no more since their id has another address now. Only their
/// silence, which they set the limit of, or the end of their connection ends these.
pub const LIVE_BROKERS_MAX: usize = 2 * GROUPS_MAX;

/// Topics of one server beyond which a registration that brings new ones is refused.
pub const TOPICS_MAX: usize = 10_000_000;

/// Brokers that a connection remembers to have bound itself to; beyond it a heartbeat binds again, which changes nothing.
pub const KNOWN_BROKERS_MAX: usize = 64;

/// Topics of one registration that are logged one by one.
pub const TOPIC_LOG_LINES_MAX: usize = 16;

/// KV changes that may wait for a write that is out; beyond it the answer is `SYSTEM_BUSY`.
pub const KV_WAITING_MAX: usize = 4096;

/// Bytes of names and values in those changes.
pub const KV_WAITING_LEN_MAX: usize = 2 * FRAME_LEN_MAX;

/// Bytes of the KV file beyond which no value is added. The whole of it is written with each change.
pub const KV_TABLE_LEN_MAX: usize = 2 * FRAME_LEN_MAX;

/// Longest value of the configuration in bytes, from a file or a request.
pub const CONFIG_VALUE_LEN_MAX: usize = 4096;

/// Longest name of a remembered key in bytes.
pub const CONFIG_KEY_LEN_MAX: usize = 256;

/// Most unknown keys remembered from a file. With the bounds above, this bounds the body of 319.
pub const CONFIG_KEYS_REMEMBERED_MAX: usize = 1024;

/// Longest body of 318 in bytes.
pub const CONFIG_UPDATE_LEN_MAX: usize = 64 * 1024;

/// Most bytes of keys and reasons that the answer to 318 tells.
pub const CONFIG_REMARK_LEN_MAX: usize = 2048;

const _: () = assert!(CONFIG_VALUE_LEN_MAX < CONFIG_UPDATE_LEN_MAX);

/// Configuration updates that may wait for a write that is out; beyond it the answer is `SYSTEM_BUSY`.
pub const CONFIG_WAITING_MAX: usize = 64;

const _: () = assert!(KV_WAITING_LEN_MAX >= FRAME_LEN_MAX);

/// Bytes, as sent and as decoded, that one in-flight credit stands for: the commands of a worker hold about `IN_FLIGHT_MAX` times
/// this many, or those of one request that is larger by itself.
pub const IN_FLIGHT_BYTES_PER_CREDIT: usize = 64 * 1024;

/// Unsent bytes at which a connection is read no further, unless configured (spec 5.2).
pub const UNSENT_HIGH_WATER: usize = 64 * 1024;

/// Unsent bytes at which it is read again.
pub const UNSENT_LOW_WATER: usize = 32 * 1024;

const _: () = assert!(UNSENT_LOW_WATER <= UNSENT_HIGH_WATER);

/// Encoded routes that one worker keeps at hand.
pub const ROUTES_AT_HAND_MAX: usize = 256;

/// A longer route is put together each time.
pub const ROUTE_AT_HAND_LEN_MAX: usize = 4 * 1024;

/// A worker's read buffer, shared by its connections. 16 KiB holds a hundred pipelined queries; the rest is for registrations.
pub const READ_SCRATCH_LEN: usize = 64 * 1024;

/// The longest piece of a frame that is put in front of what is read next instead of being added to.
pub const LENT_INPUT_LEN_MAX: usize = READ_SCRATCH_LEN / 4;

/// Bytes read from one connection before the others have their turn.
pub const READ_PER_TURN_MAX: usize = 4 * READ_SCRATCH_LEN;

/// Bytes of answers to one connection before the others have their turn.
pub const ANSWERED_PER_TURN_MAX: usize = 4 * OUTPUT_BATCH_LEN;

/// Answers collected before they are written; about what `READ_SCRATCH_LEN / 4` of route queries are answered with.
pub const OUTPUT_BATCH_LEN: usize = 128 * 1024;

/// Route queries that are looked up together. More would gain nothing: a core has about as many cache misses under way.
pub const LOOK_AHEAD_MAX: usize = 16;

/// A frame longer than this needs admission before it is read to its end (spec Q48).
pub const LARGE_FRAME_LEN: usize = 64 * 1024;

/// Bytes that the unfinished large frames of all connections may add up to (spec Q48); each worker has its share. With more than
/// twelve workers it is a frame of the greatest length and a third for each: `connection::admission::share`.
pub const UNFINISHED_LEN_MAX: usize = 16 * FRAME_LEN_MAX;

/// A peer that sends less than `ADMISSION_PROGRESS_LEN` of an admitted frame in this time loses its place to those who wait.
pub const ADMISSION_STALL_TIMEOUT: Duration = Duration::from_secs(5);

/// Bytes a second at which an admitted frame must come on the whole, while others wait: a megabit a second. Brokers that all register
/// at once over one slow link share it, and none of them is to blame.
pub const ADMISSION_RATE_MIN: usize = 128 * 1024;

/// Frames up to this length, which is that of some thousand topics, do not wait behind larger ones.
pub const USUAL_FRAME_LEN: usize = 1024 * 1024;

/// See [`ADMISSION_STALL_TIMEOUT`].
pub const ADMISSION_PROGRESS_LEN: usize = 64 * 1024;

/// How long a connection that will send no more may take to accept what it is still owed.
pub const LINGER_TIMEOUT: Duration = Duration::from_secs(5);

/// Commands that the writer applies before it publishes: bounds the time to the first answer of a storm.
pub const WRITER_DRAIN_MAX: usize = 256;

/// Answers of so many connections wait to be written together: at one request a read 0.87 of what a server does that does nothing,
/// instead of 0.83. More of them and server and peers sleep in turns. `tools/compare` (cases 1 to 3) would notice the loss.
pub const WRITTEN_TOGETHER_MAX: usize = 4;

/// Bytes of answers that wait so; more would leave the caches before they are written.
pub const WRITTEN_TOGETHER_LEN_MAX: usize = 64 * 1024;

/// A buffer of answers that has grown beyond this is given back when they are written.
pub const ANSWERS_KEPT_LEN: usize = 2 * OUTPUT_BATCH_LEN;

/// Connections whose peer has gone that a worker serves in one turn: closing a socket takes longer than answering.
pub const ENDINGS_PER_TURN_MAX: usize = 32;

/// Readiness events that a worker takes in one turn.
pub const EVENTS_MAX: usize = 1024;

/// Orders (new connections, closes) that a worker takes in one turn.
pub const ORDERS_MAX: usize = 1024;

/// How soon a full mailbox is tried again.
pub const RETRY_INTERVAL: Duration = Duration::from_millis(10);

/// How soon a listener that ran out of file descriptors is tried again.
pub const ACCEPT_RETRY_INTERVAL: Duration = Duration::from_millis(100);

/// Connections accepted before the acceptor hands them out.
pub const ACCEPT_BATCH_MAX: usize = 256;

/// How long an orderly stop waits for peers to take their last answers.
pub const STOP_FLUSH_TIMEOUT: Duration = Duration::from_secs(3);

/// Notices that wait for the notifier; brokers poll anyway (spec 3.7), so more are dropped.
pub const NOTICES_MAX: usize = 1024;

/// Brokers that the notifier is connected to at a time.
pub const NOTIFIER_LINKS_MAX: usize = 4096;

/// Frames that wait for one broker's connection.
pub const NOTICES_PER_BROKER_MAX: usize = 64;

/// Bytes that a broker may send after a notice, which asks for none: many times what an answer would have.
pub const NOTICE_ANSWER_LEN_MAX: usize = 64 * 1024;

/// How long connecting to a broker may take: the original's default (spec 5.2).
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);

/// How long a connection to a broker is kept after its last use: the original's default (spec 5.2).
pub const NOTIFIER_IDLE_TIMEOUT: Duration = Duration::from_secs(120);

/// Longest file of settings (`-c`) in bytes: many times what the settings take, for a device has no end.
pub const CONFIG_FILE_LEN_MAX: usize = 16 * 1024 * 1024;

/// Jobs that wait for the persister: at most one a file is out.
pub const PERSIST_JOBS_MAX: usize = 4;

/// Log lines that wait for the writing thread; beyond it they are dropped and counted.
pub const LOG_LINES_WAITING_MAX: usize = 16 * 1024;

/// Longest message of a log line in bytes; with the bound above, this bounds the memory that waiting lines take.
pub const LOG_MESSAGE_LEN_MAX: usize = 4096;

/// Lines about misbehaving peers that one worker logs in `PEER_LOG_INTERVAL`; the rest is counted.
pub const PEER_LOG_MAX: u32 = 10;

/// See [`PEER_LOG_MAX`].
pub const PEER_LOG_INTERVAL: Duration = Duration::from_secs(1);

const _: () = assert!(LENT_INPUT_LEN_MAX < READ_SCRATCH_LEN);
const _: () = assert!(READ_SCRATCH_LEN <= READ_PER_TURN_MAX);
const _: () = assert!(UNFINISHED_LEN_MAX >= FRAME_LEN_MAX);
