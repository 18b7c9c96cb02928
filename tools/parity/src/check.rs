//! Comparing a report with a golden file and the deviations, and saying what differs.

use std::collections::BTreeMap;
use std::fmt;

use serde_json::Value;

use crate::deviations::{Deviation, patched};
use crate::frame::Codec;
use crate::observed::{Observed, Record, Report, agrees};
use crate::script::{Action, Section};

/// All that is wrong with a report.
#[derive(Debug, Default)]
pub struct Mismatches {
    /// One paragraph each.
    pub list: Vec<String>,
}

impl fmt::Display for Mismatches {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(formatter, "{} differences", self.list.len())?;
        self.list
            .iter()
            .try_for_each(|text| writeln!(formatter, "\n{text}"))
    }
}

impl std::error::Error for Mismatches {}

/// Checks a report of our server: every step answers as the golden file says, or as a deviation does.
///
/// # Errors
/// The differences, among them golden files that do not fit the script and deviations that are none.
pub fn check(
    sections: &[Section],
    report: &Report,
    golden: &Report,
    deviations: &[Deviation],
) -> std::result::Result<(), Mismatches> {
    let mut list = Vec::new();
    let codecs = codecs(sections);
    let by_step = deviations_by_step(deviations, golden, &mut list);
    for section in &report.sections {
        list.extend(
            section
                .notes
                .iter()
                .map(|note| format!("section {}: {note}", section.section)),
        );
    }
    let mut rules_used = vec![false; deviations.len()];
    for record in report.records() {
        let Some(original) = golden
            .record(&record.id)
            .filter(|original| original.sent == record.sent)
        else {
            list.push(format!(
                "step {}: the golden file has no such step, or another one: record again",
                record.id
            ));
            continue;
        };
        let sent = codecs
            .get(record.id.as_str())
            .map(Vec::as_slice)
            .unwrap_or_default();
        let mut expected = original.observed.clone();
        for (deviation, used) in deviations.iter().zip(&mut rules_used) {
            if let Some(rule) = deviation.rule {
                let ruled = rule.apply(sent, &expected);
                *used |= ruled != expected;
                expected = ruled;
            }
        }
        let deviation = by_step.get(record.id.as_str());
        if let Some(text) = compare_step(record, &original.observed, expected, deviation) {
            list.push(text);
        }
    }
    for record in golden
        .records()
        .filter(|record| report.record(&record.id).is_none())
    {
        list.push(format!(
            "step {}: in the golden file, not in the script",
            record.id
        ));
    }
    let idle = deviations
        .iter()
        .zip(rules_used)
        .filter(|(deviation, used)| deviation.rule.is_some() && !used);
    list.extend(
        idle.map(|(deviation, _)| format!("{}: its rule applies to no step", deviation.id)),
    );
    if list.is_empty() {
        Ok(())
    } else {
        Err(Mismatches { list })
    }
}

type StepDeviations<'a> = BTreeMap<&'a str, (&'a str, &'a Value)>;

fn deviations_by_step<'a>(
    deviations: &'a [Deviation],
    golden: &Report,
    list: &mut Vec<String>,
) -> StepDeviations<'a> {
    let mut by_step = StepDeviations::new();
    for deviation in deviations {
        if deviation.rule.is_none() && deviation.steps.is_empty() {
            list.push(format!("{}: shown by no step", deviation.id));
        }
        for (step, patch) in &deviation.steps {
            if golden.record(step).is_none() {
                list.push(format!("{}: there is no step {step}", deviation.id));
            }
            if let Some((other, _)) = by_step.insert(step, (&deviation.id, patch)) {
                list.push(format!(
                    "step {step}: both {other} and {} speak of it",
                    deviation.id
                ));
            }
        }
    }
    by_step
}

/// What is wrong with one step, if anything.
fn compare_step(
    record: &Record,
    original: &Observed,
    ruled: Observed,
    deviation: Option<&(&str, &Value)>,
) -> Option<String> {
    let Some((id, patch)) = deviation else {
        return (!agrees(&ruled, &record.observed))
            .then(|| difference(record, "the original", &ruled));
    };
    let expected = match patched(&ruled, patch) {
        Ok(expected) => expected,
        Err(error) => return Some(format!("{id}, step {}: {error}", record.id)),
    };
    if agrees(original, &expected) {
        return Some(format!(
            "{id}, step {}: what it expects is what the original answers",
            record.id
        ));
    }
    if agrees(&ruled, &record.observed) {
        return Some(format!(
            "{id}, step {}: the server does not deviate (any more)",
            record.id
        ));
    }
    (!agrees(&expected, &record.observed)).then(|| difference(record, id, &expected))
}

fn difference(record: &Record, whose: &str, expected: &Observed) -> String {
    let mut text = format!("step {}\n  sent      {}", record.id, record.sent);
    let (wanted, got) = (lines(expected), lines(&record.observed));
    if wanted.get("got") != got.get("got") {
        let (wanted, got) = (whole(expected), whole(&record.observed));
        return format!("{text}\n  expected  {wanted}   ({whose})\n  got       {got}");
    }
    for key in wanted
        .keys()
        .chain(got.keys().filter(|key| !wanted.contains_key(*key)))
    {
        let none = "-".to_owned();
        let (wanted, got) = (
            wanted.get(key).unwrap_or(&none),
            got.get(key).unwrap_or(&none),
        );
        if wanted != got {
            let (wanted, got) = (lines_without(wanted, got), lines_without(got, wanted));
            let member =
                format!("\n  {key}\n    expected  {wanted}   ({whose})\n    got       {got}");
            text.push_str(&member);
        }
    }
    text
}

/// Of a text of many lines, those the other one has not; of a long line, the part around the first difference.
fn lines_without(text: &str, other: &str) -> String {
    const LONG: usize = 240;
    if text.lines().count() >= 5 {
        let others: Vec<&str> = other.lines().collect();
        let missing: Vec<&str> = text.lines().filter(|line| !others.contains(line)).collect();
        return missing.join("\n              ");
    }
    let equal = text
        .chars()
        .zip(other.chars())
        .take_while(|(one, other)| one == other)
        .count();
    if text.chars().count() <= LONG || equal < LONG / 3 {
        return text.to_owned();
    }
    let part: String = text.chars().skip(equal - LONG / 3).take(LONG).collect();
    format!("…{part}… (character {equal} differs)")
}

/// An observation of another kind than expected is shown whole.
fn whole(observed: &Observed) -> String {
    serde_json::to_string(observed).expect("observations are JSON")
}

/// The members of an observation, one text each.
fn lines(observed: &Observed) -> BTreeMap<String, String> {
    let Ok(Value::Object(members)) = serde_json::to_value(observed) else {
        return BTreeMap::new();
    };
    let text = |value: Value| match value {
        Value::String(text) => text,
        other => other.to_string(),
    };
    members
        .into_iter()
        .map(|(key, value)| (key, text(value)))
        .collect()
}

/// The codecs each step's requests were sent with.
fn codecs(sections: &[Section]) -> BTreeMap<&str, Vec<Codec>> {
    let steps = sections
        .iter()
        .flat_map(|section| &section.themes)
        .flat_map(|theme| &theme.steps);
    steps
        .map(|step| {
            let codecs = match &step.action {
                Action::Ask(frame)
                | Action::Lines(frame, _)
                | Action::Quiet(frame)
                | Action::Until(frame, _) => {
                    vec![frame.codec]
                }
                Action::Pipeline(frames) | Action::Repeat(_, frames) => {
                    frames.iter().map(|frame| frame.codec).collect()
                }
                Action::Raw(chunks, _) => raw_codec(&chunks.concat()),
                _ => Vec::new(),
            };
            (step.id.as_str(), codecs)
        })
        .collect()
}

/// The codec of a raw frame, by its type byte.
fn raw_codec(bytes: &[u8]) -> Vec<Codec> {
    match bytes.get(4) {
        Some(1) => vec![Codec::RocketMq],
        _ => vec![Codec::Json],
    }
}

/// The steps two reports answer differently, for people.
#[must_use]
pub fn compare(one: &Report, other: &Report) -> Vec<String> {
    let pairs = one
        .records()
        .filter_map(|record| Some((record, other.record(&record.id)?)));
    let differing = pairs.filter(|(record, other)| {
        !agrees(&record.observed, &other.observed) && !agrees(&other.observed, &record.observed)
    });
    differing
        .map(|(record, other)| difference(other, "the first", &record.observed))
        .collect()
}
