//! What a group's last registration declared, so that the next one, which mostly declares the same, costs a comparison a topic and
//! not a look-up in the tables, which are larger than the caches. A registration of 5,000 topics on 20 brokers, one changed, took the
//! writer 0.26 ms instead of 0.90 of a profile; `cargo bench --bench publish` would notice the loss.

use std::num::NonZeroU64;

use super::snapshot::NameHasher;
use crate::{limits::MARKS_KEPT_MAX, protocol::body::TopicConfig};

/// Room for at least so many marks more than there are.
const MARKS_SPARE_MIN: usize = 8;

/// How far from its place the mark of a topic is looked for: topics that come or go shift those behind them.
const SHIFT_MAX: usize = 8;

/// A topic and its settings in 64 bits. Two that differ have the same with a chance of some 2^-60, which nobody can improve who does
/// not know the process's seed. A broker whose topics did would find the later one not stored, or stored as it was before; no other
/// broker would notice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Mark(NonZeroU64);

impl Mark {
    pub(super) fn new(hasher: &NameHasher, topic: &TopicConfig) -> Self {
        let hash = hasher.mark(topic.name.as_bytes(), &topic.settings);
        Self(NonZeroU64::new(hash).unwrap_or(NonZeroU64::MAX))
    }
}

/// The topics that are stored as their group declared them last, in the order of that registration. Whoever changes a group's
/// queues otherwise forgets them.
#[derive(Debug, Default)]
pub(super) struct Declared {
    /// Whether they are shown without the permission to write.
    wiped: bool,
    /// `None`: a topic that is shown otherwise, since an operator or the loss of a master changed it.
    marks: Vec<Option<Mark>>,
}

/// Room for marks, kept from one registration to the next.
#[derive(Debug, Default)]
pub(super) struct Marks(Vec<Option<Mark>>);

impl Marks {
    /// Takes the marks of these topics instead of what was there.
    pub(super) fn fill(&mut self, hasher: &NameHasher, topics: &[TopicConfig]) {
        make_room(&mut self.0, topics.len());
        let marks = topics.iter().map(|topic| Some(Mark::new(hasher, topic)));
        self.0.extend(marks);
    }

    /// A topic that is not stored as it was declared.
    pub(super) fn drop_at(&mut self, place: usize) {
        self.0[place] = None;
    }

    /// To be used again, unless it is very large.
    pub(super) fn kept(self) -> Self {
        if self.0.capacity() > MARKS_KEPT_MAX {
            return Self::default();
        }
        self
    }
}

/// Makes room for `len` marks instead of what was there: with some to spare, since topics come one by one, and no more than a few
/// times as much, since they may also go.
fn make_room(marks: &mut Vec<Option<Mark>>, len: usize) {
    marks.clear();
    if marks.capacity() > 4 * (len + MARKS_SPARE_MIN) {
        *marks = Vec::new();
    }
    if marks.capacity() < len {
        marks.reserve_exact(len + len / 8 + MARKS_SPARE_MIN);
    }
}

impl Declared {
    /// Remembers what has just been stored.
    pub(super) fn remember(&mut self, wiped: bool, marks: &Marks) {
        self.wiped = wiped;
        make_room(&mut self.marks, marks.0.len());
        self.marks.extend_from_slice(&marks.0);
    }

    /// Forgets all: what is stored is no longer what was declared.
    pub(super) fn forget(&mut self) {
        self.marks.clear();
    }

    /// Which of a registration's topics are not known to be stored as it declares them, by their places.
    pub(super) fn unknown(&self, wiped: bool, Marks(marks): &Marks) -> Vec<usize> {
        if self.wiped != wiped {
            return (0..marks.len()).collect();
        }
        // Where the topic is expected. It follows the last one that was found.
        let mut at = 0;
        let mut is_unknown = |mark: Option<Mark>| {
            if self.marks.get(at) != Some(&mark) {
                let start = at.saturating_sub(SHIFT_MAX);
                let nearby = self.marks.iter().skip(start).take(2 * SHIFT_MAX);
                let Some(place) = nearby.into_iter().position(|known| *known == mark) else {
                    at += 1;
                    return true;
                };
                at = start + place;
            }
            at += 1;
            false
        };
        let unknown = marks
            .iter()
            .enumerate()
            .filter(|(_, mark)| is_unknown(**mark));
        unknown.map(|(place, _)| place).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::{body::QueueSettings, name::TopicName};

    fn marks(numbers: impl IntoIterator<Item = u64>) -> Marks {
        let marks = numbers.into_iter().map(NonZeroU64::new);
        Marks(marks.map(|mark| mark.map(Mark)).collect())
    }

    fn declared(numbers: impl IntoIterator<Item = u64>) -> Declared {
        let mut declared = Declared::default();
        declared.remember(false, &marks(numbers));
        declared
    }

    #[test]
    fn what_was_declared_before_is_known_and_what_shifts_it_is_not() {
        let known = declared(1..=100);
        let cases: [(Vec<u64>, &[usize]); 6] = [
            ((1..=100).collect(), &[]),
            // One changes, one comes, one goes, two in a row change.
            ((1..=40).chain([200]).chain(42..=100).collect(), &[40]),
            ((1..=40).chain([200]).chain(41..=100).collect(), &[40]),
            ((1..=40).chain(42..=100).collect(), &[]),
            (
                (1..=40).chain([200, 201]).chain(43..=100).collect(),
                &[40, 41],
            ),
            (vec![], &[]),
        ];
        for (numbers, unknown) in cases {
            assert_eq!(
                known.unknown(false, &marks(numbers.clone())),
                unknown,
                "{numbers:?}"
            );
        }
    }

    #[test]
    fn numbers_that_nobody_sends_do_not_make_two_topics_one() {
        // Their hash would be that of nothing if the multipliers were foldhash's own.
        let settings = QueueSettings {
            read_queue_nums: -914_599_715,
            write_queue_nums: -1_062_458_953,
            ..QueueSettings::default()
        };
        let topic = |name: &str| TopicConfig {
            name: TopicName::from(name),
            settings,
        };
        for seed in 0..4 {
            let hasher = NameHasher::new(seed);
            assert_ne!(
                Mark::new(&hasher, &topic("one")),
                Mark::new(&hasher, &topic("other"))
            );
        }
    }

    #[test]
    fn the_room_of_many_topics_is_given_back_when_there_are_few() {
        let mut known = declared(1..=10_000);
        known.remember(false, &marks(1..=10));
        assert!(known.marks.capacity() < 100);
        known.remember(false, &marks(1..=20));
        assert_eq!(known.unknown(false, &marks(1..=20)), [0; 0]);
    }

    #[test]
    fn nothing_is_known_of_what_an_operator_changed_or_is_shown_otherwise() {
        let mut known = declared([1, 0, 3]);
        assert_eq!(known.unknown(false, &marks([1, 2, 3])), [1]);
        assert_eq!(known.unknown(true, &marks([1, 2, 3])), [0, 1, 2]);
        known.forget();
        assert_eq!(known.unknown(false, &marks([1, 2])), [0, 1]);
    }
}
