//! Whether a market maker quotes as much as it promised: how many of its series, how much of the time, how
//! wide, how large.

use alloc::boxed::Box;
use alloc::vec;
use tickwire_market::{Nanos, Price, Qty};

/// What was promised. Venues word it alike: a share of the series, two-sided, not wider than, not smaller
/// than, for a share of the time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ObligationsConfig {
    /// Widest valid quote, ask less bid.
    pub width_max: Price,
    /// Least contracts on both sides.
    pub size_min: Qty,
    /// Share of the series that must be quoted at once, in hundredths of a per cent.
    pub series_min_bp: u32,
    /// Share of the time in which so many must be, in hundredths of a per cent.
    pub time_min_bp: u32,
}

/// What a series kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Series {
    /// Quoted on both sides, in nanoseconds.
    pub two_sided_ns: u64,
    /// With the promised width and size.
    pub valid_ns: u64,
    /// Width times time while quoted on both sides, in 1e-9 points and nanoseconds.
    pub width_ns: i128,
    /// Smaller side's contracts times time while quoted on both sides.
    pub size_ns: u128,
}

/// What was kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Kept {
    /// How long it was measured, in nanoseconds.
    pub observed_ns: u64,
    /// Of that, with enough series valid at once.
    pub enough_ns: u64,
    /// Share of the time with enough series, in hundredths of a per cent.
    pub time_bp: u32,
    /// Average share of the series that were valid, in hundredths of a per cent.
    pub series_bp: u32,
    /// Average width of two-sided quotes; 0 without any.
    pub width: Price,
    /// Average size of the smaller side of two-sided quotes, in hundredths of a contract.
    pub size_centi: u64,
    /// Whether what was promised was kept.
    pub is_kept: bool,
}

/// What was kept of one series, while it was measured.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SeriesKept {
    /// Share of the time with a bid and an offer, in hundredths of a per cent.
    pub two_sided_bp: u32,
    /// Share of the time with the promised width and size.
    pub valid_bp: u32,
    /// Average width while it had both; 0 if it never had.
    pub width: Price,
    /// Average size of the smaller side meanwhile, in hundredths of a contract.
    pub size_centi: u64,
}

/// A series' quote as it is.
#[derive(Clone, Copy, Debug, Default)]
struct Quote {
    since: Nanos,
    width: i64,
    size: u32,
    is_two_sided: bool,
    is_valid: bool,
}

/// Measures quotes over time. Bounded by the number of series; integers only.
#[derive(Clone, Debug)]
pub struct Obligations {
    config: ObligationsConfig,
    quotes: Box<[Quote]>,
    series: Box<[Series]>,
    valid: u32,
    /// Since when `valid` is what it is; `None` while nothing is measured.
    since: Option<Nanos>,
    observed_ns: u64,
    enough_ns: u64,
    /// Valid series times time.
    valid_ns: u128,
}

impl Obligations {
    /// Not measuring yet; no series quoted.
    pub fn new(config: ObligationsConfig, series: usize) -> Obligations {
        Obligations {
            config,
            quotes: vec![Quote::default(); series].into_boxed_slice(),
            series: vec![Series::default(); series].into_boxed_slice(),
            valid: 0,
            since: None,
            observed_ns: 0,
            enough_ns: 0,
            valid_ns: 0,
        }
    }

    /// Continuous trading begins: obligations count from now on.
    pub fn start(&mut self, now: Nanos) {
        if self.since.is_none() {
            self.since = Some(now);
            self.quotes.iter_mut().for_each(|quote| quote.since = now);
        }
    }

    /// It ends.
    pub fn stop(&mut self, now: Nanos) {
        self.settle(now);
        for series in 0..self.quotes.len() {
            self.settle_series(now, series);
        }
        self.since = None;
    }

    /// A series' quote changed. A side without a price or contracts is not quoted. Series beyond the number
    /// are ignored.
    pub fn on_quote(
        &mut self,
        now: Nanos,
        series: u32,
        bid: Option<(Price, Qty)>,
        ask: Option<(Price, Qty)>,
    ) {
        let at = series as usize;
        if at >= self.quotes.len() {
            return;
        }
        self.settle(now);
        self.settle_series(now, at);
        let was_valid = self.quotes[at].is_valid;
        let mut quote = Quote {
            since: now,
            ..Quote::default()
        };
        if let (Some((bid, bid_qty)), Some((ask, ask_qty))) = (bid, ask) {
            quote.width = ask.raw().saturating_sub(bid.raw());
            quote.size = bid_qty.0.min(ask_qty.0);
            quote.is_two_sided = quote.size > 0;
            quote.is_valid = quote.is_two_sided
                && quote.width <= self.config.width_max.raw()
                && quote.size >= self.config.size_min.0;
        }
        self.valid += u32::from(quote.is_valid);
        self.valid -= u32::from(was_valid);
        self.quotes[at] = quote;
    }

    /// Whether so many series are quoted as they should be now.
    fn is_enough(&self) -> bool {
        u64::from(self.valid) * 10_000 >= self.quotes.len() as u64 * u64::from(self.config.series_min_bp)
    }

    fn settle(&mut self, now: Nanos) {
        let Some(since) = self.since else { return };
        let passed = now.since(since);
        self.observed_ns += passed;
        self.valid_ns += u128::from(self.valid) * u128::from(passed);
        if self.is_enough() {
            self.enough_ns += passed;
        }
        self.since = Some(since.max(now));
    }

    fn settle_series(&mut self, now: Nanos, at: usize) {
        let quote = &mut self.quotes[at];
        if self.since.is_some() && quote.is_two_sided {
            let passed = now.since(quote.since);
            let series = &mut self.series[at];
            series.two_sided_ns += passed;
            series.width_ns += i128::from(quote.width) * i128::from(passed);
            series.size_ns += u128::from(quote.size) * u128::from(passed);
            if quote.is_valid {
                series.valid_ns += passed;
            }
        }
        quote.since = quote.since.max(now);
    }

    /// What was kept until now.
    pub fn kept(&mut self, now: Nanos) -> Kept {
        self.settle(now);
        for series in 0..self.quotes.len() {
            self.settle_series(now, series);
        }
        let all = u128::from(self.observed_ns) * self.quotes.len() as u128;
        let two_sided: u128 = self.series.iter().map(|s| u128::from(s.two_sided_ns)).sum();
        let width: i128 = self.series.iter().map(|s| s.width_ns).sum();
        let size: u128 = self.series.iter().map(|s| s.size_ns).sum();
        let time_bp = share(self.enough_ns.into(), self.observed_ns.into());
        Kept {
            observed_ns: self.observed_ns,
            enough_ns: self.enough_ns,
            time_bp,
            series_bp: share(self.valid_ns, all),
            width: Price::from_raw(width.checked_div(two_sided as i128).unwrap_or(0) as i64),
            size_centi: (size * 100).checked_div(two_sided).unwrap_or(0) as u64,
            is_kept: self.observed_ns > 0 && time_bp >= self.config.time_min_bp,
        }
    }

    /// What each series kept, until the last call of [`Obligations::kept`] or [`Obligations::stop`].
    pub fn series(&self) -> &[Series] {
        &self.series
    }

    /// The same as shares and averages.
    pub fn series_kept(&self) -> impl Iterator<Item = SeriesKept> + '_ {
        self.series.iter().map(|series| {
            let (observed, two_sided) = (self.observed_ns.into(), u128::from(series.two_sided_ns));
            SeriesKept {
                two_sided_bp: share(two_sided, observed),
                valid_bp: share(series.valid_ns.into(), observed),
                width: Price::from_raw(series.width_ns.checked_div(two_sided as i128).unwrap_or(0) as i64),
                size_centi: (series.size_ns * 100).checked_div(two_sided).unwrap_or(0) as u64,
            }
        })
    }

    /// What was promised.
    pub fn config(&self) -> &ObligationsConfig {
        &self.config
    }
}

/// A part in hundredths of a per cent; of nothing, none.
fn share(part: u128, of: u128) -> u32 {
    (part * 10_000).checked_div(of).unwrap_or(0) as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::quoter::tests::Random;
    use alloc::vec::Vec;

    const CONFIG: ObligationsConfig = ObligationsConfig {
        width_max: Price::from_raw(20),
        size_min: Qty(5),
        series_min_bp: 6_000,
        time_min_bp: 9_000,
    };

    fn side(price: i64, qty: u32) -> Option<(Price, Qty)> {
        Some((Price::from_raw(price), Qty(qty)))
    }

    #[test]
    fn a_quote_counts_as_long_as_it_is_there_narrow_and_large_enough() {
        let mut obligations = Obligations::new(CONFIG, 2);
        obligations.on_quote(Nanos(0), 0, side(100, 5), side(120, 9));
        obligations.start(Nanos(1_000));
        // One of two is not six of ten.
        assert_eq!(obligations.kept(Nanos(1_100)).enough_ns, 0);
        obligations.on_quote(Nanos(1_200), 1, side(100, 5), side(110, 5));
        obligations.on_quote(Nanos(1_800), 1, side(100, 5), side(121, 5));
        obligations.on_quote(Nanos(1_900), 1, None, side(121, 5));
        let kept = obligations.kept(Nanos(2_000));
        assert_eq!(
            (kept.observed_ns, kept.enough_ns, kept.time_bp),
            (1_000, 600, 6_000)
        );
        assert_eq!((kept.series_bp, kept.is_kept), (8_000, false));
        let first = obligations.series()[0];
        assert_eq!((first.two_sided_ns, first.valid_ns), (1_000, 1_000));
        let second = obligations.series()[1];
        assert_eq!((second.two_sided_ns, second.valid_ns), (700, 600));
        // 1000 at 20, 600 at 10 and 100 at 21, of 1700.
        assert_eq!(
            (kept.width, kept.size_centi),
            (Price::from_raw(28_100 / 1_700), 500)
        );
        let each: Vec<SeriesKept> = obligations.series_kept().collect();
        assert_eq!(
            each[1],
            SeriesKept {
                two_sided_bp: 7_000,
                valid_bp: 6_000,
                // 600 at 10 and 100 at 21, of 700.
                width: Price::from_raw(8_100 / 700),
                size_centi: 500,
            }
        );
        obligations.stop(Nanos(2_000));
        assert_eq!(obligations.kept(Nanos(9_000)), kept, "the market is closed");
    }

    #[test]
    fn what_is_kept_is_what_a_recount_of_every_nanosecond_finds() {
        let mut random = Random(7);
        let mut obligations = Obligations::new(CONFIG, 3);
        let mut quotes: Vec<Option<(i64, u32)>> = alloc::vec![None; 3];
        obligations.start(Nanos(0));
        let (mut enough, mut valid_all) = (0_u64, 0_u64);
        for now in 0..20_000_u64 {
            if random.one_in(3) {
                let at = random.below(3) as usize;
                quotes[at] = (!random.one_in(4)).then(|| (random.below(30) as i64, random.below(10) as u32));
                let quote = |price: i64| quotes[at].and_then(|(width, qty)| side(price * width, qty));
                obligations.on_quote(Nanos(now), at as u32, quote(0), quote(1));
            }
            let is_valid = |q: &&Option<(i64, u32)>| q.is_some_and(|(w, n)| w <= 20 && n >= 5);
            let valid = quotes.iter().filter(is_valid).count() as u64;
            valid_all += valid;
            enough += u64::from(valid >= 2);
        }
        let kept = obligations.kept(Nanos(20_000));
        assert_eq!((kept.observed_ns, kept.enough_ns), (20_000, enough));
        assert_eq!(u64::from(kept.series_bp), valid_all * 10_000 / 60_000);
    }
}
