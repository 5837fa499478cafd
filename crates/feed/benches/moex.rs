//! The Moscow Exchange's order log from packet to event: orders of 64 instruments, in packets of one entry
//! and of many. A regression here means that an entry's fields are read more often than once, or that its
//! instrument is searched for longer than its name takes to compare.
//!
//! `cargo bench -p tickwire-feed --bench moex` prints the machine's nanoseconds per entry: of decoding alone,
//! of the whole way to events, of entries that nobody wants. Events are counted, so a decoder that drops some
//! cannot be fast. Where the recorded data is at hand, the exchange's own packets of 2017 follow.

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use tickwire_feed::{ArbiterConfig, Line, MoexConfig, MoexDecoder, MoexFeed, Start};
use tickwire_market::{EventKind, MarketEvent, Nanos, OrderId, Price, Side, Volume};
use tickwire_testdata::{Rng, if_recorded, unhex, workspace};
use tickwire_wire::fast::{Limits, Plan};
use tickwire_wire::moex::{self, Action, Encoder, MessageKind, OrderEntry, OrderKind};

/// What ships: large blocks on huge pages.
#[global_allocator]
static ALLOCATOR: tickwire_runtime::alloc::Allocator = tickwire_runtime::alloc::Allocator;

const INSTRUMENTS: u64 = 64;

fn main() {
    let is_bench = std::env::args().any(|arg| arg == "--bench");
    let (entries, rounds) = if is_bench { (200_000, 10) } else { (2_000, 1) };
    let ours = plan(&workspace().join("examples/moex-templates.xml"));
    for in_packet in [1, 4, 16] {
        let packets = generate(&ours, 1, entries / in_packet, in_packet);
        let label = format!("our templates, {in_packet} a packet");
        measure(&label, &ours, &packets, rounds, is_bench);
    }
    let recorded = if_recorded("captures/moex-asts/packets-2017.hex");
    let templates = if_recorded("specs/moex/templates-2017-03.xml");
    if let (Some(recorded), Some(templates)) = (recorded, templates) {
        let text = std::fs::read_to_string(recorded).expect("recorded packets are text");
        let exchange = plan(&templates);
        let packets = text.lines().map(unhex).filter(|p| p[5..7] == [0x1c, 0x9a]);
        // The longest run without a missing packet.
        let packets: Vec<_> = packets.collect();
        let runs = packets.chunk_by(|a, b| moex::preamble(a).map(|n| n + 1) == moex::preamble(b));
        let run = runs.max_by_key(|run| run.len()).unwrap_or_default();
        measure(
            &format!("{} recorded (3610 of 2017)", run.len()),
            &exchange,
            run,
            if is_bench { 300 } else { 1 },
            is_bench,
        );
    }
}

fn plan(path: &std::path::Path) -> Arc<Plan> {
    let xml = std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    Arc::new(Plan::parse(&xml).unwrap_or_else(|e| panic!("{}: {e}", path.display())))
}

/// Best over batches that are short enough to be undisturbed, per entry.
fn measure(label: &str, plan: &Arc<Plan>, packets: &[Vec<u8>], rounds: u32, print: bool) {
    const BATCH: usize = 400;
    let mut decoder = moex::Decoder::new(plan.clone(), Limits::default()).expect("every field is there");
    let (mut entries, mut best_ns) = (0, f64::MAX);
    for _ in 0..rounds {
        entries = 0;
        for batch in black_box(packets).chunks(BATCH) {
            let (start, before) = (Instant::now(), entries);
            for packet in batch {
                let message = decoder.packet(packet).expect("what was written can be read");
                let mut orders = message.orders();
                while orders.next_unread().is_some() {
                    entries += 1;
                }
            }
            best_ns = best_ns.min(start.elapsed().as_nanos() as f64 / f64::from(entries - before));
        }
    }
    if print {
        println!("moex, {label}, decoding alone: {best_ns:.1} ns per entry (best of {rounds})");
    }
    let in_packet = f64::from(entries) / packets.len() as f64;
    for (what, symbols, expected) in [("wanted", None, entries), ("filtered out", Some(Vec::new()), 0)] {
        let mut best_ns = f64::MAX;
        for _ in 0..rounds {
            let config = MoexConfig {
                symbols: symbols.clone(),
                ..MoexConfig::new(plan.clone())
            };
            let arbiter = ArbiterConfig {
                start: Start::Here,
                request_attempts: 0,
                ..ArbiterConfig::default()
            };
            let mut feed = MoexFeed::new(arbiter, MoexDecoder::new(config).expect("every field is there"));
            let mut orders = 0;
            for batch in black_box(packets).chunks(BATCH) {
                let start = Instant::now();
                for packet in batch {
                    feed.on_packet(Nanos(1), Line::A, packet, &mut |e: &MarketEvent| {
                        let of_order =
                            matches!(e.kind, EventKind::Add | EventKind::Modify | EventKind::Delete);
                        orders += u32::from(of_order);
                    });
                }
                let batch_entries = batch.len() as f64 * in_packet;
                best_ns = best_ns.min(start.elapsed().as_nanos() as f64 / batch_entries);
            }
            assert_eq!(orders, expected, "seed 1, {label}, {what}");
        }
        if print {
            println!("moex, {label}, {what}: {best_ns:.1} ns per entry (best of {rounds})");
        }
    }
}

/// Orders come, lose a part, and go.
fn generate(plan: &Arc<Plan>, seed: u64, packets: usize, in_packet: usize) -> Vec<Vec<u8>> {
    let mut encoder = Encoder::new(plan.clone(), Limits::default()).expect("every field is there");
    let template = encoder.find(MessageKind::OrderLog, "").expect("there is one");
    let symbols: Vec<String> = (0..INSTRUMENTS).map(|n| format!("SYM{n:02}")).collect();
    let (mut rng, mut rpt_seqs) = (Rng::new(seed), [0; INSTRUMENTS as usize]);
    let sent = Nanos(1_767_596_400 * Nanos::SECOND);
    let mut packet = |seq: usize| {
        let entries: Vec<_> = (0..in_packet)
            .map(|at| {
                let instrument = rng.below(INSTRUMENTS) as usize;
                rpt_seqs[instrument] += 1;
                let action = [Action::New, Action::Change, Action::Delete][rng.below(3) as usize];
                OrderEntry {
                    action,
                    kind: OrderKind::Order(if rng.chance(1, 2) { Side::Bid } else { Side::Ask }),
                    order_id: OrderId(10_000_000 + rng.below(1_000_000)),
                    symbol: symbols[instrument].as_bytes(),
                    board: b"TQBR",
                    rpt_seq: rpt_seqs[instrument],
                    price: Some(Price::from_raw((20_000 + rng.below(1000) as i64) * 10_000_000)),
                    qty: (action != Action::Delete).then(|| Volume(1 + rng.below(500))),
                    date: None,
                    time: Some(Nanos(
                        36_000 * Nanos::SECOND + (seq * in_packet + at) as u64 * 37_000,
                    )),
                    order_status: if action == Action::Delete { b"" } else { b"O" },
                    session: b"N",
                }
            })
            .collect();
        let mut bytes = vec![0; 4096];
        let length = encoder.order_log(template, seq as u32 + 1, sent, &entries, &mut bytes);
        bytes.truncate(length.expect("it fits"));
        bytes
    };
    (0..packets).map(&mut packet).collect()
}
