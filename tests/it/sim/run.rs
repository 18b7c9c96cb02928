//! Runs seeds, and shortens the script of one that fails.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::{
    literal::simpler,
    machine::{Machine, Verdict},
    script::Script,
};

/// Failing seeds that are named.
const SEEDS_SHOWN: usize = 20;

/// A number from the environment.
#[expect(
    clippy::disallowed_methods,
    reason = "how long to simulate is chosen where the tests are started"
)]
pub(super) fn environment_number(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(
        text.parse()
            .unwrap_or_else(|error| panic!("{name}: {error}")),
    )
}

/// Plays the script of each seed. Says how many failed, and shows the shortened script of the first.
pub(super) fn assert_all_pass(seeds: impl IntoIterator<Item = u64>) {
    let mut count = 0;
    let mut failed = Vec::new();
    for seed in seeds {
        count += 1;
        if let Err(text) = play(&Script::of(seed)) {
            failed.push((seed, text));
        }
    }
    if let Some((seed, text)) = failed.first() {
        let report = report(*seed, text, &shortened(Script::of(*seed)));
        let seeds: Vec<u64> = failed
            .iter()
            .map(|(seed, _)| *seed)
            .take(SEEDS_SHOWN)
            .collect();
        panic!(
            "{} of {count} seeds fail, {seeds:?}\n{report}",
            failed.len()
        );
    }
}

/// Plays a script. A panic of the server's is a verdict like any other.
pub(super) fn play(script: &Script) -> Verdict {
    let played = catch_unwind(AssertUnwindSafe(|| {
        let mut machine = Machine::new(script);
        for (number, step) in script.steps.iter().enumerate() {
            let verdict = machine.step(step);
            verdict.map_err(|text| format!("step {number}: {text}"))?;
        }
        machine
            .finish()
            .map_err(|text| format!("at the end: {text}"))
    }));
    played.unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_string()));
        Err(format!("panic: {}", text.unwrap_or_default()))
    })
}

/// Leaves out ever smaller runs of steps as long as the rest still fails, then whatever is unusual about those that are left.
fn shortened(script: Script) -> Script {
    let mut script = with_fewer_steps(script);
    loop {
        let simpler = simpler(&script).find(|simpler| play(simpler).is_err());
        let Some(simpler) = simpler else {
            return script;
        };
        script = simpler;
    }
}

fn with_fewer_steps(mut script: Script) -> Script {
    let mut size = script.steps.len().div_ceil(2);
    loop {
        let mut start = 0;
        let mut found = false;
        while start < script.steps.len() {
            let mut shorter = script.clone();
            let end = (start + size).min(shorter.steps.len());
            shorter.steps.drain(start..end);
            if play(&shorter).is_err() {
                script = shorter;
                found = true;
            } else {
                start += size;
            }
        }
        if size == 1 && !found {
            return script;
        }
        size = size.div_ceil(2).max(1);
    }
}

fn report(seed: u64, text: &str, shortest: &Script) -> String {
    let again = play(shortest).err().unwrap_or_default();
    format!(
        "seed {seed}: {text}\nSIM_SEED_START={seed} SIM_SEEDS=1 cargo test --test it sim\nshortened: {again}\n{shortest}"
    )
}
