//! A dictionary of any text loads or is refused with its line.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| tickwire_fuzzing::targets::fix_dictionary(bytes));
