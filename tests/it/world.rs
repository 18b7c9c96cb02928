//! A name server without sockets, threads or a clock: frames in, frames out, time an argument.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use bytes::Bytes;
use serde_json::Value;
use waypost::{
    config::{Config, Environment},
    ids::ConnectionId,
    processor::{Context, KnownBrokers, Outcome, RouteCache, look_ahead, process},
    protocol::command::RemotingCommand,
    registry::{
        Command, Effect, FileContent, KvTable, Registry, RouteSnapshot, command::PersistTicket,
        query::Route,
    },
    time::Timestamp,
};

/// One name server and the moment it lives in.
#[derive(Debug)]
pub(crate) struct World {
    pub(crate) registry: Registry,
    pub(crate) snapshot: Arc<RouteSnapshot>,
    pub(crate) now: Timestamp,
    known: BTreeMap<ConnectionId, KnownBrokers>,
    route_cache: RouteCache,
    /// Connections the server asked to close.
    pub(crate) closed: Vec<ConnectionId>,
    /// One-way frames for brokers.
    pub(crate) notices: Vec<(Vec<Arc<str>>, Bytes)>,
    /// File writes that are out, if they are not to succeed at once.
    pub(crate) persists: Vec<(PersistTicket, FileContent)>,
    pub(crate) hold_persists: bool,
    pub(crate) publications: u64,
    /// The server says goodbye to those who ask.
    pub(crate) go_away: bool,
    replies: Vec<(ConnectionId, Reply)>,
}

/// An answer as its peer reads it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Reply {
    pub(crate) opaque: i64,
    pub(crate) code: i64,
    pub(crate) remark: Option<String>,
    pub(crate) ext: BTreeMap<String, String>,
    pub(crate) header: String,
    pub(crate) body: String,
}

impl Reply {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.body))
    }
}

/// A request under construction.
#[derive(Debug, Clone)]
pub(crate) struct Ask {
    code: i32,
    version: i32,
    flag: i32,
    opaque: i32,
    header: Header,
    ext: Vec<(String, String)>,
    body: Vec<u8>,
}

/// How a header is written (spec 1.2, 1.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Header {
    Json,
    RocketMq,
}

/// The number of every request that is not given another.
const OPAQUE: i32 = 7;

pub(crate) fn ask(code: i32) -> Ask {
    Ask {
        code,
        version: 479,
        flag: 0,
        opaque: OPAQUE,
        header: Header::Json,
        ext: Vec::new(),
        body: Vec::new(),
    }
}

impl Ask {
    pub(crate) fn ext(mut self, name: &str, value: impl ToString) -> Self {
        self.ext.retain(|(other, _)| other != name);
        self.ext.push((name.into(), value.to_string()));
        self
    }

    pub(crate) fn without(mut self, name: &str) -> Self {
        self.ext.retain(|(other, _)| other != name);
        self
    }

    pub(crate) fn body(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.body = body.into();
        self
    }

    pub(crate) fn version(mut self, version: i32) -> Self {
        self.version = version;
        self
    }

    pub(crate) fn response(mut self) -> Self {
        self.flag = 1;
        self
    }

    pub(crate) fn oneway(mut self) -> Self {
        self.flag = 2;
        self
    }

    pub(crate) fn opaque(mut self, opaque: i32) -> Self {
        self.opaque = opaque;
        self
    }

    /// The whole frame, as a peer sends it.
    pub(crate) fn wire(&self) -> Vec<u8> {
        let frame = self.frame();
        let length = u32::try_from(frame.len()).expect("a short frame");
        [&length.to_be_bytes()[..], &frame].concat()
    }

    /// Writes its header so, if it can be: the binary one has no empty values, for they are null.
    pub(crate) fn header(mut self, header: Header) -> Self {
        if self.ext.iter().all(|(_, value)| !value.is_empty()) {
            self.header = header;
        }
        self
    }

    /// The frame after its length word.
    pub(crate) fn frame(&self) -> Vec<u8> {
        let (kind, header) = match self.header {
            Header::Json => (0, self.json_header()),
            Header::RocketMq => (1, self.binary_header()),
        };
        let header_len = u32::try_from(header.len()).expect("a short header");
        let prefix = (kind << 24 | header_len).to_be_bytes();
        [&prefix[..], &header, &self.body].concat()
    }

    fn json_header(&self) -> Vec<u8> {
        let ext: BTreeMap<_, _> = self.ext.iter().cloned().collect();
        let header = serde_json::json!({"code": self.code, "version": self.version, "flag": self.flag, "opaque": self.opaque, "language": "JAVA", "extFields": ext});
        header.to_string().into_bytes()
    }

    fn binary_header(&self) -> Vec<u8> {
        let short = |number: i32| i16::try_from(number).expect("a short number").to_be_bytes();
        let length = |len: usize| i32::try_from(len).expect("a short text");
        let mut ext = Vec::new();
        for (key, value) in &self.ext {
            ext.extend(short(length(key.len())));
            ext.extend(key.as_bytes());
            ext.extend(length(value.len()).to_be_bytes());
            ext.extend(value.as_bytes());
        }
        let mut header = Vec::new();
        header.extend(short(self.code));
        header.push(0);
        header.extend(short(self.version));
        for number in [self.opaque, self.flag, 0, length(ext.len())] {
            header.extend(number.to_be_bytes());
        }
        header.extend(ext);
        header
    }
}

/// A topic table for a registration body: name and permission, 4 queues each.
pub(crate) fn topics(names: &[&str]) -> Vec<(String, i32, i32)> {
    names
        .iter()
        .map(|name| ((*name).to_string(), 6, 4))
        .collect()
}

/// A registration, complete but for what a test changes.
pub(crate) fn reg(
    cluster: &str,
    name: &str,
    id: i64,
    addr: &str,
    table: &[(String, i32, i32)],
    version: (i64, i64, i64),
) -> Ask {
    ask(103)
        .ext("clusterName", cluster)
        .ext("brokerName", name)
        .ext("brokerId", id)
        .ext("brokerAddr", addr)
        .ext("haServerAddr", format!("{addr}-ha"))
        .body(register_body(table, version))
}

pub(crate) fn register_body(
    table: &[(String, i32, i32)],
    (state, timestamp, counter): (i64, i64, i64),
) -> String {
    let table: BTreeMap<_, _> = table
        .iter()
        .map(|(name, perm, queues)| {
            let config = serde_json::json!({"topicName": name, "perm": perm, "readQueueNums": queues, "writeQueueNums": queues, "topicSysFlag": 0, "order": false, "topicFilterType": "SINGLE_TAG"});
            (name.clone(), config)
        })
        .collect();
    serde_json::json!({"filterServerList": [], "topicConfigSerializeWrapper": {
        "dataVersion": {"stateVersion": state, "timestamp": timestamp, "counter": counter}, "topicConfigTable": table}})
    .to_string()
}

pub(crate) fn unreg(cluster: &str, name: &str, id: i64, addr: &str) -> Ask {
    ask(104)
        .ext("clusterName", cluster)
        .ext("brokerName", name)
        .ext("brokerId", id)
        .ext("brokerAddr", addr)
}

pub(crate) fn heartbeat(cluster: &str, name: &str, addr: &str) -> Ask {
    ask(904)
        .ext("clusterName", cluster)
        .ext("brokerName", name)
        .ext("brokerAddr", addr)
}

pub(crate) fn route(topic: &str) -> Ask {
    ask(105).ext("topic", topic)
}

pub(crate) fn conn(number: u32) -> ConnectionId {
    ConnectionId {
        worker: 0,
        slot: number,
        generation: 0,
    }
}

impl World {
    pub(crate) fn new() -> Self {
        Self::with("")
    }

    /// A server started with this properties text.
    pub(crate) fn with(properties: &str) -> Self {
        Self::with_kv(properties, KvTable::default())
    }

    /// The same with this KV table.
    pub(crate) fn with_kv(properties: &str, kv: KvTable) -> Self {
        let mut config = Config::defaults(&Environment {
            user_home: Some("/home/rocketmq".into()),
            rocketmq_home: None,
        });
        let findings = config.load_file("/home/rocketmq/test.properties", properties.as_bytes());
        assert!(findings.is_empty(), "{findings:?}");
        let now = Timestamp::from_millis(1_000);
        let registry = Registry::new(config, kv, 42, now);
        let snapshot = registry.initial_snapshot();
        Self {
            registry,
            snapshot,
            now,
            known: BTreeMap::new(),
            route_cache: RouteCache::default(),
            closed: Vec::new(),
            notices: Vec::new(),
            persists: Vec::new(),
            hold_persists: false,
            publications: 0,
            go_away: false,
            replies: Vec::new(),
        }
    }

    /// The state that readers see.
    pub(crate) fn snapshot(&self) -> &RouteSnapshot {
        &self.snapshot
    }

    /// Sends a request and waits for its answer.
    pub(crate) fn send(&mut self, connection: u32, ask: &Ask) -> Reply {
        let command = self.process(connection, ask);
        if let Some(command) = command {
            self.apply([command]);
        }
        self.take_reply(connection)
            .expect("every request but a one-way one is answered")
    }

    /// Sends a heartbeat; the binding that it asks for is not made.
    pub(crate) fn send_heartbeat(&mut self, connection: u32, ask: &Ask) -> Reply {
        self.process(connection, ask);
        self.take_reply(connection)
            .expect("a worker answers a heartbeat itself")
    }

    /// Sends a request that must not be answered.
    pub(crate) fn send_oneway(&mut self, connection: u32, ask: &Ask) {
        let command = self.process(connection, &ask.clone().oneway());
        self.apply(command);
        assert_eq!(self.take_reply(connection), None);
    }

    /// Processes a request on its worker: an answer, or the command it would send to the writer.
    pub(crate) fn process(&mut self, connection: u32, ask: &Ask) -> Option<Command> {
        let frame = ask.frame();
        let request = RemotingCommand::decode(&frame).expect("tests send well-formed frames");
        let connection = conn(connection);
        let snapshot = Arc::clone(&self.snapshot);
        let route = look_ahead(std::slice::from_ref(&request), &snapshot)[0];
        let mut out = Vec::new();
        let outcome = self.execute(connection, &request, route, &mut out);
        if !out.is_empty() {
            self.replies.push((connection, read_reply(&out)));
        }
        match outcome {
            Outcome::Submit(command) | Outcome::AnsweredAndSubmit(command) => Some(command),
            Outcome::Answered | Outcome::Silent => None,
        }
    }

    /// Processes one request of a connection on its worker, which may have looked its route up ahead.
    pub(crate) fn execute(
        &mut self,
        connection: ConnectionId,
        request: &RemotingCommand<'_>,
        route: Option<Route<'_>>,
        out: &mut Vec<u8>,
    ) -> Outcome {
        let mut context = Context {
            snapshot: &self.snapshot,
            route,
            now: self.now,
            connection,
            peer: "127.0.0.1:1".parse().expect("an address"),
            known_brokers: self.known.entry(connection).or_default(),
            route_cache: &mut self.route_cache,
            go_away: self.go_away,
        };
        process(request, &mut context, out)
    }

    /// Applies commands as one batch, publishes, and carries out the effects.
    pub(crate) fn apply(&mut self, commands: impl IntoIterator<Item = Command>) {
        for command in commands {
            self.apply_one(command);
        }
        self.publish();
    }

    /// Applies a command of a batch that [`Self::end_batch`] ends.
    pub(crate) fn apply_one(&mut self, command: Command) {
        self.registry.apply(command, self.now);
    }

    /// Ends a batch: publishes, and hands out what is to be done.
    pub(crate) fn end_batch(&mut self) -> Vec<Effect> {
        let snapshot = &mut self.snapshot;
        let publications = &mut self.publications;
        let published = self.registry.publish();
        let effects = published.store(|next| {
            assert_eq!(next.version(), snapshot.version() + 1);
            *publications += 1;
            *snapshot = next;
        });
        effects.collect()
    }

    fn publish(&mut self) {
        loop {
            let effects = self.end_batch();
            if effects.is_empty() {
                return;
            }
            for effect in effects {
                match effect {
                    Effect::Reply(to, Some(response)) => {
                        let mut out = Vec::new();
                        waypost::protocol::encode::write_response(&mut out, to.head, &response);
                        self.replies.push((to.connection, read_reply(&out)));
                    }
                    Effect::Reply(_, None) => {}
                    Effect::Close(connection) => self.closed.push(connection),
                    Effect::Notify { to, frame } => self.notices.push((to, frame)),
                    Effect::Persist(ticket, content) => self.persists.push((ticket, content)),
                }
            }
            if !self.hold_persists {
                for (ticket, _) in std::mem::take(&mut self.persists) {
                    self.registry
                        .apply(Command::Persisted(ticket, Ok(())), self.now);
                }
            }
        }
    }

    pub(crate) fn take_reply(&mut self, connection: u32) -> Option<Reply> {
        let place = self
            .replies
            .iter()
            .position(|(to, _)| *to == conn(connection))?;
        let reply = self.replies.remove(place).1;
        assert_eq!(reply.opaque, i64::from(OPAQUE));
        Some(reply)
    }

    pub(crate) fn close(&mut self, connection: u32) {
        self.forget(conn(connection));
        self.apply([Command::ConnectionClosed(conn(connection))]);
    }

    /// Drops what a worker knows of a connection.
    pub(crate) fn forget(&mut self, connection: ConnectionId) {
        self.known.remove(&connection);
    }

    /// Drops the encoded routes that the worker has at hand.
    pub(crate) fn forget_routes(&mut self) {
        self.route_cache = RouteCache::default();
    }

    /// Lets time pass without anything being done, as when the whole process is stopped, and then meets what is overdue.
    pub(crate) fn freeze(&mut self, duration: Duration) {
        self.now = self.now.after(duration);
        self.registry.handle_timeout(self.now);
        self.publish();
    }

    /// Lets time pass, with every deadline on the way met.
    pub(crate) fn pass(&mut self, duration: Duration) {
        let end = self.now.after(duration);
        while let Some(at) = self.registry.poll_timeout().filter(|at| *at <= end) {
            self.now = self.now.max(at);
            self.registry.handle_timeout(self.now);
            self.publish();
        }
        self.now = end;
    }

    pub(crate) fn code(&mut self, ask: &Ask) -> i64 {
        self.send(900, ask).code
    }

    /// A topic's route as JSON; `None` if there is none.
    pub(crate) fn route(&mut self, topic: &str) -> Option<Value> {
        let reply = self.send(900, &route(topic));
        assert!(reply.code == 0 || reply.code == 17, "{reply:?}");
        (reply.code == 0).then(|| reply.json())
    }

    /// `broker name → {id: address}` of a topic's route, ids as text.
    pub(crate) fn addrs(&mut self, topic: &str) -> BTreeMap<String, BTreeMap<String, String>> {
        let route = self.route(topic).unwrap_or_default();
        let brokers = route["brokerDatas"].as_array().cloned().unwrap_or_default();
        let addrs = |broker: &Value| {
            serde_json::from_value(broker["brokerAddrs"].clone()).expect("a map of texts")
        };
        brokers
            .iter()
            .map(|broker| {
                (
                    broker["brokerName"].as_str().expect("a name").into(),
                    addrs(broker),
                )
            })
            .collect()
    }

    /// `broker name → perm` of a topic's route.
    pub(crate) fn perms(&mut self, topic: &str) -> BTreeMap<String, i64> {
        let route = self.route(topic).unwrap_or_default();
        let queues = route["queueDatas"].as_array().cloned().unwrap_or_default();
        queues
            .iter()
            .map(|data| {
                (
                    data["brokerName"].as_str().expect("a name").into(),
                    data["perm"].as_i64().expect("a number"),
                )
            })
            .collect()
    }

    /// Cluster info with its bare integer keys quoted.
    pub(crate) fn cluster(&mut self) -> Value {
        quoted(&self.send(900, &ask(106)).body)
    }

    pub(crate) fn members(&mut self, cluster: &str, name: &str) -> Value {
        let reply = self.send(
            900,
            &ask(901).ext("clusterName", cluster).ext("brokerName", name),
        );
        quoted(&reply.body)["brokerMemberGroup"]["brokerAddrs"].clone()
    }
}

/// Plain fastjson with the bare integer keys quoted, as JSON.
pub(crate) fn quoted(plain: &str) -> Value {
    let mut out = String::new();
    let mut in_text = false;
    let mut chars = plain.chars().peekable();
    let mut last = ' ';
    while let Some(char) = chars.next() {
        if char == '"' && last != '\\' {
            in_text = !in_text;
        }
        let key_starts =
            !in_text && (last == '{' || last == ',') && (char.is_ascii_digit() || char == '-');
        if key_starts {
            out.push('"');
            out.push(char);
            while let Some(digit) = chars.next_if(char::is_ascii_digit) {
                out.push(digit);
            }
            out.push('"');
        } else {
            out.push(char);
        }
        last = char;
    }
    serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error}: {out}"))
}

/// Reads one whole answer.
pub(crate) fn read_reply(frame: &[u8]) -> Reply {
    let word =
        |at: usize| u32::from_be_bytes(frame[at..at + 4].try_into().expect("four bytes")) as usize;
    assert_eq!(word(0), frame.len() - 4, "one whole frame");
    let header_len = word(4) & 0x00FF_FFFF;
    let header = &frame[8..8 + header_len];
    let body = String::from_utf8(frame[8 + header_len..].to_vec()).expect("a text body");
    match frame[4] {
        0 => read_json(std::str::from_utf8(header).expect("a JSON header"), body),
        1 => read_binary(header, body),
        other => panic!("no serialize type: {other}"),
    }
}

fn read_json(header: &str, body: String) -> Reply {
    let json: Value = serde_json::from_str(header).expect("a JSON header");
    assert_eq!((&json["flag"], &json["version"]), (&1.into(), &479.into()));
    let ext = json["extFields"].as_object().cloned().unwrap_or_default();
    Reply {
        opaque: json["opaque"].as_i64().expect("a number"),
        code: json["code"].as_i64().expect("a code"),
        remark: json["remark"].as_str().map(str::to_string),
        ext: ext
            .into_iter()
            .map(|(name, value)| (name, value.as_str().expect("a text").to_string()))
            .collect(),
        header: header.to_string(),
        body,
    }
}

/// Reads a binary header, of which there is no text.
fn read_binary(mut header: &[u8], body: String) -> Reply {
    let mut take = |len: usize| {
        let (bytes, rest) = header.split_at(len);
        header = rest;
        bytes
    };
    let number = |bytes: &[u8]| {
        bytes
            .iter()
            .fold(0, |sum, byte| sum << 8 | i64::from(*byte))
    };
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("a text");
    let length = |bytes: &[u8]| usize::try_from(number(bytes)).expect("a short text");
    let code = number(take(2));
    take(1);
    assert_eq!(number(take(2)), 479);
    let opaque = number(take(4));
    assert_eq!(number(take(4)), 1);
    let remark_len = length(take(4));
    let remark = text(take(remark_len));
    let mut left = length(take(4));
    let mut ext = BTreeMap::new();
    while left > 0 {
        let key_len = length(take(2));
        let key = text(take(key_len));
        let value_len = length(take(4));
        ext.insert(key, text(take(value_len)));
        left -= 6 + key_len + value_len;
    }
    Reply {
        opaque,
        code,
        remark: (!remark.is_empty()).then_some(remark),
        ext,
        header: String::new(),
        body,
    }
}
