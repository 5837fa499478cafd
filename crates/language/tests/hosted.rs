//! Nothing is allocated after the start, whatever a strategy does: the tests of the examples run under an
//! armed allocator but for what the test itself keeps, so the machine is driven here.

use std::sync::Arc;

use tickwire_book::{Books, BooksConfig, Depth};
use tickwire_language::{Machine, compile};
use tickwire_market::{
    BookState, EventFlags, EventKind, Instrument, InstrumentId, MarketEvent, Nanos, OrderIntent, Price,
    SeqNo, Side, Symbol, Volume,
};
use tickwire_runtime::alloc::{AllocationCount, Allocator, count_allocations};
use tickwire_trading::strategy::{
    Conductor, ConductorConfig, Markets, OrderPort, Outcome, Rejected, Strategy,
};
use tickwire_trading::{OrderReport, ReportKind};

#[global_allocator]
static ALLOCATOR: Allocator = Allocator;

struct Port(u64, Option<OrderIntent>);

impl OrderPort for Port {
    fn send(&mut self, _: Nanos, request: &OrderIntent) -> Result<(), Rejected> {
        (self.0, self.1) = (self.0 + 1, Some(*request));
        Ok(())
    }
}

const SOURCE: &str = r#"
strategy everything
instrument a = "A"
enum Phase { one, two }
state phase: Phase = one
state quote: order? = none
state sums: [qty; 8] = 0
window traded: qty over 1s max 64
window last: price last 16
table sizes: price -> qty { 9.00: 1, 10.00: 2, 11.00: 4 }
timer again
counter books

fn half(n: qty) -> qty { return n / 2 }

on start { set again in 1ms }

on book a when live(a) {
  count books
  for n in 0..8 { sums[n] += half(a.bid[n].qty) }
  if let middle = mid(a) { push last, middle }
  let size = max(sizes.at(a.bid[0].price) else 1, 1)
  if quote == none {
    quote = buy a size @ (round_down(fair(a) else 1.00, a) - 1 tick)
  } else if let order = quote {
    if order.open { quote = replace order size @ (last.min else order.price) else order }
  }
  if a.ask[0].qty > 1000 and open_orders(a) < 5 { sell a 1 market }
  note "books", books
}

on trade a { push traded, trade.qty }

on timer again {
  set again in 1ms
  phase = if phase == one then two else one
  if traded.sum > 500 { cancel all }
}

on command "divide" { sums[0] = sums[0] / int(sums[7] - sums[7]) }
"#;

#[test]
fn nothing_is_allocated_after_the_start_and_a_trap_stops_everything() {
    let program = compile(SOURCE, &|_| Err(String::new())).expect("it is right");
    let config = BooksConfig {
        depth: Depth::ByPrice,
        instruments: 2,
        orders: 64,
        levels: 1_024,
        initial: BookState::Live,
        ..BooksConfig::default()
    };
    let mut books = vec![Books::new(config)];
    let mut conductor = Conductor::new(
        Machine::interpreted(Arc::new(program)),
        &ConductorConfig {
            instrument_bits: 4,
            ..ConductorConfig::default()
        },
    );
    let mut port = Port(0, None);
    conductor.start(Nanos(1), Markets::new(&books, 4), &mut port);
    let instrument = Instrument {
        id: InstrumentId(1),
        symbol: Symbol::new(b"A").expect("a symbol"),
        tick: Price::from_4dp(100),
        ..Instrument::default()
    };
    conductor.define(Nanos(1), 0, &instrument, None, Markets::new(&books, 4), &mut port);
    let (_, count) = count_allocations(|| {
        for n in 0..5_000_u64 {
            let now = Nanos(1_000_000 + n * 100_000);
            let side = if n % 2 == 0 { Side::Bid } else { Side::Ask };
            let step = (n / 2 % 5) as i64 * 10_000_000;
            let price = if side == Side::Bid {
                10_000_000_000 - step
            } else {
                10_010_000_000 + step
            };
            let event = MarketEvent {
                kind: if n % 7 == 0 {
                    EventKind::Trade
                } else {
                    EventKind::Level
                },
                instrument: InstrumentId(1),
                side,
                price: Price::from_raw(price),
                qty: Volume(1 + n * 37 % 2_000),
                flags: EventFlags::LAST,
                seq: SeqNo(n + 1),
                recv_ts: now,
                ..MarketEvent::default()
            };
            let outcome = Outcome::of(&mut books[0], &event);
            let markets = Markets::new(&books, 4);
            conductor.on_event(0, &event, &outcome, false, markets, &mut port);
            conductor.on_time(now, markets, &mut port);
            let (id, kind) = match port.1.take() {
                Some(OrderIntent::New { id, .. }) => (id, ReportKind::Accepted),
                Some(OrderIntent::Replace { id, target, .. }) => {
                    let kind = ReportKind::Replaced {
                        by: id,
                        venue_id: None,
                    };
                    (target, kind)
                }
                Some(OrderIntent::Cancel { target, .. }) => (target, ReportKind::Cancelled),
                _ => continue,
            };
            let report = OrderReport {
                id,
                venue_id: None,
                kind,
            };
            let _ = conductor.on_report(now, &report, markets, &mut port);
        }
    });
    assert_eq!(count, AllocationCount::default());
    assert!(port.0 > 5, "{} requests", port.0);
    let markets = Markets::new(&books, 4);
    conductor.on_command(Nanos(2_000_000_000), "divide", markets, &mut port);
    let outcomes = *conductor.strategy().outcomes();
    assert!(outcomes.trap.is_some());
    assert_eq!(conductor.strategy().trap_line(), Some(40));
    let before = port.0;
    conductor.on_time(Nanos(9_000_000_000), markets, &mut port);
    assert_eq!(port.0, before, "no handler runs any more");
    let mut figures = Vec::new();
    conductor
        .strategy()
        .figures(&mut |name, value| figures.push((name.to_string(), value)));
    assert!(figures.contains(&("trap_in_line".to_string(), 40)), "{figures:?}");
}
