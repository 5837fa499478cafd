//! A UDP datagram in an Ethernet frame, as [`crate::filter`] looks at it: IPv4 without options and fragments,
//! up to two VLAN tags (IEEE 802.1Q, 802.1ad). Whoever takes frames from the kernel reads them with this;
//! anything else is left to sockets.

/// Bytes of Ethernet, IPv4 and UDP headers without tags.
pub const HEADERS: usize = 42;
/// The smallest payload that is looked at, in bytes: the shortest header of any framing.
pub const PAYLOAD_MIN: usize = 8;
/// The largest payload that is looked at, in bytes: with its headers and two tags it fills what an AF_XDP
/// frame of 2,048 bytes has behind the 256 that the kernel keeps. Larger ones are left to sockets.
pub const PAYLOAD_MAX: usize = 2048 - 256 - HEADERS - 8;

/// A datagram.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Udp<'a> {
    /// Who sent it.
    pub source: [u8; 4],
    /// The port it was sent from.
    pub source_port: u16,
    /// Where it was sent to.
    pub address: [u8; 4],
    /// The port it was sent to.
    pub port: u16,
    /// What it carries.
    pub payload: &'a [u8],
}

/// Reads a frame; `None` if it is no such datagram, or is cut.
#[inline]
pub fn udp(frame: &[u8]) -> Option<Udp<'_>> {
    let mut at = 0;
    for _ in 0..2 {
        let kind = frame.get(at + 12..at + 14)?;
        if kind != [0x81, 0x00] && kind != [0x88, 0xA8] {
            break;
        }
        at += 4;
    }
    let (headers, rest) = frame.get(at..)?.split_first_chunk::<HEADERS>()?;
    let two = |at: usize| u16::from_be_bytes([headers[at], headers[at + 1]]);
    let plain = two(12) == 0x0800 && headers[14] == 0x45 && headers[23] == 17 && two(20) & 0x3FFF == 0;
    let length = usize::from(two(38)).checked_sub(8)?;
    if !plain || usize::from(two(16)) < length + 28 {
        return None;
    }
    Some(Udp {
        source: [headers[26], headers[27], headers[28], headers[29]],
        source_port: two(34),
        address: [headers[30], headers[31], headers[32], headers[33]],
        port: two(36),
        payload: rest.get(..length)?,
    })
}

/// Writes a frame around a payload, with so many VLAN tags (0 to 2), and gives its length; `None` if `buffer`
/// is too small. UDP's checksum is left out, which IPv4 allows (RFC 768).
pub fn encode(buffer: &mut [u8], tags: usize, to: ([u8; 4], u16), payload: &[u8]) -> Option<usize> {
    let start = 4 * tags;
    let length = start + HEADERS + payload.len();
    let frame = buffer.get_mut(..length)?;
    frame[..start + HEADERS].fill(0);
    let [_, b, c, d] = to.0;
    frame[..6].copy_from_slice(&[0x01, 0x00, 0x5E, b & 0x7F, c, d]);
    frame[6..12].copy_from_slice(&[2, 0, 0, 0, 0, 1]);
    for tag in 0..tags {
        let kind: [u8; 2] = if tag + 1 < tags {
            [0x88, 0xA8]
        } else {
            [0x81, 0x00]
        };
        frame[12 + 4 * tag..14 + 4 * tag].copy_from_slice(&kind);
        frame[15 + 4 * tag] = 100;
    }
    let headers = &mut frame[start..start + HEADERS];
    headers[12] = 8;
    headers[14] = 0x45;
    headers[16..18].copy_from_slice(&u16::try_from(payload.len() + 28).ok()?.to_be_bytes());
    headers[22] = 16;
    headers[23] = 17;
    headers[26..30].copy_from_slice(&[198, 18, 0, 1]);
    headers[30..34].copy_from_slice(&to.0);
    let sum = headers[14..34].chunks_exact(2).fold(0_u32, |sum, pair| {
        sum + u32::from(u16::from_be_bytes([pair[0], pair[1]]))
    });
    let folded = (sum & 0xFFFF) + (sum >> 16);
    let folded = (folded & 0xFFFF) + (folded >> 16);
    headers[24..26].copy_from_slice(&(!(folded as u16)).to_be_bytes());
    headers[34..36].copy_from_slice(&to.1.to_be_bytes());
    headers[36..38].copy_from_slice(&to.1.to_be_bytes());
    headers[38..40].copy_from_slice(&u16::try_from(payload.len() + 8).ok()?.to_be_bytes());
    frame[start + HEADERS..].copy_from_slice(payload);
    Some(length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_with_any_number_of_tags() {
        for tags in 0..3 {
            let mut buffer = [0xFF; 100];
            let length = encode(&mut buffer, tags, ([233, 54, 12, 111], 26477), b"payload!").expect("room");
            let found = udp(&buffer[..length]).expect("a datagram");
            assert_eq!((found.address, found.port), ([233, 54, 12, 111], 26477));
            assert_eq!(found.source, [198, 18, 0, 1]);
            assert_eq!(found.payload, b"payload!");
            assert_eq!(udp(&buffer[..length - 1]), None, "cut");
            let mut padded = buffer;
            padded[length..].fill(0xEE);
            assert_eq!(udp(&padded).expect("padded").payload, b"payload!");
        }
    }

    #[test]
    fn what_is_not_plain_udp_is_left_to_sockets() {
        let mut buffer = [0; 60];
        let length = encode(&mut buffer, 0, ([224, 0, 0, 1], 1), &[0; 18]).expect("room");
        for (at, byte) in [(12, 0x86), (14, 0x46), (20, 0x20), (21, 1), (23, 6)] {
            let mut other = buffer;
            other[at] = byte;
            assert_eq!(udp(&other[..length]), None, "byte {at}");
        }
        let mut unfragmented = buffer;
        unfragmented[20] = 0x40;
        assert!(
            udp(&unfragmented[..length]).is_some(),
            "don't fragment is no fragment"
        );
    }
}
