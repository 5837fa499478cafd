//! What the parts of the decoder share: where events go, and the values of entries whatever their template.

use super::rows::{self, Row};
use crate::decoder::{Announced, Context};
use tickwire_market::{
    EventFlags, EventKind, EventSink, InstrumentId, MarketEvent, MessageType, Nanos, Price, Side,
    TradingStatus, Venue, Volume,
};
use tickwire_wire_cme::mdp3::{EntryType, EventRoot, OrderAction, TradingStatusCode};

/// Where events of match events go, one behind: whether an event is the last of its match event is known with
/// the next. Two places taken in turn, so that an event is written once.
pub(super) struct Tail<'a, S> {
    sink: &'a mut S,
    places: [Option<MarketEvent>; 2],
    /// The place of the event held back, if one is.
    at: usize,
    is_held: bool,
    announced: Announced,
}

impl<'a, S: EventSink> Tail<'a, S> {
    #[inline(always)]
    pub(super) fn new(sink: &'a mut S) -> Tail<'a, S> {
        Tail {
            sink,
            places: [None, None],
            at: 0,
            is_held: false,
            announced: Announced::default(),
        }
    }

    /// Another message is being read.
    #[inline(always)]
    pub(super) fn read(&mut self, kind: MessageType) {
        self.announced.read(kind);
    }

    #[inline(always)]
    pub(super) fn push(&mut self, event: MarketEvent) {
        let next = self.at ^ 1;
        self.places[next] = Some(event);
        if self.is_held
            && let Some(before) = &self.places[self.at & 1]
        {
            self.announced.tell(self.sink);
            self.sink.on_event(before);
        }
        (self.at, self.is_held) = (next, true);
        self.announced.wait();
    }

    /// The match event is over: its last event, if it is still here, says so.
    #[inline(always)]
    pub(super) fn end(&mut self) {
        if self.is_held
            && let Some(last) = &mut self.places[self.at & 1]
        {
            last.flags = last.flags.with(EventFlags::LAST);
            self.announced.tell(self.sink);
            self.sink.on_event(last);
        }
        self.is_held = false;
    }

    /// The packet is over: the instrument of the event that was here still.
    #[inline(always)]
    pub(super) fn release(&mut self) -> Option<InstrumentId> {
        if !core::mem::take(&mut self.is_held) {
            return None;
        }
        let last = self.places[self.at & 1].as_ref()?;
        self.announced.tell(self.sink);
        self.sink.on_event(last);
        Some(last.instrument)
    }

    #[inline(always)]
    pub(super) fn is_empty(&self) -> bool {
        !self.is_held
    }
}

/// What all events of a message share.
#[derive(Clone, Copy)]
pub(super) struct Moment {
    pub(super) context: Context,
    /// The venue's time.
    pub(super) time: Nanos,
}

/// An entry of a book by price, of either width.
#[derive(Clone, Copy)]
pub(super) struct LevelEntry {
    pub(super) security_id: i32,
    pub(super) rpt_seq: u32,
    pub(super) entry_type: u8,
    pub(super) action: u8,
    pub(super) level: u8,
}

/// An order's entry, of a book message, an order message or a snapshot.
#[derive(Clone, Copy)]
pub(super) struct OrderUpdate {
    pub(super) index: usize,
    pub(super) action: OrderAction,
    pub(super) order: u64,
    pub(super) priority: u64,
    pub(super) side: Side,
    pub(super) price: Price,
    pub(super) qty: u64,
}

/// A trade of either width.
#[derive(Clone, Copy)]
pub(super) struct Trade {
    pub(super) security_id: i32,
    pub(super) rpt_seq: u32,
    pub(super) price: Price,
    pub(super) qty: u64,
    pub(super) aggressor: Option<u8>,
    pub(super) action: u8,
    pub(super) id: u32,
}

#[inline(always)]
pub(super) fn moment(context: Context, root: &EventRoot) -> Moment {
    Moment {
        context,
        time: Nanos(root.transact_time.get()),
    }
}

#[inline(always)]
pub(super) fn about(at: &Moment, kind: EventKind, instrument: usize) -> MarketEvent {
    MarketEvent {
        seq: at.context.seq,
        venue_ts: at.time,
        recv_ts: at.context.received,
        instrument: InstrumentId(instrument as u32),
        venue: Venue::Cme,
        kind,
        flags: at.context.flags,
        ..MarketEvent::default()
    }
}

#[inline(always)]
pub(super) fn level_event(
    at: &Moment,
    index: usize,
    side: Side,
    price: Price,
    total: rows::Total,
) -> MarketEvent {
    let implied = if total.implied {
        EventFlags::IMPLIED
    } else {
        EventFlags::NONE
    };
    MarketEvent {
        side,
        price,
        qty: Volume(total.qty),
        order_count: total.orders,
        flags: at.context.flags.with(implied),
        ..about(at, EventKind::Level, index)
    }
}

/// What is absent is nothing; what is negative is wrong.
#[inline(always)]
pub(super) fn quantity(field: Option<i64>) -> Option<u64> {
    u64::try_from(field.unwrap_or(0)).ok()
}

#[inline(always)]
pub(super) fn row(
    price: Option<Price>,
    qty: u64,
    orders: Option<tickwire_wire_core::layout::le::I32>,
) -> Option<Row> {
    Some(Row {
        price: price.unwrap_or_default(),
        qty,
        orders: u32::try_from(orders.map_or(0, |n| n.get())).ok()?,
    })
}

/// The side of a book's entry, and whether it is implied.
#[inline(always)]
pub(super) fn book_side(entry_type: u8) -> Option<(Side, bool)> {
    EntryType::from_wire(entry_type).and_then(EntryType::book_side)
}

/// `None`: nothing that anyone could act on.
pub(super) fn trading_status(code: u8) -> Option<TradingStatus> {
    Some(match TradingStatusCode::from_wire(code)? {
        TradingStatusCode::TradingHalt => TradingStatus::Halted,
        TradingStatusCode::Close | TradingStatusCode::NotAvailable | TradingStatusCode::PostClose => {
            TradingStatus::Closed
        }
        TradingStatusCode::NewPriceIndication | TradingStatusCode::PreCross | TradingStatusCode::Cross => {
            TradingStatus::Auction
        }
        TradingStatusCode::PreOpen => TradingStatus::PreOpen,
        TradingStatusCode::Unknown => TradingStatus::Unknown,
        TradingStatusCode::ReadyToTrade
        | TradingStatusCode::PrivateWorkup
        | TradingStatusCode::PublicWorkup => TradingStatus::Trading,
        TradingStatusCode::NoChange => return None,
    })
}
