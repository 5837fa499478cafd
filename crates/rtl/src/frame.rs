//! The frame of an order as software prepares it and as it leaves: Ethernet, IPv4, TCP, SoupBinTCP, OUCH 5.0.

use tickwire_market::{Price, Qty, Side, Symbol};
use tickwire_wire_core::layout::{Alpha, Char, Pod, Scaled, U64};
use tickwire_wire_nasdaq::ouch50::{Appendage, EnterOrder, MESSAGE_SIZE_MAX, OrderSide, encode};
use tickwire_wire_nasdaq::soupbintcp::Packet;

/// Where the TCP payload begins.
pub const PAYLOAD_AT: usize = 54;
/// Bytes of an order's frame without FCS: headers, SoupBinTCP packet, Enter Order with an empty appendage.
pub const FRAME_SIZE: usize = PAYLOAD_AT + 3 + EnterOrder::SIZE + 2;

/// One end of the order entry connection, as it stands in every frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Link {
    /// The venue's, or the router's on the way to it.
    pub destination_mac: [u8; 6],
    /// Ours.
    pub source_mac: [u8; 6],
    /// Ours.
    pub source: [u8; 4],
    /// The venue's.
    pub destination: [u8; 4],
    /// Ours.
    pub source_port: u16,
    /// The venue's.
    pub destination_port: u16,
    /// The next byte expected from the venue.
    pub acknowledged: u32,
    /// What we say that we take.
    pub window: u16,
}

/// What stands in every order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OrderText {
    /// The symbol of the instrument.
    pub symbol: Symbol,
    /// For whom: see OUCH's `Capacity`; `O` other.
    pub capacity: u8,
    /// Free text that the venue repeats.
    pub client_order_id: [u8; 14],
}

/// A frame with everything that does not change from order to order, and what the core is given beside it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Prepared {
    /// The bytes; zero where the core fills in.
    pub bytes: [u8; FRAME_SIZE],
    /// One's complement sum of pseudo header and segment of it.
    pub sum: u16,
}

/// An order as it is filled in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Filled {
    /// TCP sequence number of the segment's first byte.
    pub sequence: u32,
    /// OUCH's number of the order.
    pub user_ref: u32,
    /// Buy is bid.
    pub side: Side,
    /// Shares.
    pub qty: Qty,
    /// Limit, in 1e-4.
    pub price: u32,
}

/// One's complement sum of 16-bit words.
fn sum16(bytes: &[u8]) -> u16 {
    let mut sum = 0_u32;
    for pair in bytes.chunks(2) {
        sum += u32::from(u16::from_be_bytes([pair[0], pair.get(1).copied().unwrap_or(0)]));
    }
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

/// Sum of pseudo header and segment of a frame.
fn segment_sum(frame: &[u8]) -> u16 {
    let segment = &frame[34..];
    let mut pseudo = Vec::with_capacity(12 + segment.len());
    pseudo.extend_from_slice(&frame[26..34]);
    pseudo.extend_from_slice(&[0, 6]);
    pseudo.extend_from_slice(&(segment.len() as u16).to_be_bytes());
    pseudo.extend_from_slice(segment);
    sum16(&pseudo)
}

/// The frame of an order written whole, by the software's own encoders: what the core's frame is compared
/// with. `None` if the symbol is longer than OUCH has room for.
pub fn written(link: &Link, text: &OrderText, order: &Filled) -> Option<[u8; FRAME_SIZE]> {
    let entered = EnterOrder {
        user_ref_num: order.user_ref.into(),
        side: OrderSide::of(order.side).into(),
        quantity: order.qty.0.into(),
        symbol: Alpha::new(text.symbol.as_bytes())?,
        price: Scaled(U64::new(order.price.into())),
        time_in_force: Char(b'3'),
        display: Char(b'Y'),
        capacity: Char(text.capacity),
        iso_eligible: Char(b'N'),
        cross_type: Char(b'N'),
        cl_ord_id: Alpha(text.client_order_id),
        ..EnterOrder::NEW
    };
    let mut message = [0; MESSAGE_SIZE_MAX];
    let length = encode(entered.as_bytes(), Some(&Appendage::EMPTY), &mut message)?;
    let mut payload = [0; FRAME_SIZE - PAYLOAD_AT];
    let length = Packet::Unsequenced(&message[..length]).encode(&mut payload)?;
    if length != payload.len() {
        return None;
    }
    let mut frame = [0_u8; FRAME_SIZE];
    frame[..6].copy_from_slice(&link.destination_mac);
    frame[6..12].copy_from_slice(&link.source_mac);
    frame[12..14].copy_from_slice(&[0x08, 0x00]);
    let total = (FRAME_SIZE - 14) as u16;
    frame[14..16].copy_from_slice(&[0x45, 0]);
    frame[16..18].copy_from_slice(&total.to_be_bytes());
    frame[20..24].copy_from_slice(&[0x40, 0, 64, 6]);
    frame[26..30].copy_from_slice(&link.source);
    frame[30..34].copy_from_slice(&link.destination);
    let header = !sum16(&frame[14..34]);
    frame[24..26].copy_from_slice(&header.to_be_bytes());
    frame[34..36].copy_from_slice(&link.source_port.to_be_bytes());
    frame[36..38].copy_from_slice(&link.destination_port.to_be_bytes());
    frame[38..42].copy_from_slice(&order.sequence.to_be_bytes());
    frame[42..46].copy_from_slice(&link.acknowledged.to_be_bytes());
    frame[46..48].copy_from_slice(&[0x50, 0x18]);
    frame[48..50].copy_from_slice(&link.window.to_be_bytes());
    frame[PAYLOAD_AT..].copy_from_slice(&payload);
    let checksum = !segment_sum(&frame);
    frame[50..52].copy_from_slice(&checksum.to_be_bytes());
    Some(frame)
}

/// The frame that software writes into the core. `None` as of [`written`].
pub fn prepared(link: &Link, text: &OrderText) -> Option<Prepared> {
    let blank = Filled {
        sequence: 0,
        user_ref: 0,
        side: Side::Bid,
        qty: Qty(0),
        price: 0,
    };
    let mut bytes = written(link, text, &blank)?;
    let side = PAYLOAD_AT + 3 + std::mem::offset_of!(EnterOrder, side);
    bytes[50..52].fill(0);
    bytes[side] = 0;
    Some(Prepared {
        sum: segment_sum(&bytes),
        bytes,
    })
}

/// A price of the wire in 1e-4; `None` if it has more decimals or is not one.
pub fn wire_price(price: Price) -> Option<u32> {
    let raw = price.raw();
    match raw % 100_000 == 0 {
        true => u32::try_from(raw / 100_000).ok(),
        false => None,
    }
}
