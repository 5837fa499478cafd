//! Auctions, price by price and order by order: `docs/exchange.md`, "Auctions".

use alloc::vec::Vec;

use tickwire_market::{InstrumentId, OrderId, Price, Qty, Side, TradingStatus};

use crate::order::{CancelReason, Cross, CrossFill, Indication, Listener, Order, OrderPlace, Reject};
use crate::rules::AuctionKind;

use super::{Listed, NaiveEngine, Standing, eagerness, rules};

impl NaiveEngine {
    /// See [`crate::Engine::begin_auction`].
    pub fn begin_auction(
        &mut self,
        instrument: InstrumentId,
        kind: AuctionKind,
        out: &mut impl Listener,
    ) -> Result<(), Reject> {
        self.check_known(instrument)?;
        self.listed[instrument.index()].auction = kind;
        self.set_status(instrument, TradingStatus::Auction, out)
    }

    /// See [`crate::Engine::indicate`].
    pub fn indicate(&self, instrument: InstrumentId, out: &mut impl Listener) -> Result<(), Reject> {
        self.check_known(instrument)?;
        let listed = &self.listed[instrument.index()];
        let kind = match listed.status {
            TradingStatus::Auction => listed.auction,
            _ => AuctionKind::Closing,
        };
        let (clearing, paired, mut surplus) = self.clearing(instrument, rules::waits_for(kind));
        if paired == 0 {
            let waiting = |side| -> i64 {
                let standing = self.standing.iter().map(|s| &s.order);
                standing
                    .filter(|o| {
                        o.instrument == instrument
                            && o.side == side
                            && o.terms.place() == rules::waits_for(kind)
                    })
                    .map(|o| i64::from(o.qty.0))
                    .sum()
            };
            surplus = waiting(Side::Bid) - waiting(Side::Ask);
        }
        out.indicated(&Indication {
            instrument,
            kind,
            paired,
            imbalance: surplus.unsigned_abs(),
            side: if surplus < 0 { Side::Ask } else { Side::Bid },
            clearing,
            price: self.reference(instrument),
        });
        out.completed(instrument);
        Ok(())
    }

    /// See [`crate::Engine::uncross`].
    pub fn uncross(
        &mut self,
        instrument: InstrumentId,
        next: TradingStatus,
        out: &mut impl Listener,
    ) -> Result<(), Reject> {
        self.check_known(instrument)?;
        let Listed { status, auction, .. } = self.listed[instrument.index()];
        if status != TradingStatus::Auction {
            return Err(Reject::NotTrading);
        }
        self.cross(
            instrument,
            auction,
            self.clearing(instrument, rules::waits_for(auction)),
            out,
        );
        self.listed[instrument.index()].status = next;
        out.status(instrument, next);
        self.settle(instrument, out);
        Ok(())
    }

    /// See [`crate::Engine::close`].
    pub fn close(&mut self, instrument: InstrumentId, out: &mut impl Listener) -> Result<(), Reject> {
        self.check_known(instrument)?;
        let clearing = if self.listed[instrument.index()].status == TradingStatus::Halted {
            (Price::ZERO, 0, 0)
        } else {
            self.clearing(instrument, OrderPlace::Closing)
        };
        self.cross(instrument, AuctionKind::Closing, clearing, out);
        self.listed[instrument.index()].auction = AuctionKind::Closing;
        self.listed[instrument.index()].status = TradingStatus::Closed;
        out.completed(instrument);
        Ok(())
    }

    fn cross(
        &mut self,
        instrument: InstrumentId,
        kind: AuctionKind,
        (price, volume, _): (Price, u64, i64),
        out: &mut impl Listener,
    ) {
        let place = rules::waits_for(kind);
        self.last_match += 1;
        let cross = Cross {
            instrument,
            kind,
            qty: volume,
            price: if volume > 0 {
                price
            } else {
                self.reference(instrument)
            },
            match_number: self.last_match,
        };
        self.trades.push((cross.match_number, None, false));
        for side in Side::BOTH {
            // Market orders, then the better price; displayed, hidden, waiting; then the older one.
            let mut takes_part: Vec<(i64, u8, usize)> = Vec::new();
            for (at, Standing { order, .. }) in self.standing.iter().enumerate() {
                if self.is_in_auction(order, instrument, side, place) {
                    let rank = if order.is_market() {
                        i64::MIN
                    } else {
                        -eagerness(order)
                    };
                    let class = if order.is_waiting() {
                        2
                    } else {
                        u8::from(order.hidden)
                    };
                    takes_part.push((rank, class, at));
                }
            }
            takes_part.sort();
            let ids: Vec<OrderId> = takes_part.iter().map(|t| self.standing[t.2].order.id).collect();
            let mut left = volume;
            for id in ids {
                if left == 0 {
                    break;
                }
                let Ok(at) = self.position(id) else { continue };
                let before = self.standing[at].order;
                let qty = Qty(before.leaves().min(left) as u32);
                left -= u64::from(qty.0);
                let mut order = before;
                if qty >= before.qty {
                    order.reserve = Qty((before.leaves() - u64::from(qty.0)) as u32);
                    order.qty = Qty(0);
                    self.standing.remove(at);
                } else {
                    order.qty = Qty(before.qty.0 - qty.0);
                    self.standing[at].order = order;
                }
                let from_book = if before.is_waiting() {
                    Qty(0)
                } else {
                    qty.min(before.qty)
                };
                out.cross_filled(&CrossFill {
                    order,
                    qty,
                    from_book,
                    price,
                    match_number: cross.match_number,
                });
                if order.qty == Qty(0) && order.reserve > Qty(0) {
                    self.refresh(order, out);
                }
            }
        }
        if volume > 0 {
            self.listed[instrument.index()].last_sale = price;
            self.listed[instrument.index()].reference = price;
        }
        out.crossed(&cross);
        let mut over = Vec::new();
        self.visit_parked(&mut |order| {
            if order.instrument == instrument && order.terms.place() == place {
                over.push(order.id);
            }
        });
        for id in over {
            if let Ok(at) = self.position(id) {
                self.remove(at, Some(CancelReason::AuctionOver), out);
            }
        }
    }

    /// Price, volume, and surplus to buy.
    fn clearing(&self, instrument: InstrumentId, place: OrderPlace) -> (Price, u64, i64) {
        let volume = |side: Side, price: Price| -> u64 {
            let orders = self.standing.iter().map(|s| &s.order);
            orders
                .filter(|o| self.is_in_auction(o, instrument, side, place))
                .filter(|o| o.is_market() || o.price == price || side.better(o.price, price))
                .map(Order::leaves)
                .sum()
        };
        let reference = self.reference(instrument);
        let both = Side::BOTH;
        let mut candidates: Vec<Price> = Vec::new();
        for Standing { order, .. } in &self.standing {
            if both
                .iter()
                .any(|side| self.is_in_auction(order, instrument, *side, place))
                && !order.is_market()
            {
                candidates.push(order.price);
            }
        }
        if candidates.is_empty() && reference > Price::ZERO {
            candidates.push(reference);
        }
        candidates.sort();
        candidates.dedup();
        let at = |price: &Price| {
            let (demand, supply) = (volume(Side::Bid, *price), volume(Side::Ask, *price));
            (*price, demand.min(supply), demand as i64 - supply as i64)
        };
        let mut results: Vec<(Price, u64, i64)> = candidates.iter().map(at).collect();
        // The most volume.
        let most = results.iter().map(|r| r.1).max().unwrap_or(0);
        if most == 0 {
            return (Price::ZERO, 0, 0);
        }
        results.retain(|r| r.1 == most);
        // The least surplus.
        let least = results.iter().map(|r| r.2.abs()).min().unwrap_or(0);
        results.retain(|r| r.2.abs() == least);
        // Market pressure: all to buy, the highest price; all to sell, the lowest.
        if results.iter().all(|r| r.2 > 0) {
            return results[results.len() - 1];
        }
        if results.iter().all(|r| r.2 < 0) {
            return results[0];
        }
        // The nearest to the reference price; of two, the higher.
        let off = |r: &(Price, u64, i64)| r.0.raw().abs_diff(reference.raw());
        let nearest = results.iter().map(off).min().unwrap_or(0);
        results.retain(|r| off(r) == nearest);
        results[results.len() - 1]
    }

    fn is_in_auction(&self, order: &Order, instrument: InstrumentId, side: Side, place: OrderPlace) -> bool {
        let is_there = order.terms.place() == OrderPlace::Book || order.terms.place() == place;
        order.instrument == instrument && order.side == side && is_there
    }

    /// See [`crate::Engine::reference`].
    pub fn reference(&self, instrument: InstrumentId) -> Price {
        let listed = &self.listed[instrument.index()];
        if listed.last_sale > Price::ZERO {
            return listed.last_sale;
        }
        if listed.reference > Price::ZERO {
            return listed.reference;
        }
        let shown = |side| {
            let orders = self.standing.iter().map(|s| &s.order);
            let shown = orders.filter(|o| o.instrument == instrument && o.side == side && !o.hidden);
            shown
                .filter(|o| !o.is_waiting())
                .max_by_key(|o| eagerness(o))
                .map(|o| o.price)
        };
        shown(Side::Bid).or(shown(Side::Ask)).unwrap_or(Price::ZERO)
    }
}
