//! Events of a recording through a backtest, on one core: what a day costs to look at. A regression here means that something is done for every event that
//! only those need in whose book an order of ours stands.
//!
//! Two synthetic recordings of orders: `es`, one future with 3,000 orders in its book, in match events; `equities`, 500 shares with 200,000 orders, which
//! do not fit the caches. The books have the sizes that ship ([`BooksConfig::default`]). Variants: `books`, the books alone, as the limit; `idle`, a backtest
//! whose strategy listens and does nothing; `quoting`, one that replaces a bid and an offer every 100 ms, by each fill model. Every run ends with the
//! generator's own books, level by level, and no event refused; otherwise it fails. The recording is made in pieces, which is not measured.
//!
//! `cargo bench -p tickwire-backtest` runs 10 million events of each; under `cargo test` it runs 40,000. Options after `--`: `--events N`, `--rounds N`,
//! `--only TEXT` (variants whose name contains it). Instructions: `valgrind --tool=callgrind --toggle-collect='*measured*'` before the binary.

use std::hint::black_box;
use std::time::{Duration, Instant};

use tickwire_backtest::{Backtest, BacktestConfig, FillModel, Latency, LatencyConfig};
use tickwire_book::{Books, BooksConfig, Depth};
use tickwire_market::{
    BookState, ClientOrderId, Counter, EventFlags, EventKind, Instrument, InstrumentId, MarketEvent, Nanos,
    OrderId, Price, SeqNo, Side, Symbol, Volume,
};
use tickwire_trading::strategy::{
    BookChange, ConductorConfig, Context, Strategy, Subscription, Ticket, TimerId,
};
use tickwire_trading::{ControlsConfig, RiskConfig};

/// A recording as it is made.
struct Flow {
    books: Books,
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

fn sizes() -> BooksConfig {
    BooksConfig {
        depth: Depth::ByOrder,
        initial: BookState::Live,
        ..BooksConfig::default()
    }
}

impl Flow {
    fn new(instruments: u32, wanted: usize, tick: i64, is_grouped: bool) -> Flow {
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

    fn event(&mut self) -> MarketEvent {
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
struct Quoter {
    quotes: bool,
    changes: u64,
    open: [Option<ClientOrderId>; 2],
    requests: u64,
}

const EVERY: u64 = 100 * Nanos::MILLI;

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

fn test(instruments: u32, quotes: bool, fill: FillModel, is_grouped: bool) -> Backtest<Quoter> {
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

/// What is timed, and what callgrind is told to collect.
#[inline(never)]
fn measured(events: &[MarketEvent], take: &mut dyn FnMut(&[MarketEvent])) -> Duration {
    let begun = Instant::now();
    take(black_box(events));
    begun.elapsed()
}

fn option(name: &str) -> Option<String> {
    let mut arguments = std::env::args().skip_while(|argument| argument != name);
    arguments.nth(1)
}

/// Events of a piece: enough that the caches hold none of the next one.
const PIECE: usize = 250_000;

fn main() {
    let is_bench = std::env::args().any(|argument| argument == "--bench");
    let number = |name, otherwise| option(name).map_or(otherwise, |text| text.parse().expect("a number"));
    let events: usize = number("--events", if is_bench { 10_000_000 } else { 40_000 });
    let rounds: usize = number("--rounds", if is_bench { 3 } else { 1 });
    let only = option("--only").unwrap_or_default();
    for (name, instruments, wanted, tick, is_grouped) in [
        ("es", 1, 3_000, 250_000_000, true),
        ("equities", 500, 200_000, 10_000_000, false),
    ] {
        let variants = ["books", "idle", "quoting queue", "quoting matching"];
        let variants = variants.map(|variant| format!("{name} {variant}"));
        let chosen: Vec<&String> = variants
            .iter()
            .filter(|variant| variant.contains(&only))
            .collect();
        let mut best = vec![Duration::MAX; chosen.len()];
        let mut said = vec![String::new(); chosen.len()];
        for _ in 0..rounds {
            let mut flow = Flow::new(instruments, wanted.min(events / 4), tick, is_grouped);
            let mut books = Books::new(sizes());
            let mut tests: Vec<Backtest<Quoter>> = chosen
                .iter()
                .map(|variant| {
                    let fill = match variant.ends_with("matching") {
                        true => FillModel::Matching,
                        false => FillModel::Queue,
                    };
                    test(instruments, variant.contains("quoting"), fill, is_grouped)
                })
                .collect();
            let mut took = vec![Duration::ZERO; chosen.len()];
            let mut made = 0;
            while made < events {
                let piece: Vec<MarketEvent> = (0..PIECE.min(events - made)).map(|_| flow.event()).collect();
                made += piece.len();
                // All of them on each piece: what else the machine does hits them alike.
                for (at, variant) in chosen.iter().enumerate() {
                    took[at] += match variant.ends_with("books") {
                        true => measured(&piece, &mut |events| {
                            for event in events {
                                books.apply(event);
                            }
                        }),
                        false => {
                            let test = &mut tests[at];
                            measured(&piece, &mut |events| {
                                events.iter().for_each(|event| test.on_event(0, event));
                            })
                        }
                    };
                }
            }
            for (at, variant) in chosen.iter().enumerate() {
                best[at] = best[at].min(took[at]);
                let found = match variant.ends_with("books") {
                    true => &books,
                    false => tests[at].books(0),
                };
                assert_eq!(
                    found.state_hash(),
                    flow.books.state_hash(),
                    "{variant}: the final books"
                );
                assert_eq!(found.counters().get(Counter::BookRejects), 0, "{variant}");
                if variant.ends_with("books") {
                    continue;
                }
                let summary = tests[at].finish();
                let strategy = tests[at].conductor().strategy();
                assert_eq!((summary.events, summary.rejects), (events as u64, 0), "{variant}");
                assert!(
                    strategy.changes > events as u64 / 4,
                    "{variant}: {} changes",
                    strategy.changes
                );
                assert_eq!(summary.requests[0] > 0, variant.contains("quoting"), "{variant}");
                said[at] = format!(
                    "{} changes told, {} requests, {} fills",
                    strategy.changes, strategy.requests, summary.fills[0]
                );
            }
        }
        for (at, variant) in chosen.iter().enumerate() {
            let ns = best[at].as_nanos() as f64 / events as f64;
            if is_bench {
                println!(
                    "{variant:<26} {ns:6.1} ns an event, {:5.2} million a second (best of {rounds})   {}",
                    1e3 / ns,
                    said[at]
                );
            } else {
                println!("{variant:<26} {}", said[at]);
            }
        }
    }
}
