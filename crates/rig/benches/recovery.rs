//! Joining late: how long until a receiver is live, and what it asked for, by feed and by how many messages
//! it is behind. A regression here means that recovery waits where it could ask, asks twice, or takes the
//! slower of its ways.
//!
//! `cargo bench -p tickwire-rig --bench recovery` prints the table of docs/results/recovery.md up to 10^6
//! messages behind, with `-- 10000000` up to 10^7, with names of feeds only those. Time is virtual and the
//! network has a round trip of 1 ms and no limit of bandwidth, so that the table is the same on every
//! machine: it is what protocol, limits and planning cost, not what a machine does.

use std::sync::Arc;

use tickwire_book::Depth;
use tickwire_exchange::{
    CqsPublisher, CqsPublisherConfig, ItchPublisher, ItchPublisherConfig, Listing, Mdp3Publisher,
    Mdp3PublisherConfig, MoexPublisher, MoexPublisherConfig, NysePublisherConfig, OpenBookPublisher,
    PitchPublisher, PitchPublisherConfig, Publisher, UnitConfig, UqdfPublisher, UqdfPublisherConfig,
    XdpPublisher, listings,
};
use tickwire_feed::{
    ArbiterConfig, Channel, CqsChannel, CqsDecoder, CqsFeed, ItchChannel, ItchConfig, ItchDecoder, ItchFeed,
    Mdp3Channel, Mdp3Config, Mdp3Decoder, MoexChannel, MoexChannelConfig, MoexConfig, OpenBookChannel,
    OpenBookConfig, OpenBookDecoder, OpenBookFeed, PitchChannel, PitchChannelConfig, PitchConfig,
    RecoveryLimits, RequestConfig, SipConfig, SoupConfig, UqdfChannel, UqdfDecoder, UqdfFeed, XdpChannel,
    XdpConfig, XdpDecoder, XdpFeed,
};
use tickwire_market::{Counter, Nanos};
use tickwire_rig::{RigConfig, run};
use tickwire_testdata::workspace;
use tickwire_wire::fast::Plan;

/// Messages a second before and while the receiver joins.
const RATE: u32 = 50_000;
/// Instruments.
const LISTED: u16 = 20;
const FEEDS: [&str; 8] = [
    "itch50", "pitch", "xdp", "openbook", "cqs", "uqdf", "mdp3", "moex",
];

struct Row {
    behind: u64,
    live_ms: Option<u64>,
    requests: u64,
    snapshots: u64,
    connections: u64,
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let is_bench = args.iter().any(|arg| arg == "--bench");
    let only: Vec<&String> = args.iter().filter(|arg| FEEDS.contains(&arg.as_str())).collect();
    let most = match is_bench {
        true => args.iter().find_map(|arg| arg.parse().ok()).unwrap_or(1_000_000),
        false => 10_000,
    };
    if is_bench {
        println!("| feed | behind, messages | live after, ms | requests | connections | snapshots |");
        println!("|---|---|---|---|---|---|");
    }
    for feed in FEEDS {
        if !only.is_empty() && !only.iter().any(|name| *name == feed) {
            continue;
        }
        let mut messages = if is_bench { 1_000 } else { most };
        while messages <= most {
            let row = of(feed, messages);
            if is_bench {
                let live = row.live_ms.map_or("not".into(), |ms| ms.to_string());
                println!(
                    "| {feed} | {} | {live} | {} | {} | {} |",
                    row.behind, row.requests, row.connections, row.snapshots
                );
            } else {
                assert!(
                    row.live_ms.is_some_and(|ms| ms <= 2_000),
                    "{feed}: {:?} ms",
                    row.live_ms
                );
            }
            messages *= 10;
        }
    }
}

fn of(feed: &str, messages: u64) -> Row {
    let nyse = |recovery| ArbiterConfig {
        snapshot: true,
        recovery,
        request_messages: RecoveryLimits::NYSE_MESSAGES,
        ..ArbiterConfig::default()
    };
    let requests = |product| RequestConfig {
        source_id: b"RIG".into(),
        product,
        channel: 1,
        ..RequestConfig::default()
    };
    let listed = &listings(LISTED)[..];
    match feed {
        "itch50" => {
            let arbiter = ArbiterConfig {
                snapshot: true,
                ..ArbiterConfig::default()
            };
            let feed = ItchFeed::new(arbiter, ItchDecoder::new(ItchConfig::default()));
            let channel = ItchChannel::new(feed, SoupConfig::default());
            let publisher = ItchPublisher::new(ItchPublisherConfig::default(), listed);
            row(messages, Box::new(publisher), channel, Depth::ByOrder)
        }
        "pitch" => {
            let config = PitchChannelConfig {
                unit: 1,
                decoder: PitchConfig {
                    instruments_max: 64,
                    orders_max: 1 << 18,
                    ..PitchConfig::default()
                },
                ..PitchChannelConfig::default()
            };
            let publisher = PitchPublisherConfig {
                unit: UnitConfig {
                    unit: 1,
                    ..UnitConfig::default()
                },
                ..PitchPublisherConfig::default()
            };
            let publisher = PitchPublisher::new(publisher, listed);
            row(
                messages,
                Box::new(publisher),
                PitchChannel::new(config),
                Depth::ByOrder,
            )
        }
        "xdp" => {
            let decoder = XdpDecoder::new(XdpConfig {
                instruments_max: 1000,
                ..XdpConfig::default()
            });
            let channel = XdpChannel::new(XdpFeed::new(nyse(RecoveryLimits::XDP), decoder), requests(11));
            let publisher = XdpPublisher::new(NysePublisherConfig::default(), listed);
            row(messages, Box::new(publisher), channel, Depth::ByOrder)
        }
        "openbook" => {
            let decoder = OpenBookDecoder::new(OpenBookConfig {
                instruments_max: 1000,
                ..OpenBookConfig::default()
            });
            let feed = OpenBookFeed::new(nyse(RecoveryLimits::OPENBOOK), decoder);
            let channel = OpenBookChannel::new(feed, requests(12));
            let publisher = OpenBookPublisher::new(NysePublisherConfig::default(), listed);
            row(messages, Box::new(publisher), channel, Depth::ByPrice)
        }
        "cqs" => {
            let decoder = CqsDecoder::new(&SipConfig::default());
            let channel = CqsChannel::new(CqsFeed::new(CqsChannel::arbiter_config(), decoder));
            let publisher = CqsPublisher::new(CqsPublisherConfig::default(), listed);
            row(messages, Box::new(publisher), channel, Depth::ByPrice)
        }
        "uqdf" => {
            let decoder = UqdfDecoder::new(&SipConfig::default());
            let channel = UqdfChannel::new(UqdfFeed::new(ArbiterConfig::default(), decoder));
            let publisher = UqdfPublisher::new(UqdfPublisherConfig::default(), listed);
            row(messages, Box::new(publisher), channel, Depth::ByPrice)
        }
        "mdp3" => {
            let decoder = Mdp3Decoder::new(Mdp3Config {
                instruments_max: 64,
                orders_max: 1,
                ..Mdp3Config::default()
            });
            let account = Mdp3Channel::replay_config(310, b"ME", b"PW");
            let channel = Mdp3Channel::new(Mdp3Channel::arbiter_config(), decoder, account, Nanos::SECOND);
            let publisher = Mdp3Publisher::new(Mdp3PublisherConfig::default(), listed);
            row(messages, Box::new(publisher), channel, Depth::ByPrice)
        }
        _ => {
            let templates = std::fs::read_to_string(workspace().join("examples/moex-templates.xml"));
            let plan = Arc::new(Plan::parse(&templates.expect("it is ours")).expect("it is ours"));
            let channel = MoexChannel::new(MoexChannelConfig::new(MoexConfig::new(plan.clone())));
            let publisher = MoexPublisher::new(MoexPublisherConfig::default(), plan, listed);
            let (channel, publisher) = (channel.expect("our templates"), publisher.expect("our templates"));
            row(messages, Box::new(publisher), channel, Depth::ByOrder)
        }
    }
}

/// A receiver that joins so many messages late.
fn row<C: Channel>(messages: u64, publisher: Box<dyn Publisher>, channel: C, depth: Depth) -> Row {
    let joins_after_ms = messages * 1000 / u64::from(RATE);
    let config = RigConfig {
        rate: RATE,
        joins_after_ms,
        duration_ms: joins_after_ms + 2_500,
        round_trip_ns: Nanos::MILLI,
        ..RigConfig::default()
    };
    let listed: Vec<Listing> = listings(LISTED);
    let outcome = run(&config, &listed, publisher, channel, depth);
    let count = |counter| outcome.counters.get(counter);
    Row {
        behind: outcome.live_after.map_or(messages, |(_, behind)| behind),
        live_ms: outcome.live_after.map(|(ns, _)| ns / Nanos::MILLI),
        requests: count(Counter::RetransmitRequests),
        snapshots: count(Counter::Snapshots),
        connections: outcome.connections.values().sum(),
    }
}
