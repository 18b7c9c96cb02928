//! A worker's connections by slot. A slot's tenants are told apart by generation, so nothing meant for one reaches the next.

use crate::ids::ConnectionId;

/// The connections of one worker, of whatever kind.
#[derive(Debug)]
pub struct Connections<T> {
    worker: u16,
    slots: Vec<Slot<T>>,
    free: Vec<u32>,
}

#[derive(Debug)]
struct Slot<T> {
    generation: u32,
    peer: Option<T>,
}

impl<T> Connections<T> {
    /// No connections yet.
    #[must_use]
    pub fn new(worker: u16) -> Self {
        Self {
            worker,
            slots: Vec::new(),
            free: Vec::new(),
        }
    }

    /// Gives a connection a slot.
    pub fn insert(&mut self, peer: T) -> ConnectionId {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot {
                generation: 0,
                peer: None,
            });
            u32::try_from(self.slots.len() - 1).expect("file descriptors are fewer than slots")
        });
        let place = &mut self.slots[slot as usize];
        place.peer = Some(peer);
        ConnectionId {
            worker: self.worker,
            slot,
            generation: place.generation,
        }
    }

    /// Takes a connection out.
    pub fn remove(&mut self, id: ConnectionId) -> Option<T> {
        self.get_mut(id)?;
        let place = &mut self.slots[id.slot as usize];
        // Wraps after four thousand million tenants of one slot; no reply is that late.
        place.generation = place.generation.wrapping_add(1);
        self.free.push(id.slot);
        place.peer.take()
    }

    /// The connection of this identity, if it is still there.
    pub fn get_mut(&mut self, id: ConnectionId) -> Option<&mut T> {
        let place = self.slots.get_mut(id.slot as usize)?;
        place
            .peer
            .as_mut()
            .filter(|_| place.generation == id.generation)
    }

    /// The present tenant of a slot.
    pub(super) fn at_slot(&mut self, slot: u32) -> Option<(ConnectionId, &mut T)> {
        let worker = self.worker;
        let place = self.slots.get_mut(slot as usize)?;
        let id = ConnectionId {
            worker,
            slot,
            generation: place.generation,
        };
        Some((id, place.peer.as_mut()?))
    }

    /// All connections.
    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.slots
            .iter_mut()
            .filter_map(|place| place.peer.as_mut())
    }

    /// Takes any connection out, for the last time: no identity is kept.
    pub(super) fn pop(&mut self) -> Option<T> {
        while let Some(place) = self.slots.pop() {
            if place.peer.is_some() {
                return place.peer;
            }
        }
        None
    }

    /// How many slots there are, used or not.
    pub(super) fn slot_count(&self) -> usize {
        self.slots.len()
    }

    /// Whether there are none.
    pub(super) fn is_empty(&self) -> bool {
        self.free.len() == self.slots.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_meant_for_one_tenant_of_a_slot_does_not_reach_the_next() {
        let mut connections = Connections::new(3);
        let first = connections.insert("first");
        assert_eq!(connections.remove(first), Some("first"));
        let second = connections.insert("second");
        assert_eq!(
            (second.worker, second.slot),
            (3, first.slot),
            "the slot is used again"
        );
        assert_eq!(connections.get_mut(first), None);
        assert_eq!(connections.remove(first), None);
        assert_eq!(connections.get_mut(second), Some(&mut "second"));
        assert_eq!(
            connections.at_slot(second.slot),
            Some((second, &mut "second"))
        );
    }

    #[test]
    fn it_is_empty_when_every_tenant_has_left() {
        let mut connections = Connections::new(0);
        assert!(connections.is_empty());
        let ids = [connections.insert(1), connections.insert(2)];
        for id in ids {
            assert!(!connections.is_empty());
            connections.remove(id);
        }
        assert!(connections.is_empty());
        assert_eq!(connections.iter_mut().count(), 0);
    }
}
