//! Expressions.

use super::*;
use crate::ast::{BinaryOp, OrderExpr};
use tickwire_market::Side;

/// Functions of the language.
pub(super) const BUILTINS: [&str; 22] = [
    "abs",
    "best_ask",
    "best_bid",
    "clamp",
    "clock",
    "distance",
    "fair",
    "int",
    "live",
    "max",
    "mid",
    "min",
    "now",
    "open_orders",
    "round_down",
    "round_up",
    "sign",
    "spread",
    "stepped",
    "steps",
    "trading",
    "weighted",
];

/// How deep functions may call each other.
const CALLS_DEEP: usize = 8;

/// Fields of an instrument.
const FIELDS: [&str; 13] = [
    "ask",
    "bid",
    "buying",
    "cost",
    "known",
    "last_qty",
    "last_trade",
    "lot",
    "open_orders",
    "position",
    "selling",
    "tick",
    "updated",
];

impl Checker<'_> {
    /// A value of this type that is there.
    pub(super) fn need(&mut self, e: &Expr, ty: Type) -> Value {
        let value = self.expr(e, Some(ty));
        self.same(&value, ty, e.span);
        self.present(&value, e.span);
        Value {
            present: None,
            ..value
        }
    }

    /// Says where a value is of another type.
    pub(super) fn same(&mut self, value: &Value, ty: Type, span: Span) -> bool {
        if value.ty == ty || value.ty == Type::Wrong || ty == Type::Wrong {
            return true;
        }
        let (is, wanted) = (self.show(value.ty), self.show(ty));
        let mut found = Diagnostic::new(
            span,
            format!("expected {wanted}, found {is}"),
            format!("this is {is}"),
        );
        found.help = match (ty, value.ty) {
            (Type::Qty, Type::Int) => {
                Some("multiply a quantity by it, such as `lot * n`, or give a parameter the unit".to_string())
            }
            (Type::Int, Type::Qty | Type::Ticks) => Some("`int(…)` takes the unit away".to_string()),
            (Type::Bool, _) => Some("compare it with something".to_string()),
            (Type::Ticks, Type::Price) => {
                Some("`steps(a, b)` is the difference of two prices in ticks".to_string())
            }
            _ => None,
        };
        self.say(found);
        false
    }

    /// Says where a value may be absent.
    pub(super) fn present(&mut self, value: &Value, span: Span) {
        if value.present.is_some() && value.ty != Type::Wrong {
            let found = Diagnostic::new(span, "this may be absent", "expected something that is there");
            self.say(found.help("test it first: compare it, `if x != none { … }`, `if let y = x { … }`, or say what else: `x else 0`"));
        }
    }

    /// Says where something is done within a function that has a result.
    pub(super) fn acts(&mut self, span: Span) {
        if self.reads_only {
            let found = Diagnostic::new(span, "a function with a result changes nothing", "this acts");
            self.say(found.help("take the `->` away, or let whoever calls it act"));
        }
    }

    pub(super) fn find_local(&self, name: &str) -> Option<Local> {
        self.scopes
            .iter()
            .flatten()
            .rev()
            .find(|l| l.name == name)
            .cloned()
    }

    /// Whether its type comes from what stands beside it.
    fn takes_type(&self, e: &Expr) -> bool {
        match &e.kind {
            ExprKind::Whole(_) | ExprKind::Decimal(_) | ExprKind::None => true,
            ExprKind::Negative(a) => self.takes_type(a),
            ExprKind::Binary(BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul | BinaryOp::Div, a, b) => {
                self.takes_type(a) && self.takes_type(b)
            }
            ExprKind::Name(name) => {
                self.find_local(name).is_none()
                    && !self.globals.contains_key(name)
                    && !BUILTINS.contains(&name.as_str())
                    && !self.is_told(name)
            }
            _ => false,
        }
    }

    fn is_told(&self, name: &str) -> bool {
        matches!(
            (name, self.told),
            ("trade", HandlerArgument::Trade(_))
                | ("quote", HandlerArgument::Quote(_))
                | ("imbalance", HandlerArgument::Imbalance(_))
                | ("status", HandlerArgument::Status)
                | ("order", HandlerArgument::Order(_))
        )
    }

    /// What may be absent, unless it is known to be there.
    fn optional(&mut self, mut value: Value, present: Reg, path: Option<Path>) -> Value {
        if let Some(path) = path {
            if self.facts.contains(&path) {
                value.is_narrowed = true;
                return value;
            }
            value.needs.push(path);
        }
        value.present = Some(present);
        value
    }

    /// Where something is known to be there that could be absent: a presence that says so.
    pub(super) fn or_known(&mut self, span: Span, value: Value) -> Value {
        if value.present.is_none() && value.is_narrowed {
            let present = self.constant(span, 1);
            return Value {
                present: Some(present),
                ..value
            };
        }
        value
    }

    /// Several presences together.
    fn together(&mut self, span: Span, a: Option<Reg>, b: Option<Reg>) -> Option<Reg> {
        match (a, b) {
            (Some(a), Some(b)) => Some(self.binary(span, Binary::And, a, b)),
            (a, b) => a.or(b),
        }
    }

    pub(super) fn expr(&mut self, e: &Expr, expect: Option<Type>) -> Value {
        if self.is_full {
            return self.nothing();
        }
        let span = e.span;
        match &e.kind {
            ExprKind::Whole(n) => {
                let ty = self.whole(*n, span, expect);
                let reg = self.constant(span, *n);
                Value::new(ty, reg)
            }
            ExprKind::Decimal(raw) => {
                let reg = self.constant(span, *raw);
                Value::new(decimal_type(expect), reg)
            }
            ExprKind::Lasting(ns) => {
                let reg = self.constant(span, *ns);
                Value::new(Type::Duration, reg)
            }
            ExprKind::Ticks(n) => {
                let reg = self.constant(span, *n);
                Value::new(Type::Ticks, reg)
            }
            ExprKind::Bool(b) => {
                let reg = self.constant(span, i64::from(*b));
                Value::new(Type::Bool, reg)
            }
            ExprKind::Text(text) => {
                let n = self.symbol(text, span);
                let reg = self.constant(span, n);
                Value::new(Type::Symbol, reg)
            }
            ExprKind::None => {
                let (reg, present) = (self.constant(span, 0), self.constant(span, 0));
                let value = Value::new(expect.unwrap_or(Type::Wrong), reg);
                self.optional(value, present, None)
            }
            ExprKind::Name(name) => self.named(name, span, expect),
            ExprKind::Field(of, field) => self.field(e, of, field),
            ExprKind::Index(of, index) => self.index(span, of, index),
            ExprKind::Call(of, arguments) => self.call(span, of, arguments, expect),
            ExprKind::Not(a) => {
                let a = self.need(a, Type::Bool);
                let reg = self.reg();
                self.emit(span, Op::Not(reg, a.reg));
                Value {
                    if_true: a.if_false,
                    if_false: a.if_true,
                    ..Value::new(Type::Bool, reg)
                }
            }
            ExprKind::Negative(a) => {
                let a = self.expr(a, expect);
                if !a.ty.is_number() && a.ty != Type::Wrong {
                    let is = self.show(a.ty);
                    self.wrong(span, format!("{is} has no negative"), "expected a number");
                    return self.nothing();
                }
                let reg = self.reg();
                self.emit(span, Op::Neg(reg, a.reg));
                Value { reg, ..a }
            }
            ExprKind::Binary(op, a, b) => self.operation(span, *op, a, b, expect),
            ExprKind::If(condition, a, b) => self.choice(span, condition, a, b, expect),
            ExprKind::List(_) => {
                self.wrong(
                    span,
                    "a list of values",
                    "arrays are declared by `state` or `const`",
                );
                self.nothing()
            }
            ExprKind::Order(order) => {
                self.acts(span);
                self.order(span, order)
            }
            ExprKind::Replace { order, qty, price } => {
                self.acts(span);
                let order = self.need(order, Type::Order);
                let qty = self.need(qty, Type::Qty);
                let price = self.need(price, Type::Price);
                let results = self.host(span, HostCall::Replace, vec![order.reg, qty.reg, price.reg], 2);
                let value = Value::new(Type::Order, results[0]);
                self.optional(value, results[1], None)
            }
        }
    }

    fn order(&mut self, span: Span, order: &OrderExpr) -> Value {
        let instrument = self.instrument(&order.instrument);
        let qty = self.need(&order.qty, Type::Qty);
        let price = match &order.price {
            Some(price) => self.need(price, Type::Price).reg,
            None => self.constant(span, 0),
        };
        let Some(instrument) = instrument else {
            return self.nothing();
        };
        let call = HostCall::Submit {
            instrument,
            side: if order.is_buy { Side::Bid } else { Side::Ask },
            lasting: statement::lasting(order),
            is_market: order.price.is_none(),
            on_stale: order.on_stale,
        };
        let results = self.host(span, call, vec![qty.reg, price], 2);
        let value = Value::new(Type::Order, results[0]);
        self.optional(value, results[1], None)
    }

    fn named(&mut self, name: &str, span: Span, expect: Option<Type>) -> Value {
        if let Some(local) = self.find_local(name) {
            let value = Value {
                tick: local.tick,
                ..Value::new(local.ty, local.reg)
            };
            return match local.present {
                Some(present) => self.optional(value, present, Some(Path::Local(local.number))),
                None => value,
            };
        }
        if let Some(ty) = expect
            && !self.globals.contains_key(name)
            && let Some(n) = self.value_named(ty, name)
        {
            let reg = self.constant(span, n);
            return Value::new(ty, reg);
        }
        match (name, self.told) {
            ("now", _) => {
                let reg = self.load_word(span, word::NOW);
                return Value::new(Type::Time, reg);
            }
            ("status", HandlerArgument::Status) => {
                let reg = self.load_word(span, word::EVENT);
                return Value::new(Type::Status, reg);
            }
            ("order", HandlerArgument::Order(_)) => {
                let reg = self.load_word(span, word::EVENT);
                return Value::new(Type::Order, reg);
            }
            ("trade" | "quote" | "imbalance", _) if self.is_told(name) => {
                self.wrong(
                    span,
                    format!("which part of the {name}?"),
                    "expected a field behind it",
                );
                return self.nothing();
            }
            _ => {}
        }
        match self.globals.get(name).cloned() {
            Some((Global::Param(n), _)) => {
                let (ty, at) = {
                    let param = &self.program.params[usize::from(n)];
                    (param.ty, param.at)
                };
                let reg = self.load_word(span, at);
                Value::new(ty, reg)
            }
            Some((Global::Const { ty, values, at: None }, _)) => {
                let reg = self.constant(span, values[0]);
                Value::new(ty, reg)
            }
            Some((Global::State(place), _)) if place.len.is_none() => {
                let reg = self.load_word(span, place.at);
                let mut value = Value::new(place.ty, reg);
                if !place.is_optional || self.facts.contains(&Path::State(place.at)) {
                    value.is_narrowed = place.is_optional;
                    return value;
                }
                let present = self.load_word(span, place.at + 1);
                self.optional(value, present, Some(Path::State(place.at)))
            }
            Some((Global::Counter(n), _)) => {
                let at = self.program.counters[usize::from(n)].at;
                let reg = self.load_word(span, at);
                Value::new(Type::Int, reg)
            }
            Some((other, at)) => {
                let help = match &other {
                    Global::State(_) | Global::Const { .. } => {
                        format!("write `{name}[…]` for one of its values")
                    }
                    Global::Instrument(_) => format!("write `{name}.bid[0].price`, `{name}.position`, …"),
                    Global::Window(_) => format!("write `{name}.sum`, `{name}.max`, …"),
                    Global::Table { .. } => format!("write `{name}.at(…)` or `{name}.linear(…)`"),
                    Global::Function(_) => format!("write `{name}(…)`"),
                    _ => "it cannot be used as a value".to_string(),
                };
                let found = Diagnostic::new(
                    span,
                    format!("`{name}` is {}, not a value", other.what()),
                    "expected a value",
                );
                self.say(found.also(at, "declared here").help(help));
                self.nothing()
            }
            None => {
                if self.alias.as_ref().is_some_and(|(alias, _)| alias == name) {
                    self.wrong(
                        span,
                        format!("`{name}` is an instrument, not a value"),
                        "expected a value",
                    );
                } else if let Some(Type::Enum(_) | Type::Side | Type::Status | Type::Report) = expect {
                    let field = Name {
                        text: name.to_string(),
                        span,
                    };
                    let ty = expect.unwrap_or(Type::Wrong);
                    let _ = self.enum_value(ty, &field);
                } else {
                    self.unknown(name, span, "value");
                }
                self.nothing()
            }
        }
    }

    /// An instrument that an expression names.
    fn as_instrument(&self, e: &Expr) -> Option<u16> {
        let ExprKind::Name(name) = &e.kind else {
            return None;
        };
        if let Some((alias, n)) = &self.alias
            && alias == name
        {
            return Some(*n);
        }
        match self.globals.get(name) {
            Some((Global::Instrument(n), _)) if self.find_local(name).is_none() => Some(*n),
            _ => None,
        }
    }

    fn no_field(&mut self, field: &Name, of: &str, known: &[&str]) -> Value {
        let help = match nearest(&field.text, known.iter().copied()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("there are {}", known.join(", ")),
        };
        let found = Diagnostic::new(
            field.span,
            format!("{of} has no `{}`", field.text),
            "expected a field",
        );
        self.say(found.help(help));
        self.nothing()
    }

    fn field(&mut self, e: &Expr, of: &Expr, field: &Name) -> Value {
        let span = e.span;
        // INSTRUMENT.bid[N].price
        if let ExprKind::Index(side, n) = &of.kind
            && let ExprKind::Field(instrument, side) = &side.kind
            && let Some(instrument) = self.as_instrument(instrument)
        {
            if !matches!(side.text.as_str(), "bid" | "ask") {
                return self.no_field(side, "an instrument", &FIELDS);
            }
            let side = if side.text == "bid" { Side::Bid } else { Side::Ask };
            return self.level_field(span, instrument, side, n, field);
        }
        if let Some(instrument) = self.as_instrument(of) {
            return self.instrument_field(span, instrument, field);
        }
        if let ExprKind::Name(name) = &of.kind
            && self.find_local(name).is_none()
        {
            if self.is_told(name) && name != "status" {
                return self.told_field(span, name, field, of);
            }
            match self.globals.get(name).cloned() {
                Some((Global::Enum(n), _)) => {
                    let ty = Type::Enum(n);
                    let value = self.enum_value(ty, field).unwrap_or(0);
                    let reg = self.constant(span, value);
                    return Value::new(ty, reg);
                }
                Some((Global::Window(n), _)) => return self.window_field(span, n, field),
                Some((Global::Table { .. }, _)) => {
                    return self.no_field(field, "a table", &["at(…)", "linear(…)"]);
                }
                None => {
                    let builtin = match name.as_str() {
                        "side" => Some(Type::Side),
                        "status" => Some(Type::Status),
                        "report" => Some(Type::Report),
                        _ => None,
                    };
                    if let Some(ty) = builtin {
                        let value = self.enum_value(ty, field).unwrap_or(0);
                        let reg = self.constant(span, value);
                        return Value::new(ty, reg);
                    }
                }
                _ => {}
            }
        }
        let value = self.expr(of, None);
        match value.ty {
            Type::Order => {
                self.present(&value, of.span);
                self.order_field(span, value.reg, field)
            }
            Type::Wrong => self.nothing(),
            ty => {
                let is = self.show(ty);
                self.wrong(field.span, format!("{is} has no fields"), "expected nothing here");
                self.nothing()
            }
        }
    }

    fn order_field(&mut self, span: Span, order: Reg, field: &Name) -> Value {
        const OF: [(&str, Type); 6] = [
            ("open", Type::Bool),
            ("price", Type::Price),
            ("qty", Type::Qty),
            ("filled", Type::Qty),
            ("remaining", Type::Qty),
            ("side", Type::Side),
        ];
        let Some(at) = OF.iter().position(|(name, _)| *name == field.text) else {
            return self.no_field(field, "an order", &OF.map(|(name, _)| name));
        };
        let results = self.host(span, HostCall::Order, vec![order], OF.len());
        Value::new(OF[at].1, results[at])
    }

    fn told_field(&mut self, span: Span, name: &str, field: &Name, of: &Expr) -> Value {
        // Where it is, its type, where it is said whether it is there; a quantity of 0 says so of a quote.
        type Row = (&'static str, u32, Type, Option<u32>);
        const TRADE: [Row; 3] = [
            ("price", 0, Type::Price, None),
            ("qty", 1, Type::Qty, None),
            ("side", 2, Type::Side, Some(3)),
        ];
        const QUOTE: [Row; 4] = [
            ("bid", 0, Type::Price, Some(1)),
            ("bid_qty", 1, Type::Qty, None),
            ("ask", 2, Type::Price, Some(3)),
            ("ask_qty", 3, Type::Qty, None),
        ];
        const IMBALANCE: [Row; 6] = [
            ("reference", 0, Type::Price, Some(0)),
            ("paired", 1, Type::Qty, None),
            ("missing", 2, Type::Qty, None),
            ("side", 3, Type::Side, Some(4)),
            ("near", 5, Type::Price, Some(5)),
            ("far", 6, Type::Price, Some(6)),
        ];
        const ORDER: [Row; 10] = [
            ("report", 1, Type::Report, None),
            ("traded", 2, Type::Qty, None),
            ("traded_price", 3, Type::Price, Some(4)),
            ("side", 5, Type::Side, None),
            ("open", 6, Type::Bool, None),
            ("qty", 7, Type::Qty, None),
            ("filled", 8, Type::Qty, None),
            ("remaining", 9, Type::Qty, None),
            ("price", 10, Type::Price, None),
            ("replaced", 11, Type::Order, Some(12)),
        ];
        let (rows, what, instrument): (&[Row], _, _) = match self.told {
            HandlerArgument::Trade(n) => (&TRADE, "a trade", n),
            HandlerArgument::Quote(n) => (&QUOTE, "a quote", n),
            HandlerArgument::Imbalance(n) => (&IMBALANCE, "an imbalance", n),
            HandlerArgument::Order(n) => (&ORDER, "an order", n),
            HandlerArgument::Nothing | HandlerArgument::Status => return self.expr(of, None),
        };
        let _ = name;
        let Some((_, at, ty, is_there)) = rows.iter().find(|row| row.0 == field.text) else {
            let names: Vec<&str> = rows.iter().map(|row| row.0).collect();
            return self.no_field(field, what, &names);
        };
        let reg = self.load_word(span, word::EVENT + at);
        let mut value = Value::new(*ty, reg);
        if *ty == Type::Price {
            value.tick = Tick::Of(instrument);
        }
        match is_there {
            None => value,
            Some(there) => {
                let path = Path::Field(u16::MAX, word::EVENT + at);
                if self.facts.contains(&path) {
                    value.is_narrowed = true;
                    return value;
                }
                let present = self.is_not_zero(span, word::EVENT + there);
                self.optional(value, present, Some(path))
            }
        }
    }

    fn is_not_zero(&mut self, span: Span, at: u32) -> Reg {
        let (held, zero) = (self.load_word(span, at), self.constant(span, 0));
        self.binary(span, Binary::Ne, held, zero)
    }

    fn instrument_field(&mut self, span: Span, instrument: u16, field: &Name) -> Value {
        let base = self.program.instruments[usize::from(instrument)].at;
        let plain = |checker: &mut Self, at: u32, ty: Type| {
            let reg = checker.load_word(span, base + at);
            Value::new(ty, reg)
        };
        match field.text.as_str() {
            "last_qty" => plain(self, word::LAST_QTY, Type::Qty),
            "lot" => plain(self, word::LOT, Type::Qty),
            "known" => plain(self, word::IS_KNOWN, Type::Bool),
            "tick" => Value {
                tick: Tick::Of(instrument),
                ..plain(self, word::TICK, Type::Price)
            },
            "last_trade" => {
                let value = Value {
                    tick: Tick::Of(instrument),
                    ..plain(self, word::LAST, Type::Price)
                };
                self.optional_word(
                    span,
                    value,
                    base + word::HAS_LAST,
                    Path::Field(instrument, word::LAST),
                )
            }
            "updated" => {
                let value = plain(self, word::UPDATED, Type::Time);
                self.optional_word(
                    span,
                    value,
                    base + word::HAS_UPDATED,
                    Path::Field(instrument, word::UPDATED),
                )
            }
            "position" | "cost" | "buying" | "selling" => {
                let results = self.host(span, HostCall::Position(instrument), Vec::new(), 4);
                match field.text.as_str() {
                    "position" => Value::new(Type::Qty, results[0]),
                    "cost" => Value::new(Type::Money, results[1]),
                    "buying" => Value::new(Type::Qty, results[2]),
                    _ => Value::new(Type::Qty, results[3]),
                }
            }
            "open_orders" => {
                let results = self.host(span, HostCall::OpenOrders(instrument), Vec::new(), 1);
                Value::new(Type::Int, results[0])
            }
            "bid" | "ask" => {
                let found = Diagnostic::new(
                    span,
                    "which level of the book?",
                    "expected a number in brackets behind it",
                );
                self.say(found.help(format!(
                    "the best is `{}[0]`, its price `{0}[0].price`",
                    field.text
                )));
                self.nothing()
            }
            _ => self.no_field(field, "an instrument", &FIELDS),
        }
    }

    fn optional_word(&mut self, span: Span, mut value: Value, at: u32, path: Path) -> Value {
        if self.facts.contains(&path) {
            value.is_narrowed = true;
            return value;
        }
        let present = self.load_word(span, at);
        self.optional(value, present, Some(path))
    }

    fn level_field(&mut self, span: Span, instrument: u16, side: Side, n: &Expr, field: &Name) -> Value {
        const OF: [&str; 3] = ["price", "qty", "orders"];
        if !OF.contains(&field.text.as_str()) {
            return self.no_field(field, "a level", &OF);
        }
        let known = self.quiet(n);
        if known.is_some_and(|n| !(0..1_000).contains(&n)) {
            self.wrong(n.span, "there is no such level", "expected 0, the best, to 999");
            return self.nothing();
        }
        let base = self.program.instruments[usize::from(instrument)].at;
        let path = known.map(|n| Path::Level(instrument, side == Side::Bid, n));
        if known == Some(0) && field.text != "orders" {
            let (price, qty) = match side {
                Side::Bid => (word::BID, word::BID_QTY),
                Side::Ask => (word::ASK, word::ASK_QTY),
            };
            if field.text == "qty" {
                let reg = self.load_word(span, base + qty);
                return Value::new(Type::Qty, reg);
            }
            let reg = self.load_word(span, base + price);
            let mut value = Value {
                tick: Tick::Of(instrument),
                ..Value::new(Type::Price, reg)
            };
            if path.is_some_and(|path| self.facts.contains(&path)) {
                value.is_narrowed = true;
                return value;
            }
            let present = self.is_not_zero(span, base + qty);
            return self.optional(value, present, path);
        }
        let n = self.need(n, Type::Int);
        let results = self.host(span, HostCall::Level(instrument, side), vec![n.reg], 4);
        match field.text.as_str() {
            "qty" => Value::new(Type::Qty, results[2]),
            "orders" => Value::new(Type::Int, results[3]),
            _ => {
                let value = Value {
                    tick: Tick::Of(instrument),
                    ..Value::new(Type::Price, results[0])
                };
                self.optional(value, results[1], path)
            }
        }
    }

    fn window_field(&mut self, span: Span, n: u16, field: &Name) -> Value {
        const OF: [&str; 8] = ["count", "sum", "min", "max", "newest", "oldest", "mean", "full"];
        if !OF.contains(&field.text.as_str()) {
            return self.no_field(field, "a window", &OF);
        }
        let (ty, capacity) = {
            let window = &self.program.windows[usize::from(n)];
            (window.ty, window.capacity)
        };
        let now = self.load_word(span, word::NOW);
        let results = self.host(span, HostCall::Window(n), vec![now], 7);
        let of = |at: usize| Value::new(ty, results[at]);
        let value = match field.text.as_str() {
            "count" => return Value::new(Type::Int, results[0]),
            "sum" => return of(1),
            "full" => {
                let capacity = self.constant(span, i64::from(capacity));
                let reg = self.binary(span, Binary::Eq, results[0], capacity);
                return Value::new(Type::Bool, reg);
            }
            "min" => of(2),
            "max" => of(3),
            "newest" => of(4),
            "oldest" => of(5),
            _ => {
                let one = self.constant(span, 1);
                let count = self.binary(span, Binary::Max, results[0], one);
                let mean = self.binary(span, Binary::Div, results[1], count);
                Value::new(ty, mean)
            }
        };
        self.optional(value, results[6], None)
    }

    /// A number that is known, without saying that it is not.
    fn quiet(&mut self, e: &Expr) -> Option<i64> {
        match &e.kind {
            ExprKind::Whole(n) => Some(*n),
            ExprKind::Name(name) if self.find_local(name).is_none() => match self.globals.get(name) {
                Some((
                    Global::Const {
                        ty: Type::Int,
                        values,
                        at: None,
                    },
                    _,
                )) => values.first().copied(),
                _ => None,
            },
            _ => None,
        }
    }

    /// An index that is known and lies within the array; one that lies outside is said.
    pub(super) fn known_index(&mut self, e: &Expr, len: u32) -> Option<u32> {
        let n = self.quiet(e)?;
        if !(0..i64::from(len)).contains(&n) {
            self.wrong(
                e.span,
                format!("the array has {len} values"),
                format!("expected 0 to {}", len - 1),
            );
            return Some(0);
        }
        Some(n as u32)
    }

    fn index(&mut self, span: Span, of: &Expr, index: &Expr) -> Value {
        let ExprKind::Name(name) = &of.kind else {
            if let ExprKind::Field(..) = &of.kind {
                self.wrong(
                    span,
                    "which part of the level?",
                    "expected `.price`, `.qty` or `.orders` behind it",
                );
            } else {
                self.wrong(span, "this is no array", "expected an array's name");
            }
            return self.nothing();
        };
        let (ty, at, len) = match self.globals.get(name).cloned() {
            Some((
                Global::State(Storage {
                    ty,
                    len: Some(len),
                    at,
                    ..
                }),
                _,
            )) => (ty, at, len),
            Some((
                Global::Const {
                    ty,
                    values,
                    at: Some(at),
                },
                _,
            )) => (ty, at, values.len() as u32),
            _ => {
                self.wrong(
                    of.span,
                    format!("`{name}` is no array"),
                    "expected an array of `state` or `const`",
                );
                return self.nothing();
            }
        };
        let reg = match self.known_index(index, len) {
            Some(n) => self.load_word(span, at + n),
            None => {
                let index = self.need(index, Type::Int);
                let reg = self.reg();
                self.emit(span, Op::LoadAt(reg, at, index.reg, len));
                reg
            }
        };
        Value::new(ty, reg)
    }

    fn choice(&mut self, span: Span, condition: &Expr, a: &Expr, b: &Expr, expect: Option<Type>) -> Value {
        let condition = self.need(condition, Type::Bool);
        let (reg, present) = (self.reg(), self.reg());
        // The one that has a type of its own comes first: it says what the other is.
        let is_swapped = expect.is_none() && self.takes_type(a) && !self.takes_type(b);
        let (a, b, decides, if_true, if_false) = match is_swapped {
            false => (a, b, condition.reg, condition.if_true, condition.if_false),
            true => {
                let not = self.reg();
                self.emit(span, Op::Not(not, condition.reg));
                (b, a, not, condition.if_false, condition.if_true)
            }
        };
        let facts = self.facts.clone();
        let jump = self.jump_if_not(span, decides);
        self.facts.extend(if_true);
        let first = self.expr(a, expect);
        self.settle(span, &first, reg, present);
        let end = self.jump(span);
        self.lands(jump);
        self.facts = facts.clone();
        self.facts.extend(if_false);
        let second = self.expr(b, Some(first.ty).filter(|ty| *ty != Type::Wrong).or(expect));
        self.settle(span, &second, reg, present);
        self.lands(end);
        self.facts = facts;
        if first.ty != Type::Wrong {
            self.same(&second, first.ty, b.span);
        }
        let mut value = Value::new(
            if first.ty == Type::Wrong {
                second.ty
            } else {
                first.ty
            },
            reg,
        );
        value.tick = first.tick.and(second.tick);
        if first.present.is_some() || second.present.is_some() {
            value.present = Some(present);
        }
        value
    }

    fn settle(&mut self, span: Span, value: &Value, reg: Reg, present: Reg) {
        self.emit(span, Op::Move(reg, value.reg));
        let op = match value.present {
            Some(from) => Op::Move(present, from),
            None => Op::Const(present, 1),
        };
        self.emit(span, op);
    }

    fn operation(&mut self, span: Span, op: BinaryOp, a: &Expr, b: &Expr, expect: Option<Type>) -> Value {
        match op {
            BinaryOp::And | BinaryOp::Or => return self.junction(span, op == BinaryOp::And, a, b),
            BinaryOp::Else => return self.otherwise(span, a, b, expect),
            BinaryOp::Eq | BinaryOp::Ne => return self.equality(span, op == BinaryOp::Eq, a, b),
            _ => {}
        }
        let is_sum = matches!(op, BinaryOp::Add | BinaryOp::Sub);
        let is_product = matches!(op, BinaryOp::Mul | BinaryOp::Div | BinaryOp::Rem);
        let (va, vb) = if is_product {
            (self.expr(a, None), self.expr(b, None))
        } else if self.takes_type(a) && self.takes_type(b) {
            let expect = expect.filter(|_| is_sum);
            let va = self.expr(a, expect);
            let vb = self.expr(b, expect);
            (va, vb)
        } else if self.takes_type(a) {
            // The side that has a type says what the other is.
            let vb = self.expr(b, None);
            let beside = self.beside(Some(vb.ty), is_sum);
            (self.expr(a, beside), vb)
        } else {
            let va = self.expr(a, None);
            let beside = self.beside(Some(va.ty), is_sum);
            let vb = self.expr(b, beside);
            (va, vb)
        };
        if va.ty == Type::Wrong || vb.ty == Type::Wrong {
            return self.nothing();
        }
        match op {
            BinaryOp::Lt | BinaryOp::Le | BinaryOp::Gt | BinaryOp::Ge => {
                self.comparison(span, op, (va, a), (vb, b))
            }
            _ => self.arithmetic(span, op, va, vb),
        }
    }

    /// What a number beside a value of this type is taken as.
    fn beside(&self, ty: Option<Type>, is_sum: bool) -> Option<Type> {
        match ty {
            Some(Type::Time) if is_sum => Some(Type::Duration),
            ty => ty,
        }
    }

    fn comparison(
        &mut self,
        span: Span,
        op: BinaryOp,
        (va, a): (Value, &Expr),
        (vb, b): (Value, &Expr),
    ) -> Value {
        if !va.ty.is_ordered() {
            let is = self.show(va.ty);
            self.wrong(
                a.span,
                format!("{is} has no order"),
                "expected a number or a time",
            );
            return self.nothing();
        }
        if va.ty != vb.ty {
            self.mixed(span, "compared", &va, &vb, (a, b));
            return self.nothing();
        }
        let (op, x, y) = match op {
            BinaryOp::Lt => (Binary::Lt, va.reg, vb.reg),
            BinaryOp::Le => (Binary::Le, va.reg, vb.reg),
            BinaryOp::Gt => (Binary::Lt, vb.reg, va.reg),
            _ => (Binary::Le, vb.reg, va.reg),
        };
        let mut reg = self.binary(span, op, x, y);
        if let Some(present) = self.together(span, va.present, vb.present) {
            reg = self.binary(span, Binary::And, reg, present);
        }
        let mut value = Value::new(Type::Bool, reg);
        value.if_true = va.needs;
        value.if_true.extend(vb.needs);
        value
    }

    fn mixed(&mut self, span: Span, what: &str, va: &Value, vb: &Value, (a, b): (&Expr, &Expr)) {
        let (x, y) = (self.show(va.ty), self.show(vb.ty));
        let label = format!("this is {x}");
        let mut found = Diagnostic::new(a.span.to(b.span), format!("{x} and {y} cannot be {what}"), label);
        found.label = format!("{x} on the left, {y} on the right");
        found.help = match (va.ty, vb.ty) {
            (Type::Price, Type::Ticks) | (Type::Ticks, Type::Price) => {
                Some("`distance(a, b)` and `steps(a, b)` are ticks between two prices".to_string())
            }
            (Type::Price, Type::Qty) | (Type::Qty, Type::Price) => {
                Some("price times quantity is money; price and quantity have no sum and no order".to_string())
            }
            _ => None,
        };
        let _ = span;
        self.say(found);
    }

    fn arithmetic(&mut self, span: Span, op: BinaryOp, va: Value, vb: Value) -> Value {
        use BinaryOp as B;
        use Type as T;
        if let (B::Add | B::Sub, T::Price, T::Ticks) = (op, va.ty, vb.ty) {
            let tick = va.tick;
            return self.moved(span, va, vb, tick, op == B::Sub);
        }
        if let (B::Add, T::Ticks, T::Price) = (op, va.ty, vb.ty) {
            let tick = vb.tick;
            return self.moved(span, vb, va, tick, false);
        }
        let ty = match (op, va.ty, vb.ty) {
            (B::Add, T::Time, T::Duration)
            | (B::Add, T::Duration, T::Time)
            | (B::Sub, T::Time, T::Duration) => T::Time,
            (B::Sub, T::Time, T::Time) => T::Duration,
            (B::Add | B::Sub, a, b) if a == b && a.is_number() => a,
            (B::Mul, a, T::Int) if a.is_number() => a,
            (B::Mul, T::Int, b) if b.is_number() => b,
            (B::Mul, T::Price, T::Qty) | (B::Mul, T::Qty, T::Price) => T::Money,
            (B::Div, a, T::Int) if a.is_number() => a,
            (B::Div, a, b) if a == b && a.is_number() => T::Int,
            (B::Div, T::Money, T::Qty) => T::Price,
            (B::Div, T::Money, T::Price) => T::Qty,
            (B::Rem, a, b) if a.is_number() && (a == b || b == T::Int) => a,
            _ => {
                let what = match op {
                    B::Add => "added",
                    B::Sub => "subtracted",
                    B::Mul => "multiplied",
                    _ => "divided",
                };
                let (x, y) = (self.show(va.ty), self.show(vb.ty));
                let mut found = Diagnostic::new(
                    span,
                    format!("{x} and {y} cannot be {what}"),
                    format!("{x} on the left, {y} on the right"),
                );
                found.help = match (va.ty, vb.ty) {
                    (T::Price, T::Qty) | (T::Qty, T::Price) => Some(
                        "price times quantity is money; a price moves by a price or by ticks".to_string(),
                    ),
                    (T::Time, T::Time) => {
                        Some("times have a difference, which is a duration, and no sum".to_string())
                    }
                    (T::Price, T::Int) | (T::Int, T::Price) => Some(
                        "a price moves by a price such as `0.01` or by ticks such as `1 tick`".to_string(),
                    ),
                    _ => None,
                };
                self.say(found);
                return self.nothing();
            }
        };
        let mut divisor = vb.reg;
        let code = match op {
            B::Add => Binary::Add,
            B::Sub => Binary::Sub,
            B::Mul => Binary::Mul,
            B::Div => Binary::Div,
            _ => Binary::Rem,
        };
        if matches!(op, B::Div | B::Rem)
            && let Some(present) = vb.present
        {
            // What is absent does not trap.
            let (one, to) = (self.constant(span, 1), self.reg());
            self.emit(span, Op::Select(to, present, vb.reg, one));
            divisor = to;
        }
        let reg = self.binary(span, code, va.reg, divisor);
        let mut value = Value::new(ty, reg);
        value.tick = va.tick.and(vb.tick);
        value.present = self.together(span, va.present, vb.present);
        value.needs = va.needs;
        value.needs.extend(vb.needs);
        value
    }

    /// A price so many ticks on.
    fn moved(&mut self, span: Span, price: Value, ticks: Value, tick: Tick, is_down: bool) -> Value {
        let Some(instrument) = self.ticks_of(span, tick) else {
            return self.nothing();
        };
        let at = self.program.instruments[usize::from(instrument)].at + word::TICK;
        let step = self.load_word(span, at);
        let by = self.binary(span, Binary::Mul, step, ticks.reg);
        let op = if is_down { Binary::Sub } else { Binary::Add };
        let reg = self.binary(span, op, price.reg, by);
        let mut value = Value::new(Type::Price, reg);
        value.tick = Tick::Of(instrument);
        value.present = self.together(span, price.present, ticks.present);
        value.needs = price.needs;
        value.needs.extend(ticks.needs);
        value
    }

    /// Whose ticks they are: the price's, or those of the only instrument.
    fn ticks_of(&mut self, span: Span, tick: Tick) -> Option<u16> {
        match tick {
            Tick::Of(n) => Some(n),
            _ if self.program.instruments.len() == 1 => Some(0),
            _ => {
                let found = Diagnostic::new(
                    span,
                    "the ticks of which instrument?",
                    "the price does not come from one instrument alone",
                );
                self.say(
                    found.help(
                        "name it: `distance(a, b, usd)`, `steps(a, b, usd)`, `stepped(p, 3 ticks, usd)`",
                    ),
                );
                None
            }
        }
    }

    fn junction(&mut self, span: Span, is_and: bool, a: &Expr, b: &Expr) -> Value {
        let va = self.need(a, Type::Bool);
        let reg = self.reg();
        self.emit(span, Op::Move(reg, va.reg));
        let skip = match is_and {
            true => reg,
            false => {
                let not = self.reg();
                self.emit(span, Op::Not(not, reg));
                not
            }
        };
        let jump = self.jump_if_not(span, skip);
        let facts = self.facts.clone();
        self.facts.extend(match is_and {
            true => va.if_true.iter().copied(),
            false => va.if_false.iter().copied(),
        });
        let vb = self.need(b, Type::Bool);
        self.emit(span, Op::Move(reg, vb.reg));
        self.lands(jump);
        // An order or a call within may have changed what is known.
        self.facts = facts;
        let mut value = Value::new(Type::Bool, reg);
        let (mine, theirs) = match is_and {
            true => (va.if_true, vb.if_true),
            false => (va.if_false, vb.if_false),
        };
        let both = mine.into_iter().chain(theirs).collect();
        match is_and {
            true => value.if_true = both,
            false => value.if_false = both,
        }
        value
    }

    /// `a else b`
    fn otherwise(&mut self, span: Span, a: &Expr, b: &Expr, expect: Option<Type>) -> Value {
        let va = self.expr(a, expect);
        let va = self.or_known(span, va);
        let Some(is_there) = va.present else {
            if va.ty != Type::Wrong {
                self.wrong(a.span, "this is always there", "nothing else is needed");
            }
            return va;
        };
        let (reg, present) = (self.reg(), self.reg());
        self.settle(span, &va, reg, present);
        let missing = self.reg();
        self.emit(span, Op::Not(missing, is_there));
        let jump = self.jump_if_not(span, missing);
        let vb = self.expr(b, Some(va.ty));
        self.settle(span, &vb, reg, present);
        self.lands(jump);
        self.same(&vb, va.ty, b.span);
        let mut value = Value::new(va.ty, reg);
        value.tick = va.tick.and(vb.tick);
        value.present = vb.present.map(|_| present);
        value
    }

    fn equality(&mut self, span: Span, is_equal: bool, a: &Expr, b: &Expr) -> Value {
        let (a, b) = if self.takes_type(a) && !self.takes_type(b) {
            (b, a)
        } else {
            (a, b)
        };
        let va = self.expr(a, None);
        if matches!(b.kind, ExprKind::None) {
            let va = self.or_known(span, va);
            let Some(present) = va.present else {
                if va.ty != Type::Wrong {
                    self.wrong(
                        a.span,
                        "this is always there",
                        "comparing it with `none` says nothing",
                    );
                }
                return self.nothing();
            };
            let mut value = Value::new(Type::Bool, present);
            if is_equal {
                let reg = self.reg();
                self.emit(span, Op::Not(reg, present));
                value.reg = reg;
                value.if_false = va.needs;
            } else {
                value.if_true = va.needs;
            }
            return value;
        }
        let vb = self.expr(b, Some(va.ty));
        if va.ty == Type::Wrong || vb.ty == Type::Wrong {
            return self.nothing();
        }
        if va.ty != vb.ty {
            self.mixed(span, "compared", &va, &vb, (a, b));
            return self.nothing();
        }
        let same = self.binary(span, Binary::Eq, va.reg, vb.reg);
        let (reg, needs) = match (va.present, vb.present) {
            (None, None) => (same, Vec::new()),
            (Some(p), None) => (self.binary(span, Binary::And, same, p), va.needs),
            (None, Some(p)) => (self.binary(span, Binary::And, same, p), vb.needs),
            (Some(p), Some(q)) => {
                let alike = self.binary(span, Binary::Eq, p, q);
                let absent = self.reg();
                self.emit(span, Op::Not(absent, p));
                let either = self.binary(span, Binary::Or, same, absent);
                (self.binary(span, Binary::And, alike, either), Vec::new())
            }
        };
        let mut value = Value::new(Type::Bool, reg);
        match is_equal {
            true => value.if_true = needs,
            false => {
                let not = self.reg();
                self.emit(span, Op::Not(not, reg));
                value.reg = not;
                value.if_false = needs;
            }
        }
        value
    }

    fn count(
        &mut self,
        span: Span,
        name: &str,
        arguments: &[Expr],
        of: core::ops::RangeInclusive<usize>,
    ) -> bool {
        let fits = of.contains(&arguments.len());
        if !fits {
            let wanted = match of.start() == of.end() {
                true => format!("{}", of.start()),
                false => format!("{} to {}", of.start(), of.end()),
            };
            let message = format!("`{name}` is given {} arguments", arguments.len());
            self.wrong(span, message, format!("expected {wanted}"));
        }
        fits
    }

    fn call(&mut self, span: Span, of: &Expr, arguments: &[Expr], expect: Option<Type>) -> Value {
        if let ExprKind::Field(table, how) = &of.kind
            && let ExprKind::Name(name) = &table.kind
            && let Some((Global::Table { at, key, value }, _)) = self.globals.get(name).cloned()
        {
            let is_linear = match how.text.as_str() {
                "at" => false,
                "linear" => true,
                _ => return self.no_field(how, "a table", &["at", "linear"]),
            };
            if !self.count(span, &how.text, arguments, 1..=1) {
                return self.nothing();
            }
            let given = self.expr(&arguments[0], Some(key));
            self.same(&given, key, arguments[0].span);
            let results = self.host(span, HostCall::Table(at, is_linear), vec![given.reg], 2);
            let mut found = Value::new(value, results[0]);
            found.needs = given.needs;
            // Between and beyond keys, the straight line has a value everywhere.
            found.present = match is_linear {
                true => given.present,
                false => self.together(span, given.present, Some(results[1])),
            };
            return found;
        }
        let ExprKind::Name(name) = &of.kind else {
            self.wrong(span, "this cannot be called", "expected a function's name");
            return self.nothing();
        };
        if let Some((Global::Function(n), _)) = self.globals.get(name) {
            return self.call_function(span, *n, arguments);
        }
        if !BUILTINS.contains(&name.as_str()) {
            self.unknown(name, of.span, "function");
            return self.nothing();
        }
        self.builtin(span, name, arguments, expect)
    }

    fn argument_instrument(&mut self, e: &Expr) -> Option<u16> {
        match &e.kind {
            ExprKind::Name(name) => {
                let name = Name {
                    text: name.clone(),
                    span: e.span,
                };
                self.instrument(&name)
            }
            _ => {
                self.wrong(e.span, "expected an instrument", "expected an instrument's name");
                None
            }
        }
    }

    fn builtin(&mut self, span: Span, name: &str, arguments: &[Expr], expect: Option<Type>) -> Value {
        let counts = match name {
            "abs" | "clock" | "int" | "live" | "mid" | "open_orders" | "sign" | "spread" | "trading"
            | "weighted" => 1..=1,
            "round_down" | "round_up" => 1..=2,
            "distance" | "steps" | "stepped" => 2..=3,
            "min" | "max" => 2..=2,
            "clamp" => 3..=3,
            "now" => 0..=0,
            _ => 1..=64,
        };
        if !self.count(span, name, arguments, counts) {
            return self.nothing();
        }
        match name {
            "live" | "trading" | "open_orders" | "mid" | "spread" | "weighted" => {
                let Some(n) = self.argument_instrument(&arguments[0]) else {
                    return self.nothing();
                };
                self.of_book(span, name, n)
            }
            "fair" | "best_bid" | "best_ask" => {
                let mut of = Vec::new();
                for e in arguments {
                    match self.argument_instrument(e) {
                        Some(n) => of.push(n),
                        None => return self.nothing(),
                    }
                }
                self.of_books(span, name, of)
            }
            "abs" | "sign" => {
                let a = self.expr(&arguments[0], expect);
                if !a.ty.is_number() {
                    self.same(&a, Type::Int, arguments[0].span);
                    return self.nothing();
                }
                let zero = self.constant(span, 0);
                if name == "abs" {
                    let negative = self.reg();
                    self.emit(span, Op::Neg(negative, a.reg));
                    let reg = self.binary(span, Binary::Max, a.reg, negative);
                    return Value { reg, ..a };
                }
                let (above, below) = (
                    self.binary(span, Binary::Lt, zero, a.reg),
                    self.binary(span, Binary::Lt, a.reg, zero),
                );
                let reg = self.binary(span, Binary::Sub, above, below);
                Value {
                    reg,
                    ty: Type::Int,
                    tick: Tick::Free,
                    ..a
                }
            }
            "min" | "max" | "clamp" => self.between(span, name, arguments, expect),
            "int" => {
                let a = self.expr(&arguments[0], None);
                if !a.ty.is_number() && a.ty != Type::Wrong {
                    self.same(&a, Type::Int, arguments[0].span);
                    return self.nothing();
                }
                Value {
                    ty: Type::Int,
                    tick: Tick::Free,
                    ..a
                }
            }
            "clock" => {
                let a = self.expr(&arguments[0], Some(Type::Time));
                self.same(&a, Type::Time, arguments[0].span);
                let day = self.constant(span, 86_400_000_000_000);
                let reg = self.binary(span, Binary::Rem, a.reg, day);
                Value {
                    reg,
                    ty: Type::Duration,
                    ..a
                }
            }
            "now" => {
                self.wrong(
                    span,
                    "`now` is a value, not a function",
                    "expected `now` without brackets",
                );
                self.nothing()
            }
            _ => self.in_ticks(span, name, arguments),
        }
    }

    fn between(&mut self, span: Span, name: &str, arguments: &[Expr], expect: Option<Type>) -> Value {
        // The first argument that has a type of its own says what the others are.
        let typed = arguments.iter().position(|e| !self.takes_type(e));
        let mut values: Vec<Option<Value>> = vec![None; arguments.len()];
        let mut ty = expect;
        if let Some(at) = typed {
            let value = self.expr(&arguments[at], expect);
            ty = Some(value.ty);
            values[at] = Some(value);
        }
        for (place, e) in values.iter_mut().zip(arguments) {
            if place.is_none() {
                let value = self.expr(e, ty);
                let ty = *ty.get_or_insert(value.ty);
                self.same(&value, ty, e.span);
                *place = Some(value);
            }
        }
        let mut values: Vec<Value> = values.into_iter().flatten().collect();
        let first = values.remove(0);
        if !first.ty.is_ordered() {
            if first.ty != Type::Wrong {
                self.same(&first, Type::Int, arguments[0].span);
            }
            return self.nothing();
        }
        let mut value = first;
        let ops: &[Binary] = match name {
            "min" => &[Binary::Min],
            "max" => &[Binary::Max],
            _ => &[Binary::Max, Binary::Min],
        };
        for (other, op) in values.into_iter().zip(ops) {
            value.reg = self.binary(span, *op, value.reg, other.reg);
            value.present = self.together(span, value.present, other.present);
            value.needs.extend(other.needs);
            value.tick = value.tick.and(other.tick);
        }
        value
    }

    fn in_ticks(&mut self, span: Span, name: &str, arguments: &[Expr]) -> Value {
        let is_rounding = matches!(name, "round_down" | "round_up");
        let prices = if is_rounding { 1 } else { 2 };
        let first = self.expr(&arguments[0], Some(Type::Price));
        self.same(&first, Type::Price, arguments[0].span);
        let second = match prices {
            1 => None,
            _ => {
                let ty = if name == "stepped" {
                    Type::Ticks
                } else {
                    Type::Price
                };
                let second = self.expr(&arguments[1], Some(ty));
                self.same(&second, ty, arguments[1].span);
                Some(second)
            }
        };
        let tick = match arguments.get(prices) {
            Some(e) => match self.argument_instrument(e) {
                Some(n) => Tick::Of(n),
                None => return self.nothing(),
            },
            None => first.tick.and(second.as_ref().map_or(Tick::Free, |v| v.tick)),
        };
        let Some(instrument) = self.ticks_of(span, tick) else {
            return self.nothing();
        };
        let at = self.program.instruments[usize::from(instrument)].at + word::TICK;
        if let ("stepped", Some(second)) = (name, &second) {
            return self.moved(span, first, second.clone(), Tick::Of(instrument), false);
        }
        let step = self.load_word(span, at);
        let mut value = Value::new(Type::Ticks, 0);
        value.present = first.present;
        value.needs = first.needs.clone();
        match second {
            None => {
                // Towards minus infinity, or plus: what is left is never below 0.
                let left = self.binary(span, Binary::Rem, first.reg, step);
                let shifted = self.binary(span, Binary::Add, left, step);
                let left = self.binary(span, Binary::Rem, shifted, step);
                value.ty = Type::Price;
                value.tick = Tick::Of(instrument);
                value.reg = self.binary(span, Binary::Sub, first.reg, left);
                if name == "round_up" {
                    let zero = self.constant(span, 0);
                    let is_more = self.binary(span, Binary::Lt, zero, left);
                    let by = self.binary(span, Binary::Mul, step, is_more);
                    value.reg = self.binary(span, Binary::Add, value.reg, by);
                }
            }
            Some(second) => {
                value.present = self.together(span, value.present, second.present);
                value.needs.extend(second.needs);
                let difference = self.binary(span, Binary::Sub, first.reg, second.reg);
                if name == "steps" {
                    value.reg = self.binary(span, Binary::Div, difference, step);
                } else {
                    // A part of a tick counts as one.
                    let negative = self.reg();
                    self.emit(span, Op::Neg(negative, difference));
                    let apart = self.binary(span, Binary::Max, difference, negative);
                    let whole = self.binary(span, Binary::Div, apart, step);
                    let left = self.binary(span, Binary::Rem, apart, step);
                    let zero = self.constant(span, 0);
                    let more = self.binary(span, Binary::Lt, zero, left);
                    value.reg = self.binary(span, Binary::Add, whole, more);
                }
            }
        }
        value
    }

    /// Best price of a side, and whether it is there.
    fn best(&mut self, span: Span, instrument: u16, side: Side) -> (Reg, Reg) {
        let base = self.program.instruments[usize::from(instrument)].at;
        let (price, qty) = match side {
            Side::Bid => (word::BID, word::BID_QTY),
            Side::Ask => (word::ASK, word::ASK_QTY),
        };
        let reg = self.load_word(span, base + price);
        (reg, self.is_not_zero(span, base + qty))
    }

    fn of_book(&mut self, span: Span, name: &str, n: u16) -> Value {
        match name {
            "live" => {
                let at = self.program.instruments[usize::from(n)].at + word::IS_LIVE;
                let reg = self.load_word(span, at);
                Value::new(Type::Bool, reg)
            }
            "trading" => {
                let results = self.host(span, HostCall::Trading(n), Vec::new(), 1);
                Value::new(Type::Bool, results[0])
            }
            "open_orders" => {
                let results = self.host(span, HostCall::OpenOrders(n), Vec::new(), 1);
                Value::new(Type::Int, results[0])
            }
            "weighted" => {
                let results = self.host(span, HostCall::Weighted(n), Vec::new(), 2);
                let mut value = Value::new(Type::Price, results[0]);
                value.tick = Tick::Of(n);
                self.optional(value, results[1], None)
            }
            _ => {
                let (bid, has_bid) = self.best(span, n, Side::Bid);
                let (ask, has_ask) = self.best(span, n, Side::Ask);
                let present = self.binary(span, Binary::And, has_bid, has_ask);
                let mut value = match name {
                    "spread" => {
                        let difference = self.binary(span, Binary::Sub, ask, bid);
                        let at = self.program.instruments[usize::from(n)].at + word::TICK;
                        let step = self.load_word(span, at);
                        let reg = self.binary(span, Binary::Div, difference, step);
                        Value::new(Type::Ticks, reg)
                    }
                    _ => {
                        // The lower one and half of what lies between: no sum that could be too large.
                        let difference = self.binary(span, Binary::Sub, ask, bid);
                        let two = self.constant(span, 2);
                        let half = self.binary(span, Binary::Div, difference, two);
                        let reg = self.binary(span, Binary::Add, bid, half);
                        Value::new(Type::Price, reg)
                    }
                };
                value.tick = Tick::Of(n);
                value.needs = vec![Path::Level(n, true, 0), Path::Level(n, false, 0)];
                if value.needs.iter().all(|path| self.facts.contains(path)) {
                    return Value {
                        needs: Vec::new(),
                        is_narrowed: true,
                        ..value
                    };
                }
                value.present = Some(present);
                value
            }
        }
    }

    fn of_books(&mut self, span: Span, name: &str, of: Vec<u16>) -> Value {
        let tick = of.iter().fold(Tick::Free, |tick, n| tick.and(Tick::Of(*n)));
        if name == "fair" {
            let results = self.host(span, HostCall::Fair(of), Vec::new(), 2);
            let mut value = Value::new(Type::Price, results[0]);
            value.tick = tick;
            return self.optional(value, results[1], None);
        }
        let side = if name == "best_bid" { Side::Bid } else { Side::Ask };
        let (worst, op) = match side {
            Side::Bid => (i64::MIN, Binary::Max),
            Side::Ask => (i64::MAX, Binary::Min),
        };
        let mut best = self.constant(span, worst);
        let mut any = self.constant(span, 0);
        for n in of {
            let (price, present) = self.best(span, n, side);
            let at = self.program.instruments[usize::from(n)].at + word::IS_LIVE;
            let is_live = self.load_word(span, at);
            let present = self.binary(span, Binary::And, present, is_live);
            let none = self.constant(span, worst);
            let taken = self.reg();
            self.emit(span, Op::Select(taken, present, price, none));
            best = self.binary(span, op, best, taken);
            any = self.binary(span, Binary::Or, any, present);
        }
        let mut value = Value::new(Type::Price, best);
        value.tick = tick;
        self.optional(value, any, None)
    }

    /// A function checked where nobody calls it: with arguments of the types that it says.
    pub(super) fn try_function(&mut self, n: usize) {
        let function = self.functions[n].clone();
        let mut given = Vec::new();
        for (name, written) in &function.params {
            let ty = self.type_of(written);
            let reg = self.constant(name.span, 0);
            let mut value = Value::new(ty, reg);
            if written.is_optional {
                value.present = Some(self.constant(name.span, 0));
            }
            given.push(value);
        }
        self.lay_in(function.name.span, n, given);
    }

    fn call_function(&mut self, span: Span, n: usize, arguments: &[Expr]) -> Value {
        let is_statement = core::mem::take(&mut self.is_statement);
        let function = self.functions[n].clone();
        if function.result.is_none() && !is_statement {
            let found = Diagnostic::new(
                span,
                format!("`{}` gives no value", function.name.text),
                "expected a value",
            );
            self.say(found.also(function.name.span, "declared without `->`"));
            return self.nothing();
        }
        if !self.count(
            span,
            &function.name.text,
            arguments,
            function.params.len()..=function.params.len(),
        ) {
            return self.nothing();
        }
        let mut given = Vec::new();
        for (e, (_, written)) in arguments.iter().zip(&function.params) {
            let ty = self.type_of(written);
            let value = self.expr(e, Some(ty));
            self.same(&value, ty, e.span);
            if !written.is_optional {
                self.present(&value, e.span);
            }
            // A copy: what the function does to its parameter does not change what it was given.
            given.push(self.copied_argument(value, written.is_optional, ty, e.span));
        }
        self.lay_in(span, n, given)
    }

    fn copied_argument(&mut self, value: Value, is_optional: bool, ty: Type, span: Span) -> Value {
        let (reg, present) = (self.reg(), self.reg());
        self.settle(span, &value, reg, present);
        Value {
            present: is_optional.then_some(present),
            tick: value.tick,
            ..Value::new(ty, reg)
        }
    }

    fn lay_in(&mut self, span: Span, n: usize, given: Vec<Value>) -> Value {
        let function = self.functions[n].clone();
        if self.calling.len() >= CALLS_DEEP && !self.calling.contains(&n) {
            let message = format!("functions call each other more than {CALLS_DEEP} deep");
            self.wrong(span, message, "too deep here");
            return self.nothing();
        }
        if self.calling.contains(&n) {
            let found = Diagnostic::new(
                span,
                format!("`{}` calls itself", function.name.text),
                "functions do not call themselves",
            );
            self.say(
                found
                    .also(function.name.span, "declared here")
                    .help("repeat with `for`, whose number of rounds is known"),
            );
            return self.nothing();
        }
        let result = function.result.as_ref().map(|written| {
            let ty = self.type_of(written);
            let (reg, present) = (self.reg(), self.reg());
            (
                ty,
                written.is_optional,
                reg,
                written.is_optional.then_some(present),
            )
        });
        self.calling.push(n);
        let reads_only = self.reads_only;
        self.reads_only |= result.is_some();
        let scopes = core::mem::replace(&mut self.scopes, vec![Vec::new()]);
        let told = core::mem::replace(&mut self.told, HandlerArgument::Nothing);
        let alias = self.alias.take();
        for ((name, _), value) in function.params.iter().zip(&given) {
            self.local(name, value);
        }
        self.returning.push(Returning {
            result,
            jumps: Vec::new(),
        });
        let leaves = self.block(&function.body);
        if result.is_some() && !leaves && !self.is_full {
            let name = &function.name;
            self.wrong(
                name.span,
                format!("`{}` does not always return a value", name.text),
                "a way through it ends without `return`",
            );
        }
        for jump in self.returning.pop().map(|r| r.jumps).unwrap_or_default() {
            self.lands(jump);
        }
        self.scopes = scopes;
        self.told = told;
        self.alias = alias;
        self.calling.pop();
        self.reads_only = reads_only;
        // What it knew on one of its ways is not known on another. One with a result changes nothing.
        self.facts.retain(|fact| !matches!(fact, Path::State(_)));
        match result {
            Some((ty, _, reg, present)) => Value {
                present,
                ..Value::new(ty, reg)
            },
            None => Value::new(Type::Wrong, 0),
        }
    }
}
