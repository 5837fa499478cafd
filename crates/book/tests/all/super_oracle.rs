//! The consolidated books against the naive ones, on seeded random streams of good and bad events of many
//! sources; and a publisher that writes only what it is told, against the whole.

use tickwire_book::naive::{NaiveSuper, NaiveSuperBooks};
use tickwire_book::super_books::{
    FeedMask, Market, Share, Source, SuperFlags, define_event, end_event, undefine_event,
};
use tickwire_book::{SourceId, SuperBooks, SuperConfig, SuperId, SuperRef, SuperUpdate};
use tickwire_market::{
    EventFlags, EventKind, InstrumentId, MarketEvent, Nanos, Price, Side, Symbol, TradingStatus, Volume,
};
use tickwire_testdata::Rng;

const SYMBOLS: [&str; 5] = ["A", "B", "C.A", "C", "ZVZZT"];

/// Three feeds of one channel, one of two, two consolidated ones.
fn sources() -> Vec<Source> {
    [
        (0, false),
        (1, false),
        (1, false),
        (2, false),
        (31, false),
        (3, true),
        (4, true),
    ]
    .map(|(feed, is_national)| Source { feed, is_national })
    .to_vec()
}

/// What a publisher has written so far, told by updates only.
#[derive(Clone, Default)]
struct Slot {
    shares: [Vec<Share>; 2],
    best: [Option<tickwire_book::super_books::SuperLevel>; 2],
    market: Market,
    masks: [FeedMask; 3],
    national: Option<tickwire_book::super_books::National>,
    difference: [tickwire_book::super_books::Difference; 2],
    trade: Option<(tickwire_book::super_books::LastTrade, u8)>,
    volume: Volume,
}

impl Slot {
    fn write(&mut self, book: &SuperRef<'_>, update: &SuperUpdate) {
        let flags = update.changed;
        let of = |bid: SuperFlags, side: Side| SuperFlags(bid.0 << side as u32);
        for side in Side::BOTH {
            let (first, end) = (update.first[side as usize], update.end[side as usize]);
            let kept = &mut self.shares[side as usize];
            if !flags.has(of(SuperFlags::BIDS, side)) {
                assert_eq!((first, end), (u32::MAX, 0));
            } else if end == u32::MAX {
                kept.truncate(first as usize);
                kept.extend(book.shares(side).skip(first as usize));
            } else {
                for rank in first..end {
                    kept[rank as usize] = book.shares(side).nth(rank as usize).unwrap();
                }
            }
            if flags.has(of(SuperFlags::BEST_BID, side)) {
                let best = book.best(side);
                assert_ne!(self.best[side as usize], best, "said to be different");
                self.best[side as usize] = best;
            }
        }
        if flags.has(SuperFlags::MARKET) {
            assert_ne!(self.market, book.market(), "said to be different");
            self.market = book.market();
        }
        if flags.has(SuperFlags::FEEDS) {
            self.masks = [book.feeds(), book.away(), book.idle()];
        }
        if flags.has(SuperFlags::NATIONAL) {
            self.national = book.national();
        }
        if flags.has(SuperFlags::DIFFERENCE) {
            self.difference = Side::BOTH.map(|side| book.difference(side));
        }
        if flags.has(SuperFlags::TRADE) {
            (self.trade, self.volume) = (book.last_trade(), book.volume());
        }
    }
}

struct Stream {
    rng: Rng,
    clock: u64,
    /// How wide prices range.
    width: u64,
}

impl Stream {
    fn source(&mut self) -> SourceId {
        SourceId(self.rng.below(7) as u16)
    }

    fn instrument(&mut self) -> InstrumentId {
        InstrumentId(1 + self.rng.below(5) as u32)
    }

    fn qty(&mut self) -> Volume {
        match self.rng.below(100) {
            0 => Volume(1 << 44),
            1 => Volume((1 << 44) - 1),
            2..50 => Volume(0),
            _ => Volume(1 + self.rng.below(5)),
        }
    }

    fn event(&mut self) -> MarketEvent {
        let kind = match self.rng.below(400) {
            0 | 1 => EventKind::Gap,
            2..8 => EventKind::Recovered,
            8 => EventKind::Clear,
            9..12 => EventKind::Status,
            12..20 => EventKind::Trade,
            20..24 => EventKind::TradeBreak,
            24..60 => EventKind::Quote,
            60 => EventKind::from_u8(1 + self.rng.below(17) as u8).unwrap(),
            _ => EventKind::Level,
        };
        let is_whole =
            !matches!(kind, EventKind::Level | EventKind::Quote | EventKind::Trade) && self.rng.chance(1, 4);
        // Mostly in order: threads' stamps may be a little earlier than the latest.
        self.clock += self.rng.below(20);
        MarketEvent {
            kind,
            venue_ts: Nanos(self.clock / 2),
            recv_ts: Nanos(self.clock - self.rng.below(3).min(self.clock)),
            instrument: if is_whole {
                InstrumentId::WHOLE_FEED
            } else if self.rng.chance(1, 40) {
                InstrumentId(self.rng.below(9) as u32)
            } else {
                self.instrument()
            },
            side: if self.rng.chance(1, 2) {
                Side::Bid
            } else {
                Side::Ask
            },
            status: TradingStatus::from_u8(self.rng.below(8) as u8).unwrap(),
            price: Price::from_raw(self.rng.below(self.width) as i64 - 4),
            qty: self.qty(),
            ask_price: Price::from_raw(self.rng.below(self.width) as i64 - 3),
            ask_qty: self.qty(),
            order_count: [0, 1, 9, u32::MAX][self.rng.below(4) as usize],
            flags: match self.rng.below(12) {
                0 => EventFlags::UNUSABLE,
                1 => EventFlags::NOT_PRINTABLE,
                _ => EventFlags::LAST,
            },
            code: [
                if self.rng.chance(1, 5) { b'N' } else { 0 },
                b'P',
                b'Z',
                0,
                0,
                0,
                0,
                0,
            ],
            ..MarketEvent::default()
        }
    }
}

/// What is told of some ranks while no feed is out is what all shares have there.
fn assert_between(book: &SuperRef<'_>, rng: &mut Rng) {
    let side = Side::BOTH[rng.below(2) as usize];
    let count = book.totals(side).shares as u64;
    let (first, end) = (rng.below(count + 2) as usize, rng.below(count + 3) as usize);
    let Some(between) = book.shares_between(side, first, end) else {
        assert!(!book.away().is_empty(), "a feed is out");
        return;
    };
    assert!(book.away().is_empty(), "no feed is out");
    let those = book.shares(side).skip(first).take(end.saturating_sub(first));
    assert!(between.eq(those), "{side:?} {first} {end} of {count}");
}

fn compare(seed: u64, events: u64, width: u64) {
    let mut fast = SuperBooks::new(SuperConfig {
        sources: sources(),
        symbols: 8,
        members: 64,
        shares: 1 << 16,
    });
    let mut naive = NaiveSuperBooks::new(&sources());
    let mut slots: Vec<Slot> = vec![Slot::default(); SYMBOLS.len()];
    let mut stream = Stream {
        rng: Rng::new(seed),
        clock: 0,
        width,
    };
    for n in 0..events {
        let source = stream.source();
        let mut sink = |book: &SuperRef<'_>, update: &SuperUpdate| {
            assert_eq!(book.id(), update.id);
            assert_ne!(update.changed, SuperFlags::NONE);
            slots[update.id.0 as usize].write(book, update);
        };
        let choice = stream.rng.below(300);
        let what = match choice {
            // Everything by its event or by its function, which do the same.
            0..12 => {
                let instrument = stream.instrument();
                let symbol = SYMBOLS[stream.rng.below(SYMBOLS.len() as u64) as usize];
                let symbol = Symbol::new(symbol.as_bytes()).unwrap();
                let expected = naive.define(source, instrument, &symbol);
                if choice < 6 {
                    assert_eq!(
                        fast.define(source, instrument, &symbol, &mut sink),
                        expected,
                        "seed {seed} {n}"
                    );
                } else {
                    let got = fast.apply(source, &define_event(instrument, &symbol), &mut sink);
                    assert_eq!(got, expected.map(|_| ()), "seed {seed} event {n}");
                }
                format!("define {source:?} {instrument:?} {symbol}")
            }
            12..16 => {
                let instrument = stream.instrument();
                naive.undefine(source, instrument);
                if choice < 14 {
                    fast.undefine(source, instrument, &mut sink).unwrap();
                } else {
                    fast.apply(source, &undefine_event(instrument), &mut sink)
                        .unwrap();
                }
                format!("undefine {source:?} {instrument:?}")
            }
            16 => {
                naive.end(source);
                fast.apply(source, &end_event(), &mut sink).unwrap();
                format!("end {source:?}")
            }
            _ => {
                let event = stream.event();
                let expected = naive.apply(source, &event);
                let got = fast.apply(source, &event, &mut sink);
                assert_eq!(got, expected, "seed {seed} event {n} {event:?}");
                format!("{source:?} {event:?}")
            }
        };
        // A number that was not given, too: asking for lines changes nothing.
        for id in (0..=naive.len() as u32).map(SuperId) {
            fast.upcoming(id);
            fast.approach(id);
        }
        for (index, slot) in slots.iter().enumerate().take(naive.len()) {
            let id = SuperId(index as u32);
            assert_between(&fast.book(id).unwrap(), &mut stream.rng);
            let (got, expected) = (NaiveSuper::from(fast.book(id).unwrap()), naive.book(id));
            assert_eq!(got, expected, "seed {seed} event {n} {what}");
            let masks = [expected.feeds, expected.away, expected.idle];
            assert_eq!(
                slot.shares, expected.shares,
                "written: seed {seed} event {n} {what}"
            );
            assert_eq!(
                (slot.best, slot.market, slot.masks),
                (expected.best, expected.market, masks),
                "written: seed {seed} event {n} {what}"
            );
            assert_eq!(
                (slot.national, slot.difference, slot.trade, slot.volume),
                (
                    expected.national,
                    expected.difference,
                    expected.trade,
                    expected.volume
                ),
                "written: seed {seed} event {n} {what}"
            );
        }
        assert_eq!(fast.iter().count(), naive.len(), "seed {seed} event {n} {what}");
    }
}

#[test]
fn every_super_book_equals_the_naive_one_and_the_publishers_copy_after_every_event() {
    for seed in 1..=6 {
        compare(seed, 8_000, 14);
    }
}

#[test]
fn deep_super_books_grow_move_and_shrink_like_the_naive_ones() {
    compare(101, 6_000, 600);
    compare(102, 3_000, 90);
}
