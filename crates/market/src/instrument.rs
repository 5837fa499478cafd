//! Instrument definitions.

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
