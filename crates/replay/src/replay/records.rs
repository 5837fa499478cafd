//! Files of records instead of packets: Databento's DBN (market by order, by price, definitions) and LOBSTER's messages.
//!
//! | file | books |
//! |---|---|
//! | DBN `mbo` | by order: `A` adds, `C` takes away, `M` changes, `R` clears; trades and fills change nothing, the cancel after them does |
//! | DBN `mbp-1`, `mbp-10` | by price, from the levels of every record |
//! | LOBSTER | by order: types 1 to 4; what takes from an order that was entered before the file begins changes nothing, or with `--check` what the row shows |
//!
//! `--check` compares the books with the vendor's own: a DBN file of `mbp-10` at every event, a LOBSTER order book row by row.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;

use tickwire_book::{Applied, Books};
use tickwire_feed::{FeedState, Line};
use tickwire_lab::Histogram;
use tickwire_market::{
    Counter, Counters, EventFlags, EventKind, InstrumentId, MarketEvent, Nanos, OrderId, Port, Price, SeqNo,
    Side, Symbol, TradingStatus, Volume,
};
use tickwire_runtime::clock::{Clock, tsc};
use tickwire_runtime::itchfile::Recording;
use tickwire_wire::dbn::{self, LevelRow, Record};
use tickwire_wire::itch50;

use crate::played::{Checked, Cost, Follow, Play, describe};
use crate::tape::End;

/// Orders with ids from here on stand for what a row shows of orders never seen.
const UNSEEN: u64 = 1 << 62;
/// The only instrument of a LOBSTER file.
const ONE: InstrumentId = InstrumentId(1);
/// What LOBSTER writes where there is no level.
const NO_LEVEL: i64 = 9_999_999_999;

/// A file of records with its books.
pub(super) struct Records {
    books: Books,
    directory: BTreeMap<Symbol, InstrumentId>,
    by_number: HashMap<u32, InstrumentId>,
    /// Instruments whose book began with a clear, a snapshot, or a record that holds all of it.
    whole: HashSet<InstrumentId>,
    /// Instruments with an order event.
    touched: HashSet<InstrumentId>,
    counters: Counters,
    cost: Cost,
    clock: Clock,
    shown: Option<Vec<String>>,
    next: SeqNo,
    is_lobster: bool,
    /// Events that took from orders entered before the file begins.
    unseen: u64,
    check: Check,
    checked: Checked,
    follower: Option<Box<dyn Follow>>,
    /// Of orders, by market by order records: executed, and not taken from the book yet, which a record of its own does.
    filled: HashMap<OrderId, u64>,
    /// Of who follows: when and of what the match event is that is being told; whether the record at hand ends it, and has told something.
    group: Option<(Nanos, InstrumentId)>,
    is_last: bool,
    has_told: bool,
}

/// Both sides of a record of ten levels.
type TenLevels = [[LevelRow; 10]; 2];

/// What the books are compared with.
pub(super) enum Check {
    None,
    /// By instrument, time and number: what the vendor's book shows after that event.
    Events(HashMap<(u32, u64, u32), Vec<TenLevels>>),
    Rows(Rows),
}

/// The rows of a LOBSTER order book.
pub(super) struct Rows {
    lines: std::vec::IntoIter<Vec<i64>>,
    /// By side: levels up to here are known from messages; `None`: all.
    known_to: [Option<i64>; 2],
    begun: bool,
    unseen: u64,
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
            return match events.is_empty() {
                true => Err(End::Damaged(format!(
                    "{} has no mbp-10 record to compare with",
                    path.display()
                ))),
                false => Ok(Check::Events(events)),
            };
        }
        Ok(_) => {}
        Err(e) if e.is_unreadable() => return Err(e.into()),
        // Rows of prices and sizes have no mark of their own.
        Err(_) => {}
    }
    let wrong = |what: String| End::Damaged(format!("{}: {what}", path.display()));
    let text = std::fs::read_to_string(path).map_err(|e| wrong(e.to_string()))?;
    let mut rows = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let row: Result<Vec<i64>, _> = line.split(',').map(|field| field.trim().parse()).collect();
        match row {
            Ok(row) if !row.is_empty() && row.len().is_multiple_of(4) => rows.push(row),
            Err(_) if number == 0 => {}
            _ => {
                return Err(wrong(format!(
                    "line {} is no row of a LOBSTER order book (ask price, ask size, bid price, bid size, level by level), \
                     and the file is no DBN file of mbp-10",
                    number + 1
                )));
            }
        }
    }
    Ok(Check::Rows(Rows {
        lines: rows.into_iter(),
        known_to: [None; 2],
        begun: false,
        unseen: UNSEEN,
    }))
}

impl Records {
    pub(super) fn new(
        name: String,
        books: Books,
        is_lobster: bool,
        check: Check,
        is_stepping: bool,
        clock: Clock,
    ) -> Records {
        Records {
            books,
            directory: BTreeMap::new(),
            by_number: HashMap::new(),
            whole: HashSet::new(),
            touched: HashSet::new(),
            counters: Counters::default(),
            cost: Cost {
                name,
                packets: 0,
                bytes: 0,
                per_packet: Histogram::new(),
                busy_ticks: 0,
            },
            clock,
            shown: is_stepping.then(Vec::new),
            next: SeqNo(1),
            is_lobster,
            unseen: 0,
            check,
            checked: Checked::default(),
            follower: None,
            filled: HashMap::new(),
            group: None,
            is_last: is_lobster,
            has_told: false,
        }
    }

    /// Lets somebody follow.
    pub(super) fn follow(&mut self, follower: Option<Box<dyn Follow>>) {
        self.follower = follower;
    }

    /// Tells who follows; the books hear of it elsewhere, or not at all.
    fn tell(&mut self, event: &MarketEvent) {
        if let Some(follower) = &mut self.follower {
            let flags = match self.is_last {
                true => event.flags.with(EventFlags::LAST),
                false => event.flags,
            };
            self.has_told = true;
            follower.event(&MarketEvent { flags, ..*event });
        }
    }

    /// The match event that is being told is over, by a record that told nothing itself.
    fn end_group(&mut self) {
        if let Some((recv_ts, instrument)) = self.group.take() {
            self.is_last = true;
            self.tell(&MarketEvent {
                kind: EventKind::EndOfGroup,
                recv_ts,
                instrument,
                ..MarketEvent::default()
            });
        }
    }

    fn id_of(&mut self, number: u32) -> InstrumentId {
        let next = InstrumentId(self.by_number.len() as u32 + 1);
        *self.by_number.entry(number).or_insert(next)
    }

    fn apply(&mut self, event: &MarketEvent) -> bool {
        let applied = self.books.apply(event);
        if let Some(shown) = &mut self.shown {
            shown.push(describe(event, &applied));
        }
        !matches!(applied, Applied::Rejected(_))
    }

    fn dbn(&mut self, bytes: &[u8]) {
        let record = match dbn::parse(bytes) {
            Ok(record) => record,
            Err(_) => return self.counters.bump(Counter::Malformed),
        };
        self.counters.bump(Counter::Messages);
        if let Some((number, symbol)) = record.definition() {
            return self.name(number, symbol);
        }
        let id = self.id_of(record.header().instrument_id.get());
        let base = MarketEvent {
            instrument: id,
            venue_ts: record.header().ts_event.get().unwrap_or_default(),
            ..MarketEvent::default()
        };
        if let Some(follower) = &mut self.follower {
            follower.record(base.venue_ts, Some(id));
        }
        match record {
            Record::Mbo(m) if self.follower.is_none() => self.mbo(m, base),
            Record::Mbo(m) => {
                let at = received(m, &base);
                // Not every data set says where a match event ends; its time does.
                if self.group.is_some_and(|(before, _)| before != at) {
                    self.end_group();
                }
                self.is_last = m.flags & dbn::flags::LAST != 0;
                self.has_told = false;
                self.mbo(m, base);
                match (self.is_last, self.has_told) {
                    (true, true) => self.group = None,
                    (true, false) => self.end_group(),
                    (false, true) => self.group = Some((at, base.instrument)),
                    (false, false) => {}
                }
            }
            Record::Mbp1(m) => self.by_price(m.levels(), m.sequence.get(), base),
            Record::Mbp10(m) => self.by_price(m.levels(), m.sequence.get(), base),
            _ => self.counters.bump(Counter::MessagesUnknown),
        }
    }

    fn mbo(&mut self, m: &dbn::Mbo, base: MarketEvent) {
        self.next = SeqNo(u64::from(m.sequence.get()) + 1);
        let is_snapshot = m.flags & dbn::flags::SNAPSHOT != 0;
        let kind = match m.action.0 {
            b'A' => EventKind::Add,
            b'C' => EventKind::Reduce,
            b'M' => EventKind::Modify,
            b'R' => EventKind::Clear,
            b'F' => return self.executed(m, base),
            b'T' | b'N' => return,
            _ => return self.counters.bump(Counter::Malformed),
        };
        let begins = is_snapshot || kind == EventKind::Clear;
        if begins && !self.touched.contains(&base.instrument) {
            self.whole.insert(base.instrument);
        }
        self.touched.insert(base.instrument);
        let event = MarketEvent {
            kind,
            seq: SeqNo(m.sequence.get().into()),
            recv_ts: received(m, &base),
            order_id: OrderId(m.order_id.get()),
            side: dbn::side(m.side).unwrap_or_default(),
            price: m.price.get().unwrap_or_default(),
            qty: Volume(m.size.get().into()),
            flags: if is_snapshot {
                EventFlags::SNAPSHOT
            } else {
                EventFlags::NONE
            },
            ..base
        };
        if kind != EventKind::Clear && (dbn::side(m.side).is_none() || m.price.get().is_none()) {
            return self.counters.bump(Counter::Malformed);
        }
        self.follow_order(&event);
        self.apply(&event);
        self.check_event(m);
    }

    /// An order was executed: the book changes by a later record, for who follows it does so now.
    fn executed(&mut self, m: &dbn::Mbo, base: MarketEvent) {
        let (Some(side), Some(price)) = (dbn::side(m.side), m.price.get()) else {
            return;
        };
        if self.follower.is_none() {
            return;
        }
        let order_id = OrderId(m.order_id.get());
        *self.filled.entry(order_id).or_default() += u64::from(m.size.get());
        self.tell(&MarketEvent {
            kind: EventKind::Execute,
            seq: SeqNo(m.sequence.get().into()),
            recv_ts: received(m, &base),
            order_id,
            side,
            price,
            qty: Volume(m.size.get().into()),
            ..base
        });
    }

    /// Tells who follows of an event of an order, without what its execution has told already.
    fn follow_order(&mut self, event: &MarketEvent) {
        if self.follower.is_none() {
            return;
        }
        let told = self.filled.remove(&event.order_id).unwrap_or(0);
        match event.kind {
            EventKind::Reduce if event.qty.0 <= told => {}
            EventKind::Reduce => self.tell(&MarketEvent {
                qty: Volume(event.qty.0 - told),
                ..*event
            }),
            // CME keeps the place of an order whose price stays and whose quantity does not grow (MDP 3.0, Order priority).
            EventKind::Modify => {
                let before = self.books.order(event.order_id);
                let keeps = before.is_some_and(|o| o.price == event.price && event.qty.0 <= o.qty.0.into());
                let flags = match keeps {
                    true => event.flags.with(EventFlags::KEEPS_PRIORITY),
                    false => event.flags,
                };
                self.tell(&MarketEvent { flags, ..*event });
            }
            _ => self.tell(event),
        }
    }

    fn check_event(&mut self, m: &dbn::Mbo) {
        let Check::Events(events) = &mut self.check else {
            return;
        };
        let key = (m.instrument_id.get(), m.ts_event.0.get(), m.sequence.get());
        let Some(rows) = events.get_mut(&key) else { return };
        let id = self.by_number[&m.instrument_id.get()];
        let Some(book) = self.books.book(id) else { return };
        let mut have = [[(None, 0, 0); 10]; 2];
        for side in Side::BOTH {
            for (row, level) in have[side as usize].iter_mut().zip(book.levels(side)) {
                *row = (Some(level.price), level.qty.0 as u32, level.orders);
            }
        }
        let before = rows.len();
        rows.retain(|row| *row != have);
        self.checked.equal += (before - rows.len()) as u64;
        if rows.is_empty() {
            events.remove(&key);
        }
    }

    /// The book is what the record shows.
    fn by_price<const N: usize>(&mut self, levels: [[LevelRow; N]; 2], sequence: u32, base: MarketEvent) {
        self.next = SeqNo(u64::from(sequence) + 1);
        self.whole.insert(base.instrument);
        self.touched.insert(base.instrument);
        let mut changes = Vec::new();
        if let Some(book) = self.books.book(base.instrument) {
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
        }
        for (side, price, qty, order_count) in changes {
            self.apply(&MarketEvent {
                kind: EventKind::Level,
                seq: SeqNo(sequence.into()),
                side,
                price,
                qty: Volume(qty.into()),
                order_count,
                ..base
            });
        }
    }

    fn lobster(&mut self, line: &[u8]) {
        let Some((kind, event)) = lobster_event(line) else {
            return self.counters.bump(Counter::Malformed);
        };
        self.counters.bump(Counter::Messages);
        if let Some(follower) = &mut self.follower {
            follower.record(event.venue_ts, Some(ONE));
        }
        self.touched.insert(ONE);
        let is_first = matches!(&self.check, Check::Rows(rows) if !rows.begun);
        let event = MarketEvent {
            seq: self.next,
            ..event
        };
        self.next = self.next.next();
        match kind {
            // The first row shows the book after the first message.
            _ if is_first => _ = self.whole.insert(ONE),
            1 => {
                let added = MarketEvent {
                    kind: EventKind::Add,
                    ..event
                };
                self.tell(&added);
                self.apply(&added);
            }
            2..=4 => {
                let queue: Vec<OrderId> = match self.books.book(ONE) {
                    Some(book) => book
                        .orders(event.side, event.price)
                        .map(|order| order.id)
                        .collect(),
                    None => Vec::new(),
                };
                let known = queue.iter().find(|id| **id == event.order_id);
                let known = known.or_else(|| queue.iter().find(|id| id.0 >= UNSEEN)).copied();
                match known {
                    Some(order_id) => {
                        let reduced = MarketEvent {
                            kind: EventKind::Reduce,
                            order_id,
                            ..event
                        };
                        let told = match kind {
                            4 => EventKind::Execute,
                            _ => EventKind::Reduce,
                        };
                        self.tell(&MarketEvent {
                            kind: told,
                            ..reduced
                        });
                        self.apply(&reduced);
                    }
                    None => self.unseen += 1,
                }
            }
            // Executions of hidden orders, crosses and halts change no book.
            5 => self.tell(&MarketEvent {
                kind: EventKind::Trade,
                flags: EventFlags::NO_SIDE,
                ..event
            }),
            6 => {}
            // In the place of the price: -1 halted, 0 quoting, 1 trading.
            7 => self.tell(&MarketEvent {
                kind: EventKind::Status,
                status: match event.price.raw() {
                    100_000 => TradingStatus::Trading,
                    0 => TradingStatus::QuoteOnly,
                    _ => TradingStatus::Halted,
                },
                ..event
            }),
            _ => return self.counters.bump(Counter::Malformed),
        }
        if let Check::Rows(mut rows) = std::mem::replace(&mut self.check, Check::None) {
            if let Some(row) = rows.lines.next() {
                self.row(&mut rows, &row);
            }
            self.check = Check::Rows(rows);
        }
    }

    /// Compares the book with a row. A level that the row shows for the first time, behind all that were shown before, is taken
    /// from it; levels behind the row's last are forgotten, because messages of them need not be in the file.
    fn row(&mut self, rows: &mut Rows, row: &[i64]) {
        let mut is_equal = true;
        for side in Side::BOTH {
            let at = 2 * usize::from(side == Side::Bid);
            let shown = row.chunks_exact(4).map(|level| (level[at], level[at + 1]));
            let shown: Vec<_> = shown.filter(|(price, _)| price.abs() != NO_LEVEL).collect();
            // The larger the worse.
            let rank = |price: i64| if side == Side::Bid { -price } else { price };
            let have: Vec<(i64, i64)> = match self.books.book(ONE) {
                Some(book) => book
                    .levels(side)
                    .map(|level| (level.price.raw() / 100_000, level.qty.0 as i64))
                    .collect(),
                None => Vec::new(),
            };
            let is_known =
                |price: i64| rows.begun && rows.known_to[side as usize].is_none_or(|to| rank(price) <= to);
            let expected: Vec<_> = shown.iter().filter(|level| is_known(level.0)).collect();
            let ours: Vec<_> = have
                .iter()
                .take(shown.len().max(expected.len()))
                .filter(|l| is_known(l.0))
                .collect();
            self.checked.levels += expected.len() as u64;
            let mut taken: Vec<(i64, i64)> = shown
                .iter()
                .copied()
                .filter(|level| !have.contains(level))
                .collect();
            if expected != ours {
                is_equal = false;
                self.checked.first.get_or_insert_with(|| {
                    format!(
                        "row {} {side:?}: the row has {shown:?}, the book {have:?}",
                        self.checked.rows + 1
                    )
                });
                // From here on what the row shows.
                have.iter().for_each(|(price, _)| self.forget(side, *price));
                taken = shown.clone();
            }
            for (price, qty) in taken {
                rows.unseen += 1;
                self.checked.taken += 1;
                self.apply(&MarketEvent {
                    kind: EventKind::Add,
                    instrument: ONE,
                    order_id: OrderId(rows.unseen),
                    side,
                    price: Price::from_raw(price * 100_000),
                    qty: Volume(qty as u64),
                    ..MarketEvent::default()
                });
            }
            let is_full = shown.len() == row.len() / 4;
            let last = shown.last().map(|level| rank(level.0)).filter(|_| is_full);
            if let Some(last) = last {
                let behind: Vec<i64> = have
                    .iter()
                    .map(|l| l.0)
                    .filter(|price| rank(*price) > last)
                    .collect();
                behind.into_iter().for_each(|price| self.forget(side, price));
            }
            rows.known_to[side as usize] = last;
        }
        rows.begun = true;
        self.checked.rows += 1;
        self.checked.equal += u64::from(is_equal);
    }

    fn forget(&mut self, side: Side, price: i64) {
        let price = Price::from_raw(price * 100_000);
        let ids: Vec<OrderId> = match self.books.book(ONE) {
            Some(book) => book.orders(side, price).map(|order| order.id).collect(),
            None => Vec::new(),
        };
        for order_id in ids {
            self.apply(&MarketEvent {
                kind: EventKind::Delete,
                instrument: ONE,
                order_id,
                ..MarketEvent::default()
            });
        }
    }
}

/// When a record was received; the venue's time where it does not say.
fn received(m: &dbn::Mbo, base: &MarketEvent) -> Nanos {
    m.ts_recv.get().unwrap_or(base.venue_ts)
}

/// Type and event of a line; what kind of event the type says.
fn lobster_event(line: &[u8]) -> Option<(u8, MarketEvent)> {
    let text = std::str::from_utf8(line).ok()?;
    let mut fields = text.split(',').map(str::trim);
    let time = lobster_time(fields.next()?)?;
    let kind = fields.next()?.parse().ok()?;
    let order_id = OrderId(fields.next()?.parse().ok()?);
    let qty = fields.next()?.parse::<i64>().ok()?;
    let price = fields.next()?.parse::<i64>().ok()?;
    let direction = fields.next()?;
    let side = match direction {
        "1" => Side::Bid,
        "-1" => Side::Ask,
        _ => return None,
    };
    let event = MarketEvent {
        instrument: ONE,
        venue_ts: time,
        recv_ts: time,
        order_id,
        side,
        price: Price::from_raw(price.checked_mul(100_000)?),
        qty: Volume(qty.max(0) as u64),
        ..MarketEvent::default()
    };
    Some((kind, event))
}

/// Seconds since midnight with up to nine decimals.
pub(super) fn lobster_time(text: &str) -> Option<Nanos> {
    let (seconds, fraction) = text.split_once('.').unwrap_or((text, ""));
    let fraction = fraction.get(..9.min(fraction.len()))?;
    let nanos = match fraction {
        "" => 0,
        digits => digits.parse::<u64>().ok()? * 10_u64.pow(9 - digits.len() as u32),
    };
    let seconds = seconds.parse::<u64>().ok()?;
    Some(Nanos(seconds.checked_mul(Nanos::SECOND)?.checked_add(nanos)?))
}

impl Play for Records {
    fn on_datagram(&mut self, _: Nanos, _: Port, _: Line, _: &[u8]) {}

    fn on_message(&mut self, _: Nanos, message: &[u8]) {
        let begin = tsc();
        match self.is_lobster {
            true => self.lobster(message),
            false => self.dbn(message),
        }
        let ticks = tsc() - begin;
        self.cost.packets += 1;
        self.cost.bytes += message.len() as u64;
        self.cost.busy_ticks += ticks;
        self.cost.per_packet.record(self.clock.span_ns(ticks));
    }

    fn finish(&mut self, _: Nanos) {
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
        let id = self.id_of(number);
        if let Some(symbol) = Symbol::new(symbol) {
            self.directory.insert(symbol, id);
            if let Some(follower) = &mut self.follower {
                follower.named(id, symbol);
            }
        }
    }

    fn take_shown(&mut self) -> Vec<String> {
        self.shown.as_mut().map(std::mem::take).unwrap_or_default()
    }

    fn state(&self) -> FeedState {
        match self.touched.is_subset(&self.whole) {
            true => FeedState::Live,
            false => FeedState::Building,
        }
    }

    fn next_seq(&self) -> SeqNo {
        self.next
    }

    fn counters(&self) -> Counters {
        let mut all = self.counters.clone();
        all.merge(self.books.counters());
        all
    }

    fn look(&self, at: &mut dyn FnMut(&Books)) {
        at(&self.books);
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
