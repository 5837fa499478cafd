//! The run: market data, requests and reports in the order of their times.

mod accounts;
mod due;
mod entrant;
mod wire;

use std::collections::{BTreeMap, BTreeSet};

use tickwire_book::{Books, OrderView};
use tickwire_market::{
    BookUpdate, ClientOrderId, Counters, EventFlags, EventKind, Instrument, InstrumentId, MarketEvent, Nanos,
    OrderIntent, TradingStatus, Venue,
};
use tickwire_trading::strategy::{
    Conductor, ConductorConfig, Consolidated, Markets, NUMBERS, Note, Outcome, Strategy, share, whose,
};

use crate::orders::{KeptOrder, KeptOrders};
use crate::venue::{Said, SimVenue};
use crate::{Doubts, Fees, Fill, FillModel, LatencyConfig, Summary};
use accounts::Ledger;
use entrant::{Entered, Port};
use wire::Wire;

pub use entrant::Entrant;

/// How a backtest is run.
#[derive(Clone, Debug, Default)]
pub struct BacktestConfig {
    /// Sizes and limits of the strategy.
    pub conductor: ConductorConfig,
    /// How orders are filled.
    pub fill: FillModel,
    /// How long things take.
    pub latency: LatencyConfig,
    /// What the venue takes.
    pub fees: Fees,
    /// Of drawn latencies.
    pub seed: u64,
    /// By feed: whether changes of books are told at the end of a match event (CME, MOEX) rather than message
    /// by message. No request comes to the venue within one.
    pub is_grouped: Vec<bool>,
    /// By feed: whether it says no executions, so that what becomes less in its place was executed (Moscow's
    /// order log).
    pub less_is_executed: Vec<bool>,
}

/// A backtest: give it definitions and events of each feed in the order of the recording's time, then
/// [`Backtest::finish`] it.
#[derive(Debug)]
pub struct Backtest<S> {
    entered: Vec<Entered<S>>,
    /// The one whose callback runs, or ran last.
    running: usize,
    books: Books1,
    consolidated: Option<Consolidated>,
    bits: u32,
    wire: Wire,
    venue: SimVenue,
    /// Quotes of the mass quote that is being answered.
    refused: Vec<u64>,
    is_grouped: Vec<bool>,
    less_is_executed: Vec<bool>,
    /// By feed: whether a match event is being told, and of how many feeds it is.
    is_in_group: Vec<bool>,
    groups: u32,
    /// Whether the strategy hears later than the venue speaks.
    is_delayed: bool,
    rules: Rules,
    now: Nanos,
    first: Option<Nanos>,
    events: u64,
    has_started: bool,
    ledger: Ledger,
    /// Where somebody asked for them.
    orders: Option<KeptOrders>,
}

/// What the venue goes by.
#[derive(Debug)]
struct Rules {
    /// Whether a feed's venue, and an instrument, are said to trade.
    feeds_trade: Vec<bool>,
    halted: BTreeMap<InstrumentId, bool>,
    /// Steps of prices.
    defined: BTreeMap<InstrumentId, Instrument>,
}

/// Books of every feed; they have no text form.
struct Books1(Vec<Books>);

impl std::fmt::Debug for Books1 {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} feeds", self.0.len())
    }
}

/// One for each feed.
fn sized(mut of_feeds: Vec<bool>, feeds: usize) -> Vec<bool> {
    of_feeds.resize(feeds, false);
    of_feeds
}

impl<S: Strategy> Backtest<S> {
    /// A backtest of one strategy over the books of its feeds, which are empty;
    /// [`tickwire_book::BooksConfig::tracked`] where the strategy wants consolidated books, which go by the
    /// venues of these.
    pub fn new(strategy: S, books: Vec<Books>, config: BacktestConfig) -> Backtest<S> {
        let entrant = Entrant {
            strategy,
            conductor: config.conductor,
            hears: Vec::new(),
        };
        Backtest::of_several(vec![entrant], books, config)
    }

    /// The same of several, over one venue and one clock, each with orders, limits and positions of its own;
    /// limits over all, the kill switch and self-trade prevention are as live. `config.conductor` says how
    /// instruments are numbered.
    ///
    /// # Panics
    /// Without any.
    pub fn of_several(entrants: Vec<Entrant<S>>, books: Vec<Books>, config: BacktestConfig) -> Backtest<S> {
        assert!(!entrants.is_empty(), "a backtest is of a strategy");
        let bits = config.conductor.instrument_bits.min(24);
        let instruments = books.len() << bits;
        let entered = entrants.into_iter().enumerate().map(|(place, entrant)| {
            let conductor = ConductorConfig {
                feeds: books.len() as u32,
                instrument_bits: bits,
                last_id: place as u64 * NUMBERS,
                ..entrant.conductor
            };
            let mut hears = entrant.hears;
            hears.resize(books.len(), true);
            Entered {
                conductor: Conductor::new(entrant.strategy, &conductor),
                hears,
                accounts: BTreeMap::new(),
                fills: [0; 2],
            }
        });
        let entered: Vec<Entered<S>> = entered.collect();
        let wanted = entered.iter().flat_map(|one| one.conductor.consolidated());
        let symbols = wanted.collect::<BTreeSet<_>>().len() as u32;
        let venues: Vec<Venue> = books.iter().map(|books| books.config().venue).collect();
        Backtest {
            consolidated: (symbols > 0).then(|| Consolidated::new(&venues, bits, symbols)),
            entered,
            running: 0,
            rules: Rules {
                feeds_trade: vec![true; books.len()],
                halted: BTreeMap::new(),
                defined: BTreeMap::new(),
            },
            is_grouped: sized(config.is_grouped, books.len()),
            less_is_executed: sized(config.less_is_executed, books.len()),
            is_in_group: vec![false; books.len()],
            groups: 0,
            is_delayed: !config.latency.feed.is_none(),
            books: Books1(books),
            bits,
            wire: Wire::new(config.latency, config.seed),
            venue: SimVenue::new(config.fill, instruments),
            refused: Vec::new(),
            now: Nanos::ZERO,
            first: None,
            events: 0,
            has_started: false,
            ledger: Ledger::new(config.fees),
            orders: None,
        }
    }

    /// Keeps every order that reaches the venue from now on, for [`Backtest::orders`]: some 150 bytes each.
    pub fn keep_orders(&mut self) {
        self.orders.get_or_insert_default();
    }

    /// The orders that reached the venue, in the order in which they did; empty without
    /// [`Backtest::keep_orders`].
    pub fn orders(&self) -> &[KeptOrder] {
        self.orders.as_ref().map_or(&[], KeptOrders::rows)
    }

    fn start(&mut self) {
        if !std::mem::replace(&mut self.has_started, true) {
            let now = self.now;
            for at in 0..self.entered.len() {
                self.parts(at, |conductor, markets, port| conductor.start(now, markets, port));
            }
        }
    }

    /// Lends a strategy with its markets and where its requests go.
    #[inline(always)]
    fn parts<T>(
        &mut self,
        at: usize,
        with: impl FnOnce(&mut Conductor<S>, Markets<'_>, &mut Port<'_, S>) -> T,
    ) -> T {
        self.running = at;
        let (before, rest) = self.entered.split_at_mut(at);
        let (own, behind) = rest.split_first_mut().expect("a strategy that has entered");
        let mut port = Port {
            wire: &mut self.wire,
            others: [before, behind],
        };
        let markets = Markets::new(&self.books.0, self.bits).with(self.consolidated.as_ref());
        with(&mut own.conductor, markets, &mut port)
    }

    /// Of several strategies, the one that a number of an order, a request or a quote is of.
    fn who(&self, id: ClientOrderId) -> usize {
        whose(id).min(self.entered.len() - 1)
    }

    /// When the next timer of a strategy is due.
    #[inline]
    fn next_timer(&self) -> Option<Nanos> {
        let timers = self.entered.iter().filter_map(|one| one.conductor.next_timer());
        timers.min()
    }

    /// A feed's directory has an instrument. `point`: what a unit of its price is worth, in 1e-9 units of its
    /// currency.
    pub fn define(&mut self, feed: usize, instrument: &Instrument, point: Option<i64>) {
        self.start();
        if let Some(all) = &mut self.consolidated
            && self
                .entered
                .iter()
                .any(|one| one.conductor.consolidates(&instrument.symbol))
        {
            // A second feed of the same venue, or more than there is room for: counted by the books.
            let named = (instrument.id, &instrument.symbol);
            let _ = all.define(self.now, feed, named, &self.books.0[feed]);
        }
        let markets = Markets::new(&self.books.0, self.bits);
        if self.entered.iter().any(|one| one.conductor.wants(instrument)) {
            self.rules
                .defined
                .insert(markets.number(feed, instrument.id), *instrument);
        }
        if let Some(raw) = point {
            self.ledger
                .points
                .insert(markets.number(feed, instrument.id), raw);
        }
        let now = self.now;
        for at in 0..self.entered.len() {
            if self.entered[at].hears[feed] {
                self.parts(at, |conductor, markets, port| {
                    conductor.define(now, feed, instrument, point, markets, port)
                });
            }
        }
        if let Some(all) = &mut self.consolidated {
            all.forget(feed);
        }
    }

    /// Whether a feed's instrument is one that the strategy subscribed to.
    pub fn watches(&self, feed: usize, instrument: InstrumentId) -> bool {
        let mut all = self.entered.iter();
        all.any(|one| one.conductor.watches(feed, instrument))
    }

    /// The next event of a feed; its receive time is what the run goes by, and never goes back.
    #[inline]
    pub fn on_event(&mut self, feed: usize, event: &MarketEvent) {
        let now = event.recv_ts.max(self.now);
        if self.events == 0 {
            self.begin(now);
        }
        self.events += 1;
        let heard = match self.is_delayed {
            false => now,
            true => now
                .after(self.wire.draw.take(&self.wire.latency.feed, now))
                .max(self.wire.heard),
        };
        let is_due = heard >= self.wire.wake || self.wire.has_news;
        if is_due || self.next_timer().is_some_and(|at| at <= heard) {
            self.advance(now, heard);
        }
        (self.now, self.wire.heard) = (now, heard);
        let id = InstrumentId(((feed as u32) << self.bits) | event.instrument.0);
        if event.kind == EventKind::Status {
            self.note_status(feed, id, event);
        }
        let outcome = match self.venue.is_idle(id) {
            _ if event.kind == EventKind::Clear => self.clear_at_venue(feed, id, event),
            true if !self.is_less_executed(feed, event) => self.apply(feed, event),
            _ => self.event_at_venue(feed, id, event),
        };
        if matches!(event.kind, EventKind::Execute | EventKind::Trade) {
            self.note_sale(id, event, outcome);
        }
        let is_grouped = self.is_grouped[feed];
        if is_grouped {
            let was = std::mem::replace(&mut self.is_in_group[feed], !event.flags.has(EventFlags::LAST));
            self.groups = self.groups + u32::from(self.is_in_group[feed]) - u32::from(was);
        }
        let later;
        let (told, outcome) = match (heard == event.recv_ts, outcome) {
            (true, outcome) => (event, outcome),
            (false, outcome) => {
                later = MarketEvent {
                    recv_ts: heard,
                    ..*event
                };
                let outcome = match outcome {
                    Outcome::Update(update, hit) => Outcome::Update(
                        BookUpdate {
                            recv_ts: heard,
                            ..update
                        },
                        hit,
                    ),
                    Outcome::Other => outcome,
                };
                (&later, outcome)
            }
        };
        for at in 0..self.entered.len() {
            if self.entered[at].hears[feed] {
                self.parts(at, |conductor, markets, port| {
                    conductor.on_event(feed, told, &outcome, is_grouped, markets, port)
                });
            }
        }
        share(&mut self.entered, |one| &mut one.conductor);
        if let Some(all) = &mut self.consolidated {
            all.told(feed, event, is_grouped);
        }
    }

    /// Applies an event to the books of its feed, and to the consolidated ones.
    #[inline]
    fn apply(&mut self, feed: usize, event: &MarketEvent) -> Outcome {
        let books = &mut self.books.0[feed];
        match &mut self.consolidated {
            None => Outcome::of(books, event),
            Some(all) => all.apply(feed, books, event),
        }
    }

    #[cold]
    fn begin(&mut self, now: Nanos) {
        (self.now, self.wire.heard) = (now, now);
        self.first = Some(now);
        self.ledger.next_second = now.after(Nanos::SECOND);
        self.start();
    }

    /// A book, or every book of a feed, is cleared.
    #[cold]
    fn clear_at_venue(&mut self, feed: usize, id: InstrumentId, event: &MarketEvent) -> Outcome {
        if event.instrument != InstrumentId::WHOLE_FEED {
            return match self.venue.is_idle(id) {
                true => self.apply(feed, event),
                false => self.event_at_venue(feed, id, event),
            };
        }
        let outcome = self.apply(feed, event);
        let of_feed = (feed as u32) << self.bits..(feed as u32 + 1) << self.bits;
        self.venue
            .clear(self.now, event, of_feed, &self.books.0[feed], &mut self.wire);
        outcome
    }

    /// An event of an instrument in which an order of ours stands. Most are of levels where none does, and
    /// cost a few comparisons.
    #[inline]
    fn event_at_venue(&mut self, feed: usize, id: InstrumentId, event: &MarketEvent) -> Outcome {
        let had = match event.kind {
            EventKind::Add => None,
            _ => self.books.0[feed].order(event.order_id),
        };
        let outcome = self.apply(feed, event);
        let is_concerned = match &outcome {
            Outcome::Update(now, _) => self.venue.is_concerned(id, event, had, now),
            Outcome::Other => true,
        };
        if is_concerned || self.is_less_executed(feed, event) {
            self.event_of_ours(feed, id, event, had, &outcome);
        }
        outcome
    }

    #[inline(never)]
    fn event_of_ours(
        &mut self,
        feed: usize,
        id: InstrumentId,
        event: &MarketEvent,
        had: Option<OrderView>,
        outcome: &Outcome,
    ) {
        let said = Said {
            is_applied: matches!(outcome, Outcome::Update(..)),
            less_is_executed: self.less_is_executed[feed],
        };
        let books = (id, (&self.books.0[feed], event.instrument));
        self.venue
            .event(self.now, event, had, said, books, &mut self.wire);
        self.wire.has_news |= self.venue.next_triggered().is_some();
        if self.wire.fills.len() > self.wire.new_fills {
            self.account();
        }
    }

    /// Whether what became less in its place may have been executed.
    #[inline(always)]
    fn is_less_executed(&self, feed: usize, event: &MarketEvent) -> bool {
        event.kind == EventKind::Modify && self.less_is_executed[feed]
    }

    /// A trade may trigger stop orders.
    fn note_sale(&mut self, id: InstrumentId, event: &MarketEvent, outcome: Outcome) {
        let price = match (event.kind, outcome) {
            (EventKind::Trade, _) => event.price,
            (_, Outcome::Update(_, Some((price, _)))) => price,
            _ => return,
        };
        if !event.flags.has(EventFlags::NOT_PRINTABLE) {
            self.venue.sold(self.now, id, price);
            self.wire.has_news |= self.venue.next_triggered().is_some();
        }
    }

    #[cold]
    fn note_status(&mut self, feed: usize, id: InstrumentId, event: &MarketEvent) {
        let trades = matches!(event.status, TradingStatus::Trading | TradingStatus::Unknown);
        match event.instrument == InstrumentId::WHOLE_FEED {
            true => self.rules.feeds_trade[feed] = trades,
            false => _ = self.rules.halted.insert(id, !trades),
        }
    }

    /// The recording is over. What is under way arrives, what is open is cancelled; the strategy's last word
    /// is [`Strategy::on_stop`].
    pub fn finish(&mut self) -> Summary {
        self.start();
        let end = self.now;
        // What was sent before the end still comes to the venue, whose book does not change any more.
        self.deliver_all();
        let heard = self.wire.heard;
        for at in 0..self.entered.len() {
            self.parts(at, |conductor, markets, port| {
                conductor.stop(heard, markets, port)
            });
        }
        self.deliver_all();
        self.venue.close(end, &mut self.wire);
        self.deliver_all();
        self.account();
        self.value();
        let instruments = self.results(&self.ledger.accounts);
        let makers = self.wire.fills.iter().filter(|fill| fill.is_maker).count() as u64;
        Summary {
            events: self.events,
            span: [self.first.unwrap_or_default(), end],
            requests: self.venue.requests,
            rejects: self.venue.rejects,
            fills: [self.wire.fills.len() as u64, makers],
            gain: instruments.iter().map(|i| i.gain - i.fees).sum(),
            instruments,
            drawdown: self.ledger.drawdown,
            doubts: Doubts {
                told_before_feed: self.wire.told_before_feed,
                ..self.venue.doubts
            },
            hash: self.wire.hash,
        }
    }

    /// Every fill, in order.
    pub fn fills(&self) -> &[Fill] {
        &self.wire.fills
    }

    /// The gain less fees over time, in 1e-9 units of the currency: after fills, and while something was
    /// traded once a second; at most 4,096 points.
    pub fn curve(&self) -> &[(Nanos, i128)] {
        &self.ledger.curve.points
    }

    /// Of every request and report until now.
    pub fn hash(&self) -> u64 {
        self.wire.hash
    }

    /// Our orders that stand in the venue's books.
    pub fn resting(&self) -> usize {
        self.venue.open()
    }

    /// The books of a feed.
    pub fn books(&self, feed: usize) -> &Books {
        &self.books.0[feed]
    }

    /// A message about this order is near: see [`Books::upcoming`].
    #[inline]
    pub fn upcoming(&mut self, feed: usize, next: tickwire_market::Upcoming) {
        self.books.0[feed].upcoming(next);
    }

    /// A message about this order comes next: see [`Books::arriving`].
    #[inline]
    pub fn arriving(&mut self, feed: usize, next: tickwire_market::Upcoming) {
        self.books.0[feed].arriving(next);
    }

    /// The strategy with its orders and positions; of several the first.
    pub fn conductor(&self) -> &Conductor<S> {
        &self.entered[0].conductor
    }

    /// Every strategy with its orders and positions.
    pub fn conductors(&self) -> impl Iterator<Item = &Conductor<S>> + '_ {
        self.entered.iter().map(|one| &one.conductor)
    }

    /// The how many-th strategy's callback runs, or ran last.
    pub fn running(&self) -> usize {
        self.running
    }

    /// What was counted of orders and checks, by all of them.
    pub fn counters(&self) -> Counters {
        let mut all = Counters::default();
        self.conductors()
            .for_each(|conductor| all.merge(conductor.counters()));
        all
    }

    /// What the strategies have noted since this was last called, and how many notes had no place.
    pub fn take_notes(&mut self, mut tell: impl FnMut(&Note)) -> u64 {
        let all = self.entered.iter_mut();
        all.map(|one| one.conductor.take_notes(&mut tell)).sum()
    }

    /// Places an order that no strategy decided on, at once: for tests of the venue.
    pub fn inject(&mut self, request: &OrderIntent) {
        let at = self.now;
        let instrument = request.instrument();
        let (feed, local) = Markets::new(&self.books.0, self.bits).local(instrument);
        let books = (&self.books.0[feed], local);
        self.venue.arrive(at, request, books, true, &mut self.wire);
        self.wire.has_news |= self.venue.next_triggered().is_some();
        self.account();
    }

    /// For tests: no event of a book with orders of ours is passed over.
    #[cfg(test)]
    pub(crate) fn look_at_all(&mut self, looks_at_all: bool) {
        self.venue.looks_at_all = looks_at_all;
    }

    /// The number over all feeds of a feed's instrument.
    pub fn number(&self, feed: usize, instrument: InstrumentId) -> InstrumentId {
        Markets::new(&self.books.0, self.bits).number(feed, instrument)
    }

    /// What orders of ours changed in a book is forgotten: it is the recorded one again.
    pub(crate) fn forget(&mut self, instrument: InstrumentId) {
        self.venue.forget(instrument);
    }

    /// How much of an order was filled.
    pub fn filled(&self, order: ClientOrderId) -> u64 {
        let of_order = self.wire.fills.iter().filter(|fill| fill.order == order);
        of_order.map(|fill| u64::from(fill.qty.0)).sum()
    }
}
