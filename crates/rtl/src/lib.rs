//! A strategy file as a core in hardware: ITCH 5.0 in and OUCH 5.0 orders out, or MOEX's order log in FAST in
//! and FIX 4.4 orders out, at 64 bits a clock.
//!
//! ```
//! use tickwire_rtl::{Target, generate};
//!
//! let source = r#"
//! strategy best_offer_taker
//! param lot: qty = 100 in 1..10000
//! instrument aapl = "AAPL"
//! state last: price? = none
//!
//! on book aapl when live(aapl) {
//!   let ask = aapl.ask[0].price
//!   if ask != last {
//!     last = ask
//!     if let price = ask { buy aapl lot @ price ioc }
//!   }
//! }
//! "#;
//! let program = tickwire_language::compile(source, &|_| Err("no files here".to_string())).expect("it is right");
//! let design = generate(&program, source, &Target::default()).expect("a core can carry it");
//! assert_eq!(design.handlers[0].orders, 1);
//! let rule = design.files.iter().find(|file| file.name == "strategy.sv").expect("it is written");
//! assert!(rule.text.contains("LOT"));
//! ```
//! The generator writes what is the strategy's own: its rule as a pipeline ([`generate`]), parameters of the
//! core, tables from the wire crates' layouts. The rest are hand-written modules, which lie in `hardware/`.
//! What a core does not have is refused with its place in the file and the number ([`Refusal`]).
//!
//! Beside it stands what software does for a core: the prepared frame of an order ([`frame`]) and the
//! registers ([`registers`], [`setup`]). `docs/hardware.md` is the whole story. No I/O.
#![forbid(unsafe_code)]

mod emit;
pub mod files;
pub mod frame;
mod graph;
mod lower;
mod page;
pub mod registers;
pub mod setup;
mod stages;
pub mod tables;
mod widths;

use std::fmt;
use std::sync::Arc;

use tickwire_language::ir::Event;
use tickwire_language::{Program, Span};
use tickwire_market::{Price, Symbol};
use tickwire_wire_moex::fast::{Plan, TemplateError};

use emit::Pipeline;

/// What a core is built for.
#[derive(Clone, Debug)]
pub struct Target {
    /// Which feed it reads and which orders it writes. Default Nasdaq's.
    pub venue: Venue,
    /// The instrument's price step, a multiple of 0.0001 up to 1.00. Default 0.01.
    pub tick: Price,
    /// Places for orders of the instrument, rounded up to eight times a power of two, from 256 to 65 536. An
    /// order goes to one of two buckets of four: a third of the places can be relied on. Default 16 384.
    pub orders: u32,
    /// Orders of one handler at the most, 1 to 8. Default 4.
    pub handler_orders: u32,
    /// Clocks that a handler may take until its first order. Default 16.
    pub handler_clocks: u32,
}

/// Whose feed a core reads, and whose orders it writes.
#[derive(Clone, Debug)]
pub enum Venue {
    /// Nasdaq: ITCH 5.0 in MoldUDP64, OUCH 5.0 in SoupBinTCP.
    Nasdaq,
    /// Moscow Exchange: the order log of an ASTS market in FAST, FIX 4.4.
    Moex(Moex),
}

/// What a core for the Moscow Exchange is made from.
#[derive(Clone, Debug)]
pub struct Moex {
    /// The exchange's template file.
    pub templates: Arc<Plan>,
    /// The order log's template in it: `X-OLR-CURR`, `X-OLR-FOND`.
    pub template: String,
    /// The board (`TradingSessionID`) of an instrument whose symbol does not name one behind an `@`: `CETS`,
    /// `TQBR`.
    pub board: String,
    /// SenderCompID of the orders. Where digits lie follows from how long the texts are: another one of the
    /// same length may be written into the prepared frame.
    pub sender: String,
    /// TargetCompID.
    pub target: String,
    /// Account.
    pub account: String,
    /// What ClOrdID begins with.
    pub prefix: String,
}

impl Moex {
    /// Of the text of the exchange's template file: the currency market's main board, and texts to be
    /// replaced.
    ///
    /// # Errors
    /// What is wrong with the file.
    pub fn new(templates: &str, template: &str) -> Result<Moex, TemplateError> {
        Ok(Moex::of(Arc::new(Plan::parse(templates)?), template))
    }

    /// The same of a template file that was read.
    pub fn of(templates: Arc<Plan>, template: &str) -> Moex {
        Moex {
            templates,
            template: template.to_string(),
            board: "CETS".to_string(),
            sender: "TICKWIRE".to_string(),
            target: "MFIXTRADECURR".to_string(),
            account: "S01-00000F00".to_string(),
            prefix: "TW".to_string(),
        }
    }

    /// Symbol and board of an instrument.
    pub fn instrument<'a>(&'a self, symbol: &'a Symbol) -> (&'a [u8], &'a [u8]) {
        let name = symbol.as_bytes();
        match name.iter().position(|byte| *byte == b'@') {
            Some(at) => (&name[..at], &name[at + 1..]),
            None => (name, self.board.as_bytes()),
        }
    }

    /// What stands in every order of an instrument. `None` without a symbol.
    pub fn text(&self, symbol: &Symbol) -> Option<frame::FixText> {
        let (symbol, board) = self.instrument(symbol);
        Some(frame::FixText {
            sender: self.sender.clone(),
            target: self.target.clone(),
            account: self.account.clone(),
            prefix: self.prefix.clone(),
            symbol: Symbol::new(symbol)?,
            board: String::from_utf8_lossy(board).into_owned(),
        })
    }
}

impl Venue {
    /// What the venue's order has room for: the largest quantity, and the highest price in 1e-4.
    pub fn order_most(&self) -> (u32, u32) {
        match self {
            // OUCH 5.0, Enter Order: below 1,000,000 shares, up to $199,999.99.
            Venue::Nasdaq => (999_999, 1_999_999_900),
            Venue::Moex(_) => (frame::QTY_MOST, frame::PRICE_MOST),
        }
    }
}

impl Default for Target {
    fn default() -> Target {
        Target {
            venue: Venue::Nasdaq,
            tick: Price::from_4dp(100),
            orders: 16_384,
            handler_orders: 4,
            handler_clocks: 16,
        }
    }
}

impl Target {
    /// Address bits of the order store's buckets.
    fn set_address(&self) -> u32 {
        (self.orders.clamp(256, 65_536) / 8).next_power_of_two().ilog2()
    }
}

/// Something of a file that a core does not carry.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Refusal {
    /// Where in the file.
    pub span: Span,
    /// Its line, from 1.
    pub line: usize,
    /// What, and why not.
    pub message: String,
}

impl Refusal {
    fn new(program: &Program, span: Span, message: impl AsRef<str>) -> Refusal {
        Refusal {
            span,
            line: program.line(span),
            message: message.as_ref().to_string(),
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.message)
    }
}

/// A file of a design.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct File {
    /// Its name, without a folder.
    pub name: String,
    /// Its text.
    pub text: String,
}

/// What a handler has become.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HandlerReport {
    /// As in the file: `on book aapl`.
    pub name: String,
    /// Clocks from the start to its first order.
    pub clocks: u32,
    /// Orders that it sends at the most.
    pub orders: u32,
    /// Operations in its pipeline.
    pub operations: u32,
}

/// A whole design.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Design {
    /// Every file of it; SystemVerilog sources in an order in which tools can read them.
    pub files: Vec<File>,
    /// The rule's handlers.
    pub handlers: Vec<HandlerReport>,
}

impl Design {
    /// The names of the SystemVerilog sources, in order.
    pub fn sources(&self) -> impl Iterator<Item = &str> {
        let sources = self.files.iter().filter(|file| file.name.ends_with(".sv"));
        sources.map(|file| file.name.as_str())
    }
}

/// Makes a design of a program; `source` is its text, which comments quote.
///
/// # Errors
/// All that the core does not carry, in the order of the file.
pub fn generate(program: &Program, source: &str, target: &Target) -> Result<Design, Vec<Refusal>> {
    let mut refusals = whole_file(program, target);
    let mut written = vec![false; program.memory.len()];
    for code in &program.handlers {
        for op in &code.ops {
            match op {
                tickwire_language::ir::Op::Store(at, _) => written[*at as usize] = true,
                tickwire_language::ir::Op::StoreAt(base, _, len, _) => {
                    written[*base as usize..(base + len) as usize].fill(true);
                }
                _ => {}
            }
        }
    }
    let mut pipelines = Vec::new();
    for code in &program.handlers {
        let name = match code.event {
            Event::Book(0) => "book",
            Event::Trade(0) => "trade",
            _ => continue,
        };
        match lower::lower(program, code, target, &written) {
            Ok(handler) => pipelines.push(Pipeline {
                name,
                title: &code.name,
                handler,
            }),
            Err(refusal) => refusals.push(refusal),
        }
    }
    if !refusals.is_empty() {
        refusals.sort_by_key(|refusal| refusal.span.from);
        return Err(refusals);
    }
    if pipelines
        .iter()
        .all(|pipeline| pipeline.handler.orders.is_empty())
    {
        let message = "it sends no order: the core would do nothing";
        return Err(vec![Refusal::new(program, Span::default(), message)]);
    }
    let rule = emit::write(program, source, &pipelines)?;
    for (report, pipeline) in rule.handlers.iter().zip(&pipelines) {
        let event = if pipeline.name == "book" {
            Event::Book(0)
        } else {
            Event::Trade(0)
        };
        let span = program
            .handler(event)
            .map_or(Span::default(), |at| program.handlers[at].span);
        if report.orders > target.handler_orders {
            let message = format!(
                "{} sends up to {} orders, the core {}",
                report.name, report.orders, target.handler_orders
            );
            refusals.push(Refusal::new(program, span, message));
        }
        if report.clocks > target.handler_clocks {
            let message = format!(
                "{} takes {} clocks, the core has {}",
                report.name, report.clocks, target.handler_clocks
            );
            refusals.push(Refusal::new(program, span, message));
        }
    }
    if !refusals.is_empty() {
        return Err(refusals);
    }
    let mut files = Vec::new();
    let add = |files: &mut Vec<File>, modules: &[(&str, &str)]| {
        files.extend(
            modules
                .iter()
                .map(|(name, text)| File::new(name, text.to_string())),
        );
    };
    // The package that every module reads comes first.
    add(&mut files, &files::MODULES[..1]);
    let own = match &target.venue {
        Venue::Nasdaq => {
            files.push(File::new("itch50_pkg.sv", tables::itch50()));
            files.push(File::new("ouch50_pkg.sv", tables::ouch50()));
            &files::NASDAQ[..]
        }
        Venue::Moex(moex) => {
            let whole = |message: String| vec![Refusal::new(program, Span::default(), message)];
            let symbol = &program.instruments[0].symbol;
            let (name, board) = moex.instrument(symbol);
            let no_text = || whole("a text of the order is empty or has a separator in it".to_string());
            let fix = moex
                .text(symbol)
                .as_ref()
                .and_then(tables::fix44)
                .ok_or_else(no_text)?;
            files.push(File::new(
                "fast_pkg.sv",
                tables::fast(moex, name, board).map_err(whole)?,
            ));
            files.push(File::new("fix44_pkg.sv", fix));
            &files::MOEX[..]
        }
    };
    files.push(File::new(
        "strategy_pkg.sv",
        page::parameters(program, target, &rule.handlers, has_trade(program)),
    ));
    files.push(File::new("strategy.sv", rule.module));
    add(&mut files, &files::MODULES[1..]);
    add(&mut files, own);
    add(&mut files, &files::CORE);
    files.push(File::new("wrap.sv", page::wrap()));
    files.push(File::new(files::BENCH.0, files::BENCH.1.to_string()));
    files.push(File::new("core.sdc", page::constraints()));
    files.push(File::new(
        "README.md",
        page::readme(program, target, &rule.handlers),
    ));
    Ok(Design {
        files,
        handlers: rule.handlers,
    })
}

impl File {
    fn new(name: &str, text: String) -> File {
        File {
            name: name.to_string(),
            text,
        }
    }
}

fn has_trade(program: &Program) -> bool {
    program.handler(Event::Trade(0)).is_some()
}

/// What is wrong with the file as a whole.
fn whole_file(program: &Program, target: &Target) -> Vec<Refusal> {
    let mut refusals = Vec::new();
    let mut refuse = |span: Span, message: String| refusals.push(Refusal::new(program, span, message));
    let start = Span::default();
    if program.instruments.len() != 1 {
        refuse(
            start,
            format!("{} instruments: the core carries 1", program.instruments.len()),
        );
    }
    if let (Some(used), Venue::Nasdaq) = (program.instruments.first(), &target.venue)
        && used.symbol.as_bytes().len() > 8
    {
        refuse(
            start,
            format!("the symbol {}: OUCH has room for 8 characters", used.symbol),
        );
    }
    let raw = target.tick.raw();
    if raw < 100_000 || raw % 100_000 != 0 || raw > 1_000_000_000 {
        refuse(
            start,
            format!(
                "a tick of {}: a multiple of 0.0001 up to 1 is wanted",
                target.tick
            ),
        );
    }
    let has_trades = matches!(target.venue, Venue::Nasdaq);
    for code in &program.handlers {
        let what = match code.event {
            Event::Trade(_) if !has_trades => "the core reads the order log, which has no trades",
            Event::Book(_) | Event::Trade(_) | Event::Check(_) => continue,
            Event::Start | Event::Stop => {
                "the core starts and stops with software's word: it has no such handler"
            }
            Event::Quote(_) | Event::Imbalance(_) => "the core reads no such messages",
            Event::Status(_) => "the gate stops orders where nothing trades; the core has no such handler",
            Event::Stale(_) | Event::Live(_) => {
                "the core stops itself on a stale book; it has no such handler"
            }
            Event::Order(_) => "software hears of orders, the core does not",
            Event::Timer(_) => "the core has no timers",
            Event::Command(_) => "commands are software's",
        };
        refuse(code.span, format!("{}: {what}", code.name));
    }
    if !program
        .handlers
        .iter()
        .any(|code| matches!(code.event, Event::Book(_) | Event::Trade(_)))
    {
        refuse(
            start,
            "no handler of a book or a trade: the core would do nothing".to_string(),
        );
    }
    refusals
}
