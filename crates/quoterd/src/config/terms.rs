//! What `[[quoter.terms]]` says: how quotes lie around their theoretical values.

use serde::{Deserialize, Serialize};
use tickwire_market::{Date, Price};
use tickwire_options::Kind;
use tickwire_trading::QuoteTerms;

use tickwire_venues::texts::{DateText, PriceText};

/// Terms of the options that match. Amounts are in points of premium, as the feed has prices.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct TermsSection {
    /// Only this expiry.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expiry: Option<DateText>,
    /// Only deltas from the first to below the second, without sign, when quoting begins: [0.0, 0.25].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delta: Option<[f64; 2]>,
    /// Only this strike.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub strike: Option<PriceText>,
    /// Only `call` or `put`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub right: Option<Right>,
    /// Distance of each side from the theoretical value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub edge: Option<f64>,
    /// Added: a part of the value, 0.005 is half a percent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub edge_relative: Option<f64>,
    /// Added: so much volatility, 0.001 is a tenth of a percent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub edge_vol: Option<f64>,
    /// The narrowest quote.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub width_min: Option<f64>,
    /// The widest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub width_max: Option<f64>,
    /// Contracts on each side.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<u32>,
    /// Whether to bid.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bid: Option<bool>,
    /// Whether to offer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ask: Option<bool>,
    /// For each contract of delta held, values are reckoned with the underlying so many points lower.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lean_delta: Option<f64>,
    /// For each point of gamma held, with the underlying's delta so much lower.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lean_gamma: Option<f64>,
    /// For each point of vega held (per 1.00 of volatility), with volatility so much lower.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lean_vega: Option<f64>,
}

/// Call or put.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Right {
    Call,
    Put,
}

impl Right {
    fn is(self, kind: Kind) -> bool {
        match self {
            Right::Call => kind == Kind::Call,
            Right::Put => kind == Kind::Put,
        }
    }
}

/// The terms of one option, all sections that match it taken together.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OptionTerms {
    pub edge: f64,
    pub edge_relative: f64,
    pub edge_vol: f64,
    pub width: [f64; 2],
    pub size: u32,
    pub sides: [bool; 2],
    pub lean_delta: f64,
    pub lean_gamma: f64,
    pub lean_vega: f64,
}

impl Default for OptionTerms {
    fn default() -> OptionTerms {
        OptionTerms {
            edge: 0.1,
            edge_relative: 0.005,
            edge_vol: 0.0,
            width: [0.02, 1e9],
            size: 1,
            sides: [true; 2],
            lean_delta: 0.0,
            lean_gamma: 0.0,
            lean_vega: 0.0,
        }
    }
}

impl OptionTerms {
    /// What the sections that match an option say, the last one that sets a value decides.
    pub(super) fn with(
        mut self,
        sections: &[TermsSection],
        (expiry, strike, kind, delta): (Date, Price, Kind, f64),
    ) -> OptionTerms {
        let matching = sections.iter().filter(|s| {
            s.expiry.is_none_or(|d| d.0 == expiry)
                && s.strike.is_none_or(|p| p.0 == strike)
                && s.right.is_none_or(|r| r.is(kind))
                && s.delta.is_none_or(|[from, to]| delta >= from && delta < to)
        });
        for s in matching {
            let set = |to: &mut f64, from: Option<f64>| *to = from.unwrap_or(*to);
            set(&mut self.edge, s.edge);
            set(&mut self.edge_relative, s.edge_relative);
            set(&mut self.edge_vol, s.edge_vol);
            set(&mut self.width[0], s.width_min);
            set(&mut self.width[1], s.width_max);
            set(&mut self.lean_delta, s.lean_delta);
            set(&mut self.lean_gamma, s.lean_gamma);
            set(&mut self.lean_vega, s.lean_vega);
            self.size = s.size.unwrap_or(self.size);
            self.sides = [s.bid.unwrap_or(self.sides[0]), s.ask.unwrap_or(self.sides[1])];
        }
        self
    }

    /// As the ladder wants them, for an option with this vega and lean.
    pub fn quote(&self, vega: f64, lean: f64) -> QuoteTerms {
        QuoteTerms {
            edge: self.edge + self.edge_vol * vega,
            edge_relative: self.edge_relative,
            half_width_min: self.width[0] / 2.0,
            half_width_max: self.width[1] / 2.0,
            lean,
            sides: self.sides,
        }
    }
}

impl TermsSection {
    pub(super) fn check(&self) -> Result<(), String> {
        let amounts = [
            ("edge", self.edge),
            ("edge_relative", self.edge_relative),
            ("edge_vol", self.edge_vol),
            ("width_min", self.width_min),
            ("width_max", self.width_max),
            ("lean_delta", self.lean_delta),
            ("lean_gamma", self.lean_gamma),
            ("lean_vega", self.lean_vega),
        ];
        for (name, amount) in amounts {
            if amount.is_some_and(|x| !(0.0..=1e9).contains(&x)) {
                return Err(format!("{name} must not be negative"));
            }
        }
        if let (Some(min), Some(max)) = (self.width_min, self.width_max)
            && (min > max || min <= 0.0)
        {
            return Err("width_min must be above 0 and not above width_max".into());
        }
        if self.size.is_some_and(|size| size == 0 || size > 999_999) {
            return Err("size must be 1 to 999999 contracts".into());
        }
        if let Some([from, to]) = self.delta
            && !(from >= 0.0 && to > from)
        {
            return Err("delta must be a range without sign, such as [0.0, 0.25]".into());
        }
        Ok(())
    }
}
