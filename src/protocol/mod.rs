//! Bytes ⇄ typed messages. Knows no routing, no socket and no time; `docs/protocol.md` is its specification.

pub mod body;
pub mod code;
pub mod command;
pub mod encode;
pub mod fastjson;
pub mod frame;
pub mod header;
mod header_json;
pub mod header_rocketmq;
pub mod json;
pub mod kv_file;
pub mod name;
pub mod register_body;

#[cfg(test)]
mod tests;
