//! A twin of a channel, and what it is sent.

use super::instruments::Keys;
use super::{MoexChannel, MoexConfig, MoexDecoder, MoexReplayConfig};
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

/// Of an entry: of as many digits as most of a day's.
const TIME: Nanos = Nanos((12 * 3_600 + 34 * 60 + 56) * Nanos::SECOND + 123_456_000);

/// The symbol of an instrument of which no definition has come.
const UNKNOWN: &[u8] = b"REHEARSED";

impl MoexDecoder {
    /// Of a twin of a decoder, whose one instrument has this number, at least 1: by the same templates, at
    /// the same place in memory.
    fn of_twin(&self, instrument: InstrumentId) -> MoexDecoder {
        let config = MoexConfig {
            main_board: self.books.main_board.clone(),
            instruments_max: instrument.0,
            limits: LIMITS,
            ..MoexConfig::new(self.wire.plan().clone())
        };
        let mut decoder = MoexDecoder::around(self.wire.beside(LIMITS), config);
        decoder.books.keys = Keys::of_one(instrument.0);
        decoder
    }

    /// Its symbol and its board. One whose definition has not come yet has a symbol nobody else has.
    fn called(&self, instrument: InstrumentId) -> [&[u8]; 2] {
        let known = self.books.filter.instrument(instrument);
        let name = known.map_or(UNKNOWN, |it| it.symbol.as_bytes());
        let at = name.iter().position(|byte| *byte == b'@');
        match at {
            Some(at) => [&name[..at], &name[at + 1..]],
            None => [name, &self.books.main_board],
        }
    }
}

/// See [`Channel::twin`](crate::Channel::twin).
pub(super) fn twin(
    decoder: &MoexDecoder,
    arbiter: ArbiterConfig,
    instrument: InstrumentId,
    price: Price,
) -> Option<Twin<MoexChannel>> {
    let encoder = Encoder::new(decoder.wire.plan().clone(), LIMITS).ok()?;
    let [symbol, board] = decoder.called(instrument);
    let offers = MoexOffers {
        template: encoder.find(MessageKind::OrderLog, "")?,
        encoder,
        symbol: symbol.into(),
        board: board.into(),
        price,
    };
    let decoder = decoder.of_twin(instrument);
    let channel = MoexChannel::around(decoder, arbiter, MoexReplayConfig::default());
    Some(Twin::new(channel, offers))
}

/// Of a session of its own: an order is new, and deleted.
struct MoexOffers {
    encoder: Encoder,
    template: Template,
    /// As the instrument itself is called, so that its twin goes the same way.
    symbol: Vec<u8>,
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
            symbol: &self.symbol,
            board: &self.board,
            // Every entry is a datagram's only one.
            rpt_seq: number,
            price: Some(self.price),
            qty,
            date: None,
            time: Some(TIME),
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
