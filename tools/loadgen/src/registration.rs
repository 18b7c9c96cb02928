//! `REGISTER_BROKER` as a 5.x broker sends it (spec 2.3), whole, in slices or compressed.

use std::io::Write;

use flate2::{Compression, Crc, write::ZlibEncoder};

use crate::{
    frame::{Codec, Head, REGISTER_BROKER, TOPIC_DIGITS, encode, write_digits},
    population::{CLUSTER, broker_addr, broker_name},
};

/// Topics in one slice of a split registration: what `enableSplitRegistration` uses (spec 3.2).
pub const SLICE_LEN: usize = 800;

/// Registrations are sent as by 5.3.3: their version decides on the compressed body's layout (spec 1.6).
const VERSION: u16 = 479;

/// How long the server keeps a silent broker. Longer than any run: brokers leave when the run says so.
const HEARTBEAT_TIMEOUT_MILLIS: &str = "7200000";

/// How a body is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyForm {
    /// As JSON.
    Json,
    /// As one zlib stream of level 9.
    Compressed,
}

/// Which of a registration's topics differ from those of the revision before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// All that are listed.
    All,
    /// The first that is listed.
    First,
}

/// An entry of the topic table, copied and patched: a broker has its table at hand, so that what building it costs here must be no
/// part of a latency.
const TOPIC_ENTRY: &[u8] = br#""topic-0000000":{"attributes":{},"order":false,"perm":6,"readQueueNums":4,"topicFilterType":"SINGLE_TAG","topicName":"topic-0000000","topicSysFlag":0,"writeQueueNums":4},"#;
/// Where its topic's number stands.
const TOPIC_AT: [usize; 2] = [7, 124];
/// Where its numbers of queues stand, of one digit each.
const QUEUES_AT: [usize; 2] = [72, 167];

/// One registration.
#[derive(Debug)]
pub struct Registration<'a> {
    /// The number in the broker's name.
    pub broker: usize,
    /// Counts the broker's changes: it is the data version's counter, and decides on the topics' queue numbers.
    pub revision: u64,
    /// The topics that have the revision's queue numbers; the others have those of revision 0.
    pub extent: Extent,
    /// The topics listed.
    pub topics: &'a [usize],
    /// Form of the body.
    pub form: BodyForm,
}

impl Registration<'_> {
    /// Appends the frame.
    pub fn append(&self, codec: Codec, opaque: u32, out: &mut Vec<u8>) {
        let body = match self.form {
            BodyForm::Json => self.json_body(),
            BodyForm::Compressed => self.compressed_body(),
        };
        let mut crc = Crc::new();
        crc.update(&body);
        let body_crc32 = (crc.sum() & 0x7fff_ffff).to_string();
        let broker_name = broker_name(self.broker);
        let broker_addr = broker_addr(self.broker);
        let compressed = match self.form {
            BodyForm::Json => "false",
            BodyForm::Compressed => "true",
        };
        let fields = [
            ("bodyCrc32", body_crc32.as_str()),
            ("brokerAddr", &broker_addr),
            ("brokerId", "0"),
            ("brokerName", &broker_name),
            ("clusterName", CLUSTER),
            ("compressed", compressed),
            ("enableActingMaster", "false"),
            ("haServerAddr", &broker_addr),
            ("heartbeatTimeoutMillis", HEARTBEAT_TIMEOUT_MILLIS),
        ];
        let head = Head {
            codec,
            code: REGISTER_BROKER,
            version: VERSION,
            opaque,
        };
        encode(head, &fields, &body, out);
    }

    /// Queue numbers of one digit, so that the length of a route does not depend on the revision.
    fn queues(&self, index: usize) -> u64 {
        match self.extent {
            Extent::First if index > 0 => 4,
            Extent::First | Extent::All => 4 + self.revision % 4,
        }
    }

    fn json_body(&self) -> Vec<u8> {
        let data_version = data_version(self.revision);
        let mut body = Vec::with_capacity(400 + 200 * self.topics.len());
        let written = (|| {
            write!(
                body,
                "{{\"filterServerList\":[],\"topicConfigSerializeWrapper\":{{\"dataVersion\":{data_version},\
                 \"mappingDataVersion\":{{\"counter\":0,\"stateVersion\":0,\"timestamp\":1700000000000}},\
                 \"topicConfigTable\":{{"
            )?;
            for (index, topic) in self.topics.iter().enumerate() {
                let start = body.len();
                body.extend_from_slice(TOPIC_ENTRY);
                let entry = &mut body[start..];
                for at in TOPIC_AT {
                    write_digits(*topic as u64, &mut entry[at..at + TOPIC_DIGITS]);
                }
                for at in QUEUES_AT {
                    write_digits(self.queues(index), &mut entry[at..=at]);
                }
            }
            if !self.topics.is_empty() {
                body.pop(); // the last comma
            }
            write!(
                body,
                "}},\"topicQueueMappingDetailMap\":{{}},\"topicQueueMappingInfoMap\":{{}}}}}}"
            )
        })();
        written.expect("a vector takes all that is written to it");
        body
    }

    fn compressed_body(&self) -> Vec<u8> {
        let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
        encoder
            .write_all(&self.plain_text())
            .expect("a vector takes all that is written to it");
        encoder
            .finish()
            .expect("a vector takes all that is written to it")
    }

    /// What the compressed form compresses.
    fn plain_text(&self) -> Vec<u8> {
        let mut text = Vec::with_capacity(100 + 50 * self.topics.len());
        push_item(&data_version(self.revision), &mut text);
        push_int(self.topics.len(), &mut text);
        for (index, topic) in self.topics.iter().enumerate() {
            let queues = self.queues(index);
            push_item(
                &format!("topic-{topic:07} {queues} {queues} 6 SINGLE_TAG {{}}"),
                &mut text,
            );
        }
        push_item("[]", &mut text);
        push_int(0, &mut text);
        text
    }
}

/// The data version of a broker's topics, as JSON.
pub fn data_version(revision: u64) -> String {
    format!("{{\"counter\":{revision},\"stateVersion\":0,\"timestamp\":1700000000000}}")
}

fn push_int(value: usize, out: &mut Vec<u8>) {
    let value = u32::try_from(value).expect("counts are bounded");
    out.extend_from_slice(&value.to_be_bytes());
}

fn push_item(item: &str, out: &mut Vec<u8>) {
    push_int(item.len(), out);
    out.extend_from_slice(item.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    use flate2::read::ZlibDecoder;
    use serde_json::Value;
    use std::io::Read;

    fn registration(form: BodyForm) -> Registration<'static> {
        Registration {
            broker: 3,
            revision: 2,
            extent: Extent::All,
            topics: &[7, 8],
            form,
        }
    }

    #[test]
    fn the_places_to_patch_are_those_of_the_numbers() {
        for at in TOPIC_AT {
            assert_eq!(&TOPIC_ENTRY[at..at + TOPIC_DIGITS], b"0000000");
        }
        for at in QUEUES_AT {
            assert!(TOPIC_ENTRY[..at].ends_with(b"QueueNums\":"));
            assert_eq!(TOPIC_ENTRY[at], b'4');
        }
    }

    #[test]
    fn a_json_body_lists_the_topics_as_a_broker_does() {
        let body: Value =
            serde_json::from_slice(&registration(BodyForm::Json).json_body()).unwrap();
        let wrapper = &body["topicConfigSerializeWrapper"];
        assert_eq!(wrapper["dataVersion"]["counter"], 2);
        let topic = &wrapper["topicConfigTable"]["topic-0000008"];
        assert_eq!(
            (&topic["topicName"], &topic["readQueueNums"]),
            (&Value::from("topic-0000008"), &Value::from(6))
        );
    }

    #[test]
    fn a_change_of_the_first_topic_leaves_the_others_as_they_were() {
        let one = Registration {
            extent: Extent::First,
            ..registration(BodyForm::Json)
        };
        let body: Value = serde_json::from_slice(&one.json_body()).unwrap();
        let table = &body["topicConfigSerializeWrapper"]["topicConfigTable"];
        assert_eq!(table["topic-0000007"]["readQueueNums"], 6);
        assert_eq!(table["topic-0000008"]["readQueueNums"], 4);
    }

    #[test]
    fn a_compressed_body_inflates_to_the_spec_s_layout() {
        let mut text = Vec::new();
        let body = registration(BodyForm::Compressed).compressed_body();
        ZlibDecoder::new(&body[..]).read_to_end(&mut text).unwrap();

        let mut expected = Vec::new();
        push_item(
            r#"{"counter":2,"stateVersion":0,"timestamp":1700000000000}"#,
            &mut expected,
        );
        expected.extend_from_slice(&[0, 0, 0, 2]);
        push_item("topic-0000007 6 6 6 SINGLE_TAG {}", &mut expected);
        push_item("topic-0000008 6 6 6 SINGLE_TAG {}", &mut expected);
        push_item("[]", &mut expected);
        expected.extend_from_slice(&[0; 4]);
        assert_eq!(text, expected);
    }

    #[test]
    fn the_crc_is_that_of_the_body_as_sent() {
        let mut frame = Vec::new();
        registration(BodyForm::Json).append(Codec::Json, 7, &mut frame);
        let body = registration(BodyForm::Json).json_body();
        let mut crc = Crc::new();
        crc.update(&body);
        let expected = format!("\"bodyCrc32\":\"{}\"", crc.sum() & 0x7fff_ffff);
        assert!(frame.ends_with(&body));
        assert!(crate::frame::find(&frame, expected.as_bytes()).is_some());
    }
}
