//! Quotes many options at once: from a tick of the underlying to mass quotes.
//!
//! Nothing is priced here. Another thread prices, and hands over a [`Ladder`] of what is wanted at each price
//! of the underlying; a tick is then one look-up, one comparison of the row with what the venue was last told
//! ([`Table`]), and the entries that differ. Quotes lie in the order of their delta, and go out in it: first
//! those that are *exposed* (a side is better for others than it should be), each message as soon as it is
//! full, then those that could be better, as far as the message rates allow.
//!
//! Each quote has at most one change under way; what it should be once that is answered is found by comparing
//! again, so that any number of ticks in between become one message. What the venue could trade against us is
//! known at any time as an upper bound: what is live, and what is under way.
//!
//! A quote that does not go with the market of its option (see [`MarketGuard`]) is not sent, and that option
//! is pulled.
//!
//! When something is not to be trusted (see [`PullReason`]) all quotes are taken away by one message, and
//! none goes out until the venue has confirmed that and the reason is gone.
//!
//! **Assumed of the venue**, as of CME: an entry that is rejected leaves the quote before it; answers come in
//! the order of the requests; executions against a quote come after the answer that accepted it; a lost
//! session cancels every quote.

mod answers;
mod config;
mod decide;
mod exposed;
mod fills;
mod flight;
mod guard;
pub(crate) mod ladder;
mod market;
mod orders;
mod pull;
mod rehearsing;
mod silence;
mod sink;
pub(crate) mod table;
#[cfg(test)]
pub(crate) mod tests;
mod time;
mod underlying;

use crate::exposure::{Exposure, exposures};
use crate::risk::Window;
use alloc::boxed::Box;
use alloc::vec;
pub use config::{Protection, QuoterConfig};
use decide::Batch;
use exposed::Exposed;
use fills::{Fade, Filled};
use flight::Flights;
use ladder::BLOCK;
pub use ladder::{Ladder, LadderFull, NO_ASK, NO_BID, PriceGrid, QuoteTerms, Quoting, QuotingError, Row};
use market::Markets;
pub use market::{MarketGuard, MarketNeed, OffMarket, Pulled};
pub use orders::{
    QuoteLive, QuoteOrders, SideOutcome, SideReport, SideReportKind, SideRequest, SideRequestKind, SideSink,
};
use pull::{OrderSession, Pulls, State};
pub use pull::{PullReason, QuotingState};
use rehearsing::Rehearsed;
pub use silence::{Silence, SilenceConfig, TwoLooks};
pub use sink::{Fill, MassQuote, QuoteSink};
use table::Table;
use tickwire_market::{Counters, MassQuoteEntry, Nanos};
use time::Options;
use underlying::Trust;
pub(crate) use underlying::half_tick;

/// The most entries of one mass quote. CME takes 15 (iLink 2 MassQuote, NoQuoteEntries).
pub const ENTRIES_MAX: usize = 32;

/// Quotes the options of one underlying. One thread owns it; nothing allocates after `new`.
#[derive(Clone, Debug)]
pub struct Quoter {
    config: QuoterConfig,
    ladder: Option<Box<Ladder>>,
    table: Table,
    flights: Flights,
    markets: Markets,
    options: Options,
    batch: Batch,
    exposed: Exposed,
    messages: Window,
    improvements: Window,
    filled: Filled,
    trust: Trust,
    session: OrderSession,
    pulls: Pulls,
    counters: Counters,
    /// Goes the whole way when a tick is rehearsed; it has none itself.
    twin: Option<Box<Quoter>>,
}

impl Quoter {
    /// Nothing quoted: [`PullReason::NoSession`] until [`Quoter::on_logon`].
    pub fn new(config: QuoterConfig) -> Quoter {
        Quoter {
            twin: Some(Quoter::twin_of(&config)),
            ..Quoter::alone(config)
        }
    }

    /// The same without a twin.
    fn alone(config: QuoterConfig) -> Quoter {
        let quotes = usize::from(config.quotes);
        let table = Table::new(quotes);
        let fade = Fade {
            until: [Nanos::ZERO; 2],
            ticks: [NO_ASK - 1, 1],
        };
        let mut quoter = Quoter {
            config,
            ladder: None,
            flights: Flights::new(config.in_flight_max.into()),
            markets: Markets::new(config.market, quotes),
            options: Options {
                sizes: vec![config.size.0; quotes].into_boxed_slice(),
                since: vec![Nanos::ZERO; quotes].into_boxed_slice(),
                is_quoted: vec![true; quotes].into_boxed_slice(),
                fades: vec![fade; quotes].into_boxed_slice(),
                next_fade: None,
                refused: vec![0; table.blocks()].into_boxed_slice(),
                next_retry: None,
            },
            batch: Batch {
                entries: [MassQuoteEntry::default(); ENTRIES_MAX],
                count: 0,
                musts: 0,
                improve: vec![0; table.blocks()].into_boxed_slice(),
                rehearsals: 0,
                rehearsed: Rehearsed::Nothing,
                is_stopped: false,
            },
            exposed: Exposed {
                open: vec![[0; 2]; quotes].into_boxed_slice(),
                all: [Exposure::default(); 2],
                room: [Exposure::default(); 2],
                room_all: 0,
                net: 0,
                paid: 0,
                beside: [Exposure::default(); 2],
                positions: vec![0; quotes].into_boxed_slice(),
            },
            messages: Window::new(config.messages_max, config.window_ns),
            improvements: Window::new(config.improvements_max, config.window_ns),
            filled: Filled::default(),
            trust: Trust {
                look: None,
                calm_at: Nanos::ZERO,
                turned: Nanos::ZERO,
                changed: Nanos::ZERO,
                looks: TwoLooks::default(),
                silence: Silence::new(config.silence),
            },
            session: OrderSession::default(),
            pulls: Pulls {
                state: State::Halted(PullReason::NoSession),
                counts: [0; PullReason::ALL.len()],
                last: None,
                turn: Nanos::ZERO,
            },
            counters: Counters::default(),
            twin: None,
            table,
        };
        (0..quotes).for_each(|quote| quoter.limit(quote));
        quoter
    }

    /// Whether quotes go out.
    pub fn state(&self) -> QuotingState {
        match self.pulls.state {
            State::Quoting => QuotingState::Quoting,
            State::Pulling(reason, ..) => QuotingState::Pulling(reason),
            State::Halted(reason) => QuotingState::Halted(reason),
        }
    }

    /// How often quoting stopped, by [`PullReason::ALL`]; where a reason that stays took the place of one
    /// that passes, both count.
    pub fn pulls(&self) -> &[u64] {
        &self.pulls.counts
    }

    /// Why quoting stopped last.
    pub fn last_pull(&self) -> Option<PullReason> {
        self.pulls.last
    }

    /// What the venue was last told of a quote and accepted, in ticks: [`NO_BID`] and [`NO_ASK`] where
    /// nothing is live.
    pub fn live(&self, quote: u16) -> (u16, u16) {
        let at = usize::from(quote);
        (self.table.live_bids[at], self.table.live_asks[at])
    }

    /// Why an option is not quoted although it would be, if that is its market.
    pub fn off_market(&self, quote: u16) -> Option<Pulled> {
        self.markets.pulled(quote.into())
    }

    /// How many options are not quoted because of their market, in the order of [`OffMarket::ALL`].
    pub fn off_markets(&self) -> [u32; 4] {
        self.markets.counts()
    }

    /// Contracts that may still trade against what is live, by side.
    pub fn open(&self, quote: u16) -> [u32; 2] {
        self.exposed.open[usize::from(quote)]
    }

    /// Contracts that may trade against all quotes, what is under way included, by side.
    pub fn open_all(&self) -> [u64; 2] {
        self.exposed.all.map(|open| open.contracts)
    }

    /// Premium of all of it at the quotes' prices, in ticks times contracts, by side.
    pub fn open_premium(&self) -> [u64; 2] {
        self.exposed.all.map(|open| open.premium)
    }

    /// Whether a quote's last change was not answered yet.
    pub fn is_in_flight(&self, quote: u16) -> bool {
        self.table.is_in_flight(quote.into())
    }

    /// Mass quotes that were not answered yet.
    pub fn in_flight(&self) -> usize {
        self.flights.len()
    }

    /// Contracts held of an option, bought less sold.
    pub fn position(&self, quote: u16) -> i64 {
        self.exposed.positions[usize::from(quote)]
    }

    /// Contracts held of all of them.
    pub fn net(&self) -> i64 {
        self.exposed.net
    }

    /// Premium paid for them, less what was received, in ticks times contracts.
    pub fn paid(&self) -> i64 {
        self.exposed.paid
    }

    /// What happened how often.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// What may trade, counted anew.
    #[cfg(test)]
    fn known_open(&self) -> [Exposure; 2] {
        let mut all = [Exposure::default(); 2];
        let mut count = |quote: [Exposure; 2]| (0..2).for_each(|side| all[side].add(quote[side]));
        for (quote, open) in (0..).zip(&self.exposed.open) {
            count(exposures(*open, self.live(quote)));
        }
        for told in self.flights.iter() {
            count(exposures(
                [told.bid_qty.0, told.ask_qty.0],
                (told.bid_ticks, told.ask_ticks),
            ));
        }
        all
    }
}

/// What may trade of an entry.
#[inline]
fn exposures_of(entry: &MassQuoteEntry) -> [Exposure; 2] {
    exposures(
        [entry.bid_qty.0, entry.ask_qty.0],
        (entry.bid_ticks, entry.ask_ticks),
    )
}

/// The quotes of a block whose bits are set, in order.
#[inline]
pub(crate) fn places(block: usize, mut bits: u64) -> impl Iterator<Item = usize> {
    core::iter::from_fn(move || {
        let at = bits.trailing_zeros() as usize;
        bits &= bits.wrapping_sub(1);
        (at < BLOCK).then_some(block * BLOCK + at)
    })
}
