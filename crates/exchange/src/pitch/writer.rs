//! What an engine did, as Multicast PITCH 2.41.29 messages.
//!
//! Exactly what a book builder needs: a short add where it fits, a long one for other prices and quantities,
//! an expanded one with attribution or a long symbol; executions of displayed orders at their price or
//! another, trades for hidden ones; reductions, modifications, deletions; trading status; on BZX the closing
//! auction. A `Time` comes before the first message of a second.

use alloc::vec::Vec;

use tickwire_market::{InstrumentId, OrderId, Price, Qty, Side, TradingStatus, Venue};
use tickwire_persist::{Persist, persist};
use tickwire_wire::layout::{Alpha, Char, Scaled};
use tickwire_wire::pitch::{
    self, AddOrderExpanded, AddOrderLong, AddOrderShort, AuctionSummary, AuctionType, AuctionUpdate,
    DeleteOrder, EndOfSession, LongPrice, ModifyOrderLong, ModifyOrderShort, OrderExecuted,
    OrderExecutedAtPriceSize, ReduceSizeLong, ReduceSizeShort, ShortPrice, Status, Time, TradeBreak,
    TradeExpanded, TradeLong, TradeShort, TradingStatus as StatusMessage, UnitClear, add_flags, modify_flags,
};
use tickwire_wire::zerocopy::IntoBytes;

use super::numbers::Numbers;
use crate::order::{Broken, Cross, CrossFill, Execution, Indication, Listener, NO_MPID, Order};
use crate::rules::AuctionKind;
use crate::tape::{Listing, MessageSink, Milestone, Tape, VenueTime};

const SECOND: u64 = 1_000_000_000;
/// The value of the first of an execution number's nine digits in base 36.
const CLASS: u64 = 36_u64.pow(8);
/// `C`, an auction.
const AUCTION_CLASS: u64 = 12 * CLASS;

/// Writes into `S`.
pub(super) struct PitchWriter<S> {
    venue: Venue,
    listings: Vec<Listing>,
    /// What is added to the engine's order numbers.
    order_base: u64,
    numbers: Numbers,
    now: VenueTime,
    /// The second said last.
    second: Option<u32>,
    /// Messages by type byte.
    kinds: [u64; 256],
    total: u64,
    sink: S,
}

impl<S: MessageSink> PitchWriter<S> {
    /// Of as many modified orders in the book at once as `modified` no memory is taken.
    pub(super) fn new(
        venue: Venue,
        order_base: u64,
        modified: usize,
        listings: &[Listing],
        sink: S,
    ) -> PitchWriter<S> {
        PitchWriter {
            venue,
            listings: listings.to_vec(),
            order_base,
            numbers: Numbers::new(modified),
            now: 0,
            second: None,
            kinds: [0; 256],
            total: 0,
            sink,
        }
    }

    pub(super) fn listings(&self) -> &[Listing] {
        &self.listings
    }

    pub(super) fn sink(&self) -> &S {
        &self.sink
    }

    pub(super) fn sink_mut(&mut self) -> &mut S {
        &mut self.sink
    }

    /// How many messages of this type were published.
    pub(super) fn published(&self, kind: u8) -> u64 {
        self.kinds[usize::from(kind)]
    }

    /// The `Time` of now, for a snapshot.
    pub(super) fn time(&self) -> Time {
        Time {
            seconds: self.seconds().into(),
            ..Time::BLANK_MESSAGE
        }
    }

    /// The add of a displayed order as it stands, for a snapshot too; nothing for an instrument of another
    /// unit.
    pub(super) fn write_add(&self, order: &Order, out: &mut impl MessageSink) {
        let Some(listing) = self.listing(order.instrument) else {
            return;
        };
        let (side, flags) = (pitch::side_char(order.side), add_flags::DISPLAYED);
        let (id, offset) = (self.id(order.id).into(), self.offset().into());
        let short_symbol = Alpha::<6>::from_symbol(&listing.symbol);
        let Some(symbol) = short_symbol.filter(|_| order.mpid == NO_MPID) else {
            let add = AddOrderExpanded {
                time_offset: offset,
                order_id: id,
                side,
                qty: order.qty.0.into(),
                symbol: long_symbol(listing),
                price: long(order.price),
                flags,
                participant_id: Alpha(order.mpid),
                ..AddOrderExpanded::BLANK_MESSAGE
            };
            return out.message(add.as_bytes());
        };
        match short(order.price, order.qty) {
            Some((price, qty)) => {
                let add = AddOrderShort {
                    time_offset: offset,
                    order_id: id,
                    side,
                    qty: qty.into(),
                    symbol,
                    price,
                    flags,
                    ..AddOrderShort::BLANK_MESSAGE
                };
                out.message(add.as_bytes());
            }
            None => {
                let add = AddOrderLong {
                    time_offset: offset,
                    order_id: id,
                    side,
                    qty: order.qty.0.into(),
                    symbol,
                    price: long(order.price),
                    flags,
                    ..AddOrderLong::BLANK_MESSAGE
                };
                out.message(add.as_bytes());
            }
        }
    }

    /// The trading status of an instrument, for a snapshot too.
    pub(super) fn status_message(&self, listing: &Listing, status: TradingStatus) -> StatusMessage {
        let status = match status {
            TradingStatus::Trading => Status::Trading,
            TradingStatus::PreOpen | TradingStatus::Auction => Status::Accepting,
            TradingStatus::QuoteOnly => Status::QuoteOnly,
            TradingStatus::Paused | TradingStatus::Halted => Status::Halted,
            TradingStatus::Closed | TradingStatus::Unknown => Status::Suspended,
        };
        StatusMessage {
            time_offset: self.offset().into(),
            symbol: long_symbol(listing),
            status: Char(status as u8),
            reg_sho: Char(b'0'),
            ..StatusMessage::BLANK_MESSAGE
        }
    }

    fn trade(&mut self, listing: &Listing, (qty, price): (u32, Price), execution_id: u64) {
        let (time_offset, side) = (self.offset().into(), pitch::side_char(Side::Bid));
        // Not the number of an order: the hidden ones' are not told.
        let order_id = (self.order_base ^ execution_id).into();
        let Some(symbol) = Alpha::<6>::from_symbol(&listing.symbol) else {
            let trade = TradeExpanded {
                time_offset,
                order_id,
                side,
                qty: qty.into(),
                symbol: long_symbol(listing),
                price: long(price),
                execution_id: execution_id.into(),
                ..TradeExpanded::BLANK_MESSAGE
            };
            return self.send(trade.as_bytes());
        };
        match short(price, Qty(qty)) {
            Some((price, qty)) => {
                let trade = TradeShort {
                    time_offset,
                    order_id,
                    side,
                    qty: qty.into(),
                    symbol,
                    price,
                    execution_id: execution_id.into(),
                    ..TradeShort::BLANK_MESSAGE
                };
                self.send(trade.as_bytes());
            }
            None => {
                let trade = TradeLong {
                    time_offset,
                    order_id,
                    side,
                    qty: qty.into(),
                    symbol,
                    price: long(price),
                    execution_id: execution_id.into(),
                    ..TradeLong::BLANK_MESSAGE
                };
                self.send(trade.as_bytes());
            }
        }
    }

    fn delete(&mut self, id: OrderId) {
        let delete = DeleteOrder {
            time_offset: self.offset().into(),
            order_id: self.id(id).into(),
            ..DeleteOrder::BLANK_MESSAGE
        };
        self.send(delete.as_bytes());
        self.numbers.forget(id);
    }

    fn listing(&self, instrument: InstrumentId) -> Option<&Listing> {
        let first = self.listings.first()?.id.0;
        let at = instrument.0.checked_sub(first)?;
        self.listings.get(at as usize)
    }

    /// The number of an order on the wire.
    fn id(&self, id: OrderId) -> u64 {
        self.order_base.wrapping_add(self.numbers.of(id).0)
    }

    fn seconds(&self) -> u32 {
        (self.now / SECOND) as u32
    }

    fn offset(&self) -> u32 {
        (self.now % SECOND) as u32
    }

    fn send(&mut self, message: &[u8]) {
        if self.second != Some(self.seconds()) {
            self.second = Some(self.seconds());
            let time = self.time();
            self.publish(time.as_bytes());
        }
        self.publish(message);
    }

    fn publish(&mut self, message: &[u8]) {
        self.kinds[usize::from(message[1])] += 1;
        self.total += 1;
        self.sink.message(message);
    }
}

fn auction_type(kind: AuctionKind) -> AuctionType {
    match kind {
        AuctionKind::Opening => AuctionType::Opening,
        AuctionKind::Closing => AuctionType::Closing,
        AuctionKind::Resumption => AuctionType::Halt,
    }
}

impl<S: MessageSink> Tape for PitchWriter<S> {
    fn set_time(&mut self, at: VenueTime) {
        self.now = self.now.max(at);
    }

    fn milestone(&mut self, milestone: Milestone) {
        match milestone {
            Milestone::StartOfMessages => {
                let clear = UnitClear {
                    time_offset: self.offset().into(),
                    ..UnitClear::BLANK_MESSAGE
                };
                self.send(clear.as_bytes());
            }
            Milestone::EndOfMessages => {
                let end = EndOfSession {
                    time_offset: self.offset().into(),
                    ..EndOfSession::BLANK_MESSAGE
                };
                self.send(end.as_bytes());
            }
            Milestone::StartOfSystemHours
            | Milestone::StartOfMarketHours
            | Milestone::EndOfMarketHours
            | Milestone::EndOfSystemHours => {}
        }
    }

    /// PITCH has no directory: an instrument is suspended until its status is told.
    fn define(&mut self, _: &Listing) {}

    fn total(&self) -> u64 {
        self.total
    }
}

impl<S: MessageSink> Listener for PitchWriter<S> {
    fn rested(&mut self, order: &Order) {
        if !order.hidden {
            let mut message = Message::default();
            self.write_add(order, &mut |bytes: &[u8]| message.set(bytes));
            self.send(message.bytes());
        }
    }

    fn executed(&mut self, execution: &Execution) {
        let Execution {
            maker, qty, price, ..
        } = *execution;
        let execution_id = execution.match_number % CLASS;
        if maker.hidden {
            if let Some(&listing) = self.listing(maker.instrument) {
                self.trade(&listing, (qty.0, price), execution_id);
            }
            return;
        }
        let (time_offset, order_id) = (self.offset().into(), self.id(maker.id).into());
        if price == maker.price {
            let executed = OrderExecuted {
                time_offset,
                order_id,
                executed_qty: qty.0.into(),
                execution_id: execution_id.into(),
                ..OrderExecuted::BLANK_MESSAGE
            };
            self.send(executed.as_bytes());
        } else {
            let executed = OrderExecutedAtPriceSize {
                time_offset,
                order_id,
                executed_qty: qty.0.into(),
                remaining_qty: maker.qty.0.into(),
                execution_id: execution_id.into(),
                price: long(price),
                ..OrderExecutedAtPriceSize::BLANK_MESSAGE
            };
            self.send(executed.as_bytes());
        }
        if maker.qty.0 == 0 {
            self.numbers.forget(maker.id);
        }
    }

    /// At the auction's price; its trade and its result follow with [`Listener::crossed`].
    fn cross_filled(&mut self, fill: &CrossFill) {
        if fill.order.hidden || fill.from_book.is_zero() {
            return;
        }
        let executed = OrderExecutedAtPriceSize {
            time_offset: self.offset().into(),
            order_id: self.id(fill.order.id).into(),
            executed_qty: fill.from_book.0.into(),
            remaining_qty: fill.order.qty.0.into(),
            execution_id: (AUCTION_CLASS + fill.match_number % CLASS).into(),
            price: long(fill.price),
            ..OrderExecutedAtPriceSize::BLANK_MESSAGE
        };
        self.send(executed.as_bytes());
        if fill.order.qty.is_zero() {
            self.numbers.forget(fill.order.id);
        }
    }

    fn broken(&mut self, broken: &Broken) {
        let message = TradeBreak {
            time_offset: self.offset().into(),
            execution_id: (broken.match_number % CLASS).into(),
            ..TradeBreak::BLANK_MESSAGE
        };
        self.send(message.as_bytes());
    }

    fn reduced(&mut self, order: &Order, by: Qty) {
        if order.hidden {
            return;
        }
        let (time_offset, order_id) = (self.offset().into(), self.id(order.id).into());
        match u16::try_from(by.0) {
            Ok(by) => {
                let reduce = ReduceSizeShort {
                    time_offset,
                    order_id,
                    cancelled_qty: by.into(),
                    ..ReduceSizeShort::BLANK_MESSAGE
                };
                self.send(reduce.as_bytes());
            }
            Err(_) => {
                let reduce = ReduceSizeLong {
                    time_offset,
                    order_id,
                    cancelled_qty: by.0.into(),
                    ..ReduceSizeLong::BLANK_MESSAGE
                };
                self.send(reduce.as_bytes());
            }
        }
    }

    fn deleted(&mut self, order: &Order) {
        if !order.hidden {
            self.delete(order.id);
        }
    }

    fn expired(&mut self, _: &Order) {}

    fn replaced(&mut self, old: &Order, new: &Order, rests: bool) {
        if old.hidden {
            return;
        }
        // A replacement that trades first is not in the book yet: the old order leaves, what remains is
        // added.
        if !rests {
            return self.delete(old.id);
        }
        self.numbers.modify(old.id, new.id);
        let (time_offset, order_id) = (self.offset().into(), self.id(new.id).into());
        let flags = modify_flags::DISPLAYED;
        match short(new.price, new.qty) {
            Some((price, qty)) => {
                let modify = ModifyOrderShort {
                    time_offset,
                    order_id,
                    qty: qty.into(),
                    price,
                    flags,
                    ..ModifyOrderShort::BLANK_MESSAGE
                };
                self.send(modify.as_bytes());
            }
            None => {
                let modify = ModifyOrderLong {
                    time_offset,
                    order_id,
                    qty: new.qty.0.into(),
                    price: long(new.price),
                    flags,
                    ..ModifyOrderLong::BLANK_MESSAGE
                };
                self.send(modify.as_bytes());
            }
        }
    }

    fn status(&mut self, instrument: InstrumentId, status: TradingStatus) {
        if let Some(listing) = self.listing(instrument) {
            let message = self.status_message(listing, status);
            self.send(message.as_bytes());
        }
    }

    /// An auction, which only BZX has: its trade, then its result.
    fn crossed(&mut self, cross: &Cross) {
        let Some(&listing) = self.listing(cross.instrument) else {
            return;
        };
        if self.venue != Venue::Bzx || cross.qty == 0 {
            return;
        }
        let shares = u32::try_from(cross.qty).unwrap_or(u32::MAX);
        let execution_id = AUCTION_CLASS + cross.match_number % CLASS;
        self.trade(&listing, (shares, cross.price), execution_id);
        let summary = AuctionSummary {
            time_offset: self.offset().into(),
            symbol: long_symbol(&listing),
            auction_type: auction_type(cross.kind).into(),
            price: long(cross.price),
            shares: shares.into(),
            ..AuctionSummary::BLANK_MESSAGE
        };
        self.send(summary.as_bytes());
    }

    fn indicated(&mut self, indication: &Indication) {
        let Some(listing) = self.listing(indication.instrument) else {
            return;
        };
        if self.venue != Venue::Bzx {
            return;
        }
        let shares = |side| {
            let unpaired = if side == indication.side {
                indication.imbalance
            } else {
                0
            };
            u32::try_from(indication.paired + unpaired).unwrap_or(u32::MAX)
        };
        let clearing = long(indication.clearing);
        let update = AuctionUpdate {
            time_offset: self.offset().into(),
            symbol: long_symbol(listing),
            auction_type: auction_type(indication.kind).into(),
            reference_price: long(indication.price),
            buy_shares: shares(Side::Bid).into(),
            sell_shares: shares(Side::Ask).into(),
            indicative_price: clearing,
            auction_only_price: clearing,
            ..AuctionUpdate::BLANK_MESSAGE
        };
        self.send(update.as_bytes());
    }
}

/// One message by value: what is written while the writer is borrowed.
struct Message {
    bytes: [u8; pitch::MESSAGE_SIZE_MAX],
    length: usize,
}

impl Default for Message {
    fn default() -> Message {
        Message {
            bytes: [0; pitch::MESSAGE_SIZE_MAX],
            length: 0,
        }
    }
}

impl Message {
    fn set(&mut self, bytes: &[u8]) {
        self.bytes[..bytes.len()].copy_from_slice(bytes);
        self.length = bytes.len();
    }

    fn bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

fn long_symbol(listing: &Listing) -> Alpha<8> {
    Alpha::from_symbol(&listing.symbol).unwrap_or(Alpha([b' '; 8]))
}

/// Exact: the engine admits multiples of the tick up to [`crate::PRICE_MAX`], and ticks are multiples of
/// 0.0001.
fn long(price: Price) -> LongPrice {
    LongPrice::from_price(price).unwrap_or(Scaled(0.into()))
}

/// Price and quantity of a short message, if they fit.
fn short(price: Price, qty: Qty) -> Option<(ShortPrice, u16)> {
    Some((ShortPrice::from_price(price)?, u16::try_from(qty.0).ok()?))
}

persist!(struct PitchWriter<S: Persist> { numbers, now, second, kinds, total, sink } not { venue, listings, order_base });
