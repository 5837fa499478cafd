//! How fast the simulator is: orders matched by the engine and published as ITCH into the channel's store, on
//! one core. A regression means that the exchange, not the trader, becomes the limit of a measurement.
//!
//! ```text
//! cargo bench -p tickwire-exchange            20 million messages
//! cargo test -p tickwire-exchange --benches   the same, tiny
//! ```
//! Answers are checked: the number of messages, the digest of the books for the seed in a second run, and the
//! state that the naive engine, the baseline, comes to with the same requests.

use std::hint::black_box;
use std::time::Instant;

use tickwire_exchange::Tape;
use tickwire_exchange::{
    ChannelConfig, Engine, EngineConfig, ItchWriter, MoldChannel, NaiveEngine, NewOrder, generate_itch,
    listings,
};
use tickwire_market::{InstrumentId, Nanos, OrderId, Price, Qty, Side, TimeInForce, TradingStatus};
use tickwire_testdata::Rng;

/// What ships: large blocks on huge pages.
#[global_allocator]
static ALLOCATOR: tickwire_runtime::alloc::Allocator = tickwire_runtime::alloc::Allocator;

fn main() {
    let full = std::env::args().any(|arg| arg == "--bench");
    let (orders, messages) = if full {
        (10_000_000, 20_000_000)
    } else {
        (20_000, 20_000)
    };
    requests(orders);
    baseline(orders / 1000);
    flow(messages);
}

/// The kernel counts a thread's time by its ticks, of 4 ms or so: less than this says nothing.
const CPU_NS_MIN: u64 = 200_000_000;

/// Time spent, by the wall clock and, where Linux tells, on the core: the second stays honest on a shared
/// machine.
#[derive(Clone, Copy)]
struct Spent {
    since: Instant,
    cpu_ns: Option<u64>,
}

impl Spent {
    fn start() -> Spent {
        Spent {
            since: Instant::now(),
            cpu_ns: cpu_ns(),
        }
    }
}

fn cpu_ns() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    text.split_whitespace().next()?.parse().ok()
}

fn report(what: &str, count: u64, unit: &str, start: Spent) {
    let wall = start.since.elapsed().as_nanos() as f64 / count as f64;
    let spent = start.cpu_ns.zip(cpu_ns()).map(|(from, to)| to - from);
    let of_cpu = spent.filter(|ns| *ns >= CPU_NS_MIN).map(|ns| {
        let cpu = ns as f64 / count as f64;
        format!(" {cpu:>7.0} ns of CPU {:>6.2} M/s of CPU", 1e3 / cpu)
    });
    println!(
        "{what:<42} {count:>9} {unit:<8} {wall:>7.0} ns each{}",
        of_cpu.unwrap_or_default()
    );
}

enum Request {
    New(NewOrder),
    Cancel(OrderId),
    Replace(OrderId, Price, Qty),
}

/// Requests prepared beforehand: half new orders (a tenth of them marketable), the rest cancels and
/// replacements.
fn prepare(count: u64) -> Vec<Request> {
    let mut rng = Rng::new(1);
    // Order numbers are predictable: new orders and replacements that are not pure reductions get the next
    // one.
    let mut last = 0_u64;
    (0..count)
        .map(|_| {
            let (instrument, side) = (
                InstrumentId(1 + rng.below(100) as u32),
                Side::BOTH[rng.below(2) as usize],
            );
            let behind = rng.below(30) as i64;
            let cents = if side == Side::Bid {
                10_000 - behind
            } else {
                10_001 + behind
            };
            let target = OrderId(last.saturating_sub(rng.below(20_000)).max(1));
            match rng.below(100) {
                0..50 => {
                    last += 1;
                    let marketable = behind < 3;
                    let cents = if marketable {
                        if side == Side::Bid { 10_002 } else { 9_999 }
                    } else {
                        cents
                    };
                    let qty = Qty(100 * (1 + rng.below(5)) as u32);
                    let price = Price::from_4dp(cents as u32 * 100);
                    let time_in_force = if marketable {
                        TimeInForce::ImmediateOrCancel
                    } else {
                        TimeInForce::Day
                    };
                    Request::New(NewOrder {
                        time_in_force,
                        ..NewOrder::limit(instrument, side, price, qty)
                    })
                }
                50..90 => Request::Cancel(target),
                _ => Request::Replace(target, Price::from_4dp(cents as u32 * 100), Qty(100)),
            }
        })
        .collect()
}

/// The engine alone and the engine with publisher and channel, same requests; both must end with the same
/// books.
fn requests(count: u64) {
    let requests = prepare(count);
    let config = EngineConfig {
        instruments: 100,
        max_orders: 1 << 22,
        max_levels: 256,
    };
    let engine = || {
        let mut engine = Engine::new(config);
        for i in 1..=100 {
            engine
                .set_status(InstrumentId(i), TradingStatus::Trading, &mut ())
                .expect("listed");
        }
        engine
    };
    let mut silent = engine();
    let start = Spent::start();
    let mut done = 0;
    for request in &requests {
        done += u64::from(apply(&mut silent, request, &mut ()));
    }
    report("requests matched", count, "requests", start);

    let mut loud = engine();
    let channel = MoldChannel::new(ChannelConfig {
        store_messages: 1 << 20,
        store_bytes: 64 << 20,
        ..Default::default()
    });
    let mut publisher = ItchWriter::new(&listings(100), channel);
    let start = Spent::start();
    let (mut done_again, mut bytes) = (0, 0);
    for (i, request) in requests.iter().enumerate() {
        publisher.set_time(i as u64);
        done_again += u64::from(apply(&mut loud, request, &mut publisher));
        // As the exchange's loop does: what accumulated is packed and "sent".
        if i % 16 == 0 {
            while let Some(datagram) = publisher.sink_mut().poll_datagram(Nanos(i as u64)) {
                bytes += black_box(datagram.bytes).len();
            }
        }
    }
    report("requests matched, published and packed", count, "requests", start);
    report("  the same, by message", publisher.total(), "messages", start);
    assert!(bytes > 0 && publisher.total() > count / 2);
    assert_eq!(
        (done, silent.state_hash()),
        (done_again, loud.state_hash()),
        "the same books"
    );
}

fn apply(engine: &mut Engine, request: &Request, out: &mut impl tickwire_exchange::Listener) -> bool {
    match request {
        Request::New(order) => engine.submit(order, out).is_ok(),
        Request::Cancel(id) => engine.cancel(*id, out).is_ok(),
        Request::Replace(id, price, qty) => engine.replace(*id, *price, *qty, out).is_ok(),
    }
}

/// The engine beside the naive one: lists and linear searches, the same rules and the same requests, of which
/// it gets few.
fn baseline(count: u64) {
    let requests = prepare(count);
    let config = EngineConfig {
        instruments: 100,
        max_orders: 1 << 22,
        max_levels: 256,
    };
    let (mut engine, mut naive) = (Engine::new(config), NaiveEngine::new(config));
    for id in (1..=100).map(InstrumentId) {
        let open = TradingStatus::Trading;
        engine.set_status(id, open, &mut ()).expect("listed");
        naive.set_status(id, open, &mut ()).expect("listed");
    }
    let start = Spent::start();
    let done = requests.iter().map(|r| u64::from(apply(&mut engine, r, &mut ())));
    let done: u64 = done.sum();
    report("requests matched, few", count, "requests", start);
    let start = Spent::start();
    let by_naive = requests.iter().map(|request| {
        u64::from(match request {
            Request::New(order) => naive.submit(order, &mut ()).is_ok(),
            Request::Cancel(id) => naive.cancel(*id, &mut ()).is_ok(),
            Request::Replace(id, price, qty) => naive.replace(*id, *price, *qty, &mut ()).is_ok(),
        })
    });
    let by_naive: u64 = by_naive.sum();
    report("  the same by the naive engine", count, "requests", start);
    assert_eq!(
        (done, engine.state_hash()),
        (by_naive, naive.state_hash()),
        "the same books"
    );
}

/// The whole generator: random flow, engine, publisher.
fn flow(messages: u64) {
    let run = || {
        let mut count = 0;
        let start = Spent::start();
        let engine = generate_itch(1, messages, 500, &mut |message| {
            count += u64::from(!black_box(message).is_empty())
        });
        report(
            "a session generated, matched and published",
            count,
            "messages",
            start,
        );
        assert!(count >= messages);
        (count, engine.live_orders(), engine.state_hash())
    };
    let first = run();
    println!("{:<44} {:>10} orders", "  resting at the end", first.1);
    if messages < 100_000 {
        assert_eq!(first, run(), "one seed, one session");
    }
}
