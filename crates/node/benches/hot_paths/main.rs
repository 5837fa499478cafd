//! Hot paths for counting their instructions: each does so many units of work, and twice as many, on the same
//! input, made before. What the second run has more belongs to the path alone: `cargo xtask counts` runs both
//! under Callgrind, divides by the units, and compares with docs/results/counts.tsv. A regression here means
//! that a path does more work than when that table was written.
//!
//! `hot_paths NAME half|whole` does one path and prints how many units it was; without a name, every path
//! once and small. Every answer is checked: the books in the end are the venue's, and every order, quote and
//! report is counted.

mod quote;
mod report;
mod rule;

use std::hint::black_box;
use std::process::ExitCode;

use tickwire_book::{Books, BooksConfig, Depth};
use tickwire_exchange::{Publisher, listings};
use tickwire_feed::{Channel, FeedState, Line};
use tickwire_market::{BookState, Nanos, Port};
use tickwire_rig::feeds::{self, FEEDS, FeedVisitor, LiveDay};
use tickwire_rig::recorded::BooksOnly;

/// Instruments of a feed.
const LISTED: u16 = 20;

/// Makes whatever so many units need and does so many of them; how many it was.
type Path = fn(u64, u64) -> u64;

/// Paths that begin behind the books.
const BEHIND: [(&str, Path); 4] = [
    ("rule", rule::orders),
    ("quote", |_, done| quote::by_strategy(done)),
    ("quote-alone", |_, done| quote::by_template(done)),
    ("report", report::reports),
];

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).filter(|arg| arg != "--bench").collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    match words[..] {
        [] => {
            for name in names() {
                run(name, 400, 400);
            }
        }
        ["list"] => names().for_each(|name| println!("{name}")),
        [name, share @ ("half" | "whole")] if names().any(|known| known == name) => {
            let whole = 20_000;
            let units = run(name, whole, if share == "half" { whole / 2 } else { whole });
            println!("{units}");
        }
        _ => {
            eprintln!("hot_paths: say nothing, `list`, or a path of the list and `half` or `whole`");
            return ExitCode::from(2);
        }
    }
    ExitCode::SUCCESS
}

fn names() -> impl Iterator<Item = &'static str> {
    FEEDS.into_iter().chain(BEHIND.iter().map(|(name, _)| *name))
}

/// How many units of work that was: messages of a feed, orders, mass quotes.
fn run(name: &str, whole: usize, done: usize) -> u64 {
    match BEHIND.iter().find(|(known, _)| *known == name) {
        Some((_, path)) => path(whole as u64, done as u64),
        None => feeds::visit(name, &listings(LISTED), &mut ToBooks { whole, done }),
    }
}

/// Datagrams of a feed to books: so many of so many.
struct ToBooks {
    whole: usize,
    done: usize,
}

impl FeedVisitor for ToBooks {
    type Output = u64;

    fn visit<C: Channel>(&mut self, publisher: Box<dyn Publisher>, mut channel: C, depth: Depth) -> u64 {
        let listed = listings(LISTED);
        let day = LiveDay::generate(&listed, publisher, self.whole);
        let mut sink = BooksOnly(Books::new(BooksConfig {
            venue: channel.venue(),
            depth,
            instruments: 70_000,
            orders: 1 << 16,
            levels: 1 << 16,
            initial: BookState::Building,
            ..BooksConfig::default()
        }));
        let done = self.done.min(day.datagrams().len());
        let first = channel.next_seq();
        for datagram in &day.datagrams()[..done] {
            channel.on_datagram(Nanos(1), Port::Live, Line::A, black_box(datagram), &mut sink);
        }
        assert_eq!(channel.state(), FeedState::Live, "nothing was lost");
        if done == day.datagrams().len() {
            day.compare(&listed, &channel, &sink.0);
        }
        channel.next_seq().0 - first.0
    }
}
