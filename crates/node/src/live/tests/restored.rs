//! What processes before this one have traded: held, counted against the limits, and known by whose it is.

use super::*;
use crate::fills::Fill;
use crate::record::{Kept, Origin, Recorder};
use tickwire_fix::{ExecType, ExecutionReport, Id, NewOrderSingle};
use tickwire_market::{OrderType, TimeInForce};

const SESSIONS: [&str; 2] = ["order_entry", "BZX"];

fn fill(strategy: &str, side: Side, qty: u32) -> Fill<Origin> {
    Fill {
        at: Nanos(1),
        symbol: recorded::first_symbol(),
        source: Origin {
            strategy: Symbol::new(strategy.as_bytes()).expect("short"),
            is_quote: false,
        },
        side,
        is_broken: false,
        qty,
        price: units(100),
        theo: None,
        seq: 7,
        exec: Id::EMPTY,
    }
}

/// Two strategies that may hold 500 each, behind processes that traded these over each session.
fn behind(fills: [&[Fill<Origin>]; 2]) -> Hot {
    let strategies = ["one", "two"].map(|name| {
        let mut hosting = hosting(name, false, ControlsConfig::NONE);
        hosting.risk.max_position = 500;
        hosting
    });
    two_feeds_behind(Vec::from(strategies), Nanos::ZERO, |live| {
        for (session, fills) in fills.into_iter().enumerate() {
            live.restore(session, fills).expect("they fit");
        }
    })
}

fn held(hot: &Hot, who: usize, source: u32) -> i64 {
    let positions = hot.rule.hosted[who].conductor.positions();
    positions.get(at(hot, source)).qty
}

/// A report of a trade of the first strategy's 11th order.
fn report(side: Side, qty: u32) -> ExecutionReport {
    let order = NewOrderSingle {
        cl_ord_id: Id::from_number(11),
        symbol: recorded::first_symbol(),
        side,
        transact_time: Nanos(1),
        qty: Qty(qty),
        order_type: OrderType::Limit,
        price: Some(units(100)),
        stop: None,
        time_in_force: TimeInForce::Day,
        cause: None,
    };
    ExecutionReport {
        exec_type: ExecType::Trade,
        last_qty: Qty(qty),
        last_px: Some(units(100)),
        ..ExecutionReport::of(&order)
    }
}

#[test]
fn what_was_traded_before_is_held_by_whose_it_was_and_counts_against_its_limits() {
    let bought = [fill("one", Side::Bid, 600), fill("one", Side::Ask, 200)];
    let mut hot = behind([&bought, &[fill("two", Side::Ask, 100)]]);
    assert_eq!([held(&hot, 0, 0), held(&hot, 0, 1)], [400, 0]);
    assert_eq!([held(&hot, 1, 0), held(&hot, 1, 1)], [0, -100]);
    let ticket = |hot: &Hot, side, qty| Ticket::limit(side, at(hot, 0), qty, units(100));
    let (large, small) = (ticket(&hot, Side::Bid, 101), ticket(&hot, Side::Bid, 100));
    let sent = hot.sessions[0].out.orders;
    assert_eq!(
        submit(&mut hot, 0, 0, large),
        Err(NotSent::Check(RiskReject::Position))
    );
    assert_eq!(hot.sessions[0].out.orders, sent, "nothing left");
    submit(&mut hot, 0, 0, small).expect("it is within the limit");
    submit(&mut hot, 1, 0, large).expect("the other one holds nothing there");
}

#[test]
fn what_was_lost_before_counts_against_the_loss_limit() {
    let at_price = |side, price| Fill {
        price: units(price),
        ..fill("one", side, 100)
    };
    // The market is 99 to 101 now: 10,000 lost on what is held, or on what was sold again.
    let held_since = [at_price(Side::Bid, 200)];
    let realized = [at_price(Side::Bid, 200), at_price(Side::Ask, 100)];
    for (what, fills) in [("held", &held_since[..]), ("realized", &realized[..])] {
        let controls = ControlsConfig {
            strategy_loss_max: 5_000,
            ..ControlsConfig::NONE
        };
        let strategies = Vec::from(["one", "two"].map(|name| hosting(name, false, controls)));
        let mut hot = two_feeds_behind(strategies, Nanos::ZERO, |live| {
            live.restore(0, fills).expect("they fit");
        });
        let gain = hot.rule.hosted[0].conductor.risk().gain();
        let ticket = Ticket::limit(Side::Bid, at(&hot, 0), 1, units(100));
        let became = submit(&mut hot, 0, 0, ticket);
        assert_eq!(
            (gain, became),
            (-10_000, Err(NotSent::Check(RiskReject::Loss))),
            "{what}"
        );
    }
}

#[test]
fn a_name_of_an_execution_of_another_day_hides_no_execution() {
    use tickwire_trading::strategy::{Execution, ExecutionId, Once};
    let execution = |seq| Execution {
        seq: tickwire_market::SeqNo(seq),
        id: ExecutionId::new(b"1").expect("a name"),
    };
    // What `trader/state.rs` makes of yesterday's line `fill,...,57,1`.
    let mut once = Once::default();
    once.remember(execution(57).id);
    once.set_booked(tickwire_market::SeqNo(57));
    assert!(!once.is_new(&execution(57), true), "sent again");
    // A new day: the venue begins its numbers anew, and its ExecIDs, which are unique within a day.
    once.begin_anew();
    assert!(
        once.is_new(&execution(3), false),
        "today's first execution is booked"
    );
    assert!(!once.is_new(&execution(4), false), "said twice today");
}

#[test]
fn who_held_something_and_is_not_here_is_no_start() {
    let live = |names: [&str; 2], fills: &[Fill<Origin>]| {
        let strategies = names.map(|name| hosting(name, false, ControlsConfig::NONE));
        let mut live = Live::hosting(Vec::from(strategies));
        let sources = [facts(0, "nasdaq", Venue::Nasdaq), facts(1, "bzx", Venue::Bzx)];
        live.prepare(&sources, &routes(), 4, Nanos::ZERO)
            .expect("it fits");
        live.restore(0, fills).map_err(|failure| failure.to_string())
    };
    let gone = [fill("gone", Side::Bid, 100)];
    let refused = live(["one", "two"], &gone).expect_err("nobody knows of it");
    assert!(refused.contains("strategy gone holds 100 of"), "{refused}");
    let even = [gone[0], fill("gone", Side::Ask, 100)];
    live(["one", "two"], &even).expect("it holds nothing any more");
    let twice = live(["one", "one"], &[]).expect_err("whose would it be?");
    assert!(twice.contains("two strategies are called one"), "{twice}");
    let long = live(["one", "a name that is longer than symbols are"], &[]).expect_err("too long");
    assert!(long.contains("needs a name of 1 to 23"), "{long}");
    live(["a,b", "two"], &[]).expect_err("a line could not have it");
}

#[test]
fn what_the_venue_sends_again_is_held_and_what_nobody_knows_stops_everything() {
    let folder = std::env::temp_dir().join(format!("tickwire-restored-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    let kept = SESSIONS.map(|session| Kept::open(&folder, session, "FIX.4.4 A B").expect("it opens"));
    assert!(kept.iter().all(Kept::is_new));
    let files = kept.map(|kept| kept.split().0);
    let (recorder, records) = Recorder::start(Vec::from(files), &["one", "two"], || {}).expect("it starts");
    let mut hot = behind([&[fill("one", Side::Bid, 100)], &[]]);
    for (session, record) in hot.sessions.iter_mut().zip(records) {
        session.record = Some(record);
    }
    let now = hot.clock.now();
    assert!(<Live<Told> as Rule>::on_late(
        &mut hot,
        0,
        now,
        &report(Side::Bid, 30),
        true
    ));
    assert_eq!((held(&hot, 0, 0), hot.rule.is_killed()), (130, false));
    // Its instrument is not known yet: it is held as soon as it is.
    let symbol = Symbol::new(b"LATER").expect("short");
    let later = ExecutionReport {
        symbol,
        ..report(Side::Ask, 7)
    };
    assert!(<Live<Told> as Rule>::on_late(&mut hot, 0, now, &later, true));
    assert_eq!(hot.rule.hosted[0].before.len(), 1);
    assert_eq!(hot.rule.hosted[0].before[0].1.symbol, symbol);
    assert_eq!(hot.rule.position(None), 130 - 7, "what is told counts it");
    // Of no process before this one: of an order that should not be there.
    assert!(!<Live<Told> as Rule>::on_late(
        &mut hot,
        0,
        now,
        &report(Side::Bid, 30),
        false
    ));
    assert_eq!((held(&hot, 0, 0), hot.rule.is_killed()), (130, true));
    drop(recorder);
    let _ = std::fs::remove_dir_all(&folder);
}
