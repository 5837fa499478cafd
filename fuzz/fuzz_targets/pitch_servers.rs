//! Blocks of a PITCH unit's servers are whole, whatever their clients say.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| tickwire_fuzzing::targets::pitch_servers(bytes));
