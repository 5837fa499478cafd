//! Messages fill their block, show their fields, and are made of their parts.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| tickwire_fuzzing::targets::cqs(bytes));
