//! What several strategies of one program have together: numbers that tell them apart, limits over all, and
//! orders that must not meet.

use tickwire_market::{ClientOrderId, InstrumentId, Nanos, OrderIntent, Price, Side};

use super::{Conductor, Quote, QuoteIntent, Strategy};

/// So many numbers of orders each of several strategies has: those of the next begin behind them
/// ([`super::ConductorConfig::last_id`]).
pub const NUMBERS: u64 = 1_000_000_000_000;

/// Where the numbers of a strategy's orders begin ([`super::ConductorConfig::last_id`]) in a process that was
/// started at a time: above those of every process of the days before it, as long as each enters fewer than a
/// million orders and requests a second: a venue remembers the numbers of its day, and refuses one that it
/// knows, of an order or of the request to cancel it.
pub fn numbers_from(strategy: usize, started: Nanos) -> u64 {
    const SPAN: u64 = 800_000_000_000;
    strategy as u64 * NUMBERS + started.0 / Nanos::MICRO % SPAN
}

/// The how many-th strategy a number of an order, of a request or of a quote is of.
#[inline]
pub fn whose(id: ClientOrderId) -> usize {
    (id.0.saturating_sub(1) / NUMBERS) as usize
}

impl<S: Strategy> Conductor<S> {
    /// Whether a request of another strategy could trade with an order or a quote of this one.
    pub fn meets(&self, request: &OrderIntent) -> bool {
        let order = request.order();
        order.is_some_and(|order| self.is_met(order.instrument, order.side, order.price, order.stop))
    }

    /// The same of a request about quotes; one that takes the place of a quote of this one too: a venue has
    /// one of an instrument.
    pub fn meets_quotes(&self, request: &QuoteIntent<'_>) -> bool {
        let QuoteIntent::Mass { entries, .. } = request else {
            return false;
        };
        entries.quotes().iter().any(|quote| self.meets_quote(quote))
    }

    fn meets_quote(&self, quote: &Quote) -> bool {
        let own = self.state.quotes.of(quote.instrument);
        let sides = Side::BOTH.into_iter().zip(quote.sides);
        let mut sides = sides.filter(|(_, (_, qty))| !qty.is_zero());
        own.is_some_and(|own| own.is_open())
            || sides.any(|(side, (price, _))| self.is_met(quote.instrument, side, price, None))
    }

    fn is_met(&self, instrument: InstrumentId, side: Side, price: Price, stop: Option<Price>) -> bool {
        let mut orders = self.state.orders.iter_open();
        let is_met = orders.any(|order| order.instrument == instrument && order.is_met(side, price, stop));
        is_met || self.state.quotes.is_met(instrument, side, price, stop)
    }
}

/// What several strategies hold and lost together counts against each one's limits over all; who is killed
/// kills all. `of` is the conductor of each.
pub fn share<H, S: Strategy>(all: &mut [H], of: impl Fn(&mut H) -> &mut Conductor<S>) {
    if all.len() < 2 {
        return;
    }
    let (mut held, mut gain, mut is_killed) = (0_u64, 0_i128, false);
    for one in &mut *all {
        let risk = of(one).risk();
        let own = risk.controls().totals();
        (held, gain) = (held.saturating_add(own.0), gain.saturating_add(own.1));
        is_killed |= risk.is_killed();
    }
    for one in all {
        let conductor = of(one);
        let own = conductor.risk().controls().totals();
        let controls = conductor.risk_mut().controls_mut();
        controls.set_others((held.saturating_sub(own.0), gain.saturating_sub(own.1)));
        if is_killed {
            conductor.kill();
        }
    }
}
