//! Bytes ⇄ typed messages. Knows no routing, no socket and no time; `docs/protocol.md` is its specification.
//!
//! - A message: [`frame`] finds where it ends, [`header`] reads it into a [`command::RemotingCommand`] ([`header_scan`] if it is of
//!   the usual form), [`encode`] writes the answer. [`code`] has the numbers.
//! - Bodies: [`register_body`] and [`kv_file`] read theirs, [`body`] has the values and the small ones.
//! - JSON: [`json`] reads what fastjson reads, [`fastjson`] writes what fastjson writes.
//!
//! A decoder borrows from its input, never panics, and takes no more memory than a small multiple of what it was given:
//! [`crate::limits`] bounds whatever could grow faster.

pub mod body;
pub mod code;
pub mod command;
pub mod encode;
pub mod fastjson;
pub mod frame;
pub mod header;
mod header_json;
pub mod header_rocketmq;
pub mod header_scan;
pub mod json;
pub mod kv_file;
pub mod name;
pub mod register_body;

mod scan;
#[cfg(test)]
mod tests;
mod words;
