//! Whatever shared memory holds, reading it ends and stays within it.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| tickwire_fuzzing::targets::shared_region(bytes));
