//! Days made here, through software and simulated core: losses on both lines, damaged frames, gaps of one
//! clock, a transmitter that is not always ready. Without Verilator this says so and ends:
//! `cargo xtask hardware` has it. `SEED=N` chooses another day, `MESSAGES=N` says how long it is.

mod common;

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use common::{number, same, troubles};
use tickwire_cosim::{Cosim, Day, Random, Settings, Troubles, is_there};
use tickwire_language::Interpreter;
use tickwire_rtl::Target;
use tickwire_wire_nasdaq::itch50::{
    AddOrder, OrderCancel, OrderDelete, OrderExecuted, OrderExecutedWithPrice, OrderReplace, StockDirectory,
    SystemEvent, Trade,
};
use tickwire_wire_nasdaq::layout::{Alpha, Char, Pod, Scaled};

/// A core is simulated in a folder of its own, one run at a time.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

struct Standing {
    id: u64,
    is_ask: bool,
    price: u32,
    qty: u32,
}

/// Messages of two instruments, of which the second one is only noise.
fn messages(seed: u64, count: u64) -> Vec<Vec<u8>> {
    let mut random = Random(seed);
    let mut out = Vec::new();
    for (locate, symbol) in [(7_u16, &b"SYM1"[..]), (8, &b"OTHER"[..])] {
        let named = StockDirectory {
            stock: Alpha::new(symbol).expect("it fits"),
            round_lot_size: 100.into(),
            authenticity: Char(b'P'),
            ..StockDirectory::at(locate, 1)
        };
        out.push(named.as_bytes().to_vec());
    }
    let opens = SystemEvent {
        event: Char(b'Q'),
        ..SystemEvent::at(0, 2)
    };
    out.push(opens.as_bytes().to_vec());
    let mut standing: Vec<Standing> = Vec::new();
    let (mut next, mut middle) = (1_u64, 500_000_u32);
    for n in 0..count {
        let locate = if random.below(4) == 0 { 8 } else { 7 };
        let time = 1_000 + n;
        if locate == 8 {
            let noise = AddOrder {
                order_ref: (1 << 32 | n).into(),
                side: Char(b'B'),
                shares: 100.into(),
                price: Scaled(10_000_u32.into()),
                ..AddOrder::at(8, time)
            };
            out.push(noise.as_bytes().to_vec());
            continue;
        }
        if random.below(20) == 0 {
            middle = (i64::from(middle) + 100 * (random.below(3) as i64 - 1)) as u32;
        }
        let choice = random.below(100);
        if standing.len() < 10 || (choice < 48 && standing.len() < 400) {
            let is_ask = random.below(2) == 0;
            let away = 100 * (1 + random.below(9) as u32);
            let price = if is_ask { middle + away } else { middle - away };
            let qty = 1 + random.below(500) as u32;
            let add = AddOrder {
                order_ref: next.into(),
                side: Char(if is_ask { b'S' } else { b'B' }),
                shares: qty.into(),
                stock: Alpha::new(b"SYM1").expect("it fits"),
                price: Scaled(price.into()),
                ..AddOrder::at(7, time)
            };
            out.push(add.as_bytes().to_vec());
            standing.push(Standing {
                id: next,
                is_ask,
                price,
                qty,
            });
            next += 1 + random.below(3);
            continue;
        }
        if choice < 52 {
            let trade = Trade {
                shares: (1 + random.below(300) as u32).into(),
                stock: Alpha::new(b"SYM1").expect("it fits"),
                price: Scaled((middle + 50).into()),
                ..Trade::at(7, time)
            };
            out.push(trade.as_bytes().to_vec());
            continue;
        }
        // Mostly what stands at the touch.
        let at = match random.below(3) {
            0 => random.below(standing.len() as u64) as usize,
            side => best(&standing, side == 1),
        };
        let order = &mut standing[at];
        let part = 1 + random.below(order.qty.into()) as u32;
        let (id, all) = (order.id, order.qty);
        let taken = match random.below(6) {
            0 => {
                let bytes = OrderExecuted {
                    order_ref: id.into(),
                    executed_shares: part.into(),
                    ..OrderExecuted::at(7, time)
                };
                out.push(bytes.as_bytes().to_vec());
                part
            }
            1 => {
                let bytes = OrderExecutedWithPrice {
                    order_ref: id.into(),
                    executed_shares: part.into(),
                    printable: Char(if random.below(2) == 0 { b'Y' } else { b'N' }),
                    execution_price: Scaled((middle + 25).into()),
                    ..OrderExecutedWithPrice::at(7, time)
                };
                out.push(bytes.as_bytes().to_vec());
                part
            }
            2 => {
                let bytes = OrderCancel {
                    order_ref: id.into(),
                    cancelled_shares: part.into(),
                    ..OrderCancel::at(7, time)
                };
                out.push(bytes.as_bytes().to_vec());
                part
            }
            3 => {
                let qty = 1 + random.below(500) as u32;
                let price = match random.below(3) {
                    0 => order.price,
                    _ if order.is_ask => middle + 100 * (1 + random.below(6) as u32),
                    _ => middle - 100 * (1 + random.below(6) as u32),
                };
                let bytes = OrderReplace {
                    original_order_ref: id.into(),
                    new_order_ref: next.into(),
                    shares: qty.into(),
                    price: Scaled(price.into()),
                    ..OrderReplace::at(7, time)
                };
                out.push(bytes.as_bytes().to_vec());
                (order.id, order.price, order.qty) = (next, price, qty);
                next += 1;
                0
            }
            _ => {
                let bytes = OrderDelete {
                    order_ref: id.into(),
                    ..OrderDelete::at(7, time)
                };
                out.push(bytes.as_bytes().to_vec());
                all
            }
        };
        order.qty -= taken;
        if order.qty == 0 {
            standing.swap_remove(at);
        }
    }
    out
}

fn best(standing: &[Standing], is_ask: bool) -> usize {
    let of_side = standing
        .iter()
        .enumerate()
        .filter(|(_, order)| order.is_ask == is_ask);
    let found = of_side.min_by_key(|(_, order)| {
        if is_ask {
            i64::from(order.price)
        } else {
            -i64::from(order.price)
        }
    });
    found.map_or(0, |(at, _)| at)
}

/// The core of an example, made in a folder of the test's own: two that make a program in one, or run it
/// there, are in each other's way.
fn cosim(test: &str, name: &str) -> Cosim {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../examples/hardware")
        .join(format!("{name}.tw"));
    let source = std::fs::read_to_string(path).expect("the example is there");
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{test}-{name}"));
    Cosim::new(&source, &|_| Err(String::new()), &Target::default(), &folder)
        .unwrap_or_else(|e| panic!("{e}"))
}

fn day(seed: u64) -> Day {
    let mut random = Random(seed ^ 0xDA7);
    let messages = messages(seed, number("MESSAGES", 6_000));
    Day::of(&messages, || {
        if random.chance(700_000) {
            1
        } else {
            random.below(12) as usize
        }
    })
}

#[test]
fn orders_books_and_counters_are_the_same() {
    if !is_there() {
        return tickwire_testdata::not_tested("Verilator is not installed (apt-get install verilator)");
    }
    let _turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let seed = number("SEED", 1);
    for (name, orders_min) in [("core_taker", 50), ("core_pair", 5)] {
        let cosim = cosim("days", name);
        for (n, troubles) in troubles().into_iter().enumerate() {
            let seed = seed * 10 + n as u64;
            let found = cosim.compare(&day(seed), &Troubles { seed, ..troubles }, Interpreter::new);
            let found = found.unwrap_or_else(|e| panic!("seed {seed}: {e}"));
            same(&found, seed);
            assert!(
                found.orders + found.stopped > orders_min,
                "{name}: {} orders",
                found.orders
            );
        }
    }
}

#[test]
fn limits_stop_the_same_orders() {
    if !is_there() {
        return tickwire_testdata::not_tested("Verilator is not installed (apt-get install verilator)");
    }
    let _turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let seed = number("SEED", 1) + 77;
    let (cosim, day) = (cosim("limits", "core_taker"), day(seed));
    let plain = cosim.settings(&day).expect("the day has the instrument");
    let (low, high) = (plain.base + 204_700, plain.base + 205_100);
    for settings in [
        Settings { orders: 25, ..plain },
        Settings {
            position: 1_000,
            ..plain
        },
        Settings {
            collar: (low, high),
            ..plain
        },
        Settings { size: 99, ..plain },
    ] {
        let troubles = Troubles {
            seed,
            ..Troubles::default()
        };
        let found = cosim
            .compare_with(&day, &settings, &troubles, Interpreter::new)
            .unwrap_or_else(|e| panic!("{e}"));
        same(&found, seed);
        assert!(found.stopped > 0, "{settings:?} stops something");
    }
}
