//! From volatilities, forwards, positions and terms to a ladder: everything that is worked out before a tick
//! needs it. Runs on the pricing thread; nothing here is on the hot path.

use tickwire_market::{Date, Nanos};
use tickwire_options::american::{AmericanError, Effort, Premium, Sheet};
use tickwire_options::batch::{Engine, LANES_MAX, Listed as Priced, Strip, Values};
use tickwire_options::edge::points;
use tickwire_options::surface::Surface;
use tickwire_trading::portfolio::{ExpiryState, MarketState, Model};
use tickwire_trading::{Ladder, Quoting};

use super::chain::{Chain, Listed};
use super::config::{Exercise, OptionTerms, QuoterSection};
use tickwire_console::failure::Failure;

/// Half a tick of the underlying and further: rows that are there first after an edit.
pub const NEAR_HALF_TICKS: i64 = 4;

/// Volatilities of a chain: which smile is which expiry's, and how much time is left.
pub trait Clock {
    /// Years to the end of an expiry as its smile counts them, and by the calendar.
    fn years(&self, expiry: Date, now: Nanos) -> [f64; 2];

    /// What money costs until then, per year, if that is known of the expiry.
    fn rate(&self, expiry: Date) -> Option<f64> {
        let _ = expiry;
        None
    }
}

/// An expiry's options in columns.
struct Expiry {
    date: Date,
    /// Its place in the surface.
    smile: usize,
    strikes: Vec<f64>,
    vols: Vec<f64>,
    strip: Strip,
    listed: Vec<Priced>,
    /// Which quote each is.
    quotes: Vec<usize>,
    theos: Vec<f64>,
    values: Values,
    early: Option<Early>,
    /// The volatilities are the smile's, and stay so when the underlying moves.
    is_settled: bool,
}

/// Early exercise of an expiry, solved for one time, rate and range of volatilities.
struct Early {
    sheet: Sheet,
    premiums: Vec<Premium>,
    years: f64,
    rate: f64,
    vols: [f64; 2],
}

impl Early {
    fn solve(years: f64, rate: f64, atm: f64, options: usize) -> Result<Early, AmericanError> {
        // As wide as a sheet may be, more of it above: wings rise.
        let vols = [atm / 3.0, atm * 6.0];
        Ok(Early {
            sheet: Sheet::new(years, rate, vols[0], vols[1], Effort::QUICK)?,
            premiums: Vec::with_capacity(options),
            years,
            rate,
            vols,
        })
    }

    /// Whether it still holds: a thousandth of the time is worth less than a thousandth of the premium.
    fn is_near(&self, years: f64, rate: f64) -> bool {
        (self.years / years - 1.0).abs() < 1e-3 && (self.rate - rate).abs() < 1e-4
    }

    /// The premium at a volatility; beyond the range, that at its end.
    fn at(&self, vol: f64) -> Result<Premium, AmericanError> {
        self.sheet.at(vol.clamp(self.vols[0], self.vols[1]))
    }
}

/// What is held of an option, in contracts bought less sold.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Exposure {
    pub delta: f64,
    pub gamma: f64,
    pub vega: f64,
}

/// What the electronic eye's ladder is made of.
struct EyeTerms {
    terms: Vec<OptionTerms>,
    quoting: Quoting,
}

/// See the module's description.
pub struct Pricer {
    surface: Surface,
    expiries: Vec<Expiry>,
    engine: Engine,
    rate: f64,
    exercise: Exercise,
    /// Half a tick of the underlying, in points.
    half_tick: f64,
    /// In the order of the quotes.
    options: Vec<Listed>,
    terms: Vec<OptionTerms>,
    positions: Vec<i64>,
    /// Contracts of the underlying held, and how many contracts of an option one of them is as large as.
    underlying: i64,
    underlying_size: f64,
    quoting: Quoting,
    eye: Option<EyeTerms>,
    /// Values of one row: the one last worked out.
    row: Vec<f64>,
    /// Greeks by quote, when they were last settled.
    deltas: Vec<f64>,
    gammas: Vec<f64>,
    vegas: Vec<f64>,
    version: u64,
}

impl Pricer {
    /// Prices the options of a chain, which it puts into the order of their delta: the most first. `surface`
    /// has a smile for each expiry of `smiles`, in order; options of other expiries are left out.
    ///
    /// # Errors
    /// Terms or values that cannot be, by option.
    pub fn new(
        section: &QuoterSection,
        chain: &mut Chain,
        mut surface: Surface,
        smiles: &[Date],
        clock: &dyn Clock,
        (now, half_tick): (Nanos, i64),
    ) -> Result<Pricer, Failure> {
        let half = points(chain.underlying_tick) / 2.0;
        surface.set_front(half_tick as f64 * half);
        chain.options.retain(|option| smiles.contains(&option.expiry));
        chain
            .options
            .sort_by_key(|option| (option.expiry, option.strike, option.symbol));
        let mut expiries = Vec::new();
        for (smile, date) in smiles.iter().enumerate() {
            let of_date = || {
                chain
                    .options
                    .iter()
                    .enumerate()
                    .filter(|(_, o)| o.expiry == *date)
            };
            if of_date().next().is_none() {
                continue;
            }
            let strikes: Vec<f64> = of_date().map(|(_, o)| o.strike_points()).collect();
            let listed: Vec<Priced> = of_date()
                .map(|(_, option)| Priced {
                    strike: option.strike_points(),
                    kind: option.kind,
                    vol: section.volatility,
                })
                .collect();
            let count = listed.len();
            expiries.push(Expiry {
                date: *date,
                smile,
                vols: vec![section.volatility; count],
                strip: strip_of(1.0, 1.0, 0.0, &listed, *date)?,
                quotes: of_date().map(|(at, _)| at).collect(),
                theos: vec![0.0; count.next_multiple_of(LANES_MAX)],
                values: Values::new(count),
                early: None,
                is_settled: false,
                strikes,
                listed,
            });
        }
        let count = chain.options.len();
        if count == 0 || count > usize::from(u16::MAX) {
            return Err(Failure::config(format!(
                "{count} options to quote: 1 to 65535 can be; the venue's expiries are {:?}, those of the surface {smiles:?}",
                chain.expiries().keys().collect::<Vec<_>>()
            )));
        }
        let grid = match section.limits.price_max {
            0 => chain.grid()?,
            most => chain.grid()?.up_to(most as f64),
        };
        let mut pricer = Pricer {
            surface,
            expiries,
            engine: Engine::detect(),
            rate: section.rate,
            exercise: section.exercise,
            half_tick: half,
            options: chain.options.clone(),
            terms: Vec::new(),
            positions: vec![0; count],
            underlying: 0,
            underlying_size: chain.underlying_size(),
            quoting: Quoting::new(count, grid),
            eye: None,
            row: vec![0.0; count],
            deltas: vec![0.0; count],
            gammas: vec![0.0; count],
            vegas: vec![0.0; count],
            version: 0,
        };
        pricer.age(clock, now)?;
        pricer.value(half_tick)?;
        pricer.order(chain);
        pricer.terms = pricer
            .options
            .iter()
            .zip(&pricer.deltas)
            .map(|(o, delta)| section.terms_of(o.expiry, o.strike, o.kind, delta.abs()))
            .collect();
        if let Some(eye) = &section.eye {
            let options = pricer.options.iter().zip(&pricer.deltas);
            pricer.eye = Some(EyeTerms {
                terms: options
                    .map(|(o, delta)| eye.terms_of(o.expiry, o.strike, o.kind, delta.abs()))
                    .collect(),
                quoting: Quoting::new(count, grid),
            });
        }
        pricer.settle(half_tick)?;
        Ok(pricer)
    }

    /// Puts quotes into the order of their delta.
    fn order(&mut self, chain: &mut Chain) {
        let mut order: Vec<usize> = (0..self.options.len()).collect();
        order.sort_by(|a, b| self.deltas[*b].abs().total_cmp(&self.deltas[*a].abs()));
        let mut place = vec![0; order.len()];
        for (to, from) in order.iter().enumerate() {
            place[*from] = to;
        }
        for expiry in &mut self.expiries {
            expiry.quotes.iter_mut().for_each(|quote| *quote = place[*quote]);
        }
        self.options = order.iter().map(|from| self.options[*from]).collect();
        self.deltas = order.iter().map(|from| self.deltas[*from]).collect();
        chain.options.clone_from(&self.options);
    }

    /// The options, in the order of the quotes.
    pub fn options(&self) -> &[Listed] {
        &self.options
    }

    /// Their deltas when values were last settled.
    pub fn deltas(&self) -> &[f64] {
        &self.deltas
    }

    /// Their terms.
    pub fn terms(&self) -> &[OptionTerms] {
        &self.terms
    }

    /// The expiries, in order.
    pub fn expiries(&self) -> Vec<Date> {
        self.expiries.iter().map(|expiry| expiry.date).collect()
    }

    /// The market of a portfolio of the options in the order of the quotes, then the underlying.
    ///
    /// # Errors
    /// Volatilities that cannot be.
    pub fn market(
        &mut self,
        now: Nanos,
        half_tick: i64,
        clock: &dyn Clock,
        into: &mut MarketState,
    ) -> Result<(), Failure> {
        let front = half_tick as f64 * self.half_tick;
        self.surface.set_front(front);
        into.expiries.clear();
        into.levels.clear();
        into.levels.resize(self.options.len() + 1, front);
        for at in 0..self.expiries.len() {
            self.take_vols(at)?;
            let expiry = &self.expiries[at];
            let [years, calendar] = clock.years(expiry.date, now);
            let rate = clock.rate(expiry.date).unwrap_or(self.rate);
            into.expiries.push(ExpiryState {
                forward: self.surface.forward(expiry.smile).unwrap_or(front),
                years,
                days: calendar * 365.0,
                rate: tickwire_options::time::rate_per(rate, calendar, years),
                model: Model::Black76,
            });
            for (quote, vol) in expiry.quotes.iter().zip(&expiry.vols) {
                into.levels[*quote] = *vol;
            }
        }
        Ok(())
    }

    /// The volatilities.
    pub fn surface(&self) -> &Surface {
        &self.surface
    }

    /// The volatilities, to be edited: [`Pricer::settle`] and a new ladder follow.
    pub fn surface_mut(&mut self) -> &mut Surface {
        for expiry in &mut self.expiries {
            expiry.is_settled = false;
        }
        &mut self.surface
    }

    /// Contracts held of each, bought less sold.
    pub fn positions(&self) -> &[i64] {
        &self.positions
    }

    /// A fill of a quote: `contracts` bought, or sold where negative.
    pub fn filled(&mut self, quote: usize, contracts: i64) {
        if let Some(position) = self.positions.get_mut(quote) {
            *position += contracts;
        }
    }

    /// A hedge: contracts of the underlying bought, or sold where negative.
    pub fn hedged(&mut self, contracts: i64) {
        self.underlying += contracts;
    }

    /// Contracts of the underlying held, bought less sold.
    pub fn underlying(&self) -> i64 {
        self.underlying
    }

    /// How many contracts of an option one of the underlying is as large as.
    pub fn underlying_size(&self) -> f64 {
        self.underlying_size
    }

    /// Whether the eye has a ladder.
    pub fn has_eye(&self) -> bool {
        self.eye.is_some()
    }

    /// Contracts of the eye's largest order in each option; none without an eye.
    pub fn eye_sizes(&self) -> Vec<u32> {
        let terms = self.eye.iter().flat_map(|eye| &eye.terms);
        terms.map(|terms| terms.size).collect()
    }

    /// Deltas of the options as contracts of the underlying, in thousandths.
    pub fn hedge_deltas(&self, into: &mut Vec<i32>) {
        into.clear();
        let milli = |delta: &f64| (delta * 1000.0 / self.underlying_size).round() as i32;
        into.extend(self.deltas.iter().map(milli));
    }

    /// Time has passed: less of it is left to each expiry.
    ///
    /// # Errors
    /// An expiry that is over.
    pub fn age(&mut self, clock: &dyn Clock, now: Nanos) -> Result<(), Failure> {
        for expiry in &mut self.expiries {
            let [years, calendar] = clock.years(expiry.date, now);
            if !(years > 0.0 && calendar > 0.0) {
                return Err(Failure::config(format!(
                    "the options of {} have expired: take them out of the surface",
                    expiry.date
                )));
            }
            self.surface.set_years(expiry.smile, years);
            expiry.is_settled = false;
            let rate = clock.rate(expiry.date).unwrap_or(self.rate);
            let rate = tickwire_options::time::rate_per(rate, calendar, years);
            let forward = self.surface.forward(expiry.smile).unwrap_or(1.0);
            expiry.strip = strip_of(forward, years, rate, &expiry.listed, expiry.date)?;
            let is_solved = expiry.early.as_ref().is_some_and(|e| e.is_near(years, rate));
            if self.exercise == Exercise::American && !is_solved {
                let atm = self.surface.smile(expiry.smile).map_or(0.2, |s| s.atm(forward));
                let early = Early::solve(years, rate, atm, expiry.strikes.len());
                expiry.early = Some(early.map_err(|e| Failure::config(format!("{}: {e}", expiry.date)))?);
            }
        }
        Ok(())
    }

    /// Values and Greeks at a price of the underlying.
    fn value(&mut self, half_tick: i64) -> Result<(), Failure> {
        self.surface.set_front(half_tick as f64 * self.half_tick);
        for at in 0..self.expiries.len() {
            self.take_vols(at)?;
            let expiry = &mut self.expiries[at];
            let forward = self.surface.forward(expiry.smile).unwrap_or(1.0);
            self.engine
                .greeks(&expiry.strip, forward, &mut expiry.values)
                .map_err(|e| Failure::config(format!("{}: {e}", expiry.date)))?;
            let values = &expiry.values;
            for (i, quote) in expiry.quotes.iter().enumerate() {
                self.deltas[*quote] = values.delta[i];
                self.gammas[*quote] = values.gamma[i];
                self.vegas[*quote] = values.vega[i];
            }
        }
        Ok(())
    }

    /// The volatilities of an expiry at the front's price, if they are not there.
    fn take_vols(&mut self, at: usize) -> Result<(), Failure> {
        let expiry = &mut self.expiries[at];
        if expiry.is_settled {
            return Ok(());
        }
        let (Some(smile), Some(forward)) = (
            self.surface.smile(expiry.smile),
            self.surface.forward(expiry.smile),
        ) else {
            return Ok(());
        };
        smile.vols(&expiry.strikes, forward, &mut expiry.vols);
        expiry
            .strip
            .set_vols(&expiry.vols)
            .map_err(|e| Failure::config(format!("{}: {e}", expiry.date)))?;
        if let Some(early) = &mut expiry.early {
            early.premiums.clear();
            for vol in &expiry.vols {
                let premium = early
                    .at(*vol)
                    .map_err(|e| Failure::config(format!("{}, volatility {vol}: {e}", expiry.date)))?;
                early.premiums.push(premium);
            }
        }
        // One that keeps every strike its volatility is the same at every price.
        expiry.is_settled = smile.controls().float == 0.0;
        Ok(())
    }

    /// What is held, in Greeks of the whole.
    pub fn exposure(&self) -> Exposure {
        let mut sum = Exposure::default();
        for (quote, held) in self.positions.iter().enumerate().filter(|(_, held)| **held != 0) {
            let held = *held as f64;
            sum.delta += held * self.deltas[quote];
            sum.gamma += held * self.gammas[quote];
            sum.vega += held * self.vegas[quote];
        }
        sum.delta += self.underlying as f64 * self.underlying_size;
        sum
    }

    /// Works out edges and leans at a price of the underlying, from Greeks and what is held: new rows follow
    /// them.
    ///
    /// # Errors
    /// Terms that cannot be, by option.
    pub fn settle(&mut self, half_tick: i64) -> Result<(), Failure> {
        self.value(half_tick)?;
        let held = self.exposure();
        let greeks = self.deltas.iter().zip(&self.gammas).zip(&self.vegas);
        for (quote, ((delta, gamma), vega)) in greeks.enumerate() {
            // What the option would be worth with the underlying, its delta and volatility so much lower.
            let lean = |t: &OptionTerms| {
                -(t.lean_delta * held.delta * delta
                    + t.lean_gamma * held.gamma * gamma
                    + t.lean_vega * held.vega * vega)
            };
            let own = &self.terms[quote];
            let mut set = self.quoting.set(quote, &own.quote(*vega, lean(own)));
            if let (Ok(()), Some(eye)) = (set, &mut self.eye) {
                let own = &eye.terms[quote];
                set = eye.quoting.set(quote, &own.quote(*vega, lean(own)));
            }
            set.map_err(|e| Failure::config(format!("terms of {}: {e}", self.options[quote].symbol)))?;
        }
        self.version += 1;
        Ok(())
    }

    /// Fills a ladder with `reach` half ticks to either side of `centre`.
    ///
    /// # Errors
    /// Volatilities that cannot be.
    pub fn fill(&mut self, ladder: &mut Ladder, centre: i64, reach: i64) -> Result<(), Failure> {
        self.fill_both(ladder, None, centre, reach)
    }

    /// The same, and the eye's ladder from the same values.
    ///
    /// # Errors
    /// As there.
    pub fn fill_both(
        &mut self,
        ladder: &mut Ladder,
        mut eye_ladder: Option<&mut Ladder>,
        centre: i64,
        reach: i64,
    ) -> Result<(), Failure> {
        let first = (centre - reach).max(1);
        ladder.begin(self.version, first);
        if let Some(ladder) = &mut eye_ladder {
            ladder.begin(self.version, first);
        }
        for half_tick in first..=centre + reach {
            self.price_row(half_tick)?;
            if ladder.push_row(&self.row, &self.quoting).is_err() {
                break;
            }
            if let (Some(ladder), Some(eye)) = (&mut eye_ladder, &self.eye)
                && ladder.push_row(&self.row, &eye.quoting).is_err()
            {
                break;
            }
        }
        self.surface.set_front(centre as f64 * self.half_tick);
        Ok(())
    }

    /// Works out the values of every option at a price of the underlying, into `row`.
    fn price_row(&mut self, half_tick: i64) -> Result<(), Failure> {
        self.surface.set_front(half_tick as f64 * self.half_tick);
        for at in 0..self.expiries.len() {
            self.take_vols(at)?;
            let expiry = &mut self.expiries[at];
            let forward = self.surface.forward(expiry.smile).unwrap_or(1.0);
            self.engine
                .price(&expiry.strip, forward, &mut expiry.theos)
                .map_err(|e| Failure::config(format!("{}: {e}", expiry.date)))?;
            if let Some(early) = &expiry.early {
                for ((theo, premium), option) in
                    expiry.theos.iter_mut().zip(&early.premiums).zip(&expiry.listed)
                {
                    *theo = premium.add(*theo, option.kind, forward, option.strike);
                }
            }
            for (quote, theo) in expiry.quotes.iter().zip(&expiry.theos) {
                self.row[*quote] = *theo;
            }
        }
        Ok(())
    }

    /// The theoretical values at a price of the underlying, in points, in the order of the quotes.
    ///
    /// # Errors
    /// Volatilities that cannot be.
    pub fn theos(&mut self, half_tick: i64) -> Result<&[f64], Failure> {
        self.price_row(half_tick.max(1))?;
        Ok(&self.row)
    }

    /// The value of an option as it was last worked out.
    pub fn theo(&self, quote: usize) -> Option<f64> {
        self.row.get(quote).copied()
    }

    /// What is held, at theoretical values and the underlying's price, in points times contracts of options.
    ///
    /// # Errors
    /// As there.
    pub fn value_held(&mut self, half_tick: i64) -> Result<f64, Failure> {
        self.theos(half_tick)?;
        let options: f64 = self
            .positions
            .iter()
            .zip(&self.row)
            .map(|(held, theo)| *held as f64 * theo)
            .sum();
        let front = half_tick as f64 * self.half_tick;
        Ok(options + self.underlying as f64 * self.underlying_size * front)
    }
}

fn strip_of(forward: f64, years: f64, rate: f64, listed: &[Priced], expiry: Date) -> Result<Strip, Failure> {
    Strip::new(forward, years, rate, listed).map_err(|e| Failure::config(format!("options of {expiry}: {e}")))
}
