//! A packet takes no more than there is and encodes to what it was.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| tickwire_fuzzing::targets::soupbintcp(bytes));
