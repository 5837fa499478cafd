//! Recorded packets: pcap and pcapng files, plain or compressed, read as a stream with bounded memory; a pcap
//! writer, and the blocks of pcapng ([`blocks`]).
//!
//! [`CaptureReader::next_packet`] gives frames as they were captured, [`udp`] slices a UDP payload out of a
//! frame:
//!
//! ```no_run
//! use tickwire_runtime::capture::{CaptureReader, udp};
//! # fn main() -> Result<(), tickwire_runtime::capture::CaptureError> {
//! let mut reader = CaptureReader::open("session.pcap.zst")?;
//! while let Some(packet) = reader.next_packet()? {
//!     if let Ok(datagram) = udp(packet.link, packet.bytes) {
//!         println!("{:?} {} {}", packet.time, datagram.destination, datagram.payload.len());
//!     }
//! }
//! # Ok(())
//! # }
//! ```
//!
//! [`CaptureReader::next_frame`] takes each frame apart and keeps an account of every one ([`FrameCounts`]);
//! [`TcpStreams`] puts streams of TCP together.
//!
//! Formats: draft-ietf-opsawg-pcap (both resolutions, both byte orders), draft-ietf-opsawg-pcapng (all packet
//! blocks, several sections and interfaces, any timestamp resolution); gzip and zstd are told by their first
//! bytes, not by the file's name. A file that breaks off in the middle of a packet gives all whole packets
//! first, then [`CaptureError::Truncated`].

mod ahead;
pub mod blocks;
mod frame;
mod frames;
mod pcap;
mod pcapng;
mod source;
mod stream;
mod write;

use std::io::Read;
use std::path::Path;

use tickwire_market::Nanos;

pub use frame::{Carried, NotUdp, TcpSegment, UdpPacket, Wrapping, tcp, udp};
pub use frames::{Frame, FrameCounts, Frames};
pub(crate) use source::Source;
pub use source::{CaptureError, Compression, RECORD_BYTES_MAX};
pub use stream::{AHEAD_BYTES_MAX, AHEAD_SEGMENTS_MAX, STREAMS_MAX, Step, Stream, StreamKey, TcpStreams};
pub use write::PcapWriter;

/// The kind of link-layer header of a frame: a LINKTYPE_ value of draft-ietf-opsawg-pcaplinktype.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct LinkType(pub u32);

impl LinkType {
    /// BSD loopback: address family in the capturing machine's byte order.
    pub const NULL: LinkType = LinkType(0);
    /// Ethernet.
    pub const ETHERNET: LinkType = LinkType(1);
    /// IPv4 or IPv6 without a link-layer header.
    pub const RAW: LinkType = LinkType(101);
    /// OpenBSD loopback: address family in network byte order.
    pub const LOOP: LinkType = LinkType(108);
    /// Linux "cooked" capture (`tcpdump -i any`).
    pub const LINUX_SLL: LinkType = LinkType(113);
    /// IPv4 without a link-layer header.
    pub const IPV4: LinkType = LinkType(228);
    /// IPv6 without a link-layer header.
    pub const IPV6: LinkType = LinkType(229);
    /// Linux "cooked" capture, version 2.
    pub const LINUX_SLL2: LinkType = LinkType(276);
}

/// A captured frame.
#[derive(Clone, Copy, Debug)]
pub struct Packet<'a> {
    /// When it was captured; `None` in the one kind of pcapng block that does not say (Simple Packet).
    pub time: Option<Nanos>,
    /// What `bytes` begins with.
    pub link: LinkType,
    /// The interface within the section (pcapng), else 0.
    pub interface: u32,
    /// The frame as far as it was captured.
    pub bytes: &'a [u8],
    /// Its length on the wire.
    pub original_len: u32,
    /// Where its record begins in the file (in the decompressed data).
    pub offset: u64,
    /// The fraction of its time is a second or more; it was carried over to the seconds.
    pub is_time_odd: bool,
}

/// Where a packet lies in the buffer: the reader's own form of [`Packet`].
struct Located {
    time: Option<Nanos>,
    link: LinkType,
    interface: u32,
    original_len: u32,
    offset: u64,
    is_time_odd: bool,
    /// How far into the record the frame begins, its length, and the record's.
    frame_from: usize,
    frame_len: usize,
    record_len: usize,
}

/// The file format.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CaptureFormat {
    /// pcap with timestamps in microseconds.
    PcapMicros,
    /// pcap with timestamps in nanoseconds.
    PcapNanos,
    /// pcapng.
    Pcapng,
}

enum Reader {
    Pcap(pcap::Pcap),
    Pcapng(pcapng::Pcapng),
}

/// Reads a capture file, packet by packet.
pub struct CaptureReader {
    source: Source,
    reader: Reader,
    /// The datagram put together last.
    whole: Vec<u8>,
    /// An error was returned; what follows it cannot be trusted.
    failed: bool,
}

impl CaptureReader {
    /// Opens a file; `-` is standard input.
    ///
    /// # Errors
    /// [`CaptureError`]: cannot be opened or read, is not a capture, is cut off in its header.
    pub fn open(path: impl AsRef<Path>) -> Result<CaptureReader, CaptureError> {
        CaptureReader::new(Source::open(path.as_ref())?)
    }

    /// Reads from a pipe or from memory; `name` is for error messages.
    ///
    /// # Errors
    /// As [`CaptureReader::open`].
    pub fn from_reader(name: &str, input: impl Read + Send + 'static) -> Result<CaptureReader, CaptureError> {
        CaptureReader::new(Source::new(name, Box::new(input))?)
    }

    pub(crate) fn new(mut source: Source) -> Result<CaptureReader, CaptureError> {
        let reader = if pcapng::Pcapng::starts(source.peek(4)?) {
            Reader::Pcapng(pcapng::Pcapng::new())
        } else {
            Reader::Pcap(pcap::Pcap::read_header(&mut source)?)
        };
        Ok(CaptureReader {
            source,
            reader,
            whole: Vec::new(),
            failed: false,
        })
    }

    /// Whether a file with these first four bytes (or fewer, if it has no more) is a capture.
    pub(crate) fn recognises(start: &[u8]) -> bool {
        pcapng::Pcapng::starts(start) || pcap::Pcap::starts(start)
    }

    /// The next packet, `None` at the end.
    ///
    /// # Errors
    /// [`CaptureError`] with the byte offset. After an error there are no more packets.
    #[inline]
    pub fn next_packet(&mut self) -> Result<Option<Packet<'_>>, CaptureError> {
        Ok(self.locate()?.map(|l| packet(&mut self.source, &l)))
    }

    /// The next frame, taken apart and counted by `frames`; `None` at the end.
    ///
    /// # Errors
    /// As [`CaptureReader::next_packet`].
    #[inline]
    pub fn next_frame(&mut self, frames: &mut Frames) -> Result<Option<Frame<'_>>, CaptureError> {
        let Some(located) = self.locate()? else {
            return Ok(None);
        };
        let packet = packet(&mut self.source, &located);
        let carried = frames.take(&packet, &mut self.whole);
        Ok(Some(Frame { packet, carried }))
    }

    #[inline]
    fn locate(&mut self) -> Result<Option<Located>, CaptureError> {
        if self.failed {
            return Ok(None);
        }
        let located = match &mut self.reader {
            Reader::Pcap(pcap) => pcap.next(&mut self.source),
            Reader::Pcapng(pcapng) => pcapng.next(&mut self.source),
        };
        located.inspect_err(|_| self.failed = true)
    }

    /// The file format.
    pub fn format(&self) -> CaptureFormat {
        match &self.reader {
            Reader::Pcap(pcap) => pcap.format(),
            Reader::Pcapng(_) => CaptureFormat::Pcapng,
        }
    }

    /// How the file is compressed.
    pub fn compression(&self) -> Compression {
        self.source.compression()
    }

    /// How far reading has come, in bytes of decompressed data.
    pub fn offset(&self) -> u64 {
        self.source.offset()
    }
}

#[inline]
fn packet<'s>(source: &'s mut Source, l: &Located) -> Packet<'s> {
    Packet {
        time: l.time,
        link: l.link,
        interface: l.interface,
        bytes: &source.take(l.record_len)[l.frame_from..l.frame_from + l.frame_len],
        original_len: l.original_len,
        offset: l.offset,
        is_time_odd: l.is_time_odd,
    }
}

impl std::fmt::Debug for CaptureReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CaptureReader")
            .field("format", &self.format())
            .field("offset", &self.offset())
            .finish()
    }
}
