//! What a core does not have is refused, with its line and the number; and whatever the text is, nothing
//! panics.

use tickwire_rtl::{Moex, Target, Venue, generate};

fn refusals(body: &str, target: &Target) -> Vec<(usize, String)> {
    let source = format!("strategy s\ninstrument a = \"A\"\n{body}");
    let program = tickwire_language::compile(&source, &|_| Err(String::new()));
    let program = program.unwrap_or_else(|wrong| panic!("{source}\n{wrong:?}"));
    match generate(&program, &source, target) {
        Ok(_) => Vec::new(),
        Err(refusals) => refusals
            .into_iter()
            .map(|refusal| (refusal.line, refusal.message))
            .collect(),
    }
}

#[track_caller]
fn refused(body: &str, line: usize, words: &str) {
    let found = refusals(body, &Target::default());
    assert!(
        found
            .iter()
            .any(|(at, message)| *at == line && message.contains(words)),
        "{words:?} in line {line} of {found:?}"
    );
}

/// An order log whose entries have these fields.
fn order_log(entry: &str) -> String {
    format!(
        r#"<templates><template name="X-OLR" id="7"><uInt32 name="MsgSeqNum" id="34"/>
        <sequence name="Orders"><length name="NoMDEntries" id="268"/>{entry}</sequence></template></templates>"#
    )
}

const ENTRY: &str = r#"<string name="Symbol" id="55" presence="optional"><copy/></string>
    <string name="Board" id="336" presence="optional"><copy/></string>
    <int32 name="RptSeq" id="83" presence="optional"/>
    <uInt32 name="Action" id="279" presence="optional"><copy/></uInt32>
    <string name="Type" id="269" presence="optional"><copy/></string>
    <string name="ID" id="278" presence="optional"/>
    <decimal name="Px" id="270" presence="optional"><copy/></decimal>
    <decimal name="Size" id="271" presence="optional"><copy/></decimal>"#;

fn of_moex(templates: &str, template: &str) -> Target {
    Target {
        venue: Venue::Moex(Moex::new(templates, template).expect("the templates can be read")),
        ..Target::default()
    }
}

#[test]
fn what_the_order_log_does_not_have_is_said() {
    let said = |body: &str, target: &Target| {
        let found = refusals(body, target);
        let texts: Vec<String> = found.into_iter().map(|(_, message)| message).collect();
        texts.join("; ")
    };
    let buys = "on book a {\n  buy a 1 @ 1.00 ioc\n}";
    let right = of_moex(&order_log(ENTRY), "X-OLR");
    assert_eq!(said(buys, &right), "");
    assert!(said("on trade a { buy a 1 @ 1.00 ioc }", &right).contains("no trades"));
    let last = "on book a {\n  if let p = a.last_trade { buy a 1 @ p ioc }\n}";
    assert!(
        said(last, &right).contains("the last trade"),
        "{}",
        said(last, &right)
    );
    for (from, to, words) in [
        (
            "id=\"83\" presence=\"optional\"/>",
            "id=\"83\"><increment/></int32>",
            "field 83",
        ),
        (
            "id=\"278\" presence=\"optional\"/>",
            "id=\"278\" presence=\"optional\" charset=\"unicode\"/>",
            "field 278",
        ),
        ("id=\"336\"", "id=\"337\"", "no field 336"),
        (
            "<decimal name=\"Px\"",
            "<int32 name=\"Pz\" id=\"1\"><delta/></int32><decimal name=\"Px\"",
            "",
        ),
    ] {
        let entry = ENTRY.replace(from, to);
        assert_ne!(entry, ENTRY);
        let found = said(buys, &of_moex(&order_log(&entry), "X-OLR"));
        assert!(found.contains(words), "{words}: {found}");
        assert_eq!(found.is_empty(), words.is_empty(), "{found}");
    }
    assert!(said(buys, &of_moex(&order_log(ENTRY), "X-OLX")).contains("no X-OLX"));
    let optional = order_log(ENTRY).replace(
        "<sequence name=\"Orders\">",
        "<sequence name=\"Orders\" presence=\"optional\">",
    );
    assert!(said(buys, &of_moex(&optional, "X-OLR")).contains("not always sent"));
    let behind = order_log(ENTRY).replace("</sequence>", "</sequence><uInt32 name=\"Behind\" id=\"9\"/>");
    assert!(said(buys, &of_moex(&behind, "X-OLR")).contains("not the last"));
    let Venue::Moex(moex) = right.venue else {
        panic!("it is MOEX's");
    };
    let empty = Target {
        venue: Venue::Moex(Moex {
            account: String::new(),
            ..moex
        }),
        ..Target::default()
    };
    assert!(said(buys, &empty).contains("is empty"));
}

#[test]
fn what_a_core_does_not_have_is_said() {
    refused(
        "window w: price last 8\non book a {\n  push w, a.ask[0].price else 1.00\n}",
        5,
        "windows: these have 16 words",
    );
    refused(
        "table t: price -> qty { 1.00: 1 }\non book a {\n  if (t.at(2.00) else 1) > 1 { buy a 1 @ 1.00 ioc }\n}",
        5,
        "tables: this one has 1 rows",
    );
    refused(
        "on book a {\n  if a.bid[3].qty > 1 { buy a 1 @ 1.00 ioc }\n}",
        4,
        "level 3, and the core shows level 0",
    );
    refused(
        "on book a {\n  buy a a.bid[0].qty / 3 @ 1.00 ioc\n}",
        4,
        "a division",
    );
    refused("on book a {\n  buy a 1 @ 1.00 day\n}", 4, "`ioc` only");
    refused(
        "on book a {\n  if a.position > 0 { sell a 1 @ 1.00 ioc }\n}",
        4,
        "position",
    );
    refused(
        "on book a {\n  let o = buy a 1 @ 1.00 ioc\n  if o == none { buy a 2 @ 1.00 ioc }\n}",
        4,
        "what became of an order",
    );
    refused(
        "on start { buy a 1 @ 1.00 ioc }\non book a { buy a 1 @ 1.00 ioc }",
        3,
        "on start",
    );
    refused(
        "timer t\non timer t { buy a 1 @ 1.00 ioc }\non book a { buy a 1 @ 1.00 ioc }",
        4,
        "no timers",
    );
    refused("counter c\non book a { count c }", 4, "counters");
    refused(
        "state seen: time? = none\non book a {\n  if now != seen { buy a 1 @ 1.00 ioc }\n  seen = now\n}",
        5,
        "clock",
    );
    refused("state n: int = 0\non book a { n += 1 }", 1, "no order");
    refused("on book a { buy a 1 @ (mid(a) else 1.00) ioc }", 3, "division");
    refused("on book a { buy a 1 @ 1.00005 ioc }", 3, "between two prices");
    refused(
        "instrument b = \"B\"\non book a { buy a 1 @ 1.00 ioc }",
        1,
        "2 instruments: the core carries 1",
    );
    let five = "buy a 1 @ 1.00 ioc\n".repeat(5);
    refused(
        &format!("on book a {{\n{five}}}"),
        3,
        "sends up to 5 orders, the core 4",
    );
    let short = Target {
        handler_clocks: 1,
        ..Target::default()
    };
    let found = refusals(
        "on book a {\n  if int(a.bid[0].qty) * int(a.ask[0].qty) * int(a.bid[0].qty) > 7 { buy a 1 @ 1.00 ioc }\n}",
        &short,
    );
    assert!(found[0].1.contains("clocks, the core has 1"), "{found:?}");
}

#[test]
fn what_is_never_looked_at_is_not_refused() {
    assert_eq!(
        refusals(
            "state n: int = 0\non book a {\n  n = 7 / 2\n  buy a 1 @ 1.00 ioc\n}",
            &Target::default()
        ),
        []
    );
    // Steps compared with a number need no division.
    let spread = "on book a when spread(a) <= 3 ticks { buy a 1 @ a.ask[0].price ioc }";
    assert_eq!(refusals(spread, &Target::default()), []);
    // A loop is laid out.
    let looped = "state n: [int; 4] = 0\non book a {\n  for i in 0..4 { n[i] += i }\n  if n[3] > 5 { buy a 1 @ 1.00 ioc }\n}";
    assert_eq!(refusals(looped, &Target::default()), []);
}

#[test]
fn ten_thousand_changed_programs_are_made_or_refused() {
    let examples = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let mut sources = Vec::new();
    for folder in ["hardware", "strategies"] {
        for entry in std::fs::read_dir(examples.join(folder)).expect("the examples are there") {
            let path = entry.expect("an entry").path();
            if path.extension().is_some_and(|e| e == "tw") {
                sources.push(std::fs::read_to_string(path).expect("a text"));
            }
        }
    }
    let mut seed = 26_u64;
    let mut below = |n: usize| {
        seed = seed
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as usize % n.max(1)
    };
    let (mut made, mut refused) = (0, 0);
    for n in 0..10_000 {
        let words: Vec<&str> = sources[n % sources.len()].split_inclusive([' ', '\n']).collect();
        let mut changed: Vec<&str> = words.clone();
        for _ in 0..1 + below(3) {
            let (at, from) = (below(changed.len()), below(words.len()));
            match below(3) {
                0 => changed[at] = words[from],
                1 => changed.insert(at, words[from]),
                _ => drop(changed.remove(at)),
            }
        }
        let source = changed.concat();
        let Ok(program) = tickwire_language::compile(&source, &|_| Err(String::new())) else {
            continue;
        };
        match generate(&program, &source, &Target::default()) {
            Ok(_) => made += 1,
            Err(_) => refused += 1,
        }
    }
    assert!(made > 20 && refused > 100, "{made} made, {refused} refused");
}
