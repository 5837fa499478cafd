//! What becomes of a command whose output nobody takes: a reader that has gone (`| head -c 1`) and a full disk (`> /dev/full`).

mod common;

use common::{Folder, Guard, run, text, tickwire};
use std::fs::OpenOptions;
use std::io::Read;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

/// Commands that print something and end by themselves. `{…}` are files of [`Files`].
const COMMANDS: &[&str] = &[
    "config",
    "config --feed mdp3",
    "counters",
    "demo --seconds 0.2 --symbols 3 --dir {dir}",
    "decode {pcap}",
    "replay {pcap}",
    "journal {journal}",
    "journal {journal} --config",
    "bench --messages 20000 --symbols 20",
    "host check --jitter 0",
    "host check --jitter 0 --json",
    "host explain",
    "host tune --dry-run",
    "lab list",
    "lab run quadra --print",
    "lab run selftest --out {dir}/lab",
    "lab report {dir}/lab --format html",
    "lab report {dir}/lab --format text",
    "fix store {store}",
    "fix log {log}",
    "fix bench --orders 300 --rounds 1",
    "vol show -f examples/quoter/two-expiries.toml",
    "vol show -f examples/quoter/two-expiries.toml --format html",
    "risk -c examples/risk/portfolio.toml --fills examples/risk/fills.csv",
    "check nagios",
    "check cacti",
    "book AAPL --once",
    "top --once",
    "stats",
    "latency",
    "subscriptions",
];

/// Who reads our standard output.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Reader {
    /// A pipe whose other end is closed before anything is written.
    Gone,
    /// A pipe whose other end takes one byte.
    OneByte,
    /// A device without room.
    Full,
}

/// Exit code and standard error.
fn run_with(args: &[String], reader: Reader) -> (Option<i32>, String) {
    let stdout = match reader {
        Reader::Full => Stdio::from(
            OpenOptions::new()
                .write(true)
                .open("/dev/full")
                .expect("Linux has /dev/full"),
        ),
        _ => Stdio::piped(),
    };
    let mut child = tickwire()
        .args(args)
        .current_dir(tickwire_testdata::workspace())
        .stdin(Stdio::null())
        .stdout(stdout)
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let taken = child.stdout.take();
    let mut stderr = child.stderr.take().expect("piped");
    let listener = std::thread::spawn(move || {
        let mut said = Vec::new();
        let _ = stderr.read_to_end(&mut said);
        said
    });
    if let (Reader::OneByte, Some(mut out)) = (reader, taken) {
        let _ = out.read(&mut [0]);
    }
    let mut child = Guard(child);
    let status = child.wait(Duration::from_secs(120)).expect("the command ends");
    (status.code(), text(&listener.join().expect("reads")))
}

fn args_of(command: &str, folder: &Path) -> Vec<String> {
    let dir = folder.display().to_string();
    let place = |word: &str| {
        word.replace("{dir}", &dir)
            .replace("{pcap}", &format!("{dir}/day.pcap"))
            .replace("{journal}", &format!("{dir}/exchange.journal"))
            .replace("{store}", &format!("{dir}/none.store"))
            .replace("{log}", &format!("{dir}/none.log"))
    };
    command.split(' ').map(place).collect()
}

/// Every command that has no command below it, as `--help` lists them: `lab run`, `decode`, and so on.
fn leaves(prefix: &[&str]) -> Vec<Vec<String>> {
    let mut args = prefix.to_vec();
    args.push("--help");
    let help = text(&run(&args).stdout);
    let below: Vec<String> = help
        .lines()
        .skip_while(|line| *line != "Commands:")
        .skip(1)
        .take_while(|line| line.starts_with("  "))
        // A name stands two characters in; what is further in continues the line above.
        .filter(|line| line.as_bytes().get(2).is_some_and(|b| *b != b' '))
        .filter_map(|line| line.split_whitespace().next().map(str::to_owned))
        .filter(|name| name != "help")
        .collect();
    if below.is_empty() {
        return vec![prefix.iter().map(|&word| word.to_owned()).collect()];
    }
    below
        .iter()
        .flat_map(|name| {
            let mut path = prefix.to_vec();
            path.push(name);
            leaves(&path)
        })
        .collect()
}

#[test]
fn every_command_survives_a_reader_that_goes() {
    let folder = Folder::new("output");
    std::fs::write(folder.0.join("none.log"), "").expect("a temporary file");
    let mut cases = Vec::new();
    for command in COMMANDS {
        // The long ones once are enough.
        let is_long = ["demo", "fix bench", "bench", "lab run selftest"]
            .iter()
            .any(|name| command.starts_with(name));
        let readers: &[Reader] = match is_long {
            true => &[Reader::OneByte],
            false => &[Reader::Gone, Reader::OneByte, Reader::Full],
        };
        cases.extend(
            readers
                .iter()
                .map(|reader| (args_of(command, &folder.0), *reader)),
        );
    }
    // What reads a folder of results comes after the command that makes it, by then or not: both must survive.
    survive(cases);
}

/// Runs every case, several at the same time: most of the time of a command is its start.
fn survive(cases: Vec<(Vec<String>, Reader)>) {
    const AT_ONCE: usize = 6;
    let cases = std::sync::Mutex::new(cases.into_iter());
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                loop {
                    let Some((args, reader)) = cases.lock().expect("nobody panics with it").next() else {
                        return;
                    };
                    let (code, said) = run_with(&args, reader);
                    assert!(
                        code.is_some_and(|code| code != 101) && !said.contains("panicked"),
                        "{args:?}, {reader:?}: {code:?} {said}"
                    );
                }
            });
        }
    });
}

#[test]
fn the_help_of_every_command_survives_a_reader_that_goes() {
    let all = leaves(&[]);
    assert!(all.len() > 25, "{all:?}");
    // One way of printing serves them all (clap's): a reader of one kind each is enough.
    let readers = [Reader::Gone, Reader::Full].into_iter().cycle();
    let cases = all.into_iter().zip(readers).map(|(mut args, reader)| {
        args.push("--help".to_owned());
        (args, reader)
    });
    survive(cases.collect());
}

/// What is wrong with a page of help for a terminal of 80 columns.
fn ragged(page: &str) -> Vec<String> {
    let length = |line: &str| line.chars().count();
    let mut wrong: Vec<String> = page
        .lines()
        .filter(|line| length(line) > 80)
        .map(|line| format!("wider than 80: {line}"))
        .collect();
    let lines: Vec<&str> = page.lines().collect();
    for pair in lines.windows(2) {
        let (line, next) = (pair[0], pair[1]);
        let is_text = |line: &str| !line.is_empty() && !line.starts_with(' ');
        let word = next.split(' ').next().unwrap_or_default();
        // Where the next word had room, somebody else has broken the line: that may only be after a sentence.
        let is_broken = length(line) + 1 + length(word) <= 80;
        if is_text(line) && is_text(next) && is_broken && !line.ends_with(['.', ':']) {
            wrong.push(format!("broken twice: {line} / {next}"));
        }
    }
    wrong
}

#[test]
fn help_fits_eighty_columns_and_is_wrapped_once() {
    let mut pages = Vec::new();
    let mut wanted = leaves(&[]);
    // What stands above them: `tickwire`, `tickwire lab`, and so on.
    let above: std::collections::BTreeSet<Vec<String>> = wanted
        .iter()
        .flat_map(|path| (0..path.len()).map(|n| path[..n].to_vec()))
        .collect();
    wanted.extend(above);
    for args in &wanted {
        let output = tickwire()
            .args(args)
            .arg("--help")
            .env("COLUMNS", "80")
            .stdin(Stdio::null())
            .output()
            .expect("the program starts");
        let page = text(&output.stdout);
        assert!(
            output.status.success() && page.contains("Usage:"),
            "{args:?}: {page}"
        );
        pages.extend(
            ragged(&page)
                .into_iter()
                .map(|wrong| format!("{}: {wrong}", args.join(" "))),
        );
    }
    assert!(pages.is_empty(), "{}", pages.join("\n"));
}

/// Tables in as many columns as the environment says, colours and live views only where a terminal takes them.
#[test]
fn tables_fit_the_columns_that_there_are() {
    for (command, columns) in [
        ("host check --jitter 0", 80),
        ("host check --jitter 0", 132),
        ("counters", 80),
        ("lab list", 80),
        ("vol show -f examples/quoter/two-expiries.toml", 80),
        (
            "risk -c examples/risk/portfolio.toml --fills examples/risk/fills.csv --format text",
            80,
        ),
    ] {
        let output = tickwire()
            .args(command.split(' '))
            .current_dir(tickwire_testdata::workspace())
            .env("COLUMNS", columns.to_string())
            .stdin(Stdio::null())
            .output()
            .expect("the program starts");
        let shown = text(&output.stdout);
        assert!(shown.lines().count() > 5, "{command}: {}", text(&output.stderr));
        for line in shown.lines() {
            let length = line.chars().count();
            assert!(length <= columns, "{command} at {columns} has {length}: {line}");
        }
    }
}

#[test]
fn a_full_device_is_an_error_and_a_reader_that_goes_is_none() {
    for command in ["counters", "config", "lab list", "host explain"] {
        let args = args_of(command, Path::new("/nowhere"));
        let (code, said) = run_with(&args, Reader::Full);
        assert!(
            code == Some(3) && said.contains("cannot write to standard output: No space left"),
            "{command}: {code:?} {said}"
        );
        let (code, said) = run_with(&args, Reader::Gone);
        assert!(code == Some(0) && said.is_empty(), "{command}: {code:?} {said}");
    }
}
