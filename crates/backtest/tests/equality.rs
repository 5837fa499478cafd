//! A strategy in a simulated venue, and the same strategy in a backtest of what that venue published: every
//! order, every report, at the same time.
//!
//! The venue is the exchange simulator's matching engine; the strategy trades in it, in memory or over
//! sockets (MoldUDP64 and OUCH 5.0, [`sockets`], or FIX 4.4, [`fix`]), and its own orders are in what is
//! published. In the backtest ours stands as a marker right before the order that it once was, and takes what
//! that one took. Stop orders: the venue's engine lets them act within the step whose trade triggers them.
//! The recording has their executions a time later than that trade, as the backtest has those of an order
//! that comes when the trade is told; so the strategy hears of them when it hears of the trade. Over sockets
//! time is the machine's: there orders and reports are compared by the number of the message that the
//! strategy had heard last.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};

use tickwire_backtest::{Backtest, BacktestConfig};
use tickwire_book::{Books, BooksConfig, Depth};
use tickwire_exchange::{
    CrossFill, Engine, EngineConfig, Execution, Firm, ItchWriter, Listener, Milestone, NewOrder, Order,
    Owner, Tape, listings,
};
use tickwire_feed::{
    ArbiterConfig, Channel, ItchChannel, ItchConfig, ItchDecoder, ItchFeed, SoupConfig, Start,
};
use tickwire_market::{
    BookState, ClientOrderId, Instrument, InstrumentId, MarketEvent, Nanos, OrderId, OrderIntent, OrderType,
    Price, Qty, SeqNo, Side, TimeInForce, TradingStatus,
};
use tickwire_trading::strategy::{
    BookChange, Conductor, ConductorConfig, Context, Markets, OrderEvent, OrderPort, Outcome, Quote,
    QuoteEntry, QuoteEvent, QuoteEventKind, QuoteIntent, QuoteReport, Rejected, Strategy, Subscription,
    Ticket, Trade,
};
use tickwire_trading::{ControlsConfig, OrderReport, OrderState, ReportKind, RiskConfig};

#[path = "equality/fix.rs"]
mod fix;
#[path = "equality/lockstep.rs"]
mod lockstep;
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
    Stop(u64, ClientOrderId, Side, Price, Option<Price>, u32),
    Moved(u64, ClientOrderId, ClientOrderId, Price),
    Cancelled(u64, ClientOrderId),
    Triggered(u64, ClientOrderId),
    Quoted(u64, ClientOrderId, Quote),
    QuotesCancelled(u64),
    OwnQuote(u64, InstrumentId, QuoteEventKind, [Qty; 2]),
    Heard(u64, ClientOrderId, OrderState, u32),
}

/// What a strategy does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Style {
    /// It takes whenever the best offer changes.
    Taker,
    /// Anything at random: orders that rest, that take, replacements, cancellations.
    Mixed,
    /// The same with stop and stop-limit orders, one on each side of the market, whose triggers it moves.
    Stops,
    /// Mass quotes of one or several instruments, that rest or take, cancellations of them, and orders that
    /// take.
    Quotes,
}

struct Trader {
    style: Style,
    rng: Rng,
    open: Vec<ClientOrderId>,
    /// The last message that changed a book.
    heard: u64,
    /// The last message that was a trade.
    traded: SeqNo,
    /// Of [`Style::Stops`]: requests that were not answered, and stop orders that wait, by instrument and
    /// side.
    asked: BTreeMap<ClientOrderId, InstrumentId>,
    stops: BTreeMap<(InstrumentId, Side), ClientOrderId>,
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
        if self.style == Style::Quotes {
            return self.with_quotes(ctx, change.instrument, (bid, ask));
        }
        if self.style == Style::Stops {
            return self.with_stops(ctx, change, (bid, ask));
        }
        if self.style == Style::Taker {
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

    fn on_trade(&mut self, _: &mut Context<'_>, trade: &Trade) {
        self.traded = trade.seq;
    }

    fn on_own_quote(&mut self, ctx: &mut Context<'_>, event: &QuoteEvent) {
        let open = Side::BOTH.map(|side| event.quote.open(side));
        let now = self.stamp(ctx);
        self.said
            .push(Said::OwnQuote(now, event.quote.instrument, event.kind, open));
    }

    fn on_order(&mut self, ctx: &mut Context<'_>, event: &OrderEvent) {
        let (order, now) = (event.order, self.stamp(ctx));
        if event.kind == ReportKind::Triggered {
            self.said.push(Said::Triggered(now, order.id));
        }
        self.note_stop(event);
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
    /// Anything, stop orders among it, but nothing while a request about the same instrument is under way,
    /// and nothing upon a trade that may have triggered one: what comes to the venue then finds a book
    /// that nobody has been told of.
    fn with_stops(&mut self, ctx: &mut Context<'_>, change: &BookChange, (bid, ask): (Price, Price)) {
        let (id, now) = (change.instrument, self.stamp(ctx));
        let waits = |side| self.stops.contains_key(&(id, side));
        let is_any = waits(Side::Bid) || waits(Side::Ask);
        let is_asked = self.asked.values().any(|asked| *asked == id);
        if is_asked || (is_any && change.after.seq == self.traded) {
            return;
        }
        let side = Side::BOTH[self.rng.below(2) as usize];
        let (own, far) = match side {
            Side::Bid => (bid, ask),
            Side::Ask => (ask, bid),
        };
        let sign = if side == Side::Bid { 1 } else { -1 };
        let tick = Price::from_4dp(100).raw();
        let away = |ticks: u64| Price::from_raw(far.raw() + sign * ticks as i64 * tick);
        let qty = 1 + self.rng.below(300) as u32;
        let held = ctx.position(id).qty;
        match (self.rng.below(20), self.stops.get(&(id, side)).copied()) {
            (0..=3, None) if held.abs() < 2_000 => {
                // At the best price: the next trade there triggers it.
                let trigger = away(self.rng.below(3));
                let limit = (self.rng.below(2) == 0).then(|| away(self.rng.below(4)));
                let ticket = match limit {
                    Some(limit) => Ticket::stop_limit(side, id, qty, trigger, limit),
                    None => Ticket::stop(side, id, qty, trigger),
                };
                if let Ok(order) = ctx.submit(ticket) {
                    self.asked.insert(order, id);
                    self.stops.insert((id, side), order);
                    self.said.push(Said::Stop(now, order, side, trigger, limit, qty));
                }
            }
            (0, Some(stop)) if ctx.cancel(stop).is_ok() => {
                self.asked.insert(stop, id);
                self.said.push(Said::Cancelled(now, stop));
            }
            (1..=2, Some(stop)) => {
                let trigger = away(self.rng.below(3));
                let is_limit = ctx.order(stop).is_some_and(|order| order.price > Price::ZERO);
                let limit = is_limit.then(|| away(1));
                if let Ok(new) = ctx.replace_stop(stop, qty, trigger, limit) {
                    self.asked.insert(new, id);
                    self.said.push(Said::Moved(now, stop, new, trigger));
                }
            }
            (4..=5, _) if self.open.len() < 12 => self.submit(ctx, id, side, qty, own, true),
            // Ours may trigger it, too.
            (6, _) if held.abs() < 2_000 => self.submit(ctx, id, side, qty, far, false),
            (7, _) => {
                let is_here = |order: &&ClientOrderId| ctx.order(**order).is_some_and(|o| o.instrument == id);
                let Some(order) = self.open.iter().find(is_here).copied() else {
                    return;
                };
                if ctx.cancel(order).is_ok() {
                    self.asked.insert(order, id);
                    self.said.push(Said::Cancelled(now, order));
                }
            }
            _ => {}
        }
    }

    /// Anything with quotes, but nothing while a request about the same instrument is under way.
    fn with_quotes(&mut self, ctx: &mut Context<'_>, id: InstrumentId, (bid, ask): (Price, Price)) {
        let now = self.stamp(ctx);
        let is_busy = |ctx: &Context<'_>, id: InstrumentId| {
            let quote = ctx.own_quote(id);
            let is_asked = quote.is_some_and(|quote| quote.asked.is_some() || quote.cancel.is_some());
            is_asked || self.asked.values().any(|asked| *asked == id)
        };
        if is_busy(ctx, id) {
            return;
        }
        let tick = Price::from_4dp(100).raw();
        let qty = 1 + self.rng.below(300) as u32;
        let held = ctx.position(id).qty;
        let is_open = ctx.own_quote(id).is_some_and(|quote| quote.is_open());
        match self.rng.below(20) {
            what @ 0..=4 => {
                let behind = self.rng.below(3) as i64 * tick;
                let mut quotes = vec![Quote::new(
                    id,
                    qty,
                    Price::from_raw(bid.raw() - behind),
                    Price::from_raw(ask.raw() + behind),
                )];
                match what {
                    // One side alone.
                    0 => quotes[0].sides[self.rng.below(2) as usize].1 = Qty::ZERO,
                    // The same again with another quantity.
                    1 => {
                        if let Some(own) = ctx.own_quote(id).filter(|own| own.is_open()) {
                            let [bid, ask] = own.live.map(|side| (side.price, Qty(side.left.0.min(qty))));
                            quotes[0].sides = [bid, ask];
                        }
                    }
                    2 => {
                        for other in (1..=u32::from(SYMBOLS)).map(InstrumentId) {
                            let best = |side| {
                                let book = ctx.book(other)?;
                                Some(book.best(side)?.price)
                            };
                            if other != id
                                && !is_busy(ctx, other)
                                && let (Some(bid), Some(ask)) = (best(Side::Bid), best(Side::Ask))
                            {
                                quotes.push(Quote::new(other, qty, bid, ask));
                            }
                        }
                    }
                    _ => {}
                }
                // The recording has what was quoted before as somebody's order, until it is told gone: what
                // is quoted through that trades in the backtest alone.
                let meets_itself = quotes.iter().any(|quote| {
                    let own = ctx.own_quote(quote.instrument).filter(|own| own.is_open());
                    own.is_some_and(|own| {
                        let [bid, ask] = own.live.map(|side| (!side.left.is_zero()).then_some(side.price));
                        let [(new_bid, _), (new_ask, _)] = quote.sides;
                        bid.is_some_and(|bid| new_ask <= bid) || ask.is_some_and(|ask| new_bid >= ask)
                    })
                });
                if meets_itself {
                    return;
                }
                if let Ok(request) = ctx.mass_quote(&quotes) {
                    let all = quotes.into_iter();
                    self.said
                        .extend(all.map(|quote| Said::Quoted(now, request, quote)));
                }
            }
            // Through the other side: what it does not get rests.
            5 if !is_open && held.abs() < 2_000 => {
                let next = Price::from_raw(ask.raw() + tick);
                let quote = Quote::new(id, qty, ask, next);
                if let Ok(request) = ctx.mass_quote(&[quote]) {
                    self.said.push(Said::Quoted(now, request, quote));
                }
            }
            6 if is_open
                && (1..=u32::from(SYMBOLS)).all(|id| !is_busy(ctx, InstrumentId(id)))
                && ctx.cancel_quotes() > 0 =>
            {
                self.said.push(Said::QuotesCancelled(now));
            }
            7 if held > 0 => self.submit(ctx, id, Side::Ask, qty, bid, false),
            8 if held < 0 => self.submit(ctx, id, Side::Bid, qty, ask, false),
            _ => {}
        }
    }

    /// Which stop orders wait, and what was answered.
    fn note_stop(&mut self, event: &OrderEvent) {
        let order = event.order;
        let known = event.replaced.unwrap_or(order.id);
        self.asked.remove(&known);
        self.asked.remove(&order.id);
        let key = (order.instrument, order.side);
        if self.stops.get(&key) == Some(&known) {
            match order.state.is_open() && event.kind != ReportKind::Triggered {
                true => _ = self.stops.insert(key, order.id),
                false => _ = self.stops.remove(&key),
            }
        }
    }

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
        if let Ok(order) = ctx.submit(ticket) {
            self.asked.insert(order, id);
            let id = order;
            self.said.push(Said::New(self.stamp(ctx), id, side, price, qty));
        }
    }
}

/// Which one, and what it is compared by.
#[derive(Clone, Copy, Debug)]
struct Which {
    seed: u64,
    style: Style,
    stamp: Stamp,
}

fn trader(which: Which) -> Trader {
    Trader {
        style: which.style,
        rng: Rng(which.seed),
        open: Vec::new(),
        heard: 0,
        traded: SeqNo(0),
        asked: BTreeMap::new(),
        stops: BTreeMap::new(),
        stamp: which.stamp,
        said: Vec::new(),
    }
}

/// What a strategy sends.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Request {
    Order(OrderIntent),
    Quotes {
        id: ClientOrderId,
        entries: Vec<QuoteEntry>,
        is_cancel: bool,
    },
}

/// Where the strategy runs while the venue is simulated.
trait Host {
    /// It hears a message.
    fn message(&mut self, now: Nanos, message: &[u8]);
    /// It hears of an order of its own.
    fn report(&mut self, now: Nanos, report: &OrderReport);
    /// It hears of quotes of its own.
    fn quote_report(&mut self, _: Nanos, report: &QuoteReport<'_>) {
        panic!("{report:?}: there are no quotes over this protocol");
    }
    /// What it has sent since this was last asked.
    fn requests(&mut self) -> Vec<Request>;
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

    fn quote_report(&mut self, now: Nanos, report: &QuoteReport<'_>) {
        let markets = Markets::new(&self.books, 3);
        self.conductor
            .on_quote_report(now, report, markets, &mut self.port);
    }

    fn requests(&mut self) -> Vec<Request> {
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
        max_quotes: SYMBOLS.into(),
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
struct Sent(Vec<Request>);

impl OrderPort for Sent {
    fn send(&mut self, _: Nanos, request: &OrderIntent) -> Result<(), Rejected> {
        self.0.push(Request::Order(*request));
        Ok(())
    }

    fn quote(&mut self, _: Nanos, request: &QuoteIntent<'_>) -> Result<(), Rejected> {
        let (id, entries, is_cancel) = match *request {
            QuoteIntent::Mass { id, entries, .. } => (id, entries, false),
            QuoteIntent::Cancel { id, entries, .. } => (id, entries, true),
            QuoteIntent::CancelAll { .. } | QuoteIntent::Status { .. } => return Err(Rejected::Unsupported),
        };
        self.0.push(Request::Quotes {
            id,
            entries: entries.iter().collect(),
            is_cancel,
        });
        Ok(())
    }
}

/// What was published since it was last told.
type Published = RefCell<Vec<Vec<u8>>>;

/// Executions of our orders within one request, or one step of others.
struct Ours<'a> {
    published: &'a Published,
    makers: Vec<Traded>,
    takers: Vec<Traded>,
    /// Sides of quotes that were entered.
    quotes: Vec<(OrderId, Side)>,
    /// Stop orders that acted.
    acted: Vec<Acted>,
    /// Somebody has traded.
    is_traded: bool,
}

/// An execution.
#[derive(Clone, Copy)]
struct Traded {
    order: OrderId,
    side: Side,
    qty: Qty,
    price: Price,
}

/// A stop order that was triggered: its number before and since, and what it traded.
struct Acted {
    before: OrderId,
    since: OrderId,
    /// How many messages were published before it acted that the strategy has yet to hear.
    behind: usize,
    fills: Vec<Traded>,
}

impl Ours<'_> {
    fn new(published: &Published) -> Ours<'_> {
        Ours {
            published,
            makers: Vec::new(),
            takers: Vec::new(),
            quotes: Vec::new(),
            acted: Vec::new(),
            is_traded: false,
        }
    }
}

impl Listener for Ours<'_> {
    fn accepted(&mut self, order: &Order) {
        if order.owner == OWN && order.is_quote() {
            self.quotes.push((order.id, order.side));
        }
    }
    fn rested(&mut self, _: &Order) {}
    fn executed(&mut self, e: &Execution) {
        self.is_traded = true;
        let of = |order: &Order| Traded {
            order: order.id,
            side: order.side,
            qty: e.qty,
            price: e.price,
        };
        if e.maker.owner == OWN {
            self.makers.push(of(&e.maker));
        }
        if e.taker.owner == OWN {
            match self.acted.last_mut().filter(|acted| acted.since == e.taker.id) {
                Some(acted) => acted.fills.push(of(&e.taker)),
                None => self.takers.push(of(&e.taker)),
            }
        }
    }
    fn triggered(&mut self, old: &Order, new: &Order) {
        // One that the last trade had triggered when it came acts at once.
        let behind = if self.is_traded {
            self.published.borrow().len()
        } else {
            0
        };
        self.acted.push(Acted {
            before: old.id,
            since: new.id,
            behind,
            fills: Vec::new(),
        });
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
struct Sim<'a> {
    engine: Engine,
    published: &'a Published,
    rng: Rng,
    house: Vec<OrderId>,
    /// Our orders that stand there.
    ours: BTreeMap<OrderId, ClientOrderId>,
    filled: BTreeMap<ClientOrderId, u32>,
    /// Stop orders that wait: whose they are, how much they are for, and whether they are to rest.
    stops: BTreeMap<OrderId, (ClientOrderId, u32, bool)>,
    /// Executions of ours that rested, in the order in which they are published.
    makers: VecDeque<Traded>,
    /// Stop orders that have acted behind what the strategy has yet to hear.
    acted: VecDeque<Acted>,
    /// Sides of quotes that stand there, by the name of the quote; and each as it was entered last.
    quotes: BTreeMap<OrderId, (u64, Side)>,
    quoted: BTreeMap<(u64, Side), (Price, Qty)>,
}

/// A part of a quote that has traded.
#[derive(Clone, Copy)]
struct QuoteFill {
    name: u64,
    side: Side,
    traded: (Price, u32),
}

impl Sim<'_> {
    /// Something that others do.
    fn step(&mut self, writer: &mut impl Listener) {
        let mut ours = Ours::new(self.published);
        self.others(&mut (writer, &mut ours));
        self.note(ours);
    }

    /// Keeps what is to be told later.
    fn note(&mut self, ours: Ours<'_>) -> Vec<Traded> {
        self.makers.extend(ours.makers);
        self.acted.extend(ours.acted);
        ours.takers
    }

    /// Reports of the stop orders that have acted behind the first `told` messages, which the strategy has
    /// heard.
    fn acted(&mut self, told: usize) -> Vec<OrderReport> {
        let mut reports = Vec::new();
        while let Some(acted) = self.acted.pop_front_if(|acted| acted.behind <= told) {
            let (id, qty, rests) = self.stops.remove(&acted.before).expect("one that waited");
            reports.push(OrderReport {
                id,
                venue_id: None,
                kind: ReportKind::Triggered,
            });
            self.took(id, &acted.fills, &mut reports);
            self.rests(id, acted.since, qty, rests, &mut reports);
        }
        for acted in &mut self.acted {
            acted.behind -= told;
        }
        reports
    }

    fn others(&mut self, out: &mut impl Listener) {
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
        let mut ours = Ours::new(self.published);
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
                stop,
                time_in_force,
                ..
            } => {
                let new = NewOrder {
                    owner: OWN,
                    order_type,
                    stop,
                    time_in_force,
                    ..NewOrder::limit(instrument, side, price, qty)
                };
                let number = self
                    .engine
                    .submit(&new, &mut (&mut *writer, &mut ours))
                    .expect("it fits");
                let mut reports = vec![report(id, ReportKind::Accepted)];
                let rests = time_in_force.rests() && order_type == OrderType::Limit;
                let took = self.note(ours);
                if stop.is_some() {
                    self.stops.insert(number, (id, qty.0, rests));
                } else {
                    self.took(id, &took, &mut reports);
                    self.rests(id, number, qty.0, rests, &mut reports);
                }
                reports.extend(self.acted(0));
                reports
            }
            OrderIntent::Cancel { target, .. } => {
                let number = self.number_of(target);
                vec![match number {
                    Some(number) => {
                        self.engine.cancel(number, writer).expect("it stands");
                        self.ours.remove(&number);
                        self.stops.remove(&number);
                        report(target, ReportKind::Cancelled)
                    }
                    None => report(target, ReportKind::CancelRejected),
                }]
            }
            OrderIntent::Replace {
                id,
                target,
                price,
                stop,
                qty,
                ..
            } => {
                let Some(number) = self.number_of(target) else {
                    return vec![report(target, ReportKind::ReplaceRejected { by: id })];
                };
                let replaced = report(
                    target,
                    ReportKind::Replaced {
                        by: id,
                        venue_id: None,
                    },
                );
                if let Some((_, _, rests)) = self.stops.remove(&number) {
                    let trigger = stop.expect("it has a trigger");
                    let out = &mut (&mut *writer, &mut ours);
                    let new = self.engine.replace_stop(number, trigger, price, qty, out);
                    self.stops.insert(new.expect("it waits"), (id, qty.0, rests));
                    self.note(ours);
                    return std::iter::once(replaced).chain(self.acted(0)).collect();
                }
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
                let mut reports = vec![replaced];
                let took = self.note(ours);
                self.took(id, &took, &mut reports);
                match left {
                    0 => reports.push(report(id, ReportKind::Cancelled)),
                    _ => self.rests(id, new, qty.0, true, &mut reports),
                }
                reports
            }
        }
    }

    /// A mass quote, or a cancellation of quotes: what of them has traded at once.
    fn quote(&mut self, entries: &[QuoteEntry], writer: &mut impl Listener) -> Vec<QuoteFill> {
        let mut fills = Vec::new();
        for entry in entries {
            let [(bid, bid_qty), (ask, ask_qty)] = entry.quote.sides;
            let quote = tickwire_exchange::QuoteEntry {
                instrument: entry.quote.instrument,
                owner: OWN,
                bid,
                bid_qty,
                ask,
                ask_qty,
            };
            for (side, of) in Side::BOTH.into_iter().zip(entry.quote.sides) {
                self.quoted.insert((entry.name, side), of);
            }
            let (mut ours, mut results) = (Ours::new(self.published), [Ok(())]);
            let out = &mut (&mut *writer, &mut ours);
            let done = self.engine.mass_quote(Firm(1), &[quote], &mut results, out);
            assert_eq!((done, results), (Ok(()), [Ok(())]), "{entry:?}");
            let entered = std::mem::take(&mut ours.quotes).into_iter();
            self.quotes
                .extend(entered.map(|(order, side)| (order, (entry.name, side))));
            for part in self.note(ours) {
                let same = |last: &&mut QuoteFill| (last.side, last.traded.0) == (part.side, part.price);
                match fills.last_mut().filter(same) {
                    Some(last) => last.traded.1 += part.qty.0,
                    None => fills.push(QuoteFill {
                        name: entry.name,
                        side: part.side,
                        traded: (part.price, part.qty.0),
                    }),
                }
            }
        }
        let engine = &self.engine;
        self.quotes.retain(|order, _| engine.order(*order).is_some());
        fills
    }

    fn tell_quote_fill(&self, fill: &QuoteFill, now: Nanos, host: &mut impl Host) {
        let QuoteFill { name, side, traded } = *fill;
        let report = QuoteReport::Filled {
            name,
            side,
            qty: Qty(traded.1),
            price: traded.0,
            of: self.quoted[&(name, side)],
        };
        host.quote_report(now, &report);
    }

    fn number_of(&self, id: ClientOrderId) -> Option<OrderId> {
        let waiting = self.stops.iter().map(|(number, (own, ..))| (number, own));
        let mut all = self.ours.iter().chain(waiting);
        all.find(|(_, own)| **own == id).map(|(number, _)| *number)
    }

    /// Fills of an order that came in, by price as the backtest tells them.
    fn took(&mut self, id: ClientOrderId, took: &[Traded], reports: &mut Vec<OrderReport>) {
        let mut parts: Vec<(Price, u32)> = Vec::new();
        for Traded { qty, price, .. } in took {
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
        rests: bool,
        reports: &mut Vec<OrderReport>,
    ) {
        let filled = self.filled.get(&id).copied().unwrap_or(0);
        if filled < qty && rests {
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
    let sent = Published::default();
    let mut writer = ItchWriter::new(&all, |bytes: &[u8]| sent.borrow_mut().push(bytes.to_vec()));
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
        published: &sent,
        rng: Rng(seed ^ 0x5DEE_CE66),
        house: Vec::new(),
        ours: BTreeMap::new(),
        filled: BTreeMap::new(),
        stops: BTreeMap::new(),
        makers: VecDeque::new(),
        acted: VecDeque::new(),
        quotes: BTreeMap::new(),
        quoted: BTreeMap::new(),
    };
    // The venue's own reading of what it publishes.
    let (mut channel, mut books) = (channel(), books());
    let mut recording = Recording::new();
    let mut time = 0;
    for step in 0..=steps {
        if step > 0 {
            sim.step(&mut writer);
        }
        // What others did, then what ours did then, until there is nothing more to tell. Where a stop order
        // has acted, what it did is told the next time.
        loop {
            let until = sim.acted.front().map(|acted| acted.behind);
            let messages: Vec<Vec<u8>> = {
                let mut sent = sent.borrow_mut();
                let until = until.unwrap_or(sent.len());
                sent.drain(..until).collect()
            };
            let told = messages.len();
            if messages.is_empty() {
                break;
            }
            time += 1_000;
            let now = Nanos(time);
            for message in messages {
                host.message(now, &message);
                for event in events_of(&mut channel, now, &message) {
                    books.apply(&event);
                    if event.kind != tickwire_market::EventKind::Execute {
                        continue;
                    }
                    let number = event.order_id;
                    let own = sim.ours.get(&number).copied();
                    let quote = sim.quotes.get(&number).copied();
                    if own.is_none() && quote.is_none() {
                        continue;
                    }
                    let traded = sim.makers.pop_front().expect("one that was executed");
                    assert_eq!(number, traded.order);
                    if sim.engine.order(number).is_none() && books.order(number).is_none() {
                        sim.ours.remove(&number);
                        sim.quotes.remove(&number);
                    }
                    if let Some(id) = own {
                        let report = sim.fill(id, traded.qty, traded.price);
                        host.report(now, &report);
                    } else if let Some((name, side)) = quote {
                        let traded = (traded.price, traded.qty.0);
                        sim.tell_quote_fill(&QuoteFill { name, side, traded }, now, &mut host);
                    }
                }
                recording.push((now, message));
            }
            for report in sim.acted(told) {
                host.report(now, &report);
            }
            // What the strategy wants arrives after all of it.
            loop {
                let requests = host.requests();
                if requests.is_empty() {
                    break;
                }
                for request in requests {
                    match request {
                        Request::Order(request) => {
                            for report in sim.request(&request, &mut writer) {
                                host.report(now, &report);
                            }
                        }
                        Request::Quotes {
                            id,
                            entries,
                            is_cancel,
                        } => {
                            for fill in sim.quote(&entries, &mut writer) {
                                sim.tell_quote_fill(&fill, now, &mut host);
                            }
                            let answer = match is_cancel {
                                true => QuoteReport::Cancelled { id, is_done: true },
                                false => QuoteReport::Answered {
                                    id,
                                    is_rejected: false,
                                    refused: &[],
                                },
                            };
                            host.quote_report(now, &answer);
                        }
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
        for style in [Style::Taker, Style::Mixed] {
            let stamp = Stamp::Time;
            let which = Which { seed, style, stamp };
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
        for style in [Style::Taker, Style::Mixed] {
            let stamp = Stamp::Heard;
            let which = Which { seed, style, stamp };
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

#[test]
fn stop_orders_act_in_a_backtest_as_they_did_in_the_venue() {
    let mut all = [0; 4];
    for seed in 1..=12 {
        let which = Which {
            seed,
            style: Style::Stops,
            stamp: Stamp::Time,
        };
        let (really, recording) = sim(seed, 4_000, in_memory(which));
        let again = backtest(which, &recording);
        agree(which, &really, &again);
        let short = really.len() - again.len();
        assert!(short <= 6, "{} of {}", again.len(), really.len());
        let count = |is: fn(&Said) -> bool| really.iter().filter(|said| is(said)).count();
        let counts = [
            count(|said| matches!(said, Said::Stop(.., None, _))),
            count(|said| matches!(said, Said::Stop(.., Some(_), _))),
            count(|said| matches!(said, Said::Moved(..))),
            count(|said| matches!(said, Said::Triggered(..))),
        ];
        all = std::array::from_fn(|at| all[at] + counts[at]);
    }
    println!("{all:?}: stop orders, stop-limit orders, triggers moved, orders triggered");
    assert!(all.iter().all(|count| *count > 300), "{all:?}");
}

#[test]
fn over_fix_in_memory_and_in_a_backtest_stops_and_quotes_are_the_same_by_what_was_heard_before() {
    let (mut all, mut triggered, mut quoted) = ([0, 0], 0, 0);
    for seed in 1..=3 {
        for style in [Style::Mixed, Style::Stops, Style::Quotes] {
            let which = Which {
                seed,
                style,
                stamp: Stamp::Heard,
            };
            let (in_memory, recording) = sim(seed, 2_000, in_memory(which));
            let (over_fix, received) = sim(seed, 2_000, fix::over_fix(which));
            agree(which, &in_memory, &over_fix);
            assert_eq!(in_memory.len(), over_fix.len(), "{which:?}");
            assert!(
                recording == received,
                "{which:?}: the venue has published something else"
            );
            let again = backtest(which, &received);
            agree(which, &over_fix, &again);
            assert!(over_fix.len() - again.len() <= 8, "{which:?}");
            all = std::array::from_fn(|at| all[at] + counted(&over_fix)[at]);
            let is_triggered = |said: &&Said| matches!(said, Said::Triggered(..));
            triggered += over_fix.iter().filter(is_triggered).count();
            let is_of_quote =
                |said: &&Said| matches!(said, Said::OwnQuote(_, _, QuoteEventKind::Filled { .. }, _));
            quoted += over_fix.iter().filter(is_of_quote).count();
        }
    }
    println!(
        "{all:?}: orders over FIX, reports of orders that were filled; {triggered} triggered, {quoted} fills of quotes"
    );
    assert!(all.iter().all(|count| *count > 200), "{all:?}");
    assert!(triggered > 50 && quoted > 50, "{triggered}, {quoted}");
}

#[test]
fn mass_quotes_do_in_a_backtest_what_they_did_in_the_venue() {
    let mut all = [0; 5];
    for seed in 1..=12 {
        let which = Which {
            seed,
            style: Style::Quotes,
            stamp: Stamp::Time,
        };
        let (really, recording) = sim(seed, 4_000, in_memory(which));
        let again = backtest(which, &recording);
        agree(which, &really, &again);
        let short = really.len() - again.len();
        assert!(short <= 8, "{} of {}", again.len(), really.len());
        let count = |is: fn(&Said) -> bool| really.iter().filter(|said| is(said)).count();
        let of_several = really.windows(2).filter(|two| match two {
            [Said::Quoted(_, a, _), Said::Quoted(_, b, _)] => a == b,
            _ => false,
        });
        let counts = [
            count(|said| matches!(said, Said::Quoted(..))),
            of_several.count(),
            count(|said| matches!(said, Said::OwnQuote(_, _, QuoteEventKind::Filled { .. }, _))),
            count(|said| matches!(said, Said::QuotesCancelled(..))),
            count(|said| matches!(said, Said::New(..))),
        ];
        all = std::array::from_fn(|at| all[at] + counts[at]);
    }
    println!("{all:?}: quotes, further ones of one request, fills of quotes, cancellations, orders");
    assert!(all.iter().all(|count| *count > 100), "{all:?}");
}
