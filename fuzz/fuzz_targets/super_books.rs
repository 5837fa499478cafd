//! The fast consolidated books answer as the naive ones do.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| tickwire_fuzzing::targets::super_books(bytes));
