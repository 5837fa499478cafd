//! Entries of a message: orders, trades, statistics.

use tickwire_market::{Nanos, OrderId, Price, Side, Volume};

use crate::fast::{Decimal, Entries, Fields, Slot};

use super::slots::Slots;
use super::times::{entry_time, number, rpt_seq};
use super::{MoexError, tag};

/// What happened to an entry (279).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Action {
    /// 0: an order entered the book; all entries of snapshots.
    #[default]
    New,
    /// 1: price and quantity have new values (a partial fill too).
    Change,
    /// 2: the order left the book.
    Delete,
}

impl Action {
    #[inline]
    fn from_wire(value: Option<u64>) -> Result<Action, MoexError> {
        match value {
            Some(0) | None => Ok(Action::New),
            Some(1) => Ok(Action::Change),
            Some(2) => Ok(Action::Delete),
            Some(_) => Err(MoexError::BadValue { tag: tag::ACTION }),
        }
    }
}

/// Which side an order is on (269).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum OrderKind {
    /// `0` and `1`: an order to buy or sell.
    Order(Side),
    /// `J`: the instrument has no orders.
    EmptyBook,
}

impl OrderKind {
    #[inline]
    fn from_wire(text: Option<&[u8]>) -> Result<OrderKind, MoexError> {
        match text {
            Some(b"0") => Ok(OrderKind::Order(Side::Bid)),
            Some(b"1") => Ok(OrderKind::Order(Side::Ask)),
            Some(b"J") => Ok(OrderKind::EmptyBook),
            _ => Err(MoexError::BadValue { tag: tag::ENTRY_TYPE }),
        }
    }

    pub(super) const fn wire(self) -> &'static [u8] {
        match self {
            OrderKind::Order(Side::Bid) => b"0",
            OrderKind::Order(Side::Ask) => b"1",
            OrderKind::EmptyBook => b"J",
        }
    }
}

/// One order of an order log or order snapshot. An absent text is empty.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OrderEntry<'a> {
    /// What happened.
    pub action: Action,
    /// Side, or that there are no orders.
    pub kind: OrderKind,
    /// `MDEntryID`: unique within the trading day; 0 when absent (empty book).
    pub order_id: OrderId,
    /// `Symbol`.
    pub symbol: &'a [u8],
    /// `TradingSessionID`: the board. Symbol and board together are the instrument.
    pub board: &'a [u8],
    /// `RptSeq`: counts by one per instrument and feed.
    pub rpt_seq: u32,
    /// `MDEntryPx`, exact; may be negative on repo rate boards.
    pub price: Option<Price>,
    /// `MDEntrySize`: what is left of the order, in lots; absent on a deletion.
    pub qty: Option<Volume>,
    /// `MDEntryDate` as `YYYYMMDD`.
    pub date: Option<u32>,
    /// `MDEntryTime` with `OrigTime`: since midnight in Moscow.
    pub time: Option<Nanos>,
    /// `OrderStatus`: `O` is active.
    pub order_status: &'a [u8],
    /// `TradingSessionSubID`: `N` is normal trading.
    pub session: &'a [u8],
}

/// One trade.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TradeEntry<'a> {
    /// `MDEntryID`: the trade's number.
    pub trade_id: u64,
    /// `Symbol`.
    pub symbol: &'a [u8],
    /// The board.
    pub board: &'a [u8],
    /// Counts by one per instrument and feed.
    pub rpt_seq: u32,
    /// `OrderSide`: the aggressor's, when told.
    pub aggressor: Option<Side>,
    /// The price, exact.
    pub price: Option<Price>,
    /// The quantity in lots.
    pub qty: Option<Volume>,
    /// `TradeValue` in currency units.
    pub value: Option<Decimal>,
    /// `RefOrderID`: the resting order.
    pub resting_order: Option<OrderId>,
    /// As `YYYYMMDD`.
    pub date: Option<u32>,
    /// Since midnight in Moscow.
    pub time: Option<Nanos>,
    /// `TradingSessionSubID`.
    pub session: &'a [u8],
}

/// One statistic.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StatisticEntry<'a> {
    /// What happened.
    pub action: Action,
    /// `MDEntryType`: which statistic.
    pub kind: &'a [u8],
    /// `Symbol`.
    pub symbol: &'a [u8],
    /// The board.
    pub board: &'a [u8],
    /// Counts by one per instrument and feed.
    pub rpt_seq: u32,
    /// The value where it is a price.
    pub price: Option<Decimal>,
    /// The value where it is a quantity.
    pub size: Option<Decimal>,
    /// Since midnight in Moscow.
    pub time: Option<Nanos>,
}

#[derive(Clone)]
pub(super) struct Typed<'a> {
    pub(super) entries: Option<Entries<'a>>,
    pub(super) slots: &'a Slots,
    pub(super) head: Fields<'a>,
    pub(super) head_slots: &'a Slots,
    /// The last entry's `MDEntryTime`, in which most entries of a message agree, and what it is.
    pub(super) time: (u64, Nanos),
}

impl<'a> Typed<'a> {
    #[inline]
    fn next(&mut self) -> Option<Fields<'a>> {
        self.entries.as_mut()?.next()
    }

    /// A text of the entry, or of the header where the entries have no such field (snapshots).
    #[inline]
    fn text(&self, entry: &Fields<'a>, slot: fn(&Slots) -> Slot) -> &'a [u8] {
        let own = slot(self.slots);
        let found = if own.exists() {
            entry.text(own)
        } else {
            self.head.text(slot(self.head_slots))
        };
        found.unwrap_or(&[])
    }

    #[inline]
    fn rpt_seq(&self, entry: &Fields<'a>) -> Result<u32, MoexError> {
        match self.slots.rpt_seq.exists() {
            true => rpt_seq(entry, self.slots.rpt_seq),
            false => rpt_seq(&self.head, self.head_slots.rpt_seq),
        }
    }

    #[inline]
    fn price(&self, entry: &Fields<'a>) -> Result<Option<Price>, MoexError> {
        match entry.decimal(self.slots.price) {
            None => Ok(None),
            Some(d) => d
                .to_price()
                .map(Some)
                .ok_or(MoexError::OutOfRange { tag: tag::ENTRY_PX }),
        }
    }

    #[inline]
    fn qty(&self, entry: &Fields<'a>) -> Result<Option<Volume>, MoexError> {
        match entry.decimal(self.slots.size) {
            None => Ok(None),
            Some(d) => {
                let qty = d.to_integer().and_then(|v| u64::try_from(v).ok());
                qty.map(|v| Some(Volume(v)))
                    .ok_or(MoexError::OutOfRange { tag: tag::ENTRY_SIZE })
            }
        }
    }

    #[inline]
    fn time(&mut self, entry: &Fields<'a>) -> Result<Option<Nanos>, MoexError> {
        let Some(time) = entry.unsigned(self.slots.time) else {
            return Ok(None);
        };
        let bad = MoexError::BadValue { tag: tag::ENTRY_TIME };
        if time != self.time.0 {
            self.time = (time, entry_time(time).ok_or(bad)?);
        }
        let at = self.time.1;
        match entry.unsigned(self.slots.orig_time) {
            None => Ok(Some(at)),
            Some(micros) if micros < 1_000_000 => {
                let millis = time % 1_000;
                Ok(Some(Nanos(at.0 - millis * 1_000_000 + micros * 1_000)))
            }
            Some(_) => Err(bad),
        }
    }

    fn date(&self, entry: &Fields<'a>) -> Option<u32> {
        entry.unsigned(self.slots.date).map(|d| d as u32)
    }
}

/// Iterator over the orders of a message. After an error the next entry can still be read.
#[derive(Clone)]
pub struct OrderEntries<'a>(pub(super) Typed<'a>);

impl<'a> Iterator for OrderEntries<'a> {
    type Item = Result<OrderEntry<'a>, MoexError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let entry = self.next_unread()?;
        Some(self.read(&entry))
    }
}

/// An order of which only its instrument is read so far: what a filter needs.
#[derive(Clone, Copy)]
pub struct UnreadOrder<'a> {
    pub(super) fields: Fields<'a>,
}

/// What an order book needs of an order; the fields are those of [`OrderEntry`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BookEntry {
    /// What happened.
    pub action: Action,
    /// Side, or that there are no orders.
    pub kind: OrderKind,
    /// The order; 0 when absent (empty book).
    pub order_id: OrderId,
    /// Counts by one per instrument and feed.
    pub rpt_seq: u32,
    /// The price, exact.
    pub price: Option<Price>,
    /// What is left of the order.
    pub qty: Option<Volume>,
    /// Since midnight in Moscow.
    pub time: Option<Nanos>,
}

impl<'a> OrderEntries<'a> {
    /// The next entry, unread.
    #[inline(always)]
    pub fn next_unread(&mut self) -> Option<UnreadOrder<'a>> {
        self.0.next().map(|fields| UnreadOrder { fields })
    }

    /// Symbol and board of an entry of this message.
    #[inline(always)]
    pub fn instrument(&self, entry: &UnreadOrder<'a>) -> (&'a [u8], &'a [u8]) {
        (
            self.0.text(&entry.fields, |s| s.symbol),
            self.0.text(&entry.fields, |s| s.board),
        )
    }

    /// What a book needs of an entry of this message.
    #[inline(always)]
    pub fn book_entry(&mut self, entry: &UnreadOrder<'a>) -> Result<BookEntry, MoexError> {
        let (entry, slots) = (&entry.fields, self.0.slots);
        let kind = OrderKind::from_wire(entry.text(slots.kind))?;
        let order_id = match (entry.text(slots.id), kind) {
            (Some(id), _) => number(id).ok_or(MoexError::BadValue { tag: tag::ENTRY_ID })?,
            (None, OrderKind::EmptyBook) => 0,
            (None, OrderKind::Order(_)) => return Err(MoexError::BadValue { tag: tag::ENTRY_ID }),
        };
        Ok(BookEntry {
            action: Action::from_wire(entry.unsigned(slots.action))?,
            kind,
            order_id: OrderId(order_id),
            rpt_seq: self.0.rpt_seq(entry)?,
            price: self.0.price(entry)?,
            qty: self.0.qty(entry)?,
            time: self.0.time(entry)?,
        })
    }

    #[inline]
    fn read(&mut self, entry: &UnreadOrder<'a>) -> Result<OrderEntry<'a>, MoexError> {
        let book = self.book_entry(entry)?;
        let (symbol, board) = self.instrument(entry);
        let (entry, slots) = (&entry.fields, self.0.slots);
        Ok(OrderEntry {
            action: book.action,
            kind: book.kind,
            order_id: book.order_id,
            symbol,
            board,
            rpt_seq: book.rpt_seq,
            price: book.price,
            qty: book.qty,
            date: self.0.date(entry),
            time: book.time,
            order_status: entry.text(slots.order_status).unwrap_or(&[]),
            session: entry.text(slots.session).unwrap_or(&[]),
        })
    }
}

/// Iterator over the trades of a message.
#[derive(Clone)]
pub struct TradeEntries<'a>(pub(super) Typed<'a>);

impl<'a> Iterator for TradeEntries<'a> {
    type Item = Result<TradeEntry<'a>, MoexError>;

    fn next(&mut self) -> Option<Self::Item> {
        let entry = self.0.next()?;
        Some(self.read(&entry))
    }
}

impl<'a> TradeEntries<'a> {
    fn read(&mut self, entry: &Fields<'a>) -> Result<TradeEntry<'a>, MoexError> {
        let slots = self.0.slots;
        let numbered = |slot, tag| match entry.text(slot) {
            Some(text) => number(text).map(Some).ok_or(MoexError::BadValue { tag }),
            None => Ok(None),
        };
        let aggressor = match entry.text(slots.order_side) {
            Some(b"B") => Some(Side::Bid),
            Some(b"S") => Some(Side::Ask),
            None | Some(b"") => None,
            Some(_) => return Err(MoexError::BadValue { tag: tag::ORDER_SIDE }),
        };
        Ok(TradeEntry {
            trade_id: numbered(slots.id, tag::ENTRY_ID)?.unwrap_or(0),
            symbol: self.0.text(entry, |s| s.symbol),
            board: self.0.text(entry, |s| s.board),
            rpt_seq: self.0.rpt_seq(entry)?,
            aggressor,
            price: self.0.price(entry)?,
            qty: self.0.qty(entry)?,
            value: entry.decimal(slots.trade_value),
            resting_order: numbered(slots.ref_order, tag::REF_ORDER)?.map(OrderId),
            date: self.0.date(entry),
            time: self.0.time(entry)?,
            session: entry.text(slots.session).unwrap_or(&[]),
        })
    }
}

/// Iterator over the statistics of a message.
#[derive(Clone)]
pub struct StatisticEntries<'a>(pub(super) Typed<'a>);

impl<'a> Iterator for StatisticEntries<'a> {
    type Item = Result<StatisticEntry<'a>, MoexError>;

    fn next(&mut self) -> Option<Self::Item> {
        let entry = self.0.next()?;
        Some(self.read(&entry))
    }
}

impl<'a> StatisticEntries<'a> {
    fn read(&mut self, entry: &Fields<'a>) -> Result<StatisticEntry<'a>, MoexError> {
        let slots = self.0.slots;
        Ok(StatisticEntry {
            action: Action::from_wire(entry.unsigned(slots.action))?,
            kind: entry.text(slots.kind).unwrap_or(&[]),
            symbol: self.0.text(entry, |s| s.symbol),
            board: self.0.text(entry, |s| s.board),
            rpt_seq: self.0.rpt_seq(entry)?,
            price: entry.decimal(slots.price),
            size: entry.decimal(slots.size),
            time: self.0.time(entry)?,
        })
    }
}
