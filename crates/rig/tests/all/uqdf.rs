//! UQDF: MoldUDP64 requests; what nobody answers is made good by the next quotes, at the latest by the recap
//! of the close.

use tickwire_book::Depth;
use tickwire_exchange::{Outage, SipModel, UqdfPublisher, UqdfPublisherConfig, listings};
use tickwire_feed::{ArbiterConfig, SipConfig, UqdfChannel, UqdfDecoder, UqdfFeed};
use tickwire_market::{Counter, Nanos};
use tickwire_rig::{Forgery, Numbers, Outcome, RigConfig, run};

fn day(config: &RigConfig, publisher: UqdfPublisherConfig) -> Outcome<UqdfChannel> {
    let listings = listings(20);
    let feed = UqdfFeed::new(ArbiterConfig::default(), UqdfDecoder::new(&SipConfig::default()));
    run(
        config,
        &listings,
        Box::new(UqdfPublisher::new(publisher, &listings)),
        UqdfChannel::new(feed),
        Depth::ByPrice,
    )
}

#[test]
fn a_day_without_trouble_needs_no_recovery() {
    for (short_forms, odd_lots) in [(true, true), (false, true), (true, false), (false, false)] {
        let outcome = day(
            &RigConfig::default(),
            UqdfPublisherConfig {
                short_forms,
                odd_lots,
                ..UqdfPublisherConfig::default()
            },
        );
        assert_eq!(outcome.counters.get(Counter::Gaps), 0);
        assert_eq!(outcome.counters.get(Counter::Malformed), 0);
        assert!(outcome.events["Quote"] > 1_000, "{:?}", outcome.events);
        assert_eq!(outcome.events["Definition"], 20);
    }
}

#[test]
fn icebergs_stops_halts_and_auctions_leave_the_quotes_what_they_are() {
    let outcome = day(&RigConfig::every_kind(1), UqdfPublisherConfig::default());
    assert!(outcome.compared > 20, "{}", outcome.compared);
    assert!(
        !outcome.events.contains_key("TradeBreak"),
        "the feed has no word for it"
    );
    assert_eq!(outcome.counters.get(Counter::BookRejects), 0);
}

#[test]
fn bad_lines_are_made_good_by_requests() {
    let mut retransmitted = 0;
    for seed in 1..=5 {
        let outcome = day(&RigConfig::bad_lines(seed), UqdfPublisherConfig::default());
        retransmitted += outcome.counters.get(Counter::PacketsRetransmit);
        assert_eq!(outcome.counters.get(Counter::MessagesLost), 0);
    }
    assert!(retransmitted > 0, "some datagram was lost on both lines");
}

#[test]
fn a_late_joiner_asks_for_the_whole_day() {
    let outcome = day(
        &RigConfig {
            joins_after_ms: 200,
            ..RigConfig::bad_lines(1)
        },
        UqdfPublisherConfig::default(),
    );
    assert_eq!(outcome.counters.get(Counter::MessagesLost), 0);
}

#[test]
fn what_nobody_sends_again_is_made_good_by_the_next_quotes() {
    let mut lost = 0;
    for seed in 1..=6 {
        let outcome = day(
            &RigConfig {
                requests_lost_ppm: 1_000_000,
                joins_after_ms: 100 * (seed % 2),
                ..RigConfig::bad_lines(seed)
            },
            UqdfPublisherConfig::default(),
        );
        lost += outcome.counters.get(Counter::MessagesLost);
    }
    assert!(lost > 0);
}

#[test]
fn a_wipe_out_leaves_the_best_of_the_others() {
    for (seed, lasts_ns) in [
        (1, 150 * Nanos::MILLI),
        (2, Nanos::DAY),
        (3, Nanos::DAY),
        (4, Nanos::DAY),
    ] {
        let model = SipModel {
            participants: 3,
            outage: Some(Outage {
                participant: 1,
                // Shortly before the close, so that many a book is as the wipe-out left it.
                after_ns: if lasts_ns == Nanos::DAY { 495 } else { 100 } * Nanos::MILLI,
                lasts_ns,
            }),
            ..SipModel::default()
        };
        let publisher = UqdfPublisherConfig {
            model,
            ..UqdfPublisherConfig::default()
        };
        let outcome = day(&RigConfig::bad_lines(seed), publisher);
        assert_eq!(outcome.counters.get(Counter::MessagesLost), 0);
    }
}

/// Sent before the venue's datagrams, on one line: whatever is shown as live is right, all the time, and in
/// the end too.
#[test]
fn forged_packets_on_one_line_make_no_false_book_live() {
    for forgery in [Forgery::Ahead(50_000_000), Forgery::Ahead(1000), Forgery::Session] {
        let outcome = day(&forgery.day(Numbers::MOLDUDP64), UqdfPublisherConfig::default());
        forgery.was_noticed(&outcome);
    }
}
