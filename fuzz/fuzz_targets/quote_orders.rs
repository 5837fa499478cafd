//! Quotes that are orders have one request a side under way, whatever the venue reports.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| tickwire_fuzzing::targets::quote_orders(bytes));
