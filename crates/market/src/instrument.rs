//! Instrument definitions.

use core::fmt;

use crate::{InstrumentId, Price, Qty, Symbol, Venue};

/// What a venue says about an instrument it trades.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Instrument {
    /// Its number within the feed.
    pub id: InstrumentId,
    /// The venue.
    pub venue: Venue,
    /// Its name there.
    pub symbol: Symbol,
    /// Smallest price step. Zero when the venue does not publish one (US equities: rule-based).
    pub tick: Price,
    /// Round lot: the usual unit of trading.
    pub lot: Qty,
    /// A test instrument: shown, never traded.
    pub is_test: bool,
}

/// The price steps of an instrument.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct PriceSteps {
    /// The step around zero: the finest.
    pub tick: Price,
    /// Beyond a price, either way, another one: that price, still of the finer step, and the coarser step.
    pub beyond: Option<(Price, Price)>,
}

/// A calendar day.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Date {
    /// As in 2026.
    pub year: u16,
    /// 1 to 12.
    pub month: u8,
    /// 1 to 31.
    pub day: u8,
}

impl Date {
    /// Days since 1970-01-01, of years from 1970 on.
    pub const fn days(self) -> u32 {
        // Years begin in March, so that a leap day is a year's last.
        let year = self.year as u32 - (self.month <= 2) as u32;
        let month = (self.month as u32 + 9) % 12;
        let (era, of_era) = (year / 400, year % 400);
        let of_year = (153 * month + 2) / 5 + self.day as u32 - 1;
        era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
    }

    /// The day so many days after 1970-01-01.
    pub const fn of_days(days: u32) -> Date {
        let days = days + 719_468;
        let (era, of_era) = (days / 146_097, days % 146_097);
        let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
        let of_year = of_era - (365 * year + year / 4 - year / 100);
        let month = (5 * of_year + 2) / 153;
        let day = of_year - (153 * month + 2) / 5 + 1;
        let month = if month < 10 { month + 3 } else { month - 9 };
        Date {
            year: (era * 400 + year + (month <= 2) as u32) as u16,
            month: month as u8,
            day: day as u8,
        }
    }
}

/// As in 2026-03-20: ISO 8601, extended calendar date.
impl fmt::Display for Date {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04}-{:02}-{:02}", self.year, self.month, self.day)
    }
}

/// The right of an option. FIX PutOrCall (201).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
pub enum PutCall {
    /// To sell (201=0).
    Put = 0,
    /// To buy (201=1).
    Call = 1,
}

/// What is traded. FIX SecurityType (167) with what belongs to each.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Contract {
    /// Shares: a unit is one share (167=CS).
    #[default]
    Equity,
    /// A future (167=FUT).
    Future {
        /// Its last trading day.
        expiry: Date,
        /// Units of the underlying of one contract. FIX ContractMultiplier (231).
        multiplier: u32,
    },
    /// An option (167=OPT).
    Option {
        /// Its last trading day.
        expiry: Date,
        /// Units of the underlying of one contract. FIX ContractMultiplier (231).
        multiplier: u32,
        /// At what price. FIX StrikePrice (202).
        strike: Price,
        /// Put or call.
        right: PutCall,
        /// Of which instrument of the same venue.
        underlying: InstrumentId,
    },
    /// A pair of currencies: a unit is one of `base`, its price in `quote` (167=FXSPOT).
    Currency {
        /// ISO 4217.
        base: [u8; 3],
        /// ISO 4217.
        quote: [u8; 3],
    },
}

impl Contract {
    /// Units of the underlying of one contract: 1 of equities and currencies.
    pub const fn multiplier(&self) -> u32 {
        match self {
            Contract::Equity | Contract::Currency { .. } => 1,
            Contract::Future { multiplier, .. } | Contract::Option { multiplier, .. } => *multiplier,
        }
    }

    /// The last trading day, if it has one.
    pub const fn expiry(&self) -> Option<Date> {
        match self {
            Contract::Equity | Contract::Currency { .. } => None,
            Contract::Future { expiry, .. } | Contract::Option { expiry, .. } => Some(*expiry),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_and_dates_are_each_others_inverse_and_count_up() {
        let epoch = Date {
            year: 1970,
            month: 1,
            day: 1,
        };
        assert_eq!((epoch.days(), Date::of_days(0)), (0, epoch));
        let leap = Date {
            year: 2024,
            month: 2,
            day: 29,
        };
        assert_eq!((leap.days(), Date::of_days(19_782)), (19_782, leap));
        let mut last = epoch;
        for days in 1..80_000 {
            let date = Date::of_days(days);
            assert!(date > last && date.days() == days, "{date:?}");
            last = date;
        }
    }
}
