//! The pricing thread: makes ladders whenever something that they are made of has changed, and hands them
//! over whole.
//!
//! After an edit or a fill the rows around the underlying's price go first ([`NEAR_HALF_TICKS`]), then all of
//! them. Ladders come back to be filled again, so that there are never more than [`LADDERS`] of each size.
//! They go by rings ([`tickwire_runtime::spsc`]), one each way, where a model checker has looked for a row
//! that is read while it is filled.

mod priced;
mod shared;
#[cfg(test)]
mod tests;
mod volatilities;
mod work;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tickwire_market::{InstrumentId, Nanos, Price};
use tickwire_options::edge::points;
use tickwire_runtime::clock::Clock;
use tickwire_runtime::spsc::{Consumer, Producer, ring};
use tickwire_trading::{Ladder, Ladders};

use super::account::{Account, View};
use super::chain::Chain;
use super::config::QuoterSection;
use super::news::News;
use super::path::{Source, Traded};
use super::plausible::{self, Sight};
use super::pricer::{NEAR_HALF_TICKS, Pricer};
pub(crate) use priced::Priced;
pub(crate) use shared::Shared;
use tickwire_console::failure::Failure;
use tickwire_desk::risk::Format;
use tickwire_desk::vol;
use tickwire_node::fills::{FillsFile, Recovered};
use volatilities::volatilities;
pub use volatilities::{Expiries, flat_surface};
use work::{Bounds, Kept, Pools, Views, Work};

/// Ladders of a size: one quoted by, one on its way, one being filled.
const LADDERS: usize = 3;
/// Room for all ladders of both sizes, in either direction: nothing is ever refused for want of it.
const LADDERS_MAX: usize = (2 * LADDERS).next_power_of_two();
/// How long the first ladder may take.
const FIRST_MAX: Duration = Duration::from_secs(10);
/// Views of the market for the account: one on its way, one being filled.
const VIEWS: usize = 2;
/// How long the thread sleeps when there is nothing to do: fills and prices are looked at this often, edits
/// wake it.
const REST: Duration = Duration::from_micros(200);

/// What the operator asks the pricing thread, and where the answer goes.
pub(crate) type Ask = (Wish, Sender<Result<String, String>>);

/// What the operator wants of it.
#[derive(Clone, Debug)]
pub(crate) enum Wish {
    /// An edit of the volatilities as typed, and its author.
    Edit(String, vol::By),
    /// A report of the account.
    Risk(Format),
}

/// The strategy's end of the rings: ladders come, and go back.
pub(crate) struct LadderRing {
    incoming: Consumer<Ladders>,
    outgoing: Producer<Ladders>,
    /// One that was waited for.
    first: Option<Ladders>,
    is_over: bool,
}

impl LadderRing {
    /// Whether the pricing thread is gone: there is nobody who renews what is quoted by.
    pub(crate) fn is_over(&self) -> bool {
        self.is_over
    }

    /// Waits until the first ladder is there; whether it is.
    pub(crate) fn wait(&mut self) -> bool {
        let began = Instant::now();
        while self.first.is_none() && !self.is_over && began.elapsed() < FIRST_MAX {
            self.first = self.next();
            if self.first.is_none() {
                std::thread::sleep(REST);
            }
        }
        self.first.is_some()
    }

    /// The next ladder that has come. What hedges an option comes with it, empty without an eye, and of a
    /// narrow ladder.
    #[inline]
    pub(crate) fn next(&mut self) -> Option<Ladders> {
        if self.first.is_some() {
            return self.first.take();
        }
        let is_over = self.incoming.is_abandoned();
        let made = self.incoming.pop();
        self.is_over = is_over && made.is_none();
        made
    }

    /// Gives one back, to be filled again.
    pub(crate) fn give_back(&mut self, made: Ladders) {
        // There is room for as many as there are.
        let _ = self.outgoing.push(made);
    }
}

/// The quoting thread's end beside the ladders.
pub(crate) struct PricingEnd {
    deltas: Vec<i32>,
    sizes: Vec<u32>,
    eye_sizes: Vec<u32>,
    /// Views go, and come back to be filled again.
    to_account: Producer<Box<View>>,
    seen: Consumer<Box<View>>,
}

impl PricingEnd {
    /// A view to be filled, if the account has given one back.
    pub(crate) fn view(&mut self) -> Option<Box<View>> {
        self.seen.pop()
    }

    /// Shows it to the account.
    pub(crate) fn show(&mut self, view: Box<View>) {
        // There is room for as many as there are.
        let _ = self.to_account.push(view);
    }

    /// Deltas of the options, in thousandths.
    pub(crate) fn deltas(&self) -> &[i32] {
        &self.deltas
    }

    /// Contracts on each side of each quote.
    pub(crate) fn sizes(&self) -> &[u32] {
        &self.sizes
    }

    /// Contracts of the eye's largest order in each option.
    pub(crate) fn eye_sizes(&self) -> &[u32] {
        &self.eye_sizes
    }
}

/// What is known of the market before the first quote, and whether volatilities that it contradicts are
/// meant.
pub(crate) struct Begins<'b> {
    /// Bid plus ask of the underlying, in its ticks.
    pub half_tick: i64,
    /// Best bid and offer of an option.
    pub market: &'b dyn Fn(InstrumentId) -> [Option<Price>; 2],
    pub is_forced: bool,
}

/// The thread.
pub(crate) struct Pricing {
    thread: JoinHandle<Priced>,
    shared: Arc<Shared>,
    asks: Sender<Ask>,
}

impl Pricing {
    /// Prices the chain, which it puts into the order of quotes, and begins.
    pub(crate) fn start(
        section: &QuoterSection,
        chain: &mut Chain,
        clock: Clock,
        shared: Arc<Shared>,
        traded: Consumer<Traded>,
        kept: Option<(FillsFile, &Recovered<Source>)>,
        begins: &Begins<'_>,
    ) -> Result<(Pricing, PricingEnd, LadderRing), Failure> {
        let half_tick = begins.half_tick;
        let (mut surface, smiles, times) = volatilities(section, chain, clock.now(), half_tick)?;
        if !begins.is_forced {
            surface.set_front(half_tick as f64 * points(chain.underlying_tick) / 2.0);
            let markets: Vec<_> = chain
                .options
                .iter()
                .map(|option| (begins.market)(option.id))
                .collect();
            let sight = Sight {
                clock: &times,
                rate: section.rate,
                now: clock.now(),
                options: &chain.options,
                markets: &markets,
            };
            plausible::check(&section.market, &surface, &smiles, &sight).map_err(|why| {
                Failure::check(format!(
                    "{why}; nothing was quoted. Start with --force if they are meant"
                ))
            })?;
        }
        let first = (clock.now(), half_tick);
        let pricer = Pricer::new(section, chain, surface, &smiles, &times, first)?;
        let (to_quoting, incoming) = ring(LADDERS_MAX);
        let (outgoing, back) = ring(LADDERS_MAX);
        let (asks, asked) = channel();
        let (to_account, views) = ring(VIEWS);
        let (mut give_back, seen) = ring(VIEWS);
        for _ in 0..VIEWS {
            let seen = Vec::with_capacity(pricer.options().len() + 1);
            let _ = give_back.push(Box::new(View {
                at: Nanos::ZERO,
                seen,
            }));
        }
        let ladders = LadderRing {
            incoming,
            outgoing,
            first: None,
            is_over: false,
        };
        let end = PricingEnd {
            deltas: pricer.deltas().iter().map(|d| (d * 1000.0) as i32).collect(),
            sizes: pricer.terms().iter().map(|t| t.size).collect(),
            eye_sizes: pricer.eye_sizes(),
            to_account,
            seen,
        };
        let reach = i64::from(section.reach_half_ticks);
        let count = pricer.options().len();
        let has_eye = pricer.has_eye();
        let pool = |rows: i64| {
            let ladder = || Box::new(Ladder::new(count, (2 * rows + 1) as usize));
            let made = || Ladders {
                quotes: ladder(),
                eye: has_eye.then(ladder),
                hedges: Vec::with_capacity(if has_eye { count } else { 0 }),
            };
            (0..LADDERS).map(|_| made()).collect::<Vec<_>>()
        };
        let (fills, recovered) = kept.unzip();
        let account = Account::new(section, chain, &pricer);
        let mut work = Work {
            times,
            clock,
            shared: shared.clone(),
            traded,
            account,
            news: News::default(),
            pools: Pools {
                near: pool(NEAR_HALF_TICKS),
                wide: pool(reach),
                near_rows: (2 * NEAR_HALF_TICKS + 1) as usize,
                reach,
                to_quoting,
                back,
                centre: None,
            },
            bounds: Bounds {
                market: section.market,
                rate: section.rate,
                smiles: smiles.clone(),
            },
            views: Views {
                incoming: views,
                outgoing: give_back,
            },
            kept: Kept {
                file: fills,
                noted: Nanos::ZERO,
                names: pricer.options().iter().map(|option| option.symbol).collect(),
                underlying: section.underlying.0,
            },
            asked,
            reprice_ns: u64::from(section.reprice_ms.max(10)) * Nanos::MILLI,
            is_warned: false,
            valued: Nanos::ZERO,
            pricer,
            priced: Priced {
                point: chain.option_value.raw() as f64 / Price::ONE_RAW as f64,
                currency: chain.option_value.currency().to_string(),
                loss_max: section.limits.loss_max,
                loss_by: section.limits.loss_by,
                difference_max: section.risk.mark_difference_max,
                ..Priced::default()
            },
        };
        for fill in recovered.iter().flat_map(|recovered| &recovered.fills) {
            work.restore(fill);
        }
        let core = section.pricing_core;
        let thread = tickwire_runtime::affinity::beside("pricing", move || work.run(core))
            .map_err(|e| Failure::system(format!("cannot start the pricing thread: {e}")))?;
        Ok((Pricing { thread, shared, asks }, end, ladders))
    }

    /// Where the operator's questions go.
    pub(crate) fn asks(&self) -> Sender<Ask> {
        self.asks.clone()
    }

    /// Ends the thread; what it leaves behind.
    pub(crate) fn end(self) -> Priced {
        self.shared.ends.store(true, Ordering::Relaxed);
        self.thread.join().unwrap_or_default()
    }
}
