//! CME iLink 3: order entry and mass quotes of Globex. Simple Binary Encoding over TCP, schema 8, version 9
//! (2025-11-04), little-endian, behind the simple open framing header; the session is FIXP.
//!
//! ```text
//! 0 message length u16 (everything)   2 encoding u16 = 0xCAFE   4 block length, template, schema, version (u16 each)
//! 12 root block, groups, data
//! ```
//! [`split`] cuts a stream into messages, [`parse`] reads one; each template's `encode` writes one, and
//! [`MassQuoteTemplate`] a mass quote from prepared bytes. Layouts stand once, in the tables: both ways use
//! them. There is no session here: sequence numbers, times and keys are the caller's.
//!
//! ```
//! use tickwire_wire_cme::ilink3::{self, Body, Sequence, SequenceRoot};
//! let root = SequenceRoot {
//!     uuid: 1_585_839_227_794_207.into(),
//!     next_seq_no: 3.into(),
//!     fault_tolerance_indicator: Some(1).into(),
//!     ..SequenceRoot::BLANK
//! };
//! let mut buffer = [0; 64];
//! let length = Sequence::encode(&mut buffer, &root).unwrap();
//! let (message, taken) = ilink3::split(&buffer[..length])?.unwrap();
//! let Body::Sequence(sequence) = ilink3::parse(message)?.body else { panic!() };
//! assert_eq!((taken, sequence.root.get()), (26, root));
//! # Ok::<(), tickwire_wire_cme::Malformed>(())
//! ```

mod client;
mod quoting;
mod session;
mod venue;

pub use client::*;
pub use quoting::{Identity, MassQuoteHead, MassQuotePrefix, MassQuoteTemplate, QuotedSecurity};
pub use session::*;
pub use venue::*;

use crate::layout::Pod;
use crate::layout::{Field, FieldValue, le, prefix};
use crate::sbe::table::messages;
use crate::sbe::{
    Block, Entries, GroupSize, MessageBuilder, MessageHeader, Optional, Template, Visit, precedes,
    version_of, visit_entries, visit_root,
};
use crate::{Malformed, wire_enum, wire_struct};
use tickwire_market::{Price, Qty, Side, TimeInForce};
use tickwire_wire_core::fix_text::Number;

/// The schema version encoders write.
pub const NEWEST_VERSION: u16 = 9;
/// What the framing header says of Simple Binary Encoding, little-endian.
pub const ENCODING: u16 = 0xCAFE;
/// What stands before each message: its length, to come, and [`ENCODING`].
const FRAME: &[u8] = &[0, 0, 0xFE, 0xCA];

/// Days since the Unix epoch, null where there is no date.
pub type Date = Optional<le::U16>;

wire_struct! {
    /// Before every message. FIX Simple Open Framing Header 1.0; iLink 3, "Simple Open Framing Header".
    pub struct Frame = "SimpleOpenFrame", 4 {
        /// Of the whole message, these four bytes included.
        0 => message_length: le::U16, "MessageLength";
        /// [`ENCODING`].
        2 => encoding_type: le::U16, "EncodingType";
    }
}

messages! {
    enum Body of schema 8 behind FRAME;
    500 Negotiate = "Negotiate500", NegotiateRoot, 76, decimals 9 {
        + credentials, "Credentials";
    }
    501 NegotiationResponse = "NegotiationResponse501", NegotiationResponseRoot, 33, decimals 9 {
        + credentials, "Credentials";
    }
    502 NegotiationReject = "NegotiationReject502", NegotiationRejectRoot, 69, decimals 9 {}
    503 Establish = "Establish503", EstablishRoot, 132, decimals 9 {
        + credentials, "Credentials";
    }
    504 EstablishmentAck = "EstablishmentAck504", EstablishmentAckRoot, 39, decimals 9 {}
    505 EstablishmentReject = "EstablishmentReject505", EstablishmentRejectRoot, 73, decimals 9 {}
    506 Sequence = "Sequence506", SequenceRoot, 14, decimals 9 {}
    507 Terminate = "Terminate507", TerminateRoot, 67, decimals 9 {}
    508 RetransmitRequest = "RetransmitRequest508", RetransmitRequestRoot, 30, decimals 9 {}
    509 Retransmission = "Retransmission509", RetransmissionRoot, 31, decimals 9 {}
    510 RetransmitReject = "RetransmitReject510", RetransmitRejectRoot, 75, decimals 9 {}
    513 NotApplied = "NotApplied513", NotAppliedRoot, 17, decimals 9 {}
    514 NewOrderSingle = "NewOrderSingle514", NewOrderSingleRoot, 132, decimals 9 {}
    515 OrderCancelReplaceRequest = "OrderCancelReplaceRequest515", OrderCancelReplaceRequestRoot, 133, decimals 9 {}
    516 OrderCancelRequest = "OrderCancelRequest516", OrderCancelRequestRoot, 96, decimals 9 {}
    517 MassQuote = "MassQuote517", MassQuoteRoot, 123, decimals 9 {
        entries: QuoteEntry, 38, GroupSize, since 0, "NoQuoteEntries";
    }
    521 BusinessReject = "BusinessReject521", BusinessRejectRoot, 330, decimals 9 {}
    522 ExecutionReportNew = "ExecutionReportNew522", ExecutionReportNewRoot, 226, decimals 9 {}
    523 ExecutionReportReject = "ExecutionReportReject523", ExecutionReportRejectRoot, 483, decimals 9 {}
    524 ExecutionReportElimination = "ExecutionReportElimination524", ExecutionReportEliminationRoot, 219, decimals 9 {}
    525 ExecutionReportTradeOutright = "ExecutionReportTradeOutright525", ExecutionReportTradeOutrightRoot, 293, decimals 9 {
        fills: FillEntry, 15, GroupSize, since 0, "NoFills";
        events: OrderEventEntry, 41, GroupSize, since 0, "NoOrderEvents";
    }
    528 QuoteCancel = "QuoteCancel528", QuoteCancelRoot, 61, decimals 9 {
        entries: QuoteCancelEntry, 10, GroupSize, since 0, "NoQuoteEntries";
        sets: QuoteCancelSet, 10, GroupSize, since 0, "NoQuoteSets";
    }
    534 ExecutionReportCancel = "ExecutionReportCancel534", ExecutionReportCancelRoot, 247, decimals 9 {}
    535 OrderCancelReject = "OrderCancelReject535", OrderCancelRejectRoot, 409, decimals 9 {}
    545 MassQuoteAck = "MassQuoteAck545", MassQuoteAckRoot, 352, decimals 9 {
        entries: QuoteAckEntry, 11, GroupSize, since 0, "NoQuoteEntries";
    }
    563 QuoteCancelAck = "QuoteCancelAck563", QuoteCancelAckRoot, 370, decimals 9 {
        entries: QuoteCancelAckEntry, 9, GroupSize, since 0, "NoQuoteEntries";
        sets: QuoteCancelAckSet, 4, GroupSize, since 0, "NoQuoteSets";
    }
}

wire_enum! {
    /// FIX OrdType (40).
    pub enum OrdType {
        /// At any price, within the venue's protection.
        b'1' => Market;
        /// At the price or better.
        b'2' => Limit;
        /// Becomes a market order when triggered.
        b'3' => Stop;
        /// Becomes a limit order when triggered.
        b'4' => StopLimit;
        /// What a market order leaves rests at the price of its last trade.
        b'K' => MarketWithLeftoverAsLimit;
    }
}

wire_enum! {
    /// FIX QuoteCancelType (298), and what became of it in QuoteStatus (297) of [`QuoteCancelAck`].
    pub enum QuoteCancelType {
        /// Of single instruments.
        1 => Instrument;
        /// Of groups of instruments.
        3 => Group;
        /// Of all.
        4 => All;
        /// Of quote sets.
        100 => QuoteSet;
    }
}

tickwire_wire_core::wire_layout! {
    /// A decimal with an exponent of its own, of up to 18 digits. Schema 8, `Decimal64NULL`.
    #[derive(PartialEq, Eq, Hash, Debug)]
    pub struct Decimal64 {
        /// The digits; null where there is no number.
        pub mantissa: Optional<le::I64>,
        /// The power of ten they are multiplied by.
        pub exponent: i8,
    }
}

impl Field for Decimal64 {
    const BLANK: Decimal64 = Decimal64 {
        mantissa: Optional::NULL,
        exponent: i8::MAX,
    };

    fn value(&self) -> FieldValue<'_> {
        let Some(mantissa) = self.mantissa.get().map(|m| i128::from(m.get())) else {
            return FieldValue::Null;
        };
        match self.exponent {
            exponent @ -38..=0 => FieldValue::Decimal {
                mantissa,
                decimals: exponent.unsigned_abs(),
            },
            exponent @ 1..=18 => FieldValue::Decimal {
                mantissa: mantissa * 10_i128.pow(exponent as u32),
                decimals: 0,
            },
            _ => FieldValue::Bytes(self.as_bytes()),
        }
    }
}

/// One message, in place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Message<'a> {
    /// Its template and version.
    pub header: &'a MessageHeader,
    /// What it says.
    pub body: Body<'a>,
    /// What follows the last part we know: groups of later schema versions. Ignored.
    pub rest: &'a [u8],
}

/// The first message of a stream, from its SBE header on, and how many bytes it took with its frame; `None`
/// while it is incomplete. After an error nothing that follows can be found: the connection is to be ended.
#[inline]
pub fn split(bytes: &[u8]) -> Result<Option<(&[u8], usize)>, Malformed> {
    let Ok((frame, _)) = prefix::<Frame>(bytes) else {
        // Refused as early as it can be seen.
        return match bytes.get(2) {
            Some(byte) if *byte != FRAME[2] => Err(wrong(2, *byte)),
            _ => Ok(None),
        };
    };
    if frame.encoding_type.get() != ENCODING {
        let at = if bytes[2] == FRAME[2] { 3 } else { 2 };
        return Err(wrong(at, bytes[usize::from(at)]));
    }
    let length = usize::from(frame.message_length.get());
    if length < Frame::SIZE + MessageHeader::SIZE {
        return Err(Malformed::length(0, Frame::SIZE + MessageHeader::SIZE, length));
    }
    Ok(bytes.get(Frame::SIZE..length).map(|message| (message, length)))
}

fn wrong(offset: u16, value: u8) -> Malformed {
    Malformed::BadValue { offset, value }
}

/// Reads one message, from its SBE header on. A template that is wanted quickly has a `read` of its own.
pub fn parse(bytes: &[u8]) -> Result<Message<'_>, Malformed> {
    let (header, body) = prefix::<MessageHeader>(bytes)?;
    if header.schema_id.get() != Body::SCHEMA {
        return Err(wrong(4, header.schema_id.get() as u8));
    }
    let (body, rest) = Body::split(body, header)?;
    Ok(Message { header, body, rest })
}

impl Message<'_> {
    /// Writes the message, frame first, from its decoded fields, as its own schema version lays it out; its
    /// length, `None` if `buffer` is too small. Padding is zero, what is in `rest` is left out.
    pub fn encode(&self, buffer: &mut [u8]) -> Option<usize> {
        self.body.encode_again(buffer, *self.header)
    }

    /// Its name in the schema.
    pub fn name(&self) -> &'static str {
        self.body.name()
    }

    /// Its fields in wire order, named as in the schema. Fields that the sender's version lacks are null.
    pub fn visit(&self, f: &mut dyn FnMut(Visit<'_>)) {
        self.body.visit(f);
    }
}

/// Side (54).
#[inline]
pub const fn side(side: Side) -> u8 {
    match side {
        Side::Bid => 1,
        Side::Ask => 2,
    }
}

/// TimeInForce (59); `None` for orders of auctions, which the venue has none of.
#[inline]
pub const fn time_in_force(time_in_force: TimeInForce) -> Option<u8> {
    match time_in_force {
        TimeInForce::Day | TimeInForce::GoodTillCancel => Some(time_in_force as u8),
        TimeInForce::ImmediateOrCancel | TimeInForce::FillOrKill => Some(time_in_force as u8),
        TimeInForce::AtTheOpening | TimeInForce::AtTheClose => None,
    }
}

impl NewOrderSingleRoot {
    /// A limit order of `identity`. SeqNum, ClOrdID, OrderRequestID and the sending time are the caller's to
    /// fill in. `None` for a quantity of 0 and a time in force that the venue has not.
    pub fn limit(
        identity: &Identity,
        security_id: i32,
        side_wanted: Side,
        price: Price,
        qty: Qty,
        lives: TimeInForce,
    ) -> Option<NewOrderSingleRoot> {
        let lives = time_in_force(lives)?;
        (!qty.is_zero()).then_some(NewOrderSingleRoot {
            price: Some(crate::sbe::Price9::of(price)).into(),
            order_qty: qty.0.into(),
            security_id: security_id.into(),
            side: side(side_wanted),
            sender_id: identity.sender_id,
            party_details_list_req_id: identity.party_details_list_req_id.into(),
            location: identity.location,
            ord_type: Some(OrdType::Limit.into()).into(),
            time_in_force: Some(lives).into(),
            ..NewOrderSingleRoot::BLANK
        })
    }
}

impl QuoteCancelEntry {
    /// The one entry of a cancellation of all quotes, as a recorded client sends it.
    pub const ALL: QuoteCancelEntry = QuoteCancelEntry {
        security_group: crate::sbe::Text(*b"[N/A]\0"),
        security_id: Optional::NULL,
    };
}

impl QuoteCancelRoot {
    /// A cancellation of all quotes, to be encoded with [`QuoteCancelEntry::ALL`] and no sets. SeqNum,
    /// QuoteID and the sending time are the caller's to fill in.
    pub fn all(identity: &Identity) -> QuoteCancelRoot {
        QuoteCancelRoot {
            party_details_list_req_id: identity.party_details_list_req_id.into(),
            sender_id: identity.sender_id,
            location: identity.location,
            quote_cancel_type: QuoteCancelType::All as u8,
            ..QuoteCancelRoot::BLANK
        }
    }
}

impl NegotiateRoot {
    /// Writes what `HMACSignature` signs: RequestTimestamp, UUID, Session and Firm, a line each; its length,
    /// `None` if `buffer` is too small. The key and the hash are the caller's. iLink 3, "Session Layer -
    /// Negotiate".
    pub fn canonical_text(&self, buffer: &mut [u8]) -> Option<usize> {
        let numbers = [self.request_timestamp, self.uuid].map(|n| Number::new(n.get()));
        let [time, uuid] = &numbers;
        lines(
            buffer,
            &[
                time.text(),
                uuid.text(),
                self.session.trimmed(),
                self.firm.trimmed(),
            ],
        )
    }
}

impl EstablishRoot {
    /// Writes what `HMACSignature` signs: the lines of [`NegotiateRoot::canonical_text`], then
    /// TradingSystemName, TradingSystemVersion, TradingSystemVendor, NextSeqNo and KeepAliveInterval; its
    /// length, `None` if `buffer` is too small. iLink 3, "Session Layer - Establish".
    pub fn canonical_text(&self, buffer: &mut [u8]) -> Option<usize> {
        let [time, uuid, next, interval] = [
            self.request_timestamp.get(),
            self.uuid.get(),
            self.next_seq_no.get().into(),
            self.keep_alive_interval.get().into(),
        ]
        .map(Number::new);
        lines(
            buffer,
            &[
                time.text(),
                uuid.text(),
                self.session.trimmed(),
                self.firm.trimmed(),
                self.trading_system_name.trimmed(),
                self.trading_system_version.trimmed(),
                self.trading_system_vendor.trimmed(),
                next.text(),
                interval.text(),
            ],
        )
    }
}

/// Joins by newlines, none at the end.
fn lines(buffer: &mut [u8], parts: &[&[u8]]) -> Option<usize> {
    let mut end = 0;
    let mut put = |bytes: &[u8]| {
        buffer.get_mut(end..end + bytes.len())?.copy_from_slice(bytes);
        end += bytes.len();
        Some(())
    };
    for (at, part) in parts.iter().enumerate() {
        if at > 0 {
            put(b"\n")?;
        }
        put(part)?;
    }
    Some(end)
}

#[cfg(test)]
mod tests;
