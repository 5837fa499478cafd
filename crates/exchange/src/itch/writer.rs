//! What an engine did, as TotalView-ITCH 5.0 messages (document revision 2026-02-19).
//!
//! The publisher is a [`Listener`]: it writes exactly what a book builder needs to rebuild the engine's
//! displayed books ("Order Book Messages" of the specification): A or F when an order rests, E or C for
//! executions of displayed orders, P for executions of hidden ones, X, D and U; B for a trade that was
//! broken, H for trading status, I and Q for the closing cross. Its functions for the directory and for
//! resting orders also serve snapshots.

use alloc::vec::Vec;

use tickwire_market::{InstrumentId, Price, Qty, Side, TradingStatus};
use tickwire_persist::{Persist, persist};
use tickwire_wire::itch50::{
    AddOrder, AddOrderMpid, BrokenTrade, CrossTrade, CrossType, EventCode, MarketParticipantPosition,
    NetOrderImbalance, OrderCancel, OrderDelete, OrderExecuted, OrderExecutedWithPrice, OrderReplace,
    RegShoRestriction, StockDirectory, StockTradingAction, SystemEvent, Trade, side_char,
};
use tickwire_wire::layout::{Alpha, Char, Price4};
use tickwire_wire::zerocopy::IntoBytes;

use crate::order::{Broken, Cross, CrossFill, Execution, Indication, Listener, NO_MPID, Order};
use crate::rules::AuctionKind;
use crate::tape::{Listing, MessageSink, Milestone, Tape, VenueTime};

/// The market makers named in attributed orders.
pub const MARKET_MAKERS: [[u8; 4]; 4] = [*b"GSCO", *b"JPMS", *b"MLCO", *b"CDRG"];

fn stock_of(listing: &Listing) -> Alpha<8> {
    Alpha::from_symbol(&listing.symbol).unwrap_or(Alpha([b' '; 8]))
}

/// Writes the R and Y messages of an instrument, and an L for each market maker.
pub(super) fn write_directory(listing: &Listing, at: VenueTime, out: &mut impl MessageSink) {
    let (locate, stock) = (listing.id.0 as u16, stock_of(listing));
    let directory = StockDirectory::common_stock(locate, at, stock);
    out.message(directory.as_bytes());
    let short_sale = RegShoRestriction {
        stock,
        action: Char(b'0'),
        ..RegShoRestriction::at(locate, at)
    };
    out.message(short_sale.as_bytes());
    for mpid in MARKET_MAKERS {
        let position = MarketParticipantPosition {
            mpid: Alpha(mpid),
            stock,
            primary: Char(b'Y'),
            mode: Char(b'N'),
            state: Char(b'A'),
            ..MarketParticipantPosition::at(locate, at)
        };
        out.message(position.as_bytes());
    }
}

/// Writes the H message of an instrument.
pub(super) fn write_status(
    listing: &Listing,
    status: TradingStatus,
    at: VenueTime,
    out: &mut impl MessageSink,
) {
    let state = match status {
        TradingStatus::Trading => b'T',
        TradingStatus::QuoteOnly | TradingStatus::PreOpen | TradingStatus::Auction => b'Q',
        TradingStatus::Paused => b'P',
        TradingStatus::Halted | TradingStatus::Closed | TradingStatus::Unknown => b'H',
    };
    let action = StockTradingAction {
        stock: stock_of(listing),
        trading_state: Char(state),
        ..StockTradingAction::at(listing.id.0 as u16, at)
    };
    out.message(action.as_bytes());
}

/// Writes the A or F message of a displayed order.
#[inline]
pub(super) fn write_add(order: &Order, stock: Alpha<8>, at: VenueTime, out: &mut impl MessageSink) {
    let locate = order.instrument.0 as u16;
    let add = AddOrder {
        order_ref: order.id.0.into(),
        side: side_char(order.side),
        shares: order.qty.0.into(),
        stock,
        price: price4(order.price),
        ..AddOrder::at(locate, at)
    };
    if order.mpid == NO_MPID {
        return out.message(add.as_bytes());
    }
    let attributed = AddOrderMpid {
        order_ref: add.order_ref,
        side: add.side,
        shares: add.shares,
        stock,
        price: add.price,
        attribution: Alpha(order.mpid),
        ..AddOrderMpid::at(locate, at)
    };
    out.message(attributed.as_bytes());
}

/// Exact: the engine admits multiples of the tick up to [`crate::PRICE_MAX`], and ticks are multiples of
/// 0.0001.
fn price4(price: Price) -> Price4 {
    Price4::new((price.raw() / 100_000) as u32)
}

fn cross_type(kind: AuctionKind) -> CrossType {
    match kind {
        AuctionKind::Opening => CrossType::Opening,
        AuctionKind::Closing => CrossType::Closing,
        AuctionKind::Resumption => CrossType::HaltOrIpo,
    }
}

/// Publishes into `S`.
pub struct ItchWriter<S> {
    listings: Vec<Listing>,
    /// By stock locate.
    stocks: Vec<Alpha<8>>,
    now: VenueTime,
    /// Messages by type byte.
    kinds: [u64; 128],
    total: u64,
    sink: S,
}

impl<S: MessageSink> ItchWriter<S> {
    /// A publisher of these instruments; `listings[i]` has number `i + 1`.
    pub fn new(listings: &[Listing], sink: S) -> ItchWriter<S> {
        let blank = Alpha([b' '; 8]);
        ItchWriter {
            stocks: core::iter::once(blank)
                .chain(listings.iter().map(stock_of))
                .collect(),
            listings: listings.to_vec(),
            now: 0,
            kinds: [0; 128],
            total: 0,
            sink,
        }
    }

    /// The time of the following messages.
    pub fn time(&self) -> VenueTime {
        self.now
    }

    /// The instruments.
    pub fn listings(&self) -> &[Listing] {
        &self.listings
    }

    /// The instrument's name as messages hold it; blank for an unknown instrument.
    pub fn stock(&self, instrument: InstrumentId) -> Alpha<8> {
        self.stocks
            .get(instrument.index())
            .copied()
            .unwrap_or(Alpha([b' '; 8]))
    }

    /// Where messages go.
    pub fn sink(&self) -> &S {
        &self.sink
    }

    /// Where messages go.
    pub fn sink_mut(&mut self) -> &mut S {
        &mut self.sink
    }

    /// How many messages of this type were published.
    pub fn published(&self, kind: u8) -> u64 {
        self.kinds.get(kind as usize).copied().unwrap_or(0)
    }

    fn system_event(&mut self, event: EventCode) {
        let message = SystemEvent {
            event: event.into(),
            ..SystemEvent::at(0, self.now)
        };
        self.send(message.as_bytes());
    }

    #[inline]
    fn send(&mut self, message: &[u8]) {
        self.kinds[usize::from(message[0] & 127)] += 1;
        self.total += 1;
        self.sink.message(message);
    }
}

impl<S: MessageSink> Tape for ItchWriter<S> {
    fn set_time(&mut self, at: VenueTime) {
        // The field has 48 bits, 78 hours.
        self.now = self.now.max(at.min((1 << 48) - 1));
    }

    fn milestone(&mut self, milestone: Milestone) {
        self.system_event(match milestone {
            Milestone::StartOfMessages => EventCode::StartOfMessages,
            Milestone::StartOfSystemHours => EventCode::StartOfSystemHours,
            Milestone::StartOfMarketHours => EventCode::StartOfMarketHours,
            Milestone::EndOfMarketHours => EventCode::EndOfMarketHours,
            Milestone::EndOfSystemHours => EventCode::EndOfSystemHours,
            Milestone::EndOfMessages => EventCode::EndOfMessages,
        });
    }

    fn define(&mut self, listing: &Listing) {
        let at = self.now;
        write_directory(listing, at, &mut |message: &[u8]| self.send(message));
    }

    fn total(&self) -> u64 {
        self.total
    }
}

impl<S: MessageSink> Listener for ItchWriter<S> {
    fn rested(&mut self, order: &Order) {
        if !order.hidden {
            let (stock, at) = (self.stock(order.instrument), self.now);
            write_add(order, stock, at, &mut |message: &[u8]| self.send(message));
        }
    }

    fn executed(&mut self, execution: &Execution) {
        let Execution {
            maker,
            qty,
            price,
            match_number,
            ..
        } = *execution;
        let locate = maker.instrument.0 as u16;
        if maker.hidden {
            let trade = Trade {
                order_ref: 0.into(),
                side: Char(b'B'),
                shares: qty.0.into(),
                stock: self.stock(maker.instrument),
                price: price4(price),
                match_number: match_number.into(),
                ..Trade::at(locate, self.now)
            };
            self.send(trade.as_bytes());
        } else if price == maker.price {
            let executed = OrderExecuted {
                order_ref: maker.id.0.into(),
                executed_shares: qty.0.into(),
                match_number: match_number.into(),
                ..OrderExecuted::at(locate, self.now)
            };
            self.send(executed.as_bytes());
        } else {
            let executed = OrderExecutedWithPrice {
                order_ref: maker.id.0.into(),
                executed_shares: qty.0.into(),
                match_number: match_number.into(),
                printable: Char(b'Y'),
                execution_price: price4(price),
                ..OrderExecutedWithPrice::at(locate, self.now)
            };
            self.send(executed.as_bytes());
        }
    }

    /// Not printable: the cross itself is the print.
    fn cross_filled(&mut self, fill: &CrossFill) {
        if fill.order.hidden || fill.from_book.is_zero() {
            return;
        }
        let executed = OrderExecutedWithPrice {
            order_ref: fill.order.id.0.into(),
            executed_shares: fill.from_book.0.into(),
            match_number: fill.match_number.into(),
            printable: Char(b'N'),
            execution_price: price4(fill.price),
            ..OrderExecutedWithPrice::at(fill.order.instrument.0 as u16, self.now)
        };
        self.send(executed.as_bytes());
    }

    fn broken(&mut self, broken: &Broken) {
        let message = BrokenTrade {
            match_number: broken.match_number.into(),
            ..BrokenTrade::at(broken.instrument.0 as u16, self.now)
        };
        self.send(message.as_bytes());
    }

    fn reduced(&mut self, order: &Order, by: Qty) {
        if !order.hidden {
            let cancel = OrderCancel {
                order_ref: order.id.0.into(),
                cancelled_shares: by.0.into(),
                ..OrderCancel::at(order.instrument.0 as u16, self.now)
            };
            self.send(cancel.as_bytes());
        }
    }

    fn deleted(&mut self, order: &Order) {
        if !order.hidden {
            let delete = OrderDelete {
                order_ref: order.id.0.into(),
                ..OrderDelete::at(order.instrument.0 as u16, self.now)
            };
            self.send(delete.as_bytes());
        }
    }

    fn expired(&mut self, _: &Order) {}

    fn replaced(&mut self, old: &Order, new: &Order, rests: bool) {
        // A replacement that trades first is not in the book yet: the old order leaves, what remains is
        // added.
        if !rests {
            return self.deleted(old);
        }
        if !old.hidden {
            let replace = OrderReplace {
                original_order_ref: old.id.0.into(),
                new_order_ref: new.id.0.into(),
                shares: new.qty.0.into(),
                price: price4(new.price),
                ..OrderReplace::at(old.instrument.0 as u16, self.now)
            };
            self.send(replace.as_bytes());
        }
    }

    fn status(&mut self, instrument: InstrumentId, status: TradingStatus) {
        let Some(&listing) = instrument
            .index()
            .checked_sub(1)
            .and_then(|i| self.listings.get(i))
        else {
            return;
        };
        let at = self.now;
        write_status(&listing, status, at, &mut |message: &[u8]| self.send(message));
    }

    fn crossed(&mut self, cross: &Cross) {
        let message = CrossTrade {
            shares: cross.qty.into(),
            stock: self.stock(cross.instrument),
            cross_price: price4(cross.price),
            match_number: cross.match_number.into(),
            cross_type: cross_type(cross.kind).into(),
            ..CrossTrade::at(cross.instrument.0 as u16, self.now)
        };
        self.send(message.as_bytes());
    }

    fn indicated(&mut self, indication: &Indication) {
        let direction = match (indication.paired, indication.imbalance, indication.side) {
            (0, 0, _) => b'O',
            (_, 0, _) => b'N',
            (_, _, Side::Bid) => b'B',
            (_, _, Side::Ask) => b'S',
        };
        let clearing = price4(indication.clearing);
        let message = NetOrderImbalance {
            paired_shares: indication.paired.into(),
            imbalance_shares: indication.imbalance.into(),
            direction: Char(direction),
            stock: self.stock(indication.instrument),
            far_price: clearing,
            near_price: clearing,
            reference_price: price4(indication.price),
            cross_type: cross_type(indication.kind).into(),
            price_variation: Char(b'L'),
            ..NetOrderImbalance::at(indication.instrument.0 as u16, self.now)
        };
        self.send(message.as_bytes());
    }
}

persist!(struct ItchWriter<S: Persist> { now, kinds, total, sink } not { listings, stocks });
