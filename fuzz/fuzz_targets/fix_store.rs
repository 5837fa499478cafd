//! A store in damaged memory opens or is refused, and never gives another message.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| tickwire_fuzzing::targets::fix_store(bytes));
