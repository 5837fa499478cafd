//! The portfolio file of `tickwire risk`: what can be held, the markets of the day, limits. docs/risk.md
//! describes it, `examples/risk/portfolio.toml` is one.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;
use tickwire_market::{Currency, Nanos, PointValue, Price};
use tickwire_options::surface::{Curve, Svi, Wing};
use tickwire_trading::portfolio::Model;

use super::LossMark;
use crate::vol::WingSection;
use tickwire_console::failure::Failure;

/// The whole file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RiskFile {
    /// Heading of the reports.
    pub title: String,
    /// What all money is in: an ISO 4217 code.
    #[serde(default)]
    pub currency: Code,
    /// Money of a point of the future that delta is counted in.
    #[serde(default)]
    pub multiplier: PointMoney,
    /// Gains by theoretical value and by market mid that differ by more are a warning; 0 is none.
    #[serde(default)]
    pub mark_difference_max: f64,
    /// Continuously compounded per year of 365 days.
    #[serde(default)]
    pub rate: f64,
    /// Moves of the underlying in the scenario grid, as shares.
    #[serde(default = "spots")]
    pub spots: Vec<f64>,
    /// Moves of volatility in the scenario grid: 0.01 is a point.
    #[serde(default = "vols")]
    pub vols: Vec<f64>,
    #[serde(default)]
    pub limits: LimitsSection,
    #[serde(default)]
    pub obligations: Option<ObligationsSection>,
    #[serde(default)]
    pub future: Vec<FutureSection>,
    #[serde(default)]
    pub expiry: Vec<ExpirySection>,
    #[serde(default)]
    pub position: Vec<PositionSection>,
    #[serde(default)]
    pub market: Vec<MarketSection>,
}

/// Limits; without one, or at 0, there is none.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct LimitsSection {
    pub options_long: f64,
    pub options_short: f64,
    pub futures: f64,
    pub premium_long: f64,
    pub premium_short: f64,
    pub delta: f64,
    pub gamma: f64,
    pub vega: f64,
    pub loss: f64,
    /// By which prices the loss goes: `worse`, `theo` or `market`.
    pub loss_by: LossMark,
    pub worst: f64,
}

/// What a market maker promised for every option.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ObligationsSection {
    /// Widest quote.
    pub width_max: Amount,
    /// Least contracts on each side.
    pub size_min: u32,
    /// Share of the options.
    pub series_min: Share,
    /// Share of the time.
    pub time_min: Share,
}

/// A future. The first one is the front that forwards follow.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FutureSection {
    pub symbol: String,
    /// Money of a point of its price; of prices in hundredths of a point, a hundredth of the contract's size.
    #[serde(default)]
    pub multiplier: PointMoney,
    /// Money that a contract costs to trade.
    #[serde(default)]
    pub fee: Amount,
    /// Points above the front.
    #[serde(default)]
    pub roll: f64,
}

/// An expiry and its options: a call and a put of each strike.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ExpirySection {
    /// Options are called by it: `EW4X6 C5000`.
    pub name: String,
    pub at: Instant,
    #[serde(default)]
    pub model: ModelName,
    #[serde(default)]
    pub multiplier: PointMoney,
    #[serde(default)]
    pub fee: Amount,
    /// Points of its forward above the front, where a market does not say the forward.
    #[serde(default)]
    pub roll: f64,
    pub strikes: Strikes,
}

/// How options are valued.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ModelName {
    #[default]
    Black76,
    Bachelier,
}

impl From<ModelName> for Model {
    fn from(name: ModelName) -> Model {
        match name {
            ModelName::Black76 => Model::Black76,
            ModelName::Bachelier => Model::Bachelier,
        }
    }
}

/// From the first strike to the last.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Strikes {
    pub from: Amount,
    pub to: Amount,
    pub step: Amount,
}

/// A position from the day before, at its settlement price.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PositionSection {
    pub symbol: String,
    /// Below 0: short.
    pub contracts: i64,
    pub settle: Amount,
}

/// The market at an instant: everything is valued anew.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct MarketSection {
    pub at: Instant,
    /// Price of the first future.
    pub front: Amount,
    /// By expiry; one that is not named has its strikes' volatilities of the market before.
    #[serde(default)]
    pub curve: BTreeMap<String, CurveSection>,
}

/// An expiry's forward and volatilities: one of `vol`, `wing`, `svi`.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct CurveSection {
    /// Without it, the front and the expiry's roll.
    pub forward: Option<f64>,
    /// The same for all strikes; in points with `bachelier`.
    pub vol: Option<f64>,
    pub wing: Option<WingSection>,
    pub svi: Option<SviSection>,
}

/// See [`Svi`].
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SviSection {
    a: f64,
    b: f64,
    rho: f64,
    m: f64,
    sigma: f64,
}

impl CurveSection {
    /// The curve it says, if one.
    pub(super) fn curve(&self) -> Result<Option<Curve>, &'static str> {
        match (self.vol, self.wing, self.svi) {
            (None, None, None) => Ok(None),
            (Some(vol), None, None) => Ok(Some(Curve::Wing(Wing::flat(vol)))),
            (None, Some(wing), None) => Ok(Some(Curve::Wing(wing.wing()))),
            (None, None, Some(s)) => Ok(Some(Curve::Svi(Svi {
                a: s.a,
                b: s.b,
                rho: s.rho,
                m: s.m,
                sigma: s.sigma,
            }))),
            _ => Err("give one of vol, wing and svi"),
        }
    }
}

/// An ISO 4217 code.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(try_from = "String")]
pub(super) struct Code(pub Currency);

impl Default for Code {
    fn default() -> Code {
        Code(Currency::USD)
    }
}

impl TryFrom<String> for Code {
    type Error = String;
    fn try_from(text: String) -> Result<Code, String> {
        let code = text.as_bytes().try_into().ok().and_then(Currency::new);
        code.map(Code)
            .ok_or_else(|| format!("{text:?} is no currency: three capital letters, as USD"))
    }
}

/// Money of a point: a whole number, or a decimal as text so that it is exact.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(try_from = "NumberOrText")]
pub(super) struct PointMoney(i64);

#[derive(Deserialize)]
#[serde(untagged)]
enum NumberOrText {
    Number(u32),
    Text(String),
}

impl Default for PointMoney {
    fn default() -> PointMoney {
        PointMoney(50 * Price::ONE_RAW)
    }
}

impl TryFrom<NumberOrText> for PointMoney {
    type Error = String;
    fn try_from(said: NumberOrText) -> Result<PointMoney, String> {
        let (raw, text) = match said {
            NumberOrText::Number(whole) => (Some(i64::from(whole) * Price::ONE_RAW), whole.to_string()),
            NumberOrText::Text(text) => (text.parse::<Price>().ok().map(Price::raw), text),
        };
        raw.filter(|raw| *raw > 0).map(PointMoney).ok_or_else(|| {
            format!("multiplier {text:?} must be above 0: a whole number, or a decimal as text (\"0.5\")")
        })
    }
}

impl PointMoney {
    /// In a currency.
    pub(super) fn value(self, currency: Code) -> PointValue {
        PointValue::new(self.0, currency.0).unwrap_or(PointValue::unit(currency.0))
    }
}

/// A price or an amount of money, as text so that it is exact.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(try_from = "String")]
pub(super) struct Amount(pub Price);

impl TryFrom<String> for Amount {
    type Error = String;
    fn try_from(text: String) -> Result<Amount, String> {
        let price = text.parse::<Price>();
        price
            .map(Amount)
            .map_err(|e| format!("{text:?} is no price: {e}"))
    }
}

/// A share, 0 to 1.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(try_from = "f64")]
pub(super) struct Share(pub f64);

impl TryFrom<f64> for Share {
    type Error = String;
    fn try_from(share: f64) -> Result<Share, String> {
        match (0.0..=1.0).contains(&share) {
            true => Ok(Share(share)),
            false => Err(format!("{share} is outside 0..=1 (a share, not a percentage)")),
        }
    }
}

/// An instant, as `2026-11-20T14:30:00Z`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Deserialize)]
#[serde(try_from = "String")]
pub(super) struct Instant(pub Nanos);

impl TryFrom<String> for Instant {
    type Error = String;
    fn try_from(text: String) -> Result<Instant, String> {
        instant(&text).map(Instant)
    }
}

/// An instant of RFC 3339, since 1970.
pub(super) fn instant(text: &str) -> Result<Nanos, String> {
    let wrong = || format!("{text:?} is no instant as 2026-11-20T14:30:00Z");
    let stamp: jiff::Timestamp = text.parse().map_err(|_| wrong())?;
    let ns = u64::try_from(stamp.as_nanosecond()).map_err(|_| wrong())?;
    Ok(Nanos(ns))
}

fn spots() -> Vec<f64> {
    (-10..=10).map(|n| f64::from(n) / 100.0).collect()
}
fn vols() -> Vec<f64> {
    (-5..=5).map(|n| f64::from(n) / 100.0).collect()
}

impl RiskFile {
    /// Reads a file.
    pub(super) fn load(path: &Path) -> Result<RiskFile, Failure> {
        let text = std::fs::read_to_string(path).map_err(|e| {
            let path = path.display();
            Failure::config(format!(
                "cannot read {path}: {e}; give the path of a TOML file (see examples/risk/portfolio.toml)"
            ))
        })?;
        RiskFile::parse(&text).map_err(|e| Failure::config(format!("{}: {e}", path.display())))
    }

    /// Reads its text.
    pub(super) fn parse(text: &str) -> Result<RiskFile, String> {
        tickwire_console::settings::read(text)
    }
}
