//! Orders that rest: what a change of the books takes, and what an order takes of memory.

use tickwire_book::{Books, BooksConfig, Depth};
use tickwire_console::failure::Failure;
use tickwire_lab::{Table, format_count};
use tickwire_market::{EventKind, InstrumentId, MarketEvent, OrderId, Price, Side, Upcoming, Volume};
use tickwire_runtime::clock::thread_cpu_ns;

use super::{Draws, bytes, decades, has_room, resident};
use crate::cli::BenchArgs;

/// Instruments that the orders are spread over: as many as Nasdaq has.
const INSTRUMENTS: u64 = 10_000;
/// Prices of a side. An order lies so many ticks from the best one as three draws say, each up to the one
/// before: half of them within 15 of the best price, as orders crowd at the touch.
const PRICES: u64 = 200;
/// Events that are known of before the first of them is applied, as those of a full packet are.
const AHEAD: usize = 32;
/// Shares of an order.
const SHARES: u64 = 100;
/// Bytes that an order needs at most, its number's place in this bench included: by which a point is left
/// out.
const ORDER_BYTES: u64 = 180;

/// Everything about an order follows from its number, so that nothing else has to be remembered of it.
fn add(id: u64, instruments: u64) -> MarketEvent {
    let mut draws = Draws(id);
    let side = if draws.next() & 1 == 0 {
        Side::Bid
    } else {
        Side::Ask
    };
    let far = 1 + draws.below(PRICES);
    let near = 1 + draws.below(far);
    let away = draws.below(near) as i64 * 10_000_000;
    MarketEvent {
        kind: EventKind::Add,
        instrument: instrument(id, instruments),
        order_id: OrderId(id),
        side,
        price: Price::from_raw(match side {
            Side::Bid => 99_000_000_000 - away,
            Side::Ask => 100_000_000_000 + away,
        }),
        qty: Volume(SHARES),
        ..MarketEvent::default()
    }
}

fn instrument(id: u64, instruments: u64) -> InstrumentId {
    InstrumentId(1 + Draws(!id).below(instruments) as u32)
}

fn delete(id: u64, instruments: u64) -> MarketEvent {
    MarketEvent {
        kind: EventKind::Delete,
        instrument: instrument(id, instruments),
        order_id: OrderId(id),
        ..MarketEvent::default()
    }
}

/// Nanoseconds a change where the books know of those of a packet before the first is applied.
fn changes(books: &mut Books, resting: &mut [u64], count: usize, packet: usize) -> f64 {
    let instruments = u64::from(books.config().instruments) - 1;
    let mut draws = Draws(count as u64 ^ packet as u64);
    let mut next = resting.iter().max().map_or(1, |last| last + 1);
    let mut events = Vec::with_capacity(packet);
    let mut took = 0;
    for _ in 0..count / packet {
        events.clear();
        while events.len() < packet {
            let place = draws.below(resting.len() as u64) as usize;
            events.push(delete(resting[place], instruments));
            events.push(add(next, instruments));
            resting[place] = next;
            next += 1;
        }
        let begin = thread_cpu_ns();
        if packet > 2 {
            for event in &events {
                books.upcoming(Upcoming::of(event));
            }
        }
        for event in &events {
            books.apply(event);
        }
        took += thread_cpu_ns() - begin;
    }
    took as f64 / count as f64
}

/// Shares in all books.
fn shares(books: &Books) -> u64 {
    let sides = books
        .iter()
        .flat_map(|book| Side::BOTH.map(|side| book.levels(side).map(|level| level.qty.0).sum::<u64>()));
    sides.sum()
}

/// A pair of changes is too short to be timed by itself: what asking for the time takes, which each holds.
fn asking_ns() -> f64 {
    const TIMES: u64 = 100_000;
    let begin = thread_cpu_ns();
    for _ in 0..TIMES {
        std::hint::black_box(thread_cpu_ns());
    }
    (thread_cpu_ns() - begin) as f64 / TIMES as f64
}

/// Books with so many orders, and what they take.
pub(super) struct Measured {
    /// Nanoseconds a change, in packets of [`AHEAD`] and in pairs.
    pub(super) packets: f64,
    pub(super) pairs: f64,
    /// An order added while the books are filled.
    filled: f64,
    /// Bytes.
    memory: u64,
}

/// Fills books with so many orders and changes them. Least of the runs.
pub(super) fn measure(
    args: &BenchArgs,
    instruments: u64,
    count: u64,
    depth: Depth,
) -> Result<Measured, Failure> {
    let wanted = changes_of(args);
    let asking = asking_ns();
    let before = resident();
    let mut books = Books::new(BooksConfig {
        depth,
        instruments: instruments as u32 + 1,
        orders: u32::try_from(count + count / 2).unwrap_or(u32::MAX),
        // Levels stand in blocks of eight that double.
        levels: (count.min(instruments * PRICES * 2) * 4).max(instruments * 32) as u32,
        ..BooksConfig::default()
    });
    let mut resting: Vec<u64> = (1..=count).collect();
    let begin = thread_cpu_ns();
    for id in 1..=count {
        books.apply(&add(id, instruments));
    }
    let mut measured = Measured {
        packets: f64::MAX,
        pairs: f64::MAX,
        filled: (thread_cpu_ns() - begin) as f64 / count as f64,
        memory: resident().saturating_sub(before + count * 8),
    };
    for _ in 0..args.runs.max(1) {
        let packets = changes(&mut books, &mut resting, wanted, AHEAD) - asking / AHEAD as f64;
        let pairs = changes(&mut books, &mut resting, wanted, 2) - asking / 2.0;
        (measured.packets, measured.pairs) = (measured.packets.min(packets), measured.pairs.min(pairs));
    }
    match shares(&books) {
        found if found == count * SHARES => Ok(measured),
        found => Err(Failure::check(format!(
            "{found} shares rest in the books, {} were added and not deleted: the figures would mean nothing",
            count * SHARES
        ))),
    }
}

/// How many changes are timed.
pub(super) fn changes_of(args: &BenchArgs) -> usize {
    args.messages.clamp(1_000, 4_000_000) as usize / AHEAD * AHEAD
}

pub(super) fn orders(args: &BenchArgs, up_to: u64) -> Result<Table, Failure> {
    let mut table = Table::new(
        &format!(
            "orders that rest in {} instruments, any of them deleted and another one added: nanoseconds of processor time a change (least of {} runs, {} changes), in packets of {AHEAD} and in pairs, less the time that asking for the time takes; filled: an order added to books that are being filled, as by a snapshot",
            format_count(INSTRUMENTS),
            args.runs.max(1),
            format_count(changes_of(args) as u64),
        ),
        &[
            "orders",
            "depth",
            "packets",
            "pairs",
            "filled",
            "memory",
            "bytes an order",
        ],
    );
    for count in decades(10_000, up_to) {
        if !has_room(count * ORDER_BYTES + (1 << 30)) {
            table = table.row([format_count(count), "no room".into()]);
            continue;
        }
        for (name, depth) in [("by price", Depth::Aggregated), ("by order", Depth::ByOrder)] {
            let measured = measure(args, INSTRUMENTS, count, depth)?;
            table = table.row([
                format_count(count),
                name.into(),
                format!("{:.1}", measured.packets),
                format!("{:.1}", measured.pairs),
                format!("{:.1}", measured.filled),
                bytes(measured.memory),
                format!("{:.0}", measured.memory as f64 / count as f64),
            ]);
            eprintln!("  {} orders {name}", format_count(count));
        }
    }
    Ok(table)
}
