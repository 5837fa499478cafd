//! An archive, its index or a block of it is read within itself, or refused.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| tickwire_fuzzing::targets::archive(bytes));
