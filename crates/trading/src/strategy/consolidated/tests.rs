//! One symbol on two feeds, by order and by price in groups: what a strategy is told of the book over both.

use alloc::vec;
use alloc::vec::Vec;

use tickwire_book::{BooksConfig, Depth};
use tickwire_market::{ClientOrderId, Instrument, OrderId, OrderIntent, SeqNo, TradingStatus, Volume};

use super::super::{
    BookChange, Conductor, ConductorConfig, Context, Markets, OrderPort, Rejected, Strategy, Subscription,
};
use super::*;
use crate::{ControlsConfig, RiskConfig};

const BITS: u32 = 4;

/// What it was told; it buys where the offer is and sells where the bid is as soon as they cross.
#[derive(Default)]
struct Pair {
    heard: Vec<alloc::string::String>,
    sent: Vec<ClientOrderId>,
}

impl Strategy for Pair {
    fn subscriptions(&self) -> Vec<Subscription> {
        vec![Subscription::consolidated("A")]
    }
    fn on_book(&mut self, _: &mut Context<'_>, change: &BookChange) {
        self.heard.push(alloc::format!("book {}", change.instrument.0));
    }
    fn on_super_book(&mut self, ctx: &mut Context<'_>, change: &SuperChange) {
        let book = ctx.super_book(change.id).expect("it was named");
        assert_eq!(ctx.super_book_of(&change.symbol).map(|b| b.id()), Some(change.id));
        let at = |side| ctx.best_member(&book, side);
        let shown = [Side::Bid, Side::Ask]
            .map(|side| at(side).map(|(id, price, qty)| (id.0, price.raw() / Price::ONE_RAW, qty.0)));
        self.heard.push(alloc::format!("super {shown:?}"));
        if let (Some((sell, bid, _)), Some((buy, ask, _))) = (at(Side::Bid), at(Side::Ask))
            && bid > ask
        {
            self.sent.extend(ctx.buy_now(buy, 10, ask));
            self.sent.extend(ctx.sell_now(sell, 10, bid));
        }
    }
}

#[derive(Default)]
struct Out(Vec<OrderIntent>);

impl OrderPort for Out {
    fn send(&mut self, _: Nanos, request: &OrderIntent) -> Result<(), Rejected> {
        self.0.push(*request);
        Ok(())
    }
}

/// Feed 0 has the symbol as number 2, feed 1 as number 3 and tells groups.
struct Rig {
    books: Vec<Books>,
    all: Consolidated,
    conductor: Conductor<Pair>,
    out: Out,
    next: u64,
}

impl Rig {
    fn new(venues: [Venue; 2]) -> Rig {
        let config = BooksConfig {
            depth: Depth::ByOrder,
            instruments: 8,
            orders: 64,
            levels: 1024,
            initial: BookState::Live,
            tracked: true,
            ..BooksConfig::default()
        };
        let conductor = ConductorConfig {
            feeds: 2,
            instrument_bits: BITS,
            max_orders: 16,
            risk: RiskConfig {
                price_band_bp: 5_000,
                controls: ControlsConfig::NONE,
                ..RiskConfig::default()
            },
            ..ConductorConfig::default()
        };
        let mut rig = Rig {
            books: venues
                .map(|venue| Books::new(BooksConfig { venue, ..config }))
                .into(),
            all: Consolidated::new(&venues, BITS, 1),
            conductor: Conductor::new(Pair::default(), &conductor),
            out: Out::default(),
            next: 0,
        };
        assert!(rig.conductor.consolidates(&symbol()));
        let (c, m) = (&mut rig.conductor, Markets::new(&rig.books, BITS));
        c.start(Nanos(1), m.with(Some(&rig.all)), &mut rig.out);
        rig
    }

    fn define(&mut self, feed: usize, id: u32) -> Result<SuperId, SuperError> {
        let instrument = Instrument {
            id: InstrumentId(id),
            symbol: symbol(),
            ..Instrument::default()
        };
        let named = (instrument.id, &instrument.symbol);
        let defined = self.all.define(Nanos(1), feed, named, &self.books[feed]);
        let (c, m) = (&mut self.conductor, Markets::new(&self.books, BITS));
        c.define(
            Nanos(1),
            feed,
            &instrument,
            None,
            m.with(Some(&self.all)),
            &mut self.out,
        );
        self.all.forget(feed);
        defined
    }

    fn event(&mut self, feed: usize, event: MarketEvent) {
        self.next += 1;
        let event = MarketEvent {
            seq: SeqNo(self.next),
            recv_ts: Nanos(self.next * Nanos::MILLI),
            ..event
        };
        let is_grouped = feed == 1;
        let outcome = self.all.apply(feed, &mut self.books[feed], &event);
        let markets = Markets::new(&self.books, BITS).with(Some(&self.all));
        self.conductor
            .on_event(feed, &event, &outcome, is_grouped, markets, &mut self.out);
        self.all.told(feed, &event, is_grouped);
    }

    fn add(&mut self, feed: usize, side: Side, at: i64, qty: u64, flags: EventFlags) {
        let event = MarketEvent {
            kind: EventKind::Add,
            instrument: InstrumentId(2 + feed as u32),
            order_id: OrderId(self.next + 1),
            side,
            price: Price::from_raw(at * Price::ONE_RAW),
            qty: Volume(qty),
            flags,
            ..MarketEvent::default()
        };
        self.event(feed, event);
    }

    fn heard(&mut self) -> Vec<alloc::string::String> {
        core::mem::take(&mut self.conductor.strategy.heard)
    }
}

fn symbol() -> Symbol {
    Symbol::new(b"A").expect("a symbol")
}

const THERE: u32 = (1 << BITS) | 3;

#[test]
fn the_book_over_two_feeds_is_told_after_the_book_that_changed_it_and_both_are_traded_on() {
    let mut rig = Rig::new([Venue::Nasdaq, Venue::Bzx]);
    // It has a book before anybody names it.
    rig.add(0, Side::Bid, 100, 50, EventFlags::LAST);
    assert!(rig.heard().is_empty());
    assert!(rig.define(0, 2).is_ok());
    assert_eq!(rig.heard(), ["book 2", "super [Some((2, 100, 50)), None]"]);
    assert!(rig.define(1, 3).is_ok());
    rig.heard();
    rig.add(0, Side::Ask, 103, 60, EventFlags::LAST);
    assert_eq!(
        rig.heard(),
        ["book 2", "super [Some((2, 100, 50)), Some((2, 103, 60))]"]
    );
    // A group of the other feed is told of at its end, whatever the first feed does meanwhile.
    rig.add(1, Side::Ask, 102, 70, EventFlags::NONE);
    assert!(rig.heard().is_empty());
    rig.add(0, Side::Bid, 101, 10, EventFlags::LAST);
    assert_eq!(
        rig.heard(),
        ["book 2", "super [Some((2, 101, 10)), Some((19, 102, 70))]"]
    );
    rig.add(1, Side::Bid, 101, 90, EventFlags::LAST);
    assert_eq!(
        rig.heard(),
        ["book 19", "super [Some((19, 101, 90)), Some((19, 102, 70))]"],
        "the one who has more at the same price"
    );
    assert!(rig.out.0.is_empty());
    rig.add(0, Side::Bid, 103, 30, EventFlags::LAST);
    let sent: Vec<_> = rig
        .out
        .0
        .iter()
        .map(|request| match request {
            OrderIntent::New { instrument, side, .. } => (instrument.0, *side),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(sent, [(THERE, Side::Bid), (2, Side::Ask)]);
    assert_eq!(rig.conductor.strategy.sent.len(), 2);
}

#[test]
fn a_feed_that_is_stale_or_halted_leaves_the_book_and_comes_back() {
    let mut rig = Rig::new([Venue::Nasdaq, Venue::Bzx]);
    rig.define(0, 2).expect("named");
    rig.define(1, 3).expect("named");
    rig.add(0, Side::Bid, 100, 50, EventFlags::LAST);
    rig.add(1, Side::Bid, 101, 60, EventFlags::LAST);
    rig.heard();
    let whole = |kind| MarketEvent {
        kind,
        instrument: InstrumentId::WHOLE_FEED,
        ..MarketEvent::default()
    };
    rig.event(1, whole(EventKind::Gap));
    assert_eq!(rig.heard(), ["book 19", "super [Some((2, 100, 50)), None]"]);
    rig.event(1, whole(EventKind::Recovered));
    assert_eq!(rig.heard(), ["book 19", "super [Some((19, 101, 60)), None]"]);
    rig.event(
        1,
        MarketEvent {
            status: TradingStatus::Halted,
            instrument: InstrumentId(3),
            flags: EventFlags::LAST,
            ..whole(EventKind::Status)
        },
    );
    assert_eq!(rig.heard(), ["super [Some((2, 100, 50)), None]"]);
}

#[test]
fn two_feeds_of_one_venue_are_one_market_and_do_not_count_twice() {
    let mut rig = Rig::new([Venue::Nyse, Venue::Nyse]);
    rig.define(0, 2).expect("named");
    assert_eq!(rig.define(1, 3), Err(SuperError::Taken));
    rig.add(0, Side::Bid, 100, 50, EventFlags::LAST);
    rig.add(1, Side::Bid, 100, 50, EventFlags::LAST);
    let book = rig.all.books().iter().next().expect("a book");
    assert_eq!(book.totals(Side::Bid).qty, Volume(50));
}
