//! What the model answers: reads of its tables (spec 2.6 to 2.15, 3.8, 7.2).

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use super::{
    answer::Answer,
    model::{Group, Model},
    request::{Name, Request, RouteQuery, Version, data_version},
};

/// The first version that reads strict JSON (spec 1.6).
const STRICT_JSON: i32 = 401;
const NOT_REWRITTEN: &str = "rmq_sys_SYNC_BROKER_MEMBER_";
const UNIT: i32 = 1;
const UNIT_SUB: i32 = 2;

/// Whether the server is about to stop and says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mood {
    Calm,
    Goodbye,
}

impl Model {
    fn mood(&self) -> Mood {
        if self.says_goodbye {
            Mood::Goodbye
        } else {
            Mood::Calm
        }
    }

    /// The answer to a request that changes nothing; `None` for others.
    pub(super) fn read(&self, request: &Request, now: u64) -> Option<Answer> {
        let answer = match request {
            Request::Route(query) => self.route(*query, now, self.mood()),
            Request::ClusterInfo => self.cluster_info(),
            Request::Members(cluster, name) => self.members(cluster, name),
            Request::AllTopics => self.list("enableAllTopicList", |_| true),
            Request::TopicsOfCluster(cluster) => self.list("enableTopicList", |topic| {
                let mut brokers = self.topics[topic].keys();
                brokers.any(|name| self.groups[name].cluster == *cluster)
            }),
            Request::UnitTopics(code) => self.unit_topics(*code),
            Request::SystemTopics => self.system_topics(),
            Request::GetKv(namespace, key) => {
                let value = self
                    .stored
                    .kv
                    .get(namespace)
                    .and_then(|table| table.get(key));
                match value {
                    Some(value) => Answer::ok().ext("value", value),
                    None => Answer::error(
                        22,
                        format!("No config item, Namespace: {namespace} Key: {key}"),
                    ),
                }
            }
            Request::ListKv(namespace) => match self.stored.kv.get(namespace) {
                Some(table) => Answer::ok().table(table),
                None => Answer::error(22, format!("No config item, Namespace: {namespace}")),
            },
            Request::GetConfig => Answer::ok().text(self.stored.settings.shown()),
            Request::Unknown(code) => {
                Answer::error(3, format!(" request type {code} not supported"))
            }
            Request::Register(_)
            | Request::Unregister(..)
            | Request::Heartbeat(..)
            | Request::DataVersion(..)
            | Request::WipeWritePerm(_)
            | Request::AddWritePerm(_)
            | Request::DeleteTopic(..)
            | Request::RegisterTopic(..)
            | Request::PutKv(..)
            | Request::DeleteKv(..)
            | Request::UpdateConfig(_) => return None,
        };
        Some(answer)
    }

    /// What a reader is told that is not sent away.
    pub(super) fn read_calmly(&self, question: &Request, now: u64) -> Answer {
        if let Request::Route(query) = question {
            return self.route(*query, now, Mood::Calm);
        }
        let answer = self.read(question, now);
        answer.expect("a question changes nothing")
    }

    fn route(&self, query: RouteQuery, now: u64, mood: Mood) -> Answer {
        let settings = &self.stored.settings;
        let wait_millis = settings
            .text("waitSecondsForService")
            .parse::<u64>()
            .expect("a number")
            * 1000;
        if settings.is("needWaitForService") && now < self.started + wait_millis {
            return Answer::error(1, "name server not ready");
        }
        let topic = query.topic;
        let Some(queues) = self.topics.get(topic) else {
            let text = format!(
                "No topic route info in name server for the topic: {topic}\nSee https://rocketmq.apache.org/docs/bestPractice/06FAQ for further details."
            );
            return match mood {
                Mood::Calm => Answer::error(17, text),
                Mood::Goodbye => Answer::failure(1),
            };
        };
        let may_act = settings.is("supportActingMaster") && !topic.starts_with(NOT_REWRITTEN);
        let (mut broker_datas, mut filter_servers, mut queue_datas) =
            (Vec::new(), Map::new(), Vec::new());
        for (name, queue) in queues {
            let group = &self.groups[name];
            let shown = group.shown(may_act && !queue.is_writable());
            if query
                .zone
                .is_some_and(|zone| !is_in_zone(group, &shown, zone))
            {
                continue;
            }
            broker_datas.push(broker_data(name, group, &shown));
            for (addr, servers) in &group.filter_servers {
                filter_servers.insert((*addr).into(), json!(servers));
            }
            let declared = queue.declared;
            queue_datas.push(
                json!({"brokerName": name, "perm": queue.perm, "readQueueNums": declared.queues,
                "topicSysFlag": declared.flag, "writeQueueNums": declared.queues}),
            );
        }
        let mut body = json!({"brokerDatas": broker_datas, "filterServerTable": filter_servers, "queueDatas": queue_datas});
        let order = self
            .stored
            .kv
            .get("ORDER_TOPIC_CONFIG")
            .and_then(|table| table.get(topic));
        if let Some(order) = order.filter(|_| settings.is("orderMessageEnable")) {
            body["orderTopicConf"] = (*order).into();
        }
        if let Some(mappings) = self.mappings.get(topic) {
            let shown = mappings
                .iter()
                .map(|(name, (_, mapping))| ((*name).to_string(), mapping.json()));
            body["topicQueueMappingByBroker"] = shown.collect::<Map<_, _>>().into();
        }
        if query.version >= STRICT_JSON {
            Answer::ok().strict(body)
        } else {
            Answer::ok().plain(body)
        }
    }

    fn cluster_info(&self) -> Answer {
        let mut clusters = BTreeMap::<Name, BTreeSet<Name>>::new();
        for (name, group) in &self.groups {
            clusters.entry(group.cluster).or_default().insert(name);
        }
        let groups = self.groups.iter();
        let groups = groups
            .map(|(name, group)| ((*name).to_string(), broker_data(name, group, &group.addrs)));
        let groups = Value::from(groups.collect::<Map<_, _>>());
        Answer::ok().plain(json!({"brokerAddrTable": groups, "clusterAddrTable": clusters}))
    }

    fn members(&self, cluster: Name, name: Name) -> Answer {
        let addrs = self
            .groups
            .get(name)
            .map(|group| group.addrs.clone())
            .unwrap_or_default();
        let group =
            json!({"brokerAddrs": ids_as_text(&addrs), "brokerName": name, "cluster": cluster});
        Answer::ok().plain(json!({ "brokerMemberGroup": group }))
    }

    fn list(&self, switch: &str, wanted: impl Fn(Name) -> bool) -> Answer {
        if !self.stored.settings.is(switch) {
            return Answer::error(1, "disable");
        }
        let topics = self.topics.keys().copied().filter(|topic| wanted(topic));
        Answer::ok().names(topics, BTreeSet::new())
    }

    /// By the flag of the first broker, in the order of their names (spec 2.11).
    fn unit_topics(&self, code: i32) -> Answer {
        self.list("enableTopicList", |topic| {
            let first = self.topics[topic].values().next();
            let flag = first.expect("a topic has queues").declared.flag;
            let has = |bit| flag & bit != 0;
            match code {
                311 => has(UNIT),
                312 => has(UNIT_SUB),
                _ => has(UNIT_SUB) && !has(UNIT),
            }
        })
    }

    fn system_topics(&self) -> Answer {
        let clusters: BTreeSet<Name> = self.groups.values().map(|group| group.cluster).collect();
        let masters = self.groups.values().filter_map(|group| group.addrs.get(&0));
        let masters: BTreeSet<String> = masters.map(|addr| (*addr).to_string()).collect();
        let members = self.groups.values().flat_map(|group| group.addrs.values());
        let members = members.map(|addr| (*addr).to_string());
        let addrs = if masters.is_empty() {
            members.collect()
        } else {
            masters
        };
        Answer::ok().names(
            clusters.into_iter().chain(self.groups.keys().copied()),
            addrs,
        )
    }

    /// The answer to 322.
    pub(super) fn version_answer(theirs: Version, ours: Option<Version>) -> Answer {
        let changed = ours != Some(theirs);
        let answer = Answer::ok().ext("changed", if changed { "true" } else { "false" });
        match ours {
            Some(ours) => answer.strict(data_version(ours, true)),
            None => answer,
        }
    }
}

fn ids_as_text(addrs: &BTreeMap<i64, Name>) -> BTreeMap<String, Name> {
    addrs
        .iter()
        .map(|(id, addr)| (id.to_string(), *addr))
        .collect()
}

fn broker_data(name: Name, group: &Group, addrs: &BTreeMap<i64, Name>) -> Value {
    let mut data = json!({"brokerAddrs": ids_as_text(addrs), "brokerName": name, "cluster": group.cluster,
        "enableActingMaster": group.acting});
    if let Some(zone) = group.zone {
        data["zoneName"] = zone.into();
    }
    data
}

/// By what is shown, an acting master included.
fn is_in_zone(group: &Group, shown: &BTreeMap<i64, Name>, zone: Name) -> bool {
    !shown.contains_key(&0) || group.zone.is_some_and(|own| own.eq_ignore_ascii_case(zone))
}
