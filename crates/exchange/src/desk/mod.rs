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
//! **Invariant.** What the desk does depends on its inputs alone (bytes, times, connections): the same inputs
//! make the same ledger, the same sequence numbers and the same bytes. The journal relies on it.

mod clients;
mod fix;
mod ouch;
mod quotes;

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use tickwire_fix::{CompId, DisconnectReason, Id, Version};
use tickwire_market::{
    Cause, InstrumentId, Nanos, OrderId, OrderType, Price, Qty, Side, Symbol, TimeInForce, TradingStatus,
};
use tickwire_persist::persist;
use tickwire_wire::layout::Alpha;

use crate::breaks::Breaks;
use crate::broadcast::Broadcast;
use crate::engine::{Engine, TRADES_KEPT};
use crate::flow::Flow;
use crate::index::OrderIndex;
use crate::order::{
    BreakReason, Broken, CancelReason, CrossFill, Execution, Firm, Listener, NewOrder, Order, Owner, Party,
    Reject, SelfTrade, StateHash,
};
use crate::rules::{AuctionKind, TradingAction};
use crate::tape::Tape;
use crate::tape::{Listing, VenueTime};

use clients::Notices;
pub use clients::{ClientEvent, ClientNotice, ClientState};
use fix::FixGateway;
use ouch::OuchGateway;
pub use quotes::ClientQuote;
use quotes::{QuoteOut, Quotes, is_quote};

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
pub struct DeskConfig {
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
    /// OUCH connections are numbered from [`DeskConfig::connections`] on, so many.
    pub ouch_connections: usize,
    /// The SoupBinTCP session of OUCH.
    pub ouch_session: [u8; 10],
    /// Reports that wait for a client that is not logged on or does not read, of each FIX session; further
    /// ones are counted and lost.
    pub waiting_max: usize,
}

impl Default for DeskConfig {
    fn default() -> DeskConfig {
        DeskConfig {
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

/// What became of a client's order.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Outcome {
    /// Refused; it never was in the market.
    Rejected,
    /// In the book, or waiting for its trigger or auction.
    Open,
    /// All filled.
    Filled,
    /// Cancelled, by request, by its time in force, with its connection or at the end of the day, maybe after
    /// fills; or all filled, and a fill was broken then.
    Cancelled,
}

/// By which port an order came.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Route {
    /// A FIX session, in the order of [`DeskConfig::sessions`], then in the order of coming.
    Fix(usize),
    /// A user of OUCH, in the order of [`DeskConfig::ouch`].
    Ouch(usize),
}

/// One row of the ledger.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ClientOrder {
    /// The port it came by.
    pub route: Route,
    /// Whose risk it is.
    pub firm: Firm,
    /// Its latest ClOrdID (replacements change it); of OUCH its UserRefNum.
    pub cl_ord_id: Id,
    /// The engine's first number of it: OrderID (37). 0 when rejected.
    pub venue_id: OrderId,
    /// The engine's present number of it, the one that market data shows.
    pub order_id: OrderId,
    /// The instrument; [`InstrumentId::WHOLE_FEED`] when its symbol was unknown.
    pub instrument: InstrumentId,
    /// As sent.
    pub symbol: Symbol,
    /// Its side.
    pub side: Side,
    /// Limit or market; of a stop order what it becomes.
    pub order_type: OrderType,
    /// Its limit, zero for market orders.
    pub price: Price,
    /// The price of its trigger.
    pub stop: Option<Price>,
    /// How much of it is shown; 0 is all.
    pub display: Qty,
    /// Its total quantity.
    pub qty: Qty,
    /// How long it lives.
    pub time_in_force: TimeInForce,
    /// How much of it is filled, without what was broken.
    pub filled: Qty,
    /// How much of what was filled was broken: it does not return to the order.
    pub broken: Qty,
    /// Fills times prices, in raw price units.
    pub cost: i128,
    /// What became of it.
    pub outcome: Outcome,
    /// The market data message that caused it, as the order says.
    pub cause: Option<Cause>,
    /// When its bytes were received.
    pub received: Nanos,
    /// What its port keeps about it: OrdType (40) as sent, or the row of OUCH's own terms.
    pub(crate) own: u32,
}

impl ClientOrder {
    pub(crate) fn leaves(&self) -> Qty {
        match self.outcome {
            Outcome::Open => Qty(self.qty.0.saturating_sub(self.executed().0)),
            _ => Qty::ZERO,
        }
    }

    /// What cannot be traded again: filled, or filled and broken.
    pub(crate) fn executed(&self) -> Qty {
        Qty(self.filled.0.saturating_add(self.broken.0))
    }

    pub(crate) fn average(&self) -> Price {
        match self.filled.0 {
            0 => Price::ZERO,
            filled => Price::from_raw((self.cost / i128::from(filled)) as i64),
        }
    }
}

/// How a fill came about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Liquidity {
    Added,
    Removed,
    Auction,
}

/// Why an order left or lost quantity.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Why {
    /// By a request about it.
    Request,
    /// What an order that does not rest could not trade.
    TimeInForce,
    /// Its connection is gone, or its client asked for all of its orders.
    Swept,
    /// See [`CancelReason`].
    Engine(CancelReason),
}

/// Why an order was refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Refusal {
    Engine(Reject),
    UnknownSymbol,
    Closed,
    Duplicate,
    NoRoom,
    Disabled,
}

/// What a port is told about an order of its own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum OrderNotice {
    Accepted,
    Refused(Refusal),
    Filled {
        qty: Qty,
        price: Price,
        match_number: u64,
        liquidity: Liquidity,
    },
    /// A fill of it was broken.
    Broken {
        qty: Qty,
        price: Price,
        match_number: u64,
        reason: BreakReason,
        /// What the fill was told with.
        exec_id: u64,
    },
    /// All that was left of it, so much.
    Cancelled {
        qty: Qty,
        why: Why,
    },
    /// It has lost `by`, and what it was asked to be is in the ledger.
    Reduced {
        by: Qty,
        why: Why,
    },
    /// It is as the ledger says.
    Replaced,
    Triggered,
    /// An iceberg shows its next slice of so much.
    Refreshed {
        shown: Qty,
    },
    /// Its cancel waits for the end of the auction.
    CancelPending,
    /// That cancel finds it gone.
    CancelTooLate,
    /// Nothing happened: its state was asked for.
    Status,
}

/// What is said to a port: the order as it is now, and what happened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Saying {
    pub(crate) order: ClientOrder,
    pub(crate) told: OrderNotice,
    /// The identifier of the request that this answers, and the one the order had before.
    pub(crate) request: Option<(Id, Id)>,
    /// Counts up over all ports.
    pub(crate) exec_id: u64,
    pub(crate) at: Nanos,
}

/// What is delivered to a port.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Said {
    /// About an order, or a quote's fill.
    Order(Saying),
    /// About quotes, to a FIX session.
    Quote {
        session: usize,
        at: Nanos,
        out: QuoteOut,
    },
}

/// What the desk acts on while it handles a request.
pub(crate) struct RequestContext<'a> {
    pub(crate) engine: &'a mut Engine,
    pub(crate) tape: &'a mut Broadcast,
    pub(crate) flow: &'a mut Flow,
    pub(crate) breaks: &'a mut Breaks,
    pub(crate) time: VenueTime,
    /// The auction whose orders cannot be cancelled now.
    pub(crate) no_cancel: Option<AuctionKind>,
    /// Whether new orders are taken.
    pub(crate) is_open: bool,
}

/// Whether an order can be cancelled or changed now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Hold {
    /// It can.
    Free,
    /// It is in an auction that is about to take place: a cancel waits, it cannot be changed.
    Waits,
    /// It is for that auction: neither.
    Stays,
}

/// A cancel that waits for the end of an auction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct WaitingCancel {
    row: usize,
    request: Id,
    orig: Id,
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

/// What a port may do while it handles its bytes: the other halves of the desk.
struct Hands<'a, 'f> {
    books: &'a mut Books,
    floor: &'a mut RequestContext<'f>,
    now: Nanos,
    /// What happened, in order, for whichever port it is.
    said: &'a mut Vec<Said>,
}

impl OrderGateway {
    pub(crate) fn new(config: &DeskConfig, listings: &[Listing]) -> OrderGateway {
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

    pub(crate) fn disconnect(&mut self, id: usize, now: Nanos, floor: &mut RequestContext<'_>) {
        let gone = match id.checked_sub(self.fix_connections) {
            None => self.fix.disconnect(id, now),
            Some(id) => self.ouch.disconnect(id),
        };
        if let Some((route, cancels)) = gone {
            self.notices.push(now, route, ClientEvent::Disconnected);
            self.leave(now, floor, route, cancels, None);
        }
    }

    /// A client is not there any more: what is open of it goes, or stays.
    fn leave(
        &mut self,
        now: Nanos,
        floor: &mut RequestContext<'_>,
        route: Route,
        cancels: bool,
        silent_ns: Option<u64>,
    ) {
        let event = if cancels {
            let is_of = |session| Route::Fix(session) == route;
            let (orders, quotes) = self.sweep(now, floor, |order| order.route == route, is_of, b'A');
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
    fn follow_sessions(&mut self, now: Nanos, floor: &mut RequestContext<'_>) {
        while let Some((session, event)) = self.fix.poll_client_event() {
            let route = Route::Fix(session);
            self.notices.push(now, route, event);
            if let ClientEvent::Ended {
                reason: DisconnectReason::HeartbeatTimeout,
                ..
            } = event
            {
                let (cancels, silent_ns) = self.fix.cancels_silent(session);
                self.leave(now, floor, route, cancels, Some(silent_ns));
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
    pub(crate) fn resume(&mut self, now: Nanos, floor: &mut RequestContext<'_>) {
        for id in 0..self.fix_connections + self.ouch.connections() {
            self.disconnect(id, now, floor);
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
        floor: &mut RequestContext<'_>,
    ) -> usize {
        let mut said = Vec::new();
        let mut hands = Hands {
            books: &mut self.books,
            floor,
            now,
            said: &mut said,
        };
        let taken = match id.checked_sub(self.fix_connections) {
            None => self.fix.handle_bytes(id, bytes, &mut hands, &mut self.ouch),
            Some(id) => self.ouch.handle_bytes(id, bytes, &mut hands, &mut self.fix),
        };
        debug_assert!(said.is_empty(), "ports deliver what they did");
        self.follow_sessions(now, floor);
        taken
    }

    pub(crate) fn handle_timeout(&mut self, now: Nanos, floor: &mut RequestContext<'_>) {
        let mut said = Vec::new();
        let mut hands = Hands {
            books: &mut self.books,
            floor,
            now,
            said: &mut said,
        };
        self.fix.handle_timeout(&mut hands, &mut self.ouch);
        self.ouch.handle_timeout(now);
        self.follow_sessions(now, floor);
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
    pub(crate) fn cancel_all(&mut self, now: Nanos, floor: &mut RequestContext<'_>) {
        let goes = |order: &ClientOrder| order.time_in_force != TimeInForce::AtTheClose;
        self.sweep(now, floor, goes, |_| true, b'C');
    }

    /// Does the cancels that have waited for the end of an auction. One whose order has gone meanwhile came
    /// too late.
    pub(crate) fn cancel_waiting(&mut self, now: Nanos, floor: &mut RequestContext<'_>) {
        if floor.no_cancel.is_some() || self.books.waiting_cancels.is_empty() {
            return;
        }
        let waiting = core::mem::take(&mut self.books.waiting_cancels);
        self.act_and_tell(now, floor, |hands| {
            for WaitingCancel { row, request, orig } in waiting {
                if hands.books.ledger[row].outcome == Outcome::Open {
                    // One that the engine no longer has is told as gone already.
                    let _ = hands.cancel(row, request, orig);
                } else if request != orig {
                    // A request of its own: a mass cancel was answered in sum, and OUCH has no word for it.
                    hands.tell(row, OrderNotice::CancelTooLate, request, orig);
                }
            }
        });
    }

    /// Does what no client's bytes ask for, and tells the clients.
    fn act_and_tell<'f, T>(
        &mut self,
        now: Nanos,
        floor: &mut RequestContext<'f>,
        act: impl FnOnce(&mut Hands<'_, 'f>) -> T,
    ) -> T {
        let mut said = Vec::new();
        let mut hands = Hands {
            books: &mut self.books,
            floor,
            now,
            said: &mut said,
        };
        let done = act(&mut hands);
        self.ouch.set_time(floor.time);
        deliver(&mut said, &mut self.fix, &mut self.ouch);
        done
    }

    /// Breaks a trade, and tells the clients in it.
    pub(crate) fn break_trade(
        &mut self,
        now: Nanos,
        match_number: u64,
        reason: BreakReason,
        floor: &mut RequestContext<'_>,
    ) -> Result<(), Reject> {
        self.act_and_tell(now, floor, |hands| {
            hands.act(Asked::Nothing, |engine, out| {
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
        floor: &mut RequestContext<'_>,
    ) -> Result<(), Reject> {
        self.act_and_tell(now, floor, |hands| {
            hands.act(Asked::Nothing, |engine, out| {
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
        floor: &mut RequestContext<'_>,
        which: impl Fn(&ClientOrder) -> bool,
        quotes_of: impl Fn(usize) -> bool,
        why: u8,
    ) -> (u32, u32) {
        self.act_and_tell(now, floor, |hands| {
            let orders = hands.sweep(which);
            let gone = hands.withdraw(|quote| quotes_of(quote.session));
            let quotes = gone.len() as u32;
            hands.tell_removed(gone, why);
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

impl Hands<'_, '_> {
    /// Enters an order and names it in the ledger. Everything about it is told, refusals too.
    fn enter(&mut self, order: ClientOrder, new: NewOrder, is_enabled: bool) {
        let mut order = order;
        let refused = if self.books.find(order.route, &order.cl_ord_id).is_some() {
            Some(Refusal::Duplicate)
        } else if self.books.ledger.len() >= self.books.max_orders
            || !self
                .books
                .name(order.route, &order.cl_ord_id, self.books.ledger.len())
        {
            self.books.unrecorded += 1;
            Some(Refusal::NoRoom)
        } else {
            None
        };
        if let Some(refusal) = refused {
            // It has no row: a duplicate is no order.
            order.outcome = Outcome::Rejected;
            let saying = self.books.saying(&order, OrderNotice::Refused(refusal), self.now);
            return self.said.push(Said::Order(saying));
        }
        self.books.ledger.push(order);
        let row = self.books.ledger.len() - 1;
        let refused = if order.instrument == InstrumentId::WHOLE_FEED {
            Some(Refusal::UnknownSymbol)
        } else if !self.floor.is_open {
            Some(Refusal::Closed)
        } else if !is_enabled {
            Some(Refusal::Disabled)
        } else {
            let new = NewOrder {
                owner: Owner(row as u32 + 1),
                firm: order.firm,
                ..new
            };
            let done = self.act(Asked::Nothing, |engine, out| engine.submit(&new, out));
            done.err().map(Refusal::Engine)
        };
        if let Some(refusal) = refused {
            self.books.ledger[row].outcome = Outcome::Rejected;
            let order = self.books.ledger[row];
            let saying = self.books.saying(&order, OrderNotice::Refused(refusal), self.now);
            self.said.push(Said::Order(saying));
        }
    }

    /// Cancels what is left of an order.
    fn cancel(&mut self, row: usize, request: Id, orig: Id) -> Result<(), Reject> {
        let target = self.books.ledger[row].order_id;
        let asked = Asked::Order {
            row,
            request,
            orig,
            is_replace: false,
        };
        self.act(asked, |engine, out| engine.cancel(target, out))
    }

    /// Whether an order can be cancelled or changed now, see
    /// [`AuctionTimes::no_cancel_ns`](crate::AuctionTimes).
    fn hold(&self, order: &ClientOrder) -> Hold {
        match (self.floor.no_cancel, order.time_in_force) {
            (None, _) => Hold::Free,
            (Some(AuctionKind::Opening), TimeInForce::AtTheOpening)
            | (Some(AuctionKind::Closing), TimeInForce::AtTheClose) => Hold::Stays,
            _ if self.floor.engine.trading_status(order.instrument) == Some(TradingStatus::Auction) => {
                Hold::Waits
            }
            _ => Hold::Free,
        }
    }

    /// Whether a cancel of it waits for the end of the auction.
    fn is_cancel_waiting(&self, row: usize) -> bool {
        self.books.waiting_cancels.iter().any(|w| w.row == row)
    }

    /// Keeps a cancel until the auction is over; the port is told.
    fn cancel_later(&mut self, row: usize, request: Id, orig: Id) {
        if !self.is_cancel_waiting(row) {
            let waiting = WaitingCancel { row, request, orig };
            self.books.waiting_cancels.push(waiting);
        }
        self.tell(row, OrderNotice::CancelPending, request, orig);
    }

    /// Tells the port of an order what becomes of a request about it.
    fn tell(&mut self, row: usize, told: OrderNotice, request: Id, orig: Id) {
        let order = self.books.ledger[row];
        let mut saying = self.books.saying(&order, told, self.now);
        saying.request = Some((request, orig));
        self.said.push(Said::Order(saying));
    }

    /// Takes `by` from an order, which keeps its place.
    fn reduce(&mut self, row: usize, by: Qty, request: Id, orig: Id) -> Result<(), Reject> {
        let target = self.books.ledger[row].order_id;
        let asked = Asked::Order {
            row,
            request,
            orig,
            is_replace: false,
        };
        self.act(asked, |engine, out| engine.reduce(target, by, out))
    }

    /// Gives an order another price, total quantity, fills included (broken ones too), and, as long as it
    /// waits for it, trigger under another identifier.
    fn replace(&mut self, row: usize, changed: ClientOrder, orig: Id) -> Result<(), Reject> {
        let before = self.books.ledger[row];
        // What is filled already cannot be taken back.
        let remaining = Qty(changed.qty.0.saturating_sub(before.executed().0));
        self.books.ledger[row] = changed;
        let asked = Asked::Order {
            row,
            request: changed.cl_ord_id,
            orig,
            is_replace: true,
        };
        let told = self.said.len();
        let done = self.act(asked, |engine, out| {
            let id = before.order_id;
            match changed.stop.filter(|stop| before.stop != Some(*stop)) {
                Some(stop) => engine.replace_stop(id, stop, changed.price, remaining, out),
                None => engine.replace(id, changed.price, remaining, out),
            }
        });
        match done {
            // Nothing but the name changed: the engine had nothing to tell.
            Ok(_) if self.said.len() == told => {
                let mut saying = self.books.saying(&changed, OrderNotice::Replaced, self.now);
                saying.request = Some((changed.cl_ord_id, orig));
                self.said.push(Said::Order(saying));
                Ok(())
            }
            Ok(_) => Ok(()),
            Err(e) => {
                self.books.ledger[row] = before;
                Err(e)
            }
        }
    }

    /// Whether a stop order has not been triggered yet.
    fn is_waiting_for_trigger(&self, order: &ClientOrder) -> bool {
        self.floor.engine.stop_price(order.order_id).is_some()
    }

    /// Cancels, for a client, every open order that fits and can be cancelled now; how many. Of those that
    /// are in an auction the cancel waits for its end.
    fn sweep_for_client(&mut self, which: impl Fn(&ClientOrder) -> bool) -> u32 {
        if self.floor.no_cancel.is_none() {
            return self.sweep(which);
        }
        let mut cancelled = 0;
        for row in 0..self.books.ledger.len() {
            let order = self.books.ledger[row];
            if order.outcome != Outcome::Open || !which(&order) {
                continue;
            }
            match self.hold(&order) {
                Hold::Free => {
                    let done = self.act(Asked::Sweep, |engine, out| engine.cancel(order.order_id, out));
                    cancelled += u32::from(done.is_ok());
                }
                Hold::Waits => self.cancel_later(row, order.cl_ord_id, order.cl_ord_id),
                Hold::Stays => {}
            }
        }
        cancelled
    }

    /// Cancels every open order that fits; how many.
    fn sweep(&mut self, which: impl Fn(&ClientOrder) -> bool) -> u32 {
        let mut cancelled = 0;
        for row in 0..self.books.ledger.len() {
            let order = self.books.ledger[row];
            if order.outcome == Outcome::Open && which(&order) {
                let done = self.act(Asked::Sweep, |engine, out| engine.cancel(order.order_id, out));
                cancelled += u32::from(done.is_ok());
            }
        }
        cancelled
    }

    /// Does something to the engine while publisher and clients listen.
    fn act<T>(
        &mut self,
        asked: Asked,
        request: impl FnOnce(&mut Engine, &mut (&mut Broadcast, &mut Hearing<'_>)) -> T,
    ) -> T {
        self.floor.tape.set_time(self.floor.time);
        self.floor.engine.set_time(self.floor.time);
        let mut hearing = Hearing {
            books: self.books,
            said: core::mem::take(self.said),
            now: self.now,
            asked,
            disturbed: None,
            reason: None,
        };
        let done = request(self.floor.engine, &mut (&mut *self.floor.tape, &mut hearing));
        *self.said = hearing.said;
        if let Some(instrument) = hearing.disturbed {
            self.floor.flow.disturb(instrument, self.floor.time);
        }
        self.floor.breaks.draw(self.floor.time, self.floor.engine);
        done
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

/// Keeps the ledger while the engine works, and notes what ports are to be told.
struct Hearing<'a> {
    books: &'a mut Books,
    said: Vec<Said>,
    now: Nanos,
    asked: Asked,
    /// A client took liquidity here.
    disturbed: Option<InstrumentId>,
    /// Why the order of the next event leaves.
    reason: Option<CancelReason>,
}

impl Hearing<'_> {
    /// Changes a client's order and notes it. Not about one: nothing.
    fn tell(&mut self, owner: Owner, told: OrderNotice, change: impl FnOnce(&mut ClientOrder)) {
        let Some(row) = (owner.0 as usize).checked_sub(1) else {
            return;
        };
        let Some(order) = self.books.ledger.get_mut(row) else {
            return;
        };
        change(order);
        let order = *order;
        let mut saying = self.books.saying(&order, told, self.now);
        if let Asked::Order {
            row: about,
            request,
            orig,
            ..
        } = self.asked
            && about == row
            && matches!(
                told,
                OrderNotice::Replaced | OrderNotice::Cancelled { .. } | OrderNotice::Reduced { .. }
            )
        {
            saying.request = Some((request, orig));
        }
        self.said.push(Said::Order(saying));
    }

    fn fill(&mut self, order: &Order, qty: Qty, price: Price, match_number: u64, liquidity: Liquidity) {
        let told = OrderNotice::Filled {
            qty,
            price,
            match_number,
            liquidity,
        };
        let before = self.said.len();
        if is_quote(order.owner) {
            self.quote_filled(order, told, qty, price);
        } else {
            self.tell(order.owner, told, |order| {
                order.filled = Qty(order.filled.0 + qty.0);
                order.cost += price.notional(u64::from(qty.0));
                if order.executed() >= order.qty {
                    order.outcome = Outcome::Filled;
                }
            });
        }
        // Auctions are not broken.
        if liquidity != Liquidity::Auction && self.said.len() > before {
            self.books.keep_fill(match_number, order.id);
        }
    }

    /// A trade of a client was broken: what it had is taken off its order, which stays what it is.
    fn void(&mut self, party: &Party, broken: &Broken) {
        let &Broken {
            match_number,
            qty,
            price,
            reason,
            ..
        } = broken;
        let Some(exec_id) = self.books.find_fill(match_number, party.id) else {
            return;
        };
        let told = OrderNotice::Broken {
            qty,
            price,
            match_number,
            reason,
            exec_id,
        };
        if is_quote(party.owner) {
            return self.quote_broken(party, told, qty, price);
        }
        self.tell(party.owner, told, |order| {
            order.filled = Qty(order.filled.0.saturating_sub(qty.0));
            order.broken = Qty(order.broken.0.saturating_add(qty.0));
            order.cost -= price.notional(u64::from(qty.0));
            if order.outcome == Outcome::Filled {
                order.outcome = Outcome::Cancelled;
            }
        });
    }

    /// What is left of an order is gone.
    fn gone(&mut self, order: &Order, otherwise: Why) {
        if is_quote(order.owner) {
            return self.quote_lost(order, None);
        }
        let why = match (self.reason.take(), self.asked) {
            (Some(reason), _) => Why::Engine(reason),
            (None, Asked::Sweep) => Why::Swept,
            (None, Asked::Order { row, .. }) if order.owner == Owner(row as u32 + 1) => Why::Request,
            (None, _) => otherwise,
        };
        let row = (order.owner.0 as usize).checked_sub(1);
        let left = row
            .and_then(|row| self.books.ledger.get(row))
            .map_or(Qty::ZERO, ClientOrder::leaves);
        let told = OrderNotice::Cancelled { qty: left, why };
        self.tell(order.owner, told, |mine| mine.outcome = Outcome::Cancelled);
    }

    /// An order lost quantity and stays. What it lost in all is what the ledger has more: of an iceberg's
    /// slice and reserve only one is told.
    fn lost(&mut self, order: &Order, by: Qty) {
        if is_quote(order.owner) {
            return self.quote_lost(order, Some(by));
        }
        let row = (order.owner.0 as usize).checked_sub(1);
        let before = row.and_then(|row| self.books.ledger.get(row));
        let by = before.map_or(by, |mine| {
            Qty(u64::from(mine.leaves().0).saturating_sub(order.leaves()) as u32)
        });
        let is_replace = matches!(self.asked, Asked::Order { row, is_replace: true, .. }
            if order.owner == Owner(row as u32 + 1));
        match self.reason.take() {
            Some(reason) => {
                let why = Why::Engine(reason);
                self.tell(order.owner, OrderNotice::Reduced { by, why }, |mine| {
                    mine.qty = Qty(mine.qty.0.saturating_sub(by.0));
                });
            }
            None if is_replace => self.tell(order.owner, OrderNotice::Replaced, |_| {}),
            None => {
                let why = Why::Request;
                self.tell(order.owner, OrderNotice::Reduced { by, why }, |mine| {
                    mine.qty = Qty(mine.qty.0.saturating_sub(by.0));
                });
            }
        }
    }

    /// Where the order is found from now on.
    fn renumber(&mut self, new: &Order) {
        let row = (new.owner.0 as usize).checked_sub(1);
        if let Some(order) = row.and_then(|row| self.books.ledger.get_mut(row)) {
            order.order_id = new.id;
        }
    }
}

impl Listener for Hearing<'_> {
    fn accepted(&mut self, order: &Order) {
        if is_quote(order.owner) {
            return self.quoted(order);
        }
        self.tell(order.owner, OrderNotice::Accepted, |mine| {
            mine.venue_id = order.id;
            mine.order_id = order.id;
            if mine.order_type == OrderType::Limit {
                // A post-only order may have been given another one.
                mine.price = order.price;
            }
        });
    }

    fn rested(&mut self, _: &Order) {}

    fn executed(&mut self, execution: &Execution) {
        let Execution {
            maker,
            taker,
            qty,
            price,
            match_number,
        } = *execution;
        if taker.owner != Owner::HOUSE {
            self.disturbed = Some(taker.instrument);
        }
        self.fill(&maker, qty, price, match_number, Liquidity::Added);
        self.fill(&taker, qty, price, match_number, Liquidity::Removed);
    }

    fn cross_filled(&mut self, fill: &CrossFill) {
        let liquidity = Liquidity::Auction;
        self.fill(&fill.order, fill.qty, fill.price, fill.match_number, liquidity);
    }

    fn broken(&mut self, broken: &Broken) {
        self.void(&broken.maker, broken);
        self.void(&broken.taker, broken);
    }

    fn refreshed(&mut self, _: &Order, new: &Order) {
        self.renumber(new);
        self.tell(new.owner, OrderNotice::Refreshed { shown: new.qty }, |_| {});
    }

    fn triggered(&mut self, _: &Order, new: &Order) {
        self.renumber(new);
        self.tell(new.owner, OrderNotice::Triggered, |_| {});
    }

    fn cancelled(&mut self, _: &Order, reason: CancelReason) {
        self.reason = Some(reason);
    }

    fn protected(&mut self, firm: Firm, group: u32) {
        self.tripped(firm, group);
    }

    fn decremented(&mut self, order: &Order, by: Qty) {
        self.lost(order, by);
    }

    fn reserve_reduced(&mut self, order: &Order, by: Qty) {
        self.lost(order, by);
    }

    fn reduced(&mut self, order: &Order, by: Qty) {
        self.lost(order, by);
    }

    fn deleted(&mut self, order: &Order) {
        self.gone(order, Why::Request);
    }

    fn expired(&mut self, order: &Order) {
        self.gone(order, Why::TimeInForce);
    }

    fn replaced(&mut self, _: &Order, new: &Order, _: bool) {
        self.renumber(new);
        self.tell(new.owner, OrderNotice::Replaced, |_| {});
    }

    fn reparked(&mut self, old: &Order, new: &Order) {
        if old.id == new.id {
            // It kept its place: it has become smaller.
            return self.lost(new, Qty(old.qty.0.saturating_sub(new.qty.0)));
        }
        self.renumber(new);
        self.tell(new.owner, OrderNotice::Replaced, |_| {});
    }
}

/// Hears the market's own flow.
pub(crate) struct Reports<'a> {
    hearing: Hearing<'a>,
    fix: &'a mut FixGateway,
    ouch: &'a mut OuchGateway,
}

impl Reports<'_> {
    /// Who listens.
    pub(crate) fn listener(&mut self) -> &mut impl Listener {
        &mut self.hearing
    }

    /// Tells the ports what was heard.
    pub(crate) fn deliver(mut self) {
        deliver(&mut self.hearing.said, self.fix, self.ouch);
    }
}

persist!(value enum Outcome { 0 => Rejected, 1 => Open, 2 => Filled, 3 => Cancelled });
persist!(value enum Route { 0 => Fix(at), 1 => Ouch(at) });
persist!(value struct ClientOrder {
    route, firm, cl_ord_id, venue_id, order_id, instrument, symbol, side, order_type, price, stop, display, qty, time_in_force, filled,
    broken, cost, outcome, cause, received, own,
});
persist!(value enum Liquidity { 0 => Added, 1 => Removed, 2 => Auction });
persist!(value enum Why { 0 => Request, 1 => TimeInForce, 2 => Swept, 3 => Engine(reason) });
persist!(value enum Refusal {
    0 => Engine(reject), 1 => UnknownSymbol, 2 => Closed, 3 => Duplicate, 4 => NoRoom, 5 => Disabled,
});
persist!(value enum OrderNotice {
    0 => Accepted,
    1 => Refused(refusal),
    2 => Filled { qty, price, match_number, liquidity },
    3 => Broken { qty, price, match_number, reason, exec_id },
    4 => Cancelled { qty, why },
    5 => Reduced { by, why },
    6 => Replaced,
    7 => Triggered,
    8 => Refreshed { shown },
    9 => CancelPending,
    10 => CancelTooLate,
    11 => Status,
});
persist!(value struct Saying { order, told, request, exec_id, at });
persist!(value struct WaitingCancel { row, request, orig });
persist!(value struct Fill { match_number, order, exec_id });
persist!(struct Books {
    ledger, names, named, last_exec_id, unrecorded, quotes, waiting_cancels, fills,
} not { max_orders, symbols });
// Notices are for a terminal.
persist!(struct OrderGateway { books, fix, ouch } not { fix_connections, notices });
