//! A strategy in a simulated venue, and the same strategy in a backtest of what that venue published: every
//! order, every report, at the same time.
//!
//! The venue is the exchange simulator's matching engine; the strategy trades in it, in memory or over
//! sockets (MoldUDP64 and OUCH 5.0, [`sockets`]), and its own orders are in what is published. In the
//! backtest ours stands as a marker right before the order that it once was, and takes what that one took.
//! Over sockets time is the machine's: there orders and reports are compared by the number of the message
//! that the strategy had heard last.

use std::collections::BTreeMap;

use tickwire_backtest::{Backtest, BacktestConfig};
use tickwire_book::{Books, BooksConfig, Depth};
use tickwire_exchange::{
    CrossFill, Engine, EngineConfig, Execution, ItchWriter, Listener, Milestone, NewOrder, Order, Owner,
    Tape, listings,
};
use tickwire_feed::{
    ArbiterConfig, Channel, ItchChannel, ItchConfig, ItchDecoder, ItchFeed, SoupConfig, Start,
};
use tickwire_market::{
    BookState, ClientOrderId, Instrument, InstrumentId, MarketEvent, Nanos, OrderId, OrderIntent, Price, Qty,
    Side, TimeInForce, TradingStatus,
};
use tickwire_trading::strategy::{
    BookChange, Conductor, ConductorConfig, Context, Markets, OrderEvent, OrderPort, Outcome, Rejected,
    Strategy, Subscription, Ticket,
};
use tickwire_trading::{ControlsConfig, OrderReport, OrderState, ReportKind, RiskConfig};

#[path = "equality/sockets.rs"]
mod sockets;

const SYMBOLS: u16 = 3;
const OWN: Owner = Owner(1);

#[derive(Clone, Debug)]
struct Rng(u64);

impl Rng {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

/// What is compared: orders and reports with their times, or with what the strategy had heard before.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Said {
    New(u64, ClientOrderId, Side, Price, u32),
    Replaced(u64, ClientOrderId, ClientOrderId, Price, u32),
    Cancelled(u64, ClientOrderId),
    Heard(u64, ClientOrderId, OrderState, u32),
}

/// One that takes whenever the best offer changes, or one that does anything at random: orders that rest,
/// that take, replacements, cancellations.
struct Trader {
    is_taker: bool,
    rng: Rng,
    open: Vec<ClientOrderId>,
    /// The last message that changed a book.
    heard: u64,
    stamp: Stamp,
    said: Vec<Said>,
}

/// What orders and reports are compared by.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stamp {
    Time,
    Heard,
}

impl Trader {
    fn stamp(&self, ctx: &Context<'_>) -> u64 {
        match self.stamp {
            Stamp::Time => ctx.now().0,
            Stamp::Heard => self.heard,
        }
    }
}

impl Strategy for Trader {
    fn subscriptions(&self) -> Vec<Subscription> {
        vec![Subscription::All]
    }

    fn on_book(&mut self, ctx: &mut Context<'_>, change: &BookChange) {
        self.heard = change.after.seq.0;
        let (id, now) = (change.instrument, self.stamp(ctx));
        let held = ctx.position(id).qty;
        let best = |side| change.after.best(side);
        let (Some((bid, _)), Some((ask, _))) = (best(Side::Bid), best(Side::Ask)) else {
            return;
        };
        if self.is_taker {
            if change.new_best_price(Side::Ask).is_some() && held < 500 {
                self.submit(ctx, id, Side::Bid, 30, ask, false);
            } else if held > 400 {
                self.submit(ctx, id, Side::Ask, 200, bid, false);
            }
            return;
        }
        let side = Side::BOTH[self.rng.below(2) as usize];
        let own = if side == Side::Bid { bid } else { ask };
        let qty = 1 + self.rng.below(300) as u32;
        match self.rng.below(40) {
            0..=2 if self.open.len() < 12 => self.submit(ctx, id, side, qty, own, true),
            3 if held.abs() < 2_000 => {
                let opposite = if side == Side::Bid { ask } else { bid };
                // What does not trade rests.
                self.submit(ctx, id, side, qty, opposite, true);
            }
            4..=5 if !self.open.is_empty() => {
                let at = self.rng.below(self.open.len() as u64) as usize;
                if ctx.cancel(self.open[at]).is_ok() {
                    self.said.push(Said::Cancelled(now, self.open[at]));
                }
            }
            6 if !self.open.is_empty() => {
                let at = self.rng.below(self.open.len() as u64) as usize;
                let old = self.open[at];
                let Some(order) = ctx.order(old).copied() else {
                    return;
                };
                let price = match order.side {
                    Side::Bid => bid,
                    Side::Ask => ask,
                };
                if order.instrument == id
                    && order.filled.0 == 0
                    && let Ok(new) = ctx.replace(old, qty, price)
                {
                    self.said.push(Said::Replaced(now, old, new, price, qty));
                }
            }
            _ => {}
        }
    }

    fn on_order(&mut self, ctx: &mut Context<'_>, event: &OrderEvent) {
        let (order, now) = (event.order, self.stamp(ctx));
        self.said
            .push(Said::Heard(now, order.id, order.state, order.filled.0));
        if let Some(old) = event.replaced {
            self.open.retain(|id| *id != old);
        }
        self.open.retain(|id| *id != order.id);
        if order.state.is_open() {
            self.open.push(order.id);
            self.open.sort_unstable();
        }
    }
}

impl Trader {
    fn submit(
        &mut self,
        ctx: &mut Context<'_>,
        id: InstrumentId,
        side: Side,
        qty: u32,
        price: Price,
        rests: bool,
    ) {
        let ticket = Ticket::limit(side, id, qty, price);
        let ticket = if rests {
            ticket
        } else {
            ticket.immediate_or_cancel()
        };
        if let Ok(id) = ctx.submit(ticket) {
            self.said.push(Said::New(self.stamp(ctx), id, side, price, qty));
        }
    }
}

/// Which one, and what it is compared by.
#[derive(Clone, Copy, Debug)]
struct Which {
    seed: u64,
    is_taker: bool,
    stamp: Stamp,
}

fn trader(which: Which) -> Trader {
    Trader {
        is_taker: which.is_taker,
        rng: Rng(which.seed),
        open: Vec::new(),
        heard: 0,
        stamp: which.stamp,
        said: Vec::new(),
    }
}

/// Where the strategy runs while the venue is simulated.
trait Host {
    /// It hears a message.
    fn message(&mut self, now: Nanos, message: &[u8]);
    /// It hears of an order of its own.
    fn report(&mut self, now: Nanos, report: &OrderReport);
    /// What it has sent since this was last asked.
    fn requests(&mut self) -> Vec<OrderIntent>;
    /// What it said.
    fn finish(self) -> Vec<Said>;
}

/// On the venue's thread, by calls.
struct InMemory<C> {
    channel: C,
    books: Vec<Books>,
    conductor: Conductor<Trader>,
    port: Sent,
}

fn in_memory(which: Which) -> InMemory<impl Channel> {
    let (books, mut port) = (vec![books()], Sent::default());
    let mut conductor = Conductor::new(trader(which), &conductor());
    conductor.start(Nanos::ZERO, Markets::new(&books, 3), &mut port);
    InMemory {
        channel: channel(),
        books,
        conductor,
        port,
    }
}

impl<C: Channel> InMemory<C> {
    fn event(&mut self, event: &MarketEvent) {
        let outcome = Outcome::of(&mut self.books[0], event);
        define(
            &mut self.conductor,
            &self.channel,
            event,
            &self.books,
            &mut self.port,
        );
        let markets = Markets::new(&self.books, 3);
        self.conductor
            .on_event(0, event, &outcome, false, markets, &mut self.port);
    }
}

impl<C: Channel> Host for InMemory<C> {
    fn message(&mut self, now: Nanos, message: &[u8]) {
        for event in events_of(&mut self.channel, now, message) {
            self.event(&event);
        }
    }

    fn report(&mut self, now: Nanos, report: &OrderReport) {
        let markets = Markets::new(&self.books, 3);
        let heard = self.conductor.on_report(now, report, markets, &mut self.port);
        heard.expect("one of ours");
    }

    fn requests(&mut self) -> Vec<OrderIntent> {
        std::mem::take(&mut self.port.0)
    }

    fn finish(self) -> Vec<Said> {
        self.conductor.strategy().said.clone()
    }
}

fn events_of(channel: &mut impl Channel, now: Nanos, message: &[u8]) -> Vec<MarketEvent> {
    let mut events = Vec::new();
    channel.on_message(now, message, &mut |event: &MarketEvent| events.push(*event));
    events
}

fn conductor() -> ConductorConfig {
    ConductorConfig {
        instrument_bits: 3,
        max_orders: 1 << 14,
        last_id: 0,
        risk: RiskConfig {
            max_order_qty: Qty(1_000),
            price_band_bp: 10_000,
            max_orders_per_window: 1_000_000,
            max_open_orders: 100,
            max_position: 1 << 40,
            controls: ControlsConfig::NONE,
            ..RiskConfig::default()
        },
        ..ConductorConfig::default()
    }
}

fn books() -> Books {
    Books::new(BooksConfig {
        depth: Depth::ByOrder,
        instruments: 8,
        orders: 1 << 14,
        levels: 1 << 14,
        initial: BookState::Live,
        ..BooksConfig::default()
    })
}

fn channel() -> impl Channel {
    let decoder = ItchDecoder::new(ItchConfig {
        instruments_max: 8,
        ..ItchConfig::default()
    });
    let arbiter = ArbiterConfig {
        start: Start::Here,
        snapshot: false,
        ..ArbiterConfig::default()
    };
    ItchChannel::new(ItchFeed::new(arbiter, decoder), SoupConfig::default())
}

/// Where the strategy's requests go until the venue takes them.
#[derive(Default)]
struct Sent(Vec<OrderIntent>);

impl OrderPort for Sent {
    fn send(&mut self, _: Nanos, request: &OrderIntent) -> Result<(), Rejected> {
        self.0.push(*request);
        Ok(())
    }
}

/// Executions of our orders.
#[derive(Default)]
struct Ours {
    fills: Vec<(OrderId, bool, Qty, Price)>,
}

impl Listener for Ours {
    fn rested(&mut self, _: &Order) {}
    fn executed(&mut self, e: &Execution) {
        for (order, is_maker) in [(&e.maker, true), (&e.taker, false)] {
            if order.owner == OWN {
                self.fills.push((order.id, is_maker, e.qty, e.price));
            }
        }
    }
    fn cross_filled(&mut self, _: &CrossFill) {}
    fn reduced(&mut self, _: &Order, _: Qty) {}
    fn deleted(&mut self, _: &Order) {}
    fn expired(&mut self, _: &Order) {}
    fn replaced(&mut self, _: &Order, _: &Order, _: bool) {}
}

/// Messages with their times.
type Recording = Vec<(Nanos, Vec<u8>)>;

/// The simulated venue with the strategy in it.
struct Sim {
    engine: Engine,
    rng: Rng,
    house: Vec<OrderId>,
    /// Our orders that stand there.
    ours: BTreeMap<OrderId, ClientOrderId>,
    filled: BTreeMap<ClientOrderId, u32>,
}

impl Sim {
    /// Something that others do.
    fn step(&mut self, out: &mut impl Listener) {
        let instrument = InstrumentId(1 + self.rng.below(SYMBOLS.into()) as u32);
        let side = Side::BOTH[self.rng.below(2) as usize];
        let start = Price::from_4dp(1_000_000);
        let tick = Price::from_4dp(100).raw();
        let far = self.engine.best(instrument, !side).map(|level| level.price);
        let away = 1 + self.rng.below(4) as i64;
        let sign = if side == Side::Bid { -1 } else { 1 };
        let price = Price::from_raw(far.unwrap_or(start).raw() + sign * away * tick);
        let qty = Qty(100 * (1 + self.rng.below(5) as u32));
        match self.rng.below(10) {
            0..=5 => {
                let new = NewOrder::limit(instrument, side, price, qty);
                self.house.push(self.engine.submit(&new, out).expect("it fits"));
            }
            6..=7 => {
                let Some(far) = far else { return };
                let new = NewOrder {
                    time_in_force: TimeInForce::ImmediateOrCancel,
                    ..NewOrder::limit(instrument, side, far, qty)
                };
                self.engine.submit(&new, out).expect("it fits");
            }
            what => {
                let alive = |id: &OrderId| self.engine.order(*id).is_some();
                self.house.retain(alive);
                if self.house.len() < 40 {
                    return;
                }
                let at = self.rng.below(self.house.len() as u64) as usize;
                let order = self.house[at];
                match what {
                    8 => self.engine.cancel(order, out).expect("it stands"),
                    _ => _ = self.engine.reduce(order, Qty(100), out),
                }
            }
        }
    }

    /// A request of ours; what is reported at once.
    fn request(&mut self, request: &OrderIntent, writer: &mut impl Listener) -> Vec<OrderReport> {
        let mut ours = Ours::default();
        let report = |id, kind| OrderReport {
            id,
            venue_id: None,
            kind,
        };
        match *request {
            OrderIntent::New {
                id,
                instrument,
                side,
                price,
                qty,
                order_type,
                time_in_force,
                ..
            } => {
                let new = NewOrder {
                    owner: OWN,
                    order_type,
                    time_in_force,
                    ..NewOrder::limit(instrument, side, price, qty)
                };
                let number = self
                    .engine
                    .submit(&new, &mut (&mut *writer, &mut ours))
                    .expect("it fits");
                let mut reports = vec![report(id, ReportKind::Accepted)];
                self.took(id, &ours, &mut reports);
                self.rests(id, number, qty.0, time_in_force, &mut reports);
                reports
            }
            OrderIntent::Cancel { target, .. } => {
                let number = self.number_of(target);
                vec![match number {
                    Some(number) => {
                        self.engine.cancel(number, writer).expect("it stands");
                        self.ours.remove(&number);
                        report(target, ReportKind::Cancelled)
                    }
                    None => report(target, ReportKind::CancelRejected),
                }]
            }
            OrderIntent::Replace {
                id,
                target,
                price,
                qty,
                ..
            } => {
                let Some(number) = self.number_of(target) else {
                    return vec![report(target, ReportKind::ReplaceRejected { by: id })];
                };
                // What was filled until it came counts, as in FIX: the quantity is the whole order's.
                let filled = self.filled.get(&target).copied().unwrap_or(0);
                self.filled.insert(id, filled);
                self.ours.remove(&number);
                let left = qty.0.saturating_sub(filled);
                let new = match left {
                    0 => self.engine.cancel(number, writer).map(|()| number),
                    left => self
                        .engine
                        .replace(number, price, Qty(left), &mut (&mut *writer, &mut ours)),
                };
                let new = new.expect("it stands");
                let mut reports = vec![report(
                    target,
                    ReportKind::Replaced {
                        by: id,
                        venue_id: None,
                    },
                )];
                self.took(id, &ours, &mut reports);
                match left {
                    0 => reports.push(report(id, ReportKind::Cancelled)),
                    _ => self.rests(id, new, qty.0, TimeInForce::Day, &mut reports),
                }
                reports
            }
        }
    }

    fn number_of(&self, id: ClientOrderId) -> Option<OrderId> {
        let mut all = self.ours.iter();
        all.find(|(_, own)| **own == id).map(|(number, _)| *number)
    }

    /// Fills of an order that came in, by price as the backtest tells them.
    fn took(&mut self, id: ClientOrderId, ours: &Ours, reports: &mut Vec<OrderReport>) {
        let mut parts: Vec<(Price, u32)> = Vec::new();
        for (_, _, qty, price) in ours.fills.iter().filter(|(_, is_maker, ..)| !is_maker) {
            match parts.last_mut().filter(|(last, _)| last == price) {
                Some((_, of_level)) => *of_level += qty.0,
                None => parts.push((*price, qty.0)),
            }
        }
        for (price, qty) in parts {
            reports.push(self.fill(id, Qty(qty), price));
        }
    }

    fn fill(&mut self, id: ClientOrderId, qty: Qty, price: Price) -> OrderReport {
        let filled = self.filled.entry(id).or_default();
        *filled += qty.0;
        OrderReport {
            id,
            venue_id: None,
            kind: ReportKind::Filled {
                qty,
                price,
                cumulative: Qty(*filled),
            },
        }
    }

    fn rests(
        &mut self,
        id: ClientOrderId,
        number: OrderId,
        qty: u32,
        life: TimeInForce,
        reports: &mut Vec<OrderReport>,
    ) {
        let filled = self.filled.get(&id).copied().unwrap_or(0);
        if filled < qty && life.rests() {
            self.ours.insert(number, id);
        } else if filled < qty {
            reports.push(OrderReport {
                id,
                venue_id: None,
                kind: ReportKind::Cancelled,
            });
        }
    }
}

/// The strategy in the venue: what it said, and what was published.
fn sim(seed: u64, steps: u32, mut host: impl Host) -> (Vec<Said>, Recording) {
    let all = listings(SYMBOLS);
    let mut engine = Engine::new(EngineConfig {
        instruments: SYMBOLS.into(),
        max_orders: 10_000,
        max_levels: 256,
    });
    let (sent, published) = (std::cell::RefCell::new(Vec::new()), |bytes: &[u8]| bytes.to_vec());
    let mut writer = ItchWriter::new(&all, |bytes: &[u8]| sent.borrow_mut().push(published(bytes)));
    writer.milestone(Milestone::StartOfMessages);
    all.iter().for_each(|listing| writer.define(listing));
    writer.milestone(Milestone::StartOfSystemHours);
    for id in 1..=u32::from(SYMBOLS) {
        engine
            .set_status(InstrumentId(id), TradingStatus::Trading, &mut writer)
            .expect("it is listed");
    }
    writer.milestone(Milestone::StartOfMarketHours);
    let mut sim = Sim {
        engine,
        rng: Rng(seed ^ 0x5DEE_CE66),
        house: Vec::new(),
        ours: BTreeMap::new(),
        filled: BTreeMap::new(),
    };
    // The venue's own reading of what it publishes.
    let (mut channel, mut books) = (channel(), books());
    let mut recording = Recording::new();
    let mut time = 0;
    for step in 0..=steps {
        let mut ours = Ours::default();
        if step > 0 {
            sim.step(&mut (&mut writer, &mut ours));
        }
        let mut fills = ours.fills.into_iter();
        // What others did, then what ours did then, until there is nothing more to tell.
        loop {
            let messages = std::mem::take(&mut *sent.borrow_mut());
            if messages.is_empty() {
                break;
            }
            time += 1_000;
            let now = Nanos(time);
            for message in messages {
                host.message(now, &message);
                for event in events_of(&mut channel, now, &message) {
                    books.apply(&event);
                    let own = sim.ours.get(&event.order_id).copied();
                    if event.kind == tickwire_market::EventKind::Execute
                        && let Some(id) = own
                    {
                        let (number, is_maker, qty, price) = fills.next().expect("one that was executed");
                        assert!(is_maker && number == event.order_id);
                        let report = sim.fill(id, qty, price);
                        if sim.engine.order(number).is_none() && books.order(number).is_none() {
                            sim.ours.remove(&number);
                        }
                        host.report(now, &report);
                    }
                }
                recording.push((now, message));
            }
            // What the strategy wants arrives after all of it.
            loop {
                let requests = host.requests();
                if requests.is_empty() {
                    break;
                }
                for request in requests {
                    for report in sim.request(&request, &mut writer) {
                        host.report(now, &report);
                    }
                }
            }
        }
    }
    (host.finish(), recording)
}

fn define<C: Channel>(
    conductor: &mut Conductor<Trader>,
    channel: &C,
    event: &MarketEvent,
    books: &[Books],
    port: &mut Sent,
) {
    if event.kind == tickwire_market::EventKind::Definition
        && let Some(instrument) = channel.instrument(event.instrument)
    {
        let instrument: Instrument = *instrument;
        conductor.define(event.recv_ts, 0, &instrument, None, Markets::new(books, 3), port);
    }
}

/// The same strategy in a backtest of what was published.
fn backtest(which: Which, recording: &Recording) -> Vec<Said> {
    let config = BacktestConfig {
        conductor: conductor(),
        ..BacktestConfig::default()
    };
    let mut test = Backtest::new(trader(which), vec![books()], config);
    let mut channel = channel();
    for (now, message) in recording {
        for event in events_of(&mut channel, *now, message) {
            test.on_event(0, &event);
            if event.kind == tickwire_market::EventKind::Definition
                && let Some(instrument) = channel.instrument(event.instrument)
            {
                test.define(0, instrument, None);
            }
        }
    }
    test.conductor().strategy().said.clone()
}

/// The first difference, with what was before.
fn agree(which: Which, really: &[Said], again: &[Said]) {
    for (at, (a, b)) in really.iter().zip(again).enumerate() {
        let before = &really[at.saturating_sub(6)..at];
        assert_eq!(a, b, "{which:?}, number {at}; before: {before:#?}");
    }
}

/// Orders, and reports of orders that were filled.
fn counted(said: &[Said]) -> [usize; 2] {
    let orders = said.iter().filter(|said| matches!(said, Said::New(..))).count();
    let filled = |said: &&Said| matches!(said, Said::Heard(.., filled) if *filled > 0);
    [orders, said.iter().filter(filled).count()]
}

#[test]
fn orders_and_reports_in_a_venue_and_in_a_backtest_of_its_recording_are_the_same() {
    let mut all = [0, 0];
    for seed in 1..=12 {
        for is_taker in [true, false] {
            let stamp = Stamp::Time;
            let which = Which {
                seed,
                is_taker,
                stamp,
            };
            let (really, recording) = sim(seed, 4_000, in_memory(which));
            let again = backtest(which, &recording);
            agree(which, &really, &again);
            // What happened at the very end the recording does not show the backtest any more.
            let short = really.len() - again.len();
            assert!(short <= 4, "{} of {}", again.len(), really.len());
            all = std::array::from_fn(|at| all[at] + counted(&really)[at]);
        }
    }
    let [orders, fills] = all;
    println!("{orders} orders, {fills} reports of orders that were filled");
    assert!(orders > 2_000 && fills > 2_000, "{orders} orders, {fills} fills");
}

#[test]
fn over_sockets_in_memory_and_in_a_backtest_the_orders_are_the_same_by_what_was_heard_before() {
    let mut all = [0, 0];
    for seed in 1..=3 {
        for is_taker in [true, false] {
            let stamp = Stamp::Heard;
            let which = Which {
                seed,
                is_taker,
                stamp,
            };
            let (in_memory, recording) = sim(seed, 2_000, in_memory(which));
            let (over_sockets, received) = sim(seed, 2_000, sockets::over_sockets(which));
            agree(which, &in_memory, &over_sockets);
            assert_eq!(in_memory.len(), over_sockets.len(), "{which:?}");
            assert!(
                recording == received,
                "{which:?}: the venue has published something else"
            );
            let again = backtest(which, &received);
            agree(which, &over_sockets, &again);
            assert!(over_sockets.len() - again.len() <= 4, "{which:?}");
            all = std::array::from_fn(|at| all[at] + counted(&over_sockets)[at]);
        }
    }
    let [orders, fills] = all;
    println!("{orders} orders over sockets, {fills} reports of orders that were filled");
    assert!(orders > 400 && fills > 400, "{orders} orders, {fills} fills");
}
