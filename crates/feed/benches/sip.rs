//! CQS and UQDF from packet to event: long quotes of 2,000 instruments, six messages a packet, every third
//! with the national best behind it; and UQDF's long and short quotes with four odd lots each, as they are
//! since 2026. A regression here means that a symbol is looked up more than once, or a
//! block walked more often than twice.
//!
//! The first packets name every instrument; the rest, which fit into the second-level cache, are measured.
//!
//! `cargo bench -p tickwire-feed --bench sip` prints the machine's nanoseconds per message, of wanted and of
//! filtered ones; the events are counted, so a decoder that drops some cannot be fast.

use std::hint::black_box;
use std::time::Instant;
use tickwire_feed::{
    ArbiterConfig, Content, Context, Cqs, CqsDecoder, Decoder, FeedHandler, Framing, Line, MoldUdp64,
    SipConfig, UqdfDecoder,
};
use tickwire_market::{Counters, EventFlags, EventKind, MarketEvent, Nanos, SeqNo};
use tickwire_testdata::Rng;
use tickwire_wire::cqs::{self, BestLong, BlockBuilder, BlockHeader, UnixTime};
use tickwire_wire::layout::Pod;
use tickwire_wire::layout::{Alpha, Char, Scaled};
use tickwire_wire::moldudp64::PacketBuilder;
use tickwire_wire::uqdf::{self, NbboLong};

/// What ships: large blocks on huge pages.
#[global_allocator]
static ALLOCATOR: tickwire_runtime::alloc::Allocator = tickwire_runtime::alloc::Allocator;

const INSTRUMENTS: u64 = 2_000;
const A_PACKET: usize = 6;
/// Packets that name all instruments.
const NAMING: usize = (INSTRUMENTS as usize).div_ceil(A_PACKET);

fn main() {
    let is_bench = std::env::args().any(|arg| arg == "--bench");
    let (packets, rounds) = if is_bench {
        (NAMING + 600, 1_000)
    } else {
        (NAMING + 100, 1)
    };
    let cqs = generate(packets, cqs_packet);
    measure::<Cqs, _>("cqs", &cqs, rounds, is_bench, CqsDecoder::new);
    let uqdf = generate(packets, uqdf_packet);
    measure::<MoldUdp64, _>("uqdf", &uqdf, rounds, is_bench, UqdfDecoder::new);
    let combined = generate(packets, combined_packet);
    measure::<MoldUdp64, _>(
        "uqdf with odd lots",
        &combined,
        rounds,
        is_bench,
        UqdfDecoder::new,
    );
}

fn measure<F: Framing, D: Decoder>(
    name: &str,
    packets: &[Vec<u8>],
    rounds: usize,
    is_bench: bool,
    decoder: fn(&SipConfig) -> D,
) {
    let (warm, measured) = packets.split_at(NAMING);
    let messages = measured.len() * A_PACKET;
    let all = SipConfig {
        instruments_max: 4_096,
        symbols: None,
    };
    let nobody = SipConfig {
        symbols: Some(Vec::new()),
        ..all.clone()
    };
    for (what, config, expected) in [
        ("wanted", all, messages + messages / 3),
        ("filtered out", nobody, 0),
    ] {
        let alone_ns = decode::<F, _>(packets, rounds, expected, decoder(&config));
        let mut best_ns = f64::MAX;
        for _ in 0..rounds {
            let arbiter = ArbiterConfig {
                buffer_packets: 16,
                ..ArbiterConfig::default()
            };
            let mut feed: FeedHandler<F, D> = FeedHandler::new(arbiter, decoder(&config));
            for packet in warm {
                feed.on_packet(Nanos(1), Line::A, packet, &mut |e: &MarketEvent| _ = black_box(e));
            }
            // In the cache, as what a network card has just written.
            black_box(measured.iter().flatten().fold(0_u8, |sum, b| sum ^ b));
            let (mut quotes, start) = (0, Instant::now());
            for packet in black_box(measured) {
                feed.on_packet(Nanos(1), Line::A, packet, &mut |e: &MarketEvent| {
                    quotes += usize::from(black_box(e).kind == EventKind::Quote);
                });
            }
            best_ns = best_ns.min(start.elapsed().as_nanos() as f64 / messages as f64);
            assert_eq!(quotes, expected, "{name}, {what}");
        }
        if is_bench {
            println!(
                "{name}, {what}: {alone_ns:.1} ns per message, {best_ns:.1} with lines and framing \
                 ({A_PACKET} a packet, best of {rounds})"
            );
        }
    }
}

/// Messages to events alone.
fn decode<F: Framing, D: Decoder>(
    packets: &[Vec<u8>],
    rounds: usize,
    expected: usize,
    mut decoder: D,
) -> f64 {
    let messages: Vec<&[u8]> = packets
        .iter()
        .flat_map(
            |packet| match F::parse(packet).expect("a packet of our own").content {
                Content::Messages { messages, .. } => messages.collect::<Vec<_>>(),
                _ => Vec::new(),
            },
        )
        .collect();
    let (warm, measured) = messages.split_at(NAMING * A_PACKET);
    let mut counters = Counters::default();
    let mut round = |messages: &[&[u8]]| {
        let (mut quotes, start) = (0, Instant::now());
        for (message, seq) in black_box(messages).iter().zip(1..) {
            let context = Context {
                seq: SeqNo(seq),
                received: Nanos(1),
                flags: EventFlags::NONE,
            };
            decoder.decode(context, message, &mut counters, &mut |e: &MarketEvent| {
                quotes += usize::from(black_box(e).kind == EventKind::Quote);
            });
        }
        (quotes, start.elapsed().as_nanos() as f64 / messages.len() as f64)
    };
    round(warm);
    let mut best_ns = f64::MAX;
    for _ in 0..rounds {
        let (quotes, ns) = round(measured);
        assert_eq!(quotes, expected);
        best_ns = best_ns.min(ns);
    }
    best_ns
}

fn generate(packets: usize, packet: fn(&mut [u8], u64, &mut Rng) -> usize) -> Vec<Vec<u8>> {
    let mut rng = Rng::new(1);
    let mut packet = |n: usize| {
        let mut buffer = vec![0; 1000];
        let size = packet(&mut buffer, (1 + n * A_PACKET) as u64, &mut rng);
        buffer.truncate(size);
        buffer
    };
    (0..packets).map(&mut packet).collect()
}

/// First every instrument in turn, then any.
fn symbol(rng: &mut Rng, number: u64) -> Alpha<11> {
    let n = if number <= INSTRUMENTS {
        number - 1
    } else {
        rng.below(INSTRUMENTS)
    };
    let letter = |n: u64| b'A' + (n % 26) as u8;
    Alpha::new(&[letter(n), letter(n / 26), letter(n / 676), b'X']).expect("four letters fit")
}

fn cqs_packet(buffer: &mut [u8], seq: u64, rng: &mut Rng) -> usize {
    let time = UnixTime::from_nanos(1_775_535_399_000_000_001);
    let mut block = BlockBuilder::new(buffer, BlockHeader::at(cqs::Feed::Quotes, seq as u32, time));
    for n in 0..A_PACKET {
        let best = BestLong {
            participant: Char(b'Z'),
            price: Scaled(29_460_000.into()),
            size: 300.into(),
            ..BestLong::BLANK
        };
        let quote = cqs::LongQuote {
            symbol: symbol(rng, seq + n as u64),
            condition: Char(b'R'),
            bid_price: Scaled((29_000_000 + rng.below(100) * 10_000).into()),
            bid_size: 100.into(),
            offer_price: Scaled(30_470_000.into()),
            offer_size: 300.into(),
            national_bbo: Char(if n % 3 == 0 { b'U' } else { b'A' }),
            ..cqs::LongQuote::at(b'N', time)
        };
        let parts = [quote.as_bytes(), best.as_bytes(), best.as_bytes()];
        let parts = if n % 3 == 0 { &parts[..] } else { &parts[..1] };
        assert!(block.push(parts), "six quotes fit");
    }
    block.finish()
}

/// Long and short quotes with four odd lots each.
fn combined_packet(buffer: &mut [u8], seq: u64, rng: &mut Rng) -> usize {
    let mut packet = PacketBuilder::new(buffer, *b"000000001Q", SeqNo(seq));
    for n in 0..A_PACKET {
        let at = 1_775_535_399_000_000_001;
        let symbol: Alpha<11> = symbol(rng, seq + n as u64);
        let (nbbo, condition) = (Char(if n % 3 == 0 { b'4' } else { b'0' }), Char(b'R'));
        let (bolo, odd_lot_type, odd_lot_count) = (Char(b'0'), Char(b'2'), 4.into());
        let mut message = match (rng.chance(1, 2), symbol.0.first_chunk()) {
            (true, Some(short)) => uqdf::CombinedShort {
                symbol: Alpha(*short),
                condition,
                bid_price: Scaled((2_900 + rng.below(100) as u16).into()),
                bid_size: 100.into(),
                ask_price: Scaled(3_047.into()),
                ask_size: 300.into(),
                nbbo,
                bolo,
                odd_lot_type,
                odd_lot_count,
                ..uqdf::CombinedShort::at(b'Q', at)
            }
            .as_bytes()
            .to_vec(),
            _ => uqdf::CombinedLong {
                symbol,
                condition,
                bid_price: Scaled((29_000_000 + rng.below(100) * 10_000).into()),
                bid_size: 100.into(),
                ask_price: Scaled(30_470_000.into()),
                ask_size: 300.into(),
                nbbo,
                bolo,
                odd_lot_type,
                odd_lot_count,
                ..uqdf::CombinedLong::at(b'Q', at)
            }
            .as_bytes()
            .to_vec(),
        };
        for _ in 0..4 {
            message.extend(uqdf::OddLotShort::BLANK.as_bytes());
        }
        assert!(packet.push(&message), "six quotes fit");
    }
    packet.finish()
}

fn uqdf_packet(buffer: &mut [u8], seq: u64, rng: &mut Rng) -> usize {
    let mut packet = PacketBuilder::new(buffer, *b"000000001Q", SeqNo(seq));
    for n in 0..A_PACKET {
        let best = NbboLong {
            bid_market_center: Char(b'Z'),
            bid_price: Scaled(29_460_000.into()),
            bid_size: 300.into(),
            ..NbboLong::BLANK
        };
        let quote = uqdf::QuoteLong {
            symbol: symbol(rng, seq + n as u64),
            condition: Char(b'R'),
            bid_price: Scaled((29_000_000 + rng.below(100) * 10_000).into()),
            bid_size: 100.into(),
            ask_price: Scaled(30_470_000.into()),
            ask_size: 300.into(),
            nbbo: Char(if n % 3 == 0 { b'3' } else { b'0' }),
            ..uqdf::QuoteLong::at(b'Q', 1_775_535_399_000_000_001)
        };
        let mut message = quote.as_bytes().to_vec();
        if n % 3 == 0 {
            message.extend(best.as_bytes());
        }
        assert!(packet.push(&message), "six quotes fit");
    }
    packet.finish()
}
