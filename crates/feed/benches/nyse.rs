//! XDP and OpenBook Ultra from packet to event: changes of the books of 64 instruments, two messages a
//! packet, in a working set that the cache holds; the layouts alone for comparison. A regression here means
//! that a message is walked, or an instrument looked up, more often than it needs.
//!
//! `cargo bench -p tickwire-feed --bench nyse` prints the machine's nanoseconds per message; the events are
//! counted, so a decoder that drops some cannot be fast.

use std::hint::black_box;
use std::time::Instant;
use tickwire_feed::{
    ArbiterConfig, Decoder, FeedHandler, Framing, Line, OpenBook, OpenBookConfig, OpenBookDecoder, Xdp,
    XdpConfig, XdpDecoder,
};
use tickwire_market::{EventKind, MarketEvent, Nanos, Symbol};
use tickwire_testdata::Rng;
use tickwire_wire::layout::Char;
use tickwire_wire::layout::Pod;
use tickwire_wire::openbook::{self, DeltaHead, DeltaPoint, FullHead};
use tickwire_wire::xdp::{self, DeliveryFlag};

/// What ships: large blocks on huge pages.
#[global_allocator]
static ALLOCATOR: tickwire_runtime::alloc::Allocator = tickwire_runtime::alloc::Allocator;

const MESSAGES_A_PACKET: usize = 2;
const INSTRUMENTS: u64 = 64;

struct Bench {
    rounds: u32,
    prints: bool,
}

impl Bench {
    /// The best of the rounds, in nanoseconds per message; `run` gives how many events or messages came out.
    fn measure(&self, name: &str, messages: usize, expected: usize, mut run: impl FnMut() -> (usize, u64)) {
        let mut best_ns = f64::MAX;
        for _ in 0..self.rounds {
            let (count, ns) = run();
            assert_eq!(count, expected, "seed 1, {name}");
            best_ns = best_ns.min(ns as f64 / messages as f64);
        }
        if self.prints {
            println!(
                "{name}: {best_ns:.1} ns per message ({MESSAGES_A_PACKET} a packet, best of {})",
                self.rounds
            );
        }
    }

    fn feed<F: Framing, D: Decoder>(
        &self,
        name: &str,
        start: &[Vec<u8>],
        packets: &[Vec<u8>],
        expected: usize,
        decoder: impl Fn() -> D,
    ) {
        self.measure(name, packets.len() * MESSAGES_A_PACKET, expected, || {
            let mut feed = FeedHandler::<F, D>::new(ArbiterConfig::default(), decoder());
            for packet in start {
                feed.on_packet(Nanos(1), Line::A, packet, &mut |_: &MarketEvent| {});
            }
            let (mut events, begun) = (0, Instant::now());
            for packet in black_box(packets) {
                feed.on_packet(Nanos(1), Line::A, packet, &mut |e: &MarketEvent| {
                    events += usize::from(e.kind != EventKind::Gap);
                });
            }
            (events, begun.elapsed().as_nanos() as u64)
        });
    }
}

fn main() {
    let prints = std::env::args().any(|arg| arg == "--bench");
    let (packets, rounds) = if prints { (8_000, 200) } else { (2_000, 1) };
    let bench = Bench { rounds, prints };
    let messages = packets * MESSAGES_A_PACKET;
    let nobody = || Some(Vec::<Symbol>::new());

    let (start, changes) = xdp_packets(1, packets);
    bench.measure("xdp, layouts alone", messages, messages, || {
        let (mut count, begun) = (0, Instant::now());
        for packet in black_box(&changes) {
            for message in xdp::parse_packet(packet).expect("made here").messages {
                count += usize::from(black_box(xdp::parse(message)).is_ok());
            }
        }
        (count, begun.elapsed().as_nanos() as u64)
    });
    for (name, symbols, expected) in [
        ("xdp, wanted", None, messages),
        ("xdp, filtered out", nobody(), 0),
    ] {
        bench.feed::<Xdp, XdpDecoder>(name, &start, &changes, expected, || {
            XdpDecoder::new(XdpConfig {
                symbols: symbols.clone(),
                instruments_max: 1 << 14,
                ..XdpConfig::default()
            })
        });
    }

    let (start, changes) = openbook_packets(1, packets);
    bench.measure("openbook, layouts alone", messages, messages, || {
        let (mut count, begun) = (0, Instant::now());
        for packet in black_box(&changes) {
            let packet = openbook::parse_packet(packet).expect("made here");
            let kind = packet.kind();
            for message in packet.messages {
                count += usize::from(black_box(openbook::parse(kind, message)).is_ok());
            }
        }
        (count, begun.elapsed().as_nanos() as u64)
    });
    for (name, symbols, expected) in [
        ("openbook, wanted", None, messages),
        ("openbook, filtered out", nobody(), 0),
    ] {
        bench.feed::<OpenBook, OpenBookDecoder>(name, &start, &changes, expected, || {
            OpenBookDecoder::new(OpenBookConfig {
                symbols: symbols.clone(),
                instruments_max: 1 << 14,
                ..OpenBookConfig::default()
            })
        });
    }
}

fn xdp_packet(seq: u32, messages: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = vec![0; xdp::PACKET_SIZE_MAX];
    let mut packet = xdp::PacketBuilder::new(&mut bytes, DeliveryFlag::Original, seq, Nanos(1));
    messages.iter().for_each(|m| assert!(packet.push(m)));
    let length = packet.finish();
    bytes.truncate(length);
    bytes.shrink_to_fit();
    bytes
}

/// Mappings, then as many adds as deletions, executions, modifications and replacements in the shares of a
/// trading day.
fn xdp_packets(seed: u64, packets: usize) -> (Vec<Vec<u8>>, Vec<Vec<u8>>) {
    let mut rng = Rng::new(seed);
    let mut seq = 1;
    let mut start = Vec::new();
    for index in 1..=INSTRUMENTS as u32 {
        let mapping = xdp::SymbolIndexMapping {
            symbol_index: (index * 100).into(),
            symbol: xdp::nul_padded(format!("SYM{index}").as_bytes()).expect("five letters"),
            price_scale_code: 6,
            ..xdp::SymbolIndexMapping::NEW
        };
        start.push(xdp_packet(seq, &[mapping.as_bytes().to_vec()]));
        seq += 1;
    }
    let mut message = || -> Vec<u8> {
        let symbol_index = (100 * (1 + rng.below(INSTRUMENTS) as u32)).into();
        let order_id = rng.below(1 << 40).into();
        let price = (10_000_000 + rng.below(1000) as i32 * 10_000).into();
        match rng.below(100) {
            0..=44 => xdp::AddOrder {
                symbol_index,
                order_id,
                price,
                volume: 100.into(),
                side: Char(b'B'),
                ..xdp::AddOrder::NEW
            }
            .as_bytes()
            .to_vec(),
            45..=84 => xdp::DeleteOrder {
                symbol_index,
                order_id,
                ..xdp::DeleteOrder::NEW
            }
            .as_bytes()
            .to_vec(),
            85..=90 => xdp::OrderExecution {
                symbol_index,
                order_id,
                price,
                volume: 1.into(),
                ..xdp::OrderExecution::NEW
            }
            .as_bytes()
            .to_vec(),
            91..=95 => xdp::ReplaceOrder {
                symbol_index,
                order_id,
                price,
                volume: 1.into(),
                ..xdp::ReplaceOrder::NEW
            }
            .as_bytes()
            .to_vec(),
            _ => xdp::ModifyOrder {
                symbol_index,
                order_id,
                price,
                volume: 1.into(),
                side: Char(b'S'),
                ..xdp::ModifyOrder::NEW
            }
            .as_bytes()
            .to_vec(),
        }
    };
    let changes = (0..packets).map(|_| {
        let messages: Vec<Vec<u8>> = (0..MESSAGES_A_PACKET).map(|_| message()).collect();
        let packet = xdp_packet(seq, &messages);
        seq += MESSAGES_A_PACKET as u32;
        packet
    });
    let changes = changes.collect();
    (start, changes)
}

fn openbook_packet(kind: u16, seq: u32, messages: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = vec![0; openbook::PACKET_SIZE_MAX];
    let header = openbook::PacketHeader {
        msg_type: kind.into(),
        seq_num: seq.into(),
        retrans_flag: 1,
        ..openbook::PacketHeader::BLANK
    };
    let mut packet = openbook::PacketBuilder::new(&mut bytes, header);
    messages.iter().for_each(|m| assert!(packet.push(m)));
    let length = packet.finish();
    bytes.truncate(length);
    bytes.shrink_to_fit();
    bytes
}

/// Books, then delta updates of one price point each.
fn openbook_packets(seed: u64, packets: usize) -> (Vec<Vec<u8>>, Vec<Vec<u8>>) {
    let mut rng = Rng::new(seed);
    let mut seq = 0;
    let mut numbers = [1_u32; INSTRUMENTS as usize + 1];
    let mut start = Vec::new();
    for index in 1..=INSTRUMENTS as u32 {
        let head = FullHead {
            symbol_index: (index * 100).into(),
            symbol_seq_num: 1.into(),
            symbol: xdp::nul_padded(format!("SYM{index}").as_bytes()).expect("five letters"),
            trading_status: Char(b'O'),
            ..FullHead::BLANK
        };
        let mut bytes = vec![0; FullHead::SIZE];
        openbook::encode_full(&mut bytes, &head, &[]);
        seq += 1;
        start.push(openbook_packet(FullHead::KIND, seq, &[bytes]));
    }
    let mut message = || -> Vec<u8> {
        let index = 1 + rng.below(INSTRUMENTS) as usize;
        numbers[index] += 1;
        let head = DeltaHead {
            symbol_index: (index as u32 * 100).into(),
            source_time: 34_200_000.into(),
            source_seq_num: numbers[index].into(),
            price_scale_code: 4,
            trading_status: Char(b'O'),
            ..DeltaHead::BLANK
        };
        let point = DeltaPoint {
            price_numerator: (100_000 + rng.below(1000) as i32 * 100).into(),
            volume: 100.into(),
            num_orders: 1.into(),
            side: Char(b'B'),
            ..DeltaPoint::BLANK
        };
        let mut bytes = vec![0; DeltaHead::SIZE + DeltaPoint::SIZE];
        openbook::encode_delta(&mut bytes, &head, &[point]);
        bytes
    };
    let changes = (0..packets).map(|_| {
        let messages: Vec<Vec<u8>> = (0..MESSAGES_A_PACKET).map(|_| message()).collect();
        seq += 1;
        openbook_packet(DeltaHead::KIND, seq, &messages)
    });
    let changes = changes.collect();
    (start, changes)
}
