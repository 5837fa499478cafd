//! Which instruments the options and the underlying are, as far as the feed has said, and which of them
//! trade.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;
use tickwire_market::{
    BookState, BookUpdate, Cause, Instrument, InstrumentId, Price, Side, Symbol, TradingStatus,
};

use super::QuotedOption;
use crate::strategy::Context;

/// See the module.
#[derive(Debug)]
pub(super) struct Known {
    symbol: Symbol,
    underlying: Option<InstrumentId>,
    /// Its book as it was shown last.
    top: Option<BookUpdate>,
    underlying_trades: bool,
    /// By quote.
    ids: Box<[Option<InstrumentId>]>,
    /// By instrument, from the lowest on: its quote.
    quotes: Vec<u16>,
    lowest: u32,
    /// By quote: whether it is traded.
    is_open: Box<[bool]>,
    /// By quote: whether its status was said.
    must_trade: bool,
}

/// No quote.
const NONE: u16 = u16::MAX;
/// Instruments between the lowest and the highest of the options that a table is kept for; of others further
/// apart every option is looked through.
const SPAN_MAX: usize = 1 << 16;

impl Known {
    pub(super) fn new(symbol: Symbol, quotes: u16) -> Known {
        let count = usize::from(quotes);
        Known {
            symbol,
            underlying: None,
            top: None,
            underlying_trades: true,
            ids: vec![None; count].into_boxed_slice(),
            quotes: Vec::with_capacity(SPAN_MAX),
            lowest: 0,
            is_open: vec![true; count].into_boxed_slice(),
            must_trade: false,
        }
    }

    /// Nothing trades until its status says so.
    pub(super) fn must_trade(&mut self) {
        self.must_trade = true;
        self.is_open.fill(false);
    }

    pub(super) fn symbol(&self) -> Symbol {
        self.symbol
    }

    #[inline]
    pub(super) fn underlying(&self) -> Option<InstrumentId> {
        self.underlying
    }

    #[inline]
    pub(super) fn ids(&self) -> &[Option<InstrumentId>] {
        &self.ids
    }

    pub(super) fn id(&self, quote: u16) -> Option<InstrumentId> {
        self.ids.get(usize::from(quote)).copied().flatten()
    }

    pub(super) fn is_open(&self, quote: u16) -> bool {
        self.is_open.get(usize::from(quote)).copied().unwrap_or_default()
    }

    /// By quote: whether it is traded.
    pub(super) fn open(&self) -> &[bool] {
        &self.is_open
    }

    /// The quote of an instrument.
    #[inline]
    pub(super) fn quote_of(&self, id: InstrumentId) -> Option<u16> {
        let at = id.0.checked_sub(self.lowest)? as usize;
        match self.quotes.get(at) {
            Some(quote) => (*quote != NONE).then_some(*quote),
            None if self.quotes.is_empty() => self.search(id),
            None => None,
        }
    }

    #[cold]
    fn search(&self, id: InstrumentId) -> Option<u16> {
        let at = self.ids.iter().position(|known| *known == Some(id))?;
        Some(at as u16)
    }

    /// The feed has named an instrument: whether it is an option that was not named before.
    pub(super) fn name(&mut self, instrument: &Instrument, options: &[QuotedOption]) -> bool {
        if instrument.symbol == self.symbol {
            self.underlying = Some(instrument.id);
        }
        let mut named = options.iter().take(self.ids.len());
        if let Some(quote) = named.position(|option| option.symbol == instrument.symbol)
            && self.ids[quote].is_none()
        {
            self.ids[quote] = Some(instrument.id);
            self.arrange();
            return true;
        }
        false
    }

    /// Makes the table anew; within the room that was taken at the start.
    fn arrange(&mut self) {
        let known = || self.ids.iter().flatten().map(|id| id.0);
        let (lowest, highest) = (known().min().unwrap_or(0), known().max().unwrap_or(0));
        self.quotes.clear();
        self.lowest = lowest;
        let span = (highest - lowest) as usize + 1;
        if span > SPAN_MAX {
            self.lowest = 0;
            return;
        }
        self.quotes.resize(span, NONE);
        for (quote, id) in (0..).zip(&self.ids) {
            if let Some(id) = id {
                self.quotes[(id.0 - lowest) as usize] = quote;
            }
        }
    }

    /// What a status of an instrument, or of a venue, means for an option; whether it is another one than
    /// before.
    pub(super) fn follow_status(
        &mut self,
        ctx: &Context<'_>,
        quote: u16,
        instrument: InstrumentId,
        status: TradingStatus,
    ) -> bool {
        let Some(id) = self.id(quote) else {
            return false;
        };
        let is_its = id == instrument;
        if !is_its && !ctx.is_whole_feed_of(instrument, id) {
            return false;
        }
        let then = match (self.must_trade, is_its) {
            (false, _) => ctx.is_trading(id),
            (true, true) => status == TradingStatus::Trading,
            // The venue's does not change that of an option: the underlying is halted with it.
            (true, false) => self.is_open(quote),
        };
        self.set_open(quote, then)
    }

    pub(super) fn set_open(&mut self, quote: u16, is_open: bool) -> bool {
        let known = self.is_open.get_mut(usize::from(quote));
        known.is_some_and(|known| core::mem::replace(known, is_open) != is_open)
    }

    /// The same for the underlying; whether it is about it.
    pub(super) fn follow_underlying(
        &mut self,
        ctx: &Context<'_>,
        instrument: InstrumentId,
        status: TradingStatus,
    ) -> bool {
        let is_about = |id: &InstrumentId| *id == instrument || ctx.is_whole_feed_of(instrument, *id);
        let Some(id) = self.underlying.filter(is_about) else {
            return false;
        };
        self.underlying_trades = match self.must_trade {
            true => status == TradingStatus::Trading,
            false => ctx.is_trading(id),
        };
        true
    }

    pub(super) fn set_underlying_trades(&mut self, trades: bool) {
        self.underlying_trades = trades;
    }

    /// The underlying's book has changed: as it is to be looked at.
    #[inline]
    pub(super) fn show(&mut self, top: &BookUpdate) -> BookUpdate {
        let mut shown = *top;
        if !self.underlying_trades {
            shown.state = BookState::Stale;
        }
        self.top = Some(shown);
        shown
    }

    /// What is decided on by the underlying's book as it stands follows this message.
    pub(super) fn set_cause(&mut self, cause: Cause) {
        if let Some(top) = &mut self.top {
            (top.seq, top.recv_ts, top.venue) = (cause.seq, cause.recv_ts, cause.venue);
        }
    }

    /// The underlying's book as it stands.
    pub(super) fn top(&mut self, ctx: &Context<'_>) -> Option<BookUpdate> {
        let book = ctx.book(self.underlying?)?;
        let mut top = book.update();
        if let Some(before) = self.top {
            // What is decided on by it follows the message that was told last.
            (top.seq, top.recv_ts, top.venue) = (before.seq, before.recv_ts, before.venue);
        }
        Some(self.show(&top))
    }

    pub(super) fn is_underlying_live(&self, ctx: &Context<'_>) -> bool {
        let book = self.underlying.and_then(|id| ctx.book(id));
        self.underlying_trades && book.is_some_and(|book| super::is_live(book.state()))
    }

    /// Bid plus ask of the underlying in ticks of so much, when it is live and has both.
    pub(super) fn half_tick(&self, tick: Price) -> Option<i64> {
        let top = self.top.filter(|top| super::is_live(top.state))?;
        let ticks = |side: Side| Some(top.best(side)?.0.raw() / tick.raw().max(1));
        Some(ticks(Side::Bid)? + ticks(Side::Ask)?)
    }
}
