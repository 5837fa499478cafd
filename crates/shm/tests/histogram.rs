//! Histograms in words against the lab's, which keep three digits, and against sorting.

use std::sync::atomic::AtomicU64;
use tickwire_market::Nanos;
use tickwire_shm::layout::BUCKETS;
use tickwire_shm::*;
use tickwire_testdata::Rng;

#[test]
fn buckets_cover_the_scale_without_gap_or_overlap() {
    let mut next = 0;
    for bucket in 0..BUCKETS {
        let (least, greatest) = bounds_of(bucket);
        assert_eq!(least, next, "bucket {bucket}");
        assert!(
            greatest - least <= least / 32,
            "bucket {bucket}: {least} to {greatest} is more than 1/32"
        );
        assert_eq!((bucket_of(least), bucket_of(greatest)), (bucket, bucket));
        next = greatest + 1;
    }
    assert_eq!(next, 1 << 40);
    for beyond in [1 << 40, 1 << 50, u64::MAX] {
        assert_eq!(bucket_of(beyond), BUCKETS - 1);
    }
}

/// Latencies as they are: most within a few microseconds, some of milliseconds.
fn latencies(count: usize) -> Vec<u64> {
    let mut rng = Rng::new(4);
    let draw = |_| match rng.below(100) {
        0 => rng.below(50_000_000),
        1..10 => rng.below(200_000),
        _ => 100 + rng.below(2_000),
    };
    (0..count).map(draw).collect()
}

#[test]
fn quantiles_agree_with_the_labs_within_a_bucket() {
    let count = if cfg!(miri) { 50 } else { 100_000 };
    let config = RegionConfig {
        histograms: 1,
        books: 0,
        supers: 0,
        rings: 0,
        ..RegionConfig::default()
    };
    let words: Vec<AtomicU64> = (0..config.layout().expect("good").words)
        .map(|_| AtomicU64::new(0))
        .collect();
    let identity = Identity {
        generation: Nanos(1),
        pid: 1,
    };
    let region = Region::format(&words, &config, identity).expect("a good configuration");
    let (index, mut writer) = region.claim_histogram().expect("one");
    assert!(region.claim_histogram().is_err(), "one only");
    let (mut own, mut lab) = (Histogram::default(), tickwire_lab::Histogram::new());
    let mut all = latencies(count);
    for &ns in &all {
        writer.record(ns);
        own.record(ns);
        lab.record(ns);
    }
    let read = region.reader().histogram(index).expect("one");
    assert_eq!(read, own, "what was written is what was counted");
    assert_eq!(
        (read.count, read.min, read.max),
        (lab.count(), lab.min(), lab.max())
    );
    assert_eq!(read.mean(), all.iter().sum::<u64>() / all.len() as u64);
    all.sort_unstable();
    for per_million in [
        1, 10_000, 250_000, 500_000, 900_000, 990_000, 999_000, 999_900, 1_000_000,
    ] {
        let found = read.at(per_million);
        let sorted = all[(all.len() as u64 * u64::from(per_million))
            .div_ceil(1_000_000)
            .max(1) as usize
            - 1];
        assert!(
            found >= sorted && found - sorted <= sorted / 32,
            "{per_million}: {found} {sorted}"
        );
        let theirs = lab.at_quantile(f64::from(per_million) / 1e6);
        assert!(
            found.abs_diff(theirs) <= theirs / 32 + theirs / 1_000 + 1,
            "{per_million}: {found} {theirs}"
        );
    }
    assert_eq!(read.buckets().map(|(_, _, count)| count).sum::<u64>(), read.count);
}

#[test]
fn sums_and_differences_of_histograms_are_those_of_their_values() {
    let all = latencies(300);
    let of = |values: &[u64]| {
        let mut histogram = Histogram::default();
        values.iter().for_each(|&ns| histogram.record(ns));
        histogram
    };
    let (first, second) = all.split_at(100);
    let mut sum = of(first);
    sum.add(&of(second));
    sum.add(&Histogram::default());
    assert_eq!(sum, of(&all));
    let later = of(&all).since(&of(first));
    assert_eq!((later.count, later.sum), (200, second.iter().sum()));
    assert_eq!(
        later.buckets().collect::<Vec<_>>(),
        of(second).buckets().collect::<Vec<_>>()
    );
    let mut none = Histogram::default();
    assert_eq!((none.at(500_000), none.mean(), none.max), (0, 0, 0));
    none.add(&of(first));
    assert_eq!(none, of(first));
}
