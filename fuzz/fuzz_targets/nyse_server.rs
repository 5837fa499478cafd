//! A NYSE request server sends whole packets only, whatever it is asked.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| tickwire_fuzzing::targets::nyse_server(bytes));
