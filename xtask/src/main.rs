//! The project's own commands: `cargo xtask check` is all of them, and what CI runs; `cargo xtask <step>` is
//! one.
//!
//! A step is a row of [`STEPS`]; [`run`] starts its commands and keeps their output, [`tidy`] and [`purity`]
//! read the sources themselves. A Rust toolchain with rustfmt and clippy is enough for all but `bindings`,
//! which uses Python where there is one.
#![forbid(unsafe_code)]

mod aarch64;
mod aeron;
mod archives;
mod attack;
mod backtest_peers;
mod bare;
mod bindings;
mod book_peers;
mod cold;
mod command;
mod comments;
mod counts;
mod deadline;
mod dist;
mod disturbed;
#[cfg(test)]
mod documented;
mod export_peers;
mod fuzz;
mod hardware;
mod interop;
mod keys;
mod lanes;
mod licences;
mod lints;
mod locks;
mod miri;
mod mutants;
mod oracle;
mod packages;
mod patience;
mod perf;
mod pgo;
mod pictures;
mod promtool;
mod proofs;
mod properties;
mod publish;
mod purity;
mod quantlib;
mod ray;
mod receive_loop;
mod recorded;
mod rooms;
mod run;
mod sinks;
mod sizes;
mod soak;
mod source;
mod spawned;
mod supply;
mod tables;
mod tidy;
mod unread;
mod wheels;

use run::{Context, Outcome};
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError, mpsc};
use std::time::Instant;

/// One step of `check`.
struct Step {
    name: &'static str,
    about: &'static str,
    run: fn(&Context) -> Outcome,
    when: When,
}

/// When `check` runs a step.
#[derive(Clone, Copy, PartialEq, Eq)]
enum When {
    /// When the step before has ended.
    InTurn,
    /// Beside tests that wait for processes and sockets, when those that compute are done.
    Beside,
    /// With `--full` only, beside tests too: it takes longer than a check may.
    Full,
    /// Not at all: another step says the same in a `check`.
    Alone,
}

impl Step {
    /// Says that it begins.
    fn announce(&self) {
        println!("== {:<10} {}", self.name, self.about);
    }

    /// Its outcome, and how many seconds it took.
    fn timed(&self, context: &Context) -> (Outcome, f64) {
        let start = Instant::now();
        let outcome = (self.run)(context);
        (outcome, start.elapsed().as_secs_f64())
    }
}

/// The step that others run beside.
const TESTS: &str = "test";

/// So far, of 19 at most, these step back: none of them looks at the time.
const BEHIND_TESTS: i8 = 15;

/// Every step in the order of `check`: what fails fast comes first.
const STEPS: &[Step] = &[
    Step {
        name: "fmt",
        about: "rustfmt --check over every crate and the fuzz targets",
        run: run::fmt,
        when: When::InTurn,
    },
    Step {
        name: "tidy",
        about: "links, citations, headers, safety comments, orphans, ADR index",
        run: tidy::check,
        when: When::InTurn,
    },
    Step {
        name: "purity",
        about: "ban list, floats, headers and imports of the sans-I/O crates",
        run: purity::check,
        when: When::InTurn,
    },
    Step {
        name: "licences",
        about: "licences of every dependency against deny.toml, the table of packages; cargo-deny if installed",
        run: licences::check,
        when: When::InTurn,
    },
    Step {
        name: "bindings",
        about: "C header, C and C++ programs and the Python package against a running writer",
        run: bindings::check,
        when: When::Beside,
    },
    Step {
        name: "lints",
        about: "what compiler, Clippy and rustdoc say of every target; warnings are errors",
        run: lints::check,
        when: When::Beside,
    },
    Step {
        name: "clippy",
        about: "clippy over every target, warnings are errors",
        run: run::clippy,
        when: When::Alone,
    },
    Step {
        name: "docs",
        about: "rustdoc, warnings are errors",
        run: run::docs,
        when: When::Alone,
    },
    Step {
        name: TESTS,
        about: "every test of the workspace",
        run: run::tests,
        when: When::InTurn,
    },
    Step {
        name: "bench",
        about: "every benchmark once, tiny: they check their answers",
        run: run::benches,
        when: When::Beside,
    },
    Step {
        name: "counts",
        about: "instructions of the hot paths against docs/results/counts.tsv, under Callgrind",
        run: counts::check,
        when: When::Full,
    },
    Step {
        name: "cold",
        about: "lines of the caches that a rehearsed packet finds missing, against docs/results/cold.tsv, under Callgrind",
        run: cold::check,
        when: When::Full,
    },
    Step {
        name: "fuzz",
        about: "every fuzz target for a fixed number of inputs from a fixed seed",
        run: fuzz::smoke,
        when: When::Beside,
    },
];

/// Not part of `check`: it writes what `bindings` compares.
const HEADER: Step = Step {
    name: "header",
    about: "the C header, from the layout of the shared memory",
    run: bindings::write_header,
    when: When::InTurn,
};

/// Not part of `check`: two minutes to build every pure crate once more, for what `purity` bans by name.
const BARE: Step = Step {
    name: "bare",
    about: "links the pure crates into a program without an operating system",
    run: bare::check,
    when: When::InTurn,
};

const HELP: &str = "\
The project's own commands.

  cargo xtask check [--full]    every step below, with --full those marked 'full', too; the last line is
                                'N passed, M failed, K skipped'
  cargo xtask check --list      the steps
  cargo xtask <step>...         only these steps, with their output
  cargo xtask header            writes bindings/c/tickwire.h anew from the layout of the shared memory
  cargo xtask counts [PATH…] [--write] [--list]
                                instructions of the hot paths under Callgrind, against docs/results/counts.tsv
  cargo xtask cold [FEED…] [--write]
                                lines of the caches that a rehearsed packet finds missing, against docs/results/cold.tsv
  cargo xtask perf [--against COMMIT] [--minutes N] [--only TEXT] [--write] [--list]
                                times of the paths beside those of an older build, by turns; not part of check
  cargo xtask pgo [--record FILE]
                                the programs built by what they do in a training run; not part of check
  cargo xtask bare              links the pure crates into a program without an operating system; not part of check
  cargo xtask aarch64           compiles everything for AArch64 without linking; not part of check
  cargo xtask fuzz [target] [--seconds N] [--seed S] [--input FILE] [--list]
                                fuzz on stable: seeded mutations of the vectors (10 s a target by default)
  cargo xtask oracle --dissectors DIR [--only PROTOCOL] [--capture FILE=PROTOCOL] [--simulate]
                                tickwire decode against tshark with public dissectors (docs/oracle.md); not part of check
  cargo xtask interop           FIX against QuickFIX C++ and QuickFIX/J, both ways, TLS too; not part of check
  cargo xtask backtest-peers    backtests beside hftbacktest and nautilus_trader; not part of check
  cargo xtask book-peers [--itch-order-book DIR] [--cpptrader DIR --cppcommon DIR]
                                order books beside itch-order-book, CppTrader and nautilus_model; not part of check
  cargo xtask quantlib          option values against QuantLib of PyPI; not part of check
  cargo xtask promtool          /metrics against promtool and the reference parser of OpenMetrics; not part of check
  cargo xtask tables            tables of `tickwire export` read by DuckDB, Polars and pandas; not part of check
  cargo xtask export-peers [--program FILE]
                                tables beside those of itch-book, Databento's dbn and tshark; not part of check
  cargo xtask aeron [--events N] [--rate N]
                                mirrors over Aeron on three hosts that are namespaces; not part of check
  cargo xtask archives [--packets N] [--only FEED]
                                archives of events beside their captures: replays and backtests; not part of check
  cargo xtask ray               jobs of `tickwire jobs` on Ray, with a worker that is killed; not part of check
  cargo xtask hardware [--full] [--route [SEEDS]]
                                the core in hardware: lint, unit tests, cosimulation, routing (docs/hardware.md); not part of check
  cargo xtask fetch-data [--list]  the recorded data that tests read, as far as it is public, at pinned commits
  cargo xtask demo-soak [--runs N] [--load N] [--feeds all|FEED,FEED…]
                                the demonstration again and again beside busy processes; not part of check
  cargo xtask disturbed [STEP…] [--hands N] [--seed S]
                                steps while the processors are taken away now and then, as by a host; not part of check
  cargo xtask attack [--kills N] [--hours H] [--only NAME]
                                kills, faults, errors and hostile input again and again, then left alone; not part of check
  cargo xtask supply [--advisories DIR] [--write]
                                advisories, bill of materials, table of packages (docs/supply-chain.md); not part of check
  cargo xtask miri [CRATE]      tests of the crates with unsafe code under Miri; needs a nightly toolchain; not part of check
  cargo xtask mutants [NAME…] [--shard K/N] [--again] [--list]
                                breaks engine, books and arbiter in one place at a time, to see that tests notice (docs/mutants.md);
                                needs cargo-mutants; not part of check
  cargo xtask properties [CRATE…] [--cases N] [--seed S]
                                the property tests with many cases, from a new seed; not part of check
  cargo xtask comments [--write]
                                wraps comments that are wider than code may be
  cargo xtask pictures [--program FILE] [--only NAME]
                                the pictures of the README, of a running daemon and a demonstration; not part of check
  cargo xtask publish [--verify] [--list] [--allow-dirty]
                                packs every crate as a registry would get it, and sends nothing; not part of check
  cargo xtask wheels [--only ARCH]
                                the Python package as wheels, tested in a clean environment; not part of check
  cargo xtask notebooks [--wheel FILE]
                                runs the notebooks of examples/notebooks and keeps their pictures; not part of check
  cargo xtask dist [--program-dir DIR | --plain]
                                tarball, Debian package, manual pages, completions, SHA-256, bill of materials; not part of check
  cargo xtask lab-peers         the traders of other FIX engines for `tickwire lab run fix`, into target/peers; not part of check

Options: --verbose  show the output of steps that pass, too
         --help     this text

`check` exits with 1 when a step fails. Each failure ends with the command that repeats it; the output of each step is kept
in target/xtask/<step>.log. A test program that does not end is killed after ten minutes and named. Tests that read recorded data are skipped, and counted, where there is none; with CI set they fail.
";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    match words.as_slice() {
        [compiler, arguments @ ..] if lints::is_compiler(compiler) => lints::compile(compiler, arguments),
        ["oracle", rest @ ..] => oracle::run(rest),
        ["interop", rest @ ..] => interop::run(rest),
        ["backtest-peers", rest @ ..] => backtest_peers::run(rest),
        ["book-peers", rest @ ..] => book_peers::run(rest),
        ["hardware", rest @ ..] => hardware::run(rest),
        ["quantlib", rest @ ..] => quantlib::run(rest),
        ["fetch-data", rest @ ..] => {
            let fetched = recorded::fetch(rest);
            recorded::freshen();
            fetched
        }
        ["promtool", rest @ ..] => promtool::run(rest),
        ["tables", rest @ ..] => tables::run(rest),
        ["export-peers", rest @ ..] => export_peers::run(rest),
        ["aarch64", rest @ ..] => aarch64::run(rest),
        ["aeron", rest @ ..] => aeron::run(rest),
        ["archives", rest @ ..] => archives::run(rest),
        ["ray", rest @ ..] => ray::run(rest),
        ["lab-peers", rest @ ..] => interop::lab_peers(rest),
        ["attack", rest @ ..] => attack::run(rest),
        ["demo-soak", rest @ ..] => soak::run(rest),
        ["supply", rest @ ..] => supply::run(rest),
        ["comments", rest @ ..] => comments::run(rest),
        ["pictures", rest @ ..] => pictures::run(rest),
        ["publish", rest @ ..] => publish::run(rest),
        ["properties", rest @ ..] => properties::run(rest),
        ["miri", rest @ ..] => miri::run(rest),
        ["counts", rest @ ..] => counts::run(rest),
        ["cold", rest @ ..] => cold::run(rest),
        ["mutants", rest @ ..] => mutants::run(rest),
        ["perf", rest @ ..] => perf::run(rest),
        ["pgo", rest @ ..] => pgo::run(rest),
        ["wheels", rest @ ..] => wheels::run(rest),
        ["notebooks", rest @ ..] => wheels::run_notebooks(rest),
        ["dist", rest @ ..] => dist::run(rest),
        ["disturbed", rest @ ..] => disturbed::run(rest),
        [disturbed::HAND, rest @ ..] => disturbed::disturb(rest),
        ["within", rest @ ..] => deadline::run(rest),
        [] | ["help" | "--help" | "-h", ..] | [_, "--help" | "-h"] => {
            print!("{HELP}\nSteps:\n{}", list());
            ExitCode::SUCCESS
        }
        ["check", "--list"] | ["--list"] => {
            print!("{}", list());
            ExitCode::SUCCESS
        }
        ["check"] => run_check(false),
        ["check", "--full"] => run_check(true),
        ["check", "--verbose" | "-v"] => {
            lints::begin();
            let steps = STEPS
                .iter()
                .filter(|step| !matches!(step.when, When::Full | When::Alone));
            run_steps(steps, true)
        }
        ["fuzz", rest @ ..] if !rest.is_empty() => fuzz::hunt(rest),
        ["fuzz"] => fuzz::hunt(&[]),
        ["bare"] => run_steps([&BARE].into_iter(), true),
        ["header"] => run_steps([&HEADER].into_iter(), true),
        names => match names.iter().map(|name| find(name)).collect::<Result<Vec<_>, _>>() {
            Ok(steps) => run_steps(steps.into_iter(), true),
            Err(unknown) => {
                eprintln!("xtask: no step or option '{unknown}'; `cargo xtask --help` lists them");
                ExitCode::from(2)
            }
        },
    }
}

fn find(name: &str) -> Result<&'static Step, &str> {
    STEPS.iter().find(|s| s.name == name).ok_or(name)
}

fn list() -> String {
    STEPS
        .iter()
        .map(|s| {
            let when = match s.when {
                When::Full => " (full)",
                When::Alone => " (not part of check, where 'lints' says it)",
                When::InTurn | When::Beside => "",
            };
            format!("  {:<10} {}{when}\n", s.name, s.about)
        })
        .collect()
}

/// Runs the steps, all of them even after a failure, and says how it went.
fn run_steps(steps: impl Iterator<Item = &'static Step>, verbose: bool) -> ExitCode {
    code_of(findings(steps, verbose))
}

/// The same, with what was found.
fn findings(steps: impl Iterator<Item = &'static Step>, verbose: bool) -> command::Findings {
    let mut all = Tally::default();
    for step in steps {
        step.announce();
        let (outcome, seconds) = step.timed(&Context::new(step.name, verbose));
        all.add(step, outcome, seconds);
    }
    all.conclude()
}

/// All steps of a check, some of them beside the tests; what a step says is shown when it has ended.
fn run_check(is_full: bool) -> ExitCode {
    lints::begin();
    let mut all = Tally::default();
    let (in_turn, beside): (Vec<_>, Vec<_>) = STEPS
        .iter()
        .filter(|step| step.when != When::Alone && (is_full || step.when != When::Full))
        .partition(|step| step.when == When::InTurn);
    std::thread::scope(|scope| {
        // What looks at sources needs one core, and the tests have to be built.
        scope.spawn(run::build_tests);
        for step in in_turn {
            step.announce();
            if step.name == TESTS {
                tests_and(&beside, step, &mut all);
            } else {
                let (outcome, seconds) = step.timed(&Context::new(step.name, false));
                all.add(step, outcome, seconds);
            }
        }
    });
    code_of(all.conclude())
}

fn code_of(found: command::Findings) -> ExitCode {
    match found.bad {
        0 => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    }
}

/// The tests, and beside those that wait for something the other steps: whenever a lane of tests has ended,
/// one more of them at a time. Those that only run cargo wait for each other, as it builds one thing at a
/// time; others use what the machine has left.
fn tests_and(beside: &[&'static Step], tests: &'static Step, all: &mut Tally) {
    let (freed, is_free) = mpsc::channel();
    let context = Context::new(tests.name, false);
    let (is_free, next) = (Mutex::new(is_free), AtomicUsize::new(0));
    let work = || {
        run::step_back(BEHIND_TESTS);
        // Nothing is sent when the tests could not be built.
        let _ = is_free.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let mut done = Vec::new();
        loop {
            let place = next.fetch_add(1, Ordering::Relaxed);
            let Some(step) = beside.get(place) else {
                return done;
            };
            done.push((place, step.timed(&Context::new(step.name, false))));
        }
    };
    let (of_tests, mut others) = std::thread::scope(|scope| {
        let workers = [(); 2].map(|()| scope.spawn(work));
        let of_tests = tests.timed(&context.tells(freed));
        let done = workers.map(|worker| {
            let ended = worker.join();
            ended.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        });
        (of_tests, done.into_iter().flatten().collect::<Vec<_>>())
    });
    all.add(tests, of_tests.0, of_tests.1);
    others.sort_by_key(|(place, _)| *place);
    for (place, (outcome, seconds)) in others {
        beside[place].announce();
        all.add(beside[place], outcome, seconds);
    }
}

/// How the steps so far went.
#[derive(Default)]
struct Tally {
    passed: usize,
    failed: usize,
    skipped: Vec<String>,
    /// The steps that failed: the command that repeats each, and what of it failed.
    again: Vec<(&'static str, String, Vec<String>)>,
}

impl Tally {
    /// A step has ended: says how.
    fn add(&mut self, step: &Step, outcome: Outcome, seconds: f64) {
        self.passed += outcome.passed;
        self.failed += outcome.failed;
        let skips = match outcome.skipped.len() {
            0 => String::new(),
            n => format!(", {n} skipped"),
        };
        self.skipped.extend(outcome.skipped);
        for line in &outcome.notes {
            println!("   {line}");
        }
        if outcome.failed == 0 {
            println!("   ok      {seconds:>7.1} s  {} passed{skips}", outcome.passed);
        } else {
            println!(
                "   FAILED  {seconds:>7.1} s  {} failed{skips}; again: {}",
                outcome.failed, outcome.again
            );
            self.again.push((step.name, outcome.again, outcome.names));
        }
    }

    /// The last lines: what failed and why, what was skipped, and the numbers.
    fn conclude(self) -> command::Findings {
        println!();
        for (step, command, tests) in &self.again {
            println!("failed: {step}; again: {command}");
            for line in tests {
                println!("  {line}");
            }
        }
        for line in why_skipped(&self.skipped) {
            println!("{line}");
        }
        let Tally { passed, failed, .. } = self;
        println!("{passed} passed, {failed} failed, {} skipped", self.skipped.len());
        command::Findings {
            good: passed,
            bad: failed,
        }
    }
}

/// What was skipped and what to do about it: one line for all recorded data, one for every other reason.
fn why_skipped(reasons: &[String]) -> Vec<String> {
    let (data, others): (Vec<_>, Vec<_>) = reasons
        .iter()
        .map(|reason| reason.strip_prefix(recorded::REASON).ok_or(reason))
        .partition(Result::is_ok);
    let paths: Vec<&str> = data.into_iter().flatten().collect();
    let mut lines = Vec::new();
    if !paths.is_empty() {
        lines.push(recorded::explained(&paths, paths.len()));
    }
    let others = others.into_iter().filter_map(Result::err);
    let mut others: Vec<String> = others.map(|reason| format!("skipped: {reason}")).collect();
    others.sort();
    others.dedup();
    lines.extend(others);
    lines
}
