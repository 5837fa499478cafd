//! TCP replay of MDP 3.0: packets that were sent on the incremental feed, once more.
//!
//! The client speaks FIX in ASCII (without `BeginString`), the server answers in packets, each behind its
//! length in two bytes, little-endian: a logon (template 15), the packets asked for, a logout (template 16).
//! One request a connection. "MDP 3.0 - TCP Recovery", CME Globex client systems wiki.

use crate::Malformed;
use tickwire_wire_core::fix_text::{Number, write};

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

/// Writes the `MarketDataRequest` for packets `first` to `last` of a channel; its length, `None` if `buffer`
/// is too small. `request_id` tells requests of one client apart.
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

/// What a client says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Request<'a> {
    /// `A`.
    Logon {
        /// Tag 553.
        username: &'a [u8],
        /// Tag 554.
        password: &'a [u8],
    },
    /// `V`: packets `first` to `last` of a channel.
    MarketData {
        /// Tag 1180.
        channel: u16,
        /// Tag 262.
        request_id: &'a [u8],
        /// Tag 1182.
        first: u32,
        /// Tag 1183.
        last: u32,
    },
    /// `0`.
    Heartbeat,
    /// `5`.
    Logout,
}

/// The longest body accepted, in bytes: none of the requests comes near it.
const BODY_MAX: usize = 512;
/// `10=`, three digits, a separator.
const TRAILER: usize = 7;

impl<'a> Request<'a> {
    /// The first request of a stream and how many bytes it took; `None` while it is incomplete.
    pub fn split(bytes: &'a [u8]) -> Result<Option<(Request<'a>, usize)>, Malformed> {
        let wrong = |offset: usize| Malformed::BadValue {
            offset: offset as u16,
            value: bytes.get(offset).copied().unwrap_or(0),
        };
        let head = &bytes[..bytes.len().min(b"9=000|".len())];
        let Some(end) = head.iter().position(|b| *b == 1) else {
            let begins = b"9=".iter().zip(head).all(|(wanted, have)| wanted == have);
            return if begins && head.len() < 6 {
                Ok(None)
            } else {
                Err(wrong(0))
            };
        };
        let body = head[..end].strip_prefix(b"9=").and_then(number).ok_or(wrong(0))? as usize;
        if body > BODY_MAX {
            return Err(wrong(2));
        }
        let (body_at, trailer_at) = (end + 1, end + 1 + body);
        let Some(trailer) = bytes.get(trailer_at..trailer_at + TRAILER) else {
            return Ok(None);
        };
        let sum = bytes[..trailer_at]
            .iter()
            .fold(0_u8, |sum, byte| sum.wrapping_add(*byte));
        if trailer != checksum(sum) {
            return Err(wrong(trailer_at));
        }
        let request = Request::read(&bytes[body_at..trailer_at]).ok_or(wrong(body_at))?;
        Ok(Some((request, trailer_at + TRAILER)))
    }

    fn read(body: &'a [u8]) -> Option<Request<'a>> {
        let field = |tag: &[u8]| {
            let mut fields = body.split(|b| *b == 1);
            fields.find_map(|field| field.strip_prefix(tag)?.strip_prefix(b"="))
        };
        match field(b"35")? {
            b"A" => Some(Request::Logon {
                username: field(b"553")?,
                password: field(b"554")?,
            }),
            b"V" => Some(Request::MarketData {
                channel: field(b"1180").and_then(number)?.try_into().ok()?,
                request_id: field(b"262")?,
                first: field(b"1182").and_then(number)?,
                last: field(b"1183").and_then(number)?,
            }),
            b"0" => Some(Request::Heartbeat),
            b"5" => Some(Request::Logout),
            _ => None,
        }
    }
}

fn number(text: &[u8]) -> Option<u32> {
    let digits = !text.is_empty() && text.iter().all(u8::is_ascii_digit);
    let text = core::str::from_utf8(text).ok().filter(|_| digits)?;
    text.parse().ok()
}

fn checksum(sum: u8) -> [u8; TRAILER] {
    let digits = [b'0' + sum / 100, b'0' + sum / 10 % 10, b'0' + sum % 10];
    [b'1', b'0', b'=', digits[0], digits[1], digits[2], 1]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_read_as_they_are_written_once_they_are_complete() {
        let mut buffer = [0; REQUEST_SIZE_MAX];
        let wanted = [
            Request::Logon {
                username: b"ME",
                password: b"PW",
            },
            Request::MarketData {
                channel: 310,
                request_id: b"7",
                first: 2,
                last: u32::MAX,
            },
            Request::Logout,
        ];
        for request in wanted {
            let length = match request {
                Request::Logon { username, password } => logon(&mut buffer, username, password),
                Request::MarketData {
                    channel, first, last, ..
                } => market_data_request(&mut buffer, channel, 7, first, last),
                _ => logout(&mut buffer),
            };
            let bytes = &buffer[..length.unwrap()];
            for cut in 0..bytes.len() {
                assert_eq!(Request::split(&bytes[..cut]), Ok(None), "{cut}");
            }
            assert_eq!(Request::split(bytes), Ok(Some((request, bytes.len()))));
        }
    }

    #[test]
    fn what_is_no_request_is_refused() {
        let mut wrong_sum = [0; REQUEST_SIZE_MAX];
        let length = logout(&mut wrong_sum).unwrap();
        wrong_sum[length - 2] ^= 1;
        let garbage: [&[u8]; 7] = [
            b"8=FIX.4.4\x01",
            b"9=5",
            b"9=x\x0135=5\x01",
            b"9=999\x01",
            b"9=\x01",
            b"9=00000",
            b"GET / HTTP/1.1",
        ];
        assert_eq!(Request::split(garbage[1]), Ok(None));
        assert_eq!(Request::split(b""), Ok(None));
        for bytes in [&garbage[..1], &garbage[2..]].concat() {
            assert!(Request::split(bytes).is_err(), "{}", bytes.escape_ascii());
        }
        assert!(Request::split(&wrong_sum[..length]).is_err());
        // A channel that has more than 16 bits.
        let mut buffer = [0; REQUEST_SIZE_MAX];
        let fields: [(&[u8], &[u8]); 5] = [
            (b"35", b"V"),
            (b"1180", b"65536"),
            (b"262", b"1"),
            (b"1182", b"1"),
            (b"1183", b"2"),
        ];
        let length = write(&mut buffer, None, &fields).unwrap();
        assert!(Request::split(&buffer[..length]).is_err());
    }
}
