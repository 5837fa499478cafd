//! The edge of the crate: prices of the market become points, values become prices on a tick.
//!
//! A value that lies within a billionth of a tick of a tick's boundary counts as lying on it. Values carry
//! errors of some 1e-13 of themselves, and deep options are worth a whole number of ticks to within that:
//! without the rule the last bit of a sum would decide about a tick of price.

use tickwire_market::Price;

/// How far from a boundary a value may lie and count as on it, in ticks.
const SNAP_TICKS: f64 = 1e-9;

/// Which tick a value between two goes to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rounding {
    /// To the lower one: bids.
    Down,
    /// To the higher one: offers.
    Up,
    /// To the nearer one, up at the middle.
    Nearest,
}

/// A market's price in points: exact up to 9 million points in units of 1e-9, else to the nearest double.
#[inline]
pub fn points(price: Price) -> f64 {
    price.raw() as f64 / Price::ONE_RAW as f64
}

/// A value in points as a number of ticks of `tick_points` points; `None` if there is no such 32-bit number,
/// or no number at all.
#[inline]
pub fn ticks(points: f64, tick_points: f64, rounding: Rounding) -> Option<i32> {
    let exact = points / tick_points;
    let whole = match rounding {
        Rounding::Down => libm::floor(exact + SNAP_TICKS),
        Rounding::Up => libm::ceil(exact - SNAP_TICKS),
        Rounding::Nearest => libm::floor(exact + 0.5 + SNAP_TICKS),
    };
    // Comparisons with NaN are false.
    (whole >= f64::from(i32::MIN) && whole <= f64::from(i32::MAX)).then_some(whole as i32)
}

/// A value in points as the nearest price there is, in units of 1e-9: for values that are added up, not
/// traded at. `None` if it is out of range or no number.
#[inline]
pub fn value(points: f64) -> Option<Price> {
    let raw = libm::round(points * Price::ONE_RAW as f64);
    // 2^63 itself is a double; comparisons with NaN are false.
    (raw >= i64::MIN as f64 && raw < i64::MAX as f64).then_some(Price::from_raw(raw as i64))
}

/// A value in points as a price on the grid of `tick`, which is above 0; `None` if it is out of range or no
/// number.
pub fn price(points: f64, tick: Price, rounding: Rounding) -> Option<Price> {
    let count = ticks(points, self::points(tick), rounding)?;
    (tick > Price::ZERO)
        .then(|| tick.raw().checked_mul(i64::from(count)).map(Price::from_raw))
        .flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_go_to_ticks_by_name_and_the_last_bit_does_not_matter() {
        let tick = Price::parse(b"0.25").unwrap();
        for (value, down, up, nearest) in [
            (12.30, "12.25", "12.50", "12.25"),
            (12.375, "12.25", "12.50", "12.50"),
            (12.25, "12.25", "12.25", "12.25"),
            (12.25 - 1e-12, "12.25", "12.25", "12.25"),
            (12.25 + 1e-12, "12.25", "12.25", "12.25"),
            (-0.10, "-0.25", "0", "0"),
        ] {
            for (rounding, text) in [
                (Rounding::Down, down),
                (Rounding::Up, up),
                (Rounding::Nearest, nearest),
            ] {
                assert_eq!(
                    price(value, tick, rounding),
                    Price::parse(text.as_bytes()).ok(),
                    "{value} {rounding:?}"
                );
            }
        }
        assert_eq!(points(Price::parse(b"12.25").unwrap()), 12.25);
        assert_eq!(value(-12.25), Price::parse(b"-12.25").ok());
    }

    #[test]
    fn what_is_no_price_is_none() {
        let tick = Price::parse(b"0.25").unwrap();
        for value in [f64::NAN, f64::INFINITY, -f64::INFINITY, 1e18] {
            assert_eq!(price(value, tick, Rounding::Down), None);
            assert_eq!(super::value(value), None);
        }
        assert_eq!(price(1.0, Price::ZERO, Rounding::Down), None);
        assert_eq!(price(1.0, Price::from_raw(-5), Rounding::Down), None);
    }
}
