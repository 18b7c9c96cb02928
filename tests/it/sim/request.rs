//! What brokers, clients and operators of the simulator send, as plain data, and its frames.

use std::io::Write;

use flate2::{Compression, write::ZlibEncoder};
use serde_json::{Map, Value, json};

use crate::world::{self, Ask, ask};

/// A name or address of the little world that everything here happens in.
pub(super) type Name = &'static str;

/// `stateVersion`, `timestamp`, `counter` (spec 2.2).
pub(super) type Version = (i64, i64, i64);

/// A request as its sender means it.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Request {
    /// 103
    Register(Box<Registration>),
    /// 104: cluster, broker name, id, address.
    Unregister(Name, Name, i64, Name),
    /// 904: cluster, address.
    Heartbeat(Name, Name),
    /// 322: cluster, address, and the version that the broker has.
    DataVersion(Name, Name, Version),
    /// 105
    Route(RouteQuery),
    /// 106
    ClusterInfo,
    /// 901: cluster, broker name.
    Members(Name, Name),
    /// 205: broker name.
    WipeWritePerm(Name),
    /// 327: broker name.
    AddWritePerm(Name),
    /// 206
    AllTopics,
    /// 224
    TopicsOfCluster(Name),
    /// 304
    SystemTopics,
    /// 311, 312 or 313.
    UnitTopics(i32),
    /// 216: topic, cluster.
    DeleteTopic(Name, Option<Name>),
    /// 217: topic, and broker name, permission and queues of each entry.
    RegisterTopic(Name, Vec<(Name, i32, i32)>),
    /// 100: namespace, key, value.
    PutKv(Name, Name, Option<Name>),
    /// 101
    GetKv(Name, Name),
    /// 102
    DeleteKv(Name, Name),
    /// 219
    ListKv(Name),
    /// 318: key and value of each line.
    UpdateConfig(Vec<(Name, Name)>),
    /// 319
    GetConfig,
    /// A code that no name server knows.
    Unknown(i32),
}

/// A route query and who asks it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct RouteQuery {
    pub(super) topic: Name,
    /// Below 401 the answer is plain fastjson (spec 2.7).
    pub(super) version: i32,
    pub(super) zone: Option<Name>,
}

/// `REGISTER_BROKER` (spec 2.3).
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Registration {
    pub(super) cluster: Name,
    pub(super) name: Name,
    pub(super) id: i64,
    pub(super) addr: Name,
    /// Each name once.
    pub(super) topics: Vec<Topic>,
    pub(super) version: Version,
    pub(super) acting: Option<bool>,
    pub(super) zone: Option<Name>,
    pub(super) timeout_millis: Option<i64>,
    /// `None`: null, which keeps what is there.
    pub(super) filter_servers: Option<Vec<Name>>,
    pub(super) mappings: Vec<StaticTopic>,
    pub(super) form: Form,
    /// Bytes that mean nothing, if it is JSON.
    pub(super) padding: usize,
    pub(super) checksum: bool,
    pub(super) fault: Option<Fault>,
}

/// An entry of a topic table.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Topic {
    pub(super) name: Name,
    pub(super) perm: i32,
    pub(super) queues: i32,
    pub(super) flag: i32,
}

/// A static-topic mapping.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct StaticTopic {
    pub(super) topic: Name,
    /// `bname`
    pub(super) shown_as: Option<Name>,
    pub(super) queues: i32,
}

/// How the body of a registration is written (spec 2.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// JSON of a 5.x broker.
    Json,
    /// JSON of a 4.9.x broker.
    Json4,
    /// The table alone, as brokers before 3.0.11 sent it.
    Bare,
    /// zlib of a 5.x broker, labelled as such.
    Zlib,
    /// zlib of a 5.x broker that says it is not (Q17).
    Mislabelled,
    /// zlib of a 4.9.x broker.
    Zlib4,
}

/// What is wrong with a registration that is refused whatever the tables hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    Checksum,
    NoCluster,
    NoName,
    NoAddr,
    NoId,
    OddAddr,
    CutBody,
    NegativeVersion,
}

impl Request {
    /// As `world` sends it.
    pub(super) fn ask(&self) -> Ask {
        match self {
            Self::Register(registration) => registration.ask(),
            Self::Unregister(cluster, name, id, addr) => world::unreg(cluster, name, *id, addr),
            Self::Heartbeat(cluster, addr) => world::heartbeat(cluster, "whoever", addr),
            Self::DataVersion(cluster, addr, version) => ask(322)
                .ext("clusterName", cluster)
                .ext("brokerName", "whoever")
                .ext("brokerAddr", addr)
                .ext("brokerId", 0)
                .body(data_version(*version, true).to_string()),
            Self::Route(query) => query.ask(),
            Self::ClusterInfo => ask(106),
            Self::Members(cluster, name) => {
                ask(901).ext("clusterName", cluster).ext("brokerName", name)
            }
            Self::WipeWritePerm(name) => ask(205).ext("brokerName", name),
            Self::AddWritePerm(name) => ask(327).ext("brokerName", name),
            Self::AllTopics => ask(206),
            Self::TopicsOfCluster(cluster) => ask(224).ext("cluster", cluster),
            Self::SystemTopics => ask(304),
            Self::UnitTopics(code) | Self::Unknown(code) => ask(*code),
            Self::DeleteTopic(topic, cluster) => cluster
                .iter()
                .fold(ask(216).ext("topic", topic), |ask, cluster| {
                    ask.ext("clusterName", cluster)
                }),
            Self::RegisterTopic(topic, queues) => ask(217)
                .ext("topic", topic)
                .body(queue_datas(queues).to_string()),
            Self::PutKv(namespace, key, value) => {
                let ask = ask(100).ext("namespace", namespace).ext("key", key);
                value.iter().fold(ask, |ask, value| ask.ext("value", value))
            }
            Self::GetKv(namespace, key) => ask(101).ext("namespace", namespace).ext("key", key),
            Self::DeleteKv(namespace, key) => ask(102).ext("namespace", namespace).ext("key", key),
            Self::ListKv(namespace) => ask(219).ext("namespace", namespace),
            Self::UpdateConfig(lines) => {
                let lines = lines.iter().map(|(key, value)| format!("{key}={value}\n"));
                ask(318).body(lines.collect::<String>())
            }
            Self::GetConfig => ask(319),
        }
    }
}

impl RouteQuery {
    fn ask(&self) -> Ask {
        let ask = world::route(self.topic).version(self.version);
        self.zone.iter().fold(ask, |ask, zone| {
            ask.ext("__ZONE_MODE", "true").ext("__ZONE_NAME", zone)
        })
    }
}

impl Registration {
    /// One with nothing about it: what is written of others is where they differ.
    pub(super) fn usual(name: Name, addr: Name) -> Self {
        let topic = |name| Topic {
            name,
            perm: 6,
            queues: 4,
            flag: 0,
        };
        Self {
            cluster: "c1",
            name,
            id: 0,
            addr,
            topics: vec![topic("T0"), topic("T1")],
            version: (0, 1, 1),
            acting: None,
            zone: None,
            timeout_millis: None,
            filter_servers: Some(Vec::new()),
            mappings: Vec::new(),
            form: Form::Json,
            padding: 0,
            checksum: false,
            fault: None,
        }
    }

    pub(super) fn ha_addr(&self) -> String {
        format!("{}-ha", self.addr)
    }

    fn ask(&self) -> Ask {
        let mut ask = ask(103)
            .ext("clusterName", self.cluster)
            .ext("brokerName", self.name)
            .ext("brokerId", self.id)
            .ext("brokerAddr", self.addr)
            .ext("haServerAddr", self.ha_addr())
            .version(self.form.version());
        if matches!(self.form, Form::Zlib | Form::Zlib4) {
            ask = ask.ext("compressed", true);
        }
        if let Some(acting) = self.acting {
            ask = ask.ext("enableActingMaster", acting);
        }
        if let Some(zone) = self.zone {
            ask = ask.ext("__ZONE_NAME", zone);
        }
        if let Some(millis) = self.timeout_millis {
            ask = ask.ext("heartbeatTimeoutMillis", millis);
        }
        let body = self.body();
        if self.checksum {
            ask = ask.ext("bodyCrc32", crc32fast::hash(&body) & 0x7FFF_FFFF);
        }
        self.spoil(ask.body(body))
    }

    fn spoil(&self, ask: Ask) -> Ask {
        match self.fault {
            None => ask,
            Some(Fault::Checksum) => ask.ext("bodyCrc32", -1),
            Some(Fault::NoCluster) => ask.without("clusterName"),
            Some(Fault::NoName) => ask.without("brokerName"),
            Some(Fault::NoAddr) => ask.without("brokerAddr"),
            Some(Fault::NoId) => ask.without("brokerId"),
            Some(Fault::OddAddr) => ask.ext("brokerAddr", "x:1,y:1"),
            Some(Fault::CutBody) => ask.without("bodyCrc32").body("{\"filterServerList\":["),
            Some(Fault::NegativeVersion) => ask.version(-1),
        }
    }

    fn body(&self) -> Vec<u8> {
        match self.form {
            Form::Json | Form::Json4 => {
                json!({"filterServerList": self.filter_servers, "padding": "-".repeat(self.padding),
                    "topicConfigSerializeWrapper": self.wrapper()})
                .to_string()
                .into_bytes()
            }
            Form::Bare => self.wrapper().to_string().into_bytes(),
            Form::Zlib | Form::Mislabelled | Form::Zlib4 => self.deflated(),
        }
    }

    fn wrapper(&self) -> Value {
        let config = |topic: &Topic| {
            let config = json!({"topicName": topic.name, "perm": topic.perm, "readQueueNums": topic.queues,
                "writeQueueNums": topic.queues, "topicSysFlag": topic.flag, "order": false, "topicFilterType": "SINGLE_TAG"});
            (topic.name.to_string(), config)
        };
        let table: Map<String, Value> = self.topics.iter().map(config).collect();
        let version = data_version(self.version, self.form == Form::Json);
        let mut wrapper = json!({"dataVersion": version, "topicConfigTable": table});
        if self.form == Form::Json {
            let mappings = self.mappings.iter();
            wrapper["topicQueueMappingInfoMap"] = mappings
                .map(|mapping| (mapping.topic.to_string(), mapping.json()))
                .collect::<Map<_, _>>()
                .into();
        }
        wrapper
    }

    /// Items behind their length or count, as one zlib stream.
    fn deflated(&self) -> Vec<u8> {
        let is_5x = self.form != Form::Zlib4;
        let mut items = item(data_version(self.version, is_5x).to_string());
        items.extend(word(self.topics.len()));
        for Topic {
            name, perm, queues, ..
        } in &self.topics
        {
            let attributes = if is_5x { " {}" } else { "" };
            items.extend(item(format!(
                "{name} {queues} {queues} {perm} SINGLE_TAG{attributes}"
            )));
        }
        items.extend(item(json!(self.filter_servers).to_string()));
        if is_5x {
            items.extend(word(self.mappings.len()));
            for mapping in &self.mappings {
                items.extend(item(mapping.json().to_string()));
            }
        }
        let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(&items).expect("memory takes everything");
        encoder.finish().expect("memory takes everything")
    }
}

fn word(number: usize) -> [u8; 4] {
    u32::try_from(number).expect("a small number").to_be_bytes()
}

fn item(text: String) -> Vec<u8> {
    [&word(text.len())[..], text.as_bytes()].concat()
}

impl Form {
    /// What the sender's header says (spec 1.6).
    fn version(self) -> i32 {
        match self {
            Self::Json | Self::Zlib | Self::Mislabelled => 479,
            Self::Json4 | Self::Zlib4 => 399,
            Self::Bare => 0,
        }
    }

    /// Whether it carries mappings and state versions, and its header the fields of 5.x.
    pub(super) fn is_5x(self) -> bool {
        matches!(self, Self::Json | Self::Zlib | Self::Mislabelled)
    }
}

impl StaticTopic {
    /// As the broker sends it and, once the broker name is filled in, as a route shows it.
    pub(super) fn json(&self) -> Value {
        let mut info = json!({"currIdMap": {"0": 0, "10": 1}, "dirty": false, "epoch": 1, "scope": "__global__",
            "topic": self.topic, "totalQueues": self.queues});
        if let Some(name) = self.shown_as {
            info["bname"] = name.into();
        }
        info
    }
}

pub(super) fn data_version((state, timestamp, counter): Version, is_5x: bool) -> Value {
    let mut version = json!({"timestamp": timestamp, "counter": counter});
    if is_5x {
        version["stateVersion"] = state.into();
    }
    version
}

fn queue_datas(queues: &[(Name, i32, i32)]) -> Value {
    let data = |(name, perm, queues): &(Name, i32, i32)| json!({"brokerName": name, "perm": perm, "readQueueNums": queues, "writeQueueNums": queues, "topicSysFlag": 0});
    json!({"brokerDatas": [], "filterServerTable": {}, "queueDatas": queues.iter().map(data).collect::<Vec<_>>()})
}
