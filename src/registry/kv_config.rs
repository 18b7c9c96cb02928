//! KV configuration (spec 2.14, 4): durable before visible. A change is written to disk first; only when the persister says
//! that it is there does it enter the snapshot and is it acknowledged, so what was acknowledged survives anything and what
//! could not be written was never seen (faults I1, I3). Changes that arrive while a write is out share the next one.

use std::{collections::BTreeMap, sync::Arc};

use bytes::Bytes;

use super::{
    Effect, KvTable, Registry,
    command::{PersistFile, PersistTicket, ReplyTo},
    snapshot::KvNamespace,
};
use crate::{
    limits,
    protocol::{body, code::ResponseCode, command::Response, kv_file},
    time::Timestamp,
};

/// The one namespace that has a meaning (spec 4).
pub(crate) const ORDER_TOPIC_CONFIG: &str = "ORDER_TOPIC_CONFIG";

/// What is on its way to the disk.
#[derive(Debug, Default)]
pub(super) struct KvWriter {
    waiting: Vec<(ReplyTo, KvChange)>,
    waiting_len: usize,
    out: Option<Out>,
    last_number: u64,
}

#[derive(Debug)]
struct Out {
    number: u64,
    table: KvTable,
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
        let mut draft = KvDraft::new(&self.working.kv);
        let mut outcomes = Vec::new();
        for (to, change) in std::mem::take(&mut self.kv.waiting) {
            outcomes.push((to, draft.apply(change)));
        }
        let table = draft.finish();
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
        if table == self.working.kv {
            for to in waiters {
                self.reply(to, Response::success());
            }
            return;
        }
        self.kv.last_number += 1;
        let number = self.kv.last_number;
        let file = kv_file::encode_kv_file(&table.to_plain());
        self.effects.push(Effect::Persist(
            PersistTicket {
                file: PersistFile::KvConfig,
                number,
            },
            file.into(),
        ));
        self.kv.out = Some(Out {
            number,
            table,
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

impl KvTable {
    /// A table with these namespaces, as read from a file.
    #[must_use]
    pub fn from_plain(namespaces: BTreeMap<String, BTreeMap<String, String>>) -> Self {
        let entries = |entries: BTreeMap<String, String>| {
            let entries = entries
                .into_iter()
                .map(|(key, value)| (key.into(), value.into()))
                .collect();
            Arc::new(KvNamespace::new(entries))
        };
        let namespaces = namespaces
            .into_iter()
            .map(|(namespace, table)| (namespace.into(), entries(table)))
            .collect();
        Self {
            namespaces: Arc::new(namespaces),
        }
    }

    fn to_plain(&self) -> BTreeMap<String, BTreeMap<String, String>> {
        let entries = |namespace: &KvNamespace| {
            namespace
                .entries
                .iter()
                .map(|(key, value)| (key.to_string(), value.to_string()))
                .collect()
        };
        self.namespaces
            .iter()
            .map(|(name, namespace)| (name.to_string(), entries(namespace)))
            .collect()
    }

    fn len(&self) -> usize {
        self.namespaces
            .iter()
            .map(|(name, namespace)| name.len() + namespace.body.len())
            .sum()
    }
}

/// A table being changed: a namespace is copied and encoded once, however many of its keys change.
struct KvDraft<'a> {
    base: &'a KvTable,
    len: usize,
    touched: BTreeMap<Arc<str>, BTreeMap<Arc<str>, Arc<str>>>,
}

impl<'a> KvDraft<'a> {
    fn new(base: &'a KvTable) -> Self {
        Self {
            base,
            len: base.len(),
            touched: BTreeMap::new(),
        }
    }

    fn apply(&mut self, change: KvChange) -> Result<(), TooLarge> {
        let known = self.base.namespaces.get(&change.namespace);
        let is_new = known.is_none() && !self.touched.contains_key(&change.namespace);
        if is_new && !change.creates_namespace {
            return Ok(());
        }
        let copied = || {
            known
                .map(|namespace| namespace.entries.clone())
                .unwrap_or_default()
        };
        let entries = self
            .touched
            .entry(Arc::clone(&change.namespace))
            .or_insert_with(copied);
        let entry_len = |value: &Arc<str>| change.key.len() + value.len();
        let freed = entries.get(&change.key).map_or(0, entry_len);
        let taken = change.value.as_ref().map_or(0, entry_len);
        let name = if is_new { change.namespace.len() } else { 0 };
        // What is there is counted as it is encoded, which is never shorter.
        let len = self.len + name + taken - freed;
        if len > limits::KV_TABLE_LEN_MAX && len > self.len {
            if is_new {
                self.touched.remove(&change.namespace);
            }
            return Err(TooLarge);
        }
        self.len = len;
        match change.value {
            Some(value) => entries.insert(change.key, value),
            None => entries.remove(&change.key),
        };
        Ok(())
    }

    fn finish(self) -> KvTable {
        let mut namespaces = Arc::clone(&self.base.namespaces);
        for (name, entries) in self.touched {
            if namespaces
                .get(&name)
                .is_none_or(|known| known.entries != entries)
            {
                Arc::make_mut(&mut namespaces).insert(name, Arc::new(KvNamespace::new(entries)));
            }
        }
        KvTable { namespaces }
    }
}

impl KvNamespace {
    fn new(entries: BTreeMap<Arc<str>, Arc<str>>) -> Self {
        let mut encoded = Vec::new();
        body::kv_table_body(
            &mut encoded,
            entries.iter().map(|(key, value)| (&**key, &**value)),
        );
        Self {
            entries,
            body: Bytes::from(encoded),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_in_the_place_of_another_counts_only_for_what_it_is_longer() {
        let third = limits::KV_TABLE_LEN_MAX / 3;
        let change = |key: &str, len: Option<usize>| KvChange {
            namespace: "n".into(),
            key: key.into(),
            value: len.map(|len| "v".repeat(len).into()),
            creates_namespace: true,
        };
        let base = KvTable::default();
        let mut draft = KvDraft::new(&base);
        let changes = [
            ("a", Some(third), true),
            ("b", Some(third), true),
            ("a", Some(third), true),
            ("c", Some(third + 1024), false),
            ("a", Some(third - 1024), true),
            ("c", Some(third + 1024), false),
            ("c", Some(third + 1000), true),
            ("b", None, true),
            ("b", None, true),
            ("d", Some(third), true),
            ("e", Some(third), false),
        ];
        for (place, (key, len, fits)) in changes.into_iter().enumerate() {
            let applied = draft.apply(change(key, len));
            assert_eq!(applied.is_ok(), fits, "{place}");
        }
        let table = draft.finish();
        let keys: Vec<_> = table.namespaces["n"].entries.keys().collect();
        assert_eq!(keys.len(), 3, "{keys:?}");

        let mut draft = KvDraft::new(&table);
        assert!(draft.apply(change("a", Some(third - 1024))).is_ok());
        assert!(draft.apply(change("a", Some(2 * third))).is_err());
    }
}
