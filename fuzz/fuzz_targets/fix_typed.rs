//! Typed groups have the entries that a naive walk finds, or say which count lies.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| tickwire_fuzzing::targets::fix_typed(bytes));
