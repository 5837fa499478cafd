//! Text into tokens.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use tickwire_market::Price;

use crate::diag::{Diagnostic, Span};

/// What a token is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Token {
    Name(String),
    /// A whole number.
    Whole(i64),
    /// A number with a decimal point, in 1e-9.
    Decimal(i64),
    /// A duration, in nanoseconds.
    Lasting(i64),
    Text(String),
    Mark(&'static str),
    End,
}

/// A token and where it is.
#[derive(Clone, Debug)]
pub(crate) struct Lexeme {
    pub(crate) token: Token,
    pub(crate) span: Span,
}

/// Everything that the formatter must keep.
#[derive(Clone, Debug)]
pub(crate) struct Comment {
    pub(crate) span: Span,
}

const MARKS: [&str; 30] = [
    "->", "==", "!=", "<=", ">=", "..", "+=", "-=", "&&", "||", "{", "}", "(", ")", "[", "]", ",", ":", ";",
    ".", "@", "?", "=", "<", ">", "+", "-", "*", "/", "%",
];

const UNITS: [(&str, i64); 7] = [
    ("ns", 1),
    ("us", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
    ("d", 86_400_000_000_000),
];

/// The tokens of a source, the last of them [`Token::End`]; its comments; what is no token.
pub(crate) fn lex(source: &str) -> (Vec<Lexeme>, Vec<Comment>, Vec<Diagnostic>) {
    let bytes = source.as_bytes();
    let (mut tokens, mut comments, mut wrong) = (Vec::new(), Vec::new(), Vec::new());
    let mut at = 0;
    while at < bytes.len() {
        let from = at;
        let span = |to: usize| Span {
            from: from as u32,
            to: to as u32,
        };
        let b = bytes[at];
        if b.is_ascii_whitespace() {
            at += 1;
        } else if b == b'#' {
            at += source[at..].find('\n').unwrap_or(source.len() - at);
            comments.push(Comment { span: span(at) });
        } else if b.is_ascii_alphabetic() || b == b'_' {
            at += source[at..]
                .find(|c: char| !c.is_ascii_alphanumeric() && c != '_')
                .unwrap_or(source.len() - at);
            tokens.push(Lexeme {
                token: Token::Name(source[from..at].to_string()),
                span: span(at),
            });
        } else if b.is_ascii_digit() {
            at = number(source, from, &mut tokens, &mut wrong);
        } else if b == b'"' {
            let line_end = source[at + 1..].find('\n').map_or(source.len(), |n| at + 1 + n);
            match source[at + 1..line_end].find('"') {
                Some(n) => {
                    at += n + 2;
                    let text = &source[from + 1..at - 1];
                    if let Some(c) = text.chars().find(|c| !(' '..='~').contains(c)) {
                        wrong.push(Diagnostic::new(
                            span(at),
                            format!("{c:?} in a text"),
                            "texts are printable ASCII",
                        ));
                    }
                    tokens.push(Lexeme {
                        token: Token::Text(text.to_string()),
                        span: span(at),
                    });
                }
                None => {
                    at = line_end;
                    wrong.push(Diagnostic::new(
                        span(at),
                        "a text does not end",
                        "expected `\"` before the end of the line",
                    ));
                    tokens.push(Lexeme {
                        token: Token::Text(source[from + 1..at].to_string()),
                        span: span(at),
                    });
                }
            }
        } else if let Some(mark) = MARKS.iter().find(|mark| source[at..].starts_with(**mark)) {
            at += mark.len();
            tokens.push(Lexeme {
                token: Token::Mark(mark),
                span: span(at),
            });
        } else {
            let c = source[at..].chars().next().unwrap_or(' ');
            at += c.len_utf8();
            let found = Diagnostic::new(
                span(at),
                format!("unexpected character {c:?}"),
                "no token begins so",
            );
            wrong.push(match c {
                '/' => found.help("comments begin with `#`"),
                '!' => found.help("write `not`"),
                _ => found,
            });
        }
    }
    let end = Span {
        from: source.len() as u32,
        to: source.len() as u32,
    };
    tokens.push(Lexeme {
        token: Token::End,
        span: end,
    });
    (tokens, comments, wrong)
}

fn number(source: &str, from: usize, tokens: &mut Vec<Lexeme>, wrong: &mut Vec<Diagnostic>) -> usize {
    let bytes = source.as_bytes();
    let digits = |mut at: usize| {
        while at < bytes.len() && (bytes[at].is_ascii_digit() || bytes[at] == b'_') {
            at += 1;
        }
        at
    };
    let mut at = digits(from);
    let is_decimal = bytes.get(at) == Some(&b'.') && bytes.get(at + 1).is_some_and(u8::is_ascii_digit);
    if is_decimal {
        at = digits(at + 1);
    }
    let plain: String = source[from..at].chars().filter(|c| *c != '_').collect();
    let unit_from = at;
    while at < bytes.len() && (bytes[at].is_ascii_alphanumeric() || bytes[at] == b'_') {
        at += 1;
    }
    let span = Span {
        from: from as u32,
        to: at as u32,
    };
    let unit = &source[unit_from..at];
    let value = match (is_decimal, unit) {
        (true, "") => Price::parse(plain.as_bytes())
            .map(|p| Token::Decimal(p.raw()))
            .ok(),
        (false, "") => plain.parse().map(Token::Whole).ok(),
        (false, unit) => match UNITS.iter().find(|(name, _)| *name == unit) {
            Some((_, ns)) => {
                let number = plain.parse::<i64>().ok();
                number.and_then(|n| n.checked_mul(*ns)).map(Token::Lasting)
            }
            None => {
                wrong.push(
                    Diagnostic::new(span, format!("`{unit}` is no unit of time"), "expected a number")
                        .help("units written directly behind a number are ns, us, ms, s, m, h and d; `5 ticks` has a space"),
                );
                Some(Token::Whole(0))
            }
        },
        (true, _) => {
            wrong.push(Diagnostic::new(
                span,
                "a duration is a whole number of a unit",
                "write `500ms` for half a second",
            ));
            Some(Token::Lasting(0))
        }
    };
    let token = value.unwrap_or_else(|| {
        wrong.push(Diagnostic::new(
            span,
            "a number that cannot be held",
            "numbers have 64 bits, and at most 9 decimals up to 9223372036",
        ));
        Token::Whole(0)
    });
    tokens.push(Lexeme { token, span });
    at
}
