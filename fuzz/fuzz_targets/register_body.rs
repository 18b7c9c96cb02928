#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| waypost_fuzz::run("register_body", data));
