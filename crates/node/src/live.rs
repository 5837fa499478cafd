//! A strategy of one's own on the trading thread: the same loop, books and session as the built-in rule's.

#[cfg(test)]
mod tests;

use tickwire_book::Books;
use tickwire_feed::Channel;
use tickwire_fix::{
    Again, Encoder, ExecType, ExecutionReport, Id, NewOrder, NewOrderSingle, OrderCancelReplaceRequest,
    OrderCancelRequest, OrderTemplate, QuoteAnswer, QuoteLine, Stamp, Version, put_cancel_quotes,
    put_mass_quote,
};
use tickwire_lab::{Probes, Stage};
use tickwire_market::{
    Cause, ClientOrderId, Counters, EventKind, EventSink, Instrument, InstrumentId, MarketEvent, Nanos,
    OrderId, OrderIntent, OrderType, Qty, Side, Symbol, Venue,
};
use tickwire_receive::receiver::SourceFacts;
use tickwire_runtime::clock::{Clock, tsc};
use tickwire_trading::strategy::{
    BookChange, Conductor, ConductorConfig, Context, Markets, NUMBERS, OrderEvent, OrderPort, Outcome,
    QUOTES_MAX, QuoteEntry, QuoteIntent, QuoteReport, Rejected, Strategy, Subscription, share, whose,
};
use tickwire_trading::{
    Change, Order, OrderReport, ReportError, ReportKind, RiskConfig, RiskReject, StrategyId,
};

use crate::hot::{HotPath, OrderOut, OrderSession, stamp};
use crate::memory::{self, MemoryOut};
use crate::trader::{Routes, Rule, Wants};
use tickwire_console::failure::Failure;
use tickwire_console::warn;

/// An instrument that may be traded.
struct Traded {
    symbol: Symbol,
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
    /// Places in its order table.
    pub max_orders: u32,
    /// Its limits.
    pub risk: RiskConfig,
}

/// A strategy with what its orders are written with.
struct Hosted<S> {
    name: String,
    conductor: Conductor<S>,
    /// By channel: whether it hears it.
    hears: Vec<bool>,
    /// By channel: the session that its instruments are traded over.
    routes: Vec<usize>,
    /// By instrument; none of those that it did not subscribe to.
    traded: Vec<Option<Box<Traded>>>,
    /// By session: whether it is logged on, of those that this strategy uses.
    is_up: Vec<bool>,
}

impl<S> Hosted<S> {
    fn uses(&self, session: usize) -> bool {
        let routes = self.routes.iter().zip(&self.hears);
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
    /// Which instruments the strategies were told of, and by channel those that are new.
    known: Vec<bool>,
    news: Vec<Vec<InstrumentId>>,
}

impl<S: Strategy> Live<S> {
    /// Strategies that nobody has told of any channel yet: [`Rule::prepare`] does, and takes the memory.
    pub fn hosting(strategies: Vec<Hosting<S>>) -> Live<S> {
        Live {
            waiting: strategies,
            hosted: Vec::new(),
            running: 0,
            bits: 0,
            venues: Vec::new(),
            is_grouped: Vec::new(),
            known: Vec::new(),
            news: Vec::new(),
        }
    }

    /// One strategy on one channel and one session. Everything that it needs is allocated here, for 2 to the
    /// power of `config.instrument_bits` instruments.
    fn alone(strategy: S, config: &ConductorConfig) -> Live<S> {
        let mut live = Live::hosting(Vec::new());
        let instruments = 1_usize << config.instrument_bits;
        live.hosted.push(Hosted {
            name: String::new(),
            conductor: Conductor::new(strategy, config),
            hears: vec![true],
            routes: vec![0],
            traded: (0..instruments).map(|_| None).collect(),
            is_up: vec![true],
        });
        live.bits = config.instrument_bits;
        live.venues = vec![Venue::default()];
        live.is_grouped = vec![false];
        live.known = vec![false; instruments];
        live.news = vec![Vec::with_capacity(instruments)];
        live
    }

    /// Makes a waiting strategy one that is hosted.
    fn host(
        &self,
        waiting: Hosting<S>,
        place: usize,
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
            last_id: place as u64 * NUMBERS,
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
        Ok(Hosted {
            conductor,
            hears,
            routes: over,
            traded: (0..sources.len() << self.bits).map(|_| None).collect(),
            is_up: vec![false; routes.sessions.len()],
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

/// Where the strategy's requests go: into the session and out, inside the callback.
struct Port<'a, O, S, const STAMPED: bool> {
    sessions: &'a mut [OrderSession<O>],
    routes: &'a [usize],
    bits: u32,
    probes: &'a mut Probes,
    clock: &'a Clock,
    traded: &'a mut [Option<Box<Traded>>],
    /// The other strategies.
    others: [&'a [Hosted<S>]; 2],
    /// By channel.
    venues: &'a [Venue],
    /// Whose packet is in hand, and the number of its message; 0 outside of one.
    source: usize,
    seq: u64,
}

impl<O: OrderOut, S: Strategy, const STAMPED: bool> Port<'_, O, S, STAMPED> {
    #[inline]
    fn session_of(&self, instrument: InstrumentId) -> usize {
        let source = instrument.index() >> self.bits;
        self.routes.get(source).copied().unwrap_or_default()
    }

    /// Sends a message that is kept for no resend: see [`crate::hot`].
    fn message(
        &mut self,
        session: usize,
        now: Nanos,
        msg_type: &[u8],
        fields: impl FnOnce(&mut Encoder<'_>, &mut Stamp),
    ) -> Result<(), Rejected> {
        let session = self.sessions.get_mut(session).ok_or(Rejected::NoSession)?;
        let sent = session.fix.send(now, msg_type, Again::GapFill, fields);
        sent.map_err(|_| Rejected::NoSession)?;
        session.transmit();
        Ok(())
    }

    /// Whether the message that caused an order is one of the venue that it goes to: another venue has never
    /// published it.
    fn is_cause_known(&self, session: usize, cause: Cause) -> bool {
        if self.sessions.len() < 2 || self.seq > 0 {
            return self.routes.get(self.source).is_none_or(|route| *route == session);
        }
        let of_venue = self
            .venues
            .iter()
            .zip(self.routes)
            .filter(|(venue, _)| **venue == cause.venue);
        let mut routes = of_venue.map(|(_, route)| *route == session).peekable();
        routes.peek().is_some() && routes.all(|is_known| is_known)
    }

    /// Whether a request is one that another strategy has something against; of one alone nothing is looked
    /// at.
    #[inline]
    fn is_met(&self, is_by: impl Fn(&Conductor<S>) -> bool) -> bool {
        let others = self.others.iter().filter(|others| !others.is_empty());
        others.copied().flatten().any(|hosted| is_by(&hosted.conductor))
    }
}

impl<O: OrderOut, S: Strategy, const STAMPED: bool> Port<'_, O, S, STAMPED> {
    /// The session that all of these are traded over, if it is one.
    fn session_of_quotes(&self, entries: &[QuoteEntry]) -> Result<usize, Rejected> {
        let mut sessions = entries
            .iter()
            .map(|entry| self.session_of(entry.quote.instrument));
        let first = sessions.next().ok_or(Rejected::Unsupported)?;
        if !sessions.all(|session| session == first) {
            return Err(Rejected::SeveralSessions);
        }
        Ok(first)
    }

    fn symbol_of(&self, instrument: InstrumentId) -> Symbol {
        let traded = self.traded.get(instrument.index()).and_then(Option::as_deref);
        traded.map_or(Symbol::EMPTY, |traded| traded.symbol)
    }
}

impl<O: OrderOut, S: Strategy, const STAMPED: bool> OrderPort for Port<'_, O, S, STAMPED> {
    #[inline]
    fn send(&mut self, _: Nanos, request: &OrderIntent) -> Result<(), Rejected> {
        let (instrument, cause) = (request.instrument(), request.cause());
        let without_cause;
        let request = match self.is_cause_known(self.session_of(instrument), cause) {
            true => request,
            false => {
                without_cause = request.without_cause();
                &without_cause
            }
        };
        let decided = tsc();
        if STAMPED {
            self.probes.mark(Stage::Decide, decided);
        }
        let now = self.clock.nanos_at(decided);
        if self.is_met(|other| other.meets(request)) {
            return Err(Rejected::SelfTrade);
        }
        match *request {
            OrderIntent::New { instrument, .. } => {
                let place = self.session_of(instrument);
                let traded = self
                    .traded
                    .get_mut(instrument.index())
                    .and_then(Option::as_deref_mut);
                let traded = traded.ok_or(Rejected::NoSession)?;
                if let (Some(template), Some(order)) = (&mut traded.template, NewOrder::of(request)) {
                    let session = self.sessions.get_mut(place).ok_or(Rejected::NoSession)?;
                    let bytes = template
                        .send(&mut session.fix, now, &order, Again::GapFill)
                        .map_err(|_| Rejected::NoSession)?;
                    stamp::<STAMPED>(self.probes, Stage::Encode);
                    let sent = session.out.send(bytes);
                    stamp::<STAMPED>(self.probes, Stage::Send);
                    // An order that no message caused has no way from a packet to measure.
                    if STAMPED && self.seq > 0 {
                        self.probes.commit(self.seq);
                    }
                    if let Err(error) = sent {
                        session.failure.get_or_insert(error);
                    }
                    return Ok(());
                }
                let symbol = traded.symbol;
                let message = new_order(request, symbol, now).ok_or(Rejected::Unsupported)?;
                let msg_type = NewOrderSingle::MSG_TYPE;
                self.message(place, now, msg_type, |e, stamp| message.encode(e, stamp))
            }
            OrderIntent::Replace {
                id,
                target,
                venue_id,
                instrument,
                side,
                order_type,
                price,
                stop,
                qty,
                time_in_force,
                cause,
            } => {
                let traded = self.traded.get(instrument.index()).and_then(Option::as_deref);
                let symbol = traded.ok_or(Rejected::NoSession)?.symbol;
                let message = OrderCancelReplaceRequest {
                    cl_ord_id: id.into(),
                    orig_cl_ord_id: target.into(),
                    order_id: number(venue_id),
                    symbol,
                    side,
                    transact_time: now,
                    qty,
                    order_type,
                    price: (order_type == OrderType::Limit).then_some(price),
                    stop,
                    time_in_force,
                    cause: Some(cause),
                };
                let msg_type = OrderCancelReplaceRequest::MSG_TYPE;
                self.message(self.session_of(instrument), now, msg_type, |e, stamp| {
                    message.encode(e, stamp)
                })
            }
            OrderIntent::Cancel {
                id,
                target,
                venue_id,
                instrument,
                side,
                qty,
                cause,
            } => {
                let traded = self.traded.get(instrument.index()).and_then(Option::as_deref);
                let symbol = traded.ok_or(Rejected::NoSession)?.symbol;
                let message = OrderCancelRequest {
                    cl_ord_id: id.into(),
                    orig_cl_ord_id: target.into(),
                    order_id: number(venue_id),
                    symbol,
                    side,
                    transact_time: now,
                    qty,
                    cause: Some(cause),
                };
                let msg_type = OrderCancelRequest::MSG_TYPE;
                self.message(self.session_of(instrument), now, msg_type, |e, stamp| {
                    message.encode(e, stamp)
                })
            }
        }
    }

    /// Kept for no resend, as orders are not.
    fn quote(&mut self, _: Nanos, request: &QuoteIntent<'_>) -> Result<(), Rejected> {
        let (QuoteIntent::Mass {
            id, entries, cause, ..
        }
        | QuoteIntent::Cancel { id, entries, cause }) = *request;
        if self.is_met(|other| other.meets_quotes(request)) {
            return Err(Rejected::SelfTrade);
        }
        let place = self.session_of_quotes(entries)?;
        let cause = self.is_cause_known(place, cause).then_some(cause);
        let now = self.clock.now();
        let mut lines = [QuoteLine::default(); QUOTES_MAX];
        for (line_of, entry) in lines.iter_mut().zip(entries) {
            *line_of = line(entry, self.symbol_of(entry.quote.instrument));
        }
        let lines = &lines[..entries.len().min(QUOTES_MAX)];
        let session = self.sessions.get_mut(place).ok_or(Rejected::NoSession)?;
        if session.fix.config().version < Version::Fix42 {
            return Err(Rejected::Unsupported);
        }
        let sent = match *request {
            QuoteIntent::Mass { resets, .. } => session.fix.send(now, b"i", Again::GapFill, |e, _| {
                put_mass_quote(e, id.0, cause, resets, lines)
            }),
            QuoteIntent::Cancel { .. } => session.fix.send(now, b"Z", Again::GapFill, |e, _| {
                put_cancel_quotes(e, id.0, lines)
            }),
        };
        sent.map_err(|_| Rejected::NoSession)?;
        session.transmit();
        Ok(())
    }
}

/// The bid and the offer of a quote with its names.
fn line(entry: &QuoteEntry, symbol: Symbol) -> QuoteLine {
    QuoteLine {
        name: entry.name,
        symbol,
        sides: entry.quote.sides,
    }
}

fn number(id: Option<OrderId>) -> Id {
    id.map_or(Id::EMPTY, |id| Id::from_number(id.0))
}

/// An order that is not sent from a prepared message.
fn new_order(request: &OrderIntent, symbol: Symbol, now: Nanos) -> Option<NewOrderSingle> {
    let OrderIntent::New {
        id,
        side,
        order_type,
        price,
        stop,
        qty,
        time_in_force,
        cause,
        ..
    } = *request
    else {
        return None;
    };
    Some(NewOrderSingle {
        cl_ord_id: id.into(),
        symbol,
        side,
        transact_time: now,
        qty,
        order_type,
        price: (order_type == OrderType::Limit).then_some(price),
        stop,
        time_in_force,
        cause: Some(cause),
    })
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
    let mut port = Port {
        sessions: &mut hot.sessions,
        routes: &own.routes,
        bits: live.bits,
        probes: &mut hot.probes,
        clock: &hot.clock,
        traded: &mut own.traded,
        others: [before, behind],
        venues: &live.venues,
        source: hot.source,
        seq,
    };
    let markets = Markets::new(&hot.books, live.bits).with(hot.consolidated.as_ref());
    with(&mut own.conductor, markets, &mut port)
}

impl<O: OrderOut, S: Strategy, const STAMPED: bool> EventSink for HotPath<O, STAMPED, Live<S>> {
    #[inline]
    fn on_event(&mut self, event: &MarketEvent) {
        let source = self.source;
        if matches!(event.kind, EventKind::Status | EventKind::Clear) {
            self.keep_at_close(event);
        }
        let live = &mut self.rule;
        let index = (source << live.bits) | event.instrument.index();
        if let Some(known) = live.known.get_mut(index)
            && (!*known || event.kind == EventKind::Definition)
            && live.news[source].len() < live.news[source].capacity()
        {
            *known = true;
            live.news[source].push(event.instrument);
        }
        let has_consolidated = self.consolidated.is_some();
        let is_concerned = |hosted: &Hosted<S>| {
            hosted.hears[source] && (has_consolidated || hosted.conductor.is_concerned(source, event))
        };
        if !live.hosted.iter().any(is_concerned) {
            self.books[source].apply(event);
            return;
        }
        let is_watched = live
            .hosted
            .iter()
            .any(|hosted| hosted.conductor.watches(source, event.instrument));
        if is_watched {
            stamp::<STAMPED>(&mut self.probes, Stage::Decode);
        }
        let books = &mut self.books[source];
        let outcome = match &mut self.consolidated {
            None => Outcome::of(books, event),
            Some(all) => all.apply(source, books, event),
        };
        if is_watched {
            stamp::<STAMPED>(&mut self.probes, Stage::Book);
        }
        let is_grouped = self.rule.is_grouped[source];
        for at in 0..self.rule.hosted.len() {
            if is_concerned(&self.rule.hosted[at]) {
                parts(self, at, event.seq.0, |conductor, markets, port| {
                    conductor.on_event(source, event, outcome, is_grouped, markets, port);
                });
            }
        }
        if let Some(all) = &mut self.consolidated {
            all.told(source, event, is_grouped);
        }
    }

    #[inline]
    fn upcoming(&mut self, instrument: InstrumentId, order_id: OrderId) {
        self.books[self.source].upcoming(instrument, order_id);
    }

    #[inline]
    fn next_distrusted(&mut self) -> Option<InstrumentId> {
        self.books[self.source].next_distrusted()
    }
}

impl<S: Strategy> Rule for Live<S> {
    const WANTS_ALL_FEEDS: bool = true;

    fn count(&self) -> usize {
        self.hosted.len()
    }

    fn name(&self, which: usize) -> &str {
        match self.hosted.get(which) {
            Some(hosted) if self.hosted.len() > 1 => &hosted.name,
            _ => "the rule",
        }
    }

    fn stopped(&self, which: usize) -> Option<RiskReject> {
        self.hosted.get(which)?.conductor.risk().stopped()
    }

    fn is_killed(&self) -> bool {
        let mut all = self.hosted.iter();
        all.any(|hosted| hosted.conductor.risk().is_killed())
    }

    fn gain(&self) -> i64 {
        let gains = self.hosted.iter().map(|hosted| {
            let controls = hosted.conductor.risk().controls();
            controls.gain(StrategyId::Rule)
        });
        gains.fold(0, i64::saturating_add)
    }

    fn counters(&self) -> Counters {
        let mut all = Counters::default();
        for hosted in &self.hosted {
            all.merge(hosted.conductor.counters());
        }
        all
    }

    fn open(&self, session: Option<usize>) -> u32 {
        let of = |hosted: &Hosted<S>| match session {
            None => hosted.conductor.orders().open() + quotes_of(hosted, self.bits, None),
            Some(session) => {
                open_of(hosted, self.bits, session).count() as u32
                    + quotes_of(hosted, self.bits, Some(session))
            }
        };
        self.hosted.iter().map(of).sum()
    }

    fn order(&self, session: usize, id: ClientOrderId) -> Option<&Order> {
        let hosted = self.hosted.get(self.who(id))?;
        let order = hosted.conductor.orders().get(id)?;
        (route_of(hosted, self.bits, order.instrument) == session).then_some(order)
    }

    fn each_open(&self, session: usize, each: &mut dyn FnMut(&Order)) {
        for hosted in &self.hosted {
            open_of(hosted, self.bits, session).for_each(&mut *each);
        }
    }

    fn each_order(&self, session: usize, each: &mut dyn FnMut(&Order)) {
        for hosted in &self.hosted {
            let orders = hosted.conductor.orders().iter();
            orders
                .filter(|order| route_of(hosted, self.bits, order.instrument) == session)
                .for_each(&mut *each);
        }
    }

    fn set_session(&mut self, session: usize, is_up: bool) {
        let bits = self.bits;
        for hosted in &mut self.hosted {
            if !hosted.uses(session) {
                continue;
            }
            hosted.is_up[session] = is_up;
            // One leg of two must not be traded alone: every session that it may need is up, or nothing
            // leaves.
            let are_up = (0..hosted.is_up.len()).all(|at| hosted.is_up[at] || !hosted.uses(at));
            let routes = &hosted.routes;
            let is_lost = |id: InstrumentId| routes.get(id.index() >> bits) == Some(&session);
            hosted.conductor.set_sessions(are_up, |id| !is_up && is_lost(id));
        }
    }

    fn kill(&mut self) {
        self.hosted.iter_mut().for_each(|hosted| hosted.conductor.kill());
    }

    fn revive(&mut self) {
        for hosted in &mut self.hosted {
            hosted.conductor.risk_mut().revive();
        }
    }

    fn cancel_next(&mut self, session: usize, cause: Cause) -> Option<OrderIntent> {
        let bits = self.bits;
        self.hosted.iter_mut().find_map(|hosted| {
            let routes = &hosted.routes;
            let is_meant = |id: InstrumentId| routes.get(id.index() >> bits) == Some(&session);
            hosted.conductor.cancel_next_of(cause, is_meant)
        })
    }

    fn symbol_of(&self, instrument: InstrumentId) -> Option<Symbol> {
        let mut all = self.hosted.iter();
        all.find_map(|hosted| Some(hosted.traded.get(instrument.index())?.as_deref()?.symbol))
    }

    fn position(&self, _: Option<InstrumentId>) -> i64 {
        let of = |hosted: &Hosted<S>| -> i64 {
            let held = hosted.conductor.instruments();
            held.map(|(id, ..)| hosted.conductor.positions().get(id).qty)
                .sum()
        };
        self.hosted.iter().map(of).sum()
    }

    fn callback(&self) -> String {
        let ran = self.hosted.get(self.running);
        let callback = ran.map_or("none", |hosted| hosted.conductor.callback());
        match ran {
            Some(hosted) if self.hosted.len() > 1 => format!("{} of strategy {}", callback, hosted.name),
            _ => callback.to_string(),
        }
    }

    #[inline]
    fn next_timer(&self) -> Option<Nanos> {
        let timers = self
            .hosted
            .iter()
            .filter_map(|hosted| hosted.conductor.next_timer());
        timers.min()
    }

    fn prepare(
        &mut self,
        sources: &[SourceFacts],
        routes: &Routes,
        instruments: u32,
    ) -> Result<Wants, Failure> {
        self.bits = instruments.max(2).next_power_of_two().trailing_zeros();
        self.venues = sources.iter().map(|source| source.venue).collect();
        self.is_grouped = sources
            .iter()
            .map(|source| source.protocol.tells_match_events())
            .collect();
        self.known = vec![false; sources.len() << self.bits];
        self.news = sources
            .iter()
            .map(|_| Vec::with_capacity(1 << self.bits))
            .collect();
        for (place, waiting) in std::mem::take(&mut self.waiting).into_iter().enumerate() {
            let hosted = self.host(waiting, place, sources, routes)?;
            self.hosted.push(hosted);
        }
        let mut symbols: Vec<Symbol> = self
            .hosted
            .iter()
            .flat_map(|hosted| hosted.conductor.consolidated().iter().copied())
            .collect();
        symbols.sort_unstable();
        symbols.dedup();
        Ok(Wants {
            consolidated: (!symbols.is_empty()).then_some((symbols.len() as u32, self.bits)),
        })
    }

    fn start<O: OrderOut>(hot: &mut HotPath<O, true, Self>, now: Nanos) {
        for at in 0..hot.rule.hosted.len() {
            parts(hot, at, 0, |conductor, markets, port| {
                conductor.start(now, markets, port)
            });
        }
    }

    #[inline]
    fn on_time<O: OrderOut>(hot: &mut HotPath<O, true, Self>, now: Nanos) {
        for at in 0..hot.rule.hosted.len() {
            let due = hot.rule.hosted[at].conductor.next_timer();
            if due.is_some_and(|due| due <= now) {
                parts(hot, at, 0, |conductor, markets, port| {
                    conductor.on_time(now, markets, port)
                });
            }
        }
    }

    #[inline]
    fn after_packet<O: OrderOut, C: Channel>(hot: &mut HotPath<O, true, Self>, channel: &C) {
        hot.rule.share();
        if !hot.rule.news[hot.source].is_empty() && hot.sessions.iter().all(OrderSession::is_active) {
            define(hot, channel);
        }
    }

    fn watch<O: OrderOut, C: Channel>(hot: &mut HotPath<O, true, Self>, channel: &C) {
        Self::after_packet(hot, channel);
        for hosted in &mut hot.rule.hosted {
            let lost = hosted
                .conductor
                .take_notes(|note| eprintln!("note: {} {}", note.text, note.value));
            if lost > 0 {
                warn(format_args!(
                    "{lost} notes of the strategy were dropped: more than 1,024 in 0.1 s"
                ));
            }
        }
    }

    fn on_report<O: OrderOut>(
        hot: &mut HotPath<O, true, Self>,
        session: usize,
        now: Nanos,
        report: &OrderReport,
    ) -> Result<Change, ReportError> {
        let at = hot.rule.who(report.id);
        let known = hot.rule.hosted.get(at).and_then(|hosted| {
            let order = hosted.conductor.orders().get(report.id)?;
            Some(route_of(hosted, hot.rule.bits, order.instrument))
        });
        if known.is_some_and(|own| own != session) {
            // A venue that speaks of an order of another one's: what it says of it is not believed.
            if report.kind.is_trade() {
                hot.rule.kill();
            }
            return Err(ReportError::Unknown);
        }
        let done = parts(hot, at, 0, |conductor, markets, port| {
            conductor.on_report(now, report, markets, port)
        });
        hot.rule.share();
        done
    }

    fn on_quotes<O: OrderOut>(
        hot: &mut HotPath<O, true, Self>,
        session: usize,
        now: Nanos,
        answer: &QuoteAnswer,
        names: &[u64],
    ) {
        let id = |id| ClientOrderId(id);
        match *answer {
            QuoteAnswer::Answered { id: of, is_rejected } => {
                let report = QuoteReport::Answered {
                    id: id(of),
                    is_rejected,
                    refused: names,
                };
                quote_report(hot, session, Some(of), now, &report);
            }
            QuoteAnswer::Removed { .. } => {
                for at in 0..hot.rule.hosted.len() {
                    let conductor = &hot.rule.hosted[at].conductor;
                    if let Some(name) = names.iter().find(|name| conductor.is_quote(**name)) {
                        quote_report(hot, session, Some(*name), now, &QuoteReport::Removed { names });
                    }
                }
            }
            QuoteAnswer::Cancelled { id: of, is_done } => {
                let report = QuoteReport::Cancelled { id: id(of), is_done };
                quote_report(hot, session, Some(of), now, &report);
            }
            QuoteAnswer::Left { symbol, open } => {
                for at in 0..hot.rule.hosted.len() {
                    let hosted = &hot.rule.hosted[at];
                    let is_it = |instrument: InstrumentId| {
                        let traded = hosted.traded.get(instrument.index()).and_then(Option::as_deref);
                        traded.is_some_and(|traded| traded.symbol == symbol)
                            && route_of(hosted, hot.rule.bits, instrument) == session
                    };
                    let quotes = hosted.conductor.quotes().filter(|quote| quote.is_open());
                    let mut own = quotes.filter(|quote| is_it(quote.instrument));
                    let Some((name, instrument)) = own.next().map(|quote| (quote.name, quote.instrument))
                    else {
                        continue;
                    };
                    drop(own);
                    let report = QuoteReport::Left {
                        instrument,
                        left: open.map(Qty),
                    };
                    quote_report(hot, session, Some(name), now, &report);
                }
            }
        }
    }

    fn on_quotes_unknown<O: OrderOut>(hot: &mut HotPath<O, true, Self>, session: usize, now: Nanos) {
        quote_report(hot, session, None, now, &QuoteReport::Unknown);
    }

    fn on_quote_trade<O: OrderOut>(
        hot: &mut HotPath<O, true, Self>,
        session: usize,
        now: Nanos,
        report: &ExecutionReport,
    ) -> bool {
        let name = report.cl_ord_id.to_number().unwrap_or_default();
        let at = hot.rule.who(ClientOrderId(name));
        let hosted = hot.rule.hosted.get(at);
        if !hosted.is_some_and(|hosted| hosted.conductor.is_quote(name)) {
            return false;
        }
        let (side, qty, price) = (report.side, report.last_qty, report.last_px.unwrap_or_default());
        let told = match report.exec_type {
            ExecType::Trade => QuoteReport::Filled {
                name,
                side,
                qty,
                price,
                of: (report.price.unwrap_or_default(), report.qty),
            },
            ExecType::TradeCancel => QuoteReport::Broken {
                name,
                side,
                qty,
                price,
            },
            _ => return true,
        };
        quote_report(hot, session, Some(name), now, &told);
        true
    }

    fn cancel_quotes<O: OrderOut>(hot: &mut HotPath<O, true, Self>, session: usize, now: Nanos, again: bool) {
        let bits = hot.rule.bits;
        for at in 0..hot.rule.hosted.len() {
            let hosted = &hot.rule.hosted[at];
            if quotes_of(hosted, bits, Some(session)) == 0 {
                continue;
            }
            let routes = hosted.routes.clone();
            parts(hot, at, 0, |conductor, markets, port| {
                let is_meant = |id: InstrumentId| routes.get(id.index() >> bits) == Some(&session);
                conductor.cancel_quotes_of(now, again, is_meant, markets, port)
            });
        }
    }

    fn finish<O: OrderOut>(hot: &mut HotPath<O, true, Self>, now: Nanos) {
        for at in 0..hot.rule.hosted.len() {
            parts(hot, at, 0, |conductor, markets, port| {
                conductor.stop(now, markets, port)
            });
            let prefix = match hot.rule.hosted.len() {
                1 => String::new(),
                _ => format!("{}: ", hot.rule.hosted[at].name),
            };
            hot.rule.hosted[at]
                .conductor
                .strategy()
                .figures(&mut |name, value| eprintln!("{prefix}{name}: {value}"));
        }
    }
}

/// The session that a strategy's instrument is traded over.
fn route_of<S>(hosted: &Hosted<S>, bits: u32, instrument: InstrumentId) -> usize {
    let source = instrument.index() >> bits;
    hosted.routes.get(source).copied().unwrap_or_default()
}

/// How many of a strategy's quotes are open, over one session or over all.
fn quotes_of<S: Strategy>(hosted: &Hosted<S>, bits: u32, session: Option<usize>) -> u32 {
    let quotes = hosted.conductor.quotes().filter(|quote| quote.is_open());
    let is_over = |instrument| session.is_none_or(|session| route_of(hosted, bits, instrument) == session);
    quotes.filter(|quote| is_over(quote.instrument)).count() as u32
}

/// Tells the strategy whose request or quote `of` is, or all of them, what a venue said.
fn quote_report<O: OrderOut, S: Strategy>(
    hot: &mut HotPath<O, true, Live<S>>,
    session: usize,
    of: Option<u64>,
    now: Nanos,
    report: &QuoteReport<'_>,
) {
    let only = of.map(|of| hot.rule.who(ClientOrderId(of)));
    for at in 0..hot.rule.hosted.len() {
        if only.is_none_or(|only| only == at) && hot.rule.hosted[at].uses(session) {
            parts(hot, at, 0, |conductor, markets, port| {
                conductor.on_quote_report(now, report, markets, port)
            });
        }
    }
    hot.rule.share();
}

/// A strategy's open orders of a session.
fn open_of<S: Strategy>(hosted: &Hosted<S>, bits: u32, session: usize) -> impl Iterator<Item = &Order> {
    let open = hosted.conductor.orders().iter_open();
    open.filter(move |order| route_of(hosted, bits, order.instrument) == session)
}

/// Tells the strategies of a channel's instruments that are new, and prepares their orders.
#[cold]
fn define<O: OrderOut, S: Strategy, C: Channel>(hot: &mut HotPath<O, true, Live<S>>, channel: &C) {
    let (now, source) = (hot.clock.now(), hot.source);
    let mut news = std::mem::take(&mut hot.rule.news[source]);
    for id in news.drain(..) {
        let index = (source << hot.rule.bits) | id.index();
        let Some(instrument) = channel.instrument(id) else {
            hot.rule.known[index] = false;
            continue;
        };
        let is_consolidated = hot
            .rule
            .hosted
            .iter()
            .any(|hosted| hosted.conductor.consolidates(&instrument.symbol));
        if let Some(all) = &mut hot.consolidated
            && is_consolidated
        {
            let named = (id, &instrument.symbol);
            if let Err(error) = all.define(now, source, named, &hot.books[source]) {
                warn(format_args!(
                    "{} of {} is in no consolidated book: {error}",
                    instrument.symbol,
                    channel.venue().name()
                ));
            }
        }
        let point = channel.point_value(id).map(|point| point.raw());
        for at in 0..hot.rule.hosted.len() {
            let hosted = &mut hot.rule.hosted[at];
            if !hosted.hears[source] {
                continue;
            }
            if hosted.conductor.wants(instrument) && hosted.traded[index].is_none() {
                let session = hot.sessions.get(hosted.routes[source]);
                hosted.traded[index] = Some(Box::new(Traded {
                    symbol: instrument.symbol,
                    template: session.and_then(|session| OrderTemplate::new(&session.fix, instrument.symbol)),
                }));
            }
            parts(hot, at, 0, |conductor, markets, port| {
                conductor.define(now, source, instrument, point, markets, port)
            });
        }
        if let Some(all) = &mut hot.consolidated {
            all.forget(source);
        }
    }
    hot.rule.news[source] = news;
}

/// The built-in rule, written as anybody would: for measuring what it costs to be a strategy.
pub struct Taker {
    /// The instrument that it buys.
    pub symbol: Symbol,
    /// Orders that have ended.
    ends: u64,
}

impl Taker {
    /// It buys 100 at once at every new best offer of this instrument.
    pub fn new(symbol: Symbol) -> Taker {
        Taker { symbol, ends: 0 }
    }
}

impl Strategy for Taker {
    fn subscriptions(&self) -> Vec<Subscription> {
        vec![Subscription::Symbol(self.symbol)]
    }

    #[inline]
    fn on_book(&mut self, ctx: &mut Context<'_>, change: &BookChange) {
        if change.is_live()
            && let Some(offer) = change.new_best_price(Side::Ask)
        {
            let _ = ctx.buy_now(change.instrument, 100, offer);
        }
    }

    fn on_order(&mut self, _: &mut Context<'_>, event: &OrderEvent) {
        self.ends += u64::from(!event.order.state.is_open());
    }
}

/// A path in memory around a strategy on instrument 1, with the limits of the built-in rule's.
pub fn memory_path<S: Strategy, const STAMPED: bool>(
    strategy: S,
    books: Books,
    symbol: Symbol,
    clock: Clock,
) -> Result<HotPath<MemoryOut, STAMPED, Live<S>>, Failure> {
    let limits = memory::limits_of_memory(books.config().instruments);
    let config = ConductorConfig {
        feeds: 1,
        instrument_bits: books
            .config()
            .instruments
            .max(2)
            .next_power_of_two()
            .trailing_zeros(),
        max_orders: limits.max_orders,
        risk: limits.risk,
        ..ConductorConfig::default()
    };
    let mut live = Live::alone(strategy, &config);
    live.known.fill(true);
    let mut hot = memory::memory_path_of(MemoryOut::new(), books, live, clock)?;
    let instrument = Instrument {
        id: InstrumentId(1),
        symbol,
        ..Instrument::default()
    };
    let template = OrderTemplate::new(&hot.sessions[0].fix, symbol);
    hot.rule.hosted[0].traded[1] = Some(Box::new(Traded { symbol, template }));
    let now = hot.clock.now();
    parts(&mut hot, 0, 0, |conductor, markets, port| {
        conductor.start(now, markets, port);
        conductor.define(now, 0, &instrument, None, markets, port);
    });
    Ok(hot)
}

/// Fills the orders that are open, up to eight, so that they do not pile up.
pub fn answer<S: Strategy, const STAMPED: bool>(hot: &mut HotPath<MemoryOut, STAMPED, Live<S>>, now: Nanos) {
    for _ in 0..8 {
        let Some(order) = hot.rule.hosted[0].conductor.orders().iter_open().next().copied() else {
            return;
        };
        let (id, kind) = match order.replaces {
            Some(old) if order.is_replacing() => (old, ReportKind::ReplaceRejected { by: order.id }),
            _ => {
                let filled = ReportKind::Filled {
                    qty: order.remaining(),
                    price: order.price,
                    cumulative: order.qty,
                };
                (order.id, filled)
            }
        };
        let report = OrderReport {
            id,
            venue_id: Some(OrderId(id.0)),
            kind,
        };
        // Cannot fail for an open order; if it did, the open-order count would show it.
        let _ = parts(hot, 0, 0, |conductor, markets, port| {
            conductor.on_report(now, &report, markets, port)
        });
    }
}
