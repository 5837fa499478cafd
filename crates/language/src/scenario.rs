//! Tests written beside a strategy: events in, orders expected.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;

use tickwire_book::{Books, BooksConfig, Depth};
use tickwire_market::{
    BookState, ClientOrderId, EventFlags, EventKind, Instrument, InstrumentId, MarketEvent, Nanos, OrderId,
    OrderIntent, OrderType, Price, Qty, SeqNo, Side, TimeInForce, TradingStatus, Volume,
};
use tickwire_trading::strategy::{Conductor, ConductorConfig, Markets, OrderPort, Outcome, Rejected};
use tickwire_trading::{OrderReport, ReportKind, RiskConfig};

use crate::diag::{Diagnostic, Span};
use crate::interpret::Engine;
use crate::ir::{Program, word};
use crate::machine::{CHECK, Machine};

/// A test of the file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Scenario {
    /// Its name.
    pub name: String,
    /// Where it is written.
    pub span: Span,
    /// Parameters that have another value in it.
    pub with: Vec<(u16, i64)>,
    /// What happens, and is expected, in turn.
    pub steps: Vec<(ScenarioStep, Span)>,
}

/// One line of a test. Quantities are whole numbers, prices in 1e-9; an order is named by its place among
/// those that were sent, from 1, or is the last.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ScenarioStep {
    /// The levels of a side, or of both, are these.
    Book {
        /// Whose.
        instrument: u16,
        /// Quantity and price, by side; a side that is not said stays.
        levels: [Option<Vec<(i64, i64)>>; 2],
    },
    /// A trade.
    Trade {
        /// In what.
        instrument: u16,
        /// How much.
        qty: i64,
        /// At what price.
        price: i64,
        /// Whose resting order was hit.
        resting: Option<Side>,
    },
    /// A quote of a feed without depth.
    Quote {
        /// Whose.
        instrument: u16,
        /// Quantity and price.
        bid: (i64, i64),
        /// Quantity and price.
        ask: (i64, i64),
    },
    /// The state of an auction.
    Imbalance {
        /// Of what.
        instrument: u16,
        /// How much would trade.
        paired: i64,
        /// How much is missing.
        missing: i64,
        /// Indicative price.
        near: i64,
        /// Indicative price.
        far: i64,
        /// Reference price.
        reference: i64,
        /// Of what is too much.
        side: Option<Side>,
    },
    /// A trading status.
    Status {
        /// Of what.
        instrument: u16,
        /// [`TradingStatus`].
        status: u8,
    },
    /// A gap lies before the book.
    Stale(u16),
    /// The gap has ended.
    Live(u16),
    /// It is so long after midnight, UTC.
    At(i64),
    /// The venue has taken an order, or replaced it.
    Accept(Option<u64>),
    /// The venue has refused an order, or its replacement.
    Reject(Option<u64>),
    /// The venue has cancelled an order.
    Cancelled(Option<u64>),
    /// An order has traded.
    Fill {
        /// Which.
        order: Option<u64>,
        /// All that is left where nothing is said.
        qty: Option<i64>,
        /// Its own price where nothing is said.
        price: Option<i64>,
    },
    /// An operator's words.
    Command(String),
    /// An order has left.
    ExpectOrder {
        /// For what.
        instrument: u16,
        /// Buy is bid.
        side: Side,
        /// How much.
        qty: i64,
        /// None of a market order.
        price: Option<i64>,
        /// How long it lives.
        lasting: TimeInForce,
    },
    /// A replacement has left.
    ExpectReplace {
        /// How much altogether.
        qty: i64,
        /// At what price.
        price: i64,
    },
    /// A cancellation has left.
    ExpectCancel,
    /// Nothing has left that was not expected.
    ExpectNothing,
    /// The handler was left in the middle.
    ExpectTrap,
    /// Holds now; [`crate::ir::Event::Check`].
    Check(u16),
}

/// The tick of the instruments of a test: 0.01.
pub const TICK: Price = Price::from_raw(10_000_000);
/// The day of a test: 2026-01-05.
const DAY: u64 = 20_458 * Nanos::DAY;
/// Bits of an instrument's number within its feed.
const BITS: u32 = 8;
/// The only instrument of a feed.
const ONLY: InstrumentId = InstrumentId(1);
/// Between two steps of a test.
const STEP_NS: u64 = 1_000;

#[derive(Default)]
struct Port(Vec<OrderIntent>);

impl OrderPort for Port {
    fn send(&mut self, _: Nanos, request: &OrderIntent) -> Result<(), Rejected> {
        self.0.push(*request);
        Ok(())
    }
}

struct Rig<'a, E> {
    program: &'a Program,
    conductor: Conductor<Machine<E>>,
    books: Vec<Books>,
    port: Port,
    now: u64,
    seq: u64,
    /// Levels as they are, by instrument and side.
    levels: Vec<[BTreeMap<i64, i64>; 2]>,
    /// How many requests of the port were expected.
    expected: usize,
    /// Where they left.
    sent_at: Vec<Span>,
    is_trap_expected: bool,
}

/// Runs a test by an engine; what was not as it was expected to be.
///
/// # Errors
/// The first thing that differs.
pub fn run_test<E: Engine>(
    program: &Program,
    scenario: &Scenario,
    engine: impl FnOnce(&Program) -> E,
) -> Result<(), Diagnostic> {
    let mut own = program.clone();
    for (n, value) in &scenario.with {
        let param = &mut own.params[usize::from(*n)];
        param.value = *value;
        let (at, value) = (param.at as usize, *value);
        own.memory[at] = value;
        let text = own.symbols.get(value as usize).cloned().unwrap_or_default();
        for used in own.instruments.iter_mut().filter(|used| used.param == Some(*n)) {
            if let Some(symbol) = crate::check::with_session(&text, used.session.as_deref()) {
                used.symbol = symbol;
            }
        }
    }
    let own = Arc::new(own);
    let engine = engine(&own);
    // A feed for each instrument: the same symbol may be on several.
    let count = own.instruments.len() as u32;
    let config = BooksConfig {
        depth: Depth::ByPrice,
        instruments: 2,
        orders: 64,
        levels: 4_096,
        initial: BookState::Live,
        ..BooksConfig::default()
    };
    let limits = ConductorConfig {
        feeds: count,
        instrument_bits: BITS,
        max_orders: 1_024,
        last_id: 0,
        risk: RiskConfig::default(),
        ..ConductorConfig::default()
    };
    let mut rig = Rig {
        program: &own,
        conductor: Conductor::new(Machine::new(own.clone(), engine), &limits),
        books: (0..count).map(|_| Books::new(config)).collect(),
        port: Port::default(),
        now: DAY,
        seq: 0,
        levels: vec![Default::default(); own.instruments.len()],
        expected: 0,
        sent_at: Vec::new(),
        is_trap_expected: false,
    };
    rig.begin();
    for (step, span) in &scenario.steps {
        rig.step(step, *span)?;
    }
    rig.settled()
}

impl<E: Engine> Rig<'_, E> {
    fn with<T>(
        &mut self,
        f: impl FnOnce(&mut Conductor<Machine<E>>, Nanos, Markets<'_>, &mut Port) -> T,
    ) -> T {
        let markets = Markets::new(&self.books, BITS);
        f(&mut self.conductor, Nanos(self.now), markets, &mut self.port)
    }

    fn begin(&mut self) {
        self.with(|c, now, m, p| c.start(now, m, p));
        for (n, used) in self.program.instruments.iter().enumerate() {
            let instrument = Instrument {
                id: ONLY,
                venue: used.venue.unwrap_or_default(),
                symbol: used.symbol,
                tick: TICK,
                lot: Qty(1),
                is_test: false,
            };
            self.with(|c, now, m, p| c.define(now, n, &instrument, None, m, p));
        }
    }

    /// Everything that has left was expected, and no handler was left in the middle.
    fn settled(&mut self) -> Result<(), Diagnostic> {
        if let Some(request) = self.port.0.get(self.expected) {
            let span = self.sent_at.get(self.expected).copied().unwrap_or_default();
            return Err(Diagnostic::new(
                span,
                "a request has left that was not expected",
                format!("this made the strategy send: {}", self.shown(request)),
            ));
        }
        if let Some((handler, trap)) = self.conductor.strategy().outcomes().trap
            && !self.is_trap_expected
        {
            let code = &self.program.handlers[handler as usize];
            let span = code.spans.get(trap.op as usize).copied().unwrap_or_default();
            return Err(Diagnostic::new(
                span,
                trap.kind.text().trim_end_matches(", in line"),
                "here",
            ));
        }
        Ok(())
    }

    fn shown(&self, request: &OrderIntent) -> String {
        let name = |id: InstrumentId| match self.program.instruments.get(id.index() >> BITS) {
            Some(used) => used.name.clone(),
            None => id.0.to_string(),
        };
        match request {
            OrderIntent::New {
                instrument,
                side,
                order_type,
                price,
                qty,
                time_in_force,
                ..
            } => {
                let word = if *side == Side::Bid { "buy" } else { "sell" };
                let at = match order_type {
                    OrderType::Market => "market".to_string(),
                    OrderType::Limit => format!("@ {price}"),
                };
                let lasting = match (time_in_force, order_type) {
                    (TimeInForce::Day, OrderType::Limit)
                    | (TimeInForce::ImmediateOrCancel, OrderType::Market) => "",
                    (TimeInForce::Day, _) => " day",
                    (TimeInForce::ImmediateOrCancel, _) => " ioc",
                    (TimeInForce::FillOrKill, _) => " fok",
                    (TimeInForce::GoodTillCancel, _) => " gtc",
                    (TimeInForce::AtTheOpening, _) => " opening",
                    (TimeInForce::AtTheClose, _) => " closing",
                };
                format!("{word} {} {} {at}{lasting}", name(*instrument), qty.0)
            }
            OrderIntent::Replace { qty, price, .. } => format!("replace {} @ {price}", qty.0),
            _ => "cancel".to_string(),
        }
    }

    fn event(&mut self, of: u16, event: MarketEvent) {
        self.seq += 1;
        let event = MarketEvent {
            seq: SeqNo(self.seq),
            recv_ts: Nanos(self.now),
            venue_ts: Nanos(self.now),
            instrument: ONLY,
            ..event
        };
        let feed = usize::from(of);
        let outcome = Outcome::of(&mut self.books[feed], &event);
        let markets = Markets::new(&self.books, BITS);
        self.conductor
            .on_event(feed, &event, &outcome, true, markets, &mut self.port);
    }

    fn book(&mut self, instrument: u16, levels: &[Option<Vec<(i64, i64)>>; 2]) {
        let mut events = Vec::new();
        let mut change = |side: Side, price: i64, qty: i64| {
            events.push(MarketEvent {
                kind: EventKind::Level,
                side,
                price: Price::from_raw(price),
                qty: Volume(qty as u64),
                order_count: u32::from(qty > 0),
                ..MarketEvent::default()
            });
        };
        for side in Side::BOTH {
            let Some(wanted) = &levels[side as usize] else {
                continue;
            };
            let wanted: BTreeMap<i64, i64> = wanted.iter().map(|(qty, price)| (*price, *qty)).collect();
            let old = core::mem::take(&mut self.levels[usize::from(instrument)][side as usize]);
            for price in old.keys().filter(|price| !wanted.contains_key(price)) {
                change(side, *price, 0);
            }
            for (price, qty) in wanted.iter().filter(|(price, qty)| old.get(price) != Some(qty)) {
                change(side, *price, *qty);
            }
            self.levels[usize::from(instrument)][side as usize] = wanted;
        }
        if let Some(last) = events.last_mut() {
            last.flags = EventFlags::LAST;
        }
        for event in events {
            self.event(instrument, event);
        }
    }

    /// Orders that were entered, in turn.
    fn entered(&self) -> Vec<(ClientOrderId, Option<ClientOrderId>)> {
        let entered = self.port.0.iter().filter_map(|request| match request {
            OrderIntent::New { id, .. } => Some((*id, None)),
            OrderIntent::Replace { id, target, .. } => Some((*id, Some(*target))),
            _ => None,
        });
        entered.collect()
    }

    fn which(
        &self,
        number: Option<u64>,
        span: Span,
    ) -> Result<(ClientOrderId, Option<ClientOrderId>), Diagnostic> {
        let entered = self.entered();
        let at = match number {
            None => entered.len().checked_sub(1),
            Some(number) => usize::try_from(number).ok().and_then(|n| n.checked_sub(1)),
        };
        at.and_then(|at| entered.get(at).copied()).ok_or_else(|| {
            let message = format!("there is no such order: {} were sent", entered.len());
            Diagnostic::new(span, message, "of which order?")
        })
    }

    fn report(&mut self, id: ClientOrderId, kind: ReportKind, span: Span) -> Result<(), Diagnostic> {
        let report = OrderReport {
            id,
            venue_id: Some(OrderId(1_000 + id.0)),
            kind,
        };
        let done = self.with(|c, now, m, p| c.on_report(now, &report, m, p));
        match done {
            Ok(_) => Ok(()),
            Err(error) => Err(Diagnostic::new(
                span,
                format!("a venue could not say this of the order: {error:?}"),
                "it is not in such a state",
            )),
        }
    }

    fn step(&mut self, step: &ScenarioStep, span: Span) -> Result<(), Diagnostic> {
        use ScenarioStep as S;
        let is_expectation = matches!(
            step,
            S::ExpectOrder { .. }
                | S::ExpectReplace { .. }
                | S::ExpectCancel
                | S::ExpectNothing
                | S::ExpectTrap
                | S::Check(_)
        );
        if is_expectation {
            return self.expect(step, span);
        }
        self.settled()?;
        self.now += STEP_NS;
        match step {
            S::Book { instrument, levels } => self.book(*instrument, levels),
            S::Trade {
                instrument,
                qty,
                price,
                resting,
            } => self.event(
                *instrument,
                MarketEvent {
                    kind: EventKind::Trade,
                    qty: Volume(*qty as u64),
                    price: Price::from_raw(*price),
                    side: resting.unwrap_or_default(),
                    flags: EventFlags::LAST.with(if resting.is_none() {
                        EventFlags::NO_SIDE
                    } else {
                        EventFlags::NONE
                    }),
                    ..MarketEvent::default()
                },
            ),
            S::Quote { instrument, bid, ask } => self.event(
                *instrument,
                MarketEvent {
                    kind: EventKind::Quote,
                    qty: Volume(bid.0 as u64),
                    price: Price::from_raw(bid.1),
                    ask_qty: Volume(ask.0 as u64),
                    ask_price: Price::from_raw(ask.1),
                    flags: EventFlags::LAST,
                    ..MarketEvent::default()
                },
            ),
            S::Imbalance {
                instrument,
                paired,
                missing,
                near,
                far,
                reference,
                side,
            } => self.event(
                *instrument,
                MarketEvent {
                    kind: EventKind::Imbalance,
                    qty: Volume(*paired as u64),
                    imbalance_qty: Volume(*missing as u64),
                    near_price: Price::from_raw(*near),
                    far_price: Price::from_raw(*far),
                    price: Price::from_raw(*reference),
                    side: side.unwrap_or_default(),
                    flags: EventFlags::LAST.with(if side.is_none() {
                        EventFlags::NO_SIDE
                    } else {
                        EventFlags::NONE
                    }),
                    ..MarketEvent::default()
                },
            ),
            S::Status { instrument, status } => self.event(
                *instrument,
                MarketEvent {
                    kind: EventKind::Status,
                    status: TradingStatus::from_u8(*status).unwrap_or_default(),
                    flags: EventFlags::LAST,
                    ..MarketEvent::default()
                },
            ),
            S::Stale(instrument) | S::Live(instrument) => {
                let kind = match step {
                    S::Stale(_) => EventKind::Gap,
                    _ => EventKind::Recovered,
                };
                self.event(
                    *instrument,
                    MarketEvent {
                        kind,
                        flags: EventFlags::LAST,
                        ..MarketEvent::default()
                    },
                );
            }
            S::At(at) => self.until(DAY + *at as u64, span)?,
            S::Accept(number) => {
                let (id, old) = self.which(*number, span)?;
                match old {
                    Some(old) => self.report(
                        old,
                        ReportKind::Replaced {
                            by: id,
                            venue_id: None,
                        },
                        span,
                    )?,
                    None => self.report(id, ReportKind::Accepted, span)?,
                }
            }
            S::Reject(number) => {
                let (id, old) = self.which(*number, span)?;
                match old {
                    Some(old) => self.report(old, ReportKind::ReplaceRejected { by: id }, span)?,
                    None => self.report(id, ReportKind::Rejected, span)?,
                }
            }
            S::Cancelled(number) => {
                let (id, _) = self.which(*number, span)?;
                self.report(id, ReportKind::Cancelled, span)?;
            }
            S::Fill { order, qty, price } => {
                let (id, _) = self.which(*order, span)?;
                let Some(own) = self.conductor.orders().get(id).copied() else {
                    return Err(Diagnostic::new(
                        span,
                        "there is no such order any more",
                        "of which order?",
                    ));
                };
                let qty = qty.map_or(own.remaining(), |qty| Qty(u32::try_from(qty).unwrap_or(0)));
                let kind = ReportKind::Filled {
                    qty,
                    price: price.map_or(own.price, Price::from_raw),
                    cumulative: Qty(own.filled.0.saturating_add(qty.0)),
                };
                self.report(id, kind, span)?;
            }
            S::Command(words) => self.with(|c, now, m, p| c.on_command(now, words, m, p)),
            _ => {}
        }
        self.sent_at.resize(self.port.0.len(), span);
        Ok(())
    }

    /// Time passes; timers that are due on the way are called at their time.
    fn until(&mut self, to: u64, span: Span) -> Result<(), Diagnostic> {
        if to < self.now {
            return Err(Diagnostic::new(
                span,
                "time does not go back",
                "this lies before the step above",
            ));
        }
        for _ in 0..100_000 {
            match self.conductor.next_timer().filter(|at| at.0 <= to) {
                Some(at) => {
                    self.now = self.now.max(at.0);
                    self.with(|c, now, m, p| c.on_time(now, m, p));
                }
                None => {
                    self.now = to;
                    return Ok(());
                }
            }
        }
        Err(Diagnostic::new(
            span,
            "more than 100000 timers until then",
            "a timer sets itself for ever",
        ))
    }

    fn expect(&mut self, step: &ScenarioStep, span: Span) -> Result<(), Diagnostic> {
        use ScenarioStep as S;
        match step {
            S::ExpectNothing => return self.settled(),
            S::ExpectTrap => {
                self.is_trap_expected = true;
                return match self.conductor.strategy().outcomes().trap {
                    Some(_) => Ok(()),
                    None => Err(Diagnostic::new(
                        span,
                        "no handler was left in the middle",
                        "expected a trap",
                    )),
                };
            }
            S::Check(number) => {
                let words = format!("{CHECK}{number}");
                let sent = self.port.0.len();
                self.with(|c, now, m, p| c.on_command(now, &words, m, p));
                self.sent_at.resize(self.port.0.len().max(sent), span);
                return match self.conductor.strategy().memory()[word::CHECKED as usize] {
                    1 => Ok(()),
                    _ => Err(Diagnostic::new(span, "this does not hold", "it is false")),
                };
            }
            _ => {}
        }
        let Some(request) = self.port.0.get(self.expected).copied() else {
            let outcomes = self.conductor.strategy().outcomes();
            let mut found = Diagnostic::new(span, "nothing has left", "this was expected");
            if let Some(reason) = outcomes.last {
                found = found.help(format!("the last request that did not leave: {reason}"));
            }
            return Err(found);
        };
        let fits = match (step, &request) {
            (
                S::ExpectOrder {
                    instrument,
                    side,
                    qty,
                    price,
                    lasting,
                },
                OrderIntent::New {
                    instrument: i,
                    side: s,
                    order_type,
                    price: p,
                    qty: q,
                    time_in_force,
                    ..
                },
            ) => {
                let at = match order_type {
                    OrderType::Limit => Some(p.raw()),
                    OrderType::Market => None,
                };
                i.index() >> BITS == usize::from(*instrument)
                    && s == side
                    && i64::from(q.0) == *qty
                    && at == *price
                    && time_in_force == lasting
            }
            (S::ExpectReplace { qty, price }, OrderIntent::Replace { qty: q, price: p, .. }) => {
                i64::from(q.0) == *qty && p.raw() == *price
            }
            (S::ExpectCancel, OrderIntent::Cancel { .. }) => true,
            _ => false,
        };
        if !fits {
            let label = format!("found: {}", self.shown(&request));
            return Err(Diagnostic::new(span, "another request has left", label));
        }
        self.expected += 1;
        Ok(())
    }
}
