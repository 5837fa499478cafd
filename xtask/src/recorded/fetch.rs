//! `cargo xtask fetch-data`: recorded data that is public, from repositories at pinned commits, every file by
//! its SHA-256.
//!
//! git brings the repositories, sha256sum checks the files. A file that is there already is checked and never
//! written over.

use super::folder;
use crate::run::{copy, target_dir};
use serde::Deserialize;
use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

const SOURCES: &str = include_str!("sources.toml");
const FILES: &str = include_str!("files.txt");

const HELP: &str = "\
Brings the recorded data that is public to ../shared, or to the folder that TICKWIRE_SHARED names.

  cargo xtask fetch-data             all of it: 600 files, 20 MB, out of ten repositories (their history is not fetched)
  cargo xtask fetch-data NAME...     these sources only
  cargo xtask fetch-data --list      the sources with commit, licence and number of files, and what is not fetched and why
  cargo xtask fetch-data --from DIR  from clones in DIR instead of the network: DIR/OWNER/NAME or DIR/OWNER/NAME.git
  cargo xtask fetch-data --to DIR    to another folder

It needs git and sha256sum. Read the licences before you use the data for more than tests: several sources state none.
";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Manifest {
    source: Vec<Source>,
    absent: Vec<Absent>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Source {
    name: String,
    repository: String,
    commit: String,
    licence: String,
    about: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Absent {
    path: String,
    why: String,
}

/// One file of a source.
struct Row<'a> {
    source: &'a str,
    sha256: &'a str,
    /// Where it goes, below the folder of recorded data.
    to: &'a str,
    /// Where it lies in the repository.
    from: &'a str,
}

/// The rows of `files.txt`: source, SHA-256, place here, place there.
fn rows(text: &str) -> Vec<Row<'_>> {
    text.lines()
        .filter_map(|line| {
            let mut cells = line.splitn(4, ' ');
            Some(Row {
                source: cells.next()?,
                sha256: cells.next()?,
                to: cells.next()?,
                from: cells.next()?,
            })
        })
        .collect()
}

/// `cargo xtask fetch-data …`.
pub(crate) fn run(args: &[&str]) -> ExitCode {
    let manifest: Manifest = toml::from_str(SOURCES).expect("a test reads it");
    let (mut from, mut to, mut wanted) = (None, folder(), Vec::new());
    let mut args = args.iter();
    while let Some(&arg) = args.next() {
        match (arg, args.as_slice().first()) {
            ("--help" | "-h", _) => {
                print!("{HELP}");
                return ExitCode::SUCCESS;
            }
            ("--list", _) => {
                print!("{}", listed(&manifest));
                return ExitCode::SUCCESS;
            }
            ("--from", Some(dir)) => from = Some(PathBuf::from(dir)),
            ("--to", Some(dir)) => to = PathBuf::from(dir),
            (name, _) if manifest.source.iter().any(|source| source.name == name) => {
                wanted.push(name);
                continue;
            }
            (other, _) => {
                eprintln!(
                    "xtask: fetch-data has no source or option '{other}'; `cargo xtask fetch-data --list` lists the sources"
                );
                return ExitCode::from(2);
            }
        }
        args.next();
    }
    let files = rows(FILES);
    let cache = target_dir().join("recorded-data");
    let mut failed = 0;
    let sources = manifest
        .source
        .iter()
        .filter(|source| wanted.is_empty() || wanted.contains(&&*source.name));
    for source in sources {
        let rows: Vec<&Row<'_>> = files.iter().filter(|row| row.source == source.name).collect();
        println!("== {}: {} ({})", source.name, source.about, source.licence);
        match bring(source, &rows, from.as_deref(), &cache, &to) {
            Ok(done) => println!("   {done}"),
            Err(why) => {
                eprintln!("   FAILED: {why}");
                failed += 1;
            }
        }
    }
    println!("recorded data: {}", to.display());
    println!("not fetched, `--list` says why: {}", names(&manifest.absent));
    if failed > 0 {
        eprintln!("{failed} sources failed; what has come stays");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

fn names(absent: &[Absent]) -> String {
    let paths: Vec<&str> = absent.iter().map(|a| a.path.as_str()).collect();
    paths.join(", ")
}

fn listed(manifest: &Manifest) -> String {
    let files = rows(FILES);
    let mut text = String::new();
    for source in &manifest.source {
        let count = files.iter().filter(|row| row.source == source.name).count();
        let _ = writeln!(
            text,
            "{}: {}\n  {} at {}\n  licence: {}; {count} files",
            source.name, source.about, source.repository, source.commit, source.licence
        );
    }
    let _ = writeln!(text, "\nNot fetched:");
    for absent in &manifest.absent {
        let _ = writeln!(text, "  {}: {}", absent.path, absent.why);
    }
    text
}

/// Brings a source's files that are not there yet, and checks all of them. What went well, in words.
fn bring(
    source: &Source,
    rows: &[&Row<'_>],
    from: Option<&Path>,
    cache: &Path,
    to: &Path,
) -> Result<String, String> {
    let missing: Vec<&&Row<'_>> = rows.iter().filter(|row| !to.join(row.to).exists()).collect();
    if !missing.is_empty() {
        let place = match from {
            Some(dir) => clone_in(dir, &source.repository)?,
            None => source.repository.clone(),
        };
        let paths: Vec<&str> = missing.iter().map(|row| row.from).collect();
        let tree = checked_out(&place, &source.commit, &paths, &cache.join(&source.name))?;
        // Wrong bytes never reach the folder: they are checked where they were checked out.
        let sums: Vec<(&str, &str)> = missing.iter().map(|row| (row.sha256, row.from)).collect();
        check(&sums, &tree)?;
        for row in &missing {
            copy(&tree.join(row.from), &to.join(row.to))?;
        }
    }
    let sums: Vec<(&str, &str)> = rows.iter().map(|row| (row.sha256, row.to)).collect();
    check(&sums, to).map_err(|why| format!("{why}; it is yours, so it stays: remove it to fetch it"))?;
    let (came, there) = (missing.len(), rows.len() - missing.len());
    Ok(format!(
        "{came} files came, {there} were there; every checksum is right"
    ))
}

/// The clone of a repository in a folder of clones.
fn clone_in(dir: &Path, repository: &str) -> Result<String, String> {
    let name = repository.trim_start_matches("https://github.com/");
    let places = [dir.join(name), dir.join(format!("{name}.git"))];
    let found = places.iter().find(|place| place.exists());
    let found = found.ok_or_else(|| format!("there is no clone {}", places[0].display()))?;
    let whole = fs::canonicalize(found).map_err(|error| format!("{}: {error}", found.display()))?;
    Ok(format!("file://{}", whole.display()))
}

/// These files of a commit, in a folder of their own: without history, and of the rest of the tree its names
/// only where the server can leave contents out.
fn checked_out(repository: &str, commit: &str, paths: &[&str], cache: &Path) -> Result<PathBuf, String> {
    let (git_dir, tree) = (cache.join("git"), cache.join("tree"));
    let _ = fs::remove_dir_all(cache);
    fs::create_dir_all(&tree).map_err(|error| format!("{}: {error}", tree.display()))?;
    let git = |args: &[&str]| {
        let mut command = Command::new("git");
        command
            .arg("--git-dir")
            .arg(&git_dir)
            .arg("--work-tree")
            .arg(&tree);
        // Nothing of the user's settings, and no questions.
        command
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_TERMINAL_PROMPT", "0");
        command.args(args);
        command
    };
    said(git(&["init", "--quiet"]))?;
    said(git(&["config", "core.autocrlf", "false"]))?;
    said(git(&["remote", "add", "origin", repository]))?;
    said(git(&["config", "remote.origin.promisor", "true"]))?;
    said(git(&["config", "remote.origin.partialclonefilter", "blob:none"]))?;
    let one = [
        "fetch",
        "--quiet",
        "--depth",
        "1",
        "--filter=blob:none",
        "origin",
        commit,
    ];
    let all = ["fetch", "--quiet", "origin", "+refs/*:refs/fetched/*"];
    // A server need not give out a commit by its name; its branches and tags it does.
    if let Err(first) = said(git(&one)) {
        said(git(&all)).map_err(|second| format!("{repository}: {first}; {second}"))?;
    }
    let mut checkout = git(&[
        "checkout",
        "--quiet",
        "--pathspec-from-file=-",
        "--pathspec-file-nul",
        commit,
    ]);
    checkout.env("GIT_LITERAL_PATHSPECS", "1").stdin(Stdio::piped());
    let input = paths.join("\0");
    fed(checkout, &input).map_err(|why| format!("{repository} at {commit}: {why}"))?;
    Ok(tree)
}

/// Every file has its checksum.
fn check(sums: &[(&str, &str)], folder: &Path) -> Result<(), String> {
    let lines = sums.iter().fold(String::new(), |mut lines, (sum, path)| {
        let _ = writeln!(lines, "{sum}  {path}");
        lines
    });
    let mut command = Command::new("sha256sum");
    command
        .args(["--check", "--quiet", "--strict", "-"])
        .current_dir(folder);
    command.stdin(Stdio::piped());
    fed(command, &lines).map_err(|why| format!("wrong checksum in {}: {why}", folder.display()))
}

/// Runs a command; what it said where it fails.
fn said(command: Command) -> Result<(), String> {
    fed(command, "")
}

/// Runs a command with this on its standard input.
fn fed(mut command: Command, input: &str) -> Result<(), String> {
    let program = command.get_program().display().to_string();
    let told = |error: std::io::Error| format!("cannot run {program}: {error}");
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(told)?;
    // A program that ends before it has read all says why itself.
    if let Some(mut stdin) = child.stdin.take() {
        let _ = stdin.write_all(input.as_bytes());
    }
    let output = child.wait_with_output().map_err(told)?;
    if output.status.success() {
        return Ok(());
    }
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    let lines: Vec<&str> = said
        .lines()
        .filter(|line| !line.trim().is_empty())
        .take(4)
        .collect();
    Err(format!("{program}: {}", lines.join("; ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_file_has_a_source_a_checksum_and_a_place_of_its_own() {
        let manifest: Manifest = toml::from_str(SOURCES).unwrap();
        let files = rows(FILES);
        assert_eq!(files.len(), FILES.lines().count());
        let places: BTreeSet<&str> = files.iter().map(|row| row.to).collect();
        assert_eq!(places.len(), files.len(), "two rows write one file");
        for row in &files {
            let is_hex = row.sha256.len() == 64 && row.sha256.bytes().all(|b| b.is_ascii_hexdigit());
            let is_below = ["captures/", "specs/", "fix/"]
                .iter()
                .any(|part| row.to.starts_with(part));
            let is_safe = ![row.to, row.from]
                .iter()
                .any(|p| p.contains("..") || p.starts_with('/'));
            assert!(is_hex && is_below && is_safe, "{}", row.to);
        }
        for source in &manifest.source {
            assert!(
                source.commit.len() == 40 && !source.licence.is_empty(),
                "{}",
                source.name
            );
            assert!(
                files.iter().any(|row| row.source == source.name),
                "{} has no file",
                source.name
            );
        }
        let known = |row: &Row<'_>| manifest.source.iter().any(|source| source.name == row.source);
        assert!(files.iter().all(known));
    }

    /// SHA-256 of "abc", an example of FIPS 180-4.
    const ABC: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

    fn git(folder: &Path, args: &[&str]) -> String {
        let output = Command::new("git")
            .args(["-c", "user.name=T", "-c", "user.email=t@example.org"])
            .args(args)
            .current_dir(folder)
            .output()
            .expect("git runs");
        assert!(
            output.status.success(),
            "{args:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8(output.stdout).expect("text").trim().to_owned()
    }

    /// A folder of clones with one repository, whose newest commit has a file more than the pinned one.
    #[test]
    fn files_come_from_the_pinned_commit_and_wrong_ones_never_reach_the_folder() {
        let folder = std::env::temp_dir().join(format!("tickwire-fetch-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        let clone = folder.join("clones/owner/data");
        fs::create_dir_all(clone.join("a b")).unwrap();
        git(&clone, &["init", "--quiet"]);
        for (name, text) in [("a b/one.pcap", "abc"), ("two.pcap", "not abc"), ("unasked", "x")] {
            fs::write(clone.join(name), text).unwrap();
        }
        git(&clone, &["add", "."]);
        git(&clone, &["commit", "--quiet", "-m", "pinned"]);
        let commit = git(&clone, &["rev-parse", "HEAD"]);
        fs::write(clone.join("a b/one.pcap"), "another").unwrap();
        git(&clone, &["commit", "--quiet", "-am", "later"]);

        let source = |commit: &str| Source {
            name: "test".to_owned(),
            repository: "https://github.com/owner/data".to_owned(),
            commit: commit.to_owned(),
            licence: String::new(),
            about: String::new(),
        };
        let row = |to: &'static str, from: &'static str| Row {
            source: "test",
            sha256: ABC,
            to,
            from,
        };
        let (one, two) = (
            row("captures/x/one.pcap", "a b/one.pcap"),
            row("captures/two.pcap", "two.pcap"),
        );
        let to = folder.join("shared");
        let clones = folder.join("clones");
        let bring = |commit: &str, rows: &[&Row<'_>]| {
            fs::create_dir_all(&to).unwrap();
            super::bring(&source(commit), rows, Some(&clones), &folder.join("cache"), &to)
        };
        assert_eq!(
            bring(&commit, &[&one]).unwrap(),
            "1 files came, 0 were there; every checksum is right"
        );
        assert_eq!(fs::read_to_string(to.join("captures/x/one.pcap")).unwrap(), "abc");
        assert!(!to.join("unasked").exists());
        assert_eq!(
            bring(&commit, &[&one]).unwrap(),
            "0 files came, 1 were there; every checksum is right"
        );
        // Not the bytes that were pinned: nothing of it comes.
        let why = bring(&commit, &[&two]).unwrap_err();
        assert!(
            why.contains("wrong checksum") && why.contains("two.pcap: FAILED"),
            "{why}"
        );
        assert!(!to.join("captures/two.pcap").exists());
        // What the user has there stays, and is said to be another.
        fs::write(to.join("captures/x/one.pcap"), "mine").unwrap();
        let why = bring(&commit, &[&one]).unwrap_err();
        assert!(why.contains("it is yours, so it stays"), "{why}");
        assert_eq!(
            fs::read_to_string(to.join("captures/x/one.pcap")).unwrap(),
            "mine"
        );
        // A commit and a repository that are not there.
        let why = bring(&"0".repeat(40), &[&two]).unwrap_err();
        assert!(why.contains("owner/data"), "{why}");
        let gone = Source {
            repository: "https://github.com/owner/gone".to_owned(),
            ..source(&commit)
        };
        let why = super::bring(&gone, &[&two], Some(&clones), &folder.join("cache"), &to).unwrap_err();
        assert!(why.contains("there is no clone"), "{why}");
        fs::remove_dir_all(&folder).unwrap();
    }
}
