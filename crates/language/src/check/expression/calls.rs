//! Calls: of functions that the language has, and of those of the file.

use tickwire_market::Side;

use crate::check::*;

/// Functions of the language.
pub(in crate::check) const BUILTINS: [&str; 22] = [
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

impl Checker<'_> {
    pub(super) fn call(&mut self, span: Span, of: &Expr, arguments: &[Expr], expect: Option<Type>) -> Value {
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

    pub(super) fn builtin(
        &mut self,
        span: Span,
        name: &str,
        arguments: &[Expr],
        expect: Option<Type>,
    ) -> Value {
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
    pub(in crate::check) fn try_function(&mut self, n: usize) {
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
        if result.is_some() && !leaves && !self.code.is_full {
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
