//! FIX order entry: one acceptor for every version from 4.0 to 5.0 SP2.
//!
//! Sessions take any message ([`tickwire_fix::SessionConfig::any_message`]); what is ours is read field by
//! field, because the fields of an order differ little from version to version, and answered in the version's
//! own words ([`report`]). Supported: D, F, G, H, q (since 4.3), e and g, and i, Z and a of [`super::quotes`]
//! (since 4.2). A message that lacks a field it must have is rejected (35=3), one whose values do not go
//! together by a BusinessMessageReject (35=j; up to 4.1 by 35=3), everything else unknown likewise.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use tickwire_fix::{
    Acceptor, CompId, ConnectionId, Encoder, Event, Fault, Id, MemoryStore, Message, Precision, Role,
    SendError, SessionConfig, SessionId, Stamp, Status, Store, Version, business_reject_reason,
    cxl_rej_reason, ord_rej_reason, tag,
};
use tickwire_market::{
    Cause, InstrumentId, Nanos, OrderId, OrderType, Price, Qty, SeqNo, Side, Symbol, TimeInForce, Venue,
};
use tickwire_persist::{Bytes, Damaged, Persist, PersistValue, StateReader, persist};

use super::ouch::OuchGateway;
use super::quotes::{self, MassQuoting, QuoteCanceling, QuoteOut, StatusAsking};
use super::{
    ClientEvent, ClientOrder, DeskConfig, FixPort, Hands, Hold, OrderNotice, Outcome, Refusal, Route, Saying,
    Why, deliver,
};
use crate::order::{BreakReason, CancelReason, Firm, NewOrder, Owner, Reject, SelfTrade, StateHash};

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

/// NewOrderSingle.
struct New {
    id: Id,
    symbol: Symbol,
    side: Side,
    qty: Qty,
    ord_type: u8,
    order_type: OrderType,
    price: Option<Price>,
    stop: Option<Price>,
    time_in_force: TimeInForce,
    display: Qty,
    post_only: bool,
    self_trade: Option<SelfTrade>,
    cause: Option<Cause>,
}

/// A session, and what waits for it.
struct Port {
    port: FixPort,
    waiting: VecDeque<Out>,
    stamp: Stamp,
}

/// Something to be sent.
enum Out {
    Report(Saying),
    CancelReject {
        request: Id,
        orig: Id,
        order: Option<ClientOrder>,
        is_replace: bool,
        reason: u16,
        text: &'static str,
    },
    MassCancelled {
        id: Id,
        kind: u8,
        /// How many, or why not.
        result: Result<u32, u16>,
        symbol: Option<Symbol>,
        side: Option<Side>,
        report_id: u64,
    },
    UnknownOrder {
        id: Id,
        exec_id: u64,
        at: Nanos,
    },
    SecurityStatus {
        id: Id,
        symbol: Symbol,
        status: u64,
    },
    SessionStatus {
        id: Id,
        status: u64,
    },
    Quote(QuoteOut),
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

    pub(super) fn new(config: &DeskConfig) -> FixGateway {
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
        hands: &mut Hands<'_, '_>,
        ouch: &mut OuchGateway,
    ) -> usize {
        self.now = hands.now;
        let Some(connection) = self.connections.get(id).copied().flatten() else {
            return bytes.len();
        };
        let mut taken = 0;
        loop {
            let n = self.table.handle_bytes(hands.now, connection, &bytes[taken..]);
            taken += n;
            self.table.settle(hands.now);
            while let Some(newcomer) = self.table.poll_newcomer() {
                let store = store_of(&newcomer.config);
                if let Some(session) = self.table.admit(hands.now, &newcomer, store, None) {
                    let port = self.template.newcomer(session.0, newcomer.config.target);
                    match self.ports.get_mut(session.0) {
                        Some(old) => *old = Port::of(port),
                        None => self.ports.push(Port::of(port)),
                    }
                }
            }
            let progress = match self.table.session_of(connection) {
                Some(session) => self.drain_events(session, hands, ouch),
                None => false,
            };
            if taken == bytes.len() || (n == 0 && !progress) {
                return taken;
            }
        }
    }

    pub(super) fn handle_timeout(&mut self, hands: &mut Hands<'_, '_>, ouch: &mut OuchGateway) {
        if self.poll_timeout().is_none_or(|due| due > hands.now) {
            return;
        }
        self.now = hands.now;
        self.table.handle_timeout(hands.now);
        self.table.settle(hands.now);
        for session in 0..self.ports.len() {
            self.drain_events(SessionId(session), hands, ouch);
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
        let version = self.ports[session].port.version;
        let is_silent = match saying.told {
            OrderNotice::Refreshed { .. } => true,
            // The word came with 5.0.
            OrderNotice::Triggered => !version.is_fixt(),
            _ => false,
        };
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
            let sent = session.send_any(self.now, out.msg_type(version), |e| out.encode(e, version, stamp));
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

    fn drain_events(&mut self, id: SessionId, hands: &mut Hands<'_, '_>, ouch: &mut OuchGateway) -> bool {
        let mut any = false;
        while let Some(event) = self.table.poll_event(id) {
            any = true;
            match event {
                Event::Message { .. } => self.on_message(id, hands, ouch),
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
                | Event::App { .. }
                | Event::Gap { .. }
                | Event::Rejected { .. } => {}
            }
        }
        any
    }

    fn on_message(&mut self, id: SessionId, hands: &mut Hands<'_, '_>, ouch: &mut OuchGateway) {
        let session = self.table.session_mut(id);
        let Some(message) = session.message() else { return };
        let request = match read(&message, self.ports[id.0].port.version) {
            Ok(request) => request,
            Err(Refused::Field(fault)) => return session.reject(hands.now, fault),
            Err(Refused::Business(reason, text)) => return session.refuse_because(hands.now, reason, text),
        };
        let route = Route::Fix(id.0);
        let port = self.ports[id.0].port;
        let answer = match request {
            Request::New(new) => {
                enter(&new, route, &port, hands);
                None
            }
            Request::Cancel { id, orig } => cancel(route, id, orig, hands),
            Request::Replace {
                id,
                orig,
                qty,
                price,
                stop,
                ord_type,
            } => replace(route, (id, orig), qty, (price, stop), ord_type, hands),
            Request::Status { id } => status(route, id, hands),
            Request::MassCancel {
                id,
                kind,
                symbol,
                side,
            } => {
                let firm = port.cancels_firm.then_some(port.firm);
                Some(mass_cancel((route, firm), id, kind, (symbol, side), hands))
            }
            Request::SecurityStatus { id, symbol } => {
                let status = match hands.books.instrument(&symbol) {
                    // SecurityTradingStatus: 17 ready to trade, 18 not available, 20 unknown or invalid.
                    Some(_) if hands.floor.is_open => 17,
                    Some(_) => 18,
                    None => 20,
                };
                Some(Out::SecurityStatus { id, symbol, status })
            }
            Request::SessionStatus { id } => {
                // TradSesStatus: 2 open, 3 closed.
                let status = if hands.floor.is_open { 2 } else { 3 };
                Some(Out::SessionStatus { id, status })
            }
            Request::MassQuote(asked) => {
                let ack = quotes::mass_quote(id.0, port.firm, &asked, hands);
                ack.map(Out::Quote)
            }
            Request::QuoteCancel(asked) => {
                quotes::cancel(id.0, port.version, &asked, hands);
                None
            }
            Request::QuoteStatus(asked) => Some(Out::Quote(quotes::status(port.firm, &asked, hands))),
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
        deliver(hands.said, self, ouch);
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
        any_message: true,
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

fn enter(new: &New, route: Route, port: &FixPort, hands: &mut Hands<'_, '_>) {
    let instrument = hands.books.instrument(&new.symbol);
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
        cause: new.cause,
        received: hands.now,
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
    hands.enter(order, request, true);
}

/// The row of the order that a request is about; the request's own identifier is taken.
fn target(route: Route, request: &Id, orig: &Id, hands: &mut Hands<'_, '_>) -> Result<usize, u16> {
    let row = hands
        .books
        .find(route, orig)
        .ok_or(cxl_rej_reason::UNKNOWN_ORDER)?;
    if hands.books.find(route, request).is_some() {
        return Err(cxl_rej_reason::DUPLICATE_CL_ORD_ID);
    }
    if hands.books.ledger[row].outcome != Outcome::Open {
        return Err(cxl_rej_reason::TOO_LATE);
    }
    match hands.books.name(route, request, row) {
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
    hands: &Hands<'_, '_>,
) -> Option<Out> {
    let row = hands.books.find(route, &orig);
    Some(Out::CancelReject {
        request,
        orig,
        order: row.map(|row| hands.books.ledger[row]),
        is_replace,
        reason,
        text,
    })
}

/// Text of what cannot be done to an order now.
const NO_CANCEL: &str = "its auction is about to take place";

fn cancel(route: Route, id: Id, orig: Id, hands: &mut Hands<'_, '_>) -> Option<Out> {
    let row = match target(route, &id, &orig, hands) {
        Ok(row) => row,
        Err(reason) => return rejected(route, id, orig, false, reason, "", hands),
    };
    let text = match hands.hold(&hands.books.ledger[row]) {
        Hold::Free if hands.cancel(row, id, orig).is_ok() => return None,
        Hold::Free => "",
        Hold::Waits if hands.is_cancel_waiting(row) => {
            let reason = cxl_rej_reason::ALREADY_PENDING;
            return rejected(route, id, orig, false, reason, "", hands);
        }
        Hold::Waits => {
            hands.cancel_later(row, id, orig);
            return None;
        }
        Hold::Stays => NO_CANCEL,
    };
    rejected(route, id, orig, false, cxl_rej_reason::TOO_LATE, text, hands)
}

fn replace(
    route: Route,
    (id, orig): (Id, Id),
    qty: Qty,
    (price, stop): (Option<Price>, Option<Price>),
    ord_type: u8,
    hands: &mut Hands<'_, '_>,
) -> Option<Out> {
    let row = match target(route, &id, &orig, hands) {
        Ok(row) => row,
        Err(reason) => return rejected(route, id, orig, true, reason, "", hands),
    };
    let before = hands.books.ledger[row];
    let why = if !hands.floor.is_open {
        "closed"
    } else if hands.hold(&before) != Hold::Free {
        NO_CANCEL
    } else if u32::from(ord_type) != before.own {
        "the order's type cannot be changed"
    } else if before.stop.is_none() && stop.is_some() {
        "StopPx (99) is for stop orders"
    } else if stop.is_some() && stop != before.stop && !hands.is_waiting_for_trigger(&before) {
        "the order was triggered already"
    } else {
        let changed = ClientOrder {
            cl_ord_id: id,
            qty,
            price: price.unwrap_or(before.price),
            stop: stop.or(before.stop),
            ..before
        };
        match hands.replace(row, changed, orig) {
            Ok(()) => return None,
            Err(reject) => wording(reject).1,
        }
    };
    let reason = cxl_rej_reason::EXCHANGE_OPTION;
    rejected(route, id, orig, true, reason, why, hands)
}

fn status(route: Route, id: Id, hands: &mut Hands<'_, '_>) -> Option<Out> {
    match hands.books.find(route, &id) {
        Some(row) => {
            let order = hands.books.ledger[row];
            Some(Out::Report(hands.books.saying(
                &order,
                OrderNotice::Status,
                hands.now,
            )))
        }
        None => {
            hands.books.last_exec_id += 1;
            Some(Out::UnknownOrder {
                id,
                exec_id: hands.books.last_exec_id,
                at: hands.now,
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
    hands: &mut Hands<'_, '_>,
) -> Out {
    let instrument = symbol.and_then(|symbol| hands.books.instrument(&symbol));
    let is_whose = |order: &ClientOrder| order.route == route || firm == Some(order.firm);
    let of_side = |order: &ClientOrder| is_whose(order) && side.is_none_or(|side| order.side == side);
    let mut quotes = 0;
    if let (b'7', Some(firm), None) = (kind, firm, side) {
        let gone = hands.withdraw(|quote| quote.firm == firm);
        quotes = gone.len() as u32;
        hands.tell_removed(gone, b'C');
    }
    let result = match (kind, instrument) {
        (b'1', Some(instrument)) => Ok(hands.sweep_for_client(|o| of_side(o) && o.instrument == instrument)),
        (b'1', None) => Err(1),
        (b'7', _) => Ok(quotes + hands.sweep_for_client(of_side)),
        _ => Err(0),
    };
    hands.books.last_exec_id += 1;
    Out::MassCancelled {
        id,
        kind,
        result,
        symbol,
        side,
        report_id: hands.books.last_exec_id,
    }
}

/// Reads a client's message.
fn read(m: &Message<'_>, version: Version) -> Result<Request, Refused> {
    const UNSUPPORTED: Refused = Refused::Business(
        business_reject_reason::UNSUPPORTED_MESSAGE_TYPE,
        "not for a venue",
    );
    match m.msg_type() {
        b"D" => read_new(m).map(Request::New),
        b"F" => Ok(Request::Cancel {
            id: id_of(m, tag::CL_ORD_ID)?,
            orig: id_of(m, tag::ORIG_CL_ORD_ID)?,
        }),
        b"G" => {
            let ord_type = required(m, tag::ORD_TYPE, |m, f| m.char(f))?;
            Ok(Request::Replace {
                id: id_of(m, tag::CL_ORD_ID)?,
                orig: id_of(m, tag::ORIG_CL_ORD_ID)?,
                qty: required(m, tag::ORDER_QTY, |m, f| m.qty(f))?,
                price: optional(m, tag::PRICE, |m, f| m.price(f))?,
                stop: optional(m, tag::STOP_PX, |m, f| m.price(f))?,
                ord_type,
            })
        }
        b"H" => Ok(Request::Status {
            id: id_of(m, tag::CL_ORD_ID)?,
        }),
        b"q" if version >= Version::Fix43 => Ok(Request::MassCancel {
            id: id_of(m, tag::CL_ORD_ID)?,
            kind: required(m, tag::MASS_CANCEL_REQUEST_TYPE, |m, f| m.char(f))?,
            symbol: optional(m, tag::SYMBOL, symbol)?,
            side: optional(m, tag::SIDE, side)?,
        }),
        b"e" if version >= Version::Fix42 => Ok(Request::SecurityStatus {
            id: id_of(m, own::SECURITY_STATUS_REQ_ID)?,
            symbol: required(m, tag::SYMBOL, symbol)?,
        }),
        b"g" if version >= Version::Fix42 => Ok(Request::SessionStatus {
            id: id_of(m, own::TRAD_SES_REQ_ID)?,
        }),
        b"i" if version >= Version::Fix42 => quotes::read_mass_quote(m).map(Request::MassQuote),
        b"Z" if version >= Version::Fix42 => quotes::read_cancel(m).map(Request::QuoteCancel),
        b"a" if version >= Version::Fix42 => quotes::read_status(m).map(Request::QuoteStatus),
        b"j" => Ok(Request::Ignored),
        _ => Err(UNSUPPORTED),
    }
}

fn read_new(m: &Message<'_>) -> Result<New, Refused> {
    let conditional = |text| Refused::Business(business_reject_reason::CONDITIONAL_FIELD_MISSING, text);
    let ord_type = required(m, tag::ORD_TYPE, |m, f| m.char(f))?;
    let mut time_in_force = optional(m, tag::TIME_IN_FORCE, time_in_force)?.unwrap_or_default();
    let (order_type, is_stop) = match ord_type {
        b'1' => (OrderType::Market, false),
        b'2' => (OrderType::Limit, false),
        b'3' => (OrderType::Market, true),
        b'4' => (OrderType::Limit, true),
        // Market and limit on close, up to 4.2.
        b'5' => {
            time_in_force = TimeInForce::AtTheClose;
            (OrderType::Market, false)
        }
        b'B' => {
            time_in_force = TimeInForce::AtTheClose;
            (OrderType::Limit, false)
        }
        _ => return Err(Fault::value(tag::ORD_TYPE).into()),
    };
    let price = match order_type {
        OrderType::Limit => {
            let price = optional(m, tag::PRICE, |m, f| m.price(f))?;
            Some(price.ok_or(conditional("Price (44) of a limit order is missing"))?)
        }
        OrderType::Market => None,
    };
    let stop = match is_stop {
        true => {
            let stop = optional(m, tag::STOP_PX, |m, f| m.price(f))?;
            Some(stop.ok_or(conditional("StopPx (99) of a stop order is missing"))?)
        }
        false => None,
    };
    let shown = optional(m, own::DISPLAY_QTY, |m, f| m.qty(f))?;
    let shown = match shown {
        Some(qty) => Some(qty),
        None => optional(m, own::MAX_FLOOR, |m, f| m.qty(f))?,
    };
    let qty = required(m, tag::ORDER_QTY, |m, f| m.qty(f))?;
    let instructions = optional(m, own::EXEC_INST, |m, f| Ok(m.value(f)))?.unwrap_or_default();
    let self_trade = optional(m, own::SELF_MATCH_PREVENTION, |m, f| match m.unsigned(f)? {
        0 => Ok(SelfTrade::Allow),
        1 => Ok(SelfTrade::CancelNewest),
        2 => Ok(SelfTrade::CancelOldest),
        3 => Ok(SelfTrade::CancelBoth),
        4 => Ok(SelfTrade::Decrement),
        _ => Err(Fault::value(f.tag)),
    })?;
    Ok(New {
        id: id_of(m, tag::CL_ORD_ID)?,
        symbol: required(m, tag::SYMBOL, symbol)?,
        side: required(m, tag::SIDE, side)?,
        qty,
        ord_type,
        order_type,
        price,
        stop,
        time_in_force,
        // All of it shown is no iceberg.
        display: shown.filter(|shown| *shown < qty).unwrap_or(Qty::ZERO),
        post_only: instructions.split(|b| *b == b' ').any(|one| one == b"6"),
        self_trade,
        cause: cause(m),
    })
}

pub(super) fn required<'m, T>(
    m: &Message<'m>,
    tag: u32,
    read: impl FnOnce(&Message<'m>, tickwire_fix::Field) -> Result<T, Fault>,
) -> Result<T, Refused> {
    let field = m.find(tag).ok_or(Fault::missing(tag))?;
    Ok(read(m, field)?)
}

pub(super) fn optional<'m, T>(
    m: &Message<'m>,
    tag: u32,
    read: impl FnOnce(&Message<'m>, tickwire_fix::Field) -> Result<T, Fault>,
) -> Result<Option<T>, Refused> {
    match m.find(tag) {
        Some(field) => Ok(Some(read(m, field)?)),
        None => Ok(None),
    }
}

pub(super) fn id_of(m: &Message<'_>, tag: u32) -> Result<Id, Refused> {
    required(m, tag, |m, f| m.text(f))
}

pub(super) fn symbol(m: &Message<'_>, f: tickwire_fix::Field) -> Result<Symbol, Fault> {
    Symbol::new(m.value(f)).ok_or(Fault::value(f.tag))
}

/// 5 and 6, selling short, are sales here.
fn side(m: &Message<'_>, f: tickwire_fix::Field) -> Result<Side, Fault> {
    match m.char(f)? {
        b'1' => Ok(Side::Bid),
        b'2' | b'5' | b'6' => Ok(Side::Ask),
        _ => Err(Fault::value(f.tag)),
    }
}

fn time_in_force(m: &Message<'_>, f: tickwire_fix::Field) -> Result<TimeInForce, Fault> {
    TimeInForce::from_char(m.char(f)?).ok_or(Fault::value(f.tag))
}

/// What caused an order or a quote, when all three fields are there and right.
pub(super) fn cause(m: &Message<'_>) -> Option<Cause> {
    let number = |tag| m.find(tag).and_then(|f| m.unsigned(f).ok());
    Some(Cause {
        venue: Venue::from_u8(u8::try_from(number(tag::CAUSE_VENUE)?).ok()?)?,
        seq: SeqNo(number(tag::CAUSE_SEQ)?),
        recv_ts: Nanos(number(tag::CAUSE_RECV_TS)?),
    })
}

/// OrdRejReason (103) and text.
fn wording(reject: Reject) -> (u16, &'static str) {
    match reject {
        Reject::UnknownInstrument => (ord_rej_reason::UNKNOWN_SYMBOL, "unknown symbol"),
        Reject::NotTrading => (ord_rej_reason::EXCHANGE_CLOSED, "instrument is not trading"),
        Reject::Tick => (ord_rej_reason::OTHER, "price is not a multiple of the tick"),
        Reject::PriceRange => (ord_rej_reason::EXCEEDS_LIMIT, "price out of range"),
        Reject::Quantity => (ord_rej_reason::INCORRECT_QUANTITY, "quantity is zero"),
        Reject::Lot => (
            ord_rej_reason::INCORRECT_QUANTITY,
            "quantity is not a multiple of the lot",
        ),
        Reject::Display => (
            ord_rej_reason::INCORRECT_QUANTITY,
            "displayed quantity must be below the quantity",
        ),
        Reject::StopPrice => (ord_rej_reason::EXCEEDS_LIMIT, "stop price out of range"),
        Reject::Instructions => (
            ord_rej_reason::UNSUPPORTED_CHARACTERISTIC,
            "instructions do not go together",
        ),
        Reject::PostOnly => (ord_rej_reason::EXCHANGE_OPTION, "post-only order would trade"),
        Reject::PriceBand => (ord_rej_reason::EXCEEDS_LIMIT, "beyond the price band"),
        Reject::Quote => (ord_rej_reason::OTHER, "not allowed for quotes"),
        Reject::Protected => (ord_rej_reason::EXCHANGE_OPTION, "protection triggered"),
        Reject::NoFirm => (ord_rej_reason::OTHER, "no firm"),
        Reject::UnknownOrder => (ord_rej_reason::OTHER, "unknown order"),
        Reject::UnknownTrade => (ord_rej_reason::OTHER, "unknown trade"),
        Reject::BrokenTrade => (ord_rej_reason::OTHER, "the trade is broken already"),
        Reject::AuctionTrade => (ord_rej_reason::OTHER, "an auction's trade is not broken"),
        Reject::Full => (ord_rej_reason::EXCHANGE_OPTION, "book full"),
    }
}

fn refusal(refusal: Refusal) -> (u16, &'static str) {
    match refusal {
        Refusal::Engine(reject) => wording(reject),
        Refusal::UnknownSymbol => (ord_rej_reason::UNKNOWN_SYMBOL, "unknown symbol"),
        Refusal::Closed => (ord_rej_reason::EXCHANGE_CLOSED, "market is closed"),
        Refusal::Duplicate => (ord_rej_reason::DUPLICATE_ORDER, "duplicate ClOrdID"),
        Refusal::NoRoom => (ord_rej_reason::EXCHANGE_OPTION, "no room for more orders today"),
        Refusal::Disabled => (ord_rej_reason::EXCHANGE_OPTION, "order entry is disabled"),
    }
}

pub(super) fn why_text(why: Why) -> &'static str {
    match why {
        Why::Request | Why::TimeInForce => "",
        Why::Swept => "cancelled by a request for all orders",
        Why::Engine(reason) => match reason {
            CancelReason::MassCancel => "mass cancel",
            CancelReason::SelfTrade => "self-trade prevention",
            CancelReason::Protection => "market maker protection",
            CancelReason::AuctionOver => "the auction is over",
            CancelReason::DayOver => "the day is over",
            CancelReason::NoRoom => "book full",
            CancelReason::Requoted => "requoted",
        },
    }
}

fn break_text(reason: BreakReason) -> &'static str {
    match reason {
        BreakReason::Erroneous => "clearly erroneous",
        BreakReason::Consent => "broken by consent",
        BreakReason::Supervisory => "broken by a supervisor",
    }
}

/// OrdStatus (39) as it stands.
fn ord_status(order: &ClientOrder) -> u8 {
    match order.outcome {
        Outcome::Rejected => b'8',
        Outcome::Filled => b'2',
        Outcome::Cancelled => b'4',
        Outcome::Open if order.filled.is_zero() => b'0',
        Outcome::Open => b'1',
    }
}

impl Out {
    fn msg_type(&self, version: Version) -> &'static [u8] {
        match self {
            Out::Report(_) | Out::UnknownOrder { .. } => b"8",
            Out::CancelReject { .. } => b"9",
            Out::MassCancelled { .. } => b"r",
            Out::SecurityStatus { .. } => b"f",
            Out::SessionStatus { .. } => b"h",
            Out::Quote(out) => out.msg_type(version),
        }
    }

    fn encode(&self, e: &mut Encoder<'_>, version: Version, stamp: &mut Stamp) {
        match *self {
            Out::Report(ref saying) => report(e, version, stamp, saying),
            Out::CancelReject {
                request,
                orig,
                order,
                is_replace,
                reason,
                text,
            } => {
                let order_id = order.map_or(NO_ORDER, |order| Id::from_number(order.venue_id.0));
                e.text(tag::ORDER_ID, order_id.as_bytes());
                e.text(tag::CL_ORD_ID, request.as_bytes());
                if version >= Version::Fix41 {
                    e.text(tag::ORIG_CL_ORD_ID, orig.as_bytes());
                    e.char(tag::ORD_STATUS, order.as_ref().map_or(b'8', ord_status));
                }
                if version >= Version::Fix42 {
                    e.char(tag::CXL_REJ_RESPONSE_TO, if is_replace { b'2' } else { b'1' });
                }
                e.unsigned(tag::CXL_REJ_REASON, cancel_reason(version, reason));
                e.text_if(tag::TEXT, text.as_bytes());
            }
            Out::MassCancelled {
                id,
                kind,
                result,
                symbol,
                side,
                report_id,
            } => {
                e.text(tag::CL_ORD_ID, id.as_bytes());
                e.unsigned(tag::ORDER_ID, report_id);
                if version >= Version::Fix50Sp1 {
                    e.unsigned(own::MASS_ACTION_REPORT_ID, report_id);
                }
                e.char(tag::MASS_CANCEL_REQUEST_TYPE, kind);
                match result {
                    Ok(orders) => {
                        e.char(tag::MASS_CANCEL_RESPONSE, kind);
                        e.unsigned(own::TOTAL_AFFECTED_ORDERS, orders.into());
                    }
                    Err(reason) => {
                        e.char(tag::MASS_CANCEL_RESPONSE, b'0');
                        e.unsigned(own::MASS_CANCEL_REJECT_REASON, reason.into());
                    }
                }
                if let Some(symbol) = symbol {
                    e.text(tag::SYMBOL, symbol.as_bytes());
                }
                if let Some(side) = side {
                    e.char(tag::SIDE, b'1' + side as u8);
                }
            }
            Out::UnknownOrder { id, exec_id, at } => {
                e.text(tag::ORDER_ID, NO_ORDER.as_bytes());
                e.text(tag::CL_ORD_ID, id.as_bytes());
                e.unsigned(tag::EXEC_ID, exec_id);
                if version <= Version::Fix42 {
                    e.char(tag::EXEC_TRANS_TYPE, b'3');
                }
                if version >= Version::Fix41 {
                    e.char(
                        tag::EXEC_TYPE,
                        if version <= Version::Fix42 { b'8' } else { b'I' },
                    );
                }
                e.char(tag::ORD_STATUS, b'8');
                e.text(tag::SYMBOL, b"[N/A]");
                e.char(tag::SIDE, b'1');
                e.unsigned(tag::ORDER_QTY, 0);
                nothing_filled(e, version);
                e.timestamp(tag::TRANSACT_TIME, stamp, at);
                e.text(tag::TEXT, b"unknown order");
            }
            Out::SecurityStatus { id, symbol, status } => {
                e.text(own::SECURITY_STATUS_REQ_ID, id.as_bytes());
                e.text(tag::SYMBOL, symbol.as_bytes());
                e.unsigned(own::SECURITY_TRADING_STATUS, status);
            }
            Out::SessionStatus { id, status } => {
                e.text(own::TRAD_SES_REQ_ID, id.as_bytes());
                e.text(own::TRADING_SESSION_ID, b"1");
                e.unsigned(own::TRAD_SES_STATUS, status);
            }
            Out::Quote(ref out) => out.encode(e, version),
        }
    }
}

/// CxlRejReason (102) as far as the version has it.
fn cancel_reason(version: Version, reason: u16) -> u64 {
    let last = match version {
        Version::Fix40 | Version::Fix41 => 1,
        Version::Fix42 => 3,
        _ => u16::MAX,
    };
    // Too late is what remains of everything else.
    if reason <= last { reason.into() } else { 0 }
}

fn nothing_filled(e: &mut Encoder<'_>, version: Version) {
    e.unsigned(tag::LAST_QTY, 0);
    e.unsigned(tag::LAST_PX, 0);
    if version >= Version::Fix41 {
        e.unsigned(tag::LEAVES_QTY, 0);
    }
    e.unsigned(tag::CUM_QTY, 0);
    e.unsigned(tag::AVG_PX, 0);
}

/// ExecutionReport. Up to 4.2 it has ExecTransType (20), fills are ExecType 1 and 2, a broken one is
/// ExecTransType 1 with the order's state as ExecType, and a replaced order has OrdStatus 5; 4.0 has neither
/// ExecType nor LeavesQty.
fn report(e: &mut Encoder<'_>, version: Version, stamp: &mut Stamp, saying: &Saying) {
    let Saying {
        ref order,
        told,
        request,
        exec_id,
        at,
    } = *saying;
    let is_old = version <= Version::Fix42;
    let (id, orig) = request.unwrap_or((order.cl_ord_id, Id::EMPTY));
    let status = match told {
        OrderNotice::Replaced if is_old && order.outcome == Outcome::Open => b'5',
        OrderNotice::CancelPending => b'6',
        _ => ord_status(order),
    };
    let exec_type = match told {
        OrderNotice::Accepted => b'0',
        OrderNotice::Refused(_) => b'8',
        OrderNotice::Filled { .. } if is_old => status,
        OrderNotice::Filled { .. } => b'F',
        OrderNotice::Broken { .. } if is_old => status,
        OrderNotice::Broken { .. } => b'H',
        OrderNotice::Cancelled { .. } => b'4',
        OrderNotice::Replaced => b'5',
        // Lowered by the venue, which before 4.2 could not be said.
        OrderNotice::Reduced { .. } if version >= Version::Fix42 => b'D',
        OrderNotice::Reduced { .. } => b'5',
        OrderNotice::Triggered => b'L',
        OrderNotice::CancelPending => b'6',
        OrderNotice::Refreshed { .. } | OrderNotice::CancelTooLate | OrderNotice::Status if is_old => status,
        OrderNotice::Refreshed { .. } | OrderNotice::CancelTooLate | OrderNotice::Status => b'I',
    };
    match order.venue_id.0 {
        0 => e.text(tag::ORDER_ID, NO_ORDER.as_bytes()),
        number => e.unsigned(tag::ORDER_ID, number),
    }
    e.text(tag::CL_ORD_ID, id.as_bytes());
    if version >= Version::Fix41 {
        e.text_if(tag::ORIG_CL_ORD_ID, orig.as_bytes());
    }
    e.unsigned(tag::EXEC_ID, exec_id);
    if is_old {
        let kind = match told {
            OrderNotice::Status => b'3',
            OrderNotice::Broken { .. } => b'1',
            _ => b'0',
        };
        e.char(tag::EXEC_TRANS_TYPE, kind);
    }
    if let OrderNotice::Broken { exec_id, .. } = told {
        e.unsigned(own::EXEC_REF_ID, exec_id);
    }
    if version >= Version::Fix41 {
        e.char(tag::EXEC_TYPE, exec_type);
    }
    e.char(tag::ORD_STATUS, status);
    let mut text = "";
    match told {
        OrderNotice::Refused(why) => {
            let (reason, words) = refusal(why);
            e.unsigned(tag::ORD_REJ_REASON, reject_reason(version, reason));
            text = words;
        }
        OrderNotice::Reduced { why, .. } => {
            if exec_type == b'D' {
                // ExecRestatementReason: 5 partial decline of OrderQty.
                e.unsigned(own::EXEC_RESTATEMENT_REASON, 5);
            }
            text = why_text(why);
        }
        OrderNotice::Cancelled { why, .. } => text = why_text(why),
        OrderNotice::Broken { reason, .. } => text = break_text(reason),
        _ => {}
    }
    e.text(tag::SYMBOL, order.symbol.as_bytes());
    e.char(tag::SIDE, b'1' + order.side as u8);
    e.unsigned(tag::ORDER_QTY, order.qty.0.into());
    e.char(tag::ORD_TYPE, order.own as u8);
    if order.order_type == OrderType::Limit {
        e.price(tag::PRICE, order.price);
    }
    if let Some(stop) = order.stop {
        e.price(tag::STOP_PX, stop);
    }
    let is_on_close_type = matches!(order.own as u8, b'5' | b'B');
    if !is_on_close_type {
        e.char(tag::TIME_IN_FORCE, b'0' + order.time_in_force as u8);
    }
    if !order.display.is_zero() && version >= Version::Fix42 {
        let tag = if version.is_fixt() {
            own::DISPLAY_QTY
        } else {
            own::MAX_FLOOR
        };
        e.unsigned(tag, order.display.0.into());
    }
    match told {
        OrderNotice::Filled { qty, price, .. } | OrderNotice::Broken { qty, price, .. } => {
            e.unsigned(tag::LAST_QTY, qty.0.into());
            e.price(tag::LAST_PX, price);
        }
        _ if version <= Version::Fix41 => {
            e.unsigned(tag::LAST_QTY, 0);
            e.unsigned(tag::LAST_PX, 0);
        }
        _ => {}
    }
    if version >= Version::Fix41 {
        e.unsigned(tag::LEAVES_QTY, order.leaves().0.into());
    }
    e.unsigned(tag::CUM_QTY, order.filled.0.into());
    e.price(tag::AVG_PX, order.average());
    e.timestamp(tag::TRANSACT_TIME, stamp, at);
    if let Some(cause) = order.cause {
        e.unsigned(tag::CAUSE_VENUE, cause.venue as u64);
        e.unsigned(tag::CAUSE_SEQ, cause.seq.0);
        e.unsigned(tag::CAUSE_RECV_TS, cause.recv_ts.0);
    }
    e.text_if(tag::TEXT, text.as_bytes());
}

/// OrdRejReason (103) as far as the version has it: 0, broker's option, for the rest.
fn reject_reason(version: Version, reason: u16) -> u64 {
    let last = match version {
        Version::Fix40 => 3,
        Version::Fix41 => 5,
        Version::Fix42 => 8,
        Version::Fix43 => 15,
        _ => u16::MAX,
    };
    if reason <= last { reason.into() } else { 0 }
}

persist!(value enum Out {
    0 => Report(saying),
    1 => CancelReject { request, orig, order, is_replace, reason, text },
    2 => MassCancelled { id, kind, result, symbol, side, report_id },
    3 => UnknownOrder { id, exec_id, at },
    4 => SecurityStatus { id, symbol, status },
    5 => SessionStatus { id, status },
    6 => Quote(out),
});

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
