//! One book per symbol over all venues: [`SuperBooks`].
//!
//! ```text
//! source 0: bzx 1   ─ Level, Gap, Recovered, Status, Trade ─┐   members  (source, instrument) → symbol, feed, state, volume
//! source 1: bzx 2   ─ ...                                   ├─► shares   per symbol and side: (price, feed) → quantity, orders
//! source 9: itch    ─ ...                                   │   merged   per symbol: best, masks, locked or crossed, last trade
//! source 12: cqs    ─ Quote (national best) ────────────────┘      └─► SuperUpdate: what changed ─► SuperSink
//! ```
//!
//! Consolidated books speak the by-price vocabulary only, so that they can sit on the thread of a feed or
//! behind a ring: [`Books::relay`](crate::Books::relay) says what a book's change means in it.
//!
//! **What is in.** A feed's shares are in a consolidated book while its source is live, its own book has no
//! gap, and its instrument is subscribed. Otherwise the feed is *away*: its shares are out at once, the mask
//! says so, and they are back as a whole when it is. Nothing is forgotten meanwhile: shares of an absent feed
//! are kept up and passed over.
//!
//! **What counts.** A feed whose venue does not trade the symbol (halted, paused, closed, before its opening,
//! in an auction, quotes only) is *idle*: its shares are shown and do not count for the best, for nobody can
//! trade with them. A status that was never said counts as trading. Of a venue's status as a whole, a halt, a
//! pause and the close stand above that of the instrument.
//!
//! **The national best** of a consolidated feed (SIP) is no share: it stands beside, and is compared with the
//! best price of a side: national less direct, since when, and who moved first. Venues' books hold odd lots,
//! which the national best does not know.
//!
//! **Costs.** A level: one look-up, one search among a side's shares beginning at the best, one move of those
//! better. A source that leaves or comes back: one sweep over the symbols it carries and no others, each in
//! the time its feed's shares are found.

mod best;
mod ladder;
mod subscribe;
mod table;
mod update;
mod view;
mod words;

pub use ladder::Share;
pub use update::{
    Difference, FeedMask, LastTrade, Market, Mover, National, NationalSide, Presence, SourceId, SuperError,
    SuperFlags, SuperId, SuperLevel, SuperTotals, SuperUpdate,
};
pub use view::{FeedView, SuperRef};
pub use words::{define_event, end_event, undefine_event};

use crate::instrument_state::begins_session;
use crate::key_of;
use crate::ladder::{ORDERS_MAX, QTY_MAX};
use crate::order_index::NONE;
use crate::prefetch;
use alloc::vec::Vec;
use best::{first_of, of_source, rank};
use core::hint::select_unpredictable;
use ladder::{Kept, Ladder, Set, Shares, has_company};
use table::Table;
use tickwire_market::{
    BookState, Counter, Counters, EventFlags, EventKind, InstrumentId, MarketEvent, Nanos, Price, Side,
    Symbol, TradingStatus, Volume,
};
use words::{DEFINE, ENDED, UNDEFINE, symbol_in};

/// The most sources.
pub const SOURCES_MAX: usize = 256;
/// The most feeds: a [`FeedMask`] has a bit for each.
pub const FEEDS_MAX: usize = 32;

/// One source of a [`SuperConfig`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Source {
    /// The index of its feed, below [`FEEDS_MAX`]. The channels of a feed share it.
    pub feed: u8,
    /// A consolidated feed: its quotes are the national best, and it has no shares. All sources of a feed
    /// must agree.
    pub is_national: bool,
}

/// Capacities. Everything is allocated from them once, in [`SuperBooks::new`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SuperConfig {
    /// The sources, by [`SourceId`]; at most [`SOURCES_MAX`].
    pub sources: Vec<Source>,
    /// Consolidated books. About 400 bytes each. A symbol too many is refused as [`SuperError::Full`].
    pub symbols: u32,
    /// Instruments of all sources together, each once. About 90 bytes each. One too many is refused as
    /// [`SuperError::Full`].
    pub members: u32,
    /// Shares of all consolidated books together, in blocks of 8 that double, two blocks a symbol at least:
    /// reckon with twice the shares in use. 24 bytes each. When no block is left, the feed whose share finds
    /// no room is out of that consolidated book and marked [`Presence::Full`] until its book is cleared; what
    /// is shown stays right.
    pub shares: u32,
}

impl Default for SuperConfig {
    /// No sources; 16,384 symbols, 131,072 members, 4 million shares: about 120 MiB.
    fn default() -> SuperConfig {
        SuperConfig {
            sources: Vec::new(),
            symbols: 1 << 14,
            members: 1 << 17,
            shares: 1 << 22,
        }
    }
}

/// Where consolidated books push what changed.
pub trait SuperSink {
    /// A consolidated book after an event that changed it. An event about a whole source calls once for each
    /// consolidated book it changes.
    fn on_super(&mut self, book: &SuperRef<'_>, update: &SuperUpdate);
}

impl<F: FnMut(&SuperRef<'_>, &SuperUpdate)> SuperSink for F {
    #[inline]
    fn on_super(&mut self, book: &SuperRef<'_>, update: &SuperUpdate) {
        self(book, update)
    }
}

/// What is known of a source.
#[derive(Clone, Copy)]
struct SourceState {
    feed: u8,
    is_national: bool,
    /// By its last gap or recovery.
    said: BookState,
    /// A message could not be used: stale until everything is cleared.
    spoilt: bool,
    ended: bool,
    /// Of the venue as a whole.
    status: TradingStatus,
    /// Its first member, else [`NONE`].
    first: u32,
}

/// One instrument of one source.
#[derive(Clone, Copy)]
struct Member {
    /// Index of the consolidated book.
    symbol: u32,
    instrument: InstrumentId,
    source: u16,
    feed: u8,
    /// Of the instrument itself; `Full` stands above what the source says of itself.
    own: BookState,
    is_full: bool,
    /// Subscribed: only then it is in its symbol's list.
    is_on: bool,
    status: TradingStatus,
    next_of_source: u32,
    next_of_symbol: u32,
    volume: u64,
    trades: u64,
}

/// One symbol. What a level changes stands in its first two lines of memory.
#[derive(Clone)]
#[repr(C, align(64))]
struct Merged {
    ladders: [Ladder; 2],
    totals: [SuperTotals; 2],
    feeds: FeedMask,
    away: FeedMask,
    idle: FeedMask,
    market: Market,
    trade_feed: u8,
    best: [SuperLevel; 2],
    first_member: u32,
    national: National,
    difference: [Difference; 2],
    trade: LastTrade,
    volume: u64,
    trades: u64,
    symbol: Symbol,
}

const _: () = assert!(
    core::mem::offset_of!(Merged, best) == 64 && core::mem::offset_of!(Merged, first_member) <= 128,
    "sums and masks fill the first line, the best prices stand in the second"
);

impl Merged {
    /// The feeds whose shares count for the best.
    #[inline(always)]
    fn counting(&self) -> FeedMask {
        self.feeds.without(self.away.with(self.idle))
    }

    fn has_national(&self, nationals: FeedMask) -> bool {
        self.feeds.without(self.away).0 & nationals.0 != 0
    }
}

/// The event in hand and what it did so far to the consolidated book in hand.
#[derive(Clone, Copy)]
struct Moment {
    source: SourceId,
    feed: u8,
    mover: Mover,
    venue_ts: Nanos,
    recv_ts: Nanos,
}

/// What is different in a consolidated book.
#[derive(Clone, Copy)]
struct Touched {
    changed: SuperFlags,
    first: [u32; 2],
    end: [u32; 2],
}

impl Touched {
    const NOTHING: Touched = Touched {
        changed: SuperFlags::NONE,
        first: [u32::MAX; 2],
        end: [0; 2],
    };

    fn only(changed: SuperFlags) -> Touched {
        Touched {
            changed,
            ..Touched::NOTHING
        }
    }

    /// Shares of a side from one rank on. Which side it is nobody can foresee: both are chosen without a
    /// branch, and without a place in memory that is found by the side.
    #[inline(always)]
    fn shares(&mut self, side: Side, first: u32, end: u32) {
        self.changed = self.changed.with(SuperFlags(SuperFlags::BIDS.0 << side as u32));
        for at in Side::BOTH {
            let (ranks, is_it) = (at as usize, at == side);
            self.first[ranks] = select_unpredictable(is_it, first, self.first[ranks]);
            self.end[ranks] = select_unpredictable(is_it, end, self.end[ranks]);
        }
    }
}

/// All consolidated books.
pub struct SuperBooks {
    config: SuperConfig,
    sources: Vec<SourceState>,
    /// The consolidated feeds.
    nationals: FeedMask,
    members: Vec<Member>,
    by_instrument: Table,
    merged: Vec<Merged>,
    by_symbol: Table,
    shares: Shares,
    /// The latest receive time of all events: threads' events may come a little out of order.
    now: Nanos,
    counters: Counters,
}

impl SuperBooks {
    /// Empty consolidated books; allocates all they will ever use. Sources are building until a `Recovered`
    /// says that they are live.
    ///
    /// # Panics
    /// When there are more than [`SOURCES_MAX`] sources, a feed index is not below [`FEEDS_MAX`], or sources
    /// of one feed do not agree on whether it is national.
    pub fn new(config: SuperConfig) -> SuperBooks {
        assert!(
            config.sources.len() <= SOURCES_MAX,
            "at most {SOURCES_MAX} sources"
        );
        let of_kind = |national| {
            config
                .sources
                .iter()
                .filter(|source| source.is_national == national)
                .fold(FeedMask::NONE, |all, source| all.with(FeedMask::one(source.feed)))
        };
        let nationals = of_kind(true);
        assert!(
            config.sources.iter().all(|s| (s.feed as usize) < FEEDS_MAX),
            "at most {FEEDS_MAX} feeds"
        );
        assert!(
            nationals.0 & of_kind(false).0 == 0,
            "a feed is national or it is not"
        );
        let source = |source: &Source| SourceState {
            feed: source.feed,
            is_national: source.is_national,
            said: BookState::Building,
            spoilt: false,
            ended: false,
            status: TradingStatus::Unknown,
            first: NONE,
        };
        SuperBooks {
            sources: config.sources.iter().map(source).collect(),
            nationals,
            members: Vec::with_capacity(config.members as usize),
            by_instrument: Table::new(config.members as usize),
            merged: Vec::with_capacity(config.symbols as usize),
            by_symbol: Table::new(config.symbols as usize),
            shares: Shares::new(config.shares as usize),
            now: Nanos(0),
            counters: Counters::default(),
            config,
        }
    }

    /// An instrument of a source is this consolidated symbol, and is wanted: its levels go into that
    /// consolidated book from now on. Does nothing when that is known. An instrument that was another symbol
    /// leaves that one.
    ///
    /// The instrument's own book is taken to be whole, and empty, as that of [`crate::Books`] is: where it is
    /// not, because the symbol is wanted in mid-session, `Gap` follows, and the levels with `Recovered` when
    /// they are known.
    ///
    /// # Errors
    /// [`SuperError::Taken`] when another instrument of the feed is this symbol already, or another
    /// consolidated feed has its national best; [`SuperError::Full`] when there is no room;
    /// [`SuperError::Instrument`] for the whole feed or an empty symbol. The instrument is in no consolidated
    /// book then.
    pub fn define<S: SuperSink>(
        &mut self,
        source: SourceId,
        instrument: InstrumentId,
        symbol: &Symbol,
        sink: &mut S,
    ) -> Result<SuperId, SuperError> {
        let event = MarketEvent {
            recv_ts: self.now,
            ..MarketEvent::default()
        };
        let defined = self
            .moment(source, &event)
            .and_then(|moment| self.take_in(&moment, instrument, symbol, sink));
        defined.map_err(|error| self.refuse(error))
    }

    /// An instrument is no longer wanted: its shares leave their consolidated book. Does nothing when it was
    /// not defined.
    ///
    /// # Errors
    /// [`SuperError::Source`].
    pub fn undefine<S: SuperSink>(
        &mut self,
        source: SourceId,
        instrument: InstrumentId,
        sink: &mut S,
    ) -> Result<(), SuperError> {
        let event = MarketEvent {
            recv_ts: self.now,
            ..MarketEvent::default()
        };
        let moment = self.moment(source, &event)?;
        if let Some(member) = self.member_index(source, instrument) {
            self.leave(&moment, member, sink);
        }
        Ok(())
    }

    /// Applies one event of a source: `Level` `Clear` `Gap` `Recovered` `Status` `Trade` `TradeBreak`, of a
    /// consolidated feed `Quote`, and [`define_event`], [`undefine_event`], [`end_event`]. What it changes is
    /// told to the sink. `Imbalance`, other `Definition`s, `EndOfGroup`, quotes of participants, quotes of
    /// direct feeds and levels of consolidated ones are passed over.
    ///
    /// # Errors
    /// The reason why it was not applied; counted as `BookRejects` or `BookFull`. The consolidated books are
    /// as before it, except after [`SuperError::Full`].
    #[inline]
    pub fn apply<S: SuperSink>(
        &mut self,
        source: SourceId,
        event: &MarketEvent,
        sink: &mut S,
    ) -> Result<(), SuperError> {
        let applied = self
            .moment(source, event)
            .and_then(|moment| self.change(&moment, event, sink));
        applied.map_err(|error| self.refuse(error))
    }

    #[inline(always)]
    fn change<S: SuperSink>(
        &mut self,
        moment: &Moment,
        event: &MarketEvent,
        sink: &mut S,
    ) -> Result<(), SuperError> {
        match event.kind {
            EventKind::Level => self.level(moment, event, sink),
            EventKind::Quote if event.code[0] != 0 => Ok(()),
            EventKind::Quote => self.quote(moment, event, sink),
            EventKind::Trade | EventKind::TradeBreak => self.trade(moment, event, sink),
            EventKind::Gap
            | EventKind::Recovered
            | EventKind::Clear
            | EventKind::Status
            | EventKind::Definition => self.rare(moment, event, sink),
            EventKind::Imbalance | EventKind::EndOfGroup => Ok(()),
            EventKind::Add
            | EventKind::Modify
            | EventKind::Reduce
            | EventKind::Execute
            | EventKind::Delete
            | EventKind::Replace => Err(SuperError::Depth),
        }
    }

    /// A consolidated book, `None` for a number not given yet.
    pub fn book(&self, id: SuperId) -> Option<SuperRef<'_>> {
        let index = id.0 as usize;
        (index < self.merged.len()).then(|| SuperRef::new(self, index))
    }

    /// The consolidated book that an instrument of a source is in.
    pub fn find_of(&self, source: SourceId, instrument: InstrumentId) -> Option<SuperId> {
        let index = self.member(source, instrument).ok()?;
        Some(SuperId(self.members[index].symbol))
    }

    /// An event about a consolidated book will come soon: asks for the lines of memory that any event of a
    /// level needs. Ignoring it is always correct, and so is a number that was not given.
    #[inline]
    pub fn upcoming(&self, id: SuperId) {
        if let Some(merged) = self.merged.get(id.0 as usize) {
            prefetch::fetch_value(&merged.ladders);
            prefetch::fetch_value(&merged.best);
        }
    }

    /// It comes next: asks for the lines of its best shares, which its own line names.
    #[inline]
    pub fn approach(&self, id: SuperId) {
        if let Some(merged) = self.merged.get(id.0 as usize) {
            merged
                .ladders
                .iter()
                .for_each(|ladder| self.shares.fetch_best(ladder));
        }
    }

    /// The consolidated book of a consolidated symbol.
    pub fn find(&self, symbol: &Symbol) -> Option<SuperId> {
        let is_it = |index: u32| self.merged[index as usize].symbol == *symbol;
        self.by_symbol.find(hash(symbol), is_it).map(SuperId)
    }

    /// All consolidated books, by number.
    pub fn iter(&self) -> impl Iterator<Item = SuperRef<'_>> {
        (0..self.merged.len()).map(|index| SuperRef::new(self, index))
    }

    /// How a source stands as a whole; `None` when there is no such source.
    pub fn source(&self, source: SourceId) -> Option<Presence> {
        self.sources
            .get(source.0 as usize)
            .map(|source| of_source(source, BookState::Live))
    }

    /// The configuration.
    pub fn config(&self) -> &SuperConfig {
        &self.config
    }

    /// `BookRejects` and `BookFull`.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// A function of its own, so that nothing of the rarer events stands in its registers' way.
    #[inline(never)]
    fn level<S: SuperSink>(
        &mut self,
        moment: &Moment,
        event: &MarketEvent,
        sink: &mut S,
    ) -> Result<(), SuperError> {
        let index = self.member(moment.source, event.instrument)?;
        let Member {
            symbol,
            feed,
            is_full,
            ..
        } = self.members[index];
        if is_full || self.nationals.has(feed) {
            return Ok(());
        }
        if event.qty.0 > QTY_MAX {
            return Err(SuperError::QtyRange);
        }
        let symbol = symbol as usize;
        let key = key_of(event.side, event.price);
        let new = Kept {
            key,
            qty: event.qty.0,
            orders: event.order_count.min(ORDERS_MAX),
            feed,
        };
        let merged = &mut self.merged[symbol];
        let ladder = &mut merged.ladders[event.side as usize];
        let (before, old, is_moved) = match self.shares.set(ladder, new) {
            Set::Changed(before, old) => (before, old, false),
            Set::Inserted(before) => (before, 0, true),
            Set::Removed(before, old) => (before, old, true),
            Set::Missing => return Err(SuperError::UnknownLevel),
            Set::Full => return self.lose(moment, index, sink),
        };
        if merged.away.has(feed) {
            return Ok(());
        }
        let kept = self.shares.of(ladder);
        let totals = &mut merged.totals[event.side as usize];
        totals.qty.0 = totals.qty.0 - old + new.qty;
        if is_moved {
            let is_alone = !has_company(kept, before, key, feed, merged.away) as u32;
            if old == 0 {
                (totals.shares, totals.levels) = (totals.shares + 1, totals.levels + is_alone);
            } else {
                (totals.shares, totals.levels) = (totals.shares - 1, totals.levels - is_alone);
            }
        }
        let first = rank(kept, before, merged.away);
        let end = if is_moved { u32::MAX } else { first + 1 };
        let mut touched = Touched::NOTHING;
        touched.shares(event.side, first, end);
        let best = merged.best[event.side as usize];
        // A share behind the best, or one that does not count, is nobody's best.
        if (best.qty.is_zero() || key >= key_of(event.side, best.price)) && !merged.idle.has(feed) {
            self.find_best(symbol, event.side, &mut touched);
        }
        self.tell(symbol, moment, touched, sink);
        Ok(())
    }

    /// The national best.
    fn quote<S: SuperSink>(
        &mut self,
        moment: &Moment,
        event: &MarketEvent,
        sink: &mut S,
    ) -> Result<(), SuperError> {
        let index = self.member(moment.source, event.instrument)?;
        let Member { symbol, feed, .. } = self.members[index];
        if !self.nationals.has(feed) {
            return Ok(());
        }
        let side = |price: Price, qty: Volume, participant| NationalSide {
            price: if qty.is_zero() { Price::ZERO } else { price },
            qty,
            participant,
        };
        let symbol = symbol as usize;
        self.merged[symbol].national = National {
            sides: [
                side(event.price, event.qty, event.code[1]),
                side(event.ask_price, event.ask_qty, event.code[2]),
            ],
            venue_ts: event.venue_ts,
            recv_ts: event.recv_ts,
        };
        if !self.merged[symbol].away.has(feed) {
            self.tell(symbol, moment, Touched::only(SuperFlags::NATIONAL), sink);
        }
        Ok(())
    }

    fn trade<S: SuperSink>(
        &mut self,
        moment: &Moment,
        event: &MarketEvent,
        sink: &mut S,
    ) -> Result<(), SuperError> {
        let index = self.member(moment.source, event.instrument)?;
        if event.flags.has(EventFlags::NOT_PRINTABLE) || event.qty.is_zero() {
            return Ok(());
        }
        let member = &mut self.members[index];
        let symbol = member.symbol as usize;
        let merged = &mut self.merged[symbol];
        if event.kind == EventKind::TradeBreak {
            let broken = event.qty.0.min(member.volume);
            member.volume -= broken;
            merged.volume -= broken;
            let undone = member.trades.min(event.order_count.max(1) as u64);
            member.trades -= undone;
            merged.trades -= undone;
        } else {
            let added = event.qty.0.min(u64::MAX - merged.volume);
            member.volume += added;
            merged.volume += added;
            member.trades += 1;
            merged.trades += 1;
            merged.trade_feed = member.feed;
            merged.trade = LastTrade {
                price: event.price,
                qty: event.qty,
                venue_ts: event.venue_ts,
                recv_ts: event.recv_ts,
            };
        }
        self.tell(symbol, moment, Touched::only(SuperFlags::TRADE), sink);
        Ok(())
    }

    /// What is not about a level: of one instrument or of the whole source.
    #[cold]
    fn rare<S: SuperSink>(
        &mut self,
        moment: &Moment,
        event: &MarketEvent,
        sink: &mut S,
    ) -> Result<(), SuperError> {
        if event.kind == EventKind::Definition {
            return self.definition(moment, event, sink);
        }
        if event.instrument == InstrumentId::WHOLE_FEED {
            self.whole(moment, event, sink);
            return Ok(());
        }
        let index = self.member(moment.source, event.instrument)?;
        let member = &mut self.members[index];
        match event.kind {
            EventKind::Gap => member.own = BookState::Stale,
            EventKind::Recovered => member.own = BookState::Live,
            EventKind::Status => member.status = event.status,
            _ => {
                self.clear(moment, index, sink);
                return Ok(());
            }
        }
        self.settle(moment, index, Touched::NOTHING, sink);
        Ok(())
    }

    fn definition<S: SuperSink>(
        &mut self,
        moment: &Moment,
        event: &MarketEvent,
        sink: &mut S,
    ) -> Result<(), SuperError> {
        match event.code {
            DEFINE => {
                let symbol = symbol_in(event).ok_or(SuperError::Instrument)?;
                self.take_in(moment, event.instrument, &symbol, sink).map(|_| ())
            }
            UNDEFINE => {
                if let Some(member) = self.member_index(moment.source, event.instrument) {
                    self.leave(moment, member, sink);
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// An event about a source as a whole: one sweep over what it carries.
    fn whole<S: SuperSink>(&mut self, moment: &Moment, event: &MarketEvent, sink: &mut S) {
        let source = &mut self.sources[moment.source.0 as usize];
        match event.kind {
            EventKind::Clear => {
                source.spoilt = false;
                if begins_session(event) {
                    source.status = TradingStatus::Unknown;
                }
            }
            EventKind::Gap if event.code == ENDED => source.ended = true,
            EventKind::Gap if event.flags.has(EventFlags::UNUSABLE) => source.spoilt = true,
            EventKind::Gap => source.said = BookState::Stale,
            EventKind::Status => source.status = event.status,
            _ => (source.said, source.ended) = (BookState::Live, false),
        }
        let mut next = source.first;
        while let Some(&Member {
            is_on,
            next_of_source,
            ..
        }) = self.members.get(next as usize)
        {
            if begins_session(event) {
                // What still holds is said again behind it.
                self.members[next as usize].status = TradingStatus::Unknown;
            }
            if is_on && event.kind == EventKind::Clear {
                self.clear(moment, next as usize, sink);
            } else if is_on {
                self.settle(moment, next as usize, Touched::NOTHING, sink);
            }
            next = next_of_source;
        }
    }

    /// An instrument's levels, or its national best, are gone, and what was wrong with them.
    fn clear<S: SuperSink>(&mut self, moment: &Moment, index: usize, sink: &mut S) {
        let member = &mut self.members[index];
        (member.own, member.is_full) = (BookState::Live, false);
        let symbol = member.symbol as usize;
        let mut touched = Touched::NOTHING;
        if self.nationals.has(moment.feed) {
            self.forget_national(symbol, moment.feed, &mut touched);
        } else {
            self.withdraw(symbol, moment.feed, &mut touched);
        }
        self.settle(moment, index, touched, sink);
    }

    fn forget_national(&mut self, symbol: usize, feed: u8, touched: &mut Touched) {
        let merged = &mut self.merged[symbol];
        if merged.national != National::default() {
            merged.national = National::default();
            if !merged.away.has(feed) {
                touched.changed = touched.changed.with(SuperFlags::NATIONAL);
            }
        }
    }

    /// Removes a feed's shares of a symbol for good.
    fn withdraw(&mut self, symbol: usize, feed: u8, touched: &mut Touched) {
        for side in Side::BOTH {
            let merged = &mut self.merged[symbol];
            let ladder = &mut merged.ladders[side as usize];
            let first = first_of(self.shares.of(ladder), feed, merged.away);
            if self.shares.remove_feed(ladder, feed)
                && !merged.away.has(feed)
                && let Some(first) = first
            {
                touched.shares(side, first, u32::MAX);
                self.recount(symbol, side);
                self.find_best(symbol, side, touched);
            }
        }
    }

    /// There was no room for a share: the feed is out of this consolidated book until its book is cleared.
    #[cold]
    fn lose<S: SuperSink>(&mut self, moment: &Moment, index: usize, sink: &mut S) -> Result<(), SuperError> {
        let mut touched = Touched::NOTHING;
        self.withdraw(self.members[index].symbol as usize, moment.feed, &mut touched);
        self.members[index].is_full = true;
        self.settle(moment, index, touched, sink);
        Err(SuperError::Full)
    }

    /// The member an event is about, if it is subscribed.
    #[inline(always)]
    fn member(&self, source: SourceId, instrument: InstrumentId) -> Result<usize, SuperError> {
        match self.member_index(source, instrument) {
            Some(index) if self.members[index].is_on => Ok(index),
            _ => Err(SuperError::Instrument),
        }
    }

    #[inline(always)]
    fn member_index(&self, source: SourceId, instrument: InstrumentId) -> Option<usize> {
        let key = member_key(source, instrument);
        self.by_instrument.find(key, |_| true).map(|index| index as usize)
    }

    /// Counts a rejection.
    #[cold]
    fn refuse(&mut self, error: SuperError) -> SuperError {
        self.counters.bump(match error {
            SuperError::Full => Counter::BookFull,
            _ => Counter::BookRejects,
        });
        error
    }
}

impl Difference {
    /// After a change of either best price.
    pub(crate) fn at(
        self,
        now: Nanos,
        national: Option<Price>,
        direct: Option<Price>,
        by: Mover,
    ) -> Difference {
        if national == direct {
            return match self.mover {
                Mover::Nobody => self,
                mover => Difference {
                    price: Price::ZERO,
                    since: Nanos(0),
                    mover: Mover::Nobody,
                    last_mover: mover,
                    last_ns: now.0.saturating_sub(self.since.0),
                },
            };
        }
        let (since, mover) = match self.mover {
            Mover::Nobody => (now, by),
            mover => (self.since, mover),
        };
        let price = match (national, direct) {
            (Some(national), Some(direct)) => Price::from_raw(national.raw().saturating_sub(direct.raw())),
            _ => Price::ZERO,
        };
        Difference {
            price,
            since,
            mover,
            ..self
        }
    }
}

#[inline(always)]
fn member_key(source: SourceId, instrument: InstrumentId) -> u64 {
    (source.0 as u64) << 32 | instrument.0 as u64
}

fn hash(symbol: &Symbol) -> u64 {
    symbol
        .as_bytes()
        .iter()
        .fold(0xCBF2_9CE4_8422_2325, |hash, &byte| {
            (hash ^ byte as u64).wrapping_mul(0x0000_0100_0000_01B3)
        })
}
