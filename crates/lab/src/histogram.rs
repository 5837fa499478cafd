//! Latencies as counts per value: HdrHistogram (three significant digits) with the true extremes beside it.

use std::fmt::Write;

use hdrhistogram::Histogram as Hdr;
use hdrhistogram::serialization::{Deserializer as HdrReader, Serializer as _, V2DeflateSerializer};
use serde::{Deserialize, Serialize};

/// Values above this (an hour) count as this one; [`Histogram::max`] still tells the truth.
const HIGHEST_NS: u64 = 3_600_000_000_000;
/// What that was in folders written earlier (100 s).
const HIGHEST_BEFORE_NS: u64 = 100_000_000_000;

/// Latencies in nanoseconds. Recording allocates nothing.
#[derive(Clone, Debug, PartialEq)]
pub struct Histogram {
    counts: Hdr<u64>,
    min: u64,
    max: u64,
}

/// What one line of a latency table says; nanoseconds. In files, figures that rest on nothing are `null`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(into = "WrittenSummary", from = "WrittenSummary")]
pub struct Summary {
    /// The least.
    pub min: u64,
    /// Half are not more.
    pub p50: u64,
    /// 90 % are not more.
    pub p90: u64,
    /// 99 % are not more.
    pub p99: u64,
    /// 99.9 % are not more.
    pub p99_9: u64,
    /// The most.
    pub max: u64,
    /// How many.
    pub count: u64,
}

impl Summary {
    /// What the columns of [`Summary::times`] are called.
    const COLUMNS: [&'static str; 6] = ["min", "p50", "p90", "p99", "p99.9", "max"];

    /// The columns of a table whose rows have [`Summary::times`] between other cells.
    pub fn columns<'a>(before: &[&'a str], after: &[&'a str]) -> Vec<&'a str> {
        [before, &Summary::COLUMNS, after].concat()
    }

    /// Its times, nanoseconds, as [`Summary::columns`] names them: from the least to the most, without the
    /// count.
    pub fn times(&self) -> [u64; 6] {
        [self.min, self.p50, self.p90, self.p99, self.p99_9, self.max]
    }
}

/// A [`Summary`] as it stands in files.
#[derive(Serialize, Deserialize)]
struct WrittenSummary {
    min: Option<u64>,
    p50: Option<u64>,
    p90: Option<u64>,
    p99: Option<u64>,
    p99_9: Option<u64>,
    max: Option<u64>,
    count: u64,
}

impl From<Summary> for WrittenSummary {
    fn from(s: Summary) -> WrittenSummary {
        let shown = |ns| (s.count > 0).then_some(ns);
        WrittenSummary {
            min: shown(s.min),
            p50: shown(s.p50),
            p90: shown(s.p90),
            p99: shown(s.p99),
            p99_9: shown(s.p99_9),
            max: shown(s.max),
            count: s.count,
        }
    }
}

impl From<WrittenSummary> for Summary {
    fn from(w: WrittenSummary) -> Summary {
        Summary {
            min: w.min.unwrap_or_default(),
            p50: w.p50.unwrap_or_default(),
            p90: w.p90.unwrap_or_default(),
            p99: w.p99.unwrap_or_default(),
            p99_9: w.p99_9.unwrap_or_default(),
            max: w.max.unwrap_or_default(),
            count: w.count,
        }
    }
}

fn no_counts() -> Hdr<u64> {
    Hdr::new_with_bounds(1, HIGHEST_NS, 3).expect("bounds and digits are within the format's")
}

impl Default for Histogram {
    fn default() -> Histogram {
        Histogram::new()
    }
}

impl Histogram {
    /// An empty one, of about 260 KiB whatever it will hold.
    pub fn new() -> Histogram {
        Histogram {
            counts: no_counts(),
            min: u64::MAX,
            max: 0,
        }
    }

    /// Counts a latency.
    #[inline]
    pub fn record(&mut self, ns: u64) {
        self.record_n(ns, 1);
    }

    /// Counts a latency `n` times.
    #[inline]
    pub fn record_n(&mut self, ns: u64, n: u64) {
        if n > 0 {
            self.counts.saturating_record_n(ns.min(HIGHEST_NS), n);
            self.min = self.min.min(ns);
            self.max = self.max.max(ns);
        }
    }

    /// Counts everything `other` counted.
    pub fn add(&mut self, other: &Histogram) {
        self.counts.add(&other.counts).expect("all have the same bounds");
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
    }

    /// How many latencies.
    pub fn count(&self) -> u64 {
        self.counts.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.counts.is_empty()
    }

    /// The least, 0 if there is none.
    pub fn min(&self) -> u64 {
        if self.is_empty() { 0 } else { self.min }
    }

    /// The most, 0 if there is none.
    pub fn max(&self) -> u64 {
        self.max
    }

    /// The least value that a fraction `quantile` (0 to 1) of all does not exceed, to three digits.
    pub fn at_quantile(&self, quantile: f64) -> u64 {
        if self.is_empty() {
            0
        } else {
            self.counts.value_at_quantile(quantile).clamp(self.min, self.max)
        }
    }

    /// The usual line of a latency table.
    pub fn summary(&self) -> Summary {
        Summary {
            min: self.min(),
            p50: self.at_quantile(0.5),
            p90: self.at_quantile(0.9),
            p99: self.at_quantile(0.99),
            p99_9: self.at_quantile(0.999),
            max: self.max,
            count: self.count(),
        }
    }

    /// Every value that occurred, to three digits, ascending, with its count.
    pub fn values(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.counts
            .iter_recorded()
            .map(|v| (v.value_iterated_to(), v.count_at_value()))
    }

    /// The mean, to three digits of each value; 0 if there is none.
    pub fn mean(&self) -> f64 {
        if self.is_empty() { 0.0 } else { self.counts.mean() }
    }

    /// The standard deviation, to three digits of each value; 0 if there is none.
    pub fn stdev(&self) -> f64 {
        if self.is_empty() { 0.0 } else { self.counts.stdev() }
    }

    /// What HdrHistogram's own code makes of this one, without the extremes beside it.
    pub(crate) fn counts(&self) -> &Hdr<u64> {
        &self.counts
    }

    /// The compressed form of HdrHistogram (V2, deflate), about a kilobyte.
    pub fn pack(&self) -> Packed {
        let mut v2 = Vec::new();
        V2DeflateSerializer::new()
            .serialize(&self.counts, &mut v2)
            .expect("memory takes all, and counts fit");
        Packed {
            v2,
            min: self.min(),
            max: self.max,
            count: self.count(),
        }
    }

    /// The text format of HdrHistogram's own plotters (`.hgrm`), in microseconds.
    pub fn to_hgrm(&self) -> String {
        let mut out = String::from("       Value     Percentile TotalCount 1/(1-Percentile)\n\n");
        let mut so_far = 0;
        for (value, count) in self.values() {
            so_far += count;
            let quantile = so_far as f64 / self.count() as f64;
            let us = value as f64 / 1_000.0;
            let line = match so_far == self.count() {
                false => writeln!(
                    out,
                    "{us:12.3} {quantile:2.12} {so_far:10} {:14.2}",
                    1.0 / (1.0 - quantile)
                ),
                true => writeln!(out, "{us:12.3} {quantile:2.12} {so_far:10}"),
            };
            line.expect("writing to a string");
        }
        let max = self.max as f64 / 1_000.0;
        let (mean, deviation) = (self.counts.mean() / 1_000.0, self.counts.stdev() / 1_000.0);
        let total = self.count();
        writeln!(out, "#[Mean    = {mean:12.3}, StdDeviation   = {deviation:12.3}]")
            .expect("writing to a string");
        writeln!(out, "#[Max     = {max:12.3}, Total count    = {total:12}]").expect("writing to a string");
        out
    }
}

/// Nanoseconds, and how many samples had them.
pub type Counted = Vec<(u64, u64)>;

/// The values of a `.hgrm` text, in microseconds there, with how many samples each had.
///
/// # Errors
/// The line that is none of the format, by its number from 1.
pub fn parse_hgrm(text: &str) -> Result<Counted, String> {
    let mut values = Vec::new();
    let mut so_far = 0;
    for (number, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') || line.starts_with("Value") {
            continue;
        }
        let wrong = || {
            format!(
                "line {}: {line:?} is no line of a .hgrm file (value, percentile, total count)",
                number + 1
            )
        };
        let mut fields = line.split_whitespace();
        let value: f64 = fields.next().and_then(|f| f.parse().ok()).ok_or_else(wrong)?;
        let total: u64 = fields.nth(1).and_then(|f| f.parse().ok()).ok_or_else(wrong)?;
        if !(0.0..1e15).contains(&value) || total < so_far {
            return Err(wrong());
        }
        if total > so_far {
            values.push(((value * 1_000.0).round() as u64, total - so_far));
        }
        so_far = total;
    }
    match values.is_empty() {
        true => Err("there is no value in it".to_string()),
        false => Ok(values),
    }
}

/// A histogram that is finished: compressed as HdrHistogram's V2 format has it, with the true extremes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Packed {
    v2: Vec<u8>,
    min: u64,
    max: u64,
    count: u64,
}

impl Packed {
    /// From the compressed form, as a histogram log has it, and the extremes, which that has not.
    ///
    /// # Errors
    /// Why these are no such bytes, or that they are of values that ours never are.
    pub fn from_v2(v2: Vec<u8>, min: u64, max: u64) -> Result<Packed, String> {
        let mut packed = Packed {
            v2,
            min,
            max,
            count: 0,
        };
        packed.count = packed.read()?.len();
        Ok(packed)
    }

    fn read(&self) -> Result<Hdr<u64>, String> {
        let counts: Hdr<u64> = HdrReader::new()
            .deserialize(&mut self.v2.as_slice())
            .map_err(|e| e.to_string())?;
        let shape = (counts.low(), counts.high(), counts.sigfig());
        match shape {
            (1, HIGHEST_NS, 3) => Ok(counts),
            (1, HIGHEST_BEFORE_NS, 3) => {
                let mut wider = no_counts();
                wider.add(&counts).map_err(|e| e.to_string())?;
                Ok(wider)
            }
            _ => Err(format!(
                "a histogram of {shape:?} (lowest, highest, digits) where (1, {HIGHEST_NS}, 3) is written"
            )),
        }
    }

    /// The histogram.
    pub fn unpack(&self) -> Histogram {
        let mut histogram = Histogram::new();
        if self.count > 0 {
            histogram.counts = self.read().expect("read when it was made");
            (histogram.min, histogram.max) = (self.min, self.max);
        }
        histogram
    }

    /// The compressed form.
    pub fn v2(&self) -> &[u8] {
        &self.v2
    }

    /// The least, 0 if there is none.
    pub fn min(&self) -> u64 {
        self.min
    }

    /// The most, 0 if there is none.
    pub fn max(&self) -> u64 {
        self.max
    }

    /// How many.
    pub fn count(&self) -> u64 {
        self.count
    }
}

/// The form of a histogram in a results file.
#[derive(Serialize, Deserialize)]
struct Stored {
    min: u64,
    max: u64,
    /// Value and count, ascending.
    values: Vec<(u64, u64)>,
}

impl Serialize for Histogram {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Stored {
            min: self.min(),
            max: self.max,
            values: self.values().collect(),
        }
        .serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Histogram {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Histogram, D::Error> {
        let stored = Stored::deserialize(deserializer)?;
        let mut histogram = Histogram::new();
        stored
            .values
            .iter()
            .for_each(|&(value, count)| histogram.record_n(value, count));
        if !histogram.is_empty() {
            (histogram.min, histogram.max) = (stored.min, stored.max);
        }
        Ok(histogram)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The naive way: sort, and take the element that so many do not exceed.
    fn naive(sorted: &[u64], quantile: f64) -> u64 {
        let rank = (quantile * sorted.len() as f64).ceil().max(1.0) as usize;
        sorted[rank - 1]
    }

    #[test]
    fn quantiles_agree_with_sorting_to_three_digits_and_extremes_exactly() {
        let mut rng = tickwire_testdata::Rng::new(77);
        let mut histogram = Histogram::new();
        let mut all: Vec<u64> = (0..50_000)
            .map(|_| 1 << rng.below(34) | rng.below(1 << 20))
            .collect();
        all.iter().for_each(|&ns| histogram.record(ns));
        all.sort_unstable();
        let s = histogram.summary();
        assert_eq!((s.min, s.max, s.count), (all[0], all[49_999], 50_000));
        for (found, quantile) in [(s.p50, 0.5), (s.p90, 0.9), (s.p99, 0.99), (s.p99_9, 0.999)] {
            let expected = naive(&all, quantile);
            assert!(
                found.abs_diff(expected) <= expected / 1_000 + 1,
                "{quantile}: {found} {expected}"
            );
        }
        assert_eq!(histogram.values().map(|(_, count)| count).sum::<u64>(), 50_000);
    }

    #[test]
    fn an_empty_histogram_is_all_zero() {
        assert_eq!(Histogram::new().summary(), Summary::default());
    }

    #[test]
    fn zero_and_absurdly_long_latencies_count() {
        let mut histogram = Histogram::new();
        histogram.record(0);
        histogram.record(u64::MAX);
        assert_eq!(
            (histogram.count(), histogram.min(), histogram.max()),
            (2, 0, u64::MAX)
        );
    }

    #[test]
    fn adding_is_recording_everything_in_one() {
        let (mut a, mut b, mut both) = (Histogram::new(), Histogram::new(), Histogram::new());
        for ns in [5, 70, 900, 11_000] {
            a.record(ns);
            both.record(ns);
        }
        for ns in [3, 13_000_000] {
            b.record(ns);
            both.record(ns);
        }
        a.add(&b);
        a.add(&Histogram::new());
        assert_eq!(a, both);
    }

    #[test]
    fn json_keeps_counts_and_extremes() {
        let mut histogram = Histogram::new();
        (0..1_000).for_each(|i| histogram.record(i * i * i));
        let json = serde_json::to_string(&histogram).expect("serialises");
        let back: Histogram = serde_json::from_str(&json).expect("deserialises");
        assert_eq!(back, histogram);
        let empty: Histogram =
            serde_json::from_str(&serde_json::to_string(&Histogram::new()).expect("serialises"))
                .expect("reads");
        assert_eq!(empty, Histogram::new());
    }

    #[test]
    fn a_packed_histogram_comes_back_whole_and_foreign_bytes_are_refused() {
        let mut histogram = Histogram::new();
        (0..1_000).for_each(|i| histogram.record(i * i * i));
        histogram.record(u64::MAX);
        for h in [histogram, Histogram::new()] {
            let packed = h.pack();
            assert_eq!(packed.unpack(), h);
            assert_eq!(
                Packed::from_v2(packed.v2().to_vec(), packed.min(), packed.max()),
                Ok(packed)
            );
        }
        assert!(Packed::from_v2(b"no histogram".to_vec(), 0, 0).is_err());
        let mut v2 = Vec::new();
        let other = Hdr::<u64>::new_with_bounds(1, 1_000, 2).expect("a valid one");
        V2DeflateSerializer::new()
            .serialize(&other, &mut v2)
            .expect("written");
        assert!(
            Packed::from_v2(v2, 0, 0)
                .expect_err("refused")
                .contains("3600000000000")
        );
        // As folders had it before.
        let mut narrow = Hdr::<u64>::new_with_bounds(1, HIGHEST_BEFORE_NS, 3).expect("a valid one");
        narrow.saturating_record(70_000_000_000);
        let mut v2 = Vec::new();
        V2DeflateSerializer::new()
            .serialize(&narrow, &mut v2)
            .expect("written");
        let mut wide = Packed::from_v2(v2, 70_000_000_000, 70_000_000_000)
            .expect("read")
            .unpack();
        wide.record(1_800_000_000_000);
        assert_eq!((wide.count(), wide.max()), (2, 1_800_000_000_000));
        assert!(wide.summary().p99 > 1_790_000_000_000);
    }

    #[test]
    fn hgrm_is_read_as_it_was_written_and_what_is_none_is_said() {
        let mut histogram = Histogram::new();
        for ns in [1_500, 1_500, 20_000, 3_000_000] {
            histogram.record(ns);
        }
        let read = parse_hgrm(&histogram.to_hgrm()).unwrap();
        assert_eq!(read.iter().map(|(_, count)| count).sum::<u64>(), 4);
        assert_eq!((read[0].1, read.len()), (2, 3));
        for ((ns, _), expected) in read.iter().zip([1_500.0, 20_000.0, 3_000_000.0]) {
            assert!((*ns as f64 / expected - 1.0).abs() < 0.01, "{ns} for {expected}");
        }
        assert!(parse_hgrm("1.0 0.5").unwrap_err().contains("line 1"));
        assert!(parse_hgrm("1.0 0.5 4\n2.0 0.7 3").unwrap_err().contains("line 2"));
        assert!(parse_hgrm("").is_err());
    }

    #[test]
    fn hgrm_ends_at_the_last_percentile_with_the_totals() {
        let mut histogram = Histogram::new();
        (1..=4).for_each(|i| histogram.record(i * 1_000));
        let text = histogram.to_hgrm();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(
            lines[2].split_whitespace().collect::<Vec<_>>(),
            ["1.000", "0.250000000000", "1", "1.33"]
        );
        assert_eq!(
            lines[5].split_whitespace().collect::<Vec<_>>(),
            ["4.001", "1.000000000000", "4"]
        );
        assert!(lines[7].starts_with("#[Max") && lines[7].contains("4.000"));
    }
}
