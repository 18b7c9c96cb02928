//! The one table of keys. Reading, 319, `-p`, validation and the tables of `docs/configuration.md` all follow from it.

use super::value::Value;

/// What a key's value is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// `true` in any case, or else false (`Boolean.parseBoolean`).
    Boolean,
    /// A boolean that must stay false; what to do instead.
    Off(&'static str),
    /// An `int` between these.
    Int(i32, i32),
    /// A `long` between these.
    Long(i64, i64),
    /// Any text.
    Text,
    /// A file or directory.
    Path,
    /// A host name, IPv4 or IPv6 address.
    Address,
    /// One of these words, in any case.
    Word(&'static [&'static str]),
    /// `GMT`, `UTC` or an offset such as `GMT+8` or `GMT-03:30`.
    Zone,
}

/// What a key holds before a file or a request changes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Standard {
    /// This text, read like a value of the file.
    Is(&'static str),
    /// A file below the user's home.
    InUserHome(&'static str),
    /// The environment's `ROCKETMQ_HOME`.
    RocketmqHome,
    /// Java's null: printed as nothing, left out of 319.
    Unset,
}

/// What changing a key does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reach {
    /// Takes effect at once.
    Live,
    /// Takes effect at the next start.
    Restart,
    /// Nothing: kept for Java's sake. Why, or what replaces it.
    NoMeaning(&'static str),
    /// 318 is refused; only the file, the environment or `-c` set it.
    Blocked,
}

/// Where a key comes from, which decides where it is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Group {
    /// `NamesrvConfig`: in 319.
    NameServer,
    /// `NettyServerConfig`: in 319.
    Server,
    /// `NettyClientConfig`: in 319 only if the file sets it; 318 does not know it.
    Client,
    /// A JVM property of the original: as above.
    System,
    /// Ours alone: as above.
    Own,
}

impl Group {
    /// Whether 319 always shows the group's keys and 318 may set them.
    pub(super) fn is_on_the_wire(self) -> bool {
        matches!(self, Self::NameServer | Self::Server)
    }
}

/// A row of the table.
#[derive(Debug)]
pub(super) struct Key {
    pub(super) id: KeyId,
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    pub(super) standard: Standard,
    pub(super) reach: Reach,
    pub(super) group: Group,
    /// One line for `docs/configuration.md`.
    #[cfg_attr(not(test), expect(dead_code, reason = "only the document shows it"))]
    pub(super) meaning: &'static str,
}

impl Key {
    /// The key of exactly this name; Java's names are case-sensitive.
    pub(super) fn named(name: &str) -> Option<&'static Self> {
        KEYS.iter().find(|key| key.name == name)
    }

    /// Whether a value is what the key has by itself, whatever the environment is.
    pub(super) fn is_standard(&self, value: &Value) -> bool {
        matches!(self.standard, Is(text) if Value::read(self.kind, text).is_ok_and(|standard| standard == *value))
    }
}

macro_rules! keys {
    ($($group:ident { $($id:ident $name:literal $kind:expr, $standard:expr, $reach:expr, $meaning:literal;)* })*) => {
        /// Names a row of [`KEYS`].
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub(super) enum KeyId { $($($id,)*)* }

        /// Every key, each at the position of its [`KeyId`].
        pub(super) static KEYS: &[Key] = &[$($(Key {
            id: KeyId::$id, name: $name, kind: $kind, standard: $standard, reach: $reach, group: Group::$group, meaning: $meaning,
        },)*)*];
    };
}

use Kind::{Address, Boolean, Int, Long, Off, Path, Text, Word, Zone};
use Reach::{Blocked, Live, NoMeaning, Restart};
use Standard::{InUserHome, Is, RocketmqHome, Unset};

const ANY_INT: Kind = Int(i32::MIN, i32::MAX);
const COUNT: Kind = Int(1, i32::MAX);
const SIZE: Kind = Int(0, i32::MAX);
/// Longer waits would only be a way to switch the service off from afar.
const WAIT_SECONDS: Kind = Int(0, 3600);
const HOUR_MILLIS: i64 = 3_600_000;

const THREADS: Reach =
    NoMeaning("one kind of worker thread serves every request: `waypost.workerThreads`");
const QUEUES: Reach = NoMeaning(
    "requests wait in no queue of threads; a connection that has too many unanswered is not read",
);
const NETTY: Reach = NoMeaning("a setting of the Netty library");
const SENDING: Reach = NoMeaning("no request is sent over the connections of peers");
const CLIENT: Reach = NoMeaning("a setting of the Java client");
const SWITCH_OFF: &str = "remove it: the original is of no use with it either; ask the other environment's name servers directly";
const CONTROLLER: &str = "remove it and run a stock RocketMQ controller beside this server; brokers find it by `controllerAddr`";

keys! {
    NameServer {
        RocketmqHome "rocketmqHome" Text, RocketmqHome, Blocked, "Shown only; nothing is read from there and it need not exist";
        KvConfigPath "kvConfigPath" Path, InUserHome("kvConfig.json"), Blocked, "File of the KV table, read at start and replaced at every change of the table";
        ConfigStorePath "configStorePath" Path, InUserHome("namesrv.properties"), Blocked, "File that 318 replaces: always the `-c` file if one is given";
        ProductEnvName "productEnvName" Text, Is("center"), NoMeaning("belongs to `clusterTest`"), "Name of the other environment";
        ClusterTest "clusterTest" Off(SWITCH_OFF), Is("false"), Restart, "Route queries are passed on to another environment: refused";
        OrderMessageEnable "orderMessageEnable" Boolean, Is("false"), Live, "Routes carry the order configuration of their topic";
        ReturnOrderTopicConfigToBroker "returnOrderTopicConfigToBroker" Boolean, Is("true"), Live, "The answer to a registration carries the order configuration of all topics";
        ClientRequestThreadPoolNums "clientRequestThreadPoolNums" COUNT, Is("8"), THREADS, "Threads for route queries";
        DefaultThreadPoolNums "defaultThreadPoolNums" COUNT, Is("16"), THREADS, "Threads for all other requests";
        ClientRequestThreadPoolQueueCapacity "clientRequestThreadPoolQueueCapacity" COUNT, Is("50000"), QUEUES, "Waiting route queries";
        DefaultThreadPoolQueueCapacity "defaultThreadPoolQueueCapacity" COUNT, Is("10000"), QUEUES, "Other waiting requests";
        ScanNotActiveBrokerInterval "scanNotActiveBrokerInterval" Long(1, HOUR_MILLIS), Is("5000"), Live, "Milliseconds between two looks for brokers that fell silent; below 100 means 100; after a restart only in Java";
        UnRegisterBrokerQueueCapacity "unRegisterBrokerQueueCapacity" COUNT, Is("3000"), NoMeaning("an unregistration is done before it is answered"), "Unregistrations that may wait";
        SupportActingMaster "supportActingMaster" Boolean, Is("false"), Live, "A route without a master shows the slave of the lowest id as acting master";
        EnableAllTopicList "enableAllTopicList" Boolean, Is("true"), Live, "Code 206 is answered";
        EnableTopicList "enableTopicList" Boolean, Is("true"), Live, "Codes 224, 311, 312 and 313 are answered";
        NotifyMinBrokerIdChanged "notifyMinBrokerIdChanged" Boolean, Is("false"), Live, "Brokers are told by code 905 that the lowest id of their group changed";
        EnableControllerInNamesrv "enableControllerInNamesrv" Off(CONTROLLER), Is("false"), Restart, "A controller runs in the same process: refused";
        NeedWaitForService "needWaitForService" Boolean, Is("false"), Live, "Route queries are refused for a while after the start";
        WaitSecondsForService "waitSecondsForService" WAIT_SECONDS, Is("45"), Live, "Length of that while";
        DeleteTopicWithBrokerRegistration "deleteTopicWithBrokerRegistration" Boolean, Is("false"), Live, "Topics that a registration leaves out are deleted for its broker";
        ConfigBlackList "configBlackList" Text, Is("configBlackList;configStorePath;kvConfigPath"), Blocked, "Further keys that 318 refuses, separated by `;`";
    }
    Server {
        ListenPort "listenPort" Int(0, 65535), Is("9876"), Restart, "TCP port; 0 = any free one";
        BindAddress "bindAddress" Address, Is("0.0.0.0"), Restart, "Address to listen at; `0.0.0.0` = all addresses, those of IPv6 too";
        ServerWorkerThreads "serverWorkerThreads" COUNT, Is("8"), THREADS, "Codec threads";
        ServerCallbackExecutorThreads "serverCallbackExecutorThreads" ANY_INT, Is("0"), THREADS, "Callback threads";
        ServerSelectorThreads "serverSelectorThreads" SIZE, Is("3"), THREADS, "I/O threads";
        ServerOnewaySemaphoreValue "serverOnewaySemaphoreValue" ANY_INT, Is("256"), SENDING, "Outgoing one-way requests";
        ServerAsyncSemaphoreValue "serverAsyncSemaphoreValue" ANY_INT, Is("64"), SENDING, "Outgoing asynchronous requests";
        ServerChannelMaxIdleTimeSeconds "serverChannelMaxIdleTimeSeconds" SIZE, Is("120"), Live, "A connection silent for that long is closed; 0 = never";
        ServerSocketSndBufSize "serverSocketSndBufSize" SIZE, Is("0"), Restart, "Send buffer of a socket in bytes; 0 = the system's";
        ServerSocketRcvBufSize "serverSocketRcvBufSize" SIZE, Is("0"), Restart, "Receive buffer of a socket in bytes; 0 = the system's";
        WriteBufferHighWaterMark "writeBufferHighWaterMark" SIZE, Is("0"), Restart, "Unsent bytes at which a connection is read no further; both marks must be above 0 to count";
        WriteBufferLowWaterMark "writeBufferLowWaterMark" SIZE, Is("0"), Restart, "Unsent bytes at which it is read again";
        ServerSocketBacklog "serverSocketBacklog" SIZE, Is("1024"), Restart, "Connections that wait to be accepted; ignored by Java 5.x";
        ServerNettyWorkerGroupEnable "serverNettyWorkerGroupEnable" Boolean, Is("true"), NETTY, "Codec on threads of its own";
        ServerPooledByteBufAllocatorEnable "serverPooledByteBufAllocatorEnable" Boolean, Is("true"), NETTY, "Pooled buffers";
        EnableShutdownGracefully "enableShutdownGracefully" Boolean, Is("false"), Live, "Before it stops, the server answers GO_AWAY for a while";
        ShutdownWaitTimeSeconds "shutdownWaitTimeSeconds" WAIT_SECONDS, Is("30"), Live, "Length of that while";
        UseEpollNativeSelector "useEpollNativeSelector" Boolean, Is("false"), NETTY, "Native epoll";
    }
    Client {
        ClientWorkerThreads "clientWorkerThreads" ANY_INT, Is("4"), CLIENT, "Codec threads";
        ClientCallbackExecutorThreads "clientCallbackExecutorThreads" ANY_INT, Unset, CLIENT, "Callback threads; in Java one a processor";
        ClientOnewaySemaphoreValue "clientOnewaySemaphoreValue" ANY_INT, Is("65535"), CLIENT, "Outgoing one-way requests";
        ClientAsyncSemaphoreValue "clientAsyncSemaphoreValue" ANY_INT, Is("65535"), CLIENT, "Outgoing asynchronous requests";
        ConnectTimeoutMillis "connectTimeoutMillis" ANY_INT, Is("3000"), CLIENT, "Time to connect";
        ChannelNotActiveInterval "channelNotActiveInterval" Long(i64::MIN, i64::MAX), Is("60000"), CLIENT, "Age of an unused connection";
        IsScanAvailableNameSrv "isScanAvailableNameSrv" Boolean, Is("true"), CLIENT, "Look for reachable name servers";
        ScanAvailableNameSrv "scanAvailableNameSrv" Boolean, Is("true"), CLIENT, "The same, as a file spells it";
        ClientChannelMaxIdleTimeSeconds "clientChannelMaxIdleTimeSeconds" ANY_INT, Is("120"), CLIENT, "Idle close";
        ClientSocketSndBufSize "clientSocketSndBufSize" ANY_INT, Is("0"), CLIENT, "Send buffer";
        ClientSocketRcvBufSize "clientSocketRcvBufSize" ANY_INT, Is("0"), CLIENT, "Receive buffer";
        ClientPooledByteBufAllocatorEnable "clientPooledByteBufAllocatorEnable" Boolean, Is("false"), CLIENT, "Pooled buffers";
        ClientCloseSocketIfTimeout "clientCloseSocketIfTimeout" Boolean, Is("true"), CLIENT, "Close after a timeout";
        UseTls "useTLS" Boolean, Is("false"), CLIENT, "Outgoing connections use TLS";
        SocksProxyConfig "socksProxyConfig" Text, Is("{}"), CLIENT, "SOCKS proxies";
        DisableCallbackExecutor "disableCallbackExecutor" Boolean, Is("false"), CLIENT, "No callback threads";
        DisableNettyWorkerGroup "disableNettyWorkerGroup" Boolean, Is("false"), CLIENT, "No codec threads";
        MaxReconnectIntervalTimeSeconds "maxReconnectIntervalTimeSeconds" Long(i64::MIN, i64::MAX), Is("60"), CLIENT, "Pause between connection attempts";
        EnableReconnectForGoAway "enableReconnectForGoAway" Boolean, Is("true"), CLIENT, "Connect again after GO_AWAY";
        EnableTransparentRetry "enableTransparentRetry" Boolean, Is("true"), CLIENT, "Repeat a request after GO_AWAY";
    }
    System {
        FrameMaxLength "com.rocketmq.remoting.frameMaxLength" Int(65_536, 0x0FFF_FFFF), Is("16777216"), Restart, "Largest incoming frame in bytes, its 4 length bytes included";
        SocketSndbufSize "com.rocketmq.remoting.socket.sndbuf.size" ANY_INT, Unset, NoMeaning("`serverSocketSndBufSize`"), "Default of another key";
        SocketRcvbufSize "com.rocketmq.remoting.socket.rcvbuf.size" ANY_INT, Unset, NoMeaning("`serverSocketRcvBufSize`"), "Default of another key";
        SocketBacklog "com.rocketmq.remoting.socket.backlog" ANY_INT, Unset, NoMeaning("`serverSocketBacklog`"), "Default of another key";
        HighWaterMark "com.rocketmq.remoting.write.buffer.high.water.mark" ANY_INT, Unset, NoMeaning("`writeBufferHighWaterMark`"), "Default of another key";
        LowWaterMark "com.rocketmq.remoting.write.buffer.low.water.mark" ANY_INT, Unset, NoMeaning("`writeBufferLowWaterMark`"), "Default of another key";
        SerializeType "rocketmq.serialize.type" Text, Is("JSON"), NoMeaning("an answer is encoded as its request was; environment `ROCKETMQ_SERIALIZE_TYPE` likewise"), "Encoding of headers";
        RocketmqHomeDir "rocketmq.home.dir" Text, Unset, NoMeaning("`rocketmqHome`"), "Default of another key";
    }
    Own {
        WorkerThreads "waypost.workerThreads" Int(0, 1024), Is("0"), Restart, "Threads that serve connections; 0 = one fewer than the processors, at least one";
        ConfigUpdateEnable "waypost.configUpdateEnable" Boolean, Is("true"), Blocked, "Code 318 is served; false refuses every change from the network";
        BrokerNameConflict "waypost.brokerNameConflict" Word(&["replace", "reject"]), Is("replace"), Restart, "A broker name that is in use in another cluster: the last registration takes it over, or is refused";
        LogLevel "waypost.logLevel" Word(&["off", "error", "warn", "info", "debug", "trace"]), Is("info"), Restart, "Least important lines to log";
        LogOutput "waypost.logOutput" Word(&["stdout", "stderr"]), Is("stdout"), Restart, "Where log lines go";
        LogTimeZone "waypost.logTimeZone" Zone, Is("GMT+8"), Restart, "Zone of the log's time stamps; as in the original's pattern by default";
    }
}

/// Beginnings of names that belong to something known, and what is said about them. 318 never sets such a key.
pub(super) static FAMILIES: &[(&str, &str)] = &[
    (
        "tls.",
        "TLS is not supported yet, so this has no effect: connections are plain text",
    ),
    ("waypost.", "no such key; see docs/configuration.md"),
    (
        "controller",
        "this server has no controller, so this has no effect",
    ),
    (
        "jRaft",
        "this server has no controller, so this has no effect",
    ),
    ("com.rocketmq.", "a JVM property that has no meaning here"),
];
