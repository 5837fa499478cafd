//! Whether a smile or a surface gives something away: butterflies and calendars of negative price.

use super::{At, Smile};
use crate::{Kind, Terms, black76};
use core::fmt;

/// Something that could be had for less than nothing.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Arbitrage {
    /// A butterfly around this strike has a negative price: the density the smile implies is below 0.
    Butterfly {
        /// In points.
        strike: f64,
    },
    /// At this multiple of the forward the later expiry has less total variance than the earlier.
    Calendar {
        /// K/F.
        moneyness: f64,
    },
}

impl fmt::Display for Arbitrage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Butterfly { strike } => {
                write!(f, "a butterfly around strike {strike} has a negative price")
            }
            Self::Calendar { moneyness } => {
                write!(
                    f,
                    "at {moneyness:.4} of the forward the later expiry has less variance"
                )
            }
        }
    }
}

impl core::error::Error for Arbitrage {}

/// Gatheral's g from total variance and its derivatives by log-strike: the implied density over the lognormal
/// one.
pub(crate) fn density_factor(k: f64, w: f64, first: f64, second: f64) -> f64 {
    let bracket = 1.0 - 0.5 * k * first / w;
    bracket * bracket - 0.25 * first * first * (1.0 / w + 0.25) + 0.5 * second
}

/// Looks along a smile, nudges of single strikes left out, for a density below 0, up to `deviations` to both
/// sides of the forward.
pub fn butterfly(smile: &Smile, forward: f64, deviations: f64) -> Result<(), Arbitrage> {
    let s = smile.atm(forward) * libm::sqrt(smile.years());
    let step = 0.02 * s;
    let (at, log) = (smile.at(forward), smile.log_of(forward));
    let w = |k: f64| {
        let vol = smile.smooth_vol_at(&at, log + k);
        vol * vol * smile.years()
    };
    for i in -60..=60 {
        let k = f64::from(i) / 60.0 * deviations * s;
        let (below, here, above) = (w(k - step), w(k), w(k + step));
        let first = (above - below) / (2.0 * step);
        let second = (above - 2.0 * here + below) / (step * step);
        // What differences of doubles make of a 0.
        if density_factor(k, here, first, second) < -1e-7 {
            return Err(Arbitrage::Butterfly {
                strike: forward * libm::exp(k),
            });
        }
    }
    Ok(())
}

/// Looks at the strikes that are listed, in rising order, nudges included: no butterfly of three neighbours
/// has a negative price, and none of its sides is worth more than its strikes are apart.
pub fn listed_butterflies(smile: &Smile, forward: f64, rate: f64, strikes: &[f64]) -> Result<(), Arbitrage> {
    let call = |strike: f64| {
        let terms = Terms {
            forward,
            strike,
            years: smile.years(),
            vol: smile.vol(strike, forward),
            rate,
            kind: Kind::Call,
        };
        black76::price(&terms).unwrap_or(f64::NAN)
    };
    // A billionth of the forward is below any tick.
    let room = 1e-9 * forward;
    for three in strikes.windows(3) {
        let [low, mid, high] = [three[0], three[1], three[2]];
        let share = (high - mid) / (high - low);
        let wings = share * call(low) + (1.0 - share) * call(high);
        if !(call(mid) <= wings + room && call(high) <= call(mid) + room) {
            return Err(Arbitrage::Butterfly { strike: mid });
        }
    }
    Ok(())
}

/// Looks whether total variance rises from an earlier expiry to a later one at every multiple of their
/// forwards, up to `deviations` of the earlier one's to both sides.
pub fn calendar(earlier: (&Smile, f64), later: (&Smile, f64), deviations: f64) -> Result<(), Arbitrage> {
    let (first, f1) = earlier;
    let (second, f2) = later;
    let s = first.atm(f1) * libm::sqrt(first.years());
    let [at1, at2] = [
        (first.at(f1), first.log_of(f1)),
        (second.at(f2), second.log_of(f2)),
    ];
    for i in -40..=40 {
        let k = f64::from(i) / 40.0 * deviations * s;
        let variance = |smile: &Smile, (at, log): &(At, f64)| {
            let vol = smile.smooth_vol_at(at, log + k);
            vol * vol * smile.years()
        };
        if variance(second, &at2) < variance(first, &at1) * (1.0 - 1e-9) {
            return Err(Arbitrage::Calendar {
                moneyness: libm::exp(k),
            });
        }
    }
    Ok(())
}
