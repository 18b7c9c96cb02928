//! Encoded routes at hand for the next who asks.
//!
//! A route's body depends on which brokers hold the topic with how many queues, and not on the topic's name. The topics of a
//! cluster mostly share one list of brokers and queues, so a few bodies answer most queries, and copying one in a piece takes a
//! fraction of the time that putting it together takes: 0.94 → 0.78 µs a hot query at depth 16 when it came, kernel and all;
//! `cargo bench --bench route` would notice the loss. Bodies by topic would not do: they would fill the processor's caches.

use std::sync::Arc;

use crate::{
    limits::{ROUTE_AT_HAND_LEN_MAX, ROUTES_AT_HAND_MAX},
    protocol::fastjson::Dialect,
    registry::query::{Basis, Route, RouteView, SlotList},
};

/// How many bodies a set holds. A list's address says which set is its own, and any place in that will do: with a place of their
/// own, some of fifty lists shared one and were put together and copied by turns, at each query (`cargo bench --bench route`).
const WAYS: usize = 16;
const SETS: usize = ROUTES_AT_HAND_MAX / WAYS;
const _: () = assert!(SETS * WAYS == ROUTES_AT_HAND_MAX && SETS <= 1 << u8::BITS);

/// The bodies that one worker has at hand, at most a megabyte.
#[derive(Debug, Default)]
pub struct RouteCache {
    /// Of what all bodies are made, beside their slots.
    basis: Option<Basis>,
    sets: Vec<Set>,
}

#[derive(Debug, Default)]
struct Set {
    /// Lists with their dialect, by the lists' addresses: those of the bodies `kept`, and those that were asked for and have no
    /// body yet. Such a list gets one when it is asked for again and no other has taken its place. Routes that are all different
    /// would otherwise be copied here for nothing.
    keys: [usize; WAYS],
    kept: [Option<Kept>; WAYS],
    /// Which body goes next, when there is one in every place.
    oldest: usize,
}

#[derive(Debug)]
struct Kept {
    /// Held, so that its address means this list and no later one.
    _slots: SlotList,
    body: Vec<u8>,
}

impl RouteCache {
    /// Appends a route's body.
    pub(super) fn write(&mut self, route: &Route<'_>, view: RouteView<'_>, out: &mut Vec<u8>) {
        let Some(slots) = route.slots_if_all_that_counts(view) else {
            return route.write(view, out);
        };
        if self.basis.as_ref().is_none_or(|basis| !basis.is_of(route)) {
            self.basis = Some(Basis::new(route));
            self.sets.clear();
            self.sets.resize_with(SETS, Set::default);
        }
        // Lists are aligned, so the dialect has a bit of its own: peers of both kinds mostly ask one server.
        let key = Arc::as_ptr(slots).addr() | usize::from(view.dialect == Dialect::Strict);
        let set = &mut self.sets[set_of(key)];
        let way = set.keys.iter().position(|other| *other == key);
        if let Some(Some(kept)) = way.map(|way| &set.kept[way]) {
            out.extend_from_slice(&kept.body);
            return;
        }
        let start = out.len();
        route.write(view, out);
        let body = &out[start..];
        match way {
            Some(way) if body.len() <= ROUTE_AT_HAND_LEN_MAX => {
                set.kept[way] = Some(Kept {
                    _slots: Arc::clone(slots),
                    body: body.to_vec(),
                });
            }
            Some(_) => {}
            None => set.note(key),
        }
    }
}

impl Set {
    /// A list is asked for that has no body and is not noted either.
    fn note(&mut self, key: usize) {
        let free = self.keys.iter().position(|key| *key == 0);
        let way = free.or_else(|| self.kept.iter().position(Option::is_none));
        let way = way.unwrap_or_else(|| {
            self.oldest = (self.oldest + 1) % WAYS;
            self.oldest
        });
        self.keys[way] = key;
        self.kept[way] = None;
    }
}

/// Where the body of a list belongs, by the list's address and the dialect.
fn set_of(key: usize) -> usize {
    // Fibonacci hashing: the address's high bits hardly differ and its lowest are zero.
    let hash = (key as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    usize::from(hash.to_be_bytes()[0]) % SETS
}
