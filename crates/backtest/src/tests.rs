//! The venue's rules one by one, in a book of a handful of orders; peers' errors that were published are
//! tests here.

mod concerned;
mod quotes;
mod several;
mod stops;

use tickwire_book::{Books, BooksConfig, Depth};
use tickwire_market::{
    BookState, ClientOrderId, EventFlags, EventKind, Instrument, InstrumentId, MarketEvent, Nanos, OrderId,
    Price, SeqNo, Side, Symbol, Volume,
};
use tickwire_trading::strategy::{
    BookChange, ConductorConfig, Context, NotSent, OrderEvent, Quote, QuoteEvent, Strategy, Subscription,
    Ticket, TimerId,
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
    quotes: Vec<String>,
    refused: Vec<NotSent>,
    tops: Vec<(u64, Option<i64>)>,
}

#[derive(Clone, Copy)]
enum Do {
    Submit(Ticket),
    Try(Ticket),
    Cancel(usize),
    Replace(usize, u32, i64),
    ReplaceStop(usize, u32, i64),
    Quote(Quote),
    CancelQuotes,
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
            Do::Try(ticket) => self.refused.extend(ctx.submit(ticket).err()),
            Do::Quote(quote) => _ = ctx.mass_quote(&[quote]).expect("within every limit"),
            Do::CancelQuotes => _ = ctx.cancel_quotes(),
            Do::Cancel(order) => ctx.cancel(self.numbers[order]).expect("open"),
            Do::Replace(order, qty, at) => {
                let new = ctx.replace(self.numbers[order], qty, price(at)).expect("open");
                self.numbers.push(new);
            }
            Do::ReplaceStop(order, qty, trigger) => {
                let stop = ctx.replace_stop(self.numbers[order], qty, price(trigger), None);
                self.numbers.push(stop.expect("it waits"));
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
    fn on_own_quote(&mut self, ctx: &mut Context<'_>, e: &QuoteEvent) {
        let open = Side::BOTH.map(|side| e.quote.open(side).0);
        self.quotes.push(format!("{} {:?} {open:?}", ctx.now().0, e.kind));
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
            last_id: 0,
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
        ..LatencyConfig::default()
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
                    feed: Latency::Drawn(vec![(1, 1), (3, 1)]),
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

/// Numbers from a seed, as long as there are some left.
fn choices(seed: u64, count: u32) -> impl FnMut(u32) -> Option<u32> {
    let (mut state, mut left) = (seed, count);
    move |bound| {
        left = left.checked_sub(1)?;
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        Some((state >> 33) as u32 % bound)
    }
}

#[test]
fn queues_and_matching_agree_with_a_list_of_orders() {
    for fill in [FillModel::Queue, FillModel::Matching] {
        let (mut fills, mut refused) = (0, 0);
        for seed in 0..400 {
            let (more, no) = crate::naive::agree(&mut choices(seed * 7_919 + 1, 1_500), fill);
            (fills, refused) = (fills + more, refused + no);
        }
        println!("{fill:?}: {fills} fills, {refused} events refused");
        assert!(fills > 5_000, "{fill:?}: {fills} fills");
        assert!(refused > 1_000, "{fill:?}: {refused} events refused");
    }
}

/// As [`standing`], in one matching engine with the recorded orders.
fn matching(at: &[(u64, Do)]) -> Rig {
    standing(at, config(FillModel::Matching))
}

#[test]
fn in_one_engine_who_is_ahead_trades_first_and_others_trade_less() {
    let mut rig = matching(&[(10, bid(10, 10))]);
    rig.add(20, 4, Side::Bid, 10, 30);
    rig.act(30, EventKind::Execute, 1, 60);
    rig.act(40, EventKind::Execute, 2, 40);
    assert_eq!(rig.fills(), []);
    // In the recording the third order's 30 trade; here ours does first, and ten of the third stand on.
    rig.act(50, EventKind::Execute, 4, 30);
    assert_eq!(rig.fills(), [(50, 10, 10, true)]);
    // They are ahead of what comes later: another one of ours waits for them.
    let later = rig.test.finish();
    assert_eq!((later.doubts.spared, later.doubts.found_less), (1, 0));
    let mut rig = matching(&[(10, bid(10, 10)), (60, bid(5, 10))]);
    rig.add(20, 4, Side::Bid, 10, 30);
    for (at, order, qty) in [(30, 1, 60), (40, 2, 40), (50, 4, 30)] {
        rig.act(at, EventKind::Execute, order, qty);
    }
    rig.add(70, 5, Side::Bid, 10, 50);
    rig.act(80, EventKind::Execute, 5, 12);
    assert_eq!(
        rig.fills(),
        [(50, 10, 10, true), (80, 2, 10, true)],
        "ten to the one that was spared, then two to ours"
    );
    assert_eq!(rig.test.fills()[1].queue_at_entry, 10);
}

#[test]
fn what_ours_take_is_missing_for_those_who_come_later() {
    let take = Do::Submit(Ticket::limit(Side::Bid, ID, 45, price(12)).immediate_or_cancel());
    let mut rig = matching(&[
        (10, take),
        (60, Do::Submit(Ticket::limit(Side::Ask, ID, 5, price(12)))),
    ]);
    rig.add(20, 4, Side::Ask, 12, 30);
    // The recording's buyer of 50 finds 5 of the first, takes 30 of the second, and what is left of him is
    // not known.
    rig.act(30, EventKind::Execute, 3, 50);
    // What he has taken of the second is missing, too, for the next one.
    rig.act(40, EventKind::Execute, 4, 30);
    rig.add(65, 5, Side::Ask, 12, 7);
    rig.act(70, EventKind::Execute, 5, 7);
    assert_eq!(rig.fills(), [(10, 45, 12, false), (70, 5, 12, true)]);
    let doubts = rig.test.finish().doubts;
    assert_eq!(
        (doubts.found_less, doubts.spared, doubts.took_recorded),
        (2, 1, 0)
    );
}

#[test]
fn owners_of_recorded_orders_cancel_and_replace_what_they_have_left() {
    // Ours takes 20 of the 50 offered; the owner replaces them by 40, of which he has 20 less.
    let take = |qty| Do::Submit(Ticket::limit(Side::Bid, ID, qty, price(13)).immediate_or_cancel());
    let mut rig = matching(&[(10, take(20)), (30, take(99))]);
    rig.event(
        20,
        MarketEvent {
            kind: EventKind::Replace,
            order_id: OrderId(3),
            ref_id: 33,
            side: Side::Ask,
            price: price(13),
            qty: Volume(40),
            ..MarketEvent::default()
        },
    );
    rig.act(40, EventKind::Delete, 33, 0);
    rig.add(50, 9, Side::Bid, 1, 1);
    assert_eq!(rig.fills(), [(10, 20, 12, false), (30, 20, 13, false)]);
    assert_eq!(rig.test.finish().doubts.found_less, 0);
}

#[test]
fn a_match_event_is_not_acted_in() {
    // CME and MOEX: an order that comes at the time of a match, or between its messages, finds the book after
    // it.
    let grouped = BacktestConfig {
        is_grouped: vec![true],
        ..config(FillModel::Queue)
    };
    for matches_at in [[30, 30], [25, 25]] {
        let take = Do::Submit(Ticket::limit(Side::Bid, ID, 50, price(12)).immediate_or_cancel());
        let mut rig = rig(&[(30, take)], Depth::ByOrder, grouped.clone());
        let end = EventFlags::LAST;
        for (at, order, side, units, qty, flags) in [
            (1, 1, Side::Bid, 10, 60, EventFlags::NONE),
            (1, 3, Side::Ask, 12, 50, end),
        ] {
            rig.event(
                at,
                MarketEvent {
                    kind: EventKind::Add,
                    order_id: OrderId(order),
                    side,
                    price: price(units),
                    qty: Volume(qty),
                    flags,
                    ..MarketEvent::default()
                },
            );
        }
        for (at, qty, flags) in [(matches_at[0], 20, EventFlags::NONE), (matches_at[1], 25, end)] {
            rig.event(
                at,
                MarketEvent {
                    kind: EventKind::Execute,
                    order_id: OrderId(3),
                    qty: Volume(qty),
                    flags,
                    ..MarketEvent::default()
                },
            );
        }
        rig.add(40, 9, Side::Bid, 1, 1);
        assert_eq!(rig.fills(), [(30, 5, 12, false)], "what both left");
    }
}

#[test]
fn the_strategy_hears_later_than_the_venue_speaks_and_its_orders_find_what_came_meanwhile() {
    let latency = LatencyConfig {
        feed: Latency::Constant(100),
        entry: Latency::Constant(10),
        cancel: Latency::Constant(10),
        response: Latency::Constant(150),
    };
    let take = Do::Submit(Ticket::limit(Side::Bid, ID, 40, price(12)).immediate_or_cancel());
    let mut rig = standing(
        &[(1_000, take)],
        BacktestConfig {
            latency,
            ..config(FillModel::Queue)
        },
    );
    // Told at the venue at 950, heard at 1,050: the strategy acts at 1,000 without knowing, and the venue
    // does know.
    rig.act(950, EventKind::Reduce, 3, 45);
    rig.add(1_005, 8, Side::Bid, 9, 1);
    rig.add(2_000, 9, Side::Bid, 1, 1);
    assert_eq!(rig.fills(), [(1_010, 5, 12, false)]);
    let script = rig.test.conductor().strategy();
    let heard: Vec<u64> = script.tops.iter().map(|(at, _)| *at).collect();
    assert_eq!(heard, [0, 101, 102, 103, 1_050, 1_105, 2_100]);
    assert_eq!(script.heard.first().map(|(at, ..)| *at), Some(1_160));
    assert_eq!(rig.test.finish().doubts.told_before_feed, 0);
}

#[test]
fn a_report_that_beats_the_feed_is_told_behind_it_and_counted() {
    let latency = LatencyConfig {
        feed: Latency::Constant(100),
        ..LatencyConfig::default()
    };
    let mut rig = standing(
        &[(150, bid(10, 10))],
        BacktestConfig {
            latency,
            ..config(FillModel::Queue)
        },
    );
    rig.add(149, 4, Side::Bid, 9, 1);
    rig.add(400, 9, Side::Bid, 1, 1);
    rig.act(500, EventKind::Execute, 1, 60);
    rig.act(500, EventKind::Execute, 2, 40);
    rig.add(501, 5, Side::Bid, 10, 30);
    rig.act(510, EventKind::Execute, 5, 10);
    rig.add(520, 10, Side::Bid, 1, 1);
    assert_eq!(rig.fills(), [(510, 10, 10, true)]);
    let heard = &rig.test.conductor().strategy().heard;
    assert_eq!(
        heard.last().map(|(at, ..)| *at),
        Some(610),
        "as the feed tells it, not at 510"
    );
    // The acceptance, behind what happened at 149 and was heard at 249, and the fill.
    assert_eq!(rig.test.finish().doubts.told_before_feed, 2);
}

#[test]
fn nanoseconds_are_kept() {
    // hftbacktest and others lose them where times are floats: 2^53 ns were over in April 1970.
    let day = 1_764_000_000_000_000_000;
    let mut rig = standing(&[(day + 1, bid(10, 10))], config(FillModel::Queue));
    rig.act(day + 3, EventKind::Execute, 1, 60);
    rig.act(day + 3, EventKind::Execute, 2, 40);
    rig.add(day + 4, 4, Side::Bid, 10, 5);
    rig.act(day + 7, EventKind::Execute, 4, 5);
    assert_eq!(rig.fills(), [(day + 7, 5, 10, true)]);
    let summary = rig.test.finish();
    assert_eq!(summary.span, [Nanos(1), Nanos(day + 7)]);
}

#[test]
fn trades_that_are_fills_of_resting_orders_do_not_change_the_book_twice() {
    // nautilus_trader 4445: a trade beside the executions that made it was applied as an execution of its
    // own.
    let mut rig = standing(&[(10, bid(10, 10))], config(FillModel::Queue));
    rig.act(20, EventKind::Execute, 1, 30);
    rig.event(
        20,
        MarketEvent {
            kind: EventKind::Trade,
            side: Side::Bid,
            price: price(10),
            qty: Volume(30),
            ..MarketEvent::default()
        },
    );
    rig.act(30, EventKind::Execute, 1, 30);
    rig.act(40, EventKind::Execute, 2, 40);
    assert_eq!(rig.fills(), [], "all that traded was before us");
    rig.add(50, 4, Side::Bid, 10, 5);
    rig.act(60, EventKind::Execute, 4, 5);
    assert_eq!(rig.fills(), [(60, 5, 10, true)]);
    let book = rig.test.books(0).book(ID).unwrap();
    assert!(book.levels(Side::Bid).next().is_none());
    assert_eq!(
        rig.test
            .books(0)
            .counters()
            .get(tickwire_market::Counter::BookRejects),
        0
    );
}

#[test]
fn what_becomes_less_in_its_place_was_executed_where_the_feed_says_no_executions() {
    let moscow = BacktestConfig {
        less_is_executed: vec![true],
        ..config(FillModel::Queue)
    };
    let change = |order, qty| MarketEvent {
        kind: EventKind::Modify,
        order_id: OrderId(order),
        side: Side::Bid,
        price: price(10),
        qty: Volume(qty),
        flags: EventFlags::KEEPS_PRIORITY,
        ..MarketEvent::default()
    };
    for (config, fills) in [
        (moscow, &[(30, 10, 10, true)][..]),
        (config(FillModel::Queue), &[]),
    ] {
        let mut rig = standing(&[(10, bid(10, 10))], config);
        rig.add(20, 4, Side::Bid, 10, 30);
        rig.event(25, change(1, 20));
        rig.event(30, change(4, 5));
        assert_eq!(rig.fills(), fills);
    }
}

#[test]
fn a_clear_of_the_whole_feed_leaves_ours_first() {
    for fill in [FillModel::Queue, FillModel::Matching] {
        let mut rig = standing(&[(10, bid(10, 10))], config(fill));
        rig.add(20, 4, Side::Bid, 10, 30);
        rig.event(
            30,
            MarketEvent {
                kind: EventKind::Clear,
                ..MarketEvent::default()
            },
        );
        let clear = MarketEvent {
            kind: EventKind::Clear,
            recv_ts: Nanos(31),
            ..MarketEvent::default()
        };
        rig.test.on_event(0, &clear);
        rig.add(40, 1, Side::Bid, 10, 30);
        rig.act(50, EventKind::Execute, 1, 4);
        assert_eq!(rig.fills(), [(50, 4, 10, true)], "{fill:?}");
    }
}

#[test]
fn of_ours_the_better_price_trades_first_whichever_came_first() {
    for fill in [FillModel::Queue, FillModel::Matching] {
        let mut rig = standing(&[(10, bid(10, 10)), (12, bid(10, 11))], config(fill));
        rig.add(20, 4, Side::Bid, 9, 30);
        rig.act(30, EventKind::Execute, 4, 12);
        assert_eq!(rig.fills(), [(30, 10, 11, true), (30, 2, 10, true)], "{fill:?}");
    }
}
