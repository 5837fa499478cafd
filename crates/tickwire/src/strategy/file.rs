//! `tickwire strategy`: a strategy in one file.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::{Args, Subcommand};
use serde::{Deserialize, Deserializer};
use tickwire_console::failure::Failure;
use tickwire_language::{
    Diagnostic, Interpreter, Machine, Program, compile, counts, explain, format, run_test,
};
use tickwire_market::{Instrument, InstrumentId, MarketEvent, TradingStatus};
use tickwire_runtime::signal::StopFlag;
use tickwire_trading::strategy::{BookChange, Context, OrderEvent, Strategy, Subscription, TimerId, Trade};

use super::BacktestArgs;
use super::hardware::{self, CosimArgs, RtlArgs};

/// What runs a file's code.
#[cfg(feature = "native")]
pub(super) type Chosen = tickwire_language_native::Native;
#[cfg(not(feature = "native"))]
pub(super) type Chosen = Interpreter;

/// What is done with a strategy file.
#[derive(Subcommand, Debug)]
pub enum FileCommand {
    /// Says what is wrong with strategy files, and how much each handler does in the worst case
    #[command(after_help = "\
Exit codes: 0 nothing is wrong, 1 something is, 3 a file cannot be read.

Example:
  tickwire strategy check examples/strategies/best_offer_taker.tw")]
    Check(FilesArgs),
    /// Writes strategy files in their usual form
    #[command(after_help = "\
Exit codes: 0 done, 1 a file is no strategy, or with --check has another form, 3 a file cannot be read or written.

Example:
  tickwire strategy fmt --check examples/strategies/best_offer_taker.tw")]
    Fmt(FmtArgs),
    /// Runs the tests that are written in strategy files
    #[command(after_help = "\
Exit codes: 0 all passed, 1 one failed or a file is wrong, 3 a file cannot be read.

Example:
  tickwire strategy test examples/strategies/best_offer_taker.tw")]
    Test(FilesArgs),
    /// Says in sentences what a strategy file does
    #[command(after_help = "\
Example:
  tickwire strategy explain examples/strategies/best_offer_taker.tw")]
    Explain(FileArgs),
    /// Runs a strategy file on recorded market data, in virtual time
    #[command(after_help = "\
[strategy] of the configuration, and --set, are the file's parameters; all else is as docs/write-a-strategy.md has it.

Example:
  tickwire strategy backtest examples/strategies/imbalance_taker.tw -c examples/strategies/backtest.toml sample.pcap")]
    Backtest(Box<FileBacktestArgs>),
    /// Runs a strategy file live: multicast in, orders out over FIX
    #[command(after_help = "\
[strategy] of the configuration are the file's parameters; limits and sessions are as for `tickwire trade`.

Example:
  tickwire strategy run examples/strategies/imbalance_taker.tw -c examples/strategies/backtest.toml")]
    Run(FileRunArgs),
    /// Writes a strategy file as a core in hardware: SystemVerilog, constraints, registers
    #[command(after_help = "\
What a core does not have is said with its place in the file: docs/hardware.md.
Exit codes: 0 written, 1 the file is wrong or a core does not carry it, 3 a file cannot be read or written.

Example:
  tickwire strategy rtl examples/hardware/core_taker.tw -o core")]
    Rtl(RtlArgs),
    /// Compares a strategy file in software with its simulated core: every order, every book, every counter
    #[command(after_help = "\
Needs Verilator and a C++ compiler (Debian: verilator, g++).
Exit codes: 0 nothing differs, 1 something does, 3 a file cannot be read or written, or Verilator is not there.

Example:
  tickwire strategy cosim examples/hardware/core_taker.tw day.pcap --loss 1 --histogram core.hgrm")]
    Cosim(CosimArgs),
}

/// Several files.
#[derive(Args, Debug)]
pub struct FilesArgs {
    /// Strategy files
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
}

/// One file.
#[derive(Args, Debug)]
pub struct FileArgs {
    /// Strategy file
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

/// What is formatted.
#[derive(Args, Debug)]
pub struct FmtArgs {
    /// Write nothing; fail where a file has another form
    #[arg(long)]
    check: bool,
    /// Strategy files
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
}

/// What is backtested.
#[derive(Args, Debug)]
pub struct FileBacktestArgs {
    /// Strategy file, or the name of a built-in one: best_offer_taker, iceberg_detector, imbalance_taker,
    /// stale_quote_sniper, twap_slice, two_sided_quoter
    #[arg(value_name = "STRATEGY")]
    file: PathBuf,
    #[command(flatten)]
    args: BacktestArgs,
}

/// What is run.
#[derive(Args, Debug)]
pub struct FileRunArgs {
    /// Strategy file
    #[arg(value_name = "STRATEGY")]
    file: PathBuf,
    /// Configuration (TOML)
    #[arg(short, long, value_name = "FILE")]
    config: PathBuf,
    /// Folder for books, orders and latencies at the end
    #[arg(long, value_name = "DIR")]
    results: Option<PathBuf>,
}

/// Does what `tickwire strategy` is asked for.
///
/// # Errors
/// The file is wrong, a scenario fails, or a run ends with a failure.
pub fn run(command: &FileCommand, stop: &StopFlag) -> Result<(), Failure> {
    match command {
        FileCommand::Check(args) => each(&args.files, |_, _, program| {
            print!("{}", counts(program));
            true
        }),
        FileCommand::Fmt(args) => fmt(args),
        FileCommand::Test(args) => each(&args.files, tests),
        FileCommand::Explain(args) => each(std::slice::from_ref(&args.file), |_, _, program| {
            print!("{}", explain(program));
            true
        }),
        FileCommand::Rtl(args) => hardware::rtl(args),
        FileCommand::Cosim(args) => hardware::cosim(args),
        FileCommand::Backtest(own) => {
            super::backtest::run::<FromFile>(&with_file(&own.args, &own.file)?, stop)
        }
        FileCommand::Run(args) => {
            crate::sides::side(&args.config, args.results.as_deref(), None, |config, results| {
                let mut own = config.clone();
                own.strategy
                    .insert("file".to_string(), path_text(&args.file)?.into());
                super::live::<FromFile>(&own, &args.config, results, false, stop)
            })
        }
    }
}

fn path_text(path: &Path) -> Result<String, Failure> {
    let text = path.to_str().map(str::to_string);
    text.ok_or_else(|| Failure::config(format!("{}: the name of the file is no text", path.display())))
}

pub(super) fn read(path: &Path) -> Result<String, Failure> {
    std::fs::read_to_string(path).map_err(|e| Failure::system(format!("cannot read {}: {e}", path.display())))
}

/// Compiles a file; files of tables are read from where it lies.
pub(super) fn compiled(path: &Path, source: &str) -> Result<Program, Vec<Diagnostic>> {
    let folder = path.parent().unwrap_or(Path::new("")).to_path_buf();
    compile(source, &|name| {
        std::fs::read_to_string(folder.join(name)).map_err(|e| e.to_string())
    })
}

pub(super) fn told(path: &Path, source: &str, wrong: &[Diagnostic]) {
    for found in wrong {
        eprintln!("{}", found.render(&path.to_string_lossy(), source));
    }
}

/// Every file that can be compiled; what cannot is said.
fn each(files: &[PathBuf], mut with: impl FnMut(&Path, &str, &Program) -> bool) -> Result<(), Failure> {
    let mut failed = 0;
    for path in files {
        let source = read(path)?;
        let is_right = match compiled(path, &source) {
            Ok(program) => with(path, &source, &program),
            Err(wrong) => {
                told(path, &source, &wrong);
                false
            }
        };
        failed += usize::from(!is_right);
    }
    match failed {
        0 => Ok(()),
        _ => Err(Failure::check(format!(
            "{failed} of {} files failed",
            files.len()
        ))),
    }
}

fn tests(path: &Path, source: &str, program: &Program) -> bool {
    let mut failed = 0;
    for test in &program.tests {
        match run_test(program, test, Interpreter::new) {
            Ok(()) => println!("{}: {:?} passed", path.display(), test.name),
            Err(found) => {
                failed += 1;
                println!("{}: {:?} FAILED", path.display(), test.name);
                told(path, source, &[found]);
            }
        }
    }
    println!(
        "{}: {} passed, {failed} failed",
        path.display(),
        program.tests.len() - failed
    );
    failed == 0
}

fn fmt(args: &FmtArgs) -> Result<(), Failure> {
    let mut failed = 0;
    for path in &args.files {
        let source = read(path)?;
        match format(&source) {
            Ok(text) if text == source => {}
            Ok(_) if args.check => {
                println!(
                    "{} has another form: `tickwire strategy fmt` writes it",
                    path.display()
                );
                failed += 1;
            }
            Ok(text) => tickwire_runtime::files::write(path, text)
                .map_err(|e| Failure::system(format!("cannot write {}: {e}", path.display())))?,
            Err(wrong) => {
                told(path, &source, &wrong);
                failed += 1;
            }
        }
    }
    match failed {
        0 => Ok(()),
        _ => Err(Failure::check(format!(
            "{failed} of {} files failed",
            args.files.len()
        ))),
    }
}

/// The strategy files that the program has in itself, by name.
pub const BUILT_IN: [(&str, &str); 6] = [
    (
        "best_offer_taker",
        include_str!("../../strategies/best_offer_taker.tw"),
    ),
    (
        "iceberg_detector",
        include_str!("../../strategies/iceberg_detector.tw"),
    ),
    (
        "imbalance_taker",
        include_str!("../../strategies/imbalance_taker.tw"),
    ),
    (
        "stale_quote_sniper",
        include_str!("../../strategies/stale_quote_sniper.tw"),
    ),
    ("twap_slice", include_str!("../../strategies/twap_slice.tw")),
    (
        "two_sided_quoter",
        include_str!("../../strategies/two_sided_quoter.tw"),
    ),
];

/// Runs a strategy file, or a built-in one by its name, on recordings, and gives the result instead of
/// printing it. As [`super::tested`], which says more.
///
/// # Errors
/// As [`super::tested`]; the strategy file is wrong, or there is none.
pub fn tested(file: &Path, args: &BacktestArgs, stop: &StopFlag) -> Result<super::BacktestResult, Failure> {
    super::tested::<FromFile>(&with_file(args, file)?, stop)
}

fn with_file(args: &BacktestArgs, file: &Path) -> Result<BacktestArgs, Failure> {
    let mut args = args.clone();
    args.set
        .push(format!("file={}", toml::Value::from(path_text(file)?)));
    Ok(args)
}

/// The text of a strategy: of a built-in one by its name, else of the file.
fn source_of(path: &Path) -> Result<String, String> {
    let built_in = BUILT_IN.iter().find(|(name, _)| Path::new(name) == path);
    if let Some((_, source)) = built_in {
        return Ok((*source).to_string());
    }
    std::fs::read_to_string(path).map_err(|e| {
        let is_name = path.components().count() == 1 && path.extension().is_none();
        let known = BUILT_IN.map(|(name, _)| name).join(", ");
        match is_name {
            true => format!("cannot read {}: {e}; built in are {known}", path.display()),
            false => format!("cannot read {}: {e}", path.display()),
        }
    })
}

/// A strategy file as a host takes it: the table `[strategy]` with `file`, and its parameters.
struct FromFile(Machine<Chosen>);

impl<'de> Deserialize<'de> for FromFile {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<FromFile, D::Error> {
        let table = toml::Table::deserialize(deserializer)?;
        made(&table).map(FromFile).map_err(serde::de::Error::custom)
    }
}

fn made(table: &toml::Table) -> Result<Machine<Chosen>, String> {
    let file = table.get("file").and_then(toml::Value::as_str);
    let path = Path::new(file.ok_or("`file` names the strategy file")?);
    let source = source_of(path)?;
    let mut program = compiled(path, &source).map_err(|wrong| {
        let shown = wrong.iter().map(|d| d.render(&path.to_string_lossy(), &source));
        format!(
            "the strategy file is wrong:\n{}",
            shown.collect::<Vec<_>>().join("\n")
        )
    })?;
    for (name, value) in table.iter().filter(|(name, _)| *name != "file") {
        let text = match value {
            toml::Value::String(text) => text.clone(),
            toml::Value::Integer(n) => n.to_string(),
            toml::Value::Boolean(b) => b.to_string(),
            _ => {
                return Err(format!(
                    "{name}: write whole numbers and true or false as they are, all else in quotes: \"0.01\", \"5s\""
                ));
            }
        };
        program.set(name, &text)?;
    }
    let program = Arc::new(program);
    let engine = engine(&program)?;
    Ok(Machine::new(program, engine))
}

#[cfg(feature = "native")]
pub(super) fn engine(program: &Program) -> Result<Chosen, String> {
    Chosen::new(program).map_err(|e| e.to_string())
}

#[cfg(not(feature = "native"))]
pub(super) fn engine(program: &Program) -> Result<Chosen, String> {
    Ok(Interpreter::new(program))
}

impl Strategy for FromFile {
    fn subscriptions(&self) -> Vec<Subscription> {
        self.0.subscriptions()
    }
    fn on_start(&mut self, ctx: &mut Context<'_>) {
        self.0.on_start(ctx);
    }
    fn on_instrument(&mut self, ctx: &mut Context<'_>, instrument: &Instrument) {
        self.0.on_instrument(ctx, instrument);
    }
    #[inline]
    fn on_book(&mut self, ctx: &mut Context<'_>, change: &BookChange) {
        self.0.on_book(ctx, change);
    }
    fn on_trade(&mut self, ctx: &mut Context<'_>, trade: &Trade) {
        self.0.on_trade(ctx, trade);
    }
    fn on_quote(&mut self, ctx: &mut Context<'_>, quote: &MarketEvent) {
        self.0.on_quote(ctx, quote);
    }
    fn on_imbalance(&mut self, ctx: &mut Context<'_>, imbalance: &MarketEvent) {
        self.0.on_imbalance(ctx, imbalance);
    }
    fn on_status(&mut self, ctx: &mut Context<'_>, instrument: InstrumentId, status: TradingStatus) {
        self.0.on_status(ctx, instrument, status);
    }
    fn on_stale(&mut self, ctx: &mut Context<'_>, instrument: InstrumentId) {
        self.0.on_stale(ctx, instrument);
    }
    fn on_live(&mut self, ctx: &mut Context<'_>, instrument: InstrumentId) {
        self.0.on_live(ctx, instrument);
    }
    fn on_order(&mut self, ctx: &mut Context<'_>, event: &OrderEvent) {
        self.0.on_order(ctx, event);
    }
    fn on_timer(&mut self, ctx: &mut Context<'_>, timer: TimerId) {
        self.0.on_timer(ctx, timer);
    }
    fn on_command(&mut self, ctx: &mut Context<'_>, words: &str) {
        self.0.on_command(ctx, words);
    }
    fn on_stop(&mut self, ctx: &mut Context<'_>) {
        self.0.on_stop(ctx);
    }
    fn figures(&self, tell: &mut dyn FnMut(&str, i64)) {
        self.0.figures(tell);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(text: &str) -> toml::Table {
        text.parse().expect("TOML")
    }

    #[test]
    fn a_configuration_names_the_file_and_sets_its_parameters() {
        let file = tickwire_testdata::workspace().join("examples/strategies/best_offer_taker.tw");
        let file = file.display();
        let machine = made(&table(&format!("file = \"{file}\"\nlot = 7\ncollar = 9"))).expect("it fits");
        assert_eq!(machine.program().params[0].value, 7);
        for (more, words) in [
            ("lots = 7", "did you mean lot?"),
            ("lot = 0", "outside the range"),
            ("lot = 1.5", "write whole numbers"),
        ] {
            let wrong = made(&table(&format!("file = \"{file}\"\n{more}"))).map(|_| ());
            assert!(wrong.clone().is_err_and(|e| e.contains(words)), "{wrong:?}");
        }
        assert!(made(&table("file = \"nowhere.tw\"")).is_err_and(|e| e.contains("nowhere.tw")));
        assert!(made(&table("")).is_err_and(|e| e.contains("`file` names")));
    }
}
