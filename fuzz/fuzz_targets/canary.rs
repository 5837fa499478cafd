//! Fails on a short rare input: shows that failures are found.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| tickwire_fuzzing::targets::canary(bytes));
