//! The standard's dictionaries, built in: which fields, listed values, groups and messages FIX 4.0 to 5.0 SP2
//! and FIXT 1.1 have, so that messages are checked though nobody brought a file.
//!
//! They are kept in a short form of one line a definition (`dictionaries/*.txt`), facts only: no
//! descriptions.
//! ```text
//! FIX.4.4
//! H 8! 9! 35! … 627(628 629 630)         header: tags in order; `!` must be there; a group has its entry in brackets
//! T 93 89 10!                            trailer
//! C Parties 453(448 447 452)             a component
//! M D app NewOrderSingle 11! @Parties …  a message: type, layer, name, members; `@` names a component
//! F 54 Side CHAR 1 2 3                   a field: tag, name, type, listed values
//! ```
//! [`standard_xml`] writes them in QuickFIX's format, which is what [`Dictionary::parse`] reads: to be
//! extended by a counterparty's own fields, or given to another engine.

use super::Dictionary;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::Write;

/// By what [`Dictionary::begin_string`] calls them.
const STANDARD: [(&str, &str); 9] = [
    ("FIX.4.0", include_str!("../../dictionaries/FIX40.txt")),
    ("FIX.4.1", include_str!("../../dictionaries/FIX41.txt")),
    ("FIX.4.2", include_str!("../../dictionaries/FIX42.txt")),
    ("FIX.4.3", include_str!("../../dictionaries/FIX43.txt")),
    ("FIX.4.4", include_str!("../../dictionaries/FIX44.txt")),
    ("FIX.5.0", include_str!("../../dictionaries/FIX50.txt")),
    ("FIX.5.0SP1", include_str!("../../dictionaries/FIX50SP1.txt")),
    ("FIX.5.0SP2", include_str!("../../dictionaries/FIX50SP2.txt")),
    ("FIXT.1.1", include_str!("../../dictionaries/FIXT11.txt")),
];

/// The names of the dictionaries that are built in: `FIX.4.0` to `FIX.5.0SP2`, `FIXT.1.1`.
pub fn standard_names() -> impl Iterator<Item = &'static str> {
    STANDARD.iter().map(|(name, _)| *name)
}

/// A dictionary that is built in, in QuickFIX's XML format; `None` for a name that is none of
/// [`standard_names`].
pub fn standard_xml(name: &str) -> Option<String> {
    let (_, short) = STANDARD.iter().find(|(known, _)| *known == name)?;
    Some(expanded(short))
}

impl Dictionary {
    /// The standard's dictionary for a version, `FIX.4.0` to `FIX.5.0SP2` or `FIXT.1.1`, built in; `None` for
    /// another name.
    pub fn standard(name: &str) -> Option<Dictionary> {
        // A test reads every one of them.
        Dictionary::parse(&standard_xml(name)?).ok()
    }
}

/// The short form as XML.
fn expanded(short: &str) -> String {
    let names = names_by_tag(short);
    let mut parts: [String; 5] = Default::default();
    let [header, trailer, messages, components, fields] = &mut parts;
    let mut head = "";
    for line in short.lines() {
        let (kind, rest) = line.split_once(' ').unwrap_or((line, ""));
        match kind {
            "H" => put_members(header, rest, &names),
            "T" => put_members(trailer, rest, &names),
            "C" => {
                let (name, members) = rest.split_once(' ').unwrap_or((rest, ""));
                put(components, format_args!("<component name=\"{name}\">\n"));
                put_members(components, members, &names);
                components.push_str("</component>\n");
            }
            "M" => {
                let mut words = rest.splitn(4, ' ');
                let [msg_type, layer, name, members] = [(); 4].map(|()| words.next().unwrap_or(""));
                put(
                    messages,
                    format_args!("<message name=\"{name}\" msgtype=\"{msg_type}\" msgcat=\"{layer}\">\n"),
                );
                put_members(messages, members, &names);
                messages.push_str("</message>\n");
            }
            "F" => put_field(fields, rest),
            _ => head = line,
        }
    }
    let (family, version) = head.split_once('.').unwrap_or((head, ""));
    let (version, pack) = version.split_once("SP").unwrap_or((version, "0"));
    let (major, minor) = version.split_once('.').unwrap_or((version, "0"));
    let [header, trailer, messages, components, fields] = parts;
    format!(
        "<fix type=\"{family}\" major=\"{major}\" minor=\"{minor}\" servicepack=\"{pack}\">\n<header>\n{header}</header>\n\
         <messages>\n{messages}</messages>\n<trailer>\n{trailer}</trailer>\n<components>\n{components}</components>\n\
         <fields>\n{fields}</fields>\n</fix>\n"
    )
}

fn put(out: &mut String, what: core::fmt::Arguments<'_>) {
    // A String takes everything.
    let _ = out.write_fmt(what);
}

/// The names of fields, by tag, for a binary search.
fn names_by_tag(short: &str) -> Vec<(u32, &str)> {
    let fields = short.lines().filter_map(|line| {
        let mut words = line.strip_prefix("F ")?.split(' ');
        Some((words.next()?.parse().ok()?, words.next()?))
    });
    let mut names: Vec<(u32, &str)> = fields.collect();
    names.sort_unstable();
    names
}

fn put_field(out: &mut String, rest: &str) {
    let mut words = rest.split(' ');
    let [tag, name, kind] = [(); 3].map(|()| words.next().unwrap_or(""));
    put(
        out,
        format_args!("<field number=\"{tag}\" name=\"{name}\" type=\"{kind}\">"),
    );
    for value in words {
        out.push_str("<value enum=\"");
        for c in value.chars() {
            match c {
                '&' => out.push_str("&amp;"),
                '<' => out.push_str("&lt;"),
                '"' => out.push_str("&quot;"),
                c => out.push(c),
            }
        }
        out.push_str("\"/>");
    }
    out.push_str("</field>\n");
}

/// `11! 526 453(448 447) @Instrument!` as elements.
fn put_members(out: &mut String, members: &str, names: &[(u32, &str)]) {
    for word in members.split(' ').filter(|word| !word.is_empty()) {
        // The last member of a group ends with the brackets of all groups that end there.
        let ends = word.len() - word.trim_end_matches(')').len();
        let word = word.trim_end_matches(')');
        let (member, first) = match word.split_once('(') {
            Some((count, first)) => (count, Some(first)),
            None => (word, None),
        };
        put_member(out, member, first.is_some(), names);
        if let Some(first) = first {
            put_member(out, first, false, names);
        }
        (0..ends).for_each(|_| out.push_str("</group>\n"));
    }
}

fn put_member(out: &mut String, member: &str, is_group: bool, names: &[(u32, &str)]) {
    let (member, required) = match member.strip_suffix('!') {
        Some(member) => (member, 'Y'),
        None => (member, 'N'),
    };
    let (element, name) = match member.strip_prefix('@') {
        Some(component) => ("component", component),
        None => {
            let tag = member.parse().unwrap_or(0);
            let at = names.binary_search_by_key(&tag, |(tag, _)| *tag);
            let name = at.map_or("", |at| names[at].1);
            (if is_group { "group" } else { "field" }, name)
        }
    };
    let end = if is_group { "" } else { "/" };
    put(
        out,
        format_args!("<{element} name=\"{name}\" required=\"{required}\"{end}>\n"),
    );
}
