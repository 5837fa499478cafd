//! Latencies as counts per value, in words: 32 steps to an octave, so that a value is known to about 3 %.
//!
//! ```text
//! ns      0 .. 31 │ 32 .. 63 │ 64 .. 127 │ 128 .. 255 │ … │ 2^39 .. 2^40-1 and more
//! a step        1 │        1 │         2 │          4 │   │              2^34
//! bucket  0 .. 31 │ 32 .. 63 │ 64 ..  95 │  96 .. 127 │ … │ 1120 .. 1151
//! ```

use crate::layout::{BUCKETS, Layout, histogram as at};
use crate::{Reader, Word, WriteWord};
use alloc::vec::Vec;

/// Steps to an octave, as a power of two.
const STEP_BITS: u32 = 5;

/// The bucket of a value. Values from 2^40 ns (18 minutes) on share the last one.
#[inline]
pub const fn bucket_of(ns: u64) -> usize {
    let ns = if ns < 1 << 40 { ns } else { (1 << 40) - 1 };
    if ns < 1 << STEP_BITS {
        return ns as usize;
    }
    let shift = ns.ilog2() - STEP_BITS;
    ((shift as usize) << STEP_BITS) + (ns >> shift) as usize
}

/// The least and the greatest value of a bucket. The last one's greatest is the end of the scale, though more
/// is counted there.
pub const fn bounds_of(bucket: usize) -> (u64, u64) {
    let bucket = if bucket < BUCKETS { bucket } else { BUCKETS - 1 };
    if bucket < 2 << STEP_BITS {
        return (bucket as u64, bucket as u64);
    }
    let shift = (bucket >> STEP_BITS) - 1;
    let step = (bucket - (shift << STEP_BITS)) as u64;
    (step << shift, ((step + 1) << shift) - 1)
}

/// Writes one histogram. One thread at a time: every count is a load and a store.
#[derive(Debug)]
pub struct HistogramWriter<'a, W> {
    words: &'a [W; at::WORDS],
}

impl<'a, W: WriteWord> HistogramWriter<'a, W> {
    /// The writer of histogram `index`, which the layout admits.
    pub(crate) fn new(words: &'a [W], layout: &Layout, index: u32) -> HistogramWriter<'a, W> {
        let words = words[layout.histograms.slot(index)]
            .first_chunk()
            .expect("the stride of histograms is their words");
        HistogramWriter { words }
    }

    /// The words that every value is counted in, to have them fetched before they are written.
    pub(crate) fn words(&self) -> &'a [W] {
        &self.words[..at::COUNTS]
    }

    /// Counts a value.
    #[inline]
    pub fn record(&mut self, ns: u64) {
        self.record_each(ns, 1);
    }

    /// Counts a value so many times.
    #[inline]
    pub fn record_each(&mut self, ns: u64, times: u64) {
        if times == 0 {
            return;
        }
        let words = self.words;
        let add = |word: &W, n: u64| word.store(word.load().wrapping_add(n));
        let least = words[at::MIN].load();
        if ns < least || words[at::COUNT].load() == 0 {
            words[at::MIN].store(ns);
        }
        if ns > words[at::MAX].load() {
            words[at::MAX].store(ns);
        }
        add(&words[at::COUNT], times);
        add(&words[at::SUM], ns.wrapping_mul(times));
        add(&words[at::COUNTS + bucket_of(ns)], times);
    }
}

/// A copy of a histogram, or a sum of several.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Histogram {
    /// How many values.
    pub count: u64,
    /// Their sum, in nanoseconds.
    pub sum: u64,
    /// The least, 0 when there is none.
    pub min: u64,
    /// The greatest, 0 when there is none.
    pub max: u64,
    /// How many in each bucket: [`BUCKETS`] of them.
    counts: Vec<u64>,
}

impl Default for Histogram {
    fn default() -> Histogram {
        Histogram {
            count: 0,
            sum: 0,
            min: 0,
            max: 0,
            counts: alloc::vec![0; BUCKETS],
        }
    }
}

impl Histogram {
    /// Histogram `index` as it is now. It may be written meanwhile: the count is that of the buckets copied.
    pub(crate) fn copy<W: Word>(words: &[W]) -> Histogram {
        let counts: Vec<u64> = (at::COUNTS..at::WORDS).map(|word| words[word].load()).collect();
        Histogram {
            count: counts.iter().fold(0, |sum, &n| sum.saturating_add(n)),
            sum: words[at::SUM].load(),
            min: words[at::MIN].load(),
            max: words[at::MAX].load(),
            counts,
        }
    }

    /// Counts a value.
    pub fn record(&mut self, ns: u64) {
        self.min = if self.count == 0 { ns } else { self.min.min(ns) };
        self.max = self.max.max(ns);
        self.count = self.count.saturating_add(1);
        self.sum = self.sum.saturating_add(ns);
        let count = &mut self.counts[bucket_of(ns)];
        *count = count.saturating_add(1);
    }

    /// Counts everything that `other` counted (kinds of a feed, feeds of a system).
    pub fn add(&mut self, other: &Histogram) {
        if other.count == 0 {
            return;
        }
        self.min = if self.count == 0 {
            other.min
        } else {
            self.min.min(other.min)
        };
        self.max = self.max.max(other.max);
        self.count = self.count.saturating_add(other.count);
        self.sum = self.sum.saturating_add(other.sum);
        for (mine, theirs) in self.counts.iter_mut().zip(&other.counts) {
            *mine = mine.saturating_add(*theirs);
        }
    }

    /// What was counted since `earlier`, an older copy of the same histogram. Extremes are those of all time.
    pub fn since(&self, earlier: &Histogram) -> Histogram {
        let counts: Vec<u64> = self
            .counts
            .iter()
            .zip(&earlier.counts)
            .map(|(n, e)| n.saturating_sub(*e))
            .collect();
        Histogram {
            count: counts.iter().fold(0, |sum, &n| sum.saturating_add(n)),
            sum: self.sum.saturating_sub(earlier.sum),
            counts,
            ..*self
        }
    }

    /// The mean, rounded down; 0 when there is none.
    pub fn mean(&self) -> u64 {
        self.sum.checked_div(self.count).unwrap_or(0)
    }

    /// A value that `per_million` millionths of all do not exceed, to the width of a bucket: 500,000 is the
    /// median. 0 when there is none.
    pub fn at(&self, per_million: u32) -> u64 {
        let wanted = (u128::from(self.count) * u128::from(per_million.min(1_000_000)))
            .div_ceil(1_000_000)
            .max(1);
        let mut so_far = 0;
        for (bucket, &count) in self.counts.iter().enumerate() {
            so_far += u128::from(count);
            if so_far >= wanted {
                // A copy made while it was written may hold extremes older than its counts.
                return bounds_of(bucket).1.min(self.max).max(self.min.min(self.max));
            }
        }
        0
    }

    /// Every bucket that holds something: its least and greatest value and how many.
    pub fn buckets(&self) -> impl Iterator<Item = (u64, u64, u64)> + '_ {
        let counted = self.counts.iter().enumerate().filter(|(_, count)| **count > 0);
        counted.map(|(bucket, &count)| {
            let (least, greatest) = bounds_of(bucket);
            (least, greatest, count)
        })
    }
}

impl<W: Word> Reader<'_, W> {
    /// A copy of histogram `index` as it is now, `None` when there is none of that number. Allocates.
    pub fn histogram(&self, index: u32) -> Option<Histogram> {
        let layout = self.layout();
        (index < layout.histograms.count)
            .then(|| Histogram::copy(&self.words()[layout.histograms.slot(index)]))
    }
}
