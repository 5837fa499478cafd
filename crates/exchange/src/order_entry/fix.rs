//! FIX order entry: one acceptor for every version from 4.0 to 5.0 SP2.
//!
//! What is ours is read field by field, because the fields of an order differ little from version to version,
//! and answered in the version's own words ([`report`]). Supported: D, F, G, H, q (since 4.3), e and g, and
//! i, Z and a of [`super::quotes`] (since 4.2). A message that lacks a field it must have is rejected (35=3),
//! one whose values do not go together by a BusinessMessageReject (35=j; up to 4.1 by 35=3), everything else
//! unknown likewise.

mod answers;
mod requests;

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use tickwire_fix::{
    Acceptor, Again, CompId, ConnectionId, Event, Fault, Id, MemoryStore, Precision, Role, SendError,
    SessionConfig, SessionId, Stamp, Status, Store, Version, cxl_rej_reason,
};
use tickwire_market::{InstrumentId, Nanos, OrderId, Price, Qty, Side, Symbol};
use tickwire_persist::{Bytes, Damaged, Persist, PersistValue, StateReader};

use super::ouch::OuchGateway;
use super::quotes::{self, MassQuoting, QuoteCanceling, QuoteOut, StatusAsking};
use super::{
    ClientEvent, ClientOrder, FixPort, Hold, OrderEntryConfig, OrderNotice, Origin, Outcome, RequestScope,
    Route, Saying, deliver,
};
use crate::order::{Firm, NewOrder, Owner, SelfTrade, StateHash};
use answers::{Out, wording};
pub(super) use answers::{cause, why_text};
use requests::{New, read};
pub(super) use requests::{id_of, optional, required, symbol};

/// Tags beyond those of the session layer. FIX 5.0 SP2, volume 6; 2964 of extension pack 254.
mod own {
    pub(super) const EXEC_INST: u32 = 18;
    pub(super) const EXEC_REF_ID: u32 = 19;
    pub(super) const MAX_FLOOR: u32 = 111;
    pub(super) const SECURITY_STATUS_REQ_ID: u32 = 324;
    pub(super) const SECURITY_TRADING_STATUS: u32 = 326;
    pub(super) const TRAD_SES_REQ_ID: u32 = 335;
    pub(super) const TRADING_SESSION_ID: u32 = 336;
    pub(super) const TRAD_SES_STATUS: u32 = 340;
    pub(super) const EXEC_RESTATEMENT_REASON: u32 = 378;
    pub(super) const MASS_CANCEL_REJECT_REASON: u32 = 532;
    pub(super) const TOTAL_AFFECTED_ORDERS: u32 = 533;
    pub(super) const DISPLAY_QTY: u32 = 1138;
    pub(super) const MASS_ACTION_REPORT_ID: u32 = 1369;
    pub(super) const SELF_MATCH_PREVENTION: u32 = 2964;
}

/// OrderID of what never became an order.
const NO_ORDER: Id = match Id::new(b"NONE") {
    Some(id) => id,
    None => Id::EMPTY,
};

/// Why a message is not taken.
pub(super) enum Refused {
    /// A field is missing, or not of its type: 35=3.
    Field(Fault),
    /// Well formed, but not to be done: 35=j.
    Business(u16, &'static str),
}

impl From<Fault> for Refused {
    fn from(fault: Fault) -> Refused {
        Refused::Field(fault)
    }
}

/// What a client asks for.
enum Request {
    New(New),
    Cancel {
        id: Id,
        orig: Id,
    },
    Replace {
        id: Id,
        orig: Id,
        qty: Qty,
        price: Option<Price>,
        stop: Option<Price>,
        ord_type: u8,
    },
    Status {
        id: Id,
    },
    MassCancel {
        id: Id,
        kind: u8,
        symbol: Option<Symbol>,
        side: Option<Side>,
    },
    SecurityStatus {
        id: Id,
        symbol: Symbol,
    },
    SessionStatus {
        id: Id,
    },
    MassQuote(MassQuoting),
    QuoteCancel(QuoteCanceling),
    QuoteStatus(StatusAsking),
    Ignored,
}

/// A session, and what waits for it.
struct Port {
    port: FixPort,
    waiting: VecDeque<Out>,
    stamp: Stamp,
}

pub(super) struct FixGateway {
    table: Acceptor<MemoryStore>,
    ports: Vec<Port>,
    /// The connection of the acceptor behind each of ours.
    connections: Vec<Option<ConnectionId>>,
    /// What sessions that nobody configured are like.
    template: FixPort,
    waiting_max: usize,
    reports_lost: u64,
    /// Sessions that came and went.
    events: VecDeque<(usize, ClientEvent)>,
    now: Nanos,
}

impl FixGateway {
    pub(super) fn set_wall_offset(&mut self, offset_ns: i64) {
        self.table.set_wall_offset(offset_ns);
    }

    pub(super) fn new(config: &OrderEntryConfig) -> FixGateway {
        let mut table = Acceptor::new(config.connections);
        let template = FixPort {
            comp_id: CompId::EMPTY,
            version: Version::Fix44,
            firm: Firm::NONE,
            reset_on_logon: config.reset_on_logon,
            cancel_on_disconnect: true,
            cancel_on_missed_heartbeats: true,
            heartbeat_s_max: None,
            cancels_firm: false,
            self_trade: SelfTrade::Allow,
        };
        let mut ports = Vec::new();
        for port in &config.sessions {
            let session = session_of(config.comp_id, port);
            table.add(session, store_of(&session), None);
            ports.push(Port::of(*port));
        }
        if config.anyone {
            table.add_template(session_of(config.comp_id, &template), config.connections);
        }
        FixGateway {
            table,
            ports,
            connections: (0..config.connections).map(|_| None).collect(),
            template,
            waiting_max: config.waiting_max,
            reports_lost: 0,
            events: VecDeque::new(),
            now: Nanos::ZERO,
        }
    }

    pub(super) fn sessions(&self) -> usize {
        self.ports.len()
    }

    /// Whose risk a session's orders are, and whether it is in force.
    pub(super) fn standing(&self, session: usize) -> (Firm, bool) {
        let status = self.table.session(SessionId(session)).status();
        (self.ports[session].port.firm, status == Status::Active)
    }

    pub(super) fn name(&self, session: usize) -> &str {
        self.ports
            .get(session)
            .map_or("", |port| port.port.comp_id.as_str())
    }

    /// The next session that came or went, and how.
    pub(super) fn poll_client_event(&mut self) -> Option<(usize, ClientEvent)> {
        self.events.pop_front()
    }

    /// Whether what is open of a session goes with its heartbeats, and for how long it was not heard, in
    /// nanoseconds.
    pub(super) fn cancels_silent(&self, session: usize) -> (bool, u64) {
        let port = self.ports[session].port;
        let silent_ns = self.table.session(SessionId(session)).silent_ns();
        (
            port.cancel_on_disconnect || port.cancel_on_missed_heartbeats,
            silent_ns,
        )
    }

    pub(super) fn reports_lost(&self) -> u64 {
        self.reports_lost
    }

    /// Sequence numbers, and how much waits.
    pub(super) fn hash(&self, hash: &mut StateHash) {
        for (at, port) in self.ports.iter().enumerate() {
            let store = self.table.session(SessionId(at)).store();
            hash.word(store.next_out());
            hash.word(store.next_in());
            hash.word(port.waiting.len() as u64);
        }
        hash.word(self.reports_lost);
    }

    pub(super) fn connect(&mut self, id: usize, now: Nanos) -> bool {
        self.now = now;
        match self.connections.get_mut(id) {
            Some(connection @ None) => {
                *connection = self.table.connect(now);
                connection.is_some()
            }
            _ => false,
        }
    }

    /// Whose connection it was, and whether its open orders are to be cancelled.
    pub(super) fn disconnect(&mut self, id: usize, now: Nanos) -> Option<(Route, bool)> {
        self.now = now;
        let connection = self.connections.get_mut(id)?.take()?;
        let session = self.table.session_of(connection);
        self.table.disconnect(now, connection);
        let session = session?;
        Some((
            Route::Fix(session.0),
            self.ports[session.0].port.cancel_on_disconnect,
        ))
    }

    pub(super) fn has_clients(&self) -> bool {
        self.connections.iter().any(Option::is_some)
    }

    pub(super) fn wants_close(&self, id: usize) -> bool {
        let connection = self.connections.get(id).copied().flatten();
        connection.is_some_and(|connection| self.table.wants_close(connection))
    }

    pub(super) fn handle_bytes(
        &mut self,
        id: usize,
        bytes: &[u8],
        scope: &mut RequestScope<'_, '_>,
        ouch: &mut OuchGateway,
    ) -> usize {
        self.now = scope.now;
        let Some(connection) = self.connections.get(id).copied().flatten() else {
            return bytes.len();
        };
        let mut taken = 0;
        loop {
            let n = self.table.handle_bytes(scope.now, connection, &bytes[taken..]);
            taken += n;
            self.table.settle(scope.now);
            while let Some(newcomer) = self.table.poll_newcomer() {
                let store = store_of(&newcomer.config);
                if let Some(session) = self.table.admit(scope.now, &newcomer, store, None) {
                    let port = self.template.newcomer(session.0, newcomer.config.target);
                    match self.ports.get_mut(session.0) {
                        Some(old) => *old = Port::of(port),
                        None => self.ports.push(Port::of(port)),
                    }
                }
            }
            let progress = match self.table.session_of(connection) {
                Some(session) => self.drain_events(session, scope, ouch),
                None => false,
            };
            if taken == bytes.len() || (n == 0 && !progress) {
                return taken;
            }
        }
    }

    pub(super) fn handle_timeout(&mut self, scope: &mut RequestScope<'_, '_>, ouch: &mut OuchGateway) {
        if self.poll_timeout().is_none_or(|due| due > scope.now) {
            return;
        }
        self.now = scope.now;
        self.table.handle_timeout(scope.now);
        self.table.settle(scope.now);
        for session in 0..self.ports.len() {
            self.drain_events(SessionId(session), scope, ouch);
        }
    }

    pub(super) fn poll_timeout(&self) -> Option<Nanos> {
        self.table.poll_timeout()
    }

    pub(super) fn poll_transmit<'b>(&mut self, id: usize, buf: &'b mut [u8]) -> Option<&'b [u8]> {
        let connection = self.connections.get(id).copied().flatten()?;
        if let Some(session) = self.table.session_of(connection)
            && self.table.session(session).backlog() == 0
        {
            self.flush(session.0);
        }
        self.table.poll_transmit(connection, buf)
    }

    pub(super) fn logout(&mut self, now: Nanos) {
        self.now = now;
        for session in 0..self.ports.len() {
            self.flush(session);
            self.table
                .session_mut(SessionId(session))
                .logout(now, "end of session");
        }
    }

    /// Tells a client about an order of its own.
    pub(super) fn say(&mut self, session: usize, saying: &Saying) {
        let is_silent = matches!(saying.told, OrderNotice::Refreshed { .. });
        self.now = self.now.max(saying.at);
        let out = match (saying.told, saying.request) {
            (OrderNotice::CancelTooLate, Some((request, orig))) => Out::CancelReject {
                request,
                orig,
                order: Some(saying.order),
                is_replace: false,
                reason: cxl_rej_reason::TOO_LATE,
                text: "",
            },
            _ => Out::Report(*saying),
        };
        if !is_silent {
            self.put(session, out);
        }
    }

    /// Tells a client about its quotes.
    pub(super) fn say_of_quotes(&mut self, session: usize, at: Nanos, out: QuoteOut) {
        self.now = self.now.max(at);
        self.put(session, Out::Quote(out));
    }

    fn put(&mut self, session: usize, out: Out) {
        if self.ports[session].waiting.len() >= self.waiting_max {
            self.reports_lost += 1;
            return;
        }
        self.ports[session].waiting.push_back(out);
        self.flush(session);
    }

    /// Sends what waits, as far as the session takes it.
    fn flush(&mut self, session: usize) {
        let id = SessionId(session);
        let port = &mut self.ports[session];
        while let Some(out) = port.waiting.front() {
            let session = self.table.session_mut(id);
            let (version, stamp) = (port.port.version, &mut port.stamp);
            let sent = session.send(self.now, out.msg_type(version), Again::Resend, |e, _| {
                out.encode(e, version, stamp)
            });
            match sent {
                Ok(_) => {}
                Err(SendError::NotEncodable | SendError::TooLong | SendError::StoreFailed) => {
                    self.reports_lost += 1
                }
                Err(SendError::NotLoggedOn | SendError::Backlog | SendError::Throttled { .. }) => return,
            }
            port.waiting.pop_front();
        }
    }

    fn drain_events(
        &mut self,
        id: SessionId,
        scope: &mut RequestScope<'_, '_>,
        ouch: &mut OuchGateway,
    ) -> bool {
        let mut any = false;
        while let Some(event) = self.table.poll_event(id) {
            any = true;
            match event {
                Event::Message { .. } => self.on_message(id, scope, ouch),
                Event::LoggedOn { heartbeat_s, .. } => {
                    self.events
                        .push_back((id.0, ClientEvent::LoggedOn { heartbeat_s }));
                    self.flush(id.0);
                }
                // Its connection is closed when `wants_close` says so.
                Event::Disconnect { reason, text } => {
                    self.events.push_back((id.0, ClientEvent::Ended { reason, text }));
                }
                Event::NotKept { first, last, count } => {
                    let gone = ClientEvent::NotKept { first, last, count };
                    self.events.push_back((id.0, gone));
                }
                // Sessions here ask nobody about logons and cancel nothing of themselves.
                Event::LogonRequested { .. }
                | Event::Admin { .. }
                | Event::CancelOrders { .. }
                | Event::Gap { .. }
                | Event::Rejected { .. } => {}
            }
        }
        any
    }

    fn on_message(&mut self, id: SessionId, scope: &mut RequestScope<'_, '_>, ouch: &mut OuchGateway) {
        let session = self.table.session_mut(id);
        let Some(message) = session.message() else { return };
        let request = match read(&message, self.ports[id.0].port.version) {
            Ok(request) => request,
            Err(Refused::Field(fault)) => return session.reject(scope.now, fault),
            Err(Refused::Business(reason, text)) => return session.refuse_because(scope.now, reason, text),
        };
        let route = Route::Fix(id.0);
        let port = self.ports[id.0].port;
        let answer = match request {
            Request::New(new) => {
                enter(&new, route, &port, scope);
                None
            }
            Request::Cancel { id, orig } => cancel(route, id, orig, scope),
            Request::Replace {
                id,
                orig,
                qty,
                price,
                stop,
                ord_type,
            } => replace(route, (id, orig), qty, (price, stop), ord_type, scope),
            Request::Status { id } => status(route, id, scope),
            Request::MassCancel {
                id,
                kind,
                symbol,
                side,
            } => {
                let firm = port.cancels_firm.then_some(port.firm);
                Some(mass_cancel((route, firm), id, kind, (symbol, side), scope))
            }
            Request::SecurityStatus { id, symbol } => {
                let status = match scope.books.instrument(&symbol) {
                    // SecurityTradingStatus: 17 ready to trade, 18 not available, 20 unknown or invalid.
                    Some(_) if scope.context.is_open => 17,
                    Some(_) => 18,
                    None => 20,
                };
                Some(Out::SecurityStatus { id, symbol, status })
            }
            Request::SessionStatus { id } => {
                // TradSesStatus: 2 open, 3 closed.
                let status = if scope.context.is_open { 2 } else { 3 };
                Some(Out::SessionStatus { id, status })
            }
            Request::MassQuote(asked) => {
                let ack = quotes::mass_quote(id.0, port.firm, &asked, scope);
                ack.map(Out::Quote)
            }
            Request::QuoteCancel(asked) => {
                quotes::cancel(id.0, port.version, &asked, scope);
                None
            }
            Request::QuoteStatus(asked) => Some(Out::Quote(quotes::status(port.firm, &asked, scope))),
            Request::Ignored => None,
        };
        // As CME has it, the answer to a mass quote comes before what its quotes lead to.
        let answer = match answer {
            Some(out @ Out::Quote(quotes::QuoteOut::Ack { .. })) => {
                self.put(id.0, out);
                None
            }
            later => later,
        };
        deliver(scope.said, self, ouch);
        if let Some(out) = answer {
            self.put(id.0, out);
        }
    }
}

impl Port {
    fn of(port: FixPort) -> Port {
        Port {
            stamp: Stamp::new(port.version.precision()),
            port,
            waiting: VecDeque::new(),
        }
    }
}

/// CancelOnDisconnect, as Deribit's FIX has it: a Logon that has the field is answered with what becomes of
/// the session's orders.
const CANCELS_TAG: u32 = 9001;

impl FixPort {
    /// The port of a session that nobody configured, by its place.
    fn newcomer(self, at: usize, comp_id: CompId) -> FixPort {
        FixPort {
            comp_id,
            // Nobody else's.
            firm: Firm((1 << 16) + at as u32),
            ..self
        }
    }
}

fn session_of(comp_id: CompId, port: &FixPort) -> SessionConfig {
    let config = SessionConfig::new(Role::Acceptor, comp_id, port.comp_id);
    SessionConfig {
        reset_on_logon: port.reset_on_logon,
        cancels_tag: CANCELS_TAG,
        cancels_orders: port.cancel_on_disconnect,
        heartbeat_s_min: u32::from(port.heartbeat_s_max.is_some()),
        heartbeat_s_max: port.heartbeat_s_max.unwrap_or(config.heartbeat_s_max),
        // A mass quote of as many entries as are taken.
        receive_bytes: 64 << 10,
        fields_max: 8 * quotes::ENTRIES_MAX,
        precision: match port.version {
            Version::Fix40 | Version::Fix41 => Precision::Seconds,
            _ => config.precision,
        },
        ..config.of_version(port.version)
    }
}

fn store_of(config: &SessionConfig) -> MemoryStore {
    MemoryStore::new(config.store_messages, config.store_bytes)
}

fn enter(new: &New, route: Route, port: &FixPort, scope: &mut RequestScope<'_, '_>) {
    let instrument = scope.books.instrument(&new.symbol);
    let instrument = instrument.unwrap_or(InstrumentId::WHOLE_FEED);
    let order = ClientOrder {
        route,
        firm: port.firm,
        cl_ord_id: new.id,
        venue_id: OrderId(0),
        order_id: OrderId(0),
        instrument,
        symbol: new.symbol,
        side: new.side,
        order_type: new.order_type,
        price: new.price.unwrap_or(Price::ZERO),
        stop: new.stop,
        display: new.display,
        qty: new.qty,
        time_in_force: new.time_in_force,
        filled: Qty::ZERO,
        broken: Qty::ZERO,
        cost: 0,
        outcome: Outcome::Open,
        origin: Origin {
            cause: new.cause,
            received: scope.now,
        },
        own: u32::from(new.ord_type),
    };
    let request = NewOrder {
        order_type: new.order_type,
        time_in_force: new.time_in_force,
        stop: new.stop,
        display: new.display,
        post_only: new.post_only,
        self_trade: new.self_trade.unwrap_or(port.self_trade),
        owner: Owner::HOUSE,
        ..NewOrder::limit(instrument, new.side, order.price, new.qty)
    };
    scope.enter(order, request, true);
}

/// The row of the order that a request is about; the request's own identifier is taken.
fn target(route: Route, request: &Id, orig: &Id, scope: &mut RequestScope<'_, '_>) -> Result<usize, u16> {
    let row = scope
        .books
        .find(route, orig)
        .ok_or(cxl_rej_reason::UNKNOWN_ORDER)?;
    if scope.books.find(route, request).is_some() {
        return Err(cxl_rej_reason::DUPLICATE_CL_ORD_ID);
    }
    if scope.books.ledger[row].outcome != Outcome::Open {
        return Err(cxl_rej_reason::TOO_LATE);
    }
    match scope.books.name(route, request, row) {
        true => Ok(row),
        false => Err(cxl_rej_reason::EXCHANGE_OPTION),
    }
}

fn rejected(
    route: Route,
    request: Id,
    orig: Id,
    is_replace: bool,
    reason: u16,
    text: &'static str,
    scope: &RequestScope<'_, '_>,
) -> Option<Out> {
    let row = scope.books.find(route, &orig);
    Some(Out::CancelReject {
        request,
        orig,
        order: row.map(|row| scope.books.ledger[row]),
        is_replace,
        reason,
        text,
    })
}

/// Text of what cannot be done to an order now.
const NO_CANCEL: &str = "its auction is about to take place";

fn cancel(route: Route, id: Id, orig: Id, scope: &mut RequestScope<'_, '_>) -> Option<Out> {
    let row = match target(route, &id, &orig, scope) {
        Ok(row) => row,
        Err(reason) => return rejected(route, id, orig, false, reason, "", scope),
    };
    let text = match scope.hold(&scope.books.ledger[row]) {
        Hold::Free if scope.cancel(row, id, orig).is_ok() => return None,
        Hold::Free => "",
        Hold::Waits if scope.is_cancel_waiting(row) => {
            let reason = cxl_rej_reason::ALREADY_PENDING;
            return rejected(route, id, orig, false, reason, "", scope);
        }
        Hold::Waits => {
            scope.cancel_later(row, id, orig);
            return None;
        }
        Hold::Stays => NO_CANCEL,
    };
    rejected(route, id, orig, false, cxl_rej_reason::TOO_LATE, text, scope)
}

/// Whether an order is a stop order that was triggered, and OrdType (40) says what it is since.
fn is_what_it_became(order: &ClientOrder, ord_type: u8, scope: &RequestScope<'_, '_>) -> bool {
    ord_type == order.order_type as u8 + b'0' && order.stop.is_some() && !scope.is_waiting_for_trigger(order)
}

fn replace(
    route: Route,
    (id, orig): (Id, Id),
    qty: Qty,
    (price, stop): (Option<Price>, Option<Price>),
    ord_type: u8,
    scope: &mut RequestScope<'_, '_>,
) -> Option<Out> {
    let row = match target(route, &id, &orig, scope) {
        Ok(row) => row,
        Err(reason) => return rejected(route, id, orig, true, reason, "", scope),
    };
    let before = scope.books.ledger[row];
    let why = if !scope.context.is_open {
        "closed"
    } else if scope.hold(&before) != Hold::Free {
        NO_CANCEL
    } else if u32::from(ord_type) != before.own && !is_what_it_became(&before, ord_type, scope) {
        "the order's type cannot be changed"
    } else if before.stop.is_none() && stop.is_some() {
        "StopPx (99) is for stop orders"
    } else if stop.is_some() && stop != before.stop && !scope.is_waiting_for_trigger(&before) {
        "the order was triggered already"
    } else {
        let changed = ClientOrder {
            cl_ord_id: id,
            qty,
            price: price.unwrap_or(before.price),
            stop: stop.or(before.stop),
            ..before
        };
        match scope.replace(row, changed, orig) {
            Ok(()) => return None,
            Err(reject) => wording(reject).1,
        }
    };
    let reason = cxl_rej_reason::EXCHANGE_OPTION;
    rejected(route, id, orig, true, reason, why, scope)
}

fn status(route: Route, id: Id, scope: &mut RequestScope<'_, '_>) -> Option<Out> {
    match scope.books.find(route, &id) {
        Some(row) => {
            let order = scope.books.ledger[row];
            let told = OrderNotice::Status {
                is_triggered: order.stop.is_some() && !scope.is_waiting_for_trigger(&order),
            };
            Some(Out::Report(scope.books.saying(&order, told, scope.now)))
        }
        None => {
            scope.books.last_exec_id += 1;
            Some(Out::UnknownOrder {
                id,
                exec_id: scope.books.last_exec_id,
                at: scope.now,
            })
        }
    }
}

/// MassCancelRequestType: 1 of an instrument, 7 all, of this session, or of its whole firm, whose quotes go
/// too. MassCancelRejectReason: 0 not supported, 1 unknown instrument.
fn mass_cancel(
    (route, firm): (Route, Option<Firm>),
    id: Id,
    kind: u8,
    (symbol, side): (Option<Symbol>, Option<Side>),
    scope: &mut RequestScope<'_, '_>,
) -> Out {
    let instrument = symbol.and_then(|symbol| scope.books.instrument(&symbol));
    let is_whose = |order: &ClientOrder| order.route == route || firm == Some(order.firm);
    let of_side = |order: &ClientOrder| is_whose(order) && side.is_none_or(|side| order.side == side);
    let mut quotes = 0;
    if let (b'7', Some(firm), None) = (kind, firm, side) {
        let gone = scope.withdraw(|quote| quote.firm == firm);
        quotes = gone.len() as u32;
        scope.tell_removed(gone, b'C');
    }
    let result = match (kind, instrument) {
        (b'1', Some(instrument)) => Ok(scope.sweep_for_client(|o| of_side(o) && o.instrument == instrument)),
        (b'1', None) => Err(1),
        (b'7', _) => Ok(quotes + scope.sweep_for_client(of_side)),
        _ => Err(0),
    };
    scope.books.last_exec_id += 1;
    Out::MassCancelled {
        id,
        kind,
        result,
        symbol,
        side,
        report_id: scope.books.last_exec_id,
    }
}

/// Sessions, and the reports that wait for their clients. Who came and went is for a terminal.
impl Persist for FixGateway {
    fn save(&self, out: &mut Bytes) {
        self.table.save(out);
        self.ports.iter().for_each(|port| port.waiting.save(out));
        let connections: Vec<_> = self.connections.iter().map(|id| id.map(|id| id.0)).collect();
        connections.save(out);
        (self.reports_lost, self.now).save(out);
    }

    fn load(&mut self, from: &mut StateReader<'_>) -> Result<(), Damaged> {
        self.table.load(from, store_of)?;
        for at in self.ports.len()..self.table.sessions() {
            let comp_id = self.table.session(SessionId(at)).config().target;
            self.ports.push(Port::of(self.template.newcomer(at, comp_id)));
        }
        self.ports
            .iter_mut()
            .try_for_each(|port| port.waiting.load(from))?;
        let connections = Vec::<Option<usize>>::read(from)?;
        if connections.len() != self.connections.len() {
            return Err(Damaged);
        }
        self.connections = connections.into_iter().map(|id| id.map(ConnectionId)).collect();
        (self.reports_lost, self.now) = PersistValue::read(from)?;
        Ok(())
    }
}
