//! Tokens into what they say. After an error the parser goes on at the next statement or item, so one run
//! tells several.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

use crate::ast::*;
use crate::diag::{Diagnostic, Span, nearest};
use crate::lex::{Lexeme, Token, lex};

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

    fn expr(&mut self) -> Parsed<Expr> {
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

    fn additive(&mut self) -> Parsed<Expr> {
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

    fn postfix(&mut self) -> Parsed<Expr> {
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

    fn primary(&mut self) -> Parsed<Expr> {
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

    fn order(&mut self) -> Parsed<OrderExpr> {
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

    fn test(&mut self, from: Span) -> Parsed<Test> {
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

fn binary(op: BinaryOp, a: Expr, b: Expr) -> Expr {
    let span = a.span.to(b.span);
    Expr {
        kind: ExprKind::Binary(op, Box::new(a), Box::new(b)),
        span,
    }
}
