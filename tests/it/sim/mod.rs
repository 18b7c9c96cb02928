//! A simulator: brokers, clients, operators, connections and one server, on simulated time, all from one seed.
//!
//! A seed is turned into a [`script`] first, so a run can be repeated and a failing one shortened by leaving steps out. The
//! [`machine`] plays it: real `Connection`s, the real processor and the real registry, with every queue between them moved by
//! hand. The [`model`] is a second, naive implementation of the rules; after every turn of the writer every question is
//! answered alike by both ([`check`]).

mod answer;
mod check;
mod machine;
mod model;
mod office;
mod peer;
mod query;
mod request;
mod run;
mod script;
mod seeds;
mod settings;
mod stored;

use run::{assert_all_pass, environment_number};
use seeds::FOUND;

/// Seeds that run with every `cargo test`.
const SEEDS_DEFAULT: u64 = 200;

#[test]
fn the_server_does_as_the_model_does_whatever_the_seed() {
    let start = environment_number("SIM_SEED_START").unwrap_or(0);
    let count = environment_number("SIM_SEEDS").unwrap_or(SEEDS_DEFAULT);
    assert_all_pass(start..start + count);
}

#[test]
fn seeds_that_once_found_something_pass() {
    assert_all_pass(FOUND.iter().map(|(seed, _)| *seed));
}
