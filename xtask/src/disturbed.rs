//! `cargo xtask disturbed`: steps of `check` on a machine that takes its processors away, as the host of a
//! virtual machine does: what passes only while everybody gets a turn soon is found here, and not one night
//! in ten.

use std::io::Read;
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use crate::Step;
use crate::command::{self, Findings, Load};
use crate::run::{build_tests, root};

const HELP: &str = "\
Runs steps of `check` while processes of real-time priority take the processors away, for 5 to 300 ms at a time, half of the time in
all: no test may depend on who gets a turn when. A test that waits for something must wait for as long as that takes; one that wants
something to happen while something else goes on must go on until it has happened. Needs root and chrt (util-linux).

  cargo xtask disturbed [STEP…] [--hands N] [--seed S]

  STEP        of `cargo xtask check --list` (test, bindings); tests are built before anything is taken away
  --hands N   such processes, 1 or more (2)
  --seed S    of when and how long they take a processor (1); what the tests meet is another thing each time all the same

Exit code 1: a step failed. 2: the command line, or no such process could be started.
";

/// How `xtask` is told to be such a process.
pub(crate) const HAND: &str = "disturbing-hand";

/// For how long a processor is taken at a time, milliseconds: what hosts were seen to do, and what a test
/// meets that runs behind others besides.
const TAKES_MS: [u64; 4] = [5, 20, 100, 300];

/// For how long it is left at least, and how much longer at most, milliseconds.
const LEAVES_MS: (u64, u64) = (10, 190);

struct Plan {
    steps: Vec<&'static Step>,
    hands: usize,
    seed: u64,
}

fn plan(words: &[&str]) -> Result<Plan, String> {
    let mut plan = Plan {
        steps: Vec::new(),
        hands: 2,
        seed: 1,
    };
    let mut words = words.iter();
    while let Some(&word) = words.next() {
        match word {
            "--hands" => {
                let hands = command::number(word, &mut words)?;
                plan.hands = usize::try_from(hands)
                    .ok()
                    .filter(|n| *n > 0)
                    .ok_or("--hands: 1 or more")?;
            }
            "--seed" => plan.seed = command::number(word, &mut words)?,
            other => plan.steps.push(step(other)?),
        }
    }
    if plan.steps.is_empty() {
        plan.steps = vec![step(crate::TESTS)?, step("bindings")?];
    }
    Ok(plan)
}

fn step(name: &str) -> Result<&'static Step, String> {
    crate::find(name).map_err(|unknown| {
        format!("no option or step '{unknown}'; `cargo xtask check --list` lists the steps")
    })
}

/// The command.
pub(crate) fn run(words: &[&str]) -> ExitCode {
    command::run("disturbed", HELP, words, plan, work)
}

fn work(plan: Plan) -> Result<Findings, String> {
    build_tests();
    let own = std::env::current_exe().map_err(|e| format!("xtask's own path: {e}"))?;
    let hand = |nth: usize| {
        let mut command = Command::new("chrt");
        command
            .args(["--fifo", "50"])
            .arg(&own)
            .args([HAND, &(plan.seed + nth as u64).to_string()])
            .current_dir(root())
            .stdin(Stdio::piped());
        command
    };
    let mut hands = Load::start((0..plan.hands).map(hand))?;
    // One that may not have this priority ends at once.
    std::thread::sleep(Duration::from_millis(200));
    if hands.has_ended() {
        return Err(
            "a process of real-time priority has ended at once: root may have one, with chrt (util-linux)"
                .into(),
        );
    }
    Ok(crate::findings(plan.steps.into_iter(), false))
}

/// Such a process: until its input ends, which it does with whom it was started by, however that ends.
pub(crate) fn disturb(words: &[&str]) -> ExitCode {
    let mut state = words
        .first()
        .and_then(|word| word.parse::<u64>().ok())
        .unwrap_or(1);
    std::thread::spawn(|| {
        let _ = std::io::stdin().read(&mut [0]);
        std::process::exit(0);
    });
    // Splitmix64.
    let mut next = move || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    };
    loop {
        std::thread::sleep(Duration::from_millis(LEAVES_MS.0 + next() % LEAVES_MS.1));
        let takes = Duration::from_millis(TAKES_MS[next() as usize % TAKES_MS.len()]);
        let since = Instant::now();
        while since.elapsed() < takes {
            std::hint::spin_loop();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_read_and_what_is_unknown_is_named() {
        let read = |words: &[&str]| plan(words).unwrap_or_else(|why| panic!("{why}"));
        let names = |plan: &Plan| plan.steps.iter().map(|step| step.name).collect::<Vec<_>>();
        let plan = read(&["bench", "--hands", "3", "--seed", "9"]);
        assert_eq!((names(&plan), plan.hands, plan.seed), (vec!["bench"], 3, 9));
        assert_eq!(names(&read(&[])), ["test", "bindings"]);
        let said = |words: &[&str]| super::plan(words).err().unwrap_or_default();
        assert!(said(&["--hands", "0"]).contains("1 or more"));
        assert!(said(&["--seed"]).contains("needs a number"));
        assert!(said(&["--seed", "x"]).contains("'x' is no whole number"));
        assert!(said(&["--rain"]).contains("'--rain'"));
    }
}
