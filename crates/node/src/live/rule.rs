//! What the trading thread asks of strategies.

use tickwire_feed::Channel;
use tickwire_fix::{ExecType, ExecutionReport, QuoteAnswer};
use tickwire_kernelpath::Shooting;
use tickwire_market::{Cause, ClientOrderId, Counters, InstrumentId, Nanos, OrderIntent, Price, Qty, Symbol};
use tickwire_receive::hook::ArmingPoint;
use tickwire_receive::receiver::SourceFacts;
use tickwire_trading::strategy::{
    ArmRefusal, Execution, LateExecution, NUMBERS, QuoteReport, Removal, Strategy, place_of,
};
use tickwire_trading::{Change, Order, OrderReport, ReportError, RiskReject};

use super::{Hosted, Live, Mark, arming, define, parts, rehearsing, returning, sides};
use crate::fills::Fill;
use crate::hot::{HotPath, OrderOut, OrderSession};
use crate::record::{self, Origin};
use crate::session::TakenUp;
use crate::trader::{Routes, Rule, Wants};
use tickwire_console::failure::Failure;
use tickwire_console::{note, warn};

impl<S: Strategy> Rule for Live<S> {
    fn wants_all_feeds(&self) -> bool {
        !self.first_channel_alone
    }

    fn count(&self) -> usize {
        self.hosted.len()
    }

    fn name(&self, which: usize) -> &str {
        match self.hosted.get(which) {
            Some(hosted) if self.hosted.len() > 1 => &hosted.name,
            _ => "the rule",
        }
    }

    fn own_name(&self, which: usize) -> &str {
        self.hosted.get(which).map_or("", |hosted| &hosted.name)
    }

    fn stopped(&self, which: usize) -> Option<RiskReject> {
        self.hosted.get(which)?.conductor.risk().stopped()
    }

    fn is_killed(&self) -> bool {
        let mut all = self.hosted.iter();
        all.any(|hosted| hosted.conductor.risk().is_killed())
    }

    fn gain(&self) -> i64 {
        let gains = self.hosted.iter().map(|hosted| hosted.conductor.risk().gain());
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
            let routes = &hosted.wiring.routes;
            let is_lost = |id: InstrumentId| routes.get(id.index() >> bits) == Some(&session);
            hosted.conductor.set_sessions(are_up, |id| !is_up && is_lost(id));
        }
    }

    fn set_silent(&mut self, is_silent: bool) {
        for hosted in &mut self.hosted {
            hosted.conductor.risk_mut().set_silent(is_silent);
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
            let routes = &hosted.wiring.routes;
            let is_meant = |id: InstrumentId| routes.get(id.index() >> bits) == Some(&session);
            hosted.conductor.cancel_next_of(cause, is_meant)
        })
    }

    fn cancel_one(&mut self, session: usize, id: ClientOrderId) -> Option<OrderIntent> {
        let at = self.who(id);
        self.order(session, id)?;
        self.hosted[at].conductor.cancel_one(Cause::default(), id)
    }

    fn forget_cancel(&mut self, session: usize, id: ClientOrderId) {
        let at = self.who(id);
        if self.order(session, id).is_some() {
            self.hosted[at].conductor.forget_cancel(id);
        }
    }

    fn symbol_of(&self, instrument: InstrumentId) -> Option<Symbol> {
        let mut all = self.hosted.iter();
        all.find_map(|hosted| Some(hosted.wiring.traded.get(instrument.index())?.as_deref()?.symbol))
    }

    fn position(&self, _: Option<InstrumentId>) -> i64 {
        let of = |hosted: &Hosted<S>| -> i64 {
            let held = hosted.conductor.instruments();
            let held = held.map(|(id, ..)| hosted.conductor.positions().get(id).qty);
            let before = hosted.before.iter().map(|(_, late)| late.signed());
            held.chain(before).sum()
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
        started: Nanos,
    ) -> Result<Wants, Failure> {
        self.bits = instruments.max(2).next_power_of_two().trailing_zeros();
        self.venues = sources.iter().map(|source| source.venue).collect();
        self.is_grouped = sources
            .iter()
            .map(|source| source.protocol.tells_match_events())
            .collect();
        self.marks = vec![Mark::New; sources.len() << self.bits];
        for source in 0..sources.len() {
            // The whole feed is no instrument.
            self.marks[(source << self.bits) | InstrumentId::WHOLE_FEED.index()] = Mark::Known;
        }
        self.news = sources
            .iter()
            .map(|_| Vec::with_capacity(1 << self.bits))
            .collect();
        for (place, waiting) in std::mem::take(&mut self.waiting).into_iter().enumerate() {
            let hosted = self.host(waiting, (place, started), sources, routes)?;
            self.hosted.push(hosted);
        }
        let mut symbols: Vec<Symbol> = self
            .hosted
            .iter()
            .flat_map(|hosted| hosted.conductor.consolidated().iter().copied())
            .collect();
        symbols.sort_unstable();
        symbols.dedup();
        self.hears_everything = self
            .is_grouped
            .iter()
            .map(|is_grouped| *is_grouped || !symbols.is_empty())
            .collect();
        Ok(Wants {
            consolidated: (!symbols.is_empty()).then_some((symbols.len() as u32, self.bits)),
        })
    }

    fn restore(&mut self, session: usize, fills: &[Fill<Origin>]) -> Result<(), Failure> {
        let names = self.hosted.iter().map(|hosted| record::origin(&hosted.name));
        let names: Vec<Symbol> = names.collect::<Result<_, _>>()?;
        let twice = (1..names.len()).find(|at| names[..*at].contains(&names[*at]));
        if let Some(twice) = twice {
            return Err(Failure::config(format!(
                "trader.state: two strategies are called {}: positions are kept by their names",
                names[twice]
            )));
        }
        let place_of = |strategy: &Symbol| names.iter().position(|name| name == strategy);
        for (strategy, symbol, held) in record::positions(fills) {
            let is_here = place_of(&strategy).is_some_and(|at| self.hosted[at].uses(session));
            if !is_here {
                return Err(Failure::config(format!(
                    "trader.state: strategy {strategy} holds {held} of {symbol}, and is not here, or does not trade over that session any more: \
                     start it, or move the state away once nothing is held"
                )));
            }
        }
        for fill in fills {
            if let Some(at) = place_of(&fill.source.strategy) {
                let first = at as u64 * NUMBERS + 1;
                let late = record::late(fill, (first, self.hosted[at].conductor.first_name()));
                self.hosted[at].before.push((session, late));
            }
        }
        for hosted in self.hosted.iter_mut().filter(|hosted| hosted.uses(session)) {
            hosted.conductor.hold_what_is_sent_again();
        }
        Ok(())
    }

    fn start<O: OrderOut, const STAMPED: bool>(hot: &mut HotPath<O, STAMPED, Self>, now: Nanos) {
        super::start(hot, now);
    }

    #[inline]
    fn on_time<O: OrderOut, const STAMPED: bool>(hot: &mut HotPath<O, STAMPED, Self>, now: Nanos) {
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
    fn after_packet<O: OrderOut, C: Channel, const STAMPED: bool>(
        hot: &mut HotPath<O, STAMPED, Self>,
        channel: &C,
        now: Nanos,
    ) {
        packet(hot, now);
        hot.rule.share();
        define_news(hot, channel);
    }

    fn watch<O: OrderOut, C: Channel, const STAMPED: bool>(hot: &mut HotPath<O, STAMPED, Self>, channel: &C) {
        define_news(hot, channel);
        for hosted in &mut hot.rule.hosted {
            let lost = hosted
                .conductor
                .take_notes(|said| note(format_args!("note: {} {}", said.text, said.value)));
            if lost > 0 {
                warn(format_args!(
                    "{lost} notes of the strategy were dropped: more than 1,024 in 0.1 s"
                ));
            }
        }
    }

    fn on_report<O: OrderOut, const STAMPED: bool>(
        hot: &mut HotPath<O, STAMPED, Self>,
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

    fn on_quotes<O: OrderOut, const STAMPED: bool>(
        hot: &mut HotPath<O, STAMPED, Self>,
        session: usize,
        now: Nanos,
        answer: &QuoteAnswer,
        (asked, names): (Option<u64>, &[u64]),
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
            QuoteAnswer::Removed { why } => {
                let why = match why {
                    b'F' => Removal::Protection,
                    _ => Removal::Other,
                };
                for at in 0..hot.rule.hosted.len() {
                    let conductor = &hot.rule.hosted[at].conductor;
                    if let Some(name) = names.iter().find(|name| conductor.is_quote(**name)) {
                        let report = QuoteReport::Removed { names, why };
                        quote_report(hot, session, Some(*name), now, &report);
                    }
                }
            }
            QuoteAnswer::Cancelled { id: of, is_done } => {
                if sides::cancelled(hot, session, now, of, is_done) {
                    return;
                }
                let report = QuoteReport::Cancelled { id: id(of), is_done };
                quote_report(hot, session, Some(of), now, &report);
            }
            QuoteAnswer::Left { open, .. } if asked.is_some() => {
                let of = asked.unwrap_or_default();
                let report = QuoteReport::Status {
                    id: id(of),
                    left: open.map(Qty),
                };
                quote_report(hot, session, Some(of), now, &report);
            }
            QuoteAnswer::Left { symbol, open } => {
                for at in 0..hot.rule.hosted.len() {
                    let hosted = &hot.rule.hosted[at];
                    let is_it = |instrument: InstrumentId| {
                        let traded = hosted
                            .wiring
                            .traded
                            .get(instrument.index())
                            .and_then(Option::as_deref);
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

    fn on_quotes_unknown<O: OrderOut, const STAMPED: bool>(
        hot: &mut HotPath<O, STAMPED, Self>,
        session: usize,
        now: Nanos,
    ) {
        quote_report(hot, session, None, now, &QuoteReport::Unknown);
    }

    fn on_quote_report<O: OrderOut, const STAMPED: bool>(
        hot: &mut HotPath<O, STAMPED, Self>,
        session: usize,
        now: Nanos,
        report: &ExecutionReport,
    ) -> bool {
        if let Some(is_known) = sides::report(hot, session, now, report) {
            return is_known;
        }
        let name = report.cl_ord_id.to_number().unwrap_or_default();
        let at = hot.rule.who(ClientOrderId(name));
        let Some(hosted) = hot
            .rule
            .hosted
            .get(at)
            .filter(|hosted| hosted.conductor.is_quote(name))
        else {
            return false;
        };
        if !matches!(report.exec_type, ExecType::Trade | ExecType::TradeCancel) {
            return true;
        }
        // In a process before this one the name may have been another instrument's.
        let is_known = hosted
            .conductor
            .quotes()
            .nth(place_of(name).into())
            .is_some_and(|own| own.name == name && hosted.wiring.is_of(own.instrument, &report.symbol));
        if is_known {
            let told = executed(report, name);
            quote_report(hot, session, Some(name), now, &told);
        }
        is_known
    }

    fn on_quote_reject<O: OrderOut, const STAMPED: bool>(
        hot: &mut HotPath<O, STAMPED, Self>,
        session: usize,
        now: Nanos,
        name: u64,
    ) -> bool {
        sides::rejected(hot, session, now, name)
    }

    fn on_late<O: OrderOut, const STAMPED: bool>(
        hot: &mut HotPath<O, STAMPED, Self>,
        session: usize,
        now: Nanos,
        report: &ExecutionReport,
        is_again: bool,
    ) -> bool {
        let mut is_booked = false;
        // Where what was traded is kept, it is known whose it was.
        let keeps = hot.sessions[session].record.is_some();
        let owner = hot
            .rule
            .who(ClientOrderId(report.cl_ord_id.to_number().unwrap_or(0)));
        for at in 0..hot.rule.hosted.len() {
            let hosted = &hot.rule.hosted[at];
            if is_booked || !hosted.uses(session) || (keeps && at != owner) {
                continue;
            }
            let mut known = hosted.conductor.instruments();
            let instrument = known
                .find(|(id, symbol, _)| {
                    *symbol == report.symbol && route_of(hosted, hot.rule.bits, *id) == session
                })
                .map(|(id, ..)| id);
            drop(known);
            let late = LateExecution {
                symbol: report.symbol,
                instrument,
                number: report.cl_ord_id.to_number(),
                side: report.side,
                qty: report.last_qty,
                price: report.last_px.unwrap_or_default(),
                is_broken: report.exec_type == ExecType::TradeCancel,
                is_again,
            };
            is_booked = parts(hot, at, 0, |conductor, markets, port| {
                conductor.on_late_execution(now, &late, markets, port)
            });
            if is_booked && keeps && instrument.is_none() {
                hot.rule.hosted[at].before.push((session, late));
            }
        }
        hot.rule.share();
        is_booked
    }

    fn set_execution(&mut self, execution: Option<Execution>) {
        for hosted in &mut self.hosted {
            hosted.conductor.set_execution(execution);
        }
    }

    fn ends_with_session(&self, session: usize) -> bool {
        let mut users = self
            .hosted
            .iter()
            .filter(|hosted| hosted.uses(session))
            .peekable();
        users.peek().is_some() && users.all(|hosted| hosted.ends_with_session)
    }

    fn on_session<O: OrderOut, const STAMPED: bool>(
        hot: &mut HotPath<O, STAMPED, Self>,
        session: usize,
        is_up: bool,
        now: Nanos,
    ) {
        hot.rule.set_session(session, is_up);
        returning::tell(hot, session, now);
    }

    fn lose<O: OrderOut, const STAMPED: bool>(
        hot: &mut HotPath<O, STAMPED, Self>,
        session: usize,
        now: Nanos,
    ) {
        returning::lose(hot, session, now);
    }

    fn take_up<O: OrderOut, const STAMPED: bool>(
        hot: &mut HotPath<O, STAMPED, Self>,
        session: usize,
        now: Nanos,
    ) -> TakenUp {
        returning::take_up(hot, session, now)
    }

    #[cold]
    fn on_distrust<O: OrderOut, const STAMPED: bool>(
        hot: &mut HotPath<O, STAMPED, Self>,
        session: usize,
        now: Nanos,
    ) -> bool {
        let mut is_seen_to = true;
        for at in 0..hot.rule.hosted.len() {
            if hot.rule.hosted[at].uses(session) {
                is_seen_to &= parts(hot, at, 0, |conductor, markets, port| {
                    conductor.on_distrust(now, markets, port)
                });
            }
        }
        is_seen_to
    }

    #[cold]
    fn on_command<O: OrderOut, const STAMPED: bool>(
        hot: &mut HotPath<O, STAMPED, Self>,
        words: &str,
        now: Nanos,
    ) {
        for at in 0..hot.rule.hosted.len() {
            parts(hot, at, 0, |conductor, markets, port| {
                conductor.on_command(now, words, markets, port)
            });
        }
    }

    fn reconcile_quotes(&mut self, now: Nanos, every_ns: u64) {
        for hosted in &mut self.hosted {
            hosted.conductor.reconcile_quotes(now, every_ns);
        }
    }

    #[inline]
    fn on_idle<O: OrderOut, const STAMPED: bool>(hot: &mut HotPath<O, STAMPED, Self>, now: Nanos) {
        for at in 0..hot.rule.hosted.len() {
            parts(hot, at, 0, |conductor, markets, port| {
                conductor.on_idle(now, markets, port);
                conductor.rehearse(now, markets, port);
            });
        }
    }

    fn rehearsed<O: OrderOut, const STAMPED: bool>(
        hot: &HotPath<O, STAMPED, Self>,
    ) -> Option<(InstrumentId, Price)> {
        rehearsing::rehearsed(hot)
    }

    fn begin_rehearsal<O: OrderOut, const STAMPED: bool>(
        hot: &mut HotPath<O, STAMPED, Self>,
    ) -> Option<usize> {
        rehearsing::begin(hot)
    }

    fn rehearse_events<O: OrderOut, const STAMPED: bool>(hot: &mut HotPath<O, STAMPED, Self>, now: Nanos) {
        rehearsing::events(hot, now);
    }

    fn end_rehearsal<O: OrderOut, const STAMPED: bool>(hot: &mut HotPath<O, STAMPED, Self>) {
        rehearsing::end(hot);
    }

    #[inline]
    fn on_turn<O: OrderOut, const STAMPED: bool>(hot: &mut HotPath<O, STAMPED, Self>, now: Nanos) {
        for at in 0..hot.rule.hosted.len() {
            parts(hot, at, 0, |conductor, markets, port| {
                conductor.on_turn(now, markets, port)
            });
        }
    }

    #[inline]
    fn settle<O: OrderOut, const STAMPED: bool>(hot: &mut HotPath<O, STAMPED, Self>, now: Nanos) {
        sides::settle(hot, now);
        hot.let_go();
    }

    fn cancel_quotes<O: OrderOut, const STAMPED: bool>(
        hot: &mut HotPath<O, STAMPED, Self>,
        session: usize,
        now: Nanos,
        again: bool,
    ) {
        let bits = hot.rule.bits;
        for at in 0..hot.rule.hosted.len() {
            let hosted = &hot.rule.hosted[at];
            if quotes_of(hosted, bits, Some(session)) == 0 {
                continue;
            }
            let routes = hosted.wiring.routes.clone();
            parts(hot, at, 0, |conductor, markets, port| {
                let is_meant = |id: InstrumentId| routes.get(id.index() >> bits) == Some(&session);
                conductor.cancel_quotes_of(now, again, is_meant, markets, port)
            });
        }
    }

    fn pre_arms(&self) -> bool {
        let mut waiting = self.waiting.iter().map(|hosting| hosting.strategy.pre_arms());
        let mut hosted = self
            .hosted
            .iter()
            .map(|hosted| hosted.conductor.strategy().pre_arms());
        waiting.any(|arms| arms) || hosted.any(|arms| arms)
    }

    fn set_arming(&mut self, arms: Result<(), ArmRefusal>) {
        for hosted in &mut self.hosted {
            hosted.wiring.arms = arms;
        }
    }

    #[inline]
    fn to_arm(&self) -> Option<(usize, InstrumentId)> {
        let armed = self.hosted.first()?.conductor.armed()?;
        let instrument = armed.awaited.instrument;
        let local = InstrumentId(instrument.0 & ((1 << self.bits) - 1));
        (!armed.is_placed).then_some((instrument.index() >> self.bits, local))
    }

    fn arm<O: OrderOut, const STAMPED: bool>(
        hot: &mut HotPath<O, STAMPED, Self>,
        now: Nanos,
        point: &ArmingPoint,
    ) {
        arming::arm(hot, now, point);
    }

    fn end_armed<O: OrderOut, const STAMPED: bool>(
        hot: &mut HotPath<O, STAMPED, Self>,
        now: Nanos,
        told: Shooting,
    ) {
        arming::end(hot, now, arming::end_of(told));
    }

    fn finish<O: OrderOut, const STAMPED: bool>(hot: &mut HotPath<O, STAMPED, Self>, now: Nanos) {
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
                .figures(&mut |name, value| note(format_args!("{prefix}{name}: {value}")));
        }
    }
}

/// Tells of instruments that are new, once every session is on.
fn define_news<O: OrderOut, S: Strategy, C: Channel, const STAMPED: bool>(
    hot: &mut HotPath<O, STAMPED, Live<S>>,
    channel: &C,
) {
    if !hot.rule.news[hot.source].is_empty() && hot.sessions.iter().all(OrderSession::is_active) {
        define(hot, channel);
    }
}

/// A packet of the channel in hand is over.
#[inline]
pub(super) fn packet<O: OrderOut, S: Strategy, const STAMPED: bool>(
    hot: &mut HotPath<O, STAMPED, Live<S>>,
    now: Nanos,
) {
    let source = hot.source;
    for at in 0..hot.rule.hosted.len() {
        if hot.rule.hosted[at].hears[source] {
            parts(hot, at, 0, |conductor, markets, port| {
                conductor.on_packet(now, source, markets, port)
            });
        }
    }
}

/// What a report of a trade of a quote is to its strategy.
pub(super) fn executed(report: &ExecutionReport, name: u64) -> QuoteReport<'static> {
    let (side, qty, price) = (report.side, report.last_qty, report.last_px.unwrap_or_default());
    match report.exec_type {
        ExecType::TradeCancel => QuoteReport::Broken {
            name,
            side,
            qty,
            price,
        },
        _ => QuoteReport::Filled {
            name,
            side,
            qty,
            price,
            of: (report.price.unwrap_or_default(), report.qty),
        },
    }
}

/// The session that a strategy's instrument is traded over.
fn route_of<S>(hosted: &Hosted<S>, bits: u32, instrument: InstrumentId) -> usize {
    let source = instrument.index() >> bits;
    hosted.wiring.routes.get(source).copied().unwrap_or_default()
}

/// How many of a strategy's quotes are open, over one session or over all.
fn quotes_of<S: Strategy>(hosted: &Hosted<S>, bits: u32, session: Option<usize>) -> u32 {
    let quotes = hosted.conductor.quotes().filter(|quote| quote.is_open());
    let is_over = |instrument| session.is_none_or(|session| route_of(hosted, bits, instrument) == session);
    quotes.filter(|quote| is_over(quote.instrument)).count() as u32
}

/// Tells the strategy whose request or quote `of` is, or all of them, what a venue said.
pub(super) fn quote_report<O: OrderOut, S: Strategy, const STAMPED: bool>(
    hot: &mut HotPath<O, STAMPED, Live<S>>,
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
