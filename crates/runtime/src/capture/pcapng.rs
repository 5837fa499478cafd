//! pcapng: draft-ietf-opsawg-pcapng, sections 3.1 (blocks) and 4 (block types).
//!
//! ```text
//! every block:  0 type   4 total length   8 body, padded to 4 bytes   total length again
//! ```

use tickwire_market::Nanos;

use super::pcap::ByteOrder;
use super::{CaptureError, LinkType, Located, RECORD_BYTES_MAX, Source};

const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const INTERFACE_DESCRIPTION: u32 = 1;
const PACKET: u32 = 2; // obsolete, still met
const SIMPLE_PACKET: u32 = 3;
const ENHANCED_PACKET: u32 = 6;
const BYTE_ORDER_MAGIC: u32 = 0x1a2b_3c4d;
/// Type, length and the length again.
const BLOCK_BYTES_MIN: usize = 12;
/// A section declaring more interfaces than this is garbled.
const INTERFACES_MAX: usize = 4096;

const OPTION_END: u16 = 0;
const OPTION_TSRESOL: u16 = 9;
const OPTION_TSOFFSET: u16 = 14;

/// What an Interface Description Block says.
#[derive(Clone, Copy)]
struct Interface {
    link: LinkType,
    snap_len: u32,
    resolution: Resolution,
    /// Seconds to add to timestamps.
    offset_s: i64,
}

/// Units of a timestamp per second.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Resolution {
    /// 10 to this power.
    Decimal(u8),
    /// 2 to this power.
    Binary(u8),
}

impl Resolution {
    /// `if_tsresol`, section 4.2. `None` for one finer than 64 bits can hold a second of.
    fn from_option(byte: u8) -> Option<Resolution> {
        match byte {
            0..=19 => Some(Resolution::Decimal(byte)),
            0x80..=0xbf => Some(Resolution::Binary(byte & 0x7f)),
            _ => None,
        }
    }

    fn nanos(self, units: u64) -> u64 {
        let units = u128::from(units);
        let ns = match self {
            Resolution::Decimal(digits @ 0..=9) => units * 10u128.pow(9 - u32::from(digits)),
            Resolution::Decimal(digits) => units / 10u128.pow(u32::from(digits) - 9),
            Resolution::Binary(bits) => (units * 1_000_000_000) >> bits,
        };
        ns.try_into().unwrap_or(u64::MAX)
    }
}

impl Interface {
    fn time(&self, high: u32, low: u32) -> Nanos {
        let ns = self.resolution.nanos(u64::from(high) << 32 | u64::from(low));
        Nanos(ns.saturating_add_signed(self.offset_s.saturating_mul(Nanos::SECOND as i64)))
    }
}

pub(super) struct Pcapng {
    order: ByteOrder,
    interfaces: Vec<Interface>,
}

impl Pcapng {
    pub(super) fn starts(start: &[u8]) -> bool {
        start == SECTION_HEADER.to_le_bytes() // reads the same in both byte orders
    }

    /// The first block is a section header, which says the rest.
    pub(super) fn new() -> Pcapng {
        Pcapng {
            order: ByteOrder::Little,
            interfaces: Vec::new(),
        }
    }

    /// The next packet, passing over all other blocks.
    pub(super) fn next(&mut self, source: &mut Source) -> Result<Option<Located>, CaptureError> {
        loop {
            let start = source.peek(BLOCK_BYTES_MIN)?;
            match start.len() {
                0 => return Ok(None),
                BLOCK_BYTES_MIN => {}
                have => return Err(source.truncated("block", BLOCK_BYTES_MIN, have)),
            }
            if Pcapng::starts(&start[..4]) {
                self.begin_section(source)?;
                continue;
            }
            let (kind, total_len) = (self.order.u32(start, 0), self.order.u32(start, 4) as usize);
            self.check_len(source, total_len)?;
            match kind {
                INTERFACE_DESCRIPTION => self.add_interface(source, total_len)?,
                PACKET | SIMPLE_PACKET | ENHANCED_PACKET => {
                    let block = self.whole_block(source, total_len)?;
                    let located = self
                        .locate(kind, block)
                        .map_err(|reason| source.garbled(reason))?;
                    return Ok(Some(Located {
                        offset: source.offset(),
                        record_len: total_len,
                        ..located
                    }));
                }
                _ => self.skip_block(source, total_len)?,
            }
        }
    }

    fn check_len(&self, source: &Source, total_len: usize) -> Result<(), CaptureError> {
        if total_len < BLOCK_BYTES_MIN || !total_len.is_multiple_of(4) {
            return Err(source.garbled(format!("a block cannot have a length of {total_len} bytes")));
        }
        Ok(())
    }

    /// The block that begins here, whole, with both lengths equal.
    fn whole_block<'s>(&self, source: &'s mut Source, total_len: usize) -> Result<&'s [u8], CaptureError> {
        if total_len > RECORD_BYTES_MAX {
            return Err(source.garbled(format!("a block of {total_len} bytes is longer than any frame")));
        }
        let have = source.peek(total_len)?.len();
        if have < total_len {
            return Err(source.truncated("block", total_len, have));
        }
        let again = self.order.u32(source.peek(total_len)?, total_len - 4) as usize;
        if again != total_len {
            return Err(source.garbled(format!("a block's two lengths differ: {total_len} and {again}")));
        }
        source.peek(total_len)
    }

    fn skip_block(&self, source: &mut Source, total_len: usize) -> Result<(), CaptureError> {
        if total_len <= RECORD_BYTES_MAX {
            self.whole_block(source, total_len)?;
            source.take(total_len);
            return Ok(());
        }
        // Long blocks (name tables, secrets) are passed over in pieces, their second length unread.
        let (offset, need) = (source.offset(), total_len as u64);
        match source.skip(need)? {
            have if have < need => Err(source.truncated_at(offset, "block", need, have)),
            _ => Ok(()),
        }
    }

    /// Section Header Block, section 4.1: `8 byte-order magic, 12 versions, 16 section length`.
    fn begin_section(&mut self, source: &mut Source) -> Result<(), CaptureError> {
        let start = source.peek(BLOCK_BYTES_MIN)?;
        self.order = match (ByteOrder::Little.u32(start, 8), ByteOrder::Big.u32(start, 8)) {
            (BYTE_ORDER_MAGIC, _) => ByteOrder::Little,
            (_, BYTE_ORDER_MAGIC) => ByteOrder::Big,
            _ => return Err(source.garbled("a section header has no byte-order magic")),
        };
        let total_len = self.order.u32(start, 4) as usize;
        self.check_len(source, total_len)?;
        if total_len < 28 {
            return Err(source.garbled(format!(
                "a section header cannot have a length of {total_len} bytes"
            )));
        }
        let block = self.whole_block(source, total_len)?;
        let major = self.order.u16(block, 12);
        if major != 1 {
            return Err(source.garbled(format!("version {major} of the pcapng format is not known")));
        }
        self.interfaces.clear();
        source.take(total_len);
        Ok(())
    }

    /// Interface Description Block, section 4.2: `8 link type, 10 reserved, 12 snap length, 16 options`.
    fn add_interface(&mut self, source: &mut Source, total_len: usize) -> Result<(), CaptureError> {
        let block = self.whole_block(source, total_len)?;
        let interface = self.interface(block).map_err(|reason| source.garbled(reason))?;
        if self.interfaces.len() == INTERFACES_MAX {
            return Err(source.garbled(format!(
                "a section declares more than {INTERFACES_MAX} interfaces"
            )));
        }
        self.interfaces.push(interface);
        source.take(total_len);
        Ok(())
    }

    fn interface(&self, block: &[u8]) -> Result<Interface, String> {
        if block.len() < 20 {
            return Err(format!(
                "an interface description cannot have a length of {} bytes",
                block.len()
            ));
        }
        let mut interface = Interface {
            link: LinkType(u32::from(self.order.u16(block, 8))),
            snap_len: self.order.u32(block, 12),
            resolution: Resolution::Decimal(6),
            offset_s: 0,
        };
        let mut options = &block[16..block.len() - 4];
        while options.len() >= 4 {
            let (code, len) = (
                self.order.u16(options, 0),
                usize::from(self.order.u16(options, 2)),
            );
            let Some(value) = options[4..].get(..len) else {
                return Err(format!("an option of {len} bytes reaches beyond its block"));
            };
            match (code, value) {
                (OPTION_END, _) => break,
                (OPTION_TSRESOL, &[byte]) => {
                    interface.resolution = Resolution::from_option(byte)
                        .ok_or_else(|| format!("a timestamp resolution of {byte:#04x} is not possible"))?;
                }
                (OPTION_TSOFFSET, &[_, _, _, _, _, _, _, _]) => interface.offset_s = self.i64(value),
                _ => {}
            }
            options = options[4..].get(len.next_multiple_of(4)..).unwrap_or(&[]);
        }
        Ok(interface)
    }

    /// A 64-bit option value.
    fn i64(&self, value: &[u8]) -> i64 {
        let (first, second) = (
            u64::from(self.order.u32(value, 0)),
            u64::from(self.order.u32(value, 4)),
        );
        match self.order {
            ByteOrder::Little => (second << 32 | first) as i64,
            ByteOrder::Big => (first << 32 | second) as i64,
        }
    }

    /// The frame of a packet block (sections 4.3, 4.4 and A). The block is whole.
    #[inline]
    fn locate(&self, kind: u32, block: &[u8]) -> Result<Located, String> {
        let frame_from = if kind == SIMPLE_PACKET { 12 } else { 28 };
        let Some(room) = block.len().checked_sub(frame_from + 4) else {
            return Err(format!(
                "a packet block cannot have a length of {} bytes",
                block.len()
            ));
        };
        let word = |at| self.order.u32(block, at);
        let interface = match kind {
            ENHANCED_PACKET => word(8),
            PACKET => u32::from(self.order.u16(block, 8)),
            _ => 0,
        };
        let Some(described) = self.interfaces.get(interface as usize) else {
            return Err(format!(
                "a packet names interface {interface}, which was not described"
            ));
        };
        let (time, frame_len, original_len) = match kind {
            SIMPLE_PACKET => (None, simple_len(word(8), described.snap_len), word(8)),
            _ => (
                Some(described.time(word(12), word(16))),
                word(20) as usize,
                word(24),
            ),
        };
        if frame_len > room {
            return Err(format!(
                "a packet of {frame_len} bytes does not fit into its block"
            ));
        }
        Ok(Located {
            time,
            link: described.link,
            interface,
            original_len,
            offset: 0,
            is_time_odd: false,
            frame_from,
            frame_len,
            record_len: block.len(),
        })
    }
}

/// A simple packet is captured up to the interface's snap length; 0 means no limit.
fn simple_len(original_len: u32, snap_len: u32) -> usize {
    (if snap_len == 0 {
        original_len
    } else {
        original_len.min(snap_len)
    }) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_timestamp_resolution_becomes_nanoseconds() {
        for (option, units, ns) in [
            (6, 1_750_000_000_123_456, 1_750_000_000_123_456_000),
            (9, 1_750_000_000_123_456_789, 1_750_000_000_123_456_789),
            (3, 1_750_000_000_123, 1_750_000_000_123_000_000),
            (0, 1_750_000_000, 1_750_000_000_000_000_000),
            (12, 1_234_567, 1_234),
            (0x80, 5, 5_000_000_000),
            (0x8a, 1024 + 512, 1_500_000_000),
            (0xa0, 3 << 31, 1_500_000_000),
        ] {
            assert_eq!(
                Resolution::from_option(option).expect("possible").nanos(units),
                ns,
                "{option:#x}"
            );
        }
        assert_eq!(Resolution::from_option(20), None);
        assert_eq!(Resolution::from_option(0xff), None);
    }
}
