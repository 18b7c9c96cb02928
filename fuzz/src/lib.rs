//! What must hold whatever bytes a peer sends: one function a fuzz target, each a property that panics when it is broken.
//!
//! The targets of libFuzzer call them with bytes it makes up, `tests/it/corpus.rs` with the bytes that are committed. Everything
//! here goes through the public interface of `waypost`, as the server does.

mod bodies;
mod connection;
mod files;
mod messages;
pub mod rig;

/// A property and its name, which is that of its target and of its corpus.
pub type Target = (&'static str, fn(&[u8]));

/// Every target.
pub const TARGETS: [Target; 9] = [
    ("config_text", files::config_text),
    ("connection", connection::connection),
    ("frame", messages::frame),
    ("header_json", messages::header_json),
    ("header_rocketmq", messages::header_rocketmq),
    ("header_scan", messages::header_scan),
    ("kv_file", files::kv_file),
    ("register_body", bodies::register_body),
    ("register_body_compressed", bodies::register_body_compressed),
];

/// Checks one property against these bytes.
///
/// # Panics
/// When it does not hold, or there is none of that name.
pub fn run(target: &str, data: &[u8]) {
    let (_, check) = TARGETS
        .iter()
        .find(|(name, _)| *name == target)
        .expect("a target of the table");
    check(data);
}
