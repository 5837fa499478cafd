//! Order entry: the ledger of every order that clients sent, and the ports they come by: FIX sessions of
//! every version (`fix`), with mass quotes (`quotes`), OUCH over SoupBinTCP (`ouch`).
//!
//! A port reads its protocol into what this module does to the engine: [`OrderGateway::enter`],
//! [`OrderGateway::cancel`], [`OrderGateway::reduce`], [`OrderGateway::replace`],
//! [`OrderGateway::mass_cancel`]. What happens to a client's order, by request or because the market traded
//! with it, is told to the port it came by as [`OrderNotice`], which the port words.
//!
//! Connections are numbered: first those of FIX, then those of OUCH. A session outlives its connections: what
//! could not be sent waits, bounded, and is sent after the next logon.
//!
//! **Invariant.** What order entry does depends on its inputs alone (bytes, times, connections): the same
//! inputs make the same ledger, the same sequence numbers and the same bytes. The journal relies on it.

mod clients;
mod fix;
mod hearing;
mod notices;
mod ouch;
mod quotes;
mod requests;

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use tickwire_fix::{CompId, DisconnectReason, Id, Version};
use tickwire_market::{InstrumentId, Nanos, OrderId, Symbol, TimeInForce, TradingStatus};
use tickwire_persist::persist;
use tickwire_wire::layout::Alpha;

use crate::engine::TRADES_KEPT;
use crate::index::OrderIndex;
use crate::order::{BreakReason, Firm, Reject, SelfTrade, StateHash};
use crate::rules::{AuctionKind, TradingAction};
use crate::tape::{Listing, VenueTime};

use clients::Notices;
pub use clients::{ClientEvent, ClientNotice, ClientState};
use fix::FixGateway;
use hearing::Hearing;
pub(crate) use hearing::Reports;
use notices::Said;
pub use notices::{ClientOrder, Origin, Outcome, Route};
pub(crate) use notices::{Liquidity, OrderNotice, Refusal, Saying, Why};
use ouch::OuchGateway;
pub use quotes::ClientQuote;
use quotes::Quotes;
pub(crate) use requests::{Hold, RequestContext};
use requests::{RequestScope, WaitingCancel};

/// A FIX session that is known before it logs on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FixPort {
    /// The client's CompID.
    pub comp_id: CompId,
    /// The version it speaks.
    pub version: Version,
    /// Whose risk its orders are.
    pub firm: Firm,
    /// Both sequence numbers start at 1 with every logon.
    pub reset_on_logon: bool,
    /// Its open orders and quotes are cancelled when its connection is lost, or it logs out.
    pub cancel_on_disconnect: bool,
    /// They are when its heartbeats stop: nothing came for 2.4 intervals, and a TestRequest was not answered.
    /// So they are with `cancel_on_disconnect`, too.
    pub cancel_on_missed_heartbeats: bool,
    /// The longest HeartBtInt (108) that its logon may ask for, in seconds, where it must ask for one;
    /// `None`: any, and none.
    pub heartbeat_s_max: Option<u32>,
    /// Its OrderMassCancelRequest (q) of everything takes the orders and quotes of all sessions of its firm:
    /// a kill switch, for whoever watches over them.
    pub cancels_firm: bool,
    /// What its orders do when they meet one of their firm and do not say it themselves.
    pub self_trade: SelfTrade,
}

/// A user of OUCH.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OuchPort {
    /// Who logs in; case does not matter.
    pub username: Alpha<6>,
    /// With what; spaces: nothing is asked for.
    pub password: Alpha<10>,
    /// The firm's name in messages.
    pub firm_name: Alpha<4>,
    /// Whose risk its orders are.
    pub firm: Firm,
    /// Its open orders are cancelled when its connection is lost.
    pub cancel_on_disconnect: bool,
    /// What its orders do when they meet one of their firm and do not say it themselves.
    pub self_trade: SelfTrade,
}

/// How order entry is set up.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OrderEntryConfig {
    /// Our CompID.
    pub comp_id: CompId,
    /// FIX connections are numbered 0 to this, exclusive.
    pub connections: usize,
    /// Orders of all clients in a day; further ones are rejected.
    pub max_orders: usize,
    /// Sessions by name.
    pub sessions: Vec<FixPort>,
    /// Whether others are let in as well: with 4.4, a firm each, and their orders go with the connection.
    pub anyone: bool,
    /// Both sequence numbers of those start at 1 with every logon.
    pub reset_on_logon: bool,
    /// Users of OUCH.
    pub ouch: Vec<OuchPort>,
    /// OUCH connections are numbered from [`OrderEntryConfig::connections`] on, so many.
    pub ouch_connections: usize,
    /// The SoupBinTCP session of OUCH.
    pub ouch_session: [u8; 10],
    /// Reports that wait for a client that is not logged on or does not read, of each FIX session; further
    /// ones are counted and lost.
    pub waiting_max: usize,
}

impl Default for OrderEntryConfig {
    fn default() -> OrderEntryConfig {
        OrderEntryConfig {
            comp_id: CompId::new(b"EXCHANGE").unwrap_or(CompId::EMPTY),
            connections: 4,
            max_orders: 1 << 20,
            sessions: Vec::new(),
            anyone: true,
            reset_on_logon: true,
            ouch: Vec::new(),
            ouch_connections: 0,
            ouch_session: *b"TICKWIRE01",
            waiting_max: 1 << 16,
        }
    }
}

/// A fill that was told and may be broken.
#[derive(Clone, Copy)]
struct Fill {
    match_number: u64,
    order: OrderId,
    exec_id: u64,
}

/// The request that is being handled.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Asked {
    Nothing,
    /// About one order.
    Order {
        row: usize,
        request: Id,
        orig: Id,
        is_replace: bool,
    },
    /// About many.
    Sweep,
}

/// Orders and ports.
struct Books {
    ledger: Vec<ClientOrder>,
    max_orders: usize,
    /// Hash of route and identifier → row of the ledger. Two identifiers with the same 64-bit hash count as
    /// duplicates.
    names: OrderIndex,
    named: usize,
    symbols: Vec<(Symbol, InstrumentId)>,
    last_exec_id: u64,
    unrecorded: u64,
    quotes: Quotes,
    /// At most one of an order.
    waiting_cancels: Vec<WaitingCancel>,
    /// The last ones, ascending by match number: of every trade that the engine keeps, as it has two orders
    /// at most.
    fills: VecDeque<Fill>,
}

pub(crate) struct OrderGateway {
    books: Books,
    fix: FixGateway,
    ouch: OuchGateway,
    fix_connections: usize,
    notices: Notices,
}

impl OrderGateway {
    pub(crate) fn new(config: &OrderEntryConfig, listings: &[Listing]) -> OrderGateway {
        let mut symbols: Vec<_> = listings.iter().map(|l| (l.symbol, l.id)).collect();
        symbols.sort();
        OrderGateway {
            books: Books {
                ledger: Vec::with_capacity(config.max_orders),
                max_orders: config.max_orders,
                // Each order, and as many cancel and replace requests, have a name.
                names: OrderIndex::new(config.max_orders * 2),
                named: 0,
                symbols,
                last_exec_id: 0,
                unrecorded: 0,
                quotes: Quotes::new(config.max_orders, listings),
                waiting_cancels: Vec::new(),
                fills: VecDeque::with_capacity(TRADES_KEPT * 2),
            },
            fix: FixGateway::new(config),
            ouch: OuchGateway::new(config),
            fix_connections: config.connections,
            notices: Notices::default(),
        }
    }

    pub(crate) fn quotes(&self) -> impl Iterator<Item = ClientQuote> + '_ {
        self.books.quotes.iter()
    }

    pub(crate) fn ledger(&self) -> &[ClientOrder] {
        &self.books.ledger
    }

    pub(crate) fn reports_lost(&self) -> u64 {
        self.fix.reports_lost()
    }

    pub(crate) fn unrecorded(&self) -> u64 {
        self.books.unrecorded
    }

    /// A hash over the ledger and every sequence number.
    pub(crate) fn state_hash(&self) -> u64 {
        let mut hash = StateHash::default();
        for order in &self.books.ledger {
            hash.word(order.venue_id.0);
            hash.word(order.order_id.0);
            hash.word(order.price.raw() as u64);
            hash.word(u64::from(order.qty.0) << 32 | u64::from(order.filled.0));
            hash.word(order.broken.0.into());
            hash.word(order.cost as u64);
            hash.word(order.outcome as u64);
            for chunk in order.cl_ord_id.as_bytes().chunks(8) {
                let mut word = [0; 8];
                word[..chunk.len()].copy_from_slice(chunk);
                hash.word(u64::from_le_bytes(word));
            }
        }
        self.books.quotes.hash(&mut hash);
        self.fix.hash(&mut hash);
        self.ouch.hash(&mut hash);
        hash.word(self.books.last_exec_id);
        hash.value()
    }

    /// The day begins: users of OUCH are told.
    pub(crate) fn begin(&mut self, time: VenueTime) {
        self.ouch.begin(time);
    }

    /// See [`crate::Exchange::set_wall_offset`].
    pub(crate) fn set_wall_offset(&mut self, offset_ns: i64) {
        self.fix.set_wall_offset(offset_ns);
    }

    pub(crate) fn connect(&mut self, id: usize, now: Nanos) -> bool {
        match id.checked_sub(self.fix_connections) {
            None => self.fix.connect(id, now),
            Some(id) => self.ouch.connect(id, now),
        }
    }

    pub(crate) fn disconnect(&mut self, id: usize, now: Nanos, context: &mut RequestContext<'_>) {
        let gone = match id.checked_sub(self.fix_connections) {
            None => self.fix.disconnect(id, now),
            Some(id) => self.ouch.disconnect(id),
        };
        if let Some((route, cancels)) = gone {
            self.notices.push(now, route, ClientEvent::Disconnected);
            self.leave(now, context, route, cancels, None);
        }
    }

    /// A client is not there any more: what is open of it goes, or stays.
    fn leave(
        &mut self,
        now: Nanos,
        context: &mut RequestContext<'_>,
        route: Route,
        cancels: bool,
        silent_ns: Option<u64>,
    ) {
        let event = if cancels {
            let is_of = |session| Route::Fix(session) == route;
            let (orders, quotes) = self.sweep(now, context, |order| order.route == route, is_of, b'A');
            ClientEvent::Cancelled {
                orders,
                quotes,
                silent_ns,
            }
        } else {
            let open = |order: &&ClientOrder| order.route == route && order.outcome == Outcome::Open;
            ClientEvent::Left {
                orders: self.books.ledger.iter().filter(open).count() as u32,
                quotes: self.books.quotes.open_of(route).0,
            }
        };
        let is_nothing = matches!(
            event,
            ClientEvent::Cancelled {
                orders: 0,
                quotes: 0,
                silent_ns: None
            } | ClientEvent::Left { orders: 0, quotes: 0 }
        );
        if !is_nothing {
            self.notices.push(now, route, event);
        }
    }

    /// Does what follows from sessions that came and went: one whose heartbeats stopped is not waited for to
    /// be disconnected.
    fn follow_sessions(&mut self, now: Nanos, context: &mut RequestContext<'_>) {
        while let Some((session, event)) = self.fix.poll_client_event() {
            let route = Route::Fix(session);
            self.notices.push(now, route, event);
            if let ClientEvent::Ended {
                reason: DisconnectReason::HeartbeatTimeout,
                ..
            } = event
            {
                let (cancels, silent_ns) = self.fix.cancels_silent(session);
                self.leave(now, context, route, cancels, Some(silent_ns));
            }
        }
    }

    /// What happened to a client's session.
    pub(crate) fn poll_notice(&mut self) -> Option<ClientNotice> {
        self.notices.pop()
    }

    /// How every client stands: those of FIX, then those of OUCH.
    pub(crate) fn clients(&self) -> Vec<ClientState> {
        let fix = (0..self.fix.sessions()).map(|at| (Route::Fix(at), self.fix.standing(at)));
        let ouch = (0..self.ouch.ports()).map(|at| (Route::Ouch(at), self.ouch.standing(at)));
        let state = |(route, (firm, is_logged_on)): (Route, (Firm, bool))| {
            let (_, quoted_sides, by_quotes) = self.books.quotes.open_of(route);
            let mut state = ClientState {
                route,
                firm,
                is_logged_on,
                orders: 0,
                quoted_sides,
                traded: by_quotes,
            };
            for order in self.books.ledger.iter().filter(|order| order.route == route) {
                state.orders += u32::from(order.outcome == Outcome::Open);
                state.traded += u64::from(order.executed().0);
            }
            state
        };
        fix.chain(ouch).map(state).collect()
    }

    /// What a client is called: its CompID, or its user name; empty if there is none of this route.
    pub(crate) fn client_name(&self, route: Route) -> &str {
        match route {
            Route::Fix(session) => self.fix.name(session),
            Route::Ouch(port) => self.ouch.name(port),
        }
    }

    /// A new process goes on: no connection is left.
    pub(crate) fn resume(&mut self, now: Nanos, context: &mut RequestContext<'_>) {
        for id in 0..self.fix_connections + self.ouch.connections() {
            self.disconnect(id, now, context);
        }
    }

    /// Whether the transport is to be closed now; what is left to transmit is transmitted first.
    pub(crate) fn wants_close(&self, id: usize) -> bool {
        match id.checked_sub(self.fix_connections) {
            None => self.fix.wants_close(id),
            Some(id) => self.ouch.wants_close(id),
        }
    }

    pub(crate) fn handle_bytes(
        &mut self,
        id: usize,
        now: Nanos,
        bytes: &[u8],
        context: &mut RequestContext<'_>,
    ) -> usize {
        let mut said = Vec::new();
        let mut scope = RequestScope {
            books: &mut self.books,
            context,
            now,
            said: &mut said,
        };
        let taken = match id.checked_sub(self.fix_connections) {
            None => self.fix.handle_bytes(id, bytes, &mut scope, &mut self.ouch),
            Some(id) => self.ouch.handle_bytes(id, bytes, &mut scope, &mut self.fix),
        };
        debug_assert!(said.is_empty(), "ports deliver what they did");
        self.follow_sessions(now, context);
        taken
    }

    pub(crate) fn handle_timeout(&mut self, now: Nanos, context: &mut RequestContext<'_>) {
        let mut said = Vec::new();
        let mut scope = RequestScope {
            books: &mut self.books,
            context,
            now,
            said: &mut said,
        };
        self.fix.handle_timeout(&mut scope, &mut self.ouch);
        self.ouch.handle_timeout(now);
        self.follow_sessions(now, context);
    }

    pub(crate) fn poll_transmit<'b>(&mut self, id: usize, buf: &'b mut [u8]) -> Option<&'b [u8]> {
        match id.checked_sub(self.fix_connections) {
            None => self.fix.poll_transmit(id, buf),
            Some(id) => self.ouch.poll_transmit(id, buf),
        }
    }

    pub(crate) fn poll_timeout(&self) -> Option<Nanos> {
        [self.fix.poll_timeout(), self.ouch.poll_timeout()]
            .into_iter()
            .flatten()
            .min()
    }

    /// The end of the day for clients: open orders are cancelled but those for the close, which the closing
    /// auction ends.
    pub(crate) fn cancel_all(&mut self, now: Nanos, context: &mut RequestContext<'_>) {
        let goes = |order: &ClientOrder| order.time_in_force != TimeInForce::AtTheClose;
        self.sweep(now, context, goes, |_| true, b'C');
    }

    /// Does the cancels that have waited for the end of an auction. One whose order has gone meanwhile came
    /// too late.
    pub(crate) fn cancel_waiting(&mut self, now: Nanos, context: &mut RequestContext<'_>) {
        if context.no_cancel.is_some() || self.books.waiting_cancels.is_empty() {
            return;
        }
        let waiting = core::mem::take(&mut self.books.waiting_cancels);
        self.act_and_tell(now, context, |scope| {
            for WaitingCancel { row, request, orig } in waiting {
                if scope.books.ledger[row].outcome == Outcome::Open {
                    // One that the engine no longer has is told as gone already.
                    let _ = scope.cancel(row, request, orig);
                } else if request != orig {
                    // A request of its own: a mass cancel was answered in sum, and OUCH has no word for it.
                    scope.tell(row, OrderNotice::CancelTooLate, request, orig);
                }
            }
        });
    }

    /// Does what no client's bytes ask for, and tells the clients.
    fn act_and_tell<'f, T>(
        &mut self,
        now: Nanos,
        context: &mut RequestContext<'f>,
        act: impl FnOnce(&mut RequestScope<'_, 'f>) -> T,
    ) -> T {
        let mut said = Vec::new();
        let mut scope = RequestScope {
            books: &mut self.books,
            context,
            now,
            said: &mut said,
        };
        let done = act(&mut scope);
        self.ouch.set_time(context.time);
        deliver(&mut said, &mut self.fix, &mut self.ouch);
        done
    }

    /// Breaks a trade, and tells the clients in it.
    pub(crate) fn break_trade(
        &mut self,
        now: Nanos,
        match_number: u64,
        reason: BreakReason,
        context: &mut RequestContext<'_>,
    ) -> Result<(), Reject> {
        self.act_and_tell(now, context, |scope| {
            scope.act(Asked::Nothing, |engine, out| {
                engine.break_trade(match_number, reason, out)
            })
        })
    }

    /// Halts or resumes an instrument, and tells the clients whose orders that concerns.
    pub(crate) fn take_action(
        &mut self,
        now: Nanos,
        instrument: InstrumentId,
        action: TradingAction,
        context: &mut RequestContext<'_>,
    ) -> Result<(), Reject> {
        self.act_and_tell(now, context, |scope| {
            scope.act(Asked::Nothing, |engine, out| {
                let is_called = engine.trading_status(instrument) == Some(TradingStatus::Auction);
                if action == TradingAction::Halt {
                    return engine.set_status(instrument, TradingStatus::Halted, out);
                }
                if !is_called {
                    engine.begin_auction(instrument, AuctionKind::Resumption, out)?;
                }
                engine.indicate(instrument, out)?;
                match action {
                    TradingAction::Resume => engine.uncross(instrument, TradingStatus::Trading, out),
                    TradingAction::Halt | TradingAction::Call => Ok(()),
                }
            })
        })
    }

    /// Whether anybody is connected.
    pub(crate) fn has_clients(&self) -> bool {
        self.fix.has_clients() || self.ouch.has_clients()
    }

    /// Says goodbye on every connection.
    pub(crate) fn logout(&mut self, now: Nanos, time: VenueTime) {
        self.fix.logout(now);
        self.ouch.end(time);
    }

    /// Cancels open orders that fit, and the quotes of sessions that do: `why` is their
    /// UnsolicitedCancelType. How many orders, and how many quoted instruments.
    fn sweep(
        &mut self,
        now: Nanos,
        context: &mut RequestContext<'_>,
        which: impl Fn(&ClientOrder) -> bool,
        quotes_of: impl Fn(usize) -> bool,
        why: u8,
    ) -> (u32, u32) {
        self.act_and_tell(now, context, |scope| {
            let orders = scope.sweep(which);
            let gone = scope.withdraw(|quote| quotes_of(quote.session));
            let quotes = gone.len() as u32;
            scope.tell_removed(gone, why);
            (orders, quotes)
        })
    }

    /// Hears what the market's own flow does to clients' orders; [`Reports::deliver`] tells it.
    pub(crate) fn reports(&mut self, now: Nanos, time: VenueTime) -> Reports<'_> {
        self.ouch.set_time(time);
        Reports {
            hearing: Hearing {
                books: &mut self.books,
                said: Vec::new(),
                now,
                asked: Asked::Nothing,
                disturbed: None,
                reason: None,
            },
            fix: &mut self.fix,
            ouch: &mut self.ouch,
        }
    }
}

/// Tells the ports.
fn deliver(said: &mut Vec<Said>, fix: &mut FixGateway, ouch: &mut OuchGateway) {
    for one in said.drain(..) {
        match one {
            Said::Order(saying) => match saying.order.route {
                Route::Fix(session) => fix.say(session, &saying),
                Route::Ouch(port) => ouch.say(port, &saying),
            },
            Said::Quote { session, at, out } => fix.say_of_quotes(session, at, out),
        }
    }
}

impl Books {
    fn instrument(&self, symbol: &Symbol) -> Option<InstrumentId> {
        let at = self
            .symbols
            .binary_search_by_key(symbol, |(symbol, _)| *symbol)
            .ok()?;
        Some(self.symbols[at].1)
    }

    /// The order that has, or had, this identifier.
    fn find(&self, route: Route, id: &Id) -> Option<usize> {
        self.names.get(name_hash(route, id)).map(|row| row as usize)
    }

    fn name(&mut self, route: Route, id: &Id, row: usize) -> bool {
        if self.named >= self.max_orders * 2 {
            return false;
        }
        self.named += 1;
        self.names.insert(name_hash(route, id), row as u32);
        true
    }

    /// Keeps what the last fill was told with. The oldest gives way.
    fn keep_fill(&mut self, match_number: u64, order: OrderId) {
        if self.fills.len() >= TRADES_KEPT * 2 {
            self.fills.pop_front();
        }
        self.fills.push_back(Fill {
            match_number,
            order,
            exec_id: self.last_exec_id,
        });
    }

    fn find_fill(&self, match_number: u64, order: OrderId) -> Option<u64> {
        let first = self
            .fills
            .partition_point(|fill| fill.match_number < match_number);
        let mut fills = self
            .fills
            .range(first..)
            .take_while(|fill| fill.match_number == match_number);
        fills.find(|fill| fill.order == order).map(|fill| fill.exec_id)
    }

    fn saying(&mut self, order: &ClientOrder, told: OrderNotice, now: Nanos) -> Saying {
        self.last_exec_id += 1;
        Saying {
            order: *order,
            told,
            request: None,
            exec_id: self.last_exec_id,
            at: now,
        }
    }
}

/// FNV-1a over route and identifier; never 0.
fn name_hash(route: Route, id: &Id) -> u64 {
    let (kind, number) = match route {
        Route::Fix(n) => (0, n),
        Route::Ouch(n) => (1, n),
    };
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01B3);
    let start = (number as u32)
        .to_le_bytes()
        .into_iter()
        .fold(0xCBF2_9CE4_8422_2325, step);
    id.as_bytes()
        .iter()
        .fold(step(start, kind), |hash, byte| step(hash, *byte))
        .max(1)
}

persist!(value struct Fill { match_number, order, exec_id });
persist!(struct Books {
    ledger, names, named, last_exec_id, unrecorded, quotes, waiting_cancels, fills,
} not { max_orders, symbols });
// Notices are for a terminal.
persist!(struct OrderGateway { books, fix, ouch } not { fix_connections, notices });
