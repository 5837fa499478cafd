//! Nothing in a frame panics, and the guard keeps what is early and nothing else.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| tickwire_fuzzing::targets::order_segment(bytes));
