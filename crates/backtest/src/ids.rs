//! Tables by the numbers of orders.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// Mixes one number: numbers of orders are the keys of every table here. A recording whose author chose them
/// to collide makes its own backtest slow, and nothing else.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Mix(u64);

impl Hasher for Mix {
    fn finish(&self) -> u64 {
        self.0 ^ (self.0 >> 32)
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64((*byte).into()));
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = (self.0 ^ number).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }
}

/// A table by the number of an order.
pub(crate) type ById<K, V> = HashMap<K, V, BuildHasherDefault<Mix>>;
