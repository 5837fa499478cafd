//! Expressions, by precedence.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::ToString;
use alloc::vec::Vec;

use crate::ast::*;
use crate::diag::Diagnostic;
use crate::lex::Token;

use super::{DEPTH, LASTING, LENGTH, Parsed, Parser, Said};

impl Parser {
    pub(super) fn expr(&mut self) -> Parsed<Expr> {
        self.deeper(|p| {
            if p.is_word("if") {
                let from = p.span();
                p.next();
                let condition = p.or()?;
                p.word("then")?;
                let then = p.or()?;
                p.word("else")?;
                let otherwise = p.expr()?;
                let span = from.to(otherwise.span);
                let kind = ExprKind::If(Box::new(condition), Box::new(then), Box::new(otherwise));
                return Ok(Expr { kind, span });
            }
            let value = p.or()?;
            match p.take_word("else") {
                true => {
                    let other = p.expr()?;
                    Ok(binary(BinaryOp::Else, value, other))
                }
                false => Ok(value),
            }
        })
    }

    fn or(&mut self) -> Parsed<Expr> {
        let mut a = self.and()?;
        loop {
            if self.is_mark("||") {
                return self.expected_with("an operator", Some("write `or`".to_string()));
            }
            if !self.take_word("or") {
                return Ok(a);
            }
            a = binary(BinaryOp::Or, a, self.and()?);
        }
    }

    fn and(&mut self) -> Parsed<Expr> {
        let mut a = self.not()?;
        loop {
            if self.is_mark("&&") {
                return self.expected_with("an operator", Some("write `and`".to_string()));
            }
            if !self.take_word("and") {
                return Ok(a);
            }
            a = binary(BinaryOp::And, a, self.not()?);
        }
    }

    fn not(&mut self) -> Parsed<Expr> {
        let from = self.span();
        if !self.take_word("not") {
            return self.comparison();
        }
        let a = self.deeper(Self::not)?;
        Ok(Expr {
            span: from.to(a.span),
            kind: ExprKind::Not(Box::new(a)),
        })
    }

    fn comparison(&mut self) -> Parsed<Expr> {
        let a = self.additive()?;
        let Some(op) = self.comparing() else { return Ok(a) };
        self.next();
        let b = self.additive()?;
        let done = binary(op, a, b);
        if self.comparing().is_some() {
            return self.expected_with(
                "`and`, `or` or the end of the comparison",
                Some("comparisons do not chain: write `a < b and b < c`".to_string()),
            );
        }
        Ok(done)
    }

    fn comparing(&self) -> Option<BinaryOp> {
        let Token::Mark(mark) = self.token() else {
            return None;
        };
        Some(match *mark {
            "==" => BinaryOp::Eq,
            "!=" => BinaryOp::Ne,
            "<" => BinaryOp::Lt,
            "<=" => BinaryOp::Le,
            ">" => BinaryOp::Gt,
            ">=" => BinaryOp::Ge,
            _ => return None,
        })
    }

    pub(super) fn additive(&mut self) -> Parsed<Expr> {
        let mut a = self.factor()?;
        loop {
            let op = match self.token() {
                Token::Mark("+") => BinaryOp::Add,
                Token::Mark("-") => BinaryOp::Sub,
                _ => return Ok(a),
            };
            self.next();
            a = binary(op, a, self.factor()?);
        }
    }

    fn factor(&mut self) -> Parsed<Expr> {
        let mut a = self.unary()?;
        loop {
            let op = match self.token() {
                Token::Mark("*") => BinaryOp::Mul,
                Token::Mark("/") => BinaryOp::Div,
                Token::Mark("%") => BinaryOp::Rem,
                _ => return Ok(a),
            };
            self.next();
            a = binary(op, a, self.unary()?);
        }
    }

    fn unary(&mut self) -> Parsed<Expr> {
        let from = self.span();
        if self.at - self.start > LENGTH {
            self.say(
                Diagnostic::new(
                    from,
                    format!("an expression of more than {LENGTH} words"),
                    "too long here",
                )
                .help("give parts of it names with `let`"),
            );
            return Err(Said);
        }
        if !self.take_mark("-") {
            return self.postfix();
        }
        let a = self.deeper(Self::unary)?;
        Ok(Expr {
            span: from.to(a.span),
            kind: ExprKind::Negative(Box::new(a)),
        })
    }

    pub(super) fn postfix(&mut self) -> Parsed<Expr> {
        let mut a = self.primary()?;
        let mut links = 0;
        loop {
            links += 1;
            if links > DEPTH {
                return self.expected("a shorter expression");
            }
            if self.take_mark(".") {
                let field = self.any_word("a field's name")?;
                let span = a.span.to(field.span);
                a = Expr {
                    kind: ExprKind::Field(Box::new(a), field),
                    span,
                };
            } else if self.take_mark("[") {
                let index = self.expr()?;
                let to = self.mark("]")?;
                a = Expr {
                    span: a.span.to(to),
                    kind: ExprKind::Index(Box::new(a), Box::new(index)),
                };
            } else if self.is_mark("(") {
                self.next();
                let mut arguments = Vec::new();
                while !self.is_mark(")") {
                    arguments.push(self.expr()?);
                    if !self.take_mark(",") {
                        break;
                    }
                }
                let to = self.mark(")")?;
                a = Expr {
                    span: a.span.to(to),
                    kind: ExprKind::Call(Box::new(a), arguments),
                };
            } else {
                return Ok(a);
            }
        }
    }

    pub(super) fn primary(&mut self) -> Parsed<Expr> {
        let span = self.span();
        let kind = match self.token().clone() {
            Token::Whole(n) => {
                self.next();
                match self.take_word("ticks") || self.take_word("tick") {
                    true => ExprKind::Ticks(n),
                    false => ExprKind::Whole(n),
                }
            }
            Token::Decimal(raw) => {
                self.next();
                ExprKind::Decimal(raw)
            }
            Token::Lasting(ns) => {
                self.next();
                ExprKind::Lasting(ns)
            }
            Token::Text(text) => {
                self.next();
                ExprKind::Text(text)
            }
            Token::Mark("(") => {
                self.next();
                let inner = self.expr()?;
                let to = self.mark(")")?;
                return Ok(Expr {
                    span: span.to(to),
                    kind: inner.kind,
                });
            }
            Token::Mark("[") => {
                self.next();
                let mut values = Vec::new();
                let is_outer = !core::mem::replace(&mut self.is_in_list, true);
                while !self.is_mark("]") {
                    if is_outer {
                        self.start = self.at;
                    }
                    let value = self.expr();
                    if is_outer && value.is_err() {
                        self.is_in_list = false;
                    }
                    values.push(value?);
                    if !self.take_mark(",") {
                        break;
                    }
                }
                if is_outer {
                    self.is_in_list = false;
                }
                self.mark("]")?;
                ExprKind::List(values)
            }
            Token::Name(word) => match word.as_str() {
                "true" | "false" => {
                    self.next();
                    ExprKind::Bool(word == "true")
                }
                "none" => {
                    self.next();
                    ExprKind::None
                }
                "buy" | "sell" => ExprKind::Order(Box::new(self.order()?)),
                "replace" => {
                    self.next();
                    let order = self.primary()?;
                    let qty = self.additive()?;
                    self.mark("@")?;
                    let price = self.additive()?;
                    ExprKind::Replace {
                        order: Box::new(order),
                        qty: Box::new(qty),
                        price: Box::new(price),
                    }
                }
                _ => ExprKind::Name(self.name("a value")?.text),
            },
            _ => return self.expected("a value"),
        };
        Ok(Expr {
            kind,
            span: span.to(self.before()),
        })
    }

    pub(super) fn order(&mut self) -> Parsed<OrderExpr> {
        let is_buy = self.next().token == Token::Name("buy".to_string());
        let instrument = self.name("an instrument")?;
        let qty = self.additive()?;
        let price = if self.take_word("market") {
            None
        } else if self.take_mark("@") {
            Some(self.additive()?)
        } else {
            return self.expected_with(
                "`@ PRICE` or `market`",
                Some("an order is `buy INSTRUMENT QTY @ PRICE`, with `ioc`, `fok`, `day`, `gtc`, `opening` or `closing` behind it".to_string()),
            );
        };
        let is_lasting = matches!(self.token(), Token::Name(word) if LASTING.contains(&word.as_str()));
        let lasting = match is_lasting {
            true => Some(self.any_word("how long it lasts")?),
            false => None,
        };
        let on_stale = self.is_word("on") && matches!(self.after(1), Token::Name(word) if word == "stale");
        if on_stale {
            self.next();
            self.next();
        }
        Ok(OrderExpr {
            is_buy,
            instrument,
            qty,
            price,
            lasting,
            on_stale,
        })
    }
}

fn binary(op: BinaryOp, a: Expr, b: Expr) -> Expr {
    let span = a.span.to(b.span);
    Expr {
        kind: ExprKind::Binary(op, Box::new(a), Box::new(b)),
        span,
    }
}
