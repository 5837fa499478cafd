//! The electronic eye: trades with quotes of others that are better than they should be.
//!
//! It buys what is offered at or below theoretical value less an edge, and sells to bids at or above value
//! and edge. Nothing is priced here: a [`Ladder`] of its own, made by the same code as the quoter's from
//! other terms, has for each half tick of the underlying the highest price at which it buys (where the
//! quoter's has the wanted bid) and the lowest at which it sells. When the underlying moves, a row is
//! compared with the best bids and offers of all options; when an option's book changes, one place of it.
//!
//! **The order** is a limit order, immediate or cancel, at the trigger and not at the price that was seen. An
//! order of that kind shows nothing, and where priority is by price it pays what rests there: as long as the
//! market is as it was seen, both trade the same. When the seen price has gone by the time it arrives and the
//! next one still has the whole edge, only the one at the trigger trades. What a wrong value could cost is
//! bounded by [`EyeConfig::believed_ticks`]: a market that crosses the trigger by more is not taken at all,
//! so that the limit is never further than that from what was seen.
//!
//! Its size is the least of what is shown, the largest order, and what is left of contracts within the
//! window, position and premium. An option has at most one order under way, and is left alone for a while
//! after it. A quote of our own is never traded with: see [`OwnQuotes`].
//!
//! **It turns itself off** when the operator's client was not heard for [`EyeConfig::armed_ns`], when an
//! answer is late, and when one fits nothing. Nothing leaves while it is off, hedges included:
//! [`Eye::unhedged_milli`] says what they would have been.

mod config;
mod taken;
#[cfg(test)]
mod tests;

use crate::exposure::Exposure;
use crate::quoter::ladder::BLOCK;
use crate::quoter::{half_tick, places, table};
use crate::risk::Window;
use crate::{
    Change, Ladder, NO_ASK, NO_BID, NewOrder, OrderReport, Orders, Quoter, ReportError, ReportKind, Row,
};
use alloc::boxed::Box;
use alloc::vec;
pub use config::{EyeConfig, HedgeConfig};
use taken::Taken;
use tickwire_market::{
    BookState, BookUpdate, Cause, ClientOrderId, Counter, Counters, InstrumentId, Nanos, OrderIntent,
    OrderType, Price, Qty, Side, TimeInForce,
};

/// Whether it trades.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EyeState {
    /// It does, until then if the operator's client is not heard.
    Armed(Nanos),
    /// It does not.
    Off(EyeOff),
}

/// Why it does not trade.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum EyeOff {
    /// It was not armed yet, or an operator turned it off.
    Disarmed,
    /// The operator's client was not heard.
    Heartbeat,
    /// An answer did not come in time.
    LateAnswer,
    /// A fill fits no order: we do not know our position.
    Unmatched,
    /// By the kill switch, or because quoting was pulled for a reason that stays, until [`Eye::revive`].
    Killed,
}

/// Our own quotes, which an order must not trade with.
pub trait OwnQuotes {
    /// Bid and ask of ours that are live in an option, in ticks ([`NO_BID`], [`NO_ASK`] for none); `None`
    /// while a change of them is under way, when either could be anything.
    fn quoted(&self, option: u16) -> Option<(u16, u16)>;

    /// Contracts on both sides of all quotes, live or under way: they count towards the limits on the
    /// position as if they had traded.
    fn open_all(&self) -> [u64; 2] {
        [0; 2]
    }

    /// Whether an order in an option may leave now, beside so many others that were sent and are not counted
    /// there yet, itself included: not while quoting is pulled, for whatever reason, and not above the
    /// session's rate of messages.
    fn admits(&self, now: Nanos, uncounted: u32) -> bool {
        let _ = (now, uncounted);
        true
    }

    /// How much more may trade on a side by the quoter's own limits, the eye's orders under way not counted.
    fn room(&self, side: Side) -> Exposure {
        let _ = side;
        Exposure {
            contracts: u64::MAX,
            premium: u64::MAX,
        }
    }
}

impl OwnQuotes for Quoter {
    #[inline]
    fn quoted(&self, option: u16) -> Option<(u16, u16)> {
        (!self.is_in_flight(option)).then(|| self.live(option))
    }

    #[inline]
    fn open_all(&self) -> [u64; 2] {
        Quoter::open_all(self)
    }

    #[inline]
    fn admits(&self, now: Nanos, uncounted: u32) -> bool {
        self.admits_beside(now, uncounted)
    }

    #[inline]
    fn room(&self, side: Side) -> Exposure {
        self.room_beside(side)
    }
}

/// For an eye without a quoter beside it.
#[derive(Clone, Copy, Debug)]
pub struct NoQuotes;

impl OwnQuotes for NoQuotes {
    #[inline]
    fn quoted(&self, _: u16) -> Option<(u16, u16)> {
        Some((NO_BID, NO_ASK))
    }
}

/// Where orders leave.
pub trait OrderSink {
    /// Sends an order in the option of this place, or a hedge in the underlying (`None`). `false`: there was
    /// no room for it, it was not sent.
    fn order(&mut self, option: Option<u16>, order: &OrderIntent) -> bool;
}

/// The last look at the underlying.
#[derive(Clone, Copy, Debug)]
struct Look {
    half_tick: i64,
    best: [Price; 2],
    cause: Cause,
}

/// What an order was sent for, by its place in the table of orders.
#[derive(Clone, Copy, Debug)]
struct Tag {
    /// `None` is a hedge.
    option: Option<u16>,
    limit_ticks: u16,
    /// Its number within the window of contracts.
    taken: u64,
    sent: Nanos,
}

/// Takes quotes of others in the options of one underlying. One thread owns it; nothing allocates after
/// `new`.
#[derive(Clone, Debug)]
pub struct Eye {
    config: EyeConfig,
    market: Market,
    options: Options,
    sent: Sent,
    taken: Taken,
    rate: Window,
    hedge_rate: Window,
    /// Bought less sold.
    net: i64,
    /// Thousandths of a contract of the underlying still to be bought, hedges under way included as done.
    carry_milli: i64,
    look: Option<Look>,
    calm_at: Nanos,
    state: EyeState,
    has_session: bool,
    counters: Counters,
}

/// What others quote, and what is wanted beside it.
#[derive(Clone, Debug)]
struct Market {
    ladder: Option<Box<Ladder>>,
    ladder_at: Nanos,
    /// Best bids and offers by place, whole blocks; [`NO_BID`] and [`NO_ASK`] where there is none that could
    /// be traded with.
    bids: Box<[u16]>,
    asks: Box<[u16]>,
    shown: Box<[[u32; 2]]>,
}

/// The options, in the order of the ladder's quotes.
#[derive(Clone, Debug)]
struct Options {
    instruments: Box<[InstrumentId]>,
    /// Those with an order under way, by block.
    busy: Box<[u64]>,
    /// Those not watched.
    idle: Box<[u64]>,
    /// Left alone before then.
    until: Box<[Nanos]>,
    sizes: Box<[u32]>,
    deltas: Box<[i32]>,
    positions: Box<[i64]>,
}

/// Orders under way.
#[derive(Clone, Debug)]
struct Sent {
    orders: Orders,
    tags: Box<[Tag]>,
    /// No order below it is under way, and none from `next` on.
    oldest: u64,
    next: u64,
    /// In options, by side.
    open: [Exposure; 2],
    premium: [u64; 2],
    /// Sent since [`Eye::take_sent`].
    uncounted: u32,
}

impl Eye {
    /// Off, with nothing known. `options` in the order of the ladder's quotes.
    ///
    /// # Panics
    /// With more than 65 535 options.
    pub fn new(config: EyeConfig, options: &[InstrumentId]) -> Eye {
        let count = options.len();
        assert!(count <= usize::from(u16::MAX), "{count} options: 65535 at most");
        let padded = count.next_multiple_of(BLOCK);
        let open_max = config.open_max.max(1).next_power_of_two();
        let tag = Tag {
            option: None,
            limit_ticks: 0,
            taken: 0,
            sent: Nanos::ZERO,
        };
        Eye {
            config,
            market: Market {
                ladder: None,
                ladder_at: Nanos::ZERO,
                bids: vec![NO_BID; padded].into_boxed_slice(),
                asks: vec![NO_ASK; padded].into_boxed_slice(),
                shown: vec![[0; 2]; count].into_boxed_slice(),
            },
            options: Options {
                instruments: options.into(),
                busy: vec![0; padded / BLOCK].into_boxed_slice(),
                idle: vec![0; padded / BLOCK].into_boxed_slice(),
                until: vec![Nanos::ZERO; count].into_boxed_slice(),
                sizes: vec![config.size_max.0; count].into_boxed_slice(),
                deltas: vec![0; count].into_boxed_slice(),
                positions: vec![0; count].into_boxed_slice(),
            },
            sent: Sent {
                orders: Orders::new(open_max),
                tags: vec![tag; open_max as usize].into_boxed_slice(),
                oldest: 1,
                next: 1,
                open: [Exposure::default(); 2],
                premium: [0; 2],
                uncounted: 0,
            },
            taken: Taken::new(config.contracts_max, config.contracts_window_ns),
            rate: Window::new(config.orders_max, config.orders_window_ns),
            hedge_rate: Window::new(
                config.hedge.map_or(0, |hedge| hedge.orders_max),
                config.orders_window_ns,
            ),
            net: 0,
            carry_milli: 0,
            look: None,
            calm_at: Nanos::ZERO,
            state: EyeState::Off(EyeOff::Disarmed),
            has_session: false,
            counters: Counters::default(),
        }
    }

    // ---- what the market does ---------------------------------------------------------------------------------

    /// The underlying's book changed: every option is looked at, then what is left to hedge.
    #[inline]
    pub fn on_underlying(
        &mut self,
        now: Nanos,
        update: &BookUpdate,
        own: &impl OwnQuotes,
        sink: &mut impl OrderSink,
    ) {
        let (tick, spread_max) = (self.config.underlying_tick, self.config.spread_max_ticks);
        let Ok(half_tick) = half_tick(update, tick, spread_max) else {
            self.look = None;
            self.calm_at = now.after(self.config.calm_ns);
            return;
        };
        let look = Look {
            half_tick,
            best: update.price,
            cause: cause_of(update),
        };
        let before = self.look.replace(look);
        let moved = before.map_or(0, |before| before.half_tick.abs_diff(half_tick));
        if moved > self.config.jump_half_ticks.into() {
            self.calm_at = now.after(self.config.calm_ns);
            return;
        }
        self.decide_all(now, own, sink);
        self.hedge(now, &look.cause, sink);
    }

    /// The book of an option changed.
    #[inline]
    pub fn on_option(
        &mut self,
        now: Nanos,
        option: u16,
        update: &BookUpdate,
        own: &impl OwnQuotes,
        sink: &mut impl OrderSink,
    ) {
        let at = usize::from(option);
        if at >= self.market.shown.len() {
            return;
        }
        let (bid, ask) = self.best(update);
        (self.market.bids[at], self.market.asks[at]) = (bid, ask);
        self.market.shown[at] = update.qty.map(|qty| qty.0.min(u64::from(u32::MAX)) as u32);
        if self.masked(at / BLOCK) & 1 << (at % BLOCK) != 0 {
            return;
        }
        let Some(look) = self.look else { return };
        let Some(row) = self
            .market
            .ladder
            .as_ref()
            .and_then(|ladder| ladder.row(look.half_tick))
        else {
            return;
        };
        let (buys, sells) = (row.bids[at], row.asks[at]);
        if (ask <= buys || bid >= sells) && self.may_trade(now) {
            self.cross(now, option, (buys, sells), &cause_of(update), own, sink);
        }
    }

    /// What is known of the underlying may be long past: the thread stood still, or market data was silent.
    /// Nothing leaves until it has been good again for [`EyeConfig::calm_ns`].
    pub fn distrust(&mut self, now: Nanos) {
        self.look = None;
        self.calm_at = self.calm_at.max(now.after(self.config.calm_ns));
    }

    /// Orders sent since this was last asked for, hedges included: they count towards the session's rate of
    /// messages ([`Quoter::on_sent_beside`]).
    #[inline]
    pub fn take_sent(&mut self) -> u32 {
        core::mem::take(&mut self.sent.uncounted)
    }

    /// The options' feed has a gap: nothing is known of an option until its book changes next.
    pub fn forget_books(&mut self) {
        self.market.bids.fill(NO_BID);
        self.market.asks.fill(NO_ASK);
    }

    /// Best bid and ask in ticks; none of a book that is not live, or locked or crossed, or out of range.
    #[inline]
    fn best(&self, update: &BookUpdate) -> (u16, u16) {
        if update.state != BookState::Live {
            return (NO_BID, NO_ASK);
        }
        let tick = self.config.option_tick.raw().max(1);
        let [bid, ask] = update.price.map(Price::raw);
        let [has_bid, has_ask] = update.qty.map(|qty| !qty.is_zero());
        if has_bid && has_ask && bid >= ask {
            return (NO_BID, NO_ASK);
        }
        // What no 16 bits hold is not traded with.
        let highest = tick.saturating_mul(i64::from(NO_ASK - 1));
        let bid = if has_bid && bid > 0 && bid <= highest {
            (bid / tick) as u16
        } else {
            NO_BID
        };
        let ask = if has_ask && ask > 0 && ask <= highest {
            ((ask - 1) / tick + 1) as u16
        } else {
            NO_ASK
        };
        (bid, ask)
    }

    /// A newer ladder: all options are looked at by it. The one before is given back, to be filled again.
    pub fn replace_ladder(
        &mut self,
        now: Nanos,
        ladder: Box<Ladder>,
        own: &impl OwnQuotes,
        sink: &mut impl OrderSink,
    ) -> Option<Box<Ladder>> {
        if ladder.quotes() != self.market.shown.len() {
            // It is not of these options.
            return Some(ladder);
        }
        let before = self.market.ladder.replace(ladder);
        self.market.ladder_at = now;
        self.decide_all(now, own, sink);
        before
    }

    // ---- deciding ---------------------------------------------------------------------------------------------

    #[inline]
    fn decide_all(&mut self, now: Nanos, own: &impl OwnQuotes, sink: &mut impl OrderSink) {
        let Some(look) = self.look else { return };
        if !self.may_trade(now) {
            return;
        }
        // Taken out for as long as a row is borrowed from it.
        let ladder = self.market.ladder.take();
        if let Some(row) = ladder.as_ref().and_then(|ladder| ladder.row(look.half_tick)) {
            for block in 0..self.options.busy.len() {
                for at in places(block, self.crossed(&row, block)) {
                    let triggers = (row.bids[at], row.asks[at]);
                    self.cross(now, at as u16, triggers, &look.cause, own, sink);
                }
            }
        }
        self.market.ladder = ladder;
    }

    /// Which options of a block have a market that crosses a trigger. Without branches, in arrays, so that
    /// the compiler makes vectors of it.
    #[inline]
    fn crossed(&self, row: &Row<'_>, block: usize) -> u64 {
        let at = block * BLOCK..(block + 1) * BLOCK;
        let buys = table::array(&row.bids[at.clone()]);
        let sells = table::array(&row.asks[at.clone()]);
        let bids = table::array(&self.market.bids[at.clone()]);
        let asks = table::array(&self.market.asks[at]);
        let mut found = [0_u8; BLOCK];
        for i in 0..BLOCK {
            found[i] = u8::from(asks[i] <= buys[i]) | u8::from(bids[i] >= sells[i]);
        }
        table::bits(&found) & !self.masked(block)
    }

    /// The options of a block that are not looked at.
    #[inline]
    fn masked(&self, block: usize) -> u64 {
        self.options.busy[block] | self.options.idle[block]
    }

    /// Whether anything may leave now.
    #[inline]
    fn may_send(&mut self, now: Nanos) -> bool {
        match self.state {
            EyeState::Armed(until) if now < until => self.has_session && now >= self.calm_at,
            EyeState::Armed(_) => {
                self.stop(EyeOff::Heartbeat);
                false
            }
            EyeState::Off(_) => false,
        }
    }

    /// Whether options may be traded now.
    #[inline]
    fn may_trade(&mut self, now: Nanos) -> bool {
        let age_max = self.config.ladder_age_max_ns;
        self.may_send(now) && (age_max == 0 || now.since(self.market.ladder_at) <= age_max)
    }

    /// An option's market crosses one of its triggers: sends an order if everything allows it.
    #[inline]
    fn cross(
        &mut self,
        now: Nanos,
        option: u16,
        (buys, sells): (u16, u16),
        cause: &Cause,
        own: &impl OwnQuotes,
        sink: &mut impl OrderSink,
    ) {
        let at = usize::from(option);
        self.counters.bump(Counter::EyeSeen);
        let (side, limit, beyond) = if self.market.asks[at] <= buys {
            (Side::Bid, buys, buys - self.market.asks[at])
        } else {
            (Side::Ask, sells, self.market.bids[at] - sells)
        };
        if now < self.options.until[at] {
            return self.counters.bump(Counter::EyeCooling);
        }
        if beyond > self.config.believed_ticks {
            return self.counters.bump(Counter::EyeUnlikely);
        }
        let market = (self.market.bids[at], self.market.asks[at]);
        if let Some(guard) = &self.config.market
            && !guard.is_near((buys, sells), market)
        {
            return self.counters.bump(Counter::EyeOffMarket);
        }
        let is_own = match (own.quoted(option), side) {
            (None, _) => true,
            (Some((_, ask)), Side::Bid) => ask <= limit,
            (Some((bid, _)), Side::Ask) => bid != NO_BID && bid >= limit,
        };
        if is_own {
            return self.counters.bump(Counter::EyeOwn);
        }
        if !own.admits(now, self.sent.uncounted + 1) {
            return self.counters.bump(Counter::EyeThrottled);
        }
        let qty = self.room(now, at, (side, limit), own);
        if qty == 0 {
            return self.counters.bump(Counter::EyeCapped);
        }
        if self.is_full() || !self.rate.take(now) {
            return self.counters.bump(Counter::EyeThrottled);
        }
        let tag = Tag {
            option: Some(option),
            limit_ticks: limit,
            taken: self.taken.take(now, qty),
            sent: now,
        };
        self.sent.open[side as usize].add(Exposure::of(qty, limit));
        self.sent.premium[side as usize] += u64::from(qty) * u64::from(limit);
        self.options.busy[at / BLOCK] |= 1 << (at % BLOCK);
        let order = NewOrder {
            instrument: self.options.instruments[at],
            side,
            price: Price::from_raw(self.config.option_tick.raw().max(1) * i64::from(limit)),
            qty: Qty(qty),
            cause: *cause,
        };
        self.send(now, tag, &order, sink);
    }

    /// How many contracts every limit leaves: the eye's own, with what is quoted on the same side, and those
    /// of the quoter.
    #[inline]
    fn room(&mut self, now: Nanos, at: usize, (side, limit): (Side, u16), own: &impl OwnQuotes) -> u32 {
        let quoted = own.open_all()[side as usize];
        let shown = self.market.shown[at][!side as usize];
        let most = u64::from(shown.min(self.options.sizes[at]));
        let (held, position_max) = match side {
            Side::Bid => (self.net, self.config.long_max),
            Side::Ask => (-self.net, self.config.short_max),
        };
        let open = u128::from(self.sent.open[side as usize].contracts) + u128::from(quoted);
        let left = i128::from(position_max) - i128::from(held) - open as i128;
        let position = left.clamp(0, i128::from(u32::MAX)) as u64;
        let premium = self.config.premium_max[side as usize].saturating_sub(self.sent.premium[side as usize])
            / u64::from(limit.max(1));
        let window = self.taken.room(now);
        let (theirs, open) = (own.room(side), self.sent.open[side as usize]);
        let by_quoter = (theirs.premium.saturating_sub(open.premium) / u64::from(limit.max(1)))
            .min(theirs.contracts.saturating_sub(open.contracts));
        most.min(position).min(premium).min(window).min(by_quoter) as u32
    }

    fn is_full(&self) -> bool {
        self.sent.orders.open() as usize >= self.sent.tags.len()
    }

    /// Gives an order its number and sends it; one that was not sent ends at once.
    #[inline]
    fn send(&mut self, now: Nanos, tag: Tag, order: &NewOrder, sink: &mut impl OrderSink) {
        let Ok(id) = self.sent.orders.insert(order) else {
            // Asked for before: there is room.
            return debug_assert!(false, "no room for an order");
        };
        self.sent.next = id.0 + 1;
        let place = self.place(id);
        self.sent.tags[place] = tag;
        let NewOrder {
            instrument,
            side,
            price,
            qty,
            cause,
        } = *order;
        let intent = OrderIntent::New {
            id,
            instrument,
            side,
            order_type: OrderType::Limit,
            price,
            stop: None,
            qty,
            time_in_force: TimeInForce::ImmediateOrCancel,
            cause,
        };
        if sink.order(tag.option, &intent) {
            self.sent.uncounted += 1;
            self.counters.bump(Counter::OrdersSent);
        } else {
            self.counters.bump(Counter::EyeThrottled);
            self.end(now, id, ReportKind::Rejected);
        }
    }

    fn place(&self, id: ClientOrderId) -> usize {
        id.0 as usize & (self.sent.tags.len() - 1)
    }

    // ---- what the venue answers -------------------------------------------------------------------------------

    /// Applies what the venue said of an order; a fill is hedged at once. One that fits nothing, other than a
    /// repeated one, turns the eye off, as does a trade that the venue takes back; an option whose order is
    /// rejected is not watched any more.
    ///
    /// # Errors
    /// Why it was not applied.
    pub fn on_report(
        &mut self,
        now: Nanos,
        report: &OrderReport,
        sink: &mut impl OrderSink,
    ) -> Result<Change, ReportError> {
        let change = self.apply(now, report).inspect_err(|error| {
            self.counters.bump(Counter::ReportsUnmatched);
            if report.kind.is_trade() && *error != ReportError::Duplicate {
                self.stop(EyeOff::Unmatched);
            }
        })?;
        match report.kind {
            ReportKind::Accepted => self.counters.bump(Counter::OrdersAcked),
            ReportKind::Filled { .. } => {
                self.counters.bump(Counter::Fills);
                self.hedge(now, &change.order.cause, sink);
            }
            ReportKind::Broken { .. } => {
                self.counters.bump(Counter::TradesBroken);
                self.stop(EyeOff::Killed);
            }
            ReportKind::Cancelled => self.counters.bump(Counter::OrdersCancelled),
            // It sends no stop orders.
            ReportKind::Triggered => {}
            ReportKind::Rejected => {
                self.counters.bump(Counter::OrdersRejected);
                if let Some(option) = self.sent.tags[self.place(report.id)].option {
                    self.set_watched(option, false);
                }
            }
            // It asks for neither.
            ReportKind::CancelRejected | ReportKind::Replaced { .. } | ReportKind::ReplaceRejected { .. } => {
            }
        }
        Ok(change)
    }

    fn apply(&mut self, now: Nanos, report: &OrderReport) -> Result<Change, ReportError> {
        let change = self.sent.orders.apply(report)?;
        let tag = self.sent.tags[self.place(report.id)];
        // An order whose trade is broken is over for long, or goes on.
        let is_over = !change.order.state.is_open() && change.broken.is_zero();
        let side = change.order.side;
        let signed = |qty: Qty| match side {
            Side::Bid => i64::from(qty.0),
            Side::Ask => -i64::from(qty.0),
        };
        let Some(option) = tag.option else {
            // What a hedge did not do, after all, is still to be done.
            let undone = Qty(change.released.0 + change.broken.0);
            self.carry_milli = self.carry_milli.saturating_add(1_000 * signed(undone));
            return Ok(change);
        };
        let at = usize::from(option);
        let gone = Exposure::of(change.filled.0 + change.released.0, tag.limit_ticks);
        let unpaid = Exposure::of(change.released.0 + change.broken.0, tag.limit_ticks);
        // One of both is 0.
        let traded = signed(change.filled) - signed(change.broken);
        self.options.positions[at] += traded;
        self.net += traded;
        self.sent.open[side as usize].remove(gone);
        self.sent.premium[side as usize] -= unpaid.premium;
        self.taken.release(tag.taken, change.released.0);
        if self.config.hedge.is_some() {
            let delta = traded.saturating_mul(self.options.deltas[at].into());
            self.carry_milli = self.carry_milli.saturating_sub(delta);
        }
        if is_over {
            self.options.busy[at / BLOCK] &= !(1 << (at % BLOCK));
            self.options.until[at] = now.after(self.config.cool_down_ns);
        }
        Ok(change)
    }

    /// Ends an order that the venue says nothing of.
    fn end(&mut self, now: Nanos, id: ClientOrderId, kind: ReportKind) {
        let report = OrderReport {
            id,
            venue_id: None,
            kind,
        };
        let ended = self.apply(now, &report);
        debug_assert!(ended.is_ok(), "{id:?} was open");
    }

    /// Trades what is left of delta away, in whole contracts.
    #[inline]
    fn hedge(&mut self, now: Nanos, cause: &Cause, sink: &mut impl OrderSink) {
        let Some(hedge) = self.config.hedge else { return };
        let whole = rounded(self.carry_milli);
        let (Some(look), true) = (self.look, whole != 0) else {
            return;
        };
        if !self.may_send(now) {
            return;
        }
        let qty = whole.unsigned_abs().min(hedge.size_max.0.into()) as u32;
        if qty == 0 || self.is_full() || !self.hedge_rate.take(now) {
            return;
        }
        let through = self.config.underlying_tick.raw() * i64::from(hedge.through_ticks);
        let (side, raw, signed) = if whole > 0 {
            (
                Side::Bid,
                look.best[1].raw().saturating_add(through),
                i64::from(qty),
            )
        } else {
            (
                Side::Ask,
                look.best[0].raw().saturating_sub(through),
                -i64::from(qty),
            )
        };
        self.carry_milli -= 1_000 * signed;
        let tag = Tag {
            option: None,
            limit_ticks: 0,
            taken: 0,
            sent: now,
        };
        let order = NewOrder {
            instrument: self.config.underlying,
            side,
            price: Price::from_raw(raw),
            qty: Qty(qty),
            cause: *cause,
        };
        self.send(now, tag, &order, sink);
    }

    /// The order entry session is logged on.
    pub fn on_logon(&mut self) {
        self.has_session = true;
    }

    /// It is lost: nothing leaves until it is back. Orders under way stay so: what became of them is told
    /// then, or see [`Eye::forget_open`].
    pub fn on_disconnect(&mut self) {
        self.has_session = false;
    }

    /// Somebody has made sure that no order of ours is open at the venue: those that were never answered end
    /// as cancelled.
    pub fn forget_open(&mut self, now: Nanos) {
        loop {
            let open = self.sent.orders.iter_open().next().map(|order| order.id);
            let Some(id) = open else { break };
            self.end(now, id, ReportKind::Cancelled);
        }
    }

    // ---- time, and the operator -------------------------------------------------------------------------------

    /// Turns it on for [`EyeConfig::armed_ns`]. `false` after [`Eye::kill`].
    pub fn arm(&mut self, now: Nanos) -> bool {
        let may = self.state != EyeState::Off(EyeOff::Killed);
        if may {
            self.state = EyeState::Armed(now.after(self.config.armed_ns));
        }
        may
    }

    /// The operator's client is there: an armed eye stays so for as long again. `false` if it is off: it has
    /// to be armed.
    pub fn on_heartbeat(&mut self, now: Nanos) -> bool {
        self.handle_timeout(now);
        matches!(self.state, EyeState::Armed(_)) && self.arm(now)
    }

    /// Turns it off.
    pub fn disarm(&mut self) {
        if matches!(self.state, EyeState::Armed(_)) {
            self.state = EyeState::Off(EyeOff::Disarmed);
        }
    }

    /// The kill switch: nothing leaves until [`Eye::revive`] and [`Eye::arm`]. There is nothing to cancel,
    /// since no order of it rests.
    pub fn kill(&mut self) {
        self.state = EyeState::Off(EyeOff::Killed);
    }

    /// Lifts the kill switch; it is off still.
    pub fn revive(&mut self) {
        if self.state == EyeState::Off(EyeOff::Killed) {
            self.state = EyeState::Off(EyeOff::Disarmed);
        }
    }

    fn stop(&mut self, reason: EyeOff) {
        if matches!(self.state, EyeState::Armed(_)) {
            self.counters.bump(Counter::EyeStops);
            self.state = EyeState::Off(reason);
        }
    }

    /// When [`Eye::handle_timeout`] has something to do.
    pub fn poll_timeout(&mut self) -> Option<Nanos> {
        let EyeState::Armed(until) = self.state else {
            return None;
        };
        let late = self
            .oldest_sent()
            .map(|sent| sent.after(self.config.answer_max_ns));
        Some(late.map_or(until, |late| late.min(until)))
    }

    /// Turns it off if the operator's client was not heard, or an answer is late.
    pub fn handle_timeout(&mut self, now: Nanos) {
        let EyeState::Armed(until) = self.state else {
            return;
        };
        if now >= until {
            self.stop(EyeOff::Heartbeat);
        } else if let Some(sent) = self.oldest_sent()
            && now.since(sent) >= self.config.answer_max_ns
        {
            self.stop(EyeOff::LateAnswer);
        }
    }

    /// When the oldest order under way was sent.
    fn oldest_sent(&mut self) -> Option<Nanos> {
        while self.sent.oldest < self.sent.next {
            let id = ClientOrderId(self.sent.oldest);
            if self
                .sent
                .orders
                .get(id)
                .is_some_and(|order| order.state.is_open())
            {
                return Some(self.sent.tags[self.place(id)].sent);
            }
            self.sent.oldest += 1;
        }
        None
    }

    /// Whether an option is looked at; all are at first.
    pub fn set_watched(&mut self, option: u16, is_watched: bool) {
        let at = usize::from(option);
        if at >= self.market.shown.len() {
            return;
        }
        let bit = 1 << (at % BLOCK);
        if is_watched {
            self.options.idle[at / BLOCK] &= !bit;
        } else {
            self.options.idle[at / BLOCK] |= bit;
        }
    }

    /// The largest order in an option; [`EyeConfig::size_max`] at first, and never more than that.
    pub fn set_size(&mut self, option: u16, size: Qty) {
        if let Some(old) = self.options.sizes.get_mut(usize::from(option)) {
            *old = size.0.min(self.config.size_max.0);
        }
    }

    /// Contracts of the underlying that hedge one of an option, in thousandths: its delta, times the ratio of
    /// their multipliers.
    pub fn set_delta(&mut self, option: u16, milli: i32) {
        if let Some(delta) = self.options.deltas.get_mut(usize::from(option)) {
            *delta = milli;
        }
    }

    /// Contracts of options that were bought (or sold, below 0) elsewhere, by quotes for instance: they count
    /// towards the limits on the position.
    pub fn add_net(&mut self, contracts: i64) {
        self.net = self.net.saturating_add(contracts);
    }

    /// What orders in an option have traded before, bought less sold: of a process before this one, or of an
    /// order that is not known any more. Nothing happens for an option that there is none of.
    pub fn hold(&mut self, option: u16, contracts: i64) {
        if let Some(position) = self.options.positions.get_mut(usize::from(option)) {
            *position = position.saturating_add(contracts);
            self.add_net(contracts);
        }
    }

    // ---- looking at it ----------------------------------------------------------------------------------------

    /// Whether it trades; armed also past the end of its time, until something happens or
    /// [`Eye::handle_timeout`].
    pub fn state(&self) -> EyeState {
        self.state
    }

    /// Whether an option is looked at.
    pub fn is_watched(&self, option: u16) -> bool {
        let at = usize::from(option);
        at < self.market.shown.len() && self.options.idle[at / BLOCK] & 1 << (at % BLOCK) == 0
    }

    /// Contracts it traded in an option, bought less sold.
    pub fn position(&self, option: u16) -> i64 {
        self.options.positions[usize::from(option)]
    }

    /// Contracts of all options, bought less sold, those from elsewhere included.
    pub fn net(&self) -> i64 {
        self.net
    }

    /// Orders in options under way, by side, by their limits.
    pub fn open(&self) -> [Exposure; 2] {
        self.sent.open
    }

    /// Premium of what was bought and sold, orders under way included, in ticks times contracts, by the
    /// orders' limits.
    pub fn premium(&self) -> [u64; 2] {
        self.sent.premium
    }

    /// Contracts of the underlying still to be bought (sold, below 0), in thousandths; hedges under way count
    /// as done.
    pub fn unhedged_milli(&self) -> i64 {
        self.carry_milli
    }

    /// Its orders.
    pub fn orders(&self) -> &Orders {
        &self.sent.orders
    }

    /// What happened how often.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }
}

fn cause_of(update: &BookUpdate) -> Cause {
    Cause {
        venue: update.venue,
        seq: update.seq,
        recv_ts: update.recv_ts,
    }
}

/// Thousandths as whole numbers: the nearest, halves away from 0.
fn rounded(milli: i64) -> i64 {
    milli.saturating_add(500 * milli.signum()) / 1_000
}
