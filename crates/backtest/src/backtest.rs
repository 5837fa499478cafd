//! The run: market data, requests and reports in the order of their times.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

use tickwire_book::Books;
use tickwire_market::{
    BookState, BookUpdate, ClientOrderId, Counters, EventFlags, EventKind, Instrument, InstrumentId,
    MarketEvent, Nanos, OrderIntent, OrderType, Price, Qty, Side, TradingStatus, Venue,
};
use tickwire_trading::strategy::{
    Conductor, ConductorConfig, Consolidated, Markets, NUMBERS, Note, OrderPort, Outcome, QuoteEntry,
    QuoteIntent, QuoteReport, Rejected, Strategy, share, tick_of, whose,
};
use tickwire_trading::{OrderReport, ReportKind};

use crate::latency::Draw;
use crate::venue::{Listener, Matched, Said, SimVenue, of_quote};
use crate::{
    Doubts, Fees, Fill, FillModel, HORIZONS, InstrumentResult, LatencyConfig, StrategyResult, Summary,
};

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

/// What is under way in one direction, the soonest first; what is due at one time in the order in which it
/// was sent.
#[derive(Debug)]
struct UnderWay<T> {
    queue: BinaryHeap<Reverse<(Nanos, u64, usize)>>,
    items: Vec<T>,
    free: Vec<usize>,
    /// Requests, and reports, do not pass each other.
    last: Nanos,
}

impl<T: Copy> UnderWay<T> {
    fn new() -> UnderWay<T> {
        UnderWay {
            queue: BinaryHeap::new(),
            items: Vec::new(),
            free: Vec::new(),
            last: Nanos::ZERO,
        }
    }

    fn put(&mut self, at: Nanos, number: u64, item: T) {
        self.last = self.last.max(at);
        let place = match self.free.pop() {
            Some(place) => {
                self.items[place] = item;
                place
            }
            None => {
                self.items.push(item);
                self.items.len() - 1
            }
        };
        self.queue.push(Reverse((self.last, number, place)));
    }

    /// When the next one arrives, and the how many-th it is of all that were sent.
    #[inline]
    fn due(&self) -> Option<(Nanos, u64)> {
        self.queue.peek().map(|Reverse((at, number, _))| (*at, *number))
    }

    fn take(&mut self) -> Option<(Nanos, T)> {
        let Reverse((at, _, place)) = self.queue.pop()?;
        self.free.push(place);
        Some((at, self.items[place]))
    }
}

/// What a strategy asks a venue for.
#[derive(Clone, Copy, Debug)]
enum Asked {
    Order(OrderIntent),
    /// A quote of a request, which is a cancellation or a mass quote; the last of it is answered.
    Quote {
        id: ClientOrderId,
        entry: QuoteEntry,
        is_cancel: bool,
        is_last: bool,
    },
}

/// What a venue tells a strategy.
#[derive(Clone, Copy, Debug)]
enum Told {
    Order(OrderReport),
    /// A quote of the mass quote that is answered next was refused.
    QuoteRefused(u64),
    Quoted(ClientOrderId),
    QuotesCancelled(ClientOrderId),
    QuoteRemoved(u64),
    QuoteFilled {
        name: u64,
        side: Side,
        traded: (Qty, Price),
        of: (Price, Qty),
    },
}

/// Between the strategy and the venue.
#[derive(Debug)]
struct Wire {
    /// By the venue's clock.
    requests: UnderWay<Asked>,
    /// By the strategy's clock.
    reports: UnderWay<Told>,
    /// Price and quantity of each side of a quote as it was entered.
    quoted: BTreeMap<(u64, Side), (Price, Qty)>,
    count: u64,
    draw: Draw,
    latency: LatencyConfig,
    /// The strategy's clock.
    heard: Nanos,
    /// Nothing is to be done before then, by either clock; except what is new, or a timer.
    wake: Nanos,
    has_news: bool,
    told_before_feed: u64,
    hash: u64,
    fills: Vec<Fill>,
    new_fills: usize,
}

impl Wire {
    fn mix(&mut self, words: &[u64]) {
        for word in words {
            self.hash = (self.hash ^ word)
                .wrapping_mul(0x0000_0100_0000_01B3)
                .rotate_left(23);
        }
    }
}

impl OrderPort for Wire {
    fn send(&mut self, now: Nanos, request: &OrderIntent) -> Result<(), Rejected> {
        let latency = match request {
            OrderIntent::Cancel { .. } => &self.latency.cancel,
            _ => &self.latency.entry,
        };
        let at = now.after(self.draw.take(latency, now));
        let (id, what) = match *request {
            OrderIntent::New {
                id, price, qty, side, ..
            } => (id, [1, price.raw() as u64, qty.0.into(), side as u64]),
            OrderIntent::Replace {
                id,
                price,
                qty,
                target,
                ..
            } => (id, [2, price.raw() as u64, qty.0.into(), target.0]),
            OrderIntent::Cancel { id, target, .. } => (id, [3, target.0, 0, 0]),
        };
        self.mix(&[now.0, id.0]);
        self.mix(&what);
        if let OrderIntent::New { stop: Some(stop), .. } | OrderIntent::Replace { stop: Some(stop), .. } =
            *request
        {
            self.mix(&[stop.raw() as u64]);
        }
        self.count += 1;
        self.has_news = true;
        self.requests.put(at, self.count, Asked::Order(*request));
        Ok(())
    }

    fn quote(&mut self, now: Nanos, request: &QuoteIntent<'_>) -> Result<(), Rejected> {
        let (latency, id, entries, is_cancel) = match *request {
            QuoteIntent::Mass { id, entries, .. } => (&self.latency.entry, id, entries, false),
            QuoteIntent::Cancel { id, entries, .. } => (&self.latency.cancel, id, entries, true),
        };
        let at = now.after(self.draw.take(latency, now));
        for (place, entry) in entries.iter().enumerate() {
            self.mix(&[now.0, id.0, 4 + u64::from(is_cancel), entry.name]);
            for (price, qty) in entry.quote.sides {
                self.mix(&[price.raw() as u64, qty.0.into()]);
            }
            self.count += 1;
            let asked = Asked::Quote {
                id,
                entry: *entry,
                is_cancel,
                is_last: place + 1 == entries.len(),
            };
            self.requests.put(at, self.count, asked);
        }
        self.has_news = true;
        Ok(())
    }
}

impl Wire {
    /// Sends something to the strategy.
    fn tell(&mut self, at: Nanos, told: Told) {
        let due = at.after(self.draw.take(&self.latency.response, at));
        self.told_before_feed += u64::from(due < self.heard);
        self.count += 1;
        self.has_news = true;
        self.reports.put(due.max(self.heard), self.count, told);
    }
}

impl Listener for Wire {
    fn report(&mut self, at: Nanos, report: OrderReport) {
        let what = match report.kind {
            ReportKind::Filled { qty, price, .. } => [1, qty.0.into(), price.raw() as u64],
            ReportKind::Broken { qty, price, .. } => [2, qty.0.into(), price.raw() as u64],
            ReportKind::Accepted => [3, 0, 0],
            ReportKind::Cancelled => [4, 0, 0],
            ReportKind::Rejected => [5, 0, 0],
            ReportKind::CancelRejected => [6, 0, 0],
            ReportKind::Replaced { by, .. } => [7, by.0, 0],
            ReportKind::ReplaceRejected { by } => [8, by.0, 0],
            ReportKind::Triggered => [9, 0, 0],
        };
        self.mix(&[at.0, report.id.0]);
        self.mix(&what);
        let told = match (of_quote(report.id), report.kind) {
            (None, _) => Told::Order(report),
            (Some((name, side)), ReportKind::Filled { qty, price, .. }) => Told::QuoteFilled {
                name,
                side,
                traded: (qty, price),
                of: self.quoted.get(&(name, side)).copied().unwrap_or_default(),
            },
            (Some((name, _)), _) => Told::QuoteRemoved(name),
        };
        self.tell(at, told);
    }

    fn matched(&mut self, at: Nanos, m: Matched) {
        self.fills.push(Fill {
            at,
            order: of_quote(m.id).map_or(m.id, |(name, _)| ClientOrderId(name)),
            instrument: m.instrument,
            side: m.side,
            qty: m.qty,
            price: m.price,
            is_maker: m.is_maker,
            queue_at_entry: m.queue_at_entry,
            mid: None,
            mark_outs: [None; 3],
        });
    }
}

/// A strategy that takes part in a backtest.
#[derive(Clone, Debug)]
pub struct Entrant<S> {
    /// The strategy.
    pub strategy: S,
    /// Its sizes and limits; feeds, and numbers of orders, are the backtest's.
    pub conductor: ConductorConfig,
    /// By feed, whether it hears it; those beyond are heard.
    pub hears: Vec<bool>,
}

/// The same with what became of it.
#[derive(Debug)]
struct Entered<S> {
    conductor: Conductor<S>,
    hears: Vec<bool>,
    accounts: BTreeMap<InstrumentId, Account>,
    /// Fills, of these as maker.
    fills: [u64; 2],
}

/// Where a strategy's requests go; an order that could meet one of another strategy does not.
struct Port<'a, S> {
    wire: &'a mut Wire,
    others: [&'a [Entered<S>]; 2],
}

impl<S: Strategy> OrderPort for Port<'_, S> {
    fn send(&mut self, now: Nanos, request: &OrderIntent) -> Result<(), Rejected> {
        let mut others = self.others.iter().copied().flatten();
        match others.any(|other| other.conductor.meets(request)) {
            true => Err(Rejected::SelfTrade),
            false => self.wire.send(now, request),
        }
    }

    fn quote(&mut self, now: Nanos, request: &QuoteIntent<'_>) -> Result<(), Rejected> {
        let mut others = self.others.iter().copied().flatten();
        match others.any(|other| other.conductor.meets_quotes(request)) {
            true => Err(Rejected::SelfTrade),
            false => self.wire.quote(now, request),
        }
    }
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
    fees: Fees,
    is_grouped: Vec<bool>,
    less_is_executed: Vec<bool>,
    /// By feed: whether a match event is being told, and of how many feeds it is.
    is_in_group: Vec<bool>,
    groups: u32,
    /// Whether the strategy hears later than the venue speaks.
    is_delayed: bool,
    /// Whether a feed's venue, and an instrument, are said to trade at the venue.
    feeds_trade: Vec<bool>,
    halted: BTreeMap<InstrumentId, bool>,
    now: Nanos,
    first: Option<Nanos>,
    events: u64,
    has_started: bool,
    /// Middles to be looked at: when, fill, horizon.
    looks: BinaryHeap<Reverse<(Nanos, usize, usize)>>,
    points: BTreeMap<InstrumentId, i64>,
    defined: BTreeMap<InstrumentId, Instrument>,
    accounts: BTreeMap<InstrumentId, Account>,
    next_second: Nanos,
    high: i128,
    drawdown: i128,
    curve: Curve,
}

/// The gain over time in a bounded number of points: when there are too many, every other one goes.
#[derive(Debug, Default)]
struct Curve {
    points: Vec<(Nanos, i128)>,
    step: u64,
    next: Nanos,
}

impl Curve {
    const MAX: usize = 4_096;

    fn put(&mut self, at: Nanos, gain: i128) {
        if at < self.next {
            // A span's last value is the one to be seen.
            if let Some(last) = self.points.last_mut() {
                *last = (at, gain);
            }
            return;
        }
        if self.points.len() == Curve::MAX {
            let mut nth = 0_u32;
            self.points.retain(|_| {
                nth += 1;
                nth.is_multiple_of(2)
            });
            self.step = self.step.max(Nanos::MILLI) * 2;
        }
        self.points.push((at, gain));
        self.next = at.after(self.step);
    }
}

/// Books of every feed; they have no text form.
struct Books1(Vec<Books>);

impl std::fmt::Debug for Books1 {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} feeds", self.0.len())
    }
}

/// What was traded of an instrument.
#[derive(Clone, Copy, Debug, Default)]
struct Account {
    position: i64,
    /// Paid minus received: price in 1e-9 times quantity.
    cost: i128,
    traded: [u64; 2],
    last_price: Price,
    last_mid: Option<Price>,
    fees: i128,
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
            feeds_trade: vec![true; books.len()],
            is_grouped: sized(config.is_grouped, books.len()),
            less_is_executed: sized(config.less_is_executed, books.len()),
            is_in_group: vec![false; books.len()],
            groups: 0,
            is_delayed: !config.latency.feed.is_none(),
            books: Books1(books),
            bits,
            wire: Wire {
                requests: UnderWay::new(),
                reports: UnderWay::new(),
                quoted: BTreeMap::new(),
                count: 0,
                draw: Draw::new(config.seed),
                latency: config.latency,
                heard: Nanos::ZERO,
                wake: Nanos::ZERO,
                has_news: true,
                told_before_feed: 0,
                hash: 0xCBF2_9CE4_8422_2325,
                fills: Vec::new(),
                new_fills: 0,
            },
            venue: SimVenue::new(config.fill, instruments),
            refused: Vec::new(),
            fees: config.fees,
            halted: BTreeMap::new(),
            now: Nanos::ZERO,
            first: None,
            events: 0,
            has_started: false,
            looks: BinaryHeap::new(),
            points: BTreeMap::new(),
            defined: BTreeMap::new(),
            accounts: BTreeMap::new(),
            next_second: Nanos::ZERO,
            high: 0,
            drawdown: 0,
            curve: Curve::default(),
        }
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
            self.defined
                .insert(markets.number(feed, instrument.id), *instrument);
        }
        if let Some(raw) = point {
            self.points.insert(markets.number(feed, instrument.id), raw);
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
            true => self.apply(feed, event),
            false => self.event_at_venue(feed, id, event),
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
        self.next_second = now.after(Nanos::SECOND);
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

    /// An event of an instrument in which an order of ours stands.
    fn event_at_venue(&mut self, feed: usize, id: InstrumentId, event: &MarketEvent) -> Outcome {
        let had = self.books.0[feed].order(event.order_id);
        let outcome = self.apply(feed, event);
        let said = Said {
            is_applied: matches!(outcome, Outcome::Update(..)),
            less_is_executed: self.less_is_executed[feed],
        };
        let books = (&self.books.0[feed], event.instrument);
        self.venue
            .event(self.now, event, had, said, id, books, &mut self.wire);
        self.wire.has_news |= self.venue.next_triggered().is_some();
        if self.wire.fills.len() > self.wire.new_fills {
            self.account();
        }
        outcome
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
            true => self.feeds_trade[feed] = trades,
            false => _ = self.halted.insert(id, !trades),
        }
    }

    /// Everything that is due before the next event, which the venue tells at `now` and the strategy hears at
    /// `heard`: requests at the venue, reports, timers, looks at the market, in the order of their times.
    /// What is asked for at the very time of an event comes after it, and within a match event nothing comes
    /// to the venue.
    fn advance(&mut self, now: Nanos, heard: Nanos) {
        let is_in_match = self.groups > 0 && now == self.now;
        loop {
            let request = self
                .wire
                .requests
                .due()
                .filter(|(at, _)| *at < now && !is_in_match);
            let triggered = self.venue.next_triggered().map(|(at, _)| (at, 0));
            let triggered = triggered.filter(|(at, _)| *at < now && !is_in_match);
            let report = self.wire.reports.due().filter(|(at, _)| *at <= heard);
            let timer = self.next_timer().filter(|at| *at <= heard);
            let look = self.looks.peek().map(|Reverse((at, ..))| *at);
            let look = look.filter(|at| *at <= now);
            let second = (!self.accounts.is_empty() && self.next_second <= now).then_some(self.next_second);
            // The number decides between two of one time; what has none comes behind.
            let last = |at| (at, u64::MAX);
            let all = [
                triggered,
                request,
                report,
                look.map(last),
                timer.map(last),
                second.map(last),
            ];
            let Some(soonest) = all.into_iter().flatten().min() else {
                break;
            };
            let is = |item: Option<(Nanos, u64)>| item == Some(soonest);
            if is(triggered) {
                self.deliver_triggered();
            } else if is(request) {
                self.deliver_request();
            } else if is(report) {
                self.deliver_report();
            } else if look == Some(soonest.0) {
                self.look();
            } else if timer == Some(soonest.0) {
                let at = soonest.0.max(self.wire.heard);
                self.wire.heard = at;
                for one in 0..self.entered.len() {
                    let due = self.entered[one].conductor.next_timer();
                    if due.is_some_and(|due| due <= at) {
                        self.parts(one, |conductor, markets, port| {
                            conductor.on_time(at, markets, port)
                        });
                    }
                }
                if self.next_timer() == timer {
                    break;
                }
            } else {
                self.next_second = soonest.0.after(Nanos::SECOND);
                self.value();
            }
        }
        if now > self.next_second {
            // The recording pauses: no second of it needs a look.
            self.next_second = now.after(Nanos::SECOND);
        }
        let triggered = self.venue.next_triggered().map(|(at, _)| (at, 0));
        let of_wire = [triggered, self.wire.requests.due(), self.wire.reports.due()];
        let of_wire = of_wire.into_iter().flatten().map(|(at, _)| at);
        let look = self.looks.peek().map(|Reverse((at, ..))| *at);
        let second = (!self.accounts.is_empty()).then_some(self.next_second);
        self.wire.wake = of_wire.chain(look).chain(second).min().unwrap_or(Nanos(u64::MAX));
        self.wire.has_news = false;
    }

    fn deliver_request(&mut self) {
        let Some((at, asked)) = self.wire.requests.take() else {
            return;
        };
        let request = match asked {
            Asked::Order(request) => request,
            Asked::Quote { .. } => return self.deliver_quote(at, asked),
        };
        let instrument = match request {
            OrderIntent::New { instrument, .. } | OrderIntent::Replace { instrument, .. } => instrument,
            OrderIntent::Cancel { target, .. } => self.venue.instrument_of(target).unwrap_or_default(),
        };
        let (feed, local) = Markets::new(&self.books.0, self.bits).local(instrument);
        let is_on_tick = match request {
            OrderIntent::New {
                price,
                order_type,
                stop,
                ..
            }
            | OrderIntent::Replace {
                price,
                order_type,
                stop,
                ..
            } => {
                let limit = (order_type == OrderType::Limit).then_some(price);
                self.are_on_tick(instrument, [limit, stop])
            }
            OrderIntent::Cancel { .. } => true,
        };
        let can_trade = self.trades(instrument) && is_on_tick;
        let Some(books) = self.books.0.get(feed) else {
            return;
        };
        self.venue
            .arrive(at, &request, (books, local), can_trade, &mut self.wire);
        self.account();
    }

    /// Whether the venue, and an instrument, are said to trade there.
    fn trades(&self, instrument: InstrumentId) -> bool {
        let (feed, _) = Markets::new(&self.books.0, self.bits).local(instrument);
        let is_halted = self.halted.get(&instrument).copied().unwrap_or_default();
        self.feeds_trade.get(feed).copied().unwrap_or_default() && !is_halted
    }

    fn are_on_tick(&self, instrument: InstrumentId, prices: [Option<Price>; 2]) -> bool {
        let defined = self.defined.get(&instrument);
        let tick = |price| defined.map_or(1, |defined| tick_of(defined, price).raw());
        let mut prices = prices.into_iter().flatten();
        prices.all(|price| price.raw() % tick(price).max(1) == 0)
    }

    /// A quote of a mass quote, or of a cancellation, comes to the venue.
    fn deliver_quote(&mut self, at: Nanos, asked: Asked) {
        let Asked::Quote {
            id,
            entry,
            is_cancel,
            is_last,
        } = asked
        else {
            return;
        };
        let instrument = entry.quote.instrument;
        let (feed, local) = Markets::new(&self.books.0, self.bits).local(instrument);
        let prices = entry
            .quote
            .sides
            .map(|(price, qty)| (!qty.is_zero()).then_some(price));
        let is_any = prices.iter().any(Option::is_some);
        let is_taken = !is_any || (self.trades(instrument) && self.are_on_tick(instrument, prices));
        match self.books.0.get(feed).filter(|_| is_taken) {
            Some(books) => {
                for (side, of) in Side::BOTH.into_iter().zip(entry.quote.sides) {
                    self.wire.quoted.insert((entry.name, side), of);
                }
                self.venue.quote(at, &entry, (books, local), &mut self.wire);
            }
            None => {
                self.venue.rejects += 1;
                self.wire.tell(at, Told::QuoteRefused(entry.name));
            }
        }
        match (is_last, is_cancel) {
            (false, _) => {}
            (true, false) => self.wire.tell(at, Told::Quoted(id)),
            (true, true) => self.wire.tell(at, Told::QuotesCancelled(id)),
        }
        self.account();
    }

    /// A stop order that a trade has triggered acts on the book as it is now.
    fn deliver_triggered(&mut self) {
        let Some((at, instrument)) = self.venue.next_triggered() else {
            return;
        };
        let (feed, local) = Markets::new(&self.books.0, self.bits).local(instrument);
        let can_trade = self.trades(instrument);
        if let Some(books) = self.books.0.get(feed) {
            self.venue.trigger(at, (books, local), can_trade, &mut self.wire);
        }
        self.account();
    }

    fn deliver_report(&mut self) {
        let Some((at, told)) = self.wire.reports.take() else {
            return;
        };
        self.wire.heard = self.wire.heard.max(at);
        let (of, report) = match told {
            Told::Order(report) => {
                let whose = self.who(report.id);
                // One that fits no order is counted there, and of a fill stops everything.
                let _ = self.parts(whose, |conductor, markets, port| {
                    conductor.on_report(at, &report, markets, port)
                });
                return;
            }
            Told::QuoteRefused(name) => return self.refused.push(name),
            Told::Quoted(id) => {
                let refused = std::mem::take(&mut self.refused);
                let report = QuoteReport::Answered {
                    id,
                    is_rejected: false,
                    refused: &refused,
                };
                let whose = self.who(id);
                return self.parts(whose, |conductor, markets, port| {
                    conductor.on_quote_report(at, &report, markets, port)
                });
            }
            Told::QuotesCancelled(id) => (id.0, QuoteReport::Cancelled { id, is_done: true }),
            Told::QuoteRemoved(ref name) => {
                let names = std::slice::from_ref(name);
                (*name, QuoteReport::Removed { names })
            }
            Told::QuoteFilled {
                name,
                side,
                traded: (qty, price),
                of,
            } => {
                let report = QuoteReport::Filled {
                    name,
                    side,
                    qty,
                    price,
                    of,
                };
                (name, report)
            }
        };
        let whose = self.who(ClientOrderId(of));
        self.parts(whose, |conductor, markets, port| {
            conductor.on_quote_report(at, &report, markets, port)
        });
    }

    /// What is under way arrives; the market does not move any more.
    fn deliver_all(&mut self) {
        loop {
            if self.venue.next_triggered().is_some() {
                self.deliver_triggered();
                continue;
            }
            match (self.wire.requests.due(), self.wire.reports.due()) {
                (None, None) => return,
                (Some(request), report) if report.is_none_or(|report| request < report) => {
                    self.deliver_request()
                }
                _ => self.deliver_report(),
            }
        }
    }

    /// Takes the fills that are new into the accounts.
    fn account(&mut self) {
        while let Some(fill) = self.wire.fills.get(self.wire.new_fills).copied() {
            let place = self.wire.new_fills;
            self.wire.new_fills += 1;
            self.wire.has_news = true;
            if self.accounts.is_empty() {
                self.next_second = self.now.after(Nanos::SECOND);
            }
            let mid = self.mid(fill.instrument);
            self.wire.fills[place].mid = mid;
            for (horizon, ns) in HORIZONS.into_iter().enumerate() {
                self.looks.push(Reverse((fill.at.after(ns), place, horizon)));
            }
            let fee = match fill.is_maker {
                true => self.fees.maker,
                false => self.fees.taker,
            };
            let who = self.who(fill.order);
            let own = &mut self.entered[who];
            own.fills[0] += 1;
            own.fills[1] += u64::from(fill.is_maker);
            own.accounts.entry(fill.instrument).or_default().take(&fill, fee);
            self.accounts.entry(fill.instrument).or_default().take(&fill, fee);
            self.value();
        }
    }

    fn look(&mut self) {
        if let Some(Reverse((_, fill, horizon))) = self.looks.pop() {
            let instrument = self.wire.fills[fill].instrument;
            self.wire.fills[fill].mark_outs[horizon] = self.mid(instrument);
        }
    }

    fn mid(&self, instrument: InstrumentId) -> Option<Price> {
        let book = Markets::new(&self.books.0, self.bits).book(instrument)?;
        if book.state() != BookState::Live {
            return None;
        }
        let (bid, ask) = (book.best(Side::Bid)?.price, book.best(Side::Ask)?.price);
        (bid < ask).then(|| Price::from_raw(((i128::from(bid.raw()) + i128::from(ask.raw())) >> 1) as i64))
    }

    /// Values what is held, and keeps the largest loss from a high.
    fn value(&mut self) {
        let mut total = 0;
        let held: Vec<InstrumentId> = self.accounts.keys().copied().collect();
        for id in held {
            let mid = self.mid(id);
            let point = self.points.get(&id).copied().unwrap_or(Price::ONE_RAW);
            let Some(account) = self.accounts.get_mut(&id) else {
                continue;
            };
            account.last_mid = mid.or(account.last_mid);
            total += account.gain(point) - account.fees;
        }
        self.high = self.high.max(total);
        self.drawdown = self.drawdown.max(self.high - total);
        self.curve.put(self.now, total);
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
        let instruments = self.results(&self.accounts);
        let makers = self.wire.fills.iter().filter(|fill| fill.is_maker).count() as u64;
        Summary {
            events: self.events,
            span: [self.first.unwrap_or_default(), end],
            requests: self.venue.requests,
            rejects: self.venue.rejects,
            fills: [self.wire.fills.len() as u64, makers],
            gain: instruments.iter().map(|i| i.gain - i.fees).sum(),
            instruments,
            drawdown: self.drawdown,
            doubts: Doubts {
                told_before_feed: self.wire.told_before_feed,
                ..self.venue.doubts
            },
            hash: self.wire.hash,
        }
    }

    /// What became of each instrument; what is held of it is worth what the middle of its book says, whoever
    /// holds it.
    fn results(&self, accounts: &BTreeMap<InstrumentId, Account>) -> Vec<InstrumentResult> {
        let results = accounts.iter().map(|(id, account)| {
            let point = self.points.get(id).copied().unwrap_or(Price::ONE_RAW);
            let of_all = self.accounts.get(id).copied().unwrap_or_default();
            let account = Account {
                last_mid: of_all.last_mid,
                last_price: of_all.last_price,
                ..*account
            };
            let mut known = self.entered.iter().flat_map(|one| one.conductor.instruments());
            let symbol = known.find(|(known, ..)| known == id).map(|(_, symbol, _)| symbol);
            InstrumentResult {
                instrument: *id,
                symbol: symbol.unwrap_or_default(),
                position: account.position,
                traded: account.traded,
                mark: account.mark(),
                gain: account.gain(point),
                fees: account.fees,
            }
        });
        results.collect()
    }

    /// What became of each strategy, in their order; after [`Backtest::finish`].
    pub fn results_of_each(&self) -> Vec<StrategyResult> {
        let results = self.entered.iter().map(|one| {
            let instruments = self.results(&one.accounts);
            StrategyResult {
                fills: one.fills,
                gain: instruments.iter().map(|i| i.gain - i.fees).sum(),
                instruments,
            }
        });
        results.collect()
    }

    /// Every fill, in order.
    pub fn fills(&self) -> &[Fill] {
        &self.wire.fills
    }

    /// The gain less fees over time, in 1e-9 units of the currency: after fills, and while something was
    /// traded once a second; at most 4,096 points.
    pub fn curve(&self) -> &[(Nanos, i128)] {
        &self.curve.points
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
    pub fn upcoming(&mut self, feed: usize, instrument: InstrumentId, order_id: tickwire_market::OrderId) {
        self.books.0[feed].upcoming(instrument, order_id);
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
        let instrument = match *request {
            OrderIntent::New { instrument, .. } | OrderIntent::Replace { instrument, .. } => instrument,
            OrderIntent::Cancel { target, .. } => self.venue.instrument_of(target).unwrap_or_default(),
        };
        let (feed, local) = Markets::new(&self.books.0, self.bits).local(instrument);
        let books = (&self.books.0[feed], local);
        self.venue.arrive(at, request, books, true, &mut self.wire);
        self.wire.has_news |= self.venue.next_triggered().is_some();
        self.account();
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

impl Account {
    /// Something was traded.
    fn take(&mut self, fill: &Fill, fee: i64) {
        let notional = fill.price.notional(u64::from(fill.qty.0));
        let (signed, sign) = match fill.side {
            Side::Bid => (i64::from(fill.qty.0), 1),
            Side::Ask => (-i64::from(fill.qty.0), -1),
        };
        self.position += signed;
        self.cost += sign * notional;
        self.traded[fill.side as usize] += u64::from(fill.qty.0);
        self.last_price = fill.price;
        self.fees += i128::from(fee) * i128::from(fill.qty.0);
    }

    fn mark(&self) -> Price {
        self.last_mid.unwrap_or(self.last_price)
    }

    /// In 1e-9 units of the currency; `point` is what one unit of the price is worth, in 1e-9.
    fn gain(&self, point: i64) -> i128 {
        let points = i128::from(self.mark().raw()) * i128::from(self.position) - self.cost;
        points * i128::from(point) / i128::from(Price::ONE_RAW)
    }
}
