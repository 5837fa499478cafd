//! Prints a report made of invented latencies, to look at:
//! `cargo run -p tickwire-lab --example specimen > specimen.html`.

use tickwire_lab::{Probes, Report, Stage};

/// A generator good enough for a picture (splitmix64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Around `typical`, with a tail.
    fn latency(&mut self, typical: f64) -> u64 {
        let tail = if self.next() < 0.002 {
            10.0 / (self.next() + 0.01)
        } else {
            1.0
        };
        (typical * (0.85 + 0.2 * self.next() + 0.1 * self.next().powi(8)) * tail) as u64
    }
}

fn main() {
    let mut random = Random(1);
    let mut probes = Probes::new(40_000);
    let mut now = 1_000_000u64;
    for id in 0..40_000u64 {
        now += (-random.next().max(1e-9).ln()
            * if (12_000..14_000).contains(&id) {
                60_000.0
            } else {
                400_000.0
            }) as u64;
        probes.begin(now);
        let mut at = now;
        for (stage, typical) in Stage::ALL
            .into_iter()
            .zip([1_400.0, 60.0, 35.0, 18.0, 40.0, 2_600.0])
        {
            at += random.latency(typical);
            probes.mark(stage, at);
        }
        probes.commit(id);
    }
    let times = probes.stage_times(|ticks| ticks);
    let total = times.get(Stage::Total);
    let report = Report::new("Specimen: tick to trade")
        .paragraph("All figures on this page are invented; it shows what a report looks like.")
        .facts(
            "Host",
            &[
                ("processor", "Example 9000, 2 of 2 cores"),
                ("kernel", "6.18"),
                ("clock", "tsc, 2.45 GHz"),
            ],
        )
        .listing("Command", "tickwire demo --seed 1 --loss 1%")
        .table(times.table("Tick to trade, per stage"))
        .percentiles("Percentiles", &times.named())
        .histogram("Histogram of the total", &[("total", total)])
        .histogram("Histograms per stage", &times.named())
        .timeseries("Total over time", &probes.series(Stage::Total, |ticks| ticks));
    println!("{}", report.to_html());
}
