//! A channel of a NYSE Integrated Feed: XDP on Pillar (Integrated Feed 2.5.g, Common Client 2.4.p).
//!
//! The writer is a [`Listener`]: 100 when an order rests, 101 when it is reduced, 102, 103 and 104 when it
//! leaves, trades or is replaced, 110 when a hidden one trades, 112 when a trade is broken, 105 and 111 for
//! the closing auction. The day begins with a sequence number reset, then 3, 32 and 34 for each instrument,
//! and ends with status `X` of each, which empties its book. A time reference stands before the first message
//! of every second that has one.

use alloc::vec;
use alloc::vec::Vec;

use tickwire_market::{InstrumentId, Level, Nanos, Price, Qty, SeqNo, Side, TradingStatus, Venue};
use tickwire_persist::persist;
use tickwire_wire::layout::le::{I32, U32};
use tickwire_wire::layout::{Alpha, Char};
use tickwire_wire::xdp::{self, DeliveryFlag, PacketBuilder, PacketHeader};
use tickwire_wire::zerocopy::IntoBytes;

use crate::engine::Engine;
use crate::mold::MessageStore;
use crate::nyse::{Groups, NysePublisher, NysePublisherConfig, NyseWriter, PacketFormat, Refusal, Request};
use crate::order::{Broken, Cross, CrossFill, Execution, Indication, Listener, Order};
use crate::rules::AuctionKind;
use crate::tape::{Listing, Milestone, Tape, VenueTime};

mod requests;

/// A channel of a NYSE Integrated Feed with its request server. See the module's description.
pub type XdpPublisher = NysePublisher<XdpWriter, XdpFormat>;

impl XdpPublisher {
    /// A channel of these instruments, whose numbers follow each other. Everything is allocated here, except
    /// refreshes.
    pub fn new(config: NysePublisherConfig, listings: &[Listing]) -> XdpPublisher {
        NysePublisher::serving(XdpWriter::new(config, listings))
    }

    /// How many messages of this type were published.
    pub fn published(&self, kind: u16) -> u64 {
        self.writer.kinds[usize::from(kind as u8)]
    }
}

/// The product number of a venue's Integrated Feed.
pub(crate) const fn product(venue: Venue) -> u8 {
    match venue {
        Venue::Arca => 157,
        Venue::American => 59,
        Venue::National => 109,
        Venue::NyseTexas => 209,
        _ => 11,
    }
}

/// `MarketID` and `ExchangeCode` of a venue.
const fn market(venue: Venue) -> (u16, u8) {
    match venue {
        Venue::Arca => (3, b'P'),
        Venue::American => (9, b'A'),
        Venue::National => (10, b'N'),
        Venue::NyseTexas => (11, b'M'),
        _ => (1, b'N'),
    }
}

/// The packets of a channel.
#[derive(Clone, Copy, Debug)]
pub struct XdpFormat {
    product: u8,
    channel: u8,
}

impl PacketFormat for XdpFormat {
    fn pack(
        &self,
        store: &MessageStore,
        first: u64,
        end: u64,
        again: bool,
        now: Nanos,
        buffer: &mut [u8],
    ) -> (usize, u64) {
        // A reset is alone in its packet.
        let is_reset = |seq: u64| {
            let message = store.get(SeqNo(seq));
            message.and_then(|message| xdp::message_type(&message)) == Some(xdp::SequenceNumberReset::KIND)
        };
        let end = match (first..end).find(|&seq| is_reset(seq)) {
            Some(reset) if reset == first => first + 1,
            Some(reset) => reset,
            None => end,
        };
        let fill = |flag: DeliveryFlag, buffer: &mut [u8]| {
            let mut packet = PacketBuilder::new(buffer, flag, first as u32, now);
            let mut next = first;
            while next < end
                && store
                    .get(SeqNo(next))
                    .is_some_and(|message| packet.push(&message))
            {
                next += 1;
            }
            (packet.finish(), next.max(first + 1))
        };
        if !again {
            let flag = match is_reset(first) {
                true => DeliveryFlag::SequenceReset,
                false => DeliveryFlag::Original,
            };
            return fill(flag, buffer);
        }
        let (length, next) = fill(DeliveryFlag::Retransmission, buffer);
        if next < end {
            return fill(DeliveryFlag::RetransmissionPart, buffer);
        }
        (length, next)
    }

    fn heartbeat(&self, next: u32, now: Nanos, buffer: &mut [u8]) -> usize {
        xdp::heartbeat(buffer, next, now)
    }

    fn unavailable(&self, first: u32, last: u32, now: Nanos, buffer: &mut [u8]) -> usize {
        let message = xdp::MessageUnavailable {
            begin_seq_num: first.into(),
            end_seq_num: last.into(),
            product_id: self.product,
            channel_id: self.channel,
            ..xdp::MessageUnavailable::NEW
        };
        let mut packet = PacketBuilder::new(buffer, DeliveryFlag::Unavailable, first, now);
        let fits = packet.push(message.as_bytes());
        debug_assert!(fits, "a packet holds at least 256 bytes");
        packet.finish()
    }
}

/// What is known of an instrument.
#[derive(Clone, Copy)]
struct Listed {
    /// Decimals of its prices.
    scale: u8,
    /// The number of its last message.
    seq: u32,
    status: TradingStatus,
}

/// Writes the messages of a channel. See the module's description.
pub struct XdpWriter {
    config: NysePublisherConfig,
    groups: Groups<XdpFormat>,
    listings: Vec<Listing>,
    listed: Vec<Listed>,
    /// The number of the first instrument.
    first: u32,
    midnight: Nanos,
    now: VenueTime,
    /// The second of the last time reference.
    second: u64,
    /// Time references so far.
    references: u32,
    /// Messages by type.
    kinds: [u64; 256],
    total: u64,
}

impl XdpWriter {
    fn new(config: NysePublisherConfig, listings: &[Listing]) -> XdpWriter {
        let format = XdpFormat {
            product: product(config.venue),
            channel: config.channel,
        };
        let listed = |listing: &Listing| Listed {
            // Common Client 2.4.p, "Symbol Index Mapping": by the last close. 3 from 100,000 would not hold
            // four decimals.
            scale: if listing.start < Price::from_4dp(500 * 10_000) {
                6
            } else {
                4
            },
            seq: 0,
            status: TradingStatus::PreOpen,
        };
        XdpWriter {
            groups: Groups::new(&config, format),
            first: listings.first().map_or(1, |listing| listing.id.0),
            listed: listings.iter().map(listed).collect(),
            listings: listings.to_vec(),
            midnight: Nanos::ZERO,
            now: 0,
            second: u64::MAX,
            references: 0,
            kinds: [0; 256],
            total: 0,
            config,
        }
    }

    /// The place of an instrument of this channel.
    fn place(&self, instrument: InstrumentId) -> Option<usize> {
        let at = instrument.0.checked_sub(self.first)? as usize;
        (at < self.listings.len()).then_some(at)
    }

    /// Seconds and nanoseconds of the venue's time, UTC.
    fn time(&self) -> (U32, U32) {
        let now = self.midnight.after(self.now).0;
        (
            U32::new((now / Nanos::SECOND) as u32),
            U32::new((now % Nanos::SECOND) as u32),
        )
    }

    fn send(&mut self, kind: u16, message: &[u8]) {
        self.kinds[usize::from(kind as u8)] += 1;
        self.total += 1;
        self.groups.push(message);
    }

    /// The number that the next message of an instrument gets, and its nanoseconds; the second is told
    /// before.
    fn next_of(&mut self, at: usize) -> (U32, U32) {
        let (second, nanos) = self.time();
        if self.second != u64::from(second.get()) {
            self.second = second.get().into();
            self.references += 1;
            let reference = xdp::SourceTimeReference {
                id: 1.into(),
                symbol_seq_num: self.references.into(),
                source_time: second,
                ..xdp::SourceTimeReference::NEW
            };
            self.send(xdp::SourceTimeReference::KIND, reference.as_bytes());
        }
        let listed = &mut self.listed[at];
        listed.seq = listed.seq.wrapping_add(1);
        (listed.seq.into(), nanos)
    }

    /// A price in the instrument's decimals. One that 32 bits do not hold changes their number first.
    fn price(&mut self, at: usize, price: Price) -> I32 {
        if let Some(field) = scaled(price, self.listed[at].scale) {
            return field;
        }
        self.listed[at].scale = 4;
        let mapping = self.mapping(at);
        self.send(xdp::SymbolIndexMapping::KIND, mapping.as_bytes());
        // Four decimals hold every price the engine admits.
        scaled(price, 4).unwrap_or_default()
    }

    fn mapping(&self, at: usize) -> xdp::SymbolIndexMapping {
        let (listing, scale) = (&self.listings[at], self.listed[at].scale);
        let (market_id, exchange) = market(self.config.venue);
        xdp::SymbolIndexMapping {
            symbol_index: listing.id.0.into(),
            symbol: xdp::nul_padded(listing.symbol.as_bytes()).unwrap_or(Alpha([0; 11])),
            market_id: market_id.into(),
            exchange_code: Char(exchange),
            price_scale_code: scale,
            security_type: Char(b'C'),
            lot_size: 100.into(),
            prev_close_price: scaled(listing.start, scale).unwrap_or_default(),
            round_lot: Char(b'Y'),
            mpv: 1.into(),
            unit_of_trade: 1.into(),
            ..xdp::SymbolIndexMapping::NEW
        }
    }

    /// The status message of an instrument as it stands.
    fn security_status(&self, at: usize, seq: U32) -> xdp::SecurityStatus {
        let (source_time, source_time_ns) = self.time();
        let (status, halt, market) = match self.listed[at].status {
            TradingStatus::Trading | TradingStatus::QuoteOnly => (b'O', b'~', b'O'),
            TradingStatus::PreOpen | TradingStatus::Unknown => (b'P', b'~', b'P'),
            TradingStatus::Auction => (b'B', b'~', b'P'),
            TradingStatus::Paused => (b'4', b'M', b'O'),
            TradingStatus::Halted => (b'4', b'D', b'O'),
            TradingStatus::Closed => (b'X', b'~', b'X'),
        };
        xdp::SecurityStatus {
            source_time,
            source_time_ns,
            symbol_index: self.listings[at].id.0.into(),
            symbol_seq_num: seq,
            security_status: Char(status),
            halt_condition: Char(halt),
            ssr_trigger_exchange: Char(b' '),
            ssr_state: Char(b'~'),
            market_state: Char(market),
            ..xdp::SecurityStatus::NEW
        }
    }

    fn send_status(&mut self, at: usize) {
        let (seq, _) = self.next_of(at);
        let message = self.security_status(at, seq);
        self.send(xdp::SecurityStatus::KIND, message.as_bytes());
    }

    fn delete(&mut self, order: &Order) {
        if let (Some(at), false) = (self.place(order.instrument), order.hidden) {
            let (symbol_seq_num, source_time_ns) = self.next_of(at);
            let message = xdp::DeleteOrder {
                source_time_ns,
                symbol_index: order.instrument.0.into(),
                symbol_seq_num,
                order_id: order.id.0.into(),
                ..xdp::DeleteOrder::NEW
            };
            self.send(xdp::DeleteOrder::KIND, message.as_bytes());
        }
    }
}

/// A price in so many decimals, `None` if that is not exact or too large.
fn scaled(price: Price, decimals: u8) -> Option<I32> {
    let unit = 10_i64.pow(9 - u32::from(decimals.min(9)));
    let exact = price.raw() % unit == 0;
    i32::try_from(price.raw() / unit)
        .ok()
        .filter(|_| exact)
        .map(I32::new)
}

fn side_char(side: Side) -> Char {
    match side {
        Side::Bid => Char(b'B'),
        Side::Ask => Char(b'S'),
    }
}

/// Attribution, blank when there is none.
fn firm(order: &Order) -> Alpha<5> {
    let mut text = [b' '; 5];
    text[..4].copy_from_slice(&order.mpid);
    Alpha(text)
}

impl Tape for XdpWriter {
    fn set_time(&mut self, at: VenueTime) {
        self.now = self.now.max(at);
    }

    fn milestone(&mut self, milestone: Milestone) {
        match milestone {
            Milestone::StartOfMessages => {
                let (source_time, source_time_ns) = self.time();
                let reset = xdp::SequenceNumberReset {
                    source_time,
                    source_time_ns,
                    product_id: product(self.config.venue),
                    channel_id: self.config.channel,
                    ..xdp::SequenceNumberReset::NEW
                };
                self.send(xdp::SequenceNumberReset::KIND, reset.as_bytes());
            }
            Milestone::EndOfMessages => {
                for at in 0..self.listed.len() {
                    self.listed[at].status = TradingStatus::Closed;
                    self.send_status(at);
                }
            }
            _ => {}
        }
    }

    fn define(&mut self, listing: &Listing) {
        let Some(at) = self.place(listing.id) else {
            return;
        };
        let mapping = self.mapping(at);
        self.send(xdp::SymbolIndexMapping::KIND, mapping.as_bytes());
        let (source_time, source_time_ns) = self.time();
        let clear = xdp::SymbolClear {
            source_time,
            source_time_ns,
            symbol_index: listing.id.0.into(),
            next_source_seq_num: (self.listed[at].seq + 1).into(),
            ..xdp::SymbolClear::NEW
        };
        self.send(xdp::SymbolClear::KIND, clear.as_bytes());
        self.send_status(at);
    }

    fn total(&self) -> u64 {
        self.total
    }
}

impl Listener for XdpWriter {
    fn rested(&mut self, order: &Order) {
        if let (Some(at), false) = (self.place(order.instrument), order.hidden) {
            let price = self.price(at, order.price);
            let (symbol_seq_num, source_time_ns) = self.next_of(at);
            let message = xdp::AddOrder {
                source_time_ns,
                symbol_index: order.instrument.0.into(),
                symbol_seq_num,
                order_id: order.id.0.into(),
                price,
                volume: order.qty.0.into(),
                side: side_char(order.side),
                firm_id: firm(order),
                ..xdp::AddOrder::NEW
            };
            self.send(xdp::AddOrder::KIND, message.as_bytes());
        }
    }

    fn executed(&mut self, execution: &Execution) {
        let maker = &execution.maker;
        let Some(at) = self.place(maker.instrument) else {
            return;
        };
        let price = self.price(at, execution.price);
        let (symbol_seq_num, source_time_ns) = self.next_of(at);
        let (symbol_index, volume) = (maker.instrument.0.into(), execution.qty.0.into());
        let trade_id = U32::new(execution.match_number as u32);
        let odd_lot = Char(if execution.qty.0 < 100 { b'I' } else { b' ' });
        if maker.hidden {
            let message = xdp::NonDisplayedTrade {
                source_time_ns,
                symbol_index,
                symbol_seq_num,
                trade_id,
                price,
                volume,
                printable_flag: 1,
                trade_cond1: Char(b'@'),
                trade_cond2: Char(b' '),
                trade_cond3: Char(b' '),
                trade_cond4: odd_lot,
                ..xdp::NonDisplayedTrade::NEW
            };
            return self.send(xdp::NonDisplayedTrade::KIND, message.as_bytes());
        }
        let message = xdp::OrderExecution {
            source_time_ns,
            symbol_index,
            symbol_seq_num,
            order_id: maker.id.0.into(),
            trade_id,
            price,
            volume,
            printable_flag: 1,
            trade_cond1: Char(b'@'),
            trade_cond2: Char(b' '),
            trade_cond3: Char(b' '),
            trade_cond4: odd_lot,
            ..xdp::OrderExecution::NEW
        };
        self.send(xdp::OrderExecution::KIND, message.as_bytes());
    }

    /// Not printable: the cross itself is the print.
    fn cross_filled(&mut self, fill: &CrossFill) {
        let Some(at) = self.place(fill.order.instrument) else {
            return;
        };
        if fill.order.hidden || fill.from_book.is_zero() {
            return;
        }
        let price = self.price(at, fill.price);
        let (symbol_seq_num, source_time_ns) = self.next_of(at);
        let message = xdp::OrderExecution {
            source_time_ns,
            symbol_index: fill.order.instrument.0.into(),
            symbol_seq_num,
            order_id: fill.order.id.0.into(),
            trade_id: U32::new(fill.match_number as u32),
            price,
            volume: fill.from_book.0.into(),
            printable_flag: 0,
            trade_cond1: Char(b'@'),
            trade_cond2: Char(b' '),
            trade_cond3: Char(b' '),
            trade_cond4: Char(b' '),
            ..xdp::OrderExecution::NEW
        };
        self.send(xdp::OrderExecution::KIND, message.as_bytes());
    }

    fn broken(&mut self, broken: &Broken) {
        let Some(at) = self.place(broken.instrument) else {
            return;
        };
        let (symbol_seq_num, source_time_ns) = self.next_of(at);
        let message = xdp::TradeCancel {
            source_time_ns,
            symbol_index: broken.instrument.0.into(),
            symbol_seq_num,
            trade_id: U32::new(broken.match_number as u32),
            ..xdp::TradeCancel::NEW
        };
        self.send(xdp::TradeCancel::KIND, message.as_bytes());
    }

    fn reduced(&mut self, order: &Order, _: Qty) {
        if let (Some(at), false) = (self.place(order.instrument), order.hidden) {
            let price = self.price(at, order.price);
            let (symbol_seq_num, source_time_ns) = self.next_of(at);
            let message = xdp::ModifyOrder {
                source_time_ns,
                symbol_index: order.instrument.0.into(),
                symbol_seq_num,
                order_id: order.id.0.into(),
                price,
                volume: order.qty.0.into(),
                position_change: 0,
                side: side_char(order.side),
                ..xdp::ModifyOrder::NEW
            };
            self.send(xdp::ModifyOrder::KIND, message.as_bytes());
        }
    }

    fn deleted(&mut self, order: &Order) {
        self.delete(order);
    }

    fn expired(&mut self, _: &Order) {}

    fn replaced(&mut self, old: &Order, new: &Order, rests: bool) {
        // A replacement that trades first is not in the book yet: the old order leaves, what remains is
        // added.
        if !rests {
            return self.delete(old);
        }
        if let (Some(at), false) = (self.place(old.instrument), old.hidden) {
            let price = self.price(at, new.price);
            let (symbol_seq_num, source_time_ns) = self.next_of(at);
            let message = xdp::ReplaceOrder {
                source_time_ns,
                symbol_index: old.instrument.0.into(),
                symbol_seq_num,
                order_id: old.id.0.into(),
                new_order_id: new.id.0.into(),
                price,
                volume: new.qty.0.into(),
                side: side_char(new.side),
                ..xdp::ReplaceOrder::NEW
            };
            self.send(xdp::ReplaceOrder::KIND, message.as_bytes());
        }
    }

    fn status(&mut self, instrument: InstrumentId, status: TradingStatus) {
        if let Some(at) = self.place(instrument) {
            self.listed[at].status = status;
            self.send_status(at);
        }
    }

    fn crossed(&mut self, cross: &Cross) {
        let Some(at) = self.place(cross.instrument) else {
            return;
        };
        let price = self.price(at, cross.price);
        let (symbol_seq_num, source_time_ns) = self.next_of(at);
        let message = xdp::CrossTrade {
            source_time_ns,
            symbol_index: cross.instrument.0.into(),
            symbol_seq_num,
            cross_id: U32::new(cross.match_number as u32),
            price,
            volume: quantity(cross.qty),
            cross_type: Char(match cross.kind {
                AuctionKind::Opening => b'O',
                AuctionKind::Closing => b'6',
                AuctionKind::Resumption => b'5',
            }),
            ..xdp::CrossTrade::NEW
        };
        self.send(xdp::CrossTrade::KIND, message.as_bytes());
    }

    fn indicated(&mut self, indication: &Indication) {
        let Some(at) = self.place(indication.instrument) else {
            return;
        };
        let price = self.price(at, indication.price);
        let clearing = self.price(at, indication.clearing);
        let (symbol_seq_num, source_time_ns) = self.next_of(at);
        let side = match (indication.imbalance, indication.side) {
            (0, _) => Char(b' '),
            (_, side) => side_char(side),
        };
        let message = xdp::Imbalance {
            source_time: self.time().0,
            source_time_ns,
            symbol_index: indication.instrument.0.into(),
            symbol_seq_num,
            reference_price: price,
            paired_qty: quantity(indication.paired),
            total_imbalance_qty: quantity(indication.imbalance),
            auction_time: 1600.into(),
            auction_type: Char(match indication.kind {
                AuctionKind::Opening => b'M',
                AuctionKind::Closing => b'C',
                AuctionKind::Resumption => b'H',
            }),
            imbalance_side: side,
            continuous_book_clearing: clearing,
            auction_interest_clearing: clearing,
            unpaired_qty: quantity(indication.imbalance),
            unpaired_side: side,
            reserved: Char(b' '),
            ..xdp::Imbalance::NEW
        };
        self.send(xdp::Imbalance::KIND, message.as_bytes());
    }
}

/// The field has 32 bits.
fn quantity(qty: u64) -> U32 {
    U32::new(qty.min(u32::MAX.into()) as u32)
}

impl NyseWriter for XdpWriter {
    type Format = XdpFormat;

    fn config(&self) -> &NysePublisherConfig {
        &self.config
    }

    fn groups(&self) -> &Groups<XdpFormat> {
        &self.groups
    }

    fn groups_mut(&mut self) -> &mut Groups<XdpFormat> {
        &mut self.groups
    }

    fn begin(&mut self, midnight: Nanos) {
        self.midnight = midnight;
    }

    /// Messages are numbered as they are written.
    fn flush(&mut self) {}

    fn recognises(&self, request: &Request) -> Result<(), Refusal> {
        if request.product != product(self.config.venue) {
            Err(Refusal::BadProduct)
        } else if request.channel != Some(self.config.channel) {
            Err(Refusal::BadChannel)
        } else {
            Ok(())
        }
    }

    fn find(&self, _: &[u8]) -> Option<u32> {
        None
    }

    /// Common Client 2.4.p, "Refresh": per instrument a header, its mapping, its status, its orders in their
    /// order; each packet begins with a header, a short one where the instrument goes on.
    fn refresh(&mut self, which: core::ops::Range<usize>, now: Nanos, engine: &Engine) {
        let (last, max) = (which.end, self.groups.packet_max());
        for at in which.clone() {
            let messages = self.snapshot(at, engine);
            let packets = divide(&messages, max - PacketHeader::SIZE - xdp::RefreshHeader::SIZE);
            let (total, mut from) = (packets.len(), 0);
            for (nth, &to) in packets.iter().enumerate() {
                let begins = nth == 0 && at == which.start;
                let ends = nth + 1 == total && at + 1 == last;
                let flag = match (begins, ends) {
                    (true, true) => DeliveryFlag::Refresh,
                    (true, false) => DeliveryFlag::RefreshStart,
                    (false, true) => DeliveryFlag::RefreshEnd,
                    (false, false) => DeliveryFlag::RefreshPart,
                };
                let header = xdp::RefreshHeader {
                    current_refresh_pkt: (nth as u16 + 1).into(),
                    total_refresh_pkts: (total as u16).into(),
                    last_seq_num: U32::new(self.groups.store().next().0 as u32 - 1),
                    last_symbol_seq_num: self.listed[at].seq.into(),
                    ..xdp::RefreshHeader::NEW
                };
                let short = xdp::RefreshContinuation {
                    current_refresh_pkt: header.current_refresh_pkt,
                    total_refresh_pkts: header.total_refresh_pkts,
                    ..xdp::RefreshContinuation::NEW
                };
                let head = if nth == 0 {
                    header.as_bytes()
                } else {
                    short.as_bytes()
                };
                self.send_packet(flag, head, &messages[from..to], now);
                from = to;
            }
        }
    }

    fn mappings(&mut self, which: core::ops::Range<usize>, now: Nanos) {
        let all: Vec<Vec<u8>> = which.map(|at| self.mapping(at).as_bytes().to_vec()).collect();
        let packets = divide(&all, self.groups.packet_max() - PacketHeader::SIZE);
        let mut from = 0;
        for (nth, &to) in packets.iter().enumerate() {
            let flag = match (nth == 0, nth + 1 == packets.len()) {
                (true, true) => DeliveryFlag::Refresh,
                (true, false) => DeliveryFlag::RefreshStart,
                (false, true) => DeliveryFlag::RefreshEnd,
                (false, false) => DeliveryFlag::RefreshPart,
            };
            self.send_packet(flag, &[], &all[from..to], now);
            from = to;
        }
    }

    fn listings(&self) -> &[Listing] {
        &self.listings
    }

    /// The close leaves nothing.
    fn shown(&self, engine: &Engine, instrument: InstrumentId, side: Side) -> Vec<Level> {
        match self.place(instrument).map(|at| self.listed[at].status) {
            Some(TradingStatus::Closed) | None => Vec::new(),
            Some(_) => engine.levels(instrument, side).collect(),
        }
    }

    fn span(datagram: &[u8]) -> Option<(SeqNo, SeqNo)> {
        let packet = xdp::parse_packet(datagram).ok()?;
        let count = u64::from(packet.header.number_msgs);
        (count > 0).then(|| (packet.seq(), packet.seq().advance(count)))
    }
}

impl XdpWriter {
    /// The messages of an instrument's refresh but for the header.
    fn snapshot(&self, at: usize, engine: &Engine) -> Vec<Vec<u8>> {
        let mut all = vec![
            self.mapping(at).as_bytes().to_vec(),
            self.security_status(at, self.listed[at].seq.into())
                .as_bytes()
                .to_vec(),
        ];
        if self.listed[at].status == TradingStatus::Closed {
            return all;
        }
        let (id, scale) = (self.listings[at].id, self.listed[at].scale);
        let (source_time, source_time_ns) = self.time();
        for side in Side::BOTH {
            for nth in 0..engine.depth(id, side) {
                for order in engine.queue(id, side, nth) {
                    let message = xdp::AddOrderRefresh {
                        source_time,
                        source_time_ns,
                        symbol_index: id.0.into(),
                        symbol_seq_num: self.listed[at].seq.into(),
                        order_id: order.id.0.into(),
                        price: scaled(order.price, scale).unwrap_or_default(),
                        volume: order.qty.0.into(),
                        side: side_char(side),
                        firm_id: firm(order),
                        ..xdp::AddOrderRefresh::NEW
                    };
                    all.push(message.as_bytes().to_vec());
                }
            }
        }
        all
    }

    /// Sends a packet of the refresh group with these messages.
    fn send_packet(&mut self, flag: DeliveryFlag, head: &[u8], messages: &[Vec<u8>], now: Nanos) {
        let count = messages.len() as u32 + u32::from(!head.is_empty());
        let number = self.groups.take_refresh_number(count);
        let mut bytes = vec![0; self.groups.packet_max()];
        let mut packet = PacketBuilder::new(&mut bytes, flag, number, now);
        let fits = (head.is_empty() || packet.push(head)) && messages.iter().all(|m| packet.push(m));
        debug_assert!(fits, "the messages were divided so that they fit");
        let length = packet.finish();
        bytes.truncate(length);
        self.groups.send_refresh(bytes);
    }
}

/// Where each packet ends whose messages take at most `room` bytes.
fn divide(messages: &[Vec<u8>], room: usize) -> Vec<usize> {
    let (mut ends, mut used, mut count) = (Vec::new(), 0, 0);
    for (at, message) in messages.iter().enumerate() {
        // The header of a packet counts 255 messages, and one is the refresh header.
        if used + message.len() > room || count == 254 {
            ends.push(at);
            (used, count) = (0, 0);
        }
        used += message.len();
        count += 1;
    }
    ends.push(messages.len());
    ends
}

persist! { struct XdpFormat {} not { product, channel } }
persist!(struct Listed { seq, status } not { scale });
persist!(struct XdpWriter {
    groups, midnight, now, second, references, kinds, total,
} each { listed } not { config, listings, first });
