//! A block's messages fill it and build it again; a message shows its fields and begins its own bytes.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| tickwire_fuzzing::targets::pitch(bytes));
