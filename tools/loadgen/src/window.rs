//! The requests of one connection that wait for their replies.
//!
//! A slot's number is the request's opaque, so a reply finds its request in any order. The ring also knows the oldest one: the null
//! server answers in order and does not look at opaques.

/// A request that is out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sent {
    /// When its latency began: its due time in an open loop, when it was written in a closed one.
    pub start: u64,
    /// Index of the stream it belongs to.
    pub stream: usize,
}

/// Slots of one connection.
#[derive(Debug)]
pub struct Window {
    slots: Vec<Option<Sent>>,
    // Count up for ever; a slot is a number modulo the ring's length.
    oldest: usize,
    next: usize,
    in_flight: usize,
}

impl Window {
    /// A window for `capacity` requests, rounded up to a power of two.
    pub fn new(capacity: usize) -> Self {
        Self {
            slots: vec![None; capacity.next_power_of_two()],
            oldest: 0,
            next: 0,
            in_flight: 0,
        }
    }

    /// Requests without a reply.
    pub fn in_flight(&self) -> usize {
        self.in_flight
    }

    /// Slots that can be opened: a request that is overtaken by others holds those behind it.
    pub fn room(&self) -> usize {
        self.slots.len() - (self.next - self.oldest)
    }

    /// Takes the next slot.
    ///
    /// # Panics
    /// When there is no room.
    pub fn open(&mut self, sent: Sent) -> usize {
        assert!(self.room() > 0, "the caller asked for room first");
        let slot = self.next & (self.slots.len() - 1);
        self.slots[slot] = Some(sent);
        self.next += 1;
        self.in_flight += 1;
        slot
    }

    /// Frees a slot; `None` when nothing waits there.
    pub fn close(&mut self, slot: usize) -> Option<Sent> {
        let sent = self.slots.get_mut(slot)?.take()?;
        self.in_flight -= 1;
        let mask = self.slots.len() - 1;
        while self.oldest != self.next && self.slots[self.oldest & mask].is_none() {
            self.oldest += 1;
        }
        Some(sent)
    }

    /// Frees the slot of the oldest request.
    pub fn close_oldest(&mut self) -> Option<Sent> {
        if self.oldest == self.next {
            return None;
        }
        self.close(self.oldest & (self.slots.len() - 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(start: u64) -> Sent {
        Sent { start, stream: 0 }
    }

    #[test]
    fn replies_find_their_requests_in_any_order() {
        let mut window = Window::new(4);
        let slots: Vec<usize> = (0..4).map(|start| window.open(sent(start))).collect();
        assert_eq!(window.room(), 0);

        assert_eq!(window.close(slots[2]), Some(sent(2)));
        assert_eq!(window.close(slots[2]), None, "answered twice");
        assert_eq!(window.room(), 0, "the oldest still holds the ring");
        assert_eq!(window.close(slots[0]), Some(sent(0)));
        assert_eq!(window.room(), 1);
        assert_eq!(window.close_oldest(), Some(sent(1)));
        assert_eq!(window.close_oldest(), Some(sent(3)));
        assert_eq!(window.close_oldest(), None);
        assert_eq!(
            (window.in_flight(), window.room(), window.close(99)),
            (0, 4, None)
        );
    }

    #[test]
    fn slots_are_used_again() {
        let mut window = Window::new(3);
        for start in 0..100 {
            let slot = window.open(sent(start));
            assert!(slot < 4);
            assert_eq!(window.close(slot), Some(sent(start)));
        }
    }
}
