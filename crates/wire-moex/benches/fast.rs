//! FAST decoding: order log datagrams to the fields of a market event, entry by entry. Two inputs: datagrams
//! that our encoder writes with `examples/moex-templates.xml`, and, where the recorded data is at hand, the
//! exchange's own. A regression here means that an operator or a type left the straight path of the plan, or
//! that texts are copied twice.
//!
//! `cargo bench -p tickwire-wire --bench fast` prints nanoseconds per entry; the sum over what was read must
//! be the one known from generation, so a wrong answer cannot be fast.

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use tickwire_market::{EventKind, MarketEvent, Nanos, OrderId, Price, SeqNo, Side, Venue, Volume};
use tickwire_testdata::{Rng, if_recorded, unhex, workspace};
use tickwire_wire_moex::fast::{Limits, Plan};
use tickwire_wire_moex::moex::{Action, BookEntry, Decoder, Encoder, MessageKind, OrderEntry, OrderKind};

/// What ships: large blocks on huge pages.
#[global_allocator]
static ALLOCATOR: tickwire_runtime::alloc::Allocator = tickwire_runtime::alloc::Allocator;

fn main() {
    let is_bench = std::env::args().any(|arg| arg == "--bench");
    let (packets, rounds) = if is_bench { (20_000, 10) } else { (50, 1) };
    let ours = plan(&workspace().join("examples/moex-templates.xml"));
    for entries in [1, 4, 10] {
        let (datagrams, expected) = generate(&ours, 7, packets, entries);
        let label = format!("our templates, {entries} entries a datagram");
        measure(&label, &ours, &datagrams, rounds, is_bench, Some(expected));
    }
    let recorded = if_recorded("captures/moex-asts/packets-2017.hex");
    let templates = if_recorded("specs/moex/templates-2017-03.xml");
    if let (Some(recorded), Some(templates)) = (recorded, templates) {
        let text = std::fs::read_to_string(recorded).expect("recorded packets are text");
        let exchange = plan(&templates);
        let datagrams: Vec<_> = text
            .lines()
            .map(unhex)
            .filter(|d| d[5..7] == [0x1c, 0x9a])
            .collect();
        let datagrams: Vec<_> = datagrams.iter().cycle().take(packets).cloned().collect();
        measure(
            "recorded order log (template 3610 of 2017)",
            &exchange,
            &datagrams,
            rounds,
            is_bench,
            None,
        );
    }
}

fn plan(path: &std::path::Path) -> Arc<Plan> {
    let xml = std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    Arc::new(Plan::parse(&xml).unwrap_or_else(|e| panic!("{}: {e}", path.display())))
}

/// Best and median over batches that are short enough to be undisturbed, per entry.
fn measure(
    label: &str,
    plan: &Arc<Plan>,
    datagrams: &[Vec<u8>],
    rounds: u32,
    print: bool,
    expected: Option<Sum>,
) {
    const BATCH: usize = 200;
    let mut decoder = Decoder::new(plan.clone(), Limits::default()).expect("the templates have every field");
    let mut per_entry = Vec::new();
    let mut first = expected;
    for _ in 0..rounds {
        let mut sum = Sum::default();
        for batch in datagrams.chunks(BATCH) {
            let start = Instant::now();
            let part = decode(&mut decoder, black_box(batch));
            per_entry.push(start.elapsed().as_nanos() as f64 / part.entries.max(1) as f64);
            sum.entries += part.entries;
            sum.of = sum.of.wrapping_add(part.of);
        }
        assert_eq!(
            *first.get_or_insert(sum),
            sum,
            "{label}: the decoder read something else than was written"
        );
    }
    per_entry.sort_by(f64::total_cmp);
    if print {
        let (best, median) = (per_entry[0], per_entry[per_entry.len() / 2]);
        let entries = first.map_or(0, |s| s.entries) as f64 / datagrams.len() as f64;
        let (alone, alone_median) = decode_only(&mut decoder, datagrams, rounds);
        let short = short_way(&mut decoder, datagrams, rounds, first);
        println!(
            "{label}: {best:.1} ns per entry (median {median:.1}), {:.1} ns per datagram; decode only: {:.1} ns per entry \
             (median {:.1}), {alone:.1} ns per datagram; entries for a book: {:.1} ns per entry, {short:.1} ns per datagram",
            best * entries,
            alone / entries,
            alone_median / entries,
            short / entries,
        );
    }
}

/// Best time of a datagram of which only what a book needs is read.
fn short_way(decoder: &mut Decoder, datagrams: &[Vec<u8>], rounds: u32, expected: Option<Sum>) -> f64 {
    const BATCH: usize = 200;
    let mut best = f64::MAX;
    for _ in 0..rounds {
        let mut sum = Sum::default();
        for batch in datagrams.chunks(BATCH) {
            let start = Instant::now();
            for datagram in black_box(batch) {
                let Some(log) = decoder.order_log(datagram) else {
                    continue;
                };
                for row in log.entries() {
                    sum.add(black_box(&event(0, &row.entry)));
                }
            }
            best = best.min(start.elapsed().as_nanos() as f64 / batch.len() as f64);
        }
        assert_eq!(expected, Some(sum), "both ways read the same");
    }
    best
}

/// Best and median time of a datagram until its values are there, none of them looked at.
fn decode_only(decoder: &mut Decoder, datagrams: &[Vec<u8>], rounds: u32) -> (f64, f64) {
    const BATCH: usize = 200;
    let mut per_datagram = Vec::new();
    for _ in 0..rounds {
        for batch in datagrams.chunks(BATCH) {
            let start = Instant::now();
            for datagram in black_box(batch) {
                black_box(decoder.packet(datagram).is_ok());
            }
            per_datagram.push(start.elapsed().as_nanos() as f64 / batch.len() as f64);
        }
    }
    per_datagram.sort_by(f64::total_cmp);
    (per_datagram[0], per_datagram[per_datagram.len() / 2])
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Sum {
    entries: u64,
    of: u64,
}

impl Sum {
    fn add(&mut self, event: &MarketEvent) {
        let side = event.side as u64 + 1;
        let mixed = event.order_id.0 ^ event.price.raw() as u64 ^ event.qty.0 << 40 ^ event.venue_ts.0;
        self.entries += 1;
        self.of = self
            .of
            .wrapping_add(mixed.wrapping_mul(event.kind as u64 * 2 + 1) ^ side);
    }
}

#[inline(always)]
fn for_book(order: &OrderEntry<'_>) -> BookEntry {
    BookEntry {
        action: order.action,
        kind: order.kind,
        order_id: order.order_id,
        rpt_seq: order.rpt_seq,
        price: order.price,
        qty: order.qty,
        time: order.time,
    }
}

/// What the feed handler does with an entry, except for finding the instrument.
#[inline(always)]
fn event(seq: u32, entry: &BookEntry) -> MarketEvent {
    let (kind, side) = match (entry.kind, entry.action) {
        (OrderKind::EmptyBook, _) => (EventKind::Clear, Side::Bid),
        (OrderKind::Order(side), Action::New) => (EventKind::Add, side),
        (OrderKind::Order(side), Action::Change) => (EventKind::Modify, side),
        (OrderKind::Order(side), Action::Delete) => (EventKind::Delete, side),
    };
    MarketEvent {
        kind,
        venue: Venue::Moex,
        seq: SeqNo(u64::from(seq)),
        venue_ts: entry.time.unwrap_or_default(),
        side,
        order_id: entry.order_id,
        price: entry.price.unwrap_or_default(),
        qty: entry.qty.unwrap_or_default(),
        ..MarketEvent::default()
    }
}

fn decode(decoder: &mut Decoder, datagrams: &[Vec<u8>]) -> Sum {
    let mut sum = Sum::default();
    for datagram in datagrams {
        let Ok(message) = decoder.packet(datagram) else {
            continue;
        };
        if message.kind() != MessageKind::OrderLog {
            continue;
        }
        let seq = message.seq();
        for entry in message.orders().flatten() {
            let event = event(seq, &for_book(&entry));
            sum.add(black_box(&event));
        }
    }
    sum
}

/// Datagrams in the mix of the recorded ones: mostly one instrument a datagram, prices near each other, ids
/// rising.
fn generate(plan: &Arc<Plan>, seed: u64, packets: usize, entries: usize) -> (Vec<Vec<u8>>, Sum) {
    let mut encoder = Encoder::new(plan.clone(), Limits::default()).expect("the templates have every field");
    let template = encoder
        .template("X-OLR-DEMO")
        .expect("the order log of our templates");
    let mut rng = Rng::new(seed);
    let mut sum = Sum::default();
    let (mut id, mut out) = (20_000_000, [0; 2048]);
    let datagrams = (0..packets as u32).map(|seq| {
        let at = 36_000 * Nanos::SECOND + u64::from(seq) * 137_000;
        let orders: Vec<_> = (0..entries).map(|_| order(&mut rng, &mut id, seq, at)).collect();
        orders.iter().for_each(|o| sum.add(&event(seq, &for_book(o))));
        let len = encoder.order_log(
            template,
            seq,
            Nanos(1_609_785_105 * Nanos::SECOND),
            &orders,
            &mut out,
        );
        out[..len.expect("the datagram fits")].to_vec()
    });
    let datagrams = datagrams.collect();
    (datagrams, sum)
}

fn order(rng: &mut Rng, id: &mut u64, rpt_seq: u32, at: u64) -> OrderEntry<'static> {
    let action =
        [Action::New, Action::Delete, Action::Change][[0, 0, 0, 1, 1, 1, 2][rng.next_u64() as usize % 7]];
    *id += rng.next_u64() % 5;
    OrderEntry {
        action,
        kind: OrderKind::Order(Side::BOTH[rng.next_u64() as usize % 2]),
        order_id: OrderId(*id),
        symbol: [&b"SBER"[..], b"GAZP", b"USD000UTSTOM"][rng.next_u64() as usize % 3],
        board: b"TQBR",
        rpt_seq,
        price: Price::from_decimal(27_000 + (rng.next_u64() % 200) as i64, 2),
        qty: (action != Action::Delete).then(|| Volume(rng.next_u64() % 300 + 1)),
        date: None,
        time: Some(Nanos(at)),
        order_status: if action == Action::Delete { b"" } else { b"O" },
        session: b"N",
    }
}
