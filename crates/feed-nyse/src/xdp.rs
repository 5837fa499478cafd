//! NYSE Integrated Feed (XDP on Pillar, Integrated Feed 2.5.g, Common Client 2.4.p) to [`MarketEvent`]s;
//! NYSE, Arca, American, National, Texas.
//!
//! A message enters as bytes. Its type and symbol index, in its first 16 bytes, decide whether anyone wants
//! it; only then is it read further. The symbol index is the instrument's number. What comes out:
//!
//! | message | event |
//! |---|---|
//! | 100 101 102 103 104 | `Add` `Modify` `Delete` `Execute` `Replace` |
//! | 106 | `Add`, in a refresh |
//! | 110 111 112 | `Trade` `Trade` `TradeBreak` |
//! | 140 | `Quote`, on the BBO feeds, which share this envelope |
//! | 105 | `Imbalance`: near is continuous book clearing, far auction interest clearing |
//! | 3 | `Definition`, and the directory; in a refresh `Clear` of the instrument before |
//! | 34 | `Status`, `code` = security status and halt condition; `X` also `Clear` of the instrument: no deletions follow. None for short sale restriction and indications |
//! | 32 | `Clear` of the instrument |
//! | any of the first two rows and 32, 34 that cannot be read | `Gap` of the instrument: its book may be wrong |
//! | 1 2 31 35 113 114 223 and requests | none |
//!
//! Prices need the instrument's scale, which message 3 tells: an order of an instrument without one cannot be
//! read. Nanoseconds count from the second of the last message 2; before the first one venue times are 0.

mod offers;
mod refresh;

pub use refresh::XdpRefresh;

use crate::decoder::{Context, Decoder, Early, Prefiltered, StreamEvent};
use crate::framing::{Content, Frame, Framing, Restart};
use crate::nyse::{INSTRUMENTS_MAX, NyseChannel, NyseDecoder, nyse_protocol};
use crate::{FeedHandler, Filter, MissingRange, Seen, SessionId};
use alloc::{boxed::Box, vec, vec::Vec};
use core::ops::Range;
use tickwire_market::{
    Counter, Counters, DynSink, EventFlags, EventKind, EventSink, Instrument, InstrumentId, MarketEvent,
    MessageType, Nanos, OrderId, Price, Qty, SeqNo, Side, Symbol, TradingStatus, Upcoming, Venue, Volume,
};
use tickwire_wire_core::Malformed;
use tickwire_wire_core::layout::le::{I32, U32};
use tickwire_wire_core::layout::{Char, prefix};
use tickwire_wire_nyse::xdp::{self, DeliveryFlag, Status};

/// A channel of an integrated feed.
pub type XdpFeed = FeedHandler<Xdp, XdpDecoder>;

/// A channel of an integrated feed with its recovery.
pub type XdpChannel = NyseChannel<Xdp>;

/// Packets of XDP: numbered by message, per channel.
#[derive(Clone, Copy, Debug)]
pub enum Xdp {}

impl Framing for Xdp {
    type Messages<'a> = xdp::Messages<'a>;

    const HEADER: usize = xdp::PacketHeader::SIZE;

    #[inline]
    fn parse(datagram: &[u8]) -> Result<Frame<xdp::Messages<'_>>, Malformed> {
        let packet = xdp::parse_packet(datagram)?;
        let count = u32::from(packet.header.number_msgs);
        // What says that messages are unavailable has no number of its own.
        let unavailable = packet.header.delivery_flag == DeliveryFlag::Unavailable as u8;
        Ok(Frame {
            session: SessionId::NONE,
            first: if unavailable { SeqNo(0) } else { packet.seq() },
            trailing: packet.trailing,
            content: if count == 0 || unavailable {
                Content::Heartbeat
            } else {
                Content::Messages {
                    count,
                    messages: packet.messages,
                }
            },
        })
    }

    /// Messages are asked for over a connection: [`FeedHandler::poll_missing`].
    fn request(_: MissingRange, _: &mut [u8]) -> Option<usize> {
        None
    }

    fn wrap(_: SessionId, seq: SeqNo, message: &[u8], buffer: &mut [u8]) -> Option<usize> {
        if buffer.len() < xdp::PacketHeader::SIZE {
            return None;
        }
        let seq = u32::try_from(seq.0).ok()?;
        let mut packet = xdp::PacketBuilder::new(buffer, DeliveryFlag::Retransmission, seq, Nanos::ZERO);
        packet.push(message).then(|| packet.finish())
    }

    /// A sequence number reset that is not retransmitted; its source time is the same on both lines.
    fn restart(datagram: &[u8], last: Option<Restart>) -> Option<Restart> {
        let packet = xdp::parse_packet(datagram).ok()?;
        match packet.flag()? {
            DeliveryFlag::Original | DeliveryFlag::SequenceReset | DeliveryFlag::Failover => {}
            _ => return None,
        }
        let xdp::Message::SequenceNumberReset(m) = xdp::parse(packet.messages.clone().next()?).ok()? else {
            return None;
        };
        let id = xdp::time(m.source_time, m.source_time_ns).0;
        let sent = packet.sent().0;
        (last.map(|restart| restart.id) != Some(id)).then_some(Restart { id, sent })
    }

    fn precedes(datagram: &[u8], restart: Restart) -> bool {
        xdp::parse_packet(datagram).is_ok_and(|packet| packet.sent().0 < restart.sent)
    }
}

nyse_protocol!(Xdp, XdpConfig, XdpDecoder, XdpRefresh);

fn is_retransmission(datagram: &[u8]) -> bool {
    let flag = xdp::parse_packet(datagram).ok().and_then(|packet| packet.flag());
    matches!(
        flag,
        Some(DeliveryFlag::Retransmission | DeliveryFlag::RetransmissionPart)
    )
}

/// What an [`XdpDecoder`] has to know.
#[derive(Clone, Debug)]
pub struct XdpConfig {
    /// NYSE, Arca, American, National or Texas.
    pub venue: Venue,
    /// The highest symbol index plus 1, default 2^17; 104 bytes each. A message beyond it is malformed.
    pub instruments_max: u32,
    /// What to let through; `None` (the default) is everything.
    pub symbols: Option<Vec<Symbol>>,
}

impl Default for XdpConfig {
    fn default() -> XdpConfig {
        XdpConfig {
            venue: Venue::Nyse,
            instruments_max: 1 << 17,
            symbols: None,
        }
    }
}

/// What an instrument's messages are read with, and how many there were: half a cache line.
#[derive(Clone, Copy, Default)]
#[repr(align(32))]
struct Row {
    /// Raw price units of one unit on the wire; 0: not known.
    unit: i64,
    /// The last message whose effect its refresh holds; 0: none.
    covered: u64,
    seen: Seen,
}

/// The decoder. All memory is taken at construction: a directory entry, a scale and a counter per instrument.
pub struct XdpDecoder {
    venue: Venue,
    filter: Filter,
    rows: Box<[Row]>,
    /// The last message that any refresh holds.
    covered: u64,
    /// The second that nanoseconds count from.
    second: Option<Nanos>,
    /// The refresh being taken holds everything up to this message.
    refresh: Option<u64>,
    /// The one whose refresh is being taken.
    taking: Option<InstrumentId>,
}

impl XdpDecoder {
    /// A decoder with an empty directory.
    pub fn new(config: XdpConfig) -> XdpDecoder {
        let numbers = 0..config.instruments_max.clamp(1, INSTRUMENTS_MAX);
        let filter = Filter::new(config.venue, numbers, config.symbols.as_deref()).joining_singly();
        XdpDecoder {
            venue: config.venue,
            rows: vec![Row::default(); filter.numbers_end()].into(),
            filter,
            covered: 0,
            second: None,
            refresh: None,
            taking: None,
        }
    }

    /// Enters an instrument, as its message does: for the venue's symbol mapping file, where a feed starts in
    /// mid-session without a refresh. An error changes nothing.
    pub fn define(&mut self, m: &xdp::SymbolIndexMapping) -> Result<InstrumentId, Malformed> {
        let symbol = m.symbol.symbol().ok_or(Malformed::OutOfRange { offset: 8 })?;
        let unit = unit(m.price_scale_code).ok_or(Malformed::BadValue {
            offset: 24,
            value: m.price_scale_code,
        })?;
        let id = InstrumentId(m.symbol_index.get());
        let entry = Instrument {
            id,
            venue: self.venue,
            symbol,
            lot: Qty(m.lot_size.get().into()),
            ..Instrument::default()
        };
        match self.rows.get_mut(id.index()) {
            Some(row) if self.filter.enter(entry).is_some() => row.unit = unit,
            _ => return Err(Malformed::OutOfRange { offset: 4 }),
        }
        Ok(id)
    }

    /// The oldest of the messages up to which the wanted instruments' refreshes go; with none wanted the
    /// latest of all.
    pub(crate) fn refreshed_up_to(&self) -> SeqNo {
        let wanted = self.filter.wanted();
        let oldest = wanted.map(|i| self.rows[i.id.index()].covered).min();
        SeqNo(oldest.unwrap_or(self.covered))
    }

    /// The time of a message that carries nanoseconds only.
    #[inline(always)]
    fn time(&self, nanoseconds: U32) -> Nanos {
        match self.second {
            Some(second) => second.after(nanoseconds.get().into()),
            None => Nanos::ZERO,
        }
    }

    /// Writes what a message says over an event that holds what every message has; `unit` is the
    /// instrument's. `false` if it says nothing.
    #[inline(always)]
    fn fill(
        &mut self,
        event: &mut MarketEvent,
        kind: u16,
        bytes: &[u8],
        unit: i64,
    ) -> Result<bool, Malformed> {
        match kind {
            xdp::AddOrder::KIND => self.add(event, prefix(bytes)?.0, unit)?,
            xdp::DeleteOrder::KIND => self.delete(event, prefix(bytes)?.0),
            xdp::ReplaceOrder::KIND => self.replace(event, prefix(bytes)?.0, unit)?,
            xdp::ModifyOrder::KIND => self.modify(event, prefix(bytes)?.0, unit)?,
            xdp::OrderExecution::KIND => self.executed(event, prefix(bytes)?.0, unit)?,
            xdp::AddOrderRefresh::KIND => self.add_refresh(event, prefix(bytes)?.0, unit)?,
            _ => return self.fill_rare(event, kind, bytes, unit),
        }
        Ok(true)
    }

    /// [`XdpDecoder::fill`] for types that are few in a day.
    #[inline(never)]
    fn fill_rare(
        &mut self,
        event: &mut MarketEvent,
        kind: u16,
        bytes: &[u8],
        unit: i64,
    ) -> Result<bool, Malformed> {
        match xdp::parse(bytes)? {
            xdp::Message::NonDisplayedTrade(m) => self.trade(event, m, unit)?,
            xdp::Message::CrossTrade(m) => self.cross(event, m, unit)?,
            xdp::Message::TradeCancel(m) => self.cancelled(event, m),
            xdp::Message::Imbalance(_) | xdp::Message::ImbalanceXdp21(_) => {
                self.imbalance(event, prefix(bytes)?.0, unit)?
            }
            xdp::Message::Quote(m) => self.quote(event, m, unit)?,
            xdp::Message::SecurityStatus(m) => {
                self.note_close(bytes);
                return status(event, m);
            }
            xdp::Message::SymbolClear(m) => cleared(event, m),
            xdp::Message::SymbolIndexMapping(m) => return self.defined(event, m),
            xdp::Message::SourceTimeReference(m) => {
                self.second = Some(xdp::time(m.source_time, U32::ZERO));
                return Ok(false);
            }
            xdp::Message::RefreshHeader(m) if event.flags.has(EventFlags::SNAPSHOT) => {
                self.refresh = Some(m.last_seq_num.get().into());
                return Ok(false);
            }
            _ => {
                debug_assert!(!is_of_book(kind));
                return Ok(false);
            }
        }
        Ok(true)
    }

    #[inline(always)]
    fn add(&self, event: &mut MarketEvent, m: &xdp::AddOrder, unit: i64) -> Result<(), Malformed> {
        event.kind = EventKind::Add;
        event.venue_ts = self.time(m.source_time_ns);
        event.order_id = OrderId(m.order_id.get());
        event.side = side_at(32, m.side)?;
        event.qty = Volume(m.volume.get().into());
        event.price = price(unit, m.price)?;
        event.code = code(m.firm_id.trimmed());
        Ok(())
    }

    #[inline(always)]
    fn add_refresh(
        &self,
        event: &mut MarketEvent,
        m: &xdp::AddOrderRefresh,
        unit: i64,
    ) -> Result<(), Malformed> {
        event.kind = EventKind::Add;
        event.venue_ts = xdp::time(m.source_time, m.source_time_ns);
        event.order_id = OrderId(m.order_id.get());
        event.side = side_at(36, m.side)?;
        event.qty = Volume(m.volume.get().into());
        event.price = price(unit, m.price)?;
        event.code = code(m.firm_id.trimmed());
        Ok(())
    }

    /// An order's place is kept only where the message says so; a book moves it anyway when its price
    /// changed.
    #[inline(always)]
    fn modify(&self, event: &mut MarketEvent, m: &xdp::ModifyOrder, unit: i64) -> Result<(), Malformed> {
        event.kind = EventKind::Modify;
        event.venue_ts = self.time(m.source_time_ns);
        event.order_id = OrderId(m.order_id.get());
        event.qty = Volume(m.volume.get().into());
        event.price = price(unit, m.price)?;
        match xdp::side(m.side) {
            Some(side) => event.side = side,
            None => event.flags = event.flags.with(EventFlags::NO_SIDE),
        }
        if m.position_change == 0 {
            event.flags = event.flags.with(EventFlags::KEEPS_PRIORITY);
        }
        Ok(())
    }

    #[inline(always)]
    fn delete(&self, event: &mut MarketEvent, m: &xdp::DeleteOrder) {
        event.kind = EventKind::Delete;
        event.venue_ts = self.time(m.source_time_ns);
        event.order_id = OrderId(m.order_id.get());
    }

    /// The side is that of the order replaced: some senders leave the field 0.
    #[inline(always)]
    fn replace(&self, event: &mut MarketEvent, m: &xdp::ReplaceOrder, unit: i64) -> Result<(), Malformed> {
        event.kind = EventKind::Replace;
        event.venue_ts = self.time(m.source_time_ns);
        event.order_id = OrderId(m.order_id.get());
        event.ref_id = m.new_order_id.get();
        event.qty = Volume(m.volume.get().into());
        event.price = price(unit, m.price)?;
        Ok(())
    }

    /// The price is the execution's, which need not be the order's.
    #[inline(always)]
    fn executed(&self, event: &mut MarketEvent, m: &xdp::OrderExecution, unit: i64) -> Result<(), Malformed> {
        event.kind = EventKind::Execute;
        event.venue_ts = self.time(m.source_time_ns);
        event.order_id = OrderId(m.order_id.get());
        event.qty = Volume(m.volume.get().into());
        event.price = price(unit, m.price)?;
        event.ref_id = m.trade_id.get().into();
        event.code = conditions(&[m.trade_cond1.0, m.trade_cond2.0, m.trade_cond3.0, m.trade_cond4.0]);
        event.flags = event
            .flags
            .with(EventFlags::AT_OTHER_PRICE)
            .with(printable(m.printable_flag));
        Ok(())
    }

    fn trade(&self, event: &mut MarketEvent, m: &xdp::NonDisplayedTrade, unit: i64) -> Result<(), Malformed> {
        event.kind = EventKind::Trade;
        event.venue_ts = self.time(m.source_time_ns);
        event.qty = Volume(m.volume.get().into());
        event.price = price(unit, m.price)?;
        event.ref_id = m.trade_id.get().into();
        event.code = conditions(&[m.trade_cond1.0, m.trade_cond2.0, m.trade_cond3.0, m.trade_cond4.0]);
        event.flags = event
            .flags
            .with(EventFlags::NO_SIDE)
            .with(printable(m.printable_flag));
        Ok(())
    }

    fn cross(&self, event: &mut MarketEvent, m: &xdp::CrossTrade, unit: i64) -> Result<(), Malformed> {
        event.kind = EventKind::Trade;
        event.venue_ts = self.time(m.source_time_ns);
        event.qty = Volume(m.volume.get().into());
        event.price = price(unit, m.price)?;
        event.ref_id = m.cross_id.get().into();
        event.code = code(&[m.cross_type.0]);
        event.flags = event.flags.with(EventFlags::NO_SIDE);
        Ok(())
    }

    fn cancelled(&self, event: &mut MarketEvent, m: &xdp::TradeCancel) {
        event.kind = EventKind::TradeBreak;
        event.venue_ts = self.time(m.source_time_ns);
        event.ref_id = m.trade_id.get().into();
    }

    fn imbalance(
        &self,
        event: &mut MarketEvent,
        m: &xdp::ImbalanceXdp21,
        unit: i64,
    ) -> Result<(), Malformed> {
        event.kind = EventKind::Imbalance;
        event.venue_ts = xdp::time(m.source_time, m.source_time_ns);
        event.qty = Volume(m.paired_qty.get().into());
        event.imbalance_qty = Volume(m.total_imbalance_qty.get().into());
        event.price = price(unit, m.reference_price)?;
        event.near_price = price(unit, m.continuous_book_clearing)?;
        event.far_price = price(unit, m.auction_interest_clearing)?;
        event.code = code(&[m.auction_type.0]);
        match xdp::side(m.imbalance_side) {
            Some(side) => event.side = side,
            None => event.flags = event.flags.with(EventFlags::NO_SIDE),
        }
        Ok(())
    }

    /// Takes note of whether an instrument is closed; statuses that are about something else say nothing of
    /// it.
    #[cold]
    #[inline(never)]
    fn note_close(&mut self, bytes: &[u8]) {
        let Ok((m, _)) = prefix::<xdp::SecurityStatus>(bytes) else {
            return;
        };
        let id = InstrumentId(m.symbol_index.get());
        match Status::from_wire(m.security_status.0) {
            Some(Status::Closed) => self.filter.set_closed(id, true),
            Some(Status::PreOpen | Status::BeginAccepting | Status::Early | Status::Core | Status::Late) => {
                self.filter.set_closed(id, false)
            }
            _ => {}
        }
    }

    fn quote(&self, event: &mut MarketEvent, m: &xdp::Quote, unit: i64) -> Result<(), Malformed> {
        event.kind = EventKind::Quote;
        event.venue_ts = self.time(m.source_time_ns);
        event.price = price(unit, m.bid_price)?;
        event.qty = Volume(m.bid_volume.get().into());
        event.ask_price = price(unit, m.ask_price)?;
        event.ask_qty = Volume(m.ask_volume.get().into());
        Ok(())
    }

    /// In a refresh what follows replaces the instrument's book.
    fn defined(&mut self, event: &mut MarketEvent, m: &xdp::SymbolIndexMapping) -> Result<bool, Malformed> {
        let id = self.define(m)?;
        event.kind = EventKind::Definition;
        if let (true, Some(covered)) = (event.flags.has(EventFlags::SNAPSHOT), self.refresh.take()) {
            self.rows[id.index()].covered = covered;
            self.covered = self.covered.max(covered);
            event.flags = event.flags.with(BEGINS_REFRESH);
        }
        Ok(self.filter.has(id) || self.taking == Some(id))
    }

    /// A message of an instrument that does not pass. One that joins is held if a refresh may hold it, and
    /// told if not; what empties the book makes it right.
    #[cold]
    #[inline(never)]
    fn shut(
        &mut self,
        context: Context,
        id: InstrumentId,
        kind: u16,
        message: &[u8],
        counters: &mut Counters,
        sink: &mut DynSink<'_>,
    ) {
        if context.flags.has(EventFlags::SNAPSHOT) {
            if self.taking == Some(id) {
                self.tell(context, id, kind, message, counters, sink);
            }
            return;
        }
        if kind == xdp::SecurityStatus::KIND {
            self.note_close(message);
        }
        if !is_refreshed(kind) {
            return self.tell(context, id, kind, message, counters, sink);
        }
        if !empties(message) {
            let second = self.second.map_or(0, |second| second.0);
            return self
                .filter
                .joins
                .hold((id, context.seq, context.received, second), message);
        }
        self.open(id);
        let flags = EventFlags(context.flags.0 & !EventFlags::LAST.0);
        self.tell(Context { flags, ..context }, id, kind, message, counters, sink);
        self.recovered(context, id, sink);
    }

    /// Lets an instrument that joined pass.
    fn open(&mut self, id: InstrumentId) {
        self.filter.open(id);
    }

    fn recovered<S: EventSink>(&self, context: Context, id: InstrumentId, sink: &mut S) {
        sink.on_event(&MarketEvent {
            seq: context.seq,
            recv_ts: context.received,
            instrument: id,
            venue: self.venue,
            kind: EventKind::Recovered,
            flags: context.flags,
            ..MarketEvent::default()
        });
    }

    /// Whether a refresh of this instrument, which holds everything up to `last`, makes its book right. If so
    /// it follows.
    pub(crate) fn take(&mut self, id: InstrumentId, last: u32) -> bool {
        let takes = self.filter.joins.is_met(id, last.into());
        self.taking = takes.then_some(id);
        self.refresh = takes.then_some(last.into());
        takes
    }

    /// The refresh of the instrument being taken has come whole: tells what was held behind it. Or it has
    /// not, and counts no more.
    pub(crate) fn taken<S: EventSink>(
        &mut self,
        is_whole: bool,
        now: Nanos,
        next: SeqNo,
        counters: &mut Counters,
        sink: &mut S,
    ) {
        self.refresh = None;
        let Some(id) = self
            .taking
            .take()
            .filter(|id| is_whole && self.filter.joins.has(*id))
        else {
            return;
        };
        let (covered, second) = (self.rows[id.index()].covered, self.second);
        let held = self.filter.joins.take_held();
        for (record, message) in held.of(id, covered) {
            let context = Context {
                seq: record.seq,
                received: record.received,
                flags: EventFlags::NONE,
            };
            self.second = Some(Nanos(record.note)).filter(|second| *second > Nanos::ZERO);
            let kind = xdp::message_type(message).unwrap_or(0);
            self.tell(context, id, kind, message, counters, sink);
        }
        self.filter.joins.give_back(held);
        self.second = second;
        self.open(id);
        let context = Context {
            seq: next,
            received: now,
            flags: EventFlags::LAST,
        };
        self.recovered(context, id, sink);
    }
}

impl NyseDecoder for XdpDecoder {
    fn begin_refresh(&mut self) {
        self.rows.iter_mut().for_each(|row| row.covered = 0);
        (self.covered, self.refresh) = (0, None);
    }
}

impl Prefiltered for XdpDecoder {}

impl Decoder for XdpDecoder {
    fn price_unit(&self, id: InstrumentId) -> Option<Price> {
        let unit = self.rows.get(id.index())?.unit;
        (unit > 0).then(|| Price::from_raw(unit))
    }

    fn filter(&self) -> &Filter {
        &self.filter
    }

    fn filter_mut(&mut self) -> &mut Filter {
        &mut self.filter
    }

    #[inline(always)]
    fn decode<S: EventSink>(
        &mut self,
        context: Context,
        message: &[u8],
        counters: &mut Counters,
        sink: &mut S,
    ) {
        let (kind, id) = match (xdp::head(message), xdp::message_type(message)) {
            (Some((kind, index)), _) => (kind, InstrumentId(index)),
            (None, Some(kind)) => (kind, InstrumentId(xdp::symbol_index(message).unwrap_or(0))),
            (None, None) => return crate::decoder::count_bad_value(counters),
        };
        self.filter.of_type(kind.into()).seen += 1;
        if id == InstrumentId::WHOLE_FEED && is_of_instrument(kind) {
            return crate::decoder::count_bad_value(counters);
        }
        let Some(row) = self.rows.get_mut(id.index()) else {
            return crate::decoder::count_bad_value(counters);
        };
        row.seen.seen += 1;
        if !self.filter.has(id) && kind != xdp::SymbolIndexMapping::KIND {
            if self.filter.joins.has(id) {
                return self.shut(context, id, kind, message, counters, &mut DynSink(sink));
            }
            row.seen.filtered += 1;
            self.filter.of_type(kind.into()).filtered += 1;
            counters.bump(Counter::MessagesFiltered);
            if kind == xdp::SecurityStatus::KIND {
                self.note_close(message);
            }
            return;
        }
        self.tell(context, id, kind, message, counters, sink);
    }

    #[inline(always)]
    fn early(&mut self, message: &[u8]) -> Early {
        let (kind, id) = match xdp::head(message) {
            Some((kind, index)) if index > 0 => (kind, InstrumentId(index)),
            _ => return Early::Kept,
        };
        match kind {
            xdp::SymbolIndexMapping::KIND => return Early::Changes,
            // The close of an instrument is kept, wanted or not.
            xdp::SecurityStatus::KIND => return Early::Kept,
            _ if self.filter.has(id) || self.filter.joins.has(id) => return Early::Kept,
            _ => {}
        }
        let Some(row) = self.rows.get_mut(id.index()) else {
            return Early::Kept;
        };
        row.seen.drop_one();
        self.filter.of_type(kind.into()).drop_one();
        Early::Dropped
    }

    #[inline(always)]
    fn preview<S: EventSink>(&self, message: &[u8], sink: &mut S) -> bool {
        let (kind, id) = match xdp::head(message) {
            Some((kind, index)) if index > 0 => (kind, InstrumentId(index)),
            _ => return false,
        };
        if !self.filter.has(id) {
            return self.filter.joins.has(id)
                && (empties(message) || !is_refreshed(kind) && may_yield(message));
        }
        match order_ahead(message, kind, id) {
            Some(mut next) => {
                if kind == xdp::AddOrder::KIND
                    && let Ok((add, _)) = prefix::<xdp::AddOrder>(message)
                    && let (Some(unit), Some(side)) = (self.price_unit(id), xdp::side(add.side))
                    && let Ok(price) = price(unit.raw(), add.price)
                {
                    (next.says_where, next.side, next.price) = (true, side, price);
                }
                sink.upcoming(next);
                true
            }
            // One that cannot be read says that its book is stale.
            None if matches!(kind, 100..=104 | 106) => true,
            None => may_yield(message),
        }
    }

    /// Orders, executions and trades.
    const BUSY_TYPES: Range<usize> = 100..107;

    #[inline(always)]
    fn announce<S: EventSink>(&self, message: &[u8], sink: &mut S) {
        if let Some((kind, index)) = xdp::head(message)
            && let id = InstrumentId(index)
            && self.filter.has(id)
            && let Some(next) = order_ahead(message, kind, id)
        {
            sink.arriving(next);
        }
    }

    fn on_stream(&mut self, event: StreamEvent) {
        match event {
            StreamEvent::Restarted => {
                self.taking = None;
                self.filter.forget();
                for row in &mut self.rows {
                    (row.unit, row.covered) = (0, 0);
                }
                (self.covered, self.refresh) = (0, None);
            }
            StreamEvent::SnapshotBegins => {
                self.taking = None;
                self.filter.open_all();
            }
            StreamEvent::SnapshotEnded(next) => self.filter.go_on_at(next),
            _ => {}
        }
    }

    /// Integrated Feed 2.5.g, "Security Status": at the final close every instrument gets status `X`; nothing
    /// follows.
    fn has_ended(&self) -> bool {
        self.filter.is_closed()
    }

    fn join(&mut self, id: InstrumentId, next: SeqNo) -> bool {
        self.taking = self.taking.filter(|taking| *taking != id);
        self.filter.join(id, next);
        true
    }

    fn seen_of_instrument(&self, id: InstrumentId) -> Seen {
        self.rows.get(id.index()).map(|row| row.seen).unwrap_or_default()
    }
}

impl XdpDecoder {
    /// Decodes a message that is wanted and pushes what it says.
    #[inline(always)]
    fn tell<S: EventSink>(
        &mut self,
        context: Context,
        id: InstrumentId,
        kind: u16,
        message: &[u8],
        counters: &mut Counters,
        sink: &mut S,
    ) {
        let Some(row) = self.rows.get(id.index()) else {
            return;
        };
        let is_snapshot = context.flags.has(EventFlags::SNAPSHOT);
        // The refresh of this instrument was made after this message.
        if context.seq.0 <= row.covered && !is_snapshot && is_refreshed(kind) {
            return;
        }
        let unit = row.unit;
        let mut event = MarketEvent {
            seq: context.seq,
            recv_ts: context.received,
            instrument: id,
            venue: self.venue,
            flags: context.flags,
            ..MarketEvent::default()
        };
        match self.fill(&mut event, kind, message, unit) {
            Ok(true) => {}
            Ok(false) => return,
            Err(malformed) => {
                if !refused(&mut event, kind, malformed, counters) {
                    return;
                }
            }
        }
        sink.on_message(MessageType(kind));
        if matches!(event.kind, EventKind::Status | EventKind::Definition) {
            return rare(event, self.taking.is_some(), sink);
        }
        sink.on_event(&event);
    }
}

/// The order that a message of this instrument is about.
#[inline(always)]
fn order_ahead(message: &[u8], kind: u16, id: InstrumentId) -> Option<Upcoming> {
    let order = xdp::order_id(message).filter(|_| matches!(kind, 100..=104))?;
    Some(Upcoming::resting(id, OrderId(order)))
}

/// Whether a message without an order yields an event.
fn may_yield(message: &[u8]) -> bool {
    match xdp::message_type(message) {
        Some(xdp::SecurityStatus::KIND) => {
            let status = prefix::<xdp::SecurityStatus>(message).map(|(m, _)| m.security_status.0);
            status.is_ok_and(|s| matches!(s, b'4' | b'5' | b'6' | b'P' | b'B' | b'E' | b'O' | b'L' | b'X'))
        }
        Some(kind) => matches!(kind, 3 | 32 | 105 | 110 | 111 | 112 | 140),
        None => false,
    }
}

/// Whether a message empties its instrument's book: then that is all there is to know of it.
fn empties(message: &[u8]) -> bool {
    match xdp::message_type(message) {
        Some(xdp::SymbolClear::KIND) => prefix::<xdp::SymbolClear>(message).is_ok(),
        Some(xdp::SecurityStatus::KIND) => {
            prefix::<xdp::SecurityStatus>(message).is_ok_and(|(m, _)| m.security_status.0 == b'X')
        }
        _ => false,
    }
}

/// Whether a message changes a book.
const fn is_of_book(kind: u16) -> bool {
    matches!(kind, 100..=104 | 106 | 32)
}

/// Whether a message of this type names its instrument, whose number is never 0.
#[inline(always)]
const fn is_of_instrument(kind: u16) -> bool {
    is_refreshed(kind) || matches!(kind, 110..=114 | 140 | 223)
}

/// Whether a refresh holds the effect of a message of this type; trades are not repeated there.
#[inline(always)]
const fn is_refreshed(kind: u16) -> bool {
    is_of_book(kind) || matches!(kind, 3 | 34 | 105)
}

/// Set on a definition that begins the refresh of its instrument, until the event is told.
const BEGINS_REFRESH: EventFlags = EventFlags(1 << 31);

/// Tells a status or a definition; before it, as an event of the same message, that the instrument's book is
/// empty where it closes or its refresh begins. A book that joins is empty and not right yet.
#[cold]
#[inline(never)]
fn rare<S: EventSink>(mut event: MarketEvent, joins: bool, sink: &mut S) {
    let begins_refresh = event.flags.has(BEGINS_REFRESH);
    event.flags = EventFlags(event.flags.0 & !BEGINS_REFRESH.0);
    if begins_refresh || event.kind == EventKind::Status && event.code[0] == b'X' {
        sink.on_event(&MarketEvent {
            kind: EventKind::Clear,
            status: TradingStatus::default(),
            code: [0; 8],
            flags: EventFlags(event.flags.0 & !EventFlags::LAST.0),
            ..event
        });
    }
    if begins_refresh && joins {
        sink.on_event(&MarketEvent {
            kind: EventKind::Gap,
            flags: EventFlags(event.flags.0 & !EventFlags::LAST.0),
            ..event
        });
    }
    sink.on_event(&event);
}

/// Counts a message that could not be read. One of a book among them is missing there, and the book is stale
/// from here on: `true` if the event now says so.
#[cold]
#[inline(never)]
fn refused(event: &mut MarketEvent, kind: u16, malformed: Malformed, counters: &mut Counters) -> bool {
    if matches!(malformed, Malformed::UnknownTemplate(_)) {
        counters.bump(Counter::MessagesUnknown);
        return false;
    }
    crate::decoder::count_malformed(counters, &malformed);
    *event = MarketEvent {
        seq: event.seq,
        recv_ts: event.recv_ts,
        instrument: event.instrument,
        venue: event.venue,
        flags: event.flags.with(EventFlags::UNUSABLE),
        kind: EventKind::Gap,
        ref_id: event.seq.next().0,
        ..MarketEvent::default()
    };
    is_of_book(kind) || kind == xdp::SecurityStatus::KIND
}

fn cleared(event: &mut MarketEvent, m: &xdp::SymbolClear) {
    event.kind = EventKind::Clear;
    event.venue_ts = xdp::time(m.source_time, m.source_time_ns);
}

fn status(event: &mut MarketEvent, m: &xdp::SecurityStatus) -> Result<bool, Malformed> {
    let code_of = Status::from_wire(m.security_status.0).ok_or_else(|| bad(20, m.security_status))?;
    event.kind = EventKind::Status;
    event.venue_ts = xdp::time(m.source_time, m.source_time_ns);
    event.code = code(&[m.security_status.0, m.halt_condition.0]);
    event.status = match code_of {
        Status::Halt if m.halt_condition.0 == b'M' => TradingStatus::Paused,
        Status::Halt | Status::Suspend => TradingStatus::Halted,
        Status::Resume => match m.market_state.0 {
            b'P' => TradingStatus::PreOpen,
            b'X' => TradingStatus::Closed,
            _ => TradingStatus::Trading,
        },
        Status::PreOpen | Status::BeginAccepting => TradingStatus::PreOpen,
        Status::Early | Status::Core | Status::Late => TradingStatus::Trading,
        Status::Closed => TradingStatus::Closed,
        Status::RestrictionActivated
        | Status::RestrictionContinued
        | Status::RestrictionDeactivated
        | Status::HaltResumeIndication
        | Status::PreOpenIndication => return Ok(false),
    };
    Ok(true)
}

/// Raw price units of one unit with so many decimals, `None` beyond 9 of them.
fn unit(decimals: u8) -> Option<i64> {
    Price::from_decimal(1, decimals)
        .map(Price::raw)
        .filter(|_| decimals <= 9)
}

/// A price of so many raw units each; an instrument whose unit is not known has none.
#[inline(always)]
fn price(unit: i64, field: I32) -> Result<Price, Malformed> {
    match unit {
        0 => Err(Malformed::OutOfRange { offset: 8 }),
        // 2^31 * 10^9 fits 63 bits.
        unit => Ok(Price::from_raw(i64::from(field.get()) * unit)),
    }
}

/// A venue code padded with NULs; at most eight bytes.
#[inline(always)]
/// The conditions of a trade; nothing where an XDP 2.1 sender has an execution id in their place.
fn conditions(text: &[u8; 4]) -> [u8; 8] {
    if xdp::trade_conditions(*text) {
        code(text)
    } else {
        [0; 8]
    }
}

fn code(text: &[u8]) -> [u8; 8] {
    let mut code = [0; 8];
    for (to, from) in code.iter_mut().zip(text) {
        *to = *from;
    }
    code
}

#[cold]
fn bad(offset: u16, value: Char) -> Malformed {
    Malformed::BadValue {
        offset,
        value: value.0,
    }
}

#[inline(always)]
fn side_at(offset: u16, field: Char) -> Result<Side, Malformed> {
    xdp::side(field).ok_or_else(|| bad(offset, field))
}

#[inline(always)]
fn printable(flag: u8) -> EventFlags {
    match flag {
        0 => EventFlags::NOT_PRINTABLE,
        _ => EventFlags::NONE,
    }
}
