//! All mutants of a file in one text, each switched on by its number: where a mutant changes an expression,
//! both stand there, and which is taken is asked when the program runs.
//!
//! ```text
//! a < b   becomes   (if crate::mutant_switch::is(7) { a <= b } else { a < b })
//! ```
//! A mutant alone has its compiler's errors; here the whole file has, and the numbers that must be left out
//! are found by line. What the compiler works out (constants, `const fn`) asks nothing: such mutants have no
//! switch.

use std::fmt::Write as _;
use std::ops::Range;

use proc_macro2::Span;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};

/// What cargo-mutants would change, in bytes of the file.
#[derive(Clone, Debug)]
pub(super) struct Change {
    pub(super) id: u32,
    pub(super) genre: Genre,
    pub(super) span: Range<usize>,
    pub(super) replacement: String,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Genre {
    /// The function returns at once.
    Returns,
    /// An operator, or a field of a struct expression.
    Expression,
    Guard,
    Arm,
}

impl Genre {
    /// The word of cargo-mutants.
    pub(super) fn named(word: &str) -> Option<Genre> {
        Some(match word {
            "FnValue" => Genre::Returns,
            "BinaryOperator" | "UnaryOperator" | "StructField" => Genre::Expression,
            "MatchArmGuard" => Genre::Guard,
            "MatchArm" => Genre::Arm,
            _ => return None,
        })
    }
}

/// A file with its mutants.
#[derive(Debug, Default)]
pub(super) struct Switched {
    pub(super) text: String,
    /// The lines of each mutant, the first being 1.
    pub(super) lines: Vec<(Range<usize>, u32)>,
    /// Mutants for which there is no switch.
    pub(super) without: Vec<u32>,
}

/// What is added to the root of a crate; the variable is read once.
pub(super) const SWITCH: &str = r#"
#[doc(hidden)]
pub mod mutant_switch {
    extern crate std;
    static ACTIVE: std::sync::OnceLock<u32> = std::sync::OnceLock::new();
    #[inline]
    pub fn is(id: u32) -> bool {
        *ACTIVE.get_or_init(|| {
            let named = std::env::var("TICKWIRE_MUTANT").ok();
            named.and_then(|id| id.parse().ok()).unwrap_or(u32::MAX)
        }) == id
    }
}
"#;

/// Where a switch may stand.
enum Place {
    /// An expression and the pieces of it that a mutant changes.
    Expression {
        whole: Range<usize>,
        pieces: Vec<Range<usize>>,
    },
    /// The statements of a function.
    Body(Range<usize>),
    Guard(Range<usize>),
    /// A whole arm, its guard, and the end of its pattern.
    Arm {
        whole: Range<usize>,
        guard: Option<Range<usize>>,
        pattern_end: usize,
    },
}

#[derive(Default)]
struct Finder {
    places: Vec<Place>,
}

fn bytes(of: &impl Spanned) -> Range<usize> {
    of.span().byte_range()
}

impl Finder {
    fn body(&mut self, block: &syn::Block) {
        if let (Some(first), Some(last)) = (block.stmts.first(), block.stmts.last()) {
            self.places.push(Place::Body(bytes(first).start..bytes(last).end));
        }
        visit::visit_block(self, block);
    }
}

/// `let` in a chain of `&&`: what it binds is seen behind the chain, so that the chain cannot be wrapped.
fn has_let(expression: &syn::Expr) -> bool {
    match expression {
        syn::Expr::Let(_) => true,
        syn::Expr::Binary(binary) => has_let(&binary.left) || has_let(&binary.right),
        _ => false,
    }
}

impl<'ast> Visit<'ast> for Finder {
    fn visit_expr_binary(&mut self, expression: &'ast syn::ExprBinary) {
        if !has_let(&expression.left) && !has_let(&expression.right) {
            self.places.push(Place::Expression {
                whole: bytes(expression),
                pieces: vec![bytes(&expression.op)],
            });
        }
        visit::visit_expr_binary(self, expression);
    }

    fn visit_expr_unary(&mut self, expression: &'ast syn::ExprUnary) {
        self.places.push(Place::Expression {
            whole: bytes(expression),
            pieces: vec![bytes(&expression.op)],
        });
        visit::visit_expr_unary(self, expression);
    }

    fn visit_expr_struct(&mut self, expression: &'ast syn::ExprStruct) {
        self.places.push(Place::Expression {
            whole: bytes(expression),
            pieces: expression.fields.iter().map(bytes).collect(),
        });
        visit::visit_expr_struct(self, expression);
    }

    fn visit_arm(&mut self, arm: &'ast syn::Arm) {
        let binds = arm.guard.as_ref().is_some_and(|(_, guard)| has_let(guard));
        if !binds {
            let guard = arm.guard.as_ref().map(|(_, guard)| bytes(guard));
            self.places.extend(guard.clone().map(Place::Guard));
            self.places.push(Place::Arm {
                whole: bytes(arm),
                guard,
                pattern_end: bytes(&arm.pat).end,
            });
        }
        visit::visit_arm(self, arm);
    }

    fn visit_item_fn(&mut self, function: &'ast syn::ItemFn) {
        if function.sig.constness.is_none() {
            self.body(&function.block);
        }
    }

    fn visit_impl_item_fn(&mut self, function: &'ast syn::ImplItemFn) {
        if function.sig.constness.is_none() {
            self.body(&function.block);
        }
    }

    fn visit_trait_item_fn(&mut self, function: &'ast syn::TraitItemFn) {
        if let Some(block) = &function.default {
            self.body(block);
        }
    }

    // The compiler works these out.
    fn visit_item_const(&mut self, _: &'ast syn::ItemConst) {}
    fn visit_item_static(&mut self, _: &'ast syn::ItemStatic) {}
    fn visit_impl_item_const(&mut self, _: &'ast syn::ImplItemConst) {}
    fn visit_trait_item_const(&mut self, _: &'ast syn::TraitItemConst) {}
    fn visit_expr_const(&mut self, _: &'ast syn::ExprConst) {}
    fn visit_item_enum(&mut self, _: &'ast syn::ItemEnum) {}
    fn visit_type(&mut self, _: &'ast syn::Type) {}
    fn visit_pat(&mut self, _: &'ast syn::Pat) {}
    fn visit_generic_argument(&mut self, _: &'ast syn::GenericArgument) {}
    fn visit_attribute(&mut self, _: &'ast syn::Attribute) {}
    fn visit_expr_repeat(&mut self, expression: &'ast syn::ExprRepeat) {
        self.visit_expr(&expression.expr);
    }
}

/// A stretch of the file with what stands in its place.
#[derive(Default, Debug)]
struct Node {
    range: Range<usize>,
    /// Texts in place of the stretch, by the mutant's number.
    alternatives: Vec<(u32, String)>,
    /// Mutants that return here, and what.
    returns: Vec<(u32, String)>,
    /// Arms that are not there.
    deleted: Vec<u32>,
    /// The guard of an arm that had none.
    is_new_guard: bool,
}

/// Every mutant of a file that `changes` names.
///
/// # Errors
/// The file is no Rust.
pub(super) fn switch(source: &str, changes: &[Change]) -> Result<Switched, String> {
    let file = syn::parse_file(source).map_err(|e| format!("{}: {e}", line_of(e.span())))?;
    let mut finder = Finder::default();
    finder.visit_file(&file);
    let mut switched = Switched::default();
    let mut nodes: Vec<Node> = Vec::new();
    for change in changes {
        match node_of(source, &finder.places, change) {
            Some(new) => match nodes
                .iter_mut()
                .find(|node| node.range == new.range && node.is_new_guard == new.is_new_guard)
            {
                Some(known) => {
                    known.alternatives.extend(new.alternatives);
                    known.returns.extend(new.returns);
                    known.deleted.extend(new.deleted);
                }
                None => nodes.push(new),
            },
            None => switched.without.push(change.id),
        }
    }
    // What returns comes before the first expression; of two that begin together the outer one is the longer.
    nodes.sort_by_key(|node| {
        let is_before = node.range.is_empty();
        (node.range.start, !is_before, usize::MAX - node.range.end)
    });
    let mut writer = Writer {
        source,
        nodes: &nodes,
        next: 0,
        text: String::with_capacity(source.len() * 3),
        stretches: Vec::new(),
    };
    writer.write(0..source.len());
    let Writer { text, stretches, .. } = writer;
    switched.lines = stretches
        .into_iter()
        .map(|(stretch, id)| {
            let line = |at: usize| text[..at].bytes().filter(|byte| *byte == b'\n').count() + 1;
            (line(stretch.start)..line(stretch.end) + 1, id)
        })
        .collect();
    switched.text = text;
    Ok(switched)
}

fn line_of(span: Span) -> usize {
    span.start().line
}

fn node_of(source: &str, places: &[Place], change: &Change) -> Option<Node> {
    let (id, span) = (change.id, &change.span);
    let spliced = |whole: &Range<usize>| {
        format!(
            "{}{}{}",
            &source[whole.start..span.start],
            change.replacement,
            &source[span.end..whole.end]
        )
    };
    places.iter().find_map(|place| match (change.genre, place) {
        (Genre::Returns, Place::Body(body)) if body == span => Some(Node {
            range: span.start..span.start,
            returns: vec![(id, change.replacement.clone())],
            ..Node::default()
        }),
        // A field's stretch has its comma, which is none of the syntax tree's.
        (Genre::Expression, Place::Expression { whole, pieces })
            if pieces.iter().any(|piece| {
                piece.start == span.start && piece.end <= span.end && span.end <= piece.end + 1
            }) =>
        {
            Some(Node {
                range: whole.clone(),
                alternatives: vec![(id, spliced(whole))],
                ..Node::default()
            })
        }
        (Genre::Guard, Place::Guard(guard)) if guard == span => Some(Node {
            range: guard.clone(),
            alternatives: vec![(id, change.replacement.clone())],
            ..Node::default()
        }),
        (
            Genre::Arm,
            Place::Arm {
                whole,
                guard,
                pattern_end,
            },
        ) if whole.start == span.start => Some(Node {
            range: guard.clone().unwrap_or(*pattern_end..*pattern_end),
            deleted: vec![id],
            is_new_guard: guard.is_none(),
            ..Node::default()
        }),
        _ => None,
    })
}

struct Writer<'a> {
    source: &'a str,
    nodes: &'a [Node],
    /// Which node comes next.
    next: usize,
    text: String,
    /// What was written for which mutant.
    stretches: Vec<(Range<usize>, u32)>,
}

impl Writer<'_> {
    /// A stretch of the source with every node in it.
    fn write(&mut self, stretch: Range<usize>) {
        let mut at = stretch.start;
        while let Some(node) = self.nodes.get(self.next)
            && node.range.start >= at
            && node.range.end <= stretch.end
        {
            self.text.push_str(&self.source[at..node.range.start]);
            self.next += 1;
            self.node(node);
            at = node.range.end;
        }
        self.text.push_str(&self.source[at..stretch.end]);
    }

    fn node(&mut self, node: &Node) {
        for (id, value) in &node.returns {
            self.stretch(*id, &format!("if {} {{ return {value}; }}", asked(*id)));
        }
        if !node.returns.is_empty() {
            return;
        }
        let guard = if node.is_new_guard { " if " } else { "(" };
        if !node.deleted.is_empty() {
            self.text.push_str(guard);
            for (nth, id) in node.deleted.iter().enumerate() {
                let and = if nth > 0 { "&& " } else { "" };
                self.stretch(*id, &format!("{and}!{}", asked(*id)));
            }
            if node.is_new_guard {
                return;
            }
            self.text.push_str("&& ");
        }
        self.text.push('(');
        for (id, text) in &node.alternatives {
            let _ = write!(self.text, "if {} {{", asked(*id));
            self.stretch(*id, text);
            self.text.push_str("} else ");
        }
        self.text.push_str("{\n");
        self.write(node.range.clone());
        self.text.push_str("\n})");
        if !node.deleted.is_empty() {
            self.text.push(')');
        }
    }

    /// A mutant's text, in lines of its own.
    fn stretch(&mut self, id: u32, text: &str) {
        self.text.push('\n');
        let start = self.text.len();
        self.text.push_str(text);
        self.stretches.push((start..self.text.len(), id));
        self.text.push('\n');
    }
}

fn asked(id: u32) -> String {
    format!("crate::mutant_switch::is({id})")
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str = "\
const WIDE: u64 = 1 << 62;
fn f(a: u32, b: u32) -> bool {
    a < b && b != 3 // both
}
fn g(a: Option<u32>) -> u32 {
    if let Some(n) = a && n > 1 {
        return n;
    }
    match a {
        Some(n) if n == 0 => 1,
        Some(_) => 2,
        _ => 3,
    }
}
";

    fn change(id: u32, genre: Genre, what: &str, replacement: &str) -> Change {
        let start = SOURCE.find(what).unwrap_or_else(|| panic!("{what:?}"));
        Change {
            id,
            genre,
            span: start..start + what.len(),
            replacement: replacement.into(),
        }
    }

    fn flat(text: &str) -> String {
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn both_stand_there_and_only_the_original_holds_further_switches() {
        let changes = [
            change(1, Genre::Expression, "&&", "||"),
            change(2, Genre::Expression, "<", "<="),
            change(3, Genre::Returns, "a < b && b != 3", "true"),
        ];
        // The first `<` of the file is that of the constant.
        let mut changes = changes.to_vec();
        changes[1].span = SOURCE.find("a < b").map(|at| at + 2..at + 3).unwrap_or_default();
        let switched = switch(SOURCE, &changes).unwrap_or_else(|e| panic!("{e}"));
        assert!(switched.without.is_empty());
        let is = |id: u32| format!("crate::mutant_switch::is({id})");
        let wanted = format!(
            "if {} {{ return true; }} (if {} {{ a < b || b != 3 }} else {{ (if {} {{ a <= b }} else {{ a < b }}) && b != 3 }}) // both",
            is(3),
            is(1),
            is(2)
        );
        assert!(flat(&switched.text).contains(&flat(&wanted)), "{}", switched.text);
        let lines: Vec<&str> = switched.text.lines().collect();
        for (stretch, id) in &switched.lines {
            let text = lines[stretch.start - 1..stretch.end - 1].join(" ");
            let wanted = ["", "a < b || b != 3", "a <= b", "return true"][*id as usize];
            assert!(text.contains(wanted), "{id}: {text}");
        }
        assert!(syn::parse_file(&switched.text).is_ok());
    }

    #[test]
    fn arms_and_guards_are_switched_off() {
        let changes = [
            change(1, Genre::Guard, "n == 0", "true"),
            change(2, Genre::Arm, "Some(n) if n == 0 => 1,", ""),
            change(3, Genre::Arm, "Some(_) => 2,", ""),
            change(4, Genre::Expression, "==", "!="),
        ];
        let switched = switch(SOURCE, &changes).unwrap_or_else(|e| panic!("{e}"));
        assert!(switched.without.is_empty());
        let is = |id: u32| format!("crate::mutant_switch::is({id})");
        let wanted = format!(
            "Some(n) if ( !{} && (if {} {{ true }} else if {} {{ n != 0 }} else {{ n == 0 }})) => 1, Some(_) if !{} => 2, _ => 3,",
            is(2),
            is(1),
            is(4),
            is(3)
        );
        assert!(flat(&switched.text).contains(&flat(&wanted)), "{}", switched.text);
        assert!(syn::parse_file(&switched.text).is_ok());
    }

    #[test]
    fn what_the_compiler_works_out_has_no_switch_and_neither_has_a_chain_that_binds() {
        let mut chain = change(8, Genre::Expression, "&& n > 1", "||");
        chain.span.end = chain.span.start + 2;
        let changes = [change(7, Genre::Expression, "<<", ">>"), chain];
        let switched = switch(SOURCE, &changes).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(switched.without, [7, 8]);
        assert_eq!(switched.text, SOURCE);
    }
}
