//! OUCH 5.0 order entry over SoupBinTCP: users log in, what they are told is numbered and kept, and who comes
//! again gets what it missed.
//!
//! The rules are those of OUCH 5.0 (2023-05). A number (UserRefNum) not above the last one is ignored, so
//! what is sent again does no harm. Of what the specification leaves to the venue: an order that is cut to
//! nothing at once is accepted live and then cancelled; a replacement with the same price and no more shares
//! keeps its priority; a modification may ask for more shares, which costs the priority; orders good till a
//! time, pegged orders, minimum quantities and discretion are rejected; only the series of numbers 0
//! (UserRefIdx) is taken.

mod answers;
mod requests;

use alloc::vec::Vec;
use core::cmp::Ordering;

use tickwire_fix::Id;
use tickwire_market::{InstrumentId, Nanos, OrderId, Price, Qty, SeqNo};
use tickwire_persist::{Bytes, Damaged, Persist, PersistValue, StateReader, persist};
use tickwire_wire::layout::{Alpha, Char};
use tickwire_wire::ouch50::{
    AccountQueryResponse, Appendage, CancelReject, DisableOrderEntryResponse, EnableOrderEntryResponse,
    EnterOrder, EventCode, Inbound, MESSAGE_SIZE_MAX, MassCancel, MassCancelResponse, ModifyOrder, OptionTag,
    Options, OrderModified, OrderPriorityUpdate, OrderRejected, OrderSide, QUANTITY_MAX, ReplaceOrder,
    SystemEvent, encode, parse_inbound, reject,
};
use tickwire_wire::soupbintcp::RejectReason;
use tickwire_wire::zerocopy::IntoBytes;

use super::fix::FixGateway;
use super::{
    ClientOrder, Hold, OrderEntryConfig, OrderNotice, Origin, OuchPort, Outcome, RequestScope, Route, Said,
    deliver,
};
use crate::mold::MessageStore;
use crate::order::{NewOrder, StateHash};
use crate::soup::{SoupRequest, SoupServer, SoupServerConfig};
use crate::tape::VenueTime;
use answers::reason_of;
use requests::{price_of, read_order};

/// Bytes of messages kept for each user, and messages.
const STORE_BYTES: usize = 16 << 20;
const STORE_MESSAGES: usize = 1 << 18;
/// Bytes that wait in a connection before more of the store is put into it.
const PULL_BYTES: usize = 64 << 10;

/// What an order has on the wire and the engine does not know.
#[derive(Clone, Copy)]
struct Terms {
    user_ref: u32,
    /// Of the order before, while a replacement is being told.
    orig_user_ref: u32,
    side: u8,
    time_in_force: u8,
    display: u8,
    capacity: u8,
    iso: u8,
    cross: u8,
    cl_ord_id: Alpha<14>,
    post_only: bool,
}

struct Port {
    port: OuchPort,
    store: MessageStore,
    /// The highest UserRefNum processed.
    last_ref: u32,
    is_enabled: bool,
    /// Its connection.
    connection: Option<usize>,
}

struct Connection {
    soup: SoupServer,
    /// Whose it is, once it has logged in.
    port: Option<usize>,
    /// The next message of the store to be sent.
    next: u64,
}

pub(super) struct OuchGateway {
    session: [u8; 10],
    ports: Vec<Port>,
    connections: Vec<Connection>,
    terms: Vec<Terms>,
    now: Nanos,
    time: VenueTime,
    is_over: bool,
}

impl OuchGateway {
    pub(super) fn new(config: &OrderEntryConfig) -> OuchGateway {
        let port = |port: &OuchPort| Port {
            port: *port,
            store: MessageStore::new(STORE_BYTES, STORE_MESSAGES),
            last_ref: 0,
            is_enabled: true,
            connection: None,
        };
        let connection = |_| Connection {
            soup: SoupServer::new(SoupServerConfig::default(), PULL_BYTES * 2),
            port: None,
            next: 1,
        };
        OuchGateway {
            session: config.ouch_session,
            ports: config.ouch.iter().map(port).collect(),
            connections: (0..config.ouch_connections).map(connection).collect(),
            terms: Vec::new(),
            now: Nanos::ZERO,
            time: 0,
            is_over: false,
        }
    }

    pub(super) fn hash(&self, hash: &mut StateHash) {
        for port in &self.ports {
            hash.word(port.store.next().0);
            hash.word(u64::from(port.last_ref) << 1 | u64::from(port.is_enabled));
        }
    }

    pub(super) fn has_clients(&self) -> bool {
        self.connections
            .iter()
            .any(|connection| connection.port.is_some())
    }

    pub(super) fn connections(&self) -> usize {
        self.connections.len()
    }

    /// The time of what is said from now on.
    pub(super) fn set_time(&mut self, time: VenueTime) {
        self.time = self.time.max(time);
    }

    pub(super) fn begin(&mut self, time: VenueTime) {
        self.time = time;
        self.tell_all(EventCode::StartOfDay);
    }

    /// No more orders: everybody is told, and hung up on once everything is sent.
    pub(super) fn end(&mut self, time: VenueTime) {
        self.time = time;
        self.tell_all(EventCode::EndOfDay);
        self.is_over = true;
    }

    fn tell_all(&mut self, event: EventCode) {
        for port in 0..self.ports.len() {
            let message = SystemEvent {
                timestamp: self.time.into(),
                event: event.into(),
                ..SystemEvent::NEW
            };
            self.send(port, message.as_bytes(), None);
        }
    }

    pub(super) fn connect(&mut self, id: usize, now: Nanos) -> bool {
        self.now = now;
        match self.connections.get_mut(id).filter(|c| !c.soup.is_connected()) {
            Some(connection) => {
                connection.soup.connect(now);
                connection.port = None;
                true
            }
            None => false,
        }
    }

    pub(super) fn ports(&self) -> usize {
        self.ports.len()
    }

    /// Whose risk a user's orders are, and whether he is logged in.
    pub(super) fn standing(&self, port: usize) -> (crate::order::Firm, bool) {
        let port = &self.ports[port];
        (port.port.firm, port.connection.is_some())
    }

    pub(super) fn name(&self, port: usize) -> &str {
        let port = self.ports.get(port);
        let name = port.map(|port| port.port.username.trimmed());
        name.and_then(|name| core::str::from_utf8(name).ok())
            .unwrap_or("")
    }

    /// Whose connection it was, and whether his open orders are to be cancelled.
    pub(super) fn disconnect(&mut self, id: usize) -> Option<(Route, bool)> {
        let connection = self.connections.get_mut(id)?;
        connection.soup.disconnect();
        let at = connection.port.take()?;
        let port = &mut self.ports[at];
        port.connection = None;
        Some((Route::Ouch(at), port.port.cancel_on_disconnect))
    }

    pub(super) fn wants_close(&self, id: usize) -> bool {
        self.connections.get(id).is_some_and(|c| c.soup.wants_close())
    }

    pub(super) fn handle_bytes(
        &mut self,
        id: usize,
        bytes: &[u8],
        scope: &mut RequestScope<'_, '_>,
        fix: &mut FixGateway,
    ) -> usize {
        (self.now, self.time) = (scope.now, scope.context.time);
        let mut taken = 0;
        loop {
            let Some(connection) = self.connections.get_mut(id) else {
                return bytes.len();
            };
            let n = connection.soup.handle_bytes(scope.now, &bytes[taken..]);
            taken += n;
            while let Some(request) = self.connections[id].soup.poll_event() {
                match request {
                    SoupRequest::Login(login) => self.log_in(id, &login),
                    SoupRequest::Message(size) => {
                        // A copy: the message lies in what the handlers change. Longer ones are none of
                        // OUCH's.
                        let mut message = [0; 256];
                        if let Some(message) = message.get_mut(..size) {
                            message.copy_from_slice(self.connections[id].soup.message());
                            self.on_message(id, message, scope);
                            deliver(scope.said, fix, self);
                        }
                    }
                }
            }
            if taken == bytes.len() || n == 0 {
                return taken;
            }
        }
    }

    pub(super) fn handle_timeout(&mut self, now: Nanos) {
        for connection in &mut self.connections {
            if connection.soup.poll_timeout().is_some_and(|due| due <= now) {
                connection.soup.handle_timeout(now);
                self.now = now;
            }
        }
    }

    pub(super) fn poll_timeout(&self) -> Option<Nanos> {
        self.connections
            .iter()
            .filter_map(|c| c.soup.poll_timeout())
            .min()
    }

    pub(super) fn poll_transmit<'b>(&mut self, id: usize, buf: &'b mut [u8]) -> Option<&'b [u8]> {
        let now = self.now;
        self.pull(id);
        self.connections.get_mut(id)?.soup.poll_transmit(now, buf)
    }

    /// Puts what its user has not been sent yet into a connection, as long as little waits in it.
    fn pull(&mut self, id: usize) {
        let Some(connection) = self.connections.get_mut(id) else {
            return;
        };
        let Some(port) = connection.port.filter(|_| connection.soup.is_serving()) else {
            return;
        };
        let store = &self.ports[port].store;
        while connection.soup.waiting() < PULL_BYTES {
            match store.recent(SeqNo(connection.next)) {
                Some(message) => connection.soup.send(message),
                // Forgotten while the client did not read.
                None if connection.next < store.recent_from().0 => return connection.soup.close(),
                None => break,
            }
            connection.next += 1;
        }
        if self.is_over && connection.next >= store.next().0 {
            connection.soup.end();
        }
    }

    fn log_in(&mut self, id: usize, login: &crate::soup::SoupLogin) {
        let same = |a: &[u8], b: &[u8]| a.trim_ascii().eq_ignore_ascii_case(b.trim_ascii());
        let is_user = |port: &Port| {
            let (user, password) = (&port.port.username, &port.port.password);
            same(&user.0, &login.username.0)
                && (password.trimmed().is_empty() || same(&password.0, &login.password.0))
        };
        let found = self.ports.iter().position(is_user);
        let connection = &mut self.connections[id];
        let Some(at) = found else {
            return connection.soup.reject(RejectReason::NotAuthorized);
        };
        let port = &mut self.ports[at];
        if !login.is_for(&self.session) || port.connection.is_some() {
            return connection.soup.reject(RejectReason::SessionNotAvailable);
        }
        let next = match login.from.0 {
            0 => port.store.next(),
            from => SeqNo(from).min(port.store.next()),
        };
        if next < port.store.first() {
            return connection.soup.reject(RejectReason::SessionNotAvailable);
        }
        connection.soup.accept(&self.session, next);
        (connection.port, connection.next) = (Some(at), next.0);
        port.connection = Some(id);
    }

    /// Keeps a message for its user; connections take it from there.
    fn send(&mut self, port: usize, layout: &[u8], appendage: Option<&Appendage>) {
        let mut buffer = [0; MESSAGE_SIZE_MAX];
        let length = encode(layout, appendage, &mut buffer).unwrap_or(0);
        self.ports[port].store.push(&buffer[..length]);
    }

    fn on_message(&mut self, id: usize, bytes: &[u8], scope: &mut RequestScope<'_, '_>) {
        let Some(port) = self.connections[id].port else {
            return;
        };
        // What cannot be read has no number to answer to: it is ignored.
        let Ok((message, options)) = parse_inbound(bytes) else {
            return;
        };
        match message {
            Inbound::EnterOrder(m) => self.enter(port, m, options, scope),
            Inbound::ReplaceOrder(m) => self.replace(port, m, scope),
            Inbound::CancelOrder(m) => self.reduce(port, m.user_ref_num.get(), m.quantity.get(), scope),
            Inbound::ModifyOrder(m) => self.modify(port, m, scope),
            Inbound::MassCancel(m) => self.mass_cancel(port, m, options, scope),
            Inbound::DisableOrderEntry(m) => self.switch(port, m.user_ref_num.get(), m.firm, false),
            Inbound::EnableOrderEntry(m) => self.switch(port, m.user_ref_num.get(), m.firm, true),
            Inbound::AccountQuery(_) => {
                let message = AccountQueryResponse {
                    timestamp: self.time.into(),
                    next_user_ref_num: self.ports[port].last_ref.saturating_add(1).into(),
                    ..AccountQueryResponse::NEW
                };
                self.send(port, message.as_bytes(), None);
            }
        }
    }

    /// Whether a number is new; then it is used up.
    fn is_new(&mut self, port: usize, user_ref: u32) -> bool {
        let last = &mut self.ports[port].last_ref;
        let is_new = user_ref > *last;
        *last = (*last).max(user_ref);
        is_new
    }

    fn refuse(&mut self, port: usize, user_ref: u32, cl_ord_id: Alpha<14>, reason: u16) {
        let message = OrderRejected {
            timestamp: self.time.into(),
            user_ref_num: user_ref.into(),
            reason: reason.into(),
            cl_ord_id,
            ..OrderRejected::NEW
        };
        self.send(port, message.as_bytes(), None);
    }

    fn enter(&mut self, port: usize, m: &EnterOrder, options: Options<'_>, scope: &mut RequestScope<'_, '_>) {
        let user_ref = m.user_ref_num.get();
        if !self.is_new(port, user_ref) {
            return;
        }
        let Port {
            port: own,
            is_enabled,
            ..
        } = &self.ports[port];
        let (own, is_enabled) = (*own, *is_enabled);
        let new = match read_order(m, options, &own) {
            Ok(new) => new,
            Err(reason) => return self.refuse(port, user_ref, m.cl_ord_id, reason),
        };
        let symbol = m.symbol.symbol().unwrap_or_default();
        let instrument = scope.books.instrument(&symbol);
        self.terms.push(Terms {
            user_ref,
            orig_user_ref: user_ref,
            side: m.side.0,
            time_in_force: m.time_in_force.0,
            display: m.display.0,
            capacity: m.capacity.0,
            iso: m.iso_eligible.0,
            cross: m.cross_type.0,
            cl_ord_id: m.cl_ord_id,
            post_only: new.post_only,
        });
        let order = ClientOrder {
            route: Route::Ouch(port),
            firm: own.firm,
            cl_ord_id: Id::from_number(user_ref.into()),
            venue_id: OrderId(0),
            order_id: OrderId(0),
            instrument: instrument.unwrap_or(InstrumentId::WHOLE_FEED),
            symbol,
            side: new.side,
            order_type: new.order_type,
            price: new.price,
            stop: None,
            display: new.display,
            qty: new.qty,
            time_in_force: new.time_in_force,
            filled: Qty::ZERO,
            broken: Qty::ZERO,
            cost: 0,
            outcome: Outcome::Open,
            origin: Origin {
                cause: None,
                received: scope.now,
            },
            own: self.terms.len() as u32 - 1,
        };
        let request = NewOrder {
            instrument: order.instrument,
            ..new
        };
        scope.enter(order, request, is_enabled);
    }

    /// The open order of a number; of a chain only the last one's.
    fn open_order(&self, port: usize, user_ref: u32, scope: &RequestScope<'_, '_>) -> Option<usize> {
        let row = scope
            .books
            .find(Route::Ouch(port), &Id::from_number(user_ref.into()))?;
        let order = &scope.books.ledger[row];
        let is_it = self
            .terms
            .get(order.own as usize)
            .is_some_and(|t| t.user_ref == user_ref);
        (is_it && order.outcome == Outcome::Open).then_some(row)
    }

    fn replace(&mut self, port: usize, m: &ReplaceOrder, scope: &mut RequestScope<'_, '_>) {
        let (orig, user_ref) = (m.orig_user_ref_num.get(), m.user_ref_num.get());
        let Some(row) = self.open_order(port, orig, scope) else {
            return;
        };
        if user_ref <= self.ports[port].last_ref {
            return;
        }
        let before = scope.books.ledger[row];
        if scope.hold(&before) != Hold::Free {
            self.ports[port].last_ref = user_ref;
            return self.refuse(port, user_ref, m.cl_ord_id, reject::REPLACE_NOT_ALLOWED);
        }
        let id = Id::from_number(user_ref.into());
        let price = m.price.checked_price().filter(|p| *p > Price::ZERO);
        let qty = m.quantity.get();
        let is_valid = (1..=QUANTITY_MAX).contains(&qty) && price.is_some() && qty > before.executed().0;
        if !is_valid {
            // The old order goes, the number is not used up.
            let _ = scope.cancel(row, before.cl_ord_id, before.cl_ord_id);
            return;
        }
        self.ports[port].last_ref = user_ref;
        if !scope.context.is_open || !scope.books.name(Route::Ouch(port), &id, row) {
            return self.refuse(port, user_ref, m.cl_ord_id, reject::REPLACE_NOT_ALLOWED);
        }
        let at = before.own as usize;
        let old = self.terms[at];
        self.terms[at] = Terms {
            user_ref,
            orig_user_ref: orig,
            iso: m.iso_eligible.0,
            cl_ord_id: m.cl_ord_id,
            ..old
        };
        let changed = ClientOrder {
            cl_ord_id: id,
            qty: Qty(qty),
            price: price.unwrap_or(before.price),
            ..before
        };
        if let Err(why) = scope.replace(row, changed, before.cl_ord_id) {
            self.terms[at] = old;
            self.refuse(port, user_ref, m.cl_ord_id, reason_of(why));
        }
    }

    /// A new intended size; 0 is none. Nothing happens if it is not smaller.
    fn reduce(&mut self, port: usize, user_ref: u32, intended: u32, scope: &mut RequestScope<'_, '_>) {
        let Some(row) = self.open_order(port, user_ref, scope) else {
            return;
        };
        let order = scope.books.ledger[row];
        let id = order.cl_ord_id;
        let keeps = intended.saturating_sub(order.executed().0);
        let open = order.leaves().0;
        match (scope.hold(&order), keeps) {
            (Hold::Free, 0) => drop(scope.cancel(row, id, id)),
            (Hold::Free, _) if keeps < open => drop(scope.reduce(row, Qty(open - keeps), id, id)),
            (Hold::Waits, 0) => scope.cancel_later(row, id, id),
            (Hold::Waits | Hold::Stays, _) if keeps < open => self.reject_cancel(port, user_ref),
            _ => {}
        }
    }

    fn modify(&mut self, port: usize, m: &ModifyOrder, scope: &mut RequestScope<'_, '_>) {
        let user_ref = m.user_ref_num.get();
        let Some(row) = self.open_order(port, user_ref, scope) else {
            return;
        };
        let order = scope.books.ledger[row];
        let terms = self.terms[order.own as usize];
        let is_allowed =
            matches!((terms.side, m.side.0), (b'S', b'E' | b'T') | (b'E', b'T')) || terms.side == m.side.0;
        let (keeps, open) = (
            m.quantity.get().saturating_sub(order.executed().0),
            order.leaves().0,
        );
        if !is_allowed || keeps == 0 || m.quantity.get() > QUANTITY_MAX {
            return;
        }
        if keeps != open && scope.hold(&order) != Hold::Free {
            return self.reject_cancel(port, user_ref);
        }
        let (id, told) = (order.cl_ord_id, scope.said.len());
        let done = match keeps.cmp(&open) {
            Ordering::Less => scope.reduce(row, Qty(open - keeps), id, id),
            Ordering::Equal => Ok(()),
            // More than it was, which costs its place. Not while the market is closed.
            Ordering::Greater if scope.context.is_open => {
                let changed = ClientOrder {
                    qty: Qty(m.quantity.get()),
                    ..order
                };
                scope.replace(row, changed, id)
            }
            Ordering::Greater => return,
        };
        if done.is_err() {
            return;
        }
        // Told as modified, not as cancelled or replaced.
        let is_this = |said: &Said| {
            matches!(said, Said::Order(saying)
                if saying.order.own == order.own
                    && saying.order.route == order.route
                    && matches!(saying.told, OrderNotice::Replaced | OrderNotice::Reduced { .. }))
        };
        let tail = scope.said.split_off(told);
        scope.said.extend(tail.into_iter().filter(|said| !is_this(said)));
        self.terms[order.own as usize].side = m.side.0;
        let message = OrderModified {
            timestamp: self.time.into(),
            user_ref_num: user_ref.into(),
            side: m.side,
            quantity: keeps.into(),
            ..OrderModified::NEW
        };
        self.send(port, message.as_bytes(), None);
        let now = &scope.books.ledger[row];
        if now.order_id != order.order_id {
            let message = OrderPriorityUpdate {
                timestamp: self.time.into(),
                user_ref_num: user_ref.into(),
                price: price_of(now),
                display: Char(terms.display),
                order_ref_num: now.order_id.0.into(),
                ..OrderPriorityUpdate::NEW
            };
            self.send(port, message.as_bytes(), None);
        }
    }

    /// An order's cancel, or change of size, cannot be done now.
    fn reject_cancel(&mut self, port: usize, user_ref: u32) {
        let message = CancelReject {
            timestamp: self.time.into(),
            user_ref_num: user_ref.into(),
            ..CancelReject::NEW
        };
        self.send(port, message.as_bytes(), None);
    }

    fn is_own_firm(&self, port: usize, firm: &Alpha<4>) -> bool {
        let own = &self.ports[port].port.firm_name;
        firm.trimmed().is_empty() || firm.trimmed() == own.trimmed()
    }

    fn mass_cancel(
        &mut self,
        port: usize,
        m: &MassCancel,
        options: Options<'_>,
        scope: &mut RequestScope<'_, '_>,
    ) {
        let user_ref = m.user_ref_num.get();
        if !self.is_new(port, user_ref) {
            return;
        }
        if !self.is_own_firm(port, &m.firm) {
            return self.refuse(port, user_ref, Alpha([b' '; 14]), reject::FIRM);
        }
        let symbol = m.symbol.symbol().filter(|s| !s.is_empty());
        let instrument = symbol.map(|s| scope.books.instrument(&s).unwrap_or(InstrumentId::WHOLE_FEED));
        let side = options
            .char(OptionTag::Side)
            .and_then(OrderSide::from_wire)
            .map(OrderSide::side);
        let message = MassCancelResponse {
            timestamp: self.time.into(),
            user_ref_num: user_ref.into(),
            firm: m.firm,
            symbol: m.symbol,
            ..MassCancelResponse::NEW
        };
        self.send(port, message.as_bytes(), None);
        scope.sweep_for_client(|order| {
            order.route == Route::Ouch(port)
                && instrument.is_none_or(|i| order.instrument == i)
                && side.is_none_or(|s| order.side == s)
        });
    }

    fn switch(&mut self, port: usize, user_ref: u32, firm: Alpha<4>, is_enabled: bool) {
        if !self.is_new(port, user_ref) {
            return;
        }
        if !self.is_own_firm(port, &firm) {
            return self.refuse(port, user_ref, Alpha([b' '; 14]), reject::FIRM);
        }
        self.ports[port].is_enabled = is_enabled;
        let (timestamp, user_ref_num) = (self.time.into(), user_ref.into());
        if is_enabled {
            let message = EnableOrderEntryResponse {
                timestamp,
                user_ref_num,
                firm,
                ..EnableOrderEntryResponse::NEW
            };
            self.send(port, message.as_bytes(), None);
        } else {
            let message = DisableOrderEntryResponse {
                timestamp,
                user_ref_num,
                firm,
                ..DisableOrderEntryResponse::NEW
            };
            self.send(port, message.as_bytes(), None);
        }
    }
}

impl Persist for Terms {
    fn save(&self, out: &mut Bytes) {
        (self.user_ref, self.orig_user_ref).save(out);
        [
            self.side,
            self.time_in_force,
            self.display,
            self.capacity,
            self.iso,
            self.cross,
        ]
        .save(out);
        (self.cl_ord_id.0, self.post_only).save(out);
    }

    fn load(&mut self, from: &mut StateReader<'_>) -> Result<(), Damaged> {
        *self = Self::read(from)?;
        Ok(())
    }
}

impl PersistValue for Terms {
    fn read(from: &mut StateReader<'_>) -> Result<Terms, Damaged> {
        let (user_ref, orig_user_ref) = PersistValue::read(from)?;
        let [side, time_in_force, display, capacity, iso, cross] = PersistValue::read(from)?;
        let (cl_ord_id, post_only) = PersistValue::read(from)?;
        Ok(Terms {
            user_ref,
            orig_user_ref,
            side,
            time_in_force,
            display,
            capacity,
            iso,
            cross,
            cl_ord_id: Alpha(cl_ord_id),
            post_only,
        })
    }
}

persist!(struct Port { store, last_ref, is_enabled, connection } not { port });
persist!(struct Connection { soup, port, next });
persist!(struct OuchGateway { terms, now, time, is_over } each { ports, connections } not { session });
