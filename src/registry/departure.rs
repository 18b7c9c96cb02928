//! How brokers leave: by their own word (spec 3.5), with their connection (3.6), by silence (3.4, see [`super::liveness`]).
//! Whatever the cause, one address leaves at a time and each leaving is complete in itself (fault A12).

use std::sync::Arc;

use super::{
    Registry,
    command::{BrokerIdentity, ReplyTo},
    entry::PERM_WRITE,
};
use crate::{ids::ConnectionId, protocol::command::Response};

impl Registry {
    /// Code 104. Matches by address, not by id, which moves (fault A10), and only the broker that the request names: an address
    /// that has since registered under another name or cluster stays. Always answered with success (spec 2.4, Q33).
    pub(super) fn unregister(&mut self, to: ReplyTo, identity: &BrokerIdentity) {
        let live = self
            .working
            .live_broker(&identity.cluster_name, &identity.broker_addr);
        let known = live.is_some_and(|live| live.broker_name == identity.broker_name);
        tracing::info!(
            "unregisterBroker, remove from brokerLiveTable {}, BrokerIdentityInfo [clusterName={}, brokerAddr={}]",
            if known { "OK" } else { "Failed" },
            identity.cluster_name,
            identity.broker_addr
        );
        if known {
            self.depart(&identity.broker_addr);
        }
        self.reply(to, Response::success());
    }

    /// Every broker that lives by this connection alone leaves (spec 3.6, Q7).
    pub(super) fn connection_closed(&mut self, connection: ConnectionId) {
        let orphaned = self.unbind_connection(connection);
        if self.draining {
            return;
        }
        for addr in orphaned {
            tracing::info!(
                "the broker's channel destroyed, submit the unregister request at once, {addr}"
            );
            self.depart(&addr);
        }
    }

    /// Takes an address out of every table, whatever refers to it.
    pub(super) fn depart(&mut self, addr: &Arc<str>) {
        self.unbind_addr(addr);
        let Some(live) = self
            .working
            .live
            .remove(self.working.hasher.hash(addr.as_bytes()), addr.as_bytes())
        else {
            return;
        };
        self.changed = true;
        let Some(group) = self.working.broker(&live.broker_name).cloned() else {
            return;
        };
        if !group.addrs.values().any(|member| member == addr) {
            return; // another address has taken its id since (spec Q6)
        }
        if group.addrs.len() == 1 {
            self.remove_group(group.index);
            return;
        }
        let led = group.first().is_some_and(|(_, first)| first == addr);
        self.edit_group(group.index, |group| {
            group.addrs.retain(|_, member| member != addr);
            group.filter_servers.remove(addr);
        });
        let group = Arc::clone(self.group(group.index));
        if group.enable_acting_master && !group.has_master() {
            self.change_perm(group.index, |perm| perm & !PERM_WRITE);
        }
        if group.enable_acting_master && led {
            self.notify_min_broker_left(group.index, addr);
        }
    }
}
