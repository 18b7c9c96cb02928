//! Brokers that leave together and come back together: when, and in which order.

use std::net::SocketAddr;

use crate::{frame::Codec, population::Population};

/// Name of the record of returning brokers: from when all were to come back to the answer to the registration
/// of all topics.
pub const RETURN: &str = "return";

/// What is planned for all brokers.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Brokers with a lower number leave.
    pub brokers: usize,
    /// When they leave.
    pub leave_at: u64,
    /// When the first comes back.
    pub return_at: u64,
    /// Where to.
    pub target: SocketAddr,
    /// Whose topics they register.
    pub population: Population,
    /// Header form.
    pub codec: Codec,
}

/// What has to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Nothing yet, or nothing more.
    Wait,
    /// So many connections, from the first, are closed.
    Leave(usize),
    /// This connection is opened again.
    Return(usize),
}

/// The plan as far as one thread's connections are concerned, and how far it is.
#[derive(Clone, Copy, Debug)]
pub struct Outage {
    /// The plan.
    pub plan: Plan,
    connections: usize,
    state: State,
}

#[derive(Clone, Copy, Debug)]
enum State {
    Present,
    Absent,
    Returning(usize),
}

impl Outage {
    /// The part of a thread whose `connections` belong to the brokers from `first_broker` on; `None` if all of them stay.
    pub fn of_thread(plan: Plan, first_broker: usize, connections: usize) -> Option<Self> {
        let connections = plan.brokers.saturating_sub(first_broker).min(connections);
        (connections > 0).then_some(Self {
            plan,
            connections,
            state: State::Present,
        })
    }

    /// When the next step is due; `None` when all are back.
    pub fn next_at(&self) -> Option<u64> {
        match self.state {
            State::Present => Some(self.plan.leave_at),
            State::Absent => Some(self.plan.return_at),
            State::Returning(next) => (next < self.connections).then_some(self.plan.return_at),
        }
    }

    /// The step that is due. Brokers return one by one: each costs the thread the making of a large frame, and its other
    /// connections are served in between.
    pub fn step(&mut self, now: u64) -> Step {
        if self.next_at().is_none_or(|at| now < at) {
            return Step::Wait;
        }
        let (step, state) = match self.state {
            State::Present => (Step::Leave(self.connections), State::Absent),
            State::Absent => (Step::Return(0), State::Returning(1)),
            State::Returning(next) => (Step::Return(next), State::Returning(next + 1)),
        };
        self.state = state;
        step
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(brokers: usize) -> Plan {
        Plan {
            brokers,
            leave_at: 50,
            return_at: 75,
            target: SocketAddr::from(([127, 0, 0, 1], 9876)),
            population: Population {
                topics: 1,
                brokers_per_topic: 1,
                topics_per_broker: 1,
                first_number: 0,
            },
            codec: Codec::Json,
        }
    }

    #[test]
    fn brokers_leave_at_once_and_return_one_by_one() {
        let mut outage = Outage::of_thread(plan(2), 0, 5).unwrap();
        let steps: Vec<Step> = [49, 50, 51, 75, 75, 75]
            .map(|now| outage.step(now))
            .to_vec();
        let expected = [
            Step::Wait,
            Step::Leave(2),
            Step::Wait,
            Step::Return(0),
            Step::Return(1),
            Step::Wait,
        ];
        assert_eq!(steps, expected);
        assert_eq!(outage.next_at(), None);
    }

    #[test]
    fn a_late_thread_misses_no_step() {
        let mut outage = Outage::of_thread(plan(1), 0, 1).unwrap();
        assert_eq!(outage.step(1_000), Step::Leave(1));
        assert_eq!(outage.step(1_000), Step::Return(0));
        assert_eq!(outage.step(1_000), Step::Wait);
    }

    #[test]
    fn each_thread_has_its_part_of_the_brokers() {
        let left = |first| {
            let outage = Outage::of_thread(plan(12), first, 10);
            outage.map(|mut outage| outage.step(50))
        };
        assert_eq!(left(0), Some(Step::Leave(10)));
        assert_eq!(left(10), Some(Step::Leave(2)));
        assert_eq!(left(20).map(|_| ()), None);
    }
}
