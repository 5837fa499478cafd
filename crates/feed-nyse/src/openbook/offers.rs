//! What a twin of a channel is sent.

use crate::Offers;
use crate::nyse::TWIN_SCALE;
use tickwire_market::InstrumentId;
use tickwire_wire_core::layout::{Char, I32};
use tickwire_wire_nyse::openbook::{
    DeltaHead, DeltaPoint, FullHead, PacketBuilder, PacketHeader, ReasonCode, RetransFlag, encode_delta,
    encode_full,
};
use tickwire_wire_nyse::xdp::nul_padded;

/// Of a session of its own: a price point enters, and leaves.
struct OpenBookOffers {
    index: u32,
    price: I32,
}

/// An offer of this instrument at this price.
pub(super) fn offers(instrument: InstrumentId, price: i32) -> impl Offers + 'static {
    OpenBookOffers {
        index: instrument.0,
        price: price.into(),
    }
}

impl OpenBookOffers {
    /// Says who the instrument is: its book is empty.
    fn full(&self, number: u32, buffer: &mut [u8]) -> Option<usize> {
        let head = FullHead {
            symbol_index: self.index.into(),
            symbol_seq_num: number.into(),
            symbol: nul_padded(b"REHEARSED")?,
            price_scale_code: TWIN_SCALE,
            quote_condition: Char(b' '),
            trading_status: Char(b'O'),
            ..FullHead::BLANK
        };
        encode_full(buffer, &head, &[])
    }

    fn delta(&self, number: u32, volume: u32, buffer: &mut [u8]) -> Option<usize> {
        let (reason, orders) = match volume {
            0 => (ReasonCode::Cancel, 0),
            _ => (ReasonCode::Order, 1),
        };
        let head = DeltaHead {
            symbol_index: self.index.into(),
            source_seq_num: number.into(),
            quote_condition: Char(b' '),
            trading_status: Char(b'O'),
            price_scale_code: TWIN_SCALE,
            ..DeltaHead::BLANK
        };
        let point = DeltaPoint {
            price_numerator: self.price,
            volume: volume.into(),
            chg_qty: VOLUME.into(),
            num_orders: orders.into(),
            side: Char(b'S'),
            reason_code: Char(reason as u8),
            ..DeltaPoint::BLANK
        };
        encode_delta(buffer, &head, &[point])
    }
}

/// Shares of the offer.
const VOLUME: u32 = 100;

impl Offers for OpenBookOffers {
    fn write(&mut self, number: u32, buffer: &mut [u8]) -> usize {
        let mut message = [0; 128];
        let (kind, length) = match number {
            1 => (FullHead::KIND, self.full(number, &mut message)),
            _ => {
                let volume = number % 2 * VOLUME;
                (DeltaHead::KIND, self.delta(number, volume, &mut message))
            }
        };
        let header = PacketHeader {
            msg_type: kind.into(),
            seq_num: number.into(),
            retrans_flag: RetransFlag::Original as u8,
            ..PacketHeader::BLANK
        };
        let mut packet = PacketBuilder::new(buffer, header);
        let _ = packet.push(&message[..length.unwrap_or(0)]);
        packet.finish()
    }
}
