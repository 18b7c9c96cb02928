//! One kind of request that a thread sends over its connections, and when.

use crate::{schedule::Schedule, source::Source};

/// When requests are sent.
#[derive(Debug)]
pub enum Pace {
    /// Whenever a connection has fewer out than its depth.
    Closed,
    /// When they are due.
    Open(Open),
}

/// The state of an open loop: request `k` is due at `schedule.due(k)` on connection `k % connections`.
///
/// A connection that cannot take a request keeps it: only the number of such requests is held, their due times follow from it.
#[derive(Debug)]
pub struct Open {
    schedule: Schedule,
    next: u64,
    queues: Vec<Queue>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Queue {
    fell_due: u64,
    sent: u64,
}

impl Open {
    /// An open loop that has not begun.
    pub fn new(schedule: Schedule, connections: usize) -> Self {
        Self {
            schedule,
            next: 0,
            queues: vec![Queue::default(); connections],
        }
    }

    /// When the next request falls due.
    pub fn next_due(&self) -> u64 {
        self.schedule.due(self.next)
    }

    /// The connection of the next request, if that is due now.
    pub fn fall_due(&mut self, now: u64) -> Option<usize> {
        if self.next_due() > now {
            return None;
        }
        let count = self.queues.len() as u64;
        let connection = usize::try_from(self.next % count).expect("less than a length");
        self.queues[connection].fell_due += 1;
        self.next += 1;
        Some(connection)
    }

    /// Due time of the request that a connection has to send next; `None` if all that are due have been sent.
    pub fn owed(&self, connection: usize) -> Option<u64> {
        let queue = self.queues[connection];
        let index = connection as u64 + queue.sent * self.queues.len() as u64;
        (queue.sent < queue.fell_due).then(|| self.schedule.due(index))
    }

    /// Takes note that what [`Self::owed`] named has been sent.
    pub fn sent(&mut self, connection: usize) {
        self.queues[connection].sent += 1;
    }

    /// Takes the request that a connection has to send next from what it owes; returns its due time.
    pub fn give_up(&mut self, connection: usize) -> Option<u64> {
        let due = self.owed(connection)?;
        self.sent(connection);
        Some(due)
    }
}

/// What is sent, when, and under which name it is reported.
#[derive(Debug)]
pub struct Stream {
    /// Name in reports.
    pub name: &'static str,
    /// The requests.
    pub source: Source,
    /// Their pace.
    pub pace: Pace,
}

impl Stream {
    /// The connection of the next request, if that is due now; a closed loop has no due times.
    pub fn fall_due(&mut self, now: u64) -> Option<usize> {
        match &mut self.pace {
            Pace::Closed => None,
            Pace::Open(open) => open.fall_due(now),
        }
    }

    /// When the next request falls due.
    pub fn next_due(&self) -> Option<u64> {
        match &self.pace {
            Pace::Closed => None,
            Pace::Open(open) => Some(open.next_due()),
        }
    }

    /// Due time of the request that a connection has to send next.
    pub fn owed(&self, connection: usize) -> Option<u64> {
        match &self.pace {
            Pace::Closed => None,
            Pace::Open(open) => open.owed(connection),
        }
    }

    /// Whether a reply without a body is wrong.
    pub fn wants_body(&self) -> bool {
        match self.source {
            Source::Route(_) => true,
            Source::Heartbeat | Source::Register(_) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_that_was_held_back_keeps_its_due_time() {
        // One request every 10 ns, over two connections in turn.
        let mut open = Open::new(Schedule::new(100, 1e8), 2);
        assert_eq!(open.fall_due(99), None);
        let due: Vec<usize> = std::iter::from_fn(|| open.fall_due(135)).collect();
        assert_eq!(due, [0, 1, 0, 1]);
        assert_eq!(open.next_due(), 140);

        assert_eq!(open.owed(0), Some(100));
        open.sent(0);
        assert_eq!(open.owed(0), Some(120));
        open.sent(0);
        assert_eq!(open.owed(0), None);
        assert_eq!(open.owed(1), Some(110));
        let given_up: Vec<u64> = std::iter::from_fn(|| open.give_up(1)).collect();
        assert_eq!(given_up, [110, 130]);
        assert_eq!(open.owed(1), None);
    }
}
