//! Volatility surfaces: a smile per expiry, the controls traders turn, versions and undo.
//!
//! ```text
//! Curve (Svi | Wing)  ─►  Smile = curve + controls + nudges  ─►  Surface = smiles, forwards, versions, undo, audit log
//!        ▲ fit to quotes          │ vol(strike, forward)               │ apply(Edit), undo
//!        svi::fit                 ▼                                    ▼ arbitrage checks
//!                         batch::Strip::set_vols                  what the app writes to its log
//! ```

pub mod arbitrage;
mod book;
pub mod svi;
pub mod wing;

pub use book::{Change, Edit, EditError, Entry, Roll, Surface, SurfaceConfig};
pub use svi::Svi;
pub use wing::Wing;

use crate::normal::inverse_cdf;
use alloc::vec::Vec;

/// The least volatility a smile gives, whatever its controls say.
pub const VOL_MIN: f64 = 1e-4;
/// The largest.
pub const VOL_MAX: f64 = 10.0;
/// Slope and wings bend the smile up to this many deviations from the pivot and are constant beyond.
pub const REACH: f64 = 5.0;

/// What a smile is before controls.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Curve {
    /// Fitted to the market.
    Svi(Svi),
    /// Set by hand.
    Wing(Wing),
}

impl Curve {
    /// Whether its parameters are in their ranges.
    pub fn is_valid(&self) -> bool {
        match self {
            Curve::Svi(svi) => svi.is_valid(),
            Curve::Wing(wing) => wing.is_valid(),
        }
    }

    fn vol(&self, k: f64, years: f64, moved: f64) -> f64 {
        match self {
            Curve::Svi(svi) => svi.vol(k, years),
            Curve::Wing(wing) => wing.vol(k, moved),
        }
    }
}

/// What traders turn, added to the curve. Distances are in standard deviations,
/// `u = (ln(K/anchor) − pivot)/(σ·√T)`, at most [`REACH`].
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Controls {
    /// Added to every volatility. −2 to 2.
    pub atm: f64,
    /// Added per deviation: `slope·u`. −1 to 1.
    pub slope: f64,
    /// Added below the pivot per squared deviation: `put_wing·u²`. −1 to 1.
    pub put_wing: f64,
    /// Added above it: `call_wing·u²`. −1 to 1.
    pub call_wing: f64,
    /// The log-strike, from the anchor, at which slope and wings are 0. −2 to 2.
    pub pivot: f64,
    /// How far the smile goes along with the underlying: 0 keeps every strike its volatility, 1 every
    /// multiple of the forward; up to 2 for smiles that overshoot.
    pub float: f64,
}

impl Controls {
    /// Whether every control is in its range.
    pub fn is_valid(&self) -> bool {
        let within = |x: f64, most: f64| x.abs() <= most; // false of NaN
        within(self.atm, 2.0)
            && [self.slope, self.put_wing, self.call_wing]
                .iter()
                .all(|&x| within(x, 1.0))
            && within(self.pivot, 2.0)
            && (0.0..=2.0).contains(&self.float)
    }
}

/// One expiry's volatilities.
#[derive(Clone, PartialEq, Debug)]
pub struct Smile {
    curve: Curve,
    controls: Controls,
    /// By strike, rising.
    nudges: Vec<(f64, f64)>,
    reference: f64,
    years: f64,
}

/// See [`Smile::at`].
pub(crate) struct At {
    moved: f64,
    share: f64,
    /// One deviation of the log-strike at the curve's middle.
    deviation: f64,
}

impl Smile {
    /// A smile around a reference price of its forward. None if the curve's parameters are out of their
    /// ranges, or reference and years are not above 0.
    pub fn new(curve: Curve, reference: f64, years: f64) -> Option<Smile> {
        let is_amount = |x: f64| x.is_finite() && x > 0.0;
        (curve.is_valid() && is_amount(reference) && is_amount(years)).then(|| Smile {
            curve,
            controls: Controls::default(),
            nudges: Vec::new(),
            reference,
            years,
        })
    }

    /// The smile with controls and nudges as they were, strikes rising. None if a control is out of its
    /// range, or a nudge is not of a strike above 0, larger than 2 or out of order.
    pub fn with(mut self, controls: Controls, nudges: Vec<(f64, f64)>) -> Option<Smile> {
        let is_nudge = |&(strike, by): &(f64, f64)| strike.is_finite() && strike > 0.0 && by.abs() <= 2.0;
        let is_good = controls.is_valid()
            && nudges.iter().all(is_nudge)
            && nudges.windows(2).all(|pair| pair[0].0 < pair[1].0);
        (self.controls, self.nudges) = (controls, nudges);
        is_good.then_some(self)
    }

    /// The curve below the controls.
    pub fn curve(&self) -> &Curve {
        &self.curve
    }

    /// The controls.
    pub fn controls(&self) -> &Controls {
        &self.controls
    }

    /// Strikes with a volatility added of their own.
    pub fn nudges(&self) -> &[(f64, f64)] {
        &self.nudges
    }

    /// Time to expiry in (business) years.
    pub fn years(&self) -> f64 {
        self.years
    }

    /// So many years are left; volatilities stay, so total variance shrinks with them.
    fn age(&mut self, years: f64) {
        if let Curve::Svi(svi) = &mut self.curve {
            let share = years / self.years;
            (svi.a, svi.b) = (svi.a * share, svi.b * share);
        }
        self.years = years;
    }

    /// The price of the forward the curve was made at.
    pub fn reference(&self) -> f64 {
        self.reference
    }

    /// The volatility of a strike, from [`VOL_MIN`] to [`VOL_MAX`].
    pub fn vol(&self, strike: f64, forward: f64) -> f64 {
        self.vol_at(&self.at(forward), strike)
    }

    /// Whether curve, controls and nudges lead out of [`VOL_MIN`] to [`VOL_MAX`] at a strike, so that
    /// [`Smile::vol`] is not what they say.
    pub fn is_clamped(&self, strike: f64, forward: f64) -> bool {
        !(VOL_MIN..=VOL_MAX).contains(&self.said_at(&self.at(forward), strike))
    }

    fn vol_at(&self, at: &At, strike: f64) -> f64 {
        self.said_at(at, strike).clamp(VOL_MIN, VOL_MAX)
    }

    /// What curve, controls and nudges say.
    fn said_at(&self, at: &At, strike: f64) -> f64 {
        let own = self.nudges.binary_search_by(|(at, _)| at.total_cmp(&strike));
        let nudge = own
            .ok()
            .and_then(|at| self.nudges.get(at))
            .map_or(0.0, |(_, by)| *by);
        self.unbounded(at, self.log_of(strike)) + nudge
    }

    /// Without nudges.
    pub(crate) fn smooth_vol(&self, strike: f64, forward: f64) -> f64 {
        self.smooth_vol_at(&self.at(forward), self.log_of(strike))
    }

    /// The same at a forward that was prepared and a logarithm of the strike over the curve's reference.
    pub(crate) fn smooth_vol_at(&self, at: &At, log: f64) -> f64 {
        self.unbounded(at, log).clamp(VOL_MIN, VOL_MAX)
    }

    /// Logarithm of a strike or forward over the curve's reference.
    pub(crate) fn log_of(&self, price: f64) -> f64 {
        libm::log(price / self.reference)
    }

    /// The volatility at the money, nudges left out.
    pub fn atm(&self, forward: f64) -> f64 {
        self.smooth_vol(forward, forward)
    }

    /// Volatilities of many strikes, for [`crate::batch::Strip::set_vols`]; nothing is allocated. Strikes
    /// that stand beside their equals, as those of calls and puts do, are worked out once.
    pub fn vols(&self, strikes: &[f64], forward: f64, into: &mut [f64]) {
        let at = self.at(forward);
        let mut last = (f64::NAN, f64::NAN);
        for (strike, into) in strikes.iter().zip(into) {
            if *strike != last.0 {
                last = (*strike, self.vol_at(&at, *strike));
            }
            *into = last.1;
        }
    }

    /// What every strike has in common at a price of the forward.
    pub(crate) fn at(&self, forward: f64) -> At {
        let float = self.controls.float;
        At {
            // The anchor is reference·(F/reference)^float.
            moved: float * libm::log(forward / self.reference),
            share: float * (forward - self.reference) / self.reference,
            deviation: self.curve.vol(0.0, self.years, 0.0).max(VOL_MIN) * libm::sqrt(self.years),
        }
    }

    /// At a logarithm of the strike over the reference.
    #[inline]
    fn unbounded(&self, at: &At, log: f64) -> f64 {
        let c = &self.controls;
        let k = log - at.moved;
        let base = self.curve.vol(k, self.years, at.share);
        let u = ((k - c.pivot) / at.deviation).clamp(-REACH, REACH);
        let wing = if u < 0.0 { c.put_wing } else { c.call_wing };
        base + c.atm + u * (c.slope + wing * u)
    }

    /// What a straddle at the money is worth, undiscounted, in points.
    pub fn straddle(&self, forward: f64) -> f64 {
        let s = self.atm(forward) * libm::sqrt(self.years);
        2.0 * forward * crate::black76::time_value(0.0, 0.5 * s)
    }

    /// The volatility at the money at which a straddle there is worth this much, undiscounted. None if there
    /// is none.
    pub fn atm_of_straddle(&self, forward: f64, points: f64) -> Option<f64> {
        // 2·F·(1 − 2·N(−s/2))
        let share = points / (2.0 * forward);
        let s = -2.0 * inverse_cdf(0.5 * (1.0 - share));
        let vol = s / libm::sqrt(self.years);
        (share > 0.0 && share < 1.0 && (VOL_MIN..=VOL_MAX).contains(&vol)).then_some(vol)
    }
}
