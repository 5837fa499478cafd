//! What is written into what is meant: names, types and units, worst-case counts, and the code.

mod declare;
mod expression;
mod statement;

pub(crate) use declare::{number, with_session};

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

use crate::ast::{Block, Expr, ExprKind, Item, Name, TypeName};
use crate::diag::{Diagnostic, Span, nearest};
use crate::ir::{Binary, Code, HostCall, Op, Program, Reg, Site, word};
use crate::parse::{ERRORS, parse};
use crate::types::{REPORTS, SIDES, STATUSES, TYPE_NAMES, Type};

/// What a target has. A program that needs more is refused, with both numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Operations of one handler in the worst case. Default 100 000.
    pub handler_ops: u64,
    /// Words of 8 bytes for state, windows and constants. Default 65 536.
    pub memory_words: u32,
    /// Operations of all code together. Default 200 000.
    pub code_ops: usize,
    /// Instruments. Default 64.
    pub instruments: usize,
    /// Order requests of one handler in the worst case. Default 64.
    pub handler_orders: u64,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            handler_ops: 100_000,
            memory_words: 65_536,
            code_ops: 200_000,
            instruments: 64,
            handler_orders: 64,
        }
    }
}

/// Gives the text of a file that a table is loaded from.
pub type Load<'a> = &'a dyn Fn(&str) -> Result<String, String>;

/// Checks a source and makes code of it; what is wrong, in the order of the text, where it cannot be.
pub fn compile(source: &str, load: Load<'_>) -> Result<Program, Vec<Diagnostic>> {
    compile_within(source, load, &Limits::default())
}

/// [`compile`] within the limits of a target.
pub fn compile_within(source: &str, load: Load<'_>, limits: &Limits) -> Result<Program, Vec<Diagnostic>> {
    if source.len() > SOURCE_MAX {
        let message = format!(
            "a file of {} bytes; at most {SOURCE_MAX} can be read",
            source.len()
        );
        return Err(vec![Diagnostic::new(Span::default(), message, "")]);
    }
    let (file, wrong) = parse(source);
    let mut checker = Checker::new(load, *limits);
    checker.wrong = wrong;
    checker.file(&file);
    let mut wrong = checker.wrong;
    if wrong.is_empty() {
        let starts = source
            .bytes()
            .zip(1..)
            .filter(|(b, _)| *b == b'\n')
            .map(|(_, at)| at);
        checker.program.line_starts = core::iter::once(0).chain(starts).collect();
        return Ok(checker.program);
    }
    wrong.sort_by_key(|d| d.span.from);
    wrong.truncate(ERRORS);
    Err(wrong)
}

/// The longest file, in bytes.
const SOURCE_MAX: usize = 1 << 20;

/// A name of the whole file.
#[derive(Clone, Debug)]
enum Global {
    Param(u16),
    Const {
        ty: Type,
        values: Vec<i64>,
        /// Where an array lies in memory.
        at: Option<u32>,
    },
    Enum(u16),
    Instrument(u16),
    State(Storage),
    Window(u16),
    Table {
        at: u16,
        key: Type,
        value: Type,
    },
    Timer(u8),
    Counter(u16),
    Function(usize),
}

impl Global {
    fn what(&self) -> &'static str {
        match self {
            Global::Param(_) => "a parameter",
            Global::Const { .. } => "a constant",
            Global::Enum(_) => "an enum",
            Global::Instrument(_) => "an instrument",
            Global::State(_) => "state",
            Global::Window(_) => "a window",
            Global::Table { .. } => "a table",
            Global::Timer(_) => "a timer",
            Global::Counter(_) => "a counter",
            Global::Function(_) => "a function",
        }
    }
}

/// Words of memory with a type; an optional value has a second word that says whether it is there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Storage {
    ty: Type,
    is_optional: bool,
    len: Option<u32>,
    at: u32,
}

#[derive(Clone, Debug)]
struct Local {
    name: String,
    number: u32,
    ty: Type,
    reg: Reg,
    present: Option<Reg>,
    tick: Tick,
}

/// Whose price steps a price goes by.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Tick {
    /// Nothing is known.
    Free,
    Of(u16),
    /// Of several.
    Mixed,
}

impl Tick {
    fn and(self, other: Tick) -> Tick {
        match (self, other) {
            (Tick::Free, t) | (t, Tick::Free) => t,
            (a, b) if a == b => a,
            _ => Tick::Mixed,
        }
    }
}

/// Something optional that can be known to be there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Path {
    Local(u32),
    /// By its place in memory.
    State(u32),
    /// A field of an instrument that has no level.
    Field(u16, u32),
    Level(u16, bool, i64),
}

/// What an expression came to.
#[derive(Clone, Debug)]
struct Value {
    ty: Type,
    reg: Reg,
    /// Where it may be absent: whether it is there.
    present: Option<Reg>,
    tick: Tick,
    /// It could be absent, and is known not to be.
    is_narrowed: bool,
    /// What is there when it is.
    needs: Vec<Path>,
    /// Of a truth: what is there when it holds, and when it does not.
    if_true: Vec<Path>,
    if_false: Vec<Path>,
}

impl Value {
    fn new(ty: Type, reg: Reg) -> Value {
        Value {
            ty,
            reg,
            present: None,
            tick: Tick::Free,
            is_narrowed: false,
            needs: Vec::new(),
            if_true: Vec::new(),
            if_false: Vec::new(),
        }
    }
}

#[derive(Clone, Debug)]
struct Function {
    params: Vec<(Name, TypeName)>,
    result: Option<TypeName>,
    body: Block,
    name: Name,
}

/// Where `return` of a function that is being laid in goes.
#[derive(Clone, Debug, Default)]
struct Returning {
    result: Option<(Type, bool, Reg, Option<Reg>)>,
    jumps: Vec<usize>,
}

/// What a handler hears of beside the books.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum HandlerArgument {
    Nothing,
    Trade(u16),
    Quote(u16),
    Imbalance(u16),
    Status,
    Order(u16),
}

/// Code of the handler under way.
struct HandlerCode {
    // Of the handler under way.
    ops: Vec<Op>,
    spans: Vec<Span>,
    code_ops: usize,
    is_full: bool,
}

/// Registers of the handler under way.
struct Registers {
    next_reg: u32,
    max_reg: u32,
}

struct Checker<'a> {
    program: Program,
    wrong: Vec<Diagnostic>,
    limits: Limits,
    load: Load<'a>,
    globals: BTreeMap<String, (Global, Span)>,
    functions: Vec<Function>,
    /// Functions that are being laid in, innermost last.
    calling: Vec<usize>,
    /// Values of parameters that a test's numbers may name.
    test_params: Option<Vec<i64>>,
    code: HandlerCode,
    registers: Registers,
    cost: u64,
    orders: u64,
    scopes: Vec<Vec<Local>>,
    locals: u32,
    facts: Vec<Path>,
    told: HandlerArgument,
    alias: Option<(String, u16)>,
    returning: Vec<Returning>,
    /// Within a function that has a result.
    reads_only: bool,
    /// A call stands as a statement.
    is_statement: bool,
}

impl<'a> Checker<'a> {
    fn new(load: Load<'a>, limits: Limits) -> Checker<'a> {
        Checker {
            program: Program::default(),
            wrong: Vec::new(),
            limits,
            load,
            globals: BTreeMap::new(),
            functions: Vec::new(),
            calling: Vec::new(),
            test_params: None,
            code: HandlerCode {
                ops: Vec::new(),
                spans: Vec::new(),
                code_ops: 0,
                is_full: false,
            },
            registers: Registers {
                next_reg: 0,
                max_reg: 0,
            },
            cost: 0,
            orders: 0,
            scopes: Vec::new(),
            locals: 0,
            facts: Vec::new(),
            told: HandlerArgument::Nothing,
            alias: None,
            returning: Vec::new(),
            reads_only: false,
            is_statement: false,
        }
    }

    fn say(&mut self, diagnostic: Diagnostic) {
        // What was said of a place is not said again, nor what follows from it at the same place.
        if self.wrong.len() < 4 * ERRORS && self.wrong.iter().all(|d| d.span != diagnostic.span) {
            self.wrong.push(diagnostic);
        }
    }

    fn wrong(&mut self, span: Span, message: impl ToString, label: impl ToString) {
        self.say(Diagnostic::new(span, message, label));
    }

    /// The value of what was said to be wrong: fits everywhere.
    fn nothing(&mut self) -> Value {
        Value::new(Type::Wrong, 0)
    }

    fn reg(&mut self) -> Reg {
        let reg = self.registers.next_reg;
        self.registers.next_reg += 1;
        self.registers.max_reg = self.registers.max_reg.max(self.registers.next_reg);
        if reg > u32::from(u16::MAX) {
            self.full(Span::default());
            return 0;
        }
        reg as Reg
    }

    fn emit(&mut self, span: Span, op: Op) {
        if self.code.code_ops >= self.limits.code_ops {
            self.full(span);
            return;
        }
        self.code.code_ops += 1;
        self.cost = self.cost.saturating_add(1);
        self.code.ops.push(op);
        self.code.spans.push(span);
    }

    fn full(&mut self, span: Span) {
        if !core::mem::replace(&mut self.code.is_full, true) {
            let message = format!(
                "the file comes to more than {} operations of code",
                self.limits.code_ops
            );
            let found = Diagnostic::new(span, message, "no room from here on");
            self.say(found.help(
                "functions are laid in at every place that calls them: let fewer of them call each other",
            ));
        }
    }

    fn constant(&mut self, span: Span, value: i64) -> Reg {
        let reg = self.reg();
        self.emit(span, Op::Const(reg, value));
        reg
    }

    fn load_word(&mut self, span: Span, at: u32) -> Reg {
        let reg = self.reg();
        self.emit(span, Op::Load(reg, at));
        reg
    }

    fn binary(&mut self, span: Span, op: Binary, a: Reg, b: Reg) -> Reg {
        let reg = self.reg();
        self.emit(span, Op::Binary(op, reg, a, b));
        reg
    }

    fn host(&mut self, span: Span, call: HostCall, arguments: Vec<Reg>, results: usize) -> Vec<Reg> {
        let cost = call.cost(&self.program);
        self.cost = self.cost.saturating_add(cost);
        if matches!(call, HostCall::Submit { .. } | HostCall::Replace) {
            self.orders = self.orders.saturating_add(1);
        }
        let results: Vec<Reg> = (0..results).map(|_| self.reg()).collect();
        let site = self.program.sites.len() as u32;
        self.emit(span, Op::Host(site));
        if !self.code.is_full {
            self.program.sites.push(Site {
                call,
                arguments,
                results: results.clone(),
            });
        }
        results
    }

    /// A jump whose end is not known yet.
    fn jump_if_not(&mut self, span: Span, reg: Reg) -> usize {
        let at = self.code.ops.len();
        self.emit(span, Op::JumpIfNot(reg, 0));
        at
    }

    fn jump(&mut self, span: Span) -> usize {
        let at = self.code.ops.len();
        self.emit(span, Op::Jump(0));
        at
    }

    fn lands(&mut self, jump: usize) {
        let here = self.code.ops.len() as u32;
        if let Some(Op::Jump(to) | Op::JumpIfNot(_, to)) = self.code.ops.get_mut(jump) {
            *to = here;
        }
    }

    fn allocate(&mut self, span: Span, words: u64) -> u32 {
        let at = self.program.memory.len() as u64;
        let all = at.saturating_add(words);
        if all > u64::from(self.limits.memory_words) {
            let message = format!(
                "state, windows and constants need {all} words of memory up to here; there are {}",
                self.limits.memory_words
            );
            self.wrong(span, message, format!("{words} words more"));
            return 0;
        }
        self.program.memory.resize(all as usize, 0);
        at as u32
    }

    fn write(&mut self, at: u32, value: i64) {
        if let Some(place) = self.program.memory.get_mut(at as usize) {
            *place = value;
        }
    }

    fn show(&self, ty: Type) -> String {
        match ty {
            Type::Enum(n) => match self.program.enums.get(usize::from(n)) {
                Some((name, _)) => name.clone(),
                None => "enum".to_string(),
            },
            ty => ty.to_string(),
        }
    }

    /// The names of an enum's values.
    fn values_of(&self, ty: Type) -> Vec<&str> {
        match ty {
            Type::Side => SIDES.to_vec(),
            Type::Status => STATUSES.to_vec(),
            Type::Report => REPORTS.to_vec(),
            Type::Enum(n) => self
                .program
                .enums
                .get(usize::from(n))
                .map(|(_, values)| values.iter().map(String::as_str).collect())
                .unwrap_or_default(),
            _ => Vec::new(),
        }
    }

    fn value_named(&self, ty: Type, name: &str) -> Option<i64> {
        let found = self.values_of(ty).iter().position(|value| *value == name);
        found.map(|at| at as i64)
    }

    fn type_of(&mut self, written: &TypeName) -> Type {
        let name = written.name.text.as_str();
        if let Some((_, ty)) = TYPE_NAMES.iter().find(|(known, _)| *known == name) {
            return *ty;
        }
        if let Some((Global::Enum(n), _)) = self.globals.get(name) {
            return Type::Enum(*n);
        }
        let known = TYPE_NAMES.iter().map(|(known, _)| *known);
        let known = known.chain(self.program.enums.iter().map(|(name, _)| name.as_str()));
        let help = nearest(name, known).map(|near| format!("did you mean `{near}`?"));
        let mut found = Diagnostic::new(
            written.name.span,
            format!("there is no type `{name}`"),
            "expected a type",
        );
        found.help = help.or_else(|| Some("types are int, price, ticks, qty, money, time, duration, bool, side, status, report, symbol, order and enums of the file".to_string()));
        self.say(found);
        Type::Wrong
    }

    fn instrument(&mut self, name: &Name) -> Option<u16> {
        if let Some((alias, n)) = &self.alias
            && *alias == name.text
        {
            return Some(*n);
        }
        match self.globals.get(&name.text) {
            Some((Global::Instrument(n), _)) => Some(*n),
            Some((other, at)) => {
                let (what, at) = (other.what(), *at);
                let found = Diagnostic::new(
                    name.span,
                    format!("`{}` is {what}, not an instrument", name.text),
                    "expected an instrument",
                );
                self.say(found.also(at, "declared here"));
                None
            }
            None => {
                self.unknown(&name.text, name.span, "instrument");
                None
            }
        }
    }

    fn unknown(&mut self, name: &str, span: Span, what: &str) {
        if self.wrong.len() >= 4 * ERRORS {
            return;
        }
        let locals = self.scopes.iter().flatten().map(|l| l.name.as_str());
        let known = self
            .globals
            .keys()
            .map(String::as_str)
            .chain(locals)
            .chain(expression::BUILTINS);
        let help = nearest(name, known).map(|near| format!("did you mean `{near}`?"));
        let mut found = Diagnostic::new(
            span,
            format!("nothing is called `{name}`"),
            format!("expected a {what}"),
        );
        found.help = help;
        self.say(found);
    }

    /// A number that is known before anything runs, of this type. `None` when it is not, or is wrong, which
    /// has been said.
    fn fold(&mut self, e: &Expr, expect: Type) -> Option<i64> {
        let found = self.folded(e, Some(expect));
        match found {
            Some((ty, value)) if ty == expect || ty == Type::Wrong || expect == Type::Wrong => Some(value),
            Some((ty, _)) => {
                let (is, wanted) = (self.show(ty), self.show(expect));
                self.wrong(
                    e.span,
                    format!("expected {wanted}, found {is}"),
                    format!("this is {is}"),
                );
                None
            }
            None => {
                let mut found = Diagnostic::new(
                    e.span,
                    "this has to be known before anything runs",
                    "expected a number, a constant, or a calculation with them",
                );
                if self.test_params.is_none()
                    && matches!(&e.kind, ExprKind::Name(name) if matches!(self.globals.get(name), Some((Global::Param(_), _))))
                {
                    found = found.help(
                        "a parameter may be changed without checking the file again: make it a `const`",
                    );
                }
                self.say(found);
                None
            }
        }
    }

    /// `None` when it is not known before anything runs.
    fn folded(&mut self, e: &Expr, expect: Option<Type>) -> Option<(Type, i64)> {
        Some(match &e.kind {
            ExprKind::Whole(n) => (self.whole(*n, e.span, expect), *n),
            ExprKind::Decimal(raw) => (decimal_type(expect), *raw),
            ExprKind::Lasting(ns) => (Type::Duration, *ns),
            ExprKind::Ticks(n) => (Type::Ticks, *n),
            ExprKind::Bool(b) => (Type::Bool, i64::from(*b)),
            ExprKind::Text(text) => (Type::Symbol, self.symbol(text, e.span)),
            ExprKind::Name(name) => {
                if let Some(ty) = expect
                    && let Some(value) = self.value_named(ty, name)
                {
                    return Some((ty, value));
                }
                match self.globals.get(name) {
                    Some((Global::Const { ty, values, at: None }, _)) => (*ty, values[0]),
                    Some((Global::Param(n), _)) => {
                        let n = usize::from(*n);
                        (self.program.params[n].ty, *self.test_params.as_ref()?.get(n)?)
                    }
                    None => {
                        self.unknown(name, e.span, "constant");
                        (Type::Wrong, 0)
                    }
                    _ => return None,
                }
            }
            ExprKind::Field(of, field) => {
                let ExprKind::Name(name) = &of.kind else {
                    return None;
                };
                let Some((Global::Enum(n), _)) = self.globals.get(name) else {
                    return None;
                };
                let ty = Type::Enum(*n);
                (ty, self.enum_value(ty, field)?)
            }
            ExprKind::Negative(a) => {
                let (ty, value) = self.folded(a, expect)?;
                (ty, value.saturating_neg())
            }
            ExprKind::Binary(op, a, b) => {
                use crate::ast::BinaryOp as B;
                let is_product = matches!(op, B::Mul | B::Div | B::Rem);
                let (ta, a) = self.folded(a, if is_product { None } else { expect })?;
                let (tb, b) = self.folded(b, if is_product { None } else { Some(ta) })?;
                let fits = ta == tb || ta == Type::Wrong || tb == Type::Wrong;
                match op {
                    B::Add if fits && ta.is_number() => (ta, a.saturating_add(b)),
                    B::Sub if fits && ta.is_number() => (ta, a.saturating_sub(b)),
                    B::Mul if tb == Type::Int && ta.is_number() => (ta, a.saturating_mul(b)),
                    B::Mul if ta == Type::Int && tb.is_number() => (tb, a.saturating_mul(b)),
                    B::Div if tb == Type::Int && ta.is_number() && b != 0 => (ta, a.saturating_div(b)),
                    _ => return None,
                }
            }
            _ => return None,
        })
    }

    /// The type of a whole number where one is expected.
    fn whole(&mut self, n: i64, span: Span, expect: Option<Type>) -> Type {
        match expect {
            Some(ty @ (Type::Int | Type::Qty | Type::Ticks)) => ty,
            Some(ty) if ty.is_number() && n == 0 => ty,
            Some(ty @ (Type::Price | Type::Money)) => {
                let found = Diagnostic::new(
                    span,
                    format!(
                        "{n} is a whole number without a unit, not {}",
                        if ty == Type::Price { "a price" } else { "money" }
                    ),
                    format!("expected {ty}"),
                );
                self.say(found.help(format!(
                    "write `{n}.00` for {ty}, or `{n} ticks` for steps of the price"
                )));
                Type::Wrong
            }
            Some(Type::Duration) => {
                let found = Diagnostic::new(span, format!("{n} has no unit of time"), "expected a duration");
                self.say(found.help(format!("write `{n}ms`, `{n}s`, …")));
                Type::Wrong
            }
            _ => Type::Int,
        }
    }

    fn symbol(&mut self, text: &str, span: Span) -> i64 {
        if tickwire_market::Symbol::new(text.as_bytes()).is_none_or(|s| s.is_empty()) {
            self.wrong(
                span,
                "this cannot be a symbol",
                "symbols are 1 to 23 printable ASCII characters",
            );
        }
        self.program.intern(text)
    }

    fn enum_value(&mut self, ty: Type, field: &Name) -> Option<i64> {
        if let Some(value) = self.value_named(ty, &field.text) {
            return Some(value);
        }
        let (name, values) = (self.show(ty), self.values_of(ty));
        let help = match nearest(&field.text, values.iter().copied()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("its values are {}", values.join(", ")),
        };
        let found = Diagnostic::new(
            field.span,
            format!("{name} has no value `{}`", field.text),
            format!("expected a value of {name}"),
        );
        self.say(found.help(help));
        None
    }
}

fn decimal_type(expect: Option<Type>) -> Type {
    match expect {
        Some(Type::Money) => Type::Money,
        _ => Type::Price,
    }
}

impl Program {
    /// The number of a symbol that is compared.
    pub(crate) fn intern(&mut self, text: &str) -> i64 {
        let found = self.symbols.iter().position(|known| known == text);
        let at = found.unwrap_or_else(|| {
            self.symbols.push(text.to_string());
            self.symbols.len() - 1
        });
        at as i64
    }
}

/// A handler's code begins.
impl Checker<'_> {
    fn begin(&mut self) {
        (
            self.registers.next_reg,
            self.registers.max_reg,
            self.cost,
            self.orders,
        ) = (0, 0, 0, 0);
        self.code.ops.clear();
        self.code.spans.clear();
        self.scopes = vec![Vec::new()];
        self.facts.clear();
        self.returning.clear();
    }

    fn end(&mut self, event: crate::ir::Event, name: String, span: Span) {
        self.emit(span, Op::Return);
        let (cost, orders) = (self.cost, self.orders);
        if cost > self.limits.handler_ops {
            let message = format!(
                "`{name}` comes to {cost} operations in the worst case; a handler may have {}",
                self.limits.handler_ops
            );
            let found = Diagnostic::new(span, message, format!("{cost} operations"));
            self.say(found.help("make loops and windows shorter"));
        }
        if orders > self.limits.handler_orders {
            let message = format!(
                "`{name}` can send {orders} order requests in one go; a handler may send {}",
                self.limits.handler_orders
            );
            self.wrong(span, message, format!("{orders} requests"));
        }
        self.program.handlers.push(Code {
            event,
            name,
            span,
            ops: core::mem::take(&mut self.code.ops),
            spans: core::mem::take(&mut self.code.spans),
            registers: self.registers.max_reg,
            cost,
            orders,
        });
        self.scopes.clear();
    }
}

/// What an item names.
pub(crate) fn named(item: &Item) -> Option<&Name> {
    Some(match item {
        Item::Param { name, .. }
        | Item::Const { name, .. }
        | Item::Enum { name, .. }
        | Item::Instrument { name, .. }
        | Item::State { name, .. }
        | Item::Window { name, .. }
        | Item::Table { name, .. }
        | Item::Timer { name }
        | Item::Counter { name }
        | Item::Function { name, .. } => name,
        Item::Handler(_) | Item::Test(_) => return None,
    })
}
