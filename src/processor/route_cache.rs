//! Encoded routes at hand for the next who asks.
//!
//! A route's body depends on which brokers hold the topic with how many queues, and not on the topic's name. The topics of a
//! cluster mostly share one list of brokers and queues, so a few bodies answer most queries, and copying one in a piece takes a
//! fraction of the time that putting it together takes. Bodies by topic would not do: they would fill the processor's caches.

use std::sync::Arc;

use crate::{
    limits::{ROUTE_AT_HAND_LEN_MAX, ROUTES_AT_HAND_MAX},
    protocol::fastjson::Dialect,
    registry::query::{Basis, Route, RouteView, SlotList},
};

/// The bodies that one worker has at hand, at most a megabyte.
#[derive(Debug, Default)]
pub struct RouteCache {
    /// Of what all bodies are made, beside their slots.
    basis: Option<Basis>,
    places: Vec<Place>,
}

#[derive(Debug, Default)]
struct Place {
    /// The last list and dialect that had no body here, by its address; it gets one when it is asked for twice in a row. Routes that are all
    /// different would otherwise be copied here for nothing.
    missed: usize,
    kept: Option<Kept>,
}

#[derive(Debug)]
struct Kept {
    /// Held, so that its address means this list and no later one.
    slots: SlotList,
    dialect: Dialect,
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
            self.places.clear();
            self.places.resize_with(ROUTES_AT_HAND_MAX, Place::default);
        }
        // Lists are aligned, so the dialect has a bit of its own: peers of both kinds mostly ask one server.
        let key = Arc::as_ptr(slots).addr() | usize::from(view.dialect == Dialect::Strict);
        let place = &mut self.places[place(key)];
        if let Some(kept) = &place.kept
            && Arc::ptr_eq(&kept.slots, slots)
            && kept.dialect == view.dialect
        {
            out.extend_from_slice(&kept.body);
            return;
        }
        let start = out.len();
        route.write(view, out);
        let asked_before = std::mem::replace(&mut place.missed, key) == key;
        let body = &out[start..];
        if asked_before && body.len() <= ROUTE_AT_HAND_LEN_MAX {
            place.kept = Some(Kept {
                slots: Arc::clone(slots),
                dialect: view.dialect,
                body: body.to_vec(),
            });
        }
    }
}

/// Where the body of a list belongs, by the list's address and the dialect.
fn place(key: usize) -> usize {
    // Fibonacci hashing: the address's high bits hardly differ and its lowest are zero.
    let hash = (key as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    usize::from(hash.to_be_bytes()[0])
}

const _: () = assert!(
    ROUTES_AT_HAND_MAX == 1 << u8::BITS,
    "a place is a byte of a hash"
);
