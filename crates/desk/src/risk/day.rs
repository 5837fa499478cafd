//! A day from files: markets, prices, quotes and fills in order of time, each given to whom it concerns.

use std::collections::BTreeMap;

use tickwire_market::{Contract, Date, InstrumentId, Nanos, PointValue, Price, PutCall, Qty};
use tickwire_options::edge;
use tickwire_options::surface::{Curve, Smile, Svi};
use tickwire_trading::portfolio::{
    ExpiryState, Explained, Limits, Listing, MarkBy, MarkOuts, MarkOutsConfig, MarketState, Model,
    Obligations, ObligationsConfig, Portfolio, PortfolioError, Trade,
};

use super::file::{ExpirySection, Instant, MarketSection, RiskFile};
use super::input::{Happened, What};
use super::snapshot::{Promised, Snapshot, Surroundings};

/// More instruments than that are a mistake in `strikes`.
const INSTRUMENTS_MAX: usize = 65_535;
/// Days of a year.
const YEAR: f64 = 365.0;

/// What happens in it, and who is told.
pub(super) struct Day {
    pub symbols: BTreeMap<String, u32>,
    names: Vec<String>,
    listings: Vec<Listing>,
    events: Vec<Happened>,
}

impl Day {
    /// Lists the instruments of a file: futures, then calls and puts by expiry and strike.
    pub(super) fn new(file: &RiskFile) -> Result<Day, String> {
        let mut day = Day {
            symbols: BTreeMap::new(),
            names: Vec::new(),
            listings: Vec::new(),
            events: Vec::new(),
        };
        for future in &file.future {
            let contract = Contract::Future {
                expiry: Date::default(),
                multiplier: 1,
            };
            let value = future.multiplier.value(file.currency);
            day.list(future.symbol.clone(), (contract, value), 0, future.fee.0)?;
        }
        if file.future.is_empty() {
            return Err("a [[future]] is missing: the first one is the front".to_owned());
        }
        for (n, expiry) in file.expiry.iter().enumerate() {
            day.list_expiry(n, expiry, expiry.multiplier.value(file.currency))?;
        }
        Ok(day)
    }

    fn list_expiry(&mut self, n: usize, expiry: &ExpirySection, value: PointValue) -> Result<(), String> {
        let (from, to) = (expiry.strikes.from.0.raw(), expiry.strikes.to.0.raw());
        let step = expiry.strikes.step.0.raw();
        if step <= 0 || from > to || (to - from) / step > INSTRUMENTS_MAX as i64 {
            return Err(format!(
                "expiry {}: strikes must go up from `from` to `to`",
                expiry.name
            ));
        }
        let mut raw = from;
        while raw <= to {
            let strike = Price::from_raw(raw);
            for (right, letter) in [(PutCall::Call, 'C'), (PutCall::Put, 'P')] {
                let contract = Contract::Option {
                    expiry: Date::of_days((expiry.at.0.0 / Nanos::DAY) as u32),
                    multiplier: 1,
                    strike,
                    right,
                    underlying: InstrumentId(1),
                };
                self.list(
                    format!("{} {letter}{strike:.0}", expiry.name),
                    (contract, value),
                    n as u16,
                    expiry.fee.0,
                )?;
            }
            raw += step;
        }
        Ok(())
    }

    fn list(
        &mut self,
        symbol: String,
        (contract, value): (Contract, PointValue),
        expiry: u16,
        fee: Price,
    ) -> Result<(), String> {
        if self.listings.len() >= INSTRUMENTS_MAX {
            return Err(format!("more than {INSTRUMENTS_MAX} instruments"));
        }
        if self
            .symbols
            .insert(symbol.clone(), self.listings.len() as u32)
            .is_some()
        {
            return Err(format!("{symbol} is listed twice"));
        }
        self.names.push(symbol);
        self.listings.push(Listing {
            contract,
            value,
            expiry,
            fee,
        });
        Ok(())
    }

    /// More of what happened.
    pub(super) fn add(&mut self, events: Vec<Happened>) {
        self.events.extend(events);
    }

    /// Goes through the day.
    pub(super) fn run(mut self, file: &RiskFile) -> Result<Snapshot, String> {
        // Of the same instant, prices come first and fills last, each in the order of its file.
        let rank = |event: &Happened| match event.what {
            What::Marked { .. } => 0,
            What::Quoted { .. } => 1,
            What::Filled { .. } => 2,
        };
        self.events.sort_by_key(|event| (event.at, rank(event)));
        if file.market.is_empty() {
            return Err("a [[market]] is missing: nothing can be valued".to_owned());
        }
        if file.market.windows(2).any(|two| two[0].at > two[1].at) {
            return Err("every [[market]] must be later than the one before".to_owned());
        }
        let mut running = Running::new(file, &self)?;
        let mut markets = file.market.iter().peekable();
        for event in &self.events {
            while let Some(market) = markets.next_if(|market| market.at.0 <= event.at) {
                running.on_market(file, market)?;
            }
            running.on_event(event)?;
        }
        for market in markets {
            running.on_market(file, market)?;
        }
        let last_market = file.market.last().map_or(Nanos::ZERO, |market| market.at.0);
        let end = self
            .events
            .last()
            .map_or(last_market, |event| event.at.max(last_market));
        // What was traded after the last market is worth what it was then.
        running.settle(end)?;
        Ok(running.finish(file, &self, end))
    }
}

/// The day as far as it has come.
struct Running<'d> {
    day: &'d Day,
    portfolio: Portfolio,
    mark_outs: MarkOuts,
    obligations: Option<Obligations>,
    /// Best bid and offer by instrument.
    quotes: Vec<[Option<Price>; 2]>,
    /// With the forward and the years that each was made at.
    curves: Vec<Option<(Curve, f64, f64)>>,
    state: MarketState,
    history: Vec<(Nanos, Explained)>,
    is_quoting: bool,
}

impl<'d> Running<'d> {
    fn new(file: &RiskFile, day: &'d Day) -> Result<Running<'d>, String> {
        let count = day.listings.len();
        let mut portfolio = Portfolio::new(&day.listings);
        for position in &file.position {
            let symbol = &position.symbol;
            let instrument = *day
                .symbols
                .get(symbol)
                .ok_or_else(|| format!("position {symbol}: no such instrument"))?;
            portfolio
                .open(instrument, position.contracts, position.settle.0)
                .and_then(|()| portfolio.mark(instrument, MarkBy::Settle, position.settle.0))
                .map_err(|e| named(day, e))?;
        }
        let bp = |share: f64| (share * 10_000.0).round() as u32;
        let options = count - file.future.len();
        let obligations = file.obligations.map(|promised| {
            let config = ObligationsConfig {
                width_max: promised.width_max.0,
                size_min: Qty(promised.size_min),
                series_min_bp: bp(promised.series_min.0),
                time_min_bp: bp(promised.time_min.0),
            };
            Obligations::new(config, options)
        });
        let mark_outs = MarkOuts::new(MarkOutsConfig {
            instruments: count as u32,
            ..MarkOutsConfig::default()
        });
        Ok(Running {
            day,
            portfolio,
            mark_outs,
            obligations,
            quotes: vec![[None; 2]; count],
            curves: vec![None; file.expiry.len()],
            state: MarketState::default(),
            history: Vec::new(),
            is_quoting: false,
        })
    }

    fn on_market(&mut self, file: &RiskFile, market: &MarketSection) -> Result<(), String> {
        let at = market.at;
        let wrong = |what: &str| format!("market at {}: {what}", stamp(at.0));
        if let Some(name) = market
            .curve
            .keys()
            .find(|name| file.expiry.iter().all(|e| e.name != **name))
        {
            return Err(wrong(&format!("there is no expiry {name}")));
        }
        let front = edge::points(market.front.0);
        let mut state = MarketState {
            expiries: Vec::new(),
            levels: Vec::with_capacity(self.day.listings.len()),
        };
        state
            .levels
            .extend(file.future.iter().map(|future| front + future.roll));
        for (n, expiry) in file.expiry.iter().enumerate() {
            let section = market.curve.get(&expiry.name).copied().unwrap_or_default();
            let forward = section.forward.unwrap_or(front + expiry.roll);
            let curve = section
                .curve()
                .map_err(|e| wrong(&format!("curve {}: {e}", expiry.name)))?;
            let days = days_between(at, expiry.at);
            if days <= 0.0 {
                return Err(wrong(&format!("{} has expired", expiry.name)));
            }
            let years = days / YEAR;
            if let Some(curve) = curve {
                self.curves[n] = Some((curve, forward, years));
            }
            let (curve, reference, made) =
                self.curves[n].ok_or_else(|| wrong(&format!("{} has no volatilities yet", expiry.name)))?;
            let curve = aged(curve, years / made);
            let model = Model::from(expiry.model);
            let smile = match model {
                Model::Bachelier => None,
                Model::Black76 => Some(Smile::new(curve, reference, years).ok_or_else(|| {
                    wrong(&format!("curve {}: a parameter is out of its range", expiry.name))
                })?),
            };
            for listing in &self.day.listings {
                let Contract::Option { strike, .. } = listing.contract else {
                    continue;
                };
                if usize::from(listing.expiry) != n {
                    continue;
                }
                state.levels.push(match (&smile, curve) {
                    (Some(smile), _) => smile.vol(edge::points(strike), forward),
                    (None, Curve::Wing(wing)) => wing.vol,
                    (None, Curve::Svi(_)) => {
                        return Err(wrong(&format!(
                            "curve {}: bachelier takes vol, in points",
                            expiry.name
                        )));
                    }
                });
            }
            state.expiries.push(ExpiryState {
                forward,
                years,
                days,
                rate: file.rate,
                model,
            });
        }
        self.portfolio
            .revalue(&state)
            .map_err(|e| wrong(&named(self.day, e)))?;
        self.state = state;
        self.history.push((at.0, self.portfolio.explained()));
        Ok(())
    }

    fn on_event(&mut self, event: &Happened) -> Result<(), String> {
        let (at, n) = (event.at, event.instrument);
        let done = match event.what {
            What::Marked {
                bid,
                ask,
                last,
                settle,
            } => {
                let quote = &mut self.quotes[n as usize];
                *quote = [bid.or(quote[0]), ask.or(quote[1])];
                let mid = match *quote {
                    [Some(bid), Some(ask)] => Some(Price::from_raw(bid.raw().midpoint(ask.raw()))),
                    _ => None,
                };
                self.mark_outs.on_mid(at, n, mid);
                let marks = [(MarkBy::Last, last), (MarkBy::Mid, mid), (MarkBy::Settle, settle)];
                let mut marks = marks.into_iter().filter_map(|(by, price)| Some((by, price?)));
                marks.try_for_each(|(by, price)| self.portfolio.mark(n, by, price))
            }
            What::Quoted { bid, ask } => {
                let futures = self.day.listings.len() - self.obligations_series();
                if let (Some(obligations), Some(series)) =
                    (&mut self.obligations, (n as usize).checked_sub(futures))
                {
                    if !self.is_quoting {
                        obligations.start(at);
                        self.is_quoting = true;
                    }
                    obligations.on_quote(at, series as u32, bid, ask);
                }
                Ok(())
            }
            What::Filled {
                side,
                qty,
                price,
                theo,
                forward,
            } => {
                let worth = theo.or_else(|| self.portfolio.marked(n, MarkBy::Theo));
                self.mark_outs.on_fill(at, n, side, qty, price, worth);
                self.portfolio.trade(&Trade {
                    at,
                    instrument: n,
                    side,
                    qty,
                    price,
                    theo,
                    forward,
                })
            }
        };
        done.map_err(|e| named(self.day, e))
    }

    fn obligations_series(&self) -> usize {
        let is_option = |listing: &&Listing| matches!(listing.contract, Contract::Option { .. });
        self.day.listings.iter().filter(is_option).count()
    }

    fn settle(&mut self, end: Nanos) -> Result<(), String> {
        let state = self.state.clone();
        self.portfolio.revalue(&state).map_err(|e| named(self.day, e))?;
        if self.history.last().is_none_or(|(at, _)| *at < end) {
            self.history.push((end, self.portfolio.explained()));
        } else if let Some(last) = self.history.last_mut() {
            last.1 = self.portfolio.explained();
        }
        self.mark_outs.advance(end);
        Ok(())
    }

    fn finish(mut self, file: &RiskFile, day: &Day, end: Nanos) -> Snapshot {
        let l = file.limits;
        let expiries: Vec<String> = file.expiry.iter().map(|expiry| expiry.name.clone()).collect();
        let is_quoting = self.is_quoting;
        let series = self.obligations_series();
        let kept = self.obligations.as_mut().filter(|_| is_quoting);
        let options = &day.names[day.names.len() - series..];
        let kept = kept.map(|obligations| Promised::of(obligations, end, options));
        Snapshot::of(
            &self.portfolio,
            Surroundings {
                title: &file.title,
                currency: file.currency.0.as_str(),
                at: end,
                expiries: &expiries,
                symbols: &day.names,
                quotes: &self.quotes,
                future: file.multiplier.value(file.currency),
                difference_max: file.mark_difference_max,
                spots: &file.spots,
                vols: &file.vols,
                limits: Limits {
                    options_long: l.options_long,
                    options_short: l.options_short,
                    futures: l.futures,
                    premium_long: l.premium_long,
                    premium_short: l.premium_short,
                    delta: l.delta,
                    gamma: l.gamma,
                    vega: l.vega,
                    loss: l.loss,
                    loss_by: l.loss_by.into(),
                    worst: l.worst,
                },
                history: self.history,
                obligations: kept,
                horizons: *self.mark_outs.horizons(),
                fills: self.mark_outs.fills().copied().collect(),
            },
        )
    }
}

/// A curve when this share of its time is left: strikes keep their volatilities, so that total variance falls
/// with time.
fn aged(curve: Curve, share: f64) -> Curve {
    match curve {
        Curve::Svi(svi) => Curve::Svi(Svi {
            a: svi.a * share,
            b: svi.b * share,
            ..svi
        }),
        Curve::Wing(wing) => Curve::Wing(wing),
    }
}

/// An error with the instrument's name for its number.
fn named(day: &Day, error: PortfolioError) -> String {
    match error {
        PortfolioError::Invalid(n, invalid) => format!("{}: {invalid}", day.names[n as usize]),
        PortfolioError::Range(n) => format!("{}: its value is out of range", day.names[n as usize]),
        other => other.to_string(),
    }
}

fn days_between(from: Instant, to: Instant) -> f64 {
    (to.0.0 as f64 - from.0.0 as f64) / Nanos::DAY as f64
}

/// An instant as files have it.
pub(super) fn stamp(at: Nanos) -> String {
    jiff::Timestamp::from_nanosecond(i128::from(at.0)).map_or_else(|_| at.0.to_string(), |at| at.to_string())
}
