//! What a strategy may look at and do within a callback.

use alloc::vec::Vec;
use core::fmt;

use tickwire_book::super_books::FeedView;
use tickwire_book::{BookRef, Books, SuperId, SuperRef};
use tickwire_market::{
    BookState, BookUpdate, Cause, ClientOrderId, Counter, Counters, InstrumentId, Nanos, OrderIntent,
    OrderType, Price, Qty, Side, Symbol, TimeInForce, Volume,
};

use super::arming::{ArmEnd, ArmRefusal, ArmedOrder, Awaited};
use super::consolidated::{Consolidated, SuperChange};
use super::executions::Execution;
use super::quotes::{QUOTES_MAX, QuoteIntent, Quotes};
use super::reconciling::Reconciling;
use crate::orders::Terms;
use crate::{NewOrder, Order, Orders, Position, Positions, Risk, RiskReject};

/// How many timers a strategy has.
pub const TIMERS: usize = 64;
/// How many notes are kept until somebody reads them.
pub(super) const NOTES: usize = 1024;

/// One of the strategy's timers, below [`TIMERS`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct TimerId(pub u8);

/// Where requests leave: an order session, a simulated venue, memory.
pub trait OrderPort {
    /// Takes a request that has passed every check, at once. An error means that nothing has left.
    fn send(&mut self, now: Nanos, request: &OrderIntent) -> Result<(), Rejected>;

    /// The same of a request about quotes. Who has no such request refuses it as [`Rejected::Unsupported`].
    fn quote(&mut self, now: Nanos, request: &QuoteIntent<'_>) -> Result<(), Rejected> {
        let _ = (now, request);
        Err(Rejected::Unsupported)
    }

    /// Whether an order can be armed here ([`Context::arm`]); if not, why.
    fn arms(&self) -> Result<(), ArmRefusal> {
        Err(ArmRefusal::NoProgram)
    }

    /// Takes the armed order back, and says what became of it.
    fn disarm(&mut self, now: Nanos) -> ArmEnd {
        let _ = now;
        ArmEnd::TakenBack
    }

    /// Until [`OrderPort::end_rehearsal`] what is sent is only rehearsed
    /// ([`Conductor::rehearse`](super::Conductor::rehearse), [`Context::rehearse_quotes`]): it is written as
    /// it would be, and neither leaves nor is counted. `false`: this port cannot do that, and would send it.
    fn begin_rehearsal(&mut self) -> bool {
        false
    }

    /// What is sent leaves again.
    fn end_rehearsal(&mut self) {}
}

/// A request that could not leave.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rejected {
    /// The protocol of the session has no such request.
    Unsupported,
    /// The session is not up, or its connection failed.
    NoSession,
    /// It could trade with an order of another strategy of this program, or take the place of its quote.
    SelfTrade,
    /// The instruments of one mass quote are not traded over one session.
    SeveralSessions,
}

/// Why a request was not sent.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum NotSent {
    /// A pre-trade check stopped it.
    Check(RiskReject),
    /// The book is not live, and the order does not say that this is known ([`Ticket::on_stale_book`]).
    StaleBook,
    /// The venue, or the instrument, is said not to trade; orders for auctions pass.
    NotTrading,
    /// Nothing was subscribed to under this number.
    UnknownInstrument,
    /// No such order, or it is over.
    NotOpen,
    /// Its cancellation or replacement is under way.
    Pending,
    /// A market order without an opposite side to value it by.
    NoOpposite,
    /// A stop order whose trigger the market has reached already.
    StopPrice,
    /// The order has no such price: a market order no limit, any other than a stop order that waits no
    /// trigger.
    WrongType,
    /// Every place of the order table holds an open order.
    OrdersFull,
    /// A mass quote of no instrument, of more than [`QUOTES_MAX`], or of one more than once.
    QuoteCount,
    /// Every place for quotes is taken: `max_quotes`.
    QuotesFull,
    /// The instruments of one mass quote are not traded over one session.
    SeveralSessions,
    /// The order session has no such request.
    Unsupported,
    /// The order session is not up.
    NoSession,
    /// The run is ending.
    Stopping,
    /// It cannot leave by itself.
    NotArmed(ArmRefusal),
}

impl fmt::Display for NotSent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NotSent::Check(reason) => write!(f, "stopped by the check {}", reason.counter().spec().id),
            NotSent::StaleBook => f.write_str("the book is not live"),
            NotSent::NotTrading => f.write_str("the venue or the instrument does not trade now"),
            NotSent::UnknownInstrument => f.write_str("the instrument was not subscribed to"),
            NotSent::NotOpen => f.write_str("the order is not open"),
            NotSent::Pending => f.write_str("a cancellation or replacement of the order is under way"),
            NotSent::NoOpposite => f.write_str("a market order needs an opposite side in the book"),
            NotSent::StopPrice => f.write_str("the market has reached the trigger of the stop order already"),
            NotSent::WrongType => f.write_str("the order has no such price to change"),
            NotSent::OrdersFull => f.write_str("every place of the order table holds an open order"),
            NotSent::QuoteCount => {
                write!(
                    f,
                    "a mass quote is of 1 to {QUOTES_MAX} instruments, of each once"
                )
            }
            NotSent::QuotesFull => f.write_str("every place for quotes is taken"),
            NotSent::SeveralSessions => {
                f.write_str("the instruments of one mass quote are not traded over one session")
            }
            NotSent::Unsupported => f.write_str("the order session has no such request"),
            NotSent::NoSession => f.write_str("the order session is not up"),
            NotSent::Stopping => f.write_str("the run is ending"),
            NotSent::NotArmed(why) => write!(f, "the order cannot be armed: {why}"),
        }
    }
}

/// An order to be entered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use = "a ticket is an order only once it is submitted"]
pub struct Ticket {
    pub(super) instrument: InstrumentId,
    pub(super) side: Side,
    pub(super) qty: Qty,
    /// None of a market order.
    pub(super) price: Option<Price>,
    /// The trigger of a stop order.
    pub(super) stop: Option<Price>,
    pub(super) time_in_force: TimeInForce,
    pub(super) is_on_stale: bool,
    pub(super) may_repeat: bool,
    /// It leaves by itself when this is said.
    pub(super) awaited: Option<Awaited>,
}

impl Ticket {
    /// A limit order for the day.
    pub fn limit(side: Side, instrument: InstrumentId, qty: u32, price: Price) -> Ticket {
        Ticket {
            instrument,
            side,
            qty: Qty(qty),
            price: Some(price),
            stop: None,
            time_in_force: TimeInForce::Day,
            is_on_stale: false,
            may_repeat: false,
            awaited: None,
        }
    }

    /// A stop order, for the day: the venue keeps it out of its book until somebody trades at `trigger` or
    /// beyond it (for a purchase at or above, for a sale at or below), and makes a market order of it then.
    pub fn stop(side: Side, instrument: InstrumentId, qty: u32, trigger: Price) -> Ticket {
        Ticket {
            price: None,
            stop: Some(trigger),
            ..Ticket::limit(side, instrument, qty, Price::ZERO)
        }
    }

    /// The same, and then a limit order at `price`.
    pub fn stop_limit(
        side: Side,
        instrument: InstrumentId,
        qty: u32,
        trigger: Price,
        price: Price,
    ) -> Ticket {
        Ticket {
            stop: Some(trigger),
            ..Ticket::limit(side, instrument, qty, price)
        }
    }

    /// A market order, immediate or cancel.
    pub fn market(side: Side, instrument: InstrumentId, qty: u32) -> Ticket {
        Ticket {
            price: None,
            time_in_force: TimeInForce::ImmediateOrCancel,
            ..Ticket::limit(side, instrument, qty, Price::ZERO)
        }
    }

    /// What does not trade at once is cancelled.
    pub fn immediate_or_cancel(self) -> Ticket {
        self.lasting(TimeInForce::ImmediateOrCancel)
    }

    /// How long it lives.
    pub fn lasting(self, time_in_force: TimeInForce) -> Ticket {
        Ticket {
            time_in_force,
            ..self
        }
    }

    /// It may be the same as the one before it, by the same message: for parts of one decision that are
    /// alike.
    pub fn repeatable(self) -> Ticket {
        Ticket {
            may_repeat: true,
            ..self
        }
    }

    /// It is meant to be sent although the book cannot be trusted.
    pub fn on_stale_book(self) -> Ticket {
        Ticket {
            is_on_stale: true,
            ..self
        }
    }
}

/// A record of the strategy's own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Note {
    /// When.
    pub at: Nanos,
    /// What.
    pub text: &'static str,
    /// How much.
    pub value: i64,
}

/// The books of every feed. An instrument's number is that of its feed with the feed's place in the upper
/// bits.
#[derive(Clone, Copy)]
pub struct Markets<'a> {
    books: &'a [Books],
    bits: u32,
    consolidated: Option<&'a Consolidated>,
}

impl<'a> Markets<'a> {
    /// Books of feeds, whose instruments have numbers below two to the power of `bits`.
    #[inline(always)]
    pub fn new(books: &'a [Books], bits: u32) -> Markets<'a> {
        Markets {
            books,
            bits: bits.min(31),
            consolidated: None,
        }
    }

    /// With consolidated books over them.
    #[inline(always)]
    pub fn with(self, consolidated: Option<&'a Consolidated>) -> Markets<'a> {
        Markets { consolidated, ..self }
    }

    #[inline]
    pub(super) fn has_super_changes(&self) -> bool {
        self.consolidated.is_some_and(|all| !all.pending().is_empty())
    }

    #[inline]
    pub(super) fn super_changes(&self) -> &'a [SuperChange] {
        self.consolidated.map_or(&[], Consolidated::pending)
    }

    /// Which feed an instrument is of, and its number there.
    #[inline]
    pub fn local(&self, instrument: InstrumentId) -> (usize, InstrumentId) {
        let mask = (1_u32 << self.bits) - 1;
        (
            (instrument.0 >> self.bits) as usize,
            InstrumentId(instrument.0 & mask),
        )
    }

    /// The number of a feed's instrument here.
    #[inline]
    pub fn number(&self, feed: usize, local: InstrumentId) -> InstrumentId {
        InstrumentId(((feed as u32) << self.bits) | local.0)
    }

    /// What the last event of a feed that changed a book left of it.
    #[inline(always)]
    pub fn last(&self, feed: usize) -> Option<&'a BookUpdate> {
        self.books.get(feed).map(Books::last)
    }

    /// A book.
    #[inline]
    pub fn book(&self, instrument: InstrumentId) -> Option<BookRef<'a>> {
        let (feed, local) = self.local(instrument);
        self.books.get(feed)?.book(local)
    }
}

/// Everything of a strategy's but itself.
#[derive(Clone, Debug)]
pub(super) struct State {
    pub(super) orders: Orders,
    pub(super) quotes: Quotes,
    pub(super) reconciling: Reconciling,
    /// The order that leaves by itself.
    pub(super) armed: Option<ArmedOrder>,
    /// The report that the callback under way is about.
    pub(super) execution: Option<Execution>,
    pub(super) positions: Positions,
    pub(super) risk: Risk,
    pub(super) counters: Counters,
    /// Of the venue by feed, and of instruments: whether it is said to trade. Who says nothing is taken to
    /// trade.
    pub(super) feeds_trade: Vec<bool>,
    pub(super) trades: Vec<bool>,
    /// Which instruments were subscribed to.
    pub(super) watched: Vec<bool>,
    /// Of which of these orders may be entered: it and its venue trade, and the run goes on.
    pub(super) may_enter: Vec<bool>,
    pub(super) timers: [Nanos; TIMERS],
    pub(super) next_timer: Nanos,
    pub(super) notes: Vec<Note>,
    pub(super) notes_lost: u64,
    pub(super) is_stopping: bool,
}

/// What a strategy may look at and do within a callback.
pub struct Context<'a> {
    pub(super) now: Nanos,
    pub(super) cause: Cause,
    pub(super) markets: Markets<'a>,
    /// The instrument whose book is known to be live: that of the change told of.
    pub(super) live: InstrumentId,
    pub(super) state: &'a mut State,
    pub(super) port: &'a mut dyn OrderPort,
}

impl<'a> Context<'a> {
    /// The time: live the machine's, in a backtest the recording's.
    #[inline]
    pub fn now(&self) -> Nanos {
        self.now
    }

    /// The message that this callback is about.
    #[inline]
    pub fn cause(&self) -> Cause {
        self.cause
    }

    /// What is sent from now on in this callback follows this message, rather than the one that the callback
    /// is about: for what was decided on by an earlier one.
    #[inline]
    pub fn follow(&mut self, cause: Cause) {
        self.cause = cause;
    }

    /// The report of an execution that this callback is about, where the host has one.
    #[inline]
    pub fn execution(&self) -> Option<Execution> {
        self.state.execution
    }

    /// A book; `None` beyond the configured number of instruments.
    #[inline]
    pub fn book(&self, instrument: InstrumentId) -> Option<BookRef<'a>> {
        self.markets.book(instrument)
    }

    /// A consolidated book, as [`crate::strategy::Strategy::on_super_book`] names it.
    #[inline]
    pub fn super_book(&self, id: SuperId) -> Option<SuperRef<'a>> {
        self.markets.consolidated?.books().book(id)
    }

    /// The consolidated book of a symbol that was subscribed to
    /// ([`crate::strategy::Subscription::Consolidated`]), once a feed has named it.
    pub fn super_book_of(&self, symbol: &Symbol) -> Option<SuperRef<'a>> {
        let books = self.markets.consolidated?.books();
        books.book(books.find(symbol)?)
    }

    /// The instruments that a consolidated book is made of, each with what its feed says of it.
    pub fn members(&self, book: &SuperRef<'a>) -> impl Iterator<Item = (InstrumentId, FeedView)> + use<'a> {
        let markets = self.markets;
        book.members().map(move |member| {
            let feed = usize::from(member.source.0);
            (markets.number(feed, member.instrument), member)
        })
    }

    /// Who has most at the best price of a side of a consolidated book, of those that are live and trade: the
    /// instrument to trade there, the price, and the quantity.
    pub fn best_member(&self, book: &SuperRef<'a>, side: Side) -> Option<(InstrumentId, Price, Volume)> {
        let best = book.best(side)?;
        let shares = book.shares(side).skip_while(|share| share.price != best.price);
        let at_best = shares.take_while(|share| share.price == best.price);
        let counting = at_best.filter(|share| best.feeds.has(share.feed));
        let most = counting.reduce(|most, share| if share.qty > most.qty { share } else { most })?;
        let (id, _) = self.members(book).find(|(_, member)| member.feed == most.feed)?;
        Some((id, most.price, most.qty))
    }

    /// What is held of an instrument.
    #[inline]
    pub fn position(&self, instrument: InstrumentId) -> Position {
        self.state.positions.get(instrument)
    }

    /// Every position.
    pub fn positions(&self) -> &Positions {
        &self.state.positions
    }

    /// One of our orders, as long as its place in the table was not used again.
    #[inline]
    pub fn order(&self, id: ClientOrderId) -> Option<&Order> {
        self.state.orders.get(id)
    }

    /// Our open orders, as they were entered.
    pub fn open_orders(&self) -> impl Iterator<Item = &Order> + '_ {
        self.state.orders.iter_open()
    }

    /// Whether the venue, and the instrument, are said to trade.
    #[inline]
    pub fn is_trading(&self, instrument: InstrumentId) -> bool {
        let (feed, _) = self.markets.local(instrument);
        self.state.feeds_trade.get(feed).copied().unwrap_or(true)
            && self.state.trades.get(instrument.index()).copied().unwrap_or(true)
    }

    /// Whether `feed` names the whole of a feed ([`InstrumentId::WHOLE_FEED`] of it, as `on_status` says it
    /// of a venue) and the instrument is of that feed.
    pub fn is_whole_feed_of(&self, feed: InstrumentId, instrument: InstrumentId) -> bool {
        let (place, local) = self.markets.local(feed);
        local == InstrumentId::WHOLE_FEED && self.markets.local(instrument).0 == place
    }

    /// Whether every order session that this strategy may need is logged on.
    #[inline]
    pub fn has_session(&self) -> bool {
        self.state.risk.has_session()
    }

    /// The control that has stopped this strategy, until a person resumes it.
    pub fn stopped_by(&self) -> Option<RiskReject> {
        self.state.risk.stopped()
    }

    /// Whether somebody or a check has stopped everything.
    pub fn is_stopped(&self) -> bool {
        self.state.risk.is_killed() || self.state.risk.stopped().is_some()
    }

    /// Buys at a limit, for the day.
    #[inline]
    pub fn buy(
        &mut self,
        instrument: InstrumentId,
        qty: u32,
        price: Price,
    ) -> Result<ClientOrderId, NotSent> {
        self.submit(Ticket::limit(Side::Bid, instrument, qty, price))
    }

    /// Sells at a limit, for the day.
    #[inline]
    pub fn sell(
        &mut self,
        instrument: InstrumentId,
        qty: u32,
        price: Price,
    ) -> Result<ClientOrderId, NotSent> {
        self.submit(Ticket::limit(Side::Ask, instrument, qty, price))
    }

    /// Buys at a limit what can be had at once.
    #[inline]
    pub fn buy_now(
        &mut self,
        instrument: InstrumentId,
        qty: u32,
        price: Price,
    ) -> Result<ClientOrderId, NotSent> {
        self.submit(Ticket::limit(Side::Bid, instrument, qty, price).immediate_or_cancel())
    }

    /// Sells at a limit what can be sold at once.
    #[inline]
    pub fn sell_now(
        &mut self,
        instrument: InstrumentId,
        qty: u32,
        price: Price,
    ) -> Result<ClientOrderId, NotSent> {
        self.submit(Ticket::limit(Side::Ask, instrument, qty, price).immediate_or_cancel())
    }

    /// Buys at any price once somebody trades at `trigger` or above: see [`Ticket::stop`].
    pub fn buy_stop(
        &mut self,
        instrument: InstrumentId,
        qty: u32,
        trigger: Price,
    ) -> Result<ClientOrderId, NotSent> {
        self.submit(Ticket::stop(Side::Bid, instrument, qty, trigger))
    }

    /// Sells at any price once somebody trades at `trigger` or below.
    pub fn sell_stop(
        &mut self,
        instrument: InstrumentId,
        qty: u32,
        trigger: Price,
    ) -> Result<ClientOrderId, NotSent> {
        self.submit(Ticket::stop(Side::Ask, instrument, qty, trigger))
    }

    /// Enters an order. What it gives is the order's number; an error names what stopped it, and nothing has
    /// left then.
    #[inline]
    pub fn submit(&mut self, ticket: Ticket) -> Result<ClientOrderId, NotSent> {
        let Ticket {
            instrument,
            side,
            qty,
            ..
        } = ticket;
        // Counted on each way by itself: an answer that both had in one place would be copied there whole,
        // which waits until its parts are in the cache.
        if let (Some(price), None) = (ticket.price, ticket.stop)
            && !ticket.may_repeat
            && self.state.orders.waiting() == 0
            && let Some(done) = self.limit(instrument, (side, qty, price), ticket.time_in_force)
        {
            return self.counted(done);
        }
        let done = self.enter(ticket, None);
        self.counted(done)
    }

    /// A limit order, while no stop order waits: the way of most orders. `None` where another book's state is
    /// to be looked up, or what stops the order to be named.
    // One copy of the code, so that a rehearsal brings into the caches what an order needs.
    #[inline(never)]
    pub(super) fn limit(
        &mut self,
        instrument: InstrumentId,
        (side, qty, price): (Side, Qty, Price),
        time_in_force: TimeInForce,
    ) -> Option<Result<ClientOrderId, NotSent>> {
        let state = &mut *self.state;
        let may_enter = state
            .may_enter
            .get(instrument.index())
            .copied()
            .unwrap_or_default();
        if !may_enter || instrument != self.live {
            return None;
        }
        let order = NewOrder {
            instrument,
            side,
            price,
            qty,
            cause: self.cause,
        };
        let rests = time_in_force.rests();
        let open = state.orders.open();
        if state.quotes.count() > 0
            && let Err(stopped) = state.check_quotes(&order, None)
        {
            return Some(Err(stopped));
        }
        let Some(position) = state.positions.at(instrument) else {
            return Some(Err(NotSent::UnknownInstrument));
        };
        if let Err(reason) = state.risk.check(self.now, &order, (open, rests), position) {
            return Some(Err(NotSent::Check(reason)));
        }
        let terms = Terms {
            order_type: OrderType::Limit,
            stop: None,
            time_in_force,
        };
        let Ok(id) = state.orders.insert_as(&order, terms) else {
            return Some(Err(state.full(instrument, side, rests)));
        };
        state.positions.on_sent(instrument, side, qty);
        let request = OrderIntent::New {
            id,
            instrument,
            side,
            order_type: OrderType::Limit,
            price,
            stop: None,
            qty,
            time_in_force,
            cause: self.cause,
        };
        Some(match self.port.send(self.now, &request) {
            Ok(()) => {
                self.state.counters.bump(Counter::OrdersSent);
                Ok(id)
            }
            Err(error) => Err(self.not_left(id, error)),
        })
    }

    #[cold]
    fn not_left(&mut self, id: ClientOrderId, error: Rejected) -> NotSent {
        self.state.take_back(id);
        not_sent(error)
    }

    /// Changes price and quantity of an open order by one request. `qty` is all of it, with what has traded
    /// (FIX OrderQty of an order cancel/replace request). The order goes on under the number that this gives,
    /// once the venue agrees; until then both count against the limits. It keeps its place in the queue where
    /// the venue's rules let it. A stop order keeps its trigger.
    pub fn replace(&mut self, id: ClientOrderId, qty: u32, price: Price) -> Result<ClientOrderId, NotSent> {
        let done = self.replaced(id, Qty(qty), Some(price), None);
        self.counted(done)
    }

    /// The same of a stop order that waits, with its trigger; `price` is its limit, where it has one, which
    /// moves with it.
    pub fn replace_stop(
        &mut self,
        id: ClientOrderId,
        qty: u32,
        trigger: Price,
        price: Option<Price>,
    ) -> Result<ClientOrderId, NotSent> {
        let done = self.replaced(id, Qty(qty), price, Some(trigger));
        self.counted(done)
    }

    /// Asks for an order's cancellation. Until the venue has confirmed, it may trade. One that is armed is
    /// taken back, unless it has left.
    pub fn cancel(&mut self, id: ClientOrderId) -> Result<(), NotSent> {
        if self.state.armed.is_some_and(|armed| armed.id == id) && self.disarm(id)? != ArmEnd::Fired {
            return Ok(());
        }
        let order = *self.open_order(id)?;
        if order.is_replacing() {
            return Err(NotSent::Pending);
        }
        let target = self.state.orders.request_cancel(id).ok_or(NotSent::NotOpen)?;
        let request = OrderIntent::Cancel {
            id: self.state.orders.issue_id(),
            target: target.id,
            venue_id: target.venue_id,
            instrument: target.instrument,
            side: target.side,
            qty: target.qty,
            cause: self.cause,
        };
        self.port.send(self.now, &request).map_err(|e| {
            self.state.orders.forget_cancel(id);
            not_sent(e)
        })
    }

    /// Cancels every open order that is not being cancelled yet, and every quote; how many requests have
    /// left.
    pub fn cancel_all(&mut self) -> u32 {
        let mut count = u32::from(self.cancel_quotes() > 0);
        while let Some(id) = self.state.orders.next_to_cancel() {
            if self.cancel(id).is_err() {
                break;
            }
            count += 1;
        }
        count
    }

    /// Has [`crate::strategy::Strategy::on_timer`] called at `at`, or as soon as the host looks; a timer that
    /// was set before is moved. A number beyond [`TIMERS`] is ignored.
    #[inline]
    pub fn set_timer(&mut self, timer: TimerId, at: Nanos) {
        if let Some(place) = self.state.timers.get_mut(usize::from(timer.0)) {
            *place = Nanos(at.0.max(1));
            self.state.next_timer = self.state.soonest();
        }
    }

    /// Takes a timer back.
    pub fn stop_timer(&mut self, timer: TimerId) {
        if let Some(place) = self.state.timers.get_mut(usize::from(timer.0)) {
            *place = Nanos::ZERO;
            self.state.next_timer = self.state.soonest();
        }
    }

    /// The market of an instrument, best bid and offer, by which the checks judge prices from now on: for
    /// strategies that say so ([`crate::strategy::Strategy::observes_markets`]). One of a single side, or
    /// crossed, says nothing.
    #[inline]
    pub fn observe(&mut self, instrument: InstrumentId, best: [Option<Price>; 2]) {
        if let [Some(bid), Some(ask)] = best
            && bid < ask
        {
            let mid = crate::risk::middle(bid, ask);
            let controls = self.state.risk.controls_mut();
            controls.observe(self.now, instrument.index(), mid);
        }
    }

    /// Keeps a record for the host's log. With every place taken the newest is dropped and counted.
    #[inline]
    pub fn note(&mut self, text: &'static str, value: i64) {
        match self.state.notes.len() < NOTES {
            true => self.state.notes.push(Note {
                at: self.now,
                text,
                value,
            }),
            false => self.state.notes_lost += 1,
        }
    }

    fn open_order(&self, id: ClientOrderId) -> Result<&Order, NotSent> {
        let order = self.state.orders.get(id).filter(|order| order.state.is_open());
        order.ok_or(NotSent::NotOpen)
    }

    #[inline]
    pub(super) fn counted<T>(&mut self, done: Result<T, NotSent>) -> Result<T, NotSent> {
        if let Err(NotSent::Check(reason)) = done {
            self.state.counters.bump(Counter::RiskRejects);
            self.state.counters.bump(reason.counter());
        }
        done
    }

    fn replaced(
        &mut self,
        id: ClientOrderId,
        qty: Qty,
        price: Option<Price>,
        trigger: Option<Price>,
    ) -> Result<ClientOrderId, NotSent> {
        let old = *self.open_order(id)?;
        let has_limit = old.order_type == OrderType::Limit;
        if price.is_some() != has_limit || (trigger.is_some() && !old.is_waiting()) {
            return Err(NotSent::WrongType);
        }
        let is_armed = self.state.armed.is_some_and(|armed| armed.id == id);
        if is_armed || old.is_cancel_requested || old.replaced_by.is_some() || old.is_replacing() {
            return Err(NotSent::Pending);
        }
        if qty.0 <= old.filled.0 + old.broken.0 {
            return Err(NotSent::Check(RiskReject::OrderSize));
        }
        let ticket = Ticket {
            instrument: old.instrument,
            side: old.side,
            qty,
            price,
            stop: trigger.or(old.stop),
            time_in_force: old.time_in_force,
            is_on_stale: false,
            may_repeat: false,
            awaited: None,
        };
        self.enter(ticket, Some(&old))
    }

    #[inline(never)]
    pub(super) fn enter(&mut self, ticket: Ticket, old: Option<&Order>) -> Result<ClientOrderId, NotSent> {
        let Ticket {
            instrument,
            side,
            qty,
            price,
            stop,
            time_in_force,
            is_on_stale,
            may_repeat,
            awaited,
        } = ticket;
        // What was triggered is an order like any other.
        let trigger = stop.filter(|_| old.is_none_or(Order::is_waiting));
        let state = &mut *self.state;
        if state.is_stopping {
            return Err(NotSent::Stopping);
        }
        if !state.watched.get(instrument.index()).copied().unwrap_or_default() {
            return Err(NotSent::UnknownInstrument);
        }
        let (feed, _) = self.markets.local(instrument);
        let is_for_auction = matches!(time_in_force, TimeInForce::AtTheOpening | TimeInForce::AtTheClose);
        let trades = state.feeds_trade.get(feed).copied().unwrap_or(true) && state.trades[instrument.index()];
        if !trades && !is_for_auction {
            return Err(NotSent::NotTrading);
        }
        let book = self.markets.book(instrument).ok_or(NotSent::UnknownInstrument)?;
        if !is_on_stale && book.state() != BookState::Live {
            return Err(NotSent::StaleBook);
        }
        let (order_type, limit) = match (price, trigger) {
            (Some(price), _) => (OrderType::Limit, price),
            (None, Some(trigger)) => (OrderType::Market, state.risk.worst_of_stop(side, trigger)),
            (None, None) => (
                OrderType::Market,
                book.best(!side).ok_or(NotSent::NoOpposite)?.price,
            ),
        };
        let order = NewOrder {
            instrument,
            side,
            price: limit,
            qty,
            cause: self.cause,
        };
        let position = state.positions.get(instrument);
        let rests = time_in_force.rests() && trigger.is_none();
        let has_stops = trigger.is_some() || state.orders.waiting() > 0;
        if has_stops {
            state.check_stops(&order, trigger, (time_in_force.rests(), &book))?;
        }
        state.check_quotes(&order, trigger)?;
        let open = state.orders.open();
        let mut judged = order;
        if may_repeat {
            // Without a message that causes it, it is compared with no other.
            judged.cause = Cause::default();
        }
        let checked = match trigger {
            None => state.risk.check(self.now, &judged, (open, rests), &position),
            Some(trigger) => state.risk.check_stop(self.now, &judged, trigger, open, &position),
        };
        checked.map_err(NotSent::Check)?;
        let terms = Terms {
            order_type,
            stop,
            time_in_force,
        };
        let entered = match old {
            Some(old) => state.orders.insert_replacement(&order, old.id, stop),
            None => state.orders.insert_as(&order, terms),
        };
        let Ok(id) = entered else {
            return Err(state.full(instrument, side, rests));
        };
        let open = Qty(qty.0 - old.map_or(0, |old| old.filled.0 + old.broken.0));
        state.positions.on_sent(instrument, side, open);
        let request = match old {
            None => OrderIntent::New {
                id,
                instrument,
                side,
                order_type,
                price: limit,
                stop,
                qty,
                time_in_force,
                cause: self.cause,
            },
            Some(old) => OrderIntent::Replace {
                id,
                target: old.id,
                venue_id: old.venue_id,
                instrument,
                side,
                order_type,
                price: limit,
                stop,
                qty,
                time_in_force,
                cause: self.cause,
            },
        };
        if let Some(awaited) = awaited {
            self.state.armed = Some(ArmedOrder {
                id,
                request,
                awaited,
                is_placed: false,
            });
            return Ok(id);
        }
        match self.port.send(self.now, &request) {
            Ok(()) => {
                self.state.counters.bump(Counter::OrdersSent);
                Ok(id)
            }
            Err(error) => Err(self.not_left(id, error)),
        }
    }
}

pub(super) fn not_sent(error: Rejected) -> NotSent {
    match error {
        Rejected::Unsupported => NotSent::Unsupported,
        Rejected::NoSession => NotSent::NoSession,
        Rejected::SelfTrade => NotSent::Check(RiskReject::SelfTrade),
        Rejected::SeveralSessions => NotSent::SeveralSessions,
    }
}

impl State {
    /// Every place of the table is taken, by an order that the checks have let pass.
    #[cold]
    fn full(&mut self, instrument: InstrumentId, side: Side, rests: bool) -> NotSent {
        if rests {
            self.risk.closed(instrument, side);
        }
        NotSent::OrdersFull
    }

    /// What concerns stop orders: where the trigger of one is, and whether one could trade with another order
    /// of ours.
    #[cold]
    fn check_stops(
        &self,
        order: &NewOrder,
        trigger: Option<Price>,
        (rests, book): (bool, &BookRef<'_>),
    ) -> Result<(), NotSent> {
        if let Some(trigger) = trigger
            && let Some(best) = book.best(!order.side)
        {
            let is_reached = match order.side {
                Side::Bid => best.price > trigger,
                Side::Ask => best.price < trigger,
            };
            if is_reached {
                return Err(NotSent::StopPrice);
            }
        }
        let is_met = self.orders.iter_open().any(|other| {
            // What trades at once is compared with what rests by the checks.
            let is_new = trigger.is_some() || (rests && other.is_waiting());
            is_new && other.instrument == order.instrument && other.is_met(order.side, order.price, trigger)
        });
        match is_met {
            true => Err(NotSent::Check(RiskReject::SelfTrade)),
            false => Ok(()),
        }
    }

    /// Whether an order could trade with a quote of ours: what nothing else stops is stopped by that.
    #[inline(never)]
    fn check_quotes(&self, order: &NewOrder, trigger: Option<Price>) -> Result<(), NotSent> {
        let is_met = self
            .quotes
            .is_met(order.instrument, order.side, order.price, trigger);
        match is_met && !self.risk.is_killed() && self.risk.has_session() {
            true => Err(NotSent::Check(RiskReject::SelfTrade)),
            false => Ok(()),
        }
    }

    /// When a timer is due next.
    #[inline]
    pub(super) fn next_timer(&self) -> Option<Nanos> {
        (self.next_timer != Nanos::ZERO).then_some(self.next_timer)
    }

    /// When the next timer is due; [`Nanos::ZERO`] for never.
    pub(super) fn soonest(&self) -> Nanos {
        let set = self.timers.iter().filter(|at| **at != Nanos::ZERO);
        set.min().copied().unwrap_or_default()
    }
}
