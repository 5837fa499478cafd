//! Call phases and their end: one price at which the most can trade.

use tickwire_market::{InstrumentId, Price, Qty, Side, TradingStatus};

use super::{Engine, LADDERS, Rung, key_of, place_of};
use crate::order::{CancelReason, Cross, CrossFill, Indication, Listener, Order, OrderPlace, Reject};
use crate::rules::AuctionKind;

/// What an auction comes to.
#[derive(Clone, Copy, Default)]
struct Clearing {
    /// 0 if nothing can trade.
    price: Price,
    volume: u64,
    /// More to buy at this price; below 0, more to sell.
    surplus: i64,
}

/// Compares prices, ascending, by what could trade at each.
struct Best {
    reference: Price,
    volume: u64,
    low: Clearing,
    high: Clearing,
    nearest: Clearing,
    /// Surpluses among the equally good: to buy, none, to sell.
    surpluses: [bool; 3],
}

impl Best {
    fn new(reference: Price) -> Best {
        Best {
            reference,
            volume: 0,
            low: Clearing::default(),
            high: Clearing::default(),
            nearest: Clearing::default(),
            surpluses: [false; 3],
        }
    }

    fn consider(&mut self, price: Price, demand: u64, supply: u64) {
        let here = Clearing {
            price,
            volume: demand.min(supply),
            surplus: demand as i64 - supply as i64,
        };
        let distance = |at: &Clearing| at.surplus.unsigned_abs();
        let order = here
            .volume
            .cmp(&self.volume)
            .then(distance(&self.low).cmp(&distance(&here)));
        if here.volume == 0 || order.is_lt() {
            return;
        }
        if order.is_gt() {
            *self = Best {
                volume: here.volume,
                low: here,
                nearest: here,
                ..Best::new(self.reference)
            };
        }
        self.high = here;
        let off = |at: &Clearing| at.price.raw().abs_diff(self.reference.raw());
        if off(&here) <= off(&self.nearest) {
            self.nearest = here;
        }
        self.surpluses[(1 - here.surplus.signum()) as usize] = true;
    }

    fn result(&self) -> Clearing {
        match self.surpluses {
            [true, false, false] => self.high,
            [false, false, true] => self.low,
            _ => self.nearest,
        }
    }
}

impl Engine {
    /// Begins a call phase: limit orders are collected and shown, the book may cross, nothing trades until
    /// [`Engine::uncross`]. Orders without a limit wait.
    pub fn begin_auction(
        &mut self,
        instrument: InstrumentId,
        kind: AuctionKind,
        out: &mut impl Listener,
    ) -> Result<(), Reject> {
        self.listing(instrument)?;
        let listed = &mut self.listed[instrument.index()];
        listed.auction = kind;
        listed.status = TradingStatus::Auction;
        out.status(instrument, TradingStatus::Auction);
        self.settle(instrument, out);
        Ok(())
    }

    /// Tells what the auction would do now: the one whose call phase it is, else the closing.
    pub fn indicate(&self, instrument: InstrumentId, out: &mut impl Listener) -> Result<(), Reject> {
        let listed = self.listing(instrument)?;
        let kind = match listed.status {
            TradingStatus::Auction => listed.auction,
            _ => AuctionKind::Closing,
        };
        let Clearing {
            price,
            volume,
            mut surplus,
        } = self.clearing(instrument, place_of(kind));
        if volume == 0 {
            // What waits for the auction finds nobody.
            let [bids, asks] = Side::BOTH.map(|side| self.waiting(instrument, side, place_of(kind)));
            surplus = bids as i64 - asks as i64;
        }
        out.indicated(&Indication {
            instrument,
            kind,
            paired: volume,
            imbalance: surplus.unsigned_abs(),
            side: if surplus >= 0 { Side::Bid } else { Side::Ask },
            clearing: price,
            price: self.reference(instrument),
        });
        out.completed(instrument);
        Ok(())
    }

    /// Ends a call phase: what can trade does so at one price, what waited for this auction and did not trade
    /// is cancelled, then the instrument has the status `next`.
    pub fn uncross(
        &mut self,
        instrument: InstrumentId,
        next: TradingStatus,
        out: &mut impl Listener,
    ) -> Result<(), Reject> {
        let listed = self.listing(instrument)?;
        if listed.status != TradingStatus::Auction {
            return Err(Reject::NotTrading);
        }
        let kind = listed.auction;
        self.cross(instrument, kind, self.clearing(instrument, place_of(kind)), out);
        self.listed[instrument.index()].status = next;
        out.status(instrument, next);
        self.settle(instrument, out);
        Ok(())
    }

    /// Closes an instrument: the closing auction takes place with what waits for it and the book; the book's
    /// other orders stay as they are and nothing trades any more. In that of one that is
    /// [`TradingStatus::Halted`] nothing trades.
    pub fn close(&mut self, instrument: InstrumentId, out: &mut impl Listener) -> Result<(), Reject> {
        let clearing = match self.listing(instrument)?.status {
            TradingStatus::Halted => Clearing::default(),
            _ => self.clearing(instrument, OrderPlace::Closing),
        };
        self.cross(instrument, AuctionKind::Closing, clearing, out);
        let listed = &mut self.listed[instrument.index()];
        listed.auction = AuctionKind::Closing;
        listed.status = TradingStatus::Closed;
        out.completed(instrument);
        Ok(())
    }

    fn cross(
        &mut self,
        instrument: InstrumentId,
        kind: AuctionKind,
        Clearing { price, volume, .. }: Clearing,
        out: &mut impl Listener,
    ) {
        let place = place_of(kind);
        let reference = self.reference(instrument);
        self.last_match += 1;
        let cross = Cross {
            instrument,
            kind,
            qty: volume,
            price: if volume > 0 { price } else { reference },
            match_number: self.last_match,
        };
        self.trades.keep_cross(&cross);
        for side in Side::BOTH {
            self.fill(&cross, side, place, out);
        }
        if volume > 0 {
            let listed = &mut self.listed[instrument.index()];
            listed.last_sale = price;
            listed.reference = price;
        }
        out.crossed(&cross);
        for side in Side::BOTH {
            let ladder = waiting_ladder(instrument, side, place);
            while let Some(slot) = self.ladders.first(ladder) {
                self.remove(slot, Some(CancelReason::AuctionOver), out);
            }
        }
    }

    /// One side's orders get what the auction has for them: market orders, then by price, then displayed
    /// before hidden before waiting ones, then by time. An iceberg takes part with all it has at the place of
    /// its slice.
    fn fill(&mut self, cross: &Cross, side: Side, place: OrderPlace, out: &mut impl Listener) {
        let ladders = ladders_of(cross.instrument, side, place);
        let mut left = cross.qty;
        while left > 0 {
            let best = |ladder: usize| self.ladders.best(ladder);
            let first = ladders
                .into_iter()
                .reduce(|a, b| if best(b) > best(a) { b } else { a });
            let Some((ladder, slot)) = first.and_then(|l| Some((l, self.ladders.first(l)?))) else {
                return;
            };
            debug_assert!(best(ladder) >= key_of(side, cross.price));
            let before = self.slots[slot as usize].order;
            let qty = Qty(before.leaves().min(left) as u32);
            left -= u64::from(qty.0);
            let order = if qty >= before.qty {
                self.unrest(slot);
                Order {
                    qty: Qty::ZERO,
                    reserve: Qty((before.leaves() - u64::from(qty.0)) as u32),
                    ..before
                }
            } else {
                self.take(slot, qty)
            };
            out.cross_filled(&CrossFill {
                order,
                qty,
                from_book: match before.is_waiting() {
                    true => Qty::ZERO,
                    false => qty.min(before.qty),
                },
                price: cross.price,
                match_number: cross.match_number,
            });
            if order.qty.is_zero() && !order.reserve.is_zero() {
                self.refresh(order, out);
            }
        }
    }

    /// The price at which the most can trade. The higher a limit, the less is bought at it and the more is
    /// sold. So only the last two limits matter at which no less would be bought than sold, and the first two
    /// at which less would: those below and above have a smaller volume or leave more over. (More than two
    /// are not equally good, as each limit has an order on one side at least.) From the best limits on it is
    /// not far to them.
    fn clearing(&self, instrument: InstrumentId, place: OrderPlace) -> Clearing {
        let [bids, asks] = Side::BOTH.map(|side| {
            let ladders = ladders_of(instrument, side, place);
            Part::new(ladders.map(|ladder| self.ladders.of(ladder)), self)
        });
        let mut best = Best::new(self.reference(instrument));
        let Some(at) = bids.next().or_else(|| asks.next().map(|key| -key)) else {
            if best.reference > Price::ZERO {
                best.consider(best.reference, bids.volume, asks.volume);
            }
            return best.result();
        };
        let mut limit = Limit::new(at, bids, asks, self);
        while limit.surplus() >= 0 && limit.go_up(self) {}
        while limit.surplus() < 0 && limit.go_down(self) {}
        limit.go_down(self);
        for _ in 0..4 {
            best.consider(Price::from_raw(limit.at), limit.bids.volume, limit.asks.volume);
            if !limit.go_up(self) {
                break;
            }
        }
        best.result()
    }

    fn waiting(&self, instrument: InstrumentId, side: Side, place: OrderPlace) -> u64 {
        let rungs = self.ladders.of(waiting_ladder(instrument, side, place));
        rungs.iter().map(|rung| self.ladders.queue_of(rung).volume).sum()
    }
}

/// What takes part of one side at a price: its market orders, and its limits from the best on.
struct Part<'a> {
    /// Without market orders.
    limits: [&'a [Rung]; 3],
    /// How many of each take part.
    counts: [usize; 3],
    volume: u64,
}

impl<'a> Part<'a> {
    /// The market orders alone.
    fn new(ladders: [&'a [Rung]; 3], engine: &Engine) -> Part<'a> {
        let limits = ladders.map(without_market);
        let market = ladders
            .iter()
            .zip(limits)
            .flat_map(|(all, limits)| &all[limits.len()..]);
        Part {
            limits,
            counts: [0; 3],
            volume: market.map(|rung| engine.volume(rung)).sum(),
        }
    }

    /// The level of a ladder that is the `nth` from the best.
    fn nth(&self, ladder: usize, nth: usize) -> Option<&'a Rung> {
        let limits = self.limits[ladder];
        limits.get(limits.len().checked_sub(nth + 1)?)
    }

    /// The key of the best limit that does not take part.
    fn next(&self) -> Option<i64> {
        let next = |ladder| self.nth(ladder, self.counts[ladder]);
        (0..3).filter_map(next).map(|rung| rung.key).max()
    }

    /// The key of the worst limit that takes part, apart from `key`, which is no better than any.
    fn last_before(&self, key: i64) -> Option<i64> {
        let last = |ladder| {
            let count: usize = self.counts[ladder];
            let last = self.nth(ladder, count.checked_sub(1)?)?.key;
            match last == key {
                true => self.nth(ladder, count.checked_sub(2)?).map(|rung| rung.key),
                false => Some(last),
            }
        };
        (0..3).filter_map(last).min()
    }

    /// The next limit takes part, if it is this one.
    fn join(&mut self, key: i64, engine: &Engine) {
        for ladder in 0..3 {
            let next = self.nth(ladder, self.counts[ladder]);
            if let Some(rung) = next.filter(|rung| rung.key == key) {
                self.volume += engine.volume(rung);
                self.counts[ladder] += 1;
            }
        }
    }

    /// The worst limit does not take part any more, if it is this one.
    fn leave(&mut self, key: i64, engine: &Engine) {
        for ladder in 0..3 {
            let last = self.counts[ladder].checked_sub(1);
            let last = last.and_then(|last| self.nth(ladder, last));
            if let Some(rung) = last.filter(|rung| rung.key == key) {
                self.volume -= engine.volume(rung);
                self.counts[ladder] -= 1;
            }
        }
    }
}

/// A limit of any side, and what takes part at it: bids at it and above, asks at it and below.
struct Limit<'a> {
    at: i64,
    bids: Part<'a>,
    asks: Part<'a>,
}

impl<'a> Limit<'a> {
    /// The first one: the best bid, or where there is none the best ask.
    fn new(at: i64, bids: Part<'a>, asks: Part<'a>, engine: &Engine) -> Limit<'a> {
        let mut limit = Limit { at, bids, asks };
        limit.bids.join(at, engine);
        while let Some(key) = limit.asks.next().filter(|key| -key <= at) {
            limit.asks.join(key, engine);
        }
        limit
    }

    /// More to buy; below 0, more to sell.
    fn surplus(&self) -> i64 {
        self.bids.volume as i64 - self.asks.volume as i64
    }

    /// To the next higher limit; `false` if there is none.
    fn go_up(&mut self, engine: &Engine) -> bool {
        let ask = self.asks.next().map(|key| -key);
        let Some(next) = ask.into_iter().chain(self.bids.last_before(self.at)).min() else {
            return false;
        };
        self.bids.leave(self.at, engine);
        self.asks.join(-next, engine);
        self.at = next;
        true
    }

    /// To the next lower limit; `false` if there is none.
    fn go_down(&mut self, engine: &Engine) -> bool {
        let ask = self.asks.last_before(-self.at).map(|key| -key);
        let Some(next) = ask.into_iter().chain(self.bids.next()).max() else {
            return false;
        };
        self.asks.leave(-self.at, engine);
        self.bids.join(next, engine);
        self.at = next;
        true
    }
}

/// Market orders stand at the best end.
fn without_market(rungs: &[Rung]) -> &[Rung] {
    match rungs.split_last() {
        Some((last, limits)) if last.key == i64::MAX => limits,
        _ => rungs,
    }
}

fn waiting_ladder(instrument: InstrumentId, side: Side, place: OrderPlace) -> usize {
    instrument.index() * LADDERS + 2 + place as usize * 2 + side as usize
}

/// Displayed, hidden, waiting.
fn ladders_of(instrument: InstrumentId, side: Side, place: OrderPlace) -> [usize; 3] {
    let shown = instrument.index() * LADDERS + side as usize * 2;
    [shown, shown + 1, waiting_ladder(instrument, side, place)]
}
