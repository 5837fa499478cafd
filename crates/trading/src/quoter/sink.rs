//! What leaves, and what comes back as traded.

use crate::RiskReject;
use tickwire_market::{Cause, MassQuoteEntry, Nanos, Qty, Side};

/// A mass quote to be sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MassQuote<'q> {
    /// Its number, QuoteID (117): answers name it.
    pub id: u64,
    /// The market data that it follows.
    pub cause: Cause,
    /// Ends the venue's protection (CME MMProtectionReset, 9773).
    pub reset: bool,
    /// In the order of delta.
    pub entries: &'q [MassQuoteEntry],
}

/// Where messages leave. What is given here was sent, unless `false` says that there was no room for it.
pub trait QuoteSink {
    /// Sends a mass quote.
    fn mass_quote(&mut self, quote: &MassQuote<'_>) -> bool;
    /// Whether it was a check that stopped the last mass quote that was not sent: every quote is pulled then,
    /// until a person resumes.
    fn is_stopped(&mut self) -> bool {
        false
    }
    /// Whether the controls ([`crate::Controls`]) let a mass quote leave, else the first that does not: an
    /// instrument's rate of messages counts as the session's, anything else pulls every quote until a person
    /// resumes.
    fn admit(&mut self, now: Nanos, quote: &MassQuote<'_>) -> Result<(), RiskReject> {
        let _ = (now, quote);
        Ok(())
    }
    /// Cancels every quote (QuoteCancel, 298=4).
    fn cancel_all(&mut self, id: u64, cause: &Cause) -> bool;
    /// Does with a mass quote what sending it would, but for the sending: nothing may leave or be counted.
    /// See [`super::Quoter::rehearse`].
    fn rehearse(&mut self, quote: &MassQuote<'_>) {
        let _ = quote;
    }
}

/// An execution against a quote.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fill {
    /// Which.
    pub quote: u16,
    /// Our side: a filled bid bought.
    pub side: Side,
    /// How much.
    pub qty: Qty,
    /// At which price, in ticks.
    pub ticks: u16,
    /// Delta of the option, in thousandths.
    pub delta_milli: i32,
}

impl Fill {
    /// Contracts bought, below 0 sold.
    pub fn signed(&self) -> i64 {
        match self.side {
            Side::Bid => i64::from(self.qty.0),
            Side::Ask => -i64::from(self.qty.0),
        }
    }

    /// What was paid for them, below 0 received, in ticks times contracts.
    pub fn paid(&self) -> i64 {
        self.signed().saturating_mul(i64::from(self.ticks))
    }
}
