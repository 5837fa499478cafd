//! Order entry: FIX 4.4 sessions in front of the engine, and the ledger of every order that clients sent.
//!
//! One [`tickwire_fix::Session`] acceptor per connection number. NewOrderSingle, OrderCancelRequest and
//! OrderCancelReplaceRequest act on the engine; what happens to a client's order, by request or because the market
//! traded with it, goes out as ExecutionReport. When a connection is lost, its open orders are cancelled.

use alloc::vec::Vec;

use tickwire_fix::{
    AppMessage, BusinessMessageReject, CancelKind, CompId, DisconnectReason, Event, ExecType,
    ExecutionReport, Id, MsgType, NewOrderSingle, OrdStatus, OrderCancelReject, OrderCancelReplaceRequest,
    OrderCancelRequest, Reason, Role, Session, SessionConfig, business_reject_reason, cxl_rej_reason,
    ord_rej_reason,
};
use tickwire_market::{
    Cause, InstrumentId, Nanos, OrderId, OrderType, Price, Qty, SeqNo, Side, Symbol, TimeInForce,
};

use crate::broadcast::Broadcast;
use crate::engine::Engine;
use crate::flow::Flow;
use crate::index::OrderIndex;
use crate::order::{CrossFill, Execution, Firm, Listener, NewOrder, Order, Owner, Reject};
use crate::tape::Tape;
use crate::tape::{Listing, VenueTime};

/// How order entry is set up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DeskConfig {
    /// Our CompID.
    pub comp_id: CompId,
    /// Connection numbers are 0 to this, exclusive.
    pub connections: usize,
    /// Orders of all clients in a day; further ones are rejected.
    pub max_orders: usize,
    /// Both sequence numbers start at 1 with every logon.
    pub reset_on_logon: bool,
}

impl Default for DeskConfig {
    fn default() -> DeskConfig {
        DeskConfig {
            comp_id: CompId::new(b"EXCHANGE").unwrap_or(CompId::EMPTY),
            connections: 4,
            max_orders: 1 << 20,
            reset_on_logon: true,
        }
    }
}

/// What became of a client's order.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Outcome {
    /// Refused; it never was in the market.
    Rejected,
    /// In the book.
    Open,
    /// All filled.
    Filled,
    /// Cancelled, by request, by its time in force, with its connection or at the end of the day; maybe after fills.
    Cancelled,
}

/// One row of the ledger.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ClientOrder {
    /// The connection it came by.
    pub connection: usize,
    /// Its latest ClOrdID (replacements change it).
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
    /// Limit or market.
    pub order_type: OrderType,
    /// Its limit, zero for market orders.
    pub price: Price,
    /// Its total quantity.
    pub qty: Qty,
    /// How long it lives.
    pub time_in_force: TimeInForce,
    /// How much of it is filled.
    pub filled: Qty,
    /// Fills times prices, in raw price units.
    pub cost: i128,
    /// What became of it.
    pub outcome: Outcome,
    /// The market data message that caused it, as the order says.
    pub cause: Option<Cause>,
    /// When its bytes were received.
    pub received: Nanos,
}

impl ClientOrder {
    fn status(&self) -> OrdStatus {
        match self.outcome {
            Outcome::Rejected => OrdStatus::Rejected,
            Outcome::Filled => OrdStatus::Filled,
            Outcome::Cancelled => OrdStatus::Canceled,
            Outcome::Open if self.filled.is_zero() => OrdStatus::New,
            Outcome::Open => OrdStatus::PartiallyFilled,
        }
    }

    fn leaves(&self) -> Qty {
        match self.outcome {
            Outcome::Open => Qty(self.qty.0.saturating_sub(self.filled.0)),
            _ => Qty::ZERO,
        }
    }

    fn average(&self) -> Price {
        match self.filled.0 {
            0 => Price::ZERO,
            filled => Price::from_raw((self.cost / i128::from(filled)) as i64),
        }
    }
}

/// What the desk acts on while it handles a request.
pub(crate) struct Floor<'a> {
    pub(crate) engine: &'a mut Engine,
    pub(crate) tape: &'a mut Broadcast,
    pub(crate) flow: &'a mut Flow,
    pub(crate) time: VenueTime,
    /// Whether new orders are taken.
    pub(crate) is_open: bool,
}

struct Connection {
    session: Session,
    connected: bool,
    closing: Option<DisconnectReason>,
}

pub(crate) struct Desk {
    connections: Vec<Connection>,
    ledger: Vec<ClientOrder>,
    max_orders: usize,
    /// Hash of connection and ClOrdID → row of the ledger. Two identifiers with the same 64-bit hash count as
    /// duplicates.
    names: OrderIndex,
    named: usize,
    symbols: Vec<(Symbol, InstrumentId)>,
    last_exec_id: u64,
    reports_lost: u64,
    unrecorded: u64,
}

/// What a report says beside the state of the order.
struct News {
    exec_type: ExecType,
    last: Option<(Qty, Price)>,
    orig: Id,
    reason: Option<u16>,
    text: &'static [u8],
}

const PLAIN: News = News {
    exec_type: ExecType::New,
    last: None,
    orig: Id::EMPTY,
    reason: None,
    text: b"",
};

impl Desk {
    pub(crate) fn new(config: DeskConfig, listings: &[Listing]) -> Desk {
        let session = SessionConfig {
            reset_on_logon: config.reset_on_logon,
            ..SessionConfig::new(Role::Acceptor, config.comp_id, CompId::EMPTY)
        };
        let mut symbols: Vec<_> = listings.iter().map(|l| (l.symbol, l.id)).collect();
        symbols.sort();
        let connection = |_| Connection {
            session: Session::new(session),
            connected: false,
            closing: None,
        };
        Desk {
            connections: (0..config.connections).map(connection).collect(),
            ledger: Vec::with_capacity(config.max_orders),
            max_orders: config.max_orders,
            // Each order, and as many cancel and replace requests, have a name.
            names: OrderIndex::new(config.max_orders * 2),
            named: 0,
            symbols,
            last_exec_id: 0,
            reports_lost: 0,
            unrecorded: 0,
        }
    }

    pub(crate) fn ledger(&self) -> &[ClientOrder] {
        &self.ledger
    }

    pub(crate) fn reports_lost(&self) -> u64 {
        self.reports_lost
    }

    pub(crate) fn unrecorded(&self) -> u64 {
        self.unrecorded
    }

    pub(crate) fn connect(&mut self, id: usize, now: Nanos) -> bool {
        let Some(connection) = self.connections.get_mut(id).filter(|c| !c.connected) else {
            return false;
        };
        connection.connected = true;
        connection.closing = None;
        connection.session.handle_connected(now);
        true
    }

    pub(crate) fn disconnect(&mut self, id: usize, now: Nanos, floor: &mut Floor<'_>) {
        let Some(connection) = self.connections.get_mut(id).filter(|c| c.connected) else {
            return;
        };
        connection.connected = false;
        connection.closing = None;
        connection.session.handle_disconnected(now);
        self.cancel_open(now, floor, |order| order.connection == id);
    }

    /// Whether the transport is to be closed, once everything is transmitted.
    pub(crate) fn closing(&self, id: usize) -> Option<DisconnectReason> {
        self.connections.get(id)?.closing
    }

    pub(crate) fn handle_bytes(
        &mut self,
        id: usize,
        now: Nanos,
        bytes: &[u8],
        floor: &mut Floor<'_>,
    ) -> usize {
        let mut taken = 0;
        loop {
            let Some(connection) = self.connections.get_mut(id).filter(|c| c.connected) else {
                return bytes.len();
            };
            let n = connection.session.handle_bytes(now, &bytes[taken..]);
            taken += n;
            let progress = self.drain_events(id, now, floor);
            if taken == bytes.len() || (n == 0 && !progress) {
                return taken;
            }
        }
    }

    pub(crate) fn handle_timeout(&mut self, now: Nanos, floor: &mut Floor<'_>) {
        for id in 0..self.connections.len() {
            let connection = &mut self.connections[id];
            if connection.connected && connection.session.poll_timeout().is_some_and(|due| due <= now) {
                connection.session.handle_timeout(now);
                self.drain_events(id, now, floor);
            }
        }
    }

    pub(crate) fn poll_transmit<'b>(&mut self, id: usize, buf: &'b mut [u8]) -> Option<&'b [u8]> {
        self.connections
            .get_mut(id)
            .filter(|c| c.connected)?
            .session
            .poll_transmit(buf)
    }

    pub(crate) fn poll_timeout(&self) -> Option<Nanos> {
        self.connections
            .iter()
            .filter(|c| c.connected)
            .filter_map(|c| c.session.poll_timeout())
            .min()
    }

    /// The end of the day for clients: open orders are cancelled.
    pub(crate) fn cancel_all(&mut self, now: Nanos, floor: &mut Floor<'_>) {
        self.cancel_open(now, floor, |_| true);
    }

    /// Says goodbye on every connection.
    pub(crate) fn logout(&mut self, now: Nanos) {
        for connection in self.connections.iter_mut().filter(|c| c.connected) {
            connection.session.logout(now, "end of session");
        }
    }

    fn cancel_open(&mut self, now: Nanos, floor: &mut Floor<'_>, which: impl Fn(&ClientOrder) -> bool) {
        for row in 0..self.ledger.len() {
            let order = self.ledger[row];
            if order.outcome == Outcome::Open && which(&order) {
                self.act(now, Id::EMPTY, floor, |engine, out| {
                    engine.cancel(order.order_id, out)
                })
                .ok();
            }
        }
    }

    fn drain_events(&mut self, id: usize, now: Nanos, floor: &mut Floor<'_>) -> bool {
        let mut any = false;
        while let Some(event) = self.connections[id].session.poll_event() {
            any = true;
            match event {
                Event::App { seq, message, .. } => self.on_message(id, now, seq, &message, floor),
                Event::Disconnect { reason, .. } => self.connections[id].closing = Some(reason),
                // Sessions of a desk ask nobody about logons and cancel nothing of themselves.
                Event::LogonRequested { .. }
                | Event::CancelOrders { .. }
                | Event::LoggedOn { .. }
                | Event::Message { .. }
                | Event::Gap { .. }
                | Event::Rejected { .. } => {}
            }
        }
        any
    }

    fn on_message(&mut self, id: usize, now: Nanos, seq: SeqNo, message: &AppMessage, floor: &mut Floor<'_>) {
        match message {
            AppMessage::NewOrderSingle(m) => self.on_new(id, now, m, floor),
            AppMessage::OrderCancelRequest(m) => self.on_cancel(id, now, m, floor),
            AppMessage::OrderCancelReplaceRequest(m) => self.on_replace(id, now, m, floor),
            AppMessage::BusinessMessageReject(_) => {}
            other => self.refuse(id, now, seq, other.msg_type()),
        }
    }

    fn on_new(&mut self, id: usize, now: Nanos, m: &NewOrderSingle, floor: &mut Floor<'_>) {
        let instrument = self.instrument(&m.symbol);
        let order = ClientOrder {
            connection: id,
            cl_ord_id: m.cl_ord_id,
            venue_id: OrderId(0),
            order_id: OrderId(0),
            instrument: instrument.unwrap_or(InstrumentId::WHOLE_FEED),
            symbol: m.symbol,
            side: m.side,
            order_type: m.order_type,
            price: m.price.unwrap_or(Price::ZERO),
            qty: m.qty,
            time_in_force: m.time_in_force,
            filled: Qty::ZERO,
            cost: 0,
            outcome: Outcome::Open,
            cause: m.cause,
            received: now,
        };
        if self.find(id, &m.cl_ord_id).is_some() {
            let news = rejection(ord_rej_reason::DUPLICATE_ORDER, b"duplicate ClOrdID");
            return self.report_on(
                &ClientOrder {
                    outcome: Outcome::Rejected,
                    ..order
                },
                now,
                news,
            );
        }
        if self.ledger.len() >= self.max_orders || !self.name(id, &m.cl_ord_id, self.ledger.len()) {
            self.unrecorded += 1;
            let news = rejection(ord_rej_reason::EXCHANGE_OPTION, b"no room for more orders today");
            return self.report_on(
                &ClientOrder {
                    outcome: Outcome::Rejected,
                    ..order
                },
                now,
                news,
            );
        }
        self.ledger.push(order);
        let row = self.ledger.len() - 1;
        let refused = match instrument {
            None => Some(rejection(ord_rej_reason::UNKNOWN_SYMBOL, b"unknown symbol")),
            Some(_) if !floor.is_open => Some(rejection(ord_rej_reason::EXCHANGE_CLOSED, b"closed")),
            Some(instrument) => {
                let new = NewOrder {
                    order_type: m.order_type,
                    time_in_force: m.time_in_force,
                    owner: owner(row),
                    firm: Firm(id as u32 + 1),
                    ..NewOrder::limit(instrument, m.side, order.price, m.qty)
                };
                let entered = self.act(now, Id::EMPTY, floor, |engine, out| engine.submit(&new, out));
                entered.err().map(rejection_of)
            }
        };
        if let Some(news) = refused {
            self.ledger[row].outcome = Outcome::Rejected;
            let order = self.ledger[row];
            self.report_on(&order, now, news);
        }
    }

    fn on_cancel(&mut self, id: usize, now: Nanos, m: &OrderCancelRequest, floor: &mut Floor<'_>) {
        let kind = CancelKind::Cancel;
        let row = match self.target(id, &m.orig_cl_ord_id, &m.cl_ord_id) {
            Ok(row) => row,
            Err(reason) => return self.reject_cancel(id, now, m.cl_ord_id, m.orig_cl_ord_id, kind, reason),
        };
        let target = self.ledger[row].order_id;
        let before = self.ledger[row].cl_ord_id;
        self.ledger[row].cl_ord_id = m.cl_ord_id;
        let done = self.act(now, m.orig_cl_ord_id, floor, |engine, out| {
            engine.cancel(target, out)
        });
        // The ledger keeps the name the order had; only the report carries the request's.
        self.ledger[row].cl_ord_id = before;
        if done.is_err() {
            self.reject_cancel(
                id,
                now,
                m.cl_ord_id,
                m.orig_cl_ord_id,
                kind,
                cxl_rej_reason::TOO_LATE,
            );
        }
    }

    fn on_replace(&mut self, id: usize, now: Nanos, m: &OrderCancelReplaceRequest, floor: &mut Floor<'_>) {
        let kind = CancelKind::Replace;
        let row = match self.target(id, &m.orig_cl_ord_id, &m.cl_ord_id) {
            Ok(row) => row,
            Err(reason) => return self.reject_cancel(id, now, m.cl_ord_id, m.orig_cl_ord_id, kind, reason),
        };
        let before = self.ledger[row];
        // OrderQty is the new total, fills included; what is filled already cannot be taken back.
        let remaining = Qty(m.qty.0.saturating_sub(before.filled.0));
        let price = m.price.unwrap_or(Price::ZERO);
        let changed = ClientOrder {
            cl_ord_id: m.cl_ord_id,
            qty: m.qty,
            price,
            ..before
        };
        self.ledger[row] = changed;
        let mut done = Err(Reject::NotTrading);
        if floor.is_open && m.order_type == OrderType::Limit {
            done = self.act(now, m.orig_cl_ord_id, floor, |engine, out| {
                engine.replace(before.order_id, price, remaining, out)
            });
        }
        match done {
            // Nothing but the name changed: the engine had nothing to tell.
            Ok(_) if before.price == price && before.qty == m.qty => {
                let news = News {
                    exec_type: ExecType::Replaced,
                    orig: m.orig_cl_ord_id,
                    ..PLAIN
                };
                self.report_on(&changed, now, news);
            }
            Ok(_) => {}
            Err(_) => {
                self.ledger[row] = before;
                let reason = cxl_rej_reason::EXCHANGE_OPTION;
                self.reject_cancel(id, now, m.cl_ord_id, m.orig_cl_ord_id, kind, reason);
            }
        }
    }

    /// The row of the order that a request is about; the request's own identifier is taken.
    fn target(&mut self, id: usize, orig: &Id, request: &Id) -> Result<usize, u16> {
        let row = self.find(id, orig).ok_or(cxl_rej_reason::UNKNOWN_ORDER)?;
        if self.find(id, request).is_some() {
            return Err(cxl_rej_reason::DUPLICATE_CL_ORD_ID);
        }
        if self.ledger[row].outcome != Outcome::Open {
            return Err(cxl_rej_reason::TOO_LATE);
        }
        match self.name(id, request, row) {
            true => Ok(row),
            false => Err(cxl_rej_reason::EXCHANGE_OPTION),
        }
    }

    /// Does something to the engine while publisher and clients listen.
    fn act<T>(
        &mut self,
        now: Nanos,
        orig: Id,
        floor: &mut Floor<'_>,
        request: impl FnOnce(&mut Engine, &mut (&mut Broadcast, &mut Reports<'_>)) -> T,
    ) -> T {
        floor.tape.set_time(floor.time);
        let mut reports = Reports {
            desk: self,
            now,
            orig,
            disturbed: None,
        };
        let done = request(floor.engine, &mut (&mut *floor.tape, &mut reports));
        if let Some(instrument) = reports.disturbed {
            floor.flow.disturb(instrument, floor.time);
        }
        done
    }

    /// Hears what the market's own flow does to clients' orders.
    pub(crate) fn reports(&mut self, now: Nanos) -> Reports<'_> {
        Reports {
            desk: self,
            now,
            orig: Id::EMPTY,
            disturbed: None,
        }
    }

    fn instrument(&self, symbol: &Symbol) -> Option<InstrumentId> {
        let at = self
            .symbols
            .binary_search_by_key(symbol, |(symbol, _)| *symbol)
            .ok()?;
        Some(self.symbols[at].1)
    }

    fn find(&self, connection: usize, id: &Id) -> Option<usize> {
        self.names.get(name_hash(connection, id)).map(|row| row as usize)
    }

    fn name(&mut self, connection: usize, id: &Id, row: usize) -> bool {
        if self.named >= self.max_orders * 2 {
            return false;
        }
        self.named += 1;
        self.names.insert(name_hash(connection, id), row as u32);
        true
    }

    fn report_on(&mut self, order: &ClientOrder, now: Nanos, news: News) {
        self.last_exec_id += 1;
        let (last_qty, last_px) = match news.last {
            Some((qty, price)) => (qty, Some(price)),
            None => (Qty::ZERO, None),
        };
        let report = ExecutionReport {
            order_id: match order.venue_id.0 {
                0 => NO_ORDER,
                id => Id::from_number(id),
            },
            cl_ord_id: order.cl_ord_id,
            orig_cl_ord_id: news.orig,
            exec_id: Id::from_number(self.last_exec_id),
            exec_type: news.exec_type,
            ord_status: order.status(),
            ord_rej_reason: news.reason,
            symbol: order.symbol,
            side: order.side,
            qty: order.qty,
            order_type: order.order_type,
            price: (order.order_type == OrderType::Limit).then_some(order.price),
            time_in_force: order.time_in_force,
            last_qty,
            last_px,
            leaves_qty: order.leaves(),
            cum_qty: order.filled,
            avg_px: order.average(),
            transact_time: now,
            cause: order.cause,
            text: Reason::lossy(news.text),
        };
        self.send(order.connection, now, &AppMessage::ExecutionReport(report));
    }

    fn reject_cancel(&mut self, id: usize, now: Nanos, request: Id, orig: Id, kind: CancelKind, reason: u16) {
        let order = self.find(id, &orig).map(|row| self.ledger[row]);
        let reject = OrderCancelReject {
            order_id: order.map_or(NO_ORDER, |order| Id::from_number(order.venue_id.0)),
            cl_ord_id: request,
            orig_cl_ord_id: orig,
            ord_status: order.map_or(OrdStatus::Rejected, |order| order.status()),
            response_to: kind,
            reason: Some(reason),
            text: Reason::EMPTY,
        };
        self.send(id, now, &AppMessage::OrderCancelReject(reject));
    }

    fn refuse(&mut self, id: usize, now: Nanos, seq: SeqNo, msg_type: &[u8]) {
        let reject = BusinessMessageReject {
            ref_seq: seq,
            ref_msg_type: MsgType::new(msg_type).unwrap_or(MsgType::EMPTY),
            ref_id: Id::EMPTY,
            reason: business_reject_reason::UNSUPPORTED_MESSAGE_TYPE,
            text: Reason::lossy(b"not for a venue"),
        };
        self.send(id, now, &AppMessage::BusinessMessageReject(reject));
    }

    fn send(&mut self, id: usize, now: Nanos, message: &AppMessage) {
        if self.connections[id].session.send(now, message).is_err() {
            self.reports_lost += 1;
        }
    }
}

/// OrderID of what never became an order.
const NO_ORDER: Id = match Id::new(b"NONE") {
    Some(id) => id,
    None => Id::EMPTY,
};

fn owner(row: usize) -> Owner {
    Owner(row as u32 + 1)
}

/// FNV-1a over connection and identifier; never 0.
fn name_hash(connection: usize, id: &Id) -> u64 {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01B3);
    let start = step(0xCBF2_9CE4_8422_2325, connection as u8);
    id.as_bytes()
        .iter()
        .fold(start, |hash, byte| step(hash, *byte))
        .max(1)
}

fn rejection(reason: u16, text: &'static [u8]) -> News {
    News {
        exec_type: ExecType::Rejected,
        reason: Some(reason),
        text,
        ..PLAIN
    }
}

fn rejection_of(reject: Reject) -> News {
    match reject {
        Reject::UnknownInstrument => rejection(ord_rej_reason::UNKNOWN_SYMBOL, b"unknown symbol"),
        Reject::NotTrading => rejection(ord_rej_reason::EXCHANGE_CLOSED, b"not trading"),
        Reject::Tick => rejection(ord_rej_reason::OTHER, b"price is not a multiple of the tick"),
        Reject::PriceRange => rejection(ord_rej_reason::EXCEEDS_LIMIT, b"price out of range"),
        Reject::Quantity => rejection(ord_rej_reason::INCORRECT_QUANTITY, b"quantity is zero"),
        Reject::UnknownOrder => rejection(ord_rej_reason::OTHER, b"unknown order"),
        Reject::Lot => rejection(
            ord_rej_reason::INCORRECT_QUANTITY,
            b"quantity is not a multiple of the lot",
        ),
        Reject::Display => rejection(
            ord_rej_reason::INCORRECT_QUANTITY,
            b"nothing beside what is displayed",
        ),
        Reject::StopPrice => rejection(ord_rej_reason::EXCEEDS_LIMIT, b"stop price out of range"),
        Reject::Instructions => rejection(
            ord_rej_reason::EXCHANGE_OPTION,
            b"instructions do not go together",
        ),
        Reject::PostOnly => rejection(ord_rej_reason::EXCHANGE_OPTION, b"post only, would take"),
        Reject::PriceBand => rejection(ord_rej_reason::EXCEEDS_LIMIT, b"beyond the price band"),
        Reject::Quote => rejection(ord_rej_reason::OTHER, b"not for quotes"),
        Reject::Protected => rejection(ord_rej_reason::EXCHANGE_OPTION, b"protection triggered"),
        Reject::NoFirm => rejection(ord_rej_reason::OTHER, b"no firm"),
        Reject::Full => rejection(ord_rej_reason::EXCHANGE_OPTION, b"book full"),
    }
}

/// Tells clients what happens to their orders.
pub(crate) struct Reports<'a> {
    desk: &'a mut Desk,
    now: Nanos,
    /// The OrigClOrdID of the request being handled.
    orig: Id,
    /// A client took liquidity here.
    disturbed: Option<InstrumentId>,
}

impl Reports<'_> {
    /// Changes a client's order and reports it. Not about one: nothing.
    fn tell(&mut self, owner: Owner, news: News, change: impl FnOnce(&mut ClientOrder)) {
        let Some(row) = (owner.0 as usize).checked_sub(1) else {
            return;
        };
        let Some(order) = self.desk.ledger.get_mut(row) else {
            return;
        };
        change(order);
        let order = *order;
        self.desk.report_on(&order, self.now, news);
    }

    fn tell_fill(&mut self, owner: Owner, qty: Qty, price: Price) {
        let news = News {
            exec_type: ExecType::Trade,
            last: Some((qty, price)),
            ..PLAIN
        };
        self.tell(owner, news, |order| {
            order.filled = Qty(order.filled.0 + qty.0);
            order.cost += price.notional(u64::from(qty.0));
            if order.filled == order.qty {
                order.outcome = Outcome::Filled;
            }
        });
    }

    /// Nothing to report but where the order is found from now on.
    fn renumber(&mut self, old: &Order, new: &Order) {
        let row = (old.owner.0 as usize).checked_sub(1);
        if let Some(order) = row.and_then(|row| self.desk.ledger.get_mut(row)) {
            order.order_id = new.id;
        }
    }

    fn tell_cancelled(&mut self, owner: Owner) {
        let news = News {
            exec_type: ExecType::Canceled,
            orig: self.orig,
            ..PLAIN
        };
        self.tell(owner, news, |order| order.outcome = Outcome::Cancelled);
    }
}

impl Listener for Reports<'_> {
    fn accepted(&mut self, order: &Order) {
        self.tell(order.owner, PLAIN, |mine| {
            mine.venue_id = order.id;
            mine.order_id = order.id;
        });
    }

    fn rested(&mut self, _: &Order) {}

    fn executed(&mut self, execution: &Execution) {
        let Execution {
            maker,
            taker,
            qty,
            price,
            ..
        } = *execution;
        if taker.owner != Owner::HOUSE {
            self.disturbed = Some(taker.instrument);
        }
        self.tell_fill(maker.owner, qty, price);
        self.tell_fill(taker.owner, qty, price);
    }

    fn cross_filled(&mut self, fill: &CrossFill) {
        self.tell_fill(fill.order.owner, fill.qty, fill.price);
    }

    fn refreshed(&mut self, old: &Order, new: &Order) {
        self.renumber(old, new);
    }

    fn triggered(&mut self, old: &Order, new: &Order) {
        self.renumber(old, new);
    }

    /// Only replacements reduce clients' orders.
    fn reduced(&mut self, order: &Order, _: Qty) {
        let news = News {
            exec_type: ExecType::Replaced,
            orig: self.orig,
            ..PLAIN
        };
        self.tell(order.owner, news, |_| {});
    }

    fn deleted(&mut self, order: &Order) {
        self.tell_cancelled(order.owner);
    }

    fn expired(&mut self, order: &Order) {
        self.tell_cancelled(order.owner);
    }

    fn replaced(&mut self, _: &Order, new: &Order, _: bool) {
        let news = News {
            exec_type: ExecType::Replaced,
            orig: self.orig,
            ..PLAIN
        };
        self.tell(new.owner, news, |order| order.order_id = new.id);
    }
}
