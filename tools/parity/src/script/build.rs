//! Requests and bodies as brokers, clients and mqadmin send them: what the themes are made of.

use std::fmt::Write as _;
use std::io::Write as _;

use flate2::Compression;
use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};

use crate::frame::Frame;

/// The timestamp of every data version the script sends.
pub const TIMESTAMP: u64 = 1_700_000_000_000;

/// A broker as it introduces itself.
#[derive(Clone, Debug)]
pub struct Broker {
    cluster: String,
    name: String,
    address: String,
    id: String,
    ha: String,
}

/// A broker of a cluster; its HA address is its address with another last digit.
#[must_use]
pub fn broker(cluster: &str, name: &str, id: i64, address: &str) -> Broker {
    Broker {
        cluster: cluster.to_owned(),
        name: name.to_owned(),
        address: address.to_owned(),
        id: id.to_string(),
        ha: format!("{address}9"),
    }
}

impl Broker {
    /// REGISTER_BROKER (103) with no body, as a broker without acting-master support of 5.x sends it.
    #[must_use]
    pub fn register(&self) -> Frame {
        self.register_old()
            .ext("enableActingMaster", "false")
            .ext("heartbeatTimeoutMillis", "120000")
    }

    /// The same for a broker with acting-master support.
    #[must_use]
    pub fn register_acting(&self) -> Frame {
        self.register().with("enableActingMaster", "true")
    }

    /// The same without the fields 4.9.x does not know.
    #[must_use]
    pub fn register_old(&self) -> Frame {
        self.address_fields(Frame::request(103))
            .ext("haServerAddr", &self.ha)
            .ext("compressed", "false")
            .ext("bodyCrc32", "0")
    }

    /// UNREGISTER_BROKER (104).
    #[must_use]
    pub fn unregister(&self) -> Frame {
        self.address_fields(Frame::request(104))
    }

    /// QUERY_DATA_VERSION (322) with the given body.
    #[must_use]
    pub fn query_version(&self, body: &str) -> Frame {
        self.address_fields(Frame::request(322)).body(body)
    }

    /// BROKER_HEARTBEAT (904).
    #[must_use]
    pub fn heartbeat(&self) -> Frame {
        Frame::request(904)
            .ext("clusterName", &self.cluster)
            .ext("brokerAddr", &self.address)
            .ext("brokerName", &self.name)
    }

    /// The same broker under another id.
    #[must_use]
    pub fn as_id(&self, id: i64) -> Broker {
        Broker {
            id: id.to_string(),
            ..self.clone()
        }
    }

    fn address_fields(&self, frame: Frame) -> Frame {
        frame
            .ext("brokerName", &self.name)
            .ext("brokerAddr", &self.address)
            .ext("clusterName", &self.cluster)
            .ext("brokerId", &self.id)
    }
}

/// The topic table of a register request.
#[derive(Clone, Debug)]
pub struct Topics {
    topics: Vec<Topic>,
    version: String,
    filter_servers: String,
    mappings: Vec<(String, String)>,
}

#[derive(Clone, Debug)]
struct Topic {
    name: String,
    read: i32,
    write: i32,
    perm: i32,
    flag: i32,
}

/// A table of topics with 4 queues and permission 6, under data version `counter`.
#[must_use]
pub fn topics(counter: u32, names: &[&str]) -> Topics {
    let table = Topics {
        topics: Vec::new(),
        version: data_version(counter),
        filter_servers: "[]".to_owned(),
        mappings: Vec::new(),
    };
    names
        .iter()
        .fold(table, |table, name| table.add(name, 4, 4, 6, 0))
}

impl Topics {
    /// Adds a topic with its read and write queues, permission and system flag.
    #[must_use]
    pub fn add(mut self, name: &str, read: i32, write: i32, perm: i32, flag: i32) -> Topics {
        self.topics.push(Topic {
            name: name.to_owned(),
            read,
            write,
            perm,
            flag,
        });
        self
    }

    /// Sets the data version's JSON.
    #[must_use]
    pub fn under(mut self, version: &str) -> Topics {
        version.clone_into(&mut self.version);
        self
    }

    /// Sets the JSON list of filter servers.
    #[must_use]
    pub fn filter_servers(mut self, list: &str) -> Topics {
        list.clone_into(&mut self.filter_servers);
        self
    }

    /// Adds a static topic's mapping, as JSON.
    #[must_use]
    pub fn mapping(mut self, topic: &str, json: &str) -> Topics {
        self.mappings.push((topic.to_owned(), json.to_owned()));
        self
    }

    /// The body of a 5.x broker.
    #[must_use]
    pub fn body(&self) -> String {
        format!(
            "{{\"filterServerList\":{},\"topicConfigSerializeWrapper\":{}}}",
            self.filter_servers,
            self.wrapper()
        )
    }

    /// The body of a sender whose version is below 37: the wrapper alone.
    #[must_use]
    pub fn wrapper(&self) -> String {
        let topics: Vec<String> = self.topics.iter().map(Topic::member).collect();
        let mappings: Vec<String> = self
            .mappings
            .iter()
            .map(|(topic, json)| format!("{topic:?}:{json}"))
            .collect();
        format!(
            "{{\"dataVersion\":{},\"mappingDataVersion\":{},\"topicConfigTable\":{{{}}},\"topicQueueMappingDetailMap\":{{}},\"topicQueueMappingInfoMap\":{{{}}}}}",
            self.version,
            data_version(0),
            topics.join(","),
            mappings.join(",")
        )
    }

    /// The items of a compressed body, before compression, as a sender of version 413 or later writes them.
    #[must_use]
    pub fn items(&self) -> Vec<u8> {
        let mut bytes = self.items_without_mappings();
        bytes.extend(count(self.mappings.len()));
        for (_, json) in &self.mappings {
            bytes.extend(item(json));
        }
        bytes
    }

    /// The same as 4.9.x writes them: no mapping section.
    #[must_use]
    pub fn items_without_mappings(&self) -> Vec<u8> {
        let mut bytes = item(&self.version);
        bytes.extend(count(self.topics.len()));
        for topic in &self.topics {
            bytes.extend(item(&topic.line()));
        }
        bytes.extend(item(&self.filter_servers));
        bytes
    }
}

impl Topic {
    fn member(&self) -> String {
        let name = serde_json::to_string(&self.name).expect("a string is always JSON");
        format!(
            "{name}:{{\"attributes\":{{}},\"order\":false,\"perm\":{},\"readQueueNums\":{},\"topicFilterType\":\"SINGLE_TAG\",\"topicName\":{name},\"topicSysFlag\":{},\"writeQueueNums\":{}}}",
            self.perm, self.read, self.flag, self.write
        )
    }

    fn line(&self) -> String {
        format!(
            "{} {} {} {} SINGLE_TAG",
            self.name, self.read, self.write, self.perm
        )
    }
}

/// A data version with state version 0.
#[must_use]
pub fn data_version(counter: u32) -> String {
    state_version(counter, 0)
}

/// A data version with a state version.
#[must_use]
pub fn state_version(counter: u32, state: i64) -> String {
    format!("{{\"counter\":{counter},\"stateVersion\":{state},\"timestamp\":{TIMESTAMP}}}")
}

/// A length-prefixed item of a compressed body.
#[must_use]
pub fn item(text: &str) -> Vec<u8> {
    let mut bytes = count(text.len()).to_vec();
    bytes.extend(text.as_bytes());
    bytes
}

/// A 32-bit count or length.
#[must_use]
pub fn count(number: usize) -> [u8; 4] {
    u32::try_from(number)
        .expect("script bodies are small")
        .to_be_bytes()
}

/// A zlib stream, as brokers write it.
#[must_use]
pub fn zlib(bytes: &[u8]) -> Vec<u8> {
    zlib_at(bytes, 9)
}

/// A zlib stream of the given level.
#[must_use]
pub fn zlib_at(bytes: &[u8], level: u32) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::new(level));
    encoder
        .write_all(bytes)
        .expect("writing to memory succeeds");
    encoder.finish().expect("writing to memory succeeds")
}

/// A raw deflate stream.
#[must_use]
pub fn deflate(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::new(9));
    encoder
        .write_all(bytes)
        .expect("writing to memory succeeds");
    encoder.finish().expect("writing to memory succeeds")
}

/// A gzip stream.
#[must_use]
pub fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::new(9));
    encoder
        .write_all(bytes)
        .expect("writing to memory succeeds");
    encoder.finish().expect("writing to memory succeeds")
}

/// The checksum `bodyCrc32` carries.
#[must_use]
pub fn crc(bytes: &[u8]) -> u32 {
    let mut crc = flate2::Crc::new();
    crc.update(bytes);
    crc.sum() & 0x7FFF_FFFF
}

/// GET_ROUTEINFO_BY_TOPIC (105).
#[must_use]
pub fn route(topic: &str) -> Frame {
    Frame::request(105).ext("topic", topic)
}

/// GET_BROKER_CLUSTER_INFO (106).
#[must_use]
pub fn clusters() -> Frame {
    Frame::request(106)
}

/// GET_BROKER_MEMBER_GROUP (901).
#[must_use]
pub fn members(cluster: &str, name: &str) -> Frame {
    Frame::request(901)
        .ext("clusterName", cluster)
        .ext("brokerName", name)
}

/// UPDATE_NAMESRV_CONFIG (318) with one line.
#[must_use]
pub fn set(key: &str, value: &str) -> Frame {
    Frame::request(318)
        .empty_ext()
        .body(format!("{key}={value}\n"))
}

/// PUT_KV_CONFIG (100).
#[must_use]
pub fn put(namespace: &str, key: &str, value: &str) -> Frame {
    Frame::request(100)
        .ext("namespace", namespace)
        .ext("key", key)
        .ext("value", value)
}

/// GET_KV_CONFIG (101).
#[must_use]
pub fn get(namespace: &str, key: &str) -> Frame {
    Frame::request(101)
        .ext("namespace", namespace)
        .ext("key", key)
}

/// DELETE_KV_CONFIG (102).
#[must_use]
pub fn delete(namespace: &str, key: &str) -> Frame {
    Frame::request(102)
        .ext("namespace", namespace)
        .ext("key", key)
}

/// DELETE_TOPIC_IN_NAMESRV (216).
#[must_use]
pub fn delete_topic(topic: &str) -> Frame {
    Frame::request(216).ext("topic", topic)
}

/// WIPE_WRITE_PERM_OF_BROKER (205).
#[must_use]
pub fn wipe(name: &str) -> Frame {
    Frame::request(205).ext("brokerName", name)
}

/// ADD_WRITE_PERM_OF_BROKER (327).
#[must_use]
pub fn add_perm(name: &str) -> Frame {
    Frame::request(327).ext("brokerName", name)
}

/// The registration of a decoy broker: its route's end shows that earlier closes have been worked off.
#[must_use]
pub fn decoy(name: &str) -> Frame {
    let table = topics(1, &[name, &format!("{name}-second")]);
    broker("decoys", name, 0, &format!("{name}:1"))
        .register()
        .body(table.body())
}

/// A JSON header as 5.3.3 writes it, with the given members before `flag`.
#[must_use]
pub fn header(members: &str) -> String {
    let mut text = String::from("{");
    let _ = write!(
        text,
        "{members},\"flag\":0,\"language\":\"JAVA\",\"opaque\":@opaque@,\"version\":479}}"
    );
    text
}

/// A step's id for a value that may be empty or have blanks.
#[must_use]
pub fn id_of(value: &str) -> String {
    if value.is_empty() {
        "empty".to_owned()
    } else {
        value.replace(' ', "blank-")
    }
}
