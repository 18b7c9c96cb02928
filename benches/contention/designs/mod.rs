//! The designs that are compared, behind one trait.

mod cloned;
mod concurrent;
mod locked;
mod ours;
mod tables;

use loadgen::population::Population;
use waypost::{registry::command::RegisterBroker, time::Timestamp};

pub(crate) use self::tables::LiveKey;
use crate::filled;

/// Keeps the routes. One thread writes; each reader is on a thread of its own.
pub(crate) trait Design: Send {
    /// Another reader.
    fn reader(&self) -> Box<dyn Reader>;

    /// Notes that a broker is alive.
    fn heartbeat(&mut self, broker: &LiveKey, now: Timestamp);

    /// Applies a registration; readers see it when this returns.
    fn register(&mut self, registration: Box<RegisterBroker>, now: Timestamp);
}

/// Looks routes up.
pub(crate) trait Reader: Send {
    /// Appends the body of a topic's route answer, in strict JSON; says whether there is one.
    fn look_up(&mut self, topic: &str, out: &mut Vec<u8>) -> bool;
}

/// A design that can be set up.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Kind {
    pub(crate) name: &'static str,
    pub(crate) empty: fn() -> Box<dyn Design>,
}

/// All of them, ours first.
pub(crate) const KINDS: [Kind; 6] = [
    Kind {
        name: "waypost",
        empty: || Box::new(ours::Ours::empty()),
    },
    Kind {
        name: "std RwLock",
        empty: || Box::new(locked::Locked::<locked::StdLock>::empty()),
    },
    Kind {
        name: "parking_lot RwLock",
        empty: || Box::new(locked::Locked::<locked::ParkingLotLock>::empty()),
    },
    Kind {
        name: "DashMap",
        empty: || Box::new(concurrent::Concurrent::<concurrent::DashMaps>::empty()),
    },
    Kind {
        name: "papaya",
        empty: || Box::new(concurrent::Concurrent::<concurrent::PapayaMaps>::empty()),
    },
    Kind {
        name: "arc-swap of a clone",
        empty: || Box::new(cloned::Cloned::empty()),
    },
];

/// Asserts that every design answers every topic as ours does, byte for byte, at first and after each kind of registration.
pub(crate) fn check_answers_are_alike() {
    let population = Population {
        topics: 20,
        brokers_per_topic: 4,
        topics_per_broker: 7,
        first_number: 0,
    };
    let mut designs = KINDS.map(|kind| (kind.name, (kind.empty)()));
    let mut registrations: Vec<_> = (0..population.brokers())
        .map(|broker| filled::registration(broker, population.topics_of(broker)))
        .collect();
    let mut now = Timestamp::from_millis(0);
    let mut register = |registration: &RegisterBroker| {
        now = Timestamp::from_millis(now.as_millis() + 1);
        for (_, design) in &mut designs {
            design.register(Box::new(registration.clone()), now);
        }
        alike_answers(&designs, population)
    };
    for registration in &registrations {
        register(registration);
    }
    let whole = register(&registrations[0]);
    assert_eq!(whole.iter().filter(|answer| !answer.is_empty()).count(), 20);

    filled::change(&mut registrations[0], 2..3);
    let changed = register(&registrations[0]);
    assert_ne!(whole, changed, "a changed topic is seen");

    registrations[0].body.filter_servers = Some(vec!["10.0.0.9:9000".to_owned()]);
    let filtered = register(&registrations[0]);
    assert_ne!(changed, filtered, "filter servers are seen");

    registrations[1].broker_addr = "10.9.9.9:10911".into();
    let moved = register(&registrations[1]);
    assert_ne!(filtered, moved, "another address is seen");
}

/// The answers to all topics, the same from all designs.
fn alike_answers(
    designs: &[(&'static str, Box<dyn Design>)],
    population: Population,
) -> Vec<Vec<u8>> {
    let answers = |design: &dyn Design| -> Vec<Vec<u8>> {
        let mut reader = design.reader();
        let answer = |topic| {
            let mut out = Vec::new();
            let found = reader.look_up(&filled::topic_name(topic), &mut out);
            assert_eq!(found, !out.is_empty());
            out
        };
        (0..population.topics).map(answer).collect()
    };
    let (_, ours) = &designs[0];
    let ours = answers(&**ours);
    for (name, design) in designs {
        assert_eq!(ours, answers(&**design), "{name}");
    }
    ours
}
