//! The matching engine answers, tells and stands as the naive one does.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| tickwire_fuzzing::targets::engine(bytes));
