//! What the generator writes, as it is committed: a change of it is read as a diff. `UPDATE=1 cargo test -p
//! tickwire-rtl --test golden` writes it anew. No tool is needed.

use std::path::{Path, PathBuf};

use tickwire_market::Price;
use tickwire_rtl::{Moex, Target, Venue, generate};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn target(name: &str) -> Target {
    if name != "core_moex.tw" {
        return Target::default();
    }
    let templates = std::fs::read_to_string(root().join("examples/moex-templates.xml")).expect("it is there");
    Target {
        venue: Venue::Moex(Moex::new(&templates, "X-OLR-DEMO").expect("the templates are right")),
        tick: Price::from_4dp(25),
        ..Target::default()
    }
}

fn design(name: &str) -> tickwire_rtl::Design {
    let path = root().join("examples/hardware").join(name);
    let source = std::fs::read_to_string(&path).expect("the example is there");
    let program = tickwire_language::compile(&source, &|_| Err(String::new())).expect("the example is right");
    let found = generate(&program, &source, &target(name));
    found.unwrap_or_else(|refusals| panic!("{name}: {refusals:?}"))
}

fn same(path: &Path, text: &str) {
    if std::env::var_os("UPDATE").is_some() {
        std::fs::create_dir_all(path.parent().expect("it lies in a folder")).expect("the folder can be made");
        std::fs::write(path, text).expect("it can be written");
        return;
    }
    let golden = std::fs::read_to_string(path).unwrap_or_default();
    for (n, (is, was)) in text.lines().zip(golden.lines()).enumerate() {
        assert_eq!(is, was, "{}:{}", path.display(), n + 1);
    }
    assert_eq!(text.len(), golden.len(), "{}", path.display());
}

#[test]
fn the_examples_become_what_is_committed() {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    for (name, files) in [
        (
            "core_taker.tw",
            &[
                "strategy.sv",
                "strategy_pkg.sv",
                "itch50_pkg.sv",
                "ouch50_pkg.sv",
                "README.md",
            ][..],
        ),
        ("core_pair.tw", &["strategy.sv", "strategy_pkg.sv"]),
        (
            "core_moex.tw",
            &["strategy.sv", "strategy_pkg.sv", "fast_pkg.sv", "fix44_pkg.sv"],
        ),
    ] {
        let design = design(name);
        let folder = golden.join(name.trim_end_matches(".tw"));
        for file in files {
            let made = design
                .files
                .iter()
                .find(|made| made.name == *file)
                .expect("it is made");
            same(&folder.join(file), &made.text);
        }
    }
}

/// Orders leave one a clock, and the last one reads the state as it was before the handler.
#[test]
fn the_state_is_written_when_the_last_order_is_out() {
    let source = "strategy s\ninstrument a = \"A\"\nstate last: price? = none\non book a {\n  if let v = last {\n    \
                  sell a 100 @ v ioc\n    buy a 200 @ v ioc\n    sell a 300 @ v ioc\n  }\n  last = a.bid[0].price\n}\n";
    let program = tickwire_language::compile(source, &|_| Err(String::new())).expect("it is right");
    let design = generate(&program, source, &Target::default()).expect("a core carries it");
    let rule = design
        .files
        .iter()
        .find(|file| file.name == "strategy.sv")
        .expect("it is written");
    let last = design.handlers[0].clocks + design.handlers[0].orders - 1;
    let writes = rule
        .text
        .split(&format!("if (book_at[{last}]) begin\n"))
        .nth(1)
        .expect("the state is written with the last order");
    assert!(writes.contains("state_last_reg <= "), "{}", rule.text);
    assert_eq!(
        rule.text.matches("state_last_reg <= ").count(),
        2,
        "there and after a reset"
    );
}

#[test]
fn the_registers_of_the_page_are_those_of_the_core() {
    let core = std::fs::read_to_string(root().join("hardware/rtl/core.sv")).expect("the core is there");
    for register in tickwire_rtl::registers::WRITTEN {
        let own = format!("{} = 8'd{}", register.name, register.address);
        // Of several in a row the core names the first.
        let is_named = core.contains(&own);
        let is_follower = [
            "ADDRESS_B",
            "ADDRESS_HOST",
            "PORT_B",
            "PORT_HOST",
            "SESSION_1",
            "SESSION_2",
        ];
        assert!(is_named || is_follower.contains(&register.name), "{own}");
    }
    for register in tickwire_rtl::registers::READ
        .iter()
        .filter(|register| register.address < 16)
    {
        assert!(
            core.contains(&format!("8'd{}:", register.address)),
            "{}",
            register.name
        );
    }
    let package =
        std::fs::read_to_string(root().join("hardware/rtl/core_pkg.sv")).expect("the package is there");
    let (faults, blocks) = (
        tickwire_rtl::registers::FAULTS.len(),
        tickwire_rtl::registers::BLOCKS.len(),
    );
    assert!(package.contains(&format!("localparam int FAULTS = {faults};")));
    assert!(package.contains(&format!("localparam int BLOCKS = {blocks};")));
}
