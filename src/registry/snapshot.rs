//! `RouteSnapshot`: everything a reader may be asked, at one moment. Immutable; versions share all that did not change.

use std::{
    collections::{BTreeMap, BTreeSet},
    hash::Hasher,
    sync::Arc,
    time::Duration,
};

use foldhash::{SharedSeed, quality::FoldHasher};

use super::{
    entry::{BrokerEntry, BrokerIndex, BrokerLive, TopicEntry},
    kv_table::KvTable,
    table::{Hash, Table},
};
use crate::{
    config::{Config, LiveSettings},
    protocol::body::QueueSettings,
    time::Timestamp,
};

/// The immutable state of the name server. See [`super::query`] for what can be asked of it.
#[derive(Debug, Clone)]
pub struct RouteSnapshot {
    /// Rises by one with each publication.
    pub(crate) version: u64,
    pub(crate) started_at: Timestamp,
    pub(crate) hasher: NameHasher,
    pub(crate) topics: Table<TopicEntry>,
    pub(crate) brokers: BrokerList,
    pub(crate) broker_names: Table<BrokerEntry>,
    pub(crate) live: Table<BrokerLive>,
    pub(crate) kv: KvTable,
    pub(crate) config: Arc<Config>,
    pub(crate) settings: LiveSettings,
}

impl RouteSnapshot {
    /// Rises by one with each publication.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.version
    }

    /// How long the server has been up.
    #[must_use]
    pub fn age(&self, now: Timestamp) -> Duration {
        now.since(self.started_at)
    }

    /// The settings in force.
    #[must_use]
    pub fn settings(&self) -> &LiveSettings {
        &self.settings
    }

    /// The KV configuration.
    #[must_use]
    pub fn kv(&self) -> &KvTable {
        &self.kv
    }

    /// The body of a configuration answer (319).
    #[must_use]
    pub fn config_text(&self) -> String {
        self.config.to_wire_text()
    }

    /// How many topics, broker groups and live broker addresses there are.
    #[must_use]
    pub fn counts(&self) -> (usize, usize, usize) {
        (self.topics.len(), self.broker_names.len(), self.live.len())
    }

    pub(crate) fn topic(&self, name: &[u8]) -> Option<&Arc<TopicEntry>> {
        self.topics.get(self.hasher.hash(name), name)
    }

    pub(crate) fn broker(&self, name: &str) -> Option<&Arc<BrokerEntry>> {
        self.broker_names
            .get(self.hasher.hash(name.as_bytes()), name.as_bytes())
    }

    /// The live entry of an address, if it belongs to that cluster: heartbeats must name both (spec 2.5).
    pub(crate) fn live_broker(&self, cluster: &str, addr: &str) -> Option<&Arc<BrokerLive>> {
        self.live_at(addr).filter(|live| *live.cluster == *cluster)
    }

    pub(crate) fn live_at(&self, addr: &str) -> Option<&Arc<BrokerLive>> {
        self.live
            .get(self.hasher.hash(addr.as_bytes()), addr.as_bytes())
    }
}

/// Hashes names. Seeded by the process, multipliers included, so that peers cannot choose colliding names.
#[derive(Debug, Clone)]
pub(crate) struct NameHasher {
    seed: u64,
    shared: SharedSeed,
}

impl NameHasher {
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            seed,
            shared: SharedSeed::from_u64(seed),
        }
    }

    pub(crate) fn hash(&self, name: &[u8]) -> Hash {
        self.hash_of(&name)
    }

    /// One hash of a topic and what a broker declares of it.
    pub(crate) fn mark(&self, topic: &[u8], settings: &QueueSettings) -> u64 {
        self.hash_of(&(topic, settings))
    }

    fn hash_of(&self, what: &impl std::hash::Hash) -> u64 {
        let mut hasher = FoldHasher::with_seed(self.seed, &self.shared);
        what.hash(&mut hasher);
        hasher.finish()
    }
}

/// Groups in one chunk: a change copies one chunk and the list of chunks.
const CHUNK: usize = 64;

type Chunk = Arc<Vec<Option<Arc<BrokerEntry>>>>;

/// Broker groups by their index: a topic refers to its brokers by number, so that a broker's change reaches all its routes
/// without touching a topic.
#[derive(Debug, Clone, Default)]
pub(crate) struct BrokerList {
    chunks: Arc<Vec<Chunk>>,
}

impl BrokerList {
    /// Whether it is the same version of the list.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.chunks, &other.chunks)
    }

    pub(crate) fn get(&self, index: BrokerIndex) -> Option<&Arc<BrokerEntry>> {
        let (chunk, place) = position(index);
        self.chunks.get(chunk)?.get(place)?.as_ref()
    }

    /// The group at an index that a topic refers to.
    pub(crate) fn at(&self, index: BrokerIndex) -> &Arc<BrokerEntry> {
        self.get(index)
            .expect("a topic refers only to groups that exist: they leave its slots before they go")
    }

    pub(crate) fn set(&mut self, index: BrokerIndex, entry: Option<Arc<BrokerEntry>>) {
        let (chunk, place) = position(index);
        let chunks = Arc::make_mut(&mut self.chunks);
        if chunks.len() <= chunk {
            chunks.resize_with(chunk + 1, || Arc::new(vec![None; CHUNK]));
        }
        Arc::make_mut(&mut chunks[chunk])[place] = entry;
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<BrokerEntry>> {
        self.chunks.iter().flat_map(|chunk| chunk.iter()).flatten()
    }

    /// All groups by name.
    pub(crate) fn sorted(&self) -> Vec<&Arc<BrokerEntry>> {
        let mut entries: Vec<_> = self.iter().collect();
        entries.sort_unstable_by(|left, right| left.name.cmp(&right.name));
        entries
    }

    /// Broker names by cluster, both ascending.
    pub(crate) fn clusters(&self) -> BTreeMap<&str, BTreeSet<&str>> {
        let mut clusters = BTreeMap::<&str, BTreeSet<&str>>::new();
        for entry in self.iter() {
            clusters
                .entry(&entry.cluster)
                .or_default()
                .insert(&entry.name);
        }
        clusters
    }
}

fn position(index: BrokerIndex) -> (usize, usize) {
    let index = index.0 as usize;
    (index / CHUNK, index % CHUNK)
}
