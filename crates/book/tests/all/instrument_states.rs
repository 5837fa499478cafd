//! What instruments' states promise, and a recount of random trades and breaks on paper.

use std::collections::BTreeMap;
use tickwire_book::{Books, BooksConfig, InstrumentState, InstrumentStates};
use tickwire_market::{
    EventFlags, EventKind, InstrumentId, MarketEvent, Nanos, OrderId, Price, Side, TradingStatus, Volume,
};
use tickwire_testdata::Rng;

const STOCK: InstrumentId = InstrumentId(3);

fn event(kind: EventKind) -> MarketEvent {
    MarketEvent {
        kind,
        instrument: STOCK,
        ..MarketEvent::default()
    }
}

fn trade(match_id: u64, price: u32, qty: u64) -> MarketEvent {
    MarketEvent {
        price: Price::from_4dp(price),
        qty: Volume(qty),
        ref_id: match_id,
        venue_ts: Nanos(match_id),
        ..event(EventKind::Trade)
    }
}

fn after(states: &mut InstrumentStates, mut event: MarketEvent) -> InstrumentState {
    states.apply(&mut event, None);
    *states.get(STOCK).unwrap()
}

#[test]
fn a_break_takes_its_trade_off_the_volume_and_marks_the_last_one() {
    let mut states = InstrumentStates::new(8, 64);
    after(&mut states, trade(1, 100, 10));
    let state = after(&mut states, trade(2, 101, 20));
    assert_eq!((state.volume, state.trades), (Volume(30), 2));
    let mut broken = trade(2, 0, 0);
    broken.kind = EventKind::TradeBreak;
    states.apply(&mut broken, None);
    assert_eq!(
        (broken.price, broken.qty),
        (Price::from_4dp(101), Volume(20)),
        "said for who relays it"
    );
    let state = *states.get(STOCK).unwrap();
    assert_eq!(
        (state.volume, state.trades, state.last.is_broken),
        (Volume(10), 1, true)
    );
    let state = after(&mut states, broken);
    assert_eq!(
        (state.volume, state.breaks_unknown),
        (Volume(10), 1),
        "broken once"
    );
    let state = after(&mut states, trade(3, 102, 1));
    assert!(!state.last.is_broken);
}

#[test]
fn an_execution_is_at_its_orders_price_unless_it_says_another() {
    let mut states = InstrumentStates::new(8, 64);
    let mut books = Books::new(BooksConfig {
        instruments: 8,
        orders: 64,
        levels: 64,
        tracked: true,
        ..BooksConfig::default()
    });
    let order = MarketEvent {
        order_id: OrderId(5),
        price: Price::from_4dp(100),
        qty: Volume(30),
        ..event(EventKind::Add)
    };
    books.apply(&order);
    let execute = |qty, price, flags| MarketEvent {
        kind: EventKind::Execute,
        qty: Volume(qty),
        price: Price::from_4dp(price),
        flags,
        ..order
    };
    for (mut executed, price, volume) in [
        (execute(10, 0, EventFlags::NONE), 100, 10),
        (execute(5, 99, EventFlags::AT_OTHER_PRICE), 99, 15),
        (
            execute(5, 98, EventFlags::AT_OTHER_PRICE.with(EventFlags::NOT_PRINTABLE)),
            99,
            15,
        ),
        (execute(10, 0, EventFlags::NONE), 100, 25),
    ] {
        books.apply(&executed);
        let at = books.executed_at(&executed);
        states.apply(&mut executed, at);
        let state = states.get(STOCK).unwrap();
        assert_eq!(
            (state.last.price, state.volume),
            (Price::from_4dp(price), Volume(volume))
        );
    }
    // Of an order that is not in the book: it counts, at no price.
    let mut unknown = execute(7, 0, EventFlags::NONE);
    books.apply(&unknown);
    let at = books.executed_at(&unknown);
    states.apply(&mut unknown, at);
    let state = states.get(STOCK).unwrap();
    assert_eq!(
        (at, state.last.price, state.volume),
        (None, Price::from_4dp(100), Volume(32))
    );
}

#[test]
fn status_and_auction_are_the_latest_word() {
    let mut states = InstrumentStates::new(8, 64);
    let halted = MarketEvent {
        status: TradingStatus::Halted,
        code: *b"T1\0\0\0\0\0\0",
        ..event(EventKind::Status)
    };
    let state = after(&mut states, halted);
    assert_eq!(
        (state.status, state.reason),
        (TradingStatus::Halted, *b"T1\0\0\0\0\0\0")
    );
    let venue = MarketEvent {
        instrument: InstrumentId::WHOLE_FEED,
        status: TradingStatus::Closed,
        ..halted
    };
    let state = after(&mut states, venue);
    assert_eq!(
        (state.status, states.venue_status()),
        (TradingStatus::Halted, TradingStatus::Closed)
    );
    let imbalance = MarketEvent {
        price: Price::from_4dp(1),
        near_price: Price::from_4dp(2),
        far_price: Price::from_4dp(3),
        qty: Volume(4),
        imbalance_qty: Volume(5),
        side: Side::Ask,
        code: *b"O\0\0\0\0\0\0\0",
        ..event(EventKind::Imbalance)
    };
    let auction = after(&mut states, imbalance).auction;
    assert_eq!((auction.kind, auction.side), (b'O', Some(Side::Ask)));
    assert_eq!(
        (auction.reference, auction.near),
        (Price::from_4dp(1), Price::from_4dp(2))
    );
    assert_eq!(
        (auction.far, auction.paired, auction.imbalance),
        (Price::from_4dp(3), Volume(4), Volume(5))
    );
    let flags = EventFlags::NO_SIDE;
    assert_eq!(
        after(&mut states, MarketEvent { flags, ..imbalance })
            .auction
            .side,
        None
    );
}

#[test]
fn a_noted_break_changes_nothing_and_a_noted_trade_is_an_applied_one() {
    let mut noted = InstrumentStates::new(8, 64);
    let mut applied = InstrumentStates::new(8, 64);
    noted.note(&trade(1, 100, 10), None);
    let state = after(&mut applied, trade(1, 100, 10));
    assert_eq!(noted.get(STOCK), Some(&state));
    let broken = MarketEvent {
        kind: EventKind::TradeBreak,
        ..trade(1, 0, 0)
    };
    noted.approach(&broken);
    noted.note(&broken, None);
    assert_eq!(noted.get(STOCK), Some(&state));
}

#[test]
fn random_trades_and_breaks_add_up_as_on_paper() {
    for seed in 1..=8 {
        let mut rng = Rng::new(seed);
        let mut states = InstrumentStates::new(4, 1 << 12);
        let mut paper: BTreeMap<(u32, u64), Vec<u64>> = BTreeMap::new();
        for n in 0..1_500 {
            let instrument = InstrumentId(1 + rng.below(3) as u32);
            let match_id = 1 + rng.below(1_000);
            let mut event = MarketEvent {
                instrument,
                ..trade(match_id, 100, rng.below(50))
            };
            let traded = paper.entry((instrument.0, match_id)).or_default();
            if rng.chance(1, 4) && !traded.is_empty() {
                event.kind = EventKind::TradeBreak;
                traded.clear();
            } else if rng.chance(1, 5) {
                event.flags = EventFlags::NOT_PRINTABLE;
            } else if event.qty.0 > 0 {
                traded.push(event.qty.0);
            }
            states.apply(&mut event, None);
            let of = paper.iter().filter(|((of, _), _)| *of == instrument.0);
            let of: Vec<u64> = of.flat_map(|(_, traded)| traded.iter().copied()).collect();
            let state = states.get(instrument).unwrap();
            // A set of four may be full of others: then the break is one of a trade that was forgotten.
            if states.get(instrument).unwrap().breaks_unknown == 0 {
                assert_eq!(
                    (state.volume.0, state.trades),
                    (of.iter().sum(), of.len() as u64),
                    "seed {seed} {n}"
                );
            } else {
                assert!(
                    state.volume.0 >= of.iter().sum::<u64>(),
                    "seed {seed} {n}: never too little"
                );
            }
        }
    }
}
