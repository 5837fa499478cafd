//! NYSE OpenBook Ultra 2.1 to [`MarketEvent`]s: books by price of NYSE and NYSE American.
//!
//! A packet is the unit of numbering and enters the decoder whole. What comes out:
//!
//! | message | event |
//! |---|---|
//! | 230 | the first time `Definition`; `Clear` of the instrument, then a `Level` for every price point |
//! | 231 | a `Level` for every price point, its volume after the change |
//! | 230, 231 whose trading status is another than before | `Status` first, `code` = trading status and quote condition |
//! | 35 | `Definition` |
//! | 231 whose number is not the instrument's next, a price point that cannot be read | `Gap` of the instrument: its book may be wrong until the next 230 |
//! | 1 2 5 and requests | none |
//!
//! A full update may be split: parts repeat the fixed part, number included, and only the first one clears.
//! An update that an instrument's refresh holds already, which its number tells, says nothing.

mod offers;
mod refresh;

pub use refresh::OpenBookRefresh;

use crate::decoder::{Context, Decoder, Out, Prefiltered, StreamEvent};
use crate::framing::{Content, Frame, Framing, Restart};
use crate::nyse::{INSTRUMENTS_MAX, NyseChannel, NyseDecoder, nyse_protocol};
use crate::{FeedHandler, Filter, MissingRange, Seen, SessionId};
use alloc::{boxed::Box, vec, vec::Vec};
use core::hint::black_box;
use core::ops::Range;
use tickwire_market::{
    Counter, Counters, EventFlags, EventKind, EventSink, Instrument, InstrumentId, MarketEvent, MessageType,
    Nanos, SeqNo, Symbol, TradingStatus, Venue, Volume,
};
use tickwire_wire_core::Malformed;
use tickwire_wire_core::layout::{Char, I32, U16, U32};
use tickwire_wire_nyse::openbook::{
    self, DeltaHead, DeltaUpdate, FullHead, FullPoint, FullUpdate, Message, TradingStatusCode,
};
use tickwire_wire_nyse::xdp::side;

/// A channel of OpenBook Ultra.
pub type OpenBookFeed = FeedHandler<OpenBook, OpenBookDecoder>;

/// A channel of OpenBook Ultra with its recovery.
pub type OpenBookChannel = NyseChannel<OpenBook>;

/// Packets of OpenBook Ultra: numbered by packet, per channel.
#[derive(Clone, Copy, Debug)]
pub enum OpenBook {}

/// Two resets sent within this time, in milliseconds, are the two lines' copies of one.
const SAME_RESTART_MS: u64 = 1000;
/// A packet sent at most this long before a reset, in milliseconds, is of the old numbers. The clock begins
/// anew at midnight.
const OLD_PACKETS_MS: u64 = 3_600_000;

impl Framing for OpenBook {
    type Messages<'a> = core::iter::Once<&'a [u8]>;

    const HEADER: usize = openbook::PacketHeader::SIZE;

    #[inline]
    fn parse(datagram: &[u8]) -> Result<Frame<Self::Messages<'_>>, Malformed> {
        let packet = openbook::parse_packet(datagram)?;
        // What says that packets are unavailable has no number of its own.
        let unavailable = packet.kind() == openbook::MessageUnavailable::KIND;
        Ok(Frame {
            session: SessionId::NONE,
            first: if unavailable { SeqNo(0) } else { packet.seq() },
            trailing: packet.trailing,
            content: if unavailable || packet.kind() == openbook::HEARTBEAT {
                Content::Heartbeat
            } else {
                Content::Messages {
                    count: 1,
                    messages: core::iter::once(datagram),
                }
            },
        })
    }

    /// Packets are asked for over a connection: [`FeedHandler::poll_missing`].
    fn request(_: MissingRange, _: &mut [u8]) -> Option<usize> {
        None
    }

    /// A message is a packet already.
    fn wrap(_: SessionId, _: SeqNo, message: &[u8], buffer: &mut [u8]) -> Option<usize> {
        buffer.get_mut(..message.len())?.copy_from_slice(message);
        Some(message.len())
    }

    fn restart(datagram: &[u8], last: Option<Restart>) -> Option<Restart> {
        let packet = openbook::parse_packet(datagram).ok()?;
        let resets = packet.kind() == openbook::SequenceNumberReset::KIND
            && packet.flag() == Some(openbook::RetransFlag::Original);
        let sent = u64::from(packet.header.send_time.get());
        let repeats = last.is_some_and(|last| last.sent.abs_diff(sent) <= SAME_RESTART_MS);
        (resets && !repeats).then_some(Restart { id: sent, sent })
    }

    fn precedes(datagram: &[u8], restart: Restart) -> bool {
        openbook::parse_packet(datagram).is_ok_and(|packet| {
            let before = restart.sent.saturating_sub(packet.header.send_time.get().into());
            (1..=OLD_PACKETS_MS).contains(&before)
        })
    }
}

nyse_protocol!(OpenBook, OpenBookConfig, OpenBookDecoder, OpenBookRefresh);

fn is_retransmission(datagram: &[u8]) -> bool {
    let flag = openbook::parse_packet(datagram).map(|packet| packet.flag());
    flag == Ok(Some(openbook::RetransFlag::Retransmitted))
}

/// What an [`OpenBookDecoder`] has to know.
#[derive(Clone, Debug)]
pub struct OpenBookConfig {
    /// NYSE or American.
    pub venue: Venue,
    /// Midnight in New York of the session's day, since the Unix epoch; 0 if the day is not known, and venue
    /// times then count from midnight.
    pub midnight: Nanos,
    /// The highest symbol index plus 1, default 2^17; 80 bytes each. A message beyond it is malformed.
    pub instruments_max: u32,
    /// What to let through; `None` (the default) is everything.
    pub symbols: Option<Vec<Symbol>>,
}

impl Default for OpenBookConfig {
    fn default() -> OpenBookConfig {
        OpenBookConfig {
            venue: Venue::Nyse,
            midnight: Nanos::ZERO,
            instruments_max: 1 << 17,
            symbols: None,
        }
    }
}

/// What is followed of an instrument.
#[derive(Clone, Copy, Default)]
struct Followed {
    /// The number of its last update, wanted or not; 0: none has come.
    seq: u32,
    /// That was a full update, whose next part may follow.
    is_full: bool,
    /// As last told; 0: not yet.
    trading_status: u8,
    quote_condition: u8,
}

/// What updates of both kinds say first.
#[derive(Clone, Copy)]
struct Head {
    index: U32,
    seq: U32,
    time: U32,
    micros: U16,
    scale: u8,
    trading_status: Char,
    quote_condition: Char,
}

/// A price point of either kind.
#[derive(Clone, Copy)]
struct Point {
    price: I32,
    volume: U32,
    orders: U16,
    side: Char,
}

/// The decoder. All memory is taken at construction: a directory entry and a number per instrument.
pub struct OpenBookDecoder {
    venue: Venue,
    midnight: Nanos,
    /// Numbers of joins are the instruments' own.
    filter: Filter,
    followed: Box<[Followed]>,
    /// The one whose refresh is being taken, and its number.
    taking: Option<(InstrumentId, u32)>,
}

impl OpenBookDecoder {
    /// A decoder with an empty directory.
    pub fn new(config: OpenBookConfig) -> OpenBookDecoder {
        let numbers = 0..config.instruments_max.clamp(1, INSTRUMENTS_MAX);
        let filter = Filter::new(config.venue, numbers, config.symbols.as_deref())
            .joining_singly()
            .counting_instruments();
        OpenBookDecoder {
            venue: config.venue,
            midnight: config.midnight,
            followed: vec![Followed::default(); filter.numbers_end()].into(),
            taking: None,
            filter,
        }
    }

    /// Updates of books: how many came, and how many nobody wanted.
    pub fn updates(&self) -> Seen {
        let [full, delta] =
            [FullHead::KIND, DeltaHead::KIND].map(|kind| self.filter.seen_of_type(kind.into()));
        Seen {
            seen: full.seen + delta.seen,
            filtered: full.filtered + delta.filtered,
        }
    }

    /// Enters an instrument, for the venue's symbol mapping file: an update by itself says only its number.
    /// `false` for a number beyond `instruments_max`.
    pub fn define(&mut self, index: u32, symbol: Symbol) -> bool {
        let entry = Instrument {
            id: InstrumentId(index),
            venue: self.venue,
            symbol,
            ..Instrument::default()
        };
        self.filter.enter(entry).is_some()
    }

    fn full<S: EventSink>(
        &mut self,
        context: Context,
        m: &FullUpdate<'_>,
        counters: &mut Counters,
        out: &mut Out<'_, S>,
    ) -> Result<(), Malformed> {
        let head = full_head(m);
        self.check(head)?;
        let event = self.about(context, head);
        let symbol = m
            .head
            .symbol
            .symbol()
            .ok_or(Malformed::OutOfRange { offset: 17 })?;
        if self
            .filter
            .instrument(event.instrument)
            .is_none_or(|i| i.symbol != symbol)
        {
            self.define(head.index.get(), symbol);
            if self.filter.has(event.instrument) {
                let kind = EventKind::Definition;
                out.push(MarketEvent { kind, ..event });
            }
        }
        let is_old = head.seq.get() < self.followed[event.instrument.index()].seq;
        let joins =
            !context.flags.has(EventFlags::SNAPSHOT) && self.filter.joins.has(event.instrument) && !is_old;
        if joins {
            self.filter.of_instrument(event.instrument).seen += 1;
            self.open(event.instrument);
        } else if !self.passes(FullHead::KIND, head, counters) {
            return Ok(());
        }
        let followed = self.followed[event.instrument.index()];
        let continues = followed.is_full && followed.seq == head.seq.get();
        let is_known = followed.seq >= head.seq.get() && !context.flags.has(EventFlags::SNAPSHOT) && !joins;
        if is_known && !continues {
            return Ok(());
        }
        self.status(event, head, out);
        if !continues {
            let kind = EventKind::Clear;
            out.push(MarketEvent { kind, ..event });
        }
        self.followed[event.instrument.index()].seq = head.seq.get();
        self.followed[event.instrument.index()].is_full = true;
        for p in m.points {
            level(event, head, full_point(p), counters, out);
        }
        if joins {
            let kind = EventKind::Recovered;
            out.push(MarketEvent { kind, ..event });
        }
        Ok(())
    }

    fn delta<S: EventSink>(
        &mut self,
        context: Context,
        m: &DeltaUpdate<'_>,
        counters: &mut Counters,
        out: &mut Out<'_, S>,
    ) -> Result<(), Malformed> {
        let head = delta_head(m);
        self.check(head)?;
        if !self.passes(DeltaHead::KIND, head, counters) {
            return Ok(());
        }
        self.tell(context, head, m, counters, out);
        Ok(())
    }

    /// Tells a delta update that is wanted.
    #[inline(always)]
    fn tell<S: EventSink>(
        &mut self,
        context: Context,
        head: Head,
        m: &DeltaUpdate<'_>,
        counters: &mut Counters,
        out: &mut Out<'_, S>,
    ) {
        let event = self.about(context, head);
        let followed = &mut self.followed[event.instrument.index()];
        let (last, seq) = (followed.seq, head.seq.get());
        if last >= seq {
            return;
        }
        (followed.seq, followed.is_full) = (seq, false);
        if last != 0 && seq - last > 1 {
            counters.bump(Counter::Gaps);
            out.push(gap(event));
        }
        self.status(event, head, out);
        for p in m.points {
            let point = Point {
                price: p.price_numerator,
                volume: p.volume,
                orders: p.num_orders,
                side: p.side,
            };
            level(event, head, point, counters, out);
        }
    }

    /// An event that holds what every event of an update has.
    #[inline(always)]
    fn about(&self, context: Context, head: Head) -> MarketEvent {
        let since_midnight =
            u64::from(head.time.get()) * Nanos::MILLI + u64::from(head.micros.get()) * Nanos::MICRO;
        MarketEvent {
            seq: context.seq,
            venue_ts: self.midnight.after(since_midnight),
            recv_ts: context.received,
            instrument: InstrumentId(head.index.get()),
            venue: self.venue,
            flags: context.flags,
            ..MarketEvent::default()
        }
    }

    /// Whether an update is about an instrument that there can be.
    #[inline(always)]
    fn check(&self, head: Head) -> Result<(), Malformed> {
        match InstrumentId(head.index.get()) {
            InstrumentId::WHOLE_FEED => Err(Malformed::OutOfRange { offset: 2 }),
            id if id.index() >= self.followed.len() => Err(Malformed::OutOfRange { offset: 2 }),
            _ => Ok(()),
        }
    }

    /// Whether an update passes. Of one that does not its number is kept, so that the next one wanted is
    /// known to follow.
    #[inline(always)]
    fn passes(&mut self, kind: u16, head: Head, counters: &mut Counters) -> bool {
        let id = InstrumentId(head.index.get());
        let passes = self.filter.has(id);
        self.filter.of_instrument(id).seen += 1;
        if !passes {
            self.filter.of_type(kind.into()).filtered += 1;
            self.filter.of_instrument(id).filtered += 1;
            counters.bump(Counter::MessagesFiltered);
            self.pass_over(id, head);
        }
        passes
    }

    #[inline(always)]
    fn pass_over(&mut self, id: InstrumentId, head: Head) {
        self.filter.set_closed(id, is_closed(head.trading_status));
        let followed = &mut self.followed[id.index()];
        (followed.seq, followed.is_full) = (followed.seq.max(head.seq.get()), false);
        if self.filter.joins.has(id) {
            self.filter.joins.miss(id, head.seq.get().into());
        }
    }

    /// A delta update of an instrument that joins: held until its refresh has come.
    #[cold]
    #[inline(never)]
    fn hold(&mut self, context: Context, bytes: &[u8], m: &DeltaUpdate<'_>) -> Result<(), Malformed> {
        let head = delta_head(m);
        self.check(head)?;
        let (id, seq) = (InstrumentId(head.index.get()), head.seq.get());
        self.filter.of_instrument(id).seen += 1;
        self.filter.set_closed(id, is_closed(head.trading_status));
        let last = core::mem::replace(&mut self.followed[id.index()].seq, seq);
        if last >= seq {
            self.followed[id.index()].seq = last;
            return Ok(());
        }
        if seq - last > 1 {
            self.filter.joins.miss(id, u64::from(seq) - 1);
        }
        let record = (id, SeqNo(seq.into()), context.received, context.seq.0);
        self.filter.joins.hold(record, bytes);
        Ok(())
    }

    /// Lets an instrument that joined pass.
    fn open(&mut self, id: InstrumentId) {
        self.taking = self.taking.filter(|(taking, _)| *taking != id);
        self.filter.open(id);
    }

    /// A full update of a refresh while the feed goes on: of an instrument that joins it is taken, unless it
    /// is too old.
    pub(crate) fn take<S: EventSink>(
        &mut self,
        now: Nanos,
        m: &FullUpdate<'_>,
        counters: &mut Counters,
        sink: &mut S,
    ) {
        let head = full_head(m);
        let (id, seq) = (InstrumentId(head.index.get()), head.seq.get());
        let continues = self.taking == Some((id, seq)) && self.filter.joins.has(id);
        if !continues && !self.filter.joins.is_met(id, seq.into()) {
            return;
        }
        let context = Context {
            seq: SeqNo(0),
            received: now,
            flags: EventFlags::SNAPSHOT,
        };
        let event = self.about(context, head);
        let mut out = Out::new(sink);
        if !continues {
            self.taking = Some((id, seq));
            for kind in [EventKind::Clear, EventKind::Gap] {
                out.push(MarketEvent { kind, ..event });
            }
            self.status(event, head, &mut out);
        }
        for p in m.points {
            level(event, head, full_point(p), counters, &mut out);
        }
        out.finish(false);
    }

    /// The refresh of the instrument being taken has come whole: tells what was held behind it, and whether
    /// it was one. Or it has not, and counts no more.
    pub(crate) fn taken<S: EventSink>(
        &mut self,
        is_whole: bool,
        now: Nanos,
        next: SeqNo,
        counters: &mut Counters,
        sink: &mut S,
    ) -> bool {
        let taken = self.taking.take();
        let Some((id, seq)) = taken.filter(|(id, _)| is_whole && self.filter.joins.has(*id)) else {
            return false;
        };
        let mut out = Out::new(sink);
        let last = self.followed[id.index()].seq.max(seq);
        (self.followed[id.index()].seq, self.followed[id.index()].is_full) = (seq, false);
        let held = self.filter.joins.take_held();
        for (record, bytes) in held.of(id, seq.into()) {
            let context = Context {
                seq: SeqNo(record.note),
                received: record.received,
                flags: EventFlags::NONE,
            };
            if let Ok(Message::DeltaUpdate(m)) = openbook::parse(DeltaHead::KIND, bytes) {
                self.tell(context, delta_head(&m), &m, counters, &mut out);
            }
        }
        self.filter.joins.give_back(held);
        self.followed[id.index()].seq = last;
        self.open(id);
        out.push(MarketEvent {
            seq: next,
            recv_ts: now,
            instrument: id,
            venue: self.venue,
            kind: EventKind::Recovered,
            ..MarketEvent::default()
        });
        out.finish(true);
        true
    }

    /// Tells the trading status if it is another than before.
    fn status<S: EventSink>(&mut self, event: MarketEvent, head: Head, out: &mut Out<'_, S>) {
        let followed = &mut self.followed[event.instrument.index()];
        let told = (head.trading_status.0, head.quote_condition.0);
        if (followed.trading_status, followed.quote_condition) == told {
            return;
        }
        (followed.trading_status, followed.quote_condition) = told;
        self.filter
            .set_closed(event.instrument, is_closed(head.trading_status));
        let mut code = [0; 8];
        (code[0], code[1]) = told;
        out.push(MarketEvent {
            kind: EventKind::Status,
            status: trading_status(head.trading_status),
            code,
            ..event
        });
    }
}

impl NyseDecoder for OpenBookDecoder {
    fn begin_refresh(&mut self) {
        self.followed.fill(Followed::default());
    }
}

impl Prefiltered for OpenBookDecoder {}

impl Decoder for OpenBookDecoder {
    const BUSY_TYPES: Range<usize> = FullHead::KIND as usize..DeltaHead::KIND as usize + 1;

    fn filter(&self) -> &Filter {
        &self.filter
    }

    fn filter_mut(&mut self) -> &mut Filter {
        &mut self.filter
    }

    #[inline]
    fn decode<S: EventSink>(
        &mut self,
        context: Context,
        message: &[u8],
        counters: &mut Counters,
        sink: &mut S,
    ) {
        // The framing has checked the packet.
        let Some((kind, messages)) = openbook::messages(message) else {
            return crate::decoder::count_bad_value(counters);
        };
        let mut out = Out::new(sink);
        let own = Context {
            flags: EventFlags(context.flags.0 & !EventFlags::LAST.0),
            ..context
        };
        for bytes in messages {
            self.filter.of_type(kind.into()).seen += 1;
            out.read(MessageType(kind));
            let done = match openbook::parse(kind, bytes) {
                Ok(Message::DeltaUpdate(m))
                    if self.filter.joins.has(InstrumentId(m.head.symbol_index.get())) =>
                {
                    self.hold(own, bytes, &m)
                }
                Ok(Message::DeltaUpdate(m)) => self.delta(own, &m, counters, &mut out),
                Ok(Message::FullUpdate(m)) => self.full(own, &m, counters, &mut out),
                Ok(Message::SymbolIndexMapping(m)) => {
                    let index = m.symbol_index.get();
                    match m.symbol.symbol() {
                        Some(symbol) if index > 0 && self.define(index, symbol) => Ok(()),
                        _ => Err(Malformed::OutOfRange { offset: 0 }),
                    }
                }
                Ok(_) => Ok(()),
                Err(malformed) => {
                    self.refuse(own, bytes, &mut out);
                    Err(malformed)
                }
            };
            if let Err(malformed) = done {
                crate::decoder::count_malformed(counters, &malformed);
            }
        }
        out.finish(true);
    }

    fn on_stream(&mut self, event: StreamEvent) {
        match event {
            StreamEvent::Restarted => {
                self.taking = None;
                self.filter.forget();
                self.followed.fill(Followed::default());
            }
            StreamEvent::SnapshotBegins => {
                self.taking = None;
                self.filter.open_all();
            }
            StreamEvent::SnapshotEnded(_) => self
                .filter
                .joins
                .go_on_at(|id| u64::from(self.followed[id.index()].seq) + 1),
            _ => {}
        }
    }

    /// Every instrument's trading status says that it is closed.
    fn has_ended(&self) -> bool {
        self.filter.is_closed()
    }

    fn fetch(&self, id: InstrumentId) {
        black_box(self.followed.get(id.index()).map(|followed| followed.seq));
    }

    fn join(&mut self, id: InstrumentId, _: SeqNo) -> bool {
        self.taking = self.taking.filter(|(taking, _)| *taking != id);
        let followed = &mut self.followed[id.index()];
        (followed.trading_status, followed.quote_condition) = (0, 0);
        let next = SeqNo(u64::from(followed.seq) + 1);
        self.filter.join(id, next);
        true
    }
}

impl OpenBookDecoder {
    /// An update that cannot be read: its instrument's book is stale.
    #[cold]
    fn refuse<S: EventSink>(&self, context: Context, bytes: &[u8], out: &mut Out<'_, S>) {
        let Some(index) = bytes.get(2..6).and_then(|b| b.first_chunk::<4>()) else {
            return;
        };
        let id = InstrumentId(u32::from_be_bytes(*index));
        if id != InstrumentId::WHOLE_FEED && self.filter.has(id) {
            out.push(gap(MarketEvent {
                seq: context.seq,
                recv_ts: context.received,
                instrument: id,
                venue: self.venue,
                flags: context.flags,
                ..MarketEvent::default()
            }));
        }
    }
}

fn full_head(m: &FullUpdate<'_>) -> Head {
    Head {
        index: m.head.symbol_index,
        seq: m.head.symbol_seq_num,
        time: m.head.source_time,
        micros: m.head.source_time_micros,
        scale: m.head.price_scale_code,
        trading_status: m.head.trading_status,
        quote_condition: m.head.quote_condition,
    }
}

#[inline(always)]
fn delta_head(m: &DeltaUpdate<'_>) -> Head {
    Head {
        index: m.head.symbol_index,
        seq: m.head.source_seq_num,
        time: m.head.source_time,
        micros: m.head.source_time_micros,
        scale: m.head.price_scale_code,
        trading_status: m.head.trading_status,
        quote_condition: m.head.quote_condition,
    }
}

fn full_point(p: &FullPoint) -> Point {
    Point {
        price: p.price_numerator,
        volume: p.volume,
        orders: p.num_orders,
        side: p.side,
    }
}

/// Tells a price's volume, or that it cannot be known.
#[inline(always)]
fn level<S: EventSink>(
    event: MarketEvent,
    head: Head,
    point: Point,
    counters: &mut Counters,
    out: &mut Out<'_, S>,
) {
    let (Some(side), Some(price)) = (side(point.side), openbook::price(point.price, head.scale)) else {
        crate::decoder::count_bad_value(counters);
        return out.push(gap(event));
    };
    out.push(MarketEvent {
        kind: EventKind::Level,
        side,
        price,
        qty: Volume(point.volume.get().into()),
        order_count: point.orders.get().into(),
        ..event
    });
}

#[cold]
fn gap(event: MarketEvent) -> MarketEvent {
    MarketEvent {
        kind: EventKind::Gap,
        ref_id: event.seq.next().0,
        ..event
    }
}

/// Closed for the day, in either way of printing it.
fn is_closed(field: Char) -> bool {
    matches!(field.0, b'X' | b'C')
}

fn trading_status(field: Char) -> TradingStatus {
    match TradingStatusCode::from_wire(field.0) {
        Some(TradingStatusCode::PreOpen | TradingStatusCode::BeginAccepting) => TradingStatus::PreOpen,
        Some(TradingStatusCode::Early | TradingStatusCode::Open | TradingStatusCode::Late) => {
            TradingStatus::Trading
        }
        Some(TradingStatusCode::Closed | TradingStatusCode::ClosedOld) => TradingStatus::Closed,
        Some(TradingStatusCode::Halted | TradingStatusCode::Suspended) => TradingStatus::Halted,
        None => TradingStatus::Unknown,
    }
}
