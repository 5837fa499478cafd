//! A twin of a channel, and what it is sent.

use super::instruments::Keys;
use super::{Instruments, MoexChannel, MoexChannelConfig, MoexConfig, MoexDecoder};
use crate::{ArbiterConfig, Offers, Twin, offer_id};
use alloc::vec::Vec;
use tickwire_market::{InstrumentId, Nanos, OrderId, Price, Side, Volume};
use tickwire_wire_moex::fast::Limits;
use tickwire_wire_moex::moex::{Action, Encoder, MessageKind, OrderEntry, OrderKind, Template};

/// Of messages of one entry.
const LIMITS: Limits = Limits {
    values_max: 1 << 12,
    text_bytes_max: 1 << 14,
    strict: true,
};

/// Any time that can be written: `SendingTime` has a date.
const SENT: Nanos = Nanos(1_600_000_000 * Nanos::SECOND);

/// See [`Channel::twin`](crate::Channel::twin).
pub(super) fn twin(
    decoder: &MoexDecoder,
    arbiter: ArbiterConfig,
    instrument: InstrumentId,
    price: Price,
) -> Option<Twin<MoexChannel>> {
    if instrument == InstrumentId::WHOLE_FEED {
        return None;
    }
    let templates = decoder.wire.plan().clone();
    let encoder = Encoder::new(templates.clone(), LIMITS).ok()?;
    let offers = MoexOffers {
        template: encoder.find(MessageKind::OrderLog, "")?,
        encoder,
        board: decoder.books.main_board.clone(),
        price,
    };
    let config = MoexConfig {
        main_board: offers.board.clone(),
        instruments_max: instrument.0,
        limits: LIMITS,
        ..MoexConfig::new(templates)
    };
    let mut channel = MoexChannel::new(MoexChannelConfig {
        arbiter,
        ..MoexChannelConfig::new(config)
    })
    .ok()?;
    let books: &mut Instruments = channel.books_mut();
    books.keys = Keys::of_one(instrument.0);
    Some(Twin::new(channel, offers))
}

/// Of a session of its own: an order is new, and deleted.
struct MoexOffers {
    encoder: Encoder,
    template: Template,
    board: Vec<u8>,
    price: Price,
}

impl Offers for MoexOffers {
    fn write(&mut self, number: u32, buffer: &mut [u8]) -> usize {
        let (action, qty, order_status) = match number % 2 {
            1 => (Action::New, Some(Volume(100)), &b"O"[..]),
            _ => (Action::Delete, None, &b""[..]),
        };
        let entry = OrderEntry {
            action,
            kind: OrderKind::Order(Side::Ask),
            order_id: OrderId(offer_id(number)),
            symbol: b"REHEARSED",
            board: &self.board,
            // Every entry is a datagram's only one.
            rpt_seq: number,
            price: Some(self.price),
            qty,
            date: None,
            time: Some(Nanos::ZERO),
            order_status,
            session: b"N",
        };
        let written = self
            .encoder
            .order_log(self.template, number, SENT, &[entry], buffer);
        // There is room: a datagram without its message would be malformed.
        written.unwrap_or(0)
    }
}
