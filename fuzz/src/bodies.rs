//! Bodies of registrations.

use std::{collections::BTreeMap, collections::HashSet, io::Write as _};

use flate2::{Compression, write::ZlibEncoder};
use waypost::{
    limits::{FILTER_SERVERS_MAX, MAPPINGS_MAX, QUEUE_DATAS_MAX},
    protocol::{
        body::{DataVersion, RegisterBrokerBody, TopicQueueMappingInfo},
        fastjson::{Dialect, ObjectWriter},
        register_body::{crc_matches, decode_queue_datas, decode_register_body},
    },
};

/// Versions on either side of each at which the form of a registration changes (spec 1.6).
const VERSIONS: [i32; 6] = [0, 36, 37, 412, 413, 479];

/// How many mappings of one body are written back: enough to see every kind of value.
const WRITTEN_BACK_MAX: usize = 8;

/// A body that is not compressed, read as everything it can be.
pub(crate) fn register_body(data: &[u8]) {
    let Some((&first, body)) = data.split_first() else {
        return;
    };
    check_decoded(body, decode_register_body(body, false, version(first)).ok());
    if let Ok(queues) = decode_queue_datas(body) {
        assert!(queues.len() <= QUEUE_DATAS_MAX.min(body.len()));
    }
    let version = DataVersion::decode(body);
    // Any JSON is a data version or counts as none (fault H6): an error would keep a broker from registering.
    if serde_json::from_slice::<serde_json::Value>(body).is_ok() {
        assert!(version.is_ok(), "{version:?}");
    }
    if let Ok(Some(version)) = version {
        let mut written = Vec::new();
        version.write(&mut written);
        assert_eq!(DataVersion::decode(&written), Ok(Some(version)));
    }
    assert!(crc_matches(body, 0));
}

/// A compressed body: a zlib stream as it comes, or (first byte odd) what lies inside one.
pub(crate) fn register_body_compressed(data: &[u8]) {
    let Some((&first, rest)) = data.split_first() else {
        return;
    };
    let version = version(first / 2);
    if first % 2 == 0 {
        check_decoded(rest, decode_register_body(rest, true, version).ok());
        return;
    }
    let mut stream = ZlibEncoder::new(Vec::new(), Compression::fast());
    stream.write_all(rest).expect("a Vec takes everything");
    let stream = stream.finish().expect("a Vec takes everything");
    let decoded = decode_register_body(&stream, true, version);
    // What is labelled wrongly is recognized all the same (Q17).
    assert_eq!(decode_register_body(&stream, false, version), decoded);
    check_decoded(rest, decoded.ok());
}

fn version(choice: u8) -> i32 {
    VERSIONS[usize::from(choice) % VERSIONS.len()]
}

/// Checks what must hold of a body that was read from `text`, if it was.
fn check_decoded(text: &[u8], decoded: Option<Option<RegisterBrokerBody>>) {
    let Some(Some(body)) = decoded else {
        return;
    };
    let topics: HashSet<_> = body
        .topics
        .iter()
        .map(|topic| topic.name.as_str())
        .collect();
    assert_eq!(topics.len(), body.topics.len(), "the last of each counts");
    let keys: HashSet<_> = body
        .mappings
        .iter()
        .map(|mapping| &mapping.topic_key)
        .collect();
    assert_eq!(keys.len(), body.mappings.len(), "the last of each counts");
    assert!(body.mappings.len() <= MAPPINGS_MAX);
    let filter_servers = body.filter_servers.as_deref().unwrap_or_default();
    assert!(filter_servers.len() <= FILTER_SERVERS_MAX);
    // A peer pays for what it makes the server hold: at least one byte for each item, compressed a thousandth of that.
    let items = body.topics.len() + body.mappings.len() + filter_servers.len();
    assert!(items <= 1100 * (1 + text.len()));
    for mapping in body.mappings.iter().take(WRITTEN_BACK_MAX) {
        mapping_is_read_back(mapping);
    }
}

fn mapping_is_read_back(mapping: &TopicQueueMappingInfo) {
    for dialect in [Dialect::Plain, Dialect::Strict] {
        let mut text = Vec::new();
        let mut envelope = ObjectWriter::begin(&mut text, Dialect::Plain);
        let mut wrapper = ObjectWriter::begin(
            envelope.member("topicConfigSerializeWrapper"),
            Dialect::Plain,
        );
        let mut map = ObjectWriter::begin(wrapper.member("topicQueueMappingInfoMap"), dialect);
        mapping.write(map.member(&mapping.topic_key), dialect);
        map.end();
        wrapper.end();
        envelope.end();
        let read = decode_register_body(&text, false, 479)
            .expect("what is written can be read")
            .expect("it is not null");
        // A null member is not written, so it is read as its default.
        let written = TopicQueueMappingInfo {
            current_id_map: mapping.current_id_map.clone().or(Some(BTreeMap::new())),
            scope: mapping.scope.clone().or(Some("__global__".into())),
            ..mapping.clone()
        };
        assert_eq!(read.mappings, [written]);
    }
}
