//! Strategies that take part, each with its own account.

use std::collections::BTreeMap;

use tickwire_market::{InstrumentId, Nanos, OrderIntent};
use tickwire_trading::strategy::{Conductor, ConductorConfig, OrderPort, QuoteIntent, Rejected, Strategy};

use super::accounts::Account;
use super::wire::Wire;

/// A strategy that takes part in a backtest.
#[derive(Clone, Debug)]
pub struct Entrant<S> {
    /// The strategy.
    pub strategy: S,
    /// Its sizes and limits; feeds, and numbers of orders, are the backtest's.
    pub conductor: ConductorConfig,
    /// By feed, whether it hears it; those beyond are heard.
    pub hears: Vec<bool>,
}

/// The same with what became of it.
#[derive(Debug)]
pub(super) struct Entered<S> {
    pub(super) conductor: Conductor<S>,
    pub(super) hears: Vec<bool>,
    pub(super) accounts: BTreeMap<InstrumentId, Account>,
    /// Fills, of these as maker.
    pub(super) fills: [u64; 2],
}

/// Where a strategy's requests go; an order that could meet one of another strategy does not.
pub(super) struct Port<'a, S> {
    pub(super) wire: &'a mut Wire,
    pub(super) others: [&'a [Entered<S>]; 2],
}

impl<S: Strategy> OrderPort for Port<'_, S> {
    fn send(&mut self, now: Nanos, request: &OrderIntent) -> Result<(), Rejected> {
        let mut others = self.others.iter().copied().flatten();
        match others.any(|other| other.conductor.meets(request)) {
            true => Err(Rejected::SelfTrade),
            false => self.wire.send(now, request),
        }
    }

    fn quote(&mut self, now: Nanos, request: &QuoteIntent<'_>) -> Result<(), Rejected> {
        let mut others = self.others.iter().copied().flatten();
        match others.any(|other| other.conductor.meets_quotes(request)) {
            true => Err(Rejected::SelfTrade),
            false => self.wire.quote(now, request),
        }
    }
}
