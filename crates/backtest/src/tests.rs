//! The venue's rules one by one, in a book of a handful of orders; peers' errors that were published are tests here.

use tickwire_book::{Books, BooksConfig, Depth};
use tickwire_market::{
    BookState, ClientOrderId, EventFlags, EventKind, Instrument, InstrumentId, MarketEvent, Nanos, OrderId,
    Price, SeqNo, Side, Symbol, Volume,
};
use tickwire_trading::strategy::{
    BookChange, ConductorConfig, Context, OrderEvent, Strategy, Subscription, Ticket, TimerId,
};
use tickwire_trading::{ControlsConfig, OrderState, RiskConfig};

use crate::{Backtest, BacktestConfig, Fees, FillModel, Latency, LatencyConfig};

const ID: InstrumentId = InstrumentId(1);

/// Submits what the test says when the time comes.
#[derive(Default)]
struct Script {
    at: Vec<(u64, Do)>,
    numbers: Vec<ClientOrderId>,
    heard: Vec<(u64, ClientOrderId, OrderState, u32)>,
    tops: Vec<(u64, Option<i64>)>,
}

#[derive(Clone, Copy)]
enum Do {
    Submit(Ticket),
    Cancel(usize),
    Replace(usize, u32, i64),
}

impl Strategy for Script {
    fn subscriptions(&self) -> Vec<Subscription> {
        vec![Subscription::symbol("X")]
    }
    fn on_start(&mut self, ctx: &mut Context<'_>) {
        for (place, (at, _)) in self.at.iter().enumerate() {
            ctx.set_timer(TimerId(place as u8), Nanos(*at));
        }
    }
    fn on_timer(&mut self, ctx: &mut Context<'_>, timer: TimerId) {
        match self.at[usize::from(timer.0)].1 {
            Do::Submit(ticket) => self.numbers.push(ctx.submit(ticket).expect("within every limit")),
            Do::Cancel(order) => ctx.cancel(self.numbers[order]).expect("open"),
            Do::Replace(order, qty, at) => {
                let new = ctx.replace(self.numbers[order], qty, price(at)).expect("open");
                self.numbers.push(new);
            }
        }
    }
    fn on_book(&mut self, ctx: &mut Context<'_>, change: &BookChange) {
        let best = change
            .after
            .best(Side::Bid)
            .map(|(p, _)| p.raw() / Price::ONE_RAW);
        self.tops.push((ctx.now().0, best));
    }
    fn on_order(&mut self, ctx: &mut Context<'_>, e: &OrderEvent) {
        self.heard
            .push((ctx.now().0, e.order.id, e.order.state, e.order.filled.0));
    }
}

fn price(units: i64) -> Price {
    Price::from_raw(units * Price::ONE_RAW)
}

struct Rig {
    test: Backtest<Script>,
    seq: u64,
}

fn config(fill: FillModel) -> BacktestConfig {
    BacktestConfig {
        fill,
        conductor: ConductorConfig {
            instrument_bits: 2,
            max_orders: 64,
            risk: RiskConfig {
                price_band_bp: 10_000,
                controls: ControlsConfig::NONE,
                ..RiskConfig::default()
            },
            ..ConductorConfig::default()
        },
        ..BacktestConfig::default()
    }
}

fn rig(at: &[(u64, Do)], depth: Depth, config: BacktestConfig) -> Rig {
    let books = Books::new(BooksConfig {
        depth,
        instruments: 3,
        orders: 256,
        levels: 1024,
        initial: BookState::Live,
        ..BooksConfig::default()
    });
    let script = Script {
        at: at.to_vec(),
        ..Script::default()
    };
    let mut test = Backtest::new(script, vec![books], config);
    let instrument = Instrument {
        id: ID,
        symbol: Symbol::new(b"X").unwrap(),
        ..Instrument::default()
    };
    test.define(0, &instrument, None);
    Rig { test, seq: 0 }
}

impl Rig {
    fn event(&mut self, at: u64, event: MarketEvent) {
        self.seq += 1;
        self.test.on_event(
            0,
            &MarketEvent {
                instrument: ID,
                recv_ts: Nanos(at),
                seq: SeqNo(self.seq),
                ..event
            },
        );
    }
    fn add(&mut self, at: u64, order: u64, side: Side, units: i64, qty: u64) {
        self.event(
            at,
            MarketEvent {
                kind: EventKind::Add,
                order_id: OrderId(order),
                side,
                price: price(units),
                qty: Volume(qty),
                ..MarketEvent::default()
            },
        );
    }
    fn act(&mut self, at: u64, kind: EventKind, order: u64, qty: u64) {
        self.event(
            at,
            MarketEvent {
                kind,
                order_id: OrderId(order),
                qty: Volume(qty),
                ..MarketEvent::default()
            },
        );
    }
    fn fills(&self) -> Vec<(u64, u32, i64, bool)> {
        let fills = self.test.fills().iter();
        fills
            .map(|f| (f.at.0, f.qty.0, f.price.raw() / Price::ONE_RAW, f.is_maker))
            .collect()
    }
}

fn bid(qty: u32, units: i64) -> Do {
    Do::Submit(Ticket::limit(Side::Bid, ID, qty, price(units)))
}

/// A book of 100 in two orders, 60 and 40, bid at 10, and 50 offered at 12.
fn standing(at: &[(u64, Do)], config: BacktestConfig) -> Rig {
    let mut rig = rig(at, Depth::ByOrder, config);
    rig.add(1, 1, Side::Bid, 10, 60);
    rig.add(2, 2, Side::Bid, 10, 40);
    rig.add(3, 3, Side::Ask, 12, 50);
    rig
}

#[test]
fn a_strangers_cancellation_behind_ours_does_not_move_us_up() {
    // nautilus_trader 4370: any delete zeroed the quantity ahead.
    let mut rig = standing(&[(10, bid(10, 10))], config(FillModel::Queue));
    rig.add(20, 4, Side::Bid, 10, 30);
    rig.act(30, EventKind::Delete, 4, 0);
    rig.act(40, EventKind::Execute, 1, 60);
    rig.act(50, EventKind::Execute, 2, 39);
    assert_eq!(rig.fills(), [], "one of the 100 before us is left");
    rig.act(60, EventKind::Execute, 2, 1);
    assert_eq!(rig.fills(), [], "the trade ended exactly before us");
    let summary = rig.test.finish();
    assert_eq!(summary.doubts.stopped_at_front, 1);
    assert_eq!(summary.fills, [0, 0]);
}

#[test]
fn one_lot_that_trades_behind_ours_fills_one_lot() {
    // hftbacktest 316: it filled all ten.
    let mut rig = standing(&[(10, bid(10, 10))], config(FillModel::Queue));
    rig.add(20, 4, Side::Bid, 10, 30);
    rig.act(30, EventKind::Execute, 4, 1);
    assert_eq!(rig.fills(), [(30, 1, 10, true)]);
    let order = *rig.test.conductor().orders().get(ClientOrderId(1)).unwrap();
    assert_eq!(
        (order.state, order.filled.0),
        (OrderState::New, 0),
        "the fill is reported before the next event"
    );
    rig.act(40, EventKind::Execute, 4, 20);
    assert_eq!(rig.fills(), [(30, 1, 10, true), (40, 9, 10, true)]);
    let summary = rig.test.finish();
    assert_eq!(
        summary.instruments[0].position, 10,
        "partial fills come to the position"
    );
    assert_eq!(rig.test.conductor().positions().get(ID).qty, 10);
    assert_eq!(rig.test.fills()[0].queue_at_entry, 100);
}

#[test]
fn partial_cancellations_ahead_bring_us_forward_exactly() {
    let mut rig = standing(&[(10, bid(10, 10))], config(FillModel::Queue));
    rig.act(20, EventKind::Reduce, 1, 55);
    rig.act(30, EventKind::Delete, 2, 0);
    rig.add(35, 5, Side::Bid, 10, 8);
    rig.act(40, EventKind::Execute, 1, 5);
    assert_eq!(rig.fills(), []);
    rig.act(50, EventKind::Execute, 5, 8);
    assert_eq!(rig.fills(), [(50, 8, 10, true)]);
}

#[test]
fn an_order_that_was_replaced_goes_behind_ours() {
    let mut rig = standing(&[(10, bid(10, 10))], config(FillModel::Queue));
    rig.event(
        20,
        MarketEvent {
            kind: EventKind::Replace,
            order_id: OrderId(1),
            ref_id: 11,
            side: Side::Bid,
            price: price(10),
            qty: Volume(60),
            ..MarketEvent::default()
        },
    );
    rig.act(30, EventKind::Execute, 2, 40);
    assert_eq!(rig.fills(), []);
    rig.act(40, EventKind::Execute, 11, 60);
    assert_eq!(rig.fills(), [(40, 10, 10, true)]);
}

#[test]
fn a_trade_at_a_worse_price_had_to_pass_ours() {
    let mut rig = standing(&[(10, bid(10, 11))], config(FillModel::Queue));
    rig.act(20, EventKind::Execute, 1, 4);
    assert_eq!(rig.fills(), [(20, 4, 11, true)]);
}

#[test]
fn a_recorded_order_through_our_price_trades_with_ours_and_is_used_once() {
    let mut rig = standing(
        &[
            (10, bid(10, 11)),
            (
                30,
                Do::Submit(Ticket::limit(Side::Bid, ID, 20, price(12)).immediate_or_cancel()),
            ),
        ],
        config(FillModel::Queue),
    );
    rig.add(20, 7, Side::Ask, 11, 15);
    assert_eq!(rig.fills(), [(20, 10, 11, true)]);
    rig.add(40, 8, Side::Bid, 9, 1);
    // Five of the fifteen are left for the second, then it takes of the 50 at 12.
    assert_eq!(rig.fills()[1..], [(30, 5, 11, false), (30, 15, 12, false)]);
    let summary = rig.test.finish();
    assert_eq!(
        (summary.doubts.crossed_by_recorded, summary.doubts.took_recorded),
        (1, 2)
    );
}

#[test]
fn liquidity_is_used_once_until_it_is_gone() {
    let take = |qty| Do::Submit(Ticket::limit(Side::Bid, ID, qty, price(12)).immediate_or_cancel());
    let mut rig = standing(
        &[(10, take(40)), (20, take(40)), (40, take(40))],
        config(FillModel::Queue),
    );
    rig.add(30, 9, Side::Ask, 12, 5);
    rig.add(50, 10, Side::Bid, 1, 1);
    assert_eq!(
        rig.fills(),
        [(10, 40, 12, false), (20, 10, 12, false), (40, 5, 12, false)]
    );
    rig.test.finish();
    let states: Vec<_> = [1, 2, 3]
        .map(|id| {
            rig.test
                .conductor()
                .orders()
                .get(ClientOrderId(id))
                .unwrap()
                .state
        })
        .to_vec();
    assert_eq!(
        states,
        [OrderState::Filled, OrderState::Cancelled, OrderState::Cancelled]
    );
}

#[test]
fn fill_or_kill_takes_all_or_nothing_and_a_market_order_takes_what_there_is() {
    let fok = |qty| {
        Do::Submit(
            Ticket::limit(Side::Bid, ID, qty, price(12)).lasting(tickwire_market::TimeInForce::FillOrKill),
        )
    };
    let mut rig = standing(
        &[
            (10, fok(51)),
            (20, fok(20)),
            (30, Do::Submit(Ticket::market(Side::Bid, ID, 40))),
        ],
        config(FillModel::Queue),
    );
    rig.add(40, 9, Side::Bid, 1, 1);
    assert_eq!(rig.fills(), [(20, 20, 12, false), (30, 30, 12, false)]);
}

#[test]
fn requests_and_reports_take_their_time_and_the_book_moves_meanwhile() {
    let latency = LatencyConfig {
        entry: Latency::Constant(5),
        cancel: Latency::Constant(2),
        response: Latency::Constant(3),
    };
    let take = Do::Submit(Ticket::limit(Side::Bid, ID, 40, price(12)).immediate_or_cancel());
    let mut rig = standing(
        &[(10, take), (20, bid(10, 9)), (30, Do::Cancel(1))],
        BacktestConfig {
            latency,
            ..config(FillModel::Queue)
        },
    );
    rig.act(12, EventKind::Delete, 3, 0);
    rig.add(100, 9, Side::Bid, 1, 1);
    assert_eq!(rig.fills(), [], "the offer was gone when the order came");
    use OrderState::{Cancelled, New};
    let (one, two) = (ClientOrderId(1), ClientOrderId(2));
    assert_eq!(
        rig.test.conductor().strategy().heard,
        [
            (18, one, New, 0),
            (18, one, Cancelled, 0),
            (28, two, New, 0),
            (35, two, Cancelled, 0)
        ]
    );
}

#[test]
fn a_smaller_quantity_keeps_the_place_and_another_price_loses_it() {
    let mut rig = standing(
        &[
            (10, bid(10, 10)),
            (15, Do::Replace(0, 6, 10)),
            (50, Do::Replace(1, 6, 9)),
            (60, Do::Replace(2, 6, 10)),
        ],
        config(FillModel::Queue),
    );
    rig.add(20, 4, Side::Bid, 10, 30);
    rig.act(30, EventKind::Execute, 4, 2);
    assert_eq!(
        rig.fills(),
        [(30, 2, 10, true)],
        "still before the order that came later"
    );
    rig.act(70, EventKind::Execute, 4, 28);
    assert_eq!(rig.fills().len(), 1, "it has gone behind");
    let summary = rig.test.finish();
    assert_eq!(
        summary.requests,
        [1, 3, 1],
        "one order, three replacements, the cancellation at the end"
    );
    assert_eq!(rig.test.conductor().orders().open(), 0);
    assert_eq!(
        rig.test
            .conductor()
            .counters()
            .get(tickwire_market::Counter::ReportsUnmatched),
        0
    );
}

#[test]
fn on_a_feed_of_levels_trades_take_from_the_front_and_cancellations_from_behind() {
    let mut rig = rig(&[(10, bid(10, 10))], Depth::ByPrice, config(FillModel::Queue));
    let level = |side, units, qty| MarketEvent {
        kind: EventKind::Level,
        side,
        price: price(units),
        qty: Volume(qty),
        order_count: 1,
        ..MarketEvent::default()
    };
    let trade = |qty| MarketEvent {
        kind: EventKind::Trade,
        side: Side::Bid,
        price: price(10),
        qty: Volume(qty),
        flags: EventFlags::NO_SIDE,
        ..MarketEvent::default()
    };
    rig.event(1, level(Side::Bid, 10, 100));
    rig.event(2, level(Side::Ask, 12, 50));
    rig.event(20, level(Side::Bid, 10, 160));
    rig.event(25, level(Side::Bid, 10, 110));
    rig.event(30, trade(90));
    rig.event(31, level(Side::Bid, 10, 20));
    assert_eq!(rig.fills(), [], "ten are left before us");
    rig.event(40, trade(13));
    assert_eq!(rig.fills(), [(40, 3, 10, true)]);
    rig.event(50, level(Side::Ask, 10, 4));
    assert_eq!(
        rig.fills()[1..],
        [(50, 4, 10, true)],
        "an offer at our price would have met us"
    );
    assert_eq!(rig.test.finish().doubts.estimated_queue, 1);
}

#[test]
fn touch_fills_whole_and_says_so() {
    let mut rig = standing(&[(10, bid(500, 10))], config(FillModel::Touch));
    rig.act(20, EventKind::Execute, 1, 1);
    assert_eq!(rig.fills(), [(20, 500, 10, true)]);
    assert_eq!(rig.test.finish().doubts.touched, 1);
}

#[test]
fn money_is_exact_with_fees_marks_and_drawdown() {
    let fees = Fees {
        maker: -1_000_000,
        taker: 3_000_000,
    };
    let take = |qty| Do::Submit(Ticket::limit(Side::Bid, ID, qty, price(12)).immediate_or_cancel());
    let mut rig = standing(
        &[(10, take(50))],
        BacktestConfig {
            fees,
            ..config(FillModel::Queue)
        },
    );
    rig.act(20, EventKind::Execute, 3, 50);
    rig.add(30, 9, Side::Ask, 14, 5);
    rig.add(200_000_000, 10, Side::Bid, 1, 1);
    let summary = rig.test.finish();
    let one = i128::from(Price::ONE_RAW);
    // 50 bought at 12, valued at the middle of 10 and 14.
    assert_eq!(summary.instruments[0].gain, 0);
    assert_eq!(summary.gain, -50 * 3_000_000);
    assert_eq!(summary.instruments[0].fees, 50 * 3_000_000);
    // When it was bought the middle was 11.
    assert_eq!(summary.drawdown, 50 * one + 50 * 3_000_000);
    assert_eq!(rig.test.fills()[0].mid, Some(price(11)));
    assert_eq!(rig.test.fills()[0].mark_outs, [Some(price(12)), None, None]);
}

#[test]
fn halts_are_the_venues_word_when_the_request_comes() {
    let latency = LatencyConfig {
        entry: Latency::Constant(10),
        ..LatencyConfig::default()
    };
    let mut rig = standing(
        &[(10, bid(1, 10))],
        BacktestConfig {
            latency,
            ..config(FillModel::Queue)
        },
    );
    rig.event(
        15,
        MarketEvent {
            kind: EventKind::Status,
            status: tickwire_market::TradingStatus::Halted,
            ..MarketEvent::default()
        },
    );
    rig.add(50, 9, Side::Bid, 1, 1);
    let summary = rig.test.finish();
    assert_eq!(summary.rejects, 1);
    assert_eq!(
        rig.test.conductor().orders().get(ClientOrderId(1)).unwrap().state,
        OrderState::Rejected
    );
}

#[test]
fn one_run_is_another_to_the_last_bit_and_a_different_seed_is_not() {
    let drawn = Latency::Drawn(vec![(1, 1), (7, 1), (30, 1)]);
    let run = |seed| {
        let mut rig = standing(
            &[(10, bid(10, 10)), (25, Do::Cancel(0)), (40, bid(7, 10))],
            BacktestConfig {
                latency: LatencyConfig {
                    entry: drawn.clone(),
                    cancel: drawn.clone(),
                    response: drawn.clone(),
                },
                seed,
                ..config(FillModel::Queue)
            },
        );
        rig.add(20, 4, Side::Bid, 10, 30);
        rig.act(70, EventKind::Execute, 4, 30);
        rig.test.finish()
    };
    assert_eq!(run(1), run(1));
    assert!((2..40).any(|seed| run(seed).hash != run(1).hash));
}

#[test]
fn a_price_between_ticks_is_refused_as_the_venue_would() {
    let off = Do::Submit(Ticket::limit(Side::Bid, ID, 1, Price::from_raw(10_005_000_000)));
    let mut rig = standing(&[(10, off), (20, bid(1, 10))], config(FillModel::Queue));
    rig.add(30, 9, Side::Bid, 1, 1);
    assert_eq!(rig.test.finish().rejects, 1);
}
