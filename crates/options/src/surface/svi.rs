//! SVI: total variance as a hyperbola over log-strike, and its fit to quoted volatilities.
//!
//! `w(k) = a + b·(ρ·(k − m) + √((k − m)² + σ²))` (J. Gatheral, "A parsimonious arbitrage-free implied
//! volatility parameterization", 2004). The fit is Levenberg and Marquardt's in coordinates in which every
//! point is a smile: ln of the least variance, ln b, artanh ρ, m, ln σ.

use super::arbitrage::density_factor;
use core::fmt;

/// A raw SVI slice.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Svi {
    /// Level of total variance.
    pub a: f64,
    /// Steepness of the wings, >= 0; `b·(1 + |ρ|)` at most 2 (R. Lee's bound of the wings, Math. Finance 14,
    /// 2004).
    pub b: f64,
    /// Turn, −1 to 1.
    pub rho: f64,
    /// Place of the turn, in log-strike.
    pub m: f64,
    /// How round it is, above 0.
    pub sigma: f64,
}

impl Svi {
    /// Whether it is a smile: finite, ranges as stated, variance above 0 everywhere.
    pub fn is_valid(&self) -> bool {
        let numbers = [self.a, self.b, self.rho, self.m, self.sigma];
        numbers.iter().all(|x| x.is_finite())
            && self.b >= 0.0
            && self.rho.abs() < 1.0
            && self.sigma > 0.0
            && self.b * (1.0 + self.rho.abs()) <= 2.0
            && self.least() > 0.0
    }

    /// The least total variance.
    pub fn least(&self) -> f64 {
        self.a + self.b * self.sigma * libm::sqrt(1.0 - self.rho * self.rho)
    }

    /// Total variance at a log-strike.
    pub fn variance(&self, k: f64) -> f64 {
        let x = k - self.m;
        self.a + self.b * (self.rho * x + libm::sqrt(x * x + self.sigma * self.sigma))
    }

    /// Volatility per √year at a log-strike.
    pub fn vol(&self, k: f64, years: f64) -> f64 {
        libm::sqrt(self.variance(k).max(0.0) / years)
    }

    /// Gatheral's g(k), in units of the lognormal density: below 0 a butterfly around k has a negative price.
    pub fn g(&self, k: f64) -> f64 {
        let x = k - self.m;
        let root = libm::sqrt(x * x + self.sigma * self.sigma);
        let first = self.b * (self.rho + x / root);
        let second = self.b * self.sigma * self.sigma / (root * root * root);
        density_factor(k, self.variance(k), first, second)
    }
}

/// One quoted volatility to fit to.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Quoted {
    /// ln(K/F).
    pub k: f64,
    /// Its volatility per √year.
    pub vol: f64,
    /// Its weight, >= 0: vega over the width of the market, for instance.
    pub weight: f64,
}

/// What a fit must hold.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Guard {
    /// Largest root mean square distance from the quotes, in volatility.
    pub rms_max: f64,
    /// The volatility at the money before, and how far a fit may move it.
    pub atm: Option<(f64, f64)>,
    /// Butterflies are checked up to this many deviations to both sides.
    pub deviations: f64,
}

impl Default for Guard {
    /// Half a volatility point of distance, any move, 4 deviations.
    fn default() -> Guard {
        Guard {
            rms_max: 0.005,
            atm: None,
            deviations: 4.0,
        }
    }
}

/// A fit that holds what its guard asks.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Fitted {
    /// The smile.
    pub svi: Svi,
    /// Root mean square distance from the quotes, weighted, in volatility.
    pub rms: f64,
    /// The largest distance of a quote with a weight, in volatility.
    pub worst: f64,
}

/// Why there is no fit; the smile before stays.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum FitError {
    /// Fewer than five quotes with a weight, at five strikes.
    TooFew(usize),
    /// A quote that is no volatility, by place.
    Quote(usize),
    /// Time to expiry is not above 0.
    Years,
    /// The best is this far from the quotes.
    Far(f64),
    /// It would move the volatility at the money to this.
    Step(f64),
    /// A butterfly at this log-strike would have a negative price.
    Butterfly(f64),
}

impl fmt::Display for FitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooFew(have) => write!(f, "{have} strikes with a weight: a fit needs 5"),
            Self::Quote(index) => write!(
                f,
                "quote {index}: log-strike, volatility and weight must be finite, volatility above 0"
            ),
            Self::Years => f.write_str("time to expiry must be above 0"),
            Self::Far(rms) => write!(f, "the best fit is {rms:.5} from the quotes"),
            Self::Step(atm) => write!(f, "the fit would move the volatility at the money to {atm:.4}"),
            Self::Butterfly(k) => write!(
                f,
                "the fit has a butterfly of negative price at log-strike {k:.4}"
            ),
        }
    }
}

impl core::error::Error for FitError {}

/// Rounds of one descent at most.
const ROUNDS_MAX: u32 = 80;
type Point = [f64; 5];

/// Fits a smile to quotes. Nine descents from different beginnings; the best one counts. Slow path, tenths of
/// milliseconds.
pub fn fit(quotes: &[Quoted], years: f64, guard: &Guard) -> Result<Fitted, FitError> {
    if !(years > 0.0 && years.is_finite()) {
        return Err(FitError::Years);
    }
    let is_good = |q: &Quoted| {
        q.k.is_finite() && q.vol.is_finite() && q.vol > 0.0 && q.weight.is_finite() && q.weight >= 0.0
    };
    if let Some(index) = quotes.iter().position(|q| !is_good(q)) {
        return Err(FitError::Quote(index));
    }
    let counted = |q: &&Quoted| q.weight > 0.0;
    let is_first =
        |(i, q): &(usize, &Quoted)| !quotes[..*i].iter().filter(counted).any(|before| before.k == q.k);
    let strikes = quotes
        .iter()
        .enumerate()
        .filter(|(_, q)| q.weight > 0.0)
        .filter(is_first)
        .count();
    if strikes < 5 {
        return Err(FitError::TooFew(strikes));
    }
    let total: f64 = quotes.iter().map(|q| q.weight).sum();
    let mut best = (f64::INFINITY, [0.0; 5]);
    let atm = quotes
        .iter()
        .filter(counted)
        .min_by(|a, b| a.k.abs().total_cmp(&b.k.abs()));
    let atm = atm.map_or(0.2, |q| q.vol);
    let s = atm * libm::sqrt(years);
    for roundness in [0.3, 1.0, 3.0] {
        for place in [-0.5, 0.0, 0.5] {
            // A slope of total variance of a third of a deviation's worth, least variance a tenth below.
            let start = [
                libm::log(0.9 * s * s),
                libm::log(0.3 * s),
                0.0,
                place * s,
                libm::log(roundness * s),
            ];
            let found = descend(quotes, years, start);
            if found.0 < best.0 {
                best = found;
            }
        }
    }
    let (cost, svi) = (best.0, of_point(&best.1));
    let rms = libm::sqrt(cost / total);
    // A comparison with NaN is false.
    let is_near = rms <= guard.rms_max;
    if !is_near || !svi.is_valid() {
        return Err(FitError::Far(rms));
    }
    let at_the_money = svi.vol(0.0, years);
    if guard
        .atm
        .is_some_and(|(before, step)| (at_the_money - before).abs() > step)
    {
        return Err(FitError::Step(at_the_money));
    }
    let deviation = at_the_money * libm::sqrt(years);
    for i in -40..=40 {
        let k = f64::from(i) / 40.0 * guard.deviations * deviation;
        if svi.g(k) < 0.0 {
            return Err(FitError::Butterfly(k));
        }
    }
    let worst = quotes
        .iter()
        .filter(counted)
        .map(|q| (svi.vol(q.k, years) - q.vol).abs());
    Ok(Fitted {
        svi,
        rms,
        worst: worst.fold(0.0, f64::max),
    })
}

/// The smile of a point of the descent's coordinates.
fn of_point(p: &Point) -> Svi {
    let (b, rho, sigma) = (libm::exp(p[1]), libm::tanh(p[2]), libm::exp(p[4]));
    // √(1 − tanh²) = 1/cosh
    let a = libm::exp(p[0]) - b * sigma / libm::cosh(p[2]);
    Svi {
        a,
        b,
        rho,
        m: p[3],
        sigma,
    }
}

/// The weighted sum of squares at a point.
fn cost(quotes: &[Quoted], years: f64, p: &Point) -> f64 {
    let svi = of_point(p);
    let square = |q: &Quoted| {
        let gap = svi.vol(q.k, years) - q.vol;
        q.weight * gap * gap
    };
    quotes.iter().map(square).sum()
}

/// Levenberg-Marquardt from a point: the least cost found, and where.
fn descend(quotes: &[Quoted], years: f64, start: Point) -> (f64, Point) {
    let mut p = start;
    let mut least = cost(quotes, years, &p);
    let mut damping = 1e-3;
    for _ in 0..ROUNDS_MAX {
        let (mut normal, mut right) = ([[0.0; 5]; 5], [0.0; 5]);
        let svi = of_point(&p);
        let moved: [Svi; 5] = core::array::from_fn(|j| {
            let mut p = p;
            p[j] += 1e-6;
            of_point(&p)
        });
        for q in quotes {
            let vol = svi.vol(q.k, years);
            let slopes = moved.map(|svi| (svi.vol(q.k, years) - vol) / 1e-6);
            for (i, row) in normal.iter_mut().enumerate() {
                right[i] += q.weight * slopes[i] * (q.vol - vol);
                for (cell, slope) in row.iter_mut().zip(slopes) {
                    *cell += q.weight * slopes[i] * slope;
                }
            }
        }
        let mut has_moved = false;
        for _ in 0..8 {
            let mut damped = normal;
            for (i, row) in damped.iter_mut().enumerate() {
                row[i] += damping * row[i] + 1e-300;
            }
            let Some(step) = solve(damped, right) else { break };
            let mut next = p;
            for (at, step) in next.iter_mut().zip(step) {
                *at += step.clamp(-1.0, 1.0);
            }
            let there = cost(quotes, years, &next);
            if there < least {
                has_moved = least - there > 1e-14 * least;
                (p, least, damping) = (next, there, damping * 0.2);
                break;
            }
            damping *= 6.0;
        }
        if !has_moved {
            break;
        }
    }
    (if least.is_finite() { least } else { f64::INFINITY }, p)
}

/// Gauss with the largest pivot.
fn solve(mut a: [[f64; 5]; 5], mut b: Point) -> Option<Point> {
    for i in 0..5 {
        let pivot = (i..5).max_by(|&x, &y| a[x][i].abs().total_cmp(&a[y][i].abs()))?;
        a.swap(i, pivot);
        b.swap(i, pivot);
        if a[i][i].abs() < 1e-290 || !a[i][i].is_finite() {
            return None;
        }
        let (upper, pivot, b_i) = (a[i], a[i][i], b[i]);
        for (row, b) in a.iter_mut().zip(&mut b).skip(i + 1) {
            let factor = row[i] / pivot;
            for (cell, above) in row.iter_mut().zip(upper).skip(i) {
                *cell -= factor * above;
            }
            *b -= factor * b_i;
        }
    }
    for i in (0..5).rev() {
        let known: f64 = (i + 1..5).map(|j| a[i][j] * b[j]).sum();
        b[i] = (b[i] - known) / a[i][i];
    }
    Some(b)
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use proptest::prelude::*;
    use std::vec::Vec;

    fn quotes(svi: &Svi, years: f64, noise: f64) -> Vec<Quoted> {
        let s = svi.vol(0.0, years) * years.sqrt();
        (-12..=8)
            .map(|i| {
                let k = f64::from(i) * 0.3 * s;
                let vol = svi.vol(k, years) + noise * f64::from(i * 7919 % 13 - 6) / 6.0;
                Quoted { k, vol, weight: 1.0 }
            })
            .collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]

        #[test]
        fn a_smile_is_found_again_in_its_own_volatilities(
            atm in 0.08f64..0.6, years in 0.02f64..2.0, rho in -0.8f64..0.3, wing in 0.1f64..0.6, place in -0.3f64..0.3, round in 0.4f64..2.0,
        ) {
            let s = atm * years.sqrt();
            let (b, sigma) = (wing * s, round * s);
            let svi = Svi { a: s * s * 0.8 - b * sigma * (1.0f64 - rho * rho).sqrt() * 0.5, b, rho, m: place * s, sigma };
            prop_assume!(svi.is_valid() && (-60..=60).all(|i| svi.g(f64::from(i) / 15.0 * svi.vol(0.0, years) * years.sqrt()) >= 0.0));
            let fitted = fit(&quotes(&svi, years, 0.0), years, &Guard::default()).unwrap();
            prop_assert!(fitted.rms < 1e-5 && fitted.worst < 5e-5, "{fitted:?} {svi:?}");
        }
    }

    /// Gatheral and Jacquier, "Arbitrage-free SVI volatility surfaces" (Quantitative Finance 14, 2014),
    /// example 3.1, by A. Vogt.
    const VOGT: Svi = Svi {
        a: -0.0410,
        b: 0.1331,
        rho: 0.3060,
        m: 0.3586,
        sigma: 0.4153,
    };

    #[test]
    fn the_known_smile_with_a_butterfly_arbitrage_is_caught() {
        assert!(VOGT.is_valid());
        assert!(
            (0..200).any(|i| VOGT.g(f64::from(i) * 0.01 - 0.5) < 0.0),
            "its g is below 0 near k = 0.8"
        );
        assert!(VOGT.g(0.8) < 0.0 && VOGT.g(0.0) > 0.0);
        let wide = Guard {
            deviations: 8.0,
            ..Guard::default()
        };
        let points: Vec<Quoted> = (-15..=15)
            .map(|i| f64::from(i) * 0.1)
            .map(|k| Quoted {
                k,
                vol: VOGT.vol(k, 1.0),
                weight: 1.0,
            })
            .collect();
        assert!(matches!(fit(&points, 1.0, &wide), Err(FitError::Butterfly(_))));
    }

    #[test]
    fn a_fit_stays_within_its_guard_rails() {
        let svi = Svi {
            a: 0.004,
            b: 0.02,
            rho: -0.5,
            m: 0.01,
            sigma: 0.08,
        };
        let clean = quotes(&svi, 0.25, 0.0);
        let atm = svi.vol(0.0, 0.25);
        let guard = |step| Guard {
            atm: Some((atm + 0.01, step)),
            ..Guard::default()
        };
        assert!(fit(&clean, 0.25, &guard(0.02)).is_ok());
        assert!(matches!(fit(&clean, 0.25, &guard(0.005)), Err(FitError::Step(_))));
        let noisy = fit(&quotes(&svi, 0.25, 0.002), 0.25, &Guard::default()).unwrap();
        assert!(noisy.rms < 0.002 && noisy.worst < 0.005);
        let wild = fit(&quotes(&svi, 0.25, 0.05), 0.25, &Guard::default());
        assert!(matches!(wild, Err(FitError::Far(_))), "{wild:?}");
        assert_eq!(
            fit(&clean[..4], 0.25, &Guard::default()),
            Err(FitError::TooFew(4))
        );
        let same = [clean[3]; 9];
        assert_eq!(fit(&same, 0.25, &Guard::default()), Err(FitError::TooFew(1)));
        let mut bad = clean.clone();
        bad[2].vol = f64::NAN;
        assert_eq!(fit(&bad, 0.25, &Guard::default()), Err(FitError::Quote(2)));
        assert_eq!(fit(&clean, 0.0, &Guard::default()), Err(FitError::Years));
    }
}
