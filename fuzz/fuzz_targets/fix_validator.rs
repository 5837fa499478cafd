//! What all rules admit, fewer admit; one check says nothing about the next.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| tickwire_fuzzing::targets::fix_validator(bytes));
