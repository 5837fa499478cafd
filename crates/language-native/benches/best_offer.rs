//! The reference rule per book update: native code and the interpreter beside the same strategy written in
//! Rust. A regression would mean that a strategy file costs more than the same rule by hand.
//!
//! `cargo bench -p tickwire-language-native` runs the three by turns and compares their orders. One
//! instrument, 1,000 price levels, everything in the caches: what is measured is code, not memory. For counts
//! of instructions, which other programs on the machine do not disturb:
//! `valgrind --tool=callgrind BENCH --only native --updates N` with two numbers N; the difference is the
//! updates' own. `--only idle` is books and conductor with a strategy that does nothing.

use std::sync::Arc;
use std::time::Instant;

use tickwire_book::{Books, BooksConfig, Depth};
use tickwire_language::{Interpreter, Machine, Program, compile};
use tickwire_language_native::Native;
use tickwire_market::{
    BookState, EventFlags, EventKind, Instrument, InstrumentId, MarketEvent, Nanos, OrderIntent, Price, Qty,
    SeqNo, Side, Symbol, Volume,
};
use tickwire_trading::strategy::{
    BookChange, Conductor, ConductorConfig, Context, Markets, OrderPort, Outcome, Rejected, Strategy,
    Subscription, Trade,
};
use tickwire_trading::{ControlsConfig, OrderReport, ReportKind, RiskConfig};

/// What ships: large blocks on huge pages.
#[global_allocator]
static ALLOCATOR: tickwire_runtime::alloc::Allocator = tickwire_runtime::alloc::Allocator;

const FILE: &str = "../../examples/strategies/best_offer_taker.tw";
const SYMBOL: &str = "USD000UTSTOM@CETS";

/// The same rule in Rust.
struct InRust {
    lot: u32,
    collar: i64,
    id: InstrumentId,
    tick: i64,
    last_trade: Option<Price>,
    last: Option<Price>,
    is_live: bool,
}

impl Strategy for InRust {
    fn subscriptions(&self) -> Vec<Subscription> {
        vec![Subscription::symbol(SYMBOL)]
    }

    fn on_instrument(&mut self, _: &mut Context<'_>, instrument: &Instrument) {
        (self.id, self.tick) = (instrument.id, instrument.tick.raw());
    }

    fn on_trade(&mut self, _: &mut Context<'_>, trade: &Trade) {
        self.last_trade = Some(trade.price);
    }

    fn on_book(&mut self, ctx: &mut Context<'_>, change: &BookChange) {
        self.is_live = change.is_live();
        if change.instrument != self.id || !self.is_live {
            return;
        }
        let ask = change.after.best(Side::Ask).map(|best| best.0);
        if ask == self.last {
            return;
        }
        self.last = ask;
        if let (Some(ask), Some(traded)) = (ask, self.last_trade) {
            let apart = ask.raw().saturating_sub(traded.raw()).saturating_abs();
            let ticks = apart / self.tick + i64::from(apart % self.tick > 0);
            if ticks <= self.collar {
                let _ = ctx.buy_now(self.id, self.lot, ask);
            }
        }
    }
}

struct Idle;

impl Strategy for Idle {
    fn subscriptions(&self) -> Vec<Subscription> {
        vec![Subscription::symbol(SYMBOL)]
    }
}

#[derive(Default)]
struct Port {
    sent: u64,
    hash: u64,
    last: Option<OrderIntent>,
}

impl OrderPort for Port {
    fn send(&mut self, _: Nanos, request: &OrderIntent) -> Result<(), Rejected> {
        self.sent += 1;
        if let OrderIntent::New { price, qty, .. } = request {
            let word = price.raw() as u64 ^ u64::from(qty.0);
            self.hash = (self.hash ^ word).wrapping_mul(0x100_0000_01b3);
        }
        self.last = Some(*request);
        Ok(())
    }
}

/// Level changes near the top of a book, a trade now and then; about one in twenty-five leads to an order.
fn events(count: usize) -> Vec<MarketEvent> {
    let mut random = 42_u64;
    let mut draw = move |n: u64| {
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) % n
    };
    let mut there = [[false; 500]; 2];
    let price = |side: Side, at: usize| match side {
        Side::Bid => Price::from_raw(74_000_000_000 - at as i64 * 10_000_000),
        Side::Ask => Price::from_raw(74_010_000_000 + at as i64 * 10_000_000),
    };
    let mut made = Vec::with_capacity(count);
    while made.len() < count {
        let side = Side::BOTH[draw(2) as usize];
        let at = (draw(8) * draw(8)) as usize;
        let is_trade = draw(64) == 0;
        let is_gone =
            !is_trade && at > 0 && there[side as usize][at] && draw(3) == 0 || at < 2 && draw(2) == 0;
        let is_there = &mut there[side as usize][at];
        if is_gone && !*is_there && !is_trade {
            continue;
        }
        *is_there = if is_trade { *is_there } else { !is_gone };
        made.push(MarketEvent {
            kind: if is_trade {
                EventKind::Trade
            } else {
                EventKind::Level
            },
            instrument: InstrumentId(1),
            side,
            price: price(side, at),
            qty: Volume(if is_gone { 0 } else { 1 + draw(900) }),
            flags: EventFlags::LAST,
            seq: SeqNo(made.len() as u64),
            recv_ts: Nanos(1_700_000_000_000_000_000 + made.len() as u64 * 1_000),
            ..MarketEvent::default()
        });
    }
    made
}

struct Rig<S> {
    conductor: Conductor<S>,
    books: Vec<Books>,
    port: Port,
}

impl<S: Strategy> Rig<S> {
    fn new(strategy: S) -> Rig<S> {
        let config = BooksConfig {
            depth: Depth::ByPrice,
            instruments: 2,
            orders: 64,
            levels: 16_384,
            initial: BookState::Live,
            ..BooksConfig::default()
        };
        let limits = ConductorConfig {
            feeds: 1,
            instrument_bits: 4,
            max_orders: 1 << 12,
            last_id: 0,
            risk: RiskConfig {
                max_orders_per_window: 64,
                window_ns: 1,
                max_open_orders: u32::MAX,
                max_position: u64::MAX,
                controls: ControlsConfig::NONE,
                ..RiskConfig::default()
            },
            ..ConductorConfig::default()
        };
        let mut rig = Rig {
            conductor: Conductor::new(strategy, &limits),
            books: vec![Books::new(config)],
            port: Port::default(),
        };
        let instrument = Instrument {
            id: InstrumentId(1),
            symbol: Symbol::new(SYMBOL.as_bytes()).expect("a symbol"),
            tick: Price::from_raw(2_500_000),
            lot: Qty(1),
            ..Instrument::default()
        };
        let markets = Markets::new(&rig.books, 4);
        rig.conductor.start(Nanos(1), markets, &mut rig.port);
        rig.conductor
            .define(Nanos(1), 0, &instrument, None, markets, &mut rig.port);
        rig
    }

    fn run(&mut self, events: &[MarketEvent]) {
        for event in events {
            let outcome = Outcome::of(&mut self.books[0], event);
            let markets = Markets::new(&self.books, 4);
            self.conductor
                .on_event(0, event, &outcome, false, markets, &mut self.port);
            // An immediate order is over at once: nothing stays open.
            if let Some(OrderIntent::New { id, .. }) = self.port.last.take() {
                let report = OrderReport {
                    id,
                    venue_id: None,
                    kind: ReportKind::Cancelled,
                };
                let markets = Markets::new(&self.books, 4);
                let _ = self
                    .conductor
                    .on_report(event.recv_ts, &report, markets, &mut self.port);
            }
        }
    }

    fn result(&self) -> (u64, u64) {
        (self.port.sent, self.port.hash)
    }
}

fn program() -> Arc<Program> {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(FILE);
    let source = std::fs::read_to_string(path).expect("the example is there");
    Arc::new(compile(&source, &|_| Err(String::new())).expect("the example is right"))
}

fn in_rust() -> InRust {
    InRust {
        lot: 100,
        collar: 50,
        id: InstrumentId(0),
        tick: 1,
        last_trade: None,
        last: None,
        is_live: false,
    }
}

fn native() -> Machine<Native> {
    let program = program();
    let engine = Native::new(&program).expect("this machine has code for it");
    Machine::new(program, engine)
}

fn interpreted() -> Machine<Interpreter> {
    Machine::interpreted(program())
}

fn timed<S: Strategy>(strategy: S, events: &[MarketEvent]) -> (f64, (u64, u64)) {
    let mut rig = Rig::new(strategy);
    let start = Instant::now();
    rig.run(events);
    (
        start.elapsed().as_nanos() as f64 / events.len() as f64,
        rig.result(),
    )
}

/// How long a file takes from text to native code: two examples, put together to one of 200 lines and more.
fn compiling(rounds: u32) {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/strategies");
    let text = |name: &str| std::fs::read_to_string(folder.join(name)).expect("the example is there");
    let second = text("imbalance_taker.tw")
        .replace("strategy imbalance_taker", "")
        .replace("instrument a = \"AAPL\"", "instrument z = \"MSFT\"")
        .replace("on book a", "on book z")
        .replace("live(a)", "live(z)")
        .replace("spread(a)", "spread(z)")
        .replace("param lot", "param other_lot")
        .replace(" lot ", " other_lot ")
        .replace("a.", "z.")
        .replace("buy a", "buy z")
        .replace("sell a", "sell z")
        .replace("book a", "book z");
    let source = [text("two_sided_quoter.tw"), second, "# the rest\n".repeat(40)].concat();
    let (mut checked, mut made) = (f64::MAX, f64::MAX);
    for _ in 0..rounds {
        let start = Instant::now();
        let program = compile(&source, &|_| Err(String::new())).expect("both are right");
        checked = checked.min(start.elapsed().as_secs_f64() * 1e3);
        let start = Instant::now();
        let native = Native::new(&program).expect("this machine has code for it");
        made = made.min(start.elapsed().as_secs_f64() * 1e3);
        assert!(native.code_bytes() > 0);
    }
    println!(
        "{} lines: checked in {checked:.2} ms, native code in {made:.2} ms; least of {rounds}",
        source.lines().count()
    );
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let after = |name: &str| {
        let at = arguments.iter().position(|a| a == name)?;
        arguments.get(at + 1).cloned()
    };
    let is_bench = arguments.iter().any(|a| a == "--bench");
    let updates = after("--updates").and_then(|n| n.parse().ok());
    let events = events(updates.unwrap_or(if is_bench { 200_000 } else { 5_000 }));
    if let Some(only) = after("--only") {
        let result = match only.as_str() {
            "rust" => timed(in_rust(), &events).1,
            "native" => timed(native(), &events).1,
            "interpreter" => timed(interpreted(), &events).1,
            _ => timed(Idle, &events).1,
        };
        println!(
            "{only}: {} updates, {} orders, hash {:x}",
            events.len(),
            result.0,
            result.1
        );
        return;
    }
    let rounds = if is_bench { 15 } else { 1 };
    let mut least = [f64::MAX; 4];
    let mut results = [(0, 0); 3];
    for _ in 0..rounds {
        let done = [
            timed(in_rust(), &events),
            timed(native(), &events),
            timed(interpreted(), &events),
        ];
        for (n, (ns, result)) in done.into_iter().enumerate() {
            least[n] = least[n].min(ns);
            results[n] = result;
        }
        least[3] = least[3].min(timed(Idle, &events).0);
    }
    assert!(results[0].0 > events.len() as u64 / 50, "{results:?}");
    assert_eq!(
        results[0], results[1],
        "native code sends the orders of the strategy in Rust"
    );
    assert_eq!(
        results[0], results[2],
        "the interpreter sends the orders of the strategy in Rust"
    );
    if is_bench {
        println!(
            "{} updates, {} orders, the same from all three; warm caches, books included; least of {rounds} rounds by turns",
            events.len(),
            results[0].0
        );
        compiling(rounds);
        for (name, ns) in ["in Rust", "native code", "interpreter", "no strategy"]
            .iter()
            .zip(least)
        {
            println!(
                "{name:12} {ns:7.1} ns per update, {:5.2} of the strategy in Rust",
                ns / least[0]
            );
        }
    }
}
