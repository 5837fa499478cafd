//! From a packet to mass quotes, and from the venue's answers back to what is believed live: everything between sockets and the quoter.
//!
//! ```text
//! packet ─► Channel ─► QuotePath::on_event ─► Books ─► (end of the match event) Eye, Quoter::on_underlying ─► QuoteWire ─► out
//! bytes  ─► Session ─► QuotePath::answers ─► read_quote_answer · ExecutionReport ─► Quoter · Eye ─► QuoteWire ─► out
//! ```
//! The electronic eye looks first: after the quoter, quotes that move are under way, and it trades with none that could be ours. Its orders
//! go out by the same session; their numbers begin above those of the quotes, and above those of every process before this one.
//!
//! One thread, calls in order. After it is made, nothing here allocates, locks or logs: `tests.rs` counts.

use tickwire_book::{Applied, Books};
use tickwire_fix::{
    AppMessage, CompId, DisconnectReason, Event, ExecType, ExecutionReport, Id, MassQuoteHead,
    MassQuoteTemplate, MemoryStore, NewOrder, OrderTemplate, Precision, QuoteAnswer, QuoteDecimals,
    QuotePrices, Role, Session, SessionConfig, Status, Store, Version, put_cancel_all_orders,
    put_cancel_all_quotes, put_quote_status_request, quote_status_answers, read_quote_answer,
};
use tickwire_market::{
    BookState, BookUpdate, Cause, ClientOrderId, Counter, Counters, EventFlags, EventKind, EventSink,
    InstrumentId, MarketEvent, Nanos, OrderId, OrderIntent, Price, Qty, SeqNo, Side, Symbol, TradingStatus,
    Venue,
};
use tickwire_trading::{
    Controls, Eye, EyeConfig, Fill, Ladder, MassQuote, NO_ASK, NO_BID, OrderReport, OrderSink, PullReason,
    QuoteSink, Quoter, QuoterConfig, QuotingState, ReportError, ReportKind, RiskReject, SideOutcome,
    SideReport, StrategyId, Wanted,
};

use super::account::{Off, Seen, View};
use super::as_orders::{AsOrders, SideWire};
use super::fills::Recovered;
use super::gather::Gathered;
use super::reconciliation::{Question, Reconciliation};
use tickwire_console::failure::Failure;
use tickwire_node::controls::{Policy, check_venue_cancels};
use tickwire_node::hot::OrderOut;
use tickwire_node::trader::report_kind;

/// An instrument that is not quoted.
const NONE: u16 = u16::MAX;
/// Identifiers below are those of quotes: their places.
const ORDERS_FROM: u64 = 1 << 16;

/// The last executions whose identifiers are remembered.
const RECENT: usize = 64;

/// A market maker's session; its store may outlive the process.
pub type QuoteSession = Session<Box<dyn Store + Send>>;

/// What traded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Source {
    /// A quote.
    Quote,
    /// An order of the electronic eye in an option.
    Eye,
    /// A hedge in the underlying.
    Hedge,
}

/// What happened to our quotes and orders, for whoever keeps positions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Traded {
    /// When it was heard of, UTC.
    pub at: Nanos,
    /// What traded.
    pub source: Source,
    /// The option's place among the quotes; of a hedge without meaning.
    pub quote: u16,
    /// Our side: a filled bid bought.
    pub side: Side,
    /// The venue took a trade of the other side back.
    pub is_broken: bool,
    /// Contracts.
    pub qty: u32,
    /// Of one contract, points.
    pub price: Price,
    /// Bid plus ask of the underlying then, in its ticks; 0 when it was not known.
    pub half_tick: i64,
    /// MsgSeqNum (34) of the report, and its ExecID (17).
    pub seq: u64,
    /// ExecID (17) of the venue's report.
    pub exec: Id,
}

impl Traded {
    /// Our side of the trade that it is about: of one that was taken back, the other one than it is booked on.
    pub fn side_of_trade(&self) -> Side {
        if self.is_broken { !self.side } else { self.side }
    }
}

/// Takes what happened. `false`: no room for it.
pub trait Trades {
    /// Takes a trade; whether there was room for it.
    fn traded(&mut self, traded: &Traded) -> bool;
}

/// Encodes what the quoter sends, and sends it.
pub struct QuoteWire<O> {
    /// The order entry session.
    pub session: QuoteSession,
    entry: Entry,
    /// Of the eye's orders: the options in the order of the quotes, then the underlying. Empty without an eye.
    orders: Box<[OrderTemplate]>,
    /// Even, and above every number that orders of this session have had. The eye's are even from there on, those that are sides of quotes
    /// odd.
    first_order: u64,
    pub out: Gathered<O>,
    /// Time of what is sent: that of the event it follows.
    now: Nanos,
    /// Messages and bytes of quotes sent.
    pub sent: [u64; 2],
    /// Orders of the eye sent.
    pub orders_sent: u64,
    /// What every quote and order passes last, a slot for each quote and one for the underlying behind them; `None` for tests and
    /// measurements of something else.
    pub controls: Option<Box<Controls>>,
    /// The last control that stopped something.
    pub stopped_by: Option<RiskReject>,
    option_tick: Price,
    counters: Counters,
}

impl<O: OrderOut> QuoteWire<O> {
    /// Sends what the session has to say. Before a mass quote, nothing else may wait.
    pub fn transmit(&mut self) {
        let mut chunk = [0_u8; 4096];
        while let Some(bytes) = self.session.poll_transmit(&mut chunk) {
            self.out.send(bytes);
        }
    }
}

impl<O> QuoteWire<O> {
    /// An order of the eye as the controls take it. Several parts of one fill may be hedged by orders alike.
    #[inline]
    fn wanted(&self, option: Option<u16>, order: &OrderIntent) -> Option<Wanted> {
        let OrderIntent::New {
            side,
            price,
            qty,
            cause,
            ..
        } = *order
        else {
            return None;
        };
        Some(Wanted {
            strategy: StrategyId::Eye,
            slot: option.map_or(self.orders.len().saturating_sub(1), usize::from),
            side,
            price,
            qty,
            cause: option.map(|_| cause.seq),
        })
    }

    /// Whether a control has stopped quotes or eye until a person resumes them.
    fn is_stopped(&self) -> bool {
        self.controls.as_ref().is_some_and(|controls| {
            [StrategyId::Quotes, StrategyId::Eye]
                .iter()
                .any(|strategy| controls.stopped(*strategy).is_some())
        })
    }

    /// The market of an instrument: what its prices are held to.
    #[inline]
    fn observe(&mut self, now: Nanos, slot: usize, best: [Option<Price>; 2]) {
        if let (Some(controls), [Some(bid), Some(ask)]) = (&mut self.controls, best)
            && bid < ask
        {
            // The middle of two 64-bit numbers is one.
            let mid = (i128::from(bid.raw()) + i128::from(ask.raw())) >> 1;
            controls.observe(now, slot, Price::from_raw(mid as i64));
        }
    }
}

/// How quotes are entered.
enum Entry {
    MassQuotes(Box<MassQuoteTemplate>),
    Orders(Box<AsOrders>),
}

impl Entry {
    fn as_orders(&mut self) -> Option<&mut AsOrders> {
        match self {
            Entry::MassQuotes(_) => None,
            Entry::Orders(orders) => Some(orders),
        }
    }
}

#[inline]
fn head_of(quote: &MassQuote<'_>) -> MassQuoteHead {
    MassQuoteHead {
        id: quote.id,
        cause: quote.cause,
        reset: quote.reset,
    }
}

impl<O: OrderOut> QuoteSink for QuoteWire<O> {
    #[inline]
    fn mass_quote(&mut self, quote: &MassQuote<'_>) -> bool {
        let template = match &mut self.entry {
            Entry::MassQuotes(template) => template,
            Entry::Orders(entry) => {
                let mut wire = SideWire {
                    session: &mut self.session,
                    out: &mut self.out,
                    sent: &mut self.sent,
                    names: entry.names,
                    symbols: &entry.symbols,
                    tick: entry.tick,
                    now: self.now,
                };
                return entry.orders.quote(quote, &mut wire);
            }
        };
        let encoded = self
            .session
            .encode_mass_quote(self.now, template, &head_of(quote), quote.entries);
        let Ok(bytes) = encoded else {
            return false;
        };
        self.sent[0] += 1;
        self.sent[1] += bytes.len() as u64;
        self.out.gather(bytes);
        true
    }

    #[inline]
    fn admit(&mut self, now: Nanos, quote: &MassQuote<'_>) -> Result<(), RiskReject> {
        let Some(controls) = &mut self.controls else {
            return Ok(());
        };
        let price = |ticks: u16| Price::from_raw(self.option_tick.raw() * i64::from(ticks));
        for entry in quote.entries {
            let sides = [
                (price(entry.bid_ticks), entry.bid_qty),
                (price(entry.ask_ticks), entry.ask_qty),
            ];
            controls
                .check_quote(now, entry.quote.into(), sides)
                .inspect_err(|reason| self.stopped_by = Some(*reason))?;
        }
        for entry in quote.entries {
            controls.charge(now, entry.quote.into());
        }
        Ok(())
    }

    fn rehearse(&mut self, quote: &MassQuote<'_>) {
        if let Entry::MassQuotes(template) = &mut self.entry {
            let head = head_of(quote);
            self.session
                .rehearse_mass_quote(self.now, template, &head, quote.entries);
        }
    }

    #[cold]
    fn cancel_all(&mut self, id: u64, _: &Cause) -> bool {
        let now = self.now;
        // Nor is it kept: with a connection that is lost the venue cancels by itself, and when it is asked for again it would cancel, and
        // confirm, quotes of the next one.
        let sent = match &mut self.entry {
            Entry::MassQuotes(_) => self
                .session
                .send_any_passing(now, b"Z", |e| put_cancel_all_quotes(e, id)),
            Entry::Orders(entry) => {
                let name = entry.begin_cancel(now, id);
                let sent = self
                    .session
                    .send_any_passing(now, b"q", |e| put_cancel_all_orders(e, name, now));
                if sent.is_err() {
                    entry.drop_cancel();
                }
                sent
            }
        };
        self.transmit();
        sent.is_ok()
    }
}

impl<O: OrderOut> OrderSink for QuoteWire<O> {
    #[inline]
    fn order(&mut self, option: Option<u16>, order: &OrderIntent) -> bool {
        let wanted = self.wanted(option, order);
        if let (Some(controls), Some(wanted)) = (&mut self.controls, &wanted)
            && let Err(reason) = controls.check(self.now, wanted)
        {
            self.stopped_by = Some(reason);
            self.counters.bump(Counter::RiskRejects);
            self.counters.bump(reason.counter());
            return false;
        }
        let Some(mut order) = NewOrder::of(order) else {
            return false;
        };
        order.id.0 = self.first_order + 2 * order.id.0;
        let underlying = self.orders.len().saturating_sub(1);
        let Some(template) = self.orders.get_mut(option.map_or(underlying, usize::from)) else {
            return false;
        };
        let Ok(bytes) = self.session.encode_passing_order(self.now, template, &order) else {
            return false;
        };
        self.orders_sent += 1;
        // Whether it arrived is told in the next session.
        self.out.send(bytes);
        if let (Some(controls), Some(wanted)) = (&mut self.controls, &wanted) {
            controls.sent(self.now, wanted, false);
        }
        true
    }
}

/// What a quoting session is made with.
pub struct QuoteSetup<'s> {
    /// Limits and sizes of the quoter.
    pub quoter: QuoterConfig,
    /// Of the options, in the order of the quotes.
    pub instruments: &'s [InstrumentId],
    /// By quote, in the order of `instruments`.
    pub symbols: &'s [Symbol],
    /// Thousandths, in the same order.
    pub deltas: &'s [i32],
    /// The order entry session.
    pub session: QuoteSession,
    /// Quotes are orders, a bid and an offer each.
    pub by_orders: bool,
    /// Above every number that orders of this session have had.
    pub first_order: u64,
}

/// Why a setup cannot be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NotQuotable(pub &'static str);

/// Books, quoter and session of one quoting thread.
pub struct QuotePath<O, T> {
    /// The books of the channel.
    pub books: Books,
    /// What is quoted, and what is believed live.
    pub quoter: Quoter,
    /// Where quotes leave.
    pub wire: QuoteWire<O>,
    /// Who hears of trades.
    pub trades: T,
    underlying: InstrumentId,
    option_tick: Price,
    underlying_tick: Price,
    answer_max_ns: u64,
    /// By instrument.
    quotes: Box<[u16]>,
    /// The same by symbol, sorted.
    symbols: Box<[(Symbol, u16)]>,
    deltas: Box<[i32]>,
    /// The underlying's book as it stands; told to the quoter when its event is over.
    top: BookUpdate,
    is_new: bool,
    status: TradingStatus,
    /// Entries that an answer names.
    named: Vec<u16>,
    /// Answers that could not be read; each pulls everything.
    pub unread: u64,
    /// Fills there was no room for; each pulls everything.
    pub trades_lost: u64,
    /// How the session ended.
    pub ended: Option<DisconnectReason>,
    /// The electronic eye, if there is one.
    pub eye: Option<Eye>,
    /// Contracts of options that it traded.
    pub eye_contracts: u64,
    /// Options that trade, as the venue last said: those that the eye looks at when it is turned on.
    is_open: Box<[bool]>,
    /// MsgSeqNum of the message being answered, and of the last execution that was booked, of a process before this one too.
    told: u64,
    booked: u64,
    /// ExecIDs of the last executions, the next one's place.
    recent: ([Id; RECENT], usize),
    /// Executions that were booked before, left out.
    pub repeated: u64,
    /// Logged on, and what the venue had said meanwhile is still coming.
    is_catching_up: bool,
    /// What the venue has of our quotes.
    pub reconciliation: Reconciliation,
    /// What is done about a venue that does not confirm that it cancels, and the field in which it is asked.
    venue_cancels: (Policy, u32),
    /// Why the run has to end: the venue does not confirm it.
    pub refused: Option<Failure>,
}

/// The initiator's side of a market maker's session, `sender` to `target`, kept in memory. With `resets`, its first logon begins with 1
/// anew. A connection that is lost is taken up where it was: executions of the time between are sent again. `heartbeat_s` is HeartBtInt (108):
/// the venue gives up who was not heard for 2.4 times as long, and cancels.
pub fn session_of(ids: [CompId; 2], version: Version, resets: bool, heartbeat_s: u32) -> QuoteSession {
    let config = SessionConfig {
        reset_on_logon: resets,
        ..session_config(ids, version, heartbeat_s)
    };
    let store = MemoryStore::new(config.store_messages, config.store_bytes);
    Session::with_store(config, Box::new(store))
}

/// The same with a store that outlives the process.
pub(crate) fn lasting_session(
    ids: [CompId; 2],
    version: Version,
    heartbeat_s: u32,
    store: Box<dyn Store + Send>,
) -> QuoteSession {
    Session::with_store(session_config(ids, version, heartbeat_s), store)
}

fn session_config([sender, target]: [CompId; 2], version: Version, heartbeat_s: u32) -> SessionConfig {
    SessionConfig {
        heartbeat_s,
        any_message: true,
        precision: Precision::Micros,
        receive_bytes: 256 << 10,
        fields_max: 4_096,
        ..SessionConfig::new(Role::Initiator, sender, target).of_version(version)
    }
}

/// The digits behind the point that a tick needs.
pub fn decimals_of(tick: Price) -> QuoteDecimals {
    let needs = |unit: i64| tick.raw() % unit != 0;
    match () {
        () if needs(Price::ONE_RAW / 10_000) => QuoteDecimals::Six,
        () if needs(Price::ONE_RAW / 100) => QuoteDecimals::Four,
        () => QuoteDecimals::Two,
    }
}

impl<O: OrderOut, T: Trades> QuotePath<O, T> {
    /// Quotes nothing until it is logged on and has a ladder. The session knows its peer: an initiator's.
    ///
    /// # Errors
    /// What the message cannot carry.
    pub fn new(
        setup: QuoteSetup<'_>,
        books: Books,
        out: O,
        trades: T,
    ) -> Result<QuotePath<O, T>, NotQuotable> {
        let config = setup.quoter;
        let first_order = setup.first_order.max(ORDERS_FROM).next_multiple_of(2);
        let entry = if setup.by_orders {
            let entry = AsOrders::new(setup.symbols, config.option_tick, first_order);
            Entry::Orders(Box::new(entry))
        } else {
            let prices = QuotePrices {
                tick: config.option_tick,
                decimals: decimals_of(config.option_tick),
            };
            let template = setup
                .session
                .mass_quote_template(setup.symbols, prices, config.entries_max)
                .ok_or(NotQuotable(
                    "prices of the options do not fit into a mass quote of this session",
                ))?;
            Entry::MassQuotes(Box::new(template))
        };
        let last = setup.instruments.iter().map(|id| id.index()).max().unwrap_or(0);
        let mut quotes = vec![NONE; last.max(config.underlying.index()) + 1].into_boxed_slice();
        let mut symbols = Vec::with_capacity(setup.symbols.len());
        for ((quote, id), symbol) in (0_u16..).zip(setup.instruments).zip(setup.symbols) {
            quotes[id.index()] = quote;
            symbols.push((*symbol, quote));
        }
        symbols.sort_unstable();
        Ok(QuotePath {
            books,
            quoter: Quoter::new(config),
            wire: QuoteWire {
                session: setup.session,
                entry,
                orders: Box::default(),
                first_order,
                out: Gathered::new(out),
                now: Nanos::ZERO,
                sent: [0; 2],
                orders_sent: 0,
                controls: None,
                stopped_by: None,
                option_tick: config.option_tick,
                counters: Counters::default(),
            },
            trades,
            underlying: config.underlying,
            option_tick: config.option_tick,
            underlying_tick: config.underlying_tick,
            answer_max_ns: config.answer_max_ns,
            quotes,
            symbols: symbols.into_boxed_slice(),
            deltas: setup.deltas.into(),
            top: BookUpdate::default(),
            is_new: false,
            status: TradingStatus::Unknown,
            named: Vec::with_capacity(usize::from(config.quotes).max(64)),
            unread: 0,
            trades_lost: 0,
            ended: None,
            eye: None,
            eye_contracts: 0,
            is_open: vec![true; setup.instruments.len()].into_boxed_slice(),
            told: 0,
            booked: 0,
            recent: ([Id::EMPTY; RECENT], 0),
            repeated: 0,
            is_catching_up: false,
            reconciliation: Reconciliation::default(),
            venue_cancels: (Policy::Ignore, 0),
            refused: None,
        })
    }

    /// Has every quote and order pass the controls from now on. Their slots: the quotes in their order, then the underlying.
    pub fn set_controls(&mut self, controls: Controls) {
        self.wire.controls = Some(Box::new(controls));
    }

    /// From now on a venue whose Logon does not confirm that it cancels when the connection is lost is not quoted at, or it is said.
    pub fn set_venue_cancels(&mut self, policy: Policy, tag: u32) {
        self.venue_cancels = (policy, tag);
    }

    /// What processes before this one have traded, by quotes and by an eye. How much of it is in options that are not quoted any more,
    /// contracts bought or sold.
    pub fn restore(&mut self, recovered: &Recovered) -> u64 {
        let mut elsewhere = 0;
        for fill in &recovered.fills {
            let (quote, contracts) = (self.quote_by_name(&fill.symbol), fill.signed());
            let paid = self.paid(contracts, fill.price);
            let slot = quote.map_or(self.quoter_slots(), usize::from);
            if let Some(controls) = &mut self.wire.controls
                && (quote.is_some() || fill.source == Source::Hedge)
            {
                let side = if contracts < 0 { Side::Ask } else { Side::Bid };
                let qty = Qty(contracts.unsigned_abs().min(u32::MAX.into()) as u32);
                controls.hold(strategy_of(fill.source), slot, (side, qty, fill.price));
            }
            match (fill.source, quote) {
                (Source::Hedge, _) => {}
                (_, None) => elsewhere += u64::from(fill.qty),
                (Source::Quote, Some(quote)) => {
                    self.quoter.hold(quote, contracts, paid);
                    if let Some(eye) = &mut self.eye {
                        eye.add_net(contracts);
                    }
                }
                (Source::Eye, Some(quote)) => {
                    self.quoter.add_net(contracts, paid);
                    if let Some(eye) = &mut self.eye {
                        eye.hold(quote, contracts);
                    }
                }
            }
            self.remember(fill.exec);
        }
        self.booked = recovered.last_fill();
        elsewhere
    }

    /// The slot of the underlying among the controls: behind those of the quotes.
    fn quoter_slots(&self) -> usize {
        self.is_open.len()
    }

    /// What contracts cost at a price, in ticks of the options times contracts.
    fn paid(&self, contracts: i64, price: Price) -> i64 {
        contracts.saturating_mul(price.raw() / self.option_tick.raw().max(1))
    }

    fn remember(&mut self, exec: Id) {
        let (recent, next) = &mut self.recent;
        recent[*next % RECENT] = exec;
        *next += 1;
    }

    /// Whether an execution is in the positions already: it was sent again because it was not known that we have it, or the venue says it
    /// twice.
    fn is_booked(&mut self, report: &ExecutionReport, is_late: bool) -> bool {
        let is_known = (is_late && self.told <= self.booked)
            || (!report.exec_id.is_empty() && self.recent.0.contains(&report.exec_id));
        match is_known {
            true => self.repeated += 1,
            false => {
                self.booked = self.told;
                self.remember(report.exec_id);
            }
        }
        is_known
    }

    /// Lets an electronic eye look at the same options, whose instruments and symbols are those of the setup; it is off.
    ///
    /// # Errors
    /// A symbol that an order cannot have.
    pub fn open_eye(
        &mut self,
        config: EyeConfig,
        instruments: &[InstrumentId],
        symbols: &[Symbol],
        underlying: Symbol,
    ) -> Result<(), NotQuotable> {
        let session = &self.wire.session;
        let templates: Option<Vec<_>> = symbols
            .iter()
            .chain([&underlying])
            .map(|symbol| session.order_template(*symbol))
            .collect();
        let templates = templates.ok_or(NotQuotable(
            "orders in the options cannot be written for this session",
        ))?;
        self.wire.orders = templates.into_boxed_slice();
        let mut eye = Eye::new(config, instruments);
        eye.add_net(self.quoter.net());
        self.eye = Some(eye);
        Ok(())
    }

    /// A turn of the loop begins, before anything else is done in it: whether it comes in time, and market data does ([`Quoter::on_turn`]). For
    /// how long the loop stood still, in nanoseconds, if that was too long: everything is pulled.
    #[inline]
    pub fn turn(&mut self, now: Nanos) -> Option<u64> {
        self.wire.now = now;
        let stood = self.quoter.on_turn(now, &mut self.wire);
        if self.quoter.state() != QuotingState::Quoting {
            self.stop_eye(now);
        }
        stood
    }

    /// One reason stops both: what pulls quotes for as long as nobody resumes turns the eye off, and what the underlying is not trusted for
    /// leaves it idle.
    #[cold]
    fn stop_eye(&mut self, now: Nanos) {
        let (QuotingState::Pulling(reason) | QuotingState::Halted(reason)) = self.quoter.state() else {
            return;
        };
        let Some(eye) = &mut self.eye else { return };
        match reason {
            PullReason::Stall | PullReason::Silence | PullReason::SilentUnderlying => eye.distrust(now),
            PullReason::NoSession => {}
            reason if reason.is_passing() => {}
            _ => eye.kill(),
        }
    }

    /// Packets of a time that the loop stood still still wait to be read.
    #[cold]
    pub fn backlog(&mut self, now: Nanos) {
        self.quoter.on_backlog(now);
        if let Some(eye) = &mut self.eye {
            eye.distrust(now);
        }
    }

    /// After a pull that passes: looks at the underlying as it stands, in case that it does not change.
    pub fn look_up(&mut self, now: Nanos) {
        let state = self.quoter.state();
        if self.wire.is_stopped()
            && !matches!(
                state,
                QuotingState::Pulling(PullReason::Control) | QuotingState::Halted(PullReason::Control)
            )
        {
            return self.pull_on_control(now);
        }
        if matches!(state, QuotingState::Halted(reason) if reason.is_passing())
            && self.top.state == BookState::Live
        {
            self.tick(now);
        }
    }

    /// A packet is over that was received now: market data is not silent, and what it changed is quoted.
    #[inline]
    pub fn packet(&mut self, now: Nanos) {
        self.quoter.on_packet(now);
        self.settle(now);
    }

    /// A packet is over: what it changed is quoted, even where the venue forgot to say that its event is over.
    #[inline]
    pub fn settle(&mut self, now: Nanos) {
        if self.is_new {
            self.tick(now);
        }
        self.answer_idle(now);
        self.wire.out.let_go();
    }

    #[inline]
    fn tick(&mut self, now: Nanos) {
        self.is_new = false;
        self.wire.now = now;
        if self.top.state == BookState::Live {
            let best = Side::BOTH.map(|side| self.top.best(side).map(|(price, _)| price));
            self.wire.observe(now, self.is_open.len(), best);
        }
        if let Some(eye) = &mut self.eye {
            eye.on_underlying(now, &self.top, &self.quoter, &mut self.wire);
            count_eye(&mut self.quoter, eye, now);
        }
        self.quoter.on_underlying(now, &self.top, &mut self.wire);
        self.wire.out.let_go();
    }

    /// What the books say of the underlying, told anew: a state of the whole feed has changed.
    #[cold]
    fn look_again(&mut self, event: &MarketEvent) {
        let (seq, recv_ts, venue) = (event.seq, event.recv_ts, self.top.venue);
        let known = self.books.book(self.underlying).map(|book| book.update());
        self.top = BookUpdate {
            seq,
            recv_ts,
            venue,
            ..known.unwrap_or_default()
        };
        if self.status != TradingStatus::Trading {
            self.top.state = BookState::Stale;
        }
        self.tick(event.recv_ts);
    }

    /// What quoter and eye know of the options' books, told anew; of those that are not live, nothing.
    #[cold]
    fn look_at_options(&mut self, event: &MarketEvent) {
        let (now, venue) = (event.recv_ts, self.top.venue);
        self.wire.now = now;
        for (instrument, quote) in self.quotes.iter().enumerate() {
            if *quote == NONE {
                continue;
            }
            let known = self.books.book(InstrumentId(instrument as u32));
            let update = BookUpdate {
                seq: event.seq,
                recv_ts: now,
                venue,
                ..known.map(|book| book.update()).unwrap_or_default()
            };
            if let Some(eye) = &mut self.eye {
                eye.on_option(now, *quote, &update, &self.quoter, &mut self.wire);
                count_eye(&mut self.quoter, eye, now);
            }
            let others = others(
                &self.books,
                &self.quoter,
                now,
                *quote,
                InstrumentId(instrument as u32),
            );
            let is_live = update.state == BookState::Live;
            if is_live {
                self.wire.observe(now, usize::from(*quote), others);
            }
            self.quoter
                .on_market(now, *quote, is_live, others, &mut self.wire);
        }
    }

    #[cold]
    fn status(&mut self, event: &MarketEvent) {
        let is_whole = event.instrument == InstrumentId::WHOLE_FEED;
        if is_whole || event.instrument == self.underlying {
            self.status = event.status;
            self.look_again(event);
        }
        if let Some(quote) = self.quote_of(event.instrument) {
            let trades = event.status == TradingStatus::Trading;
            self.wire.now = event.recv_ts;
            self.set_open(quote, trades);
            self.quoter
                .set_quoted(event.recv_ts, quote, trades, &mut self.wire);
        }
    }

    #[inline]
    fn quote_of(&self, instrument: InstrumentId) -> Option<u16> {
        self.quotes
            .get(instrument.index())
            .copied()
            .filter(|quote| *quote != NONE)
    }

    /// What was known before quoting began: states of the instruments, the top of the underlying, and the channel's next message.
    pub fn begin(&mut self, now: Nanos, (venue, next_seq): (Venue, SeqNo), status: TradingStatus) {
        self.status = status;
        self.top.venue = venue;
        self.top.instrument = self.underlying;
        let event = MarketEvent {
            recv_ts: now,
            seq: next_seq,
            ..MarketEvent::default()
        };
        self.look_again(&event);
        self.look_at_options(&event);
        self.wire.out.let_go();
    }

    /// Contracts of the largest order in each option.
    pub fn set_eye_sizes(&mut self, sizes: &[u32]) {
        if let Some(eye) = &mut self.eye {
            for (option, size) in (0..).zip(sizes) {
                eye.set_size(option, Qty(*size));
            }
        }
    }

    /// What hedges a contract of each option, in thousandths of a contract of the underlying.
    pub fn set_hedges(&mut self, milli: &[i32]) {
        if let Some(eye) = &mut self.eye {
            for (option, delta) in (0..).zip(milli) {
                eye.set_delta(option, *delta);
            }
        }
    }

    /// A newer ladder of the eye: see [`QuotePath::replace_ladder`]. To be replaced before the quoter's.
    pub fn replace_eye_ladder(&mut self, now: Nanos, ladder: Box<Ladder>) -> Option<Box<Ladder>> {
        self.wire.now = now;
        match &mut self.eye {
            Some(eye) => {
                let before = eye.replace_ladder(now, ladder, &self.quoter, &mut self.wire);
                count_eye(&mut self.quoter, eye, now);
                before
            }
            None => Some(ladder),
        }
    }

    /// Goes through what the next tick might cause and forgets it: for a loop that has nothing else to do ([`Quoter::rehearse`]).
    pub fn rehearse(&mut self, now: Nanos) {
        self.wire.now = now;
        self.quoter.rehearse(now, &mut self.wire);
    }

    /// A newer ladder: quotes follow it at once. The one before comes back, to be filled again.
    pub fn replace_ladder(&mut self, now: Nanos, ladder: Box<Ladder>) -> Option<Box<Ladder>> {
        self.wire.now = now;
        let before = self.quoter.replace_ladder(now, ladder, &mut self.wire);
        self.wire.out.let_go();
        before
    }

    /// Bid plus ask of the underlying, in its ticks, when it is live and has both.
    pub fn half_tick(&self) -> Option<i64> {
        let tick = self.underlying_tick.raw().max(1);
        let best = |side| self.top.best(side).map(|(price, _)| price.raw() / tick);
        let sum = best(Side::Bid)? + best(Side::Ask)?;
        (self.top.state == BookState::Live).then_some(sum)
    }

    /// The connection is there: the logon goes out.
    pub fn connected(&mut self, now: Nanos) {
        self.wire.session.handle_connected(now);
        self.wire.transmit();
    }

    /// The connection is gone.
    pub fn disconnected(&mut self, now: Nanos) {
        self.wire.session.handle_disconnected(now);
        self.answers(now);
        self.session_lost();
    }

    fn session_lost(&mut self) {
        self.is_catching_up = false;
        self.reconciliation.forget();
        if let Some(entry) = self.wire.entry.as_orders() {
            entry.forget();
        }
        self.quoter.on_disconnect();
        if let Some(eye) = &mut self.eye {
            eye.on_disconnect();
        }
    }

    /// The session is logged on. Nothing leaves until everything is here that the venue has said before: what is held would not be known.
    pub fn logged_on(&mut self, now: Nanos, is_reset: bool) {
        self.is_catching_up = true;
        if is_reset {
            self.booked = 0;
        }
        // From now on, what the venue says while we are away is to be heard of.
        self.wire.session.set_reset_on_logon(false);
        self.catch_up(now);
    }

    /// The session of somebody who logged on and left the venue's messages alone, the first one of which waits.
    pub fn take_over(&mut self, now: Nanos, pending: Option<(SeqNo, bool)>, rest: &[u8]) {
        if let Some((seq, is_late)) = pending {
            self.wire.now = now;
            self.told = seq.0;
            self.answer(now, is_late);
        }
        self.answers(now);
        self.on_bytes(now, rest);
    }

    fn catch_up(&mut self, now: Nanos) {
        if !(self.is_catching_up && self.wire.session.is_caught_up()) {
            return;
        }
        if let Some(entry) = self.wire.entry.as_orders()
            && !entry.is_clean()
        {
            // Orders may have outlived the connection: none of them may be there when the first one goes out.
            if !entry.is_cancelling() {
                self.wire.now = now;
                self.wire.cancel_all(0, &Cause::default());
            }
            return;
        }
        self.is_catching_up = false;
        if let Some(eye) = &mut self.eye {
            // An order that did not arrive is not sent again, and one that did has been answered.
            eye.forget_open(now);
            eye.on_logon();
            count_eye(&mut self.quoter, eye, now);
        }
        self.quoter.on_logon(now);
    }

    /// When [`QuotePath::handle_timeout`] has something to do.
    pub fn poll_timeout(&mut self) -> Option<Nanos> {
        let eye = self.eye.as_mut().and_then(Eye::poll_timeout);
        let (quoter, session) = (self.quoter.poll_timeout(), self.wire.session.poll_timeout());
        let asking = self.reconciliation.poll_timeout();
        [quoter, session, eye, self.cancel_due(), asking]
            .into_iter()
            .flatten()
            .min()
    }

    /// When the venue must have confirmed that no order of an earlier session rests.
    fn cancel_due(&mut self) -> Option<Nanos> {
        let entry = self.wire.entry.as_orders()?;
        Some(entry.waits_since()?.after(self.answer_max_ns))
    }

    /// Time has passed.
    pub fn handle_timeout(&mut self, now: Nanos) {
        self.wire.now = now;
        if self.cancel_due().is_some_and(|due| due <= now) {
            if let Some(entry) = self.wire.entry.as_orders() {
                entry.drop_cancel();
            }
            self.refuse_to_begin(now);
        }
        if self.wire.session.poll_timeout().is_some_and(|due| due <= now) {
            self.wire.session.handle_timeout(now);
            self.wire.transmit();
            self.answers(now);
        }
        if self.quoter.poll_timeout().is_some_and(|due| due <= now) {
            self.quoter.handle_timeout(now, &mut self.wire);
        }
        if let Some(eye) = &mut self.eye
            && eye.poll_timeout().is_some_and(|due| due <= now)
        {
            eye.handle_timeout(now);
        }
        self.reconcile(now);
        self.wire.out.let_go();
    }

    /// Asks the venue about one quote after the other; see [`Reconciliation`].
    fn reconcile(&mut self, now: Nanos) {
        if let Some(late) = self.reconciliation.overdue(now) {
            tickwire_console::warn(format_args!(
                "ALERT: the venue has not said for {:.1} s what it has of our quote in {}: every quote is pulled",
                now.since(late.at) as f64 / 1e9,
                late.symbol
            ));
            return self.distrust(now);
        }
        let Some(place) = self.reconciliation.due(now, self.symbols.len()) else {
            return;
        };
        let (symbol, quote) = self.symbols[place];
        let is_quoting = self.quoter.state() == QuotingState::Quoting && !self.is_catching_up;
        let is_still = !self.quoter.is_in_flight(quote);
        if !is_quoting || !is_still || self.wire.session.status() != Status::Active {
            return;
        }
        let sent = [self.wire.sent[0], self.wire.orders_sent];
        let number = self.reconciliation.ask(now, quote, symbol, sent);
        let session = &mut self.wire.session;
        let asked = session.send_any_passing(now, b"a", |e| put_quote_status_request(e, number, &symbol));
        match asked {
            Ok(_) => self.wire.transmit(),
            // There is no room for it now.
            Err(_) => self.reconciliation.forget(),
        }
    }

    /// What the venue has of a quote that it was asked about.
    fn reconciled(&mut self, now: Nanos, asked: Question, open: [u32; 2]) {
        let is_same_moment = asked.sent == [self.wire.sent[0], self.wire.orders_sent];
        if !is_same_moment || self.quoter.is_in_flight(asked.quote) {
            return;
        }
        self.reconciliation.compared += 1;
        let ours = self.quoter.open(asked.quote);
        if ours != open {
            self.reconciliation.differences += 1;
            tickwire_console::warn(format_args!(
                "ALERT: the venue has {} bid and {} offered of our quote in {}, and we have {} and {}: every quote is pulled",
                open[0], open[1], asked.symbol, ours[0], ours[1]
            ));
            self.distrust(now);
        }
    }

    /// Bytes of the venue, cut anywhere.
    pub fn on_bytes(&mut self, now: Nanos, mut bytes: &[u8]) {
        let mut is_stuck = false;
        while !bytes.is_empty() {
            let taken = self.wire.session.handle_bytes(now, bytes);
            bytes = &bytes[taken..];
            self.wire.transmit();
            self.answers(now);
            if taken == 0 && is_stuck {
                // The session is over and takes no more.
                return;
            }
            is_stuck = taken == 0;
        }
        self.wire.transmit();
    }

    /// What the venue has said.
    pub fn answers(&mut self, now: Nanos) {
        self.wire.now = now;
        while let Some(event) = self.wire.session.poll_event() {
            match event {
                Event::LoggedOn { reset, .. } => {
                    let (policy, tag) = self.venue_cancels;
                    match check_venue_cancels(policy, tag, self.wire.session.peer_cancels()) {
                        Ok(()) => self.logged_on(now, reset),
                        // Without this nothing is quoted again.
                        Err(failure) => self.refused = Some(failure),
                    }
                }
                Event::Message { seq, poss_dup, .. } => {
                    self.told = seq.0;
                    self.answer(now, poss_dup);
                }
                Event::Rejected { .. } => self.distrust(now),
                Event::Disconnect { reason, .. } => {
                    self.wire.transmit();
                    self.session_lost();
                    self.ended.get_or_insert(reason);
                }
                Event::NotKept { first, last, count } => tickwire_console::warn(format_args!(
                    "the venue asked for messages that the store no longer has: {count} numbers, {first} to {last}, were sent as gap fills"
                )),
                Event::App { .. }
                | Event::Admin { .. }
                | Event::Gap { .. }
                | Event::LogonRequested { .. }
                | Event::CancelOrders { .. } => {}
            }
            self.wire.transmit();
        }
        self.catch_up(now);
        if self.quoter.state() != QuotingState::Quoting {
            self.stop_eye(now);
        }
        self.wire.out.let_go();
    }

    /// What is sent again (`is_late`) is of a connection that was lost, and its quotes with it: only executions still count.
    fn answer(&mut self, now: Nanos, is_late: bool) {
        let Some(message) = self.wire.session.message() else {
            return;
        };
        let asked = quote_status_answers(&message).and_then(|number| self.reconciliation.answered(number));
        match read_quote_answer(&message, &mut self.named) {
            Ok(Some(_)) if is_late => {}
            Ok(Some(QuoteAnswer::Answered { id, is_rejected })) => {
                let rejected = (!is_rejected).then_some(&self.named[..]);
                self.quoter.on_answer(now, id, rejected, &mut self.wire);
            }
            Ok(Some(QuoteAnswer::Cancelled { id, is_done })) => self.cancelled(now, id, is_done),
            Ok(Some(QuoteAnswer::Removed { why: b'F' })) => self.quoter.on_protected(),
            Ok(Some(QuoteAnswer::Removed { .. })) => {
                for quote in &self.named {
                    self.quoter.on_removed(*quote, [true; 2]);
                }
            }
            Ok(Some(QuoteAnswer::Left { open, .. })) if asked.is_some() => {
                if let Some(asked) = asked {
                    self.reconciled(now, asked, open);
                }
            }
            Ok(Some(QuoteAnswer::Left { symbol, open })) => {
                if let Some(quote) = self.quote_by_name(&symbol) {
                    self.quoter.on_left(quote, open);
                }
            }
            Ok(None) => match AppMessage::decode(&message) {
                Ok(Some(AppMessage::ExecutionReport(report))) => self.report(now, &report, is_late),
                Ok(Some(AppMessage::OrderCancelReject(reject))) if !is_late => {
                    self.refused(now, &reject.cl_ord_id);
                }
                Ok(Some(AppMessage::BusinessMessageReject(_))) => self.distrust(now),
                Ok(_) => {}
                Err(_) => self.distrust(now),
            },
            Err(_) => self.distrust(now),
        }
    }

    /// Every quote was cancelled, or every order where they are orders.
    fn cancelled(&mut self, now: Nanos, id: u64, is_done: bool) {
        let Some(entry) = self.wire.entry.as_orders() else {
            return self.quoter.on_cancelled(now, id, is_done, &mut self.wire);
        };
        match entry.end_cancel(id, is_done) {
            Some(0) if is_done => {}
            Some(0) => self.refuse_to_begin(now),
            asked => self
                .quoter
                .on_cancelled(now, asked.unwrap_or(id), is_done, &mut self.wire),
        }
    }

    /// Orders of an earlier session may rest, since the venue has not confirmed that it cancelled them: the session ends, so that another one begins.
    #[cold]
    fn refuse_to_begin(&mut self, now: Nanos) {
        self.wire.session.logout(now, "cancel on logon was not confirmed");
        self.wire.transmit();
    }

    /// A replacement or a cancel of a quote's order was refused.
    fn refused(&mut self, now: Nanos, name: &Id) {
        let Some(entry) = self.wire.entry.as_orders() else {
            return;
        };
        if let Some(report) = entry.refusal(name.to_number().unwrap_or_default()) {
            let outcome = entry.orders.on_report(&report);
            self.follow(now, &report, outcome);
        }
    }

    /// What became of a quote's order.
    fn side_report(&mut self, now: Nanos, report: &ExecutionReport, name: u64, is_late: bool) {
        let is_fill = report.exec_type == ExecType::Trade;
        if is_fill && self.is_booked(report, is_late) {
            return;
        }
        let quote = self.quote_by_name(&report.symbol);
        let told = self.wire.entry.as_orders().zip(quote).and_then(|(entry, quote)| {
            let told = entry.report(quote, name, report)?;
            Some((told, entry.orders.on_report(&told)))
        });
        if is_fill {
            let Some((quote, fill)) = quote.and_then(|quote| Some((quote, self.fill_of(quote, report)?)))
            else {
                return self.distrust(now);
            };
            self.traded(now, Source::Quote, quote, report);
            match told {
                Some((_, SideOutcome::Unknown)) | None => {
                    self.quoter.on_late_fill(&fill);
                    if !is_late {
                        self.distrust(now);
                    }
                }
                Some(_) => self.quoter.on_order_fill(now, &fill, &mut self.wire),
            }
            if let Some(eye) = &mut self.eye {
                eye.add_net(signed(report));
            }
        }
        if let Some((told, outcome)) = told {
            self.follow(now, &told, outcome);
        }
    }

    /// Tells the quoter what a report means.
    fn follow(&mut self, now: Nanos, report: &SideReport, outcome: SideOutcome) {
        match outcome {
            SideOutcome::Nothing | SideOutcome::Unknown => {}
            SideOutcome::Left(contracts) => {
                let mut left = [u32::MAX; 2];
                left[report.side as usize] = contracts;
                self.quoter.on_left(report.quote, left);
            }
            SideOutcome::Answered(live) => self.quoter.on_orders(now, &live, &mut self.wire),
        }
        self.answer_idle(now);
    }

    /// Answers what the venue need not be asked for.
    #[inline]
    fn answer_idle(&mut self, now: Nanos) {
        let idle = |entry: &mut AsOrders| entry.orders.poll_answer();
        while let Some(live) = self.wire.entry.as_orders().and_then(idle) {
            self.quoter.on_orders(now, &live, &mut self.wire);
        }
    }

    /// What cannot be read may have been about our quotes.
    #[cold]
    fn distrust(&mut self, now: Nanos) {
        self.unread += 1;
        self.pull(now);
    }

    fn report(&mut self, now: Nanos, report: &ExecutionReport, is_late: bool) {
        if report.exec_type == ExecType::TradeCancel {
            return self.broken(now, report, is_late);
        }
        let id = report.cl_ord_id.to_number();
        if let Some(id) = id.filter(|id| *id >= ORDERS_FROM) {
            return match id % 2 {
                0 => self.order_report(now, report, id, is_late),
                _ => self.side_report(now, report, id, is_late),
            };
        }
        if report.exec_type != ExecType::Trade || self.is_booked(report, is_late) {
            return;
        }
        // The places of quotes may have been others in the process before this one.
        let quote = match is_late {
            true => self.quote_by_name(&report.symbol),
            false => id.and_then(|id| u16::try_from(id).ok()),
        };
        let Some((quote, fill)) = quote.and_then(|quote| Some((quote, self.fill_of(quote, report)?))) else {
            return self.distrust(now);
        };
        self.traded(now, Source::Quote, quote, report);
        match is_late {
            true => self.quoter.on_late_fill(&fill),
            false => self.quoter.on_fill(now, &fill, &mut self.wire),
        }
        if let Some(eye) = &mut self.eye {
            eye.add_net(signed(report));
        }
    }

    /// The venue takes a trade back. It is booked the other way round at its price, as what is held and what was paid are then; everything
    /// is pulled until an operator has seen to it.
    #[cold]
    fn broken(&mut self, now: Nanos, report: &ExecutionReport, is_late: bool) {
        if self.is_booked(report, is_late) {
            return;
        }
        let id = report.cl_ord_id.to_number();
        if let Some(id) = id.filter(|id| *id >= ORDERS_FROM && id % 2 == 0) {
            self.order_traded(now, report, id, !report.side, is_late);
            return self.pull_by(now, |quoter, wire| quoter.pull_on_break(now, wire));
        }
        // Which place it has now, if it was of a process before this one.
        let quote = self.quote_by_name(&report.symbol);
        let Some((quote, fill)) = quote.and_then(|quote| Some((quote, self.fill_of(quote, report)?))) else {
            return self.distrust(now);
        };
        let undone = ExecutionReport {
            side: !report.side,
            ..*report
        };
        self.traded(now, Source::Quote, quote, &undone);
        if let Some(eye) = &mut self.eye {
            eye.add_net(signed(&undone));
        }
        self.pull_by(now, |quoter, wire| quoter.on_broken(now, &fill, wire));
    }

    /// A trade as the quoter counts it; `None` without a price that is one.
    fn fill_of(&self, quote: u16, report: &ExecutionReport) -> Option<Fill> {
        let tick = self.option_tick.raw().max(1);
        Some(Fill {
            quote,
            side: report.side,
            qty: report.last_qty,
            ticks: u16::try_from(report.last_px?.raw() / tick).ok()?,
            delta_milli: self.deltas.get(usize::from(quote)).copied().unwrap_or(0),
        })
    }

    /// What became of an order of the eye. What traded is booked whether the order is known or not: those of a process before this one
    /// are not.
    fn order_report(&mut self, now: Nanos, report: &ExecutionReport, id: u64, is_late: bool) {
        if report.exec_type == ExecType::Trade && self.is_booked(report, is_late) {
            return;
        }
        self.order_traded(now, report, id, report.side, is_late);
    }

    /// The same when what traded is not in the positions yet; it is booked on `side`: the other one where the trade is taken back.
    fn order_traded(&mut self, now: Nanos, report: &ExecutionReport, id: u64, side: Side, is_late: bool) {
        let Some(kind) = report_kind(report) else { return };
        let told = OrderReport {
            id: ClientOrderId(id.saturating_sub(self.wire.first_order) / 2),
            venue_id: report.order_id.to_number().map(OrderId),
            kind,
        };
        let quote = self.quote_by_name(&report.symbol);
        let outcome = self.eye.as_mut().map(|eye| {
            let outcome = eye.on_report(now, &told, &mut self.wire);
            count_eye(&mut self.quoter, eye, now);
            outcome
        });
        let is_unknown = match outcome {
            Some(Ok(_)) => false,
            Some(Err(ReportError::Duplicate)) => return,
            Some(Err(_)) | None => true,
        };
        if !kind.is_trade() {
            return;
        }
        let trade = ExecutionReport { side, ..*report };
        match quote {
            Some(quote) => {
                self.traded(now, Source::Eye, quote, &trade);
                let contracts = u64::from(trade.last_qty.0);
                self.eye_contracts = match kind {
                    ReportKind::Broken { .. } => self.eye_contracts.saturating_sub(contracts),
                    _ => self.eye_contracts + contracts,
                };
                match self.fill_of(quote, &trade) {
                    // It trips the protection of both.
                    Some(fill) if matches!(kind, ReportKind::Filled { .. }) && !is_late => {
                        self.quoter.on_fill_beside(now, &fill, &mut self.wire);
                    }
                    _ => {
                        let paid = self.paid(signed(&trade), trade.last_px.unwrap_or_default());
                        self.quoter.add_net(signed(&trade), paid);
                    }
                }
                if let (Some(eye), true) = (&mut self.eye, is_unknown) {
                    eye.hold(quote, signed(&trade));
                }
            }
            None if self.is_underlying(&report.symbol) => self.traded(now, Source::Hedge, NONE, &trade),
            None => self.distrust(now),
        }
    }

    /// Tells whoever keeps positions.
    fn traded(&mut self, now: Nanos, source: Source, quote: u16, report: &ExecutionReport) {
        let traded = Traded {
            at: now,
            source,
            quote,
            side: report.side,
            is_broken: report.exec_type == ExecType::TradeCancel,
            qty: report.last_qty.0,
            price: report.last_px.unwrap_or_default(),
            half_tick: self.half_tick().unwrap_or(0),
            seq: self.told,
            exec: report.exec_id,
        };
        if let Some(controls) = &mut self.wire.controls {
            let slot = match source {
                Source::Hedge => self.is_open.len(),
                Source::Quote | Source::Eye => quote.into(),
            };
            let trade = (traded.side, report.last_qty, traded.price);
            let strategy = strategy_of(source);
            match traded.is_broken {
                // Its side is turned round already.
                true => controls.hold(strategy, slot, trade),
                false => drop(controls.fill(now, strategy, slot, trade)),
            }
            if controls.stopped(strategy).is_some() && self.quoter.state() == QuotingState::Quoting {
                self.wire.stopped_by = controls.stopped(strategy);
                self.pull_on_control(now);
            }
        }
        if !self.trades.traded(&traded) {
            self.trades_lost += 1;
            self.distrust(now);
        }
    }

    /// Without an eye, what trades under an order's number and is no option was a hedge of a process that had one.
    fn is_underlying(&self, symbol: &Symbol) -> bool {
        let last = self.wire.orders.last();
        last.is_none_or(|template| template.symbol() == *symbol)
    }

    fn quote_by_name(&self, symbol: &Symbol) -> Option<u16> {
        let at = self.symbols.binary_search_by(|(own, _)| own.cmp(symbol)).ok()?;
        Some(self.symbols[at].1)
    }

    /// Turns the eye on for as long as it stays so without a heartbeat; options that it no longer watched because an order was rejected
    /// are watched again. `false`: there is none, or the kill switch has it.
    pub fn arm_eye(&mut self, now: Nanos) -> bool {
        let Some(eye) = &mut self.eye else { return false };
        for (option, is_open) in (0..).zip(&self.is_open) {
            eye.set_watched(option, *is_open);
        }
        eye.arm(now)
    }

    /// Turns it off.
    pub fn disarm_eye(&mut self) {
        if let Some(eye) = &mut self.eye {
            eye.disarm();
        }
    }

    /// The operator's client was heard.
    pub fn heartbeat(&mut self, now: Nanos) {
        self.quoter.on_heartbeat(now);
        if let Some(eye) = &mut self.eye {
            eye.on_heartbeat(now);
        }
    }

    /// Whether an option trades.
    fn set_open(&mut self, quote: u16, is_open: bool) {
        if let Some(known) = self.is_open.get_mut(usize::from(quote)) {
            *known = is_open;
        }
        if let Some(eye) = &mut self.eye {
            eye.set_watched(quote, is_open);
        }
    }

    /// Everything counted by books, quoter, eye and session.
    pub fn counters(&self) -> Counters {
        let mut all = self.books.counters().clone();
        all.merge(self.quoter.counters());
        all.merge(self.wire.session.counters());
        all.merge(&self.wire.counters);
        if let Some(eye) = &self.eye {
            all.merge(eye.counters());
        }
        all
    }

    /// An option is not traded: it is not quoted until its status says so.
    pub fn close(&mut self, now: Nanos, quote: u16) {
        self.wire.now = now;
        self.set_open(quote, false);
        self.quoter.set_quoted(now, quote, false, &mut self.wire);
        self.wire.out.let_go();
    }

    /// The kill switch: takes every quote away and turns the eye off, until [`QuotePath::resume`].
    pub fn pull(&mut self, now: Nanos) {
        self.pull_by(now, |quoter, wire| quoter.pull(now, wire));
    }

    /// The same because more was lost than may be.
    pub fn pull_on_loss(&mut self, now: Nanos) {
        self.pull_by(now, |quoter, wire| quoter.pull_on_loss(now, wire));
    }

    /// The same because one of the controls stopped the strategy.
    #[cold]
    fn pull_on_control(&mut self, now: Nanos) {
        if self.wire.stopped_by.is_none()
            && let Some(controls) = &self.wire.controls
        {
            let mut strategies = [StrategyId::Quotes, StrategyId::Eye].into_iter();
            self.wire.stopped_by = strategies.find_map(|strategy| controls.stopped(strategy));
        }
        self.pull_by(now, |quoter, wire| quoter.pull_on_control(now, wire));
    }

    fn pull_by(&mut self, now: Nanos, pull: impl FnOnce(&mut Quoter, &mut QuoteWire<O>)) {
        self.wire.now = now;
        if let Some(eye) = &mut self.eye {
            eye.kill();
        }
        pull(&mut self.quoter, &mut self.wire);
        self.wire.out.let_go();
    }

    /// Quotes again, and the eye may be turned on again; while quotes are still being taken away, neither.
    pub fn resume(&mut self, now: Nanos) -> bool {
        self.wire.now = now;
        self.wire.stopped_by = None;
        if let Some(controls) = &mut self.wire.controls {
            controls.resume();
        }
        if let (Some(eye), false) = (
            &mut self.eye,
            matches!(self.quoter.state(), QuotingState::Pulling(_)),
        ) {
            eye.revive();
        }
        let is_quoting = self.quoter.resume(now);
        if is_quoting && self.top.state == BookState::Live {
            self.tick(now);
        }
        is_quoting
    }

    /// What is seen now: markets of the options and our quotes in them, in the order of the quotes, then the underlying's market.
    #[cold]
    pub fn look(&self, now: Nanos, view: &mut View) {
        // Ours is no market: it would be marked by what we think ourselves.
        let market = |instrument: InstrumentId, quote: u16| {
            let book = self.books.book(instrument);
            match book.is_some_and(|book| book.state() == BookState::Live) {
                true => others(&self.books, &self.quoter, now, quote, instrument),
                false => [None; 2],
            }
        };
        view.at = now;
        view.seen.clear();
        view.seen.resize(self.is_open.len() + 1, Seen::default());
        let tick = self.option_tick.raw();
        for (instrument, quote) in self.quotes.iter().enumerate() {
            let Some(seen) = view.seen.get_mut(usize::from(*quote)).filter(|_| *quote != NONE) else {
                continue;
            };
            let (bid, ask) = self.quoter.live(*quote);
            let [bids, asks] = self.quoter.open(*quote);
            let side = |ticks: u16, qty: u32| {
                (qty > 0).then(|| (Price::from_raw(tick * i64::from(ticks)), Qty(qty)))
            };
            let price =
                |ticks: u16, none: u16| (ticks != none).then(|| Price::from_raw(tick * i64::from(ticks)));
            let sides = |(bid, ask): (u16, u16)| [price(bid, NO_BID), price(ask, NO_ASK)];
            *seen = Seen {
                market: market(InstrumentId(instrument as u32), *quote),
                own: [side(bid, bids), side(ask, asks)],
                off: self.quoter.off_market(*quote).map(|pulled| Off {
                    why: pulled.why,
                    wanted: sides(pulled.wanted),
                    market: sides(pulled.market),
                }),
            };
        }
        if let Some(underlying) = view.seen.last_mut() {
            underlying.market = market(self.underlying, NONE);
        }
    }

    /// Whether nothing of ours is under way.
    pub fn is_still(&self) -> bool {
        self.wire.session.status() == Status::Active
            && !matches!(self.quoter.state(), QuotingState::Pulling(_))
            && self.quoter.in_flight() == 0
            && !self.is_catching_up
            && self.eye.as_ref().is_none_or(|eye| eye.orders().open() == 0)
    }
}

/// The best prices of an option, by side, that are not only ours.
#[inline]
fn others(
    books: &Books,
    quoter: &Quoter,
    now: Nanos,
    quote: u16,
    instrument: InstrumentId,
) -> [Option<Price>; 2] {
    let book = books.book(instrument);
    Side::BOTH.map(|side| {
        let mut levels = book.as_ref()?.levels(side);
        let level = levels.find(|level| !quoter.is_own(now, quote, side, (level.price, level.qty)))?;
        Some(level.price)
    })
}

/// Whose trade it is to the controls.
fn strategy_of(source: Source) -> StrategyId {
    match source {
        Source::Quote => StrategyId::Quotes,
        Source::Eye | Source::Hedge => StrategyId::Eye,
    }
}

/// What the eye has under way and has sent counts towards the quoter's limits.
#[inline]
fn count_eye(quoter: &mut Quoter, eye: &mut Eye, now: Nanos) {
    quoter.set_beside(eye.open());
    quoter.on_sent_beside(now, eye.take_sent());
}

/// Contracts that an execution bought, below 0 sold.
fn signed(report: &ExecutionReport) -> i64 {
    let qty = i64::from(report.last_qty.0);
    match report.side {
        Side::Bid => qty,
        Side::Ask => -qty,
    }
}

impl<O: OrderOut, T: Trades> EventSink for QuotePath<O, T> {
    #[inline]
    fn on_event(&mut self, event: &MarketEvent) {
        match self.books.apply(event) {
            Applied::Update(update) if event.instrument == self.underlying => {
                self.top = *update;
                if self.status != TradingStatus::Trading {
                    self.top.state = BookState::Stale;
                }
                self.quoter.on_change(event.recv_ts);
                self.is_new = true;
            }
            Applied::Update(update) => {
                if let Some(quote) = self
                    .quotes
                    .get(event.instrument.index())
                    .copied()
                    .filter(|quote| *quote != NONE)
                {
                    self.wire.now = event.recv_ts;
                    if let Some(eye) = &mut self.eye {
                        eye.on_option(event.recv_ts, quote, update, &self.quoter, &mut self.wire);
                        count_eye(&mut self.quoter, eye, event.recv_ts);
                    }
                    let is_live = update.state == BookState::Live;
                    let now = event.recv_ts;
                    let others = others(&self.books, &self.quoter, now, quote, event.instrument);
                    if is_live {
                        self.wire.observe(now, quote.into(), others);
                    }
                    self.quoter.on_market(now, quote, is_live, others, &mut self.wire);
                }
            }
            Applied::Feed(_) => {
                self.look_again(event);
                self.look_at_options(event);
            }
            Applied::None if event.kind == EventKind::Status => self.status(event),
            Applied::None | Applied::Rejected(_) => {}
        }
        if self.is_new && event.flags.has(EventFlags::LAST) {
            self.tick(event.recv_ts);
        }
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
