//! Updates fill their packet, show their fields, and are written back as they were.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| tickwire_fuzzing::targets::openbook(bytes));
