//! A text is a strategy that runs, or is refused with its places.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| tickwire_fuzzing::targets::strategy_file(bytes));
