//! `tickwire host`: what harms latency on this machine, what it costs, and changing it with a way back.

mod interface;
mod jitter;

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use serde_json::{Value, json};
use tickwire_lab::{Table, format_count, format_ns};
use tickwire_runtime::affinity::Cores;
use tickwire_runtime::clock::Clock;
use tickwire_runtime::host::{
    CHECKS, Check, Finding, Fix, Host, Hot, Journal, JournalError, Outcome, Verdict, Write, apply, check_all,
    undo,
};
use tickwire_runtime::signal::StopFlag;

use jitter::Jitter;
use tickwire_console::failure::Failure;

/// Where changes are kept until they are undone; a restart of the machine undoes them all, and empties this
/// folder.
const JOURNAL: &str = "/run/tickwire/host-journal";

/// What `tickwire host` can do.
#[derive(Subcommand, Debug)]
pub enum HostCommand {
    /// Looks at every setting and watches the cores for interruptions; changes nothing
    #[command(after_help = "\
Examples:
  tickwire host check
  tickwire host check --cores 2-3 --jitter 10
  sudo tickwire host check --interface eth0   what it can do of the kernel path
  tickwire host check --json | jq '.checks[] | {id, verdict}'

Exit codes: 0 nothing harmful, 1 something is, 2 wrong command line, 130 Ctrl-C.")]
    Check(CheckArgs),
    /// Changes what can be changed while the machine runs, and keeps a journal for `undo`
    #[command(after_help = "\
Examples:
  tickwire host tune --dry-run   what would be written, and where
  sudo tickwire host tune --cores 2-3
  sudo tickwire host tune --only governor --only idle-states

Exit codes: 0 all done, 1 the kernel refused some, 2 wrong command line, 3 the journal cannot be written.")]
    Tune(TuneArgs),
    /// Takes back what `tune` has changed
    #[command(after_help = "\
Example:
  sudo tickwire host undo

Exit codes: 0 all as before, 1 some were changed by others since or refused, 3 no journal.")]
    Undo {
        /// The journal of `tune`
        #[arg(long, default_value = JOURNAL, value_name = "FILE")]
        journal: PathBuf,
        /// The machine whose /proc and /sys are under this folder
        #[arg(long, default_value = "/", value_name = "DIR", hide = true)]
        root: PathBuf,
    },
    /// What a setting is, what it costs, how it is changed; without an id all of them
    #[command(after_help = "\
Examples:
  tickwire host explain
  tickwire host explain idle-states")]
    Explain {
        /// The setting, as `check` names it
        id: Option<String>,
    },
}

/// The arguments of `tickwire host check`.
#[derive(Args, Debug)]
pub struct CheckArgs {
    /// Cores of the threads that wait for packets, like 2-3,5 (default: the isolated ones, else all but the
    /// first)
    #[arg(long, value_name = "LIST")]
    cores: Option<String>,
    /// Watch each core for interruptions for so long; 0 not at all
    #[arg(long, default_value_t = 1.0, value_name = "SECONDS")]
    jitter: f64,
    /// Try what this interface can do of the kernel path, by a program that lets everything pass (repeatable)
    #[arg(long, value_name = "NAME")]
    interface: Vec<String>,
    /// As JSON
    #[arg(long)]
    json: bool,
    /// The machine whose /proc and /sys are under this folder
    #[arg(long, default_value = "/", value_name = "DIR", hide = true)]
    root: PathBuf,
}

/// The arguments of `tickwire host tune`.
#[derive(Args, Debug)]
pub struct TuneArgs {
    /// Cores of the threads that wait for packets, like 2-3,5 (default: the isolated ones, else all but the
    /// first)
    #[arg(long, value_name = "LIST")]
    cores: Option<String>,
    /// Only this setting (repeatable); one that is a matter of choice is changed only when it is named
    #[arg(long, value_name = "ID")]
    only: Vec<String>,
    /// Show what would be written and write nothing
    #[arg(long)]
    dry_run: bool,
    /// Where changes are kept for `undo`
    #[arg(long, default_value = JOURNAL, value_name = "FILE")]
    journal: PathBuf,
    /// The machine whose /proc and /sys are under this folder
    #[arg(long, default_value = "/", value_name = "DIR", hide = true)]
    root: PathBuf,
}

/// Runs `tickwire host`.
///
/// # Errors
/// A command line that cannot be carried out, a journal that is not there or cannot be written, a signal;
/// and, after everything is shown, that something harmful was found, or that the kernel refused a change.
pub fn run(command: &HostCommand, stop: &StopFlag) -> Result<(), Failure> {
    match command {
        HostCommand::Check(args) => check(args, stop),
        HostCommand::Tune(args) => tune(args),
        HostCommand::Undo { journal, root } => take_back(root, journal),
        HostCommand::Explain { id } => explain(id.as_deref()),
    }
}

fn hot(root: &Path, cores: Option<&str>) -> Result<Hot, Failure> {
    let wanted = cores.map(parse_cores).transpose()?;
    Ok(Hot::choose(root, wanted.as_deref()))
}

fn parse_cores(text: &str) -> Result<Vec<usize>, Failure> {
    let wrong = || Failure::config(format!("--cores {text}: write cores like 2-3,5"));
    let mut cores = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let number = |text: &str| {
            text.trim()
                .parse::<usize>()
                .ok()
                .filter(|core| *core < 4_096)
                .ok_or_else(wrong)
        };
        let (first, last) = (number(first)?, number(last)?);
        if first > last {
            return Err(wrong());
        }
        cores.extend(first..=last);
    }
    Ok(cores)
}

fn known(id: &str) -> Result<&'static Check, Failure> {
    CHECKS.iter().find(|check| check.id == id).ok_or_else(|| {
        let ids: Vec<&str> = CHECKS.iter().map(|check| check.id).collect();
        Failure::config(format!("there is no setting {id}, only {}", ids.join(", ")))
    })
}

fn check(args: &CheckArgs, stop: &StopFlag) -> Result<(), Failure> {
    if !(0.0..=3_600.0).contains(&args.jitter) {
        return Err(Failure::config(format!(
            "--jitter {}: 0 to 3600 seconds",
            args.jitter
        )));
    }
    let hot = hot(&args.root, args.cores.as_deref())?;
    let clock = Clock::calibrate();
    let findings = check_all(&args.root, &hot);
    let tried = args.interface.iter().map(|name| interface::Tried::new(name));
    let tried = tried.collect::<Result<Vec<_>, Failure>>()?;
    let mut watched = Vec::new();
    if args.jitter > 0.0 {
        let may = Cores::count().usable();
        for core in hot
            .cores
            .iter()
            .chain(&hot.others)
            .filter(|core| may.contains(core))
        {
            if stop.is_set() {
                return Err(Failure::interrupted("ended before every core was watched"));
            }
            eprintln!("watching core {core} for {} s ...", args.jitter);
            watched.push(jitter::watch(*core, args.jitter, &clock)?);
        }
    }
    match args.json {
        true => println!(
            "{:#}",
            to_json(&findings, (&watched, &tried), &hot, &Host::describe(&clock))
        ),
        false => {
            print!("{}", to_text(&findings, &watched, &hot));
            tried.iter().for_each(|tried| print!("\n{}", tried.to_text()));
        }
    }
    let harmful = findings.iter().filter(|f| f.verdict == Verdict::Harmful).count();
    match harmful {
        0 => Ok(()),
        n => Err(Failure::check(format!(
            "{n} settings cost latency; `tickwire host explain ID` says more, `tickwire host tune --dry-run` what it would change"
        ))),
    }
}

fn numbers(cores: &[usize]) -> String {
    let all: Vec<String> = cores.iter().map(|core| core.to_string()).collect();
    all.join(",")
}

fn to_text(findings: &[Finding], watched: &[Jitter], hot: &Hot) -> String {
    let title = format!("settings, for threads on cores {}", numbers(&hot.cores));
    let mut table = Table::new(&title, &["setting", "verdict", "now", "costs", "changed by"]);
    for finding in findings {
        let is_good = finding.verdict == Verdict::Good;
        let may_cost = matches!(finding.verdict, Verdict::Harmful | Verdict::Choice);
        table = table.row([
            finding.check.id,
            finding.verdict.name(),
            &finding.value,
            if may_cost { finding.check.cost } else { "" },
            if is_good { "" } else { finding.check.fix.text() },
        ]);
    }
    let mut text = table.to_text(tickwire_console::terminal::width());
    if !watched.is_empty() {
        let mut table = Table::new(
            "interruptions of a thread that only reads the clock",
            &[
                "core",
                "p50",
                "p99.9",
                "max",
                ">= 1 us",
                ">= 10 us",
                ">= 100 us",
                ">= 1 ms",
                "time lost",
            ],
        );
        for jitter in watched {
            let [a, b, c, d] = jitter.at_least.map(format_count);
            table = table.row([
                jitter.core.to_string(),
                format_ns(jitter.gaps.at_quantile(0.5)),
                format_ns(jitter.gaps.at_quantile(0.999)),
                format_ns(jitter.gaps.max()),
                a,
                b,
                c,
                d,
                format!("{:.3} %", jitter.lost * 100.0),
            ]);
        }
        text += &format!("\n{}", table.to_text(tickwire_console::terminal::width()));
    }
    text
}

fn to_json(
    findings: &[Finding],
    (watched, tried): (&[Jitter], &[interface::Tried]),
    hot: &Hot,
    host: &Host,
) -> Value {
    let writes = |writes: &[Write]| -> Vec<Value> {
        let one = |w: &Write| json!({"path": format!("/{}", w.path), "before": w.before, "after": w.after});
        writes.iter().map(one).collect()
    };
    let checks: Vec<Value> = findings
        .iter()
        .map(|f| {
            json!({
                "id": f.check.id,
                "title": f.check.title,
                "verdict": f.verdict.name(),
                "value": f.value,
                "cost": f.check.cost,
                "fix": {"by": f.check.fix.kind(), "text": f.check.fix.text(), "writes": writes(&f.writes)},
            })
        })
        .collect();
    let jitter: Vec<Value> = watched
        .iter()
        .map(|j| {
            let [us, us_10, us_100, ms] = j.at_least;
            json!({
                "core": j.core,
                "p50_ns": j.gaps.at_quantile(0.5),
                "p999_ns": j.gaps.at_quantile(0.999),
                "max_ns": j.gaps.max(),
                "at_least_1us": us,
                "at_least_10us": us_10,
                "at_least_100us": us_100,
                "at_least_1ms": ms,
                "lost_share": j.lost,
            })
        })
        .collect();
    let facts: serde_json::Map<String, Value> = host
        .facts()
        .iter()
        .map(|(name, value)| ((*name).to_owned(), json!(value)))
        .collect();
    let interfaces: Vec<Value> = tried.iter().map(interface::Tried::to_json).collect();
    json!({
        "cores": hot.cores,
        "others": hot.others,
        "host": facts,
        "checks": checks,
        "jitter": jitter,
        "interfaces": interfaces,
    })
}

/// What `tune` is to write.
fn wanted(findings: &[Finding], only: &[String]) -> Result<Vec<Write>, Failure> {
    for id in only {
        let check = known(id)?;
        if !matches!(check.fix, Fix::Files(_)) {
            return Err(Failure::config(format!(
                "{id} is not changed from here but by: {}",
                check.fix.text()
            )));
        }
    }
    let is_wanted = |f: &&Finding| match only.is_empty() {
        true => f.verdict == Verdict::Harmful,
        false => only.iter().any(|id| id == f.check.id),
    };
    Ok(findings
        .iter()
        .filter(is_wanted)
        .flat_map(|f| f.writes.clone())
        .collect())
}

fn tune(args: &TuneArgs) -> Result<(), Failure> {
    let root = args.root.as_path();
    let hot = hot(root, args.cores.as_deref())?;
    let findings = check_all(root, &hot);
    let writes = wanted(&findings, &args.only)?;
    if args.dry_run {
        for write in &writes {
            println!("/{}: {} -> {}", write.path, write.before, write.after);
        }
        println!("{} files would be written", writes.len());
        return Ok(());
    }
    let journal = Journal::at(&args.journal);
    let outcomes = apply(root, &writes, &journal).map_err(|e| Failure::system(e.to_string()))?;
    report(&outcomes)?;
    if !outcomes.is_empty() {
        println!(
            "`tickwire host undo` takes them back; the journal is {}",
            journal.path().display()
        );
    }
    let by_hand = findings
        .iter()
        .filter(|f| f.verdict == Verdict::Harmful && f.writes.is_empty());
    for finding in by_hand {
        println!(
            "{} is left to you: {}",
            finding.check.id,
            finding.check.fix.text()
        );
    }
    Ok(())
}

fn take_back(root: &Path, journal: &Path) -> Result<(), Failure> {
    let outcomes = undo(root, &Journal::at(journal)).map_err(|e| match e {
        JournalError::Line { .. } => Failure::config(e.to_string()),
        _ => Failure::system(e.to_string()),
    })?;
    report(&outcomes)
}

fn report(outcomes: &[Outcome]) -> Result<(), Failure> {
    let mut refused = 0;
    for outcome in outcomes {
        match outcome {
            Outcome::Done(change) => println!("/{}: {} -> {}", change.path, change.before, change.after),
            Outcome::Refused { path, why } => {
                refused += 1;
                println!("/{path}: refused: {why}");
            }
            Outcome::Changed { path, now } => {
                refused += 1;
                println!(
                    "/{path}: holds {now}, which is neither what was written nor what was there before: left alone"
                );
            }
        }
    }
    println!("{} files, {refused} not", outcomes.len() - refused);
    match refused {
        0 => Ok(()),
        n => Err(Failure::check(format!("{n} files were not written"))),
    }
}

fn explain(id: Option<&str>) -> Result<(), Failure> {
    let checks: Vec<&Check> = match id {
        Some(id) => vec![known(id)?],
        None => CHECKS.iter().collect(),
    };
    for (at, check) in checks.iter().enumerate() {
        if at > 0 {
            println!();
        }
        println!("{} ({})", check.id, check.title);
        println!("  {}", check.about);
        println!("  costs: {}", check.cost);
        let by = match check.fix {
            Fix::Files(_) => "`tickwire host tune` can",
            Fix::Boot(_) => "parameter of the kernel",
            Fix::Command(_) => "command",
            Fix::Elsewhere(_) => "not here",
        };
        println!("  change ({by}): {}", check.fix.text());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding(id: &str, verdict: Verdict) -> Finding {
        Finding {
            check: known(id).unwrap_or_else(|f| panic!("{}", f.message)),
            verdict,
            value: String::new(),
            writes: vec![Write {
                path: format!("sys/{id}"),
                before: "0".into(),
                after: "1".into(),
            }],
        }
    }

    #[test]
    fn what_is_a_matter_of_choice_is_changed_only_when_named() {
        let findings = [
            finding("governor", Verdict::Harmful),
            finding("turbo", Verdict::Choice),
        ];
        let paths = |only: &[&str]| -> Vec<String> {
            let only: Vec<String> = only.iter().map(|id| id.to_string()).collect();
            let writes = wanted(&findings, &only).unwrap_or_else(|f| panic!("{}", f.message));
            writes.into_iter().map(|w| w.path).collect()
        };
        assert_eq!(paths(&[]), ["sys/governor"]);
        assert_eq!(paths(&["turbo"]), ["sys/turbo"]);
        let refused = wanted(&findings, &["isolated".into()]).expect_err("a boot parameter");
        assert!(refused.message.contains("isolcpus"), "{}", refused.message);
        let unknown = wanted(&findings, &["speed".into()]).expect_err("no such setting");
        assert!(unknown.message.contains("governor"), "{}", unknown.message);
    }

    #[test]
    fn cores_are_read_as_people_write_them() {
        let cores = |text| parse_cores(text).map_err(|f| f.message);
        assert_eq!(cores("2-3,5"), Ok(vec![2, 3, 5]));
        for wrong in ["", "3-2", "a", "1-", "1,,2", "99999"] {
            assert!(cores(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn this_machine_is_checked_whatever_it_shows() {
        let hot = Hot::choose(Path::new("/"), None);
        let findings = check_all(Path::new("/"), &hot);
        assert_eq!(findings.len(), CHECKS.len());
        assert!(findings.iter().all(|f| !f.value.is_empty()), "{findings:?}");
        let text = to_text(&findings, &[], &hot);
        let value = to_json(&findings, (&[], &[]), &hot, &Host::default());
        for check in CHECKS {
            assert!(text.contains(check.id), "{text}");
        }
        assert_eq!(value["checks"].as_array().map(Vec::len), Some(CHECKS.len()));
    }

    #[test]
    fn every_setting_is_explained_once() {
        let mut ids: Vec<&str> = CHECKS.iter().map(|check| check.id).collect();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), CHECKS.len());
        for check in CHECKS {
            assert!(
                check.about.ends_with('.') && check.about.len() > 40,
                "{}",
                check.id
            );
        }
    }
}
