//! What a stream's next request is: a route query, a heartbeat or a registration.

use crate::{
    frame::{BROKER_HEARTBEAT, Codec, GET_ROUTE, QUERY_DATA_VERSION, Template},
    population::{CLUSTER, Population, broker_addr, broker_name},
    registration::{BodyForm, Extent, Registration, SLICE_LEN, data_version},
};

/// A broker that registers and heartbeats over one connection.
#[derive(Debug)]
pub struct Broker {
    /// Its number in the population.
    pub index: usize,
    /// How often its topics changed.
    pub revision: u64,
    number: usize,
    heartbeat: Template,
}

/// Which request a heartbeat is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeartbeatKind {
    /// `BROKER_HEARTBEAT` (904).
    Plain,
    /// `QUERY_DATA_VERSION` (322), with the version that the broker registered with first.
    DataVersion,
}

impl Broker {
    /// A broker that has not registered yet.
    pub fn new(index: usize, population: &Population, codec: Codec, kind: HeartbeatKind) -> Self {
        let number = population.broker_number(index);
        let (name, addr) = (broker_name(number), broker_addr(number));
        let fields = [
            ("brokerAddr", addr.as_str()),
            ("brokerId", "0"),
            ("brokerName", &name),
            ("clusterName", CLUSTER),
        ];
        let (code, body) = match kind {
            HeartbeatKind::Plain => (BROKER_HEARTBEAT, String::new()),
            HeartbeatKind::DataVersion => (QUERY_DATA_VERSION, data_version(0)),
        };
        Self {
            index,
            revision: 0,
            number,
            heartbeat: Template::with_body(codec, code, 479, &fields, body.as_bytes()),
        }
    }

    /// Appends the registration of all its topics.
    pub fn append_registration(
        &self,
        population: &Population,
        codec: Codec,
        opaque: u32,
        out: &mut Vec<u8>,
    ) {
        let topics: Vec<usize> = population.topics_of(self.index).collect();
        let registration = Registration {
            broker: self.number,
            revision: self.revision,
            extent: Extent::All,
            topics: &topics,
            form: BodyForm::Json,
        };
        registration.append(codec, opaque, out);
    }
}

/// How a registration differs from the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RegisterKind {
    /// The topics' queue numbers and the data version change.
    Changed,
    /// The queue numbers of the first topic and the data version change.
    One,
    /// Nothing changes.
    Unchanged,
    /// Nothing changes, as a compressed body.
    UnchangedCompressed,
    /// As changed, in frames of [`SLICE_LEN`] topics.
    Split,
    /// As changed, as a compressed body.
    Compressed,
}

/// Which topics route queries ask for.
#[derive(Debug)]
pub struct RouteSource {
    template: Template,
    random: Random,
    first_number: u32,
    topics: u64,
    hot_topics: u64,
    hot_percent: u64,
}

impl RouteSource {
    /// `hot_percent` of the queries go to the first `hot_topics`, the others to all `topics` alike.
    pub fn new(
        codec: Codec,
        version: u16,
        population: &Population,
        hot_topics: usize,
        hot_percent: u64,
        seed: u64,
    ) -> Self {
        let first_number = u32::try_from(population.first_number);
        Self {
            template: Template::new(codec, GET_ROUTE, version, &[("topic", "topic-0000000")]),
            random: Random::new(seed),
            first_number: first_number.expect("a topic's number has seven digits"),
            topics: population.topics as u64,
            hot_topics: hot_topics as u64,
            hot_percent,
        }
    }

    fn topic(&mut self) -> u32 {
        let hot = self.hot_percent > 0 && self.random.below(100) < self.hot_percent;
        let bound = if hot { self.hot_topics } else { self.topics };
        let topic = u32::try_from(self.random.below(bound));
        self.first_number + topic.expect("a topic's number has seven digits")
    }
}

/// Registrations of the connection's broker.
#[derive(Debug)]
pub struct RegisterSource {
    /// What changes.
    pub kind: RegisterKind,
    /// Topics listed in each.
    pub topics: usize,
    /// Of which brokers.
    pub population: Population,
    /// Header form.
    pub codec: Codec,
}

/// Where a stream's requests come from.
#[derive(Debug)]
pub enum Source {
    /// Route queries.
    Route(RouteSource),
    /// Heartbeats of the connection's broker.
    Heartbeat,
    /// Registrations of the connection's broker.
    Register(RegisterSource),
}

impl Source {
    /// Frames of one request.
    pub fn frames(&self) -> usize {
        match self {
            Self::Route(_) | Self::Heartbeat => 1,
            Self::Register(source) => match source.kind {
                RegisterKind::Split => source.topics.div_ceil(SLICE_LEN),
                RegisterKind::Changed
                | RegisterKind::One
                | RegisterKind::Unchanged
                | RegisterKind::UnchangedCompressed
                | RegisterKind::Compressed => 1,
            },
        }
    }

    /// Appends one request; `next_opaque` is called for each of its frames.
    pub fn append(
        &mut self,
        broker: Option<&mut Broker>,
        out: &mut Vec<u8>,
        mut next_opaque: impl FnMut() -> u32,
    ) {
        match self {
            Self::Route(source) => {
                let topic = source.topic();
                source.template.append_for_topic(next_opaque(), topic, out);
            }
            Self::Heartbeat => {
                let broker = broker.expect("heartbeats go over brokers' connections");
                broker.heartbeat.append(next_opaque(), out);
            }
            Self::Register(source) => {
                let broker = broker.expect("registrations go over brokers' connections");
                source.append(broker, out, next_opaque);
            }
        }
    }
}

impl RegisterSource {
    fn append(&self, broker: &mut Broker, out: &mut Vec<u8>, mut next_opaque: impl FnMut() -> u32) {
        let slice_len = match self.kind {
            RegisterKind::Split => SLICE_LEN,
            RegisterKind::Changed
            | RegisterKind::One
            | RegisterKind::Unchanged
            | RegisterKind::UnchangedCompressed
            | RegisterKind::Compressed => self.topics,
        };
        let form = match self.kind {
            RegisterKind::Compressed | RegisterKind::UnchangedCompressed => BodyForm::Compressed,
            RegisterKind::Changed
            | RegisterKind::One
            | RegisterKind::Unchanged
            | RegisterKind::Split => BodyForm::Json,
        };
        let (step, extent) = match self.kind {
            RegisterKind::Unchanged | RegisterKind::UnchangedCompressed => (0, Extent::All),
            RegisterKind::One => (1, Extent::First),
            RegisterKind::Changed | RegisterKind::Split | RegisterKind::Compressed => {
                (1, Extent::All)
            }
        };
        broker.revision += step;
        let topics = self.chosen(broker);
        for slice in topics.chunks(slice_len) {
            let registration = Registration {
                broker: broker.number,
                revision: broker.revision,
                extent,
                topics: slice,
                form,
            };
            registration.append(self.codec, next_opaque(), out);
        }
    }

    /// The next `topics` of the broker's, so that in time all change.
    fn chosen(&self, broker: &Broker) -> Vec<usize> {
        let own = self.population.topics_of(broker.index);
        let count = self.topics.min(own.len());
        let turn = usize::try_from(broker.revision).expect("runs are bounded");
        let first = turn * count;
        (0..count)
            .map(|k| own.start + (first + k) % own.len())
            .collect()
    }
}

/// xorshift64*: a few cycles a number, the same numbers for the same seed.
#[derive(Debug)]
struct Random(u64);

impl Random {
    fn new(seed: u64) -> Self {
        // Zero is the one state it never leaves; the multiplication keeps near seeds apart.
        Self(seed.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// A number below `bound`, which has at most 32 bits.
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let high = self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 32;
        (high * bound) >> 32
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::OPAQUE_BASE;

    const POPULATION: Population = Population {
        topics: 4_000,
        brokers_per_topic: 2,
        topics_per_broker: 2_000,
        first_number: 0,
    };

    fn opaques(kind: RegisterKind, topics: usize) -> (Vec<u32>, u64) {
        let mut source = Source::Register(RegisterSource {
            kind,
            topics,
            population: POPULATION,
            codec: Codec::Json,
        });
        let mut broker = Broker::new(1, &POPULATION, Codec::Json, HeartbeatKind::Plain);
        let mut used = Vec::new();
        source.append(Some(&mut broker), &mut Vec::new(), || {
            used.push(1);
            1
        });
        assert_eq!(used.len(), source.frames());
        (used, broker.revision)
    }

    #[test]
    fn only_a_split_registration_is_several_frames_and_only_an_unchanged_one_changes_nothing() {
        assert_eq!(opaques(RegisterKind::Changed, 2_000), (vec![1], 1));
        assert_eq!(opaques(RegisterKind::One, 2_000), (vec![1], 1));
        assert_eq!(opaques(RegisterKind::Unchanged, 2_000), (vec![1], 0));
        assert_eq!(opaques(RegisterKind::UnchangedCompressed, 20), (vec![1], 0));
        assert_eq!(opaques(RegisterKind::Split, 2_000), (vec![1, 1, 1], 1));
        assert_eq!(opaques(RegisterKind::Compressed, 20), (vec![1], 1));
    }

    #[test]
    fn a_heartbeat_is_the_request_that_was_chosen() {
        let heartbeat = |kind| {
            let mut out = Vec::new();
            let mut broker = Broker::new(7, &POPULATION, Codec::Json, kind);
            Source::Heartbeat.append(Some(&mut broker), &mut out, || OPAQUE_BASE);
            String::from_utf8_lossy(&out[8..]).into_owned()
        };
        let plain = heartbeat(HeartbeatKind::Plain);
        assert!(plain.starts_with("{\"code\":904,") && plain.ends_with("\"version\":479}"));
        let query = heartbeat(HeartbeatKind::DataVersion);
        assert!(query.starts_with("{\"code\":322,") && query.ends_with(&data_version(0)));
    }

    #[test]
    fn queries_are_for_the_population_s_own_topics() {
        let population = Population {
            first_number: 5_000,
            ..POPULATION
        };
        let mut source = RouteSource::new(Codec::Json, 479, &population, 0, 0, 1);
        assert!((0..1_000).all(|_| (5_000..9_000).contains(&source.topic())));
    }

    #[test]
    fn the_hot_topics_get_their_share_of_the_queries() {
        let population = Population {
            topics: 100_000,
            ..POPULATION
        };
        let mut source = RouteSource::new(Codec::Json, 479, &population, 1_000, 90, 1);
        let hot = (0..100_000).filter(|_| source.topic() < 1_000).count();
        // 90 % by choice and 1 % of the other 10 % by chance.
        assert!((89_500..90_700).contains(&hot), "{hot}");
    }

    #[test]
    fn a_seed_is_a_sequence() {
        let topics = |seed| {
            let mut source = RouteSource::new(Codec::Json, 479, &POPULATION, 0, 0, seed);
            (0..20).map(|_| source.topic()).collect::<Vec<_>>()
        };
        assert_eq!(topics(1), topics(1));
        assert_ne!(topics(1), topics(2));
    }
}
