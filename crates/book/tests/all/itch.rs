//! Just enough of an ITCH 5.0 reader to drive books: the order messages, by offset. The real decoder lives in
//! `feed`, which these tests and benchmarks must not depend on to be believed.

use tickwire_market::{
    EventFlags, EventKind, InstrumentId, MarketEvent, Nanos, OrderId, Price, SeqNo, Side, Upcoming, Volume,
};

/// A field of a message whose length is known: no check is left in the machine code.
#[inline(always)]
fn u32_at<const N: usize>(m: &[u8; N], at: usize) -> u32 {
    u32::from_be_bytes([m[at], m[at + 1], m[at + 2], m[at + 3]])
}

#[inline(always)]
fn u64_at<const N: usize>(m: &[u8; N], at: usize) -> u64 {
    u64::from_be_bytes(core::array::from_fn(|i| m[at + i]))
}

#[inline(always)]
fn locate<const N: usize>(m: &[u8; N]) -> InstrumentId {
    InstrumentId(u16::from_be_bytes([m[1], m[2]]) as u32)
}

/// What a message is about, if it is about an order.
#[allow(dead_code)] // the benchmark looks ahead, the tests do not
#[inline(always)]
pub(crate) fn upcoming(message: &[u8]) -> Option<Upcoming> {
    let m = message.first_chunk::<19>()?;
    let about_order = matches!(m[0], b'A' | b'F' | b'D' | b'U' | b'E' | b'C' | b'X');
    // Of other messages than new orders something else is read there: whether one is new is what nobody can
    // foresee, and a branch would be on it.
    let last = message.len() - 4;
    let side = if message[last.min(19)] == b'B' {
        Side::Bid
    } else {
        Side::Ask
    };
    let price = message[last.min(32)..].first_chunk::<4>()?;
    about_order.then(|| Upcoming {
        instrument: locate(m),
        order_id: OrderId(u64_at(m, 11)),
        says_where: (m[0] == b'A') | (m[0] == b'F'),
        side,
        price: Price::from_4dp(u32::from_be_bytes(*price)),
    })
}

/// Fills `event` from a message; whether it changes a book. The event is built in place: moving 128 bytes
/// that were just written field by field costs more than reading them from the message.
#[inline(always)]
pub(crate) fn decode_into(event: &mut MarketEvent, message: &[u8], seq: u64) -> bool {
    fill(event, message, seq).is_some()
}

#[inline(always)]
fn fill(event: &mut MarketEvent, message: &[u8], seq: u64) -> Option<()> {
    let m = message.first_chunk::<19>()?;
    event.seq = SeqNo(seq);
    event.instrument = locate(m);
    event.venue_ts = Nanos(u64_at(m, 3) & 0xFFFF_FFFF_FFFF);
    event.order_id = OrderId(u64_at(m, 11));
    event.flags = EventFlags::NONE;
    match m[0] {
        b'A' | b'F' => {
            let m = message.first_chunk::<36>()?;
            event.kind = EventKind::Add;
            event.side = if m[19] == b'B' { Side::Bid } else { Side::Ask };
            event.qty = Volume(u32_at(m, 20) as u64);
            event.price = Price::from_4dp(u32_at(m, 32));
        }
        b'D' => event.kind = EventKind::Delete,
        b'U' => {
            let m = message.first_chunk::<35>()?;
            event.kind = EventKind::Replace;
            event.ref_id = u64_at(m, 19);
            event.qty = Volume(u32_at(m, 27) as u64);
            event.price = Price::from_4dp(u32_at(m, 31));
        }
        b'E' => {
            let m = message.first_chunk::<31>()?;
            event.kind = EventKind::Execute;
            event.qty = Volume(u32_at(m, 19) as u64);
            event.ref_id = u64_at(m, 23);
        }
        b'C' => {
            let m = message.first_chunk::<36>()?;
            event.kind = EventKind::Execute;
            event.qty = Volume(u32_at(m, 19) as u64);
            event.ref_id = u64_at(m, 23);
            event.price = Price::from_4dp(u32_at(m, 32));
            event.flags = EventFlags::AT_OTHER_PRICE;
        }
        b'X' => {
            let m = message.first_chunk::<23>()?;
            event.kind = EventKind::Reduce;
            event.qty = Volume(u32_at(m, 19) as u64);
        }
        _ => return None,
    }
    Some(())
}

/// The event of a message, `None` when it changes no book.
#[allow(dead_code)] // the tests want a value
pub(crate) fn decode(m: &[u8], seq: u64) -> Option<MarketEvent> {
    let mut event = MarketEvent::default();
    decode_into(&mut event, m, seq).then_some(event)
}
