//! Synthetic recordings, and the strategy that is run on them: of the benchmark, and of the comparison with
//! others (`peers/backtest`).

use tickwire_backtest::{Backtest, BacktestConfig, FillModel, Latency, LatencyConfig};
use tickwire_book::{Books, BooksConfig, Depth};
use tickwire_market::{
    BookState, ClientOrderId, EventFlags, EventKind, Instrument, InstrumentId, MarketEvent, Nanos, OrderId,
    Price, SeqNo, Side, Symbol, Volume,
};
use tickwire_trading::strategy::{
    BookChange, ConductorConfig, Context, Strategy, Subscription, Ticket, TimerId,
};
use tickwire_trading::{ControlsConfig, RiskConfig};

/// A recording as it is made.
pub(crate) struct Flow {
    /// What it has come to.
    pub(crate) books: Books,
    live: Vec<OrderId>,
    wanted: usize,
    instruments: u32,
    tick: i64,
    state: u64,
    next: u64,
    seq: u64,
    time: u64,
    is_grouped: bool,
}

/// Books as they ship, of orders.
pub(crate) fn sizes() -> BooksConfig {
    BooksConfig {
        depth: Depth::ByOrder,
        initial: BookState::Live,
        ..BooksConfig::default()
    }
}

impl Flow {
    /// So many orders in the books of so many instruments, with this step of prices in 1e-9; in match events
    /// if it is grouped.
    pub(crate) fn new(instruments: u32, wanted: usize, tick: i64, is_grouped: bool) -> Flow {
        Flow {
            books: Books::new(sizes()),
            live: Vec::new(),
            wanted,
            instruments,
            tick,
            state: 7,
            next: 1 << 20,
            seq: 0,
            time: 1_700_000_000_000_000_000,
            is_grouped,
        }
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.state = self
            .state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.state >> 33) % bound
    }

    /// A price of a side that does not cross: near the touch most often.
    fn price(&mut self, instrument: InstrumentId, side: Side) -> Price {
        let start = 1_000_000 + 1_000 * i64::from(instrument.0);
        let of = |side| {
            let best = self.books.book(instrument).and_then(|book| book.best(side));
            best.map(|level| level.price.raw() / self.tick)
        };
        let far = of(!side).unwrap_or(match side {
            Side::Bid => start + 1,
            Side::Ask => start,
        });
        let (a, b) = (self.below(12), self.below(40));
        let away = 1 + (a.min(b) as i64);
        Price::from_raw(
            self.tick
                * match side {
                    Side::Bid => far - away,
                    Side::Ask => far + away,
                },
        )
    }

    /// The next event.
    pub(crate) fn event(&mut self) -> MarketEvent {
        let is_full = self.live.len() >= self.wanted;
        self.seq += 1;
        let is_last = !self.is_grouped || self.below(4) != 0;
        self.time += if is_last { 500 + self.below(40_000) } else { 0 };
        let base = MarketEvent {
            seq: SeqNo(self.seq),
            recv_ts: Nanos(self.time),
            venue_ts: Nanos(self.time),
            flags: match is_last {
                true => EventFlags::LAST,
                false => EventFlags::NONE,
            },
            ..MarketEvent::default()
        };
        let what = self.below(100);
        let event = if !is_full || what < 46 {
            let instrument = InstrumentId(1 + self.below(self.instruments.into()) as u32);
            let side = Side::BOTH[self.below(2) as usize];
            let price = self.price(instrument, side);
            self.next += 1;
            self.live.push(OrderId(self.next));
            MarketEvent {
                kind: EventKind::Add,
                instrument,
                side,
                price,
                qty: Volume(1 + self.below(20)),
                order_id: OrderId(self.next),
                ..base
            }
        } else {
            let at = self.below(self.live.len() as u64) as usize;
            let order = self.books.order(self.live[at]).expect("it stands");
            let left = u64::from(order.qty.0);
            match what {
                46..=50 => {
                    // Who stands first at the best price trades.
                    let book = self.books.book(order.instrument).expect("a book");
                    let best = book.best(order.side).expect("it stands there");
                    let first = book.orders(order.side, best.price).next().expect("somebody");
                    let left = u64::from(first.qty.0);
                    let qty = 1 + self.below(left);
                    if qty == left {
                        let place = self.live.iter().position(|id| *id == first.id);
                        // Few live orders, or a scan that is not measured.
                        self.live.swap_remove(place.expect("it is live"));
                    }
                    MarketEvent {
                        kind: EventKind::Execute,
                        instrument: order.instrument,
                        order_id: first.id,
                        qty: Volume(qty),
                        ..base
                    }
                }
                51..=58 => {
                    let price = self.price(order.instrument, order.side);
                    self.next += 1;
                    self.live[at] = OrderId(self.next);
                    MarketEvent {
                        kind: EventKind::Replace,
                        instrument: order.instrument,
                        order_id: order.id,
                        ref_id: self.next,
                        price,
                        qty: Volume(1 + self.below(20)),
                        ..base
                    }
                }
                59..=61 if left > 1 => MarketEvent {
                    kind: EventKind::Reduce,
                    instrument: order.instrument,
                    order_id: order.id,
                    qty: Volume(1 + self.below(left - 1)),
                    ..base
                },
                _ => {
                    self.live.swap_remove(at);
                    MarketEvent {
                        kind: EventKind::Delete,
                        instrument: order.instrument,
                        order_id: order.id,
                        ..base
                    }
                }
            }
        };
        self.books.apply(&event);
        event
    }
}

/// Listens; quotes every 100 ms if it is to.
pub(crate) struct Quoter {
    quotes: bool,
    /// Changes of books that it was told.
    pub(crate) changes: u64,
    open: [Option<ClientOrderId>; 2],
    /// What it has asked for.
    pub(crate) requests: u64,
}

/// How often it quotes.
pub(crate) const EVERY: u64 = 100 * Nanos::MILLI;

impl Strategy for Quoter {
    fn subscriptions(&self) -> Vec<Subscription> {
        vec![Subscription::All]
    }

    fn on_book(&mut self, ctx: &mut Context<'_>, _: &BookChange) {
        if self.quotes && self.changes == 0 {
            ctx.set_timer(TimerId(0), Nanos(ctx.now().0 + EVERY));
        }
        self.changes += 1;
    }

    fn on_timer(&mut self, ctx: &mut Context<'_>, _: TimerId) {
        let id = InstrumentId(1);
        for side in Side::BOTH {
            let best = ctx.book(id).and_then(|book| book.best(side));
            let Some(best) = best else { continue };
            let kept = self.open[side as usize].and_then(|old| ctx.replace(old, 1, best.price).ok());
            let ticket = Ticket::limit(side, id, 1, best.price);
            self.open[side as usize] = kept.or_else(|| ctx.submit(ticket).ok());
            self.requests += 1;
        }
        ctx.set_timer(TimerId(0), Nanos(ctx.now().0 + EVERY));
    }
}

/// A backtest of it on books that ship.
pub(crate) fn test(instruments: u32, quotes: bool, fill: FillModel, is_grouped: bool) -> Backtest<Quoter> {
    let ns = Latency::Constant(20_000);
    let config = BacktestConfig {
        fill,
        latency: LatencyConfig {
            entry: ns.clone(),
            cancel: ns.clone(),
            response: ns,
            ..LatencyConfig::default()
        },
        conductor: ConductorConfig {
            instrument_bits: 14,
            risk: RiskConfig {
                price_band_bp: 10_000,
                max_position: 1 << 40,
                controls: ControlsConfig::NONE,
                ..RiskConfig::default()
            },
            ..ConductorConfig::default()
        },
        is_grouped: vec![is_grouped],
        ..BacktestConfig::default()
    };
    let strategy = Quoter {
        quotes,
        changes: 0,
        open: [None; 2],
        requests: 0,
    };
    let mut test = Backtest::new(strategy, vec![Books::new(sizes())], config);
    for id in (1..=instruments).map(InstrumentId) {
        let instrument = Instrument {
            id,
            symbol: Symbol::new(format!("S{}", id.0).as_bytes()).expect("a symbol"),
            ..Instrument::default()
        };
        test.define(0, &instrument, None);
    }
    test
}
