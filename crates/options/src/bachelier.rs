//! Bachelier's model (L. Bachelier, "Théorie de la spéculation", 1900): the forward is normal, its volatility
//! in points per √year. For underlyings near or below zero.
//!
//! With `s = σ√T` and `x = |F − K|/s` the option out of the money is worth `df·s·φ(x)·[1 − x·M(x)]` (M:
//! Mills' ratio); the bracket is computed as one function, so that far options keep their digits. Parity
//! gives the other one.
//!
//! Domain: all finite F and K, T >= 0, σ >= 0. Relative error of the price below 1e-14 · max(1, x²).

use crate::normal::{cdf, decay, density};
use crate::terms::times;
use crate::{Greeks, Invalid, Terms};

/// The value in points.
pub fn price(terms: &Terms) -> Result<f64, Invalid> {
    terms.check(false)?;
    let s = terms.deviation();
    if s == 0.0 {
        return Terms::finite(terms.certain());
    }
    let x = (terms.forward - terms.strike).abs() / s;
    Terms::finite(terms.certain() + times(terms.discount() * s, time_value(x)))
}

/// The value and every Greek.
///
/// # Errors
/// What of the terms is no term; [`Invalid::Overflow`] where one of the results would be infinite.
pub fn greeks(terms: &Terms) -> Result<Greeks, Invalid> {
    let price = price(terms)?;
    let s = terms.deviation();
    if s == 0.0 {
        return terms.certain_greeks().finite();
    }
    let Terms {
        forward,
        strike,
        years,
        vol,
        rate,
        kind,
    } = *terms;
    let df = terms.discount();
    let d = (forward - strike) / s;
    let weight = df * density(d);
    let delta = kind.sign() * df * cdf(kind.sign() * d);
    let vega = weight * libm::sqrt(years);
    Greeks {
        price,
        delta,
        gamma: times(weight, 1.0 / s),
        vega,
        theta: rate * price - times(vega, vol / (2.0 * years)),
        rho: -years * price,
        vanna: -times(weight, d / vol),
        volga: times(times(vega, d), d / vol),
        charm: rate * delta + times(weight, d / (2.0 * years)),
        veta: times(vega, rate - (1.0 + d * d) / (2.0 * years)),
    }
    .finite()
}

/// Time value of the option that is out of the money, in units of df·s: `x = |F − K|/s`.
pub(crate) fn time_value(x: f64) -> f64 {
    density(x) * decay(x)
}
