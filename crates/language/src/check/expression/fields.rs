//! Fields of what a name stands for: instruments, levels, windows, orders, and what a handler is told.

use tickwire_market::Side;

use crate::check::*;

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
    pub(super) fn no_field(&mut self, field: &Name, of: &str, known: &[&str]) -> Value {
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

    pub(super) fn field(&mut self, e: &Expr, of: &Expr, field: &Name) -> Value {
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

    pub(super) fn is_not_zero(&mut self, span: Span, at: u32) -> Reg {
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
    pub(super) fn quiet(&mut self, e: &Expr) -> Option<i64> {
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
}
