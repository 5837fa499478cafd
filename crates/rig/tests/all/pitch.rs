//! Cboe: the Gap Request Proxy, and Spin when it does not help.

use tickwire_book::Depth;
use tickwire_exchange::{
    PitchAccount, PitchPublisher, PitchPublisherConfig, PitchServiceConfig, UnitConfig, listings,
};
use tickwire_feed::{PitchChannel, PitchChannelConfig, PitchConfig, PitchLogin};
use tickwire_market::{Counter, Venue};
use tickwire_rig::{Forgery, Numbers, Outcome, RigConfig, run};
use tickwire_wire::layout::Alpha;

const UNIT: u8 = 7;

fn receiver(venue: Venue) -> PitchChannelConfig {
    PitchChannelConfig {
        unit: UNIT,
        decoder: PitchConfig {
            venue,
            instruments_max: 64,
            orders_max: 1 << 16,
            ..PitchConfig::default()
        },
        ..PitchChannelConfig::default()
    }
}

fn day_of(
    venue: Venue,
    service: PitchServiceConfig,
    config: &RigConfig,
    channel: PitchChannel,
) -> Outcome<PitchChannel> {
    let listings = listings(20);
    let publisher = PitchPublisherConfig {
        venue,
        service,
        unit: UnitConfig {
            unit: UNIT,
            ..UnitConfig::default()
        },
        ..PitchPublisherConfig::default()
    };
    let publisher = Box::new(PitchPublisher::new(publisher, &listings));
    run(config, &listings, publisher, channel, Depth::ByOrder)
}

fn day(config: &RigConfig) -> Outcome<PitchChannel> {
    let channel = PitchChannel::new(receiver(Venue::Bzx));
    day_of(Venue::Bzx, PitchServiceConfig::default(), config, channel)
}

#[test]
fn a_day_without_trouble_needs_no_recovery() {
    for venue in [Venue::Bzx, Venue::Byx, Venue::Edga, Venue::Edgx] {
        let config = RigConfig::default();
        let channel = PitchChannel::new(receiver(venue));
        let outcome = day_of(venue, PitchServiceConfig::default(), &config, channel);
        let count = |counter| outcome.counters.get(counter);
        assert_eq!((count(Counter::Gaps), count(Counter::RetransmitRequests)), (0, 0));
        assert_eq!((count(Counter::BookRejects), count(Counter::Malformed)), (0, 0));
        assert_eq!(count(Counter::EndOfSession), 1);
        assert!(!outcome.connections.contains_key("snapshot_server"));
        let events = &outcome.events;
        for kind in [
            "Add", "Delete", "Modify", "Execute", "Reduce", "Trade", "Status", "Clear",
        ] {
            assert!(events.contains_key(kind), "{kind}: {events:?}");
        }
        assert_eq!(events.contains_key("Imbalance"), venue == Venue::Bzx);
        assert!(events["Add"] > 1_000, "{events:?}");
    }
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
fn bad_lines_are_made_good_by_the_proxy() {
    let mut retransmitted = 0;
    for seed in 1..=5 {
        let outcome = day(&RigConfig::bad_lines(seed));
        retransmitted += outcome.counters.get(Counter::MessagesRecovered);
        assert_eq!(outcome.connections["replay"], 1);
        assert!(!outcome.connections.contains_key("snapshot_server"));
    }
    assert!(retransmitted > 0, "some datagram was lost on both lines");
}

#[test]
fn streams_cut_everywhere_say_the_same() {
    for seed in 6..=8 {
        let outcome = day(&RigConfig {
            joins_after_ms: 150,
            read_max: 61,
            ..RigConfig::bad_lines(seed)
        });
        assert_eq!(outcome.connections["snapshot_server"], 1);
    }
}

#[test]
fn a_proxy_that_refuses_the_login_is_made_good_by_spin() {
    let mut snapshots = 0;
    for seed in 1..=5 {
        let account = PitchAccount {
            session_sub_id: *b"0001",
            username: *b"WIRE",
            password: *b"SECRET    ",
        };
        let spin = PitchLogin {
            session_sub_id: Alpha(account.session_sub_id),
            username: Alpha(account.username),
            password: Alpha(account.password),
            ..PitchLogin::default()
        };
        let receiver = PitchChannelConfig {
            proxy: PitchLogin {
                password: Alpha(*b"FORGOTTEN "),
                ..spin.clone()
            },
            spin,
            ..receiver(Venue::Bzx)
        };
        let service = PitchServiceConfig {
            account: Some(account),
            ..PitchServiceConfig::default()
        };
        let config = RigConfig::bad_lines(seed);
        let outcome = day_of(Venue::Bzx, service, &config, PitchChannel::new(receiver));
        assert!(outcome.connections["replay"] > 1, "it is tried again");
        snapshots += outcome.counters.get(Counter::Snapshots);
    }
    assert!(snapshots > 0, "some datagram was lost on both lines");
}

#[test]
fn a_late_joiner_needs_a_snapshot_whatever_the_lines() {
    for seed in 1..=5 {
        let outcome = day(&RigConfig {
            joins_after_ms: 100,
            ..RigConfig::bad_lines(seed)
        });
        assert!(outcome.connections["snapshot_server"] >= 1);
        assert!(outcome.counters.get(Counter::Snapshots) >= 1);
    }
}

/// Sent before the venue's datagrams, on one line: whatever is shown as live is right, all the time, and in
/// the end too.
#[test]
fn forged_packets_on_one_line_make_no_false_book_live() {
    for forgery in [Forgery::Ahead(50_000_000), Forgery::Ahead(1000), Forgery::Content] {
        let outcome = day(&forgery.day(Numbers::PITCH));
        forgery.was_noticed(&outcome);
    }
}
