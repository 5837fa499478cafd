//! The steps of prices.

use crate::ladder::WINDOW;

/// How many times as large as another side's tick a first distance may be to be taken for as many of it.
const ALIKE: u64 = 10;

/// A step between prices, prepared for division.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Tick {
    /// In raw units of a price; 1 to 2^57.
    pub(crate) size: u64,
    /// Of the odd part of the size, modulo 2^64.
    pub(crate) inverse: u64,
    /// Zero bits at the end of the size.
    pub(crate) zeros: u8,
}

impl Tick {
    /// That of a side with one level, and a part of any other: one raw unit.
    pub(crate) const UNKNOWN: Tick = Tick {
        size: 1,
        inverse: 1,
        zeros: 0,
    };

    /// [`Tick::UNKNOWN`] for 0, and for what is so large that a window were larger than all prices together.
    pub(crate) fn new(size: u64) -> Tick {
        if size == 0 || size > 1 << 57 {
            return Tick::UNKNOWN;
        }
        let zeros = size.trailing_zeros();
        let odd = size >> zeros;
        // An odd number is its own inverse modulo 8, and every step doubles the bits that are right.
        let better = |inverse: u64| inverse.wrapping_mul(2u64.wrapping_sub(odd.wrapping_mul(inverse)));
        Tick {
            size,
            inverse: (0..5).fold(odd, |inverse, _| better(inverse)),
            zeros: zeros as u8,
        }
    }

    /// How many ticks a distance is, if it is fewer than [`WINDOW`]; else, and where it is no number of
    /// ticks, some number from there on. Exact division: Granlund and Montgomery, "Division by Invariant
    /// Integers using Multiplication" (1994), section 9.
    #[inline(always)]
    pub(crate) fn count(self, distance: u64) -> u64 {
        distance
            .wrapping_mul(self.inverse)
            .rotate_right(self.zeros as u32)
    }

    /// This tick where a distance is a number of it, and not a large one.
    pub(crate) fn part_of(self, distance: u64) -> Option<Tick> {
        (distance.is_multiple_of(self.size) && distance / self.size <= ALIKE).then_some(self)
    }

    /// Whether windows around this key are far from both ends of all keys: as in all markets.
    #[inline(always)]
    fn is_far_from_ends(self, best: i64) -> bool {
        (self.size <= 1 << 55) & (best.unsigned_abs() < 1 << 62)
    }

    /// This tick where every window of it around a best key ends before the keys do, else one raw unit.
    #[inline(always)]
    pub(crate) fn near(self, best: i64) -> Tick {
        if self.is_far_from_ends(best) {
            return self;
        }
        match best.abs_diff(i64::MAX) / self.size >= WINDOW as u64 {
            true => self,
            false => Tick::UNKNOWN,
        }
    }

    /// The key of the lowest place of a window that has its best key at this place, or as near to it as keys
    /// allow. All places of the window are keys.
    #[inline(always)]
    pub(crate) fn lowest(self, best: i64, best_at: u64) -> i64 {
        if self.is_far_from_ends(best) {
            return best - (best_at * self.size) as i64;
        }
        let below = best.abs_diff(i64::MIN) / self.size;
        let above = best.abs_diff(i64::MAX) / self.size;
        let nth = best_at.max((WINDOW as u64 - 1).saturating_sub(above)).min(below);
        best.wrapping_sub((nth * self.size) as i64)
    }
}

/// The greatest common divisor.
pub(crate) fn gcd(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_distance_is_counted_in_ticks_and_what_is_none_is_beyond_every_window() {
        for size in [
            1,
            2,
            3,
            7,
            10,
            64,
            1_000_000,
            10_000_000,
            15_625_000,
            250_000_000,
            (1 << 57) - 1,
            1 << 57,
        ] {
            let tick = Tick::new(size);
            assert_eq!(tick.size, size);
            for nth in 0..WINDOW as u64 {
                assert_eq!(tick.count(nth * size), nth, "{nth} of {size}");
                for off in [1, size / 2, size - 1] {
                    if off % size != 0 {
                        let between = (nth * size).wrapping_add(off);
                        assert!(tick.count(between) >= WINDOW as u64, "{between} of {size}");
                    }
                }
                let below = 0u64.wrapping_sub((nth + 1) * size);
                assert!(tick.count(below) >= WINDOW as u64, "{nth} of {size} below");
            }
        }
    }

    #[test]
    fn all_places_of_a_window_are_keys_wherever_its_best_is() {
        for size in [1, 7, 10_000_000, 1 << 57] {
            for best in [i64::MIN, i64::MIN + 5, -1, 0, 1, i64::MAX - 5, i64::MAX] {
                let tick = Tick::new(size).near(best);
                let lowest = tick.lowest(best, 47);
                let nth = tick.count(best.wrapping_sub(lowest) as u64);
                assert!(lowest <= best && nth < WINDOW as u64, "{best} by {size}");
                let last = lowest as i128 + (WINDOW as i128 - 1) * tick.size as i128;
                assert!(last <= i64::MAX as i128, "{best} by {size}");
            }
        }
    }
}
