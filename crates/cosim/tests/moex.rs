//! Days of the Moscow Exchange made here, through software and simulated core: the exchange's templates of
//! 2017 and 2020 and our own, its real packets, losses on both lines, damaged frames, gaps of one clock, a
//! transmitter that is not always ready. Without Verilator this says so and ends: `cargo xtask hardware` has
//! it. `SEED=N` chooses another day, `PACKETS=N` says how long it is.

mod common;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use common::{number, same, troubles};
use tickwire_cosim::{Comparison, Cosim, Day, Packet, Random, Troubles, is_there};
use tickwire_language::Interpreter;
use tickwire_market::{Nanos, OrderId, Price, Side, Volume};
use tickwire_rtl::{Moex, Target, Venue};
use tickwire_testdata::{captures, not_tested, specs, unhex};
use tickwire_wire_moex::fast::Limits;
use tickwire_wire_moex::moex::{Action, Decoder, Encoder, OrderEntry, OrderKind, preamble};

const SYMBOL: &[u8] = b"USD000UTSTOM";
const BOARD: &[u8] = b"CETS";

/// A template file and the order log's template in it.
fn moex(file: &Path, template: &str) -> Moex {
    let text = std::fs::read_to_string(file).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
    Moex::new(&text, template).expect("the template file is right")
}

fn demo() -> Moex {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    moex(&root.join("examples/moex-templates.xml"), "X-OLR-DEMO")
}

/// `name` is the test's own: two that make a program in one folder, or run it there, are in each other's way.
fn cosim(name: &str, moex: &Moex) -> Cosim {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/hardware/core_moex.tw");
    let source = std::fs::read_to_string(path).expect("the example is there");
    let target = Target {
        venue: Venue::Moex(moex.clone()),
        tick: Price::from_4dp(25),
        ..Target::default()
    };
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    Cosim::new(&source, &|_| Err(String::new()), &target, &folder).unwrap_or_else(|e| panic!("{e}"))
}

struct Standing {
    id: u64,
    side: Side,
    price: i64,
    qty: u64,
}

/// A price in 1e-4.
fn price(units: i64) -> Price {
    Price::from_raw(units * 100_000)
}

struct Maker {
    random: Random,
    standing: Vec<Standing>,
    next: u64,
    middle: i64,
    /// RptSeq by instrument.
    numbers: BTreeMap<(&'static [u8], &'static [u8]), u32>,
}

impl Maker {
    fn entry(
        &mut self,
        (symbol, board): (&'static [u8], &'static [u8]),
        action: Action,
        order: &Standing,
        is_bare: bool,
    ) -> OrderEntry<'static> {
        let number = self.numbers.entry((symbol, board)).or_default();
        *number += 1;
        let random = &mut self.random;
        OrderEntry {
            action,
            kind: OrderKind::Order(order.side),
            order_id: OrderId(order.id),
            symbol,
            board,
            rpt_seq: *number,
            price: (!is_bare).then(|| price(order.price)),
            qty: (!is_bare).then_some(Volume(order.qty)),
            date: Some(20_170_502),
            time: Some(Nanos(36_000 * Nanos::SECOND + random.below(1_000) * 1_000_000)),
            order_status: if random.chance(500_000) { b"O" } else { b"" },
            session: if random.chance(500_000) { b"N" } else { b"" },
        }
    }

    fn one(&mut self) -> OrderEntry<'static> {
        if self.random.chance(200_000) {
            let others: [(&[u8], &[u8]); 3] = [
                (b"EUR_RUB__TOM", BOARD),
                (b"USD000000TOD", BOARD),
                (SYMBOL, b"LICU"),
            ];
            let other = others[self.random.below(3) as usize];
            let order = Standing {
                id: 900_000_000 + self.next,
                side: if self.random.chance(500_000) {
                    Side::Bid
                } else {
                    Side::Ask
                },
                price: 1 + self.random.below(2_000_000) as i64,
                qty: 1 + self.random.below(1_000),
            };
            let action = [Action::New, Action::Change, Action::Delete][self.random.below(3) as usize];
            return self.entry(other, action, &order, false);
        }
        let ours = (SYMBOL, BOARD);
        if self.random.chance(100_000) {
            self.middle += 25 * (self.random.below(3) as i64 - 1);
        }
        let choice = self.random.below(100);
        if self.standing.len() < 10 || (choice < 50 && self.standing.len() < 150) {
            let side = if self.random.chance(500_000) {
                Side::Bid
            } else {
                Side::Ask
            };
            let away = 25 * (1 + self.random.below(12) as i64);
            let order = Standing {
                id: self.next,
                side,
                price: if side == Side::Ask {
                    self.middle + away
                } else {
                    self.middle - away
                },
                // Round ones travel with an exponent.
                qty: [1, 5, 7, 10, 137, 1_000, 30_000][self.random.below(7) as usize],
            };
            self.next += 1 + self.random.below(3);
            let entry = self.entry(ours, Action::New, &order, false);
            self.standing.push(order);
            return entry;
        }
        let at = self.near();
        if choice < 65 {
            let qty = 1 + self.random.below(500);
            let moved = if self.random.chance(200_000) { 25 } else { 0 };
            let order = &mut self.standing[at];
            order.qty = qty;
            order.price += if order.side == Side::Ask { moved } else { -moved };
            let order = Standing { ..*order };
            return self.entry(ours, Action::Change, &order, false);
        }
        let order = self.standing.swap_remove(at);
        // A deletion needs neither price nor quantity: sometimes both are NULL.
        let is_bare = self.random.chance(400_000);
        self.entry(ours, Action::Delete, &order, is_bare)
    }

    /// An order, mostly near the touch.
    fn near(&mut self) -> usize {
        let side = if self.random.chance(500_000) {
            Side::Bid
        } else {
            Side::Ask
        };
        let mut of_side: Vec<usize> = (0..self.standing.len())
            .filter(|at| self.standing[*at].side == side)
            .collect();
        of_side.sort_by_key(|at| {
            let price = self.standing[*at].price;
            if side == Side::Ask { price } else { -price }
        });
        let far = self.random.below(4) * self.random.below(3);
        of_side
            .get(far as usize)
            .or(of_side.first())
            .copied()
            .unwrap_or(0)
    }
}

fn day(moex: &Moex, seed: u64, packets: u64) -> Day {
    let mut encoder =
        Encoder::new(Arc::clone(&moex.templates), Limits::default()).expect("the templates will do");
    let template = encoder.template(&moex.template).expect("the template is there");
    let mut maker = Maker {
        random: Random(seed),
        standing: Vec::new(),
        next: 172_500_000,
        middle: 561_000,
        numbers: BTreeMap::new(),
    };
    let mut day = Day::default();
    let sent = Nanos(1_493_719_200 * Nanos::SECOND);
    let mut buffer = vec![0; 2_000];
    for seq in 1_000..1_000 + packets {
        let count = match maker.random.below(100) {
            0 => 5 + maker.random.below(20),
            1..=19 => 2 + maker.random.below(3),
            _ => 1,
        };
        // Now and then there is nothing in it.
        let count = if maker.random.chance(10_000) { 0 } else { count };
        let entries: Vec<OrderEntry<'_>> = (0..count).map(|_| maker.one()).collect();
        let length = encoder.order_log(template, seq as u32, sent, &entries, &mut buffer);
        let length = length.expect("it fits");
        day.packets.push(Packet {
            seq,
            messages: 1,
            bytes: buffer[..length].to_vec(),
        });
    }
    day
}

fn compare(cosim: &Cosim, day: &Day, troubles: Troubles) -> Comparison {
    let found = cosim.compare(day, &troubles, Interpreter::new);
    found.unwrap_or_else(|e| panic!("seed {}: {e}", troubles.seed))
}

#[test]
fn orders_books_and_counters_are_the_same() {
    if !is_there() {
        return not_tested("Verilator is not installed (apt-get install verilator)");
    }
    let seed = number("SEED", 1);
    let moex = demo();
    let cosim = cosim("core_moex", &moex);
    for (n, troubles) in troubles().into_iter().enumerate() {
        let seed = seed * 10 + n as u64;
        let found = compare(
            &cosim,
            &day(&moex, seed, number("PACKETS", 4_000)),
            Troubles { seed, ..troubles },
        );
        same(&found, seed);
        assert!(found.orders > 50, "{} orders", found.orders);
    }
}

/// The exchange's own templates, in which the fields lie otherwise and of which each has its own presence
/// maps.
#[tickwire_testdata::recorded_data("specs/moex")]
#[test]
fn the_exchanges_templates_make_the_same() {
    if !is_there() {
        return not_tested("Verilator is not installed (apt-get install verilator)");
    }
    let seed = number("SEED", 1) + 5;
    for (file, template) in [
        ("moex/templates-2017-03.xml", "X-OLR-CURR"),
        ("moex/templates-2020-11.xml", "X-OLR-CURR"),
    ] {
        let moex = moex(&specs(file), template);
        let cosim = cosim(
            &format!("core_moex-{}", file.split('/').next_back().unwrap_or(file)),
            &moex,
        );
        let troubles = Troubles {
            seed,
            loss: 20_000,
            damage: 5_000,
            busy_percent: 10,
            ..Troubles::default()
        };
        let found = compare(&cosim, &day(&moex, seed, number("PACKETS", 4_000)), troubles);
        same(&found, seed);
        assert!(found.orders > 50, "{} orders", found.orders);
    }
}

/// Messages of the order log as the exchange sent them. The recording begins in the middle of a day and has
/// holes: orders that it only changes or deletes are added before it, and packets are numbered anew.
#[tickwire_testdata::recorded_data("captures/moex-asts", "specs/moex")]
#[test]
fn recorded_packets_make_the_same() {
    if !is_there() {
        return not_tested("Verilator is not installed (apt-get install verilator)");
    }
    let (file, recording) = ("moex/templates-2017-03.xml", "moex-asts/packets-2017.hex");
    let moex = moex(&specs(file), "X-OLR-CURR");
    let text = std::fs::read_to_string(captures(recording)).expect("the recording can be read");
    let mut decoder =
        Decoder::new(Arc::clone(&moex.templates), Limits::default()).expect("the templates will do");
    let order_log = moex
        .templates
        .template_named(&moex.template)
        .map(|template| template.id());
    let (mut packets, mut known, mut missing, mut first) = (Vec::new(), Vec::new(), Vec::new(), None);
    for bytes in text.lines().map(unhex) {
        let Ok(message) = decoder.packet(&bytes) else {
            continue;
        };
        if Some(message.template_id()) != order_log {
            continue;
        }
        for entry in message
            .orders()
            .flatten()
            .filter(|entry| (entry.symbol, entry.board) == (SYMBOL, BOARD))
        {
            first.get_or_insert(entry.rpt_seq);
            if entry.action != Action::New && !known.contains(&entry.order_id) {
                missing.push(OrderEntry {
                    action: Action::New,
                    symbol: SYMBOL,
                    board: BOARD,
                    price: entry.price.or(Some(price(560_000))),
                    qty: entry.qty.or(Some(Volume(1))),
                    order_status: b"O",
                    session: b"N",
                    ..entry
                });
            }
            known.push(entry.order_id);
        }
        packets.push(bytes);
    }
    let first = first.expect("the recording has the instrument");
    let begins = preamble(&packets[0]).expect("a packet has a number");
    let before = missing.len() as u32;
    let mut encoder =
        Encoder::new(Arc::clone(&moex.templates), Limits::default()).expect("the templates will do");
    let template = encoder.template(&moex.template).expect("the template is there");
    let mut day = Day::default();
    for (n, entry) in missing.iter_mut().enumerate() {
        entry.rpt_seq = first - before + n as u32;
        let (mut buffer, seq) = (vec![0; 2_000], begins - before + n as u32);
        let sent = Nanos(1_493_719_200 * Nanos::SECOND);
        let length = encoder
            .order_log(template, seq, sent, &[*entry], &mut buffer)
            .expect("it fits");
        day.packets.push(Packet {
            seq: seq.into(),
            messages: 1,
            bytes: buffer[..length].to_vec(),
        });
    }
    for (seq, mut bytes) in (begins..).zip(packets) {
        bytes[..4].copy_from_slice(&seq.to_le_bytes());
        let seq = u64::from(seq);
        day.packets.push(Packet {
            seq,
            messages: 1,
            bytes,
        });
    }
    let cosim = cosim("core_moex-recorded", &moex);
    let troubles = Troubles {
        seed: 1,
        loss: 50_000,
        ..Troubles::default()
    };
    let found = compare(&cosim, &day, troubles);
    same(&found, 1);
    assert!(found.tops > 100, "{} tops", found.tops);
}
