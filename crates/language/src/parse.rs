//! Tokens into what they say. After an error the parser goes on at the next statement or item, so one run
//! tells several.

mod expressions;
mod steps;

use alloc::boxed::Box;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

use crate::ast::*;
use crate::diag::{Diagnostic, Span, nearest};
use crate::lex::{Lexeme, Token, lex};
pub(crate) use steps::LASTING;

/// Words that name nothing else.
pub(crate) const RESERVED: [&str; 45] = [
    "and",
    "at",
    "buy",
    "cancel",
    "closing",
    "const",
    "count",
    "counter",
    "day",
    "else",
    "enum",
    "expect",
    "false",
    "fn",
    "fok",
    "for",
    "from",
    "gtc",
    "if",
    "in",
    "instrument",
    "ioc",
    "let",
    "market",
    "none",
    "not",
    "note",
    "on",
    "opening",
    "or",
    "param",
    "push",
    "replace",
    "return",
    "sell",
    "set",
    "state",
    "stop",
    "strategy",
    "table",
    "test",
    "then",
    "timer",
    "true",
    "window",
];

const ITEMS: [&str; 13] = [
    "strategy",
    "param",
    "const",
    "enum",
    "instrument",
    "state",
    "window",
    "table",
    "timer",
    "counter",
    "fn",
    "on",
    "test",
];

const STATEMENTS: [&str; 13] = [
    "let", "if", "for", "return", "buy", "sell", "replace", "cancel", "set", "stop", "note", "count", "push",
];

/// How deep expressions and blocks may nest.
const DEPTH: usize = 32;
/// How many tokens an expression may have.
const LENGTH: usize = 200;
/// After so many errors nothing more is looked for.
pub(crate) const ERRORS: usize = 50;

/// Something was wrong and has been said.
struct Said;
type Parsed<T> = Result<T, Said>;

pub(crate) struct Parser {
    tokens: Vec<Lexeme>,
    at: usize,
    wrong: Vec<Diagnostic>,
    depth: usize,
    is_function: bool,
    /// Where the statement began: expressions have a greatest length, so that nothing behind the parser
    /// recurses deeper than that.
    start: usize,
    is_in_list: bool,
}

/// The file, and what is wrong with it.
pub(crate) fn parse(source: &str) -> (File, Vec<Diagnostic>) {
    let (tokens, _, wrong) = lex(source);
    let mut parser = Parser {
        tokens,
        at: 0,
        wrong,
        depth: 0,
        is_function: false,
        start: 0,
        is_in_list: false,
    };
    let file = parser.file();
    parser.wrong.sort_by_key(|d| d.span.from);
    parser.wrong.truncate(ERRORS);
    (file, parser.wrong)
}

fn shown(token: &Token) -> String {
    match token {
        Token::Name(name) => format!("`{name}`"),
        Token::Whole(_) | Token::Decimal(_) => "a number".to_string(),
        Token::Lasting(_) => "a duration".to_string(),
        Token::Text(_) => "a text".to_string(),
        Token::Mark(mark) => format!("`{mark}`"),
        Token::End => "the end of the file".to_string(),
    }
}

impl Parser {
    fn token(&self) -> &Token {
        &self.tokens[self.at].token
    }

    fn after(&self, n: usize) -> &Token {
        &self.tokens[(self.at + n).min(self.tokens.len() - 1)].token
    }

    fn span(&self) -> Span {
        self.tokens[self.at].span
    }

    fn before(&self) -> Span {
        self.tokens[self.at.saturating_sub(1)].span
    }

    fn next(&mut self) -> Lexeme {
        let lexeme = self.tokens[self.at].clone();
        if self.at + 1 < self.tokens.len() {
            self.at += 1;
        }
        lexeme
    }

    fn is_mark(&self, mark: &str) -> bool {
        matches!(self.token(), Token::Mark(m) if *m == mark)
    }

    fn is_word(&self, word: &str) -> bool {
        matches!(self.token(), Token::Name(name) if name == word)
    }

    fn take_mark(&mut self, mark: &str) -> bool {
        let is = self.is_mark(mark);
        if is {
            self.next();
        }
        is
    }

    fn take_word(&mut self, word: &str) -> bool {
        let is = self.is_word(word);
        if is {
            self.next();
        }
        is
    }

    fn say(&mut self, diagnostic: Diagnostic) {
        // One error a place: what follows from it is not said again.
        if self.wrong.iter().all(|d| d.span != diagnostic.span) && self.wrong.len() < 4 * ERRORS {
            self.wrong.push(diagnostic);
        }
    }

    fn expected<T>(&mut self, what: &str) -> Parsed<T> {
        self.expected_with(what, None)
    }

    fn expected_with<T>(&mut self, what: &str, help: Option<String>) -> Parsed<T> {
        let (span, found) = (self.span(), shown(self.token()));
        let mut diagnostic = Diagnostic::new(
            span,
            format!("expected {what}, found {found}"),
            format!("expected {what}"),
        );
        diagnostic.help = help;
        self.say(diagnostic);
        Err(Said)
    }

    fn mark(&mut self, mark: &'static str) -> Parsed<Span> {
        let span = self.span();
        match self.take_mark(mark) {
            true => Ok(span),
            false => self.expected(&format!("`{mark}`")),
        }
    }

    fn word(&mut self, word: &'static str) -> Parsed<Span> {
        let span = self.span();
        match self.take_word(word) {
            true => Ok(span),
            false => self.expected(&format!("`{word}`")),
        }
    }

    fn name(&mut self, what: &str) -> Parsed<Name> {
        let span = self.span();
        match self.token() {
            Token::Name(text) if RESERVED.contains(&text.as_str()) => {
                let text = text.clone();
                self.expected_with(
                    what,
                    Some(format!(
                        "`{text}` is a word of the language and names nothing else"
                    )),
                )
            }
            Token::Name(text) => {
                let text = text.clone();
                self.next();
                Ok(Name { text, span })
            }
            _ => self.expected(what),
        }
    }

    fn any_word(&mut self, what: &str) -> Parsed<Name> {
        let span = self.span();
        match self.token() {
            Token::Name(text) => {
                let text = text.clone();
                self.next();
                Ok(Name { text, span })
            }
            _ => self.expected(what),
        }
    }

    fn text(&mut self, what: &str) -> Parsed<(String, Span)> {
        let span = self.span();
        match self.token() {
            Token::Text(text) => {
                let text = text.clone();
                self.next();
                Ok((text, span))
            }
            _ => self.expected(what),
        }
    }

    fn deeper<T>(&mut self, f: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        if self.depth >= DEPTH {
            let span = self.span();
            self.say(Diagnostic::new(
                span,
                format!("nested more than {DEPTH} deep"),
                "too deep here",
            ));
            return Err(Said);
        }
        self.depth += 1;
        let done = f(self);
        self.depth -= 1;
        done
    }

    fn file(&mut self) -> File {
        let mut file = File::default();
        loop {
            self.take_mark(";");
            if *self.token() == Token::End {
                break;
            }
            if self.is_word("strategy") {
                let start = self.at;
                self.next();
                match self.name("the strategy's name") {
                    Ok(name) => file.name = Some(name),
                    Err(Said) => self.skip_to_item(start),
                }
                continue;
            }
            let start = self.at;
            match self.item() {
                Ok(item) => file.items.push(item),
                Err(Said) => self.skip_to_item(start),
            }
        }
        file
    }

    /// Forward to what begins an item at the outermost level, as far as it can be told.
    fn skip_to_item(&mut self, start: usize) {
        let mut depth = 0_usize;
        loop {
            match self.token() {
                Token::End => return,
                Token::Mark("{") => depth += 1,
                Token::Mark("}") => depth = depth.saturating_sub(1),
                Token::Name(word) if depth == 0 && self.at > start && ITEMS.contains(&word.as_str()) => {
                    return;
                }
                _ => {}
            }
            self.next();
        }
    }

    fn item(&mut self) -> Parsed<Item> {
        self.start = self.at;
        let from = self.span();
        let word = match self.token() {
            Token::Name(word) => word.clone(),
            _ => return self.expected("a declaration, a handler or a test"),
        };
        if !ITEMS.contains(&word.as_str()) {
            let help = nearest(&word, ITEMS.into_iter()).map(|near| format!("did you mean `{near}`?"));
            let help = help.unwrap_or_else(|| format!("a file consists of {}", ITEMS.join(", ")));
            return self.expected_with("a declaration, a handler or a test", Some(help));
        }
        self.next();
        match word.as_str() {
            "param" => {
                let (name, ty) = self.typed()?;
                self.mark("=")?;
                let value = self.expr()?;
                let range = match self.take_word("in") {
                    true => {
                        let low = self.additive()?;
                        self.mark("..")?;
                        Some((low, self.additive()?))
                    }
                    false => None,
                };
                Ok(Item::Param {
                    name,
                    ty,
                    value,
                    range,
                })
            }
            "const" => {
                let (name, ty) = self.typed()?;
                self.mark("=")?;
                let value = self.expr()?;
                Ok(Item::Const { name, ty, value })
            }
            "state" => {
                let (name, ty) = self.typed()?;
                self.mark("=")?;
                let value = self.expr()?;
                Ok(Item::State { name, ty, value })
            }
            "enum" => {
                let name = self.name("the name of the enum")?;
                self.mark("{")?;
                let mut values = Vec::new();
                while !self.is_mark("}") {
                    values.push(self.name("a value's name, or `}`")?);
                    if !self.take_mark(",") {
                        break;
                    }
                }
                self.mark("}")?;
                Ok(Item::Enum { name, values })
            }
            "instrument" => {
                let name = self.name("the instrument's name here")?;
                self.mark("=")?;
                let symbol = self.primary()?;
                let session = match self.take_word("session") {
                    true => Some(self.text("the session's name as a text, such as \"CETS\"")?),
                    false => None,
                };
                let venue = match self.take_word("venue") {
                    true => Some(self.text("the venue's name as a text, such as \"nasdaq\"")?),
                    false => None,
                };
                Ok(Item::Instrument {
                    name,
                    symbol,
                    session,
                    venue,
                })
            }
            "window" => {
                let (name, ty) = self.typed()?;
                let (over, capacity) = match self.any_word("`last N` or `over DURATION max N`")?.text.as_str()
                {
                    "last" => (None, self.additive()?),
                    "over" => {
                        let over = self.additive()?;
                        self.word("max")?;
                        (Some(over), self.additive()?)
                    }
                    _ => {
                        self.at -= 1;
                        return self.expected("`last N` or `over DURATION max N`");
                    }
                };
                Ok(Item::Window {
                    name,
                    ty,
                    over,
                    capacity,
                })
            }
            "table" => {
                let (name, key) = self.typed()?;
                self.mark("->")?;
                let value = self.type_name()?;
                let from = match self.take_word("from") {
                    true => {
                        let (file, span) = self.text("a file's name as a text")?;
                        TableFrom::File(file, span)
                    }
                    false => {
                        self.mark("{")?;
                        let mut rows = Vec::new();
                        while !self.is_mark("}") {
                            self.start = self.at;
                            let key = self.additive()?;
                            self.mark(":")?;
                            rows.push((key, self.additive()?));
                            if !self.take_mark(",") {
                                break;
                            }
                        }
                        self.mark("}")?;
                        TableFrom::Rows(rows)
                    }
                };
                Ok(Item::Table {
                    name,
                    key,
                    value,
                    from,
                })
            }
            "timer" => Ok(Item::Timer {
                name: self.name("the timer's name")?,
            }),
            "counter" => Ok(Item::Counter {
                name: self.name("the counter's name")?,
            }),
            "fn" => {
                let name = self.name("the function's name")?;
                self.mark("(")?;
                let mut params = Vec::new();
                while !self.is_mark(")") {
                    params.push(self.typed()?);
                    if !self.take_mark(",") {
                        break;
                    }
                }
                self.mark(")")?;
                let result = match self.take_mark("->") {
                    true => Some(self.type_name()?),
                    false => None,
                };
                self.is_function = result.is_some();
                let body = self.block();
                self.is_function = false;
                Ok(Item::Function {
                    name,
                    params,
                    result,
                    body: body?,
                })
            }
            "on" => self.handler(from).map(Item::Handler),
            _ => self.test(from).map(Item::Test),
        }
    }

    fn typed(&mut self) -> Parsed<(Name, TypeName)> {
        let name = self.name("a name")?;
        if !self.is_mark(":") {
            let help = format!("write `{}: TYPE`, such as `{0}: price`", name.text);
            return self.expected_with("`:` and a type", Some(help));
        }
        self.next();
        Ok((name, self.type_name()?))
    }

    fn type_name(&mut self) -> Parsed<TypeName> {
        let from = self.span();
        if self.take_mark("[") {
            let element = self.type_name()?;
            self.mark(";")?;
            let len = self.additive()?;
            let to = self.mark("]")?;
            return Ok(TypeName {
                len: Some(Box::new(len)),
                span: from.to(to),
                ..element
            });
        }
        let name = self.any_word("a type")?;
        let is_optional = self.take_mark("?");
        Ok(TypeName {
            name,
            is_optional,
            len: None,
            span: from.to(self.before()),
        })
    }

    fn handler(&mut self, from: Span) -> Parsed<Handler> {
        let event = self.any_word("an event: book, trade, quote, imbalance, status, stale, live, order, timer, command, start or stop")?;
        let (mut of, mut word, mut alias) = (Vec::new(), None, None);
        if event.text == "command" {
            word = Some(self.text("the operator's word as a text")?);
        } else {
            while matches!(self.token(), Token::Name(name) if !matches!(name.as_str(), "when" | "as")) {
                of.push(self.name("an instrument")?);
                if !self.take_mark(",") {
                    break;
                }
            }
            if self.take_word("as") {
                alias = Some(self.name("a name for each of the instruments")?);
            }
        }
        let when = match self.take_word("when") {
            true => Some(self.expr()?),
            false => None,
        };
        let span = from.to(self.before());
        Ok(Handler {
            event,
            of,
            word,
            alias,
            when,
            body: self.block()?,
            span,
        })
    }

    fn block(&mut self) -> Parsed<Block> {
        self.deeper(|p| {
            p.mark("{")?;
            let mut block = Block::default();
            loop {
                while p.take_mark(";") {}
                if p.take_mark("}") {
                    return Ok(block);
                }
                if *p.token() == Token::End {
                    return p.expected("`}`");
                }
                if matches!(p.token(), Token::Name(word) if ITEMS.contains(&word.as_str()) && !matches!(p.after(1), Token::Mark("=")))
                {
                    // A `}` is missing: what follows is an item.
                    return p.expected("`}` before the next declaration");
                }
                let start = p.at;
                match p.statement() {
                    Ok(statement) => block.statements.push(statement),
                    Err(Said) => p.skip_to_statement(start),
                }
            }
        })
    }

    /// Forward to what begins a statement of this block, or its end.
    fn skip_to_statement(&mut self, start: usize) {
        let mut depth = 0_usize;
        loop {
            match self.token() {
                Token::End => return,
                Token::Mark("{") => depth += 1,
                Token::Mark("}") if depth == 0 => return,
                Token::Mark("}") => depth -= 1,
                Token::Name(word)
                    if depth == 0
                        && self.at > start
                        && (STATEMENTS.contains(&word.as_str()) || ITEMS.contains(&word.as_str())) =>
                {
                    return;
                }
                _ => {}
            }
            self.next();
        }
    }

    fn statement(&mut self) -> Parsed<Statement> {
        self.start = self.at;
        let from = self.span();
        let word = match self.token() {
            Token::Name(word) => word.clone(),
            Token::Mark("(" | "[") | Token::Whole(_) | Token::Decimal(_) | Token::Text(_) => {
                return self.expected_with(
                    "a statement",
                    Some(format!(
                        "a statement begins with a name or one of {}",
                        STATEMENTS.join(", ")
                    )),
                );
            }
            _ => return self.expected("a statement"),
        };
        let kind = match word.as_str() {
            "let" => {
                self.next();
                let name = self.name("a name")?;
                let ty = match self.take_mark(":") {
                    true => Some(self.type_name()?),
                    false => None,
                };
                self.mark("=")?;
                StatementKind::Let {
                    name,
                    ty,
                    value: self.expr()?,
                }
            }
            "if" => self.if_statement()?,
            "for" => {
                self.next();
                let name = self.name("a name for the number")?;
                self.word("in")?;
                let low = self.additive()?;
                self.mark("..")?;
                let high = self.additive()?;
                StatementKind::For {
                    name,
                    from: low,
                    to: high,
                    body: self.block()?,
                }
            }
            "return" => {
                self.next();
                StatementKind::Return(match self.is_function {
                    true => Some(self.expr()?),
                    false => None,
                })
            }
            "cancel" => {
                self.next();
                StatementKind::Cancel(match self.take_word("all") {
                    true => None,
                    false => Some(self.expr()?),
                })
            }
            "set" => {
                self.next();
                let timer = self.name("a timer")?;
                let is_in = match (self.take_word("in"), self.is_word("at")) {
                    (true, _) => true,
                    (false, true) => {
                        self.next();
                        false
                    }
                    _ => return self.expected("`in DURATION` or `at TIME`"),
                };
                StatementKind::Set {
                    timer,
                    is_in,
                    value: self.expr()?,
                }
            }
            "stop" => {
                self.next();
                StatementKind::Stop(self.name("a timer")?)
            }
            "note" => {
                self.next();
                let (text, _) = self.text("what to note, as a text")?;
                let value = match self.take_mark(",") {
                    true => Some(self.expr()?),
                    false => None,
                };
                StatementKind::Note { text, value }
            }
            "count" => {
                self.next();
                let counter = self.name("a counter")?;
                let by = match self.take_word("by") {
                    true => Some(self.expr()?),
                    false => None,
                };
                StatementKind::Count { counter, by }
            }
            "push" => {
                self.next();
                let window = self.name("a window")?;
                self.mark(",")?;
                StatementKind::Push {
                    window,
                    value: self.expr()?,
                }
            }
            "buy" | "sell" | "replace" => StatementKind::Do(self.expr()?),
            _ => {
                let place = self.postfix()?;
                let op = if self.take_mark("=") {
                    None
                } else if self.take_mark("+=") {
                    Some(BinaryOp::Add)
                } else if self.take_mark("-=") {
                    Some(BinaryOp::Sub)
                } else if matches!(place.kind, ExprKind::Call(..)) {
                    return Ok(Statement {
                        span: place.span,
                        kind: StatementKind::Do(place),
                    });
                } else {
                    let help =
                        nearest(&word, STATEMENTS.into_iter()).map(|near| format!("did you mean `{near}`?"));
                    let help = help.unwrap_or_else(|| {
                        "a statement is an assignment, a call, or begins with let, if, for, buy, sell, …"
                            .to_string()
                    });
                    return self.expected_with("`=`", Some(help));
                };
                StatementKind::Assign {
                    place,
                    op,
                    value: self.expr()?,
                }
            }
        };
        Ok(Statement {
            kind,
            span: from.to(self.before()),
        })
    }

    fn if_statement(&mut self) -> Parsed<StatementKind> {
        self.deeper(|p| {
            p.word("if")?;
            let condition = match p.take_word("let") {
                true => {
                    let name = p.name("a name for the value")?;
                    p.mark("=")?;
                    Condition::Let(name, p.expr()?)
                }
                false => Condition::Is(p.expr()?),
            };
            if p.is_mark("=") {
                return p.expected_with("`{`", Some("equality is `==`".to_string()));
            }
            let then = p.block()?;
            let otherwise = match p.take_word("else") {
                true if p.is_word("if") => {
                    let from = p.span();
                    let kind = p.if_statement()?;
                    let statement = Statement {
                        kind,
                        span: from.to(p.before()),
                    };
                    Some(Block {
                        statements: vec![statement],
                    })
                }
                true => Some(p.block()?),
                false => None,
            };
            Ok(StatementKind::If {
                condition,
                then,
                otherwise,
            })
        })
    }
}
