//! `tickwire latency`: averages and percentiles per feed, per message type and over all, from the daemon's
//! files or from its histograms.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use tickwire_lab::{format_count, format_ns};

use super::model::{ARRIVALS, Distribution, Reading};
use super::text::{Column, Grid, Page, Tone};
use super::top::{distribution_json, kinds_of};
use tickwire_console::failure::Failure;
use tickwire_control::latency_file::{ALL, Latencies, LatencyFile, PARTS, SUPER};

/// Of a feed: distribution by message type, and by part of the way ([`PARTS`]).
type Types = BTreeMap<String, Distribution>;

/// Latencies by feed, in the order in which the feeds came.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct Report {
    feeds: Vec<(String, Types)>,
}

impl Report {
    /// What files say; several files of one feed are taken together.
    ///
    /// # Errors
    /// A file that cannot be read: which, and why.
    pub(crate) fn of_files(files: &[PathBuf]) -> Result<Report, Failure> {
        let mut report = Report::default();
        for path in files {
            let file = read(path)?;
            let types = report.feed(&file.feed);
            for (name, latencies) in &file.types {
                types
                    .entry(name.clone())
                    .or_default()
                    .add(&distribution(latencies));
            }
        }
        Ok(report)
    }

    /// What the running daemon has counted since its start.
    pub(crate) fn of_reading(reading: &Reading) -> Report {
        let mut report = Report::default();
        for feed in reading.feeds() {
            let types = report.feed(feed);
            for kind in kinds_of(reading.of_feed(feed)) {
                types.insert(kind.name, kind.latency);
            }
            for source in reading.of_feed(feed) {
                types.entry(ALL.into()).or_default().add(&source.latency);
                types.entry(SUPER.into()).or_default().add(&source.super_latency);
                for (part, latency) in ARRIVALS.into_iter().zip(&source.arrivals) {
                    types.entry(part.into()).or_default().add(latency);
                }
            }
            types.retain(|name, latency| name == ALL || !latency.is_empty());
        }
        report
    }

    fn feed(&mut self, feed: &str) -> &mut Types {
        let at = self
            .feeds
            .iter()
            .position(|(name, _)| name == feed)
            .unwrap_or_else(|| {
                self.feeds.push((feed.to_string(), Types::new()));
                self.feeds.len() - 1
            });
        &mut self.feeds[at].1
    }

    /// Every feed together, for a part of the way.
    fn over_all(&self, what: &str) -> Distribution {
        let mut sum = Distribution::default();
        self.feeds
            .iter()
            .filter_map(|(_, types)| types.get(what))
            .for_each(|d| sum.add(d));
        sum
    }

    /// For people: of a feed its message types, most messages first, then the parts of the way in their
    /// order, as far as they were measured.
    pub(crate) fn page(&self, width: usize) -> Page {
        let mut grid = Grid::new(&[
            Column::words("feed", 9),
            Column::words("type", 9),
            Column::number("messages", 8),
            Column::number("average", 7),
            Column::number("min", 3),
            Column::number("p50", 6),
            Column::number("p90", 4),
            Column::number("p99", 6),
            Column::number("p99.9", 5),
            Column::number("max", 4),
        ]);
        for (feed, types) in &self.feeds {
            let is_sum = |name: &str| PARTS.contains(&name);
            let mut single: Vec<(&String, &Distribution)> =
                types.iter().filter(|(name, _)| !is_sum(name)).collect();
            single.sort_by_key(|(_, latency)| std::cmp::Reverse(latency.count()));
            single
                .iter()
                .for_each(|(name, latency)| grid.row(row(feed, name, latency)));
            for sum in PARTS {
                if let Some(latency) = types.get(sum) {
                    grid.row(row(feed, sum, latency));
                }
            }
        }
        for sum in PARTS {
            let latency = self.over_all(sum);
            if self.feeds.len() > 1 && !latency.is_empty() {
                grid.row(row("all feeds", sum, &latency));
            }
        }
        let mut page = Page::new();
        page.lines(grid.lines(width));
        page
    }

    /// For programs.
    pub(crate) fn json(&self) -> serde_json::Value {
        let feeds: Vec<_> = self
            .feeds
            .iter()
            .map(|(feed, types)| {
                let types: serde_json::Map<_, _> = types
                    .iter()
                    .map(|(name, latency)| (name.clone(), distribution_json(latency)))
                    .collect();
                serde_json::json!({ "feed": feed, "types": types })
            })
            .collect();
        let over_all = PARTS.map(|part| (part.to_string(), distribution_json(&self.over_all(part))));
        let mut page = serde_json::Map::from_iter(over_all);
        page.insert("unit".into(), "ns".into());
        page.insert("feeds".into(), feeds.into());
        page.into()
    }
}

fn row(feed: &str, name: &str, d: &Distribution) -> Vec<(Tone, String)> {
    let tone = if name == ALL { Tone::Strong } else { Tone::Plain };
    let time = |ns: u64| {
        if d.is_empty() {
            String::new()
        } else {
            format_ns(ns)
        }
    };
    let cells = [
        feed.to_string(),
        name.to_string(),
        format_count(d.count()),
        time(d.mean_ns()),
        time(d.min_ns),
        time(d.at_quantile(0.5)),
        time(d.at_quantile(0.9)),
        time(d.at_quantile(0.99)),
        time(d.at_quantile(0.999)),
        time(d.max_ns),
    ];
    cells.map(|text| (tone, text)).to_vec()
}

fn read(path: &Path) -> Result<LatencyFile, Failure> {
    let place = path.display();
    let text = std::fs::read_to_string(path).map_err(|e| {
        Failure::system(format!(
            "cannot read {place}: {e}; give files that the daemon wrote (latency_FEED.txt)"
        ))
    })?;
    LatencyFile::parse(&text).map_err(|e| Failure::check(format!("{place}: {e}")))
}

fn distribution(latencies: &Latencies) -> Distribution {
    Distribution {
        buckets: latencies
            .ranges
            .iter()
            .map(|(&(_, highest), &count)| (highest, count))
            .collect(),
        sum_ns: latencies.sum,
        min_ns: latencies.min,
        max_ns: latencies.max,
    }
}

#[cfg(test)]
mod tests {
    use super::super::{examples, golden};
    use super::*;

    /// A feed's file, as the daemon would write it.
    fn file(feed: &str, types: &[(&str, &[u64])]) -> LatencyFile {
        let latencies = |list: &[u64]| Latencies {
            ranges: list.iter().fold(BTreeMap::new(), |mut ranges, &ns| {
                *ranges.entry((ns, ns)).or_default() += 1;
                ranges
            }),
            sum: list.iter().sum(),
            min: list.iter().copied().min().unwrap_or(0),
            max: list.iter().copied().max().unwrap_or(0),
            count: list.len() as u64,
        };
        LatencyFile {
            feed: feed.into(),
            remarks: vec![],
            types: types
                .iter()
                .map(|(name, list)| (name.to_string(), latencies(list)))
                .collect(),
        }
    }

    #[test]
    fn files_of_one_feed_are_taken_together_and_all_feeds_are_summed() {
        let folder = std::env::temp_dir().join(format!("tickwire-latency-{}", std::process::id()));
        let other = folder.join("other");
        std::fs::create_dir_all(&other).unwrap();
        let paths = [
            file(
                "bzx",
                &[("0x21", &[50, 60, 70]), ("0x29", &[40]), (ALL, &[40, 50, 60, 70])],
            )
            .write(&folder),
            file("bzx", &[("0x21", &[1_000]), (ALL, &[1_000])]).write(&other),
            file(
                "nasdaq",
                &[("A", &[45, 55]), (ALL, &[45, 55]), (SUPER, &[145, 155])],
            )
            .write(&folder),
        ]
        .map(Result::unwrap);
        let report = Report::of_files(&paths).unwrap();
        golden::compare("latency.txt", &report.page(usize::MAX).to_plain());
        let all = report.over_all(ALL);
        assert_eq!(
            (all.count(), all.mean_ns(), all.min_ns, all.max_ns),
            (7, 1_320 / 7, 40, 1_000)
        );
        let json = serde_json::to_string_pretty(&report.json()).unwrap();
        golden::compare("latency.json", &(json + "\n"));
        let cut = folder.join("cut.txt");
        std::fs::write(&cut, "# tickwire latency 1\n# feed: x\nA 1 1 5\n").unwrap();
        let failure = Report::of_files(&[cut]).unwrap_err();
        assert!(failure.message.contains("cut.txt"), "{failure}");
        let failure = Report::of_files(&[folder.join("none.txt")]).unwrap_err();
        assert!(failure.message.contains("cannot read"), "{failure}");
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn the_running_daemons_histograms_give_the_same_table() {
        let (_, reading) = examples::two_readings();
        golden::compare(
            "latency_live.txt",
            &Report::of_reading(&reading).page(usize::MAX).to_plain(),
        );
    }
}
