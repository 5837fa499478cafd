//! MoldUDP64 as a framing, of Nasdaq's feeds and of the UTP tape.

use crate::{Content, Frame, Framing, MissingRange, SessionId};
use tickwire_market::SeqNo;
use tickwire_wire_core::Malformed;
use tickwire_wire_nasdaq::moldudp64;

/// MoldUDP64 1.00: Nasdaq ITCH and UTP feeds.
#[derive(Clone, Copy, Debug)]
pub enum MoldUdp64 {}

impl Framing for MoldUdp64 {
    type Messages<'a> = moldudp64::Blocks<'a>;

    #[inline]
    fn parse(datagram: &[u8]) -> Result<Frame<moldudp64::Blocks<'_>>, Malformed> {
        let packet = moldudp64::parse(datagram)?;
        Ok(Frame {
            session: SessionId(packet.session),
            first: packet.seq,
            trailing: packet.trailing,
            content: match packet.payload {
                moldudp64::Payload::Messages(messages) => Content::Messages {
                    count: messages.len() as u32,
                    messages,
                },
                moldudp64::Payload::Heartbeat => Content::Heartbeat,
                moldudp64::Payload::EndOfSession => Content::EndOfSession,
            },
        })
    }

    fn request(range: MissingRange, buffer: &mut [u8]) -> Option<usize> {
        let bytes = moldudp64::Request {
            session: range.session.0,
            seq: range.first,
            count: range.count,
        }
        .encode();
        buffer.get_mut(..bytes.len())?.copy_from_slice(&bytes);
        Some(bytes.len())
    }

    fn wrap(session: SessionId, seq: SeqNo, message: &[u8], buffer: &mut [u8]) -> Option<usize> {
        if buffer.len() < moldudp64::Header::SIZE {
            return None;
        }
        let mut packet = moldudp64::PacketBuilder::new(buffer, session.0, seq);
        packet.push(message).then(|| packet.finish())
    }
}
