//! TCP segments that a process puts on the wire itself, of a connection that the kernel keeps: Ethernet, IPv4
//! (RFC 791) and TCP (RFC 9293) headers written around a payload, with timestamps (RFC 7323) where the
//! connection has them. And the other way round: packets of such a connection that were held back.
//!
//! ```
//! use tickwire_kernel::segment::{Checksum, Ends, Numbers, Template, checksum};
//! let ends = Ends {
//!     hardware: [[2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]],
//!     addresses: [[198, 18, 0, 1], [198, 18, 0, 2]],
//!     ports: [40_000, 26_404],
//! };
//! let template = Template::new(&ends, true);
//! let numbers = Numbers { seq: 1_000, ack: 77, window: 502, stamps: (1, 2) };
//! let mut frame = [0; 128];
//! let length = template.write(&mut frame, &numbers, b"an order").expect("room");
//! assert_eq!(length, template.headers() + 8);
//! assert_eq!(checksum(&frame[14..length]), Some(Checksum::Whole));
//! ```

/// Bytes of an Ethernet header without tags.
pub const ETHERNET: usize = 14;
/// Bytes of IPv4 and TCP headers without options.
pub const IP_TCP: usize = 40;
/// Bytes of the timestamps option with its padding, as everybody writes it (RFC 7323, appendix A).
pub const STAMPS: usize = 12;
/// How the option begins: two paddings, kind 8, length 10.
pub const STAMPS_BEGIN: [u8; 4] = [1, 1, 8, 10];
/// The most bytes in front of a payload.
pub const HEADERS_MAX: usize = ETHERNET + IP_TCP + STAMPS;

/// Both ends of a connection: ours, then the other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ends {
    /// Our interface, and the next hop on the way to the peer.
    pub hardware: [[u8; 6]; 2],
    /// IPv4 addresses.
    pub addresses: [[u8; 4]; 2],
    /// TCP ports.
    pub ports: [u16; 2],
}

/// What differs from segment to segment.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Numbers {
    /// The number of the payload's first byte.
    pub seq: u32,
    /// The number of the next byte that we expect.
    pub ack: u32,
    /// How many bytes from there on we have room for, as the header has it: shifted by the connection's
    /// scale.
    pub window: u16,
    /// Our time and the last one that the peer told; left out where the connection has no timestamps.
    pub stamps: (u32, u32),
}

/// Headers of one connection, all that does not change written and summed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Template {
    headers: [u8; HEADERS_MAX],
    length: usize,
    /// One's complement sums of what does not change, in memory order.
    ip_sum: u64,
    tcp_sum: u64,
    /// Of TCP's pseudo header alone.
    pseudo_sum: u64,
}

impl Template {
    /// Headers between these ends, with timestamps or without.
    pub fn new(ends: &Ends, has_stamps: bool) -> Template {
        let length = if has_stamps {
            HEADERS_MAX
        } else {
            ETHERNET + IP_TCP
        };
        let mut headers = [0; HEADERS_MAX];
        headers[..6].copy_from_slice(&ends.hardware[1]);
        headers[6..12].copy_from_slice(&ends.hardware[0]);
        headers[12] = 0x08;
        headers[14] = 0x45;
        // Never in fragments.
        headers[20] = 0x40;
        headers[22] = 64;
        headers[23] = 6;
        headers[26..30].copy_from_slice(&ends.addresses[0]);
        headers[30..34].copy_from_slice(&ends.addresses[1]);
        headers[34..36].copy_from_slice(&ends.ports[0].to_be_bytes());
        headers[36..38].copy_from_slice(&ends.ports[1].to_be_bytes());
        headers[46] = if has_stamps { 0x80 } else { 0x50 };
        // ACK and PSH.
        headers[47] = 0x18;
        if has_stamps {
            headers[54..58].copy_from_slice(&STAMPS_BEGIN);
        }
        let tcp_sum = sum(&headers[26..length], u64::from(6_u16.to_be()));
        Template {
            headers,
            length,
            ip_sum: sum(&headers[14..34], 0),
            tcp_sum,
            pseudo_sum: sum(&headers[26..34], u64::from(6_u16.to_be())),
        }
    }

    /// Bytes in front of a payload.
    pub fn headers(&self) -> usize {
        self.length
    }

    /// Writes a segment with correct checksums and gives its length; `None` if `frame` is too short, or the
    /// payload longer than a packet.
    #[inline]
    pub fn write(&self, frame: &mut [u8], numbers: &Numbers, payload: &[u8]) -> Option<usize> {
        let (length, tcp) = self.lay(frame, numbers, payload)?;
        frame[50..52].copy_from_slice(&finish(sum(payload, tcp)));
        Some(length)
    }

    /// Writes a train of segments as one, which the kernel or the card cuts: the TCP checksum is of the
    /// pseudo header alone, and whoever cuts it makes it whole (Linux, segmentation offloads). Otherwise as
    /// [`Template::write`].
    #[inline]
    pub fn write_train(&self, frame: &mut [u8], numbers: &Numbers, payload: &[u8]) -> Option<usize> {
        let (length, _) = self.lay(frame, numbers, payload)?;
        let tcp = (length - ETHERNET - 20) as u16;
        let pseudo = fold(self.pseudo_sum + u64::from(tcp.to_be()));
        frame[50..52].copy_from_slice(&pseudo.to_ne_bytes());
        Some(length)
    }

    /// Writes everything but the TCP checksum; the length, and that checksum's sum without the payload.
    #[inline]
    fn lay(&self, frame: &mut [u8], numbers: &Numbers, payload: &[u8]) -> Option<(usize, u64)> {
        let length = self.length + payload.len();
        let packet = u16::try_from(length - ETHERNET).ok()?;
        let frame = frame.get_mut(..length)?;
        let (headers, rest) = frame.split_at_mut(self.length);
        headers.copy_from_slice(&self.headers[..self.length]);
        rest.copy_from_slice(payload);
        headers[16..18].copy_from_slice(&packet.to_be_bytes());
        headers[24..26].copy_from_slice(&finish(self.ip_sum + u64::from(packet.to_be())));
        headers[38..42].copy_from_slice(&numbers.seq.to_be_bytes());
        headers[42..46].copy_from_slice(&numbers.ack.to_be_bytes());
        headers[48..50].copy_from_slice(&numbers.window.to_be_bytes());
        let mut tcp = self.tcp_sum
            + u64::from((packet - 20).to_be())
            + u64::from(numbers.seq.to_be())
            + u64::from(numbers.ack.to_be())
            + u64::from(numbers.window.to_be());
        if self.length == HEADERS_MAX {
            let (ours, theirs) = numbers.stamps;
            headers[58..62].copy_from_slice(&ours.to_be_bytes());
            headers[62..66].copy_from_slice(&theirs.to_be_bytes());
            tcp += u64::from(ours.to_be()) + u64::from(theirs.to_be());
        }
        Some((length, tcp))
    }
}

/// Adds bytes to a one's complement sum, in memory order (RFC 1071: the order does not matter as long as the
/// result is stored in the same one).
#[inline]
fn sum(bytes: &[u8], from: u64) -> u64 {
    let (words, rest) = bytes.as_chunks::<8>();
    let mut total = u128::from(from);
    for word in words {
        total += u128::from(u64::from_ne_bytes(*word));
    }
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    total += u128::from(u64::from_ne_bytes(last));
    // 2^64 is 1 in this arithmetic; of two packets' lengths of words the upper half is small.
    let folded = (total & u128::from(u64::MAX)) + (total >> 64);
    let folded = (folded & u128::from(u64::MAX)) + (folded >> 64);
    let folded = folded as u64;
    (folded & 0xFFFF_FFFF) + (folded >> 32)
}

/// Folds a sum to 16 bits, in memory order.
#[inline]
fn fold(sum: u64) -> u16 {
    let mut sum = (sum & 0xFFFF_FFFF) + (sum >> 32);
    for _ in 0..3 {
        sum = (sum & 0xFFFF) + (sum >> 16);
    }
    sum as u16
}

/// A checksum's two bytes.
#[inline]
fn finish(sum: u64) -> [u8; 2] {
    (!fold(sum)).to_ne_bytes()
}

/// The state of a TCP checksum.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Checksum {
    /// It is right.
    Whole,
    /// It covers the pseudo header only: the sender left the rest to a card, and no card was on the way, as
    /// between virtual interfaces.
    Partial,
    /// It is wrong.
    Wrong,
}

/// The TCP part of a packet and the sum of its pseudo header; `None` if it is no IPv4 packet with TCP,
/// without IP options, of exactly its length.
fn parts(packet: &[u8]) -> Option<(&[u8], u64)> {
    let (ip, tcp) = packet.split_first_chunk::<20>()?;
    let total = usize::from(u16::from_be_bytes([ip[2], ip[3]]));
    if ip[0] != 0x45 || ip[9] != 6 || total != packet.len() || tcp.len() < 20 {
        return None;
    }
    let length = u16::try_from(tcp.len()).ok()?;
    let pseudo = sum(&ip[12..20], u64::from(6_u16.to_be()) + u64::from(length.to_be()));
    Some((tcp, pseudo))
}

/// Whether the TCP checksum of an IPv4 packet holds; `None` if it is no such packet.
pub fn checksum(packet: &[u8]) -> Option<Checksum> {
    let (tcp, pseudo) = parts(packet)?;
    if fold(sum(tcp, pseudo)) == 0xFFFF {
        return Some(Checksum::Whole);
    }
    let stored = u16::from_ne_bytes([tcp[16], tcp[17]]);
    Some(match stored == fold(pseudo) {
        true => Checksum::Partial,
        false => Checksum::Wrong,
    })
}

/// Writes the right TCP checksum into an IPv4 packet; `false` if it is no such packet, which is left alone.
pub fn complete(packet: &mut [u8]) -> bool {
    let Some((tcp, pseudo)) = parts(packet) else {
        return false;
    };
    let stored = u64::from(u16::from_ne_bytes([tcp[16], tcp[17]]));
    // Without what stands there now: its complement is added.
    let right = finish(sum(tcp, pseudo) + (0xFFFF - stored));
    packet[36..38].copy_from_slice(&right);
    true
}

/// A TCP segment in a frame, for who looks on: tests and their lines between two hosts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tcp<'a> {
    /// IPv4 addresses, from and to.
    pub addresses: [[u8; 4]; 2],
    /// Ports, from and to.
    pub ports: [u16; 2],
    /// The number of the payload's first byte.
    pub seq: u32,
    /// What is acknowledged.
    pub ack: u32,
    /// The flags' byte: 1 FIN, 2 SYN, 4 RST, 8 PSH, 16 ACK.
    pub flags: u8,
    /// What it carries.
    pub payload: &'a [u8],
}

/// Reads a frame without tags; `None` if it is no TCP segment over IPv4, in fragments, or cut.
pub fn tcp(frame: &[u8]) -> Option<Tcp<'_>> {
    let (headers, _) = frame.split_first_chunk::<{ ETHERNET + IP_TCP }>()?;
    let two = |at: usize| u16::from_be_bytes([headers[at], headers[at + 1]]);
    let four =
        |at: usize| u32::from_be_bytes([headers[at], headers[at + 1], headers[at + 2], headers[at + 3]]);
    let address = |at: usize| four(at).to_be_bytes();
    let is_whole = two(12) == 0x0800 && headers[14] == 0x45 && headers[23] == 6 && two(20) & 0x3FFF == 0;
    let end = ETHERNET + usize::from(two(16));
    let begin = ETHERNET + 20 + usize::from(headers[46] >> 4) * 4;
    if !is_whole || begin < ETHERNET + IP_TCP {
        return None;
    }
    Some(Tcp {
        addresses: [address(26), address(30)],
        ports: [two(34), two(36)],
        seq: four(38),
        ack: four(42),
        flags: headers[47],
        payload: frame.get(begin..end)?,
    })
}

/// Whether number `a` lies behind `b`, on a circle of 2^32.
#[inline]
pub const fn is_after(a: u32, b: u32) -> bool {
    b.wrapping_sub(a).cast_signed() < 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec;
    use std::vec::Vec;

    const ENDS: Ends = Ends {
        hardware: [[2, 0, 0, 0, 0x18, 1], [2, 0, 0, 0, 0x18, 2]],
        addresses: [[198, 18, 0, 1], [198, 18, 0, 2]],
        ports: [40_000, 26_404],
    };

    /// The plain way of RFC 1071: 16 bits at a time, big-endian.
    fn plain(bytes: &[u8], from: u32) -> u32 {
        let mut total = from;
        for pair in bytes.chunks(2) {
            total += u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0));
            total = (total & 0xFFFF) + (total >> 16);
        }
        total
    }

    #[test]
    fn a_train_has_the_checksum_that_is_left_to_be_finished() {
        let numbers = Numbers {
            seq: 0xFFFF_FF00,
            ack: 77,
            window: 502,
            stamps: (1, 2),
        };
        for has_stamps in [false, true] {
            let template = Template::new(&ENDS, has_stamps);
            let payload: Vec<u8> = (0..60_001).map(|n| n as u8).collect();
            let mut frame = vec![0; 65_600];
            let length = template.write_train(&mut frame, &numbers, &payload).unwrap();
            assert_eq!(checksum(&frame[ETHERNET..length]), Some(Checksum::Partial));
            assert_eq!(tcp(&frame[..length]).unwrap().payload, payload);
            assert!(complete(&mut frame[ETHERNET..length]));
            let mut whole = vec![0; 65_600];
            assert_eq!(template.write(&mut whole, &numbers, &payload), Some(length));
            assert_eq!(frame, whole);
            assert_eq!(template.write_train(&mut frame, &numbers, &[0; 65_536]), None);
        }
    }

    #[test]
    fn segments_of_any_length_have_right_checksums_and_are_read_back() {
        let mut rng = tickwire_testdata::Rng::new(7);
        for has_stamps in [false, true] {
            let template = Template::new(&ENDS, has_stamps);
            for length in (0..200).chain([1_447, 1_448, 1_460]) {
                let payload: Vec<u8> = (0..length).map(|_| rng.next_u64() as u8).collect();
                let numbers = Numbers {
                    seq: rng.next_u64() as u32,
                    ack: rng.next_u64() as u32,
                    window: rng.next_u64() as u16,
                    stamps: (rng.next_u64() as u32, rng.next_u64() as u32),
                };
                let mut frame = [0xEE; 1_600];
                let end = template.write(&mut frame, &numbers, &payload).expect("room");
                assert_eq!(end, template.headers() + length);
                let frame = &frame[..end];
                assert_eq!(plain(&frame[14..34], 0), 0xFFFF);
                let pseudo = plain(&frame[26..34], 6 + (end as u32 - 34));
                assert_eq!(plain(&frame[34..], pseudo), 0xFFFF, "{length} bytes");
                let found = tcp(frame).expect("a segment");
                assert_eq!(
                    (found.seq, found.ack, found.flags),
                    (numbers.seq, numbers.ack, 0x18)
                );
                assert_eq!((found.addresses, found.ports), (ENDS.addresses, ENDS.ports));
                assert_eq!(found.payload, payload);
                assert_eq!(checksum(&frame[14..]), Some(Checksum::Whole));
            }
        }
    }

    #[test]
    fn a_checksum_left_to_a_card_is_told_from_a_wrong_one_and_completed() {
        let mut frame = [0; 200];
        let numbers = Numbers {
            seq: 9,
            ..Numbers::default()
        };
        let end = Template::new(&ENDS, true)
            .write(&mut frame, &numbers, b"half a checksum")
            .expect("room");
        let right = frame;
        let pseudo = plain(&frame[26..34], 6 + (end as u32 - 34)) as u16;
        frame[50..52].copy_from_slice(&pseudo.to_be_bytes());
        assert_eq!(checksum(&frame[14..end]), Some(Checksum::Partial));
        assert!(complete(&mut frame[14..end]));
        assert_eq!(frame, right);
        frame[end - 1] ^= 1;
        assert_eq!(checksum(&frame[14..end]), Some(Checksum::Wrong));
        assert_eq!(checksum(&frame[14..end - 1]), None, "cut");
        assert!(!complete(&mut frame[14..40]));
    }

    #[test]
    fn what_does_not_fit_is_not_written() {
        let template = Template::new(&ENDS, true);
        let numbers = Numbers::default();
        assert_eq!(template.write(&mut [0; 70], &numbers, b"12345"), None);
        assert_eq!(template.write(&mut [0; 70_000], &numbers, &[0; 66_000]), None);
    }

    #[test]
    fn numbers_are_compared_on_a_circle() {
        assert!(is_after(1, 0) && !is_after(0, 0) && !is_after(0, 1));
        assert!(is_after(3, u32::MAX) && !is_after(u32::MAX, 3));
    }
}
