//! Writing pcap: nanosecond timestamps, little-endian on every machine.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::net::SocketAddrV4;
use std::path::Path;

use tickwire_market::Nanos;

use super::{CaptureError, LinkType};
use crate::files;

/// The snap length declared: nothing written here is longer.
pub(super) const SNAP_LEN: u32 = 262_144;
const ETHERNET: usize = 14;
const IPV4: usize = 20;
const UDP: usize = 8;
/// All headers of a datagram.
pub(super) const HEADERS: usize = ETHERNET + IPV4 + UDP;

/// Writes a pcap file.
#[derive(Debug)]
pub struct PcapWriter {
    file: String,
    out: BufWriter<File>,
    frame: Vec<u8>,
}

impl PcapWriter {
    /// Creates or overwrites a file of frames of the given kind.
    ///
    /// # Errors
    /// [`CaptureError::Write`].
    pub fn create(path: impl AsRef<Path>, link: LinkType) -> Result<PcapWriter, CaptureError> {
        let file = path.as_ref().display().to_string();
        let begin = || -> io::Result<BufWriter<File>> {
            let mut out = BufWriter::with_capacity(1 << 18, files::create(path.as_ref())?);
            let words: [u32; 6] = [0xa1b2_3c4d, 4 << 16 | 2, 0, 0, SNAP_LEN, link.0]; // magic, version 2.4, zone, accuracy
            words
                .iter()
                .try_for_each(|word| out.write_all(&word.to_le_bytes()))?;
            Ok(out)
        };
        match begin() {
            Ok(out) => Ok(PcapWriter {
                file,
                out,
                frame: Vec::with_capacity(2048),
            }),
            Err(source) => Err(CaptureError::Write { file, source }),
        }
    }

    /// Adds a frame.
    ///
    /// # Errors
    /// [`CaptureError::Write`].
    pub fn write_frame(&mut self, time: Nanos, frame: &[u8]) -> Result<(), CaptureError> {
        write_record(&mut self.out, time, frame).map_err(|source| CaptureError::Write {
            file: self.file.clone(),
            source,
        })
    }

    /// Adds a UDP datagram as an Ethernet frame with IPv4, checksums included. Only for files of
    /// [`LinkType::ETHERNET`].
    ///
    /// # Errors
    /// [`CaptureError::Write`], also for a payload longer than a datagram can be.
    pub fn write_udp(
        &mut self,
        time: Nanos,
        source: SocketAddrV4,
        destination: SocketAddrV4,
        payload: &[u8],
    ) -> Result<(), CaptureError> {
        if payload.len() > crate::udp::DATAGRAM_BYTES_MAX {
            let source = io::Error::new(
                io::ErrorKind::InvalidInput,
                "the payload is longer than a datagram can be",
            );
            return Err(CaptureError::Write {
                file: self.file.clone(),
                source,
            });
        }
        let mut frame = std::mem::take(&mut self.frame);
        build_udp(&mut frame, source, destination, payload);
        let written = self.write_frame(time, &frame);
        self.frame = frame;
        written
    }

    /// Writes everything out. Dropping the writer does so too, but cannot tell about failure.
    ///
    /// # Errors
    /// [`CaptureError::Write`].
    pub fn finish(mut self) -> Result<(), CaptureError> {
        self.out.flush().map_err(|source| CaptureError::Write {
            file: self.file.clone(),
            source,
        })
    }
}

fn write_record(out: &mut impl Write, time: Nanos, frame: &[u8]) -> io::Result<()> {
    let len = frame.len() as u32;
    let words = [
        (time.0 / Nanos::SECOND) as u32,
        (time.0 % Nanos::SECOND) as u32,
        len,
        len,
    ];
    words
        .iter()
        .try_for_each(|word| out.write_all(&word.to_le_bytes()))?;
    out.write_all(frame)
}

/// Headers of a UDP datagram of `payload` bytes, at most [`crate::udp::DATAGRAM_BYTES_MAX`]; the checksum of
/// IPv4 is there, that of UDP is 0, which means that there is none.
pub(super) fn headers(source: SocketAddrV4, destination: SocketAddrV4, payload: usize) -> [u8; HEADERS] {
    let udp_len = (UDP + payload) as u16;
    let ip_len = IPV4 as u16 + udp_len;
    let mut frame = [0; HEADERS];
    frame[..6].copy_from_slice(&ethernet_address(destination));
    frame[6..12].copy_from_slice(&ethernet_address(source));
    frame[12] = 0x08; // IPv4
    frame[14] = 0x45; // version 4, five words of header; ordinary service
    frame[16..18].copy_from_slice(&ip_len.to_be_bytes());
    frame[20] = 0x40; // no identification needed: do not fragment
    frame[22..24].copy_from_slice(&[64, 17]); // time to live, UDP; checksum to come
    frame[26..30].copy_from_slice(&source.ip().octets());
    frame[30..34].copy_from_slice(&destination.ip().octets());
    let checksum = !ones_sum(&frame[ETHERNET..ETHERNET + IPV4], 0);
    frame[ETHERNET + 10..ETHERNET + 12].copy_from_slice(&checksum.to_be_bytes());
    frame[34..36].copy_from_slice(&source.port().to_be_bytes());
    frame[36..38].copy_from_slice(&destination.port().to_be_bytes());
    frame[38..40].copy_from_slice(&udp_len.to_be_bytes());
    frame
}

fn build_udp(frame: &mut Vec<u8>, source: SocketAddrV4, destination: SocketAddrV4, payload: &[u8]) {
    let udp_len = (UDP + payload.len()) as u16;
    frame.clear();
    frame.extend(headers(source, destination, payload.len()));
    frame.extend(payload);
    // RFC 768: over addresses, protocol, length and the datagram; 0 is sent as all ones, since 0 means
    // "none".
    let pseudo = ones_sum(&frame[ETHERNET + 12..ETHERNET + IPV4], 17 + u32::from(udp_len));
    let checksum = match !ones_sum(&frame[ETHERNET + IPV4..], u32::from(pseudo)) {
        0 => 0xffff,
        sum => sum,
    };
    frame[ETHERNET + IPV4 + 6..ETHERNET + IPV4 + 8].copy_from_slice(&checksum.to_be_bytes());
}

/// RFC 1112, section 6.4, for groups; for hosts a locally administered address made of the IP address.
fn ethernet_address(of: SocketAddrV4) -> [u8; 6] {
    let [a, b, c, d] = of.ip().octets();
    if of.ip().is_multicast() {
        [0x01, 0x00, 0x5e, b & 0x7f, c, d]
    } else {
        [0x02, 0x00, a, b, c, d]
    }
}

/// RFC 1071: the ones' complement sum of 16-bit words, continued from `sum`.
fn ones_sum(bytes: &[u8], sum: u32) -> u16 {
    let words = bytes
        .chunks(2)
        .map(|pair| u32::from(pair[0]) << 8 | u32::from(pair.get(1).copied().unwrap_or(0)));
    let mut sum = u64::from(sum) + words.map(u64::from).sum::<u64>();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}
