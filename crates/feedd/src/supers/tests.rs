//! What a reader sees of consolidated books is what they are, whatever their sources say in between.

use super::*;
use crate::rehearsal::Room;
use std::sync::mpsc::sync_channel;
use tickwire_book::super_books::{Source, define_event};
use tickwire_market::{EventKind, Price, Symbol, TradingStatus, Volume};
use tickwire_shm::{Reader, RegionConfig, RegionState, SuperCopy};
use tickwire_testdata::Rng;

/// Two venues, of which one has two channels, and a consolidated feed.
const SOURCES: [(u8, bool); 4] = [(0, false), (1, false), (1, false), (2, true)];
const SYMBOLS: [&[u8]; 3] = [b"A", b"B.C", b"ZVZZT"];
/// Shares of a side that a slot shows: fewer than a side has.
const SHOWN: u32 = 5;

/// A group of events of one source: levels near each other, and now and then what has a feed go or come.
fn group(rng: &mut Rng, publisher: &mut SuperPublisher<'_>) {
    let source = rng.below(SOURCES.len() as u64) as u16;
    for _ in 0..=rng.below(4) {
        let kind = match rng.below(60) {
            0 => EventKind::Gap,
            1..4 => EventKind::Recovered,
            4 => EventKind::Clear,
            5 => EventKind::Status,
            6..10 => EventKind::Trade,
            10..16 => EventKind::Quote,
            _ => EventKind::Level,
        };
        let is_whole = matches!(kind, EventKind::Gap | EventKind::Recovered) && rng.chance(1, 2);
        let instrument = match is_whole {
            true => InstrumentId::WHOLE_FEED,
            false => InstrumentId(1 + rng.below(SYMBOLS.len() as u64) as u32),
        };
        let mut price = || Price::from_raw(1_000 + rng.below(30) as i64);
        let prices = [price(), price()];
        publisher.take(
            source,
            tsc(),
            &MarketEvent {
                kind,
                instrument,
                recv_ts: Nanos(rng.below(1_000)),
                side: Side::BOTH[rng.below(2) as usize],
                status: TradingStatus::from_u8(rng.below(8) as u8).unwrap_or_default(),
                price: prices[0],
                qty: Volume(rng.below(3)),
                order_count: rng.below(4) as u32,
                ask_price: prices[1],
                ask_qty: Volume(rng.below(3)),
                ..MarketEvent::default()
            },
        );
    }
    publisher.show_pending();
}

/// Compares a slot with its book.
fn compare(copy: &SuperCopy, book: &SuperRef<'_>, shown: usize) {
    assert_eq!((copy.feeds, copy.stale), (book.feeds().0, book.away().0));
    for side in Side::BOTH {
        assert_eq!(copy.ladders[side as usize], ladder_of(book, side), "{side:?}");
        let shares: Vec<Share> = book.shares(side).take(shown).map(share_of).collect();
        assert_eq!(copy.side(side), shares, "{side:?}");
        let national = book.national().unwrap_or_default().sides[side as usize];
        let told = copy.national[side as usize];
        assert_eq!((told.price, told.qty), (national.price, national.qty), "{side:?}");
        let difference = book.difference(side);
        assert_eq!(copy.difference[side as usize].price, -difference.price.raw());
    }
    let touch = match book.market() {
        Market::Locked => Touch::Locked,
        Market::Crossed => Touch::Crossed,
        Market::OneSided | Market::Normal => Touch::Apart,
    };
    assert_eq!(copy.touch, touch);
    let last = book.last_trade().map_or(Volume::ZERO, |(last, _)| last.qty);
    assert_eq!(
        (copy.last.qty, copy.volume, copy.trades),
        (last, book.volume(), book.trades())
    );
}

#[test]
fn every_slot_is_its_consolidated_book_after_every_group() {
    let room = Room::of(RegionConfig {
        supers: SYMBOLS.len() as u32,
        super_shares: SHOWN,
        ..RegionConfig::default()
    });
    let region = room.region();
    let (notices, _notices) = sync_channel(64);
    let sources = SOURCES.map(|(feed, is_national)| Source { feed, is_national });
    let mut publisher = SuperPublisher::new(
        SuperConfig {
            sources: sources.to_vec(),
            symbols: 8,
            members: 32,
            shares: 1 << 12,
        },
        region,
        &[None; SOURCES.len()],
        Clock::calibrate(),
        notices,
    );
    region.set_state(RegionState::Ready);
    let reader = Reader::attach(room.words()).expect("it is ready");
    let recovered = MarketEvent {
        kind: EventKind::Recovered,
        ..MarketEvent::default()
    };
    // Of the venue's two channels each has its own symbols.
    for (source, named) in [(0, 0..3), (1, 0..2), (2, 2..3), (3, 0..3)] {
        for at in named {
            let symbol = Symbol::new(SYMBOLS[at]).expect("short");
            let instrument = InstrumentId(1 + at as u32);
            publisher.take(source, 0, &define_event(instrument, &symbol));
        }
        publisher.take(source, 0, &recovered);
    }
    publisher.show_pending();
    let (mut rng, mut copy) = (Rng::new(11), SuperCopy::default());
    let (mut whole, mut partly) = (0, 0);
    for _ in 0..20_000 {
        group(&mut rng, &mut publisher);
        for book in publisher.books.iter() {
            let slot = reader.find_super(*book.symbol()).expect("it has changed");
            reader.read_super(slot, &mut copy).expect("nobody writes");
            compare(&copy, &book, SHOWN as usize);
            match book.away().is_empty() {
                true => whole += 1,
                false => partly += 1,
            }
        }
    }
    assert!(
        whole > 1_000 && partly > 1_000,
        "feeds go and come: {whole}, {partly}"
    );
}
