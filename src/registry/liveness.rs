//! `broker_live_table`: which connections a broker lives by, and what happens when it falls silent (spec 3.4).

use std::{collections::BTreeSet, sync::Arc};

use smallvec::SmallVec;

use super::{
    Effect, Registry,
    command::{BindHeartbeat, ReplyTo},
};
use crate::{ids::ConnectionId, limits, time::Timestamp};

impl Registry {
    /// When [`Registry::handle_timeout`] wants to be called; never while no broker is live.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Timestamp> {
        self.next_scan_at
    }

    /// Expires silent brokers: those not heard of for longer than their timeout, `scanNotActiveBroker` of the original.
    /// Each is judged by its timestamp at this moment, so a heartbeat that came just in time counts (fault A11).
    ///
    /// A scan that comes very late tells of a pause of the whole process (a stopped virtual machine, a debugger): nobody could be
    /// heard meanwhile, and what brokers sent waits unread. So it is put off while the workers read, a few times at most.
    pub fn handle_timeout(&mut self, now: Timestamp) {
        let Some(due) = self.next_scan_at.filter(|at| *at <= now) else {
            return;
        };
        let paused = due.after(limits::SCAN_LATE_MAX) < now;
        if paused && self.scan_put_off < limits::SCAN_PUT_OFF_MAX {
            tracing::warn!(
                "nothing was done for {} ms: brokers get time to be heard before the silent ones are dropped",
                now.since(due).as_millis()
            );
            self.scan_put_off += 1;
            self.next_scan_at = Some(now.after(limits::SCAN_PUT_OFF));
            return;
        }
        self.scan_put_off = 0;
        if self.draining {
            self.next_scan_at = None;
            return;
        }
        let silent = |last: Timestamp, timeout| last.after(timeout) < now;
        let lives = self.working.live.iter();
        let expired: Vec<_> = lives
            .filter(|live| silent(live.last_heartbeat.get(), live.heartbeat_timeout))
            .cloned()
            .collect();
        for live in expired {
            let timeout = live.heartbeat_timeout.as_millis();
            tracing::warn!(
                "The broker channel expired, {} {} {timeout}ms",
                live.broker_name,
                live.addr
            );
            let connections = self.unbind_addr(&live.addr);
            self.depart(&live.addr);
            // A connection that other live brokers share (a broker container) stays: closing it would take them along.
            for connection in connections {
                if !self.carries_brokers(connection) {
                    self.effects.push(Effect::Close(connection));
                }
            }
        }
        self.next_scan_at = None;
        if self.working.live.len() > 0 {
            self.schedule_scan(now);
        }
    }

    /// Whether a live broker is bound to this connection.
    #[must_use]
    pub fn carries_brokers(&self, connection: ConnectionId) -> bool {
        self.connections.contains_key(&connection)
    }

    pub(super) fn schedule_scan(&mut self, now: Timestamp) {
        self.next_scan_at
            .get_or_insert_with(|| now.after(self.working.settings.scan_interval));
    }

    /// The interval may have changed: the next scan is one of the new length away, or where it was if that is sooner, for changes
    /// one after the other must not put it off for ever.
    pub(super) fn reschedule_scan(&mut self, now: Timestamp) {
        if let Some(scheduled) = self.next_scan_at.take() {
            self.schedule_scan(now);
            self.next_scan_at = self.next_scan_at.min(Some(scheduled));
        }
    }

    pub(super) fn next_generation(&mut self) -> u64 {
        self.last_generation += 1;
        self.last_generation
    }

    /// The broker lives by the connection it registers over. If that is another one than before it lives by no older one, and
    /// those over which it still heartbeats bind themselves again. Says whether it is another one.
    pub(super) fn bind_registration(&mut self, addr: &Arc<str>, connection: ConnectionId) -> bool {
        let bound = self.bound.get(addr);
        if bound.is_some_and(|bound| bound.registering == Some(connection)) {
            return false;
        }
        self.unbind_addr(addr);
        let bound = Bound {
            registering: Some(connection),
            ..Bound::default()
        };
        self.bound.insert(Arc::clone(addr), bound);
        self.connections
            .entry(connection)
            .or_default()
            .insert(Arc::clone(addr));
        true
    }

    /// The broker lives by this connection too, since it heartbeats over it (spec Q42, fault A17). Bound to the generation
    /// that the sender saw, so that an old heartbeat cannot attach itself to a later broker.
    pub(super) fn bind_heartbeat(&mut self, to: ReplyTo, binding: &BindHeartbeat) {
        let live = self.working.live_at(&binding.broker_addr);
        if let Some(addr) = live
            .filter(|live| live.generation == binding.generation)
            .map(|live| Arc::clone(&live.addr))
        {
            self.bind_beating(addr, to.connection);
        }
        self.effects.push(Effect::Reply(to, None));
    }

    fn bind_beating(&mut self, addr: Arc<str>, connection: ConnectionId) {
        let bound = self.bound.entry(Arc::clone(&addr)).or_default();
        if bound.contains(connection) {
            return;
        }
        // Never the registering one: strangers that heartbeat for a broker must not push out its own connection.
        let oldest = (bound.beating.len() >= limits::BEATING_CONNECTIONS_MAX)
            .then(|| bound.beating.remove(0));
        bound.beating.push(connection);
        if let Some(oldest) = oldest {
            forget(&mut self.connections, oldest, &addr);
        }
        self.connections.entry(connection).or_default().insert(addr);
    }

    /// Forgets a connection. Returns the brokers that lived by it alone.
    pub(super) fn unbind_connection(&mut self, connection: ConnectionId) -> Vec<Arc<str>> {
        let addrs = self.connections.remove(&connection).unwrap_or_default();
        let orphaned = addrs.into_iter().filter(|addr| {
            let Some(bound) = self.bound.get_mut(addr) else {
                return false;
            };
            bound.registering.take_if(|other| *other == connection);
            bound.beating.retain(|other| *other != connection);
            bound.registering.is_none() && bound.beating.is_empty()
        });
        orphaned.collect()
    }

    /// Forgets what connections an address lives by, and says which they were.
    pub(super) fn unbind_addr(&mut self, addr: &Arc<str>) -> Vec<ConnectionId> {
        let bound = self.bound.remove(addr).unwrap_or_default();
        let connections: Vec<_> = bound.registering.into_iter().chain(bound.beating).collect();
        for connection in &connections {
            forget(&mut self.connections, *connection, addr);
        }
        connections
    }
}

/// The connections that an address lives by.
#[derive(Debug, Default)]
pub(super) struct Bound {
    /// The one it registered over last, while that is open.
    registering: Option<ConnectionId>,
    /// Others over which it heartbeats, oldest first.
    beating: SmallVec<[ConnectionId; 1]>,
}

impl Bound {
    fn contains(&self, connection: ConnectionId) -> bool {
        self.registering == Some(connection) || self.beating.contains(&connection)
    }
}

type Connections = std::collections::HashMap<ConnectionId, BTreeSet<Arc<str>>>;

fn forget(connections: &mut Connections, connection: ConnectionId, addr: &Arc<str>) {
    if let Some(addrs) = connections.get_mut(&connection) {
        addrs.remove(addr);
        if addrs.is_empty() {
            connections.remove(&connection);
        }
    }
}
