//! The mark of tests that read recorded data.
//!
//! ```text
//! #[recorded_data("captures/packets/Siac", "specs/siac-cqs.md")]
//! #[test]
//! fn recorded_blocks_decode_whole() { … }
//! ```
//! Recorded packets, specifications and dictionaries of others may not be redistributed, so most clones of
//! this repository do not have them. Where a path that a test names is not there when the test is built, the
//! test is compiled, but ignored, and the test harness itself counts it and says what is missing; it can
//! never be counted as passed. Where the variable `CI` is set it is not ignored and fails. The body may read
//! what the mark names and nothing else: `tickwire_testdata` refuses the rest, so a test without its mark
//! fails wherever it runs. No derive or parser crates: one attribute of literals needs neither.
#![forbid(unsafe_code)]

use proc_macro::{Delimiter, Group, TokenStream, TokenTree};
use std::path::Path;

/// Where the folder of recorded data was sought when this was built.
const ROOT: &str = env!("TICKWIRE_RECORDED_ROOT");
/// Whether absence is a failure: `CI` was set when this was built.
const REQUIRED: &str = env!("TICKWIRE_RECORDED_REQUIRED");

/// Marks a test that reads these paths of the recorded data; stands above `#[test]`.
///
/// The paths are relative to the folder that `TICKWIRE_SHARED` names, by default `../shared` beside the
/// repository: files, or folders that are read as a whole.
#[proc_macro_attribute]
pub fn recorded_data(paths: TokenStream, test: TokenStream) -> TokenStream {
    match expand(paths, test) {
        Ok(expanded) => expanded,
        Err(why) => format!("compile_error!({why:?});")
            .parse()
            .expect("a literal in a macro call is Rust"),
    }
}

fn expand(paths: TokenStream, test: TokenStream) -> Result<TokenStream, String> {
    let paths = literals(paths)?;
    let mut tokens: Vec<TokenTree> = test.into_iter().collect();
    if !tokens.iter().any(is_test) {
        return Err("#[recorded_data(...)] stands above #[test]".to_owned());
    }
    let Some(TokenTree::Group(body)) = tokens.pop() else {
        return Err("#[recorded_data(...)] marks a test function".to_owned());
    };
    if body.delimiter() != Delimiter::Brace {
        return Err("#[recorded_data(...)] marks a test function".to_owned());
    }
    let reads = format!("let _reading = ::tickwire_testdata::Reading::of(&{paths:?});");
    let mut with_mark: TokenStream = reads.parse().map_err(|e| format!("{e}"))?;
    with_mark.extend(body.stream());
    let mut marked = Group::new(Delimiter::Brace, with_mark);
    marked.set_span(body.span());
    tokens.push(TokenTree::Group(marked));
    let mut expanded = TokenStream::new();
    let missing = paths.iter().find(|path| !Path::new(ROOT).join(path).exists());
    if let Some(missing) = missing
        && REQUIRED != "true"
    {
        let reason = format!("needs recorded data: {missing}");
        expanded.extend(
            format!("#[ignore = {reason:?}]")
                .parse::<TokenStream>()
                .map_err(|e| format!("{e}"))?,
        );
    }
    expanded.extend(tokens);
    Ok(expanded)
}

/// The attribute `[test]` behind its `#`.
fn is_test(token: &TokenTree) -> bool {
    matches!(token, TokenTree::Group(group)
        if group.delimiter() == Delimiter::Bracket && group.stream().to_string() == "test")
}

/// The text of every literal between commas.
fn literals(tokens: TokenStream) -> Result<Vec<String>, String> {
    let mut paths = Vec::new();
    for token in tokens {
        match token {
            TokenTree::Literal(literal) => {
                let text = literal.to_string();
                let path = text.strip_prefix('"').and_then(|text| text.strip_suffix('"'));
                let path = path.filter(|path| {
                    ["captures", "specs", "fix"].contains(&path.split('/').next().unwrap_or(""))
                });
                paths.push(
                    path.ok_or_else(|| format!("{text} is no path below captures, specs or fix"))?
                        .to_owned(),
                );
            }
            TokenTree::Punct(comma) if comma.as_char() == ',' => {}
            other => return Err(format!("`{other}`: paths in quotes, with commas between them")),
        }
    }
    if paths.is_empty() {
        return Err("name what the test reads: #[recorded_data(\"captures/packets/Siac\")]".to_owned());
    }
    Ok(paths)
}

/// Whether the folder of recorded data was there when the marks were expanded: `true` or `false`.
#[proc_macro]
pub fn recorded_data_was_there(_: TokenStream) -> TokenStream {
    let is_there = Path::new(ROOT).join("captures").exists();
    is_there.to_string().parse().expect("a literal is Rust")
}
