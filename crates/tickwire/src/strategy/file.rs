//! `tickwire strategy`: a strategy in one file.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, TryRecvError, channel};

use clap::{Args, Subcommand};
use serde::{Deserialize, Deserializer};
use tickwire_console::failure::Failure;
use tickwire_language::{
    Diagnostic, Interpreter, Machine, Program, compile, counts, explain, format, run_test,
};
use tickwire_market::{Instrument, InstrumentId, MarketEvent, TradingStatus};
use tickwire_node::live::Hosting;
use tickwire_node::trader;
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
    /// Answers an editor that speaks the language server protocol on standard input and output
    #[command(after_help = "\
What is wrong while one writes, the usual form, what a name means and where it is used, what a handler costs: editors/README.md.
Exit codes: 0 the editor said exit or closed its end, 1 what came was not the protocol.

Example (an editor starts it so):
  tickwire strategy server")]
    Server,
    /// Writes a strategy file as a core in hardware: SystemVerilog, constraints, registers
    #[command(after_help = "\
What a core does not have is said with its place in the file: docs/hardware.md.
Exit codes: 0 written, 1 the file is wrong or a core does not carry it, 3 a file cannot be read or written.

Example:
  tickwire strategy rtl examples/hardware/core_taker.tw -o core
  tickwire strategy rtl examples/hardware/core_moex.tw --venue moex --templates examples/moex-templates.xml --template X-OLR-DEMO --tick 0.0025 -o core-moex")]
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
        FileCommand::Server => tickwire_language_server::serve_stdio().map_err(Failure::check),
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
                let hosted = super::strategies::<FromFile>(&own, &args.config)?;
                let boxed = hosted.into_iter().map(Hosting::boxed).collect();
                trader::run_boxed(&own.node(), results, false, stop, boxed)
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
struct FromFile {
    machine: Machine<Chosen>,
    /// What it is made of, for when it is read again.
    table: toml::Table,
    /// A file that is read again and compiled, by a thread of its own.
    coming: Option<Receiver<Result<Program, String>>>,
}

impl<'de> Deserialize<'de> for FromFile {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<FromFile, D::Error> {
        let table = toml::Table::deserialize(deserializer)?;
        FromFile::made(table).map_err(serde::de::Error::custom)
    }
}

impl FromFile {
    fn made(table: toml::Table) -> Result<FromFile, String> {
        Ok(FromFile {
            machine: machine_of(program_of(&table)?)?,
            table,
            coming: None,
        })
    }

    /// An operator wants the file as it is now. It is read and compiled beside the trading thread.
    #[cold]
    fn reload(&mut self, ctx: &Context<'_>) {
        let refused = match (open(ctx), &self.coming) {
            (Some(open), _) => Some(open),
            (None, Some(_)) => Some("it is being read already".to_string()),
            (None, None) => None,
        };
        if let Some(why) = refused {
            return self.told(&format!("is not reloaded: {why}"));
        }
        let table = self.table.clone();
        let (tell, hears) = channel();
        // Who hears is there until it has heard.
        let started =
            tickwire_runtime::affinity::beside("reload", move || drop(tell.send(program_of(&table))));
        match started {
            Ok(_) => self.coming = Some(hears),
            Err(e) => self.told(&format!("is not reloaded: cannot start a thread: {e}")),
        }
    }

    /// Whether the file that is read again is there, and what becomes of it.
    #[cold]
    fn look(&mut self, ctx: &mut Context<'_>) {
        let Some(coming) = &self.coming else { return };
        let found = match coming.try_recv() {
            Err(TryRecvError::Empty) => return,
            Err(TryRecvError::Disconnected) => Err("the thread that read it has ended".to_string()),
            Ok(found) => found,
        };
        self.coming = None;
        match found.and_then(|program| self.replaced(program, ctx)) {
            Ok(()) => self.told("is reloaded: its state begins anew"),
            Err(why) => self.told(&format!("is not reloaded: {why}; the one before goes on")),
        }
    }

    fn replaced(&mut self, program: Program, ctx: &mut Context<'_>) -> Result<(), String> {
        if let Some(open) = open(ctx) {
            return Err(open);
        }
        let timers = self.machine.program().timers.len();
        let mut next = machine_of(program)?;
        next.take_over(&self.machine)
            .map_err(|symbol| format!("nobody tells of {symbol}, which it did not use before: start anew"))?;
        self.machine = next;
        for timer in 0..timers {
            ctx.stop_timer(TimerId(timer as u8));
        }
        self.machine.on_start(ctx);
        Ok(())
    }

    fn told(&self, what: &str) {
        let file = self.table.get("file").and_then(toml::Value::as_str);
        tickwire_console::warn(format_args!("{} {what}", file.unwrap_or_default()));
    }
}

/// The word that has a file read again, unless it has a command of that name.
const RELOAD: &str = "reload";

/// What is open, in words; state that begins anew would know nothing of it.
fn open(ctx: &Context<'_>) -> Option<String> {
    match ctx.open_orders().count() {
        0 => None,
        1 => Some("an order is open".into()),
        count => Some(format!("{count} orders are open")),
    }
}

/// What a table names: the file, compiled, with its parameters.
fn program_of(table: &toml::Table) -> Result<Program, String> {
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
    Ok(program)
}

fn machine_of(program: Program) -> Result<Machine<Chosen>, String> {
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
        self.machine.subscriptions()
    }
    fn on_start(&mut self, ctx: &mut Context<'_>) {
        self.machine.on_start(ctx);
    }
    fn on_instrument(&mut self, ctx: &mut Context<'_>, instrument: &Instrument) {
        self.machine.on_instrument(ctx, instrument);
    }
    #[inline]
    fn on_book(&mut self, ctx: &mut Context<'_>, change: &BookChange) {
        self.machine.on_book(ctx, change);
    }
    fn on_trade(&mut self, ctx: &mut Context<'_>, trade: &Trade) {
        self.machine.on_trade(ctx, trade);
    }
    fn on_quote(&mut self, ctx: &mut Context<'_>, quote: &MarketEvent) {
        self.machine.on_quote(ctx, quote);
    }
    fn on_imbalance(&mut self, ctx: &mut Context<'_>, imbalance: &MarketEvent) {
        self.machine.on_imbalance(ctx, imbalance);
    }
    fn on_status(&mut self, ctx: &mut Context<'_>, instrument: InstrumentId, status: TradingStatus) {
        self.machine.on_status(ctx, instrument, status);
    }
    fn on_stale(&mut self, ctx: &mut Context<'_>, instrument: InstrumentId) {
        self.machine.on_stale(ctx, instrument);
    }
    fn on_live(&mut self, ctx: &mut Context<'_>, instrument: InstrumentId) {
        self.machine.on_live(ctx, instrument);
    }
    fn on_order(&mut self, ctx: &mut Context<'_>, event: &OrderEvent) {
        self.machine.on_order(ctx, event);
    }
    fn on_timer(&mut self, ctx: &mut Context<'_>, timer: TimerId) {
        self.machine.on_timer(ctx, timer);
    }
    fn on_command(&mut self, ctx: &mut Context<'_>, words: &str) {
        let own = &self.machine.program().commands;
        match words.trim() == RELOAD && !own.iter().any(|known| known == RELOAD) {
            true => self.reload(ctx),
            false => self.machine.on_command(ctx, words),
        }
    }
    #[inline]
    fn on_turn(&mut self, ctx: &mut Context<'_>) {
        if self.coming.is_some() {
            self.look(ctx);
        }
    }
    fn on_stop(&mut self, ctx: &mut Context<'_>) {
        self.machine.on_stop(ctx);
    }
    fn figures(&self, tell: &mut dyn FnMut(&str, i64)) {
        self.machine.figures(tell);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};
    use tickwire_market::{
        EventFlags, EventKind, EventSink, OrderId, Price, SeqNo, Side, Symbol, Venue, Volume,
    };
    use tickwire_node::hot::HotPath;
    use tickwire_node::live::Live;
    use tickwire_node::memory::{self, MemoryOut};
    use tickwire_node::trader::Rule;
    use tickwire_runtime::clock::Clock;

    fn table(text: &str) -> toml::Table {
        text.parse().expect("TOML")
    }

    #[test]
    fn a_configuration_names_the_file_and_sets_its_parameters() {
        let file = tickwire_testdata::workspace().join("examples/strategies/best_offer_taker.tw");
        let file = file.display();
        let made = |text: &str| FromFile::made(table(text)).map(|made| made.machine);
        let machine = made(&format!("file = \"{file}\"\nlot = 7\ncollar = 9")).expect("it fits");
        assert_eq!(machine.program().params[0].value, 7);
        for (more, words) in [
            ("lots = 7", "did you mean lot?"),
            ("lot = 0", "outside the range"),
            ("lot = 1.5", "write whole numbers"),
        ] {
            let wrong = made(&format!("file = \"{file}\"\n{more}")).map(|_| ());
            assert!(wrong.clone().is_err_and(|e| e.contains(words)), "{wrong:?}");
        }
        assert!(made("file = \"nowhere.tw\"").is_err_and(|e| e.contains("nowhere.tw")));
        assert!(made("").is_err_and(|e| e.contains("`file` names")));
    }

    /// Buys at every new best offer, so many; `more` beside.
    fn buyer(lot: u32, symbol: &str, more: &str) -> String {
        format!(
            "strategy buyer\n\nparam lot: qty = {lot} in 1..10000\n\ninstrument it = \"{symbol}\"\n\nstate last: price? = none\n\n\
             on book it when live(it) {{\n  if let ask = it.ask[0].price {{\n    if ask != last {{\n      last = ask\n      buy it lot @ ask ioc\n    }}\n  }}\n}}\n{more}"
        )
    }

    /// A host in memory with a market that moves.
    struct Rig {
        hot: HotPath<MemoryOut, false, Live<FromFile>>,
        file: PathBuf,
        seq: u64,
    }

    impl Rig {
        fn start(file: PathBuf) -> Rig {
            let strategy =
                FromFile::made(table(&format!("file = \"{}\"", file.display()))).expect("it is right");
            let symbol = Symbol::new(b"AAPL").expect("a symbol");
            let hot = memory::strategy_path(strategy, memory::books(1), symbol, Clock::calibrate());
            let mut rig = Rig {
                hot: hot.expect("it logs on"),
                file,
                seq: 0,
            };
            rig.event(EventKind::Recovered, 0, Side::Bid, 0);
            rig.event(EventKind::Add, 1, Side::Bid, 9_000);
            // A price to judge others by, which the first lacks.
            rig.event(EventKind::Add, 2, Side::Ask, 10_000);
            rig
        }

        fn event(&mut self, kind: EventKind, order: u64, side: Side, cents: u32) {
            let instrument = match kind {
                EventKind::Recovered => InstrumentId::WHOLE_FEED,
                _ => InstrumentId(1),
            };
            self.hot.on_event(&MarketEvent {
                seq: SeqNo(self.seq),
                kind,
                instrument,
                order_id: OrderId(order),
                side,
                price: Price::from_4dp(cents * 100),
                qty: Volume(100),
                venue: Venue::Nasdaq,
                flags: EventFlags::LAST,
                recv_ts: self.hot.clock.now(),
                ..MarketEvent::default()
            });
            self.seq += 1;
        }

        /// The offer improves; the quantity of the order that was sent because of it.
        fn bought(&mut self) -> Option<u32> {
            let sent = self.hot.sessions[0].out.orders;
            let cents = 9_990 - self.seq as u32;
            self.event(EventKind::Add, 10 + self.seq, Side::Ask, cents);
            let out = &self.hot.sessions[0].out;
            let text = String::from_utf8_lossy(out.last()).into_owned();
            let qty = text.split('\u{1}').find_map(|field| field.strip_prefix("38="));
            qty.filter(|_| out.orders > sent)?.parse().ok()
        }

        fn fill(&mut self) {
            let now = self.hot.clock.now();
            memory::answer(&mut self.hot, now);
        }

        fn says(&mut self, words: &str) {
            let now = self.hot.clock.now();
            Live::on_command(&mut self.hot, words, now);
        }

        fn is_reading(&self) -> bool {
            self.hot.rule.conductor().strategy().coming.is_some()
        }

        /// The loop turns until the file was read.
        fn turns(&mut self) {
            let begun = Instant::now();
            while self.is_reading() {
                assert!(begun.elapsed() < Duration::from_secs(60), "it is never read");
                let now = self.hot.clock.now();
                Live::on_turn(&mut self.hot, now);
                std::thread::yield_now();
            }
        }

        fn becomes(&self, text: &str) {
            std::fs::write(&self.file, text).expect("it is written");
        }
    }

    #[test]
    fn a_file_is_read_again_when_nothing_is_open_and_is_right() {
        let folder = std::env::temp_dir().join(format!("tickwire-reload-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let file = folder.join("buyer.tw");
        std::fs::write(&file, buyer(3, "AAPL", "")).expect("it is written");
        let mut rig = Rig::start(file);
        rig.fill();
        let three = Some(3);
        assert_eq!(rig.bought(), three);
        // An order is open: it is not even read.
        rig.becomes(&buyer(7, "AAPL", ""));
        rig.says("reload");
        assert!(!rig.is_reading());
        rig.fill();
        assert_eq!(rig.bought(), three);
        rig.fill();
        // One is open by the time that it was read.
        rig.says("reload");
        assert!(rig.is_reading());
        assert_eq!(rig.bought(), three);
        rig.turns();
        rig.fill();
        assert_eq!(rig.bought(), three, "the one before goes on");
        rig.fill();
        rig.says(" reload ");
        rig.turns();
        let seven = Some(7);
        assert_eq!(rig.bought(), seven, "it knows the instrument and its market");
        rig.fill();
        for wrong in ["strategy buyer\n\nparam lot", &*buyer(9, "MSFT", "")] {
            rig.becomes(wrong);
            rig.says("reload");
            rig.turns();
            assert_eq!(rig.bought(), seven, "{wrong}");
            rig.fill();
        }
        // A command of the file's own has the word.
        rig.becomes(&buyer(4, "AAPL", "\non command \"reload\" {\n  last = none\n}\n"));
        rig.says("reload");
        rig.turns();
        assert_eq!(rig.bought(), Some(4));
        rig.fill();
        rig.says("reload");
        assert!(!rig.is_reading());
        std::fs::remove_dir_all(folder).expect("it goes");
    }
}
