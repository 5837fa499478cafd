//! No message is delivered twice; a live feed misses nothing.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| tickwire_fuzzing::targets::feed_arbiter(bytes));
