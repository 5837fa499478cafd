//! What sequencing and arbitration cost over decoding. A regression here means that a packet in sequence no
//! longer takes the short way, or that the decoder is no longer inlined into it.
//!
//! ns a message, fastest of 4000 rounds, 2 cores of an AVX2 machine (Zen 3) under load, three runs each; runs
//! on an idle machine are not measured. Before: events returned by value, repeats taken through the whole
//! arbiter.
//!
//! | | before | now |
//! |---|---|---|
//! | decode to event | 22.0 | 12.9 to 13.3 |
//! | handler, 1 message a packet, one line | 29.0 to 29.2 | 19.7 to 20.0 |
//! | handler, 1 message a packet, both lines | 56.2 to 56.3 | 28.5 to 35.2 |
//! | handler, 10 messages a packet, one line | 26.8 | 18.9 to 23.9 |
//!
//! The gain is the decoder's and the repeats': what the handler adds to a packet in sequence is 7 ns before
//! and after.
//!
//! `cargo bench -p tickwire-feed` (tiny under `cargo test`; `-- filtered` for those messages alone). One
//! core, warm, messages in cache; the mix is that of a real day without its rare types; one message a packet,
//! and ten.

use std::hint::black_box;
use std::time::Instant;
use tickwire_feed::{ArbiterConfig, Context, Decoder, FeedHandler, ItchConfig, ItchDecoder, ItchFeed, Line};
use tickwire_market::{
    Counters, EventFlags, EventSink, InstrumentId, MarketEvent, Nanos, SeqNo, Symbol, Upcoming,
};
use tickwire_testdata::Rng;
use tickwire_wire::itch50::{AddOrder, OrderDelete, OrderExecuted, OrderReplace};
use tickwire_wire::layout::Pod;
use tickwire_wire::layout::{Char, Price4};
use tickwire_wire::moldudp64::PacketBuilder;

/// What ships: large blocks on huge pages.
#[global_allocator]
static ALLOCATOR: tickwire_runtime::alloc::Allocator = tickwire_runtime::alloc::Allocator;

const SESSION: [u8; 10] = *b"BENCH     ";
const INSTRUMENTS: u32 = 512;

/// Adds up what a book would read.
#[derive(Default)]
struct Sum {
    sum: u64,
    events: u64,
}

impl EventSink for Sum {
    #[inline]
    fn on_event(&mut self, event: &MarketEvent) {
        // One opaque read keeps the event whole, as a book that stores it would.
        let event = black_box(event);
        self.events += 1;
        self.sum = self
            .sum
            .wrapping_mul(31)
            .wrapping_add(event.order_id.0 ^ event.qty.0 ^ event.seq.0);
    }
    #[inline]
    fn upcoming(&mut self, next: Upcoming) {
        black_box(next);
    }

    #[inline]
    fn arriving(&mut self, next: Upcoming) {
        black_box(next);
    }
}

fn messages(count: usize) -> Vec<Vec<u8>> {
    let mut rng = Rng::new(1);
    let mut next = || {
        let (locate, order) = (
            1 + rng.below(u64::from(INSTRUMENTS) - 1) as u16,
            rng.below(1 << 30),
        );
        match rng.below(100) {
            0..=44 => AddOrder {
                order_ref: order.into(),
                side: Char(b"BS"[(order & 1) as usize]),
                shares: 100.into(),
                price: Price4::new(1_000_000),
                ..AddOrder::at(locate, 1)
            }
            .as_bytes()
            .to_vec(),
            45..=87 => OrderDelete {
                order_ref: order.into(),
                ..OrderDelete::at(locate, 1)
            }
            .as_bytes()
            .to_vec(),
            88..=96 => OrderReplace {
                original_order_ref: order.into(),
                new_order_ref: (order + 1).into(),
                shares: 100.into(),
                price: Price4::new(1_000_000),
                ..OrderReplace::at(locate, 1)
            }
            .as_bytes()
            .to_vec(),
            _ => OrderExecuted {
                order_ref: order.into(),
                executed_shares: 1.into(),
                ..OrderExecuted::at(locate, 1)
            }
            .as_bytes()
            .to_vec(),
        }
    };
    (0..count).map(|_| next()).collect()
}

fn packets(messages: &[Vec<u8>], each: usize) -> Vec<Vec<u8>> {
    let mut packets = Vec::new();
    for (i, group) in messages.chunks(each).enumerate() {
        let mut bytes = [0; 1500];
        let mut packet = PacketBuilder::new(&mut bytes, SESSION, SeqNo((i * each) as u64 + 1));
        assert!(group.iter().all(|m| packet.push(m)));
        let len = packet.finish();
        packets.push(bytes[..len].to_vec());
    }
    packets
}

/// The fastest of `rounds`, in ns a message, and the sum it must give. `prepare` is not in it.
fn measure<T>(
    rounds: usize,
    count: usize,
    mut state: T,
    mut prepare: impl FnMut(&mut T, usize),
    mut run: impl FnMut(&mut T) -> Sum,
) -> (f64, u64) {
    let mut best = f64::MAX;
    let mut sum = None;
    for round in 0..rounds {
        prepare(&mut state, round);
        let start = Instant::now();
        let got = run(&mut state);
        best = best.min(start.elapsed().as_nanos() as f64 / count as f64);
        assert_eq!(got.events, count as u64);
        let first = *sum.get_or_insert(got.sum);
        assert_eq!(first, got.sum, "the same input gives the same answer");
    }
    (best, sum.unwrap_or_default())
}

fn context(i: usize) -> Context {
    Context {
        seq: SeqNo(i as u64 + 1),
        received: Nanos(1),
        flags: EventFlags::LAST,
    }
}

fn decoder(symbols: Option<Vec<Symbol>>) -> ItchDecoder {
    ItchDecoder::new(ItchConfig {
        instruments_max: INSTRUMENTS,
        symbols,
        ..ItchConfig::default()
    })
}

/// A new session each round: its first packet takes the long way, all others the short one.
fn next_session(packets: &mut [Vec<u8>], round: usize) {
    for packet in packets {
        packet[..8].copy_from_slice(&(round as u64).to_be_bytes());
    }
}

fn main() {
    let tiny = !std::env::args().any(|arg| arg == "--bench");
    let (count, rounds) = if tiny { (1_000, 2) } else { (2_000, 4_000) };
    let messages = messages(count);
    if std::env::args().any(|arg| arg == "filtered") {
        return filtered(&messages, count, rounds);
    }

    let (ns, expected) = measure(
        rounds,
        count,
        decoder(None),
        |_, _| {},
        |decoder| {
            let (mut sum, mut counters) = (Sum::default(), Counters::default());
            for (i, message) in messages.iter().enumerate() {
                decoder.decode(context(i), message, &mut counters, &mut sum);
            }
            sum
        },
    );
    println!("decode to event                       {ns:7.2} ns/message");

    for (each, lines) in [(1, 1), (1, 2), (10, 1), (10, 2)] {
        let config = ArbiterConfig {
            session_quiet_ns: 0,
            ..ArbiterConfig::default()
        };
        let feed: ItchFeed = FeedHandler::new(config, decoder(None));
        let state = (feed, packets(&messages, each));
        let prepare = |state: &mut (ItchFeed, Vec<Vec<u8>>), round| next_session(&mut state.1, round);
        let (ns, sum) = measure(rounds, count, state, prepare, |(feed, packets)| {
            let mut sum = Sum::default();
            let mut live = |event: &MarketEvent| {
                if event.instrument != InstrumentId::WHOLE_FEED {
                    sum.on_event(event);
                }
            };
            for packet in packets.iter() {
                feed.on_packet(Nanos(1), Line::A, packet, &mut live);
                if lines == 2 {
                    feed.on_packet(Nanos(1), Line::B, packet, &mut live);
                }
            }
            assert_eq!(feed.next_seq(), SeqNo(count as u64 + 1));
            sum
        });
        assert_eq!(sum, expected, "the handler says what the decoder says");
        println!("feed handler, {each:2} a packet, {lines} line(s)  {ns:7.2} ns/message");
    }

    filtered(&messages, count, rounds);
}

/// What a message costs that nobody wants.
fn filtered(messages: &[Vec<u8>], count: usize, rounds: usize) {
    let (ns, _) = measure(
        rounds,
        count,
        decoder(Some(Vec::new())),
        |_, _| {},
        |decoder| {
            let (mut sum, mut counters) = (Sum::default(), Counters::default());
            for (i, message) in messages.iter().enumerate() {
                decoder.decode(context(i), message, &mut counters, &mut sum);
            }
            assert_eq!(sum.events, 0);
            Sum {
                events: count as u64,
                sum: 0,
            }
        },
    );
    println!("filtered out, decoder alone           {ns:7.2} ns/message");

    for each in [1, 18] {
        let config = ArbiterConfig {
            session_quiet_ns: 0,
            ..ArbiterConfig::default()
        };
        let feed: ItchFeed = FeedHandler::new(config, decoder(Some(Vec::new())));
        let state = (feed, packets(messages, each));
        let prepare = |state: &mut (ItchFeed, Vec<Vec<u8>>), round| next_session(&mut state.1, round);
        let (ns, _) = measure(rounds, count, state, prepare, |(feed, packets)| {
            let mut none = |event: &MarketEvent| assert_eq!(event.instrument, InstrumentId::WHOLE_FEED);
            for packet in packets.iter() {
                feed.on_packet(Nanos(1), Line::A, packet, &mut none);
            }
            Sum {
                events: feed.next_seq().0 - 1,
                sum: 0,
            }
        });
        println!("filtered out, {each:2} a packet, 1 line     {ns:7.2} ns/message");
    }
}
