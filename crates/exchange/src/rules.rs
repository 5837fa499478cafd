//! The rules of an instrument and of a market maker, and requests about many orders at once.

use tickwire_market::{InstrumentId, Price, Qty, Side};
use tickwire_persist::persist;

use crate::engine::PRICE_MAX;
use crate::order::{Firm, Owner};

/// The most steps of a [`TickTable`].
pub const TICK_STEPS_MAX: usize = 8;

/// The smallest price step by price: MiFID II's regime, the penny classes of US options, or one tick for all.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TickTable {
    /// From which price on which tick holds, ascending; the first starts at 0. Unused ones have no tick.
    steps: [(Price, Price); TICK_STEPS_MAX],
}

impl TickTable {
    /// One tick at every price; above 0.
    pub const fn uniform(tick: Price) -> TickTable {
        let mut steps = [(Price::ZERO, Price::ZERO); TICK_STEPS_MAX];
        steps[0].1 = tick;
        TickTable { steps }
    }

    /// `tick` holds below `from`; then `steps`, each from its price on. `None` unless prices ascend, every
    /// tick is above 0, every price is a multiple of the ticks on both sides of it, and there are fewer than
    /// [`TICK_STEPS_MAX`].
    pub fn stepped(tick: Price, steps: &[(Price, Price)]) -> Option<TickTable> {
        let mut table = TickTable::uniform(tick);
        let mut last = (Price::ZERO, tick);
        if tick <= Price::ZERO || steps.len() >= TICK_STEPS_MAX {
            return None;
        }
        for (to, &(from, tick)) in table.steps[1..].iter_mut().zip(steps) {
            let is_multiple = |tick: Price| from.raw() % tick.raw() == 0;
            if from <= last.0 || tick <= Price::ZERO || !is_multiple(tick) || !is_multiple(last.1) {
                return None;
            }
            *to = (from, tick);
            last = (from, tick);
        }
        Some(table)
    }

    /// The tick at a price; of one below 0, that of 0.
    pub fn at(&self, price: Price) -> Price {
        let used = self.steps[1..].iter().take_while(|(_, tick)| *tick > Price::ZERO);
        let step = used.take_while(|(from, _)| *from <= price).last();
        step.unwrap_or(&self.steps[0]).1
    }

    /// From which price on which tick holds, ascending; the first from 0 on.
    pub fn steps(&self) -> impl Iterator<Item = (Price, Price)> + '_ {
        let used = self.steps.iter().take_while(|(_, tick)| *tick > Price::ZERO);
        used.copied()
    }

    /// Whether a price can be quoted.
    pub fn has(&self, price: Price) -> bool {
        price.raw() % self.at(price).raw() == 0
    }

    /// The price itself if it can be quoted, else the first one further from the market that can: below for
    /// bids, above for asks.
    pub fn outward(&self, side: Side, price: Price) -> Price {
        let tick = self.at(price).raw();
        let down = price.raw() - price.raw().rem_euclid(tick);
        match side {
            _ if down == price.raw() => price,
            Side::Bid => Price::from_raw(down),
            Side::Ask => Price::from_raw(down + tick),
        }
    }

    /// The next price away from the market: below for bids, above for asks. A price of the table is expected.
    pub fn behind(&self, side: Side, price: Price) -> Price {
        match side {
            Side::Ask => Price::from_raw(price.raw() + self.at(price).raw()),
            // At a step's first price the tick below it holds.
            Side::Bid => Price::from_raw(price.raw() - self.at(Price::from_raw(price.raw() - 1)).raw()),
        }
    }
}

/// What becomes of a post-only order that would take liquidity.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum PostOnly {
    /// [`Reject::PostOnly`](crate::Reject::PostOnly).
    #[default]
    Reject,
    /// It is entered one tick behind the best opposite price, hidden orders included.
    Reprice,
}

/// What a halted or paused instrument does with new orders and replacements. Cancels are always taken.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum HaltedOrders {
    /// [`Reject::NotTrading`](crate::Reject::NotTrading).
    #[default]
    Reject,
    /// Limit orders that may rest are collected as in a call phase: shown, not matched.
    Collect,
}

/// What happens at the edge of a price band.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum OnBreach {
    /// A limit order that would pay more (ask less) than the edge is refused with
    /// [`Reject::PriceBand`](crate::Reject::PriceBand); a market order trades up to the edge, its rest
    /// expires.
    #[default]
    Reject,
    /// Orders are taken and trade up to the edge. What would trade beyond it pauses the instrument: a limit
    /// order's rest stays in the book, a market order's expires, and the pause ends with an auction.
    Pause,
}

/// How far prices may go, in millionths of a reference; 0 is no limit. The narrower edge holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PriceBands {
    /// Around the static reference: [`Engine::set_reference`](crate::Engine::set_reference) or the last
    /// auction's price.
    pub static_ppm: u32,
    /// Around the last trade's price; before the first one, around the static reference.
    pub dynamic_ppm: u32,
    /// What happens at the edge.
    pub on_breach: OnBreach,
}

/// The rules of an instrument.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rules {
    /// Its price steps.
    pub ticks: TickTable,
    /// The largest price, at most [`PRICE_MAX`](crate::PRICE_MAX) where a feed of the ITCH family shows the
    /// instrument and [`MDP3_PRICE_MAX`](crate::MDP3_PRICE_MAX) on MDP 3.0.
    pub price_max: Price,
    /// Quantities are multiples of this, at least 1.
    pub lot: Qty,
    /// See [`PostOnly`].
    pub post_only: PostOnly,
    /// See [`HaltedOrders`].
    pub halted: HaltedOrders,
    /// See [`PriceBands`].
    pub bands: PriceBands,
    /// Instruments that are protected and cancelled together: a product, an option class.
    pub group: u32,
}

impl Default for Rules {
    fn default() -> Rules {
        Rules {
            ticks: TickTable::uniform(Price::from_4dp(100)),
            price_max: PRICE_MAX,
            lot: Qty(1),
            post_only: PostOnly::default(),
            halted: HaltedOrders::default(),
            bands: PriceBands::default(),
            group: 0,
        }
    }
}

/// Which auction.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum AuctionKind {
    /// Of the day's beginning; [`TimeInForce::AtTheOpening`](tickwire_market::TimeInForce::AtTheOpening)
    /// orders are for it.
    #[default]
    Opening,
    /// Of the day's end; [`TimeInForce::AtTheClose`](tickwire_market::TimeInForce::AtTheClose) orders are for
    /// it.
    Closing,
    /// After a halt or a pause.
    Resumption,
}

/// What a venue's operator does with an instrument's trading. ITCH 5.0, "Stock Trading Action".
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum TradingAction {
    /// Nothing trades any more. Orders stay; new ones are taken or refused as [`Rules::halted`] says.
    Halt,
    /// The call phase of the auction that ends a halt or pause: orders are collected and shown, and what
    /// would trade is indicated.
    Call,
    /// The auction, after its call phase or without one, then continuous trading.
    Resume,
}

/// Which orders a mass cancel takes; everything that is `None` matches all.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct MassCancel {
    /// Whose orders.
    pub firm: Option<Firm>,
    /// Of one instrument.
    pub instrument: Option<InstrumentId>,
    /// Of a group of instruments, see [`Rules::group`].
    pub group: Option<u32>,
    /// Of one side.
    pub side: Option<Side>,
    /// Quotes only, see [`QuoteEntry`].
    pub quotes_only: bool,
}

/// A two-sided quote: replaces the firm's earlier one of the instrument as a whole. A side without quantity
/// is withdrawn.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct QuoteEntry {
    /// The instrument.
    pub instrument: InstrumentId,
    /// Whose ledger entry; told with both sides' events.
    pub owner: Owner,
    /// Price to buy, below that to sell.
    pub bid: Price,
    /// How much to buy, 0 is none.
    pub bid_qty: Qty,
    /// Price to sell.
    pub ask: Price,
    /// How much to sell, 0 is none.
    pub ask_qty: Qty,
}

/// Limits on what may trade against a firm's quotes in a group of instruments within a time window; 0 is no
/// limit. The window begins with the first trade after the last one ended. A request is carried out whole; if
/// it reached a limit, all quotes of the firm in the group are cancelled after it and new ones refused until
/// [`Engine::reset_protection`](crate::Engine::reset_protection).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Protection {
    /// How long a window is, in nanoseconds of [`Engine::set_time`](crate::Engine::set_time).
    pub window_ns: u64,
    /// Contracts traded.
    pub contracts: u64,
    /// Trades.
    pub trades: u32,
    /// Sum over trades of the traded part of what the quote had before, in percent (10 of 50 adds 20).
    pub percent: u64,
    /// Contracts traded on both sides: reached when as much was bought and as much sold.
    pub both_sides: u64,
}

persist!(value struct TickTable { steps });
persist!(value enum PostOnly { 0 => Reject, 1 => Reprice });
persist!(value enum HaltedOrders { 0 => Reject, 1 => Collect });
persist!(value enum OnBreach { 0 => Reject, 1 => Pause });
persist!(value struct PriceBands { static_ppm, dynamic_ppm, on_breach });
persist!(value struct Rules { ticks, price_max, lot, post_only, halted, bands, group });
persist!(value enum AuctionKind { 0 => Opening, 1 => Closing, 2 => Resumption });
persist!(value struct Protection { window_ns, contracts, trades, percent, both_sides });

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tick_depends_on_the_price_and_steps_join() {
        let [penny, nickel, dime] = [1, 5, 10].map(|cents| Price::from_4dp(cents * 100));
        let three = Price::from_4dp(30_000);
        let table = TickTable::stepped(nickel, &[(three, dime)]).unwrap();
        assert_eq!(
            (table.at(Price::from_4dp(29_500)), table.at(three)),
            (nickel, dime)
        );
        assert!(table.has(Price::from_4dp(29_500)) && !table.has(Price::from_4dp(30_500)));
        assert_eq!(table.behind(Side::Bid, three), Price::from_4dp(29_500));
        assert_eq!(table.behind(Side::Ask, three), Price::from_4dp(31_000));
        let odd = Price::from_4dp(30_500);
        assert_eq!(table.outward(Side::Bid, odd), three);
        assert_eq!(table.outward(Side::Ask, odd), Price::from_4dp(31_000));
        assert_eq!(table.outward(Side::Ask, three), three);
        assert_eq!(TickTable::stepped(penny, &[(three, dime), (three, nickel)]), None);
        assert_eq!(
            TickTable::stepped(penny, &[(Price::from_4dp(30_500), dime)]),
            None
        );
        assert_eq!(TickTable::stepped(penny, &[(three, Price::ZERO)]), None);
    }
}
