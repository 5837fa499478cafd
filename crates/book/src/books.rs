//! All order books of one feed, and the one function that changes them.

mod gone;

use crate::changes::{Change, Totals};
use crate::ladder::{Book, BookSide, LevelPool, ORDERS_MAX, Own};
use crate::order_index::{CLEARS, NEXT, NONE, OrderIndex, OrderSlot, Slot};
use crate::prefetch;
use crate::view::BookRef;
use crate::{Digest, key_of, price_of, touched};
use alloc::vec::Vec;
use core::fmt;
use core::hint::select_unpredictable;
use gone::is_gone;
use tickwire_market::{
    BookState, BookUpdate, Counter, Counters, EventFlags, EventKind, EventSink, InstrumentId, MarketEvent,
    OrderId, Price, Side, Upcoming, UpdateFlags, Venue, Volume,
};

/// What the books keep, which follows from what the feed says.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Depth {
    /// The feed says orders; levels and each order's remaining quantity are kept, queues are not.
    #[default]
    Aggregated,
    /// The feed says orders; their time priority within each level is kept too.
    ByOrder,
    /// The feed says levels or quotes; there are no orders.
    ByPrice,
}

/// Capacities. Everything is allocated from them once, in [`Books::new`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BooksConfig {
    /// The feed's venue, put into every [`BookUpdate`].
    pub venue: Venue,
    /// What is kept.
    pub depth: Depth,
    /// Books, ids 0 to `instruments - 1`. An event for a higher id is rejected. 1,168 bytes each, 2,192 by
    /// order, with room for the levels of 64 ticks of each side; ITCH locates need 65,536 at most, on a real
    /// day about 12,000.
    pub instruments: u32,
    /// Orders resting at once, in all books together: at least so many find room, whatever their ids are. 100
    /// to 164 bytes each: least where it is a power of two. The lower bits of an id are its place in a window
    /// of so many slots, rounded up to a power of two; an old order in the way of a new one moves to a table.
    /// Half of it in use is good, all of it costs a table's lines for every other order. A whole Nasdaq day
    /// has had 1.65 million at once. When the table is full an order is rejected as [`BookError::Full`] and
    /// its book is stale until it is cleared.
    pub orders: u32,
    /// Price levels of all books together that are not among the 64 ticks of their side's window, or are
    /// between two ticks; in blocks of 8 that double: reckon with twice the levels in use. 16 bytes each, 24
    /// by order. When no block is left an order is rejected as [`BookError::Full`], as above.
    pub levels: u32,
    /// The state the books begin in: [`BookState::Live`] when the feed starts with its first message, when an
    /// empty book is the right one; [`BookState::Building`] when a snapshot comes first.
    pub initial: BookState,
    /// Whether every event's [`Books::changes`] are written down and [`Books::totals`] kept up, for who
    /// passes levels on: shared memory, consolidated books. Costs time, and 32 bytes a book: see
    /// `docs/books.md`.
    pub tracked: bool,
}

impl Default for BooksConfig {
    /// What every program here begins with, and what the benchmarks measure: 16,384 instruments, a million
    /// orders, a million levels, about 140 MiB.
    fn default() -> BooksConfig {
        BooksConfig {
            venue: Venue::Nasdaq,
            depth: Depth::Aggregated,
            instruments: 16_384,
            orders: 1 << 20,
            levels: 1 << 20,
            initial: BookState::Live,
            tracked: false,
        }
    }
}

/// Why an event was not applied. The books are as before it, except after [`BookError::Full`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum BookError {
    /// No resting order has this id.
    UnknownOrder,
    /// A resting order has this id already.
    DuplicateOrder,
    /// More was to be taken than the order has left.
    Excess,
    /// A quantity of 0 where something must be added or taken, or one beyond 32 bits (orders) or 44 bits
    /// (levels).
    QtyRange,
    /// The instrument is beyond the configured books or is not the one of the order.
    Instrument,
    /// A level to be removed is not there.
    UnknownLevel,
    /// An order event in books of a by-price feed, or the reverse.
    Depth,
    /// A configured capacity is exhausted: orders, levels, or 1,048,575 orders or 1.7e13 units in one level.
    /// The book is stale until it is cleared.
    Full,
}

impl fmt::Display for BookError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            BookError::UnknownOrder => "no such order",
            BookError::DuplicateOrder => "order exists already",
            BookError::Excess => "more taken than is left",
            BookError::QtyRange => "quantity out of range",
            BookError::Instrument => "instrument out of range or not the order's",
            BookError::UnknownLevel => "no such level",
            BookError::Depth => "event does not fit the kind of book",
            BookError::Full => "capacity exhausted",
        })
    }
}

impl core::error::Error for BookError {}

/// What an event did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Applied<'a> {
    /// It changed a book, whose top is this now.
    Update(&'a BookUpdate),
    /// It changed all books: a gap or the end of one (the new state is said), or everything was cleared.
    Feed(BookState),
    /// It is not about a book.
    None,
    /// It could not be applied; counted.
    Rejected(BookError),
}

/// All books of one feed.
pub struct Books {
    config: BooksConfig,
    pub(crate) orders: OrderIndex,
    pub(crate) levels: LevelPool,
    pub(crate) books: Vec<Book>,
    /// By book; none unless `tracked`.
    totals: Vec<[Totals; 2]>,
    /// What the last event did to its book.
    last: BookUpdate,
    /// The worse of `said` and `spoilt`.
    pub(crate) feed: BookState,
    /// By the feed's last gap or recovery.
    said: BookState,
    /// A message could not be used, and which book it was for is not known: every book is stale until
    /// everything is cleared.
    spoilt: bool,
    by_order: bool,
    /// Orders of books that were cleared may stand in the table of those that were moved.
    may_have_gone: bool,
    /// What the last few [`Books::upcoming`] were about, round robin.
    upcoming: [Announced; AHEAD],
    turn: usize,
    counters: Counters,
    distrusted: Distrusted,
}

/// How many books can wait to be made right. More are found by looking at all books.
const DISTRUSTED_MAX: usize = 32;

/// Books that were found to be wrong, and that nobody has been told of.
#[derive(Clone, Debug)]
struct Distrusted {
    waiting: [InstrumentId; DISTRUSTED_MAX],
    len: usize,
    /// There were too many: all from this book on are looked at.
    rest: Option<u32>,
}

impl Distrusted {
    const NONE: Distrusted = Distrusted {
        waiting: [InstrumentId(0); DISTRUSTED_MAX],
        len: 0,
        rest: None,
    };

    #[cold]
    fn push(&mut self, instrument: InstrumentId) {
        match self.waiting.get_mut(self.len) {
            Some(place) => (*place, self.len) = (instrument, self.len + 1),
            None => (self.len, self.rest) = (0, Some(0)), // Those that wait are found among the others.
        }
    }
}

/// How many messages after a book's line those of its levels are fetched.
const AHEAD: usize = 8;

/// An [`Upcoming`] as it is kept. In this order: whoever announces it has just written number and price one
/// by one; kept side by side they would be read as one, which has to wait until both are in the cache.
#[derive(Clone, Copy)]
#[repr(C)]
struct Announced {
    order_id: OrderId,
    instrument: InstrumentId,
    side: Side,
    says_where: bool,
    price: Price,
}

impl Announced {
    #[inline(always)]
    fn of(next: Upcoming) -> Announced {
        Announced {
            order_id: next.order_id,
            instrument: next.instrument,
            side: next.side,
            says_where: next.says_where,
            price: next.price,
        }
    }
}

/// How much of an order goes.
#[derive(Clone, Copy)]
enum Take {
    All,
    Part(Volume),
}

/// A found order with its slot.
#[derive(Clone, Copy)]
struct Found {
    index: u32,
    slot: Slot,
    book: usize,
}

impl Books {
    /// Empty books; allocates all they will ever use.
    ///
    /// # Panics
    /// When `orders` and the power of two above it sum up to 2^32 or more.
    pub fn new(config: BooksConfig) -> Books {
        let by_order = config.depth == Depth::ByOrder;
        let orders = match config.depth {
            Depth::ByPrice => 0,
            Depth::Aggregated | Depth::ByOrder => config.orders as usize,
        };
        Books {
            orders: OrderIndex::new(orders),
            levels: LevelPool::new(
                config.instruments as usize,
                config.levels as usize,
                by_order,
                config.tracked,
            ),
            totals: touched(
                Default::default(),
                if config.tracked {
                    config.instruments as usize
                } else {
                    0
                },
            ),
            books: alloc::vec![Book::new(config.initial); config.instruments as usize],
            last: BookUpdate {
                venue: config.venue,
                ..BookUpdate::default()
            },
            feed: config.initial,
            said: config.initial,
            spoilt: false,
            by_order,
            may_have_gone: false,
            upcoming: [Announced::of(Upcoming::resting(InstrumentId(u32::MAX), OrderId(u64::MAX))); AHEAD],
            turn: 0,
            distrusted: Distrusted::NONE,
            counters: Counters::default(),
            config,
        }
    }

    /// Applies one event.
    #[inline(always)]
    pub fn apply(&mut self, event: &MarketEvent) -> Applied<'_> {
        self.levels.log.start();
        let result = match event.kind {
            EventKind::Add => self.add(event),
            EventKind::Delete => self.take(event, Take::All),
            EventKind::Replace => self.replace(event),
            EventKind::Execute | EventKind::Reduce => self.take(event, Take::Part(event.qty)),
            EventKind::Modify => self.modify(event),
            EventKind::Level => self.level(event),
            // One participant's quote, or what is no quote at all: the top of the book has no name.
            EventKind::Quote if event.code[0] != 0 => return Applied::None,
            EventKind::Quote => self.quote(event),
            EventKind::Clear | EventKind::Gap | EventKind::Recovered => return self.whole(event),
            EventKind::Trade
            | EventKind::Status
            | EventKind::Imbalance
            | EventKind::Definition
            | EventKind::TradeBreak
            | EventKind::EndOfGroup => return Applied::None,
        };
        match result {
            Ok(()) => Applied::Update(&self.last),
            Err(error) => {
                self.distrust(event.instrument);
                Applied::Rejected(self.refuse(error))
            }
        }
    }

    /// What cannot be applied shows that the book is not what the venue's is: it is stale until it is cleared
    /// or recovered. While the feed is building that is nothing new.
    #[cold]
    fn distrust(&mut self, instrument: InstrumentId) {
        if self.feed == BookState::Building || instrument == InstrumentId::WHOLE_FEED {
            return; // or which book it is about is not known
        }
        if let Some(book) = self.books.get_mut(instrument.index())
            && book.own == Own::Live
        {
            book.own = Own::Stale;
            self.distrusted.push(instrument);
        }
    }

    /// The next book that became stale by itself: by a message that could not be read (a `Gap` that is
    /// [`EventFlags::UNUSABLE`]), or that did not fit. A feed that is given the books as its sink asks for it
    /// and has it made right.
    #[inline]
    pub fn next_distrusted(&mut self) -> Option<InstrumentId> {
        if self.distrusted.len == 0 && self.distrusted.rest.is_none() {
            return None;
        }
        self.take_distrusted()
    }

    #[cold]
    fn take_distrusted(&mut self) -> Option<InstrumentId> {
        if let Some(len) = self.distrusted.len.checked_sub(1) {
            self.distrusted.len = len;
            return Some(self.distrusted.waiting[len]);
        }
        let from = self.distrusted.rest?;
        let stale = |at: &u32| self.books[*at as usize].own == Own::Stale;
        let found = (from..self.books.len() as u32).find(stale);
        self.distrusted.rest = found.map(|at| at + 1);
        found.map(InstrumentId)
    }

    /// A message is near: fetches the lines it will need. Ignoring it is always correct.
    #[inline(always)]
    pub fn upcoming(&mut self, next: Upcoming) {
        self.orders.prefetch(next.order_id);
        prefetch::fetch_near(&self.books, next.instrument.index());
        // Where the book's levels are is written in its line, at which of them an order rests in the order's,
        // and where an order is that was moved in the table's: some messages later they have come.
        let now = core::mem::replace(&mut self.upcoming[self.turn % AHEAD], Announced::of(next));
        self.turn = self.turn.wrapping_add(1);
        if let Some(at) = self.books.get(now.instrument.index()) {
            let announced = (now.side, key_of(now.side, now.price));
            let standing = self.orders.standing(now.order_id);
            let standing = standing.map_or(announced, |order| (order.side(), order.key));
            let side = select_unpredictable(now.says_where, announced.0, standing.0);
            let key = select_unpredictable(now.says_where, announced.1, standing.1);
            let book = now.instrument.index();
            self.levels.prefetch(at, BookSide { book, side }, key);
        }
        self.orders.prefetch_moved(now.order_id);
    }

    /// A message by itself has come and is applied next: fetches the lines whose places it tells, all at
    /// once; of the order alone where its instrument is not known yet. Ignoring it is always correct.
    #[inline(always)]
    pub fn arriving(&mut self, next: Upcoming) {
        self.orders.prefetch(next.order_id);
        if next.instrument != InstrumentId::WHOLE_FEED {
            prefetch::fetch_near(&self.books, next.instrument.index());
            prefetch::fetch(&self.totals, next.instrument.index());
        }
        // [`Books::fetch`] counts on from the last order.
        self.upcoming[self.turn.wrapping_sub(1) % AHEAD] = Announced::of(next);
    }

    /// An event of this instrument may come at any time: fetches the lines of its book, of its levels near
    /// the best, and of the slots that the next orders will have. For a thread that waits; ignoring it is
    /// always correct.
    pub fn fetch(&self, instrument: InstrumentId) {
        if let Some(book) = self.books.get(instrument.index()) {
            prefetch::fetch_value(book);
            self.levels.fetch(book, instrument.index());
        }
        prefetch::fetch(&self.totals, instrument.index());
        self.orders.prefetch_following();
    }

    /// What the last [`Books::apply`] did to the levels of its book, in this order: done to a copy of the
    /// levels, it makes the same of them. A level may be named twice (an order replaced by one at the same
    /// price).
    ///
    /// Meaningless when [`Books::is_rebuilt`].
    #[inline]
    pub fn changes(&self) -> &[Change] {
        self.levels.log.changes()
    }

    /// Whether the last [`Books::apply`] did more to the levels than [`Books::changes`] can say: the book was
    /// cleared, or a quote took the place of several levels. A copy of them has to be made anew. Always when
    /// not [`BooksConfig::tracked`].
    #[inline]
    pub fn is_rebuilt(&self) -> bool {
        self.levels.log.is_rebuilt()
    }

    /// Levels, quantity and orders of a book's sides together, indexed by [`Side`]; zero beyond the
    /// configured number. Known at once when [`BooksConfig::tracked`], else the levels are walked.
    pub fn totals(&self, instrument: InstrumentId) -> [Totals; 2] {
        let Some(book) = self.books.get(instrument.index()) else {
            return Default::default();
        };
        match self.totals.get(instrument.index()) {
            Some(totals) => Side::BOTH.map(|side| Totals {
                levels: book.len(side) as u32,
                ..totals[side as usize]
            }),
            None => Side::BOTH.map(|side| {
                let on = BookSide {
                    book: instrument.index(),
                    side,
                };
                self.levels.levels(book, on).collect()
            }),
        }
    }

    /// What the last event that changed a book ([`Applied::Update`]) left of it.
    #[inline(always)]
    pub fn last(&self) -> &BookUpdate {
        &self.last
    }

    /// The book of an instrument, `None` beyond the configured number.
    pub fn book(&self, instrument: InstrumentId) -> Option<BookRef<'_>> {
        BookRef::new(self, instrument)
    }

    /// All books, empty ones too, by rising instrument id.
    pub fn iter(&self) -> impl Iterator<Item = BookRef<'_>> {
        (0..self.config.instruments).filter_map(|i| self.book(InstrumentId(i)))
    }

    /// The configuration.
    pub fn config(&self) -> &BooksConfig {
        &self.config
    }

    /// [`BooksConfig::levels`] with which all events so far would have found room: a power of two up to
    /// 32,768, else a multiple of that. Little more than was used if what the books were made with is one of
    /// them too; of others, the rest beyond such a number is handed out first.
    pub fn levels_needed(&self) -> usize {
        self.levels.needed()
    }

    /// The state of the feed as a whole; a book is never better than this.
    pub fn feed_state(&self) -> BookState {
        self.feed
    }

    /// `BookRejects` and `BookFull`.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// The digest of one book's levels; that of an empty book if there is none.
    pub fn digest(&self, instrument: InstrumentId) -> u64 {
        let mut digest = Digest::default();
        if let Some(book) = self.book(instrument) {
            book.digest_into(&mut digest);
        }
        digest.finish()
    }

    /// The digest of all books with a level, by rising instrument id.
    pub fn state_hash(&self) -> u64 {
        let mut digest = Digest::default();
        self.iter().for_each(|book| book.digest_into(&mut digest));
        digest.finish()
    }

    /// Fetches the lines of a book's best levels while its order's slot is still on the way: without this
    /// they would wait for each other.
    #[inline(always)]
    pub fn approach(&self, instrument: InstrumentId) {
        if let Some(book) = self.books.get(instrument.index()) {
            self.levels.prefetch_best(book, instrument.index());
        }
    }

    #[inline(always)]
    fn add(&mut self, event: &MarketEvent) -> Result<(), BookError> {
        let book = self.book_index(event.instrument)?;
        let qty = order_qty(event.qty)?;
        let slot = Slot::new(
            event.order_id,
            event.instrument.0,
            event.side,
            key_of(event.side, event.price),
            qty,
        );
        let changes = self.rest(book, slot)?;
        self.publish(event, book, event.side, changes);
        Ok(())
    }

    #[inline(always)]
    fn take(&mut self, event: &MarketEvent, take: Take) -> Result<(), BookError> {
        self.approach(event.instrument);
        let Found { index, slot, book } = self.resting(event, event.order_id)?;
        let qty = match take {
            Take::All => slot.qty,
            Take::Part(Volume(0)) => return Err(BookError::QtyRange),
            Take::Part(Volume(qty)) if qty > slot.qty as u64 => return Err(BookError::Excess),
            Take::Part(Volume(qty)) => qty as u32,
        };
        let changes = if qty == slot.qty {
            self.remove(book, index, slot)
        } else {
            self.orders.slot_mut(index).qty -= qty;
            self.total(book, slot.side(), |total| total.less(qty as u64, 0));
            self.levels
                .take(&mut self.books[book], slot.side_of(book), slot.key, qty, false)
        };
        self.publish(event, book, slot.side(), changes);
        Ok(())
    }

    #[inline(always)]
    fn replace(&mut self, event: &MarketEvent) -> Result<(), BookError> {
        self.approach(event.instrument);
        let Found {
            index,
            slot: old,
            book,
        } = self.resting(event, event.order_id)?;
        let side = old.side();
        let new_id = OrderId(event.ref_id);
        let new = Slot::new(
            new_id,
            old.instrument(),
            side,
            key_of(side, event.price),
            order_qty(event.qty)?,
        );
        if new_id != event.order_id && self.find(new_id).is_some() {
            return Err(BookError::DuplicateOrder);
        }
        let before = self.books[book].best(side);
        self.remove(book, index, old);
        let rested = self.rest(book, new);
        let changes = difference(&self.books[book], side, before, &[old.key, new.key]);
        self.publish(event, book, side, changes);
        rested.map(|_| ())
    }

    fn modify(&mut self, event: &MarketEvent) -> Result<(), BookError> {
        let Found {
            index,
            slot: old,
            book,
        } = self.resting(event, event.order_id)?;
        let side = if event.flags.has(EventFlags::NO_SIDE) {
            old.side()
        } else {
            event.side
        };
        let qty = order_qty(event.qty)?;
        let new = Slot::new(
            event.order_id,
            old.instrument(),
            side,
            key_of(side, event.price),
            qty,
        );
        let in_place =
            event.flags.has(EventFlags::KEEPS_PRIORITY) && side == old.side() && new.key == old.key;
        let before = Side::BOTH.map(|side| self.books[book].best(side));
        let done = if in_place {
            self.requantify(book, index, old, qty)
        } else {
            self.remove(book, index, old);
            self.rest(book, new).map(|_| ())
        };
        let touched = |s: Side| {
            [(old.side(), old.key), (side, new.key)]
                .map(|(t, key)| if t == s { key } else { before[s as usize].0 })
        };
        let changes = Side::BOTH.map(|s| difference(&self.books[book], s, before[s as usize], &touched(s)));
        self.publish(event, book, side, changes[0].with(changes[1]));
        done
    }

    /// Changes an order's quantity where it stands.
    fn requantify(&mut self, book: usize, index: u32, old: Slot, qty: u32) -> Result<(), BookError> {
        if let Err(error) =
            self.levels
                .change(&mut self.books[book], old.side_of(book), old.key, old.qty, qty)
        {
            return Err(self.lose(book, error));
        }
        self.total(book, old.side(), |total| {
            total.less(old.qty as u64, 0).more(qty as u64, 0)
        });
        self.orders.slot_mut(index).qty = qty;
        Ok(())
    }

    fn level(&mut self, event: &MarketEvent) -> Result<(), BookError> {
        let book = self.by_price_book(event)?;
        let key = key_of(event.side, event.price);
        let before = self.books[book].best(event.side);
        self.set(book, event.side, key, event.qty, event.order_count)?;
        let changes = difference(&self.books[book], event.side, before, &[key]);
        self.publish(event, book, event.side, changes);
        Ok(())
    }

    fn quote(&mut self, event: &MarketEvent) -> Result<(), BookError> {
        let book = self.by_price_book(event)?;
        if event.qty.0.max(event.ask_qty.0) > crate::ladder::QTY_MAX {
            return Err(BookError::QtyRange);
        }
        let mut changes = UpdateFlags::NONE;
        for (side, price, qty) in [
            (Side::Bid, event.price, event.qty),
            (Side::Ask, event.ask_price, event.ask_qty),
        ] {
            let before = self.books[book].best(side);
            self.replace_side(book, side, price, qty)?;
            changes = changes.with(difference(&self.books[book], side, before, &[]));
        }
        self.publish(event, book, Side::Bid, changes);
        Ok(())
    }

    /// Sets a level; one without room makes the book stale.
    fn set(&mut self, book: usize, side: Side, key: i64, qty: Volume, orders: u32) -> Result<(), BookError> {
        match self
            .levels
            .set(&mut self.books[book], BookSide { book, side }, key, qty.0, orders)
        {
            Ok((qty_before, orders_before)) => {
                let orders = if qty.is_zero() { 0 } else { orders.min(ORDERS_MAX) };
                self.total(book, side, |total| {
                    total.less(qty_before, orders_before).more(qty.0, orders)
                });
                Ok(())
            }
            Err(error) => Err(self.lose(book, error)),
        }
    }

    /// Makes a quote the only level of a side.
    fn replace_side(&mut self, book: usize, side: Side, price: Price, qty: Volume) -> Result<(), BookError> {
        let at = &self.books[book];
        let standing = self.levels.levels(at, BookSide { book, side }).next();
        match (at.len(side), standing) {
            (0, _) => {}
            // Nothing to take away when the price stands.
            (1, Some(level)) if level.price == price && !qty.is_zero() => {}
            (1, Some(level)) => self.set(book, side, key_of(side, level.price), Volume::ZERO, 0)?,
            _ => {
                self.levels.clear(&mut self.books[book], BookSide { book, side });
                self.levels.log.rebuild();
                self.total(book, side, |_| Totals::default());
            }
        }
        if qty.is_zero() {
            return Ok(());
        }
        self.set(book, side, key_of(side, price), qty, 0)
    }

    /// Brings the totals of a side up to date, where they are kept.
    #[inline(always)]
    fn total(&mut self, book: usize, side: Side, change: impl FnOnce(Totals) -> Totals) {
        if let Some(totals) = self.totals.get_mut(book) {
            totals[side as usize] = change(totals[side as usize]);
        }
    }

    /// Events about all orders of a book or of all books.
    #[cold]
    fn whole(&mut self, event: &MarketEvent) -> Applied<'_> {
        if event.instrument != InstrumentId::WHOLE_FEED {
            return match self.whole_book(event) {
                Ok(()) => Applied::Update(&self.last),
                Err(error) => Applied::Rejected(self.refuse(error)),
            };
        }
        match event.kind {
            EventKind::Clear => {
                self.clear_all(event);
                self.spoilt = false;
            }
            EventKind::Gap if event.flags.has(EventFlags::UNUSABLE) => self.spoilt = true,
            EventKind::Gap => self.said = BookState::Stale,
            _ => self.said = BookState::Live,
        }
        self.feed = if self.spoilt { BookState::Stale } else { self.said };
        Applied::Feed(self.feed)
    }

    fn whole_book(&mut self, event: &MarketEvent) -> Result<(), BookError> {
        let book = self.book_index(event.instrument)?;
        let before = self.books[book];
        let mut changes = UpdateFlags::NONE;
        match event.kind {
            EventKind::Clear => {
                self.clear(book);
                if Side::BOTH.iter().any(|&side| before.len(side) > 1) {
                    changes = UpdateFlags::DEPTH;
                }
            }
            // What it had no room for is missing still.
            _ if before.own == Own::Full => {}
            EventKind::Gap => {
                self.books[book].own = Own::Stale;
                // A channel that tells a gap of its own sees to it by itself.
                if before.own == Own::Live && event.flags.has(EventFlags::UNUSABLE) {
                    self.distrusted.push(event.instrument);
                }
            }
            _ => self.books[book].own = Own::Live,
        }
        for side in Side::BOTH {
            changes = changes.with(difference(&self.books[book], side, before.best(side), &[]));
        }
        self.publish(event, book, Side::Bid, changes);
        Ok(())
    }

    fn clear(&mut self, book: usize) {
        let held = Side::BOTH.iter().any(|&side| self.books[book].len(side) > 0);
        if held && self.by_order {
            self.release_queues(book);
        } else if held && self.config.depth == Depth::Aggregated {
            self.let_orders_go(book);
        }
        let at = &mut self.books[book];
        for side in Side::BOTH {
            self.levels.clear(at, BookSide { book, side });
        }
        at.own = Own::Live;
        self.levels.log.rebuild();
        Side::BOTH
            .iter()
            .for_each(|&side| self.total(book, side, |_| Totals::default()));
    }

    /// Removes every order of a book by walking its queues.
    fn release_queues(&mut self, book: usize) {
        self.orders.settle_links();
        for side in Side::BOTH {
            for nth in 0..self.books[book].len(side) {
                let mut index = self
                    .levels
                    .first_of(&self.books[book], BookSide { book, side }, nth);
                while index != NONE {
                    let next = self.orders.links(index)[NEXT];
                    self.orders.release(index);
                    index = next;
                }
            }
        }
    }

    fn clear_all(&mut self, event: &MarketEvent) {
        self.orders.clear();
        self.levels.log.rebuild();
        self.totals.fill(Default::default());
        for (nth, book) in self.books.iter_mut().enumerate() {
            for side in Side::BOTH {
                self.levels.clear(book, BookSide { book: nth, side });
            }
            let shown = book.shown;
            *book = Book::new(shown);
            (book.seq, book.venue_ts) = (event.seq, event.venue_ts);
        }
    }

    #[inline]
    fn book_index(&self, instrument: InstrumentId) -> Result<usize, BookError> {
        let known = instrument != InstrumentId::WHOLE_FEED && instrument.0 < self.config.instruments;
        if known {
            Ok(instrument.index())
        } else {
            Err(BookError::Instrument)
        }
    }

    fn by_price_book(&self, event: &MarketEvent) -> Result<usize, BookError> {
        if self.config.depth == Depth::ByPrice {
            self.book_index(event.instrument)
        } else {
            Err(BookError::Depth)
        }
    }

    /// The resting order an event is about. Feeds whose messages do not repeat the instrument leave it 0.
    #[inline(always)]
    fn resting(&self, event: &MarketEvent, id: OrderId) -> Result<Found, BookError> {
        let index = self.orders.find(id).ok_or(BookError::UnknownOrder)?;
        let slot = *self.orders.slot(index);
        if is_gone(self.by_order, &self.books, &slot) {
            return Err(BookError::UnknownOrder);
        }
        // The event's instrument, not the slot's, so that the book's line is fetched beside the slot's and
        // not after it.
        let book = match event.instrument {
            InstrumentId::WHOLE_FEED => slot.instrument() as usize,
            instrument if instrument.0 == slot.instrument() => instrument.index(),
            _ => return Err(BookError::Instrument),
        };
        Ok(Found { index, slot, book })
    }

    /// Puts an order at the end of its level's queue. What is different.
    #[inline(always)]
    fn rest(&mut self, book: usize, mut slot: Slot) -> Result<UpdateFlags, BookError> {
        // By price an order is a line of its own and no more: fetching ahead was not worth its instructions.
        if self.by_order
            && let Some(moves) = self.orders.prefetch_next(slot.id())
        {
            prefetch::fetch(&self.books, moves.index());
        }
        let (by_order, books) = (self.by_order, &self.books);
        let index = match self
            .orders
            .place(slot.id(), |standing| is_gone(by_order, books, standing))
        {
            Ok(OrderSlot::Vacant(index)) => index,
            Ok(OrderSlot::Taken(index)) => self.displace(book, index)?,
            Err(_) if self.config.depth == Depth::ByPrice => return Err(BookError::Depth),
            Err(error) => return Err(self.lose(book, error)),
        };
        let added = self
            .levels
            .add(&mut self.books[book], slot.side_of(book), slot.key, slot.qty);
        let (position, changes) = match added {
            Ok(done) => done,
            Err(error) => return Err(self.lose(book, error)),
        };
        if !self.by_order {
            slot.links[CLEARS] = self.books[book].clears;
        }
        *self.orders.slot_mut(index) = slot;
        self.total(book, slot.side(), |total| total.more(slot.qty as u64, 1));
        if self.by_order {
            self.levels.enqueue(&mut self.orders, position, index);
        }
        Ok(changes)
    }

    /// Moves the order of a window slot out of the way of a new one of `book`: the slot, which is vacant now.
    #[cold]
    fn displace(&mut self, book: usize, index: u32) -> Result<u32, BookError> {
        let to = match self.orders.move_out(index) {
            Ok(to) => to,
            Err(_) if self.may_have_gone => {
                self.take_gone_out();
                return self.displace(book, index);
            }
            Err(error) => return Err(self.lose(book, error)),
        };
        if self.by_order {
            let moved = self.orders.slot(to).instrument() as usize;
            self.levels
                .renumber(&mut self.orders, &self.books[moved], moved, to);
        }
        Ok(index)
    }

    /// Takes an order out of its level and frees its slot. What is different.
    #[inline(always)]
    fn remove(&mut self, book: usize, index: u32, slot: Slot) -> UpdateFlags {
        let side = slot.side();
        self.total(book, side, |total| total.less(slot.qty as u64, 1));
        let at = &mut self.books[book];
        let changes = match self.by_order {
            true => self
                .levels
                .leave(&mut self.orders, at, slot.side_of(book), index, slot),
            false => self.levels.take(at, slot.side_of(book), slot.key, slot.qty, true),
        };
        self.orders.release(index);
        changes
    }

    /// Writes down the top of the book after an event.
    #[inline(always)]
    fn publish(&mut self, event: &MarketEvent, book: usize, side: Side, changes: UpdateFlags) {
        let at = &mut self.books[book];
        let state = if self.feed == BookState::Live {
            at.own.state()
        } else {
            worse(self.feed, at.own.state())
        };
        let changed = UpdateFlags(changes.0 | ((state != at.shown) as u8) << 3);
        (at.shown, at.seq, at.venue_ts) = (state, event.seq, event.venue_ts);
        let last = &mut self.last;
        (last.seq, last.venue_ts, last.recv_ts) = (event.seq, event.venue_ts, event.recv_ts);
        (last.instrument, last.state, last.changed) = (InstrumentId(book as u32), state, changed);
        // The side just written first: read one by one, the values come out of the store buffer; read as a
        // pair they would have to wait for it.
        for side in [side, !side] {
            let (key, qty) = at.best(side);
            last.price[side as usize] = price_of(side, key);
            last.qty[side as usize] = Volume(qty);
        }
    }

    /// A book that had no room for an order or level misses it from now on: stale until cleared.
    #[cold]
    fn lose(&mut self, book: usize, error: BookError) -> BookError {
        if error == BookError::Full {
            self.books[book].own = Own::Full;
            self.last.instrument = InstrumentId(book as u32);
        }
        error
    }

    /// Counts a rejection.
    #[cold]
    fn refuse(&mut self, error: BookError) -> BookError {
        self.counters.bump(match error {
            BookError::Full => Counter::BookFull,
            _ => Counter::BookRejects,
        });
        error
    }

    /// The book that changed last, or had no room.
    pub(crate) fn last_instrument(&self) -> InstrumentId {
        self.last.instrument
    }
}

impl EventSink for Books {
    #[inline]
    fn on_event(&mut self, event: &MarketEvent) {
        self.apply(event);
    }

    #[inline]
    fn upcoming(&mut self, next: Upcoming) {
        Books::upcoming(self, next);
    }

    #[inline]
    fn arriving(&mut self, next: Upcoming) {
        Books::arriving(self, next);
    }

    #[inline]
    fn next_distrusted(&mut self) -> Option<InstrumentId> {
        Books::next_distrusted(self)
    }
}

/// What is different on a side, given its best level before the event and the levels the event touched. Free
/// of branches: whether an event touches the best level is what nobody can predict.
#[inline(always)]
fn difference(at: &Book, side: Side, before: (i64, u64), touched: &[i64]) -> UpdateFlags {
    let after = at.best(side);
    let price = (after.0 != before.0) | ((after.1 == 0) != (before.1 == 0));
    let best = price | (after.1 != before.1);
    let behind = touched
        .iter()
        .fold(false, |any, &key| any | ((key != before.0) & (key != after.0)));
    UpdateFlags((best as u8) << side as u8 | (behind as u8) << 2 | (price as u8) << (4 + side as u8))
}

/// An order's quantity: more than nothing and within 32 bits.
#[inline]
pub(crate) fn order_qty(qty: Volume) -> Result<u32, BookError> {
    match u32::try_from(qty.0) {
        Ok(qty) if qty != 0 => Ok(qty),
        _ => Err(BookError::QtyRange),
    }
}

/// The state of a book within a feed: stale if either is, live only if both are.
#[inline]
pub(crate) fn worse(a: BookState, b: BookState) -> BookState {
    match (a, b) {
        (BookState::Stale, _) | (_, BookState::Stale) => BookState::Stale,
        (BookState::Live, BookState::Live) => BookState::Live,
        _ => BookState::Building,
    }
}
