//! What a file names, and where: for editors. A file that is wrong has as much of an outline as can be read
//! of it.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use crate::ast::{Block, Condition, Item, Name, StatementKind};
use crate::check::named;
use crate::diag::Span;
use crate::lex::{Token, lex};
use crate::parse::{RESERVED, parse};
use crate::types::{REPORTS, SIDES, STATUSES, TYPE_NAMES};

/// What a name stands for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Named {
    /// The strategy itself.
    Strategy,
    /// `param`
    Parameter,
    /// `const`
    Constant,
    /// `enum`
    Enum,
    /// A value of an `enum`.
    EnumValue,
    /// `instrument`
    Instrument,
    /// `state`
    State,
    /// `window`
    Window,
    /// `table`
    Table,
    /// `timer`
    Timer,
    /// `counter`
    Counter,
    /// `fn`
    Function,
    /// `on`: its name is the event's and what it is of.
    Handler,
    /// `test`
    Test,
    /// `let`, a parameter of a function, the number of a loop, what a handler calls its instrument.
    Local,
}

/// A name where it is given.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Declaration {
    /// The name.
    pub name: String,
    /// What it stands for.
    pub named: Named,
    /// Where it stands.
    pub span: Span,
    /// The declaration as a whole; of a local, where it is known beside its own place: from its value on to
    /// the end of the block, handler or function.
    pub whole: Span,
}

/// Every declaration, in the order of the text.
///
/// ```
/// use tickwire_language::{Named, outline};
///
/// let found = outline("strategy s\nparam lot: qty = 100\non start { let twice = lot * 2 }\n");
/// let names: Vec<_> = found.iter().map(|d| (d.name.as_str(), d.named)).collect();
/// assert_eq!(
///     names,
///     [
///         ("s", Named::Strategy),
///         ("lot", Named::Parameter),
///         ("on start", Named::Handler),
///         ("twice", Named::Local),
///     ]
/// );
/// ```
pub fn outline(source: &str) -> Vec<Declaration> {
    let (file, _) = parse(source);
    let mut outline = Outline {
        source,
        found: Vec::new(),
    };
    if let Some(name) = &file.name {
        outline.put(name, Named::Strategy, outline.line_of(name.span));
    }
    // An item ends where the next one begins, less the white space and comments between them.
    let starts: Vec<u32> = file
        .items
        .iter()
        .map(|item| outline.line_of(begin_of(item)).from)
        .collect();
    for (n, item) in file.items.iter().enumerate() {
        let from = starts[n];
        let end = starts.get(n + 1).copied().unwrap_or(source.len() as u32);
        outline.item(
            item,
            outline.trimmed(Span {
                from,
                to: end.max(from),
            }),
        );
    }
    outline.found.sort_by_key(|d| d.span.from);
    outline.found
}

/// The words that have a meaning of their own, the names of types, and the values that every file knows.
pub fn vocabulary() -> impl Iterator<Item = &'static str> {
    let types = TYPE_NAMES.iter().map(|(name, _)| *name);
    let values = SIDES.iter().chain(&STATUSES).chain(&REPORTS).copied();
    RESERVED.iter().copied().chain(types).chain(values)
}

/// Whether a text can be a name.
pub fn is_name(text: &str) -> bool {
    let (tokens, comments, wrong) = lex(text);
    let is_one = matches!(&tokens[..], [one, _] if one.token == Token::Name(text.to_string()));
    is_one && comments.is_empty() && wrong.is_empty() && !RESERVED.contains(&text)
}

/// Where a name is used, and declared: every place that means the declaration at or around byte `at`. Nothing
/// where no name of the file stands.
pub fn occurrences(source: &str, at: u32) -> Vec<Span> {
    let uses = uses(source);
    let declared = outline(source);
    let used = uses.iter().find(|used| used.is_at(at));
    let Some(meant) = used.and_then(|used| used.meaning(&declared)) else {
        return Vec::new();
    };
    let means_it = |used: &&Use| {
        used.meaning(&declared)
            .is_some_and(|other| other.span == meant.span)
    };
    uses.iter().filter(means_it).map(|used| used.span).collect()
}

/// The declaration of the name at or around byte `at`.
pub fn declaration(source: &str, at: u32) -> Option<Declaration> {
    let used = uses(source).into_iter().find(|used| used.is_at(at))?;
    used.meaning(&outline(source)).cloned()
}

/// A name where it is used or given.
struct Use {
    name: String,
    span: Span,
    /// What stands before its point, where it is a field.
    of: Option<String>,
}

impl Use {
    fn is_at(&self, at: u32) -> bool {
        self.span.from <= at && at <= self.span.to
    }

    /// The declaration that it means: the local that was given last, or what the file calls so.
    fn meaning<'d>(&self, declared: &'d [Declaration]) -> Option<&'d Declaration> {
        let named = || declared.iter().filter(|d| d.name == self.name);
        if let Some(of) = &self.of {
            let is_enum = |d: &&Declaration| d.named == Named::Enum && d.name == *of;
            declared.iter().find(is_enum)?;
            return named().find(|d| d.named == Named::EnumValue);
        }
        let from = self.span.from;
        let is_known = |d: &&Declaration| d.whole.from <= from && from < d.whole.to;
        let locals = || named().filter(|d| d.named == Named::Local);
        let own = locals().find(|d| d.span.from == from);
        let local = own.or_else(|| locals().filter(is_known).max_by_key(|d| d.whole.from));
        let of_file = |d: &&Declaration| {
            !matches!(
                d.named,
                Named::Local | Named::Handler | Named::Test | Named::Strategy
            )
        };
        local.or_else(|| named().find(of_file))
    }
}

fn uses(source: &str) -> Vec<Use> {
    let (tokens, _, _) = lex(source);
    let mut uses: Vec<Use> = Vec::new();
    let mut before = [None, None];
    for lexeme in tokens {
        if let Token::Name(name) = &lexeme.token {
            let of = match &before {
                [Some(Token::Name(of)), Some(Token::Mark("."))] => Some(of.clone()),
                [_, Some(Token::Mark("."))] => Some(String::new()),
                _ => None,
            };
            uses.push(Use {
                name: name.clone(),
                span: lexeme.span,
                of,
            });
        }
        before = [before[1].take(), Some(lexeme.token)];
    }
    uses
}

/// Where an item is named, or begins.
fn begin_of(item: &Item) -> Span {
    match item {
        Item::Handler(handler) => handler.span,
        Item::Test(test) => test.span,
        named_item => named(named_item).map_or(Span::default(), |name| name.span),
    }
}

struct Outline<'s> {
    source: &'s str,
    found: Vec<Declaration>,
}

impl Outline<'_> {
    fn put(&mut self, name: &Name, named: Named, whole: Span) {
        self.found.push(Declaration {
            name: name.text.clone(),
            named,
            span: name.span,
            whole,
        });
    }

    /// The line in which a place begins.
    fn line_of(&self, span: Span) -> Span {
        let bytes = self.source.as_bytes();
        let at = (span.from as usize).min(bytes.len());
        let from = bytes[..at]
            .iter()
            .rposition(|b| *b == b'\n')
            .map_or(0, |at| at + 1);
        let to = bytes[at..]
            .iter()
            .position(|b| *b == b'\n')
            .map_or(bytes.len(), |n| at + n);
        Span {
            from: from as u32,
            to: to as u32,
        }
    }

    /// Without empty lines and comments at its end.
    fn trimmed(&self, span: Span) -> Span {
        let mut to = span.to as usize;
        let from = span.from as usize;
        while let Some(text) = self.source.get(from..to) {
            let kept = text.trim_end();
            let line = kept.rfind('\n').map_or(0, |at| at + 1);
            to = from + kept.len();
            if line == 0 || !kept[line..].trim_start().starts_with('#') {
                break;
            }
            to = from + line;
        }
        Span {
            from: span.from,
            to: to as u32,
        }
    }

    fn item(&mut self, item: &Item, whole: Span) {
        match item {
            Item::Param { name, .. } => self.put(name, Named::Parameter, whole),
            Item::Const { name, .. } => self.put(name, Named::Constant, whole),
            Item::Instrument { name, .. } => self.put(name, Named::Instrument, whole),
            Item::State { name, .. } => self.put(name, Named::State, whole),
            Item::Window { name, .. } => self.put(name, Named::Window, whole),
            Item::Table { name, .. } => self.put(name, Named::Table, whole),
            Item::Timer { name } => self.put(name, Named::Timer, whole),
            Item::Counter { name } => self.put(name, Named::Counter, whole),
            Item::Enum { name, values } => {
                self.put(name, Named::Enum, whole);
                values
                    .iter()
                    .for_each(|value| self.put(value, Named::EnumValue, value.span));
            }
            Item::Function {
                name, params, body, ..
            } => {
                self.put(name, Named::Function, whole);
                params
                    .iter()
                    .for_each(|(name, _)| self.local(name, name.span.from, whole));
                self.block(body, whole);
            }
            Item::Handler(handler) => {
                let head = self.source.get(handler.span.from as usize..whole.to as usize);
                let head = head
                    .unwrap_or_default()
                    .split(['{', '\n'])
                    .next()
                    .unwrap_or_default();
                let head = head.split(" when ").next().unwrap_or_default().trim();
                self.found.push(Declaration {
                    name: head.to_string(),
                    named: Named::Handler,
                    span: handler.event.span,
                    whole,
                });
                if let Some(alias) = &handler.alias {
                    self.local(alias, alias.span.from, whole);
                }
                self.block(&handler.body, whole);
            }
            Item::Test(test) => self.found.push(Declaration {
                name: test.name.clone(),
                named: Named::Test,
                span: test.span,
                whole,
            }),
        }
    }

    /// A name that is known from byte `from` to the end of `within`.
    fn local(&mut self, name: &Name, from: u32, within: Span) {
        let whole = Span {
            from,
            to: within.to.max(from),
        };
        self.put(name, Named::Local, whole);
    }

    fn block(&mut self, block: &Block, within: Span) {
        for statement in &block.statements {
            let inside = Span {
                from: within.from,
                to: statement.span.to,
            };
            match &statement.kind {
                StatementKind::Let { name, .. } => self.local(name, statement.span.to, within),
                StatementKind::If {
                    condition,
                    then,
                    otherwise,
                } => {
                    if let Condition::Let(name, _) = condition {
                        self.local(name, name.span.from, inside);
                    }
                    self.block(then, inside);
                    if let Some(otherwise) = otherwise {
                        self.block(otherwise, inside);
                    }
                }
                StatementKind::For { name, body, .. } => {
                    self.local(name, name.span.from, inside);
                    self.block(body, inside);
                }
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str = "strategy s\n\nenum Phase { idle, busy }\nparam lot: qty = 100  # lots\n# What is behind.\nstate \
                          phase: Phase = idle\nfn twice(x: qty) -> qty { return x * 2 }\n\non start {\n  let lot2 = twice(lot)\n  \
                          if phase == Phase.idle { let x = lot2\n note \"x\", x }\n  for x in 0..2 { note \"lot\", x }\n}\n\
                          test \"none\" { expect nothing }\n";

    fn at(text: &str, nth: usize) -> u32 {
        let found = SOURCE.match_indices(text).nth(nth);
        found.expect("it is there").0 as u32
    }

    fn texts(spans: &[Span]) -> Vec<(u32, &'static str)> {
        let text = |span: &Span| (span.from, &SOURCE[span.from as usize..span.to as usize]);
        spans.iter().map(text).collect()
    }

    #[test]
    fn names_mean_what_is_declared_last_around_them() {
        assert_eq!(
            texts(&occurrences(SOURCE, at("lot:", 0))),
            [(at("lot:", 0), "lot"), (at("lot)", 0), "lot")]
        );
        // The `x` of the function, of the `let` and of the loop are three.
        for (of, count) in [(at("x: qty", 0), 2), (at("x = lot2", 0), 2), (at("x in", 0), 2)] {
            assert_eq!(occurrences(SOURCE, of).len(), count, "{of}");
        }
        // By its own name and by that of the enum.
        assert_eq!(occurrences(SOURCE, at("idle,", 0)).len(), 3);
        assert_eq!(occurrences(SOURCE, at("nothing", 0)), []);
        let twice = declaration(SOURCE, at("twice(lot)", 0)).expect("a function");
        assert_eq!(
            (twice.named, twice.span.from),
            (Named::Function, at("twice(x", 0))
        );
    }

    #[test]
    fn a_declaration_ends_before_what_is_said_of_the_next() {
        let found = outline(SOURCE);
        let lot = found.iter().find(|d| d.name == "lot").expect("a parameter");
        let text = &SOURCE[lot.whole.from as usize..lot.whole.to as usize];
        assert_eq!(text, "param lot: qty = 100  # lots");
        let names: Vec<_> = found.iter().map(|d| d.name.as_str()).collect();
        assert!(
            names.contains(&"on start") && names.contains(&"none"),
            "{names:?}"
        );
    }

    #[test]
    fn only_a_name_is_a_name() {
        for (text, is) in [
            ("lot", true),
            ("_a1", true),
            ("on", false),
            ("1a", false),
            ("a b", false),
            ("", false),
            ("a#", false),
        ] {
            assert_eq!(is_name(text), is, "{text:?}");
        }
    }

    #[test]
    fn whatever_is_cut_off_has_an_outline() {
        for end in (0..SOURCE.len()).filter(|end| SOURCE.is_char_boundary(*end)) {
            for declared in outline(&SOURCE[..end]) {
                assert!(declared.span.to as usize <= end && declared.whole.from <= declared.whole.to);
            }
            occurrences(&SOURCE[..end], end as u32 / 2);
        }
    }
}
