//! The one integration binary.
#![expect(clippy::panic, reason = "this is how a test fails")]

mod faults;
mod rules;
mod tidy;
mod world;
