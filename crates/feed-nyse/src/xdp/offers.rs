//! What a twin of a channel is sent.

use crate::nyse::TWIN_SCALE;
use crate::{Offers, offer_id};
use tickwire_market::{InstrumentId, Nanos};
use tickwire_wire_core::layout::le::I32;
use tickwire_wire_core::layout::{Char, Pod};
use tickwire_wire_nyse::xdp::{
    AddOrder, DeleteOrder, DeliveryFlag, PacketBuilder, SymbolIndexMapping, nul_padded,
};

/// Of a session of its own: an order is added, and deleted.
struct XdpOffers {
    index: u32,
    price: I32,
}

/// An order of this instrument at this price.
pub(super) fn offers(instrument: InstrumentId, price: i32) -> impl Offers + 'static {
    XdpOffers {
        index: instrument.0,
        price: price.into(),
    }
}

impl Offers for XdpOffers {
    fn write(&mut self, number: u32, buffer: &mut [u8]) -> usize {
        // The first one has a message more.
        let seq = if number == 1 { 1 } else { number + 1 };
        let mut packet = PacketBuilder::new(buffer, DeliveryFlag::Original, seq, Nanos::ZERO);
        let (symbol_index, order_id) = (self.index.into(), offer_id(number).into());
        if number == 1
            && let Some(symbol) = nul_padded(b"REHEARSED")
        {
            let mapping = SymbolIndexMapping {
                symbol_index,
                symbol,
                price_scale_code: TWIN_SCALE,
                ..SymbolIndexMapping::NEW
            };
            let _ = packet.push(mapping.as_bytes());
        }
        // A packet that has no room for its message is a heartbeat.
        let _ = match number % 2 {
            1 => packet.push(
                AddOrder {
                    symbol_index,
                    symbol_seq_num: number.into(),
                    order_id,
                    price: self.price,
                    volume: 100.into(),
                    side: Char(b'S'),
                    ..AddOrder::NEW
                }
                .as_bytes(),
            ),
            _ => packet.push(
                DeleteOrder {
                    symbol_index,
                    symbol_seq_num: number.into(),
                    order_id,
                    ..DeleteOrder::NEW
                }
                .as_bytes(),
            ),
        };
        packet.finish()
    }
}
