//! Inputs lie within the file and are the same bytes when written again.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| tickwire_fuzzing::targets::journal(bytes));
