//! The matching engine as one would explain it: a heap of sheets, one for each order, looked through anew for
//! every question. The oracle of [`crate::Engine`], written from `docs/exchange.md` and with nothing of the
//! engine: never optimised, it keeps no queues, no levels and no sums.
//!
//! ```text
//! request ─► what is wrong with it? (`entering.rs`) ─► sheets (`sheet.rs`) are laid, cut, taken away
//!                                                    ├─ continuous trading, stops, protection: `trading.rs`
//!                                                    ├─ call phases and auctions: `auction.rs`
//!                                                    └─ quotes and mass cancels: `many.rs`
//! ```
//! `rules.rs` has the tables and sentences of the page that need no sheets.

use alloc::vec::Vec;

use tickwire_market::{InstrumentId, OrderId, Price, Qty, Side, TradingStatus};

use crate::engine::EngineConfig;
use crate::order::{
    BreakReason, Broken, CancelReason, Execution, Firm, Listener, NewOrder, Order, Owner, Party, Reject,
    StateHash,
};
use crate::rules::{AuctionKind, Rules};

mod auction;
mod entering;
mod many;
mod rules;
mod sheet;
mod trading;

use rules::{Goes, Watch};
use sheet::{Pile, Sheet};

/// What is written about an instrument.
#[derive(Clone)]
struct Board {
    rules: Rules,
    status: TradingStatus,
    auction: AuctionKind,
    last: Price,
    reference: Price,
}

/// The oracle. Same rules, same answers, same events as [`crate::Engine`].
pub struct NaiveEngine {
    config: EngineConfig,
    boards: Vec<Board>,
    sheets: Vec<Sheet>,
    /// Who quoted what, in order of the first quote, and the numbers of the latest orders.
    quotes: Vec<(Firm, InstrumentId, [u64; 2])>,
    watches: Vec<Watch>,
    /// Firms and groups whose protection the request has reached.
    reached: Vec<(Firm, u32)>,
    now: u64,
    numbers: u64,
    /// Every match by its number, from 1, and whether it is broken; auctions without a trade.
    matches: Vec<(Option<Execution>, bool)>,
}

impl NaiveEngine {
    /// See [`crate::Engine::new`].
    pub fn new(config: EngineConfig) -> NaiveEngine {
        let board = Board {
            rules: Rules::default(),
            status: TradingStatus::PreOpen,
            auction: AuctionKind::Opening,
            last: Price::ZERO,
            reference: Price::ZERO,
        };
        NaiveEngine {
            config,
            boards: alloc::vec![board; config.instruments as usize + 1],
            sheets: Vec::new(),
            quotes: Vec::new(),
            watches: Vec::new(),
            reached: Vec::new(),
            now: 0,
            numbers: 0,
            matches: Vec::new(),
        }
    }

    /// See [`crate::Engine::set_rules`].
    pub fn set_rules(&mut self, instrument: InstrumentId, rules: Rules) {
        self.board_mut(instrument).rules = rules;
    }

    /// See [`crate::Engine::set_time`].
    pub fn set_time(&mut self, now_ns: u64) {
        self.now = self.now.max(now_ns);
    }

    /// See [`crate::Engine::set_reference`].
    pub fn set_reference(&mut self, instrument: InstrumentId, price: Price) -> Result<(), Reject> {
        self.known(instrument)?;
        if !self.is_price(instrument, price) {
            return Err(Reject::PriceRange);
        }
        self.board_mut(instrument).reference = price;
        Ok(())
    }

    /// See [`crate::Engine::set_status`]. "A crossed book cannot go back to `Trading` without an auction."
    pub fn set_status(
        &mut self,
        instrument: InstrumentId,
        status: TradingStatus,
        out: &mut impl Listener,
    ) -> Result<(), Reject> {
        self.known(instrument)?;
        let best = |side| self.best_price(instrument, side);
        let is_crossed = match (best(Side::Bid), best(Side::Ask)) {
            (Some(bid), Some(ask)) => ask <= bid,
            _ => false,
        };
        if is_crossed && status == TradingStatus::Trading {
            return Err(Reject::NotTrading);
        }
        self.board_mut(instrument).status = status;
        out.status(instrument, status);
        self.follow_up(instrument, out);
        Ok(())
    }

    /// See [`crate::Engine::submit`].
    pub fn submit(&mut self, new: &NewOrder, out: &mut impl Listener) -> Result<OrderId, Reject> {
        let (goes, mut sheet) = self.entered(new)?;
        sheet.number = self.next_number();
        out.accepted(&sheet.told());
        match goes {
            Goes::Matched => self.deal(sheet, out),
            Goes::Collected => self.lay(sheet, out),
            Goes::Waits(_) => {
                self.sheets.push(sheet);
                out.parked(&sheet.told());
            }
        }
        self.follow_up(new.instrument, out);
        Ok(OrderId(sheet.number))
    }

    /// See [`crate::Engine::cancel`].
    pub fn cancel(&mut self, id: OrderId, out: &mut impl Listener) -> Result<(), Reject> {
        let sheet = self.find(id)?;
        self.withdraw(sheet.number, None, out);
        out.completed(sheet.instrument());
        Ok(())
    }

    /// See [`crate::Engine::reduce`].
    pub fn reduce(&mut self, id: OrderId, by: Qty, out: &mut impl Listener) -> Result<(), Reject> {
        let sheet = self.find(id)?;
        match u64::from(by.0) {
            0 => return Err(Reject::Quantity),
            by if by >= sheet.whole() => return self.cancel(id, out),
            _ => {}
        }
        if !self.is_in_lots(sheet.instrument(), by) {
            return Err(Reject::Lot);
        }
        self.cut(sheet.number, by.0, None, out);
        out.completed(sheet.instrument());
        Ok(())
    }

    /// See [`crate::Engine::replace`].
    pub fn replace(
        &mut self,
        id: OrderId,
        price: Price,
        qty: Qty,
        out: &mut impl Listener,
    ) -> Result<OrderId, Reject> {
        let old = self.find(id)?;
        if old.pile != Pile::Book {
            let stop = old.asked.stop;
            return self.replace_waiting(&old, stop, price, qty, out);
        }
        let goes = self.replaceable(&old, price, qty)?;
        // "A lower quantity keeps priority and number; everything else loses them, and may trade first."
        if price == old.price() && u64::from(qty.0) <= old.whole() {
            let by = old.whole() as u32 - qty.0;
            if by > 0 {
                self.cut(old.number, by, None, out);
            }
            out.completed(old.instrument());
            return Ok(id);
        }
        let mut new = Sheet::of(NewOrder {
            price,
            qty,
            ..old.asked
        });
        self.passes_once_replaced(goes, &mut new)?;
        self.take_away(old.number);
        new.number = self.next_number();
        let finds_somebody = self.first_for(&new, Some(new.price())).is_some();
        if goes == Goes::Matched && finds_somebody {
            out.replaced(&old.told(), &new.told(), false);
            self.deal(new, out);
        } else {
            let laid = new.laid_out();
            self.sheets.push(laid);
            out.replaced(&old.told(), &laid.told(), true);
        }
        self.follow_up(new.instrument(), out);
        Ok(OrderId(new.number))
    }

    /// See [`crate::Engine::replace_stop`].
    pub fn replace_stop(
        &mut self,
        id: OrderId,
        stop: Price,
        price: Price,
        qty: Qty,
        out: &mut impl Listener,
    ) -> Result<OrderId, Reject> {
        let old = self.find(id)?;
        match old.pile {
            Pile::Stops => self.replace_waiting(&old, Some(stop), price, qty, out),
            _ => Err(Reject::UnknownOrder),
        }
    }

    /// "Waiting orders are replaced where they wait."
    fn replace_waiting(
        &mut self,
        old: &Sheet,
        stop: Option<Price>,
        price: Price,
        qty: Qty,
        out: &mut impl Listener,
    ) -> Result<OrderId, Reject> {
        let mut new = *old;
        new.asked.stop = stop;
        new.asked.qty = qty;
        new.shown = qty.0;
        if old.has_limit() {
            new.asked.price = price;
        }
        self.may_wait_instead(&new)?;
        let is_less = qty.0 <= old.shown;
        if is_less && (new.price(), new.trigger()) == (old.price(), old.trigger()) {
            if qty.0 < old.shown {
                self.cut(old.number, old.shown - qty.0, None, out);
            }
            out.completed(old.instrument());
            return Ok(OrderId(old.number));
        }
        if !self.has_level(&new) {
            return Err(Reject::Full);
        }
        self.take_away(old.number);
        new.number = self.next_number();
        self.sheets.push(new);
        out.reparked(&old.told(), &new.told());
        self.follow_up(new.instrument(), out);
        Ok(OrderId(new.number))
    }

    /// See [`crate::Engine::break_trade`]: "the last 65,536 trades of clients are kept for it, and as many
    /// others". Auctions are among the others.
    pub fn break_trade(
        &mut self,
        match_number: u64,
        reason: BreakReason,
        out: &mut impl Listener,
    ) -> Result<(), Reject> {
        let is_clients = |(trade, _): &&(Option<Execution>, bool)| {
            let parties = trade.map(|trade| [trade.maker.owner, trade.taker.owner]);
            parties.is_some_and(|owners| owners != [Owner::HOUSE; 2])
        };
        let at = (match_number as usize)
            .checked_sub(1)
            .filter(|at| *at < self.matches.len())
            .ok_or(Reject::UnknownTrade)?;
        let (this, later) = (&self.matches[at], &self.matches[at + 1..]);
        let of_kind = is_clients(&this);
        if later.iter().filter(|one| is_clients(one) == of_kind).count() >= rules::TRADES {
            return Err(Reject::UnknownTrade);
        }
        let trade = match this {
            (None, _) => return Err(Reject::AuctionTrade),
            (Some(_), true) => return Err(Reject::BrokenTrade),
            (Some(trade), false) => *trade,
        };
        self.matches[at].1 = true;
        let [maker, taker] = [trade.maker, trade.taker].map(|order| Party {
            owner: order.owner,
            id: order.id,
            side: order.side,
        });
        out.broken(&Broken {
            instrument: trade.taker.instrument,
            match_number,
            qty: trade.qty,
            price: trade.price,
            maker,
            taker,
            reason,
        });
        out.completed(trade.taker.instrument);
        Ok(())
    }

    /// See [`crate::Engine::state_hash`].
    pub fn state_hash(&self) -> u64 {
        let mut hash = StateHash::default();
        let (in_book, waiting): (Vec<Sheet>, Vec<Sheet>) = self
            .in_order()
            .into_iter()
            .partition(|sheet| sheet.pile == Pile::Book);
        for sheet in &in_book {
            hash.order(&sheet.told());
        }
        for sheet in &waiting {
            hash.order(&sheet.told());
            let trigger = match sheet.pile {
                Pile::Stops => sheet.trigger(),
                _ => Price::ZERO,
            };
            hash.word(trigger.raw() as u64);
        }
        for board in &self.boards[1..] {
            hash.word((board.status as u64) << 8 | board.auction as u64);
            hash.word(board.last.raw() as u64);
            hash.word(board.reference.raw() as u64);
        }
        let broken = self.matches.iter().filter(|(_, is_broken)| *is_broken);
        hash.word(broken.count() as u64);
        hash.value()
    }

    /// Every sheet, instrument by instrument: the book, then what waits, stops first; of each bids first,
    /// displayed before hidden, and whichever is next to trade or go off before the others.
    fn in_order(&self) -> Vec<Sheet> {
        let mut sheets = self.sheets.clone();
        sheets.sort_by_key(|sheet| {
            let next = match (sheet.pile, sheet.side()) {
                (Pile::Stops, Side::Bid) => sheet.trigger().raw(),
                (Pile::Stops, Side::Ask) => -sheet.trigger().raw(),
                _ if !sheet.has_limit() => i64::MIN,
                _ => sheet.dearness(),
            };
            // What waits is not displayed anyway.
            let of_side = (sheet.side(), sheet.pile == Pile::Book && sheet.asked.hidden);
            (sheet.instrument(), sheet.pile, of_side, next, sheet.number)
        });
        sheets
    }

    fn board(&self, instrument: InstrumentId) -> &Board {
        &self.boards[instrument.index()]
    }

    fn board_mut(&mut self, instrument: InstrumentId) -> &mut Board {
        &mut self.boards[instrument.index()]
    }

    fn next_number(&mut self) -> u64 {
        self.numbers += 1;
        self.numbers
    }

    fn find(&self, id: OrderId) -> Result<Sheet, Reject> {
        let mut sheets = self.sheets.iter();
        let found = sheets.find(|sheet| sheet.number == id.0);
        found.copied().ok_or(Reject::UnknownOrder)
    }

    /// What lies in the book of an instrument on one side.
    fn book(&self, instrument: InstrumentId, side: Side) -> impl Iterator<Item = &Sheet> + '_ {
        let of_book = self.sheets.iter().filter(|sheet| sheet.pile == Pile::Book);
        of_book.filter(move |sheet| sheet.instrument() == instrument && sheet.side() == side)
    }

    /// The best price of a side, hidden orders included.
    fn best_price(&self, instrument: InstrumentId, side: Side) -> Option<Price> {
        let best = self.book(instrument, side).min_by_key(|sheet| sheet.dearness());
        best.map(Sheet::price)
    }

    /// Lays an order into the book.
    fn lay(&mut self, sheet: Sheet, out: &mut impl Listener) {
        let laid = sheet.laid_out();
        self.sheets.push(laid);
        out.rested(&laid.told());
    }

    fn take_away(&mut self, number: u64) {
        self.sheets.retain(|sheet| sheet.number != number);
    }

    /// Takes an order away and says so: feeds hear of what was in the book.
    fn withdraw(&mut self, number: u64, reason: Option<CancelReason>, out: &mut impl Listener) -> bool {
        let Ok(sheet) = self.find(OrderId(number)) else {
            return false;
        };
        self.take_away(number);
        let order: Order = sheet.told();
        if let Some(reason) = reason {
            out.cancelled(&order, reason);
        }
        match sheet.pile {
            Pile::Book => out.deleted(&order),
            _ => out.expired(&order),
        }
        true
    }

    /// Makes an order smaller where it lies, by less than all: "reductions take the reserve first".
    fn cut(&mut self, number: u64, by: u32, reason: Option<CancelReason>, out: &mut impl Listener) {
        let Some(sheet) = self.sheets.iter_mut().find(|sheet| sheet.number == number) else {
            return;
        };
        let before = sheet.told();
        let of_reserve = sheet.behind.min(by);
        let of_slice = by - of_reserve;
        sheet.behind -= of_reserve;
        sheet.shown -= of_slice;
        let (after, pile) = (sheet.told(), sheet.pile);
        if let Some(reason) = reason {
            out.cancelled(&after, reason);
        }
        match (pile, of_slice) {
            (Pile::Book, 0) => out.reserve_reduced(&after, Qty(by)),
            (Pile::Book, of_slice) => out.reduced(&after, Qty(of_slice)),
            _ => out.reparked(&before, &after),
        }
    }
}
