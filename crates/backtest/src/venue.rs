//! The simulated venue: our orders as markers in the recorded book.

mod quotes;

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Range;

use tickwire_book::{Books, Depth, OrderView};
use tickwire_market::{
    BookState, ClientOrderId, EventFlags, EventKind, InstrumentId, MarketEvent, Nanos, OrderId, OrderIntent,
    OrderType, Price, Qty, Side, TimeInForce,
};
use tickwire_trading::{OrderReport, ReportKind};

use crate::Doubts;
use crate::world::World;

pub(crate) use quotes::of_quote;

/// By which rule orders of ours are filled.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum FillModel {
    /// An order of ours stands in the recorded queue. On a feed that tells every order its place is exact:
    /// what is ahead falls only by what is executed or cancelled ahead, and it is filled by what was executed
    /// behind it, or at a worse price. On a feed of levels its place is estimated: trades take from the
    /// front, cancellations from behind. Recorded liquidity is used once.
    #[default]
    Queue,
    /// Recorded orders and ours in one matching engine, on feeds that tell every order; elsewhere it is
    /// [`FillModel::Queue`]. A recorded execution is entered as what it was, an order that takes so much down
    /// to that price: who is ahead trades first. What ours take away is missing for those who come later, and
    /// recorded orders that ours traded in the place of stand on, until their owners cancel them.
    Matching,
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
    /// The how many-th order it is that came to rest.
    arrival: u64,
    /// What stands before it, of others.
    ahead: u64,
    ahead_at_entry: u64,
    /// Others' orders of its level that came after it, on feeds by order.
    behind: BTreeSet<OrderId>,
}

/// A stop order of ours: in no book until a trade triggers it.
#[derive(Clone, Debug)]
struct Waiting {
    own: Own,
    trigger: Price,
    limit: Option<Price>,
    /// A trade has: it acts when everything that happened at that time is told.
    is_triggered: bool,
}

impl Waiting {
    fn is_triggered_by(&self, price: Price) -> bool {
        match self.own.side {
            Side::Bid => price >= self.trigger,
            Side::Ask => price <= self.trigger,
        }
    }
}

impl Own {
    fn leaves(&self) -> u32 {
        self.qty - self.filled
    }

    /// Whether it trades before another one of ours: by price, then by time. Of the two sides, which never
    /// meet, bids stand first.
    fn is_before(&self, other: &Own) -> bool {
        match (self.side as u8).cmp(&(other.side as u8)) {
            Ordering::Equal if self.price == other.price => self.arrival < other.arrival,
            Ordering::Equal => self.side.better(self.price, other.price),
            order => order == Ordering::Less,
        }
    }

    /// Whether a price of the other side is at or through its own.
    fn is_reached_by(&self, price: Price) -> bool {
        match self.side {
            Side::Bid => price <= self.price,
            Side::Ask => price >= self.price,
        }
    }
}

/// Whether an order was executed at another price than its own, in an auction or against somebody else's
/// price: that says nothing of its queue. A feed that has a price in every execution (XDP) marks them all.
pub(crate) fn is_elsewhere(event: &MarketEvent, had: OrderView) -> bool {
    event.flags.has(EventFlags::AT_OTHER_PRICE) && event.price != had.price
}

/// What is known of an event beside itself.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Said {
    /// Whether the book took it.
    pub(crate) is_applied: bool,
    /// Whether its feed says no executions, and what becomes less in its place was executed.
    pub(crate) less_is_executed: bool,
}

/// What a modification in place was.
enum Changed {
    /// So much was executed.
    Executed(u64),
    /// It has so much less, or none less.
    Resized(u64),
}

/// On which side an order stands after a modification.
fn side_of(event: &MarketEvent, had: Option<OrderView>) -> Side {
    match had.filter(|_| event.flags.has(EventFlags::NO_SIDE)) {
        Some(had) => had.side,
        None => event.side,
    }
}

/// What a modification was; none when the order went to the end of a queue.
fn change_of(event: &MarketEvent, had: Option<OrderView>, said: Said) -> Option<Changed> {
    let stays = |had: &OrderView| (side_of(event, Some(*had)), event.price) == (had.side, had.price);
    let had = had.filter(|had| event.flags.has(EventFlags::KEEPS_PRIORITY) && stays(had))?;
    let less = u64::from(had.qty.0).saturating_sub(event.qty.0);
    Some(match said.less_is_executed && less > 0 {
        true => Changed::Executed(less),
        false => Changed::Resized(less),
    })
}

/// On which side the order stood that a trade was with: whoever was hit stands on the side whose best price
/// it was.
fn resting_side(event: &MarketEvent, (books, local): (&Books, InstrumentId)) -> Option<Side> {
    if event.flags.has(EventFlags::NOT_PRINTABLE) {
        return None;
    }
    if !event.flags.has(EventFlags::NO_SIDE) {
        return Some(event.side);
    }
    let book = books.book(local)?;
    let is_at = |side: Side| {
        book.best(side)
            .is_some_and(|best| !side.better(event.price, best.price))
    };
    match (is_at(Side::Bid), is_at(Side::Ask)) {
        (true, false) => Some(Side::Bid),
        (false, true) => Some(Side::Ask),
        _ => None,
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
    /// By instrument, who trades first first.
    orders: Vec<Vec<Own>>,
    /// By instrument: whether an order of ours stands there or the book differs from the recorded one.
    is_busy: Vec<bool>,
    /// Books with our orders in them, of the matching model.
    worlds: BTreeMap<InstrumentId, World>,
    arrivals: u64,
    /// By instrument: stop orders, as they came.
    stops: BTreeMap<InstrumentId, Vec<Waiting>>,
    /// By instrument: the price of the last recorded trade.
    last_sales: Vec<Option<Price>>,
    /// Stop orders that a trade has triggered, and when.
    triggered: VecDeque<(Nanos, InstrumentId, ClientOrderId)>,
    place_of: BTreeMap<ClientOrderId, InstrumentId>,
    /// What we took of recorded orders, and of levels where no order is known.
    taken: BTreeMap<(InstrumentId, OrderId), u64>,
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
            is_busy: vec![false; instruments],
            worlds: BTreeMap::new(),
            arrivals: 0,
            stops: BTreeMap::new(),
            last_sales: vec![None; instruments],
            triggered: VecDeque::new(),
            place_of: BTreeMap::new(),
            taken: BTreeMap::new(),
            taken_of_levels: BTreeMap::new(),
            doubts: Doubts::default(),
            requests: [0; 3],
            rejects: 0,
            next_order: 1 << 62,
        }
    }

    /// Whether nothing of ours stands in a book, nor anything that ours changed.
    #[inline]
    pub(crate) fn is_idle(&self, instrument: InstrumentId) -> bool {
        !self.is_busy.get(instrument.index()).copied().unwrap_or_default()
    }

    /// What ours did to a book may be over: then it is the recorded one again.
    fn settle(&mut self, instrument: InstrumentId) {
        if self.worlds.get(&instrument).is_some_and(World::is_as_recorded)
            && let Some(world) = self.worlds.remove(&instrument)
        {
            self.doubts.found_less += world.found_less;
            self.doubts.spared += world.spared;
        }
        if let Some(is_busy) = self.is_busy.get_mut(instrument.index()) {
            let is_held = self.worlds.contains_key(&instrument);
            let of_orders = (instrument, OrderId(0))..=(instrument, OrderId(u64::MAX));
            let of_levels = (instrument.0, false, Price::MIN)..=(instrument.0, true, Price::MAX);
            // What was taken of recorded orders lives as long as they do.
            *is_busy = is_held
                || self.stops.contains_key(&instrument)
                || !self.orders[instrument.index()].is_empty()
                || self.taken.range(of_orders).next().is_some()
                || self.taken_of_levels.range(of_levels).next().is_some();
        }
    }

    /// What ours changed is forgotten, where none of ours stands.
    pub(crate) fn forget(&mut self, instrument: InstrumentId) {
        if self.orders[instrument.index()].is_empty() {
            self.worlds.remove(&instrument);
            self.settle(instrument);
        }
    }

    /// Whether recorded orders and ours are matched in one book.
    fn matches(&self, books: &Books) -> bool {
        self.model == FillModel::Matching && books.config().depth == Depth::ByOrder
    }

    /// Orders that stand in books.
    pub(crate) fn open(&self) -> usize {
        self.place_of.len()
    }

    /// A request reaches the matching engine. `book` is that of its instrument: of a cancellation or
    /// replacement see [`SimVenue::instrument_of`].
    pub(crate) fn arrive(
        &mut self,
        at: Nanos,
        request: &OrderIntent,
        books: (&Books, InstrumentId),
        can_trade: bool,
        tell: &mut impl Listener,
    ) {
        let instrument = match *request {
            OrderIntent::New { instrument, .. } => Some(instrument),
            OrderIntent::Replace { target, .. } | OrderIntent::Cancel { target, .. } => {
                self.instrument_of(target)
            }
        };
        self.request(at, request, books, can_trade, tell);
        if let Some(instrument) = instrument {
            self.settle(instrument);
        }
    }

    fn request(
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
                stop,
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
                    arrival: 0,
                    ahead: 0,
                    ahead_at_entry: 0,
                    behind: BTreeSet::new(),
                };
                let limit = (order_type == OrderType::Limit).then_some(price);
                match stop {
                    None => self.enter(at, own, limit, instrument, (books, local), tell),
                    Some(trigger) => {
                        let waiting = Waiting {
                            own,
                            trigger,
                            limit,
                            is_triggered: false,
                        };
                        self.wait(at, instrument, waiting);
                    }
                }
            }
            OrderIntent::Replace {
                id,
                target,
                price,
                stop,
                qty,
                time_in_force,
                ..
            } => {
                self.requests[1] += 1;
                let place = self
                    .place_of
                    .get(&target)
                    .copied()
                    .filter(|_| can_trade && !qty.is_zero());
                let Some(instrument) = place else {
                    self.rejects += 1;
                    return tell.report(at, report(target, None, ReportKind::ReplaceRejected { by: id }));
                };
                let replaced = ReportKind::Replaced {
                    by: id,
                    venue_id: None,
                };
                if let Some(mut waiting) = self.take_waiting(instrument, target) {
                    tell.report(at, report(target, None, replaced));
                    waiting.own = Own {
                        id,
                        price,
                        qty: qty.0,
                        ..waiting.own
                    };
                    waiting.trigger = stop.unwrap_or(waiting.trigger);
                    waiting.limit = waiting.limit.map(|_| price);
                    return self.wait(at, instrument, waiting);
                }
                let Some(mut own) = self.take_out(instrument, target) else {
                    return;
                };
                tell.report(at, report(target, None, replaced));
                let keeps_place = price == own.price && qty.0 <= own.qty && time_in_force.rests();
                own.time_in_force = time_in_force;
                (own.id, own.price, own.qty) = (id, price, qty.0.max(own.filled));
                let world = self.worlds.get_mut(&instrument);
                if own.leaves() == 0 {
                    world.into_iter().for_each(|world| world.leave(target));
                    return tell.report(at, report(id, None, ReportKind::Cancelled));
                }
                if keeps_place {
                    let left = own.leaves().into();
                    world.into_iter().for_each(|world| world.rename(target, id, left));
                    return self.put_back(instrument, own);
                }
                world.into_iter().for_each(|world| world.leave(target));
                own.behind.clear();
                self.enter(at, own, Some(price), instrument, (books, local), tell);
            }
            OrderIntent::Cancel { target, .. } => {
                self.requests[2] += 1;
                let place = self.place_of.get(&target).copied();
                if let Some(instrument) = place
                    && self.take_waiting(instrument, target).is_some()
                {
                    return tell.report(at, report(target, None, ReportKind::Cancelled));
                }
                match place.and_then(|instrument| Some((instrument, self.take_out(instrument, target)?))) {
                    Some((instrument, mut own)) => {
                        if let Some(world) = self.worlds.get_mut(&instrument) {
                            own.ahead = world.ahead(target);
                            world.leave(target);
                        }
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

    /// Puts a stop order where it waits; one whose trigger the last trade has passed is triggered by that.
    fn wait(&mut self, at: Nanos, instrument: InstrumentId, mut waiting: Waiting) {
        let id = waiting.own.id;
        let last = self.last_sales.get(instrument.index()).copied().flatten();
        waiting.is_triggered = last.is_some_and(|last| waiting.is_triggered_by(last));
        if waiting.is_triggered {
            self.triggered.push_back((at, instrument, id));
        }
        self.place_of.insert(id, instrument);
        self.stops.entry(instrument).or_default().push(waiting);
    }

    fn take_waiting(&mut self, instrument: InstrumentId, id: ClientOrderId) -> Option<Waiting> {
        let waiting = self.stops.get_mut(&instrument)?;
        let at = waiting.iter().position(|waiting| waiting.own.id == id)?;
        let taken = waiting.remove(at);
        if waiting.is_empty() {
            self.stops.remove(&instrument);
        }
        self.triggered.retain(|(.., other)| *other != id);
        self.place_of.remove(&id);
        Some(taken)
    }

    /// Somebody has traded, as the recording says. Of the stop orders that this triggers, those act first
    /// whose trigger was passed first, then those that came first; purchases before sales.
    pub(crate) fn sold(&mut self, at: Nanos, instrument: InstrumentId, price: Price) {
        if let Some(last) = self.last_sales.get_mut(instrument.index()) {
            *last = Some(price);
        }
        let Some(stops) = self.stops.get_mut(&instrument) else {
            return;
        };
        let mut met: Vec<&mut Waiting> = stops
            .iter_mut()
            .filter(|waiting| !waiting.is_triggered && waiting.is_triggered_by(price))
            .collect();
        met.sort_by_key(|waiting| match waiting.own.side {
            Side::Bid => (0, waiting.trigger.raw()),
            Side::Ask => (1, waiting.trigger.raw().saturating_neg()),
        });
        for waiting in met {
            waiting.is_triggered = true;
            self.triggered.push_back((at, instrument, waiting.own.id));
        }
    }

    /// When the next stop order that was triggered acts: behind everything of that time.
    #[inline]
    pub(crate) fn next_triggered(&self) -> Option<(Nanos, InstrumentId)> {
        self.triggered
            .front()
            .map(|(at, instrument, _)| (*at, *instrument))
    }

    /// The next one acts: it trades, or rests. `can_trade`: one that may not waits no more.
    pub(crate) fn trigger(
        &mut self,
        at: Nanos,
        books: (&Books, InstrumentId),
        can_trade: bool,
        tell: &mut impl Listener,
    ) {
        let Some((_, instrument, id)) = self.triggered.pop_front() else {
            return;
        };
        let Some(waiting) = self.take_waiting(instrument, id) else {
            return;
        };
        tell.report(at, report(id, None, ReportKind::Triggered));
        match can_trade {
            true => self.enter(at, waiting.own, waiting.limit, instrument, books, tell),
            false => tell.report(at, report(id, None, ReportKind::Cancelled)),
        }
        self.settle(instrument);
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
        let is_auction = is_auction(books, local);
        if self.matches(books) {
            self.hit_world(at, &mut own, limit, instrument, (books, local), tell);
        } else if let Some(book) = books.book(local).filter(|_| !is_auction) {
            for level in book.levels(!own.side) {
                if own.leaves() == 0 || !within(own.side, level.price, limit) {
                    break;
                }
                let wanted = (own.side, own.leaves());
                let taken = self.take_level(wanted, instrument, books, local, (level.price, level.qty.0));
                if taken == 0 {
                    continue;
                }
                own.filled += taken;
                match self.model {
                    FillModel::Touch => self.doubts.touched += 1,
                    _ => self.doubts.took_recorded += 1,
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
        own.ahead = match self.worlds.get_mut(&instrument) {
            Some(world) => world.rest(own.id, own.side, own.price, own.leaves().into()),
            None => books.book(local).map_or(0, |book| {
                let at_price = book.levels(own.side).find(|level| level.price == own.price);
                at_price.map_or(0, |level| level.qty.0)
            }),
        };
        own.ahead_at_entry = own.ahead;
        self.arrivals += 1;
        own.arrival = self.arrivals;
        self.put_back(instrument, own);
    }

    /// Takes what an order wants of the book with ours in it, which is made if there is none yet.
    fn hit_world(
        &mut self,
        at: Nanos,
        own: &mut Own,
        limit: Option<Price>,
        instrument: InstrumentId,
        (books, local): (&Books, InstrumentId),
        tell: &mut impl Listener,
    ) {
        let world = self.worlds.entry(instrument).or_insert_with(|| {
            let book = books.book(local);
            book.map_or_else(World::default, World::of)
        });
        // It rests, and trades when the recording says that others do.
        if is_auction(books, local) {
            return;
        }
        let mut parts: Vec<(Price, u32)> = Vec::new();
        world.hit(!own.side, limit, own.leaves().into(), |price, qty| {
            match parts.last_mut().filter(|(last, _)| *last == price) {
                Some((_, of_level)) => *of_level += qty as u32,
                None => parts.push((price, qty as u32)),
            }
        });
        for (price, qty) in parts {
            own.filled += qty;
            tell_fill(at, own, instrument, (qty, price), false, tell);
        }
    }

    /// How much of the other side an order could have.
    fn can_take(
        &self,
        own: &Own,
        limit: Option<Price>,
        instrument: InstrumentId,
        (books, local): (&Books, InstrumentId),
    ) -> u64 {
        if self.matches(books)
            && let Some(world) = self.worlds.get(&instrument)
        {
            return world.available(!own.side, limit);
        }
        let Some(book) = books.book(local) else { return 0 };
        let levels = book
            .levels(!own.side)
            .take_while(|level| within(own.side, level.price, limit));
        levels
            .map(|level| match self.model {
                FillModel::Touch => u64::from(own.leaves()),
                _ => self.left_of(instrument, books, local, !own.side, (level.price, level.qty.0)),
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
                let taken = self.taken.get(&(instrument, order.id)).copied();
                u64::from(order.qty.0).saturating_sub(taken.unwrap_or(0))
            })
            .sum()
    }

    /// Takes as much as an order of ours of this side wants and a level of the other side has left.
    fn take_level(
        &mut self,
        (side, wanted): (Side, u32),
        instrument: InstrumentId,
        books: &Books,
        local: InstrumentId,
        (price, qty): (Price, u64),
    ) -> u32 {
        if self.model == FillModel::Touch {
            return wanted;
        }
        if books.config().depth != Depth::ByOrder {
            let left = self.left_of(instrument, books, local, !side, (price, qty));
            let taken = left.min(wanted.into()) as u32;
            if taken > 0 {
                let key = (instrument.0, side == Side::Ask, price);
                *self.taken_of_levels.entry(key).or_default() += u64::from(taken);
            }
            return taken;
        }
        let Some(book) = books.book(local) else { return 0 };
        let mut taken = 0;
        for order in book.orders(!side, price) {
            if taken == wanted {
                break;
            }
            let used = self.taken.get(&(instrument, order.id)).copied().unwrap_or(0);
            let part = u64::from(order.qty.0)
                .saturating_sub(used)
                .min((wanted - taken).into());
            if part > 0 {
                self.taken.insert((instrument, order.id), used + part);
                taken += part as u32;
            }
        }
        taken
    }

    /// An event of the recording that was just applied to its book. `had`: the order that it names as it was
    /// before it.
    #[expect(
        clippy::too_many_arguments,
        reason = "what a venue is told of an event, in one call on the hot path"
    )]
    pub(crate) fn event(
        &mut self,
        at: Nanos,
        event: &MarketEvent,
        had: Option<OrderView>,
        said: Said,
        instrument: InstrumentId,
        books: (&Books, InstrumentId),
        tell: &mut impl Listener,
    ) {
        let is_of_order = matches!(
            event.kind,
            EventKind::Add
                | EventKind::Execute
                | EventKind::Reduce
                | EventKind::Delete
                | EventKind::Replace
                | EventKind::Modify
        );
        // What the book refused did not happen.
        if is_of_order && !said.is_applied {
            return;
        }
        // Others are noted by whoever tells of them, whether anything of ours stands there or not.
        if event.kind == EventKind::Modify
            && let Some(Changed::Executed(_)) = change_of(event, had, said)
        {
            self.sold(at, instrument, event.price);
        }
        if self.worlds.contains_key(&instrument) {
            self.event_of_world(at, event, had, said, instrument, books, tell);
        } else {
            self.event_of_queues(at, event, had, said, instrument, books, tell);
            self.crossed(at, event, instrument, books, tell);
        }
        self.settle(instrument);
    }

    #[expect(
        clippy::too_many_arguments,
        reason = "what a venue is told of an event, in one call on the hot path"
    )]
    fn event_of_world(
        &mut self,
        at: Nanos,
        event: &MarketEvent,
        had: Option<OrderView>,
        said: Said,
        instrument: InstrumentId,
        books: (&Books, InstrumentId),
        tell: &mut impl Listener,
    ) {
        let resting = match event.kind {
            EventKind::Trade => resting_side(event, books),
            _ => None,
        };
        let Some(world) = self.worlds.get_mut(&instrument) else {
            return;
        };
        let (order, qty) = (event.order_id, event.qty.0);
        world.is_auction = is_auction(books.0, books.1);
        match event.kind {
            EventKind::Add => world.add(order, event.side, event.price, qty),
            EventKind::Execute if had.is_some_and(|had| is_elsewhere(event, had)) => {
                world.execute_elsewhere(order, qty)
            }
            EventKind::Execute => world.execute(order, qty),
            EventKind::Reduce => world.reduce(order, qty),
            EventKind::Delete => world.delete(order),
            EventKind::Replace => {
                let side = had.map_or(event.side, |had| had.side);
                world.replace(order, OrderId(event.ref_id), (side, event.price), qty);
            }
            EventKind::Modify => match change_of(event, had, said) {
                Some(Changed::Executed(qty)) => world.execute(order, qty),
                Some(Changed::Resized(_)) => world.resize(order, qty),
                None => world.replace(order, order, (side_of(event, had), event.price), qty),
            },
            EventKind::Trade => {
                if let Some(side) = resting {
                    world.trade(side, event.price, qty);
                }
            }
            EventKind::Clear => world.clear(),
            _ => {}
        }
        let adds = matches!(
            event.kind,
            EventKind::Add | EventKind::Replace | EventKind::Modify
        );
        for hit in std::mem::take(&mut world.hits) {
            self.doubts.crossed_by_recorded += u64::from(adds);
            let place = self.orders[instrument.index()]
                .iter()
                .position(|own| own.id == hit.id);
            if let Some(place) = place {
                self.fill_at(at, instrument, place, hit.qty as u32, tell);
            }
        }
    }

    #[expect(
        clippy::too_many_arguments,
        reason = "what a venue is told of an event, in one call on the hot path"
    )]
    fn event_of_queues(
        &mut self,
        at: Nanos,
        event: &MarketEvent,
        had: Option<OrderView>,
        said: Said,
        instrument: InstrumentId,
        (books, local): (&Books, InstrumentId),
        tell: &mut impl Listener,
    ) {
        let of = (instrument, event.order_id);
        match event.kind {
            EventKind::Execute
            | EventKind::Reduce
            | EventKind::Delete
            | EventKind::Replace
            | EventKind::Modify => {
                let Some(found) = had else { return };
                let (place, had) = ((found.side, found.price), u64::from(found.qty.0));
                match event.kind {
                    EventKind::Execute => {
                        match is_elsewhere(event, found) {
                            false => self.executed(at, of, (place.0, place.1, event.qty.0), tell),
                            true => self.left_ahead(of, place, event.qty.0),
                        }
                        self.gone(of, event.qty.0, had);
                    }
                    EventKind::Reduce => {
                        self.left_ahead(of, place, event.qty.0);
                        self.gone(of, event.qty.0, had);
                    }
                    EventKind::Delete => self.gone_whole(of, place, had),
                    EventKind::Replace => {
                        self.gone_whole(of, place, had);
                        self.join_queue((instrument, OrderId(event.ref_id)), (place.0, event.price));
                    }
                    _ => match change_of(event, Some(found), said) {
                        Some(Changed::Executed(qty)) => {
                            self.executed(at, of, (place.0, place.1, qty), tell);
                            self.gone(of, qty, had);
                        }
                        Some(Changed::Resized(less)) => {
                            self.left_ahead(of, place, less);
                            if let Some(taken) = self.taken.get_mut(&of) {
                                *taken = event.qty.0.min(*taken);
                            }
                        }
                        None => {
                            self.gone_whole(of, place, had);
                            self.join_queue(of, (side_of(event, Some(found)), event.price));
                        }
                    },
                }
            }
            EventKind::Add => self.join_queue(of, (event.side, event.price)),
            EventKind::Trade => {
                if let Some(side) = resting_side(event, (books, local)) {
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
                self.taken.retain(|(of, _), _| *of != instrument);
                self.taken_of_levels.retain(|(of, ..), _| *of != instrument.0);
            }
            _ => {}
        }
    }

    /// Every book of a feed was cleared: `instruments` are the numbers of its.
    pub(crate) fn clear(
        &mut self,
        at: Nanos,
        event: &MarketEvent,
        instruments: Range<u32>,
        books: &Books,
        tell: &mut impl Listener,
    ) {
        let first = instruments.start;
        for id in instruments
            .map(InstrumentId)
            .filter(|id| !self.is_idle(*id))
            .collect::<Vec<_>>()
        {
            let said = Said {
                is_applied: true,
                less_is_executed: false,
            };
            let local = InstrumentId(id.0 - first);
            self.event(at, event, None, said, id, (books, local), tell);
        }
    }

    /// Somebody may now rest at or through one of our prices.
    fn crossed(
        &mut self,
        at: Nanos,
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
        let is_reached = |own: &Own| {
            let opposite = book.best(!own.side);
            opposite.is_some_and(|best| own.is_reached_by(best.price))
        };
        if book.state() != BookState::Live
            || !self.orders[instrument.index()].iter().any(is_reached)
            || is_auction(books, local)
        {
            return;
        }
        let mut place = 0;
        while let Some(own) = self.orders[instrument.index()].get(place) {
            let side = own.side;
            let mut is_over = false;
            for level in book.levels(!side) {
                let own = &self.orders[instrument.index()][place];
                if !own.is_reached_by(level.price) {
                    break;
                }
                let wanted = (side, own.leaves());
                let taken = self.take_level(wanted, instrument, books, local, (level.price, level.qty.0));
                if taken == 0 {
                    continue;
                }
                match self.model {
                    FillModel::Touch => self.doubts.touched += 1,
                    _ => self.doubts.crossed_by_recorded += 1,
                }
                is_over = self.fill_at(at, instrument, place, taken, tell);
                if is_over {
                    break;
                }
            }
            place += usize::from(!is_over);
        }
    }

    /// A recorded order was executed.
    fn executed(
        &mut self,
        at: Nanos,
        (instrument, order): (InstrumentId, OrderId),
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
            // At our own price it says nothing: had it been hidden behind what is displayed, the displayed
            // would have traded.
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
        (instrument, order): (InstrumentId, OrderId),
        (side, price): (Side, Price),
        qty: u64,
    ) {
        for own in &mut self.orders[instrument.index()] {
            if own.side == side && own.price == price && !own.behind.contains(&order) {
                own.ahead = own.ahead.saturating_sub(qty);
            }
        }
    }

    /// A recorded order has left its queue.
    fn gone_whole(&mut self, of: (InstrumentId, OrderId), place: (Side, Price), had: u64) {
        self.left_ahead(of, place, had);
        for own in &mut self.orders[of.0.index()] {
            own.behind.remove(&of.1);
        }
        self.taken.remove(&of);
    }

    fn join_queue(&mut self, (instrument, order): (InstrumentId, OrderId), (side, price): (Side, Price)) {
        for own in &mut self.orders[instrument.index()] {
            if own.side == side && own.price == price {
                own.behind.insert(order);
            }
        }
    }

    /// So much of a recorded order is no more: what we took of it was of that.
    fn gone(&mut self, order: (InstrumentId, OrderId), qty: u64, had: u64) {
        if self.taken.is_empty() {
            return;
        }
        let left = match self.taken.get(&order) {
            Some(taken) if qty < had => taken.saturating_sub(qty),
            _ => 0,
        };
        match left {
            0 => _ = self.taken.remove(&order),
            left => _ = self.taken.insert(order, left),
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
        tell_fill(at, own, instrument, (qty, own.price), true, tell);
        let id = own.id;
        if own.leaves() > 0 {
            return false;
        }
        self.orders[instrument.index()].remove(place);
        self.place_of.remove(&id);
        true
    }

    fn take_out(&mut self, instrument: InstrumentId, id: ClientOrderId) -> Option<Own> {
        self.place_of.remove(&id)?;
        let orders = &mut self.orders[instrument.index()];
        let at = orders.iter().position(|own| own.id == id)?;
        Some(orders.remove(at))
    }

    /// Puts an order in its place among ours.
    fn put_back(&mut self, instrument: InstrumentId, own: Own) {
        self.place_of.insert(own.id, instrument);
        let orders = &mut self.orders[instrument.index()];
        let at = orders.iter().position(|other| own.is_before(other));
        orders.insert(at.unwrap_or(orders.len()), own);
    }

    fn ended(&mut self, own: &Own) {
        if own.filled == 0 && own.ahead == 0 && own.ahead_at_entry > 0 {
            self.doubts.stopped_at_front += 1;
        }
    }

    /// The recording is over: everything that rests ends.
    pub(crate) fn close(&mut self, at: Nanos, tell: &mut impl Listener) {
        for waiting in std::mem::take(&mut self.stops).into_values().flatten() {
            tell.report(at, report(waiting.own.id, None, ReportKind::Cancelled));
        }
        self.triggered.clear();
        for instrument in 0..self.orders.len() {
            let world = self.worlds.remove(&InstrumentId(instrument as u32));
            for mut own in std::mem::take(&mut self.orders[instrument]) {
                if let Some(world) = &world {
                    own.ahead = world.ahead(own.id);
                }
                self.ended(&own);
                tell.report(at, report(own.id, None, ReportKind::Cancelled));
            }
            if let Some(world) = world {
                self.doubts.found_less += world.found_less;
                self.doubts.spared += world.spared;
            }
        }
        self.place_of.clear();
        self.is_busy.fill(false);
    }
}

/// Whether recorded orders stand across each other: then nobody matches them, before an opening or in an
/// auction, and orders rest until a recorded execution. Where levels or quotes are told, those of several
/// venues may cross while all of them trade.
fn is_auction(books: &Books, local: InstrumentId) -> bool {
    let book = books
        .book(local)
        .filter(|_| books.config().depth == Depth::ByOrder);
    let best = book.and_then(|book| book.best(Side::Bid).zip(book.best(Side::Ask)));
    best.is_some_and(|(bid, ask)| bid.price >= ask.price)
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
