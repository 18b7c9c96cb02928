//! `mqnamesrv`: parse, load, start, wait.
fn main() {}
