//! Messages fill their packet, show their fields, and are their own bytes.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| tickwire_fuzzing::targets::xdp(bytes));
