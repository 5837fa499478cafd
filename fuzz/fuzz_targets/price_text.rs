//! A text that is a price prints as the same price.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| tickwire_fuzzing::targets::price_text(bytes));
