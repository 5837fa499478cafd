//! What the tests of days share: numbers from the environment, and what a comparison has to come to.

use tickwire_cosim::{Comparison, Troubles};

/// A number from the environment, or this one.
pub(crate) fn number(name: &str, default: u64) -> u64 {
    std::env::var(name)
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(default)
}

/// Nothing differs; what was compared is printed.
#[track_caller]
pub(crate) fn same(found: &Comparison, seed: u64) {
    for difference in found.differences.iter().take(20) {
        println!("{difference}");
    }
    assert_eq!(found.differing, 0, "seed {seed}");
    println!(
        "{} orders, {} tops, {} levels, {} counters the same; {} orders stopped; clocks from a packet to its order: average \
         {:.2}, p50 {}, p99 {}",
        found.orders,
        found.tops,
        found.levels,
        found.counters,
        found.stopped,
        found.average().unwrap_or(0.0),
        found.quantile(0.5).unwrap_or(0),
        found.quantile(0.99).unwrap_or(0),
    );
}

/// What a day has to go through: nothing, losses and damages in dense traffic, gaps.
pub(crate) fn troubles() -> [Troubles; 3] {
    [
        Troubles::default(),
        Troubles {
            loss: 30_000,
            damage: 10_000,
            gap_max: 8,
            busy_percent: 30,
            ..Troubles::default()
        },
        // Both lines lose so much that software has to mend the stream again and again.
        Troubles {
            loss: 150_000,
            skew_max: 20,
            ..Troubles::default()
        },
    ]
}
