//! A channel of NYSE OpenBook Ultra 2.1: volume by price of NYSE and NYSE American.
//!
//! Every change of a displayed level is a delta update (231) of its own; what changes two levels of one
//! instrument at once (a replacement) is one update with two price points. Full updates (230) tell an
//! instrument at the start of the day, at its close, and in refreshes. Packets are numbered, and hold
//! messages of one type: a packet is completed when another type follows, when it is full, or when the
//! channel is polled.

use alloc::vec;
use alloc::vec::Vec;

use tickwire_market::{InstrumentId, Level, Nanos, Price, Qty, SeqNo, Side, TradingStatus, Venue};
use tickwire_persist::persist;
use tickwire_wire::layout::{Alpha, Char, I32, U16, U32};
use tickwire_wire::openbook::{
    self, DeltaHead, DeltaPoint, FullHead, FullPoint, PacketBuilder, PacketHeader, ReasonCode, RetransFlag,
};
use tickwire_wire::xdp::nul_padded;
use tickwire_wire::zerocopy::IntoBytes;

use crate::displayed::{DisplayedLevels, LevelChange};
use crate::engine::Engine;
use crate::mold::MessageStore;
use crate::nyse::{Groups, NysePublisher, NysePublisherConfig, NyseWriter, PacketFormat, Refusal, Request};
use crate::order::{CrossFill, Execution, Listener, Order};
use crate::tape::{Listing, Milestone, Tape, VenueTime};

mod requests;

/// A channel of OpenBook Ultra with its request server. See the module's description.
pub type OpenBookPublisher = NysePublisher<OpenBookWriter, OpenBookFormat>;

impl OpenBookPublisher {
    /// A channel of these instruments, whose numbers follow each other. Clients have two minutes to answer a
    /// heartbeat unless the limits say more.
    pub fn new(config: NysePublisherConfig, listings: &[Listing]) -> OpenBookPublisher {
        let mut config = config;
        config.limits.answer_ns = config.limits.answer_ns.max(120 * Nanos::SECOND);
        NysePublisher::serving(OpenBookWriter::new(config, listings))
    }
}

/// Decimals of every price: the engine's have at most four.
const SCALE: u8 = 4;

/// The packets of a channel.
#[derive(Clone, Copy, Debug)]
pub struct OpenBookFormat {
    product: u8,
    midnight: Nanos,
}

impl OpenBookFormat {
    fn header(&self, kind: u16, number: u32, flag: RetransFlag, now: Nanos) -> PacketHeader {
        PacketHeader {
            msg_type: kind.into(),
            seq_num: number.into(),
            send_time: U32::new((now.since(self.midnight) / Nanos::MILLI) as u32),
            product_id: self.product,
            retrans_flag: flag as u8,
            ..PacketHeader::BLANK
        }
    }
}

/// Where the header has `RetransFlag` and `SendTime`.
const RETRANS_FLAG_AT: usize = 13;
const SEND_TIME_AT: core::ops::Range<usize> = 8..12;

impl PacketFormat for OpenBookFormat {
    /// A unit is a packet already; its time of sending and why it is sent are set here.
    fn pack(
        &self,
        store: &MessageStore,
        first: u64,
        _: u64,
        again: bool,
        now: Nanos,
        buffer: &mut [u8],
    ) -> (usize, u64) {
        let packet = store.get(SeqNo(first)).unwrap_or_default();
        let packet = &packet[..packet.len().min(buffer.len())];
        buffer[..packet.len()].copy_from_slice(packet);
        let sent = self.header(0, 0, RetransFlag::Original, now).send_time;
        buffer[SEND_TIME_AT].copy_from_slice(sent.as_bytes());
        if again {
            buffer[RETRANS_FLAG_AT] = RetransFlag::Retransmitted as u8;
        }
        (packet.len(), first + 1)
    }

    fn heartbeat(&self, next: u32, now: Nanos, buffer: &mut [u8]) -> usize {
        let header = self.header(openbook::HEARTBEAT, next, RetransFlag::Original, now);
        PacketBuilder::new(buffer, header).finish()
    }

    fn unavailable(&self, first: u32, last: u32, now: Nanos, buffer: &mut [u8]) -> usize {
        let header = self.header(
            openbook::MessageUnavailable::KIND,
            first,
            RetransFlag::Retransmitted,
            now,
        );
        let message = openbook::MessageUnavailable {
            begin_seq_num: first.into(),
            end_seq_num: last.into(),
        };
        let mut packet = PacketBuilder::new(buffer, header);
        let fits = packet.push(message.as_bytes());
        debug_assert!(fits, "a packet holds at least 256 bytes");
        packet.finish()
    }
}

/// The product number of a venue's OpenBook Ultra.
const fn product(venue: Venue) -> u8 {
    match venue {
        Venue::American => 62,
        _ => 12,
    }
}

/// What is known of an instrument.
#[derive(Clone, Copy)]
struct Listed {
    /// The number of its last update.
    seq: u32,
    status: u8,
}

/// Writes the updates of a channel. See the module's description.
pub struct OpenBookWriter {
    config: NysePublisherConfig,
    groups: Groups<OpenBookFormat>,
    levels: DisplayedLevels,
    listings: Vec<Listing>,
    listed: Vec<Listed>,
    /// The number of the first instrument.
    first: u32,
    midnight: Nanos,
    now: VenueTime,
    /// The packet being filled: its type, how many messages, and their bytes.
    open: (u16, usize, Vec<u8>),
    total: u64,
}

impl OpenBookWriter {
    fn new(config: NysePublisherConfig, listings: &[Listing]) -> OpenBookWriter {
        let format = OpenBookFormat {
            product: product(config.venue),
            midnight: Nanos::ZERO,
        };
        let first = listings.first().map_or(InstrumentId(1), |listing| listing.id);
        let listed = Listed { seq: 0, status: b'P' };
        OpenBookWriter {
            groups: Groups::new(&config, format),
            levels: DisplayedLevels::new(first, listings.len()),
            first: first.0,
            listed: vec![listed; listings.len()],
            listings: listings.to_vec(),
            midnight: Nanos::ZERO,
            now: 0,
            open: (0, 0, Vec::with_capacity(config.datagram_max)),
            total: 0,
            config,
        }
    }

    /// The place of an instrument of this channel.
    fn place(&self, instrument: InstrumentId) -> Option<usize> {
        let at = instrument.0.checked_sub(self.first)? as usize;
        (at < self.listings.len()).then_some(at)
    }

    /// Milliseconds of the day, and microseconds to be added.
    fn time(&self) -> (U32, U16) {
        (
            U32::new((self.now / Nanos::MILLI) as u32),
            U16::new((self.now % Nanos::MILLI / Nanos::MICRO) as u16),
        )
    }

    /// Adds a message to the packet being filled, or to a new one where it does not fit.
    fn send(&mut self, kind: u16, message: &[u8]) {
        let (open, count, bytes) = &self.open;
        let room = self.groups.packet_max() - PacketHeader::SIZE;
        if *open != kind || bytes.len() + message.len() > room || *count == 255 {
            self.flush();
        }
        self.open.0 = kind;
        self.open.1 += 1;
        self.open.2.extend_from_slice(message);
        self.total += 1;
    }

    fn delta(&mut self, at: usize, points: &[DeltaPoint]) {
        let listed = &mut self.listed[at];
        listed.seq = listed.seq.wrapping_add(1);
        let listed = *listed;
        let (source_time, source_time_micros) = self.time();
        let head = DeltaHead {
            symbol_index: self.listings[at].id.0.into(),
            source_time,
            source_time_micros,
            source_seq_num: listed.seq.into(),
            source_session_id: 1,
            quote_condition: Char(b' '),
            trading_status: Char(listed.status),
            price_scale_code: SCALE,
            ..DeltaHead::BLANK
        };
        let mut bytes = [0; DeltaHead::SIZE + 2 * DeltaPoint::SIZE];
        let length = openbook::encode_delta(&mut bytes, &head, points);
        debug_assert!(length.is_some(), "at most two price points change at once");
        self.send(DeltaHead::KIND, &bytes[..length.unwrap_or(0)]);
    }

    /// Full updates of an instrument, as many as its price points need, of at most `room` bytes each.
    fn full(&self, at: usize, room: usize) -> Vec<Vec<u8>> {
        let (listing, listed) = (&self.listings[at], self.listed[at]);
        let (source_time, source_time_micros) = self.time();
        let head = FullHead {
            symbol_index: listing.id.0.into(),
            source_time,
            source_time_micros,
            symbol_seq_num: listed.seq.into(),
            source_session_id: 1,
            symbol: nul_padded(listing.symbol.as_bytes()).unwrap_or(Alpha([0; 11])),
            price_scale_code: SCALE,
            quote_condition: Char(b' '),
            trading_status: Char(listed.status),
            mpv: 1.into(),
            ..FullHead::BLANK
        };
        let mut points = Vec::new();
        for side in Side::BOTH {
            points.extend(self.levels.levels(listing.id, side).map(|level| FullPoint {
                price_numerator: numerator(level.price),
                volume: U32::new(level.qty.0.min(u32::MAX.into()) as u32),
                num_orders: U16::new(level.orders.min(u16::MAX.into()) as u16),
                side: side_char(side),
                ..FullPoint::BLANK
            }));
        }
        let parts = points.chunks((room - FullHead::SIZE) / FullPoint::SIZE);
        let parts: Vec<&[FullPoint]> = if points.is_empty() {
            vec![&[]]
        } else {
            parts.collect()
        };
        let encode = |points: &[FullPoint]| {
            let mut bytes = vec![0; FullHead::SIZE + size_of_val(points)];
            let length = openbook::encode_full(&mut bytes, &head, points);
            debug_assert_eq!(length, Some(bytes.len()));
            bytes
        };
        parts.into_iter().map(encode).collect()
    }

    /// Publishes an instrument's whole book.
    fn send_full(&mut self, at: usize) {
        self.listed[at].seq = self.listed[at].seq.wrapping_add(1);
        for message in self.full(at, self.groups.packet_max() - PacketHeader::SIZE) {
            self.send(FullHead::KIND, &message);
        }
    }

    fn tell(&mut self, change: Option<LevelChange>, by: u32, reason: ReasonCode, link: u32) {
        let Some(change) = change else {
            return;
        };
        if let Some(at) = self.place(change.instrument) {
            self.delta(at, &[point(&change, by, reason, link)]);
        }
    }
}

fn numerator(price: Price) -> I32 {
    // At most 2,000,000,000: the engine's largest price.
    I32::new((price.raw() / 100_000) as i32)
}

fn side_char(side: Side) -> Char {
    match side {
        Side::Bid => Char(b'B'),
        Side::Ask => Char(b'S'),
    }
}

/// A price as it is after a change of `by`.
fn point(change: &LevelChange, by: u32, reason: ReasonCode, link: u32) -> DeltaPoint {
    let level = change.level;
    DeltaPoint {
        price_numerator: numerator(level.price),
        volume: U32::new(level.qty.0.min(u32::MAX.into()) as u32),
        chg_qty: by.into(),
        num_orders: U16::new(level.orders.min(u16::MAX.into()) as u16),
        side: side_char(change.side),
        reason_code: Char(reason as u8),
        link_id1: link.into(),
        ..DeltaPoint::BLANK
    }
}

impl Tape for OpenBookWriter {
    fn set_time(&mut self, at: VenueTime) {
        self.now = self.now.max(at);
    }

    fn milestone(&mut self, milestone: Milestone) {
        match milestone {
            Milestone::StartOfMessages => {
                let reset = openbook::SequenceNumberReset {
                    next_seq_number: 2.into(),
                };
                self.send(openbook::SequenceNumberReset::KIND, reset.as_bytes());
                self.flush();
            }
            Milestone::EndOfMessages => {
                for at in 0..self.listed.len() {
                    self.listed[at].status = b'X';
                    self.send_full(at);
                }
            }
            _ => {}
        }
    }

    fn define(&mut self, listing: &Listing) {
        if let Some(at) = self.place(listing.id) {
            self.send_full(at);
        }
    }

    fn total(&self) -> u64 {
        self.total
    }
}

impl Listener for OpenBookWriter {
    fn rested(&mut self, order: &Order) {
        let change = self.levels.rested(order);
        self.tell(change, order.qty.0, ReasonCode::Order, 0);
    }

    fn executed(&mut self, execution: &Execution) {
        let change = self.levels.executed(execution);
        let link = execution.match_number as u32;
        self.tell(change, execution.qty.0, ReasonCode::Execution, link);
    }

    fn cross_filled(&mut self, fill: &CrossFill) {
        let change = self.levels.cross_filled(fill);
        let link = fill.match_number as u32;
        self.tell(change, fill.from_book.0, ReasonCode::Execution, link);
    }

    fn reduced(&mut self, order: &Order, by: Qty) {
        let change = self.levels.reduced(order, by);
        self.tell(change, by.0, ReasonCode::Cancel, 0);
    }

    fn deleted(&mut self, order: &Order) {
        let change = self.levels.deleted(order);
        self.tell(change, order.qty.0, ReasonCode::Cancel, 0);
    }

    fn expired(&mut self, _: &Order) {}

    fn replaced(&mut self, old: &Order, new: &Order, rests: bool) {
        if !rests {
            return self.deleted(old);
        }
        let (left, joined) = (self.levels.deleted(old), self.levels.rested(new));
        let (Some(left), Some(joined)) = (left, joined) else {
            return;
        };
        let Some(at) = self.place(old.instrument) else {
            return;
        };
        if left.level.price == joined.level.price {
            let by = new.qty.0.abs_diff(old.qty.0);
            return self.delta(at, &[point(&joined, by, ReasonCode::Several, 0)]);
        }
        let points = [
            point(&left, old.qty.0, ReasonCode::Cancel, 0),
            point(&joined, new.qty.0, ReasonCode::Order, 0),
        ];
        self.delta(at, &points);
    }

    fn status(&mut self, instrument: InstrumentId, status: TradingStatus) {
        if let Some(at) = self.place(instrument) {
            self.listed[at].status = match status {
                TradingStatus::Trading | TradingStatus::QuoteOnly => b'O',
                TradingStatus::PreOpen | TradingStatus::Unknown => b'P',
                TradingStatus::Auction => b'B',
                TradingStatus::Paused | TradingStatus::Halted => b'H',
                TradingStatus::Closed => b'X',
            };
            self.delta(at, &[]);
        }
    }
}

impl NyseWriter for OpenBookWriter {
    type Format = OpenBookFormat;

    fn config(&self) -> &NysePublisherConfig {
        &self.config
    }

    fn groups(&self) -> &Groups<OpenBookFormat> {
        &self.groups
    }

    fn groups_mut(&mut self) -> &mut Groups<OpenBookFormat> {
        &mut self.groups
    }

    fn begin(&mut self, midnight: Nanos) {
        self.midnight = midnight;
        self.groups.format_mut().midnight = midnight;
    }

    /// Completes the packet being filled.
    fn flush(&mut self) {
        let (kind, count, messages) = &mut self.open;
        if *count == 0 {
            return;
        }
        let number = self.groups.store().next().0 as u32;
        let now = self.midnight.after(self.now);
        let header = self
            .groups
            .format()
            .header(*kind, number, RetransFlag::Original, now);
        let header = PacketHeader {
            packet_size: U16::new((PacketHeader::SIZE + messages.len() - 2) as u16),
            num_msgs: *count as u8,
            ..header
        };
        messages.splice(0..0, header.as_bytes().iter().copied());
        self.groups.push(messages);
        messages.clear();
        *count = 0;
    }

    fn recognises(&self, request: &Request) -> Result<(), Refusal> {
        if request.product == product(self.config.venue) {
            Ok(())
        } else {
            Err(Refusal::BadProduct)
        }
    }

    fn find(&self, name: &[u8]) -> Option<u32> {
        let name = tickwire_wire::layout::trim(name);
        let named = |listing: &&Listing| listing.symbol.as_bytes() == name;
        self.listings.iter().find(named).map(|listing| listing.id.0)
    }

    /// OpenBook Ultra 2.1, "Refresh": full updates, the link flag counts packets, the last one says that it
    /// is.
    fn refresh(&mut self, which: core::ops::Range<usize>, now: Nanos, _: &Engine) {
        let room = self.groups.packet_max() - PacketHeader::SIZE;
        let messages: Vec<Vec<u8>> = which.flat_map(|at| self.full(at, room)).collect();
        self.send_packets(FullHead::KIND, &messages, now);
    }

    fn mappings(&mut self, which: core::ops::Range<usize>, now: Nanos) {
        let mapping = |listing: &Listing| openbook::SymbolIndexMapping {
            symbol: nul_padded(listing.symbol.as_bytes()).unwrap_or(Alpha([0; 11])),
            symbol_index: listing.id.0.into(),
            ..openbook::SymbolIndexMapping::BLANK
        };
        let messages: Vec<Vec<u8>> = self.listings[which]
            .iter()
            .map(|listing| mapping(listing).as_bytes().to_vec())
            .collect();
        self.send_packets(openbook::SymbolIndexMapping::KIND, &messages, now);
    }

    fn listings(&self) -> &[Listing] {
        &self.listings
    }

    fn shown(&self, engine: &Engine, instrument: InstrumentId, side: Side) -> Vec<Level> {
        engine.levels(instrument, side).collect()
    }

    fn span(datagram: &[u8]) -> Option<(SeqNo, SeqNo)> {
        let packet = openbook::parse_packet(datagram).ok()?;
        let holds = packet.header.num_msgs > 0;
        holds.then(|| (packet.seq(), packet.seq().next()))
    }
}

impl OpenBookWriter {
    /// Sends messages of one type on the refresh group.
    fn send_packets(&mut self, kind: u16, messages: &[Vec<u8>], now: Nanos) {
        let (mut rest, mut link) = (messages, 0_u8);
        while !rest.is_empty() {
            // 8 bits: it goes on with 1 after 255.
            link = link.checked_add(1).unwrap_or(1);
            let number = self.groups.take_refresh_number(1);
            let mut bytes = vec![0; self.groups.packet_max()];
            let header = PacketHeader {
                link_flag: link,
                ..self
                    .groups
                    .format()
                    .header(kind, number, RetransFlag::Refresh, now)
            };
            let mut packet = PacketBuilder::new(&mut bytes, header);
            let taken = rest.iter().take_while(|message| packet.push(message)).count();
            let length = packet.finish();
            rest = &rest[taken.max(1)..];
            if rest.is_empty() {
                bytes[RETRANS_FLAG_AT] = RetransFlag::LastRefresh as u8;
            }
            bytes.truncate(length);
            self.groups.send_refresh(bytes);
        }
    }
}

persist!(struct OpenBookFormat { midnight } not { product });
persist!(value struct Listed { seq, status });
persist!(struct OpenBookWriter {
    groups, levels, listed, midnight, now, open, total,
} not { config, listings, first });
