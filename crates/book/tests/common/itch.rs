//! Just enough of an ITCH 5.0 reader to drive books: the order messages, by offset. The real decoder lives in `feed`,
//! which these tests and benchmarks must not depend on to be believed.

use tickwire_market::{
    EventFlags, EventKind, InstrumentId, MarketEvent, Nanos, OrderId, Price, SeqNo, Side, Venue, Volume,
};

#[inline(always)]
fn u32_at(m: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([m[at], m[at + 1], m[at + 2], m[at + 3]])
}

#[inline(always)]
fn u64_at(m: &[u8], at: usize) -> u64 {
    (u32_at(m, at) as u64) << 32 | u32_at(m, at + 4) as u64
}

/// The instrument and order of a message that is about an order.
#[inline(always)]
pub fn order_of(m: &[u8]) -> Option<(InstrumentId, OrderId)> {
    let about_order = matches!(m[0], b'A' | b'F' | b'D' | b'U' | b'E' | b'C' | b'X');
    about_order.then(|| {
        (
            InstrumentId(u16::from_be_bytes([m[1], m[2]]) as u32),
            OrderId(u64_at(m, 11)),
        )
    })
}

/// The event of a message, `None` when it changes no book.
#[inline(always)]
pub fn decode(m: &[u8], seq: u64) -> Option<MarketEvent> {
    let head = |kind| MarketEvent {
        kind,
        venue: Venue::Nasdaq,
        seq: SeqNo(seq),
        instrument: InstrumentId(u16::from_be_bytes([m[1], m[2]]) as u32),
        venue_ts: Nanos((u16::from_be_bytes([m[5], m[6]]) as u64) << 32 | u32_at(m, 7) as u64),
        order_id: OrderId(u64_at(m, 11)),
        ..MarketEvent::default()
    };
    Some(match *m.first()? {
        b'A' | b'F' if m.len() >= 36 => MarketEvent {
            side: if m[19] == b'B' { Side::Bid } else { Side::Ask },
            qty: Volume(u32_at(m, 20) as u64),
            price: Price::from_4dp(u32_at(m, 32)),
            ..head(EventKind::Add)
        },
        b'D' if m.len() >= 19 => head(EventKind::Delete),
        b'U' if m.len() >= 35 => MarketEvent {
            ref_id: u64_at(m, 19),
            qty: Volume(u32_at(m, 27) as u64),
            price: Price::from_4dp(u32_at(m, 31)),
            ..head(EventKind::Replace)
        },
        b'E' if m.len() >= 31 => MarketEvent {
            qty: Volume(u32_at(m, 19) as u64),
            ref_id: u64_at(m, 23),
            ..head(EventKind::Execute)
        },
        b'C' if m.len() >= 36 => MarketEvent {
            qty: Volume(u32_at(m, 19) as u64),
            ref_id: u64_at(m, 23),
            price: Price::from_4dp(u32_at(m, 32)),
            flags: EventFlags::AT_OTHER_PRICE,
            ..head(EventKind::Execute)
        },
        b'X' if m.len() >= 23 => MarketEvent {
            qty: Volume(u32_at(m, 19) as u64),
            ..head(EventKind::Reduce)
        },
        _ => return None,
    })
}
