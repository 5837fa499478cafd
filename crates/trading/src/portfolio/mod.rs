//! What is held, what it has earned and why.
//!
//! ```text
//! Trade ──► Portfolio ──► position, money by last, mid, settlement, theoretical value
//! MarketState ─► revalue ─► theoretical values and Greeks ─► Explained: delta, gamma, vega, theta, edge, fees, rest
//!                                                        └► risk: per expiry, spot × volatility, strike ladder, limits
//! quotes ──► Obligations      fills and mid prices ──► MarkOuts
//! ```
//!
//! Money is counted in whole 1e-9 of the currency, so that what comes in as fills, marks and fees comes out
//! as gain to the last digit; only Greeks are real numbers, and what they leave unexplained is the rest.
//! Nothing here is on the hot path.

mod mark_out;
mod obligations;
mod risk;
#[cfg(test)]
mod tests;

pub use mark_out::{Horizon, MarkOut, MarkOuts, MarkOutsConfig};
pub use obligations::{Kept, Obligations, ObligationsConfig, Series, SeriesKept};
pub use risk::{LadderCell, LadderRow, LimitUse, Limits, LossBy, QuickRisk, RiskRow, Slide, SlideError};

use crate::Position;
use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;
use core::fmt;
use tickwire_market::{Contract, Nanos, PointValue, Price, PutCall, Qty, Side};
use tickwire_options::{Greeks, Invalid, Kind, Terms, bachelier, black76, edge};

/// A portfolio's instrument.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Listing {
    /// What it is. Anything but an option moves with the underlying one to one.
    pub contract: Contract,
    /// What a point of its price is worth for one contract; all of a portfolio in one currency.
    pub value: PointValue,
    /// Of an option, the place of its expiry in [`MarketState::expiries`].
    pub expiry: u16,
    /// Money that a contract costs to trade.
    pub fee: Price,
}

/// How an expiry's options are valued; early exercise is not.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Model {
    /// [`black76`].
    #[default]
    Black76,
    /// [`bachelier`]: volatilities in points.
    Bachelier,
}

/// The market of an expiry.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ExpiryState {
    /// Price of the underlying for this expiry, in points.
    pub forward: f64,
    /// Time that is left as the model counts it, in years: business time, for instance.
    pub years: f64,
    /// The same in days of the calendar.
    pub days: f64,
    /// Continuously compounded, per year of `years`.
    pub rate: f64,
    /// How its options are valued.
    pub model: Model,
}

/// The market at an instant.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct MarketState {
    /// The expiries, in order.
    pub expiries: Vec<ExpiryState>,
    /// By instrument: an option's volatility, the price in points of anything else.
    pub levels: Vec<f64>,
}

/// Something bought or sold.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Trade {
    /// When.
    pub at: Nanos,
    /// Place of the instrument.
    pub instrument: u32,
    /// Our side.
    pub side: Side,
    /// Contracts.
    pub qty: Qty,
    /// At which price.
    pub price: Price,
    /// What it was worth then; without it, what it was worth at the last revaluation, or what was paid before
    /// there was any.
    pub theo: Option<Price>,
    /// The forward of its expiry then; without it, that of the last revaluation.
    pub forward: Option<Price>,
}

/// Which price a position is worth.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MarkBy {
    /// The last trade.
    Last = 0,
    /// The middle of best bid and offer.
    Mid = 1,
    /// The venue's settlement price.
    Settle = 2,
    /// The theoretical value.
    Theo = 3,
}

impl MarkBy {
    /// Every one.
    pub const ALL: [MarkBy; 4] = [MarkBy::Last, MarkBy::Mid, MarkBy::Settle, MarkBy::Theo];

    /// For tables and files.
    pub const fn name(self) -> &'static str {
        match self {
            MarkBy::Last => "last",
            MarkBy::Mid => "mid",
            MarkBy::Settle => "settle",
            MarkBy::Theo => "theo",
        }
    }
}

/// What was earned, in 1e-9 money.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Gain {
    /// Before fees.
    pub gross: i128,
    /// Paid in fees.
    pub fees: i128,
    /// Instruments with a position that have no such mark: their position counts as worth nothing, so that
    /// the gain says nothing.
    pub unmarked: u32,
}

impl Gain {
    /// After fees.
    pub const fn net(&self) -> i128 {
        self.gross - self.fees
    }

    const fn plus(&self, other: &Gain) -> Gain {
        Gain {
            gross: self.gross + other.gross,
            fees: self.fees + other.fees,
            unmarked: self.unmarked + other.unmarked,
        }
    }
}

/// What was earned by the market's mid prices, in 1e-9 money. A position without a mid now counts as what is
/// worse for it of the last mid it had and its theoretical value.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct MarketGain {
    /// All of it; those that have neither mid nor theoretical value are its `unmarked`.
    pub gain: Gain,
    /// Positions that have no mid now,
    pub without_mid: u32,
    /// and their contracts, either way.
    pub contracts: u64,
}

/// Where the gain by theoretical value comes from, in 1e-9 money. The parts add up to it exactly.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Explained {
    /// Moves of forwards times delta.
    pub delta: i128,
    /// Half their squares times gamma.
    pub gamma: i128,
    /// Moves of volatilities times vega.
    pub vega: i128,
    /// Time that passed times theta.
    pub theta: i128,
    /// Theoretical value less price of what was bought, price less value of what was sold.
    pub edge: i128,
    /// Fees, below 0.
    pub fees: i128,
    /// What none of these explains: higher orders, rates, positions that were opened at a settlement price.
    pub rest: i128,
}

impl Explained {
    /// Names of the parts, in order.
    pub const NAMES: [&'static str; 7] = ["delta", "gamma", "vega", "theta", "edge", "fees", "rest"];

    /// The parts, in the order of their names.
    pub const fn parts(&self) -> [i128; 7] {
        [
            self.delta, self.gamma, self.vega, self.theta, self.edge, self.fees, self.rest,
        ]
    }

    /// All of it.
    pub fn total(&self) -> i128 {
        self.parts().iter().sum()
    }
}

/// Why something was not done; nothing changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PortfolioError {
    /// There is no instrument of this number.
    Instrument(u32),
    /// The market has not as many levels as there are instruments, or lacks an expiry that one of them names.
    State,
    /// An instrument has no value in this market: its place, and which of its terms.
    Invalid(u32, Invalid),
    /// Its value is no price.
    Range(u32),
}

impl fmt::Display for PortfolioError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PortfolioError::Instrument(n) => write!(f, "there is no instrument {n}"),
            PortfolioError::State => {
                f.write_str("a level for each instrument and every expiry must be there")
            }
            PortfolioError::Invalid(n, invalid) => write!(f, "instrument {n}: {invalid}"),
            PortfolioError::Range(n) => write!(f, "instrument {n}: its value is out of range"),
        }
    }
}

impl core::error::Error for PortfolioError {}

/// What was traded since the last revaluation, with a value of its own.
#[derive(Clone, Copy, Debug, Default)]
struct Lots {
    /// Bought less sold.
    qty: i64,
    /// The same times what it was worth then, in 1e-9 points.
    worth: i128,
    /// Times how far the forward had moved then, and its square.
    moved: f64,
    moved_squared: f64,
}

/// Positions of one account and their value.
#[derive(Clone, Debug)]
pub struct Portfolio {
    listings: Box<[Listing]>,
    positions: Box<[Position]>,
    fees: Box<[i128]>,
    marks: Box<[[Option<Price>; 4]]>,
    /// The last mid that each ever had.
    last_mids: Box<[Option<Price>]>,
    /// What was explained of each, in 1e-9 points.
    earned: Box<[i128]>,
    lots: Box<[Lots]>,
    greeks: Box<[Greeks]>,
    /// Of the last revaluation.
    state: Option<MarketState>,
    explained: Explained,
}

impl Portfolio {
    /// Nothing held.
    pub fn new(listings: &[Listing]) -> Portfolio {
        let count = listings.len();
        Portfolio {
            listings: listings.into(),
            positions: vec![Position::default(); count].into_boxed_slice(),
            fees: vec![0; count].into_boxed_slice(),
            marks: vec![[None; 4]; count].into_boxed_slice(),
            last_mids: vec![None; count].into_boxed_slice(),
            earned: vec![0; count].into_boxed_slice(),
            lots: vec![Lots::default(); count].into_boxed_slice(),
            greeks: vec![Greeks::default(); count].into_boxed_slice(),
            state: None,
            explained: Explained::default(),
        }
    }

    fn place(&self, instrument: u32) -> Result<usize, PortfolioError> {
        let at = instrument as usize;
        (at < self.listings.len())
            .then_some(at)
            .ok_or(PortfolioError::Instrument(instrument))
    }

    /// A position from the day before, worth its settlement price: no fee, no edge. Below 0 it is short.
    ///
    /// # Errors
    /// [`PortfolioError::Instrument`].
    pub fn open(&mut self, instrument: u32, qty: i64, settle: Price) -> Result<(), PortfolioError> {
        let at = self.place(instrument)?;
        let worth = i128::from(qty) * i128::from(settle.raw());
        self.positions[at].qty += qty;
        self.positions[at].cost += worth;
        self.lots[at].qty += qty;
        self.lots[at].worth += worth;
        Ok(())
    }

    /// Something was bought or sold.
    ///
    /// # Errors
    /// [`PortfolioError::Instrument`].
    pub fn trade(&mut self, trade: &Trade) -> Result<(), PortfolioError> {
        let at = self.place(trade.instrument)?;
        self.positions[at].trade(trade.side, trade.qty, trade.price);
        self.enter(at, trade, 1);
        Ok(())
    }

    /// The venue takes back what was bought or sold: the contracts go, what they cost comes back, and their
    /// fee. `theo` and `forward` are those of now: what they earned in the meantime goes with the edge.
    ///
    /// # Errors
    /// [`PortfolioError::Instrument`].
    pub fn take_back(&mut self, trade: &Trade) -> Result<(), PortfolioError> {
        let at = self.place(trade.instrument)?;
        self.positions[at].untrade(trade.side, trade.qty, trade.price);
        self.enter(at, trade, -1);
        Ok(())
    }

    /// What a trade does beside the position: `times` is -1 for one that is taken back.
    fn enter(&mut self, at: usize, trade: &Trade, times: i64) {
        let fee = self.listings[at].fee;
        let signed = times
            * match trade.side {
                Side::Bid => i64::from(trade.qty.0),
                Side::Ask => -i64::from(trade.qty.0),
            };
        let before = self.state.as_ref().and(self.marks[at][MarkBy::Theo as usize]);
        let theo = trade.theo.or(before).unwrap_or(trade.price);
        let fees = fee.notional(trade.qty.0.into()) * i128::from(times);
        self.fees[at] += fees;
        self.explained.fees -= fees;
        let edge = i128::from(theo.raw()) - i128::from(trade.price.raw());
        self.explained.edge += self.earn(at, edge * i128::from(signed));
        if trade.theo.is_none() && before.is_some() {
            // Worth what it was at the last revaluation: as if it had been held since then.
            return;
        }
        let moved = match (&self.state, trade.forward) {
            (Some(state), Some(forward)) => edge::points(forward) - self.forward(state, at),
            _ => 0.0,
        };
        let lots = &mut self.lots[at];
        lots.qty += signed;
        lots.worth += i128::from(signed) * i128::from(theo.raw());
        lots.moved += signed as f64 * moved;
        lots.moved_squared += signed as f64 * moved * moved;
    }

    /// So many more 1e-9 points were earned with an instrument: as money, so that the sum of all is that of
    /// the sum, rounded once.
    fn earn(&mut self, at: usize, points: i128) -> i128 {
        let value = self.listings[at].value;
        let before = value.money(self.earned[at]);
        self.earned[at] += points;
        value.money(self.earned[at]) - before
    }

    /// What a position moves with, in points.
    fn forward(&self, state: &MarketState, at: usize) -> f64 {
        match self.listings[at].contract {
            Contract::Option { .. } => {
                let expiry = usize::from(self.listings[at].expiry);
                state.expiries.get(expiry).map_or(0.0, |expiry| expiry.forward)
            }
            _ => state.levels.get(at).copied().unwrap_or(0.0),
        }
    }

    /// A price that positions may be marked by. Theoretical values are made by [`Portfolio::revalue`].
    ///
    /// # Errors
    /// [`PortfolioError::Instrument`].
    pub fn mark(&mut self, instrument: u32, by: MarkBy, price: Price) -> Result<(), PortfolioError> {
        let at = self.place(instrument)?;
        self.marks[at][by as usize] = Some(price);
        if by == MarkBy::Mid {
            self.last_mids[at] = Some(price);
        }
        Ok(())
    }

    /// There is no such price any more: a market that has lost a side has no mid.
    ///
    /// # Errors
    /// [`PortfolioError::Instrument`].
    pub fn unmark(&mut self, instrument: u32, by: MarkBy) -> Result<(), PortfolioError> {
        let at = self.place(instrument)?;
        self.marks[at][by as usize] = None;
        Ok(())
    }

    /// Values everything in another market and explains what that earned.
    ///
    /// # Errors
    /// What has no value there.
    pub fn revalue(&mut self, state: &MarketState) -> Result<(), PortfolioError> {
        if state.levels.len() != self.listings.len() {
            return Err(PortfolioError::State);
        }
        let mut made = Vec::with_capacity(self.listings.len());
        for at in 0..self.listings.len() {
            made.push(self.value(state, at)?);
        }
        let before = self.state.take();
        for (at, (value, greeks)) in made.into_iter().enumerate() {
            let (points, mut earned) = self.explain(at, before.as_ref(), state, value);
            earned.rest = self.earn(at, points) - earned.total();
            let all = &mut self.explained;
            for (part, more) in [
                (&mut all.delta, earned.delta),
                (&mut all.gamma, earned.gamma),
                (&mut all.vega, earned.vega),
                (&mut all.theta, earned.theta),
                (&mut all.rest, earned.rest),
            ] {
                *part += more;
            }
            self.lots[at] = Lots::default();
            self.marks[at][MarkBy::Theo as usize] = Some(value);
            self.greeks[at] = greeks;
        }
        self.state = Some(state.clone());
        Ok(())
    }

    /// An instrument's value and Greeks in a market.
    fn value(&self, state: &MarketState, at: usize) -> Result<(Price, Greeks), PortfolioError> {
        let n = at as u32;
        let level = state.levels[at];
        let greeks = match self.terms(state, at)? {
            None if level.is_finite() => Greeks {
                price: level,
                delta: 1.0,
                ..Greeks::default()
            },
            None => return Err(PortfolioError::Invalid(n, Invalid::Forward)),
            Some((terms, Model::Black76)) => {
                black76::greeks(&terms).map_err(|invalid| PortfolioError::Invalid(n, invalid))?
            }
            Some((terms, Model::Bachelier)) => {
                bachelier::greeks(&terms).map_err(|invalid| PortfolioError::Invalid(n, invalid))?
            }
        };
        let value = edge::value(greeks.price).ok_or(PortfolioError::Range(n))?;
        Ok((value, greeks))
    }

    /// An option's terms; `None` of what is none.
    fn terms(&self, state: &MarketState, at: usize) -> Result<Option<(Terms, Model)>, PortfolioError> {
        let Contract::Option { strike, right, .. } = self.listings[at].contract else {
            return Ok(None);
        };
        let expiry = state.expiries.get(usize::from(self.listings[at].expiry));
        let expiry = expiry.ok_or(PortfolioError::State)?;
        let terms = Terms {
            forward: expiry.forward,
            strike: edge::points(strike),
            years: expiry.years,
            vol: state.levels[at],
            rate: expiry.rate,
            kind: kind(right),
        };
        Ok(Some((terms, expiry.model)))
    }

    /// What a revaluation earned with an instrument, in 1e-9 points, and what of that Greeks explain, in
    /// money: edge and fees are brought by trades, the rest is what is left.
    fn explain(
        &self,
        at: usize,
        before: Option<&MarketState>,
        after: &MarketState,
        value: Price,
    ) -> (i128, Explained) {
        let lots = self.lots[at];
        let held = self.positions[at].qty - lots.qty;
        let point = self.listings[at].value.raw() as f64 / Price::ONE_RAW as f64;
        let worth = |qty: i64, price: Price| i128::from(qty) * i128::from(price.raw());
        let old = self.marks[at][MarkBy::Theo as usize].unwrap_or(value);
        let points = worth(held, value) - worth(held, old) + worth(lots.qty, value) - lots.worth;
        let Some(before) = before else {
            return (points, Explained::default());
        };
        let g = &self.greeks[at];
        let df = self.forward(after, at) - self.forward(before, at);
        let (mut dv, mut dt) = (0.0, 0.0);
        if matches!(self.listings[at].contract, Contract::Option { .. }) {
            let expiry = usize::from(self.listings[at].expiry);
            dv = after.levels[at] - before.levels[at];
            dt = before.expiries[expiry].years - after.expiries[expiry].years;
        }
        let (held, traded) = (held as f64, lots.qty as f64);
        let money = |points: f64| nano(point * points);
        let first = (held + traded) * df - lots.moved;
        let second = (held + traded) * df * df - 2.0 * df * lots.moved + lots.moved_squared;
        let explained = Explained {
            delta: money(g.delta * first),
            gamma: money(0.5 * g.gamma * second),
            vega: money(g.vega * held * dv),
            theta: money(g.theta * held * dt),
            ..Explained::default()
        };
        (points, explained)
    }

    /// Its instruments, in order.
    pub fn listings(&self) -> &[Listing] {
        &self.listings
    }

    /// The position in an instrument: contracts, and what they cost in 1e-9 points.
    pub fn position(&self, instrument: u32) -> Position {
        self.positions
            .get(instrument as usize)
            .copied()
            .unwrap_or_default()
    }

    /// A mark of an instrument, if it has one.
    pub fn marked(&self, instrument: u32, by: MarkBy) -> Option<Price> {
        self.marks
            .get(instrument as usize)
            .and_then(|marks| marks[by as usize])
    }

    /// Greeks of one contract at the last revaluation, in points.
    pub fn greeks(&self, instrument: u32) -> Greeks {
        self.greeks.get(instrument as usize).copied().unwrap_or_default()
    }

    /// The market of the last revaluation.
    pub fn state(&self) -> Option<&MarketState> {
        self.state.as_ref()
    }

    /// What an instrument has earned since the start.
    pub fn gain_of(&self, instrument: u32, by: MarkBy) -> Gain {
        let at = instrument as usize;
        let Some(position) = self.positions.get(at) else {
            return Gain::default();
        };
        let mark = self.marks[at][by as usize];
        let worth = mark.map_or(0, |mark| i128::from(position.qty) * i128::from(mark.raw()));
        Gain {
            gross: self.listings[at].value.money(worth - position.cost),
            fees: self.fees[at],
            unmarked: u32::from(mark.is_none() && position.qty != 0),
        }
    }

    /// What all of them have.
    pub fn gain(&self, by: MarkBy) -> Gain {
        let each = (0..self.listings.len() as u32).map(|instrument| self.gain_of(instrument, by));
        each.fold(Gain::default(), |all, one| all.plus(&one))
    }

    /// What an instrument has earned by the market's mid price.
    pub fn market_gain_of(&self, instrument: u32) -> MarketGain {
        let at = instrument as usize;
        let Some(position) = self.positions.get(at) else {
            return MarketGain::default();
        };
        let [theo, mid] = [MarkBy::Theo, MarkBy::Mid].map(|by| self.marks[at][by as usize]);
        if mid.is_some() || position.qty == 0 {
            return MarketGain {
                gain: self.gain_of(instrument, MarkBy::Mid),
                ..MarketGain::default()
            };
        }
        let known = theo.into_iter().chain(self.last_mids[at]);
        // Long, the lower one; short, the higher.
        let mark = match position.qty > 0 {
            true => known.min(),
            false => known.max(),
        };
        let worth = mark.map_or(0, |mark| i128::from(position.qty) * i128::from(mark.raw()));
        MarketGain {
            gain: Gain {
                gross: self.listings[at].value.money(worth - position.cost),
                fees: self.fees[at],
                unmarked: u32::from(mark.is_none()),
            },
            without_mid: 1,
            contracts: position.qty.unsigned_abs(),
        }
    }

    /// The same of all of them.
    pub fn market_gain(&self) -> MarketGain {
        let each = (0..self.listings.len() as u32).map(|instrument| self.market_gain_of(instrument));
        each.fold(MarketGain::default(), |all, one| MarketGain {
            gain: all.gain.plus(&one.gain),
            without_mid: all.without_mid + one.without_mid,
            contracts: all.contracts + one.contracts,
        })
    }

    /// Where the gain by theoretical value comes from, up to the last revaluation; what was traded after it
    /// has its edge and fees in it.
    pub fn explained(&self) -> Explained {
        self.explained
    }
}

/// Money as a whole number of 1e-9; 0 if it is no number.
fn nano(money: f64) -> i128 {
    let nano = money * Price::ONE_RAW as f64;
    // Conversions saturate, and make 0 of what is no number.
    (if nano < 0.0 { nano - 0.5 } else { nano + 0.5 }) as i128
}

fn kind(right: PutCall) -> Kind {
    match right {
        PutCall::Call => Kind::Call,
        PutCall::Put => Kind::Put,
    }
}
