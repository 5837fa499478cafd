//! Events of a NYSE channel ascend, whatever arrives on its lines, groups and connection.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| tickwire_fuzzing::targets::nyse_feed(bytes));
