//! `topic_queue_table`: which brokers hold a topic, with how many queues and what permission (spec 2.10, 2.12, 2.13).

use std::{collections::BTreeMap, sync::Arc};

use smallvec::SmallVec;

use super::{
    Registry,
    command::ReplyTo,
    entry::{
        BrokerIndex, Mapping, PERM_READ_WRITE, PERM_WRITE, QueueShape, Slot, SlotList, TopicEntry,
        TopicId,
    },
    table::Hash,
};
use crate::{
    limits,
    protocol::{body::QueueSettings, code::ResponseCode, command::Response, name::TopicName},
};

/// Where to find a topic by its number.
#[derive(Debug, Default)]
pub(super) struct TopicIds {
    hashes: Vec<Hash>,
    free: Vec<TopicId>,
}

impl TopicIds {
    fn create(&mut self, hash: Hash) -> TopicId {
        if let Some(id) = self.free.pop() {
            self.hashes[id.0 as usize] = hash;
            return id;
        }
        self.hashes.push(hash);
        TopicId(u32::try_from(self.hashes.len() - 1).expect("fewer than 2^32 topics exist at once"))
    }

    fn hash(&self, id: TopicId) -> Hash {
        self.hashes[id.0 as usize]
    }
}

/// A broker's queues of a topic as they are to be stored.
#[derive(Debug, Clone, Copy)]
pub(super) struct Queues {
    pub(super) declared: QueueSettings,
    /// What readers shall see.
    pub(super) perm: i32,
}

impl Registry {
    /// Stores a broker's queues of a topic, creating the topic if need be. Says whether that changed anything.
    pub(super) fn set_queues(
        &mut self,
        name: &TopicName,
        broker: BrokerIndex,
        queues: Queues,
    ) -> SetQueues {
        self.breather.breathe();
        let hash = self.working.hasher.hash(name.as_bytes());
        let known = self.working.topics.get(hash, name.as_bytes());
        let from = match known {
            Some(topic) => Arc::clone(&topic.slots),
            None => self.slot_lists.get(&[]),
        };
        let step = self.step(&from, broker, queues);
        if Arc::ptr_eq(&step.to, &from) {
            return SetQueues::Same;
        }
        let id = self.topic_at(hash, name, |topic| {
            topic.slots = Arc::clone(&step.to);
            topic.id
        });
        self.groups.get_mut(broker).declared.forget();
        match step.old {
            Some(old) => SetQueues::Changed(old, step.new),
            None => {
                self.groups.get_mut(broker).topics.insert(id);
                SetQueues::Added(step.new)
            }
        }
    }

    /// What a slot list becomes when a broker declares these queues. The topics of a registration mostly take the same step, so
    /// the last ones are kept: `cargo bench --bench publish` (all changed) would notice the loss.
    fn step(&mut self, from: &SlotList, broker: BrokerIndex, queues: Queues) -> Step {
        if let Some(step) = self.steps.get(from, broker, queues) {
            return step.clone();
        }
        let new = self.groups.get_mut(broker).shape(
            &self.working.brokers.at(broker).name,
            queues.declared,
            queues.perm,
        );
        let mut slots: SmallVec<[Slot; 8]> = from.iter().cloned().collect();
        let old = match slot_place(from, broker, &self.working.brokers) {
            Ok(place) => Some(std::mem::replace(
                &mut slots[place].queues,
                Arc::clone(&new),
            )),
            Err(place) => {
                let queues = Arc::clone(&new);
                slots.insert(place, Slot { broker, queues });
                None
            }
        };
        let step = Step {
            from: Arc::clone(from),
            broker,
            to: self.slot_lists.get(&slots),
            old,
            new,
        };
        self.steps.keep(step.clone());
        step
    }

    /// [`Registry::set_queues`] for many brokers of a topic, each in the permission that is declared: one new list of slots for all
    /// of them. Of a broker that is there twice the last counts.
    fn set_queues_of_each(&mut self, name: &TopicName, declared: &[(BrokerIndex, QueueSettings)]) {
        let hash = self.working.hasher.hash(name.as_bytes());
        let known = self.working.topics.get(hash, name.as_bytes());
        let slots = known.map_or(&[][..], |topic| &topic.slots);
        let slots = slots
            .iter()
            .map(|slot| (slot.broker, Arc::clone(&slot.queues)));
        let before: BTreeMap<BrokerIndex, Arc<QueueShape>> = slots.collect();
        let mut after = before.clone();
        for &(broker, settings) in declared {
            let name = &self.working.brokers.at(broker).name;
            let group = self.groups.get_mut(broker);
            after.insert(broker, group.shape(name, settings, settings.perm));
        }
        let brokers = declared.iter().map(|(broker, _)| *broker);
        let is_changed = |broker: &BrokerIndex| {
            let old = before.get(broker);
            old.is_none_or(|old| !Arc::ptr_eq(old, &after[broker]))
        };
        let changed: Vec<BrokerIndex> = brokers.filter(is_changed).collect();
        if changed.is_empty() {
            return;
        }
        let slots = after
            .into_iter()
            .map(|(broker, queues)| Slot { broker, queues });
        let mut slots: Vec<Slot> = slots.collect();
        slots.sort_by_cached_key(|slot| Arc::clone(&self.working.brokers.at(slot.broker).name));
        let slots = self.slot_lists.get(&slots);
        let id = self.topic_at(hash, name, |topic| {
            topic.slots = slots;
            topic.id
        });
        for broker in changed {
            let group = self.groups.get_mut(broker);
            group.declared.forget();
            group.topics.insert(id);
        }
    }

    /// Changes a topic, creating it if need be.
    fn topic_at<R>(
        &mut self,
        hash: Hash,
        name: &TopicName,
        change: impl FnOnce(&mut TopicEntry) -> R,
    ) -> R {
        self.changed = true;
        let entry = self
            .working
            .topics
            .find_mut(hash, |entry| entry.name == *name);
        if let Some(entry) = entry {
            return change(entry);
        }
        let mut entry = TopicEntry {
            name: name.clone(),
            id: self.topic_ids.create(hash),
            slots: self.slot_lists.get(&[]),
            mappings: Vec::new(),
        };
        let done = change(&mut entry);
        self.working.topics.insert(hash, Arc::new(entry));
        done
    }

    /// The queues that a broker has of a topic.
    pub(super) fn queues(&self, name: &TopicName, broker: BrokerIndex) -> Option<&Arc<QueueShape>> {
        queues_of(self.working.topic(name.as_bytes())?, broker)
    }

    /// Stores a static-topic mapping (spec 3.3 step 10). One name has one mapping: whoever sends it last owns it.
    pub(super) fn set_mapping(&mut self, name: &TopicName, mapping: Mapping) {
        self.breather.breathe();
        let hash = self.working.hasher.hash(name.as_bytes());
        if self.working.topics.get(hash, name.as_bytes()).is_none() {
            self.topic_at(hash, name, |_| ());
        }
        let topic = self
            .working
            .topic(name.as_bytes())
            .expect("a topic just created is there");
        let place = topic
            .mappings
            .binary_search_by(|other| other.broker_name.cmp(&mapping.broker_name));
        if place.is_ok_and(|place| topic.mappings[place] == mapping) {
            return;
        }
        let owner = mapping.owner;
        let topic = self.topic_mut(name);
        let id = topic.id;
        let old_owner = match place {
            Ok(place) => Some(std::mem::replace(&mut topic.mappings[place], mapping).owner),
            Err(place) => {
                topic.mappings.insert(place, mapping);
                None
            }
        };
        let gone = old_owner.filter(|old_owner| !topic.involves(*old_owner));
        self.groups.get_mut(owner).topics.insert(id);
        if let Some(gone) = gone {
            self.groups.get_mut(gone).topics.remove(id);
        }
    }

    fn topic_mut(&mut self, name: &TopicName) -> &mut TopicEntry {
        self.changed = true;
        let hash = self.working.hasher.hash(name.as_bytes());
        let entry = self
            .working
            .topics
            .find_mut(hash, |entry| entry.name == *name);
        entry.expect("the caller has just seen the topic")
    }

    fn topic_by_id(&self, id: TopicId) -> &Arc<TopicEntry> {
        let entry = self
            .working
            .topics
            .find(self.topic_ids.hash(id), |entry| entry.id == id);
        entry.expect("a group lists only topics that exist: they leave its list before they go")
    }

    /// The names of all topics that a group has a part in, in a stable order.
    pub(super) fn topics_of(&mut self, broker: BrokerIndex) -> Vec<TopicName> {
        let ids: Vec<TopicId> = self.groups.get_mut(broker).topics.iter().collect();
        ids.into_iter()
            .map(|id| self.topic_by_id(id).name.clone())
            .collect()
    }

    /// Takes these brokers' slots and mappings out of a topic, and the topic away if nothing is left of it. The groups' own lists
    /// of topics are the caller's to keep. They come sorted. Says whether the topic is gone.
    pub(super) fn leave_topic(&mut self, id: TopicId, leaving: &[BrokerIndex]) -> bool {
        self.breather.breathe();
        for broker in leaving {
            self.groups.get_mut(*broker).declared.forget();
        }
        let stays = |broker: BrokerIndex| leaving.binary_search(&broker).is_err();
        let topic = self.topic_by_id(id);
        let name = topic.name.clone();
        let others = topic.slots.iter().filter(|slot| stays(slot.broker));
        let others: SmallVec<[Slot; 8]> = others.cloned().collect();
        let slots = self.slot_lists.get(&others);
        let topic = self.topic_mut(&name);
        topic.slots = slots;
        topic.mappings.retain(|mapping| stays(mapping.owner));
        let gone = topic.slots.is_empty() && topic.mappings.is_empty();
        if gone {
            self.working
                .topics
                .remove(self.topic_ids.hash(id), name.as_bytes());
            self.topic_ids.free.push(id);
        }
        gone
    }

    /// The same for brokers and a topic by name, their lists included.
    pub(super) fn drop_brokers_from_topic(&mut self, name: &TopicName, leaving: &[BrokerIndex]) {
        let Some(id) = self.working.topic(name.as_bytes()).map(|topic| topic.id) else {
            return;
        };
        let had = |broker: &BrokerIndex| self.groups.get_mut(*broker).topics.remove(id);
        let leaving: SmallVec<[BrokerIndex; 4]> = leaving.iter().copied().filter(had).collect();
        if !leaving.is_empty() {
            self.leave_topic(id, &leaving);
        }
    }

    /// Gives every topic of a broker another permission. Says how many topics that broker has.
    pub(super) fn change_perm(&mut self, broker: BrokerIndex, perm: impl Fn(i32) -> i32) -> usize {
        let mut count = 0;
        for name in self.topics_of(broker) {
            let Some(shape) = self.queues(&name, broker) else {
                continue;
            };
            let queues = Queues {
                declared: shape.declared,
                perm: perm(shape.perm),
            };
            self.set_queues(&name, broker, queues);
            count += 1;
        }
        count
    }

    pub(super) fn wipe_write_perm(&mut self, to: ReplyTo, broker_name: &str) {
        let count = self.change_perm_by_name(broker_name, |perm| perm & !PERM_WRITE);
        tracing::info!("wipe write perm of broker[{broker_name}], {count} topics");
        self.reply(
            to,
            Response::success().with_ext("wipeTopicCount", count.to_string()),
        );
    }

    pub(super) fn add_write_perm(&mut self, to: ReplyTo, broker_name: &str) {
        let count = self.change_perm_by_name(broker_name, |_| PERM_READ_WRITE);
        tracing::info!("add write perm of broker[{broker_name}], {count} topics");
        self.reply(
            to,
            Response::success().with_ext("addTopicCount", count.to_string()),
        );
    }

    fn change_perm_by_name(&mut self, broker_name: &str, perm: impl Fn(i32) -> i32) -> usize {
        let Some(index) = self.working.broker(broker_name).map(|entry| entry.index) else {
            return 0;
        };
        self.change_perm(index, perm)
    }

    /// 216: takes a topic away, everywhere or in one cluster. Unlike the original it takes the static-topic mappings along:
    /// nothing else would ever remove them (spec Q16).
    pub(super) fn delete_topic(&mut self, to: ReplyTo, name: &TopicName, cluster: Option<&str>) {
        let mut leaving = self.brokers_of(name);
        leaving.retain(|broker| {
            cluster.is_none_or(|cluster| *self.group(*broker).cluster == *cluster)
        });
        self.drop_brokers_from_topic(name, &leaving);
        tracing::info!(
            "deleteTopic, {name} in cluster {}",
            cluster.unwrap_or("<all>")
        );
        self.reply(to, Response::success());
    }

    /// Those that have a slot or a mapping, sorted.
    fn brokers_of(&self, name: &TopicName) -> SmallVec<[BrokerIndex; 4]> {
        let Some(topic) = self.working.topic(name.as_bytes()) else {
            return SmallVec::new();
        };
        let mut brokers: SmallVec<[BrokerIndex; 4]> =
            topic.slots.iter().map(|slot| slot.broker).collect();
        brokers.extend(topic.mappings.iter().map(|mapping| mapping.owner));
        brokers.sort_unstable();
        brokers.dedup();
        brokers
    }

    /// 217: the entries up to the first unknown broker; of a topic that does not exist yet all or none (spec 2.13).
    pub(super) fn register_topic(
        &mut self,
        to: ReplyTo,
        name: &TopicName,
        queues: &[(Arc<str>, QueueSettings)],
    ) {
        let index_of = |name: &str| self.working.broker(name).map(|entry| entry.index);
        let known: Vec<(BrokerIndex, QueueSettings)> = queues
            .iter()
            .map_while(|(broker, settings)| Some((index_of(broker)?, *settings)))
            .collect();
        if self.working.topic(name.as_bytes()).is_none()
            && self.working.topics.len() >= limits::TOPICS_MAX
        {
            let remark = format!(
                "this name server holds no more than {} topics",
                limits::TOPICS_MAX
            );
            self.reply(to, Response::error(ResponseCode::SystemError, remark));
            return;
        }
        if let Some((illegal, _)) = queues.get(known.len()) {
            tracing::warn!("Register topic contains illegal broker, {name} {illegal}");
        }
        let exists = self
            .working
            .topic(name.as_bytes())
            .is_some_and(|topic| !topic.slots.is_empty());
        if exists || known.len() == queues.len() {
            self.set_queues_of_each(name, &known);
        }
        self.reply(to, Response::success());
    }
}

/// What [`Registry::set_queues`] did.
#[derive(Debug)]
pub(super) enum SetQueues {
    Same,
    Added(Arc<QueueShape>),
    /// From, to.
    Changed(Arc<QueueShape>, Arc<QueueShape>),
}

/// See [`Registry::step`].
#[derive(Debug, Clone)]
struct Step {
    from: SlotList,
    broker: BrokerIndex,
    to: SlotList,
    /// What the broker had before, if anything.
    old: Option<Arc<QueueShape>>,
    new: Arc<QueueShape>,
}

/// How many steps are kept: a broker's topics have a few numbers of queues, and are held by a few sets of brokers.
const STEPS_KEPT: usize = 16;

/// The last steps, the newest last.
#[derive(Debug, Default)]
pub(super) struct Steps {
    kept: SmallVec<[Step; STEPS_KEPT]>,
}

impl Steps {
    fn get(&self, from: &SlotList, broker: BrokerIndex, queues: Queues) -> Option<&Step> {
        let Queues { declared, perm } = queues;
        self.kept.iter().rev().find(|step| {
            Arc::ptr_eq(&step.from, from)
                && step.broker == broker
                && (step.new.declared, step.new.perm) == (declared, perm)
        })
    }

    fn keep(&mut self, step: Step) {
        if self.kept.len() == STEPS_KEPT {
            self.kept.remove(0);
        }
        self.kept.push(step);
    }

    /// Forgets all: what nobody else uses can be freed, and a broker's place may get a new tenant.
    pub(super) fn clear(&mut self) {
        self.kept.clear();
    }
}

/// The queues that a broker has of a topic.
pub(super) fn queues_of(topic: &TopicEntry, broker: BrokerIndex) -> Option<&Arc<QueueShape>> {
    let slot = topic.slots.iter().find(|slot| slot.broker == broker)?;
    Some(&slot.queues)
}

/// Where a broker's slot is, or where it belongs.
fn slot_place(
    slots: &[Slot],
    broker: BrokerIndex,
    brokers: &super::snapshot::BrokerList,
) -> Result<usize, usize> {
    let name = &brokers.at(broker).name;
    slots.binary_search_by(|slot| brokers.at(slot.broker).name.cmp(name))
}
