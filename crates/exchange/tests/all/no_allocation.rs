//! Once its largest events have been seen, a venue matches and publishes without taking memory: the order
//! flow with icebergs, stops, halts and their auctions, on every feed; what does not keep to it is named with
//! its bound.

use tickwire_exchange::{
    CqsPublisher, CqsPublisherConfig, DayPhase, Exchange, ExchangeConfig, FlowConfig, ItchPublisher,
    ItchPublisherConfig, Mdp3Publisher, Mdp3PublisherConfig, NysePublisherConfig, OpenBookPublisher,
    OrderEntryConfig, OrderKinds, PaceConfig, PitchPublisher, PitchPublisherConfig, PublishedChannel,
    Publisher, UqdfPublisher, UqdfPublisherConfig, XdpPublisher, listings,
};
use tickwire_market::Nanos;
use tickwire_runtime::alloc::{Allocator, count_allocations};

#[global_allocator]
static ALLOCATOR: Allocator = Allocator;

/// 2026-01-05 14:30 UTC.
const START: Nanos = Nanos(1_767_623_400 * Nanos::SECOND);
const STEP: u64 = 20_000;

fn exchange(publisher: Box<dyn Publisher>) -> Exchange {
    let listings = listings(20);
    Exchange::new(
        ExchangeConfig {
            max_orders: 1 << 16,
            flow: FlowConfig {
                max_live: 20_000,
                kinds: OrderKinds::FEW,
                ..FlowConfig::default()
            },
            pace: PaceConfig {
                rate: 50_000,
                ..PaceConfig::default()
            },
            order_entry: OrderEntryConfig {
                connections: 1,
                max_orders: 16,
                ..OrderEntryConfig::default()
            },
            listings,
            ..ExchangeConfig::default()
        },
        vec![PublishedChannel {
            instruments: 1..21,
            publisher,
        }],
    )
}

/// Everything that is due until then, and everything that is to be sent.
fn advance(exchange: &mut Exchange, from: Nanos, ms: u64) -> (Nanos, usize) {
    let (mut now, mut bytes) = (from, 0);
    while now < from.after(ms * Nanos::MILLI) {
        now = now.after(STEP);
        exchange.on_time(now);
        while let Some(datagram) = exchange.poll_datagram(0, now) {
            bytes += datagram.bytes.len();
        }
    }
    (now, bytes)
}

#[test]
fn matching_and_publishing_take_no_memory_on_any_feed() {
    let all = listings(20);
    let nyse = NysePublisherConfig::default;
    let publishers: [(&str, Box<dyn Publisher>); 7] = [
        (
            "itch",
            Box::new(ItchPublisher::new(ItchPublisherConfig::default(), &all)),
        ),
        (
            "pitch",
            Box::new(PitchPublisher::new(PitchPublisherConfig::default(), &all)),
        ),
        ("xdp", Box::new(XdpPublisher::new(nyse(), &all))),
        ("openbook", Box::new(OpenBookPublisher::new(nyse(), &all))),
        (
            "mdp3",
            Box::new(Mdp3Publisher::new(Mdp3PublisherConfig::default(), &all)),
        ),
        (
            "cqs",
            Box::new(CqsPublisher::new(CqsPublisherConfig::default(), &all)),
        ),
        (
            "uqdf",
            Box::new(UqdfPublisher::new(UqdfPublisherConfig::default(), &all)),
        ),
    ];
    for (name, publisher) in publishers {
        let mut exchange = exchange(publisher);
        exchange.open(START);
        let (mut now, _) = advance(&mut exchange, START, 3_000);
        assert_eq!(exchange.phase(), DayPhase::Open, "{name}");
        let before = exchange.total();
        let mut bytes = 0;
        let ((), count) = count_allocations(|| (now, bytes) = advance(&mut exchange, now, 1_000));
        let messages = exchange.total() - before;
        assert!(messages > 5_000 && bytes > 100_000, "{name}: {messages} messages");
        let most = match name {
            // A side of a book that has more levels than ever before grows, once for each doubling.
            "openbook" | "mdp3" => 2 * all.len() as u64,
            _ => 0,
        };
        assert!(
            count.allocations <= most,
            "{name}: {count:?} in {messages} messages"
        );
    }
}
