//! Nasdaq, Cboe and NYSE.

use crate::Packets;
use crate::pattern::{Shown, VARIANTS, fill, one, shown};
use tickwire_market::{Nanos, SeqNo};
use tickwire_wire::{Malformed, itch50, moldudp64, openbook, pitch, xdp};

/// The longest datagram an Ethernet frame holds.
const DATAGRAM: usize = 1472;

/// Messages of some protocol in MoldUDP64, so many a packet; then a heartbeat and the end of the session.
pub(crate) fn mold(messages: &[Vec<u8>], each: usize) -> Packets {
    let (session, mut next) = (*b"0123456789", SeqNo(1));
    let mut packets = Packets::new();
    for part in messages.chunks(each) {
        let mut packet = vec![0; DATAGRAM];
        let mut builder = moldudp64::PacketBuilder::new(&mut packet, session, next);
        for message in part {
            assert!(builder.push(message));
            next = next.next();
        }
        let length = builder.finish();
        packet.truncate(length);
        packets.push(packet);
    }
    for write in [moldudp64::heartbeat, moldudp64::end_of_session] {
        let mut packet = vec![0; moldudp64::Header::SIZE];
        write(&mut packet, session, next);
        packets.push(packet);
    }
    packets
}

/// ITCH 5.0 in MoldUDP64; the end-of-snapshot message belongs to TCP and is left out.
pub(crate) fn itch50() -> Packets {
    let read = |bytes: &[u8]| shown(|f| itch50::parse(bytes).unwrap().visit(f));
    let mut messages = Vec::new();
    for variant in VARIANTS {
        for (kind, _, size) in itch50::TYPES {
            if *kind == itch50::EndOfSnapshot::KIND {
                continue;
            }
            let mut message = vec![0; *size];
            message[0] = *kind;
            fill(&mut message, variant, |at| at == 0, read);
            messages.push(message);
        }
    }
    mold(&messages, 12)
}

/// PITCH equities.
pub(crate) fn pitch() -> Packets {
    equities(|kind| !is_recovery(kind))
}

/// The messages of the Gap Request Proxy and the Spin server.
pub(crate) fn pitch_recovery() -> Packets {
    equities(is_recovery)
}

fn is_recovery(kind: u8) -> bool {
    kind < pitch::Time::KIND || (pitch::SpinImageAvailable::KIND..=pitch::SpinFinished::KIND).contains(&kind)
}

fn equities(wanted: impl Fn(u8) -> bool) -> Packets {
    let types: Vec<_> = pitch::TYPES
        .iter()
        .copied()
        .filter(|(kind, ..)| wanted(*kind))
        .collect();
    pitch_packets(&types, |bytes| shown(|f| pitch::parse(bytes).unwrap().visit(f)))
}

/// PITCH options, but for what the script for 2.39.4 does not have.
pub(crate) fn pitch_options() -> Packets {
    const LATER: [u8; 3] = [
        pitch::options::SymbolMapping::KIND,
        pitch::options::AuctionNotification::KIND,
        pitch::options::AuctionUpdate::KIND,
    ];
    let types = pitch::options::TYPES
        .iter()
        .filter(|(kind, ..)| !LATER.contains(kind));
    pitch_packets(&types.copied().collect::<Vec<_>>(), |bytes| {
        shown(|f| pitch::options::parse(bytes).unwrap().visit(f))
    })
}

/// PITCH complex options: what has a price with a sign, and what only they have.
pub(crate) fn pitch_complex() -> Packets {
    const THEIRS: [u8; 10] = [
        pitch::complex::AddOrderLong::KIND,
        pitch::complex::AddOrderShort::KIND,
        pitch::complex::ModifyOrderLong::KIND,
        pitch::complex::ModifyOrderShort::KIND,
        pitch::complex::TradeLong::KIND,
        pitch::complex::TradeShort::KIND,
        pitch::complex::SymbolMapping::KIND,
        pitch::complex::ComplexInstrumentDefinition::KIND,
        pitch::complex::AuctionNotification::KIND,
        pitch::complex::AuctionUpdate::KIND,
    ];
    let types = pitch::complex::TYPES
        .iter()
        .filter(|(kind, ..)| THEIRS.contains(kind));
    pitch_packets(&types.copied().collect::<Vec<_>>(), |bytes| {
        shown(|f| pitch::complex::parse(bytes).unwrap().visit(f))
    })
}

/// PITCH futures.
pub(crate) fn pitch_futures() -> Packets {
    pitch_packets(pitch::futures::TYPES, |bytes| {
        shown(|f| pitch::futures::parse(bytes).unwrap().visit(f))
    })
}

fn pitch_packets(types: &[(u8, &str, usize)], read: impl Fn(&[u8]) -> Shown) -> Packets {
    let mut messages = Vec::new();
    for variant in VARIANTS {
        for (kind, _, size) in types {
            let mut message = vec![0; *size];
            message[0] = *size as u8;
            message[1] = *kind;
            // No legs follow.
            let legs = core::mem::offset_of!(pitch::complex::ComplexInstrumentDefinition, leg_count);
            let is_definition = *kind == pitch::complex::ComplexInstrumentDefinition::KIND;
            fill(
                &mut message,
                variant,
                |at| at < 2 || is_definition && at == legs,
                &read,
            );
            messages.push(message);
        }
    }
    let (unit, mut next) = (7, 1);
    let mut packets = Packets::new();
    for part in messages.chunks(12) {
        let mut packet = vec![0; DATAGRAM];
        let mut builder = pitch::PacketBuilder::new(&mut packet, unit, next);
        for message in part {
            assert!(builder.push(message));
            next += 1;
        }
        let length = builder.finish();
        packet.truncate(length);
        packets.push(packet);
    }
    let mut packet = vec![0; pitch::UnitHeader::SIZE];
    pitch::heartbeat(&mut packet, unit, next);
    packets.push(packet);
    packets
}

/// NYSE Integrated, requests and responses too.
pub(crate) fn xdp() -> Packets {
    xdp_packets(|name| !XDP_OTHER.contains(&name))
}

/// The imbalance of XDP 2.1.
pub(crate) fn xdp_imbalance() -> Packets {
    xdp_packets(|name| name == XDP_OTHER[0])
}

/// Quotes of the BBO feed.
pub(crate) fn xdp_bbo() -> Packets {
    xdp_packets(|name| name == XDP_OTHER[2])
}

/// The short refresh header.
pub(crate) fn xdp_refresh() -> Packets {
    xdp_packets(|name| name == XDP_OTHER[1])
}

/// Second layouts of a type, told by its size, and what another feed has.
const XDP_OTHER: [&str; 3] = ["ImbalanceXdp21", "RefreshContinuation", "Quote"];

/// Each type twice in a packet.
fn xdp_packets(wanted: impl Fn(&str) -> bool) -> Packets {
    let read = |bytes: &[u8]| shown(|f| xdp::parse(bytes).unwrap().visit(f));
    let (mut next, sent) = (1, Nanos(1_700_000_000_123_456_789));
    let mut packets = Packets::new();
    for (kind, _, size) in xdp::TYPES.iter().filter(|(_, name, _)| wanted(name)) {
        let mut packet = vec![0; xdp::PACKET_SIZE_MAX];
        let mut builder = xdp::PacketBuilder::new(&mut packet, xdp::DeliveryFlag::Original, next, sent);
        for variant in VARIANTS {
            let mut message = vec![0; *size];
            message[..2].copy_from_slice(&(*size as u16).to_le_bytes());
            message[2..4].copy_from_slice(&kind.to_le_bytes());
            fill(&mut message, variant, |at| at < 4, read);
            assert!(builder.push(&message));
            next += 1;
        }
        let length = builder.finish();
        packet.truncate(length);
        packets.push(packet);
    }
    let mut packet = vec![0; xdp::PacketHeader::SIZE];
    xdp::heartbeat(&mut packet, next, sent);
    packets.push(packet);
    packets
}

/// OpenBook Ultra: updates, and the reset.
pub(crate) fn openbook() -> Packets {
    openbook_packets(|kind| !is_control(kind))
}

/// Requests, responses and what else is not of the updates.
pub(crate) fn openbook_control() -> Packets {
    openbook_packets(is_control)
}

fn is_control(kind: u16) -> bool {
    let of_books = [
        openbook::SequenceNumberReset::KIND,
        openbook::FullHead::KIND,
        openbook::DeltaHead::KIND,
    ];
    !of_books.contains(&kind)
}

/// A packet holds messages of one type: two updates, of which the first has two price points, or one other
/// message.
fn openbook_packets(wanted: impl Fn(u16) -> bool) -> Packets {
    let mut packets = Packets::new();
    for (kind, _, size) in openbook::TYPES.iter().filter(|(kind, ..)| wanted(*kind)) {
        let point = match *kind {
            openbook::FullHead::KIND => openbook::FullPoint::SIZE,
            openbook::DeltaHead::KIND => openbook::DeltaPoint::SIZE,
            _ => 0,
        };
        let count = if point > 0 { 2 } else { 1 };
        let header = openbook::PacketHeader {
            msg_type: (*kind).into(),
            seq_num: (packets.len() as u32 + 1).into(),
            send_time: 34_200_123.into(),
            product_id: 12,
            retrans_flag: openbook::RetransFlag::Original as u8,
            ..openbook::PacketHeader::BLANK
        };
        let mut packet = vec![0; openbook::PACKET_SIZE_MAX];
        let mut builder = openbook::PacketBuilder::new(&mut packet, header);
        for (variant, points) in VARIANTS.into_iter().zip([2, 0]).take(count) {
            let mut message = vec![0; *size + points * point];
            if point > 0 {
                let length = message.len() as u16;
                message[..2].copy_from_slice(&length.to_be_bytes());
            }
            fill(
                &mut message,
                variant,
                |at| point > 0 && at < 2,
                |bytes| openbook_fields(*kind, bytes),
            );
            assert!(builder.push(&message));
        }
        let length = builder.finish();
        packet.truncate(length);
        packets.push(packet);
    }
    let header = openbook::PacketHeader {
        msg_type: openbook::HEARTBEAT.into(),
        ..openbook::PacketHeader::BLANK
    };
    let mut packet = vec![0; openbook::PacketHeader::SIZE];
    openbook::PacketBuilder::new(&mut packet, header).finish();
    packets.push(packet);
    packets
}

fn openbook_fields(kind: u16, bytes: &[u8]) -> Shown {
    let mut shown = Shown::new();
    let message: Result<openbook::Message<'_>, Malformed> = openbook::parse(kind, bytes);
    message.unwrap().visit(&mut |_, _, value| shown.push(one(value)));
    shown
}
