//! Strategies of two types in the place of one, for hosts that run several of one type.

use alloc::vec::Vec;

use tickwire_market::{Instrument, InstrumentId, MarketEvent, TradingStatus};

use super::{
    ArmedEvent, BookChange, Context, LateExecution, MassQuoteEvent, OrderEvent, QuoteEvent, Strategy,
    Subscription, SuperChange, TimerId, Trade,
};

/// A strategy of one type or of another: which one it is, the configuration says. Of more than two types one
/// is an `Either` itself.
///
/// ```
/// use tickwire_market::{Qty, Symbol, TimeInForce};
/// use tickwire_trading::BestOffer;
/// use tickwire_trading::strategy::{Either, Strategy, Subscription};
///
/// /// Trades nothing.
/// struct Idle;
///
/// impl Strategy for Idle {
///     fn subscriptions(&self) -> Vec<Subscription> {
///         Vec::new()
///     }
/// }
///
/// let symbol = Symbol::new(b"AAPL").expect("a symbol");
/// let rule = BestOffer::new(symbol, Qty(100), TimeInForce::ImmediateOrCancel);
/// let strategies = [Either::First(rule), Either::Second(Idle)];
/// assert_eq!(strategies.map(|s| s.subscriptions().len()), [1, 0]);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Either<A, B> {
    /// Of the first type.
    First(A),
    /// Of the second type.
    Second(B),
}

impl<A, B> Either<A, B> {
    /// The strategy, if it is of the first type.
    pub fn first(&self) -> Option<&A> {
        match self {
            Either::First(strategy) => Some(strategy),
            Either::Second(_) => None,
        }
    }

    /// The strategy, if it is of the second type.
    pub fn second(&self) -> Option<&B> {
        match self {
            Either::First(_) => None,
            Either::Second(strategy) => Some(strategy),
        }
    }
}

/// Callbacks that the strategy of either type is told of.
macro_rules! told {
    ($($callback:ident($($name:ident: $type:ty),*) $(-> $gives:ty)?;)*) => {
        $(
            #[inline]
            fn $callback(&mut self, ctx: &mut Context<'_>, $($name: $type),*) $(-> $gives)? {
                match self {
                    Either::First(strategy) => strategy.$callback(ctx, $($name),*),
                    Either::Second(strategy) => strategy.$callback(ctx, $($name),*),
                }
            }
        )*
    };
}

impl<A: Strategy, B: Strategy> Strategy for Either<A, B> {
    fn subscriptions(&self) -> Vec<Subscription> {
        match self {
            Either::First(strategy) => strategy.subscriptions(),
            Either::Second(strategy) => strategy.subscriptions(),
        }
    }

    told! {
        on_start();
        on_instrument(instrument: &Instrument);
        on_book(change: &BookChange);
        on_super_book(change: &SuperChange);
        on_trade(trade: &Trade);
        on_quote(quote: &MarketEvent);
        on_imbalance(imbalance: &MarketEvent);
        on_status(instrument: InstrumentId, status: TradingStatus);
        on_stale(instrument: InstrumentId);
        on_live(instrument: InstrumentId);
        on_order(event: &OrderEvent);
        on_armed(event: &ArmedEvent);
        on_own_quote(event: &QuoteEvent);
        on_mass_quote(event: &MassQuoteEvent<'_>);
        on_late_execution(late: &LateExecution) -> bool;
        on_turn();
        on_idle();
        on_session();
        on_distrust() -> bool;
        on_packet(feed: usize);
        on_timer(timer: TimerId);
        on_command(words: &str);
        on_stop();
    }

    fn pre_arms(&self) -> bool {
        match self {
            Either::First(strategy) => strategy.pre_arms(),
            Either::Second(strategy) => strategy.pre_arms(),
        }
    }

    fn observes_markets(&self) -> bool {
        match self {
            Either::First(strategy) => strategy.observes_markets(),
            Either::Second(strategy) => strategy.observes_markets(),
        }
    }

    fn figures(&self, tell: &mut dyn FnMut(&str, i64)) {
        match self {
            Either::First(strategy) => strategy.figures(tell),
            Either::Second(strategy) => strategy.figures(tell),
        }
    }
}

#[cfg(test)]
mod tests {
    /// A callback that is added to the trait is to be passed on: without that, a strategy in an `Either`
    /// would hear nothing of it.
    #[test]
    fn every_callback_is_passed_on() {
        let of_trait = include_str!("mod.rs");
        let from = of_trait.find("pub trait Strategy {").expect("the trait");
        let of_trait = &of_trait[from..];
        let of_trait = &of_trait[..of_trait.find("\n}\n").expect("its end")];
        let names = of_trait.split("\n    fn ").skip(1);
        let mut count = 0;
        for name in names.map(|rest| &rest[..rest.find('(').expect("a function")]) {
            let is_passed = include_str!("either.rs").contains(&alloc::format!(" {name}("));
            assert!(is_passed, "{name}");
            count += 1;
        }
        assert!(count > 20, "{count} functions");
    }
}
