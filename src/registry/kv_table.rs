//! The KV table (spec 4): namespace → key → value. A clone is a few reference counts and a change copies the way to its entry, so
//! that the writer can change a table of millions of keys that readers and the persister hold.

use std::{collections::BTreeMap, sync::Arc};

use rpds::RedBlackTreeMapSync;

use crate::protocol::{
    body,
    fastjson::{Dialect, string_len},
    kv_file,
};

/// The KV configuration: namespace → key → value (spec 4).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KvTable {
    namespaces: RedBlackTreeMapSync<Arc<str>, KvNamespace>,
    /// Bytes of the namespaces in the file.
    namespaces_len: usize,
}

/// One namespace.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct KvNamespace {
    entries: RedBlackTreeMapSync<Arc<str>, Arc<str>>,
    /// Bytes of the entries as JSON.
    entries_len: usize,
}

/// How long a table would be with a change: see [`KvTable::measure`].
#[derive(Debug, Clone, Copy)]
pub(super) struct Measured {
    entries_len: usize,
    namespaces_len: usize,
}

impl KvTable {
    /// A table with these namespaces, as read from a file.
    #[must_use]
    pub fn from_plain(namespaces: kv_file::KvTable) -> Self {
        let mut table = Self::default();
        for (name, entries) in namespaces {
            let namespace = KvNamespace::from_plain(entries);
            table.namespaces_len +=
                comma(table.namespaces.size()) + named_len(&name, namespace.json_len());
            table.namespaces.insert_mut(name.into(), namespace);
        }
        table
    }

    /// The bytes of a KV file with this table.
    #[must_use]
    pub fn to_file(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.file_len());
        let namespaces = self.namespaces.iter();
        kv_file::write_kv_file(
            &mut out,
            namespaces.map(|(name, namespace)| (&**name, namespace.iter())),
        );
        out
    }

    /// How many bytes that is.
    #[must_use]
    pub fn file_len(&self) -> usize {
        kv_file::EMPTY_FILE.len() + self.namespaces_len
    }

    /// The value of a key.
    #[must_use]
    pub fn get(&self, namespace: &str, key: &str) -> Option<&Arc<str>> {
        self.namespaces.get(namespace)?.entries.get(key)
    }

    pub(crate) fn namespace(&self, namespace: &str) -> Option<&KvNamespace> {
        self.namespaces.get(namespace)
    }

    pub(super) fn namespace_count(&self) -> usize {
        self.namespaces.size()
    }

    /// How long the table is with this value of a key, or without the key. The namespace is there then.
    pub(super) fn measure(&self, namespace: &str, key: &str, value: Option<&str>) -> Measured {
        match self.namespaces.get(namespace) {
            Some(known) => {
                let entries_len = known.entries_len_with(key, value);
                Measured {
                    entries_len,
                    namespaces_len: self.namespaces_len + entries_len - known.entries_len,
                }
            }
            None => {
                let entries_len = KvNamespace::default().entries_len_with(key, value);
                let named_len = named_len(namespace, json_len(entries_len));
                Measured {
                    entries_len,
                    namespaces_len: self.namespaces_len + comma(self.namespaces.size()) + named_len,
                }
            }
        }
    }

    /// Makes a change that was measured.
    pub(super) fn set(
        &mut self,
        name: Arc<str>,
        key: Arc<str>,
        value: Option<Arc<str>>,
        measured: Measured,
    ) {
        // Neither is got to be changed before it is known to be there: that alone would copy the way to it.
        if !self.namespaces.contains_key(&name) {
            self.namespaces
                .insert_mut(Arc::clone(&name), KvNamespace::default());
        }
        if let Some(namespace) = self.namespaces.get_mut(&name) {
            match value {
                Some(value) => namespace.entries.insert_mut(key, value),
                None if namespace.entries.contains_key(&key) => {
                    namespace.entries.remove_mut(&key);
                }
                None => {}
            }
            namespace.entries_len = measured.entries_len;
        }
        self.namespaces_len = measured.namespaces_len;
    }
}

impl Measured {
    /// The length of the file.
    pub(super) fn file_len(self) -> usize {
        kv_file::EMPTY_FILE.len() + self.namespaces_len
    }
}

impl KvNamespace {
    fn from_plain(entries: BTreeMap<String, String>) -> Self {
        let mut namespace = Self::default();
        for (key, value) in entries {
            namespace.entries_len += comma(namespace.entries.size()) + entry_len(&key, &value);
            namespace.entries.insert_mut(key.into(), value.into());
        }
        namespace
    }

    fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.entries.iter().map(|(key, value)| (&**key, &**value))
    }

    /// Whether it is the same version of the same namespace, or both are empty.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.entries.ptr_eq(&other.entries)
    }

    /// How many keys it has.
    pub(crate) fn len(&self) -> usize {
        self.entries.size()
    }

    /// How long the body of a list of it is.
    pub(crate) fn list_len(&self) -> usize {
        body::EMPTY_KV_TABLE.len() + self.entries_len
    }

    /// `{"table":{…}}`, the body of 219 and, for order topics, of 103.
    pub(crate) fn write_list(&self, out: &mut Vec<u8>) {
        out.reserve(self.list_len());
        body::kv_table_body(out, self.iter());
    }

    fn json_len(&self) -> usize {
        json_len(self.entries_len)
    }

    fn entries_len_with(&self, key: &str, value: Option<&str>) -> usize {
        match (self.entries.get(key), value) {
            (None, None) => self.entries_len,
            (None, Some(new)) => self.entries_len + comma(self.len()) + entry_len(key, new),
            (Some(old), None) => self.entries_len - entry_len(key, old) - comma(self.len() - 1),
            (Some(old), Some(new)) => self.entries_len + text_len(new) - text_len(old),
        }
    }
}

/// The comma that parts one more member from so many.
fn comma(others: usize) -> usize {
    usize::from(others > 0)
}

fn json_len(entries_len: usize) -> usize {
    "{}".len() + entries_len
}

fn named_len(name: &str, json_len: usize) -> usize {
    text_len(name) + ":".len() + json_len
}

fn entry_len(key: &str, value: &str) -> usize {
    text_len(key) + ":".len() + text_len(value)
}

fn text_len(text: &str) -> usize {
    string_len(text, Dialect::Plain)
}
