//! Requests to an OpenBook Ultra request server and its answers. OpenBook Ultra 2.1, "Retransmission",
//! "Refresh".

use alloc::vec::Vec;

use tickwire_market::Nanos;
use tickwire_wire::Malformed;
use tickwire_wire::layout::{Alpha, Char};
use tickwire_wire::openbook::{
    self, HEARTBEAT, Message, PacketBuilder, PacketHeader, RejectReason, RetransFlag,
};
use tickwire_wire::zerocopy::IntoBytes;

use super::OpenBookFormat;
use crate::nyse::{Ask, Refusal, Request, RequestFormat, append};

impl RequestFormat for OpenBookFormat {
    /// A header and the longest request, with room for a later release's.
    const REQUEST_MAX: usize = 256;

    fn split(bytes: &[u8]) -> Result<Option<(Request, usize)>, Malformed> {
        let Some((packet, used)) = openbook::split(bytes)? else {
            return Ok(None);
        };
        let kind = packet.kind();
        let message = packet.messages.clone().next();
        let (source, ask) = match message.and_then(|message| openbook::parse(kind, message).ok()) {
            Some(Message::RetransmissionRequest(m)) => (
                m.source_id.0,
                Ask::Again(m.begin_seq_num.get(), m.end_seq_num.get()),
            ),
            Some(Message::BookRefreshRequest(m)) => (m.source_id.0, Ask::RefreshByName(m.symbol.0)),
            Some(Message::ExtendedRefreshRequest(m)) => (m.source_id.0, Ask::Refresh(m.symbol_index.get())),
            Some(Message::SymbolIndexMappingRequest(m)) => {
                (m.source_id.0, Ask::Mapping(m.symbol_index.get()))
            }
            Some(Message::HeartbeatResponse(m)) => (m.source_id.0, Ask::Alive),
            _ => ([0; 20], Ask::Unknown),
        };
        let request = Request {
            number: packet.header.seq_num.get(),
            source,
            product: packet.header.product_id,
            channel: None,
            ask,
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
        let reason = match verdict {
            Ok(()) => RejectReason::None,
            Err(Refusal::BadRange | Refusal::BadRequest) => RejectReason::BadRange,
            Err(Refusal::RangeTooBig) => RejectReason::RangeTooBig,
            Err(Refusal::RequestsExhausted) => RejectReason::RequestsExhausted,
            Err(Refusal::RefreshesExhausted) => RejectReason::RefreshesExhausted,
            Err(Refusal::TooOld) => RejectReason::TooOld,
            Err(Refusal::BadChannel | Refusal::BadProduct) => RejectReason::Permission,
        };
        let message = openbook::RequestResponse {
            source_seq_num: request.number.into(),
            source_id: Alpha(request.source),
            status: Char(if verdict.is_ok() { b'A' } else { b'R' }),
            reject_reason: Char(reason as u8),
            ..openbook::RequestResponse::BLANK
        };
        let header = self.header(
            openbook::RequestResponse::KIND,
            number,
            RetransFlag::Original,
            now,
        );
        append(
            out,
            PacketHeader::SIZE + openbook::RequestResponse::SIZE,
            |buffer| {
                let mut packet = PacketBuilder::new(buffer, header);
                let fits = packet.push(message.as_bytes());
                debug_assert!(fits, "the buffer was made for it");
                packet.finish()
            },
        );
    }

    fn ask_alive(&self, number: u32, now: Nanos, out: &mut Vec<u8>) {
        let header = self.header(HEARTBEAT, number, RetransFlag::Original, now);
        append(out, PacketHeader::SIZE, |buffer| {
            PacketBuilder::new(buffer, header).finish()
        });
    }
}
