#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| gpulower_fuzz::export_check(bytes));
