//! What a checked file is made into: code over registers and a memory of words, the same for every way to run
//! it.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use tickwire_market::{Side, Symbol, TimeInForce, Venue};

use crate::diag::Span;
use crate::types::Type;

/// A register of a handler.
pub type Reg = u16;

/// Two words in, one out.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Binary {
    /// The sum, or the nearest number that can be held.
    Add,
    /// The difference, or the nearest number that can be held.
    Sub,
    /// The product, or the nearest number that can be held.
    Mul,
    /// The quotient without its fraction; 0 traps.
    Div,
    /// What the quotient leaves, with the sign of the first; 0 traps.
    Rem,
    /// 1 if they are equal.
    Eq,
    /// 1 if they are not.
    Ne,
    /// 1 if the first is below.
    Lt,
    /// 1 if the first is not above.
    Le,
    /// Of two truths.
    And,
    /// Of two truths.
    Or,
    /// The lesser.
    Min,
    /// The greater.
    Max,
}

/// One operation. Jumps go forward but for [`Op::Loop`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Op {
    /// A number.
    Const(Reg, i64),
    /// A copy.
    Move(Reg, Reg),
    /// A word of memory.
    Load(Reg, u32),
    /// Into memory.
    Store(u32, Reg),
    /// A word at a place `base + index`; outside `0..len` it traps.
    LoadAt(Reg, u32, Reg, u32),
    /// Into memory at `base + index`; outside `0..len` it traps.
    StoreAt(u32, Reg, u32, Reg),
    /// Of two.
    Binary(Binary, Reg, Reg, Reg),
    /// 1 of 0, 0 of 1.
    Not(Reg, Reg),
    /// The negative, or the nearest number that can be held.
    Neg(Reg, Reg),
    /// The third where the second is not 0, else the fourth.
    Select(Reg, Reg, Reg, Reg),
    /// To an operation further on.
    Jump(u32),
    /// To an operation further on, where the register is 0.
    JumpIfNot(Reg, u32),
    /// Back to an operation as long as the first is below the second; both are bounded by the checker.
    Loop(Reg, Reg, u32),
    /// Asks the host, or tells it: [`Program::sites`].
    Host(u32),
    /// The handler is over.
    Return,
}

/// What the host is asked.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum HostCall {
    /// A level of a book: which one → price, whether it is there, quantity, orders.
    Level(u16, Side),
    /// → what is held, what it has cost, open to buy, open to sell.
    Position(u16),
    /// → whether the venue and the instrument trade.
    Trading(u16),
    /// An order's number → whether it is open, price, quantity, traded, left, side.
    Order,
    /// → open orders on an instrument.
    OpenOrders(u16),
    /// Quantity, price → number, whether it has left.
    Submit {
        /// Which instrument.
        instrument: u16,
        /// Buy is bid.
        side: Side,
        /// How long it lives.
        lasting: TimeInForce,
        /// At any price.
        is_market: bool,
        /// Although the book cannot be trusted.
        on_stale: bool,
    },
    /// The order's number, quantity, price → number, whether it has left.
    Replace,
    /// The order's number → whether it has left.
    Cancel,
    /// → how many have left.
    CancelAll,
    /// When.
    SetTimer(u8),
    /// Takes a timer back.
    StopTimer(u8),
    /// A value.
    Note(u16),
    /// A value, now.
    Push(u16),
    /// Now → count, sum, least, greatest, newest, oldest, whether there is any.
    Window(u16),
    /// A key → value, whether there is one; between two keys by a straight line where asked.
    Table(u16, bool),
    /// → middle over several books weighted by what stands at their tops, whether there is one.
    Fair(Vec<u16>),
    /// → middle of one book, each price weighted by the other side's quantity.
    Weighted(u16),
}

impl HostCall {
    /// How many operations it counts for.
    pub(crate) fn cost(&self, program: &Program) -> u64 {
        match self {
            HostCall::Level(..) => 10,
            HostCall::Position(_) | HostCall::Trading(_) | HostCall::Order => 5,
            HostCall::OpenOrders(_) => 500,
            HostCall::Submit { .. } | HostCall::Replace => 200,
            HostCall::Cancel => 100,
            HostCall::CancelAll => 2_000,
            HostCall::SetTimer(_) | HostCall::StopTimer(_) => 70,
            HostCall::Note(_) => 10,
            HostCall::Push(_) => 8,
            HostCall::Window(w) => 4 + u64::from(program.windows[usize::from(*w)].capacity),
            HostCall::Table(t, _) => {
                4 + u64::from(program.tables[usize::from(*t)].rows.len().max(1).ilog2()) * 3
            }
            HostCall::Fair(of) => 10 * of.len() as u64,
            HostCall::Weighted(_) => 10,
        }
    }
}

/// A place in the code that asks the host.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Site {
    /// What.
    pub call: HostCall,
    /// What it is given.
    pub arguments: Vec<Reg>,
    /// Where the answers go.
    pub results: Vec<Reg>,
}

/// What calls a handler.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Event {
    /// The run begins.
    Start,
    /// The run ends.
    Stop,
    /// A book has changed.
    Book(u16),
    /// A trade.
    Trade(u16),
    /// A quote of a feed without depth.
    Quote(u16),
    /// The state of an auction.
    Imbalance(u16),
    /// A trading status.
    Status(u16),
    /// A book is not to be trusted.
    Stale(u16),
    /// It is, again.
    Live(u16),
    /// Something has happened to one of our orders.
    Order(u16),
    /// A time has come.
    Timer(u8),
    /// An operator's word, by its place.
    Command(u16),
    /// A `check` of a test.
    Check(u16),
}

/// The code of one event.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Code {
    /// What calls it.
    pub event: Event,
    /// As it is named in reports: `on book usd`.
    pub name: String,
    /// Where it is written.
    pub span: Span,
    /// What to do, in turn.
    pub ops: Vec<Op>,
    /// Where each of it is written.
    pub spans: Vec<Span>,
    /// Registers it uses.
    pub registers: u32,
    /// Operations it comes to at the most.
    pub cost: u64,
    /// Order requests it comes to at the most.
    pub orders: u64,
}

/// A parameter.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Param {
    /// Its name.
    pub name: String,
    /// Its type.
    pub ty: Type,
    /// Its value, where the file says.
    pub value: i64,
    /// Both ends are allowed.
    pub range: Option<(i64, i64)>,
    /// Its word in memory.
    pub at: u32,
    /// Where it is written.
    pub span: Span,
}

/// What the file calls an instrument.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct InstrumentUse {
    /// Its name in the file.
    pub name: String,
    /// The venue's symbol; of a parameter the value that it has in the file.
    pub symbol: Symbol,
    /// The parameter that names it.
    pub param: Option<u16>,
    /// Behind `@` in the symbol.
    pub session: Option<String>,
    /// Only of this venue.
    pub venue: Option<Venue>,
    /// Where its words begin.
    pub at: u32,
}

/// Values of the last events or of a time.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WindowUse {
    /// Its name.
    pub name: String,
    /// Of what.
    pub ty: Type,
    /// So long at the most, in nanoseconds; 0 for as long as there is room.
    pub over: i64,
    /// So many at the most.
    pub capacity: u32,
    /// Where its words begin: first, count, the sum's two halves, lost, then values and times.
    pub at: u32,
}

/// Values by a key.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TableUse {
    /// Its name.
    pub name: String,
    /// Ascending keys with their values.
    pub rows: Vec<(i64, i64)>,
}

/// A name and a word that it stands for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Named {
    /// The name.
    pub name: String,
    /// Its type.
    pub ty: Type,
    /// Its word.
    pub at: u32,
}

/// Words that the host fills before a handler: what the time is, then what the event says.
pub mod word {
    /// When.
    pub const NOW: u32 = 0;
    /// What the event says.
    pub const EVENT: u32 = 1;
    /// What a check of a test came to.
    pub const CHECKED: u32 = 15;
    /// Arguments and answers of [`super::HostCall`].
    pub const SCRATCH: u32 = 16;
    /// How many words of it.
    pub const SCRATCH_LEN: u32 = 16;
    /// Where instruments begin.
    pub const INSTRUMENTS: u32 = 32;
    /// Words of an instrument.
    pub const INSTRUMENT_LEN: u32 = 16;
    /// Whether its book is live.
    pub const IS_LIVE: u32 = 0;
    /// Best bid, as the strategy was told last.
    pub const BID: u32 = 1;
    /// What stands there; 0 for nothing.
    pub const BID_QTY: u32 = 2;
    /// Best ask.
    pub const ASK: u32 = 3;
    /// What stands there; 0 for nothing.
    pub const ASK_QTY: u32 = 4;
    /// The last trade's price.
    pub const LAST: u32 = 5;
    /// Whether there was one.
    pub const HAS_LAST: u32 = 6;
    /// Its quantity.
    pub const LAST_QTY: u32 = 7;
    /// The price step; 1 until the instrument is known.
    pub const TICK: u32 = 8;
    /// When the book was last told.
    pub const UPDATED: u32 = 9;
    /// Whether it was.
    pub const HAS_UPDATED: u32 = 10;
    /// The usual unit of trading.
    pub const LOT: u32 = 11;
    /// Whether the feed has named it.
    pub const IS_KNOWN: u32 = 12;
}

/// A checked file.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Program {
    /// The strategy's name.
    pub name: String,
    /// Its parameters.
    pub params: Vec<Param>,
    /// Its instruments.
    pub instruments: Vec<InstrumentUse>,
    /// Its windows.
    pub windows: Vec<WindowUse>,
    /// Its tables.
    pub tables: Vec<TableUse>,
    /// Its timers' names.
    pub timers: Vec<String>,
    /// Its counters.
    pub counters: Vec<Named>,
    /// Its state, for reports.
    pub states: Vec<Named>,
    /// Every state by its first word: for whoever writes code that people read.
    pub places: Vec<Named>,
    /// The words of operators.
    pub commands: Vec<String>,
    /// Texts of notes.
    pub notes: Vec<String>,
    /// Symbols that are compared.
    pub symbols: Vec<String>,
    /// Its enums' names and values.
    pub enums: Vec<(String, Vec<String>)>,
    /// What is done at each event, in the order of [`Event`].
    pub handlers: Vec<Code>,
    /// Where the code asks the host.
    pub sites: Vec<Site>,
    /// The memory at the start.
    pub memory: Vec<i64>,
    /// The byte at which each line of the source begins.
    pub line_starts: Vec<u32>,
    /// Its scenarios.
    pub tests: Vec<crate::scenario::Scenario>,
}

impl Program {
    /// The line of a place, from 1.
    pub fn line(&self, span: Span) -> usize {
        self.line_starts
            .partition_point(|start| *start <= span.from)
            .max(1)
    }

    /// The code of an event.
    pub fn handler(&self, event: Event) -> Option<usize> {
        self.handlers.binary_search_by_key(&event, |code| code.event).ok()
    }

    /// Gives a parameter another value, as a configuration writes it: `100`, `0.01`, `5s`, `AAPL`, `true`, an
    /// enum's value.
    ///
    /// # Errors
    /// There is no such parameter, the text is no value of its type, or lies outside its range.
    pub fn set(&mut self, name: &str, text: &str) -> Result<(), String> {
        let Some(n) = self.params.iter().position(|param| param.name == name) else {
            let names: Vec<&str> = self.params.iter().map(|param| param.name.as_str()).collect();
            let near = crate::diag::nearest(name, names.iter().copied());
            return Err(match near {
                Some(near) => format!("there is no parameter {name}; did you mean {near}?"),
                None => format!("there is no parameter {name}; there are: {}", names.join(", ")),
            });
        };
        let ty = self.params[n].ty;
        let of_enum = |values: &[&str]| values.iter().position(|value| *value == text).map(|at| at as i64);
        let value = match ty {
            Type::Bool => of_enum(&["false", "true"]),
            Type::Side => of_enum(&crate::types::SIDES),
            Type::Status => of_enum(&crate::types::STATUSES),
            Type::Enum(e) => {
                let values = self
                    .enums
                    .get(usize::from(e))
                    .map(|(_, values)| values.as_slice());
                values
                    .unwrap_or_default()
                    .iter()
                    .position(|value| value == text)
                    .map(|at| at as i64)
            }
            Type::Symbol => match Symbol::new(text.as_bytes()) {
                Some(symbol) if !symbol.is_empty() => Some(self.intern(text)),
                _ => None,
            },
            ty => crate::check::number(text, ty),
        };
        let Some(value) = value else {
            return Err(format!("{name}: {text:?} is no value of the type {ty}"));
        };
        if self.params[n]
            .range
            .is_some_and(|(low, high)| !(low..=high).contains(&value))
        {
            return Err(format!(
                "{name}: {text} lies outside the range that the file gives it"
            ));
        }
        for used in &mut self.instruments {
            if used.param == Some(n as u16) {
                let symbol = crate::check::with_session(text, used.session.as_deref());
                used.symbol =
                    symbol.ok_or_else(|| format!("{name}: with its session, {text:?} is no symbol"))?;
            }
        }
        self.params[n].value = value;
        let at = self.params[n].at as usize;
        self.memory[at] = value;
        Ok(())
    }
}
