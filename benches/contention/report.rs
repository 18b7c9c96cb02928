//! Figures as a table, as JSON and as plots.

use std::{fmt::Write as _, fs, io, path::Path};

use hdrhistogram::Histogram;
use loadgen::{
    plot::{self, Line, Stroke},
    process,
};
use serde_json::{Value, json};

use crate::load::{Cell, Figures, Pace};

/// What one design did in one cell at one size.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) design: &'static str,
    pub(crate) entries: usize,
    pub(crate) cell: Cell,
    pub(crate) figures: Figures,
}

/// Outcomes by size and cell, designs beside each other.
fn groups(outcomes: &[Outcome]) -> Vec<(usize, Cell, Vec<&Outcome>)> {
    let mut groups: Vec<(usize, Cell, Vec<&Outcome>)> = Vec::new();
    for outcome in outcomes {
        let group = groups
            .iter_mut()
            .find(|(entries, cell, _)| (*entries, *cell) == (outcome.entries, outcome.cell));
        match group {
            Some((_, _, members)) => members.push(outcome),
            None => groups.push((outcome.entries, outcome.cell, vec![outcome])),
        }
    }
    groups
}

/// The table, latencies in µs.
pub(crate) fn table(outcomes: &[Outcome]) -> String {
    let mut out = String::new();
    let (machine, kernel) = process::machine();
    let mut push = |line: String| writeln!(out, "{line}").expect("a string takes everything");
    push(format!("{machine}, {kernel}; latencies in µs"));
    for (entries, cell, members) in groups(outcomes) {
        push(format!("\n{entries} topic-broker entries, {cell}"));
        push(format!(
            "{:<22}{:>12}{:>10}{:>10}{:>10}{:>12}{:>12}{:>12}{:>12}",
            "", "look-ups/s", "p50", "p99", "p99.9", "max", "writes/s", "write p50", "write p99"
        ));
        for Outcome {
            design, figures, ..
        } in members
        {
            let of = |latencies: &Histogram<u64>, quantile| {
                format!("{:.2}", latencies.value_at_quantile(quantile) as f64 / 1e3)
            };
            let Figures {
                look_ups, writes, ..
            } = figures;
            push(format!(
                "{design:<22}{:>12.0}{:>10}{:>10}{:>10}{:>12}{:>12.0}{:>12}{:>12}",
                figures.look_ups_per_second,
                of(look_ups, 0.5),
                of(look_ups, 0.99),
                of(look_ups, 0.999),
                of(look_ups, 1.0),
                figures.writes_per_second,
                of(writes, 0.5),
                of(writes, 0.99),
            ));
        }
    }
    out
}

/// All figures.
pub(crate) fn json(outcomes: &[Outcome]) -> Value {
    let (machine, kernel) = process::machine();
    let cells: Vec<Value> = outcomes.iter().map(outcome_json).collect();
    json!({ "machine": machine, "kernel": kernel, "cells": cells })
}

fn outcome_json(outcome: &Outcome) -> Value {
    let Outcome {
        design,
        entries,
        cell,
        figures,
    } = outcome;
    let write = cell.load.map(|(write, _)| write.to_string());
    let pace = cell.load.map(|(_, pace)| match pace {
        Pace::PerSecond(pace) => json!(pace),
        Pace::FlatOut => json!("flat out"),
    });
    json!({
        "design": design,
        "entries": entries,
        "readers": cell.readers,
        "write": write,
        "writes_per_second_wanted": pace,
        "look_ups_per_second": figures.look_ups_per_second,
        "look_up_ns": latencies_json(&figures.look_ups),
        "writes_per_second": figures.writes_per_second,
        "write_ns": latencies_json(&figures.writes),
    })
}

fn latencies_json(latencies: &Histogram<u64>) -> Value {
    json!({
        "count": latencies.len(),
        "p50": latencies.value_at_quantile(0.5),
        "p99": latencies.value_at_quantile(0.99),
        "p99.9": latencies.value_at_quantile(0.999),
        "max": latencies.max(),
    })
}

/// Writes a plot of look-up latencies for each size and cell, under the names that the documentation refers to.
///
/// # Errors
/// When a file cannot be written.
pub(crate) fn write_plots(outcomes: &[Outcome], folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    for (entries, cell, members) in groups(outcomes) {
        let lines: Vec<Line<'_>> = members
            .into_iter()
            .map(|outcome| Line {
                name: outcome.design.to_owned(),
                histogram: &outcome.figures.look_ups,
                stroke: Stroke::Solid,
            })
            .collect();
        let title = format!("Look-ups among {entries} topic-broker entries, {cell}");
        let name = format!("contention {entries} {cell}")
            .replace(", ", "-")
            .replace(' ', "-");
        fs::write(
            folder.join(format!("{name}.svg")),
            plot::svg(&title, &lines),
        )?;
    }
    Ok(())
}
