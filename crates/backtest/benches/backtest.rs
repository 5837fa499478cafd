//! Events of a recording through a backtest, on one core: what a day costs to look at. A regression here
//! means that something is done for every event that only those need in whose book an order of ours stands.
//!
//! Two synthetic recordings of orders: `es`, one future with 3,000 orders in its book, in match events;
//! `equities`, 500 shares with 200,000 orders, which do not fit the caches. The books have the sizes that
//! ship ([`BooksConfig::default`]). Variants: `books`, the books alone, as the limit; `idle`, a backtest
//! whose strategy listens and does nothing; `quoting`, one that replaces a bid and an offer every 100 ms, by
//! each fill model. Every run ends with the generator's own books, level by level, and no event refused;
//! otherwise it fails. The recording is made in pieces, which is not measured.
//!
//! `cargo bench -p tickwire-backtest` runs 10 million events of each; under `cargo test` it runs 40,000.
//! Options after `--`: `--events N`, `--rounds N`, `--only TEXT` (variants whose name contains it).
//! Instructions: `valgrind --tool=callgrind --toggle-collect='*measured*'` before the binary.

use std::hint::black_box;
use std::time::{Duration, Instant};

use tickwire_backtest::{Backtest, FillModel};
use tickwire_book::Books;
use tickwire_market::{Counter, MarketEvent};

#[path = "flow/mod.rs"]
mod flow;
use flow::{Flow, Quoter, sizes, test};

/// What ships: large blocks on huge pages.
#[global_allocator]
static ALLOCATOR: tickwire_runtime::alloc::Allocator = tickwire_runtime::alloc::Allocator;

/// What is timed, and what callgrind is told to collect.
#[inline(never)]
fn measured(events: &[MarketEvent], take: &mut dyn FnMut(&[MarketEvent])) -> Duration {
    let begun = Instant::now();
    take(black_box(events));
    begun.elapsed()
}

fn option(name: &str) -> Option<String> {
    let mut arguments = std::env::args().skip_while(|argument| argument != name);
    arguments.nth(1)
}

/// Events of a piece: enough that the caches hold none of the next one.
const PIECE: usize = 250_000;

fn main() {
    // As `backtest` does before it makes its books.
    tickwire_runtime::alloc::populate_large_blocks();
    let is_bench = std::env::args().any(|argument| argument == "--bench");
    let number = |name, otherwise| option(name).map_or(otherwise, |text| text.parse().expect("a number"));
    let events: usize = number("--events", if is_bench { 10_000_000 } else { 40_000 });
    let rounds: usize = number("--rounds", if is_bench { 3 } else { 1 });
    let only = option("--only").unwrap_or_default();
    for (name, instruments, wanted, tick, is_grouped) in [
        ("es", 1, 3_000, 250_000_000, true),
        ("equities", 500, 200_000, 10_000_000, false),
    ] {
        let variants = ["books", "idle", "quoting queue", "quoting matching"];
        let variants = variants.map(|variant| format!("{name} {variant}"));
        let chosen: Vec<&String> = variants
            .iter()
            .filter(|variant| variant.contains(&only))
            .collect();
        let mut best = vec![Duration::MAX; chosen.len()];
        let mut said = vec![String::new(); chosen.len()];
        for _ in 0..rounds {
            let mut flow = Flow::new(instruments, wanted.min(events / 4), tick, is_grouped);
            let mut books = Books::new(sizes());
            let mut tests: Vec<Backtest<Quoter>> = chosen
                .iter()
                .map(|variant| {
                    let fill = match variant.ends_with("matching") {
                        true => FillModel::Matching,
                        false => FillModel::Queue,
                    };
                    test(instruments, variant.contains("quoting"), fill, is_grouped)
                })
                .collect();
            let mut took = vec![Duration::ZERO; chosen.len()];
            let mut made = 0;
            while made < events {
                let piece: Vec<MarketEvent> = (0..PIECE.min(events - made)).map(|_| flow.event()).collect();
                made += piece.len();
                // All of them on each piece: what else the machine does hits them alike.
                for (at, variant) in chosen.iter().enumerate() {
                    took[at] += match variant.ends_with("books") {
                        true => measured(&piece, &mut |events| {
                            for event in events {
                                books.apply(event);
                            }
                        }),
                        false => {
                            let test = &mut tests[at];
                            measured(&piece, &mut |events| {
                                events.iter().for_each(|event| test.on_event(0, event));
                            })
                        }
                    };
                }
            }
            for (at, variant) in chosen.iter().enumerate() {
                best[at] = best[at].min(took[at]);
                let found = match variant.ends_with("books") {
                    true => &books,
                    false => tests[at].books(0),
                };
                assert_eq!(
                    found.state_hash(),
                    flow.books.state_hash(),
                    "{variant}: the final books"
                );
                assert_eq!(found.counters().get(Counter::BookRejects), 0, "{variant}");
                if variant.ends_with("books") {
                    continue;
                }
                let summary = tests[at].finish();
                let strategy = tests[at].conductor().strategy();
                assert_eq!((summary.events, summary.rejects), (events as u64, 0), "{variant}");
                assert!(
                    strategy.changes > events as u64 / 4,
                    "{variant}: {} changes",
                    strategy.changes
                );
                assert_eq!(summary.requests[0] > 0, variant.contains("quoting"), "{variant}");
                said[at] = format!(
                    "{} changes told, {} requests, {} fills",
                    strategy.changes, strategy.requests, summary.fills[0]
                );
            }
        }
        for (at, variant) in chosen.iter().enumerate() {
            let ns = best[at].as_nanos() as f64 / events as f64;
            if is_bench {
                println!(
                    "{variant:<26} {ns:6.1} ns an event, {:5.2} million a second (best of {rounds})   {}",
                    1e3 / ns,
                    said[at]
                );
            } else {
                println!("{variant:<26} {}", said[at]);
            }
        }
    }
}
