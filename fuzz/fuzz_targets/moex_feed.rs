//! Events of a Moscow Exchange channel ascend, whatever arrives on its lines, loops and connection.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| tickwire_fuzzing::targets::moex_feed(bytes));
