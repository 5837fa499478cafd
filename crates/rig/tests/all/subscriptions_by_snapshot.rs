//! Subscriptions that change at random in mid-session, on bad lines, for the feeds whose snapshot is of the
//! whole channel: GLIMPSE and Spin. What is wanted becomes right, what is not is not decoded, and nothing
//! else is disturbed.

use tickwire_book::Depth;
use tickwire_exchange::{
    ItchPublisher, ItchPublisherConfig, Listing, PitchPublisher, PitchPublisherConfig, Publisher, UnitConfig,
    listings,
};
use tickwire_feed::{
    ArbiterConfig, Channel, ItchChannel, ItchConfig, ItchDecoder, ItchFeed, PitchChannel, PitchChannelConfig,
    PitchConfig, PitchUnit, RecoveryLimits, Seen, SoupConfig, Start,
};
use tickwire_market::{Counter, MessageType};
use tickwire_rig::{Changes, Outcome, RigConfig, run};

const UNIT: u8 = 7;

/// A feed on both sides.
trait Feed {
    type Channel: Channel;
    fn channel(join_bytes: usize) -> Self::Channel;
    fn publisher(listings: &[Listing]) -> Box<dyn Publisher>;
}

/// The day has half a second, and connections are cut all the time: no long waits, no quota.
fn impatient(limits: RecoveryLimits) -> RecoveryLimits {
    RecoveryLimits {
        backoff_max_ns: limits.backoff_ns / 5,
        backoff_ns: limits.backoff_ns / 5,
        snapshots_per_minute: 0,
        ..limits
    }
}

struct Itch;

impl Feed for Itch {
    type Channel = ItchChannel;

    fn channel(join_bytes: usize) -> ItchChannel {
        let arbiter = ArbiterConfig {
            snapshot: true,
            join_bytes,
            recovery: impatient(RecoveryLimits::MOLDUDP64),
            ..ArbiterConfig::default()
        };
        let decoder = ItchDecoder::new(ItchConfig {
            instruments_max: 1000,
            ..ItchConfig::default()
        });
        ItchChannel::new(ItchFeed::new(arbiter, decoder), SoupConfig::default())
    }

    fn publisher(listings: &[Listing]) -> Box<dyn Publisher> {
        Box::new(ItchPublisher::new(ItchPublisherConfig::default(), listings))
    }
}

struct Pitch;

impl Feed for Pitch {
    type Channel = PitchChannel;

    fn channel(join_bytes: usize) -> PitchChannel {
        let arbiter = ArbiterConfig {
            start: Start::Snapshot,
            snapshot: true,
            join_bytes,
            recovery: impatient(RecoveryLimits::PITCH),
            ..PitchUnit::arbiter_config(UNIT)
        };
        let config = PitchChannelConfig {
            unit: UNIT,
            decoder: PitchConfig {
                instruments_max: 512,
                orders_max: 1 << 16,
                ..PitchConfig::default()
            },
            ..PitchChannelConfig::default()
        };
        PitchChannel::with_arbiter(arbiter, config)
    }

    fn publisher(listings: &[Listing]) -> Box<dyn Publisher> {
        let config = PitchPublisherConfig {
            unit: UnitConfig {
                unit: UNIT,
                ..UnitConfig::default()
            },
            ..PitchPublisherConfig::default()
        };
        Box::new(PitchPublisher::new(config, listings))
    }
}

/// How many days; more are asked for with `SEEDS`.
fn seeds() -> u64 {
    let asked = std::env::var("SEEDS").ok();
    asked.and_then(|seeds| seeds.parse().ok()).unwrap_or(1)
}

const ROOM: usize = 4 << 20;

fn day<F: Feed>(config: &RigConfig, instruments: u16, join_bytes: usize) -> Outcome<F::Channel> {
    let listings = listings(instruments);
    let outcome = run(
        config,
        &listings,
        F::publisher(&listings),
        F::channel(join_bytes),
        Depth::ByOrder,
    );
    let count = |counter| outcome.counters.get(counter);
    assert_eq!(count(Counter::BookRejects), 0, "seed {}", config.seed);
    assert_eq!(count(Counter::Malformed), 0, "seed {}", config.seed);
    assert!(count(Counter::JoinsDone) <= count(Counter::JoinsBegun));
    // Each type: what was announced passed the filter, and all that was dropped is counted.
    let (mut announced, mut filtered) = (outcome.messages.clone(), 0);
    outcome.channel.kinds(&mut |MessageType(kind), seen: Seen| {
        let told = announced.remove(&kind).unwrap_or(0);
        assert!(
            told <= seen.passed(),
            "seed {}: type {kind:#x}: {told} of {seen:?}",
            config.seed
        );
        filtered += seen.filtered;
    });
    assert!(announced.is_empty(), "{announced:?}");
    assert!(filtered >= count(Counter::MessagesFiltered));
    outcome
}

fn changing(seed: u64, right_within_ms: Option<u64>) -> RigConfig {
    RigConfig {
        compare_every_ms: 1,
        duration_ms: 1_000,
        changes: Some(Changes {
            every_ms: 12,
            right_within_ms,
            counts_passed: true,
            ..Changes::default()
        }),
        ..RigConfig::bad_lines(seed)
    }
}

/// Asks both feeds.
macro_rules! both_feeds {
    ($($test:ident)*) => {
        mod itch { $(#[test] fn $test() { super::$test::<super::Itch>(); })* }
        mod pitch { $(#[test] fn $test() { super::$test::<super::Pitch>(); })* }
    };
}

both_feeds! {
    changes_on_bad_lines_leave_every_live_book_right
    changes_on_good_lines_disturb_nobody
    cut_connections_and_lost_requests_take_longer
    without_a_server_books_stay_marked
    too_little_room_begins_again
    hundreds_at_once_become_right
}

fn changes_on_bad_lines_leave_every_live_book_right<F: Feed>() {
    let (mut right, mut done) = (0, 0);
    for seed in 1..=seeds() {
        let outcome = day::<F>(&changing(seed, None), 20, ROOM);
        right += outcome.changed.right;
        done += outcome.counters.get(Counter::JoinsDone);
        assert!(outcome.compared > 20, "{}", outcome.compared);
        assert!(outcome.counters.get(Counter::MessagesFiltered) > 0);
        assert!(outcome.connections["snapshot_server"] > 0);
    }
    assert!(right > 100 && done > 10, "{right} {done}");
}

/// Those never touched are told the same as if nobody else were subscribed to or not, and never went stale.
fn changes_on_good_lines_disturb_nobody<F: Feed>() {
    let quiet = RigConfig {
        duration_ms: 1_000,
        ..RigConfig::default()
    };
    let changing = RigConfig {
        impair: quiet.impair,
        ..changing(quiet.seed, None)
    };
    let (alone, among) = (day::<F>(&quiet, 20, ROOM), day::<F>(&changing, 20, ROOM));
    assert_eq!(among.counters.get(Counter::Gaps), 0);
    assert!(among.counters.get(Counter::JoinsDone) > 0);
    assert!(among.changed.right > 100, "{:?}", among.changed);
    for listing in listings(Changes::default().pinned as u16) {
        let id = alone.channel.find(&listing.symbol).unwrap().0;
        assert_eq!(alone.told[&id], among.told[&id], "{}", listing.symbol);
    }
}

/// Connections are cut, requests get no answer, so that the whole feed needs snapshots in between.
fn cut_connections_and_lost_requests_take_longer<F: Feed>() {
    let (mut right, mut failed) = (0, 0);
    for seed in 1..=seeds() {
        let config = RigConfig {
            cuts_ppm: 20_000,
            requests_lost_ppm: 1_000_000,
            read_max: 500,
            ..changing(seed, None)
        };
        let outcome = day::<F>(&config, 20, ROOM);
        right += outcome.changed.right;
        failed += outcome.counters.get(Counter::JoinsFailed);
    }
    assert!(right > 0 && failed > 0, "{right} {failed}");
}

/// Nobody accepts a connection: joining books are marked, all day if need be; those that were there are
/// right.
fn without_a_server_books_stay_marked<F: Feed>() {
    let config = RigConfig {
        connects: false,
        impair: RigConfig::default().impair,
        ..changing(3, None)
    };
    let outcome = day::<F>(&config, 20, ROOM);
    assert!(outcome.changed.marked > 100, "{:?}", outcome.changed);
    assert_eq!(outcome.counters.get(Counter::Gaps), 0);
    assert!(outcome.counters.get(Counter::JoinsFailed) > 0);
}

/// Held messages overflow: the join begins again, and what says that it is live is right.
fn too_little_room_begins_again<F: Feed>() {
    let mut failed = 0;
    for seed in 1..=seeds() {
        failed += day::<F>(&changing(seed, None), 20, 600)
            .counters
            .get(Counter::JoinsFailed);
    }
    assert!(failed > 0);
}

/// A pattern that names hundreds at once.
fn hundreds_at_once_become_right<F: Feed>() {
    let mut config = changing(1, None);
    config.changes = Some(Changes {
        every_ms: 100,
        pinned: 30,
        patterns_only: true,
        ..config.changes.unwrap_or_default()
    });
    let outcome = day::<F>(&config, 300, ROOM);
    assert!(
        outcome.changed.right > 1000,
        "{} {:?}",
        outcome.compared,
        outcome.changed
    );
}

/// GLIMPSE answers at once; Spin says only once a second which image there is.
#[test]
fn glimpse_makes_books_right_within_60_ms_on_good_lines() {
    let config = RigConfig {
        impair: RigConfig::default().impair,
        ..changing(5, Some(60))
    };
    assert!(day::<Itch>(&config, 20, ROOM).changed.right > 100);
}
