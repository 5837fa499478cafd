//! Expressions.

mod calls;
mod fields;
mod operators;

use super::*;
use crate::ast::{BinaryOp, OrderExpr};
pub(super) use calls::BUILTINS;
use tickwire_market::Side;

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
        if self.code.is_full {
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
}
