//! Events of consolidated feeds ascend, whatever arrives on their lines, sent again, or as snapshot.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| tickwire_fuzzing::targets::sip_channels(bytes));
