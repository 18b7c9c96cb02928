//! Every question that can be asked of a server, held against the model's answers.

use std::{collections::BTreeSet, sync::Arc};

use waypost::{ids::ConnectionId, protocol::command::RemotingCommand, registry::RouteSnapshot};

use super::{
    answer::Answer,
    kept::{Kept, SWEEP_MIN},
    machine::Verdict,
    model::Model,
    request::{Form, Name, Registration, Request, RouteQuery},
    script::{ADDRS, CLUSTERS, KEYS, NAMES, NAMESPACES, TOPICS, ZONES},
    settings::USED,
};
use crate::world::{World, ask, conn, read_reply};

/// Who asks: no peer of a script.
const ASKER: u32 = 900;

/// Every question, and what was seen when they were last asked.
#[derive(Debug)]
pub(super) struct Checks {
    questions: Vec<Question>,
    /// Lists of topics, for which a server looks through all of them: one a comparison in turn, and all in the end.
    lists: Vec<Question>,
    next_list: usize,
    seen: Option<(Arc<RouteSnapshot>, Model)>,
    /// What was rebuilt last.
    rebuilt: Option<Model>,
    /// The most topics that there were at a time.
    topics_most: usize,
}

#[derive(Debug)]
struct Question {
    request: Request,
    frame: Vec<u8>,
    /// An answer of the server's that was right, and what it was held against: most do not change from turn to turn.
    right: Option<(Vec<u8>, Answer)>,
}

impl Checks {
    pub(super) fn new() -> Self {
        let mut questions = vec![
            Request::ClusterInfo,
            Request::SystemTopics,
            Request::GetConfig,
        ];
        let mut lists = vec![Request::AllTopics];
        lists.extend([311, 312, 313].map(Request::UnitTopics));
        lists.extend(CLUSTERS.map(Request::TopicsOfCluster));
        questions.extend(NAMES.map(|name| Request::Members("c1", name)));
        questions.extend(NAMESPACES.map(Request::ListKv));
        questions.extend(
            NAMESPACES
                .iter()
                .flat_map(|space| KEYS.map(|key| Request::GetKv(space, key))),
        );
        for (number, topic) in TOPICS.into_iter().enumerate() {
            let zone = ZONES[number % ZONES.len()];
            for (version, zone) in [(479, None), (399, Some(zone))] {
                questions.push(Request::Route(RouteQuery {
                    topic,
                    version,
                    zone,
                }));
            }
        }
        let framed = |request: Request| Question {
            frame: request.ask().wire(),
            request,
            right: None,
        };
        Self {
            questions: questions.into_iter().map(framed).collect(),
            lists: lists.into_iter().map(framed).collect(),
            next_list: 0,
            seen: None,
            rebuilt: None,
            topics_most: 0,
        }
    }

    /// Asks the server everything, as if it did not say goodbye, unless neither of the two has changed.
    pub(super) fn compare(&mut self, world: &mut World, model: &Model) -> Verdict {
        let seen = self.seen.as_ref();
        let is_seen = seen.is_some_and(|(snapshot, tables)| {
            Arc::ptr_eq(snapshot, &world.snapshot) && tables.shows_the_same(model)
        });
        if is_seen {
            return Ok(());
        }
        let counts = world.snapshot.counts();
        let topics = topics(model).len();
        self.topics_most = self.topics_most.max(topics);
        let expected = (topics, model.groups.len(), model.live.len());
        if counts != expected {
            return Err(format!(
                "{counts:?} topics, groups and addresses instead of {expected:?}"
            ));
        }
        look_at_owners(model);
        let goes_away = std::mem::take(&mut world.go_away);
        let list = self.next_list % self.lists.len();
        self.next_list += 1;
        let verdict = ask_all(&mut self.questions, world, model)
            .and_then(|()| ask_all(&mut self.lists[list..=list], world, model));
        world.go_away = goes_away;
        self.seen = Some((Arc::clone(&world.snapshot), model.clone()));
        verdict
    }

    /// Asks for every list.
    pub(super) fn compare_lists(&mut self, world: &mut World, model: &Model) -> Verdict {
        let goes_away = std::mem::take(&mut world.go_away);
        let verdict = ask_all(&mut self.lists, world, model);
        world.go_away = goes_away;
        verdict
    }

    /// A server to which the live brokers register anew answers the same, unless that has been seen. Of the lists it is asked for
    /// one in turn.
    pub(super) fn compare_rebuilt(&mut self, world: &World, model: &Model) -> Verdict {
        let is_seen = self.rebuilt.as_ref();
        if is_seen.is_some_and(|tables| tables.shows_the_same(model)) {
            return Ok(());
        }
        let mut rebuilt = rebuilt(world, model);
        let list = self.next_list % self.lists.len();
        let is_current = self.seen.as_ref();
        let is_current = is_current.is_some_and(|(_, tables)| tables.shows_the_same(model));
        let verdict = if is_current {
            ask_again(&self.questions, &mut rebuilt)
        } else {
            ask_all(&mut self.questions, &mut rebuilt, model)
        };
        let lists = &mut self.lists[list..=list];
        let verdict = verdict.and_then(|()| ask_all(lists, &mut rebuilt, model));
        self.rebuilt = Some(model.clone());
        verdict.map_err(|text| format!("a rebuilt server differs: {text}"))
    }

    /// What the writer keeps beside the tables is of what there is: bindings, groups, numbers of topics, the topics of each group,
    /// and, until they are swept, twice as many shared values as were ever in use at once.
    pub(super) fn look_at_what_is_kept(&self, world: &World, model: &Model) -> Verdict {
        let kept = Kept::of(&world.registry);
        let lived_by = model.live.values().flat_map(|live| live.connections());
        let lived_by: BTreeSet<ConnectionId> = lived_by.collect();
        let of_groups = model.groups.keys().map(|name| topics_of(model, name).len());
        let expected = Kept {
            bound: model.live.len(),
            connections: lived_by.len(),
            groups: model.groups.len(),
            topics: topics(model).len(),
            topics_of_groups: of_groups.sum(),
            ..kept
        };
        if kept != expected {
            return Err(format!("the writer keeps {kept:?} instead of {expected:?}"));
        }
        // One list more is that of no brokers.
        let shared_max = SWEEP_MIN.max(2 * (self.topics_most + 1));
        if kept.slot_lists.max(kept.shapes_of_a_group) > shared_max {
            return Err(format!("the writer keeps {kept:?}, {shared_max} at most"));
        }
        Ok(())
    }

    /// What is stored of each live address (322). A heartbeat, so it comes last.
    pub(super) fn compare_versions(&self, world: &mut World, model: &Model) -> Verdict {
        world.go_away = false;
        for addr in ADDRS {
            let live = model.live.get(addr);
            let cluster = live.map_or(CLUSTERS[0], |live| live.cluster);
            let theirs = (0, 1, 1);
            let question = Request::DataVersion(cluster, addr, theirs);
            let reply = world.send_heartbeat(ASKER, &question.ask());
            let answer = Model::version_answer(theirs, live.map(|live| live.version));
            if !answer.allows(&reply) {
                return Err(format!(
                    "{question:?} is answered with {reply:?} instead of {answer:?}"
                ));
            }
        }
        Ok(())
    }
}

/// The topics that have a queue or a mapping.
fn topics(model: &Model) -> BTreeSet<Name> {
    let topics = model.topics.keys().chain(model.mappings.keys());
    topics.copied().collect()
}

/// Those of them in which a group has a part.
fn topics_of(model: &Model, name: Name) -> BTreeSet<Name> {
    let topics = model.topics.iter();
    let with_queues = topics.filter(|(_, queues)| queues.contains_key(name));
    let with_mappings = model.mappings.iter().filter(|(_, mappings)| {
        let mut owners = mappings.values().map(|(owner, _)| *owner);
        owners.any(|owner| owner == name)
    });
    let with_queues = with_queues.map(|(topic, _)| *topic);
    with_queues
        .chain(with_mappings.map(|(topic, _)| *topic))
        .collect()
}

/// Puts questions to a server; an answer that was right before need not be read again.
fn ask_all(questions: &mut [Question], world: &mut World, model: &Model) -> Verdict {
    let now = world.now.as_millis();
    for question in questions {
        let reply = question.put_to(world);
        let pair = (reply, model.read_calmly(&question.request, now));
        if question.right.as_ref() != Some(&pair) {
            question.judge(&pair.0, &pair.1)?;
            question.right = Some(pair);
        }
    }
    Ok(())
}

/// Puts questions to a server, the right answers to which are at hand.
fn ask_again(questions: &[Question], world: &mut World) -> Verdict {
    for question in questions {
        let reply = question.put_to(world);
        let (right, answer) = question.right.as_ref().expect("all were just asked");
        if reply != *right {
            question.judge(&reply, answer)?;
        }
    }
    Ok(())
}

impl Question {
    fn put_to(&self, world: &mut World) -> Vec<u8> {
        let mut reply = Vec::new();
        let command = RemotingCommand::decode(&self.frame[4..]).expect("a frame of ours");
        world.execute(conn(ASKER), &command, None, &mut reply);
        reply
    }

    fn judge(&self, reply: &[u8], answer: &Answer) -> Verdict {
        let (request, reply) = (&self.request, read_reply(reply));
        if answer.allows(&reply) {
            return Ok(());
        }
        Err(format!(
            "{request:?} is answered with {reply:?} instead of {answer:?}"
        ))
    }
}

/// Every address that is shown belongs to one group and is live there.
fn look_at_owners(model: &Model) {
    let mut shown = Vec::new();
    for (name, group) in &model.groups {
        assert!(!group.addrs.is_empty(), "{name} has no address");
        for addr in group.addrs.values() {
            assert!(
                model.live[addr].name == *name,
                "{addr} is not live as {name}"
            );
            shown.push(*addr);
        }
    }
    let count = shown.len();
    shown.sort_unstable();
    shown.dedup();
    assert_eq!(shown.len(), count, "an address is shown twice");
}

/// A server that gets what the model holds by a way of its own: a helper registers each group with its mappings, then the
/// members come, the helper leaves, and the queues are set one by one.
fn rebuilt(world: &World, model: &Model) -> World {
    let settings = &model.stored.settings;
    let mut rebuilt = match settings.text("waypost.brokerNameConflict") {
        "" => World::new(),
        word => World::with(&format!("waypost.brokerNameConflict={word}")),
    };
    rebuilt.now = world.now;
    for (namespace, table) in &model.stored.kv {
        assert_eq!(rebuilt.code(&Request::PutKv(namespace, "-", None).ask()), 0);
        for (key, value) in table {
            assert_eq!(
                rebuilt.code(&Request::PutKv(namespace, key, Some(value)).ask()),
                0
            );
        }
    }
    for (name, group) in &model.groups {
        let member = |id: i64, addr: Name| Registration {
            cluster: group.cluster,
            name,
            id,
            addr,
            topics: Vec::new(),
            version: model.live.get(addr).map_or((0, 0, 0), |live| live.version),
            acting: Some(group.acting),
            zone: group.zone,
            timeout_millis: None,
            filter_servers: Some(group.filter_servers.get(addr).cloned().unwrap_or_default()),
            mappings: Vec::new(),
            form: Form::Json,
            padding: 0,
            checksum: false,
            fault: None,
        };
        let owned = model.mappings.values().flat_map(|shown| shown.values());
        let owned = owned
            .filter(|(owner, _)| owner == name)
            .map(|(_, mapping)| *mapping);
        for mapping in owned {
            let helper = Registration {
                mappings: vec![mapping],
                ..member(0, "helper:1")
            };
            register(&mut rebuilt, helper);
        }
        register(&mut rebuilt, member(0, "helper:1"));
        for (id, addr) in &group.addrs {
            register(&mut rebuilt, member(*id, addr));
        }
        let leaves = Request::Unregister(group.cluster, name, 0, "helper:1");
        assert_eq!(rebuilt.code(&leaves.ask()), 0);
    }
    for (topic, queues) in &model.topics {
        let data = queues.iter().map(|(name, queue)| {
            let declared = queue.declared;
            serde_json::json!({"brokerName": name, "perm": queue.perm, "readQueueNums": declared.queues,
                "writeQueueNums": declared.queues, "topicSysFlag": declared.flag})
        });
        let body = serde_json::json!({"queueDatas": data.collect::<Vec<_>>()});
        assert_eq!(
            rebuilt.code(&ask(217).ext("topic", topic).body(body.to_string())),
            0
        );
    }
    let lines = USED.map(|key| format!("{key}={}\n", settings.text(key)));
    assert_eq!(rebuilt.code(&ask(318).body(lines.concat())), 0);
    rebuilt
}

fn register(world: &mut World, broker: Registration) {
    let request = Request::Register(Box::new(broker));
    assert_eq!(world.code(&request.ask()), 0, "{request:?}");
}
