//! UTCTimestamp: `YYYYMMDD-HH:MM:SS[.fraction]`. FIX 4.4, volume 1, "FIX Field Data Types"; micro- and nanoseconds as
//! in FIX 5.0 SP2 EP206.

use crate::number::{digits8, load8, parse_unsigned, value8};
use tickwire_market::Nanos;

/// Digits after the second.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Precision {
    /// `HH:MM:SS`.
    Seconds,
    /// Three digits, the finest the FIX 4.4 text knows.
    #[default]
    Millis,
    /// Six digits.
    Micros,
    /// Nine digits.
    Nanos,
}

impl Precision {
    /// Bytes of a whole timestamp: 17, 21, 24 or 27.
    #[inline]
    pub const fn width(self) -> usize {
        match self {
            Precision::Seconds => 17,
            Precision::Millis => 21,
            Precision::Micros => 24,
            Precision::Nanos => 27,
        }
    }
}

/// Writes timestamps; the text of the second is kept, since most messages share it with the one before.
#[derive(Clone, Debug)]
pub struct Stamp {
    second: u64,
    text: [u8; 27],
    /// Sum of the bytes up to the second.
    second_sum: u8,
    precision: Precision,
}

impl Stamp {
    /// A writer of timestamps of this precision.
    pub fn new(precision: Precision) -> Stamp {
        let mut stamp = Stamp {
            second: u64::MAX,
            text: *b"19700101-00:00:00.000000000",
            second_sum: 0,
            precision,
        };
        stamp.format(Nanos::ZERO);
        stamp
    }

    /// The text of a point in time, cut (not rounded) to the precision.
    #[inline]
    pub fn format(&mut self, at: Nanos) -> &[u8] {
        let (second, nanos) = (at.0 / Nanos::SECOND, (at.0 % Nanos::SECOND) as u32);
        if second != self.second {
            self.set_second(second);
        }
        let fraction = digits8(nanos / 10).to_le_bytes();
        self.text[18..26].copy_from_slice(&fraction);
        self.text[26] = b'0' + (nanos % 10) as u8;
        &self.text[..self.precision.width()]
    }

    /// What the bytes up to the second add to a checksum.
    #[inline]
    pub(crate) fn second_sum(&self) -> u8 {
        self.second_sum
    }

    #[cold]
    fn set_second(&mut self, second: u64) {
        self.second = second;
        let (year, month, day) = civil(second / 86_400);
        let date = digits8(year * 10_000 + month * 100 + day);
        self.text[..8].copy_from_slice(&date.to_le_bytes());
        let clock = (second % 86_400) as u32;
        let packed = digits8(clock / 3_600 * 10_000 + clock / 60 % 60 * 100 + clock % 60).to_le_bytes();
        for (to, from) in [(9, 2), (10, 3), (12, 4), (13, 5), (15, 6), (16, 7)] {
            self.text[to] = packed[from];
        }
        self.second_sum = self.text[..17].iter().fold(0, |sum, &b| sum.wrapping_add(b));
    }
}

/// Reads a UTCTimestamp with up to nine digits of fraction; `None` if it is not one. A leap second (`:60`) reads as
/// the first instant of the next minute.
pub fn parse_timestamp(text: &[u8]) -> Option<Nanos> {
    let date = value8(load8(text, 0)?)?;
    let clock = load8(text, 9)?.to_le_bytes();
    if text[8] != b'-' || clock[2] != b':' || clock[5] != b':' {
        return None;
    }
    let packed = [
        b'0', b'0', clock[0], clock[1], clock[3], clock[4], clock[6], clock[7],
    ];
    let clock = value8(u64::from_le_bytes(packed))?;
    let (hour, minute, second) = (clock / 10_000, clock / 100 % 100, clock % 100);
    let (year, month, day) = (date / 10_000, date / 100 % 100, date % 100);
    if hour > 23 || minute > 59 || second > 60 || day == 0 || day > days_in_month(year, month) {
        return None;
    }
    let nanos = match text.len() {
        17 => 0,
        // Ten or more digits would be finer than a nanosecond: not a timestamp we can keep.
        19..=27 if text[17] == b'.' => {
            let digits = text.len() - 18;
            parse_unsigned(text, 18, text.len())? * 10u64.pow(9 - digits as u32)
        }
        _ => return None,
    };
    let days = days_from_civil(year, month, day)?;
    let seconds = days * 86_400 + hour * 3_600 + minute * 60 + second;
    Some(Nanos(seconds.checked_mul(Nanos::SECOND)?.checked_add(nanos)?))
}

/// Days of the month in the Gregorian calendar, 0 for a month that does not exist.
fn days_in_month(year: u64, month: u64) -> u64 {
    match month {
        1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
        4 | 6 | 9 | 11 => 30,
        2 if year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400)) => 29,
        2 => 28,
        _ => 0,
    }
}

/// Days since 1970-01-01 of a Gregorian date, `None` before it. Years are counted from March, so that the leap day
/// comes last.
fn days_from_civil(year: u64, month: u64, day: u64) -> Option<u64> {
    if year < 1970 {
        return None;
    }
    let from_march = (month + 9) % 12;
    let year = if month <= 2 { year - 1 } else { year };
    let days = year * 365 + year / 4 - year / 100 + year / 400 + (from_march * 306 + 5) / 10 + day - 1;
    days.checked_sub(719_468) // 1970-01-01 in days since 0000-03-01
}

/// Year, month, day of a number of days since 1970-01-01. Runs once a second at most.
fn civil(days: u64) -> (u32, u32, u32) {
    let days = days + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 {
        from_march + 3
    } else {
        from_march - 9
    };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    (year as u32, month as u32, day as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_instants_are_written_and_read() {
        let cases: [(u64, &[u8]); 5] = [
            (0, b"19700101-00:00:00.000000000"),
            (951_782_400_000_000_001, b"20000229-00:00:00.000000001"),
            (1_709_164_799_999_999_999, b"20240228-23:59:59.999999999"),
            (1_795_226_141_123_456_789, b"20261121-01:55:41.123456789"),
            (4_107_542_400_000_000_000, b"21000301-00:00:00.000000000"),
        ];
        for (ns, text) in cases {
            assert_eq!(Stamp::new(Precision::Nanos).format(Nanos(ns)), text);
            assert_eq!(parse_timestamp(text), Some(Nanos(ns)));
        }
    }

    #[test]
    fn every_day_of_five_centuries_comes_back() {
        let (mut stamp, mut expected) = (Stamp::new(Precision::Seconds), (1970, 1, 1));
        for day in 0..182_500u64 {
            assert_eq!(civil(day), expected);
            let (y, m, d) = expected;
            assert_eq!(days_from_civil(y as u64, m as u64, d as u64), Some(day));
            if day < 200 * 365 {
                let at = Nanos((day * 86_400 + day % 86_400) * Nanos::SECOND);
                assert_eq!(parse_timestamp(stamp.format(at)), Some(at));
            }
            expected = match (m, d) {
                (12, 31) => (y + 1, 1, 1),
                _ if d as u64 == days_in_month(y as u64, m as u64) => (y, m + 1, 1),
                _ => (y, m, d + 1),
            };
        }
    }

    #[test]
    fn what_is_not_a_timestamp_is_refused() {
        for bad in [
            &b""[..],
            b"20261121",
            b"20261121 01:55:41",
            b"20261121-01-55-41",
            b"20261321-01:55:41",
            b"20260229-01:55:41",
            b"20261121-24:00:00",
            b"20261121-01:60:00",
            b"20261121-01:55:61",
            b"20261121-01:55:41.",
            b"20261121-01:55:41,123",
            b"20261121-01:55:41.12x",
            b"20261121-01:55:41.1234567890",
            b"19691231-23:59:59",
            b"99991231-23:59:59",
        ] {
            assert_eq!(parse_timestamp(bad), None, "{bad:?}");
        }
        assert_eq!(
            parse_timestamp(b"19700101-00:00:60"),
            Some(Nanos(60 * Nanos::SECOND))
        );
        assert_eq!(
            parse_timestamp(b"19700101-00:00:01.5"),
            Some(Nanos(1_500_000_000))
        );
    }
}
