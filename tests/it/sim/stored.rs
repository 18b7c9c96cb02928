//! What name servers keep in files: a change is seen, and answered, once it is written (Q28).

use std::collections::{BTreeMap, VecDeque};

use super::{
    answer::Answer,
    request::Name,
    settings::{Refusal, Settings},
};

/// Namespace → key → value.
pub(super) type Kv = BTreeMap<Name, BTreeMap<Name, Name>>;

/// Which request an answer is for.
pub(super) type Ticket = usize;

/// A change of the KV table.
#[derive(Debug, Clone, Copy)]
pub(super) enum KvChange {
    Put(Name, Name, Option<Name>),
    Delete(Name, Name),
}

/// The KV table and the configuration, and what is on its way to the disk.
#[derive(Debug, Clone)]
pub(super) struct Stored {
    pub(super) kv: Kv,
    pub(super) settings: Settings,
    kv_waiting: Vec<(Ticket, KvChange)>,
    /// The table that is being written.
    pub(super) kv_out: Option<(Kv, Vec<Ticket>)>,
    settings_waiting: VecDeque<(Ticket, Vec<(Name, Name)>)>,
    settings_out: Option<(Settings, Ticket)>,
}

impl Stored {
    pub(super) fn new(settings: Settings) -> Self {
        Self {
            kv: Kv::new(),
            settings,
            kv_waiting: Vec::new(),
            kv_out: None,
            settings_waiting: VecDeque::new(),
            settings_out: None,
        }
    }

    pub(super) fn change_kv(&mut self, ticket: Ticket, change: KvChange) {
        self.kv_waiting.push((ticket, change));
    }

    pub(super) fn change_settings(&mut self, ticket: Ticket, lines: &[(Name, Name)]) {
        self.settings_waiting.push_back((ticket, lines.to_vec()));
    }

    /// The end of a batch: what waits goes to the disk, unless something is out already. Returns what needs no writing.
    pub(super) fn end_batch(&mut self) -> Vec<(Ticket, Answer)> {
        let mut answers = Vec::new();
        if self.kv_out.is_none() && !self.kv_waiting.is_empty() {
            let mut kv = self.kv.clone();
            let changes = std::mem::take(&mut self.kv_waiting);
            changes.iter().for_each(|(_, change)| change.apply(&mut kv));
            let tickets = changes.into_iter().map(|(ticket, _)| ticket);
            if kv == self.kv {
                answers.extend(tickets.map(|ticket| (ticket, Answer::ok())));
            } else {
                self.kv_out = Some((kv, tickets.collect()));
            }
        }
        while self.settings_out.is_none()
            && let Some((ticket, lines)) = self.settings_waiting.pop_front()
        {
            match self.settings.changed(&lines) {
                Err(Refusal::BlackListed) => {
                    answers.push((
                        ticket,
                        Answer::error(16, "Can not update config in black list."),
                    ));
                }
                Err(Refusal::ControlCharacter) => answers.push((ticket, Answer::failure(1))),
                Ok(settings) if settings == self.settings => {
                    answers.push((ticket, Answer::ok().any_remark()));
                }
                Ok(settings) => self.settings_out = Some((settings, ticket)),
            }
        }
        answers
    }

    /// The KV file is written, or could not be.
    pub(super) fn kv_written(&mut self, succeeded: bool) -> Vec<(Ticket, Answer)> {
        let (kv, tickets) = self.kv_out.take().expect("a write was out");
        let answer = written(succeeded);
        if succeeded {
            self.kv = kv;
        }
        tickets
            .into_iter()
            .map(|ticket| (ticket, answer.clone()))
            .collect()
    }

    /// The configuration file is written, or could not be.
    pub(super) fn settings_written(&mut self, succeeded: bool) -> (Ticket, Answer) {
        let (settings, ticket) = self.settings_out.take().expect("a write was out");
        if succeeded {
            self.settings = settings;
        }
        (ticket, written(succeeded))
    }
}

fn written(succeeded: bool) -> Answer {
    if succeeded {
        Answer::ok().any_remark()
    } else {
        Answer::failure(1)
    }
}

impl KvChange {
    /// A null value hides an older one and is left out; a delete creates no namespace (spec 2.14).
    fn apply(self, kv: &mut Kv) {
        match self {
            Self::Put(namespace, key, Some(value)) => {
                kv.entry(namespace).or_default().insert(key, value);
            }
            Self::Put(namespace, key, None) => {
                kv.entry(namespace).or_default().remove(key);
            }
            Self::Delete(namespace, key) => {
                if let Some(entries) = kv.get_mut(namespace) {
                    entries.remove(key);
                }
            }
        }
    }
}
