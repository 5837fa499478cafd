//! NYSE Integrated Feed on Pillar (XDP): Integrated Feed Client Specification 2.5.g (2025-10-23) and XDP
//! Common Client Specification 2.4.p (2025-08-07). The same on NYSE, Arca, American, National and Texas.
//!
//! ```text
//!  0 PktSize u16   2 DeliveryFlag u8   3 NumberMsgs u8   4 SeqNum u32   8 SendTime s u32   12 SendTimeNS u32
//! 16 messages: MsgSize u16 (itself included), MsgType u16, body; ...
//! ```
//! Little-endian; integers unsigned but for prices, whose decimals the instrument's [`SymbolIndexMapping`]
//! tells. The number is that of the first message in the packet; a heartbeat has no message and the next
//! number to expect. [`parse_packet`] checks a datagram once and whole, so that the walk over its messages
//! cannot fail; [`parse`] reads one message.
//!
//! An encoder fills a struct and takes its bytes:
//! ```
//! use tickwire_wire_nyse::{xdp::DeleteOrder, layout::Pod};
//! let message = DeleteOrder { symbol_index: 17.into(), order_id: 7.into(), ..DeleteOrder::NEW };
//! assert_eq!(message.as_bytes()[..4], [25, 0, 102, 0]);
//! ```

use crate::layout::Pod;
use crate::layout::le::{I32, U16, U32, U64};
use crate::layout::{Alpha, Char, FieldValue, Fields, prefix};
use crate::{Malformed, wire_enum, wire_struct};
use tickwire_market::{Nanos, SeqNo, Side};

/// The longest packet the venue sends, header included.
pub const PACKET_SIZE_MAX: usize = 1400;
/// The longest message, in bytes ([`Imbalance`]).
pub const MESSAGE_SIZE_MAX: usize = Imbalance::SIZE;
/// Bytes of `MsgSize` and `MsgType`.
const MESSAGE_HEAD: usize = 4;

wire_struct! {
    /// The header of every packet, on multicast and over TCP. Common Client 2.4.p, "Packet Header".
    pub struct PacketHeader = "PacketHeader", 16 {
        /// Bytes, header included.
        0 => packet_size: U16, "PktSize";
        /// See [`DeliveryFlag`].
        2 => delivery_flag: u8, "DeliveryFlag";
        3 => number_msgs: u8, "NumberMsgs";
        /// Of the first message; in a heartbeat the next to expect.
        4 => seq_num: U32, "SeqNum";
        /// Seconds since the Unix epoch, UTC.
        8 => send_time: U32, "SendTime";
        12 => send_time_ns: U32, "SendTimeNS";
    }
}

wire_enum! {
    /// `DeliveryFlag` of [`PacketHeader`]: what kind of packet it is.
    pub enum DeliveryFlag {
        /// No message; `SeqNum` is the next to expect.
        1 => Heartbeat;
        /// The publisher failed over.
        10 => Failover;
        /// Sent for the first time; requests too.
        11 => Original;
        /// Holds a [`SequenceNumberReset`].
        12 => SequenceReset;
        /// The one packet of a retransmission.
        13 => Retransmission;
        /// One of several packets of a retransmission.
        15 => RetransmissionPart;
        /// The one packet of a refresh.
        17 => Refresh;
        /// The first packet of a refresh.
        18 => RefreshStart;
        /// Between the first and the last packet of a refresh.
        19 => RefreshPart;
        /// The last packet of a refresh.
        20 => RefreshEnd;
        /// Holds a [`MessageUnavailable`].
        21 => Unavailable;
    }
}

/// The table of the protocol: every message starts with size and type, given once here. `below`: the layout
/// of a type when its size does not reach this other one.
macro_rules! xdp_messages {
    ($(
        $(#[$meta:meta])*
        $kind:literal $name:ident = $spec:literal, $size:literal $(below $longer:ident)? {
            $($(#[$row_meta:meta])* $offset:literal => $field:ident: $ty:ty, $label:literal;)*
        }
    )*) => {
        $(
            wire_struct! {
                $(#[$meta])*
                pub struct $name = $spec, $size {
                    /// Bytes, itself included.
                    0 => msg_size: U16, "MsgSize";
                    2 => msg_type: U16, "MsgType";
                    $($(#[$row_meta])* $offset => $field: $ty, $label;)*
                }
            }

            impl $name {
                /// The message type.
                pub const KIND: u16 = $kind;
                /// A message with its size and type set, all else blank.
                pub const NEW: $name = $name {
                    msg_size: U16::new($size),
                    msg_type: U16::new($kind),
                    ..$name::BLANK
                };
            }
        )*

        /// One message, in place.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum Message<'a> {
            $(#[doc = concat!("`", $spec, "`.")] $name(&'a $name),)*
        }

        /// Every layout: type, name, bytes. A type that has two is read by its size, as the longest that
        /// fits.
        pub const TYPES: &[(u16, &str, usize)] = &[$(($kind, $spec, $size)),*];

        /// Reads one message, from its size field on. Bytes after the layout are ignored: sizes vary by
        /// market and release, and a message may grow.
        #[inline]
        pub fn parse(bytes: &[u8]) -> Result<Message<'_>, Malformed> {
            let (kind, bytes) = split_head(bytes)?;
            match kind {
                $($name::KIND $(if bytes.len() < $longer::SIZE)? => prefix(bytes).map(|(m, _)| Message::$name(m)),)*
                unknown => Err(Malformed::UnknownTemplate(unknown)),
            }
        }

        impl<'a> Message<'a> {
            /// The message's bytes, without any that followed the layout.
            pub fn as_bytes(self) -> &'a [u8] {
                match self {
                    $(Message::$name(m) => m.as_bytes(),)*
                }
            }

            /// Its name.
            pub fn name(self) -> &'static str {
                match self {
                    $(Message::$name(_) => $name::NAME,)*
                }
            }

            /// The message type.
            pub fn kind(self) -> u16 {
                match self {
                    $(Message::$name(_) => $kind,)*
                }
            }

            /// Its fields in wire order, named as in the specification.
            pub fn visit(self, f: &mut dyn FnMut(&'static str, FieldValue<'_>)) {
                match self {
                    $(Message::$name(m) => m.visit(f),)*
                }
            }
        }
    };
}

pub mod v21;

xdp_messages! {
/// Continues the refresh of an instrument in another packet. Common Client 2.4.p, "Refresh Header".
35 RefreshContinuation = "RefreshContinuation", 8 below RefreshHeader {
    /// This packet among those of the instrument's refresh.
    4 => current_refresh_pkt: U16, "CurrentRefreshPkt";
    6 => total_refresh_pkts: U16, "TotalRefreshPkts";
}

/// [`Imbalance`] as XDP 2.1 (2017) and the imbalance feeds end it. XDP Integrated Feed 2.1, "Imbalance
/// Message".
105 ImbalanceXdp21 = "ImbalanceXdp21", 67 below Imbalance {
    /// Seconds since the Unix epoch, UTC.
    4 => source_time: U32, "SourceTime";
    /// Nanoseconds of the second; where no `SourceTime` stands beside it, of the last
    /// [`SourceTimeReference`]'s.
    8 => source_time_ns: U32, "SourceTimeNS";
    /// The instrument's number; in requests 0 for the whole channel.
    12 => symbol_index: U32, "SymbolIndex";
    /// +1 for every message about the instrument within the product.
    16 => symbol_seq_num: U32, "SymbolSeqNum";
    20 => reference_price: I32, "ReferencePrice";
    24 => paired_qty: U32, "PairedQty";
    28 => total_imbalance_qty: U32, "TotalImbalanceQty";
    32 => market_imbalance_qty: U32, "MarketImbalanceQty";
    36 => auction_time: U16, "AuctionTime";
    /// `O` early, `M` core open, `H` halt, `C` close, `P` extreme closing, `R` significant closing.
    38 => auction_type: Char, "AuctionType";
    39 => imbalance_side: Char, "ImbalanceSide";
    40 => continuous_book_clearing: I32, "ContinuousBookClearing";
    44 => auction_interest_clearing: I32, "AuctionInterestClearing";
    48 => ssr_filing_price: I32, "SSRFilingPrice";
    52 => indicative_match: I32, "IndicativeMatch";
    56 => upper_collar: I32, "UpperCollar";
    60 => lower_collar: I32, "LowerCollar";
    64 => auction_status: u8, "AuctionStatus";
    65 => freeze_status: u8, "FreezeStatus";
    66 => num_extensions: u8, "NumExtensions";
}

/// The channel's numbers begin anew; alone in its packet, number 1. Common Client 2.4.p, "Sequence Number
/// Reset".
1 SequenceNumberReset = "SequenceNumberReset", 14 {
    /// Seconds since the Unix epoch, UTC.
    4 => source_time: U32, "SourceTime";
    /// Nanoseconds of the second; where no `SourceTime` stands beside it, of the last
    /// [`SourceTimeReference`]'s.
    8 => source_time_ns: U32, "SourceTimeNS";
    /// Integrated feeds: 11 NYSE, 59 American, 109 National, 157 Arca, 209 Texas.
    12 => product_id: u8, "ProductID";
    13 => channel_id: u8, "ChannelID";
}

/// The second that the nanoseconds of the following messages count from. Common Client 2.4.p, "Source Time
/// Reference".
2 SourceTimeReference = "SourceTimeReference", 16 {
    4 => id: U32, "ID";
    /// +1 for every message about the instrument within the product.
    8 => symbol_seq_num: U32, "SymbolSeqNum";
    /// Seconds since the Unix epoch, UTC.
    12 => source_time: U32, "SourceTime";
}

/// An instrument, and how its prices are scaled. Common Client 2.4.p, "Symbol Index Mapping".
3 SymbolIndexMapping = "SymbolIndexMapping", 44 {
    /// The instrument's number; in requests 0 for the whole channel.
    4 => symbol_index: U32, "SymbolIndex";
    8 => symbol: Alpha<11>, "Symbol";
    19 => reserved1: u8, "Reserved1";
    /// 1 NYSE, 3 Arca, 9 American, 10 National, 11 Texas; 4 and 8 options, 5 bonds.
    20 => market_id: U16, "MarketID";
    22 => system_id: u8, "SystemID";
    23 => exchange_code: Char, "ExchangeCode";
    /// Decimals of every price of this instrument: a price is the field / 10^this.
    24 => price_scale_code: u8, "PriceScaleCode";
    25 => security_type: Char, "SecurityType";
    26 => lot_size: U16, "LotSize";
    /// Scaled by `PriceScaleCode`.
    28 => prev_close_price: I32, "PrevClosePrice";
    32 => prev_close_volume: U32, "PrevCloseVolume";
    36 => price_resolution: u8, "PriceResolution";
    37 => round_lot: Char, "RoundLot";
    38 => mpv: U16, "MPV";
    40 => unit_of_trade: U16, "UnitOfTrade";
    42 => reserved2: U16, "Reserved2";
}

/// The instrument's book is empty. Common Client 2.4.p, "Symbol Clear".
32 SymbolClear = "SymbolClear", 20 {
    /// Seconds since the Unix epoch, UTC.
    4 => source_time: U32, "SourceTime";
    /// Nanoseconds of the second; where no `SourceTime` stands beside it, of the last
    /// [`SourceTimeReference`]'s.
    8 => source_time_ns: U32, "SourceTimeNS";
    /// The instrument's number; in requests 0 for the whole channel.
    12 => symbol_index: U32, "SymbolIndex";
    16 => next_source_seq_num: U32, "NextSourceSeqNum";
}

/// Trading status, halts and short sale restriction of an instrument. Common Client 2.4.p, "Security Status".
34 SecurityStatus = "SecurityStatus", 46 {
    /// Seconds since the Unix epoch, UTC.
    4 => source_time: U32, "SourceTime";
    /// Nanoseconds of the second; where no `SourceTime` stands beside it, of the last
    /// [`SourceTimeReference`]'s.
    8 => source_time_ns: U32, "SourceTimeNS";
    /// The instrument's number; in requests 0 for the whole channel.
    12 => symbol_index: U32, "SymbolIndex";
    /// +1 for every message about the instrument within the product.
    16 => symbol_seq_num: U32, "SymbolSeqNum";
    /// See [`Status`].
    20 => security_status: Char, "SecurityStatus";
    /// `~` none; `M` limit up-limit down; `1` `2` `3` market-wide circuit breaker; others by name of the
    /// reason.
    21 => halt_condition: Char, "HaltCondition";
    22 => reserved: U32, "Reserved";
    26 => price1: I32, "Price1";
    30 => price2: I32, "Price2";
    34 => ssr_trigger_exchange: Char, "SSRTriggerExch";
    35 => ssr_trigger_volume: U32, "SSRTriggerVolume";
    39 => time: U32, "Time";
    /// `~` no restriction, `E` in effect.
    43 => ssr_state: Char, "SSRState";
    /// `P` pre-open, `E` early, `O` core, `L` late, `X` closed.
    44 => market_state: Char, "MarketState";
    45 => session_state: Char, "SessionState";
}

/// Begins the refresh of an instrument. Common Client 2.4.p, "Refresh Header".
35 RefreshHeader = "RefreshHeader", 16 {
    /// This packet among those of the instrument's refresh, from 1.
    4 => current_refresh_pkt: U16, "CurrentRefreshPkt";
    6 => total_refresh_pkts: U16, "TotalRefreshPkts";
    /// The refresh holds the effect of the channel's messages up to this one.
    8 => last_seq_num: U32, "LastSeqNum";
    12 => last_symbol_seq_num: U32, "LastSymbolSeqNum";
}

/// These messages cannot be retransmitted. Common Client 2.4.p, "Message Unavailable".
31 MessageUnavailable = "MessageUnavailable", 14 {
    4 => begin_seq_num: U32, "BeginSeqNum";
    8 => end_seq_num: U32, "EndSeqNum";
    /// Integrated feeds: 11 NYSE, 59 American, 109 National, 157 Arca, 209 Texas.
    12 => product_id: u8, "ProductID";
    13 => channel_id: u8, "ChannelID";
}

/// Asks for messages again. Common Client 2.4.p, "Retransmission Request".
10 RetransmissionRequest = "RetransmissionRequest", 24 {
    4 => begin_seq_num: U32, "BeginSeqNum";
    8 => end_seq_num: U32, "EndSeqNum";
    12 => source_id: Alpha<10>, "SourceID";
    /// Integrated feeds: 11 NYSE, 59 American, 109 National, 157 Arca, 209 Texas.
    22 => product_id: u8, "ProductID";
    23 => channel_id: u8, "ChannelID";
}

/// Whether a request is accepted; the data come by multicast. Common Client 2.4.p, "Request Response".
11 RequestResponse = "RequestResponse", 29 {
    4 => request_seq_num: U32, "RequestSeqNum";
    8 => begin_seq_num: U32, "BeginSeqNum";
    12 => end_seq_num: U32, "EndSeqNum";
    16 => source_id: Alpha<10>, "SourceID";
    /// Integrated feeds: 11 NYSE, 59 American, 109 National, 157 Arca, 209 Texas.
    26 => product_id: u8, "ProductID";
    27 => channel_id: u8, "ChannelID";
    /// See [`ResponseStatus`].
    28 => status: Char, "Status";
}

/// Answers a heartbeat of the request server within 5 seconds. Common Client 2.4.p, "Heartbeat Response".
12 HeartbeatResponse = "HeartbeatResponse", 14 {
    4 => source_id: Alpha<10>, "SourceID";
}

/// Asks for mappings. Common Client 2.4.p, "Symbol Index Mapping Request".
13 SymbolIndexMappingRequest = "SymbolIndexMappingRequest", 21 {
    /// The instrument's number; in requests 0 for the whole channel.
    4 => symbol_index: U32, "SymbolIndex";
    8 => source_id: Alpha<10>, "SourceID";
    /// Integrated feeds: 11 NYSE, 59 American, 109 National, 157 Arca, 209 Texas.
    18 => product_id: u8, "ProductID";
    19 => channel_id: u8, "ChannelID";
    20 => retransmit_method: u8, "RetransmitMethod";
}

/// Asks for a snapshot of one book or of a channel. Common Client 2.4.p, "Refresh Request".
15 RefreshRequest = "RefreshRequest", 20 {
    /// The instrument's number; in requests 0 for the whole channel.
    4 => symbol_index: U32, "SymbolIndex";
    8 => source_id: Alpha<10>, "SourceID";
    /// Integrated feeds: 11 NYSE, 59 American, 109 National, 157 Arca, 209 Texas.
    18 => product_id: u8, "ProductID";
    19 => channel_id: u8, "ChannelID";
}

/// An order entered the book, behind all others of its price. Integrated Feed 2.5.g, "Add Order".
100 AddOrder = "AddOrder", 39 {
    /// Nanoseconds of the second; where no `SourceTime` stands beside it, of the last
    /// [`SourceTimeReference`]'s.
    4 => source_time_ns: U32, "SourceTimeNS";
    /// The instrument's number; in requests 0 for the whole channel.
    8 => symbol_index: U32, "SymbolIndex";
    /// +1 for every message about the instrument within the product.
    12 => symbol_seq_num: U32, "SymbolSeqNum";
    16 => order_id: U64, "OrderID";
    /// Scaled by the instrument's `PriceScaleCode`, as every price is.
    24 => price: I32, "Price";
    28 => volume: U32, "Volume";
    /// `B` buy, `S` sell. In 104 some senders leave it 0: the side is the replaced order's.
    32 => side: Char, "Side";
    33 => firm_id: Alpha<5>, "FirmID";
    38 => reserved: u8, "Reserved";
}

/// Price and volume of an order are now these. Integrated Feed 2.5.g, "Modify Order".
101 ModifyOrder = "ModifyOrder", 35 {
    /// Nanoseconds of the second; where no `SourceTime` stands beside it, of the last
    /// [`SourceTimeReference`]'s.
    4 => source_time_ns: U32, "SourceTimeNS";
    /// The instrument's number; in requests 0 for the whole channel.
    8 => symbol_index: U32, "SymbolIndex";
    /// +1 for every message about the instrument within the product.
    12 => symbol_seq_num: U32, "SymbolSeqNum";
    16 => order_id: U64, "OrderID";
    /// Scaled by the instrument's `PriceScaleCode`, as every price is.
    24 => price: I32, "Price";
    28 => volume: U32, "Volume";
    /// 0 kept its place in the queue, 1 lost it.
    32 => position_change: u8, "PositionChange";
    /// `B` buy, `S` sell. In 104 some senders leave it 0: the side is the replaced order's.
    33 => side: Char, "Side";
    34 => reserved: u8, "Reserved";
}

/// An order left the book. Integrated Feed 2.5.g, "Delete Order".
102 DeleteOrder = "DeleteOrder", 25 {
    /// Nanoseconds of the second; where no `SourceTime` stands beside it, of the last
    /// [`SourceTimeReference`]'s.
    4 => source_time_ns: U32, "SourceTimeNS";
    /// The instrument's number; in requests 0 for the whole channel.
    8 => symbol_index: U32, "SymbolIndex";
    /// +1 for every message about the instrument within the product.
    12 => symbol_seq_num: U32, "SymbolSeqNum";
    16 => order_id: U64, "OrderID";
    24 => reserved: u8, "Reserved";
}

/// Part or all of an order traded; with nothing left it is gone, no deletion follows. Integrated Feed 2.5.g,
/// "Order Execution".
103 OrderExecution = "OrderExecution", 42 {
    /// Nanoseconds of the second; where no `SourceTime` stands beside it, of the last
    /// [`SourceTimeReference`]'s.
    4 => source_time_ns: U32, "SourceTimeNS";
    /// The instrument's number; in requests 0 for the whole channel.
    8 => symbol_index: U32, "SymbolIndex";
    /// +1 for every message about the instrument within the product.
    12 => symbol_seq_num: U32, "SymbolSeqNum";
    16 => order_id: U64, "OrderID";
    24 => trade_id: U32, "TradeID";
    /// Scaled by the instrument's `PriceScaleCode`, as every price is.
    28 => price: I32, "Price";
    32 => volume: U32, "Volume";
    /// 1 counts as volume; 0 is reported again in bulk (each fill of an auction).
    36 => printable_flag: u8, "PrintableFlag";
    37 => reserved: u8, "Reserved";
    /// `@` regular, `C` cash.
    38 => trade_cond1: Char, "TradeCond1";
    /// Space, `F` intermarket sweep, `O` opening, `5` reopening, `6` closing, `7`.
    39 => trade_cond2: Char, "TradeCond2";
    /// Space, `T` extended hours, `U` extended hours out of sequence, `Z` out of sequence.
    40 => trade_cond3: Char, "TradeCond3";
    /// Space, `I` odd lot, `V`.
    41 => trade_cond4: Char, "TradeCond4";
}

/// An order left the book and another one, on the same side, took its place behind all others. Integrated
/// Feed 2.5.g, "Replace Order".
104 ReplaceOrder = "ReplaceOrder", 42 {
    /// Nanoseconds of the second; where no `SourceTime` stands beside it, of the last
    /// [`SourceTimeReference`]'s.
    4 => source_time_ns: U32, "SourceTimeNS";
    /// The instrument's number; in requests 0 for the whole channel.
    8 => symbol_index: U32, "SymbolIndex";
    /// +1 for every message about the instrument within the product.
    12 => symbol_seq_num: U32, "SymbolSeqNum";
    16 => order_id: U64, "OrderID";
    24 => new_order_id: U64, "NewOrderID";
    /// Scaled by the instrument's `PriceScaleCode`, as every price is.
    32 => price: I32, "Price";
    36 => volume: U32, "Volume";
    /// `B` buy, `S` sell. In 104 some senders leave it 0: the side is the replaced order's.
    40 => side: Char, "Side";
    41 => reserved: u8, "Reserved";
}

/// The state of an auction. Integrated Feed 2.5.g, "Imbalance".
105 Imbalance = "Imbalance", 73 {
    /// Seconds since the Unix epoch, UTC.
    4 => source_time: U32, "SourceTime";
    /// Nanoseconds of the second; where no `SourceTime` stands beside it, of the last
    /// [`SourceTimeReference`]'s.
    8 => source_time_ns: U32, "SourceTimeNS";
    /// The instrument's number; in requests 0 for the whole channel.
    12 => symbol_index: U32, "SymbolIndex";
    /// +1 for every message about the instrument within the product.
    16 => symbol_seq_num: U32, "SymbolSeqNum";
    20 => reference_price: I32, "ReferencePrice";
    24 => paired_qty: U32, "PairedQty";
    28 => total_imbalance_qty: U32, "TotalImbalanceQty";
    32 => market_imbalance_qty: U32, "MarketImbalanceQty";
    36 => auction_time: U16, "AuctionTime";
    /// `O` early, `M` core open, `H` halt, `C` close, `P` extreme closing, `R` significant closing.
    38 => auction_type: Char, "AuctionType";
    39 => imbalance_side: Char, "ImbalanceSide";
    40 => continuous_book_clearing: I32, "ContinuousBookClearing";
    44 => auction_interest_clearing: I32, "AuctionInterestClearing";
    48 => ssr_filing_price: I32, "SSRFilingPrice";
    52 => indicative_match: I32, "IndicativeMatch";
    56 => upper_collar: I32, "UpperCollar";
    60 => lower_collar: I32, "LowerCollar";
    64 => auction_status: u8, "AuctionStatus";
    65 => freeze_status: u8, "FreezeStatus";
    66 => num_extensions: u8, "NumExtensions";
    67 => unpaired_qty: U32, "UnpairedQty";
    71 => unpaired_side: Char, "UnpairedSide";
    72 => reserved: Char, "Reserved";
}

/// An order of the book, in a refresh. Integrated Feed 2.5.g, "Add Order Refresh".
106 AddOrderRefresh = "AddOrderRefresh", 43 {
    /// Seconds since the Unix epoch, UTC.
    4 => source_time: U32, "SourceTime";
    /// Nanoseconds of the second; where no `SourceTime` stands beside it, of the last
    /// [`SourceTimeReference`]'s.
    8 => source_time_ns: U32, "SourceTimeNS";
    /// The instrument's number; in requests 0 for the whole channel.
    12 => symbol_index: U32, "SymbolIndex";
    /// +1 for every message about the instrument within the product.
    16 => symbol_seq_num: U32, "SymbolSeqNum";
    20 => order_id: U64, "OrderID";
    /// Scaled by the instrument's `PriceScaleCode`, as every price is.
    28 => price: I32, "Price";
    32 => volume: U32, "Volume";
    /// `B` buy, `S` sell. In 104 some senders leave it 0: the side is the replaced order's.
    36 => side: Char, "Side";
    37 => firm_id: Alpha<5>, "FirmID";
    42 => reserved: u8, "Reserved";
}

/// A trade that touched no displayed order. Integrated Feed 2.5.g, "Non-Displayed Trade".
110 NonDisplayedTrade = "NonDisplayedTrade", 33 {
    /// Nanoseconds of the second; where no `SourceTime` stands beside it, of the last
    /// [`SourceTimeReference`]'s.
    4 => source_time_ns: U32, "SourceTimeNS";
    /// The instrument's number; in requests 0 for the whole channel.
    8 => symbol_index: U32, "SymbolIndex";
    /// +1 for every message about the instrument within the product.
    12 => symbol_seq_num: U32, "SymbolSeqNum";
    16 => trade_id: U32, "TradeID";
    /// Scaled by the instrument's `PriceScaleCode`, as every price is.
    20 => price: I32, "Price";
    24 => volume: U32, "Volume";
    /// 1 counts as volume; 0 is reported again in bulk (each fill of an auction).
    28 => printable_flag: u8, "PrintableFlag";
    /// `@` regular, `C` cash.
    29 => trade_cond1: Char, "TradeCond1";
    /// Space, `F` intermarket sweep, `O` opening, `5` reopening, `6` closing, `7`.
    30 => trade_cond2: Char, "TradeCond2";
    /// Space, `T` extended hours, `U` extended hours out of sequence, `Z` out of sequence.
    31 => trade_cond3: Char, "TradeCond3";
    /// Space, `I` odd lot, `V`.
    32 => trade_cond4: Char, "TradeCond4";
}

/// The bulk print of an auction. Integrated Feed 2.5.g, "Cross Trade".
111 CrossTrade = "CrossTrade", 29 {
    /// Nanoseconds of the second; where no `SourceTime` stands beside it, of the last
    /// [`SourceTimeReference`]'s.
    4 => source_time_ns: U32, "SourceTimeNS";
    /// The instrument's number; in requests 0 for the whole channel.
    8 => symbol_index: U32, "SymbolIndex";
    /// +1 for every message about the instrument within the product.
    12 => symbol_seq_num: U32, "SymbolSeqNum";
    16 => cross_id: U32, "CrossID";
    /// Scaled by the instrument's `PriceScaleCode`, as every price is.
    20 => price: I32, "Price";
    24 => volume: U32, "Volume";
    /// `E` early open, `O` open, `5` reopen, `6` close.
    28 => cross_type: Char, "CrossType";
}

/// A trade is void. Integrated Feed 2.5.g, "Trade Cancel".
112 TradeCancel = "TradeCancel", 20 {
    /// Nanoseconds of the second; where no `SourceTime` stands beside it, of the last
    /// [`SourceTimeReference`]'s.
    4 => source_time_ns: U32, "SourceTimeNS";
    /// The instrument's number; in requests 0 for the whole channel.
    8 => symbol_index: U32, "SymbolIndex";
    /// +1 for every message about the instrument within the product.
    12 => symbol_seq_num: U32, "SymbolSeqNum";
    16 => trade_id: U32, "TradeID";
}

/// An auction's print had another volume. Integrated Feed 2.5.g, "Cross Correction".
113 CrossCorrection = "CrossCorrection", 24 {
    /// Nanoseconds of the second; where no `SourceTime` stands beside it, of the last
    /// [`SourceTimeReference`]'s.
    4 => source_time_ns: U32, "SourceTimeNS";
    /// The instrument's number; in requests 0 for the whole channel.
    8 => symbol_index: U32, "SymbolIndex";
    /// +1 for every message about the instrument within the product.
    12 => symbol_seq_num: U32, "SymbolSeqNum";
    16 => cross_id: U32, "CrossID";
    20 => volume: U32, "Volume";
}

/// Retail interest inside the quote. Integrated Feed 2.5.g, "Retail Price Improvement".
114 RetailPriceImprovement = "RetailPriceImprovement", 17 {
    /// Nanoseconds of the second; where no `SourceTime` stands beside it, of the last
    /// [`SourceTimeReference`]'s.
    4 => source_time_ns: U32, "SourceTimeNS";
    /// The instrument's number; in requests 0 for the whole channel.
    8 => symbol_index: U32, "SymbolIndex";
    /// +1 for every message about the instrument within the product.
    12 => symbol_seq_num: U32, "SymbolSeqNum";
    /// Space none, `A` bid, `B` offer, `C` both.
    16 => indicator: Char, "RPIIndicator";
}

/// The best bid and offer of the venue, on channels of the BBO feeds. BBO Feed 2.5.d, "Quote". Shares the
/// envelope and control messages of the integrated feed; XDP 2.3a has four bytes more.
140 Quote = "Quote", 34 {
    /// Nanoseconds of the second; where no `SourceTime` stands beside it, of the last
    /// [`SourceTimeReference`]'s.
    4 => source_time_ns: U32, "SourceTimeNS";
    /// The instrument's number; in requests 0 for the whole channel.
    8 => symbol_index: U32, "SymbolIndex";
    /// +1 for every message about the instrument within the product.
    12 => symbol_seq_num: U32, "SymbolSeqNum";
    /// Scaled by the instrument's `PriceScaleCode`; 0 with a volume of 0: no offer.
    16 => ask_price: I32, "AskPrice";
    20 => ask_volume: U32, "AskVolume";
    /// Scaled by the instrument's `PriceScaleCode`; 0 with a volume of 0: no bid.
    24 => bid_price: I32, "BidPrice";
    28 => bid_volume: U32, "BidVolume";
    /// `R` regular; others are quotes that are not firm, of an opening or of a close.
    32 => quote_condition: Char, "QuoteCondition";
    /// Space none, `A` bid, `B` offer, `C` both.
    33 => rpi_indicator: Char, "RPIIndicator";
}

/// The day so far, each 60 seconds on a channel of its own. Integrated Feed 2.5.g, "Stock Summary".
223 StockSummary = "StockSummary", 36 {
    /// Seconds since the Unix epoch, UTC.
    4 => source_time: U32, "SourceTime";
    /// Nanoseconds of the second; where no `SourceTime` stands beside it, of the last
    /// [`SourceTimeReference`]'s.
    8 => source_time_ns: U32, "SourceTimeNS";
    /// The instrument's number; in requests 0 for the whole channel.
    12 => symbol_index: U32, "SymbolIndex";
    16 => high_price: I32, "HighPrice";
    20 => low_price: I32, "LowPrice";
    24 => open_price: I32, "Open";
    28 => close_price: I32, "Close";
    32 => total_volume: U32, "TotalVolume";
}}

wire_enum! {
    /// `SecurityStatus` of [`SecurityStatus`].
    pub enum Status {
        /// Trading stopped, for the reason in `HaltCondition`.
        b'4' => Halt;
        /// Trading goes on.
        b'5' => Resume;
        /// Trading stopped by the exchange.
        b'6' => Suspend;
        /// Short sale restriction began.
        b'A' => RestrictionActivated;
        /// Short sale restriction goes on from the day before.
        b'C' => RestrictionContinued;
        /// Short sale restriction ended.
        b'D' => RestrictionDeactivated;
        /// Pre-opening.
        b'P' => PreOpen;
        /// Orders are accepted.
        b'B' => BeginAccepting;
        /// Early session.
        b'E' => Early;
        /// Core session.
        b'O' => Core;
        /// Late session.
        b'L' => Late;
        /// Closed: the book is empty, no deletions are sent.
        b'X' => Closed;
        /// `Price1` to `Price2` is where a halt may resume.
        b'I' => HaltResumeIndication;
        /// `Price1` to `Price2` is where it may open.
        b'G' => PreOpenIndication;
    }
}

wire_enum! {
    /// `Status` of [`RequestResponse`].
    pub enum ResponseStatus {
        /// The data follow by multicast.
        b'0' => Accepted;
        /// The `SourceID` is not known.
        b'1' => BadSource;
        /// More than 1000 messages in one request.
        b'3' => RangeTooBig;
        /// More requests than a day allows.
        b'4' => RequestsExhausted;
        /// More refreshes than a day allows.
        b'5' => RefreshesExhausted;
        /// The messages are no longer kept.
        b'6' => TooOld;
        /// The `ChannelID` is not known.
        b'7' => BadChannel;
        /// The `ProductID` is not known.
        b'8' => BadProduct;
        /// `MsgType` or `MsgSize` of the request are wrong.
        b'9' => BadRequest;
    }
}

/// Which releases of the specification a message is laid out by.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Release {
    /// XDP 2.1 to 2.3, of 2017 and before: [`v21`].
    Xdp21,
    /// 2.5, on Pillar: this module.
    Pillar25,
}

/// What a message tells about its release by itself: the size of an imbalance, conditions of a trade that are
/// or are not among those the specification has, the side of a modification. `None` where its bytes are good
/// in both.
pub fn release(message: &[u8]) -> Option<Release> {
    let letters = |at: usize| {
        let conditions = message.get(at..at + 4)?.first_chunk::<4>()?;
        Some(match trade_conditions(*conditions) {
            true => Release::Pillar25,
            false => Release::Xdp21,
        })
    };
    match (message_type(message)?, message.len()) {
        (105, Imbalance::SIZE..) => Some(Release::Pillar25),
        (105, ImbalanceXdp21::SIZE) => Some(Release::Xdp21),
        (103, OrderExecution::SIZE) => letters(38),
        (110, NonDisplayedTrade::SIZE) => letters(29),
        (101, ModifyOrder::SIZE) => match message[33] {
            b'B' | b'S' => Some(Release::Pillar25),
            _ => Some(Release::Xdp21),
        },
        (104, ReplaceOrder::SIZE) if matches!(message[40], b'B' | b'S') => Some(Release::Pillar25),
        _ => None,
    }
}

/// Whether these are conditions 1 to 4 of a trade in 2.5: in XDP 2.1 other things stand in their place.
#[inline]
pub const fn trade_conditions(conditions: [u8; 4]) -> bool {
    let [first, second, third, fourth] = conditions;
    matches!(first, b'@' | b'C' | b'7' | b'V' | b' ')
        && matches!(second, b' ' | b'F' | b'O' | b'5' | b'6' | b'7')
        && matches!(third, b' ' | b'T' | b'U' | b'Z')
        && matches!(fourth, b' ' | b'I' | b'V')
}

/// The side of a `Side` field, `None` for other bytes than `B` and `S`.
#[inline]
pub const fn side(field: Char) -> Option<Side> {
    Side::of_letter(field.0, *b"BS")
}

/// Text padded with NULs, as NYSE pads symbols and source ids; `None` if it is longer than the field.
pub const fn nul_padded<const N: usize>(text: &[u8]) -> Option<Alpha<N>> {
    if text.len() > N {
        return None;
    }
    let mut bytes = [0; N];
    let mut i = 0;
    while i < text.len() {
        bytes[i] = text[i];
        i += 1;
    }
    Some(Alpha(bytes))
}

/// The type of a message from its first bytes.
#[inline(always)]
pub fn message_type(message: &[u8]) -> Option<u16> {
    u16_at(message, 2)
}

/// The instrument of a message from its first bytes, without parsing; `None` for messages about none, and cut
/// ones.
#[inline(always)]
pub fn symbol_index(message: &[u8]) -> Option<u32> {
    let offset = match message_type(message)? {
        100..=104 | 110..=114 | 140 => 8,
        32 | 34 | 105 | 106 | 223 => 12,
        3 => 4,
        _ => return None,
    };
    let field = message.get(offset..offset + 4)?.first_chunk::<4>()?;
    Some(u32::from_le_bytes(*field))
}

/// Type and instrument of a message in one look at its first 16 bytes, where every message has both; `None`
/// for a shorter one, which is about no instrument. The instrument of one that names none is 0.
#[inline(always)]
pub fn head(message: &[u8]) -> Option<(u16, u32)> {
    let head = message.first_chunk::<16>()?;
    let word = |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
    let kind = u16::from_le_bytes([head[2], head[3]]);
    let index = match kind {
        100..=104 | 110..=114 | 140 => word(8),
        32 | 34 | 105 | 106 | 223 => word(12),
        3 => word(4),
        _ => 0,
    };
    Some((kind, index))
}

/// The order of a message that is about an order of the book, without parsing.
#[inline(always)]
pub fn order_id(message: &[u8]) -> Option<u64> {
    let offset = match message_type(message)? {
        100..=104 => 16,
        106 => 20,
        _ => return None,
    };
    let field = message.get(offset..offset + 8)?.first_chunk::<8>()?;
    Some(u64::from_le_bytes(*field))
}

#[inline(always)]
fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(*bytes.get(at..at + 2)?.first_chunk::<2>()?))
}

/// The type of the first message, and its bytes as its size field has them.
#[inline(always)]
fn split_head(bytes: &[u8]) -> Result<(u16, &[u8]), Malformed> {
    let (Some(size), Some(kind)) = (u16_at(bytes, 0), message_type(bytes)) else {
        return Err(Malformed::truncated(MESSAGE_HEAD, bytes.len()));
    };
    let size = usize::from(size);
    if size < MESSAGE_HEAD {
        return Err(Malformed::length(kind as u8, MESSAGE_HEAD, size));
    }
    match bytes.get(..size) {
        Some(message) => Ok((kind, message)),
        None => Err(Malformed::truncated(size, bytes.len())),
    }
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
    /// Number of the first message, or the next to expect where there is none.
    pub fn seq(&self) -> SeqNo {
        SeqNo(self.header.seq_num.get().into())
    }

    /// What kind of packet it is; `None` for a flag this version does not have.
    pub fn flag(&self) -> Option<DeliveryFlag> {
        DeliveryFlag::from_wire(self.header.delivery_flag)
    }

    /// When it was sent.
    pub fn sent(&self) -> Nanos {
        time(self.header.send_time, self.header.send_time_ns)
    }
}

/// Seconds and nanoseconds since the Unix epoch as one number.
#[inline(always)]
pub fn time(seconds: U32, nanoseconds: U32) -> Nanos {
    Nanos(u64::from(seconds.get()) * Nanos::SECOND + u64::from(nanoseconds.get()))
}

/// Reads a packet. An error means the packet is corrupt as a whole and none of its messages may be used.
#[inline]
pub fn parse_packet(bytes: &[u8]) -> Result<Packet<'_>, Malformed> {
    let (header, _) = prefix::<PacketHeader>(bytes)?;
    let size = usize::from(header.packet_size.get());
    if size < PacketHeader::SIZE {
        return Err(Malformed::length(header.delivery_flag, PacketHeader::SIZE, size));
    }
    let Some(body) = bytes.get(PacketHeader::SIZE..size) else {
        return Err(Malformed::truncated(size, bytes.len()));
    };
    let mut rest = body;
    for _ in 0..header.number_msgs {
        let (_, message) = split_head(rest)?;
        rest = &rest[message.len()..];
    }
    let used = body.len() - rest.len();
    Ok(Packet {
        header,
        messages: Messages {
            bytes: &body[..used],
            left: header.number_msgs,
        },
        trailing: tickwire_wire_core::malformed::saturate(bytes.len() - PacketHeader::SIZE - used),
    })
}

/// Cuts the first packet off a TCP stream; also how many bytes it takes. `None`: more bytes are needed. An
/// error cannot be recovered from: the stream has no other framing.
#[inline]
pub fn split(bytes: &[u8]) -> Result<Option<(Packet<'_>, usize)>, Malformed> {
    let Some(size) = u16_at(bytes, 0).map(usize::from) else {
        return Ok(None);
    };
    if size < PacketHeader::SIZE {
        return Err(Malformed::length(0, PacketHeader::SIZE, size));
    }
    match bytes.get(..size) {
        Some(packet) => parse_packet(packet).map(|packet| Some((packet, size))),
        None => Ok(None),
    }
}

/// The messages of a packet in order: an iterator that has been checked to its end.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Messages<'a> {
    /// Exactly `left` messages.
    bytes: &'a [u8],
    left: u8,
}

impl<'a> Iterator for Messages<'a> {
    type Item = &'a [u8];

    #[inline]
    fn next(&mut self) -> Option<&'a [u8]> {
        let size = usize::from(u16_at(self.bytes, 0)?);
        let (message, rest) = self.bytes.split_at_checked(size)?;
        self.bytes = rest;
        self.left -= 1;
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
    /// Starts a packet whose first message will have number `seq`. The buffer must hold at least a header.
    pub fn new(buffer: &'b mut [u8], flag: DeliveryFlag, seq: u32, sent: Nanos) -> PacketBuilder<'b> {
        assert!(
            buffer.len() >= PacketHeader::SIZE,
            "a packet buffer holds at least the {} bytes of {}",
            PacketHeader::SIZE,
            PacketHeader::NAME
        );
        PacketBuilder {
            buffer,
            header: PacketHeader {
                delivery_flag: flag as u8,
                seq_num: seq.into(),
                send_time: U32::new((sent.0 / Nanos::SECOND) as u32),
                send_time_ns: U32::new((sent.0 % Nanos::SECOND) as u32),
                ..PacketHeader::BLANK
            },
            length: PacketHeader::SIZE,
        }
    }

    /// Appends a message; `false`, and nothing changed, if it does not fit or is not as long as its size
    /// field says.
    #[must_use]
    pub fn push(&mut self, message: &[u8]) -> bool {
        let end = self.length + message.len();
        let is_whole = split_head(message).is_ok_and(|(_, own)| own.len() == message.len());
        if !is_whole || self.header.number_msgs == u8::MAX || end > self.buffer.len().min(u16::MAX.into()) {
            return false;
        }
        self.buffer[self.length..end].copy_from_slice(message);
        self.length = end;
        self.header.number_msgs += 1;
        true
    }

    /// Messages so far.
    pub fn count(&self) -> u8 {
        self.header.number_msgs
    }

    /// Completes the packet and gives its length.
    pub fn finish(mut self) -> usize {
        // At most 16 bits: `push` saw to it.
        self.header.packet_size = U16::new(self.length as u16);
        self.buffer[..PacketHeader::SIZE].copy_from_slice(self.header.as_bytes());
        self.length
    }
}

/// Writes a heartbeat telling the next number; gives its length. The buffer must hold a header.
pub fn heartbeat(buffer: &mut [u8], next: u32, sent: Nanos) -> usize {
    PacketBuilder::new(buffer, DeliveryFlag::Heartbeat, next, sent).finish()
}
