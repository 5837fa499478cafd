//! A file as everybody writes it: tokens and comments stay as they are, spaces and indentation do not.

use alloc::string::String;
use alloc::vec::Vec;

use crate::diag::{Diagnostic, Span};
use crate::lex::{Token, lex};
use crate::parse::RESERVED;

/// The file in its usual form: lines stay lines, each level of brackets is two spaces, at most one empty line
/// in a row, one space around operators, two before a comment behind code. Formatting twice changes nothing
/// more.
///
/// # Errors
/// What is no token.
pub fn format(source: &str) -> Result<String, Vec<Diagnostic>> {
    let (tokens, comments, wrong) = lex(source);
    if !wrong.is_empty() {
        return Err(wrong);
    }
    // Tokens and comments in turn, each with its line.
    let mut parts: Vec<(Span, Option<&Token>)> = Vec::new();
    parts.extend(
        tokens
            .iter()
            .filter(|l| l.token != Token::End)
            .map(|l| (l.span, Some(&l.token))),
    );
    parts.extend(comments.iter().map(|c| (c.span, None)));
    parts.sort_by_key(|(span, _)| span.from);
    let mut out = String::new();
    let (mut depth, mut at_end, mut before): (usize, usize, Option<&Token>) = (0, 0, None);
    // The tokens before `before`, the nearest first.
    let mut earlier: [Option<&Token>; 2] = [None, None];
    for (span, token) in &parts {
        let (from, to) = (span.from as usize, span.to as usize);
        let text = source[from..to].trim_end();
        let newlines = source[at_end..from].bytes().filter(|b| *b == b'\n').count();
        let is_start = out.is_empty();
        at_end = to;
        if newlines > 0 || is_start {
            if !is_start {
                out.push('\n');
                if newlines > 1 {
                    out.push('\n');
                }
            }
            let closes = matches!(token, Some(Token::Mark("}" | ")" | "]")));
            let goes_on = token.is_some_and(continues) || (token.is_some() && before.is_some_and(awaits));
            let levels = depth.saturating_sub(usize::from(closes)) + usize::from(goes_on && !closes);
            (0..levels).for_each(|_| out.push_str("  "));
        } else {
            match token {
                None => out.push_str("  "),
                Some(token) => {
                    if before.is_some_and(|before| is_apart(earlier, before, token)) {
                        out.push(' ');
                    }
                }
            }
        }
        out.push_str(text);
        match token {
            Some(Token::Mark("{" | "(" | "[")) => depth += 1,
            Some(Token::Mark("}" | ")" | "]")) => depth = depth.saturating_sub(1),
            _ => {}
        }
        if token.is_some() {
            earlier = [before, earlier[0]];
            before = *token;
        }
    }
    if !out.is_empty() {
        out.push('\n');
    }
    Ok(out)
}

/// A line that begins with it goes on with the one before.
fn continues(token: &Token) -> bool {
    match token {
        Token::Mark(mark) => matches!(
            *mark,
            "+" | "*" | "/" | "%" | "==" | "!=" | "<" | "<=" | ">" | ">=" | "=" | "+=" | "-=" | "@" | "->"
        ),
        Token::Name(word) => matches!(word.as_str(), "and" | "or"),
        _ => false,
    }
}

/// A line that ends with it is gone on with.
fn awaits(token: &Token) -> bool {
    continues(token) || matches!(token, Token::Mark("-"))
}

fn is_word(token: &Token) -> bool {
    match token {
        Token::Name(word) => RESERVED.contains(&word.as_str()),
        _ => false,
    }
}

/// Whether a value can end here, so that a minus behind it is a difference and a bracket an index or a call.
fn ends_value(token: &Token) -> bool {
    match token {
        Token::Mark(mark) => matches!(*mark, ")" | "]" | "}" | "?"),
        Token::Name(word) => !is_word(token) || matches!(word.as_str(), "true" | "false" | "none" | "count"),
        Token::End => false,
        _ => true,
    }
}

fn is_apart(earlier: [Option<&Token>; 2], before: &Token, token: &Token) -> bool {
    let mark = |token: &Token| match token {
        Token::Mark(mark) => Some(*mark),
        _ => None,
    };
    match (mark(before), mark(token)) {
        // What would be another token without a space.
        (Some("."), Some("." | "..")) | (Some("-"), Some(">" | ">=" | "=" | "==")) => true,
        (None, Some(".")) if matches!(before, Token::Whole(_) | Token::Decimal(_)) => true,
        (Some("."), None) if matches!(token, Token::Whole(_) | Token::Decimal(_) | Token::Lasting(_)) => true,
        (_, Some("," | ";" | ":" | ")" | "]" | "?" | ".")) => false,
        (Some("(" | "[" | "."), _) => false,
        (_, Some("..")) | (Some(".."), _) => false,
        (Some("-"), _) if is_sign(earlier) => false,
        (_, Some("(" | "[")) => !ends_value(before),
        _ => true,
    }
}

/// Whether a minus behind these tokens is a sign: no value ends there, or the instrument of an order does.
fn is_sign([before, earlier]: [Option<&Token>; 2]) -> bool {
    let is_order = matches!(earlier, Some(Token::Name(word)) if word == "buy" || word == "sell");
    is_order || before.is_none_or(|before| !ends_value(before))
}
