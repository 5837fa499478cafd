//! The strategy on a thread of its own ([`super::lockstep`]), with orders as FIX 4.4, which has stop orders
//! and mass quotes; OUCH 5.0 has neither.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{SystemTime, UNIX_EPOCH};

use tickwire_exchange::listings;
use tickwire_feed::Channel;
use tickwire_fix::{
    Again, CancelKind, CompId, Encoder, Event, ExecType, ExecutionReport, Fields, Id, Message,
    NewOrderSingle, OrdStatus, OrderCancelReject, OrderCancelReplaceRequest, OrderCancelRequest,
    OrderRequest, QuoteAnswer, QuoteEntries, QuoteLine, QuoteSets, Reason, Role, Session, SessionConfig,
    Stamp, Status, put_cancel_quotes, put_mass_quote, read_quote_answer, tag,
};
use tickwire_market::{
    Cause, ClientOrderId, InstrumentId, Nanos, OrderIntent, OrderType, Qty, Symbol, TimeInForce,
};
use tickwire_trading::strategy::{Quote, QuoteEntry, QuoteReport};
use tickwire_trading::{OrderReport, ReportKind};

use super::lockstep::{Lockstep, Trading};
use super::{Host, InMemory, Request, SYMBOLS, Said, Which, in_memory};

/// A session over a connection.
struct Connection {
    session: Session,
    tcp: TcpStream,
}

impl Connection {
    fn new(role: Role, tcp: TcpStream) -> Connection {
        let [trader, venue] = [&b"TRADER"[..], b"VENUE"].map(|id| CompId::new(id).expect("a comp id"));
        let (own, peer) = match role {
            Role::Initiator => (trader, venue),
            Role::Acceptor => (venue, trader),
        };
        let mut session = Session::new(SessionConfig::new(role, own, peer));
        session.handle_connected(now());
        let mut connection = Connection { session, tcp };
        while connection.session.status() != Status::Active {
            connection.transmit();
            let early: Vec<()> = connection.receive(|_| panic!("a message before the logon"));
            assert!(early.is_empty());
        }
        connection.transmit();
        connection
    }

    fn transmit(&mut self) {
        let mut buffer = [0; 4096];
        while let Some(bytes) = self.session.poll_transmit(&mut buffer) {
            self.tcp.write_all(bytes).expect("it is connected");
        }
    }

    fn send(&mut self, msg_type: &[u8], fields: impl FnOnce(&mut Encoder<'_>, &mut Stamp)) {
        let sent = self.session.send(now(), msg_type, Again::Resend, fields);
        sent.expect("it is logged on");
        self.transmit();
    }

    /// What came, read by `read`.
    fn receive<T>(&mut self, mut read: impl FnMut(&Message<'_>) -> T) -> Vec<T> {
        let mut buffer = [0; 4096];
        let len = self.tcp.read(&mut buffer).expect("it is connected");
        assert!(len > 0, "the other end has hung up");
        let (mut rest, mut found) = (&buffer[..len], Vec::new());
        while !rest.is_empty() {
            let taken = self.session.handle_bytes(now(), rest);
            rest = &rest[taken..];
            while let Some(event) = self.session.poll_event() {
                match event {
                    Event::Message { .. } => {
                        let message = self.session.message().expect("the event is about it");
                        found.push(read(&message));
                    }
                    Event::LoggedOn { .. } => {}
                    other => panic!("{other:?}"),
                }
            }
            self.transmit();
        }
        found
    }
}

fn now() -> Nanos {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock");
    Nanos(since.as_nanos() as u64)
}

fn id(number: ClientOrderId) -> Id {
    Id::from_number(number.0)
}

fn number(id: Id) -> ClientOrderId {
    ClientOrderId(id.to_number().expect("a number of ours"))
}

fn symbol_of(instrument: InstrumentId) -> Symbol {
    listings(SYMBOLS)[instrument.index() - 1].symbol
}

fn instrument_of(symbol: Symbol) -> InstrumentId {
    let all = listings(SYMBOLS);
    let place = all.iter().position(|listing| listing.symbol == symbol);
    InstrumentId(1 + place.expect("it is listed") as u32)
}

/// The venue's end.
pub(crate) struct OverFix {
    lockstep: Lockstep,
    connection: Connection,
    /// Requests that came and were not asked for yet.
    requests: Vec<Request>,
    /// Orders as they were entered or replaced, and the requests to cancel them.
    orders: BTreeMap<ClientOrderId, NewOrderSingle>,
    cancels: BTreeMap<ClientOrderId, ClientOrderId>,
    /// Names of quotes by instrument.
    names: BTreeMap<InstrumentId, u64>,
    executions: u64,
}

/// Starts the strategy's thread and lets it log on.
pub(crate) fn over_fix(which: Which) -> OverFix {
    let (lockstep, tcp) = Lockstep::start(move || in_memory(which), log_on);
    let mut venue = OverFix {
        lockstep,
        connection: Connection::new(Role::Acceptor, tcp),
        requests: Vec::new(),
        orders: BTreeMap::new(),
        cancels: BTreeMap::new(),
        names: BTreeMap::new(),
        executions: 0,
    };
    venue.lockstep.begun();
    venue
}

impl OverFix {
    /// A request as the matching engine takes it; kept as far as its reports repeat it.
    fn note(&mut self, request: Asked) -> Request {
        let cause = Cause::default();
        let request = match request {
            Asked::Quotes { id, lines, is_cancel } => {
                let entries = lines.into_iter().map(|line| {
                    let instrument = instrument_of(line.symbol);
                    // A cancellation names the instrument alone.
                    let name = match is_cancel {
                        true => self.names[&instrument],
                        false => line.name,
                    };
                    self.names.insert(instrument, name);
                    let sides = line.sides;
                    let quote = Quote { instrument, sides };
                    QuoteEntry { name, quote }
                });
                return Request::Quotes {
                    id: ClientOrderId(id),
                    entries: entries.collect(),
                    is_cancel,
                };
            }
            Asked::New(order) => {
                self.orders.insert(number(order.cl_ord_id), order);
                OrderIntent::New {
                    id: number(order.cl_ord_id),
                    instrument: instrument_of(order.symbol),
                    side: order.side,
                    order_type: order.order_type,
                    price: order.price.unwrap_or_default(),
                    stop: order.stop,
                    qty: order.qty,
                    time_in_force: order.time_in_force,
                    cause,
                }
            }
            Asked::Replace(m) => {
                let order = NewOrderSingle {
                    cl_ord_id: m.cl_ord_id,
                    symbol: m.symbol,
                    side: m.side,
                    transact_time: m.transact_time,
                    qty: m.qty,
                    order_type: m.order_type,
                    price: m.price,
                    stop: m.stop,
                    time_in_force: m.time_in_force,
                    cause: None,
                };
                self.orders.insert(number(m.cl_ord_id), order);
                OrderIntent::Replace {
                    id: number(m.cl_ord_id),
                    target: number(m.orig_cl_ord_id),
                    venue_id: None,
                    instrument: instrument_of(m.symbol),
                    side: m.side,
                    order_type: m.order_type,
                    price: m.price.unwrap_or_default(),
                    stop: m.stop,
                    qty: m.qty,
                    time_in_force: m.time_in_force,
                    cause,
                }
            }
            Asked::Cancel(m) => {
                let target = number(m.orig_cl_ord_id);
                self.cancels.insert(target, number(m.cl_ord_id));
                OrderIntent::Cancel {
                    id: number(m.cl_ord_id),
                    target,
                    venue_id: None,
                    instrument: instrument_of(m.symbol),
                    side: m.side,
                    qty: m.qty,
                    cause,
                }
            }
        };
        Request::Order(request)
    }

    fn execution(&mut self, report: &OrderReport) {
        // Of a request that was done: its number, and that of the order as it was.
        let (named, before) = match report.kind {
            ReportKind::Replaced { by, .. } => (by, Some(report.id)),
            ReportKind::Cancelled => match self.cancels.remove(&report.id) {
                Some(cancel) => (cancel, Some(report.id)),
                None => (report.id, None),
            },
            _ => (report.id, None),
        };
        let (exec_type, ord_status) = match report.kind {
            ReportKind::Accepted => (ExecType::New, OrdStatus::New),
            ReportKind::Filled { .. } => (ExecType::Trade, OrdStatus::PartiallyFilled),
            ReportKind::Cancelled => (ExecType::Canceled, OrdStatus::Canceled),
            ReportKind::Replaced { .. } => (ExecType::Replaced, OrdStatus::New),
            // FIX 4.4 has no word for it but WorkingIndicator (636).
            ReportKind::Triggered => (ExecType::Restated, OrdStatus::New),
            _ => panic!("{report:?}: the venue does not"),
        };
        let (last_qty, last_px, cum_qty) = match report.kind {
            ReportKind::Filled {
                qty,
                price,
                cumulative,
            } => (qty, Some(price), cumulative),
            _ => (Qty::ZERO, None, Qty::ZERO),
        };
        let order = match report.kind {
            ReportKind::Replaced { by, .. } => self.orders[&by],
            _ => self.orders[&report.id],
        };
        let leaves_qty = match ord_status {
            OrdStatus::Canceled => Qty::ZERO,
            _ => Qty(order.qty.0.saturating_sub(cum_qty.0)),
        };
        self.executions += 1;
        let execution = ExecutionReport {
            order_id: id(report.id),
            cl_ord_id: id(named),
            orig_cl_ord_id: before.map_or(Id::EMPTY, id),
            exec_id: Id::from_number(self.executions),
            exec_type,
            ord_status: match leaves_qty.0 {
                0 if last_px.is_some() => OrdStatus::Filled,
                _ => ord_status,
            },
            is_working: report.kind == ReportKind::Triggered,
            last_qty,
            last_px,
            leaves_qty,
            cum_qty,
            avg_px: last_px.unwrap_or_default(),
            transact_time: now(),
            cause: None,
            ..ExecutionReport::of(&order)
        };
        self.connection
            .send(ExecutionReport::MSG_TYPE, |e, stamp| execution.encode(e, stamp));
    }

    fn rejection(&mut self, order: ClientOrderId, request: ClientOrderId, response_to: CancelKind) {
        let reject = OrderCancelReject {
            order_id: id(order),
            cl_ord_id: id(request),
            orig_cl_ord_id: id(order),
            ord_status: OrdStatus::Filled,
            response_to,
            reason: None,
            text: Reason::EMPTY,
        };
        self.connection
            .send(OrderCancelReject::MSG_TYPE, |e, _| reject.encode(e));
    }
}

impl Host for OverFix {
    fn message(&mut self, _: Nanos, message: &[u8]) {
        self.lockstep.message(message);
    }

    fn report(&mut self, _: Nanos, report: &OrderReport) {
        match report.kind {
            ReportKind::CancelRejected => {
                let cancel = self.cancels.remove(&report.id).expect("it was asked for");
                self.rejection(report.id, cancel, CancelKind::Cancel);
            }
            ReportKind::ReplaceRejected { by } => self.rejection(report.id, by, CancelKind::Replace),
            _ => self.execution(report),
        }
        self.lockstep.reported();
    }

    fn quote_report(&mut self, _: Nanos, report: &QuoteReport<'_>) {
        match *report {
            QuoteReport::Answered { id, .. } => self.connection.send(b"b", |e, _| {
                e.unsigned(tag::QUOTE_ID, id.0);
                e.unsigned(tag::QUOTE_STATUS, 0);
            }),
            QuoteReport::Cancelled { id, .. } => self.connection.send(b"AI", |e, _| {
                e.unsigned(tag::QUOTE_ID, id.0);
                e.unsigned(tag::QUOTE_STATUS, 1);
            }),
            QuoteReport::Filled {
                name,
                side,
                qty,
                price,
                of,
            } => {
                let mut all = self.names.iter();
                let instrument = all
                    .find(|(_, known)| **known == name)
                    .map(|(instrument, _)| *instrument);
                self.executions += 1;
                let execution = ExecutionReport {
                    order_id: Id::from_number(name),
                    cl_ord_id: Id::from_number(name),
                    orig_cl_ord_id: Id::EMPTY,
                    exec_id: Id::from_number(self.executions),
                    exec_type: ExecType::Trade,
                    ord_status: OrdStatus::PartiallyFilled,
                    ord_rej_reason: None,
                    symbol: symbol_of(instrument.expect("it was quoted")),
                    side,
                    qty: of.1,
                    order_type: OrderType::Limit,
                    price: Some(of.0),
                    stop: None,
                    is_working: false,
                    time_in_force: TimeInForce::Day,
                    last_qty: qty,
                    last_px: Some(price),
                    leaves_qty: Qty(of.1.0.saturating_sub(qty.0)),
                    cum_qty: qty,
                    avg_px: price,
                    transact_time: now(),
                    cause: None,
                    text: Reason::EMPTY,
                };
                self.connection
                    .send(ExecutionReport::MSG_TYPE, |e, stamp| execution.encode(e, stamp));
            }
            _ => panic!("{report:?}: the venue does not"),
        }
        self.lockstep.reported();
    }

    fn requests(&mut self) -> Vec<Request> {
        let count = self.lockstep.take_sent();
        while self.requests.len() < count {
            for request in self.connection.receive(request_of) {
                let request = self.note(request);
                self.requests.push(request);
            }
        }
        self.requests.drain(..count).collect()
    }

    fn finish(self) -> Vec<Said> {
        self.lockstep.finish()
    }
}

/// A request as it came.
enum Asked {
    New(NewOrderSingle),
    Replace(OrderCancelReplaceRequest),
    Cancel(OrderCancelRequest),
    Quotes {
        id: u64,
        lines: Vec<QuoteLine>,
        is_cancel: bool,
    },
}

/// An entry of a mass quote, or of a cancellation of quotes.
fn line_of(entry: &Fields<'_>) -> QuoteLine {
    let side = |price: u32, size: u32| {
        let price = entry
            .find(price)
            .map(|field| entry.price(field).expect("a price"));
        let size = entry.find(size).map(|field| entry.qty(field).expect("a size"));
        (price.unwrap_or_default(), size.unwrap_or_default())
    };
    let name = entry.find(tag::QUOTE_ENTRY_ID);
    let symbol = entry.find(tag::SYMBOL).expect("a symbol");
    QuoteLine {
        name: name.map_or(0, |field| entry.unsigned(field).expect("a name")),
        symbol: Symbol::new(entry.value(symbol)).expect("a symbol"),
        sides: [
            side(tag::BID_PX, tag::BID_SIZE),
            side(tag::OFFER_PX, tag::OFFER_SIZE),
        ],
    }
}

fn quotes_of(m: &Message<'_>, is_cancel: bool) -> Asked {
    let id = m.find(tag::QUOTE_ID).expect("a QuoteID");
    let lines = match is_cancel {
        true => {
            let entries = m.group::<QuoteEntries>().expect("entries");
            entries.map(|entry| line_of(&entry)).collect()
        }
        false => {
            let sets = m.group::<QuoteSets>().expect("a set");
            let entries = sets.flat_map(|set| set.group::<QuoteEntries>().expect("entries"));
            entries.map(|entry| line_of(&entry)).collect()
        }
    };
    Asked::Quotes {
        id: m.unsigned(id).expect("a number"),
        lines,
        is_cancel,
    }
}

fn request_of(m: &Message<'_>) -> Asked {
    match m.msg_type() {
        NewOrderSingle::MSG_TYPE => Asked::New(NewOrderSingle::decode(m).expect("an order")),
        OrderCancelReplaceRequest::MSG_TYPE => {
            Asked::Replace(OrderCancelReplaceRequest::decode(m).expect("a replacement"))
        }
        OrderCancelRequest::MSG_TYPE => Asked::Cancel(OrderCancelRequest::decode(m).expect("a cancellation")),
        b"i" => quotes_of(m, false),
        b"Z" => quotes_of(m, true),
        other => panic!("35={}: the strategy does not", other.escape_ascii()),
    }
}

/// What the venue says.
enum Heard {
    Order(OrderReport),
    Quoted(ClientOrderId),
    QuotesCancelled(ClientOrderId),
    QuoteFilled(Box<ExecutionReport>),
}

fn heard_of(m: &Message<'_>, is_quote: impl Fn(u64) -> bool) -> Heard {
    let mut refused: Vec<u64> = Vec::with_capacity(8);
    let answer = read_quote_answer(m, &mut refused).expect("an answer");
    match answer {
        Some(QuoteAnswer::Answered { id, is_rejected }) => {
            assert!(!is_rejected && refused.is_empty(), "the venue takes them all");
            return Heard::Quoted(ClientOrderId(id));
        }
        Some(QuoteAnswer::Cancelled { id, is_done: true }) => {
            return Heard::QuotesCancelled(ClientOrderId(id));
        }
        Some(other) => panic!("{other:?}: the venue does not"),
        None => {}
    }
    if m.msg_type() == ExecutionReport::MSG_TYPE {
        let execution = ExecutionReport::decode(m).expect("an execution report");
        if execution.cl_ord_id.to_number().is_some_and(is_quote) {
            return Heard::QuoteFilled(Box::new(execution));
        }
    }
    Heard::Order(report_of(m))
}

/// Tells the strategy.
fn tell(host: &mut InMemory<impl Channel>, heard: &Heard) {
    let now = now();
    match heard {
        Heard::Order(report) => host.report(now, report),
        Heard::Quoted(id) => host.quote_report(
            now,
            &QuoteReport::Answered {
                id: *id,
                is_rejected: false,
                refused: &[],
            },
        ),
        Heard::QuotesCancelled(id) => {
            let (id, is_done) = (*id, true);
            host.quote_report(now, &QuoteReport::Cancelled { id, is_done });
        }
        Heard::QuoteFilled(e) => host.quote_report(
            now,
            &QuoteReport::Filled {
                name: number(e.cl_ord_id).0,
                side: e.side,
                qty: e.last_qty,
                price: e.last_px.expect("the price of a fill"),
                of: (e.price.expect("the price of the quote"), e.qty),
            },
        ),
    }
}

/// A message of the venue as a report.
fn report_of(m: &Message<'_>) -> OrderReport {
    let (id, kind) = match m.msg_type() {
        ExecutionReport::MSG_TYPE => {
            let e = ExecutionReport::decode(m).expect("an execution report");
            let (named, before) = (number(e.cl_ord_id), e.orig_cl_ord_id);
            let of = if before.is_empty() { named } else { number(before) };
            match e.exec_type {
                ExecType::New => (of, ReportKind::Accepted),
                ExecType::Canceled => (of, ReportKind::Cancelled),
                ExecType::Restated if e.is_working => (of, ReportKind::Triggered),
                ExecType::Replaced => {
                    let replaced = ReportKind::Replaced {
                        by: named,
                        venue_id: None,
                    };
                    (of, replaced)
                }
                ExecType::Trade => {
                    let filled = ReportKind::Filled {
                        qty: e.last_qty,
                        price: e.last_px.expect("the price of a fill"),
                        cumulative: e.cum_qty,
                    };
                    (of, filled)
                }
                other => panic!("{other:?}: the venue does not"),
            }
        }
        OrderCancelReject::MSG_TYPE => {
            let reject = OrderCancelReject::decode(m).expect("a rejection");
            let kind = match reject.response_to {
                CancelKind::Cancel => ReportKind::CancelRejected,
                CancelKind::Replace => ReportKind::ReplaceRejected {
                    by: number(reject.cl_ord_id),
                },
            };
            (number(reject.orig_cl_ord_id), kind)
        }
        other => panic!("35={}: the venue does not", other.escape_ascii()),
    };
    OrderReport {
        id,
        venue_id: None,
        kind,
    }
}

/// The strategy's end.
struct TradingOverFix<C> {
    host: InMemory<C>,
    connection: Connection,
}

fn log_on<C: Channel>(host: InMemory<C>, tcp: TcpStream) -> TradingOverFix<C> {
    let connection = Connection::new(Role::Initiator, tcp);
    TradingOverFix { host, connection }
}

impl<C: Channel> Trading<C> for TradingOverFix<C> {
    fn host(&mut self) -> &mut InMemory<C> {
        &mut self.host
    }

    fn end(self) -> InMemory<C> {
        self.host
    }

    fn now(&self) -> Nanos {
        now()
    }

    fn receive(&mut self) -> usize {
        let is_quote = |number| self.host.conductor.is_quote(number);
        let heard = self.connection.receive(|m| heard_of(m, is_quote));
        heard.iter().for_each(|heard| tell(&mut self.host, heard));
        heard.len()
    }

    fn send(&mut self) -> usize {
        let requests = self.host.requests();
        for request in &requests {
            match request {
                Request::Order(request) => enter(&mut self.connection, request),
                Request::Quotes {
                    id,
                    entries,
                    is_cancel,
                } => quote(&mut self.connection, *id, entries, *is_cancel),
            }
        }
        requests.len()
    }
}

/// Sends a mass quote, or a cancellation of quotes.
fn quote(connection: &mut Connection, id: ClientOrderId, entries: &[QuoteEntry], is_cancel: bool) {
    let lines = entries.iter().map(|entry| QuoteLine {
        name: entry.name,
        symbol: symbol_of(entry.quote.instrument),
        sides: entry.quote.sides,
    });
    let lines: Vec<QuoteLine> = lines.collect();
    match is_cancel {
        true => connection.send(b"Z", |e, _| put_cancel_quotes(e, id.0, &lines)),
        false => connection.send(b"i", |e, _| put_mass_quote(e, id.0, None, false, &lines)),
    }
}

/// Sends a request.
fn enter(connection: &mut Connection, request: &OrderIntent) {
    let message = OrderRequest::of(request, symbol_of(request.instrument()), now());
    connection.send(message.msg_type(), |e, stamp| message.encode(e, stamp));
}
