//! Call phases and auctions: `docs/exchange.md`, "Auctions", sentence by sentence.

use alloc::vec::Vec;
use core::cmp::Reverse;

use tickwire_market::{InstrumentId, Price, Qty, Side, TradingStatus};

use crate::order::{CancelReason, Cross, CrossFill, Indication, Listener, Reject};
use crate::rules::AuctionKind;

use super::NaiveEngine;
use super::rules;
use super::sheet::{Pile, Sheet};

/// What would trade at a price.
#[derive(Clone, Copy, Debug)]
struct Candidate {
    price: Price,
    bought: u64,
    sold: u64,
}

impl Candidate {
    fn volume(&self) -> u64 {
        self.bought.min(self.sold)
    }

    fn surplus(&self) -> u64 {
        self.bought.abs_diff(self.sold)
    }
}

/// Keeps those of which `what` is least.
fn keep_least<K: Ord>(candidates: &mut Vec<Candidate>, what: impl Fn(&Candidate) -> K) {
    let least = candidates.iter().map(&what).min();
    candidates.retain(|candidate| Some(what(candidate)) == least);
}

impl NaiveEngine {
    /// See [`crate::Engine::begin_auction`].
    pub fn begin_auction(
        &mut self,
        instrument: InstrumentId,
        kind: AuctionKind,
        out: &mut impl Listener,
    ) -> Result<(), Reject> {
        self.known(instrument)?;
        self.board_mut(instrument).auction = kind;
        self.set_status(instrument, TradingStatus::Auction, out)
    }

    /// See [`crate::Engine::indicate`].
    pub fn indicate(&self, instrument: InstrumentId, out: &mut impl Listener) -> Result<(), Reject> {
        self.known(instrument)?;
        let board = self.board(instrument);
        let is_called = board.status == TradingStatus::Auction;
        let kind = if is_called {
            board.auction
        } else {
            AuctionKind::Closing
        };
        let sheets = self.taking_part(instrument, kind);
        let found = self.agreed(instrument, &sheets);
        let [bought, sold] = match found {
            Some(found) => [found.bought, found.sold],
            // "Where nothing would trade, the imbalance is of what waits for the auction."
            None => Side::BOTH.map(|side| {
                let waiting = sheets.iter().filter(|sheet| sheet.pile != Pile::Book);
                let of_side = waiting.filter(|sheet| sheet.side() == side);
                of_side.map(|sheet| u64::from(sheet.shown)).sum()
            }),
        };
        out.indicated(&Indication {
            instrument,
            kind,
            paired: found.map_or(0, |found| found.volume()),
            imbalance: bought.abs_diff(sold),
            side: if sold > bought { Side::Ask } else { Side::Bid },
            clearing: found.map_or(Price::ZERO, |found| found.price),
            price: self.reference(instrument),
        });
        out.completed(instrument);
        Ok(())
    }

    /// See [`crate::Engine::uncross`]: the auction, "then the status changes, and stops are looked at".
    pub fn uncross(
        &mut self,
        instrument: InstrumentId,
        next: TradingStatus,
        out: &mut impl Listener,
    ) -> Result<(), Reject> {
        self.known(instrument)?;
        if self.board(instrument).status != TradingStatus::Auction {
            return Err(Reject::NotTrading);
        }
        self.hold(instrument, self.board(instrument).auction, true, out);
        self.board_mut(instrument).status = next;
        out.status(instrument, next);
        self.follow_up(instrument, out);
        Ok(())
    }

    /// See [`crate::Engine::close`]: "of a halted instrument one in which nothing trades".
    pub fn close(&mut self, instrument: InstrumentId, out: &mut impl Listener) -> Result<(), Reject> {
        self.known(instrument)?;
        let trades = self.board(instrument).status != TradingStatus::Halted;
        self.hold(instrument, AuctionKind::Closing, trades, out);
        let board = self.board_mut(instrument);
        (board.auction, board.status) = (AuctionKind::Closing, TradingStatus::Closed);
        out.completed(instrument);
        Ok(())
    }

    /// Holds an auction.
    fn hold(&mut self, instrument: InstrumentId, kind: AuctionKind, trades: bool, out: &mut impl Listener) {
        let sheets = self.taking_part(instrument, kind);
        let found = self.agreed(instrument, &sheets).filter(|_| trades);
        self.matches.push((None, false));
        let cross = Cross {
            instrument,
            kind,
            qty: found.map_or(0, |found| found.volume()),
            price: found.map_or_else(|| self.reference(instrument), |found| found.price),
            match_number: self.matches.len() as u64,
        };
        for (sheet, part) in parts(&sheets, cross.qty) {
            self.fill(&sheet, part, &cross, out);
        }
        if let Some(found) = found {
            // "The price is the new static reference", and a trade.
            let board = self.board_mut(instrument);
            (board.last, board.reference) = (found.price, found.price);
        }
        out.crossed(&cross);
        // "What waited for this auction and did not trade is cancelled; collected limit orders stay."
        let pile = rules::waits_for(kind);
        for sheet in self.in_order() {
            if sheet.instrument() == instrument && sheet.pile == pile {
                self.withdraw(sheet.number, Some(CancelReason::AuctionOver), out);
            }
        }
    }

    fn fill(&mut self, sheet: &Sheet, part: u64, cross: &Cross, out: &mut impl Listener) {
        let of_slice = part.min(sheet.shown.into()) as u32;
        let mut left = *sheet;
        left.shown -= of_slice;
        left.behind -= part as u32 - of_slice;
        self.note(&left);
        out.cross_filled(&CrossFill {
            order: left.told(),
            qty: Qty(part as u32),
            from_book: match sheet.pile {
                Pile::Book => Qty(of_slice),
                _ => Qty(0),
            },
            price: cross.price,
            match_number: cross.match_number,
        });
        self.show_next(&left, out);
    }

    /// The book, and what waits for this auction, "in this order: market orders, price, displayed, hidden,
    /// waiting for this auction, time".
    fn taking_part(&self, instrument: InstrumentId, kind: AuctionKind) -> Vec<Sheet> {
        let piles = [Pile::Book, rules::waits_for(kind)];
        let mut sheets = self.sheets.clone();
        sheets.retain(|sheet| sheet.instrument() == instrument && piles.contains(&sheet.pile));
        sheets.sort_by_key(|sheet| {
            // Displayed, hidden, waiting.
            let class = match (sheet.pile, sheet.asked.hidden) {
                (Pile::Book, false) => 0,
                (Pile::Book, true) => 1,
                _ => 2,
            };
            (sheet.has_limit(), sheet.dearness(), class, sheet.number)
        });
        sheets
    }

    /// The price of an auction by the five rules; `None` when nothing can trade.
    fn agreed(&self, instrument: InstrumentId, sheets: &[Sheet]) -> Option<Candidate> {
        let reference = self.reference(instrument);
        let limits = sheets.iter().filter(|sheet| sheet.has_limit());
        let mut prices: Vec<Price> = limits.map(Sheet::price).collect();
        // "1. Every limit is a candidate; with market orders alone, the reference price is."
        if prices.is_empty() {
            prices.push(reference);
        }
        let volume = |side: Side, price: Price| -> u64 {
            let willing = sheets
                .iter()
                .filter(|sheet| sheet.side() == side)
                .filter(|sheet| {
                    !sheet.has_limit()
                        || match side {
                            Side::Bid => sheet.price() >= price,
                            Side::Ask => sheet.price() <= price,
                        }
                });
            willing.map(Sheet::whole).sum()
        };
        let candidates = prices.into_iter().map(|price| Candidate {
            price,
            bought: volume(Side::Bid, price),
            sold: volume(Side::Ask, price),
        });
        let is_one = |one: &Candidate| one.price > Price::ZERO && one.volume() > 0;
        let mut left: Vec<Candidate> = candidates.filter(is_one).collect();
        // 2. The most volume; 3. the least surplus.
        keep_least(&mut left, |one| Reverse(one.volume()));
        keep_least(&mut left, Candidate::surplus);
        if left.iter().all(|one| one.bought > one.sold) {
            // 4. The highest if all leave buyers.
            keep_least(&mut left, |one| Reverse(one.price));
        } else if left.iter().all(|one| one.bought < one.sold) {
            // The lowest if all leave sellers.
            keep_least(&mut left, |one| one.price);
        } else {
            // 5. The one nearest to the reference price, the higher of two.
            keep_least(&mut left, |one| one.price.raw().abs_diff(reference.raw()));
            keep_least(&mut left, |one| Reverse(one.price));
        }
        left.first().copied()
    }

    /// "The last sale, else the static reference, else a best price", displayed, of who buys before who
    /// sells.
    fn reference(&self, instrument: InstrumentId) -> Price {
        let board = self.board(instrument);
        let shown = |side| {
            let displayed = self.book(instrument, side).filter(|sheet| !sheet.asked.hidden);
            displayed.min_by_key(|sheet| sheet.dearness()).map(Sheet::price)
        };
        let told =
            [board.last, board.reference].map(|price| Some(price).filter(|price| *price > Price::ZERO));
        let [last, reference] = told;
        let first = last
            .or(reference)
            .or_else(|| shown(Side::Bid))
            .or_else(|| shown(Side::Ask));
        first.unwrap_or(Price::ZERO)
    }
}

/// Who gets how much of it, bids first.
fn parts(sheets: &[Sheet], volume: u64) -> Vec<(Sheet, u64)> {
    let mut parts = Vec::new();
    for side in Side::BOTH {
        let mut left = volume;
        for sheet in sheets.iter().filter(|sheet| sheet.side() == side) {
            let part = sheet.whole().min(left);
            left -= part;
            if part > 0 {
                parts.push((*sheet, part));
            }
        }
    }
    parts
}
