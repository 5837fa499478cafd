//! What a portfolio could gain or lose: Greeks per expiry and together, spot × volatility, strikes, limits in
//! use.

use super::{Gain, MarkBy, Model, Portfolio, kind};
use alloc::collections::BTreeMap;
use alloc::vec;
use alloc::vec::Vec;
use core::fmt;
use tickwire_market::{Contract, PointValue, Price, Side};
use tickwire_options::batch::{Engine, InvalidAt, Listed, Strip};
use tickwire_options::edge;
use tickwire_options::grid::{Cell, Grid, GridError, Position as Held};

/// The time to expiry that weighted vega is scaled to, in days of the calendar.
const REFERENCE_DAYS: f64 = 30.0;
/// A weighted vega counts an expiry as no nearer than this, in days.
const DAYS_MIN: f64 = 0.5;

/// Greeks of many positions in the units that desks look at.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct RiskRow {
    /// Contracts, bought less sold.
    pub position: i64,
    /// Contracts on either side.
    pub gross: u64,
    /// Contracts of the underlying that move alike.
    pub delta: f64,
    /// Change of that, per point of the underlying.
    pub gamma: f64,
    /// Money per volatility point (0.01, or a point of a normal volatility).
    pub vega: f64,
    /// The same, weighted by the square root of the reference time over what is left: volatilities of near
    /// expiries move more.
    pub weighted_vega: f64,
    /// Money per day of the calendar that passes.
    pub theta: f64,
    /// Money per hundredth of the rate, forwards held.
    pub rho: f64,
    /// Change of delta per volatility point.
    pub vanna: f64,
    /// Change of vega per volatility point.
    pub volga: f64,
}

impl RiskRow {
    fn add(&mut self, other: &RiskRow) {
        self.position += other.position;
        self.gross += other.gross;
        for (all, more) in [
            (&mut self.delta, other.delta),
            (&mut self.gamma, other.gamma),
            (&mut self.vega, other.vega),
            (&mut self.weighted_vega, other.weighted_vega),
            (&mut self.theta, other.theta),
            (&mut self.rho, other.rho),
            (&mut self.vanna, other.vanna),
            (&mut self.volga, other.volga),
        ] {
            *all += more;
        }
    }
}

/// Risk at a glance.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct QuickRisk {
    /// By expiry, its options.
    pub expiries: Vec<RiskRow>,
    /// All that is no option.
    pub underlying: RiskRow,
    /// Everything.
    pub total: RiskRow,
}

/// What a portfolio gains where the underlying and volatilities have moved.
#[derive(Clone, PartialEq, Debug)]
pub struct Slide {
    /// Moves of every forward, as shares of it.
    pub spots: Vec<f64>,
    /// Added to every volatility.
    pub vols: Vec<f64>,
    /// Money: all volatilities of the first move, then of the second, and so on.
    pub gains: Vec<f64>,
    /// The largest loss.
    pub worst: Cell,
}

/// Why there is no [`Slide`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SlideError {
    /// Nothing was revalued yet.
    NoMarket,
    /// Volatilities of this expiry are those of prices; the grid moves logarithmic ones.
    Model(usize),
    /// An option of this expiry has no value.
    Option(usize, InvalidAt),
    /// The scenarios, or a forward.
    Grid(GridError),
}

impl fmt::Display for SlideError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SlideError::NoMarket => f.write_str("nothing was valued yet"),
            SlideError::Model(expiry) => write!(
                f,
                "expiry {expiry} has normal volatilities, which the scenario grid does not move"
            ),
            SlideError::Option(expiry, invalid) => write!(f, "expiry {expiry}: {invalid}"),
            SlideError::Grid(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for SlideError {}

/// A strike within an expiry.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct LadderCell {
    /// Contracts of calls and puts, bought less sold.
    pub position: i64,
    /// Change of delta, in contracts of the underlying, per point.
    pub gamma: f64,
}

/// A strike.
#[derive(Clone, PartialEq, Debug)]
pub struct LadderRow {
    /// Its price.
    pub strike: Price,
    /// By expiry.
    pub cells: Vec<LadderCell>,
}

/// Limits on a portfolio; 0 is no limit. Money in units of the currency.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Limits {
    /// Option contracts bought less sold, when above 0.
    pub options_long: f64,
    /// Option contracts sold less bought, when above 0.
    pub options_short: f64,
    /// Contracts of the underlying itself, either way.
    pub futures: f64,
    /// Value of all options held long.
    pub premium_long: f64,
    /// Value of all options held short.
    pub premium_short: f64,
    /// Delta in contracts of the underlying, either way.
    pub delta: f64,
    /// Gamma, either way.
    pub gamma: f64,
    /// Vega, either way.
    pub vega: f64,
    /// Loss of the day, fees included,
    pub loss: f64,
    /// marked by these prices.
    pub loss_by: LossBy,
    /// Loss in the worst cell of the scenario grid.
    pub worst: f64,
}

/// By which prices a loss is judged.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum LossBy {
    /// Theoretical values or the market's mids, whichever shows the larger loss: our own values do not see
    /// that they are wrong, and mids of a thin market are anywhere.
    #[default]
    Worse,
    /// Theoretical values.
    Theo,
    /// The market's mid prices ([`super::MarketGain`]).
    Market,
}

impl LossBy {
    /// The one of two gains, by theoretical value and by the market, that is judged.
    pub fn of(self, theo: f64, market: f64) -> f64 {
        match self {
            LossBy::Worse => theo.min(market),
            LossBy::Theo => theo,
            LossBy::Market => market,
        }
    }
}

/// How much of a limit is in use.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct LimitUse {
    /// Which.
    pub name: &'static str,
    /// What there is.
    pub used: f64,
    /// The limit; 0 is none.
    pub limit: f64,
}

impl LimitUse {
    /// The share that is in use; `None` without a limit.
    pub fn share(&self) -> Option<f64> {
        (self.limit > 0.0).then(|| self.used / self.limit)
    }
}

impl Portfolio {
    /// Greeks per expiry and together, at the last revaluation. `future` is a point of the one that delta is
    /// counted in.
    pub fn quick_risk(&self, future: PointValue) -> QuickRisk {
        let expiries = self.state.as_ref().map_or(0, |state| state.expiries.len());
        let mut risk = QuickRisk {
            expiries: vec![RiskRow::default(); expiries],
            ..QuickRisk::default()
        };
        for at in 0..self.listings.len() {
            let row = self.risk_of(at, future);
            let is_option = matches!(self.listings[at].contract, Contract::Option { .. });
            let expiry = usize::from(self.listings[at].expiry);
            match risk.expiries.get_mut(expiry).filter(|_| is_option) {
                Some(all) => all.add(&row),
                None => risk.underlying.add(&row),
            }
            risk.total.add(&row);
        }
        risk
    }

    fn risk_of(&self, at: usize, future: PointValue) -> RiskRow {
        let (listing, qty, g) = (&self.listings[at], self.positions[at].qty, &self.greeks[at]);
        let money = qty as f64 * self.point(at);
        let contracts = qty as f64 * (listing.value.raw() as f64 / future.raw() as f64);
        let expiry = self
            .state
            .as_ref()
            .and_then(|state| state.expiries.get(usize::from(listing.expiry)));
        let (mut per_day, mut weight, mut point) = (0.0, 0.0, 0.01);
        if let Some(expiry) = expiry {
            per_day = expiry.years / expiry.days.max(DAYS_MIN);
            weight = libm::sqrt(REFERENCE_DAYS / expiry.days.max(DAYS_MIN));
            if expiry.model == Model::Bachelier {
                point = 1.0;
            }
        }
        let vega = money * g.vega * point;
        RiskRow {
            position: qty,
            gross: qty.unsigned_abs(),
            delta: contracts * g.delta,
            gamma: contracts * g.gamma,
            vega,
            weighted_vega: vega * weight,
            theta: money * g.theta * per_day,
            rho: money * g.rho * 0.01,
            vanna: contracts * g.vanna * point,
            volga: money * g.volga * point * point,
        }
    }

    /// Puts everything through moves of the underlying times moves of volatilities, by full revaluation.
    ///
    /// # Errors
    /// [`SlideError`].
    pub fn slide(&self, engine: &Engine, spots: &[f64], vols: &[f64]) -> Result<Slide, SlideError> {
        let state = self.state.as_ref().ok_or(SlideError::NoMarket)?;
        let (mut strips, mut forwards, mut held) = (Vec::new(), Vec::new(), Vec::new());
        for (n, expiry) in state.expiries.iter().enumerate() {
            let mut listed = Vec::new();
            for (at, listing) in self.listings.iter().enumerate() {
                let Contract::Option { strike, right, .. } = listing.contract else {
                    continue;
                };
                let qty = self.positions[at].qty;
                if usize::from(listing.expiry) != n || qty == 0 {
                    continue;
                }
                if expiry.model == Model::Bachelier {
                    return Err(SlideError::Model(n));
                }
                held.push(Held {
                    strip: strips.len(),
                    option: listed.len(),
                    quantity: qty as f64 * self.point(at),
                });
                listed.push(Listed {
                    strike: edge::points(strike),
                    kind: kind(right),
                    vol: state.levels[at],
                });
            }
            if listed.is_empty() {
                continue;
            }
            let strip = Strip::new(expiry.forward, expiry.years, expiry.rate, &listed);
            strips.push(strip.map_err(|invalid| SlideError::Option(n, invalid))?);
            forwards.push(expiry.forward);
        }
        let mut grid = Grid::new(&strips, &held, spots, vols).map_err(SlideError::Grid)?;
        grid.run(engine, &forwards, 0.0).map_err(SlideError::Grid)?;
        let futures = self.listings.iter().enumerate().filter_map(|(at, listing)| {
            let is_option = matches!(listing.contract, Contract::Option { .. });
            let money = self.positions[at].qty as f64 * self.point(at);
            (!is_option).then(|| money * state.levels[at])
        });
        let per_move: f64 = futures.sum();
        let mut slide = Slide {
            spots: spots.to_vec(),
            vols: vols.to_vec(),
            gains: Vec::new(),
            worst: Cell {
                spot: 0.0,
                vol: 0.0,
                gain: f64::INFINITY,
            },
        };
        for cell in grid.cells() {
            let gain = cell.gain + per_move * cell.spot;
            slide.gains.push(gain);
            if gain < slide.worst.gain {
                slide.worst = Cell { gain, ..cell };
            }
        }
        Ok(slide)
    }

    /// Position and gamma by strike and expiry, lowest strike first; strikes without a position are left out.
    pub fn strike_ladder(&self, future: PointValue) -> Vec<LadderRow> {
        let expiries = self.state.as_ref().map_or(0, |state| state.expiries.len());
        let mut rows: BTreeMap<Price, Vec<LadderCell>> = BTreeMap::new();
        for (at, listing) in self.listings.iter().enumerate() {
            let Contract::Option { strike, .. } = listing.contract else {
                continue;
            };
            let row = self.risk_of(at, future);
            if row.position == 0 {
                continue;
            }
            let cells = rows
                .entry(strike)
                .or_insert_with(|| vec![LadderCell::default(); expiries]);
            if let Some(cell) = cells.get_mut(usize::from(listing.expiry)) {
                cell.position += row.position;
                cell.gamma += row.gamma;
            }
        }
        let row = |(strike, cells)| LadderRow { strike, cells };
        rows.into_iter().map(row).collect()
    }

    /// Money of a point of an instrument.
    fn point(&self, at: usize) -> f64 {
        self.listings[at].value.raw() as f64 / Price::ONE_RAW as f64
    }

    /// Value of options held on one side, in money.
    fn premium(&self, side: Side) -> f64 {
        let each = self.listings.iter().enumerate().filter_map(|(at, listing)| {
            let qty = self.positions[at].qty;
            let is_on_side = (qty > 0) == (side == Side::Bid);
            let is_option = matches!(listing.contract, Contract::Option { .. });
            let theo = self.marks[at][MarkBy::Theo as usize]?;
            (is_option && is_on_side).then(|| qty.unsigned_abs() as f64 * self.point(at) * edge::points(theo))
        });
        each.sum()
    }

    /// How much of each limit is in use; `worst` is that of a [`Slide`], if there is one.
    pub fn limits_in_use(&self, limits: &Limits, future: PointValue, worst: Option<f64>) -> Vec<LimitUse> {
        let risk = self.quick_risk(future);
        let options: i64 = risk.expiries.iter().map(|row| row.position).sum();
        let units = |gain: Gain| gain.net() as f64 / Price::ONE_RAW as f64;
        let (theo, market) = (units(self.gain(MarkBy::Theo)), units(self.market_gain().gain));
        let loss = |money: f64| (-money).max(0.0);
        let rows = [
            ("options long", options.max(0) as f64, limits.options_long),
            ("options short", (-options).max(0) as f64, limits.options_short),
            (
                "underlying",
                risk.underlying.position.unsigned_abs() as f64,
                limits.futures,
            ),
            ("premium long", self.premium(Side::Bid), limits.premium_long),
            ("premium short", self.premium(Side::Ask), limits.premium_short),
            ("delta", risk.total.delta.abs(), limits.delta),
            ("gamma", risk.total.gamma.abs(), limits.gamma),
            ("vega", risk.total.vega.abs(), limits.vega),
            ("loss", loss(limits.loss_by.of(theo, market)), limits.loss),
            ("loss by theoretical value", loss(theo), 0.0),
            ("loss by market mid", loss(market), 0.0),
            ("worst scenario", loss(worst.unwrap_or(0.0)), limits.worst),
        ];
        rows.map(|(name, used, limit)| LimitUse { name, used, limit })
            .into()
    }
}
