//! Enter Order of OUCH 5.0 in SoupBinTCP.

use std::mem::offset_of;

use tickwire_market::Symbol;
use tickwire_wire_core::layout::{Alpha, Char, Pod, Scaled, U64};
use tickwire_wire_nasdaq::ouch50::{Appendage, EnterOrder, MESSAGE_SIZE_MAX, OrderSide, encode};
use tickwire_wire_nasdaq::soupbintcp::{self, Packet};

use super::{Filled, PAYLOAD_AT};

/// Bytes of an order's frame without FCS: headers, SoupBinTCP packet, Enter Order with an empty appendage.
pub const OUCH_FRAME_SIZE: usize = PAYLOAD_AT + soupbintcp::HEADER_SIZE + EnterOrder::SIZE + 2;
/// Where the side lies in the frame.
pub(super) const SIDE_PLACE: usize = PAYLOAD_AT + soupbintcp::HEADER_SIZE + offset_of!(EnterOrder, side);

/// What stands in every Enter Order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OuchText {
    /// The symbol of the instrument, of up to 8 characters.
    pub symbol: Symbol,
    /// For whom: see OUCH's `Capacity`; `O` other.
    pub capacity: u8,
    /// Free text that the venue repeats.
    pub client_order_id: [u8; 14],
}

impl OuchText {
    pub(super) fn message(&self, order: &Filled) -> Option<Vec<u8>> {
        let entered = EnterOrder {
            user_ref_num: order.user_ref.into(),
            side: OrderSide::of(order.side).into(),
            quantity: order.qty.0.into(),
            symbol: Alpha::new(self.symbol.as_bytes())?,
            price: Scaled(U64::new(order.price.into())),
            time_in_force: Char(b'3'),
            display: Char(b'Y'),
            capacity: Char(self.capacity),
            iso_eligible: Char(b'N'),
            cross_type: Char(b'N'),
            cl_ord_id: Alpha(self.client_order_id),
            ..EnterOrder::NEW
        };
        let mut message = [0; MESSAGE_SIZE_MAX];
        let length = encode(entered.as_bytes(), Some(&Appendage::EMPTY), &mut message)?;
        let mut payload = [0; OUCH_FRAME_SIZE - PAYLOAD_AT];
        let length = Packet::Unsequenced(&message[..length]).encode(&mut payload)?;
        (length == payload.len()).then(|| payload.to_vec())
    }
}
