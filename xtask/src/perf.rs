//! `cargo xtask perf`: whether the paths became slower, by ratio to an older build in the same minutes.
//!
//! Times on a shared machine move by tens of percent from hour to hour. So two builds of the programs take
//! turns: the one of these sources and the one of a commit that the table names. Each turn gives a ratio, and
//! the ratios of all turns an interval; what is compared with the table is that.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use crate::command::{self, Findings};
use crate::run::{cargo, must, root, said, target_dir};

const HELP: &str = "\
Measures the paths of a packet, of books, of shared memory, of orders and of quotes in two builds, by turns: of these sources, and of
the commit that docs/results/perf.tsv names. Both are built as what is handed on is built, which takes half an hour once.

  cargo xtask perf                     all of it, 15 minutes after the building
  cargo xtask perf --minutes N         so many minutes; the interval of a figure of fewer than six turns is shown, and not judged
  cargo xtask perf --only TEXT         figures whose name contains it
  cargo xtask perf --against COMMIT    another commit instead of the table's: slower by more than 5 % than that is a finding
  cargo xtask perf --write             writes the table anew
  cargo xtask perf --list              the figures

A figure is time of these sources over time of the commit: 1 is as fast, 0.5 twice as fast. Its interval is from the least to the
greatest ratio of its turns but one at either end, which holds the median in 87 of 100 cases and more. A figure whose whole interval
is more than 5 % above the table's ratio is a regression, and the commits since the table was written are named. Run it where nothing
else runs. Exit code 1: something became slower. 2: it could not be measured.
";

/// Where the table lies.
const TABLE: &str = "docs/results/perf.tsv";

/// What a turn may become slower by before it is a finding.
const TOLERANCE: f64 = 1.05;

/// An interval of fewer turns is not judged.
const TURNS_MIN: usize = 6;

/// A program that measures, and how it is called.
struct Program {
    /// A package and the benchmark of it; no benchmark: the latency lab.
    package: &'static str,
    bench: Option<&'static str>,
    arguments: &'static [&'static str],
    figures: &'static [Figure],
}

/// A number that a program prints.
struct Figure {
    name: &'static str,
    /// How its line begins, and which of the lines that begin so.
    line: &'static str,
    nth: usize,
    /// Which of the line's numbers, the first being 0 and the last -1.
    column: isize,
}

/// A figure of the first line that begins so.
const fn figure(name: &'static str, line: &'static str, column: isize) -> Figure {
    figure_of(name, line, 0, column)
}

const fn figure_of(name: &'static str, line: &'static str, nth: usize, column: isize) -> Figure {
    Figure {
        name,
        line,
        nth,
        column,
    }
}

/// What is measured.
const PROGRAMS: &[Program] = &[
    Program {
        package: "tickwire-lab-app",
        bench: None,
        arguments: &["bench", "--messages", "300000", "--runs", "1"],
        figures: &[
            figure("packet to order, p50", "packet -> order, every packet (warm)", 1),
            figure("packet to order, p99", "packet -> order, every packet (warm)", 3),
            figure("packet to order, own strategy, p50", "the same (not stamped)", 1),
            figure("one message, p50", "any packet of 1 message", 1),
            figure("one message, p99", "any packet of 1 message", 3),
        ],
    },
    Program {
        package: "tickwire-lab-app",
        bench: None,
        arguments: &["bench", "--feed", "all", "--messages", "200000", "--runs", "1"],
        figures: &[
            figure("itch50 to events", "itch50", -5),
            figure("itch50 to books", "itch50", -3),
            figure("itch50 filtered", "itch50", -2),
            figure("pitch to events", "pitch", -5),
            figure("pitch to books", "pitch", -3),
            figure("xdp to books", "xdp", -3),
            figure("openbook to books", "openbook", -3),
            figure("cqs to books", "cqs", -3),
            figure("uqdf to books", "uqdf", -3),
            figure("mdp3 to books", "mdp3", -3),
            figure("moex to books", "moex", -3),
            figure_of("itch50 packet to order, p50", "itch50", 1, 1),
            figure_of("pitch packet to order, p50", "pitch", 1, 1),
            figure_of("mdp3 packet to order, p50", "mdp3", 1, 1),
            figure_of("moex packet to order, p50", "moex", 1, 1),
        ],
    },
    Program {
        package: "tickwire-lab-app",
        bench: None,
        arguments: &["bench", "--publish", "--messages", "200000", "--runs", "1"],
        figures: &[
            figure("itch50 one message to shared memory, p50", "itch50", -7),
            figure("itch50 one message to shared memory, p99", "itch50", -5),
            figure_of("itch50 to shared memory", "itch50", 1, -2),
            figure_of("itch50 to consolidated books", "itch50", 2, -2),
            figure_of("pitch to shared memory", "pitch", 1, -2),
            figure_of("mdp3 to shared memory", "mdp3", 1, -2),
            figure_of("moex to shared memory", "moex", 1, -2),
        ],
    },
    Program {
        package: "tickwire-book",
        bench: Some("itch_books"),
        arguments: &["--messages", "3000000", "--rounds", "1"],
        figures: &[
            figure("books by price, one by one", "aggregated, one by one ", 1),
            figure("books by price, packets of 32", "aggregated, packets of 32", 1),
            figure("books by order, one by one", "by order, one by one", 1),
            figure("books by order, packets of 32", "by order, packets of 32", 1),
        ],
    },
    Program {
        package: "tickwire-fix",
        bench: Some("codec"),
        arguments: &[],
        figures: &[
            figure("order in FIX", "NewOrderSingle out, general encoder", 0),
            figure(
                "order in FIX, prepared",
                "encode NewOrderSingle, template, ms time",
                0,
            ),
            figure("report in FIX", "ExecutionReport in, checksum, 16 fields", 0),
            figure(
                "report in FIX, validated",
                "ExecutionReport in, validated, 16 fields",
                0,
            ),
            figure(
                "market data in FIX",
                "MarketDataIncrementalRefresh in, 4 entries",
                0,
            ),
            figure(
                "report in FIX through the session",
                "ExecutionReport through the session",
                0,
            ),
        ],
    },
    Program {
        package: "tickwire-shm",
        bench: Some("publish_and_read"),
        arguments: &["--rounds", "200"],
        figures: &[
            figure(
                "publish a level",
                "publish book: a level behind the best changed",
                1,
            ),
            figure("publish a book", "publish book: rebuilt", 1),
            figure("event into the ring", "publish event to ring", 1),
            figure("read a book", "read book of 10 levels, 64 in turn", 1),
        ],
    },
    Program {
        package: "tickwire-exchange",
        bench: Some("exchange"),
        arguments: &[],
        figures: &[
            figure("requests matched", "requests matched", 1),
            figure(
                "requests matched and published",
                "requests matched, published and packed",
                1,
            ),
        ],
    },
];

/// What to do.
#[derive(Debug, PartialEq)]
struct Plan<'a> {
    against: Option<&'a str>,
    minutes: u64,
    only: &'a str,
    writes: bool,
    lists: bool,
}

/// The command.
pub(crate) fn run(words: &[&str]) -> ExitCode {
    command::run("perf", HELP, words, plan, work)
}

fn plan<'a>(words: &[&'a str]) -> Result<Plan<'a>, String> {
    let mut plan = Plan {
        against: None,
        minutes: 15,
        only: "",
        writes: false,
        lists: false,
    };
    let mut words = words.iter();
    while let Some(&word) = words.next() {
        let mut value = || {
            words
                .next()
                .copied()
                .ok_or_else(|| format!("{word} wants a value"))
        };
        match word {
            "--against" => plan.against = Some(value()?),
            "--only" => plan.only = value()?,
            "--minutes" => {
                let text = value()?;
                plan.minutes = text
                    .parse()
                    .map_err(|_| format!("'{text}' is no number of minutes"))?;
            }
            "--write" => plan.writes = true,
            "--list" => plan.lists = true,
            unknown => return Err(format!("'{unknown}' is no option")),
        }
    }
    if plan.writes && !plan.only.is_empty() {
        return Err("the table is written as a whole".into());
    }
    Ok(plan)
}

/// The ratios of a figure's turns.
type Ratios = BTreeMap<&'static str, Vec<f64>>;

fn work(plan: Plan<'_>) -> Result<Findings, String> {
    let is_chosen = |figure: &Figure| figure.name.contains(plan.only);
    let programs = PROGRAMS
        .iter()
        .filter(|program| program.figures.iter().any(is_chosen));
    let programs: Vec<&Program> = programs.collect();
    let figures = || programs.iter().flat_map(|program| program.figures);
    if plan.lists {
        figures().for_each(|figure| println!("{}", figure.name));
        return Ok(Findings::default());
    }
    if programs.is_empty() {
        return Err(format!("no figure '{}'; `--list` names them", plan.only));
    }
    let table = match std::fs::read_to_string(root().join(TABLE)) {
        Ok(text) => Some(Table::of(&text)?),
        Err(_) => None,
    };
    let against = match (plan.against, &table) {
        (Some(commit), _) => commit,
        (None, Some(table)) => &table.against,
        (None, None) => return Err(format!("there is no {TABLE}: name a commit with --against")),
    };
    let base = commit(against)?;
    let sides = [
        built(&older(&base)?, &programs)?,
        built(&Sources::own(), &programs)?,
    ];
    let ratios = measured(&programs, &sides, Duration::from_secs(60 * plan.minutes))?;
    let kept = table.as_ref().filter(|_| plan.against.is_none() && !plan.writes);
    let mut findings = Findings::default();
    println!("time of these sources over that of {base}, by turns:");
    for figure in figures().filter(|figure| is_chosen(figure)) {
        if let Some(turns) = ratios.get(figure.name) {
            let (line, is_good) = judged(figure.name, turns, kept);
            println!("{} {line}", if is_good { "ok    " } else { "SLOWER" });
            findings.good += usize::from(is_good);
            findings.bad += usize::from(!is_good);
        }
    }
    if plan.writes {
        let text = written(&base, &commit("HEAD")?, &ratios);
        std::fs::write(root().join(TABLE), text).map_err(|e| format!("{TABLE}: {e}"))?;
        println!("written: {TABLE}");
    }
    if findings.bad > 0 {
        let since = kept.map_or(base.as_str(), |table| table.of.as_str());
        println!("what became slower did so in {since}..{}", commit("HEAD")?);
    }
    Ok(findings.sum_up())
}

/// Sources, and where what is built of them goes.
struct Sources {
    folder: PathBuf,
    target: PathBuf,
}

impl Sources {
    fn own() -> Sources {
        Sources {
            folder: root().to_owned(),
            target: target_dir(),
        }
    }
}

/// The full name of a commit.
fn commit(name: &str) -> Result<String, String> {
    let mut git = Command::new("git");
    git.args([
        "rev-parse",
        "--verify",
        "--short=12",
        &format!("{name}^{{commit}}"),
    ]);
    said(git.current_dir(root())).map(|(text, _)| text.trim().to_owned())
}

/// The sources of a commit, in a folder of their own.
fn older(commit: &str) -> Result<Sources, String> {
    let place = target_dir().join("perf").join(commit);
    let folder = place.join("sources");
    let quiet = |git: &mut Command| must(git.stdout(Stdio::null()));
    if !folder.join(".git").exists() {
        let _ = std::fs::remove_dir_all(&folder);
        quiet(
            Command::new("git")
                .args(["clone", "--quiet", "--no-checkout"])
                .arg(root())
                .arg(&folder),
        )?;
    }
    // Whatever somebody has done there.
    quiet(
        Command::new("git")
            .args(["checkout", "--quiet", "--force", commit])
            .current_dir(&folder),
    )?;
    Ok(Sources {
        target: place.join("target"),
        folder,
    })
}

/// Builds the programs; where they are, in their order.
fn built(sources: &Sources, programs: &[&Program]) -> Result<Vec<PathBuf>, String> {
    let mut done: BTreeMap<(&str, Option<&str>), PathBuf> = BTreeMap::new();
    for program in programs {
        let key = (program.package, program.bench);
        if done.contains_key(&key) {
            continue;
        }
        let mut build = cargo();
        match program.bench {
            None => build.args(["build", "--profile", "dist", "-p", program.package]),
            Some(bench) => build.args(["bench", "--no-run", "-p", program.package, "--bench", bench]),
        };
        build
            .arg("--locked")
            .env("CARGO_TARGET_DIR", &sources.target)
            .current_dir(&sources.folder);
        done.insert(key, command::built(&mut build)?);
    }
    let place = |program: &&Program| done[&(program.package, program.bench)].clone();
    Ok(programs.iter().map(place).collect())
}

/// Ratios of turns until the time is over, three of each program at least.
fn measured(programs: &[&Program], sides: &[Vec<PathBuf>; 2], time: Duration) -> Result<Ratios, String> {
    let (begin, mut ratios) = (Instant::now(), Ratios::new());
    for turn in 0.. {
        if turn >= 3 && begin.elapsed() >= time {
            break;
        }
        for (at, program) in programs.iter().enumerate() {
            // Who is first takes turns, too.
            let first = turn % 2;
            let mut printed = [String::new(), String::new()];
            for side in [first, 1 - first] {
                printed[side] = output(&sides[side][at], program)?;
            }
            for figure in program.figures {
                let [base, own] = [&printed[0], &printed[1]].map(|text| number(text, figure));
                let own = own.ok_or_else(|| {
                    format!(
                        "{}: no line '{}' in what these sources print",
                        figure.name, figure.line
                    )
                })?;
                match base {
                    Some(base) => ratios.entry(figure.name).or_default().push(own / base),
                    None if turn == 0 => println!("       {}: the older build has none", figure.name),
                    None => {}
                }
            }
        }
        eprintln!("turn {} after {} s", turn + 1, begin.elapsed().as_secs());
    }
    Ok(ratios)
}

/// What a program prints.
fn output(program: &Path, of: &Program) -> Result<String, String> {
    let mut command = Command::new(program);
    command.args(of.arguments).current_dir(root());
    if of.bench.is_some() {
        // As `cargo bench` calls it.
        command.arg("--bench");
    }
    said(&mut command).map(|(text, _)| text)
}

/// A figure in what was printed, nanoseconds where there is a unit.
fn number(text: &str, figure: &Figure) -> Option<f64> {
    let lines = text.lines().filter_map(|line| {
        let rest = line.trim_start().strip_prefix(figure.line)?;
        rest.starts_with([' ', ':', ',', '(']).then_some(rest)
    });
    let rest = lines.into_iter().nth(figure.nth)?;
    let all: Vec<f64> = numbers(rest).collect();
    let column = match usize::try_from(figure.column) {
        Ok(column) => column,
        Err(_) => all.len().checked_add_signed(figure.column)?,
    };
    all.get(column).copied().filter(|value| *value > 0.0)
}

/// The numbers of a line, words of it left out, nanoseconds where there is a unit.
fn numbers(line: &str) -> impl Iterator<Item = f64> {
    let words: Vec<&str> = line.split_whitespace().collect();
    (0..words.len()).filter_map(move |at| {
        let value: f64 = words[at].trim_end_matches([',', ';']).parse().ok()?;
        let unit = words
            .get(at + 1)
            .map_or("", |word| word.trim_end_matches([',', ';']));
        let scale = [("µs", 1e3), ("ms", 1e6), ("s", 1e9)];
        let scale = scale.iter().find(|(name, _)| *name == unit);
        Some(value * scale.map_or(1.0, |(_, scale)| *scale))
    })
}

/// Least, median and greatest of the ratios, one at either end left out where there are enough.
fn interval(ratios: &[f64]) -> [f64; 3] {
    let mut sorted = ratios.to_vec();
    sorted.sort_by(f64::total_cmp);
    let out = usize::from(sorted.len() > TURNS_MIN);
    let middle = sorted.len() / 2;
    let median = match sorted.len() % 2 {
        0 => (sorted[middle - 1] + sorted[middle]) / 2.0,
        _ => sorted[middle],
    };
    [sorted[out], median, sorted[sorted.len() - 1 - out]]
}

/// A line on a figure, and whether it is as fast as the table says.
fn judged(name: &str, turns: &[f64], table: Option<&Table>) -> (String, bool) {
    let [low, median, high] = interval(turns);
    let kept = table.and_then(|table| table.ratios.get(name));
    let wanted = kept.copied().unwrap_or(1.0);
    let shown = kept.map_or(String::new(), |kept| format!(", {kept:.3} in the table"));
    let is_judged = turns.len() >= TURNS_MIN;
    let line = format!(
        "{name:<40} {median:.3} ({low:.3} to {high:.3}, {} turns{shown}){}",
        turns.len(),
        if is_judged { "" } else { ": too few turns to judge" }
    );
    (line, !is_judged || low <= wanted * TOLERANCE)
}

/// What the table says.
#[derive(Debug, PartialEq)]
struct Table {
    /// The commit that is measured against.
    against: String,
    /// The commit that the ratios are of.
    of: String,
    ratios: BTreeMap<String, f64>,
}

impl Table {
    fn of(text: &str) -> Result<Table, String> {
        let named = |name: &str| {
            let lines = text.lines().filter_map(|line| line.strip_prefix("# "));
            let mut values = lines.filter_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
            values
                .next()
                .map(str::to_owned)
                .ok_or_else(|| format!("{TABLE}: there is no line '# {name}: …'"))
        };
        let rows = text.lines().filter(|line| !line.starts_with('#')).skip(1);
        let ratios = rows.map(|row| {
            let mut columns = row.split('\t');
            let (name, ratio) = (columns.next().unwrap_or_default(), columns.next());
            let ratio = ratio.and_then(|ratio| ratio.parse().ok());
            Ok((
                name.to_owned(),
                ratio.ok_or_else(|| format!("{TABLE}: '{row}' has no ratio"))?,
            ))
        });
        Ok(Table {
            against: named("against")?,
            of: named("of")?,
            ratios: ratios.collect::<Result<_, String>>()?,
        })
    }
}

/// The table.
fn written(against: &str, of: &str, ratios: &Ratios) -> String {
    let mut text = format!(
        "# Time of a build over that of an older one, by turns, written by `cargo xtask perf --write`; a tab between columns.\n\
         # against: {against}\n# of: {of}\nfigure\tratio\tlow\thigh\tturns\n"
    );
    for (name, turns) in ratios {
        let [low, median, high] = interval(turns);
        let _ = writeln!(text, "{name}\t{median:.3}\t{low:.3}\t{high:.3}\t{}", turns.len());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{
        PROGRAMS, Ratios, Table, figure, figure_of, interval, judged, number, numbers, plan, written,
    };

    #[test]
    fn a_figure_is_found_in_what_is_printed() {
        let text = "  feed   messages  -> books\n  itch50   501008   18.2\n\n  itch50-x  5 ns\n  itch50  150 ns  1.92 µs  2 ms\n\
                    the same + all fields typed: p50 120.5 ns, p90 130.0 ns\n";
        assert_eq!(number(text, &figure("", "itch50", 1)), Some(18.2));
        assert_eq!(number(text, &figure_of("", "itch50", 1, 1)), Some(1_920.0));
        assert_eq!(number(text, &figure_of("", "itch50", 1, 2)), Some(2e6));
        assert_eq!(
            number(text, &figure("", "the same + all fields typed", 0)),
            Some(120.5)
        );
        assert_eq!(number(text, &figure("", "itch50", -1)), Some(18.2));
        assert_eq!(number(text, &figure("", "itch50", -3)), None);
        assert_eq!(number(text, &figure("", "mdp3", 0)), None);
        assert_eq!(numbers("p50 5, 6").collect::<Vec<_>>(), [5.0, 6.0]);
    }

    #[test]
    fn slower_is_what_is_slower_in_nearly_every_turn() {
        assert_eq!(interval(&[1.0, 3.0, 2.0]), [1.0, 2.0, 3.0]);
        assert_eq!(interval(&[9.0, 1.0, 2.0, 3.0, 4.0, 5.0, 0.0]), [1.0, 3.0, 5.0]);
        let is_good = |turns: &[f64]| judged("", turns, None).1;
        assert!(!is_good(&[1.1; 6]));
        assert!(is_good(&[1.1, 1.1, 1.1, 1.1, 1.1, 1.0]));
        assert!(is_good(&[1.1; 5]), "too few");
        let ratios = Ratios::from([("a", vec![0.5; 6]), ("b", vec![1.2; 6])]);
        let table = Table::of(&written("abc", "def", &ratios)).unwrap();
        assert_eq!((table.against.as_str(), table.of.as_str()), ("abc", "def"));
        assert!(!judged("a", &[0.6; 6], Some(&table)).1, "than the table says");
        assert!(judged("b", &[1.25; 6], Some(&table)).1);
    }

    #[test]
    fn words_are_a_plan() {
        assert_eq!(plan(&["--minutes", "5"]).unwrap().minutes, 5);
        assert!(
            plan(&["--minutes", "x"]).is_err() && plan(&["--what"]).is_err() && plan(&["--only"]).is_err()
        );
        assert!(plan(&["--write", "--only", "itch"]).is_err());
        let mut names: Vec<&str> = PROGRAMS
            .iter()
            .flat_map(|program| program.figures)
            .map(|figure| figure.name)
            .collect();
        let all = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all);
    }
}
