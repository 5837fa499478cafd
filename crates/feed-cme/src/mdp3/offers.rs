//! A twin of a channel, and what it is sent.

use super::table::Securities;
use super::{Mdp3Channel, Mdp3Config, Mdp3Decoder, ReplayConfig};
use crate::{ArbiterConfig, Offers, Twin, offer_id};
use tickwire_market::{InstrumentId, Nanos, Price};
use tickwire_wire_cme::mdp3::{
    Book, BookEntry, EntryType, EventRoot, OrderAction, OrderEntry, PacketBuilder, Price9, UpdateAction,
    indicator,
};

impl Mdp3Decoder {
    /// Of a twin of a decoder, whose one instrument has this number, at least 1: by price or by order as
    /// there, without refreshes.
    fn of_twin(&self, instrument: InstrumentId) -> Mdp3Decoder {
        Mdp3Decoder {
            securities: Securities::of_one(instrument.0),
            ..Mdp3Decoder::new(Mdp3Config {
                depth: self.depth,
                implied: self.implied,
                executions: self.resting.tells_executions(),
                instruments_max: instrument.0,
                orders_max: 16,
                ..Mdp3Config::default()
            })
        }
    }
}

/// See [`Channel::twin`](crate::Channel::twin).
pub(super) fn twin(
    decoder: &Mdp3Decoder,
    config: ArbiterConfig,
    instrument: InstrumentId,
    price: Price,
) -> Twin<Mdp3Channel> {
    let replay: ReplayConfig = Mdp3Channel::replay_config(0, b"", b"");
    let decoder = decoder.of_twin(instrument);
    let channel = Mdp3Channel::new(config, decoder, replay, Nanos::SECOND);
    Twin::new(channel, Mdp3Offers(price))
}

/// Of a session of its own: the best level of a side, and the order of it, enters and leaves.
struct Mdp3Offers(Price);

impl Offers for Mdp3Offers {
    fn write(&mut self, number: u32, buffer: &mut [u8]) -> usize {
        let (action, of_order) = match number % 2 {
            1 => (UpdateAction::New, OrderAction::New),
            _ => (UpdateAction::Delete, OrderAction::Delete),
        };
        let root = EventRoot {
            indicator: indicator::LAST_QUOTE | indicator::END_OF_EVENT,
            ..EventRoot::BLANK
        };
        let entry = BookEntry {
            price: Some(Price9::of(self.0)).into(),
            size: Some(100.into()).into(),
            security_id: 1.into(),
            // Every entry is a datagram's only one.
            rpt_seq: number.into(),
            orders: Some(1.into()).into(),
            level: 1,
            action: action as u8,
            entry_type: EntryType::Offer.into(),
            ..BookEntry::BLANK
        };
        let order = OrderEntry {
            order_id: offer_id(number).into(),
            priority: Some(u64::from(number).into()).into(),
            display_qty: Some(100.into()).into(),
            reference_id: Some(1).into(),
            action: of_order as u8,
        };
        let mut packet = PacketBuilder::new(buffer, number, 0);
        // There is room: a packet without its message would say nothing.
        let _ = packet.push(|buffer| Book::encode(buffer, &root, [entry], [order]));
        packet.finish()
    }
}
