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
            while let Some(rung) = self.ladders[ladder].0.last() {
                let slot = self.queue_of(rung).head;
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
            let best = |ladder: usize| self.ladders[ladder].0.last().map_or(i64::MIN, |rung| rung.key);
            let first = ladders
                .into_iter()
                .reduce(|a, b| if best(b) > best(a) { b } else { a });
            let Some(rung) = first.and_then(|ladder| self.ladders[ladder].0.last()) else {
                return;
            };
            debug_assert!(rung.key == i64::MAX || rung.key >= key_of(side, cross.price));
            let slot = self.queue_of(rung).head;
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

    /// Goes through all limits of both sides, from the lowest, knowing at each what would be bought and what
    /// would be sold.
    fn clearing(&self, instrument: InstrumentId, place: OrderPlace) -> Clearing {
        let [bids, asks] = Side::BOTH
            .map(|side| ladders_of(instrument, side, place).map(|ladder| self.ladders[ladder].0.as_slice()));
        // Between auctions nothing crosses, and no level has to be looked at.
        let best = |ladders: [&[Rung]; 3]| {
            ladders
                .iter()
                .filter_map(|rungs| rungs.last().map(|r| r.key))
                .max()
        };
        if best(bids).zip(best(asks)).is_none_or(|(bid, ask)| bid < -ask) {
            return Clearing::default();
        }
        let mut demand: u64 = bids
            .iter()
            .flat_map(|rungs| rungs.iter())
            .map(|r| self.volume(r))
            .sum();
        let mut supply = 0;
        // Lowest price first: bids from the front, asks from the back.
        let mut bids = bids.map(|rungs| without_market(rungs).iter().peekable());
        let mut asks = asks.map(|rungs| {
            let limits = without_market(rungs);
            supply += rungs[limits.len()..].iter().map(|r| self.volume(r)).sum::<u64>();
            limits.iter().rev().peekable()
        });
        let mut best = Best::new(self.reference(instrument));
        let mut has_limits = false;
        loop {
            let bid = bids
                .iter_mut()
                .filter_map(|rungs| rungs.peek().map(|r| r.key))
                .min();
            let ask = asks
                .iter_mut()
                .filter_map(|rungs| rungs.peek().map(|r| -r.key))
                .min();
            let Some(raw) = bid.into_iter().chain(ask).min() else {
                break;
            };
            has_limits = true;
            for rungs in &mut asks {
                if let Some(rung) = rungs.next_if(|r| -r.key == raw) {
                    supply += self.volume(rung);
                }
            }
            best.consider(Price::from_raw(raw), demand, supply);
            for rungs in &mut bids {
                if let Some(rung) = rungs.next_if(|r| r.key == raw) {
                    demand -= self.volume(rung);
                }
            }
        }
        if !has_limits && best.reference > Price::ZERO {
            best.consider(best.reference, demand, supply);
        }
        best.result()
    }

    fn waiting(&self, instrument: InstrumentId, side: Side, place: OrderPlace) -> u64 {
        let rungs = &self.ladders[waiting_ladder(instrument, side, place)].0;
        rungs.iter().map(|rung| self.queue_of(rung).volume).sum()
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
