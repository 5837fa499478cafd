//! One price path for several venues: what an instrument is worth is the same everywhere, what a venue shows
//! of it is not.
//!
//! The path is a sum of seeded noises of several speeds: between two points of a speed's grid the price goes
//! straight, the points themselves are drawn from seed, instrument and time alone. So every venue finds the
//! same price at the same time without hearing of the others, in whatever order they are asked, and nothing
//! has to be kept.

use tickwire_market::InstrumentId;

use crate::random::Random;

/// The speeds: nanoseconds between two points, and how far a point is off at most, in 1/256 ticks. Like a
/// random walk, about twice as far in four times the time; the fastest stays within what the slowest makers
/// follow.
const SPEEDS: [(u64, i64); 5] = [
    (500_000_000, 128),
    (2_000_000_000, 512),
    (16_000_000_000, 1_536),
    (128_000_000_000, 4_608),
    (1_024_000_000_000, 13_824),
];

/// A price path of every instrument; one seed is one market.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reference {
    /// Of all venues that share it.
    pub seed: u64,
}

impl Reference {
    /// How far the price is from where it starts, in 1/256 ticks; `now` in nanoseconds since midnight.
    pub(crate) fn offset(self, instrument: InstrumentId, now: u64) -> i64 {
        let at = |speed: usize, nth: u64| {
            let reach = SPEEDS[speed].1;
            let key = u64::from(instrument.0) << 40 ^ (speed as u64) << 32 ^ nth;
            Random::new(self.seed ^ key.wrapping_mul(0xD6E8_FEB8_6659_FD93)).below(2 * reach as u64 + 1)
                as i64
                - reach
        };
        (0..SPEEDS.len())
            .map(|speed| {
                let period = SPEEDS[speed].0;
                let (nth, part) = (now / period, (now % period) as i64);
                let (from, to) = (at(speed, nth), at(speed, nth + 1));
                from + (to - from) * part / period as i64
            })
            .sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_is_one_for_all_moves_slowly_and_differs_by_instrument_and_seed() {
        let path = Reference { seed: 7 };
        let start = 52_200_000_000_000;
        let mut moved = 0;
        for ms in 0..600_000_u64 {
            let now = start + ms * 1_000_000;
            let (here, next) = (
                path.offset(InstrumentId(3), now),
                path.offset(InstrumentId(3), now + 1_000_000),
            );
            assert!(here.abs_diff(next) <= 6, "{ms} ms: {here} to {next}");
            moved += here.abs_diff(next);
        }
        assert!(moved > 256 * 20, "it moves: {moved}");
        let other = Reference { seed: 8 };
        assert_ne!(
            path.offset(InstrumentId(3), start),
            path.offset(InstrumentId(4), start)
        );
        assert_ne!(
            path.offset(InstrumentId(3), start),
            other.offset(InstrumentId(3), start)
        );
    }
}
