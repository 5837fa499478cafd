//! Typed messages beside the same work by hand: MarketDataIncrementalRefresh with four entries read,
//! MassQuote of sixteen quotes written. A regression here means that a view looks at more than it is asked
//! for, or a writer does more per field than put it down.
//!
//! `cargo bench -p tickwire-fixmsg` prints nanoseconds a message and the ratio to the hand-written twin,
//! rounds of both in turn, the best round of each. What is read is compared with what was written, and both
//! twins write the same bytes, so a wrong answer cannot be fast.

use std::hint::black_box;
use std::time::Instant;
use tickwire_fix::typed::{FieldError, Nanos, Price, Qty};
use tickwire_fix::{Encoder, Index, Message, Precision, Stamp, Version};
use tickwire_fixmsg::fix44::values::{MDEntryType, MDUpdateAction, QuoteType};
use tickwire_fixmsg::fix44::{MarketDataIncrementalRefresh, MassQuote};
use tickwire_testdata::Rng;

/// What ships: large blocks on huge pages.
#[global_allocator]
static ALLOCATOR: tickwire_runtime::alloc::Allocator = tickwire_runtime::alloc::Allocator;

/// Messages per timed batch.
const BATCH: usize = 512;

fn main() {
    let is_bench = std::env::args().any(|arg| arg == "--bench");
    let rounds = if is_bench { 300 } else { 2 };
    let mut rng = Rng::new(1);
    let updates: Vec<[Update; 4]> = (0..BATCH)
        .map(|_| std::array::from_fn(|_| Update::random(&mut rng)))
        .collect();
    let wire: Vec<Vec<u8>> = updates.iter().map(market_data).collect();
    let quotes: Vec<[Quote; 16]> = (0..BATCH)
        .map(|_| std::array::from_fn(|i| Quote::random(&mut rng, i)))
        .collect();

    let index_only = time(rounds, &wire, |index, bytes| {
        index.decode(bytes).expect("whole").fields().len() as i64
    });
    let [typed, by_hand] = [read_typed, read_by_hand].map(|read| {
        time(rounds, &wire, |index, bytes| {
            sum(&read(&index.decode(bytes).expect("whole")))
        })
    });
    for (bytes, update) in wire.iter().zip(&updates) {
        let mut index = Index::new(128);
        let message = index.decode(bytes).expect("whole");
        assert_eq!(&read_typed(&message), update);
        assert_eq!(&read_by_hand(&message), update);
    }
    let [written, put] = [write_typed, write_by_hand].map(|write| time_writing(rounds, &quotes, write));
    let (mut one, mut two) = ([0; 4096], [0; 4096]);
    let mut len = 0;
    for quote in &quotes {
        let mut stamp = Stamp::new(Precision::Millis);
        let typed = write_typed(&mut one, &mut stamp, quote);
        assert_eq!(typed, write_by_hand(&mut two, &mut stamp, quote));
        len = typed.len();
    }
    if is_bench {
        println!(
            "MarketDataIncrementalRefresh, 4 entries, 5 fields of each, {} bytes: index alone {index_only:.1} ns; read by typed \
             group {typed:.1} ns in all, by a walk over the index {by_hand:.1} ns, ratio {:.2}",
            wire[0].len(),
            typed / by_hand
        );
        println!(
            "MassQuote, 16 quotes, {len} bytes: typed {written:.1} ns, by calls of the encoder {put:.1} ns, ratio {:.2}",
            written / put
        );
    }
}

/// The best round, nanoseconds a message.
fn time(rounds: usize, wire: &[Vec<u8>], read: impl Fn(&mut Index, &[u8]) -> i64) -> f64 {
    let mut index = Index::new(128);
    let mut best = f64::MAX;
    for _ in 0..rounds {
        let start = Instant::now();
        let mut total = 0i64;
        for bytes in wire {
            total = total.wrapping_add(read(&mut index, black_box(bytes)));
        }
        black_box(total);
        best = best.min(start.elapsed().as_nanos() as f64 / wire.len() as f64);
    }
    best
}

fn time_writing(rounds: usize, quotes: &[[Quote; 16]], write: Write) -> f64 {
    let (mut buffer, mut stamp) = ([0; 4096], Stamp::new(Precision::Millis));
    let mut best = f64::MAX;
    for _ in 0..rounds {
        let start = Instant::now();
        for quote in quotes {
            black_box(write(&mut buffer, &mut stamp, black_box(quote)).len());
        }
        best = best.min(start.elapsed().as_nanos() as f64 / quotes.len() as f64);
    }
    best
}

type Write = for<'b> fn(&'b mut [u8], &mut Stamp, &[Quote; 16]) -> &'b [u8];

#[derive(Clone, Copy, PartialEq, Debug)]
struct Update {
    action: MDUpdateAction,
    kind: MDEntryType,
    price: Price,
    size: Qty,
    position: i64,
}

impl Update {
    const NONE: Update = Update {
        action: MDUpdateAction::New,
        kind: MDEntryType::Bid,
        price: Price::from_raw(0),
        size: Qty(0),
        position: 0,
    };

    fn random(rng: &mut Rng) -> Update {
        Update {
            action: MDUpdateAction::ALL[rng.below(3) as usize],
            kind: MDEntryType::ALL[rng.below(2) as usize],
            price: Price::from_4dp(1_000_000 + rng.below(9_000_000) as u32),
            size: Qty(1 + rng.below(100_000) as u32),
            position: 1 + rng.below(10) as i64,
        }
    }
}

fn sum(updates: &[Update; 4]) -> i64 {
    updates.iter().map(|u| u.price.raw() + i64::from(u.size.0)).sum()
}

fn head<'b>(buffer: &'b mut [u8], msg_type: &[u8], stamp: &mut Stamp) -> Encoder<'b> {
    let mut e = Encoder::new(buffer, Version::Fix44);
    e.text(35, msg_type);
    e.unsigned(34, 1_234_567);
    e.text(49, b"SENDER");
    e.text(52, stamp.format(Nanos(1_795_226_141_123_456_789)));
    e.text(56, b"TARGET");
    e
}

fn market_data(updates: &[Update; 4]) -> Vec<u8> {
    let (mut buffer, mut stamp) = ([0; 2048], Stamp::new(Precision::Millis));
    let mut e = head(&mut buffer, b"X", &mut stamp);
    MarketDataIncrementalRefresh::write(&mut e, &mut stamp, |m| {
        m.md_req_id(b"MDR-1").md_entries(updates, |entry, update| {
            entry.md_update_action(update.action).md_entry_type(update.kind);
            entry.instrument().symbol(b"WIRE").security_id(b"US0000000001");
            entry.md_entry_px(update.price).md_entry_size(update.size);
            entry.md_entry_position_no(update.position);
        });
    })
    .expect("complete");
    e.finish().expect("fits").to_vec()
}

#[inline(never)]
fn read_typed(message: &Message<'_>) -> [Update; 4] {
    let mut out = [Update::NONE; 4];
    let m = MarketDataIncrementalRefresh::read(message).expect("of its type");
    for (out, entry) in out.iter_mut().zip(m.md_entries().expect("a true count")) {
        let read = || -> Result<Update, FieldError> {
            Ok(Update {
                action: entry.md_update_action()?,
                kind: entry.md_entry_type()?.unwrap_or(MDEntryType::Bid),
                price: entry.md_entry_px()?.unwrap_or(Price::from_raw(0)),
                size: entry.md_entry_size()?.unwrap_or(Qty(0)),
                position: entry.md_entry_position_no()?.unwrap_or(0),
            })
        };
        *out = read().expect("good values");
    }
    out
}

/// What one would write over the index: a walk that knows the order of the fields of this one sender.
#[inline(never)]
fn read_by_hand(message: &Message<'_>) -> [Update; 4] {
    let mut out = [Update::NONE; 4];
    let mut at = None;
    for &f in message.fields() {
        if f.tag == 279 {
            at = Some(at.map_or(0, |at: usize| at + 1));
        }
        let Some(update) = at.and_then(|at| out.get_mut(at)) else {
            continue;
        };
        match f.tag {
            279 => update.action = MDUpdateAction::from_bytes(message.value(f)).expect("listed"),
            269 => update.kind = MDEntryType::from_bytes(message.value(f)).expect("listed"),
            270 => update.price = message.price(f).expect("a price"),
            271 => update.size = message.qty(f).expect("a quantity"),
            290 => update.position = message.signed(f).expect("a number"),
            _ => {}
        }
    }
    out
}

#[derive(Clone, Copy, Debug)]
struct Quote {
    id: [u8; 2],
    symbol: [u8; 4],
    bid: Price,
    offer: Price,
    size: Qty,
}

impl Quote {
    fn random(rng: &mut Rng, i: usize) -> Quote {
        let bid = 1_000_000 + rng.below(9_000_000) as u32;
        Quote {
            id: [b'0' + i as u8 / 10, b'0' + i as u8 % 10],
            symbol: [b'A' + i as u8, b'W', b'I', b'R'],
            bid: Price::from_4dp(bid),
            offer: Price::from_4dp(bid + 100),
            size: Qty(1 + rng.below(10_000) as u32),
        }
    }
}

#[inline(never)]
fn write_typed<'b>(buffer: &'b mut [u8], stamp: &mut Stamp, quotes: &[Quote; 16]) -> &'b [u8] {
    let mut e = head(buffer, MassQuote::MSG_TYPE, stamp);
    MassQuote::write(&mut e, stamp, |m| {
        m.quote_id(b"Q1").quote_type(QuoteType::Tradeable);
        m.quote_sets([()], |set, ()| {
            set.quote_set_id(b"1").tot_no_quote_entries(16);
            set.quote_entries(quotes, |entry, quote| {
                entry.quote_entry_id(&quote.id);
                entry.instrument().symbol(&quote.symbol);
                entry.bid_px(quote.bid).offer_px(quote.offer);
                entry.bid_size(quote.size).offer_size(quote.size);
            });
        });
    })
    .expect("complete");
    e.finish().expect("fits")
}

#[inline(never)]
fn write_by_hand<'b>(buffer: &'b mut [u8], stamp: &mut Stamp, quotes: &[Quote; 16]) -> &'b [u8] {
    let mut e = head(buffer, b"i", stamp);
    e.text(117, b"Q1");
    e.text(537, b"1");
    e.unsigned(296, 1);
    e.text(302, b"1");
    e.signed(304, 16);
    e.unsigned(295, 16);
    for quote in quotes {
        e.text(299, &quote.id);
        e.text(55, &quote.symbol);
        e.price(132, quote.bid);
        e.price(133, quote.offer);
        e.unsigned(134, u64::from(quote.size.0));
        e.unsigned(135, u64::from(quote.size.0));
    }
    e.finish().expect("fits")
}
