//! The running quoter's account, on the pricing thread: what is held, what it earned and why, what was
//! promised and kept, where prices went after fills. `tickwire risk --socket FOLDER` shows it by the same
//! reports as a day from files.
//!
//! Options are instruments in the order of the quotes, the underlying is the last one. Money is what the
//! venue's definitions make of points ([`PointValue`]), in the options' currency.

use tickwire_market::{Contract, Currency, Date, Nanos, PointValue, Price, PutCall, Qty, Side, Symbol};
use tickwire_options::Kind;
use tickwire_options::edge::{Rounding, points, price};
use tickwire_trading::OffMarket;
use tickwire_trading::portfolio::{
    Explained, Limits, Listing, MarkBy, MarkOuts, MarkOutsConfig, MarketState, Obligations,
    ObligationsConfig, Portfolio, Trade,
};

use super::chain::Chain;
use super::config::QuoterSection;
use super::news::News;
use super::path::{Source, Traded};
use super::pricer::{Clock, Pricer};
use tickwire_desk::risk::snapshot::{Promised, Snapshot, Surroundings};

/// Valuations that are kept for the plot of what was earned; of more, every second one is dropped.
const HISTORY_MAX: usize = 2_048;
/// Values are kept to a millionth of a point.
const VALUE_STEP: Price = Price::from_raw(1_000);

/// An option's market and our quote in it, as the quoting thread sees them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// Best bid and offer of others.
    pub market: [Option<Price>; 2],
    /// Our own.
    pub own: [Option<(Price, Qty)>; 2],
    /// Why it is not quoted, if that is its market.
    pub off: Option<Off>,
}

/// An option that is not quoted because our prices and its market do not go together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Off {
    pub why: OffMarket,
    /// Our bid and ask that were not sent, and the best ones of others then.
    pub wanted: [Option<Price>; 2],
    pub market: [Option<Price>; 2],
}

/// What the quoting thread sees, some times a second: options in the order of the quotes, then the
/// underlying.
#[derive(Clone, Debug, Default)]
pub struct View {
    pub at: Nanos,
    pub seen: Vec<Seen>,
}

/// See the module's description.
pub(crate) struct Account {
    portfolio: Portfolio,
    mark_outs: MarkOuts,
    obligations: Option<Obligations>,
    names: Vec<String>,
    markets: Vec<[Option<Price>; 2]>,
    own: Vec<[Option<(Price, Qty)>; 2]>,
    off: Vec<Option<Off>>,
    state: MarketState,
    history: Vec<(Nanos, Explained)>,
    expiries: Vec<String>,
    future: PointValue,
    currency: Currency,
    difference_max: f64,
    /// In points, the mid that each has now and the last one it had.
    mids: Vec<[Option<f64>; 2]>,
    limits: Limits,
    spots: Vec<f64>,
    vols: Vec<f64>,
    /// The last time that was told of: they do not go back.
    now: Nanos,
}

impl Account {
    /// Nothing held.
    pub(crate) fn new(section: &QuoterSection, chain: &Chain, pricer: &Pricer) -> Account {
        let options = pricer.options();
        let dates = pricer.expiries();
        let mut listings: Vec<Listing> = options
            .iter()
            .map(|option| Listing {
                contract: Contract::Option {
                    expiry: option.expiry,
                    multiplier: option.multiplier,
                    strike: option.strike,
                    right: match option.kind {
                        Kind::Call => PutCall::Call,
                        Kind::Put => PutCall::Put,
                    },
                    underlying: chain.underlying,
                },
                value: chain.option_value,
                expiry: dates.iter().position(|date| *date == option.expiry).unwrap_or(0) as u16,
                fee: section.risk.option_fee.map_or(Price::ZERO, |fee| fee.0),
            })
            .collect();
        listings.push(Listing {
            contract: Contract::Future {
                expiry: Date::default(),
                multiplier: 1,
            },
            value: chain.underlying_value,
            expiry: 0,
            fee: section.risk.future_fee.map_or(Price::ZERO, |fee| fee.0),
        });
        let names = options.iter().map(|option| option.symbol);
        let names: Vec<Symbol> = names.chain([section.underlying.0]).collect();
        let count = listings.len();
        let l = &section.limits;
        Account {
            portfolio: Portfolio::new(&listings),
            mark_outs: MarkOuts::new(MarkOutsConfig {
                instruments: count as u32,
                ..MarkOutsConfig::default()
            }),
            obligations: section.risk.obligations.map(|promised| {
                let bp = |share: f64| (share * 10_000.0).round() as u32;
                let config = ObligationsConfig {
                    width_max: promised.width_max.0,
                    size_min: Qty(promised.size_min),
                    series_min_bp: bp(promised.series_min),
                    time_min_bp: bp(promised.time_min),
                };
                Obligations::new(config, options.len())
            }),
            names: names.iter().map(Symbol::to_string).collect(),
            markets: vec![[None; 2]; count],
            own: vec![[None; 2]; options.len()],
            off: vec![None; options.len()],
            state: MarketState::default(),
            history: Vec::new(),
            expiries: dates.iter().map(|expiry| expiry.to_string()).collect(),
            future: chain.underlying_value,
            currency: chain.option_value.currency(),
            difference_max: section.risk.mark_difference_max as f64,
            mids: vec![[None; 2]; count],
            limits: Limits {
                options_long: l.long_max as f64,
                options_short: l.short_max as f64,
                loss: l.loss_max as f64,
                loss_by: l.loss_by.into(),
                ..Limits::default()
            },
            spots: (-10..=10).map(|step| f64::from(step) / 100.0).collect(),
            vols: (-5..=5).map(|step| f64::from(step) / 100.0).collect(),
            now: Nanos::ZERO,
        }
    }

    fn instrument(&self, fill: &Traded) -> u32 {
        match fill.source {
            Source::Hedge => self.names.len() as u32 - 1,
            Source::Quote | Source::Eye => u32::from(fill.quote),
        }
    }

    /// A fill, or one that is taken back, of an option worth `theo` points.
    pub(crate) fn on_fill(&mut self, fill: &Traded, theo: Option<f64>, is_live: bool) {
        let instrument = self.instrument(fill);
        let worth = theo.and_then(|theo| price(theo, VALUE_STEP, Rounding::Nearest));
        let theo = worth.filter(|_| fill.source != Source::Hedge);
        let (qty, price) = (Qty(fill.qty), fill.price);
        let trade = Trade {
            at: fill.at,
            instrument,
            side: fill.side_of_trade(),
            qty,
            price,
            theo,
            forward: None,
        };
        // An instrument that is none cannot be here: it has a place.
        if fill.is_broken {
            self.mark_outs.take_back(instrument, trade.side, qty, price);
            let _ = self.portfolio.take_back(&trade);
            return;
        }
        if is_live {
            self.now = self.now.max(fill.at);
            self.mark_outs
                .on_fill(self.now, instrument, trade.side, qty, price, theo);
        }
        let _ = self.portfolio.trade(&trade);
        let _ = self.portfolio.mark(instrument, MarkBy::Last, price);
    }

    /// What the quoting thread sees now.
    pub(crate) fn on_view(&mut self, view: &View, news: &mut News) {
        self.now = self.now.max(view.at);
        let now = self.now;
        for (instrument, seen) in (0_u32..).zip(&view.seen) {
            let at = instrument as usize;
            if self.markets.get(at).is_some_and(|known| *known != seen.market) {
                self.markets[at] = seen.market;
                let mid = match seen.market {
                    [Some(bid), Some(ask)] => Some(Price::from_raw(bid.raw().midpoint(ask.raw()))),
                    _ => None,
                };
                self.mark_outs.on_mid(now, instrument, mid);
                let _ = match mid {
                    Some(mid) => self.portfolio.mark(instrument, MarkBy::Mid, mid),
                    None => self.portfolio.unmark(instrument, MarkBy::Mid),
                };
                let [now, last] = &mut self.mids[at];
                *now = mid.map(points);
                *last = now.or(*last);
            }
            if let Some(off) = self.off.get_mut(at) {
                let was = std::mem::replace(off, seen.off);
                news.of_market(now, &self.names[at], (was, seen.off));
            }
            if let (Some(obligations), Some(own)) = (&mut self.obligations, self.own.get_mut(at))
                && *own != seen.own
            {
                *own = seen.own;
                obligations.on_quote(
                    now,
                    instrument,
                    seen.own[Side::Bid as usize],
                    seen.own[Side::Ask as usize],
                );
            }
        }
        if let Some(obligations) = &mut self.obligations {
            obligations.start(now);
        }
        self.mark_outs.advance(now);
    }

    /// Values everything by the present volatilities at a price of the underlying.
    ///
    /// # Errors
    /// What has no value.
    pub(crate) fn revalue(
        &mut self,
        now: Nanos,
        half_tick: i64,
        pricer: &mut Pricer,
        clock: &dyn Clock,
    ) -> Result<(), String> {
        pricer
            .market(now, half_tick, clock, &mut self.state)
            .map_err(|failure| failure.message)?;
        self.portfolio.revalue(&self.state).map_err(|e| e.to_string())?;
        if self.history.len() >= HISTORY_MAX {
            let mut is_kept = false;
            self.history.retain(|_| {
                is_kept = !is_kept;
                is_kept
            });
        }
        self.history.push((now, self.portfolio.explained()));
        Ok(())
    }

    /// The best bid and offer of others in each instrument, as last seen: options in the order of the quotes,
    /// then the underlying.
    pub(crate) fn markets(&self) -> &[[Option<Price>; 2]] {
        &self.markets
    }

    /// What an instrument is worth by its market, in points, if it has a mid, else the worse for a position
    /// of so many contracts of its last mid and a theoretical value; and whether it has a mid.
    pub(crate) fn market_value(&self, instrument: usize, held: i64, theo: f64) -> (f64, bool) {
        let [now, last] = self.mids.get(instrument).copied().unwrap_or_default();
        match (now, last) {
            (Some(mid), _) => (mid, true),
            (None, Some(last)) if held > 0 => (last.min(theo), false),
            (None, Some(last)) => (last.max(theo), false),
            (None, None) => (theo, false),
        }
    }

    /// The market's mid of an instrument, in points.
    pub(crate) fn mid(&self, instrument: usize) -> Option<f64> {
        self.mids.get(instrument).and_then(|[now, _]| *now)
    }

    /// Options that are not quoted because of their market, with their names.
    pub(crate) fn off_market(&self) -> impl Iterator<Item = (&str, Off)> {
        let names = self.names.iter().map(String::as_str);
        names
            .zip(&self.off)
            .filter_map(|(name, off)| Some((name, (*off)?)))
    }

    /// Everything that reports show.
    pub(crate) fn snapshot(&mut self, now: Nanos) -> Snapshot {
        self.now = self.now.max(now);
        let (now, title) = (
            self.now,
            format!("Quotes on {}", self.names.last().map_or("", |name| name)),
        );
        self.mark_outs.advance(now);
        let kept = self.obligations.as_mut();
        let kept = kept.map(|obligations| Promised::of(obligations, now, &self.names));
        Snapshot::of(
            &self.portfolio,
            Surroundings {
                title: &title,
                currency: self.currency.as_str(),
                at: now,
                expiries: &self.expiries,
                symbols: &self.names,
                quotes: &self.markets,
                future: self.future,
                difference_max: self.difference_max,
                spots: &self.spots,
                vols: &self.vols,
                limits: self.limits,
                history: self.history.clone(),
                obligations: kept,
                horizons: *self.mark_outs.horizons(),
                fills: self.mark_outs.fills().copied().collect(),
            },
        )
    }

    /// Contracts held of an instrument, options by the place of their quotes.
    #[cfg(test)]
    pub(crate) fn held(&self, instrument: u32) -> i64 {
        self.portfolio.position(instrument).qty
    }
}
