//! `cargo xtask cold`: how many lines of the caches a packet that leads to an order finds missing, feed by
//! feed, against a table that is kept.
//!
//! Behind a pause others have the caches. A thread that waits rehearses orders and packets, and has fetched
//! what these do not go through; what was forgotten there shows in no test and hides in the noise of times.
//! Callgrind's model of the caches counts it: in front of each packet a benchmark of `tickwire-node` walks
//! through more memory than the model's last cache holds and more code than its first one does, then the
//! waiting loop has its turns, then the packet comes. What is missing in the model's last cache then is a
//! line that nothing asked for.
//!
//! Callgrind passes over hints, so the benchmark is built with hints that read (`tickwire_hints_read` in
//! `crates/book/src/prefetch.rs`), and otherwise as what is handed on.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Instant;

use crate::command::{self, Findings};
use crate::counts::{self, COMPILER, Cannot};
use crate::run::{Context, Outcome, must, root, said, target_dir};

const HELP: &str = "\
Counts the lines of the caches that a packet with an order behind it finds missing, by Callgrind's model of the caches (Debian: valgrind),
and compares them with docs/results/cold.tsv: when nothing was done since others had the caches, and when a waiting thread has rehearsed.

  cargo xtask cold [FEED…]        all feeds, or those named
  cargo xtask cold --write        writes the table anew

A figure that is more than 1 line and more than 5 % from the table's fails, in either direction. Which lines of the sources they are:
  callgrind_annotate --show=ILmr,DLmr,DLmw --sort=ILmr target/cold/FEED-rehearsed.out
The figures belong to one version of the compiler, which the table names. Exit code 1: a figure differs. 2: it cannot be counted.
";

/// Where the table lies.
const TABLE: &str = "docs/results/cold.tsv";
/// Its columns.
const COLUMNS: &str = "feed\tcode\tdata\tcode, rehearsed\tdata, rehearsed";
/// What is done before a packet, as the benchmark names it.
const WAYS: [&str; 2] = ["cold", "rehearsed"];
/// The caches of the model: of the size of those of today's server cores, the last one that of a core alone.
const CACHES: [&str; 4] = [
    "--cache-sim=yes",
    "--I1=32768,8,64",
    "--D1=49152,12,64",
    "--LL=2097152,16,64",
];
/// How the compiler is told that hints read.
const FLAGS: &str = "--cfg tickwire_hints_read";
/// How far a figure may be from the table's: in lines, and in percent.
const TOLERANCE: (f64, f64) = (1.0, 5.0);

/// Lines that are missing, a packet.
#[derive(Debug, PartialEq)]
struct Counted {
    feed: String,
    /// Of code and of data, cold; and rehearsed.
    lines: [f64; 4],
}

/// What to do.
#[derive(Debug, PartialEq)]
struct Plan<'a> {
    only: Vec<&'a str>,
    writes: bool,
}

/// The command.
pub(crate) fn run(words: &[&str]) -> ExitCode {
    command::run("cold", HELP, words, plan, work)
}

fn plan<'a>(words: &[&'a str]) -> Result<Plan<'a>, String> {
    let (options, only): (Vec<&str>, Vec<&str>) = words.iter().partition(|word| word.starts_with('-'));
    if let Some(unknown) = options.iter().find(|word| **word != "--write") {
        return Err(format!("'{unknown}' is no option"));
    }
    let writes = options.contains(&"--write");
    match writes && !only.is_empty() {
        true => Err("the table is written as a whole".into()),
        false => Ok(Plan { only, writes }),
    }
}

fn work(plan: Plan<'_>) -> Result<Findings, String> {
    counts::valgrind()?;
    let program = counts::build("cold", FLAGS, &mut must)?;
    let feeds = counts::listed(&program, "feeds")?;
    counts::known(&plan.only, &feeds)?;
    let table = if plan.writes { Vec::new() } else { read()?.1 };
    let (mut findings, mut all) = (Findings::default(), Vec::new());
    for feed in counts::wanted(&plan.only, &feeds) {
        let began = Instant::now();
        let counted = count(&program, feed)?;
        let (line, is_good) = match plan.writes {
            true => (format!("{feed}: {}", told(&counted.lines)), true),
            false => judged(&counted, &table),
        };
        findings.count(&line, began, is_good);
        all.push(counted);
    }
    if plan.writes {
        let text = written(&counts::compiler()?, &all);
        std::fs::write(root().join(TABLE), text).map_err(|e| format!("{TABLE}: {e}"))?;
        println!("written: {TABLE}");
    }
    Ok(findings.sum_up())
}

/// The step of `check`.
pub(crate) fn check(ctx: &Context) -> Outcome {
    counts::outcome(compared(ctx), "cargo xtask cold")
}

fn compared(ctx: &Context) -> Result<Vec<(String, bool)>, Cannot> {
    let (of, table) = read().map_err(Cannot::Failed)?;
    counts::ready(ctx, &of)?;
    let program = counts::build("cold", FLAGS, &mut |command| counts::in_step(ctx, command));
    let program = program.map_err(Cannot::Failed)?;
    let all = counts::listed(&program, "feeds").and_then(|feeds| {
        let all = feeds.iter().map(|feed| count(&program, feed));
        all.collect::<Result<Vec<_>, _>>()
    });
    let all = all.map_err(Cannot::Failed)?;
    Ok(all.iter().map(|counted| judged(counted, &table)).collect())
}

/// The lines of a feed.
fn count(program: &Path, feed: &str) -> Result<Counted, String> {
    // Two at a time: each is one thread.
    let [cold, rehearsed] = std::thread::scope(|scope| {
        WAYS.map(|way| scope.spawn(move || once(program, feed, way)))
            .map(|thread| thread.join().unwrap_or_else(|_| Err("a thread panicked".into())))
    });
    let ([code, data], [code_rehearsed, data_rehearsed]) = (cold?, rehearsed?);
    Ok(Counted {
        feed: feed.to_owned(),
        lines: [code, data, code_rehearsed, data_rehearsed],
    })
}

/// Lines of code and of data a packet, of one run.
fn once(program: &Path, feed: &str, way: &str) -> Result<[f64; 2], String> {
    let out: PathBuf = target_dir().join("cold").join(format!("{feed}-{way}.out"));
    let mut command = Command::new("valgrind");
    command
        // What the environment holds lies on the stack, and moves it.
        .env_clear()
        .args(["--tool=callgrind", "--dump-line=yes"])
        .args(CACHES)
        .arg("--toggle-collect=*tickwire_cold_packet*")
        .arg(format!("--callgrind-out-file={}", out.display()))
        .arg(program)
        .args([feed, way]);
    if let Some(path) = std::env::var_os("PATH") {
        command.env("PATH", path);
    }
    let (packets, _) = said(&mut command)?;
    let packets: f64 = packets
        .trim()
        .parse()
        .map_err(|_| format!("{feed}: no number of packets: {packets}"))?;
    let text = std::fs::read_to_string(&out).map_err(|e| format!("{}: {e}", out.display()))?;
    let misses = misses(&text).ok_or_else(|| format!("{}: no misses of the last cache", out.display()))?;
    Ok(misses.map(|lines| lines as f64 / packets))
}

/// How often code and data were missing in the last cache, by a file of Callgrind's.
fn misses(text: &str) -> Option<[u64; 2]> {
    let line = |name: &str| text.lines().find_map(|line| line.strip_prefix(name));
    let names: Vec<&str> = line("events: ")?.split_whitespace().collect();
    // Zeros at the end are left out.
    let totals: Vec<u64> = line("totals: ")?
        .split_whitespace()
        .map_while(|n| n.parse().ok())
        .collect();
    let of = |wanted: &str| {
        let at = names.iter().position(|name| *name == wanted)?;
        Some(totals.get(at).copied().unwrap_or_default())
    };
    let instructions = of("Ir").filter(|n| *n > 0);
    instructions.and(Some([of("ILmr")?, of("DLmr")? + of("DLmw")?]))
}

/// A line on a feed and whether it is as the table has it.
fn judged(counted: &Counted, table: &[Counted]) -> (String, bool) {
    let Counted { feed, lines } = counted;
    let Some(kept) = table.iter().find(|kept| kept.feed == *feed) else {
        return (format!("{feed}: {}, and no line in {TABLE}", told(lines)), false);
    };
    let (of_lines, percent) = TOLERANCE;
    let is_off = |(now, kept): (&f64, &f64)| {
        let by = (now - kept).abs();
        by > of_lines && by > kept * percent / 100.0
    };
    let is_good = !lines.iter().zip(&kept.lines).any(is_off);
    let what = match is_good {
        true => String::new(),
        false => format!(
            "; in the table {}: what needs more, or is asked for no more? `cargo xtask cold --help` tells how to see which; \
             what became better `--write` keeps",
            told(&kept.lines)
        ),
    };
    (format!("{feed}: {}{what}", told(lines)), is_good)
}

/// In words.
fn told(lines: &[f64; 4]) -> String {
    let [code, data, code_rehearsed, data_rehearsed] = lines;
    format!(
        "{code_rehearsed:.0} lines of code and {data_rehearsed:.0} of data missing, {code:.0} and {data:.0} without a rehearsal"
    )
}

/// The table's text.
fn written(compiler: &str, all: &[Counted]) -> String {
    let mut text = format!(
        "# Lines of the caches (64 bytes) that a packet finds missing in which an offer enters a tick better than the best, up to\n\
         # the order's bytes and until the thread takes the next packet; mean of 100. By Callgrind's model of the caches, written by\n\
         # `cargo xtask cold --write`; a tab between columns. Others had the caches before; rehearsed: then a waiting thread its turns.\n\
         {COMPILER}{compiler}\n{COLUMNS}\n"
    );
    for Counted { feed, lines } in all {
        let figures = lines.map(|figure| format!("{figure:.1}")).join("\t");
        let _ = writeln!(text, "{feed}\t{figures}");
    }
    text
}

/// The table: of which compiler, and the figures.
fn read() -> Result<(String, Vec<Counted>), String> {
    let text = std::fs::read_to_string(root().join(TABLE)).map_err(|e| format!("{TABLE}: {e}"))?;
    parsed(&text)
}

fn parsed(text: &str) -> Result<(String, Vec<Counted>), String> {
    let compiler = text.lines().find_map(|line| line.strip_prefix(COMPILER));
    let compiler = compiler.ok_or_else(|| format!("{TABLE} does not name the compiler"))?;
    let lines = text.lines().enumerate();
    let rows = lines.filter(|(_, line)| !line.starts_with('#') && *line != COLUMNS);
    let all = rows.map(|(at, line)| {
        let row = line.split_once('\t').and_then(|(feed, figures)| {
            let figures = figures.split('\t').map(|n| n.parse().ok());
            let figures: Option<Vec<f64>> = figures.collect();
            Some(Counted {
                feed: feed.to_owned(),
                lines: figures?.try_into().ok()?,
            })
        });
        row.ok_or_else(|| format!("{TABLE}:{}: '{line}' is not a feed and four numbers", at + 1))
    });
    Ok((compiler.to_owned(), all.collect::<Result<_, _>>()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(feed: &str, lines: [f64; 4]) -> Counted {
        Counted {
            feed: feed.into(),
            lines,
        }
    }

    #[test]
    fn the_table_is_read_as_it_was_written() {
        let all = [
            counted("cqs", [164.7, 151.2, 12.3, 1.0]),
            counted("moex", [324.2, 149.6, 13.0, 4.0]),
        ];
        let text = written("rustc 1.95.0", &all);
        let (compiler, read) = parsed(&text).expect("a table");
        assert_eq!((compiler.as_str(), read.as_slice()), ("rustc 1.95.0", &all[..]));
        let line = text.lines().count() + 1;
        let expected = format!("docs/results/cold.tsv:{line}: 'cqs\t1\t2' is not a feed and four numbers");
        assert_eq!(parsed(&(text + "cqs\t1\t2\n")).err(), Some(expected));
    }

    #[test]
    fn misses_are_read_though_zeros_at_the_end_are_left_out() {
        let events = "events: Ir Dr Dw I1mr D1mr D1mw ILmr DLmr DLmw\n";
        let all = "totals: 9 8 7 6 5 4 3 2 1\n";
        assert_eq!(misses(&format!("{events}{all}")), Some([3, 3]));
        assert_eq!(misses(&format!("{events}totals: 9 8 7 6 5 4 3\n")), Some([3, 0]));
        // Nothing was collected: the benchmark has no such function.
        assert_eq!(misses(&format!("{events}totals: 0\n")), None);
        assert_eq!(misses("totals: 9 8 7\n"), None);
    }

    #[test]
    fn a_figure_far_from_the_table_is_a_finding_in_either_direction() {
        let table = [counted("xdp", [60.0, 150.0, 5.0, 2.0])];
        for (lines, is_good) in [
            ([62.9, 157.0, 6.0, 1.0], true),
            ([60.0, 150.0, 6.1, 2.0], false),
            ([60.0, 150.0, 3.9, 2.0], false),
            ([60.0, 150.0, 5.0, 3.1], false),
            ([60.0, 158.0, 5.0, 2.0], false),
        ] {
            assert_eq!(judged(&counted("xdp", lines), &table).1, is_good, "{lines:?}");
        }
        assert!(!judged(&counted("new", [0.0; 4]), &table).1);
    }

    #[test]
    fn words_are_options_or_feeds() {
        let expected = Plan {
            only: vec!["cqs"],
            writes: false,
        };
        assert_eq!(plan(&["cqs"]), Ok(expected));
        for bad in [&["--write", "cqs"][..], &["--rain"]] {
            assert!(plan(bad).is_err(), "{bad:?}");
        }
    }
}
