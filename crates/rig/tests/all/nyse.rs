//! NYSE Integrated Feed and OpenBook Ultra: retransmissions by multicast, and refreshes when there are none.
//! What both are asked is the same.

use tickwire_book::Depth;
use tickwire_exchange::{
    Listing, NysePublisherConfig, OpenBookPublisher, Publisher, RequestLimits, XdpPublisher, listings,
};
use tickwire_feed::{
    ArbiterConfig, Channel, OpenBookChannel, OpenBookConfig, OpenBookDecoder, OpenBookFeed, RecoveryLimits,
    RequestConfig, Start, XdpChannel, XdpConfig, XdpDecoder, XdpFeed,
};
use tickwire_market::{Counter, Nanos};
use tickwire_rig::{Forgery, Numbers, Outcome, RigConfig, run};

/// A product of NYSE on both sides.
trait Product {
    type Channel: Channel;
    const DEPTH: Depth;
    /// Events that a day must have.
    const KINDS: &[&str];
    /// Whether it says that a trade was broken.
    const BREAKS: bool;
    /// What the venue allows.
    const LIMITS: RecoveryLimits;
    /// Where its datagrams have their numbers.
    const NUMBERS: Numbers;
    fn channel(arbiter: ArbiterConfig, requests: RequestConfig) -> Self::Channel;
    fn publisher(config: NysePublisherConfig, listings: &[Listing]) -> Box<dyn Publisher>;
}

struct Integrated;

impl Product for Integrated {
    type Channel = XdpChannel;
    const DEPTH: Depth = Depth::ByOrder;
    const KINDS: &[&str] = &[
        "Add",
        "Modify",
        "Execute",
        "Delete",
        "Replace",
        "Trade",
        "Imbalance",
        "Status",
    ];
    const BREAKS: bool = true;
    const LIMITS: RecoveryLimits = RecoveryLimits::XDP;
    const NUMBERS: Numbers = Numbers::XDP;

    fn channel(arbiter: ArbiterConfig, requests: RequestConfig) -> XdpChannel {
        let decoder = XdpDecoder::new(XdpConfig {
            instruments_max: 1000,
            ..XdpConfig::default()
        });
        let requests = RequestConfig {
            product: 11,
            ..requests
        };
        XdpChannel::new(XdpFeed::new(arbiter, decoder), requests)
    }

    fn publisher(config: NysePublisherConfig, listings: &[Listing]) -> Box<dyn Publisher> {
        Box::new(XdpPublisher::new(config, listings))
    }
}

struct OpenBook;

impl Product for OpenBook {
    type Channel = OpenBookChannel;
    const DEPTH: Depth = Depth::ByPrice;
    const KINDS: &[&str] = &["Level", "Status", "Clear", "Definition"];
    const BREAKS: bool = false;
    const LIMITS: RecoveryLimits = RecoveryLimits::OPENBOOK;
    const NUMBERS: Numbers = Numbers::OPENBOOK;

    fn channel(arbiter: ArbiterConfig, requests: RequestConfig) -> OpenBookChannel {
        let decoder = OpenBookDecoder::new(OpenBookConfig {
            instruments_max: 1000,
            ..OpenBookConfig::default()
        });
        let requests = RequestConfig {
            product: 12,
            ..requests
        };
        OpenBookChannel::new(OpenBookFeed::new(arbiter, decoder), requests)
    }

    fn publisher(config: NysePublisherConfig, listings: &[Listing]) -> Box<dyn Publisher> {
        Box::new(OpenBookPublisher::new(config, listings))
    }
}

fn day<P: Product>(
    config: &RigConfig,
    start: Start,
    limits: RequestLimits,
    instruments: u16,
) -> Outcome<P::Channel> {
    let listings = listings(instruments);
    let arbiter = ArbiterConfig {
        start,
        snapshot: true,
        // The day has half a second: no long waits. The quotas are the venue's.
        recovery: RecoveryLimits {
            backoff_ns: 5 * Nanos::MILLI,
            backoff_max_ns: 20 * Nanos::MILLI,
            ..P::LIMITS
        },
        ..ArbiterConfig::default()
    };
    let requests = RequestConfig {
        source_id: b"RIG".into(),
        channel: 1,
        refresh_patience_ns: 20 * Nanos::MILLI,
        ..RequestConfig::default()
    };
    let publisher = NysePublisherConfig {
        limits,
        ..NysePublisherConfig::default()
    };
    run(
        config,
        &listings,
        P::publisher(publisher, &listings),
        P::channel(arbiter, requests),
        P::DEPTH,
    )
}

/// A server that retransmits nothing.
fn refreshes_only() -> RequestLimits {
    RequestLimits {
        retransmissions_max: 0,
        ..RequestLimits::default()
    }
}

/// Asks both products.
macro_rules! both {
    ($($test:ident)*) => {
        mod integrated {
            $(#[test] fn $test() { super::$test::<super::Integrated>(); })*
        }
        mod openbook {
            $(#[test] fn $test() { super::$test::<super::OpenBook>(); })*
        }
    };
}

both! {
    a_day_without_trouble_needs_no_recovery
    icebergs_stops_halts_and_auctions_leave_the_books_what_they_are
    bad_lines_are_made_good_by_retransmissions
    late_joiners_are_made_good_by_a_refresh
    refused_retransmissions_are_made_good_by_refreshes
    a_channel_of_one_instrument_recovers_too
    a_tenth_lost_everywhere_is_made_good_too
    forged_packets_on_one_line_make_no_false_book_live
}

fn a_day_without_trouble_needs_no_recovery<P: Product>() {
    let config = RigConfig {
        compare_every_ms: 20,
        ..RigConfig::default()
    };
    let outcome = day::<P>(&config, Start::Beginning, RequestLimits::default(), 20);
    assert_eq!(outcome.counters.get(Counter::Gaps), 0);
    assert_eq!(outcome.counters.get(Counter::RetransmitRequests), 0);
    assert_eq!(outcome.counters.get(Counter::Malformed), 0);
    assert!(outcome.compared > 10, "{}", outcome.compared);
    for kind in P::KINDS {
        assert!(outcome.events.contains_key(*kind), "{kind}: {:?}", outcome.events);
    }
}

fn icebergs_stops_halts_and_auctions_leave_the_books_what_they_are<P: Product>() {
    let config = RigConfig::every_kind(1);
    let outcome = day::<P>(&config, Start::Beginning, RequestLimits::default(), 20);
    assert!(outcome.compared > 20, "{}", outcome.compared);
    // OpenBook has no word for it.
    let broken = outcome.events.get("TradeBreak").copied().unwrap_or(0);
    let is_told = if P::BREAKS { broken > 10 } else { broken == 0 };
    assert!(is_told, "{:?}", outcome.events);
    assert_eq!(outcome.breaks_unknown, 0);
    assert_eq!(outcome.counters.get(Counter::BookRejects), 0);
}

fn bad_lines_are_made_good_by_retransmissions<P: Product>() {
    let mut retransmitted = 0;
    for seed in 1..=5 {
        let config = RigConfig {
            compare_every_ms: 50,
            read_max: 61,
            ..RigConfig::bad_lines(seed)
        };
        let outcome = day::<P>(&config, Start::Beginning, RequestLimits::default(), 20);
        retransmitted += outcome.counters.get(Counter::PacketsRetransmit);
        assert_eq!(outcome.counters.get(Counter::Snapshots), 0);
        assert_eq!(outcome.connections["replay"], 1);
        assert!(outcome.compared > 0);
    }
    assert!(retransmitted > 0, "some datagram was lost on both lines");
}

fn late_joiners_are_made_good_by_a_refresh<P: Product>() {
    for seed in 1..=5 {
        let config = RigConfig {
            joins_after_ms: 100,
            compare_every_ms: 50,
            read_max: 7,
            ..RigConfig::bad_lines(seed)
        };
        let outcome = day::<P>(&config, Start::Snapshot, RequestLimits::default(), 20);
        assert!(outcome.counters.get(Counter::Snapshots) > 0);
        assert!(outcome.compared > 0);
    }
}

fn refused_retransmissions_are_made_good_by_refreshes<P: Product>() {
    let mut snapshots = 0;
    for seed in 1..=5 {
        let config = RigConfig {
            compare_every_ms: 50,
            ..RigConfig::bad_lines(seed)
        };
        let outcome = day::<P>(&config, Start::Beginning, refreshes_only(), 20);
        snapshots += outcome.counters.get(Counter::Snapshots);
        assert_eq!(outcome.counters.get(Counter::PacketsRetransmit), 0);
        assert!(outcome.compared > 0);
    }
    assert!(snapshots > 0);
}

fn a_channel_of_one_instrument_recovers_too<P: Product>() {
    let late = RigConfig {
        joins_after_ms: 100,
        compare_every_ms: 50,
        ..RigConfig::bad_lines(1)
    };
    let outcome = day::<P>(&late, Start::Snapshot, RequestLimits::default(), 1);
    assert!(outcome.counters.get(Counter::Snapshots) > 0 && outcome.compared > 0);
}

fn a_tenth_lost_everywhere_is_made_good_too<P: Product>() {
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
            let outcome = day::<P>(&config, start, limits, 20);
            let refreshes = outcome.counters.get(Counter::Snapshots);
            assert!(
                refreshes <= 100,
                "{refreshes} refreshes of a day of half a second"
            );
            snapshots += refreshes;
        }
    }
    assert!(snapshots > 0);
}

/// Sent before the venue's datagrams, on one line: whatever is shown as live is right, all the time, and in
/// the end too.
fn forged_packets_on_one_line_make_no_false_book_live<P: Product>() {
    for forgery in [Forgery::Ahead(50_000_000), Forgery::Ahead(1000), Forgery::Content] {
        let config = forgery.day(P::NUMBERS);
        let outcome = day::<P>(&config, Start::Beginning, RequestLimits::default(), 20);
        forgery.was_noticed(&outcome);
    }
}
