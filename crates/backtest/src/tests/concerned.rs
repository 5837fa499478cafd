//! Most events are of levels where nothing of ours stands, and are not looked at: a venue that looks at every
//! one tells the same.

use super::*;
use crate::Nobody;
use tickwire_market::{Cause, OrderIntent, OrderType, Qty, TimeInForce};

struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

fn test(fill: FillModel, depth: Depth, looks_at_all: bool) -> Backtest<Nobody> {
    let books = Books::new(BooksConfig {
        depth,
        instruments: 2,
        orders: 4096,
        levels: 4096,
        initial: BookState::Live,
        ..BooksConfig::default()
    });
    let conductor = ConductorConfig {
        instrument_bits: 1,
        max_orders: 1,
        ..ConductorConfig::default()
    };
    let config = BacktestConfig {
        fill,
        conductor,
        ..BacktestConfig::default()
    };
    let mut test = Backtest::new(Nobody, vec![books], config);
    test.look_at_all(looks_at_all);
    test
}

/// An event of a book of 80 levels, most of it far from the touch.
fn event(random: &mut Random, live: &mut Vec<OrderId>, books: &Books, number: u64) -> MarketEvent {
    let side = Side::BOTH[random.below(2) as usize];
    let away = random.below(40).min(random.below(40)) as i64 - 1;
    let units = match side {
        Side::Bid => 99 - away,
        Side::Ask => 100 + away,
    };
    let base = MarketEvent {
        instrument: ID,
        seq: SeqNo(number),
        recv_ts: Nanos(number),
        side,
        price: price(units),
        qty: Volume(1 + random.below(9)),
        order_id: OrderId(1_000 + number),
        ref_id: 1_000_000 + number,
        ..MarketEvent::default()
    };
    if books.config().depth == Depth::ByPrice {
        return MarketEvent {
            kind: [EventKind::Level, EventKind::Trade][usize::from(random.below(5) == 0)],
            qty: Volume(random.below(9) + random.below(2)),
            order_count: 1,
            ..base
        };
    }
    live.retain(|id| books.order(*id).is_some());
    let what = random.below(12);
    let any = live.get(random.below(live.len().max(1) as u64) as usize).copied();
    let best = books
        .book(ID)
        .and_then(|book| book.orders(side, book.best(side)?.price).next());
    let had = match what {
        5 | 6 => best,
        _ => any.and_then(|id| books.order(id)),
    };
    let Some(had) = had.filter(|_| what >= 5 && live.len() > 100) else {
        live.push(base.order_id);
        return MarketEvent {
            kind: EventKind::Add,
            ..base
        };
    };
    let left = u64::from(had.qty.0);
    let part = Volume(1 + random.below(left));
    let of = MarketEvent {
        order_id: had.id,
        ..base
    };
    match what {
        5 | 6 => MarketEvent {
            kind: EventKind::Execute,
            qty: part,
            ..of
        },
        7 => MarketEvent {
            kind: EventKind::Reduce,
            qty: part,
            ..of
        },
        8 => {
            live.push(OrderId(base.ref_id));
            MarketEvent {
                kind: EventKind::Replace,
                ..of
            }
        }
        9 => MarketEvent {
            kind: EventKind::Modify,
            side: had.side,
            price: had.price,
            qty: part,
            flags: EventFlags::KEEPS_PRIORITY,
            ..of
        },
        10 => MarketEvent {
            kind: EventKind::Modify,
            ..of
        },
        _ => MarketEvent {
            kind: EventKind::Delete,
            ..of
        },
    }
}

/// A few orders of ours near the touch: entered, replaced, cancelled.
fn request(random: &mut Random, open: &mut Vec<(ClientOrderId, Side)>, number: u64) -> OrderIntent {
    let side = Side::BOTH[random.below(2) as usize];
    let (id, units) = (ClientOrderId(number), 96 + random.below(8) as i64);
    let at = random.below(open.len().max(1) as u64) as usize;
    let qty = Qty(1 + random.below(5) as u32);
    if open.len() < 3 {
        open.push((id, side));
        return OrderIntent::New {
            id,
            instrument: ID,
            side,
            order_type: OrderType::Limit,
            price: price(units),
            stop: (random.below(8) == 0).then_some(price(units + 1)),
            qty,
            time_in_force: match random.below(4) {
                0 => TimeInForce::ImmediateOrCancel,
                _ => TimeInForce::Day,
            },
            cause: Cause::default(),
        };
    }
    let (target, side) = open.swap_remove(at);
    if random.below(2) == 0 {
        return OrderIntent::Cancel {
            id,
            target,
            venue_id: None,
            instrument: ID,
            side,
            qty: Qty::ZERO,
            cause: Cause::default(),
        };
    }
    open.push((id, side));
    OrderIntent::Replace {
        id,
        target,
        venue_id: None,
        instrument: ID,
        side,
        order_type: OrderType::Limit,
        price: price(units),
        stop: None,
        qty,
        time_in_force: TimeInForce::Day,
        cause: Cause::default(),
    }
}

#[test]
fn a_venue_that_looks_at_every_event_tells_the_same() {
    let mut fills = [0, 0];
    for (fill, depth) in [
        (FillModel::Queue, Depth::ByOrder),
        (FillModel::Touch, Depth::ByOrder),
        (FillModel::Matching, Depth::ByOrder),
        (FillModel::Queue, Depth::ByPrice),
    ] {
        for seed in 1..=6 {
            let mut random = Random(seed * 7_919);
            let (mut live, mut open) = (Vec::new(), Vec::new());
            let mut both = [false, true].map(|all| test(fill, depth, all));
            for number in 1..=6_000 {
                if random.below(20) == 0 {
                    let request = request(&mut random, &mut open, number);
                    both.iter_mut().for_each(|test| test.inject(&request));
                }
                let event = event(&mut random, &mut live, both[0].books(0), number);
                both.iter_mut().for_each(|test| test.on_event(0, &event));
                assert_eq!(
                    both[0].hash(),
                    both[1].hash(),
                    "{fill:?} {depth:?}, seed {seed}, after {event:?}"
                );
                assert_eq!(both[0].resting(), both[1].resting());
            }
            let [one, other] = both.map(|mut test| test.finish());
            assert_eq!(one.doubts, other.doubts, "{fill:?} {depth:?}, seed {seed}");
            assert_eq!((one.fills, one.hash), (other.fills, other.hash));
            fills = [0, 1].map(|at| fills[at] + one.fills[at]);
        }
    }
    assert!(fills[0] > 1_000 && fills[1] > 500, "{fills:?}");
}
