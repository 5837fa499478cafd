//! The flat 128-byte event against a tagged enum of the same vocabulary: making one from decoded fields and
//! handing it on, and putting one into a ring as recorders and shared memory do. Grounds for docs/adr/0003.
//!
//! A regression here means that making events has become dearer for every message of every feed: a field more
//! than two cache lines, or a constructor that no longer compiles to plain stores.
//!
//! `cargo bench -p tickwire-market --bench event_layout`; without `--bench` it runs tiny and only checks its
//! answers.

use std::hint::black_box;
use std::time::Instant;
use tickwire_market::{
    EventKind, InstrumentId, MarketEvent, Nanos, OrderId, Price, SeqNo, Side, Venue, Volume,
};

/// What ships: large blocks on huge pages.
#[global_allocator]
static ALLOCATOR: tickwire_runtime::alloc::Allocator = tickwire_runtime::alloc::Allocator;

/// The alternative: what each kind needs and no more. Its size is that of the largest kind.
#[derive(Clone, Copy)]
struct Tagged {
    seq: SeqNo,
    venue_ts: Nanos,
    recv_ts: Nanos,
    instrument: InstrumentId,
    venue: Venue,
    body: Body,
}

#[derive(Clone, Copy)]
#[allow(
    dead_code,
    reason = "fields of the vocabulary that this measurement does not read"
)]
enum Body {
    Add {
        order_id: OrderId,
        side: Side,
        price: Price,
        qty: Volume,
        code: [u8; 8],
    },
    Execute {
        order_id: OrderId,
        qty: Volume,
        price: Price,
        match_id: u64,
        flags: u32,
    },
    Delete {
        order_id: OrderId,
    },
    Replace {
        order_id: OrderId,
        new_id: OrderId,
        price: Price,
        qty: Volume,
    },
    Imbalance {
        reference: Price,
        near: Price,
        far: Price,
        paired: Volume,
        imbalance: Volume,
        side: Side,
        code: [u8; 8],
    },
}

/// What a decoder has in registers when it makes an event.
#[derive(Clone, Copy)]
struct Decoded {
    kind: EventKind,
    instrument: u32,
    id: u64,
    other: u64,
    price: i64,
    qty: u64,
}

const RING: usize = 1 << 10;

/// The message mix of a Nasdaq day: adds, deletes, replaces, executions, imbalances.
fn input() -> Vec<Decoded> {
    let mut random = 1u64;
    let mut next = |bound: u64| {
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) % bound
    };
    let mut one = || {
        let kind = match next(1000) {
            0..=437 => EventKind::Add,
            438..=869 => EventKind::Delete,
            870..=956 => EventKind::Replace,
            957..=986 => EventKind::Execute,
            _ => EventKind::Imbalance,
        };
        let instrument = next(8_000) as u32;
        Decoded {
            kind,
            instrument,
            id: next(1 << 20),
            other: next(1 << 20),
            price: next(1 << 30) as i64,
            qty: next(1_000),
        }
    };
    (0..4096).map(|_| one()).collect()
}

#[inline(always)]
fn flat(d: &Decoded, seq: u64) -> MarketEvent {
    let head = MarketEvent {
        seq: SeqNo(seq),
        venue_ts: Nanos(seq * 100),
        recv_ts: Nanos(seq * 100 + 7),
        instrument: InstrumentId(d.instrument),
        venue: Venue::Nasdaq,
        kind: d.kind,
        order_id: OrderId(d.id),
        ..MarketEvent::default()
    };
    let (price, qty) = (Price::from_raw(d.price), Volume(d.qty));
    match d.kind {
        EventKind::Add => MarketEvent {
            side: Side::Ask,
            price,
            qty,
            ..head
        },
        EventKind::Execute => MarketEvent {
            qty,
            price,
            ref_id: d.other,
            ..head
        },
        EventKind::Replace => MarketEvent {
            ref_id: d.other,
            price,
            qty,
            ..head
        },
        EventKind::Imbalance => MarketEvent {
            order_id: OrderId(0),
            price,
            near_price: price,
            far_price: price,
            qty,
            imbalance_qty: qty,
            ..head
        },
        _ => head,
    }
}

#[inline(always)]
fn tagged(d: &Decoded, seq: u64) -> Tagged {
    let (price, qty, order_id) = (Price::from_raw(d.price), Volume(d.qty), OrderId(d.id));
    let body = match d.kind {
        EventKind::Add => Body::Add {
            order_id,
            side: Side::Ask,
            price,
            qty,
            code: [0; 8],
        },
        EventKind::Execute => Body::Execute {
            order_id,
            qty,
            price,
            match_id: d.other,
            flags: 0,
        },
        EventKind::Replace => Body::Replace {
            order_id,
            new_id: OrderId(d.other),
            price,
            qty,
        },
        EventKind::Imbalance => Body::Imbalance {
            reference: price,
            near: price,
            far: price,
            paired: qty,
            imbalance: qty,
            side: Side::Bid,
            code: [0; 8],
        },
        _ => Body::Delete { order_id },
    };
    Tagged {
        seq: SeqNo(seq),
        venue_ts: Nanos(seq * 100),
        recv_ts: Nanos(seq * 100 + 7),
        instrument: InstrumentId(d.instrument),
        venue: Venue::Nasdaq,
        body,
    }
}

/// What a book reads of an event; the answer that both layouts must agree on.
#[inline(never)]
fn consume_flat(e: &MarketEvent, sum: &mut u64) {
    let read = match e.kind {
        EventKind::Add | EventKind::Execute => e.order_id.0 ^ e.price.raw() as u64 ^ e.qty.0,
        EventKind::Replace => e.order_id.0 ^ e.ref_id ^ e.price.raw() as u64 ^ e.qty.0,
        EventKind::Imbalance => e.price.raw() as u64 ^ e.imbalance_qty.0,
        _ => e.order_id.0,
    };
    *sum = sum
        .wrapping_mul(31)
        .wrapping_add(read ^ e.seq.0 ^ u64::from(e.instrument.0) ^ e.venue as u64 ^ e.recv_ts.0);
}

#[inline(never)]
fn consume_tagged(e: &Tagged, sum: &mut u64) {
    let read = match e.body {
        Body::Add {
            order_id, price, qty, ..
        }
        | Body::Execute {
            order_id, price, qty, ..
        } => order_id.0 ^ price.raw() as u64 ^ qty.0,
        Body::Replace {
            order_id,
            new_id,
            price,
            qty,
        } => order_id.0 ^ new_id.0 ^ price.raw() as u64 ^ qty.0,
        Body::Imbalance {
            reference, imbalance, ..
        } => reference.raw() as u64 ^ imbalance.0,
        Body::Delete { order_id } => order_id.0,
    };
    let head = e.seq.0 ^ u64::from(e.instrument.0) ^ e.venue as u64 ^ e.recv_ts.0;
    let _ = e.venue_ts;
    *sum = sum.wrapping_mul(31).wrapping_add(read ^ head);
}

fn main() {
    let (rounds, repeats) = if std::env::args().any(|arg| arg == "--bench") {
        (41, 64)
    } else {
        (1, 1)
    };
    let input = input();
    println!(
        "flat {} bytes, tagged {} bytes",
        size_of::<MarketEvent>(),
        size_of::<Tagged>()
    );

    let made_flat = measure("make flat, hand on", rounds, repeats, &input, |d, seq, sum| {
        consume_flat(&flat(d, seq), sum)
    });
    let made_tagged = measure("make tagged, hand on", rounds, repeats, &input, |d, seq, sum| {
        consume_tagged(&tagged(d, seq), sum)
    });
    assert_eq!(made_flat, made_tagged, "both layouts say the same");

    let mut ring = vec![MarketEvent::default(); RING];
    let stored_flat = measure("make flat into a ring", rounds, repeats, &input, |d, seq, sum| {
        let slot = &mut ring[seq as usize % RING];
        *slot = flat(d, seq);
        consume_flat(black_box(slot), sum);
    });
    let mut ring = vec![tagged(&input[0], 0); RING];
    let stored_tagged = measure(
        "make tagged into a ring",
        rounds,
        repeats,
        &input,
        |d, seq, sum| {
            let slot = &mut ring[seq as usize % RING];
            *slot = tagged(d, seq);
            consume_tagged(black_box(slot), sum);
        },
    );
    assert_eq!((stored_flat, stored_tagged), (made_flat, made_flat));

    let source: Vec<MarketEvent> = input.iter().zip(0..).map(|(d, seq)| flat(d, seq)).collect();
    let mut copy = vec![MarketEvent::default(); RING];
    let copied = measure(
        "copy flat from ring to ring",
        rounds,
        repeats,
        &input,
        |_, seq, sum| {
            let slot = &mut copy[seq as usize % RING];
            *slot = source[seq as usize % source.len()];
            *sum = sum.wrapping_add(black_box(slot).order_id.0);
        },
    );
    let expected: u64 = source.iter().map(|event| event.order_id.0).sum();
    assert_eq!(copied, expected.wrapping_mul(repeats));
}

/// Times `step` over the input `repeats` times a round; the answer of one round.
fn measure(
    name: &str,
    rounds: usize,
    repeats: u64,
    input: &[Decoded],
    mut step: impl FnMut(&Decoded, u64, &mut u64),
) -> u64 {
    let mut nanos = Vec::new();
    let mut answer = 0;
    for _ in 0..rounds {
        answer = 0;
        let start = Instant::now();
        for repeat in 0..repeats {
            for (d, at) in input.iter().zip(0u64..) {
                step(black_box(d), repeat * input.len() as u64 + at, &mut answer);
            }
        }
        nanos.push(start.elapsed().as_nanos() as f64 / (repeats * input.len() as u64) as f64);
    }
    nanos.sort_by(f64::total_cmp);
    println!(
        "{name:<28} best {:>6.2} ns  median {:>6.2} ns",
        nanos[0],
        nanos[nanos.len() / 2]
    );
    answer
}
