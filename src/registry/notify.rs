//! `NOTIFY_MIN_BROKER_ID_CHANGE` (spec 3.7): tells the members of a group that another one leads now. Only an accelerator,
//! since brokers poll the group as well, and off by default.

use std::sync::Arc;

use bytes::Bytes;

use super::{Effect, Registry, entry::BrokerIndex};
use crate::protocol::{code::NOTIFY_MIN_BROKER_ID_CHANGE, encode};

/// Numbers our own requests.
#[derive(Debug, Default)]
pub(super) struct Notices {
    last_opaque: i32,
}

impl Registry {
    /// A member with a smaller id came: the others learn of it. A group of one tells that one.
    pub(super) fn notify_min_broker_id_lowered(
        &mut self,
        index: BrokerIndex,
        ha_server_addr: Option<&str>,
    ) {
        let group = self.group(index);
        let Some((_, first)) = group.first() else {
            return;
        };
        let everyone = group.addrs.len() == 1;
        let to = group
            .addrs
            .values()
            .filter(|addr| everyone || *addr != first)
            .cloned()
            .collect();
        self.notify(index, to, ha_server_addr.map(|addr| ("haBrokerAddr", addr)));
    }

    /// The member with the smallest id left: all that remain learn of it.
    pub(super) fn notify_min_broker_left(&mut self, index: BrokerIndex, offline: &str) {
        let to = self.group(index).addrs.values().cloned().collect();
        self.notify(index, to, Some(("offlineBrokerAddr", offline)));
    }

    fn notify(&mut self, index: BrokerIndex, to: Vec<Arc<str>>, cause: Option<(&str, &str)>) {
        let group = self.working.brokers.at(index);
        let Some((id, addr)) = group.first() else {
            return;
        };
        if !self.working.settings.notify_min_broker_id_changed {
            return;
        }
        tracing::info!(
            "min broker id changed to {id}, {} {addr}, notify {} members",
            group.name,
            to.len()
        );
        let id = id.to_string();
        let mut ext = Vec::from_iter(cause);
        ext.extend([("minBrokerAddr", &**addr), ("minBrokerId", &*id)]);
        self.notices.last_opaque = self.notices.last_opaque.wrapping_add(1);
        let frame =
            encode::oneway_request(NOTIFY_MIN_BROKER_ID_CHANGE, self.notices.last_opaque, &ext);
        self.effects.push(Effect::Notify {
            to,
            frame: Bytes::from(frame),
        });
    }
}
