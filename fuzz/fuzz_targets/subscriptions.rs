//! Books that are live are the venue's, however subscriptions, messages and snapshots come.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| tickwire_fuzzing::targets::subscriptions(bytes));
