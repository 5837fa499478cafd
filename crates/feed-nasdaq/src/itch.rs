//! Nasdaq TotalView-ITCH 5.0 (revision 2026-02-19) to [`MarketEvent`]s; Nasdaq, Nasdaq Texas and PSX.
//!
//! A message enters as bytes. Its type and stock locate, the first three bytes, decide whether anyone wants
//! it; only then is it read further. What comes out:
//!
//! | message | event |
//! |---|---|
//! | `A` `F` `E` `C` `X` `D` `U` | `Add` `Add` `Execute` `Execute` `Reduce` `Delete` `Replace` |
//! | `P` `Q` `B` | `Trade` `Trade` `TradeBreak` |
//! | `I` | `Imbalance` |
//! | `R` | `Definition`, and the instrument directory |
//! | `H`, `h` of this market | `Status` of the instrument |
//! | `S` | `Status` of the whole feed, `code[0]` = event code |
//! | any of the first row that is malformed | `Gap` of the instrument: its book may be wrong |
//! | `Y` `L` `V` `W` `K` `J` `N` `O` | none: they change neither a book nor whether it trades (a breach of the market-wide circuit breaker halts by `H`) |

use crate::decoder::{Context, Decoder, Early, Prefiltered, StreamEvent};
use crate::{FeedHandler, Filter, MoldUdp64, Seen};
use alloc::{boxed::Box, vec, vec::Vec};
use core::ops::Range;
use tickwire_market::{
    Counter, Counters, EventFlags, EventKind, EventSink, Instrument, InstrumentId, MarketEvent, MessageType,
    Nanos, OrderId, Price, Qty, Side, Symbol, TradingStatus, Upcoming, Venue, Volume,
};
use tickwire_wire_core::Malformed;
use tickwire_wire_core::layout::{Char, U48, prefix};
use tickwire_wire_nasdaq::itch50::{
    self, AddOrder, AddOrderMpid, ImbalanceDirection, Message, OrderCancel, OrderDelete, OrderExecuted,
    OrderExecutedWithPrice, OrderReplace, StockDirectory, Trade, side,
};

/// Nasdaq TotalView-ITCH 5.0 in MoldUDP64.
pub type ItchFeed = FeedHandler<MoldUdp64, ItchDecoder>;

/// What an [`ItchDecoder`] has to know.
#[derive(Clone, Debug)]
pub struct ItchConfig {
    /// Nasdaq, Nasdaq Texas or PSX.
    pub venue: Venue,
    /// Midnight in New York of the session's day, since the Unix epoch; 0 if the day is not known, and venue
    /// times then count from midnight.
    pub midnight: Nanos,
    /// The highest stock locate plus 1, at most 65 536 (the default). A message beyond it is malformed.
    pub instruments_max: u32,
    /// What to let through; `None` (the default) is everything.
    pub symbols: Option<Vec<Symbol>>,
}

impl Default for ItchConfig {
    fn default() -> ItchConfig {
        ItchConfig {
            venue: Venue::Nasdaq,
            midnight: Nanos::ZERO,
            instruments_max: 1 << 16,
            symbols: None,
        }
    }
}

/// The decoder. All memory is taken at construction: a directory entry and a counter per instrument.
pub struct ItchDecoder {
    venue: Venue,
    midnight: Nanos,
    filter: Filter,
    /// By locate: the state that all markets have said, and whether this market's operational halt lasts.
    halts: Box<[(TradingStatus, bool)]>,
}

impl ItchDecoder {
    /// A decoder with an empty directory.
    pub fn new(config: ItchConfig) -> ItchDecoder {
        let numbers = 0..config.instruments_max.clamp(1, 1 << 16);
        ItchDecoder {
            halts: vec![Default::default(); numbers.len()].into(),
            venue: config.venue,
            midnight: config.midnight,
            filter: Filter::new(config.venue, numbers, config.symbols.as_deref())
                .joining_by_round(about)
                .counting_instruments(),
        }
    }

    /// Writes what a message says over an event that holds what every message has. `false` if it is not for a
    /// book or its readers. In place: a returned event would be copied.
    #[inline(always)]
    fn fill(&mut self, event: &mut MarketEvent, kind: u8, bytes: &[u8]) -> Result<bool, Malformed> {
        match kind {
            AddOrder::KIND => add(event, prefix(bytes)?.0)?,
            OrderDelete::KIND => delete(event, prefix(bytes)?.0),
            OrderReplace::KIND => replace(event, prefix(bytes)?.0),
            OrderExecuted::KIND => executed(event, prefix(bytes)?.0),
            OrderCancel::KIND => cancel(event, prefix(bytes)?.0),
            AddOrderMpid::KIND => add_attributed(event, prefix(bytes)?.0)?,
            OrderExecutedWithPrice::KIND => executed_at(event, prefix(bytes)?.0)?,
            Trade::KIND => trade(event, prefix(bytes)?.0),
            _ => return self.fill_rare(event, bytes),
        }
        Ok(true)
    }

    /// [`ItchDecoder::fill`] for types that are few in a day.
    #[inline(never)]
    fn fill_rare(&mut self, event: &mut MarketEvent, bytes: &[u8]) -> Result<bool, Malformed> {
        match itch50::parse(bytes)? {
            Message::CrossTrade(m) => cross(event, m),
            Message::BrokenTrade(m) => broken(event, m),
            Message::NetOrderImbalance(m) => imbalance(event, m)?,
            Message::StockDirectory(m) => return self.define(event, m),
            Message::StockTradingAction(m) => {
                action(event, m)?;
                self.settle(event, |halts, said| halts.0 = said);
            }
            Message::OperationalHalt(m) if own_market(self.venue) == m.market_code.0 => {
                halt(event, m)?;
                self.settle(event, |halts, said| halts.1 = said == TradingStatus::Halted);
            }
            Message::SystemEvent(m) => system(event, m)?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// The two halts are independent of each other: a stock trades when neither lasts.
    fn settle(
        &mut self,
        event: &mut MarketEvent,
        note: impl FnOnce(&mut (TradingStatus, bool), TradingStatus),
    ) {
        let Some(halts) = self.halts.get_mut(event.instrument.index()) else {
            return;
        };
        note(halts, event.status);
        event.status = match *halts {
            (TradingStatus::Unknown, false) => event.status,
            (_, true) => TradingStatus::Halted,
            (state, false) => state,
        };
    }

    /// Enters an instrument into the directory, and tells of it if it is wanted.
    fn define(&mut self, event: &mut MarketEvent, m: &itch50::StockDirectory) -> Result<bool, Malformed> {
        let symbol = m.stock.symbol().ok_or(Malformed::OutOfRange { offset: 11 })?;
        let id = event.instrument;
        let entry = Instrument {
            id,
            venue: self.venue,
            symbol,
            tick: Price::default(),
            lot: Qty(m.round_lot_size.get()),
            is_test: m.authenticity.0 == b'T',
        };
        if self.filter.enter(entry).is_none() {
            return Err(Malformed::OutOfRange { offset: 1 });
        }
        event.kind = EventKind::Definition;
        // Said again in mid-session it changes nothing for one that joins.
        if self.filter.is_joining(id) {
            return Ok(self.filter.round.loads(id));
        }
        let is_wanted = self.filter.has(id);
        if !is_wanted && let Some((of_type, of_instrument)) = self.counts(StockDirectory::KIND, id) {
            // The directory has it all the same.
            of_type.filtered += 1;
            of_instrument.filtered += 1;
        }
        Ok(is_wanted)
    }

    /// What was seen of a message's type and instrument, `None` for a number out of range.
    #[inline(always)]
    fn counts(&mut self, kind: u8, id: InstrumentId) -> Option<(&mut Seen, &mut Seen)> {
        self.filter.of_both(kind.into(), id.index())
    }

    /// Reads a message that is wanted.
    #[inline(always)]
    fn tell<S: EventSink>(
        &mut self,
        context: Context,
        (id, kind): (InstrumentId, u8),
        message: &[u8],
        counters: &mut Counters,
        sink: &mut S,
    ) {
        let timestamp = timestamp(message);
        let mut event = MarketEvent {
            seq: context.seq,
            venue_ts: self.midnight.after(timestamp),
            recv_ts: context.received,
            instrument: id,
            venue: self.venue,
            flags: context.flags,
            ..MarketEvent::default()
        };
        match self.fill(&mut event, kind, message) {
            Ok(true) => {}
            Ok(false) => return,
            Err(malformed) => {
                if !refused(&mut event, kind, malformed, counters) {
                    return;
                }
            }
        }
        sink.on_message(MessageType(kind.into()));
        sink.on_event(&event);
    }
}

/// The type of a message and its instrument.
fn about(message: &[u8]) -> (MessageType, InstrumentId) {
    let locate = itch50::stock_locate(message).unwrap_or_default();
    let kind = message.first().copied().unwrap_or_default();
    (MessageType(kind.into()), InstrumentId(locate.into()))
}

impl Prefiltered for ItchDecoder {}

impl Decoder for ItchDecoder {
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
        let (Some(locate), Some(&kind)) = (itch50::stock_locate(message), message.first()) else {
            // An empty block uses a number and says nothing; one or two bytes are a cut message.
            if !message.is_empty() {
                let cut = Malformed::truncated(3, message.len());
                crate::decoder::count_malformed(counters, &cut);
            }
            return;
        };
        let id = InstrumentId(locate.into());
        let passes = self.filter.has(id) || kind == StockDirectory::KIND;
        if !passes && self.filter.round.holds(id) && !context.flags.has(EventFlags::SNAPSHOT) {
            return self.filter.hold(context, 0, message);
        }
        let Some((by_type, by_instrument)) = self.counts(kind, id) else {
            return crate::decoder::count_bad_value(counters);
        };
        by_type.seen += 1;
        by_instrument.seen += 1;
        if !passes {
            by_type.filtered += 1;
            by_instrument.filtered += 1;
            return counters.bump(Counter::MessagesFiltered);
        }
        self.tell(context, (id, kind), message, counters, sink);
    }

    #[inline(always)]
    fn early(&mut self, message: &[u8]) -> Early {
        let (Some(locate), Some(&kind)) = (itch50::stock_locate(message), message.first()) else {
            return Early::Kept;
        };
        let id = InstrumentId(locate.into());
        if kind == StockDirectory::KIND {
            return Early::Changes;
        }
        if self.filter.has(id) || self.filter.round.holds(id) {
            return Early::Kept;
        }
        let Some((by_type, by_instrument)) = self.counts(kind, id) else {
            return Early::Kept;
        };
        by_type.drop_one();
        by_instrument.drop_one();
        Early::Dropped
    }

    #[inline(always)]
    fn preview<S: EventSink>(&self, message: &[u8], sink: &mut S) -> bool {
        let Some(locate) = itch50::stock_locate(message) else {
            return false;
        };
        let id = InstrumentId(locate.into());
        if !self.filter.has(id) {
            return false;
        }
        match order_ahead(message, id) {
            Some(next) => {
                sink.upcoming(next);
                true
            }
            None => matches!(
                message.first(),
                Some(b'P' | b'Q' | b'B' | b'I' | b'R' | b'H' | b'h' | b'S')
            ),
        }
    }

    const BUSY_TYPES: Range<usize> = b'A' as usize..b'Y' as usize;

    /// Halts are said anew in a session and in a snapshot.
    fn on_stream(&mut self, event: StreamEvent) {
        match event {
            StreamEvent::Restarted => self.filter.forget(),
            StreamEvent::SnapshotBegins => self.filter.open_all(),
            StreamEvent::SnapshotEnded(next) => self.filter.go_on_at(next),
            _ => {}
        }
        if matches!(event, StreamEvent::Restarted | StreamEvent::SnapshotBegins) {
            self.halts.fill(Default::default());
        }
    }

    #[inline(always)]
    fn announce<S: EventSink>(&self, message: &[u8], sink: &mut S) {
        if let Some(locate) = itch50::stock_locate(message)
            && let id = InstrumentId(locate.into())
            && self.filter.has(id)
            && let Some(next) = order_ahead(message, id)
        {
            sink.arriving(next);
        }
    }

    fn decode_joining<S: EventSink>(
        &mut self,
        context: Context,
        message: &[u8],
        counters: &mut Counters,
        sink: &mut S,
    ) {
        let (Some(locate), Some(&kind)) = (itch50::stock_locate(message), message.first()) else {
            return;
        };
        let id = InstrumentId(locate.into());
        if self.filter.round.loads(id)
            && let Some((by_type, by_instrument)) = self.counts(kind, id)
        {
            by_type.seen += 1;
            by_instrument.seen += 1;
            self.tell(context, (id, kind), message, counters, sink);
        }
    }
}

/// The order that a message of this instrument is about.
#[inline(always)]
fn order_ahead(message: &[u8], instrument: InstrumentId) -> Option<Upcoming> {
    let order = itch50::order_reference(message)?;
    let (says_where, buys, price) = itch50::new_order_at(message).unwrap_or_default();
    Some(Upcoming {
        instrument,
        order_id: OrderId(order),
        says_where,
        side: if buys { Side::Bid } else { Side::Ask },
        price: Price::from_4dp(price),
    })
}

/// Counts a message that could not be read. An order message among them is missing for its book, which is
/// stale from here on: `true` if the event now says so.
#[cold]
#[inline(never)]
fn refused(event: &mut MarketEvent, kind: u8, malformed: Malformed, counters: &mut Counters) -> bool {
    if matches!(malformed, Malformed::UnknownType(_)) {
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
    matches!(kind, b'A' | b'F' | b'E' | b'C' | b'X' | b'D' | b'U')
}

#[inline(always)]
fn add(event: &mut MarketEvent, m: &AddOrder) -> Result<(), Malformed> {
    event.kind = EventKind::Add;
    event.order_id = OrderId(m.order_ref.get());
    event.side = side_at(19, m.side)?;
    event.qty = Volume(m.shares.get().into());
    event.price = m.price.price();
    Ok(())
}

#[inline(always)]
fn add_attributed(event: &mut MarketEvent, m: &AddOrderMpid) -> Result<(), Malformed> {
    event.kind = EventKind::Add;
    event.order_id = OrderId(m.order_ref.get());
    event.side = side_at(19, m.side)?;
    event.qty = Volume(m.shares.get().into());
    event.price = m.price.price();
    event.code = code(m.attribution.trimmed());
    Ok(())
}

#[inline(always)]
fn executed(event: &mut MarketEvent, m: &OrderExecuted) {
    event.kind = EventKind::Execute;
    event.order_id = OrderId(m.order_ref.get());
    event.qty = Volume(m.executed_shares.get().into());
    event.ref_id = m.match_number.get();
}

#[inline(always)]
fn executed_at(event: &mut MarketEvent, m: &OrderExecutedWithPrice) -> Result<(), Malformed> {
    event.kind = EventKind::Execute;
    event.order_id = OrderId(m.order_ref.get());
    event.qty = Volume(m.executed_shares.get().into());
    event.ref_id = m.match_number.get();
    event.price = m.execution_price.price();
    event.flags = event
        .flags
        .with(EventFlags::AT_OTHER_PRICE)
        .with(printable(m.printable)?);
    Ok(())
}

#[inline(always)]
fn cancel(event: &mut MarketEvent, m: &OrderCancel) {
    event.kind = EventKind::Reduce;
    event.order_id = OrderId(m.order_ref.get());
    event.qty = Volume(m.cancelled_shares.get().into());
}

#[inline(always)]
fn delete(event: &mut MarketEvent, m: &OrderDelete) {
    event.kind = EventKind::Delete;
    event.order_id = OrderId(m.order_ref.get());
}

#[inline(always)]
fn replace(event: &mut MarketEvent, m: &OrderReplace) {
    event.kind = EventKind::Replace;
    event.order_id = OrderId(m.original_order_ref.get());
    event.ref_id = m.new_order_ref.get();
    event.qty = Volume(m.shares.get().into());
    event.price = m.price.price();
}

#[inline(always)]
fn trade(event: &mut MarketEvent, m: &Trade) {
    event.kind = EventKind::Trade;
    event.qty = Volume(m.shares.get().into());
    event.price = m.price.price();
    event.ref_id = m.match_number.get();
    event.flags = event.flags.with(EventFlags::NO_SIDE);
}

fn cross(event: &mut MarketEvent, m: &itch50::CrossTrade) {
    event.kind = EventKind::Trade;
    event.qty = Volume(m.shares.get());
    event.price = m.cross_price.price();
    event.ref_id = m.match_number.get();
    event.code = code(&[m.cross_type.0]);
    event.flags = event.flags.with(EventFlags::NO_SIDE);
}

fn broken(event: &mut MarketEvent, m: &itch50::BrokenTrade) {
    event.kind = EventKind::TradeBreak;
    event.ref_id = m.match_number.get();
}

fn imbalance(event: &mut MarketEvent, m: &itch50::NetOrderImbalance) -> Result<(), Malformed> {
    let direction = ImbalanceDirection::from_wire(m.direction.0).ok_or_else(|| bad(27, m.direction))?;
    let (side, no_side) = match direction {
        ImbalanceDirection::Buy => (Side::Bid, EventFlags::NONE),
        ImbalanceDirection::Sell => (Side::Ask, EventFlags::NONE),
        _ => (Side::Bid, EventFlags::NO_SIDE),
    };
    event.kind = EventKind::Imbalance;
    event.side = side;
    event.qty = Volume(m.paired_shares.get());
    event.imbalance_qty = Volume(m.imbalance_shares.get());
    event.price = m.reference_price.price();
    event.near_price = m.near_price.price();
    event.far_price = m.far_price.price();
    event.code = code(&[m.cross_type.0, m.price_variation.0]);
    event.flags = event.flags.with(no_side);
    Ok(())
}

fn action(event: &mut MarketEvent, m: &itch50::StockTradingAction) -> Result<(), Malformed> {
    event.kind = EventKind::Status;
    event.status = trading_status(m.trading_state)?;
    event.code = code(m.reason.trimmed());
    Ok(())
}

fn halt(event: &mut MarketEvent, m: &itch50::OperationalHalt) -> Result<(), Malformed> {
    event.kind = EventKind::Status;
    event.status = operational_status(m.action)?;
    event.code = code(&[m.market_code.0]);
    Ok(())
}

fn system(event: &mut MarketEvent, m: &itch50::SystemEvent) -> Result<(), Malformed> {
    event.kind = EventKind::Status;
    event.instrument = InstrumentId::WHOLE_FEED;
    event.status = system_status(m.event)?;
    event.code = code(&[m.event.0]);
    Ok(())
}

/// Offset 5 of every message; 0 if it is cut before, which is found out when it is read.
#[inline(always)]
fn timestamp(message: &[u8]) -> u64 {
    match message.get(5..).map(prefix::<U48>) {
        Some(Ok((timestamp, _))) => timestamp.get(),
        _ => 0,
    }
}

/// A venue code padded with NULs; at most eight bytes.
#[inline(always)]
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
fn side_at(offset: u16, indicator: Char) -> Result<Side, Malformed> {
    side(indicator).ok_or_else(|| bad(offset, indicator))
}

#[inline(always)]
fn printable(flag: Char) -> Result<EventFlags, Malformed> {
    match flag.0 {
        b'Y' => Ok(EventFlags::NONE),
        b'N' => Ok(EventFlags::NOT_PRINTABLE),
        _ => Err(bad(31, flag)),
    }
}

fn trading_status(state: Char) -> Result<TradingStatus, Malformed> {
    match state.0 {
        b'H' => Ok(TradingStatus::Halted),
        b'P' => Ok(TradingStatus::Paused),
        b'Q' => Ok(TradingStatus::QuoteOnly),
        b'T' => Ok(TradingStatus::Trading),
        _ => Err(bad(19, state)),
    }
}

fn operational_status(action: Char) -> Result<TradingStatus, Malformed> {
    match action.0 {
        b'H' => Ok(TradingStatus::Halted),
        b'T' => Ok(TradingStatus::Trading),
        _ => Err(bad(20, action)),
    }
}

fn system_status(event: Char) -> Result<TradingStatus, Malformed> {
    match event.0 {
        b'O' => Ok(TradingStatus::Unknown),
        b'S' => Ok(TradingStatus::PreOpen),
        b'Q' => Ok(TradingStatus::Trading),
        b'M' | b'E' | b'C' => Ok(TradingStatus::Closed),
        _ => Err(bad(11, event)),
    }
}

/// The `MarketCode` of operational halts that concern this venue.
const fn own_market(venue: Venue) -> u8 {
    match venue {
        Venue::NasdaqTexas => b'B',
        Venue::Psx => b'X',
        _ => b'Q',
    }
}
