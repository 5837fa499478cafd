//! Messages of a stream take what they say, show their fields, and are written back as they were.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| tickwire_fuzzing::targets::ilink3(bytes));
