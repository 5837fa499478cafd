//! pcap: draft-ietf-opsawg-pcap, sections 4 (file header) and 5 (packet record).

use tickwire_market::Nanos;

use super::{CaptureError, CaptureFormat, LinkType, Located, RECORD_BYTES_MAX, Source};

const FILE_HEADER: usize = 24;
const RECORD_HEADER: usize = 16;
const MAGIC_MICROS: u32 = 0xa1b2_c3d4;
const MAGIC_NANOS: u32 = 0xa1b2_3c4d;

/// The byte order of the machine that wrote the file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum ByteOrder {
    Little,
    Big,
}

impl ByteOrder {
    /// The word at `at`, which the caller has checked to be there.
    #[inline]
    pub(super) fn u32(self, bytes: &[u8], at: usize) -> u32 {
        let word = bytes[at..at + 4].try_into().expect("four bytes");
        match self {
            ByteOrder::Little => u32::from_le_bytes(word),
            ByteOrder::Big => u32::from_be_bytes(word),
        }
    }

    /// The half word at `at`, which the caller has checked to be there.
    #[inline]
    pub(super) fn u16(self, bytes: &[u8], at: usize) -> u16 {
        let word = bytes[at..at + 2].try_into().expect("two bytes");
        match self {
            ByteOrder::Little => u16::from_le_bytes(word),
            ByteOrder::Big => u16::from_be_bytes(word),
        }
    }
}

pub(super) struct Pcap {
    order: ByteOrder,
    link: LinkType,
    /// Nanoseconds in a unit of the timestamp's fraction: 1 or 1000.
    unit_ns: u32,
}

impl Pcap {
    fn recognise(start: &[u8]) -> Option<(ByteOrder, u32)> {
        let start: [u8; 4] = start.try_into().ok()?;
        match (u32::from_le_bytes(start), u32::from_be_bytes(start)) {
            (MAGIC_MICROS, _) => Some((ByteOrder::Little, 1_000)),
            (MAGIC_NANOS, _) => Some((ByteOrder::Little, 1)),
            (_, MAGIC_MICROS) => Some((ByteOrder::Big, 1_000)),
            (_, MAGIC_NANOS) => Some((ByteOrder::Big, 1)),
            _ => None,
        }
    }

    pub(super) fn starts(start: &[u8]) -> bool {
        Pcap::recognise(start).is_some()
    }

    pub(super) fn read_header(source: &mut Source) -> Result<Pcap, CaptureError> {
        let Some((order, unit_ns)) = Pcap::recognise(source.peek(4)?) else {
            return Err(source.unrecognised("pcap or pcapng")?);
        };
        let have = source.peek(FILE_HEADER)?.len();
        if have < FILE_HEADER {
            return Err(source.truncated("file header", FILE_HEADER, have));
        }
        // Bits 26 to 31 tell about frame check sequences, which UDP's own length makes irrelevant.
        let link = LinkType(order.u32(source.take(FILE_HEADER), 20) & 0x03ff_ffff);
        Ok(Pcap { order, link, unit_ns })
    }

    pub(super) fn format(&self) -> CaptureFormat {
        if self.unit_ns == 1 {
            CaptureFormat::PcapNanos
        } else {
            CaptureFormat::PcapMicros
        }
    }

    #[inline]
    pub(super) fn next(&mut self, source: &mut Source) -> Result<Option<Located>, CaptureError> {
        let header = source.peek(RECORD_HEADER)?;
        if header.len() < RECORD_HEADER {
            let have = header.len();
            return if have == 0 {
                Ok(None)
            } else {
                Err(source.truncated("packet header", RECORD_HEADER, have))
            };
        }
        let word = |at| self.order.u32(header, at);
        let (seconds, fraction, captured_len, original_len) = (word(0), word(4), word(8) as usize, word(12));
        if captured_len > RECORD_BYTES_MAX {
            return Err(source.garbled(format!(
                "a packet of {captured_len} bytes is longer than any frame"
            )));
        }
        let record_len = RECORD_HEADER + captured_len;
        let have = source.peek(record_len)?.len();
        if have < record_len {
            return Err(source.truncated("packet", record_len, have));
        }
        // Some writers have let the fraction run over: it is carried over to the seconds, and told.
        let is_time_odd = fraction >= 1_000_000_000 / self.unit_ns;
        let time = Nanos(u64::from(seconds) * Nanos::SECOND + u64::from(fraction) * u64::from(self.unit_ns));
        Ok(Some(Located {
            time: Some(time),
            link: self.link,
            interface: 0,
            original_len,
            offset: source.offset(),
            is_time_odd,
            frame_from: RECORD_HEADER,
            frame_len: captured_len,
            record_len,
        }))
    }
}
