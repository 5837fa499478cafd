//! A capture written as a recorder does and cut anywhere gives every whole packet as it was.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| tickwire_fuzzing::targets::recorded_blocks(bytes));
