//! From events to the states of books that a [`Stream`](crate::reader::Stream) hands over.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use tickwire_book::{Books, BooksConfig, InstrumentStates, OrderView};
use tickwire_console::failure::Failure;
use tickwire_market::{
    BookState, Counters, EventFlags, EventKind, Instrument, InstrumentId, Level, MarketEvent, Nanos, OrderId,
    PointValue, Price, SeqNo, Side, TradingStatus, Venue, Volume,
};
use tickwire_replay::played::{Follow, Keep, Play};
use tickwire_replay::replay::{self, MakePlay, RecordsFile};
use tickwire_venues::channels::FeedConfig;
use tickwire_venues::wiring::Reception;

use crate::reader::Chunks;
use crate::rows::Midnights;

/// Trades of a channel that are remembered, so that one that is broken comes off the volume.
const TRADES_KEPT: u32 = 1 << 14;

/// A state of a book of a recording.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RecordedBook {
    /// The channel's name.
    pub source: Arc<str>,
    /// The venue.
    pub venue: Venue,
    /// The symbol; `#` and the number where the recording does not say.
    pub symbol: Arc<str>,
    /// The instrument's number within its channel.
    pub instrument: InstrumentId,
    /// Which state of this book it is, counted from 1.
    pub count: u64,
    /// The message that changed it.
    pub seq: SeqNo,
    /// When its packet was received.
    pub recv_ts: Nanos,
    /// The venue's time of that message.
    pub venue_ts: Nanos,
    /// Whether the book can be trusted.
    pub state: BookState,
    /// Whether the instrument trades.
    pub status: TradingStatus,
    /// The best levels, bids first, best first.
    pub sides: [Vec<Level>; 2],
    /// Levels of the whole book, bids first.
    pub levels: [u32; 2],
    /// Quantity of the whole book, bids first.
    pub qty: [Volume; 2],
    /// Orders of the whole book, bids first; 0 where the feed does not say.
    pub orders: [u64; 2],
    /// Price of the last trade, where its quantity is not 0.
    pub last_price: Price,
    /// Quantity of the last trade.
    pub last_qty: Volume,
    /// The venue's time of the last trade.
    pub last_ts: Nanos,
    /// Quantity traded, as far as the recording goes back.
    pub volume: Volume,
    /// Trades.
    pub trades: u64,
}

impl RecordedBook {
    /// The best level of a side.
    pub fn best(&self, side: Side) -> Option<&Level> {
        self.sides[side as usize].first()
    }
}

/// What is looked at.
pub(crate) struct Watch {
    pub(crate) levels: usize,
    pub(crate) span: [u64; 2],
    pub(crate) date: Option<jiff::civil::Date>,
    pub(crate) sender: Chunks,
}

/// Counts of what was handed over.
#[derive(Default)]
struct Shared {
    books: u64,
    marked: u64,
}

/// Makes channels whose books are looked at.
pub(crate) struct Looking {
    watch: Rc<RefCell<Watch>>,
    shared: Rc<RefCell<Shared>>,
}

impl Looking {
    pub(crate) fn new(watch: Watch) -> Looking {
        Looking {
            watch: Rc::new(RefCell::new(watch)),
            shared: Rc::default(),
        }
    }

    /// Hands over what waits: how many books, and how many of them not to be relied on.
    pub(crate) fn finish(self) -> (u64, u64) {
        self.watch.borrow_mut().sender.flush();
        let shared = self.shared.borrow();
        (shared.books, shared.marked)
    }

    fn look(&self, source: &str, books: BooksConfig, tells_groups: bool) -> Look {
        let watch = self.watch.borrow();
        Look {
            watch: self.watch.clone(),
            shared: self.shared.clone(),
            source: source.into(),
            venue: books.venue,
            tells_groups,
            levels: watch.levels,
            span: watch.span,
            midnights: Midnights::new(books.venue, watch.date),
            states: InstrumentStates::new(books.instruments, TRADES_KEPT),
            known: Vec::new(),
            changed: Vec::new(),
            pending: Vec::new(),
            now: Nanos::ZERO,
            books: None,
        }
    }
}

/// What is known of a book.
#[derive(Clone, Default)]
struct Known {
    symbol: Option<Arc<str>>,
    sides: [Vec<Level>; 2],
    state: Option<BookState>,
    count: u64,
    is_changed: bool,
}

/// A channel whose books are looked at.
struct Look {
    watch: Rc<RefCell<Watch>>,
    shared: Rc<RefCell<Shared>>,
    source: Arc<str>,
    venue: Venue,
    tells_groups: bool,
    levels: usize,
    span: [u64; 2],
    midnights: Midnights,
    states: InstrumentStates,
    known: Vec<Known>,
    /// Instruments that the group under way has touched.
    changed: Vec<InstrumentId>,
    /// Books of the packet under way: its instruments get their names at its end.
    pending: Vec<RecordedBook>,
    now: Nanos,
    /// Of files of records, which have no books for it.
    books: Option<Box<Books>>,
}

impl Look {
    fn known(&mut self, id: InstrumentId) -> &mut Known {
        if self.known.len() <= id.index() {
            self.known.resize(id.index() + 1, Known::default());
        }
        &mut self.known[id.index()]
    }

    fn apply(&mut self, event: &MarketEvent, books: &mut Books) {
        if event.recv_ts != Nanos::ZERO {
            self.now = event.recv_ts;
        }
        books.apply(event);
        let mut own = *event;
        self.states.apply(&mut own, books.executed_at(event));
        if event.instrument == InstrumentId::WHOLE_FEED {
            if matches!(
                event.kind,
                EventKind::Gap | EventKind::Recovered | EventKind::Clear
            ) {
                // Every book that was shown has another state now.
                let shown: Vec<InstrumentId> = (0..self.known.len() as u32)
                    .map(InstrumentId)
                    .filter(|id| self.known[id.index()].state.is_some())
                    .collect();
                shown.into_iter().for_each(|id| self.touch(id));
            }
        } else if event.kind != EventKind::EndOfGroup {
            self.touch(event.instrument);
        }
        let ends = !self.tells_groups
            || event.flags.has(EventFlags::LAST)
            || matches!(
                event.kind,
                EventKind::EndOfGroup | EventKind::Gap | EventKind::Recovered
            );
        if ends {
            self.end_group(event, books);
        }
    }

    fn touch(&mut self, id: InstrumentId) {
        if !std::mem::replace(&mut self.known(id).is_changed, true) {
            self.changed.push(id);
        }
    }

    fn end_group(&mut self, event: &MarketEvent, books: &Books) {
        let changed = std::mem::take(&mut self.changed);
        for id in &changed {
            self.show(*id, event, books);
        }
        self.changed = changed;
        self.changed.clear();
    }

    /// Hands over a book if it is another one than it was.
    fn show(&mut self, id: InstrumentId, event: &MarketEvent, books: &Books) {
        let depth = self.levels;
        let known = self.known(id);
        known.is_changed = false;
        let Some(book) = books.book(id) else { return };
        let state = book.state();
        let is_same = known.state == Some(state)
            && Side::BOTH.into_iter().all(|side| {
                book.levels(side)
                    .take(depth)
                    .eq(known.sides[side as usize].iter().copied())
            });
        let is_unborn = known.state.is_none() && book.is_empty();
        if is_same || is_unborn {
            return;
        }
        for side in Side::BOTH {
            let levels = &mut known.sides[side as usize];
            levels.clear();
            levels.extend(book.levels(side).take(depth));
        }
        known.state = Some(state);
        known.count += 1;
        let (sides, count) = (known.sides.clone(), known.count);
        let received = self.midnights.dated(self.now, self.now);
        if received.0 < self.span[0] || received.0 >= self.span[1] {
            return;
        }
        let venue_ts = match event.venue_ts {
            Nanos::ZERO => received,
            time => self.midnights.dated(time, self.now),
        };
        let facts = self.states.get(id).copied().unwrap_or_default();
        let last_ts = match facts.last.venue_ts {
            Nanos::ZERO => Nanos::ZERO,
            time => self.midnights.dated(time, self.now),
        };
        let totals = books.totals(id);
        self.pending.push(RecordedBook {
            source: self.source.clone(),
            venue: self.venue,
            symbol: self.source.clone(),
            instrument: id,
            count,
            seq: event.seq,
            recv_ts: received,
            venue_ts,
            state,
            status: match facts.status {
                TradingStatus::Unknown => self.states.venue_status(),
                status => status,
            },
            sides,
            levels: totals.map(|t| t.levels),
            qty: totals.map(|t| t.qty),
            orders: totals.map(|t| t.orders),
            last_price: facts.last.price,
            last_qty: facts.last.qty,
            last_ts,
            volume: facts.volume,
            trades: facts.trades,
        });
    }

    fn name(&mut self, instrument: &Instrument) {
        let symbol: Arc<str> = instrument.symbol.as_str().into();
        self.known(instrument.id).symbol = Some(symbol);
    }

    /// The packet is over: its instruments have names now.
    fn hand_over(&mut self) {
        if self.pending.is_empty() {
            return;
        }
        let mut watch = self.watch.borrow_mut();
        let mut shared = self.shared.borrow_mut();
        for mut book in self.pending.drain(..) {
            let known = &mut self.known[book.instrument.index()];
            let number = || format!("#{}", book.instrument.0).into();
            book.symbol = known.symbol.get_or_insert_with(number).clone();
            shared.books += 1;
            shared.marked += u64::from(book.state != BookState::Live);
            watch.sender.push(book);
        }
    }
}

impl Drop for Look {
    fn drop(&mut self) {
        self.hand_over();
    }
}

impl Keep for Look {
    fn event(&mut self, event: &MarketEvent, books: &mut Books) {
        self.apply(event, books);
    }

    fn defined(&mut self, instrument: &Instrument) {
        self.name(instrument);
    }

    fn packet(&mut self, _: Nanos, _: usize, _: &dyn Fn() -> Counters) {
        self.hand_over();
    }
}

impl Follow for Look {
    const HEARS_EXECUTIONS: bool = true;

    fn record(&mut self, _: Nanos, _: Option<InstrumentId>) {
        self.hand_over();
    }

    fn event(&mut self, event: &MarketEvent) {
        if let Some(mut books) = self.books.take() {
            self.apply(event, &mut books);
            self.books = Some(books);
        }
    }

    fn defined(&mut self, instrument: &Instrument, _: Option<PointValue>) {
        self.name(instrument);
    }

    fn order(&self, order: OrderId) -> Option<OrderView> {
        self.books.as_ref()?.order(order)
    }

    fn look(&self, at: &mut dyn FnMut(&Books)) {
        if let Some(books) = &self.books {
            at(books);
        }
    }
}

impl MakePlay for Looking {
    fn channel(
        &mut self,
        feed: &FeedConfig,
        number: usize,
        reception: &Reception,
        name: String,
        books: BooksConfig,
    ) -> Result<Box<dyn Play>, Failure> {
        let books = BooksConfig {
            venue: feed.venue,
            tracked: true,
            ..books
        };
        let look = self.look(&name, books, feed.protocol().tells_match_events());
        replay::kept(feed, number, reception, name, books, Box::new(look))
    }

    fn records(&mut self, file: RecordsFile) -> Result<Box<dyn Play>, Failure> {
        if !file.is_by_order() {
            return Err(Failure::config(format!(
                "{}: of DBN, files of market by order (mbo) make books here; mbp-1 and mbp-10 are levels already",
                file.name()
            )));
        }
        let books = BooksConfig {
            tracked: true,
            ..file.books()
        };
        let name = file.name().to_string();
        let mut look = self.look(&name, books, true);
        look.books = Some(Box::new(Books::new(books)));
        Ok(file.into_play(look))
    }

    fn is_for_channels(&self) -> bool {
        true
    }
}
