//! `cargo xtask attack`: the attacks of the ordinary tests, for hours.

use std::process::ExitCode;
use std::time::Instant;

use crate::command::{self, Findings};
use crate::run::{cargo, root};

const HELP: &str = "\
Runs the attacks that the ordinary tests make once, again and again: kills of the exchange, the FIX acceptor, the quoter and the writers
and readers of shared memory under load; nine faults of a trader and a quoter, with what is live asked from the venue; every error of every
socket call; clocks that are set; forged and hostile input. Then programs left alone, whose memory may not grow.

  cargo xtask attack [--kills N] [--hours H] [--only NAME]

  --kills   kills in all (default 1000); everything else is repeated in proportion
  --hours   how long programs are left alone at the end (default 0: a minute)
  --only    one attack of: exchange, store, quoter, memory, faults, weather, hostile, forged, alone

Faults need network namespaces (root), else they are not tested, which is said. Exit code 1: an attack succeeded. 2: it could not begin.
";

/// An attack: its name, the tests that make it, as `cargo test` takes them, and how many kills one turn of it
/// has.
struct Attack {
    name: &'static str,
    tests: &'static [&'static str],
    kills: u64,
}

const ATTACKS: [Attack; 9] = [
    Attack {
        name: "exchange",
        tests: &["-p", "tickwire-app", "--test", "exchange", "killed"],
        kills: 8,
    },
    Attack {
        name: "store",
        tests: &["-p", "tickwire-app", "--test", "fix_store", "orders_survive"],
        kills: 8,
    },
    Attack {
        name: "quoter",
        tests: &["-p", "tickwire-app", "--test", "demo", "killed_again_and_again"],
        kills: 4,
    },
    Attack {
        name: "memory",
        tests: &["-p", "tickwire-runtime", "--test", "shared_kill"],
        kills: 8,
    },
    Attack {
        name: "faults",
        tests: &["-p", "tickwire-app", "--test", "faults"],
        kills: 4,
    },
    Attack {
        name: "weather",
        tests: &["-p", "tickwire-app", "--test", "weather"],
        kills: 0,
    },
    Attack {
        name: "hostile",
        tests: &["-p", "tickwire-app", "--test", "fix_hostile"],
        kills: 0,
    },
    Attack {
        name: "forged",
        tests: &["-p", "tickwire-rig", "forged"],
        kills: 0,
    },
    Attack {
        name: "alone",
        tests: &["-p", "tickwire-app", "--test", "faults", "left_alone"],
        kills: 0,
    },
];

#[derive(Debug, PartialEq)]
struct Plan {
    kills: u64,
    hours: f64,
    only: Option<String>,
}

/// The command.
pub(crate) fn run(words: &[&str]) -> ExitCode {
    command::run("attack", HELP, words, plan, work)
}

fn work(plan: Plan) -> Result<Findings, String> {
    let kills: u64 = ATTACKS.iter().map(|attack| attack.kills).sum();
    let times = plan.kills.div_ceil(kills).max(1);
    let mut findings = Findings::default();
    let chosen = ATTACKS
        .iter()
        .filter(|attack| plan.only.as_deref().is_none_or(|only| only == attack.name));
    for attack in chosen {
        let began = Instant::now();
        let mut command = cargo();
        command
            .current_dir(root())
            .args(["test", "--locked"])
            .args(attack.tests);
        command.args(["--", "--nocapture", "--test-threads", "1"]);
        let is_alone = attack.name == "alone";
        let seconds = if is_alone { (plan.hours * 3600.0) as u64 } else { 0 };
        command.env("TICKWIRE_ATTACK_TIMES", times.to_string());
        if is_alone {
            command.env("TICKWIRE_ATTACK_SECONDS", seconds.max(60).to_string());
        }
        // Tests that do not repeat by themselves are repeated here.
        let turns = if matches!(attack.name, "memory" | "weather" | "hostile") {
            times
        } else {
            1
        };
        let is_withstood = (0..turns).all(|_| match command.status() {
            Ok(status) => status.success(),
            Err(why) => {
                eprintln!("xtask attack: cannot run cargo: {why}");
                false
            }
        });
        let what = format!("{:<9} {} kills", attack.name, attack.kills * times);
        findings.count(&what, began, is_withstood);
    }
    println!("{} attacks withstood, {} succeeded", findings.good, findings.bad);
    Ok(findings)
}

fn plan(words: &[&str]) -> Result<Plan, String> {
    let mut plan = Plan {
        kills: 1000,
        hours: 0.0,
        only: None,
    };
    let mut words = words.iter();
    while let Some(&word) = words.next() {
        let value = *words.next().ok_or_else(|| format!("{word} takes a value"))?;
        let wrong = || format!("{word}: '{value}' is not such a value");
        match word {
            "--kills" => plan.kills = value.parse().map_err(|_| wrong())?,
            "--hours" => {
                let hours = value.parse::<f64>().ok();
                plan.hours = hours.filter(|h| (0.0..=1000.0).contains(h)).ok_or_else(wrong)?;
            }
            "--only" if ATTACKS.iter().any(|attack| attack.name == value) => plan.only = Some(value.into()),
            "--only" => return Err(wrong()),
            _ => return Err(format!("unknown word '{word}'")),
        }
    }
    Ok(plan)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_attack_that_there_is_not_is_refused_and_a_thousand_kills_are_the_default() {
        let all = plan(&[]).expect("nothing wrong");
        assert_eq!((all.kills, all.only), (1000, None));
        let one = plan(&["--kills", "8", "--only", "store", "--hours", "0.5"]).expect("nothing wrong");
        assert_eq!(
            (one.kills, one.hours, one.only.as_deref()),
            (8, 0.5, Some("store"))
        );
        for wrong in [
            &["--only", "rain"][..],
            &["--hours", "-1"],
            &["--kills"],
            &["rain", "1"],
        ] {
            assert!(plan(wrong).is_err(), "{wrong:?}");
        }
    }
}
