//! The simulator's seeded generator, integers only, so that one seed is one run on every machine.

use tickwire_persist::persist;

/// splitmix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", 2014).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Random {
        Random(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// In `0..bound`; 0 when `bound` is 0.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(bound)) >> 64) as u64
    }

    /// In `low..=high`.
    pub(crate) fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high.saturating_sub(low) + 1)
    }

    /// True `n` times in a million.
    pub(crate) fn ppm(&mut self, n: u32) -> bool {
        n > 0 && self.below(1_000_000) < u64::from(n)
    }

    /// Near `low` more often than near `high`: the octave is uniform, then the place within it. `low` above 0.
    pub(crate) fn log_between(&mut self, low: u64, high: u64) -> u64 {
        let octaves = u64::from((high / low.max(1)).max(1).ilog2());
        let base = low << self.below(octaves + 1);
        self.between(base, (base * 2).min(high).max(base))
    }

    /// Exponentially distributed with this mean: -log2 of a uniform number, its fraction approximated by a
    /// straight line (error below 0.09) and the result scaled so that the mean is exact.
    pub(crate) fn exponential(&mut self, mean: u64) -> u64 {
        let u = self.next() | 1;
        let zeros = u64::from(u.leading_zeros());
        let fraction = (u << zeros << 1) >> 48;
        let log2 = ((zeros + 1) << 16) - fraction;
        // The mean of `log2` is 1.5 in units of 2^-16.
        ((u128::from(mean) * u128::from(log2) * 2 / 3) >> 16) as u64
    }
}

persist!(value struct Random(state));

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exponential_has_its_mean_and_its_tail() {
        let mut random = Random::new(5);
        let (mut sum, mut beyond) = (0, 0);
        for _ in 0..1_000_000 {
            let x = random.exponential(1_000_000);
            sum += x;
            beyond += u64::from(x > 3_000_000);
        }
        assert!((990_000_000_000..1_010_000_000_000).contains(&sum), "{sum}");
        assert!(
            (40_000..60_000).contains(&beyond),
            "e^-3 is 49,787 in a million: {beyond}"
        );
    }

    #[test]
    fn logarithmic_draws_stay_in_their_range() {
        let mut random = Random::new(6);
        for _ in 0..100_000 {
            assert!((100..=1_000).contains(&random.log_between(100, 1_000)));
        }
    }
}
