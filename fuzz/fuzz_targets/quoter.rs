//! What is believed live is what the venue holds, within limits, whatever market and venue do.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| tickwire_fuzzing::targets::quoter(bytes));
