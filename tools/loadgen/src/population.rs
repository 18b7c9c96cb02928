//! Which brokers there are, which topics each has, and what they are called.
//!
//! Topics come in cells of `topics_per_broker`; each cell lives on `brokers_per_topic` brokers of its own, so a route always has that
//! many brokers, and a broker never more topics than a registration can carry.

use std::ops::Range;

/// The cluster that all brokers register in.
pub const CLUSTER: &str = "loadgen";

/// Sizes of the population.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Population {
    /// Topics in all.
    pub topics: usize,
    /// Brokers that have a topic.
    pub brokers_per_topic: usize,
    /// Topics that a broker has.
    pub topics_per_broker: usize,
    /// What is added to the number of a topic or broker in its name, so that two runs beside each other do not share any.
    pub first_number: usize,
}

impl Population {
    /// The number in the name and address of a broker.
    pub fn broker_number(&self, broker: usize) -> usize {
        self.first_number + broker
    }

    /// Groups of topics that share their brokers.
    pub fn cells(&self) -> usize {
        self.topics.div_ceil(self.topics_per_broker)
    }

    /// Brokers in all. Broker `b` is number `b / cells` of the brokers of cell `b % cells`, so that the first brokers to leave are
    /// of different cells.
    pub fn brokers(&self) -> usize {
        self.cells() * self.brokers_per_topic
    }

    /// Brokers, counted from the first, that may leave at once without a topic losing its last.
    pub fn expendable_brokers(&self) -> usize {
        self.cells() * (self.brokers_per_topic - 1)
    }

    /// The numbers of a broker's topics.
    pub fn topics_of(&self, broker: usize) -> Range<usize> {
        let first = broker % self.cells() * self.topics_per_broker;
        let end = self.topics.min(first + self.topics_per_broker);
        self.first_number + first..self.first_number + end
    }
}

/// A broker's name.
pub fn broker_name(broker: usize) -> String {
    format!("broker-{broker:05}")
}

/// A broker's address, which nobody connects to.
pub fn broker_addr(broker: usize) -> String {
    format!("10.{}.{}.1:10911", broker / 250, broker % 250)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_topic_has_its_brokers_and_every_broker_its_own_address() {
        let population = Population {
            topics: 250,
            brokers_per_topic: 3,
            topics_per_broker: 100,
            first_number: 0,
        };
        let mut brokers_of = vec![0; 250];
        let mut addresses = BTreeSet::new();
        for broker in 0..population.brokers() {
            population
                .topics_of(broker)
                .for_each(|topic| brokers_of[topic] += 1);
            addresses.insert(broker_addr(broker));
        }
        assert_eq!((population.cells(), population.brokers()), (3, 9));
        assert_eq!(brokers_of, vec![3; 250]);
        assert_eq!(addresses.len(), 9);
    }

    #[test]
    fn populations_with_other_first_numbers_share_nothing() {
        let numbers = |first_number| {
            let population = Population {
                topics: 30,
                brokers_per_topic: 2,
                topics_per_broker: 10,
                first_number,
            };
            let brokers = 0..population.brokers();
            let topics: BTreeSet<usize> = brokers
                .clone()
                .flat_map(|b| population.topics_of(b))
                .collect();
            let addresses: BTreeSet<String> = brokers
                .map(|b| broker_addr(population.broker_number(b)))
                .collect();
            (topics, addresses)
        };
        let (one, other) = (numbers(0), numbers(30));
        assert_eq!((one.0.len(), other.0.len(), other.1.len()), (30, 30, 6));
        assert!(one.0.is_disjoint(&other.0) && one.1.is_disjoint(&other.1));
    }

    #[test]
    fn no_topic_is_lost_with_the_brokers_that_may_leave() {
        let population = Population {
            topics: 250,
            brokers_per_topic: 2,
            topics_per_broker: 100,
            first_number: 0,
        };
        let staying = population.expendable_brokers()..population.brokers();
        let topics: BTreeSet<usize> = staying.flat_map(|b| population.topics_of(b)).collect();
        assert_eq!(topics.len(), 250);
    }
}
