//! KV configuration (spec 2.14, 4): durable before visible. A change is written to disk first; only when the persister says
//! that it is there does it enter the snapshot and is it acknowledged, so what was acknowledged survives anything and what
//! could not be written was never seen (faults I1, I3). Changes that arrive while a write is out share the next one.

use std::sync::Arc;

use bytes::Bytes;

use super::{
    Effect, FileContent, KvTable, Registry,
    command::{PersistFile, PersistTicket, ReplyTo},
};
use crate::{
    limits,
    protocol::{code::ResponseCode, command::Response},
    time::Timestamp,
};

/// The one namespace that has a meaning (spec 4).
pub(crate) const ORDER_TOPIC_CONFIG: &str = "ORDER_TOPIC_CONFIG";

/// What is on its way to the disk.
#[derive(Debug, Default)]
pub(super) struct KvWriter {
    /// The body that a registration is answered with, once one has been since the order topics changed.
    order_topics: Option<Bytes>,
    waiting: Vec<(ReplyTo, KvChange)>,
    waiting_len: usize,
    out: Option<Out>,
    last_number: u64,
}

#[derive(Debug)]
struct Out {
    number: u64,
    table: KvTable,
    changes_order_topics: bool,
    waiters: Vec<ReplyTo>,
}

/// A put, or (without a value) a delete.
#[derive(Debug)]
struct KvChange {
    namespace: Arc<str>,
    key: Arc<str>,
    value: Option<Arc<str>>,
    /// A delete does not create its namespace; a put of null does (spec 2.14).
    creates_namespace: bool,
}

impl KvChange {
    fn len(&self) -> usize {
        self.namespace.len() + self.key.len() + self.value.as_ref().map_or(0, |value| value.len())
    }
}

impl Registry {
    pub(super) fn put_kv(
        &mut self,
        to: ReplyTo,
        namespace: Arc<str>,
        key: Arc<str>,
        value: Option<Arc<str>>,
    ) {
        tracing::info!(
            "putKVConfig, Namespace: {namespace} Key: {key} Value: {}",
            value.as_deref().unwrap_or("null")
        );
        self.queue_kv_change(
            to,
            KvChange {
                namespace,
                key,
                value,
                creates_namespace: true,
            },
        );
    }

    pub(super) fn delete_kv(&mut self, to: ReplyTo, namespace: Arc<str>, key: Arc<str>) {
        tracing::info!("deleteKVConfig delete a config item, Namespace: {namespace} Key: {key}");
        self.queue_kv_change(
            to,
            KvChange {
                namespace,
                key,
                value: None,
                creates_namespace: false,
            },
        );
    }

    /// The body with the order topics, if there are any (spec 4): written when it is first asked for.
    pub(super) fn order_topics(&mut self) -> Option<Bytes> {
        let namespace = self.working.kv.namespace(ORDER_TOPIC_CONFIG)?;
        let body = self.kv.order_topics.get_or_insert_with(|| {
            let mut body = Vec::new();
            namespace.write_list(&mut body);
            body.into()
        });
        Some(body.clone())
    }

    fn queue_kv_change(&mut self, to: ReplyTo, change: KvChange) {
        let len = change.len();
        if self.kv.waiting.len() >= limits::KV_WAITING_MAX
            || self.kv.waiting_len + len > limits::KV_WAITING_LEN_MAX
        {
            let remark = "[OVERLOAD]system busy, start flow control for a while";
            self.reply(to, Response::error(ResponseCode::SystemBusy, remark));
            return;
        }
        self.kv.waiting_len += len;
        self.kv.waiting.push((to, change));
    }

    /// Sends what is waiting to the disk, unless a write is out already.
    pub(super) fn start_kv_persist(&mut self) {
        if self.kv.out.is_some() || self.kv.waiting.is_empty() {
            return;
        }
        self.kv.waiting_len = 0;
        let mut draft = KvDraft::new(&self.working.kv, limits::KV_TABLE_LEN_MAX);
        let mut outcomes = Vec::new();
        for (to, change) in std::mem::take(&mut self.kv.waiting) {
            outcomes.push((to, draft.apply(change)));
        }
        let mut waiters = Vec::new();
        for (to, outcome) in outcomes {
            match outcome {
                Ok(()) => waiters.push(to),
                Err(TooLarge) => {
                    let remark = format!(
                        "kv config would exceed {} bytes, nothing is stored",
                        limits::KV_TABLE_LEN_MAX
                    );
                    self.reply(to, Response::error(ResponseCode::SystemError, remark));
                }
            }
        }
        if !draft.differs_from(&self.working.kv) {
            for to in waiters {
                self.reply(to, Response::success());
            }
            return;
        }
        self.kv.last_number += 1;
        let number = self.kv.last_number;
        self.effects.push(Effect::Persist(
            PersistTicket {
                file: PersistFile::KvConfig,
                number,
            },
            FileContent::Kv(draft.table.clone()),
        ));
        self.kv.out = Some(Out {
            number,
            changes_order_topics: draft.changes_order_topics(),
            table: draft.table,
            waiters,
        });
    }

    pub(super) fn persisted(
        &mut self,
        ticket: PersistTicket,
        result: Result<(), String>,
        now: Timestamp,
    ) {
        match ticket.file {
            PersistFile::KvConfig => self.kv_persisted(ticket.number, result),
            PersistFile::Properties => self.config_persisted(ticket.number, result, now),
        }
    }

    fn kv_persisted(&mut self, number: u64, result: Result<(), String>) {
        let Some(out) = self.kv.out.take_if(|out| out.number == number) else {
            return;
        };
        let response = match result {
            Ok(()) => {
                self.working.kv = out.table;
                if out.changes_order_topics {
                    self.kv.order_topics = None;
                }
                self.changed = true;
                Response::success()
            }
            Err(error) => {
                tracing::error!("persist kvconfig Exception, {error}");
                Response::error(
                    ResponseCode::SystemError,
                    format!("kv config could not be stored and is unchanged: {error}"),
                )
            }
        };
        for to in out.waiters {
            self.reply(to, response.clone());
        }
    }
}

#[derive(Debug)]
struct TooLarge;

/// A table being changed.
struct KvDraft {
    table: KvTable,
    /// Bytes of a file beyond which it is made no longer.
    len_max: usize,
    /// Namespace and key of each change that was made.
    changed: Vec<(Arc<str>, Arc<str>)>,
}

impl KvDraft {
    fn new(base: &KvTable, len_max: usize) -> Self {
        Self {
            table: base.clone(),
            len_max,
            changed: Vec::new(),
        }
    }

    fn apply(&mut self, change: KvChange) -> Result<(), TooLarge> {
        let KvChange {
            namespace,
            key,
            value,
            creates_namespace,
        } = change;
        let is_known = self.table.namespace(&namespace).is_some();
        let changes_nothing = if is_known {
            self.table.get(&namespace, &key) == value.as_ref()
        } else {
            !creates_namespace
        };
        if changes_nothing {
            return Ok(());
        }
        let measured = self.table.measure(&namespace, &key, value.as_deref());
        let len = measured.file_len();
        // A file from elsewhere may be longer than any of ours: it can be made shorter.
        if len > self.len_max && len > self.table.file_len() {
            return Err(TooLarge);
        }
        self.changed
            .push((Arc::clone(&namespace), Arc::clone(&key)));
        self.table.set(namespace, key, value, measured);
        Ok(())
    }

    /// Whether the table is another than it was, after changes that may undo each other. None takes a namespace away.
    fn differs_from(&self, base: &KvTable) -> bool {
        self.table.namespace_count() != base.namespace_count()
            || (self.changed.iter())
                .any(|(namespace, key)| self.table.get(namespace, key) != base.get(namespace, key))
    }

    fn changes_order_topics(&self) -> bool {
        let mut namespaces = self.changed.iter().map(|(namespace, _)| namespace);
        namespaces.any(|namespace| **namespace == *ORDER_TOPIC_CONFIG)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::{collection::vec, option, prelude::*};

    use super::*;

    const LEN_MAX: usize = 10_000;

    fn put(key: &str, value: Option<&str>) -> KvChange {
        KvChange {
            namespace: "n".into(),
            key: key.into(),
            value: value.map(Into::into),
            creates_namespace: true,
        }
    }

    #[test]
    fn a_value_in_the_place_of_another_counts_only_for_what_it_is_longer() {
        let third = LEN_MAX / 3;
        let change =
            |key: &str, len: Option<usize>| put(key, len.map(|len| "v".repeat(len)).as_deref());
        let base = KvTable::default();
        let mut draft = KvDraft::new(&base, LEN_MAX);
        let changes = [
            ("a", Some(third), true),
            ("b", Some(third), true),
            ("a", Some(third), true),
            ("c", Some(third + 100), false),
            ("a", Some(third - 100), true),
            ("c", Some(third + 100), false),
            ("c", Some(third + 50), true),
            ("b", None, true),
            ("b", None, true),
            ("d", Some(third), true),
            ("e", Some(third), false),
        ];
        for (place, (key, len, fits)) in changes.into_iter().enumerate() {
            let applied = draft.apply(change(key, len));
            assert_eq!(applied.is_ok(), fits, "{place}");
        }
        let table = draft.table;
        let namespace = table.namespace("n").expect("it has keys");
        assert_eq!(namespace.len(), 3);

        let mut draft = KvDraft::new(&table, LEN_MAX);
        assert!(draft.apply(change("a", Some(third - 100))).is_ok());
        assert!(draft.apply(change("a", Some(2 * third))).is_err());
    }

    #[test]
    fn what_is_longer_in_the_file_counts_as_it_is_there_and_the_last_byte_is_used() {
        const COUNT: usize = 1000;
        let mut draft = KvDraft::new(&KvTable::default(), LEN_MAX);
        let frame = r#","a":"""#.len();
        assert!(draft.apply(put("a", Some(""))).is_ok());
        // Each of the characters to come takes six bytes.
        let left = LEN_MAX - draft.table.file_len();
        let filler = "v".repeat(left - 2 * frame - 6 * COUNT);
        assert!(draft.apply(put("b", Some(&filler))).is_ok());
        let escaped = |count| "\u{1}".repeat(count);
        assert!(draft.apply(put("c", Some(&escaped(COUNT + 1)))).is_err());
        assert!(draft.apply(put("c", Some(&escaped(COUNT)))).is_ok());
        assert!(draft.apply(put("a", Some("v"))).is_err());
        assert_eq!(draft.table.to_file().len(), LEN_MAX);
    }

    #[test]
    fn a_file_that_is_longer_than_ours_may_be_is_only_made_shorter() {
        let long = "v".repeat(LEN_MAX);
        let entries = BTreeMap::from([("k".to_owned(), long.clone())]);
        let base = KvTable::from_plain([("n".to_owned(), entries)].into());
        let mut draft = KvDraft::new(&base, LEN_MAX);
        assert!(draft.apply(put("l", Some(""))).is_err());
        assert!(draft.apply(put("k", Some(&long[1..]))).is_ok());
        assert!(draft.apply(put("k", Some(&long))).is_err());
        assert!(draft.apply(put("k", None)).is_ok());
    }

    fn changes() -> impl Strategy<Value = Vec<KvChange>> {
        let name = "[ab\"\u{1}\u{7f}\u{2028}ü]{0,1}";
        let change = (name, name, option::of(name), any::<bool>());
        let change = change.prop_map(|(namespace, key, value, creates_namespace)| KvChange {
            namespace: namespace.into(),
            key: key.into(),
            creates_namespace: creates_namespace || value.is_some(),
            value: value.map(Into::into),
        });
        vec(change, 0..12)
    }

    proptest! {
        #[test]
        fn a_table_is_what_was_stored_and_knows_how_long_it_is(batches in vec(changes(), 0..6)) {
            let mut stored = BTreeMap::<String, BTreeMap<String, String>>::new();
            let mut table = KvTable::default();
            for batch in batches {
                let before = stored.clone();
                let mut draft = KvDraft::new(&table, LEN_MAX);
                for change in batch {
                    let (namespace, key) = (change.namespace.to_string(), change.key.to_string());
                    if change.creates_namespace {
                        stored.entry(namespace.clone()).or_default();
                    }
                    if let Some(entries) = stored.get_mut(&namespace) {
                        match &change.value {
                            Some(value) => entries.insert(key, value.to_string()),
                            None => entries.remove(&key),
                        };
                    }
                    prop_assert!(draft.apply(change).is_ok());
                }
                prop_assert_eq!(draft.differs_from(&table), stored != before);
                table = draft.table;
                prop_assert_eq!(&table, &KvTable::from_plain(stored.clone()));
                prop_assert_eq!(table.to_file().len(), table.file_len());
                for (name, entries) in &stored {
                    let namespace = table.namespace(name).expect("it is stored");
                    let mut list = Vec::new();
                    namespace.write_list(&mut list);
                    prop_assert_eq!(list.len(), namespace.list_len());
                    prop_assert_eq!(namespace.len(), entries.len());
                }
            }
        }
    }
}
