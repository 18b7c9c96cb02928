//! What a scenario found: figures, faults, and the table and JSON of them.

use std::{fmt::Write as _, time::Duration};

use serde_json::{Map, Value, json};

use crate::usage::Usage;

/// Faults that are told one by one; the rest is counted.
const FAULTS_SHOWN_MAX: usize = 10;

/// What one scenario found.
#[derive(Debug)]
pub(crate) struct Record {
    name: &'static str,
    figures: Vec<(String, Value)>,
    faults: Vec<String>,
    fault_count: usize,
    skipped: Vec<String>,
    took: Duration,
}

impl Record {
    /// Of a scenario that has not begun.
    pub(crate) fn new(name: &'static str) -> Record {
        Record {
            name,
            figures: Vec::new(),
            faults: Vec::new(),
            fault_count: 0,
            skipped: Vec::new(),
            took: Duration::ZERO,
        }
    }

    /// Adds a figure; its unit is in its name.
    pub(crate) fn figure(&mut self, name: &str, value: impl Into<Value>) {
        self.figures.push((name.to_owned(), value.into()));
    }

    /// Adds a duration in milliseconds.
    pub(crate) fn millis(&mut self, name: &str, value: Duration) {
        let tenths = (value.as_secs_f64() * 10_000.0).round() / 10.0;
        self.figure(&format!("{name} (ms)"), tenths);
    }

    /// Adds something that must not be.
    pub(crate) fn fault(&mut self, text: String) {
        self.fault_count += 1;
        if self.faults.len() < FAULTS_SHOWN_MAX {
            self.faults.push(text);
        }
    }

    /// Adds each of these as a fault.
    pub(crate) fn faults(&mut self, texts: impl IntoIterator<Item = String>) {
        for text in texts {
            self.fault(text);
        }
    }

    /// Says a fault unless this is so.
    pub(crate) fn expect(&mut self, holds: bool, fault: impl FnOnce() -> String) {
        if !holds {
            self.fault(fault());
        }
    }

    /// Says that a part could not be run here, and why.
    pub(crate) fn skip(&mut self, why: String) {
        self.skipped.push(why);
    }

    /// Adds what the process held before and after; descriptors and threads must be the same, memory may have grown by this.
    pub(crate) fn flat(&mut self, what: &str, before: Usage, after: Usage, growth_max_kib: u64) {
        let pair = |one: u64, other: u64| Value::from(format!("{one} -> {other}"));
        self.figure(&format!("{what}descriptors"), pair(before.fds, after.fds));
        self.figure(
            &format!("{what}threads"),
            pair(before.threads, after.threads),
        );
        self.figure(
            &format!("{what}RSS (KiB)"),
            pair(before.rss_kib, after.rss_kib),
        );
        self.expect(before.fds == after.fds, || {
            format!("{} descriptors before and {} after", before.fds, after.fds)
        });
        self.expect(before.threads == after.threads, || {
            format!(
                "{} threads before and {} after",
                before.threads, after.threads
            )
        });
        self.expect(after.rss_kib <= before.rss_kib + growth_max_kib, || {
            format!(
                "RSS grew from {} to {} KiB, more than {growth_max_kib} KiB",
                before.rss_kib, after.rss_kib
            )
        });
    }

    /// The scenario took this long.
    pub(crate) fn ended(&mut self, took: Duration) {
        self.took = took;
    }

    /// Whether nothing was wrong.
    pub(crate) fn is_faultless(&self) -> bool {
        self.fault_count == 0
    }

    fn verdict(&self) -> &'static str {
        if self.is_faultless() {
            "passed"
        } else {
            "FAILED"
        }
    }

    /// The table.
    pub(crate) fn text(&self) -> String {
        let mut text = format!(
            "{:<10} {} in {:.1} s\n",
            self.name,
            self.verdict(),
            self.took.as_secs_f64()
        );
        for (name, value) in &self.figures {
            let value = value
                .as_str()
                .map_or_else(|| value.to_string(), str::to_owned);
            writeln!(text, "  {name:<58} {value:>22}").expect("writing to a String succeeds");
        }
        for why in &self.skipped {
            writeln!(text, "  not run: {why}").expect("writing to a String succeeds");
        }
        for fault in &self.faults {
            writeln!(text, "  FAULT: {fault}").expect("writing to a String succeeds");
        }
        if self.fault_count > self.faults.len() {
            let more = self.fault_count - self.faults.len();
            writeln!(text, "  FAULT: {more} more").expect("writing to a String succeeds");
        }
        text
    }

    /// The same as JSON.
    pub(crate) fn json(&self) -> Value {
        let figures: Map<String, Value> = self.figures.iter().cloned().collect();
        json!({
            "scenario": self.name,
            "verdict": self.verdict(),
            "seconds": self.took.as_secs_f64(),
            "figures": figures,
            "not_run": self.skipped,
            "faults": self.faults,
            "fault_count": self.fault_count,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growth_beyond_the_bound_and_lost_descriptors_are_faults() {
        let usage = |fds, rss_kib| Usage {
            fds,
            threads: 5,
            rss_kib,
        };
        let mut record = Record::new("flood");
        record.flat("", usage(10, 1000), usage(10, 1100), 100);
        assert!(record.is_faultless(), "{}", record.text());
        record.flat("", usage(10, 1000), usage(11, 1101), 100);
        assert_eq!(record.json()["fault_count"], 2);
        assert!(record.text().starts_with("flood      FAILED"));
    }
}
