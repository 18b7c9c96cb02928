//! A persistent hash table: cloning it is one reference count, changing one entry copies a path of three small nodes and a
//! leaf, so that publishing a snapshot costs what changed and not what exists.
//!
//! Three levels of 32 on the top bits of a 64-bit hash, then a leaf: one slice of (hash tag, entry). At a million entries a
//! leaf holds about thirty. A batch pays for each path once: a node that no snapshot shares is changed in place.
//!
//! The hash comes from the caller, who seeds it, since peers choose the keys.

use std::{fmt, sync::Arc};

/// Something stored under its own name.
pub(crate) trait Keyed {
    /// The bytes that tell entries apart.
    fn key(&self) -> &[u8];
}

const FANOUT: usize = 32;
const FANOUT_BITS: u32 = FANOUT.trailing_zeros();

/// The full hash of a key. Its top bits choose the leaf, its low half is the tag inside the leaf.
pub(crate) type Hash = u64;

type LeafSlice<V> = [(u32, Arc<V>)];
type Leaf<V> = Arc<LeafSlice<V>>;

#[derive(Clone)]
struct Branch<T>([T; FANOUT]);

type Lower<V> = Branch<Leaf<V>>;
type Middle<V> = Branch<Arc<Lower<V>>>;
type Root<V> = Branch<Arc<Middle<V>>>;

/// See the module's documentation.
pub(crate) struct Table<V> {
    root: Arc<Root<V>>,
    len: usize,
}

impl<V> Clone for Table<V> {
    fn clone(&self) -> Self {
        Self {
            root: Arc::clone(&self.root),
            len: self.len,
        }
    }
}

impl<V> fmt::Debug for Table<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Table")
            .field("len", &self.len)
            .finish_non_exhaustive()
    }
}

impl<V> Default for Table<V> {
    /// An empty table. Its branches share one empty leaf, so it takes less than a kilobyte.
    fn default() -> Self {
        let leaf: Leaf<V> = Arc::from([]);
        let lower = Arc::new(Branch(std::array::from_fn(|_| Arc::clone(&leaf))));
        let middle = Arc::new(Branch(std::array::from_fn(|_| Arc::clone(&lower))));
        Self {
            root: Arc::new(Branch(std::array::from_fn(|_| Arc::clone(&middle)))),
            len: 0,
        }
    }
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "five bits of the hash, and its low half, are what is wanted"
)]
mod bits {
    use super::{FANOUT_BITS, Hash};

    /// Which branch of `level` (0 is the root) the hash leads to.
    pub(super) fn branch(hash: Hash, level: u32) -> usize {
        (hash >> (Hash::BITS - FANOUT_BITS * (level + 1))) as usize % super::FANOUT
    }

    /// What tells most entries of a leaf apart without touching them.
    pub(super) fn tag(hash: Hash) -> u32 {
        hash as u32
    }
}

impl<V> Table<V> {
    /// How many entries there are.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    fn leaf(&self, hash: Hash) -> &[(u32, Arc<V>)] {
        let middle = &self.root.0[bits::branch(hash, 0)];
        let lower = &middle.0[bits::branch(hash, 1)];
        &lower.0[bits::branch(hash, 2)]
    }

    fn leaf_mut(&mut self, hash: Hash) -> &mut Leaf<V> {
        let root = Arc::make_mut(&mut self.root);
        let middle = Arc::make_mut(&mut root.0[bits::branch(hash, 0)]);
        let lower = Arc::make_mut(&mut middle.0[bits::branch(hash, 1)]);
        &mut lower.0[bits::branch(hash, 2)]
    }

    /// The first entry under `hash` that `wanted` accepts.
    pub(crate) fn find(&self, hash: Hash, mut wanted: impl FnMut(&V) -> bool) -> Option<&Arc<V>> {
        let tag = bits::tag(hash);
        self.leaf(hash)
            .iter()
            .find(|(other, entry)| *other == tag && wanted(entry))
            .map(|(_, entry)| entry)
    }

    /// Every entry, in the order of the hashes: stable for one seed, and otherwise without meaning.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<V>> {
        let lowers = self.root.0.iter().flat_map(|middle| middle.0.iter());
        lowers
            .flat_map(|lower| lower.0.iter())
            .flat_map(|leaf| leaf.iter())
            .map(|(_, entry)| entry)
    }
}

impl<V: Keyed> Table<V> {
    /// The entry of that key.
    pub(crate) fn get(&self, hash: Hash, key: &[u8]) -> Option<&Arc<V>> {
        self.find(hash, |entry| entry.key() == key)
    }

    /// The entries of up to `N` keys, and behind them `None`, in passes: the loads of one pass do not depend on each other, so their cache
    /// misses overlap. Look-ups one by one would wait for five or six in a row each, when the table is larger than the caches.
    ///
    /// Each pass fills a plain array: with lists that grow a look-up took a third more instructions (`cargo bench --bench route`).
    pub(crate) fn get_each<const N: usize>(&self, keys: &[(Hash, &[u8])]) -> [Option<&V>; N] {
        assert!(
            keys.len() <= N,
            "a caller asks for as many as it has room for"
        );
        let mut lowers = [&*self.root.0[0].0[0]; N];
        for (lower, (hash, _)) in lowers.iter_mut().zip(keys) {
            let middle = &self.root.0[bits::branch(*hash, 0)];
            *lower = &middle.0[bits::branch(*hash, 1)];
        }
        let mut leaves: [&LeafSlice<V>; N] = [&[]; N];
        for ((leaf, lower), (hash, _)) in leaves.iter_mut().zip(lowers).zip(keys) {
            *leaf = &lower.0[bits::branch(*hash, 2)];
        }
        let mut found: [Option<&V>; N] = [None; N];
        for ((candidate, leaf), (hash, _)) in found.iter_mut().zip(leaves).zip(keys) {
            let tag = bits::tag(*hash);
            let first = leaf.iter().find(|(other, _)| *other == tag);
            *candidate = first.map(|(_, entry)| &**entry);
        }
        for (candidate, (hash, key)) in found.iter_mut().zip(keys) {
            if candidate.is_some_and(|candidate| candidate.key() != *key) {
                // Two keys with one tag in one leaf.
                *candidate = self.get(*hash, key).map(|entry| &**entry);
            }
        }
        found
    }

    /// Puts an entry in the place of the one with its key, if there is one.
    pub(crate) fn insert(&mut self, hash: Hash, entry: Arc<V>) {
        let tag = bits::tag(hash);
        let leaf = self.leaf_mut(hash);
        if let Some(place) = leaf
            .iter()
            .position(|(other, old)| *other == tag && old.key() == entry.key())
        {
            match Arc::get_mut(leaf) {
                Some(own) => own[place].1 = entry,
                None => *leaf = replaced(leaf, place, tag, &entry),
            }
            return;
        }
        *leaf = leaf.iter().cloned().chain([(tag, entry)]).collect();
        self.len += 1;
    }

    /// Takes out the entry of that key.
    pub(crate) fn remove(&mut self, hash: Hash, key: &[u8]) -> Option<Arc<V>> {
        let removed = Arc::clone(self.get(hash, key)?);
        let leaf = self.leaf_mut(hash);
        *leaf = leaf
            .iter()
            .filter(|(_, entry)| !Arc::ptr_eq(entry, &removed))
            .cloned()
            .collect();
        self.len -= 1;
        Some(removed)
    }
}

impl<V: Clone> Table<V> {
    /// The first entry under `hash` that `wanted` accepts, to be changed. It is copied if a snapshot shares it.
    pub(crate) fn find_mut(
        &mut self,
        hash: Hash,
        mut wanted: impl FnMut(&V) -> bool,
    ) -> Option<&mut V> {
        let tag = bits::tag(hash);
        let leaf = self.leaf_mut(hash);
        let place = leaf
            .iter()
            .position(|(other, entry)| *other == tag && wanted(entry))?;
        if Arc::get_mut(leaf).is_none() {
            *leaf = leaf.iter().cloned().collect();
        }
        let own = Arc::get_mut(leaf).expect("a leaf just copied has one owner");
        Some(Arc::make_mut(&mut own[place].1))
    }
}

fn replaced<V>(leaf: &Leaf<V>, place: usize, tag: u32, entry: &Arc<V>) -> Leaf<V> {
    let with = |(index, old): (usize, &(u32, Arc<V>))| {
        if index == place {
            (tag, Arc::clone(entry))
        } else {
            old.clone()
        }
    };
    leaf.iter().enumerate().map(with).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[derive(Debug, PartialEq)]
    struct Entry(String, u32);

    impl Keyed for Entry {
        fn key(&self) -> &[u8] {
            self.0.as_bytes()
        }
    }

    fn hash(key: &str) -> Hash {
        // A poor hash on purpose: few leaves, many equal tags.
        let sum = key.bytes().fold(7_u64, |hash, byte| {
            hash.wrapping_mul(31).wrapping_add(u64::from(byte))
        });
        ((sum % 97) << 57) | (sum % 5)
    }

    fn contents(table: &Table<Entry>) -> BTreeMap<String, u32> {
        table
            .iter()
            .map(|entry| (entry.0.clone(), entry.1))
            .collect()
    }

    #[test]
    fn a_table_holds_what_a_map_would_and_old_versions_stay_as_they_were() {
        let mut table = Table::<Entry>::default();
        let mut model = BTreeMap::new();
        let mut versions = Vec::new();
        for step in 0..3_000_u32 {
            let key = format!("key-{}", step.wrapping_mul(2_654_435_761) % 400);
            if step % 3 == 2 {
                assert_eq!(
                    table
                        .remove(hash(&key), key.as_bytes())
                        .map(|entry| entry.1),
                    model.remove(&key)
                );
            } else {
                table.insert(hash(&key), Arc::new(Entry(key.clone(), step)));
                model.insert(key, step);
            }
            assert_eq!(table.len(), model.len());
            if step % 250 == 0 {
                versions.push((table.clone(), model.clone()));
            }
        }
        assert_eq!(contents(&table), model);
        for (old, model) in versions {
            assert_eq!(contents(&old), model);
            for (key, value) in &model {
                assert_eq!(
                    old.get(hash(key), key.as_bytes()).map(|entry| entry.1),
                    Some(*value)
                );
            }
            let asked: Vec<String> = (0..400).map(|number| format!("key-{number}")).collect();
            let keys: Vec<_> = asked
                .iter()
                .map(|key| (hash(key), key.as_bytes()))
                .collect();
            for (asked, keys) in asked.chunks(16).zip(keys.chunks(16)) {
                let found = old.get_each::<16>(keys);
                for (key, entry) in asked.iter().zip(found) {
                    assert_eq!(entry.map(|entry| &entry.1), model.get(key), "{key}");
                }
            }
        }
    }

    #[test]
    fn changing_one_entry_leaves_every_other_leaf_shared() {
        let mut table = Table::<Entry>::default();
        let keys: Vec<String> = (0..500).map(|number| format!("topic-{number}")).collect();
        for key in &keys {
            table.insert(hash(key), Arc::new(Entry(key.clone(), 0)));
        }
        let before = table.clone();
        table.insert(hash("topic-3"), Arc::new(Entry("topic-3".into(), 1)));
        let changed = keys
            .iter()
            .filter(|key| !std::ptr::eq(table.leaf(hash(key)), before.leaf(hash(key))))
            .count();
        let in_that_leaf = keys
            .iter()
            .filter(|key| std::ptr::eq(before.leaf(hash(key)), before.leaf(hash("topic-3"))))
            .count();
        assert_eq!(changed, in_that_leaf);
    }
}
