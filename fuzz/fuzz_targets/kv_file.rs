#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| waypost_fuzz::run("kv_file", data));
