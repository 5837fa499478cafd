//! `cargo xtask archives`: what an archive of events spares beside its capture, feed by feed, in one run.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use crate::command::{dist_program, processor_time};
use crate::run::{must, root, target_dir};

const HELP: &str = "\
Makes a capture of the simulated exchange for each feed, both lines, and an archive of it; replays both and runs the same backtest on
both, by turns, each a process of its own. Prints processor time (user and system, least of the turns), start-up taken off, which is that
of an archive of the same channels without events to speak of, and how many times faster the archive is. What replay says of books and counters has to be the same of
both, and of the backtests their hash.

  cargo xtask archives [--packets N] [--rounds N] [--only FEED] [--program FILE]

  --packets N     of each capture (default 1000000)
  --rounds N      turns of which the least time counts (default 3)
  --only FEED     nasdaq, cboe, nyse, nyse-american, cqs, uqdf, cme, moex or equities (all eight equity feeds)
  --program FILE  a tickwire; without it one is built with the profile dist, which takes ten minutes and more on two cores

Not part of check. Exit code 1: archive and capture do not say the same. 2: it could not begin.
";

/// The examples, and their names here.
const FEEDS: [&str; 9] = [
    "nasdaq",
    "cboe",
    "nyse",
    "nyse-american",
    "cqs",
    "uqdf",
    "cme",
    "moex",
    "equities",
];
/// Packets of the capture whose archive is start-up and little else.
const FEW: &str = "200";
const STRATEGY: &str = "examples/strategies/imbalance_taker.tw";
const SETTINGS: &str = "examples/strategies/backtest.toml";

/// What is asked for.
struct Options {
    packets: String,
    rounds: u32,
    only: Option<String>,
    program: Option<PathBuf>,
}

/// The command.
pub(crate) fn run(words: &[&str]) -> ExitCode {
    let mut options = Options {
        packets: "1000000".into(),
        rounds: 3,
        only: None,
        program: None,
    };
    let mut rest = words.iter();
    while let Some(word) = rest.next() {
        let value = rest.next().copied();
        match (*word, value) {
            ("--packets", Some(n)) if n.parse::<u64>().is_ok_and(|n| n > 0) => options.packets = n.into(),
            ("--rounds", Some(n)) if n.parse::<u32>().is_ok_and(|n| n > 0) => {
                options.rounds = n.parse().unwrap_or(1);
            }
            ("--only", Some(name)) if FEEDS.contains(&name) => options.only = Some(name.into()),
            ("--program", Some(file)) => options.program = Some(file.into()),
            ("--help" | "-h", _) => {
                print!("{HELP}");
                return ExitCode::SUCCESS;
            }
            _ => {
                eprint!("{HELP}");
                return ExitCode::from(2);
            }
        }
    }
    match compare(&options) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(why) => {
            eprintln!("xtask archives: {why}");
            ExitCode::from(2)
        }
    }
}

/// A capture and its archive.
struct Pair {
    capture: PathBuf,
    archive: PathBuf,
}

fn made(program: &Path, folder: &Path, feed: &str, packets: &str) -> Result<Pair, String> {
    let config = root().join(format!("examples/{feed}.toml"));
    let capture = folder.join(format!("{feed}-{packets}.pcap"));
    let archive = capture.with_extension("events");
    must(
        Command::new(program)
            .args(["exchange", "-c"])
            .arg(&config)
            .arg("--write-capture")
            .arg(&capture)
            .args(["--packets", packets])
            .stdout(Stdio::null())
            .stderr(Stdio::null()),
    )?;
    // A capture that is not a whole day ends with books that are said to be unfinished.
    let status = Command::new(program)
        .args(["archive", "-c"])
        .arg(&config)
        .arg(&capture)
        .arg("--out")
        .arg(&archive)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    match status {
        Ok(status) if matches!(status.code(), Some(0 | 1)) => Ok(Pair { capture, archive }),
        other => Err(format!("tickwire archive of {feed}: {other:?}")),
    }
}

/// The words of a replay, or of a backtest, of a file.
fn words(program: &Path, is_backtest: bool, file: &Path, config: Option<&Path>) -> Vec<String> {
    let text = |path: &Path| path.display().to_string();
    let mut words = vec![text(program)];
    match is_backtest {
        false => {
            words.push("replay".into());
            words.extend(
                config
                    .map(text)
                    .into_iter()
                    .flat_map(|config| ["-c".into(), config]),
            );
        }
        true => {
            words.extend(["strategy".into(), "backtest".into(), text(&root().join(STRATEGY))]);
            words.extend(["-c".into(), text(&root().join(SETTINGS))]);
            words.extend(
                config
                    .map(text)
                    .into_iter()
                    .flat_map(|config| ["--feeds".into(), config]),
            );
        }
    }
    words.push(text(file));
    words.push("--json".into());
    words
}

/// What has to be the same of capture and archive.
fn told(is_backtest: bool, printed: &str) -> Result<String, String> {
    let json: serde_json::Value = serde_json::from_str(printed)
        .map_err(|e| format!("{e}: {}", printed.chars().take(200).collect::<String>()))?;
    if is_backtest {
        return Ok(format!("{} {}", json["hash"], json["events"]));
    }
    let feeds = json["feeds"].as_array().into_iter().flatten();
    let feeds = feeds.map(|feed| format!("{} {}", feed["state_hash"], feed["state"]));
    Ok(feeds.collect::<Vec<_>>().join("\n"))
}

/// Least processor time of a file, by the turn's number.
#[derive(Clone, Copy)]
struct Least(f64);

impl Least {
    fn take(&mut self, seconds: f64) {
        self.0 = self.0.min(seconds);
    }
}

fn compare(options: &Options) -> Result<bool, String> {
    let program = dist_program(options.program.as_deref(), &[])?;
    let folder = target_dir().join("archives");
    std::fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let mut is_same = true;
    println!("| feed | what | capture, s | archive, s | start, s | times | times, start taken off |");
    println!("|---|---|---|---|---|---|---|");
    for feed in FEEDS {
        if options.only.as_deref().is_some_and(|only| only != feed) {
            continue;
        }
        let config = root().join(format!("examples/{feed}.toml"));
        let whole = made(&program, &folder, feed, &options.packets)?;
        let few = made(&program, &folder, feed, FEW)?;
        for is_backtest in [false, true] {
            let of_capture = words(&program, is_backtest, &whole.capture, Some(&config));
            let of_archive = words(&program, is_backtest, &whole.archive, None);
            let of_few = words(&program, is_backtest, &few.archive, None);
            let mut least = [Least(f64::MAX); 3];
            for _ in 0..options.rounds {
                let mut said = Vec::new();
                for (least, words) in least.iter_mut().zip([&of_capture, &of_archive, &of_few]) {
                    let (seconds, printed) = processor_time(words, &folder.join("cost"))?;
                    least.take(seconds);
                    said.push(told(is_backtest, &printed)?);
                }
                if said[0] != said[1] {
                    is_same = false;
                    eprintln!(
                        "{feed}: capture and archive do not say the same:\n{}\n{}",
                        said[0], said[1]
                    );
                }
            }
            let [capture, archive, start] = least.map(|least| least.0);
            let what = if is_backtest { "backtest" } else { "replay" };
            let net = (capture - start) / (archive - start).max(0.001);
            println!(
                "| {feed} | {what} | {capture:.3} | {archive:.3} | {start:.3} | {:.1} | {net:.1} |",
                capture / archive
            );
        }
        for path in [whole.capture, whole.archive, few.capture, few.archive] {
            std::fs::remove_file(&path).map_err(|e| format!("{}: {e}", path.display()))?;
        }
    }
    Ok(is_same)
}
