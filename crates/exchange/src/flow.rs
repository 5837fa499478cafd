//! Seeded order flow with the statistics of a real day.
//!
//! Each [`Flow::step`] does one thing to the engine: enter, replace, reduce or cancel an order, take
//! liquidity, trade in the dark, ask for an imbalance. The shares are those of the Nasdaq session of
//! 2019-10-30 (293.9 million messages: A 43.3 %, D 41.9, U 8.7, E 2.5, I 1.3, X 1.2, P 0.52, F 0.48, C 0.04).
//! Instrument `k` (from 0) is chosen with weight `1 / (k + 20)`. Cancels come when an order's life is over:
//! 67 % of lives are below 1 s, 90 % below 10 s, 95 % below 143 s (time to cancel of AAPL that day), the rest
//! up to an hour.
//!
//! Every instrument has a fair value, a random walk in fractions of a tick. Orders are priced around it,
//! densest at the touch, and never cross; now and then one improves the touch for a few milliseconds. Orders
//! that the fair value has passed are withdrawn, and who takes liquidity takes it in the direction of the
//! fair value, so that the book follows. A side that gets thin is filled up before anything else happens to
//! the instrument: books stay two-sided.
//!
//! Where the pace has clusters, a step may follow the one before: something else happens to the same
//! instrument, or an order near its touch is cancelled before its time.
//!
//! Integers only; one seed is one run. Orders of others than [`Owner::HOUSE`] are never touched, only traded
//! with.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use tickwire_market::{
    Contract, InstrumentId, OrderId, OrderType, Price, Qty, Side, TimeInForce, TradingStatus,
};
use tickwire_persist::persist;

use crate::engine::Engine;
use crate::itch::MARKET_MAKERS;
use crate::order::{Listener, NewOrder, Order, Owner, Reject};
use crate::random::Random;
use crate::reference::Reference;
use crate::rules::{AuctionKind, TickTable};
use crate::tape::Listing;
use crate::wheel::Wheel;

/// How the flow behaves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FlowConfig {
    /// One seed, one run.
    pub seed: u64,
    /// Orders of the flow resting at once; beyond it the one next to be cancelled goes early.
    pub max_live: u32,
    /// How far the fair value moves per step on its instrument, in 1/256 ticks, at most.
    pub volatility: u32,
    /// A side with fewer levels is filled up first.
    pub min_levels: u32,
    /// How long after a client's trade market makers answer, in nanoseconds.
    pub reaction_ns: u64,
    /// A price path shared with other venues, which the fair value follows within half a tick; `None`: it
    /// walks freely.
    pub reference: Option<Reference>,
    /// Orders that not every venue has.
    pub kinds: OrderKinds,
    /// Whether owners make orders smaller in their place; the Moscow Exchange does not let them.
    pub reduces: bool,
}

/// Shares of kinds of orders that not every venue has, in a million. They change what a seed gives only where
/// they are not 0.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct OrderKinds {
    /// Of new orders: icebergs that show a quarter.
    pub icebergs_ppm: u32,
    /// Of new orders: post-only.
    pub post_only_ppm: u32,
    /// Of new orders: a stop order beside it, some ticks beyond the touch.
    pub stops_ppm: u32,
    /// Of steps: a halt, and the auction that ends it.
    pub halts_ppm: u32,
}

impl OrderKinds {
    /// None of them: the default.
    pub const NONE: OrderKinds = OrderKinds {
        icebergs_ppm: 0,
        post_only_ppm: 0,
        stops_ppm: 0,
        halts_ppm: 0,
    };
    /// A few of each.
    pub const FEW: OrderKinds = OrderKinds {
        icebergs_ppm: 20_000,
        post_only_ppm: 20_000,
        stops_ppm: 5_000,
        halts_ppm: 500,
    };
}

impl Default for FlowConfig {
    fn default() -> FlowConfig {
        FlowConfig {
            seed: 1,
            max_live: 400_000,
            volatility: 32,
            min_levels: 6,
            reaction_ns: 50_000,
            reference: None,
            kinds: OrderKinds::NONE,
            reduces: true,
        }
    }
}

/// Sub-tick units of a fair value.
const FINE: i64 = 256;
/// In place of a distance: a tick better than the best price there is, for a short time.
const IMPROVE: i64 = -1;
/// Instruments whose market makers wait to answer; further ones are filled up by the ordinary flow.
const REACTIONS_MAX: usize = 1024;
/// Orders for the close of one instrument.
const CLOSING_ORDERS_MAX: u32 = 64;

/// Shares of what a step does, of 10,000 messages; what is missing are the deletes, which come by time.
#[rustfmt::skip]
const ACTIONS: [(u64, Action); 6] = [
    (4378, Action::Add),
    (870, Action::Replace),
    (120, Action::Reduce),
    (225, Action::Take),
    (52, Action::Dark),
    (130, Action::Indicate),
];

#[derive(Clone, Copy)]
enum Action {
    Add,
    Replace,
    Reduce,
    Take,
    Dark,
    Indicate,
}

struct Maker {
    id: InstrumentId,
    ticks: TickTable,
    lot: u32,
    /// The tick where its price starts.
    tick: i64,
    /// In 1/256 ticks.
    fair: i64,
    /// Of that, what is this venue's own where others share the path, in 1/256 ticks.
    own: i64,
    start: i64,
    /// Half the spread around the fair value, in 1/256 ticks.
    half_spread: i64,
    /// Of an option, its underlying and how far it follows that, in thousandths.
    leader: Option<(usize, i64)>,
    is_option: bool,
    /// Market orders for the close, bought less sold.
    on_close: i64,
    /// How many there are.
    closing_orders: u32,
}

/// The underlying that an option follows, by place, and how far.
fn leader_of(listing: &Listing, count: usize) -> Option<(usize, i64)> {
    let Contract::Option { underlying, .. } = listing.contract else {
        return None;
    };
    let place = underlying.index().checked_sub(1).filter(|at| *at < count)?;
    (listing.delta_milli != 0).then_some((place, listing.delta_milli.into()))
}

/// See the module's description.
pub struct Flow {
    config: FlowConfig,
    random: Random,
    makers: Vec<Maker>,
    /// Running sums of the instruments' weights.
    weights: Vec<u64>,
    /// When an order's life ends. Entries of orders that went otherwise stay until then.
    lives: Wheel,
    reactions: VecDeque<(u64, InstrumentId)>,
    /// The instrument that a burst is about.
    hot: Option<usize>,
    /// The instrument of the last step, and of the next if that follows it.
    last: Option<usize>,
    followed: Option<usize>,
}

impl Flow {
    /// A flow over these instruments; `listings[i]` has number `i + 1`.
    pub fn new(config: FlowConfig, listings: &[Listing]) -> Flow {
        let mut sum = 0;
        let weights = (0..listings.len() as u64)
            .map(|k| {
                sum += (1 << 32) / (k + 20);
                sum
            })
            .collect();
        let makers = listings.iter().enumerate().map(|(rank, listing)| {
            let fair = listing.start.raw() / listing.tick().raw() * FINE;
            // Liquid names are two ticks wide, the others up to ten.
            let half_spread = FINE + FINE * (rank.min(96) as i64) / 24;
            Maker {
                id: listing.id,
                ticks: listing.rules.ticks,
                lot: listing.rules.lot.0.max(1),
                tick: listing.tick().raw(),
                fair,
                own: 0,
                start: fair,
                half_spread,
                leader: leader_of(listing, listings.len()),
                is_option: matches!(listing.contract, Contract::Option { .. }),
                on_close: 0,
                closing_orders: 0,
            }
        });
        Flow {
            config,
            random: Random::new(config.seed),
            makers: makers.collect(),
            weights,
            lives: Wheel::new(config.max_live as usize * 2),
            reactions: VecDeque::with_capacity(REACTIONS_MAX),
            hot: None,
            last: None,
            followed: None,
        }
    }

    /// When market makers answer next.
    pub fn next_reaction(&self) -> Option<u64> {
        self.reactions.front().map(|(due, _)| *due)
    }

    /// Tells that somebody else traded: market makers of the instrument look at their book a little later.
    pub fn disturb(&mut self, instrument: InstrumentId, now: u64) {
        if self.reactions.len() < REACTIONS_MAX
            && self.reactions.back().is_none_or(|(_, last)| *last != instrument)
        {
            self.reactions
                .push_back((now.saturating_add(self.config.reaction_ns), instrument));
        }
    }

    /// Chooses the instrument of a burst, or ends it.
    pub fn set_burst(&mut self, on: bool) {
        self.hot = if on { Some(self.choose()) } else { None };
    }

    /// Says whether the next step follows the last one, in the same instrument.
    pub fn set_follow(&mut self, on: bool) {
        self.followed = self.last.filter(|_| on);
    }

    /// Fills an empty book.
    pub fn seed_book(
        &mut self,
        instrument: InstrumentId,
        now: u64,
        engine: &mut Engine,
        out: &mut impl Listener,
    ) {
        let Some(at) = self.maker_of(instrument) else {
            return;
        };
        if self.config.reference.is_some() {
            self.walk(at, now);
        }
        for level in 0..16 {
            for side in Side::BOTH {
                for _ in 0..self.random.between(1, 3) {
                    self.enter(at, side, level, now, engine, out);
                }
            }
        }
    }

    /// Does one thing; `now` is in nanoseconds on any axis that does not go back.
    pub fn step(&mut self, now: u64, engine: &mut Engine, out: &mut impl Listener) {
        let touched = if let Some(instrument) = self.due_reaction(now) {
            self.maker_of(instrument)
                .inspect(|&at| self.requote(at, now, engine, out))
        } else if let Some(at) = self.followed {
            self.follow(at, now, engine, out);
            Some(at)
        } else if let Some(instrument) = self.cancel_due(now, engine, out) {
            self.maker_of(instrument)
        } else {
            self.choose_step(now, engine, out)
        };
        if let Some(at) = touched {
            self.fill_up(at, now, engine, out);
        }
        self.last = touched;
    }

    /// Somebody answers what has just happened to an instrument.
    fn follow(&mut self, at: usize, now: u64, engine: &mut Engine, out: &mut impl Listener) {
        // The share that deletions have of all messages.
        if self.random.below(100) < 42
            && let Some(order) = self.pick(self.makers[at].id, engine)
        {
            let known = engine.cancel(order.id, out);
            debug_assert!(known.is_ok(), "it stands in the book");
            return;
        }
        self.walk(at, now);
        self.withdraw(at, engine, out);
        self.act(at, now, engine, out);
    }

    fn choose_step(&mut self, now: u64, engine: &mut Engine, out: &mut impl Listener) -> Option<usize> {
        let at = match self.hot {
            Some(hot) if self.random.below(2) == 0 => hot,
            _ => self.choose(),
        };
        if at >= self.makers.len() {
            return None;
        }
        self.walk(at, now);
        self.withdraw(at, engine, out);
        if self.random.ppm(self.config.kinds.halts_ppm) {
            self.halt(at, now, engine, out);
        }
        self.act(at, now, engine, out);
        Some(at)
    }

    /// Market makers cancel what the fair value has passed, some orders at a time: this is how a price moves.
    fn withdraw(&mut self, at: usize, engine: &mut Engine, out: &mut impl Listener) {
        const AT_ONCE: usize = 8;
        let maker = &self.makers[at];
        for side in Side::BOTH {
            for _ in 0..AT_ONCE {
                let Some(first) = engine.queue(maker.id, side, 0).next() else {
                    break;
                };
                let place = first.price.raw() / maker.tick * FINE;
                let passed = if side == Side::Bid {
                    place > maker.fair
                } else {
                    place < maker.fair
                };
                if !passed || first.owner != Owner::HOUSE || engine.cancel(first.id, out).is_err() {
                    break;
                }
            }
        }
    }

    fn act(&mut self, at: usize, now: u64, engine: &mut Engine, out: &mut impl Listener) {
        let id = self.makers[at].id;
        let done = match self.draw_action() {
            Action::Add => false,
            Action::Replace => self.replace(at, now, engine, out),
            Action::Reduce => self.config.reduces && self.reduce(id, engine, out),
            Action::Take => self.take(at, engine, out),
            Action::Dark => self.dark(engine, out),
            Action::Indicate => self.indicate(at, engine, out),
        };
        if !done {
            let side = self.draw_side();
            let distance = self.draw_distance();
            self.enter(at, side, distance, now, engine, out);
        }
    }

    fn due_reaction(&mut self, now: u64) -> Option<InstrumentId> {
        self.next_reaction().filter(|due| *due <= now)?;
        self.reactions.pop_front().map(|(_, instrument)| instrument)
    }

    /// Market makers put an order at their best price on both sides.
    fn requote(&mut self, at: usize, now: u64, engine: &mut Engine, out: &mut impl Listener) {
        for side in Side::BOTH {
            self.enter(at, side, 0, now, engine, out);
        }
    }

    /// Gives a side that got thin its least number of levels again.
    fn fill_up(&mut self, at: usize, now: u64, engine: &mut Engine, out: &mut impl Listener) {
        let (id, least) = (self.makers[at].id, self.config.min_levels as usize);
        for side in Side::BOTH {
            for level in 0..2 * least as i64 {
                if engine.depth(id, side) >= least {
                    break;
                }
                if !self.is_level(at, side, level, engine) {
                    self.enter(at, side, level, now, engine, out);
                }
            }
        }
    }

    /// Whether an option has a level at a distance already. Options are moved by their underlying, faster
    /// than their own orders are: where the other side is behind, all distances meet at the one price before
    /// it, and close to zero there are few bids. More orders there would never make as many levels as a book
    /// must have.
    fn is_level(&self, at: usize, side: Side, distance: i64, engine: &Engine) -> bool {
        let maker = &self.makers[at];
        if !maker.is_option {
            return false;
        }
        let price = self.price(at, side, distance, engine);
        let price = price.map(|price| maker.ticks.outward(side, price));
        let mut levels = engine.levels(maker.id, side);
        levels.any(|level| Some(level.price) == price)
    }

    /// Cancels one order whose life is over, if there is one; its instrument.
    fn cancel_due(&mut self, now: u64, engine: &mut Engine, out: &mut impl Listener) -> Option<InstrumentId> {
        while let Some(id) = self.lives.pop(now, self.is_crowded(engine)) {
            // Traded or replaced meanwhile: look further.
            let Some(instrument) = engine.order(OrderId(id)).map(|order| order.instrument) else {
                continue;
            };
            if engine.cancel(OrderId(id), out).is_ok() {
                return Some(instrument);
            }
        }
        None
    }

    fn is_crowded(&self, engine: &Engine) -> bool {
        engine.live_orders() >= self.config.max_live || self.lives.is_full()
    }

    fn enter(
        &mut self,
        at: usize,
        side: Side,
        distance: i64,
        now: u64,
        engine: &mut Engine,
        out: &mut impl Listener,
    ) {
        let Some(price) = self.price(at, side, distance, engine) else {
            return;
        };
        let price = self.makers[at].ticks.outward(side, price);
        let attributed = self.random.below(1000) < 11;
        let improving = self.random.below(1000) < 16;
        let order = NewOrder {
            improvement: Price::from_raw(match improving {
                true => self.makers[at].ticks.at(price).raw(),
                false => 0,
            }),
            mpid: match attributed {
                true => MARKET_MAKERS[self.random.below(4) as usize],
                false => crate::order::NO_MPID,
            },
            ..NewOrder::limit(self.makers[at].id, side, price, self.draw_lots(at))
        };
        let order = self.vary(order);
        let entered = engine.submit(&order, out);
        self.live(entered, distance, now);
        if self.random.ppm(self.config.kinds.stops_ppm) {
            self.stop(at, side, now, engine, out);
        }
    }

    /// Shares, or where there are larger lots a lot for each hundred of them.
    fn draw_lots(&mut self, at: usize) -> Qty {
        let qty = self.draw_qty();
        match self.makers[at].lot {
            1 => qty,
            lot => Qty(qty.0.div_ceil(100).saturating_mul(lot)),
        }
    }

    /// An iceberg of four slices, a post-only order, or the order as it was.
    fn vary(&mut self, order: NewOrder) -> NewOrder {
        let kinds = self.config.kinds;
        if self.random.ppm(kinds.icebergs_ppm) {
            return NewOrder {
                qty: Qty(order.qty.0.saturating_mul(4)),
                display: order.qty,
                ..order
            };
        }
        NewOrder {
            post_only: self.random.ppm(kinds.post_only_ppm),
            ..order
        }
    }

    /// A stop order to buy above the best offer, or to sell below the best bid.
    fn stop(&mut self, at: usize, side: Side, now: u64, engine: &mut Engine, out: &mut impl Listener) {
        let maker = &self.makers[at];
        let Some(touch) = engine.best(maker.id, !side) else {
            return;
        };
        let ticks = self.random.between(1, 5) as i64 * maker.tick;
        let trigger = touch.price.raw() + if side == Side::Bid { ticks } else { -ticks };
        let order = NewOrder {
            stop: Some(Price::from_raw(trigger)),
            order_type: OrderType::Market,
            ..NewOrder::limit(maker.id, side, Price::ZERO, self.draw_lots(at))
        };
        let entered = engine.submit(&order, out);
        self.live(entered, 0, now);
    }

    /// A halt, a call phase in which some orders cross, and the auction.
    fn halt(&mut self, at: usize, now: u64, engine: &mut Engine, out: &mut impl Listener) {
        let (id, tick) = (self.makers[at].id, self.makers[at].tick);
        if engine.trading_status(id) == Some(TradingStatus::Halted) {
            // By the operator, who ends it.
            return;
        }
        let halted = engine
            .set_status(id, TradingStatus::Halted, out)
            .and_then(|()| engine.begin_auction(id, AuctionKind::Resumption, out));
        if halted.is_err() {
            return;
        }
        for side in Side::BOTH {
            for ticks in 0..3 {
                let Some(touch) = engine.best(id, !side) else {
                    break;
                };
                let into = if side == Side::Bid {
                    ticks * tick
                } else {
                    -ticks * tick
                };
                let price = Price::from_raw(touch.price.raw() + into);
                let entered = engine.submit(&NewOrder::limit(id, side, price, self.draw_lots(at)), out);
                self.live(entered, 0, now);
            }
        }
        let resumed = engine
            .indicate(id, out)
            .and_then(|()| engine.uncross(id, TradingStatus::Trading, out));
        debug_assert!(resumed.is_ok(), "it is a call phase");
    }

    /// Remembers the end of an order's life. A refused order (capacity) has none.
    fn live(&mut self, entered: Result<OrderId, Reject>, distance: i64, now: u64) {
        if let Ok(id) = entered {
            let end = now.saturating_add(self.draw_life(distance));
            if self.lives.is_full() {
                // The one next to end is forgotten; if its order still stands, it stays until it trades.
                self.lives.pop(now, true);
            }
            self.lives.push(now, end, id.0);
        }
    }

    fn replace(&mut self, at: usize, now: u64, engine: &mut Engine, out: &mut impl Listener) -> bool {
        let Some(old) = self.pick(self.makers[at].id, engine) else {
            return false;
        };
        let distance = self.draw_distance();
        let Some(price) = self.price(at, old.side, distance, engine) else {
            return false;
        };
        // Another quantity too, or a replacement at the same price would only be a reduction.
        let qty = if price == old.price {
            Qty(old.qty.0.saturating_add(100))
        } else {
            old.qty
        };
        let entered = engine.replace(old.id, price, qty, out);
        self.live(entered, distance, now);
        entered.is_ok()
    }

    fn reduce(&mut self, id: InstrumentId, engine: &mut Engine, out: &mut impl Listener) -> bool {
        match self.pick(id, engine) {
            Some(order) if order.qty.0 > 1 => engine.reduce(order.id, Qty(order.qty.0 / 2), out).is_ok(),
            _ => false,
        }
    }

    /// Takes from the best level on the side where the fair value is.
    fn take(&mut self, at: usize, engine: &mut Engine, out: &mut impl Listener) -> bool {
        let maker = &self.makers[at];
        let (Some(bid), Some(ask)) = (engine.best(maker.id, Side::Bid), engine.best(maker.id, Side::Ask))
        else {
            return false;
        };
        let fair_twice = maker.fair * 2 / FINE * maker.tick;
        let side = if fair_twice > bid.price.raw() + ask.price.raw() {
            Side::Bid
        } else {
            Side::Ask
        };
        let target = if side == Side::Bid { ask } else { bid };
        let Some(first) = engine.queue(maker.id, !side, 0).next().map(|order| order.qty) else {
            return false;
        };
        // Mostly the first order, whole or in part; now and then the whole level.
        let qty = match self.random.below(100) {
            0 => Qty(target.qty.0.min(u64::from(u32::MAX)) as u32),
            1..=65 => first,
            _ => Qty((first.0 / 2 / maker.lot).max(1) * maker.lot),
        };
        let order = NewOrder {
            time_in_force: TimeInForce::ImmediateOrCancel,
            ..NewOrder::limit(maker.id, side, target.price, qty)
        };
        engine.submit(&order, out).is_ok()
    }

    /// A hidden order inside the spread meets its counterpart at once. Needs a spread of two ticks: tries
    /// some instruments.
    fn dark(&mut self, engine: &mut Engine, out: &mut impl Listener) -> bool {
        for _ in 0..8 {
            let at = self.choose();
            let Some(maker) = self.makers.get(at) else {
                return false;
            };
            let (Some(bid), Some(ask)) = (engine.best(maker.id, Side::Bid), engine.best(maker.id, Side::Ask))
            else {
                continue;
            };
            let price = bid.price.raw() + maker.tick;
            if price >= ask.price.raw() {
                continue;
            }
            let (id, price) = (maker.id, Price::from_raw(price));
            let (side, qty) = (self.draw_side(), self.draw_qty());
            let resting = NewOrder {
                hidden: true,
                ..NewOrder::limit(id, side, price, qty)
            };
            let incoming = NewOrder {
                time_in_force: TimeInForce::ImmediateOrCancel,
                ..NewOrder::limit(id, !side, price, qty)
            };
            return engine
                .submit(&resting, out)
                .and_then(|_| engine.submit(&incoming, out))
                .is_ok();
        }
        false
    }

    /// A market order for the close, mostly on the side that has less and no more than that, and what the
    /// closing would do then: the book has to give little.
    fn indicate(&mut self, at: usize, engine: &mut Engine, out: &mut impl Listener) -> bool {
        let lacks = if self.makers[at].on_close > 0 {
            Side::Ask
        } else {
            Side::Bid
        };
        let side = if self.random.below(4) == 0 { !lacks } else { lacks };
        let maker = &mut self.makers[at];
        if maker.closing_orders < CLOSING_ORDERS_MAX {
            let missing = maker.on_close.unsigned_abs().min(u64::from(u32::MAX)) as u32;
            let drawn = draw_qty(&mut self.random).min(Qty(200));
            let qty = if side == lacks && missing > 0 {
                drawn.min(Qty(missing))
            } else {
                drawn
            };
            let order = NewOrder {
                order_type: OrderType::Market,
                time_in_force: TimeInForce::AtTheClose,
                ..NewOrder::limit(maker.id, side, Price::ZERO, qty)
            };
            if engine.submit(&order, out).is_ok() {
                let qty = i64::from(order.qty.0);
                maker.on_close += if side == Side::Bid { qty } else { -qty };
                maker.closing_orders += 1;
            }
        }
        engine.indicate(maker.id, out).is_ok()
    }

    /// A house order near the touch.
    fn pick(&mut self, id: InstrumentId, engine: &Engine) -> Option<Order> {
        let side = self.draw_side();
        let nth = (self.draw_distance().max(0) as usize).min(engine.depth(id, side).checked_sub(1)?);
        let newest = engine.last_in_queue(id, side, nth)?;
        let order = match self.random.below(2) {
            0 => newest,
            _ => engine.queue(id, side, nth).next()?,
        };
        (order.owner == Owner::HOUSE).then_some(*order)
    }

    /// `distance` ticks behind the best price that the fair value allows, or as near to it as does not cross;
    /// [`IMPROVE`] is a tick better than the best price there is.
    fn price(&self, at: usize, side: Side, distance: i64, engine: &Engine) -> Option<Price> {
        let maker = &self.makers[at];
        let best = |side| engine.best(maker.id, side).map(|level| level.price.raw());
        // Upwards is better for bids.
        let up = if side == Side::Bid { 1 } else { -1 };
        // Distances are in the ticks that hold there: in finer ones a book that is thin would never be full.
        let step = |raw| maker.ticks.at(Price::from_raw(raw)).raw();
        let wanted = match best(side).filter(|_| distance == IMPROVE) {
            Some(own) => own + up * step(own),
            None => {
                let quote = match side {
                    Side::Bid => (maker.fair - maker.half_spread).div_euclid(FINE),
                    Side::Ask => (maker.fair + maker.half_spread + FINE - 1).div_euclid(FINE),
                };
                let quote = quote * maker.tick;
                quote - up * distance.max(0) * step(quote)
            }
        };
        let raw = match (side, best(!side)) {
            (_, None) => wanted,
            (Side::Bid, Some(ask)) => wanted.min(ask - maker.tick),
            (Side::Ask, Some(bid)) => wanted.max(bid + maker.tick),
        };
        (raw > 0).then_some(Price::from_raw(raw))
    }

    /// One step of the fair value, held within a tenth of where it started.
    fn walk(&mut self, at: usize, now: u64) {
        let reach = i64::from(self.config.volatility);
        let jump = if self.random.below(4000) == 0 { 24 } else { 1 };
        let step = (self.random.below(2 * reach as u64 + 1) as i64 - reach) * jump;
        let led = self.led(at);
        let maker = &mut self.makers[at];
        // An option may lose half of what it was worth.
        let band = maker.start / if led.is_some() { 2 } else { 10 };
        let fair = match (self.config.reference, led) {
            (_, Some(led)) => {
                maker.own = (maker.own + step).clamp(-FINE, FINE);
                maker.start + led + maker.own
            }
            (None, _) => maker.fair + step,
            (Some(reference), _) => {
                maker.own = (maker.own + step).clamp(-FINE / 2, FINE / 2);
                maker.start + reference.offset(maker.id, now) + maker.own
            }
        };
        maker.fair = fair.clamp(maker.start - band, maker.start + band);
    }

    /// How far an option's underlying has taken it, in 1/256 of its own ticks.
    fn led(&self, at: usize) -> Option<i64> {
        let own = &self.makers[at];
        let (leader, milli) = own.leader?;
        let leader = &self.makers[leader];
        let moved = i128::from(leader.fair - leader.start) * i128::from(leader.tick);
        Some((moved * i128::from(milli) / 1000 / i128::from(own.tick)) as i64)
    }

    fn maker_of(&self, instrument: InstrumentId) -> Option<usize> {
        instrument
            .index()
            .checked_sub(1)
            .filter(|at| *at < self.makers.len())
    }

    fn choose(&mut self) -> usize {
        let total = self.weights.last().copied().unwrap_or(0);
        let drawn = self.random.below(total);
        self.weights.partition_point(|sum| *sum <= drawn)
    }

    fn draw_action(&mut self) -> Action {
        let mut drawn = self.random.below(ACTIONS.iter().map(|(share, _)| share).sum());
        for (share, action) in ACTIONS {
            if drawn < share {
                return action;
            }
            drawn -= share;
        }
        Action::Add
    }

    fn draw_side(&mut self) -> Side {
        if self.random.below(2) == 0 {
            Side::Bid
        } else {
            Side::Ask
        }
    }

    /// Ticks behind the touch: half within two, seven eighths within ten; now and then ahead of it.
    fn draw_distance(&mut self) -> i64 {
        let ticks = match self.random.below(100) {
            0..=5 => return IMPROVE,
            6..=20 => 0,
            21..=38 => 1,
            39..=51 => 2,
            52..=62 => 3,
            63..=84 => self.random.between(4, 10),
            85..=96 => self.random.between(11, 40),
            _ => self.random.between(41, 150),
        };
        ticks as i64
    }

    fn draw_qty(&mut self) -> Qty {
        draw_qty(&mut self.random)
    }

    /// Lives near the touch are short, those of the last 15 % belong to orders behind it. Half of all orders
    /// are near (within two ticks), so 70 % of the others live like them for the shares of all to be those of
    /// the module's description.
    fn draw_life(&mut self, distance: i64) -> u64 {
        const MS: u64 = 1_000_000;
        let is_long = distance > 2 && self.random.below(100) < 30;
        let rank = match distance {
            IMPROVE => return self.random.log_between(MS / 8, 16 * MS),
            _ if is_long => self.random.between(85, 99),
            _ => self.random.below(85),
        };
        match rank {
            0..=66 => self.random.log_between(MS / 4, 1_000 * MS),
            67..=89 => self.random.log_between(1_000 * MS, 10_000 * MS),
            90..=94 => self.random.log_between(10_000 * MS, 143_000 * MS),
            _ => self.random.log_between(143_000 * MS, 3_600_000 * MS),
        }
    }
}

/// Mostly one round lot, a fifth odd lots.
fn draw_qty(random: &mut Random) -> Qty {
    let shares = match random.below(100) {
        0..=19 => random.between(1, 99),
        20..=69 => 100,
        70..=84 => 200,
        85..=95 => 100 * random.between(3, 5),
        _ => 100 * random.between(6, 50),
    };
    Qty(shares as u32)
}

persist!(struct Maker {
    tick, fair, own, start, half_spread, leader, on_close, closing_orders,
} not { id, ticks, lot, is_option });
persist!(struct Flow { random, lives, reactions, hot, last, followed } each { makers } not { config, weights });

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::EngineConfig;
    use tickwire_market::Symbol;

    /// Fills an option's book up, twice: five is its tick at low prices, twenty-five above five hundred. Its
    /// levels of bids and offers.
    fn filled_up(start: i64) -> [usize; 2] {
        let points = |n: i64| Price::from_raw(n * Price::ONE_RAW);
        let id = InstrumentId(1);
        let symbol = Symbol::new(b"C").expect("short");
        let mut listing = Listing::equity(id, symbol, points(start));
        listing.rules.ticks =
            TickTable::stepped(points(5), &[(points(500), points(25))]).expect("they ascend");
        let mut engine = Engine::new(EngineConfig {
            instruments: 1,
            ..EngineConfig::default()
        });
        engine.set_rules(id, listing.rules);
        engine
            .set_status(id, TradingStatus::Trading, &mut ())
            .expect("it is listed");
        let mut flow = Flow::new(FlowConfig::default(), &[listing]);
        flow.makers[0].is_option = true;
        flow.fill_up(0, 0, &mut engine, &mut ());
        let orders = engine.live_orders();
        flow.fill_up(0, 0, &mut engine, &mut ());
        assert_eq!(engine.live_orders(), orders, "it is not thin any more");
        Side::BOTH.map(|side| engine.depth(id, side))
    }

    #[test]
    fn a_thin_book_is_filled_up_once() {
        let least = FlowConfig::default().min_levels as usize;
        assert_eq!(filled_up(12_500), [least; 2], "in coarse ticks");
        // 15, 10 and 5.
        assert_eq!(filled_up(20), [3, least], "close to zero");
    }
}
