//! The one integration binary.
#![expect(
    clippy::panic,
    clippy::unwrap_used,
    reason = "this is how a test fails"
)]

mod allocations;
mod bounds;
mod client;
mod corpus;
mod faults;
mod notifier;
mod parity;
mod process;
mod rules;
mod server;
mod sim;
mod tidy;
mod worker;
mod world;
