//! Names of FIX as names of Rust.

use std::collections::BTreeSet;

/// `ClOrdID` → `cl_ord_id`, `NoPartyIDs` → `no_party_ids`, `FIX44` → `fix44`.
pub(crate) fn snake(name: &str) -> String {
    let chars: Vec<char> = name.replace("IDs", "Ids").chars().collect();
    let mut out = String::new();
    for (i, &c) in chars.iter().enumerate() {
        if !c.is_ascii_alphanumeric() {
            out.push('_');
            continue;
        }
        let before = i.checked_sub(1).map(|i| chars[i]);
        let begins_word = c.is_ascii_uppercase()
            && before.is_some_and(|b| {
                b.is_ascii_lowercase()
                    || b.is_ascii_digit() && i > 1 && chars[i - 2].is_ascii_lowercase()
                    || b.is_ascii_uppercase() && chars.get(i + 1).is_some_and(char::is_ascii_lowercase)
            });
        if begins_word && !out.ends_with('_') {
            out.push('_');
        }
        out.push(c.to_ascii_lowercase());
    }
    identifier(out)
}

/// A constant's name: `CL_ORD_ID`.
pub(crate) fn screaming(name: &str) -> String {
    identifier(snake(name).trim_end_matches('_').to_ascii_uppercase())
}

/// A type's name: as it is, where it is a name.
pub(crate) fn type_name(name: &str) -> String {
    let clean: String = name
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '_' })
        .collect();
    let mut chars = clean.chars();
    let first = chars.next().map(|c| c.to_ascii_uppercase());
    identifier(first.into_iter().chain(chars).collect())
}

/// The variant of a listed value, by its description: `PARTIALLY_FILLED` → `PartiallyFilled`.
pub(crate) fn variant(description: &str, value: &[u8], taken: &mut BTreeSet<String>) -> String {
    let words = description.split(|c: char| !c.is_ascii_alphanumeric());
    let mut name: String = words.filter(|w| !w.is_empty()).map(capitalised).collect();
    // Descriptions may be whole sentences.
    name.truncate(60);
    if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) {
        name.insert(0, 'N');
    }
    if name == "Self" {
        name.push('_');
    }
    if !taken.insert(name.clone()) {
        let text: String = value
            .iter()
            .map(|&b| match b.is_ascii_alphanumeric() {
                true => char::from(b).to_string(),
                false => format!("{b:02x}"),
            })
            .collect();
        name = format!("{name}_{text}");
        // Values differ; names made of them might still not.
        while !taken.insert(name.clone()) {
            name.push('_');
        }
    }
    name
}

/// `FILLED` → `Filled`, `PartTimer` and `IOC1` as they are if not all capitals.
fn capitalised(word: &str) -> String {
    let has_lower = word.bytes().any(|b| b.is_ascii_lowercase());
    let (first, rest) = word.split_at(1);
    let rest = if has_lower {
        rest.to_owned()
    } else {
        rest.to_ascii_lowercase()
    };
    first.to_ascii_uppercase() + &rest
}

/// The name of the entries behind a count: `NoQuoteSets` → `QuoteSets`.
pub(crate) fn without_no(count: &str) -> &str {
    match count.strip_prefix("No") {
        Some(rest) if rest.starts_with(|c: char| c.is_ascii_uppercase()) => rest,
        _ => count,
    }
}

/// Not a word of the language, not a digit in front.
fn identifier(mut name: String) -> String {
    const WORDS: &[&str] = &[
        "abstract", "as", "async", "await", "become", "box", "break", "const", "continue", "crate", "do",
        "dyn", "else", "enum", "extern", "false", "final", "fn", "for", "gen", "if", "impl", "in", "let",
        "loop", "macro", "match", "mod", "move", "mut", "override", "priv", "pub", "ref", "return", "self",
        "Self", "static", "struct", "super", "trait", "true", "try", "type", "typeof", "unsafe", "unsized",
        "use", "virtual", "where", "while", "yield",
    ];
    if WORDS.contains(&name.as_str()) {
        name.push('_');
    }
    if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) {
        name.insert(0, '_');
    }
    name
}

/// Text for a doc comment: one line, nothing that rustdoc takes for a link, a tag or code.
pub(crate) fn doc(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        match c {
            '\n' | '\r' | '\t' => out.push(' '),
            '[' | ']' | '<' | '>' | '`' | '*' | '_' | '\\' | '|' => {
                out.push('\\');
                out.push(c);
            }
            _ => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_fields_become_names_of_methods() {
        for (fix, rust) in [
            ("ClOrdID", "cl_ord_id"),
            ("NoPartyIDs", "no_party_ids"),
            ("MDEntryPx", "md_entry_px"),
            ("IOIID", "ioiid"),
            ("SecurityIDSource", "security_id_source"),
            ("Yield", "yield_"),
            ("URLLink", "url_link"),
            ("FIX44", "fix44"),
            ("FIX50SP2", "fix50sp2"),
            ("MarketSegmentID", "market_segment_id"),
            ("my-venue", "my_venue"),
            ("4all", "_4all"),
        ] {
            assert_eq!(snake(fix), rust);
        }
        assert_eq!(screaming("Yield"), "YIELD");
        assert_eq!(without_no("NoQuoteSets"), "QuoteSets");
        assert_eq!(without_no("Notes"), "Notes");
    }

    #[test]
    fn descriptions_become_names_of_values_that_differ() {
        let mut taken = BTreeSet::new();
        let mut name = |text: &str, value: &[u8]| variant(text, value, &mut taken);
        assert_eq!(name("PARTIALLY_FILLED", b"1"), "PartiallyFilled");
        assert_eq!(name("PARTIALLY FILLED", b"2"), "PartiallyFilled_2");
        assert_eq!(name("1ST", b"3"), "N1st");
        assert_eq!(name("", b"*"), "N");
        assert_eq!(name("", b"+"), "N_2b");
        assert_eq!(name("self", b"x"), "Self_");
        assert_eq!(name("Immediate or Cancel (IOC)", b"y"), "ImmediateOrCancelIoc");
    }
}
