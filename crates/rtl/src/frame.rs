//! The frame of an order as software prepares it and as it leaves: Ethernet, IPv4, TCP, and in it OUCH 5.0 in
//! SoupBinTCP or FIX 4.4.

mod fix;
mod ouch;

use tickwire_market::{Nanos, Price, Qty, Side};

pub use fix::{FixPlaces, FixText, PRICE_MOST, QTY_MOST};
pub use ouch::{OUCH_FRAME_SIZE, OuchText};

/// Where the TCP payload begins.
pub const PAYLOAD_AT: usize = 54;
/// The longest frame that a core has room for.
pub const FRAME_SIZE_MAX: usize = 512;

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
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum OrderText {
    /// Enter Order of OUCH 5.0.
    Ouch(OuchText),
    /// NewOrderSingle of FIX 4.4.
    Fix(FixText),
}

/// A frame with everything that does not change from order to order, and what the core is given beside it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Prepared {
    /// The bytes; zero, of digits the digit 0, where the core fills in.
    pub bytes: Vec<u8>,
    /// One's complement sum of pseudo header and segment of it.
    pub sum: u16,
    /// Of FIX: the sum of the message's bytes before its CheckSum, modulo 256.
    pub text_sum: u8,
}

/// An order as it is filled in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Filled {
    /// TCP sequence number of the segment's first byte.
    pub sequence: u32,
    /// OUCH's number of the order; of FIX the number in its ClOrdID, up to 99,999,999.
    pub user_ref: u32,
    /// FIX: MsgSeqNum, up to 99,999,999.
    pub message: u32,
    /// FIX: SendingTime and TransactTime, of which the core knows the time of day to the millisecond.
    pub time: Nanos,
    /// Buy is bid.
    pub side: Side,
    /// Shares or lots.
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

/// Headers before a payload.
fn segment(link: &Link, sequence: u32, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![0_u8; PAYLOAD_AT];
    frame[..6].copy_from_slice(&link.destination_mac);
    frame[6..12].copy_from_slice(&link.source_mac);
    frame[12..14].copy_from_slice(&[0x08, 0x00]);
    let total = (PAYLOAD_AT - 14 + payload.len()) as u16;
    frame[14..16].copy_from_slice(&[0x45, 0]);
    frame[16..18].copy_from_slice(&total.to_be_bytes());
    frame[20..24].copy_from_slice(&[0x40, 0, 64, 6]);
    frame[26..30].copy_from_slice(&link.source);
    frame[30..34].copy_from_slice(&link.destination);
    let header = !sum16(&frame[14..34]);
    frame[24..26].copy_from_slice(&header.to_be_bytes());
    frame[34..36].copy_from_slice(&link.source_port.to_be_bytes());
    frame[36..38].copy_from_slice(&link.destination_port.to_be_bytes());
    frame[38..42].copy_from_slice(&sequence.to_be_bytes());
    frame[42..46].copy_from_slice(&link.acknowledged.to_be_bytes());
    frame[46..48].copy_from_slice(&[0x50, 0x18]);
    frame[48..50].copy_from_slice(&link.window.to_be_bytes());
    frame.extend_from_slice(payload);
    frame
}

/// The frame of an order written whole, by the software's own encoders: what the core's frame is compared
/// with. `None` if something of it is longer or greater than the message has room for.
pub fn written(link: &Link, text: &OrderText, order: &Filled) -> Option<Vec<u8>> {
    let payload = match text {
        OrderText::Ouch(text) => text.message(order)?,
        OrderText::Fix(text) => text.message(order)?,
    };
    let mut frame = segment(link, order.sequence, &payload);
    let checksum = !segment_sum(&frame);
    frame[50..52].copy_from_slice(&checksum.to_be_bytes());
    (frame.len() <= FRAME_SIZE_MAX).then_some(frame)
}

/// The frame that software writes into the core, on a day. `None` as of [`written`].
pub fn prepared(link: &Link, text: &OrderText, day: Nanos) -> Option<Prepared> {
    let blank = Filled {
        sequence: 0,
        user_ref: 0,
        message: 0,
        time: Nanos(day.0 / DAY * DAY),
        side: Side::Bid,
        qty: Qty(0),
        price: 0,
    };
    let mut bytes = written(link, text, &blank)?;
    bytes[50..52].fill(0);
    let text_sum = match text {
        OrderText::Ouch(_) => {
            bytes[ouch::SIDE_PLACE] = 0;
            0
        }
        OrderText::Fix(text) => {
            let places = text.places()?;
            bytes[places.side] = b'0';
            bytes[places.check_sum..places.check_sum + 3].fill(b'0');
            let summed = &bytes[PAYLOAD_AT..places.check_sum - 3];
            summed.iter().fold(0_u8, |sum, byte| sum.wrapping_add(*byte))
        }
    };
    Some(Prepared {
        sum: segment_sum(&bytes),
        text_sum,
        bytes,
    })
}

const DAY: u64 = 86_400 * Nanos::SECOND;

/// The time of day as the core's registers SECOND and MILLISECOND have it: four bits a digit.
pub fn clock_digits(time: Nanos) -> (u32, u32) {
    let of_day = time.0 % DAY;
    let (second, milli) = (of_day / Nanos::SECOND, of_day % Nanos::SECOND / 1_000_000);
    let hhmmss = second / 3_600 * 10_000 + second / 60 % 60 * 100 + second % 60;
    (decimal_digits(hhmmss as u32), decimal_digits(milli as u32))
}

/// The last eight decimal digits of a number, four bits each, as registers of FIX have numbers.
pub fn decimal_digits(n: u32) -> u32 {
    (0..8).fold(0, |digits, at| digits | (n / 10_u32.pow(at) % 10) << (4 * at))
}

/// A price of the wire in 1e-4; `None` if it has more decimals or is not one.
pub fn wire_price(price: Price) -> Option<u32> {
    let raw = price.raw();
    match raw % 100_000 == 0 {
        true => u32::try_from(raw / 100_000).ok(),
        false => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_four_bits_a_digit() {
        assert_eq!(decimal_digits(0), 0);
        assert_eq!(decimal_digits(12_345_678), 0x1234_5678);
        assert_eq!(decimal_digits(99_999_999), 0x9999_9999);
        let time = Nanos((13 * 3_600 + 7 * 60 + 59) * Nanos::SECOND + 4_999_999);
        assert_eq!(clock_digits(time), (0x13_0759, 0x004));
    }
}
