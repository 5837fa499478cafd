//! A twin of a channel, and what it is sent.

use super::table::Securities;
use super::{Mdp3Channel, Mdp3Config, Mdp3Decoder, ReplayConfig};
use crate::{ArbiterConfig, Offers, Twin, offer_id};
use core::iter::once;
use tickwire_market::{InstrumentId, Nanos, Price};
use tickwire_wire_cme::mdp3::{
    Book, BookEntry, EntryType, EventRoot, OrderAction, OrderEntry, PacketBuilder, Price9, UpdateAction,
    indicator,
};

impl Mdp3Decoder {
    /// Of a twin of a decoder, whose one instrument has this number, at least 1: by price or by order as
    /// there, without refreshes. Its book is two levels deep, so that two fill it.
    fn of_twin(&self, instrument: InstrumentId) -> Mdp3Decoder {
        let mut twin = Mdp3Decoder {
            securities: Securities::of_one(instrument.0),
            ..Mdp3Decoder::new(Mdp3Config {
                depth: self.depth,
                implied: self.implied,
                executions: self.resting.tells_executions(),
                instruments_max: instrument.0,
                orders_max: 16,
                ..Mdp3Config::default()
            })
        };
        if let Some(rows) = twin.rows.get_mut(instrument.index()) {
            rows.set_depth(false, 2);
        }
        twin
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
    // More than one number of its instrument is used up by a datagram.
    Twin::new(channel, Mdp3Offers(price)).ending_after(1 << 31)
}

/// From the best level to the next one of a book that is full.
const STEP: i64 = Price::from_4dp(500).raw();

/// Of a session of its own, of a book that is full, as most are: the best level of a side, and the order of
/// it, enters, which pushes the last level out of the book, and leaves, and the last one is there again.
struct Mdp3Offers(Price);

impl Mdp3Offers {
    /// An entry of the level that is so many steps from the best offer.
    fn entry(&self, action: UpdateAction, level: u8, steps: i64, rpt_seq: u32) -> BookEntry {
        let price = Price::from_raw(self.0.raw().saturating_add(steps * STEP));
        BookEntry {
            price: Some(Price9::of(price)).into(),
            size: Some(100.into()).into(),
            security_id: 1.into(),
            rpt_seq: rpt_seq.into(),
            orders: Some(1.into()).into(),
            level,
            action: action as u8,
            entry_type: EntryType::Offer.into(),
            ..BookEntry::BLANK
        }
    }
}

impl Offers for Mdp3Offers {
    fn write(&mut self, number: u32, buffer: &mut [u8]) -> usize {
        let (enters, of_order) = match number % 2 {
            1 => (true, OrderAction::New),
            _ => (false, OrderAction::Delete),
        };
        // By two datagrams three entries are sent, but by the first two, which nobody hears, two.
        let first = number.saturating_sub(1) / 2 * 3 + u32::from(!enters);
        let (new, change, delete) = (UpdateAction::New, UpdateAction::Change, UpdateAction::Delete);
        let (entry, other) = match (number, enters) {
            (1, _) => (self.entry(new, 1, 1, 1), None),
            (2, _) => (self.entry(change, 1, 1, 2), None),
            (_, true) => (self.entry(new, 1, 0, first), None),
            (_, false) => (
                self.entry(delete, 1, 0, first),
                Some(self.entry(new, 2, 2, first + 1)),
            ),
        };
        let order = OrderEntry {
            order_id: offer_id(number).into(),
            priority: Some(u64::from(number).into()).into(),
            display_qty: Some(100.into()).into(),
            reference_id: Some(1).into(),
            action: of_order as u8,
        };
        let root = EventRoot {
            indicator: indicator::LAST_QUOTE | indicator::END_OF_EVENT,
            ..EventRoot::BLANK
        };
        let mut packet = PacketBuilder::new(buffer, number, 0);
        // There is room: a packet without its message would say nothing.
        let _ = packet.push(|buffer| Book::encode(buffer, &root, once(entry).chain(other), [order]));
        packet.finish()
    }
}
