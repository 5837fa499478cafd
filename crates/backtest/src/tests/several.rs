//! Several strategies over one venue and one clock.

use super::*;
use crate::Entrant;
use tickwire_market::Qty;
use tickwire_trading::RiskReject;
use tickwire_trading::strategy::NUMBERS;

fn entrants(scripts: &[&[(u64, Do)]], controls: ControlsConfig) -> Vec<Entrant<Script>> {
    let of = |at: &&[(u64, Do)]| {
        let mut conductor = config(FillModel::Queue).conductor;
        conductor.risk.controls = controls;
        Entrant {
            strategy: Script {
                at: at.to_vec(),
                ..Script::default()
            },
            conductor,
            hears: Vec::new(),
        }
    };
    scripts.iter().map(of).collect()
}

fn together(scripts: &[&[(u64, Do)]], fill: FillModel, controls: ControlsConfig) -> Rig {
    let books = Books::new(BooksConfig {
        depth: Depth::ByOrder,
        instruments: 3,
        orders: 256,
        levels: 1024,
        initial: BookState::Live,
        ..BooksConfig::default()
    });
    let entrants = entrants(scripts, controls);
    let mut test = Backtest::of_several(entrants, vec![books], config(fill));
    let instrument = Instrument {
        id: ID,
        symbol: Symbol::new(b"X").unwrap(),
        ..Instrument::default()
    };
    test.define(0, &instrument, None);
    let mut rig = Rig { test, seq: 0 };
    rig.add(1, 1, Side::Bid, 10, 60);
    rig.add(2, 2, Side::Bid, 10, 40);
    rig.add(3, 3, Side::Ask, 12, 50);
    rig
}

fn take(qty: u32) -> Do {
    Do::Submit(Ticket::limit(Side::Bid, ID, qty, price(12)).immediate_or_cancel())
}

#[test]
fn each_has_orders_positions_and_results_of_its_own_and_what_one_takes_the_other_does_not_get() {
    for model in [FillModel::Queue, FillModel::Matching] {
        let mut rig = together(
            &[&[(10, take(40))], &[(20, take(40))]],
            model,
            ControlsConfig::NONE,
        );
        rig.add(30, 9, Side::Bid, 1, 1);
        let fills: Vec<_> = rig.test.fills().iter().map(|f| (f.order.0, f.qty.0)).collect();
        assert_eq!(fills, [(1, 40), (NUMBERS + 1, 10)], "{model:?}");
        let held: Vec<i64> = rig
            .test
            .conductors()
            .map(|one| one.positions().get(ID).qty)
            .collect();
        assert_eq!(held, [40, 10]);
        let summary = rig.test.finish();
        assert_eq!((summary.fills[0], summary.instruments[0].position), (2, 50));
        let each = rig.test.results_of_each();
        let shown: Vec<_> = each
            .iter()
            .map(|one| (one.fills[0], one.instruments[0].position))
            .collect();
        assert_eq!(shown, [(1, 40), (1, 10)]);
        assert_eq!(each.iter().map(|one| one.gain).sum::<i128>(), summary.gain);
    }
}

#[test]
fn an_order_that_could_meet_anothers_is_not_sent_and_limits_over_all_count_both() {
    let buy = Do::Submit(Ticket::limit(Side::Bid, ID, 10, price(11)));
    let sell = |at| Do::Try(Ticket::limit(Side::Ask, ID, 10, price(at)));
    let controls = ControlsConfig {
        position_max: 45,
        ..ControlsConfig::NONE
    };
    let over = Do::Try(Ticket::limit(Side::Bid, ID, 10, price(12)).immediate_or_cancel());
    let scripts: [&[(u64, Do)]; 2] = [
        &[(10, buy), (15, take(40))],
        &[(12, sell(11)), (13, sell(13)), (20, over)],
    ];
    let mut rig = together(&scripts, FillModel::Queue, controls);
    rig.add(18, 8, Side::Bid, 2, 1);
    rig.add(30, 9, Side::Bid, 1, 1);
    let refused: Vec<_> = rig
        .test
        .conductors()
        .map(|one| one.strategy().refused.clone())
        .collect();
    let check = NotSent::Check;
    assert_eq!(
        refused,
        [
            vec![],
            vec![check(RiskReject::SelfTrade), check(RiskReject::TotalPosition)]
        ],
        "the other's bid at 11; 40 of 45 are the other's"
    );
    assert_eq!(rig.test.resting(), 2);
}

#[test]
fn a_quote_of_one_is_no_place_for_the_others() {
    let quote = |qty| Quote {
        instrument: ID,
        sides: [(price(10), Qty(qty)), (price(13), Qty(qty))],
    };
    let buys = Do::Try(Ticket::limit(Side::Bid, ID, 1, price(13)));
    let scripts: [&[(u64, Do)]; 2] = [&[(10, Do::Quote(quote(5)))], &[(12, buys)]];
    let mut rig = together(&scripts, FillModel::Queue, ControlsConfig::NONE);
    rig.add(30, 9, Side::Bid, 1, 1);
    let second = rig.test.conductors().nth(1).expect("the second");
    assert_eq!(second.strategy().refused, [NotSent::Check(RiskReject::SelfTrade)]);
    assert_eq!(rig.test.conductor().strategy().quotes, ["10 Accepted [5, 5]"]);
}

#[test]
fn who_hears_nothing_of_a_feed_is_told_nothing() {
    let mut all = entrants(&[&[], &[]], ControlsConfig::NONE);
    all[1].hears = vec![false];
    let books = Books::new(BooksConfig {
        depth: Depth::ByOrder,
        instruments: 3,
        orders: 256,
        levels: 1024,
        initial: BookState::Live,
        ..BooksConfig::default()
    });
    let test = Backtest::of_several(all, vec![books], config(FillModel::Queue));
    let mut rig = Rig { test, seq: 0 };
    let instrument = Instrument {
        id: ID,
        symbol: Symbol::new(b"X").unwrap(),
        ..Instrument::default()
    };
    rig.test.define(0, &instrument, None);
    rig.add(1, 1, Side::Bid, 10, 60);
    let told: Vec<_> = rig
        .test
        .conductors()
        .map(|one| one.strategy().tops.len())
        .collect();
    assert_eq!(told, [2, 0], "the definition and the order");
}

#[test]
fn one_of_several_that_is_alone_in_trading_does_what_it_does_alone() {
    let script = [(10, bid(10, 10)), (25, take(20)), (33, Do::Cancel(0))];
    let play = |rig: &mut Rig| {
        rig.add(20, 4, Side::Bid, 10, 30);
        rig.act(30, EventKind::Execute, 1, 60);
        rig.act(32, EventKind::Execute, 2, 40);
        rig.act(34, EventKind::Execute, 4, 10);
        rig.add(40, 9, Side::Bid, 1, 1);
        let summary = rig.test.finish();
        (rig.fills(), summary.gain, summary.requests)
    };
    let mut alone = standing(&script, config(FillModel::Matching));
    let mut beside = together(&[&script, &[]], FillModel::Matching, ControlsConfig::NONE);
    assert_eq!(play(&mut alone), play(&mut beside));
}
