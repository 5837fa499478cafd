//! PITCH from packet to event: orders of 64 instruments added, executed, reduced, modified and deleted, one,
//! two and ten messages a packet. A regression here means that the table of orders is searched more often
//! than a message needs, or grows out of the cache.
//!
//! `cargo bench -p tickwire-feed --bench pitch` prints the machine's nanoseconds per message, of wanted and
//! of filtered ones; the events are counted, so a decoder that drops some cannot be fast.

use std::hint::black_box;
use std::time::Instant;
use tickwire_feed::{ArbiterConfig, Line, PitchConfig, PitchDecoder, PitchFeed};
use tickwire_market::{EventKind, MarketEvent, Nanos};
use tickwire_testdata::Rng;
use tickwire_wire::layout::Pod;
use tickwire_wire::layout::{Alpha, Char, Scaled};
use tickwire_wire::pitch::{
    AddOrderShort, DeleteOrder, ModifyOrderShort, OrderExecuted, PacketBuilder, ReduceSizeShort,
};

fn main() {
    let is_bench = std::env::args().any(|arg| arg == "--bench");
    let (messages, rounds) = if is_bench { (1_000_000, 10) } else { (4_000, 1) };
    for a_packet in [1, 2, 10] {
        measure(messages, a_packet, rounds, is_bench);
    }
}

fn measure(messages: usize, a_packet: usize, rounds: usize, is_bench: bool) {
    let packets = generate(1, messages / a_packet, a_packet);
    let all = packets.ends.len() * a_packet;
    for (name, symbols, expected) in [("wanted", None, all), ("filtered out", Some(Vec::new()), 0)] {
        let config = PitchConfig {
            symbols,
            orders_max: 1 << 14,
            ..PitchConfig::default()
        };
        let mut best_ns = f64::MAX;
        for _ in 0..rounds {
            let mut feed = PitchFeed::new(ArbiterConfig::default(), PitchDecoder::new(config.clone()));
            let (mut events, start) = (0, Instant::now());
            for packet in black_box(&packets).iter() {
                feed.on_packet(Nanos(1), Line::A, packet, &mut |e: &MarketEvent| {
                    events += usize::from(!matches!(e.kind, EventKind::Definition | EventKind::Recovered));
                });
            }
            best_ns = best_ns.min(start.elapsed().as_nanos() as f64 / all as f64);
            assert_eq!(events, expected, "seed 1, {name}");
        }
        if is_bench {
            println!("pitch, {name}: {best_ns:.1} ns per message ({a_packet} a packet, best of {rounds})");
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

/// About four thousand orders rest at any time; one in two messages adds or deletes one.
fn generate(seed: u64, packets: usize, a_packet: usize) -> Packets {
    let mut rng = Rng::new(seed);
    let mut resting: Vec<u64> = Vec::new();
    let mut next_id = 0x0B1D_568F_775B_4005;
    let mut message = || -> Vec<u8> {
        let at = rng.below(resting.len().max(1) as u64) as usize;
        match rng.below(12) {
            0..=2 if resting.len() > 4000 => DeleteOrder {
                order_id: resting.swap_remove(at).into(),
                ..DeleteOrder::BLANK_MESSAGE
            }
            .as_bytes()
            .to_vec(),
            6 if resting.len() > 1000 => OrderExecuted {
                order_id: resting[at].into(),
                executed_qty: 1.into(),
                ..OrderExecuted::BLANK_MESSAGE
            }
            .as_bytes()
            .to_vec(),
            7 if resting.len() > 1000 => ReduceSizeShort {
                order_id: resting[at].into(),
                cancelled_qty: 1.into(),
                ..ReduceSizeShort::BLANK_MESSAGE
            }
            .as_bytes()
            .to_vec(),
            8..=11 if resting.len() > 1000 => ModifyOrderShort {
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
