//! What was used of the venues' daily quotas, kept in a file: a venue counts on when the daemon is started
//! again.
//!
//! A feed thread leaves its counts in a [`Cell`] ten times a second; the control thread writes the file when
//! they have grown beyond what it says. While the daemon runs the file is ahead of the counts, by more than
//! can be asked for until it is written again, so that a daemon that is killed never forgets a request; its
//! normal end leaves the counts themselves.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tickwire_feed::DayUse;
use tickwire_runtime::files;

use tickwire_console::warn;

/// The file's name in the daemon's folder.
pub(crate) const QUOTA_FILE: &str = "quotas";
/// The file says so many more requests when it is written, and half as many at least: more than the fastest
/// venue takes (320 a second) until it is written again (150 ms).
const REQUESTS_AHEAD: u32 = 400;
/// The same of snapshots.
const SNAPSHOTS_AHEAD: u32 = 10;
/// Bits of a number of requests or snapshots in a cell.
const COUNT_BITS: u32 = 24;

/// The counts of one channel, shared by two threads.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cell(Arc<AtomicU64>);

impl Cell {
    pub(crate) fn store(&self, used: DayUse) {
        let most = (1 << COUNT_BITS) - 1;
        let counts = u64::from(used.requests.min(most)) << COUNT_BITS | u64::from(used.snapshots.min(most));
        self.0.store(
            u64::from(used.day & 0xFFFF) << (2 * COUNT_BITS) | counts,
            Ordering::Relaxed,
        );
    }

    pub(crate) fn load(&self) -> DayUse {
        let word = self.0.load(Ordering::Relaxed);
        let count = |shift: u32| (word >> shift) as u32 & ((1 << COUNT_BITS) - 1);
        DayUse {
            day: (word >> (2 * COUNT_BITS)) as u32,
            requests: count(COUNT_BITS),
            snapshots: count(0),
        }
    }
}

/// The file.
pub(crate) struct QuotaFile {
    path: PathBuf,
    /// What it says, by channel.
    said: HashMap<String, DayUse>,
    has_failed: bool,
}

impl QuotaFile {
    /// What an earlier run left; nothing if there is no file. Lines that cannot be read are said and count
    /// for nothing.
    pub(crate) fn open(path: PathBuf) -> QuotaFile {
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => String::new(),
            Err(e) => {
                warn(format_args!(
                    "cannot read {}: {e}; quotas of requests are counted from nothing",
                    path.display()
                ));
                String::new()
            }
        };
        let mut said = HashMap::new();
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            match parse(line) {
                Some((name, used)) => _ = said.insert(name, used),
                None => warn(format_args!(
                    "{}: no quota in {line:?}; it is left out",
                    path.display()
                )),
            }
        }
        QuotaFile {
            path,
            said,
            has_failed: false,
        }
    }

    /// What a channel used before.
    pub(crate) fn used(&self, channel: &str) -> DayUse {
        self.said.get(channel).copied().unwrap_or_default()
    }

    /// Writes the file if a channel has used more than it says, ahead of what is used.
    pub(crate) fn keep<'c>(&mut self, channels: impl Iterator<Item = (&'c str, DayUse)> + Clone) {
        let is_behind = |(name, used): (&str, DayUse)| {
            let said = self.used(name);
            used.requests + used.snapshots > 0
                && (used.day > said.day
                    || said.requests < used.requests + REQUESTS_AHEAD / 2
                    || said.snapshots < used.snapshots + SNAPSHOTS_AHEAD / 2)
        };
        if channels.clone().any(is_behind) {
            let ahead = |(name, used): (&'c str, DayUse)| {
                let more = |count: u32, ahead| if count > 0 { count + ahead } else { 0 };
                let used = DayUse {
                    day: used.day,
                    requests: more(used.requests, REQUESTS_AHEAD),
                    snapshots: more(used.snapshots, SNAPSHOTS_AHEAD),
                };
                (name, used)
            };
            self.write(channels.map(ahead));
        }
    }

    /// Writes what was used, exactly: nothing is asked for any more.
    pub(crate) fn close<'c>(mut self, channels: impl Iterator<Item = (&'c str, DayUse)> + Clone) {
        if channels
            .clone()
            .any(|(_, used)| used.requests + used.snapshots > 0)
        {
            self.write(channels);
        }
    }

    fn write<'c>(&mut self, channels: impl Iterator<Item = (&'c str, DayUse)>) {
        let mut text = String::from("# day since 1970 from 07:00 UTC, requests, snapshots, channel\n");
        for (name, used) in channels {
            text += &format!("{} {} {} {name}\n", used.day, used.requests, used.snapshots);
            self.said.insert(name.to_string(), used);
        }
        let written = files::replace(&self.path, text, false);
        if let Err(e) = &written
            && !self.has_failed
        {
            warn(format_args!(
                "cannot write {}: {e}; after a restart quotas of requests are counted from what it says",
                self.path.display()
            ));
        }
        self.has_failed = written.is_err();
    }
}

fn parse(line: &str) -> Option<(String, DayUse)> {
    let mut words = line.splitn(4, ' ');
    let mut number = || words.next()?.parse().ok();
    let (day, requests, snapshots) = (number()?, number()?, number()?);
    let name = words.next().filter(|name| !name.is_empty())?;
    let used = DayUse {
        day,
        requests,
        snapshots,
    };
    Some((name.to_string(), used))
}

/// Where the file is.
pub(crate) fn path_in(folder: &Path) -> PathBuf {
    folder.join(QUOTA_FILE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_killed_daemon_forgets_no_request_and_one_that_ends_counts_exactly() {
        let folder = std::env::temp_dir().join(format!("tickwire-quota-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = path_in(&folder);
        let used = |requests, snapshots| DayUse {
            day: 20_780,
            requests,
            snapshots,
        };
        let cell = Cell::default();
        cell.store(used(9_000, 3));
        assert_eq!(cell.load(), used(9_000, 3));
        let mut file = QuotaFile::open(path.clone());
        assert_eq!(file.used("nyse 1"), DayUse::default());
        file.keep([("nyse 1", DayUse::default())].into_iter());
        assert!(!path.exists(), "nothing was used");
        for requests in 1..2_000 {
            file.keep([("nyse 1", used(requests, 3))].into_iter());
            // As after kill -9 now.
            let after = QuotaFile::open(path.clone()).used("nyse 1");
            assert!(
                after.requests >= requests + REQUESTS_AHEAD / 2,
                "{requests}: {after:?}"
            );
        }
        file.close([("nyse 1", used(1_999, 3))].into_iter());
        assert_eq!(QuotaFile::open(path.clone()).used("nyse 1"), used(1_999, 3));
        std::fs::write(&path, "nonsense\n20780 7 1 bzx 1\n").unwrap();
        let file = QuotaFile::open(path);
        assert_eq!(
            (file.used("bzx 1"), file.used("nyse 1")),
            (used(7, 1), DayUse::default())
        );
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
