//! From events and books to rows.
//!
//! ```text
//! event ─► the book before it ─► applied ─► the book after it
//!             └ side and price of the order      └ levels, state ─► rows ─► [`Out`](crate::out::Out) when the packet is over
//! ```
//! What an event becomes:
//!
//! | event | `mbo` | `mbp-1`, `mbp-10` | `trades` |
//! |---|---|---|---|
//! | order added, changed | `A`, `M` | `A`, `M` if the levels shown changed | |
//! | quantity taken away, order deleted | `C` with what was taken | `C` | |
//! | executed | `T` (aggressor's side, order 0), `F` (the order), `C` (what it lost) | `T` with the levels before it, then `C` | `T` |
//! | executed, and not to be printed | `F`, `C` | `C` | |
//! | replaced | `C` of the old order, `A` of the new one | `M` | |
//! | traded without a displayed order | `T` | `T` | `T` |
//! | level or quote | | `A`, `M`, `C` | |
//! | cleared | `R` | `R` | |

use tickwire_book::Books;
use tickwire_market::{
    BookState, EventFlags, EventKind, Instrument, InstrumentId, MarketEvent, Nanos, Price, Side,
    TradingStatus, Venue,
};

use crate::batch::Names;
use crate::consolidated::{Best, Top};
use crate::schema::{NO_PRICE, Schema, flags};

/// Databento's number of a venue's own feed; 0 where it has none. Source: "Publishers, datasets, and venues".
pub fn publisher(venue: Venue) -> u16 {
    match venue {
        Venue::Cme => 1,
        Venue::Nasdaq => 2,
        Venue::NasdaqTexas => 3,
        Venue::Psx => 4,
        Venue::Bzx => 5,
        Venue::Byx => 6,
        Venue::Edga => 7,
        Venue::Edgx => 8,
        Venue::Nyse => 9,
        Venue::National => 10,
        Venue::American => 11,
        Venue::NyseTexas => 12,
        Venue::Arca => 43,
        Venue::Cqs | Venue::Uqdf | Venue::Moex => 0,
    }
}

/// Midnights of a venue, by which times of day become times.
pub(crate) struct Midnights {
    zone: &'static str,
    /// Said by the user.
    fixed: Option<Nanos>,
    /// The hour of the last question, and its answer.
    last: (u64, Nanos),
}

impl Midnights {
    /// Of a venue, on a day that was said, if one was.
    pub(crate) fn new(venue: Venue, date: Option<jiff::civil::Date>) -> Midnights {
        let zone = zone_of(venue);
        Midnights {
            zone,
            fixed: date.and_then(|date| midnight_of(date, zone)),
            last: (0, Nanos::ZERO),
        }
    }

    /// `at` with its date: a time of day is of the day on which it was received, by the venue's clock, or of
    /// the day that was said. Without either it stays.
    pub(crate) fn dated(&mut self, at: Nanos, received: Nanos) -> Nanos {
        if at.0 >= 2 * Nanos::DAY {
            return at;
        }
        if let Some(midnight) = self.fixed {
            return midnight.after(at.0);
        }
        if received.0 < 2 * Nanos::DAY {
            return at;
        }
        let hour = received.0 / (3600 * Nanos::SECOND);
        if self.last.0 != hour {
            self.last = (hour, midnight_before(received, self.zone).unwrap_or_default());
        }
        // Simulators stamp by UTC: where that is the time at which it was received, and the zone's is not, it
        // is meant.
        let utc = Nanos(received.0 - received.0 % Nanos::DAY);
        let is_near = |midnight: Nanos| midnight.after(at.0).0.abs_diff(received.0) <= 3600 * Nanos::SECOND;
        match (is_near(self.last.1), is_near(utc)) {
            (false, true) => utc.after(at.0),
            _ => self.last.1.after(at.0),
        }
    }
}

/// The venue's time zone.
pub(crate) fn zone_of(venue: Venue) -> &'static str {
    match venue {
        Venue::Cme => "America/Chicago",
        Venue::Moex => "Europe/Moscow",
        _ => "America/New_York",
    }
}

/// The venue's midnight before a time.
pub(crate) fn midnight_before(at: Nanos, zone: &str) -> Option<Nanos> {
    let time = jiff::Timestamp::from_nanosecond(i128::from(at.0)).ok()?;
    let day = time.in_tz(zone).ok()?.start_of_day().ok()?;
    u64::try_from(day.timestamp().as_nanosecond()).ok().map(Nanos)
}

/// Midnight of a date in a zone.
fn midnight_of(date: jiff::civil::Date, zone: &str) -> Option<Nanos> {
    let day = date.in_tz(zone).ok()?;
    u64::try_from(day.timestamp().as_nanosecond()).ok().map(Nanos)
}

/// What a channel's rows are made with.
pub(crate) struct Making {
    pub(crate) schema: Schema,
    pub(crate) channel: usize,
    pub(crate) venue: Venue,
    /// Events say where a venue's group ends; otherwise every message is one.
    pub(crate) tells_groups: bool,
    /// The day of files whose times have none.
    pub(crate) date: Option<jiff::civil::Date>,
}

/// A bar that is being filled.
#[derive(Clone, Copy)]
struct Bar {
    prices: [i64; 4],
    volume: u64,
    flags: u64,
}

/// What is known of an instrument beside its book.
#[derive(Clone, Default)]
struct Kept {
    /// The levels of the last row.
    levels: Vec<u64>,
    /// The last trade: side, price, size.
    trade: Option<[u64; 3]>,
    /// Time and number of the last event, where the second's end asks for them.
    last: [u64; 2],
    bad: u64,
    /// Of `cmbp-1`: best bid and offer, and the mark.
    top: Option<([Best; 2], u64)>,
    is_waiting: bool,
    bar: Option<Bar>,
}

/// Rows of one channel.
pub(crate) struct Rows {
    making: Making,
    midnights: Midnights,
    pub(crate) publisher: u64,
    /// Of `cmbp-1`: what the packet under way did to tops of books.
    pub(crate) tops: Vec<Top>,
    /// Rows of the packet under way, one behind the other.
    pub(crate) pending: Vec<u64>,
    pub(crate) stride: usize,
    flags_at: Option<usize>,
    kept: Vec<Kept>,
    /// Instruments whose second or bar is not over, and which one it is.
    waiting: Vec<InstrumentId>,
    interval: u64,
    levels: Vec<u64>,
    now: Nanos,
    /// The first number that does not fit its column.
    pub(crate) unfit: Option<String>,
}

impl Rows {
    pub(crate) fn new(making: Making) -> Rows {
        let columns = making.schema.columns();
        Rows {
            midnights: Midnights::new(making.venue, making.date),
            publisher: publisher(making.venue).into(),
            tops: Vec::new(),
            pending: Vec::new(),
            stride: columns.len(),
            flags_at: columns.iter().position(|c| c.name == "flags"),
            kept: Vec::new(),
            waiting: Vec::new(),
            interval: 0,
            levels: Vec::new(),
            now: Nanos::ZERO,
            unfit: None,
            making,
        }
    }

    /// An event: applied to the books, told as rows.
    pub(crate) fn event(&mut self, event: &MarketEvent, books: &mut Books) {
        if event.recv_ts != Nanos::ZERO {
            self.now = event.recv_ts;
        }
        if event.kind == EventKind::EndOfGroup {
            books.apply(event);
            return self.end_group();
        }
        let begin = self.pending.len();
        match self.making.schema {
            Schema::Mbo => self.mbo(event, books),
            Schema::Mbp1 | Schema::Mbp10 | Schema::Trades | Schema::Bbo1s => self.levels(event, books),
            Schema::Ohlcv1s | Schema::Ohlcv1m => self.bars(event, books),
            Schema::Definition => _ = books.apply(event),
            Schema::Status => {
                books.apply(event);
                self.status(event);
            }
            Schema::Imbalance => {
                books.apply(event);
                self.imbalance(event);
            }
            Schema::Statistics => {
                books.apply(event);
                self.statistics(event);
            }
            Schema::Cmbp1 => return self.top(event, books),
        }
        let ends = !self.making.tells_groups || event.flags.has(EventFlags::LAST);
        if ends && self.pending.len() > begin {
            self.end_group();
        }
    }

    /// The last row is the last of its event.
    fn end_group(&mut self) {
        let of_orders = matches!(
            self.making.schema,
            Schema::Mbo | Schema::Mbp1 | Schema::Mbp10 | Schema::Trades
        );
        if let Some(flags_at) = self.flags_at.filter(|_| of_orders)
            && let Some(last) = self.pending.len().checked_sub(self.stride)
        {
            self.pending[last + flags_at] |= flags::LAST;
        }
    }

    /// The times of an event: received, and the venue's.
    fn times(&mut self, event: &MarketEvent) -> [u64; 2] {
        let received = self.now;
        let venue = if event.venue_ts == Nanos::ZERO {
            received
        } else {
            event.venue_ts
        };
        [
            self.midnights.dated(received, received).0,
            self.midnights.dated(venue, received).0,
        ]
    }

    /// What every row begins with.
    fn head(&mut self, event: &MarketEvent) -> [u64; 5] {
        let [received, venue] = self.times(event);
        [
            received,
            venue,
            self.making.schema.rtype().into(),
            self.publisher,
            event.instrument.0.into(),
        ]
    }

    fn symbol(&self, id: InstrumentId) -> u64 {
        Names::word(self.making.channel, id)
    }

    /// A number that has to fit 32 bits.
    fn narrow(&mut self, what: &str, number: u64) -> u64 {
        if number > u32::MAX.into() {
            self.unfit.get_or_insert_with(|| {
                format!("{what} {number} does not fit the 32 bits that DBN has for it")
            });
            return u32::MAX.into();
        }
        number
    }

    fn flags(&self, event: &MarketEvent, books: &Books) -> u64 {
        let state = books
            .book(event.instrument)
            .map_or(BookState::Building, |b| b.state());
        let mut all = 0;
        if state != BookState::Live {
            all |= flags::MAYBE_BAD_BOOK;
        }
        if event.flags.has(EventFlags::SNAPSHOT) {
            all |= flags::SNAPSHOT;
        }
        all
    }

    fn mbo(&mut self, event: &MarketEvent, books: &mut Books) {
        use EventKind as Kind;
        // Whom it is about, before it is gone.
        let resting = match event.kind {
            Kind::Reduce | Kind::Execute | Kind::Delete | Kind::Replace | Kind::Modify => {
                books.order(event.order_id)
            }
            _ => None,
        };
        books.apply(event);
        let flags = self.flags(event, books);
        let side = resting.map_or(u64::from(b'N'), |o| side_of(o.side));
        let price = resting.map_or(NO_PRICE, |o| word_of(o.price));
        let id = event.order_id.0;
        let qty = event.qty.0;
        match event.kind {
            Kind::Add => self.order(
                event,
                b'A',
                side_of(event.side),
                word_of(event.price),
                qty,
                id,
                flags,
            ),
            Kind::Modify => {
                self.order(
                    event,
                    b'M',
                    side_of(event.side),
                    word_of(event.price),
                    qty,
                    id,
                    flags,
                );
            }
            Kind::Reduce => self.order(event, b'C', side, price, qty, id, flags),
            Kind::Delete => {
                let left = resting.map_or(0, |o| o.qty.0.into());
                self.order(event, b'C', side, price, left, id, flags);
            }
            Kind::Execute => {
                let at = executed_at(event, price);
                if !event.flags.has(EventFlags::NOT_PRINTABLE) {
                    self.order(event, b'T', other(side), at, qty, 0, flags);
                }
                self.order(event, b'F', side, at, qty, id, flags);
                self.order(event, b'C', side, price, qty, id, flags);
            }
            Kind::Replace => {
                let left = resting.map_or(0, |o| o.qty.0.into());
                self.order(event, b'C', side, price, left, id, flags);
                self.order(event, b'A', side, word_of(event.price), qty, event.ref_id, flags);
            }
            Kind::Trade => self.order(event, b'T', aggressor(event), word_of(event.price), qty, 0, flags),
            Kind::Clear if event.instrument != InstrumentId::WHOLE_FEED => {
                self.order(event, b'R', u64::from(b'N'), NO_PRICE, 0, 0, flags);
            }
            _ => {}
        }
    }

    #[expect(clippy::too_many_arguments, reason = "the columns of a row")]
    fn order(
        &mut self,
        event: &MarketEvent,
        action: u8,
        side: u64,
        price: u64,
        qty: u64,
        id: u64,
        flags: u64,
    ) {
        let [recv, venue, rtype, publisher, instrument] = self.head(event);
        let size = self.narrow("size", qty);
        let sequence = self.narrow("sequence", event.seq.0);
        let channel = self.making.channel.min(255) as u64;
        let symbol = self.symbol(event.instrument);
        self.pending.extend([
            recv,
            venue,
            rtype,
            publisher,
            instrument,
            action.into(),
            side,
            price,
            size,
            channel,
            id,
            flags,
            0,
            sequence,
            symbol,
        ]);
    }

    /// What was traded by an event, before it is applied: aggressor's side, price, quantity.
    fn traded(event: &MarketEvent, books: &Books) -> Option<[u64; 3]> {
        match event.kind {
            EventKind::Execute if !event.flags.has(EventFlags::NOT_PRINTABLE) => {
                let order = books.order(event.order_id);
                let side = order.map_or(u64::from(b'N'), |o| other(side_of(o.side)));
                let price = executed_at(event, order.map_or(NO_PRICE, |o| word_of(o.price)));
                Some([side, price, event.qty.0])
            }
            EventKind::Trade => Some([aggressor(event), word_of(event.price), event.qty.0]),
            _ => None,
        }
    }

    fn kept(&mut self, id: InstrumentId) -> &mut Kept {
        if self.kept.len() <= id.index() {
            self.kept.resize(id.index() + 1, Kept::default());
        }
        &mut self.kept[id.index()]
    }

    /// The levels of a book as words.
    fn read_levels(&mut self, id: InstrumentId, books: &Books) {
        let depth = self.making.schema.depth();
        self.levels.clear();
        for _ in 0..depth {
            self.levels.extend([NO_PRICE, NO_PRICE, 0, 0, 0, 0]);
        }
        let Some(book) = books.book(id) else { return };
        let mut large = None;
        for side in Side::BOTH {
            for (at, level) in book.levels(side).take(depth).enumerate() {
                let row = &mut self.levels[at * 6..at * 6 + 6];
                row[side as usize] = word_of(level.price);
                row[2 + side as usize] = level.qty.0;
                row[4 + side as usize] = level.orders.into();
                if level.qty.0 > u32::MAX.into() {
                    large = Some(level.qty.0);
                }
            }
        }
        if let Some(qty) = large {
            self.narrow("a level's size", qty);
        }
    }

    fn levels(&mut self, event: &MarketEvent, books: &mut Books) {
        let id = event.instrument;
        let traded = Self::traded(event, books);
        let is_sampled = self.making.schema == Schema::Bbo1s;
        if is_sampled {
            let second = self.times(event)[0] / Nanos::SECOND;
            self.turn_to(second);
        }
        let before = match event.kind {
            EventKind::Reduce | EventKind::Delete | EventKind::Execute | EventKind::Replace => {
                books.order(event.order_id)
            }
            _ => None,
        };
        if let Some([side, price, qty]) = traded
            && !is_sampled
        {
            // With the levels as they were.
            self.levels = std::mem::take(&mut self.kept(id).levels);
            if self.levels.is_empty() {
                self.read_levels(id, books);
            }
            let flags = self.flags(event, books);
            self.level(event, b'T', side, price, qty, 0, flags);
            let levels = std::mem::take(&mut self.levels);
            self.kept(id).levels = levels;
        }
        books.apply(event);
        if self.making.schema == Schema::Trades || id == InstrumentId::WHOLE_FEED {
            return;
        }
        self.read_levels(id, books);
        let flags = self.flags(event, books);
        let venue = self.times(event)[1];
        let kept = self.kept(id);
        let is_new = kept.levels.is_empty() && event.kind != EventKind::Clear;
        let empty = |levels: &[u64]| levels.chunks(6).all(|l| l[0] == NO_PRICE && l[1] == NO_PRICE);
        if is_sampled {
            let changed = self.levels != self.kept[id.index()].levels && !(is_new && empty(&self.levels));
            if !changed && traded.is_none() {
                return;
            }
            let levels = std::mem::take(&mut self.levels);
            let kept = self.kept(id);
            kept.levels = levels;
            kept.trade = traded.or(kept.trade);
            kept.last = [venue, event.seq.0];
            kept.bad |= flags & flags::MAYBE_BAD_BOOK;
            if !std::mem::replace(&mut kept.is_waiting, true) {
                self.waiting.push(id);
            }
            return;
        }
        if self.levels == self.kept[id.index()].levels || is_new && empty(&self.levels) {
            return;
        }
        let (side, price) = match before {
            Some(order) if event.kind != EventKind::Replace => (order.side, order.price),
            Some(order) => (order.side, event.price),
            None => (event.side, event.price),
        };
        let action = match event.kind {
            EventKind::Add => b'A',
            EventKind::Reduce | EventKind::Delete | EventKind::Execute => b'C',
            EventKind::Level if event.qty.0 == 0 => b'C',
            EventKind::Clear => b'R',
            _ => b'M',
        };
        let size = match event.kind {
            EventKind::Delete => before.map_or(0, |o| o.qty.0.into()),
            _ => event.qty.0,
        };
        let depth = books.book(id).map_or(0, |book| {
            let better = |l: &tickwire_market::Level| side.better(l.price, price);
            book.levels(side).take_while(better).count().min(255)
        });
        match event.kind {
            EventKind::Clear | EventKind::Quote | EventKind::Gap | EventKind::Recovered => {
                self.level(event, action, u64::from(b'N'), NO_PRICE, 0, 0, flags);
            }
            _ => self.level(
                event,
                action,
                side_of(side),
                word_of(price),
                size,
                depth as u64,
                flags,
            ),
        }
        let levels = std::mem::take(&mut self.levels);
        self.kept(id).levels = levels;
    }

    #[expect(clippy::too_many_arguments, reason = "the columns of a row")]
    fn level(
        &mut self,
        event: &MarketEvent,
        action: u8,
        side: u64,
        price: u64,
        qty: u64,
        depth: u64,
        flags: u64,
    ) {
        let head = self.head(event);
        let size = self.narrow("size", qty);
        let sequence = self.narrow("sequence", event.seq.0);
        let symbol = self.symbol(event.instrument);
        self.pending.extend(head);
        self.pending
            .extend([action.into(), side, depth, price, size, flags, 0, sequence]);
        let shown = self.making.schema.depth() * 6;
        self.pending.extend_from_slice(&self.levels[..shown]);
        self.pending.push(symbol);
    }

    /// The interval that is being told of is another one: what waited for the end of the one before is told.
    fn turn_to(&mut self, interval: u64) {
        if interval > self.interval {
            self.flush();
            self.interval = interval;
        }
    }

    /// Tells what waits for the end of its interval.
    pub(crate) fn flush(&mut self) {
        let mut waiting = std::mem::take(&mut self.waiting);
        waiting.sort_unstable();
        for id in waiting.drain(..) {
            match self.making.schema {
                Schema::Bbo1s => self.second(id),
                _ => self.bar(id),
            }
        }
        self.waiting = waiting;
    }

    fn second(&mut self, id: InstrumentId) {
        let (rtype, publisher, symbol) = (self.making.schema.rtype(), self.publisher, self.symbol(id));
        let end = (self.interval + 1) * Nanos::SECOND;
        let number = self.kept(id).last[1];
        let sequence = self.narrow("sequence", number);
        let kept = &mut self.kept[id.index()];
        let [side, price, size] = kept.trade.unwrap_or([u64::from(b'N'), NO_PRICE, 0]);
        let (venue, bad) = (kept.last[0], std::mem::take(&mut kept.bad));
        kept.is_waiting = false;
        let levels = kept.levels.clone();
        let size = self.narrow("size", size);
        self.pending.extend([
            end,
            venue,
            rtype.into(),
            publisher,
            id.0.into(),
            side,
            price,
            size,
        ]);
        self.pending.extend([bad, sequence]);
        self.pending.extend(levels);
        self.pending.push(symbol);
    }

    fn bars(&mut self, event: &MarketEvent, books: &mut Books) {
        let traded = Self::traded(event, books);
        books.apply(event);
        let length = match self.making.schema {
            Schema::Ohlcv1s => Nanos::SECOND,
            _ => 60 * Nanos::SECOND,
        };
        let interval = self.times(event)[1] / length;
        self.turn_to(interval);
        let Some([_, price, qty]) = traded.filter(|t| t[1] != NO_PRICE) else {
            return;
        };
        let bad = self.flags(event, books) & flags::MAYBE_BAD_BOOK;
        let price = price as i64;
        let kept = self.kept(event.instrument);
        let bar = kept.bar.get_or_insert(Bar {
            prices: [price; 4],
            volume: 0,
            flags: 0,
        });
        bar.prices = [
            bar.prices[0],
            bar.prices[1].max(price),
            bar.prices[2].min(price),
            price,
        ];
        bar.volume = bar.volume.saturating_add(qty);
        bar.flags |= bad;
        if !std::mem::replace(&mut kept.is_waiting, true) {
            self.waiting.push(event.instrument);
        }
    }

    fn bar(&mut self, id: InstrumentId) {
        let (rtype, publisher, symbol) = (self.making.schema.rtype(), self.publisher, self.symbol(id));
        let length = match self.making.schema {
            Schema::Ohlcv1s => Nanos::SECOND,
            _ => 60 * Nanos::SECOND,
        };
        let begin = self.interval * length;
        let kept = self.kept(id);
        kept.is_waiting = false;
        let Some(bar) = kept.bar.take() else { return };
        self.pending.extend([begin, rtype.into(), publisher, id.0.into()]);
        self.pending.extend(bar.prices.map(|price| price as u64));
        self.pending.extend([bar.volume, bar.flags, symbol]);
    }

    /// An instrument that the venue defined.
    pub(crate) fn defined(&mut self, instrument: &Instrument) {
        if self.making.schema != Schema::Definition {
            return;
        }
        let head = self.head(&MarketEvent {
            instrument: instrument.id,
            ..MarketEvent::default()
        });
        let tick = match instrument.tick.raw() {
            0 => NO_PRICE,
            tick => tick as u64,
        };
        let symbol = self.symbol(instrument.id);
        self.pending.extend(head);
        self.pending.extend([
            tick,
            instrument.lot.0.min(i32::MAX as u32).into(),
            b'A'.into(),
            symbol,
        ]);
    }

    fn status(&mut self, event: &MarketEvent) {
        if event.kind != EventKind::Status {
            return;
        }
        // DBN, StatusAction and TriState.
        let (action, is_trading, is_quoting) = match event.status {
            TradingStatus::PreOpen => (1, b'N', b'~'),
            TradingStatus::Auction => (2, b'N', b'~'),
            TradingStatus::Trading => (7, b'Y', b'Y'),
            TradingStatus::QuoteOnly => (3, b'N', b'Y'),
            TradingStatus::Paused => (9, b'N', b'~'),
            TradingStatus::Halted => (8, b'N', b'N'),
            TradingStatus::Closed => (12, b'N', b'N'),
            TradingStatus::Unknown => (0, b'~', b'~'),
        };
        let head = self.head(event);
        let symbol = self.symbol(event.instrument);
        self.pending.extend(head);
        self.pending
            .extend([action, is_trading.into(), is_quoting.into(), symbol]);
    }

    /// Nasdaq's crosses, and what they would be: ITCH 5.0, messages Q and I, type of the cross O and C.
    fn statistics(&mut self, event: &MarketEvent) {
        let kind = match (event.kind, event.code[0]) {
            _ if !matches!(self.making.venue, Venue::Nasdaq | Venue::NasdaqTexas | Venue::Psx) => return,
            (EventKind::Trade, b'O') => stat::OPENING_PRICE,
            (EventKind::Trade, b'C') => stat::CLOSE_PRICE,
            (EventKind::Imbalance, b'O') => stat::INDICATIVE_OPENING_PRICE,
            (EventKind::Imbalance, b'C') => stat::INDICATIVE_CLOSE_PRICE,
            _ => return,
        };
        let price = match event.kind {
            EventKind::Trade => event.price,
            _ => event.near_price,
        };
        if price.raw() == 0 || event.qty.0 == 0 && event.kind == EventKind::Trade {
            return;
        }
        let head = self.head(event);
        let quantity = i64::try_from(event.qty.0).unwrap_or(i64::MAX) as u64;
        let sequence = self.narrow("sequence", event.seq.0);
        let symbol = self.symbol(event.instrument);
        self.pending.extend(head);
        // update_action 1: added.
        self.pending
            .extend([word_of(price), quantity, sequence, 0, kind, 1, symbol]);
    }

    /// What an event does to the top of its book, for the consolidated one.
    fn top(&mut self, event: &MarketEvent, books: &mut Books) {
        let id = event.instrument;
        let traded = Self::traded(event, books);
        let before = books.order(event.order_id);
        books.apply(event);
        if id == InstrumentId::WHOLE_FEED {
            return;
        }
        let Some(book) = books.book(id) else { return };
        let best = Side::BOTH.map(|side| book.best(side).map(|level| (level.price.raw(), level.qty.0)));
        let state = self.flags(event, books);
        let kept = self.kept(id);
        let now = (best, state & flags::MAYBE_BAD_BOOK);
        let is_same = kept.top.replace(now) == Some(now);
        if is_same && traded.is_none() {
            return;
        }
        let mut large = best.iter().flatten().map(|(_, qty)| *qty).max().unwrap_or(0);
        large = large.max(event.qty.0);
        self.narrow("a size", large);
        let (action, side, price) = match (event.kind, before) {
            (EventKind::Add, _) => (b'A', side_of(event.side), word_of(event.price)),
            (EventKind::Reduce | EventKind::Delete | EventKind::Execute, Some(order)) => {
                (b'C', side_of(order.side), word_of(order.price))
            }
            (EventKind::Replace, Some(order)) => (b'M', side_of(order.side), word_of(event.price)),
            (EventKind::Modify, _) => (b'M', side_of(event.side), word_of(event.price)),
            (EventKind::Level, _) if event.qty.0 == 0 => (b'C', side_of(event.side), word_of(event.price)),
            (EventKind::Level, _) => (b'M', side_of(event.side), word_of(event.price)),
            (EventKind::Clear, _) => (b'R', b'N'.into(), NO_PRICE),
            _ => (b'M', b'N'.into(), NO_PRICE),
        };
        let size = match price {
            NO_PRICE => 0,
            _ => event.qty.0,
        };
        let times = self.times(event);
        self.tops.push(Top {
            instrument: id,
            times,
            what: [action.into(), side, price, size],
            traded,
            best,
            flags: state,
        });
    }

    fn imbalance(&mut self, event: &MarketEvent) {
        if event.kind != EventKind::Imbalance {
            return;
        }
        let known = |price: Price| match price.raw() {
            0 => NO_PRICE,
            _ => word_of(price),
        };
        let head = self.head(event);
        let paired = self.narrow("paired_qty", event.qty.0);
        let imbalance = self.narrow("total_imbalance_qty", event.imbalance_qty.0);
        let side = match event.flags.has(EventFlags::NO_SIDE) {
            true => b'N'.into(),
            false => side_of(event.side),
        };
        let kind = match event.code[0] {
            0 => b'~',
            kind => kind,
        };
        let symbol = self.symbol(event.instrument);
        self.pending.extend(head);
        self.pending.extend([
            known(event.price),
            known(event.near_price),
            known(event.far_price),
            paired,
            imbalance,
            kind.into(),
            side,
            symbol,
        ]);
    }
}

/// DBN's types of statistics that feeds tell here.
mod stat {
    pub(super) const OPENING_PRICE: u64 = 1;
    pub(super) const INDICATIVE_OPENING_PRICE: u64 = 2;
    pub(super) const CLOSE_PRICE: u64 = 11;
    pub(super) const INDICATIVE_CLOSE_PRICE: u64 = 19;
}

fn word_of(price: Price) -> u64 {
    price.raw() as u64
}

fn side_of(side: Side) -> u64 {
    match side {
        Side::Bid => b'B'.into(),
        Side::Ask => b'A'.into(),
    }
}

/// The aggressor's side of a trade without a displayed order, where the venue says it.
fn aggressor(event: &MarketEvent) -> u64 {
    match event.flags.has(EventFlags::NO_SIDE) || event.venue != Venue::Cme {
        true => b'N'.into(),
        false => side_of(event.side),
    }
}

/// The other side's letter.
fn other(side: u64) -> u64 {
    match side as u8 {
        b'B' => b'A'.into(),
        b'A' => b'B'.into(),
        _ => side,
    }
}

fn executed_at(event: &MarketEvent, resting: u64) -> u64 {
    match event.flags.has(EventFlags::AT_OTHER_PRICE) || resting == NO_PRICE && event.price.raw() != 0 {
        true => word_of(event.price),
        false => resting,
    }
}
