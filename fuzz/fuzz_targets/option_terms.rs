//! An option of any terms is refused, or worth something between its bounds.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| tickwire_fuzzing::targets::option_terms(bytes));
