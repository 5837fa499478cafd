//! Events of the recording at the venue: who of ours moves up in his queue, and who trades.

use std::ops::Range;

use tickwire_book::{Books, Depth, OrderView};
use tickwire_market::{
    BookState, BookUpdate, EventFlags, EventKind, InstrumentId, MarketEvent, Nanos, OrderId, Price, Side,
};

use super::own::Own;
use super::{FillModel, Listener, SimVenue, is_auction};

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

impl SimVenue {
    /// Whether an event that a book took may be of any concern to ours: most are of levels where nothing of
    /// ours stands. `had`: the order that it names as it was before it.
    #[inline(always)]
    pub(crate) fn is_concerned(
        &self,
        instrument: InstrumentId,
        event: &MarketEvent,
        had: Option<OrderView>,
        now: &BookUpdate,
    ) -> bool {
        #[cfg(test)]
        if self.looks_at_all {
            return true;
        }
        match self.own.get(instrument.index()) {
            Some(Some(own)) => own.is_concerned(event, had, now),
            _ => false,
        }
    }

    /// An event of the recording that was just applied to its book, and is of concern to ours. `had`: the
    /// order that it names as it was before it.
    pub(crate) fn event(
        &mut self,
        at: Nanos,
        event: &MarketEvent,
        had: Option<OrderView>,
        said: Said,
        (instrument, books): (InstrumentId, (&Books, InstrumentId)),
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
        match self.of(instrument).map(|of| of.world.is_some()) {
            None => return,
            Some(true) => self.event_of_world(at, event, had, said, (instrument, books), tell),
            Some(false) => {
                self.event_of_queues(at, event, had, said, (instrument, books), tell);
                self.crossed(at, event, instrument, books, tell);
            }
        }
        self.settle(instrument);
    }

    fn event_of_world(
        &mut self,
        at: Nanos,
        event: &MarketEvent,
        had: Option<OrderView>,
        said: Said,
        (instrument, books): (InstrumentId, (&Books, InstrumentId)),
        tell: &mut impl Listener,
    ) {
        let resting = match event.kind {
            EventKind::Trade => resting_side(event, books),
            _ => None,
        };
        let Some(world) = self.of(instrument).and_then(|of| of.world.as_mut()) else {
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
            let place = self.of(instrument).and_then(|of| of.place_of(hit.id));
            if let Some(place) = place {
                self.fill_at(at, instrument, place, hit.qty as u32, tell);
            }
        }
    }

    fn event_of_queues(
        &mut self,
        at: Nanos,
        event: &MarketEvent,
        had: Option<OrderView>,
        said: Said,
        (instrument, (books, local)): (InstrumentId, (&Books, InstrumentId)),
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
                        self.join_queue((instrument, OrderId(event.ref_id)), (place.0, event.price), books);
                    }
                    _ => match change_of(event, Some(found), said) {
                        Some(Changed::Executed(qty)) => {
                            self.executed(at, of, (place.0, place.1, qty), tell);
                            self.gone(of, qty, had);
                        }
                        Some(Changed::Resized(less)) => {
                            self.left_ahead(of, place, less);
                            let taken = self.of(instrument).and_then(|own| own.taken.get_mut(&of.1));
                            if let Some(taken) = taken {
                                *taken = event.qty.0.min(*taken);
                            }
                        }
                        None => {
                            self.gone_whole(of, place, had);
                            self.join_queue(of, (side_of(event, Some(found)), event.price), books);
                        }
                    },
                }
            }
            EventKind::Add => self.join_queue(of, (event.side, event.price), books),
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
                let Some(of) = self.of(instrument) else { return };
                of.taken_of_levels.remove(&(event.side, event.price));
                for own in &mut of.orders {
                    if own.side == event.side && own.price == event.price {
                        own.ahead = own.ahead.min(event.qty.0);
                    }
                }
            }
            EventKind::Quote => {
                if let Some(of) = self.of(instrument) {
                    of.taken_of_levels.clear();
                }
            }
            EventKind::Clear => {
                let Some(of) = self.of(instrument) else { return };
                of.orders.iter_mut().for_each(|own| own.ahead = 0);
                of.forget_all();
                of.taken.clear();
                of.taken_of_levels.clear();
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
            self.event(at, event, None, said, (id, (books, local)), tell);
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
            || !self.orders(instrument).iter().any(is_reached)
            || is_auction(books, local)
        {
            return;
        }
        let mut place = 0;
        while let Some(own) = self.orders(instrument).get(place) {
            let side = own.side;
            let mut is_over = false;
            for level in book.levels(!side) {
                let own = &self.orders(instrument)[place];
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
        let is_touch = self.model == FillModel::Touch;
        let arrival = self.of(instrument).map_or(0, |of| of.arrival_of(order));
        let mut left = qty;
        let mut place = 0;
        while let Some(own) = self.orders_mut(instrument).get_mut(place) {
            let is_same = own.side == side && own.price == price;
            let is_passed =
                own.side == side && (side.better(own.price, price) || (is_same && own.arrival < arrival));
            if is_touch && own.side == side && (is_same || is_passed) {
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
        let is_touch = self.model == FillModel::Touch;
        while let Some(own) = self.orders_mut(instrument).get_mut(place) {
            let is_better = own.side == side && side.better(own.price, price);
            let is_same = own.side == side && own.price == price;
            if !(is_better || is_same) {
                place += 1;
                continue;
            }
            if is_touch {
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
        let Some(of) = self.of(instrument) else { return };
        let arrival = of.arrival_of(order);
        for own in &mut of.orders {
            if own.side == side && own.price == price && own.arrival > arrival {
                own.ahead = own.ahead.saturating_sub(qty);
            }
        }
    }

    /// A recorded order has left its queue.
    fn gone_whole(&mut self, of: (InstrumentId, OrderId), place: (Side, Price), had: u64) {
        self.left_ahead(of, place, had);
        if let Some(own) = self.of(of.0) {
            own.forget(of.1);
            own.taken.remove(&of.1);
        }
    }

    fn join_queue(
        &mut self,
        (instrument, order): (InstrumentId, OrderId),
        (side, price): (Side, Price),
        books: &Books,
    ) {
        self.arrivals += 1;
        let arrival = self.arrivals;
        if let Some(of) = self.of(instrument) {
            of.join(order, side, price, arrival, books);
        }
    }

    /// So much of a recorded order is no more: what we took of it was of that.
    fn gone(&mut self, (instrument, order): (InstrumentId, OrderId), qty: u64, had: u64) {
        let Some(of) = self.of(instrument).filter(|of| !of.taken.is_empty()) else {
            return;
        };
        let left = match of.taken.get(&order) {
            Some(taken) if qty < had => taken.saturating_sub(qty),
            _ => 0,
        };
        match left {
            0 => _ = of.taken.remove(&order),
            left => _ = of.taken.insert(order, left),
        }
    }
}
