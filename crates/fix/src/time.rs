//! UTCTimestamp: `YYYYMMDD-HH:MM:SS[.fraction]`. FIX 4.4, volume 1, "FIX Field Data Types"; micro- and
//! nanoseconds as in FIX 5.0 SP2 EP206.

use crate::number::{byte_sum, digits_before, digits8, load8, parse_unsigned, value_of};
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
    /// Whose text is here, when it is not before `second`.
    at: Nanos,
    second: u64,
    /// `YYYYMMDD`, `-HH:MM:S`, `S.` with six digits of the fraction, the other three.
    words: [u64; 4],
    /// What [`Stamp::format`] gives out.
    text: [u8; 32],
    /// Sum of the bytes up to the second.
    second_sum: u8,
    /// Sum of all bytes.
    sum: u8,
    precision: Precision,
}

impl Stamp {
    /// A writer of timestamps of this precision.
    pub fn new(precision: Precision) -> Stamp {
        let mut stamp = Stamp {
            at: Nanos(u64::MAX),
            second: u64::MAX,
            words: [0; 4],
            text: [0; 32],
            second_sum: 0,
            sum: 0,
            precision,
        };
        stamp.format(Nanos::ZERO);
        stamp
    }

    /// How many digits it writes.
    pub fn precision(&self) -> Precision {
        self.precision
    }

    /// The text of a point in time, cut (not rounded) to the precision.
    #[inline]
    pub fn format(&mut self, at: Nanos) -> &[u8] {
        let words = self.whole(at);
        for (to, word) in self.text.as_chunks_mut::<8>().0.iter_mut().zip(words) {
            *to = word.to_le_bytes();
        }
        &self.text[..self.precision.width()]
    }

    /// The text with nine digits of fraction, of which the precision asks for its width; in words, so that
    /// nobody reads from memory across the words written there a moment ago.
    #[inline(always)]
    pub(crate) fn whole(&mut self, at: Nanos) -> [u64; 4] {
        // Messages say the same time more than once.
        if at == self.at && self.second != u64::MAX {
            return self.words;
        }
        let (second, nanos) = (at.0 / Nanos::SECOND, (at.0 % Nanos::SECOND) as u32);
        if second != self.second {
            self.set_second(second);
        }
        let fraction = digits8(nanos / 10);
        let ninth = u64::from(b'0') + u64::from(nanos % 10);
        let [date, clock, behind, _] = self.words;
        let words = [
            date,
            clock,
            behind & 0xffff | fraction << 16,
            fraction >> 48 | ninth << 16,
        ];
        (self.at, self.words) = (at, words);
        self.sum = self.second_sum.wrapping_add(match self.precision {
            Precision::Seconds => 0,
            Precision::Millis => byte_sum(words[2] >> 8 & 0xffff_ffff),
            Precision::Micros => byte_sum(words[2] >> 8),
            Precision::Nanos => byte_sum(words[2] >> 8).wrapping_add(byte_sum(words[3])),
        });
        words
    }

    /// What the text of the last [`Stamp::whole`] adds to a checksum, in its precision.
    #[inline(always)]
    pub(crate) fn sum(&self) -> u8 {
        self.sum
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
        let clock = (second % 86_400) as u32;
        let packed = digits8(clock / 3_600 * 10_000 + clock / 60 % 60 * 100 + clock % 60).to_le_bytes();
        let [_, _, h, hh, m, mm, s, ss] = packed;
        let clock = [b'-', h, hh, b':', m, mm, b':', s];
        self.words = [
            digits8(year * 10_000 + month * 100 + day),
            u64::from_le_bytes(clock),
            u64::from_le_bytes([ss, b'.', 0, 0, 0, 0, 0, 0]),
            0,
        ];
        let sum = [self.words[0], self.words[1], u64::from(ss)].map(byte_sum);
        self.second_sum = sum.into_iter().fold(0, u8::wrapping_add);
    }
}

/// A second whose text was read before: of times that begin with it only the fraction is read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Second {
    /// `YYYYMMDD` and, behind a `-`, `HH:MM:SS`.
    date: u64,
    clock: u64,
    /// When it began.
    at: u64,
}

impl Second {
    /// The first of 1970.
    pub(crate) const FIRST: Second = Second {
        date: u64::from_le_bytes(*b"19700101"),
        clock: u64::from_le_bytes(*b"00:00:00"),
        at: 0,
    };

    /// The bytes in front of the fraction.
    #[inline(always)]
    fn words(text: &[u8]) -> Option<(u64, u64)> {
        let text = text.first_chunk::<17>().filter(|text| text[8] == b'-')?;
        Some((load8(text, 0)?, load8(text, 9)?))
    }

    #[inline(always)]
    fn begins(&self, text: &[u8]) -> bool {
        Second::words(text) == Some((self.date, self.clock))
    }

    /// As [`parse_timestamp`].
    #[inline(always)]
    pub(crate) fn read(&self, text: &[u8]) -> Option<Nanos> {
        match self.begins(text) {
            true => Some(Nanos(self.at.checked_add(nanos_of(text)?)?)),
            false => parse_timestamp(text),
        }
    }

    /// Becomes the second of this time, if it is one.
    #[inline(always)]
    pub(crate) fn follow(&mut self, text: &[u8]) {
        if !self.begins(text) {
            self.become_that_of(text);
        }
    }

    #[cold]
    fn become_that_of(&mut self, text: &[u8]) {
        let at = text.get(..17).and_then(parse_timestamp);
        if let (Some(Nanos(at)), Some((date, clock))) = (at, Second::words(text)) {
            *self = Second { date, clock, at };
        }
    }
}

/// Reads a UTCTimestamp with up to nine digits of fraction; `None` if it is not one. A leap second (`:60`)
/// reads as the first instant of the next minute.
#[inline]
pub fn parse_timestamp(text: &[u8]) -> Option<Nanos> {
    // `YYYYMMDD`: pairs of digits, each in its own 16 bits.
    let date = digit_pairs(load8(text, 0)?, u64::from_le_bytes(*b"00000000"))?;
    let pair = |pairs: u64, byte: u32| (pairs >> (8 * byte) & 0xff) as u32;
    let (century, year_of, month, day) = (pair(date, 0), pair(date, 2), pair(date, 4), pair(date, 6));
    let clock = digit_pairs(load8(text, 9)?, u64::from_le_bytes(*b"00:00:00"))?;
    let (hour, minute, second) = (pair(clock, 0), pair(clock, 3), pair(clock, 6));
    if text[8] != b'-' || hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let nanos = nanos_of(text)?;
    let days = days_since_1970(century, year_of, month, day)?;
    let seconds = days * 86_400 + (hour * 3_600 + minute * 60 + second) as u64;
    Some(Nanos(seconds.checked_mul(Nanos::SECOND)?.checked_add(nanos)?))
}

/// The fraction of a second behind the seventeen bytes of the second, in nanoseconds.
#[inline(always)]
fn nanos_of(text: &[u8]) -> Option<u64> {
    match text.len() {
        17 => Some(0),
        // Milliseconds are the most common.
        21 => Some(fraction(text, 3)? * 1_000_000),
        // Ten or more digits would be finer than a nanosecond: not a timestamp we can keep.
        19..=27 => {
            let digits = text.len() - 18;
            Some(fraction(text, digits)? * 10u64.pow(9 - digits as u32))
        }
        _ => None,
    }
}

/// The digits behind the point at 17, which are the last of the text.
#[inline]
fn fraction(text: &[u8], digits: usize) -> Option<u64> {
    match (text[17], digits) {
        (b'.', 9) => parse_unsigned(text, 18, text.len()),
        (b'.', _) => value_of(digits_before(text, text.len(), digits)?),
        _ => None,
    }
}

/// Byte `i` of the result is the number that digits `i` and `i + 1` write, where `form` has two zeros; `None`
/// unless the word has digits where `form` has zeros, and is the same elsewhere.
#[inline]
const fn digit_pairs(word: u64, form: u64) -> Option<u64> {
    let x = word ^ form;
    // Digits are 0 to 9 now, which 0x76 does not carry into the top bit; what is not a digit must be 0.
    let exact = (form ^ u64::from_le_bytes([b'0'; 8])) & 0x0202_0202_0202_0202; // ':' is '0' + 10
    let limit = 0x7676_7676_7676_7676 + (exact >> 1) * 9;
    if (x.wrapping_add(limit) | x) & 0x8080_8080_8080_8080 != 0 {
        return None;
    }
    Some(x.wrapping_mul(10).wrapping_add(x >> 8))
}

/// Days since 1970-01-01 of a date of the Gregorian calendar; `None` if there is no such date, or before.
#[inline]
fn days_since_1970(century: u32, year_of: u32, month: u32, day: u32) -> Option<u64> {
    /// Days of the months, and of the year before them, in common years.
    const MONTHS: [(u8, u16); 13] = [
        (0, 0),
        (31, 0),
        (28, 31),
        (31, 59),
        (30, 90),
        (31, 120),
        (30, 151),
        (31, 181),
        (31, 212),
        (30, 243),
        (31, 273),
        (30, 304),
        (31, 334),
    ];
    let &(length, before) = MONTHS.get(month as usize)?;
    // A year that is a multiple of 100 is a leap year when its century is a multiple of 4.
    let fours = if year_of == 0 { century } else { year_of };
    let is_leap = fours.is_multiple_of(4);
    let is_february_of_leap = is_leap && month == 2;
    if day == 0 || day > length as u32 + is_february_of_leap as u32 {
        return None;
    }
    let year = century * 100 + year_of;
    // Leap days before this year began, this year's included, which is taken back until February is over.
    let leap_days = year / 4 - century + century / 4;
    let days = year * 365 + leap_days + before as u32 + day - 1 - u32::from(is_leap && month <= 2);
    days.checked_sub(DAYS_TO_1970).map(u64::from)
}

/// What [`days_since_1970`] counts from the year 0 to 1970-01-01.
const DAYS_TO_1970: u32 = 1970 * 365 + 1970 / 4 - 19 + 19 / 4;

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
            assert_eq!(days_since_1970(y / 100, y % 100, m, d), Some(day));
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
    fn every_byte_at_every_place_reads_as_the_form_demands() {
        let good = *b"20241128-12:34:56.789";
        for at in 0..good.len() {
            for b in 0..=255 {
                let mut text = good;
                text[at] = b;
                let number = |range: core::ops::Range<usize>| crate::number::parse_plain(&text[range]);
                let plain = || {
                    let (year, month, day) = (number(0..4)?, number(4..6)?, number(6..8)?);
                    let (hour, minute, second) = (number(9..11)?, number(12..14)?, number(15..17)?);
                    let has_form = [text[8], text[11], text[14], text[17]] == *b"-::.";
                    let is_time = hour < 24 && minute < 60 && second <= 60;
                    let is_date = (1..=days_in_month(year, month)).contains(&day) && year >= 1970;
                    (has_form && is_time && is_date).then_some(())?;
                    let days: u64 = (1970..year)
                        .map(|y| (1..=12).map(|m| days_in_month(y, m)).sum::<u64>())
                        .sum();
                    let days = days + (1..month).map(|m| days_in_month(year, m)).sum::<u64>() + day - 1;
                    let seconds = days * 86_400 + hour * 3_600 + minute * 60 + second;
                    Some(Nanos(
                        seconds.checked_mul(Nanos::SECOND)? + number(18..21)? * 1_000_000,
                    ))
                };
                assert_eq!(parse_timestamp(&text), plain(), "{}", text.escape_ascii());
            }
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
