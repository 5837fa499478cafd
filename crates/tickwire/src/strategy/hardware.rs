//! `tickwire strategy rtl` and `cosim`: a strategy file as a core in hardware.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use tickwire_console::failure::Failure;
use tickwire_cosim::{Comparison, Cosim, CosimError, Day, Troubles};
use tickwire_language::Program;
use tickwire_market::Price;
use tickwire_rtl::{Moex, Target, Venue, generate};

use super::file::{compiled, engine, read, told};

/// What a core is made of.
#[derive(Args, Debug)]
pub(super) struct CoreArgs {
    /// Strategy file
    #[arg(value_name = "STRATEGY")]
    file: PathBuf,
    /// Another value of a parameter of the file
    #[arg(long, value_name = "NAME=VALUE")]
    set: Vec<String>,
    /// Whose feed the core reads and whose orders it writes
    #[arg(long, value_enum, default_value_t = CoreVenue::Nasdaq)]
    venue: CoreVenue,
    #[command(flatten)]
    moex: MoexArgs,
    /// Price step of the instrument
    #[arg(long, value_name = "PRICE", default_value = "0.01")]
    tick: String,
    /// Places for orders of the instrument; a third of them can be relied on
    #[arg(long, value_name = "N", default_value_t = 16_384, value_parser = clap::value_parser!(u32).range(256..=65_536))]
    orders: u32,
}

/// Whose feed and orders.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum, Debug)]
enum CoreVenue {
    /// ITCH 5.0 in, OUCH 5.0 out
    Nasdaq,
    /// The order log in FAST in, FIX 4.4 out
    Moex,
}

/// What a core for the Moscow Exchange is made from.
#[derive(Args, Debug)]
struct MoexArgs {
    /// MOEX: template file of the feed
    #[arg(long, value_name = "FILE")]
    templates: Option<PathBuf>,
    /// MOEX: the order log's template in it
    #[arg(long, value_name = "NAME", default_value = "X-OLR-CURR")]
    template: String,
    /// MOEX: board of an instrument without one behind an @ in its symbol
    #[arg(long, value_name = "BOARD", default_value = "CETS")]
    board: String,
    /// MOEX: SenderCompID of the orders; another one as long can be put into the frame later
    #[arg(long, value_name = "TEXT", default_value = "TICKWIRE")]
    sender: String,
    /// MOEX: TargetCompID
    #[arg(long, value_name = "TEXT", default_value = "MFIXTRADECURR")]
    target: String,
    /// MOEX: Account
    #[arg(long, value_name = "TEXT", default_value = "S01-00000F00")]
    account: String,
    /// MOEX: what ClOrdID begins with, before its eight digits
    #[arg(long, value_name = "TEXT", default_value = "TW")]
    prefix: String,
}

impl MoexArgs {
    fn moex(&self) -> Result<Moex, Failure> {
        let file = self.templates.as_ref().ok_or_else(|| {
            Failure::config("--venue moex needs --templates FILE, the feed's template file")
        })?;
        let moex = Moex::new(&read(file)?, &self.template)
            .map_err(|e| Failure::config(format!("{}: {e}", file.display())))?;
        Ok(Moex {
            board: self.board.clone(),
            sender: self.sender.clone(),
            target: self.target.clone(),
            account: self.account.clone(),
            prefix: self.prefix.clone(),
            ..moex
        })
    }
}

/// What is written.
#[derive(Args, Debug)]
pub struct RtlArgs {
    #[command(flatten)]
    core: CoreArgs,
    /// Folder for the design
    #[arg(short, long, value_name = "DIR")]
    output: PathBuf,
}

/// What is compared.
#[derive(Args, Debug)]
pub struct CosimArgs {
    #[command(flatten)]
    core: CoreArgs,
    /// Captures with the venue's feed
    #[arg(required = true, value_name = "CAPTURE")]
    captures: Vec<PathBuf>,
    /// Folder in which the core is made; what is there of the same core is used again
    #[arg(short, long, value_name = "DIR", default_value = "core-simulated")]
    output: PathBuf,
    /// What gaps, losses and damages follow from
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Frames that each line loses, in percent
    #[arg(long, value_name = "PERCENT", default_value_t = 1.0)]
    loss: f64,
    /// Frames that each line damages, in percent
    #[arg(long, value_name = "PERCENT", default_value_t = 0.1)]
    damage: f64,
    /// Clocks between frames of a line at most
    #[arg(long, value_name = "CLOCKS", default_value_t = 60)]
    gap: u64,
    /// Of a hundred clocks, those in which the transmitter is not ready
    #[arg(long, value_name = "PERCENT", default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=90))]
    busy: u32,
    /// Write the time of each order, packet's last word to order's first, as a histogram (.hgrm)
    #[arg(long, value_name = "FILE")]
    histogram: Option<PathBuf>,
    /// Clock rate by which clocks become nanoseconds: by default what 10 Gbit/s asks for, which is not what
    /// the core routes at today (docs/hardware.md)
    #[arg(long, value_name = "MHZ", default_value_t = 156.25)]
    mhz: f64,
}

impl CoreArgs {
    fn target(&self) -> Result<Target, Failure> {
        let tick: Price = self
            .tick
            .parse()
            .map_err(|_| Failure::config(format!("--tick {}: a price like 0.01 is wanted", self.tick)))?;
        Ok(Target {
            venue: match self.venue {
                CoreVenue::Nasdaq => Venue::Nasdaq,
                CoreVenue::Moex => Venue::Moex(self.moex.moex()?),
            },
            tick,
            orders: self.orders,
            ..Target::default()
        })
    }

    /// The file's text and its program with the parameters that were asked for.
    fn program(&self) -> Result<(String, Program), Failure> {
        let source = read(&self.file)?;
        let mut program = compiled(&self.file, &source).map_err(|wrong| {
            told(&self.file, &source, &wrong);
            Failure::check(format!("{} is wrong", self.file.display()))
        })?;
        for word in &self.set {
            let (name, value) = word
                .split_once('=')
                .ok_or_else(|| Failure::config(format!("--set {word}: NAME=VALUE is wanted")))?;
            program.set(name, value).map_err(Failure::config)?;
        }
        Ok((source, program))
    }
}

fn refused(file: &Path, refusals: &[tickwire_rtl::Refusal]) -> Failure {
    for refusal in refusals {
        eprintln!("{}:{}: {}", file.display(), refusal.line, refusal.message);
    }
    Failure::check(format!(
        "a core does not carry {}: {} reasons",
        file.display(),
        refusals.len()
    ))
}

/// `tickwire strategy rtl`.
pub(super) fn rtl(args: &RtlArgs) -> Result<(), Failure> {
    let (source, program) = args.core.program()?;
    let design = generate(&program, &source, &args.core.target()?)
        .map_err(|found| refused(&args.core.file, &found))?;
    let failed =
        |path: &Path, e: std::io::Error| Failure::system(format!("cannot write {}: {e}", path.display()));
    tickwire_runtime::files::create_folders(&args.output).map_err(|e| failed(&args.output, e))?;
    for file in &design.files {
        let path = args.output.join(&file.name);
        tickwire_runtime::files::write(&path, &file.text).map_err(|e| failed(&path, e))?;
    }
    for handler in &design.handlers {
        println!(
            "{}: {} clocks to its first order, {} orders at most, {} operations",
            handler.name, handler.clocks, handler.orders, handler.operations
        );
    }
    println!(
        "{} files in {}; README.md has the registers",
        design.files.len(),
        args.output.display()
    );
    Ok(())
}

/// `tickwire strategy cosim`.
pub(super) fn cosim(args: &CosimArgs) -> Result<(), Failure> {
    let (source, program) = args.core.program()?;
    let percent = |name: &str, value: f64| match (0.0..=100.0).contains(&value) {
        true => Ok((value * 10_000.0).round() as u32),
        false => Err(Failure::config(format!("{name} {value}: 0 to 100 is wanted"))),
    };
    let troubles = Troubles {
        seed: args.seed,
        loss: percent("--loss", args.loss)?,
        damage: percent("--damage", args.damage)?,
        gap_max: args.gap,
        busy_percent: args.busy,
        ..Troubles::default()
    };
    if !(args.mhz.is_finite() && args.mhz > 0.0) {
        return Err(Failure::config(format!(
            "--mhz {}: a number above 0 is wanted",
            args.mhz
        )));
    }
    let failed = |e: CosimError| match e {
        CosimError::Refused(refusals) => refused(&args.core.file, &refusals),
        CosimError::Run(_) | CosimError::NoInstrument(_) | CosimError::NoPackets => {
            Failure::check(e.to_string())
        }
        e => Failure::system(e.to_string()),
    };
    let target = args.core.target()?;
    let day = match &target.venue {
        Venue::Nasdaq => Day::read(&args.captures),
        Venue::Moex(moex) => Day::read_moex(&args.captures, moex),
    };
    let day = day.map_err(failed)?;
    let cosim = Cosim::of(program, &source, &target, &args.output).map_err(failed)?;
    let runner = engine(cosim.program()).map_err(Failure::system)?;
    let found = cosim.compare(&day, &troubles, |_| runner).map_err(failed)?;
    show(&day, &found, args);
    if let Some(path) = &args.histogram {
        tickwire_runtime::files::write(path, found.histogram(args.mhz).to_hgrm())
            .map_err(|e| Failure::system(format!("cannot write {}: {e}", path.display())))?;
    }
    match found.differing {
        0 => Ok(()),
        n => Err(Failure::check(format!(
            "{n} differences between software and core"
        ))),
    }
}

fn show(day: &Day, found: &Comparison, args: &CosimArgs) {
    println!(
        "{} packets, {} clocks, seed {}: {} orders, {} tops of the book, {} levels, {} counters compared; {} orders stopped \
         by both; {} differences",
        day.packets.len(),
        found.clocks,
        args.seed,
        found.orders,
        found.tops,
        found.levels,
        found.counters,
        found.stopped,
        found.differing
    );
    for difference in &found.differences {
        println!("{difference}");
    }
    if let (Some(average), Some(p50), Some(p99)) =
        (found.average(), found.quantile(0.5), found.quantile(0.99))
    {
        let ns = |clocks: f64| clocks * 1_000.0 / args.mhz;
        println!(
            "packet's last word to its order's first, in the core alone (no MAC, no transceiver): average {average:.2} clocks \
             ({:.1} ns at {} MHz), p50 {p50}, p99 {p99} ({:.1} ns)",
            ns(average),
            args.mhz,
            ns(p99 as f64)
        );
    }
}
