//! A pre-armed order leaves by a packet that the plain reading says holds, and by no other.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| tickwire_fuzzing::targets::armed_order(bytes));
