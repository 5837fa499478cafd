//! Statements.

use super::*;
use crate::ast::{BinaryOp, Condition, OrderExpr, Statement, StatementKind};
use tickwire_market::TimeInForce;

impl Checker<'_> {
    /// Whether it always leaves the handler or function.
    pub(super) fn block(&mut self, block: &Block) -> bool {
        self.scopes.push(Vec::new());
        let mut leaves = false;
        let mut said = false;
        for statement in &block.statements {
            if leaves && !said {
                self.wrong(
                    statement.span,
                    "this is never reached",
                    "everything before it returns",
                );
                said = true;
            }
            if self.code.is_full {
                break;
            }
            leaves |= self.statement(statement);
        }
        let gone = self.scopes.pop().unwrap_or_default();
        self.facts
            .retain(|fact| !gone.iter().any(|local| *fact == Path::Local(local.number)));
        leaves
    }

    fn statement(&mut self, statement: &Statement) -> bool {
        let (span, mark) = (statement.span, self.registers.next_reg);
        match &statement.kind {
            StatementKind::Let { name, ty, value } => {
                self.bind(name, ty.as_ref(), value);
                return false;
            }
            StatementKind::Assign { place, op, value } => self.assign(span, place, *op, value),
            StatementKind::If {
                condition,
                then,
                otherwise,
            } => {
                let leaves = self.branch(condition, then, otherwise.as_ref());
                self.registers.next_reg = mark;
                return leaves;
            }
            StatementKind::For { name, from, to, body } => self.repeat(span, name, from, to, body),
            StatementKind::Return(value) => {
                self.give(span, value.as_ref());
                self.registers.next_reg = mark;
                return true;
            }
            StatementKind::Do(e) => {
                self.is_statement = matches!(e.kind, ExprKind::Call(..));
                let value = self.expr(e, None);
                self.is_statement = false;
                if value.ty != Type::Order && value.ty != Type::Wrong {
                    self.wrong(e.span, "this has no effect", "expected an order or a call");
                }
            }
            StatementKind::Cancel(Some(order)) => {
                self.acts(span);
                let order = self.need(order, Type::Order);
                self.host(span, HostCall::Cancel, vec![order.reg], 1);
            }
            StatementKind::Cancel(None) => {
                self.acts(span);
                self.host(span, HostCall::CancelAll, Vec::new(), 1);
            }
            StatementKind::Set { timer, is_in, value } => {
                self.acts(span);
                let Some(n) = self.timer(timer) else { return false };
                let ty = if *is_in { Type::Duration } else { Type::Time };
                let value = self.need(value, ty);
                let at = match is_in {
                    true => {
                        let now = self.load_word(span, word::NOW);
                        self.binary(span, Binary::Add, now, value.reg)
                    }
                    false => value.reg,
                };
                self.host(span, HostCall::SetTimer(n), vec![at], 0);
            }
            StatementKind::Stop(timer) => {
                self.acts(span);
                if let Some(n) = self.timer(timer) {
                    self.host(span, HostCall::StopTimer(n), Vec::new(), 0);
                }
            }
            StatementKind::Note { text, value } => {
                let value = match value {
                    Some(e) => {
                        let value = self.expr(e, None);
                        self.present(&value, e.span);
                        value.reg
                    }
                    None => self.constant(span, 0),
                };
                let known = self.program.notes.iter().position(|known| known == text);
                let n = known.unwrap_or_else(|| {
                    self.program.notes.push(text.clone());
                    self.program.notes.len() - 1
                });
                self.host(span, HostCall::Note(n as u16), vec![value], 0);
            }
            StatementKind::Count { counter, by } => {
                self.acts(span);
                let at = match self.globals.get(&counter.text) {
                    Some((Global::Counter(n), _)) => self.program.counters[usize::from(*n)].at,
                    _ => {
                        self.unknown(&counter.text, counter.span, "counter");
                        return false;
                    }
                };
                let by = match by {
                    Some(e) => self.need(e, Type::Int).reg,
                    None => self.constant(span, 1),
                };
                let old = self.load_word(span, at);
                let new = self.binary(span, Binary::Add, old, by);
                self.emit(span, Op::Store(at, new));
            }
            StatementKind::Push { window, value } => {
                self.acts(span);
                let n = match self.globals.get(&window.text) {
                    Some((Global::Window(n), _)) => *n,
                    _ => {
                        self.unknown(&window.text, window.span, "window");
                        return false;
                    }
                };
                let ty = self.program.windows[usize::from(n)].ty;
                let value = self.need(value, ty);
                let now = self.load_word(span, word::NOW);
                self.host(span, HostCall::Push(n), vec![value.reg, now], 0);
            }
        }
        self.registers.next_reg = mark;
        false
    }

    fn timer(&mut self, name: &Name) -> Option<u8> {
        match self.globals.get(&name.text) {
            Some((Global::Timer(n), _)) => Some(*n),
            _ => {
                self.unknown(&name.text, name.span, "timer");
                None
            }
        }
    }

    /// A new name in the innermost block.
    pub(super) fn local(&mut self, name: &Name, value: &Value) {
        let taken = self.globals.get(&name.text).map(|(_, at)| *at);
        let is_taken = taken.is_some()
            || expression::BUILTINS.contains(&name.text.as_str())
            || self.alias.as_ref().is_some_and(|(alias, _)| *alias == name.text)
            || self.scopes.iter().flatten().any(|l| l.name == name.text);
        if is_taken {
            let mut found = Diagnostic::new(
                name.span,
                format!("`{}` names something already", name.text),
                "expected another name",
            );
            found.also = taken.map(|at| (at, "declared here".to_string()));
            self.say(found);
        }
        self.locals += 1;
        let local = Local {
            name: name.text.clone(),
            number: self.locals,
            ty: value.ty,
            reg: value.reg,
            present: value.present,
            tick: value.tick,
        };
        if let Some(scope) = self.scopes.last_mut() {
            scope.push(local);
        }
    }

    fn bind(&mut self, name: &Name, ty: Option<&TypeName>, e: &Expr) {
        let expect = ty.map(|written| {
            if written.len.is_some() {
                self.wrong(
                    written.span,
                    "arrays live in `state` and `const`",
                    "expected a plain type",
                );
            }
            self.type_of(written)
        });
        let value = self.expr(e, expect);
        if let Some(expect) = expect {
            self.same(&value, expect, e.span);
        }
        let is_optional = ty.map_or(value.present.is_some(), |ty| ty.is_optional);
        if value.present.is_some() && !is_optional {
            self.present(&value, e.span);
        }
        if matches!(e.kind, ExprKind::None) && expect.is_none() {
            let found = Diagnostic::new(e.span, "what may it be later?", "the type is not known");
            self.say(found.help(format!("write `let {}: price? = none`", name.text)));
        }
        let value = self.copied(value, is_optional, expect, e.span);
        self.local(name, &value);
    }

    /// In registers of its own.
    fn copied(&mut self, value: Value, is_optional: bool, ty: Option<Type>, span: Span) -> Value {
        let reg = self.reg();
        self.emit(span, Op::Move(reg, value.reg));
        let present = is_optional.then(|| {
            let to = self.reg();
            let op = match value.present {
                Some(from) => Op::Move(to, from),
                None => Op::Const(to, 1),
            };
            self.emit(span, op);
            to
        });
        Value {
            present,
            tick: value.tick,
            ..Value::new(ty.unwrap_or(value.ty), reg)
        }
    }

    fn forget(&mut self, path: Path) {
        self.facts.retain(|fact| *fact != path);
    }

    fn assign(&mut self, span: Span, place: &Expr, op: Option<BinaryOp>, e: &Expr) {
        let whole = op.map(|op| Expr {
            kind: ExprKind::Binary(
                op,
                alloc::boxed::Box::new(place.clone()),
                alloc::boxed::Box::new(e.clone()),
            ),
            span,
        });
        let e = whole.as_ref().unwrap_or(e);
        match &place.kind {
            ExprKind::Name(name) => {
                if let Some(local) = self.find_local(name) {
                    let value = self.expr(e, Some(local.ty));
                    self.same(&value, local.ty, e.span);
                    if local.present.is_none() {
                        self.present(&value, e.span);
                    }
                    self.emit(span, Op::Move(local.reg, value.reg));
                    if let Some(present) = local.present {
                        let op = match value.present {
                            Some(from) => Op::Move(present, from),
                            None => Op::Const(present, 1),
                        };
                        self.emit(span, op);
                    }
                    self.forget(Path::Local(local.number));
                    if value.present.is_none() && local.present.is_some() {
                        self.facts.push(Path::Local(local.number));
                    }
                    return;
                }
                match self.globals.get(name).cloned() {
                    Some((Global::State(place_of), _)) if place_of.len.is_none() => {
                        self.acts(span);
                        let value = self.expr(e, Some(place_of.ty));
                        self.same(&value, place_of.ty, e.span);
                        if !place_of.is_optional {
                            self.present(&value, e.span);
                        }
                        self.emit(span, Op::Store(place_of.at, value.reg));
                        if place_of.is_optional {
                            let present = match value.present {
                                Some(present) => present,
                                None => self.constant(span, 1),
                            };
                            self.emit(span, Op::Store(place_of.at + 1, present));
                        }
                        self.forget(Path::State(place_of.at));
                        if value.present.is_none() && place_of.is_optional {
                            self.facts.push(Path::State(place_of.at));
                        }
                    }
                    Some((Global::State(_), _)) => {
                        self.wrong(
                            place.span,
                            format!("`{name}` is an array"),
                            "expected an index: `[…]`",
                        );
                    }
                    Some((other, at)) => {
                        let found = Diagnostic::new(
                            place.span,
                            format!("`{name}` is {} and does not change here", other.what()),
                            "expected state or a local",
                        );
                        self.say(found.also(at, "declared here"));
                    }
                    None => self.unknown(name, place.span, "place to write to"),
                }
            }
            ExprKind::Index(of, index) => {
                let ExprKind::Name(name) = &of.kind else {
                    self.wrong(
                        place.span,
                        "this cannot be written to",
                        "expected state or a local",
                    );
                    return;
                };
                match self.globals.get(name).cloned() {
                    Some((
                        Global::State(Storage {
                            ty,
                            len: Some(len),
                            at,
                            ..
                        }),
                        _,
                    )) => {
                        self.acts(span);
                        let value = self.need(e, ty);
                        match self.known_index(index, len) {
                            Some(n) => self.emit(span, Op::Store(at + n, value.reg)),
                            None => {
                                let index = self.need(index, Type::Int);
                                self.emit(span, Op::StoreAt(at, index.reg, len, value.reg));
                            }
                        }
                    }
                    Some((other, _)) => {
                        let what = other.what();
                        self.wrong(
                            of.span,
                            format!("`{name}` is {what}, not an array that changes"),
                            "expected an array of `state`",
                        );
                    }
                    None => self.unknown(name, of.span, "array"),
                }
            }
            _ => self.wrong(
                place.span,
                "this cannot be written to",
                "expected state or a local",
            ),
        }
    }

    fn branch(&mut self, condition: &Condition, then: &Block, otherwise: Option<&Block>) -> bool {
        let before = self.facts.clone();
        let (jump, if_true, if_false, bound) = match condition {
            Condition::Is(e) => {
                let value = self.need(e, Type::Bool);
                let jump = self.jump_if_not(e.span, value.reg);
                (jump, value.if_true, value.if_false, None)
            }
            Condition::Let(name, e) => {
                let value = self.expr(e, None);
                let value = self.or_known(e.span, value);
                let Some(present) = value.present else {
                    if value.ty != Type::Wrong {
                        let found = Diagnostic::new(
                            e.span,
                            "this is always there",
                            "expected something that may be absent",
                        );
                        self.say(found.help(format!("write `let {} = …`, or use it as it is", name.text)));
                    }
                    return false;
                };
                let jump = self.jump_if_not(e.span, present);
                (jump, value.needs.clone(), Vec::new(), Some((name, value, e.span)))
            }
        };
        self.facts.extend(if_true.iter().copied());
        let before_cost = (self.cost, self.orders);
        self.scopes.push(Vec::new());
        if let Some((name, value, span)) = bound {
            let value = Value {
                present: None,
                ..value
            };
            let value = self.copied(value, false, None, span);
            self.local(name, &value);
        }
        let then_leaves = self.block(then);
        self.scopes.pop();
        let after_then = core::mem::replace(&mut self.facts, before);
        self.facts.extend(if_false.iter().copied());
        let then_cost = (self.cost, self.orders);
        (self.cost, self.orders) = before_cost;
        let leaves = match otherwise {
            None => {
                self.lands(jump);
                false
            }
            Some(block) => {
                let end = self.jump(Span::default());
                self.lands(jump);
                let leaves = self.block(block);
                self.lands(end);
                leaves
            }
        };
        self.cost = self.cost.max(then_cost.0);
        self.orders = self.orders.max(then_cost.1);
        // What is known behind it: what is known at the end of each branch that goes on.
        match (then_leaves, leaves) {
            (true, _) => {}
            (false, true) => self.facts = after_then,
            (false, false) => self.facts.retain(|fact| after_then.contains(fact)),
        }
        then_leaves && leaves
    }

    fn repeat(&mut self, span: Span, name: &Name, from: &Expr, to: &Expr, body: &Block) {
        let (Some(low), Some(high)) = (self.fold(from, Type::Int), self.fold(to, Type::Int)) else {
            return;
        };
        let times = high.saturating_sub(low).max(0) as u64;
        if times == 0 {
            self.wrong(
                from.span.to(to.span),
                "this loop never runs",
                "expected a lower and a higher number",
            );
            return;
        }
        self.facts
            .retain(|fact| matches!(fact, Path::Field(..) | Path::Level(..)));
        let index = self.constant(span, low);
        let end = self.constant(span, high);
        let one = self.constant(span, 1);
        let counted = self.reg();
        let start = self.code.ops.len() as u32;
        let before = (self.cost, self.orders);
        // The body gets a copy: writing to it does not change how often the loop runs.
        self.emit(span, Op::Move(counted, index));
        self.scopes.push(Vec::new());
        self.local(name, &Value::new(Type::Int, counted));
        self.block(body);
        self.scopes.pop();
        self.facts
            .retain(|fact| matches!(fact, Path::Field(..) | Path::Level(..)));
        self.emit(span, Op::Binary(Binary::Add, index, index, one));
        self.emit(span, Op::Loop(index, end, start));
        let once = (self.cost - before.0, self.orders - before.1);
        self.cost = before.0.saturating_add(once.0.saturating_mul(times));
        self.orders = before.1.saturating_add(once.1.saturating_mul(times));
    }

    fn give(&mut self, span: Span, value: Option<&Expr>) {
        let result = self.returning.last().and_then(|r| r.result);
        match (result, value) {
            (Some((ty, is_optional, reg, present)), Some(e)) => {
                let value = self.expr(e, Some(ty));
                self.same(&value, ty, e.span);
                if !is_optional {
                    self.present(&value, e.span);
                }
                self.emit(span, Op::Move(reg, value.reg));
                if let Some(present) = present {
                    let op = match value.present {
                        Some(from) => Op::Move(present, from),
                        None => Op::Const(present, 1),
                    };
                    self.emit(span, op);
                }
            }
            (Some(_), None) => self.wrong(span, "a value is to be returned", "expected a value"),
            (None, Some(e)) => self.wrong(e.span, "nothing is to be returned", "expected `return` alone"),
            (None, None) => {}
        }
        let jump = self.jump(span);
        if let Some(returning) = self.returning.last_mut() {
            returning.jumps.push(jump);
        }
    }
}

/// How long an order lives.
pub(super) fn lasting(order: &OrderExpr) -> TimeInForce {
    match order.lasting.as_ref().map(|name| name.text.as_str()) {
        Some("ioc") => TimeInForce::ImmediateOrCancel,
        Some("fok") => TimeInForce::FillOrKill,
        Some("gtc") => TimeInForce::GoodTillCancel,
        Some("opening") => TimeInForce::AtTheOpening,
        Some("closing") => TimeInForce::AtTheClose,
        Some(_) => TimeInForce::Day,
        None if order.price.is_none() => TimeInForce::ImmediateOrCancel,
        None => TimeInForce::Day,
    }
}
