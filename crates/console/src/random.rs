//! A seeded sequence of numbers: what is generated for a measurement is the same each time.

/// SplitMix64 (Steele, Lea, Flood 2014). One seed, one sequence; of no use where anybody must not guess.
#[derive(Clone, Debug)]
pub struct Random(pub u64);

impl Random {
    /// From 0 to below `bound`, reduced by multiplication.
    #[inline]
    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((u128::from(z ^ (z >> 31)) * u128::from(bound)) >> 64) as u64
    }
}
