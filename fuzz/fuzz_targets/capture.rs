//! A capture ends or is refused; its frames lie within it.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| tickwire_fuzzing::targets::capture(bytes));
