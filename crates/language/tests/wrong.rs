//! What is wrong with a file is said with its place and what to do; and whatever the text is, the compiler
//! returns.

use std::path::Path;

use tickwire_language::{Limits, compile, compile_within, format};

fn no_files(name: &str) -> Result<String, String> {
    Err(std::format!("{name} is not here"))
}

/// What is said of a file with these lines behind its head.
fn told(lines: &str) -> String {
    let source = std::format!("strategy s\ninstrument a = \"A\"\ninstrument b = \"B\"\n{lines}\n");
    match compile(&source, &no_files) {
        Ok(_) => String::from("nothing"),
        Err(wrong) => wrong.iter().map(|d| d.render("s.tw", &source)).collect(),
    }
}

#[test]
fn units_do_not_mix() {
    let found = told("param lot: qty = 1\nstate p: price = 1.00\non book a { p = p + lot }");
    assert_eq!(
        found,
        "error: price and qty cannot be added\n --> s.tw:6:17\n  |\n6 | on book a { p = p + lot }\n  |                 ^^^^^^^ price on the left, qty on the right\n  \
         = help: price times quantity is money; a price moves by a price or by ticks\n"
    );
    for (line, words) in [
        ("on book a { let x = now + now }", "times have a difference"),
        ("state p: price = 1\n", "write `1.00` for price"),
        ("state d: duration = 5\n", "has no unit of time"),
        (
            "on book a { let x = a.position > 1.00 }",
            "qty and price cannot be compared",
        ),
        ("on book a { buy a a.bid[0].price @ 1.00 }", "this is price"),
        (
            "on book a { if a.position { cancel all } }",
            "compare it with something",
        ),
        (
            "on book a { let x = distance(1.00, 2.00) }",
            "the ticks of which instrument?",
        ),
        (
            "on book a { let x = distance(a.last_trade, b.last_trade) }",
            "name it",
        ),
    ] {
        let found = told(line);
        assert!(found.contains(words), "{line}: {found}");
    }
}

#[test]
fn what_may_be_absent_is_tested_first() {
    let wrong = [
        "on book a { buy a 1 @ a.ask[0].price }",
        "state p: price = 1.00\non book a { p = a.last_trade }",
        "state o: order? = none\non book a { cancel o }",
        "state p: price? = none\non book a { if p == none { buy a 1 @ p } }",
        "state p: price? = none\non book a { if p != none { p = none\nbuy a 1 @ p } }",
        "state p: price? = none\non book a { if p != none or live(a) { buy a 1 @ p } }",
        "state p: price? = none\nfn forget() { p = none }\non book a { if p != none { forget()\nbuy a 1 @ p } }",
        "state p: price? = none\non book a { if p != none { for i in 0..2 { buy a 1 @ p\np = none } } }",
    ];
    for line in wrong {
        assert!(
            told(line).contains("this may be absent"),
            "{line}: {}",
            told(line)
        );
    }
    let right = [
        "on book a { if a.ask[0].price < 5.00 { buy a 1 @ a.ask[0].price } }",
        "on book a { if let p = a.ask[0].price { buy a 1 @ p } }",
        "on book a { let p = a.ask[0].price\nif p == none { return }\nbuy a 1 @ p }",
        "state o: order? = none\non book a { if o != none and o.open { cancel o } }",
        "state p: price? = none\non book a { p = 1.00\nbuy a 1 @ p }",
        "on book a { buy a 1 @ a.ask[0].price else 1.00 }",
        "on book a when mid(a) > 1.00 { buy a 1 @ a.ask[0].price }",
        "on trade a { if not (trade.side != bid) { buy a 1 @ trade.price } }",
    ];
    for line in right {
        // `else` binds weaker than an order's price: it is written in brackets.
        let line = line.replace("@ a.ask[0].price else 1.00", "@ (a.ask[0].price else 1.00)");
        assert_eq!(told(&line), "nothing", "{line}");
    }
}

#[test]
fn several_errors_are_said_in_one_run_each_with_a_suggestion() {
    let found = told(
        "param lot: quantity = 1\nstae x: int = 0\non bok a { }\non book a {\n  let p = a.akk[0].price\n  let y = lto * 2\n  buy a 5\n  if live(c) && true { }\n}\n\
         test \"t\" {\n  book a bid 5 @ 1.00\n  expct nothing\n}",
    );
    for words in [
        "there is no type `quantity`",
        "did you mean `state`?",
        "did you mean `book`?",
        "did you mean `lot`?",
        "expected `@ PRICE` or `market`",
        "write `and`",
        "did you mean `expect`?",
    ] {
        assert!(found.contains(words), "{words:?} is not in\n{found}");
    }
    assert!(found.matches("error: ").count() >= 7, "{found}");
}

#[test]
fn declarations_and_handlers_are_checked() {
    for (lines, words) in [
        ("state x: int = 0\nstate x: int = 0", "declared twice"),
        ("instrument c = \"A\"", "are the same instrument"),
        (
            "instrument c = \"C\" venue \"nasdak\"",
            "did you mean \"nasdaq\"?",
        ),
        ("on book a { }\non book a { }", "is written twice"),
        ("fn f(x: int) -> int { return f(x) }", "calls itself"),
        (
            "fn f(x: int) -> int { if x > 1 { return 1 } }",
            "does not always return",
        ),
        (
            "state n: int = 0\nfn f() -> int { n = 1\nreturn 1 }",
            "changes nothing",
        ),
        ("param n: int = 5 in 6..9", "outside its range"),
        ("on book a { for i in 0..5 { } for i in 5..5 { } }", "never runs"),
        (
            "param n: int = 5\non book a { for i in 0..n { } }",
            "make it a `const`",
        ),
        (
            "state s: [int; 3] = 0\non book a { s[3] = 1 }",
            "the array has 3 values",
        ),
        ("table t: price -> int from \"x.csv\"", "x.csv is not here"),
        ("table t: int -> int { 2: 1, 1: 1 }", "ascend"),
        ("enum E { x, y }\nstate e: E = z", "nothing is called `z`"),
        ("on book a { return\ncancel all }", "never reached"),
        ("on book a { let abs = 1 }", "names something already"),
        ("on book a { now + 1s }", "expected"),
    ] {
        let found = told(lines);
        assert!(found.contains(words), "{lines}: {found}");
    }
    let none = compile("strategy s\n", &no_files).expect_err("nothing to trade");
    assert!(none[0].message.contains("names no instrument"));
}

#[test]
fn what_is_too_large_is_refused_with_both_numbers() {
    for (lines, words) in [
        ("window w: int last 5000", "a window of 5000 values"),
        (
            "window w: int last 4096\nstate s: [int; 4096] = 0\nstate t: [int; 4096] = 0",
            "",
        ),
        (
            "on book a { for i in 0..1000 { for j in 0..1000 { let x = i * j } } }",
            "a handler may have 100000",
        ),
        (
            "on book a { for i in 0..65 { sell a 1 @ 1.00 } }",
            "can send 65 order requests in one go; a handler may send 64",
        ),
    ] {
        let found = told(lines);
        match words {
            "" => assert_eq!(found, "nothing"),
            words => assert!(found.contains(words), "{found}"),
        }
    }
    let short = Limits {
        code_ops: 1_000,
        ..Limits::default()
    };
    // Six calls in each of six functions: without the limit the code would grow with the sixth power.
    let call = |n: usize| {
        std::format!(
            "fn f{}(x: int) -> int {{ return {} x }}\n",
            n + 1,
            std::format!("f{n}(x) + ").repeat(6)
        )
    };
    let calls: String = (0..6).map(call).collect();
    let source = std::format!(
        "strategy s\ninstrument a = \"A\"\nfn f0(x: int) -> int {{ return x + x }}\n{calls}on book a {{ let y = f6(1) }}\n"
    );
    let wrong = compile_within(&source, &no_files, &short).expect_err("too large");
    assert!(
        wrong[0].message.contains("more than 1000 operations of code"),
        "{}",
        wrong[0].message
    );
    let small = Limits {
        memory_words: 100,
        ..Limits::default()
    };
    let source = "strategy s\ninstrument a = \"A\"\nstate s: [int; 60] = 0\n";
    let wrong = compile_within(source, &no_files, &small).expect_err("too large");
    assert!(
        wrong[0]
            .message
            .contains("need 108 words of memory up to here; there are 100"),
        "{}",
        wrong[0].message
    );
}

#[test]
fn parameters_are_set_by_texts_of_their_type_within_their_range() {
    let source = "strategy s\nparam who: symbol = \"A\"\nparam lot: qty = 5 in 1..9\nparam edge: price = 0.01\nparam wait: duration = 5s\n\
                  enum E { x, y }\nparam e: E = x\nparam on_it: bool = true\ninstrument a = who session \"Z\"\n";
    let mut program = compile(source, &no_files).expect("it is right");
    for (name, text) in [
        ("who", "MSFT"),
        ("lot", "9"),
        ("edge", "-0.5"),
        ("wait", "20ms"),
        ("e", "y"),
        ("on_it", "false"),
    ] {
        program.set(name, text).expect("it fits");
    }
    assert_eq!(program.instruments[0].symbol.as_str(), "MSFT@Z");
    for (name, text, words) in [
        ("lott", "1", "did you mean lot?"),
        ("lot", "10", "outside the range"),
        ("lot", "x", "no value of the type qty"),
        ("wait", "5", "no value of the type duration"),
        ("who", "", "no value of the type symbol"),
        ("e", "z", "no value"),
    ] {
        let why = program.set(name, text).expect_err("it does not fit");
        assert!(why.contains(words), "{why}");
    }
}

#[test]
fn the_deepest_file_that_is_taken_needs_no_more_stack_than_a_thread_has() {
    // Eight functions, each with blocks as deep as they may be and in the innermost a sum as long as it may
    // be that begins with the next one.
    let function = |n: usize| {
        let (open, close) = ("if x > 0 {\n".repeat(14), "}\n".repeat(14));
        let inner = if n == 0 {
            "x".to_string()
        } else {
            std::format!("f{}(x)", n - 1)
        };
        std::format!(
            "fn f{n}(x: int) -> int {{\n{open}return {inner}{}\n{close}return 0\n}}\n",
            " + x".repeat(90)
        )
    };
    let functions: String = (0..8).map(function).collect();
    let source = std::format!("strategy s\ninstrument a = \"A\"\n{functions}on book a {{ let y = f7(1) }}\n");
    compile(&source, &no_files).expect("it fits");
    for (open, close) in [
        ("(", ")"),
        ("-", ""),
        ("not ", ""),
        ("[", "]"),
        ("if true then ", ""),
        ("a.b[", "]"),
        ("abs(", ")"),
    ] {
        let deep = std::format!(
            "strategy s\ninstrument a = \"A\"\non book a {{ let y = {}1{} }}\n",
            open.repeat(100_000),
            close.repeat(100_000)
        );
        assert!(compile(&deep, &no_files).is_err());
    }
    for open in ["if true { ", "for i in 0..1 { ", "test \"t\" { ", "else "] {
        assert!(compile(&open.repeat(60_000), &no_files).is_err());
    }
}

/// Splitmix64.
fn draw(state: &mut u64, n: usize) -> usize {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    (z ^ (z >> 31)) as usize % n
}

#[test]
fn ten_thousand_mutated_programs_are_compiled_or_refused_and_format_the_same_twice() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/strategies");
    let sources: Vec<String> = std::fs::read_dir(folder)
        .expect("the examples are there")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|e| e == "tw"))
        .map(|path| std::fs::read_to_string(path).expect("a text"))
        .collect();
    let words: Vec<&str> = sources.iter().flat_map(|s| s.split_whitespace()).collect();
    let seed: u64 = std::env::var("SEED")
        .ok()
        .and_then(|s| s.parse().ok())
        .unwrap_or(1);
    println!("seed {seed}");
    let (mut right, mut formatted) = (0, 0);
    for n in 0..10_000_u64 {
        let state = &mut seed.wrapping_mul(1_000_003).wrapping_add(n);
        let mut text = sources[draw(state, sources.len())].clone();
        for _ in 0..1 + draw(state, 4) {
            let at = (0..=draw(state, text.len() + 1))
                .rev()
                .find(|at| text.is_char_boundary(*at))
                .unwrap_or(0);
            let length = 1 + draw(state, 12);
            let end = (at..=(at + length).min(text.len()))
                .rev()
                .find(|at| text.is_char_boundary(*at))
                .unwrap_or(at);
            match draw(state, 6) {
                0 => text.replace_range(at..end, ""),
                1 => text.insert_str(at, words[draw(state, words.len())]),
                2 => text.truncate(at),
                3 => text.insert(at, char::from_u32(draw(state, 0x250) as u32).unwrap_or('x')),
                4 => {
                    let piece = text[at..end].to_string();
                    text.insert_str(at, &piece.repeat(draw(state, 40)));
                }
                _ => text.replace_range(at..end, words[draw(state, words.len())]),
            }
        }
        match compile(&text, &no_files) {
            Ok(_) => right += 1,
            Err(wrong) => {
                assert!(!wrong.is_empty());
                for found in wrong {
                    let shown = found.render("m.tw", &text);
                    assert!(shown.starts_with("error: "), "{shown}");
                }
            }
        }
        if let Ok(once) = format(&text) {
            assert_eq!(format(&once).as_ref(), Ok(&once), "seed {seed}, program {n}");
            formatted += 1;
            assert_eq!(
                compile(&once, &no_files).is_ok(),
                compile(&text, &no_files).is_ok(),
                "seed {seed}, program {n}"
            );
        }
    }
    assert!(
        right > 500 && formatted > 5_000,
        "{right} right, {formatted} formatted"
    );
}
