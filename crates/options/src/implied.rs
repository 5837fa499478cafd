//! The volatility that a price implies, to the last digit the price has, in Black's and Bachelier's models.
//!
//! Black: the method of P. Jäckel, "Let's be rational" (Wilmott, January 2015), written anew. The price
//! becomes the normalised time value of the option out of the money, `b(s)`, which the tangent at its
//! inflection point divides into four regions; in each a monotone rational cubic (Delbourgo and Gregory, SIAM
//! J. Sci. Stat. Comput. 6, 1985) gives a first guess, in coordinates in which `b` is nearly straight, and
//! Householder steps of third order end it, at most [`STEPS_MAX`] of them. Bachelier: Halley steps in the
//! logarithm of the moneyness.
//!
//! Error: that of a price of 4 units in the last place, times the condition `P/(σ·vega)`. A deep option's
//! price has lost the digits of its time value before it gets here; hand over the price of the other one by
//! parity if there is one.

use crate::black76::{ln_ratio, time_value};
use crate::normal::{INV_SQRT_2PI, SQRT_2PI, cdf, decay, exp_half_square, inverse_cdf, mills};
use crate::{Invalid, Terms, black76};
use core::fmt;

/// Householder steps at most; what is left then is below the price's own last digit.
pub const STEPS_MAX: u32 = 12;

/// Why a price has no volatility.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum ImpliedError {
    /// The terms have no value at any volatility.
    Terms(Invalid),
    /// The price is not a finite number.
    Price,
    /// The price is below the discounted intrinsic value, in points: exercise would be worth more.
    BelowIntrinsic(f64),
    /// The price is not below what the option is worth at infinite volatility, in points.
    AboveMaximum(f64),
    /// No time is left: every volatility gives the same price.
    Expired,
}

impl fmt::Display for ImpliedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Terms(invalid) => invalid.fmt(f),
            Self::Price => f.write_str("price must be a finite number"),
            Self::BelowIntrinsic(least) => write!(f, "price is below the intrinsic value, {least} points"),
            Self::AboveMaximum(most) => write!(
                f,
                "price is not below {most} points, the value at infinite volatility"
            ),
            Self::Expired => f.write_str("no time to expiry: the price does not depend on volatility"),
        }
    }
}

impl core::error::Error for ImpliedError {}

/// The volatility at which Black's model gives `price` points; `terms.vol` is not read. 0 where the price is
/// the intrinsic value.
///
/// ```
/// use tickwire_options::{Kind, Terms, black76, implied};
/// let terms = Terms { forward: 5000.0, strike: 5100.0, years: 0.25, vol: 0.15, rate: 0.045, kind: Kind::Call };
/// let vol = implied::black76(&terms, black76::price(&terms)?)?;
/// assert!((vol - 0.15).abs() < 1e-15);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn black76(terms: &Terms, price: f64) -> Result<f64, ImpliedError> {
    let df = checked(terms, price, true)?;
    let Terms { forward, strike, .. } = *terms;
    let value = price / df;
    let time = value - terms.kind.intrinsic(forward, strike);
    if time < 0.0 {
        return Err(ImpliedError::BelowIntrinsic(terms.certain()));
    }
    let most = forward.min(strike);
    if time >= most {
        return Err(ImpliedError::AboveMaximum(black76::maximum(terms)));
    }
    let scale = libm::sqrt(forward) * libm::sqrt(strike);
    let s = deviation(ln_ratio(forward, strike).abs(), time / scale, most / scale);
    Ok(s / libm::sqrt(terms.years))
}

/// The volatility, in points per √year, at which Bachelier's model gives `price` points; `terms.vol` is not
/// read.
pub fn bachelier(terms: &Terms, price: f64) -> Result<f64, ImpliedError> {
    let df = checked(terms, price, false)?;
    let time = price / df - terms.kind.intrinsic(terms.forward, terms.strike);
    if time < 0.0 {
        return Err(ImpliedError::BelowIntrinsic(terms.certain()));
    }
    let distance = (terms.forward - terms.strike).abs();
    let s = if distance == 0.0 {
        time * SQRT_2PI
    } else if time == 0.0 {
        0.0
    } else {
        distance / moneyness(time / distance)
    };
    Ok(s / libm::sqrt(terms.years))
}

/// Checks what both models ask for; the discount factor.
fn checked(terms: &Terms, price: f64, is_log: bool) -> Result<f64, ImpliedError> {
    let terms = Terms { vol: 0.0, ..*terms };
    terms.check(is_log).map_err(ImpliedError::Terms)?;
    if !price.is_finite() {
        Err(ImpliedError::Price)
    } else if terms.years == 0.0 {
        Err(ImpliedError::Expired)
    } else {
        Ok(terms.discount())
    }
}

/// The `s` with `b(s) = beta`, for `y = |ln(F/K)|` and `0 <= beta < most = exp(−y/2)`.
fn deviation(y: f64, beta: f64, most: f64) -> f64 {
    if beta == 0.0 {
        return 0.0;
    }
    let (mut s, objective) = first_guess(y, beta, most);
    for _ in 0..STEPS_MAX {
        let step = householder(y, s, beta, most, objective);
        // Far from the root the model of third order is not to be trusted.
        let next = if step.is_finite() {
            (s + step).clamp(0.5 * s, 2.0 * s)
        } else {
            return s;
        };
        if (next - s).abs() <= 0.5 * f64::EPSILON * s {
            return next;
        }
        let was_last = (next - s).abs() <= 1e-6 * s; // of third order: the next one would be 1e-18 and noise
        s = next;
        if was_last {
            // One more removes what the noise of this one left, and is not looked at.
            let step = householder(y, s, beta, most, objective);
            return if step.abs() <= 1e-6 * s { s + step } else { s };
        }
    }
    s
}

/// In which coordinate `b` is nearly straight.
#[derive(Clone, Copy, PartialEq)]
enum Objective {
    /// 1/ln b: far below the inflection.
    Lower,
    /// b itself.
    Middle,
    /// ln(most − b): far above it.
    Upper,
}

fn first_guess(y: f64, beta: f64, most: f64) -> (f64, Objective) {
    if y == 0.0 {
        // b = 1 − 2N(−s/2).
        return if beta < 0.9 {
            (SQRT_2PI * beta * (1.0 + 0.3 * beta * beta), Objective::Middle)
        } else {
            (-2.0 * inverse_cdf(0.5 * (1.0 - beta)), Objective::Upper)
        };
    }
    let b = |s: f64| time_value(y / s, 0.5 * s);
    let s_mid = libm::sqrt(2.0 * y); // where b has its inflection
    let (b_mid, v_mid) = (b(s_mid), slope(y, s_mid));
    if beta < b_mid {
        let s_low = s_mid - b_mid / v_mid;
        let b_low = b(s_low);
        if beta >= b_low {
            let ends = [(b_low, s_low, 1.0 / slope(y, s_low)), (b_mid, s_mid, 1.0 / v_mid)];
            return (monotone(beta, ends), Objective::Middle);
        }
        // f = (2π/√27)·y·N(−y/(√3·s))³ has slope 1 in b at 0.
        let unit = 2.0 * core::f64::consts::PI / libm::sqrt(27.0) * y;
        let z = -y / (libm::sqrt(3.0) * s_low);
        let (n, density) = (cdf(z), INV_SQRT_2PI * exp_half_square(z));
        let f_low = unit * n * n * n;
        let f_slope = unit * 3.0 * n * n * density * (-z / s_low) / slope(y, s_low);
        let f = monotone(beta, [(0.0, 0.0, 1.0), (b_low, f_low, f_slope)]);
        let z = inverse_cdf(libm::cbrt(f / unit));
        return (-y / (libm::sqrt(3.0) * z), Objective::Lower);
    }
    let s_high = s_mid + (most - b_mid) / v_mid;
    let b_high = b(s_high);
    if beta <= b_high {
        let ends = [
            (b_mid, s_mid, 1.0 / v_mid),
            (b_high, s_high, 1.0 / slope(y, s_high)),
        ];
        return (monotone(beta, ends), Objective::Middle);
    }
    let f_slope = -0.5 * INV_SQRT_2PI * exp_half_square(0.5 * s_high) / slope(y, s_high);
    let f = monotone(beta, [(b_high, cdf(-0.5 * s_high), f_slope), (most, 0.0, -0.5)]);
    (-2.0 * inverse_cdf(f), Objective::Upper)
}

/// db/ds.
fn slope(y: f64, s: f64) -> f64 {
    INV_SQRT_2PI * exp_half_square(y / s) * exp_half_square(0.5 * s)
}

/// The rational cubic through two points `(x, value, slope)` that is monotone where they are.
fn monotone(x: f64, [(x0, y0, d0), (x1, y1, d1)]: [(f64, f64, f64); 2]) -> f64 {
    let width = x1 - x0;
    let (theta, rise) = ((x - x0) / width, (y1 - y0) / width);
    let r = 1.0 + (d0 + d1) / rise;
    if width <= 0.0 || !r.is_finite() {
        return y0 + (y1 - y0) * 0.5;
    }
    let rest = 1.0 - theta;
    let top = y1 * theta * theta * theta
        + (r * y1 - width * d1) * theta * theta * rest
        + (r * y0 + width * d0) * theta * rest * rest
        + y0 * rest * rest * rest;
    top / (1.0 + (r - 3.0) * theta * rest)
}

/// The step of third order towards the root, from `s`.
fn householder(y: f64, s: f64, beta: f64, most: f64, objective: Objective) -> f64 {
    let (x, t) = (y / s, 0.5 * s);
    let (b, v) = (time_value(x, t), slope(y, s));
    // b″/b′ and b‴/b′.
    let h2 = x * x / s - 0.25 * s;
    let h3 = h2 * h2 - 3.0 * (x / s) * (x / s) - 0.25;
    let (newton, h2, h3) = match objective {
        Objective::Middle => ((beta - b) / v, h2, h3),
        Objective::Lower => {
            let (ln, ln_beta, q) = (libm::log(b), libm::log(beta), v / b);
            let (newton, c) = (libm::log(beta / b) * ln / (ln_beta * q), 1.0 + 2.0 / ln);
            let second = 2.0 * q * q * (1.0 + 3.0 / ln * (1.0 + 1.0 / ln));
            (newton, h2 - q * c, h3 + second - 3.0 * h2 * q * c)
        }
        Objective::Upper => {
            // most − b without the subtraction; x·t = y/2.
            let left = libm::exp(-x * t) * cdf(x - t) + libm::exp(x * t) * cdf(-x - t);
            let q = v / left;
            let newton = libm::log(left / (most - beta)) / q;
            (newton, h2 + q, h3 + q * (3.0 * h2 + 2.0 * q))
        }
    };
    newton * (1.0 + 0.5 * h2 * newton) / (1.0 + newton * (h2 + h3 * newton / 6.0))
}

/// The `x > 0` with `φ(x)·(1 − x·M(x))/x = q`.
fn moneyness(q: f64) -> f64 {
    let ln_q = libm::log(q);
    let mut x = INV_SQRT_2PI / (q + 0.5);
    if q < 0.05 {
        // φ(x)/x³ for large x.
        let square = -2.0 * (ln_q + 0.918_938_533_204_672_8);
        x = libm::sqrt(square.max(1.0));
        x = libm::sqrt((square - 6.0 * libm::log(x)).max(1.0));
    }
    for _ in 0..STEPS_MAX {
        let d = decay(x);
        let value = INV_SQRT_2PI * exp_half_square(x) * d / x;
        let gap = if value > 0.0 {
            libm::log(value / q)
        } else {
            -0.5 * x * x - 0.918_938_533_204_672_8 + libm::log(d / x) - ln_q
        };
        // In w = ln x: g′ = −1/D, g″ = x·D′/D² with D′ = x·D − M.
        let newton = gap * d;
        let curve = x * (x * d - mills(x)) / d;
        let w = newton / (1.0 - 0.5 * newton * curve).clamp(0.5, 2.0);
        x *= libm::exp(w.clamp(-1.0, 1.0));
        if w.abs() < 1e-16 {
            break;
        }
    }
    x
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use crate::Kind;
    use crate::black76::tests::anywhere;
    use proptest::prelude::*;

    /// How far the way there and back leads from where it began, in units of what the price's last digits
    /// allow.
    fn round_trip(terms: &Terms, price: f64, vega: f64, back: f64) -> f64 {
        let condition = price / (terms.vol * vega);
        (back / terms.vol - 1.0).abs() / (f64::EPSILON * (4.0 + 8.0 * condition))
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 2000, max_global_rejects: 100_000, ..ProptestConfig::default() })]

        #[test]
        fn black_there_and_back(terms in anywhere()) {
            let g = crate::black76::greeks(&terms).unwrap();
            let (least, most) = (terms.certain(), crate::black76::maximum(&terms));
            prop_assume!(g.price > least * (1.0 + 1e-12) && g.price < most * (1.0 - 1e-12));
            let back = black76(&terms, g.price).unwrap();
            prop_assert!(round_trip(&terms, g.price, g.vega, back) < 1.0, "{back} {terms:?} {}", g.price);
        }

        #[test]
        fn bachelier_there_and_back(terms in anywhere(), x in -8.0f64..8.0) {
            let vol = terms.vol * terms.forward;
            let strike = terms.forward + x * vol * terms.years.sqrt();
            let terms = Terms { vol, strike, ..terms };
            let g = crate::bachelier::greeks(&terms).unwrap();
            prop_assume!(g.price > terms.certain() * (1.0 + 1e-12));
            let back = bachelier(&terms, g.price).unwrap();
            prop_assert!(round_trip(&terms, g.price, g.vega, back) < 1.0, "{back} {terms:?} {}", g.price);
        }

        #[test]
        fn any_normalised_value_is_met(y in 0.0f64..12.0, ln_share in -400.0f64..-1e-6) {
            // From values of 1e-170 to within a millionth of the most there is.
            let most = (-0.5 * y).exp();
            let beta = most * ln_share.exp();
            let s = deviation(y, beta, most);
            let (b, v) = (time_value(y / s, 0.5 * s), slope(y, s));
            // The root is right to the last digits of s, or of b where b hardly moves. Half a unit of
            // rounding each, of y/s here, of y/s in the last step, of the step and of s, is 2 ε of s
            // together; the worst of twenty million random cases was 2.3 ε.
            let rounding = 3.0 * f64::EPSILON * s * v;
            prop_assert!((b - beta).abs() <= 4e-15 * beta + rounding, "{s} {b} {beta}");
        }

        #[test]
        fn no_number_makes_it_panic(x in prop::array::uniform5(any::<f64>()), is_call in any::<bool>()) {
            let terms = Terms {
                forward: x[0], strike: x[1], years: x[2], vol: 0.0, rate: 0.0,
                kind: if is_call { Kind::Call } else { Kind::Put },
            };
            if let Ok(vol) = black76(&terms, x[4]) {
                prop_assert!(vol >= 0.0, "{vol} {terms:?}");
            }
            let _ = bachelier(&terms, x[4]);
        }
    }

    #[test]
    fn at_the_money_and_far_away_and_nearly_worthless() {
        for y in [0.0, 1e-14, 1e-9, 1e-4, 0.1, 5.0, 60.0] {
            for s in [1e-8, 1e-4, 0.01, 0.2, 1.0, 3.0, 7.0] {
                let (beta, most) = (time_value(y / s, 0.5 * s), libm::exp(-0.5 * y));
                if beta < 1e-300 || beta > most * (1.0 - 1e-9) {
                    continue;
                }
                let back = deviation(y, beta, most);
                let condition = beta / (s * slope(y, s));
                let error = (back / s - 1.0).abs();
                assert!(
                    error < f64::EPSILON * (4.0 + 8.0 * condition),
                    "{y} {s}: {back} {error:e}"
                );
            }
        }
    }

    #[test]
    fn a_price_without_volatility_says_why() {
        let terms = Terms {
            forward: 105.0,
            strike: 100.0,
            years: 0.5,
            vol: 0.0,
            rate: 0.0,
            kind: Kind::Call,
        };
        assert_eq!(black76(&terms, 5.0), Ok(0.0));
        assert_eq!(black76(&terms, 4.99), Err(ImpliedError::BelowIntrinsic(5.0)));
        assert_eq!(black76(&terms, 105.0), Err(ImpliedError::AboveMaximum(105.0)));
        assert_eq!(black76(&terms, f64::NAN), Err(ImpliedError::Price));
        assert_eq!(
            black76(&Terms { years: 0.0, ..terms }, 7.0),
            Err(ImpliedError::Expired)
        );
        assert_eq!(
            black76(
                &Terms {
                    strike: -1.0,
                    ..terms
                },
                7.0
            ),
            Err(ImpliedError::Terms(Invalid::Strike))
        );
        assert_eq!(bachelier(&terms, 5.0), Ok(0.0));
        assert_eq!(bachelier(&terms, 4.0), Err(ImpliedError::BelowIntrinsic(5.0)));
        assert_eq!(bachelier(&terms, f64::INFINITY), Err(ImpliedError::Price));
        let at = Terms {
            forward: 100.0,
            ..terms
        };
        let vol = bachelier(&at, 2.0).unwrap();
        assert!((crate::bachelier::price(&Terms { vol, ..at }).unwrap() - 2.0).abs() < 1e-15);
    }
}
