//! A worker's connections by slot. A slot's tenants are told apart by generation, so nothing meant for one reaches the next.

use super::peer::Peer;
use crate::ids::ConnectionId;

/// The connections of one worker.
#[derive(Debug)]
pub(super) struct Connections {
    worker: u16,
    slots: Vec<Slot>,
    free: Vec<u32>,
}

#[derive(Debug)]
struct Slot {
    generation: u32,
    peer: Option<Peer>,
}

impl Connections {
    pub(super) fn new(worker: u16) -> Self {
        Self {
            worker,
            slots: Vec::new(),
            free: Vec::new(),
        }
    }

    /// Gives a connection a slot.
    pub(super) fn insert(&mut self, peer: Peer) -> ConnectionId {
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
    pub(super) fn remove(&mut self, id: ConnectionId) -> Option<Peer> {
        self.get_mut(id)?;
        let place = &mut self.slots[id.slot as usize];
        // Wraps after four thousand million tenants of one slot; no reply is that late.
        place.generation = place.generation.wrapping_add(1);
        self.free.push(id.slot);
        place.peer.take()
    }

    /// The connection of this identity, if it is still there.
    pub(super) fn get_mut(&mut self, id: ConnectionId) -> Option<&mut Peer> {
        let place = self.slots.get_mut(id.slot as usize)?;
        place
            .peer
            .as_mut()
            .filter(|_| place.generation == id.generation)
    }

    /// The present tenant of a slot.
    pub(super) fn at_slot(&mut self, slot: u32) -> Option<(ConnectionId, &mut Peer)> {
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
    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Peer> {
        self.slots
            .iter_mut()
            .filter_map(|place| place.peer.as_mut())
    }

    /// Takes any connection out, for the last time: no identity is kept.
    pub(super) fn pop(&mut self) -> Option<Peer> {
        while let Some(place) = self.slots.pop() {
            if place.peer.is_some() {
                return place.peer;
            }
        }
        None
    }

    /// Whether there are none.
    pub(super) fn is_empty(&self) -> bool {
        self.free.len() == self.slots.len()
    }
}
