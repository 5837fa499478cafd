//! Subscriptions that change at random in mid-session, on bad lines, for the feeds whose snapshots are of
//! single instruments: what is wanted becomes right by the venue's own means, what is not is not heard of,
//! and nothing else is disturbed.

use std::sync::Arc;

use tickwire_book::Depth;
use tickwire_exchange::{
    CqsLineConfig, CqsPublisher, CqsPublisherConfig, CqsReset, Listing, Mdp3Publisher, Mdp3PublisherConfig,
    Mdp3View, MoexPublisher, MoexPublisherConfig, NysePublisherConfig, OpenBookPublisher, Publisher,
    RequestLimits, UqdfPublisher, UqdfPublisherConfig, XdpPublisher, listings,
};
use tickwire_feed::{
    ArbiterConfig, Channel, CqsChannel, CqsDecoder, CqsFeed, Mdp3Channel, Mdp3Config, Mdp3Decoder, Mdp3Depth,
    MoexChannel, MoexChannelConfig, MoexConfig, OpenBookChannel, OpenBookConfig, OpenBookDecoder,
    OpenBookFeed, RecoveryLimits, RequestConfig, SipConfig, Start, UqdfChannel, UqdfDecoder, UqdfFeed,
    XdpChannel, XdpConfig, XdpDecoder, XdpFeed,
};
use tickwire_market::{Counter, Nanos};
use tickwire_rig::{Changes, Outcome, RigConfig, run};
use tickwire_testdata::workspace;
use tickwire_wire::fast::Plan;

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
        recovery: RecoveryLimits::XDP,
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

fn mdp3_channel(depth: Mdp3Depth) -> Mdp3Channel {
    let decoder = Mdp3Decoder::new(Mdp3Config {
        depth,
        instruments_max: 512,
        orders_max: 1 << 16,
        ..Mdp3Config::default()
    });
    let replay = Mdp3Channel::replay_config(310, b"ME", b"PW");
    Mdp3Channel::new(Mdp3Channel::arbiter_config(), decoder, replay, Nanos::SECOND)
}

fn mdp3_publisher(view: Mdp3View, listings: &[Listing]) -> Box<dyn Publisher> {
    let config = Mdp3PublisherConfig {
        view,
        loop_interval_ns: 100 * Nanos::MICRO,
        store_bytes: 64 << 20,
        store_packets: 1 << 16,
        ..Mdp3PublisherConfig::default()
    };
    Box::new(Mdp3Publisher::new(config, listings))
}

struct Mdp3ByPrice;

impl Feed for Mdp3ByPrice {
    type Channel = Mdp3Channel;
    const DEPTH: Depth = Depth::ByPrice;
    const RIGHT_WITHIN_MS: Option<u64> = Some(60);

    fn channel() -> Mdp3Channel {
        mdp3_channel(Mdp3Depth::ByPrice)
    }

    fn publisher(listings: &[Listing], _: bool) -> Box<dyn Publisher> {
        mdp3_publisher(Mdp3View::ByPrice, listings)
    }
}

struct Mdp3ByOrder;

impl Feed for Mdp3ByOrder {
    type Channel = Mdp3Channel;
    const DEPTH: Depth = Depth::ByOrder;
    const RIGHT_WITHIN_MS: Option<u64> = Some(100);

    fn channel() -> Mdp3Channel {
        mdp3_channel(Mdp3Depth::ByOrder)
    }

    fn publisher(listings: &[Listing], _: bool) -> Box<dyn Publisher> {
        mdp3_publisher(Mdp3View::ByOrder, listings)
    }
}

struct Moex;

impl Feed for Moex {
    type Channel = MoexChannel;
    const DEPTH: Depth = Depth::ByOrder;
    const RIGHT_WITHIN_MS: Option<u64> = Some(100);

    fn channel() -> MoexChannel {
        let mut config = MoexChannelConfig::new(MoexConfig::new(plan()));
        // The day has half a second: with the exchange's one connection a second a gap would last longer than
        // it does.
        let patience = (20 * Nanos::MILLI, 100 * Nanos::MILLI);
        (
            config.arbiter.recovery.timeout_min_ns,
            config.arbiter.request_timeout_ns,
        ) = patience;
        config.arbiter.recovery.requests_per_second = 50;
        MoexChannel::new(config).unwrap()
    }

    fn publisher(listings: &[Listing], refuses: bool) -> Box<dyn Publisher> {
        let config = MoexPublisherConfig {
            snapshot_interval_ns: match refuses {
                true => Nanos::DAY,
                false => 100 * Nanos::MICRO,
            },
            ..MoexPublisherConfig::default()
        };
        Box::new(MoexPublisher::new(config, plan(), listings).unwrap())
    }
}

fn plan() -> Arc<Plan> {
    let text = std::fs::read_to_string(workspace().join("examples/moex-templates.xml"));
    Arc::new(Plan::parse(&text.unwrap()).unwrap())
}

struct Cqs;

impl Feed for Cqs {
    type Channel = CqsChannel;
    const DEPTH: Depth = Depth::ByPrice;
    const RIGHT_WITHIN_MS: Option<u64> = Some(100);

    fn channel() -> CqsChannel {
        let config = SipConfig::default();
        CqsChannel::new(CqsFeed::new(
            CqsChannel::arbiter_config(),
            CqsDecoder::new(&config),
        ))
    }

    fn publisher(listings: &[Listing], refuses: bool) -> Box<dyn Publisher> {
        cqs_publisher(listings, if refuses { 0 } else { 20 * Nanos::MILLI }, None)
    }
}

fn cqs_publisher(listings: &[Listing], snapshot_ns: u64, reset: Option<CqsReset>) -> Box<dyn Publisher> {
    let config = CqsPublisherConfig {
        line: CqsLineConfig {
            snapshot_ns,
            asked_again_ppm: 1_000_000,
            reset,
            ..CqsLineConfig::default()
        },
        ..CqsPublisherConfig::default()
    };
    Box::new(CqsPublisher::new(config, listings))
}

/// Its numbers begin anew in the middle of the day: at 1, or far above.
struct CqsAnew<const TO: u32>;

impl<const TO: u32> Feed for CqsAnew<TO> {
    type Channel = CqsChannel;
    const DEPTH: Depth = Depth::ByPrice;
    const RIGHT_WITHIN_MS: Option<u64> = None;

    fn channel() -> CqsChannel {
        Cqs::channel()
    }

    fn publisher(listings: &[Listing], _: bool) -> Box<dyn Publisher> {
        let reset = CqsReset { after: 300, to: TO };
        cqs_publisher(listings, 20 * Nanos::MILLI, Some(reset))
    }
}

struct Uqdf;

impl Feed for Uqdf {
    type Channel = UqdfChannel;
    const DEPTH: Depth = Depth::ByPrice;
    // There is no snapshot: the next quotes that change both sides.
    const RIGHT_WITHIN_MS: Option<u64> = None;

    fn channel() -> UqdfChannel {
        let decoder = UqdfDecoder::new(&SipConfig::default());
        UqdfChannel::new(UqdfFeed::new(ArbiterConfig::default(), decoder))
    }

    fn publisher(listings: &[Listing], _: bool) -> Box<dyn Publisher> {
        Box::new(UqdfPublisher::new(UqdfPublisherConfig::default(), listings))
    }
}

/// How many days; more are asked for with `SEEDS`.
fn seeds() -> u64 {
    let asked = std::env::var("SEEDS").ok();
    asked.and_then(|seeds| seeds.parse().ok()).unwrap_or(1)
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
    assert_eq!(
        outcome.counters.get(Counter::BookRejects),
        0,
        "seed {}",
        config.seed
    );
    assert_eq!(
        outcome.counters.get(Counter::Malformed),
        0,
        "seed {}",
        config.seed
    );
    outcome
}

fn changing<F: Feed>(seed: u64) -> RigConfig {
    RigConfig {
        compare_every_ms: 1,
        changes: Some(Changes {
            right_within_ms: F::RIGHT_WITHIN_MS,
            counts_passed: true,
            ..Changes::default()
        }),
        ..RigConfig::bad_lines(seed)
    }
}

/// Asks a feed.
macro_rules! asks {
    ($name:ident $feed:ident: $($test:ident)*) => {
        mod $name {
            $(#[test] fn $test() { super::$test::<super::$feed>(); })*
        }
    };
}

/// Asks every feed the same, and those whose snapshots can be refused what happens then.
macro_rules! asks_all {
    ($($name:ident $feed:ident $(: $test:ident)?)*) => {
        $(asks! {
            $name $feed:
            changes_on_bad_lines_leave_every_live_book_right
            changes_on_very_bad_lines_take_longer
            changes_on_good_lines_disturb_nobody
            hundreds_at_once_become_right
            $($test)?
        })*
    };
}

asks_all! {
    xdp Xdp: without_snapshots_books_stay_marked
    openbook OpenBook: without_snapshots_books_stay_marked
    mdp3_by_price Mdp3ByPrice
    mdp3_by_order Mdp3ByOrder
    moex Moex: without_snapshots_books_stay_marked
    cqs Cqs
    uqdf Uqdf
}

fn changes_on_bad_lines_leave_every_live_book_right<F: Feed>() {
    let (mut right, mut begun, mut done) = (0, 0, 0);
    for seed in 1..=seeds() {
        let outcome = day::<F>(&changing::<F>(seed), 20, false);
        right += outcome.changed.right;
        begun += outcome.counters.get(Counter::JoinsBegun);
        done += outcome.counters.get(Counter::JoinsDone);
        assert!(outcome.compared > 20, "{}", outcome.compared);
        assert!(outcome.counters.get(Counter::MessagesFiltered) > 0);
    }
    assert!(right > 100, "{right}");
    assert!(
        begun > 50 * seeds() && done > begun / 4 && done <= begun,
        "{begun} begun, {done} done"
    );
}

/// A tenth of everything is lost, the requests' answers too: it takes longer, and what says that it is live
/// is right.
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
    for (connects, refuses) in [(false, true), (true, true)] {
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
    for seed in 1..=seeds() {
        let mut config = changing::<F>(seed);
        config.changes = Some(Changes {
            every_ms: 30,
            pinned: 30,
            patterns_only: true,
            right_within_ms: F::RIGHT_WITHIN_MS.map(|ms| ms * 3),
            ..Changes::default()
        });
        let outcome = day::<F>(&config, 300, false);
        assert!(
            outcome.changed.right > 1000,
            "{} {:?}",
            outcome.compared,
            outcome.changed
        );
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

/// Instruments that join while the numbers begin anew, before and behind the snapshot that follows.
#[test]
fn changes_around_a_reset_leave_every_live_book_right() {
    for seed in 1..=seeds() {
        let (low, high) = (changing::<CqsAnew<1>>(seed), changing::<CqsAnew<50_000>>(seed));
        let low = day::<CqsAnew<1>>(&low, 40, false);
        let high = day::<CqsAnew<50_000>>(&high, 40, false);
        for outcome in [low, high] {
            assert!(outcome.counters.get(Counter::Snapshots) > 0);
            assert!(outcome.changed.subscribed > 20, "{:?}", outcome.changed);
        }
    }
}
