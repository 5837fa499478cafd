//! What a scenario measured: cases, each with its repetitions, each with histograms of every measure, samples
//! and counts.
//!
//! A [`Recorder`] takes samples while measuring, without allocating, and becomes a [`Repetition`];
//! [`RunRecord`] is the whole run.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{Histogram, Packed, Series, Summary, Table};

/// A measure or tag that a sample does not have: a timestamp that the kernel did not give. It is in no
/// histogram.
pub const MISSING: u64 = u64::MAX;

/// One thing measured: its short name and, in a sentence, from where to where.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Measure {
    /// As in tables: `RTT/2`.
    pub name: String,
    /// From which moment to which, and what is in between.
    pub what: String,
}

impl Measure {
    /// A name and a sentence.
    pub fn new(name: &str, what: &str) -> Measure {
        Measure {
            name: name.to_owned(),
            what: what.to_owned(),
        }
    }
}

/// One combination of parameters, measured several times.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Case {
    /// Unique within the run: what two runs are compared by.
    pub name: String,
    /// Cases of one group share pictures: `multicast, 500 µs`.
    pub group: String,
    /// What tells it from the others of its group: `epoll`.
    pub label: String,
    /// Its parameters: name and value.
    pub parameters: Vec<(String, String)>,
    /// What was measured; the first is the one that tables, pictures and comparisons show.
    pub measures: Vec<Measure>,
    /// What else each sample says, as the size of its packet.
    pub tags: Vec<String>,
    /// Whether reports show it over time (time series and heat map).
    pub over_time: bool,
    /// The measurements, in the order they were taken.
    pub repetitions: Vec<Repetition>,
    /// Why a repetition of it failed, or all of them did.
    #[serde(default)]
    pub unmeasured: Option<String>,
}

impl Case {
    /// A case with one measure and nothing measured yet. Group and label are its name until they are set.
    pub fn new(name: &str, measure: Measure) -> Case {
        Case {
            name: name.to_owned(),
            group: name.to_owned(),
            label: name.to_owned(),
            parameters: Vec::new(),
            measures: vec![measure],
            tags: Vec::new(),
            over_time: true,
            repetitions: Vec::new(),
            unmeasured: None,
        }
    }

    /// In the pictures of a group, under a label.
    pub fn in_group(self, group: &str, label: &str) -> Case {
        Case {
            group: group.to_owned(),
            label: label.to_owned(),
            ..self
        }
    }

    /// With one more parameter.
    pub fn parameter(mut self, name: &str, value: impl Into<String>) -> Case {
        self.parameters.push((name.to_owned(), value.into()));
        self
    }

    /// With one more measure.
    pub fn measure(mut self, measure: Measure) -> Case {
        self.measures.push(measure);
        self
    }

    /// With one more tag.
    pub fn tag(mut self, name: &str) -> Case {
        self.tags.push(name.to_owned());
        self
    }

    /// With or without pictures over time.
    pub fn over_time(self, over_time: bool) -> Case {
        Case { over_time, ..self }
    }

    /// Where a repetition of it is recorded, with room for so many samples.
    pub fn recorder(&self, samples_kept: usize) -> Recorder {
        Recorder::new(self.measures.len(), self.tags.len(), samples_kept)
    }

    /// Why there is no figure of it; `None` where there is one.
    pub fn why_unmeasured(&self) -> Option<&str> {
        let is_measured = |r: &Repetition| r.summaries.first().is_some_and(|s| s.count > 0);
        match self.repetitions.iter().any(is_measured) {
            true => None,
            false => Some(
                self.unmeasured
                    .as_deref()
                    .unwrap_or(match self.repetitions.is_empty() {
                        true => "the run ended before its turn",
                        false => "no sample was taken",
                    }),
            ),
        }
    }

    /// A measure over all repetitions.
    ///
    /// # Panics
    /// If there is no such measure.
    pub fn histogram(&self, measure: usize) -> Histogram {
        let mut all = Histogram::new();
        for repetition in &self.repetitions {
            all.add(&repetition.histograms[measure].unpack());
        }
        all
    }

    /// The first measure over time, one repetition behind the other.
    pub fn series(&self) -> Series {
        let mut series = Series::default();
        let mut offset = 0;
        for repetition in &self.repetitions {
            let samples = &repetition.samples;
            let mut last = 0;
            for row in samples.rows().filter(|row| row[1] != MISSING) {
                series.push(offset + row[0], row[1]);
                last = last.max(row[0]);
            }
            offset += last;
        }
        series
    }

    /// Counts over all repetitions.
    pub fn counts(&self) -> BTreeMap<String, u64> {
        let mut all = BTreeMap::new();
        for (name, count) in self.repetitions.iter().flat_map(|r| &r.counts) {
            *all.entry(name.clone()).or_default() += count;
        }
        all
    }
}

/// One measurement of a case.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Repetition {
    /// When it began, nanoseconds since the run did.
    pub started_ns: u64,
    /// How long it took, warm-up left out.
    pub lasted_ns: u64,
    /// What was counted: `sent`, `answered`, `lost` ...
    pub counts: BTreeMap<String, u64>,
    /// State of the machine before and after: half the round trip of a word in shared memory between the two
    /// cores, median, nanoseconds.
    pub shared_memory_ns: Option<(u64, u64)>,
    /// The share of all cores' time that the host of a virtual machine took meanwhile, in a million; `None`
    /// where the kernel does not say.
    #[serde(default)]
    pub stolen_ppm: Option<u32>,
    /// How long each measured thread was ready to run and had no core, nanoseconds, by role: what other
    /// processes of the machine took.
    #[serde(default)]
    pub run_delays_ns: Vec<(String, u64)>,
    /// A line for each measure of the case, for reading without tools.
    pub summaries: Vec<Summary>,
    /// One for each measure of the case, nanoseconds.
    #[serde(skip)]
    pub histograms: Vec<Packed>,
    /// The samples one by one.
    #[serde(skip)]
    pub samples: Samples,
}

/// Takes the samples of a repetition. Allocates nothing after construction.
#[derive(Clone, Debug)]
pub struct Recorder {
    histograms: Vec<Histogram>,
    samples: Samples,
}

impl Recorder {
    /// For so many measures and tags, with room for `samples_kept` samples one by one.
    pub fn new(measures: usize, tags: usize, samples_kept: usize) -> Recorder {
        Recorder {
            histograms: vec![Histogram::new(); measures],
            samples: Samples::new(measures, tags, samples_kept),
        }
    }

    /// Takes a sample: when (nanoseconds since the repetition began; intended, of an open loop), each measure
    /// in nanoseconds and each tag, [`MISSING`] for what there is not.
    ///
    /// # Panics
    /// If there are more or fewer measures or tags than were announced.
    #[inline]
    pub fn record(&mut self, at_ns: u64, measures: &[u64], tags: &[u64]) {
        assert_eq!(
            measures.len(),
            self.histograms.len(),
            "one value for each measure"
        );
        for (histogram, &value) in self.histograms.iter_mut().zip(measures) {
            if value != MISSING {
                histogram.record(value);
            }
        }
        self.samples.push(at_ns, measures, tags);
    }

    /// How many samples were taken.
    pub fn taken(&self) -> u64 {
        self.samples.taken
    }

    /// The repetition, with what was counted.
    pub fn finish<'a>(mut self, counts: impl IntoIterator<Item = (&'a str, u64)>) -> Repetition {
        // A run has many repetitions, and what this one did not need is touched memory.
        self.samples.rows.shrink_to_fit();
        Repetition {
            lasted_ns: self.samples.rows().map(|row| row[0]).max().unwrap_or(0),
            counts: counts.into_iter().map(|(name, n)| (name.to_owned(), n)).collect(),
            summaries: self.histograms.iter().map(Histogram::summary).collect(),
            histograms: self.histograms.iter().map(Histogram::pack).collect(),
            samples: self.samples,
            ..Repetition::default()
        }
    }
}

/// Samples one by one: a row is the time, the measures, the tags. Bounded: when it is full, every second one
/// is dropped and from then on only every second (fourth, eighth ...) kept, so that what is left covers all
/// the time evenly.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Samples {
    width: usize,
    rows: Vec<u64>,
    room: usize,
    /// One in so many is kept.
    every: u64,
    taken: u64,
}

impl Samples {
    /// Room for so many, touched now so that no page fault happens later.
    pub fn new(measures: usize, tags: usize, room: usize) -> Samples {
        let width = 1 + measures + tags;
        let room = room.max(2);
        let mut rows = vec![1; room * width];
        rows.clear();
        Samples {
            width,
            rows,
            room,
            every: 1,
            taken: 0,
        }
    }

    #[inline]
    fn push(&mut self, at_ns: u64, measures: &[u64], tags: &[u64]) {
        assert_eq!(
            1 + measures.len() + tags.len(),
            self.width,
            "as many values as announced"
        );
        let index = self.taken;
        self.taken += 1;
        if !index.is_multiple_of(self.every) {
            return;
        }
        if self.rows.len() == self.room * self.width {
            self.thin();
            if !index.is_multiple_of(self.every) {
                return;
            }
        }
        self.rows.push(at_ns);
        self.rows.extend_from_slice(measures);
        self.rows.extend_from_slice(tags);
    }

    #[cold]
    fn thin(&mut self) {
        let kept = (self.rows.len() / self.width).div_ceil(2);
        for row in 1..kept {
            let from = 2 * row * self.width;
            self.rows.copy_within(from..from + self.width, row * self.width);
        }
        self.rows.truncate(kept * self.width);
        self.every *= 2;
    }

    /// The rows: time in nanoseconds since the repetition began, then measures, then tags.
    pub fn rows(&self) -> impl Iterator<Item = &[u64]> + '_ {
        self.rows.chunks_exact(self.width.max(1))
    }

    /// One in so many is kept.
    pub fn every(&self) -> u64 {
        self.every
    }

    /// Adds a row that was kept before: for reading files.
    pub(crate) fn restore(&mut self, row: &[u64], every: u64) {
        self.width = row.len();
        self.rows.extend_from_slice(row);
        self.room = self.rows.len() / self.width;
        self.every = every;
        self.taken += every;
    }
}

/// Something that had to hold.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Check {
    /// What, in a few words: `every order answered`.
    pub name: String,
    /// Whether it held.
    pub passed: bool,
    /// What was found, a sentence.
    pub found: String,
}

/// A table that somebody published, to stand beside ours.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Published {
    /// The table, with its source in the title.
    pub table: Table,
    /// What differs in machine and method, sentences.
    pub differs: String,
}

/// What a stamp costs and how well the clock is known.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Probe {
    /// Where stamps come from.
    pub source: String,
    /// Cost of one stamp: least and median of many runs of stamps, tenths of a nanosecond.
    pub cost_tenths_ns: (u64, u64),
    /// What two stamps with nothing between them are apart, most often: a measure has this much of our own in
    /// it. Nanoseconds.
    pub apart_ns: u64,
    /// The step of the clock, nanoseconds, rounded up.
    pub step_ns: u64,
    /// Most that the clock ran off the kernel's during the run, parts per billion.
    pub drift_ppb: u64,
    /// Why stamps do not come from the counter, or the counter was found to be off.
    pub warning: Option<String>,
}

impl Probe {
    /// By how much a measured span may be wrong: a step of the clock at both ends and what the stamps
    /// themselves take, plus the clock's drift over the span.
    pub fn error_ns(&self, span_ns: u64) -> u64 {
        let drift = (u128::from(span_ns) * u128::from(self.drift_ppb)).div_ceil(1_000_000_000) as u64;
        self.apart_ns + 2 * self.step_ns + drift
    }
}

/// A whole run. Written as `manifest.json`; histograms and samples are in files beside it.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct RunRecord {
    /// Version of the folder's format, [`crate::folder::FORMAT`].
    pub format: u32,
    /// Name of the scenario.
    pub scenario: String,
    /// Its kind.
    pub kind: String,
    /// Its sentence.
    pub about: String,
    /// When it began, UTC, as `2026-01-31T12:00:00Z`.
    pub started: String,
    /// The same in nanoseconds since the epoch.
    pub started_ns: u64,
    /// The exact command.
    pub command: String,
    /// Version of the program.
    pub version: String,
    /// What it was built from, where that is known.
    pub commit: Option<String>,
    /// The machine: name and value.
    pub host: Vec<(String, String)>,
    /// What makes its figures worse or less certain, a sentence each.
    pub host_warnings: Vec<String>,
    /// The clock and what a stamp costs.
    pub probe: Probe,
    /// What was found out while running: the network in use, priorities granted.
    pub facts: Vec<(String, String)>,
    /// What a reader must know: what was not available, and what was done instead.
    pub notes: Vec<String>,
    /// What had to hold, and whether it did.
    pub checks: Vec<Check>,
    /// Tables of the scenario's own.
    pub tables: Vec<Table>,
    /// What was published, beside ours.
    pub published: Vec<Published>,
    /// The cases.
    pub cases: Vec<Case>,
    /// The scenario with defaults filled in, TOML; in a file of its own.
    #[serde(skip)]
    pub scenario_toml: String,
}

impl RunRecord {
    /// The checks that failed.
    pub fn failures(&self) -> Vec<&Check> {
        self.checks.iter().filter(|check| !check.passed).collect()
    }

    /// A case by name.
    pub fn case(&self, name: &str) -> Option<&Case> {
        self.cases.iter().find(|case| case.name == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_recorder_keeps_every_second_sample_and_counts_all() {
        let case = Case::new("c", Measure::new("m", "from a to b.")).tag("size");
        let mut recorder = case.recorder(8);
        for i in 0..100 {
            recorder.record(i * 10, &[1_000 + i], &[i]);
        }
        assert_eq!(recorder.taken(), 100);
        let repetition = recorder.finish([("sent", 100)]);
        assert_eq!(repetition.histograms[0].count(), 100);
        let kept: Vec<u64> = repetition.samples.rows().map(|row| row[2]).collect();
        assert_eq!(repetition.samples.every(), 16);
        assert_eq!(kept, [0, 16, 32, 48, 64, 80, 96]);
        assert_eq!((repetition.lasted_ns, repetition.counts["sent"]), (960, 100));
    }

    #[test]
    fn what_is_missing_is_in_the_samples_and_in_no_histogram() {
        let case = Case::new("c", Measure::new("m", "")).measure(Measure::new("kernel", ""));
        let mut recorder = case.recorder(8);
        recorder.record(0, &[5, MISSING], &[]);
        recorder.record(1, &[7, 3], &[]);
        let repetition = recorder.finish([]);
        let counts: Vec<u64> = repetition.histograms.iter().map(Packed::count).collect();
        assert_eq!(counts, [2, 1]);
        assert_eq!(repetition.samples.rows().next(), Some(&[0, 5, MISSING][..]));
    }

    #[test]
    fn repetitions_stand_one_behind_the_other_in_time_and_add_up() {
        let mut case = Case::new("c", Measure::new("m", ""));
        for base in [100, 200] {
            let mut recorder = case.recorder(8);
            (0..3).for_each(|i| recorder.record(i * 10, &[base + i], &[]));
            case.repetitions.push(recorder.finish([("lost", 1)]));
        }
        assert_eq!(
            case.series().points(),
            [(0, 100), (10, 101), (20, 102), (20, 200), (30, 201), (40, 202)]
        );
        assert_eq!((case.histogram(0).count(), case.counts()["lost"]), (6, 2));
    }

    #[test]
    fn the_probe_error_has_stamps_steps_and_drift() {
        let probe = Probe {
            apart_ns: 9,
            step_ns: 1,
            drift_ppb: 2_000,
            ..Probe::default()
        };
        assert_eq!((probe.error_ns(0), probe.error_ns(1_000_000)), (11, 13));
    }
}
