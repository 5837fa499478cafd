//! Messages of both directions are refused or written back as they were.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| tickwire_fuzzing::targets::ouch50(bytes));
