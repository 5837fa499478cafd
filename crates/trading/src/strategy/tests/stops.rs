//! Stop orders: what is sent, what stops one, and what becomes of it.

use super::*;
use tickwire_market::OrderType;

#[test]
fn a_stop_order_is_sent_with_its_trigger_and_worst_price() {
    let mut rig = two_sided();
    // The middle is 101, the band 500 basis points.
    assert_eq!(rig.act(|c| c.buy_stop(A, 10, price(104))), Ok(ClientOrderId(1)));
    let limit = Ticket::stop_limit(Side::Ask, A, 5, price(98), price(97));
    assert_eq!(rig.act(|c| c.submit(limit)), Ok(ClientOrderId(2)));
    let sent: Vec<_> = rig
        .port
        .sent
        .iter()
        .map(|sent| match *sent {
            OrderIntent::New {
                order_type,
                price,
                stop,
                ..
            } => (order_type, price.raw() / 1_000_000, stop),
            _ => unreachable!("two orders"),
        })
        .collect();
    assert_eq!(
        sent,
        [
            (OrderType::Market, 109_200, Some(price(104))),
            (OrderType::Limit, 97_000, Some(price(98)))
        ]
    );
    let position = rig.conductor.positions().get(A);
    assert_eq!(
        position.working,
        [Volume(10), Volume(5)],
        "it counts as if it traded"
    );
    assert_eq!(rig.conductor.orders().waiting(), 2);
}

#[test]
fn what_stops_a_stop_order_is_named_and_nothing_leaves() {
    let mut rig = two_sided();
    let mut refused = |ticket: Ticket| rig.act(|c| c.submit(ticket)).expect_err("it is stopped");
    let checked = NotSent::Check;
    let buy = |qty, trigger| Ticket::stop(Side::Bid, A, qty, price(trigger));
    let limit = |trigger, at| Ticket::stop_limit(Side::Bid, A, 1, price(trigger), price(at));
    assert_eq!(refused(buy(101, 104)), checked(RiskReject::OrderSize));
    assert_eq!(
        refused(buy(1, 107)),
        checked(RiskReject::PriceBand),
        "its trigger is too far"
    );
    assert_eq!(
        refused(limit(104, 110)),
        checked(RiskReject::PriceBand),
        "its limit is too far from its trigger"
    );
    assert_eq!(refused(buy(1, 101)), NotSent::StopPrice, "102 is offered");
    assert_eq!(
        refused(Ticket::stop(Side::Ask, A, 1, price(101))),
        NotSent::StopPrice,
        "100 is bid"
    );
    assert!(rig.port.sent.is_empty());
    assert_eq!(rig.conductor.positions().get(A), crate::Position::default());
    assert_eq!(
        rig.conductor
            .counters()
            .get(tickwire_market::Counter::RiskPriceBand),
        2
    );
}

#[test]
fn its_value_is_that_of_the_worst_price_or_the_trigger_whichever_is_more() {
    let config = ControlsConfig {
        value_max: 1_050,
        ..ControlsConfig::NONE
    };
    let mut risk = crate::Risk::new(
        RiskConfig {
            controls: config,
            ..RiskConfig::default()
        },
        4,
    );
    risk.set_reference(A, price(101));
    let mut check = |side, trigger| {
        let order = crate::NewOrder {
            instrument: A,
            side,
            price: risk.worst_of_stop(side, price(trigger)),
            qty: Qty(10),
            cause: Default::default(),
        };
        risk.check_stop(Nanos(1), &order, price(trigger), 0, &crate::Position::default())
    };
    assert_eq!(check(Side::Bid, 100), Ok(()), "10 at 105 are 1,050");
    assert_eq!(check(Side::Bid, 101), Err(RiskReject::OrderValue));
    assert_eq!(check(Side::Ask, 105), Ok(()));
    assert_eq!(check(Side::Ask, 106), Err(RiskReject::OrderValue));
}

#[test]
fn it_does_not_rest_until_it_is_triggered() {
    let mut rig = two_sided();
    let stop = Ticket::stop_limit(Side::Ask, A, 5, price(98), price(97));
    assert_eq!(rig.act(|c| c.submit(stop)), Ok(ClientOrderId(1)));
    rig.report(1, ReportKind::Accepted).expect("it can be done");
    // What bids above its trigger has traded before a trade can trigger it; what bids from there to its limit would meet it.
    let buy = |at| Ticket::limit(Side::Bid, A, 1, price(at));
    assert!(rig.act(|c| c.submit(buy(99))).is_ok());
    for at in [98, 97] {
        let met = rig.act(|c| c.submit(buy(at)));
        assert_eq!(met, Err(NotSent::Check(RiskReject::SelfTrade)), "{at}");
    }
    assert!(rig.act(|c| c.submit(buy(96))).is_ok());
    rig.act(|c| assert_eq!(c.cancel_all(), 3));
    rig.report(2, ReportKind::Accepted).expect("it can be done");
    rig.report(2, ReportKind::Cancelled).expect("it can be done");
    rig.heard();
    rig.report(1, ReportKind::Triggered).expect("it can be done");
    assert_eq!(rig.heard(), ["order 1 New filled 0"]);
    assert!(
        rig.report(1, ReportKind::Triggered).is_err(),
        "it is triggered once"
    );
    assert_eq!(rig.conductor.orders().waiting(), 0);
    let met = rig.act(|c| c.submit(buy(99)));
    assert_eq!(
        met,
        Err(NotSent::Check(RiskReject::SelfTrade)),
        "it is in the book now"
    );
    assert!(rig.act(|c| c.submit(buy(96))).is_ok());
}

#[test]
fn a_stop_order_is_refused_where_it_could_meet_what_rests_of_ours() {
    let mut rig = two_sided();
    assert!(rig.act(|c| c.buy(A, 1, price(99))).is_ok());
    let stop = |trigger, at| Ticket::stop_limit(Side::Ask, A, 1, price(trigger), price(at));
    let met = Err(NotSent::Check(RiskReject::SelfTrade));
    assert_eq!(rig.act(|c| c.submit(stop(100, 98))), met);
    assert_eq!(
        rig.act(|c| c.submit(stop(98, 97))),
        Ok(ClientOrderId(2)),
        "99 has traded before 98"
    );
    assert_eq!(
        rig.act(|c| c.submit(stop(100, 100))),
        Ok(ClientOrderId(3)),
        "it never sells at 99"
    );
}

#[test]
fn its_trigger_moves_and_what_has_none_is_told_so() {
    let mut rig = two_sided();
    assert_eq!(rig.act(|c| c.buy_stop(A, 10, price(104))), Ok(ClientOrderId(1)));
    rig.report(1, ReportKind::Accepted).expect("it can be done");
    assert_eq!(
        rig.act(|c| c.replace(ClientOrderId(1), 10, price(103))),
        Err(NotSent::WrongType),
        "it has no limit"
    );
    let moved = rig.act(|c| c.replace_stop(ClientOrderId(1), 8, price(103), None));
    assert_eq!(moved, Ok(ClientOrderId(2)));
    assert!(matches!(
        rig.port.sent.last(),
        Some(OrderIntent::Replace { stop: Some(stop), qty: Qty(8), order_type: OrderType::Market, .. }) if *stop == price(103)
    ));
    // It was triggered before the request came.
    rig.report(1, ReportKind::Triggered).expect("it can be done");
    let replaced = ReportKind::Replaced {
        by: ClientOrderId(2),
        venue_id: None,
    };
    rig.report(1, replaced).expect("it can be done");
    let order = *rig.conductor.orders().get(ClientOrderId(2)).expect("it is there");
    assert!(order.is_triggered && !order.is_waiting());
    assert_eq!(rig.conductor.orders().waiting(), 0);
    assert_eq!(
        rig.act(|c| c.replace_stop(ClientOrderId(2), 8, price(103), None)),
        Err(NotSent::WrongType)
    );
    let fill = ReportKind::Filled {
        qty: Qty(8),
        price: price(104),
        cumulative: Qty(8),
    };
    rig.report(2, fill).expect("it can be done");
    assert_eq!(rig.conductor.positions().get(A).qty, 8);
    assert_eq!(rig.conductor.positions().get(A).working, [Volume(0); 2]);
}
