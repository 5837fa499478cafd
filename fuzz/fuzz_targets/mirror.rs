//! What frames of a mirror make of a region can be read, or they are refused.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| tickwire_fuzzing::targets::mirror(bytes));
