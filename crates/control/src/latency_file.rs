//! `latency_<feed>.txt`: latencies per message type as counts per range of nanoseconds, in text.
//!
//! Written by the control thread of `tickwire feed` from the histograms in shared memory, read by
//! `tickwire latency`. The format, with an example, stands in `docs/latency-files.md`:
//!
//! ```text
//! # tickwire latency 1
//! # feed: bzx
//! # type low_ns high_ns count
//! 0x21 96 97 1022
//! # type sum_ns min_ns max_ns count
//! 0x21 98623 96 97 1022
//! ```
//! A line of four words is a range, both ends included; a line of five is the summary of a type. Lines that
//! begin with `#` are for people, but for the first, which says the version, and `# feed:`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};

/// The first line of every file.
const FIRST_LINE: &str = "# tickwire latency 1";
/// Every message type together: packet in memory to book visible.
pub const ALL: &str = "all";
/// Every message type together: packet in memory to consolidated book visible.
pub const SUPER: &str = "super";
/// Every packet that the network card has stamped: on the wire to the hook of the driver.
pub const WIRE: &str = "wire";
/// Every packet that came from the hook of the driver: from there to packet in memory.
pub const HOOK: &str = "hook";
/// Every packet that came by a socket whose stamps were asked for: the kernel's receive time to packet in
/// memory.
pub const KERNEL: &str = "kernel";
/// Every order: packet in memory to the decision.
pub const DECIDED: &str = "decided";
/// Every order: the decision to the order being sent.
pub const SENT: &str = "sent";
/// Every order: the decision to the network driver having the order, which is before the send has returned.
pub const DRIVER: &str = "driver";
/// Every order: the decision to the card having sent it.
pub const CARD: &str = "card";
/// Every order: its packet on the wire to the order on the wire, both by the card's clock.
pub const WIRE_TO_WIRE: &str = "wire_to_wire";
/// Every order: the earliest time of its packet that is known to the order being sent.
pub const TOTAL: &str = "total";
/// What is no message type but a part of the way, in the order of the way.
pub const PARTS: [&str; 11] = [
    WIRE,
    HOOK,
    KERNEL,
    ALL,
    SUPER,
    DECIDED,
    DRIVER,
    SENT,
    CARD,
    TOTAL,
    WIRE_TO_WIRE,
];

/// Latencies of one message type, or of a part of the way ([`PARTS`]).
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Latencies {
    /// How many by range of nanoseconds, both ends included; no range is empty.
    pub ranges: BTreeMap<(u64, u64), u64>,
    /// Nanoseconds, all together.
    pub sum: u64,
    /// The least, as it was measured; 0 when there is none.
    pub min: u64,
    /// The most, as it was measured.
    pub max: u64,
    /// How many.
    pub count: u64,
}

impl Latencies {
    /// One more, in nanoseconds.
    pub fn record(&mut self, ns: u64) {
        self.min = if self.count == 0 { ns } else { self.min.min(ns) };
        self.max = self.max.max(ns);
        self.sum = self.sum.saturating_add(ns);
        self.count += 1;
        // Below 64 a range is a nanosecond wide, above that 1/32 of its power of two.
        let width = 1 << ns.checked_ilog2().unwrap_or(0).saturating_sub(5);
        let low = ns - ns % width;
        *self.ranges.entry((low, low + (width - 1))).or_default() += 1;
    }

    /// Adds those of another channel or file.
    pub fn merge(&mut self, other: &Latencies) {
        if other.count == 0 {
            return;
        }
        self.min = if self.count == 0 {
            other.min
        } else {
            self.min.min(other.min)
        };
        self.max = self.max.max(other.max);
        self.sum = self.sum.saturating_add(other.sum);
        self.count += other.count;
        for (range, count) in &other.ranges {
            *self.ranges.entry(*range).or_default() += count;
        }
    }
}

/// What a file holds.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct LatencyFile {
    /// The feed's name.
    pub feed: String,
    /// For people: what was measured, when, on what.
    pub remarks: Vec<String>,
    /// By message type as the venue writes it.
    pub types: BTreeMap<String, Latencies>,
}

impl LatencyFile {
    /// Where the file of a feed is, within a folder. What no file name should hold becomes `_`.
    pub fn path(folder: &Path, feed: &str) -> PathBuf {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "-.".contains(c);
        let name: String = feed.chars().map(|c| if is_plain(c) { c } else { '_' }).collect();
        folder.join(format!("latency_{name}.txt"))
    }

    /// The file's text.
    pub fn to_text(&self) -> String {
        let mut text = format!("{FIRST_LINE}\n# feed: {}\n", self.feed);
        for remark in &self.remarks {
            let _ = writeln!(text, "# {}", remark.replace('\n', " "));
        }
        text += "# type low_ns high_ns count\n";
        for (name, latencies) in &self.types {
            for ((low, high), count) in &latencies.ranges {
                let _ = writeln!(text, "{name} {low} {high} {count}");
            }
        }
        text += "# type sum_ns min_ns max_ns count\n";
        for (name, l) in &self.types {
            let _ = writeln!(text, "{name} {} {} {} {}", l.sum, l.min, l.max, l.count);
        }
        text
    }

    /// Writes it whole beside its place and moves it there: who reads meanwhile reads the file before.
    ///
    /// # Errors
    /// What the file system says.
    pub fn write(&self, folder: &Path) -> io::Result<PathBuf> {
        let path = LatencyFile::path(folder, &self.feed);
        tickwire_runtime::files::replace(&path, self.to_text(), false)?;
        Ok(path)
    }

    /// Reads the text of a file.
    ///
    /// # Errors
    /// What is wrong with it, with the line's number.
    pub fn parse(text: &str) -> Result<LatencyFile, String> {
        let mut lines = text.lines().enumerate();
        if lines.next().map(|(_, line)| line.trim_end()) != Some(FIRST_LINE) {
            return Err(format!(
                "line 1: not {FIRST_LINE:?}; this is no latency file of this version"
            ));
        }
        let mut file = LatencyFile::default();
        let mut summaries = BTreeMap::new();
        for (at, line) in lines {
            let wrong = |what: &str| format!("line {}: {what}: {line:?}", at + 1);
            if let Some(remark) = line.strip_prefix('#') {
                let remark = remark.trim();
                match remark.strip_prefix("feed:") {
                    Some(feed) => file.feed = feed.trim().into(),
                    None if remark.starts_with("type ") => {}
                    None => file.remarks.push(remark.into()),
                }
                continue;
            }
            let words: Vec<&str> = line.split_ascii_whitespace().collect();
            let Some((name, numbers)) = words.split_first() else {
                continue;
            };
            let numbers: Vec<u64> = numbers
                .iter()
                .map(|n| n.parse())
                .collect::<Result<_, _>>()
                .map_err(|_| wrong("not a number of nanoseconds or a count"))?;
            match numbers[..] {
                [low, high, count] if low <= high && count > 0 => {
                    let of_type: &mut Latencies = file.types.entry((*name).into()).or_default();
                    *of_type.ranges.entry((low, high)).or_default() += count;
                }
                [sum, min, max, count] => {
                    summaries.insert((*name).to_string(), [sum, min, max, count]);
                }
                _ => {
                    return Err(wrong(
                        "neither `type low_ns high_ns count` nor `type sum_ns min_ns max_ns count`",
                    ));
                }
            }
        }
        for (name, [sum, min, max, count]) in summaries {
            let of_type = file.types.entry(name.clone()).or_default();
            let counted: u64 = of_type.ranges.values().sum();
            if counted != count {
                return Err(format!(
                    "type {name}: its ranges hold {counted}, its summary says {count}; the file is damaged"
                ));
            }
            (of_type.sum, of_type.min, of_type.max, of_type.count) = (sum, min, max, count);
        }
        match file
            .types
            .iter()
            .find(|(_, l)| l.count == 0 && !l.ranges.is_empty())
        {
            Some((name, _)) => Err(format!("type {name}: no summary; the file was cut short")),
            None => Ok(file),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> LatencyFile {
        let mut file = LatencyFile {
            feed: "bzx".into(),
            remarks: vec!["packet in memory to book visible".into()],
            types: BTreeMap::new(),
        };
        let latencies = Latencies {
            ranges: [((96, 99), 3), ((128, 131), 1)].into(),
            sum: 96 + 97 + 99 + 130,
            min: 96,
            max: 130,
            count: 4,
        };
        file.types.insert("0x21".into(), latencies.clone());
        file.types.insert(ALL.into(), latencies);
        file
    }

    #[test]
    fn what_is_written_reads_back() {
        let file = sample();
        assert_eq!(LatencyFile::parse(&file.to_text()), Ok(file));
    }

    #[test]
    fn merging_adds_ranges_and_keeps_the_extremes() {
        let mut all = Latencies::default();
        let file = sample();
        all.merge(&file.types["0x21"]);
        all.merge(&Latencies {
            ranges: [((96, 99), 1)].into(),
            sum: 98,
            min: 98,
            max: 98,
            count: 1,
        });
        all.merge(&Latencies::default());
        assert_eq!(
            (all.min, all.max, all.count, all.ranges[&(96, 99)]),
            (96, 130, 5, 4)
        );
    }

    #[test]
    fn what_is_recorded_stands_in_ranges_that_do_not_overlap() {
        let mut latencies = Latencies::default();
        for ns in [0, 63, 64, 65, 66, 127, 128, 131, 1_000_000, u64::MAX] {
            latencies.record(ns);
        }
        let ranges: Vec<(u64, u64)> = latencies.ranges.keys().copied().collect();
        assert!(ranges.windows(2).all(|pair| pair[0].1 < pair[1].0), "{ranges:?}");
        assert_eq!(latencies.ranges[&(64, 65)], 2);
        assert_eq!(latencies.ranges[&(128, 131)], 2);
        assert_eq!((latencies.min, latencies.max, latencies.count), (0, u64::MAX, 10));
        let file = LatencyFile {
            feed: "x".into(),
            remarks: Vec::new(),
            types: [(SENT.to_string(), latencies)].into(),
        };
        assert_eq!(LatencyFile::parse(&file.to_text()), Ok(file));
    }

    #[test]
    fn damage_is_said_with_its_line() {
        let text = sample().to_text();
        let cases = [
            (String::new(), "line 1"),
            (text.replace("96 99 3", "99 96 3"), "line 5"),
            (text.replace("96 99 3", "96 x 3"), "line 5"),
            (
                text.replace("96 99 3", "96 99 2"),
                "ranges hold 3, its summary says 4",
            ),
            (text[..text.find("# type sum").unwrap()].to_string(), "no summary"),
        ];
        for (text, what) in cases {
            let said = LatencyFile::parse(&text).unwrap_err();
            assert!(said.contains(what), "{said}");
        }
    }

    #[test]
    fn file_names_hold_nothing_odd() {
        let path = LatencyFile::path(Path::new("logs"), "bzx 3/../x");
        assert_eq!(path, Path::new("logs/latency_bzx_3_.._x.txt"));
    }
}
