//! NYSE OpenBook Ultra: retransmissions by multicast, and refreshes when there are none.

use tickwire_book::Depth;
use tickwire_exchange::{NysePublisherConfig, OpenBookPublisher, RequestLimits, listings};
use tickwire_feed::{
    ArbiterConfig, OpenBookChannel, OpenBookConfig, OpenBookDecoder, OpenBookFeed, RequestConfig, Start,
};
use tickwire_market::{Counter, Nanos, Symbol};
use tickwire_rig::{Outcome, RigConfig, run};

fn channel(start: Start, symbols: Option<Vec<Symbol>>) -> OpenBookChannel {
    let arbiter = ArbiterConfig {
        start,
        snapshot: true,
        ..ArbiterConfig::default()
    };
    let decoder = OpenBookDecoder::new(OpenBookConfig {
        instruments_max: 1000,
        symbols,
        ..OpenBookConfig::default()
    });
    let requests = RequestConfig {
        source_id: b"RIG".into(),
        product: 12,
        channel: 1,
        refresh_patience_ns: 20 * Nanos::MILLI,
        ..RequestConfig::default()
    };
    OpenBookChannel::new(OpenBookFeed::new(arbiter, decoder), requests)
}

fn day(
    config: &RigConfig,
    start: Start,
    limits: RequestLimits,
    instruments: u16,
) -> Outcome<OpenBookChannel> {
    let listings = listings(instruments);
    let publisher = NysePublisherConfig {
        limits,
        ..NysePublisherConfig::default()
    };
    run(
        config,
        &listings,
        Box::new(OpenBookPublisher::new(publisher, &listings)),
        channel(start, None),
        Depth::ByPrice,
    )
}

/// A server that retransmits nothing.
fn refreshes_only() -> RequestLimits {
    RequestLimits {
        retransmissions_max: 0,
        ..RequestLimits::default()
    }
}

#[test]
fn a_day_without_trouble_needs_no_recovery() {
    let config = RigConfig {
        compare_every_ms: 20,
        ..RigConfig::default()
    };
    let outcome = day(&config, Start::Beginning, RequestLimits::default(), 20);
    assert_eq!(outcome.counters.get(Counter::Gaps), 0);
    assert_eq!(outcome.counters.get(Counter::RetransmitRequests), 0);
    assert_eq!(outcome.counters.get(Counter::Malformed), 0);
    assert!(outcome.compared > 10, "{}", outcome.compared);
    for kind in ["Level", "Status", "Clear", "Definition"] {
        assert!(outcome.events.contains_key(kind), "{kind}: {:?}", outcome.events);
    }
}

#[test]
fn bad_lines_are_made_good_by_retransmissions() {
    let mut retransmitted = 0;
    for seed in 1..=5 {
        let config = RigConfig {
            compare_every_ms: 50,
            read_max: 61,
            ..RigConfig::bad_lines(seed)
        };
        let outcome = day(&config, Start::Beginning, RequestLimits::default(), 20);
        retransmitted += outcome.counters.get(Counter::PacketsRetransmit);
        assert_eq!(outcome.counters.get(Counter::Snapshots), 0);
        assert_eq!(outcome.connections["replay"], 1);
        assert!(outcome.compared > 0);
    }
    assert!(retransmitted > 0, "some datagram was lost on both lines");
}

#[test]
fn late_joiners_are_made_good_by_a_refresh() {
    for seed in 1..=5 {
        let config = RigConfig {
            joins_after_ms: 100,
            compare_every_ms: 50,
            read_max: 7,
            ..RigConfig::bad_lines(seed)
        };
        let outcome = day(&config, Start::Snapshot, RequestLimits::default(), 20);
        assert!(outcome.counters.get(Counter::Snapshots) > 0);
        assert!(outcome.compared > 0);
    }
}

#[test]
fn refused_retransmissions_are_made_good_by_refreshes() {
    let mut snapshots = 0;
    for seed in 1..=5 {
        let config = RigConfig {
            compare_every_ms: 50,
            ..RigConfig::bad_lines(seed)
        };
        let outcome = day(&config, Start::Beginning, refreshes_only(), 20);
        snapshots += outcome.counters.get(Counter::Snapshots);
        assert_eq!(outcome.counters.get(Counter::PacketsRetransmit), 0);
        assert!(outcome.compared > 0);
    }
    assert!(snapshots > 0);
}

#[test]
fn a_channel_of_one_instrument_recovers_too() {
    let late = RigConfig {
        joins_after_ms: 100,
        compare_every_ms: 50,
        ..RigConfig::bad_lines(1)
    };
    let outcome = day(&late, Start::Snapshot, RequestLimits::default(), 1);
    assert!(outcome.counters.get(Counter::Snapshots) > 0 && outcome.compared > 0);
}

#[test]
fn a_tenth_lost_everywhere_is_made_good_too() {
    let mut snapshots = 0;
    for seed in 1..=3 {
        for (start, limits) in [
            (Start::Beginning, RequestLimits::default()),
            (Start::Beginning, refreshes_only()),
            (Start::Snapshot, refreshes_only()),
        ] {
            let mut config = RigConfig {
                joins_after_ms: if start == Start::Snapshot { 150 } else { 0 },
                compare_every_ms: 50,
                ..RigConfig::bad_lines(seed)
            };
            config.impair.loss_ppm = 100_000;
            let outcome = day(&config, start, limits, 20);
            snapshots += outcome.counters.get(Counter::Snapshots);
        }
    }
    assert!(snapshots > 0);
}
