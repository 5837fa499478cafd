//! From a changed book to an order: called directly, and handed over to a second pinned thread through a
//! bounded single-producer ring (and the answer back). Grounds for docs/adr/0004.
//!
//! A regression of the direct call means that decision and checks have become dearer on every order; one of
//! the hand-over says something about the machine only.
//!
//! `cargo bench -p tickwire-trading --bench hand_over`; without `--bench` it runs tiny and only checks its
//! answers.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Instant;
use tickwire_market::{
    BookState, BookUpdate, Nanos, OrderIntent, Price, Qty, SeqNo, TimeInForce, Venue, Volume,
};
use tickwire_runtime::affinity::Cores;
use tickwire_trading::{ControlsConfig, OrderReport, ReportKind, RiskConfig};

#[path = "../tests/common/mod.rs"]
mod common;

use common::{ID, RuleRig};

/// What ships: large blocks on huge pages.
#[global_allocator]
static ALLOCATOR: tickwire_runtime::alloc::Allocator = tickwire_runtime::alloc::Allocator;

const SLOTS: usize = 64;

/// Words in the slots, the producer's and the consumer's index each on a cache line of its own.
#[repr(align(128))]
struct Padded<T>(T);

struct Ring {
    slots: Vec<[AtomicU64; 4]>,
    written: Padded<AtomicUsize>,
    read: Padded<AtomicUsize>,
}

impl Ring {
    fn new() -> Ring {
        let slots = (0..SLOTS).map(|_| Default::default()).collect();
        Ring {
            slots,
            written: Padded(AtomicUsize::new(0)),
            read: Padded(AtomicUsize::new(0)),
        }
    }

    fn push(&self, words: [u64; 4]) {
        let at = self.written.0.load(Ordering::Relaxed);
        while at - self.read.0.load(Ordering::Acquire) == SLOTS {
            std::hint::spin_loop();
        }
        for (slot, word) in self.slots[at % SLOTS].iter().zip(words) {
            slot.store(word, Ordering::Relaxed);
        }
        // SYNC publish: pairs with the Acquire in `pop`.
        self.written.0.store(at + 1, Ordering::Release);
    }

    fn pop(&self) -> [u64; 4] {
        let at = self.read.0.load(Ordering::Relaxed);
        // SYNC publish: pairs with the Release in `push`.
        while self.written.0.load(Ordering::Acquire) == at {
            std::hint::spin_loop();
        }
        let words = [0, 1, 2, 3].map(|word| self.slots[at % SLOTS][word].load(Ordering::Relaxed));
        // SYNC free: pairs with the Acquire in `push`.
        self.read.0.store(at + 1, Ordering::Release);
        words
    }
}

fn desk() -> RuleRig {
    let risk = RiskConfig {
        max_orders_per_window: 1_000,
        window_ns: 1,
        max_position: u64::MAX,
        max_open_orders: 8,
        controls: ControlsConfig::NONE,
        ..RiskConfig::default()
    };
    let mut desk = RuleRig::new(Qty(100), TimeInForce::ImmediateOrCancel, 1_024, risk);
    desk.conductor
        .risk_mut()
        .set_reference(ID, Price::from_4dp(100_0050));
    desk
}

/// The offer moves with every update, so every update makes an order.
fn update(seq: u64) -> BookUpdate {
    BookUpdate {
        seq: SeqNo(seq),
        recv_ts: Nanos(seq * 1_000),
        instrument: ID,
        venue: Venue::Nasdaq,
        state: BookState::Live,
        price: [
            Price::from_4dp(100_0000),
            Price::from_4dp(100_0100 + (seq % 2) as u32 * 100),
        ],
        qty: [Volume(500), Volume(500)],
        ..BookUpdate::default()
    }
}

/// Decides, and ends the order so that the next may go out; the order's number, 0 for none.
fn decide(desk: &mut RuleRig, update: &BookUpdate) -> u64 {
    match desk.on_update(update.recv_ts, update) {
        Some(OrderIntent::New { id, .. }) => id.0,
        _ => 0,
    }
}

fn close(desk: &mut RuleRig, id: u64) {
    let report = OrderReport {
        id: tickwire_market::ClientOrderId(id),
        venue_id: None,
        kind: ReportKind::Cancelled,
    };
    desk.on_report(&report).expect("the order is open");
}

fn main() {
    let is_full = std::env::args().any(|arg| arg == "--bench");
    let count = if is_full { 1_000_000 } else { 1_000 };
    let (cores, parallelism) = (Cores::count().usable(), Cores::count().parallelism());
    if is_full {
        Cores::count().pin(cores[0]).expect("the first core is available");
    }

    let mut direct = desk();
    report("direct call", count, |seq| {
        let id = decide(&mut direct, &update(seq));
        close(&mut direct, id);
        id
    });

    if parallelism < 2 {
        println!("hand-over                    not measured: one core only");
        return;
    }
    let (there, back) = (Ring::new(), Ring::new());
    std::thread::scope(|scope| {
        scope.spawn(|| {
            if is_full {
                Cores::count()
                    .pin(cores[1])
                    .expect("the second core is available");
            }
            let mut desk = desk();
            loop {
                let [seq, ..] = there.pop();
                if seq == u64::MAX {
                    return;
                }
                let id = decide(&mut desk, &update(seq));
                back.push([id, seq, 0, 0]);
                close(&mut desk, id);
            }
        });
        report("over a ring and back", count, |seq| {
            there.push([seq, 0, 0, 0]);
            back.pop()[0]
        });
        there.push([u64::MAX, 0, 0, 0]);
    });
}

/// Times each step and checks that it gave the order of its number.
fn report(name: &str, count: u64, mut step: impl FnMut(u64) -> u64) {
    let mut nanos: Vec<u64> = Vec::with_capacity(count as usize);
    for seq in 1..=count {
        let start = Instant::now();
        let id = std::hint::black_box(step(std::hint::black_box(seq)));
        nanos.push(start.elapsed().as_nanos() as u64);
        assert_eq!(id, seq, "every update makes the next order");
    }
    nanos.sort_unstable();
    let at = |share: f64| nanos[((count - 1) as f64 * share) as usize];
    let (p50, p90, p99, p99_9) = (at(0.5), at(0.9), at(0.99), at(0.999));
    println!(
        "{name:<28} min {} p50 {p50} p90 {p90} p99 {p99} p99.9 {p99_9} max {} ns, {count} samples, clock included",
        nanos[0],
        at(1.0)
    );
}
