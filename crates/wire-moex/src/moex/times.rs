//! Numbers and times as the exchange writes them: digits, days, Moscow's clock.

use tickwire_market::Nanos;

use crate::fast::{Fields, Slot};

use super::{MoexError, tag};

#[inline]
pub(super) fn rpt_seq(fields: &Fields<'_>, slot: Slot) -> Result<u32, MoexError> {
    match fields.signed(slot) {
        None => Ok(0),
        Some(v) => u32::try_from(v).map_err(|_| MoexError::OutOfRange { tag: tag::RPT_SEQ }),
    }
}

pub(super) fn small(fields: &Fields<'_>, slot: Slot) -> Option<i32> {
    fields.signed(slot).and_then(|v| i32::try_from(v).ok())
}

/// Decimal digits as a number; `None` for anything else and beyond 64 bits.
#[inline(always)]
pub(super) fn number(text: &[u8]) -> Option<u64> {
    match text.len() {
        1..=8 => eight_digits(padded(text)),
        9..=16 => {
            let (high, low) = text.split_last_chunk()?;
            Some(eight_digits(padded(high))? * 100_000_000 + eight_digits(*low)?)
        }
        _ => long_number(text),
    }
}

/// The same of one to sixteen digits, the first one in the lowest byte.
#[inline(always)]
pub(super) fn digits((text, len): (u128, u32)) -> Option<u64> {
    const ZEROS: u128 = u128::from_le_bytes([b'0'; 16]);
    if len == 0 || len > 16 {
        return None;
    }
    let text = text << (128 - 8 * len) | ZEROS.checked_shr(8 * len).unwrap_or(0);
    let high = eight_digits((text as u64).to_le_bytes())?;
    let low = eight_digits(((text >> 64) as u64).to_le_bytes())?;
    Some(high * 100_000_000 + low)
}

#[cold]
fn long_number(text: &[u8]) -> Option<u64> {
    if text.is_empty() {
        return None;
    }
    let mut value: u64 = 0;
    for &byte in text {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        value = value.checked_mul(10)?.checked_add(u64::from(digit))?;
    }
    Some(value)
}

/// One to eight digits with zeros before them.
#[inline(always)]
fn padded(text: &[u8]) -> [u8; 8] {
    const ZEROS: u64 = u64::from_le_bytes([b'0'; 8]);
    let (length, missing) = (8 * text.len(), 64 - 8 * text.len());
    let word = match (
        text.first_chunk::<8>(),
        text.first_chunk::<4>(),
        text.last_chunk::<4>(),
    ) {
        (Some(all), ..) => return *all,
        (_, Some(low), Some(high)) => {
            // The two may overlap.
            u64::from(u32::from_le_bytes(*low)) | u64::from(u32::from_le_bytes(*high)) << (length - 32)
        }
        _ => text.iter().rev().fold(0, |w, &byte| w << 8 | u64::from(byte)),
    };
    (word << missing | ZEROS >> length).to_le_bytes()
}

/// Eight digits at once: pairs of digits, then pairs of pairs, then the two halves.
#[inline(always)]
fn eight_digits(text: [u8; 8]) -> Option<u64> {
    let digits = u64::from_le_bytes(text) ^ 0x3030_3030_3030_3030;
    // Six more sets the fifth bit or a higher one of all that is not a digit.
    let is_wrong = (digits.wrapping_add(0x0606_0606_0606_0606) | digits) & 0xf0f0_f0f0_f0f0_f0f0;
    if is_wrong != 0 {
        return None;
    }
    let pairs = digits * 10 + (digits >> 8);
    let upper = (pairs & 0x0000_00ff_0000_00ff).wrapping_mul(100 + (1_000_000 << 32));
    let lower = (pairs >> 16 & 0x0000_00ff_0000_00ff).wrapping_mul(1 + (10_000 << 32));
    Some(upper.wrapping_add(lower) >> 32)
}

/// `hhmmssmmm` as nanoseconds since midnight.
#[inline]
pub(super) fn entry_time(time: u64) -> Option<Nanos> {
    let (hms, millis) = (time / 1_000, time % 1_000);
    Some(Nanos(seconds_of_day(hms)? * Nanos::SECOND + millis * 1_000_000))
}

/// `hhmmss` as seconds; a leap second is let pass.
#[inline]
fn seconds_of_day(hms: u64) -> Option<u64> {
    let (hours, minutes, seconds) = (hms / 10_000, hms / 100 % 100, hms % 100);
    (hours < 24 && minutes < 60 && seconds <= 60).then_some(hours * 3600 + minutes * 60 + seconds)
}

/// Moscow is three hours ahead of UTC, all year, since 2014-10-26.
pub const MOSCOW_OFFSET_NS: u64 = 3 * 3600 * Nanos::SECOND;

/// `SendingTime` (`YYMMDDhhmmssuuuuuu` in Moscow, years 2000 to 2099) as time since the epoch, UTC.
pub fn sending_time_to_nanos(sending_time: u64) -> Option<Nanos> {
    const PER_DAY: u64 = 1_000_000_000_000;
    let (date, time) = (sending_time / PER_DAY, sending_time % PER_DAY);
    let (year, month, day) = (date / 10_000, date / 100 % 100, date % 100);
    if year > 99 {
        return None;
    }
    let days = days_since_epoch(2000 + year, month, day)?;
    let seconds = days * 86_400 + seconds_of_day(time / 1_000_000)?;
    (seconds * Nanos::SECOND + time % 1_000_000 * 1_000)
        .checked_sub(MOSCOW_OFFSET_NS)
        .map(Nanos)
}

/// The inverse of [`sending_time_to_nanos`], to the microsecond; `None` outside the years 2000 to 2099.
pub fn nanos_to_sending_time(at: Nanos) -> Option<u64> {
    let local = at.0.checked_add(MOSCOW_OFFSET_NS)?;
    let (days, in_day) = (local / Nanos::DAY, local % Nanos::DAY);
    let (year, month, day) = civil_date(days);
    let year = year.checked_sub(2000).filter(|&y| y < 100)?;
    let seconds = in_day / Nanos::SECOND;
    let hms = seconds / 3600 * 10_000 + seconds / 60 % 60 * 100 + seconds % 60;
    let micros = in_day % Nanos::SECOND / 1_000;
    Some(((year * 10_000 + month * 100 + day) * 1_000_000 + hms) * 1_000_000 + micros)
}

/// Days from 1970-01-01 to a date of the Gregorian calendar; `None` when there is no such date.
fn days_since_epoch(year: u64, month: u64, day: u64) -> Option<u64> {
    const BEFORE: [u64; 12] = [0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334];
    const LENGTH: [u64; 12] = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let index = usize::try_from(month.checked_sub(1)?).ok()?;
    let leap = u64::from(is_leap(year));
    let length = LENGTH.get(index)? + if month == 2 { leap } else { 0 };
    if day == 0 || day > length {
        return None;
    }
    let past = year - 1;
    let leaps = past / 4 - past / 100 + past / 400 - 477;
    let in_year = BEFORE.get(index)? + if month > 2 { leap } else { 0 } + day - 1;
    Some((year - 1970) * 365 + leaps + in_year)
}

const fn is_leap(year: u64) -> bool {
    year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
}

/// The date so many days after 1970-01-01.
pub(super) fn civil_date(days: u64) -> (u64, u64, u64) {
    // Counted from 0000-03-01, so that the leap day ends a year and the months form a regular pattern.
    let days = days + 719_468;
    let (era, in_era) = (days / 146_097, days % 146_097);
    let year_of_era = (in_era - in_era / 1_460 + in_era / 36_524 - in_era / 146_096) / 365;
    let in_year = in_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_index = (5 * in_year + 2) / 153;
    let day = in_year - (153 * month_index + 2) / 5 + 1;
    let month = if month_index < 10 {
        month_index + 3
    } else {
        month_index - 9
    };
    (era * 400 + year_of_era + u64::from(month <= 2), month, day)
}
