//! `cargo xtask book-peers`: our order books beside itch-order-book's, CppTrader's and nautilus_model's, in
//! one run on the same messages (`peers/books`).

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use crate::command::{self, Findings, number};
use crate::run::{cargo, must, root, said, target_dir};
use crate::source::files;

const HELP: &str = "\
Builds the order books of others from the same ITCH 5.0 messages as ours, in one run: charles-cooper/itch-order-book and chronoxor/CppTrader,
in C++, from folders that are named, and nautilus_model 0.57.0 of crates.io. Ours and theirs take turns, pinned to one core, with large pages;
each turn of a peer begins with ours. Everybody's final books are compared with the generator's: best prices, their quantities, and how many
levels each side has, of every symbol. Prints nanoseconds of processor time a message, and how many times ours that is.

  cargo xtask book-peers [--itch-order-book DIR] [--cpptrader DIR --cppcommon DIR] [--messages N] [--rounds N] [--core N]

  --itch-order-book DIR   a clone of https://github.com/charles-cooper/itch-order-book
  --cpptrader DIR         a clone of https://github.com/chronoxor/CppTrader, and
  --cppcommon DIR         one of https://github.com/chronoxor/CppCommon with https://github.com/fmtlib/fmt in its modules/fmt, where its `gil update`
                          puts it (the package libfmt-dev does, too); both are compiled from their sources, nothing has to be built in them
  --messages N            of the session (default 6000000)
  --rounds N              turns (default 5)
  --core N                where all of them run (default 1)

For instance, with clones beside this folder, which takes ten minutes and as long again for the building:

  cargo xtask book-peers --itch-order-book ../itch-order-book --cpptrader ../CppTrader --cppcommon ../CppCommon --rounds 7

A peer that is not there is not measured, and that is said. Needs g++, taskset, and the network once for nautilus_model. Not part of check.
Exit code 1: a contestant's final books are not the generator's. 2: it could not begin.
";

/// What the words ask for.
#[derive(Debug, PartialEq)]
struct Plan {
    itch_order_book: Option<PathBuf>,
    /// CppTrader, and CppCommon.
    cpptrader: Option<[PathBuf; 2]>,
    messages: u64,
    rounds: u64,
    core: u64,
}

/// Our kinds of books, as the benchmark calls them and as the table does; others are compared with the first.
const KINDS: [(&str, &str); 2] = [("aggregated", "by price"), ("by order", "by order")];
/// How messages come; others are compared with both.
const PACKETS: [&str; 2] = ["packets of 32", "one by one"];

/// CppTrader's programs of `performance`: their files, what the driver calls them, what the table does, and a
/// fault of theirs that is known.
const MANAGERS: [(&str, &str, &str, Option<&str>); 3] = [
    ("market_manager", "MANAGER", "CppTrader, MarketManager", None),
    (
        "market_manager_optimized",
        "OPTIMIZED",
        "CppTrader, optimised",
        Some("it keeps no price of a new order"),
    ),
    (
        "market_manager_optimized_aggressive",
        "AGGRESSIVE",
        "CppTrader, optimised aggressively",
        None,
    ),
];

/// nautilus_model's kinds of books.
const NAUTILUS: [(&str, &str); 2] = [
    ("orders", "nautilus_model, L3_MBO"),
    ("levels", "nautilus_model, L2_MBP"),
];

/// The command.
pub(crate) fn run(words: &[&str]) -> ExitCode {
    command::run("book-peers", HELP, words, plan, compare)
}

fn plan(words: &[&str]) -> Result<Plan, String> {
    let (mut itch_order_book, mut trader, mut common) = (None, None, None);
    let (mut messages, mut rounds, mut core) = (6_000_000, 5, 1);
    let mut words = words.iter();
    while let Some(&word) = words.next() {
        let mut folder = || -> Result<Option<PathBuf>, String> {
            let value = words.next().ok_or(format!("{word} needs a folder behind it"))?;
            let folder = std::path::absolute(value).map_err(|e| format!("{word} {value}: {e}"))?;
            let is_there = folder.is_dir().then_some(folder);
            Ok(Some(
                is_there.ok_or(format!("{word} {value}: there is no such folder"))?,
            ))
        };
        match word {
            "--itch-order-book" => itch_order_book = folder()?,
            "--cpptrader" => trader = folder()?,
            "--cppcommon" => common = folder()?,
            "--messages" => messages = number(word, &mut words)?,
            "--rounds" => rounds = number(word, &mut words)?,
            "--core" => core = number(word, &mut words)?,
            other => return Err(format!("'{other}' is no option")),
        }
    }
    let cpptrader = match (trader, common) {
        (Some(trader), Some(common)) => Some([trader, common]),
        (None, None) => None,
        (Some(_), None) => return Err("--cpptrader is compiled with --cppcommon DIR beside it".into()),
        (None, Some(_)) => return Err("--cppcommon is for --cpptrader DIR, which is not there".into()),
    };
    if messages == 0 || rounds == 0 {
        return Err("nothing is measured in no messages or no rounds".into());
    }
    Ok(Plan {
        itch_order_book,
        cpptrader,
        messages,
        rounds,
        core,
    })
}

/// A row of the table: ours, or a program of a peer.
#[derive(Default)]
struct Row {
    name: String,
    /// The words behind session and books; of ours none.
    words: Vec<String>,
    program: PathBuf,
    /// Why its books are known to be wrong.
    fault: Option<&'static str>,
    /// Nanoseconds a message, turn by turn.
    times: Vec<f64>,
    /// The same over ours of the same turn, in packets and one by one.
    ratios: [Vec<f64>; 2],
    /// In how many turns its books were not the expected ones.
    wrong: usize,
}

impl Row {
    fn note(&mut self, ns: f64, ours: [f64; 2]) {
        self.times.push(ns);
        for (ratios, ours) in self.ratios.iter_mut().zip(ours) {
            ratios.push(ns / ours);
        }
    }
}

/// What everybody is given.
struct Session {
    bench: PathBuf,
    messages: u64,
    core: u64,
    bytes: PathBuf,
    /// What the generator says of the final books.
    expected: String,
}

impl Session {
    fn write(bench: PathBuf, plan: &Plan, folder: &Path) -> Result<Session, String> {
        let [bytes, books] = ["session.itch", "expected.csv"].map(|name| folder.join(name));
        let mut session = Session {
            bench,
            messages: plan.messages,
            core: plan.core,
            bytes,
            expected: String::new(),
        };
        let mut write = session.ours();
        write
            .arg("--write")
            .arg(&session.bytes)
            .arg("--books")
            .arg(&books);
        said(&mut write)?;
        session.expected = read(&books)?;
        Ok(session)
    }

    /// A program on the core where all run, with large pages as our allocator has them.
    fn pinned(&self, program: &Path) -> Command {
        let mut command = Command::new("taskset");
        command
            .env("GLIBC_TUNABLES", "glibc.malloc.hugetlb=1")
            .args(["-c", &self.core.to_string()])
            .arg(program);
        command
    }

    fn ours(&self) -> Command {
        let mut command = self.pinned(&self.bench);
        command.args(["--bench", "--messages", &self.messages.to_string()]);
        command
    }

    /// Nanoseconds of books of ours, in the order of [`PACKETS`]. The benchmark compares its books itself.
    fn turn_of_ours(&self, kind: &str) -> Result<[f64; 2], String> {
        let mut bench = self.ours();
        bench.args(["--rounds", "1", "--only", &format!("{kind}, ")]);
        let (text, _) = said(&mut bench)?;
        let of = |packets: &str| {
            let name = format!("{kind}, {packets}");
            let mut lines = text.lines().filter_map(row);
            let found = lines.find(|(row, _)| *row == name);
            let missing = || format!("no line '{name}' in what our benchmark prints");
            found.map(|(_, ns)| ns).ok_or_else(missing)
        };
        Ok([of(PACKETS[0])?, of(PACKETS[1])?])
    }

    /// Nanoseconds of a peer, and whether its final books are right.
    fn turn_of(&self, row: &Row, books: &Path) -> Result<(f64, bool), String> {
        // Of an earlier run.
        let _ = std::fs::remove_file(books);
        let mut command = self.pinned(&row.program);
        command.arg(&self.bytes).arg(books).args(&row.words);
        let (text, _) = said(&mut command)?;
        let ns = text.trim().parse();
        let ns = ns.map_err(|_| format!("{} said '{}' of its time", row.name, text.trim()))?;
        Ok((ns, read(books)? == self.expected))
    }
}

fn read(path: &Path) -> Result<String, String> {
    std::fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))
}

/// A line of our benchmark: its name, and the least of its times (`NAME MIN MEDIAN MAX BOOKS`).
fn row(line: &str) -> Option<(String, f64)> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let (name, figures) = words.split_at_checked(words.len().checked_sub(4)?)?;
    Some((name.join(" "), figures[0].parse().ok()?))
}

fn compare(plan: Plan) -> Result<Findings, String> {
    let folder = target_dir().join("book-peers");
    std::fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let (mut programs, mut missing) = (Vec::new(), Vec::new());
    match &plan.itch_order_book {
        Some(peer) => programs.push(itch_order_book(peer, &folder)?),
        None => missing.push("itch-order-book: --itch-order-book DIR names a clone of it".to_owned()),
    }
    match &plan.cpptrader {
        Some([trader, common]) => programs.extend(cpptrader(trader, common, &folder)?),
        None => missing.push("CppTrader: --cpptrader DIR and --cppcommon DIR name clones of it".to_owned()),
    }
    match nautilus() {
        Ok(rows) => programs.extend(rows),
        Err(why) => missing.push(format!("nautilus_model: {why}")),
    }
    let bench = command::built(cargo().args([
        "bench",
        "--no-run",
        "--locked",
        "--package",
        "tickwire-book",
        "--bench",
        "itch_books",
    ]))?;
    say_missing(&missing);
    let session = Session::write(bench, &plan, &folder)?;

    let of_ours = |(_, kind): (&str, &str)| {
        PACKETS.map(|packets| Row {
            name: format!("Tickwire, {kind}, {packets}"),
            ..Row::default()
        })
    };
    let mut ours = KINDS.map(of_ours);
    if programs.is_empty() {
        return Err("there is no peer to compare with".into());
    }
    let books = folder.join("books.csv");
    for round in 1..=plan.rounds {
        for (at, program) in programs.iter_mut().enumerate() {
            // Those that a peer is compared with come right before it; the others once a round.
            let others = match at {
                0 => Some(session.turn_of_ours(KINDS[1].0)?),
                _ => None,
            };
            let beside = session.turn_of_ours(KINDS[0].0)?;
            for (rows, times) in ours.iter_mut().zip([Some(beside), others]) {
                for (row, ns) in rows.iter_mut().zip(times.into_iter().flatten()) {
                    row.note(ns, beside);
                }
            }
            for row in program {
                let (ns, is_right) = session.turn_of(row, &books)?;
                row.note(ns, beside);
                row.wrong += usize::from(!is_right);
            }
        }
        eprintln!("round {round} of {}", plan.rounds);
    }
    let rows: Vec<&Row> = ours.iter().flatten().chain(programs.iter().flatten()).collect();
    print!("\n{}", table(&rows));
    say_missing(&missing);
    let bad = rows
        .iter()
        .filter(|row| row.wrong > 0 && row.fault.is_none())
        .count();
    Ok(Findings {
        good: rows.len() - bad,
        bad,
    })
}

fn say_missing(missing: &[String]) {
    for peer in missing {
        println!("*** NOT MEASURED: {peer}");
    }
}

/// The table: times, and how many times ours by price they are: of the least ones, and the median of the
/// turns'.
fn table(rows: &[&Row]) -> String {
    let mut text = format!(
        "{:<48} {:>8} {:>8} {:>8}   {:>15}   {:>15}   final books\n{:<48} {:>8} {:>8} {:>8}   {:>15}   {:>15}\n",
        "ns a message",
        "min",
        "median",
        "max",
        "of packets",
        "of one by one",
        "",
        "",
        "",
        "",
        "mins, turns",
        "mins, turns"
    );
    let least = |row: &Row| row.times.iter().copied().fold(f64::INFINITY, f64::min);
    for row in rows {
        let [packets, single] = [0, 1].map(|at| {
            let of_mins = rows.get(at).map_or(f64::NAN, |ours| least(row) / least(ours));
            format!("{of_mins:.2}, {:.2}", median(&row.ratios[at]))
        });
        let books = match (row.wrong, row.fault) {
            (0, _) => "equal".to_owned(),
            (_, Some(fault)) => format!("WRONG: {fault}"),
            (wrong, None) => format!("WRONG in {wrong} of {} turns", row.times.len()),
        };
        let most = row.times.iter().copied().fold(0.0, f64::max);
        let _ = writeln!(
            text,
            "{:<48} {:>8.1} {:>8.1} {most:>8.1}   {packets:>15}   {single:>15}   {books}",
            row.name,
            least(row),
            median(&row.times)
        );
    }
    text
}

/// The middle one, or the mean of the two in the middle.
fn median(values: &[f64]) -> f64 {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    match values.len() {
        0 => f64::NAN,
        n if n % 2 == 1 => values[n / 2],
        n => f64::midpoint(values[n / 2 - 1], values[n / 2]),
    }
}

/// A program of a peer twice: as it is, and with both sides' best prices read after each message.
fn both(name: &str, program: &Path, words: &[&str], fault: Option<&'static str>) -> [Row; 2] {
    [false, true].map(|reads_best| {
        let mut words: Vec<String> = words.iter().map(|&word| word.into()).collect();
        let mut name = name.to_owned();
        if reads_best {
            words.push("best".into());
            name += ", best prices read";
        }
        Row {
            name,
            words,
            program: program.into(),
            fault,
            ..Row::default()
        }
    })
}

fn compiler() -> Command {
    let mut command = Command::new("g++");
    command.args(["-O3", "-march=native", "-w", "-I"]);
    command.arg(root().join("peers/books"));
    command
}

/// By its build script's options, its assertions among them.
fn itch_order_book(peer: &Path, folder: &Path) -> Result<[Row; 2], String> {
    let program = folder.join("itch-order-book");
    let mut command = compiler();
    command.arg("-std=c++17").arg("-I").arg(peer);
    command.arg(root().join("peers/books/itch_order_book.cpp"));
    must(command.arg("-o").arg(&program))?;
    Ok(both("itch-order-book", &program, &[], None))
}

fn cpptrader(trader: &Path, common: &Path, folder: &Path) -> Result<Vec<[Row; 2]>, String> {
    let mut rows = Vec::new();
    let include = trader.join("include");
    // Absolute, so that it is not looked for in our own sources.
    let sources = files(&trader.join("source/trader").to_string_lossy(), "cpp");
    for (file, kind, name, fault) in MANAGERS {
        let path = trader.join("performance").join(format!("{file}.cpp"));
        let text = read(&path)?;
        let text = above_main(&text, |header| include.join(header).exists())
            .ok_or(format!("{}: there is no main in it", path.display()))?;
        let above = folder.join(format!("{file}.h"));
        std::fs::write(&above, text).map_err(|e| format!("{}: {e}", above.display()))?;
        let program = folder.join(format!("cpptrader-performance-{file}"));
        let mut command = compiler();
        command.args(["-std=c++20", "-DNDEBUG"]);
        command.arg(format!("-D{kind}")).arg(format!("-DPEER=<{file}.h>"));
        let modules = ["include", "modules/fmt/include"].map(|folder| common.join(folder));
        for place in [folder, &include, &modules[0], &modules[1]] {
            command.arg("-I").arg(place);
        }
        command
            .arg(root().join("peers/books/cpptrader.cpp"))
            .args(&sources);
        must(command.arg("-o").arg(&program))?;
        rows.push(both(name, &program, &[], fault));
    }
    Ok(rows)
}

fn nautilus() -> Result<[[Row; 2]; 2], String> {
    let mut build = cargo();
    build.args(["build", "--release", "--locked", "--manifest-path"]);
    let program = command::built(build.arg(root().join("peers/books/Cargo.toml")))?;
    Ok(NAUTILUS.map(|(word, name)| both(name, &program, &[word], None)))
}

/// What stands above `main` in a program of CppTrader's, without headers that only its `main` needs (`has`:
/// it is one of CppTrader's own; those of the standard library have no ending), and with room for as many
/// orders as there are in the place of 300 million, which are ten gigabytes.
fn above_main(text: &str, has: impl Fn(&str) -> bool) -> Option<String> {
    let (above, _) = text.split_once("\nint main(")?;
    let is_wanted = |line: &&str| {
        let name = line.trim().strip_prefix("#include ");
        let name = name.map(|name| name.trim_matches(['"', '<', '>']));
        name.is_none_or(|name| !name.ends_with(".h") || has(name))
    };
    let kept: Vec<&str> = above.lines().filter(is_wanted).collect();
    Some(kept.join("\n").replace("300000000", "PEER_ORDERS") + "\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_say_which_peers_are_there() {
        let nobody = Plan {
            itch_order_book: None,
            cpptrader: None,
            messages: 6_000_000,
            rounds: 5,
            core: 1,
        };
        assert_eq!(plan(&[]), Ok(nobody));
        let here = root().join("peers").to_string_lossy().into_owned();
        let words = [
            "--itch-order-book",
            &here,
            "--cpptrader",
            &here,
            "--cppcommon",
            &here,
        ];
        let sizes = ["--messages", "9", "--rounds", "7", "--core", "0"];
        let folder = PathBuf::from(&here);
        let all = Plan {
            itch_order_book: Some(folder.clone()),
            cpptrader: Some([folder.clone(), folder]),
            messages: 9,
            rounds: 7,
            core: 0,
        };
        assert_eq!(plan(&[words.as_slice(), &sizes].concat()), Ok(all));
    }

    #[test]
    fn words_that_are_wrong_are_said_with_what_is_missing() {
        let here = root().to_string_lossy().into_owned();
        let why = |words: &[&str]| plan(words).expect_err("the words are wrong");
        assert!(why(&["--cpptrader", &here]).contains("--cppcommon DIR"));
        assert!(why(&["--cppcommon", &here]).contains("--cpptrader DIR"));
        assert!(why(&["--itch-order-book", "no-such-folder"]).contains("no such folder"));
        assert!(why(&["--itch-order-book"]).contains("needs a folder"));
        assert!(why(&["--messages", "many"]).contains("'many' is no whole number"));
        assert!(why(&["--rounds", "0"]).contains("nothing is measured"));
        assert!(why(&["rain"]).contains("'rain' is no option"));
    }

    #[test]
    fn a_line_of_the_benchmark_is_read_with_its_whole_name() {
        let line = "aggregated, one by one, tracked      61.08    62.08    63.08   equal";
        assert_eq!(
            row(line),
            Some(("aggregated, one by one, tracked".to_owned(), 61.08))
        );
        assert_eq!(row("ns a message   min   median      max   books"), None);
        assert_eq!(row(""), None);
    }

    #[test]
    fn a_program_is_cut_above_its_main() {
        let text = "#include \"own/a.h\"\n#include \"other/b.h\"\n#include <Options.h>\n#include <vector>\nint x = 300000000;\nint main(int argc)\n{}\n";
        let above = above_main(text, |header| header == "own/a.h");
        assert_eq!(
            above.as_deref(),
            Some("#include \"own/a.h\"\n#include <vector>\nint x = PEER_ORDERS;\n")
        );
        assert_eq!(above_main("int x;\n", |_| true), None);
    }

    #[test]
    fn the_table_has_ratios_of_mins_and_of_turns_and_says_whose_books_are_wrong() {
        let of = |name: &str, turns: &[f64], wrong, fault| {
            let mut row = Row {
                name: name.into(),
                wrong,
                fault,
                ..Row::default()
            };
            turns.iter().for_each(|&ns| row.note(ns, [50.0, 100.0]));
            row
        };
        let rows = [
            of("ours", &[50.0, 50.0], 0, None),
            of("ours, single", &[100.0, 100.0], 0, None),
            of("peer", &[100.0, 300.0, 200.0], 0, None),
            of("other", &[100.0], 1, None),
            of("third", &[100.0], 1, Some("known")),
        ];
        let text = table(&rows.iter().collect::<Vec<_>>());
        let line = |name: &str| text.lines().find(|line| line.starts_with(name)).expect("a row");
        let words: Vec<&str> = line("peer").split_whitespace().collect();
        assert_eq!(
            words,
            [
                "peer", "100.0", "200.0", "300.0", "2.00,", "4.00", "1.00,", "2.00", "equal"
            ]
        );
        assert!(line("other").ends_with("WRONG in 1 of 1 turns"));
        assert!(line("third").ends_with("WRONG: known"));
    }
}
