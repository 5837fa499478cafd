//! Strategies on the trading thread: the built-in rule's and anybody's, in one loop, over one order link.

mod arming;
mod own;
mod port;
mod rehearsing;
mod returning;
mod rule;
mod sides;
#[cfg(test)]
mod tests;

use tickwire_book::Applied;
use tickwire_feed::Channel;
use tickwire_fix::{MassQuoteTemplate, OrderTemplate, Version};
use tickwire_lab::Stage;
use tickwire_market::{
    ClientOrderId, EventKind, EventSink, Instrument, InstrumentId, MarketEvent, Nanos, Price, Symbol,
    Upcoming, Venue,
};
use tickwire_receive::receiver::SourceFacts;
use tickwire_trading::strategy::{
    ArmRefusal, Conductor, ConductorConfig, LateExecution, Markets, Outcome, QUOTES_MAX, QuoteReport,
    Strategy, numbers_from, share, tick_of, whose,
};
use tickwire_trading::{Change, Order, OrderReport, ReportError, RiskConfig};

use crate::hot::{HotPath, OrderOut, stamp};
use crate::trader::{Routes, Rule};
use port::Port;
use rehearsing::Rehearsals;
pub use sides::QuotesAsOrders;
use sides::Sides;
use tickwire_console::failure::Failure;
use tickwire_console::warn;

/// An instrument that may be traded.
struct Traded {
    symbol: Symbol,
    tick: Price,
    template: Option<OrderTemplate>,
}

/// A strategy that is to be hosted.
pub struct Hosting<S> {
    /// What it is called in messages.
    pub name: String,
    /// The strategy.
    pub strategy: S,
    /// The feeds that it hears, by name; `None`: all of them.
    pub feeds: Option<Vec<String>>,
    /// The order sessions that it may use, by name, the first that serves a feed for that feed; `None`: each
    /// feed's own.
    pub sessions: Option<Vec<String>>,
    /// It is told of a changed book with every event, in the middle of a match event (CME, MOEX) too, as the
    /// built-in rule wants it, whose orders follow each entry; if not, after the whole of it.
    pub on_every_event: bool,
    /// What it has open ends with the connection: the venue cancels it then (cancel on disconnect), and
    /// nothing of it is known when the session is lost. When it is there again, nothing leaves until
    /// everything was heard that the venue had said. If not, what was open is cancelled and asked for one by
    /// one before anything else leaves. Of a strategy over one session.
    pub ends_with_session: bool,
    /// Places in its order table.
    pub max_orders: u32,
    /// Its limits.
    pub risk: RiskConfig,
}

impl<S: Strategy + 'static> Hosting<S> {
    /// The same among strategies of other kinds.
    pub fn boxed(self) -> Hosting<Box<dyn Strategy>> {
        Hosting {
            name: self.name,
            strategy: Box::new(self.strategy),
            feeds: self.feeds,
            sessions: self.sessions,
            on_every_event: self.on_every_event,
            ends_with_session: self.ends_with_session,
            max_orders: self.max_orders,
            risk: self.risk,
        }
    }
}

/// A strategy with what its orders are written with.
struct Hosted<S> {
    name: String,
    on_every_event: bool,
    ends_with_session: bool,
    conductor: Conductor<S>,
    /// By channel: whether it hears it.
    hears: Vec<bool>,
    wiring: Wiring,
    /// By session: whether it is logged on, of those that this strategy uses.
    is_up: Vec<bool>,
    /// What processes before this one have traded, by session, of instruments that are not known yet.
    before: Vec<(usize, LateExecution)>,
}

/// What a strategy's requests are written with, and where they go.
struct Wiring {
    /// By channel: the session that its instruments are traded over.
    routes: Vec<usize>,
    /// By instrument; none of those that it did not subscribe to.
    traded: Vec<Option<Box<Traded>>>,
    /// By session: how quotes leave.
    quotes: Vec<QuoteForm>,
    /// The only session that it uses, if it is one.
    only: Option<usize>,
    /// Whether an order can be armed.
    arms: Result<(), ArmRefusal>,
}

/// How quotes leave over a session.
enum QuoteForm {
    /// Nothing was quoted yet, or no message can be prepared.
    Plain,
    /// As a prepared message, by their places.
    Prepared(Box<MassQuoteTemplate>),
    /// As orders.
    Orders(Box<Sides>),
}

impl Wiring {
    fn new(routes: Vec<usize>, instruments: usize, sessions: usize, hears: &[bool]) -> Wiring {
        let mut used = routes.iter().zip(hears).filter(|(_, hears)| **hears);
        let first = used.next().map(|(route, _)| *route);
        let is_one = used.all(|(route, _)| Some(*route) == first);
        Wiring {
            traded: (0..instruments).map(|_| None).collect(),
            quotes: (0..sessions).map(|_| QuoteForm::Plain).collect(),
            only: first.filter(|_| is_one),
            routes,
            arms: Err(ArmRefusal::NotSaid),
        }
    }

    /// Whether an instrument has this symbol.
    fn is_of(&self, instrument: InstrumentId, symbol: &Symbol) -> bool {
        let traded = self.traded.get(instrument.index()).and_then(Option::as_deref);
        traded.is_some_and(|traded| traded.symbol == *symbol)
    }

    /// The orders of a session's quotes, where they are orders.
    fn sides(&mut self, session: usize) -> Option<&mut Sides> {
        match self.quotes.get_mut(session)? {
            QuoteForm::Orders(sides) => Some(sides),
            _ => None,
        }
    }
}

impl<S: Strategy> Hosted<S> {
    /// An instrument has become known: what processes before this one have traded in it is held.
    #[cold]
    fn hold_before(&mut self, id: InstrumentId, symbol: &Symbol, source: usize, point: Option<i64>) {
        if let Some(raw) = point {
            self.conductor
                .risk_mut()
                .controls_mut()
                .set_point(id.index(), raw);
        }
        let (over, conductor) = (self.wiring.routes[source], &mut self.conductor);
        self.before.retain_mut(|(session, late)| {
            let is_it = *session == over && late.symbol == *symbol;
            if is_it {
                late.instrument = Some(id);
                conductor.hold(late);
            }
            !is_it
        });
    }
}

impl<S> Hosted<S> {
    fn uses(&self, session: usize) -> bool {
        let routes = self.wiring.routes.iter().zip(&self.hears);
        routes
            .into_iter()
            .any(|(route, hears)| *hears && *route == session)
    }
}

/// Strategies with what their orders are written with.
pub struct Live<S> {
    /// Until the channels are known.
    waiting: Vec<Hosting<S>>,
    hosted: Vec<Hosted<S>>,
    /// The one whose callback runs, or ran last.
    running: usize,
    bits: u32,
    /// By channel: its venue, and whether changes of books are told at the end of a group.
    venues: Vec<Venue>,
    is_grouped: Vec<bool>,
    /// By channel: whether events that no strategy subscribed to may end a group, or change a consolidated
    /// book.
    hears_everything: Vec<bool>,
    /// By instrument.
    marks: Vec<Mark>,
    /// By channel: instruments that the strategies were not told of yet.
    news: Vec<Vec<InstrumentId>>,
    /// Of all channels the first one alone is received.
    first_channel_alone: bool,
    /// Packets that are rehearsed, once the run has begun.
    rehearsals: Rehearsals,
}

/// What is known of an instrument.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Mark {
    /// No event has named it yet.
    New,
    /// No strategy subscribed to it.
    Known,
    /// A strategy did.
    Watched,
}

impl<S: Strategy> Live<S> {
    /// Strategies that nobody has told of any channel yet: [`Rule::prepare`]
    /// does, and takes the memory.
    pub fn hosting(strategies: Vec<Hosting<S>>) -> Live<S> {
        Live {
            waiting: strategies,
            hosted: Vec::new(),
            running: 0,
            bits: 0,
            venues: Vec::new(),
            is_grouped: Vec::new(),
            hears_everything: Vec::new(),
            marks: Vec::new(),
            news: Vec::new(),
            first_channel_alone: false,
            rehearsals: Rehearsals::default(),
        }
    }

    /// Of all channels the first one alone is received, as the built-in rule has it.
    pub fn on_first_channel(self) -> Live<S> {
        Live {
            first_channel_alone: true,
            ..self
        }
    }

    /// One strategy on one channel and one session. Everything that it needs is allocated here, for 2 to the
    /// power of `config.instrument_bits` instruments.
    pub(crate) fn alone(strategy: S, config: &ConductorConfig, on_every_event: bool) -> Live<S> {
        let mut live = Live::hosting(Vec::new());
        let instruments = 1_usize << config.instrument_bits;
        live.hosted.push(Hosted {
            name: String::new(),
            on_every_event,
            ends_with_session: false,
            conductor: Conductor::new(strategy, config),
            hears: vec![true],
            wiring: Wiring::new(vec![0], instruments, 1, &[true]),
            is_up: vec![true],
            before: Vec::new(),
        });
        live.bits = config.instrument_bits;
        live.venues = vec![Venue::default()];
        live.is_grouped = vec![false];
        live.hears_everything = vec![false];
        live.marks = vec![Mark::Known; instruments];
        live.news = vec![Vec::with_capacity(instruments)];
        live
    }

    /// Makes a waiting strategy one that is hosted.
    fn host(
        &self,
        waiting: Hosting<S>,
        (place, started): (usize, Nanos),
        sources: &[SourceFacts],
        routes: &Routes,
    ) -> Result<Hosted<S>, Failure> {
        let name = &waiting.name;
        let unknown = |what: &str, of: &str, known: Vec<&str>| {
            Failure::config(format!(
                "strategy {name}: there is no {what} {of}; there are {}",
                known.join(", ")
            ))
        };
        let names = || sources.iter().map(|source| &*source.feed_name);
        for feed in waiting.feeds.iter().flatten() {
            if !names().any(|known| known == feed) {
                return Err(unknown("feed", feed, names().collect()));
            }
        }
        let sessions = waiting.sessions.iter().flatten().map(|session| {
            let place = routes.sessions.iter().position(|known| known == session);
            let known = || routes.sessions.iter().map(String::as_str).collect();
            place.ok_or_else(|| unknown("session", session, known()))
        });
        let sessions: Vec<usize> = sessions.collect::<Result<_, _>>()?;
        let hears = sources.iter().map(|source| match &waiting.feeds {
            None => true,
            Some(feeds) => feeds.contains(&source.feed_name),
        });
        let hears: Vec<bool> = hears.collect();
        let mut over = Vec::with_capacity(sources.len());
        for ((source, serving), hears) in sources.iter().zip(&routes.of_source).zip(&hears) {
            let chosen = match waiting.sessions {
                None => serving.first(),
                Some(_) => sessions.iter().find(|session| serving.contains(session)),
            };
            match (chosen, hears) {
                (Some(session), _) => over.push(*session),
                (None, false) => over.push(0),
                (None, true) => {
                    return Err(Failure::config(format!(
                        "strategy {name}: none of its sessions ({}) serves feed {}: name it in [[session]].feeds, or leave the feed out",
                        waiting.sessions.unwrap_or_default().join(", "),
                        source.feed_name
                    )));
                }
            }
        }
        let config = ConductorConfig {
            feeds: sources.len() as u32,
            instrument_bits: self.bits,
            max_orders: waiting.max_orders,
            last_id: numbers_from(place, started),
            risk: waiting.risk,
            ..ConductorConfig::default()
        };
        let conductor = Conductor::new(waiting.strategy, &config);
        if !conductor.consolidated().is_empty() && hears.contains(&false) {
            return Err(Failure::config(format!(
                "strategy {}: a consolidated book is over every feed: leave its `feeds` out",
                waiting.name
            )));
        }
        let wiring = Wiring::new(over, sources.len() << self.bits, routes.sessions.len(), &hears);
        if waiting.ends_with_session && wiring.only.is_none() {
            return Err(Failure::config(format!(
                "strategy {}: what it has open is to end with its session, and it trades over several: give it one",
                waiting.name
            )));
        }
        Ok(Hosted {
            on_every_event: waiting.on_every_event,
            ends_with_session: waiting.ends_with_session,
            conductor,
            wiring,
            hears,
            is_up: vec![false; routes.sessions.len()],
            before: Vec::new(),
            name: waiting.name,
        })
    }

    /// What several strategies hold and lost together counts against each one's limits over all; who is
    /// killed kills all.
    fn share(&mut self) {
        share(&mut self.hosted, |hosted| &mut hosted.conductor);
    }

    fn who(&self, id: ClientOrderId) -> usize {
        whose(id).min(self.hosted.len().saturating_sub(1))
    }
}

/// Lends the path's parts: a strategy, its markets, and where its requests go.
#[inline(always)]
fn parts<O, S, const STAMPED: bool, T>(
    hot: &mut HotPath<O, STAMPED, Live<S>>,
    at: usize,
    seq: u64,
    with: impl FnOnce(&mut Conductor<S>, Markets<'_>, &mut Port<'_, O, S, STAMPED>) -> T,
) -> T {
    let live = &mut hot.rule;
    live.running = at;
    let (before, rest) = live.hosted.split_at_mut(at);
    let (own, behind) = rest.split_first_mut().expect("a strategy that is hosted");
    let is_alone = before.is_empty() && behind.is_empty();
    let mut port = Port {
        sessions: &mut hot.sessions,
        wiring: &mut own.wiring,
        bits: live.bits,
        probes: &mut hot.probes,
        clock: &hot.clock,
        by_event_time: hot.by_event_time,
        others: (!is_alone).then_some([before, behind]),
        venues: &live.venues,
        source: hot.source,
        seq,
        is_rehearsal: false,
    };
    let markets = Markets::new(&hot.books, live.bits).with(hot.consolidated.as_ref());
    with(&mut own.conductor, markets, &mut port)
}

impl<O: OrderOut, S: Strategy, const STAMPED: bool> EventSink for HotPath<O, STAMPED, Live<S>> {
    // Not `#[inline]`, which would make a copy of all this in every part of the program that has a feed.
    fn on_event(&mut self, event: &MarketEvent) {
        let source = self.source;
        let index = (source << self.rule.bits) | event.instrument.index();
        let mark = self.rule.marks.get(index).copied().unwrap_or(Mark::Known);
        if mark == Mark::New || is_rare(event.kind) {
            self.note_rare(event, index, mark);
        } else if mark == Mark::Known && !self.rule.hears_everything[source] {
            // Most are of instruments that nobody subscribed to.
            self.books[source].apply(event);
            return;
        }
        let is_watched = mark == Mark::Watched;
        if !is_watched && !self.concerns_anybody(event) {
            self.books[source].apply(event);
            return;
        }
        if is_watched {
            stamp::<STAMPED>(&mut self.probes, Stage::Decode);
        }
        if is_watched
            && self.rule.hosted.len() == 1
            && self.consolidated.is_none()
            && event.kind != EventKind::Execute
        {
            // One strategy, and one book that changes: told from where it stands.
            let has_changed = matches!(self.books[source].apply(event), Applied::Update(_));
            stamp::<STAMPED>(&mut self.probes, Stage::Book);
            let is_grouped = self.rule.is_grouped[source] && !self.rule.hosted[0].on_every_event;
            parts(self, 0, event.seq.0, |conductor, markets, port| {
                let top = has_changed.then(|| markets.last(source)).flatten();
                conductor.on_applied(source, event, top, None, is_grouped, markets, port);
            });
            return;
        }
        let books = &mut self.books[source];
        let outcome = match &mut self.consolidated {
            None => Outcome::of(books, event),
            Some(all) => all.apply(source, books, event),
        };
        if is_watched {
            stamp::<STAMPED>(&mut self.probes, Stage::Book);
        }
        self.tell_all(event, &outcome);
    }

    #[inline]
    fn upcoming(&mut self, next: Upcoming) {
        self.books[self.source].upcoming(next);
    }

    #[inline]
    fn arriving(&mut self, next: Upcoming) {
        self.books[self.source].arriving(next);
    }

    #[inline]
    fn next_distrusted(&mut self) -> Option<InstrumentId> {
        self.books[self.source].next_distrusted()
    }
}

/// Whether an event of this kind is about more than a book.
#[inline(always)]
fn is_rare(kind: EventKind) -> bool {
    matches!(
        kind,
        EventKind::Status | EventKind::Clear | EventKind::Gap | EventKind::Recovered | EventKind::Definition
    )
}

/// Tells a strategy of an event that was just applied to the books.
fn tell<O: OrderOut, S: Strategy, const STAMPED: bool>(
    hot: &mut HotPath<O, STAMPED, Live<S>>,
    at: usize,
    event: &MarketEvent,
    outcome: &Outcome,
) {
    let source = hot.source;
    let is_grouped = hot.rule.is_grouped[source] && !hot.rule.hosted[at].on_every_event;
    parts(hot, at, event.seq.0, |conductor, markets, port| {
        conductor.on_event(source, event, outcome, is_grouped, markets, port);
    });
}

impl<O: OrderOut, S: Strategy, const STAMPED: bool> HotPath<O, STAMPED, Live<S>> {
    /// Of an instrument that is new, or an event that is about more than a book.
    #[cold]
    fn note_rare(&mut self, event: &MarketEvent, index: usize, mark: Mark) {
        if matches!(event.kind, EventKind::Status | EventKind::Clear) {
            self.keep_at_close(event);
        }
        let (live, source) = (&mut self.rule, self.source);
        if (mark == Mark::New || event.kind == EventKind::Definition)
            && index < live.marks.len()
            && live.news[source].len() < live.news[source].capacity()
        {
            if mark == Mark::New {
                live.marks[index] = Mark::Known;
            }
            live.news[source].push(event.instrument);
        }
    }

    fn concerns(&self, hosted: &Hosted<S>, event: &MarketEvent) -> bool {
        let source = self.source;
        let is_concerned = || hosted.conductor.is_concerned(source, event);
        hosted.hears[source] && (self.consolidated.is_some() || is_concerned())
    }

    fn concerns_anybody(&self, event: &MarketEvent) -> bool {
        self.rule.hosted.iter().any(|hosted| self.concerns(hosted, event))
    }

    /// Tells every strategy that is concerned.
    #[inline(never)]
    fn tell_all(&mut self, event: &MarketEvent, outcome: &Outcome) {
        for at in 0..self.rule.hosted.len() {
            if self.concerns(&self.rule.hosted[at], event) {
                tell(self, at, event, outcome);
            }
        }
        if let Some(all) = &mut self.consolidated {
            all.told(self.source, event, self.rule.is_grouped[self.source]);
        }
    }
}

/// Tells the strategies of a channel's instruments that are new, and prepares their orders.
#[cold]
pub(crate) fn define<O: OrderOut, S: Strategy, C: Channel, const STAMPED: bool>(
    hot: &mut HotPath<O, STAMPED, Live<S>>,
    channel: &C,
) {
    let (now, source) = (hot.clock.now(), hot.source);
    let mut news = std::mem::take(&mut hot.rule.news[source]);
    for id in news.drain(..) {
        let index = (source << hot.rule.bits) | id.index();
        let Some(instrument) = channel.instrument(id) else {
            hot.rule.marks[index] = Mark::New;
            continue;
        };
        let point = channel.point_value(id).map(|point| point.raw());
        let instrument = *instrument;
        define_one(hot, now, &instrument, point);
    }
    hot.rule.news[source] = news;
}

/// Tells the strategies of an instrument of the channel in hand, and prepares their orders.
#[cold]
pub(crate) fn define_one<O: OrderOut, S: Strategy, const STAMPED: bool>(
    hot: &mut HotPath<O, STAMPED, Live<S>>,
    now: Nanos,
    instrument: &Instrument,
    point: Option<i64>,
) {
    let source = hot.source;
    let index = (source << hot.rule.bits) | instrument.id.index();
    let is_consolidated = hot
        .rule
        .hosted
        .iter()
        .any(|hosted| hosted.conductor.consolidates(&instrument.symbol));
    if let Some(all) = &mut hot.consolidated
        && is_consolidated
    {
        let named = (instrument.id, &instrument.symbol);
        if let Err(error) = all.define(now, source, named, &hot.books[source]) {
            warn(format_args!(
                "{} of {} is in no consolidated book: {error}",
                instrument.symbol,
                instrument.venue.name()
            ));
        }
    }
    for at in 0..hot.rule.hosted.len() {
        let hosted = &mut hot.rule.hosted[at];
        if !hosted.hears[source] {
            continue;
        }
        if hosted.conductor.wants(instrument) && hosted.wiring.traded[index].is_none() {
            let over = hosted.wiring.routes[source];
            let session = hot.sessions.get(over);
            if let (Some(session), Some(quotes @ QuoteForm::Plain)) =
                (session, hosted.wiring.quotes.get_mut(over))
                && session.fix.config().version >= Version::Fix42
            {
                let room = hosted.conductor.quotes_max();
                if let Some(template) = MassQuoteTemplate::empty(&session.fix, room, QUOTES_MAX as u8) {
                    *quotes = QuoteForm::Prepared(Box::new(template));
                }
            }
            hosted.wiring.traded[index] = Some(Box::new(Traded {
                symbol: instrument.symbol,
                tick: tick_of(instrument, Price::MAX),
                template: session.and_then(|session| OrderTemplate::new(&session.fix, instrument.symbol)),
            }));
        }
        // Before the strategy hears of it: what it asks first may be what it holds.
        if !hosted.before.is_empty() && hosted.wiring.traded[index].is_some() {
            hosted.hold_before(InstrumentId(index as u32), &instrument.symbol, source, point);
        }
        let is_watched = parts(hot, at, 0, |conductor, markets, port| {
            conductor.define(now, source, instrument, point, markets, port)
        });
        if is_watched {
            hot.rule.marks[index] = Mark::Watched;
            let consolidated = hot.consolidated.as_ref();
            hot.rule.rehearsals.take(source, instrument.id, consolidated);
        }
    }
    if let Some(all) = &mut hot.consolidated {
        all.forget(source);
    }
}

/// What the loop of a thread that waits does when it has time to spare, of a path in memory: all that an
/// order needs is rehearsed, and what a packet needs, which `play` plays to the path; its events alone where
/// that says that it has none.
pub fn idle<O: OrderOut, S: Strategy, const STAMPED: bool>(
    hot: &mut HotPath<O, STAMPED, Live<S>>,
    now: Nanos,
    play: impl FnOnce(&mut HotPath<O, STAMPED, Live<S>>) -> bool,
) {
    Live::on_idle(hot, now);
    if Live::begin_rehearsal(hot).is_some() {
        if !play(hot) {
            Live::rehearse_events(hot, now);
        }
        Live::end_rehearsal(hot);
    }
}

/// The run begins: from now on packets can be rehearsed.
pub(crate) fn start<O: OrderOut, S: Strategy, const STAMPED: bool>(
    hot: &mut HotPath<O, STAMPED, Live<S>>,
    now: Nanos,
) {
    rehearsing::prepare(hot);
    for at in 0..hot.rule.hosted.len() {
        parts(hot, at, 0, |conductor, markets, port| {
            conductor.start(now, markets, port)
        });
    }
}

/// The order of the first strategy that has been open for longest.
pub(crate) fn first_open<O, S: Strategy, const STAMPED: bool>(
    hot: &HotPath<O, STAMPED, Live<S>>,
) -> Option<Order> {
    hot.rule.hosted[0].conductor.orders().iter_open().next().copied()
}

/// What a venue said of an order of the first strategy.
pub(crate) fn report<O: OrderOut, S: Strategy, const STAMPED: bool>(
    hot: &mut HotPath<O, STAMPED, Live<S>>,
    now: Nanos,
    report: &OrderReport,
) -> Result<Change, ReportError> {
    parts(hot, 0, 0, |conductor, markets, port| {
        conductor.on_report(now, report, markets, port)
    })
}

/// The oldest mass quote of the first strategy that was not answered.
pub(crate) fn first_asked<O, S: Strategy, const STAMPED: bool>(
    hot: &HotPath<O, STAMPED, Live<S>>,
) -> Option<ClientOrderId> {
    let mut quotes = hot.rule.hosted[0].conductor.quotes();
    quotes.find_map(|quote| quote.asked.map(|(id, _)| id))
}

/// What a venue said of quotes of the first strategy.
pub(crate) fn tell_quotes<O: OrderOut, S: Strategy, const STAMPED: bool>(
    hot: &mut HotPath<O, STAMPED, Live<S>>,
    now: Nanos,
    report: &QuoteReport<'_>,
) {
    parts(hot, 0, 0, |conductor, markets, port| {
        conductor.on_quote_report(now, report, markets, port)
    });
}
