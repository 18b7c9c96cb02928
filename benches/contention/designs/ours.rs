//! Ours: one thread owns the registry and publishes snapshots; a reader loads the newest and puts encoded pieces side by side.
//!
//! Topics are looked up one at a time and each answer is put together anew: what a worker saves by looking up together what came
//! together, and by keeping the bodies that many topics share, is not here.

use std::borrow::Cow;

use waypost::{
    protocol::{
        code::{RequestCode, version},
        command::{ExtFields, FLAG_ONEWAY, RemotingCommand},
        fastjson::Dialect,
    },
    registry::{KvTable, RouteSnapshot, command::RegisterBroker, query::RouteView},
    sync::Subscriber,
    time::Timestamp,
};

use super::{Design, LiveKey, Reader};
use crate::filled::{self, Desk, Filled};

pub(crate) struct Ours {
    filled: Filled,
    /// The snapshots that heartbeats are looked up in, as a worker does it: they do not come to the writer.
    snapshots: Subscriber<RouteSnapshot>,
    desk: Desk,
}

impl Ours {
    pub(crate) fn empty() -> Self {
        let filled = Filled::empty(KvTable::default());
        Self {
            snapshots: filled.subscribe(),
            filled,
            desk: Desk::default(),
        }
    }
}

impl Design for Ours {
    fn reader(&self) -> Box<dyn Reader> {
        Box::new(Snapshots(self.filled.subscribe()))
    }

    fn heartbeat(&mut self, broker: &LiveKey, now: Timestamp) {
        let mut ext = ExtFields::default();
        ext.push("clusterName".into(), Cow::Borrowed(&broker.cluster));
        ext.push("brokerAddr".into(), Cow::Borrowed(&broker.addr));
        let request = RemotingCommand {
            code: RequestCode::BrokerHeartbeat as i32,
            version: version::OURS,
            flag: FLAG_ONEWAY,
            ext,
            ..RemotingCommand::default()
        };
        // That the connection is to be bound to the broker is asked for once and costs the writer's time, not this.
        filled::process(
            &request,
            self.snapshots.load(),
            now,
            &mut self.desk,
            &mut Vec::new(),
        );
    }

    fn register(&mut self, registration: Box<RegisterBroker>, now: Timestamp) {
        self.filled.register(registration, now);
        // A version that this thread held on to could not be freed.
        self.snapshots.load();
    }
}

struct Snapshots(Subscriber<RouteSnapshot>);

impl Reader for Snapshots {
    fn look_up(&mut self, topic: &str, out: &mut Vec<u8>) -> bool {
        let Some(route) = self.0.load().route(topic) else {
            return false;
        };
        let view = RouteView {
            dialect: Dialect::Strict,
            zone: None,
        };
        route.write(view, out);
        true
    }
}
