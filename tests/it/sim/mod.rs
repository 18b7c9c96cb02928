//! A simulator: brokers, clients, operators, connections and one server, on simulated time, all from one seed.
//!
//! A seed is turned into a [`script`] first, so a run can be repeated and a failing one shortened by leaving steps out
//! ([`run`]). The [`machine`] plays it around the server's own worker and helper (`waypost::worker`): what comes over a socket, in
//! which pieces, when a peer takes its answers or breaks off, when the worker, the helper, the writer and the disk get to work, and
//! how much room there is between them. Admission, credits, slots, deadlines, the goodbye and the stop are the real ones; so are
//! the processor and the registry. The writer's turn is the machine's, for it has to tell the model of each command.
//!
//! The [`model`] is a second, naive implementation of the rules. Each request reaches it at the moment at which it takes effect
//! in the server ([`office`]), and its answer must be the model's. Whenever either has changed, every question has the same answer from both
//! ([`check`]; of the lists of topics one in turn). Besides:
//! * every address that is shown belongs to one group and is live there, and there are as many live addresses, groups and topics;
//! * answers come in the order of their requests, and none before its change is visible;
//! * a request is executed once, for the connection that it came over, and a worker that is not woken has nothing to do;
//! * a connection is closed for a reason that its [`peer`] knows of, and not kept when there is one;
//! * when nothing is under way, every credit is back, and no broker lives by a connection that is gone;
//! * a stop answers what is done, takes its time and no more, and takes nobody's brokers along;
//! * a connection is bound to brokers exactly while the model binds one to it, and never once the writer knows of its end;
//! * a scan is due while a broker is live; who expires has its connection closed, and nobody else has;
//! * whenever all has arrived a server that gets the same state in another way answers the same ([`check`]);
//! * at the end of a script, and before a stop in the middle of everything, the writer keeps bindings, groups and numbers of topics
//!   for what there is and for nothing else ([`kept`]); when everyone has left there is nothing.
//!
//! `SIM_SEEDS=100000 SIM_SEED_START=200 cargo test --release --test it sim` is a long run. A failure prints its seed, and a
//! shortened script as the Rust that makes it ([`literal`]). Once it is mended that goes into [`found`], for a seed stands for
//! another run as soon as [`script`] changes.
//!
//! That it can fail was measured, by faults put in by hand one at a time, with seeds 0 to 199: of the scripts that [`script`] draws
//! since large frames stop halfway in them, and of what is compared since [`kept`] is. Whoever changes either measures again, or
//! takes the figures for what they were.
//!
//! | fault | seeds that fail | steps left |
//! |---|---|---|
//! | an equal state version outranks a newcomer | 138 | 1 |
//! | an address that registers under another name stays in its first group | 43 | 2 |
//! | a registration over another connection leaves the earlier ones bound | 25 | 6 |
//! | a changed topic under an equal data version is ignored | 18 | 4 |
//! | a group that loses its master keeps its write permission | 8 | 4 |
//! | a broker expires at its timeout and not after it | 4 | 4 |
//! | what a group declared is not forgotten when its queues change | 9 | 3 |
//! | nor when it leaves a topic | 4 | 4 |
//! | the writer is not told of a closed connection that carried brokers | 160 | 1 |
//! | nor of a FIN while answers are owed | 9 | 2 |
//! | a command of the helper's goes to the writer behind the end of its connection | 3 | 4 |
//! | a reply to a connection that is gone returns no credit | 30 | 3 |
//! | a reply reaches the next tenant of its connection's slot | 23 | 6 |
//! | a connection that closes keeps its place in the admission | 14 | 5 |
//! | a connection that is admitted is not served | 10 | 8 |
//! | a connection keeps the address of a broker that has left | 74 | 2 |
//! | an address that has left keeps its place among the bound | 168 | 1 |
//! | the number of a topic that is gone is not used again | 157 | 1 |
//! | nor that of a group | 174 | 1 |
//! | a group keeps a topic in its list that it has left | 30 | 2 |
//!
//! Not noticed: that shared lists and queue data which nobody uses any more are never looked for, since no script has more than the
//! number from which on they are; `bounds` holds that.

mod answer;
mod check;
mod found;
mod kept;
mod literal;
mod machine;
mod model;
mod office;
mod peer;
mod query;
mod request;
mod run;
mod script;
mod settings;
mod stored;

use run::{assert_all_pass, environment_number};

/// Seeds that run with every `cargo test`.
const SEEDS_DEFAULT: u64 = 200;

#[test]
fn the_server_does_as_the_model_does_whatever_the_seed() {
    let start = environment_number("SIM_SEED_START").unwrap_or(0);
    let count = environment_number("SIM_SEEDS").unwrap_or(SEEDS_DEFAULT);
    assert_all_pass(start..start + count);
}
