//! Changing settings, with a journal by which every change is undone, also after this process is gone.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use super::checks::Write;
use crate::files;

/// A change that was made.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Change {
    /// From the root folder.
    pub path: String,
    /// What was in the file.
    pub before: String,
    /// What is in it since, as the kernel shows it.
    pub after: String,
}

/// How one file went.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// It holds what was wanted.
    Done(Change),
    /// It could not be written, or did not take the value.
    Refused {
        /// Which.
        path: String,
        /// Why.
        why: String,
    },
    /// Somebody has changed it since: it was left alone.
    Changed {
        /// Which.
        path: String,
        /// What is in it.
        now: String,
    },
}

/// The file of changes, a line each: path, before, after, by tabs. It is written before a change is made.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
}

/// The journal cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// It cannot be written.
    #[error("cannot write {path}: {source}; give another file with --journal")]
    Write {
        /// Which.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// It cannot be read.
    #[error("cannot read {path}: {source}; nothing was tuned, or the journal is elsewhere (--journal)")]
    Read {
        /// Which.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A line is not one of a journal.
    #[error(
        "{path}, line {line}: no path, value and value by tabs: this is no journal of `tickwire host tune`"
    )]
    Line {
        /// Which file.
        path: PathBuf,
        /// From 1.
        line: usize,
    },
}

impl Journal {
    /// At this path; it is made when the first change is.
    pub fn at(path: &Path) -> Journal {
        Journal {
            path: path.to_owned(),
        }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn append(&self, write: &Write) -> Result<(), JournalError> {
        let failed = |source| JournalError::Write {
            path: self.path.clone(),
            source,
        };
        if let Some(folder) = self.path.parent() {
            files::create_folders(folder).map_err(failed)?;
        }
        let mut file = files::append(&self.path).map_err(failed)?;
        let line = format!("{}\t{}\t{}\n", write.path, write.before, write.after);
        file.write_all(line.as_bytes())
            .and_then(|()| file.sync_data())
            .map_err(failed)
    }

    fn read(&self) -> Result<Vec<Write>, JournalError> {
        let text = fs::read_to_string(&self.path).map_err(|source| JournalError::Read {
            path: self.path.clone(),
            source,
        })?;
        let parse = |(at, line): (usize, &str)| match line.split('\t').collect::<Vec<_>>()[..] {
            // Nothing outside /proc and /sys is written, whatever the file says.
            [path, before, after]
                if (path.starts_with("proc/") || path.starts_with("sys/"))
                    && !path.split('/').any(|p| p == "..") =>
            {
                Ok(Write {
                    path: path.into(),
                    before: before.into(),
                    after: after.into(),
                })
            }
            _ => Err(JournalError::Line {
                path: self.path.clone(),
                line: at + 1,
            }),
        };
        text.lines().enumerate().map(parse).collect()
    }
}

/// What a file of the kernel holds: for `always [madvise] never` the chosen word.
fn held(path: &Path) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    let text = text.trim();
    let chosen = text.split_once('[').and_then(|(_, after)| after.split_once(']'));
    Some(chosen.map_or(text, |(word, _)| word).to_owned())
}

fn put(root: &Path, path: &str, value: &str) -> Outcome {
    let file = root.join(path);
    let before = held(&file).unwrap_or_default();
    // Files of the kernel are there or not: none is made. Truncating means nothing to them, and much to
    // copies of them.
    let written = File::options()
        .write(true)
        .truncate(true)
        .open(&file)
        .and_then(|mut f| f.write_all(value.as_bytes()));
    let now = held(&file).unwrap_or_default();
    match written {
        Err(e) => Outcome::Refused {
            path: path.into(),
            why: e.to_string(),
        },
        Ok(()) if is_same(&now, value) => Outcome::Done(Change {
            path: path.into(),
            before,
            after: now,
        }),
        Ok(()) => Outcome::Refused {
            path: path.into(),
            why: format!("it took {value:?} and holds {now:?}"),
        },
    }
}

/// The kernel writes masks and lists with other leading zeros and separators than it was given.
fn is_same(a: &str, b: &str) -> bool {
    let plain = |text: &str| {
        let text: String = text.chars().filter(|c| *c != ',' && !c.is_whitespace()).collect();
        let bare = text.trim_start_matches('0').to_owned();
        if bare.is_empty() && !text.is_empty() {
            "0".into()
        } else {
            bare
        }
    };
    plain(a) == plain(b)
}

/// Makes the changes, each after it is in the journal.
pub fn apply(root: &Path, writes: &[Write], journal: &Journal) -> Result<Vec<Outcome>, JournalError> {
    let mut outcomes = Vec::new();
    for write in writes {
        journal.append(write)?;
        outcomes.push(put(root, &write.path, &write.after));
    }
    Ok(outcomes)
}

/// Takes the changes of a journal back, the last first, and removes it when all are. A file that holds
/// neither what was written nor what was there before was changed by somebody else, and is left alone.
pub fn undo(root: &Path, journal: &Journal) -> Result<Vec<Outcome>, JournalError> {
    let mut outcomes = Vec::new();
    for write in journal.read()?.iter().rev() {
        let now = held(&root.join(&write.path)).unwrap_or_default();
        outcomes.push(if is_same(&now, &write.before) {
            // The change was refused, or is taken back already.
            Outcome::Done(Change {
                path: write.path.clone(),
                before: now.clone(),
                after: now,
            })
        } else if is_same(&now, &write.after) {
            put(root, &write.path, &write.before)
        } else {
            Outcome::Changed {
                path: write.path.clone(),
                now,
            }
        });
    }
    if outcomes.iter().all(|o| matches!(o, Outcome::Done(_))) {
        fs::remove_file(&journal.path).map_err(|source| JournalError::Write {
            path: journal.path.clone(),
            source,
        })?;
    }
    Ok(outcomes)
}

#[cfg(test)]
mod tests {
    use super::super::tests::Tree;
    use super::super::{Hot, Verdict, check_all};
    use super::*;

    const GOVERNOR: &str = "sys/devices/system/cpu/cpu1/cpufreq/scaling_governor";
    const SWAPPINESS: &str = "proc/sys/vm/swappiness";

    fn machine(name: &str) -> Tree {
        Tree::new(
            name,
            &[
                ("sys/devices/system/cpu/online", "0-1\n"),
                (GOVERNOR, "powersave\n"),
                (SWAPPINESS, "60\n"),
                ("proc/swaps", "Filename Type\n/swap file\n"),
                ("proc/irq/7/smp_affinity_list", "0-1\n"),
                ("proc/irq/default_smp_affinity", "3\n"),
            ],
        )
    }

    fn harmful(tree: &Tree) -> Vec<Write> {
        let findings = check_all(&tree.0, &Hot::choose(&tree.0, None));
        let harmful = findings.into_iter().filter(|f| f.verdict == Verdict::Harmful);
        harmful.flat_map(|f| f.writes).collect()
    }

    #[test]
    fn what_was_changed_is_good_afterwards_and_comes_back() {
        let tree = machine("tune");
        let text = |path: &str| {
            fs::read_to_string(tree.0.join(path))
                .expect("read")
                .trim()
                .to_owned()
        };
        let journal = Journal::at(&tree.0.join("run/journal"));
        let writes = harmful(&tree);
        assert_eq!(writes.len(), 4, "{writes:?}");
        let outcomes = apply(&tree.0, &writes, &journal).expect("a journal");
        assert!(
            outcomes.iter().all(|o| matches!(o, Outcome::Done(_))),
            "{outcomes:?}"
        );
        assert_eq!(text(GOVERNOR), "performance");
        assert_eq!(harmful(&tree), []);

        let outcomes = undo(&tree.0, &journal).expect("read");
        assert!(
            outcomes.iter().all(|o| matches!(o, Outcome::Done(_))),
            "{outcomes:?}"
        );
        assert_eq!(
            (text(GOVERNOR), text(SWAPPINESS)),
            ("powersave".into(), "60".into())
        );
        assert!(matches!(undo(&tree.0, &journal), Err(JournalError::Read { .. })));
    }

    #[test]
    fn what_somebody_else_changed_since_is_left_alone() {
        let tree = machine("changed");
        let journal = Journal::at(&tree.0.join("journal"));
        let writes = harmful(&tree);
        apply(&tree.0, &writes, &journal).expect("a journal");
        fs::write(tree.0.join(SWAPPINESS), "33\n").expect("written");
        let outcomes = undo(&tree.0, &journal).expect("read");
        let changed: Vec<_> = outcomes
            .iter()
            .filter(|o| matches!(o, Outcome::Changed { .. }))
            .collect();
        assert_eq!(changed.len(), 1, "{outcomes:?}");
        assert!(journal.path().exists(), "it is kept for another try");
    }

    #[test]
    fn a_journal_writes_nowhere_but_in_the_kernels_files() {
        let tree = machine("hostile");
        let path = tree.0.join("journal");
        for line in [
            "etc/passwd\ta\tb",
            "sys/../etc/passwd\ta\tb",
            "proc/x",
            "/proc/x\t1\t2",
        ] {
            fs::write(&path, line).expect("written");
            let refused = undo(&tree.0, &Journal::at(&path));
            assert!(
                matches!(refused, Err(JournalError::Line { line: 1, .. })),
                "{line}: {refused:?}"
            );
        }
    }

    #[test]
    fn a_file_that_is_not_there_is_refused_and_not_made() {
        let tree = machine("missing");
        let write = Write {
            path: "proc/sys/nothing".into(),
            before: "0".into(),
            after: "1".into(),
        };
        let outcomes = apply(&tree.0, &[write], &Journal::at(&tree.0.join("journal"))).expect("a journal");
        assert!(matches!(outcomes[..], [Outcome::Refused { .. }]), "{outcomes:?}");
        assert!(!tree.0.join("proc/sys/nothing").exists());
    }

    #[test]
    fn masks_and_lists_are_compared_by_what_they_mean() {
        for (a, b, same) in [
            ("00000000,00000003", "3", true),
            ("0", "0", true),
            ("performance", "powersave", false),
            ("0-1", "0-1", true),
            ("1", "0", false),
            ("10", "1", false),
        ] {
            assert_eq!(is_same(a, b), same, "{a} {b}");
        }
    }
}
