//! Messages come out in sequence, once; what is sent can be read.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| tickwire_fuzzing::targets::fix_session(bytes));
