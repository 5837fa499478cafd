//! An ITCH message shows its fields and is its own bytes.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| tickwire_fuzzing::targets::itch50(bytes));
