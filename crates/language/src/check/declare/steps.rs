//! Tests in the file: each step, checked.

use tickwire_market::{Price, Side, Symbol};

use crate::ast::{Step, StepKind, Test};
use crate::check::*;
use crate::ir::Event;
use crate::scenario::{Scenario, ScenarioStep};

use super::ROWS_MAX;

impl Checker<'_> {
    pub(super) fn test(&mut self, test: &Test) {
        let mut params: Vec<i64> = self.program.params.iter().map(|p| p.value).collect();
        let mut with = Vec::new();
        for (name, value) in &test.with {
            let Some((Global::Param(n), _)) = self.globals.get(&name.text) else {
                self.unknown(&name.text, name.span, "parameter");
                continue;
            };
            let n = usize::from(*n);
            let param = self.program.params[n].clone();
            if let Some(folded) = self.fold(value, param.ty) {
                if param
                    .range
                    .is_some_and(|(low, high)| !(low..=high).contains(&folded))
                {
                    let found = Diagnostic::new(
                        value.span,
                        "the value lies outside the parameter's range",
                        "outside",
                    );
                    self.say(found.also(param.span, "the parameter"));
                }
                params[n] = folded;
                with.push((n as u16, folded));
            }
        }
        self.test_params = Some(params);
        let mut steps = Vec::new();
        for step in &test.steps {
            if let Some(kind) = self.step(step) {
                steps.push((kind, step.span));
            }
        }
        self.test_params = None;
        self.program.tests.push(Scenario {
            name: test.name.clone(),
            span: test.span,
            with,
            steps,
        });
    }

    fn level(&mut self, level: &(Expr, Expr)) -> Option<(i64, i64)> {
        let (qty, price) = (self.fold(&level.0, Type::Qty)?, self.fold(&level.1, Type::Price)?);
        if qty <= 0 || qty > i64::from(u32::MAX) {
            self.wrong(
                level.0.span,
                format!("a quantity of {qty}"),
                "expected 1 to 4294967295",
            );
            return None;
        }
        Some((qty, price))
    }

    fn levels(&mut self, levels: Option<&Vec<(Expr, Expr)>>) -> Option<Option<Vec<(i64, i64)>>> {
        let Some(levels) = levels else { return Some(None) };
        let mut folded = Vec::new();
        for level in levels {
            folded.push(self.level(level)?);
        }
        Some(Some(folded))
    }

    fn order_number(&mut self, e: Option<&Expr>) -> Option<Option<u64>> {
        match e {
            None => Some(None),
            Some(e) => {
                let n = self.fold(e, Type::Int)?;
                Some(Some(u64::try_from(n).unwrap_or(0)))
            }
        }
    }

    fn step(&mut self, step: &Step) -> Option<ScenarioStep> {
        Some(match &step.kind {
            StepKind::Book { instrument, bid, ask } => ScenarioStep::Book {
                instrument: self.instrument(instrument)?,
                levels: [self.levels(bid.as_ref())?, self.levels(ask.as_ref())?],
            },
            StepKind::Trade {
                instrument,
                qty,
                price,
                side,
            } => {
                let (qty, price) = self.level(&(qty.clone(), price.clone()))?;
                ScenarioStep::Trade {
                    instrument: self.instrument(instrument)?,
                    qty,
                    price,
                    resting: side.as_ref().map(|s| side_of(&s.text)),
                }
            }
            StepKind::Quote { instrument, bid, ask } => ScenarioStep::Quote {
                instrument: self.instrument(instrument)?,
                bid: self.level(bid)?,
                ask: self.level(ask)?,
            },
            StepKind::Imbalance { instrument, fields } => {
                let instrument = self.instrument(instrument)?;
                let (mut values, mut side) = ([0; 5], None);
                for (name, value) in fields {
                    let (at, ty) = match name.text.as_str() {
                        "paired" => (0, Type::Qty),
                        "missing" => (1, Type::Qty),
                        "near" => (2, Type::Price),
                        "far" => (3, Type::Price),
                        "reference" => (4, Type::Price),
                        which => {
                            side = Some(side_of(which));
                            continue;
                        }
                    };
                    if let Some(value) = value {
                        values[at] = self.fold(value, ty)?;
                    }
                }
                ScenarioStep::Imbalance {
                    instrument,
                    paired: values[0],
                    missing: values[1],
                    near: values[2],
                    far: values[3],
                    reference: values[4],
                    side,
                }
            }
            StepKind::Status { instrument, status } => ScenarioStep::Status {
                instrument: self.instrument(instrument)?,
                status: self.enum_value(Type::Status, status)? as u8,
            },
            StepKind::Stale(instrument) => ScenarioStep::Stale(self.instrument(instrument)?),
            StepKind::Live(instrument) => ScenarioStep::Live(self.instrument(instrument)?),
            StepKind::At(at) => ScenarioStep::At(self.fold(at, Type::Duration)?.max(0)),
            StepKind::Accept(e) => ScenarioStep::Accept(self.order_number(e.as_ref())?),
            StepKind::Reject(e) => ScenarioStep::Reject(self.order_number(e.as_ref())?),
            StepKind::Cancelled(e) => ScenarioStep::Cancelled(self.order_number(e.as_ref())?),
            StepKind::Fill { order, qty, price } => ScenarioStep::Fill {
                order: self.order_number(order.as_ref())?,
                qty: match qty {
                    Some(qty) => Some(self.fold(qty, Type::Qty)?),
                    None => None,
                },
                price: match price {
                    Some(price) => Some(self.fold(price, Type::Price)?),
                    None => None,
                },
            },
            StepKind::Command(words) => ScenarioStep::Command(words.clone()),
            StepKind::ExpectOrder(order) => ScenarioStep::ExpectOrder {
                instrument: self.instrument(&order.instrument)?,
                side: if order.is_buy { Side::Bid } else { Side::Ask },
                qty: self.fold(&order.qty, Type::Qty)?,
                price: match &order.price {
                    Some(price) => Some(self.fold(price, Type::Price)?),
                    None => None,
                },
                lasting: statement::lasting(order),
            },
            StepKind::ExpectReplace { qty, price } => ScenarioStep::ExpectReplace {
                qty: self.fold(qty, Type::Qty)?,
                price: self.fold(price, Type::Price)?,
            },
            StepKind::ExpectCancel => ScenarioStep::ExpectCancel,
            StepKind::ExpectNothing => ScenarioStep::ExpectNothing,
            StepKind::ExpectTrap => ScenarioStep::ExpectTrap,
            StepKind::Check(e) => {
                let n = self
                    .program
                    .handlers
                    .iter()
                    .filter(|c| matches!(c.event, Event::Check(_)))
                    .count();
                let params = self.test_params.take();
                self.begin();
                let value = self.need(e, Type::Bool);
                self.emit(e.span, Op::Store(word::CHECKED, value.reg));
                self.end(Event::Check(n as u16), "check".to_string(), e.span);
                self.test_params = params;
                ScenarioStep::Check(n as u16)
            }
        })
    }
}

fn side_of(name: &str) -> Side {
    if name == "bid" { Side::Bid } else { Side::Ask }
}

/// A symbol with its session behind `@`, as the Moscow Exchange's are.
pub(crate) fn with_session(text: &str, session: Option<&str>) -> Option<Symbol> {
    let whole = match session {
        Some(session) => format!("{text}@{session}"),
        None => text.to_string(),
    };
    Symbol::new(whole.as_bytes()).filter(|symbol| !symbol.is_empty() && !text.is_empty())
}

/// Rows of two numbers; a first line of names, empty lines and lines that begin with `#` are passed over.
pub(super) fn csv(text: &str, key: Type, value: Type) -> Result<Vec<(i64, i64)>, String> {
    let mut rows = Vec::new();
    for (n, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let columns: Vec<&str> = line.split(',').map(str::trim).collect();
        let [first, second] = columns[..] else {
            return Err(format!(
                "line {}: expected two columns, found {}",
                n + 1,
                columns.len()
            ));
        };
        match (number(first, key), number(second, value)) {
            (Some(key), Some(value)) => rows.push((key, value)),
            (None, _) if rows.is_empty() && first.starts_with(|c: char| c.is_ascii_alphabetic()) => {}
            (None, _) => return Err(format!("line {}: {first:?} is not {key}", n + 1)),
            (_, None) => return Err(format!("line {}: {second:?} is not {value}", n + 1)),
        }
        if rows.len() > ROWS_MAX {
            return Err(format!("more than {ROWS_MAX} rows"));
        }
    }
    Ok(rows)
}

/// A number as configurations and tables write it: prices and money with decimals, durations with a unit.
pub(crate) fn number(text: &str, ty: Type) -> Option<i64> {
    match ty {
        Type::Price | Type::Money => Price::parse(text.as_bytes()).ok().map(Price::raw),
        Type::Duration => match crate::lex::lex(text).0.first().map(|l| &l.token) {
            Some(crate::lex::Token::Lasting(ns)) => Some(*ns),
            _ => None,
        },
        _ => text.parse().ok(),
    }
}
