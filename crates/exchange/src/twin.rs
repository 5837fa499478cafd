//! [`Engine`] and [`NaiveEngine`] side by side: every request goes to both, and answers, events and states
//! must agree.
//!
//! Requests of every kind are drawn from a source of numbers, seeded (`tests/engine_matches_oracle.rs`) or a
//! fuzzer's.

use alloc::vec::Vec;

use tickwire_market::{InstrumentId, OrderId, OrderType, Price, Qty, Side, TimeInForce, TradingStatus};

use crate::engine::{Engine, EngineConfig};
use crate::naive::NaiveEngine;
use crate::order::{
    BreakReason, Broken, CancelReason, Cross, CrossFill, Execution, Firm, Indication, Listener, NewOrder,
    Order, Owner, Party, Reject, SelfTrade, StateHash,
};
use crate::rules::{
    AuctionKind, HaltedOrders, MassCancel, OnBreach, PostOnly, PriceBands, Protection, QuoteEntry, Rules,
    TickTable,
};

/// What happened, for tests to see that everything did.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Happened {
    /// [`Listener::executed`].
    Executed,
    /// [`Listener::expired`].
    Expired,
    /// [`Listener::parked`].
    Parked,
    /// [`Listener::reparked`].
    Reparked,
    /// [`Listener::triggered`].
    Triggered,
    /// [`Listener::refreshed`].
    Refreshed,
    /// [`Listener::broken`].
    Broken,
    /// [`Listener::cross_filled`].
    CrossFilled,
    /// [`Listener::crossed`] with a quantity.
    Crossed,
    /// [`Listener::indicated`] with a price.
    Indicated,
    /// [`Listener::decremented`].
    Decremented,
    /// [`Listener::reserve_reduced`].
    ReserveReduced,
    /// [`Listener::reduced`].
    Reduced,
    /// [`Listener::replaced`].
    Replaced,
    /// [`Listener::protected`].
    Protected,
    /// A pause by a price band.
    Paused,
    /// [`Listener::cancelled`].
    Cancelled(CancelReason),
    /// A request was refused.
    Rejected(Reject),
}

/// Everything that one engine said, as a hash.
#[derive(Default)]
struct Heard {
    hash: StateHash,
    /// Each kind once, with how often.
    seen: Vec<(Happened, u64)>,
}

impl Heard {
    fn see(&mut self, what: Happened) {
        match self.seen.iter_mut().find(|(kind, _)| *kind == what) {
            Some((_, count)) => *count += 1,
            None => self.seen.push((what, 1)),
        }
    }

    fn say(&mut self, what: u64, order: &Order) {
        self.hash.word(what);
        self.hash.order(order);
    }
}

impl Listener for Heard {
    fn accepted(&mut self, order: &Order) {
        self.say(1, order);
    }
    fn rested(&mut self, order: &Order) {
        self.say(2, order);
    }
    fn parked(&mut self, order: &Order) {
        self.see(Happened::Parked);
        self.say(3, order);
    }
    fn reparked(&mut self, old: &Order, new: &Order) {
        self.see(Happened::Reparked);
        self.say(4, old);
        self.say(5, new);
    }
    fn triggered(&mut self, old: &Order, new: &Order) {
        self.see(Happened::Triggered);
        self.say(6, old);
        self.say(7, new);
    }
    fn refreshed(&mut self, old: &Order, new: &Order) {
        self.see(Happened::Refreshed);
        self.say(8, old);
        self.say(9, new);
    }
    fn executed(&mut self, e: &Execution) {
        self.see(Happened::Executed);
        self.say(10, &e.maker);
        self.say(e.match_number, &e.taker);
        self.hash.word(u64::from(e.qty.0));
        self.hash.word(e.price.raw() as u64);
    }
    fn broken(&mut self, broken: &Broken) {
        self.see(Happened::Broken);
        self.hash.word(21 << 56 | broken.match_number);
        self.hash.word(broken.price.raw() as u64);
        self.hash
            .word(u64::from(broken.instrument.0) << 32 | u64::from(broken.qty.0));
        for Party { owner, id, side } in [broken.maker, broken.taker] {
            self.hash.word(u64::from(owner.0) << 1 | side as u64);
            self.hash.word(id.0);
        }
        self.hash.word(broken.reason as u64);
    }
    fn cross_filled(&mut self, fill: &CrossFill) {
        self.see(Happened::CrossFilled);
        self.say(11 + fill.match_number, &fill.order);
        self.hash
            .word(u64::from(fill.qty.0) << 32 | u64::from(fill.from_book.0));
        self.hash.word(fill.price.raw() as u64);
    }
    fn cancelled(&mut self, order: &Order, reason: CancelReason) {
        self.see(Happened::Cancelled(reason));
        self.say(12 + ((reason as u64) << 8), order);
    }
    fn decremented(&mut self, order: &Order, by: Qty) {
        self.see(Happened::Decremented);
        self.say(13 + (u64::from(by.0) << 8), order);
    }
    fn reserve_reduced(&mut self, order: &Order, by: Qty) {
        self.see(Happened::ReserveReduced);
        self.say(14 + (u64::from(by.0) << 8), order);
    }
    fn protected(&mut self, firm: Firm, group: u32) {
        self.see(Happened::Protected);
        self.hash.word(u64::from(firm.0) << 32 | u64::from(group));
    }
    fn reduced(&mut self, order: &Order, by: Qty) {
        self.see(Happened::Reduced);
        self.say(15 + (u64::from(by.0) << 8), order);
    }
    fn deleted(&mut self, order: &Order) {
        self.say(16, order);
    }
    fn expired(&mut self, order: &Order) {
        self.see(Happened::Expired);
        self.say(17, order);
    }
    fn replaced(&mut self, old: &Order, new: &Order, rests: bool) {
        self.see(Happened::Replaced);
        self.say(18 + (u64::from(rests) << 8), old);
        self.say(19, new);
    }
    fn status(&mut self, instrument: InstrumentId, status: TradingStatus) {
        if status == TradingStatus::Paused {
            self.see(Happened::Paused);
        }
        self.hash.word(u64::from(instrument.0) << 8 | status as u64);
    }
    fn crossed(&mut self, cross: &Cross) {
        if cross.qty > 0 {
            self.see(Happened::Crossed);
        }
        self.hash.word(cross.match_number << 8 | cross.kind as u64);
        self.hash.word(cross.qty);
        self.hash.word(cross.price.raw() as u64);
    }
    fn indicated(&mut self, i: &Indication) {
        if i.paired > 0 {
            self.see(Happened::Indicated);
        }
        self.hash.word((i.kind as u64) << 8 | i.side as u64);
        self.hash.word(i.paired);
        self.hash.word(i.imbalance);
        self.hash.word(i.clearing.raw() as u64);
        self.hash.word(i.price.raw() as u64);
    }
    fn completed(&mut self, instrument: InstrumentId) {
        self.hash.word(20 << 32 | u64::from(instrument.0));
    }
}

/// See the module's description.
pub struct Twin {
    fast: Engine,
    naive: NaiveEngine,
    heard: (Heard, Heard),
    last_id: u64,
    now: u64,
    steps: u64,
}

/// Asks both, and compares what they answer.
macro_rules! both {
    ($twin:ident . $call:ident ( $($arg:expr),* )) => {{
        let a = $twin.fast.$call($($arg,)* &mut $twin.heard.0);
        let b = $twin.naive.$call($($arg,)* &mut $twin.heard.1);
        assert_eq!(a, b, "step {}: answers of {}", $twin.steps, stringify!($call));
        if let Err(reject) = a {
            $twin.heard.0.see(Happened::Rejected(reject));
        }
        a
    }};
}

/// Rules that differ from instrument to instrument: penny shares, a class of options with two ticks and lots
/// of ten, one with bands that pause, one with bands that refuse, which collects while halted and prices
/// post-only orders anew.
fn rules_of(instrument: u32) -> Rules {
    let bands = PriceBands {
        static_ppm: 1_500,
        dynamic_ppm: 500,
        on_breach: OnBreach::Pause,
    };
    let [nickel, dime, three] = [500, 1_000, 30_000].map(Price::from_4dp);
    let ticks = TickTable::stepped(nickel, &[(three, dime)]);
    let plain = Rules {
        group: instrument % 2,
        ..Rules::default()
    };
    match instrument % 4 {
        1 => plain,
        2 => Rules {
            ticks: ticks.unwrap_or(TickTable::uniform(nickel)),
            lot: Qty(10),
            ..plain
        },
        3 => Rules {
            bands,
            halted: HaltedOrders::Collect,
            ..plain
        },
        _ => Rules {
            bands: PriceBands {
                on_breach: OnBreach::Reject,
                ..bands
            },
            halted: HaltedOrders::Collect,
            post_only: PostOnly::Reprice,
            ..plain
        },
    }
}

impl Twin {
    /// Both engines, empty, with everything trading.
    pub fn new(config: EngineConfig) -> Twin {
        let mut twin = Twin {
            fast: Engine::new(config),
            naive: NaiveEngine::new(config),
            heard: Default::default(),
            last_id: 1,
            now: 0,
            steps: 0,
        };
        for instrument in 1..=config.instruments {
            let id = InstrumentId(instrument);
            twin.fast.set_rules(id, rules_of(instrument));
            twin.naive.set_rules(id, rules_of(instrument));
            let _ = both!(twin.set_status(id, TradingStatus::Trading));
        }
        twin
    }

    /// What happened so far, with how often.
    pub fn seen(&self) -> &[(Happened, u64)] {
        &self.heard.0.seen
    }

    /// The hash of all that was said and of the state.
    pub fn hash(&self) -> u64 {
        let mut hash = self.heard.0.hash;
        hash.word(self.fast.state_hash());
        hash.value()
    }

    /// The engine that is compared.
    pub fn engine(&self) -> &Engine {
        &self.fast
    }

    /// Goes on with another one, of the same state and configuration: one that was saved and loaded.
    pub fn replace_engine(&mut self, engine: Engine) {
        self.fast = engine;
    }

    /// Panics unless the states agree.
    pub fn check_states(&self) {
        let (fast, naive) = (self.fast.state_hash(), self.naive.state_hash());
        assert_eq!(fast, naive, "states differ after step {}", self.steps);
    }

    /// Sends one request to both, drawn with `choose`, which gives a number below its argument (1 to 65,536).
    /// `None` when it gave none: nothing was sent.
    ///
    /// # Panics
    /// When answers or events differ.
    pub fn step(&mut self, choose: &mut impl FnMut(u32) -> Option<u32>) -> Option<()> {
        self.steps += 1;
        let instruments = self.fast.config().instruments;
        let near = self.last_id.min(60) as u32;
        let id = OrderId((self.last_id + 2).saturating_sub(u64::from(choose(near + 3)?)));
        let instrument = match choose(200)? {
            0 => InstrumentId(choose(instruments + 3)?),
            _ => InstrumentId(1 + choose(instruments)?),
        };
        let firm = Firm(choose(4)?);
        match choose(100)? {
            0..44 => {
                let new = self.draw_order(instrument, firm, choose)?;
                if let Ok(id) = both!(self.submit(&new)) {
                    self.last_id = id.0;
                }
            }
            44..56 => {
                let _ = both!(self.cancel(id));
            }
            56..62 => {
                let by = Qty(choose(300)?);
                let _ = both!(self.reduce(id, by));
            }
            62..71 => {
                let instrument = self.fast.order(id).map_or(instrument, |order| order.instrument);
                let to = self.draw_order(instrument, firm, choose)?;
                if let Ok(id) = both!(self.replace(id, to.price, to.qty)) {
                    self.last_id = self.last_id.max(id.0);
                }
            }
            71..73 => self.restop(firm, choose)?,
            73..82 => self.requote(firm, choose)?,
            82 => {
                let which = MassCancel {
                    firm: (choose(4)? > 0).then_some(firm),
                    instrument: (choose(8)? > 0).then_some(instrument),
                    group: (choose(4)? == 0).then_some(firm.0 % 2),
                    side: (choose(2)? > 0).then_some(Side::Ask),
                    quotes_only: choose(2)? > 0,
                };
                let _ = both!(self.mass_cancel(&which));
            }
            83..91 => self.change_phase(instrument, choose)?,
            91..93 => {
                let _ = both!(self.indicate(instrument));
            }
            93 => {
                // One of the last, or one that never was.
                let last = self.fast.last_match_number() + 2;
                let number = last.saturating_sub(u64::from(choose(last.min(40) as u32)?));
                let reasons = [
                    BreakReason::Erroneous,
                    BreakReason::Consent,
                    BreakReason::Supervisory,
                ];
                let reason = reasons[choose(3)? as usize];
                let _ = both!(self.break_trade(number, reason));
            }
            94..96 => {
                self.now += u64::from(choose(200)?);
                self.fast.set_time(self.now);
                self.naive.set_time(self.now);
            }
            96..99 => self.protect(firm, choose)?,
            _ => {
                let price = self.draw_price(instrument, Side::Bid, choose)?;
                let set = self.fast.set_reference(instrument, price);
                assert_eq!(set, self.naive.set_reference(instrument, price));
            }
        }
        let agree = self.heard.0.hash == self.heard.1.hash;
        assert!(agree, "events differ at step {}", self.steps);
        Some(())
    }

    fn draw_price(
        &self,
        instrument: InstrumentId,
        side: Side,
        choose: &mut impl FnMut(u32) -> Option<u32>,
    ) -> Option<Price> {
        let (base, tick) = match instrument.0 % 4 {
            2 => (60, 500),
            _ => (10_000, 100),
        };
        // Bids mostly below, asks above, overlapping by three ticks; now and then something invalid.
        let offset = choose(18)? as i64 - 3;
        let ticks = base + if side == Side::Bid { -offset } else { offset };
        let raw = Price::from_4dp(1).raw() * ticks * tick;
        Some(Price::from_raw(match choose(400)? {
            0 => -raw,
            1 => raw + 1,
            2 => 0,
            _ => raw,
        }))
    }

    fn draw_order(
        &self,
        instrument: InstrumentId,
        firm: Firm,
        choose: &mut impl FnMut(u32) -> Option<u32>,
    ) -> Option<NewOrder> {
        let side = Side::BOTH[choose(2)? as usize];
        let price = self.draw_price(instrument, side, choose)?;
        let qty = match choose(20)? {
            0 => choose(250)?,
            n => n % 5 * 100 + 10,
        };
        let mut new = NewOrder {
            owner: Owner(choose(4)?),
            firm,
            ..NewOrder::limit(instrument, side, price, Qty(qty))
        };
        if choose(16)? == 0 {
            new.order_type = OrderType::Market;
        }
        new.time_in_force = match choose(20)? {
            0 => TimeInForce::ImmediateOrCancel,
            1 => TimeInForce::FillOrKill,
            2 => TimeInForce::AtTheOpening,
            3 => TimeInForce::AtTheClose,
            4..6 => TimeInForce::GoodTillCancel,
            _ => TimeInForce::Day,
        };
        new.self_trade = match choose(8)? {
            0 => SelfTrade::CancelNewest,
            1 => SelfTrade::CancelOldest,
            2 => SelfTrade::CancelBoth,
            3 => SelfTrade::Decrement,
            _ => SelfTrade::Allow,
        };
        match choose(32)? {
            0..4 => new.hidden = true,
            4..8 => new.display = Qty(choose(6)? * 30 + 10),
            8..10 => new.post_only = true,
            10..13 => new.stop = Some(self.draw_price(instrument, !side, choose)?),
            13 => new.improvement = Price::from_4dp(100),
            14 => {
                // Whatever goes together or not.
                new.hidden = choose(2)? > 0;
                new.display = Qty(choose(3)? * 10);
                new.post_only = choose(2)? > 0;
                new.stop = (choose(2)? > 0).then_some(price);
            }
            _ => {}
        }
        Some(new)
    }

    /// Another trigger for the latest of the waiting stop orders.
    fn restop(&mut self, firm: Firm, choose: &mut impl FnMut(u32) -> Option<u32>) -> Option<()> {
        let mut stop = None;
        self.fast.visit_parked(&mut |order| {
            if self.fast.stop_price(order.id).is_some() {
                stop = Some((order.id, order.instrument));
            }
        });
        let (id, instrument) = stop.unwrap_or((OrderId(self.last_id), InstrumentId(1)));
        let to = self.draw_order(instrument, firm, choose)?;
        let trigger = self.draw_price(instrument, to.side, choose)?;
        if let Ok(id) = both!(self.replace_stop(id, trigger, to.price, to.qty)) {
            self.last_id = self.last_id.max(id.0);
        }
        Some(())
    }

    fn requote(&mut self, firm: Firm, choose: &mut impl FnMut(u32) -> Option<u32>) -> Option<()> {
        let mut entries = [QuoteEntry::default(); 3];
        let count = 1 + choose(3)? as usize;
        let instruments = self.fast.config().instruments;
        for entry in &mut entries[..count] {
            let instrument = InstrumentId(1 + choose(instruments)?);
            let qty = |n: u32| Qty(n % 4 * 50);
            *entry = QuoteEntry {
                instrument,
                owner: Owner(9),
                bid: self.draw_price(instrument, Side::Bid, choose)?,
                bid_qty: qty(choose(8)?),
                ask: self.draw_price(instrument, Side::Ask, choose)?,
                ask_qty: qty(choose(8)?),
            };
        }
        let (mut fast, mut naive) = ([Ok(()); 3], [Ok(()); 3]);
        let entries = &entries[..count];
        let a = self.fast.mass_quote(firm, entries, &mut fast, &mut self.heard.0);
        let b = self
            .naive
            .mass_quote(firm, entries, &mut naive, &mut self.heard.1);
        assert_eq!((a, fast), (b, naive), "step {}: quotes", self.steps);
        for reject in fast.iter().chain([&a]).filter_map(|result| result.err()) {
            self.heard.0.see(Happened::Rejected(reject));
        }
        Some(())
    }

    fn change_phase(
        &mut self,
        instrument: InstrumentId,
        choose: &mut impl FnMut(u32) -> Option<u32>,
    ) -> Option<()> {
        use TradingStatus::*;
        const KINDS: [AuctionKind; 3] = [
            AuctionKind::Opening,
            AuctionKind::Closing,
            AuctionKind::Resumption,
        ];
        let kind = KINDS[choose(3)? as usize];
        let _ = match (self.fast.trading_status(instrument), choose(48)?) {
            (_, 0) => both!(self.close(instrument)),
            (_, 1) => both!(self.set_status(instrument, QuoteOnly)),
            (_, 2) => both!(self.expire_day(instrument)).map(|_| ()),
            (Some(Trading), 3..15) => both!(self.set_status(instrument, Halted)),
            (Some(Trading), 15..18) => both!(self.set_status(instrument, PreOpen)),
            (Some(Trading), _) => both!(self.begin_auction(instrument, kind)),
            (Some(Auction), 3..40) => both!(self.uncross(instrument, Trading)),
            (_, 3..24) => both!(self.begin_auction(instrument, kind)),
            (_, 24..28) => both!(self.uncross(instrument, Halted)),
            _ => both!(self.set_status(instrument, Trading)),
        };
        Some(())
    }

    fn protect(&mut self, firm: Firm, choose: &mut impl FnMut(u32) -> Option<u32>) -> Option<()> {
        let group = choose(2)?;
        if choose(3)? > 0 {
            let reset = self.fast.reset_protection(firm, group);
            assert_eq!(reset, self.naive.reset_protection(firm, group));
            return Some(());
        }
        let limit = |n: u32| if n.is_multiple_of(3) { u64::from(n) * 20 } else { 0 };
        let limits = Protection {
            window_ns: u64::from(choose(500)?),
            contracts: limit(choose(16)?),
            trades: limit(choose(16)?) as u32 / 40,
            percent: limit(choose(16)?),
            both_sides: limit(choose(16)?),
        };
        let set = self.fast.set_protection(firm, group, limits);
        assert_eq!(set, self.naive.set_protection(firm, group, limits));
        if let Err(reject) = set {
            self.heard.0.see(Happened::Rejected(reject));
        }
        let is_protected = self.fast.is_protected(firm, group);
        assert_eq!(is_protected, self.naive.is_protected(firm, group));
        Some(())
    }
}
