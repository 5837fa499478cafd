//! Decoding alone: MoldUDP64 packets of ITCH 5.0 in the message mix of a real day, every field of the book
//! messages read. A regression here means that `parse` copies, checks twice, or that its jump table broke up
//! into comparisons.
//!
//! `cargo bench -p tickwire-wire` prints the machine's nanoseconds per message; the sum of what was read is
//! compared with the sum known from generation, so a wrong answer cannot be fast.

use std::hint::black_box;
use std::time::Instant;
use tickwire_market::SeqNo;
use tickwire_testdata::Rng;
use tickwire_wire_nasdaq::itch50::{
    self, AddOrder, Message, OrderCancel, OrderDelete, OrderExecuted, OrderReplace,
};
use tickwire_wire_nasdaq::layout::Pod;
use tickwire_wire_nasdaq::layout::{Alpha, Price4};
use tickwire_wire_nasdaq::moldudp64::{self, PacketBuilder, Payload};

/// What ships: large blocks on huge pages.
#[global_allocator]
static ALLOCATOR: tickwire_runtime::alloc::Allocator = tickwire_runtime::alloc::Allocator;

const SESSION: [u8; 10] = *b"BENCHMARK1";
const PACKET_SIZE_MAX: usize = 1400;

fn main() {
    let is_bench = std::env::args().any(|arg| arg == "--bench");
    let (messages, rounds) = if is_bench { (2_000_000, 10) } else { (2_000, 1) };
    let (packets, expected) = generate(1, messages);
    let mut best_ns = f64::MAX;
    for _ in 0..rounds {
        let start = Instant::now();
        let sum = decode(black_box(&packets));
        best_ns = best_ns.min(start.elapsed().as_nanos() as f64 / messages as f64);
        assert_eq!(
            sum, expected,
            "seed 1: the decoder read something else than was written"
        );
    }
    if is_bench {
        let per_second = 1e3 / best_ns;
        println!(
            "decode: {best_ns:.2} ns per message, {per_second:.0} million per second ({messages} messages, best of {rounds})"
        );
    }
}

fn decode(packets: &[Vec<u8>]) -> u64 {
    let mut sum = 0_u64;
    let mut add = |parts: [u64; 4]| parts.iter().for_each(|part| sum = sum.wrapping_add(*part));
    for packet in packets {
        let Ok(moldudp64::Packet {
            payload: Payload::Messages(blocks),
            ..
        }) = moldudp64::parse(packet)
        else {
            continue;
        };
        for block in blocks {
            match itch50::parse(block) {
                Ok(Message::AddOrder(m)) => {
                    add(parts(m.locate.get(), m.order_ref.get(), m.shares.get(), m.price))
                }
                Ok(Message::OrderDelete(m)) => add([m.locate.get().into(), m.order_ref.get(), 0, 0]),
                Ok(Message::OrderReplace(m)) => {
                    add(parts(
                        m.locate.get(),
                        m.new_order_ref.get(),
                        m.shares.get(),
                        m.price,
                    ));
                    add([m.original_order_ref.get(), 0, 0, 0]);
                }
                Ok(Message::OrderExecuted(m)) => add([
                    m.order_ref.get(),
                    m.match_number.get(),
                    m.executed_shares.get().into(),
                    m.locate.get().into(),
                ]),
                Ok(Message::OrderCancel(m)) => add([
                    m.order_ref.get(),
                    m.cancelled_shares.get().into(),
                    m.locate.get().into(),
                    0,
                ]),
                _ => {}
            }
        }
    }
    sum
}

fn parts(locate: u16, order: u64, shares: u32, price: Price4) -> [u64; 4] {
    [locate.into(), order, shares.into(), price.price().raw() as u64]
}

/// Packets, and the sum of every number the decoder reads.
fn generate(seed: u64, messages: usize) -> (Vec<Vec<u8>>, u64) {
    let mut rng = Rng::new(seed);
    let (mut packets, mut sum, mut seq) = (Vec::new(), 0_u64, 1);
    let mut buffer = vec![0; PACKET_SIZE_MAX];
    let mut done = 0;
    while done < messages {
        let mut builder = PacketBuilder::new(&mut buffer, SESSION, SeqNo(seq));
        let packet_messages = 1 + rng.below(20);
        while done < messages && u64::from(builder.count()) < packet_messages {
            let (message, part) = random_message(&mut rng);
            if !builder.push(&message) {
                break;
            }
            sum = sum.wrapping_add(part);
            done += 1;
        }
        seq += u64::from(builder.count());
        let length = builder.finish();
        packets.push(buffer[..length].to_vec());
    }
    (packets, sum)
}

fn random_message(rng: &mut Rng) -> (Vec<u8>, u64) {
    let (locate, order, shares, price) = (
        rng.below(8000) as u16,
        rng.below(1 << 28),
        rng.below(1000) as u32,
        rng.below(2_000_000) as u32,
    );
    let (time, other) = (rng.below(1 << 46), rng.below(1 << 28));
    let common = u64::from(locate) + order + u64::from(shares);
    let scaled = u64::from(price) * 100_000;
    let price = Price4::new(price);
    // a real day: A 43.3 %, D 41.9 %, U 8.7 %, E 2.5 %, X 1.2 %
    match rng.below(976) {
        0..433 => {
            let add = AddOrder {
                order_ref: order.into(),
                side: itch50::side_char(tickwire_market::Side::Bid),
                shares: shares.into(),
                stock: Alpha(*b"BENCH   "),
                price,
                ..AddOrder::at(locate, time)
            };
            (add.as_bytes().to_vec(), common + scaled)
        }
        433..852 => {
            let delete = OrderDelete {
                order_ref: order.into(),
                ..OrderDelete::at(locate, time)
            };
            (delete.as_bytes().to_vec(), common - u64::from(shares))
        }
        852..939 => {
            let replace = OrderReplace {
                original_order_ref: other.into(),
                new_order_ref: order.into(),
                shares: shares.into(),
                price,
                ..OrderReplace::at(locate, time)
            };
            (replace.as_bytes().to_vec(), common + scaled + other)
        }
        939..964 => {
            let executed = OrderExecuted {
                order_ref: order.into(),
                executed_shares: shares.into(),
                match_number: other.into(),
                ..OrderExecuted::at(locate, time)
            };
            (executed.as_bytes().to_vec(), common + other)
        }
        _ => {
            let cancel = OrderCancel {
                order_ref: order.into(),
                cancelled_shares: shares.into(),
                ..OrderCancel::at(locate, time)
            };
            (cancel.as_bytes().to_vec(), common)
        }
    }
}
