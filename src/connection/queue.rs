//! A queue that a connection can leave from the middle.
//!
//! Peers decide how many of them wait and when they go away: neither may cost more the more there are.

use std::collections::BTreeMap;

use crate::ids::ConnectionId;

/// First come, first served, at most once a connection.
#[derive(Debug)]
pub struct Queue<T> {
    /// By arrival.
    entries: BTreeMap<u64, (ConnectionId, T)>,
    arrivals: BTreeMap<ConnectionId, u64>,
    next_arrival: u64,
}

impl<T> Default for Queue<T> {
    fn default() -> Self {
        Self {
            entries: BTreeMap::new(),
            arrivals: BTreeMap::new(),
            next_arrival: 0,
        }
    }
}

impl<T> Queue<T> {
    /// Whether nobody waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Whether this connection waits.
    #[must_use]
    pub fn contains(&self, id: ConnectionId) -> bool {
        self.arrivals.contains_key(&id)
    }

    /// A connection that does not wait yet comes last.
    ///
    /// # Panics
    ///
    /// When it waits already.
    pub fn push_back(&mut self, id: ConnectionId, entry: T) {
        let arrival = self.next_arrival;
        self.next_arrival += 1;
        let before = self.arrivals.insert(id, arrival);
        assert!(before.is_none(), "a connection waits once");
        self.entries.insert(arrival, (id, entry));
    }

    /// Who came first.
    #[must_use]
    pub fn front(&self) -> Option<&(ConnectionId, T)> {
        self.entries.first_key_value().map(|(_, entry)| entry)
    }

    /// Who came first has its turn.
    pub fn pop_front(&mut self) -> Option<(ConnectionId, T)> {
        let (_, (id, entry)) = self.entries.pop_first()?;
        self.arrivals.remove(&id);
        Some((id, entry))
    }

    /// Who waits no longer, if it did.
    pub fn remove(&mut self, id: ConnectionId) {
        if let Some(arrival) = self.arrivals.remove(&id) {
            self.entries.remove(&arrival);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(slot: u32) -> ConnectionId {
        ConnectionId {
            worker: 0,
            slot,
            generation: 0,
        }
    }

    #[test]
    fn who_leaves_from_the_middle_is_not_served_and_comes_last_when_it_comes_again() {
        let mut queue = Queue::default();
        for slot in 0..4 {
            queue.push_back(id(slot), slot);
        }
        queue.remove(id(1));
        queue.remove(id(7));
        assert!(!queue.contains(id(1)));
        queue.push_back(id(1), 9);
        assert!(queue.contains(id(1)));
        assert_eq!(queue.front(), Some(&(id(0), 0)));
        let served: Vec<_> = std::iter::from_fn(|| queue.pop_front()).collect();
        assert_eq!(served, [(id(0), 0), (id(2), 2), (id(3), 3), (id(1), 9)]);
        assert!(queue.is_empty());
        assert!(!queue.contains(id(0)));
    }
}
