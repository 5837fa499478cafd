//! Nasdaq: MoldUDP64 requests, and GLIMPSE when nobody answers them.

use tickwire_book::Depth;
use tickwire_exchange::{ItchPublisher, ItchPublisherConfig, listings};
use tickwire_feed::{ArbiterConfig, ItchChannel, ItchConfig, ItchDecoder, ItchFeed, SoupConfig};
use tickwire_market::Counter;
use tickwire_rig::{Forgery, Numbers, Outcome, RigConfig, run};

fn day(config: &RigConfig) -> Outcome<ItchChannel> {
    let listings = listings(20);
    let arbiter = ArbiterConfig {
        snapshot: true,
        ..ArbiterConfig::default()
    };
    let feed = ItchFeed::new(arbiter, ItchDecoder::new(ItchConfig::default()));
    run(
        config,
        &listings,
        Box::new(ItchPublisher::new(ItchPublisherConfig::default(), &listings)),
        ItchChannel::new(feed, SoupConfig::default()),
        Depth::ByOrder,
    )
}

#[test]
fn a_day_without_trouble_needs_no_recovery() {
    let outcome = day(&RigConfig::default());
    assert_eq!(outcome.counters.get(Counter::Gaps), 0);
    assert!(outcome.connections.is_empty());
    assert!(outcome.events["Add"] > 1_000, "{:?}", outcome.events);
}

#[test]
fn icebergs_stops_halts_and_auctions_leave_the_books_what_they_are() {
    let outcome = day(&RigConfig::every_kind(1));
    assert!(outcome.compared > 20, "{}", outcome.compared);
    assert!(outcome.events["TradeBreak"] > 10, "{:?}", outcome.events);
    assert_eq!(outcome.breaks_unknown, 0);
    assert_eq!(outcome.counters.get(Counter::BookRejects), 0);
}

#[test]
fn bad_lines_are_made_good_by_requests() {
    let mut retransmitted = 0;
    for seed in 1..=5 {
        let outcome = day(&RigConfig::bad_lines(seed));
        retransmitted += outcome.counters.get(Counter::PacketsRetransmit);
        assert!(outcome.connections.is_empty(), "{:?}", outcome.connections);
    }
    assert!(retransmitted > 0, "some datagram was lost on both lines");
}

#[test]
fn unanswered_requests_and_late_joiners_are_made_good_by_snapshots() {
    for seed in 1..=5 {
        let outcome = day(&RigConfig {
            requests_lost_ppm: 1_000_000,
            joins_after_ms: 100,
            read_max: 61,
            ..RigConfig::bad_lines(seed)
        });
        assert!(outcome.connections["snapshot_server"] > 0);
    }
}

/// Sent before the venue's datagrams, on one line: whatever is shown as live is right, all the time, and in
/// the end too.
#[test]
fn forged_packets_on_one_line_make_no_false_book_live() {
    for forgery in [
        Forgery::Ahead(50_000_000),
        Forgery::Ahead(1000),
        Forgery::Content,
        Forgery::Session,
    ] {
        let outcome = day(&forgery.day(Numbers::MOLDUDP64));
        forgery.was_noticed(&outcome);
    }
}
