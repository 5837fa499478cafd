//! Blocks of pcapng as they are written: little-endian, times in nanoseconds, Ethernet.
//!
//! A file is [`begin`], then packets ([`udp`]) and at its end what every interface counted ([`statistics`]).
//! A file that breaks off after any block is whole up to there. Source: draft-ietf-opsawg-pcapng, section 4.
//!
//! ```
//! use tickwire_market::Nanos;
//! use tickwire_runtime::capture::{CaptureReader, blocks};
//!
//! let mut file = Vec::new();
//! blocks::begin(&mut file, "example", ["239.1.1.1:30001"]);
//! let mut block = [0; blocks::UDP_BLOCK_MAX];
//! block[blocks::PAYLOAD_AT..][..5].copy_from_slice(b"bytes");
//! let (from, to) = ("10.0.0.1:5000".parse()?, "239.1.1.1:30001".parse()?);
//! let len = blocks::udp(&mut block, 0, Nanos(1_750_000_000_123_456_789), (from, to), 5, 0);
//! file.extend(&block[..len]);
//!
//! let mut reader = CaptureReader::from_reader("memory", std::io::Cursor::new(file))?;
//! let packet = reader.next_packet()?.expect("one");
//! assert_eq!(packet.time, Some(Nanos(1_750_000_000_123_456_789)));
//! assert_eq!(packet.bytes[42..], *b"bytes");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::net::SocketAddrV4;

use tickwire_market::Nanos;

use super::LinkType;
use super::write::{HEADERS, SNAP_LEN, headers};
use crate::udp::DATAGRAM_BYTES_MAX;

const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const INTERFACE_DESCRIPTION: u32 = 1;
const INTERFACE_STATISTICS: u32 = 5;
const ENHANCED_PACKET: u32 = 6;
/// What an enhanced packet has before its frame.
const PACKET_HEAD: usize = 28;
/// The option of lost packets with its end, and the length that ends the block.
const PACKET_TAIL_MAX: usize = 12 + 4 + 4;

/// Where the payload of a datagram is in its block.
pub const PAYLOAD_AT: usize = PACKET_HEAD + HEADERS;
/// A block is never longer: the longest datagram, padded.
pub const UDP_BLOCK_MAX: usize = (PAYLOAD_AT + DATAGRAM_BYTES_MAX).next_multiple_of(4) + PACKET_TAIL_MAX;

/// Begins a file: the section and its interfaces, numbered from 0 in this order. Names beyond 65,535 bytes
/// are cut.
pub fn begin<'a>(out: &mut Vec<u8>, application: &str, interfaces: impl IntoIterator<Item = &'a str>) {
    block(out, SECTION_HEADER, |out| {
        out.extend(0x1a2b_3c4d_u32.to_le_bytes()); // byte order
        out.extend([1, 0, 0, 0]); // version 1.0
        out.extend(u64::MAX.to_le_bytes()); // the section's length is not said
        option(out, 4, application.as_bytes());
        option(out, 0, &[]);
    });
    for name in interfaces {
        block(out, INTERFACE_DESCRIPTION, |out| {
            out.extend((LinkType::ETHERNET.0 as u16).to_le_bytes());
            out.extend([0, 0]);
            out.extend(SNAP_LEN.to_le_bytes());
            option(out, 2, name.as_bytes());
            option(out, 9, &[9]); // times in nanoseconds
            option(out, 0, &[]);
        });
    }
}

/// Makes the block of a datagram around its payload of `len` bytes, which is at [`PAYLOAD_AT`] already; how
/// long the block is. `lost`: how many packets of the interface were lost since the one before
/// (`epb_dropcount`). Headers are made of the addresses; UDP has no checksum.
///
/// # Panics
/// `block` is shorter than [`UDP_BLOCK_MAX`], or `len` more than a datagram's.
#[inline]
pub fn udp(
    block: &mut [u8],
    interface: u32,
    time: Nanos,
    (source, destination): (SocketAddrV4, SocketAddrV4),
    len: usize,
    lost: u32,
) -> usize {
    assert!(len <= DATAGRAM_BYTES_MAX && block.len() >= UDP_BLOCK_MAX);
    let frame = HEADERS + len;
    let mut at = PACKET_HEAD + frame;
    block[PACKET_HEAD..PAYLOAD_AT].copy_from_slice(&headers(source, destination, len));
    let padded = at.next_multiple_of(4);
    block[at..padded].fill(0);
    at = padded;
    if lost > 0 {
        block[at..at + 4].copy_from_slice(&[4, 0, 8, 0]);
        block[at + 4..at + 12].copy_from_slice(&u64::from(lost).to_le_bytes());
        block[at + 12..at + 16].fill(0);
        at += 16;
    }
    let total = at + 4;
    let words = [
        ENHANCED_PACKET,
        total as u32,
        interface,
        (time.0 >> 32) as u32,
        time.0 as u32,
        frame as u32,
        frame as u32,
    ];
    for (place, word) in block.chunks_exact_mut(4).zip(words) {
        place.copy_from_slice(&word.to_le_bytes());
    }
    block[at..total].copy_from_slice(&(total as u32).to_le_bytes());
    total
}

/// What an interface counted up to a time: packets received, and packets lost.
pub fn statistics(out: &mut Vec<u8>, interface: u32, time: Nanos, received: u64, lost: u64) {
    block(out, INTERFACE_STATISTICS, |out| {
        for word in [interface, (time.0 >> 32) as u32, time.0 as u32] {
            out.extend(word.to_le_bytes());
        }
        option(out, 4, &received.to_le_bytes());
        option(out, 5, &lost.to_le_bytes());
        option(out, 0, &[]);
    });
}

fn block(out: &mut Vec<u8>, kind: u32, body: impl FnOnce(&mut Vec<u8>)) {
    let from = out.len();
    out.extend(kind.to_le_bytes());
    out.extend([0; 4]);
    body(out);
    let total = ((out.len() - from + 4) as u32).to_le_bytes();
    out[from + 4..from + 8].copy_from_slice(&total);
    out.extend(total);
}

fn option(out: &mut Vec<u8>, code: u16, value: &[u8]) {
    let value = &value[..value.len().min(usize::from(u16::MAX))];
    out.extend(code.to_le_bytes());
    out.extend((value.len() as u16).to_le_bytes());
    out.extend(value);
    out.resize(out.len().next_multiple_of(4), 0);
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;
    use crate::capture::{CaptureError, CaptureReader, udp as udp_of};

    /// A file of datagrams of these lengths, every second one with losses before it; where each block ends.
    fn file(lengths: &[usize]) -> (Vec<u8>, Vec<usize>) {
        let mut out = Vec::new();
        begin(&mut out, "test", ["239.1.1.1:1", "239.1.1.2:2"]);
        let mut ends = Vec::new();
        let mut block = vec![0xee; UDP_BLOCK_MAX];
        for (n, len) in lengths.iter().enumerate() {
            block[PAYLOAD_AT..PAYLOAD_AT + len].fill(n as u8);
            let to = format!("239.1.1.{}:{}", n % 2 + 1, n % 2 + 1).parse().unwrap();
            let lost = (n % 2) as u32 * 7;
            let from = "10.0.0.1:9".parse().unwrap();
            let len = udp(
                &mut block,
                (n % 2) as u32,
                Nanos(n as u64 + 1),
                (from, to),
                *len,
                lost,
            );
            out.extend(&block[..len]);
            ends.push(out.len());
        }
        statistics(&mut out, 0, Nanos(9), 5, 0);
        statistics(&mut out, 1, Nanos(9), 5, 7);
        (out, ends)
    }

    /// Time, losses before it, interface and payload.
    type Recorded = (u64, u32, u16, Vec<u8>);

    fn read(bytes: &[u8]) -> (Vec<Recorded>, Result<(), CaptureError>) {
        let mut all = Vec::new();
        let mut reader = match CaptureReader::from_reader("memory", Cursor::new(bytes.to_vec())) {
            Ok(reader) => reader,
            Err(e) => return (all, Err(e)),
        };
        loop {
            match reader.next_packet() {
                Ok(Some(packet)) => {
                    let datagram = udp_of(packet.link, packet.bytes).expect("a datagram");
                    let port = datagram.destination.port();
                    let time = packet.time.expect("a time").0;
                    all.push((time, packet.interface, port, datagram.payload.to_vec()));
                }
                Ok(None) => return (all, Ok(())),
                Err(e) => return (all, Err(e)),
            }
        }
    }

    #[test]
    fn datagrams_of_every_length_are_read_as_they_were_written() {
        let lengths = [0, 1, 2, 3, 4, 5, 1472, DATAGRAM_BYTES_MAX];
        let (bytes, _) = file(&lengths);
        let (packets, ended) = read(&bytes);
        ended.expect("whole");
        assert_eq!(packets.len(), lengths.len());
        for (n, ((time, interface, port, payload), len)) in packets.iter().zip(lengths).enumerate() {
            let of = (n % 2) as u32;
            assert_eq!((*time, *interface, *port), (n as u64 + 1, of, of as u16 + 1));
            assert_eq!(*payload, vec![n as u8; len]);
        }
    }

    #[test]
    fn a_file_cut_anywhere_is_whole_up_to_its_last_block() {
        let (bytes, ends) = file(&[3, 10, 0, 40]);
        // What is shorter than the four bytes that name the format is of none.
        for cut in 0..4 {
            assert!(read(&bytes[..cut]).1.is_err(), "{cut}");
        }
        for cut in 4..bytes.len() {
            let (packets, ended) = read(&bytes[..cut]);
            assert_eq!(
                packets.len(),
                ends.iter().filter(|end| **end <= cut).count(),
                "{cut}"
            );
            if let Err(e) = ended {
                assert!(matches!(e, CaptureError::Truncated { .. }), "{cut}: {e}");
            }
        }
    }
}
