//! Every question that can be asked of a server, held against the model's answers.

use waypost::protocol::command::RemotingCommand;

use super::{
    machine::Verdict,
    model::Model,
    request::{Form, Name, Registration, Request, RouteQuery},
    script::{ADDRS, CLUSTERS, KEYS, NAMES, NAMESPACES, TOPICS, ZONES},
    settings::USED,
};
use crate::world::{World, ask, conn, read_reply};

/// Who asks: no peer of a script.
const ASKER: u32 = 900;

/// The questions, each with its frame.
#[derive(Debug)]
pub(super) struct Checks(Vec<(Request, Vec<u8>)>);

impl Checks {
    pub(super) fn new() -> Self {
        let mut questions = vec![
            Request::ClusterInfo,
            Request::AllTopics,
            Request::SystemTopics,
            Request::GetConfig,
        ];
        questions.extend([311, 312, 313].map(Request::UnitTopics));
        questions.extend(CLUSTERS.map(Request::TopicsOfCluster));
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
        let framed = |question: Request| {
            let frame = question.ask().wire();
            (question, frame)
        };
        Self(questions.into_iter().map(framed).collect())
    }

    /// Asks the server everything, as if it did not say goodbye.
    pub(super) fn compare(&self, world: &mut World, model: &Model) -> Verdict {
        let counts = world.snapshot.counts();
        let mut topics: Vec<Name> = model
            .topics
            .keys()
            .chain(model.mappings.keys())
            .copied()
            .collect();
        topics.sort_unstable();
        topics.dedup();
        let expected = (topics.len(), model.groups.len(), model.live.len());
        if counts != expected {
            return Err(format!(
                "{counts:?} topics, groups and addresses instead of {expected:?}"
            ));
        }
        look_at_owners(model);
        let goes_away = std::mem::take(&mut world.go_away);
        let verdict = self.ask_everything(world, model);
        world.go_away = goes_away;
        verdict
    }

    fn ask_everything(&self, world: &mut World, model: &Model) -> Verdict {
        let now = world.now.as_millis();
        let mut out = Vec::new();
        for (question, frame) in &self.0 {
            out.clear();
            let request = RemotingCommand::decode(&frame[4..]).expect("a frame of ours");
            world.execute(conn(ASKER), &request, &mut out);
            let reply = read_reply(&out);
            let answer = model.read_calmly(question, now);
            if !answer.allows(&reply) {
                return Err(format!(
                    "{question:?} is answered with {reply:?} instead of {answer:?}"
                ));
            }
        }
        Ok(())
    }

    /// A server to which the live brokers register anew answers the same.
    pub(super) fn compare_rebuilt(&self, world: &World, model: &Model) -> Verdict {
        let mut rebuilt = rebuilt(world, model);
        let verdict = self.ask_everything(&mut rebuilt, model);
        verdict.map_err(|text| format!("a rebuilt server differs: {text}"))
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
