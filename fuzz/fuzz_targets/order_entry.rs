//! Whatever clients say, an exchange speaks its protocols, and its journal makes it again.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| tickwire_fuzzing::targets::order_entry(bytes));
