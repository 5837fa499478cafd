//! The checks between a decision and the market. Each has a name, a counter and a test; integers only.

use crate::controls::{QuickPass, Slot};
use crate::{Controls, ControlsConfig, NewOrder, Position, StrategyId, Wanted};
use alloc::vec;
use alloc::vec::Vec;
use tickwire_book::prefetch;
use tickwire_market::{BookState, BookUpdate, Counter, InstrumentId, Nanos, Price, Qty, Side};

/// The limits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RiskConfig {
    /// The largest order. Default 1000.
    pub max_order_qty: Qty,
    /// How far an order's price may lie from the last good mid price, in basis points (1/10 000) of that.
    /// Default 500.
    pub price_band_bp: u32,
    /// How many orders may be sent within the window. Default 100.
    pub max_orders_per_window: u32,
    /// The length of that window, in nanoseconds. Default one second.
    pub window_ns: u64,
    /// How many orders may be open or unacknowledged. Default 16.
    pub max_open_orders: u32,
    /// The largest position either way, counting open orders as traded. Default 10 000.
    pub max_position: u64,
    /// The controls that every strategy shares; size and price band above take the place of theirs.
    pub controls: ControlsConfig,
    /// To whose account the controls count quotes and orders. Default [`StrategyId::Rule`], both.
    pub accounts: Accounts,
}

/// To whose account the controls count what a strategy trades.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Accounts {
    /// Its quotes.
    pub quotes: StrategyId,
    /// Its orders.
    pub orders: StrategyId,
}

impl Accounts {
    /// Everything counts as the trader's rule.
    pub const RULE: Accounts = Accounts {
        quotes: StrategyId::Rule,
        orders: StrategyId::Rule,
    };
}

impl Default for Accounts {
    fn default() -> Accounts {
        Accounts::RULE
    }
}

impl Default for RiskConfig {
    fn default() -> RiskConfig {
        RiskConfig {
            max_order_qty: Qty(1_000),
            price_band_bp: 500,
            max_orders_per_window: 100,
            window_ns: Nanos::SECOND,
            max_open_orders: 16,
            max_position: 10_000,
            controls: ControlsConfig::default(),
            accounts: Accounts::default(),
        }
    }
}

/// Why an order was stopped.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum RiskReject {
    /// The kill switch is on.
    KillSwitch,
    /// No order entry session is logged on.
    NoSession,
    /// Market data is silent: nobody knows what the market is. Or it was, and the venue has not confirmed
    /// yet that what was cancelled for it is gone.
    Silence,
    /// Empty, or larger than allowed.
    OrderSize,
    /// No mid price of the instrument is known, or the instrument is beyond the configured number.
    NoReference,
    /// Too far from the last good mid price.
    PriceBand,
    /// Too many orders open.
    OpenOrders,
    /// The position could become too large.
    Position,
    /// Too many orders within the window.
    OrderRate,
    /// Worth more than one order may be.
    OrderValue,
    /// Too far from the mid price of a while ago.
    PriceDrift,
    /// Too many messages about the instrument.
    InstrumentRate,
    /// The order that was sent last, decided on again by the same message.
    Duplicate,
    /// It could trade with an order of ours.
    SelfTrade,
    /// The strategy executed too often, and is stopped until a person resumes it.
    Executions,
    /// The strategy, or all together, would hold too much.
    TotalPosition,
    /// The strategy, or all together, lost too much, and is stopped until a person resumes it.
    Loss,
}

impl RiskReject {
    /// Every reason.
    pub const ALL: [RiskReject; 17] = [
        RiskReject::KillSwitch,
        RiskReject::NoSession,
        RiskReject::Silence,
        RiskReject::OrderSize,
        RiskReject::NoReference,
        RiskReject::PriceBand,
        RiskReject::OpenOrders,
        RiskReject::Position,
        RiskReject::OrderRate,
        RiskReject::OrderValue,
        RiskReject::PriceDrift,
        RiskReject::InstrumentRate,
        RiskReject::Duplicate,
        RiskReject::SelfTrade,
        RiskReject::Executions,
        RiskReject::TotalPosition,
        RiskReject::Loss,
    ];

    /// What counts it.
    pub const fn counter(self) -> Counter {
        match self {
            RiskReject::KillSwitch => Counter::RiskKillSwitch,
            RiskReject::NoSession => Counter::RiskNoSession,
            RiskReject::Silence => Counter::RiskSilence,
            RiskReject::OrderSize => Counter::RiskOrderSize,
            RiskReject::NoReference => Counter::RiskNoReference,
            RiskReject::PriceBand => Counter::RiskPriceBand,
            RiskReject::OpenOrders => Counter::RiskOpenOrders,
            RiskReject::Position => Counter::RiskPosition,
            RiskReject::OrderRate => Counter::RiskOrderRate,
            RiskReject::OrderValue => Counter::RiskOrderValue,
            RiskReject::PriceDrift => Counter::RiskPriceDrift,
            RiskReject::InstrumentRate => Counter::RiskInstrumentRate,
            RiskReject::Duplicate => Counter::RiskDuplicate,
            RiskReject::SelfTrade => Counter::RiskSelfTrade,
            RiskReject::Executions => Counter::RiskExecutions,
            RiskReject::TotalPosition => Counter::RiskTotalPosition,
            RiskReject::Loss => Counter::RiskLoss,
        }
    }
}

/// The part of the checks that one order changes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BeforeCheck {
    slot: Option<Slot>,
    window: (usize, Option<Nanos>),
}

/// The pre-trade checks of a trader and what they remember: those of [`Controls`], and of its session, orders
/// and position.
#[derive(Clone, Debug)]
pub struct Risk {
    config: RiskConfig,
    controls: Controls,
    sent: Window,
    has_session: bool,
    is_silent: bool,
}

impl Risk {
    /// Checks for instruments `0..max_instruments`; the kill switch is off and a session is assumed.
    pub fn new(config: RiskConfig, max_instruments: u32) -> Risk {
        let controls = ControlsConfig {
            qty_max: config.max_order_qty,
            band_bp: Some(config.price_band_bp),
            needs_reference: true,
            ..config.controls
        };
        Risk {
            config,
            controls: Controls::new(controls, max_instruments),
            sent: Window::new(config.max_orders_per_window, config.window_ns),
            has_session: true,
            is_silent: false,
        }
    }

    /// Whether an order may go out, given the open orders and the position in its instrument. One that may is
    /// counted against the order rate: it must be sent. `rests`: it may stay in the book, until
    /// [`Risk::closed`].
    #[inline]
    pub fn check(
        &mut self,
        now: Nanos,
        order: &NewOrder,
        (open_orders, rests): (u32, bool),
        position: &Position,
    ) -> Result<(), RiskReject> {
        self.judge::<false>(now, order, order.price, (open_orders, rests), position)
    }

    /// The same of a stop order, `order.price` its limit or [`Risk::worst_of_stop`]. Until it is triggered it
    /// does not rest.
    pub fn check_stop(
        &mut self,
        now: Nanos,
        order: &NewOrder,
        trigger: Price,
        open_orders: u32,
        position: &Position,
    ) -> Result<(), RiskReject> {
        self.judge::<true>(now, order, trigger, (open_orders, false), position)
    }

    /// Whether a quote may go out: a side without quantity is not looked at, one that takes both away always
    /// may. What rests of ours is not compared with it. If it does, it must be told with [`Risk::quoted`].
    pub fn check_quote(
        &mut self,
        now: Nanos,
        instrument: InstrumentId,
        sides: &[(Price, Qty); 2],
        position: &Position,
    ) -> Result<(), RiskReject> {
        if !self.has_session | self.is_silent {
            self.check_unheard(sides)?;
        }
        let [(bid, bid_qty), (ask, ask_qty)] = *sides;
        if !bid_qty.is_zero() && !ask_qty.is_zero() && bid >= ask {
            return Err(RiskReject::SelfTrade);
        }
        let account = self.config.accounts.quotes;
        self.controls
            .check_sides(now, account, instrument.index(), sides)?;
        let is_too_large =
            |side, qty: Qty| !qty.is_zero() && position.worst(side, qty) > self.config.max_position;
        match is_too_large(Side::Bid, bid_qty) || is_too_large(Side::Ask, ask_qty) {
            true => Err(RiskReject::Position),
            false => Ok(()),
        }
    }

    /// What quotes of a message pass by, most of them, without a closer look at each.
    #[inline]
    pub(crate) fn quick_pass(&self, now: Nanos) -> Option<QuickPass> {
        match self.has_session && !self.is_silent {
            true => self.controls.quick_pass(now, self.config.accounts.quotes),
            false => None,
        }
    }

    /// Whether a quote passes everything at once; of one that does not, [`Risk::check_quote`] says whether it
    /// may go out and what stops it.
    #[inline(always)]
    pub(crate) fn passes(
        &self,
        pass: QuickPass,
        instrument: InstrumentId,
        sides: &[(Price, Qty); 2],
        position: &Position,
    ) -> bool {
        let [(_, bid_qty), (_, ask_qty)] = *sides;
        let [bids, asks] = position.working;
        let working = bids.0.max(asks.0).saturating_add(bid_qty.0.max(ask_qty.0).into());
        self.controls.passes(pass, instrument.index(), sides)
            && working.saturating_add(position.qty.unsigned_abs()) <= self.config.max_position
    }

    /// Without a session, or in silence: whether what stops a quote is that. Without a session not even what
    /// takes away can leave; what the kill switch stops is stopped by that.
    #[cold]
    fn check_unheard(&self, sides: &[(Price, Qty); 2]) -> Result<(), RiskReject> {
        let is_any = sides.iter().any(|(_, qty)| !qty.is_zero());
        match (is_any && self.controls.is_killed(), is_any) {
            (true, _) => Ok(()),
            (false, _) if !self.has_session => Err(RiskReject::NoSession),
            (false, true) => Err(RiskReject::Silence),
            (false, false) => Ok(()),
        }
    }

    /// Whether one more message may go out, a mass quote of however many instruments; it is counted.
    pub fn take_message(&mut self, now: Nanos) -> Result<(), RiskReject> {
        match self.sent.take(now) {
            true => Ok(()),
            false => Err(RiskReject::OrderRate),
        }
    }

    /// A quote of an instrument goes out.
    #[inline(always)]
    pub fn quoted(&mut self, now: Nanos, instrument: InstrumentId) {
        self.controls.charge(now, instrument.index());
    }

    /// The worst price at which a stop order without a limit is expected to trade: as far behind its trigger
    /// as an order may be from the mid price. Its value is judged by it; the venue may trade it at a worse
    /// one.
    pub fn worst_of_stop(&self, side: Side, trigger: Price) -> Price {
        let raw = i128::from(trigger.raw());
        let reach = raw.abs() * i128::from(self.config.price_band_bp) / 10_000;
        let worst = match side {
            Side::Bid => raw + reach,
            Side::Ask => raw - reach,
        };
        Price::from_raw(worst.clamp(i64::MIN.into(), i64::MAX.into()) as i64)
    }

    #[inline(always)]
    fn judge<const IS_STOP: bool>(
        &mut self,
        now: Nanos,
        order: &NewOrder,
        trigger: Price,
        (open_orders, rests): (u32, bool),
        position: &Position,
    ) -> Result<(), RiskReject> {
        let config = &self.config;
        if (!self.has_session | self.is_silent) && !self.controls.is_killed() {
            return Err(self.unheard());
        }
        let wanted = Wanted {
            strategy: config.accounts.orders,
            slot: order.instrument.index(),
            side: order.side,
            price: order.price,
            qty: order.qty,
            cause: Some(order.cause.seq),
        };
        match IS_STOP {
            false => self.controls.check(now, &wanted)?,
            true => self.controls.check_apart(now, &wanted, trigger)?,
        }
        if open_orders >= config.max_open_orders {
            return Err(RiskReject::OpenOrders);
        }
        if position.worst(order.side, order.qty) > config.max_position {
            return Err(RiskReject::Position);
        }
        if !self.sent.take(now) {
            return Err(RiskReject::OrderRate);
        }
        self.controls.sent(now, &wanted, rests);
        Ok(())
    }

    /// What an order that passes changes here, to be put back by [`Risk::restore`].
    pub(crate) fn before_order(&self, instrument: InstrumentId) -> BeforeCheck {
        BeforeCheck {
            slot: self.controls.slot(instrument.index()),
            window: self.sent.next(),
        }
    }

    /// Makes the checks what they were before the one order that passed since.
    pub(crate) fn restore(&mut self, instrument: InstrumentId, before: BeforeCheck) {
        self.controls.set_slot(instrument.index(), before.slot);
        self.sent.set_next(before.window);
    }

    /// What rests of ours on a side of an instrument now: how many orders, and the best price of them.
    pub fn resting(&mut self, instrument: InstrumentId, side: Side, resting: (u32, Price)) {
        self.controls.resting(instrument.index(), side, resting);
    }

    /// An order that may have rested is over.
    pub fn closed(&mut self, instrument: InstrumentId, side: Side) {
        self.controls.closed(instrument.index(), side);
    }

    /// An order traded, `now` on the clock of the market data.
    pub fn fill(&mut self, now: Nanos, instrument: InstrumentId, traded: (Side, Qty, Price)) {
        self.controls
            .fill(now, self.config.accounts.orders, instrument.index(), traded);
    }

    /// A quote traded.
    pub fn quote_filled(&mut self, now: Nanos, instrument: InstrumentId, traded: (Side, Qty, Price)) {
        self.controls
            .fill(now, self.config.accounts.quotes, instrument.index(), traded);
    }

    /// The venue took a trade of a quote back.
    pub fn quote_broken(&mut self, instrument: InstrumentId, traded: (Side, Qty, Price)) {
        self.controls
            .unfill(self.config.accounts.quotes, instrument.index(), traded);
    }

    /// What orders or quotes (`by_quotes`) of a process or a session before this one have traded: it is held,
    /// and counts as no execution.
    pub fn hold(&mut self, instrument: InstrumentId, by_quotes: bool, traded: (Side, Qty, Price)) {
        let Accounts { quotes, orders } = self.config.accounts;
        let account = if by_quotes { quotes } else { orders };
        self.controls.hold(account, instrument.index(), traded);
    }

    /// The venue took a trade back.
    pub fn unfill(&mut self, instrument: InstrumentId, traded: (Side, Qty, Price)) {
        self.controls
            .unfill(self.config.accounts.orders, instrument.index(), traded);
    }

    /// Takes note of a book: the mid price of a live one with two sides that do not touch is a good one.
    #[inline]
    pub fn observe(&mut self, update: &BookUpdate) {
        let (Some((bid, _)), Some((ask, _))) = (update.best(Side::Bid), update.best(Side::Ask)) else {
            return;
        };
        if update.state != BookState::Live || bid >= ask {
            return;
        }
        let mid = middle(bid, ask);
        self.controls
            .observe(update.recv_ts, update.instrument.index(), mid);
    }

    /// Fetches what [`Risk::observe`] needs.
    pub(crate) fn fetch(&self, instrument: InstrumentId) {
        self.controls.fetch(instrument.index());
    }

    /// The last good mid price.
    #[inline]
    pub fn reference(&self, instrument: InstrumentId) -> Option<Price> {
        self.controls.mid(instrument.index())
    }

    /// Sets a mid price from elsewhere: yesterday's close, an auction.
    pub fn set_reference(&mut self, instrument: InstrumentId, price: Price) {
        self.controls.observe(Nanos::ZERO, instrument.index(), price);
    }

    /// Stops every further order, until [`Risk::revive`].
    pub fn kill(&mut self) {
        self.controls.kill();
    }

    /// Lets orders out again, whatever stopped them: a person's word.
    pub fn revive(&mut self) {
        self.controls.resume();
    }

    /// Whether the kill switch is on.
    pub fn is_killed(&self) -> bool {
        self.controls.is_killed()
    }

    /// Why nothing leaves until [`Risk::revive`], other than by the kill switch.
    pub fn stopped(&self) -> Option<RiskReject> {
        let Accounts { quotes, orders } = self.config.accounts;
        let stopped = self.controls.stopped(orders);
        stopped.or_else(|| self.controls.stopped(quotes))
    }

    /// What its quotes and orders gained at mid prices, less than 0 is lost, in whole units of money.
    pub fn gain(&self) -> i64 {
        let Accounts { quotes, orders } = self.config.accounts;
        match quotes == orders {
            true => self.controls.gain(orders),
            false => self
                .controls
                .gain(quotes)
                .saturating_add(self.controls.gain(orders)),
        }
    }

    /// The controls, to look at.
    pub fn controls(&self) -> &Controls {
        &self.controls
    }

    /// The controls, to say what a point of an instrument is worth.
    pub fn controls_mut(&mut self) -> &mut Controls {
        &mut self.controls
    }

    /// Takes controls that were made otherwise than of the configuration, of the same instruments.
    pub fn set_controls(&mut self, controls: Controls) {
        self.controls = controls;
    }

    /// Whether an order entry session is logged on.
    pub fn has_session(&self) -> bool {
        self.has_session
    }

    /// Says whether an order entry session is logged on.
    pub fn set_session(&mut self, is_up: bool) {
        self.has_session = is_up;
    }

    /// Says whether market data is silent, or what was cancelled for it not confirmed. While it is, nothing
    /// goes out but what takes away.
    pub fn set_silent(&mut self, is_silent: bool) {
        self.is_silent = is_silent;
    }

    /// Which of the two it is that nothing goes out for.
    #[cold]
    fn unheard(&self) -> RiskReject {
        match self.has_session {
            false => RiskReject::NoSession,
            true => RiskReject::Silence,
        }
    }
}

/// The midpoint of two 64-bit numbers is one.
pub(crate) fn middle(bid: Price, ask: Price) -> Price {
    Price::from_raw(((i128::from(bid.raw()) + i128::from(ask.raw())) >> 1) as i64)
}

/// The times of the last orders, as many as the window admits: one more is admitted when the oldest has left
/// the window. Exact, unlike a bucket that refills at a rate, and never more than the limit in any window.
#[derive(Clone, Debug)]
pub(crate) struct Window {
    times: Vec<Option<Nanos>>,
    oldest: usize,
    window_ns: u64,
}

impl Window {
    pub(crate) fn new(limit: u32, window_ns: u64) -> Window {
        Window {
            times: vec![None; limit as usize],
            oldest: 0,
            window_ns,
        }
    }

    #[inline(always)]
    pub(crate) fn take(&mut self, now: Nanos) -> bool {
        let Some(oldest) = self.times.get_mut(self.oldest) else {
            return false;
        };
        if oldest.is_some_and(|then| now.since(then) < self.window_ns) {
            return false;
        }
        *oldest = Some(now);
        self.oldest = if self.oldest + 1 == self.times.len() {
            0
        } else {
            self.oldest + 1
        };
        true
    }

    /// Fetches the place that the next one takes.
    pub(crate) fn fetch_next(&self) {
        prefetch::fetch(&self.times, self.oldest);
    }

    /// The place that the next one takes, and what stands there.
    fn next(&self) -> (usize, Option<Nanos>) {
        (self.oldest, self.times.get(self.oldest).copied().flatten())
    }

    /// Takes the last one back: what [`Window::next`] said before it.
    fn set_next(&mut self, (place, time): (usize, Option<Nanos>)) {
        self.oldest = place;
        if let Some(at) = self.times.get_mut(place) {
            *at = time;
        }
    }

    /// Whether so many more, from 1 on, are admitted now.
    #[inline]
    pub(crate) fn has_room(&self, now: Nanos, count: u32) -> bool {
        let (count, len) = (count as usize, self.times.len());
        // The oldest that would have to go for the last of them.
        let last = self.oldest + count.saturating_sub(1);
        count <= len && {
            let time = self.times[if last >= len { last - len } else { last }];
            time.is_none_or(|then| now.since(then) >= self.window_ns)
        }
    }

    /// Forgets all of them.
    pub(crate) fn clear(&mut self) {
        self.times.fill(None);
    }

    /// Counts one that has gone, whether it was admitted or not.
    #[inline]
    pub(crate) fn charge(&mut self, now: Nanos) {
        if self.take(now) {
            return;
        }
        if let Some(oldest) = self.times.get_mut(self.oldest) {
            *oldest = Some(now);
            self.oldest = (self.oldest + 1) % self.times.len();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use tickwire_market::{Cause, Volume};

    const ID: InstrumentId = InstrumentId(1);

    fn buy(price_4dp: u32, qty: u32) -> NewOrder {
        NewOrder {
            instrument: ID,
            side: Side::Bid,
            price: Price::from_4dp(price_4dp),
            qty: Qty(qty),
            cause: Cause::default(),
        }
    }

    /// Limits of 100 a piece, 1 % around a reference of 100.00, two orders a second, two open, 150 held.
    fn risk() -> Risk {
        let config = RiskConfig {
            max_order_qty: Qty(100),
            price_band_bp: 100,
            max_orders_per_window: 2,
            window_ns: Nanos::SECOND,
            max_open_orders: 2,
            max_position: 150,
            controls: ControlsConfig::NONE,
            accounts: Accounts::default(),
        };
        let mut risk = Risk::new(config, 2);
        risk.set_reference(ID, Price::from_4dp(100_0000));
        risk
    }

    fn held(qty: i64) -> Position {
        Position {
            qty,
            ..Position::default()
        }
    }

    #[test]
    fn an_order_within_every_limit_goes_out() {
        assert_eq!(
            risk().check(Nanos(0), &buy(100_0000, 100), (1, false), &held(50)),
            Ok(())
        );
    }

    #[test]
    fn each_limit_stops_under_its_own_name() {
        let cases = [
            (buy(100_0000, 0), 0, 0, RiskReject::OrderSize),
            (buy(100_0000, 101), 0, 0, RiskReject::OrderSize),
            (
                NewOrder {
                    instrument: InstrumentId(0),
                    ..buy(100_0000, 1)
                },
                0,
                0,
                RiskReject::NoReference,
            ),
            (
                NewOrder {
                    instrument: InstrumentId(2),
                    ..buy(100_0000, 1)
                },
                0,
                0,
                RiskReject::NoReference,
            ),
            (buy(101_0001, 1), 0, 0, RiskReject::PriceBand),
            (buy(98_9999, 1), 0, 0, RiskReject::PriceBand),
            (buy(100_0000, 1), 2, 0, RiskReject::OpenOrders),
            (buy(100_0000, 100), 0, 51, RiskReject::Position),
        ];
        for (order, open, qty, reason) in cases {
            assert_eq!(
                risk().check(Nanos(0), &order, (open, false), &held(qty)),
                Err(reason),
                "{order:?}"
            );
        }
    }

    #[test]
    fn the_band_includes_its_ends() {
        for price in [99_0000, 101_0000] {
            assert_eq!(
                risk().check(Nanos(0), &buy(price, 1), (0, false), &held(0)),
                Ok(())
            );
        }
    }

    #[test]
    fn extreme_prices_do_not_overflow() {
        use crate::controls::within_band;
        assert!(within_band(Price::MIN, Price::MAX, 20_001));
        assert!(within_band(Price::MAX, Price::MAX, 0));
        assert!(!within_band(Price::MIN, Price::MAX, 19_999));
        assert!(!within_band(Price::from_raw(1), Price::ZERO, u32::MAX));
    }

    #[test]
    fn open_orders_count_as_if_traded() {
        let position = Position {
            working: [Volume(60), Volume(0)],
            ..held(50)
        };
        assert_eq!(
            risk().check(Nanos(0), &buy(100_0000, 41), (0, false), &position),
            Err(RiskReject::Position)
        );
        assert_eq!(
            risk().check(Nanos(0), &buy(100_0000, 40), (0, false), &position),
            Ok(())
        );
    }

    #[test]
    fn no_window_holds_more_orders_than_allowed() {
        let mut risk = risk();
        let mut at = |ms: u64| risk.check(Nanos(ms * Nanos::MILLI), &buy(100_0000, 1), (0, false), &held(0));
        assert_eq!([at(0), at(900)], [Ok(()); 2]);
        assert_eq!(at(999), Err(RiskReject::OrderRate));
        assert_eq!(at(1000), Ok(()), "the first is a second old");
        assert_eq!(
            at(1001),
            Err(RiskReject::OrderRate),
            "900 and 1000 are in the window"
        );
        assert_eq!(at(1900), Ok(()));
    }

    #[test]
    fn a_stopped_order_does_not_use_up_the_rate() {
        let mut risk = risk();
        for _ in 0..10 {
            assert_eq!(
                risk.check(Nanos(0), &buy(1, 1), (0, false), &held(0)),
                Err(RiskReject::PriceBand)
            );
        }
        assert_eq!(
            risk.check(Nanos(0), &buy(100_0000, 1), (0, false), &held(0)),
            Ok(())
        );
    }

    #[test]
    fn the_kill_switch_and_a_lost_session_stop_everything_until_lifted() {
        let mut risk = risk();
        risk.kill();
        risk.set_session(false);
        assert_eq!(
            risk.check(Nanos(0), &buy(100_0000, 1), (0, false), &held(0)),
            Err(RiskReject::KillSwitch)
        );
        risk.revive();
        assert_eq!(
            risk.check(Nanos(0), &buy(100_0000, 1), (0, false), &held(0)),
            Err(RiskReject::NoSession)
        );
        risk.set_session(true);
        risk.set_silent(true);
        assert_eq!(
            risk.check(Nanos(0), &buy(100_0000, 1), (0, false), &held(0)),
            Err(RiskReject::Silence)
        );
        let (quote, none) = ((Price::from_4dp(99_0000), Qty(1)), (Price::ZERO, Qty(0)));
        let sides = |bid| risk.clone().check_quote(Nanos(0), ID, &[bid, none], &held(0));
        assert_eq!(sides(quote), Err(RiskReject::Silence));
        assert_eq!(sides(none), Ok(()), "what takes away may go out");
        risk.set_silent(false);
        assert_eq!(
            risk.check(Nanos(0), &buy(100_0000, 1), (0, false), &held(0)),
            Ok(())
        );
    }

    #[test]
    fn only_live_books_with_two_sides_apart_give_a_reference() {
        let mut risk = Risk::new(RiskConfig::default(), 2);
        let quote = |state, bid: u32, ask: u32, ask_qty: u64| BookUpdate {
            instrument: ID,
            state,
            price: [Price::from_4dp(bid), Price::from_4dp(ask)],
            qty: [Volume(1), Volume(ask_qty)],
            ..BookUpdate::default()
        };
        for bad in [
            quote(BookState::Stale, 1, 3, 1),
            quote(BookState::Building, 1, 3, 1),
            quote(BookState::Live, 3, 3, 1),
            quote(BookState::Live, 4, 3, 1),
            quote(BookState::Live, 1, 3, 0),
            BookUpdate {
                instrument: InstrumentId(9),
                ..quote(BookState::Live, 1, 3, 1)
            },
        ] {
            risk.observe(&bad);
            assert_eq!(risk.reference(ID), None, "{bad:?}");
        }
        risk.observe(&quote(BookState::Live, 1, 3, 1));
        assert_eq!(risk.reference(ID), Some(Price::from_4dp(2)));
    }

    proptest! {
        /// What passes at once is what a closer look lets pass, too.
        #[test]
        fn a_quote_that_passes_at_once_is_one_that_nothing_stops(
            mid in -1_000_i64..1_000,
            bid in -1_200_i64..1_200,
            spread in -2_i64..300,
            qty in [0_u32..40, 0_u32..40],
            (held, working) in (-60_i64..60, [0_u64..40, 0_u64..40]),
            (value_max, messages, sent) in (0_u64..30_000, 0_u32..4, 0_u32..4),
            (is_killed, is_silent, has_session) in (any::<bool>(), any::<bool>(), any::<bool>()),
        ) {
            let config = RiskConfig {
                max_order_qty: Qty(30),
                price_band_bp: 2_000,
                max_position: 90,
                controls: ControlsConfig {
                    value_max,
                    instrument_messages: messages,
                    ..ControlsConfig::default()
                },
                ..RiskConfig::default()
            };
            let mut risk = Risk::new(config, 2);
            let price = |ticks: i64| Price::from_raw(ticks * Price::ONE_RAW);
            risk.set_reference(ID, price(mid));
            risk.set_session(has_session);
            risk.set_silent(is_silent);
            let now = Nanos(Nanos::SECOND);
            (0..sent).for_each(|_| risk.quoted(now, ID));
            if is_killed {
                risk.kill();
            }
            let position = Position {
                qty: held,
                working: working.map(Volume),
                ..Position::default()
            };
            let sides = [(price(bid), Qty(qty[0])), (price(bid + spread), Qty(qty[1]))];
            let passes = risk
                .quick_pass(now)
                .is_some_and(|pass| risk.passes(pass, ID, &sides, &position));
            let checked = risk.check_quote(now, ID, &sides, &position);
            prop_assert!(!passes || checked.is_ok(), "{checked:?}");
            // Nor is the closer look the usual way: what it lets pass of plain quotes passes at once.
            let is_plain = qty.iter().all(|qty| *qty > 0) && working == [0; 2] && has_session && !is_silent;
            if is_plain && held == 0 && qty[0] == qty[1] && bid >= 0 && value_max == 0 {
                prop_assert_eq!(passes, checked.is_ok());
            }
        }
    }
}
