//! The form of QuickFIX's configuration files: `[DEFAULT]` and `[SESSION]` sections of `Key=Value` lines.

use std::collections::BTreeMap;
use std::fmt;

use tickwire_market::Nanos;

/// A mistake in a file.
#[derive(Debug)]
pub(super) struct Mistake {
    pub(super) line: usize,
    pub(super) what: String,
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.what)
    }
}

/// The lines of one section, over those of `[DEFAULT]`.
#[derive(Clone, Default)]
pub(super) struct Section {
    pub(super) line: usize,
    /// Value and line by key.
    values: BTreeMap<String, (String, usize)>,
    /// Keys that were asked for.
    known: std::cell::RefCell<Vec<String>>,
}

impl Section {
    pub(super) fn text(&self, key: &str) -> Option<(&str, usize)> {
        self.known.borrow_mut().push(key.to_string());
        self.values.get(key).map(|(value, line)| (value.as_str(), *line))
    }

    pub(super) fn needed(&self, key: &str) -> Result<(&str, usize), Mistake> {
        self.text(key).ok_or_else(|| Mistake {
            line: self.line,
            what: format!("this [SESSION] has no {key}, and [DEFAULT] has none either"),
        })
    }

    pub(super) fn parsed<T>(
        &self,
        key: &str,
        allowed: &str,
        parse: impl Fn(&str) -> Option<T>,
    ) -> Result<Option<T>, Mistake> {
        let Some((value, line)) = self.text(key) else {
            return Ok(None);
        };
        let wrong = || Mistake {
            line,
            what: format!("{key}={value}: must be {allowed}"),
        };
        parse(value).map(Some).ok_or_else(wrong)
    }

    pub(super) fn flag(&self, key: &str, default: bool) -> Result<bool, Mistake> {
        let parse = |text: &str| match text {
            "Y" | "y" => Some(true),
            "N" | "n" => Some(false),
            _ => None,
        };
        Ok(self.parsed(key, "Y or N", parse)?.unwrap_or(default))
    }

    /// The first key that was not asked for and is not one of `passed_over`.
    pub(super) fn unknown_key(&self, passed_over: impl Fn(&str) -> bool) -> Option<(&str, usize)> {
        let known = self.known.borrow();
        let is_known = |key: &str| known.iter().any(|k| k == key) || passed_over(key);
        let (key, (_, line)) = self.values.iter().find(|(key, _)| !is_known(key))?;
        Some((key, *line))
    }

    pub(super) fn seconds(&self, key: &str, default_s: u64) -> Result<u64, Mistake> {
        let parse = |text: &str| text.parse().ok().filter(|s| *s <= 86_400);
        let seconds = self.parsed(key, "seconds, 0 to 86400", parse)?;
        Ok(seconds.unwrap_or(default_s) * Nanos::SECOND)
    }
}

/// Every `[SESSION]` with the lines of `[DEFAULT]` beneath its own.
pub(super) fn sections(text: &str) -> Result<Vec<Section>, Mistake> {
    let (mut default, mut sessions) = (Section::default(), Vec::<Section>::new());
    let mut in_default = None;
    for (number, line) in text.lines().enumerate() {
        let (line, number) = (line.trim(), number + 1);
        let wrong = |what: String| Mistake { line: number, what };
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        match line.to_ascii_uppercase().as_str() {
            "[DEFAULT]" => {
                in_default = Some(true);
                continue;
            }
            "[SESSION]" => {
                in_default = Some(false);
                sessions.push(Section {
                    line: number,
                    ..Section::default()
                });
                continue;
            }
            _ => {}
        }
        let (key, value) = line
            .split_once('=')
            .ok_or_else(|| wrong(format!("{line:?} is neither Key=Value nor a section")))?;
        let section = match in_default {
            Some(true) => &mut default,
            Some(false) => sessions.last_mut().unwrap_or(&mut default),
            None => return Err(wrong("a value before the first [DEFAULT] or [SESSION]".into())),
        };
        let value = (value.trim().to_string(), number);
        if section.values.insert(key.trim().to_string(), value).is_some() {
            return Err(wrong(format!("{} a second time", key.trim())));
        }
    }
    for session in &mut sessions {
        for (key, value) in &default.values {
            session.values.entry(key.clone()).or_insert_with(|| value.clone());
        }
    }
    Ok(sessions)
}
