//! A recording of orders in the words of others: Databento's files, which hftbacktest's events are made like.

use tickwire_book::OrderView;
use tickwire_market::{EventFlags, EventKind, MarketEvent, OrderId, Price, Side};
use tickwire_wire::dbn::{Mbo, Px, Stamp, flags};
use tickwire_wire::layout::{Char, Pod};

/// An event, and the order that it is about as it was before.
pub(crate) type WithOrder = (MarketEvent, Option<OrderView>);

/// What happened to an order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Told {
    Add,
    Cancel,
    /// To this quantity, at the price that is told.
    Modify(u64),
    /// A record that takes it from the book comes behind.
    Fill,
}

/// An event as one or two of theirs: order, side, price in 1e-9 and quantity.
pub(crate) fn told(
    event: &MarketEvent,
    had: Option<&OrderView>,
    mut tell: impl FnMut(Told, OrderId, Side, i64, u64),
) {
    if event.kind == EventKind::Add {
        return tell(
            Told::Add,
            event.order_id,
            event.side,
            event.price.raw(),
            event.qty.0,
        );
    }
    let Some(had) = had else { return };
    let (id, side, price, qty) = (had.id, had.side, had.price.raw(), event.qty.0);
    let left = u64::from(had.qty.0);
    match event.kind {
        EventKind::Delete => tell(Told::Cancel, id, side, price, left),
        EventKind::Execute | EventKind::Reduce => {
            if event.kind == EventKind::Execute {
                tell(Told::Fill, id, side, price, qty);
            }
            match left - qty {
                0 => tell(Told::Cancel, id, side, price, left),
                left => tell(Told::Modify(left), id, side, price, left),
            }
        }
        EventKind::Replace => {
            tell(Told::Cancel, id, side, price, left);
            tell(Told::Add, OrderId(event.ref_id), side, event.price.raw(), qty);
        }
        EventKind::Modify => tell(Told::Modify(qty), id, event.side, event.price.raw(), qty),
        _ => {}
    }
}

/// A DBN file, version 3, whose instruments have the numbers that they have here.
#[allow(dead_code, reason = "the comparison with others reads one")]
pub(crate) fn dbn_file(events: &[WithOrder]) -> Vec<u8> {
    let mut metadata = vec![0; 104];
    metadata[..9].copy_from_slice(b"GLBX.MDP3");
    // No end, no limit; symbols are numbers and of 71 characters.
    metadata[26..34].copy_from_slice(&u64::MAX.to_le_bytes());
    metadata[45..47].copy_from_slice(&71_u16.to_le_bytes());
    metadata.extend([0; 16]);
    let mut file = b"DBN\x03".to_vec();
    file.extend((metadata.len() as u32).to_le_bytes());
    file.extend(metadata);
    for (event, had) in events {
        let is_last = event.flags.has(EventFlags::LAST);
        told(event, had.as_ref(), |what, id, side, price, qty| {
            let (action, size) = match what {
                Told::Add => (b'A', qty),
                Told::Cancel => (b'C', qty),
                Told::Modify(left) => (b'M', left),
                Told::Fill => (b'F', qty),
            };
            let record = Mbo {
                length: (Mbo::SIZE / 4) as u8,
                rtype: 0xA0,
                publisher_id: 1.into(),
                instrument_id: event.instrument.0.into(),
                ts_event: Stamp::new(event.venue_ts),
                ts_recv: Stamp::new(event.recv_ts),
                order_id: id.0.into(),
                price: Px::new(Price::from_raw(price)),
                size: (size as u32).into(),
                flags: if is_last { flags::LAST } else { 0 },
                action: Char(action),
                side: Char(if side == Side::Bid { b'B' } else { b'A' }),
                sequence: (event.seq.0 as u32).into(),
                ..Mbo::BLANK
            };
            file.extend_from_slice(record.as_bytes());
        });
    }
    file
}
