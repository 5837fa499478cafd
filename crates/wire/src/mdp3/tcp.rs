//! TCP replay of MDP 3.0: packets that were sent on the incremental feed, once more.
//!
//! The client speaks FIX in ASCII (without `BeginString`), the server answers in packets, each behind its length in two
//! bytes, little-endian: a logon (template 15), the packets asked for, a logout (template 16). One request a connection.
//! "MDP 3.0 - TCP Recovery", CME Globex client systems wiki.

use crate::Malformed;

/// The most packets one request may ask for.
pub const PACKETS_MAX: u32 = 2000;
/// The longest request written here, in bytes.
pub const REQUEST_SIZE_MAX: usize = 256;

/// The first packet of a stream, and how many bytes it took with its length; `None` while it is incomplete.
pub fn split(bytes: &[u8]) -> Result<Option<(&[u8], usize)>, Malformed> {
    let Some((length, rest)) = bytes.split_first_chunk::<2>() else {
        return Ok(None);
    };
    let length = usize::from(u16::from_le_bytes(*length));
    if length < super::PacketHeader::SIZE {
        return Err(Malformed::length(0, super::PacketHeader::SIZE, length));
    }
    Ok(rest.get(..length).map(|packet| (packet, 2 + length)))
}

/// Writes a packet behind its length; how many bytes, `None` if `buffer` is too small or the packet too long.
pub fn frame(packet: &[u8], buffer: &mut [u8]) -> Option<usize> {
    let length = u16::try_from(packet.len()).ok()?;
    let (head, rest) = buffer.split_first_chunk_mut::<2>()?;
    rest.get_mut(..packet.len())?.copy_from_slice(packet);
    *head = length.to_le_bytes();
    Some(2 + packet.len())
}

/// Writes `Logon`; its length, `None` if `buffer` is too small.
pub fn logon(buffer: &mut [u8], username: &[u8], password: &[u8]) -> Option<usize> {
    message(buffer, &[(b"35", b"A"), (b"553", username), (b"554", password)])
}

/// Writes `Logout`; its length, `None` if `buffer` is too small.
pub fn logout(buffer: &mut [u8]) -> Option<usize> {
    message(buffer, &[(b"35", b"5")])
}

/// Writes the `MarketDataRequest` for packets `first` to `last` of a channel; its length, `None` if `buffer` is too small.
/// `request_id` tells requests of one client apart.
pub fn market_data_request(
    buffer: &mut [u8],
    channel: u16,
    request_id: u32,
    first: u32,
    last: u32,
) -> Option<usize> {
    let (channel, id) = (Decimal::new(channel.into()), Decimal::new(request_id));
    let (first, last) = (Decimal::new(first), Decimal::new(last));
    let fields: [(&[u8], &[u8]); 5] = [
        (b"35", b"V"),
        (b"1180", channel.text()),
        (b"262", id.text()),
        (b"1182", first.text()),
        (b"1183", last.text()),
    ];
    message(buffer, &fields)
}

/// Body length, fields, checksum.
fn message(buffer: &mut [u8], fields: &[(&[u8], &[u8])]) -> Option<usize> {
    let body: usize = fields
        .iter()
        .map(|(tag, value)| tag.len() + value.len() + 2)
        .sum();
    let mut end = 0;
    let mut put = |tag: &[u8], value: &[u8]| {
        for part in [tag, b"=", value, b"\x01"] {
            buffer.get_mut(end..end + part.len())?.copy_from_slice(part);
            end += part.len();
        }
        Some(end)
    };
    let mut written = put(b"9", Decimal::new(u32::try_from(body).ok()?).text())?;
    for (tag, value) in fields {
        written = put(tag, value)?;
    }
    let sum = buffer[..written]
        .iter()
        .fold(0_u8, |sum, byte| sum.wrapping_add(*byte));
    let digits = [b'0' + sum / 100, b'0' + sum / 10 % 10, b'0' + sum % 10];
    let trailer = [b'1', b'0', b'=', digits[0], digits[1], digits[2], 1];
    buffer
        .get_mut(written..written + trailer.len())?
        .copy_from_slice(&trailer);
    Some(written + trailer.len())
}

/// A number as text.
struct Decimal {
    digits: [u8; 10],
    start: usize,
}

impl Decimal {
    fn new(mut n: u32) -> Decimal {
        let mut decimal = Decimal {
            digits: [0; 10],
            start: 10,
        };
        loop {
            decimal.start -= 1;
            decimal.digits[decimal.start] = b'0' + (n % 10) as u8;
            n /= 10;
            if n == 0 {
                return decimal;
            }
        }
    }

    fn text(&self) -> &[u8] {
        &self.digits[self.start..]
    }
}
