//! Quotes at the venue: pairs of resting orders that are replaced in place.

use super::*;
use tickwire_market::Qty;

const MODELS: [FillModel; 2] = [FillModel::Queue, FillModel::Matching];

fn quote(qty: [u32; 2], at: [i64; 2]) -> Do {
    Do::Quote(Quote {
        instrument: ID,
        sides: [0, 1].map(|side| (price(at[side]), Qty(qty[side]))),
    })
}

fn heard(rig: &Rig) -> &[String] {
    &rig.test.conductor().strategy().quotes
}

#[test]
fn both_sides_rest_and_trade_and_count_in_the_position() {
    for model in MODELS {
        let mut rig = standing(&[(10, quote([10, 20], [10, 12]))], config(model));
        rig.act(20, EventKind::Execute, 3, 50);
        assert_eq!(rig.test.resting(), 2);
        rig.add(25, 7, Side::Ask, 12, 30);
        rig.act(30, EventKind::Execute, 7, 30);
        rig.add(40, 9, Side::Bid, 1, 1);
        assert_eq!(rig.fills(), [(30, 20, 12, true)], "{model:?}");
        assert_eq!(rig.test.conductor().positions().get(ID).qty, -20);
        assert_eq!(
            heard(&rig),
            [
                "10 Accepted [10, 20]",
                "30 Filled { side: Ask, qty: 20, price: 12.00 } [10, 0]"
            ]
        );
        let summary = rig.test.finish();
        assert_eq!((summary.requests, summary.rejects), ([2, 0, 1], 0));
        assert_eq!(
            heard(&rig).last().map(String::as_str),
            Some("40 Cancelled [0, 0]")
        );
        assert_eq!(rig.test.conductor().positions().get(ID).working, [Volume(0); 2]);
    }
}

#[test]
fn the_same_price_with_no_more_quantity_keeps_its_place_and_anything_else_goes_behind() {
    for model in MODELS {
        for (second, expected) in [(8, vec![(30, 8, 10, true)]), (11, vec![])] {
            let at = [(10, quote([10, 0], [10, 12])), (26, quote([second, 0], [10, 12]))];
            let mut rig = standing(&at, config(model));
            // Behind ours.
            rig.add(25, 4, Side::Bid, 10, 40);
            rig.act(28, EventKind::Delete, 1, 0);
            rig.act(29, EventKind::Delete, 2, 0);
            rig.act(30, EventKind::Execute, 4, 40);
            assert_eq!(rig.fills(), expected, "{second} {model:?}");
        }
    }
}

#[test]
fn a_quote_through_the_other_side_takes_and_a_price_between_ticks_is_refused() {
    let odd = Quote {
        instrument: ID,
        sides: [
            (Price::from_raw(price(10).raw() + 7), Qty(1)),
            (price(13), Qty(1)),
        ],
    };
    let at = [(10, quote([60, 5], [12, 14])), (20, Do::Quote(odd))];
    let mut rig = standing(&at, config(FillModel::Queue));
    rig.add(15, 8, Side::Ask, 15, 1);
    rig.add(30, 9, Side::Bid, 1, 1);
    assert_eq!(rig.fills(), [(10, 50, 12, false)]);
    assert_eq!(
        heard(&rig),
        [
            "10 Filled { side: Bid, qty: 50, price: 12.00 } [10, 5]",
            "10 Accepted [10, 5]",
            "20 Refused [10, 5]"
        ]
    );
}

#[test]
fn cancelled_quotes_are_gone_after_the_cancellation_has_come_there() {
    let latency = BacktestConfig {
        latency: LatencyConfig {
            cancel: Latency::Constant(5),
            ..LatencyConfig::default()
        },
        ..config(FillModel::Queue)
    };
    let at = [(10, quote([10, 10], [10, 12])), (20, Do::CancelQuotes)];
    let mut rig = standing(&at, latency);
    rig.act(24, EventKind::Execute, 3, 50);
    assert_eq!(rig.test.resting(), 2);
    rig.add(30, 9, Side::Bid, 1, 1);
    assert_eq!(rig.test.resting(), 0);
    assert_eq!(heard(&rig), ["10 Accepted [10, 10]", "25 Cancelled [0, 0]"]);
    assert_eq!(rig.fills(), []);
}
