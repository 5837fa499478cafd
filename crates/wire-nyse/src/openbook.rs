//! NYSE OpenBook Ultra 2.1b, with the symbol index mapping of 2.1.k: volume by price of NYSE and NYSE
//! American.
//!
//! ```text
//!  0 PktSize u16 (of what follows)   2 MsgType u16   4 PktSeqNum u32   8 SendTime ms u32   12 ProductID u8
//! 13 RetransFlag u8   14 NumMsgs u8   15 LinkFlag u8   16 messages of that one type; ...
//! ```
//! Big-endian. The type stands in the packet's header only, and packets, not messages, are numbered. Times
//! are milliseconds since midnight in New York; the date is not on the wire. [`parse_packet`] checks a
//! datagram once and whole, so that the walk over its messages cannot fail.

use crate::layout::{Alpha, Char, FieldValue, Fields, I32, U16, U32, prefix};
use crate::layout::{Pod, slice_bytes, slice_prefix};
use crate::{Malformed, wire_enum, wire_struct};
use tickwire_market::{Price, SeqNo};

/// The longest packet the venue sends, header included.
pub const PACKET_SIZE_MAX: usize = 1400;
/// Bytes that `PktSize` does not count: itself.
const UNCOUNTED: usize = 2;

wire_struct! {
    /// The header of every packet, on multicast and over TCP. OpenBook Ultra 2.1, "Packet Header".
    pub struct PacketHeader = "PacketHeader", 16 {
        /// Bytes after this field.
        0 => packet_size: U16, "PktSize";
        /// The type of every message in the packet.
        2 => msg_type: U16, "MsgType";
        /// Of this packet; in a heartbeat the next to expect, or 0 before the start.
        4 => seq_num: U32, "PktSeqNum";
        /// Milliseconds since midnight in New York.
        8 => send_time: U32, "SendTime";
        /// 12 NYSE, 62 American.
        12 => product_id: u8, "ProductID";
        /// See [`RetransFlag`].
        13 => retrans_flag: u8, "RetransFlag";
        14 => num_msgs: u8, "NumMsgs";
        /// The packet's place in a refresh, else 0.
        15 => link_flag: u8, "LinkFlag";
    }
}

wire_enum! {
    /// `RetransFlag` of [`PacketHeader`].
    pub enum RetransFlag {
        /// Sent for the first time.
        1 => Original;
        /// Sent again on request.
        2 => Retransmitted;
        /// Part of a refresh, more follows.
        5 => Refresh;
        /// The last packet of a refresh.
        6 => LastRefresh;
    }
}

/// The type of heartbeats, which have no message.
pub const HEARTBEAT: u16 = 2;

/// Messages of fixed length, given once here.
macro_rules! fixed_messages {
    ($(
        $(#[$meta:meta])*
        $kind:literal $name:ident = $spec:literal, $size:literal {
            $($(#[$row_meta:meta])* $offset:literal => $field:ident: $ty:ty, $label:literal;)*
        }
    )*) => {
        $(
            wire_struct! {
                $(#[$meta])*
                pub struct $name = $spec, $size {
                    $($(#[$row_meta])* $offset => $field: $ty, $label;)*
                }
            }

            impl $name {
                /// The message type, in the packet's header.
                pub const KIND: u16 = $kind;
            }
        )*

        /// One message, in place.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum Message<'a> {
            $(#[doc = concat!("`", $spec, "`.")] $name(&'a $name),)*
            /// `FullUpdate`.
            FullUpdate(FullUpdate<'a>),
            /// `DeltaUpdate`.
            DeltaUpdate(DeltaUpdate<'a>),
        }

        /// Every message: type, name, bytes (the fixed part of those with price points).
        pub const TYPES: &[(u16, &str, usize)] = &[
            $(($kind, $spec, $size),)*
            (FullHead::KIND, FullHead::NAME, FullHead::SIZE),
            (DeltaHead::KIND, DeltaHead::NAME, DeltaHead::SIZE),
        ];

        /// Reads one message of this type, whose bytes are exactly its own.
        #[inline]
        pub fn parse(kind: u16, bytes: &[u8]) -> Result<Message<'_>, Malformed> {
            match kind {
                $($name::KIND => prefix(bytes).map(|(m, _)| Message::$name(m)),)*
                FullHead::KIND => points(bytes).map(|(head, points)| Message::FullUpdate(FullUpdate { head, points })),
                DeltaHead::KIND => points(bytes).map(|(head, points)| Message::DeltaUpdate(DeltaUpdate { head, points })),
                unknown => Err(Malformed::UnknownTemplate(unknown)),
            }
        }

        impl Message<'_> {
            /// Its name.
            pub fn name(&self) -> &'static str {
                match self {
                    $(Message::$name(_) => $name::NAME,)*
                    Message::FullUpdate(_) => FullHead::NAME,
                    Message::DeltaUpdate(_) => DeltaHead::NAME,
                }
            }

            /// Its type.
            pub fn kind(&self) -> u16 {
                match self {
                    $(Message::$name(_) => $kind,)*
                    Message::FullUpdate(_) => FullHead::KIND,
                    Message::DeltaUpdate(_) => DeltaHead::KIND,
                }
            }

            /// Its fields in wire order, named as in the specification; with the number of the price point
            /// they are of.
            pub fn visit(&self, f: &mut dyn FnMut(Option<usize>, &'static str, FieldValue<'_>)) {
                match self {
                    $(Message::$name(m) => m.visit(&mut |name, value| f(None, name, value)),)*
                    Message::FullUpdate(m) => visit_points(m.head, m.points, f),
                    Message::DeltaUpdate(m) => visit_points(m.head, m.points, f),
                }
            }

            /// Writes the message; its length, `None` if `buffer` is too small.
            pub fn encode(&self, buffer: &mut [u8]) -> Option<usize> {
                match self {
                    $(Message::$name(m) => put(buffer, &[m.as_bytes()]),)*
                    Message::FullUpdate(m) => encode_full(buffer, m.head, m.points),
                    Message::DeltaUpdate(m) => encode_delta(buffer, m.head, m.points),
                }
            }
        }

        /// Bytes of the first message of this type in `bytes`.
        #[inline(always)]
        fn message_size(kind: u16, bytes: &[u8]) -> Result<usize, Malformed> {
            match kind {
                $($name::KIND => Ok($size),)*
                FullHead::KIND | DeltaHead::KIND => {
                    let least = if kind == FullHead::KIND { FullHead::SIZE } else { DeltaHead::SIZE };
                    let size = usize::from(prefix::<U16>(bytes)?.0.get());
                    if size < least { Err(Malformed::length(kind as u8, least, size)) } else { Ok(size) }
                }
                unknown => Err(Malformed::UnknownTemplate(unknown)),
            }
        }
    };
}

fixed_messages! {
    /// The channel's numbers begin anew. OpenBook Ultra 2.1, "Sequence Number Reset".
    1 SequenceNumberReset = "SequenceNumberReset", 4 {
        /// The number of the next packet.
        0 => next_seq_number: U32, "NextSeqNumber";
    }

    /// These packets cannot be retransmitted. OpenBook Ultra 2.1, "Message Unavailable".
    5 MessageUnavailable = "MessageUnavailable", 8 {
        0 => begin_seq_num: U32, "BeginSeqNum";
        /// The specification prints another offset; the packet's size proves this one.
        4 => end_seq_num: U32, "EndSeqNum";
    }

    /// Whether a request is accepted; the data come by multicast. OpenBook Ultra 2.1, "Request Response".
    10 RequestResponse = "RequestResponse", 28 {
        /// `PktSeqNum` of the request.
        0 => source_seq_num: U32, "SourceSeqNum";
        4 => source_id: Alpha<20>, "SourceID";
        /// `A` accepted, `R` refused.
        24 => status: Char, "Status";
        /// See [`RejectReason`].
        25 => reject_reason: Char, "RejectReason";
        26 => filler: Alpha<2>, "Filler";
    }

    /// Asks for packets again. OpenBook Ultra 2.1, "Retransmission Request".
    20 RetransmissionRequest = "RetransmissionRequest", 28 {
        0 => begin_seq_num: U32, "BeginSeqNum";
        4 => end_seq_num: U32, "EndSeqNum";
        8 => source_id: Alpha<20>, "SourceID";
    }

    /// Asks for a snapshot of one book, by name. OpenBook Ultra 2.1, "Book Refresh Request".
    22 BookRefreshRequest = "BookRefreshRequest", 36 {
        0 => symbol: Alpha<16>, "Symbol";
        16 => source_id: Alpha<20>, "SourceID";
    }

    /// Answers a heartbeat of the request server within 120 seconds. OpenBook Ultra 2.1, "Heartbeat
    /// Response".
    24 HeartbeatResponse = "HeartbeatResponse", 20 {
        0 => source_id: Alpha<20>, "SourceID";
    }

    /// Asks for a snapshot of one book, by number, or of a channel. OpenBook Ultra 2.1, "Extended Refresh
    /// Request".
    27 ExtendedRefreshRequest = "ExtendedRefreshRequest", 26 {
        0 => source_id: Alpha<20>, "SourceID";
        /// 0: the whole channel.
        20 => symbol_index: U32, "SymbolIndex";
        24 => unused: U16, "Unused";
    }

    /// Asks for mappings. OpenBook Ultra 2.1.k, "Symbol Index Mapping Request".
    34 SymbolIndexMappingRequest = "SymbolIndexMappingRequest", 24 {
        0 => source_id: Alpha<20>, "SourceID";
        /// 0: all.
        20 => symbol_index: U32, "SymbolIndex";
    }

    /// An instrument's number. OpenBook Ultra 2.1.k, "Symbol Index Mapping".
    35 SymbolIndexMapping = "SymbolIndexMapping", 16 {
        0 => symbol: Alpha<11>, "Symbol";
        11 => filler: u8, "Filler";
        12 => symbol_index: U32, "SymbolIndex";
    }
}

wire_struct! {
    /// Replaces a book: its price points are all there are. OpenBook Ultra 2.1, "Full Update".
    pub struct FullHead = "FullUpdate", 34 {
        /// Bytes, itself and the price points included.
        0 => msg_size: U16, "MsgSize";
        2 => symbol_index: U32, "SymbolIndex";
        /// Milliseconds since midnight in New York.
        6 => source_time: U32, "SourceTime";
        /// To be added.
        10 => source_time_micros: U16, "SourceTimeMicros";
        /// +1 for every message about the instrument.
        12 => symbol_seq_num: U32, "SymbolSeqNum";
        16 => source_session_id: u8, "SourceSessionID";
        17 => symbol: Alpha<11>, "Symbol";
        /// Decimals of the prices: a price is the numerator / 10^this.
        28 => price_scale_code: u8, "PriceScaleCode";
        /// Space: none.
        29 => quote_condition: Char, "QuoteCondition";
        /// See [`TradingStatusCode`].
        30 => trading_status: Char, "TradingStatus";
        31 => filler: u8, "Filler";
        32 => mpv: U16, "MPV";
    }
}

wire_struct! {
    /// A price of a book. OpenBook Ultra 2.1, "Full Update", price point.
    pub struct FullPoint = "FullUpdatePoint", 12 {
        0 => price_numerator: I32, "PriceNumerator";
        4 => volume: U32, "Volume";
        8 => num_orders: U16, "NumOrders";
        /// `B` buy, `S` sell.
        10 => side: Char, "Side";
        11 => filler: u8, "Filler";
    }
}

wire_struct! {
    /// Changes prices of a book. OpenBook Ultra 2.1, "Delta Update".
    pub struct DeltaHead = "DeltaUpdate", 20 {
        /// Bytes, itself and the price points included.
        0 => msg_size: U16, "MsgSize";
        2 => symbol_index: U32, "SymbolIndex";
        /// Milliseconds since midnight in New York.
        6 => source_time: U32, "SourceTime";
        /// To be added.
        10 => source_time_micros: U16, "SourceTimeMicros";
        /// Continues the `SymbolSeqNum` of the full update.
        12 => source_seq_num: U32, "SourceSeqNum";
        16 => source_session_id: u8, "SourceSessionID";
        /// Space: none.
        17 => quote_condition: Char, "QuoteCondition";
        /// See [`TradingStatusCode`].
        18 => trading_status: Char, "TradingStatus";
        19 => price_scale_code: u8, "PriceScaleCode";
    }
}

wire_struct! {
    /// A price of a book that changed. OpenBook Ultra 2.1, "Delta Update", price point.
    pub struct DeltaPoint = "DeltaUpdatePoint", 28 {
        0 => price_numerator: I32, "PriceNumerator";
        /// After the event; 0: the price is gone.
        4 => volume: U32, "Volume";
        /// By how much it changed.
        8 => chg_qty: U32, "ChgQty";
        12 => num_orders: U16, "NumOrders";
        /// `B` buy, `S` sell.
        14 => side: Char, "Side";
        /// See [`ReasonCode`].
        15 => reason_code: Char, "ReasonCode";
        /// The deal in an execution, else 0.
        16 => link_id1: U32, "LinkID1";
        20 => link_id2: U32, "LinkID2";
        24 => link_id3: U32, "LinkID3";
    }
}

/// A full update: its fixed part and its price points.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FullUpdate<'a> {
    /// The fixed part.
    pub head: &'a FullHead,
    /// The prices of the book.
    pub points: &'a [FullPoint],
}

/// A delta update: its fixed part and its price points.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DeltaUpdate<'a> {
    /// The fixed part.
    pub head: &'a DeltaHead,
    /// The prices that changed.
    pub points: &'a [DeltaPoint],
}

impl FullHead {
    /// The message type, in the packet's header.
    pub const KIND: u16 = 230;
}

impl DeltaHead {
    /// The message type, in the packet's header.
    pub const KIND: u16 = 231;
}

wire_enum! {
    /// `TradingStatus` of the updates. B, E, L and 6 since 2.1.k.
    pub enum TradingStatusCode {
        /// Pre-opening.
        b'P' => PreOpen;
        /// Orders are accepted.
        b'B' => BeginAccepting;
        /// Early session.
        b'E' => Early;
        /// Open.
        b'O' => Open;
        /// Late session.
        b'L' => Late;
        /// Closed; in one table of the specification `C`.
        b'X' => Closed;
        /// Closed, as one table of the specification prints it.
        b'C' => ClosedOld;
        /// Halted.
        b'H' => Halted;
        /// Suspended.
        b'6' => Suspended;
    }
}

wire_enum! {
    /// `ReasonCode` of [`DeltaPoint`].
    pub enum ReasonCode {
        /// A new order, or more volume.
        b'O' => Order;
        /// A cancellation.
        b'C' => Cancel;
        /// An execution.
        b'E' => Execution;
        /// Several events at once.
        b'X' => Several;
    }
}

wire_enum! {
    /// `RejectReason` of [`RequestResponse`].
    pub enum RejectReason {
        /// Not refused.
        b'0' => None;
        /// No permission.
        b'1' => Permission;
        /// The range makes no sense.
        b'2' => BadRange;
        /// More than 1000 packets in one request.
        b'3' => RangeTooBig;
        /// More requests than a day allows.
        b'4' => RequestsExhausted;
        /// More refreshes than a day allows.
        b'5' => RefreshesExhausted;
        /// The packets are no longer kept.
        b'6' => TooOld;
    }
}

/// A price from its numerator and `PriceScaleCode`, `None` if that is not exact.
#[inline(always)]
pub fn price(numerator: I32, scale: u8) -> Option<Price> {
    Price::from_decimal(numerator.get().into(), scale)
}

/// The fixed part of an update and its price points. `bytes` are the message's own.
#[inline(always)]
fn points<H, P>(bytes: &[u8]) -> Result<(&H, &[P]), Malformed>
where
    H: Pod,
    P: Pod,
{
    let (head, rest) = prefix::<H>(bytes)?;
    match slice_prefix::<P>(rest, rest.len() / size_of::<P>()) {
        Some((points, [])) => Ok((head, points)),
        _ => {
            let whole = bytes.len() - rest.len() % size_of::<P>();
            Err(Malformed::length(0, whole, bytes.len()))
        }
    }
}

fn visit_points<H: Fields, P: Fields>(
    head: &H,
    points: &[P],
    f: &mut dyn FnMut(Option<usize>, &'static str, FieldValue<'_>),
) {
    head.visit(&mut |name, value| f(None, name, value));
    for (i, point) in points.iter().enumerate() {
        point.visit(&mut |name, value| f(Some(i), name, value));
    }
}

/// Writes a full update, its size set; its length, `None` if `buffer` is too small.
pub fn encode_full(buffer: &mut [u8], head: &FullHead, points: &[FullPoint]) -> Option<usize> {
    let size = u16::try_from(FullHead::SIZE + size_of_val(points)).ok()?;
    let head = FullHead {
        msg_size: size.into(),
        ..*head
    };
    put(buffer, &[head.as_bytes(), slice_bytes(points)])
}

/// Writes a delta update, its size set; its length, `None` if `buffer` is too small.
pub fn encode_delta(buffer: &mut [u8], head: &DeltaHead, points: &[DeltaPoint]) -> Option<usize> {
    let size = u16::try_from(DeltaHead::SIZE + size_of_val(points)).ok()?;
    let head = DeltaHead {
        msg_size: size.into(),
        ..*head
    };
    put(buffer, &[head.as_bytes(), slice_bytes(points)])
}

fn put(buffer: &mut [u8], parts: &[&[u8]]) -> Option<usize> {
    let mut end = 0;
    for part in parts {
        buffer.get_mut(end..end + part.len())?.copy_from_slice(part);
        end += part.len();
    }
    Some(end)
}

/// A checked packet.
#[derive(Clone, Debug)]
pub struct Packet<'a> {
    /// Its header.
    pub header: &'a PacketHeader,
    /// Its messages; none in a heartbeat.
    pub messages: Messages<'a>,
    /// Bytes after the last message: ignored, worth counting.
    pub trailing: u16,
}

impl Packet<'_> {
    /// The packet's number, in a heartbeat the next to expect.
    pub fn seq(&self) -> SeqNo {
        SeqNo(self.header.seq_num.get().into())
    }

    /// The type of its messages.
    pub fn kind(&self) -> u16 {
        self.header.msg_type.get()
    }

    /// Why it was sent; `None` for a flag this version does not have.
    pub fn flag(&self) -> Option<RetransFlag> {
        RetransFlag::from_wire(self.header.retrans_flag)
    }
}

/// Reads a packet. An error means the packet is corrupt as a whole and none of its messages may be used.
#[inline]
pub fn parse_packet(bytes: &[u8]) -> Result<Packet<'_>, Malformed> {
    let (header, _) = prefix::<PacketHeader>(bytes)?;
    let size = usize::from(header.packet_size.get()) + UNCOUNTED;
    let kind = header.msg_type.get();
    if size < PacketHeader::SIZE {
        return Err(Malformed::length(kind as u8, PacketHeader::SIZE, size));
    }
    let Some(body) = bytes.get(PacketHeader::SIZE..size) else {
        return Err(Malformed::truncated(size, bytes.len()));
    };
    let mut rest = body;
    for _ in 0..header.num_msgs {
        let need = message_size(kind, rest)?;
        match rest.split_at_checked(need) {
            Some((_, after)) => rest = after,
            None => return Err(Malformed::truncated(need, rest.len())),
        }
    }
    let used = body.len() - rest.len();
    Ok(Packet {
        header,
        messages: Messages {
            kind,
            bytes: &body[..used],
            left: header.num_msgs,
        },
        trailing: tickwire_wire_core::malformed::saturate(bytes.len() - PacketHeader::SIZE - used),
    })
}

/// The type and messages of a packet that [`parse_packet`] has accepted, without checking it again: of
/// another one the walk may end early.
#[inline]
pub fn messages(bytes: &[u8]) -> Option<(u16, Messages<'_>)> {
    let (header, body) = prefix::<PacketHeader>(bytes).ok()?;
    let kind = header.msg_type.get();
    let left = header.num_msgs;
    Some((
        kind,
        Messages {
            kind,
            bytes: body,
            left,
        },
    ))
}

/// Cuts the first packet off a TCP stream; also how many bytes it takes. `None`: more bytes are needed. An
/// error cannot be recovered from: the stream has no other framing.
#[inline]
pub fn split(bytes: &[u8]) -> Result<Option<(Packet<'_>, usize)>, Malformed> {
    let Ok((size, _)) = prefix::<U16>(bytes) else {
        return Ok(None);
    };
    let size = usize::from(size.get()) + UNCOUNTED;
    if size < PacketHeader::SIZE {
        return Err(Malformed::length(0, PacketHeader::SIZE, size));
    }
    match bytes.get(..size) {
        Some(packet) => parse_packet(packet).map(|packet| Some((packet, size))),
        None => Ok(None),
    }
}

/// The messages of a packet in order, each with exactly its own bytes: an iterator that has been checked to
/// its end.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Messages<'a> {
    kind: u16,
    /// Exactly `left` messages.
    bytes: &'a [u8],
    left: u8,
}

impl<'a> Iterator for Messages<'a> {
    type Item = &'a [u8];

    #[inline]
    fn next(&mut self) -> Option<&'a [u8]> {
        self.left = self.left.checked_sub(1)?;
        let (message, rest) = self
            .bytes
            .split_at_checked(message_size(self.kind, self.bytes).ok()?)?;
        self.bytes = rest;
        Some(message)
    }

    #[inline]
    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left.into(), Some(self.left.into()))
    }
}

impl ExactSizeIterator for Messages<'_> {}
impl core::iter::FusedIterator for Messages<'_> {}

/// Builds one packet in a caller's buffer, whose size is the limit of the packet (the venue's is
/// [`PACKET_SIZE_MAX`]).
#[derive(Debug)]
pub struct PacketBuilder<'b> {
    buffer: &'b mut [u8],
    header: PacketHeader,
    length: usize,
}

impl<'b> PacketBuilder<'b> {
    /// Starts a packet with this header; size and number of messages are set by the builder. The buffer must
    /// hold at least a header.
    pub fn new(buffer: &'b mut [u8], header: PacketHeader) -> PacketBuilder<'b> {
        assert!(
            buffer.len() >= PacketHeader::SIZE,
            "a packet buffer holds at least the {} bytes of {}",
            PacketHeader::SIZE,
            PacketHeader::NAME
        );
        PacketBuilder {
            buffer,
            header: PacketHeader {
                num_msgs: 0,
                ..header
            },
            length: PacketHeader::SIZE,
        }
    }

    /// Appends a message of the header's type; `false`, and nothing changed, if it does not fit or is none.
    #[must_use]
    pub fn push(&mut self, message: &[u8]) -> bool {
        let end = self.length + message.len();
        let is_whole = message_size(self.header.msg_type.get(), message) == Ok(message.len());
        if !is_whole || self.header.num_msgs == u8::MAX || end > self.buffer.len().min(u16::MAX.into()) {
            return false;
        }
        self.buffer[self.length..end].copy_from_slice(message);
        self.length = end;
        self.header.num_msgs += 1;
        true
    }

    /// Messages so far.
    pub fn count(&self) -> u8 {
        self.header.num_msgs
    }

    /// Completes the packet and gives its length.
    pub fn finish(mut self) -> usize {
        // At most 16 bits: `push` saw to it.
        self.header.packet_size = U16::new((self.length - UNCOUNTED) as u16);
        self.buffer[..PacketHeader::SIZE].copy_from_slice(self.header.as_bytes());
        self.length
    }
}
