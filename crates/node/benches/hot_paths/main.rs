//! Hot paths for counting their instructions: each does so many units of work, and twice as many, on the same
//! input, made before. What the second run has more belongs to the path alone: `cargo xtask counts` runs both
//! under Callgrind, divides by the units, and compares with docs/results/counts.tsv. A regression here means
//! that a path does more work than when that table was written.
//!
//! `hot_paths NAME half|whole` does one path and prints how many units it was,
//! `hot_paths NAME cold|rehearsed` packets of a feed that find the caches in others' hands; without a name,
//! every path once and small. Every answer is checked: the books in the end are the venue's, and every order,
//! quote and report is counted.

mod cold;
mod quote;
mod report;
mod rule;
mod shared;

use std::hint::black_box;
use std::process::ExitCode;

use tickwire_book::{Books, BooksConfig, Depth};
use tickwire_exchange::{Publisher, listings};
use tickwire_feed::{Channel, FeedState, Line, Pattern};
use tickwire_market::{BookState, Nanos, Port};
use tickwire_rig::feeds::{self, FEEDS, FeedVisitor, LiveDay};
use tickwire_rig::recorded::BooksOnly;

/// What ships: large blocks on huge pages.
#[global_allocator]
static ALLOCATOR: tickwire_runtime::alloc::Allocator = tickwire_runtime::alloc::Allocator;

/// Instruments of a feed.
const LISTED: u16 = 20;

/// Makes whatever so many units need and does so many of them; how many it was.
type Path = fn(u64, u64) -> u64;

/// Paths that begin behind the books.
const BEHIND: [(&str, Path); 5] = [
    ("rule", rule::orders),
    ("quote", |_, done| quote::by_strategy(done)),
    ("quote-alone", |_, done| quote::by_template(done)),
    ("report", report::reports),
    ("roundtrip", report::round_trips),
];

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).filter(|arg| arg != "--bench").collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    match words[..] {
        [] => {
            for name in names() {
                run(name, 400, 400);
            }
            for feed in FEEDS {
                cold::orders(feed, 20, true);
            }
        }
        ["list"] => names().for_each(|name| println!("{name}")),
        ["feeds"] => FEEDS.iter().for_each(|feed| println!("{feed}")),
        [name, share @ ("half" | "whole")] if names().any(|known| known == name) => {
            let whole = 20_000;
            let units = run(name, whole, if share == "half" { whole / 2 } else { whole });
            println!("{units}");
        }
        [feed, way @ ("cold" | "rehearsed")] if FEEDS.contains(&feed) => {
            println!("{}", cold::orders(feed, 100, way == "rehearsed"));
        }
        _ => {
            eprintln!(
                "hot_paths: say nothing, `list`, a path of the list and `half` or `whole`, `feeds`, or one of these and `cold` or `rehearsed`"
            );
            return ExitCode::from(2);
        }
    }
    ExitCode::SUCCESS
}

/// Paths of a feed beyond its own: what nobody wants, and on to shared memory.
const OF_FEEDS: [(&str, &str, Way); 9] = [
    ("itch50-filtered", "itch50", Way::Filtered),
    ("pitch-filtered", "pitch", Way::Filtered),
    ("cqs-filtered", "cqs", Way::Filtered),
    ("uqdf-filtered", "uqdf", Way::Filtered),
    ("mdp3-filtered", "mdp3", Way::Filtered),
    ("itch50-shared", "itch50", Way::Shared { with_supers: false }),
    ("pitch-shared", "pitch", Way::Shared { with_supers: false }),
    ("mdp3-shared", "mdp3", Way::Shared { with_supers: false }),
    ("itch50-super", "itch50", Way::Shared { with_supers: true }),
];

/// Where the messages of a feed go.
#[derive(Clone, Copy, PartialEq)]
enum Way {
    /// To books.
    Books,
    /// Nobody wants any.
    Filtered,
    /// To books in shared memory, events and updates into the ring, as the feed daemon has it.
    Shared {
        /// On to consolidated books.
        with_supers: bool,
    },
}

fn names() -> impl Iterator<Item = &'static str> {
    let of_feeds = OF_FEEDS.iter().map(|(name, _, _)| *name);
    let behind = BEHIND.iter().map(|(name, _)| *name);
    FEEDS.into_iter().chain(of_feeds).chain(behind)
}

/// How many units of work that was: messages of a feed, orders, mass quotes.
fn run(name: &str, whole: usize, done: usize) -> u64 {
    if let Some((_, path)) = BEHIND.iter().find(|(known, _)| *known == name) {
        return path(whole as u64, done as u64);
    }
    let of_feed = OF_FEEDS.iter().find(|(known, _, _)| *known == name);
    let (feed, way) = of_feed.map_or((name, Way::Books), |(_, feed, way)| (*feed, *way));
    feeds::visit(feed, &listings(LISTED), &mut Day { whole, done, way })
}

/// Datagrams of a feed: so many of so many.
struct Day {
    whole: usize,
    done: usize,
    way: Way,
}

impl FeedVisitor for Day {
    type Output = u64;

    fn visit<C: Channel>(&mut self, publisher: Box<dyn Publisher>, channel: C, depth: Depth) -> u64 {
        let listed = listings(LISTED);
        let day = LiveDay::generate(&listed, publisher, self.whole);
        let done = self.done.min(day.datagrams().len());
        let books = Books::new(BooksConfig {
            venue: channel.venue(),
            depth,
            instruments: 70_000,
            orders: 1 << 16,
            levels: 1 << 16,
            initial: BookState::Building,
            tracked: matches!(self.way, Way::Shared { .. }),
        });
        match self.way {
            Way::Books | Way::Filtered => self.to_books(&day, done, channel, books),
            Way::Shared { with_supers } => {
                shared::to_shared(&day, &listed, done, channel, books, with_supers)
            }
        }
    }
}

impl Day {
    fn to_books<C: Channel>(&self, day: &LiveDay, done: usize, mut channel: C, books: Books) -> u64 {
        let mut sink = BooksOnly(books);
        if self.way == Way::Filtered {
            let asked = channel.unsubscribe(Nanos(1), &Pattern::ALL, &mut sink);
            asked.expect("there is room for a rule");
        }
        let first = channel.next_seq();
        for datagram in &day.datagrams()[..done] {
            channel.on_datagram(Nanos(1), Port::Live, Line::A, black_box(datagram), &mut sink);
        }
        assert_eq!(channel.state(), FeedState::Live, "nothing was lost");
        match self.way {
            Way::Filtered => assert!(sink.0.iter().all(|book| book.is_empty()), "nobody wants any"),
            _ if done == day.datagrams().len() => day.compare(&listings(LISTED), &channel, &sink.0),
            _ => {}
        }
        channel.next_seq().0 - first.0
    }
}
