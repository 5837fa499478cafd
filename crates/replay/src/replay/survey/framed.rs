//! What a packet says of itself in its frame and header: whose it is, how many messages it has, and what it
//! was sent for.

use tickwire_feed::{Content, Cqs, Framing, Mdp3, Moex, MoldUdp64, OpenBook, PitchUnit, SessionId, Xdp};
use tickwire_market::Port;
use tickwire_venues::protocol::Protocol;
use tickwire_wire::{cqs, itch50, mdp3, moex, openbook, xdp};

/// What a packet says of itself.
pub(super) struct Framed {
    pub(super) session: SessionId,
    /// Messages that use a number.
    pub(super) count: u32,
}

/// The instrument's number in a message, where its place follows from the message's type.
pub(super) fn instrument(protocol: Protocol, message: &[u8]) -> Option<u32> {
    match protocol {
        Protocol::Itch50 => itch50::stock_locate(message).map(u32::from),
        Protocol::Xdp => xdp::symbol_index(message),
        _ => None,
    }
}

/// Who is told a message of a packet: the packet's session, the message's number, and its bytes without what
/// may differ between lines.
pub(super) type Each<'e> = &'e mut dyn FnMut(SessionId, u64, &[u8]);

/// Reads a packet's frame, and hands every message to `each`.
pub(super) fn frame(protocol: Protocol, payload: &[u8], each: Each<'_>) -> Option<Framed> {
    fn of<F: Framing>(payload: &[u8], head: usize, each: Each<'_>) -> Option<Framed> {
        let frame = F::parse(payload).ok()?;
        let mut count = 0;
        if let Content::Messages { messages, count: all } = frame.content {
            count = all;
            for (number, message) in (frame.first.0..).zip(messages) {
                each(frame.session, number, message.get(head..).unwrap_or_default());
            }
        }
        Some(Framed {
            session: frame.session,
            count,
        })
    }
    match protocol {
        Protocol::Itch50 | Protocol::Uqdf => of::<MoldUdp64>(payload, 0, each),
        Protocol::Pitch | Protocol::PitchOptions | Protocol::PitchComplex | Protocol::PitchFutures => {
            of::<PitchUnit>(payload, 0, each)
        }
        Protocol::Xdp => of::<Xdp>(payload, 0, each),
        Protocol::Openbook => of::<OpenBook>(payload, openbook::PacketHeader::SIZE, each),
        Protocol::Cqs if payload.first() == Some(&cqs::VERSION_SNAPSHOT) => {
            let block = cqs::parse_snapshot_block(payload).ok()?;
            let first = u64::from(block.header.seq.get());
            let count = block.messages.len() as u32;
            for (number, message) in (first..).zip(block.messages) {
                each(SessionId::NONE, number, message);
            }
            Some(Framed {
                session: SessionId::NONE,
                count,
            })
        }
        Protocol::Cqs => of::<Cqs>(payload, 0, each),
        Protocol::Mdp3 => of::<Mdp3>(payload, mdp3::PacketHeader::SIZE, each),
        Protocol::Moex => of::<Moex>(payload, moex::PREAMBLE_LEN, each),
    }
}

/// What a packet's header says it was sent for, where headers say it.
pub(super) fn port_of(protocol: Protocol, payload: &[u8]) -> Port {
    match protocol {
        Protocol::Xdp => {
            use xdp::DeliveryFlag as Flag;
            match xdp::parse_packet(payload).ok().and_then(|packet| packet.flag()) {
                Some(Flag::Retransmission | Flag::RetransmissionPart | Flag::Unavailable) => {
                    Port::Retransmission
                }
                Some(Flag::Refresh | Flag::RefreshStart | Flag::RefreshPart | Flag::RefreshEnd) => {
                    Port::Snapshot
                }
                _ => Port::Live,
            }
        }
        Protocol::Openbook => {
            use openbook::RetransFlag as Flag;
            match openbook::parse_packet(payload)
                .ok()
                .and_then(|packet| packet.flag())
            {
                Some(Flag::Retransmitted) => Port::Retransmission,
                Some(Flag::Refresh | Flag::LastRefresh) => Port::Snapshot,
                _ => Port::Live,
            }
        }
        Protocol::Cqs if payload.first() == Some(&cqs::VERSION_SNAPSHOT) => Port::Snapshot,
        Protocol::Cqs => {
            let flag = cqs::parse_block(payload).ok().map(|b| b.header.transmission.0);
            let is_again =
                flag.and_then(cqs::Transmission::from_wire) == Some(cqs::Transmission::Retransmitted);
            if is_again {
                Port::Retransmission
            } else {
                Port::Live
            }
        }
        _ => Port::Live,
    }
}
