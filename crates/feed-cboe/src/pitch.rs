//! Cboe Multicast PITCH 2.41 (specification 2.41.29, 2022-04-20) to [`MarketEvent`]s; BZX, BYX, EDGA and
//! EDGX.
//!
//! One feed is one matching unit: it has its own numbers, its own clock, its own instruments and orders. What
//! comes out:
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
//! | any of the first three rows that is malformed or finds no room | `Gap` of the instrument, or of the feed where it cannot be told: wrong until a clear |
//! | `20` `98` | none |
//!
//! Only adds name their instrument. The orders of instruments that are wanted are kept in a table of their
//! own; an order that is not in it is one of another instrument, and its messages are dropped.
//!
//! Missing messages are asked for over the [`GapProxy`] and come on a multicast group; a snapshot comes from
//! [`Spin`].

mod gap;
mod said;
mod session;
mod spin;

pub use gap::{GapEvent, GapProxy};
pub use session::PitchLogin;
pub use spin::Spin;

use crate::decoder::{Context, Decoder, Prefiltered, StreamEvent};
use crate::fixed_map::{FixedMap, Slot};
use crate::framing::{Content, Frame, Framing};
use crate::{ArbiterConfig, FeedHandler, Filter, MissingRange, NotedOrders, RecoveryLimits, SessionId};
use alloc::vec::Vec;
use core::ops::Range;
use said::{auction_summary, auction_update, code, price, status, trade};
use tickwire_market::{
    Counter, Counters, EventFlags, EventKind, EventSink, Instrument, InstrumentId, MarketEvent, MessageType,
    Nanos, OrderId, Price, SeqNo, Side, Symbol, TradingStatus, Upcoming, Venue, Volume,
};
use tickwire_wire_cboe::pitch::{
    self, AddOrderExpanded, AddOrderLong, AddOrderShort, DeleteOrder, EndOfSession, GapRequest, Message,
    ModifyOrderLong, ModifyOrderShort, OrderExecuted, OrderExecutedAtPriceSize, ReduceSizeLong,
    ReduceSizeShort, gap_limits, modify_flags,
};
use tickwire_wire_core::Malformed;
use tickwire_wire_core::layout::Pod;

/// One unit of a Cboe equities market.
pub type PitchFeed = FeedHandler<PitchUnit, PitchDecoder>;

/// The framing of a unit: blocks with a Sequenced Unit Header.
///
/// Numbers of 32 bits go from 2^32 - 1 to 1; the arbiter counts on. The unit is the session, so that a block
/// of another unit is told apart. Messages without numbers (number 0) are of no use to a book and are
/// ignored.
#[derive(Clone, Copy, Debug)]
pub enum PitchUnit {}

impl PitchUnit {
    /// The session of a unit.
    pub const fn session(unit: u8) -> SessionId {
        SessionId([unit, 0, 0, 0, 0, 0, 0, 0, 0, 0])
    }

    /// Limits as the Gap Request Proxy has them, [`RecoveryLimits::PITCH`]. Only this unit is accepted.
    pub fn arbiter_config(unit: u8) -> ArbiterConfig {
        ArbiterConfig {
            session: Some(PitchUnit::session(unit)),
            request_messages: gap_limits::MESSAGES,
            recovery: RecoveryLimits::PITCH,
            ..ArbiterConfig::default()
        }
    }
}

impl Framing for PitchUnit {
    type Messages<'a> = pitch::Messages<'a>;

    const HEADER: usize = pitch::UnitHeader::SIZE;

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
        // Numbers of this framing have 32 bits.
        SeqNo(pitch::full_sequence(first.0 as u32, next.0))
    }

    fn request(range: MissingRange, buffer: &mut [u8]) -> Option<usize> {
        let request = GapRequest {
            unit: range.session.0[0],
            sequence: pitch::wire_sequence(range.first.0).into(),
            count: range.count.into(),
            ..GapRequest::BLANK_MESSAGE
        };
        session::block(buffer, 0, 0, request.as_bytes())
    }

    fn wrap(session: SessionId, seq: SeqNo, message: &[u8], buffer: &mut [u8]) -> Option<usize> {
        session::block(buffer, session.0[0], pitch::wire_sequence(seq.0), message)
    }
}

/// What a [`PitchDecoder`] has to know.
#[derive(Clone, Debug)]
pub struct PitchConfig {
    /// BZX (the default), BYX, EDGA or EDGX.
    pub venue: Venue,
    /// Midnight in New York of the day, since the Unix epoch; 0 if the day is not known, and venue times then
    /// count from midnight.
    pub midnight: Nanos,
    /// The number of the unit's first instrument, at least 1 (the default): PITCH has no numbers, instruments
    /// get them in order of appearance. Units whose events meet in one place need ranges that do not overlap.
    pub first_instrument: u32,
    /// How many instruments the unit can have. Default 4096. When full: further ones have no number and no
    /// book, their messages are dropped and counted.
    pub instruments_max: u32,
    /// How many orders of wanted instruments can rest at once. Default 2^20. When full: an order is left out
    /// and counted, and the book of its instrument is said to be wrong.
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

const DAY_SECONDS: u64 = Nanos::DAY / Nanos::SECOND;

/// What a message came to.
enum Outcome {
    /// The event is complete.
    Event,
    /// So it is, and the message has been announced already.
    EventOfAnnounced,
    /// Nothing that a book or its readers need.
    Nothing,
    /// Nobody wants it.
    Filtered,
    /// Its instrument joins: it is held back.
    Held,
    /// There is no room for its instrument.
    NoRoom,
}

/// The decoder of one unit. All memory is taken at construction.
pub struct PitchDecoder {
    venue: Venue,
    midnight: Nanos,
    /// The current second of the live stream and of the snapshot, counted from the midnight that the day
    /// began with.
    seconds: [u64; 2],
    /// That of the live stream, while messages are told that were held back.
    seconds_now: Option<u64>,
    filter: Filter,
    numbers: FixedMap<u32>,
    orders: FixedMap<Resting>,
    /// The order added last.
    added: OrderId,
    /// For a filter in front of the feed.
    noted: NotedOrders,
}

impl PitchDecoder {
    /// A decoder that knows the configured directory.
    pub fn new(config: PitchConfig) -> PitchDecoder {
        let instruments_max = config.instruments_max.max(config.directory.len() as u32);
        let first = config.first_instrument.max(1);
        let mut decoder = PitchDecoder {
            venue: config.venue,
            midnight: config.midnight,
            seconds: [0; 2],
            seconds_now: None,
            filter: Filter::new(
                config.venue,
                first..first.saturating_add(instruments_max),
                config.symbols.as_deref(),
            )
            .joining_by_round(about)
            .counting_instruments(),
            numbers: FixedMap::new(instruments_max as usize),
            orders: FixedMap::new(config.orders_max as usize),
            added: OrderId(0),
            noted: NotedOrders::none(),
        };
        for symbol in config.directory {
            if let Some(key) = symbol.padded().map(u64::from_be_bytes) {
                decoder.enter(key, symbol);
            }
        }
        decoder
    }

    /// Gives a symbol a number, if there is one left.
    fn enter(&mut self, key: u64, symbol: Symbol) -> Option<InstrumentId> {
        let id = self.filter.next_number()?;
        self.numbers.insert(key, id.0).ok()?;
        self.filter.enter(Instrument {
            id,
            venue: self.venue,
            symbol,
            ..Instrument::default()
        })?;
        Some(id)
    }

    /// Writes what a message about an order of the table says over an event that holds what every message
    /// has.
    #[inline(always)]
    fn change(
        &mut self,
        event: &mut MarketEvent,
        kind: u8,
        message: &[u8],
        place: Slot,
    ) -> Result<(), Malformed> {
        match kind {
            DeleteOrder::KIND => {
                pitch::layout::<DeleteOrder>(message)?;
                event.kind = EventKind::Delete;
                self.orders.remove_at(place);
            }
            ModifyOrderShort::KIND => {
                let m: &ModifyOrderShort = pitch::layout(message)?;
                self.modify(event, place, (m.qty.get().into(), m.price.price(), m.flags));
            }
            OrderExecuted::KIND => {
                let m: &OrderExecuted = pitch::layout(message)?;
                event.kind = EventKind::Execute;
                event.ref_id = m.execution_id.get();
                self.take(event, place, m.executed_qty.get());
            }
            ReduceSizeShort::KIND => {
                let m: &ReduceSizeShort = pitch::layout(message)?;
                event.kind = EventKind::Reduce;
                self.take(event, place, m.cancelled_qty.get().into());
            }
            ReduceSizeLong::KIND => {
                let m: &ReduceSizeLong = pitch::layout(message)?;
                event.kind = EventKind::Reduce;
                self.take(event, place, m.cancelled_qty.get());
            }
            _ => {
                let m: &ModifyOrderLong = pitch::layout(message)?;
                self.modify(event, place, (m.qty.get(), price(18, m.price)?, m.flags));
            }
        }
        Ok(())
    }

    /// A new order of a wanted instrument; `false` if there is no room for it.
    #[inline(always)]
    fn add(&mut self, event: &mut MarketEvent, kind: u8, message: &[u8]) -> Result<bool, Malformed> {
        let (side, qty, price, participant) = added(kind, message)?;
        event.code = participant;
        event.kind = EventKind::Add;
        event.side = side;
        event.qty = Volume(qty.into());
        event.price = price;
        let resting = Resting {
            price,
            qty,
            instrument: event.instrument,
            side: event.side,
        };
        let has_room = self.orders.insert(event.order_id.0, resting).is_ok();
        self.added = event.order_id;
        self.noted.note(event.order_id);
        Ok(has_room)
    }

    /// Messages that touch no order.
    fn fill<S: EventSink>(
        &mut self,
        event: &mut MarketEvent,
        context: Context,
        message: &[u8],
        sink: &mut S,
    ) -> Result<Outcome, Malformed> {
        match pitch::parse(message)? {
            Message::TradeShort(m) => trade(event, m.qty.get().into(), m.price.price(), m.execution_id.get()),
            Message::TradeLong(m) => trade(event, m.qty.get(), price(25, m.price)?, m.execution_id.get()),
            Message::TradeExpanded(m) => trade(event, m.qty.get(), price(27, m.price)?, m.execution_id.get()),
            Message::TradingStatus(m) => status(event, m)?,
            Message::AuctionUpdate(m) => auction_update(event, m)?,
            Message::AuctionSummary(m) => auction_summary(event, m)?,
            Message::TradeBreak(m) => {
                event.kind = EventKind::TradeBreak;
                event.ref_id = m.execution_id.get();
                return Ok(Outcome::Event);
            }
            Message::EndOfSession(_) => {
                (event.kind, event.status) = (EventKind::Status, TradingStatus::Closed);
                return Ok(Outcome::Event);
            }
            Message::UnitClear(_) => {
                self.orders.clear();
                // Empty is what their books are.
                self.filter.open_all();
                event.kind = EventKind::Clear;
                return Ok(Outcome::Event);
            }
            Message::Time(m) => {
                self.tick(event.flags.has(EventFlags::SNAPSHOT), m.seconds.get());
                return Ok(Outcome::Nothing);
            }
            _ => return Ok(Outcome::Nothing),
        }
        let Some((instrument, is_new)) = self.instrument_of(context, message, sink)? else {
            return Ok(Outcome::NoRoom);
        };
        event.instrument = instrument;
        let in_snapshot = context.flags.has(EventFlags::SNAPSHOT);
        if self.filter.round.holds(instrument) && !in_snapshot {
            return Ok(Outcome::Held);
        }
        self.filter.of_instrument(instrument).seen += 1;
        let passes = self.filter.has(instrument) || in_snapshot && self.filter.round.loads(instrument);
        match (passes, is_new) {
            (true, false) => Ok(Outcome::Event),
            (true, true) => Ok(Outcome::EventOfAnnounced),
            (false, _) => {
                self.filter.of_instrument(instrument).filtered += 1;
                Ok(Outcome::Filtered)
            }
        }
    }

    /// A `Time`: seconds since a midnight, that of the day nearest to what was said before. Behind a snapshot
    /// the live stream goes on from its time until it says its own.
    fn tick(&mut self, of_snapshot: bool, seconds: u32) {
        let [live, _] = self.seconds;
        let days = live / DAY_SECONDS * DAY_SECONDS;
        let mut now = days + u64::from(seconds);
        if now + DAY_SECONDS / 2 < live {
            now += DAY_SECONDS;
        } else if days > 0 && now > live + DAY_SECONDS / 2 {
            now -= DAY_SECONDS;
        }
        self.seconds = match of_snapshot {
            true => [live.max(now), now],
            false => [now, self.seconds[1]],
        };
    }

    /// The instrument of a message that names one, and whether it is a new one; `None` if there is no room
    /// for it.
    #[inline(always)]
    fn instrument_of<S: EventSink>(
        &mut self,
        context: Context,
        message: &[u8],
        sink: &mut S,
    ) -> Result<Option<(InstrumentId, bool)>, Malformed> {
        let key = pitch::symbol_key(message).unwrap_or_default();
        match self.numbers.get(key) {
            Some(&number) => Ok(Some((InstrumentId(number), false))),
            None => Ok(self.define(context, key, message, sink)?.map(|id| (id, true))),
        }
    }

    /// An instrument is seen for the first time: announces the message and tells of the instrument if it is
    /// wanted.
    #[cold]
    #[inline(never)]
    fn define<S: EventSink>(
        &mut self,
        context: Context,
        key: u64,
        message: &[u8],
        sink: &mut S,
    ) -> Result<Option<InstrumentId>, Malformed> {
        let symbol = Symbol::new(&key.to_be_bytes()).filter(|symbol| !symbol.is_empty());
        let symbol = symbol.ok_or(Malformed::OutOfRange { offset: 0 })?;
        let Some(instrument) = self.enter(key, symbol) else {
            return Ok(None);
        };
        if self.filter.has(instrument) {
            let kind = message.get(1).copied().unwrap_or_default();
            sink.on_message(MessageType(kind.into()));
            sink.on_event(&MarketEvent {
                kind: EventKind::Definition,
                instrument,
                flags: not_last(context.flags),
                ..self.event(context, message)
            });
        }
        Ok(Some(instrument))
    }

    /// Takes `qty` off an order that keeps its place.
    #[inline(always)]
    fn take(&mut self, event: &mut MarketEvent, place: Slot, qty: u32) {
        event.qty = Volume(qty.into());
        let order = self.orders.at_mut(place);
        order.qty = order.qty.saturating_sub(qty);
        if order.qty == 0 {
            self.orders.remove_at(place);
        }
    }

    #[inline(always)]
    fn modify(&mut self, event: &mut MarketEvent, place: Slot, (qty, price, flags): (u32, Price, u8)) {
        let order = self.orders.at_mut(place);
        (order.qty, order.price) = (qty, price);
        event.kind = EventKind::Modify;
        event.side = order.side;
        event.qty = Volume(qty.into());
        event.price = price;
        if flags & modify_flags::KEEPS_PRIORITY != 0 {
            event.flags = event.flags.with(EventFlags::KEEPS_PRIORITY);
        }
    }

    /// What every event of a message has.
    #[inline(always)]
    fn event(&self, context: Context, message: &[u8]) -> MarketEvent {
        let seconds = self.seconds[usize::from(context.flags.has(EventFlags::SNAPSHOT))];
        let since_midnight = seconds * Nanos::SECOND + u64::from(offset(message));
        MarketEvent {
            seq: context.seq,
            venue_ts: self.midnight.after(since_midnight),
            recv_ts: context.received,
            venue: self.venue,
            flags: context.flags,
            ..MarketEvent::default()
        }
    }

    /// Reads a message about an order. Everything that must look at the finished event's address is kept out
    /// of here: the event then stays in registers and is written once, to where it is wanted.
    #[inline(always)]
    fn decode_change<S: EventSink>(
        &mut self,
        context: Context,
        (kind, order_id): (u8, u64),
        message: &[u8],
        counters: &mut Counters,
        sink: &mut S,
    ) {
        let Some(place) = self.orders.find(order_id) else {
            // It may be one of an instrument that joins: only the snapshot will tell.
            if self.filter.round.holds_any() && !context.flags.has(EventFlags::SNAPSHOT) {
                return self.hold(context, kind, message);
            }
            return match self.filter.drops_any() {
                true => self.filtered(kind, counters),
                false => counters.bump(Counter::BookRejects),
            };
        };
        let instrument = self.orders.at(place).instrument;
        if self.filter.drops_any() && !self.filter.has(instrument) {
            // An order of the snapshot already.
            if self.filter.round.holds(instrument) && !context.flags.has(EventFlags::SNAPSHOT) {
                return self.hold(context, kind, message);
            }
            return self.forget_order(kind, place, counters);
        }
        self.filter.of_instrument(instrument).seen += 1;
        sink.on_message(MessageType(kind.into()));
        if kind == OrderExecutedAtPriceSize::KIND {
            return self.decode_execution(context, order_id, place, message, counters, sink);
        }
        let mut event = self.event(context, message);
        event.order_id = OrderId(order_id);
        event.instrument = instrument;
        if let Err(malformed) = self.change(&mut event, kind, message, place) {
            self.refuse(context, instrument, kind, malformed, counters, sink);
        } else {
            sink.on_event(&event);
        }
    }

    /// A message about an order whose instrument is no longer wanted: it is not read, and the order
    /// forgotten, as it is not what it was. What nobody hears of again stays until the instrument is wanted
    /// again or the orders are cleared.
    #[cold]
    #[inline(never)]
    fn forget_order(&mut self, kind: u8, place: Slot, counters: &mut Counters) {
        let order = self.orders.remove_at(place);
        self.filter.of_instrument(order.instrument).drop_one();
        self.filtered(kind, counters);
    }

    /// Holds back a live message that is, or may be, about an instrument that joins. It is counted when its
    /// turn has come.
    #[cold]
    #[inline(never)]
    fn hold(&mut self, context: Context, kind: u8, message: &[u8]) {
        self.filter.of_type(kind.into()).seen -= 1;
        self.filter.hold(context, self.seconds[0], message);
    }

    /// A clear of the unit makes books right, but not those that nobody keeps any more.
    #[cold]
    fn mark_left<S: EventSink>(&self, clear: &MarketEvent, sink: &mut S) {
        self.filter.round.each_left(|instrument| {
            sink.on_event(&MarketEvent {
                kind: EventKind::Gap,
                instrument,
                ref_id: clear.seq.0,
                ..*clear
            });
        });
    }

    /// An execution that says what is left. Where that is not the remainder the order first becomes what it
    /// must have been, and loses its place.
    #[inline(never)]
    fn decode_execution<S: EventSink>(
        &mut self,
        context: Context,
        order_id: u64,
        place: Slot,
        message: &[u8],
        counters: &mut Counters,
        sink: &mut S,
    ) {
        let order = *self.orders.at(place);
        let read =
            pitch::layout(message).and_then(|m: &OrderExecutedAtPriceSize| Ok((m, price(30, m.price)?)));
        let (m, at) = match read {
            Ok(read) => read,
            Err(malformed) => {
                let kind = OrderExecutedAtPriceSize::KIND;
                return self.refuse(context, order.instrument, kind, malformed, counters, sink);
            }
        };
        let (executed, remaining) = (m.executed_qty.get(), m.remaining_qty.get());
        match remaining {
            0 => _ = self.orders.remove_at(place),
            _ => self.orders.at_mut(place).qty = remaining,
        }
        let about = MarketEvent {
            instrument: order.instrument,
            order_id: OrderId(order_id),
            ..self.event(context, message)
        };
        let before = executed.saturating_add(remaining);
        if order.qty != before {
            sink.on_event(&MarketEvent {
                kind: EventKind::Modify,
                side: order.side,
                price: order.price,
                qty: Volume(before.into()),
                flags: not_last(context.flags),
                ..about
            });
        }
        sink.on_event(&MarketEvent {
            kind: EventKind::Execute,
            price: at,
            qty: Volume(executed.into()),
            ref_id: m.execution_id.get(),
            flags: context.flags.with(EventFlags::AT_OTHER_PRICE),
            ..about
        });
    }

    /// Reads a message that adds an order.
    #[inline(always)]
    fn decode_add<S: EventSink>(
        &mut self,
        context: Context,
        (kind, order_id): (u8, u64),
        message: &[u8],
        counters: &mut Counters,
        sink: &mut S,
    ) {
        let instrument = match self.instrument_of(context, message, sink) {
            Ok(Some((id, is_new))) => {
                if !self.filter.has(id) {
                    if self.filter.round.holds(id) && !context.flags.has(EventFlags::SNAPSHOT) {
                        return self.hold(context, kind, message);
                    }
                    let seen = self.filter.of_instrument(id);
                    (seen.seen, seen.filtered) = (seen.seen + 1, seen.filtered + 1);
                    return self.filtered(kind, counters);
                }
                self.filter.of_instrument(id).seen += 1;
                if !is_new {
                    sink.on_message(MessageType(kind.into()));
                }
                id
            }
            // An instrument without a number has no book that could be wrong.
            Ok(None) => return counters.bump(Counter::BookFull),
            Err(malformed) => {
                return self.refuse(context, InstrumentId::WHOLE_FEED, kind, malformed, counters, sink);
            }
        };
        self.tell_add(context, (kind, order_id), instrument, message, counters, sink);
    }

    /// Tells of a new order of an instrument.
    #[inline(always)]
    fn tell_add<S: EventSink>(
        &mut self,
        context: Context,
        (kind, order_id): (u8, u64),
        instrument: InstrumentId,
        message: &[u8],
        counters: &mut Counters,
        sink: &mut S,
    ) {
        let mut event = self.event(context, message);
        event.instrument = instrument;
        event.order_id = OrderId(order_id);
        match self.add(&mut event, kind, message) {
            Ok(true) => sink.on_event(&event),
            Ok(false) => {
                counters.bump(Counter::BookFull);
                self.spoil(context, instrument, kind, sink);
            }
            Err(malformed) => self.refuse(context, instrument, kind, malformed, counters, sink),
        }
    }

    /// Reads a message about no order, or one too short to name it.
    #[inline(never)]
    fn decode_other<S: EventSink>(
        &mut self,
        context: Context,
        kind: u8,
        message: &[u8],
        counters: &mut Counters,
        sink: &mut S,
    ) {
        let mut event = self.event(context, message);
        match self.fill(&mut event, context, message, sink) {
            Ok(Outcome::Event) => {
                sink.on_message(MessageType(kind.into()));
                sink.on_event(&event);
                if event.kind == EventKind::Clear {
                    self.mark_left(&event, sink);
                }
            }
            Ok(Outcome::EventOfAnnounced) => sink.on_event(&event),
            Ok(Outcome::Nothing) => {}
            Ok(Outcome::Filtered) => self.filtered(kind, counters),
            Ok(Outcome::Held) => self.hold(context, kind, message),
            Ok(Outcome::NoRoom) => counters.bump(Counter::BookFull),
            Err(malformed) => self.refuse(context, event.instrument, kind, malformed, counters, sink),
        }
    }

    #[inline(always)]
    fn filtered(&mut self, kind: u8, counters: &mut Counters) {
        self.filter.of_type(kind.into()).filtered += 1;
        counters.bump(Counter::MessagesFiltered);
    }

    /// A message that cannot be read.
    #[cold]
    #[inline(never)]
    fn refuse<S: EventSink>(
        &self,
        context: Context,
        instrument: InstrumentId,
        kind: u8,
        malformed: Malformed,
        counters: &mut Counters,
        sink: &mut S,
    ) {
        if matches!(malformed, Malformed::UnknownType(_)) {
            return counters.bump(Counter::MessagesUnknown);
        }
        crate::decoder::count_malformed(counters, &malformed);
        self.spoil(context, instrument, kind, sink);
    }

    /// A message that cannot be used: its book is wrong from here on; where it is not known which book that
    /// is, every book may be.
    #[cold]
    #[inline(never)]
    fn spoil<S: EventSink>(&self, context: Context, instrument: InstrumentId, kind: u8, sink: &mut S) {
        if matches!(kind, 0x21..=0x29 | 0x2F) {
            sink.on_event(&MarketEvent {
                kind: EventKind::Gap,
                seq: context.seq,
                ref_id: context.seq.next().0,
                recv_ts: context.received,
                venue: self.venue,
                instrument,
                flags: context.flags.with(EventFlags::UNUSABLE),
                ..MarketEvent::default()
            });
        }
    }
}

impl Prefiltered for PitchDecoder {
    fn note_orders(&mut self, room: usize) {
        self.noted = NotedOrders::with_room(room);
    }

    fn noted_orders(&mut self) -> Option<&mut NotedOrders> {
        Some(&mut self.noted)
    }

    fn resting(&self, each: &mut dyn FnMut(OrderId)) {
        self.orders.each(|order, resting| {
            if self.filter.has(resting.instrument) || self.filter.is_joining(resting.instrument) {
                each(OrderId(order));
            }
        });
    }
}

impl Decoder for PitchDecoder {
    fn filter(&self) -> &Filter {
        &self.filter
    }

    fn filter_mut(&mut self) -> &mut Filter {
        &mut self.filter
    }

    /// Orders are numbered upwards, those of all instruments together.
    fn fetch(&self, id: InstrumentId) {
        if let Some(key) = self.filter.instrument(id).and_then(|entry| entry.symbol.padded()) {
            self.numbers.fetch(u64::from_be_bytes(key));
        }
        for next in 1..=4 {
            self.orders.fetch(self.added.0.wrapping_add(next));
        }
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
            return crate::decoder::count_bad_value(counters);
        };
        self.filter.of_type(kind.into()).seen += 1;
        match pitch::order_id(message) {
            Some(id) if is_add(kind) => self.decode_add(context, (kind, id), message, counters, sink),
            Some(id) => self.decode_change(context, (kind, id), message, counters, sink),
            None => self.decode_other(context, kind, message, counters, sink),
        }
    }

    /// What becomes of a message depends on those before it in the packet: an order may be new.
    const PREVIEWS: bool = false;

    #[inline(always)]
    fn looks_ahead(&self) -> bool {
        !self.filter.drops_any()
    }

    /// Orders, executions and trades.
    const BUSY_TYPES: Range<usize> = 0x20..0x31;

    /// The instrument is known when the order is found.
    #[inline(always)]
    fn announce<S: EventSink>(&self, message: &[u8], sink: &mut S) {
        if let Some(order) = pitch::order_id(message)
            && self.looks_ahead()
        {
            sink.arriving(Upcoming::resting(InstrumentId::WHOLE_FEED, OrderId(order)));
        }
    }

    #[inline(always)]
    fn preview<S: EventSink>(&self, message: &[u8], sink: &mut S) -> bool {
        let (Some(&kind), Some(order)) = (message.get(1), pitch::order_id(message)) else {
            return true;
        };
        // Searched for an order to be added, too: its place comes into the cache.
        let order_id = OrderId(order);
        match self.orders.find(order) {
            Some(place) => sink.upcoming(Upcoming::resting(self.orders.at(place).instrument, order_id)),
            None if is_add(kind) => {
                let number = self.numbers.get(pitch::symbol_key(message).unwrap_or_default());
                if let (Some(&number), Ok((side, _, price, _))) = (number, added(kind, message)) {
                    sink.upcoming(Upcoming {
                        says_where: true,
                        side,
                        price,
                        ..Upcoming::resting(InstrumentId(number), order_id)
                    });
                }
            }
            None => {}
        }
        true
    }

    #[inline(always)]
    fn ends(message: &[u8]) -> bool {
        message.get(1) == Some(&EndOfSession::KIND)
    }

    fn on_stream(&mut self, event: StreamEvent) {
        match event {
            StreamEvent::Restarted => {
                self.filter.open_all();
                self.orders.clear();
                self.seconds = [0; 2];
            }
            StreamEvent::SnapshotBegins => {
                self.filter.open_all();
                self.orders.clear();
                self.seconds[1] = 0;
            }
            StreamEvent::SnapshotEnded(next) => self.filter.go_on_at(next),
            StreamEvent::Releases(seconds) => {
                self.seconds_now.get_or_insert(self.seconds[0]);
                self.seconds[0] = seconds;
            }
            StreamEvent::Released => self.seconds[0] = self.seconds_now.take().unwrap_or(self.seconds[0]),
            StreamEvent::Subscribed(_) => {}
        }
    }

    fn decode_joining<S: EventSink>(
        &mut self,
        context: Context,
        message: &[u8],
        counters: &mut Counters,
        sink: &mut S,
    ) {
        let Some(&kind) = message.get(1) else { return };
        let Some(key) = pitch::symbol_key(message) else {
            if let Ok(Message::Time(m)) = pitch::parse(message) {
                // The live stream keeps its own time: other instruments go on with it.
                let live = self.seconds[0];
                self.tick(true, m.seconds.get());
                self.seconds[0] = live;
            }
            return;
        };
        let Some(id) = self.numbers.get(key).map(|&number| InstrumentId(number)) else {
            return;
        };
        if !self.filter.round.loads(id) {
            return;
        }
        self.filter.of_type(kind.into()).seen += 1;
        match pitch::order_id(message).filter(|_| is_add(kind)) {
            Some(order) => {
                self.filter.of_instrument(id).seen += 1;
                sink.on_message(MessageType(kind.into()));
                self.tell_add(context, (kind, order), id, message, counters, sink);
            }
            None => self.decode_other(context, kind, message, counters, sink),
        }
    }
}

// The feed's limits are those of the layouts' specification.
const _: () = {
    let limits = RecoveryLimits::PITCH;
    assert!(limits.requests_per_second == pitch::gap_limits::SECOND);
    assert!(limits.requests_per_minute == pitch::gap_limits::MINUTE);
    assert!(limits.requests_per_day == pitch::gap_limits::DAY);
};

/// Side, quantity, price and participant of a new order.
#[inline(always)]
fn added(kind: u8, message: &[u8]) -> Result<(Side, u32, Price, [u8; 8]), Malformed> {
    let (side, qty, price, participant) = match kind {
        AddOrderShort::KIND => {
            let m: &AddOrderShort = pitch::layout(message)?;
            (m.side, m.qty.get().into(), m.price.price(), [0; 8])
        }
        AddOrderLong::KIND => {
            let m: &AddOrderLong = pitch::layout(message)?;
            (m.side, m.qty.get(), price(25, m.price)?, [0; 8])
        }
        _ => {
            let m: &AddOrderExpanded = pitch::layout(message)?;
            let participant = code(m.participant_id.trimmed());
            (m.side, m.qty.get(), price(27, m.price)?, participant)
        }
    };
    let value = side.0;
    let side = pitch::side(side).ok_or(Malformed::BadValue { offset: 14, value })?;
    Ok((side, qty, price, participant))
}

#[inline(always)]
const fn is_add(kind: u8) -> bool {
    matches!(
        kind,
        AddOrderLong::KIND | AddOrderShort::KIND | AddOrderExpanded::KIND
    )
}

/// The type of a message; its instrument only the table of orders knows.
fn about(message: &[u8]) -> (MessageType, InstrumentId) {
    let kind = message.get(1).copied().unwrap_or_default();
    (MessageType(kind.into()), InstrumentId::WHOLE_FEED)
}

fn not_last(flags: EventFlags) -> EventFlags {
    EventFlags(flags.0 & !EventFlags::LAST.0)
}

/// `TimeOffset`, at the same place in every message that has one; 0 if the message is too short, which is
/// found out when it is read.
#[inline(always)]
fn offset(message: &[u8]) -> u32 {
    match message.get(2..).and_then(<[u8]>::first_chunk) {
        Some(bytes) => u32::from_le_bytes(*bytes),
        None => 0,
    }
}
