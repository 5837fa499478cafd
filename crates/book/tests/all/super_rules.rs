//! What consolidated books promise, one behaviour a test.

use tickwire_book::super_books::FeedMask;
use tickwire_book::super_books::{
    Market, Mover, Presence, Share, Source, SuperError, SuperFlags, SuperLevel, define_event, end_event,
    undefine_event,
};
use tickwire_book::{SourceId, SuperBooks, SuperConfig, SuperId, SuperRef, SuperUpdate};
use tickwire_market::{
    Counter, EventFlags, EventKind, InstrumentId, MarketEvent, Nanos, Price, Side, Symbol, TradingStatus,
    Volume,
};

/// Feeds 0 to 2 are venues with a source each, feed 1 has a second one; feed 3 is consolidated.
const SOURCES: [Source; 5] = [
    venue(0),
    venue(1),
    venue(1),
    venue(2),
    Source {
        feed: 3,
        is_national: true,
    },
];
const A: SourceId = SourceId(0);
const B: SourceId = SourceId(1);
const B2: SourceId = SourceId(2);
const C: SourceId = SourceId(3);
const SIP: SourceId = SourceId(4);
const STOCK: InstrumentId = InstrumentId(7);
const BOOK: SuperId = SuperId(0);

const fn venue(feed: u8) -> Source {
    Source {
        feed,
        is_national: false,
    }
}

fn symbol(text: &str) -> Symbol {
    Symbol::new(text.as_bytes()).unwrap()
}

/// Consolidated books, and what they told.
struct Bench {
    books: SuperBooks,
    told: Vec<SuperUpdate>,
    clock: u64,
}

impl Bench {
    fn with(config: SuperConfig) -> Bench {
        Bench {
            books: SuperBooks::new(SuperConfig {
                sources: SOURCES.to_vec(),
                ..config
            }),
            told: Vec::new(),
            clock: 0,
        }
    }

    /// All sources live, all with the stock.
    fn new() -> Bench {
        let mut bench = Bench::with(SuperConfig {
            symbols: 4,
            members: 16,
            shares: 512,
            ..SuperConfig::default()
        });
        for source in [A, B, C, SIP] {
            bench.apply(source, whole(EventKind::Recovered)).unwrap();
            bench.define(source, STOCK, "ABC").unwrap();
        }
        bench.told.clear();
        bench
    }

    fn define(
        &mut self,
        source: SourceId,
        instrument: InstrumentId,
        text: &str,
    ) -> Result<SuperId, SuperError> {
        let told = &mut self.told;
        let mut sink = |_: &SuperRef<'_>, update: &SuperUpdate| told.push(*update);
        self.books.define(source, instrument, &symbol(text), &mut sink)
    }

    /// A nanosecond after the event before.
    fn apply(&mut self, source: SourceId, event: MarketEvent) -> Result<(), SuperError> {
        self.clock += 1;
        let event = MarketEvent {
            recv_ts: Nanos(self.clock),
            ..event
        };
        let told = &mut self.told;
        let mut sink = |_: &SuperRef<'_>, update: &SuperUpdate| told.push(*update);
        self.books.apply(source, &event, &mut sink)
    }

    fn level(&mut self, source: SourceId, side: Side, price: u32, qty: u64) {
        self.apply(source, level(side, price, qty)).unwrap();
    }

    fn book(&self) -> SuperRef<'_> {
        self.books.book(BOOK).unwrap()
    }

    /// `price feed qty` of a side, best first.
    fn shares(&self, side: Side) -> Vec<(u32, u8, u64)> {
        let plain = |share: Share| (share.price.raw() as u32 / 100_000, share.feed, share.qty.0);
        self.book().shares(side).map(plain).collect()
    }

    fn last(&mut self) -> SuperUpdate {
        self.told.pop().expect("something was told")
    }
}

fn level(side: Side, price: u32, qty: u64) -> MarketEvent {
    MarketEvent {
        kind: EventKind::Level,
        instrument: STOCK,
        side,
        price: Price::from_4dp(price),
        qty: Volume(qty),
        order_count: 1,
        ..MarketEvent::default()
    }
}

fn whole(kind: EventKind) -> MarketEvent {
    MarketEvent {
        kind,
        ..MarketEvent::default()
    }
}

fn of_stock(kind: EventKind) -> MarketEvent {
    MarketEvent {
        instrument: STOCK,
        ..whole(kind)
    }
}

fn status(instrument: InstrumentId, status: TradingStatus) -> MarketEvent {
    MarketEvent {
        status,
        instrument,
        ..whole(EventKind::Status)
    }
}

fn quote(bid: u32, ask: u32) -> MarketEvent {
    MarketEvent {
        price: Price::from_4dp(bid),
        qty: Volume(100),
        ask_price: Price::from_4dp(ask),
        ask_qty: Volume(100),
        code: [0, b'P', b'Z', 0, 0, 0, 0, 0],
        ..of_stock(EventKind::Quote)
    }
}

fn feeds(feeds: &[u8]) -> FeedMask {
    feeds
        .iter()
        .fold(FeedMask::NONE, |all, &feed| all.with(FeedMask::one(feed)))
}

#[test]
fn shares_are_ordered_by_price_and_then_by_feed_and_merged_by_price() {
    let mut bench = Bench::new();
    for (source, price, qty) in [(C, 100, 3), (A, 101, 5), (B, 100, 2), (A, 100, 1), (B, 99, 9)] {
        bench.level(source, Side::Bid, price, qty);
    }
    assert_eq!(
        bench.shares(Side::Bid),
        [(101, 0, 5), (100, 0, 1), (100, 1, 2), (100, 2, 3), (99, 1, 9)]
    );
    let levels: Vec<SuperLevel> = bench.book().levels(Side::Bid).collect();
    assert_eq!(levels.len(), 3);
    assert_eq!(
        levels[1],
        SuperLevel {
            price: Price::from_4dp(100),
            qty: Volume(6),
            orders: 3,
            feeds: feeds(&[0, 1, 2])
        }
    );
    assert_eq!(bench.book().best(Side::Bid), Some(levels[0]));
    assert_eq!(bench.book().best(Side::Ask), None);
}

#[test]
fn an_instrument_is_found_in_its_consolidated_book_while_it_is_wanted() {
    let mut bench = Bench::new();
    assert_eq!(bench.books.find_of(A, STOCK), Some(BOOK));
    let other = InstrumentId(STOCK.0 + 1);
    assert_eq!(bench.books.find_of(A, other), None, "not defined");
    bench
        .books
        .undefine(A, STOCK, &mut |_: &SuperRef<'_>, _: &SuperUpdate| {})
        .unwrap();
    assert_eq!(bench.books.find_of(A, STOCK), None);
    assert_eq!(bench.books.find_of(B, STOCK), Some(BOOK));
}

#[test]
fn an_update_says_which_shares_are_different_and_whether_the_best_is() {
    let mut bench = Bench::new();
    bench.level(A, Side::Ask, 100, 5);
    let update = bench.last();
    assert!(update.changed.has(SuperFlags::ASKS.with(SuperFlags::BEST_ASK)));
    assert!(!update.changed.any(SuperFlags::BIDS));
    assert_eq!((update.first, update.end), ([u32::MAX, 0], [0, u32::MAX]));
    bench.level(B, Side::Ask, 101, 5);
    let update = bench.last();
    assert_eq!((update.changed, update.first[1]), (SuperFlags::ASKS, 1));
    bench.level(B, Side::Ask, 101, 6);
    let update = bench.last();
    assert_eq!(
        (update.first[1], update.end[1]),
        (1, 2),
        "in place: that share alone"
    );
    bench.level(A, Side::Ask, 100, 0);
    let update = bench.last();
    assert_eq!((update.first[1], update.end[1]), (0, u32::MAX));
    assert!(update.changed.has(SuperFlags::BEST_ASK));
    assert_eq!((update.source, update.feed, update.id), (A, 0, BOOK));
}

#[test]
fn a_stale_source_leaves_at_once_is_marked_and_comes_back_as_a_whole() {
    let mut bench = Bench::new();
    bench.level(A, Side::Bid, 101, 5);
    bench.level(B, Side::Bid, 100, 5);
    bench.apply(A, whole(EventKind::Gap)).unwrap();
    let update = bench.last();
    assert!(
        update.changed.has(
            SuperFlags::FEEDS
                .with(SuperFlags::BIDS)
                .with(SuperFlags::BEST_BID)
        )
    );
    assert!(
        !update.changed.any(SuperFlags::NATIONAL),
        "it is no consolidated feed"
    );
    assert_eq!(bench.shares(Side::Bid), [(100, 1, 5)]);
    assert_eq!(bench.book().away(), feeds(&[0]));
    assert_eq!(bench.book().member(0).unwrap().presence, Presence::Stale);
    // What it says meanwhile is kept, and told to nobody.
    bench.told.clear();
    bench.level(A, Side::Bid, 102, 1);
    assert!(bench.told.is_empty());
    bench.apply(A, whole(EventKind::Recovered)).unwrap();
    assert_eq!(bench.shares(Side::Bid), [(102, 0, 1), (101, 0, 5), (100, 1, 5)]);
    assert!(bench.book().away().is_empty());
    assert_eq!(bench.last().first[0], 0);
}

#[test]
fn a_sweep_touches_the_symbols_of_its_source_and_no_others() {
    let mut bench = Bench::new();
    bench.apply(B2, whole(EventKind::Recovered)).unwrap();
    let other = bench.define(B2, InstrumentId(1), "XYZ").unwrap();
    bench.define(A, InstrumentId(1), "XYZ").unwrap();
    bench.told.clear();
    bench.apply(B2, whole(EventKind::Gap)).unwrap();
    let told: Vec<SuperId> = bench.told.iter().map(|update| update.id).collect();
    assert_eq!(told, [other]);
    assert!(
        bench.book().away().is_empty(),
        "the feed's other channel is whole"
    );
}

#[test]
fn an_unusable_message_keeps_a_source_out_until_it_is_cleared() {
    let mut bench = Bench::new();
    bench.level(A, Side::Bid, 101, 5);
    let unusable = MarketEvent {
        flags: EventFlags::UNUSABLE,
        ..whole(EventKind::Gap)
    };
    bench.apply(A, unusable).unwrap();
    bench.apply(A, whole(EventKind::Recovered)).unwrap();
    assert_eq!(bench.book().away(), feeds(&[0]));
    bench.apply(A, whole(EventKind::Clear)).unwrap();
    assert!(bench.book().away().is_empty());
    assert!(bench.shares(Side::Bid).is_empty(), "it was cleared");
}

#[test]
fn one_instruments_gap_takes_out_that_one_until_it_is_cleared_or_recovers() {
    let mut bench = Bench::new();
    bench.level(A, Side::Bid, 101, 5);
    bench.apply(A, of_stock(EventKind::Gap)).unwrap();
    assert!(bench.shares(Side::Bid).is_empty());
    bench.apply(A, whole(EventKind::Recovered)).unwrap();
    assert!(bench.shares(Side::Bid).is_empty());
    bench.apply(A, of_stock(EventKind::Recovered)).unwrap();
    assert_eq!(bench.shares(Side::Bid), [(101, 0, 5)]);
}

#[test]
fn a_source_that_ends_is_out_until_it_begins_anew_and_builds_before_it_begins() {
    let mut bench = Bench::new();
    bench.level(A, Side::Bid, 101, 5);
    bench.apply(A, end_event()).unwrap();
    assert_eq!(bench.book().member(0).unwrap().presence, Presence::Ended);
    assert_eq!(bench.books.source(A), Some(Presence::Ended));
    assert!(bench.shares(Side::Bid).is_empty());
    bench.apply(A, whole(EventKind::Recovered)).unwrap();
    assert_eq!(bench.shares(Side::Bid), [(101, 0, 5)]);
    assert_eq!(bench.books.source(B2), Some(Presence::Building));
}

#[test]
fn locked_and_crossed_markets_are_said_with_the_feeds_that_make_them() {
    let mut bench = Bench::new();
    bench.level(A, Side::Bid, 100, 5);
    assert_eq!(bench.book().market(), Market::OneSided);
    bench.level(B, Side::Ask, 101, 5);
    assert_eq!(bench.book().market(), Market::Normal);
    bench.level(C, Side::Ask, 100, 5);
    assert!(bench.last().changed.has(SuperFlags::MARKET));
    assert_eq!(bench.book().market(), Market::Locked);
    assert_eq!(bench.book().best(Side::Ask).unwrap().feeds, feeds(&[2]));
    bench.level(B, Side::Ask, 99, 5);
    assert_eq!(bench.book().market(), Market::Crossed);
    assert_eq!(bench.book().best(Side::Ask).unwrap().feeds, feeds(&[1]));
    assert_eq!(bench.book().best(Side::Bid).unwrap().feeds, feeds(&[0]));
}

#[test]
fn shares_of_a_halted_venue_are_shown_and_do_not_count() {
    let mut bench = Bench::new();
    bench.level(A, Side::Bid, 101, 5);
    bench.level(B, Side::Bid, 100, 5);
    bench.apply(A, status(STOCK, TradingStatus::Halted)).unwrap();
    assert_eq!(bench.shares(Side::Bid), [(101, 0, 5), (100, 1, 5)]);
    assert_eq!(bench.book().idle(), feeds(&[0]));
    assert_eq!(bench.book().best(Side::Bid).unwrap().price, Price::from_4dp(100));
    assert_eq!(bench.book().member(0).unwrap().status, TradingStatus::Halted);
    let update = bench.last();
    assert!(update.changed.has(SuperFlags::FEEDS.with(SuperFlags::BEST_BID)));
    assert!(!update.changed.any(SuperFlags::BIDS), "no share moved");
    bench.apply(A, status(STOCK, TradingStatus::Trading)).unwrap();
    assert_eq!(bench.book().best(Side::Bid).unwrap().price, Price::from_4dp(101));
    // The whole venue: its close stands above the instrument's status, its opening does not.
    let venue = InstrumentId::WHOLE_FEED;
    bench.apply(A, status(venue, TradingStatus::PreOpen)).unwrap();
    assert!(bench.book().idle().is_empty());
    bench.apply(A, status(venue, TradingStatus::Closed)).unwrap();
    assert_eq!(bench.book().idle(), feeds(&[0]));
    assert_eq!(bench.book().member(0).unwrap().status, TradingStatus::Closed);
}

#[test]
fn the_national_best_stands_beside_and_is_compared_in_price_and_time() {
    let mut bench = Bench::new();
    bench.level(A, Side::Bid, 100, 5);
    bench.level(A, Side::Ask, 102, 5);
    bench.apply(SIP, quote(100, 102)).unwrap();
    let agreed = bench.book().difference(Side::Bid);
    assert_eq!((agreed.mover, agreed.last_mover), (Mover::Nobody, Mover::Direct));
    let national = bench.book().national().unwrap();
    assert_eq!(national.sides[0].participant, b'P');
    assert_eq!(national.sides[1].price, Price::from_4dp(102));
    bench.level(A, Side::Bid, 101, 5);
    let since = bench.clock;
    let apart = bench.book().difference(Side::Bid);
    assert_eq!(apart.price, Price::from_raw(-100_000));
    assert_eq!((apart.mover, apart.since), (Mover::Direct, Nanos(since)));
    assert!(bench.last().changed.has(SuperFlags::DIFFERENCE));
    bench.level(A, Side::Ask, 103, 5);
    bench.level(A, Side::Ask, 102, 0);
    bench.apply(SIP, quote(101, 102)).unwrap();
    let agreed = bench.book().difference(Side::Bid);
    assert_eq!((agreed.mover, agreed.price), (Mover::Nobody, Price::ZERO));
    assert_eq!(
        (agreed.last_mover, agreed.last_ns),
        (Mover::Direct, bench.clock - since)
    );
    // A consolidated feed that is stale says nothing, and is compared with nothing.
    bench.apply(SIP, whole(EventKind::Gap)).unwrap();
    assert_eq!(bench.book().national(), None);
    assert_eq!(bench.book().difference(Side::Ask).mover, Mover::Nobody);
    assert_eq!(bench.shares(Side::Ask), [(103, 0, 5)]);
}

#[test]
fn trades_add_up_over_feeds_and_a_break_is_taken_off() {
    let mut bench = Bench::new();
    let trade = |price, qty| MarketEvent {
        price: Price::from_4dp(price),
        qty: Volume(qty),
        ..of_stock(EventKind::Trade)
    };
    bench.apply(A, trade(100, 10)).unwrap();
    bench.apply(B, trade(101, 20)).unwrap();
    let unprinted = MarketEvent {
        flags: EventFlags::NOT_PRINTABLE,
        ..trade(102, 40)
    };
    bench.apply(B, unprinted).unwrap();
    assert_eq!(bench.book().volume(), Volume(30));
    let (last, feed) = bench.book().last_trade().unwrap();
    assert_eq!(
        (last.price, last.qty, feed),
        (Price::from_4dp(101), Volume(20), 1)
    );
    let broken = MarketEvent {
        kind: EventKind::TradeBreak,
        ..trade(101, 20)
    };
    bench.apply(B, broken).unwrap();
    assert_eq!(bench.book().volume(), Volume(10));
    bench.apply(A, undefine_event(STOCK)).unwrap();
    assert_eq!(bench.book().volume(), Volume(0));
}

#[test]
fn a_symbol_that_is_not_wanted_any_more_leaves_and_can_come_back() {
    let mut bench = Bench::new();
    bench.level(A, Side::Bid, 101, 5);
    bench.level(B, Side::Bid, 100, 5);
    bench.apply(A, undefine_event(STOCK)).unwrap();
    let update = bench.last();
    assert!(update.changed.has(SuperFlags::FEEDS) && !update.changed.any(SuperFlags::TRADE));
    assert_eq!(bench.shares(Side::Bid), [(100, 1, 5)]);
    assert_eq!(bench.book().feeds(), feeds(&[1, 2, 3]));
    assert_eq!(
        bench.apply(A, level(Side::Bid, 101, 6)),
        Err(SuperError::Instrument)
    );
    bench.apply(A, define_event(STOCK, &symbol("ABC"))).unwrap();
    bench.level(A, Side::Bid, 101, 6);
    assert_eq!(bench.shares(Side::Bid), [(101, 0, 6), (100, 1, 5)]);
}

#[test]
fn an_instrument_that_becomes_another_symbol_moves_there_without_its_levels() {
    let mut bench = Bench::new();
    bench.level(A, Side::Bid, 101, 5);
    let other = bench.define(A, STOCK, "XYZ").unwrap();
    assert_ne!(other, BOOK);
    assert!(bench.shares(Side::Bid).is_empty());
    bench.level(A, Side::Bid, 102, 5);
    assert!(bench.shares(Side::Bid).is_empty());
    assert_eq!(bench.books.book(other).unwrap().shares(Side::Bid).count(), 1);
    assert_eq!(bench.books.find(&symbol("XYZ")), Some(other));
}

#[test]
fn a_symbol_is_one_instrument_of_a_feed_and_has_one_national_best() {
    let mut bench = Bench::new();
    assert_eq!(bench.define(B2, InstrumentId(1), "ABC"), Err(SuperError::Taken));
    assert_eq!(bench.define(A, InstrumentId(1), "ABC"), Err(SuperError::Taken));
    assert_eq!(bench.define(A, STOCK, "ABC"), Ok(BOOK), "known");
    assert_eq!(
        bench.define(A, InstrumentId::WHOLE_FEED, "ABC"),
        Err(SuperError::Instrument)
    );
    assert_eq!(bench.define(SourceId(9), STOCK, "ABC"), Err(SuperError::Source));
}

#[test]
fn a_feed_without_room_is_out_of_that_book_and_marked_until_it_is_cleared() {
    let mut bench = Bench::with(SuperConfig {
        symbols: 2,
        members: 3,
        shares: 16,
        ..SuperConfig::default()
    });
    for source in [A, B] {
        bench.apply(source, whole(EventKind::Recovered)).unwrap();
        bench.define(source, STOCK, "ABC").unwrap();
    }
    for price in 0..8 {
        bench.level(A, Side::Bid, 100 + price, 1);
        bench.level(B, Side::Ask, 200 + price, 1);
    }
    assert_eq!(bench.apply(B, level(Side::Bid, 90, 1)), Err(SuperError::Full));
    assert_eq!(bench.books.counters().get(Counter::BookFull), 1);
    assert_eq!(bench.book().away(), feeds(&[1]));
    assert_eq!(bench.book().member(1).unwrap().presence, Presence::Full);
    assert!(bench.shares(Side::Ask).is_empty());
    assert_eq!(bench.shares(Side::Bid).len(), 8);
    // Its room is free now; what it says is passed over until its book is cleared.
    bench.level(B, Side::Bid, 91, 1);
    bench.apply(B, of_stock(EventKind::Recovered)).unwrap();
    assert_eq!(bench.book().member(1).unwrap().presence, Presence::Full);
    bench.apply(B, of_stock(EventKind::Clear)).unwrap();
    bench.level(B, Side::Ask, 92, 1);
    assert_eq!(bench.shares(Side::Ask), [(92, 1, 1)]);
    assert!(bench.book().away().is_empty());
    bench.define(A, InstrumentId(1), "B").unwrap();
    assert_eq!(
        bench.define(A, InstrumentId(2), "C"),
        Err(SuperError::Full),
        "members"
    );
    assert_eq!(bench.define(B, STOCK, "C"), Err(SuperError::Full), "symbols");
}

#[test]
fn what_is_no_level_of_a_known_instrument_is_refused() {
    let mut bench = Bench::new();
    assert_eq!(bench.apply(A, of_stock(EventKind::Add)), Err(SuperError::Depth));
    assert_eq!(
        bench.apply(A, level(Side::Bid, 100, 0)),
        Err(SuperError::UnknownLevel)
    );
    assert_eq!(
        bench.apply(A, level(Side::Bid, 100, 1 << 44)),
        Err(SuperError::QtyRange)
    );
    assert_eq!(
        bench.apply(B2, level(Side::Bid, 100, 1)),
        Err(SuperError::Instrument)
    );
    assert_eq!(
        bench.apply(SourceId(5), level(Side::Bid, 100, 1)),
        Err(SuperError::Source)
    );
    assert_eq!(bench.books.counters().get(Counter::BookRejects), 5);
    // Quotes of participants, of direct feeds, and levels of consolidated ones are nobody's business here.
    bench.told.clear();
    let participant = MarketEvent {
        code: *b"N\0\0\0\0\0\0\0",
        ..quote(1, 2)
    };
    for (source, event) in [
        (SIP, participant),
        (A, quote(1, 2)),
        (SIP, level(Side::Bid, 1, 1)),
    ] {
        bench.apply(source, event).unwrap();
    }
    assert!(bench.told.is_empty());
}

#[test]
fn a_book_is_of_a_number_that_was_given() {
    let bench = Bench::new();
    assert!(bench.books.book(SuperId(0)).is_some(), "the one symbol");
    assert!(bench.books.book(SuperId(1)).is_none(), "the next one");
}

#[test]
fn a_definition_in_an_event_has_all_of_a_long_symbol() {
    let mut bench = Bench::new();
    let long = "ESZ6 C5000 EW3 2026Q4";
    let event = define_event(InstrumentId(9), &symbol(long));
    bench.apply(A, event).expect("room for a second symbol");
    assert!(bench.books.find(&symbol(long)).is_some());
    assert_eq!(bench.books.iter().count(), 2);
}

/// Room for the shares of a side of `SHARES` prices: a ladder that was as long and is short again gives back
/// what it does not need, so that another one can grow.
#[test]
fn a_ladder_that_became_short_gives_its_room_to_others() {
    const SHARES: u32 = 256;
    let mut bench = Bench::with(SuperConfig {
        symbols: 4,
        members: 16,
        shares: 2 * SHARES,
        ..SuperConfig::default()
    });
    bench.apply(A, whole(EventKind::Recovered)).unwrap();
    bench.define(A, STOCK, "ABC").unwrap();
    for turn in 0..4 {
        let side = [Side::Bid, Side::Ask][turn % 2];
        for price in 0..SHARES {
            bench.level(A, side, 100 + price, 1);
        }
        assert_eq!(bench.shares(side).len(), SHARES as usize, "turn {turn}");
        for price in 1..SHARES {
            bench.level(A, side, 100 + price, 0);
        }
    }
    assert_eq!(bench.books.counters().get(Counter::BookFull), 0);
}

/// Three venues at one price: how far a share is from the best counts every share before it, of feeds that
/// are there.
#[test]
fn a_change_of_the_third_venue_is_three_from_the_best() {
    let mut bench = Bench::new();
    for (source, price) in [(A, 103), (B, 102), (C, 101)] {
        bench.level(source, Side::Bid, price, 10);
    }
    bench.told.clear();
    bench.apply(C, of_stock(EventKind::Gap)).unwrap();
    let update = bench.last();
    assert_eq!(update.first[Side::Bid as usize], 2, "{update:?}");
}

#[test]
fn a_feed_of_a_mask_is_the_bit_of_its_number() {
    for feed in 0..32 {
        assert_eq!(FeedMask::one(feed), FeedMask(1 << feed));
    }
    assert_eq!(format!("{:?}", feeds(&[0, 3, 31])), "{0, 3, 31}");
}

#[test]
fn who_comes_and_goes_by_a_call_does_so_at_the_time_of_the_last_event() {
    let mut bench = Bench::new();
    bench.level(A, Side::Bid, 101, 5);
    let now = Nanos(bench.clock);
    bench.told.clear();
    let told = &mut bench.told;
    let mut sink = |_: &SuperRef<'_>, update: &SuperUpdate| told.push(*update);
    bench.books.undefine(A, STOCK, &mut sink).unwrap();
    assert_eq!(bench.last().recv_ts, now);
    bench.define(A, STOCK, "ABC").unwrap();
    assert_eq!(bench.last().recv_ts, now);
}

#[test]
fn a_feed_that_is_away_leaves_without_a_change_of_the_ladders() {
    let mut bench = Bench::new();
    bench.level(A, Side::Bid, 101, 5);
    bench.level(B, Side::Bid, 100, 5);
    bench.apply(A, whole(EventKind::Gap)).unwrap();
    bench.told.clear();
    bench.apply(A, undefine_event(STOCK)).unwrap();
    let update = bench.last();
    assert!(update.changed.has(SuperFlags::FEEDS));
    assert!(!update.changed.any(SuperFlags::BIDS.with(SuperFlags::BEST_BID)));
}

#[test]
fn a_side_has_room_for_32_768_shares_and_no_more() {
    let mut bench = Bench::with(SuperConfig {
        symbols: 4,
        members: 16,
        shares: 131_072,
        ..SuperConfig::default()
    });
    bench.apply(A, whole(EventKind::Recovered)).unwrap();
    bench.define(A, STOCK, "ABC").unwrap();
    for price in 1..=32_768 {
        bench.level(A, Side::Bid, price, 1);
    }
    let one_more = bench.apply(A, level(Side::Bid, 32_769, 1));
    assert_eq!(one_more, Err(SuperError::Full));
}

#[test]
fn what_is_different_has_a_bit_each() {
    let all = [
        SuperFlags::BEST_BID,
        SuperFlags::BEST_ASK,
        SuperFlags::BIDS,
        SuperFlags::ASKS,
        SuperFlags::FEEDS,
        SuperFlags::MARKET,
        SuperFlags::NATIONAL,
        SuperFlags::DIFFERENCE,
        SuperFlags::TRADE,
    ];
    for (bit, flags) in all.into_iter().enumerate() {
        assert_eq!(flags.0, 1 << bit);
    }
}

#[test]
fn every_error_of_a_consolidated_book_has_words_of_its_own() {
    use SuperError::*;
    let all = [Source, Instrument, Depth, UnknownLevel, QtyRange, Taken, Full];
    let words: std::collections::BTreeSet<String> = all.iter().map(ToString::to_string).collect();
    assert_eq!(words.len(), all.len());
    assert!(words.iter().all(|word| word.len() > 5), "{words:?}");
}

/// A snapshot follows, or a new day: a halt that is over by then is not said to be.
#[test]
fn a_clear_of_a_source_makes_its_statuses_void() {
    let mut bench = Bench::new();
    let status = |instrument, status| MarketEvent {
        kind: EventKind::Status,
        instrument,
        status,
        ..MarketEvent::default()
    };
    bench
        .apply(A, status(InstrumentId::WHOLE_FEED, TradingStatus::Closed))
        .unwrap();
    bench.apply(A, status(STOCK, TradingStatus::Halted)).unwrap();
    bench.apply(A, whole(EventKind::Clear)).unwrap();
    bench.apply(A, whole(EventKind::Recovered)).unwrap();
    bench.level(A, Side::Bid, 100, 5);
    assert!(bench.book().idle().is_empty());
    assert_eq!(
        bench.book().best(Side::Bid).map(|level| level.qty),
        Some(Volume(5))
    );
}
