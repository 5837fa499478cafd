//! The loop of the pricing thread.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError};

use tickwire_market::{Date, Nanos, Side, Symbol};
use tickwire_options::edge::points;
use tickwire_runtime::clock::Clock;
use tickwire_runtime::spsc::{Consumer, Producer};
use tickwire_trading::Ladders;

use super::volatilities::Times;
use super::{Ask, Priced, REST, Shared, Wish};
use crate::account::{Account, View};
use crate::config::MarketSection;
use crate::news::News;
use crate::path::{Source, Traded};
use crate::plausible::{self, Sight};
use crate::pricer::{Exposure, NEAR_HALF_TICKS, Pricer};
use tickwire_console::failure::Failure;
use tickwire_desk::risk;
use tickwire_desk::vol::{self, Begun};
use tickwire_node::fills::{Fill, FillsFile};

/// How often the account is valued.
const VALUE_NS: u64 = Nanos::SECOND;
/// How often it is written down how far the venue was heard: what a process that is killed has to be told
/// again is no more than that.
const NOTE_NS: u64 = 250 * Nanos::MILLI;
/// A day.
const MINUTES_MAX: usize = 1_440;

/// Ladders that are filled, and their way to the quoting thread and back.
pub(super) struct Pools {
    pub(super) near: Vec<Ladders>,
    pub(super) wide: Vec<Ladders>,
    pub(super) near_rows: usize,
    pub(super) reach: i64,
    pub(super) to_quoting: Producer<Ladders>,
    pub(super) back: Consumer<Ladders>,
    /// Of the wide ladder that was made last.
    pub(super) centre: Option<i64>,
}

/// How far volatilities may be from the market, at which rate, and the dates of the surface's expiries.
pub(super) struct Bounds {
    pub(super) market: MarketSection,
    pub(super) rate: f64,
    pub(super) smiles: Vec<Date>,
}

/// Views of the market, and their way back.
pub(super) struct Views {
    pub(super) incoming: Consumer<Box<View>>,
    pub(super) outgoing: Producer<Box<View>>,
}

/// What was traded, where it outlives the process.
pub(super) struct Kept {
    pub(super) file: Option<FillsFile>,
    /// When it was last said how far the venue was heard.
    pub(super) noted: Nanos,
    /// Symbols of the options in the order of the quotes, and of the underlying.
    pub(super) names: Vec<Symbol>,
    pub(super) underlying: Symbol,
}

/// The thread's part.
pub(super) struct Work {
    pub(super) pricer: Pricer,
    pub(super) times: Times,
    pub(super) clock: Clock,
    pub(super) shared: Arc<Shared>,
    pub(super) traded: Consumer<Traded>,
    pub(super) account: Account,
    pub(super) news: News,
    pub(super) pools: Pools,
    pub(super) bounds: Bounds,
    pub(super) views: Views,
    pub(super) kept: Kept,
    pub(super) asked: Receiver<Ask>,
    pub(super) reprice_ns: u64,
    /// That the gains differ was said.
    pub(super) is_warned: bool,
    /// When the account was last valued.
    pub(super) valued: Nanos,
    pub(super) priced: Priced,
}

impl Work {
    pub(super) fn run(mut self, core: i32) -> Priced {
        let pinned = tickwire_control::process::pin(core);
        if let Err(failure) = pinned.and_then(|()| self.work()) {
            // Quotes of a ladder that is not renewed any more: pulled, and not resumed by themselves.
            self.shared.pull();
            tickwire_console::warn(format_args!("pricing ended: {failure}; every quote is pulled"));
            self.priced.failure = Some(failure.message);
        }
        let Exposure { delta, gamma, vega } = self.pricer.exposure();
        self.priced.positions = self.pricer.positions().to_vec();
        self.priced.underlying = self.pricer.underlying();
        self.priced.underlying_size = self.pricer.underlying_size();
        self.priced.version = self.pricer.surface().version();
        let count = self.priced.positions.len();
        self.priced.theos = (0..count)
            .map(|at| self.pricer.theo(at).unwrap_or_default())
            .collect();
        self.priced.mids = (0..count).map(|at| self.account.mid(at)).collect();
        Priced {
            delta,
            gamma,
            vega,
            ..self.priced
        }
    }

    fn work(&mut self) -> Result<(), Failure> {
        let mut aged = self.clock.now();
        let mut minute = aged;
        let mut is_new = true;
        loop {
            let half_tick = self.shared.half_tick.load(Ordering::Relaxed);
            is_new |= self.take_fills(half_tick)?;
            let mut is_seen = false;
            while let Some(view) = self.views.incoming.pop() {
                self.account.on_view(&view, &mut self.news);
                let _ = self.views.outgoing.push(view);
                is_seen = true;
            }
            if is_seen {
                // The market of what is held has moved, maybe without us.
                self.mark(half_tick)?;
            }
            let now = self.clock.now();
            if now.since(minute) >= 60 * Nanos::SECOND && self.priced.memory_kib.len() < MINUTES_MAX {
                minute = now;
                self.priced
                    .memory_kib
                    .extend(tickwire_control::summary::resident_kib());
            }
            if now.since(aged) >= self.reprice_ns {
                aged = now;
                self.clock.resync();
                // What is left until an expiry is of UTC, as it is now.
                self.pricer.age(&self.times, self.clock.wall_at(now))?;
                is_new = true;
            }
            let is_off = self
                .pools
                .centre
                .is_none_or(|centre| half_tick.abs_diff(centre) > self.pools.reach as u64 / 2);
            if is_new || is_off {
                is_new = !self.follow(half_tick, is_new)?;
            }
            // Behind what is quoted by.
            if now.since(self.valued) >= VALUE_NS {
                self.valued = now;
                let _ = self.revalue(half_tick);
                self.shared
                    .board
                    .put(self.account.off_market(), self.priced.status());
            }
            if self.shared.ends.load(Ordering::Relaxed) {
                self.take_fills(half_tick)?;
                self.mark(half_tick)?;
                return Ok(());
            }
            match self.asked.recv_timeout(REST) {
                Ok((Wish::Edit(line, by), answer)) => {
                    let _ = answer.send(self.edit(&line, &by, &mut is_new));
                }
                Ok((Wish::Risk(format), answer)) => {
                    let shown = self.revalue(half_tick).map(|()| {
                        let snapshot = self.account.snapshot(self.clock.now());
                        risk::shown(&snapshot, format)
                    });
                    let _ = answer.send(shown);
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => std::thread::sleep(REST),
            }
        }
    }

    /// Values the account by the present volatilities. Where that cannot be done it stays as it was, quotes
    /// do not depend on it, and whoever asks for a report is told why.
    fn revalue(&mut self, half_tick: i64) -> Result<(), String> {
        let now = self.clock.now();
        let valued = self
            .account
            .revalue(now, half_tick, &mut self.pricer, &self.times);
        valued.map_err(|e| format!("the account cannot be valued: {e}"))
    }

    /// Makes ladders of what has changed and hands them over, those around the price first if `is_urgent`;
    /// `false` where there is none left to fill, because the quoting thread has not taken the last ones:
    /// later.
    fn follow(&mut self, half_tick: i64, is_urgent: bool) -> Result<bool, Failure> {
        self.pricer.settle(half_tick)?;
        self.mark(half_tick)?;
        if is_urgent && self.pools.centre.is_some() {
            self.publish(half_tick, false)?;
        }
        self.publish(half_tick, true)
    }

    /// Does what a line says to the volatilities. Quotes follow it before a file is written, so that they do
    /// not wait for a disk; whoever asked is answered behind both. An edit that cannot be priced or kept is
    /// taken back, and quotes go back with it.
    fn edit(&mut self, line: &str, by: &vol::By, is_new: &mut bool) -> Result<String, String> {
        let Some(file) = &mut self.times.file else {
            return Err(
                "these volatilities come from quoter.volatility: name a file, quoter.surface, to edit them"
                    .into(),
            );
        };
        let now = self.clock.now();
        let edited = match vol::begin(file, self.pricer.surface_mut(), line, by, now)? {
            Begun::Answer(says) => return Ok(says),
            Begun::Edited(edited) => *edited,
        };
        if edited.is_reload() && !by.is_forced {
            let sight = Sight {
                clock: &self.times,
                rate: self.bounds.rate,
                now,
                options: self.pricer.options(),
                markets: self.account.markets(),
            };
            if let Err(why) = plausible::check(
                &self.bounds.market,
                self.pricer.surface(),
                &self.bounds.smiles,
                &sight,
            ) && let Some(file) = &mut self.times.file
            {
                vol::drop_edit(file, self.pricer.surface_mut(), edited);
                return Err(format!(
                    "`{line}` is refused: {why}. Nothing was changed; give --force if it is meant"
                ));
            }
        }
        let half_tick = self.shared.half_tick.load(Ordering::Relaxed);
        let aged = match edited.is_reload() {
            true => self.pricer.age(&self.times, now),
            false => Ok(()),
        };
        let followed = aged.and_then(|()| self.follow(half_tick, true));
        // In case what was handed over has to be taken back.
        *is_new = true;
        let surface = self.pricer.surface_mut();
        let Some(file) = &mut self.times.file else {
            return Err("the file of the volatilities is gone".into());
        };
        let is_followed = match followed {
            Ok(is_followed) => is_followed,
            Err(failure) => {
                vol::drop_edit(file, surface, edited);
                let _ = self.pricer.age(&self.times, now);
                return Err(format!("taken back: {failure}"));
            }
        };
        let kept = vol::keep(file, surface, edited)?;
        *is_new = !is_followed;
        Ok(kept)
    }

    /// Fills since the last time; whether there were any.
    fn take_fills(&mut self, half_tick: i64) -> Result<bool, Failure> {
        let mut any = false;
        // Before the fills: all up to there are in the ring.
        let heard = self.shared.heard.load(Ordering::Acquire);
        while let Some(fill) = self.traded.pop() {
            if !any {
                self.pricer.theos(half_tick)?;
            }
            any = true;
            let theo = self.pricer.theo(usize::from(fill.quote));
            self.keep(&fill, theo);
            self.account.on_fill(&fill, theo, true);
            self.book(&fill, theo);
        }
        let now = self.clock.now();
        if let Some(fills) = &mut self.kept.file {
            if now.since(self.kept.noted) >= NOTE_NS {
                self.kept.noted = now;
                fills.heard(heard);
            }
            fills.flush()?;
        }
        Ok(any)
    }

    /// Adds a fill to those that outlive the process.
    fn keep(&mut self, fill: &Traded, theo: Option<f64>) {
        let Some(fills) = &mut self.kept.file else { return };
        let is_hedge = fill.source == Source::Hedge;
        let option = self.kept.names.get(usize::from(fill.quote)).copied();
        let (symbol, theo) = match (is_hedge, option) {
            (false, Some(symbol)) => (symbol, theo),
            _ => (self.kept.underlying, None),
        };
        fills.put(&Fill {
            at: fill.at,
            symbol,
            source: fill.source,
            side: fill.side,
            is_broken: fill.is_broken,
            qty: fill.qty,
            price: fill.price,
            theo,
            seq: fill.seq,
            exec: fill.exec,
        });
    }

    /// Counts a fill of a process before this one. One in an option that is not quoted any more has no place.
    pub(super) fn restore(&mut self, fill: &Fill<Source>) {
        let place = self.kept.names.iter().position(|name| *name == fill.symbol);
        let quote = match (fill.source, place) {
            (Source::Hedge, _) => u16::MAX,
            (_, Some(place)) => place as u16,
            (_, None) => return,
        };
        let traded = Traded {
            at: fill.at,
            source: fill.source,
            quote,
            side: fill.side,
            is_broken: fill.is_broken,
            qty: fill.qty,
            price: fill.price,
            half_tick: 0,
            seq: fill.seq,
            exec: fill.exec,
        };
        self.account.on_fill(&traded, fill.theo, false);
        self.book(&traded, fill.theo);
    }

    /// Counts a fill of an option that was worth `theo`.
    fn book(&mut self, fill: &Traded, theo: Option<f64>) {
        let quote = usize::from(fill.quote);
        let qty = f64::from(fill.qty);
        let sign = match fill.side {
            Side::Bid => 1.0,
            Side::Ask => -1.0,
        };
        let signed = i64::from(fill.qty) * if sign > 0.0 { 1 } else { -1 };
        let price = points(fill.price);
        let count = |all: &mut u64, more: u64| match fill.is_broken {
            true => *all = all.saturating_sub(more),
            false => *all += more,
        };
        let contracts = u64::from(fill.qty);
        let side = fill.side_of_trade() as usize;
        count(&mut self.priced.fills, 1);
        if fill.source == Source::Hedge {
            count(&mut self.priced.hedged[side], contracts);
            self.priced.cash -= sign * qty * price * self.pricer.underlying_size();
            return self.pricer.hedged(signed);
        }
        count(&mut self.priced.contracts[side], contracts);
        if fill.source == Source::Eye {
            count(&mut self.priced.eye_contracts[side], contracts);
        }
        self.priced.cash -= sign * qty * price;
        if let Some(theo) = theo {
            self.priced.edge += sign * qty * (theo - price);
        }
        self.pricer.filled(quote, signed);
    }

    /// What is held, at theoretical values and at the market's mids; too large a loss pulls everything, and
    /// too large a difference is said.
    fn mark(&mut self, half_tick: i64) -> Result<(), Failure> {
        self.priced.value = self.pricer.value_held(half_tick)?;
        let (mut off, mut without) = (0.0, (0, 0));
        for (at, held) in self
            .pricer
            .positions()
            .iter()
            .enumerate()
            .filter(|(_, held)| **held != 0)
        {
            let theo = self.pricer.theo(at).unwrap_or_default();
            let (value, has_mid) = self.account.market_value(at, *held, theo);
            off += *held as f64 * (value - theo);
            if !has_mid {
                without = (without.0 + 1, without.1 + held.unsigned_abs());
            }
        }
        // The underlying is at its mid in both.
        self.priced.market_value = self.priced.value + off;
        self.priced.without_mid = without;
        if self.priced.loss_max > 0 && self.priced.judged() < -(self.priced.loss_max as f64) {
            self.shared.lose();
        }
        if self.priced.differs() != self.is_warned {
            self.is_warned = !self.is_warned;
            let ([theo, market], p) = (self.priced.gains(), &self.priced);
            let line = match self.is_warned {
                true => format!(
                    "warning: what is held has gained {theo:.2} {c} by our values and {market:.2} {c} by the market's mids, which differ by more than {} \
                     (quoter.risk.mark_difference_max): look at the volatilities (`tickwire vol show -s`)",
                    p.difference_max,
                    c = p.currency
                ),
                false => format!(
                    "our values and the market's mids agree again within {} {}",
                    p.difference_max, p.currency
                ),
            };
            self.news.say(&line);
        }
        Ok(())
    }

    /// Fills a pair of ladders and hands it over; `false` when there was none to fill.
    fn publish(&mut self, half_tick: i64, is_wide: bool) -> Result<bool, Failure> {
        while let Some(made) = self.pools.back.pop() {
            self.pool(made.quotes.room() != self.pools.near_rows).push(made);
        }
        let reach = if is_wide {
            self.pools.reach
        } else {
            NEAR_HALF_TICKS
        };
        let Some(mut made) = self.pool(is_wide).pop() else {
            self.priced.ladders_late += 1;
            return Ok(false);
        };
        self.pricer
            .fill_both(&mut made.quotes, made.eye.as_deref_mut(), half_tick, reach)?;
        if made.eye.is_some() && is_wide {
            self.pricer.hedge_deltas(&mut made.hedges);
        }
        let sent = self.pools.to_quoting.push(made);
        debug_assert!(sent.is_ok(), "the ring has room for every ladder there is");
        self.priced.ladders += 1;
        if is_wide {
            self.pools.centre = Some(half_tick);
        }
        Ok(true)
    }

    fn pool(&mut self, is_wide: bool) -> &mut Vec<Ladders> {
        match is_wide {
            true => &mut self.pools.wide,
            false => &mut self.pools.near,
        }
    }
}
