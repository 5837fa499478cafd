//! CQS: what other clients ask for again, and the snapshot stream for everything else.

use tickwire_book::Depth;
use tickwire_exchange::{
    CqsLineConfig, CqsPublisher, CqsPublisherConfig, CqsReset, Outage, SipModel, listings,
};
use tickwire_feed::{CqsChannel, CqsDecoder, CqsFeed, SipConfig};
use tickwire_market::{Counter, Nanos};
use tickwire_rig::{Outcome, RigConfig, run};

fn day(config: &RigConfig, publisher: CqsPublisherConfig) -> Outcome<CqsChannel> {
    let listings = listings(20);
    let feed = CqsFeed::new(
        CqsChannel::arbiter_config(),
        CqsDecoder::new(&SipConfig::default()),
    );
    run(
        config,
        &listings,
        Box::new(CqsPublisher::new(publisher, &listings)),
        CqsChannel::new(feed),
        Depth::ByPrice,
    )
}

fn line(line: CqsLineConfig) -> CqsPublisherConfig {
    CqsPublisherConfig {
        line,
        ..CqsPublisherConfig::default()
    }
}

#[test]
fn a_day_without_trouble_needs_no_recovery() {
    let outcome = day(&RigConfig::default(), CqsPublisherConfig::default());
    assert_eq!(outcome.counters.get(Counter::Gaps), 0);
    assert_eq!(outcome.counters.get(Counter::Snapshots), 0);
    assert!(outcome.events["Quote"] > 1_000, "{:?}", outcome.events);
    assert_eq!(outcome.events["Definition"], 20);
}

#[test]
fn icebergs_stops_halts_and_auctions_leave_the_quotes_what_they_are() {
    let outcome = day(&RigConfig::every_kind(1), CqsPublisherConfig::default());
    assert!(outcome.compared > 20, "{}", outcome.compared);
    assert!(
        !outcome.events.contains_key("TradeBreak"),
        "the feed has no word for it"
    );
    assert_eq!(outcome.counters.get(Counter::BookRejects), 0);
}

#[test]
fn short_forms_say_the_same() {
    let outcome = day(
        &RigConfig::default(),
        CqsPublisherConfig {
            short_forms: true,
            model: SipModel {
                band_bps: 0,
                ..SipModel::default()
            },
            ..CqsPublisherConfig::default()
        },
    );
    assert!(outcome.events["Quote"] > 1_000, "{:?}", outcome.events);
}

#[test]
fn bad_lines_are_made_good_by_what_others_ask_for() {
    let mut retransmitted = 0;
    for seed in 1..=5 {
        let outcome = day(
            &RigConfig::bad_lines(seed),
            line(CqsLineConfig {
                asked_again_ppm: 1_000_000,
                ..CqsLineConfig::default()
            }),
        );
        retransmitted += outcome.counters.get(Counter::PacketsRetransmit);
        assert_eq!(outcome.counters.get(Counter::MessagesLost), 0);
    }
    assert!(retransmitted > 0);
}

#[test]
fn bad_lines_and_late_joiners_are_made_good_by_the_snapshot_stream() {
    let (mut snapshots, mut lost) = (0, 0);
    for seed in 1..=8 {
        let outcome = day(
            &RigConfig {
                joins_after_ms: 60 * (seed % 3),
                ..RigConfig::bad_lines(seed)
            },
            CqsPublisherConfig::default(),
        );
        snapshots += outcome.counters.get(Counter::Snapshots);
        lost += outcome.counters.get(Counter::MessagesLost);
    }
    assert!(snapshots >= 5 && lost > 0, "{snapshots} snapshots, {lost} lost");
}

#[test]
fn a_counter_that_is_reset_within_the_day_goes_on_behind_a_snapshot() {
    let mut changes = 0;
    for (seed, to) in [(1, 1), (2, 1), (3, 50_000), (4, 1)] {
        let outcome = day(
            &RigConfig::bad_lines(seed),
            line(CqsLineConfig {
                reset: Some(CqsReset { after: 700, to }),
                snapshot_ns: 50 * Nanos::MILLI,
                ..CqsLineConfig::default()
            }),
        );
        assert!(outcome.counters.get(Counter::Snapshots) > 0);
        // Where a line loses the block that says so, numbers further on are a gap like any other: the
        // snapshot serves for both.
        let changed = outcome.counters.get(Counter::SessionChanges);
        assert!(changed <= 1, "seed {seed}");
        changes += changed;
    }
    assert!(changes >= 3, "{changes}");
}

#[test]
fn a_participant_that_fails_leaves_the_others_best() {
    let model = SipModel {
        participants: 3,
        outage: Some(Outage {
            participant: 1,
            after_ns: 100 * Nanos::MILLI,
            lasts_ns: 150 * Nanos::MILLI,
        }),
        ..SipModel::default()
    };
    for lasts_ns in [150 * Nanos::MILLI, Nanos::DAY] {
        let outage = model.outage.map(|outage| Outage { lasts_ns, ..outage });
        day(
            &RigConfig::bad_lines(3),
            CqsPublisherConfig {
                model: SipModel { outage, ..model },
                ..CqsPublisherConfig::default()
            },
        );
    }
}

#[test]
fn quotes_beyond_narrow_limit_prices_do_not_count() {
    let outcome = day(
        &RigConfig::bad_lines(5),
        CqsPublisherConfig {
            model: SipModel {
                band_bps: 2,
                ..SipModel::default()
            },
            ..CqsPublisherConfig::default()
        },
    );
    assert!(outcome.events["Quote"] > 1_000, "{:?}", outcome.events);
}
