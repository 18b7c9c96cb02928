//! Broker groups in the working snapshot, and what only the writer keeps of them.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use roaring::RoaringBitmap;

use super::{
    Registry,
    declared::Declared,
    entry::{BrokerEntry, BrokerIndex, BrokerTexts, QueueShape, TopicId},
    intern::SweepPace,
};
use crate::protocol::body::QueueSettings;

/// What the writer knows of each group beside its published entry.
#[derive(Debug, Default)]
pub(super) struct GroupStates {
    states: Vec<Option<GroupState>>,
    free: Vec<BrokerIndex>,
}

#[derive(Debug, Default)]
pub(super) struct GroupState {
    /// The topics that have a slot or a mapping of this group.
    pub(super) topics: TopicSet,
    /// Queue data in use, so that topics with the same numbers share one encoded text.
    shapes: HashMap<(QueueSettings, i32), Arc<QueueShape>>,
    shapes_pace: SweepPace,
    /// What its last registration declared, as far as that is what is stored.
    pub(super) declared: Declared,
}

/// A set of topics. There are as many entries as routes, so each takes two bytes (a B-tree would take eleven).
#[derive(Debug, Default)]
pub(super) struct TopicSet(RoaringBitmap);

impl TopicSet {
    pub(super) fn insert(&mut self, topic: TopicId) {
        self.0.insert(topic.0);
    }

    /// Says whether it was there.
    pub(super) fn remove(&mut self, topic: TopicId) -> bool {
        self.0.remove(topic.0)
    }

    /// In the order of their numbers.
    pub(super) fn iter(&self) -> impl Iterator<Item = TopicId> {
        self.0.iter().map(TopicId)
    }
}

impl GroupStates {
    fn create(&mut self) -> BrokerIndex {
        let index = self.free.pop().unwrap_or_else(|| {
            self.states.push(None);
            BrokerIndex(
                u32::try_from(self.states.len() - 1)
                    .expect("fewer than 2^32 broker groups exist at once"),
            )
        });
        self.states[index.0 as usize] = Some(GroupState::default());
        index
    }

    fn remove(&mut self, index: BrokerIndex) {
        self.states[index.0 as usize] = None;
        self.free.push(index);
    }

    pub(super) fn get_mut(&mut self, index: BrokerIndex) -> &mut GroupState {
        self.states[index.0 as usize]
            .as_mut()
            .expect("an index in use has a state until its group is removed")
    }
}

impl GroupState {
    /// The shared queue data with these numbers.
    pub(super) fn shape(
        &mut self,
        broker_name: &str,
        declared: QueueSettings,
        perm: i32,
    ) -> Arc<QueueShape> {
        if let Some(shape) = self.shapes.get(&(declared, perm)) {
            return Arc::clone(shape);
        }
        if self.shapes_pace.is_due(self.shapes.len()) {
            self.shapes.retain(|_, shape| Arc::strong_count(shape) > 1);
            self.shapes_pace.swept(self.shapes.len());
        }
        let shape = Arc::new(QueueShape::new(broker_name, declared, perm));
        self.shapes.insert((declared, perm), Arc::clone(&shape));
        shape
    }
}

impl Registry {
    /// The group of that name, created empty if there is none.
    pub(super) fn group_or_new(&mut self, name: &Arc<str>, cluster: &Arc<str>) -> BrokerIndex {
        if let Some(entry) = self.working.broker(name) {
            return entry.index;
        }
        let index = self.groups.create();
        self.put_group(BrokerEntry {
            index,
            name: Arc::clone(name),
            cluster: Arc::clone(cluster),
            zone_name: None,
            enable_acting_master: false,
            addrs: BTreeMap::new(),
            filter_servers: BTreeMap::new(),
            texts: BrokerTexts::default(),
        });
        index
    }

    pub(super) fn group(&self, index: BrokerIndex) -> &Arc<BrokerEntry> {
        self.working.brokers.at(index)
    }

    /// Changes a group; publishes nothing if it comes out as it was.
    pub(super) fn edit_group(&mut self, index: BrokerIndex, edit: impl FnOnce(&mut BrokerEntry)) {
        let before = self.group(index);
        let mut entry = BrokerEntry::clone(before);
        edit(&mut entry);
        if entry != **before {
            self.put_group(entry);
        }
    }

    fn put_group(&mut self, mut entry: BrokerEntry) {
        entry.encode();
        let entry = Arc::new(entry);
        self.working
            .brokers
            .set(entry.index, Some(Arc::clone(&entry)));
        self.working
            .broker_names
            .insert(self.working.hasher.hash(entry.name.as_bytes()), entry);
        self.changed = true;
    }

    /// Takes a group out of every table: its topics lose it, and go with it if it was their last broker.
    pub(super) fn remove_group(&mut self, index: BrokerIndex) {
        let topics = std::mem::take(&mut self.groups.get_mut(index).topics);
        let gone = topics
            .iter()
            .filter(|topic| self.leave_topic(*topic, &[index]))
            .count();
        let entry = Arc::clone(self.group(index));
        self.working.broker_names.remove(
            self.working.hasher.hash(entry.name.as_bytes()),
            entry.name.as_bytes(),
        );
        self.working.brokers.set(index, None);
        self.groups.remove(index);
        self.steps.clear();
        self.changed = true;
        tracing::info!(
            "unregisterBroker, remove name from brokerAddrTable OK, {}, and {gone} topics with it",
            entry.name
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbered(perm: i32) -> QueueSettings {
        QueueSettings {
            perm,
            ..QueueSettings::default()
        }
    }

    #[test]
    fn looking_up_a_shape_sweeps_nothing_and_a_sweep_waits_until_there_are_twice_as_many() {
        let mut group = GroupState::default();
        let mut held: Vec<_> = (0..64)
            .map(|perm| group.shape("a", numbered(perm), perm))
            .collect();
        held.pop();
        for perm in 0..63 {
            group.shape("a", numbered(perm), perm);
        }
        assert_eq!(
            group.shapes.len(),
            64,
            "a hit is no reason to look for unused ones"
        );
        held.push(group.shape("a", numbered(64), 64));
        assert_eq!(
            group.shapes.len(),
            64,
            "one was unused and had to go before the new one came"
        );
        for perm in 65..127 {
            group.shape("a", numbered(perm), perm);
        }
        assert_eq!(
            group.shapes.len(),
            126,
            "none of these is held, and none is looked for yet"
        );
        group.shape("a", numbered(127), 127);
        assert_eq!(group.shapes.len(), 65);
    }
}
