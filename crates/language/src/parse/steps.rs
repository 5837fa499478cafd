//! Tests in the file: what is fed and what is expected.

use alloc::format;
use alloc::vec::Vec;

use crate::ast::*;
use crate::diag::{Span, nearest};
use crate::lex::Token;

use super::{Parsed, Parser, Said};

impl Parser {
    pub(super) fn test(&mut self, from: Span) -> Parsed<Test> {
        let (name, end) = self.text("the test's name as a text")?;
        let mut with = Vec::new();
        if self.take_word("with") {
            loop {
                let name = self.name("a parameter")?;
                self.mark("=")?;
                with.push((name, self.expr()?));
                if !self.take_mark(",") {
                    break;
                }
            }
        }
        self.mark("{")?;
        let mut steps = Vec::new();
        loop {
            while self.take_mark(";") {}
            if self.take_mark("}") {
                break;
            }
            if *self.token() == Token::End {
                return self.expected("`}`");
            }
            let (from, start) = (self.span(), self.at);
            match self.step() {
                Ok(kind) => steps.push(Step {
                    kind,
                    span: from.to(self.before()),
                }),
                Err(Said) => self.skip_to_step(start),
            }
        }
        Ok(Test {
            name,
            span: from.to(end),
            with,
            steps,
        })
    }

    fn skip_to_step(&mut self, start: usize) {
        loop {
            match self.token() {
                Token::End | Token::Mark("}") => return,
                Token::Name(word) if self.at > start && STEPS.contains(&word.as_str()) => return,
                _ => {}
            }
            self.next();
        }
    }

    fn levels(&mut self) -> Parsed<Option<Vec<(Expr, Expr)>>> {
        let mut levels = Vec::new();
        if self.take_word("none") {
            return Ok(Some(levels));
        }
        loop {
            levels.push(self.level()?);
            if !self.take_mark(",") {
                return Ok(Some(levels));
            }
        }
    }

    fn level(&mut self) -> Parsed<(Expr, Expr)> {
        self.start = self.at;
        let qty = self.additive()?;
        self.mark("@")?;
        Ok((qty, self.additive()?))
    }

    fn which(&mut self) -> Parsed<Option<Expr>> {
        match self.take_word("last") {
            true => Ok(None),
            false if matches!(self.token(), Token::Whole(_)) => self.primary().map(Some),
            false => Ok(None),
        }
    }

    fn step(&mut self) -> Parsed<StepKind> {
        self.start = self.at;
        let word = match self.token() {
            Token::Name(word) if STEPS.contains(&word.as_str()) => word.clone(),
            Token::Name(word) => {
                let near = nearest(word, STEPS.into_iter()).map(|near| format!("did you mean `{near}`?"));
                return self.expected_with(
                    "a step of a test",
                    near.or_else(|| Some(format!("steps are {}", STEPS.join(", ")))),
                );
            }
            _ => return self.expected("a step of a test"),
        };
        self.next();
        Ok(match word.as_str() {
            "book" => {
                let instrument = self.name("an instrument")?;
                let (mut bid, mut ask) = (None, None);
                if self.take_word("bid") {
                    bid = self.levels()?;
                }
                if self.take_word("ask") {
                    ask = self.levels()?;
                }
                if bid.is_none() && ask.is_none() {
                    return self
                        .expected("`bid QTY @ PRICE`, `ask QTY @ PRICE` or `none` in the place of levels");
                }
                StepKind::Book { instrument, bid, ask }
            }
            "trade" => {
                let instrument = self.name("an instrument")?;
                let (qty, price) = self.level()?;
                let side = match self.is_word("bid") || self.is_word("ask") {
                    true => Some(self.any_word("a side")?),
                    false => None,
                };
                StepKind::Trade {
                    instrument,
                    qty,
                    price,
                    side,
                }
            }
            "quote" => {
                let instrument = self.name("an instrument")?;
                self.word("bid")?;
                let bid = self.level()?;
                self.word("ask")?;
                StepKind::Quote {
                    instrument,
                    bid,
                    ask: self.level()?,
                }
            }
            "imbalance" => {
                let instrument = self.name("an instrument")?;
                let mut fields = Vec::new();
                while matches!(self.token(), Token::Name(word) if IMBALANCE.contains(&word.as_str())) {
                    let field = self.any_word("a field")?;
                    let value = match field.text.as_str() {
                        "bid" | "ask" => None,
                        _ => Some(self.additive()?),
                    };
                    fields.push((field, value));
                }
                StepKind::Imbalance { instrument, fields }
            }
            "status" => StepKind::Status {
                instrument: self.name("an instrument")?,
                status: self.any_word("a status")?,
            },
            "stale" => StepKind::Stale(self.name("an instrument")?),
            "live" => StepKind::Live(self.name("an instrument")?),
            "at" => StepKind::At(self.additive()?),
            "accept" => StepKind::Accept(self.which()?),
            "reject" => StepKind::Reject(self.which()?),
            "cancelled" => StepKind::Cancelled(self.which()?),
            "fill" => {
                let order = match self.take_word("order") {
                    true => Some(self.primary()?),
                    false => {
                        self.take_word("last");
                        None
                    }
                };
                let is_number = matches!(self.token(), Token::Whole(_) | Token::Mark("("));
                let qty = match is_number {
                    true => Some(self.additive()?),
                    false => None,
                };
                let price = match self.take_mark("@") {
                    true => Some(self.additive()?),
                    false => None,
                };
                StepKind::Fill { order, qty, price }
            }
            "command" => StepKind::Command(self.text("the operator's words as a text")?.0),
            "check" => StepKind::Check(self.expr()?),
            _ => match self.token() {
                Token::Name(word) if word == "buy" || word == "sell" => StepKind::ExpectOrder(self.order()?),
                Token::Name(word) if word == "replace" => {
                    self.next();
                    let (qty, price) = self.level()?;
                    StepKind::ExpectReplace { qty, price }
                }
                Token::Name(word) if word == "cancel" => {
                    self.next();
                    StepKind::ExpectCancel
                }
                Token::Name(word) if word == "nothing" => {
                    self.next();
                    StepKind::ExpectNothing
                }
                Token::Name(word) if word == "trap" => {
                    self.next();
                    StepKind::ExpectTrap
                }
                _ => {
                    return self
                        .expected("`buy …`, `sell …`, `replace QTY @ PRICE`, `cancel`, `nothing` or `trap`");
                }
            },
        })
    }
}

pub(crate) const LASTING: [&str; 6] = ["ioc", "fok", "day", "gtc", "opening", "closing"];

const IMBALANCE: [&str; 7] = ["paired", "missing", "near", "far", "reference", "bid", "ask"];

const STEPS: [&str; 15] = [
    "book",
    "trade",
    "quote",
    "imbalance",
    "status",
    "stale",
    "live",
    "at",
    "accept",
    "reject",
    "cancelled",
    "fill",
    "command",
    "check",
    "expect",
];
