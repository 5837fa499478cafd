//! What an edit may do at once. A volatility typed with a digit too many (`+0.2` for `+0.002`) is quoted to
//! everybody within a millisecond: it is refused, with what it would have done, unless whoever types it says
//! that it is meant.

use serde::Deserialize;
use tickwire_options::surface::{Smile, Surface};

/// Standard deviations to either side of the forward at which volatilities are compared, and how many a
/// deviation.
const DEVIATIONS: i32 = 4;
const PER_DEVIATION: i32 = 2;
/// A time to expiry may change by this share of it.
const YEARS_STEP_MAX: f64 = 0.1;

/// How far one edit may go; in the file of volatilities, so that it holds for the file and in a running
/// quoter alike.
#[derive(Clone, Copy, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Steps {
    /// By which an edit may change the volatility of any strike: 0.02 is two percent (points).
    pub(super) vol_step_max: f64,
    /// The part by which it may change a forward.
    pub(super) forward_step_max: f64,
}

impl Default for Steps {
    fn default() -> Steps {
        Steps {
            vol_step_max: 0.02,
            forward_step_max: 0.01,
        }
    }
}

impl Steps {
    /// Whether they can be.
    pub(super) fn check(&self) -> Result<(), String> {
        let is_step = |x: f64| x.is_finite() && x > 0.0;
        match is_step(self.vol_step_max) && is_step(self.forward_step_max) {
            true => Ok(()),
            false => Err("vol_step_max and forward_step_max must be above 0 (0.02 is two percent)".into()),
        }
    }

    /// Why what an edit has made of a surface goes too far, if it does; `strikes` of an expiry are looked at
    /// beside those around its forward.
    pub(super) fn refusal(
        &self,
        (was, is): (&Surface, &Surface),
        name: impl Fn(usize) -> String,
        strikes: impl Fn(usize) -> Vec<f64>,
    ) -> Option<String> {
        for place in 0..is.len() {
            let expiry = |surface: &Surface| Some((surface.smile(place)?.clone(), surface.forward(place)?));
            let (Some(was), Some(is)) = (expiry(was), expiry(is)) else {
                continue;
            };
            if was == is {
                continue;
            }
            if let Some(why) = self.of_expiry(&was, &is, &name(place), strikes(place)) {
                return Some(why);
            }
        }
        None
    }

    fn of_expiry(
        &self,
        (was, was_at): &(Smile, f64),
        (is, is_at): &(Smile, f64),
        name: &str,
        mut strikes: Vec<f64>,
    ) -> Option<String> {
        let deviation = was.atm(*was_at) * was.years().sqrt() / f64::from(PER_DEVIATION);
        let around = -DEVIATIONS * PER_DEVIATION..=DEVIATIONS * PER_DEVIATION;
        strikes.extend(around.map(|n| was_at * (f64::from(n) * deviation).exp()));
        strikes.extend(was.nudges().iter().chain(is.nudges()).map(|(strike, _)| *strike));
        let of = |strike: f64| (was.vol(strike, *was_at), is.vol(strike, *is_at));
        let step = |strike: &f64| {
            let (before, after) = of(*strike);
            (after - before).abs()
        };
        let clamped: Vec<f64> = strikes
            .iter()
            .copied()
            .filter(|strike| is.is_clamped(*strike, *is_at) && !was.is_clamped(*strike, *was_at))
            .collect();
        let widest = strikes
            .iter()
            .copied()
            .max_by(|a, b| step(a).total_cmp(&step(b)))?;
        let (before, after) = of(widest);
        let percent = |vol: f64| format!("{:.2} %", 100.0 * vol);
        let moves = format!(
            "would move the volatility of {name} at strike {widest:.0} from {} to {}",
            percent(before),
            percent(after)
        );
        if let Some(strike) = clamped.first() {
            return Some(format!(
                "it {moves}, and lead out of the range of volatilities at {} of {} strikes ({strike:.0} for one), which would be cut to {}",
                clamped.len(),
                strikes.len(),
                percent(of(*strike).1)
            ));
        }
        if step(&widest) > self.vol_step_max {
            return Some(format!(
                "it {moves}, by {:.2} points: one edit may move {:.2} (vol_step_max of [edits])",
                100.0 * step(&widest),
                100.0 * self.vol_step_max
            ));
        }
        let moved = (is_at / was_at - 1.0).abs();
        if moved > self.forward_step_max {
            return Some(format!(
                "it would move the forward of {name} from {was_at:.2} to {is_at:.2}, by {:.2} %: one edit may move {:.2} % \
                 (forward_step_max of [edits])",
                100.0 * moved,
                100.0 * self.forward_step_max
            ));
        }
        let aged = (is.years() / was.years() - 1.0).abs();
        (aged > YEARS_STEP_MAX).then(|| {
            format!(
                "it would change the time to {name} from {} to {} years: one edit may change it by {:.0} %",
                was.years(),
                is.years(),
                100.0 * YEARS_STEP_MAX
            )
        })
    }
}
