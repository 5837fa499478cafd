//! One build in which every mutant has a switch, and the tests run once for each: a build takes longer than
//! the tests do, and two thousand builds take a night.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{BufRead, BufReader};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::switch::{self, Change, Genre, Switched};
use super::{Target, cargo_mutants};
use crate::run::{by_hand, root, target_dir};

/// A mutant of cargo-mutants.
#[derive(Clone, Debug)]
pub(super) struct Mutant {
    /// As cargo-mutants writes it, with line and column.
    pub(super) name: String,
    /// As docs/mutants.md names it: without line and column, which move; of several that are called the same
    /// in a file, the one, counted from the top.
    pub(super) known_as: String,
    file: String,
    change: Change,
}

/// What became of one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Fate {
    /// By the tests of this program.
    Noticed(String),
    /// The tests of this program did not end.
    Endless(String),
    /// The compiler refuses it.
    NotBuilt,
    Alive,
}

/// Mutants of a target with what became of them.
pub(super) type Fates = Vec<(Mutant, Fate)>;

/// A program of tests and how long it takes without a mutant.
struct Program {
    name: String,
    file: PathBuf,
    folder: PathBuf,
    takes: Duration,
}

/// A test of a mutant may take this many times as long as without one, and so much more.
const TIMES: u32 = 10;
const MORE: Duration = Duration::from_secs(20);
/// Kilobytes of address space of a test: a mutant that takes memory for ever has been noticed.
const MEMORY_KB: &str = "6000000";

/// The mutants of a target, numbered from 0 on.
pub(super) fn mutants_of(target: &Target) -> Result<Vec<Mutant>, String> {
    let output = cargo_mutants(target)
        .args(["--list", "--json"])
        .output()
        .map_err(|e| format!("cargo mutants: {e}"))?;
    let listed: Vec<Value> =
        serde_json::from_slice(&output.stdout).map_err(|e| format!("cargo mutants --list --json: {e}"))?;
    let mut sources: BTreeMap<String, String> = BTreeMap::new();
    let mut mutants = Vec::new();
    for (mutant, id) in listed.iter().zip(0..) {
        let word = |key: &str| mutant[key].as_str().unwrap_or_default().to_owned();
        let file = word("file");
        if !sources.contains_key(&file) {
            let text = fs::read_to_string(root().join(&file)).map_err(|e| format!("{file}: {e}"))?;
            sources.insert(file.clone(), text);
        }
        let at = |end: &str| {
            let number = |key: &str| mutant["span"][end][key].as_u64().unwrap_or_default() as usize;
            offset(&sources[&file], number("line"), number("column"))
        };
        mutants.push(Mutant {
            name: word("name"),
            known_as: String::new(),
            change: Change {
                id,
                genre: Genre::named(&word("genre"))
                    .ok_or_else(|| format!("a mutant of an unknown kind: {}", word("genre")))?,
                span: at("start")..at("end"),
                replacement: word("replacement"),
            },
            file,
        });
    }
    name_apart(&mut mutants);
    Ok(mutants)
}

fn name_apart(mutants: &mut [Mutant]) {
    let base = |mutant: &Mutant| named(&mutant.name).unwrap_or_else(|| mutant.name.clone());
    let mut all: BTreeMap<String, usize> = BTreeMap::new();
    for mutant in mutants.iter() {
        *all.entry(base(mutant)).or_default() += 1;
    }
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    for mutant in mutants {
        let name = base(mutant);
        let nth = seen.entry(name.clone()).or_default();
        *nth += 1;
        mutant.known_as = match all[&name] {
            1 => name,
            _ => format!("{name} #{nth}"),
        };
    }
}

/// The line of cargo-mutants without line and column.
fn named(line: &str) -> Option<String> {
    let (place, what) = line.trim().split_once(": ")?;
    let file = place.split(':').next()?;
    Some(format!("{file}: {what}"))
}

/// Line and column as bytes from the start; both count from 1, columns in characters.
fn offset(text: &str, line: usize, column: usize) -> usize {
    let start: usize = text
        .split_inclusive('\n')
        .take(line.saturating_sub(1))
        .map(str::len)
        .sum();
    let before = text[start..].chars().take(column.saturating_sub(1));
    start + before.map(char::len_utf8).sum::<usize>()
}

/// Builds the target with every mutant and runs its tests for each.
pub(super) fn race(target: &Target, mutants: Vec<Mutant>) -> Result<Fates, String> {
    let tree = target_dir().join("mutants/tree");
    copy(&tree)?;
    let (mut not_built, mut alone) = (BTreeSet::new(), BTreeSet::new());
    build(target, &tree, &mutants, &mut not_built, &mut alone)?;
    let programs = tried(built(target, &tree)??)?;
    let next = AtomicUsize::new(0);
    let fates: Mutex<Vec<Option<Fate>>> = Mutex::new(vec![None; mutants.len()]);
    let began = Instant::now();
    let jobs = cores();
    std::thread::scope(|scope| {
        for _ in 0..jobs {
            scope.spawn(|| {
                loop {
                    let nth = next.fetch_add(1, Ordering::Relaxed);
                    let Some(mutant) = mutants.get(nth) else { return };
                    let fate = match mutant.change.id {
                        id if not_built.contains(&id) => Some(Fate::NotBuilt),
                        id if alone.contains(&id) => None,
                        id => Some(fate(&programs, id)),
                    };
                    if fate == Some(Fate::Alive) {
                        println!("  lives: {}", mutant.name);
                    }
                    if nth % 100 == 99 {
                        println!(
                            "  {} of {} in {:.0} s",
                            nth + 1,
                            mutants.len(),
                            began.elapsed().as_secs_f64()
                        );
                    }
                    if let Ok(mut fates) = fates.lock() {
                        fates[nth] = fate;
                    }
                }
            });
        }
    });
    let fates = fates.into_inner().map_err(|e| e.to_string())?;
    let mut done = Vec::new();
    for (mutant, fate) in mutants.into_iter().zip(fates) {
        let fate = match fate {
            Some(fate) => fate,
            None => alone_in_a_build(target, &tree, &mutant, &programs)?,
        };
        done.push((mutant, fate));
    }
    Ok(done)
}

/// How many tests run at once; two where `nproc` does not say.
fn cores() -> usize {
    let output = by_hand("nproc").output();
    let said = output.map(|output| output.stdout).unwrap_or_default();
    let cores = String::from_utf8_lossy(&said).trim().parse();
    cores.unwrap_or(2).max(1)
}

/// One without a switch, with no other in the file.
fn alone_in_a_build(
    target: &Target,
    tree: &Path,
    mutant: &Mutant,
    known: &[Program],
) -> Result<Fate, String> {
    let (
        file,
        Change {
            span, replacement, ..
        },
    ) = (&mutant.file, &mutant.change);
    let source = fs::read_to_string(root().join(file)).map_err(|e| format!("{file}: {e}"))?;
    let (before, after) = (&source[..span.start], &source[span.end..]);
    let there = tree.join(file);
    let switched = fs::read(&there).map_err(|e| format!("{}: {e}", there.display()))?;
    write_if_new(&there, format!("{before}{replacement}{after}").as_bytes())?;
    let fate = match built(target, tree)? {
        Ok(mut programs) => {
            for program in &mut programs {
                let is_same =
                    |known: &&Program| (&known.name, &known.folder) == (&program.name, &program.folder);
                program.takes = known
                    .iter()
                    .find(is_same)
                    .map_or(program.takes, |known| known.takes);
            }
            fate(&programs, u32::MAX)
        }
        Err(_) => Fate::NotBuilt,
    };
    println!("  built alone, {fate:?}: {}", mutant.name);
    write_if_new(&there, &switched)?;
    Ok(fate)
}

/// The sources as they are, in a folder of their own; what has not changed keeps its time.
fn copy(tree: &Path) -> Result<(), String> {
    let output = by_hand("git")
        .current_dir(root())
        .args(["ls-files", "-co", "--exclude-standard"])
        .output()
        .map_err(|e| format!("git: {e}"))?;
    let listed = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut kept = BTreeSet::new();
    for name in listed.lines() {
        let Ok(bytes) = fs::read(root().join(name)) else {
            continue;
        };
        write_if_new(&tree.join(name), &bytes)?;
        kept.insert(tree.join(name));
    }
    prune(tree, &kept)
}

/// Takes away what is in no source any more: Cargo would find tests in it.
fn prune(folder: &Path, kept: &BTreeSet<PathBuf>) -> Result<(), String> {
    let why = |e: std::io::Error| format!("{}: {e}", folder.display());
    for entry in fs::read_dir(folder).map_err(why)? {
        let path = entry.map_err(why)?.path();
        if path.is_dir() {
            prune(&path, kept)?;
        } else if !kept.contains(&path) {
            fs::remove_file(&path).map_err(why)?;
        }
    }
    Ok(())
}

fn write_if_new(file: &Path, bytes: &[u8]) -> Result<(), String> {
    if fs::read(file).is_ok_and(|before| before == bytes) {
        return Ok(());
    }
    if let Some(folder) = file.parent() {
        fs::create_dir_all(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    }
    fs::write(file, bytes).map_err(|e| format!("{}: {e}", file.display()))
}

/// Everything is built by a Cargo of this kind.
fn cargo_in(tree: &Path) -> Command {
    let mut command = by_hand("cargo");
    command
        .current_dir(tree)
        .env("CARGO_TARGET_DIR", target_dir().join("mutants/build"))
        .env("RUSTFLAGS", "--cap-lints allow")
        .stdin(Stdio::null());
    command
}

/// Writes the files with their switches and has them compiled, without the mutants that the compiler refuses.
fn build(
    target: &Target,
    tree: &Path,
    mutants: &[Mutant],
    not_built: &mut BTreeSet<u32>,
    alone: &mut BTreeSet<u32>,
) -> Result<(), String> {
    let crate_root = root_of(target);
    let text = fs::read_to_string(root().join(&crate_root)).map_err(|e| format!("{crate_root}: {e}"))?;
    let files: BTreeSet<&str> = mutants.iter().map(|mutant| mutant.file.as_str()).collect();
    for round in 1.. {
        let mut written: BTreeMap<&str, Switched> = BTreeMap::new();
        for &file in &files {
            let source = fs::read_to_string(root().join(file)).map_err(|e| format!("{file}: {e}"))?;
            let changes: Vec<Change> = mutants
                .iter()
                .filter(|mutant| mutant.file == file && !not_built.contains(&mutant.change.id))
                .map(|mutant| mutant.change.clone())
                .collect();
            let switched = switch::switch(&source, &changes).map_err(|e| format!("{file}:{e}"))?;
            alone.extend(&switched.without);
            write_if_new(&tree.join(file), switched.text.as_bytes())?;
            written.insert(file, switched);
        }
        write_if_new(
            &tree.join(&crate_root),
            format!("{text}{}", switch::SWITCH).as_bytes(),
        )?;
        let output = cargo_in(tree)
            .args([
                "check",
                "--locked",
                "--message-format",
                "json",
                "--package",
                target.package,
            ])
            .output()
            .map_err(|e| format!("cargo check: {e}"))?;
        if output.status.success() {
            return Ok(());
        }
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let refused = refused(&said, &written);
        println!("  round {round}: {} mutants cannot be built", refused.len());
        if refused.is_empty() {
            let errors = rendered(&said).join("\n");
            return Err(format!(
                "{} with its mutants does not compile:\n{errors}",
                target.package
            ));
        }
        not_built.extend(refused);
    }
    Ok(())
}

fn root_of(target: &Target) -> String {
    let folder = target.files[0].split("/src/").next().unwrap_or_default();
    format!("{folder}/src/lib.rs")
}

/// What the compiler said, as errors.
fn errors(said: &str) -> impl Iterator<Item = Value> {
    said.lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .filter(|line| line["reason"] == "compiler-message" && line["message"]["level"] == "error")
        .map(|mut line| line["message"].take())
}

fn rendered(said: &str) -> Vec<String> {
    let words = errors(said).map(|error| error["rendered"].as_str().unwrap_or_default().to_owned());
    words.take(5).collect()
}

/// The mutants in whose lines the compiler found errors; of several marks of an error the first one counts,
/// and what it says beside them where they name none.
fn refused(said: &str, written: &BTreeMap<&str, Switched>) -> BTreeSet<u32> {
    let mut refused = BTreeSet::new();
    for error in errors(said) {
        let mut marks: Vec<&Value> = Vec::new();
        gather(&error, &mut marks);
        marks.sort_by_key(|mark| mark["is_primary"] != true);
        let hit = marks.iter().find_map(|mark| {
            let (_, switched) = written.iter().find(|(file, _)| {
                mark["file_name"]
                    .as_str()
                    .is_some_and(|name| name.ends_with(*file))
            })?;
            let line = |key: &str| mark[key].as_u64().unwrap_or_default() as usize;
            let marked: Range<usize> = line("line_start")..line("line_end") + 1;
            let mut hits = switched.lines.iter();
            hits.find(|(lines, _)| marked.start >= lines.start && marked.end <= lines.end)
                .map(|(_, id)| *id)
        });
        refused.extend(hit);
    }
    refused
}

fn gather<'a>(message: &'a Value, marks: &mut Vec<&'a Value>) {
    marks.extend(message["spans"].as_array().into_iter().flatten());
    for child in message["children"].as_array().into_iter().flatten() {
        gather(child, marks);
    }
}

/// The programs of tests, or what the compiler refuses; nothing is known of how long they take.
fn built(target: &Target, tree: &Path) -> Result<Result<Vec<Program>, String>, String> {
    let mut packages = vec![target.package];
    packages.extend(target.tests_of.iter().filter(|name| **name != target.package));
    let mut build = cargo_in(tree);
    build.args(["test", "--locked", "--no-run", "--message-format", "json"]);
    build.args(packages.iter().flat_map(|name| ["--package", name]));
    let output = build
        .args(target.tests)
        .stderr(Stdio::null())
        .output()
        .map_err(|e| format!("cargo test: {e}"))?;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    if !output.status.success() {
        let refused = rendered(&said).join("\n");
        return match refused.is_empty() {
            true => Err(format!("cargo test --no-run: {}", output.status)),
            false => Ok(Err(refused)),
        };
    }
    let mut programs = Vec::new();
    for line in said
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
    {
        let (Some(file), Some(manifest)) = (line["executable"].as_str(), line["manifest_path"].as_str())
        else {
            continue;
        };
        programs.push(Program {
            name: line["target"]["name"].as_str().unwrap_or_default().to_owned(),
            file: file.into(),
            folder: Path::new(manifest)
                .parent()
                .map(Path::to_owned)
                .unwrap_or_default(),
            takes: Duration::from_secs(600),
        });
    }
    match programs.is_empty() {
        true => Err(format!("{} has no tests", target.package)),
        false => Ok(Ok(programs)),
    }
}

/// The same, the quickest first: run once without a mutant, where none of them may fail.
fn tried(mut programs: Vec<Program>) -> Result<Vec<Program>, String> {
    for program in &mut programs {
        let began = Instant::now();
        match run(program, u32::MAX) {
            Ran::Passed => program.takes = began.elapsed(),
            _ => return Err(format!("{} fails without a mutant", program.name)),
        }
        println!("  {:<24} {:.1} s", program.name, program.takes.as_secs_f64());
    }
    programs.sort_by_key(|program| program.takes);
    Ok(programs)
}

fn fate(programs: &[Program], id: u32) -> Fate {
    for program in programs {
        match run(program, id) {
            Ran::Passed => {}
            Ran::Failed => return Fate::Noticed(program.name.clone()),
            Ran::TooLong => return Fate::Endless(program.name.clone()),
        }
    }
    Fate::Alive
}

#[derive(PartialEq, Eq)]
enum Ran {
    Passed,
    Failed,
    TooLong,
}

/// Runs a program of tests up to the first test that fails.
fn run(program: &Program, id: u32) -> Ran {
    let limited = "ulimit -v \"$0\"; exec \"$@\"";
    let child = Command::new("sh")
        .args(["-c", limited, MEMORY_KB])
        .arg(&program.file)
        .current_dir(&program.folder)
        .env("TICKWIRE_MUTANT", id.to_string())
        .env("TICKWIRE_SHARED", target_dir().join("mutants/nothing-recorded"))
        .env("CARGO_MANIFEST_DIR", &program.folder)
        .env("RUST_BACKTRACE", "0")
        .env("RUST_TEST_THREADS", "1")
        .env_remove("CI")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn();
    let Ok(mut child) = child else {
        return Ran::Failed;
    };
    let until = Instant::now() + program.takes * TIMES + MORE;
    let (told, telling) = std::sync::mpsc::channel();
    if let Some(out) = child.stdout.take() {
        // It ends with the child, whose end closes the pipe.
        std::thread::spawn(move || {
            let failed = BufReader::new(out)
                .split(b'\n')
                .map_while(Result::ok)
                .any(|line| line.ends_with(b"FAILED"));
            let _ = told.send(failed);
        });
    }
    match telling.recv_timeout(until.saturating_duration_since(Instant::now())) {
        Ok(false) => match child.wait() {
            Ok(status) if status.success() => Ran::Passed,
            _ => Ran::Failed,
        },
        Ok(true) => ended(&mut child, Ran::Failed),
        Err(_) => ended(&mut child, Ran::TooLong),
    }
}

fn ended(child: &mut Child, how: Ran) -> Ran {
    let _ = child.kill();
    let _ = child.wait();
    how
}

fn file_of(target: &Target) -> PathBuf {
    target_dir().join("mutants").join(format!("{}.tsv", target.name))
}

/// What became of mutants in runs before: their rows, by what they are known as.
pub(super) type Rows = BTreeMap<String, String>;

/// The rows of the runs before, of mutants that there still are; none where there was no run.
pub(super) fn read(target: &Target, mutants: &[Mutant]) -> Rows {
    let text = fs::read_to_string(file_of(target)).unwrap_or_default();
    let known: BTreeSet<&str> = mutants.iter().map(|mutant| mutant.known_as.as_str()).collect();
    let named = text
        .lines()
        .filter_map(|row| Some((row.split('\t').nth(2)?, row)));
    let rows = named.filter(|(name, _)| known.contains(name));
    rows.map(|(name, row)| (name.to_owned(), row.to_owned()))
        .collect()
}

/// Whether one lived in the run before.
pub(super) fn lived(rows: &Rows, mutant: &Mutant) -> bool {
    rows.get(&mutant.known_as)
        .is_some_and(|row| row.starts_with("alive\t"))
}

/// Writes what became of every one, for whoever looks one up: fate, the program that noticed, what it is
/// known as, its line.
pub(super) fn write(target: &Target, mut rows: Rows, fates: &Fates) -> Result<PathBuf, String> {
    for (mutant, fate) in fates {
        let (fate, by) = match fate {
            Fate::Noticed(by) => ("noticed", by.as_str()),
            Fate::Endless(by) => ("endless", by.as_str()),
            Fate::NotBuilt => ("not built", ""),
            Fate::Alive => ("alive", ""),
        };
        let row = format!("{fate}\t{by}\t{}\t{}", mutant.known_as, mutant.name);
        rows.insert(mutant.known_as.clone(), row);
    }
    let file = file_of(target);
    let text: String = rows.values().map(|row| format!("{row}\n")).collect();
    write_if_new(&file, text.as_bytes())?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mutant_is_named_without_its_line_and_apart_from_others_of_its_name() {
        let mutant = |name: &str| Mutant {
            name: name.into(),
            known_as: String::new(),
            file: String::new(),
            change: Change {
                id: 0,
                genre: Genre::Expression,
                span: 0..0,
                replacement: String::new(),
            },
        };
        let mut mutants = [
            mutant("crates/book/src/books.rs:216:42: replace > with >= in Books::new"),
            mutant("crates/book/src/books.rs:217:5: replace > with < in Books::new"),
            mutant("crates/book/src/books.rs:218:9: replace > with >= in Books::new"),
        ];
        name_apart(&mut mutants);
        let names = mutants.map(|mutant| mutant.known_as.replace("crates/book/src/books.rs: ", ""));
        let wanted = [
            "replace > with >= in Books::new #1",
            "replace > with < in Books::new",
            "replace > with >= in Books::new #2",
        ];
        assert_eq!(names, wanted);
    }

    #[test]
    fn columns_count_characters() {
        let text = "eins\n  zwölf < drei\n";
        let at = offset(text, 2, 9);
        assert_eq!(&text[at..at + 1], "<");
        assert_eq!(offset(text, 1, 1), 0);
    }

    #[test]
    fn an_error_names_the_mutant_in_whose_lines_it_is() {
        let switched = Switched {
            lines: vec![(3..4, 7), (6..8, 9)],
            ..Switched::default()
        };
        let written = BTreeMap::from([("crates/book/src/books.rs", switched)]);
        let message = |spans: &str, children: &str| {
            format!(
                r#"{{"reason":"compiler-message","message":{{"level":"error","spans":[{spans}],"children":[{children}]}}}}"#
            )
        };
        let mark = |line: usize, primary: bool| {
            format!(
                r#"{{"file_name":"crates/book/src/books.rs","line_start":{line},"line_end":{line},"is_primary":{primary}}}"#
            )
        };
        let said = [
            message(&format!("{},{}", mark(5, true), mark(3, false)), ""),
            message("", &format!(r#"{{"spans":[{}]}}"#, mark(7, false))),
            message(&mark(5, true), ""),
        ];
        assert_eq!(refused(&said.join("\n"), &written), BTreeSet::from([7, 9]));
    }
}
