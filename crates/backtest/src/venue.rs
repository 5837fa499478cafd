//! The simulated venue: our orders as markers in the recorded book.

use std::collections::{BTreeMap, BTreeSet};

use tickwire_book::{Books, Depth};
use tickwire_market::{
    BookState, ClientOrderId, EventFlags, EventKind, InstrumentId, MarketEvent, Nanos, OrderId, OrderIntent,
    OrderType, Price, Qty, Side, TimeInForce,
};
use tickwire_trading::{OrderReport, ReportKind};

use crate::Doubts;

/// By which rule orders of ours are filled.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum FillModel {
    /// An order of ours stands in the recorded queue. On a feed that tells every order its place is exact: what is ahead falls only by what is
    /// executed or cancelled ahead, and it is filled by what was executed behind it, or at a worse price. On a feed of levels its place is
    /// estimated: trades take from the front, cancellations from behind. Recorded liquidity is used once.
    #[default]
    Queue,
    /// An order is filled whole as soon as its price is touched. For first looks: too good to be true.
    Touch,
}

/// One of our orders in the book.
#[derive(Clone, Debug)]
struct Own {
    id: ClientOrderId,
    side: Side,
    price: Price,
    qty: u32,
    filled: u32,
    time_in_force: TimeInForce,
    /// What stands before it, of others.
    ahead: u64,
    ahead_at_entry: u64,
    /// Others' orders of its level that came after it, on feeds by order.
    behind: BTreeSet<OrderId>,
}

impl Own {
    fn leaves(&self) -> u32 {
        self.qty - self.filled
    }

    /// Whether a price of the other side is at or through its own.
    fn is_reached_by(&self, price: Price) -> bool {
        match self.side {
            Side::Bid => price <= self.price,
            Side::Ask => price >= self.price,
        }
    }
}

/// A fill as the venue knows it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Matched {
    pub(crate) id: ClientOrderId,
    pub(crate) instrument: InstrumentId,
    pub(crate) side: Side,
    pub(crate) qty: Qty,
    pub(crate) price: Price,
    pub(crate) is_maker: bool,
    pub(crate) queue_at_entry: u64,
}

/// Whom the venue tells what.
pub(crate) trait Listener {
    fn report(&mut self, at: Nanos, report: OrderReport);
    fn matched(&mut self, at: Nanos, matched: Matched);
}

/// See the module.
#[derive(Clone, Debug)]
pub(crate) struct SimVenue {
    model: FillModel,
    /// By instrument, the first that came first.
    orders: Vec<Vec<Own>>,
    place_of: BTreeMap<ClientOrderId, InstrumentId>,
    /// What we took of recorded orders, and of levels where no order is known.
    taken: BTreeMap<OrderId, u64>,
    taken_of_levels: BTreeMap<(u32, bool, Price), u64>,
    pub(crate) doubts: Doubts,
    pub(crate) requests: [u64; 3],
    pub(crate) rejects: u64,
    next_order: u64,
}

impl SimVenue {
    pub(crate) fn new(model: FillModel, instruments: usize) -> SimVenue {
        SimVenue {
            model,
            orders: vec![Vec::new(); instruments],
            place_of: BTreeMap::new(),
            taken: BTreeMap::new(),
            taken_of_levels: BTreeMap::new(),
            doubts: Doubts::default(),
            requests: [0; 3],
            rejects: 0,
            next_order: 1 << 62,
        }
    }

    /// Whether an order of ours stands in a book.
    #[inline]
    pub(crate) fn is_idle(&self, instrument: InstrumentId) -> bool {
        self.orders.get(instrument.index()).is_none_or(Vec::is_empty)
    }

    /// Orders that stand in books.
    pub(crate) fn open(&self) -> usize {
        self.place_of.len()
    }

    /// A request reaches the matching engine. `book` is that of its instrument: of a cancellation or replacement see [`SimVenue::instrument_of`].
    pub(crate) fn arrive(
        &mut self,
        at: Nanos,
        request: &OrderIntent,
        (books, local): (&Books, InstrumentId),
        can_trade: bool,
        tell: &mut impl Listener,
    ) {
        match *request {
            OrderIntent::New {
                id,
                instrument,
                side,
                order_type,
                price,
                qty,
                time_in_force,
                ..
            } => {
                self.requests[0] += 1;
                let is_known = self.orders.get(instrument.index()).is_some();
                let is_auction = matches!(time_in_force, TimeInForce::AtTheOpening | TimeInForce::AtTheClose);
                if !can_trade || is_auction || !is_known || qty.is_zero() {
                    self.rejects += 1;
                    return tell.report(at, report(id, None, ReportKind::Rejected));
                }
                if books
                    .book(local)
                    .is_none_or(|book| book.state() != BookState::Live)
                {
                    self.doubts.on_stale_book += 1;
                }
                self.next_order += 1;
                let number = Some(OrderId(self.next_order));
                tell.report(at, report(id, number, ReportKind::Accepted));
                let own = Own {
                    id,
                    side,
                    price,
                    qty: qty.0,
                    filled: 0,
                    time_in_force,
                    ahead: 0,
                    ahead_at_entry: 0,
                    behind: BTreeSet::new(),
                };
                let limit = (order_type == OrderType::Limit).then_some(price);
                self.enter(at, own, limit, instrument, (books, local), tell);
            }
            OrderIntent::Replace {
                id,
                target,
                price,
                qty,
                ..
            } => {
                self.requests[1] += 1;
                let Some((instrument, mut own)) = self.take_out(target) else {
                    self.rejects += 1;
                    return tell.report(at, report(target, None, ReportKind::ReplaceRejected { by: id }));
                };
                if !can_trade {
                    self.rejects += 1;
                    self.put_back(instrument, own);
                    return tell.report(at, report(target, None, ReportKind::ReplaceRejected { by: id }));
                }
                let replaced = ReportKind::Replaced {
                    by: id,
                    venue_id: None,
                };
                tell.report(at, report(target, None, replaced));
                let keeps_place = price == own.price && qty.0 <= own.qty;
                (own.id, own.price, own.qty) = (id, price, qty.0.max(own.filled));
                if own.leaves() == 0 {
                    return;
                }
                if keeps_place {
                    return self.put_back(instrument, own);
                }
                own.behind.clear();
                self.enter(at, own, Some(price), instrument, (books, local), tell);
            }
            OrderIntent::Cancel { target, .. } => {
                self.requests[2] += 1;
                match self.take_out(target) {
                    Some((_, own)) => {
                        self.ended(&own);
                        tell.report(at, report(target, None, ReportKind::Cancelled));
                    }
                    None => tell.report(at, report(target, None, ReportKind::CancelRejected)),
                }
            }
        }
    }

    /// The instrument of one of our open orders.
    pub(crate) fn instrument_of(&self, id: ClientOrderId) -> Option<InstrumentId> {
        self.place_of.get(&id).copied()
    }

    /// Matches an order against the other side, and lets what is left rest where it may.
    fn enter(
        &mut self,
        at: Nanos,
        mut own: Own,
        limit: Option<Price>,
        instrument: InstrumentId,
        (books, local): (&Books, InstrumentId),
        tell: &mut impl Listener,
    ) {
        let wanted = own.leaves();
        if own.time_in_force == TimeInForce::FillOrKill
            && self.can_take(&own, limit, instrument, (books, local)) < wanted.into()
        {
            return tell.report(at, report(own.id, None, ReportKind::Cancelled));
        }
        if let Some(book) = books.book(local) {
            for level in book.levels(!own.side) {
                if own.leaves() == 0 || !within(own.side, level.price, limit) {
                    break;
                }
                let taken = self.take_level(&own, instrument, books, local, (level.price, level.qty.0));
                if taken == 0 {
                    continue;
                }
                own.filled += taken;
                match self.model {
                    FillModel::Queue => self.doubts.took_recorded += 1,
                    FillModel::Touch => self.doubts.touched += 1,
                }
                tell_fill(at, &own, instrument, (taken, level.price), false, tell);
            }
        }
        if own.leaves() == 0 {
            return;
        }
        if !own.time_in_force.rests() || limit.is_none() {
            return tell.report(at, report(own.id, None, ReportKind::Cancelled));
        }
        own.ahead = books.book(local).map_or(0, |book| {
            let at_price = book.levels(own.side).find(|level| level.price == own.price);
            at_price.map_or(0, |level| level.qty.0)
        });
        own.ahead_at_entry = own.ahead;
        self.put_back(instrument, own);
    }

    /// How much of the other side an order could have.
    fn can_take(
        &self,
        own: &Own,
        limit: Option<Price>,
        instrument: InstrumentId,
        (books, local): (&Books, InstrumentId),
    ) -> u64 {
        let Some(book) = books.book(local) else { return 0 };
        let levels = book
            .levels(!own.side)
            .take_while(|level| within(own.side, level.price, limit));
        levels
            .map(|level| match self.model {
                FillModel::Touch => u64::from(own.leaves()),
                FillModel::Queue => {
                    self.left_of(instrument, books, local, !own.side, (level.price, level.qty.0))
                }
            })
            .sum()
    }

    /// What we have left of a recorded level.
    fn left_of(
        &self,
        instrument: InstrumentId,
        books: &Books,
        local: InstrumentId,
        side: Side,
        (price, qty): (Price, u64),
    ) -> u64 {
        if books.config().depth != Depth::ByOrder || self.taken.is_empty() {
            let key = (instrument.0, side == Side::Bid, price);
            return qty.saturating_sub(self.taken_of_levels.get(&key).copied().unwrap_or(0));
        }
        let Some(book) = books.book(local) else { return 0 };
        let orders = book.orders(side, price);
        orders
            .map(|order| {
                u64::from(order.qty.0).saturating_sub(self.taken.get(&order.id).copied().unwrap_or(0))
            })
            .sum()
    }

    /// Takes as much as is wanted and left of a level.
    fn take_level(
        &mut self,
        own: &Own,
        instrument: InstrumentId,
        books: &Books,
        local: InstrumentId,
        (price, qty): (Price, u64),
    ) -> u32 {
        let wanted = own.leaves();
        if self.model == FillModel::Touch {
            return wanted;
        }
        if books.config().depth != Depth::ByOrder {
            let left = self.left_of(instrument, books, local, !own.side, (price, qty));
            let taken = left.min(wanted.into()) as u32;
            *self
                .taken_of_levels
                .entry((instrument.0, own.side == Side::Ask, price))
                .or_default() += u64::from(taken);
            return taken;
        }
        let Some(book) = books.book(local) else { return 0 };
        let mut taken = 0;
        for order in book.orders(!own.side, price) {
            if taken == wanted {
                break;
            }
            let used = self.taken.entry(order.id).or_default();
            let part = u64::from(order.qty.0)
                .saturating_sub(*used)
                .min((wanted - taken).into());
            *used += part;
            taken += part as u32;
        }
        taken
    }

    /// An event of the recording, before it is applied to its book.
    pub(crate) fn before(
        &mut self,
        event: &MarketEvent,
        instrument: InstrumentId,
        (books, local): (&Books, InstrumentId),
        tell: &mut impl Listener,
    ) {
        let at = event.recv_ts;
        match event.kind {
            EventKind::Execute
            | EventKind::Reduce
            | EventKind::Delete
            | EventKind::Replace
            | EventKind::Modify => {
                let Some(found) = books.order(event.order_id) else {
                    return;
                };
                let (side, price, had) = (found.side, found.price, found.qty.0);
                match event.kind {
                    EventKind::Execute => {
                        let is_elsewhere = event.flags.has(EventFlags::AT_OTHER_PRICE);
                        let traded = event.qty.0.min(had.into());
                        if !is_elsewhere {
                            self.executed(at, instrument, event.order_id, (side, price, traded), tell);
                        } else {
                            self.left_ahead(instrument, event.order_id, (side, price), traded);
                        }
                        self.gone(event.order_id, traded, had);
                    }
                    EventKind::Reduce => {
                        let less = event.qty.0.min(had.into());
                        self.left_ahead(instrument, event.order_id, (side, price), less);
                        self.gone(event.order_id, less, had);
                    }
                    EventKind::Delete => {
                        self.left_ahead(instrument, event.order_id, (side, price), had.into());
                        self.leave_queue(instrument, event.order_id);
                        self.taken.remove(&event.order_id);
                    }
                    EventKind::Replace => {
                        self.left_ahead(instrument, event.order_id, (side, price), had.into());
                        self.leave_queue(instrument, event.order_id);
                        self.taken.remove(&event.order_id);
                        self.join_queue(instrument, OrderId(event.ref_id), (side, event.price));
                    }
                    _ => {
                        let keeps = event.flags.has(EventFlags::KEEPS_PRIORITY) && event.price == price;
                        if keeps {
                            let less = u64::from(had).saturating_sub(event.qty.0);
                            self.left_ahead(instrument, event.order_id, (side, price), less);
                        } else {
                            self.left_ahead(instrument, event.order_id, (side, price), had.into());
                            self.leave_queue(instrument, event.order_id);
                            self.join_queue(instrument, event.order_id, (side, event.price));
                        }
                    }
                }
            }
            EventKind::Add => self.join_queue(instrument, event.order_id, (event.side, event.price)),
            EventKind::Trade => {
                let resting = match event.flags.has(EventFlags::NO_SIDE) {
                    false => Some(event.side),
                    // Whoever was hit stands on the side whose best price it was.
                    true => books.book(local).and_then(|book| {
                        let is_at = |side: Side| {
                            book.best(side)
                                .is_some_and(|best| !side.better(event.price, best.price))
                        };
                        match (is_at(Side::Bid), is_at(Side::Ask)) {
                            (true, false) => Some(Side::Bid),
                            (false, true) => Some(Side::Ask),
                            _ => None,
                        }
                    }),
                };
                if let Some(side) = resting
                    && !event.flags.has(EventFlags::NOT_PRINTABLE)
                {
                    let is_by_price = books.config().depth == Depth::ByPrice;
                    self.traded(
                        at,
                        instrument,
                        (side, event.price, event.qty.0),
                        is_by_price,
                        tell,
                    );
                }
            }
            EventKind::Level => {
                let key = (instrument.0, event.side == Side::Bid, event.price);
                self.taken_of_levels.remove(&key);
                for own in &mut self.orders[instrument.index()] {
                    if own.side == event.side && own.price == event.price {
                        own.ahead = own.ahead.min(event.qty.0);
                    }
                }
            }
            EventKind::Quote => self.taken_of_levels.retain(|(of, ..), _| *of != instrument.0),
            EventKind::Clear => {
                for own in &mut self.orders[instrument.index()] {
                    own.ahead = 0;
                    own.behind.clear();
                }
                self.taken_of_levels.retain(|(of, ..), _| *of != instrument.0);
            }
            _ => {}
        }
    }

    /// An event of the recording, after it was applied: somebody may now rest at or through one of our prices.
    pub(crate) fn after(
        &mut self,
        event: &MarketEvent,
        instrument: InstrumentId,
        (books, local): (&Books, InstrumentId),
        tell: &mut impl Listener,
    ) {
        let adds = matches!(
            event.kind,
            EventKind::Add | EventKind::Replace | EventKind::Modify | EventKind::Level | EventKind::Quote
        );
        let Some(book) = books.book(local).filter(|_| adds) else {
            return;
        };
        if book.state() != BookState::Live {
            return;
        }
        let mut at = 0;
        while let Some(own) = self.orders[instrument.index()].get(at) {
            let Some(best) = book.best(!own.side).filter(|best| own.is_reached_by(best.price)) else {
                at += 1;
                continue;
            };
            let own = own.clone();
            let taken = self.take_level(&own, instrument, books, local, (best.price, best.qty.0));
            if taken == 0 {
                at += 1;
                continue;
            }
            match self.model {
                FillModel::Queue => self.doubts.crossed_by_recorded += 1,
                FillModel::Touch => self.doubts.touched += 1,
            }
            if !self.fill_at(event.recv_ts, instrument, at, taken, tell) {
                at += 1;
            }
        }
    }

    /// A recorded order was executed.
    fn executed(
        &mut self,
        at: Nanos,
        instrument: InstrumentId,
        order: OrderId,
        (side, price, qty): (Side, Price, u64),
        tell: &mut impl Listener,
    ) {
        let mut left = qty;
        let mut place = 0;
        while let Some(own) = self.orders[instrument.index()].get_mut(place) {
            let is_same = own.side == side && own.price == price;
            let is_passed = own.side == side
                && (side.better(own.price, price) || (is_same && own.behind.contains(&order)));
            if self.model == FillModel::Touch && own.side == side && (is_same || is_passed) {
                let all = own.leaves();
                self.doubts.touched += 1;
                if !self.fill_at(at, instrument, place, all, tell) {
                    place += 1;
                }
                continue;
            }
            if is_passed && left > 0 {
                let part = u64::from(own.leaves()).min(left) as u32;
                left -= u64::from(part);
                if self.fill_at(at, instrument, place, part, tell) {
                    continue;
                }
            } else if is_same && !is_passed {
                own.ahead = own.ahead.saturating_sub(qty);
            }
            place += 1;
        }
    }

    /// A trade that names no order: of one that was hidden, or on a feed of levels.
    fn traded(
        &mut self,
        at: Nanos,
        instrument: InstrumentId,
        (side, price, qty): (Side, Price, u64),
        is_by_price: bool,
        tell: &mut impl Listener,
    ) {
        let mut left = qty;
        let mut place = 0;
        while let Some(own) = self.orders[instrument.index()].get_mut(place) {
            let is_better = own.side == side && side.better(own.price, price);
            let is_same = own.side == side && own.price == price;
            if !(is_better || is_same) {
                place += 1;
                continue;
            }
            if self.model == FillModel::Touch {
                let all = own.leaves();
                self.doubts.touched += 1;
                if !self.fill_at(at, instrument, place, all, tell) {
                    place += 1;
                }
                continue;
            }
            // What rests displayed goes before what is hidden; on a feed of levels the trade is of the level.
            let before = match is_same && is_by_price {
                true => own.ahead.min(left),
                false => 0,
            };
            // At our own price it says nothing: had it been hidden behind what is displayed, the displayed would have traded.
            let passes = is_better || is_by_price;
            own.ahead -= before;
            let part = match passes {
                true => u64::from(own.leaves()).min(left - before) as u32,
                false => 0,
            };
            if part == 0 {
                place += 1;
                continue;
            }
            left -= u64::from(part);
            self.doubts.estimated_queue += 1;
            if !self.fill_at(at, instrument, place, part, tell) {
                place += 1;
            }
        }
    }

    /// So much of a recorded order has gone without passing ours.
    fn left_ahead(
        &mut self,
        instrument: InstrumentId,
        order: OrderId,
        (side, price): (Side, Price),
        qty: u64,
    ) {
        for own in &mut self.orders[instrument.index()] {
            if own.side == side && own.price == price && !own.behind.contains(&order) {
                own.ahead = own.ahead.saturating_sub(qty);
            }
        }
    }

    fn leave_queue(&mut self, instrument: InstrumentId, order: OrderId) {
        for own in &mut self.orders[instrument.index()] {
            own.behind.remove(&order);
        }
    }

    fn join_queue(&mut self, instrument: InstrumentId, order: OrderId, (side, price): (Side, Price)) {
        for own in &mut self.orders[instrument.index()] {
            if own.side == side && own.price == price {
                own.behind.insert(order);
            }
        }
    }

    /// So much of a recorded order is no more: what we took of it was of that.
    fn gone(&mut self, order: OrderId, qty: u64, had: u32) {
        if self.taken.is_empty() {
            return;
        }
        if qty >= u64::from(had) {
            self.taken.remove(&order);
        } else if let Some(taken) = self.taken.get_mut(&order) {
            *taken = taken.saturating_sub(qty);
        }
    }

    /// Fills one of our resting orders; whether it is over by that.
    fn fill_at(
        &mut self,
        at: Nanos,
        instrument: InstrumentId,
        place: usize,
        qty: u32,
        tell: &mut impl Listener,
    ) -> bool {
        let own = &mut self.orders[instrument.index()][place];
        own.filled += qty;
        let (shown, price) = (own.clone(), own.price);
        tell_fill(at, &shown, instrument, (qty, price), true, tell);
        if shown.leaves() > 0 {
            return false;
        }
        self.orders[instrument.index()].remove(place);
        self.place_of.remove(&shown.id);
        true
    }

    fn take_out(&mut self, id: ClientOrderId) -> Option<(InstrumentId, Own)> {
        let instrument = self.place_of.remove(&id)?;
        let orders = &mut self.orders[instrument.index()];
        let at = orders.iter().position(|own| own.id == id)?;
        Some((instrument, orders.remove(at)))
    }

    /// Puts an order in its place by the time of arrival: at the end, unless it keeps the one that it had, which is the first of its price all
    /// the same since nothing of ours passes another of the same price.
    fn put_back(&mut self, instrument: InstrumentId, own: Own) {
        self.place_of.insert(own.id, instrument);
        let orders = &mut self.orders[instrument.index()];
        let at = orders
            .iter()
            .position(|other| {
                other.side == own.side
                    && other.price == own.price
                    && other.id > own.id
                    && other.ahead >= own.ahead
            })
            .unwrap_or(orders.len());
        orders.insert(at, own);
    }

    fn ended(&mut self, own: &Own) {
        if own.filled == 0 && own.ahead == 0 && own.ahead_at_entry > 0 {
            self.doubts.stopped_at_front += 1;
        }
    }

    /// The recording is over: everything that rests ends.
    pub(crate) fn close(&mut self, at: Nanos, tell: &mut impl Listener) {
        for instrument in 0..self.orders.len() {
            for own in std::mem::take(&mut self.orders[instrument]) {
                self.ended(&own);
                tell.report(at, report(own.id, None, ReportKind::Cancelled));
            }
        }
        self.place_of.clear();
    }
}

/// Whether an order may trade at a price of the other side.
fn within(side: Side, price: Price, limit: Option<Price>) -> bool {
    match (side, limit) {
        (_, None) => true,
        (Side::Bid, Some(limit)) => price <= limit,
        (Side::Ask, Some(limit)) => price >= limit,
    }
}

fn report(id: ClientOrderId, venue_id: Option<OrderId>, kind: ReportKind) -> OrderReport {
    OrderReport { id, venue_id, kind }
}

fn tell_fill(
    at: Nanos,
    own: &Own,
    instrument: InstrumentId,
    (qty, price): (u32, Price),
    is_maker: bool,
    tell: &mut impl Listener,
) {
    tell.matched(
        at,
        Matched {
            id: own.id,
            instrument,
            side: own.side,
            qty: Qty(qty),
            price,
            is_maker,
            queue_at_entry: own.ahead_at_entry,
        },
    );
    let kind = ReportKind::Filled {
        qty: Qty(qty),
        price,
        cumulative: Qty(own.filled),
    };
    tell.report(at, report(own.id, None, kind));
}
