//! Requests to an XDP request server and its answers. Common Client 2.4.p, "Retransmission Server", "Refresh
//! Server".

use alloc::vec::Vec;

use tickwire_market::Nanos;
use tickwire_wire::Malformed;
use tickwire_wire::layout::{Alpha, Char};
use tickwire_wire::xdp::{self, DeliveryFlag, PacketBuilder, PacketHeader, ResponseStatus};
use tickwire_wire::zerocopy::IntoBytes;

use super::XdpFormat;
use crate::nyse::{Ask, Refusal, Request, RequestFormat, append};

fn padded(source: Alpha<10>) -> [u8; 20] {
    let mut name = [0; 20];
    name[..10].copy_from_slice(&source.0);
    name
}

impl RequestFormat for XdpFormat {
    /// A header and the longest request, with room for a later release's.
    const REQUEST_MAX: usize = 256;

    fn split(bytes: &[u8]) -> Result<Option<(Request, usize)>, Malformed> {
        let Some((packet, used)) = xdp::split(bytes)? else {
            return Ok(None);
        };
        let nothing = Request {
            number: packet.header.seq_num.get(),
            source: [0; 20],
            product: 0,
            channel: None,
            ask: Ask::Unknown,
        };
        let message = packet.messages.clone().next();
        let request = match message.and_then(|message| xdp::parse(message).ok()) {
            Some(xdp::Message::RetransmissionRequest(m)) => Request {
                source: padded(m.source_id),
                product: m.product_id,
                channel: Some(m.channel_id),
                ask: Ask::Again(m.begin_seq_num.get(), m.end_seq_num.get()),
                ..nothing
            },
            Some(xdp::Message::RefreshRequest(m)) => Request {
                source: padded(m.source_id),
                product: m.product_id,
                channel: Some(m.channel_id),
                ask: Ask::Refresh(m.symbol_index.get()),
                ..nothing
            },
            Some(xdp::Message::SymbolIndexMappingRequest(m)) => Request {
                source: padded(m.source_id),
                product: m.product_id,
                channel: Some(m.channel_id),
                ask: Ask::Mapping(m.symbol_index.get()),
                ..nothing
            },
            Some(xdp::Message::HeartbeatResponse(m)) => Request {
                source: padded(m.source_id),
                ask: Ask::Alive,
                ..nothing
            },
            _ => nothing,
        };
        Ok(Some((request, used)))
    }

    fn respond(
        &self,
        number: u32,
        request: &Request,
        verdict: Result<(), Refusal>,
        now: Nanos,
        out: &mut Vec<u8>,
    ) {
        let (first, last) = match request.ask {
            Ask::Again(first, last) => (first, last),
            _ => (0, 0),
        };
        let mut source_id = Alpha([0; 10]);
        source_id.0.copy_from_slice(&request.source[..10]);
        let status = match verdict {
            Ok(()) => ResponseStatus::Accepted,
            Err(Refusal::BadRange | Refusal::RangeTooBig) => ResponseStatus::RangeTooBig,
            Err(Refusal::RequestsExhausted) => ResponseStatus::RequestsExhausted,
            Err(Refusal::RefreshesExhausted) => ResponseStatus::RefreshesExhausted,
            Err(Refusal::TooOld) => ResponseStatus::TooOld,
            Err(Refusal::BadChannel) => ResponseStatus::BadChannel,
            Err(Refusal::BadProduct) => ResponseStatus::BadProduct,
            Err(Refusal::BadRequest) => ResponseStatus::BadRequest,
        };
        let message = xdp::RequestResponse {
            request_seq_num: request.number.into(),
            begin_seq_num: first.into(),
            end_seq_num: last.into(),
            source_id,
            product_id: self.product,
            channel_id: self.channel,
            status: Char(status as u8),
            ..xdp::RequestResponse::NEW
        };
        append(out, PacketHeader::SIZE + xdp::RequestResponse::SIZE, |buffer| {
            let mut packet = PacketBuilder::new(buffer, DeliveryFlag::Original, number, now);
            let fits = packet.push(message.as_bytes());
            debug_assert!(fits, "the buffer was made for it");
            packet.finish()
        });
    }

    fn ask_alive(&self, number: u32, now: Nanos, out: &mut Vec<u8>) {
        append(out, PacketHeader::SIZE, |buffer| {
            xdp::heartbeat(buffer, number, now)
        });
    }
}
