//! Everything a report shows, as plain data: made from files by `tickwire risk`, from the running quoter by
//! whoever owns it.

use tickwire_market::{Contract, Nanos, PointValue, Price, PutCall};
use tickwire_options::batch::Engine;
use tickwire_options::{Kind, Terms, edge, implied};
use tickwire_trading::Position;
use tickwire_trading::portfolio::{
    ExpiryState, Explained, Gain, Horizon, Kept, LadderRow, LimitUse, Limits, MarkBy, MarkOut, MarketGain,
    Model, Obligations, ObligationsConfig, Portfolio, QuickRisk, SeriesKept, Slide,
};

/// The state of a portfolio at an instant, and how it came about.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// The portfolio's name, for headings.
    pub title: String,
    /// The currency of everything that is money, e.g. `USD`.
    pub currency: String,
    /// The instant, in nanoseconds since 1970.
    pub at: Nanos,
    /// Names of the expiries, in the order of everything that is by expiry.
    pub expiries: Vec<String>,
    /// Every instrument with a position or a trade, in the order of the listing.
    pub holdings: Vec<Holding>,
    /// By [`MarkBy`].
    pub gains: [Gain; 4],
    /// By the market's mids, where there are none by a rule.
    pub market: MarketGain,
    /// What to look at.
    pub warnings: Vec<String>,
    /// The gain by theoretical value, by where it comes from.
    pub explained: Explained,
    /// What was explained at each time something was valued.
    pub history: Vec<(Nanos, Explained)>,
    /// Greeks by expiry, of the underlying, and together.
    pub risk: QuickRisk,
    /// Or why there is none.
    pub slide: Result<Slide, String>,
    /// Positions and Greeks by strike, ascending.
    pub strikes: Vec<LadderRow>,
    /// How much of each limit is used; limits that are not set have 0.
    pub limits: Vec<LimitUse>,
    /// What was promised to the venue and what was kept of it; `None` where nothing was promised or nothing
    /// was quoted.
    pub obligations: Option<Promised>,
    /// All fills at each horizon, the nearest first.
    pub horizons: [Horizon; 3],
    /// Each fill with its symbol, the oldest first.
    pub fills: Vec<(String, MarkOut)>,
    /// The smile of each expiry; none before the portfolio was valued for the first time.
    pub smiles: Vec<SmileView>,
}

/// An instrument that was held or traded.
#[derive(Clone, Debug)]
pub struct Holding {
    /// As the portfolio lists it.
    pub symbol: String,
    /// What is held of it, and what was traded.
    pub position: Position,
    /// By [`MarkBy`].
    pub marks: [Option<Price>; 4],
    /// By [`MarkBy`].
    pub gains: [Gain; 4],
}

/// An expiry's volatilities: ours, and those of the market.
#[derive(Clone, Debug)]
pub struct SmileView {
    /// Its name, as in [`Snapshot::expiries`].
    pub expiry: String,
    /// The forward price, in points.
    pub forward: f64,
    /// Days until it expires, with fractions.
    pub days: f64,
    /// Whether volatilities are in points.
    pub is_normal: bool,
    /// Ascending by strike, each strike once.
    pub strikes: Vec<SmilePoint>,
}

/// A strike of it.
#[derive(Clone, Copy, Debug)]
pub struct SmilePoint {
    /// In points.
    pub strike: f64,
    /// Our volatility: 0.2 is 20 % a year, or points where [`SmileView::is_normal`].
    pub vol: f64,
    /// Implied by the market's bid and offer of the option that is out of the money.
    pub bid: Option<f64>,
    /// As [`SmilePoint::bid`], by the market's offer.
    pub ask: Option<f64>,
}

/// What a snapshot is made of beside the portfolio.
pub struct Surroundings<'s> {
    /// The portfolio's name, for headings.
    pub title: &'s str,
    /// The currency of everything that is money.
    pub currency: &'s str,
    /// The instant of the snapshot.
    pub at: Nanos,
    /// Names of the expiries, in the portfolio's order.
    pub expiries: &'s [String],
    /// By instrument.
    pub symbols: &'s [String],
    /// By instrument, best bid and offer.
    pub quotes: &'s [[Option<Price>; 2]],
    /// A point of the future that delta is counted in.
    pub future: PointValue,
    /// Gains by theoretical value and by the market that differ by more are a warning; 0 is none.
    pub difference_max: f64,
    /// Moves of the underlying in the scenario grid, as shares of the forward: 0.05 is 5 % up.
    pub spots: &'s [f64],
    /// Moves of volatility in the scenario grid, added to each: 0.01 is one percent up.
    pub vols: &'s [f64],
    /// The limits whose use is shown; 0 is no limit.
    pub limits: Limits,
    /// Explained gains at the instants before this one, the oldest first.
    pub history: Vec<(Nanos, Explained)>,
    /// What was promised and what was kept of it; `None` where nothing was promised.
    pub obligations: Option<Promised>,
    /// All fills at each horizon.
    pub horizons: [Horizon; 3],
    /// Each fill that is kept.
    pub fills: Vec<MarkOut>,
}

/// What was promised, and what was kept of it, altogether and by option.
#[derive(Clone, Debug)]
pub struct Promised {
    /// What was promised.
    pub config: ObligationsConfig,
    /// What was kept of it over all series.
    pub kept: Kept,
    /// By the option's symbol, what was kept of each series.
    pub series: Vec<(String, SeriesKept)>,
}

impl Promised {
    /// Until `now`, of series with these names.
    pub fn of(obligations: &mut Obligations, now: Nanos, names: &[String]) -> Promised {
        let kept = obligations.kept(now);
        Promised {
            config: *obligations.config(),
            kept,
            series: names.iter().cloned().zip(obligations.series_kept()).collect(),
        }
    }
}

impl Snapshot {
    /// Takes the snapshot: marks and gains of every holding, Greeks, the scenario grid by full revaluation,
    /// limits and smiles. It allocates, and the grid takes a revaluation per cell: it is for a report, not
    /// for the hot path.
    pub fn of(portfolio: &Portfolio, around: Surroundings<'_>) -> Snapshot {
        let slide = portfolio
            .slide(&Engine::detect(), around.spots, around.vols)
            .map_err(|e| e.to_string());
        let worst = slide.as_ref().ok().map(|slide| slide.worst.gain);
        let symbol = |n: u32| around.symbols.get(n as usize).cloned().unwrap_or_default();
        let holding = |n: u32| Holding {
            symbol: symbol(n),
            position: portfolio.position(n),
            marks: MarkBy::ALL.map(|by| portfolio.marked(n, by)),
            gains: MarkBy::ALL.map(|by| portfolio.gain_of(n, by)),
        };
        let all = (0..portfolio.listings().len() as u32).map(holding);
        let was_held = |h: &Holding| h.position != Position::default();
        Snapshot {
            title: around.title.to_owned(),
            currency: around.currency.to_owned(),
            at: around.at,
            expiries: around.expiries.to_vec(),
            holdings: all.filter(was_held).collect(),
            gains: MarkBy::ALL.map(|by| portfolio.gain(by)),
            market: portfolio.market_gain(),
            warnings: warnings(portfolio, &around),
            explained: portfolio.explained(),
            history: around.history,
            risk: portfolio.quick_risk(around.future),
            strikes: portfolio.strike_ladder(around.future),
            limits: portfolio.limits_in_use(&around.limits, around.future, worst),
            slide,
            obligations: around.obligations,
            horizons: around.horizons,
            fills: around
                .fills
                .iter()
                .map(|fill| (symbol(fill.instrument), *fill))
                .collect(),
            smiles: smiles(portfolio, around.expiries, around.quotes),
        }
    }
}

/// What to look at: gains by our values and by the market that do not agree, and positions that have no
/// market.
fn warnings(portfolio: &Portfolio, around: &Surroundings<'_>) -> Vec<String> {
    let (theo, market) = (portfolio.gain(MarkBy::Theo), portfolio.market_gain());
    let mut all = Vec::new();
    let units = |nano: i128| nano as f64 / Price::ONE_RAW as f64;
    let differ = units(theo.net() - market.gain.net());
    let are_known = theo.unmarked == 0 && market.gain.unmarked == 0;
    if are_known && around.difference_max > 0.0 && differ.abs() > around.difference_max {
        all.push(format!(
            "P&L by theoretical value and by market mid differ by {:.2} {}: more than {:.2}",
            differ.abs(),
            around.currency,
            around.difference_max
        ));
    }
    if market.without_mid > 0 {
        all.push(format!(
            "{} positions, {} contracts, have no market mid: each counts at the worse of its last mid and its theoretical value",
            market.without_mid, market.contracts
        ));
    }
    all
}

fn smiles(portfolio: &Portfolio, names: &[String], quotes: &[[Option<Price>; 2]]) -> Vec<SmileView> {
    let Some(state) = portfolio.state() else {
        return Vec::new();
    };
    let view = |(n, (expiry, name)): (usize, (&ExpiryState, &String))| {
        let mut strikes: Vec<SmilePoint> = Vec::new();
        for (at, listing) in portfolio.listings().iter().enumerate() {
            let Contract::Option { strike, right, .. } = listing.contract else {
                continue;
            };
            let strike = edge::points(strike);
            let kind = match right {
                PutCall::Call => Kind::Call,
                PutCall::Put => Kind::Put,
            };
            // Each strike once, by the option that is out of the money.
            let is_out = (kind == Kind::Call) == (strike >= expiry.forward);
            if usize::from(listing.expiry) != n || !is_out {
                continue;
            }
            let terms = Terms {
                forward: expiry.forward,
                strike,
                years: expiry.years,
                vol: state.levels[at],
                rate: expiry.rate,
                kind,
            };
            let implied = |side: usize| {
                let price = edge::points((*quotes.get(at)?)[side]?);
                let vol = match expiry.model {
                    Model::Black76 => implied::black76(&terms, price),
                    Model::Bachelier => implied::bachelier(&terms, price),
                };
                // A volatility of 0 says that there is no time value: nothing to show.
                vol.ok().filter(|vol| *vol > 0.0)
            };
            strikes.push(SmilePoint {
                strike,
                vol: terms.vol,
                bid: implied(0),
                ask: implied(1),
            });
        }
        strikes.sort_by(|a, b| a.strike.total_cmp(&b.strike));
        SmileView {
            expiry: name.clone(),
            forward: expiry.forward,
            days: expiry.days,
            is_normal: expiry.model == Model::Bachelier,
            strikes,
        }
    };
    state.expiries.iter().zip(names).enumerate().map(view).collect()
}

impl SmileView {
    /// The volatility at the strike nearest to the forward.
    pub fn near_the_money(&self) -> Option<f64> {
        let distance = |point: &&SmilePoint| (point.strike - self.forward).abs();
        let nearest = self
            .strikes
            .iter()
            .min_by(|a, b| distance(a).total_cmp(&distance(b)));
        nearest.map(|point| point.vol)
    }
}
