//! The audit log beside a file of volatilities, `FILE.log`: one JSON object a line for every edit, who made
//! it and when, what became of the volatility at the money, and how the text changed, so that it can be taken
//! back.

use std::io::Write;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use tickwire_runtime::files;

use tickwire_console::failure::Failure;

/// How a text was changed: at one place, these bytes for those.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Patch {
    pub at: usize,
    pub from: String,
    pub to: String,
}

impl Patch {
    /// What makes `new` of `old`.
    pub(super) fn between(old: &str, new: &str) -> Patch {
        let same = old.bytes().zip(new.bytes()).take_while(|(a, b)| a == b).count();
        let mut start = same;
        while !(old.is_char_boundary(start) && new.is_char_boundary(start)) {
            start -= 1;
        }
        let (a, b) = (&old[start..], &new[start..]);
        let mut end = a
            .bytes()
            .rev()
            .zip(b.bytes().rev())
            .take_while(|(a, b)| a == b)
            .count();
        while !(a.is_char_boundary(a.len() - end) && b.is_char_boundary(b.len() - end)) {
            end -= 1;
        }
        Patch {
            at: start,
            from: a[..a.len() - end].to_string(),
            to: b[..b.len() - end].to_string(),
        }
    }

    /// The text before, `None` if this is not what the change made.
    pub(super) fn undo(&self, text: &str) -> Option<String> {
        let (before, rest) = text.split_at_checked(self.at)?;
        let after = rest.strip_prefix(&self.to[..])?;
        Some([before, &self.from, after].concat())
    }
}

/// A line of the log.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Record {
    /// Counts up by 1.
    pub version: u64,
    /// UTC.
    pub at: String,
    pub who: String,
    /// As it was typed.
    pub edit: String,
    /// Of the edited expiry: its name, and the volatility at the money before and after.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub atm: Option<(String, f64, f64)>,
    /// The version that this one takes back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undoes: Option<u64>,
    pub patch: Patch,
}

/// The log of a file: where it is, and how far it has come.
#[derive(Clone, Debug, Default)]
pub(super) struct Log {
    path: Option<PathBuf>,
    /// Of the last line.
    pub version: u64,
}

/// The log's path: the file's with `.log` behind it.
fn path_of(file: &Path) -> PathBuf {
    let mut path = file.as_os_str().to_owned();
    path.push(".log");
    path.into()
}

/// Every line of a file's log, oldest first; none without a log.
///
/// # Errors
/// It cannot be read, or a line is none of ours.
pub(super) fn read(file: &Path) -> Result<Vec<Record>, Failure> {
    let path = path_of(file);
    let shown = path.display();
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(e) => return Err(Failure::system(format!("cannot read {shown}: {e}"))),
    };
    text.lines()
        .enumerate()
        .map(|(at, line)| {
            serde_json::from_str(line).map_err(|e| {
                Failure::check(format!(
                    "{shown}: line {}: not a line of this log: {e}; put the log away to begin a new one",
                    at + 1
                ))
            })
        })
        .collect()
}

/// Versions of edits that were not taken back, oldest first, with their changes.
pub(super) fn standing(records: &[Record]) -> Vec<(u64, Patch)> {
    let mut standing = Vec::new();
    for record in records {
        match record.undoes {
            Some(_) => drop(standing.pop()),
            None => standing.push((record.version, record.patch.clone())),
        }
    }
    standing
}

impl Log {
    pub(super) fn open(file: &Path) -> Result<Log, Failure> {
        let version = read(file)?.last().map_or(0, |record| record.version);
        Ok(Log {
            path: Some(path_of(file)),
            version,
        })
    }

    /// Adds a line.
    pub(super) fn append(&mut self, record: &Record) -> Result<(), String> {
        self.version = record.version;
        let Some(path) = &self.path else {
            return Ok(());
        };
        let line = serde_json::to_string(record).map_err(|e| e.to_string())? + "\n";
        let written = files::append(path).and_then(|mut file| file.write_all(line.as_bytes()));
        written.map_err(|e| format!("cannot write {}: {e}", path.display()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_patch_undone_gives_the_text_before() {
        for (old, new) in [
            ("a = 0.5\nb = 1\n", "a = 0.55\nb = 1\n"),
            ("a = 1\n", "a = 1\nc = 2\n"),
            ("abab", "ab"),
            ("", "x"),
            ("x", ""),
            ("same", "same"),
            ("# π\n", "# ρ\n"),
            ("aaa", "aaaa"),
        ] {
            let patch = Patch::between(old, new);
            assert_eq!(patch.undo(new).as_deref(), Some(old), "{old:?} {new:?} {patch:?}");
        }
        let patch = Patch::between("a = 1", "a = 2");
        assert_eq!((patch.undo("a = 3"), patch.undo("")), (None, None));
    }
}
