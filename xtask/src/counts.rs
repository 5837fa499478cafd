//! `cargo xtask counts`: how many instructions the hot paths take, against a table that is kept.
//!
//! Times on a shared machine move by tens of percent from run to run; the number of instructions does not. A
//! benchmark of `tickwire-node` does each path for half its input and for all of it, under Callgrind: what
//! the second run has more, by the units it did more, is what the path costs, without start-up. It is built
//! as what is handed on is built (profile `bench`, which is `dist` with line numbers).

use crate::command::{self, Findings};
use crate::run::{Context, Outcome, cargo, must, root, said, target_dir, words};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Instant;

const HELP: &str = "\
Counts the instructions of the hot paths under Callgrind (Debian: valgrind) and compares them with docs/results/counts.tsv.

  cargo xtask counts [PATH…]      all paths, or those named
  cargo xtask counts --write      writes the table anew
  cargo xtask counts --list       the paths

A path whose count is more than 3 % from the table's fails, in either direction: what became better is written down, so that it
stays. The counts belong to one version of the compiler, which the table names. Exit code 1: a path differs. 2: it cannot be counted.
";

/// How far a count may be from the table's, percent.
const TOLERANCE: f64 = 3.0;

/// Where the table lies.
const TABLE: &str = "docs/results/counts.tsv";

/// What `check` does when it cannot be done here, and why.
pub(crate) enum Cannot {
    /// The machine lacks something.
    Here(String),
    /// It failed.
    Failed(String),
}

/// A path's count, instructions a unit.
struct Counted {
    path: String,
    instructions: f64,
}

/// What to do.
#[derive(Debug, PartialEq)]
struct Plan<'a> {
    only: Vec<&'a str>,
    writes: bool,
    lists: bool,
}

/// The command.
pub(crate) fn run(words: &[&str]) -> ExitCode {
    command::run("counts", HELP, words, plan, work)
}

fn plan<'a>(words: &[&'a str]) -> Result<Plan<'a>, String> {
    let (options, only): (Vec<&str>, Vec<&str>) = words.iter().partition(|word| word.starts_with('-'));
    if let Some(unknown) = options.iter().find(|word| !["--write", "--list"].contains(word)) {
        return Err(format!("'{unknown}' is no option"));
    }
    let plan = Plan {
        only,
        writes: options.contains(&"--write"),
        lists: options.contains(&"--list"),
    };
    if plan.writes && !plan.only.is_empty() {
        return Err("the table is written as a whole".into());
    }
    Ok(plan)
}

fn work(plan: Plan<'_>) -> Result<Findings, String> {
    let program = build("counts", "", &mut must)?;
    let paths = listed(&program, "list")?;
    if plan.lists {
        print!("{}", paths.join("\n") + "\n");
        return Ok(Findings::default());
    }
    known(&plan.only, &paths)?;
    valgrind()?;
    let table = if plan.writes { Vec::new() } else { read()?.1 };
    let (mut findings, mut counts) = (Findings::default(), Vec::new());
    for path in wanted(&plan.only, &paths) {
        let began = Instant::now();
        let counted = count(&program, path)?;
        let (line, is_good) = match plan.writes {
            true => (format!("{path}: {:.0} instructions", counted.instructions), true),
            false => judged(&counted, &table),
        };
        findings.count(&line, began, is_good);
        counts.push(counted);
    }
    if plan.writes {
        let text = written(&compiler()?, &counts);
        std::fs::write(root().join(TABLE), text).map_err(|e| format!("{TABLE}: {e}"))?;
        println!("written: {TABLE}");
    }
    Ok(findings.sum_up())
}

/// The step of `check`.
pub(crate) fn check(ctx: &Context) -> Outcome {
    outcome(compared(ctx), "cargo xtask counts")
}

/// What a step says of paths that were compared: a line each, and whether it is as the table has it.
pub(crate) fn outcome(compared: Result<Vec<(String, bool)>, Cannot>, again: &str) -> Outcome {
    let again = again.to_owned();
    match compared {
        Ok(lines) => {
            let bad: Vec<String> = lines
                .iter()
                .filter(|(_, good)| !good)
                .map(|(line, _)| line.clone())
                .collect();
            Outcome {
                passed: lines.len() - bad.len(),
                failed: bad.len(),
                notes: bad,
                again,
                ..Outcome::default()
            }
        }
        Err(Cannot::Here(why)) => Outcome {
            skipped: vec![why],
            ..Outcome::default()
        },
        Err(Cannot::Failed(why)) => Outcome {
            failed: 1,
            notes: vec![why],
            again,
            ..Outcome::default()
        },
    }
}

fn compared(ctx: &Context) -> Result<Vec<(String, bool)>, Cannot> {
    let (of, table) = read().map_err(Cannot::Failed)?;
    ready(ctx, &of)?;
    let program = build("counts", "", &mut |command| in_step(ctx, command)).map_err(Cannot::Failed)?;
    let all = listed(&program, "list").and_then(|paths| {
        let counts = paths.iter().map(|path| count(&program, path));
        counts.collect::<Result<Vec<_>, _>>()
    });
    let counts = all.map_err(Cannot::Failed)?;
    Ok(counts.iter().map(|counted| judged(counted, &table)).collect())
}

/// Runs a command as a step does; its output if it fails.
pub(crate) fn in_step(ctx: &Context, command: &mut Command) -> Result<(), String> {
    let finished = ctx.execute(command);
    finished.success.then_some(()).ok_or(finished.output)
}

/// Whether figures of a table that was made with this compiler can be compared here.
pub(crate) fn ready(ctx: &Context, of: &str) -> Result<(), Cannot> {
    let here = compiler().map_err(Cannot::Failed)?;
    if of != here {
        let why = format!("instructions are counted with {of}, and this is {here}");
        return Err(Cannot::Here(why));
    }
    // A machine that tests and nothing else may be given what it lacks.
    if valgrind().is_err() && std::env::var_os("CI").is_some_and(|value| !value.is_empty()) {
        let mut install = Command::new("apt-get");
        install.args([
            "install",
            "--yes",
            "--quiet",
            "--no-install-recommends",
            "valgrind",
        ]);
        ctx.execute(&mut install);
    }
    valgrind().map_err(Cannot::Here)
}

/// Builds the benchmark in a folder of its own, with such flags of the compiler; where it is.
pub(crate) fn build(
    folder: &str,
    flags: &str,
    execute: &mut dyn FnMut(&mut Command) -> Result<(), String>,
) -> Result<PathBuf, String> {
    let folder = target_dir().join(folder);
    let mut command = cargo();
    command
        .args([
            "bench",
            "--locked",
            "--no-run",
            "-p",
            "tickwire-node",
            "--bench",
            "hot_paths",
        ])
        .env("CARGO_TARGET_DIR", &folder)
        .current_dir(root());
    if !flags.is_empty() {
        command.env("RUSTFLAGS", flags);
    }
    execute(&mut command)?;
    newest(&folder.join("release/deps")).ok_or_else(|| format!("no benchmark after {}", words(&command)))
}

/// The benchmark that was linked last.
fn newest(folder: &Path) -> Option<PathBuf> {
    let files = std::fs::read_dir(folder).ok()?.filter_map(Result::ok);
    let benches = files.filter(|file| {
        let name = file.file_name();
        let name = name.to_string_lossy();
        name.starts_with("hot_paths-") && !name.contains('.')
    });
    benches
        .max_by_key(|file| file.metadata().and_then(|data| data.modified()).ok())
        .map(|file| file.path())
}

/// What the benchmark can do: its paths (`list`), or its feeds (`feeds`).
pub(crate) fn listed(program: &Path, what: &str) -> Result<Vec<String>, String> {
    let said = said(Command::new(program).arg(what))?;
    Ok(said.0.lines().map(str::to_owned).collect())
}

/// Refuses a name that is none of those that there are.
pub(crate) fn known(only: &[&str], all: &[String]) -> Result<(), String> {
    let unknown = only.iter().find(|name| !all.iter().any(|known| known == *name));
    match unknown {
        Some(unknown) => Err(format!("no '{unknown}' is counted, but {}", all.join(", "))),
        None => Ok(()),
    }
}

/// Those of them that were named, or all.
pub(crate) fn wanted<'a>(only: &[&str], all: &'a [String]) -> impl Iterator<Item = &'a str> {
    let names = all.iter().map(String::as_str);
    names.filter(|name| only.is_empty() || only.contains(name))
}

/// Instructions a unit of a path.
fn count(program: &Path, path: &str) -> Result<Counted, String> {
    // Two at a time: each is one thread.
    let [half, whole] = std::thread::scope(|scope| {
        ["half", "whole"]
            .map(|share| scope.spawn(move || once(program, path, share)))
            .map(|thread| thread.join().unwrap_or_else(|_| Err("a thread panicked".into())))
    });
    let ((units, instructions), (units_whole, instructions_whole)) = (half?, whole?);
    if units_whole <= units {
        return Err(format!("{path}: {units_whole} units are not more than {units}"));
    }
    Ok(Counted {
        path: path.to_owned(),
        instructions: (instructions_whole as f64 - instructions as f64) / (units_whole - units) as f64,
    })
}

/// Units and instructions of one run.
fn once(program: &Path, path: &str, share: &str) -> Result<(u64, u64), String> {
    let mut command = Command::new("valgrind");
    command
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(program)
        .args([path, share]);
    let (out, error) = said(&mut command)?;
    let units = out
        .trim()
        .parse()
        .map_err(|_| format!("{path}: no number of units: {out}"))?;
    let instructions = error
        .lines()
        .find_map(|line| line.split_once("Collected :")?.1.trim().parse().ok())
        .ok_or_else(|| format!("{path}: Callgrind did not say what it collected: {error}"))?;
    Ok((units, instructions))
}

pub(crate) fn valgrind() -> Result<(), String> {
    said(Command::new("valgrind").arg("--version"))
        .map(|_| ())
        .map_err(|_| "instructions are not counted without valgrind (apt-get install valgrind)".into())
}

/// The compiler's version.
pub(crate) fn compiler() -> Result<String, String> {
    let said = said(Command::new("rustc").arg("--version"))?;
    let words: Vec<&str> = said.0.split(' ').take(2).collect();
    Ok(words.join(" ").trim().to_owned())
}

/// A line on a path and whether it is as the table has it.
fn judged(counted: &Counted, table: &[Counted]) -> (String, bool) {
    let Counted { path, instructions } = counted;
    let Some(kept) = table.iter().find(|kept| kept.path == *path) else {
        let line = format!("{path}: {instructions:.0} instructions, and no line in {TABLE}");
        return (line, false);
    };
    let percent = 100.0 * (instructions / kept.instructions - 1.0);
    let is_good = percent.abs() <= TOLERANCE;
    let what = match is_good {
        true => String::new(),
        false if percent > 0.0 => {
            format!(", more than {TOLERANCE} %: what changed the path since the table?")
        }
        false => format!(", better by more than {TOLERANCE} %: `cargo xtask counts --write` keeps it"),
    };
    let before = kept.instructions;
    let line =
        format!("{path}: {instructions:.0} instructions, {before:.0} in the table ({percent:+.1} %){what}");
    (line, is_good)
}

pub(crate) const COMPILER: &str = "# compiler: ";

/// The table's text.
fn written(compiler: &str, counts: &[Counted]) -> String {
    let mut text = format!(
        "# Instructions of the hot paths, by Callgrind, written by `cargo xtask counts --write`; a tab between columns.\n\
         # Unit: a message of the feed from its datagram to books (half the datagrams of a day of 20 instruments),\n\
         # filtered: to nobody, shared: to books in shared memory, super: to consolidated books there;\n\
         # an order of the built-in rule from the event to its bytes, and its fill; a mass quote of 15 options by a\n\
         # strategy, and by checks and prepared message alone; an execution report from bytes to fields;\n\
         # an order out and its report back through both sessions.\n\
         {COMPILER}{compiler}\npath\tinstructions\n"
    );
    for Counted { path, instructions } in counts {
        let _ = writeln!(text, "{path}\t{instructions:.0}");
    }
    text
}

/// The table: of which compiler, and the counts.
fn read() -> Result<(String, Vec<Counted>), String> {
    let text = std::fs::read_to_string(root().join(TABLE)).map_err(|e| format!("{TABLE}: {e}"))?;
    parsed(&text)
}

fn parsed(text: &str) -> Result<(String, Vec<Counted>), String> {
    let compiler = text.lines().find_map(|line| line.strip_prefix(COMPILER));
    let compiler = compiler.ok_or_else(|| format!("{TABLE} does not name the compiler"))?;
    let lines = text.lines().enumerate();
    let rows = lines.filter(|(_, line)| !line.starts_with('#') && *line != "path\tinstructions");
    let counts = rows.map(|(at, line)| {
        let row = line.split_once('\t').and_then(|(path, number)| {
            Some(Counted {
                path: path.to_owned(),
                instructions: number.parse().ok().filter(|n: &f64| *n > 0.0)?,
            })
        });
        row.ok_or_else(|| format!("{TABLE}:{}: '{line}' is not a path, a tab and a number", at + 1))
    });
    Ok((compiler.to_owned(), counts.collect::<Result<_, _>>()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(path: &str, instructions: f64) -> Counted {
        Counted {
            path: path.into(),
            instructions,
        }
    }

    #[test]
    fn the_table_is_read_as_it_was_written() {
        let text = written(
            "rustc 1.95.0",
            &[counted("itch50", 250.4), counted("rule", 2_000.0)],
        );
        let (compiler, counts) = parsed(&text).expect("a table");
        assert_eq!(compiler, "rustc 1.95.0");
        let rows: Vec<(&str, f64)> = counts.iter().map(|c| (c.path.as_str(), c.instructions)).collect();
        assert_eq!(rows, [("itch50", 250.0), ("rule", 2_000.0)]);
        let line = text.lines().count() + 1;
        let expected =
            format!("docs/results/counts.tsv:{line}: 'rule 2000' is not a path, a tab and a number");
        assert_eq!(parsed(&(text + "rule 2000\n")).err(), Some(expected));
    }

    #[test]
    fn a_count_far_from_the_table_is_a_finding_in_either_direction() {
        let table = [counted("rule", 2_000.0)];
        for (now, is_good) in [
            (1_941.0, true),
            (2_059.0, true),
            (1_930.0, false),
            (2_070.0, false),
        ] {
            assert_eq!(judged(&counted("rule", now), &table).1, is_good, "{now}");
        }
        assert!(!judged(&counted("new", 1.0), &table).1);
    }

    #[test]
    fn a_name_that_is_not_counted_is_refused_and_no_name_is_all() {
        let all = ["rule", "quote"].map(str::to_owned);
        let refused = known(&["quote", "rain"], &all).expect_err("no such path");
        assert_eq!(refused, "no 'rain' is counted, but rule, quote");
        for (only, of_them) in [(&["quote"][..], &["quote"][..]), (&[], &["rule", "quote"])] {
            assert_eq!(known(only, &all), Ok(()));
            assert_eq!(wanted(only, &all).collect::<Vec<_>>(), of_them);
        }
    }

    #[test]
    fn words_are_options_or_paths() {
        let expected = Plan {
            only: vec!["rule"],
            writes: false,
            lists: false,
        };
        assert_eq!(plan(&["rule"]), Ok(expected));
        assert!(plan(&["--write", "rule"]).is_err());
        assert!(plan(&["--rain"]).is_err());
    }
}
