//! Every combination of values, on all cores; what is done is kept, and not done again.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use serde::de::DeserializeOwned;
use serde_json::Value;
use tickwire_console::failure::Failure;
use tickwire_lab::Table;
use tickwire_runtime::affinity::Cores;
use tickwire_runtime::signal::StopFlag;
use tickwire_trading::strategy::Strategy;

use super::shown::to_json;
use super::{BacktestArgs, named, one, value_of};
use crate::config::Config;
use crate::identity::{BEGIN, mixed};

/// Parameters with their values.
type Combination = Vec<(String, String)>;

/// Results by what they are of, and the file that they are kept in.
struct Kept {
    of: u64,
    rows: BTreeMap<String, Value>,
    file: Option<Mutex<std::fs::File>>,
}

/// Of everything beside the swept parameters that a result depends on: this program, the configuration, and
/// the files by name, length and time.
fn identity(args: &BacktestArgs, config: &Config) -> Result<u64, Failure> {
    let mut hash = BEGIN;
    let program = std::env::current_exe().and_then(std::fs::read);
    hash = mixed(hash, &program.unwrap_or_default());
    hash = mixed(hash, format!("{config:?}").as_bytes());
    for file in [&config.backtest.feed_histogram, &config.backtest.entry_histogram]
        .into_iter()
        .chain([
            &config.backtest.cancel_histogram,
            &config.backtest.response_histogram,
            &config.backtest.recorded_latencies,
        ])
        .flatten()
    {
        let path = args.config.parent().unwrap_or(Path::new("")).join(file);
        hash = mixed(hash, &std::fs::read(path).unwrap_or_default());
    }
    let said = (&args.feeds, args.protocol, &args.templates);
    hash = mixed(hash, format!("{said:?}").as_bytes());
    for file in args.feeds.iter().chain(&args.templates) {
        hash = mixed(hash, &std::fs::read(file).unwrap_or_default());
    }
    for file in &args.files {
        let about = std::fs::metadata(file)
            .map_err(|e| Failure::system(format!("cannot read {}: {e}", file.display())))?;
        let changed = about.modified().ok();
        hash = mixed(hash, format!("{file:?} {} {changed:?}", about.len()).as_bytes());
    }
    Ok(hash)
}

impl Kept {
    /// What is in the file already. A line that was cut off, by a kill or a full disk, is as if it were not
    /// there.
    fn open(args: &BacktestArgs, config: &Config) -> Result<Kept, Failure> {
        let Some(path) = &args.results else {
            return Ok(Kept {
                of: 0,
                rows: BTreeMap::new(),
                file: None,
            });
        };
        let of = identity(args, config)?;
        let failed = |e: std::io::Error| Failure::system(format!("{}: {e}", path.display()));
        let text = match std::fs::read_to_string(path) {
            Ok(text) => text,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => String::new(),
            Err(e) => return Err(failed(e)),
        };
        let mut rows = BTreeMap::new();
        for line in text.lines() {
            let Ok(row) = serde_json::from_str::<Value>(line) else {
                continue;
            };
            if row["of"] == format!("{of:016x}") {
                rows.insert(row["parameters"].to_string(), row);
            }
        }
        if !text.is_empty() {
            eprintln!(
                "{}: {} results of the same program, configuration and files are taken over",
                path.display(),
                rows.len()
            );
        }
        let mut file = tickwire_runtime::files::append(path).map_err(failed)?;
        if !text.is_empty() && !text.ends_with('\n') {
            file.write_all(b"\n").map_err(failed)?;
        }
        Ok(Kept {
            of,
            rows,
            file: Some(Mutex::new(file)),
        })
    }

    /// Keeps a result before anybody hears of it.
    fn keep(&self, row: &Value) -> std::io::Result<()> {
        let Some(file) = &self.file else { return Ok(()) };
        let mut row = row.clone();
        row["of"] = format!("{:016x}", self.of).into();
        let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
        file.write_all(format!("{row}\n").as_bytes())?;
        file.sync_data()
    }
}

/// Every combination of the values given.
fn combinations(args: &BacktestArgs) -> Result<Vec<Combination>, Failure> {
    let mut combinations: Vec<Combination> = vec![Vec::new()];
    for word in &args.sweep {
        let (name, values) = named(word, "--sweep")?;
        if combinations[0].iter().any(|(have, _)| have == name) {
            return Err(Failure::config(format!(
                "--sweep {word:?}: {name} is swept already"
            )));
        }
        let values: Vec<&str> = values.split(',').filter(|value| !value.is_empty()).collect();
        if values.is_empty() {
            return Err(Failure::config(format!("--sweep {word:?} has no value")));
        }
        combinations = combinations
            .iter()
            .flat_map(|before| {
                values.iter().map(move |value| {
                    let mut more = before.clone();
                    more.push((name.to_string(), value.to_string()));
                    more
                })
            })
            .collect();
    }
    Ok(combinations)
}

fn parameters(combination: &Combination) -> Value {
    let named = combination.iter();
    let named = named.map(|(name, value)| (name.clone(), Value::from(value.as_str())));
    named.collect::<serde_json::Map<_, _>>().into()
}

pub(super) fn run<S: Strategy + DeserializeOwned + 'static>(
    args: &BacktestArgs,
    config: &Config,
    stop: &StopFlag,
) -> Result<(), Failure> {
    let combinations = combinations(args)?;
    let kept = Kept::open(args, config)?;
    let (next, finished) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let results: Mutex<Vec<Option<Result<Value, Failure>>>> =
        Mutex::new((0..combinations.len()).map(|_| None).collect());
    let (begun, is_terminal) = (
        Instant::now(),
        tickwire_console::terminal::takes_movements(&std::io::stderr()),
    );
    let work = || {
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(combination) = combinations.get(at) else {
                return;
            };
            let known = kept.rows.get(&parameters(combination).to_string()).cloned();
            let done = match known {
                Some(row) => Ok(row),
                None => one_of::<S>(args, config, combination, &kept, stop),
            };
            let is_over = done.is_err();
            results.lock().unwrap_or_else(PoisonError::into_inner)[at] = Some(done);
            let finished = finished.fetch_add(1, Ordering::Relaxed) + 1;
            if is_terminal {
                let seconds = begun.elapsed().as_secs();
                eprint!("\r{finished} of {} runs, {seconds} s\x1b[K", combinations.len());
            }
            if is_over {
                // Of the rest nobody will hear.
                next.store(combinations.len(), Ordering::Relaxed);
                return;
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..Cores::count().usable().len().clamp(1, combinations.len()) {
            scope.spawn(work);
        }
    });
    if is_terminal {
        eprint!("\r\x1b[K");
    }
    let results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
    let mut rows = Vec::new();
    for done in results.into_iter().flatten() {
        let mut row = done?;
        if let Some(row) = row.as_object_mut() {
            row.remove("of");
        }
        rows.push(row);
    }
    tell(args, &combinations, rows)
}

fn one_of<S: Strategy + DeserializeOwned + 'static>(
    args: &BacktestArgs,
    config: &Config,
    combination: &Combination,
    kept: &Kept,
    stop: &StopFlag,
) -> Result<Value, Failure> {
    let mut own = config.clone();
    for (name, value) in combination {
        own.strategy.insert(name.clone(), value_of(value));
    }
    let done = one::<S>(args, &own, false, stop)?;
    let mut row = to_json(&done);
    row["parameters"] = parameters(combination);
    kept.keep(&row)
        .map_err(|e| Failure::system(format!("cannot keep a result: {e}")))?;
    Ok(row)
}

fn tell(args: &BacktestArgs, combinations: &[Combination], rows: Vec<Value>) -> Result<(), Failure> {
    let names = combinations[0].iter().map(|(name, _)| name.as_str());
    let columns = [
        "P&L", "fees", "drawdown", "orders", "fills", "as maker", "position",
    ];
    let columns: Vec<&str> = names.chain(columns).collect();
    let mut table = Table::new("sweep", &columns);
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_string);
    for (combination, row) in combinations.iter().zip(&rows) {
        let position: i64 = row["instruments"]
            .as_array()
            .map_or(0, |all| all.iter().filter_map(|i| i["position"].as_i64()).sum());
        let found = ["gain", "fees", "drawdown", "orders", "fills", "fills_as_maker"];
        let found = found.map(|name| text(&row[name]));
        let values = combination.iter().map(|(_, value)| value.clone());
        table = table.row(values.chain(found).chain([position.to_string()]));
    }
    match args.json {
        true => println!("{:#}", Value::from(rows.clone())),
        false => print!("{}", table.to_text(tickwire_console::terminal::width())),
    }
    match rows.iter().find_map(|row| row["fault"].as_str()) {
        Some(fault) => Err(Failure::check(fault)),
        None => Ok(()),
    }
}
