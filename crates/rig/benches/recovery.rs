//! Joining late: how long until a receiver is live, and what it asked for, by feed and by how many messages
//! it is behind. A regression here means that recovery waits where it could ask, asks twice, or takes the
//! slower of its ways.
//!
//! `cargo bench -p tickwire-rig --bench recovery` prints the table of docs/results/recovery.md up to 10^6
//! messages behind, with `-- 10000000` up to 10^7, with names of feeds only those. Time is virtual and the
//! network has a round trip of 1 ms and no limit of bandwidth, so that the table is the same on every
//! machine: it is what protocol, limits and planning cost, not what a machine does.

use tickwire_book::Depth;
use tickwire_exchange::{Listing, Publisher, listings};
use tickwire_feed::Channel;
use tickwire_market::{Counter, Nanos};
use tickwire_rig::feeds::{self, FEEDS, FeedVisitor};
use tickwire_rig::{RigConfig, run};

/// What ships: large blocks on huge pages.
#[global_allocator]
static ALLOCATOR: tickwire_runtime::alloc::Allocator = tickwire_runtime::alloc::Allocator;

/// Messages a second before and while the receiver joins.
const RATE: u32 = 50_000;
/// Instruments.
const LISTED: u16 = 20;

struct Row {
    behind: u64,
    live_ms: Option<u64>,
    requests: u64,
    snapshots: u64,
    connections: u64,
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let is_bench = args.iter().any(|arg| arg == "--bench");
    let only: Vec<&String> = args.iter().filter(|arg| FEEDS.contains(&arg.as_str())).collect();
    let most = match is_bench {
        true => args.iter().find_map(|arg| arg.parse().ok()).unwrap_or(1_000_000),
        false => 10_000,
    };
    if is_bench {
        println!("| feed | behind, messages | live after, ms | requests | connections | snapshots |");
        println!("|---|---|---|---|---|---|");
    }
    for feed in FEEDS {
        if !only.is_empty() && !only.iter().any(|name| *name == feed) {
            continue;
        }
        let mut messages = if is_bench { 1_000 } else { most };
        while messages <= most {
            let row = feeds::visit(feed, &listings(LISTED), &mut Late(messages));
            if is_bench {
                let live = row.live_ms.map_or("not".into(), |ms| ms.to_string());
                println!(
                    "| {feed} | {} | {live} | {} | {} | {} |",
                    row.behind, row.requests, row.connections, row.snapshots
                );
            } else {
                assert!(
                    row.live_ms.is_some_and(|ms| ms <= 2_000),
                    "{feed}: {:?} ms",
                    row.live_ms
                );
            }
            messages *= 10;
        }
    }
}

/// A receiver that joins so many messages late.
struct Late(u64);

impl FeedVisitor for Late {
    type Output = Row;

    fn visit<C: Channel>(&mut self, publisher: Box<dyn Publisher>, channel: C, depth: Depth) -> Row {
        let messages = self.0;
        let joins_after_ms = messages * 1000 / u64::from(RATE);
        let config = RigConfig {
            rate: RATE,
            joins_after_ms,
            duration_ms: joins_after_ms + 2_500,
            round_trip_ns: Nanos::MILLI,
            ..RigConfig::default()
        };
        let listed: Vec<Listing> = listings(LISTED);
        let outcome = run(&config, &listed, publisher, channel, depth);
        let count = |counter| outcome.counters.get(counter);
        Row {
            behind: outcome.live_after.map_or(messages, |(_, behind)| behind),
            live_ms: outcome.live_after.map(|(ns, _)| ns / Nanos::MILLI),
            requests: count(Counter::RetransmitRequests),
            snapshots: count(Counter::Snapshots),
            connections: outcome.connections.values().sum(),
        }
    }
}
