//! `tickwire lab`: scenarios, their results folders, reports and comparisons. What is measured, and how, is
//! each kind's own module; what is kept and shown is `tickwire_lab`'s.

mod bts;
mod cep;
mod fix;
mod gati;
mod inlet;
mod kind;
pub(crate) mod net;
pub(crate) mod paths;
mod pingpong;
mod probe;
mod quadra;
mod run;
mod selftest;

use std::fs;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand, ValueEnum};
use serde_json::json;
use tickwire_lab::scenario::Heading;
use tickwire_lab::{
    Comparison, PERCENTILES, RunRecord, Table, compare, differences, folder, report_of, terminal_summary,
};
use tickwire_market::Nanos;
use tickwire_runtime::files;
use tickwire_runtime::signal::StopFlag;

pub(crate) use quadra::{exchange_alone, trader_alone};
use run::Run;
use tickwire_console::failure::{Code, Failure};
use tickwire_console::similar::similar;

#[derive(Subcommand, Debug)]
pub(crate) enum LabCommand {
    /// The scenarios that come with the program, and those in a folder
    #[command(after_help = "\
Examples:
  tickwire lab list
  tickwire lab list my/scenarios

Exit codes: 0 shown, 2 a file is wrong, 3 a folder cannot be read.")]
    List(ListArgs),
    /// Runs a scenario and keeps everything in a new folder: raw histograms, samples, machine, configuration,
    /// command, report
    #[command(after_help = "\
Examples:
  tickwire lab run quadra
      as the file says: scaled down, some minutes
  tickwire lab run quadra --full
      at the length of the published measurement
  tickwire lab run my/quadra.toml --set run.samples=5000 \\
      --set load.intervals_us='[500]'
  sudo tickwire lab run cep --namespaces \\
      --set 'settings.backends=[\"socket\",\"xdp\",\"xdp+delegated\"]'
      by sockets and past the kernel, side by side
  tickwire lab run quadra --print
      checks it and prints it with every default filled in

A setting is written as in the file, dotted: run.samples, load.shape, cores.trader, settings.backends. See docs/lab.md.

Exit codes: 0 all that was checked held, 1 a check failed (the results are kept), 2 the scenario or the command line is wrong, \
3 the system refused something, 130 Ctrl-C (what was measured until then is kept, and said to be less).")]
    Run(RunArgs),
    /// Compares two runs case by case: ratios of percentiles with 95 % intervals over repetitions
    #[command(after_help = "\
Examples:
  tickwire lab compare results/before results/after
  tickwire lab compare before after --fail-above 1.05 --at p99
      for a CI: exit code 1 for a regression
  tickwire lab compare before after --json | jq '.rows[].verdict'

\"no difference shown\": the interval of the ratio covers 1. --fail-above fails for a case whose ratio is above the limit while its \
whole interval is above 1. How the interval is found: docs/lab.md.

Exit codes: 0 compared, 1 a regression, 2 the command line is wrong or no case is in both, 3 a folder cannot be read.")]
    Compare(CompareArgs),
    /// Several runs of one scenario as one: what takes a day, measured a part at a time
    #[command(after_help = "\
Examples:
  tickwire lab run fix --full --set 'settings.traders=[\"tickwire\"]'
  tickwire lab run fix --full --set 'settings.traders=[\"quickfix-cpp\"]'
  tickwire lab join tickwire-lab/fix-20260131-120000 tickwire-lab/fix-20260201-120000

Cases of the same name have the repetitions of all, in the order in which the runs began; what differs in machine, version and \
configuration is noted.

Exit codes: 0 joined, and all that was checked held, 1 a check of a run had failed, 2 they are not of one scenario, 3 a folder cannot be \
read or written.")]
    Join(JoinArgs),
    /// Shows the report of a results folder again, or writes it
    #[command(after_help = "\
Examples:
  tickwire lab report tickwire-lab/quadra-20260131-120000
  tickwire lab report results --format html > report.html

Exit codes: 0 shown, 3 the folder cannot be read or is damaged.")]
    Report(ReportArgs),
}

#[derive(Args, Debug)]
pub(crate) struct ListArgs {
    /// Folders with scenario files beside those that come with the program
    #[arg(value_name = "DIR")]
    folders: Vec<PathBuf>,
}

#[derive(Args, Debug)]
pub(crate) struct RunArgs {
    /// A scenario file, or the name of one that comes with the program
    #[arg(value_name = "SCENARIO")]
    scenario: String,
    /// At the length of the published measurement: sets what `[full]` of the scenario says
    #[arg(long)]
    full: bool,
    /// Sets a value of the scenario, dotted (repeatable, after --full)
    #[arg(long, value_name = "KEY=VALUE", value_parser = parse_override)]
    set: Vec<(String, String)>,
    /// Both sides in network namespaces of their own, which the run makes and removes (takes root): as
    /// --set run.network="veth"
    #[arg(long)]
    namespaces: bool,
    /// Folder in which the results folder is made, NAME-YYYYMMDD-HHMMSS
    #[arg(long, default_value = "tickwire-lab", value_name = "DIR")]
    out: PathBuf,
    /// Check the scenario and print it with every default filled in; measure nothing
    #[arg(long)]
    print: bool,
    /// No progress on standard error
    #[arg(long)]
    quiet: bool,
}

#[derive(Args, Debug)]
pub(crate) struct CompareArgs {
    /// Results folder of the run that is the base
    #[arg(value_name = "A")]
    first: PathBuf,
    /// Results folder of the run that is judged
    #[arg(value_name = "B")]
    second: PathBuf,
    /// Fail (exit code 1) when B is shown to be slower by more than this factor
    #[arg(long, value_name = "RATIO", value_parser = parse_ratio)]
    fail_above: Option<f64>,
    /// The percentile that --fail-above looks at
    #[arg(long, default_value = "p99", value_name = "P", value_parser = PERCENTILES.map(|p| p.name))]
    at: String,
    /// Seed of the resampling: one seed, one answer
    #[arg(long, default_value_t = 1, value_name = "N")]
    seed: u64,
    /// As JSON
    #[arg(long)]
    json: bool,
}

#[derive(Args, Debug)]
pub(crate) struct JoinArgs {
    /// Results folders, which stay as they are
    #[arg(value_name = "DIR", required = true, num_args = 2..)]
    folders: Vec<PathBuf>,
    /// Folder in which the results folder is made, NAME-YYYYMMDD-HHMMSS
    #[arg(long, default_value = "tickwire-lab", value_name = "DIR")]
    out: PathBuf,
}

#[derive(Args, Debug)]
pub(crate) struct ReportArgs {
    /// Results folder
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    /// As what
    #[arg(long, value_enum, default_value_t = Format::Text, value_name = "F")]
    format: Format,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum Format {
    /// For the terminal
    Text,
    /// For a document
    Markdown,
    /// One file for a browser, with the pictures
    Html,
}

fn parse_override(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.trim().is_empty() => Ok((key.trim().into(), value.trim().into())),
        _ => Err("write KEY=VALUE, as run.samples=5000".into()),
    }
}

fn parse_ratio(text: &str) -> Result<f64, String> {
    let ratio = text.parse().ok().filter(|r| (0.1..=100.0).contains(r));
    ratio.ok_or("a ratio such as 1.05, from 0.1 to 100".into())
}

pub(crate) fn run(command: &LabCommand, stop: &StopFlag) -> Result<(), Failure> {
    match command {
        LabCommand::List(args) => list(args),
        LabCommand::Run(args) => measure(args, stop),
        LabCommand::Compare(args) => judge(args),
        LabCommand::Join(args) => join(args),
        LabCommand::Report(args) => show(args),
    }
}

fn list(args: &ListArgs) -> Result<(), Failure> {
    let mut table = Table::new("scenarios", &["", "kind", "what"]);
    let heading =
        |file: &str, text: &str| Heading::parse(text).map_err(|e| Failure::config(format!("{file}: {e}")));
    for text in kind::BUILT_IN {
        let h = heading("built in", text)?;
        table = table.row([h.name.to_string(), h.kind.clone(), h.about]);
    }
    for dir in &args.folders {
        let unreadable = |e| Failure::system(format!("cannot read the folder {}: {e}", dir.display()));
        let entries = fs::read_dir(dir).map_err(unreadable)?;
        let mut files: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
        files.retain(|path| path.extension().is_some_and(|e| e == "toml"));
        files.sort();
        for file in files {
            let name = file.display().to_string();
            let h = heading(&name, &read_text(&file)?)?;
            table = table.row([name, h.kind.clone(), h.about]);
        }
    }
    print!("{}", table.to_text(tickwire_console::terminal::width()));
    Ok(())
}

fn read_text(path: &Path) -> Result<String, Failure> {
    fs::read_to_string(path).map_err(|e| Failure::system(format!("cannot read {}: {e}", path.display())))
}

/// The text of a scenario: of a file, or of one that comes with the program.
/// The program `tickwire`, which is measured as it ships.
///
/// # Errors
/// It does not lie beside this one.
pub(crate) fn product(part: &str) -> Result<PathBuf, Failure> {
    tickwire_control::process::beside("tickwire").ok_or_else(|| {
        Failure::config(format!(
            "tickwire is not beside this program: build it with `cargo build --release`, the {part} that is measured is its own"
        ))
    })
}

fn find(name: &str) -> Result<(String, String), Failure> {
    let path = Path::new(name);
    if path.extension().is_some() || path.components().count() > 1 {
        return Ok((name.to_owned(), read_text(path)?));
    }
    let names = kind::BUILT_IN
        .iter()
        .filter_map(|text| Heading::parse(text).ok().map(|h| (h.name.to_string(), *text)));
    let known: Vec<(String, &str)> = names.collect();
    if let Some((_, text)) = known.iter().find(|(known, _)| known == name) {
        return Ok((name.to_owned(), (*text).to_owned()));
    }
    let meant = match similar(name, known.iter().map(|(known, _)| known.as_str())).as_slice() {
        [] => String::new(),
        near => format!("did you mean {}? ", near.join(" or ")),
    };
    Err(Failure::config(format!(
        "there is no scenario '{name}': {meant}`tickwire lab list` shows those there are; give a file as ./{name}.toml"
    )))
}

fn measure(args: &RunArgs, stop: &StopFlag) -> Result<(), Failure> {
    let (file, text) = find(&args.scenario)?;
    let mut set = args.set.clone();
    if args.namespaces {
        set.push(("run.network".to_owned(), "\"veth\"".to_owned()));
    }
    let ready = kind::read(&file, &text, args.full, &set)?;
    if args.print {
        print!("{}", ready.toml);
        return Ok(());
    }
    let heading = Heading::parse(&text).map_err(Failure::config)?;
    let folder = new_folder(&args.out, &heading.name.to_string())?;
    let record = RunRecord {
        scenario: heading.name.to_string(),
        kind: heading.kind,
        about: heading.about,
        command: command_line(),
        version: format!("tickwire {}", tickwire_console::version().text),
        commit: tickwire_console::version().commit.map(str::to_owned),
        scenario_toml: ready.toml,
        ..RunRecord::default()
    };
    let mut run = Run::begin(record, ready.section, folder.clone(), args.quiet, stop);
    let outcome = (ready.run)(&mut run);
    match &outcome {
        Err(failure) if failure.code == Code::Interrupted => run.note(format!(
            "INTERRUPTED: {}. What had been measured until then is in this report; it is less than the scenario asks for.",
            failure.message
        )),
        _ => {}
    }
    if let Err(failure) = &outcome {
        run.check("the scenario ran to its end", false, failure.message.clone());
    }
    let record = run.finish();
    keep(&folder, &record)?;
    outcome.map_err(|failure| match failure.code {
        Code::Interrupted => Failure::interrupted(format!(
            "{}; what was measured until then is in {}",
            failure.message,
            folder.display()
        )),
        _ => failure,
    })?;
    verdict(&record)
}

/// Makes one results folder of several.
fn join(args: &JoinArgs) -> Result<(), Failure> {
    let parts = args.folders.iter().map(|folder| load(folder));
    let parts = parts.collect::<Result<Vec<_>, _>>()?;
    let record = RunRecord::join(parts).map_err(Failure::config)?;
    let folder = new_folder(&args.out, &record.scenario)?;
    keep(&folder, &record)?;
    verdict(&record)
}

/// Writes a run and says what it found and where it is.
fn keep(folder: &Path, record: &RunRecord) -> Result<(), Failure> {
    write(folder, record)?;
    print!(
        "{}",
        terminal_summary(record, tickwire_console::terminal::width())
    );
    println!("results: {}", folder.display());
    Ok(())
}

/// A failure if anything that was checked did not hold.
fn verdict(record: &RunRecord) -> Result<(), Failure> {
    match record.failures().as_slice() {
        [] => Ok(()),
        [first, ..] => Err(Failure::check(format!(
            "{} of {} checks failed; first: {}: {}",
            record.failures().len(),
            record.checks.len(),
            first.name,
            first.found
        ))),
    }
}

/// Arguments only: the path of the program says nothing about the run.
fn command_line() -> String {
    let quoted = |argument: String| match argument.contains([' ', '"', '[', '$', '*']) {
        true => format!("'{argument}'"),
        false => argument,
    };
    let arguments: Vec<String> = std::env::args().skip(1).map(quoted).collect();
    format!("tickwire {}", arguments.join(" "))
}

/// A moment in words, UTC.
fn utc(at: Nanos, format: &str) -> String {
    jiff::Timestamp::from_nanosecond(i128::from(at.0))
        .map(|time| time.strftime(format).to_string())
        .unwrap_or_default()
}

/// Makes a folder that did not exist.
fn new_folder(parent: &Path, name: &str) -> Result<PathBuf, Failure> {
    let refused = |path: &Path, e: std::io::Error| {
        Failure::system(format!("cannot make the results folder {}: {e}", path.display()))
    };
    files::create_folders(parent).map_err(|e| refused(parent, e))?;
    let now = jiff::Timestamp::now().strftime("%Y%m%d-%H%M%S");
    let base = parent.join(format!("{name}-{now}"));
    let candidates = (1..1_000).map(|n| match n {
        1 => base.clone(),
        n => PathBuf::from(format!("{}-{n}", base.display())),
    });
    for path in candidates {
        match files::create_folder(&path) {
            Ok(()) => return Ok(path),
            Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(e) => return Err(refused(&path, e)),
        }
    }
    Err(Failure::system(format!(
        "there are 999 folders like {} already",
        base.display()
    )))
}

fn write(folder: &Path, record: &RunRecord) -> Result<(), Failure> {
    for (name, bytes) in record.files() {
        let path = folder.join(name);
        let inner = path.parent().unwrap_or(folder);
        files::create_folders(inner)
            .and_then(|()| files::write(&path, bytes))
            .map_err(|e| Failure::system(format!("cannot write {}: {e}", path.display())))?;
    }
    Ok(())
}

/// Reads a results folder.
fn load(folder: &Path) -> Result<RunRecord, Failure> {
    let read = |name: &str| fs::read(folder.join(name)).map_err(|e| format!("{name}: {e}"));
    RunRecord::from_files(read).map_err(|e| {
        let manifest = folder::MANIFEST;
        Failure::system(format!(
            "{} is no results folder that can be read (one has {manifest}): {e}",
            folder.display()
        ))
    })
}

fn show(args: &ReportArgs) -> Result<(), Failure> {
    let report = report_of(&load(&args.folder)?);
    match args.format {
        Format::Text => print!("{}", report.to_text(tickwire_console::terminal::width())),
        Format::Markdown => print!("{}", report.to_markdown()),
        Format::Html => print!("{}", report.to_html()),
    }
    Ok(())
}

fn judge(args: &CompareArgs) -> Result<(), Failure> {
    let (first, second) = (load(&args.first)?, load(&args.second)?);
    let comparison = compare(&first, &second, args.seed);
    if comparison.rows.is_empty() {
        return Err(Failure::config(format!(
            "no case has samples in both runs: {}",
            comparison.unmatched.join("; ")
        )));
    }
    let regressions = args
        .fail_above
        .map(|limit| (limit, comparison.regressions(&args.at, limit)));
    if args.json {
        println!("{}", comparison_json(&comparison));
    } else {
        let title = format!("{} against {}", args.second.display(), args.first.display());
        print!(
            "{}",
            comparison
                .table(&title)
                .to_text(tickwire_console::terminal::width())
        );
        comparison
            .unmatched
            .iter()
            .for_each(|sentence| println!("{sentence}"));
        for line in differences(&first, &second) {
            println!("note: {line}");
        }
    }
    match regressions {
        Some((limit, slower)) if !slower.is_empty() => {
            let named: Vec<String> = slower
                .iter()
                .map(|row| {
                    format!(
                        "'{}' {:.3} ({:.3} to {:.3})",
                        row.case, row.ratio, row.interval.0, row.interval.1
                    )
                })
                .collect();
            Err(Failure::check(format!(
                "slower than {limit} times at {}: {}",
                args.at,
                named.join(", ")
            )))
        }
        _ => Ok(()),
    }
}

fn comparison_json(comparison: &Comparison) -> serde_json::Value {
    let rows: Vec<serde_json::Value> = comparison
        .rows
        .iter()
        .map(|row| {
            json!({
                "case": row.case,
                "percentile": row.percentile.name,
                "first_ns": row.a_ns,
                "second_ns": row.b_ns,
                "ratio": row.ratio,
                "interval": [row.interval.0, row.interval.1],
                "repetitions": [row.repetitions.0, row.repetitions.1],
                "verdict": format!("{:?}", row.verdict).to_lowercase(),
                "care": row.few,
            })
        })
        .collect();
    json!({ "rows": rows, "unmatched": comparison.unmatched })
}
