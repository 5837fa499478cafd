//! TCP replay of MDP 3.0: packets that were sent on the incremental feed, once more.
//!
//! The client speaks FIX in ASCII (without `BeginString`), the server answers in packets, each behind its length in two
//! bytes, little-endian: a logon (template 15), the packets asked for, a logout (template 16). One request a connection.
//! "MDP 3.0 - TCP Recovery", CME Globex client systems wiki.

use crate::Malformed;
use crate::fix_text::{Number, write};

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
    write(
        buffer,
        None,
        &[(b"35", b"A"), (b"553", username), (b"554", password)],
    )
}

/// Writes `Logout`; its length, `None` if `buffer` is too small.
pub fn logout(buffer: &mut [u8]) -> Option<usize> {
    write(buffer, None, &[(b"35", b"5")])
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
    let (channel, id) = (Number::new(channel.into()), Number::new(request_id.into()));
    let (first, last) = (Number::new(first.into()), Number::new(last.into()));
    let fields: [(&[u8], &[u8]); 5] = [
        (b"35", b"V"),
        (b"1180", channel.text()),
        (b"262", id.text()),
        (b"1182", first.text()),
        (b"1183", last.text()),
    ];
    write(buffer, None, &fields)
}
