//! A message shows its fields, is made of its parts and reads the same from them.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| tickwire_fuzzing::targets::uqdf(bytes));
