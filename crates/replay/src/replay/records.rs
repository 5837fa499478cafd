//! Files of records instead of packets: Databento's DBN (market by order, by price, definitions) and
//! LOBSTER's messages.
//!
//! | file | books |
//! |---|---|
//! | DBN `mbo` | by order: `A` adds, `C` takes away, `M` changes, `R` clears; trades and fills change nothing, the cancel after them does |
//! | DBN `mbp-1`, `mbp-10` | by price, from the levels of every record |
//! | DBN `definition` | none: symbols, steps of price and what a point is worth |
//! | LOBSTER | [`super::lobster`] |
//!
//! They are read once and not looked through before: the header says what there is room needed for. `--check`
//! compares the books with the vendor's own: a DBN file of `mbp-10` at every event, a LOBSTER order book row
//! by row.

use std::collections::{BTreeMap, HashMap};
use std::io::Cursor;
use std::path::Path;
use std::time::Duration;

use tickwire_book::{Applied, Books, BooksConfig, OrderView};
use tickwire_feed::{FeedState, Line};
use tickwire_market::{
    Counter, Counters, Currency, EventFlags, EventKind, Instrument, InstrumentId, MarketEvent, Nanos,
    OrderId, PointValue, Port, Price, SeqNo, Side, Symbol, Venue, Volume,
};
use tickwire_runtime::capture::CaptureError;
use tickwire_runtime::clock::Clock;
use tickwire_runtime::itchfile::Recording;
use tickwire_wire::dbn::{self, LevelRow, Record};
use tickwire_wire::{Malformed, itch50};

use super::lobster::Rows;
use crate::played::{Checked, Cost, Follow, Play, describe};
use crate::tape::End;

/// A file of records with what it is played into.
pub(super) struct Records<F> {
    pub(super) to: F,
    venue: Venue,
    directory: BTreeMap<Symbol, InstrumentId>,
    numbers: Numbers,
    /// By instrument: what is known of its book.
    known: Vec<Known>,
    pub(super) counters: Counters,
    cost: Cost,
    pub(super) next: SeqNo,
    is_lobster: bool,
    /// Symbols that are wanted, and by instrument whether it is one of them; `None`: all are.
    wanted: Option<(Vec<Symbol>, Vec<bool>)>,
    /// Events that took from orders entered before the file begins.
    pub(super) unseen: u64,
    pub(super) check: Check,
    pub(super) checked: Checked,
    /// Of orders, by market by order records: executed, and not taken from the book yet, which a record of
    /// its own does.
    filled: HashMap<OrderId, u64>,
    trade: LastTrade,
    /// Of who hears executions: when, of what and when received the match event is that is being told;
    /// whether the record at hand ends it, and has told something.
    group: Option<(Nanos, InstrumentId, Nanos)>,
    is_last: bool,
    has_told: bool,
}

/// The last trade, until the records of its fills are over.
#[derive(Default)]
struct LastTrade {
    /// The order that took.
    aggressor: OrderId,
    /// Of who hears executions: with the quantity that no fill had so far.
    rest: Option<MarketEvent>,
    /// The records at hand are a trade and its fills; fills without a trade are of what is not to be printed.
    is_at_hand: bool,
    /// The last of them was marked as the last of its match event.
    ends_group: bool,
}

impl LastTrade {
    /// An order that stood here had so much of it.
    fn fill(&mut self, qty: Volume) {
        self.rest = self.rest.and_then(|trade| {
            let left = trade.qty.0.saturating_sub(qty.0);
            (left > 0).then_some(MarketEvent {
                qty: Volume(left),
                ..trade
            })
        });
    }
}

/// What is known of a book.
#[derive(Clone, Copy, Default)]
struct Known {
    /// It began with a clear, a snapshot, or a record that holds all of it.
    is_whole: bool,
    /// There was an order event.
    is_touched: bool,
}

/// Numbers of instruments in the order in which they are met.
#[derive(Default)]
struct Numbers {
    by_number: HashMap<u32, InstrumentId>,
    /// Records of one instrument come one after the other.
    last: Option<(u32, InstrumentId)>,
}

impl Numbers {
    #[inline]
    fn id_of(&mut self, number: u32) -> InstrumentId {
        match self.last {
            Some((last, id)) if last == number => id,
            _ => {
                let next = InstrumentId(self.by_number.len() as u32 + 1);
                let id = *self.by_number.entry(number).or_insert(next);
                self.last = Some((number, id));
                id
            }
        }
    }
}

/// Both sides of a record of ten levels.
type TenLevels = [[LevelRow; 10]; 2];

/// What the books are compared with.
pub(super) enum Check {
    None,
    /// By instrument, time and number: what the vendor's book shows after that event.
    Events(HashMap<(u32, u64, u32), Vec<TenLevels>>),
    Rows(Box<Rows>),
}

/// Reads what the books are to be compared with.
pub(super) fn check_of(path: &Path) -> Result<Check, End> {
    let mut events: HashMap<_, Vec<_>> = HashMap::new();
    match Recording::open(path, itch50::message_size) {
        Ok(Recording::Records(mut file)) => {
            while let Some(record) = file.next_record()? {
                if let Ok(Record::Mbp10(m)) = dbn::parse(record.bytes)
                    && matches!(m.action.0, b'A' | b'C' | b'M')
                {
                    let key = (m.instrument_id.get(), m.ts_event.0.get(), m.sequence.get());
                    events.entry(key).or_default().push(m.levels());
                }
            }
            match events.is_empty() {
                true => Err(End::Damaged(format!(
                    "{} has no mbp-10 record to compare with",
                    path.display()
                ))),
                false => Ok(Check::Events(events)),
            }
        }
        Err(e) if e.is_unreadable() => Err(e.into()),
        // Rows of prices and sizes have no mark of their own.
        _ => Rows::open(path).map(|rows| Check::Rows(Box::new(rows))),
    }
}

/// A file of records that is about to be played.
pub struct RecordsFile {
    pub(super) name: String,
    pub(super) is_by_order: bool,
    pub(super) is_lobster: bool,
    pub(super) books: BooksConfig,
    pub(super) check: Check,
    /// Of which symbols alone anything is told; `None`: of all.
    pub(super) symbols: Option<Vec<Symbol>>,
    pub(super) clock: Clock,
}

impl RecordsFile {
    /// Of which data set it is.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether it tells every order, not levels alone.
    pub fn is_by_order(&self) -> bool {
        self.is_by_order
    }

    /// The sizes that its books need, at its venue.
    pub fn books(&self) -> BooksConfig {
        self.books
    }

    /// Plays it into `to`.
    pub fn into_play<F: Follow + 'static>(self, to: F) -> Box<dyn Play> {
        Box::new(Records {
            to,
            venue: self.books.venue,
            directory: BTreeMap::new(),
            numbers: Numbers::default(),
            known: Vec::new(),
            counters: Counters::default(),
            // What it costs is of interest where the books are all there is.
            cost: match F::HEARS_EXECUTIONS {
                true => Cost::new(self.name),
                false => Cost::timed(self.name, self.clock),
            },
            next: SeqNo(1),
            is_lobster: self.is_lobster,
            wanted: self.symbols.map(|symbols| (symbols, Vec::new())),
            unseen: 0,
            check: self.check,
            checked: Checked::default(),
            filled: HashMap::new(),
            trade: LastTrade::default(),
            group: None,
            is_last: self.is_lobster,
            has_told: false,
        })
    }
}

/// Plays a file of records or of lines, as it is in memory, into `to`: for whoever has no file, and for
/// fuzzing. What was counted.
///
/// # Errors
/// [`CaptureError`]: it is none, or is damaged; what was before the damage was played.
pub fn play_records<F: Follow + 'static>(
    bytes: Vec<u8>,
    books: BooksConfig,
    to: F,
) -> Result<Counters, CaptureError> {
    let recording = Recording::from_reader("memory", Cursor::new(bytes), itch50::message_size)?;
    let is_lobster = matches!(recording, Recording::Lines(_));
    let file = RecordsFile {
        name: "memory".into(),
        is_by_order: true,
        is_lobster,
        books,
        check: Check::None,
        symbols: None,
        // Nobody reads what it costs.
        clock: Clock::calibrate_for(Duration::ZERO),
    };
    let mut played = file.into_play(to);
    match recording {
        Recording::Records(mut file) => {
            if let Ok(metadata) = dbn::Metadata::parse(file.version(), file.metadata()) {
                let _ = name_all(&metadata, &mut *played);
            }
            while let Some(record) = file.next_record()? {
                played.on_message(Nanos::ZERO, record.bytes);
            }
        }
        Recording::Lines(mut file) => {
            while let Some((_, line)) = file.next_line()? {
                played.on_message(Nanos::ZERO, line);
            }
        }
        Recording::Packets(_) | Recording::Messages(_) => {}
    }
    Ok(played.counters())
}

/// Tells the symbols of a file's header.
pub(super) fn name_all(metadata: &dbn::Metadata<'_>, played: &mut dyn Play) -> Result<(), Malformed> {
    metadata.mappings(&mut |symbol, number| {
        let number = std::str::from_utf8(number).ok().and_then(|n| n.parse().ok());
        // Numbers may be asked for by number: what is mapped then is the symbol.
        if let Some(number) = number {
            played.name(number, symbol);
        }
    })
}

/// The books alone.
pub(super) struct Alone {
    pub(super) books: Books,
    pub(super) shown: Option<Vec<String>>,
}

impl Follow for Alone {
    const HEARS_EXECUTIONS: bool = false;

    fn event(&mut self, event: &MarketEvent) {
        let applied: Applied<'_> = self.books.apply(event);
        if let Some(shown) = &mut self.shown {
            shown.push(describe(event, &applied));
        }
    }

    fn defined(&mut self, _: &Instrument, _: Option<PointValue>) {}

    fn order(&self, order: OrderId) -> Option<OrderView> {
        self.books.order(order)
    }

    fn look(&self, at: &mut dyn FnMut(&Books)) {
        at(&self.books);
    }

    fn take_shown(&mut self) -> Vec<String> {
        self.shown.as_mut().map(std::mem::take).unwrap_or_default()
    }
}

impl<F: Follow> Records<F> {
    /// Tells who follows.
    pub(super) fn tell(&mut self, event: &MarketEvent) {
        let flags = match self.is_last {
            true => event.flags.with(EventFlags::LAST),
            false => event.flags,
        };
        self.has_told = true;
        self.to.event(&MarketEvent { flags, ..*event });
    }

    /// The match event that is being told is over, by a record that told nothing itself.
    fn end_group(&mut self) {
        if let Some((_, instrument, recv_ts)) = self.group.take() {
            self.is_last = true;
            self.tell(&MarketEvent {
                kind: EventKind::EndOfGroup,
                recv_ts,
                instrument,
                ..MarketEvent::default()
            });
        }
    }

    /// What is known of an instrument's book.
    fn known(&mut self, id: InstrumentId) -> &mut Known {
        if self.known.len() <= id.index() {
            self.known.resize(id.index() + 1, Known::default());
        }
        &mut self.known[id.index()]
    }

    /// An event was about a book, which it may have begun.
    pub(super) fn touch(&mut self, id: InstrumentId, begins: bool) {
        let known = self.known(id);
        known.is_whole |= begins && !known.is_touched;
        known.is_touched = true;
    }

    fn dbn(&mut self, bytes: &[u8]) {
        let record = match dbn::parse(bytes) {
            Ok(record) => record,
            Err(_) => return self.counters.bump(Counter::Malformed),
        };
        self.counters.bump(Counter::Messages);
        let action = match &record {
            Record::Mbo(m) if F::HEARS_EXECUTIONS => Some(m.action.0),
            _ => None,
        };
        // Before anybody hears of a later time: what is left of the trade was when the trade was.
        if action != Some(b'F') {
            self.settle();
            self.trade.is_at_hand = action == Some(b'T');
        }
        if record.definition().is_none() {
            let header = record.header();
            let id = self.numbers.id_of(header.instrument_id.get());
            if let Some((_, wanted)) = &self.wanted
                && !wanted.get(id.index()).copied().unwrap_or(false)
            {
                return self.counters.bump(Counter::MessagesFiltered);
            }
            self.to
                .record(header.ts_event.get().unwrap_or_default(), Some(id));
        }
        match record {
            Record::Mbo(m) if !F::HEARS_EXECUTIONS => self.mbo(m),
            Record::Mbo(m) => {
                // Not every data set says where a match event ends, and of fills none does; its time does.
                let at = m.ts_event.get().unwrap_or_default();
                if self.group.is_some_and(|(before, ..)| before != at) {
                    self.end_group();
                }
                let is_last = m.flags & dbn::flags::LAST != 0;
                let filled = u64::from(if m.action.0 == b'F' { m.size.get() } else { 0 });
                let has_rest = self.trade.rest.is_some_and(|trade| trade.qty.0 > filled);
                self.is_last = is_last && !has_rest;
                self.has_told = false;
                self.mbo(m);
                // Each record of a message may say that it is the last, the trade before its fills, too.
                self.trade.ends_group = is_last;
                self.is_last = is_last && self.trade.rest.is_none();
                match (self.is_last, self.has_told) {
                    (true, true) => self.group = None,
                    (true, false) => self.end_group(),
                    (false, true) => {
                        let instrument = self.numbers.id_of(m.instrument_id.get());
                        self.group = Some((at, instrument, received(m)));
                    }
                    (false, false) => {}
                }
            }
            Record::Mbp1(m) => self.by_price(m.levels(), m.sequence.get(), &record),
            Record::Mbp10(m) => self.by_price(m.levels(), m.sequence.get(), &record),
            _ => match record.definition() {
                Some(definition) => self.define(definition.number, definition.symbol, Some(&definition)),
                None => self.counters.bump(Counter::MessagesUnknown),
            },
        }
    }

    #[inline]
    fn mbo(&mut self, m: &dbn::Mbo) {
        self.next = SeqNo(u64::from(m.sequence.get()) + 1);
        let is_snapshot = m.flags & dbn::flags::SNAPSHOT != 0;
        let kind = match m.action.0 {
            b'A' => EventKind::Add,
            b'C' => EventKind::Reduce,
            b'M' => EventKind::Modify,
            b'R' => EventKind::Clear,
            b'F' if F::HEARS_EXECUTIONS => EventKind::Execute,
            b'T' => {
                self.trade.aggressor = OrderId(m.order_id.get());
                if F::HEARS_EXECUTIONS {
                    self.note_trade(m);
                }
                return;
            }
            b'F' | b'N' => return,
            _ => return self.counters.bump(Counter::Malformed),
        };
        let instrument = self.numbers.id_of(m.instrument_id.get());
        let (side, price) = (dbn::side(m.side), m.price.get());
        let event = MarketEvent {
            kind,
            instrument,
            seq: SeqNo(m.sequence.get().into()),
            venue_ts: m.ts_event.get().unwrap_or_default(),
            recv_ts: received(m),
            order_id: OrderId(m.order_id.get()),
            side: side.unwrap_or_default(),
            price: price.unwrap_or_default(),
            qty: Volume(m.size.get().into()),
            flags: if is_snapshot {
                EventFlags::SNAPSHOT
            } else {
                EventFlags::NONE
            },
            ..MarketEvent::default()
        };
        let is_said = side.is_some() && price.is_some();
        if kind == EventKind::Execute {
            // A fill of no side is of no order here. Who takes may be an order that stood: its owner moved it
            // there, it was not hit in its queue.
            if is_said && event.order_id != self.trade.aggressor {
                self.trade.fill(event.qty);
                let flags = match self.trade.is_at_hand {
                    true => event.flags,
                    false => event.flags.with(EventFlags::NOT_PRINTABLE),
                };
                self.executed(&MarketEvent { flags, ..event });
            }
            return;
        }
        self.touch(instrument, is_snapshot || kind == EventKind::Clear);
        if kind != EventKind::Clear && !is_said {
            return self.counters.bump(Counter::Malformed);
        }
        self.tell_order(&event);
        if let Check::Events(_) = self.check {
            self.check_event(m);
        }
    }

    /// A trade, whose fills follow. What they do not account for was traded by nobody who stood here: hidden,
    /// implied, in a cross.
    fn note_trade(&mut self, m: &dbn::Mbo) {
        let Some(price) = m.price.get() else {
            return self.counters.bump(Counter::Malformed);
        };
        let side = dbn::side(m.side);
        self.trade.rest = Some(MarketEvent {
            kind: EventKind::Trade,
            instrument: self.numbers.id_of(m.instrument_id.get()),
            seq: SeqNo(m.sequence.get().into()),
            venue_ts: m.ts_event.get().unwrap_or_default(),
            recv_ts: received(m),
            side: side.unwrap_or_default(),
            price,
            qty: Volume(m.size.get().into()),
            flags: side.map_or(EventFlags::NO_SIDE, |_| EventFlags::NONE),
            ..MarketEvent::default()
        });
    }

    /// The fills of the last trade are over: tells what is left of it.
    fn settle(&mut self) {
        if let Some(trade) = self.trade.rest.take() {
            self.is_last = self.trade.ends_group;
            self.tell(&trade);
            let group = (trade.venue_ts, trade.instrument, trade.recv_ts);
            self.group = Some(group).filter(|_| !self.is_last);
        }
    }

    /// An order was executed: the book changes by a later record, for who hears executions it does so now.
    fn executed(&mut self, event: &MarketEvent) {
        *self.filled.entry(event.order_id).or_default() += event.qty.0;
        let shown = self
            .to
            .order(event.order_id)
            .map_or(0, |order| order.qty.0.into());
        let of_shown = event.qty.0.min(shown);
        if of_shown > 0 {
            self.tell(&MarketEvent {
                qty: Volume(of_shown),
                ..*event
            });
        }
        // An iceberg trades more than it shows; what it shows next comes behind the others, by a record of
        // its own.
        if event.qty.0 > of_shown {
            self.tell(&MarketEvent {
                kind: EventKind::Trade,
                order_id: OrderId::default(),
                qty: Volume(event.qty.0 - of_shown),
                flags: event.flags.with(EventFlags::NO_SIDE),
                ..*event
            });
        }
    }

    /// Tells of an event of an order, without what its execution has told already.
    #[inline]
    fn tell_order(&mut self, event: &MarketEvent) {
        let told = match self.filled.is_empty() {
            true => 0,
            false => self.filled.remove(&event.order_id).unwrap_or(0),
        };
        match event.kind {
            EventKind::Reduce if told > 0 => {
                let left = self
                    .to
                    .order(event.order_id)
                    .map_or(0, |order| order.qty.0.into());
                let more = event.qty.0.saturating_sub(told).min(left);
                if more > 0 {
                    self.tell(&MarketEvent {
                        qty: Volume(more),
                        ..*event
                    });
                }
            }
            // CME keeps the place of an order whose price stays and whose quantity does not grow (MDP 3.0,
            // Order priority).
            EventKind::Modify => match self.to.order(event.order_id) {
                // All that an iceberg showed was executed: it shows more, behind the others.
                None if told > 0 => self.tell(&MarketEvent {
                    kind: EventKind::Add,
                    ..*event
                }),
                before => {
                    let keeps =
                        before.is_some_and(|o| o.price == event.price && event.qty.0 <= o.qty.0.into());
                    let flags = match keeps {
                        true => event.flags.with(EventFlags::KEEPS_PRIORITY),
                        false => event.flags,
                    };
                    self.tell(&MarketEvent { flags, ..*event });
                }
            },
            _ => self.tell(event),
        }
    }

    #[cold]
    fn check_event(&mut self, m: &dbn::Mbo) {
        let Check::Events(events) = &mut self.check else {
            return;
        };
        let key = (m.instrument_id.get(), m.ts_event.0.get(), m.sequence.get());
        let Some(rows) = events.get_mut(&key) else { return };
        let id = self.numbers.id_of(m.instrument_id.get());
        let mut have = [[(None, 0, 0); 10]; 2];
        self.to.look(&mut |books| {
            let Some(book) = books.book(id) else { return };
            for side in Side::BOTH {
                for (row, level) in have[side as usize].iter_mut().zip(book.levels(side)) {
                    *row = (Some(level.price), level.qty.0 as u32, level.orders);
                }
            }
        });
        let before = rows.len();
        rows.retain(|row| *row != have);
        self.checked.equal += (before - rows.len()) as u64;
        if rows.is_empty() {
            events.remove(&key);
        }
    }

    /// The book is what the record shows.
    fn by_price<const N: usize>(&mut self, levels: [[LevelRow; N]; 2], sequence: u32, record: &Record<'_>) {
        let header = record.header();
        let instrument = self.numbers.id_of(header.instrument_id.get());
        self.next = SeqNo(u64::from(sequence) + 1);
        let known = self.known(instrument);
        (known.is_whole, known.is_touched) = (true, true);
        let mut changes = Vec::new();
        self.to.look(&mut |books| {
            let Some(book) = books.book(instrument) else {
                return;
            };
            for side in Side::BOTH {
                let wanted = &levels[side as usize];
                let gone = book
                    .levels(side)
                    .filter(|l| wanted.iter().all(|w| w.0 != Some(l.price)));
                changes.extend(gone.map(|l| (side, l.price, 0, 0)));
                for (price, qty, orders) in wanted {
                    let Some(price) = *price else { continue };
                    let same = |l: &tickwire_market::Level| {
                        (l.price, l.qty.0, l.orders) == (price, (*qty).into(), *orders)
                    };
                    if !book.levels(side).any(|l| same(&l)) {
                        changes.push((side, price, *qty, *orders));
                    }
                }
            }
        });
        for (side, price, qty, order_count) in changes {
            self.tell(&MarketEvent {
                kind: EventKind::Level,
                instrument,
                seq: SeqNo(sequence.into()),
                venue_ts: header.ts_event.get().unwrap_or_default(),
                side,
                price,
                qty: Volume(qty.into()),
                order_count,
                ..MarketEvent::default()
            });
        }
    }

    /// An instrument's symbol, and what its definition says of its prices.
    fn define(&mut self, number: u32, symbol: &[u8], terms: Option<&dbn::Terms<'_>>) {
        let id = self.numbers.id_of(number);
        let Some(symbol) = Symbol::new(symbol) else {
            return;
        };
        if let Some((symbols, wanted)) = &mut self.wanted {
            if wanted.len() <= id.index() {
                wanted.resize(id.index() + 1, false);
            }
            wanted[id.index()] = symbols.contains(&symbol);
            if !wanted[id.index()] {
                return;
            }
        }
        let is_known = self.directory.insert(symbol, id) == Some(id);
        // A file's header does not know more than the definition before it.
        if is_known && terms.is_none() {
            return;
        }
        let tick = terms.and_then(|terms| terms.tick).unwrap_or_default();
        let point = terms.and_then(|terms| {
            let currency = Currency::new(terms.currency).unwrap_or(Currency::NONE);
            PointValue::of_step(terms.tick?, terms.tick_amount?, currency)
        });
        let instrument = Instrument {
            id,
            symbol,
            venue: self.venue,
            tick,
            ..Instrument::default()
        };
        self.to.defined(&instrument, point);
    }
}

/// When a record was received; the venue's time where it does not say.
fn received(m: &dbn::Mbo) -> Nanos {
    let venue = || m.ts_event.get().unwrap_or_default();
    m.ts_recv.get().unwrap_or_else(venue)
}

impl<F: Follow> Play for Records<F> {
    fn on_datagram(&mut self, _: Nanos, _: Port, _: Line, _: &[u8]) {}

    fn on_message(&mut self, _: Nanos, message: &[u8]) {
        let begin = self.cost.begin();
        match self.is_lobster {
            true => self.lobster(message),
            false => self.dbn(message),
        }
        self.cost.note(begin, message.len());
    }

    fn finish(&mut self, _: Nanos) {
        self.settle();
        if let Check::Events(left) = &self.check {
            let missing: u64 = left.values().map(|rows| rows.len() as u64).sum();
            self.checked.rows = self.checked.equal + missing;
            let first = left.keys().min_by_key(|key| (key.1, key.2));
            self.checked.first = first.map(|(number, time, sequence)| {
                format!("instrument {number} at {time}, number {sequence}: no state of the book is the row's")
            });
        }
    }

    fn name(&mut self, number: u32, symbol: &[u8]) {
        self.define(number, symbol, None);
    }

    fn take_shown(&mut self) -> Vec<String> {
        self.to.take_shown()
    }

    fn state(&self) -> FeedState {
        match self.known.iter().all(|known| known.is_whole || !known.is_touched) {
            true => FeedState::Live,
            false => FeedState::Building,
        }
    }

    fn next_seq(&self) -> SeqNo {
        self.next
    }

    fn counters(&self) -> Counters {
        let mut all = self.counters.clone();
        self.to.look(&mut |books| all.merge(books.counters()));
        all
    }

    fn look(&self, at: &mut dyn FnMut(&Books)) {
        self.to.look(at);
    }

    fn directory(&self) -> BTreeMap<Symbol, InstrumentId> {
        self.directory.clone()
    }

    fn cost(&self) -> &Cost {
        &self.cost
    }

    fn checked(&self) -> Option<&Checked> {
        (!matches!(self.check, Check::None)).then_some(&self.checked)
    }

    fn unseen(&self) -> u64 {
        self.unseen
    }
}

// What the column of prices needs.
const _: () = assert!(
    Price::ONE_RAW == 1_000_000_000,
    "DBN's prices are in the units of ours"
);
