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

mod encode;
mod entries;
mod order_log;
pub mod replay;
mod slots;
mod tag;
mod times;

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

use tickwire_market::{Nanos, Price};

use crate::fast::{self, Decimal, FastError, Fields, Limits, Plan, TemplateRef};
pub use encode::{Encoder, Template};
use entries::Typed;
pub use entries::{
    Action, BookEntry, OrderEntries, OrderEntry, OrderKind, StatisticEntries, StatisticEntry, TradeEntries,
    TradeEntry, UnreadOrder,
};
use order_log::OrderLogs;
pub use order_log::{OrderLog, OrderRow};
use slots::{Slots, View, views};
pub use times::{MOSCOW_OFFSET_NS, nanos_to_sending_time, sending_time_to_nanos};
use times::{rpt_seq, small};

/// Bytes before the FAST message of a datagram.
pub const PREAMBLE_LEN: usize = 4;

/// The longest message that a replay server may announce (real ones stay below 1,500 bytes).
pub const REPLAY_MESSAGE_MAX: usize = 65_536;

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

/// Decodes datagrams and replayed messages. Nothing is allocated after [`Decoder::new`].
#[derive(Clone, Debug)]
pub struct Decoder {
    fast: fast::Decoder,
    views: Vec<View>,
    logs: OrderLogs,
}

impl Decoder {
    /// A decoder for a template file.
    pub fn new(plan: Arc<Plan>, limits: Limits) -> Result<Decoder, MissingField> {
        let views = views(&plan)?;
        let logs = views.iter().filter(|view| view.kind == MessageKind::OrderLog);
        Ok(Decoder {
            logs: OrderLogs::new(&plan, &limits, logs.map(|view| view.template)),
            fast: fast::Decoder::new(plan, limits),
            views,
        })
    }

    /// Another decoder by the same templates, which the two share.
    pub fn beside(&self, limits: Limits) -> Decoder {
        Decoder {
            logs: self.logs.beside(&limits),
            fast: fast::Decoder::new(self.plan().clone(), limits),
            views: self.views.clone(),
        }
    }

    /// Reads where the first entry of the next order log goes, so that it is in the caches: for a thread that
    /// waits.
    pub fn fetch(&self) {
        self.logs.fetch();
    }

    /// The templates it reads with.
    pub fn plan(&self) -> &Arc<Plan> {
        self.fast.plan()
    }

    /// The templates by their identifiers, and what each is for.
    pub fn templates(&self) -> impl Iterator<Item = (u32, MessageKind)> + '_ {
        let templates = self.fast.plan().templates();
        templates.map(|template| (template.id(), MessageKind::of(&template)))
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

    /// The entries of a datagram that is an order log and as expected in all, in about half of the time.
    /// `None` for every other one, of which [`Decoder::packet`] says what it is, or what is wrong with it.
    #[inline(always)]
    pub fn order_log(&mut self, datagram: &[u8]) -> Option<OrderLog<'_>> {
        let (preamble, bytes) = datagram.split_first_chunk::<PREAMBLE_LEN>()?;
        self.logs.read(u32::from_le_bytes(*preamble), bytes)
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

#[cfg(test)]
mod tests {
    use super::times::number;
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
