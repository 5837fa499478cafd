//! Each control: the order that is not sent, and that the next good one is.

use super::*;
use proptest::prelude::*;

const NOW: Nanos = Nanos(1_000 * Nanos::SECOND);

fn limits() -> ControlsConfig {
    ControlsConfig {
        qty_max: Qty(100),
        ..ControlsConfig::NONE
    }
}

/// Two instruments, the mid price of the first one is 100.
fn controls(config: ControlsConfig) -> Controls {
    let mut controls = Controls::new(config, 2);
    controls.observe(NOW, 0, at("100"));
    controls
}

fn at(price: &str) -> Price {
    price.parse().expect("a price")
}

fn order(side: Side, price: &str, qty: u32) -> Wanted {
    Wanted {
        strategy: StrategyId::Rule,
        slot: 0,
        side,
        price: at(price),
        qty: Qty(qty),
        cause: None,
    }
}

fn buy(price: &str, qty: u32) -> Wanted {
    order(Side::Bid, price, qty)
}

#[test]
fn what_is_too_large_or_worth_too_much_is_not_sent() {
    let mut controls = controls(ControlsConfig {
        value_max: 5_000,
        ..limits()
    });
    assert_eq!(controls.check(NOW, &buy("10", 101)), Err(RiskReject::OrderSize));
    assert_eq!(controls.check(NOW, &buy("10", 0)), Err(RiskReject::OrderSize));
    assert_eq!(
        controls.check(NOW, &buy("100.01", 50)),
        Err(RiskReject::OrderValue)
    );
    assert_eq!(
        controls.check(NOW, &buy("-100.01", 50)),
        Err(RiskReject::OrderValue)
    );
    assert_eq!(controls.check(NOW, &buy("100", 50)), Ok(()));
    // A point of a contract on fifty units is worth fifty.
    controls.set_point(0, 50 * Price::ONE_RAW);
    assert_eq!(controls.check(NOW, &buy("100", 2)), Err(RiskReject::OrderValue));
    assert_eq!(controls.check(NOW, &buy("100", 1)), Ok(()));
    assert_eq!(
        controls.check(
            NOW,
            &Wanted {
                slot: 7,
                ..buy("100", 1)
            }
        ),
        Err(RiskReject::NoReference),
        "an instrument that there is no place for"
    );
}

#[test]
fn prices_are_held_to_the_mid_price_and_to_what_it_was() {
    let mut controls = controls(ControlsConfig {
        band_bp: Some(100),
        band_min: at("0.50"),
        needs_reference: true,
        drift_bp: 200,
        drift_ns: 10 * Nanos::SECOND,
        ..limits()
    });
    assert_eq!(controls.check(NOW, &buy("101.01", 1)), Err(RiskReject::PriceBand));
    assert_eq!(controls.check(NOW, &buy("101", 1)), Ok(()));
    let other = Wanted {
        slot: 1,
        ..buy("1", 1)
    };
    assert_eq!(controls.check(NOW, &other), Err(RiskReject::NoReference));
    // Ten basis points of a small price are less than a tick: so far is always near enough.
    controls.observe(NOW, 1, at("1"));
    assert_eq!(
        controls.check(
            NOW,
            &Wanted {
                slot: 1,
                ..buy("1.50", 1)
            }
        ),
        Ok(())
    );
    // The market runs away by a percent every four seconds: each order is near its mid, and soon far from
    // what that was.
    let mut stopped = None;
    let mut now = NOW;
    for step in 1..=12 {
        now = now.after(4 * Nanos::SECOND);
        let mid = Price::from_raw(at("100").raw() + step * Price::ONE_RAW);
        controls.observe(now, 0, mid);
        let wanted = Wanted {
            price: mid,
            ..buy("0", 1)
        };
        match controls.check(now, &wanted) {
            Ok(()) => {}
            Err(reason) => {
                stopped = Some((step, reason));
                break;
            }
        }
    }
    assert_eq!(stopped, Some((3, RiskReject::PriceDrift)));
    // It stays where it is: what it was is soon what it is.
    for _ in 0..3 {
        now = now.after(10 * Nanos::SECOND);
        controls.observe(now, 0, at("103"));
    }
    assert_eq!(controls.check(now, &buy("103", 1)), Ok(()));
}

#[test]
fn messages_about_an_instrument_are_counted_apart_and_come_back_evenly() {
    let mut controls = controls(ControlsConfig {
        instrument_messages: 4,
        ..limits()
    });
    let wanted = buy("100", 1);
    for _ in 0..4 {
        assert_eq!(controls.check(NOW, &wanted), Ok(()));
        controls.sent(NOW, &wanted, false);
    }
    assert_eq!(controls.check(NOW, &wanted), Err(RiskReject::InstrumentRate));
    let other = Wanted { slot: 1, ..wanted };
    assert_eq!(controls.check(NOW, &other), Ok(()), "the other one has its own");
    let later = NOW.after(250 * Nanos::MILLI);
    assert_eq!(
        controls.check(Nanos(later.0 - 1), &wanted),
        Err(RiskReject::InstrumentRate)
    );
    assert_eq!(controls.check(later, &wanted), Ok(()));
    controls.sent(later, &wanted, false);
    assert_eq!(controls.check(later, &wanted), Err(RiskReject::InstrumentRate));
    // However long nothing was sent, there are never more than the bucket holds.
    let much_later = NOW.after(3_600 * Nanos::SECOND);
    let mut passed = 0;
    while controls.check(much_later, &wanted).is_ok() {
        controls.sent(much_later, &wanted, false);
        passed += 1;
    }
    assert_eq!(passed, 4);
}

#[test]
fn a_strategy_that_executes_too_often_stops_until_a_person_says_so() {
    let mut controls = controls(ControlsConfig {
        executions_max: 3,
        executions_ns: 60 * Nanos::SECOND,
        ..limits()
    });
    let wanted = buy("100", 1);
    let traded = (Side::Bid, Qty(1), at("100"));
    for n in 0..3 {
        assert!(controls.fill(NOW, StrategyId::Rule, 0, traded), "{n}");
        assert_eq!(controls.check(NOW, &wanted), Ok(()));
    }
    assert!(!controls.fill(NOW, StrategyId::Rule, 0, traded));
    for later in [0, 1, 61, 86_400] {
        let now = NOW.after(later * Nanos::SECOND);
        assert_eq!(controls.check(now, &wanted), Err(RiskReject::Executions));
    }
    let eye = Wanted {
        strategy: StrategyId::Eye,
        ..wanted
    };
    assert_eq!(controls.check(NOW, &eye), Ok(()), "another strategy goes on");
    controls.resume();
    assert_eq!(controls.check(NOW, &wanted), Ok(()));
    assert!(controls.fill(NOW, StrategyId::Rule, 0, traded), "counted anew");
    // Three within a minute, for ever, is what it may.
    let mut now = NOW.after(120 * Nanos::SECOND);
    for _ in 0..100 {
        now = now.after(20 * Nanos::SECOND);
        assert!(controls.fill(now, StrategyId::Rule, 0, traded));
    }
}

#[test]
fn the_same_order_for_the_same_message_is_sent_once() {
    let mut controls = controls(limits());
    let wanted = Wanted {
        cause: Some(SeqNo(17)),
        ..buy("100", 5)
    };
    assert_eq!(controls.check(NOW, &wanted), Ok(()));
    controls.sent(NOW, &wanted, false);
    assert_eq!(controls.check(NOW, &wanted), Err(RiskReject::Duplicate));
    for other in [
        Wanted {
            cause: Some(SeqNo(18)),
            ..wanted
        },
        Wanted {
            qty: Qty(6),
            ..wanted
        },
        Wanted { slot: 1, ..wanted },
    ] {
        assert_eq!(controls.check(NOW, &other), Ok(()), "{other:?}");
    }
}

#[test]
fn what_could_trade_with_an_order_of_ours_is_not_sent() {
    let mut controls = controls(limits());
    for price in ["99", "99.50"] {
        controls.sent(NOW, &buy(price, 1), true);
    }
    let sell = |price| order(Side::Ask, price, 1);
    assert_eq!(controls.check(NOW, &sell("99.50")), Err(RiskReject::SelfTrade));
    assert_eq!(controls.check(NOW, &sell("99.51")), Ok(()));
    assert_eq!(controls.check(NOW, &buy("101", 1)), Ok(()), "the same side");
    controls.closed(0, Side::Bid);
    // Which of both it was is not kept: the better price stands for what is left.
    assert_eq!(controls.check(NOW, &sell("99.50")), Err(RiskReject::SelfTrade));
    controls.closed(0, Side::Bid);
    assert_eq!(controls.check(NOW, &sell("90")), Ok(()));
    // A quote whose sides meet.
    let sides = |bid, ask| [(at(bid), Qty(1)), (at(ask), Qty(1))];
    assert_eq!(
        controls.check_quote(NOW, 0, sides("100", "100")),
        Err(RiskReject::SelfTrade)
    );
    assert_eq!(controls.check_quote(NOW, 0, sides("100", "100.05")), Ok(()));
    controls.kill();
    let nothing = [(Price::ZERO, Qty(0)); 2];
    assert_eq!(
        controls.check_quote(NOW, 0, nothing),
        Ok(()),
        "taking away is always right"
    );
}

#[test]
fn a_strategy_and_all_together_hold_no_more_than_they_may() {
    let mut controls = controls(ControlsConfig {
        strategy_position_max: 100,
        position_max: 150,
        ..limits()
    });
    controls.fill(NOW, StrategyId::Rule, 0, (Side::Bid, Qty(90), at("100")));
    assert_eq!(
        controls.check(NOW, &buy("100", 11)),
        Err(RiskReject::TotalPosition)
    );
    assert_eq!(controls.check(NOW, &buy("100", 10)), Ok(()));
    assert_eq!(
        controls.check(NOW, &order(Side::Ask, "100", 50)),
        Ok(()),
        "what makes it less is always right"
    );
    // The other way round in another instrument makes nothing less.
    controls.fill(NOW, StrategyId::Eye, 1, (Side::Ask, Qty(55), at("7")));
    let eye = Wanted {
        strategy: StrategyId::Eye,
        slot: 1,
        ..order(Side::Ask, "7", 6)
    };
    assert_eq!(controls.check(NOW, &eye), Err(RiskReject::TotalPosition));
    assert_eq!(controls.check(NOW, &Wanted { qty: Qty(5), ..eye }), Ok(()));
    assert_eq!(
        (controls.held(StrategyId::Rule), controls.held(StrategyId::Eye)),
        (90, 55)
    );
    controls.unfill(StrategyId::Rule, 0, (Side::Bid, Qty(90), at("100")));
    assert_eq!(controls.held(StrategyId::Rule), 0);
    assert_eq!(controls.check(NOW, &eye), Ok(()));
}

#[test]
fn a_loss_at_mid_prices_stops_the_strategy_and_a_larger_one_all_of_them() {
    let mut controls = controls(ControlsConfig {
        strategy_loss_max: 1_000,
        loss_max: 1_500,
        ..limits()
    });
    let (rule, eye) = (
        buy("90", 1),
        Wanted {
            strategy: StrategyId::Eye,
            ..buy("90", 1)
        },
    );
    controls.fill(NOW, StrategyId::Rule, 0, (Side::Bid, Qty(100), at("101")));
    assert_eq!(
        controls.gain(StrategyId::Rule),
        -100,
        "paid a point above the mid"
    );
    controls.observe(NOW, 0, at("91"));
    assert_eq!(controls.check(NOW, &rule), Ok(()), "lost 1000, no more");
    controls.observe(NOW, 0, at("90.99"));
    assert_eq!(controls.check(NOW, &rule), Err(RiskReject::Loss));
    assert_eq!(controls.check(NOW, &eye), Ok(()));
    // That the market comes back does not let it go on: a person does.
    controls.observe(NOW, 0, at("105"));
    assert_eq!(controls.check(NOW, &rule), Err(RiskReject::Loss));
    controls.resume();
    assert_eq!(controls.check(NOW, &rule), Ok(()));
    controls.observe(NOW, 0, at("85"));
    assert_eq!(controls.check(NOW, &eye), Err(RiskReject::Loss), "1600 in all");
}

#[test]
fn what_others_hold_and_have_lost_counts_towards_the_limits_over_all() {
    let mut controls = controls(ControlsConfig {
        strategy_position_max: 100,
        position_max: 150,
        loss_max: 1_500,
        ..limits()
    });
    let mut others = controls.clone();
    others.fill(NOW, StrategyId::Rule, 0, (Side::Bid, Qty(90), at("100")));
    controls.set_others(others.totals());
    assert_eq!(
        controls.check(NOW, &buy("100", 61)),
        Err(RiskReject::TotalPosition)
    );
    assert_eq!(controls.check(NOW, &buy("100", 60)), Ok(()));
    controls.fill(NOW, StrategyId::Rule, 0, (Side::Bid, Qty(10), at("100")));
    // They lose 1440 and we 160: more than all may together, less than anybody may alone.
    for all in [&mut controls, &mut others] {
        all.observe(NOW, 0, at("84"));
    }
    assert_eq!(controls.check(NOW, &buy("90", 1)), Ok(()));
    controls.set_others(others.totals());
    assert_eq!(controls.check(NOW, &buy("90", 1)), Err(RiskReject::Loss));
    others.set_others(controls.totals());
    assert_eq!(others.check(NOW, &buy("90", 1)), Err(RiskReject::Loss));
}

#[test]
fn the_kill_switch_stops_everything() {
    let mut controls = controls(limits());
    controls.kill();
    assert_eq!(controls.check(NOW, &buy("100", 1)), Err(RiskReject::KillSwitch));
    controls.resume();
    assert_eq!(controls.check(NOW, &buy("100", 1)), Ok(()));
}

/// A gain counted change by change is what cash and positions at the last mid come to, whatever the order of
/// things.
#[test]
fn gains_are_what_cash_and_positions_come_to() {
    let mut random = 7_u64;
    let mut next = |most: u64| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (random >> 33) % most
    };
    let mut controls = Controls::new(limits(), 3);
    let (mut cash, mut held, mut mids) = (0_i128, [0_i64; 3], [None::<Price>; 3]);
    controls.set_point(1, 50 * Price::ONE_RAW);
    let points = [1, 50, 1];
    for _ in 0..10_000 {
        let slot = next(3) as usize;
        let price = Price::from_raw((90 + next(20) as i64) * Price::ONE_RAW);
        if next(2) == 0 || mids[slot].is_none() {
            controls.observe(NOW, slot, price);
            mids[slot] = Some(price);
            continue;
        }
        let (side, qty) = (Side::BOTH[next(2) as usize], Qty(1 + next(9) as u32));
        controls.fill(NOW, StrategyId::Quotes, slot, (side, qty, price));
        held[slot] += sign(side) * i64::from(qty.0);
        cash -= i128::from(sign(side)) * price.notional(qty.0.into()) * points[slot];
    }
    let marked: i128 = (0..3)
        .map(|slot| i128::from(mids[slot].unwrap_or_default().raw()) * i128::from(held[slot]) * points[slot])
        .sum();
    let gain = (cash + marked) / i128::from(Price::ONE_RAW);
    assert_eq!(i128::from(controls.gain(StrategyId::Quotes)), gain);
    let gross: u64 = held.iter().map(|held| held.unsigned_abs()).sum();
    assert_eq!(controls.held(StrategyId::Quotes), gross);
}

proptest! {
    /// The prices that are let pass are those that the mid prices themselves let pass, no other, the edges
    /// included.
    #[test]
    fn a_price_passes_exactly_where_its_distances_let_it(
        mids in proptest::collection::vec((any_price(), 0_u64..3), 0..4),
        price in any_price(),
        bp in proptest::option::of(prop_oneof![0_u32..20_000, any::<u32>()]),
        drift_bp in prop_oneof![0_u32..20_000, any::<u32>()],
        least in prop_oneof![Just(0), 0_i64..1_000, any::<i64>()],
        needs_reference: bool,
    ) {
        let mut controls = Controls::new(
            ControlsConfig {
                band_bp: bp,
                band_min: Price::from_raw(least),
                needs_reference,
                drift_bp,
                drift_ns: 2,
                ..limits()
            },
            1,
        );
        let mut now = NOW;
        for (mid, later) in mids {
            now = now.after(later);
            controls.observe(now, 0, Price::from_raw(mid));
        }
        let slot = controls.slots[0];
        let edges = slot.near.map(Price::raw);
        let beside = |raw: i64| [raw.saturating_sub(1), raw, raw.saturating_add(1)];
        for raw in edges.into_iter().chain([price]).flat_map(beside) {
            let price = Price::from_raw(raw);
            prop_assert_eq!(controls.check_price(&slot, price), controls.judge_price(&slot, price), "{}", price);
        }
    }
}

fn any_price() -> impl Strategy<Value = i64> {
    prop_oneof![
        -1_000_i64..1_000,
        (-1_000_000_i64..1_000_000).prop_map(|cents| cents * 10_000_000),
        any::<i64>(),
    ]
}
