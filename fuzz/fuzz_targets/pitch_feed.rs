//! Events of a PITCH unit ascend, whatever arrives on its lines and connections.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| tickwire_fuzzing::targets::pitch_feed(bytes));
