//! What a stamp costs, how far two of them are apart with nothing in between, and whether the clock kept its
//! rate.

use tickwire_lab::{Histogram, Probe};
use tickwire_runtime::clock::{Clock, ClockSource, tsc};

/// A rate that is off by more than this is no invariant counter: parts per billion.
const DRIFT_ALLOWED_PPB: u64 = 500_000;

/// Measures the probe on the core that this thread runs on: some milliseconds.
pub(super) fn measure(clock: &Clock) -> Probe {
    const ROUNDS: usize = 200;
    const STAMPS: u64 = 500;
    let mut costs: Vec<u64> = (0..ROUNDS)
        .map(|_| {
            let begin = tsc();
            for _ in 0..STAMPS {
                std::hint::black_box(tsc());
            }
            clock.span_ns(10 * (tsc() - begin)) / (STAMPS + 1)
        })
        .collect();
    costs.sort_unstable();
    let mut apart = Histogram::new();
    let mut step = u64::MAX;
    for _ in 0..20_000 {
        let (first, second) = (tsc(), tsc());
        apart.record(clock.span_ns(second.saturating_sub(first)));
        step = step.min(second.saturating_sub(first).max(1));
    }
    // A counter moves by steps that may be larger than its unit; no span between two readings is smaller.
    let step_ns = match clock.source() {
        ClockSource::Tsc => clock.span_ns(1).max(1),
        ClockSource::Kernel => step,
    };
    let source = match clock.source() {
        ClockSource::Tsc => format!("tsc, {:.3} GHz, invariant", clock.frequency_hz() as f64 / 1e9),
        ClockSource::Kernel => "clock_gettime".to_owned(),
    };
    Probe {
        source,
        cost_tenths_ns: (costs[0], costs[ROUNDS / 2]),
        apart_ns: apart.at_quantile(0.5),
        step_ns,
        drift_ppb: 0,
        warning: clock.warning().map(str::to_owned),
    }
}

/// Compares the rate that the run was measured with with the one that the kernel's clock gives by now.
pub(super) fn watch_drift(probe: &mut Probe, clock: &Clock) {
    let mut now = clock.clone();
    now.resync();
    let (before, after) = (clock.frequency_hz(), now.frequency_hz());
    probe.drift_ppb = (u128::from(before.abs_diff(after)) * 1_000_000_000 / u128::from(before.max(1))) as u64;
    if probe.drift_ppb > DRIFT_ALLOWED_PPB && probe.warning.is_none() {
        probe.warning = Some(format!(
            "the counter ran {} parts per million off the kernel's clock: it is not invariant, use the kernel's",
            probe.drift_ppb / 1_000
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_costs_something_and_the_rate_holds() {
        let clock = Clock::calibrate();
        let mut probe = measure(&clock);
        watch_drift(&mut probe, &clock);
        let (least, median) = probe.cost_tenths_ns;
        assert!(least > 0 && least <= median && probe.step_ns > 0, "{probe:?}");
        assert!(!probe.source.is_empty());
    }
}
