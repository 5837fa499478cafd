//! A Moscow Exchange replay connection answers what can be read, or hangs up.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| tickwire_fuzzing::targets::moex_replay_server(bytes));
