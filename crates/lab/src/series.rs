//! Latency over time.

use serde::{Deserialize, Serialize};

/// Latencies with the moment of each, in the order they were measured.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Series {
    points: Vec<(u64, u64)>,
}

impl Series {
    /// Room for so many points; beyond that [`Series::push`] allocates.
    pub fn with_capacity(points: usize) -> Series {
        Series {
            points: Vec::with_capacity(points),
        }
    }

    /// Adds a latency, `at_ns` after the start of the measurement.
    pub fn push(&mut self, at_ns: u64, latency_ns: u64) {
        self.points.push((at_ns, latency_ns));
    }

    /// The points: nanoseconds since the start, latency in nanoseconds.
    pub fn points(&self) -> &[(u64, u64)] {
        &self.points
    }
}

/// The latencies of one span of time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Bin {
    /// Which span.
    pub(crate) index: usize,
    pub(crate) count: u64,
    pub(crate) p50: u64,
    pub(crate) p99: u64,
    pub(crate) max: u64,
}

impl Series {
    /// The end of the last point's time.
    pub(crate) fn span_ns(&self) -> u64 {
        self.points.iter().map(|&(at, _)| at).max().unwrap_or(0).max(1)
    }

    /// The series cut into `bins` equal spans of time; empty spans are left out.
    pub(crate) fn bins(&self, bins: usize) -> Vec<Bin> {
        let span = u128::from(self.span_ns()) + 1;
        let mut sorted: Vec<(usize, u64)> = self
            .points
            .iter()
            .map(|&(at, latency)| ((u128::from(at) * bins as u128 / span) as usize, latency))
            .collect();
        sorted.sort_unstable();
        sorted
            .chunk_by(|a, b| a.0 == b.0)
            .map(|chunk| {
                let rank = |percent: usize| chunk[(chunk.len() * percent).div_ceil(100).max(1) - 1].1;
                Bin {
                    index: chunk[0].0,
                    count: chunk.len() as u64,
                    p50: rank(50),
                    p99: rank(99),
                    max: rank(100),
                }
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_cover_the_whole_span_and_keep_every_point() {
        let mut series = Series::with_capacity(100);
        (0..100).for_each(|i| series.push(i * 10, 100 - i));
        let bins = series.bins(10);
        assert_eq!(bins.len(), 10);
        assert_eq!(bins.iter().map(|bin| bin.count).sum::<u64>(), 100);
        assert_eq!(
            bins[0],
            Bin {
                index: 0,
                count: 10,
                p50: 95,
                p99: 100,
                max: 100
            }
        );
        assert_eq!(bins[9].max, 10);
    }

    #[test]
    fn one_point_or_none_is_no_special_case() {
        let mut series = Series::default();
        assert_eq!(series.bins(10), []);
        series.push(0, 7);
        assert_eq!(
            series.bins(10),
            [Bin {
                index: 0,
                count: 1,
                p50: 7,
                p99: 7,
                max: 7
            }]
        );
    }
}
