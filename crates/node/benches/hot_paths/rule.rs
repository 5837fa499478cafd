//! What the built-in rule costs from an event that moves the best offer to the order's bytes in memory,
//! without decoding, and back: the order is filled. The answer is checked: an order for every change.

use std::hint::black_box;

use tickwire_market::{
    EventFlags, EventKind, EventSink, InstrumentId, MarketEvent, OrderId, Price, SeqNo, Side, Venue, Volume,
};
use tickwire_node::memory;
use tickwire_rig::recorded;
use tickwire_runtime::clock::Clock;

/// So many changes of the best offer of so many made; how many orders they were.
pub(crate) fn orders(whole: u64, done: u64) -> u64 {
    let clock = Clock::calibrate();
    let symbol = recorded::first_symbol();
    let event = |seq: u64, kind, order, side, cents: u32| MarketEvent {
        seq: SeqNo(seq),
        kind,
        instrument: InstrumentId(1),
        order_id: OrderId(order),
        side,
        price: Price::from_4dp(cents * 100),
        qty: Volume(100),
        venue: Venue::Nasdaq,
        flags: EventFlags::LAST,
        recv_ts: clock.now(),
        ..MarketEvent::default()
    };
    let live_now = MarketEvent {
        instrument: InstrumentId::WHOLE_FEED,
        ..event(0, EventKind::Recovered, 0, Side::Bid, 0)
    };
    let mut events = vec![
        live_now,
        event(1, EventKind::Add, 1, Side::Bid, 10_000),
        event(2, EventKind::Add, 2, Side::Ask, 10_010),
    ];
    for i in 0..whole / 2 {
        events.push(event(3 + 2 * i, EventKind::Add, 3 + i, Side::Ask, 10_009));
        events.push(event(4 + 2 * i, EventKind::Delete, 3 + i, Side::Ask, 10_009));
    }
    let books = memory::books(1);
    let mut hot = memory::memory_path::<false>(books, symbol, clock.clone()).expect("it logs on");
    let before = events.len() - whole as usize;
    for event in &events[..before + done as usize] {
        hot.on_event(black_box(event));
        memory::answer(&mut hot, event.recv_ts);
    }
    let sent = hot.sessions[0].out.orders;
    // Without a price to compare with, the first is stopped.
    assert!(sent + 2 >= done, "{sent} orders for {done} changes");
    done
}
