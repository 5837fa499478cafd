//! Cboe Multicast PITCH 2.41 (specification 2.41.29, 2022-04-20) to [`MarketEvent`]s; BZX, BYX, EDGA and EDGX.
//!
//! One feed is one matching unit: it has its own numbers, its own clock, its own instruments and orders. What comes out:
//!
//! | message | event |
//! |---|---|
//! | `21` `22` `2F` | `Add`; before the first of an instrument `Definition` |
//! | `23` `24` | `Execute`; before it `Modify` where `24` leaves something else than the remainder |
//! | `25` `26` `27` `28` `29` | `Reduce` `Reduce` `Modify` `Modify` `Delete` |
//! | `2A` `2B` `30` `2C` | `Trade`, `code[0]` = class of the execution; `TradeBreak` |
//! | `95` `96` | `Imbalance`; `Trade` that does not count as volume: its executions are reported one by one |
//! | `31` | `Status`, `code` = status and short sale restriction |
//! | `97` `2D` | `Clear`, `Status` closed, both of the whole unit |
//! | any of the first three rows that is malformed or finds no room | `Gap` of the instrument: its book may be wrong |
//! | `20` `98` | none |
//!
//! Only adds name their instrument. The orders of instruments that are wanted are kept in a table of their own; an order
//! that is not in it is one of another instrument, and its messages are dropped.
//!
//! Missing messages are asked for over the [`GapProxy`] and come on a multicast group; a snapshot comes from [`Spin`].

mod gap;
mod session;
mod spin;

pub use gap::{GapEvent, GapProxy};
pub use session::PitchLogin;
pub use spin::Spin;

use crate::decoder::{Context, Decoder, Seen, Subscriptions};
use crate::fixed_map::FixedMap;
use crate::framing::{Content, Frame, Framing};
use crate::{ArbiterConfig, FeedHandler, MissingRange, SessionId};
use alloc::{boxed::Box, vec::Vec};
use core::cell::Cell;
use tickwire_market::{
    Counter, Counters, EventFlags, EventKind, EventSink, Instrument, InstrumentId, MarketEvent, Nanos,
    OrderId, Price, SeqNo, Side, Symbol, TradingStatus, Venue, Volume,
};
use tickwire_wire::Malformed;
use tickwire_wire::layout::Char;
use tickwire_wire::pitch::{
    self, AddOrderExpanded, AddOrderLong, AddOrderShort, GapRequest, LongPrice, Message, modify_flags,
};
use tickwire_wire::zerocopy::IntoBytes;

/// One unit of a Cboe equities market.
pub type PitchFeed = FeedHandler<PitchUnit, PitchDecoder>;

/// The framing of a unit: blocks with a Sequenced Unit Header.
///
/// Numbers of 32 bits go from 2^32 - 1 to 1; the arbiter counts on. The unit is the session, so that a block of another
/// unit is told apart. Messages without numbers (number 0) are of no use to a book and are ignored.
#[derive(Clone, Copy, Debug)]
pub enum PitchUnit {}

/// How many numbers there are before they come again.
const CYCLE: u64 = u32::MAX as u64;
/// A number this close behind the end of a cycle, or before its beginning, belongs to the cycle next to it.
const NEAR: u64 = 1 << 28;

impl PitchUnit {
    /// The session of a unit.
    pub const fn session(unit: u8) -> SessionId {
        SessionId([unit, 0, 0, 0, 0, 0, 0, 0, 0, 0])
    }

    /// Limits as the Gap Request Proxy has them: 100 messages a request, 320 requests a second. Only this unit is
    /// accepted.
    pub fn arbiter_config(unit: u8) -> ArbiterConfig {
        ArbiterConfig {
            session: Some(PitchUnit::session(unit)),
            request_messages: gap::REQUEST_MESSAGES_MAX,
            request_interval_ns: Nanos::SECOND / u64::from(gap::REQUESTS_PER_SECOND),
            ..ArbiterConfig::default()
        }
    }

    /// The number on the wire.
    const fn short(seq: SeqNo) -> u32 {
        match seq.0 {
            0 => 0,
            n => ((n - 1) % CYCLE) as u32 + 1,
        }
    }
}

impl Framing for PitchUnit {
    type Messages<'a> = pitch::Messages<'a>;

    #[inline]
    fn parse(datagram: &[u8]) -> Result<Frame<pitch::Messages<'_>>, Malformed> {
        let packet = pitch::packet(datagram)?;
        Ok(Frame {
            session: PitchUnit::session(packet.unit),
            first: SeqNo(packet.sequence.into()),
            trailing: packet.trailing,
            content: match packet.messages.len() {
                0 => Content::Heartbeat,
                count => Content::Messages {
                    count: count as u32,
                    messages: packet.messages,
                },
            },
        })
    }

    #[inline]
    fn full_number(first: SeqNo, next: SeqNo) -> SeqNo {
        if next.0 < CYCLE - NEAR || first.0 == 0 {
            return first;
        }
        let same = (next.0 - 1) / CYCLE * CYCLE + first.0;
        if same + CYCLE <= next.0 + NEAR {
            SeqNo(same + CYCLE)
        } else if same > CYCLE && same + NEAR >= next.0 + CYCLE {
            SeqNo(same - CYCLE)
        } else {
            SeqNo(same)
        }
    }

    fn request(range: MissingRange, buffer: &mut [u8]) -> Option<usize> {
        let request = GapRequest {
            unit: range.session.0[0],
            sequence: PitchUnit::short(range.first).into(),
            count: range.count.into(),
            ..GapRequest::BLANK_MESSAGE
        };
        session::block(buffer, 0, 0, request.as_bytes())
    }

    fn wrap(session: SessionId, seq: SeqNo, message: &[u8], buffer: &mut [u8]) -> Option<usize> {
        session::block(buffer, session.0[0], PitchUnit::short(seq), message)
    }
}

/// What a [`PitchDecoder`] has to know.
#[derive(Clone, Debug)]
pub struct PitchConfig {
    /// BZX (the default), BYX, EDGA or EDGX.
    pub venue: Venue,
    /// Midnight in New York of the day, since the Unix epoch; 0 if the day is not known, and venue times then count from
    /// midnight.
    pub midnight: Nanos,
    /// The number of the unit's first instrument, at least 1 (the default): PITCH has no numbers, instruments get them in
    /// order of appearance. Units whose events meet in one place need ranges that do not overlap.
    pub first_instrument: u32,
    /// How many instruments the unit can have. Default 4096. When full: messages of further ones are dropped and counted,
    /// and the books behind the feed are said to be wrong.
    pub instruments_max: u32,
    /// How many orders of wanted instruments can rest at once. Default 2^20. When full: an order is left out and
    /// counted, and the book of its instrument is said to be wrong.
    pub orders_max: u32,
    /// Instruments known from the start, numbered in this order.
    pub directory: Vec<Symbol>,
    /// What to let through; `None` (the default) is everything.
    pub symbols: Option<Vec<Symbol>>,
}

impl Default for PitchConfig {
    fn default() -> PitchConfig {
        PitchConfig {
            venue: Venue::Bzx,
            midnight: Nanos::ZERO,
            first_instrument: 1,
            instruments_max: 4096,
            orders_max: 1 << 20,
            directory: Vec::new(),
            symbols: None,
        }
    }
}

/// A visible order of a wanted instrument.
#[derive(Clone, Copy, Default)]
struct Resting {
    price: Price,
    qty: u32,
    instrument: InstrumentId,
    side: Side,
}

/// The wanted orders that messages previewed and not yet decoded add: later messages of the same packet may be about them.
struct Upcoming {
    /// One bit for each, to be done with most questions at once.
    bits: Cell<u64>,
    ids: Box<[Cell<u64>]>,
    len: Cell<usize>,
}

impl Upcoming {
    fn new() -> Upcoming {
        Upcoming {
            bits: Cell::new(0),
            ids: (0..pitch::MESSAGES_MAX).map(|_| Cell::new(0)).collect(),
            len: Cell::new(0),
        }
    }

    #[inline(always)]
    fn clear(&self) {
        self.bits.set(0);
        self.len.set(0);
    }

    fn add(&self, order_id: u64) {
        self.bits.set(self.bits.get() | Upcoming::bit(order_id));
        if let Some(id) = self.ids.get(self.len.get()) {
            id.set(order_id);
            self.len.set(self.len.get() + 1);
        }
    }

    #[inline(always)]
    fn has(&self, order_id: u64) -> bool {
        let maybe = self.bits.get() & Upcoming::bit(order_id) != 0;
        maybe
            && self
                .ids
                .iter()
                .take(self.len.get())
                .any(|id| id.get() == order_id)
    }

    const fn bit(order_id: u64) -> u64 {
        1 << (order_id % 64)
    }
}

/// What a message came to.
enum Told {
    /// The event is complete.
    Event,
    /// Nothing that a book or its readers need.
    Nothing,
    /// Nobody wants it.
    Filtered,
    /// It is about an order that is not known.
    NoOrder,
    /// There is no room for its order or instrument.
    NoRoom,
}

/// The decoder of one unit. All memory is taken at construction.
pub struct PitchDecoder {
    venue: Venue,
    midnight: Nanos,
    first_instrument: u32,
    /// Seconds since midnight, by the live stream and by the snapshot.
    seconds: [u32; 2],
    subscriptions: Subscriptions,
    /// Some instruments are not wanted: an order that is not in the table is probably theirs.
    filters: bool,
    by_type: Box<[Seen; 256]>,
    numbers: FixedMap<u32>,
    directory: Vec<Instrument>,
    instruments_max: usize,
    orders: FixedMap<Resting>,
    upcoming: Upcoming,
}

impl PitchDecoder {
    /// A decoder that knows the configured directory.
    pub fn new(config: PitchConfig) -> PitchDecoder {
        let instruments_max = (config.instruments_max as usize).max(config.directory.len());
        let first_instrument = config.first_instrument.max(1);
        let numbers = first_instrument as usize + instruments_max;
        let mut decoder = PitchDecoder {
            venue: config.venue,
            midnight: config.midnight,
            first_instrument,
            seconds: [0; 2],
            subscriptions: Subscriptions::new(numbers, config.symbols.as_deref()),
            filters: config.symbols.is_some(),
            by_type: Box::new([Seen::default(); 256]),
            numbers: FixedMap::new(instruments_max),
            directory: Vec::with_capacity(instruments_max),
            instruments_max,
            orders: FixedMap::new(config.orders_max as usize),
            upcoming: Upcoming::new(),
        };
        for symbol in config.directory {
            if let Some(key) = symbol.padded().map(u64::from_be_bytes) {
                decoder.enter(key, symbol);
            }
        }
        decoder
    }

    /// The instruments seen so far, by number.
    pub fn instruments(&self) -> &[Instrument] {
        &self.directory
    }

    /// The number of a symbol, if it was seen.
    pub fn find(&self, symbol: &Symbol) -> Option<InstrumentId> {
        let key = u64::from_be_bytes(symbol.padded()?);
        self.numbers.get(key).map(|&n| InstrumentId(n))
    }

    /// Lets a symbol through from now on. Its number, if it is known already; its book then lacks the past.
    pub fn subscribe(&mut self, symbol: Symbol) -> Option<InstrumentId> {
        let id = self.find(&symbol);
        self.subscriptions.subscribe(symbol, id);
        id
    }

    /// Stops letting a symbol through. Its number, if it is known.
    pub fn unsubscribe(&mut self, symbol: &Symbol) -> Option<InstrumentId> {
        let id = self.find(symbol);
        self.subscriptions.unsubscribe(symbol, id);
        self.filters = true;
        id
    }

    /// Messages of a type, by its byte.
    pub fn seen_of_type(&self, kind: u8) -> Seen {
        self.by_type[kind as usize]
    }

    /// Gives a symbol a number, if there is one left.
    fn enter(&mut self, key: u64, symbol: Symbol) -> Option<InstrumentId> {
        if self.directory.len() == self.instruments_max {
            return None;
        }
        let id = InstrumentId(self.first_instrument + self.directory.len() as u32);
        self.numbers.insert(key, id.0).ok()?;
        self.directory.push(Instrument {
            id,
            venue: self.venue,
            symbol,
            ..Instrument::default()
        });
        self.subscriptions.learn(id, &symbol);
        Some(id)
    }

    /// Writes what a message says over an event that holds what every message has. In place: a returned event would be
    /// copied. An event that must come before is pushed here.
    #[inline(always)]
    fn fill<S: EventSink>(
        &mut self,
        event: &mut MarketEvent,
        message: &[u8],
        sink: &mut S,
    ) -> Result<Told, Malformed> {
        match pitch::parse(message)? {
            Message::AddOrderShort(m) => {
                let terms = (m.side, m.qty.get().into(), m.price.price());
                self.add(event, m.order_id.get(), terms, message, sink)
            }
            Message::DeleteOrder(m) => Ok(self.delete(event, m.order_id.get())),
            Message::OrderExecuted(m) => {
                event.kind = EventKind::Execute;
                event.ref_id = m.execution_id.get();
                Ok(self.take(event, m.order_id.get(), m.executed_qty.get()))
            }
            Message::ReduceSizeShort(m) => {
                event.kind = EventKind::Reduce;
                Ok(self.take(event, m.order_id.get(), m.cancelled_qty.get().into()))
            }
            Message::ModifyOrderShort(m) => {
                let terms = (m.qty.get().into(), m.price.price(), m.flags);
                Ok(self.modify(event, m.order_id.get(), terms))
            }
            Message::AddOrderLong(m) => {
                let terms = (m.side, m.qty.get(), price(25, m.price)?);
                self.add(event, m.order_id.get(), terms, message, sink)
            }
            Message::ReduceSizeLong(m) => {
                event.kind = EventKind::Reduce;
                Ok(self.take(event, m.order_id.get(), m.cancelled_qty.get()))
            }
            Message::ModifyOrderLong(m) => {
                let terms = (m.qty.get(), price(18, m.price)?, m.flags);
                Ok(self.modify(event, m.order_id.get(), terms))
            }
            Message::AddOrderExpanded(m) => {
                event.code = code(m.participant_id.trimmed());
                let terms = (m.side, m.qty.get(), price(27, m.price)?);
                self.add(event, m.order_id.get(), terms, message, sink)
            }
            rare => self.fill_rare(event, rare, message, sink),
        }
    }

    /// [`PitchDecoder::fill`] for types that touch no order, or few.
    #[inline(never)]
    fn fill_rare<S: EventSink>(
        &mut self,
        event: &mut MarketEvent,
        parsed: Message<'_>,
        message: &[u8],
        sink: &mut S,
    ) -> Result<Told, Malformed> {
        match parsed {
            Message::OrderExecutedAtPriceSize(m) => {
                event.price = price(30, m.price)?;
                event.ref_id = m.execution_id.get();
                let quantities = (m.executed_qty.get(), m.remaining_qty.get());
                return Ok(self.execute_at(event, m.order_id.get(), quantities, sink));
            }
            Message::TradeShort(m) => trade(event, m.qty.get().into(), m.price.price(), m.execution_id.get()),
            Message::TradeLong(m) => trade(event, m.qty.get(), price(25, m.price)?, m.execution_id.get()),
            Message::TradeExpanded(m) => trade(event, m.qty.get(), price(27, m.price)?, m.execution_id.get()),
            Message::TradingStatus(m) => status(event, m)?,
            Message::AuctionUpdate(m) => auction_update(event, m)?,
            Message::AuctionSummary(m) => auction_summary(event, m)?,
            Message::TradeBreak(m) => {
                event.kind = EventKind::TradeBreak;
                event.ref_id = m.execution_id.get();
                return Ok(Told::Event);
            }
            Message::EndOfSession(_) => {
                (event.kind, event.status) = (EventKind::Status, TradingStatus::Closed);
                return Ok(Told::Event);
            }
            Message::UnitClear(_) => {
                self.orders.clear();
                event.kind = EventKind::Clear;
                return Ok(Told::Event);
            }
            Message::Time(m) => {
                let of_snapshot = event.flags.has(EventFlags::SNAPSHOT);
                self.seconds[usize::from(of_snapshot)] = m.seconds.get();
                return Ok(Told::Nothing);
            }
            _ => return Ok(Told::Nothing),
        }
        self.instrument_of(event, message, sink)
    }

    /// Sets the instrument of a message that names one.
    #[inline(always)]
    fn instrument_of<S: EventSink>(
        &mut self,
        event: &mut MarketEvent,
        message: &[u8],
        sink: &mut S,
    ) -> Result<Told, Malformed> {
        let key = pitch::symbol_key(message).unwrap_or_default();
        event.instrument = match self.numbers.get(key) {
            Some(&number) => InstrumentId(number),
            None => match self.define(event, key, sink)? {
                Some(id) => id,
                None => return Ok(Told::NoRoom),
            },
        };
        match self.subscriptions.has(event.instrument) {
            true => Ok(Told::Event),
            false => Ok(Told::Filtered),
        }
    }

    /// An instrument is seen for the first time: tells of it if it is wanted.
    #[cold]
    #[inline(never)]
    fn define<S: EventSink>(
        &mut self,
        event: &MarketEvent,
        key: u64,
        sink: &mut S,
    ) -> Result<Option<InstrumentId>, Malformed> {
        let symbol = Symbol::new(&key.to_be_bytes()).filter(|symbol| !symbol.is_empty());
        let symbol = symbol.ok_or(Malformed::OutOfRange { offset: 0 })?;
        let Some(instrument) = self.enter(key, symbol) else {
            return Ok(None);
        };
        if self.subscriptions.has(instrument) {
            sink.on_event(&MarketEvent {
                kind: EventKind::Definition,
                instrument,
                ..bare(event, not_last(event.flags))
            });
        }
        Ok(Some(instrument))
    }

    #[inline(always)]
    fn add<S: EventSink>(
        &mut self,
        event: &mut MarketEvent,
        order_id: u64,
        (side, qty, price): (Char, u32, Price),
        message: &[u8],
        sink: &mut S,
    ) -> Result<Told, Malformed> {
        match self.instrument_of(event, message, sink)? {
            Told::Event => {}
            other => return Ok(other),
        }
        event.kind = EventKind::Add;
        event.order_id = OrderId(order_id);
        event.side = pitch::side(side).ok_or(Malformed::BadValue {
            offset: 14,
            value: side.0,
        })?;
        event.qty = Volume(qty.into());
        event.price = price;
        let resting = Resting {
            price,
            qty,
            instrument: event.instrument,
            side: event.side,
        };
        Ok(match self.orders.insert(order_id, resting) {
            Ok(_) => Told::Event,
            Err(_) => Told::NoRoom,
        })
    }

    /// Takes `qty` off an order that keeps its place.
    #[inline(always)]
    fn take(&mut self, event: &mut MarketEvent, order_id: u64, qty: u32) -> Told {
        let Some(order) = self.orders.get_mut(order_id) else {
            return self.no_order();
        };
        event.order_id = OrderId(order_id);
        event.instrument = order.instrument;
        event.qty = Volume(qty.into());
        order.qty = order.qty.saturating_sub(qty);
        if order.qty == 0 {
            self.orders.remove(order_id);
        }
        self.wanted(event)
    }

    #[inline(always)]
    fn delete(&mut self, event: &mut MarketEvent, order_id: u64) -> Told {
        let Some(order) = self.orders.remove(order_id) else {
            return self.no_order();
        };
        event.kind = EventKind::Delete;
        event.order_id = OrderId(order_id);
        event.instrument = order.instrument;
        self.wanted(event)
    }

    #[inline(always)]
    fn modify(
        &mut self,
        event: &mut MarketEvent,
        order_id: u64,
        (qty, price, flags): (u32, Price, u8),
    ) -> Told {
        let Some(order) = self.orders.get_mut(order_id) else {
            return self.no_order();
        };
        (order.qty, order.price) = (qty, price);
        event.kind = EventKind::Modify;
        event.order_id = OrderId(order_id);
        event.instrument = order.instrument;
        event.side = order.side;
        event.qty = Volume(qty.into());
        event.price = price;
        if flags & modify_flags::KEEPS_PRIORITY != 0 {
            event.flags = event.flags.with(EventFlags::KEEPS_PRIORITY);
        }
        self.wanted(event)
    }

    /// An execution that says what is left. Where that is not the remainder the order first becomes what it must have been,
    /// and loses its place.
    fn execute_at<S: EventSink>(
        &mut self,
        event: &mut MarketEvent,
        order_id: u64,
        (executed, remaining): (u32, u32),
        sink: &mut S,
    ) -> Told {
        let Some(&order) = self.orders.get(order_id) else {
            return self.no_order();
        };
        event.order_id = OrderId(order_id);
        event.instrument = order.instrument;
        let before = executed.saturating_add(remaining);
        if order.qty != before && self.subscriptions.has(order.instrument) {
            sink.on_event(&MarketEvent {
                kind: EventKind::Modify,
                instrument: order.instrument,
                order_id: event.order_id,
                side: order.side,
                price: order.price,
                qty: Volume(before.into()),
                ..bare(event, not_last(event.flags))
            });
        }
        match (remaining, self.orders.get_mut(order_id)) {
            (1.., Some(order)) => order.qty = remaining,
            _ => _ = self.orders.remove(order_id),
        }
        event.kind = EventKind::Execute;
        event.qty = Volume(executed.into());
        event.flags = event.flags.with(EventFlags::AT_OTHER_PRICE);
        self.wanted(event)
    }

    #[inline(always)]
    fn wanted(&self, event: &MarketEvent) -> Told {
        match self.subscriptions.has(event.instrument) {
            true => Told::Event,
            false => Told::Filtered,
        }
    }

    #[inline(always)]
    fn no_order(&self) -> Told {
        match self.filters {
            true => Told::Filtered,
            false => Told::NoOrder,
        }
    }

    /// Whether a look at the order or symbol tells that nobody wants the message. The rest is found out when it is read.
    #[inline(always)]
    fn is_of_no_interest(&self, kind: u8, message: &[u8]) -> bool {
        match kind {
            0x23..=0x29 => pitch::order_id(message).is_some_and(|id| self.orders.get(id).is_none()),
            _ => match pitch::symbol_key(message).and_then(|key| self.numbers.get(key)) {
                Some(&number) => !self.subscriptions.has(InstrumentId(number)),
                None => false,
            },
        }
    }

    /// Whether a message that names an instrument will pass.
    fn names_wanted(&self, message: &[u8]) -> Option<InstrumentId> {
        let key = pitch::symbol_key(message)?;
        match self.numbers.get(key) {
            Some(&number) => Some(InstrumentId(number)).filter(|&id| self.subscriptions.has(id)),
            // It will get a number when it is decoded.
            None => Symbol::new(&key.to_be_bytes())
                .filter(|symbol| self.subscriptions.wants(symbol))
                .map(|_| InstrumentId::WHOLE_FEED),
        }
    }

    /// What the event says if the message cannot be used: its book is wrong from here on.
    #[cold]
    #[inline(never)]
    fn spoil<S: EventSink>(&self, event: &MarketEvent, kind: u8, sink: &mut S) {
        if matches!(kind, 0x21..=0x29 | 0x2F) {
            sink.on_event(&MarketEvent {
                kind: EventKind::Gap,
                instrument: event.instrument,
                ref_id: event.seq.next().0,
                venue_ts: Nanos::ZERO,
                ..bare(event, event.flags)
            });
        }
    }
}

impl Decoder for PitchDecoder {
    fn venue(&self) -> Venue {
        self.venue
    }

    #[inline(always)]
    fn decode<S: EventSink>(
        &mut self,
        context: Context,
        message: &[u8],
        counters: &mut Counters,
        sink: &mut S,
    ) {
        let Some(&kind) = message.get(1) else {
            return counters.bump(Counter::Malformed);
        };
        self.upcoming.clear();
        self.by_type[kind as usize].seen += 1;
        if self.filters && self.is_of_no_interest(kind, message) {
            self.by_type[kind as usize].filtered += 1;
            return counters.bump(Counter::MessagesFiltered);
        }
        let seconds = match context.flags.has(EventFlags::SNAPSHOT) {
            true => self.seconds[1],
            // Behind a snapshot the live stream's own seconds may not have been seen.
            false => self.seconds[0].max(self.seconds[1]),
        };
        let since_midnight = u64::from(seconds) * Nanos::SECOND + u64::from(offset(message));
        let mut event = MarketEvent {
            seq: context.seq,
            venue_ts: self.midnight.after(since_midnight),
            recv_ts: context.received,
            venue: self.venue,
            flags: context.flags,
            ..MarketEvent::default()
        };
        match self.fill(&mut event, message, sink) {
            Ok(Told::Event) => sink.on_event(&event),
            Ok(Told::Nothing) => {}
            Ok(Told::Filtered) => {
                self.by_type[kind as usize].filtered += 1;
                counters.bump(Counter::MessagesFiltered);
            }
            Ok(Told::NoOrder) => counters.bump(Counter::BookRejects),
            Ok(Told::NoRoom) => {
                counters.bump(Counter::BookFull);
                self.spoil(&event, kind, sink);
            }
            Err(Malformed::UnknownType(_)) => counters.bump(Counter::MessagesUnknown),
            Err(_) => {
                counters.bump(Counter::Malformed);
                self.spoil(&event, kind, sink);
            }
        }
    }

    #[inline(always)]
    fn preview<S: EventSink>(&self, message: &[u8], sink: &mut S) -> bool {
        let Some(&kind) = message.get(1) else {
            return false;
        };
        let Some(order_id) = pitch::order_id(message) else {
            return match kind {
                0x97 | 0x2C | 0x2D => true,
                0x2A | 0x2B | 0x30 | 0x31 | 0x95 | 0x96 => self.names_wanted(message).is_some(),
                _ => false,
            };
        };
        let adds = matches!(
            kind,
            AddOrderLong::KIND | AddOrderShort::KIND | AddOrderExpanded::KIND
        );
        let instrument = match adds {
            true => self.names_wanted(message),
            false => match self.orders.get(order_id) {
                Some(order) => Some(order.instrument).filter(|&id| self.subscriptions.has(id)),
                None => return self.upcoming.has(order_id),
            },
        };
        let Some(instrument) = instrument else {
            return false;
        };
        if adds {
            self.upcoming.add(order_id);
        }
        sink.upcoming(instrument, OrderId(order_id));
        true
    }

    fn restarted(&mut self) {
        self.orders.clear();
        self.seconds = [0; 2];
    }

    fn snapshot_begins(&mut self) {
        self.orders.clear();
        self.seconds[1] = 0;
    }

    fn instrument(&self, id: InstrumentId) -> Option<&Instrument> {
        let at = id.0.checked_sub(self.first_instrument)?;
        self.directory.get(at as usize)
    }
}

/// An event of the same message as `event` that says nothing yet.
fn bare(event: &MarketEvent, flags: EventFlags) -> MarketEvent {
    MarketEvent {
        seq: event.seq,
        venue_ts: event.venue_ts,
        recv_ts: event.recv_ts,
        venue: event.venue,
        flags,
        ..MarketEvent::default()
    }
}

fn not_last(flags: EventFlags) -> EventFlags {
    EventFlags(flags.0 & !EventFlags::LAST.0)
}

/// `TimeOffset`, at the same place in every message that has one; 0 if the message is too short, which is found out when it
/// is read.
#[inline(always)]
fn offset(message: &[u8]) -> u32 {
    match message.get(2..).and_then(<[u8]>::first_chunk) {
        Some(bytes) => u32::from_le_bytes(*bytes),
        None => 0,
    }
}

#[inline(always)]
fn price(offset: u16, price: LongPrice) -> Result<Price, Malformed> {
    price.checked_price().ok_or(Malformed::OutOfRange { offset })
}

fn trade(event: &mut MarketEvent, qty: u32, price: Price, execution_id: u64) {
    event.kind = EventKind::Trade;
    event.qty = Volume(qty.into());
    event.price = price;
    event.ref_id = execution_id;
    event.code[0] = pitch::execution_class(execution_id).unwrap_or_default();
    event.flags = event.flags.with(EventFlags::NO_SIDE);
}

fn status(event: &mut MarketEvent, m: &pitch::TradingStatus) -> Result<(), Malformed> {
    let status = pitch::Status::from_wire(m.status.0).ok_or(Malformed::BadValue {
        offset: 14,
        value: m.status.0,
    })?;
    event.kind = EventKind::Status;
    event.code = code(&[m.status.0, m.reg_sho.0]);
    event.status = match status {
        pitch::Status::Accepting => TradingStatus::PreOpen,
        pitch::Status::Halted | pitch::Status::Suspended => TradingStatus::Halted,
        pitch::Status::QuoteOnly => TradingStatus::QuoteOnly,
        pitch::Status::Trading => TradingStatus::Trading,
    };
    Ok(())
}

fn auction_update(event: &mut MarketEvent, m: &pitch::AuctionUpdate) -> Result<(), Malformed> {
    let (buy, sell) = (m.buy_shares.get(), m.sell_shares.get());
    let (side, no_side) = match buy.cmp(&sell) {
        core::cmp::Ordering::Greater => (Side::Bid, EventFlags::NONE),
        core::cmp::Ordering::Less => (Side::Ask, EventFlags::NONE),
        core::cmp::Ordering::Equal => (Side::Bid, EventFlags::NO_SIDE),
    };
    event.kind = EventKind::Imbalance;
    event.side = side;
    event.flags = event.flags.with(no_side);
    event.qty = Volume(buy.min(sell).into());
    event.imbalance_qty = Volume(buy.abs_diff(sell).into());
    event.price = price(15, m.reference_price)?;
    event.near_price = price(31, m.indicative_price)?;
    event.far_price = price(39, m.auction_only_price)?;
    event.code = code(&[m.auction_type.0]);
    Ok(())
}

fn auction_summary(event: &mut MarketEvent, m: &pitch::AuctionSummary) -> Result<(), Malformed> {
    event.kind = EventKind::Trade;
    event.qty = Volume(m.shares.get().into());
    event.price = price(15, m.price)?;
    event.code = code(&[m.auction_type.0]);
    event.flags = event
        .flags
        .with(EventFlags::NO_SIDE)
        .with(EventFlags::NOT_PRINTABLE);
    Ok(())
}

/// A venue code padded with NULs; at most eight bytes.
fn code(text: &[u8]) -> [u8; 8] {
    let mut code = [0; 8];
    for (to, from) in code.iter_mut().zip(text) {
        *to = *from;
    }
    code
}
