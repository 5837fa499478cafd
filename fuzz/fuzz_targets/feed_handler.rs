//! Events of a whole ITCH feed ascend, whatever arrives.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| tickwire_fuzzing::targets::feed_handler(bytes));
