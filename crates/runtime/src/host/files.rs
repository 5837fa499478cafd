//! Reading `/proc` and `/sys`, or a copy of them.

use std::fs;
use std::path::{Path, PathBuf};

/// The files under a root folder.
pub(super) struct Files {
    root: PathBuf,
}

impl Files {
    pub(super) fn new(root: &Path) -> Files {
        Files {
            root: root.to_owned(),
        }
    }

    /// A file without the white space around it; `None` if it cannot be read.
    pub(super) fn text(&self, path: &str) -> Option<String> {
        fs::read_to_string(self.root.join(path))
            .ok()
            .map(|text| text.trim().to_owned())
    }

    /// A file that holds a number.
    pub(super) fn number(&self, path: &str) -> Option<i64> {
        self.text(path)?.parse().ok()
    }

    /// Whether there is such a file or folder.
    pub(super) fn has(&self, path: &str) -> bool {
        self.root.join(path).exists()
    }

    /// Names in a folder, sorted, numbers by their value.
    pub(super) fn names(&self, folder: &str) -> Vec<String> {
        let entries = fs::read_dir(self.root.join(folder))
            .into_iter()
            .flatten()
            .flatten();
        let mut names: Vec<String> = entries.filter_map(|e| e.file_name().into_string().ok()).collect();
        names.sort_by_key(|name| {
            let digits = name.trim_start_matches(|c: char| !c.is_ascii_digit());
            (digits.parse::<u64>().unwrap_or(0), name.clone())
        });
        names
    }

    /// The word in brackets of `always [madvise] never`.
    pub(super) fn choice(&self, path: &str) -> Option<String> {
        let text = self.text(path)?;
        let (_, after) = text.split_once('[')?;
        after.split_once(']').map(|(chosen, _)| chosen.to_owned())
    }

    pub(super) fn memory(&self) -> Option<String> {
        let text = self.text("proc/meminfo")?;
        let total = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
        let kib: u64 = total.trim().strip_suffix("kB")?.trim().parse().ok()?;
        Some(format!("{:.1} GiB", kib as f64 / f64::from(1 << 20)))
    }

    /// Running processes on average over one minute, and right now.
    pub(super) fn load(&self) -> Option<String> {
        let text = self.text("proc/loadavg")?;
        let mut words = text.split_whitespace();
        let (minute, running) = (words.next()?, words.nth(2)?);
        Some(format!("{minute} (1 minute), {running} running now"))
    }

    /// Cores as the kernel lists them, `0-3,8`.
    pub(super) fn cores(&self, path: &str) -> Option<Vec<usize>> {
        parse_list(&self.text(path)?)
    }
}

/// `0-3,8` as numbers; an empty list is one.
pub(super) fn parse_list(text: &str) -> Option<Vec<usize>> {
    let mut cores = Vec::new();
    for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (usize, usize) = (first.parse().ok()?, last.parse().ok()?);
        // No kernel has more, and a range is not to fill the memory.
        if first > last || last >= 1 << 16 {
            return None;
        }
        cores.extend(first..=last);
    }
    Some(cores)
}

/// Cores as the kernel's hexadecimal masks name them: 32 bits a word, the highest first.
pub(super) fn mask(cores: &[usize]) -> String {
    let words = cores.iter().max().map_or(1, |last| last / 32 + 1);
    let word = |at: usize| {
        cores
            .iter()
            .filter(|core| *core / 32 == at)
            .fold(0u32, |bits, core| bits | 1 << (core % 32))
    };
    let words: Vec<String> = (0..words).rev().map(|at| format!("{:08x}", word(at))).collect();
    words.join(",")
}

/// The cores of such a mask.
pub(super) fn parse_mask(text: &str) -> Option<Vec<usize>> {
    let mut cores = Vec::new();
    for (at, word) in text.trim().rsplit(',').enumerate() {
        let bits = u32::from_str_radix(word, 16).ok()?;
        cores.extend(
            (0..32)
                .filter(|bit| bits >> bit & 1 == 1)
                .map(|bit| at * 32 + bit),
        );
    }
    Some(cores)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_and_masks_are_read_as_the_kernel_writes_them() {
        assert_eq!(parse_list("0-2,5\n"), Some(vec![0, 1, 2, 5]));
        assert_eq!(parse_list(""), Some(vec![]));
        for wrong in ["3-1", "x", "0-99999999", "-", "1-"] {
            assert_eq!(parse_list(wrong), None, "{wrong}");
        }
        assert_eq!(mask(&[0, 1]), "00000003");
        assert_eq!(mask(&[33, 0]), "00000002,00000001");
        assert_eq!(mask(&[]), "00000000");
        assert_eq!(parse_mask("00000002,00000001"), Some(vec![0, 33]));
        assert_eq!(parse_mask("3"), Some(vec![0, 1]));
        assert_eq!(parse_mask("g"), None);
    }
}
