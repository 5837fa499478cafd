//! Just enough of a DBN reader (Databento Binary Encoding, versions 1 to 3) to drive books: the
//! market-by-order records of a file.

use std::io::Read;
use std::path::Path;
use tickwire_market::{Nanos, OrderId, Price, Side};

/// One market-by-order record.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mbo {
    pub(crate) ts_event: Nanos,
    pub(crate) order_id: OrderId,
    pub(crate) price: Price,
    pub(crate) size: u32,
    pub(crate) flags: u8,
    pub(crate) action: u8,
    /// `None`: the record has no side.
    pub(crate) side: Option<Side>,
    pub(crate) sequence: u32,
}

impl Mbo {
    /// The last record of its event.
    pub(crate) const LAST: u8 = 0x80;
    /// Part of a snapshot.
    pub(crate) const SNAPSHOT: u8 = 0x20;
}

/// All records of a compressed file; it must hold nothing else.
pub(crate) fn mbo_records(path: &Path) -> Vec<Mbo> {
    let packed = std::fs::read(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let mut bytes = Vec::new();
    // A file is several frames one after the other.
    let mut packed = &packed[..];
    while !packed.is_empty() {
        let mut plain = ruzstd::decoding::StreamingDecoder::new(&mut packed).expect("a zstd frame");
        plain.read_to_end(&mut bytes).expect("a whole zstd frame");
    }
    assert_eq!(&bytes[..3], b"DBN");
    let mut rest = &bytes[8 + word(&bytes[4..]) as usize..];
    let mut records = Vec::new();
    while !rest.is_empty() {
        let (record, others) = rest.split_at(rest[0] as usize * 4);
        assert_eq!((record[1], record.len()), (160, 56), "a market-by-order record");
        records.push(record_of(record));
        rest = others;
    }
    records
}

fn record_of(m: &[u8]) -> Mbo {
    Mbo {
        ts_event: Nanos(long(&m[8..])),
        order_id: OrderId(long(&m[16..])),
        price: Price::from_raw(long(&m[24..]) as i64),
        size: word(&m[32..]),
        flags: m[36],
        action: m[38],
        side: match m[39] {
            b'B' => Some(Side::Bid),
            b'A' => Some(Side::Ask),
            _ => None,
        },
        sequence: word(&m[52..]),
    }
}

fn word(bytes: &[u8]) -> u32 {
    u32::from_le_bytes(*bytes.first_chunk().unwrap())
}

fn long(bytes: &[u8]) -> u64 {
    u64::from_le_bytes(*bytes.first_chunk().unwrap())
}
