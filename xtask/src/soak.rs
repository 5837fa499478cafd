//! `cargo xtask demo-soak`: the demonstration again and again, in every feed, beside a load that leaves it
//! too few cores.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::Instant;

use crate::command::Load;
use crate::run::{cargo, root, target_dir};

const HELP: &str = "\
Runs `tickwire demo` again and again beside processes that keep every core busy, in every feed, with a seed and a length of its own
each time: none may fail. A demonstration fails when books or orders of its two sides differ, when no order was sent, or when a
process ends before its time.

  cargo xtask demo-soak [--runs N] [--load N] [--feeds all|FEED,FEED…] [--seconds S,S…] [--bad-lines] [--program FILE] [--seed N]

  --runs       demonstrations of each feed, one after the other (default 100)
  --load       busy processes beside them (default 4)
  --feeds      which feeds (default all: itch50, pitch, xdp, openbook, cqs, uqdf, mdp3, moex)
  --seconds    lengths of the sessions, by turns (default 1,2)
  --bad-lines  every second run of a feed with 1 % loss, duplication and reordering on both lines
  --program    the program under test (default: target/release/tickwire, which is built first)
  --seed       of the first run of each feed; further runs count up from it (default 1)

The output of a run that fails stays in target/demo-soak/<feed>-<seed>. Exit code 1: a run failed. 2: it could not begin.
";

/// Every protocol that the simulator publishes and the trader receives.
const FEEDS: [&str; 8] = [
    "itch50", "pitch", "xdp", "openbook", "cqs", "uqdf", "mdp3", "moex",
];

/// What is asked for.
#[derive(Clone, PartialEq, Debug)]
struct Plan {
    runs: u64,
    load: usize,
    feeds: Vec<String>,
    seconds: Vec<f64>,
    has_bad_lines: bool,
    program: Option<PathBuf>,
    seed: u64,
}

/// The command.
pub(crate) fn run(words: &[&str]) -> ExitCode {
    if matches!(words, ["--help" | "-h"]) {
        print!("{HELP}");
        return ExitCode::SUCCESS;
    }
    let failed = |why: String| {
        eprintln!("xtask demo-soak: {why}");
        ExitCode::from(2)
    };
    match plan(words).and_then(|plan| soak(&plan)) {
        Ok(0) => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(why) => failed(why),
    }
}

fn plan(words: &[&str]) -> Result<Plan, String> {
    let mut plan = Plan {
        runs: 100,
        load: 4,
        feeds: FEEDS.map(str::to_owned).to_vec(),
        seconds: vec![1.0, 2.0],
        has_bad_lines: false,
        program: None,
        seed: 1,
    };
    let mut words = words.iter();
    while let Some(&word) = words.next() {
        if word == "--bad-lines" {
            plan.has_bad_lines = true;
            continue;
        }
        let value = *words
            .next()
            .ok_or_else(|| format!("{word} takes a value; `cargo xtask demo-soak --help` shows which"))?;
        let wrong =
            || format!("{word}: '{value}' is not such a value; `cargo xtask demo-soak --help` shows which");
        match word {
            "--runs" => plan.runs = value.parse().map_err(|_| wrong())?,
            "--load" => plan.load = value.parse().map_err(|_| wrong())?,
            "--seed" => plan.seed = value.parse().map_err(|_| wrong())?,
            "--program" => plan.program = Some(value.into()),
            "--seconds" => {
                let lengths = value
                    .split(',')
                    .map(|s| s.parse::<f64>().ok().filter(|s| *s > 0.0));
                plan.seconds = lengths.collect::<Option<_>>().ok_or_else(wrong)?;
            }
            "--feeds" if value == "all" => {}
            "--feeds" => {
                let feeds = value
                    .split(',')
                    .map(|feed| FEEDS.contains(&feed).then(|| feed.to_owned()));
                plan.feeds = feeds.collect::<Option<_>>().ok_or_else(wrong)?;
            }
            _ => return Err(format!("unknown word '{word}'\n\n{HELP}")),
        }
    }
    Ok(plan)
}

/// A process that does nothing but want a core.
fn busy(_: usize) -> Command {
    let mut busy = Command::new("sh");
    busy.args(["-c", "while :; do :; done"]).stdin(Stdio::null());
    busy
}

/// How many runs failed.
fn soak(plan: &Plan) -> Result<u64, String> {
    let program = match &plan.program {
        Some(program) => program.clone(),
        None => build()?,
    };
    let kept = target_dir().join("demo-soak");
    std::fs::create_dir_all(&kept).map_err(|e| format!("cannot create {}: {e}", kept.display()))?;
    let _load = Load::start((0..plan.load).map(busy))?;
    let began = Instant::now();
    let mut failed = 0;
    for feed in &plan.feeds {
        let feed_began = Instant::now();
        let mut lost = 0;
        for turn in 0..plan.runs {
            let seed = plan.seed + turn;
            let folder = kept.join(format!("{feed}-{seed}"));
            if !is_right(&program, &demo(plan, feed, turn), &folder, began)? {
                lost += 1;
            }
        }
        failed += lost;
        println!(
            "{feed:<9} {} runs beside {} busy processes: {lost} failed   ({:.0} s)",
            plan.runs,
            plan.load,
            feed_began.elapsed().as_secs_f64()
        );
    }
    let runs = plan.runs * plan.feeds.len() as u64;
    println!("{} passed, {failed} failed", runs - failed);
    Ok(failed)
}

/// What a run is started with.
fn demo(plan: &Plan, feed: &str, turn: u64) -> Vec<String> {
    let seconds = plan.seconds[turn as usize % plan.seconds.len()];
    let (seconds, seed) = (seconds.to_string(), (plan.seed + turn).to_string());
    let mut words = vec!["demo", "--feed", feed, "--seconds", &seconds, "--seed", &seed];
    if plan.has_bad_lines && turn % 2 == 1 {
        words.extend(["--loss", "0.01", "--duplicate", "0.01", "--reorder", "0.01"]);
    }
    words.into_iter().map(str::to_owned).collect()
}

/// One demonstration; what a failed one said stays in its folder.
fn is_right(program: &Path, words: &[String], folder: &Path, began: Instant) -> Result<bool, String> {
    let mut command = Command::new(program);
    command.args(words).arg("--dir").arg(folder).stdin(Stdio::null());
    let output = command
        .output()
        .map_err(|e| format!("cannot run {}: {e}", program.display()))?;
    if output.status.success() {
        // Nothing is left of it but the count.
        let _ = std::fs::remove_dir_all(folder);
        return Ok(true);
    }
    let said = [&output.stdout[..], &output.stderr[..]]
        .map(String::from_utf8_lossy)
        .concat();
    let last = String::from_utf8_lossy(&output.stderr);
    println!(
        "FAILED after {:.0} s: tickwire {}: {}: {}",
        began.elapsed().as_secs_f64(),
        words.join(" "),
        output.status,
        last.lines().last().unwrap_or("it said nothing")
    );
    let _ = std::fs::create_dir_all(folder);
    std::fs::write(folder.join("output.txt"), said)
        .map_err(|e| format!("cannot write into {}: {e}", folder.display()))?;
    Ok(false)
}

/// The program, built for release.
pub(crate) fn build() -> Result<PathBuf, String> {
    let mut command = cargo();
    command.current_dir(root());
    command.args([
        "build",
        "--release",
        "--locked",
        "-p",
        "tickwire-app",
        "--bin",
        "tickwire",
    ]);
    match command.status() {
        Ok(status) if status.success() => Ok(target_dir().join("release/tickwire")),
        Ok(status) => Err(format!("cargo build --release: {status}")),
        Err(e) => Err(format!("cannot run cargo: {e}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_run_has_a_seed_and_a_length_of_its_own_and_unknown_feeds_are_refused() {
        let words = [
            "--runs",
            "3",
            "--feeds",
            "mdp3,moex",
            "--seconds",
            "1,2.5",
            "--bad-lines",
            "--seed",
            "7",
        ];
        let plan = plan(&words).expect("a good plan");
        assert_eq!((plan.runs, plan.load, plan.feeds.len()), (3, 4, 2));
        assert_eq!(
            demo(&plan, "mdp3", 0).join(" "),
            "demo --feed mdp3 --seconds 1 --seed 7"
        );
        assert_eq!(
            demo(&plan, "mdp3", 1).join(" "),
            "demo --feed mdp3 --seconds 2.5 --seed 8 --loss 0.01 --duplicate 0.01 --reorder 0.01"
        );
        for wrong in [
            &["--feeds", "itch51"][..],
            &["--runs"],
            &["--seconds", "0"],
            &["--fast", "1"],
        ] {
            assert!(super::plan(wrong).is_err(), "{wrong:?}");
        }
    }
}
