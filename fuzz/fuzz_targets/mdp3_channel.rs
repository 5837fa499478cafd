//! Events of an MDP 3.0 channel ascend, whatever arrives on its feeds and its connection.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| tickwire_fuzzing::targets::mdp3_channel(bytes));
