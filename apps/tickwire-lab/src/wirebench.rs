//! The wire layer alone, for `tickwire bench --feed`: framing and messages parsed, every field that a book
//! needs read, and nothing else: no sequencing, no instrument looked up, no event made.
//!
//! What was read is summed. The same sum is formed from the fields as `tickwire decode` shows them, by name;
//! the two must agree, so that a decoder that skips or misreads a field cannot be fast.

use std::hint::black_box;
use std::sync::Arc;

use tickwire_runtime::clock::thread_cpu_ns;
use tickwire_wire::fast::{self, Limits, Plan};
use tickwire_wire::layout::{Char, FieldValue};
use tickwire_wire::moldudp64::{self, Payload};
use tickwire_wire::{cqs, itch50, mdp3, moex, openbook, pitch, uqdf, xdp};

use tickwire_console::failure::Failure;
use tickwire_rig::recorded::walk;
use tickwire_venues::protocol::Protocol;

/// What was read of a session: messages, and the sum of their fields.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Read {
    messages: u64,
    sum: u64,
}

impl Read {
    #[inline(always)]
    fn message<const N: usize>(&mut self, fields: [u64; N]) {
        self.messages += 1;
        self.fields(fields);
    }

    #[inline(always)]
    fn fields<const N: usize>(&mut self, fields: [u64; N]) {
        for field in fields {
            self.sum = self.sum.wrapping_add(field);
        }
    }

    /// A field by name, if a book needs it.
    fn named(&mut self, wanted: &[&str], name: &str, value: FieldValue<'_>) {
        if wanted.contains(&name) {
            self.fields([number(value)]);
        }
    }
}

/// A field as a number: text by its first eight bytes, decimals by their digits, null as 0.
fn number(value: FieldValue<'_>) -> u64 {
    match value {
        FieldValue::Unsigned(value) => value,
        FieldValue::Signed(value) => value as u64,
        FieldValue::Char(value) => value.into(),
        FieldValue::Decimal { mantissa, .. } => mantissa as u64,
        FieldValue::Text(text) | FieldValue::Bytes(text) => head(text),
        FieldValue::Null => 0,
    }
}

/// The first eight bytes of a text, as a number.
#[inline(always)]
fn head(text: &[u8]) -> u64 {
    match text.first_chunk() {
        Some(bytes) => u64::from_be_bytes(*bytes),
        None => text.iter().fold(0, |value, &byte| value << 8 | u64::from(byte)),
    }
}

#[inline(always)]
fn letter(field: Char) -> u64 {
    field.0.into()
}

#[inline(always)]
fn signed(value: i32) -> u64 {
    i64::from(value) as u64
}

/// Why a session could not be read: the simulator's own packets always can.
fn unreadable(protocol: Protocol, what: &dyn std::fmt::Display) -> Failure {
    Failure::check(format!(
        "{protocol}: the wire layer refuses a packet of the session: {what}"
    ))
}

/// Nanoseconds to read all datagrams of `live` (each behind its length), and how many messages they hold.
///
/// # Errors
/// A packet cannot be read, or its fields are not what they are by name.
pub(crate) fn measure(
    protocol: Protocol,
    live: &[u8],
    templates: Option<&Arc<Plan>>,
) -> Result<(u64, u64), Failure> {
    let mut moex = match (protocol, templates) {
        (Protocol::Moex, Some(plan)) => {
            Some(moex::Decoder::new(plan.clone(), Limits::default()).map_err(|e| unreadable(protocol, &e))?)
        }
        _ => None,
    };
    let mut read = Read::default();
    let begin = thread_cpu_ns();
    pass(protocol, black_box(live), moex.as_mut(), &mut read)?;
    let took = thread_cpu_ns() - begin;
    let mut expected = Read::default();
    for datagram in walk(live) {
        by_name(protocol, datagram, moex.as_mut(), &mut expected)
            .ok_or_else(|| unreadable(protocol, &"by name"))?;
    }
    match read == expected {
        true => Ok((took, read.messages)),
        false => Err(Failure::check(format!(
            "{protocol}: the wire layer read {read:?}, by name it is {expected:?}: the figures would mean nothing"
        ))),
    }
}

/// What is measured: one loop for each protocol, so that nothing is decided packet by packet.
fn pass(
    protocol: Protocol,
    live: &[u8],
    moex: Option<&mut moex::Decoder>,
    read: &mut Read,
) -> Result<(), Failure> {
    let packets = walk(live);
    let done = match protocol {
        Protocol::Itch50 => all(packets, |packet| mold(packet, |block| itch(block, read))),
        Protocol::Uqdf => all(packets, |packet| mold(packet, |block| utp(block, read))),
        Protocol::Pitch => all(packets, |packet| {
            pitch::packet(packet)
                .ok()?
                .messages
                .try_for_each(|message| pitched(message, read))
        }),
        Protocol::Xdp => all(packets, |packet| {
            xdp::parse_packet(packet)
                .ok()?
                .messages
                .try_for_each(|message| pillar(message, read))
        }),
        Protocol::Openbook => all(packets, |packet| {
            let mut packet = openbook::parse_packet(packet).ok()?;
            let kind = packet.kind();
            packet.messages.try_for_each(|message| ultra(kind, message, read))
        }),
        Protocol::Cqs => all(packets, |packet| {
            cqs::parse_block(packet)
                .ok()?
                .messages
                .try_for_each(|message| cta(message, read))
        }),
        Protocol::Mdp3 => all(packets, |packet| {
            mdp3::parse_packet(packet)
                .ok()?
                .messages
                .try_for_each(|message| globex(message, read))
        }),
        Protocol::Moex => match moex {
            Some(decoder) => all(packets, |packet| asts(decoder, packet, read)),
            None => None,
        },
        Protocol::PitchOptions | Protocol::PitchComplex | Protocol::PitchFutures => None,
    };
    done.ok_or_else(|| unreadable(protocol, &format!("behind message {}", read.messages)))
}

fn all<'a>(
    packets: impl Iterator<Item = &'a [u8]>,
    mut each: impl FnMut(&'a [u8]) -> Option<()>,
) -> Option<()> {
    for packet in packets {
        each(packet)?;
    }
    Some(())
}

#[inline(always)]
fn mold<'a>(packet: &'a [u8], each: impl FnMut(&'a [u8]) -> Option<()>) -> Option<()> {
    match moldudp64::parse(packet).ok()?.payload {
        Payload::Messages(mut blocks) => blocks.try_for_each(each),
        Payload::Heartbeat | Payload::EndOfSession => Some(()),
    }
}

#[inline(always)]
fn itch(block: &[u8], read: &mut Read) -> Option<()> {
    use itch50::Message;
    macro_rules! message {
        ($m:ident: $($field:expr),*) => {
            read.message([u64::from($m.locate.get()), $m.timestamp.get(), $($field),*])
        };
    }
    match itch50::parse(block).ok()? {
        Message::AddOrder(m) => {
            message!(m: m.order_ref.get(), letter(m.side), m.shares.get().into(), m.price.0.get().into())
        }
        Message::AddOrderMpid(m) => {
            message!(m: m.order_ref.get(), letter(m.side), m.shares.get().into(), m.price.0.get().into())
        }
        Message::OrderExecuted(m) => {
            message!(m: m.order_ref.get(), m.executed_shares.get().into(), m.match_number.get())
        }
        Message::OrderExecutedWithPrice(m) => message!(m:
            m.order_ref.get(), m.executed_shares.get().into(), m.match_number.get(), letter(m.printable), m.execution_price.0.get().into()),
        Message::OrderCancel(m) => message!(m: m.order_ref.get(), m.cancelled_shares.get().into()),
        Message::OrderDelete(m) => message!(m: m.order_ref.get()),
        Message::OrderReplace(m) => message!(m:
            m.original_order_ref.get(), m.new_order_ref.get(), m.shares.get().into(), m.price.0.get().into()),
        _ => read.messages += 1,
    }
    Some(())
}

const ITCH_MESSAGES: [&str; 7] = [
    "AddOrder",
    "AddOrderMPID",
    "OrderExecuted",
    "OrderExecutedWithPrice",
    "OrderCancel",
    "OrderDelete",
    "OrderReplace",
];
const ITCH_FIELDS: [&str; 13] = [
    "StockLocate",
    "Timestamp",
    "OrderReferenceNumber",
    "BuySellIndicator",
    "Shares",
    "Price",
    "ExecutedShares",
    "MatchNumber",
    "Printable",
    "ExecutionPrice",
    "CanceledShares",
    "OriginalOrderReferenceNumber",
    "NewOrderReferenceNumber",
];

#[inline(always)]
fn pitched(message: &[u8], read: &mut Read) -> Option<()> {
    use pitch::Message;
    macro_rules! message {
        ($m:ident: $($field:expr),*) => {
            read.message([u64::from($m.time_offset.get()), $m.order_id.get(), $($field),*])
        };
    }
    match pitch::parse(message).ok()? {
        Message::AddOrderShort(m) => message!(m:
            letter(m.side), m.qty.get().into(), head(&m.symbol.0), m.price.0.get().into()),
        Message::AddOrderLong(m) => message!(m:
            letter(m.side), m.qty.get().into(), head(&m.symbol.0), m.price.0.get()),
        Message::AddOrderExpanded(m) => message!(m:
            letter(m.side), m.qty.get().into(), head(&m.symbol.0), m.price.0.get()),
        Message::OrderExecuted(m) => message!(m: m.executed_qty.get().into(), m.execution_id.get()),
        Message::ReduceSizeLong(m) => message!(m: m.cancelled_qty.get().into()),
        Message::ReduceSizeShort(m) => message!(m: m.cancelled_qty.get().into()),
        Message::ModifyOrderLong(m) => message!(m: m.qty.get().into(), m.price.0.get(), m.flags.into()),
        Message::ModifyOrderShort(m) => {
            message!(m: m.qty.get().into(), m.price.0.get().into(), m.flags.into())
        }
        Message::DeleteOrder(m) => message!(m:),
        Message::Time(m) => read.message([m.seconds.get().into()]),
        _ => read.messages += 1,
    }
    Some(())
}

const PITCH_MESSAGES: [&str; 10] = [
    "AddOrderShort",
    "AddOrderLong",
    "AddOrderExpanded",
    "OrderExecuted",
    "ReduceSizeLong",
    "ReduceSizeShort",
    "ModifyLong",
    "ModifyShort",
    "DeleteOrder",
    "Time",
];
const PITCH_FIELDS: [&str; 11] = [
    "TimeOffset",
    "OrderId",
    "Side",
    "Qty",
    "Symbol",
    "Price",
    "ExecQty",
    "ExecId",
    "CanceledQty",
    "ModifyFlags",
    "Seconds",
];

#[inline(always)]
fn pillar(message: &[u8], read: &mut Read) -> Option<()> {
    use xdp::Message;
    macro_rules! message {
        ($m:ident: $($field:expr),*) => {
            read.message([u64::from($m.source_time_ns.get()), u64::from($m.symbol_index.get()), $m.order_id.get(), $($field),*])
        };
    }
    match xdp::parse(message).ok()? {
        Message::AddOrder(m) => message!(m: signed(m.price.get()), m.volume.get().into(), letter(m.side)),
        Message::ModifyOrder(m) => message!(m:
            signed(m.price.get()), m.volume.get().into(), letter(m.side), m.position_change.into()),
        Message::DeleteOrder(m) => message!(m:),
        Message::OrderExecution(m) => message!(m:
            m.trade_id.get().into(), signed(m.price.get()), m.volume.get().into(), m.printable_flag.into()),
        Message::ReplaceOrder(m) => message!(m:
            m.new_order_id.get(), signed(m.price.get()), m.volume.get().into(), letter(m.side)),
        _ => read.messages += 1,
    }
    Some(())
}

const XDP_MESSAGES: [&str; 5] = [
    "AddOrder",
    "ModifyOrder",
    "DeleteOrder",
    "OrderExecution",
    "ReplaceOrder",
];
const XDP_FIELDS: [&str; 10] = [
    "SourceTimeNS",
    "SymbolIndex",
    "OrderID",
    "NewOrderID",
    "TradeID",
    "Price",
    "Volume",
    "Side",
    "PositionChange",
    "PrintableFlag",
];

#[inline(always)]
fn ultra(kind: u16, message: &[u8], read: &mut Read) -> Option<()> {
    macro_rules! update {
        ($m:ident) => {{
            read.message([
                $m.head.symbol_index.get().into(),
                $m.head.source_time.get().into(),
                $m.head.source_time_micros.get().into(),
                $m.head.price_scale_code.into(),
                letter($m.head.trading_status),
            ]);
            for point in $m.points {
                read.fields([
                    signed(point.price_numerator.get()),
                    point.volume.get().into(),
                    point.num_orders.get().into(),
                    letter(point.side),
                ]);
            }
        }};
    }
    match openbook::parse(kind, message).ok()? {
        openbook::Message::DeltaUpdate(m) => update!(m),
        openbook::Message::FullUpdate(m) => update!(m),
        _ => read.messages += 1,
    }
    Some(())
}

const OPENBOOK_MESSAGES: [&str; 2] = ["DeltaUpdate", "FullUpdate"];
const OPENBOOK_FIELDS: [&str; 9] = [
    "SymbolIndex",
    "SourceTime",
    "SourceTimeMicros",
    "PriceScaleCode",
    "TradingStatus",
    "PriceNumerator",
    "Volume",
    "NumOrders",
    "Side",
];

#[inline(always)]
fn cta(message: &[u8], read: &mut Read) -> Option<()> {
    macro_rules! quote {
        ($m:ident, $condition:expr, $best:expr) => {{
            read.message([
                letter($m.header.participant),
                $m.header.timestamp.as_nanos(),
                head(&$m.symbol.0),
                $m.bid_price.0.get().into(),
                $m.bid_size.get().into(),
                $m.offer_price.0.get().into(),
                $m.offer_size.get().into(),
                $condition,
            ]);
            for best in $best {
                match best {
                    cqs::Best::Unchanged | cqs::Best::Quote | cqs::Best::Gone => {}
                    cqs::Best::Short(b) => {
                        read.fields([letter(b.participant), b.price.0.get().into(), b.size.get().into()]);
                    }
                    cqs::Best::Long(b) => {
                        read.fields([letter(b.participant), b.price.0.get(), b.size.get().into()]);
                    }
                }
            }
        }};
    }
    if let Some((m, rest)) = cqs::long_quote(message) {
        quote!(m, letter(m.condition), m.national_best(rest).ok()?);
        return Some(());
    }
    let parsed = cqs::parse(message).ok()?;
    match parsed.body {
        cqs::Body::ShortQuote(m) => quote!(m, 0, [parsed.best_bid, parsed.best_offer]),
        _ => read.messages += 1,
    }
    Some(())
}

const CQS_MESSAGES: [&str; 2] = ["LongQuote", "ShortQuote"];
const CQS_FIELDS: [&str; 14] = [
    "ParticipantID",
    "Timestamp1",
    "Symbol",
    "BidPrice",
    "BidSize",
    "OfferPrice",
    "OfferSize",
    "QuoteCondition",
    "BestBidParticipantID",
    "BestBidPrice",
    "BestBidSize",
    "BestOfferParticipantID",
    "BestOfferPrice",
    "BestOfferSize",
];

#[inline(always)]
fn utp(block: &[u8], read: &mut Read) -> Option<()> {
    macro_rules! quote {
        ($m:ident, $best:expr) => {{
            read.message([
                letter($m.header.originator),
                $m.header.sip_time.get(),
                head(&$m.symbol.0),
                $m.bid_price.0.get().into(),
                $m.bid_size.get().into(),
                $m.ask_price.0.get().into(),
                $m.ask_size.get().into(),
                letter($m.condition),
            ]);
            match $best {
                uqdf::Nbbo::Unchanged | uqdf::Nbbo::Gone | uqdf::Nbbo::Quote => {}
                uqdf::Nbbo::Short(b) => national!(b),
                uqdf::Nbbo::Long(b) => national!(b),
            }
        }};
    }
    macro_rules! national {
        ($b:ident) => {
            read.fields([
                letter($b.bid_market_center),
                $b.bid_price.0.get().into(),
                $b.bid_size.get().into(),
                letter($b.ask_market_center),
                $b.ask_price.0.get().into(),
                $b.ask_size.get().into(),
            ])
        };
    }
    if let Some((m, rest)) = uqdf::quote_long(block) {
        quote!(m, uqdf::nbbo(m.nbbo, rest).ok()?);
    } else if let Some((m, rest)) = uqdf::quote_short(block) {
        quote!(m, uqdf::nbbo(m.nbbo, rest).ok()?);
    } else {
        let parsed = uqdf::parse(block).ok()?;
        match parsed.body {
            uqdf::Body::QuoteLong(m) => quote!(m, parsed.appendages.nbbo),
            uqdf::Body::CombinedLong(m) => quote!(m, parsed.appendages.nbbo),
            uqdf::Body::CombinedShort(m) => quote!(m, parsed.appendages.nbbo),
            _ => read.messages += 1,
        }
    }
    Some(())
}

const UQDF_MESSAGES: [&str; 4] = [
    "QuoteLongForm",
    "QuoteShortForm",
    "CombinedQuoteLongForm",
    "CombinedQuoteShortForm",
];
const UQDF_FIELDS: [&str; 14] = [
    "MarketCenterOriginatorID",
    "SIPTimestamp",
    "Symbol",
    "BidPrice",
    "BidSize",
    "AskPrice",
    "AskSize",
    "QuoteCondition",
    "NationalBestBidMarketCenter",
    "NationalBestBidPrice",
    "NationalBestBidSize",
    "NationalBestAskMarketCenter",
    "NationalBestAskPrice",
    "NationalBestAskSize",
];

/// Entries count as messages, as everywhere with MDP 3.0.
#[inline(always)]
fn globex(message: &[u8], read: &mut Read) -> Option<()> {
    macro_rules! entry {
        ($e:ident, $price:expr, $size:expr, $orders:expr, $($field:expr),*) => {
            read.message([
                signed($e.security_id.get()), $e.rpt_seq.get().into(), $e.action.into(), $price as u64, $size, $orders, $($field),*
            ])
        };
    }
    match mdp3::template(message)? {
        mdp3::Book::TEMPLATE => {
            let m = mdp3::Book::read(message)?;
            for e in m.entries.whole()? {
                let price = e.price.get().map_or(0, |p| p.0.get());
                let size = e.size.get().map_or(0, |n| signed(n.get()));
                let orders = e.orders.get().map_or(0, |n| signed(n.get()));
                entry!(e, price, size, orders, e.level.into(), letter(e.entry_type));
            }
        }
        mdp3::TradeSummary::TEMPLATE => {
            let m = mdp3::TradeSummary::read(message)?;
            for e in m.entries.whole()? {
                entry!(
                    e,
                    e.price.0.get(),
                    signed(e.size.get()),
                    signed(e.orders.get()),
                    0
                );
            }
        }
        _ => {
            mdp3::parse(message).ok()?;
        }
    }
    Some(())
}

const MDP3_MESSAGES: [&str; 2] = ["MDIncrementalRefreshBook46", "MDIncrementalRefreshTradeSummary48"];
const MDP3_FIELDS: [&str; 8] = [
    "SecurityID",
    "RptSeq",
    "MDUpdateAction",
    "MDEntryPx",
    "MDEntrySize",
    "NumberOfOrders",
    "MDPriceLevel",
    "MDEntryType",
];

/// Entries count as messages, as everywhere with MOEX. An order log is read the short way, as the feed reads
/// it.
#[inline(always)]
fn asts(decoder: &mut moex::Decoder, packet: &[u8], read: &mut Read) -> Option<()> {
    if let Some(log) = decoder.order_log(packet) {
        for row in log.entries() {
            asts_order(log.instrument(row.instrument), &row.entry, read);
        }
        return Some(());
    }
    let message = decoder.packet(packet).ok()?;
    if message.kind() != moex::MessageKind::OrderLog {
        return Some(());
    }
    let mut orders = message.orders();
    while let Some(entry) = orders.next_unread() {
        let order = orders.book_entry(&entry).ok()?;
        asts_order(orders.instrument(&entry), &order, read);
    }
    Some(())
}

#[inline(always)]
fn asts_order((symbol, board): (&[u8], &[u8]), order: &moex::BookEntry, read: &mut Read) {
    black_box((order.time, order.kind));
    read.message([
        head(symbol),
        head(board),
        order.order_id.0,
        order.rpt_seq.into(),
        order.price.map_or(0, |price| price.raw() as u64),
        order.qty.map_or(0, |qty| qty.0),
    ]);
}

/// The same fields as `tickwire decode` shows them, of one packet; `None` if it cannot be read.
fn by_name(
    protocol: Protocol,
    packet: &[u8],
    moex: Option<&mut moex::Decoder>,
    read: &mut Read,
) -> Option<()> {
    /// Messages whose fields are a flat list.
    macro_rules! flat {
        ($messages:expr, $parse:expr, $kinds:expr, $fields:expr) => {
            $messages.try_for_each(|bytes| {
                let message = $parse(bytes).ok()?;
                read.messages += 1;
                if $kinds.contains(&message.name()) {
                    message.visit(&mut |name, value| read.named(&$fields, name, value));
                }
                Some(())
            })
        };
    }
    let blocks = || match moldudp64::parse(packet).ok()?.payload {
        Payload::Messages(blocks) => Some(blocks.collect()),
        Payload::Heartbeat | Payload::EndOfSession => Some(Vec::new()),
    };
    match protocol {
        Protocol::Itch50 => flat!(blocks()?.into_iter(), itch50::parse, ITCH_MESSAGES, ITCH_FIELDS),
        Protocol::Uqdf => flat!(blocks()?.into_iter(), uqdf::parse, UQDF_MESSAGES, UQDF_FIELDS),
        Protocol::Pitch => flat!(
            pitch::packet(packet).ok()?.messages,
            pitch::parse,
            PITCH_MESSAGES,
            PITCH_FIELDS
        ),
        Protocol::Xdp => flat!(
            xdp::parse_packet(packet).ok()?.messages,
            xdp::parse,
            XDP_MESSAGES,
            XDP_FIELDS
        ),
        Protocol::Cqs => flat!(
            cqs::parse_block(packet).ok()?.messages,
            cqs::parse,
            CQS_MESSAGES,
            CQS_FIELDS
        ),
        Protocol::Openbook => {
            let mut packet = openbook::parse_packet(packet).ok()?;
            let kind = packet.kind();
            packet.messages.try_for_each(|bytes| {
                let message = openbook::parse(kind, bytes).ok()?;
                read.messages += 1;
                if OPENBOOK_MESSAGES.contains(&message.name()) {
                    message.visit(&mut |_, name, value| read.named(&OPENBOOK_FIELDS, name, value));
                }
                Some(())
            })
        }
        Protocol::Mdp3 => mdp3::parse_packet(packet).ok()?.messages.try_for_each(|bytes| {
            let message = mdp3::parse(bytes).ok()?;
            if MDP3_MESSAGES.contains(&message.name()) {
                let mut is_entry = false;
                message.visit(&mut |step| match step {
                    mdp3::block::Visit::Enter("NoMDEntries", _, count) if count > 0 => {
                        is_entry = true;
                        read.messages += 1;
                    }
                    mdp3::block::Visit::Leave => is_entry = false,
                    mdp3::block::Visit::Field(name, value) if is_entry => {
                        read.named(&MDP3_FIELDS, name, value)
                    }
                    _ => {}
                });
            }
            Some(())
        }),
        Protocol::Moex => {
            let message = moex?.packet(packet).ok()?;
            if message.kind() == moex::MessageKind::OrderLog {
                message.raw().visit(&mut |step| match step {
                    fast::Visit::Enter(_, _, count) => read.messages += u64::from(count > 0),
                    fast::Visit::Field(name, _, value) => read.fields([fast_number(name, value)]),
                    fast::Visit::Leave => {}
                });
            }
            Some(())
        }
        Protocol::PitchOptions | Protocol::PitchComplex | Protocol::PitchFutures => None,
    }
}

/// A field of an order-log entry, as the typed reading has it; 0 for one that a book does not need.
fn fast_number(name: &str, value: fast::Value<'_>) -> u64 {
    match (name, value) {
        ("Symbol" | "TradingSessionID", fast::Value::Ascii(text) | fast::Value::Unicode(text)) => head(text),
        ("MDEntryID", fast::Value::Ascii(text) | fast::Value::Unicode(text)) => text
            .iter()
            .fold(0, |number, digit| number * 10 + u64::from(digit - b'0')),
        ("RptSeq", fast::Value::Signed(number)) => number as u64,
        ("RptSeq", fast::Value::Unsigned(number)) => number,
        ("MDEntryPx", fast::Value::Decimal(price)) => {
            (price.mantissa * 10_i64.pow((9 + i32::from(price.exponent)) as u32)) as u64
        }
        ("MDEntrySize", fast::Value::Decimal(size)) => match size.exponent {
            0.. => size.mantissa as u64 * 10_u64.pow(size.exponent as u32),
            _ => size.mantissa as u64 / 10_u64.pow(u32::from(size.exponent.unsigned_abs())),
        },
        _ => 0,
    }
}
