//! MDP 3.0 from packet to event: price levels changing in ten-deep books of 64 instruments, two entries a
//! packet. A regression here means that entries are copied more than once, or that rows are walked more often
//! than they change.
//!
//! `cargo bench -p tickwire-feed --bench mdp3` prints the machine's nanoseconds per entry, of wanted and of
//! filtered ones; the events are counted, so a decoder that drops some cannot be fast. Few packets, many
//! rounds: the packets are in the cache, as those that come from the network card are, and a round is short
//! enough not to be interrupted.

use std::hint::black_box;
use std::time::Instant;
use tickwire_feed::{ArbiterConfig, FeedHandler, Line, Mdp3Config, Mdp3Decoder, Mdp3Feed};
use tickwire_market::{EventKind, MarketEvent, Nanos, Price};
use tickwire_testdata::Rng;
use tickwire_wire::mdp3::{
    Book, BookEntry, EntryType, EventRoot, PacketBuilder, Price9, UpdateAction, indicator,
};

/// What ships: large blocks on huge pages.
#[global_allocator]
static ALLOCATOR: tickwire_runtime::alloc::Allocator = tickwire_runtime::alloc::Allocator;

const INSTRUMENTS: u64 = 64;
const ENTRIES_A_PACKET: usize = 2;

fn main() {
    let is_bench = std::env::args().any(|arg| arg == "--bench");
    let (packets, rounds) = if is_bench { (2_000, 3_000) } else { (2_000, 1) };
    let packets = generate(1, packets);
    // Nothing that is not used: what is written before a round drives the packets out of the cache.
    let arbiter = ArbiterConfig {
        buffer_packets: 4,
        ..ArbiterConfig::default()
    };
    let small = Mdp3Config {
        instruments_max: 2 * INSTRUMENTS as u32,
        ..Mdp3Config::default()
    };
    for (name, config, expected) in [
        ("wanted", small.clone(), packets.len() * ENTRIES_A_PACKET),
        (
            "filtered out",
            Mdp3Config {
                symbols: Some(Vec::new()),
                ..small
            },
            0,
        ),
    ] {
        let mut best_ns = f64::MAX;
        for _ in 0..rounds {
            let mut feed: Mdp3Feed = FeedHandler::new(arbiter.clone(), Mdp3Decoder::new(config.clone()));
            let (mut levels, start) = (0, Instant::now());
            for packet in black_box(&packets) {
                feed.on_packet(Nanos(1), Line::A, packet, &mut |e: &MarketEvent| {
                    levels += usize::from(e.kind == EventKind::Level);
                });
            }
            let entries = (packets.len() * ENTRIES_A_PACKET) as f64;
            best_ns = best_ns.min(start.elapsed().as_nanos() as f64 / entries);
            assert_eq!(levels, expected, "seed 1, {name}");
        }
        if is_bench {
            println!(
                "mdp3, {name}: {best_ns:.1} ns per entry ({ENTRIES_A_PACKET} a packet, best of {rounds})"
            );
        }
    }
}

/// Books are filled to ten levels, then a level changes, or leaves and comes again.
fn generate(seed: u64, packets: usize) -> Vec<Vec<u8>> {
    let mut rng = Rng::new(seed);
    let mut filled = [0_u8; INSTRUMENTS as usize];
    let mut rpt_seq = [0_u32; INSTRUMENTS as usize];
    let mut packet = |seq: usize| {
        let instrument = rng.below(INSTRUMENTS) as usize;
        let mut entries = [BookEntry::BLANK; ENTRIES_A_PACKET];
        for entry in &mut entries {
            let (action, level) = match filled[instrument] {
                10 if rng.chance(1, 3) => (UpdateAction::Delete, 10),
                10 => (UpdateAction::Change, 1 + rng.below(10) as u8),
                n => (UpdateAction::New, n + 1),
            };
            match action {
                UpdateAction::Delete => filled[instrument] -= 1,
                UpdateAction::New => filled[instrument] += 1,
                _ => {}
            }
            rpt_seq[instrument] += 1;
            *entry = BookEntry {
                price: Some(Price9::of(Price::from_raw(
                    4_000_000_000_000 - i64::from(level) * 250_000_000,
                )))
                .into(),
                size: Some((rpt_seq[instrument] as i32).into()).into(), // never the same twice
                security_id: (500_000 + instrument as i32 * 37).into(),
                rpt_seq: rpt_seq[instrument].into(),
                orders: Some(3.into()).into(),
                level,
                action: action as u8,
                entry_type: EntryType::Bid.into(),
                ..BookEntry::BLANK
            };
        }
        let mut bytes = vec![0; 256];
        let mut builder = PacketBuilder::new(&mut bytes, seq as u32 + 1, 0);
        let root = EventRoot {
            indicator: indicator::END_OF_EVENT,
            ..EventRoot::BLANK
        };
        assert!(builder.push(|buffer| Book::encode(buffer, &root, entries, [])));
        let length = builder.finish();
        bytes.truncate(length);
        bytes.shrink_to_fit();
        bytes
    };
    (0..packets).map(&mut packet).collect()
}
