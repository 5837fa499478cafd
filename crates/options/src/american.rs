//! American options on futures: early exercise, by the integral equation of the exercise boundary.
//!
//! The method is that of L. Andersen, M. Lake and D. Offengenden, "High-performance American option pricing"
//! (J. Computational Finance 20, 2016): the boundary of a put, as ln²β over √τ, is a polynomial through
//! Chebyshev's nodes; their fixed-point system A (smooth pasting) moves it, the integrals by Gauss-Legendre
//! over an angle in which they are smooth at both ends (u = τ·cos²θ); the price is Black's plus the integral
//! of what early exercise earns. On a future carry is zero, so that the boundary, in units of the strike,
//! depends on time, volatility and rate alone, and a call is a put with forward and strike exchanged
//! (McDonald and Schroder 1998): one [`Boundary`] prices every strike, forward and kind.
//!
//! [`Sheet`] is the fast path: the premium of early exercise of one expiry, for a range of volatilities, as a
//! polynomial in two variables: the distance from the boundary in deviations, and the logarithm of the
//! volatility. It has to be made anew when time or rate change, and not when volatilities do: a surface is
//! rebuilt without solving anything.
//!
//! Domain: that of [`crate::black76`], with `rate·years` up to 2 and `σ√T` from 0.001 to 3 where early
//! exercise has a value at all; refused by name beyond. With a rate of zero or less an option on a future is
//! never exercised early: its value is Black's.

use crate::black76;
use crate::kernel::density_and_cdf;
use crate::{Invalid, Kind, Terms};
use alloc::vec;
use alloc::vec::Vec;
use core::f64::consts::PI;
use core::fmt;

/// How finely a boundary is computed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Effort {
    /// Degree of the polynomial of the boundary, 2 to 64.
    pub degree: usize,
    /// Points of the integrals that move the boundary, 2 to 200.
    pub boundary_points: usize,
    /// Points of the integral that prices, 2 to 200.
    pub price_points: usize,
    /// Rounds at most.
    pub rounds_max: u32,
}

impl Effort {
    /// The reference: absolute error below 2e-10 of a put's strike, or of a call's forward, where rate·years
    /// is at most 0.1, and below 1e-8 of it all over the domain (compared with degree 40, 64 and 200 points).
    /// Both are reached where σ√T is 3, at the domain's edge.
    pub const REFERENCE: Effort = Effort {
        degree: 24,
        boundary_points: 32,
        price_points: 160,
        rounds_max: 40,
    };
    /// Quick: absolute error below 1e-8 of a put's strike, or of a call's forward, where rate·years is at
    /// most 0.1, and below 4e-7 of it all over the domain; in a third of the time or less.
    pub const QUICK: Effort = Effort {
        degree: 12,
        boundary_points: 24,
        price_points: 80,
        rounds_max: 14,
    };
}

/// Why an American option has no value here.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AmericanError {
    /// Not even a European one has.
    Terms(Invalid),
    /// `rate·years` above 2, or `σ√T` outside 0.001 to 3: the boundary is not computed there.
    Domain,
    /// An effort outside its ranges.
    Effort,
    /// A volatility outside those the sheet was made for.
    Sheet,
}

impl fmt::Display for AmericanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Terms(invalid) => invalid.fmt(f),
            Self::Domain => {
                f.write_str("American values need rate * years up to 2 and vol * sqrt(years) from 0.001 to 3")
            }
            Self::Effort => {
                f.write_str("effort out of range: degree 2 to 64, points 2 to 200, at least one round")
            }
            Self::Sheet => f.write_str("volatility outside the range the sheet was made for"),
        }
    }
}

impl core::error::Error for AmericanError {}

impl From<Invalid> for AmericanError {
    fn from(invalid: Invalid) -> Self {
        Self::Terms(invalid)
    }
}

/// Points of Gauss-Legendre over an angle θ from 0 to π/2: `(sin θ, cos θ, weight)`. An integral over a time
/// τ − u = τ·sin²θ is smooth in θ at both ends, where roots of the time gone and of the time left are not in
/// u.
#[derive(Clone, Debug)]
struct Rule(Vec<(f64, f64, f64)>);

impl Rule {
    fn new(points: usize) -> Rule {
        let n = points as f64;
        let point = |i: usize| {
            let mut x = -libm::cos(PI * (i as f64 + 0.75) / (n + 0.5));
            let mut slope = 1.0;
            for _ in 0..20 {
                let (mut p, mut before) = (x, 1.0);
                for k in 1..points {
                    let k = k as f64;
                    (p, before) = (((2.0 * k + 1.0) * x * p - k * before) / (k + 1.0), p);
                }
                slope = n * (x * p - before) / (x * x - 1.0);
                let step = p / slope;
                x -= step;
                if step.abs() < 1e-16 {
                    break;
                }
            }
            let theta = 0.25 * PI * (1.0 + x);
            let weight = 0.25 * PI * 2.0 / ((1.0 - x * x) * slope * slope);
            (libm::sin(theta), libm::cos(theta), weight)
        };
        Rule((0..points).map(point).collect())
    }
}

/// Chebyshev's extrema, cos(iπ/n) for i from 0 to n.
fn node(i: usize, n: usize) -> f64 {
    libm::cos(PI * i as f64 / n as f64)
}

/// The coefficients of the polynomial through values at [`node`]s, ready for [`chebyshev`].
fn coefficients(values: &[f64], into: &mut [f64]) {
    let n = values.len() - 1;
    for (k, into) in into.iter_mut().enumerate() {
        let mut sum = 0.0;
        for (i, value) in values.iter().enumerate() {
            let half = if i == 0 || i == n { 0.5 } else { 1.0 };
            // cos(ikπ/n) by its period: no argument beyond 2π loses digits.
            sum += half * value * libm::cos(PI * ((i * k) % (2 * n)) as f64 / n as f64);
        }
        let half = if k == 0 || k == n { 0.5 } else { 1.0 };
        *into = sum * 2.0 * half / n as f64;
    }
}

/// The polynomial at z.
fn chebyshev(coefficients: &[f64], z: f64) -> f64 {
    let (mut a, mut b) = (0.0, 0.0);
    for c in coefficients.iter().skip(1).rev() {
        (a, b) = (2.0 * z * a - b + c, a);
    }
    z * a - b + coefficients.first().unwrap_or(&0.0)
}

/// The integrals of one node.
struct Look {
    /// √τ
    root: f64,
    /// Where they look at the boundary, as arguments of its polynomial.
    at: Vec<f64>,
    /// Weights, with growth.
    weights: Vec<f64>,
    /// The polynomial's sums there.
    sums: Vec<f64>,
    before: Vec<f64>,
}

impl Look {
    fn new(tau: f64, boundary: &Boundary, rule: &Rule) -> Look {
        let root = libm::sqrt(tau);
        let share = root / libm::sqrt(boundary.years);
        let points = &rule.0;
        let weight = |&(_, cos, weight): &(f64, f64, f64)| {
            2.0 * weight * cos * libm::exp(boundary.rate * tau * cos * cos)
        };
        Look {
            root,
            at: points
                .iter()
                .map(|&(_, cos, _)| 2.0 * share * cos - 1.0)
                .collect(),
            weights: points.iter().map(weight).collect(),
            sums: vec![0.0; points.len()],
            before: vec![0.0; points.len()],
        }
    }

    /// Clenshaw's sums at all places at once: one place is a chain of multiplications that wait for each
    /// other.
    fn sum(&mut self, polynomial: &[f64]) {
        let (Some(&first), rest) = (polynomial.first(), polynomial.get(1..).unwrap_or(&[])) else {
            return;
        };
        self.sums.fill(0.0);
        self.before.fill(0.0);
        for &c in rest.iter().rev() {
            for ((sum, before), z) in self.sums.iter_mut().zip(&mut self.before).zip(&self.at) {
                (*sum, *before) = (2.0 * z * *sum - *before + c, *sum);
            }
        }
        for ((sum, before), z) in self.sums.iter_mut().zip(&self.before).zip(&self.at) {
            *sum = z * *sum - before + first;
        }
    }

    /// System A: β(τ) = N/D, where both are made of densities at the boundary.
    fn moved(&mut self, beta: f64, vol: f64, rate: f64, polynomial: &[f64], rule: &Rule) -> f64 {
        self.sum(polynomial);
        let deviation = vol * self.root;
        let ln_beta = libm::log(beta);
        let (mut top, mut bottom) = (0.0, 0.0);
        for ((&(sin, _, _), &grown), &square) in rule.0.iter().zip(&self.weights).zip(&self.sums) {
            let ln = ln_beta + libm::sqrt(square.max(0.0));
            let s = deviation * sin;
            let ((at_minus, _), (at_plus, below_plus)) = (
                density_and_cdf(ln / s - 0.5 * s),
                density_and_cdf(ln / s + 0.5 * s),
            );
            top += grown * at_minus;
            bottom += grown * (at_plus + s * below_plus);
        }
        let s = deviation;
        let (minus, plus) = (
            density_and_cdf(ln_beta / s - 0.5 * s),
            density_and_cdf(ln_beta / s + 0.5 * s),
        );
        let integral = rate * self.root / vol;
        let top = minus.0 / s + integral * top;
        let bottom = plus.0 / s + plus.1 + integral * bottom;
        top / bottom
    }
}

/// When early exercise of an option on a future pays: the boundary for one time, volatility and rate.
#[derive(Clone, Debug)]
pub struct Boundary {
    /// ln²β over z = 2·√(τ/T) − 1; empty where nothing is ever exercised early.
    polynomial: Vec<f64>,
    years: f64,
    vol: f64,
    rate: f64,
    rule: Rule,
    /// Rounds it took.
    rounds: u32,
    /// The last change of the boundary, in units of the strike.
    change: f64,
}

impl Boundary {
    /// Solves for the boundary. Allocates; for the slow path.
    pub fn new(years: f64, vol: f64, rate: f64, effort: Effort) -> Result<Boundary, AmericanError> {
        let any = Terms {
            forward: 1.0,
            strike: 1.0,
            years,
            vol,
            rate,
            kind: Kind::Put,
        };
        any.check(true)?;
        let is_few = |points: usize| !(2..=200).contains(&points);
        if !(2..=64).contains(&effort.degree)
            || is_few(effort.boundary_points)
            || is_few(effort.price_points)
            || effort.rounds_max == 0
        {
            return Err(AmericanError::Effort);
        }
        let mut boundary = Boundary {
            polynomial: Vec::new(),
            years,
            vol,
            rate,
            rule: Rule::new(effort.price_points),
            rounds: 0,
            change: 0.0,
        };
        let s = any.deviation();
        if rate > 0.0 && s > 0.0 {
            if rate * years > 2.0 || !(1e-3..=3.0).contains(&s) {
                return Err(AmericanError::Domain);
            }
            boundary.solve(effort);
        }
        Ok(boundary)
    }

    fn solve(&mut self, effort: Effort) {
        let n = effort.degree;
        let rule = Rule::new(effort.boundary_points);
        let (vol, rate) = (self.vol, self.rate);
        // Perpetual boundary, and the way to it as Barone-Adesi and Whaley guess it.
        let theta = 0.5 - libm::sqrt(0.25 + 2.0 * rate / (vol * vol));
        let forever = theta / (theta - 1.0);
        let tau = |i: usize| {
            let half = 0.5 * (1.0 + node(i, n));
            self.years * half * half
        };
        let guess = |i: usize| {
            let ln = libm::log(
                forever + (1.0 - forever) * libm::exp(-2.0 * vol * libm::sqrt(tau(i)) / (1.0 - forever)),
            );
            ln * ln
        };
        let mut values: Vec<f64> = (0..=n).map(|i| if i == n { 0.0 } else { guess(i) }).collect();
        let mut next = values.clone();
        let mut polynomial = vec![0.0; n + 1];
        // What stays the same in every round: where the integrals of each node look at the boundary, and
        // their weights.
        let mut looks: Vec<Look> = (0..n).map(|i| Look::new(tau(i), self, &rule)).collect();
        for round in 1..=effort.rounds_max {
            coefficients(&values, &mut polynomial);
            let mut change = 0.0f64;
            for (i, look) in looks.iter_mut().enumerate() {
                let before = libm::exp(-libm::sqrt(values[i]));
                let moved = look.moved(before, vol, rate, &polynomial, &rule);
                // A boundary is between the perpetual one and the strike.
                let moved = if moved.is_finite() {
                    moved.clamp(forever, 1.0)
                } else {
                    before
                };
                change = change.max((moved - before).abs());
                let ln = libm::log(moved);
                next[i] = ln * ln;
            }
            values.copy_from_slice(&next);
            (self.rounds, self.change) = (round, change);
            if change < 1e-14 {
                break;
            }
        }
        coefficients(&values, &mut polynomial);
        self.polynomial = polynomial;
    }

    /// The price of the underlying at which an option of this strike is exercised at once: below it a put,
    /// above it a call. None if it never is.
    pub fn critical(&self, kind: Kind, strike: f64) -> Option<f64> {
        if self.polynomial.is_empty() {
            return None;
        }
        let beta = libm::exp(ln_boundary(&self.polynomial, 1.0));
        Some(match kind {
            Kind::Put => strike * beta,
            Kind::Call => strike / beta,
        })
    }

    /// Rounds the solution took, and the last change of the boundary in units of the strike.
    pub fn convergence(&self) -> (u32, f64) {
        (self.rounds, self.change)
    }

    /// The value in points of an American option of the boundary's time, volatility and rate.
    pub fn price(&self, kind: Kind, forward: f64, strike: f64) -> Result<f64, AmericanError> {
        let terms = Terms {
            forward,
            strike,
            years: self.years,
            vol: self.vol,
            rate: self.rate,
            kind,
        };
        let european = black76::price(&terms)?;
        let exercise = kind.intrinsic(forward, strike);
        if self.polynomial.is_empty() {
            // At once is best where waiting earns nothing: no volatility and a rate.
            return Ok(if self.rate > 0.0 {
                european.max(exercise)
            } else {
                european
            });
        }
        let (spot, unit) = exchanged(kind, forward, strike);
        if libm::log(spot) <= ln_boundary(&self.polynomial, 1.0) {
            return Ok(exercise);
        }
        Ok((european + unit * self.premium(spot)).max(exercise))
    }

    /// What early exercise adds to a put of strike 1 on an underlying at `spot`, which is above the boundary.
    fn premium(&self, spot: f64) -> f64 {
        let root = libm::sqrt(self.years);
        let ln_spot = libm::log(spot);
        let mut sum = 0.0;
        for &(sin, cos, weight) in &self.rule.0 {
            let ln = ln_spot - ln_boundary(&self.polynomial, cos);
            let s = self.vol * root * sin;
            let ((_, below_minus), (_, below_plus)) = (
                density_and_cdf(0.5 * s - ln / s),
                density_and_cdf(-0.5 * s - ln / s),
            );
            let discounted = libm::exp(-self.rate * self.years * sin * sin);
            sum += 2.0 * weight * sin * cos * discounted * (below_minus - spot * below_plus);
        }
        (self.rate * self.years * sum).max(0.0)
    }
}

/// ln β at √(τ/T) = `share`.
fn ln_boundary(polynomial: &[f64], share: f64) -> f64 {
    -libm::sqrt(chebyshev(polynomial, 2.0 * share - 1.0).max(0.0))
}

/// A put of strike 1: its underlying, and how many points its unit is.
fn exchanged(kind: Kind, forward: f64, strike: f64) -> (f64, f64) {
    match kind {
        Kind::Put => (forward / strike, strike),
        Kind::Call => (strike / forward, forward),
    }
}

/// The value of one American option, by a boundary of its own: the reference. Allocates; a millisecond.
///
/// ```
/// use tickwire_options::american::{self, Effort};
/// use tickwire_options::{Kind, Terms, black76};
/// let terms = Terms { forward: 5000.0, strike: 5000.0, years: 0.25, vol: 0.15, rate: 0.045, kind: Kind::Call };
/// let premium = american::price(&terms, Effort::REFERENCE)? - black76::price(&terms)?;
/// assert!(premium > 0.2 && premium < 0.4);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn price(terms: &Terms, effort: Effort) -> Result<f64, AmericanError> {
    terms.check(true)?;
    Boundary::new(terms.years, terms.vol, terms.rate, effort)?.price(terms.kind, terms.forward, terms.strike)
}

/// Nodes of a sheet over ln σ, less one.
const VOLS: usize = 12;
/// Nodes of a sheet over the distance from the boundary, less one.
const DISTANCES: usize = 24;
/// Deviations from the boundary beyond which early exercise has no value: less than 1e-12 of the strike.
const FAR: f64 = 7.0;

/// The premium of early exercise of one expiry as a polynomial, for all strikes, forwards and volatilities of
/// a range.
#[derive(Clone, Debug)]
pub struct Sheet {
    /// Over ln σ: first ln β(T)/(σ√T), then each coefficient over the distance.
    rows: Vec<[f64; VOLS + 1]>,
    years: f64,
    rate: f64,
    ln_vols: (f64, f64),
}

/// A [`Sheet`] at one volatility: what a tick needs.
#[derive(Clone, Copy, Debug)]
pub struct Premium {
    coefficients: [f64; DISTANCES + 1],
    /// ln β(T)
    ln_beta: f64,
    /// σ√T
    s: f64,
}

impl Sheet {
    /// Solves for 13 volatilities from `vol_min` to `vol_max`, which is larger and at most 20 times as large.
    /// Allocates; some milliseconds with [`Effort::QUICK`].
    pub fn new(
        years: f64,
        rate: f64,
        vol_min: f64,
        vol_max: f64,
        effort: Effort,
    ) -> Result<Sheet, AmericanError> {
        if !(vol_min > 0.0 && vol_max > vol_min && vol_max <= 20.0 * vol_min) {
            return Err(AmericanError::Sheet);
        }
        let ln_vols = (libm::log(vol_min), libm::log(vol_max));
        let mut rows = vec![[0.0; VOLS + 1]; DISTANCES + 2];
        for v in 0..=VOLS {
            let vol = libm::exp(ln_vols.0 + (ln_vols.1 - ln_vols.0) * 0.5 * (1.0 + node(v, VOLS)));
            let boundary = Boundary::new(years, vol, rate, effort)?;
            if boundary.polynomial.is_empty() {
                continue; // no premium: zeros
            }
            let s = vol * libm::sqrt(years);
            let ln_beta = ln_boundary(&boundary.polynomial, 1.0);
            rows[0][v] = ln_beta / s;
            let premium = |i: usize| {
                let x = FAR * 0.5 * (1.0 + node(i, DISTANCES));
                boundary.premium(libm::exp(ln_beta + s * x)) / s
            };
            let values: Vec<f64> = (0..=DISTANCES).map(premium).collect();
            let mut over_distance = [0.0; DISTANCES + 1];
            coefficients(&values, &mut over_distance);
            for (row, c) in rows[1..].iter_mut().zip(over_distance) {
                row[v] = c;
            }
        }
        for row in &mut rows {
            let values = *row;
            coefficients(&values, row);
        }
        Ok(Sheet {
            rows,
            years,
            rate,
            ln_vols,
        })
    }

    /// The premium at one volatility: some hundred multiplications, no allocation; for the rebuild of a
    /// surface.
    pub fn at(&self, vol: f64) -> Result<Premium, AmericanError> {
        let (low, high) = self.ln_vols;
        let ln = libm::log(vol);
        // A hair of room for the ends themselves.
        if !(ln >= low - 1e-12 && ln <= high + 1e-12) {
            return Err(AmericanError::Sheet);
        }
        let z = (2.0 * (ln - low) / (high - low) - 1.0).clamp(-1.0, 1.0);
        let s = vol * libm::sqrt(self.years);
        let mut coefficients = [0.0; DISTANCES + 1];
        for (c, row) in coefficients.iter_mut().zip(&self.rows[1..]) {
            *c = s * chebyshev(row, z);
        }
        Ok(Premium {
            coefficients,
            ln_beta: s * chebyshev(&self.rows[0], z),
            s,
        })
    }

    /// The value of an American option, Black's plus the premium. The terms' time and rate are the sheet's,
    /// whatever they say.
    pub fn price(&self, terms: &Terms) -> Result<f64, AmericanError> {
        let terms = Terms {
            years: self.years,
            rate: self.rate,
            ..*terms
        };
        let european = black76::price(&terms)?;
        Ok(self
            .at(terms.vol)?
            .add(european, terms.kind, terms.forward, terms.strike))
    }
}

impl Premium {
    /// The American value, from the European one of the same terms.
    #[inline]
    pub fn add(&self, european: f64, kind: Kind, forward: f64, strike: f64) -> f64 {
        let (spot, unit) = exchanged(kind, forward, strike);
        let exercise = kind.intrinsic(forward, strike);
        if self.ln_beta == 0.0 {
            return european; // never exercised early
        }
        let x = (libm::log(spot) - self.ln_beta) / self.s;
        if x <= 0.0 {
            exercise
        } else if x >= FAR {
            european.max(exercise)
        } else {
            let premium = unit * chebyshev(&self.coefficients, 2.0 * x / FAR - 1.0);
            (european + premium.max(0.0)).max(exercise)
        }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use proptest::prelude::*;
    use std::println;

    fn put(forward: f64, strike: f64, years: f64, vol: f64, rate: f64) -> Terms {
        Terms {
            forward,
            strike,
            years,
            vol,
            rate,
            kind: Kind::Put,
        }
    }

    /// Andersen, Lake and Offengenden 2016, table 2: r = q = 5 %, σ = 25 %, S = K = 100, one year; the
    /// premium to eleven digits.
    #[test]
    fn the_published_premium_comes_out() {
        let terms = put(100.0, 100.0, 1.0, 0.25, 0.05);
        for (effort, bound) in [(Effort::REFERENCE, 1e-10), (Effort::QUICK, 2e-8)] {
            let premium = price(&terms, effort).unwrap() - black76::price(&terms).unwrap();
            println!("premium {premium:.12}");
            assert!((premium - 0.106_952_702_82).abs() < bound, "{premium}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]

        #[test]
        fn early_exercise_is_worth_something_and_never_less_than_exercise(
            years in 0.01f64..3.0, vol in 0.05f64..1.0, rate in 0.001f64..0.2, x in -3.0f64..3.0, is_call in any::<bool>(),
        ) {
            let kind = if is_call { Kind::Call } else { Kind::Put };
            let strike = 100.0 * (x * vol * years.sqrt()).exp();
            let terms = Terms { kind, ..put(100.0, strike, years, vol, rate) };
            let boundary = Boundary::new(years, vol, rate, Effort::QUICK).unwrap();
            let value = boundary.price(kind, 100.0, strike).unwrap();
            prop_assert!(value >= black76::price(&terms).unwrap() - 1e-9);
            prop_assert!(value >= kind.intrinsic(100.0, strike));
            let most = if is_call { 100.0 } else { strike };
            prop_assert!(value <= most);
            // A call is a put with forward and strike exchanged.
            let other = if is_call { Kind::Put } else { Kind::Call };
            let mirrored = boundary.price(other, strike, 100.0).unwrap();
            prop_assert!((value - mirrored).abs() < 1e-9 * value.max(1.0), "{value} {mirrored}");
            // At the boundary the value is that of exercise, and meets it smoothly.
            let at = boundary.critical(kind, strike).unwrap();
            let beyond = at * (1.0 - kind.sign() * 1e-6);
            let gap = (boundary.price(kind, beyond, strike).unwrap() - kind.intrinsic(beyond, strike)) / strike;
            prop_assert!((0.0..1e-6).contains(&gap), "{gap}");
        }
    }

    #[test]
    fn without_a_rate_nobody_exercises_early_and_without_volatility_at_once() {
        for rate in [0.0, -0.02] {
            let terms = put(90.0, 100.0, 0.5, 0.2, rate);
            assert_eq!(price(&terms, Effort::QUICK), Ok(black76::price(&terms).unwrap()));
        }
        assert_eq!(price(&put(90.0, 100.0, 0.5, 0.0, 0.05), Effort::QUICK), Ok(10.0));
        assert_eq!(price(&put(90.0, 100.0, 0.0, 0.3, 0.05), Effort::QUICK), Ok(10.0));
        let sheet = Sheet::new(0.5, 0.0, 0.1, 0.5, Effort::QUICK).unwrap();
        let terms = put(90.0, 100.0, 0.5, 0.2, 0.0);
        assert_eq!(sheet.price(&terms), Ok(black76::price(&terms).unwrap()));
    }

    /// In a call, strike and forward have changed places: what was promised of the strike alone was off by
    /// their ratio too.
    #[test]
    fn far_in_the_money_and_years_away_quick_is_within_what_it_says() {
        let terms = Terms {
            forward: 4_324.58,
            strike: 1_068.36,
            years: 6.29,
            vol: 1.003,
            rate: 0.1,
            kind: Kind::Call,
        };
        let [quick, reference] =
            [Effort::QUICK, Effort::REFERENCE].map(|effort| price(&terms, effort).unwrap());
        let gap = (quick - reference).abs();
        assert!(gap > 1e-8 * terms.strike && gap < 2e-7 * terms.forward, "{gap}");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn either_effort_is_as_near_as_it_says_all_over_the_domain(
            s in -3.0f64..0.477, grown in -3.0f64..0.301, years in -2.0f64..1.0, x in -3.0f64..3.0, is_call in any::<bool>(),
        ) {
            let [s, grown, years] = [s, grown, years].map(|e| 10.0f64.powf(e));
            let (vol, rate) = (s / years.sqrt(), grown / years);
            let kind = if is_call { Kind::Call } else { Kind::Put };
            let (forward, strike) = (100.0, 100.0 * (x * s).exp());
            let unit = if is_call { forward } else { strike };
            let finest = Effort { degree: 40, boundary_points: 64, price_points: 200, rounds_max: 100 };
            let [quick, reference, finest] = [Effort::QUICK, Effort::REFERENCE, finest]
                .map(|effort| Boundary::new(years, vol, rate, effort).unwrap().price(kind, forward, strike).unwrap() / unit);
            let is_near = grown <= 0.1;
            let [a, b] = [(quick - finest).abs(), (reference - finest).abs()];
            prop_assert!(a < if is_near { 1e-8 } else { 4e-7 }, "quick {a:e}");
            prop_assert!(b < if is_near { 2e-10 } else { 1e-8 }, "reference {b:e}");
        }
    }

    /// The largest errors stand at the domain's edges, which cases drawn at random seldom meet.
    #[test]
    fn either_effort_is_as_near_as_it_says_at_the_edges_of_the_domain() {
        let finest = Effort {
            degree: 40,
            boundary_points: 64,
            price_points: 200,
            rounds_max: 100,
        };
        for (s, grown) in [0.001, 0.1, 1.0, 2.6, 2.999]
            .into_iter()
            .flat_map(|s| [0.001, 0.05, 0.0885, 0.1, 1.0, 2.0].map(|grown| (s, grown)))
        {
            let [quick, reference, finest] = [Effort::QUICK, Effort::REFERENCE, finest]
                .map(|effort| Boundary::new(1.0, s, grown, effort).unwrap());
            let is_near = grown <= 0.1;
            for x in (-30..=30).map(|tenths| f64::from(tenths) / 10.0) {
                let (forward, strike) = (100.0, 100.0 * (x * s).exp());
                for (kind, unit) in [(Kind::Call, forward), (Kind::Put, strike)] {
                    let [quick, reference, finest] =
                        [&quick, &reference, &finest].map(|b| b.price(kind, forward, strike).unwrap() / unit);
                    let [a, b] = [(quick - finest).abs(), (reference - finest).abs()];
                    assert!(
                        a < if is_near { 1e-8 } else { 4e-7 },
                        "quick {a:e} {s} {grown} {x}"
                    );
                    assert!(
                        b < if is_near { 2e-10 } else { 1e-8 },
                        "reference {b:e} {s} {grown} {x}"
                    );
                }
            }
        }
    }

    #[test]
    fn what_is_out_of_the_domain_is_refused() {
        let quick = Effort::QUICK;
        assert_eq!(
            Boundary::new(50.0, 0.2, 0.05, quick).err(),
            Some(AmericanError::Domain)
        );
        assert_eq!(
            Boundary::new(1.0, 4.0, 0.05, quick).err(),
            Some(AmericanError::Domain)
        );
        assert_eq!(
            Boundary::new(1.0, f64::NAN, 0.05, quick).err(),
            Some(AmericanError::Terms(Invalid::Vol))
        );
        let none = Effort { degree: 1, ..quick };
        assert_eq!(
            Boundary::new(1.0, 0.2, 0.05, none).err(),
            Some(AmericanError::Effort)
        );
        let sheet = Sheet::new(0.5, 0.03, 0.1, 0.5, quick).unwrap();
        assert_eq!(sheet.at(0.6).err(), Some(AmericanError::Sheet));
        assert_eq!(sheet.at(f64::NAN).err(), Some(AmericanError::Sheet));
        assert_eq!(
            Sheet::new(0.5, 0.03, 0.5, 0.1, quick).err(),
            Some(AmericanError::Sheet)
        );
    }
}
