//! The fast decoder sees the fields the naive one sees.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| tickwire_fuzzing::targets::fix_decode(bytes));
