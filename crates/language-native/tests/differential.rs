//! Native code against the interpreter: the examples and their tests, and random programs on random memory
//! and random answers of the host.

use std::fmt::Write;
use std::path::Path;

use tickwire_language::ir::word;
use tickwire_language::{Engine, Host, Interpreter, Program, compile, run_test};
use tickwire_language_native::Native;

#[test]
fn every_example_does_by_native_code_what_its_tests_say() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/strategies");
    let mut tests = 0;
    for entry in std::fs::read_dir(folder).expect("the examples are there") {
        let path = entry.expect("an entry").path();
        if path.extension().is_none_or(|e| e != "tw") {
            continue;
        }
        let source = std::fs::read_to_string(&path).expect("a text");
        let program = compile(&source, &|_| Err(String::new())).expect("the example is right");
        for test in &program.tests {
            let native = |program: &Program| Native::new(program).expect("this machine has code for it");
            run_test(&program, test, native)
                .unwrap_or_else(|e| panic!("{}", e.render(&path.to_string_lossy(), &source)));
            tests += 1;
        }
    }
    assert!(tests >= 20);
}

/// Splitmix64.
struct Random(u64);

impl Random {
    fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }
    fn below(&mut self, n: u64) -> u64 {
        self.word() % n
    }
    /// Numbers where something happens: the ends, around 0, anywhere.
    fn value(&mut self) -> i64 {
        match self.below(8) {
            0 => i64::MAX,
            1 => i64::MIN,
            2 => i64::MIN + self.below(4) as i64,
            3 => -1,
            4..=6 => self.below(20) as i64 - 6,
            _ => self.word() as i64,
        }
    }
}

/// Programs that the checker takes: numbers of one type, so that every operator fits every operand.
struct Writer {
    random: Random,
    out: String,
    locals: Vec<String>,
    made: u32,
}

impl Writer {
    fn pick<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.random.below(of.len() as u64) as usize]
    }

    fn number(&mut self, depth: u32) -> String {
        let leaf = depth == 0 || self.random.below(4) == 0;
        match (leaf, self.random.below(10)) {
            (true, 0..=2) => {
                let n = self.random.value();
                if n < 0 {
                    format!("(-{})", n.unsigned_abs().min(i64::MAX as u64))
                } else {
                    n.to_string()
                }
            }
            (true, 3..=4) if !self.locals.is_empty() => {
                let at = self.random.below(self.locals.len() as u64) as usize;
                self.locals[at].clone()
            }
            (true, 5) => "(o else 3)".to_string(),
            (true, 6) => "int(a.ask[0].qty)".to_string(),
            (true, 7) => self
                .pick(&["w.count", "w.sum", "(w.max else 0)", "int(a.position)"])
                .to_string(),
            (true, _) => self.pick(&["x", "y", "p", "c"]).to_string(),
            (false, 0..=3) => {
                let op = self.pick(&["+", "-", "*", "/", "%"]);
                format!("({} {op} {})", self.number(depth - 1), self.number(depth - 1))
            }
            (false, 4) => {
                let f = self.pick(&["min", "max"]);
                format!("{f}({}, {})", self.number(depth - 1), self.number(depth - 1))
            }
            (false, 5) => {
                let f = self.pick(&["abs", "sign", "twice"]);
                format!("{f}(x + {})", self.number(depth - 1))
            }
            (false, 6) => format!(
                "(if {} then {} else {})",
                self.truth(depth - 1),
                self.number(depth - 1),
                self.number(depth - 1)
            ),
            (false, 7) => format!("s[{} % 5]", self.number(depth - 1)),
            (false, 8) => format!("t.linear({})", self.number(depth - 1)),
            (false, _) => format!("(-{})", self.number(depth - 1)),
        }
    }

    fn truth(&mut self, depth: u32) -> String {
        if depth == 0 {
            return self
                .pick(&["b", "x < y", "o == none", "live(a)", "w.full", "o > 2"])
                .to_string();
        }
        match self.random.below(6) {
            0 => format!("({} and {})", self.truth(depth - 1), self.truth(depth - 1)),
            1 => format!("({} or {})", self.truth(depth - 1), self.truth(depth - 1)),
            2 => format!("not {}", self.truth(depth - 1)),
            3 => "distance(a.ask[0].price, a.last_trade) <= 3 ticks".to_string(),
            _ => {
                let op = self.pick(&["<", "<=", ">", ">=", "==", "!="]);
                format!("({} {op} {})", self.number(depth - 1), self.number(depth - 1))
            }
        }
    }

    fn block(&mut self, depth: u32) {
        let locals = self.locals.len();
        for _ in 0..1 + self.random.below(4) {
            self.statement(depth);
        }
        self.locals.truncate(locals);
    }

    fn statement(&mut self, depth: u32) {
        match self.random.below(if depth == 0 { 8 } else { 11 }) {
            0 => {
                self.made += 1;
                let (name, value) = (format!("l{}", self.made), self.number(3));
                // A number alone is a whole number.
                let _ = writeln!(self.out, "let {name}: int = {value}");
                self.locals.push(name);
            }
            1 | 2 => {
                let (to, value) = (self.pick(&["x", "y", "o"]), self.number(3));
                let _ = writeln!(self.out, "{to} = {value}");
            }
            3 => {
                let (at, value) = (self.number(1), self.number(2));
                let _ = writeln!(self.out, "s[{at} % 5] = {value}");
            }
            4 => {
                let value = self.truth(2);
                let _ = writeln!(self.out, "b = {value}");
            }
            5 => {
                let value = self.number(2);
                let _ = writeln!(self.out, "push w, {value}");
            }
            6 => {
                let value = self.number(1);
                let _ = writeln!(
                    self.out,
                    "if let v = a.bid[0].price {{ buy a c * {value} * one @ v - 1 tick ioc }}"
                );
            }
            7 => self.out.push_str("count n\no = none\n"),
            8 => {
                let condition = self.truth(2);
                let _ = writeln!(self.out, "if {condition} {{");
                self.block(depth - 1);
                self.out.push_str("} else {\n");
                self.block(depth - 1);
                self.out.push_str("}\n");
            }
            9 => {
                self.made += 1;
                let (name, low, times) = (
                    format!("i{}", self.made),
                    self.random.below(3),
                    1 + self.random.below(4),
                );
                let _ = writeln!(self.out, "for {name} in {low}..{} {{", low + times);
                self.locals.push(name);
                self.block(depth - 1);
                self.locals.pop();
                self.out.push_str("}\n");
            }
            _ => {
                self.made += 1;
                let _ = writeln!(self.out, "if let q{} = o {{", self.made);
                self.block(depth - 1);
                self.out.push_str("}\n");
            }
        }
    }

    fn program(seed: u64) -> String {
        let mut writer = Writer {
            random: Random(seed),
            out: String::from(
                "strategy random\ninstrument a = \"A\"\nparam p: int = 7\nconst c: int = 3\nconst one: qty = 1\n\
                 state x: int = 1\nstate y: int = -2\nstate b: bool = false\nstate o: int? = none\nstate s: [int; 9] = 4\n\
                 window w: int over 3us max 4\ncounter n\n\
                 table t: int -> int { 0: 5, 10: -50, 400: 7 }\nfn twice(v: int) -> int { if v > 100 { return v }\nreturn v * 2 }\n",
            ),
            locals: Vec::new(),
            made: 0,
        };
        for event in ["book a", "trade a", "timer k"] {
            if event == "timer k" {
                writer.out.push_str("timer k\n");
            }
            let _ = writeln!(writer.out, "on {event} {{");
            writer.locals.clear();
            for _ in 0..1 + writer.random.below(5) {
                writer.statement(2);
            }
            writer.out.push_str("}\n");
        }
        writer.out
    }
}

/// Answers by numbers drawn, the same for both; windows and tables are asked for too, and answered by chance.
struct Answers {
    random: Random,
    asked: Vec<(usize, [i64; 3])>,
}

impl Host for Answers {
    fn call(&mut self, site: usize, memory: &mut [i64]) {
        let from = word::SCRATCH as usize;
        self.asked
            .push((site, [memory[from], memory[from + 1], memory[from + 2]]));
        for place in &mut memory[from..from + word::SCRATCH_LEN as usize] {
            *place = self.random.value();
        }
        // What says whether something is there is 0 or 1.
        for at in [1, 6] {
            memory[from + at] &= 1;
        }
    }
}

fn compare(seed: u64) -> (u64, u64) {
    let source = Writer::program(seed);
    let told = |what: &str| format!("seed {seed}: {what}\n{source}");
    let program = match compile(&source, &|_| Err(String::new())) {
        Ok(program) => program,
        Err(wrong) => panic!("{}", told(&wrong[0].render("random.tw", &source))),
    };
    let mut native = Native::new(&program).unwrap_or_else(|e| panic!("{}", told(&e.to_string())));
    let mut interpreter = Interpreter::new(&program);
    let mut random = Random(seed ^ 0xABCD);
    let mut memories = [program.memory.clone(), program.memory.clone()];
    let (mut runs, mut traps) = (0, 0);
    for round in 0..40 {
        for at in (word::NOW as usize..word::SCRATCH as usize)
            .chain(word::INSTRUMENTS as usize..word::INSTRUMENTS as usize + 13)
        {
            let value = random.value();
            // Truths are 0 or 1, a tick is above 0.
            let at_of = at.wrapping_sub(word::INSTRUMENTS as usize) as u32;
            let value = match at_of {
                word::IS_LIVE | word::HAS_LAST | word::HAS_UPDATED | word::IS_KNOWN => value & 1,
                word::TICK => value.saturating_abs().max(1),
                _ => value,
            };
            memories.iter_mut().for_each(|m| m[at] = value);
        }
        let handler = random.below(program.handlers.len() as u64) as usize;
        let answers = |seed| Answers {
            random: Random(seed),
            asked: Vec::new(),
        };
        let seed_of = random.word();
        let (mut one, mut other) = (answers(seed_of), answers(seed_of));
        let [first, second] = &mut memories;
        let by_interpreter = interpreter.run(&program, handler, first, &mut one);
        let by_native = native.run(&program, handler, second, &mut other);
        assert_eq!(
            by_interpreter,
            by_native,
            "{}",
            told(&format!("round {round}, handler {handler}"))
        );
        assert_eq!(
            one.asked,
            other.asked,
            "{}",
            told(&format!("round {round}: what the host was asked"))
        );
        assert_eq!(first, second, "{}", told(&format!("round {round}: memory")));
        runs += 1;
        traps += u64::from(by_native.is_err());
    }
    (runs, traps)
}

#[test]
fn random_programs_do_the_same_by_native_code_and_by_the_interpreter() {
    let seed: Option<u64> = std::env::var("SEED").ok().and_then(|s| s.parse().ok());
    let count = std::env::var("PROGRAMS")
        .ok()
        .and_then(|s| s.parse().ok())
        .unwrap_or(300);
    let first = seed.unwrap_or(1);
    println!(
        "programs of the seeds {first} to {}; SEED=N PROGRAMS=1 repeats one",
        first + count - 1
    );
    let (mut runs, mut traps) = (0, 0);
    for seed in first..first + count {
        let (r, t) = compare(seed);
        (runs, traps) = (runs + r, traps + t);
    }
    println!("{runs} runs, {traps} of them traps");
    assert!(
        seed.is_some() || (traps > runs / 20 && traps < runs * 9 / 10),
        "{traps} of {runs} runs trap: too few programs run to their end, or too few trap"
    );
}

#[test]
fn a_panic_of_the_host_goes_through_native_code() {
    struct Panics;
    impl Host for Panics {
        fn call(&mut self, _: usize, _: &mut [i64]) {
            panic!("the host's own");
        }
    }
    let source = "strategy s\ninstrument a = \"A\"\non book a { cancel all }\n";
    let program = compile(source, &|_| Err(String::new())).expect("it is right");
    let mut native = Native::new(&program).expect("this machine has code for it");
    let mut memory = program.memory.clone();
    let mut run = || native.run(&program, 0, &mut memory, &mut Panics);
    let panic = std::panic::catch_unwind(std::panic::AssertUnwindSafe(&mut run)).expect_err("it panics");
    assert_eq!(panic.downcast_ref::<&str>(), Some(&"the host's own"));
}
