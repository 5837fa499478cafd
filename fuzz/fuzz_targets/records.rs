//! A file of DBN records or of LOBSTER lines ends or is refused; an order executes no more than it shows.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| tickwire_fuzzing::targets::records(bytes));
