//! Continuous trading: `docs/exchange.md`, "Matching rules", from "Priority" to "Price bands".

use alloc::vec::Vec;

use tickwire_market::{InstrumentId, Price, Qty, Side, TimeInForce, TradingStatus};

use crate::order::{CancelReason, Execution, Listener, SelfTrade};
use crate::rules::OnBreach;

use super::rules;
use super::sheet::{Pile, Sheet};
use super::{Board, NaiveEngine};

/// Whether somebody on `side` who goes no further than `limit` pays this price, or takes it.
fn accepts(side: Side, limit: Option<Price>, price: Price) -> bool {
    match (side, limit) {
        (_, None) => true,
        (Side::Bid, Some(limit)) => price <= limit,
        (Side::Ask, Some(limit)) => limit <= price,
    }
}

impl NaiveEngine {
    /// Who is first in the book for an order that comes and goes no further than `limit`.
    pub(super) fn first_for(&self, coming: &Sheet, limit: Option<Price>) -> Option<Sheet> {
        self.within(coming, limit)
            .min_by_key(|sheet| sheet.priority())
            .copied()
    }

    fn within(&self, coming: &Sheet, limit: Option<Price>) -> impl Iterator<Item = &Sheet> + '_ {
        let side = coming.side();
        let others = self.book(coming.instrument(), !side);
        others.filter(move |sheet| accepts(side, limit, sheet.price()))
    }

    /// The end of every request: stops that go off, one after the other, then quotes whose protection was
    /// reached.
    pub(super) fn follow_up(&mut self, instrument: InstrumentId, out: &mut impl Listener) {
        out.completed(instrument);
        while let Some(stop) = self.next_stop(instrument) {
            self.take_away(stop.number);
            let order = Sheet {
                number: self.next_number(),
                pile: Pile::Book,
                ..stop
            };
            out.triggered(&stop.told(), &order.told());
            self.deal(order, out);
            out.completed(instrument);
        }
        for (firm, group) in core::mem::take(&mut self.reached) {
            out.protected(firm, group);
            for (of, instrument, numbers) in self.quotes.clone() {
                if of == firm && self.board(instrument).rules.group == group {
                    let left =
                        numbers.map(|number| self.withdraw(number, Some(CancelReason::Protection), out));
                    if left != [false; 2] {
                        out.completed(instrument);
                    }
                }
            }
        }
    }

    /// "On each side the one whose trigger was passed first (lowest for buys, highest for sells), then the
    /// oldest; between the sides the older one. Stops go off only while the instrument trades."
    fn next_stop(&self, instrument: InstrumentId) -> Option<Sheet> {
        let Board { status, last, .. } = *self.board(instrument);
        if status != TradingStatus::Trading || last == Price::ZERO {
            return None;
        }
        let passed: Vec<Sheet> = self
            .sheets
            .iter()
            .filter(|sheet| sheet.pile == Pile::Stops && sheet.instrument() == instrument)
            .filter(|sheet| match sheet.side() {
                Side::Bid => sheet.trigger() <= last,
                Side::Ask => last <= sheet.trigger(),
            })
            .copied()
            .collect();
        let buys = passed.iter().filter(|sheet| sheet.side() == Side::Bid);
        let sells = passed.iter().filter(|sheet| sheet.side() == Side::Ask);
        let buy = buys.min_by_key(|sheet| (sheet.trigger().raw(), sheet.number));
        let sell = sells.min_by_key(|sheet| (-sheet.trigger().raw(), sheet.number));
        let older = [buy, sell].into_iter().flatten().min_by_key(|sheet| sheet.number);
        older.copied()
    }

    /// An order comes to the book: it trades as far as it may, then stays or expires.
    pub(super) fn deal(&mut self, mut coming: Sheet, out: &mut impl Listener) {
        let id = coming.instrument();
        let board = self.board(id);
        let bands = board.rules.bands;
        let edge = rules::edge(&bands, board.reference, board.last, coming.side());
        let own = coming.has_limit().then(|| coming.price());
        // Of its own limit and the edge of the band whichever is nearer.
        let both = [own, edge].into_iter().flatten();
        let limit = match coming.side() {
            Side::Bid => both.min(),
            Side::Ask => both.max(),
        };
        if coming.asked.time_in_force == TimeInForce::FillOrKill && !self.gets_all(&coming, limit) {
            return out.expired(&coming.told());
        }
        while coming.shown > 0
            && let Some(standing) = self.first_for(&coming, limit)
        {
            match coming.avoids(&standing) {
                true => self.prevent(&mut coming, &standing, out),
                false => self.execute(&mut coming, &standing, out),
            }
        }
        if coming.shown == 0 {
            return;
        }
        let would_go_on = self.first_for(&coming, own).is_some();
        if !rules::is_left_standing(coming.asked.order_type, coming.asked.time_in_force) {
            out.expired(&coming.told());
        } else if self.has_level(&coming) {
            self.lay(coming, out);
        } else {
            out.cancelled(&coming.told(), CancelReason::NoRoom);
            out.expired(&coming.told());
        }
        // "One that would go on pauses the instrument."
        if would_go_on && edge.is_some() && bands.on_breach == OnBreach::Pause {
            self.board_mut(id).status = TradingStatus::Paused;
            out.status(id, TradingStatus::Paused);
        }
    }

    /// "All (reserves included) or nothing. With self-trade prevention, own orders do not count, and one
    /// within the limit ends it unless it would be cancelled (`CancelOldest`)."
    fn gets_all(&self, coming: &Sheet, limit: Option<Price>) -> bool {
        let (own, others): (Vec<&Sheet>, Vec<&Sheet>) =
            self.within(coming, limit).partition(|sheet| coming.avoids(sheet));
        let is_ended = !own.is_empty() && coming.self_trade() != SelfTrade::CancelOldest;
        let there: u64 = others.iter().map(|sheet| sheet.whole()).sum();
        !is_ended && there >= coming.whole()
    }

    fn execute(&mut self, coming: &mut Sheet, standing: &Sheet, out: &mut impl Listener) {
        let qty = coming.shown.min(standing.shown);
        let mut left = *standing;
        left.shown -= qty;
        let had = coming.shown;
        coming.shown -= qty;
        let price = standing.trades_at();
        let execution = Execution {
            maker: left.told(),
            taker: coming.told(),
            qty: Qty(qty),
            price,
            match_number: self.matches.len() as u64 + 1,
        };
        self.matches.push((Some(execution), false));
        self.board_mut(coming.instrument()).last = price;
        self.note(&left);
        out.executed(&execution);
        self.watch(standing, standing.shown, qty);
        self.watch(coming, had, qty);
        self.show_next(&left, out);
    }

    /// What is left of an order in the book: nothing of it lies there when nothing of it is shown.
    pub(super) fn note(&mut self, left: &Sheet) {
        match left.shown {
            0 => self.take_away(left.number),
            _ => {
                let mut sheets = self.sheets.iter_mut();
                if let Some(sheet) = sheets.find(|sheet| sheet.number == left.number) {
                    *sheet = *left;
                }
            }
        }
    }

    /// "When it is gone the next one joins the tail of its queue under a new number."
    pub(super) fn show_next(&mut self, left: &Sheet, out: &mut impl Listener) {
        if left.shown > 0 || left.behind == 0 {
            return;
        }
        let next = Sheet {
            number: self.next_number(),
            ..left.laid_out()
        };
        out.refreshed(&left.told(), &next.told());
        self.lay(next, out);
    }

    /// A trade of a quote counts for the protection of its firm in its group.
    fn watch(&mut self, quote: &Sheet, had: u32, qty: u32) {
        let (firm, group) = (quote.asked.firm, self.board(quote.instrument()).rules.group);
        let now = self.now;
        let mut watches = self.watches.iter_mut();
        let watch = watches.find(|watch| quote.is_quote && (watch.firm, watch.group) == (firm, group));
        if watch.is_some_and(|watch| watch.sees(now, quote.side(), had, qty)) {
            self.reached.push((firm, group));
        }
    }

    /// "Cancel the newest, the oldest, both, or take the smaller quantity from both (`Decrement`; an
    /// iceberg's reserve first)."
    fn prevent(&mut self, coming: &mut Sheet, standing: &Sheet, out: &mut impl Listener) {
        let why = CancelReason::SelfTrade;
        let mode = coming.self_trade();
        let (book, comes) = rules::prevented(mode, standing.whole(), coming.whole());
        if book == standing.whole() {
            self.withdraw(standing.number, Some(why), out);
        } else if book > 0 {
            self.cut(standing.number, book as u32, Some(why), out);
        }
        if comes == 0 {
            return;
        }
        // Who cancels an order says what it had, who makes it smaller what it has.
        let had = *coming;
        coming.shown -= comes as u32;
        if mode == SelfTrade::Decrement {
            out.cancelled(&coming.told(), why);
            out.decremented(&coming.told(), Qty(comes as u32));
            if coming.shown == 0 {
                out.expired(&coming.told());
            }
        } else {
            out.cancelled(&had.told(), why);
            out.expired(&had.told());
        }
    }
}
