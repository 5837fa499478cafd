//! Moscow Exchange ASTS market data: FIX 5.0 SP2 messages in FAST 1.1, equities (FOND) and currency (CURR).
//!
//! A datagram is a preamble, the message's sequence number as four little-endian bytes, and one FAST message
//! that stands alone: the dictionaries are reset before each. The templates are the exchange's and change
//! over the years, some under the same identifier (3610 in 2020), so nothing here knows a layout:
//! [`Decoder::new`] resolves the fields it needs in whatever template file it is given, by FIX tag, and
//! refuses a file that lacks them.
//!
//! Sources: template sets `FIX50SP2-2017-Mar.xml` and `FIX50SP2-2020-Nov.xml`, "Market Data Multicast User
//! Guide" 4.5; what was inferred from recorded packets is in `docs/protocols/moex.md`. Times are the
//! exchange's, UTC+3.

pub mod replay;

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

use tickwire_market::{Nanos, OrderId, Price, Side, Volume};

use crate::fast::{
    self, Decimal, FastError, Fields, Limits, Plan, Position, Record, SequenceRef, Slot, TemplateRef,
};
use crate::fast::{Entries, Value};

/// Bytes before the FAST message of a datagram.
pub const PREAMBLE_LEN: usize = 4;

/// The longest message that a replay server may announce (real ones stay below 1,500 bytes).
pub const REPLAY_MESSAGE_MAX: usize = 65_536;

/// FIX tags that the views read.
mod tag {
    pub(super) const CURRENCY: u32 = 15;
    pub(super) const SEQ: u32 = 34;
    pub(super) const MESSAGE_TYPE: u32 = 35;
    pub(super) const SENDING_TIME: u32 = 52;
    pub(super) const SYMBOL: u32 = 55;
    pub(super) const TARGET: u32 = 56;
    pub(super) const TEXT: u32 = 58;
    pub(super) const RPT_SEQ: u32 = 83;
    pub(super) const DESCRIPTION: u32 = 107;
    pub(super) const HEARTBEAT_INTERVAL: u32 = 108;
    pub(super) const ENTRIES: u32 = 268;
    pub(super) const ENTRY_TYPE: u32 = 269;
    pub(super) const ENTRY_PX: u32 = 270;
    pub(super) const ENTRY_SIZE: u32 = 271;
    pub(super) const ENTRY_DATE: u32 = 272;
    pub(super) const ENTRY_TIME: u32 = 273;
    pub(super) const ENTRY_ID: u32 = 278;
    pub(super) const ACTION: u32 = 279;
    pub(super) const TRADING_STATUS: u32 = 326;
    pub(super) const BOARD: u32 = 336;
    pub(super) const SESSION_STATUS: u32 = 340;
    pub(super) const LAST_SEQ_PROCESSED: u32 = 369;
    pub(super) const ROUND_LOT: u32 = 561;
    pub(super) const SESSION: u32 = 625;
    pub(super) const LAST_FRAGMENT: u32 = 893;
    pub(super) const TOTAL_REPORTS: u32 = 911;
    pub(super) const MIN_PRICE_INCREMENT: u32 = 969;
    pub(super) const REF_ORDER: u32 = 1080;
    pub(super) const VERSION: u32 = 1137;
    pub(super) const SESSION_RULES: u32 = 1309;
    pub(super) const SEGMENTS: u32 = 1310;
    pub(super) const SECURITY_STATUS: u32 = 1682;
    pub(super) const FACE_VALUE: u32 = 5508;
    pub(super) const AUCTION: u32 = 5509;
    pub(super) const TRADE_VALUE: u32 = 6143;
    pub(super) const ROUTE_FIRST: u32 = 7944;
    pub(super) const ORIG_TIME: u32 = 9412;
    pub(super) const ORDER_SIDE: u32 = 10504;
    pub(super) const ORDER_STATUS: u32 = 10505;
}

/// What is wrong with a packet, or with a message to encode.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MoexError {
    /// Shorter than its preamble.
    Truncated,
    /// The FAST message is malformed or of an unknown template.
    Fast(FastError),
    /// Bytes follow the message: with the wrong template file the fields rarely end where the datagram does.
    Trailing {
        /// How many.
        extra: u32,
    },
    /// The preamble is not the message's sequence number.
    Preamble {
        /// The preamble.
        preamble: u32,
        /// `MsgSeqNum` (34).
        seq: u32,
    },
    /// A field has a value that the exchange does not document, or is absent where it must not be.
    BadValue {
        /// Its FIX tag.
        tag: u32,
    },
    /// A number does not fit: a price beyond nine decimals, a fractional or negative quantity.
    OutOfRange {
        /// Its FIX tag.
        tag: u32,
    },
    /// A replay server announces a message longer than [`REPLAY_MESSAGE_MAX`], or an empty one.
    ReplayLength(u32),
    /// A message to encode does not fit the record or the output.
    NoRoom,
    /// The template handle belongs to another kind of message.
    WrongTemplate,
}

impl From<FastError> for MoexError {
    #[cold]
    fn from(e: FastError) -> MoexError {
        MoexError::Fast(e)
    }
}

impl fmt::Display for MoexError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MoexError::Truncated => f.write_str("shorter than the preamble"),
            MoexError::Fast(e) => write!(f, "FAST: {e}"),
            MoexError::Trailing { extra } => write!(f, "{extra} bytes behind the message"),
            MoexError::Preamble { preamble, seq } => write!(f, "preamble {preamble}, but MsgSeqNum {seq}"),
            MoexError::BadValue { tag } => write!(f, "field {tag}: absent or undocumented value"),
            MoexError::OutOfRange { tag } => write!(f, "field {tag}: out of range"),
            MoexError::ReplayLength(len) => write!(f, "replay server announces a message of {len} bytes"),
            MoexError::NoRoom => f.write_str("message does not fit"),
            MoexError::WrongTemplate => f.write_str("template of another kind of message"),
        }
    }
}

impl core::error::Error for MoexError {}

/// A template file without a field that its kind of message needs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MissingField {
    /// The template's identifier.
    pub template: u32,
    /// The missing FIX tag.
    pub tag: u32,
}

impl fmt::Display for MissingField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "template {} has no field with id {}", self.template, self.tag)
    }
}

impl core::error::Error for MissingField {}

/// What a template is for, told by its message type (35) and name.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum MessageKind {
    /// `X-OLR-*`: changes of orders.
    OrderLog,
    /// `W-OLS-*`: all orders of one instrument.
    OrderSnapshot,
    /// `X-TLR-*`: trades.
    Trades,
    /// `W-TLS-*`: all trades of one instrument.
    TradeSnapshot,
    /// `X-MSR-*` and `X-Generic`: changes of statistics.
    Statistics,
    /// `W-Generic`: all statistics of one instrument.
    StatisticsSnapshot,
    /// `d`: an instrument.
    SecurityDefinition,
    /// `f`: an instrument's trading status.
    SecurityStatus,
    /// `h`: a board's trading status.
    SessionStatus,
    /// `0`: nothing to say for a while; carries the next sequence number.
    Heartbeat,
    /// `A`: begins a replay session.
    Logon,
    /// `5`: ends a replay session.
    Logout,
    /// Any other template.
    Other,
}

impl MessageKind {
    fn of(template: &TemplateRef<'_>) -> MessageKind {
        let name = template.name();
        let family = name.split('-').nth(1).unwrap_or("");
        match (template.constant(tag::MESSAGE_TYPE), family) {
            (Some(b"X"), "OLR") => MessageKind::OrderLog,
            (Some(b"W"), "OLS") => MessageKind::OrderSnapshot,
            (Some(b"X"), "TLR") => MessageKind::Trades,
            (Some(b"W"), "TLS") => MessageKind::TradeSnapshot,
            (Some(b"X"), "MSR" | "Generic") => MessageKind::Statistics,
            (Some(b"W"), "Generic") => MessageKind::StatisticsSnapshot,
            (Some(b"d"), _) => MessageKind::SecurityDefinition,
            (Some(b"f"), _) => MessageKind::SecurityStatus,
            (Some(b"h"), _) => MessageKind::SessionStatus,
            (Some(b"0"), _) => MessageKind::Heartbeat,
            (Some(b"A"), _) => MessageKind::Logon,
            (Some(b"5"), _) => MessageKind::Logout,
            _ => MessageKind::Other,
        }
    }

    /// The fields of a message, and of its entries, without which its view makes no sense.
    fn needs(self) -> (&'static [u32], &'static [u32]) {
        use tag::*;
        match self {
            MessageKind::OrderLog => (
                &[SEQ, SENDING_TIME],
                &[
                    ACTION, ENTRY_TYPE, ENTRY_ID, SYMBOL, RPT_SEQ, ENTRY_PX, ENTRY_SIZE, BOARD,
                ],
            ),
            MessageKind::OrderSnapshot => (
                &[
                    SEQ,
                    SENDING_TIME,
                    SYMBOL,
                    BOARD,
                    RPT_SEQ,
                    LAST_FRAGMENT,
                    ROUTE_FIRST,
                ],
                &[ENTRY_TYPE, ENTRY_ID, ENTRY_PX, ENTRY_SIZE],
            ),
            MessageKind::Trades => (
                &[SEQ, SENDING_TIME],
                &[ENTRY_TYPE, ENTRY_ID, SYMBOL, RPT_SEQ, ENTRY_PX, ENTRY_SIZE, BOARD],
            ),
            MessageKind::TradeSnapshot => (
                &[
                    SEQ,
                    SENDING_TIME,
                    SYMBOL,
                    BOARD,
                    RPT_SEQ,
                    LAST_FRAGMENT,
                    ROUTE_FIRST,
                ],
                &[ENTRY_TYPE, ENTRY_ID, ENTRY_PX, ENTRY_SIZE],
            ),
            MessageKind::Statistics => (&[SEQ, SENDING_TIME], &[ENTRY_TYPE, SYMBOL, RPT_SEQ]),
            MessageKind::StatisticsSnapshot => (&[SEQ, SENDING_TIME, SYMBOL, RPT_SEQ], &[ENTRY_TYPE]),
            MessageKind::SecurityDefinition => (&[SEQ, SENDING_TIME, SYMBOL], &[]),
            MessageKind::SecurityStatus => (&[SEQ, SENDING_TIME, SYMBOL, TRADING_STATUS], &[]),
            MessageKind::SessionStatus => (&[SEQ, SENDING_TIME, SESSION_STATUS, BOARD], &[]),
            MessageKind::Heartbeat | MessageKind::Logon | MessageKind::Logout => (&[SEQ, SENDING_TIME], &[]),
            MessageKind::Other => (&[], &[]),
        }
    }
}

/// Slots of one level (a message or the entries of a sequence), by tag.
#[derive(Clone, Copy, Debug)]
struct Slots {
    seq: Slot,
    sending_time: Slot,
    symbol: Slot,
    board: Slot,
    session: Slot,
    rpt_seq: Slot,
    action: Slot,
    kind: Slot,
    id: Slot,
    price: Slot,
    size: Slot,
    date: Slot,
    time: Slot,
    orig_time: Slot,
    order_status: Slot,
    order_side: Slot,
    ref_order: Slot,
    trade_value: Slot,
    last_seq_processed: Slot,
    last_fragment: Slot,
    route_first: Slot,
    session_status: Slot,
    security_status: Slot,
    trading_status: Slot,
    auction: Slot,
    text: Slot,
    total_reports: Slot,
    description: Slot,
    currency: Slot,
    min_price_increment: Slot,
    face_value: Slot,
    round_lot: Slot,
    target: Slot,
    heartbeat_interval: Slot,
    version: Slot,
}

impl Slots {
    fn resolve(slot: impl Fn(u32) -> Slot) -> Slots {
        Slots {
            seq: slot(tag::SEQ),
            sending_time: slot(tag::SENDING_TIME),
            symbol: slot(tag::SYMBOL),
            board: slot(tag::BOARD),
            session: slot(tag::SESSION),
            rpt_seq: slot(tag::RPT_SEQ),
            action: slot(tag::ACTION),
            kind: slot(tag::ENTRY_TYPE),
            id: slot(tag::ENTRY_ID),
            price: slot(tag::ENTRY_PX),
            size: slot(tag::ENTRY_SIZE),
            date: slot(tag::ENTRY_DATE),
            time: slot(tag::ENTRY_TIME),
            orig_time: slot(tag::ORIG_TIME),
            order_status: slot(tag::ORDER_STATUS),
            order_side: slot(tag::ORDER_SIDE),
            ref_order: slot(tag::REF_ORDER),
            trade_value: slot(tag::TRADE_VALUE),
            last_seq_processed: slot(tag::LAST_SEQ_PROCESSED),
            last_fragment: slot(tag::LAST_FRAGMENT),
            route_first: slot(tag::ROUTE_FIRST),
            session_status: slot(tag::SESSION_STATUS),
            security_status: slot(tag::SECURITY_STATUS),
            trading_status: slot(tag::TRADING_STATUS),
            auction: slot(tag::AUCTION),
            text: slot(tag::TEXT),
            total_reports: slot(tag::TOTAL_REPORTS),
            description: slot(tag::DESCRIPTION),
            currency: slot(tag::CURRENCY),
            min_price_increment: slot(tag::MIN_PRICE_INCREMENT),
            face_value: slot(tag::FACE_VALUE),
            round_lot: slot(tag::ROUND_LOT),
            target: slot(tag::TARGET),
            heartbeat_interval: slot(tag::HEARTBEAT_INTERVAL),
            version: slot(tag::VERSION),
        }
    }
}

/// Where the fields of one template are.
#[derive(Clone, Copy, Debug)]
struct View {
    kind: MessageKind,
    template: u32,
    head: Slots,
    /// Market data entries, or the market segments of a definition.
    entries: Option<(SequenceRef, Slots)>,
    /// The boards of a market segment.
    boards: Option<(SequenceRef, Slots)>,
}

impl View {
    fn resolve(plan: &Plan, template: TemplateRef<'_>) -> Result<View, MissingField> {
        let kind = MessageKind::of(&template);
        let head = Slots::resolve(|tag| template.slot(tag));
        let of = |sequence: SequenceRef| (sequence, Slots::resolve(|tag| plan.entry_slot(&sequence, tag)));
        let groups = if kind == MessageKind::SecurityDefinition {
            tag::SEGMENTS
        } else {
            tag::ENTRIES
        };
        let sequence = template.sequence(groups);
        let nested = sequence.and_then(|s| plan.nested_sequence(&s, tag::SESSION_RULES));
        let missing = |tag| MissingField {
            template: template.id(),
            tag,
        };
        let (in_head, in_entries) = kind.needs();
        if let Some(&tag) = in_head.iter().find(|&&tag| !template.slot(tag).exists()) {
            return Err(missing(tag));
        }
        if !in_entries.is_empty() {
            let sequence = sequence.ok_or(missing(groups))?;
            if let Some(&tag) = in_entries
                .iter()
                .find(|&&tag| !plan.entry_slot(&sequence, tag).exists())
            {
                return Err(missing(tag));
            }
        }
        Ok(View {
            kind,
            template: template.id(),
            head,
            entries: sequence.map(of),
            boards: nested.map(of),
        })
    }
}

fn views(plan: &Plan) -> Result<Vec<View>, MissingField> {
    plan.templates().map(|t| View::resolve(plan, t)).collect()
}

/// Decodes datagrams and replayed messages. Nothing is allocated after [`Decoder::new`].
#[derive(Clone, Debug)]
pub struct Decoder {
    fast: fast::Decoder,
    views: Vec<View>,
}

impl Decoder {
    /// A decoder for a template file.
    pub fn new(plan: Arc<Plan>, limits: Limits) -> Result<Decoder, MissingField> {
        let views = views(&plan)?;
        Ok(Decoder {
            fast: fast::Decoder::new(plan, limits),
            views,
        })
    }

    /// Decodes a whole datagram.
    #[inline]
    pub fn packet(&mut self, datagram: &[u8]) -> Result<Message<'_>, MoexError> {
        let (preamble, bytes) = datagram
            .split_first_chunk::<PREAMBLE_LEN>()
            .ok_or(MoexError::Truncated)?;
        let preamble = u32::from_le_bytes(*preamble);
        let message = self.message(bytes)?;
        let seq = message.seq();
        if seq != preamble && message.kind() != MessageKind::Other {
            return Err(MoexError::Preamble { preamble, seq });
        }
        Ok(message)
    }

    /// Decodes a message without preamble, as a replay server sends it behind its length ([`split_replay`]).
    #[inline]
    pub fn message(&mut self, bytes: &[u8]) -> Result<Message<'_>, MoexError> {
        let (message, taken) = self.fast.decode_alone(bytes)?;
        if taken != bytes.len() {
            return Err(MoexError::Trailing {
                extra: (bytes.len() - taken) as u32,
            });
        }
        let view = self
            .views
            .get(message.template_index())
            .ok_or(MoexError::WrongTemplate)?;
        Ok(Message {
            view,
            raw: message,
            fields: message.fields(),
        })
    }
}

/// The sequence number of a datagram, all that arbitration of the lines A and B needs.
#[inline]
pub fn preamble(datagram: &[u8]) -> Option<u32> {
    datagram
        .first_chunk::<PREAMBLE_LEN>()
        .map(|p| u32::from_le_bytes(*p))
}

/// The next message of a replay connection's byte stream and how many bytes it takes with its length; `None`:
/// not all there yet.
pub fn split_replay(stream: &[u8]) -> Result<Option<(&[u8], usize)>, MoexError> {
    let Some((len, rest)) = stream.split_first_chunk::<4>() else {
        return Ok(None);
    };
    let len = u32::from_le_bytes(*len);
    if len == 0 || len as usize > REPLAY_MESSAGE_MAX {
        return Err(MoexError::ReplayLength(len));
    }
    Ok(rest
        .get(..len as usize)
        .map(|message| (message, 4 + len as usize)))
}

/// A decoded message.
#[derive(Clone, Copy)]
pub struct Message<'a> {
    view: &'a View,
    raw: fast::Message<'a>,
    fields: Fields<'a>,
}

impl<'a> Message<'a> {
    /// What it is; decides which of the views below has something to say.
    #[inline]
    pub fn kind(&self) -> MessageKind {
        self.view.kind
    }

    /// The template's identifier.
    pub fn template_id(&self) -> u32 {
        self.view.template
    }

    /// The message with all its fields, for those that the views leave out.
    pub fn raw(&self) -> fast::Message<'a> {
        self.raw
    }

    /// `MsgSeqNum` (34), 0 when the template has none.
    #[inline]
    pub fn seq(&self) -> u32 {
        self.fields.unsigned(self.view.head.seq).unwrap_or(0) as u32
    }

    /// `SendingTime` (52) of the form `YYMMDDhhmmssuuuuuu`; `None` when that is no date and time. Gateways
    /// before 4.5 sent other forms, which may read as a wrong time.
    pub fn sending_time(&self) -> Option<Nanos> {
        self.fields
            .unsigned(self.view.head.sending_time)
            .and_then(sending_time_to_nanos)
    }

    /// `SendingTime` (52) as it is on the wire: rises with time within a year, and over years too since
    /// gateway 4.5. 0 when the template has none.
    #[inline]
    pub fn sending_stamp(&self) -> u64 {
        self.fields.unsigned(self.view.head.sending_time).unwrap_or(0)
    }

    /// Entries of an order log or order snapshot. A snapshot's entries take instrument and `rpt_seq` from its
    /// header and are all new.
    #[inline]
    pub fn orders(&self) -> OrderEntries<'a> {
        OrderEntries(self.entries())
    }

    /// Entries of a trade log or trade snapshot.
    pub fn trades(&self) -> TradeEntries<'a> {
        TradeEntries(self.entries())
    }

    /// Entries of a statistics message.
    pub fn statistics(&self) -> StatisticEntries<'a> {
        StatisticEntries(self.entries())
    }

    #[inline]
    fn entries(&self) -> Typed<'a> {
        let (entries, slots) = match &self.view.entries {
            Some((sequence, slots)) => (Some(self.fields.entries(sequence)), slots),
            None => (None, &self.view.head),
        };
        Typed {
            entries,
            slots,
            head: self.fields,
            head_slots: &self.view.head,
            time: (0, Nanos(0)),
        }
    }

    /// The header of an order, trade or statistics snapshot.
    pub fn snapshot_header(&self) -> Result<SnapshotHeader<'a>, MoexError> {
        let (fields, slots) = (&self.fields, &self.view.head);
        Ok(SnapshotHeader {
            symbol: fields.text(slots.symbol).unwrap_or(&[]),
            board: fields.text(slots.board).unwrap_or(&[]),
            rpt_seq: rpt_seq(fields, slots.rpt_seq)?,
            last_seq_processed: fields.unsigned(slots.last_seq_processed).map(|v| v as u32),
            first_fragment: fields.unsigned(slots.route_first) == Some(1),
            last_fragment: fields.unsigned(slots.last_fragment) == Some(1),
            session_status: small(fields, slots.session_status),
            trading_status: small(fields, slots.security_status),
            auction: fields.unsigned(slots.auction).map(|v| v as u32),
        })
    }

    /// An instrument.
    pub fn definition(&self) -> Definition<'a> {
        let (fields, slots) = (&self.fields, &self.view.head);
        let price = |slot| fields.decimal(slot).and_then(Decimal::to_price);
        Definition {
            symbol: fields.text(slots.symbol).unwrap_or(&[]),
            description: fields.text(slots.description).unwrap_or(&[]),
            currency: fields.text(slots.currency).unwrap_or(&[]),
            total_reports: fields.unsigned(slots.total_reports).map(|v| v as u32),
            min_price_increment: price(slots.min_price_increment),
            face_value: price(slots.face_value),
        }
    }

    /// The boards that an instrument of a [`Message::definition`] trades on.
    pub fn boards(&self) -> impl Iterator<Item = Board<'a>> + use<'a> {
        let view = self.view;
        let segments = view
            .entries
            .as_ref()
            .map(|(sequence, slots)| (self.fields.entries(sequence), slots));
        segments
            .into_iter()
            .flat_map(|(segments, slots)| segments.map(move |s| (s, slots)))
            .flat_map(move |(segment, segment_slots)| {
                let round_lot = segment
                    .decimal(segment_slots.round_lot)
                    .and_then(Decimal::to_integer);
                let boards = view
                    .boards
                    .as_ref()
                    .map(|(sequence, slots)| (segment.entries(sequence), slots));
                boards
                    .into_iter()
                    .flat_map(|(boards, slots)| boards.map(move |b| (b, slots)))
                    .map(move |(board, slots)| Board {
                        board: board.text(slots.board).unwrap_or(&[]),
                        session: board.text(slots.session).unwrap_or(&[]),
                        trading_status: small(&board, slots.trading_status),
                        round_lot: round_lot.and_then(|lot| u32::try_from(lot).ok()),
                    })
            })
    }

    /// A change of an instrument's ([`MessageKind::SecurityStatus`]) or a board's
    /// ([`MessageKind::SessionStatus`], without symbol) trading status.
    pub fn status(&self) -> Status<'a> {
        let (fields, slots) = (&self.fields, &self.view.head);
        Status {
            symbol: fields.text(slots.symbol).unwrap_or(&[]),
            board: fields.text(slots.board).unwrap_or(&[]),
            session: fields.text(slots.session).unwrap_or(&[]),
            trading_status: small(fields, slots.trading_status),
            session_status: small(fields, slots.session_status),
            auction: fields.unsigned(slots.auction).map(|v| v as u32),
            text: self.text(),
        }
    }

    /// The reason of a [`MessageKind::Logout`], the text of a [`MessageKind::SessionStatus`].
    pub fn text(&self) -> &'a [u8] {
        self.fields.text(self.view.head.text).unwrap_or(&[])
    }
}

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

    const fn wire(self) -> &'static [u8] {
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

/// What a snapshot's fragments say before their entries.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SnapshotHeader<'a> {
    /// `Symbol`.
    pub symbol: &'a [u8],
    /// The board.
    pub board: &'a [u8],
    /// The last `RptSeq` of the instrument that the snapshot contains.
    pub rpt_seq: u32,
    /// `LastMsgSeqNumProcessed`: the last packet of the incremental feed that the snapshot contains.
    pub last_seq_processed: Option<u32>,
    /// `RouteFirst`: the first fragment of the instrument.
    pub first_fragment: bool,
    /// `LastFragment`: the last one.
    pub last_fragment: bool,
    /// `TradSesStatus` of the board: 100 is trading.
    pub session_status: Option<i32>,
    /// `MDSecurityTradingStatus`: 17 is ready to trade.
    pub trading_status: Option<i32>,
    /// `AuctionIndicator`.
    pub auction: Option<u32>,
}

/// An instrument. Prices beyond the range of [`Price`] are `None`; [`Message::raw`] has them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Definition<'a> {
    /// `Symbol`.
    pub symbol: &'a [u8],
    /// `SecurityDesc`, UTF-8.
    pub description: &'a [u8],
    /// `Currency`.
    pub currency: &'a [u8],
    /// `TotNumReports`: messages of a whole cycle.
    pub total_reports: Option<u32>,
    /// `MinPriceIncrement`.
    pub min_price_increment: Option<Price>,
    /// `FaceValue`.
    pub face_value: Option<Price>,
}

/// A board on which an instrument trades.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Board<'a> {
    /// `TradingSessionID`.
    pub board: &'a [u8],
    /// `TradingSessionSubID`.
    pub session: &'a [u8],
    /// `SecurityTradingStatus`.
    pub trading_status: Option<i32>,
    /// `RoundLot`: units of the instrument in a lot.
    pub round_lot: Option<u32>,
}

/// A change of trading status.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Status<'a> {
    /// `Symbol`; empty for a whole board.
    pub symbol: &'a [u8],
    /// The board.
    pub board: &'a [u8],
    /// `TradingSessionSubID`.
    pub session: &'a [u8],
    /// `SecurityTradingStatus`: 17 ready to trade, 18 not available, 2 halted, others of FIX 326.
    pub trading_status: Option<i32>,
    /// `TradSesStatus`: 100 trading, 102 closed, others.
    pub session_status: Option<i32>,
    /// `AuctionIndicator`.
    pub auction: Option<u32>,
    /// `Text`.
    pub text: &'a [u8],
}

#[derive(Clone)]
struct Typed<'a> {
    entries: Option<Entries<'a>>,
    slots: &'a Slots,
    head: Fields<'a>,
    head_slots: &'a Slots,
    /// The last entry's `MDEntryTime`, in which most entries of a message agree, and what it is.
    time: (u64, Nanos),
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
pub struct OrderEntries<'a>(Typed<'a>);

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
    fields: Fields<'a>,
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
pub struct TradeEntries<'a>(Typed<'a>);

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
pub struct StatisticEntries<'a>(Typed<'a>);

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

#[inline]
fn rpt_seq(fields: &Fields<'_>, slot: Slot) -> Result<u32, MoexError> {
    match fields.signed(slot) {
        None => Ok(0),
        Some(v) => u32::try_from(v).map_err(|_| MoexError::OutOfRange { tag: tag::RPT_SEQ }),
    }
}

fn small(fields: &Fields<'_>, slot: Slot) -> Option<i32> {
    fields.signed(slot).and_then(|v| i32::try_from(v).ok())
}

/// Decimal digits as a number; `None` for anything else and beyond 64 bits.
#[inline(always)]
fn number(text: &[u8]) -> Option<u64> {
    match text.len() {
        1..=8 => eight_digits(padded(text)),
        9..=16 => {
            let (high, low) = text.split_last_chunk()?;
            Some(eight_digits(padded(high))? * 100_000_000 + eight_digits(*low)?)
        }
        _ => long_number(text),
    }
}

#[cold]
fn long_number(text: &[u8]) -> Option<u64> {
    if text.is_empty() {
        return None;
    }
    let mut value: u64 = 0;
    for &byte in text {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        value = value.checked_mul(10)?.checked_add(u64::from(digit))?;
    }
    Some(value)
}

/// One to eight digits with zeros before them.
#[inline(always)]
fn padded(text: &[u8]) -> [u8; 8] {
    const ZEROS: u64 = u64::from_le_bytes([b'0'; 8]);
    let (length, missing) = (8 * text.len(), 64 - 8 * text.len());
    let word = match (
        text.first_chunk::<8>(),
        text.first_chunk::<4>(),
        text.last_chunk::<4>(),
    ) {
        (Some(all), ..) => return *all,
        (_, Some(low), Some(high)) => {
            // The two may overlap.
            u64::from(u32::from_le_bytes(*low)) | u64::from(u32::from_le_bytes(*high)) << (length - 32)
        }
        _ => text.iter().rev().fold(0, |w, &byte| w << 8 | u64::from(byte)),
    };
    (word << missing | ZEROS >> length).to_le_bytes()
}

/// Eight digits at once: pairs of digits, then pairs of pairs, then the two halves.
#[inline(always)]
fn eight_digits(text: [u8; 8]) -> Option<u64> {
    let digits = u64::from_le_bytes(text) ^ 0x3030_3030_3030_3030;
    // Six more sets the fifth bit or a higher one of all that is not a digit.
    let is_wrong = (digits.wrapping_add(0x0606_0606_0606_0606) | digits) & 0xf0f0_f0f0_f0f0_f0f0;
    if is_wrong != 0 {
        return None;
    }
    let pairs = digits * 10 + (digits >> 8);
    let upper = (pairs & 0x0000_00ff_0000_00ff).wrapping_mul(100 + (1_000_000 << 32));
    let lower = (pairs >> 16 & 0x0000_00ff_0000_00ff).wrapping_mul(1 + (10_000 << 32));
    Some(upper.wrapping_add(lower) >> 32)
}

/// `hhmmssmmm` as nanoseconds since midnight.
#[inline]
fn entry_time(time: u64) -> Option<Nanos> {
    let (hms, millis) = (time / 1_000, time % 1_000);
    Some(Nanos(seconds_of_day(hms)? * Nanos::SECOND + millis * 1_000_000))
}

/// `hhmmss` as seconds; a leap second is let pass.
#[inline]
fn seconds_of_day(hms: u64) -> Option<u64> {
    let (hours, minutes, seconds) = (hms / 10_000, hms / 100 % 100, hms % 100);
    (hours < 24 && minutes < 60 && seconds <= 60).then_some(hours * 3600 + minutes * 60 + seconds)
}

/// Moscow is three hours ahead of UTC, all year, since 2014-10-26.
pub const MOSCOW_OFFSET_NS: u64 = 3 * 3600 * Nanos::SECOND;

/// `SendingTime` (`YYMMDDhhmmssuuuuuu` in Moscow, years 2000 to 2099) as time since the epoch, UTC.
pub fn sending_time_to_nanos(sending_time: u64) -> Option<Nanos> {
    const PER_DAY: u64 = 1_000_000_000_000;
    let (date, time) = (sending_time / PER_DAY, sending_time % PER_DAY);
    let (year, month, day) = (date / 10_000, date / 100 % 100, date % 100);
    if year > 99 {
        return None;
    }
    let days = days_since_epoch(2000 + year, month, day)?;
    let seconds = days * 86_400 + seconds_of_day(time / 1_000_000)?;
    (seconds * Nanos::SECOND + time % 1_000_000 * 1_000)
        .checked_sub(MOSCOW_OFFSET_NS)
        .map(Nanos)
}

/// The inverse of [`sending_time_to_nanos`], to the microsecond; `None` outside the years 2000 to 2099.
pub fn nanos_to_sending_time(at: Nanos) -> Option<u64> {
    let local = at.0.checked_add(MOSCOW_OFFSET_NS)?;
    let (days, in_day) = (local / Nanos::DAY, local % Nanos::DAY);
    let (year, month, day) = civil_date(days);
    let year = year.checked_sub(2000).filter(|&y| y < 100)?;
    let seconds = in_day / Nanos::SECOND;
    let hms = seconds / 3600 * 10_000 + seconds / 60 % 60 * 100 + seconds % 60;
    let micros = in_day % Nanos::SECOND / 1_000;
    Some(((year * 10_000 + month * 100 + day) * 1_000_000 + hms) * 1_000_000 + micros)
}

/// Days from 1970-01-01 to a date of the Gregorian calendar; `None` when there is no such date.
fn days_since_epoch(year: u64, month: u64, day: u64) -> Option<u64> {
    const BEFORE: [u64; 12] = [0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334];
    const LENGTH: [u64; 12] = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let index = usize::try_from(month.checked_sub(1)?).ok()?;
    let leap = u64::from(is_leap(year));
    let length = LENGTH.get(index)? + if month == 2 { leap } else { 0 };
    if day == 0 || day > length {
        return None;
    }
    let past = year - 1;
    let leaps = past / 4 - past / 100 + past / 400 - 477;
    let in_year = BEFORE.get(index)? + if month > 2 { leap } else { 0 } + day - 1;
    Some((year - 1970) * 365 + leaps + in_year)
}

const fn is_leap(year: u64) -> bool {
    year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
}

/// The date so many days after 1970-01-01.
fn civil_date(days: u64) -> (u64, u64, u64) {
    // Counted from 0000-03-01, so that the leap day ends a year and the months form a regular pattern.
    let days = days + 719_468;
    let (era, in_era) = (days / 146_097, days % 146_097);
    let year_of_era = (in_era - in_era / 1_460 + in_era / 36_524 - in_era / 146_096) / 365;
    let in_year = in_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_index = (5 * in_year + 2) / 153;
    let day = in_year - (153 * month_index + 2) / 5 + 1;
    let month = if month_index < 10 {
        month_index + 3
    } else {
        month_index - 9
    };
    (era * 400 + year_of_era + u64::from(month <= 2), month, day)
}

/// A template to encode with, had from [`Encoder::template`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Template {
    id: u32,
    view: u16,
}

/// Writes datagrams with the templates of a file: the simulator's side. Nothing is allocated after
/// [`Encoder::new`]. Fields of the typed values that a template does not have are left out; fields of a
/// template that the typed values do not have stay absent.
#[derive(Clone, Debug)]
pub struct Encoder {
    fast: fast::Encoder,
    record: Record,
    views: Vec<View>,
}

impl Encoder {
    /// An encoder for a template file.
    pub fn new(plan: Arc<Plan>, limits: Limits) -> Result<Encoder, MissingField> {
        let views = views(&plan)?;
        let record = Record::new(&plan, &limits);
        Ok(Encoder {
            fast: fast::Encoder::new(plan, limits),
            record,
            views,
        })
    }

    /// The template of this name (`X-OLR-FOND`).
    pub fn template(&self, name: &str) -> Option<Template> {
        let view = self.fast.plan().templates().position(|t| t.name() == name)?;
        Some(Template {
            id: self.views.get(view)?.template,
            view: u16::try_from(view).ok()?,
        })
    }

    /// The first template of this kind whose name ends in `market` (`FOND`, `CURR`), else the first of this
    /// kind.
    pub fn find(&self, kind: MessageKind, market: &str) -> Option<Template> {
        let of_kind = || {
            let templates = self.fast.plan().templates().zip(&self.views);
            templates.enumerate().filter(|(_, (_, view))| view.kind == kind)
        };
        let named = of_kind().find(|(_, (template, _))| template.name().ends_with(market));
        let (at, (_, view)) = named.or_else(|| of_kind().next())?;
        Some(Template {
            id: view.template,
            view: u16::try_from(at).ok()?,
        })
    }

    /// An order log datagram.
    pub fn order_log(
        &mut self,
        template: Template,
        seq: u32,
        sent: Nanos,
        entries: &[OrderEntry<'_>],
        out: &mut [u8],
    ) -> Result<usize, MoexError> {
        let (view, _) = self.begin(template, MessageKind::OrderLog, seq, sent)?;
        self.entries(&view, entries, |slots, entry, put| put_order(slots, entry, put))?;
        self.finish(seq, out)
    }

    /// A fragment of an order snapshot.
    pub fn order_snapshot(
        &mut self,
        template: Template,
        seq: u32,
        sent: Nanos,
        header: &SnapshotHeader<'_>,
        entries: &[OrderEntry<'_>],
        out: &mut [u8],
    ) -> Result<usize, MoexError> {
        let (view, at) = self.begin(template, MessageKind::OrderSnapshot, seq, sent)?;
        self.put(at, |put| put_header(&view.head, header, put))?;
        self.entries(&view, entries, |slots, entry, put| put_order(slots, entry, put))?;
        self.finish(seq, out)
    }

    /// A trade log datagram.
    pub fn trades(
        &mut self,
        template: Template,
        seq: u32,
        sent: Nanos,
        entries: &[TradeEntry<'_>],
        out: &mut [u8],
    ) -> Result<usize, MoexError> {
        let (view, _) = self.begin(template, MessageKind::Trades, seq, sent)?;
        self.entries(&view, entries, |slots, entry, put| put_trade(slots, entry, put))?;
        self.finish(seq, out)
    }

    /// A fragment of a trade snapshot.
    pub fn trade_snapshot(
        &mut self,
        template: Template,
        seq: u32,
        sent: Nanos,
        header: &SnapshotHeader<'_>,
        entries: &[TradeEntry<'_>],
        out: &mut [u8],
    ) -> Result<usize, MoexError> {
        let (view, at) = self.begin(template, MessageKind::TradeSnapshot, seq, sent)?;
        self.put(at, |put| put_header(&view.head, header, put))?;
        self.entries(&view, entries, |slots, entry, put| put_trade(slots, entry, put))?;
        self.finish(seq, out)
    }

    /// An instrument's definition with its boards, each as a market segment of its own.
    pub fn definition(
        &mut self,
        template: Template,
        seq: u32,
        sent: Nanos,
        definition: &Definition<'_>,
        boards: &[Board<'_>],
        out: &mut [u8],
    ) -> Result<usize, MoexError> {
        let (view, at) = self.begin(template, MessageKind::SecurityDefinition, seq, sent)?;
        self.put(at, |put| put_definition(&view.head, definition, put))?;
        if let Some((segments, slots)) = view.entries {
            let mut segment = self
                .record
                .sequence(at, &segments, boards.len())
                .ok_or(MoexError::NoRoom)?;
            for board in boards {
                let lot = board
                    .round_lot
                    .map_or(Value::Absent, |lot| Value::Decimal(quantity(u64::from(lot))));
                self.put(segment, |put| put(slots.round_lot, lot))?;
                if let Some((rules, rule_slots)) = view.boards {
                    let rule = self
                        .record
                        .sequence(segment, &rules, 1)
                        .ok_or(MoexError::NoRoom)?;
                    self.put(rule, |put| put_board(&rule_slots, board, put))?;
                }
                segment = segment.next();
            }
        }
        self.finish(seq, out)
    }

    /// A status of an instrument or a board, by the kind of the template.
    pub fn status(
        &mut self,
        template: Template,
        seq: u32,
        sent: Nanos,
        status: &Status<'_>,
        out: &mut [u8],
    ) -> Result<usize, MoexError> {
        let kind = self.views.get(usize::from(template.view)).map(|v| v.kind);
        let kind = kind.filter(|k| matches!(k, MessageKind::SecurityStatus | MessageKind::SessionStatus));
        let (view, at) = self.begin(template, kind.ok_or(MoexError::WrongTemplate)?, seq, sent)?;
        let slots = &view.head;
        self.put(at, |put| {
            put(slots.symbol, text(status.symbol))
                && put(slots.board, text(status.board))
                && put(slots.session, text(status.session))
                && put(slots.trading_status, signed(status.trading_status))
                && put(slots.session_status, signed(status.session_status))
                && put(slots.auction, unsigned(status.auction))
                && put(slots.text, text(status.text))
        })?;
        self.finish(seq, out)
    }

    /// The first message of a replay session (`A`) or its last (`5`, with a reason), by the kind of the
    /// template, behind its length instead of a preamble.
    pub fn session(
        &mut self,
        template: Template,
        seq: u32,
        sent: Nanos,
        client: &[u8],
        reason: &[u8],
        out: &mut [u8],
    ) -> Result<usize, MoexError> {
        let kind = self.views.get(usize::from(template.view)).map(|v| v.kind);
        let kind = kind.filter(|k| matches!(k, MessageKind::Logon | MessageKind::Logout));
        let (view, at) = self.begin(template, kind.ok_or(MoexError::WrongTemplate)?, seq, sent)?;
        self.put(at, |put| {
            put(view.head.target, Value::Ascii(client))
                && put(view.head.text, text(reason))
                && put(view.head.heartbeat_interval, Value::Signed(30))
                && put(view.head.version, Value::Ascii(b"9"))
        })?;
        let len = self.finish(seq, out)?;
        replay::put_length(&mut out[..len]);
        Ok(len)
    }

    /// A heartbeat.
    pub fn heartbeat(
        &mut self,
        template: Template,
        seq: u32,
        sent: Nanos,
        out: &mut [u8],
    ) -> Result<usize, MoexError> {
        self.begin(template, MessageKind::Heartbeat, seq, sent)?;
        self.finish(seq, out)
    }

    fn begin(
        &mut self,
        template: Template,
        kind: MessageKind,
        seq: u32,
        sent: Nanos,
    ) -> Result<(View, Position), MoexError> {
        let view = *self
            .views
            .get(usize::from(template.view))
            .ok_or(MoexError::WrongTemplate)?;
        if view.kind != kind || view.template != template.id {
            return Err(MoexError::WrongTemplate);
        }
        let at = self
            .record
            .begin(self.fast.plan(), template.id)
            .ok_or(MoexError::NoRoom)?;
        let sent = nanos_to_sending_time(sent).ok_or(MoexError::OutOfRange {
            tag: tag::SENDING_TIME,
        })?;
        self.record
            .set(at, view.head.seq, Value::Unsigned(u64::from(seq)));
        self.record.set(at, view.head.sending_time, Value::Unsigned(sent));
        Ok((view, at))
    }

    fn put(
        &mut self,
        at: Position,
        fill: impl FnOnce(&mut dyn FnMut(Slot, Value<'_>) -> bool) -> bool,
    ) -> Result<(), MoexError> {
        let record = &mut self.record;
        if fill(&mut |slot, value| record.set(at, slot, value)) {
            Ok(())
        } else {
            Err(MoexError::NoRoom)
        }
    }

    fn entries<T>(
        &mut self,
        view: &View,
        entries: &[T],
        fill: fn(&Slots, &T, &mut Put<'_>) -> bool,
    ) -> Result<(), MoexError> {
        let Some((sequence, slots)) = &view.entries else {
            return Err(MoexError::WrongTemplate);
        };
        // The message was begun just now, so that its fields start the record.
        let root = self.record.start();
        let mut at = self
            .record
            .sequence(root, sequence, entries.len())
            .ok_or(MoexError::NoRoom)?;
        for entry in entries {
            self.put(at, |put| fill(slots, entry, put))?;
            at = at.next();
        }
        Ok(())
    }

    fn finish(&mut self, seq: u32, out: &mut [u8]) -> Result<usize, MoexError> {
        let (preamble, body) = out
            .split_first_chunk_mut::<PREAMBLE_LEN>()
            .ok_or(MoexError::NoRoom)?;
        *preamble = seq.to_le_bytes();
        self.fast.reset();
        Ok(PREAMBLE_LEN + self.fast.encode(&self.record, body)?)
    }
}

type Put<'p> = dyn FnMut(Slot, Value<'_>) -> bool + 'p;

fn put_order(slots: &Slots, entry: &OrderEntry<'_>, put: &mut Put<'_>) -> bool {
    let mut digits = Digits::default();
    let id = match entry.kind {
        OrderKind::EmptyBook if entry.order_id.0 == 0 => Value::Absent,
        _ => digits.text(entry.order_id.0),
    };
    put(slots.action, Value::Unsigned(entry.action as u64))
        && put(slots.kind, Value::Ascii(entry.kind.wire()))
        && put(slots.id, id)
        && put(slots.symbol, text(entry.symbol))
        && put(slots.board, text(entry.board))
        && put(slots.rpt_seq, Value::Unsigned(u64::from(entry.rpt_seq)))
        && put(slots.order_status, text(entry.order_status))
        && put(slots.session, text(entry.session))
        && put_price_and_time(slots, (entry.price, entry.qty, entry.date, entry.time), put)
}

fn put_trade(slots: &Slots, entry: &TradeEntry<'_>, put: &mut Put<'_>) -> bool {
    let (mut id, mut order) = (Digits::default(), Digits::default());
    let side = match entry.aggressor {
        Some(Side::Bid) => Value::Ascii(b"B"),
        Some(Side::Ask) => Value::Ascii(b"S"),
        None => Value::Absent,
    };
    put(slots.action, Value::Unsigned(0))
        && put(slots.kind, Value::Ascii(b"z"))
        && put(slots.id, id.text(entry.trade_id))
        && put(slots.symbol, text(entry.symbol))
        && put(slots.board, text(entry.board))
        && put(slots.rpt_seq, Value::Unsigned(u64::from(entry.rpt_seq)))
        && put(slots.order_side, side)
        && put(
            slots.trade_value,
            entry.value.map_or(Value::Absent, Value::Decimal),
        )
        && put(
            slots.ref_order,
            entry.resting_order.map_or(Value::Absent, |o| order.text(o.0)),
        )
        && put(slots.session, text(entry.session))
        && put_price_and_time(slots, (entry.price, entry.qty, entry.date, entry.time), put)
}

fn put_price_and_time(
    slots: &Slots,
    (price, qty, date, time): (Option<Price>, Option<Volume>, Option<u32>, Option<Nanos>),
    put: &mut Put<'_>,
) -> bool {
    let seconds = |t: Nanos| t.0 / Nanos::SECOND;
    let hms = |s: u64| s / 3600 * 10_000 + s / 60 % 60 * 100 + s % 60;
    let micros = |t: Nanos| t.0 % Nanos::SECOND / 1_000;
    put(
        slots.price,
        price.map_or(Value::Absent, |p| Value::Decimal(Decimal::from_price(p))),
    ) && put(
        slots.size,
        qty.map_or(Value::Absent, |q| Value::Decimal(quantity(q.0))),
    ) && put(slots.date, unsigned(date))
        && put(
            slots.time,
            time.map_or(Value::Absent, |t| Value::Unsigned(hms(seconds(t)) * 1_000)),
        )
        && put(
            slots.orig_time,
            time.map_or(Value::Absent, |t| Value::Unsigned(micros(t))),
        )
}

fn put_header(slots: &Slots, header: &SnapshotHeader<'_>, put: &mut Put<'_>) -> bool {
    put(slots.symbol, text(header.symbol))
        && put(slots.board, text(header.board))
        && put(slots.rpt_seq, Value::Unsigned(u64::from(header.rpt_seq)))
        && put(slots.last_seq_processed, unsigned(header.last_seq_processed))
        && put(
            slots.route_first,
            Value::Unsigned(u64::from(header.first_fragment)),
        )
        && put(
            slots.last_fragment,
            Value::Unsigned(u64::from(header.last_fragment)),
        )
        && put(slots.session_status, signed(header.session_status))
        && put(slots.security_status, signed(header.trading_status))
        && put(slots.auction, unsigned(header.auction))
}

fn put_definition(slots: &Slots, definition: &Definition<'_>, put: &mut Put<'_>) -> bool {
    let price = |p: Option<Price>| p.map_or(Value::Absent, |p| Value::Decimal(Decimal::from_price(p)));
    put(slots.symbol, text(definition.symbol))
        && put(slots.description, text(definition.description))
        && put(slots.currency, text(definition.currency))
        && put(slots.total_reports, unsigned(definition.total_reports))
        && put(slots.min_price_increment, price(definition.min_price_increment))
        && put(slots.face_value, price(definition.face_value))
}

fn put_board(slots: &Slots, board: &Board<'_>, put: &mut Put<'_>) -> bool {
    put(slots.board, text(board.board))
        && put(slots.session, text(board.session))
        && put(slots.trading_status, signed(board.trading_status))
}

fn text(bytes: &[u8]) -> Value<'_> {
    if bytes.is_empty() {
        Value::Absent
    } else {
        Value::Bytes(bytes)
    }
}

fn unsigned(value: Option<u32>) -> Value<'static> {
    value.map_or(Value::Absent, |v| Value::Unsigned(u64::from(v)))
}

fn signed(value: Option<i32>) -> Value<'static> {
    value.map_or(Value::Absent, |v| Value::Signed(i64::from(v)))
}

/// A quantity in the form in which the exchange sends it: no trailing zeros, `388e1`.
fn quantity(value: u64) -> Decimal {
    Decimal::new(i64::try_from(value).unwrap_or(i64::MAX), 0).normalised()
}

/// A number as decimal text.
#[derive(Default)]
struct Digits([u8; 20]);

impl Digits {
    fn text(&mut self, mut value: u64) -> Value<'_> {
        let mut at = self.0.len();
        loop {
            at -= 1;
            self.0[at] = b'0' + (value % 10) as u8;
            value /= 10;
            if value == 0 {
                return Value::Ascii(&self.0[at..]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sending_times_are_moscow_wall_clock() {
        // 2021-01-04 21:31:45.538346 in Moscow is 18:31:45.538346 UTC.
        let at = Nanos(1_609_785_105_538_346_000);
        assert_eq!(sending_time_to_nanos(210_104_213_145_538_346), Some(at));
        assert_eq!(nanos_to_sending_time(at), Some(210_104_213_145_538_346));
        assert_eq!(
            sending_time_to_nanos(210_230_000_000_000_000),
            None,
            "30 February"
        );
        assert_eq!(sending_time_to_nanos(u64::MAX), None);
    }

    #[test]
    fn every_day_of_the_century_comes_back() {
        for day in 10_957..47_482 {
            let at = Nanos(day * Nanos::DAY + 43_200 * Nanos::SECOND + 7_000);
            let wire = nanos_to_sending_time(at).unwrap();
            assert_eq!(sending_time_to_nanos(wire), Some(at), "day {day}");
        }
    }

    #[test]
    fn order_numbers_are_digits_within_64_bits() {
        assert_eq!(number(b"14234"), Some(14_234));
        let digits = b"98765432109876543210";
        for length in 1..=20 {
            let text = core::str::from_utf8(&digits[..length]).unwrap();
            assert_eq!(number(&digits[..length]), text.parse().ok(), "{text}");
            for wrong in 0..length {
                for byte in [b'0' - 1, b'9' + 1, 0, 127, 128, 255] {
                    let mut bytes = *digits;
                    bytes[wrong] = byte;
                    assert_eq!(number(&bytes[..length]), None, "{wrong} of {length} is {byte}");
                }
            }
        }
        assert_eq!(number(b"18446744073709551615"), Some(u64::MAX));
        assert_eq!(number(b"18446744073709551616"), None);
        assert_eq!(number(b"12a"), None);
        assert_eq!(number(b"20000123"), Some(20_000_123));
        assert_eq!(number(b"9876543210987"), Some(9_876_543_210_987));
        for wrong in [b'/', b':', b'?', b'p', 0, 0x80, 0xff] {
            for at in 0..8 {
                let mut text = *b"12345678";
                text[at] = wrong;
                assert_eq!(number(&text), None, "{wrong:#x} at {at}");
            }
        }
        assert_eq!(number(b""), None);
    }

    #[test]
    fn a_replay_stream_is_split_by_its_lengths() {
        assert_eq!(split_replay(&[2, 0, 0]), Ok(None));
        assert_eq!(split_replay(&[2, 0, 0, 0, 7]), Ok(None));
        assert_eq!(split_replay(&[2, 0, 0, 0, 7, 8, 9]), Ok(Some((&[7, 8][..], 6))));
        assert_eq!(split_replay(&[0, 0, 0, 0]), Err(MoexError::ReplayLength(0)));
        assert_eq!(split_replay(&[0, 0, 0, 1]), Err(MoexError::ReplayLength(1 << 24)));
    }
}
