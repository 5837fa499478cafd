//! What is valued and what comes out: the terms of one European option on a future or forward, and its
//! Greeks.

use core::fmt;

/// Call or put.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// The right to buy.
    Call,
    /// The right to sell.
    Put,
}

impl Kind {
    /// +1 for a call, −1 for a put.
    #[inline]
    pub const fn sign(self) -> f64 {
        match self {
            Kind::Call => 1.0,
            Kind::Put => -1.0,
        }
    }

    /// What exercise gives, in points: never negative.
    #[inline]
    pub fn intrinsic(self, forward: f64, strike: f64) -> f64 {
        (self.sign() * (forward - strike)).max(0.0)
    }
}

/// An option on a future or forward, and the market it is valued in.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Terms {
    /// Price of the underlying for the option's expiry, in points.
    pub forward: f64,
    /// Strike, in points.
    pub strike: f64,
    /// Time to expiry in years, >= 0.
    pub years: f64,
    /// Volatility per √year, >= 0: of the logarithm in [`crate::black76`] (0.15 is 15 %), of the price itself
    /// in points in [`crate::bachelier`].
    pub vol: f64,
    /// Continuously compounded rate per year by which the payment at expiry is discounted; any sign.
    pub rate: f64,
    /// Call or put.
    pub kind: Kind,
}

/// Why terms have no value, by field.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Invalid {
    /// Not finite; in Black-76 also zero or negative.
    Forward,
    /// Not finite; in Black-76 also zero or negative.
    Strike,
    /// Not finite or negative.
    Years,
    /// Not finite or negative.
    Vol,
    /// Not finite, or such that discounting over- or underflows (|rate · years| > 700).
    Rate,
    /// Each of them is good, and the value or a Greek is larger than a double holds: terms some hundred
    /// orders of magnitude from any market's.
    Overflow,
}

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Invalid::Forward => "forward must be a finite number, above 0 in Black-76",
            Invalid::Strike => "strike must be a finite number, above 0 in Black-76",
            Invalid::Years => "years to expiry must be a finite number, at least 0",
            Invalid::Vol => "volatility must be a finite number, at least 0",
            Invalid::Rate => "rate must be a finite number with |rate * years| at most 700",
            Invalid::Overflow => "the value or a Greek of these terms is larger than a double holds",
        })
    }
}

impl core::error::Error for Invalid {}

impl Terms {
    /// Refuses what no model has a value for. `is_log` asks for a positive forward and strike.
    pub(crate) fn check(&self, is_log: bool) -> Result<(), Invalid> {
        let is_level = |x: f64| x.is_finite() && (!is_log || x > 0.0);
        let is_amount = |x: f64| x.is_finite() && x >= 0.0;
        if !is_level(self.forward) {
            Err(Invalid::Forward)
        } else if !is_level(self.strike) {
            Err(Invalid::Strike)
        } else if !is_amount(self.years) {
            Err(Invalid::Years)
        } else if !is_amount(self.vol) {
            Err(Invalid::Vol)
        } else if !self.rate.is_finite() || (self.rate * self.years).abs() > 700.0 {
            Err(Invalid::Rate)
        } else {
            Ok(())
        }
    }

    /// The discount factor of the payment at expiry.
    pub fn discount(&self) -> f64 {
        libm::exp(-self.rate * self.years)
    }

    /// Standard deviation to expiry: vol · √years.
    pub fn deviation(&self) -> f64 {
        self.vol * libm::sqrt(self.years)
    }

    /// The same for a logarithm: beyond 1000 an option is worth its maximum to the last digit, and sums stay
    /// finite.
    pub(crate) fn log_deviation(&self) -> f64 {
        self.deviation().min(1e3)
    }

    /// The value, if it is one.
    pub(crate) fn finite(value: f64) -> Result<f64, Invalid> {
        if value.is_finite() {
            Ok(value)
        } else {
            Err(Invalid::Overflow)
        }
    }

    /// The value without volatility: discounted intrinsic value.
    pub(crate) fn certain(&self) -> f64 {
        self.discount() * self.kind.intrinsic(self.forward, self.strike)
    }

    /// Price and Greeks where nothing is uncertain any more (deviation 0). At the strike delta is that of
    /// half an option; gamma, vega and what is made of them are 0.
    pub(crate) fn certain_greeks(&self) -> Greeks {
        let price = self.certain();
        let distance = self.kind.sign() * (self.forward - self.strike);
        let share = if distance > 0.0 {
            1.0
        } else if distance == 0.0 {
            0.5
        } else {
            0.0
        };
        let delta = self.kind.sign() * share * self.discount();
        Greeks {
            price,
            delta,
            theta: self.rate * price,
            rho: -self.years * price,
            charm: self.rate * delta,
            ..Greeks::default()
        }
    }
}

/// A value and its derivatives to second order in forward, volatility and time. Those in the rate follow from
/// them, the forward held: `∂²V/∂r² = T²·V`, `∂²V/∂F∂r = −T·delta`, `∂²V/∂σ∂r = −T·vega`.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Greeks {
    /// Value in points.
    pub price: f64,
    /// ∂V/∂F: per point of the forward, discounted.
    pub delta: f64,
    /// ∂²V/∂F².
    pub gamma: f64,
    /// ∂V/∂σ: per unit of volatility (a volatility point of a logarithmic volatility is a hundredth of it).
    pub vega: f64,
    /// −∂V/∂T: per year that passes, the forward held.
    pub theta: f64,
    /// ∂V/∂r: per unit of rate, the forward held: −T·V.
    pub rho: f64,
    /// ∂²V/∂F∂σ.
    pub vanna: f64,
    /// ∂²V/∂σ².
    pub volga: f64,
    /// −∂²V/∂F∂T: change of delta per year that passes.
    pub charm: f64,
    /// −∂²V/∂σ∂T: change of vega per year that passes.
    pub veta: f64,
}

impl Greeks {
    /// These, if each is a finite number.
    pub(crate) fn finite(self) -> Result<Greeks, Invalid> {
        let all = [
            self.price, self.delta, self.gamma, self.vega, self.theta, self.rho, self.vanna, self.volga,
            self.charm, self.veta,
        ];
        if all.iter().all(|x| x.is_finite()) {
            Ok(self)
        } else {
            Err(Invalid::Overflow)
        }
    }
}

/// A density times what grows slower than it falls: 0 where the density is 0 to the last digit, however large
/// the rest.
pub(crate) fn times(density: f64, rest: f64) -> f64 {
    if density == 0.0 { 0.0 } else { density * rest }
}
