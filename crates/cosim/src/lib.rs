//! A strategy twice: in software as it runs live, and as a simulated core; compared order for order, book for
//! book, counter for counter.
//!
//! ```no_run
//! use tickwire_cosim::{Cosim, Day, Troubles};
//! use tickwire_language::Interpreter;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let source = std::fs::read_to_string("examples/hardware/core_taker.tw")?;
//! let day = Day::read(&["day.pcap".into()])?;
//! let cosim = Cosim::new(&source, &|_| Err(String::new()), &tickwire_rtl::Target::default(), "build/core".as_ref())?;
//! let found = cosim.compare(&day, &Troubles::default(), Interpreter::new)?;
//! assert_eq!(found.differing, 0, "{}", found.differences[0]);
//! # Ok(())
//! # }
//! ```
//! The software's side is the decoder, books, conductor and machine of a live strategy; a lost packet is a
//! gap for both, mended for both by the same packets. The core's side is a program that Verilator makes of
//! the design, with its assertions on. [`make`] chooses when which frame comes, from a seed.
#![forbid(unsafe_code)]

mod compare;
mod day;
mod gate;
mod live;
mod moex;
mod record;
mod simulator;
mod software;
mod stimulus;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tickwire_language::{Diagnostic, Engine, Program};
use tickwire_market::{InstrumentId, Nanos, Price};
use tickwire_rtl::frame::{Link, OrderText, OuchText, prepared};
use tickwire_rtl::{Design, Refusal, Target, Venue, generate};
use tickwire_wire_nasdaq::itch50;

pub use compare::{Comparison, Difference, compare};
pub use day::{Day, Packet};
pub use live::Live;
pub use record::{Change, Frame, Record};
pub use simulator::{COMPILED, Simulator, is_there};
pub use software::{Done, Rung, Sent, Surroundings, Told, run};
pub use stimulus::{Random, Settings, Step, Stimulus, Troubles, Work, feed, framed, make};

/// Why there is nothing to compare.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum CosimError {
    /// A capture that cannot be read.
    Capture(PathBuf, String),
    /// No capture has packets of the feed.
    NoPackets,
    /// The day does not name the strategy's instrument, or has no order of it.
    NoInstrument(String),
    /// The file is wrong.
    Source(Vec<Diagnostic>),
    /// A core does not carry the file.
    Refused(Vec<Refusal>),
    /// A file that cannot be read or written.
    File(PathBuf, String),
    /// Verilator is not there, or what it says.
    Verilator(String),
    /// What the simulated core said before it ended.
    Run(String),
}

impl std::fmt::Display for CosimError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            CosimError::Capture(file, e) | CosimError::File(file, e) => write!(f, "{}: {e}", file.display()),
            CosimError::NoPackets => f.write_str("no capture has packets of the feed that the core reads"),
            CosimError::NoInstrument(symbol) => write!(f, "the captures have no orders of {symbol}"),
            CosimError::Source(wrong) => write!(f, "{} errors in the strategy's file", wrong.len()),
            CosimError::Refused(refusals) => {
                for refusal in refusals {
                    writeln!(f, "{refusal}")?;
                }
                Ok(())
            }
            CosimError::Verilator(said) => write!(f, "verilator: {said}"),
            CosimError::Run(said) => write!(f, "the simulated core: {said}"),
        }
    }
}

impl std::error::Error for CosimError {}

/// A strategy, ready to be compared.
#[derive(Clone, Debug)]
pub struct Cosim {
    program: Arc<Program>,
    design: Design,
    target: Target,
    simulator: Simulator,
    link: Link,
}

impl Cosim {
    /// Makes the core of a source and simulates it from a folder.
    ///
    /// # Errors
    /// What is wrong with the file, what a core does not carry, what Verilator says.
    pub fn new(
        source: &str,
        load: &dyn Fn(&str) -> Result<String, String>,
        target: &Target,
        folder: &Path,
    ) -> Result<Cosim, CosimError> {
        let program = tickwire_language::compile(source, load).map_err(CosimError::Source)?;
        Cosim::of(program, source, target, folder)
    }

    /// The same of a program whose parameters may have been set.
    ///
    /// # Errors
    /// As [`Cosim::new`].
    pub fn of(program: Program, source: &str, target: &Target, folder: &Path) -> Result<Cosim, CosimError> {
        let design = generate(&program, source, target).map_err(CosimError::Refused)?;
        Ok(Cosim {
            simulator: Simulator::make(&design, folder)?,
            program: Arc::new(program),
            design,
            target: target.clone(),
            link: Link {
                destination_mac: [2, 0, 0, 0, 0, 2],
                source_mac: [2, 0, 0, 0, 0, 1],
                source: [10, 1, 0, 2],
                destination: [10, 1, 0, 1],
                source_port: 40_000,
                destination_port: 26_405,
                acknowledged: 0x2000_0000,
                window: 65_535,
            },
        })
    }

    /// The design.
    pub fn design(&self) -> &Design {
        &self.design
    }

    /// The core, which runs as long as somebody asks it to.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn live(&self) -> Result<Live, CosimError> {
        self.simulator.live()
    }

    /// The program.
    pub fn program(&self) -> &Arc<Program> {
        &self.program
    }

    /// What the core is told for a day: its instrument, and a window of prices around the middle of its
    /// orders.
    ///
    /// # Errors
    /// The day does not have the instrument.
    pub fn settings(&self, day: &Day) -> Result<Settings, CosimError> {
        let symbol = self.program.instruments[0].symbol;
        let missing = || CosimError::NoInstrument(symbol.to_string());
        let (instrument, middle) = match &self.target.venue {
            Venue::Nasdaq => {
                let locate = day.locate(&symbol).ok_or_else(missing)?;
                (
                    InstrumentId(locate.into()),
                    day.middle(locate).ok_or_else(missing)?,
                )
            }
            Venue::Moex(moex) => day.of_moex(moex, &symbol).ok_or_else(missing)?,
        };
        let tick = step(self.target.tick);
        Ok(Settings {
            instrument,
            base: (middle / tick).saturating_sub(2_048) * tick,
            is_decimal: matches!(self.target.venue, Venue::Moex(_)),
            // 10:00:00.123 on a Tuesday.
            time: Nanos(1_493_719_200 * Nanos::SECOND + 123_000_000),
            ..Settings::default()
        })
    }

    /// Runs a day through both and compares.
    ///
    /// # Errors
    /// The day does not have the instrument, or the simulation failed.
    pub fn compare<E: Engine>(
        &self,
        day: &Day,
        troubles: &Troubles,
        engine: impl FnOnce(&Program) -> E,
    ) -> Result<Comparison, CosimError> {
        let settings = self.settings(day)?;
        self.compare_with(day, &settings, troubles, engine)
    }

    /// The same with settings of one's own.
    ///
    /// # Errors
    /// The simulation failed.
    pub fn compare_with<E: Engine>(
        &self,
        day: &Day,
        settings: &Settings,
        troubles: &Troubles,
        engine: impl FnOnce(&Program) -> E,
    ) -> Result<Comparison, CosimError> {
        let symbol = self.program.instruments[0].symbol;
        let missing = || CosimError::NoInstrument(symbol.to_string());
        let text = match &self.target.venue {
            Venue::Nasdaq => OrderText::Ouch(OuchText {
                symbol,
                capacity: b'O',
                client_order_id: *b"TICKWIRE      ",
            }),
            Venue::Moex(moex) => OrderText::Fix(moex.text(&symbol).ok_or_else(missing)?),
        };
        let frame = prepared(&self.link, &text, settings.time).ok_or_else(missing)?;
        let work: Vec<Work> = match &self.target.venue {
            Venue::Nasdaq => {
                let changes = day
                    .packets
                    .iter()
                    .map(|packet| changes(&packet.bytes, settings.instrument));
                changes.map(|changes| Work { changes, decode: 0 }).collect()
            }
            Venue::Moex(moex) => day.work_of_moex(moex, &symbol),
        };
        let stimulus = make(day, settings, &frame, troubles, |n| work[n]);
        let around = Surroundings {
            link: &self.link,
            text: &text,
            frame_size: frame.bytes.len(),
            settings,
            tick: self.target.tick,
            venue: &self.target.venue,
        };
        let software = run(
            day,
            &stimulus.steps,
            &self.program,
            engine(&self.program),
            &around,
        );
        let record = self.simulator.run(&stimulus.bytes, troubles.busy_percent)?;
        Ok(compare(&stimulus, &software, &record))
    }
}

fn step(tick: Price) -> u32 {
    u32::try_from(tick.raw() / 100_000).unwrap_or(1).max(1)
}

/// How many changes of an instrument's book a packet comes to at most.
fn changes(datagram: &[u8], instrument: InstrumentId) -> u64 {
    use tickwire_wire_nasdaq::moldudp64::{Payload, parse};
    let Ok(Payload::Messages(blocks)) = parse(datagram).map(|mold| mold.payload) else {
        return 0;
    };
    blocks
        .filter(|message| itch50::stock_locate(message).map(u32::from) == Some(instrument.0))
        .count() as u64
}
