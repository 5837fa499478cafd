//! Subscriptions that change at random in mid-session, on bad lines, for the feeds whose snapshots are of single instruments:
//! what is wanted becomes right by the venue's own means, what is not is not heard of, and nothing else is disturbed.

use tickwire_book::Depth;
use tickwire_exchange::{
    Listing, NysePublisherConfig, OpenBookPublisher, Publisher, RequestLimits, XdpPublisher, listings,
};
use tickwire_feed::{
    ArbiterConfig, Channel, OpenBookChannel, OpenBookConfig, OpenBookDecoder, OpenBookFeed, RequestConfig,
    Start, XdpChannel, XdpConfig, XdpDecoder, XdpFeed,
};
use tickwire_market::{Counter, Nanos};
use tickwire_rig::{Changes, Outcome, RigConfig, run};

/// A feed on both sides.
trait Feed {
    type Channel: Channel;
    const DEPTH: Depth;
    /// How long after a subscription a book must be right, milliseconds: some turns of the venue's snapshots.
    const RIGHT_WITHIN_MS: Option<u64>;
    fn channel() -> Self::Channel;
    fn publisher(listings: &[Listing], refuses: bool) -> Box<dyn Publisher>;
}

fn nyse(product: u8) -> (ArbiterConfig, RequestConfig) {
    let arbiter = ArbiterConfig {
        start: Start::Beginning,
        snapshot: true,
        ..ArbiterConfig::default()
    };
    let requests = RequestConfig {
        source_id: b"RIG".into(),
        product,
        channel: 1,
        refresh_patience_ns: 10 * Nanos::MILLI,
        ..RequestConfig::default()
    };
    (arbiter, requests)
}

fn nyse_publisher(refuses: bool) -> NysePublisherConfig {
    let refreshes_max = if refuses { 0 } else { 5000 };
    NysePublisherConfig {
        limits: RequestLimits {
            refreshes_max,
            ..RequestLimits::default()
        },
        ..NysePublisherConfig::default()
    }
}

struct Xdp;

impl Feed for Xdp {
    type Channel = XdpChannel;
    const DEPTH: Depth = Depth::ByOrder;
    const RIGHT_WITHIN_MS: Option<u64> = Some(60);

    fn channel() -> XdpChannel {
        let decoder = XdpDecoder::new(XdpConfig {
            instruments_max: 1000,
            ..XdpConfig::default()
        });
        let (arbiter, requests) = nyse(11);
        XdpChannel::new(XdpFeed::new(arbiter, decoder), requests)
    }

    fn publisher(listings: &[Listing], refuses: bool) -> Box<dyn Publisher> {
        Box::new(XdpPublisher::new(nyse_publisher(refuses), listings))
    }
}

struct OpenBook;

impl Feed for OpenBook {
    type Channel = OpenBookChannel;
    const DEPTH: Depth = Depth::ByPrice;
    const RIGHT_WITHIN_MS: Option<u64> = Some(60);

    fn channel() -> OpenBookChannel {
        let decoder = OpenBookDecoder::new(OpenBookConfig {
            instruments_max: 1000,
            ..OpenBookConfig::default()
        });
        let (arbiter, requests) = nyse(12);
        OpenBookChannel::new(OpenBookFeed::new(arbiter, decoder), requests)
    }

    fn publisher(listings: &[Listing], refuses: bool) -> Box<dyn Publisher> {
        Box::new(OpenBookPublisher::new(nyse_publisher(refuses), listings))
    }
}

/// How many days; more are asked for with `SEEDS`.
fn seeds() -> u64 {
    let asked = std::env::var("SEEDS").ok();
    asked.and_then(|seeds| seeds.parse().ok()).unwrap_or(5)
}

fn day<F: Feed>(config: &RigConfig, instruments: u16, refuses: bool) -> Outcome<F::Channel> {
    let listings = listings(instruments);
    let outcome = run(
        config,
        &listings,
        F::publisher(&listings, refuses),
        F::channel(),
        F::DEPTH,
    );
    assert_eq!(outcome.counters.get(Counter::BookRejects), 0, "seed {}", config.seed);
    assert_eq!(outcome.counters.get(Counter::Malformed), 0, "seed {}", config.seed);
    outcome
}

fn changing<F: Feed>(seed: u64) -> RigConfig {
    RigConfig {
        compare_every_ms: 1,
        changes: Some(Changes {
            right_within_ms: F::RIGHT_WITHIN_MS,
            ..Changes::default()
        }),
        ..RigConfig::bad_lines(seed)
    }
}

/// Asks every feed.
macro_rules! every_feed {
    ($($test:ident)*) => {
        every_feed!(@ xdp Xdp $($test)*);
        every_feed!(@ openbook OpenBook $($test)*);
    };
    (@ $name:ident $feed:ident $($test:ident)*) => {
        mod $name {
            $(#[test] fn $test() { super::$test::<super::$feed>(); })*
        }
    };
}

every_feed! {
    changes_on_bad_lines_leave_every_live_book_right
    changes_on_very_bad_lines_take_longer
    changes_on_good_lines_disturb_nobody
    without_snapshots_books_stay_marked
    hundreds_at_once_become_right
}

fn changes_on_bad_lines_leave_every_live_book_right<F: Feed>() {
    let mut right = 0;
    for seed in 1..=seeds() {
        let outcome = day::<F>(&changing::<F>(seed), 20, false);
        right += outcome.changed.right;
        assert!(outcome.compared > 20, "{}", outcome.compared);
        assert!(outcome.counters.get(Counter::MessagesFiltered) > 0);
    }
    assert!(right > 100, "{right}");
}

/// A tenth of everything is lost, the requests' answers too: it takes longer, and what says that it is live is right.
fn changes_on_very_bad_lines_take_longer<F: Feed>() {
    let mut right = 0;
    for seed in 1..=seeds() {
        let mut config = changing::<F>(seed);
        config.impair.loss_ppm = 100_000;
        if let Some(changes) = &mut config.changes {
            changes.right_within_ms = None;
        }
        right += day::<F>(&config, 20, false).changed.right;
    }
    assert!(right > 0, "{right}");
}

/// Without answers a book is marked, all day if need be; those that were there are right.
fn without_snapshots_books_stay_marked<F: Feed>() {
    for (connects, refuses) in [(false, false), (true, true)] {
        let mut config = RigConfig {
            connects,
            impair: RigConfig::default().impair,
            ..changing::<F>(3)
        };
        if let Some(changes) = &mut config.changes {
            changes.right_within_ms = None;
        }
        let outcome = day::<F>(&config, 20, refuses);
        assert!(outcome.changed.marked > 100, "{:?}", outcome.changed);
        assert_eq!(outcome.counters.get(Counter::Gaps), 0);
    }
}

/// A pattern that names hundreds at once.
fn hundreds_at_once_become_right<F: Feed>() {
    for seed in 1..=2 {
        let mut config = changing::<F>(seed);
        config.changes = Some(Changes {
            every_ms: 30,
            pinned: 30,
            patterns_only: true,
            right_within_ms: F::RIGHT_WITHIN_MS.map(|ms| ms * 3),
            ..Changes::default()
        });
        let outcome = day::<F>(&config, 300, false);
        assert!(outcome.changed.right > 1000, "{} {:?}", outcome.compared, outcome.changed);
    }
}

/// Those never touched are told the same as if nobody else were subscribed to or not.
fn changes_on_good_lines_disturb_nobody<F: Feed>() {
    let quiet = RigConfig::default();
    let changing = RigConfig {
        impair: quiet.impair,
        ..changing::<F>(quiet.seed)
    };
    let (alone, among) = (day::<F>(&quiet, 20, false), day::<F>(&changing, 20, false));
    assert_eq!(among.counters.get(Counter::Gaps), 0);
    assert_eq!(among.counters.get(Counter::Snapshots), 0);
    assert!(among.changed.right > 100, "{:?}", among.changed);
    for listing in listings(Changes::default().pinned as u16) {
        let id = alone.channel.find(&listing.symbol).unwrap().0;
        assert_eq!(alone.told[&id], among.told[&id], "{}", listing.symbol);
    }
}
