//! Random rules in hardware against the interpreter: the same is told to both, and both want the same orders.
//! All rules are simulated at once. Without Verilator this says so and ends: `cargo xtask hardware` has it.
//! `SEED=N` chooses others, `RULES=N` and `TURNS=N` say how many.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use tickwire_cosim::{COMPILED, Random, is_there};
use tickwire_language::ir::{Event, HostCall, word};
use tickwire_language::{Engine, Host, Interpreter, Program};
use tickwire_rtl::{Target, generate};

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name)
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(default)
}

/// Rules that the checker and a core take.
struct Writer {
    random: Random,
    out: String,
    orders: u32,
    is_trade: bool,
}

impl Writer {
    fn below(&mut self, n: u64) -> u64 {
        self.random.below(n)
    }

    fn pick(&mut self, of: &[&str]) -> String {
        of[self.random.below(of.len() as u64) as usize].to_string()
    }

    fn number(&mut self, depth: u32) -> String {
        if depth == 0 || self.below(4) == 0 {
            return match self.below(8) {
                0 => format!("{}", self.random.word() as i64 >> 1).replace('-', "0 - "),
                1 => self.below(200).to_string(),
                2 => "int(a.bid[0].qty)".to_string(),
                3 => "int(a.ask[0].qty)".to_string(),
                4 if self.is_trade => "int(trade.qty)".to_string(),
                _ => self.pick(&["x", "y", "p", "x"]),
            };
        }
        let (a, b) = (self.number(depth - 1), self.number(depth - 1));
        match self.below(7) {
            0 | 1 => format!("(({a}) + ({b}))"),
            2 | 3 => format!("(({a}) - ({b}))"),
            4 => format!("(({a}) * ({b}))"),
            5 => format!("min({a}, {b})"),
            _ => format!("abs(max({a}, {b}))"),
        }
    }

    fn condition(&mut self, depth: u32) -> String {
        if depth > 0 && self.below(3) == 0 {
            let (a, b) = (self.condition(depth - 1), self.condition(depth - 1));
            return match self.below(3) {
                0 => format!("(({a}) and ({b}))"),
                1 => format!("(({a}) or ({b}))"),
                _ => format!("(not ({a}))"),
            };
        }
        let sign = self.pick(&["<", "<=", ">", ">=", "==", "!="]);
        let less = self.pick(&["<", "<=", ">", ">="]);
        let ticks = self.below(40);
        match self.below(8) {
            0 => format!("spread(a) {less} {ticks} ticks"),
            1 => format!("distance(a.bid[0].price, a.last_trade) {less} {ticks} ticks"),
            2 => format!("steps(a.ask[0].price, a.bid[0].price) {less} {} ticks", ticks + 1),
            3 => format!("a.ask[0].price {sign} last"),
            4 => "last != none".to_string(),
            5 => "flag".to_string(),
            _ => format!("({}) {sign} ({})", self.number(2), self.number(1)),
        }
    }

    fn block(&mut self, depth: u32) {
        for _ in 0..1 + self.below(3) {
            self.statement(depth);
        }
    }

    fn statement(&mut self, depth: u32) {
        match self.below(8) {
            0 | 1 => {
                let (name, value) = (self.pick(&["x", "y"]), self.number(3));
                let _ = writeln!(self.out, "{name} = {value}");
            }
            2 => {
                let value = self.condition(1);
                let _ = writeln!(self.out, "flag = {value}");
            }
            3 => {
                let price = self.pick(&["a.ask[0].price", "a.bid[0].price", "a.last_trade", "none"]);
                let _ = writeln!(self.out, "last = {price}");
            }
            4 | 5 if depth > 0 => {
                let condition = self.condition(2);
                let _ = writeln!(self.out, "if {condition} {{");
                self.block(depth - 1);
                if self.below(2) == 0 {
                    let _ = writeln!(self.out, "}} else {{");
                    self.block(depth - 1);
                }
                let _ = writeln!(self.out, "}}");
            }
            6 if depth > 0 => {
                let (turns, at) = (1 + self.below(3), self.below(4));
                let _ = writeln!(self.out, "for i in 0..{turns} {{ n[i] += i + x }}\nx = n[{at}]");
            }
            _ if self.orders < 4 => {
                self.orders += 1;
                let side = self.pick(&["buy", "sell"]);
                let price = self.pick(&["a.ask[0].price", "a.bid[0].price", "last", "a.last_trade"]);
                let qty = self.pick(&[
                    "100",
                    "a.bid[0].qty",
                    "a.ask[0].qty - a.bid[0].qty",
                    "a.ask[0].qty * 5000000",
                    "q",
                ]);
                let at = self.pick(&["v", "v", "stepped(v, 3, a)", "stepped(v, 0 - 2, a)"]);
                let _ = writeln!(self.out, "if let v = {price} {{ {side} a {qty} @ {at} ioc }}");
            }
            _ => {}
        }
    }

    fn program(seed: u64) -> String {
        let mut writer = Writer {
            random: Random(seed),
            out: String::from(
                "strategy rule\nparam p: int = 7\nparam q: qty = 30\ninstrument a = \"A\"\nstate x: int = 0\nstate y: int = 3\n\
                 state n: [int; 4] = 1\nstate flag: bool = false\nstate last: price? = none\n",
            ),
            orders: 0,
            is_trade: false,
        };
        writer.out.push_str("on book a {\n");
        writer.block(3);
        writer.out.push_str("}\n");
        if writer.below(2) == 0 {
            (writer.is_trade, writer.orders) = (true, 0);
            writer.out.push_str("on trade a {\n");
            writer.block(2);
            writer.out.push_str("}\n");
        }
        writer.out
    }
}

/// What is told in one turn.
#[derive(Clone, Copy, Default)]
struct Turn {
    is_trade: bool,
    live: bool,
    bid: (u32, u64),
    ask: (u32, u64),
    last: Option<(u32, u32)>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Want {
    turn: u32,
    rule: u16,
    is_sell: bool,
    qty: u32,
    price: u32,
}

struct Collector<'a> {
    program: &'a Program,
    turn: u32,
    rule: u16,
    top: [(u32, u64); 2],
    wants: Vec<Want>,
}

impl Host for Collector<'_> {
    fn call(&mut self, site: usize, memory: &mut [i64]) {
        const S: usize = word::SCRATCH as usize;
        match &self.program.sites[site].call {
            HostCall::Submit { side, .. } => {
                let qty = memory[S].clamp(0, u32::MAX.into()) as u32;
                let price = (memory[S + 1].div_euclid(100_000)).clamp(0, u32::MAX.into()) as u32;
                self.wants.push(Want {
                    turn: self.turn,
                    rule: self.rule,
                    is_sell: *side as u8 == 1,
                    qty,
                    price,
                });
                (memory[S], memory[S + 1]) = (1, 1);
            }
            HostCall::Level(_, side) => {
                let (price, qty) = self.top[*side as usize];
                let level = [i64::from(price) * 100_000, i64::from(qty > 0), qty as i64, 1];
                memory[S..S + 4].copy_from_slice(&level);
            }
            other => panic!("a core takes no {other:?}"),
        }
    }
}

fn expected(program: &Program, rule: u16, turns: &[Turn]) -> Vec<Want> {
    let mut engine = Interpreter::new(program);
    let mut memory = program.memory.clone();
    let at = program.instruments[0].at as usize;
    let (book, trade) = (program.handler(Event::Book(0)), program.handler(Event::Trade(0)));
    let mut host = Collector {
        program,
        turn: 0,
        rule,
        top: [(0, 0); 2],
        wants: Vec::new(),
    };
    memory[at + word::TICK as usize] = 10_000_000;
    memory[at + word::IS_KNOWN as usize] = 1;
    for (n, turn) in turns.iter().enumerate() {
        host.turn = n as u32;
        host.top = [turn.bid, turn.ask];
        let words = &mut memory[at..];
        words[word::IS_LIVE as usize] = turn.live.into();
        words[word::BID as usize] = i64::from(turn.bid.0) * 100_000;
        words[word::BID_QTY as usize] = turn.bid.1 as i64;
        words[word::ASK as usize] = i64::from(turn.ask.0) * 100_000;
        words[word::ASK_QTY as usize] = turn.ask.1 as i64;
        if let Some((price, qty)) = turn.last {
            words[word::LAST as usize] = i64::from(price) * 100_000;
            words[word::LAST_QTY as usize] = qty.into();
            words[word::HAS_LAST as usize] = 1;
            memory[word::EVENT as usize] = i64::from(price) * 100_000;
            memory[word::EVENT as usize + 1] = qty.into();
        }
        let handler = if turn.is_trade { trade } else { book };
        if let Some(handler) = handler {
            engine
                .run(program, handler, &mut memory, &mut host)
                .expect("a core's rule has no trap");
        }
    }
    host.wants
}

fn turns(seed: u64, count: u64) -> Vec<Turn> {
    let mut random = Random(seed);
    let mut last = None;
    (0..count)
        .map(|_| {
            let middle = 1_000_000 + 100 * random.below(60) as u32;
            let mut side = |up: bool| {
                let away = 100 * random.below(25) as u32;
                let qty = match random.below(6) {
                    0 => 0,
                    1 => random.below(1 << 40),
                    _ => random.below(1_000),
                };
                let price = if up { middle + away } else { middle - away };
                if qty == 0 { (0, 0) } else { (price, qty) }
            };
            let (bid, ask) = (side(false), side(true));
            let is_trade = random.below(4) == 0;
            if is_trade {
                // Trades lie between ticks, too.
                last = Some((middle + random.below(300) as u32, random.below(500) as u32));
            }
            Turn {
                is_trade,
                live: random.below(10) > 0,
                bid,
                ask,
                last,
            }
        })
        .collect()
}

/// The top module around all rules.
fn rules(count: usize) -> String {
    let words = count.div_ceil(32) * 32;
    let words = words.max(96);
    let mut out = format!(
        "`default_nettype none\nmodule rules (\n  input wire logic clk, rst, start_book, start_trade, live, bid_valid, ask_valid, \
         has_last,\n  input wire logic [31:0] bid_price, ask_price, last_price, last_qty,\n  input wire logic [39:0] bid_qty, \
         ask_qty,\n  output logic [15:0] count,\n  output logic [{0}:0] order_valid, order_ask,\n  output logic [{1}:0][31:0] \
         order_qty, order_price\n);\n  assign count = 16'd{count};\n",
        words - 1,
        count - 1,
    );
    let _ = writeln!(out, "  wire logic [{}:0] busy;", count - 1);
    for n in 0..count {
        let _ = writeln!(
            out,
            "  rule_{n} r{n} (.clk, .rst, .start_book, .start_trade, .busy(busy[{n}]), .live, .bid_valid, .bid_price, .bid_qty, \
             .ask_valid, .ask_price, .ask_qty, .has_last, .last_price, .last_qty, .order_valid(order_valid[{n}]), \
             .order_ask(order_ask[{n}]), .order_qty(order_qty[{n}]), .order_price(order_price[{n}]));"
        );
    }
    let _ = writeln!(
        out,
        "  assign order_valid[{}:{count}] = '0;\n  assign order_ask[{}:{count}] = '0;",
        words - 1,
        words - 1
    );
    out.push_str("  wire logic unused = &{1'b0, busy, unused};\nendmodule\n`default_nettype wire\n");
    out
}

#[test]
fn random_rules_want_the_same_orders_as_the_interpreter() {
    if !is_there() {
        return tickwire_testdata::not_tested("Verilator is not installed (apt-get install verilator)");
    }
    let (seed, count) = (number("SEED", 1), number("RULES", 24) as usize);
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("rules-{seed}-{count}"));
    std::fs::create_dir_all(&folder).expect("a folder for tests");
    let target = Target {
        handler_orders: 8,
        handler_clocks: 60,
        ..Target::default()
    };
    let mut programs = Vec::new();
    let mut tried = 0;
    while programs.len() < count {
        let source = Writer::program(seed.wrapping_mul(1_000_003).wrapping_add(tried));
        tried += 1;
        assert!(
            tried < 50 * count as u64,
            "too few of these programs become rules"
        );
        let Ok(program) = tickwire_language::compile(&source, &|_| Err(String::new())) else {
            continue;
        };
        let Ok(design) = generate(&program, &source, &target) else {
            continue;
        };
        let rule = design
            .files
            .iter()
            .find(|file| file.name == "strategy.sv")
            .expect("it is made");
        let name = format!("rule_{}", programs.len());
        let text = rule
            .text
            .replacen("module strategy (", &format!("module {name} ("), 1);
        std::fs::write(folder.join(format!("{name}.sv")), text).expect("it can be written");
        programs.push((source, program));
    }
    std::fs::write(folder.join("rules.sv"), rules(count)).expect("it can be written");
    let bench = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../hardware/sim/rules_bench.cpp");
    std::fs::copy(bench, folder.join("rules_bench.cpp")).expect("the bench is there");
    let files: Vec<String> = (0..count).map(|n| format!("rule_{n}.sv")).collect();
    let made = Command::new("verilator")
        .current_dir(&folder)
        .args([
            "--cc",
            "--exe",
            "--build",
            "-j",
            "2",
            "-Wall",
            "--Mdir",
            "obj",
            "--top-module",
            "rules",
        ])
        .args(COMPILED)
        .args(["-o", "rules_bench", "rules.sv", "rules_bench.cpp"])
        .args(&files)
        .output()
        .expect("Verilator starts");
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let turns = turns(seed, number("TURNS", 4_000));
    let mut bytes = Vec::new();
    for turn in &turns {
        let flag = |is: bool, bit: u8| if is { 1 << bit } else { 0_u8 };
        let (last_price, last_qty) = turn.last.unwrap_or_default();
        bytes.push(
            flag(turn.is_trade, 0)
                | flag(turn.live, 1)
                | flag(turn.bid.1 > 0, 2)
                | flag(turn.ask.1 > 0, 3)
                | flag(turn.last.is_some(), 4),
        );
        bytes.extend_from_slice(&turn.bid.0.to_le_bytes());
        bytes.extend_from_slice(&turn.bid.1.to_le_bytes());
        bytes.extend_from_slice(&turn.ask.0.to_le_bytes());
        bytes.extend_from_slice(&turn.ask.1.to_le_bytes());
        bytes.extend_from_slice(&last_price.to_le_bytes());
        bytes.extend_from_slice(&last_qty.to_le_bytes());
        bytes.extend_from_slice(&[0; 9]);
    }
    std::fs::write(folder.join("inputs.bin"), bytes).expect("it can be written");
    let ran = Command::new(folder.join("obj/rules_bench"))
        .current_dir(&folder)
        .args(["inputs.bin", "output.bin"])
        .status()
        .expect("the bench starts");
    assert!(ran.success());
    let output = std::fs::read(folder.join("output.bin")).expect("the bench wrote");
    let mut wants: Vec<Vec<Want>> = vec![Vec::new(); count];
    for record in output.chunks_exact(15) {
        let u32_at =
            |at: usize| u32::from_le_bytes([record[at], record[at + 1], record[at + 2], record[at + 3]]);
        let rule = u16::from_le_bytes([record[4], record[5]]);
        wants[usize::from(rule)].push(Want {
            turn: u32_at(0),
            rule,
            is_sell: record[6] != 0,
            qty: u32_at(7),
            price: u32_at(11),
        });
    }
    let mut orders = 0;
    for (n, (source, program)) in programs.iter().enumerate() {
        let expected = expected(program, n as u16, &turns);
        for (is, want) in wants[n].iter().zip(&expected) {
            assert_eq!(
                is,
                want,
                "seed {seed}, rule {n} in {}:\n{source}",
                folder.display()
            );
        }
        assert_eq!(
            wants[n].len(),
            expected.len(),
            "seed {seed}, rule {n} in {}:\n{source}",
            folder.display()
        );
        orders += expected.len();
    }
    println!(
        "{count} rules, {} turns, {orders} orders the same; {tried} programs tried",
        turns.len()
    );
    assert!(orders > 1_000, "{orders} orders");
}
