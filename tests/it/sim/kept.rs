//! How much the writer keeps beside the tables that readers see. Nobody may ask it for that, so it is read from what the registry
//! shows of itself in a failed test.

use waypost::registry::Registry;

/// Below this many shared values the unused ones are not looked for (`registry::intern`).
pub(super) const SWEEP_MIN: usize = 64;

/// See the module's documentation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Kept {
    /// Addresses whose connections are known.
    pub(super) bound: usize,
    /// Connections that brokers live by.
    pub(super) connections: usize,
    pub(super) groups: usize,
    /// Numbers of topics in use.
    pub(super) topics: usize,
    /// The topics of each group, added up.
    pub(super) topics_of_groups: usize,
    pub(super) slot_lists: usize,
    /// Queue data of the group that has most.
    pub(super) shapes_of_a_group: usize,
}

impl Kept {
    pub(super) fn of(registry: &Registry) -> Self {
        let text = format!("{registry:?}");
        let numbers = the(&text, "topic_ids: TopicIds ");
        let groups = the(&text, "groups: GroupStates ");
        let states = the(groups, "states: ");
        let of_groups = all(states, "topics: TopicSet(RoaringBitmap");
        let shapes = all(states, "shapes: ").map(count);
        Self {
            bound: count(the(&text, " bound: ")),
            connections: count(the(&text, " connections: ")),
            groups: count(states) - count(the(groups, "free: ")),
            topics: count(the(numbers, "hashes: ")) - count(the(numbers, "free: ")),
            topics_of_groups: of_groups.map(count_of_bitmap).sum(),
            slot_lists: count(the(&text, " lists: ")),
            shapes_of_a_group: shapes.max().unwrap_or_default(),
        }
    }
}

/// The only brackets behind a label, with what is between them.
fn the<'a>(text: &'a str, label: &str) -> &'a str {
    let mut found = all(text, label);
    let first = found.next();
    assert!(found.next().is_none(), "{label} is there more than once");
    first.unwrap_or_else(|| panic!("no {label} in {text}"))
}

/// The brackets behind each occurrence of a label.
fn all<'a>(text: &'a str, label: &str) -> impl Iterator<Item = &'a str> {
    let places = text.match_indices(label);
    places.map(move |(place, label)| bracketed(&text[place + label.len()..]))
}

/// From an opening bracket to its closing one. Names here have none.
fn bracketed(text: &str) -> &str {
    let mut depth = 0;
    let end = text.find(|letter| {
        depth += depth_change(letter);
        depth == 0
    });
    &text[..=end.expect("brackets come in pairs")]
}

fn depth_change(letter: char) -> i32 {
    match letter {
        '(' | '[' | '{' | '<' => 1,
        ')' | ']' | '}' | '>' => -1,
        _ => 0,
    }
}

/// How many items brackets hold.
fn count(brackets: &str) -> usize {
    let mut depth = 0;
    let commas = brackets.chars().filter(|letter| {
        depth += depth_change(*letter);
        depth == 1 && *letter == ','
    });
    commas.count() + usize::from(brackets.len() > 2)
}

/// Numbers one by one, if they are few, or how many: `<[1, 2]>`, `<20 values between 1 and 21>`.
fn count_of_bitmap(brackets: &str) -> usize {
    let inner = &brackets[1..brackets.len() - 1];
    match inner.split_once(" values") {
        Some((number, _)) => number.parse().expect("a number of values"),
        None => count(inner),
    }
}
