//! PITCH from packet to event: orders of 64 instruments added, executed, reduced, modified and deleted, one,
//! two and ten messages a packet. A regression here means that the table of orders is searched more often
//! than a message needs, or that its cache misses do not overlap.
//!
//! The decoder has the room that it has as shipped (a million orders). In one table 4,000 orders rest, which
//! fit into the second-level cache; in the other 400,000, as in a unit at noon, which do not. Three of four
//! messages about an order concern one of the last 4,000, the fourth any: orders live for seconds or for
//! hours.
//!
//! `cargo bench -p tickwire-feed --bench pitch` prints the machine's nanoseconds per message, of wanted and
//! of filtered ones; the events are counted, so a decoder that drops some cannot be fast.

use std::hint::black_box;
use std::time::Instant;
use tickwire_feed::{ArbiterConfig, Line, PitchConfig, PitchDecoder, PitchFeed};
use tickwire_market::{EventKind, MarketEvent, Nanos};
use tickwire_runtime::alloc::{Allocator, populate_large_blocks};
use tickwire_testdata::Rng;
use tickwire_wire::layout::Pod;
use tickwire_wire::layout::{Alpha, Char, Scaled};
use tickwire_wire::pitch::{
    AddOrderShort, DeleteOrder, ModifyOrderShort, OrderExecuted, PacketBuilder, ReduceSizeShort,
};

/// The programs' allocator: tables on huge pages.
#[global_allocator]
static ALLOCATOR: Allocator = Allocator;

/// Packets that are timed together: shorter than a time slice of a machine that others use, too.
const BATCH: usize = 200;

fn main() {
    let is_bench = std::env::args().any(|arg| arg == "--bench");
    populate_large_blocks();
    let (messages, rounds) = if is_bench { (1_000_000, 5) } else { (4_000, 1) };
    for resting in if is_bench {
        [4_000, 400_000]
    } else {
        [1_000, 2_000]
    } {
        for a_packet in [1, 2, 10] {
            measure(resting, messages, a_packet, rounds, is_bench);
        }
    }
}

fn measure(resting: usize, messages: usize, a_packet: usize, rounds: usize, is_bench: bool) {
    let filling = resting.div_ceil(a_packet);
    let packets = generate(1, resting, filling + messages / a_packet, a_packet);
    let all = (packets.ends.len() - filling) * a_packet;
    for (name, symbols, expected) in [("wanted", None, all), ("filtered out", Some(Vec::new()), 0)] {
        let config = PitchConfig {
            symbols,
            ..PitchConfig::default()
        };
        let mut batches = Vec::new();
        for _ in 0..rounds {
            let mut feed = PitchFeed::new(ArbiterConfig::default(), PitchDecoder::new(config.clone()));
            let mut packets = black_box(&packets).iter();
            for packet in packets.by_ref().take(filling) {
                feed.on_packet(Nanos(1), Line::A, packet, &mut |e: &MarketEvent| _ = black_box(e));
            }
            let mut events = 0;
            for _ in 0..all.div_ceil(BATCH * a_packet) {
                let start = Instant::now();
                for packet in packets.by_ref().take(BATCH) {
                    feed.on_packet(Nanos(1), Line::A, packet, &mut |e: &MarketEvent| {
                        events +=
                            usize::from(!matches!(e.kind, EventKind::Definition | EventKind::Recovered));
                    });
                }
                batches.push(start.elapsed().as_nanos() as f64 / (BATCH * a_packet) as f64);
            }
            assert_eq!(events, expected, "seed 1, {name}");
        }
        if is_bench {
            // The last of a round may be short.
            batches.sort_by(f64::total_cmp);
            let at = |share: f64| batches[(batches.len() as f64 * share) as usize];
            println!(
                "pitch, {resting} orders rest, {a_packet} a packet, {name}: p10 {:.1}, p50 {:.1}, p90 {:.1} ns per message",
                at(0.1),
                at(0.5),
                at(0.9)
            );
        }
    }
}

/// Packets one behind the other, as a receive ring has them.
struct Packets {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Packets {
    fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let mut start = 0;
        self.ends.iter().map(move |&end| {
            let packet = &self.bytes[start..end];
            start = end;
            packet
        })
    }
}

/// At first adds until so many orders rest; from then on about as many rest at any time.
fn generate(seed: u64, orders: usize, packets: usize, a_packet: usize) -> Packets {
    let mut rng = Rng::new(seed);
    let mut resting: Vec<u64> = Vec::new();
    let mut next_id = 0x0B1D_568F_775B_4005;
    let mut made = 0;
    let mut message = || -> Vec<u8> {
        let recent = if rng.chance(3, 4) { 4_000 } else { resting.len() };
        let at = resting
            .len()
            .saturating_sub(1 + rng.below(recent.clamp(1, resting.len().max(1)) as u64) as usize);
        made += 1;
        let kind = if made <= orders { 0 } else { 1 + rng.below(12) };
        match kind {
            1..=3 if resting.len() > orders => DeleteOrder {
                order_id: resting.swap_remove(at).into(),
                ..DeleteOrder::BLANK_MESSAGE
            }
            .as_bytes()
            .to_vec(),
            7 => OrderExecuted {
                order_id: resting[at].into(),
                executed_qty: 1.into(),
                ..OrderExecuted::BLANK_MESSAGE
            }
            .as_bytes()
            .to_vec(),
            8 => ReduceSizeShort {
                order_id: resting[at].into(),
                cancelled_qty: 1.into(),
                ..ReduceSizeShort::BLANK_MESSAGE
            }
            .as_bytes()
            .to_vec(),
            9..=12 => ModifyOrderShort {
                order_id: resting[at].into(),
                qty: 60_000.into(),
                price: Scaled((1000 + rng.below(100) as u16).into()),
                ..ModifyOrderShort::BLANK_MESSAGE
            }
            .as_bytes()
            .to_vec(),
            _ => {
                next_id += 1 + rng.below(50);
                resting.push(next_id);
                AddOrderShort {
                    order_id: next_id.into(),
                    side: Char(b'B'),
                    qty: 60_000.into(),
                    symbol: Alpha::new(format!("SYM{}", rng.below(64)).as_bytes()).expect("five letters"),
                    price: Scaled(1000.into()),
                    ..AddOrderShort::BLANK_MESSAGE
                }
                .as_bytes()
                .to_vec()
            }
        }
    };
    let mut all = Packets {
        bytes: Vec::new(),
        ends: Vec::new(),
    };
    for n in 0..packets {
        let mut bytes = [0; 512];
        let mut builder = PacketBuilder::new(&mut bytes, 1, (n * a_packet + 1) as u32);
        (0..a_packet).for_each(|_| assert!(builder.push(&message())));
        let length = builder.finish();
        all.bytes.extend_from_slice(&bytes[..length]);
        all.ends.push(all.bytes.len());
    }
    all
}
