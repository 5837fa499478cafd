//! Quotes of any fields over FIX are answered in messages that can be read, and the journal makes them again.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| tickwire_fuzzing::targets::mass_quotes(bytes));
