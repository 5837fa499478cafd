//! Several simulated venues at once, over bad lines: what they relay goes, in the order of its receive times,
//! to consolidated books and to naive ones.

use tickwire_book::naive::{NaiveSuper, NaiveSuperBooks};
use tickwire_book::super_books::{Mover, Presence, Source};
use tickwire_book::{Books, Depth, SourceId, SuperBooks, SuperConfig, SuperId, SuperRef, SuperUpdate};
use tickwire_exchange::{
    CqsPublisher, CqsPublisherConfig, ItchPublisher, ItchPublisherConfig, NysePublisherConfig,
    OpenBookPublisher, PitchPublisher, PitchPublisherConfig, Publisher, UnitConfig, XdpPublisher, listings,
};
use tickwire_feed::{
    ArbiterConfig, Channel, CqsChannel, CqsDecoder, CqsFeed, ItchChannel, ItchConfig, ItchDecoder, ItchFeed,
    OpenBookChannel, OpenBookConfig, OpenBookDecoder, OpenBookFeed, PitchChannel, PitchChannelConfig,
    PitchConfig, RequestConfig, SipConfig, SoupConfig, Start, XdpChannel, XdpConfig, XdpDecoder, XdpFeed,
    consolidated,
};
use tickwire_market::{EventKind, InstrumentId, MarketEvent, Nanos, Side, Symbol, Venue};
use tickwire_rig::{RigConfig, run};

const SYMBOLS: u16 = 12;

/// A venue's day: what it relayed, and its books in the end.
struct Day {
    instruments: Vec<(InstrumentId, Symbol)>,
    relayed: Vec<MarketEvent>,
    books: Books,
}

fn day<C: Channel>(seed: u64, publisher: Box<dyn Publisher>, channel: C, depth: Depth) -> Day {
    let config = RigConfig {
        rate: 6_000,
        duration_ms: 300,
        keeps_relayed: true,
        ..RigConfig::bad_lines(seed)
    };
    let listings = listings(SYMBOLS);
    let outcome = run(&config, &listings, publisher, channel, depth);
    let instrument = |symbol: &Symbol| {
        let id = outcome.channel.find(symbol)?;
        Some((id, consolidated(outcome.channel.venue(), symbol)?))
    };
    let instruments: Vec<_> = listings
        .iter()
        .filter_map(|listing| instrument(&listing.symbol))
        .collect();
    assert_eq!(instruments.len(), SYMBOLS as usize);
    Day {
        instruments,
        relayed: outcome.relayed,
        books: outcome.books,
    }
}

fn arbiter(start: Start) -> ArbiterConfig {
    ArbiterConfig {
        start,
        snapshot: true,
        ..ArbiterConfig::default()
    }
}

fn requests(product: u8) -> RequestConfig {
    RequestConfig {
        source_id: b"RIG".into(),
        channel: 1,
        product,
        refresh_patience_ns: 20 * Nanos::MILLI,
        ..RequestConfig::default()
    }
}

fn pitch(seed: u64, venue: Venue) -> Day {
    let unit = 3;
    let publisher = PitchPublisherConfig {
        venue,
        unit: UnitConfig {
            unit,
            ..UnitConfig::default()
        },
        ..PitchPublisherConfig::default()
    };
    let receiver = PitchChannelConfig {
        unit,
        decoder: PitchConfig {
            venue,
            instruments_max: 64,
            orders_max: 1 << 16,
            ..PitchConfig::default()
        },
        ..PitchChannelConfig::default()
    };
    let publisher = Box::new(PitchPublisher::new(publisher, &listings(SYMBOLS)));
    day(seed, publisher, PitchChannel::new(receiver), Depth::ByOrder)
}

/// Nasdaq, two of Cboe, two feeds of NYSE, and the consolidated quotes.
fn days() -> Vec<(bool, Day)> {
    let listings = listings(SYMBOLS);
    let itch = ItchFeed::new(arbiter(Start::default()), ItchDecoder::new(ItchConfig::default()));
    let xdp = XdpDecoder::new(XdpConfig {
        instruments_max: 64,
        ..XdpConfig::default()
    });
    let openbook = OpenBookDecoder::new(OpenBookConfig {
        instruments_max: 64,
        ..OpenBookConfig::default()
    });
    let cqs = CqsFeed::new(
        CqsChannel::arbiter_config(),
        CqsDecoder::new(&SipConfig::default()),
    );
    let xdp = XdpChannel::new(XdpFeed::new(arbiter(Start::default()), xdp), requests(11));
    let openbook = OpenBookFeed::new(arbiter(Start::default()), openbook);
    let nyse = NysePublisherConfig::default;
    vec![
        (
            false,
            day(
                11,
                Box::new(ItchPublisher::new(ItchPublisherConfig::default(), &listings)),
                ItchChannel::new(itch, SoupConfig::default()),
                Depth::Aggregated,
            ),
        ),
        (false, pitch(12, Venue::Bzx)),
        (false, pitch(13, Venue::Edgx)),
        (
            false,
            day(
                14,
                Box::new(XdpPublisher::new(nyse(), &listings)),
                xdp,
                Depth::ByOrder,
            ),
        ),
        (
            false,
            day(
                15,
                Box::new(OpenBookPublisher::new(nyse(), &listings)),
                OpenBookChannel::new(openbook, requests(12)),
                Depth::ByPrice,
            ),
        ),
        (
            true,
            day(
                16,
                Box::new(CqsPublisher::new(CqsPublisherConfig::default(), &listings)),
                CqsChannel::new(cqs),
                Depth::ByPrice,
            ),
        ),
    ]
}

#[test]
fn six_venues_over_bad_lines_make_the_super_books_of_the_naive_merge() {
    let days = days();
    let sources: Vec<Source> = days
        .iter()
        .enumerate()
        .map(|(feed, (is_national, _))| Source {
            feed: feed as u8,
            is_national: *is_national,
        })
        .collect();
    let mut fast = SuperBooks::new(SuperConfig {
        sources: sources.clone(),
        symbols: 16,
        members: 128,
        shares: 1 << 18,
    });
    let mut naive = NaiveSuperBooks::new(&sources);
    let mut events: Vec<(Nanos, SourceId, &MarketEvent)> = Vec::new();
    for (n, (_, day)) in days.iter().enumerate() {
        let source = SourceId(n as u16);
        for (instrument, symbol) in &day.instruments {
            let id = naive.define(source, *instrument, symbol);
            let mut ignored = |_: &SuperRef<'_>, _: &SuperUpdate| {};
            assert_eq!(fast.define(source, *instrument, symbol, &mut ignored), id);
        }
        assert!(day.relayed.len() > 200, "{n}: {}", day.relayed.len());
        // Each source's own order stays: the sort is stable.
        let mut clock = Nanos::ZERO;
        events.extend(day.relayed.iter().map(|event| {
            clock = clock.max(event.recv_ts);
            (clock, source, event)
        }));
    }
    events.sort_by_key(|event| event.0);
    let (mut apart, mut away, mut compared) = (0, 0, 0);
    for (n, (_, source, event)) in events.iter().enumerate() {
        let mut touched = None;
        let mut sink = |book: &SuperRef<'_>, update: &SuperUpdate| {
            touched = Some(update.id);
            apart += u32::from(book.difference(Side::Bid).mover != Mover::Nobody);
            away += u32::from(!book.away().is_empty());
        };
        let got = fast.apply(*source, event, &mut sink);
        assert_eq!(got, naive.apply(*source, event), "event {n} {event:?}");
        let is_rare = matches!(
            event.kind,
            EventKind::Gap | EventKind::Recovered | EventKind::Clear
        );
        if let Some(id) = touched
            && (n % 16 == 0 || is_rare)
        {
            assert_eq!(
                NaiveSuper::from(fast.book(id).unwrap()),
                naive.book(id),
                "event {n} {event:?}"
            );
            compared += 1;
        }
    }
    for index in 0..naive.len() {
        let id = SuperId(index as u32);
        assert_eq!(NaiveSuper::from(fast.book(id).unwrap()), naive.book(id));
    }
    assert!(
        apart > 0 && away > 0 && compared > 500,
        "{apart} {away} {compared}"
    );
    // In the end every venue's share is that venue's book.
    for (n, (is_national, day)) in days
        .iter()
        .enumerate()
        .filter(|(_, (is_national, _))| !is_national)
    {
        assert!(!is_national);
        for (instrument, symbol) in &day.instruments {
            let book = fast.book(fast.find(symbol).unwrap()).unwrap();
            assert_eq!(book.member(n as u8).unwrap().presence, Presence::Live);
            for side in Side::BOTH {
                let shares = book.shares(side).filter(|share| share.feed == n as u8);
                let theirs = day.books.book(*instrument).unwrap();
                assert!(
                    theirs.levels(side).eq(shares.map(|share| tickwire_market::Level {
                        price: share.price,
                        qty: share.qty,
                        orders: share.orders,
                    })),
                    "{symbol} of {n}, {side:?}"
                );
            }
        }
    }
}
