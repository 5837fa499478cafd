//! What is wrong with a file, and where.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt::Write;

/// Bytes `from..to` of the source.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Span {
    /// The first byte.
    pub from: u32,
    /// The byte behind the last one.
    pub to: u32,
}

impl Span {
    /// From the beginning of one to the end of the other.
    pub fn to(self, end: Span) -> Span {
        Span {
            from: self.from,
            to: self.to.max(end.to),
        }
    }
}

/// One thing that is wrong.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Diagnostic {
    /// What is wrong.
    pub message: String,
    /// Where.
    pub span: Span,
    /// What is said beside the underlined text: what was expected.
    pub label: String,
    /// Another place that has to do with it, and what.
    pub also: Option<(Span, String)>,
    /// What to do.
    pub help: Option<String>,
}

impl Diagnostic {
    /// Something wrong at a place.
    pub fn new(span: Span, message: impl ToString, label: impl ToString) -> Diagnostic {
        Diagnostic {
            message: message.to_string(),
            span,
            label: label.to_string(),
            also: None,
            help: None,
        }
    }

    /// With what to do about it.
    pub fn help(mut self, help: impl ToString) -> Diagnostic {
        self.help = Some(help.to_string());
        self
    }

    /// With another place.
    pub fn also(mut self, span: Span, label: impl ToString) -> Diagnostic {
        self.also = Some((span, label.to_string()));
        self
    }

    /// As a compiler shows it: the message, `file:line:column`, the line with the place underlined, what was
    /// expected, what to do.
    pub fn render(&self, file: &str, source: &str) -> String {
        let (line, column) = line_column(source, self.span.from);
        let also = self
            .also
            .as_ref()
            .map(|(span, _)| line_column(source, span.from).0);
        let width = line.max(also.unwrap_or(0)).to_string().len();
        let mut out = format!(
            "error: {}\n{:width$}--> {file}:{line}:{column}\n",
            self.message, ""
        );
        let _ = writeln!(out, "{:width$} |", "");
        if let (Some((span, label)), Some(at)) = (&self.also, also)
            && at < line
        {
            underline(&mut out, source, *span, '-', label, width);
        }
        underline(&mut out, source, self.span, '^', &self.label, width);
        if let (Some((span, label)), Some(at)) = (&self.also, also)
            && at >= line
        {
            underline(&mut out, source, *span, '-', label, width);
        }
        if let Some(help) = &self.help {
            let _ = writeln!(out, "{:width$} = help: {help}", "");
        }
        out
    }
}

fn underline(out: &mut String, source: &str, span: Span, mark: char, label: &str, width: usize) {
    let (line, column) = line_column(source, span.from);
    let text = source
        .lines()
        .nth(line - 1)
        .unwrap_or_default()
        .replace('\t', " ");
    let rest = text.chars().count().saturating_sub(column - 1);
    let from = floor(source, span.from as usize);
    let to = floor(source, span.to as usize).max(from);
    let count = source[from..to].chars().take_while(|c| *c != '\n').count();
    let marks: String = core::iter::repeat_n(mark, count.min(rest).max(1)).collect();
    let _ = writeln!(out, "{line:width$} | {text}");
    let _ = writeln!(out, "{:width$} | {:2$}{marks} {label}", "", "", column - 1);
    let trimmed = out.trim_end().len();
    out.truncate(trimmed);
    out.push('\n');
}

/// The nearest beginning of a character at or before a byte.
fn floor(source: &str, at: usize) -> usize {
    let at = at.min(source.len());
    (0..=at)
        .rev()
        .find(|at| source.is_char_boundary(*at))
        .unwrap_or(0)
}

/// Line and column of a byte, both from 1; a column is a character.
pub fn line_column(source: &str, at: u32) -> (usize, usize) {
    let before = &source[..floor(source, at as usize)];
    let line = before.bytes().filter(|b| *b == b'\n').count() + 1;
    let start = before.rfind('\n').map_or(0, |at| at + 1);
    (line, before[start..].chars().count() + 1)
}

/// The name among `known` that a misspelt one is likely to be.
pub(crate) fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let limit = (name.len() / 3).clamp(1, 3);
    known
        .map(|other| (distance(name, other), other))
        .filter(|(d, _)| *d <= limit)
        .min()
        .map(|(_, other)| other)
}

/// How many letters differ: Levenshtein's distance, of the first 64 bytes; letters in another order are one
/// difference.
fn distance(a: &str, b: &str) -> usize {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let (a, b) = (&a[..a.len().min(64)], &b[..b.len().min(64)]);
    let sorted = |letters: &[u8]| {
        let mut letters = letters.to_vec();
        letters.sort_unstable();
        letters
    };
    if a.len() == b.len() && a != b && sorted(a) == sorted(b) {
        return 1;
    }
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let next = (diagonal + usize::from(x != y))
                .min(row[j] + 1)
                .min(row[j + 1] + 1);
            diagonal = core::mem::replace(&mut row[j + 1], next);
        }
    }
    row[b.len()]
}
