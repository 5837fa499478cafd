//! Orders beside a recording, and among it, are filled as in a plain list of orders.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| tickwire_fuzzing::targets::backtest(bytes));
