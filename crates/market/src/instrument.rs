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
