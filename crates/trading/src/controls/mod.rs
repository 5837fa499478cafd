//! The gate that every order and every quote passes last, whoever decided on it: trader, quoter and
//! electronic eye have the same one.
//!
//! What is checked against the numbers of one order is checked by [`Controls::check`], which changes nothing
//! that counts; an order that then leaves is told by [`Controls::sent`], what became of it by
//! [`Controls::fill`] and [`Controls::closed`], what the market does by [`Controls::observe`]. A strategy
//! that executed too often, or lost too much, is *stopped*: nothing of it leaves until a person has called
//! [`Controls::resume`]. Regulation (EU) 2017/589 articles 12 to 17 and rule 15c3-5 (17 CFR 240.15c3-5)
//! (c)(1) name these controls; `docs/controls.md` says which is which.
//!
//! Integers only, no clock, no allocation after `new`. An instrument is a *slot*: its number for a trader,
//! its place among the quotes for a quoter.

#[cfg(test)]
mod tests;

use crate::RiskReject;
use crate::risk::Window;
use alloc::boxed::Box;
use alloc::vec;
use tickwire_book::prefetch;
use tickwire_market::{Nanos, Price, Qty, SeqNo, Side};

/// The limits. Where nothing else is said, 0 is no limit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ControlsConfig {
    /// The largest order, or side of a quote. Default no limit: who trades has one of its own.
    pub qty_max: Qty,
    /// The most that an order may be worth, price times quantity times the value of a point, in whole units
    /// of money. Default 1 000 000.
    pub value_max: u64,
    /// How far a price may lie from the last good mid price, in basis points (1/10 000) of that. `None`: it
    /// is not compared. Default `None`: who trades says.
    pub band_bp: Option<u32>,
    /// So far it may lie from it whatever that share comes to. Default 0.
    pub band_min: Price,
    /// Whether an order without a mid price to compare it with is stopped. Default yes, where `band_bp`
    /// compares.
    pub needs_reference: bool,
    /// How far a price may lie from the mid price of `drift_ns` to twice that ago, in basis points. Default 1 000.
    pub drift_bp: u32,
    /// That time, in nanoseconds. Default one minute.
    pub drift_ns: u64,
    /// Messages about one instrument within `messages_ns`: a bucket of so many tokens, filled evenly over
    /// that time. Default 1 000.
    pub instrument_messages: u32,
    /// The time of that, in nanoseconds. Default one second.
    pub messages_ns: u64,
    /// Executions of one strategy within `executions_ns`; one more stops it. Default 1 000.
    pub executions_max: u32,
    /// That time, in nanoseconds. Default one minute.
    pub executions_ns: u64,
    /// Held by one strategy, all instruments together, long and short added. Default no limit.
    pub strategy_position_max: u64,
    /// The same by all of them. Default no limit.
    pub position_max: u64,
    /// Lost by one strategy, at mid prices, in whole units of money; more stops it. Default 250 000.
    pub strategy_loss_max: u64,
    /// The same by all of them; more stops all. Default 500 000.
    pub loss_max: u64,
}

impl ControlsConfig {
    /// Nothing is limited: for benchmarks, and tests of something else.
    pub const NONE: ControlsConfig = ControlsConfig {
        qty_max: Qty(u32::MAX),
        value_max: 0,
        band_bp: None,
        band_min: Price::ZERO,
        needs_reference: false,
        drift_bp: 0,
        drift_ns: 0,
        instrument_messages: 0,
        messages_ns: Nanos::SECOND,
        executions_max: 0,
        executions_ns: 0,
        strategy_position_max: 0,
        position_max: 0,
        strategy_loss_max: 0,
        loss_max: 0,
    };
}

impl Default for ControlsConfig {
    fn default() -> ControlsConfig {
        ControlsConfig {
            value_max: 1_000_000,
            needs_reference: true,
            drift_bp: 1_000,
            drift_ns: 60 * Nanos::SECOND,
            instrument_messages: 1_000,
            executions_max: 1_000,
            executions_ns: 60 * Nanos::SECOND,
            strategy_loss_max: 250_000,
            loss_max: 500_000,
            ..ControlsConfig::NONE
        }
    }
}

/// Whose order it is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum StrategyId {
    /// The trader's rule.
    Rule,
    /// Quotes, as mass quotes or as orders.
    Quotes,
    /// The electronic eye, its hedges included.
    Eye,
}

impl StrategyId {
    /// Every one of them.
    pub const ALL: [StrategyId; 3] = [StrategyId::Rule, StrategyId::Quotes, StrategyId::Eye];
}

/// An order, or a side of a quote, that somebody has decided on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Wanted {
    /// Who.
    pub strategy: StrategyId,
    /// The instrument's place.
    pub slot: usize,
    /// Which way.
    pub side: Side,
    /// At which limit.
    pub price: Price,
    /// How much.
    pub qty: Qty,
    /// The message that caused it: the same order by the same message is one order decided on twice. `None`
    /// where one message may cause several alike: a hedge for each part of a fill.
    pub cause: Option<SeqNo>,
}

/// What is known of one instrument.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slot {
    /// The last good mid price.
    mid: Option<Price>,
    /// Prices that are near enough to `mid` and to the older anchor, the least and the most: judged when one
    /// of these changes, so that a price is compared with nothing else.
    near: [Price; 2],
    /// Those that are near enough to the older anchor.
    undrifted: [Price; 2],
    /// What it was: the older one is compared with, the newer one takes its place. Before there is one, the
    /// price of the last trade, which what is held is valued at.
    anchors: [Price; 2],
    anchored: Nanos,
    /// When the bucket of messages will be full again.
    full_at: Nanos,
    /// In 1e-9 money for a whole unit of the price.
    point: i64,
    /// Largest price times quantity, both as they are stored.
    notional_max: u128,
    /// Bought less sold, by strategy.
    held: [i64; 3],
    /// Orders that rest or may, by side, and the price of the best of them since there was none: never less
    /// careful than the truth.
    open: [u32; 2],
    best: [Price; 2],
    last: Option<Wanted>,
}

/// What a strategy has done.
#[derive(Clone, Debug)]
struct Account {
    executions: Window,
    /// Gain at mid prices, in 1e-18 money.
    gain: i128,
    held: u64,
    stopped: Option<RiskReject>,
}

/// What most quotes of one message pass by: what is the same for each of them, looked up once.
#[derive(Clone, Copy, Debug)]
pub(crate) struct QuickPass {
    qty_max: u32,
    /// When an instrument's bucket of messages is to be full again at the latest.
    full_at_max: u64,
}

/// The controls and what they remember. See the module's description.
#[derive(Clone, Debug)]
pub struct Controls {
    config: ControlsConfig,
    slots: Box<[Slot]>,
    accounts: [Account; 3],
    gain: i128,
    held: u64,
    /// The same of strategies whose controls are others.
    others_gain: i128,
    others_held: u64,
    /// What less is lost too much, in 1e-18 money: of one strategy, and of all.
    least_gain: [i128; 2],
    is_killed: bool,
    /// Between two tokens, and the time that a bucket holds.
    token_ns: u64,
    bucket_ns: u64,
}

/// Bytes of the code of [`Controls::observe`] on x86-64.
const OBSERVING_CODE: usize = 2_112;
/// 1e-18 money in a unit of it.
const MONEY: i128 = 1_000_000_000_000_000_000;
/// Every price lies between these, and none.
const ANY_PRICE: [Price; 2] = [Price::from_raw(i64::MIN), Price::from_raw(i64::MAX)];
const NO_PRICE: [Price; 2] = [Price::from_raw(i64::MAX), Price::from_raw(i64::MIN)];

impl Controls {
    /// For slots `0..slots`; a point of each is worth one unit of money until [`Controls::set_point`].
    pub fn new(config: ControlsConfig, slots: u32) -> Controls {
        let token_ns = config.messages_ns / u64::from(config.instrument_messages.max(1));
        let slot = Slot {
            mid: None,
            near: match config.needs_reference {
                true => NO_PRICE,
                false => ANY_PRICE,
            },
            undrifted: ANY_PRICE,
            anchors: [Price::ZERO; 2],
            anchored: Nanos::ZERO,
            full_at: Nanos::ZERO,
            point: Price::ONE_RAW,
            notional_max: notional_max(config.value_max, Price::ONE_RAW),
            held: [0; 3],
            open: [0; 2],
            best: [Price::ZERO; 2],
            last: None,
        };
        let account = Account {
            executions: Window::new(config.executions_max, config.executions_ns),
            gain: 0,
            held: 0,
            stopped: None,
        };
        Controls {
            config,
            slots: vec![slot; slots as usize].into_boxed_slice(),
            accounts: [account.clone(), account.clone(), account],
            gain: 0,
            held: 0,
            others_gain: 0,
            others_held: 0,
            least_gain: [config.strategy_loss_max, config.loss_max].map(|most| match most {
                0 => i128::MIN,
                most => -(i128::from(most) * MONEY),
            }),
            is_killed: false,
            token_ns,
            bucket_ns: token_ns * u64::from(config.instrument_messages.max(1)),
        }
    }

    /// What a point of an instrument's price is worth, in 1e-9 money ([`tickwire_market::PointValue`]).
    pub fn set_point(&mut self, slot: usize, raw: i64) {
        let value_max = self.config.value_max;
        if let Some(slot) = self.slots.get_mut(slot) {
            slot.point = raw.max(1);
            slot.notional_max = notional_max(value_max, slot.point);
        }
    }

    /// Whether an order may leave. It must be told with [`Controls::sent`] if it does.
    ///
    /// # Errors
    /// The first control that stops it.
    #[inline]
    pub fn check(&mut self, now: Nanos, wanted: &Wanted) -> Result<(), RiskReject> {
        self.judge::<false>(now, wanted, wanted.price)
    }

    /// The same of what is not compared with what rests of ours here, see [`crate::Order::is_met`]: of a stop
    /// order that waits for a trade at `near`, with the worst price that it may reach as `wanted.price`, and
    /// of a side of a quote, with its price as both. `near` is compared with the mid price, the worst price
    /// with `near`, and the money is the larger of both.
    ///
    /// # Errors
    /// The first control that stops it.
    pub fn check_apart(&mut self, now: Nanos, wanted: &Wanted, near: Price) -> Result<(), RiskReject> {
        if let Some(bp) = self.config.band_bp
            && !within_band(wanted.price, near, bp)
            && distance(wanted.price, near) > self.config.band_min.raw().unsigned_abs()
        {
            return Err(match self.is_killed {
                true => RiskReject::KillSwitch,
                false => RiskReject::PriceBand,
            });
        }
        self.judge::<true>(now, wanted, near)
    }

    /// Both sides of a quote of a strategy, each as [`Controls::check_apart`] has one; a side without
    /// quantity is not looked at.
    ///
    /// # Errors
    /// The first control that stops one of them.
    #[inline(always)]
    pub(crate) fn check_sides(
        &mut self,
        now: Nanos,
        strategy: StrategyId,
        slot: usize,
        sides: &[(Price, Qty); 2],
    ) -> Result<(), RiskReject> {
        if sides.iter().all(|(_, qty)| qty.is_zero()) {
            return Ok(());
        }
        if self.is_killed {
            return Err(RiskReject::KillSwitch);
        }
        let Some(slot) = self.slots.get(slot) else {
            return Err(RiskReject::NoReference);
        };
        let account = &self.accounts[strategy as usize];
        for (side, (price, qty)) in Side::BOTH.into_iter().zip(sides) {
            if qty.is_zero() {
                continue;
            }
            if *qty > self.config.qty_max {
                return Err(RiskReject::OrderSize);
            }
            self.check_price(slot, *price)?;
            let notional = u128::from(price.raw().unsigned_abs()) * u128::from(qty.0);
            if notional > slot.notional_max {
                return Err(RiskReject::OrderValue);
            }
            if self.holds_too_much(account, slot, side, *qty) {
                return Err(RiskReject::TotalPosition);
            }
        }
        if let Some(reason) = account.stopped {
            return Err(reason);
        }
        match self.has_token(now, slot) {
            true => Ok(()),
            false => Err(RiskReject::InstrumentRate),
        }
    }

    /// What quotes of a message of this strategy pass by, most of them; `None` while something stops all of
    /// them, or is to be looked at closer.
    #[inline]
    pub(crate) fn quick_pass(&self, now: Nanos, strategy: StrategyId) -> Option<QuickPass> {
        let config = &self.config;
        let is_stopped = self.is_killed || self.accounts[strategy as usize].stopped.is_some();
        if is_stopped || config.strategy_position_max | config.position_max > 0 {
            return None;
        }
        let full_at_max = match config.instrument_messages {
            0 => u64::MAX,
            _ => now.0.checked_add(self.bucket_ns)?.checked_sub(self.token_ns)?,
        };
        Some(QuickPass {
            qty_max: config.qty_max.0,
            full_at_max,
        })
    }

    /// Whether both sides of a quote pass every control at once. `false` says nothing:
    /// [`Controls::check_sides`] does.
    #[inline(always)]
    pub(crate) fn passes(&self, pass: QuickPass, slot: usize, sides: &[(Price, Qty); 2]) -> bool {
        let [(bid, bid_qty), (ask, ask_qty)] = *sides;
        let Some(slot) = self.slots.get(slot) else {
            return false;
        };
        let most = bid_qty.0.max(ask_qty.0);
        let worth = bid.raw().unsigned_abs().max(ask.raw().unsigned_abs());
        let worth = worth.checked_mul(most.into());
        // Of two prices in order, the lower one is near enough if it is not too low.
        bid < ask
            && !bid_qty.is_zero()
            && !ask_qty.is_zero()
            && most <= pass.qty_max
            && slot.near[0] <= bid
            && ask <= slot.near[1]
            && worth.is_some_and(|worth| u128::from(worth) <= slot.notional_max)
            && slot.full_at.0 <= pass.full_at_max
    }

    /// Whether a price is near enough to the last good mid price, and to that of a while ago.
    #[inline(always)]
    fn check_price(&self, slot: &Slot, price: Price) -> Result<(), RiskReject> {
        match slot.near[0] <= price && price <= slot.near[1] {
            true => Ok(()),
            false => Err(self.too_far(slot, price)),
        }
    }

    /// From which of both a price is too far.
    #[cold]
    fn too_far(&self, slot: &Slot, price: Price) -> RiskReject {
        let judged = self.judge_price(slot, price);
        debug_assert!(judged.is_err(), "{price} is none of {:?}", slot.near);
        judged.err().unwrap_or(RiskReject::PriceBand)
    }

    /// The same as [`Controls::check_price`], from the mid prices themselves.
    fn judge_price(&self, slot: &Slot, price: Price) -> Result<(), RiskReject> {
        let config = &self.config;
        let Some(mid) = slot.mid else {
            return match config.needs_reference {
                true => Err(RiskReject::NoReference),
                false => Ok(()),
            };
        };
        let least = config.band_min.raw().unsigned_abs();
        if let Some(bp) = config.band_bp
            && !within_band(price, mid, bp)
            && distance(price, mid) > least
        {
            return Err(RiskReject::PriceBand);
        }
        if config.drift_bp > 0
            && !within_band(price, slot.anchors[0], config.drift_bp)
            && distance(price, slot.anchors[0]) > least
        {
            return Err(RiskReject::PriceDrift);
        }
        Ok(())
    }

    /// Whether an order that does not reduce what is held would make it more than may be.
    #[inline(always)]
    fn holds_too_much(&self, account: &Account, slot: &Slot, side: Side, qty: Qty) -> bool {
        let config = &self.config;
        if config.strategy_position_max | config.position_max == 0 {
            return false;
        }
        let is_over = |held: u64, most: u64| most > 0 && held.saturating_add(qty.0.into()) > most;
        let reduces = slot.held.iter().sum::<i64>().signum() == -sign(side);
        !reduces
            && (is_over(account.held, config.strategy_position_max)
                || is_over(self.held.saturating_add(self.others_held), config.position_max))
    }

    /// `near` is the price that is compared with the mid price.
    #[inline(always)]
    fn judge<const IS_APART: bool>(
        &mut self,
        now: Nanos,
        wanted: &Wanted,
        near: Price,
    ) -> Result<(), RiskReject> {
        if self.is_killed {
            return Err(RiskReject::KillSwitch);
        }
        let config = &self.config;
        if wanted.qty.is_zero() || wanted.qty > config.qty_max {
            return Err(RiskReject::OrderSize);
        }
        let Some(slot) = self.slots.get(wanted.slot) else {
            return Err(RiskReject::NoReference);
        };
        self.check_price(slot, near)?;
        let amount = wanted.price.raw().unsigned_abs();
        let amount = if IS_APART {
            amount.max(near.raw().unsigned_abs())
        } else {
            amount
        };
        let notional = u128::from(amount) * u128::from(wanted.qty.0);
        if notional > slot.notional_max {
            return Err(RiskReject::OrderValue);
        }
        let other = !wanted.side as usize;
        if !IS_APART && slot.open[other] > 0 && crosses(wanted.side, wanted.price, slot.best[other]) {
            return Err(RiskReject::SelfTrade);
        }
        if wanted.cause.is_some_and(|seq| seq.0 > 0) && slot.last.as_ref() == Some(wanted) {
            return Err(RiskReject::Duplicate);
        }
        let account = &self.accounts[wanted.strategy as usize];
        if let Some(reason) = account.stopped {
            return Err(reason);
        }
        if self.holds_too_much(account, slot, wanted.side, wanted.qty) {
            return Err(RiskReject::TotalPosition);
        }
        if !self.has_token(now, slot) {
            return Err(RiskReject::InstrumentRate);
        }
        Ok(())
    }

    /// Whether a two-sided quote may leave, a side without quantity not looked at: prices in the money's own
    /// units. One that takes both sides away always may.
    ///
    /// # Errors
    /// The first control that stops it.
    #[inline]
    pub fn check_quote(
        &mut self,
        now: Nanos,
        slot: usize,
        sides: [(Price, Qty); 2],
    ) -> Result<(), RiskReject> {
        let [(bid, bid_qty), (ask, ask_qty)] = sides;
        if bid_qty.is_zero() && ask_qty.is_zero() {
            return Ok(());
        }
        if !bid_qty.is_zero() && !ask_qty.is_zero() && bid >= ask {
            // It would trade with itself.
            return Err(RiskReject::SelfTrade);
        }
        self.check_sides(now, StrategyId::Quotes, slot, &sides)
    }

    /// An order left that [`Controls::check`] let pass. `rests`: it may stay in the book, so that until
    /// [`Controls::closed`] none of ours may meet it.
    #[inline(always)]
    pub fn sent(&mut self, now: Nanos, wanted: &Wanted, rests: bool) {
        self.charge(now, wanted.slot);
        let Some(slot) = self.slots.get_mut(wanted.slot) else {
            return;
        };
        slot.last = Some(*wanted);
        if rests {
            let (open, best) = (
                &mut slot.open[wanted.side as usize],
                &mut slot.best[wanted.side as usize],
            );
            if *open == 0 || crosses(!wanted.side, *best, wanted.price) {
                *best = wanted.price;
            }
            *open += 1;
        }
    }

    /// What is known of an instrument.
    pub(crate) fn slot(&self, slot: usize) -> Option<Slot> {
        self.slots.get(slot).copied()
    }

    /// Makes what is known of an instrument what it was before.
    pub(crate) fn set_slot(&mut self, slot: usize, before: Option<Slot>) {
        if let (Some(slot), Some(before)) = (self.slots.get_mut(slot), before) {
            *slot = before;
        }
    }

    /// A message about an instrument left.
    #[inline(always)]
    pub fn charge(&mut self, now: Nanos, slot: usize) {
        if let Some(slot) = self.slots.get_mut(slot) {
            slot.full_at = Nanos(slot.full_at.0.max(now.0).saturating_add(self.token_ns));
        }
    }

    /// What rests of ours on a side of an instrument now: how many orders, and the best price of them. For
    /// who knows all of them, where [`Controls::closed`] only counts down.
    pub fn resting(&mut self, slot: usize, side: Side, (orders, best): (u32, Price)) {
        if let Some(slot) = self.slots.get_mut(slot) {
            (slot.open[side as usize], slot.best[side as usize]) = (orders, best);
        }
    }

    /// An order that was told to rest is over.
    pub fn closed(&mut self, slot: usize, side: Side) {
        if let Some(slot) = self.slots.get_mut(slot) {
            slot.open[side as usize] = slot.open[side as usize].saturating_sub(1);
        }
    }

    /// A strategy traded. `false`: it executed more often than it may, and is stopped.
    pub fn fill(
        &mut self,
        now: Nanos,
        strategy: StrategyId,
        slot: usize,
        (side, qty, price): (Side, Qty, Price),
    ) -> bool {
        self.book(strategy, slot, (side, qty, price));
        let account = &mut self.accounts[strategy as usize];
        if self.config.executions_max > 0 && !account.executions.take(now) {
            account.stopped.get_or_insert(RiskReject::Executions);
        }
        self.review();
        self.accounts[strategy as usize].stopped.is_none()
    }

    /// A trade does not count after all: `side` is what it was.
    pub fn unfill(&mut self, strategy: StrategyId, slot: usize, (side, qty, price): (Side, Qty, Price)) {
        self.hold(strategy, slot, (!side, qty, price));
    }

    /// What a strategy has traded before, or holds no more: without counting as an execution.
    pub fn hold(&mut self, strategy: StrategyId, slot: usize, traded: (Side, Qty, Price)) {
        self.book(strategy, slot, traded);
        // What was traded one by one before is judged together, with the first mid price.
        if self.mid(slot).is_some() {
            self.review();
        }
    }

    fn book(&mut self, strategy: StrategyId, at: usize, (side, qty, price): (Side, Qty, Price)) {
        let Some(slot) = self.slots.get_mut(at) else {
            return;
        };
        if slot.mid.is_none() {
            // Nobody has seen a market: what is held is worth what the last trade says.
            let last = core::mem::replace(&mut slot.anchors[0], price);
            for (account, held) in self.accounts.iter_mut().zip(slot.held) {
                let gain = worth(price, last, held, slot.point);
                account.gain = account.gain.saturating_add(gain);
                self.gain = self.gain.saturating_add(gain);
            }
        }
        let signed = sign(side) * i64::from(qty.0);
        let held = &mut slot.held[strategy as usize];
        let before = held.unsigned_abs();
        *held = held.saturating_add(signed);
        let after = held.unsigned_abs();
        let account = &mut self.accounts[strategy as usize];
        account.held = (account.held + after).saturating_sub(before);
        self.held = (self.held + after).saturating_sub(before);
        let mark = slot.mid.unwrap_or(price);
        let gain = worth(mark, price, signed, slot.point);
        account.gain = account.gain.saturating_add(gain);
        self.gain = self.gain.saturating_add(gain);
    }

    /// Fetches what [`Controls::observe`] needs, code and data.
    pub(crate) fn fetch(&self, at: usize) {
        prefetch::fetch_code(Self::observe as *const (), OBSERVING_CODE);
        prefetch::fetch_value(self);
        if let Some(slot) = self.slots.get(at) {
            prefetch::fetch_value(slot);
        }
    }

    /// A good mid price of an instrument: of a live book with two sides that do not touch.
    // One copy of the code, which rehearsals fetch.
    #[inline(never)]
    pub fn observe(&mut self, now: Nanos, at: usize, mid: Price) {
        let Some(slot) = self.slots.get_mut(at) else {
            return;
        };
        let config = &self.config;
        let before = slot.mid.replace(mid);
        let (is_first, last) = (before.is_none(), slot.anchors[0]);
        if before.is_none() || now.since(slot.anchored) >= config.drift_ns {
            let older = if before.is_none() { mid } else { slot.anchors[1] };
            slot.anchors = [older, mid];
            slot.anchored = now;
            slot.undrifted = match config.drift_bp {
                0 => ANY_PRICE,
                bp => around(older, bp, config.band_min),
            };
        } else if before == Some(mid) {
            return;
        }
        let [least, most] = match config.band_bp {
            None => ANY_PRICE,
            Some(bp) => around(mid, bp, config.band_min),
        };
        slot.near = [least.max(slot.undrifted[0]), most.min(slot.undrifted[1])];
        let before = before.unwrap_or(last);
        if !is_first && (before == mid || slot.held == [0; 3]) {
            return;
        }
        for (account, held) in self.accounts.iter_mut().zip(slot.held) {
            if held != 0 {
                let gain = worth(mid, before, held, slot.point);
                account.gain = account.gain.saturating_add(gain);
                self.gain = self.gain.saturating_add(gain);
            }
        }
        self.review();
    }

    /// Stops what has lost more than it may.
    #[inline]
    fn review(&mut self) {
        let [least, least_of_all] = self.least_gain;
        let all = self.gain.saturating_add(self.others_gain) < least_of_all;
        let [rule, quotes, eye] = &self.accounts;
        if all | (rule.gain < least) | (quotes.gain < least) | (eye.gain < least) {
            self.stop_losers(all);
        }
    }

    #[cold]
    fn stop_losers(&mut self, all: bool) {
        for account in &mut self.accounts {
            if all || account.gain < self.least_gain[0] {
                account.stopped.get_or_insert(RiskReject::Loss);
            }
        }
    }

    /// Why nothing of a strategy leaves until [`Controls::resume`].
    #[inline]
    pub fn stopped(&self, strategy: StrategyId) -> Option<RiskReject> {
        self.accounts[strategy as usize].stopped
    }

    /// A person lets everything go on: the kill switch is lifted, executions are counted anew. What has lost
    /// too much is stopped again by the next change of its value.
    pub fn resume(&mut self) {
        self.is_killed = false;
        for account in &mut self.accounts {
            account.stopped = None;
            account.executions.clear();
        }
    }

    /// Stops everything, until [`Controls::resume`].
    pub fn kill(&mut self) {
        self.is_killed = true;
    }

    /// Whether the kill switch is on.
    #[inline]
    pub fn is_killed(&self) -> bool {
        self.is_killed
    }

    /// The last good mid price.
    #[inline]
    pub fn mid(&self, slot: usize) -> Option<Price> {
        self.slots.get(slot)?.mid
    }

    /// What all strategies of these controls hold together, and what they gained at mid prices in 1e-18
    /// money: for [`Controls::set_others`] of others.
    #[inline]
    pub fn totals(&self) -> (u64, i128) {
        (self.held, self.gain)
    }

    /// What strategies of one program hold and gained whose controls are others: they count towards
    /// `position_max` and `loss_max` too.
    #[inline]
    pub fn set_others(&mut self, (held, gain): (u64, i128)) {
        if (self.others_held, self.others_gain) != (held, gain) {
            (self.others_held, self.others_gain) = (held, gain);
            self.review();
        }
    }

    /// What a strategy gained at mid prices, less than 0 is lost, in whole units of money.
    pub fn gain(&self, strategy: StrategyId) -> i64 {
        let gain = self.accounts[strategy as usize].gain / MONEY;
        gain.clamp(i64::MIN.into(), i64::MAX.into()) as i64
    }

    /// Held by a strategy, all instruments together, long and short added.
    pub fn held(&self, strategy: StrategyId) -> u64 {
        self.accounts[strategy as usize].held
    }

    #[inline]
    fn has_token(&self, now: Nanos, slot: &Slot) -> bool {
        // Full when `full_at` has come; a token takes its time longer to come back.
        self.config.instrument_messages == 0
            || slot.full_at.0.saturating_add(self.token_ns) <= now.0.saturating_add(self.bucket_ns)
    }
}

/// Price times quantity, as they are stored, that is worth so much money.
fn notional_max(value_max: u64, point: i64) -> u128 {
    match value_max {
        0 => u128::MAX,
        most => u128::from(most) * MONEY.unsigned_abs() / u128::from(point.unsigned_abs().max(1)),
    }
}

/// So many contracts from one price to another, in 1e-18 money.
#[inline]
fn worth(to: Price, from: Price, qty: i64, point: i64) -> i128 {
    // Of all but absurd prices the change fits 64 bits, and its value 128.
    let change = to.raw().checked_sub(from.raw());
    if let Some(change) = change.and_then(|change| change.checked_mul(qty)) {
        return i128::from(change) * i128::from(point);
    }
    (i128::from(to.raw()) - i128::from(from.raw()))
        .saturating_mul(i128::from(qty))
        .saturating_mul(i128::from(point))
}

fn sign(side: Side) -> i64 {
    match side {
        Side::Bid => 1,
        Side::Ask => -1,
    }
}

/// Whether an order of a side would trade with a price of the other one.
#[inline]
fn crosses(side: Side, price: Price, other: Price) -> bool {
    match side {
        Side::Bid => price >= other,
        Side::Ask => price <= other,
    }
}

#[inline]
fn distance(price: Price, reference: Price) -> u64 {
    price.raw().abs_diff(reference.raw())
}

/// The least and the most price that lie within `band_bp` basis points of a reference's amount around it, or
/// within `least` of it: those that [`within_band`] or [`distance`] let pass, no other.
#[inline]
fn around(reference: Price, band_bp: u32, least: Price) -> [Price; 2] {
    let amount = reference.raw().unsigned_abs();
    let share = match amount.checked_mul(band_bp.into()) {
        Some(product) => product / 10_000,
        None => {
            let share = u128::from(amount) * u128::from(band_bp) / 10_000;
            u64::try_from(share).unwrap_or(u64::MAX)
        }
    };
    let reach = share.max(least.raw().unsigned_abs());
    [
        reference.raw().saturating_sub_unsigned(reach),
        reference.raw().saturating_add_unsigned(reach),
    ]
    .map(Price::from_raw)
}

/// Whether `price` lies within `band_bp` basis points of `reference`'s amount around it. A reference of 0
/// admits 0 only.
#[inline]
pub(crate) fn within_band(price: Price, reference: Price, band_bp: u32) -> bool {
    u128::from(distance(price, reference)) * 10_000
        <= u128::from(band_bp) * u128::from(reference.raw().unsigned_abs())
}
