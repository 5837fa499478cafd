//! A packet's blocks lie within it, are as many as it says, and build it again.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| tickwire_fuzzing::targets::moldudp64(bytes));
