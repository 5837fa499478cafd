//! Every frame is counted once; fragments and streams of TCP are put together within bounds.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| tickwire_fuzzing::targets::capture_frames(bytes));
