//! Quotes many options at once: from a tick of the underlying to mass quotes.
//!
//! Nothing is priced here. Another thread prices, and hands over a [`Ladder`] of what is wanted at each price of the underlying; a tick
//! is then one look-up, one comparison of the row with what the venue was last told ([`Table`]), and the entries that differ. Quotes lie
//! in the order of their delta, and go out in it: first those that are *exposed* (a side is better for others than it should be), each
//! message as soon as it is full, then those that could be better, as far as the message rates allow.
//!
//! Each quote has at most one change under way; what it should be once that is answered is found by comparing again, so that any number
//! of ticks in between become one message. What the venue could trade against us is known at any time as an upper bound: what is live,
//! and what is under way.
//!
//! A quote that does not go with the market of its option (see [`MarketGuard`]) is not sent, and that option is pulled.
//!
//! When something is not to be trusted (see [`PullReason`]) all quotes are taken away by one message, and none goes out until the venue
//! has confirmed that and the reason is gone.
//!
//! **Assumed of the venue**, as of CME: an entry that is rejected leaves the quote before it; answers come in the order of the requests;
//! executions against a quote come after the answer that accepted it; a lost session cancels every quote.

mod flight;
pub(crate) mod ladder;
mod market;
mod orders;
mod silence;
pub(crate) mod table;
#[cfg(test)]
pub(crate) mod tests;

use crate::RiskReject;
use crate::exposure::{Exposure, exposures};
use crate::risk::Window;
use alloc::boxed::Box;
use alloc::vec;
use flight::Flights;
use ladder::BLOCK;
pub use ladder::{Ladder, LadderFull, NO_ASK, NO_BID, PriceGrid, QuoteTerms, Quoting, QuotingError, Row};
use market::Markets;
pub use market::{MarketGuard, MarketNeed, OffMarket, Pulled};
pub use orders::{
    QuoteLive, QuoteOrders, SideOutcome, SideReport, SideReportKind, SideRequest, SideRequestKind, SideSink,
};
pub use silence::{Silence, SilenceConfig};
use table::Table;
use tickwire_market::{
    BookState, BookUpdate, Cause, Counter, Counters, InstrumentId, MassQuoteEntry, Nanos, Price, Qty, Side,
    Volume,
};

/// The most entries of one mass quote. CME takes 15 (iLink 2 MassQuote, NoQuoteEntries).
pub const ENTRIES_MAX: usize = 32;

/// Our own copy of a venue's market-maker protection, to be set tighter than it. 0 is no limit. CME: Mass Quote Protections.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Protection {
    /// How long fills count together, from the first of them, in nanoseconds.
    pub window_ns: u64,
    /// Fills (CME's Y).
    pub fills: u32,
    /// Contracts (CME's Z).
    pub contracts: u64,
    /// Contracts weighted by their delta, either way (CME's D), in thousandths of a contract.
    pub delta_milli: u64,
}

/// What to quote and within which limits. Prices of options are in ticks of `option_tick`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct QuoterConfig {
    /// What the options are on.
    pub underlying: InstrumentId,
    /// Tick of the underlying.
    pub underlying_tick: Price,
    /// The finest tick of the options, which all their prices here are in.
    pub option_tick: Price,
    /// How many options, in the order of their delta, at most 65 535.
    pub quotes: u16,
    /// Contracts on each side of a quote.
    pub size: Qty,
    /// Entries of one mass quote, 1 to [`ENTRIES_MAX`]. Default 15.
    pub entries_max: u8,
    /// Mass quotes that may wait for an answer. Default 256.
    pub in_flight_max: u16,
    /// An improvement of fewer ticks than this is not worth a message. Default 1.
    pub trigger_ticks: u16,
    /// A quote is not improved before it has lived so long, in nanoseconds. Default 0.
    pub life_min_ns: u64,
    /// Messages within `window_ns`: mass quotes, and orders beside them. Default 500. When a quote that must move has no room in it, everything is pulled.
    pub messages_max: u32,
    /// Of these, mass quotes that only improve. Default 400.
    pub improvements_max: u32,
    /// The window of both rates. Default one second.
    pub window_ns: u64,
    /// How far quotes may be from the markets of their options; `None`: nothing compares them. Default `None`, for those who have no such
    /// markets; `tickwire quote` has it on.
    pub market: Option<MarketGuard>,
    /// A filled side stays so many ticks away from its fill. Default 0.
    pub fade_ticks: u16,
    /// For so long, in nanoseconds. Default 0.
    pub fade_ns: u64,
    /// A quote that the venue rejected is tried again after so long, in nanoseconds; 0: not until [`Quoter::set_quoted`]. Default 0.
    pub retry_ns: u64,
    /// Half ticks of the underlying from one look to the next that are a jump. Default 40.
    pub jump_half_ticks: u32,
    /// Ticks between bid and ask of the underlying that are too many. Default 10.
    pub spread_max_ticks: u32,
    /// How long the underlying must have been good before quoting goes on after it was not. Default 100 ms.
    pub calm_ns: u64,
    /// An answer that takes longer ends trust in the session. Default one second.
    pub answer_max_ns: u64,
    /// The operator's client must be heard this often; 0 is no such need. Default 0.
    pub heartbeat_ns: u64,
    /// The longest time between two turns of the loop ([`Quoter::on_turn`]) that is no stall; 0 is any. Default 250 ms.
    pub stall_ns: u64,
    /// When the market data of the underlying is silent ([`Quoter::on_packet`]).
    pub silence: SilenceConfig,
    /// How long the underlying's own book may be without a change ([`Quoter::on_change`]), in nanoseconds; 0 is for any time. Default 0.
    pub underlying_silence_ns: u64,
    /// Most contracts held, bought less sold, if every bid traded.
    pub long_max: u64,
    /// Most contracts short if every offer traded.
    pub short_max: u64,
    /// Most contracts on both sides of all quotes together.
    pub quoted_max: u64,
    /// Most premium, in ticks times contracts: paid less received if every bid traded, received less paid if every offer did. Indexed
    /// by [`Side`]. Default: no limit.
    pub premium_max: [u64; 2],
    /// Our own protection.
    pub protection: Protection,
}

impl Default for QuoterConfig {
    fn default() -> QuoterConfig {
        QuoterConfig {
            underlying: InstrumentId::WHOLE_FEED,
            underlying_tick: Price::from_raw(Price::ONE_RAW / 4),
            option_tick: Price::from_raw(Price::ONE_RAW / 20),
            quotes: 0,
            size: Qty(10),
            entries_max: 15,
            in_flight_max: 256,
            trigger_ticks: 1,
            life_min_ns: 0,
            messages_max: 500,
            improvements_max: 400,
            window_ns: Nanos::SECOND,
            market: None,
            fade_ticks: 0,
            fade_ns: 0,
            retry_ns: 0,
            jump_half_ticks: 40,
            spread_max_ticks: 10,
            calm_ns: 100 * Nanos::MILLI,
            answer_max_ns: Nanos::SECOND,
            heartbeat_ns: 0,
            stall_ns: 250 * Nanos::MILLI,
            silence: SilenceConfig::default(),
            underlying_silence_ns: 0,
            long_max: 1_000_000,
            short_max: 1_000_000,
            quoted_max: 1_000_000,
            premium_max: [u64::MAX; 2],
            protection: Protection::default(),
        }
    }
}

/// Declares the reasons, and the list of all of them.
macro_rules! pull_reasons {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// Why every quote was taken away.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        pub enum PullReason {
            $($(#[$doc])* $name,)*
        }

        impl PullReason {
            /// Every reason, in the order of their declaration.
            pub const ALL: &[PullReason] = &[$(PullReason::$name),*];
        }
    };
}

pull_reasons! {
    /// An operator.
    Operator,
    /// The operator's client was not heard.
    Heartbeat,
    /// The book of the underlying has a gap, or is not built.
    StaleUnderlying,
    /// A side of the underlying is empty, or its bid is not below its ask.
    CrossedUnderlying,
    /// Its bid and ask are too far apart.
    WideUnderlying,
    /// It moved too far at once.
    Jump,
    /// Its price is outside of the ladder, or there is no ladder.
    NoRow,
    /// A quote that must move had no room in the message rate, or too many messages wait for an answer.
    Rate,
    /// An answer did not come in time.
    LateAnswer,
    /// An answer or a fill fits nothing: we do not know what is live.
    Unmatched,
    /// A quote that had to be withdrawn was not, because the venue rejected that.
    Rejected,
    /// Our own protection.
    Protection,
    /// The venue's.
    VenueProtection,
    /// The session is not logged on.
    NoSession,
    /// What was traded has lost more than it may.
    Loss,
    /// The venue took a trade back: what is held is not what was decided on.
    BrokenTrade,
    /// The thread that quotes did not run for longer than [`QuoterConfig::stall_ns`]: what it saw last may be long past.
    Stall,
    /// No packet of the underlying's market data came for longer than [`QuoterConfig::silence`] allows.
    Silence,
    /// The underlying's own book did not change for longer than [`QuoterConfig::underlying_silence_ns`].
    SilentUnderlying,
    /// One of the controls ([`crate::Controls`]) stopped a quote, or the strategy.
    Control,
}

impl PullReason {
    /// Whether quoting goes on by itself once the underlying is good again.
    pub const fn is_passing(self) -> bool {
        matches!(
            self,
            PullReason::StaleUnderlying
                | PullReason::CrossedUnderlying
                | PullReason::WideUnderlying
                | PullReason::Jump
                | PullReason::NoRow
                | PullReason::Stall
                | PullReason::Silence
                | PullReason::SilentUnderlying
        )
    }
}

/// Whether quotes go out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum QuotingState {
    /// They do.
    Quoting,
    /// They are being taken away.
    Pulling(PullReason),
    /// None is live.
    Halted(PullReason),
}

/// A mass quote to be sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MassQuote<'q> {
    /// Its number, QuoteID (117): answers name it.
    pub id: u64,
    /// The market data that it follows.
    pub cause: Cause,
    /// Ends the venue's protection (CME MMProtectionReset, 9773).
    pub reset: bool,
    /// In the order of delta.
    pub entries: &'q [MassQuoteEntry],
}

/// Where messages leave. What is given here was sent, unless `false` says that there was no room for it.
pub trait QuoteSink {
    /// Sends a mass quote.
    fn mass_quote(&mut self, quote: &MassQuote<'_>) -> bool;
    /// Whether the controls ([`crate::Controls`]) let a mass quote leave, else the first that does not: an instrument's rate of messages
    /// counts as the session's, anything else pulls every quote until a person resumes.
    fn admit(&mut self, now: Nanos, quote: &MassQuote<'_>) -> Result<(), RiskReject> {
        let _ = (now, quote);
        Ok(())
    }
    /// Cancels every quote (QuoteCancel, 298=4).
    fn cancel_all(&mut self, id: u64, cause: &Cause) -> bool;
    /// Does with a mass quote what sending it would, but for the sending: nothing may leave or be counted. See [`Quoter::rehearse`].
    fn rehearse(&mut self, quote: &MassQuote<'_>) {
        let _ = quote;
    }
}

/// An execution against a quote.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fill {
    /// Which.
    pub quote: u16,
    /// Our side: a filled bid bought.
    pub side: Side,
    /// How much.
    pub qty: Qty,
    /// At which price, in ticks.
    pub ticks: u16,
    /// Delta of the option, in thousandths.
    pub delta_milli: i32,
}

impl Fill {
    /// Contracts bought, below 0 sold.
    pub fn signed(&self) -> i64 {
        match self.side {
            Side::Bid => i64::from(self.qty.0),
            Side::Ask => -i64::from(self.qty.0),
        }
    }

    /// What was paid for them, below 0 received, in ticks times contracts.
    pub fn paid(&self) -> i64 {
        self.signed().saturating_mul(i64::from(self.ticks))
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Quoting,
    /// The cancel's number once it was sent, and since when it is wanted.
    Pulling(PullReason, Option<u64>, Nanos),
    Halted(PullReason),
}

/// What counts towards our own protection.
#[derive(Clone, Copy, Debug, Default)]
struct Filled {
    since: Option<Nanos>,
    fills: u32,
    contracts: u64,
    delta_milli: i64,
}

/// What keeps a side away from where it was filled.
#[derive(Clone, Copy, Debug)]
struct Fade {
    /// Indexed by [`Side`].
    until: [Nanos; 2],
    ticks: [u16; 2],
}

/// The last look at the underlying.
#[derive(Clone, Copy, Debug)]
struct Look {
    half_tick: i64,
    cause: Cause,
}

/// Quotes the options of one underlying. One thread owns it; nothing allocates after `new`.
#[derive(Clone, Debug)]
pub struct Quoter {
    config: QuoterConfig,
    ladder: Option<Box<Ladder>>,
    table: Table,
    flights: Flights,
    /// The message being filled.
    entries: [MassQuoteEntry; ENTRIES_MAX],
    batched: usize,
    /// Of these, those that must move: the first.
    musts: usize,
    /// Quotes to improve, by block, found while looking for those that must move.
    improve: Box<[u64]>,
    /// Contracts that may trade against what is live, per quote and side.
    open: Box<[[u32; 2]]>,
    /// The same with what is under way, for all quotes.
    open_all: [Exposure; 2],
    /// What may still be added, by side, and contracts in all; worked out for each decision.
    room: [Exposure; 2],
    room_all: u64,
    sizes: Box<[u32]>,
    since: Box<[Nanos]>,
    /// Options that may be quoted: not halted, and not rejected.
    is_quoted: Box<[bool]>,
    markets: Markets,
    fades: Box<[Fade]>,
    /// When the first fade may end, while there are any.
    next_fade: Option<Nanos>,
    /// Quotes that the venue rejected and that are tried again, by block, and when.
    refused: Box<[u64]>,
    next_retry: Option<Nanos>,
    /// Bought less sold, contracts, and paid less received, ticks times contracts.
    net: i64,
    paid: i64,
    /// Orders beside the quotes that are under way, by side.
    beside: [Exposure; 2],
    positions: Box<[i64]>,
    messages: Window,
    improvements: Window,
    filled: Filled,
    state: State,
    look: Option<Look>,
    /// The underlying is not to be trusted before then.
    calm_at: Nanos,
    heard: Nanos,
    /// The last turn of the loop, and the last change of the underlying's book; zero before the first.
    turned: Nanos,
    changed: Nanos,
    silence: Silence,
    /// How often quoting stopped, by [`PullReason::ALL`].
    pulls: [u64; PullReason::ALL.len()],
    last_pull: Option<PullReason>,
    must_reset: bool,
    reset_in: Option<u64>,
    wants_disconnect: bool,
    has_session: bool,
    /// How often was rehearsed, and whether that is being done.
    rehearsals: usize,
    is_rehearsal: bool,
    /// A control stopped a quote of the decision under way.
    is_stopped: bool,
    counters: Counters,
}

impl Quoter {
    /// Nothing quoted: [`PullReason::NoSession`] until [`Quoter::on_logon`].
    pub fn new(config: QuoterConfig) -> Quoter {
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
            entries: [MassQuoteEntry::default(); ENTRIES_MAX],
            batched: 0,
            musts: 0,
            improve: vec![0; table.blocks()].into_boxed_slice(),
            open: vec![[0; 2]; quotes].into_boxed_slice(),
            open_all: [Exposure::default(); 2],
            room: [Exposure::default(); 2],
            room_all: 0,
            sizes: vec![config.size.0; quotes].into_boxed_slice(),
            since: vec![Nanos::ZERO; quotes].into_boxed_slice(),
            is_quoted: vec![true; quotes].into_boxed_slice(),
            markets: Markets::new(config.market, quotes),
            fades: vec![fade; quotes].into_boxed_slice(),
            next_fade: None,
            refused: vec![0; table.blocks()].into_boxed_slice(),
            next_retry: None,
            net: 0,
            paid: 0,
            beside: [Exposure::default(); 2],
            positions: vec![0; quotes].into_boxed_slice(),
            messages: Window::new(config.messages_max, config.window_ns),
            improvements: Window::new(config.improvements_max, config.window_ns),
            filled: Filled::default(),
            state: State::Halted(PullReason::NoSession),
            look: None,
            calm_at: Nanos::ZERO,
            heard: Nanos::ZERO,
            turned: Nanos::ZERO,
            changed: Nanos::ZERO,
            silence: Silence::new(config.silence),
            pulls: [0; PullReason::ALL.len()],
            last_pull: None,
            must_reset: false,
            reset_in: None,
            wants_disconnect: false,
            has_session: false,
            rehearsals: 0,
            is_rehearsal: false,
            is_stopped: false,
            counters: Counters::default(),
            table,
        };
        (0..quotes).for_each(|quote| quoter.limit(quote));
        quoter
    }

    // ---- what the market does ---------------------------------------------------------------------------------

    /// The underlying's book changed: quotes that must move or may be improved are sent, or all of them pulled.
    #[inline]
    pub fn on_underlying(&mut self, now: Nanos, update: &BookUpdate, sink: &mut impl QuoteSink) {
        let cause = Cause {
            venue: update.venue,
            seq: update.seq,
            recv_ts: update.recv_ts,
        };
        let half_tick = match self.judge(update) {
            Ok(half_tick) => half_tick,
            Err(reason) => return self.distrust(now, reason, cause, sink),
        };
        let before = self.look.replace(Look { half_tick, cause });
        let moved = before.map_or(0, |look| look.half_tick.abs_diff(half_tick));
        if moved > self.config.jump_half_ticks.into() {
            return self.distrust(now, PullReason::Jump, cause, sink);
        }
        if let State::Halted(reason) = self.state
            && reason.is_passing()
            && now >= self.calm_at
        {
            self.state = State::Quoting;
        }
        self.decide(now, 0..self.table.blocks(), sink);
    }

    /// The price of the underlying, or why it is not to be trusted.
    #[inline]
    fn judge(&self, update: &BookUpdate) -> Result<i64, PullReason> {
        half_tick(update, self.config.underlying_tick, self.config.spread_max_ticks)
    }

    #[cold]
    fn distrust(&mut self, now: Nanos, reason: PullReason, cause: Cause, sink: &mut impl QuoteSink) {
        self.calm_at = now.after(self.config.calm_ns);
        self.look = self.look.map(|look| Look { cause, ..look });
        if reason != PullReason::Jump && reason != PullReason::NoRow {
            // What comes next is compared with nothing.
            self.look = None;
        }
        self.pull_for(now, reason, cause, sink);
    }

    /// A packet of the underlying's market data was received, whatever it holds: its channel is not silent.
    #[inline]
    pub fn on_packet(&mut self, now: Nanos) {
        self.silence.on_packet(now);
    }

    /// The market data changed the underlying's book.
    #[inline]
    pub fn on_change(&mut self, now: Nanos) {
        self.changed = now;
    }

    /// A turn of the loop begins, before anything else is done in it. One that comes too late after the turn before pulls everything, as
    /// does market data that is silent: what is quoted by may be long past. Either passes by itself. How long the loop stood still,
    /// in nanoseconds, if it was too long; what waits in the sockets then is older than it seems, see [`Quoter::on_backlog`].
    #[inline]
    pub fn on_turn(&mut self, now: Nanos, sink: &mut impl QuoteSink) -> Option<u64> {
        let before = core::mem::replace(&mut self.turned, now);
        let stood = now.since(before);
        if self.config.stall_ns > 0 && stood > self.config.stall_ns && before != Nanos::ZERO {
            // Nobody listened meanwhile: that nothing was heard says nothing of the venue.
            self.silence.restart(now);
            self.changed = now;
            self.distrust(now, PullReason::Stall, self.last_cause(), sink);
            return Some(stood);
        }
        let underlying_max = self.config.underlying_silence_ns;
        if self.silence.is_silent(now) {
            self.distrust(now, PullReason::Silence, self.last_cause(), sink);
        } else if underlying_max > 0
            && self.changed != Nanos::ZERO
            && now.since(self.changed) > underlying_max
        {
            self.distrust(now, PullReason::SilentUnderlying, self.last_cause(), sink);
        }
        None
    }

    /// After a stall, packets of the meantime still wait to be read: nothing is quoted by them.
    pub fn on_backlog(&mut self, now: Nanos) {
        self.calm_at = self.calm_at.max(now.after(self.config.calm_ns));
    }

    /// How long market data may be silent now, in nanoseconds; `None` for any time.
    pub fn silence_max_ns(&self) -> Option<u64> {
        self.silence.limit_ns()
    }

    /// The market of an option changed: best prices of *others* ([`Quoter::is_own`]) by side, and whether its book is to be trusted. With
    /// [`QuoterConfig::market`], a quote that does not go with it is taken away.
    #[inline]
    pub fn on_market(
        &mut self,
        now: Nanos,
        quote: u16,
        is_live: bool,
        best: [Option<Price>; 2],
        sink: &mut impl QuoteSink,
    ) {
        let at = usize::from(quote);
        if !self.markets.is_on() || at >= self.open.len() {
            return;
        }
        self.markets.learn(at, is_live, best, self.config.option_tick);
        let (State::Quoting, Some(look)) = (self.state, self.look) else {
            return;
        };
        let row = self.ladder.as_ref().and_then(|ladder| ladder.row(look.half_tick));
        let Some(wanted) = row.map(|row| (row.bids[at], row.asks[at])) else {
            return;
        };
        if !self.markets.is_outside(at, wanted) {
            return;
        }
        self.markets.see(at);
        if !self.markets.is_off(at) && self.is_quoted[at] {
            self.pull_option(now, at, wanted);
            self.decide(now, at / BLOCK..at / BLOCK + 1, sink);
        }
    }

    /// Whether a level of an option's book is a quote of ours, and nobody else's: its price is one that is live or was told within the
    /// last second, and it is no larger. The book may show a quote of ours some time after it was replaced.
    #[inline]
    pub fn is_own(&self, now: Nanos, quote: u16, side: Side, (price, qty): (Price, Volume)) -> bool {
        let at = usize::from(quote);
        let tick = self.config.option_tick.raw().max(1);
        let Some(open) = self.open.get(at).filter(|_| price.raw() % tick == 0) else {
            return false;
        };
        let Ok(ticks) = u16::try_from(price.raw() / tick) else {
            return false;
        };
        let live = match side {
            Side::Bid => self.table.live_bids[at],
            Side::Ask => self.table.live_asks[at],
        };
        (live == ticks && qty.0 <= u64::from(open[side as usize]))
            || self.markets.was_told(now, at, side, (ticks, qty))
    }

    /// Takes an option out until its quote and its market go together again.
    #[cold]
    fn pull_option(&mut self, now: Nanos, at: usize, wanted: (u16, u16)) {
        let why = self.markets.pull(now, at, wanted);
        self.counters.bump(why.counter());
        self.limit(at);
    }

    /// Pulls the quotes of a block that do not go with their markets.
    #[inline]
    fn heed_markets(&mut self, now: Nanos, row: &Row<'_>, block: usize) {
        if !self.markets.is_on() || self.is_rehearsal {
            return;
        }
        let outside = self.markets.look(row, block);
        if outside == 0 {
            return;
        }
        for at in places(block, outside) {
            if self.is_quoted.get(at).copied().unwrap_or(false) {
                self.pull_option(now, at, (row.bids[at], row.asks[at]));
            }
        }
    }

    /// A newer ladder: quotes follow it at once. The one before is given back, to be filled again.
    pub fn replace_ladder(
        &mut self,
        now: Nanos,
        ladder: Box<Ladder>,
        sink: &mut impl QuoteSink,
    ) -> Option<Box<Ladder>> {
        if ladder.quotes() != usize::from(self.config.quotes) {
            // It is not of these quotes.
            return Some(ladder);
        }
        let before = self.ladder.replace(ladder);
        self.decide(now, 0..self.table.blocks(), sink);
        before
    }

    /// Goes through what half a tick of the underlying would cause, up to the encoded bytes, and forgets it: nothing is sent, charged
    /// or changed. For a loop that has nothing else to do: what has not run for a millisecond is in no near cache and no branch
    /// predictor, which makes the next tick some microseconds longer. One block of 64 quotes a call, up and down in turns.
    pub fn rehearse(&mut self, now: Nanos, sink: &mut impl QuoteSink) {
        let (State::Quoting, Some(look)) = (self.state, self.look) else {
            return;
        };
        self.rehearsals = self.rehearsals.wrapping_add(1);
        let by = if self.rehearsals.is_multiple_of(2) { 1 } else { -1 };
        let block = self.rehearsals / 2 % self.table.blocks();
        self.measure_room();
        let ladder = self.ladder.take();
        if let Some(row) = ladder.as_ref().and_then(|ladder| ladder.row(look.half_tick + by)) {
            self.is_rehearsal = true;
            let _ = self.decide_by(now, &row, block..block + 1, &look.cause, sink);
            self.is_rehearsal = false;
            (self.batched, self.musts) = (0, 0);
        }
        self.ladder = ladder;
    }

    // ---- deciding ---------------------------------------------------------------------------------------------

    /// Tells the venue what differs within some blocks.
    #[inline]
    fn decide(&mut self, now: Nanos, blocks: core::ops::Range<usize>, sink: &mut impl QuoteSink) {
        let (State::Quoting, Some(look)) = (self.state, self.look) else {
            return;
        };
        self.measure_room();
        // Taken out for as long as a row is borrowed from it.
        let ladder = self.ladder.take();
        let decided = match ladder.as_ref().and_then(|ladder| ladder.row(look.half_tick)) {
            Some(row) => self.decide_by(now, &row, blocks, &look.cause, sink),
            None => Err(PullReason::NoRow),
        };
        self.ladder = ladder;
        let decided = match core::mem::take(&mut self.is_stopped) {
            true => Err(PullReason::Control),
            false => decided,
        };
        if let Err(reason) = decided {
            (self.batched, self.musts) = (0, 0);
            if reason == PullReason::NoRow {
                self.calm_at = now.after(self.config.calm_ns);
            }
            self.pull_for(now, reason, look.cause, sink);
        }
    }

    #[inline]
    fn decide_by(
        &mut self,
        now: Nanos,
        row: &Row<'_>,
        blocks: core::ops::Range<usize>,
        cause: &Cause,
        sink: &mut impl QuoteSink,
    ) -> Result<(), PullReason> {
        let mut improves = false;
        for block in blocks.clone() {
            self.heed_markets(now, row, block);
            let found = self.table.compare(row, block);
            let improve = found.changed & !found.exposed;
            self.improve[block] = improve;
            improves |= improve != 0;
            let mut left = found.exposed;
            while left != 0 {
                left = self.batch(row, block, left);
                self.musts = self.batched;
                if self.batched == self.entries_max() && !self.send(now, cause, sink) {
                    return Err(PullReason::Rate);
                }
            }
        }
        // The last message of those that must move takes improvements along.
        if improves {
            for block in blocks {
                let mut left = self.worth(now, row, block);
                while left != 0 {
                    left = self.batch(row, block, left);
                    let must = self.musts > 0;
                    if self.batched == self.entries_max() && !self.send(now, cause, sink) {
                        return if must { Err(PullReason::Rate) } else { Ok(()) };
                    }
                }
            }
        }
        let must = self.musts > 0;
        if !self.send(now, cause, sink) && must {
            return Err(PullReason::Rate);
        }
        Ok(())
    }

    fn entries_max(&self) -> usize {
        usize::from(self.config.entries_max).clamp(1, ENTRIES_MAX)
    }

    /// The improvements of a block that are worth a message.
    #[inline]
    fn worth(&self, now: Nanos, row: &Row<'_>, block: usize) -> u64 {
        let improve = self.improve[block];
        if self.config.trigger_ticks <= 1 && self.config.life_min_ns == 0 {
            // Any is.
            return improve;
        }
        places(block, improve)
            .filter(|quote| self.is_worth_it(now, row, *quote))
            .fold(0, |worth, quote| worth | 1 << (quote % BLOCK))
    }

    /// Whether an improvement is large enough, and the quote old enough. A side that is not quoted yet is always worth it.
    #[inline]
    fn is_worth_it(&self, now: Nanos, row: &Row<'_>, quote: usize) -> bool {
        let (bid, ask) = self.table.wanted(row, quote);
        let live = (self.table.live_bids[quote], self.table.live_asks[quote]);
        let gain = bid.saturating_sub(live.0).max(live.1.saturating_sub(ask));
        let is_new = (bid != NO_BID && live.0 == NO_BID) || (ask != NO_ASK && live.1 == NO_ASK);
        is_new
            || gain >= self.config.trigger_ticks
                && (self.config.life_min_ns == 0 || now.since(self.since[quote]) >= self.config.life_min_ns)
    }

    /// Appends quotes of a block to the message being filled until it is full; those that are left.
    #[inline]
    fn batch(&mut self, row: &Row<'_>, block: usize, mut quotes: u64) -> u64 {
        let most = self.entries_max();
        let mut count = self.batched;
        while quotes != 0 && count < most {
            let quote = block * BLOCK + quotes.trailing_zeros() as usize;
            quotes &= quotes - 1;
            let (bid, ask) = self.table.wanted(row, quote);
            let size = self.sizes[quote];
            self.entries[count] = MassQuoteEntry {
                quote: quote as u16,
                bid_ticks: bid,
                ask_ticks: ask,
                bid_qty: Qty(if bid != NO_BID { size } else { 0 }),
                ask_qty: Qty(if ask != NO_ASK { size } else { 0 }),
            };
            count += 1;
        }
        self.batched = count;
        quotes
    }

    /// Takes room for the message being filled: at once where there is room for all of it. What may trade of it if it leaves.
    #[inline]
    fn fit(&mut self) -> [Exposure; 2] {
        let mut sum = [Exposure::default(); 2];
        for entry in &self.entries[..self.batched] {
            for (sum, more) in sum.iter_mut().zip(exposures_of(entry)) {
                sum.add(more);
            }
        }
        let [buys, sells] = sum;
        let is_free = self.room[0].has_room_for(buys)
            && self.room[1].has_room_for(sells)
            && buys.contracts + sells.contracts <= self.room_all;
        if !is_free && !self.is_rehearsal {
            return self.squeeze_all();
        }
        if is_free {
            self.occupy(0, buys);
            self.occupy(1, sells);
        }
        sum
    }

    /// The same entry by entry: one that must move loses the sides there is no room for, an improvement is left out.
    #[cold]
    fn squeeze_all(&mut self) -> [Exposure; 2] {
        let count = core::mem::take(&mut self.batched);
        let mut sum = [Exposure::default(); 2];
        for at in 0..count {
            let mut entry = self.entries[at];
            if !self.squeeze(&mut entry, at < self.musts) {
                continue;
            }
            for (sum, more) in sum.iter_mut().zip(exposures_of(&entry)) {
                sum.add(more);
            }
            self.entries[self.batched] = entry;
            self.batched += 1;
        }
        sum
    }

    /// Takes room for one side.
    #[inline]
    fn occupy(&mut self, side: usize, more: Exposure) {
        self.room[side].remove(more);
        self.room_all -= more.contracts;
    }

    /// Takes room for an entry, without the sides there is none for if it must move; `false` if the quote is to be left as it is.
    fn squeeze(&mut self, entry: &mut MassQuoteEntry, must: bool) -> bool {
        let wanted = exposures_of(entry);
        for (side, more) in wanted.into_iter().enumerate() {
            if self.room[side].has_room_for(more) && more.contracts <= self.room_all {
                self.occupy(side, more);
                continue;
            }
            self.counters.bump(Counter::QuotesCapped);
            if !must {
                if side == 1 {
                    // As if nothing had been taken for the bid.
                    self.room[0].add(wanted[0]);
                    self.room_all += wanted[0].contracts;
                }
                return false;
            }
            match side {
                0 => (entry.bid_ticks, entry.bid_qty) = (NO_BID, Qty(0)),
                _ => (entry.ask_ticks, entry.ask_qty) = (NO_ASK, Qty(0)),
            }
        }
        true
    }

    /// Works out how much more may be quoted, if everything traded.
    #[inline]
    fn measure_room(&mut self) {
        for side in 0..2 {
            let mut room = self.room_of(side);
            room.contracts = room.contracts.saturating_sub(self.beside[side].contracts);
            room.premium = room.premium.saturating_sub(self.beside[side].premium);
            self.room[side] = room;
        }
        let [bids, asks] = self.open_all;
        self.room_all = self
            .config
            .quoted_max
            .saturating_sub(bids.contracts)
            .saturating_sub(asks.contracts);
    }

    /// How much more may trade on a side if all quotes did; orders beside them are not in it.
    #[inline]
    fn room_of(&self, side: usize) -> Exposure {
        let room = |limit: u64, held: i64, open: u64| {
            // What is held the other way makes room.
            limit
                .saturating_add_signed(held.saturating_neg())
                .saturating_sub(open)
        };
        let (contracts_max, net, paid) = match side {
            0 => (self.config.long_max, self.net, self.paid),
            _ => (self.config.short_max, -self.net, -self.paid),
        };
        let open = self.open_all[side];
        Exposure {
            contracts: room(contracts_max, net, open.contracts),
            premium: room(self.config.premium_max[side], paid, open.premium),
        }
    }

    /// Sends the message being filled, which is empty then; `false` if it may not or could not leave. One without entries need not.
    fn send(&mut self, now: Nanos, cause: &Cause, sink: &mut impl QuoteSink) -> bool {
        let open = self.fit();
        let must = core::mem::take(&mut self.musts) > 0;
        let count = core::mem::take(&mut self.batched);
        if count == 0 {
            return true;
        }
        if self.is_rehearsal {
            sink.rehearse(&MassQuote {
                id: self.flights.next_id(),
                cause: *cause,
                reset: self.must_reset,
                entries: &self.entries[..count],
            });
            return true;
        }
        // A rate is only charged where a place is free, and the narrower one first.
        let may = self.flights.reserve().is_some()
            && (must || self.improvements.take(now))
            && self.messages.take(now);
        let id = self.flights.next_id();
        let message = MassQuote {
            id,
            cause: *cause,
            reset: self.must_reset,
            entries: &self.entries[..count],
        };
        if may && let Err(reason) = sink.admit(now, &message) {
            self.is_stopped = reason != RiskReject::InstrumentRate;
            self.counters.bump(Counter::RiskRejects);
            self.counters.bump(reason.counter());
            return false;
        }
        if !may || !sink.mass_quote(&message) {
            self.counters.bump(Counter::QuotesThrottled);
            return false;
        }
        if core::mem::take(&mut self.must_reset) {
            self.reset_in = Some(id);
        }
        if let Some(flight) = self.flights.reserve() {
            flight.entries[..count].copy_from_slice(&self.entries[..count]);
        }
        self.flights.depart(now, count);
        self.table.set_all_in_flight(&self.entries[..count]);
        if self.markets.is_on() {
            for told in &self.entries[..count] {
                self.markets.tell(now, told);
            }
        }
        if self.config.life_min_ns > 0 {
            for told in &self.entries[..count] {
                self.since[usize::from(told.quote)] = now;
            }
        }
        for (all, more) in self.open_all.iter_mut().zip(open) {
            all.add(more);
        }
        self.counters.bump(Counter::MassQuotesSent);
        self.counters.add(Counter::QuoteEntriesSent, count as u64);
        true
    }

    // ---- what the venue answers -------------------------------------------------------------------------------

    /// A mass quote was answered: accepted, but for the quotes in `rejected`. `None` if all of it was rejected.
    pub fn on_answer(&mut self, now: Nanos, id: u64, rejected: Option<&[u16]>, sink: &mut impl QuoteSink) {
        let Some(flight) = self.flights.arrive(id) else {
            return self.unmatched(now, sink);
        };
        let (mut first, mut end) = (usize::MAX, 0);
        let (mut is_stuck, mut is_live) = (false, false);
        for told in &flight.entries[..usize::from(flight.len)] {
            let (quote, qty) = (usize::from(told.quote), [told.bid_qty.0, told.ask_qty.0]);
            self.table.set_in_flight(quote, false);
            (first, end) = (first.min(quote / BLOCK), end.max(quote / BLOCK + 1));
            if rejected.is_some_and(|rejected| !rejected.contains(&told.quote)) {
                self.release_live(quote, self.open[quote]);
                self.open[quote] = qty;
                (self.table.live_bids[quote], self.table.live_asks[quote]) = (told.bid_ticks, told.ask_ticks);
                is_live |= qty != [0; 2];
                continue;
            }
            // The quote before it stays: it is taken away, and if that is what was refused, all of them are.
            self.release(exposures(qty, (told.bid_ticks, told.ask_ticks)));
            is_stuck |= qty == [0; 2];
            self.refuse(now, quote);
        }
        if self.reset_in == Some(id) {
            self.reset_in = None;
            self.must_reset = rejected.is_none();
        }
        if let (State::Halted(reason), true) = (self.state, is_live) {
            // It ended the venue's protection and tripped it again while it was on its way.
            return self.try_cancel(now, reason, now, self.last_cause(), sink);
        }
        if is_stuck && self.state == State::Quoting {
            return self.pull_for(now, PullReason::Rejected, self.last_cause(), sink);
        }
        self.decide(now, first..end, sink);
    }

    /// A quote that is two orders ([`QuoteOrders`]) was answered: what is live of it.
    pub fn on_orders(&mut self, now: Nanos, live: &QuoteLive, sink: &mut impl QuoteSink) {
        let Some(flight) = self.flights.arrive(live.id) else {
            return self.unmatched(now, sink);
        };
        let (at, told) = (usize::from(live.quote), &flight.entries[0]);
        if at >= self.open.len() || told.quote != live.quote {
            return self.unmatched(now, sink);
        }
        self.table.set_in_flight(at, false);
        let qty = [told.bid_qty.0, told.ask_qty.0];
        self.release(exposures(qty, (told.bid_ticks, told.ask_ticks)));
        self.release_live(at, self.open[at]);
        self.open[at] = live.open;
        (self.table.live_bids[at], self.table.live_asks[at]) = live.ticks;
        for (all, more) in self.open_all.iter_mut().zip(exposures(live.open, live.ticks)) {
            all.add(more);
        }
        if live.is_refused {
            self.refuse(now, at);
            // A side that was to go and is still there.
            let is_stuck = (0..2).any(|side| qty[side] == 0 && live.open[side] > 0);
            if is_stuck && self.state == State::Quoting {
                return self.pull_for(now, PullReason::Rejected, self.last_cause(), sink);
            }
        }
        self.decide(now, at / BLOCK..at / BLOCK + 1, sink);
    }

    /// A quote was refused: it is taken away, and tried again later.
    fn refuse(&mut self, now: Nanos, quote: usize) {
        self.counters.bump(Counter::QuoteEntriesRejected);
        self.is_quoted[quote] = false;
        self.refused[quote / BLOCK] |= 1 << (quote % BLOCK);
        self.limit(quote);
        if self.config.retry_ns > 0 && self.next_retry.is_none() {
            self.next_retry = Some(now.after(self.config.retry_ns));
        }
    }

    /// Every quote was cancelled, as asked for by [`QuoteSink::cancel_all`]; `false` if the venue refused to.
    pub fn on_cancelled(&mut self, now: Nanos, id: u64, is_done: bool, sink: &mut impl QuoteSink) {
        let State::Pulling(reason, Some(asked), _) = self.state else {
            return self.unmatched(now, sink);
        };
        if asked != id {
            return self.unmatched(now, sink);
        }
        if !is_done {
            self.wants_disconnect = true;
            return;
        }
        self.forget_all();
        self.state = State::Halted(reason);
    }

    /// The venue took sides of a quote away without being asked: the instrument is halted, its session is over, it would have traded
    /// with an order of ours.
    pub fn on_removed(&mut self, quote: u16, sides: [bool; 2]) {
        self.on_left(quote, sides.map(|is_gone| if is_gone { 0 } else { u32::MAX }));
    }

    /// The same in part: so many contracts are left of each side, if there were more.
    pub fn on_left(&mut self, quote: u16, left: [u32; 2]) {
        let at = usize::from(quote);
        let Some(&before) = self.open.get(at) else {
            return self.counters.bump(Counter::QuoteAnswersUnmatched);
        };
        let gone = [0, 1].map(|side| before[side].saturating_sub(left[side]));
        self.release_live(at, gone);
        self.open[at] = [0, 1].map(|side| before[side] - gone[side]);
        if left[0] == 0 {
            self.table.live_bids[at] = NO_BID;
        }
        if left[1] == 0 {
            self.table.live_asks[at] = NO_ASK;
        }
    }

    /// The venue's protection took every quote away; mass quotes are rejected until one that resets it, which
    /// [`Quoter::resume`] causes. What is under way is still answered.
    pub fn on_protected(&mut self) {
        self.counters.bump(Counter::QuotePulls);
        for quote in 0..self.config.quotes {
            self.on_removed(quote, [true; 2]);
        }
        self.must_reset = true;
        // A pull under way is answered all the same, and its reason is the stronger one.
        if self.state == State::Quoting {
            self.note_pull(PullReason::VenueProtection);
            self.state = State::Halted(PullReason::VenueProtection);
        }
    }

    /// An execution against a quote. One that fits nothing quoted means that we do not know what is live: everything is pulled.
    pub fn on_fill(&mut self, now: Nanos, fill: &Fill, sink: &mut impl QuoteSink) {
        self.fill(now, fill, false, sink);
    }

    /// An execution of an order that is a side of a quote. One side's order may rest, and trade, before the other side's is answered:
    /// then it is of what is under way.
    pub fn on_order_fill(&mut self, now: Nanos, fill: &Fill, sink: &mut impl QuoteSink) {
        let is_under_way = fill.quote < self.config.quotes && self.is_in_flight(fill.quote);
        self.fill(now, fill, is_under_way, sink);
    }

    #[inline]
    fn fill(&mut self, now: Nanos, fill: &Fill, is_under_way: bool, sink: &mut impl QuoteSink) {
        let (at, side) = (usize::from(fill.quote), fill.side as usize);
        if at >= self.open.len() {
            return self.unmatched(now, sink);
        }
        let signed = fill.signed();
        self.add_net(signed, fill.paid());
        self.positions[at] += signed;
        self.counters.bump(Counter::Fills);
        let traded = self.open[at][side].min(fill.qty.0);
        let mut gone = [0; 2];
        gone[side] = traded;
        self.release_live(at, gone);
        self.open[at][side] -= traded;
        if self.open[at][side] == 0 {
            if side == 0 {
                self.table.live_bids[at] = NO_BID;
            } else {
                self.table.live_asks[at] = NO_ASK;
            }
        }
        self.fade(now, fill);
        if traded < fill.qty.0 && !is_under_way {
            return self.unmatched(now, sink);
        }
        if self.count(now, fill, signed) {
            return self.pull_for(now, PullReason::Protection, self.last_cause(), sink);
        }
        self.decide(now, at / BLOCK..at / BLOCK + 1, sink);
    }

    /// An execution of a session that was lost, heard of in the next one: it counts, and is of no quote that we have.
    pub fn on_late_fill(&mut self, fill: &Fill) {
        let signed = fill.signed();
        self.add_net(signed, fill.paid());
        self.counters.bump(Counter::Fills);
        match self.positions.get_mut(usize::from(fill.quote)) {
            Some(position) => *position += signed,
            None => self.counters.bump(Counter::QuoteAnswersUnmatched),
        }
    }

    /// An execution that does not count after all: the venue took it back, maybe long after its quote was gone. It is held no more, and
    /// everything is pulled until [`Quoter::resume`].
    pub fn on_broken(&mut self, now: Nanos, fill: &Fill, sink: &mut impl QuoteSink) {
        let signed = fill.signed();
        self.add_net(-signed, -fill.paid());
        self.counters.bump(Counter::TradesBroken);
        match self.positions.get_mut(usize::from(fill.quote)) {
            Some(position) => *position -= signed,
            None => self.counters.bump(Counter::QuoteAnswersUnmatched),
        }
        self.pull_on_break(now, sink);
    }

    /// Contracts of options that were bought (or sold, below 0), and the premium paid for them (or received), in ticks times contracts:
    /// by an electronic eye for instance. They count towards the limits on what is held.
    pub fn add_net(&mut self, contracts: i64, paid: i64) {
        self.net = self.net.saturating_add(contracts);
        self.paid = self.paid.saturating_add(paid);
    }

    /// An execution of an order beside the quotes, of an electronic eye for instance: it counts towards what is held, and towards our own
    /// protection as one of a quote does.
    pub fn on_fill_beside(&mut self, now: Nanos, fill: &Fill, sink: &mut impl QuoteSink) {
        let signed = fill.signed();
        self.add_net(signed, fill.paid());
        if self.count(now, fill, signed) {
            self.pull_for(now, PullReason::Protection, self.last_cause(), sink);
        }
    }

    /// So many orders left by the session beside the quotes: they count towards the rate of messages.
    #[inline]
    pub fn on_sent_beside(&mut self, now: Nanos, orders: u32) {
        for _ in 0..orders {
            self.messages.charge(now);
        }
    }

    /// Whether an order beside the quotes may leave, the one of this number since [`Quoter::on_sent_beside`]: quotes go out, and the rate of
    /// messages has room for it.
    #[inline]
    pub(crate) fn admits_beside(&self, now: Nanos, nth: u32) -> bool {
        self.state == State::Quoting && self.messages.has_room(now, nth)
    }

    /// How much more may trade on a side by this quoter's limits if all quotes did; orders beside them are not in it.
    #[inline]
    pub(crate) fn room_beside(&self, side: Side) -> Exposure {
        self.room_of(side as usize)
    }

    /// Orders in options that are under way beside the quotes, by side: they count as if they had traded.
    #[inline]
    pub fn set_beside(&mut self, open: [Exposure; 2]) {
        self.beside = open;
    }

    /// What quotes of an option have traded before, bought less sold, and what was paid for it, in ticks times contracts: of a process
    /// before this one. Nothing happens for an option that there is none of.
    pub fn hold(&mut self, quote: u16, contracts: i64, paid: i64) {
        if let Some(position) = self.positions.get_mut(usize::from(quote)) {
            *position = position.saturating_add(contracts);
            self.add_net(contracts, paid);
        }
    }

    /// The session is logged on; without quotes, which the venue cancelled when it was lost.
    pub fn on_logon(&mut self, now: Nanos) {
        (self.has_session, self.wants_disconnect) = (true, false);
        self.heard = now;
        if self.state == State::Halted(PullReason::NoSession) {
            self.state = State::Quoting;
        }
    }

    /// The session is lost, and with it every quote.
    pub fn on_disconnect(&mut self) {
        (self.has_session, self.wants_disconnect) = (false, false);
        // Whether a reset arrived is not known: it is asked for again.
        self.must_reset |= self.reset_in.take().is_some();
        self.forget_all();
        if self.state == State::Quoting {
            self.note_pull(PullReason::NoSession);
        }
        self.state = match self.state {
            State::Quoting => State::Halted(PullReason::NoSession),
            // What passes by itself would, without a session.
            State::Pulling(reason, ..) | State::Halted(reason) if reason.is_passing() => {
                State::Halted(PullReason::NoSession)
            }
            State::Pulling(reason, ..) | State::Halted(reason) => State::Halted(reason),
        };
    }

    // ---- time, and the operator -------------------------------------------------------------------------------

    /// When [`Quoter::handle_timeout`] has something to do.
    pub fn poll_timeout(&mut self) -> Option<Nanos> {
        let answer = self
            .flights
            .oldest_sent()
            .map(|sent| sent.after(self.config.answer_max_ns));
        let pull = match self.state {
            State::Pulling(_, None, since) => Some(since),
            State::Pulling(_, Some(_), since) if !self.wants_disconnect => {
                Some(since.after(self.config.answer_max_ns))
            }
            _ => None,
        };
        let heartbeat = (self.config.heartbeat_ns > 0 && self.state == State::Quoting)
            .then(|| self.heard.after(self.config.heartbeat_ns));
        let answer = answer.filter(|_| self.state == State::Quoting);
        let market = self.markets.due().filter(|_| self.state == State::Quoting);
        [answer, pull, heartbeat, self.next_fade, self.next_retry, market]
            .into_iter()
            .flatten()
            .min()
    }

    /// Looks for answers that did not come, an operator who was not heard, fills to forget.
    pub fn handle_timeout(&mut self, now: Nanos, sink: &mut impl QuoteSink) {
        let cause = self.last_cause();
        let late = |since: Nanos, most: u64| now.since(since) > most;
        match self.state {
            State::Pulling(reason, None, since) => self.try_cancel(now, reason, since, cause, sink),
            State::Pulling(_, Some(_), since) if late(since, self.config.answer_max_ns) => {
                self.wants_disconnect = true;
            }
            State::Quoting => {
                let sent = self.flights.oldest_sent();
                if sent.is_some_and(|sent| late(sent, self.config.answer_max_ns)) {
                    self.pull_for(now, PullReason::LateAnswer, cause, sink);
                } else if self.config.heartbeat_ns > 0 && late(self.heard, self.config.heartbeat_ns) {
                    self.pull_for(now, PullReason::Heartbeat, cause, sink);
                }
            }
            _ => {}
        }
        let fades = self.next_fade.is_some_and(|due| due <= now);
        if fades {
            self.end_fades(now);
        }
        let retries = self.next_retry.is_some_and(|due| due <= now);
        if retries {
            self.next_retry = None;
            self.retry();
        }
        let releases = self.state == State::Quoting && self.markets.due().is_some_and(|due| due <= now);
        if releases {
            self.release_options(now);
        }
        if fades || retries || releases {
            self.decide(now, 0..self.table.blocks(), sink);
        }
    }

    /// Options whose quotes have gone with their markets for long enough are quoted again.
    #[cold]
    fn release_options(&mut self, now: Nanos) {
        let ladder = self.ladder.take();
        let row = |look: Look| ladder.as_ref().and_then(|ladder| ladder.row(look.half_tick));
        if let Some(row) = self.look.and_then(row) {
            for block in 0..self.table.blocks() {
                // As they are now: nothing may have changed since the last look.
                let _ = self.markets.look(&row, block);
                for at in places(block, self.markets.release(block)) {
                    self.limit(at);
                }
            }
        }
        self.ladder = ladder;
        self.markets.looked(now);
    }

    /// What the venue rejected is quoted again.
    fn retry(&mut self) {
        for block in 0..self.refused.len() {
            for quote in places(block, core::mem::take(&mut self.refused[block])) {
                self.is_quoted[quote] = true;
                self.limit(quote);
            }
        }
    }

    /// The operator's client is there.
    pub fn on_heartbeat(&mut self, now: Nanos) {
        self.heard = now;
    }

    /// Takes every quote away, until [`Quoter::resume`].
    pub fn pull(&mut self, now: Nanos, sink: &mut impl QuoteSink) {
        self.pull_for(now, PullReason::Operator, self.last_cause(), sink);
    }

    /// The same because more was lost than may be: the owner knows.
    pub fn pull_on_loss(&mut self, now: Nanos, sink: &mut impl QuoteSink) {
        self.pull_for(now, PullReason::Loss, self.last_cause(), sink);
    }

    /// The same because one of the controls stopped the strategy: the owner knows which.
    pub fn pull_on_control(&mut self, now: Nanos, sink: &mut impl QuoteSink) {
        self.pull_for(now, PullReason::Control, self.last_cause(), sink);
    }

    /// The same because the venue took a trade back that was no quote's: the owner knows.
    pub fn pull_on_break(&mut self, now: Nanos, sink: &mut impl QuoteSink) {
        self.pull_for(now, PullReason::BrokenTrade, self.last_cause(), sink);
    }

    /// Quotes again after a pull that does not pass by itself. `false` while quotes are still being taken away, and when there is no
    /// session: then as soon as there is one.
    pub fn resume(&mut self, now: Nanos) -> bool {
        self.heard = now;
        match self.state {
            State::Pulling(..) => false,
            State::Halted(_) => {
                self.filled = Filled::default();
                self.state = if self.has_session {
                    State::Quoting
                } else {
                    State::Halted(PullReason::NoSession)
                };
                self.has_session
            }
            State::Quoting => true,
        }
    }

    /// Whether an option is quoted; all are at first. One that the venue rejected is not any more.
    pub fn set_quoted(&mut self, now: Nanos, quote: u16, is_quoted: bool, sink: &mut impl QuoteSink) {
        let at = usize::from(quote);
        if let Some(known) = self.is_quoted.get_mut(at) {
            *known = is_quoted;
            self.refused[at / BLOCK] &= !(1 << (at % BLOCK));
            self.limit(at);
            self.decide(now, at / BLOCK..at / BLOCK + 1, sink);
        }
    }

    /// Contracts on each side of an option's quote, from its next change on.
    pub fn set_size(&mut self, quote: u16, size: Qty) {
        if let Some(old) = self.sizes.get_mut(usize::from(quote)) {
            *old = size.0;
        }
    }

    /// The session must be ended, so that the venue cancels what it did not when asked to.
    pub fn wants_disconnect(&self) -> bool {
        self.wants_disconnect
    }

    // ---- looking at it ----------------------------------------------------------------------------------------

    /// Whether quotes go out.
    pub fn state(&self) -> QuotingState {
        match self.state {
            State::Quoting => QuotingState::Quoting,
            State::Pulling(reason, ..) => QuotingState::Pulling(reason),
            State::Halted(reason) => QuotingState::Halted(reason),
        }
    }

    /// How often quoting stopped, by [`PullReason::ALL`]; where a reason that stays took the place of one that passes, both count.
    pub fn pulls(&self) -> &[u64] {
        &self.pulls
    }

    /// Why quoting stopped last.
    pub fn last_pull(&self) -> Option<PullReason> {
        self.last_pull
    }

    /// What the venue was last told of a quote and accepted, in ticks: [`NO_BID`] and [`NO_ASK`] where nothing is live.
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
        self.open[usize::from(quote)]
    }

    /// Contracts that may trade against all quotes, what is under way included, by side.
    pub fn open_all(&self) -> [u64; 2] {
        self.open_all.map(|open| open.contracts)
    }

    /// Premium of all of it at the quotes' prices, in ticks times contracts, by side.
    pub fn open_premium(&self) -> [u64; 2] {
        self.open_all.map(|open| open.premium)
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
        self.positions[usize::from(quote)]
    }

    /// Contracts held of all of them.
    pub fn net(&self) -> i64 {
        self.net
    }

    /// Premium paid for them, less what was received, in ticks times contracts.
    pub fn paid(&self) -> i64 {
        self.paid
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
        for (quote, open) in (0..).zip(&self.open) {
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

    // ---- parts ------------------------------------------------------------------------------------------------

    fn last_cause(&self) -> Cause {
        self.look.map_or_else(Cause::default, |look| look.cause)
    }

    fn release(&mut self, gone: [Exposure; 2]) {
        for (all, less) in self.open_all.iter_mut().zip(gone) {
            all.remove(less);
        }
    }

    /// Contracts of a live quote that cannot trade any more; before its prices change.
    fn release_live(&mut self, at: usize, gone: [u32; 2]) {
        let live = (self.table.live_bids[at], self.table.live_asks[at]);
        self.release(exposures(gone, live));
    }

    fn forget_all(&mut self) {
        self.table.clear();
        self.flights.clear();
        self.open.fill([0; 2]);
        self.open_all = [Exposure::default(); 2];
    }

    #[cold]
    fn unmatched(&mut self, now: Nanos, sink: &mut impl QuoteSink) {
        self.counters.bump(Counter::QuoteAnswersUnmatched);
        self.pull_for(now, PullReason::Unmatched, self.last_cause(), sink);
    }

    fn note_pull(&mut self, reason: PullReason) {
        self.pulls[reason as usize] += 1;
        self.last_pull = Some(reason);
    }

    #[cold]
    fn pull_for(&mut self, now: Nanos, reason: PullReason, cause: Cause, sink: &mut impl QuoteSink) {
        match self.state {
            State::Quoting => {
                self.counters.bump(Counter::QuotePulls);
                self.note_pull(reason);
                self.try_cancel(now, reason, now, cause, sink);
            }
            // A reason that stays replaces one that passes.
            State::Pulling(before, id, since) if before.is_passing() && !reason.is_passing() => {
                self.note_pull(reason);
                self.state = State::Pulling(reason, id, since);
            }
            State::Halted(before)
                if !reason.is_passing() && (before.is_passing() || before == PullReason::NoSession) =>
            {
                self.note_pull(reason);
                self.state = State::Halted(reason);
            }
            _ => {}
        }
    }

    fn try_cancel(
        &mut self,
        now: Nanos,
        reason: PullReason,
        since: Nanos,
        cause: Cause,
        sink: &mut impl QuoteSink,
    ) {
        let id = self.flights.number();
        let is_sent = sink.cancel_all(id, &cause);
        self.state = State::Pulling(reason, is_sent.then_some(id), if is_sent { now } else { since });
        // A session that takes nothing for so long is of no use.
        self.wants_disconnect |= !is_sent && now.since(since) > self.config.answer_max_ns;
    }

    /// Works out what a quote's sides may be at best.
    fn limit(&mut self, at: usize) {
        let fade = &self.fades[at];
        let (bid, ask) = if self.is_quoted[at] && !self.markets.is_off(at) {
            (fade.ticks[0], fade.ticks[1])
        } else {
            (NO_BID, NO_ASK)
        };
        (self.table.bid_caps[at], self.table.ask_floors[at]) = (bid, ask);
    }

    fn fade(&mut self, now: Nanos, fill: &Fill) {
        if self.config.fade_ns == 0 {
            return;
        }
        let (at, side) = (usize::from(fill.quote), fill.side as usize);
        let until = now.after(self.config.fade_ns);
        let fade = &mut self.fades[at];
        fade.until[side] = until;
        fade.ticks[side] = match fill.side {
            Side::Bid => fill.ticks.saturating_sub(self.config.fade_ticks),
            Side::Ask => fill.ticks.saturating_add(self.config.fade_ticks),
        };
        self.next_fade = Some(self.next_fade.map_or(until, |due| due.min(until)));
        self.limit(at);
    }

    fn end_fades(&mut self, now: Nanos) {
        let mut next: Option<Nanos> = None;
        for at in 0..self.fades.len() {
            let fade = &mut self.fades[at];
            let mut is_over = false;
            for (side, none) in [NO_ASK - 1, 1].into_iter().enumerate() {
                let until = fade.until[side];
                if until == Nanos::ZERO {
                    continue;
                }
                if until <= now {
                    (fade.until[side], fade.ticks[side]) = (Nanos::ZERO, none);
                    is_over = true;
                } else {
                    next = Some(next.map_or(until, |due| due.min(until)));
                }
            }
            if is_over {
                self.limit(at);
            }
        }
        self.next_fade = next;
    }

    /// Counts a fill; whether our own protection is reached.
    fn count(&mut self, now: Nanos, fill: &Fill, signed: i64) -> bool {
        let limits = self.config.protection;
        let filled = &mut self.filled;
        if filled
            .since
            .is_none_or(|since| now.since(since) > limits.window_ns)
        {
            *filled = Filled {
                since: Some(now),
                ..Filled::default()
            };
        }
        filled.fills = filled.fills.saturating_add(1);
        filled.contracts += u64::from(fill.qty.0);
        filled.delta_milli = filled
            .delta_milli
            .saturating_add(signed.saturating_mul(fill.delta_milli.into()));
        let reaches = |count: u64, limit: u64| limit > 0 && count >= limit;
        reaches(filled.fills.into(), limits.fills.into())
            || reaches(filled.contracts, limits.contracts)
            || reaches(filled.delta_milli.unsigned_abs(), limits.delta_milli)
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

/// Bid plus ask of an underlying in its ticks, or why they are not to be trusted.
#[inline]
pub(crate) fn half_tick(update: &BookUpdate, tick: Price, spread_max_ticks: u32) -> Result<i64, PullReason> {
    if update.state != BookState::Live {
        return Err(PullReason::StaleUnderlying);
    }
    let (Some((bid, _)), Some((ask, _))) = (update.best(Side::Bid), update.best(Side::Ask)) else {
        return Err(PullReason::CrossedUnderlying);
    };
    let tick = tick.raw().max(1);
    let (bid, ask) = (bid.raw() / tick, ask.raw() / tick);
    if bid >= ask {
        return Err(PullReason::CrossedUnderlying);
    }
    if ask.abs_diff(bid) > spread_max_ticks.into() {
        return Err(PullReason::WideUnderlying);
    }
    Ok(bid + ask)
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
