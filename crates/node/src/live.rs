//! A strategy of one's own on the trading thread: the same loop, books and session as the built-in rule's.

use std::io;

use tickwire_book::{Books, BooksConfig};
use tickwire_feed::Channel;
use tickwire_fix::{
    AppMessage, Id, NewOrder, NewOrderSingle, OrderCancelReplaceRequest, OrderCancelRequest, OrderTemplate,
    Session,
};
use tickwire_lab::{Probes, Stage};
use tickwire_market::{
    Cause, Counters, EventKind, EventSink, Instrument, InstrumentId, MarketEvent, Nanos, OrderId,
    OrderIntent, OrderType, Side, Symbol,
};
use tickwire_runtime::clock::{Clock, tsc};
use tickwire_trading::strategy::{
    BookChange, Conductor, ConductorConfig, Context, Markets, OrderEvent, OrderPort, Outcome, Rejected,
    Strategy, Subscription,
};
use tickwire_trading::{Change, OrderReport, Orders, ReportError, ReportKind, Risk};

use crate::hot::{HotPath, OrderOut, stamp};
use crate::memory::{self, MemoryOut};
use crate::trader::Rule;
use tickwire_console::failure::Failure;
use tickwire_console::warn;
use tickwire_venues::protocol::Protocol;

/// An instrument that may be traded.
struct Traded {
    symbol: Symbol,
    template: Option<OrderTemplate>,
}

/// A strategy with what its orders are written with.
pub struct Live<S> {
    conductor: Conductor<S>,
    bits: u32,
    is_grouped: bool,
    /// By instrument; none of those that nobody subscribed to.
    traded: Vec<Option<Box<Traded>>>,
    /// Which instruments the strategy was told of, and those that are new.
    known: Vec<bool>,
    news: Vec<InstrumentId>,
}

impl<S: Strategy> Live<S> {
    /// A strategy that nobody has told of any instrument yet. Everything that it needs is allocated here, for 2 to the power of
    /// `config.instrument_bits` instruments.
    pub fn new(strategy: S, config: &ConductorConfig) -> Live<S> {
        let instruments = 1_usize << config.instrument_bits;
        Live {
            conductor: Conductor::new(strategy, config),
            bits: config.instrument_bits,
            is_grouped: false,
            traded: (0..instruments).map(|_| None).collect(),
            known: vec![false; instruments],
            news: Vec::with_capacity(instruments),
        }
    }
}

/// Where the strategy's requests go: into the session and out, inside the callback.
struct Port<'a, O, const STAMPED: bool> {
    session: &'a mut Session,
    out: &'a mut O,
    probes: &'a mut Probes,
    clock: &'a Clock,
    failure: &'a mut Option<io::Error>,
    traded: &'a mut [Option<Box<Traded>>],
    seq: u64,
}

impl<O: OrderOut, const STAMPED: bool> Port<'_, O, STAMPED> {
    fn transmit(&mut self) {
        let mut chunk = [0_u8; 4096];
        while let Some(bytes) = self.session.poll_transmit(&mut chunk) {
            if let Err(error) = self.out.send(bytes) {
                self.failure.get_or_insert(error);
                return;
            }
        }
    }

    /// Sends a message that is kept for no resend: see [`crate::hot`].
    fn message(&mut self, now: Nanos, message: &AppMessage) -> Result<(), Rejected> {
        let sent = self.session.send_passing(now, message);
        sent.map_err(|_| Rejected::NoSession)?;
        self.transmit();
        Ok(())
    }
}

impl<O: OrderOut, const STAMPED: bool> OrderPort for Port<'_, O, STAMPED> {
    #[inline]
    fn send(&mut self, _: Nanos, request: &OrderIntent) -> Result<(), Rejected> {
        let decided = tsc();
        if STAMPED {
            self.probes.mark(Stage::Decide, decided);
        }
        let now = self.clock.nanos_at(decided);
        match *request {
            OrderIntent::New { instrument, .. } => {
                let traded = self
                    .traded
                    .get_mut(instrument.index())
                    .and_then(Option::as_deref_mut);
                let traded = traded.ok_or(Rejected::NoSession)?;
                if let (Some(template), Some(order)) = (&mut traded.template, NewOrder::of(request)) {
                    let bytes = self
                        .session
                        .encode_passing_order(now, template, &order)
                        .map_err(|_| Rejected::NoSession)?;
                    stamp::<STAMPED>(self.probes, Stage::Encode);
                    let sent = self.out.send(bytes);
                    stamp::<STAMPED>(self.probes, Stage::Send);
                    // An order that no message caused has no way from a packet to measure.
                    if STAMPED && self.seq > 0 {
                        self.probes.commit(self.seq);
                    }
                    if let Err(error) = sent {
                        self.failure.get_or_insert(error);
                    }
                    return Ok(());
                }
                let symbol = traded.symbol;
                let message = new_order(request, symbol, now).ok_or(Rejected::Unsupported)?;
                self.message(now, &message)
            }
            OrderIntent::Replace {
                id,
                target,
                venue_id,
                instrument,
                side,
                price,
                qty,
                time_in_force,
                cause,
            } => {
                let traded = self.traded.get(instrument.index()).and_then(Option::as_deref);
                let symbol = traded.ok_or(Rejected::NoSession)?.symbol;
                let message = AppMessage::OrderCancelReplaceRequest(OrderCancelReplaceRequest {
                    cl_ord_id: id.into(),
                    orig_cl_ord_id: target.into(),
                    order_id: number(venue_id),
                    symbol,
                    side,
                    transact_time: now,
                    qty,
                    order_type: OrderType::Limit,
                    price: Some(price),
                    time_in_force,
                    cause: Some(cause),
                });
                self.message(now, &message)
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
                let message = AppMessage::OrderCancelRequest(OrderCancelRequest {
                    cl_ord_id: id.into(),
                    orig_cl_ord_id: target.into(),
                    order_id: number(venue_id),
                    symbol,
                    side,
                    transact_time: now,
                    qty,
                    cause: Some(cause),
                });
                self.message(now, &message)
            }
        }
    }
}

fn number(id: Option<OrderId>) -> Id {
    id.map_or(Id::EMPTY, |id| Id::from_number(id.0))
}

/// An order that is not sent from a prepared message.
fn new_order(request: &OrderIntent, symbol: Symbol, now: Nanos) -> Option<AppMessage> {
    let OrderIntent::New {
        id,
        side,
        order_type,
        price,
        qty,
        time_in_force,
        cause,
        ..
    } = *request
    else {
        return None;
    };
    Some(AppMessage::NewOrderSingle(NewOrderSingle {
        cl_ord_id: id.into(),
        symbol,
        side,
        transact_time: now,
        qty,
        order_type,
        price: (order_type == OrderType::Limit).then_some(price),
        time_in_force,
        cause: Some(cause),
    }))
}

/// Lends the path's parts: the strategy, its markets, and where its requests go.
fn parts<O, S, const STAMPED: bool, T>(
    hot: &mut HotPath<O, STAMPED, Live<S>>,
    seq: u64,
    with: impl FnOnce(&mut Conductor<S>, Markets<'_>, &mut Port<'_, O, STAMPED>) -> T,
) -> T {
    let live = &mut hot.rule;
    let mut port = Port {
        session: &mut hot.session,
        out: &mut hot.out,
        probes: &mut hot.probes,
        clock: &hot.clock,
        failure: &mut hot.failure,
        traded: &mut live.traded,
        seq,
    };
    let markets = Markets::new(std::slice::from_ref(&hot.books), live.bits);
    with(&mut live.conductor, markets, &mut port)
}

impl<O: OrderOut, S: Strategy, const STAMPED: bool> EventSink for HotPath<O, STAMPED, Live<S>> {
    #[inline]
    fn on_event(&mut self, event: &MarketEvent) {
        if matches!(event.kind, EventKind::Status | EventKind::Clear) {
            self.keep_at_close(event);
        }
        if let Some(known) = self.rule.known.get_mut(event.instrument.index())
            && (!*known || event.kind == EventKind::Definition)
            && self.rule.news.len() < self.rule.news.capacity()
        {
            *known = true;
            self.rule.news.push(event.instrument);
        }
        let is_watched = self.rule.conductor.watches(0, event.instrument);
        if is_watched {
            stamp::<STAMPED>(&mut self.probes, Stage::Decode);
        }
        let outcome = Outcome::of(&mut self.books, event);
        if is_watched {
            stamp::<STAMPED>(&mut self.probes, Stage::Book);
        }
        let is_grouped = self.rule.is_grouped;
        parts(self, event.seq.0, |conductor, markets, port| {
            conductor.on_event(0, event, outcome, is_grouped, markets, port);
        });
    }

    #[inline]
    fn upcoming(&mut self, instrument: InstrumentId, order_id: OrderId) {
        self.books.upcoming(instrument, order_id);
    }

    #[inline]
    fn next_distrusted(&mut self) -> Option<InstrumentId> {
        self.books.next_distrusted()
    }
}

impl<S: Strategy> Rule for Live<S> {
    fn orders(&self) -> &Orders {
        self.conductor.orders()
    }

    fn risk(&self) -> &Risk {
        self.conductor.risk()
    }

    fn risk_mut(&mut self) -> &mut Risk {
        self.conductor.risk_mut()
    }

    fn counters(&self) -> &Counters {
        self.conductor.counters()
    }

    fn set_session(&mut self, is_up: bool) {
        self.conductor.set_session(is_up);
    }

    fn kill(&mut self) {
        self.conductor.kill();
    }

    fn cancel_next(&mut self, cause: Cause) -> Option<OrderIntent> {
        self.conductor.cancel_next(cause)
    }

    fn symbol_of(&self, instrument: InstrumentId) -> Option<Symbol> {
        let traded = self.traded.get(instrument.index())?.as_deref()?;
        Some(traded.symbol)
    }

    fn position(&self, _: Option<InstrumentId>) -> i64 {
        let held = self.conductor.instruments();
        held.map(|(id, ..)| self.conductor.positions().get(id).qty).sum()
    }

    fn callback(&self) -> &'static str {
        self.conductor.callback()
    }

    #[inline]
    fn next_timer(&self) -> Option<Nanos> {
        self.conductor.next_timer()
    }

    fn prepare(&mut self, protocol: Protocol, _: &BooksConfig) {
        self.is_grouped = protocol.tells_match_events();
    }

    fn start<O: OrderOut>(hot: &mut HotPath<O, true, Self>, now: Nanos) {
        parts(hot, 0, |conductor, markets, port| {
            conductor.start(now, markets, port)
        });
    }

    #[inline]
    fn on_time<O: OrderOut>(hot: &mut HotPath<O, true, Self>, now: Nanos) {
        if hot.rule.conductor.next_timer().is_some_and(|at| at <= now) {
            parts(hot, 0, |conductor, markets, port| {
                conductor.on_time(now, markets, port)
            });
        }
    }

    #[inline]
    fn after_packet<O: OrderOut, C: Channel>(hot: &mut HotPath<O, true, Self>, channel: &C) {
        if !hot.rule.news.is_empty() && hot.session.status() == tickwire_fix::Status::Active {
            define(hot, channel);
        }
    }

    fn watch<O: OrderOut, C: Channel>(hot: &mut HotPath<O, true, Self>, channel: &C, _: Symbol) {
        if !hot.rule.news.is_empty() {
            define(hot, channel);
        }
        let lost = hot
            .rule
            .conductor
            .take_notes(|note| eprintln!("note: {} {}", note.text, note.value));
        if lost > 0 {
            warn(format_args!(
                "{lost} notes of the strategy were dropped: more than 1,024 in 0.1 s"
            ));
        }
    }

    fn on_report<O: OrderOut>(
        hot: &mut HotPath<O, true, Self>,
        now: Nanos,
        report: &OrderReport,
    ) -> Result<Change, ReportError> {
        parts(hot, 0, |conductor, markets, port| {
            conductor.on_report(now, report, markets, port)
        })
    }

    fn finish<O: OrderOut>(hot: &mut HotPath<O, true, Self>, now: Nanos) {
        parts(hot, 0, |conductor, markets, port| {
            conductor.stop(now, markets, port)
        });
        hot.rule
            .conductor
            .strategy()
            .figures(&mut |name, value| eprintln!("{name}: {value}"));
    }
}

/// Tells the strategy of instruments that are new, and prepares their orders.
#[cold]
fn define<O: OrderOut, S: Strategy, C: Channel>(hot: &mut HotPath<O, true, Live<S>>, channel: &C) {
    let now = hot.clock.now();
    for id in std::mem::take(&mut hot.rule.news) {
        let Some(instrument) = channel.instrument(id) else {
            hot.rule.known[id.index()] = false;
            continue;
        };
        let is_wanted = hot.rule.conductor.wants(instrument);
        if is_wanted && hot.rule.traded[id.index()].is_none() {
            hot.rule.traded[id.index()] = Some(Box::new(Traded {
                symbol: instrument.symbol,
                template: hot.session.order_template(instrument.symbol),
            }));
        }
        let point = channel.point_value(id).map(|point| point.raw());
        parts(hot, 0, |conductor, markets, port| {
            conductor.define(now, 0, instrument, point, markets, port)
        });
    }
    let room = hot.rule.known.len();
    hot.rule.news.reserve(room);
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
    };
    let mut live = Live::new(strategy, &config);
    live.known.fill(true);
    let mut hot = memory::memory_path_of(MemoryOut::new(), books, live, clock)?;
    let instrument = Instrument {
        id: InstrumentId(1),
        symbol,
        ..Instrument::default()
    };
    hot.rule.traded[1] = Some(Box::new(Traded {
        symbol,
        template: hot.session.order_template(symbol),
    }));
    let now = hot.clock.now();
    parts(&mut hot, 0, |conductor, markets, port| {
        conductor.start(now, markets, port);
        conductor.define(now, 0, &instrument, None, markets, port);
    });
    Ok(hot)
}

/// Fills the orders that are open, up to eight, so that they do not pile up.
pub fn answer<S: Strategy, const STAMPED: bool>(hot: &mut HotPath<MemoryOut, STAMPED, Live<S>>, now: Nanos) {
    for _ in 0..8 {
        let Some(order) = hot.rule.conductor.orders().iter_open().next().copied() else {
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
        let _ = parts(hot, 0, |conductor, markets, port| {
            conductor.on_report(now, &report, markets, port)
        });
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use tickwire_feed::Line;
    use tickwire_market::{ClientOrderId, Counter, Price, Qty};
    use tickwire_rig::recorded::{self, Recorded};
    use tickwire_runtime::alloc::count_allocations;
    use tickwire_trading::strategy::{Ticket, TimerId};

    /// Everything else that a strategy can do, at every change of the book.
    struct Busy {
        symbol: Symbol,
    }

    impl Strategy for Busy {
        fn subscriptions(&self) -> Vec<Subscription> {
            vec![Subscription::Symbol(self.symbol)]
        }

        fn on_book(&mut self, ctx: &mut Context<'_>, change: &BookChange) {
            let book = ctx.book(change.instrument);
            let depth = book.map_or(0, |book| book.levels(Side::Bid).map(|l| l.qty.0).sum());
            ctx.note("depth", depth as i64);
            ctx.set_timer(TimerId(1), ctx.now().after(1_000));
            if let Some((bid, _)) = change.after.best(Side::Bid) {
                let above = |units: i64| Price::from_raw(bid.raw() + units * Price::ONE_RAW);
                let _ = ctx.submit(Ticket::market(Side::Bid, change.instrument, 1));
                if let Ok(id) = ctx.sell(change.instrument, 1, above(2)) {
                    let _ = ctx.replace(id, 2, above(3));
                    let _ = ctx.cancel(id);
                }
            }
        }
    }

    #[test]
    fn the_rule_as_a_strategy_sends_the_rules_orders_and_allocates_nothing() {
        let session = Recorded::generate(7, 100_000, 50);
        let clock = Clock::calibrate();
        let symbol = recorded::first_symbol();
        for packets in [session.packets(1), session.packets(30)] {
            let mut feed = recorded::feed(session.symbols);
            let mut built_in = memory::memory_path::<true>(
                memory::books(session.symbols),
                session.symbols.into(),
                symbol,
                clock.clone(),
            )
            .expect("it logs on");
            for packet in recorded::walk(&packets) {
                feed.on_packet(clock.now(), Line::A, packet, &mut built_in);
                memory::answer(&mut built_in);
            }
            let mut feed = recorded::feed(session.symbols);
            let mut own = memory_path::<_, true>(
                Taker::new(symbol),
                memory::books(session.symbols),
                symbol,
                clock.clone(),
            )
            .expect("it logs on");
            let ((), count) = count_allocations(|| {
                for packet in recorded::walk(&packets) {
                    let now = clock.now();
                    feed.on_packet(now, Line::A, packet, &mut own);
                    answer(&mut own, now);
                }
            });
            assert_eq!((count.allocations, count.releases), (0, 0), "{count:?}");
            let sent = |orders: &Orders, counters: &Counters| -> BTreeMap<u64, (i64, Qty, u64)> {
                (1..=counters.get(Counter::OrdersSent))
                    .filter_map(|id| orders.get(ClientOrderId(id)))
                    .map(|order| (order.id.0, (order.price.raw(), order.qty, order.cause.seq.0)))
                    .collect()
            };
            let expected = sent(built_in.rule.orders(), built_in.rule.counters());
            assert!(expected.len() > 100);
            assert_eq!(sent(own.rule.orders(), own.rule.counters()), expected);
            assert_eq!(own.out.orders, built_in.out.orders);
            assert!(own.rule.conductor.strategy().ends > 100);
        }
    }

    #[test]
    fn everything_that_a_strategy_can_do_allocates_nothing() {
        let session = Recorded::generate(9, 30_000, 20);
        let clock = Clock::calibrate();
        let symbol = recorded::first_symbol();
        let packets = session.packets(3);
        let mut feed = recorded::feed(session.symbols);
        let mut own = memory_path::<_, true>(
            Busy { symbol },
            memory::books(session.symbols),
            symbol,
            clock.clone(),
        )
        .expect("it logs on");
        let mut noted = 0_u64;
        let ((), count) = count_allocations(|| {
            for packet in recorded::walk(&packets) {
                let now = clock.now();
                feed.on_packet(now, Line::A, packet, &mut own);
                answer(&mut own, now);
                <Live<Busy> as Rule>::on_time(&mut own, now.after(5_000));
                own.rule.conductor.take_notes(|_| noted += 1);
            }
        });
        assert!(noted > 100 && own.rule.counters().get(Counter::OrdersSent) > 200);
        assert_eq!((count.allocations, count.releases), (0, 0), "{count:?}");
    }
}
