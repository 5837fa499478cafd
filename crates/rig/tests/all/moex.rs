//! Moscow Exchange: TCP replay, and the snapshot loop when that does not help or the day has begun.

use std::sync::Arc;

use tickwire_book::Depth;
use tickwire_exchange::{MoexLog, MoexPublisher, MoexPublisherConfig, listings};
use tickwire_feed::{MoexChannel, MoexChannelConfig, MoexConfig, Start};
use tickwire_market::Counter;
use tickwire_rig::{Forgery, Numbers, Outcome, RigConfig, run};
use tickwire_testdata::{specs, workspace};
use tickwire_wire::fast::Plan;

fn plan(path: std::path::PathBuf) -> Arc<Plan> {
    Arc::new(Plan::parse(&std::fs::read_to_string(path).unwrap()).unwrap())
}

fn ours() -> Arc<Plan> {
    plan(workspace().join("examples/moex-templates.xml"))
}

fn day_with(config: &RigConfig, venue: MoexPublisherConfig, plan: Arc<Plan>) -> Outcome<MoexChannel> {
    let listings = listings(20);
    let decoder = MoexConfig {
        main_board: venue.board.into(),
        ..MoexConfig::new(plan.clone())
    };
    let mut channel = MoexChannelConfig::new(decoder);
    // The day has half a second: with the exchange's one connection a second a snapshot is always sooner.
    channel.arbiter.recovery.requests_per_second = 50;
    run(
        config,
        &listings,
        Box::new(MoexPublisher::new(venue, plan, &listings).unwrap()),
        MoexChannel::new(channel).unwrap(),
        Depth::ByOrder,
    )
}

fn day(config: &RigConfig) -> Outcome<MoexChannel> {
    day_with(config, MoexPublisherConfig::default(), ours())
}

#[test]
fn a_day_without_trouble_needs_no_recovery() {
    let outcome = day(&RigConfig::default());
    assert_eq!(outcome.counters.get(Counter::Gaps), 0);
    assert_eq!(outcome.counters.get(Counter::Malformed), 0);
    assert_eq!(outcome.counters.get(Counter::Snapshots), 0);
    assert!(outcome.connections.is_empty());
    assert!(outcome.events["Add"] > 1_000, "{:?}", outcome.events);
    assert!(outcome.events["Modify"] > 10, "{:?}", outcome.events);
    assert!(
        (20..=40).contains(&outcome.events["Definition"]),
        "first seen or defined, or one after the other"
    );
}

#[tickwire_testdata::recorded_data("specs/moex")]
#[test]
fn a_day_in_the_exchanges_own_templates_of_both_years_and_markets() {
    for set in ["2017-03", "2020-11"] {
        let plan = plan(specs(&format!("moex/templates-{set}.xml")));
        for (market, board) in [("FOND", "TQBR"), ("CURR", "CETS")] {
            let venue = MoexPublisherConfig {
                market,
                board,
                ..MoexPublisherConfig::default()
            };
            let outcome = day_with(&RigConfig::default(), venue, plan.clone());
            assert_eq!(outcome.counters.get(Counter::Malformed), 0, "{set} {market}");
        }
    }
}

#[test]
fn icebergs_stops_halts_and_auctions_leave_the_books_what_they_are() {
    let outcome = day(&RigConfig::every_kind(1));
    assert!(outcome.compared > 20, "{}", outcome.compared);
    assert!(
        !outcome.events.contains_key("TradeBreak"),
        "the feed has no word for it"
    );
    assert_eq!(outcome.counters.get(Counter::BookRejects), 0);
}

#[test]
fn bad_lines_are_made_good_by_replay() {
    let mut connections = 0;
    for seed in 1..=5 {
        let outcome = day(&RigConfig::bad_lines(seed));
        connections += outcome.connections.get("replay").copied().unwrap_or(0);
        assert_eq!(outcome.counters.get(Counter::Snapshots), 0, "seed {seed}");
        assert_eq!(outcome.counters.get(Counter::MessagesLost), 0, "seed {seed}");
    }
    assert!(connections > 0, "no packet was lost on both lines");
}

#[test]
fn without_replay_the_snapshot_loop_makes_gaps_good() {
    let mut snapshots = 0;
    for seed in 1..=5 {
        let outcome = day(&RigConfig {
            connects: false,
            ..RigConfig::bad_lines(seed)
        });
        snapshots += outcome.counters.get(Counter::Snapshots);
        assert!(outcome.connections.is_empty());
    }
    assert!(snapshots > 0, "no packet was lost on both lines");
}

#[test]
fn a_receiver_that_joins_late_begins_with_a_snapshot() {
    for joins_after_ms in [30, 250] {
        let outcome = day(&RigConfig {
            joins_after_ms,
            ..RigConfig::bad_lines(7)
        });
        assert!(outcome.counters.get(Counter::Snapshots) >= 1);
    }
}

#[test]
fn messages_cut_anywhere_are_put_together() {
    let mut connections = 0;
    for seed in 1..=3 {
        let outcome = day(&RigConfig {
            read_max: 61,
            ..RigConfig::bad_lines(seed)
        });
        connections += outcome.connections.get("replay").copied().unwrap_or(0);
        assert_eq!(outcome.counters.get(Counter::MessagesLost), 0);
    }
    assert!(connections > 0);
}

#[test]
fn a_trade_log_tells_every_trade_and_has_no_books() {
    let venue = MoexPublisherConfig {
        log: MoexLog::Trades,
        ..MoexPublisherConfig::default()
    };
    let listings = listings(20);
    let mut config = MoexChannelConfig::new(MoexConfig::new(ours()));
    config.arbiter.start = Start::Beginning;
    config.arbiter.snapshot = false;
    config.replay.feed = b"TLR".into();
    let publisher = MoexPublisher::new(venue, ours(), &listings).unwrap();
    let channel = MoexChannel::new(config).unwrap();
    let outcome = run(
        &RigConfig::bad_lines(3),
        &listings,
        Box::new(publisher),
        channel,
        Depth::ByOrder,
    );
    assert_eq!(
        outcome.exchange.published_channels()[0].publisher.total(),
        outcome.events["Trade"]
    );
    assert!(outcome.events["Trade"] > 100, "{:?}", outcome.events);
    assert_eq!(outcome.events.get("Add"), None);
}

/// Sent before the venue's datagrams, on one line: whatever is shown as live is right, all the time, and in
/// the end too.
#[test]
fn forged_packets_on_one_line_make_no_false_book_live() {
    for forgery in [Forgery::Ahead(50_000_000), Forgery::Ahead(1000), Forgery::Content] {
        let outcome = day(&forgery.day(Numbers::MOEX));
        forgery.was_noticed(&outcome);
    }
}
