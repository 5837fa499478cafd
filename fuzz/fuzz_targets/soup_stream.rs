//! A stream cut anywhere says the same as in one piece.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| tickwire_fuzzing::targets::soup_stream(bytes));
