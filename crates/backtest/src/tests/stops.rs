//! Stop orders at the venue: out of the book until a recorded trade triggers them, then orders like others.

use super::*;

fn stop(side: Side, qty: u32, trigger: i64) -> Do {
    Do::Submit(Ticket::stop(side, ID, qty, price(trigger)))
}

fn heard(rig: &Rig) -> Vec<(u64, OrderState, u32)> {
    let heard = rig.test.conductor().strategy().heard.iter();
    heard
        .map(|(at, _, state, filled)| (*at, *state, *filled))
        .collect()
}

const MODELS: [FillModel; 2] = [FillModel::Queue, FillModel::Matching];

#[test]
fn a_trade_at_the_trigger_makes_a_market_order_of_it() {
    for model in MODELS {
        let mut rig = standing(&[(10, stop(Side::Ask, 30, 10))], config(model));
        // Neither a cancellation nor an order through the trigger is a trade.
        rig.act(20, EventKind::Reduce, 1, 10);
        rig.add(21, 7, Side::Ask, 11, 5);
        assert_eq!((rig.fills(), rig.test.resting()), (vec![], 1));
        rig.act(30, EventKind::Execute, 1, 50);
        assert_eq!(rig.fills(), [], "what happened at that time is told first");
        rig.act(31, EventKind::Execute, 2, 1);
        assert_eq!(rig.fills(), [(30, 30, 10, false)], "{model:?}");
        rig.test.finish();
        assert_eq!(
            heard(&rig),
            [
                (10, OrderState::New, 0),
                (30, OrderState::New, 0),
                (30, OrderState::Filled, 30)
            ],
            "accepted, triggered, filled"
        );
    }
}

#[test]
fn one_with_a_limit_rests_with_what_it_does_not_get() {
    for model in MODELS {
        let limit = Ticket::stop_limit(Side::Bid, ID, 40, price(12), price(12));
        let mut rig = standing(&[(10, Do::Submit(limit))], config(model));
        rig.act(20, EventKind::Execute, 3, 20);
        rig.add(30, 8, Side::Ask, 12, 4);
        assert_eq!(
            rig.fills(),
            [(20, 30, 12, false), (30, 4, 12, true)],
            "30 of the 50 were left: {model:?}"
        );
        assert_eq!(rig.test.resting(), 1);
        let summary = rig.test.finish();
        assert_eq!((summary.requests, summary.rejects), ([1, 0, 1], 0));
        assert_eq!(summary.instruments[0].position, 34);
    }
}

#[test]
fn it_acts_behind_the_match_event_that_triggers_it() {
    let grouped = BacktestConfig {
        is_grouped: vec![true],
        ..config(FillModel::Queue)
    };
    let mut rig = rig(&[(10, stop(Side::Ask, 30, 10))], Depth::ByOrder, grouped);
    let last = |rig: &mut Rig, at, kind, order, side, units, qty, flags| {
        rig.event(
            at,
            MarketEvent {
                kind,
                order_id: OrderId(order),
                side,
                price: price(units),
                qty: Volume(qty),
                flags,
                ..MarketEvent::default()
            },
        );
    };
    for (at, order, side, units, qty) in [
        (1, 1, Side::Bid, 10, 60),
        (2, 2, Side::Bid, 10, 40),
        (3, 3, Side::Ask, 12, 50),
    ] {
        last(
            &mut rig,
            at,
            EventKind::Add,
            order,
            side,
            units,
            qty,
            EventFlags::LAST,
        );
    }
    last(
        &mut rig,
        20,
        EventKind::Execute,
        1,
        Side::Bid,
        0,
        60,
        EventFlags::NONE,
    );
    last(
        &mut rig,
        20,
        EventKind::Execute,
        2,
        Side::Bid,
        0,
        25,
        EventFlags::LAST,
    );
    assert_eq!(rig.fills(), []);
    last(&mut rig, 21, EventKind::Add, 9, Side::Bid, 9, 5, EventFlags::LAST);
    assert_eq!(
        rig.fills(),
        [(20, 15, 10, false)],
        "15 were left at 10 behind all of it"
    );
}

#[test]
fn the_first_trigger_passed_acts_first_and_what_was_passed_before_it_came_acts_at_once() {
    let mut rig = standing(
        &[
            (10, stop(Side::Ask, 10, 8)),
            (11, stop(Side::Ask, 20, 9)),
            (40, stop(Side::Ask, 5, 9)),
        ],
        config(FillModel::Queue),
    );
    rig.add(12, 4, Side::Bid, 8, 100);
    rig.act(20, EventKind::Delete, 1, 0);
    rig.act(21, EventKind::Delete, 2, 0);
    rig.act(30, EventKind::Execute, 4, 1);
    rig.add(35, 5, Side::Bid, 9, 50);
    let numbers = |rig: &Rig| {
        rig.test
            .fills()
            .iter()
            .map(|f| (f.order.0, f.qty.0))
            .collect::<Vec<_>>()
    };
    assert_eq!(numbers(&rig), [(2, 20), (1, 10)]);
    rig.add(50, 6, Side::Bid, 1, 1);
    assert_eq!(
        numbers(&rig)[2..],
        [(3, 5)],
        "8 was the last price: 9 is passed already"
    );
}

#[test]
fn it_is_cancelled_and_its_trigger_moves_like_any_order() {
    let mut rig = standing(
        &[
            (10, stop(Side::Ask, 30, 10)),
            (11, Do::ReplaceStop(0, 20, 9)),
            (12, stop(Side::Ask, 7, 10)),
            (13, Do::Cancel(2)),
        ],
        config(FillModel::Queue),
    );
    // Answers come at once, so that each may be done.
    rig.act(20, EventKind::Execute, 1, 60);
    rig.act(30, EventKind::Execute, 2, 1);
    assert_eq!(
        (rig.fills(), rig.test.resting()),
        (vec![], 1),
        "9 was not traded at"
    );
    let summary = rig.test.finish();
    assert_eq!((summary.requests, summary.rejects), ([2, 1, 2], 0));
    assert_eq!(rig.test.conductor().orders().open(), 0);
    assert_eq!(rig.test.conductor().orders().waiting(), 0);
}

#[test]
fn a_trigger_between_ticks_is_refused_and_a_halt_ends_what_is_triggered() {
    let between = Price::from_raw(price(10).raw() + 5);
    let odd = Do::Submit(Ticket::stop(
        Side::Ask,
        ID,
        30,
        Price::from_raw(between.raw() - 10),
    ));
    let mut rig = standing(
        &[(10, odd), (11, stop(Side::Ask, 30, 10))],
        config(FillModel::Queue),
    );
    rig.act(20, EventKind::Execute, 1, 60);
    rig.event(
        20,
        MarketEvent {
            kind: EventKind::Status,
            status: tickwire_market::TradingStatus::Halted,
            ..MarketEvent::default()
        },
    );
    rig.act(30, EventKind::Delete, 2, 0);
    let summary = rig.test.finish();
    assert_eq!((rig.fills(), summary.rejects), (vec![], 1));
    assert_eq!(heard(&rig).last().map(|h| h.1), Some(OrderState::Cancelled));
}

/// Order 1 has 40 left where it stood: on Moscow's order log it was executed, elsewhere its owner took 20
/// back.
fn less(rig: &mut Rig, at: u64) {
    rig.event(
        at,
        MarketEvent {
            kind: EventKind::Modify,
            order_id: OrderId(1),
            side: Side::Bid,
            price: price(10),
            qty: Volume(40),
            flags: EventFlags::KEEPS_PRIORITY,
            ..MarketEvent::default()
        },
    );
}

#[test]
fn on_moscows_order_log_a_trade_before_any_order_of_ours_is_known_to_later_stops() {
    for model in MODELS {
        let moscow = BacktestConfig {
            less_is_executed: vec![true],
            ..config(model)
        };
        let sale = (30, stop(Side::Ask, 30, 10));
        // Nothing of ours stands, one stands where the trade is of no concern to it, or another stop waits
        // that it does not trigger.
        let before: [(&[(u64, Do)], usize); 3] = [
            (&[], 0),
            (&[(10, Do::Submit(Ticket::limit(Side::Ask, ID, 5, price(20))))], 1),
            (&[(10, stop(Side::Ask, 5, 7))], 1),
        ];
        for (before, others) in before {
            let script = [before, &[sale]].concat();
            let mut rig = standing(&script, moscow.clone());
            less(&mut rig, 20);
            assert_eq!(rig.fills(), [], "{model:?}: nothing of ours was reached");
            rig.add(40, 7, Side::Bid, 1, 1);
            assert_eq!(
                rig.fills(),
                [(30, 30, 10, false)],
                "{model:?}, {others} before it"
            );
            assert_eq!(rig.test.resting(), others, "{model:?}");

            // Where a feed tells executions, becoming less is none.
            let mut rig = standing(&script, config(model));
            less(&mut rig, 20);
            rig.add(40, 7, Side::Bid, 1, 1);
            assert_eq!(
                (rig.fills(), rig.test.resting()),
                (vec![], others + 1),
                "{model:?}"
            );
        }
        // An order that goes to the end of its queue, or becomes more, was not executed.
        let mut rig = standing(&[sale], moscow);
        for (at, qty, flags) in [(20, 40, EventFlags::NONE), (21, 90, EventFlags::KEEPS_PRIORITY)] {
            rig.event(
                at,
                MarketEvent {
                    kind: EventKind::Modify,
                    order_id: OrderId(1),
                    side: Side::Bid,
                    price: price(10),
                    qty: Volume(qty),
                    flags,
                    ..MarketEvent::default()
                },
            );
        }
        rig.add(40, 7, Side::Bid, 1, 1);
        assert_eq!((rig.fills(), rig.test.resting()), (vec![], 1), "{model:?}");
    }
}
