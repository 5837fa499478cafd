//! The state of our orders, by our own number.
//!
//! Numbers are issued in ascending order, so the table is an array indexed by the number's low bits: no
//! search, no hash. An ended order stays readable until its place is needed again; a number whose place still
//! holds an open order is skipped.

use alloc::vec;
use alloc::vec::Vec;
use tickwire_market::{
    Cause, ClientOrderId, InstrumentId, OrderId, OrderType, Price, Qty, Side, TimeInForce,
};

/// How far an order has come. FIX 4.4 OrdStatus (39).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[repr(u8)]
pub enum OrderState {
    /// Sent, not acknowledged (39=A).
    #[default]
    PendingNew = 0,
    /// In the venue's book (39=0).
    New = 1,
    /// Part of it traded, the rest is open (39=1).
    PartiallyFilled = 2,
    /// All of it traded (39=2).
    Filled = 3,
    /// What had not traded was cancelled: by request or by its time in force (39=4, 39=C).
    Cancelled = 4,
    /// Refused by the venue, or never sent (39=8).
    Rejected = 5,
    /// Another order has taken its place (FIX 4.2: 39=5).
    Replaced = 6,
}

impl OrderState {
    /// Every state, in the order of the discriminants.
    pub const ALL: [OrderState; 7] = [
        OrderState::PendingNew,
        OrderState::New,
        OrderState::PartiallyFilled,
        OrderState::Filled,
        OrderState::Cancelled,
        OrderState::Rejected,
        OrderState::Replaced,
    ];

    /// Whether it may still trade.
    #[inline]
    pub const fn is_open(self) -> bool {
        matches!(
            self,
            OrderState::PendingNew | OrderState::New | OrderState::PartiallyFilled
        )
    }
}

/// An order to be entered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NewOrder {
    /// What to trade.
    pub instrument: InstrumentId,
    /// Buy is [`Side::Bid`].
    pub side: Side,
    /// Limit price.
    pub price: Price,
    /// How much.
    pub qty: Qty,
    /// What triggered it.
    pub cause: Cause,
}

/// How an order is meant.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Terms {
    /// At a limit or at any price.
    pub order_type: OrderType,
    /// Of a stop order the price at which a trade triggers it.
    pub stop: Option<Price>,
    /// How long it lives.
    pub time_in_force: TimeInForce,
}

/// One of our orders.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Order {
    /// Our number.
    pub id: ClientOrderId,
    /// The venue's number, once it told.
    pub venue_id: Option<OrderId>,
    /// What it trades.
    pub instrument: InstrumentId,
    /// Buy is [`Side::Bid`].
    pub side: Side,
    /// How far it has come.
    pub state: OrderState,
    /// Whether its cancellation has been asked for.
    pub is_cancel_requested: bool,
    /// Limit price; of a market order the one that it was checked by.
    pub price: Price,
    /// How much was ordered.
    pub qty: Qty,
    /// How much of it has traded.
    pub filled: Qty,
    /// How much had traded and was taken back by the venue: it does not come back to the order.
    pub broken: Qty,
    /// At a limit or at any price.
    pub order_type: OrderType,
    /// Of a stop order the price at which a trade triggers it.
    pub stop: Option<Price>,
    /// Whether that has happened: it is in the book, or over.
    pub is_triggered: bool,
    /// How long it lives.
    pub time_in_force: TimeInForce,
    /// The order whose place it is to take, or has taken.
    pub replaces: Option<ClientOrderId>,
    /// The order that is to take its place, or has.
    pub replaced_by: Option<ClientOrderId>,
    /// What triggered it.
    pub cause: Cause,
}

impl Order {
    /// Whether it is to take the place of another, and the venue has not said so yet.
    #[inline]
    pub const fn is_replacing(&self) -> bool {
        self.replaces.is_some() && matches!(self.state, OrderState::PendingNew)
    }

    /// Whether it is a stop order that no trade has triggered: it is in no book.
    #[inline]
    pub const fn is_waiting(&self) -> bool {
        self.stop.is_some() && !self.is_triggered
    }

    /// Whether an order of ours at `price` that may rest, or a stop order of ours with the trigger `stop`
    /// whose worst price that is, could trade with this one. A stop order that waits is met from its trigger
    /// to its worst price: what stood before its trigger has traded when that is reached.
    pub fn is_met(&self, side: Side, price: Price, stop: Option<Price>) -> bool {
        let between = |(trigger, worst): (Price, Price), price: Price, stop_side: Side| match stop_side {
            Side::Bid => trigger <= price && price <= worst,
            Side::Ask => worst <= price && price <= trigger,
        };
        if self.side == side {
            return false;
        }
        match (stop, self.stop.filter(|_| self.is_waiting())) {
            (None, None) => match side {
                Side::Bid => price >= self.price,
                Side::Ask => price <= self.price,
            },
            (Some(trigger), None) => between((trigger, price), self.price, side),
            (None, Some(trigger)) => between((trigger, self.price), price, self.side),
            // A rise triggers the one, a fall the other.
            (Some(_), Some(_)) => false,
        }
    }

    /// What may still trade: 0 once it has ended.
    pub const fn remaining(&self) -> Qty {
        if self.state.is_open() {
            Qty(self.qty.0 - self.filled.0 - self.broken.0)
        } else {
            Qty::ZERO
        }
    }
}

/// What the venue said about an order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OrderReport {
    /// Our number of the order (of the original one when the report answers a cancel request).
    pub id: ClientOrderId,
    /// The venue's number of it, if the report names one: a rejection may not.
    pub venue_id: Option<OrderId>,
    /// What happened.
    pub kind: ReportKind,
}

/// What happened to an order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReportKind {
    /// It is in the venue's book.
    Accepted,
    /// Some of it traded.
    Filled {
        /// How much, this time. FIX LastQty (32).
        qty: Qty,
        /// At what price. FIX LastPx (31).
        price: Price,
        /// How much altogether, this execution included. FIX CumQty (14): tells a repeated report from a new
        /// one.
        cumulative: Qty,
    },
    /// The venue takes a trade of it back, which may be long over. FIX 4.4, ExecType (150) H, "Trade Cancel".
    Broken {
        /// How much had traded. FIX LastQty (32).
        qty: Qty,
        /// At what price. FIX LastPx (31).
        price: Price,
        /// How much has traded without it. FIX CumQty (14): tells a repeated report from a new one.
        cumulative: Qty,
    },
    /// A trade has triggered a stop order: it is in the book now, or trades at once.
    Triggered,
    /// What had not traded is cancelled.
    Cancelled,
    /// It is refused.
    Rejected,
    /// A request to cancel it is refused: it lives on, or had ended before.
    CancelRejected,
    /// Another order has taken its place: price and quantity have changed.
    Replaced {
        /// Our number of that order.
        by: ClientOrderId,
        /// The venue's number of that order, where it has another one.
        venue_id: Option<OrderId>,
    },
    /// A request to replace it is refused: it lives on as it was, or had ended before.
    ReplaceRejected {
        /// Our number of the order that was to take its place.
        by: ClientOrderId,
    },
}

impl ReportKind {
    /// Whether it says of a trade that it was, or that it was not after all: one that is not applied leaves
    /// the position unknown.
    pub fn is_trade(&self) -> bool {
        matches!(self, ReportKind::Filled { .. } | ReportKind::Broken { .. })
    }
}

/// Why a report was not applied. The table is as it was.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ReportError {
    /// No such order, or so old that its place has been used again.
    Unknown,
    /// It says what has been said before.
    Duplicate,
    /// More traded than was ordered.
    Overfill,
    /// The cumulative quantity shows that an earlier report never came.
    Missed,
    /// It cannot follow what was reported before: a fill of an ended order, a rejection of an accepted one.
    OutOfOrder,
}

/// What a report changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Change {
    /// The order as it is now.
    pub order: Order,
    /// How much traded by this report.
    pub filled: Qty,
    /// How much had traded and did not, by this report.
    pub broken: Qty,
    /// How much will not trade any more: left over when the order ended without a fill.
    pub released: Qty,
}

/// Every place holds an open order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OrdersFull;

/// No place.
const END: u32 = u32::MAX;

/// A place of the table before an order that is entered to be forgotten again.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BeforeOrder {
    /// The number that the order will have.
    id: ClientOrderId,
    slot: Order,
    last_id: u64,
}

/// The table of orders.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Orders {
    /// `slots[id & mask]`; number 0 marks a place never used.
    slots: Vec<Order>,
    /// Places of the open orders before and behind each open one, as they were entered; [`END`] for none. A
    /// cancel of everything must not go through every place there is.
    links: Vec<[u32; 2]>,
    ends: [u32; 2],
    mask: u64,
    last_id: u64,
    open: u32,
    /// Stop orders that are open and wait for their trigger.
    waiting: u32,
    /// How many orders of the session are in each state now, ended ones included.
    counts: [u64; OrderState::ALL.len()],
}

impl Orders {
    /// A table for `capacity` open orders, rounded up to a power of two, at least 1.
    pub fn new(capacity: u32) -> Orders {
        let places = (capacity.max(1) as usize).next_power_of_two();
        Orders {
            slots: vec![Order::default(); places],
            links: vec![[END; 2]; places],
            ends: [END; 2],
            mask: places as u64 - 1,
            last_id: 0,
            open: 0,
            waiting: 0,
            counts: [0; OrderState::ALL.len()],
        }
    }

    /// The same table, whose numbers begin behind `last`: two strategies over one session must not use the
    /// same ones.
    pub fn numbered_behind(self, last: u64) -> Orders {
        Orders {
            last_id: last,
            ..self
        }
    }

    /// A number that no order of the session has: for requests, which need one too.
    #[inline]
    pub fn issue_id(&mut self) -> ClientOrderId {
        self.last_id += 1;
        ClientOrderId(self.last_id)
    }

    /// The numbers that requests were given since this was the last one are free again: nothing was said of
    /// them to anybody.
    pub(crate) fn take_back_id(&mut self, last: ClientOrderId) {
        self.last_id = last.0;
    }

    /// The last number that was issued: to an order or to a request.
    pub fn last_id(&self) -> ClientOrderId {
        ClientOrderId(self.last_id)
    }

    /// Enters an order as [`OrderState::PendingNew`] and gives it its number. With every place taken by an
    /// open order nothing changes.
    #[inline]
    pub fn insert(&mut self, new: &NewOrder) -> Result<ClientOrderId, OrdersFull> {
        self.insert_as(new, Terms::default())
    }

    /// Enters an order that is to take the place of an open one, which must not be replaced yet, with the
    /// trigger `stop` if that waits for one. Until the venue has said, both are open.
    pub fn insert_replacement(
        &mut self,
        new: &NewOrder,
        old: ClientOrderId,
        stop: Option<Price>,
    ) -> Result<ClientOrderId, OrdersFull> {
        let slot = (old.0 & self.mask) as usize;
        let before = self.slots[slot];
        debug_assert!(before.id == old && before.is_open() && before.replaced_by.is_none());
        let terms = Terms {
            order_type: before.order_type,
            stop,
            time_in_force: before.time_in_force,
        };
        let id = self.insert_as(new, terms)?;
        self.slots[slot].replaced_by = Some(id);
        let next = (id.0 & self.mask) as usize;
        self.set_triggered(next, before.is_triggered);
        let entered = &mut self.slots[next];
        entered.replaces = Some(old);
        (entered.filled, entered.broken) = (before.filled, before.broken);
        Ok(id)
    }

    /// The same as [`Orders::insert`], with how the order is meant.
    #[inline(always)]
    pub fn insert_as(&mut self, new: &NewOrder, terms: Terms) -> Result<ClientOrderId, OrdersFull> {
        if self.open as usize == self.slots.len() {
            return Err(OrdersFull);
        }
        // Fewer orders are open than there are places, so this ends within one round.
        let mut id = self.issue_id();
        while self.slots[(id.0 & self.mask) as usize].is_open() {
            id = self.issue_id();
        }
        let NewOrder {
            instrument,
            side,
            price,
            qty,
            cause,
        } = *new;
        self.slots[(id.0 & self.mask) as usize] = Order {
            id,
            instrument,
            side,
            price,
            qty,
            cause,
            order_type: terms.order_type,
            stop: terms.stop,
            time_in_force: terms.time_in_force,
            ..Order::default()
        };
        self.waiting += u32::from(terms.stop.is_some());
        self.link((id.0 & self.mask) as u32);
        self.open += 1;
        self.counts[OrderState::PendingNew as usize] += 1;
        Ok(id)
    }

    /// What [`Orders::insert_as`] would change now, to be put back by [`Orders::forget`]; `None` where it
    /// would fail.
    pub(crate) fn before_next(&self) -> Option<BeforeOrder> {
        let mut ids = (self.last_id + 1..).take(self.slots.len()).map(ClientOrderId);
        let id = ids.find(|id| !self.slots[(id.0 & self.mask) as usize].is_open())?;
        Some(BeforeOrder {
            id,
            slot: self.slots[(id.0 & self.mask) as usize],
            last_id: self.last_id,
        })
    }

    /// Takes back the order that was entered since [`Orders::before_next`], as if it had never been: nothing
    /// was said of it to anybody. An order that is not there is none to take back.
    pub(crate) fn forget(&mut self, before: BeforeOrder) {
        let slot = (before.id.0 & self.mask) as usize;
        if self.slots[slot].id != before.id || before.id.0 != self.last_id {
            return;
        }
        let order = self.slots[slot];
        self.counts[order.state as usize] -= 1;
        if order.is_open() {
            self.waiting -= u32::from(order.is_waiting());
            self.unlink(slot);
            self.open -= 1;
        }
        self.slots[slot] = before.slot;
        self.last_id = before.last_id;
    }

    /// Applies what the venue said.
    #[inline]
    pub fn apply(&mut self, report: &OrderReport) -> Result<Change, ReportError> {
        match report.kind {
            ReportKind::Filled { qty, cumulative, .. } => self.filled(report, qty, cumulative),
            _ => self.apply_other(report),
        }
    }

    /// Some of an order traded: what is said of most.
    #[inline]
    fn filled(&mut self, report: &OrderReport, qty: Qty, cumulative: Qty) -> Result<Change, ReportError> {
        let slot = (report.id.0 & self.mask) as usize;
        let order = &mut self.slots[slot];
        if order.id != report.id || report.id.0 == 0 {
            return Err(ReportError::Unknown);
        }
        let (before, remaining, was_waiting) = (order.state, order.remaining(), order.is_waiting());
        order.filled = filled_after(order, qty, cumulative)?;
        order.venue_id = report.venue_id.or(order.venue_id);
        // Not every venue tells of a trigger.
        order.is_triggered |= order.stop.is_some();
        order.state = match order.filled.0 + order.broken.0 == order.qty.0 {
            true => OrderState::Filled,
            false => OrderState::PartiallyFilled,
        };
        let (after, now) = (order.state, *order);
        self.moved(slot, before, after);
        self.waiting -= u32::from(was_waiting && before.is_open());
        Ok(Change {
            order: now,
            filled: qty,
            broken: Qty::ZERO,
            released: match after.is_open() {
                true => Qty::ZERO,
                false => Qty(remaining.0 - qty.0),
            },
        })
    }

    /// Everything but a fill.
    fn apply_other(&mut self, report: &OrderReport) -> Result<Change, ReportError> {
        let slot = (report.id.0 & self.mask) as usize;
        let before = self.slots[slot];
        if before.id != report.id || report.id.0 == 0 {
            return Err(ReportError::Unknown);
        }
        let mut order = Order {
            venue_id: report.venue_id.or(before.venue_id),
            ..before
        };
        let mut broken = Qty::ZERO;
        match report.kind {
            ReportKind::Accepted => order.state = accepted(before.state)?,
            ReportKind::Filled { qty, cumulative, .. } => return self.filled(report, qty, cumulative),
            ReportKind::Broken { qty, cumulative, .. } => {
                order.filled = filled_without(&before, qty, cumulative)?;
                order.broken = Qty(before.broken.0 + qty.0);
                // Not all of it has traded after all, and nothing more will.
                if before.state == OrderState::Filled {
                    order.state = OrderState::Cancelled;
                }
                broken = qty;
            }
            ReportKind::Triggered => {
                order.state = triggered(&before)?;
                order.is_triggered = true;
            }
            ReportKind::Cancelled => order.state = cancelled(before.state)?,
            ReportKind::Rejected => order.state = rejected(before.state)?,
            ReportKind::CancelRejected if before.is_cancel_requested => order.is_cancel_requested = false,
            ReportKind::CancelRejected => return Err(ReportError::Duplicate),
            ReportKind::Replaced { by, venue_id } => return self.replaced(slot, by, venue_id),
            ReportKind::ReplaceRejected { by } => return self.not_replaced(slot, by),
        }
        self.slots[slot] = order;
        self.moved(slot, before.state, order.state);
        let waits = |order: &Order| order.is_waiting() && order.is_open();
        self.waiting -= u32::from(waits(&before) && !waits(&order));
        let released = if order.is_open() {
            Qty::ZERO
        } else {
            before.remaining()
        };
        Ok(Change {
            order,
            filled: Qty::ZERO,
            broken,
            released,
        })
    }

    /// An order has taken the place of another.
    fn replaced(
        &mut self,
        slot: usize,
        by: ClientOrderId,
        venue_id: Option<OrderId>,
    ) -> Result<Change, ReportError> {
        let old = self.slots[slot];
        let next = (by.0 & self.mask) as usize;
        let new = self.slots[next];
        if new.id != by || new.replaces != Some(old.id) {
            return Err(ReportError::Unknown);
        }
        match (old.state, new.state) {
            (OrderState::Replaced, _) => return Err(ReportError::Duplicate),
            (state, OrderState::PendingNew) if state.is_open() => {}
            _ => return Err(ReportError::OutOfOrder),
        }
        // What has traded since the request was made had counted as still open.
        let since = old.filled.0 + old.broken.0 - new.filled.0 - new.broken.0;
        let traded = old.filled.0 + old.broken.0;
        let state = match (old.filled.0, traded >= new.qty.0) {
            (_, true) => OrderState::Filled,
            (0, false) => OrderState::New,
            (_, false) => OrderState::PartiallyFilled,
        };
        let released = old.remaining().0 + since.min(new.remaining().0);
        self.slots[slot].state = OrderState::Replaced;
        self.moved(slot, old.state, OrderState::Replaced);
        self.waiting -= u32::from(old.is_waiting()) + u32::from(new.is_waiting());
        let order = Order {
            // It may have been triggered since the request was made.
            is_triggered: old.is_triggered,
            filled: old.filled,
            broken: old.broken,
            venue_id: venue_id.or(old.venue_id),
            state,
            // Both quantities are of one order: what traded beyond a smaller one has traded all the same.
            qty: Qty(new.qty.0.max(traded)),
            ..new
        };
        self.slots[next] = order;
        self.moved(next, OrderState::PendingNew, state);
        self.waiting += u32::from(order.is_waiting() && order.is_open());
        Ok(Change {
            order,
            filled: Qty::ZERO,
            broken: Qty::ZERO,
            released: Qty(released),
        })
    }

    /// An order lives on as it was, or had ended: the one that was to take its place never was.
    fn not_replaced(&mut self, slot: usize, by: ClientOrderId) -> Result<Change, ReportError> {
        let next = (by.0 & self.mask) as usize;
        let new = self.slots[next];
        if new.id != by || new.replaces != Some(self.slots[slot].id) {
            return Err(ReportError::Unknown);
        }
        match new.state {
            OrderState::PendingNew => {}
            OrderState::Rejected => return Err(ReportError::Duplicate),
            _ => return Err(ReportError::OutOfOrder),
        }
        self.slots[next].state = OrderState::Rejected;
        self.moved(next, OrderState::PendingNew, OrderState::Rejected);
        self.waiting -= u32::from(new.is_waiting());
        self.slots[slot].replaced_by = None;
        Ok(Change {
            order: self.slots[slot],
            filled: Qty::ZERO,
            broken: Qty::ZERO,
            released: new.remaining(),
        })
    }

    /// The first open order that no cancellation was asked for, and that the venue knows or was told of as an
    /// order of its own.
    pub fn next_to_cancel(&self) -> Option<ClientOrderId> {
        self.next_to_cancel_of(|_| true)
    }

    /// The same, of the instruments that `is_meant` says.
    pub(crate) fn next_to_cancel_of(&self, is_meant: impl Fn(InstrumentId) -> bool) -> Option<ClientOrderId> {
        self.iter_open()
            .filter(|order| !order.is_cancel_requested && !order.is_replacing())
            .find(|order| is_meant(order.instrument))
            .map(|order| order.id)
    }

    /// A request to cancel could not be sent, or came to nothing.
    pub(crate) fn forget_cancel(&mut self, id: ClientOrderId) {
        let order = &mut self.slots[(id.0 & self.mask) as usize];
        if order.id == id {
            order.is_cancel_requested = false;
        }
    }

    /// A session is gone, and with it every request to cancel that was under way of the instruments that
    /// `is_meant` says: each may be asked for again.
    pub(crate) fn forget_cancels(&mut self, is_meant: impl Fn(InstrumentId) -> bool) {
        let mut at = self.ends[0];
        while at != END {
            let order = &mut self.slots[at as usize];
            if is_meant(order.instrument) {
                order.is_cancel_requested = false;
            }
            at = self.links[at as usize][1];
        }
    }

    /// Marks an open order as to be cancelled; `None` if it is unknown, has ended, or is marked already.
    pub fn request_cancel(&mut self, id: ClientOrderId) -> Option<Order> {
        let order = &mut self.slots[(id.0 & self.mask) as usize];
        if order.id != id || !order.is_open() || order.is_cancel_requested {
            return None;
        }
        order.is_cancel_requested = true;
        Some(*order)
    }

    /// An order, as long as its place has not been used again.
    pub fn get(&self, id: ClientOrderId) -> Option<&Order> {
        self.slots
            .get((id.0 & self.mask) as usize)
            .filter(|order| order.id == id && id.0 != 0)
    }

    /// How many orders may still trade.
    #[inline]
    pub fn open(&self) -> u32 {
        self.open
    }

    /// How many stop orders are open that no trade has triggered.
    #[inline]
    pub fn waiting(&self) -> u32 {
        self.waiting
    }

    /// How many orders of the session are in this state now.
    pub fn count(&self, state: OrderState) -> u64 {
        self.counts[state as usize]
    }

    /// Every order whose place was not used again, in no order.
    pub fn iter(&self) -> impl Iterator<Item = &Order> + '_ {
        self.slots.iter().filter(|order| order.id.0 != 0)
    }

    /// Every order that may still trade, in the order in which they were entered.
    pub fn iter_open(&self) -> impl Iterator<Item = &Order> + '_ {
        let next = |at: u32| (at != END).then_some(at);
        core::iter::successors(next(self.ends[0]), move |at| next(self.links[*at as usize][1]))
            .map(|at| &self.slots[at as usize])
    }

    #[inline]
    fn moved(&mut self, slot: usize, from: OrderState, to: OrderState) {
        self.counts[from as usize] -= 1;
        self.counts[to as usize] += 1;
        if from.is_open() && !to.is_open() {
            self.open -= 1;
            self.unlink(slot);
        }
    }

    /// Says of an order that was just entered whether it waits for its trigger still.
    fn set_triggered(&mut self, slot: usize, is_triggered: bool) {
        let order = &mut self.slots[slot];
        self.waiting -= u32::from(order.is_waiting() && is_triggered);
        order.is_triggered = is_triggered;
    }

    #[inline]
    fn link(&mut self, slot: u32) {
        let last = core::mem::replace(&mut self.ends[1], slot);
        self.links[slot as usize] = [last, END];
        match last {
            END => self.ends[0] = slot,
            last => self.links[last as usize][1] = slot,
        }
    }

    #[inline]
    fn unlink(&mut self, slot: usize) {
        let [before, behind] = core::mem::replace(&mut self.links[slot], [END; 2]);
        match before {
            END => self.ends[0] = behind,
            before => self.links[before as usize][1] = behind,
        }
        match behind {
            END => self.ends[1] = before,
            behind => self.links[behind as usize][0] = before,
        }
    }
}

impl Order {
    /// Whether it is an order at all and may still trade.
    #[inline]
    fn is_open(&self) -> bool {
        self.id.0 != 0 && self.state.is_open()
    }
}

/// The acknowledgement may come once, and before the first fill; behind a fill it says nothing new.
const fn accepted(state: OrderState) -> Result<OrderState, ReportError> {
    match state {
        OrderState::PendingNew => Ok(OrderState::New),
        OrderState::Rejected => Err(ReportError::OutOfOrder),
        _ => Err(ReportError::Duplicate),
    }
}

/// A trigger comes once; it may come before the acknowledgement.
const fn triggered(order: &Order) -> Result<OrderState, ReportError> {
    match (order.is_waiting(), order.state) {
        (true, OrderState::PendingNew) => Ok(OrderState::New),
        (true, state) if state.is_open() => Ok(state),
        (false, state) if state.is_open() && order.stop.is_some() => Err(ReportError::Duplicate),
        _ => Err(ReportError::OutOfOrder),
    }
}

/// Whatever is open can be cancelled.
const fn cancelled(state: OrderState) -> Result<OrderState, ReportError> {
    match state {
        OrderState::Cancelled => Err(ReportError::Duplicate),
        OrderState::Filled | OrderState::Rejected | OrderState::Replaced => Err(ReportError::OutOfOrder),
        _ => Ok(OrderState::Cancelled),
    }
}

/// Only what was never accepted can be rejected.
const fn rejected(state: OrderState) -> Result<OrderState, ReportError> {
    match state {
        OrderState::PendingNew => Ok(OrderState::Rejected),
        OrderState::Rejected => Err(ReportError::Duplicate),
        _ => Err(ReportError::OutOfOrder),
    }
}

/// The filled quantity after a fill of `qty` that brings it to `cumulative`.
fn filled_after(order: &Order, qty: Qty, cumulative: Qty) -> Result<Qty, ReportError> {
    let sum = order.filled.0.checked_add(qty.0).ok_or(ReportError::Overfill)?;
    match () {
        _ if cumulative.0 <= order.filled.0 => Err(ReportError::Duplicate),
        _ if !order.state.is_open() => Err(ReportError::OutOfOrder),
        _ if qty.is_zero() || cumulative.0 < sum => Err(ReportError::OutOfOrder),
        _ if cumulative.0 > order.qty.0 - order.broken.0 => Err(ReportError::Overfill),
        _ if cumulative.0 > sum => Err(ReportError::Missed),
        _ => Ok(cumulative),
    }
}

/// The filled quantity without a trade of `qty` that brings it down to `cumulative`.
fn filled_without(order: &Order, qty: Qty, cumulative: Qty) -> Result<Qty, ReportError> {
    match order.filled.0.checked_sub(qty.0) {
        _ if qty.is_zero() => Err(ReportError::OutOfOrder),
        _ if cumulative == order.filled && order.broken >= qty => Err(ReportError::Duplicate),
        Some(left) if left == cumulative.0 => Ok(cumulative),
        Some(_) => Err(ReportError::Missed),
        // More than is known to have traded.
        None => Err(ReportError::OutOfOrder),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BUY: NewOrder = NewOrder {
        instrument: InstrumentId(3),
        side: Side::Bid,
        price: Price::from_4dp(100_0000),
        qty: Qty(100),
        cause: Cause {
            venue: tickwire_market::Venue::Nasdaq,
            seq: tickwire_market::SeqNo(0),
            recv_ts: tickwire_market::Nanos(0),
        },
    };

    fn report(id: ClientOrderId, kind: ReportKind) -> OrderReport {
        OrderReport {
            id,
            venue_id: Some(OrderId(77)),
            kind,
        }
    }

    fn fill(qty: u32, cumulative: u32) -> ReportKind {
        ReportKind::Filled {
            qty: Qty(qty),
            price: BUY.price,
            cumulative: Qty(cumulative),
        }
    }

    #[test]
    fn the_open_orders_are_listed_as_they_were_entered_whatever_ends_between() {
        let mut orders = Orders::new(8);
        let mut plain: Vec<u64> = Vec::new();
        let mut random = 11_u64;
        for _ in 0..10_000 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let pick = (random >> 40) as usize;
            if pick.is_multiple_of(2) || plain.is_empty() {
                let entered = orders.insert(&NewOrder {
                    instrument: InstrumentId(1),
                    side: Side::Bid,
                    price: Price::ZERO,
                    qty: Qty(1),
                    cause: Cause::default(),
                });
                assert_eq!(entered.is_err(), plain.len() == 8);
                plain.extend(entered.map(|id| id.0));
            } else {
                let id = plain.remove(pick / 2 % plain.len());
                let ended = OrderReport {
                    id: ClientOrderId(id),
                    venue_id: None,
                    kind: ReportKind::Cancelled,
                };
                orders.apply(&ended).unwrap();
            }
            let listed: Vec<u64> = orders.iter_open().map(|order| order.id.0).collect();
            assert_eq!(listed, plain);
        }
    }

    #[test]
    fn an_order_is_acknowledged_filled_in_parts_and_ends() {
        let mut orders = Orders::new(4);
        let id = orders.insert(&BUY).unwrap();
        assert_eq!((id, orders.open()), (ClientOrderId(1), 1));
        assert_eq!(
            orders
                .apply(&report(id, ReportKind::Accepted))
                .unwrap()
                .order
                .state,
            OrderState::New
        );
        let change = orders.apply(&report(id, fill(30, 30))).unwrap();
        assert_eq!(
            (change.order.state, change.filled, change.order.remaining()),
            (OrderState::PartiallyFilled, Qty(30), Qty(70))
        );
        let change = orders.apply(&report(id, fill(70, 100))).unwrap();
        assert_eq!(
            (change.order.state, change.released, orders.open()),
            (OrderState::Filled, Qty(0), 0)
        );
        assert_eq!(orders.count(OrderState::Filled), 1);
        assert_eq!(orders.get(id).unwrap().venue_id, Some(OrderId(77)));
    }

    #[test]
    fn a_broken_trade_does_not_come_back_to_its_order() {
        let mut orders = Orders::new(4);
        let broken = |qty: u32, cumulative: u32| ReportKind::Broken {
            qty: Qty(qty),
            price: BUY.price,
            cumulative: Qty(cumulative),
        };
        let id = orders.insert(&BUY).unwrap();
        assert_eq!(
            orders.apply(&report(id, broken(30, 0))),
            Err(ReportError::OutOfOrder)
        );
        orders.apply(&report(id, fill(30, 30))).unwrap();
        orders.apply(&report(id, fill(20, 50))).unwrap();
        assert_eq!(
            orders.apply(&report(id, broken(30, 10))),
            Err(ReportError::Missed)
        );
        assert_eq!(
            orders.apply(&report(id, broken(0, 50))),
            Err(ReportError::OutOfOrder)
        );
        let change = orders.apply(&report(id, broken(30, 20))).unwrap();
        assert_eq!(
            (
                change.order.state,
                change.broken,
                change.order.filled,
                change.order.remaining()
            ),
            (OrderState::PartiallyFilled, Qty(30), Qty(20), Qty(50))
        );
        assert_eq!(
            orders.apply(&report(id, broken(30, 20))),
            Err(ReportError::Duplicate)
        );
        assert_eq!(
            orders.apply(&report(id, fill(60, 80))),
            Err(ReportError::Overfill)
        );
        let change = orders.apply(&report(id, fill(50, 70))).unwrap();
        assert_eq!(
            (change.order.state, change.released, orders.open()),
            (OrderState::Filled, Qty(0), 0)
        );
        // After its end: it was filled, and is not.
        let change = orders.apply(&report(id, broken(50, 20))).unwrap();
        assert_eq!(
            (
                change.order.state,
                change.order.filled,
                change.order.broken,
                change.released
            ),
            (OrderState::Cancelled, Qty(20), Qty(80), Qty(0))
        );
        assert_eq!((orders.open(), orders.count(OrderState::Filled)), (0, 0));
        assert_eq!(orders.count(OrderState::Cancelled), 1);
    }

    #[test]
    fn an_immediate_order_may_fill_without_acknowledgement_and_lose_its_rest() {
        let mut orders = Orders::new(4);
        let id = orders.insert(&BUY).unwrap();
        orders.apply(&report(id, fill(30, 30))).unwrap();
        let change = orders.apply(&report(id, ReportKind::Cancelled)).unwrap();
        assert_eq!(
            (change.released, change.order.remaining(), change.order.filled),
            (Qty(70), Qty(0), Qty(30))
        );
    }

    #[test]
    fn repeated_reports_are_told_from_new_ones() {
        let mut orders = Orders::new(4);
        let id = orders.insert(&BUY).unwrap();
        for kind in [ReportKind::Accepted, fill(30, 30), fill(30, 60)] {
            orders.apply(&report(id, kind)).unwrap();
            assert_eq!(
                orders.apply(&report(id, kind)),
                Err(ReportError::Duplicate),
                "{kind:?}"
            );
        }
        orders.apply(&report(id, ReportKind::Cancelled)).unwrap();
        assert_eq!(
            orders.apply(&report(id, ReportKind::Cancelled)),
            Err(ReportError::Duplicate)
        );
        assert_eq!(
            orders.apply(&report(id, fill(30, 30))),
            Err(ReportError::Duplicate)
        );
    }

    #[test]
    fn impossible_reports_change_nothing() {
        let mut orders = Orders::new(4);
        let id = orders.insert(&BUY).unwrap();
        orders.apply(&report(id, fill(30, 30))).unwrap();
        let before = *orders.get(id).unwrap();
        let cases = [
            (ClientOrderId(0), ReportKind::Accepted, ReportError::Unknown),
            (ClientOrderId(2), ReportKind::Accepted, ReportError::Unknown),
            (ClientOrderId(5), fill(1, 1), ReportError::Unknown),
            (id, fill(71, 101), ReportError::Overfill),
            (id, fill(u32::MAX, u32::MAX), ReportError::Overfill),
            (id, fill(10, 50), ReportError::Missed),
            (id, fill(30, 40), ReportError::OutOfOrder),
            (id, fill(0, 31), ReportError::OutOfOrder),
            (id, ReportKind::Rejected, ReportError::OutOfOrder),
            (id, ReportKind::CancelRejected, ReportError::Duplicate),
        ];
        for (id, kind, error) in cases {
            assert_eq!(orders.apply(&report(id, kind)), Err(error), "{kind:?}");
        }
        assert_eq!(orders.get(id), Some(&before));
        orders.apply(&report(id, ReportKind::Cancelled)).unwrap();
        assert_eq!(
            orders.apply(&report(id, fill(70, 100))),
            Err(ReportError::OutOfOrder)
        );
        assert_eq!(
            orders.apply(&report(id, ReportKind::Rejected)),
            Err(ReportError::OutOfOrder)
        );
    }

    #[test]
    fn a_refused_cancellation_can_be_asked_again() {
        let mut orders = Orders::new(4);
        let id = orders.insert(&BUY).unwrap();
        orders.apply(&report(id, ReportKind::Accepted)).unwrap();
        assert!(orders.request_cancel(id).is_some());
        assert!(orders.request_cancel(id).is_none());
        let refused = OrderReport {
            venue_id: None,
            ..report(id, ReportKind::CancelRejected)
        };
        assert_eq!(orders.apply(&refused).unwrap().order.venue_id, Some(OrderId(77)));
        assert!(orders.request_cancel(id).is_some());
    }

    #[test]
    fn a_place_is_used_again_only_after_its_order_ended() {
        let mut orders = Orders::new(2);
        let first = orders.insert(&BUY).unwrap();
        let second = orders.insert(&BUY).unwrap();
        assert_eq!(orders.insert(&BUY), Err(OrdersFull));
        orders.apply(&report(second, ReportKind::Cancelled)).unwrap();
        let third = orders.insert(&BUY).unwrap();
        assert_eq!(
            third,
            ClientOrderId(4),
            "number 3 falls on the place of number 1, which is open"
        );
        assert_eq!(orders.get(second), None);
        assert!(orders.get(first).is_some());
        assert_eq!(orders.iter_open().count(), 2);
    }
}
