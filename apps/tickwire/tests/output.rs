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
    for command in COMMANDS {
        let args = args_of(command, &folder.0);
        for reader in [Reader::Gone, Reader::OneByte, Reader::Full] {
            // The long ones once are enough.
            let is_long = ["demo", "fix bench", "bench", "lab run selftest"]
                .iter()
                .any(|name| command.starts_with(name));
            if is_long && reader != Reader::Gone {
                continue;
            }
            let (code, said) = run_with(&args, reader);
            assert!(
                code.is_some_and(|code| code != 101) && !said.contains("panicked"),
                "{command:?}, {reader:?}: {code:?} {said}"
            );
        }
    }
}

#[test]
fn the_help_of_every_command_survives_a_reader_that_goes() {
    let all = leaves(&[]);
    assert!(all.len() > 25, "{all:?}");
    for mut args in all {
        args.push("--help".to_owned());
        for reader in [Reader::Gone, Reader::Full] {
            let (code, said) = run_with(&args, reader);
            assert!(
                code.is_some_and(|code| code != 101) && !said.contains("panicked"),
                "{args:?}, {reader:?}: {code:?} {said}"
            );
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
