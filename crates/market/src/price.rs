//! Prices: signed 64-bit integers in units of 1e-9 of the currency, one scale for every venue.

use core::fmt;

/// A price in 1e-9 currency units (nano-units): `Price::from_raw(87_390_000_000)` is 87.39.
///
/// The scale holds every venue's prices exactly: ITCH (4 decimals, 8 for market-wide circuit breaker levels),
/// PITCH (4 or 7), NYSE (0 to 8 by scale code), CQS and UQDF (up to 8), MDP 3.0 (9), MOEX (up to 9). Range
/// ±9.22e9 currency units. Negative prices are valid (spreads, energy futures). There is no conversion from
/// floating point.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[repr(transparent)]
pub struct Price(i64);

/// Why a text is not a price.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ParsePriceError {
    /// No digit at all.
    Empty,
    /// A byte that is neither a digit, one decimal point nor a leading minus sign; its offset.
    BadByte(u8),
    /// More than nine decimals that are not zero, or more than ±9.22e9: not exact in 1e-9 units.
    OutOfRange,
}

impl fmt::Display for ParsePriceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("no digits"),
            Self::BadByte(at) => write!(f, "unexpected character at offset {at}"),
            Self::OutOfRange => f.write_str("not representable in units of 1e-9"),
        }
    }
}

impl core::error::Error for ParsePriceError {}

impl Price {
    /// 0.
    pub const ZERO: Price = Price(0);
    /// The lowest representable price.
    pub const MIN: Price = Price(i64::MIN);
    /// The highest representable price.
    pub const MAX: Price = Price(i64::MAX);
    /// One currency unit in raw units.
    pub const ONE_RAW: i64 = 1_000_000_000;

    /// A price from raw 1e-9 units.
    #[inline]
    pub const fn from_raw(raw: i64) -> Price {
        Price(raw)
    }

    /// The raw 1e-9 units.
    #[inline]
    pub const fn raw(self) -> i64 {
        self.0
    }

    /// A price from a mantissa with `decimals` implied decimals, `None` if that is not exact or out of range.
    /// `from_decimal(873_900, 4)` is 87.39.
    #[inline]
    pub const fn from_decimal(mantissa: i64, decimals: u8) -> Option<Price> {
        if decimals <= 9 {
            match mantissa.checked_mul(pow10(9 - decimals)) {
                Some(raw) => Some(Price(raw)),
                None => None,
            }
        } else if decimals <= 18 {
            let unit = pow10(decimals - 9);
            if mantissa % unit == 0 {
                Some(Price(mantissa / unit))
            } else {
                None
            }
        } else {
            None
        }
    }

    /// The mantissa of this price with `decimals` implied decimals, `None` if it is not exact.
    /// The inverse of [`Price::from_decimal`] for encoders.
    #[inline]
    pub const fn to_decimal(self, decimals: u8) -> Option<i64> {
        if decimals > 9 {
            return if decimals <= 18 {
                self.0.checked_mul(pow10(decimals - 9))
            } else {
                None
            };
        }
        let unit = pow10(9 - decimals);
        if self.0 % unit == 0 {
            Some(self.0 / unit)
        } else {
            None
        }
    }

    /// A price of 4 implied decimals in an unsigned 32-bit field (ITCH, OUCH): always exact.
    #[inline]
    pub const fn from_4dp(mantissa: u32) -> Price {
        Price(mantissa as i64 * 100_000)
    }

    /// `self + other`, `None` on overflow.
    #[inline]
    pub const fn checked_add(self, other: Price) -> Option<Price> {
        match self.0.checked_add(other.0) {
            Some(raw) => Some(Price(raw)),
            None => None,
        }
    }

    /// `self - other`, `None` on overflow.
    #[inline]
    pub const fn checked_sub(self, other: Price) -> Option<Price> {
        match self.0.checked_sub(other.0) {
            Some(raw) => Some(Price(raw)),
            None => None,
        }
    }

    /// Price times quantity in raw 1e-9 currency units, exact.
    #[inline]
    pub const fn notional(self, qty: u64) -> i128 {
        self.0 as i128 * qty as i128
    }

    /// Parses ASCII decimal text such as `87.39`, `-0.5` or `100`. At most nine significant decimals; no
    /// exponent, no sign other than a leading minus, no spaces (FIX `Price`, configuration files).
    pub const fn parse(text: &[u8]) -> Result<Price, ParsePriceError> {
        let (negative, start) = match text {
            [b'-', ..] => (true, 1),
            _ => (false, 0),
        };
        let mut i = start;
        let mut raw: i64 = 0; // kept negative: i64::MIN has no positive twin
        let mut decimals: Option<u8> = None;
        let mut digits = 0;
        while i < text.len() {
            match text[i] {
                d @ b'0'..=b'9' => {
                    digits += 1;
                    let d = (d - b'0') as i64;
                    if let Some(n) = decimals {
                        if n == 9 {
                            if d != 0 {
                                return Err(ParsePriceError::OutOfRange);
                            }
                            i += 1;
                            continue;
                        }
                        decimals = Some(n + 1);
                    }
                    raw = match raw.checked_mul(10) {
                        Some(r) => match r.checked_sub(d) {
                            Some(r) => r,
                            None => return Err(ParsePriceError::OutOfRange),
                        },
                        None => return Err(ParsePriceError::OutOfRange),
                    };
                }
                b'.' if decimals.is_none() => decimals = Some(0),
                _ => return Err(ParsePriceError::BadByte(if i > 255 { 255 } else { i as u8 })),
            }
            i += 1;
        }
        if digits == 0 {
            return Err(ParsePriceError::Empty);
        }
        let have = match decimals {
            Some(n) => n,
            None => 0,
        };
        match raw.checked_mul(pow10(9 - have)) {
            Some(raw) if negative => Ok(Price(raw)),
            Some(raw) => match raw.checked_neg() {
                Some(raw) => Ok(Price(raw)),
                None => Err(ParsePriceError::OutOfRange),
            },
            None => Err(ParsePriceError::OutOfRange),
        }
    }
}

/// 10^`n`; `n` is at most 18. A table where `n` is not known when this is compiled: a loop was a fifteenth of
/// the instructions of an order of OpenBook.
#[inline(always)]
const fn pow10(n: u8) -> i64 {
    match n {
        0 => 1,
        1 => 10,
        2 => 100,
        3 => 1_000,
        4 => 10_000,
        5 => 100_000,
        6 => 1_000_000,
        7 => 10_000_000,
        8 => 100_000_000,
        9 => 1_000_000_000,
        10 => 10_000_000_000,
        11 => 100_000_000_000,
        12 => 1_000_000_000_000,
        13 => 10_000_000_000_000,
        14 => 100_000_000_000_000,
        15 => 1_000_000_000_000_000,
        16 => 10_000_000_000_000_000,
        17 => 100_000_000_000_000_000,
        _ => 1_000_000_000_000_000_000,
    }
}

impl core::str::FromStr for Price {
    type Err = ParsePriceError;
    fn from_str(s: &str) -> Result<Price, ParsePriceError> {
        Price::parse(s.as_bytes())
    }
}

/// Shortest exact decimal, at least two decimals: `87.39`, `100.00`, `0.0001`. A precision pads or is exact:
/// `{:.4}` prints four decimals, more when fewer would not be exact.
impl fmt::Display for Price {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let magnitude = self.0.unsigned_abs();
        let (whole, mut frac) = (magnitude / 1_000_000_000, magnitude % 1_000_000_000);
        let mut width = 9;
        let least = f.precision().unwrap_or(2).min(9);
        while width > least && frac % 10 == 0 {
            frac /= 10;
            width -= 1;
        }
        if self.0 < 0 {
            f.write_str("-")?;
        }
        write!(f, "{whole}")?;
        if width > 0 {
            write!(f, ".{frac:0width$}")
        } else {
            Ok(())
        }
    }
}

impl fmt::Debug for Price {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::format;
    use std::string::ToString;

    #[test]
    fn four_decimals_are_exact_and_come_back() {
        let p = Price::from_4dp(873_900);
        assert_eq!(p.to_string(), "87.39");
        assert_eq!(p.to_decimal(4), Some(873_900));
        assert_eq!(Price::from_decimal(873_900, 4), Some(p));
        assert_eq!(Price::from_raw(1).to_decimal(4), None);
    }

    #[test]
    fn text_round_trips_and_bad_text_says_where() {
        for t in [
            "0.00",
            "87.39",
            "-0.50",
            "9223372036.854775807",
            "-9223372036.854775808",
            "0.000000001",
        ] {
            assert_eq!(t.parse::<Price>().unwrap().to_string(), t);
        }
        assert_eq!(
            "1.0000000000".parse::<Price>().unwrap(),
            Price::from_raw(1_000_000_000)
        );
        assert_eq!("".parse::<Price>(), Err(ParsePriceError::Empty));
        assert_eq!("-".parse::<Price>(), Err(ParsePriceError::Empty));
        assert_eq!("1.2.3".parse::<Price>(), Err(ParsePriceError::BadByte(3)));
        assert_eq!("1.0000000001".parse::<Price>(), Err(ParsePriceError::OutOfRange));
        assert_eq!(
            "9223372036.854775808".parse::<Price>(),
            Err(ParsePriceError::OutOfRange)
        );
    }

    #[test]
    fn precision_pads_but_never_rounds() {
        let p = Price::from_4dp(873_905);
        assert_eq!(format!("{p:.2}"), "87.3905");
        assert_eq!(format!("{p:.6}"), "87.390500");
        assert_eq!(format!("{:.0}", Price::from_4dp(10_000)), "1");
    }
}
