//! The form of QuickFIX's configuration files: `[DEFAULT]` and `[SESSION]` sections of `Key=Value` lines.
//!
//! What the three engines read is read: comments on lines of their own and behind headings, spaces, small
//! letters in headings and keys, CRLF, a byte order mark, `${NAME}` for a variable of the environment.
//! Everything that is wrong with a file is told at once.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;
use std::rc::Rc;

use tickwire_market::Nanos;

use crate::quickfix::{self, Does};

/// Something to say about a line of a file, from 1.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Remark {
    pub(crate) line: usize,
    pub(crate) what: String,
}

impl fmt::Display for Remark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.line, self.what)
    }
}

/// What there is to say about a file.
#[derive(Debug, Default)]
pub(crate) struct Remarks {
    /// With one of these nothing begins.
    pub(crate) mistakes: Vec<Remark>,
    /// What is done otherwise than the file's words may mean.
    pub(crate) warnings: Vec<Remark>,
    /// What was chosen where the file left it open.
    pub(crate) notes: Vec<Remark>,
}

/// A line's value.
#[derive(Clone, Debug)]
struct Value {
    text: String,
    line: usize,
    /// Its key as it is written.
    written: String,
    /// A variable in it that the environment does not have.
    unset: Option<String>,
}

/// The lines of one section, over those of `[DEFAULT]`.
#[derive(Clone, Default)]
pub(crate) struct Section {
    pub(crate) line: usize,
    /// By key, as [`quickfix::find`] calls it, or in small letters if nobody knows it.
    values: BTreeMap<String, Value>,
    remarks: Rc<RefCell<Remarks>>,
    /// Keys that were asked for.
    asked: Rc<RefCell<std::collections::BTreeSet<String>>>,
}

impl Section {
    /// The value of a setting and its line.
    pub(crate) fn text(&self, key: &str) -> Option<(&str, usize)> {
        self.asked.borrow_mut().insert(key.to_string());
        let value = self.values.get(key)?;
        if let Some(variable) = &value.unset {
            self.wrong(
                value.line,
                format!("{}: the environment has no variable {variable}", value.written),
            );
        }
        Some((&value.text, value.line))
    }

    /// The same of a setting that must be there.
    pub(crate) fn needed(&self, key: &str) -> Option<(&str, usize)> {
        let found = self.text(key);
        if found.is_none() {
            self.wrong(
                self.line,
                format!("this [SESSION] has no {key}, and [DEFAULT] has none either"),
            );
        }
        found
    }

    /// The value of a setting, if it is there and right; `allowed` says what would be. A comment behind it
    /// does no harm.
    pub(crate) fn parsed<T>(&self, key: &str, allowed: &str, parse: impl Fn(&str) -> Option<T>) -> Option<T> {
        let (value, line) = self.text(key)?;
        let bare = value.find([' ', '\t']).and_then(|at| {
            let (bare, behind) = value.split_at(at);
            behind.trim_start().starts_with('#').then_some(bare)
        });
        let parsed = parse(value).or_else(|| bare.and_then(parse));
        if parsed.is_none() {
            let written = &self.values[key].written;
            self.wrong(line, format!("{written}={value}: must be {allowed}"));
        }
        parsed
    }

    /// A setting that is Y or N.
    pub(crate) fn flag(&self, key: &str, default: bool) -> bool {
        let parse = |text: &str| match text {
            "Y" | "y" => Some(true),
            "N" | "n" => Some(false),
            _ => None,
        };
        self.parsed(key, "Y or N", parse).unwrap_or(default)
    }

    /// A time in whole seconds, up to a day.
    pub(crate) fn seconds(&self, key: &str, default_s: u64) -> u64 {
        let parse = |text: &str| text.parse().ok().filter(|s| *s <= 86_400);
        let seconds = self.parsed(key, "seconds, 0 to 86400", parse);
        seconds.unwrap_or(default_s) * Nanos::SECOND
    }

    /// The keys of settings that begin so, each with its value and line.
    pub(crate) fn beginning_with(&self, begin: &str) -> Vec<(&str, &str, usize)> {
        let found = self.values.iter().filter(|(key, _)| key.starts_with(begin));
        found
            .map(|(key, value)| (key.as_str(), value.text.as_str(), value.line))
            .collect()
    }

    /// Tells of a mistake.
    pub(crate) fn wrong(&self, line: usize, what: impl Into<String>) {
        let what = what.into();
        self.remarks.borrow_mut().mistakes.push(Remark { line, what });
    }

    /// Tells of something that is not as the file may mean it.
    pub(crate) fn warn(&self, line: usize, what: impl Into<String>) {
        let what = what.into();
        self.remarks.borrow_mut().warnings.push(Remark { line, what });
    }

    /// Tells what was chosen.
    pub(crate) fn note(&self, line: usize, what: impl Into<String>) {
        let what = what.into();
        self.remarks.borrow_mut().notes.push(Remark { line, what });
    }

    /// Tells of settings that nobody knows, that have no meaning here, or that cannot be.
    pub(crate) fn check_names(&self, admits_unknown: bool) {
        for value in self.values.values() {
            let written = &value.written;
            match quickfix::find(written).map(|(known, _)| &known.does) {
                Some(Does::Read(_) | Does::Alias(_)) => {}
                Some(Does::Refused(reason)) => self.wrong(value.line, format!("{written}: {reason}")),
                Some(Does::Ignored(reason, harmless)) => {
                    let is_harmless = |known: &&str| known.eq_ignore_ascii_case(&value.text);
                    if !value.text.is_empty() && !harmless.iter().any(is_harmless) {
                        self.warn(value.line, format!("{written} is passed over: {reason}"));
                    }
                }
                None if admits_unknown => {
                    self.warn(
                        value.line,
                        format!("{written} is ignored: the engine does not know it"),
                    );
                }
                None => self.wrong(value.line, unknown(written)),
            }
        }
    }

    /// Keys that were asked for.
    #[cfg(test)]
    pub(crate) fn asked(&self) -> Vec<String> {
        self.asked.borrow().iter().cloned().collect()
    }
}

/// The name that was meant by one that nobody knows: with at most one slip in three letters, or one the
/// beginning of the other.
fn similar<'n>(wanted: &str, names: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    let wanted = wanted.to_ascii_uppercase();
    let near = |name: &'n str| {
        let other = name.to_ascii_uppercase();
        let slips = strsim::levenshtein(&wanted, &other);
        let begins = !wanted.is_empty() && (other.starts_with(&wanted) || wanted.starts_with(&other));
        (slips <= wanted.len() / 3 + 1 && slips < wanted.len() || begins).then_some((slips, name))
    };
    names.filter_map(near).min().map(|(_, name)| name)
}

fn unknown(written: &str) -> String {
    let names = quickfix::KNOWN.iter().map(|known| known.name);
    let hint = match similar(written, names) {
        Some(name) => format!("did you mean {name}?"),
        None => "if it is your application's own, start with --allow-unknown".into(),
    };
    format!("{written} is not a setting that is known here; {hint}")
}

/// Which kind of section lines belong to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum In {
    Nothing,
    Default,
    Session,
    /// A section of another program's.
    Other,
}

/// The name in `[name]`, if a line is a heading, with or without a comment behind it.
fn heading(line: &str) -> Option<&str> {
    let (name, behind) = line.strip_prefix('[')?.split_once(']')?;
    let behind = behind.trim_start();
    (behind.is_empty() || behind.starts_with(['#', ';', '/'])).then(|| name.trim())
}

/// A file as it was read.
pub(crate) struct Parsed {
    /// Every `[SESSION]` with the lines of `[DEFAULT]` beneath its own.
    pub(crate) sessions: Vec<Section>,
    pub(crate) remarks: Rc<RefCell<Remarks>>,
}

/// Reads a file; `variable` has the values of `${NAME}`.
pub(crate) fn sections(text: &str, variable: impl Fn(&str) -> Option<String>) -> Parsed {
    let remarks = Rc::new(RefCell::new(Remarks::default()));
    let asked = Rc::default();
    let mut default = Section {
        remarks: remarks.clone(),
        asked,
        ..Section::default()
    };
    let mut sessions = Vec::<Section>::new();
    let mut now_in = In::Nothing;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    for (at, line) in text.lines().enumerate() {
        let (line, number) = (line.trim(), at + 1);
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if let Some(name) = heading(line) {
            now_in = match name.to_ascii_uppercase().as_str() {
                "DEFAULT" => In::Default,
                "SESSION" => {
                    sessions.push(Section {
                        line: number,
                        values: BTreeMap::new(),
                        ..default.clone()
                    });
                    In::Session
                }
                _ => {
                    match similar(name, ["DEFAULT", "SESSION"].into_iter()) {
                        Some(meant) => {
                            default.wrong(number, format!("[{name}] is no section; did you mean [{meant}]?"));
                        }
                        None => default.warn(number, format!("the section [{name}] is passed over")),
                    }
                    In::Other
                }
            };
            continue;
        }
        let Some((key, value)) = line.split_once('=').filter(|(key, _)| !key.trim().is_empty()) else {
            if now_in != In::Other {
                default.wrong(number, format!("{line:?} is neither Key=Value nor a section"));
            }
            continue;
        };
        let section = match now_in {
            In::Default => &mut default,
            In::Session => sessions.last_mut().unwrap_or(&mut default),
            In::Other => continue,
            In::Nothing => {
                default.wrong(number, "a value before the first [DEFAULT] or [SESSION]");
                continue;
            }
        };
        section.add(key.trim(), value.trim(), number, &variable);
    }
    for session in &mut sessions {
        for (key, value) in &default.values {
            session.values.entry(key.clone()).or_insert_with(|| value.clone());
        }
    }
    Parsed { sessions, remarks }
}

impl Section {
    fn add(&mut self, written: &str, text: &str, line: usize, variable: impl Fn(&str) -> Option<String>) {
        let key = match quickfix::find(written) {
            Some((known, name)) => match known.does {
                Does::Alias(of) => of.to_string(),
                _ => name,
            },
            None => written.to_ascii_lowercase(),
        };
        let (text, unset) = substituted(text, variable);
        let value = Value {
            text,
            line,
            written: written.to_string(),
            unset,
        };
        if let Some(before) = self.values.insert(key, value) {
            self.warn(
                line,
                format!(
                    "{written} a second time: this value counts, not that of line {}",
                    before.line
                ),
            );
        }
    }
}

/// `${NAME}` replaced, unless a backslash stands before it; and the first variable that has no value, which
/// is left as it stands.
fn substituted(text: &str, variable: impl Fn(&str) -> Option<String>) -> (String, Option<String>) {
    let (mut out, mut unset, mut rest) = (String::new(), None, text);
    while let Some((before, behind)) = rest.split_once("${") {
        let Some((name, after)) = behind.split_once('}') else {
            break;
        };
        out.push_str(before);
        match variable(name).filter(|_| !before.ends_with('\\')) {
            Some(value) => out.push_str(&value),
            None => {
                out.extend(["${", name, "}"]);
                if !before.ends_with('\\') {
                    unset.get_or_insert_with(|| name.to_string());
                }
            }
        }
        rest = after;
    }
    out.push_str(rest);
    (out, unset)
}
