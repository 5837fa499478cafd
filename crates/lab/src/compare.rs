//! Two runs side by side: the ratio of percentiles, case by case, with an interval of confidence.
//!
//! For each run and case the statistic is the geometric mean, over repetitions, of a repetition's percentile.
//! Its uncertainty is found by bootstrap (Efron 1979), seeded, so that the same folders always give the same
//! answer: 2000 times, as many repetitions as there are are drawn with replacement, and each one's percentile
//! is drawn anew from its own samples (by the normal approximation of how many samples lie below a
//! percentile); the interval holds the middle 95 % of the ratios. Between repetitions the machine may change
//! its state, which the first step shows; within one, a percentile of few samples is uncertain, which the
//! second shows. With fewer than 5 repetitions the interval is too narrow, with one it knows nothing of the
//! machine's changes: [`Row::few`] says so.

use crate::record::{Case, RunRecord};
use crate::{Table, format_ns};

/// How often a resample is drawn.
const DRAWS: usize = 2_000;
/// How many repetitions an interval wants.
const REPETITIONS_WANTED: usize = 5;
/// How many samples beyond a percentile it wants.
const BEYOND_WANTED: f64 = 10.0;

/// A percentile: its name and its share.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Percentile {
    /// `p99.9`.
    pub name: &'static str,
    /// 0.999.
    pub share: f64,
}

/// Those that are compared.
pub const PERCENTILES: [Percentile; 4] = [
    Percentile {
        name: "p50",
        share: 0.5,
    },
    Percentile {
        name: "p90",
        share: 0.9,
    },
    Percentile {
        name: "p99",
        share: 0.99,
    },
    Percentile {
        name: "p99.9",
        share: 0.999,
    },
];

/// What the interval says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// It covers 1.
    NoDifference,
    /// All of it is below 1: the second run is faster.
    Faster,
    /// All of it is above 1: the second run is slower.
    Slower,
}

/// A percentile of a case in both runs.
#[derive(Clone, PartialEq, Debug)]
pub struct Row {
    /// The case.
    pub case: String,
    /// Which percentile.
    pub percentile: Percentile,
    /// In the first run, nanoseconds.
    pub a_ns: f64,
    /// In the second run, nanoseconds.
    pub b_ns: f64,
    /// The second over the first.
    pub ratio: f64,
    /// Ends of the interval of the ratio that has 95 % of the resamples.
    pub interval: (f64, f64),
    /// Repetitions in the first and in the second run.
    pub repetitions: (usize, usize),
    /// What the interval says.
    pub verdict: Verdict,
    /// Why the interval is to be taken with care: too few repetitions, too few samples beyond the percentile.
    pub few: Option<String>,
}

/// Two runs compared.
#[derive(Clone, PartialEq, Debug)]
pub struct Comparison {
    /// Case by case, percentile by percentile.
    pub rows: Vec<Row>,
    /// Cases that only one of them has, a sentence each.
    pub unmatched: Vec<String>,
}

/// Compares the first measure of every case that both runs have.
pub fn compare(a: &RunRecord, b: &RunRecord, seed: u64) -> Comparison {
    let mut rows = Vec::new();
    let mut unmatched = Vec::new();
    for case in &a.cases {
        match b.case(&case.name) {
            Some(other) => rows.extend(compare_case(case, other, seed)),
            None => unmatched.push(format!("'{}' is only in the first run", case.name)),
        }
    }
    let only_b = b.cases.iter().filter(|case| a.case(&case.name).is_none());
    unmatched.extend(only_b.map(|case| format!("'{}' is only in the second run", case.name)));
    Comparison { rows, unmatched }
}

fn compare_case(a: &Case, b: &Case, seed: u64) -> Vec<Row> {
    let (ranks_a, ranks_b) = (ranks(a), ranks(b));
    if ranks_a.is_empty() || ranks_b.is_empty() {
        return Vec::new();
    }
    PERCENTILES
        .iter()
        .map(|&percentile| {
            // Of the same seed for every row, so that a row does not depend on which others there are.
            let mut random = SplitMix(seed);
            let (a_ns, b_ns) = (
                level(&ranks_a, percentile.share),
                level(&ranks_b, percentile.share),
            );
            let mut ratios: Vec<f64> = (0..DRAWS)
                .map(|_| {
                    let below = draw(&ranks_a, percentile.share, &mut random);
                    draw(&ranks_b, percentile.share, &mut random) / below
                })
                .collect();
            ratios.sort_by(f64::total_cmp);
            let interval = (ratios[DRAWS / 40], ratios[DRAWS - 1 - DRAWS / 40]);
            let verdict = match interval {
                (low, _) if low > 1.0 => Verdict::Slower,
                (_, high) if high < 1.0 => Verdict::Faster,
                _ => Verdict::NoDifference,
            };
            Row {
                case: a.name.clone(),
                percentile,
                a_ns,
                b_ns,
                ratio: b_ns / a_ns,
                interval,
                repetitions: (ranks_a.len(), ranks_b.len()),
                verdict,
                few: too_few(&ranks_a, &ranks_b, percentile.share),
            }
        })
        .collect()
}

fn too_few(a: &[Ranks], b: &[Ranks], share: f64) -> Option<String> {
    let repetitions = a.len().min(b.len());
    let samples = a.iter().chain(b).map(|r| r.count).min().unwrap_or(0);
    if repetitions < REPETITIONS_WANTED {
        Some(format!("{repetitions} of {REPETITIONS_WANTED} repetitions"))
    } else if (samples as f64) * (1.0 - share) < BEYOND_WANTED {
        Some(format!("{samples} samples"))
    } else {
        None
    }
}

/// A repetition's values with how many samples are not above each: what percentiles are looked up in.
struct Ranks {
    values: Vec<(u64, u64)>,
    count: u64,
}

impl Ranks {
    fn at(&self, share: f64) -> f64 {
        let rank = ((share * self.count as f64).ceil() as u64).clamp(1, self.count);
        let i = self.values.partition_point(|&(_, so_far)| so_far < rank);
        // A latency below the clock's step reads 0: a ratio needs more than that.
        self.values[i].0.max(1) as f64
    }
}

fn ranks(case: &Case) -> Vec<Ranks> {
    let of = |repetition: &crate::record::Repetition| {
        let histogram = repetition.histograms.first()?.unpack();
        let mut so_far = 0;
        let values = histogram.values().map(|(value, count)| {
            so_far += count;
            (value, so_far)
        });
        let values: Vec<_> = values.collect();
        (so_far > 0).then_some(Ranks {
            values,
            count: so_far,
        })
    };
    case.repetitions.iter().filter_map(of).collect()
}

/// The geometric mean over repetitions.
fn level(ranks: &[Ranks], share: f64) -> f64 {
    let sum: f64 = ranks.iter().map(|r| r.at(share).ln()).sum();
    (sum / ranks.len() as f64).exp()
}

/// The same of a resample.
fn draw(ranks: &[Ranks], share: f64, random: &mut SplitMix) -> f64 {
    let mut sum = 0.0;
    for _ in 0..ranks.len() {
        let chosen = &ranks[(random.next() % ranks.len() as u64) as usize];
        let deviation = (share * (1.0 - share) / chosen.count as f64).sqrt();
        sum += chosen
            .at((share + random.normal() * deviation).clamp(0.0, 1.0))
            .ln();
    }
    (sum / ranks.len() as f64).exp()
}

/// SplitMix64 (Steele, Lea, Flood 2014): its numbers decide which resamples are drawn and nothing else.
struct SplitMix(u64);

impl SplitMix {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// Of the standard normal distribution (Box and Muller).
    fn normal(&mut self) -> f64 {
        let unit = |bits: u64| ((bits >> 11) as f64 + 0.5) / (1u64 << 53) as f64;
        let (radius, angle) = (unit(self.next()), unit(self.next()));
        (-2.0 * radius.ln()).sqrt() * (std::f64::consts::TAU * angle).cos()
    }
}

impl Comparison {
    /// Rows at a percentile (by name) whose ratio exceeds a limit and whose whole interval is above 1: shown
    /// to be slower, by more than is allowed.
    pub fn regressions(&self, percentile: &str, limit: f64) -> Vec<&Row> {
        let rows = self.rows.iter().filter(|row| row.percentile.name == percentile);
        rows.filter(|row| row.verdict == Verdict::Slower && row.ratio > limit)
            .collect()
    }

    /// As a table.
    pub fn table(&self, title: &str) -> Table {
        let columns = [
            "",
            "percentile",
            "first",
            "second",
            "ratio",
            "95 % interval",
            "verdict",
            "care",
        ];
        self.rows.iter().fold(Table::new(title, &columns), |table, row| {
            table.row([
                row.case.clone(),
                row.percentile.name.to_owned(),
                format_ns(row.a_ns.round() as u64),
                format_ns(row.b_ns.round() as u64),
                format!("{:.3}", row.ratio),
                format!("{:.3} to {:.3}", row.interval.0, row.interval.1),
                match row.verdict {
                    Verdict::NoDifference => "no difference shown".to_owned(),
                    Verdict::Faster => "faster".to_owned(),
                    Verdict::Slower => "slower".to_owned(),
                },
                row.few.clone().unwrap_or_default(),
            ])
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Measure;

    /// A run with one case: `repetitions` of `n` latencies around `median_ns`, each repetition off by up to
    /// `wobble` percent.
    fn run(seed: u64, repetitions: usize, n: u64, median_ns: u64, wobble: u64) -> RunRecord {
        let mut rng = tickwire_testdata::Rng::new(seed);
        let mut case = Case::new("c", Measure::new("m", ""));
        for _ in 0..repetitions {
            let level = median_ns * (1_000 + rng.below(20 * wobble + 1)) / (1_000 + 10 * wobble);
            let mut recorder = case.recorder(2);
            for i in 0..n {
                // A tail: one in 50 takes up to ten times as long.
                let tail = if rng.chance(1, 50) {
                    rng.below(9 * level)
                } else {
                    0
                };
                recorder.record(i, &[level * 9 / 10 + rng.below(level / 5) + tail], &[]);
            }
            case.repetitions.push(recorder.finish([]));
        }
        RunRecord {
            cases: vec![case],
            ..RunRecord::default()
        }
    }

    fn at<'c>(comparison: &'c Comparison, name: &str) -> &'c Row {
        let row = comparison.rows.iter().find(|row| row.percentile.name == name);
        row.expect("every percentile is there")
    }

    #[test]
    fn the_same_distribution_twice_is_no_difference_and_a_tenth_slower_is_slower() {
        let a = run(1, 7, 2_000, 10_000, 2);
        let same = compare(&a, &run(2, 7, 2_000, 10_000, 2), 1);
        assert_eq!(
            at(&same, "p50").verdict,
            Verdict::NoDifference,
            "{:?}",
            at(&same, "p50")
        );
        assert!(same.regressions("p50", 1.05).is_empty());
        let slower = compare(&a, &run(3, 7, 2_000, 11_000, 2), 1);
        let row = at(&slower, "p50");
        assert_eq!(row.verdict, Verdict::Slower);
        assert!(
            (row.ratio - 1.1).abs() < 0.03 && row.interval.0 < 1.1 && row.interval.1 > 1.1,
            "{row:?}"
        );
        assert_eq!(slower.regressions("p50", 1.05).len(), 1);
        assert!(slower.regressions("p50", 1.2).is_empty());
        let faster = compare(&run(3, 7, 2_000, 11_000, 2), &a, 1);
        assert_eq!(at(&faster, "p50").verdict, Verdict::Faster);
        assert!(faster.regressions("p50", 0.5).is_empty());
    }

    #[test]
    fn repetitions_that_differ_among_themselves_widen_the_interval() {
        let steady = compare(&run(1, 7, 2_000, 10_000, 1), &run(2, 7, 2_000, 10_300, 1), 1);
        let moving = compare(&run(1, 7, 2_000, 10_000, 30), &run(2, 7, 2_000, 10_300, 30), 1);
        let width = |c: &Comparison| at(c, "p50").interval.1 - at(c, "p50").interval.0;
        assert!(
            width(&moving) > 4.0 * width(&steady),
            "{} {}",
            width(&moving),
            width(&steady)
        );
        assert_eq!(at(&moving, "p50").verdict, Verdict::NoDifference);
    }

    #[test]
    fn the_interval_covers_the_truth_about_as_often_as_it_says() {
        // 95 % by design; with 7 repetitions the bootstrap is known to be short of it.
        let covered = (0..30).filter(|&i| {
            let (a, b) = (run(100 + i, 7, 400, 10_000, 3), run(900 + i, 7, 400, 10_000, 3));
            let (low, high) = at(&compare(&a, &b, i), "p50").interval;
            low <= 1.0 && high >= 1.0
        });
        let covered = covered.count();
        assert!((24..=30).contains(&covered), "{covered} of 30");
    }

    #[test]
    fn one_seed_one_answer_and_few_repetitions_or_samples_are_said() {
        let (a, b) = (run(1, 2, 100, 1_000, 1), run(2, 2, 100, 1_000, 1));
        assert_eq!(compare(&a, &b, 5), compare(&a, &b, 5));
        let few = compare(&a, &b, 5);
        assert_eq!(at(&few, "p50").few.as_deref(), Some("2 of 5 repetitions"));
        let (a, b) = (run(1, 5, 100, 1_000, 1), run(2, 5, 100, 1_000, 1));
        let few = compare(&a, &b, 5);
        assert_eq!(
            (at(&few, "p50").few.as_deref(), at(&few, "p99").few.as_deref()),
            (None, Some("100 samples"))
        );
        assert!(
            few.table("t")
                .to_text(crate::WHOLE)
                .contains("no difference shown")
        );
    }

    #[test]
    fn cases_of_one_run_only_and_without_samples_are_said_or_left_out() {
        let mut a = run(1, 2, 100, 1_000, 1);
        a.cases.push(Case::new("gone", Measure::new("m", "")));
        let comparison = compare(&a, &run(2, 2, 100, 1_000, 1), 1);
        assert_eq!(comparison.unmatched, ["'gone' is only in the first run"]);
        let empty = RunRecord {
            cases: vec![Case::new("c", Measure::new("m", ""))],
            ..RunRecord::default()
        };
        assert!(compare(&a, &empty, 1).rows.is_empty());
    }
}
