//! Operators: which types go together, and what comes of them.

use crate::ast::BinaryOp;
use crate::check::*;

impl Checker<'_> {
    pub(super) fn choice(
        &mut self,
        span: Span,
        condition: &Expr,
        a: &Expr,
        b: &Expr,
        expect: Option<Type>,
    ) -> Value {
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

    pub(super) fn settle(&mut self, span: Span, value: &Value, reg: Reg, present: Reg) {
        self.emit(span, Op::Move(reg, value.reg));
        let op = match value.present {
            Some(from) => Op::Move(present, from),
            None => Op::Const(present, 1),
        };
        self.emit(span, op);
    }

    pub(super) fn operation(
        &mut self,
        span: Span,
        op: BinaryOp,
        a: &Expr,
        b: &Expr,
        expect: Option<Type>,
    ) -> Value {
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
    pub(super) fn moved(
        &mut self,
        span: Span,
        price: Value,
        ticks: Value,
        tick: Tick,
        is_down: bool,
    ) -> Value {
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
    pub(super) fn ticks_of(&mut self, span: Span, tick: Tick) -> Option<u16> {
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

    pub(super) fn count(
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
}
